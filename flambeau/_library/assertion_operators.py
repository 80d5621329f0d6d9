"""Operators that check a number or a tensor at run time: `torch.ops.aten._assert_scalar`, `sym_constrain_range`.

Programs that fix sizes or values check them by these operators. Functional variants return a copy of a token, so that
passes that drop unused results keep them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .. import dtypes
from .._tensor import functions
from ..devices import META, strided
from ..devices import device as as_device

_LOWEST, _HIGHEST = -2**63, 2**63 - 1


def _assert_async(input: Any, message: str = "Expected Tensor with single nonzero value, but got zero") -> None:
    """Raise an error if a tensor of one element is zero.

    Raises:
        RuntimeError: it is zero, or has not one element.
    """
    if input.numel() != 1:
        raise RuntimeError("Boolean value of Tensor with " + ("no values" if not input.numel() else
                           "more than one value") + " is ambiguous")
    if not bool(input.item()):
        raise RuntimeError(message)


def _assert_scalar(self: Any, assert_msg: str) -> None:
    if not self:
        raise RuntimeError(assert_msg)


def _constrain(size: Any, lower: int, upper: int) -> None:
    if not lower <= int(size) <= upper:
        raise RuntimeError(f"Invalid value range for {int(size)} between [{lower}, {upper}].")


def sym_constrain_range(size: Any, *, min: int | None = None, max: int | None = None) -> None:
    """Check that a number lies between two bounds.

    Raises:
        RuntimeError: it does not, or the bounds are in the wrong order.

    >>> import flambeau as torch
    >>> torch.sym_constrain_range(3, min=1, max=5)
    """
    lower, upper = _LOWEST if min is None else min, _HIGHEST if max is None else max
    if upper < lower:
        raise RuntimeError(f"Max must be greater than or equal to min. Got min={lower} max={upper}")
    _constrain(size, lower, upper)


def sym_constrain_range_for_size(size: Any, *, min: int | None = None, max: int | None = None) -> None:
    """Check that a size lies between two bounds, of which the upper one allows more than 2 elements.

    Raises:
        RuntimeError: it does not, or the upper bound is at most 2.

    >>> import flambeau as torch
    >>> torch.sym_constrain_range_for_size(3, max=5)
    """
    lower, upper = 0 if min is None else min, _HIGHEST if max is None else max
    if upper <= 2:
        raise RuntimeError(f"Max value to constrain_range_for_size must be greater than 2. got: {upper}")
    if upper < lower:
        raise RuntimeError(f"Max must be greater than or equal to min. Got min={lower} max={upper}")
    _constrain(size, lower, upper)


def _functional_range(check: Callable[..., None]) -> Callable[..., Any]:
    def run(size: Any, min: int | None, max: int | None, dep_token: Any) -> Any:
        check(size, min=min, max=max)
        return dep_token.clone()

    return run


def _functional_assertion(check: Callable[..., None]) -> Callable[..., Any]:
    def run(self: Any, assert_msg: str, dep_token: Any) -> Any:
        check(self, assert_msg)
        return dep_token.clone()

    return run


def _assert_tensor_metadata(a: Any, size: Any = None, stride: Any = None, dtype: Any = None, *, device: Any = None,
                            layout: Any = None) -> None:
    """Check what is known of a tensor.

    Raises:
        RuntimeError: it has another shape, other strides, another dtype, device or layout.
    """
    if size is not None and list(size) != list(a.shape):
        _refuse("sizes", list(size), list(a.shape))
    if stride is not None:
        strides = list(a.stride()) if a.layout is strided else [0] * a.ndim
        if list(stride) != strides:
            _refuse("strides", list(stride), strides)
    if dtype is not None and dtype is not a.dtype:
        _refuse("dtype", dtype.scalar_name, _c_name(a.dtype))
    if device is not None and a.device != META and as_device(device) != a.device:
        _refuse("device", as_device(device), a.device)
    if layout is not None and layout is not a.layout:
        _refuse("layout", _layout_name(layout), _layout_name(a.layout))


def _refuse(what: str, expected: Any, got: Any) -> None:
    raise RuntimeError(f"Tensor {what} mismatch! Expected: {expected}, Got: {got}")


def _c_name(dtype: Any) -> str:
    """The name of a dtype in C++ as GCC writes types, `short unsigned int`."""
    written = {"uint16": "short unsigned int", "uint64": "long unsigned int"}.get(dtype.name)
    return written or dtypes.C_NAMES[dtype.name]


def _layout_name(layout: Any) -> str:
    """The name of a layout in C++, `SparseCsr`."""
    name = str(layout).rpartition(".")[2].strip("_").removesuffix("_coo")
    return "".join(part.capitalize() for part in name.split("_"))


def _make_dep_token(*, dtype: Any = None, layout: Any = None, device: Any = None, pin_memory: Any = None,
                    memory_format: Any = None) -> Any:
    return functions.zeros((), dtype=dtype, device=device)


#: "aten.name.overload" -> function with the schema's arguments
KERNELS: dict[str, Callable[..., Any]] = {
    "aten._assert_tensor_metadata.default": _assert_tensor_metadata, "aten._assert_scalar.default": _assert_scalar,
    "aten._assert_async.default": _assert_async, "aten._assert_async.msg": _assert_async,
    "aten.sym_constrain_range.default": sym_constrain_range,
    "aten.sym_constrain_range_for_size.default": sym_constrain_range_for_size,
    "aten._functional_assert_scalar.default": _functional_assertion(_assert_scalar),
    "aten._functional_assert_async.msg": _functional_assertion(_assert_async),
    "aten._functional_sym_constrain_range.default": _functional_range(sym_constrain_range),
    "aten._functional_sym_constrain_range_for_size.default": _functional_range(sym_constrain_range_for_size),
    "aten._make_dep_token.default": _make_dep_token,
}
