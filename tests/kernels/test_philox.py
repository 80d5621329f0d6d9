"""PyTorch's generator on GPUs: known words, and how its offset grows."""

from __future__ import annotations

import numpy as np
import pytest

from flambeau.kernels.philox import PhiloxEngine, philox


@pytest.mark.parametrize(("counter", "key", "words"), [  # Random123's known answers
    ((0, 0, 0, 0), (0, 0), (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8)),
    ((0xFFFFFFFF,) * 4, (0xFFFFFFFF,) * 2, (0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD)),
    ((0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344), (0xA4093822, 0x299F31D0),
     (0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1)),
])
def test_known_words(counter, key, words):
    assert tuple(int(word) for word in philox(counter, key)) == words


def test_the_offset_grows_by_whole_blocks():
    engine = PhiloxEngine(1).seed(2**40 + 1)
    assert [engine.advance(words) for words in (1, 4, 5, 0)] == [0, 4, 8, 16]
    assert engine.offset == 16
    later = [np.asarray(word).tolist() for word in engine.words([3, 4], 8, 1)]
    assert later == [np.asarray(word).tolist() for word in engine.words([3, 4], 12, 0)]
    assert engine.seed(-1).initial_seed == 2**64 - 1
    assert engine.offset == 0
