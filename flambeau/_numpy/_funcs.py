"""NumPy's functions that are no universal ones, of all modules of this package."""

from __future__ import annotations

from . import creation, gradients, indexing, joining, mathematics, reductions, shapes

_MODULES = (creation, gradients, indexing, joining, mathematics, reductions, shapes)
for _module in _MODULES:
    globals().update({name: getattr(_module, name) for name in _module.__all__})

__all__ = sorted({name for module in _MODULES for name in module.__all__} - {"IndexExpression"})  # noqa: PLE0605
