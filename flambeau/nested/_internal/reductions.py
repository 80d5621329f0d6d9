"""Reductions of nested tensors: over all elements, over the ragged dimension, or inside of components."""

from __future__ import annotations

from collections.abc import Callable
from math import inf
from typing import Any

from ... import dtypes
from ..._tensor import Tensor
from ..._tensor import functions as fn
from ...masked.identities import _identity
from .nested_tensor import NestedTensor, Structure, named, nested_of, values_of
from .structure_ops import of_rows, padded, unpadded, wrapped

#: reduction -> (the node over all elements, the node over dimensions)
_NODES = {"sum": ("SumBackwardAutogradNestedTensor0", "SumBackwardAutogradNestedTensor1"),
          "mean": ("MeanBackwardAutogradNestedTensor0", "MeanBackward1"), "prod": ("ProdBackward0", "ProdBackward1"),
          "amax": ("AmaxBackward0", "AmaxBackward0"), "amin": ("AminBackward0", "AminBackward0"),
          "max": ("MaxBackward1", "MaxBackward0"), "min": ("MinBackward1", "MinBackward0")}


def _fill(name: str, dtype: Any) -> Any:
    """What does not change a reduction."""
    if name in ("any", "sum", "mean"):
        return 0
    if name in ("all", "prod"):
        return 1
    kind = "amax" if name in ("max", "amax", "argmax") else "amin"
    return (kind == "amin") if dtype is dtypes.bool_ else _identity(kind, dtype)


def _run(name: str, x: Tensor, dim: Any, keepdim: bool, dtype: Any) -> Any:
    """A reduction of a dense tensor."""
    named_type = {} if dtype is None else {"dtype": dtype}
    if name == "prod" and isinstance(dim, (tuple, list)):
        for d in sorted(dim, reverse=True):
            x = fn.prod(x, d, keepdim, **named_type)
        return x
    if name in ("max", "min", "argmax", "argmin") and isinstance(dim, (tuple, list)):
        (dim,) = dim
    return getattr(fn, name)(x, dim, keepdim, **named_type)


def reduction(name: str) -> Callable[..., Any]:
    """The implementation of a reduction."""
    whole, along = _NODES.get(name, ("", ""))

    def result_of(out: Any, structure: Structure | None, node: str) -> Any:
        if isinstance(out, tuple):
            first = result_of(out[0], structure, node)
            second = out[1] if structure is None else nested_of(out[1], structure)
            return type(out)((first, second))
        return nested_of(out, structure, node) if structure is not None else named(out, node)

    def reduce(x: NestedTensor, dim: Any = None, keepdim: bool = False, *, dtype: Any = None, **options: Any) -> Any:
        if options.pop("axis", None) is not None or options:
            raise TypeError(f"{name}() of a nested tensor takes dim, keepdim and dtype")
        n, ragged = len(x.shape), x._structure.ragged_idx
        if isinstance(dim, Tensor):  # `max(x, y)`
            return NotImplemented
        if dim is None or (isinstance(dim, (tuple, list)) and not dim):
            values = values_of(x)  # with the holes, if any
            if name in ("amax", "amin") or keepdim:
                out = _run(name, values, tuple(range(values.dim())), False, dtype)
                out = out.reshape((1,) * n) if keepdim else out
            else:
                out = getattr(fn, name)(values, **({} if dtype is None else {"dtype": dtype}))
            return named(out, along if keepdim else whole)
        dims = sorted({wrapped(d, n) for d in (dim if isinstance(dim, (tuple, list)) else [dim])})
        if 0 in dims and ragged not in dims:
            raise RuntimeError(f"{name}(): reducing along the batch dimension but not the ragged dimension is not "
                               "supported for nested tensors")
        if ragged not in dims:
            inner = [d - 1 for d in dims]
            out = _run(name, values_of(x), inner, keepdim, dtype)
            to = ragged if keepdim else ragged - sum(d < ragged for d in dims)
            return result_of(out, x._structure.at(to), along)
        if x._structure.lengths is not None:
            raise RuntimeError(f"{name}(): reducing across the ragged dimension is not supported for non-contiguous "
                               "nested tensors with holes")
        if 0 in dims:
            out = _run(name, values_of(x), [d - 1 for d in dims if d], keepdim, dtype)
            return result_of(out.unsqueeze(0) if keepdim else out, None, along)
        if len(dims) > 1:
            if name == "mean":
                raise AssertionError("Cannot reduce on both ragged and non-batch dimensions without also reducing on "
                                     "batch")
            raise RuntimeError(f"{name}(): reducing along a ragged and non-batch dimension is not supported for nested "
                               "tensors")
        return result_of(_along_ragged(name, x, keepdim, dtype), None, along)

    reduce.__name__ = name
    return reduce


def _along_ragged(name: str, x: NestedTensor, keepdim: bool, dtype: Any) -> Any:
    """A reduction of each component along its ragged dimension: dense."""
    ragged = x._structure.ragged_idx
    dense = padded(x, _fill(name, x.dtype))
    if name == "mean":
        sizes = fn.tensor(x._structure.sizes).reshape(-1, *[1] * (dense.dim() - 1))
        out: Any = fn.sum(dense, 1, True, **({} if dtype is None else {"dtype": dtype})) / sizes
        out = out if keepdim else out.squeeze(1)
    else:
        out = _run(name, dense, [1], keepdim, dtype)
    if keepdim and ragged != 1:
        move: Callable[[Tensor], Tensor] = lambda t: t.movedim(1, ragged)
        out = type(out)(map(move, out)) if isinstance(out, tuple) else move(out)
    return out


def softmax(x: NestedTensor, dim: int | None = None, *args: Any, dtype: Any = None, **options: Any) -> NestedTensor:
    """The softmax of each component, along its ragged dimension or another."""
    dtype = dtype if dtype is not None or not args or isinstance(args[-1], (int, bool)) else args[-1]
    if dim is None:
        raise TypeError("softmax() missing 1 required positional argument: 'dim'")
    d = wrapped(dim, len(x.shape))
    structure = x._structure
    if d == 0:
        raise RuntimeError("softmax(): not supported when reducing across the batch dimension for NestedTensor")
    if d != structure.ragged_idx:
        return nested_of(fn.softmax(values_of(x), d - 1, dtype), structure, "SoftmaxBackward0")
    if structure.lengths is not None:
        raise RuntimeError("softmax(): not supported where lengths is not None if reducing across the ragged dimension "
                           "for NestedTensor")
    dense = fn.softmax(padded(x, -inf), 1, dtype)
    return of_rows(unpadded(dense, structure), structure, "SoftmaxBackward0")


def log_softmax(x: NestedTensor, dim: int | None = None, *args: Any, dtype: Any = None,
                **options: Any) -> NestedTensor:
    """The logarithm of the softmax of each component, along another dimension than the ragged one."""
    if dim is None:
        raise TypeError("log_softmax() missing 1 required positional argument: 'dim'")
    d = wrapped(dim, len(x.shape))
    if d == 0:
        raise RuntimeError("log_softmax(): not supported when reducing across the batch dimension for NestedTensor")
    if d == x._structure.ragged_idx:
        raise RuntimeError("log_softmax(): not supported when reducing along the ragged dimension for NestedTensor")
    return nested_of(fn.log_softmax(values_of(x), d - 1, dtype), x._structure, "LogSoftmaxBackward0")
