"""`CommDebugMode`: the collectives that redistributions in a block start."""

from __future__ import annotations

from typing import Any

from ....ops.overloads import OpOverloadPacket, namespace_of
from .._collective_counts import counters


class CommDebugMode:
    """Count the collectives of distributed tensors in a block.

    Those that a program starts itself, and those of data parallel wrappers, do not count.

    >>> from flambeau.distributed.tensor.debug import CommDebugMode
    >>> with CommDebugMode() as mode:
    ...     pass
    >>> mode.get_total_counts(), mode.get_comm_counts()
    (0, {})
    """

    def __init__(self) -> None:
        self._counts: dict[str, int] = {}

    def __enter__(self) -> CommDebugMode:
        self._counts = {}
        counters.append(self._counts)
        return self

    def __exit__(self, *args: object) -> None:
        counters[:] = [each for each in counters if each is not self._counts]

    def get_total_counts(self) -> int:
        """The number of collectives."""
        return sum(self._counts.values())

    def get_comm_counts(self) -> dict[OpOverloadPacket, int]:
        """The number by operator of `torch.ops.c10d_functional`."""
        return {_packet(name): count for name, count in self._counts.items()}

    def __repr__(self) -> str:
        return f"CommDebugMode(get_total_counts()={self.get_total_counts()})"


def _packet(name: str) -> Any:
    return namespace_of("c10d_functional").packet(name)


for _name in ("all_gather_into_tensor", "all_reduce", "all_to_all_single", "reduce_scatter_tensor"):
    _packet(_name)

__all__ = ["CommDebugMode"]
