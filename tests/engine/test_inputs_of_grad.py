"""Inputs of `grad` and `backward`: sequences, iterators and dictionaries, with PyTorch's results and errors."""

from __future__ import annotations

import collections

import pytest

import flambeau

torch = pytest.importorskip("torch")

INPUTS = {
    "dictionary": lambda a, b, unused: {"a": a, "b": b},
    "other keys": lambda a, b, unused: {1: a},
    "one that is not used": lambda a, b, unused: {"a": a, "unused": unused},
    "one without gradient": lambda a, b, unused: {"a": a, "constant": unused.detach()},
    "empty dictionary": lambda a, b, unused: {},
    "view of values": lambda a, b, unused: {"a": a}.values(),
    "iterator": lambda a, b, unused: iter([a, b]),
    "named tuple": lambda a, b, unused: collections.namedtuple("Inputs", "a")(a),
    "ordered dictionary": lambda a, b, unused: collections.OrderedDict(a=a),
    "other mapping": lambda a, b, unused: collections.UserDict(a=a),
    "nested": lambda a, b, unused: {"a": a, "b": [b]},
    "number in a dictionary": lambda a, b, unused: {"a": 1},
    "None": lambda a, b, unused: [None],
    "string": lambda a, b, unused: "x",
}
OPTIONS = ({}, {"allow_unused": True}, {"materialize_grads": True}, {"create_graph": True})


def gradients(library, make, options):
    """The gradients as lists, or the error."""
    a, b, unused = (library.ones(n, requires_grad=True) for n in (2, 3, 1))
    loss = (a * 2).sum() + (b * 3).sum()
    try:
        found = library.autograd.grad(loss, make(a, b, unused), **options)
    except (RuntimeError, TypeError) as error:
        return type(error).__name__, str(error)
    values = found.values() if isinstance(found, dict) else found
    return type(found), list(found) if isinstance(found, dict) else None, [
        None if x is None else x.tolist() for x in values]


@pytest.mark.parametrize("name", INPUTS)
def test_inputs(name):
    for options in OPTIONS:
        assert gradients(flambeau, INPUTS[name], options) == gradients(torch, INPUTS[name], options)


def test_batched_cotangents_and_backward():
    found = []
    for library in (flambeau, torch):
        x = library.ones(2, requires_grad=True)
        y = (x * 2).sum().reshape(1)
        batched = library.autograd.grad([y], {"x": x}, grad_outputs=[library.ones(2, 1)], is_grads_batched=True,
                                        retain_graph=True)
        library.autograd.backward(y, inputs={"x": x})
        found.append((batched["x"].tolist(), x.grad.tolist()))
    assert found[0] == found[1]
