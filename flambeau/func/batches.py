"""`vmap`: a function of tensors, mapped over a dimension of them."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from .._tensor import Tensor
from .._tensor import functions as fn
from .._tensor.dispatch.batched_tensor import BatchedTensor, Level, batched, level_of
from .._tensor.dispatch.vmap_gradients import hidden as first_hidden
from ..shapes import wrap_dim
from ..trees import TreeSpec, broadcast_to, tree_flatten
from .derivatives import transform

Dims = Any  # an int, None, or a nest of them


def _name(func: Any) -> str:
    return func.__name__ if hasattr(func, "__name__") else repr(func)


def vmap(func: Callable[..., Any], in_dims: Dims = 0, out_dims: Dims = 0, randomness: str = "error", *,
         chunk_size: int | None = None) -> Callable[..., Any]:
    """A function that runs `func` on every element of a batch at once.

    The result is that of a loop over the elements, stacked; the work is done by each operator on the whole batch.
    See https://docs.pytorch.org/docs/stable/generated/torch.vmap.html

    Args:
        in_dims: which dimension of each argument to map over; None: the argument is the same for all elements.
            An int stands for all arguments, a nest of ints for nested arguments.
        out_dims: where the batch stands in the results.
        randomness: "error"; "different" numbers for each element; or the "same".
        chunk_size: map over so many elements at a time.

    Raises:
        ValueError: `in_dims`, `out_dims` or the sizes do not fit.
        RuntimeError: `func` looks at a value (`item`, `if`), or draws random numbers under "error".

    >>> import flambeau as torch
    >>> torch.vmap(torch.dot)(torch.ones(2, 3), torch.tensor([[1., 2., 3.], [4., 5., 6.]]))
    tensor([ 6., 15.])
    """
    if randomness not in ("error", "different", "same"):
        raise RuntimeError("Only allowed values for randomness are 'error', 'different', or 'same'. Got "
                           f"{randomness}")
    if not (chunk_size is None or chunk_size > 0):
        raise ValueError(f"vmap: chunk_size should be None or greater than 0. (got {chunk_size})")

    @functools.wraps(func)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        size, flat_dims, leaves, spec = _inputs(in_dims, args, func)
        if chunk_size is None or size <= chunk_size:
            return _mapped(func, size, flat_dims, leaves, spec, out_dims, randomness, kwargs)
        return _in_chunks(func, size, flat_dims, leaves, spec, out_dims, randomness, kwargs, chunk_size)

    return wrapped


def _inputs(in_dims: Dims, args: tuple[Any, ...], func: Any) -> tuple[int, list[Any], list[Any], TreeSpec]:
    """The batch's size, and the arguments' leaves with the dimension of each."""
    name = _name(func)
    if not isinstance(in_dims, (int, tuple)):
        raise ValueError(f"vmap({name}, in_dims={in_dims}, ...)(<inputs>): expected `in_dims` to be int or a "
                         "(potentially nested) tuple matching the structure of inputs, got: "
                         f"{type(in_dims)}.")
    if not args:
        raise ValueError(f"vmap({name})(<inputs>): got no inputs. Maybe you forgot to add inputs, or you are trying to "
                         "vmap over a function with no inputs. The latter is unsupported.")
    leaves, spec = tree_flatten(args)
    dims = broadcast_to(in_dims, spec)
    if dims is None:
        raise ValueError(f"vmap({name}, in_dims={in_dims}, ...)(<inputs>): in_dims is not compatible with the "
                         f"structure of `inputs`. in_dims has structure {tree_flatten(in_dims)[1]} but inputs has "
                         f"structure {spec}.")
    said = f"vmap({name}, in_dims={in_dims}, ...)(<inputs>): "
    for i, (x, dim) in enumerate(zip(leaves, dims, strict=True)):
        if dim is None:
            continue
        if not isinstance(dim, int):
            raise ValueError(f"{said}Got in_dim={dim} for an input but in_dim must be either an integer dimension or "
                             "None.")
        if not isinstance(x, Tensor):
            raise ValueError(f"{said}Got in_dim={dim} for an input but the input is of type {type(x)}. We cannot vmap "
                             "over non-Tensor arguments, please use None as the respective in_dim")
        n = x._array.ndim
        if not -n <= dim < n:
            raise ValueError(f"{said}Got in_dim={dim} for some input, but that input is a Tensor of dimensionality {n} "
                             f"so expected in_dim to satisfy -{n} <= in_dim < {n}.")
        dims[i] = dim % n
    sizes = [x._array.shape[d] for x, d in zip(leaves, dims, strict=True) if d is not None]
    if not sizes:
        raise ValueError("vmap: Expected at least one Tensor to vmap over")
    if any(s != sizes[0] for s in sizes):
        raise ValueError(f"vmap: Expected all tensors to have the same size in the mapped dimension, got sizes {sizes} "
                         "for the mapped dimension")
    return sizes[0], dims, leaves, spec


def hidden(x: Tensor, dim: int, level: Level) -> Any:
    """`x` with a dimension hidden in a level: the innermost that is running."""
    given = x
    if dim:
        x = fn.movedim(x, dim, 0)
    found = first_hidden(x, level)
    outer = given._shown_at if type(given) is BatchedTensor else ()
    if len(outer) == len(found._levels) - 1:
        found._shown_at = (*outer, dim)
    return found


def shown(x: Any, level: Level, dim: int | None, said: str) -> Any:
    """A result outside its level, its hidden dimension at `dim`.

    Args:
        said: how an error begins.
    """
    if not isinstance(x, Tensor):
        if dim is None:
            return x
        raise ValueError(f"{said} must only return Tensors, got type {type(x)}. Did you mean to set out_dims= to None "
                         "for output?")
    inside = type(x) is BatchedTensor and x._levels[-1] is level
    if dim is None:
        if inside:
            raise ValueError(f"{said} can not return a BatchedTensor when out_dim is None")
        return x
    if inside:
        assert isinstance(x, BatchedTensor)
        x = batched(x._value, x._levels[:-1])
    else:
        x = fn.expand(fn.unsqueeze(x, 0), (level.size, *x._array.shape))
    to = wrap_dim(dim, x._array.ndim)
    return fn.movedim(x, 0, to) if to else x


def _mapped(func: Callable[..., Any], size: int, dims: list[Any], leaves: list[Any], spec: TreeSpec, out_dims: Dims,
            randomness: str, kwargs: dict[str, Any]) -> Any:
    with level_of(size, randomness) as level, transform("vmap"):
        values = [x if d is None else hidden(x, d, level) for x, d in zip(leaves, dims, strict=True)]
        found = func(*spec.build(values), **kwargs)
        return unhidden(found, level, out_dims, func)


def unhidden(found: Any, level: Level, out_dims: Dims, func: Any) -> Any:
    """A nest of results outside their level."""
    outs, out_spec = tree_flatten(found)
    name = _name(func)
    out_leaves = _out_dims(out_dims, out_spec, name, found)
    said = f"vmap({name}, ...): `{name}`"
    return out_spec.build([shown(x, level, d, said) for x, d in zip(outs, out_leaves, strict=True)])


def _out_dims(out_dims: Dims, spec: TreeSpec, name: str, found: Any) -> list[Any]:
    given = tree_flatten(out_dims)[0]
    if not all(d is None or isinstance(d, int) for d in given):
        raise ValueError(f"vmap({name}, ..., out_dims={out_dims}): `out_dims` must be an int, None or a python "
                         "collection of ints representing where in the outputs the vmapped dimension should appear.")
    dims = broadcast_to(out_dims, spec)
    if dims is None and isinstance(found, Tensor) and isinstance(out_dims, tuple) and len(out_dims) == 1:
        dims = list(out_dims)
    if dims is None:
        raise ValueError(f"vmap({name}, ..., out_dims={out_dims})(<inputs>): out_dims is not compatible with the "
                         f"structure of `outputs`. out_dims has structure {tree_flatten(out_dims)[1]} but outputs has "
                         f"structure {spec}.")
    return dims


def _in_chunks(func: Callable[..., Any], size: int, dims: list[Any], leaves: list[Any], spec: TreeSpec, out_dims: Dims,
               randomness: str, kwargs: dict[str, Any], chunk: int) -> Any:
    parts: list[list[Any]] = []
    out_spec: Any = None
    state = None
    if randomness == "same":
        from .._tensor.creation.random import get_rng_state

        state = get_rng_state()
    for start in range(0, size, chunk):
        if state is not None and start:
            from .._tensor.creation.random import set_rng_state

            set_rng_state(state)
        length = min(chunk, size - start)
        piece = [x if d is None else fn.narrow(x, d, start, length) for x, d in zip(leaves, dims, strict=True)]
        found = _mapped(func, length, dims, piece, spec, out_dims, randomness, kwargs)
        outs, out_spec = tree_flatten(found)
        parts.append(outs)
    places = _out_dims(out_dims, out_spec, _name(func), out_spec.build(parts[0]))
    joined = [column[0] if d is None else fn.cat(list(column), dim=d)
              for column, d in zip(zip(*parts, strict=True), places, strict=True)]
    return out_spec.build(joined)


__all__ = ["hidden", "shown", "unhidden", "vmap"]
