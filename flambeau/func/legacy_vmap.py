"""`torch._vmap_internals`: the deprecated `vmap`, whose results are one tensor or a tuple of tensors."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from typing import Any

from .._tensor import Tensor
from .._tensor.dispatch.batched_tensor import vmap_level
from ..trees import tree_unflatten
from .batches import _get_name, _process_batched_inputs, expose_dim, hide_dim
from .derivatives import transform

__all__ = ["vmap"]


def vmap(func: Callable[..., Any], in_dims: Any = 0, out_dims: Any = 0) -> Callable[..., Any]:
    """A function that applies `func` to all elements of a batch at once; `torch.vmap` is its successor.

    Args:
        in_dims: the batch dimension of each argument, not negative; None: the argument is not batched.
        out_dims: an int, or a tuple with the batch dimension of each result.

    Raises:
        ValueError: `in_dims`, `out_dims` or the sizes do not fit, or a result is no tensor.

    >>> import flambeau as torch, warnings
    >>> from flambeau.func.legacy_vmap import vmap
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore")
    ...     dot = vmap(torch.dot)
    >>> dot(torch.ones(2, 3), torch.tensor([[1., 2., 3.], [4., 5., 6.]]))
    tensor([ 6., 15.])
    """
    warnings.warn("Please use `torch.vmap` instead of `torch._vmap_internals.vmap`.", FutureWarning, stacklevel=2)
    return _vmap(func, in_dims, out_dims)


def _vmap(func: Callable[..., Any], in_dims: Any = 0, out_dims: Any = 0,
          allow_none_pass_through: bool = False) -> Callable[..., Any]:
    """`vmap` without its warning; with `allow_none_pass_through` a result may be None."""
    @functools.wraps(func)
    def wrapped(*args: Any) -> Any:
        name = _get_name(func)
        if not isinstance(out_dims, int) and not (isinstance(out_dims, tuple)
                                                  and all(isinstance(d, int) for d in out_dims)):
            raise ValueError(f"vmap({name}, ..., out_dims={out_dims}): `out_dims` must be an int or a tuple of int "
                             "representing where in the outputs the vmapped dimension should appear.")
        size, dims, leaves, spec = _process_batched_inputs(in_dims, args, func, negative=False)
        with vmap_level(size, "error") as level, transform("vmap"):
            results = func(*tree_unflatten([x if d is None else hide_dim(x, d, level)
                                            for x, d in zip(leaves, dims, strict=True)], spec))
            if not allow_none_pass_through:
                _check_results(results, name)
            return _exposed(results, out_dims, level, name, allow_none_pass_through)

    return wrapped


def _check_results(results: Any, name: str) -> None:
    prefix = f"vmap({name}, ...): `{name}` must only return Tensors, got type"
    if isinstance(results, Tensor):
        return
    if not isinstance(results, tuple):
        raise ValueError(f"{prefix} {type(results)} as the return.")
    for i, result in enumerate(results):
        if not isinstance(result, Tensor):
            raise ValueError(f"{prefix} {type(result)} for return {i}.")


def _exposed(results: Any, out_dims: Any, level: Any, name: str, with_none: bool) -> Any:
    """The results outside their level."""
    count = len(results) if isinstance(results, tuple) else 1
    dims = out_dims if isinstance(out_dims, tuple) else (out_dims,) * count
    if len(dims) != count:
        raise ValueError(f"vmap({name}, ..., out_dims={out_dims}): `out_dims` must have one dim per output (got "
                         f"{count} outputs) of {name}.")
    if isinstance(results, Tensor):
        return expose_dim(results, level, dims[0], "")
    return tuple(None if x is None and with_none else expose_dim(x, level, d, "")
                 for x, d in zip(results, dims, strict=False))
