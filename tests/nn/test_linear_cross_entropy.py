"""`linear_cross_entropy`, its module and options compared with PyTorch."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import flambeau

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.parity


def text(x):
    return repr(x).replace("flambeau.", "torch.")


def outcomes(program, rtol=2e-5):
    both = []
    for lib in (torch, flambeau):
        lib.manual_seed(5)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                result = program(lib)
            except Exception as error:
                result = [type(error).__name__, text(str(error))]
        both.append(([text(x) for x in result if not hasattr(x, "detach")],
                     [x for x in result if hasattr(x, "detach")], [text(str(w.message)) for w in caught]))
    (their_values, theirs, their_warnings), (our_values, ours, our_warnings) = both
    assert our_values == their_values
    assert our_warnings == their_warnings
    for a, b in zip(theirs, ours, strict=True):
        assert text(a.dtype) == text(b.dtype)
        np.testing.assert_allclose(b.detach().float().numpy(), a.detach().float().numpy(), rtol=rtol, atol=rtol / 10)


OPTIONS = [None, "", "batch_chunk_size=2", "chunking_method=None", "chunking_method='aspect_ratio'",
           "allow_retain_graph=True, acc_policy='balanced'"]


@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("more", ["", "weight", "bias", "ignore", "everything", "unbatched"])
def test_module(more, reduction, options):
    def program(lib):
        everything = more == "everything"
        chosen = None if options is None else eval(f"lib.nn.LinearCrossEntropyOptions({options})", {"lib": lib})
        loss = lib.nn.LinearCrossEntropyLoss(
            3, 4, bias=everything or more == "bias", weight=lib.rand(4) if everything or more == "weight" else None,
            ignore_index=2 if everything or more == "ignore" else None, reduction=reduction, options=chosen)
        x = lib.randn(7, 3, requires_grad=True)
        target = lib.tensor([0, 3, 2, 2, 1, -100 if loss.ignore_index is None else 2, 3])
        value = loss(x[0], target[0]) if more == "unbatched" else loss(x, target)
        (value * value).sum().backward()
        return [repr(loss), type(value.grad_fn).__name__, value, x.grad, *[p.grad for p in loss.parameters()]]
    outcomes(program)


@pytest.mark.parametrize("dtype", ["float64", "float16", "bfloat16"])
def test_dtypes(dtype):
    def program(lib):
        kind = getattr(lib, dtype)
        x, w = lib.randn(6, 3).to(kind).requires_grad_(), lib.randn(5, 3).to(kind).requires_grad_()
        results = []
        for reduction in ("mean", "none"):
            x.grad = w.grad = None
            loss = lib.nn.functional.linear_cross_entropy(x, w, lib.arange(6) % 5, reduction=reduction,
                                                          options=lib.nn.LinearCrossEntropyOptions(batch_chunk_size=4))
            loss.sum().backward()
            results += [loss, x.grad, w.grad]
        return results
    outcomes(program, 2e-5 if dtype == "float64" else 0.02)


def test_positions_and_probabilities():
    def program(lib):
        loss = lib.nn.LinearCrossEntropyLoss(5, 6, out_features=(2, 3), bias=True, label_smoothing=0.1)
        x = lib.randn(4, 5, requires_grad=True)
        return [loss(x, lib.arange(24).reshape(4, 2, 3) % 6), loss(x, lib.rand(4, 6, 2, 3).softmax(1)),
                *[tuple(p.shape) for p in loss.parameters()], list(loss.state_dict())]
    outcomes(program)


@pytest.mark.parametrize("source", [
    "O()", "O()._adjust(100, 8, 64, lib.float32, lib.device('cpu'))",
    "O()._adjust(100, 8, 64, lib.bfloat16, lib.device('cpu'))", "O()._adjust(100, 64, 8, lib.float32)",
    "O(batch_chunk_size=3, chunking_method='aspect_ratio')._adjust(100, 8, 64, lib.float32)", "O(acc_policy='x')",
    "O(chunking_method='aspect_ratio:0')", "O(chunking_method='x')", "O(batch_chunk_size=0)", "O(acc_dtype=lib.int32)",
    "f(x, w, y, options=O(acc_dtype=lib.float64))", "f(x.double(), w, y, options=O())", "f(x, w, y, reduction='x')",
    "f(x, w, y, reduction='x', options=O())", "f(x, w, y, label_smoothing=0.1, options=O())", "f(x[:, :2], w, y)",
    "f(x[None], w, y)", "f(x, w[0], y)", "f(x, w, y, linear_bias=lib.ones(3))", "f(x[0], w[:, None], y)",
    "f(x, w, lib.rand(5, 4), ignore_index=1)", "f(x, w, y * 0 - 100, options=O())", "f(x, w, y + 9, options=O())",
    "lib.nn.LinearCrossEntropyLoss(3, 4, weight=lib.ones(3))", "lib.nn.LinearCrossEntropyLoss(3, 4, label_smoothing=3)",
])
def test_calls(source):
    outcomes(lambda lib: [eval(source, {
        "lib": lib, "O": lib.nn.LinearCrossEntropyOptions, "f": lib.nn.functional.linear_cross_entropy,
        "x": lib.randn(5, 3), "w": lib.randn(4, 3), "y": lib.tensor([0, 1, 2, 3, -100])})])


@pytest.mark.parametrize("options", ["", "allow_retain_graph=True"])
def test_second_backward(options):
    def program(lib):
        x, w = lib.randn(5, 3, requires_grad=True), lib.randn(4, 3, requires_grad=True)
        loss = lib.nn.functional.linear_cross_entropy(
            x, w, lib.arange(5) % 4, options=eval(f"lib.nn.LinearCrossEntropyOptions({options})", {"lib": lib}))
        loss.backward(retain_graph=True)
        loss.backward(retain_graph=True)
        return [x.grad, w.grad]
    outcomes(program)
