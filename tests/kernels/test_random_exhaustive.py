"""The float32 Box-Muller kernel against PyTorch's, for every one of its 2**24 uniforms.

States are constructed whose words are the desired uniforms. An angle of zero shows the radius alone; a radius of one
shows sine and cosine alone.
"""

from __future__ import annotations

import numpy as np
import pytest

from flambeau.kernels.random import Engine
from flambeau.kernels.random.boxmuller import radius, sine_cosine
from flambeau.kernels.random.engine import STATE

torch = pytest.importorskip("torch")
pytestmark = [
    pytest.mark.parity, pytest.mark.slow,
    pytest.mark.skipif(torch.backends.cpu.get_cpu_capability() == "DEFAULT",
                       reason="PyTorch's kernels without AVX2 round otherwise"),
]

BLOCKS, LANES = 38, 8  # 608 of a state's 624 words
PER_STATE = BLOCKS * LANES


def untemper(words: np.ndarray) -> np.ndarray:
    """The state words that the Mersenne Twister tempers to `words`."""
    y = words.astype(np.uint32)
    y ^= y >> 18
    y ^= (y << 15) & np.uint32(0xEFC60000)
    z = y.copy()
    for _ in range(5):
        z = y ^ ((z << 7) & np.uint32(0x9D2C5680))
    y, z = z, z.copy()
    for _ in range(3):
        z = y ^ (z >> 11)
    return z


class Scripted:
    """Set PyTorch's generator to a state that produces given words."""

    def __init__(self) -> None:
        self.state = Engine(0).get_state()
        self.record = self.state.view(STATE)
        self.record["left"], self.record["next"] = 624, 1
        self.out = torch.empty(PER_STATE * 2)

    def normal(self, first: np.ndarray, second: np.ndarray) -> np.ndarray:
        halves = [np.broadcast_to(w, PER_STATE).reshape(BLOCKS, LANES) for w in (first, second)]
        words = np.stack(halves, axis=1)
        self.record["words"][0, 1:1 + PER_STATE * 2] = untemper(words.reshape(-1))
        torch.set_rng_state(torch.from_numpy(self.state))
        return self.out.normal_().numpy().reshape(BLOCKS, 2, LANES)


def test_every_uniform() -> None:
    every = np.arange(1 << 24, dtype=np.uint32)
    pieces = np.split(every.astype(np.float32) * np.float32(2.0**-24), 256)
    radii = np.concatenate([radius(u) for u in pieces])
    pairs = [sine_cosine(u) for u in pieces]
    zero = np.float32(0.0)  # the kernel's last step, a fused z · 1 + 0, has no negative zero
    sines, cosines = (np.concatenate([pair[i] for pair in pairs]) + zero for i in (0, 1))
    unit = np.uint32(np.flatnonzero(radii == 1.0)[0])
    scripted, nought = Scripted(), np.uint32(0)
    for start in range(0, every.size, PER_STATE):
        words = np.resize(every[start:start + PER_STATE], PER_STATE)
        n = min(PER_STATE, every.size - start)
        drawn = scripted.normal(words, nought)[:, 0].reshape(-1)[:n]
        assert (drawn == radii[start:start + n]).all()
        drawn = scripted.normal(unit, words)
        assert (drawn[:, 0].reshape(-1)[:n] == cosines[start:start + n]).all()
        assert (drawn[:, 1].reshape(-1)[:n] == sines[start:start + n]).all()
