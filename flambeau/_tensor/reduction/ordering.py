"""Sorting, order statistics, `unique`, `searchsorted` and `histogram`: overload resolution and argument checks."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from ... import dtypes
from ...modes import special
from ...ops.declare import REGISTRY
from ...ops.reduction.ordering import check_isin
from ...warning_location import warn_once
from ..argument_errors.out_arguments import check_records_nothing
from ..argument_errors.type_names import type_name
from ..dispatch.apply import apply
from ..dispatch.out_tensors import write_out
from ..dispatch.public_functions import public_function
from ..fastpath.by_arity import unary
from ..fastpath.repeated_calls import launched, repeated
from ..fastpath.unary_with_parameters import values_and_indices
from ..return_types import named_result
from ..tensor import Tensor, wrap
from .dims import one_dim
from .histogram_checks import check_histogram

__all__ = ["bucketize", "histogram", "isin", "kthvalue", "median", "nanmedian", "searchsorted", "sort", "unique",
           "unique_consecutive"]

_sort, _sort_stable = values_and_indices(REGISTRY["_sort"]), values_and_indices(REGISTRY["_sort_stable"])


def _write_outputs(op: Any, result: Any, out: Any, *inputs: Any) -> Any:
    """The results, written into `out` if that is given."""
    if out is None:
        return result
    check_records_nothing(op.name, inputs, (out,))
    return named_result(op, with_out=True)(write_out(op, result, out))


@launched
def sort(input: Any, dim: Any = -1, descending: Any = False, *, stable: Any = None, out: Any = None,
         axis: Any = None) -> Any:
    """The elements sorted along `dim`, and their indices: (values, indices).

    Args:
        stable: keep the order of equal elements.

    >>> import flambeau as torch
    >>> torch.sort(torch.tensor([3., 1., 2.])).indices
    tensor([1, 2, 0])
    """
    dim = one_dim("sort", dim if axis is None else axis)
    if descending.__class__ is not bool:
        raise TypeError("sort(): argument 'descending' must be bool")  # a guard says more
    if stable is None:
        return _write_outputs(REGISTRY["_sort"], _sort(input, dim, descending), out, input)
    return _write_outputs(REGISTRY["_sort_stable"], _sort_stable(input, stable, dim, descending), out, input)


_kthvalue = values_and_indices(REGISTRY["kthvalue"])


@launched
def kthvalue(input: Any, k: Any, dim: Any = -1, keepdim: bool = False, *, out: Any = None) -> Any:
    """The k-th smallest element along `dim`."""  # replaced by the declaration's docstring below
    if out is not None:
        for x in out:
            if np.may_share_memory(x._array, input._array):
                raise RuntimeError("unsupported operation: some elements of the input tensor and the written-to tensor "
                                   "refer to a single memory location. Please clone() the tensor before performing the "
                                   "operation.")
    return _write_outputs(REGISTRY["kthvalue"], _kthvalue(input, k, one_dim("kthvalue", dim, 2), keepdim), out, input)


kthvalue.__doc__ = REGISTRY["kthvalue"].doc


def _median(name: str) -> Any:
    op_all, op_dim = REGISTRY[f"_{name}_all"], REGISTRY[f"_{name}_dim"]
    reduce_all = unary(op_all, public_function(op_all))
    with_indices = values_and_indices(op_dim)

    def call(input: Any, dim: Any = None, keepdim: bool = False, *, out: Any = None, axis: Any = None,
             keepdims: bool = False) -> Any:
        dim = axis if dim is None else dim
        if dim is None:
            if out is not None:
                raise TypeError(f'{name}() missing 1 required positional arguments: "dim"')
            return reduce_all(input)
        if not isinstance(keepdim, (bool, np.bool_)):
            raise TypeError(f"{name}(): argument 'keepdim' must be bool")  # a guard says more
        return _write_outputs(op_dim, with_indices(input, one_dim(name, dim), keepdim or keepdims), out, input)

    call.__name__ = call.__qualname__ = name
    what = "" if name == "median" else " of the elements that are not NaN"
    call.__doc__ = (f"The lower median{what}: of the entire tensor, or (values, indices) along `dim`.\n\n"
                    f"    >>> import flambeau as torch\n    >>> torch.{name}(torch.tensor([3., 1., 2.]))\n"
                    "    tensor(2.)\n    ")
    return call


median = launched(_median("median"))
nanmedian = _median("nanmedian")


def _select_outputs(result: Any, inverse: bool, counts: bool) -> Any:
    output, indices, counts_ = result
    if inverse and counts:
        return output, indices, counts_
    if inverse:
        return output, indices
    return (output, counts_) if counts else output


def unique(input: Any, sorted: bool = True, return_inverse: bool = False, return_counts: bool = False,
           dim: int | None = None) -> Any:
    """The unique elements (or slices along `dim`), sorted.

    Args:
        return_inverse: also return the index of each input element among the unique ones.
        return_counts: also return the number of occurrences of each.

    >>> import flambeau as torch
    >>> torch.unique(torch.tensor([3, 1, 3]))
    tensor([1, 3])
    """
    for name, value in (("sorted", sorted), ("return_inverse", return_inverse), ("return_counts", return_counts)):
        if not isinstance(value, (bool, np.bool_)):
            called = "_unique2" if dim is None else "unique_dim"
            raise TypeError(f"{called}(): argument '{name}' must be bool, not {type_name(value)}")
    if dim is None:
        result = apply(REGISTRY["_unique_all"], [input])
    else:
        result = apply(REGISTRY["_unique_dim"], [input], {"dim": one_dim("unique_dim", dim, 2)})
    return _select_outputs(result, return_inverse, return_counts)


def unique_consecutive(input: Any, return_inverse: bool = False, return_counts: bool = False,
                       dim: int | None = None) -> Any:
    """The input without consecutive duplicates; optionally with inverse indices and counts.

    >>> import flambeau as torch
    >>> torch.unique_consecutive(torch.tensor([1, 1, 2, 1]))
    tensor([1, 2, 1])
    """
    for name, value in (("return_inverse", return_inverse), ("return_counts", return_counts)):
        if not isinstance(value, (bool, np.bool_)):
            raise TypeError(f"unique_consecutive(): argument '{name}' must be bool, not {type_name(value)}")
    if dim is not None:
        try:
            dim = one_dim("unique_consecutive", dim)
        except TypeError:
            raise TypeError(f"unique_consecutive(): argument 'dim' must be int, not {type_name(dim)}") from None
    result = apply(REGISTRY["_unique_consecutive"], [input], {"dim": dim})
    return _select_outputs(result, return_inverse, return_counts)


@repeated
def searchsorted(sorted_sequence: Any, input: Any = None, *, out_int32: bool = False, right: bool = False,
                 side: str | None = None, sorter: Any = None, out: Any = None, self: Any = None) -> Any:
    """The index at which each value must be inserted to keep `sorted_sequence` sorted along its last dimension.

    Args:
        right, side: insert after equal elements ("right") or before them ("left").
        sorter: indices that sort `sorted_sequence`.

    Raises:
        RuntimeError: the shapes do not match, or `side` and `right` contradict each other.

    >>> import flambeau as torch
    >>> torch.searchsorted(torch.tensor([1., 2., 3.]), torch.tensor([2., 5.]))
    tensor([1, 3])
    """
    name = "torch.searchsorted()"
    if input is None:
        input = self
    if side is not None:
        if side not in ("left", "right"):
            raise RuntimeError(f"{name}: side can only be 'left' or 'right' but got {side}")
        if right and side == "left":
            raise RuntimeError(f"{name}: side and right can't be set to opposites, got side of left while right was "
                               "True")
        right = side == "right"
    edges = sorted_sequence._array
    if isinstance(input, Tensor):
        values = input
    else:
        scalar = dtypes.of_scalar(input).numpy
        values = wrap(np.asarray(input, edges.dtype if edges.dtype.kind in ("fi" if scalar.kind in "bi" else "f" if (
            scalar.kind == "f") else "") else scalar))
    shape = values._array.shape
    if sorter is not None:
        _check_sorter(name, sorter, edges)
    if values._array.ndim == 0 and edges.ndim != 1:
        raise RuntimeError(f"{name}: input value can be a scalar only when boundaries tensor dimension is 1, but we "
                           f"got boundaries tensor dim({edges.ndim}) and input value's dim(0) numel(1)")
    if edges.ndim == 0:
        raise RuntimeError(f"{name}: boundaries tensor should have positive dimension, but got 0 dimension")
    if edges.ndim > 1 and edges.shape[:-1] != shape[:-1]:
        raise RuntimeError(f"{name}: boundaries tensor should be 1 dimension or the first N-1 dimensions of boundaries "
                           f"tensor and input value tensor must match, but we got boundaries tensor "
                           f"{list(edges.shape)} and input value tensor {list(shape)}")
    for kind, x in (("input value", values), ("boundary", sorted_sequence), ("sorter", sorter)):
        if x is not None and x._array.__class__ is np.ndarray and not x._array.flags.c_contiguous:
            warn_once(f"{name}: {kind} tensor is non-contiguous, this will lower the performance due to extra data "
                      f"copy when converting non-contiguous tensor to contiguous, please use contiguous {kind} tensor "
                      "if possible. This message will only appear once per program.")
    params = {"right": right, "out_int32": out_int32}
    result = apply(REGISTRY["_searchsorted"], [sorted_sequence, values, sorter], params)
    if out is not None and out.dtype is not result.dtype:
        raise RuntimeError(f"{name}: output tensor's dtype is wrong, it can only be Int(int32) or Long(int64) "
                           "depending on whether out_int32 flag is True, but we got output tensor's dtype "
                           f"{out.dtype.scalar_name} and out_int32 flag is {'True' if out_int32 else 'False'}")
    return result if out is None else write_out(REGISTRY["_searchsorted"], result, out)


def _check_sorter(name: str, sorter: Any, edges: np.ndarray) -> None:
    if sorter._array.shape != edges.shape:
        raise RuntimeError(f"{name}: boundary and sorter must have the same size, but got boundary tensor "
                           f"{list(edges.shape)}and got sorter tensor {list(sorter._array.shape)}")
    if sorter._array.dtype != np.int64:
        raise RuntimeError(f"{name}: sorter must be a tensor of long dtype but got dtype {sorter.dtype.scalar_name}")
    indices = sorter._array
    if special[0] and not isinstance(indices, np.ndarray):
        indices = sorter._value._array
    if indices.size and not (indices.min() >= 0 and indices.max() < edges.shape[-1]):
        raise RuntimeError(f"{name}: sorter index out of range")


def bucketize(input: Any, boundaries: Any, *, out_int32: bool = False, right: bool = False, out: Any = None) -> Any:
    """The index of the bucket that contains each value; the sorted `boundaries` are the buckets' upper ends.

    >>> import flambeau as torch
    >>> torch.bucketize(torch.tensor([0.5, 1., 3.]), torch.tensor([1., 2.]))
    tensor([0, 0, 2])
    """
    if boundaries._array.ndim != 1:
        raise RuntimeError(f"boundaries tensor must be 1 dimension, but got dim({boundaries._array.ndim})")
    return searchsorted(boundaries, input, out_int32=out_int32, right=right, out=out)


_ISIN = (("Tensor elements", "Tensor test_elements"), ("Number element", "Tensor test_elements"),
         ("Tensor elements", "Number test_element"))


@partial(launched, differentiable=False)
def isin(elements: Any, test_elements: Any = None, *, assume_unique: bool = False, invert: bool = False,
         out: Any = None, element: Any = None, test_element: Any = None) -> Any:
    """Whether each element is among the test elements; one of the two may be a scalar.

    >>> import flambeau as torch
    >>> torch.isin(torch.tensor([1, 2, 3]), torch.tensor([2, 5]))
    tensor([False,  True, False])
    """
    if test_elements is None:
        test_elements = test_element
    if not isinstance(elements, Tensor) and not isinstance(test_elements, Tensor):
        raise TypeError(f"isin() received an invalid combination of arguments - got ({type(elements).__name__}, "
                        f"{type(test_elements).__name__}), but expected one of:\n"
                        + "".join(f" * ({first}, {second}, *, bool assume_unique = False, bool invert = False)\n"
                                  for first, second in _ISIN))
    check_isin(elements, test_elements)  # type: ignore[no-untyped-call]
    if out is not None and out.dtype.name != "bool":
        raise RuntimeError(f"Expected out tensor to have dtype bool, but got {dtypes.C_NAMES[out.dtype.name]} instead")
    result = apply(REGISTRY["_isin"], [elements, test_elements], {"assume_unique": assume_unique, "invert": invert})
    return result if out is None else write_out(REGISTRY["_isin"], result, out)


def histogram(input: Any, bins: Any = 100, *, range: Any = None, weight: Any = None, density: bool = False,
              out: Any = None) -> Any:
    """The histogram, of counts or weights, and the bin edges; `bins` is a number of equal bins or a tensor of edges.

    >>> import flambeau as torch
    >>> torch.histogram(torch.tensor([1., 2., 1.]), bins=4, range=(0., 3.)).hist
    tensor([0., 2., 1., 0.])
    """
    op = REGISTRY["_histogram"]
    count, edges = (None, bins) if isinstance(bins, Tensor) else (bins, None)
    if count is not None and count <= 0:
        raise RuntimeError(f"torch.histogram(): bins must be > 0, but got {count} for dimension 0")
    size = input._array.size
    check_histogram(input, (size, 1), (bins,), range, weight, () if weight is None else (weight._array.size,))
    result = apply(op, [input, edges, weight], {"count": count, "range": range, "density": density})
    result = named_result(op)(result)
    return _write_outputs(op, result, out, input)


METHODS: dict[str, Any] = {name: globals()[name] for name in __all__ if name not in (
    "bucketize", "histogram", "isin", "searchsorted")}
METHODS["histogram"] = histogram
