"""`FLAMBEAU_DEBUG=recompiles`: the failed guard of each entry, or the difference between two signatures."""

from __future__ import annotations

import pytest

import flambeau as torch
from flambeau.compiler.execution.recompile_reasons import failed_guard

SCALE = 2.0


def scaled(x):
    return x * SCALE


class Gain(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.gain = 2.0

    def forward(self, x):
        return x * self.gain


def entry_of(compiled):
    [cache] = compiled._signatures.values()
    return cache.entries[0]


@pytest.fixture
def printed(monkeypatch, capsys):
    """A function that returns what has been printed to stderr."""
    monkeypatch.setenv("FLAMBEAU_DEBUG", "recompiles")
    return lambda: capsys.readouterr().err


def test_a_changed_global_is_named_with_both_values(printed, monkeypatch):
    monkeypatch.setitem(globals(), "SCALE", 2.0)
    f, x = torch.compile(scaled), torch.ones(3)
    for _ in range(3):
        f(x)
    assert printed() == ""
    entry = entry_of(f)
    assert failed_guard(entry, [x]) is None
    monkeypatch.setitem(globals(), "SCALE", 3.0)
    assert failed_guard(entry, [x]).endswith("SCALE was 2.0, and is 3.0")
    assert f(x).tolist() == [3.0] * 3
    assert "scaled: traced again, since no program's guards hold\n  scaled: " in printed()
    for _ in range(3):  # the trace that has to agree with it has the same reason
        f(x)
    assert printed() == ""


def test_an_attribute_of_a_module_is_named():
    model, x = Gain(), torch.ones(3)
    f = torch.compile(lambda x: model(x))
    for _ in range(3):
        f(x)
    entry = entry_of(f)
    model.gain = 3.0
    assert "gain of" in failed_guard(entry, [x])


def test_an_optimizer_option_is_reported():
    p = torch.nn.Parameter(torch.ones(3))
    optimizer = torch.optim.SGD([p], lr=0.1)

    def step():
        optimizer.zero_grad()
        (p * p).sum().backward()
        optimizer.step()

    f = torch.compile(step)
    for _ in range(4):
        f()
    entry = entry_of(f)
    assert failed_guard(entry, []) is None
    optimizer.param_groups[0]["maximize"] = True
    assert failed_guard(entry, []) == "an optimizer has other groups, parameters or options"


@pytest.mark.parametrize(("first", "second", "text"), [
    ((2,), (4,), "argument 0 was float32[2], and is float32[4]"),
    ((2, 3), (3, 2), "argument 0 was float32[2, 3], and is float32[3, 2]"),
])
def test_a_new_shape_is_reported(printed, first, second, text):
    f = torch.compile(lambda x: x * 2)
    f(torch.ones(first))
    f(torch.ones(second))
    assert text in printed()


def test_other_differences_of_signatures_are_reported(printed):
    f = torch.compile(lambda x, n: x * n)
    f(torch.ones(2), 3)
    f(torch.ones(2), 4)
    assert "argument 1 was 3, and is 4" in printed()
    f(torch.ones(2, requires_grad=True), 4)
    assert "argument 0 was float32[2], and is float32[2], requires grad" in printed()
    with torch.no_grad():
        f(torch.ones(2, requires_grad=True), 4)
    assert "grad mode has changed" in printed()
    f(torch.ones(2, 1).t()[0], 4)
    f((torch.ones(2),), 4)
    assert "the arguments were " in printed()


def test_the_reason_is_given_if_and_only_if_the_guards_fail(monkeypatch):
    monkeypatch.setitem(globals(), "SCALE", 2.0)
    f = torch.compile(scaled)
    for _ in range(3):
        f(torch.ones(3))
    entry = entry_of(f)
    for value in (2.0, 5, "text", None, 2.0):
        monkeypatch.setitem(globals(), "SCALE", value)
        assert (failed_guard(entry, [torch.ones(3)]) is None) is entry.check_guards([torch.ones(3)])
