"""Launches of operators for arrays of given layouts: functions of the arrays that compute a result in a call or two."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from types import NoneType
from typing import Any

import numpy as np

from ... import codegen
from ...backends.compiled import compiled_operators
from ...backends.compiled.thresholds import REDUCTIONS, SCANS, SUMS, threshold_of
from ...backends.numpy.neural import SMALL_CONVOLUTION
from ...backends.numpy.summation import BLOCK
from ...dtypes import NARROW
from ...errstate import quietly, run_in_quiet
from ...ir.decompositions.composites import COMPOSITES
from ...ops.declare import ELEMENTWISE, REGISTRY, Op
from ...ops.neural.convolution import geometry_of
from ...runtime.filling import Filling, NewArray, with_filling
from ...shapes import wrap_dim
from ..dispatch.array_kernels import arrays, kernel_of
from .copy_launches import picking_launch
from .fourier_launches import MAKERS as FOURIER_MAKERS
from .index_launches import INDEX_MAKERS
from .linalg_launches import MAKERS as LINALG_MAKERS
from .product_launches import addmm, product_with_vector
from .reduction_launches import by_kernel, count_nonzero, extremum_of_all, few_along, trace, vector_norm
from .selection_launches import SELECTIONS, bincount, isin, median_of_all, searchsorted
from .without_promotion import conversion_of

ndarray = np.ndarray
asarray, concatenate, empty, zeros = np.asarray, np.concatenate, np.empty, np.zeros
F64 = np.dtype(np.float64)
Launch = Callable[..., Any] | None
#: any number of elements, and none
_ANY, _NONE = [1 << 62], [0]

#: operators whose results are elements of their input, and zeros; the most elements that are picked by index
REARRANGING = dict.fromkeys(("roll", "flip", "rot90", "repeat", "tril", "triu", "diag_embed"), 256)
REARRANGING |= dict.fromkeys((
    "pixel_shuffle", "pixel_unshuffle", "channel_shuffle", "reflection_pad1d", "reflection_pad2d", "reflection_pad3d",
    "replication_pad1d", "replication_pad2d", "replication_pad3d", "im2col", "_upsample_nearest1d",
    "_upsample_nearest2d", "_upsample_nearest3d"), 8192)
#: those that copy whole rows with their borders
BORDERS = frozenset(f"{name}_pad{rank}d" for name in ("reflection", "replication") for rank in (1, 2, 3))


def launch_of(op: Op, inputs: Sequence[Any], params: dict[str, Any]) -> Launch:
    """The function of the arrays among an operator's inputs, in order, that computes its result; None: there is none.

    Args:
        inputs: arrays, numbers, None.
        params: all parameters.
    """
    launch: Launch = None
    if op.kind == ELEMENTWISE:
        if op.name == "floor_divide":
            launch = _floor_divide(*inputs)
        return elementwise_launch(op, inputs, params) if launch is None else launch
    if op.outputs == ("values", "indices"):
        make = SELECTIONS.get("sort_stable" if op.params[0] == "stable" else op.name)
    else:
        make = _MAKERS.get(op.name)
    if make is not None:
        return make(*inputs, **params)
    if op.name in REARRANGING:
        launch = _picking(op, inputs[0], params)
        if launch is None and op.name in BORDERS:
            launch = _border_pad(op, *inputs, **params)
        if launch is not None:
            return launch
    make = _composite_maker(op)
    if make is None:
        return None
    if op.name in COMPOSITES:  # by position
        launch = make((*inputs, *params.values()), {})
    else:
        launch = make(inputs, params)
    return launch


def _composite_maker(op: Op) -> Callable[..., Launch] | None:
    """What makes launches of the program of an operator; None where it has none."""
    make: Callable[..., Launch] | None = getattr(getattr(arrays, COMPOSITES.get(op.name, op.name), None), "launch",
                                                 None)
    return make


def most_elements(op: Op, most: int) -> int:
    """The most elements of the input of any launch of an operator, `most` where only the layout decides."""
    if op.name in ("cumsum", "cumprod"):
        return min(most, SCANS[0])
    if op.kind == ELEMENTWISE or op.name in _MAKERS or _composite_maker(op) is not None or op.name in BORDERS:
        return most
    return 0 if op.name not in REARRANGING else 8192 if codegen.available() else REARRANGING[op.name]


def filling_launch(op: Op, inputs: Sequence[Any], params: dict[str, Any]) -> Launch:
    """The function of arrays that gives (result, what the list among an operator's parameters gets...); None: none."""
    make = _FILLING.get(op.name)
    if make is not None:
        launch: Launch = make(*inputs, **params)
        return launch
    make = _composite_maker(op) if op.name in COMPOSITES else None
    return None if make is None else make((*inputs, *params.values()), {}, True)


def elementwise_launch(op: Op, inputs: Sequence[Any], params: dict[str, Any]) -> Launch:
    """The launch of an elementwise operator's kernel, numbers among its inputs as 0-d arrays."""
    kernels = compiled_operators(REGISTRY)
    if kernels is None:
        return None
    constant = [x.__class__ is not ndarray for x in inputs]
    compute, operands = None, list(inputs)
    if len(operands) == 1 and op.opmath and operands[0].dtype in NARROW:
        return None  # it is widened (`narrow_launches`)
    if len(operands) > 1:
        conversion = conversion_of(op, [
            x.__class__ if fixed else x.dtype for x, fixed in zip(inputs, constant, strict=True)])
        if conversion is None or conversion.narrow is not None or (conversion.numbers is None and any(constant)):
            return None
        numbers: Any = conversion.numbers
        compute = conversion.compute
        operands = [numbers[x] if fixed else x for x, fixed in zip(inputs, constant, strict=True)]
    if max(x.size for x in operands) <= threshold_of(op.name)[0]:
        kernels = kernels.rounded
    return kernels.launch(op, operands, params, compute, constant)


def _picking(op: Op, a: ndarray, params: dict[str, Any]) -> Launch:
    """The launch that picks the elements of an operator's result."""
    most = REARRANGING[op.name]
    if a.size > (8192 if codegen.available() else most) or a.dtype.kind != "f":
        return None
    found = kernel_of(op)(np.arange(1, a.size + 1, dtype=a.dtype).reshape(a.shape), **params)
    if found.__class__ is not ndarray:
        return None
    index = found.astype(np.int64) - 1
    launch = picking_launch(a, index)
    if launch is not None or a.size > most or found.size > most:
        return launch
    if index.size and index.min() < 0:  # zeros
        index[index < 0] = a.size
        zero = np.zeros(1, a.dtype)
        return lambda x: concatenate((x.reshape(-1), zero)).take(index)
    return lambda x: x.take(index)


def _border_pad(op: Op, a: ndarray, padding: Any) -> Launch:
    if not codegen.available():
        return None
    from ...backends.compiled.families.padding import border_pad_launch

    return border_pad_launch(a, tuple(padding), "reflect" if op.name.startswith("reflection") else "edge")


def _to_copy(a: ndarray, dtype: Any, memory_format: Any = None) -> Launch:
    from ...backends.compiled.families.casting import cast_launch

    return None if memory_format is not None else cast_launch(a, dtype.numpy)


def _trace(a: ndarray) -> Launch:
    found = trace(a)
    if found is not None:
        return found
    diagonal = picking_launch(a, np.arange(a.size).reshape(a.shape).diagonal())
    if diagonal is None:
        return None
    total = _launch_of_reduction(np.add, diagonal(a), None, False)

    def launch(x: ndarray) -> Any:
        return total(diagonal(x))

    launch.steps = ((diagonal, (0,)), (total, (1,))), 1  # type: ignore[attr-defined]
    return launch


def _masked_fill(a: ndarray, mask: ndarray, value: Any) -> Launch:
    tensor = isinstance(value, ndarray)
    if tensor and value.dtype != a.dtype:
        return None  # `where` would promote, the result has the dtype of `a`
    where = elementwise_launch(REGISTRY["where"], [mask, value, a], {})
    if where is None:
        return None
    return (lambda x, chosen, fill: where(chosen, fill, x)) if tensor else lambda x, chosen: where(chosen, x)


def _scan(ufunc: Any) -> Callable[..., Launch]:
    accumulate = ufunc.accumulate

    def make(a: ndarray, dim: int, dtype: Any = None) -> Launch:
        if dtype is not None or a.dtype.kind != "f" or not a.ndim or a.size > SCANS[0]:
            return None
        if codegen.available() and a.flags.c_contiguous and a.dtype.char in "fd":
            from ...codegen.scan import few_elements

            shape, kind, axis = a.shape, a.dtype, wrap_dim(dim, a.ndim)
            scan = few_elements.function(ufunc is np.multiply, kind, prod(shape[:axis]), shape[axis],
                                         prod(shape[axis + 1:]))
            return with_filling(lambda x: scan(empty(shape, kind), x), Filling(scan, (NewArray(shape, kind), 0)))
        return lambda x: accumulate(x, dim, F64).astype(x.dtype)

    return make


def _reduction(ufunc: Any, kinds: str, most: list[int], most_of_all: list[int]) -> Callable[..., Launch]:
    """What makes launches of a reduction that is one call of a ufunc for at most so many elements."""
    def make(a: ndarray, dim: Any = None, keepdim: Any = False, dtype: Any = None) -> Launch:
        if a.dtype.kind not in kinds or not a.ndim or dtype is not None or keepdim.__class__ is not bool or (
                not 0 < a.size <= (most_of_all if dim is None else most)[0]) or (
                dim is not None and (dim.__class__ is not int or not -a.ndim <= dim < a.ndim)):
            return None
        return _launch_of_reduction(ufunc, a, dim, keepdim)

    return make


def _sum(a: ndarray, dim: Any = None, keepdim: Any = False, dtype: Any = None) -> Launch:
    if dtype is None and a.size > SUMS[0]:
        launch = by_kernel("sum", "", a, dim, keepdim, SUMS[0])
        if launch is not None:
            return launch
    elif dtype is None:
        launch = few_along(a, "sum", dim, keepdim)
        if launch is not None:
            return launch
    small: Launch = _small_sum(a, dim, keepdim, dtype)
    return small


def _extremum(ufunc: Any, most: list[int]) -> Callable[..., Launch]:
    """`_reduction` of an extremum; that of all elements is one call of generated code."""
    make_reduction = _reduction(ufunc, "f", most, REDUCTIONS)

    def make(a: ndarray, dim: Any = None, keepdim: Any = False) -> Launch:
        dims = None if dim == () or dim == [] else dim
        launch = extremum_of_all(a, ufunc is np.maximum) if keepdim is False and dims is None else None
        if launch is None and (dims is None or most is not _NONE):
            launch = by_kernel("max" if ufunc is np.maximum else "min", "", a, dims, keepdim, REDUCTIONS[0]) or (
                few_along(a, "largest" if ufunc is np.maximum else "smallest", dims, keepdim))
        return make_reduction(a, dim, keepdim) if launch is None else launch

    return make


def _floor_divide(a: Any, b: Any) -> Launch:
    """The quotients of integers and a number."""
    if a.__class__ is not ndarray or a.dtype.char != "l" or b.__class__ is not int or not 0 < abs(b) < 1 << 62 or (
            not a.size or not a.flags.c_contiguous):
        return None
    divide, number, shape, dtype = np.floor_divide, asarray(b, np.int64), a.shape, a.dtype
    return with_filling(lambda x: divide(x, number, empty(shape, dtype)),
                        Filling(quietly, ([divide], 0, [number], NewArray(shape, dtype))))


def _launch_of_reduction(ufunc: Any, a: ndarray, dim: int | tuple[int, ...] | None,
                         keepdim: bool) -> Callable[..., Any]:
    reduce = ufunc.reduce
    found = asarray(run_in_quiet(reduce, (a, dim, None, None, keepdim)))
    shape, dtype = found.shape, found.dtype
    return with_filling(
        lambda x: run_in_quiet(reduce, (x, dim, None, empty(shape, dtype), keepdim)),
        Filling(quietly, ([reduce], 0, [dim], [None], NewArray(shape, dtype), [keepdim])))


def _mean(a: ndarray, dim: Any = None, keepdim: Any = False, dtype: Any = None) -> Launch:
    if dtype is not None or a.dtype.char not in "fd" or not a.ndim or not a.size or (
            keepdim.__class__ is not bool or dim.__class__ not in (NoneType, int, tuple)):
        return None
    dims: Any = dim if dim.__class__ is tuple else () if dim is None else (dim,)
    axes = tuple([wrap_dim(each, a.ndim) for each in dims]) or None
    total: Any = by_kernel("sum", "", a, axes, keepdim, SUMS[0]) if a.size > SUMS[0] else (
        few_along(a, "sum", axes, keepdim))
    if total is None and a.size <= BLOCK:
        total = _launch_of_reduction(np.add, a, axes, keepdim)
    if total is None:
        return None
    shape = total(a).shape
    count = asarray(a.dtype.type(a.size if axes is None else prod([a.shape[each] for each in axes])))
    divide, kind = np.true_divide, a.dtype
    quotient = with_filling(lambda x: run_in_quiet(divide, (x, count, empty(shape, kind))),
                            Filling(quietly, ([divide], 0, [count], NewArray(shape, kind))))

    def launch(x: ndarray) -> Any:
        return quotient(total(x))

    launch.steps = ((total, (0,)), (quotient, (1,))), 1  # type: ignore[attr-defined]
    return launch


def _constant_pad(a: ndarray, pad: tuple[int, ...], value: Any) -> Launch:
    if min(pad, default=-1) < 0 or a.dtype.kind != "f" or value.__class__ not in (int, float):
        return None
    kept = len(a.shape) - len(pad) // 2
    widths = [(0, 0)] * kept + [(pad[i], pad[i + 1]) for i in range(len(pad) - 2, -1, -2)]
    shape = tuple(n + before + after for n, (before, after) in zip(a.shape, widths, strict=True))
    inside = tuple(slice(before, before + n) for n, (before, _) in zip(a.shape, widths, strict=True))
    dtype = a.dtype

    def launch(x: ndarray) -> ndarray:
        result = zeros(shape, dtype)
        if value:
            result.fill(value)
        result[inside] = x
        return result

    return launch


def _max_pool(a: ndarray, kernel_size: Any, stride: Any, padding: Any, dilation: Any, ceil_mode: bool,
              saved: Any = None) -> Launch:
    from ...backends.compiled.families.pooling import max_pool_launch
    from ...kernels.pooling import pool_output_size

    spatial = a.shape[a.ndim - len(kernel_size):]
    positions = pool_output_size(spatial, kernel_size, stride, padding, dilation, ceil_mode)
    return max_pool_launch(a, positions, kernel_size, stride, padding, dilation)


def _max_pool_filling(a: ndarray, kernel_size: Any, stride: Any, padding: Any, dilation: Any, ceil_mode: bool,
                      saved: Any) -> Launch:
    from ...backends.compiled.families.pooling import max_pool_launch
    from ...kernels.pooling import pool_output_size

    spatial = a.shape[a.ndim - len(kernel_size):]
    positions = pool_output_size(spatial, kernel_size, stride, padding, dilation, ceil_mode)
    return max_pool_launch(a, positions, kernel_size, stride, padding, dilation, with_indices=True)


def _avg_pool(a: ndarray, kernel_size: Any, stride: Any, padding: Any, ceil_mode: bool, count_include_pad: bool,
              divisor_override: int | None) -> Launch:
    from ...backends.compiled.families.pooling import avg_pool_launch
    from ...kernels.pooling import pool_output_size

    spatial = a.shape[a.ndim - len(kernel_size):]
    positions = pool_output_size(spatial, kernel_size, stride, padding, (1,) * len(kernel_size), ceil_mode)
    return avg_pool_launch(a, positions, kernel_size, stride, padding, bool(count_include_pad), divisor_override or 0)


def _grid_sample(input: ndarray, grid: ndarray, mode: int, padding: int, align_corners: bool, saved: Any) -> Launch:
    from ...backends.compiled.families.grid_sampling import sample_launch

    launch: Launch = sample_launch(input, grid, (mode, padding, align_corners))
    return launch


def _resample(a: ndarray, steps: Any, **attributes: Any) -> Launch:
    """Each dimension after the other."""
    from ...backends.compiled.families.resampling import resample_launch

    launches, shape = [], a.shape
    for dim, _, positions, weights in steps:
        launch = None if weights is None else resample_launch(shape, a.dtype, dim, positions, weights)
        if launch is None:
            return None
        launches.append(launch)
        axis = len(shape) + dim
        shape = (*shape[:axis], len(positions[0]), *shape[axis + 1:])

    def run(x: ndarray) -> ndarray:
        for each in launches:
            x = each(x)
        return x

    return run


def _convolution(x: ndarray, w: ndarray, bias: ndarray | None, transposed: bool, **params: Any) -> Launch:
    geometry = geometry_of(x.shape, w.shape, transposed=transposed, **params)
    convolve = arrays.convolve
    launch = (_transposed_by_shares if transposed else _convolution_by_columns)(x, w, bias, geometry)
    if launch is not None:
        return launch
    if bias is None:
        return lambda x, w: convolve(x, w, None, geometry, transposed)
    return lambda x, w, bias: convolve(x, w, bias, geometry, transposed)


def _convolution_by_columns(x: ndarray, w: ndarray, bias: ndarray | None, geometry: Any) -> Launch:
    """The launch of a small convolution whose product is NumPy's; None for others."""
    from ...backends.compiled.families import convolution as compiled
    from ...kernels import small_convolution

    if not (x.dtype is w.dtype and x.dtype.kind == "f" and x.itemsize > 2) or (
            x.size + w.size >= SMALL_CONVOLUTION) or compiled.forward(x, w, bias, geometry) is not None:
        return None
    columns = small_convolution.columns_of(x.shape, w.shape, geometry)
    gather: Any = None if columns is None else picking_launch(x, columns.table)
    if columns is None or gather is None:
        return None
    shape, dtype, matmul = (x.shape[0], w.shape[0], *geometry.positions), x.dtype, np.matmul
    matrix, product, exchanged = columns.matrix, columns.product, columns.exchanged
    def in_order(x: ndarray, w: ndarray) -> ndarray:
        result = empty(shape, dtype)
        matmul(w.reshape(matrix), gather(x), out=result.reshape(product))
        return result

    multiply = in_order
    if exchanged is not None:
        places = np.arange(w.shape[0] * x.shape[0] * prod(geometry.positions)).reshape(exchanged).swapaxes(0, 1)
        exchange: Any = picking_launch(empty(product, dtype), places)
        if exchange is None:
            return None

        def exchanging(x: ndarray, w: ndarray) -> ndarray:
            result: ndarray = exchange(matmul(w.reshape(matrix), gather(x)))
            return result

        multiply = exchanging
    return _with_bias(multiply, bias, geometry)


def _with_bias(convolve: Callable[..., Any], bias: ndarray | None, geometry: Any) -> Callable[..., Any]:
    """The launch of a convolution, with the bias that it is given."""
    if bias is None:
        return convolve
    bias_shape = (1, -1, *(1 for _ in geometry.spatial))

    def with_bias(x: ndarray, w: ndarray, bias: ndarray) -> ndarray:
        result: ndarray = convolve(x, w)
        result += bias.reshape(bias_shape)
        return result

    return with_bias


def _transposed_by_shares(x: ndarray, w: ndarray, bias: ndarray | None, geometry: Any) -> Launch:
    """The launch of a small transposed convolution whose product is NumPy's; None for others."""
    from ...backends.compiled.families import convolution as compiled
    from ...kernels import small_convolution

    if not (codegen.available() and x.dtype is w.dtype and x.dtype.char in "fd") or (
            x.size + w.size >= SMALL_CONVOLUTION) or compiled.input_gradient(x, w, bias, geometry) is not None:
        return None
    shares = small_convolution.shares_of(x.shape, w.shape, geometry)
    if shares is None:
        return None
    from ...codegen.indexing import added_elements

    shape, dtype, matmul = (x.shape[0], w.shape[1] * geometry.groups, *geometry.spatial), x.dtype, np.matmul
    matrix, columns, targets = shares
    add = added_elements.function(dtype, prod(shape), targets)

    def convolve(x: ndarray, w: ndarray, _targets: Any = targets) -> ndarray:
        result = empty(shape, dtype)
        add(result, matmul(w.reshape(matrix).swapaxes(1, 2), x.swapaxes(0, 1).reshape(columns)))
        return result

    return _with_bias(convolve, bias, geometry)


_small_sum = _reduction(np.add, "bif", [BLOCK], [BLOCK])
_MAKERS: dict[str, Callable[..., Launch]] = {
    **INDEX_MAKERS, **LINALG_MAKERS, **FOURIER_MAKERS, "convolution": _convolution, "trace": _trace,
    "any": _reduction(np.logical_or, "bfi", _ANY, _ANY), "all": _reduction(np.logical_and, "bfi", _ANY, _ANY),
    "sum": _sum, "prod": _reduction(np.multiply, "f", REDUCTIONS, _NONE), "_to_copy": _to_copy,
    "amax": _extremum(np.maximum, REDUCTIONS), "amin": _extremum(np.minimum, REDUCTIONS),
    "max": _extremum(np.maximum, _NONE), "min": _extremum(np.minimum, _NONE),
    "linalg_vector_norm": vector_norm, "count_nonzero": count_nonzero, "addmm": addmm,
    "mean": _mean, "constant_pad_nd": _constant_pad, "masked_fill": _masked_fill, "cumsum": _scan(np.add),
    "cumprod": _scan(np.multiply), "_max_pool2d": _max_pool, "_max_pool3d": _max_pool, "_avg_pool2d": _avg_pool,
    "_avg_pool3d": _avg_pool, "topk": SELECTIONS["topk"], "searchsorted": searchsorted,
    "bincount": bincount, "dot": product_with_vector, "mv": product_with_vector,
    "_grid_sampler_2d": _grid_sample, "_grid_sampler_3d": _grid_sample,
    **dict.fromkeys(("_upsample_linear1d", "_upsample_bilinear2d", "_upsample_trilinear3d"), _resample),
    "cummax": SELECTIONS["cummax"], "cummin": SELECTIONS["cummin"], "isin": isin, "median": median_of_all,
}

_FILLING: dict[str, Callable[..., Launch]] = {"_max_pool2d": _max_pool_filling, "_max_pool3d": _max_pool_filling}

__all__ = ["REARRANGING", "elementwise_launch", "filling_launch", "launch_of", "most_elements"]
