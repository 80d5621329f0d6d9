"""`typename`: the type name of an object in error messages."""

from __future__ import annotations

from .._tensor import Tensor


def typename(obj: object) -> str:
    """The type name of an object, as error messages print it.

    Tensors: the legacy type name. Classes and functions: their own qualified name. Other objects: the qualified name of
    their class. The prefix `builtins.` is omitted.

    Args:
        obj: any object.

    >>> import flambeau as torch
    >>> from flambeau.nn.typename import typename
    >>> typename(torch.ones(2)), typename(3), typename(torch.nn.ReLU())
    ('flambeau.FloatTensor', 'int', 'flambeau.nn.modules.activation.ReLU')
    """
    if isinstance(obj, Tensor):
        return obj.type()
    target = obj if hasattr(obj, "__qualname__") else type(obj)
    module = getattr(target, "__module__", "") or ""
    if module in ("builtins", "__builtin__", ""):
        return target.__qualname__
    return f"{module}.{target.__qualname__}"
