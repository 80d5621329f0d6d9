"""`register_sharding`: rules of operators on distributed tensors that programs give."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..._tensor import Tensor
from ..._tensor import functions as _functions
from ..._tensor.overriding.dispatch import without_handlers
from ...trees import tree_flatten, tree_unflatten
from ..placement_types import Placement, Replicate
from ._dtensor import DTensor
from ._dtensor_spec import DTensorSpec, spec_of
from ._ops.strategy import cost
from ._redistribute import redistribute_local_tensor
from ._sharding import is_shard

functions: Any = _functions
#: the placements of the outputs, and of the inputs: None for those that are no tensors
Sharding = tuple[Sequence[Placement | None], Sequence[Placement | None]]
Rule = Callable[..., Sequence[Sharding]]

#: overload -> its rule
registered: dict[Any, Rule] = {}


def register_sharding(op: Any) -> Callable[[Rule], Rule]:
    """Decorate a function that lists how an operator may be placed: for new operators, or instead of the known rule.

    The function gets the operator's arguments, with a description (`shape`, `ndim`, `dtype`, `placements`) in the place
    of each tensor. It returns pairs for one dimension of the mesh: the placements of the outputs, and of the inputs.

    Args:
        op: an overload of `torch.ops`, or several.

    >>> import flambeau as torch
    >>> from flambeau.distributed.tensor import Replicate, Shard, distribute_tensor
    >>> from flambeau.distributed.tensor.experimental import register_sharding
    >>> @register_sharding(torch.ops.aten.cummax.default)
    ... def rows(x, dim):
    ...     return [([Replicate()] * 2, [Replicate(), None]), ([Shard(0)] * 2, [Shard(0), None])]
    >>> dist = torch.distributed
    >>> dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    >>> x = distribute_tensor(torch.eye(2), dist.init_device_mesh("cpu", (1,)), [Shard(0)])
    >>> torch.cummax(x, 1)[0].placements
    (Shard(dim=0),)
    >>> dist.destroy_process_group()
    """
    def register(function: Rule) -> Rule:
        for overload in op if isinstance(op, list) else [op]:
            registered[overload] = function
        return function

    return register


def run_registered(func: Any, rule: Rule, args: tuple[Any, ...], kwargs: dict[str, Any],
                   outputs: Sequence[tuple[Any, Any, Any]] | None = None) -> Any:
    """The result of an operator under a registered rule.

    Args:
        func: the overload.
        rule: its rule.
        args, kwargs: its arguments.
        outputs: (shape, strides, dtype) of each result; default: found with meta tensors.

    Raises:
        RuntimeError: no placement that the rule lists is possible.
    """
    leaves, tree = tree_flatten((args, kwargs))
    tensors = [i for i, x in enumerate(leaves) if isinstance(x, DTensor)]
    mesh = leaves[tensors[0]]._spec.mesh
    for i, x in enumerate(leaves):
        if isinstance(x, Tensor) and not isinstance(x, DTensor):
            leaves[i] = DTensor(x, spec_of(mesh, [Replicate()] * mesh.ndim, x.shape, x.stride(), x.dtype))
            tensors.append(i)
    tensors.sort()
    specs = [leaves[i]._spec for i in tensors]
    described = [x._spec if isinstance(x, DTensor) else x for x in leaves]
    given, named = tree_unflatten(described, tree)
    listed = rule(*given, **named)
    chosen = [_cheapest(func, listed, specs, mesh, mesh_dim) for mesh_dim in range(mesh.ndim)]
    locals_ = list(leaves)
    for number, (i, spec) in enumerate(zip(tensors, specs, strict=True)):
        target = spec.with_placements([inputs[number] for _, inputs in chosen])
        locals_[i] = redistribute_local_tensor(leaves[i]._local_tensor, spec, target)
    if outputs is None:
        outputs = _metadata(func, leaves, tree)
    given, named = tree_unflatten(locals_, tree)
    with without_handlers():
        result = func(*given, **named)
    results = result if isinstance(result, (tuple, list)) else [result]
    made = [DTensor(each, spec_of(mesh, [placed[k] for placed, _ in chosen], *meta))
            for k, (each, meta) in enumerate(zip(results, outputs, strict=True))]
    return made[0] if results is not result else type(result)(made) if type(result) in (list, tuple) else tuple(made)


def _cheapest(func: Any, listed: Sequence[Sharding], specs: Sequence[DTensorSpec], mesh: Any,
              mesh_dim: int) -> tuple[list[Placement], list[Placement]]:
    """The placements on one dimension of the mesh for which a process sends the fewest bytes."""
    best, best_cost = None, float("inf")
    for outputs, inputs in listed:
        wanted = [each for each in inputs if each is not None]
        if any(is_shard(p) and spec.shape[p.dim] < mesh.size(mesh_dim)  # type: ignore[attr-defined]
               for spec, p in zip(specs, wanted, strict=True)):
            continue
        total = sum(cost(spec, mesh_dim, placement) for spec, placement in zip(specs, wanted, strict=True))
        if total < best_cost:
            best, best_cost = ([each for each in outputs if each is not None], wanted), total
    if best is None:
        raise RuntimeError(f"{func}: the function of register_sharding lists no placements that are possible for "
                           f"{[spec.placements for spec in specs]} of shapes {[tuple(s.shape) for s in specs]}")
    return best


def _metadata(func: Any, leaves: Sequence[Any], tree: Any) -> list[tuple[Any, Any, Any]]:
    """(shape, strides, dtype) of the results, from meta tensors."""
    with without_handlers():
        meta = [functions.empty_strided(tuple(x._spec.shape), x._spec.stride, dtype=x.dtype, device="meta")
                if isinstance(x, DTensor) else x for x in leaves]
        args, kwargs = tree_unflatten(meta, tree)
    result = func(*args, **kwargs)
    return [(tuple(x.shape), tuple(x.stride()), x.dtype)
            for x in (result if isinstance(result, (tuple, list)) else [result])]


__all__ = ["register_sharding", "registered", "run_registered"]
