"""The kernel of each operator on NumPy arrays, and the memory layout of its results."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided

from ...backends.compiled import new_copy
from ...backends.compiled.declared_kernels import declarations_with_kernels
from ...backends.numpy import ArrayNamespace, is_primitive, primitive
from ...engine.tensor_interface import layer
from ...ir.decompositions.composites import declarations_with_programs, primitives_with_programs
from ...kernels.memory_format import (
    in_elementwise_layout,
    is_channels_last,
    layouts_seen,
    to_channels_last,
    with_preserved_strides,
)
from ...ops.declare import ELEMENTWISE, REGISTRY, Op
from ...ops.neural.upsampling_modes import UPSAMPLING

ndarray = np.ndarray
arrays = layer.arrays = ArrayNamespace(primitives_with_programs(primitive), REGISTRY)
arrays.__dict__.update(declarations_with_programs(arrays))
arrays.__dict__.update(declarations_with_kernels(arrays))


def kernel_of(op: Op) -> Any:
    """The function that computes an operator on arrays: the namespace's primitive of its name, or its forward."""
    kernel = op.kernel
    if kernel is None:
        name = op.name
        own = next((own for key, own in _PRIMITIVES_OF_OVERLOADS.items() if REGISTRY.declared(key) is op), None)
        if own is not None:
            op.kernel = getattr(arrays, own)
            return op.kernel
        if REGISTRY.get(name) is op or (
                op.forward.__name__ == name and (name in arrays.__dict__ or is_primitive(name))):
            kernel = getattr(arrays, name)
        else:
            kernel = partial(op.forward, arrays) if op.takes_xp else op.forward
        if name in IN_FORMAT_OF_INPUT:
            kernel = _in_format_of_input(kernel)
        elif name == "cat":
            kernel = _in_format_of_pieces(kernel)
        elif name == "constant_pad_nd":
            kernel = _padded(kernel)
        elif name == "_to_copy":
            kernel = _in_strides_of_input(kernel)
        elif name == "index":
            kernel = _indexed(kernel)
        elif name in _LOSSES:
            kernel = _in_layout_of(kernel, _LOSSES[name])
        elif name in _ROW_MAJOR_KERNELS or op is _scalar_pow:
            kernel = _in_row_major(kernel)
        elif name == "angle":
            kernel = _in_row_major_if_complex(kernel)
        op.kernel = kernel
    return kernel


#: keys of overloads whose kernel is a primitive -> its name
_PRIMITIVES_OF_OVERLOADS = {
    **{key: key for key in (
        "_sort", "_sort_stable", "_median_all", "_nanmedian_all", "_median_dim", "_nanmedian_dim", "_unique_all",
        "_unique_dim", "_unique_consecutive", "_searchsorted", "_isin", "_histogram", "_max_all", "_max_dim",
        "_min_all", "_min_dim")},
    "_sum_all": "sum", "_mean_all": "mean", "_prod_all": "prod"}

#: operators whose results are row-major in PyTorch, whatever the strides of their inputs
ROW_MAJOR = frozenset((
    "sum", "nansum", "mean", "prod", "amax", "amin", "max", "min", "var", "std", "var_mean", "std_mean",
    "norm", "linalg_vector_norm", "logsumexp", "softmax", "log_softmax", "cumsum", "cumprod", "cummax", "cummin",
    "logcumsumexp", "stack", "roll", "masked_fill", "repeat", "tril", "triu",
    "argmax", "argmin", "renorm", "gather", "bmm", "aminmax", "_cdist_forward",
))


#: operators that have paths of their own, or are elementwise, of which the same is true
_ROW_MAJOR_KERNELS = frozenset(("_rms_norm", "all", "any", "count_nonzero", "logsigmoid", "mvlgamma", "rrelu"))

#: operators whose results are row-major, in either way
ALL_ROW_MAJOR = ROW_MAJOR | _ROW_MAJOR_KERNELS

_scalar_pow = REGISTRY["_scalar_pow"]


def follows_inputs(op: Op) -> bool:
    """Whether an operator's result has the strides that PyTorch's elementwise iterator derives from its operands."""
    return op.kind == ELEMENTWISE and op.name not in ALL_ROW_MAJOR and op.name != "angle" and op is not _scalar_pow


def row_major(result: Any) -> Any:
    """A kernel's result or results, copied to row-major order where they are not."""
    if result.__class__ is ndarray:
        if result.ndim > 1:
            if not result.flags.c_contiguous:
                return new_copy(result)
            if 1 in result.shape and result.size:  # NumPy leaves the strides of size-1 dimensions arbitrary
                return result.reshape(-1).reshape(result.shape)
        return result
    return [row_major(a) for a in result] if result.__class__ in (tuple, list) else result


# ----- memory formats of results ---------------------------------------------------------


#: operators whose results are channels-last if their first input is, row-major otherwise
IN_FORMAT_OF_INPUT = frozenset((
    "reflection_pad2d", "reflection_pad3d", "replication_pad2d", "replication_pad3d", "_group_norm",
    "_batch_norm", "_max_unpool2d", "pixel_shuffle", "pixel_unshuffle", "channel_shuffle", *UPSAMPLING.values(),
))


def _in_format_of_input(kernel: Any) -> Any:
    def run(x: Any, *rest: Any, **params: Any) -> Any:
        result = kernel(x, *rest, **params)
        if x.ndim in (4, 5) and result.ndim == x.ndim and is_channels_last(x.shape, x.strides):
            return to_channels_last(result)
        return row_major(result)

    return run


def _in_row_major(kernel: Any) -> Any:
    return lambda *inputs, **params: row_major(kernel(*inputs, **params))


def _in_row_major_if_complex(kernel: Any) -> Any:
    in_layout = _in_layout_of(kernel, slice(1))
    return lambda x: row_major(kernel(x)) if x.dtype.kind == "c" else in_layout(x)


def _in_strides_of_input(kernel: Any) -> Any:
    def run(x: Any, *, memory_format: Any = None, **params: Any) -> Any:
        result = kernel(x, memory_format=memory_format, **params)
        return with_preserved_strides(result, x) if memory_format is None and x.__class__ is ndarray else result

    return run


def _padded(kernel: Any) -> Any:
    def run(x: Any, *, pad: tuple[int, ...], value: Any = 0) -> Any:
        result = kernel(x, pad=pad, value=value)  # row-major where it is larger in a dimension
        if x.ndim in (4, 5) and max(pad, default=0) > 0 and is_channels_last(x.shape, x.strides):
            return to_channels_last(result)
        return result

    return run


#: losses, and the inputs that give their elements strides as those of an elementwise operator do
_LOSSES = {
    "mse_loss": slice(2), "smooth_l1_loss": slice(2), "huber_loss": slice(2), "binary_cross_entropy": slice(1),
    "soft_margin_loss": slice(1), "binary_cross_entropy_with_logits": slice(1, 2)}


def _in_layout_of(kernel: Any, which: slice) -> Any:
    def run(*inputs: Any, **params: Any) -> Any:
        result = kernel(*inputs, **params)
        if layouts_seen[0] and result.__class__ is ndarray and result.ndim > 1:
            return in_elementwise_layout(result, inputs[which])
        return result

    return run


def _indexed(kernel: Any) -> Any:
    def run(x: Any, *indices: Any) -> Any:
        result = kernel(x, *indices)
        if not layouts_seen[0] or result.ndim < 2 or not result.size:
            return row_major(result)
        given = indices[0] if len(indices) == 1 and indices[0].__class__ is list else indices
        if x.flags.c_contiguous and 1 not in x.shape and all(
                i is None or (i.flags.c_contiguous and 1 not in i.shape) for i in given):
            return row_major(result)
        return in_elementwise_layout(result, _index_operands(x, given, result.shape))

    return run


def _index_operands(x: ndarray, indices: Sequence[Any], shape: tuple[int, ...]) -> list[ndarray]:
    """The operands of indexing as an elementwise operator: the array and the index arrays, expanded to the result.

    Dimensions that are not adjacent but indexed come first in the result.
    """
    at = [dim for dim, index in enumerate(indices) if index is not None]
    known = [indices[dim] for dim in at]
    if any(index.shape != known[0].shape for index in known):
        known = [*np.broadcast_arrays(*known)]
    first = at[0] if at[-1] - at[0] == len(at) - 1 else 0
    rest = [stride for dim, stride in enumerate(x.strides) if dim not in at]
    ndim = known[0].ndim
    operands = [as_strided(x, shape, (*rest[:first], *(0,) * ndim, *rest[first:]))]
    for index in known:
        steps = index.strides
        outer, inner = (steps[0] * index.shape[0], steps[-1]) if ndim else (1, 1)
        before = [outer if n == 1 else 0 for n in shape[:first]]
        after = [inner if n == 1 else 0 for n in shape[first + ndim:]]
        operands.append(as_strided(index, shape, (*before, *steps, *after)))
    return operands


def _in_format_of_pieces(kernel: Any) -> Any:
    def run(*pieces: Any, **params: Any) -> Any:
        result = kernel(*pieces, **params)
        arrays = pieces[0] if pieces[0].__class__ is list else pieces
        return joined(result, arrays)

    return run


def joined(result: ndarray, arrays: Sequence[ndarray]) -> ndarray:
    """A concatenation in PyTorch's layout: channels-last if all pieces are, row-major otherwise."""
    ndim = result.ndim
    if (ndim == 4 or ndim == 5) and result.size:
        for a in arrays:
            if a.ndim == ndim and not is_channels_last(a.shape, a.strides):
                break
        else:
            return to_channels_last(result)
    return row_major(result)
