"""Jacobians and Hessians: all rows at once in reverse mode, all columns at once in forward mode.

The unit vectors are a batch, and `vmap` sends them through one backward, or forward, pass.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from .._tensor import Tensor
from .._tensor import functions as fn
from ..trees import tree_flatten, tree_map
from .batches import vmap
from .derivatives import (
    Argnums,
    checked_argnums,
    lent,
    outputs_only,
    pulled_back,
    pushed_forward,
    replaced,
    selected,
    tensors_only,
)


def basis(tensors: Sequence[Tensor], start: int, stop: int) -> list[Tensor]:
    """Unit vectors number `start` to `stop` of the space of all the tensors' elements, in the tensors' shapes.

    Returns:
        For each tensor, the part of all those vectors that lies in it. Shape: (stop - start, *shape).
    """
    found = []
    offset = 0
    for x in tensors:
        count = x._array.size
        rows = fn.zeros(stop - start, count, dtype=x.dtype)
        first, last = max(start, offset), min(stop, offset + count)
        if first < last:
            steps = fn.arange(first, last)
            rows[steps - start, steps - offset] = 1
        found.append(fn.reshape(rows, (stop - start, *x._array.shape)))
        offset += count
    return found


def _shape(x: Tensor) -> tuple[int, ...]:
    return x._array.shape


def real_only(tree: Any, who: str, what: str) -> None:
    """Refuse complex tensors, of which there is no Jacobian in this sense.

    Raises:
        RuntimeError: there is one.
    """
    for i, x in enumerate(tree_flatten(tree)[0]):
        if isinstance(x, Tensor) and x.is_complex():
            raise RuntimeError(f"{who}: Expected all {what} to be real but received complex tensor at flattened input "
                               f"idx: {i}")


def jacrev(func: Callable[..., Any], argnums: Argnums = 0, *, has_aux: bool = False, chunk_size: int | None = None,
           _preallocate_and_copy: bool = False) -> Callable[..., Any]:
    """A function that gives `func`'s Jacobian by reverse mode, the cotangents of all its elements in one batch.

    J[i, j] = d f_i / d x_j, shaped (*output shape, *input shape).
    See https://docs.pytorch.org/docs/stable/generated/torch.func.jacrev.html

    Args:
        argnums: the number, or numbers, of the arguments to differentiate by.
        chunk_size: so many rows at a time, to save memory.

    Raises:
        RuntimeError: `func` returns something else than tensors.
        ValueError: `chunk_size` is not positive.

    >>> import flambeau as torch
    >>> torch.func.jacrev(torch.sin)(torch.zeros(2))
    tensor([[1., 0.],
            [0., 1.]])
    """
    if not (chunk_size is None or chunk_size > 0):
        raise ValueError("jacrev: `chunk_size` should be greater than 0.")

    @functools.wraps(func)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        checked_argnums(argnums, len(args))
        real_only(args, "jacrev", "inputs")
        chosen = selected(argnums, args)

        def of_chosen(value: Any) -> Any:
            return func(*replaced(argnums, lent(args), value), **lent(kwargs))

        value, pull_back, *aux = pulled_back(of_chosen, (chosen,), (args, kwargs), has_aux)
        outputs, out_spec = tree_flatten(value)
        leaves, spec = tree_flatten(chosen)
        real_only(outputs, "jacrev", "outputs")
        rows = sum(o._array.size for o in outputs)
        step = chunk_size or max(rows, 1)
        parts: list[list[Tensor]] = []
        for start in range(0, rows, step):
            seeds = basis(outputs, start, min(start + step, rows))
            pulled = _pulled(pull_back, out_spec, seeds, one_at_a_time=chunk_size == 1)
            parts.append(tree_flatten(pulled)[0])
        blocks = []
        if parts:
            columns = [column[0] if len(parts) == 1 else fn.cat(list(column)) for column in zip(*parts, strict=True)]
        else:
            columns = [fn.zeros(0, *_shape(x), dtype=x.dtype) for x in leaves]
        offset = 0
        for o in outputs:
            count = o._array.size
            block = [fn.reshape(fn.narrow(c, 0, offset, count), (*_shape(o), *_shape(x)))
                     for c, x in zip(columns, leaves, strict=True)]
            blocks.append(spec.build(block))
            offset += count
        result = out_spec.build(blocks)
        return (result, aux[0]) if has_aux else result

    return wrapper


def _pulled(pull_back: Callable[..., Any], spec: Any, seeds: list[Tensor], one_at_a_time: bool) -> Any:
    """The cotangents of the inputs for a batch of cotangents of the outputs."""
    def pull(*cotangents: Any) -> Any:
        return pull_back(spec.build(cotangents))[0]

    if one_at_a_time:  # without vmap: for functions that cannot be batched
        found, single = tree_flatten(pull(*[s.squeeze(0) for s in seeds]))
        return single.build(g.unsqueeze(0) for g in found)
    return vmap(pull)(*seeds)


def jacfwd(func: Callable[..., Any], argnums: Argnums = 0, has_aux: bool = False, *,
           randomness: str = "error") -> Callable[..., Any]:
    """A function that gives `func`'s Jacobian by forward mode, the tangents of all its inputs' elements in one batch.

    J[i, j] = d f_i / d x_j, shaped (*output shape, *input shape).
    See https://docs.pytorch.org/docs/stable/generated/torch.func.jacfwd.html

    Args:
        argnums: the number, or numbers, of the arguments to differentiate by.
        randomness: what random operators do under the batch (see `vmap`).

    Raises:
        RuntimeError: `func` returns something else than tensors.

    >>> import flambeau as torch
    >>> torch.func.jacfwd(torch.sin)(torch.zeros(2))
    tensor([[1., 0.],
            [0., 1.]])
    """

    @functools.wraps(func)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        checked_argnums(argnums, len(args))
        real_only(args, "jacfwd", "inputs")
        leaves, spec = tree_flatten(selected(argnums, args))
        tensors_only(leaves)
        out_spec: Any = None

        def of_leaves(*values: Any) -> Any:
            return func(*replaced(argnums, lent(args), spec.build(values)), **lent(kwargs))

        def push(*directions: Any) -> Any:
            nonlocal out_spec
            found = pushed_forward(of_leaves, tuple(leaves), directions, (args, kwargs), has_aux=has_aux)
            real_only(found[0], "jacfwd", "outputs")
            flat, out_spec = tree_flatten(found[1])
            return (flat, found[2]) if has_aux else flat

        counts = [x._array.size for x in leaves]
        total = sum(counts)
        out_dims: Any = (-1, 0) if has_aux else -1
        found = vmap(push, out_dims=out_dims, randomness=randomness)(*basis(leaves, 0, total))
        columns, aux = found if has_aux else (found, None)
        aux = tree_map(lambda x: x[0], aux) if has_aux else None  # the same for every direction
        outputs_only(columns, "jvp(f, primals, tangents)")
        blocks = []
        for column in columns:
            shape = _shape(column)[:-1]
            block = []
            offset = 0
            for x, count in zip(leaves, counts, strict=True):
                part = fn.narrow(column, -1, offset, count)
                block.append(fn.reshape(part, (*shape, *_shape(x))))
                offset += count
            blocks.append(spec.build(block))
        result = out_spec.build(blocks)
        return (result, aux) if has_aux else result

    return wrapper


def hessian(func: Callable[..., Any], argnums: Argnums = 0) -> Callable[..., Any]:
    """A function that gives `func`'s matrix of second derivatives: forward over reverse.

    See https://docs.pytorch.org/docs/stable/generated/torch.func.hessian.html

    >>> import flambeau as torch
    >>> torch.func.hessian(lambda x: (x ** 3).sum())(torch.tensor([1., 2.]))
    tensor([[ 6.,  0.],
            [ 0., 12.]])
    """
    return jacfwd(jacrev(func, argnums), argnums)
