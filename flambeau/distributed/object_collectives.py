"""Collectives of objects, which travel pickled: use them among processes that trust each other."""

from __future__ import annotations

import io
import pickle
from typing import Any

import numpy as np

from .._tensor import Tensor
from .._tensor.tensor import wrap
from ..c10d.process_group import ProcessGroup
from .collective_checks import _canonicalize_group_rank
from .collectives import all_gather, broadcast, gather, scatter
from .groups.queries import _get_group_size, _group_or_default_group, _rank_not_in_group, _warn_not_in_group
from .point_to_point import recv, send

__all__ = ["all_gather_object", "broadcast_object_list", "gather_object", "recv_object_list", "scatter_object_list",
           "send_object_list"]

_pickler, _unpickler = pickle.Pickler, pickle.Unpickler


def _object_to_tensor(obj: Any, device: Any = None, group: Any = None) -> tuple[Tensor, Tensor]:
    """An object as bytes, and their number."""
    file = io.BytesIO()
    _pickler(file).dump(obj)
    data = np.frombuffer(bytearray(file.getvalue()), np.uint8)
    return wrap(data), wrap(np.array([data.size], np.int64))


def _tensor_to_object(tensor: Tensor, tensor_size: Any, group: Any = None) -> Any:
    """The object of the first bytes of a tensor."""
    return _unpickler(io.BytesIO(tensor.detach()._array.tobytes()[:int(tensor_size)])).load()


def _bytes(size: int) -> Tensor:
    return wrap(np.zeros(size, np.uint8))


def _integers(count: int) -> Tensor:
    return wrap(np.zeros(count, np.int64))


def _padded(tensor: Tensor, size: int) -> Tensor:
    out = _bytes(size)
    out._array[:tensor.numel()] = tensor._array
    return out


def all_gather_object(object_list: list[Any], obj: Any, group: ProcessGroup | None = None) -> None:
    """Give all processes the objects of all.

    Args:
        object_list: the list to write to, an element for each process.
        obj: this process's object.
        group: the processes; all if None.

    >>> import flambeau as torch
    >>> dist = torch.distributed
    >>> dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    >>> objects = [None]
    >>> dist.all_gather_object(objects, {"loss": 0.5}); objects
    [{'loss': 0.5}]
    >>> dist.destroy_process_group()
    """
    if _rank_not_in_group(group):
        _warn_not_in_group("all_gather_object")
        return
    pg = _group_or_default_group(group)
    data, own_size = _object_to_tensor(obj)
    sizes = [_integers(1) for _ in range(_get_group_size(pg))]
    all_gather(sizes, own_size, group=pg)
    longest = max(int(each.item()) for each in sizes)
    received = [_bytes(longest) for _ in sizes]
    all_gather(received, _padded(data, longest), group=pg)
    for i, tensor in enumerate(received):
        object_list[i] = _tensor_to_object(tensor, sizes[i].item())


def gather_object(obj: Any, object_gather_list: list[Any] | None = None, dst: int | None = None,
                  group: ProcessGroup | None = None, group_dst: int | None = None) -> None:
    """Copy the objects of all processes to one of them.

    Args:
        obj: this process's object.
        object_gather_list: at the destination, the list to write to.
        dst: the destination's global rank, 0 if None.
        group: the processes; all if None.
        group_dst: the destination's rank in the group, instead of `dst`.

    Raises:
        ValueError: the list is missing at the destination, or there is one elsewhere (PyTorch's texts).
    """
    pg = _group_or_default_group(group)
    if _rank_not_in_group(pg):
        _warn_not_in_group("gather_object")
        return
    root = _canonicalize_group_rank(pg, 0 if dst is None and group_dst is None else dst, group_dst)
    own = pg.rank()
    if own == root:
        if not object_gather_list:
            raise ValueError("Argument ``gather_list`` must be specified on destination rank.")
    elif object_gather_list:
        raise ValueError("Argument ``gather_list`` must NOT be specified on non-destination ranks.")
    data, own_size = _object_to_tensor(obj)
    sizes = [_integers(1) for _ in range(pg.size())]
    all_gather(sizes, own_size, group=pg)
    longest = max(int(each.item()) for each in sizes)
    received = [_bytes(longest) for _ in sizes] if own == root else None
    gather(_padded(data, longest), received, group=pg, group_dst=root)
    for i, tensor in enumerate(received or ()):
        assert object_gather_list is not None, "Must provide object_gather_list on dst rank"
        object_gather_list[i] = _tensor_to_object(tensor, sizes[i].item())


def _joined(object_list: list[Any]) -> tuple[Tensor, Tensor]:
    """Objects as bytes, one after another, and their numbers."""
    pairs = [_object_to_tensor(each) for each in object_list]
    return (wrap(np.concatenate([data._array for data, _ in pairs]) if pairs else np.zeros(0, np.uint8)),
            wrap(np.concatenate([size._array for _, size in pairs]) if pairs else np.zeros(0, np.int64)))


def _store_objects(object_list: list[Any], data: Tensor, sizes: Tensor) -> None:
    start = 0
    for i, size in enumerate(sizes._array.tolist()):
        object_list[i] = _tensor_to_object(data[start:start + size], size)
        start += size


def broadcast_object_list(object_list: list[Any], src: int | None = None, group: ProcessGroup | None = None,
                          device: Any = None, group_src: int | None = None) -> None:
    """Copy the objects of a list from one process to all.

    Args:
        object_list: the list that is sent or written to, of the same length everywhere.
        src: the sender's global rank, 0 if None.
        group: the processes; all if None.
        device: where the bytes are; the CPU.
        group_src: the sender's rank in the group, instead of `src`.
    """
    pg = _group_or_default_group(group)
    if _rank_not_in_group(pg):
        _warn_not_in_group("broadcast_object_list")
        return
    root = _canonicalize_group_rank(pg, 0 if src is None and group_src is None else src, group_src)
    sends = pg.rank() == root
    data, sizes = _joined(object_list) if sends else (_bytes(0), _integers(len(object_list)))
    broadcast(sizes, group_src=root, group=pg)
    if not sends:
        data = _bytes(int(sizes._array.sum()))
    broadcast(data, group_src=root, group=pg)
    if not sends:
        _store_objects(object_list, data, sizes)


def scatter_object_list(scatter_object_output_list: list[Any], scatter_object_input_list: list[Any] | None = None,
                        src: int | None = None, group: ProcessGroup | None = None,
                        group_src: int | None = None) -> None:
    """Copy one object to each process from one of them.

    Args:
        scatter_object_output_list: a list whose first element is written to.
        scatter_object_input_list: at the source, an object for each process.
        src: the source's global rank, 0 if None.
        group: the processes; all if None.
        group_src: the source's rank in the group, instead of `src`.

    Raises:
        ValueError: the output list is empty, or the input list is missing at the source (PyTorch's texts).
    """
    pg = _group_or_default_group(group)
    if _rank_not_in_group(pg):
        _warn_not_in_group("scatter_object_list")
        return
    if not isinstance(scatter_object_output_list, list) or not scatter_object_output_list:
        raise ValueError("Expected argument scatter_object_output_list to be a list of size at least 1.")
    root = _canonicalize_group_rank(pg, 0 if src is None and group_src is None else src, group_src)
    sends = pg.rank() == root
    pairs = []
    if sends:
        if scatter_object_input_list is None:
            raise ValueError("source rank must provide non-None scatter_object_input_list")
        pairs = [_object_to_tensor(each) for each in scatter_object_input_list]
    longest = wrap(np.array([max((data.numel() for data, _ in pairs), default=0)], np.int64))
    broadcast(longest, group_src=root, group=pg)
    received, size = _bytes(int(longest.item())), _integers(1)
    scatter(received, [_padded(data, received.numel()) for data, _ in pairs] or None, group_src=root, group=pg)
    scatter(size, [each for _, each in pairs] or None, group_src=root, group=pg)
    scatter_object_output_list[0] = _tensor_to_object(received, size.item())


def send_object_list(object_list: list[Any], dst: int | None = None, group: ProcessGroup | None = None,
                     device: Any = None, group_dst: int | None = None, use_batch: bool = False) -> None:
    """Send the objects of a list to one process.

    Args:
        object_list: the objects.
        dst: the receiver's global rank.
        group: the processes among which they are sent; all if None.
        device: where the bytes are; the CPU.
        group_dst: the receiver's rank in the group, instead of `dst`.
        use_batch: without effect.

    Raises:
        ValueError: the receiver is this process.
    """
    pg = _group_or_default_group(group)
    if _rank_not_in_group(pg):
        _warn_not_in_group("send_object_list")
        return
    peer = _canonicalize_group_rank(pg, dst, group_dst)
    data, sizes = _joined(object_list)
    send(sizes, group=pg, group_dst=peer)
    send(data, group=pg, group_dst=peer)


def recv_object_list(object_list: list[Any], src: int | None = None, group: ProcessGroup | None = None,
                     device: Any = None, group_src: int | None = None, use_batch: bool = False) -> int:
    """Receive the objects of a list.

    Args:
        object_list: the list to write to, as long as the sender's.
        src: the sender's global rank; any process if None.
        group: the processes among which they are sent; all if None.
        device: where the bytes are; the CPU.
        group_src: the sender's rank in the group, instead of `src`.
        use_batch: without effect.

    Returns:
        The sender's global rank; -1 if this process is not in the group.
    """
    if _rank_not_in_group(group):
        _warn_not_in_group("recv_object_list")
        return -1
    sizes = _integers(len(object_list))
    sender = recv(sizes, src, group, group_src=group_src)
    data = _bytes(int(sizes._array.sum()))
    recv(data, sender, group)
    _store_objects(object_list, data, sizes)
    return sender


