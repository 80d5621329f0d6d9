"""Jacobians: row by row in reverse mode, column by column in forward mode."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..tensor import Tensor
from ..tensor import functions as fn
from .derivatives import _replaced, _selected, jvp, vjp
from .trees import flatten, tensors_only


def _basis(x: Tensor) -> list[Tensor]:
    """The unit tensors of x's shape, one for each element."""
    n = x._array.size
    found = []
    for k in range(n):
        unit = fn.zeros(n, dtype=x.dtype)
        unit[k] = 1
        found.append(unit.reshape(x.shape))
    return found


def jacrev(func: Callable[..., Any], argnums: int | tuple[int, ...] = 0, *, has_aux: bool = False,
           chunk_size: int | None = None) -> Any:
    """A function that gives `func`'s Jacobian: one reverse pass for each element of the output.

    See https://docs.pytorch.org/docs/stable/generated/torch.func.jacrev.html

    >>> import flambeau as torch
    >>> torch.func.jacrev(torch.sin)(torch.zeros(2))
    tensor([[1., 0.],
            [0., 1.]])
    """

    def wrapper(*args: Any, **kwargs: Any) -> Any:
        chosen = _selected(argnums, args)
        leaves, build = flatten(chosen)

        def of_chosen(*values: Any) -> Any:
            return func(*_replaced(argnums, args, values[0]), **kwargs)

        found = vjp(of_chosen, chosen, has_aux=has_aux)
        value, pull_back = found[0], found[1]
        outputs, rebuild = flatten(value)
        per_output = []
        for i, out in enumerate(outputs):
            rows: list[list[Tensor]] = [[] for _ in leaves]
            for unit in _basis(out):
                seeds = [unit if k == i else fn.zeros_like(o) for k, o in enumerate(outputs)]
                seed = rebuild(seeds)
                pulled = pull_back(seed)
                for row, g in zip(rows, flatten(pulled)[0], strict=True):
                    row.append(g)
            blocks = [_stacked(row, out, x) for row, x in zip(rows, leaves, strict=True)]
            per_output.append(build(blocks))
        result = rebuild(per_output)
        return (result, found[2]) if has_aux else result

    return wrapper


def _stacked(rows: list[Tensor], out: Tensor, x: Tensor) -> Tensor:
    if not rows:
        return fn.zeros(*out.shape, *x.shape, dtype=x.dtype)
    return fn.stack(rows).reshape(*out.shape, *x.shape)


def jacfwd(func: Callable[..., Any], argnums: int | tuple[int, ...] = 0, has_aux: bool = False, *,
           randomness: str = "error") -> Any:
    """A function that gives `func`'s Jacobian: one forward pass for each element of the input.

    See https://docs.pytorch.org/docs/stable/generated/torch.func.jacfwd.html

    >>> import flambeau as torch
    >>> torch.func.jacfwd(torch.sin)(torch.zeros(2))
    tensor([[1., 0.],
            [0., 1.]])
    """

    def wrapper(*args: Any, **kwargs: Any) -> Any:
        chosen = _selected(argnums, args)
        leaves, build = flatten(chosen)
        tensors_only(leaves, "jacfwd")

        def of_leaves(*values: Any) -> Any:
            return func(*_replaced(argnums, args, build(list(values))), **kwargs)

        columns: list[list[list[Tensor]]] = []  # [input][element][output]
        rebuild: Any = None
        aux: Any = None
        shapes: list[Tensor] = []
        for i, x in enumerate(leaves):
            pushed = []
            for unit in _basis(x):
                directions = tuple(unit if k == i else fn.zeros_like(v)
                                   for k, v in enumerate(leaves))
                found = jvp(of_leaves, tuple(leaves), directions, has_aux=has_aux)
                flat, rebuild = flatten(found[1])
                shapes = flat
                aux = found[2] if has_aux else None
                pushed.append(flat)
            columns.append(pushed)
        if rebuild is None:
            raise RuntimeError("jacfwd: the inputs have no elements")
        per_output = []
        for k, out in enumerate(shapes):
            blocks = []
            for i, x in enumerate(leaves):
                stacked = fn.stack([column[k] for column in columns[i]], dim=-1)
                blocks.append(stacked.reshape(*out.shape, *x.shape))
            per_output.append(build(blocks))
        result = rebuild(per_output)
        return (result, aux) if has_aux else result

    return wrapper


def hessian(func: Callable[..., Any], argnums: int | tuple[int, ...] = 0) -> Any:
    """A function that gives `func`'s matrix of second derivatives: forward over reverse.

    >>> import flambeau as torch
    >>> torch.func.hessian(lambda x: (x ** 3).sum())(torch.tensor([1., 2.]))
    tensor([[ 6.,  0.],
            [ 0., 12.]])
    """
    return jacfwd(jacrev(func, argnums), argnums)
