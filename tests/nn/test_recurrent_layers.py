"""Fused recurrent layers (one node for all steps) compared with step-by-step evaluation, to second order."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import flambeau as torch
from flambeau import codegen
from flambeau.backends.numpy import recurrent as recurrent_arrays
from flambeau.nn import recurrent

LAYERS = ("LSTM", "GRU")
HOW: list[dict[str, Any]] = [{}, {"bias": False}, {"bidirectional": True, "num_layers": 2}, {"batch_first": True}]


def run(layer: Any, x: Any, state: Any, monkeypatch: Any, by_steps: bool) -> list[Any]:
    """Outputs and gradients, fused or step by step."""
    with monkeypatch.context() as patch:
        if by_steps:
            patch.setattr(recurrent, "recurrent_layer", lambda *_: None)
        output, last = layer(x, state)
    results = [output, *(last if isinstance(last, tuple) else (last,))]
    weights = [torch.sin(torch.arange(r.numel(), dtype=r.dtype)).reshape(r.shape) for r in results]
    leaves = [x, *(state if isinstance(state, tuple) else (state,)), *layer.parameters()]
    loss = sum(((r * w).sum() for r, w in zip(results, weights, strict=True)), torch.zeros((), dtype=x.dtype))
    first = torch.autograd.grad(loss, leaves, create_graph=True)
    second = torch.autograd.grad(sum((g * g).sum() for g in first), leaves)
    plain = torch.autograd.grad(layer(x, state)[0].sum(), leaves, allow_unused=True)
    return [*results, *first, *second, *plain]


def made(kind: str, dtype: Any, how: dict[str, Any], transposed: bool = False) -> tuple[Any, Any, Any]:
    torch.manual_seed(3)
    layer = getattr(torch.nn, kind)(3, 4, dtype=dtype, **how)
    x = torch.randn(5, 2, 3, dtype=dtype)
    if transposed:
        x = torch.randn(3, 2, 5, dtype=dtype).transpose(0, 2)
    batch = 5 if how.get("batch_first") else 2
    rows = (2 if how.get("bidirectional") else 1) * how.get("num_layers", 1)
    states = [torch.randn(rows, batch, 4, dtype=dtype).requires_grad_() for _ in range(2)]
    return layer, x.requires_grad_(), tuple(states) if kind == "LSTM" else states[0]


@pytest.mark.parametrize("kind", LAYERS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("how", HOW, ids=str)
def test_fused_equals_steps(kind: str, dtype: Any, how: dict[str, Any], transposed: bool, monkeypatch: Any) -> None:
    layer, x, state = made(kind, dtype, how, transposed)
    actual = run(layer, x, state, monkeypatch, False)
    expected = run(layer, x, state, monkeypatch, True)
    close = 1e-12 if dtype is torch.float64 else 2e-5
    assert actual[0].stride() == expected[0].stride()
    for mine, other in zip(actual, expected, strict=True):
        assert mine.shape == other.shape
        np.testing.assert_allclose(mine.detach().numpy(), other.detach().numpy(), rtol=close, atol=close)


@pytest.mark.parametrize("kind", LAYERS)
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("bidirectional", [False, True])
@pytest.mark.parametrize("sizes", [(7, 3, 5, 16), (1, 1, 1, 90), (4, 9, 33, 31), (99, 2, 5, 40), (2, 40, 7, 24)],
                         ids=str)
def test_large_steps(kind: str, bias: bool, bidirectional: bool, sizes: tuple[int, ...], monkeypatch: Any) -> None:
    """Steps large enough for a compiled kernel, and initial states that are not row-major."""
    length, batch, inputs, hidden = sizes
    torch.manual_seed(0)
    layer = getattr(torch.nn, kind)(inputs, hidden, bias=bias, bidirectional=bidirectional)
    x = torch.randn(length, batch, inputs).requires_grad_()
    states = [torch.randn(1 + bidirectional, hidden, batch).transpose(1, 2).requires_grad_() for _ in range(2)]
    state = tuple(states) if kind == "LSTM" else states[0]
    actual = run(layer, x, state, monkeypatch, False)
    expected = run(layer, x, state, monkeypatch, True)
    for mine, other in zip(actual, expected, strict=True):
        np.testing.assert_allclose(mine.detach().numpy(), other.detach().numpy(), rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("kind", LAYERS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_compiled_steps_equal_numpy(kind: str, dtype: Any, monkeypatch: Any) -> None:
    """All steps in compiled code and step by step in NumPy, with gradients of the outputs in any layout."""
    torch.manual_seed(1)
    layer = getattr(torch.nn, kind)(6, 33, batch_first=True, bidirectional=True, dtype=dtype)
    x = torch.randn(9, 70, 6, dtype=dtype).requires_grad_()
    weights = torch.randn(70, 66, 9, dtype=dtype).transpose(0, 2).transpose(1, 2)

    def run() -> list[Any]:
        output, last = layer(x)
        states = last if isinstance(last, tuple) else (last,)
        losses = [output.sum(), (output * weights).sum(), states[0].sum(), sum(each.sin().sum() for each in states)]
        leaves = [x, *layer.parameters()]
        return [output, *states, *[g for loss in losses for g in torch.autograd.grad(loss, leaves, retain_graph=True)]]

    actual = run()
    monkeypatch.setattr(recurrent_arrays, "recurrent_kernels", lambda _: None)
    close = 1e-10 if dtype is torch.float64 else 2e-3
    for mine, other in zip(actual, run(), strict=True):
        np.testing.assert_allclose(mine.detach().numpy(), other.detach().numpy(), rtol=close, atol=close)


@pytest.mark.parametrize("kind", LAYERS)
def test_gradients_against_finite_differences(kind: str) -> None:
    layer, x, state = made(kind, torch.float64, {})
    states = state if isinstance(state, tuple) else (state,)
    names = [name for name, _ in layer.named_parameters()]

    def call(x: Any, *rest: Any) -> Any:
        given = rest[:len(states)]
        replaced = dict(zip(names, rest[len(states):], strict=True))
        for name, value in replaced.items():
            object.__setattr__(layer, name, value)
        output, last = layer(x, given if kind == "LSTM" else given[0])
        return (output, *last) if kind == "LSTM" else (output, last)

    values = [p.detach().clone().requires_grad_() for p in layer.parameters()]
    for name in names:
        delattr(layer, name)
    assert torch.autograd.gradcheck(call, (x, *states, *values))


def test_node_names() -> None:
    for kind, dtype, name in (("LSTM", torch.float32, "MkldnnRnnLayerBackward0"),
                              ("LSTM", torch.float64, "StackBackward0"), ("GRU", torch.float32, "StackBackward0")):
        layer, x, state = made(kind, dtype, {})
        output, last = layer(x, state)
        assert output.grad_fn.name() == name
        for each in last if isinstance(last, tuple) else (last,):
            assert each.grad_fn.name() == "StackBackward0"


@pytest.mark.parametrize("kind", LAYERS)
def test_overwritten_output_is_detected(kind: str) -> None:
    layer, x, state = made(kind, torch.float32, {})
    output, _ = layer(x, state)
    output.mul_(2)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        output.sum().backward()


@pytest.mark.parametrize("kind", LAYERS)
def test_final_state_is_not_a_view(kind: str) -> None:
    layer, x, state = made(kind, torch.float32, {})
    with torch.no_grad():
        output, last = layer(x, state)
        hidden = last[0] if kind == "LSTM" else last
        before = hidden.clone()
        output.zero_()
        assert torch.equal(hidden, before)


@pytest.mark.parametrize("kind", LAYERS)
def test_only_some_gradients(kind: str) -> None:
    layer, x, state = made(kind, torch.float32, {})
    for p in layer.parameters():
        p.requires_grad_(False)
    with torch.no_grad():
        frozen, _ = layer(x, state)
    assert frozen.grad_fn is None
    layer(x, None)[0].sum().backward()
    assert x.grad is not None
    assert all(p.grad is None for p in layer.parameters())


# ----- plain cells: three operators a step, computed in one pass ------------------------


def plain_run(layer: Any, x: Any, state: Any, monkeypatch: Any, apart: bool) -> list[Any]:
    """Outputs, gradients and graph, by fused cells or operator by operator."""
    with monkeypatch.context() as patch:
        if apart:
            patch.setattr(recurrent, "rnn_steps", lambda *_: None)
        output, last = layer(x, state)
    leaves = [each for each in (x, state, *layer.parameters()) if each is not None and each.requires_grad]
    names = []
    nodes = [output.grad_fn]
    for node in nodes:
        names.append(node.name())
        nodes += [child for child, _ in node.next_functions if child is not None and child not in nodes]
    grads = torch.autograd.grad(output.sin().sum() + last.sum(), leaves) if leaves else ()
    return [names, output, last, *grads]


@pytest.mark.parametrize("nonlinearity", ["tanh", "relu"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.usefixtures("compiled_matmuls")
@pytest.mark.parametrize("how", [*HOW, {"frozen": True}], ids=str)
def test_fused_cells_equal_operators(nonlinearity: str, dtype: Any, how: dict[str, Any], monkeypatch: Any) -> None:
    torch.manual_seed(3)
    how = dict(how)
    frozen = how.pop("frozen", False)
    layer = torch.nn.RNN(48, 64, nonlinearity=nonlinearity, dtype=dtype, **how)
    x = torch.randn(5, 5, 48, dtype=dtype).requires_grad_(frozen)
    layer.requires_grad_(not frozen)
    rows = (2 if how.get("bidirectional") else 1) * how.get("num_layers", 1)
    state = torch.randn(rows, 5, 64, dtype=dtype).requires_grad_(not how)
    actual = plain_run(layer, x, state, monkeypatch, False)
    expected = plain_run(layer, x, state, monkeypatch, True)
    assert actual[0] == expected[0]
    close = 1e-12 if dtype is torch.float64 else 2e-5
    for mine, other in zip(actual[1:], expected[1:], strict=True):
        assert mine.stride() == other.stride()
        np.testing.assert_allclose(mine.detach().numpy(), other.detach().numpy(), rtol=close, atol=close)


@pytest.mark.skipif(not codegen.available(), reason="there are no kernels")
def test_cells_use_the_fused_kernel(monkeypatch: Any) -> None:
    monkeypatch.setattr(recurrent.fn, "linear", lambda *_: pytest.fail("an operator of its own"))
    cell = torch.nn.RNNCell(48, 256)
    shares, state = torch.randn(2, 64, 256)
    new = recurrent.rnn_step(shares, state, cell.weight_hh, cell.bias_hh, "tanh")
    assert new.grad_fn.name() == "TanhBackward0"
    with torch.no_grad():
        new = recurrent.rnn_step(shares, state, cell.weight_hh, cell.bias_hh, "relu")
    assert new.grad_fn is None


def test_cell_state_version_check() -> None:
    """Backward detects an in-place write to the state, as the operators do."""
    cell, state = torch.nn.RNNCell(48, 64), torch.zeros(8, 64)
    new = cell(torch.ones(8, 48), state)
    state.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        new.sum().backward()
    new = cell(torch.ones(8, 48), torch.zeros(8, 64))
    with torch.no_grad():
        new.mul_(2)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        new.sum().backward()


@pytest.mark.parametrize("kind", ["LSTM", "GRU", "RNN"])
def test_assigned_flat_weights_count_until_an_attribute_is_set(kind: str) -> None:
    layer, x = getattr(torch.nn, kind)(2, 3), torch.randn(4, 1, 2)
    doubled = getattr(torch.nn, kind)(2, 3)
    doubled.load_state_dict({name: 2 * weight for name, weight in layer.state_dict().items()})
    before = layer(x)[0]
    layer._flat_weights = [2 * weight for weight in layer._flat_weights]
    assert torch.equal(layer(x)[0], doubled(x)[0])
    layer(x)[0].sum().backward()
    assert layer.weight_ih_l0.grad is not None
    layer.weight_ih_l0 = torch.nn.Parameter(layer.weight_ih_l0.detach().clone())
    assert torch.equal(layer(x)[0], before)
