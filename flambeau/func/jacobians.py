"""`jacrev`, `jacfwd` and `hessian`: `vmap` of a backward or a forward pass over a batch of unit vectors."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from .._tensor import Tensor
from .._tensor import functions as fn
from ..modes import inference
from ..trees import tree_flatten, tree_map
from .batches import map_over_first
from .derivatives import (
    Argnums,
    alias_arguments,
    arguments_with,
    check_argnums,
    jvp_of,
    outside_inference_mode,
    require_tensor_outputs,
    require_tensors,
    select_arguments,
    vjp_of,
)


def basis(tensors: Sequence[Tensor], start: int, stop: int) -> list[Tensor]:
    """The unit vectors `start` to `stop` of the space of all the tensors' elements.

    Returns:
        For each tensor, its components of these vectors, of shape (stop - start, *shape).
    """
    if len(tensors) == 1 and not start and stop == tensors[0]._array.size:
        x = tensors[0]
        return [fn.reshape(fn.eye(stop, dtype=x.dtype, device=x.device), (stop, *x._array.shape))]
    components = []
    offset = 0
    for x in tensors:
        count = x._array.size
        rows = fn.zeros(stop - start, count, dtype=x.dtype, device=x.device)
        first, last = max(start, offset), min(stop, offset + count)
        if first < last:
            index = fn.arange(first, last)
            rows[index - start, index - offset] = 1
        components.append(fn.reshape(rows, (stop - start, *x._array.shape)))
        offset += count
    return components


def _shape(x: Tensor) -> tuple[int, ...]:
    return x._array.shape


def require_real(tree: Any, who: str, what: str) -> None:
    """Check that no tensor is complex.

    Raises:
        RuntimeError: a tensor is complex.
    """
    for i, x in enumerate(tree_flatten(tree)[0]):
        if isinstance(x, Tensor) and x.is_complex():
            raise RuntimeError(f"{who}: Expected all {what} to be real but received complex tensor at flattened input "
                               f"idx: {i}")


def jacrev(func: Callable[..., Any], argnums: Argnums = 0, *, has_aux: bool = False, chunk_size: int | None = None,
           _preallocate_and_copy: bool = False) -> Callable[..., Any]:
    """A function that computes `func`'s Jacobian by reverse mode, with a batch of unit cotangents.

    J[i, j] = d f_i / d x_j, shaped (*output shape, *input shape).
    See https://docs.pytorch.org/docs/stable/generated/torch.func.jacrev.html

    Args:
        argnums: the index, or a tuple of indices, of the arguments to differentiate by.
        chunk_size: the number of rows computed at a time, to save memory. Default: all.

    Raises:
        RuntimeError: `func` does not return tensors.
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
        if inference.get():
            return outside_inference_mode(wrapper, *args, **kwargs)
        check_argnums(argnums, len(args))
        require_real(args, "jacrev", "inputs")
        chosen = select_arguments(argnums, args)

        def of_chosen(value: Any) -> Any:
            return func(*arguments_with(argnums, args, value), **alias_arguments(kwargs))

        value, pull_back, *aux = vjp_of(of_chosen, (chosen,), (args, kwargs), has_aux)
        outputs, out_spec = tree_flatten(value)
        leaves, spec = tree_flatten(chosen)
        require_real(outputs, "jacrev", "outputs")
        rows = sum(o._array.size for o in outputs)
        step = chunk_size or max(rows, 1)
        parts: list[list[Tensor]] = []
        for start in range(0, rows, step):
            seeds = basis(outputs, start, min(start + step, rows))
            grads = _vjp_of_batch(pull_back, out_spec, seeds, one_at_a_time=chunk_size == 1)
            parts.append(tree_flatten(grads)[0])
        blocks = []
        if parts:
            columns = [column[0] if len(parts) == 1 else fn.cat(list(column)) for column in zip(*parts, strict=True)]
        else:
            columns = [fn.zeros(0, *_shape(x), dtype=x.dtype, device=x.device) for x in leaves]
        pieces = [fn.split(c, [o._array.size for o in outputs]) for c in columns]
        for i, o in enumerate(outputs):
            block = [_viewed(piece[i], (*_shape(o), *_shape(x))) for piece, x in zip(pieces, leaves, strict=True)]
            blocks.append(spec.unflatten(block))
        result = out_spec.unflatten(blocks)
        return (result, aux[0]) if has_aux else result

    return wrapper


def _viewed(x: Tensor, shape: tuple[int, ...]) -> Tensor:
    """A part of a Jacobian in its shape: a view where its strides allow it, of which PyTorch records `view`."""
    try:
        return x.view(shape)
    except RuntimeError:
        return fn.reshape(x, shape)


def _vjp_of_batch(pull_back: Callable[..., Any], spec: Any, seeds: list[Tensor], one_at_a_time: bool) -> Any:
    """The cotangents of the inputs for a batch of cotangents of the outputs."""
    def pull(*cotangents: Any) -> Any:
        return pull_back(spec.unflatten(cotangents))[0]

    if one_at_a_time:  # without vmap: for functions that cannot be batched
        grads, grad_spec = tree_flatten(pull(*[s.squeeze(0) for s in seeds]))
        return grad_spec.unflatten(g.unsqueeze(0) for g in grads)
    return map_over_first(pull, seeds)


def jacfwd(func: Callable[..., Any], argnums: Argnums = 0, has_aux: bool = False, *,
           randomness: str = "error") -> Callable[..., Any]:
    """A function that computes `func`'s Jacobian by forward mode, with a batch of unit tangents.

    J[i, j] = d f_i / d x_j, shaped (*output shape, *input shape).
    See https://docs.pytorch.org/docs/stable/generated/torch.func.jacfwd.html

    Args:
        argnums: the index, or a tuple of indices, of the arguments to differentiate by.
        randomness: of random operators (see `vmap`).

    Raises:
        RuntimeError: `func` does not return tensors.

    >>> import flambeau as torch
    >>> torch.func.jacfwd(torch.sin)(torch.zeros(2))
    tensor([[1., 0.],
            [0., 1.]])
    """

    @functools.wraps(func)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        if inference.get():
            return outside_inference_mode(wrapper, *args, **kwargs)
        check_argnums(argnums, len(args))
        require_real(args, "jacfwd", "inputs")
        leaves, spec = tree_flatten(select_arguments(argnums, args))
        require_tensors(leaves)
        out_spec: Any = None

        def of_leaves(*values: Any) -> Any:
            return func(*arguments_with(argnums, args, spec.unflatten(values)), **alias_arguments(kwargs))

        def push(*directions: Any) -> Any:
            nonlocal out_spec
            results = jvp_of(of_leaves, tuple(leaves), directions, (args, kwargs), has_aux=has_aux)
            require_real(results[0], "jacfwd", "outputs")
            flat, out_spec = tree_flatten(results[1])
            return (flat, results[2]) if has_aux else flat

        counts = [x._array.size for x in leaves]
        total = sum(counts)
        out_dims: Any = (-1, 0) if has_aux else -1
        results = map_over_first(push, basis(leaves, 0, total), out_dims, randomness)
        columns, aux = results if has_aux else (results, None)
        aux = tree_map(lambda x: x[0], aux) if has_aux else None  # the same for every direction
        require_tensor_outputs(columns, "jvp(f, primals, tangents)")
        blocks = []
        for column in columns:
            shape = _shape(column)[:-1]
            block = [_viewed(part, (*shape, *_shape(x)))
                     for part, x in zip(fn.split(column, counts, -1), leaves, strict=True)]
            blocks.append(spec.unflatten(block))
        result = out_spec.unflatten(blocks)
        return (result, aux) if has_aux else result

    return wrapper


def hessian(func: Callable[..., Any], argnums: Argnums = 0) -> Callable[..., Any]:
    """A function that computes `func`'s Hessian, by forward over reverse mode.

    See https://docs.pytorch.org/docs/stable/generated/torch.func.hessian.html

    Args:
        argnums: the index, or a tuple of indices, of the arguments to differentiate by.

    >>> import flambeau as torch
    >>> torch.func.hessian(lambda x: (x ** 3).sum())(torch.tensor([1., 2.]))
    tensor([[ 6.,  0.],
            [ 0., 12.]])
    """
    return jacfwd(jacrev(func, argnums), argnums)
