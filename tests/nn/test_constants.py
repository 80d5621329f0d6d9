"""`__constants__` of the modules: the attributes that a script compiler treats as constants, by class as in PyTorch."""

import inspect

import pytest

import flambeau


@pytest.mark.parity
def test_constants_of_every_module_are_pytorchs():
    torch = pytest.importorskip("torch")
    classes = [name for name in dir(torch.nn) if inspect.isclass(getattr(torch.nn, name))]
    different = {}
    for name in classes:
        expected = getattr(getattr(torch.nn, name), "__constants__", None)
        found = getattr(getattr(flambeau.nn, name), "__constants__", None)
        if found != expected:
            different[name] = (found, expected)
    assert different == {}


def test_constants_are_attributes_of_instances():
    for layer in (flambeau.nn.Linear(2, 3), flambeau.nn.Conv2d(1, 2, 3), flambeau.nn.LSTM(2, 3), flambeau.nn.GELU()):
        assert all(hasattr(layer, name) for name in layer.__constants__)
