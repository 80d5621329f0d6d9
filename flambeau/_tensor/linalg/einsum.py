"""`einsum`: parsing of the equation and contraction by `permute`, `sum` and `bmm`, as in PyTorch."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from ...engine.grad_mode import grad_mode, inference
from ...engine.tensor_interface import layer
from ...errstate import quietly
from ...kernels.memory_format import noted
from ...modes import special
from ...ops.declare import REGISTRY
from ..dispatch.apply import apply
from ..dispatch.array_kernels import kernel_of
from ..dispatch.graph_recording import as_view
from ..fastpath.repeated_calls import repeated
from ..overriding.entry_points import handler_arguments
from ..shape.reshaping import reshaped
from ..tensor import Tensor, wrap

__all__ = ["einsum"]

_ELLIPSIS = -1
_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"


def _viewed(x: Tensor, size: Sequence[int]) -> Tensor:
    return apply(REGISTRY["view"], [x], {"size": tuple(size)})


def _permuted(x: Tensor, dims: Sequence[int]) -> Tensor:
    return apply(REGISTRY["permute"], [x], {"dims": tuple(dims)})


def _summed(x: Tensor, dims: Sequence[int], keepdim: bool) -> Tensor:
    return apply(REGISTRY["sum"], [x], {"dim": tuple(dims), "keepdim": keepdim})


def _shape(x: Tensor) -> tuple[int, ...]:
    return x._array.shape


def _label(letter: str, position: int) -> int:
    if not (letter.isascii() and letter.isalpha()):
        raise RuntimeError(f"einsum(): invalid subscript given at index {position} in the equation string, subscripts "
                           "must be in [a-zA-Z]")
    return _LETTERS.index(letter)


def _labels(text: str, start: int, who: str) -> list[int]:
    """The labels of one operand, or of the output, of an equation."""
    result: list[int] = []
    i, seen = 0, False
    while i < len(text):
        letter = text[i]
        if letter == " ":
            i += 1
            continue
        if letter == ".":
            if seen:
                what = (f"for operand {who} for which" if who else "for output but")
                which = "an ellipsis was already found" if who else "an ellipsis (...) was already found"
                raise RuntimeError(f"einsum(): found '.' {what} {which}")
            if text[i:i + 3] != "...":
                whose = f"operand {who}" if who else "output"
                extra = "any ellipsis" if who else "any ellipsis (...)"
                raise RuntimeError(f"einsum(): found '.' for {whose} that is not part of {extra}")
            result.append(_ELLIPSIS)
            seen = True
            i += 3
            continue
        result.append(_label(letter, start + i))
        i += 1
    return result


def _parsed(equation: str, count: int) -> tuple[list[list[int]], list[int] | None]:
    """The labels of the operands and of the output; None for an implicit output."""
    arrow = equation.find("->")
    left = equation if arrow < 0 else equation[:arrow]
    terms, start = [], 0
    pieces = left.split(",")
    for k, piece in enumerate(pieces):
        terms.append(_labels(piece, start, str(k)))
        start += len(piece) + 1
        if k >= count - 1 and len(pieces) > count:
            raise RuntimeError("einsum(): fewer operands were provided than specified in the equation")
    if len(pieces) < count:
        raise RuntimeError("einsum(): more operands were provided than specified in the equation")
    return terms, None if arrow < 0 else _labels(equation[arrow + 2:], arrow + 2, "")


def _from_sublists(args: tuple[Any, ...]) -> tuple[list[Tensor], list[list[int]], list[int] | None]:
    def labels(sublist: Any) -> list[int]:
        result = []
        for s in sublist:
            if s is Ellipsis:
                result.append(_ELLIPSIS)
            elif s >= 0 and s < 52:
                result.append(int(s))
            else:
                raise ValueError("einsum(): subscript in subscript list is not within the valid range [0, 52)")
        return result

    operands = list(args[:-1:2]) if len(args) % 2 else list(args[::2])
    terms = [labels(s) for s in args[1::2]]
    return operands, terms, labels(args[-1]) if len(args) % 2 else None


def _arguments_for_handlers(args: tuple[Any, ...], in_mode: bool) -> tuple[Any, ...]:
    """An equation and operands, one argument each; modes are given a list of operands as it is."""
    if len(args) < 2:
        return args
    if isinstance(args[0], Tensor):
        operands, terms, output = _from_sublists(args)
        equation = ",".join(map(_written, terms)) + ("" if output is None else "->" + _written(output))
        return (equation, *operands)
    if len(args) == 2 and isinstance(args[1], (list, tuple)) and not in_mode:
        return (args[0], *args[1])
    return args


def _written(labels: list[int]) -> str:
    return "".join("..." if label == _ELLIPSIS else _LETTERS[label] for label in labels)


handler_arguments["torch.einsum"] = _arguments_for_handlers


def einsum(*args: Any) -> Tensor:
    """The product of the operands, summed over the labels that are not in the output (Einstein notation).

    Args:
        args: an equation such as "ij,jk->ik" and the operands; or operands, each followed by a list of label numbers,
            and optionally such a list for the output.

    Raises:
        RuntimeError: the equation is invalid, or does not match the operands.

    >>> import flambeau as torch
    >>> torch.einsum("ij,jk->ik", torch.ones(2, 3), torch.ones(3, 1))
    tensor([[3.],
            [3.]])
    """
    if len(args) < 2:
        raise ValueError("einsum(): must specify the equation string and at least one operand, or at least one operand "
                         "and its subscripts list")
    if len(args) == 3 and args[0].__class__ is str and not special[0]:
        result = _product_of_two(*args)
        if result is not None:
            return result
    return _in_steps(*args)


@repeated
def _in_steps(*args: Any) -> Tensor:
    """`einsum` by views and batched products, which are recorded."""
    if isinstance(args[0], Tensor):
        operands, terms, output = _from_sublists(args)
    else:
        operands = list(args[1:])
        if len(operands) == 1 and isinstance(operands[0], (list, tuple)):
            operands = list(operands[0])
        terms, output = _parsed(args[0], len(operands))
    for i, x in enumerate(operands):
        if not isinstance(x, Tensor):
            raise TypeError(f"einsum(): argument 'tensors' (position 2) must be tuple of Tensors, but found element of "
                            f"type {type(x).__name__} at pos {i}")
    return _contract(operands, terms, output)


# ----- the product of two arrays -----------------------------------------------------------


@functools.lru_cache(256)
def _contraction(equation: str, ndims: tuple[int, int]) -> tuple[tuple[int, ...], tuple[int, ...], int, int, int,
                                                                 tuple[int, ...] | None] | None:
    """How two operands become one batched product; None where the general way is needed.

    Returns:
        the orders of the operands' dimensions, (*batch, *rows, *summed) and (*batch, *summed, *columns); the numbers of
        batch, row and summed dimensions; the order of the product's dimensions in the result, None if it is the same.
    """
    (a, b), output = _parsed(equation, 2)
    if output is None or len({*a}) < len(a) or len({*b}) < len(b) or len({*output}) < len(output) or (
            _ELLIPSIS in (*a, *b, *output) or (len(a), len(b)) != ndims or {*output} - {*a, *b}):
        return None
    batch = [label for label in output if label in a and label in b]
    rows, columns = [label for label in output if label not in b], [label for label in output if label not in a]
    summed = sorted({*a} & {*b} - {*output})
    if not summed or len(batch) + len(rows) + len(summed) < len(a) or len(batch) + len(summed) + len(columns) < len(b):
        return None
    product = [*batch, *rows, *columns]
    back = tuple(product.index(label) for label in output)
    return (tuple(map(a.index, (*batch, *rows, *summed))), tuple(map(b.index, (*batch, *summed, *columns))), len(batch),
            len(rows), len(summed), None if back == tuple(range(len(back))) else back)


def _product_of_two(equation: str, x: Any, y: Any) -> Tensor | None:
    """`einsum` of two operands by one batched product where nothing is recorded; None for the general way."""
    if not isinstance(x, Tensor) or not isinstance(y, Tensor) or inference.get() or (
            (x._requires_grad or y._requires_grad) and grad_mode.get()):
        return None
    a, b = x._array, y._array
    if a.__class__ is not np.ndarray or b.__class__ is not np.ndarray or a.dtype is not b.dtype or (
            a.dtype.char not in "fd"):
        return None
    plan = _contraction(equation, (a.ndim, b.ndim))
    if plan is None:
        return None
    left_order, right_order, n_batch, n_rows, n_summed, back = plan
    left, right = a.transpose(left_order), b.transpose(right_order)
    batch, over = left.shape[:n_batch], left.shape[n_batch + n_rows:]
    if right.shape[:n_batch] != batch or right.shape[n_batch:n_batch + n_summed] != over or 1 in over or 1 in batch:
        return None  # sizes of 1 broadcast
    rows, columns = left.shape[n_batch:n_batch + n_rows], right.shape[n_batch + n_summed:]
    depth = prod(over)
    try:
        product = quietly(kernel_of(REGISTRY["bmm"]), left.reshape(prod(batch), prod(rows), depth),
                          right.reshape(prod(batch), depth, prod(columns)))
    except RuntimeError:  # the context is another thread's
        return None
    result = product.reshape((*batch, *rows, *columns))
    return as_view(wrap(result if back is None else noted(result.transpose(back))), wrap(product))


def _contract(operands: list[Tensor], terms: list[list[int]], output: list[int] | None) -> Tensor:
    counts: dict[int, int] = {}
    ellipsis = 0
    for k, (x, term) in enumerate(zip(operands, terms, strict=True)):
        n = x._array.ndim
        rest = n - sum(label != _ELLIPSIS for label in term)
        if _ELLIPSIS in term:
            if rest < 0:
                raise RuntimeError(f"einsum(): the number of subscripts in the equation ({n - rest}) is more than the "
                                   f"number of dimensions ({n}) for operand {k}")
            ellipsis = max(ellipsis, rest)
        elif rest:
            raise RuntimeError(f"einsum(): the number of subscripts in the equation ({len(term)}) does not match the "
                               f"number of dimensions ({n}) for operand {k} and no ellipsis was given")
        for label in term:
            counts[label] = counts.get(label, 0) + 1
    if output is None:
        output = [_ELLIPSIS] if _ELLIPSIS in counts else []
        output += sorted(label for label, count in counts.items() if count == 1 and label != _ELLIPSIS)
    dim_of: dict[int, int] = {}  # label -> its dimension in the common order, in which those of the output come first
    size = 0
    for label in output:
        if label == _ELLIPSIS:
            dim_of[label] = size
            size += ellipsis
            continue
        if label in dim_of:
            raise RuntimeError(f"einsum(): output subscript {_LETTERS[label]} appears more than once in the output")
        if label not in counts:
            raise RuntimeError(f"einsum(): output subscript {_LETTERS[label]} does not appear in the equation for any "
                               "input operand")
        dim_of[label] = size
        size += 1
    n_output_dims = size
    if _ELLIPSIS not in dim_of:
        dim_of[_ELLIPSIS] = size
        size += ellipsis
    for label in sorted(counts):
        if label not in dim_of:
            dim_of[label] = size
            size += 1
    aligned = [_align_operand(x, term, dim_of, ellipsis, size, k)
               for k, (x, term) in enumerate(zip(operands, terms, strict=True))]
    _check_sizes(operands, terms, dim_of, ellipsis)
    if len(aligned) == 1:
        return aligned[0] if n_output_dims == size else _summed(aligned[0], range(n_output_dims, size), False)
    users = [sum(x._array.shape[i] != 1 for x in aligned) for i in range(size)]
    product = aligned[0]
    for y in aligned[1:]:
        product = _contract_pair(product, y, users, n_output_dims, size)
    return product if n_output_dims == size else _viewed(product, _shape(product)[:n_output_dims])


def _align_operand(x: Tensor, term: list[int], dim_of: dict[int, int], ellipsis: int, size: int, number: int) -> Tensor:
    """An operand with the dimensions of all labels in the common order, of size 1 where it lacks the label."""
    fn = layer.functions
    order: list[int | None] = [None] * size
    at = 0
    for label in term:
        if label == _ELLIPSIS:
            own = x._array.ndim - at - sum(1 for _ in term[term.index(_ELLIPSIS) + 1:])
            for i in range(ellipsis - own, ellipsis):
                order[dim_of[label] + i] = at
                at += 1
            continue
        first = order[dim_of[label]]
        if first is None:
            order[dim_of[label]] = at
            at += 1
            continue
        m, n = x._array.shape[first], x._array.shape[at]
        if m != n:
            raise RuntimeError(f"einsum(): subscript {_LETTERS[label]} is repeated for operand {number} but the sizes "
                               f"don't match, {n} != {m}")
        x = apply(REGISTRY["diagonal"], [x], {"offset": 0, "dim1": first, "dim2": at})
        last = x._array.ndim - 1
        x = _permuted(x, [*range(first), last, *range(first, last)])
    for i, axis in enumerate(order):
        if axis is None:
            x = fn.unsqueeze(x, at)
            order[i] = at
            at += 1
    return _permuted(x, [axis for axis in order if axis is not None])


def _check_sizes(operands: list[Tensor], terms: list[list[int]], dim_of: dict[int, int], ellipsis: int) -> None:
    seen: dict[int, int] = {}
    for k, (x, term) in enumerate(zip(operands, terms, strict=True)):
        at = 0
        for label in term:
            if label == _ELLIPSIS:
                at += x._array.ndim - len(term) + 1
                continue
            n = x._array.shape[at]
            at += 1
            before = seen.get(label, 1)
            if n != 1 and before not in (1, n):
                raise RuntimeError(f"einsum(): subscript {_LETTERS[label]} has size {n} for operand {k} which does not "
                                   f"broadcast with previously seen size {before}")
            seen[label] = before if n == 1 else n


def _contract_pair(a: Tensor, b: Tensor, users: list[int], n_output_dims: int, size: int) -> Tensor:
    """The product of two operands, summed over the dimensions that no later operand has."""
    contracted, only_a, only_b = [], [], []
    for i in range(n_output_dims, size):
        m, n = a._array.shape[i], b._array.shape[i]
        if m != 1 and n != 1:
            users[i] -= 1
            if users[i] == 1:
                contracted.append(i)
                users[i] = 0
        elif users[i] == 1:
            if m != 1:
                only_a.append(i)
                users[i] = 0
            elif n != 1:
                only_b.append(i)
                users[i] = 0
    if only_a:
        a = _summed(a, only_a, True)
    if only_b:
        b = _summed(b, only_b, True)
    if not contracted:
        return layer.functions.mul(a, b)
    return _sum_of_products(a, b, contracted)


def _sum_of_products(a: Tensor, b: Tensor, over: list[int]) -> Tensor:
    """The product summed over the dimensions `over`, which keep size 1, as one `bmm` batched over common dimensions."""
    s, t = _shape(a), _shape(b)
    batch: list[int] = []
    rows: list[int] = []
    columns: list[int] = []
    for i in range(len(s)):
        if i in over:
            continue
        (batch if s[i] != 1 and t[i] != 1 else rows if s[i] != 1 else columns).append(i)
    count, n, p = prod(s[i] for i in batch), prod(s[i] for i in rows), prod(t[i] for i in columns)
    depth = prod(s[i] for i in over)
    left = reshaped(_permuted(a, [*batch, *rows, *over, *columns]), (count, n, depth))
    right = reshaped(_permuted(b, [*batch, *over, *columns, *rows]), (count, depth, p))
    product = layer.functions.bmm(left, right)
    order = [*batch, *rows, *over, *columns]
    out = _viewed(product, [*(s[i] for i in batch), *(s[i] for i in rows), *(1 for _ in over),
                            *(t[i] for i in columns)])
    back = [0] * len(order)
    for i, axis in enumerate(order):
        back[axis] = i
    return _permuted(out, back)
