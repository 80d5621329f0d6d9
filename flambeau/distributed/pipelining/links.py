"""Links between the stages of a pipeline: the tensors that one sends another, a list for each microbatch.

The shapes travel with the first microbatch of a step, so that a pass before the training step is not needed, and the
last batch of an epoch may be smaller. Each microbatch has its own tag: messages may come in any order.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from ... import dtypes
from ..._tensor import Tensor
from ..._tensor.tensor import wrap
from ...c10d.process_group import ProcessGroup
from ...c10d.work import Work
from ..point_to_point import irecv, isend


class PipeliningMetadataError(RuntimeError):
    """Tensors of a pipeline's stage have other shapes or dtypes than its neighbours expect."""


class TensorMeta(NamedTuple):
    """What a stage must know of a tensor before it comes."""

    shape: tuple[int, ...]
    dtype: str
    requires_grad: bool

    @staticmethod
    def of(tensor: Tensor) -> TensorMeta:
        """The description of a tensor."""
        return TensorMeta(tuple(tensor.shape), str(tensor.dtype).rpartition(".")[2], tensor.requires_grad)

    def empty(self) -> Tensor:
        """A tensor of zeros of this shape and dtype."""
        return wrap(np.zeros(self.shape, getattr(dtypes, self.dtype).numpy))


class Link:
    """The tensors that one stage sends another.

    Args:
        name: `"activations"` or `"gradients"`, for errors.
        number: tells the links of a pipeline apart; the same in both processes.
        source, target: the stages.
        rank_of: the process of a stage, in the group.
        group: the processes; all if None.
    """

    def __init__(self, name: str, number: int, source: int, target: int, rank_of: Callable[[int], int],
                 group: ProcessGroup | None) -> None:
        self.name, self.number, self.source, self.target = name, number, source, target
        self.group, self._rank_of = group, rank_of
        self.begin(0)

    def begin(self, microbatches: int, metas: Sequence[TensorMeta] | None = None) -> None:
        """Forget the last step.

        Args:
            microbatches: the number of this step's.
            metas: the tensors of each microbatch, if both processes know them.
        """
        self.microbatches = microbatches
        self.metas = None if metas is None else tuple(metas)
        self._kept: dict[int, list[Tensor]] = {}
        self._expected: dict[int, tuple[list[Tensor], list[Work]]] = {}
        self.sent: list[tuple[Work, Tensor]] = []

    @property
    def local(self) -> bool:
        """Whether both stages are in one process."""
        return self._rank_of(self.source) == self._rank_of(self.target)

    def _tag(self, microbatch: int) -> int:
        return self.number * (self.microbatches + 1) + microbatch + 2

    def _send(self, tensor: Tensor, tag: int) -> None:
        work = isend(tensor, group=self.group, tag=tag, group_dst=self._rank_of(self.target))
        assert work is not None
        if not work.is_completed():
            self.sent.append((work, tensor))

    def _receive(self, tensor: Tensor, tag: int) -> Work:
        work = irecv(tensor, group=self.group, tag=tag, group_src=self._rank_of(self.source))
        assert work is not None
        return work

    def send(self, microbatch: int, tensors: Sequence[Tensor]) -> None:
        """Send a microbatch's tensors.

        Raises:
            PipeliningMetadataError: they differ in shape or dtype from those of the step's first microbatch.
        """
        metas = tuple(map(TensorMeta.of, tensors))
        if self.metas is None:
            self.metas = metas
            if not self.local:
                self._send_metas(metas)
        elif [each[:2] for each in metas] != [each[:2] for each in self.metas]:
            raise PipeliningMetadataError(
                f"Stage {self.source}: {self.name} for stage {self.target} of microbatch {microbatch} are "
                f"{_text(metas)}, those of the step's first microbatch {_text(self.metas)}: all must be alike. The "
                "number of microbatches must divide the batch, and no size may depend on values.")
        detached = [each.detach() for each in tensors]
        if self.local:
            self._kept[microbatch] = detached
            return
        for each in detached:
            self._send(each, self._tag(microbatch))

    def _send_metas(self, metas: tuple[TensorMeta, ...]) -> None:
        data = np.frombuffer(pickle.dumps([tuple(each) for each in metas]), np.uint8).copy()
        self._send(wrap(np.array([len(data)], np.int64)), self._tag(-1))
        self._send(wrap(data), self._tag(-1))

    def _receive_metas(self) -> tuple[TensorMeta, ...]:
        size = wrap(np.zeros(1, np.int64))
        self._receive(size, self._tag(-1)).wait()
        data = wrap(np.zeros(int(size.item()), np.uint8))
        self._receive(data, self._tag(-1)).wait()
        return tuple(TensorMeta(*each) for each in pickle.loads(data._array.tobytes()))

    def expect(self, microbatch: int) -> None:
        """Expect a microbatch's tensors, if their shapes are known by now."""
        if self.metas is not None and not self.local and microbatch not in self._expected:
            tensors = [meta.empty() for meta in self.metas]
            self._expected[microbatch] = tensors, [self._receive(each, self._tag(microbatch)) for each in tensors]

    def receive(self, microbatch: int) -> list[Tensor]:
        """Wait for a microbatch's tensors."""
        if self.local:
            return self._kept.pop(microbatch)
        if self.metas is None:
            self.metas = self._receive_metas()
        self.expect(microbatch)
        tensors, works = self._expected.pop(microbatch)
        for work in works:
            work.wait()
        return tensors

    def finish(self) -> None:
        """Wait until all has been sent."""
        for work, _ in self.sent:
            work.wait()
        self.sent = []


def _text(metas: Sequence[TensorMeta]) -> str:
    return "[" + ", ".join(f"{each.dtype}{list(each.shape)}" for each in metas) + "]"


__all__ = ["Link", "PipeliningMetadataError", "TensorMeta"]
