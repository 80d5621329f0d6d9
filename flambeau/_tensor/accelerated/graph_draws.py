"""Random numbers in CUDA graphs: kernels read the generator's state from memory, which is set before each replay.

So replays draw what the same calls would draw without a graph, as in PyTorch (`CUDAGeneratorState`).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from ...backends.cuda_devices import current_runtime

_PER_CALL = 4


class GraphDraws:
    """What a graph draws from a generator.

    Args:
        generator: of a CUDA device.

    Attributes:
        words: by how much the offset grows with each replay.
    """

    def __init__(self, generator: Any) -> None:
        self.generator, self.words = generator, 0
        self._state = current_runtime().constant(np.zeros(2, np.uint64), generator.device.index)

    @property
    def place(self) -> tuple[Any, int]:
        """The memory of the state: seed and offset, two uint64."""
        return self._state.memory, self._state.byte_offset

    def advance(self, words: int) -> int:
        """The distance of the next numbers from the offset that a replay begins at; they are so many words."""
        before = self.words
        self.words += -(-words // _PER_CALL) * _PER_CALL
        return before

    def before_replay(self) -> None:
        """Set the state for the next replay, on the current stream; the generator goes on after it."""
        engine = self.generator.engine
        state = np.array([engine.initial_seed, engine.offset], np.uint64)
        current_runtime().copy_from_host(self._state, state, False)
        engine.offset += self.words


def begin(generators: Iterable[Any]) -> list[GraphDraws]:
    """Let generators draw for a graph from now on."""
    made = []
    for each in generators:
        draws = each.engine.graph = GraphDraws(each)
        made.append(draws)
    return made


def end(draws: Iterable[GraphDraws]) -> list[GraphDraws]:
    """Let generators draw at once again; those of which the graph draws something."""
    kept = []
    for each in draws:
        each.generator.engine.graph = None
        if each.words:
            kept.append(each)
    return kept


__all__ = ["GraphDraws", "begin", "end"]
