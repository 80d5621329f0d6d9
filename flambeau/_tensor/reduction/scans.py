"""`cumsum`, `cumprod`, `softmax` and `log_softmax`: argument checks and dtype conversion."""

from __future__ import annotations

from typing import Any

from ... import dtypes
from ...ops.declare import REGISTRY
from ..argument_errors.guards import raise_refusal, refused
from ..argument_errors.out_arguments import check_records_nothing
from ..argument_errors.type_names import type_name
from ..dispatch.out_tensors import resize_out, write_out
from ..fastpath.repeated_calls import launched
from ..fastpath.unary_with_parameters import positional_parameters
from ..tensor import Tensor
from .dims import check_dtype_of_out, check_not_integer, converted, one_dim, past_conversion

__all__ = ["cumprod", "cumsum", "log_softmax", "softmax"]

_MISSING = object()


def _scan(name: str, converts_before: bool) -> Any:
    op = REGISTRY[name]
    fast = positional_parameters(op)

    def call(input: Any, dim: Any = _MISSING, dtype: Any = None, *, out: Any = None, axis: Any = _MISSING) -> Any:
        if dim.__class__ is not int:
            if dim is _MISSING:
                dim = axis
            if dim is _MISSING:
                raise TypeError(f'{name}() missing 1 required positional arguments: "dim"')
            try:
                dim = one_dim(name, dim)
            except TypeError as error:
                raise refused(name, (input, dim), (), {"dtype": dtype, "out": out}) or error from None
        elif axis is not _MISSING:
            raise TypeError(f"{name}() got an unexpected keyword argument 'axis'")
        if not isinstance(input, Tensor):
            raise_refusal(refused(name, (input, dim), (), {"dtype": dtype, "out": out}))
        if out is not None and not isinstance(out, Tensor):
            raise TypeError(f"{name}(): argument 'out' must be Tensor, not {type_name(out)}")
        if dtype is None and out is not None and not converts_before:
            dtype = out.dtype
        given = input
        if dtype is not None:
            dtype = dtypes.of_argument(dtype, name)
            if dtype is dtypes.bool_ and not converts_before:
                raise NotImplementedError(f"\"{name}_out_cpu\" not implemented for 'Bool'")
            if not converts_before and dtype.numpy.kind in "biu":
                check_not_integer(name, input, dtype)
            check_dtype_of_out(dtype, out)
            if out is not None and input.dtype.is_complex and not dtype.is_complex:
                resize_out(out, input._array.shape)  # before the warning of the cast
            if converts_before:
                if input.dtype is not dtype:
                    given = input = input.to(dtype)
                dtype = None
            else:
                input, dtype = converted(input, dtype)
        if out is None:
            return past_conversion(fast(input, dim, dtype), given, input)
        check_records_nothing(name, (input,), (out,))
        return write_out(op, fast(input, dim, dtype), out)

    call.__name__ = call.__qualname__ = name
    call.__doc__ = op.doc
    return launched(call)


cumsum = _scan("cumsum", False)
cumprod = _scan("cumprod", False)
softmax = _scan("softmax", True)
log_softmax = _scan("log_softmax", True)

METHODS: dict[str, Any] = {name: globals()[name] for name in __all__}
