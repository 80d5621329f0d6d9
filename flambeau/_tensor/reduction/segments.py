"""Reductions of segments, hashes, and histograms of several dimensions: arguments and checks."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from ...backends.numpy.segments import _histogramdd as histogramdd_kernel
from ...engine.tensor_interface import layer
from ...modes import special
from ...ops.declare import REGISTRY
from ...shapes import wrap_dim
from ..dispatch.apply import apply
from ..dispatch.out_tensors import write_out
from ..return_types import result_class
from ..tensor import Tensor
from ..tracer_notifications import notify_read
from .histogram_checks import check_histogram

__all__ = ["hash_tensor", "histogramdd", "segment_reduce"]

_REDUCTIONS = {"sum": "sum", "mean": "mean", "max": "max", "min": "min", "amax": "max", "amin": "min", "prod": "prod"}


def segment_reduce(data: Tensor, reduce: str, *, lengths: Tensor | None = None, indices: Tensor | None = None,
                   offsets: Tensor | None = None, axis: int = 0, unsafe: bool = False, initial: Any = None,
                   out: Tensor | None = None) -> Tensor:
    """The reduction of each of the segments into which a dimension is cut.

    Args:
        data: floating point.
        reduce: "sum", "mean", "max", "min" or "prod".
        lengths: (..., s), the lengths of the segments, with the dimensions of `data` before `axis`.
        offsets: (..., s + 1), in place of `lengths`: the starts of the segments and the end of the last one.
        axis: the dimension that is cut.
        unsafe: whether the lengths are not checked.
        initial: the initial value of each reduction, and the result of an empty segment.

    Raises:
        RuntimeError: an argument does not fit the others.

    >>> import flambeau as torch
    >>> torch.segment_reduce(torch.tensor([1., 2., 3.]), "sum", lengths=torch.tensor([2, 1]))
    tensor([3., 3.])
    """
    axis = wrap_dim(axis, data._array.ndim)
    if reduce not in _REDUCTIONS:
        raise RuntimeError(f"reduce argument must be either sum, prod, mean, amax or amin, got {reduce}")
    if indices is not None:
        raise RuntimeError("segment_reduce(): indices based reduction is not supported yet.")
    if offsets is not None:
        lengths = layer.functions.diff(offsets, dim=-1)
    elif lengths is None:
        raise RuntimeError("segment_reduce(): Either lengths or offsets must be defined.")
    if lengths.dtype.is_floating_point:
        kernel = "_segment_reduce_offsets_cpu_kernel1" if offsets is not None else "_segment_reduce_lengths_cpu_kernel1"
        raise NotImplementedError(f"\"{kernel}\" not implemented for '{lengths.dtype.scalar_name}'")
    if axis != lengths._array.ndim - 1:
        raise RuntimeError(f"segment_reduce(): Expected axis to be the last dimension of lengths but got {axis}.")
    if not unsafe and offsets is None:
        if not lengths.numel():
            raise RuntimeError("min(): Expected reduction dim to be specified for input.numel() == 0. Specify the "
                               "reduction dim with the 'dim' argument.")
        if _any(lengths < 0):
            raise RuntimeError("lengths contains negative value!")
        if _any(lengths.sum(-1) != data._array.shape[axis]):
            raise RuntimeError("segment_reduce(): Expected all rows of lengths along axis to sum to "
                               "data.size(lengths.dim()-1) when !unsafe.")
    result = apply(REGISTRY["_segment_reduce"], [data, lengths], {"reduce": _REDUCTIONS[reduce], "axis": axis,
                                                                  "initial": initial})
    return result if out is None else write_out(REGISTRY["_segment_reduce"], result, out)


def _any(x: Tensor) -> bool:
    """Whether an element is true, in any example of a batched tensor."""
    if special[0]:
        from ..dispatch.batched_tensor import BatchedTensor

        if type(x) is BatchedTensor:
            x = x._value
    return bool(x.any())


def hash_tensor(input: Tensor, dim: Any = (), *, keepdim: bool = False, mode: int = 0,
                out: Tensor | None = None) -> Tensor:
    """A hash of the elements, the exclusive or of their bits as 64-bit integers or float64; uint64.

    Args:
        dim: the dimensions that are hashed, all by default.
        mode: 0, the only hash there is.

    Raises:
        RuntimeError: the mode is unknown.

    >>> import flambeau as torch
    >>> torch.hash_tensor(torch.tensor([1, 2])).item()
    3
    """
    if out is not None and out.dtype.name != "uint64":
        raise RuntimeError(f"Expected result to be of dtype uint64, but got {out.dtype.scalar_name}")
    if mode != 0:
        raise RuntimeError(f"Unknown hash_tensor mode: {mode}")
    dims = () if dim is None else (dim,) if isinstance(dim, int) else tuple(dim)
    if not input.numel() and not dims:
        raise RuntimeError("hash_tensor: Expected reduction dim to be specified for input.numel() == 0. Specify the "
                           "reduction dim with the 'dim' argument.")
    result = apply(REGISTRY["_hash_tensor"], [input], {"dim": dims or None, "keepdim": keepdim})
    return result if out is None else write_out(REGISTRY["_hash_tensor"], result, out)


def histogramdd(input: Tensor, bins: Any, range: Any = None, weight: Tensor | None = None,
                density: bool = False) -> Any:
    """The histogram of points of several dimensions, and the edges of the bins of each dimension.

    Args:
        input: (..., d): points of d dimensions.
        bins: the number of equal bins, one for all or one for each dimension; or the edges for each dimension.
        range: the lowest and highest edge of each dimension, 2d numbers; by default those of the points.
        weight: (...), the weights of the points.
        density: whether the result is divided by its sum and the volumes of the bins.

    Raises:
        RuntimeError: an argument does not fit the others.

    >>> import flambeau as torch
    >>> torch.histogramdd(torch.tensor([[0., 0.], [1., 1.]]), [2, 2]).hist
    tensor([[1., 0.],
            [0., 1.]])
    """
    shape = input._array.shape
    if not shape:
        raise IndexError("Dimension specified as -1 but tensor has no dimensions")
    if len(shape) < 2:
        raise RuntimeError("torch.histogramdd: input tensor should have at least 2 dimensions")
    count = shape[-1]
    bins = [bins] * count if isinstance(bins, int) else list(bins)
    if input.dtype.name not in ("float32", "float64") and len(bins) != count and not any(
            isinstance(b, Tensor) for b in bins):
        raise NotImplementedError(f"\"histogramdd\" not implemented for '{input.dtype.scalar_name}'")
    check_histogram(input, shape, bins, range, weight)
    if input.dtype.name not in ("float32", "float64"):
        raise NotImplementedError(f"\"histogramdd\" not implemented for '{input.dtype.scalar_name}'")
    notify_read(input, "histogramdd reads its elements")
    points = input._array.reshape(prod(shape[:-1]), count)
    given = all(isinstance(b, Tensor) for b in bins)
    edges = [b._array for b in bins] if given else _edges(points, bins, range)
    weights = None if weight is None else weight._array.reshape(-1)
    counts = histogramdd_kernel(points, weights, edges, not given)
    if density:
        counts = counts / counts.sum()
        for i, e in enumerate(edges):
            counts = counts / np.diff(e).reshape(-1, *(1,) * (count - 1 - i))
    fn = layer.functions
    hist = fn.tensor(counts.astype(points.dtype))
    return result_class("histogramdd", ("hist", "bin_edges"))((hist, tuple(fn.tensor(e) for e in edges)))


def _edges(points: np.ndarray, bins: list[int], range: Any) -> list[np.ndarray]:
    for i, n in enumerate(bins):
        if n <= 0:
            raise RuntimeError(f"torch.histogram(): bins must be > 0, but got {n} for dimension {i}")
    edges = []
    for i, n in enumerate(bins):
        if range is not None:
            low, high = float(range[2 * i]), float(range[2 * i + 1])
        elif len(points):
            low, high = float(points[:, i].min()), float(points[:, i].max())
        else:
            low, high = 0.0, 1.0
        if low > high:
            raise RuntimeError(f"torch.histogramdd: min should not exceed max, but got min {low:g} max {high:g} for "
                               f"dimension {i}")
        if low == high:
            low, high = low - 0.5, high + 0.5
        edges.append(layer.functions.linspace(low, high, n + 1).numpy().astype(points.dtype)
                     if points.dtype == np.float32 else np.linspace(low, high, n + 1))
    return edges


METHODS: dict[str, Any] = {"hash_tensor": hash_tensor}


_segment_reduce = segment_reduce  # PyTorch's private name, which packages call
