"""Functions that read a tensor's elements in Python are not replayed."""

from __future__ import annotations

import pytest

import flambeau as torch
from flambeau import codegen

pytestmark = pytest.mark.skipif(not codegen.available(), reason="llvmlite is not installed, or FLAMBEAU_JIT is 0")

TABLE = torch.arange(12.).reshape(3, 4)

#: what reads a tensor of one int
READINGS = {
    "item": lambda i: TABLE * i.item(),
    "int": lambda i: TABLE * int(i),
    "float": lambda i: TABLE * float(i),
    "tolist": lambda i: TABLE * i.tolist(),
    "numpy": lambda i: TABLE * float(i.numpy()),
    "index": lambda i: TABLE[i] * 2,
    "indices": lambda i: TABLE[i, i] * 2,
    "slice": lambda i: TABLE[i:] * 2,
    "dim": lambda i: TABLE.sum(i),
    "narrow": lambda i: TABLE.narrow(0, i, 1) * 2,
    "str": lambda i: TABLE * len(str(i + 9)),
    "format": lambda i: TABLE * len(f"{i + 9}"),
    "mask": lambda i: TABLE[i < TABLE] * 2,
    "in": lambda i: TABLE * 2 if 1 in i else TABLE + 1,
    "allclose": lambda i: TABLE * 2 if torch.allclose(i, torch.tensor(1)) else TABLE + 1,
    "equal": lambda i: TABLE * 2 if torch.equal(i, torch.tensor(1)) else TABLE + 1,
    "size": lambda i: torch.zeros(int(i) + 1) + 1,
}


@pytest.mark.parametrize("name", READINGS)
def test_elements_of_an_argument(name):
    function = READINGS[name]
    made = torch.compile(function)
    for k in (0, 0, 0, 1, 1, 0):
        i = torch.tensor(k)
        assert torch.equal(made(i), function(i)), k


@pytest.mark.parametrize("name", READINGS)
def test_elements_of_a_global_tensor(name):
    i = torch.tensor(0)
    function = READINGS[name]

    def run(x):
        return function(i) + x

    made = torch.compile(run)
    x = torch.ones(())
    for k in (0, 0, 0, 1, 1, 0):
        i.fill_(k)
        assert torch.equal(made(x), run(x)), k
