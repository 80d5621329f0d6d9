"""Ordering: sorting, order statistics, unique elements, binary search, and counts."""

from __future__ import annotations

from math import prod

from ...backends.numpy.memory import check_scalar_fits
from ...dtypes import bool_, complex128, promote_types
from ..declare import composite, not_implemented, not_implemented_error, op
from ..unsupported_dtypes import after_shapes
from .extrema import declare_selection, declare_ties_in_rows, declare_ties_over_all

_PAIR = ("values", "indices")
_KTHVALUE_OUT = "output values must be of same type as input", "output indices must be of scalar type {result}"
_MODE_OUT = tuple(f"expected scalar type '{{result}}' but got '{{out}}' for {name} output" for name in _PAIR)
_MEDIAN_OUT = (("Expected tensor for 'values' to have the same type as tensor for argument #2 'self'; but type "
                "{out_type} does not equal {result_type} (while checking arguments for median)"),
               ("Expected tensor for argument #1 'indices' to have scalar type {result}; but got {out_type} instead "
                "(while checking arguments for median)"))
_HISTC_OUT = ("torch.histogram: input tensor and hist tensor should have the same dtype, but got input {result_c} and "
              "hist {out_c}")


# ----- sorting -----------------------------------------------------------------------------

_SORT_ERRORS = after_shapes({"complex": RuntimeError(" Sort does not support complex dtypes on CPU")}, None)


@op(name="sort", key="_sort", outputs=_PAIR, expose=(), opmath=False, unsupported_dtypes=_SORT_ERRORS, exact_out=True)
def sort(xp, input, *, dim=-1, descending=False):
    """The sorted elements along `dim`, and their indices."""
    return xp._sort(input, dim, descending)


@op(name="sort", key="_sort_stable", node="SortBackward1", outputs=_PAIR, expose=(), opmath=False,
    unsupported_dtypes=_SORT_ERRORS, exact_out=True)
def sort_stable(xp, input, *, stable, dim=-1, descending=False):
    """`sort`; equal elements keep their order if `stable`."""
    return xp._sort_stable(input, stable, dim, descending)


declare_selection(sort)
declare_selection(sort_stable)


@op(differentiable=False, opmath=False, unsupported_dtypes=_SORT_ERRORS)
def argsort(xp, input, *, dim=-1, descending=False, stable=False):
    """The indices that sort the elements along `dim`.

    Args:
        descending: largest first.
        stable: whether equal elements keep their order.

    >>> import flambeau as torch
    >>> torch.argsort(torch.tensor([3., 1., 2.]))
    tensor([1, 2, 0])
    """
    return xp.argsort(input, dim, descending, stable)


@composite
def msort(xp, input):
    """The elements sorted along the first dimension.

    >>> import flambeau as torch
    >>> torch.msort(torch.tensor([3., 1., 2.]))
    tensor([1., 2., 3.])
    """
    return xp.sort(input, 0)[0]


@op(outputs=_PAIR, opmath=False, unsupported_dtypes=after_shapes({
    "bool": RuntimeError("topk does not support bool dtypes on CPU"),
    "complex": RuntimeError(" topk does not support complex dtypes on CPU")}, unless_empty=None), exact_out=True)
def topk(xp, input, *, k, dim=-1, largest=True, sorted=True):
    """The k largest (or smallest) elements along `dim`, and their indices.

    Args:
        largest: False for the smallest elements.
        sorted: the elements are sorted in either case.

    >>> import flambeau as torch
    >>> torch.topk(torch.tensor([1., 3., 2.]), 2).values
    tensor([3., 2.])
    """
    return xp.topk(input, k, dim, largest, sorted)


declare_selection(topk)


# ----- order statistics ----------------------------------------------------------------------------------


@op(outputs=_PAIR, opmath=False, unsupported_dtypes=after_shapes(
    not_implemented("kthvalue_cpu", "bool", "complex"), "dim", scalars=False), exact_out=_KTHVALUE_OUT,
    saved="dim indices keepdim self_sym_sizes")
def kthvalue(xp, input, *, k, dim=-1, keepdim=False):
    """The k-th smallest element along `dim`, counted from 1, and its index.

    >>> import flambeau as torch
    >>> torch.kthvalue(torch.tensor([3., 1., 2.]), 2).values
    tensor(2.)
    """
    return xp.kthvalue(input, k, dim, keepdim)


@op(outputs=_PAIR, opmath=False, exact_out=_MODE_OUT,
    unsupported_dtypes=after_shapes(not_implemented("mode_cpu", "complex"), scalars=False),
    saved="dim indices keepdim self_sym_sizes")
def mode(xp, input, *, dim=-1, keepdim=False):
    """The most frequent element along `dim`, the smallest of several, and its index.

    >>> import flambeau as torch
    >>> torch.mode(torch.tensor([1., 2., 2., 3.])).values
    tensor(2.)
    """
    return xp.mode(input, dim, keepdim)


declare_selection(kthvalue)
declare_selection(mode)

_MEDIAN_ERRORS = after_shapes(not_implemented("median_cpu", "bool", "unsigned", "complex"))
_MEDIAN_DIM_ERRORS = after_shapes(not_implemented("median_out", "bool", "unsigned", "complex"), "dim")


@op(name="median", key="_median_all", node="MedianBackward0", expose=(), opmath=False,
    unsupported_dtypes=_MEDIAN_ERRORS)
def median_all(xp, input):
    """The lower median of all elements; NaN if there is one."""
    return xp._median_all(input)


@op(name="nanmedian", key="_nanmedian_all", node="NanmedianBackward0", expose=(), opmath=False,
    unsupported_dtypes=_MEDIAN_ERRORS)
def nanmedian_all(xp, input):
    """The lower median of all elements that are not NaN."""
    return xp._nanmedian_all(input)


@op(name="median", key="_median_dim", node="MedianBackward1", outputs=_PAIR, expose=(), opmath=False,
    unsupported_dtypes=_MEDIAN_DIM_ERRORS, exact_out=_MEDIAN_OUT, saved="dim indices keepdim self_sym_sizes")
def median_dim(xp, input, *, dim, keepdim=False):
    """The lower median along `dim`, and its index."""
    return xp._median_dim(input, dim, keepdim)


@op(name="nanmedian", key="_nanmedian_dim", node="NanmedianBackward1", outputs=_PAIR, expose=(), opmath=False,
    unsupported_dtypes=_MEDIAN_DIM_ERRORS, exact_out=_MEDIAN_OUT, saved="dim indices keepdim self_sym_sizes")
def nanmedian_dim(xp, input, *, dim, keepdim=False):
    """The lower median along `dim` of the elements that are not NaN, and its index."""
    return xp._nanmedian_dim(input, dim, keepdim)


@op(name="median", key="_median_of_rows", expose=(), opmath=False)
def median_of_rows(xp, input):
    """The lower median of each row; NaN if there is one."""
    return xp._median_dim(input, -1, False)[0]


@op(name="nanmedian", key="_nanmedian_of_rows", expose=(), opmath=False)
def nanmedian_of_rows(xp, input):
    """The lower median of each row's elements that are not NaN."""
    return xp._nanmedian_dim(input, -1, False)[0]


declare_ties_over_all(median_all, "_median_of_rows")
declare_ties_over_all(nanmedian_all, "_nanmedian_of_rows")
declare_ties_in_rows(median_of_rows)
declare_ties_in_rows(nanmedian_of_rows)
declare_selection(median_dim)
declare_selection(nanmedian_dim)


# ----- unique elements ----------------------------------------------------------------------------


def _vjp_not_implemented(name):
    def rule(g0):
        raise NotImplementedError(f"the derivative for '{name}' is not implemented.")
    return rule


_UNIQUE = {"outputs": ("output", "inverse_indices", "counts"), "returns_namedtuple": False, "expose": (),
             "opmath": False}


@op(name="_unique2", key="_unique_all", node="Unique2Backward0",
    unsupported_dtypes=not_implemented("unique", "complex"), **_UNIQUE)
def unique_all(xp, input):
    """The sorted unique elements, the index of each element among them, and their counts."""
    return xp._unique_all(input)


@op(name="unique_dim", key="_unique_dim", unsupported_dtypes=not_implemented("unique_dim", "complex"), **_UNIQUE)
def unique_dim(xp, input, *, dim):
    """The sorted unique slices along `dim`, the index of each slice among them, and their counts."""
    return xp._unique_dim(input, dim)


@op(name="unique_consecutive", key="_unique_consecutive", unsupported_dtypes={
    "complex": lambda input, *, dim=None: not_implemented_error("unique" if dim is None else "unique_dim")}, **_UNIQUE)
def unique_consecutive(xp, input, *, dim=None):
    """One element of each run of equal adjacent elements, each element's run, and the runs' lengths."""
    return xp._unique_consecutive(input, dim)


def _refuse_dynamic_shape(name):
    def rule(xp, batch, input, **params):
        raise RuntimeError("vmap: We do not support batching operators that can output dynamic shape. Attempted to "
                           f"vmap over aten::{name}. Please file an issue at https://github.com/pytorch/pytorch/issues "
                           "if you need this feature.")
    return rule


unique_all.vmap(_refuse_dynamic_shape("_unique2"))
unique_dim.vmap(_refuse_dynamic_shape("unique_dim"))
unique_consecutive.vmap(_refuse_dynamic_shape("unique_consecutive"))
unique_all.vjp(input=_vjp_not_implemented("_unique2"))
unique_dim.vjp(input=_vjp_not_implemented("unique_dim"))
unique_consecutive.vjp(input=_vjp_not_implemented("unique_consecutive"))


# ----- searching -------------------------------------------------------------------------------------


def _check_searchsorted(sorted_sequence, input, sorter=None):
    if 0 in input.shape:
        return
    d = promote_types(sorted_sequence.dtype, input.dtype)
    if d.is_complex and not input.shape and sorted_sequence.shape and (
            sorted_sequence.dtype.is_floating_point or sorted_sequence.dtype.is_complex):
        d = sorted_sequence.dtype.to_complex()  # a 0-d tensor decides that it is complex, not how precise
    if d.is_complex or d is bool_:
        raise NotImplementedError(f"\"searchsorted_out_cpu\" not implemented for '{d.scalar_name}'")


@op(name="searchsorted", key="_searchsorted", expose=(), differentiable=False, scalar_inputs=("input",),
    check=_check_searchsorted)
def searchsorted(xp, sorted_sequence, input, sorter=None, *, right=False, out_int32=False):
    """The index at which each value would be inserted to keep the sequence sorted."""
    return xp._searchsorted(sorted_sequence, input, sorter, right, out_int32)


def _searchsorted_vmap(xp, batch, sequence, input, sorter, options):
    on, k = batch.on, batch.k
    rank = len(sequence.shape) - k * on[0]
    if not on[0] and not (sorter is not None and on[2]) and rank == 1:
        return xp._searchsorted(sequence, input, sorter, **options)
    sequence, input, sorter = (x if x is None or has else batch.expand_levels(x) for x, has in zip(
        (sequence, input, sorter), (*on, False)[:3], strict=True))
    values = xp.reshape(input, (*batch.sizes, prod(input.shape[k:]))) if rank == 1 else input
    return xp.reshape(xp._searchsorted(sequence, values, sorter, **options), input.shape)


searchsorted.vmap(lambda xp, batch, sorted_sequence, input, sorter=None, **options: _searchsorted_vmap(
    xp, batch, sorted_sequence, input, sorter, options))


def check_isin(elements, test_elements):
    """Raise PyTorch's error for elements that have no order."""
    for x in (elements, test_elements):
        d = getattr(x, "dtype", None) or (bool_ if isinstance(x, bool) else complex128 if isinstance(x, complex)
                                          else None)
        if d is not None and (d.is_complex or d is bool_):
            raise RuntimeError(f"Unsupported input type encountered for isin(): {d.scalar_name}")


@op(name="isin", key="_isin", expose=(), differentiable=False, promote="common", check=check_isin,
    scalar_inputs=("elements", "test_elements"))
def isin(xp, elements, test_elements, *, assume_unique=False, invert=False):
    """Whether each element is one of the test elements."""
    return xp._isin(elements, test_elements, assume_unique, invert)


isin.vmap(lambda xp, batch, elements, test_elements, **options: NotImplemented if batch.on[1] else xp._isin(
    elements, test_elements, **options))


# ----- counts ----------------------------------------------------------------------------------------


def _not_differentiable(name):
    def rule(g):
        raise RuntimeError(f"derivative for aten::{name} is not implemented")
    return rule


@op(node="torch::autograd::NotImplemented", opmath=False,
    unsupported_dtypes=not_implemented("bincount_cpu", "bool", "float", "complex"))
def bincount(xp, input, weights=None, *, minlength=0):
    """The number of times each integer 0, 1, ... occurs in `input`, or the sums of its weights.

    Args:
        input: a vector of integers ≥ 0.
        weights: a weight per element.
        minlength: the least length of the result.

    >>> import flambeau as torch
    >>> torch.bincount(torch.tensor([0, 1, 1, 3]))
    tensor([1, 2, 0, 1])
    """
    return xp.bincount(input, weights, minlength)


bincount.vjp(weights=_not_differentiable("bincount"))


def _unsupported_in_histc(input, *, min=0, max=0, **_):
    """Return PyTorch's error for integer and complex inputs; it depends on whether the range is given."""
    for limit in (min, max):
        if isinstance(limit, complex):
            raise RuntimeError("value cannot be converted to type double without overflow")
        check_scalar_fits(float(limit), input.dtype)
    if min == max:
        if input.dtype.is_complex and 0 not in input.shape:
            return not_implemented_error("aminmax_cpu")
        if input.dtype.name == "uint8" and not min and (0 in input.shape or not input.any()):  # widened to -1
            return RuntimeError("value cannot be converted to type uint8_t without overflow")
    return not_implemented_error("histogram_cpu")


@op(differentiable=False, opmath=False,
    unsupported_dtypes=not_implemented("linspace_cpu", "bool") | dict.fromkeys(
        ("integer", "complex"), _unsupported_in_histc), exact_out=_HISTC_OUT)
def histc(xp, input, *, bins=100, min=0, max=0):
    """A histogram of `bins` equal bins between `min` and `max` (the input's range where these are equal).

    >>> import flambeau as torch
    >>> torch.histc(torch.tensor([1., 2., 1.]), bins=4, min=0, max=3)
    tensor([0., 2., 1., 0.])
    """
    if isinstance(min, complex) or isinstance(max, complex):
        raise RuntimeError("value cannot be converted to type double without overflow")
    return xp.histc(input, bins, min, max)


@op(name="histogram", key="_histogram", node="torch::autograd::NotImplemented", outputs=("hist", "bin_edges"),
    expose=(), opmath=False, unsupported_dtypes=dict.fromkeys(
        ("bool", "integer", "complex", "narrow"), lambda input, bins, *_, **__: not_implemented_error(
            "histogramdd" if bins is None else "histogram_cpu")),
    exact_out=tuple(f"torch.histogram: input tensor and {name} tensor should have the same dtype, but got input "
                    f"{{result_c}} and {name} {{out_c}}{where}"
                    for name, where in (("hist", ""), ("bin_edges", " for dimension 0"))))
def histogram(xp, input, bins=None, weight=None, *, count=None, range=None, density=False):
    """A histogram of counts or sums of weights, and the bins' edges."""
    return xp._histogram(input, bins, weight, count, range, density)


def _histogram_vjp(g0):
    raise RuntimeError("derivative for aten::histogram is not implemented")


histogram.vjp(input=_histogram_vjp, bins=_histogram_vjp, weight=_histogram_vjp)
