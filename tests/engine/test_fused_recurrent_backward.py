"""Fused recurrent backward: equal to operator by operator, also with hooks, modified states and other users."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import flambeau as torch
from flambeau import codegen
from flambeau.engine.execution import graph_task
from flambeau.engine.rules import deferred_accumulation, fused_recurrent_backward
from flambeau.nn import recurrent

STEPS, BATCH, INPUTS, HIDDEN = 6, 5, 48, 64


pytestmark = [pytest.mark.skipif(not codegen.available(), reason="there are no kernels"),
              pytest.mark.usefixtures("compiled_matmuls")]


def walks(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many steps each walk took, from here on."""
    lengths: list[int] = []
    walk, back = fused_recurrent_backward.run_steps, fused_recurrent_backward.recurrent_steps.backward

    def counted(*args: Any) -> bool:
        lengths.append(1)
        done = walk(*args)
        if not done:
            lengths[-1] = 0
        return done

    def further(*args: Any) -> Any:
        lengths[-1] += 1
        return back(*args)

    monkeypatch.setattr(graph_task, "run_steps", counted)
    monkeypatch.setattr(fused_recurrent_backward.recurrent_steps, "backward", further)
    return lengths


def compared(program: Callable[[], list[Any]], monkeypatch: pytest.MonkeyPatch,
             dtype: Any = torch.float64) -> list[int]:
    """Compare what a program gives, with steps in one pass and operator by operator; the lengths of walks."""
    with monkeypatch.context() as patch:
        lengths = walks(patch)
        found = program()
    with monkeypatch.context() as patch:
        patch.setattr(recurrent, "rnn_steps", lambda *_: None)
        expected = program()
    assert len(found) == len(expected)
    close = 1e-12 if dtype is torch.float64 else 2e-5
    for mine, other in zip(found, expected, strict=True):
        assert (mine is None) is (other is None)
        if mine is not None:
            assert mine.stride() == other.stride()
            np.testing.assert_allclose(mine.detach().numpy(), other.detach().numpy(), rtol=close, atol=close)
    return lengths


def layer_of(how: dict[str, Any]) -> tuple[Any, Any, Any]:
    """A layer, its inputs and a first state."""
    torch.manual_seed(3)
    layer = torch.nn.RNN(INPUTS, HIDDEN, **how)
    dtype = how.get("dtype", torch.float32)
    rows = (2 if how.get("bidirectional") else 1) * how.get("num_layers", 1)
    return layer, torch.randn(STEPS, BATCH, INPUTS, dtype=dtype), torch.randn(rows, BATCH, HIDDEN, dtype=dtype)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("nonlinearity", ["tanh", "relu"])
@pytest.mark.parametrize("wanted", ["parameters", "all", "frozen"])
@pytest.mark.parametrize("last", [False, True])
def test_layers(dtype: Any, nonlinearity: str, wanted: str, last: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    def program() -> list[Any]:
        layer, x, h = layer_of({"nonlinearity": nonlinearity, "dtype": dtype})
        layer.requires_grad_(wanted != "frozen")
        x.requires_grad_(wanted != "parameters")
        h.requires_grad_(wanted != "parameters")
        output, final = layer(x, h)
        (final.sum() if last else (output * output.detach().cos()).sum()).backward()
        return [output, x.grad, h.grad, *(p.grad for p in layer.parameters())]

    assert compared(program, monkeypatch, dtype) == ([] if wanted == "frozen" else [STEPS])


@pytest.mark.parametrize("how", [{"num_layers": 2}, {"bidirectional": True}, {"num_layers": 2, "bidirectional": True},
                                 {"batch_first": True}], ids=str)
def test_several_layers(how: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    def program() -> list[Any]:
        layer, x, _ = layer_of({**how, "dtype": torch.float64})
        x.requires_grad_()
        output, final = layer(x)
        (output.sin().sum() + final.sum()).backward()
        return [x.grad, *(p.grad for p in layer.parameters())]

    steps = BATCH if how.get("batch_first") else STEPS
    count = how.get("num_layers", 1) * (2 if how.get("bidirectional") else 1)
    lengths = compared(program, monkeypatch)
    assert sum(lengths) == steps * count
    assert how.get("bidirectional") or lengths == [steps] * count


def test_truncated_sequences_and_existing_gradients(monkeypatch: pytest.MonkeyPatch) -> None:
    """The state of one call is that of the next, and `.grad` is added to."""
    def program() -> list[Any]:
        layer, x, h = layer_of({"dtype": torch.float64})
        first, state = layer(x, h.mT.contiguous().mT.requires_grad_())
        second, state = layer(x, state)
        (first.sum() + second.sum()).backward(retain_graph=True)
        second.square().sum().backward()
        return [p.grad for p in layer.parameters()]

    compared(program, monkeypatch)


def test_many_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """More than wait at a time; and a batch that is too large to wait."""
    for batch, steps in ((40, 70), (deferred_accumulation.MAX_DEFERRED_ROWS + 1, 3)):
        def program(batch: int = batch, steps: int = steps) -> list[Any]:
            torch.manual_seed(1)
            layer = torch.nn.RNN(4, HIDDEN, dtype=torch.float64)
            layer(torch.randn(steps, batch, 4, dtype=torch.float64))[0].sum().backward()
            return [p.grad for p in layer.parameters()]

        assert compared(program, monkeypatch) == ([steps] if batch == 40 else [])


def sequence(each: Callable[[list[Any]], Any], twice: bool = False) -> list[Any]:
    """Steps with accessible states, unlike those of `nn.RNN`; `each` is called with them."""
    torch.manual_seed(5)
    xs = torch.randn(STEPS, BATCH, HIDDEN, dtype=torch.float64).requires_grad_()
    w = (torch.randn(HIDDEN, HIDDEN, dtype=torch.float64) / 8).requires_grad_()
    b = torch.randn(HIDDEN, dtype=torch.float64).requires_grad_()
    first = torch.zeros(BATCH, HIDDEN, dtype=torch.float64).requires_grad_()
    states: Any = recurrent.rnn_steps(xs.unbind(), first, w, b, "tanh")
    if states is None:
        states, h = [], first
        for x in xs.unbind():
            h = (torch.nn.functional.linear(h, w, b) + x).tanh()
            states.append(h)
    more = each(states)
    loss = states[-1].square().sum() + sum(state.sum() * i for i, state in enumerate(states[::3]))
    if more is not None:
        loss = loss + more
    if twice:
        loss.backward(retain_graph=True)
    loss.backward()
    return [first.grad, xs.grad, w.grad, b.grad, *(state.grad for state in states if state.retains_grad)]


def test_repeated_backward(monkeypatch: pytest.MonkeyPatch) -> None:
    assert compared(lambda: sequence(lambda states: None), monkeypatch) == [STEPS]
    assert compared(lambda: sequence(lambda states: None, twice=True), monkeypatch) == [STEPS] * 2


def hook(states: list[Any]) -> None:
    states[2].register_hook(lambda g: g * 2)


def hook_of_a_sum(states: list[Any]) -> None:
    states[4].grad_fn.next_functions[0][0].register_hook(lambda found, given: tuple(g * 3 for g in found))


def hook_before_a_product(states: list[Any]) -> None:
    states[1].grad_fn.next_functions[0][0].next_functions[0][0].register_prehook(lambda given: (given[0] * 3,))


def hook_of_a_transpose(states: list[Any]) -> None:
    linear = states[3].grad_fn.next_functions[0][0].next_functions[0][0]
    linear.next_functions[2][0].register_hook(lambda found, given: (found[0] * 5,))


def retained(states: list[Any]) -> None:
    for state in states[::2]:
        state.retain_grad()


def more_of_a_state(states: list[Any]) -> Any:
    return (states[3].sin() * states[1]).sum()


def a_part_of_a_state(states: list[Any]) -> Any:
    return states[3][0].sum() + states[2].mT.sum()


def a_state_alone(states: list[Any]) -> Any:
    states[4].sum().backward(retain_graph=True)


@pytest.mark.parametrize(("each", "lengths"), [
    (hook, [3, 2]), (hook_of_a_sum, [1, 4]), (hook_before_a_product, [4, 1]), (hook_of_a_transpose, [2, 3]),
    (retained, [1, 1, 1]), (more_of_a_state, [6]), (a_part_of_a_state, [6]), (a_state_alone, [5, 6])])
def test_operators_between_steps(each: Any, lengths: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    """A node that something watches is left to the engine; more cotangents for a state are waited for."""
    found = compared(lambda: sequence(each), monkeypatch)
    assert [length for length in found if length] == lengths


def test_infinities_and_nan(monkeypatch: pytest.MonkeyPatch) -> None:
    def program() -> list[Any]:
        layer, x, h = layer_of({"nonlinearity": "relu", "dtype": torch.float64})
        x[2, 0, 0] = float("nan")
        x[4, 1, 0] = float("inf")
        output, _ = layer(x, h.requires_grad_())
        output.sum().backward()
        return [h.grad, *(p.grad for p in layer.parameters())]

    compared(program, monkeypatch)


def test_unsupported_cases() -> None:
    """A second time; a state that was written to, which is found where that step is."""
    layer, x, _ = layer_of({})
    output, _ = layer(x)
    output.sum().backward()
    with pytest.raises(RuntimeError, match="backward through the graph a second time"):
        output.sum().backward()
    w, b = torch.randn(HIDDEN, HIDDEN, requires_grad=True), torch.randn(HIDDEN, requires_grad=True)
    xs = [torch.randn(BATCH, HIDDEN, requires_grad=True) for _ in range(STEPS)]
    states: Any = recurrent.rnn_steps(xs, torch.zeros(BATCH, HIDDEN), w, b, "tanh")
    with torch.no_grad():
        states[2].mul_(2)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        states[-1].sum().backward()
    assert [each.grad is not None for each in xs] == [False, False, False, True, True, True]


def test_a_single_cell_retains_nothing_else() -> None:
    cell = torch.nn.RNNCell(INPUTS, HIDDEN)
    h = cell(torch.randn(BATCH, INPUTS))
    assert h.untyped_storage().nbytes() == 4 * BATCH * HIDDEN
