"""The engine of PyTorch's CPU generator: a Mersenne Twister with seed, words, position and a cached normal sample.

Words are drawn from NumPy's MT19937 (the same generator), which is imported at the first draw. This module adds
PyTorch's seeding, its 64-bit draws (high word first), and its 5056-byte state.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from operator import length_hint
from typing import Any

import numpy as np

from . import accelerated

DEFAULT_SEED = 67280421310721
STATE_BYTES = 5056
WORDS = 624
_SMALL_DRAW = 512  # up to this many words, NumPy's random_raw is faster

#: PyTorch's CPUGeneratorImplState, field by field.
STATE = np.dtype({
    "names": ["seed", "left", "seeded", "next", "words", "normal_x", "normal", "normal_rho", "has_normal",
              "float_normal", "has_float_normal"],
    "formats": ["<u8", "<i4", "<i4", "<u8", ("<u8", WORDS), "<f8", "<f8", "<f8", "<i4", "<f4", "?"],
    "offsets": [0, 8, 12, 16, 24, 5016, 5024, 5032, 5040, 5048, 5052],
    "itemsize": STATE_BYTES,
})


class Engine:
    """A stream of random words, equal to PyTorch's CPU generator with the same seed.

    Args:
        seed: 64 bits, as a signed or an unsigned integer; the twister is seeded with the lower 32.

    Raises:
        ValueError: `seed` does not fit 64 bits.

    >>> Engine(0).random()
    2357136044
    """

    __slots__ = ("_bulk", "_functions", "_pending", "_rest", "_seed", "_twister", "draws", "indirect",
                 "next_float_normal", "next_normal")

    def __init__(self, seed: int = DEFAULT_SEED) -> None:
        self._twister: Any = None
        self._bulk: Any = None
        self._functions: Any = None
        self.indirect = [True]  # whether `draws` is None, for generated code
        self.seed(seed)

    def seed(self, seed: int) -> None:
        """Restart the stream; the cached normal sample is dropped."""
        seed = int(seed)
        if not -(1 << 63) <= seed < 1 << 64:
            raise ValueError("Overflow when unpacking long long")
        self._seed = seed & 0xFFFF_FFFF_FFFF_FFFF
        self._pending = True   # seeding is deferred to the first draw
        self._rest = 0         # `next` of a state whose words are all used: 0 after seeding, 624 after a draw
        self.draws: Any = None  # functions that draw from the state, where something was drawn by them since
        self.indirect[0] = True
        self.next_normal: float | None = None
        self.next_float_normal: float | None = None

    def seed_from_system(self) -> int:
        """Seed with 53 bits of the system's entropy, and return them."""
        self.seed(int.from_bytes(os.urandom(8), "little") & 0x1F_FFFF_FFFF_FFFF)
        return self._seed

    @property
    def initial_seed(self) -> int:
        """The seed of this stream, as an unsigned integer."""
        return self._seed

    def _ready(self) -> Any:
        if self._twister is None:
            from numpy.random import MT19937, RandomState

            self._twister = MT19937(0)
            self._bulk = RandomState(self._twister)
        if self._pending:
            self._bulk.seed(self._seed & 0xFFFF_FFFF)
            self._pending = False
        return self._twister

    # ----- draws

    def direct_draws(self, n: int) -> Any:
        """The functions that draw from the state directly, of which the caller draws n > 0 numbers; None: NumPy draws.

        They are `draws` from then on, until the state is set.
        """
        draws = self.draws
        if draws is None:
            if self._functions is None:
                for make in accelerated.DRAWS:
                    self._functions = make(self._ready(), n)
            if self._functions is not None:
                self._ready()
                self._rest = WORDS
                draws = self.draws = self._functions
                self.indirect[0] = False
        return draws

    def random(self) -> int:
        """The next 32 bits."""
        twister = self._ready()
        self._rest = WORDS
        return int(twister.random_raw())

    def random64(self) -> int:
        """The next 64 bits: two words, high word first."""
        return self.random() << 32 | self.random()

    def draw(self, n: int) -> np.ndarray:
        """The next `n` words, uint32."""
        twister = self._ready()
        if n:
            self._rest = WORDS
        if n <= _SMALL_DRAW:
            words: np.ndarray = twister.random_raw(n).astype(np.uint32)
            return words
        for draw in accelerated.WORDS:
            drawn = draw(twister, n)
            if drawn is not None:
                return drawn
        return np.asarray(self._bulk.randint(0, 1 << 32, n, dtype=np.uint32))

    def draw_raw(self, n: int) -> np.ndarray:
        """The next `n` words, uint64 where they are few, else uint32: for those who convert them anyway."""
        if 0 < n <= _SMALL_DRAW:
            self._rest = WORDS
            words: np.ndarray = self._ready().random_raw(n)
            return words
        return self.draw(n)

    def draw64(self, n: int) -> np.ndarray:
        """The next `n` 64-bit numbers, uint64, each of two words, high word first."""
        pairs = self.draw(2 * n).astype("<u4", copy=False).view("<u8")
        high: np.ndarray = pairs << np.uint64(32)
        pairs >>= np.uint64(32)
        high |= pairs
        return high

    def skip(self, n: int) -> None:
        """Drop `n` words."""
        if n > 0:
            self._ready().random_raw(n, output=False)
            self._rest = WORDS

    # ----- state

    def snapshot(self) -> tuple[Any, ...]:
        """The state for `restore`."""
        return (self._seed, self._ready().state, self._rest, self.next_normal, self.next_float_normal)

    def restore(self, snapshot: tuple[Any, ...]) -> None:
        """Set the state that `snapshot` returned."""
        self._ready()
        self.draws, self.indirect[0] = None, True
        self._seed, self._twister.state, self._rest, self.next_normal, self.next_float_normal = snapshot

    def copy(self) -> Engine:
        """Another engine with the same state."""
        twin = Engine.__new__(Engine)
        twin._twister = twin._bulk = twin._functions = None
        twin._pending, twin.indirect = False, [True]
        twin.restore(self.snapshot())
        return twin

    def get_state(self) -> np.ndarray:
        """The state in PyTorch's layout: uint8, shape (5056,)."""
        inner = self._ready().state["state"]
        used = inner["pos"]
        state = np.zeros(1, STATE)
        record = state[0]
        record["seed"], record["seeded"], record["words"] = self._seed, 1, inner["key"]
        record["left"], record["next"] = (1, self._rest) if used == WORDS else (WORDS + 1 - used, used)
        if self.next_normal is not None:
            record["normal"], record["has_normal"] = self.next_normal, 1
        if self.next_float_normal is not None:
            record["float_normal"], record["has_float_normal"] = self.next_float_normal, True
        return state.view(np.uint8)

    def set_state(self, state: np.ndarray) -> None:
        """Set a state in PyTorch's layout, saved here or by PyTorch.

        Args:
            state: uint8, (5056,).

        Raises:
            RuntimeError: wrong size, or invalid state.
        """
        raw = np.ascontiguousarray(state, dtype=np.uint8).reshape(-1)
        if raw.size != STATE_BYTES:
            raise RuntimeError(f"Expected a CPUGeneratorImplState of size {STATE_BYTES} but found the input "
                               f"RNG state size to be {raw.size}")
        record = raw.copy().view(STATE)[0]
        left, position = int(record["left"]), int(record["next"])
        # the words left and the position must be consistent
        if not (record["seeded"] == 1 and 0 < left <= WORDS and position <= WORDS
                and (left == 1 or left + position == WORDS + 1)):
            raise RuntimeError("Invalid mt19937 state")
        self._pending, self.draws, self.indirect[0] = False, None, True
        self._ready().state = {"bit_generator": "MT19937", "state": {
            "key": record["words"].astype(np.uint32), "pos": WORDS if left == 1 else position}}
        self._seed, self._rest = int(record["seed"]), position if left == 1 else WORDS
        self.next_normal = float(record["normal"]) if record["has_normal"] else None
        self.next_float_normal = float(record["float_normal"]) if record["has_float_normal"] else None


class UniformStream:
    """A context manager: uniform doubles in [0, 1) of an engine, one at a time, for rejection sampling.

    Words are drawn in blocks; on exit, the engine's position is just after the last double that was taken.

    >>> engine = Engine(0)
    >>> with UniformStream(engine, 1) as take:
    ...     x = take()
    >>> x == (Engine(0).random64() & (1 << 53) - 1) / (1 << 53)
    True
    """

    def __init__(self, engine: Engine, expected: int) -> None:
        self._engine = engine
        self._block = min(max(expected, 8), 1 << 16)
        self._drawn = 0
        self._current: Iterator[float] = iter(())

    def _doubles(self) -> Iterator[float]:
        while True:
            block = self._engine.draw64(self._block) & np.uint64((1 << 53) - 1)
            self._drawn += self._block
            self._current = iter((block.view(np.int64) * 2.0**-53).tolist())
            yield from self._current

    def __enter__(self) -> Callable[[], float]:
        self._start = self._engine.snapshot()
        return self._doubles().__next__

    def __exit__(self, *_: object) -> None:
        next_normal = self._engine.next_normal
        self._engine.restore(self._start)
        self._engine.next_normal = next_normal
        self._engine.skip(2 * (self._drawn - length_hint(self._current)))
