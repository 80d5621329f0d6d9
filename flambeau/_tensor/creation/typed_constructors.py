"""Legacy typed constructors, `torch.FloatTensor` etc., which are also types for `isinstance`."""

from __future__ import annotations

from typing import Any

from ... import config, dtypes
from ..tensor import Tensor
from .legacy_constructor import legacy_constructor


class tensortype(type):
    """Metaclass of the typed constructors: every tensor of the dtype is an instance."""

    dtype: dtypes.dtype
    __module__ = "torch"

    def __new__(cls, name: str, bases: tuple[type, ...], members: dict[str, Any]) -> Any:
        if bases:
            raise TypeError(f"type '{config.module_name}.{bases[0].__name__}' is not an acceptable base type")
        return super().__new__(cls, name, bases, members)

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, Tensor) and instance.dtype is cls.dtype

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        return legacy_constructor(Tensor, cls.dtype, *args, **kwargs)

    def __repr__(cls) -> str:
        return f"<class '{config.module_name}.{cls.__name__}'>"

    @property
    def is_cuda(cls) -> bool:
        """Whether its tensors are on a CUDA device: never."""
        return False

    @property
    def is_sparse(cls) -> bool:
        """Whether its tensors are sparse: never."""
        return False


def _doc(d: dtypes.dtype) -> str:
    """The docstring of a constructor; complex ones are not public and have no example."""
    summary = f"Legacy constructor of {d.name} tensors: of a sequence of data, or uninitialized of the given sizes."
    if d.is_complex:
        return summary
    values = {dtypes.BOOL: " True, False", dtypes.INTEGER: "1, 0", dtypes.FLOATING: "1., 0."}[d.category]
    suffix = "" if d in (dtypes.bool_, dtypes.int64, dtypes.float32) else f", dtype=flambeau.{d.name}"
    return f"""{summary}

    >>> import flambeau as torch
    >>> torch.{d.legacy}([1, 0])
    tensor([{values}]{suffix})
    """


TYPES = {d.legacy: tensortype(d.legacy, (), {"dtype": d, "__module__": "torch",
                                             "__doc__": _doc(d)})
         for d in dtypes.ALL if d not in dtypes.WITHOUT_STORAGE_CLASS}
globals().update(TYPES)

__all__ = list(TYPES)
