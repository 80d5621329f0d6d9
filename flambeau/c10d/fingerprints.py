"""What a process is about to run, compared with what the others are: `TORCH_DISTRIBUTED_DEBUG=DETAIL`."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from . import algorithms
from .gloo.backend import GlooBackend
from .options import BarrierOptions
from .transport.transport import Deadline, Transport


class Fingerprint(NamedTuple):
    """One collective of one process.

    Attributes:
        number: how many the group ran before.
        operation: its name.
        shapes, dtypes, devices: of its tensors.
    """

    number: int
    operation: str
    shapes: list[list[int]]
    dtypes: list[str]
    devices: list[str]

    def __str__(self) -> str:
        if not self.shapes:
            return f"CollectiveFingerPrint(SequenceNumber={self.number}OpType={self.operation})"
        shape = ", ".join(map(str, self.shapes[0]))
        return (f"CollectiveFingerPrint(SequenceNumber={self.number}, OpType={self.operation}, TensorShape=[{shape}], "
                f"TensorDtypes={' '.join(self.dtypes)}, TensorDeviceTypes={' '.join(map(_placed, self.devices))})")


def fingerprint(number: int, operation: str, tensors: Sequence[Any]) -> Fingerprint:
    """The fingerprint of a collective with some tensors.

    >>> print(fingerprint(3, "BARRIER", []))
    CollectiveFingerPrint(SequenceNumber=3OpType=BARRIER)
    """
    return Fingerprint(number, operation, [list(each.shape) for each in tensors],
                       [each.dtype.scalar_name for each in tensors], [each.device.type for each in tensors])


def _placed(device: str) -> str:
    """PyTorch's text of a type of device."""
    return (f"TensorOptions(dtype=float (default), device={device}, layout=Strided (default), requires_grad=false "
            "(default), pinned_memory=false (default), memory_format=(nullopt))")


def _aspects(one: Fingerprint) -> list[tuple[str, list[str]]]:
    """What two collectives may differ in, with PyTorch's words before each."""
    return [("\t Sequence number: ", [str(one.number)]), ("  Op type: ", [one.operation]),
            ("  Tensor Tensor shapes: ", list(map(str, one.shapes[0])) if one.shapes else []),
            ("  Tensor Tensor dtypes: ", one.dtypes),
            ("  Tensor Tensor devices: ", list(map(_placed, one.devices)))]


def mismatch(rank: int, own: Fingerprint, other_rank: int, other: Fingerprint) -> str:
    """The error of two processes that run different collectives, with PyTorch's text."""
    differing = "".join(f"{name}{' '.join(mine)}vs {' '.join(theirs)}"
                        for (name, mine), (_, theirs) in zip(_aspects(own), _aspects(other), strict=True)
                        if mine != theirs)
    text = (f"Detected mismatch between collectives on ranks. Rank {rank} is running collective: {own}, but Rank "
            f"{other_rank} is running collective: {other}.")
    return f"{text}Collectives differ in the following aspects: {differing}" if differing else text


def compare(group: GlooBackend, own: Fingerprint) -> None:
    """Wait until all processes are about to run a collective, and compare it with theirs.

    Args:
        group: carries the fingerprints; it is used for nothing else.
        own: this process's.

    Raises:
        RuntimeError: a process does not come in time, or comes with another collective (PyTorch's texts).
    """
    try:
        group._wait_for_all(None, wait_all_ranks=True)
    except RuntimeError as error:
        raise RuntimeError("ProcessGroupWrapper: Monitored Barrier encountered error running collective: "
                           f"{own}. Error: \n{error}") from None
    for rank, other in enumerate(_of_all(group, own)):
        if other != own:
            raise RuntimeError(mismatch(group.rank(), own, rank, other))


def _of_all(group: GlooBackend, own: Fingerprint) -> list[Fingerprint]:
    """The fingerprints of all processes, by rank."""
    text = np.frombuffer(json.dumps(own).encode(), np.uint8)
    sizes = [np.array([text.size]) for _ in range(group.size())]
    texts: list[np.ndarray] = []

    def run(net: Transport, tag: int, deadline: Deadline) -> None:
        algorithms.all_gather(net, tag, sizes, deadline)
        texts.extend(text if rank == net.rank else np.empty(int(size[0]), np.uint8) for rank, size in enumerate(sizes))
        algorithms.all_gather(net, tag, texts, deadline)

    opts = BarrierOptions()
    opts.asyncOp = False
    group._start(opts, run, [])
    return [Fingerprint(*json.loads(each.tobytes())) for each in texts]


__all__ = ["Fingerprint", "compare", "fingerprint", "mismatch"]
