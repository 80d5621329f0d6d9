"""The random state of pipelines: a `random.Random` that is seeded when an iteration begins."""

from __future__ import annotations

import random
from typing import Any, Self

from ..seeds import draw_seed


class Shuffling:
    """What shufflers share: whether they shuffle, and the seed of the next iteration."""

    _enabled: bool
    _seed: int | None
    _rng: random.Random

    def _init_shuffling(self) -> None:
        self._enabled, self._seed, self._rng = True, None, random.Random()

    def set_shuffle(self, shuffle: bool = True) -> Self:
        """Set whether to shuffle."""
        self._enabled = shuffle
        return self

    def set_seed(self, seed: int) -> Self:
        """Set the seed of the next iteration."""
        self._seed = seed
        return self

    def _begin_shuffling(self) -> None:
        """Seed the generator; by the default generator unless a seed is set."""
        self._rng.seed(draw_seed() if self._seed is None else self._seed)
        self._seed = None

    def _restore_shuffling(self, enabled: bool, seed: int | None, state: Any) -> None:
        self._enabled, self._seed, self._rng = enabled, seed, random.Random()
        self._rng.setstate(state)
