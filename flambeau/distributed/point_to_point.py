"""Messages between two processes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .._tensor import Tensor
from ..c10d.process_group import ProcessGroup
from ..c10d.work import Work
from .collective_checks import _canonicalize_group_rank, _check_single_tensor
from .groups.queries import (
    _get_process_group_name,
    _group_or_default_group,
    _rank_not_in_group,
    _warn_not_in_group,
    get_global_rank,
)
from .overriding import handle_torch_function, has_torch_function

__all__ = ["P2POp", "batch_isend_irecv", "irecv", "isend", "recv", "send"]


def isend(tensor: Tensor, dst: int | None = None, group: ProcessGroup | None = None, tag: int = 0,
          group_dst: int | None = None) -> Work | None:
    """Start to send a tensor to one process.

    Args:
        tensor: the tensor, which must not change before the work has ended.
        dst: the receiver's global rank.
        group: the processes among which it is sent; all if None.
        tag: tells messages apart.
        group_dst: the receiver's rank in the group, instead of `dst`.
    """
    if has_torch_function((tensor,)):
        return handle_torch_function(isend, (tensor,), tensor, dst, group, tag, group_dst)
    pg = _group_or_default_group(group)
    if _rank_not_in_group(pg):
        _warn_not_in_group("isend")
        return None
    peer = _canonicalize_group_rank(pg, dst, group_dst)
    _check_single_tensor(tensor, "tensor")
    return pg.send([tensor], peer, tag)


def irecv(tensor: Tensor, src: int | None = None, group: ProcessGroup | None = None, tag: int = 0,
          group_src: int | None = None) -> Work | None:
    """Start to receive a tensor.

    Args:
        tensor: the tensor to write to, which must not be read before the work has ended.
        src: the sender's global rank; any process if None.
        group: the processes among which it is sent; all if None.
        tag: tells messages apart.
        group_src: the sender's rank in the group, instead of `src`.
    """
    if has_torch_function((tensor,)):
        return handle_torch_function(irecv, (tensor,), tensor, src, group, tag, group_src)
    _check_single_tensor(tensor, "tensor")
    if _rank_not_in_group(group):
        _warn_not_in_group("irecv")
        return None
    pg = _group_or_default_group(group)
    if src is None and group_src is None:
        return pg.recv_anysource([tensor], tag)
    return pg.recv([tensor], _canonicalize_group_rank(pg, src, group_src), tag)


def send(tensor: Tensor, dst: int | None = None, group: ProcessGroup | None = None, tag: int = 0,
         group_dst: int | None = None) -> None:
    """Send a tensor to one process.

    Args:
        tensor: the tensor.
        dst: the receiver's global rank.
        group: the processes among which it is sent; all if None.
        tag: tells messages apart.
        group_dst: the receiver's rank in the group, instead of `dst`.

    Raises:
        ValueError: the receiver is this process.
    """
    if has_torch_function((tensor,)):
        return handle_torch_function(send, (tensor,), tensor, dst, group, tag, group_dst)
    pg = _group_or_default_group(group)
    if _rank_not_in_group(pg):
        _warn_not_in_group("send")
        return None
    peer = _canonicalize_group_rank(pg, dst, group_dst)
    if peer == pg.rank():
        raise ValueError("Invalid destination rank: destination rank should not be the same as the rank of the current "
                         "process.")
    work = isend(tensor, group=pg, tag=tag, group_dst=peer)
    if work is not None:
        work.wait()
    return None


def recv(tensor: Tensor, src: int | None = None, group: ProcessGroup | None = None, tag: int = 0,
         group_src: int | None = None) -> int:
    """Receive a tensor.

    Args:
        tensor: the tensor to write to.
        src: the sender's global rank; any process if None.
        group: the processes among which it is sent; all if None.
        tag: tells messages apart.
        group_src: the sender's rank in the group, instead of `src`.

    Returns:
        The sender's global rank; -1 if this process is not in the group.
    """
    if has_torch_function((tensor,)):
        return handle_torch_function(recv, (tensor,), tensor, src, group, tag, group_src)
    work = irecv(tensor, src, group, tag, group_src)
    if work is None:
        return -1
    work.wait()
    if src is not None:
        return src
    pg = _group_or_default_group(group)
    return get_global_rank(pg, work._source_rank() if group_src is None else group_src)


class P2POp:
    """A message of `batch_isend_irecv`.

    Args:
        op: `isend` or `irecv`.
        tensor: the tensor to send or to write to.
        peer: the other process's global rank.
        group: the processes among which it is sent; all if None.
        tag: tells messages apart.
        group_peer: the other process's rank in the group, instead of `peer`.

    Raises:
        ValueError: `op` is another function.
    """

    def __init__(self, op: Callable[..., Any], tensor: Tensor, peer: int | None = None,
                 group: ProcessGroup | None = None, tag: int = 0, group_peer: int | None = None) -> None:
        _check_op(op)
        _check_single_tensor(tensor, "tensor")
        self.op, self.tensor, self.tag = op, tensor, tag
        self.group = _group_or_default_group(group)
        self.peer = _canonicalize_group_rank(self.group, peer, group_peer, return_global=True)
        self.group_peer = _canonicalize_group_rank(self.group, peer, group_peer)

    def __repr__(self) -> str:
        own = self.group.rank()
        sends = self.op is isend
        source, destination = (own, self.group_peer) if sends else (self.group_peer, own)
        return (f"P2POp({self.op.__name__} pg={_get_process_group_name(self.group)}, group_src={source}, "
                f"group_dst={destination},  {self.tensor.shape}, {self.tensor.dtype})")


def _check_op(op: Any) -> None:
    if op not in (isend, irecv):
        raise ValueError("Invalid ``op``. Expected ``op`` to be of type ``torch.distributed.isend`` or "
                         "``torch.distributed.irecv``.")


def batch_isend_irecv(p2p_op_list: list[P2POp]) -> list[Work]:
    """Start several messages.

    Args:
        p2p_op_list: the messages, of one group.

    Returns:
        Their works.

    Raises:
        ValueError: an element of the list is no `P2POp`, or the groups differ.
    """
    if not isinstance(p2p_op_list, list) or not all(isinstance(each, P2POp) for each in p2p_op_list):
        raise ValueError("Invalid ``p2p_op_list``. Each op is expected to to be of type ``torch.distributed.P2POp``.")
    group = p2p_op_list[0].group
    if not all(each.group == group for each in p2p_op_list):
        raise ValueError("All ops need to use the same group.")
    works = [each.op(each.tensor, each.peer, each.group, each.tag) for each in p2p_op_list]
    return [work for work in works if work is not None]
