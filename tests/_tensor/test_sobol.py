"""Sobol' sequences: the points of PyTorch's engine, bit by bit."""

import numpy as np
import pytest

import flambeau

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.parity

STEPS = {
    "draw": lambda e, m: e.draw(5), "more": lambda e, m: e.draw(3), "double": lambda e, m: e.draw(2, dtype=m.float64),
    "forward": lambda e, m: e.fast_forward(7).draw(2), "again": lambda e, m: e.reset().draw(1),
    "base2": lambda e, m: e.draw_base2(0), "forward at first": lambda e, m: e.reset().fast_forward(3).draw(1),
    "out": lambda e, m: e.draw(4, out=m.empty(0)),
}


@pytest.mark.parametrize(("dimension", "scramble", "seed"), [
    (1, False, None), (3, False, None), (40, False, None), (45, True, 3), (2, True, 0), (300, False, None)])
def test_points_are_pytorchs(dimension, scramble, seed):
    if dimension > 40:
        pytest.importorskip("scipy")
    theirs, ours = (m.quasirandom.SobolEngine(dimension, scramble=scramble, seed=seed) for m in (torch, flambeau))
    assert repr(theirs) == repr(ours)
    for name, step in STEPS.items():
        expected, found = step(theirs, torch), step(ours, flambeau)
        assert np.array_equal(expected.numpy(), found.numpy()), name
        assert theirs.num_generated == ours.num_generated


def test_the_global_generator_scrambles():
    points = []
    for module in (torch, flambeau):
        module.manual_seed(5)
        points.append(module.quasirandom.SobolEngine(3, True).draw(4).numpy())
    assert np.array_equal(*points)


@pytest.mark.parametrize("call", [
    lambda m: m.quasirandom.SobolEngine(0), lambda m: m.quasirandom.SobolEngine(21202),
    lambda m: m.quasirandom.SobolEngine(2).fast_forward(3).draw_base2(2)])
def test_errors(call):
    texts = []
    for module in (torch, flambeau):
        with pytest.raises(ValueError) as error:
            call(module)
        texts.append(str(error.value))
    assert texts[0] == texts[1]
