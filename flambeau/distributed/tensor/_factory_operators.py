"""Operators without a declaration on distributed tensors: copies of metadata, factories like a tensor, reads."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..._tensor import functions as _functions
from ..._tensor.overriding.dispatch import without_handlers
from ..placement_types import Replicate
from ._dtensor import DTensor, gradient_placements
from ._dtensor_spec import spec_of
from ._random import distribute_region
from ._redistribute import redistribute_local_tensor
from ._sharding import row_major_strides

functions: Any = _functions

#: name of an overload -> what it does
CALLS: dict[str, Callable[..., Any]] = {}


def _whole(x: DTensor) -> Any:
    """The whole tensor, without history."""
    spec = x._spec
    return redistribute_local_tensor(x._local_tensor, spec, spec.with_placements([Replicate()] * spec.mesh.ndim))


def _detach(x: DTensor) -> DTensor:
    with without_handlers():
        return DTensor(x._local_tensor.detach(), x._spec)


def _item(x: DTensor) -> Any:
    """The element of this process's part, as in PyTorch: what is pending is not reduced, so that one may ask alone."""
    return x._local_tensor.item()


def _compared(name: str) -> Callable[..., bool]:
    def compare(a: Any, b: Any, **options: Any) -> bool:
        whole = [_whole(x) if isinstance(x, DTensor) else x for x in (a, b)]
        return bool(getattr(functions, name)(*whole, **options))

    return compare


def _options(kwargs: dict[str, Any]) -> dict[str, Any]:
    return {name: kwargs[name] for name in ("dtype", "device") if kwargs.get(name) is not None}


def _like(name: str) -> Callable[..., DTensor]:
    """A new tensor placed as another one; what is pending there is replicated."""
    def make(x: DTensor, *values: Any, **kwargs: Any) -> DTensor:
        local = getattr(functions, name)(x._local_tensor, *values, **_options(kwargs))
        return DTensor(local, spec_of(x._spec.mesh, gradient_placements(x._spec.placements), x._spec.shape,
                                      x._spec.stride, local.dtype))

    return make


def _drawn_like(name: str) -> Callable[..., DTensor]:
    """Random numbers, of which each process draws those of its part."""
    def make(x: DTensor, *values: Any, generator: Any = None, **kwargs: Any) -> DTensor:
        options = {**_options(kwargs), **({} if generator is None else {"generator": generator})}
        with without_handlers():
            spec = spec_of(x._spec.mesh, gradient_placements(x._spec.placements), x._spec.shape,
                           row_major_strides(x._spec.shape), options.get("dtype", x.dtype))
            with distribute_region(spec, generator):
                local = getattr(functions, name)(x._local_tensor, *values, **options)
            return DTensor(local, spec)

    return make


def _new(name: str) -> Callable[..., DTensor]:
    """A new tensor of another size: placed alike if the size is the same, else replicated."""
    def make(x: DTensor, size: Sequence[int], *values: Any, **kwargs: Any) -> DTensor:
        spec, size = x._spec, tuple(size)
        placements = gradient_placements(spec.placements) if size == tuple(spec.shape) else (
            (Replicate(),) * spec.mesh.ndim)
        target = spec_of(spec.mesh, placements, size, row_major_strides(size), spec.dtype)
        with without_handlers():
            local = getattr(x._local_tensor, name)(target.local_shape(), *values, **_options(kwargs))
        return DTensor(local, spec_of(spec.mesh, placements, size, row_major_strides(size), local.dtype))

    return make


CALLS.update({
    "aten.detach": _detach, "aten._local_scalar_dense": _item, "aten.item": _item,
    "aten.equal": _compared("equal"), "aten.allclose": _compared("allclose"),
    **{f"aten.{name}": _like(name) for name in ("zeros_like", "ones_like", "empty_like", "full_like")},
    **{f"aten.{name}": _drawn_like(name) for name in ("rand_like", "randn_like", "randint_like")},
    "aten.randint_like.low_dtype": _drawn_like("randint_like"),
    **{f"aten.{name}": _new(name) for name in ("new_zeros", "new_ones", "new_empty", "new_full")},
})

__all__ = ["CALLS"]
