"""Records of reductions, scans, orderings, norms and the softmax."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from tests.ops.spec import Make, Sample, record, sample

Samples = Callable[[Make], Iterable[Sample]]


def reduced(low: float = -2.0, high: float = 2.0, several: bool = True, all_too: bool = True) -> Samples:
    """A tensor reduced over all, one and several dimensions, with keepdim; also 0-d and empty tensors."""
    def samples(make: Make) -> Iterable[Sample]:
        if all_too:
            yield sample(make(3, 4, low=low, high=high))
            yield sample(make(low=low, high=high))
        yield sample(make(3, 4, low=low, high=high), 0)
        yield sample(make(2, 3, 4, low=low, high=high), -2, True)
        yield sample(make(low=low, high=high), 0)
        if several:
            yield sample(make(2, 3, 4, low=low, high=high), (0, -1))
    return samples


def along(*args: Any, apart: bool = False, **kwargs: Any) -> Samples:
    """A tensor scanned or sorted along the first and the last dimension; a 0-d one too."""
    def samples(make: Make) -> Iterable[Sample]:
        new = make.apart if apart else make
        yield sample(new(3, 4), *args, dim=0, **kwargs)
        yield sample(new(2, 3, 4), *args, dim=-1, **kwargs)
        if not args:
            yield sample(new(), *args, dim=0, **kwargs)
    return samples


def axes(dim: Any) -> Any:
    return tuple(dim) if isinstance(dim, (tuple, list)) else dim


def of(function: Callable[..., Any]) -> Callable[..., Any]:
    """A NumPy reduction called as PyTorch's is."""
    def reference(x: Any, dim: Any = None, keepdim: bool = False) -> Any:
        if np.ndim(x) == 0:
            return function(np.reshape(x, 1))
        return function(x, axis=axes(dim), keepdims=keepdim)
    return reference


# ----- sums and products -----

record("sum", reduced(), reference=of(np.sum), complex=True, integers=False, covers=("_sum_all",))
record("mean", reduced(), reference=of(np.mean), complex=True, covers=("_mean_all",))
record("nansum", reduced(), reference=of(np.nansum))
record("nanmean", reduced(), reference=of(np.nanmean))
record("prod", reduced(several=False), reference=of(np.prod), complex=True, covers=("_prod_all",))


# ----- extrema -----

def chosen(make: Make) -> Iterable[Sample]:
    yield sample(make.apart(3, 4))
    yield sample(make.apart(3, 4), 0)
    yield sample(make.apart(2, 3, 4), -2, True)
    yield sample(make.apart(5), -1)


def chosen_by_name(make: Make) -> Iterable[Sample]:
    yield sample(make.apart(3, 4))
    yield sample(make.apart(3, 4), dim=0)
    yield sample(make.apart(2, 3, 4), dim=-2, keepdim=True)


def chosen_along(make: Make) -> Iterable[Sample]:
    yield sample(make.apart(3, 4), 0)
    yield sample(make.apart(2, 3, 4), -2, True)
    yield sample(make.apart(5), -1)


def over_several(make: Make) -> Iterable[Sample]:
    yield from chosen(make)
    yield sample(make.apart(2, 3, 4), (0, 2))


record("max", chosen, covers=("_max_all", "_max_dim"))
record("min", chosen, covers=("_min_all", "_min_dim"))
record("amax", over_several, reference=of(np.max))
record("amin", over_several, reference=of(np.min))
record("aminmax", chosen_by_name)
record("argmax", chosen, reference=of(np.argmax), differentiable=False)
record("argmin", chosen, reference=of(np.argmin), differentiable=False)


# ----- truth -----

def truths(make: Make) -> Iterable[Sample]:
    yield sample(make.bools(3, 4))
    yield sample(make.bools(3, 4), 0)
    yield sample(make.bools(2, 3, 4), -2)
    yield sample(make(3, 4))


record("all", truths, reference=of(np.all), differentiable=False)
record("any", truths, reference=of(np.any), differentiable=False)
record("count_nonzero", truths, reference=lambda x, dim=None: np.count_nonzero(x, axis=dim), differentiable=False)


# ----- moments -----

def moments(make: Make) -> Iterable[Sample]:
    yield sample(make(3, 4))
    yield sample(make(3, 4), 0)
    yield sample(make(2, 3, 4), (0, -1), correction=0)
    yield sample(make(2, 3, 4), -2, correction=0.5, keepdim=True)


def moment(function: Callable[..., Any]) -> Callable[..., Any]:
    def reference(x: Any, dim: Any = None, correction: float = 1, keepdim: bool = False) -> Any:
        return function(x, axis=axes(dim), ddof=correction, keepdims=keepdim)
    return reference


record("var", moments, reference=moment(np.var), complex=True, keeps_dtype=True)
record("std", moments, reference=moment(np.std), complex=True)
record("var_mean", moments, complex=True)
record("std_mean", moments, complex=True)


# ----- norms -----

def norms(make: Make) -> Iterable[Sample]:
    yield sample(make.apart(3, 4))
    for order in (1, 3, 0.5, 1.5, float("inf"), -float("inf"), -1):
        yield sample(make.apart(3, 4), order)
    yield sample(make.apart(2, 3, 4), 2, (0, 2), True)
    yield sample(make.apart(3, 4), 3, 0)


def complex_norms(make: Make) -> Iterable[Sample]:
    for order in (2, 1, 3, 0.5):
        yield sample(make(3, 4), order)
    yield sample(make(2, 3, 4), 2, (0, 2), True)


def matrix_norms(make: Make) -> Iterable[Sample]:
    yield sample(make.apart(3, 4))
    for order in ("fro", 1, -1, float("inf"), -float("inf")):
        yield sample(make.apart(2, 3, 4), order)
    yield sample(make.apart(2, 3, 4), 1, (0, 2), True)


def distances(make: Make) -> Iterable[Sample]:
    for p in (2, 1, 3, float("inf")):
        yield sample(make(3, 4), make(3, 4), p)
    yield sample(make(3, 4), make(4))


record("norm", norms)
record("linalg.vector_norm", complex_norms, complex=True, covers=("linalg_vector_norm",))
record("linalg.matrix_norm", matrix_norms)
record("linalg.norm", lambda make: [sample(make.apart(3, 4)), sample(make.apart(3, 4), 1), sample(make.apart(5), 3)])
record("dist", distances, reference=lambda x, y, p=2: np.linalg.norm(np.ravel(x - y), p))
record("renorm", lambda make: [sample(make(3, 4), 2, 0, 1.0), sample(make(2, 3, 4), 3, -1, 0.5),
                               sample(make(3, 4), 1, 1, 100.0)])


# ----- logarithms of sums, softmax -----

record("logsumexp", reduced(all_too=False), complex=True, reference=of(
    lambda x, axis=None, keepdims=False: np.log(np.sum(np.exp(x), axis=axis, keepdims=keepdims))))
record("softmax", along(), reference=lambda x, dim: np.exp(x) / np.sum(
    np.exp(x), axis=dim if np.ndim(x) else None, keepdims=True))
record("log_softmax", along(), reference=lambda x, dim: x - np.log(np.sum(
    np.exp(x), axis=dim if np.ndim(x) else None, keepdims=True)), covers=("_softmax_backward", "_log_softmax_backward"))


# ----- scans -----

def scanned(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda x, dim: function(x, axis=dim) if np.ndim(x) else x


record("cumsum", along(), reference=scanned(np.cumsum), complex=True)
record("cumprod", along(), reference=scanned(np.cumprod), complex=True)
record("cummax", along(apart=True))
record("cummin", along(apart=True))
record("logcumsumexp", along(), reference=scanned(np.logaddexp.accumulate))


def differenced(make: Make) -> Iterable[Sample]:
    yield sample(make(3, 4))
    yield sample(make(3, 5), 2, 0)
    yield sample(make(3, 4), 1, -1, make(3, 2), make(3, 1))


def integrated(make: Make) -> Iterable[Sample]:
    yield sample(make(3, 4))
    yield sample(make(3, 4), dx=0.5, dim=0)
    yield sample(make(3, 4), make(4))
    yield sample(make(3, 4), make(3, 4), dim=0)


record("diff", differenced, reference=lambda x, n=1, dim=-1, prepend=None, append=None: np.diff(
    x, n, dim, **{k: v for k, v in (("prepend", prepend), ("append", append)) if v is not None}), complex=True)
record("trapezoid", integrated, reference=lambda y, x=None, dx=1, dim=-1: np.trapezoid(y, x, dx, dim))
record("cumulative_trapezoid", integrated)


# ----- orderings -----

record("sort", along(apart=True), covers=("_sort",))
record("argsort", along(apart=True), reference=lambda x, dim: np.argsort(x, dim) if np.ndim(x) else np.zeros((), int),
       differentiable=False)
record("msort", lambda make: [sample(make.apart(4, 3))], reference=lambda x: np.sort(x, 0))
record("topk", lambda make: [sample(make.apart(3, 4), 2), sample(make.apart(3, 4), 2, 0, False)])
record("kthvalue", lambda make: [sample(make.apart(3, 4), 2), sample(make.apart(3, 4), 3, 0, True)])
record("median", chosen, covers=("_median_all", "_median_dim"))
record("nanmedian", chosen, covers=("_nanmedian_all", "_nanmedian_dim"))
record("mode", chosen_along)
record("quantile", lambda make: [sample(make.apart(3, 4), 0.3), sample(make.apart(3, 4), 0.6, 0),
                                 sample(make.apart(3, 5), 0.4, 1, True, interpolation="midpoint")])
record("nanquantile", lambda make: [sample(make.apart(3, 4), 0.3), sample(make.apart(3, 4), 0.6, 0)])


# ----- distinct values, searching, counting -----

def integers(make: Make) -> Iterable[Sample]:
    yield sample(make.integers(4, 5))
    yield sample(make.integers(7))


record("unique", integers, reference=np.unique, differentiable=False)
record("unique_consecutive", integers, differentiable=False)
record("bincount", lambda make: [sample(make.integers(9)), sample(make.integers(9), None, 12)], differentiable=False,
       reference=lambda x, weights=None, minlength=0: np.bincount(x, weights, minlength))
record("histc", lambda make: [sample(make.apart(12), 4, -2, 2)], differentiable=False)
record("histogram", lambda make: [sample(make.apart(12), 4)], differentiable=False)
record("searchsorted", lambda make: [sample(make.integers(1, 6).sort()[0][0], make.integers(3, 4))],
       reference=np.searchsorted, differentiable=False)
record("bucketize", lambda make: [sample(make.integers(3, 4), make.integers(1, 6).sort()[0][0])],
       reference=lambda x, edges: np.searchsorted(edges, x), differentiable=False)
record("isin", lambda make: [sample(make.integers(3, 4), make.integers(2))], reference=np.isin, differentiable=False)


# ----- statistics -----

record("cov", lambda make: [sample(make(3, 4)), sample(make(5)), sample(make(3, 4), correction=0)], reference=lambda x,
       correction=1: np.cov(x, ddof=correction))
record("corrcoef", lambda make: [sample(make(3, 4))], reference=np.corrcoef)
