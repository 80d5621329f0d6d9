"""Tensors given as `out=`: checked, resized, and written to."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from math import prod
from typing import Any

import numpy as np

from ... import dtypes
from ...backends.bit_views import BitView, memory_of, with_bits_of
from ...backends.compiled import copy
from ...backends.elementless_array import (
    ElementlessArray,
    MetaArray,
    elementless_used,
    meta_array,
    plain_dtype,
    reserved_like,
    without_elements,
)
from ...backends.numpy.memory import in_memory_of
from ...kernels.memory_format import layouts_seen, with_preserved_strides
from ...modes import active_tracers, device_memory, special
from ...ops.declare import ELEMENTWISE, Op
from ...shapes import broadcast_shapes
from ..argument_errors.out_arguments import NO_DERIVATIVE, check_records_nothing
from ..argument_errors.type_names import type_name
from ..overriding.dispatch import is_on_accelerator
from ..tensor import Tensor
from ..tracer_notifications import notify_overwritten
from .handlers import handlers
from .inplace import record_underived
from .promotion import promoted_type
from .write_checks import check_overlap, prepare_write, warn_of_real_parts, warn_of_resize

#: scalar types whose tensors have a name of their own, `torch.FloatTensor`
_LEGACY_TYPES = frozenset(("Double", "Float", "Half", "Byte", "Char", "Short", "Int", "Long"))
#: operators that PyTorch composes of others, and whose result is then copied to `out`: a write that is recorded
_COPIED = dict.fromkeys(("quantile", "nanquantile"), "quantile() out tensor must be same dtype as the input tensor") | {
    "special_ndtr": ""}
#: elementwise operators that compute into an `out=` of another dtype without a tensor of the result's
_RESIZED_ONCE = frozenset(("angle", "bitwise_not", "floor_divide", "isneginf", "isposinf", "logical_and",
                           "logical_not", "logical_or", "logical_xor", "signbit"))
#: operators that write to a list: their overloads with `out=`
_OUT_LISTS = {"split_copy": "split_copy_Tensor_out()", "split_with_sizes_copy": "split_with_sizes_copy_out",
              "unbind_copy": "unbind_copy_int_out"}
COMPARISONS = frozenset(("eq", "ge", "gt", "le", "lt", "ne"))
#: operators that resize `out=` before they look at its dtype
_RESIZED_FIRST = frozenset((
    "_as_strided_copy", "_squeeze_all_copy", "_squeeze_dim_copy", "_squeeze_dims_copy", "alias_copy", "diag_embed",
    "diagonal_copy", "dot", "expand_copy", "mean", "nansum", "permute_copy", "prod", "select_copy", "slice_copy",
    "slice_scatter", "split_with_sizes_copy", "stack", "std", "sum", "t_copy", "transpose_copy", "unbind_copy",
    "unfold_copy", "unsqueeze_copy", "var", "vdot", "view_copy"))

#: operators that look at the dtype of `out=` before its device
_DTYPES_FIRST = frozenset(("max", "min"))


def check_out(op: Op, inputs: Sequence[Any], outs: Sequence[Any]) -> None:
    """Check that a call with `out=` has nothing to record, neither a node nor tangents.

    Raises:
        RuntimeError: a tensor requires grad, and grad mode is on.
        NotImplementedError: a tensor has a tangent.
    """
    if op.name not in _COPIED:
        check_records_nothing(op.name, inputs, outs, op.differentiable)
    if special[0]:
        from .forward_mode import tangent_levels

        if tangent_levels((*inputs, *outs)):
            raise NotImplementedError(f"Trying to use forward AD with {op.name}_out that does not "
                                      "support it because it is an out= function")


def check_out_overlap(op: Op, inputs: Sequence[Any], outs: Sequence[Any]) -> None:
    """Check the `out=` tensors for internal overlap and for partial overlap with inputs.

    Raises:
        RuntimeError: they overlap (PyTorch's texts).
    """
    for out in outs:
        if not isinstance(out, Tensor):
            continue
        check_overlap(out._array, *(x._array for x in inputs if isinstance(x, Tensor)), disjoint=op.disjoint_out)


def check_unsupported_out(op: Op, inputs: Sequence[Any], params: dict[str, Any], out: Any) -> None:
    """Check and warn of what PyTorch looks at before it finds that its kernel lacks a dtype.

    Raises:
        RuntimeError: the result's dtype is not, or cannot be cast to, that of `out`.
    """
    d = promoted_type(op, inputs, params)
    if not isinstance(out, Tensor):
        return
    if op.exact_out and d is not out.dtype:
        raise RuntimeError(_unequal_dtypes(op.exact_out, d, out.dtype, 0))
    if not dtypes.can_cast(d, out.dtype) and op.name not in COMPARISONS:
        raise RuntimeError(f"result type {d.scalar_name} can't be cast to the desired output type "
                           f"{out.dtype.scalar_name}")
    shape = reduce(broadcast_shapes, (x._array.shape for x in inputs if isinstance(x, Tensor)))
    if shape != out._array.shape:
        warn_of_resize(out._array.shape, shape)
        if d is not out.dtype and op.name not in _RESIZED_ONCE:
            warn_of_resize(out._array.shape, shape)
        give_shape(out, shape)


def write_out(op: Op, result: Any, out: Any, number: int = 0, computed: np.dtype | None = None) -> Any:
    """Write results into the `out=` tensors, resizing them where their shape differs.

    Args:
        number: which of the operator's results this is.
        computed: the dtype that the operator computes in, where that is not the result's.

    Raises:
        RuntimeError: a result's dtype cannot be cast to its `out`'s.
    """
    if isinstance(result, (list, tuple)):
        if not isinstance(out, (list, tuple)):
            raise TypeError(f"{op.name}(): argument 'out' must be tuple of Tensors, not {type_name(out)}")
        if len(out) != len(result):
            if op.name in _OUT_LISTS:
                check_records_nothing(op.name, result, [o for o in out if isinstance(o, Tensor)], op.differentiable)
                raise RuntimeError(f"{_OUT_LISTS[op.name]} expected an out= argument of size {len(result)}, got size "
                                   f"{len(out)}")
            raise TypeError(f"expected tuple of {len(result)} elements but got {len(out)}")
        if op.exact_out.__class__ is tuple:  # both are looked at first
            for number, (f, o) in enumerate(zip(result, out, strict=True)):
                if isinstance(o, Tensor) and o.dtype is not f.dtype:
                    _check_same_device(o, f)
                    raise RuntimeError(_unequal_dtypes(op.exact_out, f.dtype, o.dtype, number))
        return [write_out(op, f, o, i) for i, (f, o) in enumerate(zip(result, out, strict=True))]
    if isinstance(out, (list, tuple)) and len(out) == 1:
        out = out[0]
    if special[0] and isinstance(out, Tensor) and not (
            isinstance(out._array, np.ndarray) and isinstance(result._array, np.ndarray)):
        raise RuntimeError(f"Batching rule not implemented for aten::{op.name.strip('_')}.out; the fallback path "
                           "doesn't work on out= or view ops.")
    if not isinstance(out, Tensor):
        raise TypeError(f"{op.name}(): argument 'out' must be Tensor, not {type_name(out)}")
    if op.name in _RESIZED_FIRST:
        resize_out(out, result._array.shape)
    if op.exact_out and result._array.dtype != out._array.dtype:
        check_records_nothing(op.name, (result,), (out,), op.differentiable)
        if elementless_used[0] and op.name not in _DTYPES_FIRST:
            _check_same_device(out, result)
        raise RuntimeError(_unequal_dtypes(op.exact_out, result.dtype, out.dtype, number))
    is_copied = op.name in _COPIED
    if is_copied and (_COPIED[op.name] or dtypes.can_cast(result.dtype, out.dtype)):
        return copy_out(result, out, _COPIED[op.name])
    if not is_copied:
        check_records_nothing(op.name, (result,), (out,), op.differentiable)
    if not dtypes.can_cast(result.dtype, out.dtype):
        if op.castable_out:
            function, *names = op.castable_out
            raise RuntimeError(f"{function}: Expected {names[number]} to be safely castable from "
                               f"{result.dtype.scalar_name} dtype, but got {names[number]} with dtype "
                               f"{out.dtype.scalar_name}")
        what = "ldexp" if op.name == "ldexp" else f"result type {result.dtype.scalar_name}"
        raise RuntimeError(f"{what} can't be cast to the desired output type {out.dtype.scalar_name}")
    prepare_write(out)
    a, target = result._array, out._array
    if computed is not None and computed.kind == "c":
        warn_of_real_parts(out)
    if device_memory.count and (is_on_accelerator(out) or is_on_accelerator(result)):
        if target.shape != a.shape:
            warn_of_resize(target.shape, a.shape)
        handlers.write_out_on_device(op, result, out)
    elif isinstance(a, ElementlessArray) or isinstance(target, ElementlessArray):
        if target.shape != a.shape:
            warn_of_resize(target.shape, a.shape)
        write_without_elements(out, result)
    elif target.shape != a.shape:
        warn_of_resize(target.shape, a.shape)
        if op.kind == ELEMENTWISE and target.dtype != (computed or a.dtype) and op.name not in _RESIZED_ONCE:
            warn_of_resize(target.shape, a.shape)  # PyTorch computes into a tensor of the result's dtype, and copies
        if op.kind == ELEMENTWISE and a.ndim > 1 and layouts_seen[0]:
            out._array = with_preserved_strides(np.array(dtypes.cast(a, target.dtype), order="K", copy=True), a)
        else:
            out._array = np.array(dtypes.cast(a, target.dtype), order="C", copy=True)
        if not active_tracers[0]:  # which take it for a new array
            out._array = in_memory_of(target, out._array)
        if isinstance(target, BitView):
            out._array = with_bits_of(out._array, target)
            out._array[...] = a
    else:
        copy(target, dtypes.cast(a, target.dtype))
    if special[0]:
        notify_overwritten(out, a, out._array is not target)
    out._bump_version()  # raises for an inference tensor, after the write, as in PyTorch
    if op.name in NO_DERIVATIVE and (result._requires_grad or out._requires_grad):
        record_underived(op.name, result, out)
    return out


def _unequal_dtypes(text: Any, result: Any, out: Any, number: int) -> str:
    """The message for an `out=` tensor whose dtype is not the result's; `text` is the operator's `exact_out`."""
    if text is True:
        text = "Expected out tensor to have dtype {result_c}, but got {out_c} instead"
    elif text.__class__ is tuple:
        text = text[number]
    names = {name: d.scalar_name for name, d in (("result", result), ("out", out))}
    types = {f"{name}_type": f"torch.{n}Tensor" if n in _LEGACY_TYPES else f"CPU{n}Type" for name, n in names.items()}
    return str(text.format(result_c=dtypes.C_NAMES[result.name], out_c=dtypes.C_NAMES[out.name], **names, **types))


def check_out_dtypes(op: Op, input: Tensor, outs: Sequence[Any]) -> None:
    """Check that results of the input's dtype, and indices, have `out=` tensors of their dtypes."""
    for number, (out, dtype) in enumerate(zip(outs, (input.dtype, dtypes.int64), strict=False)):
        if isinstance(out, Tensor) and out.dtype is not dtype:
            raise RuntimeError(_unequal_dtypes(op.exact_out, dtype, out.dtype, number))


def write_without_elements(out: Tensor, result: Tensor) -> None:
    """Give an `out=` tensor the shape of a result, of which one at least is a meta tensor.

    Raises:
        RuntimeError: only one is (PyTorch's text).
    """
    _check_same_device(out, result)
    a, target = result._array, out._array
    if target.shape != a.shape:
        out._array = without_elements(reserved_like(a, dtype=plain_dtype(target.dtype), dense=True))


def _check_same_device(out: Tensor, result: Tensor) -> None:
    """Check that an `out=` tensor and the result both have elements, or neither has.

    Raises:
        RuntimeError: only one has (PyTorch's text).
    """
    a, target = result._array, out._array
    if a.__class__ is not target.__class__ and any(isinstance(x, ElementlessArray) for x in (a, target)):
        raise RuntimeError(f"Attempting to copy from device {result.device} to device {out.device}, but cross-device "
                           "copies are not allowed!")


def resize_out(out: Tensor, shape: tuple[int, ...]) -> None:
    """Give an `out=` tensor another shape, with PyTorch's warning."""
    if out._array.shape != shape:
        warn_of_resize(out._array.shape, shape)
        give_shape(out, shape)


def give_shape(out: Tensor, shape: tuple[int, ...]) -> None:
    """Give an `out=` tensor another shape: in its memory if that is large enough. This counts as no write."""
    target = out._array
    if target.shape != shape:
        if device_memory.count and is_on_accelerator(out):
            out.resize_(shape)
            return
        if target.__class__ is MetaArray:
            out._array = meta_array(shape, target.dtype)
            return
        kept = min(prod(shape), target.size)  # the elements stay
        memory = np.zeros(prod(shape), target.dtype)
        memory[:kept] = memory_of(target).reshape(-1)[:kept]
        resized = memory.reshape(shape)
        if not active_tracers[0]:
            resized = in_memory_of(target, resized)
        out._array = with_bits_of(resized, target) if isinstance(target, BitView) else resized


def copy_out(result: Tensor, out: Tensor, exact: str = "") -> Tensor:
    """Copy a result into `out`, resized where its shape differs, as `Tensor.copy_` does: this is recorded.

    Args:
        exact: the message for another dtype, with {result} and {out}.

    Raises:
        RuntimeError: `out` is a leaf that requires grad, or has another dtype.
    """
    if exact and out.dtype is not result.dtype:
        raise RuntimeError(exact.format(result=result.dtype.scalar_name, out=out.dtype.scalar_name))
    resize_out(out, result._array.shape)
    return out.copy_(result)


__all__ = ["COMPARISONS", "check_out", "check_out_dtypes", "check_out_overlap", "check_unsupported_out", "copy_out",
           "give_shape", "resize_out", "write_out", "write_without_elements"]
