"""Redistribution: the collectives that change the placements of a tensor, one dimension of the mesh at a time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..._tensor import functions as _functions
from ...c10d.collective_counts import functional
from .._async_collective_tensor import pending
from ..collectives import all_gather_into_tensor, all_to_all_single
from ..placement_types import Placement, Replicate
from ._dtensor_spec import DTensorSpec
from ._partial import reduced, reduced_part, summand
from ._sharding import is_shard, shard_order, shard_range, size_before

functions: Any = _functions


def steps(source: Sequence[Placement], target: Sequence[Placement]) -> list[tuple[int, Placement]]:
    """(dimension of the mesh, placement to change to), in an order in which each step is one collective.

    Where several dimensions of the mesh cut one dimension of the tensor, those that cut later are undone first.
    """
    result: list[tuple[int, Placement]] = []
    current = list(source)
    changed = [i for i in range(len(current)) if _differ(current[i], target[i])]
    touched: dict[int, int] = {}  # dimension of the tensor -> the earliest place in the order where it changes
    for order in (shard_order(source), shard_order(target)):
        for place, i in enumerate(order):
            for placement in (source[i], target[i]):
                if i in changed and is_shard(placement):
                    dim = placement.dim  # type: ignore[attr-defined]
                    touched[dim] = min(place, touched.get(dim, place))
    order = shard_order(source)
    for place in range(len(order) - 1, -1, -1):
        i = order[place]
        if is_shard(current[i]) and place > touched.get(current[i].dim, len(order)):  # type: ignore[attr-defined]
            result.append((i, Replicate()))
            current[i] = Replicate()
    result += [(i, target[i]) for i in shard_order(target) if _differ(current[i], target[i])]
    return result


def _differ(a: Placement, b: Placement) -> bool:
    return a != b or type(a) is not type(b)


def redistribute_local_tensor(local: Any, current: DTensorSpec, target: DTensorSpec, async_op: bool = False) -> Any:
    """This process's part after a change of the placements.

    Args:
        local: its part before.
        current: how the tensor is placed.
        target: how it is to be placed, on the same mesh.
        async_op: whether the last collective may go on; then the part is an `AsyncCollectiveTensor`.

    Raises:
        NotImplementedError: the meshes differ.
    """
    mesh = current.mesh
    if mesh != target.mesh:
        raise NotImplementedError("Cross device mesh comm not supported yet!")
    coordinate = mesh.get_coordinate()
    if coordinate is None:
        return local
    placements = list(current.placements)
    changes = steps(placements, target.placements)
    for mesh_dim, placement in changes:
        if async_op and (mesh_dim, placement) == changes[-1] and placement.is_replicate() and is_shard(
                placements[mesh_dim]):
            started = _started_gathering(local, current, placements, mesh_dim)
            if started is not None:
                return started
        local = _step(local, current, placements, mesh_dim, placement, coordinate)
        placements[mesh_dim] = placement
    return local


def _step(local: Any, spec: DTensorSpec, placements: list[Placement], mesh_dim: int, target: Placement,
          coordinate: list[int]) -> Any:
    mesh, source = spec.mesh, placements[mesh_dim]
    size, rank = mesh.size(mesh_dim), coordinate[mesh_dim]
    group = mesh.get_group(mesh_dim)

    def before(dim: int, after: Placement) -> int:
        changed = [*placements[:mesh_dim], after, *placements[mesh_dim + 1:]]
        return size_before(spec.shape, mesh.shape, coordinate, changed, mesh_dim, dim)

    if size == 1 and not (source.is_partial() and not target.is_partial()):
        return local
    if is_shard(source):
        dim: int = source.dim  # type: ignore[attr-defined]
        length = before(dim, source)
        if is_shard(target):
            to: int = target.dim  # type: ignore[attr-defined]
            if to != dim:
                return exchanged(local, dim, length, to, local.shape[to], group, rank)
        whole = gathered(local, dim, length, group)
        if target.is_replicate():
            return whole
        if target.is_partial():
            return summand(target, whole, rank, size)  # type: ignore[arg-type]
        return part_of(whole, dim, size, rank)
    if source.is_partial():
        if is_shard(target):
            to = target.dim  # type: ignore[attr-defined]
            return scattered(source, local, to, group, rank)
        whole = reduced(source, local, group)  # type: ignore[arg-type]
        return whole if target.is_replicate() else summand(target, whole, rank, size)  # type: ignore[arg-type]
    if is_shard(target):
        return part_of(local, target.dim, size, rank)  # type: ignore[attr-defined]
    return summand(target, local, rank, size)  # type: ignore[arg-type]


def _started_gathering(local: Any, spec: DTensorSpec, placements: list[Placement], mesh_dim: int) -> Any:
    """The result of an `all_gather` that goes on; None if its parts have to be put together afterwards."""
    size, dim = spec.mesh.size(mesh_dim), placements[mesh_dim].dim  # type: ignore[attr-defined]
    cuts = [each for each in placements if is_shard(each) and each.dim == dim]  # type: ignore[attr-defined]
    if dim or size == 1 or len(cuts) > 1 or spec.shape[0] % size:
        return None
    own = local.detach().contiguous()
    out = own.new_empty((size * own.shape[0], *own.shape[1:]))
    with functional("all_gather_into_tensor"):
        return pending(out, all_gather_into_tensor(out, own, spec.mesh.get_group(mesh_dim), async_op=True))


def part_of(whole: Any, dim: int, parts: int, index: int) -> Any:
    """A part of a tensor, in memory of its own."""
    begin, length = shard_range(whole.shape[dim], parts, index)
    return whole.narrow(dim, begin, length).contiguous().clone() if length != whole.shape[dim] else whole


def _padded(x: Any, dim: int, length: int) -> Any:
    """A tensor with zeros behind it along a dimension."""
    missing = length - x.shape[dim]
    if not missing:
        return x
    shape = list(x.shape)
    shape[dim] = missing
    return functions.cat([x, x.new_zeros(shape)], dim)


def gathered(local: Any, dim: int, length: int, group: Any) -> Any:
    """The parts of all processes, joined along a dimension.

    Args:
        length: the size of the joined dimension.
    """
    size = group.size()
    full = -(-length // size)
    own = _padded(local.detach(), dim, full).contiguous()
    out = own.new_empty((size * own.shape[0] if own.ndim else size, *own.shape[1:]))
    with functional("all_gather_into_tensor"):
        all_gather_into_tensor(out, own, group)
    if dim:
        out = functions.cat(functions.chunk(out, size, 0), dim)
    return out.narrow(dim, 0, length) if size * full != length else out


def scattered(placement: Any, local: Any, dim: int, group: Any, rank: int) -> Any:
    """A process's part of the reduction of the tensors of all processes."""
    size, length = group.size(), local.shape[dim]
    full = -(-length // size)
    padded = _padded(local.detach(), dim, full * size)
    if dim:
        padded = functions.cat(functions.chunk(padded, size, dim))
    out = reduced_part(placement, padded, group)
    own = shard_range(length, size, rank)[1]
    return out.narrow(dim, 0, own).contiguous() if own != full else out


def exchanged(local: Any, dim: int, length: int, to: int, to_length: int, group: Any, rank: int) -> Any:
    """A part along dimension `to`, of parts along dimension `dim`.

    Args:
        length: the size of the whole along `dim`.
        to_length: the size of the whole along `to`.
    """
    size = group.size()
    own = local.detach()
    pieces = [own.narrow(to, *shard_range(to_length, size, i)).contiguous().view(-1) for i in range(size)]
    shape = list(own.shape)
    shape[to] = shard_range(to_length, size, rank)[1]
    shapes = []
    for i in range(size):
        shape[dim] = shard_range(length, size, i)[1]
        shapes.append(tuple(shape))
    counts = [_count(each) for each in shapes]
    out = own.new_empty((sum(counts),))
    with functional("all_to_all_single"):
        all_to_all_single(out, functions.cat(pieces), counts, [each.numel() for each in pieces], group)
    return functions.cat([each.view(s) for each, s in zip(functions.split(out, counts), shapes, strict=True)], dim)


def _count(shape: tuple[int, ...]) -> int:
    count = 1
    for n in shape:
        count *= n
    return count


__all__ = ["exchanged", "gathered", "part_of", "redistribute_local_tensor", "scattered", "steps"]
