"""The parts of programs that benchmarks measure run on flambeau."""

import pytest

import flambeau
from benchmarks import subsystems


@pytest.mark.parametrize("name", ["images-0", "tokens-2", "lstm", "stft", "sparse-coo", "sparse-csr", "autocast"])
def test_parts_run(name):
    run = subsystems.PARTS[name][2](flambeau)
    run()


@pytest.mark.parametrize("start", [1, 4])
def test_a_cache_of_keys_and_values_leaves_the_scores_unchanged(start):
    model = subsystems.gpt2(flambeau, layers=2, width=32, heads=2, vocabulary=50)
    tokens = flambeau.arange(6)[None]
    with flambeau.no_grad():
        expected, _ = model(tokens, None, 0)
        _, caches = model(tokens[:, :start], None, 0)
        for at in range(start, 6):
            found, caches = model(tokens[:, at:at + 1], caches, at)
    flambeau.testing.assert_close(found, expected)
