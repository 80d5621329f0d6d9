"""What error messages call an object."""

from __future__ import annotations

from .._tensor import Tensor


def typename(obj: object) -> str:
    """The name of an object's type, as error messages print it.

    A tensor is called by its legacy type name, any other object by the qualified name of itself (classes,
    functions) or of its class, without the prefix of the builtins.

    >>> import flambeau as torch
    >>> from flambeau.nn.naming import typename
    >>> typename(torch.ones(2)), typename(3), typename(torch.nn.ReLU())
    ('flambeau.FloatTensor', 'int', 'flambeau.nn.modules.activation.ReLU')
    """
    if isinstance(obj, Tensor):
        return obj.type()
    named = obj if hasattr(obj, "__qualname__") else type(obj)
    module = getattr(named, "__module__", "") or ""
    if module in ("builtins", "__builtin__", ""):
        return named.__qualname__
    return f"{module}.{named.__qualname__}"
