"""`vmap`: vectorizes a function over a dimension of its arguments.

The module is `torch._functorch.vmap`, too. `vmap` calls `_process_batched_inputs`, `_create_batched_inputs` and
`_unwrap_batched` by their global names: packages whose containers have batch dimensions of their own replace them.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from .._tensor import Tensor
from .._tensor import functions as fn
from .._tensor.dispatch.batched_tensor import BatchedTensor, Level, active_levels, make_batched, vmap_level
from .._tensor.dispatch.vmap_gradients import hide_first_dim
from ..shapes import wrap_dim
from ..trees import TreeSpec, tree_flatten, tree_unflatten
from ..trees import broadcast_to as _broadcast_to_and_flatten
from .derivatives import transform

Dims = Any  # an int, None, or a pytree of them


def _get_name(func: Any) -> str:
    return func.__name__ if hasattr(func, "__name__") else repr(func)


def vmap(func: Callable[..., Any], in_dims: Dims = 0, out_dims: Dims = 0, randomness: str = "error", *,
         chunk_size: int | None = None) -> Callable[..., Any]:
    """A function that applies `func` to all elements of a batch at once.

    The result is that of a loop over the elements, stacked; each operator runs once, on the entire batch.
    See https://docs.pytorch.org/docs/stable/generated/torch.vmap.html

    Args:
        in_dims: the batch dimension of each argument; None: the argument is not batched. An int applies to all
            arguments; a pytree of ints matches nested arguments.
        out_dims: the batch dimension of each result.
        randomness: random operators raise an "error", or draw "different" or the "same" numbers for each element.
        chunk_size: the maximum number of elements per call of `func`.

    Raises:
        ValueError: `in_dims`, `out_dims` or the sizes do not fit.
        RuntimeError: `func` reads a value (`item`, `if`), or draws random numbers under "error".

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
        if out_dims.__class__ is not int:
            _check_out_dims(out_dims, _get_name(func))
        size, flat_dims, leaves, spec = _process_batched_inputs(in_dims, args, func)
        if chunk_size is None:
            return _mapped(func, size, flat_dims, leaves, spec, out_dims, randomness, kwargs)
        return _in_chunks(func, size, flat_dims, leaves, spec, out_dims, randomness, kwargs, chunk_size)

    return wrapped


def _process_batched_inputs(in_dims: Dims, args: tuple[Any, ...], func: Any,
                            negative: bool = True) -> tuple[int, list[Any], list[Any], TreeSpec]:
    """The batch size, the batch dimension of each leaf of the arguments, the leaves, and the pytree spec.

    Args:
        negative: whether dimensions may count from the end.
    """
    name = _get_name(func)
    if not isinstance(in_dims, (int, tuple)):
        raise ValueError(f"vmap({name}, in_dims={in_dims}, ...)(<inputs>): expected `in_dims` to be int or a "
                         "(potentially nested) tuple matching the structure of inputs, got: "
                         f"{type(in_dims)}.")
    if not args:
        raise ValueError(f"vmap({name})(<inputs>): got no inputs. Maybe you forgot to add inputs, or you are trying to "
                         "vmap over a function with no inputs. The latter is unsupported.")
    leaves, spec = tree_flatten(args)
    dims = _broadcast_to_and_flatten(in_dims, spec)
    if dims is None:
        raise ValueError(f"vmap({name}, in_dims={in_dims}, ...)(<inputs>): in_dims is not compatible with the "
                         f"structure of `inputs`. in_dims has structure {tree_flatten(in_dims)[1]} but inputs has "
                         f"structure {spec}.")
    prefix = f"vmap({name}, in_dims={in_dims}, ...)(<inputs>): "
    for i, (x, dim) in enumerate(zip(leaves, dims, strict=True)):
        if dim is None:
            continue
        if not isinstance(dim, int):
            raise ValueError(f"{prefix}Got in_dim={dim} for an input but in_dim must be either an integer dimension or "
                             "None.")
        if not isinstance(x, Tensor):
            raise ValueError(f"{prefix}Got in_dim={dim} for an input but the input is of type {type(x)}. We cannot "
                             "vmap over non-Tensor arguments, please use None as the respective in_dim")
        n = x._array.ndim
        least = -n if negative else 0
        if not least <= dim < n:
            raise ValueError(f"{prefix}Got in_dim={dim} for some input, but that input is a Tensor of dimensionality "
                             f"{n} so expected in_dim to satisfy {f'-{n}' if negative else 0} <= in_dim < {n}.")
        dims[i] = dim % n
    sizes = [x._array.shape[d] for x, d in zip(leaves, dims, strict=True) if d is not None]
    if not sizes:
        raise ValueError("vmap: Expected at least one Tensor to vmap over")
    if any(s != sizes[0] for s in sizes):
        raise ValueError(f"vmap: Expected all tensors to have the same size in the mapped dimension, got sizes {sizes} "
                         "for the mapped dimension")
    return sizes[0], dims, leaves, spec


def hide_dim(x: Tensor, dim: int, level: Level) -> Any:
    """`x` with a dimension hidden as the batch dimension of the innermost level."""
    argument = x
    if dim:
        x = fn.movedim(x, dim, 0)
    batched = hide_first_dim(x, level)
    outer = argument._in_dims if type(argument) is BatchedTensor else ()
    if len(outer) == len(batched._levels) - 1:
        batched._in_dims = (*outer, dim)
    return batched


def expose_dim(x: Any, level: Level, dim: int | None, prefix: str) -> Any:
    """A result outside its level, with the batch dimension at `dim`.

    Args:
        prefix: the beginning of error messages.
    """
    if not isinstance(x, Tensor):
        if dim is None:
            return x
        raise ValueError(f"{prefix} must only return Tensors, got type {type(x)}. Did you mean to set out_dims= to "
                         "None for output?")
    inside = type(x) is BatchedTensor and x._levels[-1] is level
    if inside and dim == 0:
        return make_batched(x._value, x._levels[:-1])
    if dim is None:
        if inside:
            raise ValueError(f"{prefix} can not return a BatchedTensor when out_dim is None")
        return x
    if inside:
        assert isinstance(x, BatchedTensor)
        x = make_batched(x._value, x._levels[:-1])
    else:
        x = fn.expand(fn.unsqueeze(x, 0), (level.size, *x._array.shape))
    to = wrap_dim(dim, x._array.ndim)
    return fn.movedim(x, 0, to) if to else x


def _mapped(func: Callable[..., Any], size: int, dims: list[Any], leaves: list[Any], spec: TreeSpec, out_dims: Dims,
            randomness: str, kwargs: dict[str, Any]) -> Any:
    with vmap_level(size, randomness) as level, transform("vmap"):
        results = func(*_create_batched_inputs(dims, leaves, level.depth, spec), **kwargs)
        return _unwrap_batched(results, out_dims, level.depth, size, func)


def map_over_first(func: Callable[..., Any], tensors: list[Any], out_dims: Dims = 0, randomness: str = "error") -> Any:
    """`vmap(func, 0, out_dims, randomness)(*tensors)`."""
    if not tensors:
        return vmap(func, 0, out_dims, randomness)()  # raises
    with vmap_level(tensors[0]._array.shape[0], randomness) as level, transform("vmap"):
        return expose_results(func(*[hide_dim(x, 0, level) for x in tensors]), level, out_dims, func)


def _level(number: int) -> Level:
    """The running `vmap` at a depth of transforms."""
    for level in active_levels():
        if level.depth == number:
            return level
    raise RuntimeError(f"no vmap runs at depth {number}")


def _add_batch_dim(x: Tensor, batch_dim: int, level: int) -> Any:
    """`x` with a dimension hidden as the batch dimension of a level."""
    return hide_dim(x, wrap_dim(batch_dim, x._array.ndim), _level(level))


def _remove_batch_dim(x: Tensor, level: int, batch_size: int, out_dim: int) -> Any:
    """A tensor outside a level, with the batch dimension at `out_dim`; it is repeated if it is not batched."""
    return expose_dim(x, _level(level), out_dim, "")


def _maybe_remove_batch_dim(name: str, batched_output: Any, vmap_level: int, batch_size: int,
                            out_dim: int | None) -> Any:
    """A result outside a level.

    Args:
        name: of the function, for error messages.
    """
    return expose_dim(batched_output, _level(vmap_level), out_dim, f"vmap({name}, ...): `{name}`")


def _create_batched_inputs(flat_in_dims: list[Any], flat_args: list[Any], vmap_level: int, args_spec: TreeSpec) -> Any:
    """The arguments inside a level."""
    return tree_unflatten([x if d is None else _add_batch_dim(x, d, vmap_level)
                           for x, d in zip(flat_args, flat_in_dims, strict=True)], args_spec)


def _unwrap_batched(batched_outputs: Any, out_dims: Dims, vmap_level: int, batch_size: int, func: Any) -> Any:
    """The results outside a level."""
    return expose_results(batched_outputs, _level(vmap_level), out_dims, func)


def expose_results(results: Any, level: Level, out_dims: Dims, func: Any) -> Any:
    """A pytree of results outside their level."""
    name = _get_name(func)
    if out_dims.__class__ is int and isinstance(results, Tensor):
        return expose_dim(results, level, out_dims, f"vmap({name}, ...): `{name}`")
    outs, out_spec = tree_flatten(results)
    out_leaves = _out_dims(out_dims, out_spec, name, results)
    prefix = f"vmap({name}, ...): `{name}`"
    return out_spec.unflatten([expose_dim(x, level, d, prefix) for x, d in zip(outs, out_leaves, strict=True)])


def _check_out_dims(out_dims: Dims, name: str) -> None:
    if not all(d is None or isinstance(d, int) for d in tree_flatten(out_dims)[0]):
        raise ValueError(f"vmap({name}, ..., out_dims={out_dims}): `out_dims` must be an int, None or a python "
                         "collection of ints representing where in the outputs the vmapped dimension should appear.")


def _out_dims(out_dims: Dims, spec: TreeSpec, name: str, results: Any) -> list[Any]:
    dims = _broadcast_to_and_flatten(out_dims, spec)
    if dims is None and isinstance(results, Tensor) and isinstance(out_dims, tuple) and len(out_dims) == 1:
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
        from .._tensor.creation.generators import get_rng_state

        state = get_rng_state()
    for start in range(0, size, chunk):
        if state is not None and start:
            from .._tensor.creation.generators import set_rng_state

            set_rng_state(state)
        length = min(chunk, size - start)
        piece = [x if d is None else fn.narrow(x, d, start, length) for x, d in zip(leaves, dims, strict=True)]
        results = _mapped(func, length, dims, piece, spec, out_dims, randomness, kwargs)
        outs, out_spec = tree_flatten(results)
        parts.append(outs)
    if out_spec is None:  # of no part at all
        raise AssertionError("arg_spec must not be None")
    joined_dims = _out_dims(out_dims, out_spec, _get_name(func), out_spec.unflatten(parts[0]))
    joined = [column[0] if d is None else fn.cat(list(column), dim=d)
              for column, d in zip(zip(*parts, strict=True), joined_dims, strict=True)]
    return out_spec.unflatten(joined)


__all__ = ["expose_dim", "expose_results", "hide_dim", "vmap"]
