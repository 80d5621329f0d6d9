"""`torch.distributed._checkpointable`: what a tensor subclass has that distributed checkpoints save in shards."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from ..._tensor import Tensor


@runtime_checkable
class _Checkpointable(Protocol):
    """A value that says which parts of it this process saves and loads.

    >>> from flambeau.distributed._checkpointable import _Checkpointable
    >>> isinstance(3, _Checkpointable)
    False
    """

    def __create_write_items__(self, fqn: str, object: object) -> list[object]:
        """The write items of a value of this name."""
        ...

    def __create_chunk_list__(self) -> list[object]:
        """The metadata of the chunks of this process."""
        ...

    def __get_tensor_shard__(self, index: int) -> Tensor:
        """The tensor of a chunk."""
        ...


__all__ = ["_Checkpointable"]
