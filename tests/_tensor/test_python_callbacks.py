"""Methods that call Python functions, and those that are deprecated or concern other devices."""

from __future__ import annotations

import pytest

import flambeau as torch


def test_apply_and_map() -> None:
    x = torch.arange(6.0).reshape(2, 3)
    assert x.clone().apply_(lambda v: v * 2).tolist() == (x * 2).tolist()
    assert x.clone().t().apply_(lambda v: v + 1).tolist() == (x.t() + 1).tolist()
    assert x.clone().map_(torch.ones(3), lambda a, b: a + b).tolist() == (x + 1).tolist()
    assert x.clone().map2_(x, x, lambda a, b, c: a + b * c).tolist() == (x + x * x).tolist()
    assert torch.ones(2, dtype=torch.float16).apply_(lambda v: v + 1).tolist() == [2.0, 2.0]
    assert torch.arange(3).apply_(lambda v: v + 0.5).tolist() == [0, 1, 2]


@pytest.mark.parametrize(("call", "error", "text"), [
    (lambda x: x.requires_grad_().apply_(abs), RuntimeError,
     "Can't call apply_() on Variable that requires grad. Use var.detach().apply_() instead."),
    (lambda x: x.apply_(3), TypeError, "'int' object is not callable"),
    (lambda x: x.map_(x.double(), lambda a, b: a), TypeError,
     "map_: expected torch.FloatTensor for 'other' (got torch.DoubleTensor)"),
    (lambda x: torch.symeig(x), RuntimeError, None), (lambda x: x.solve(x), RuntimeError, None),
    (lambda x: x.reinforce(1), RuntimeError, None), (lambda x: x.xpu(), AssertionError,
                                                    "Torch not compiled with XPU enabled"),
])
def test_errors(call, error, text) -> None:
    with pytest.raises(error) as raised:
        call(torch.ones(2, 2))
    assert text is None or str(raised.value) == text


def test_dim_order() -> None:
    assert torch.ones(2, 3).t().dim_order() == (1, 0)
    assert torch.ones(2, 3, 4, 5).to(memory_format=torch.channels_last).dim_order() == (0, 2, 3, 1)
    with pytest.raises(RuntimeError, match="unique dim order"):
        torch.ones(1, 2, 1, 3).dim_order(ambiguity_check=True)


@pytest.mark.parity
@pytest.mark.parametrize("dtype", ["bool", "int8", "uint8", "int64", "float16", "float32", "complex64"])
def test_converted_values(dtype) -> None:
    """What the function returns: the elements or the error, as in PyTorch."""
    oracle = pytest.importorskip("torch")

    def outcome(lib, value):
        x = lib.ones(3).to(getattr(lib, dtype))
        try:
            values = iter((1, value))
            x.apply_(lambda k: next(values, 1))
            error = None
        except Exception as raised:
            error = type(raised), str(raised)
        return x.tolist(), error

    for value in ("1", 1.5, 2, True, None, 300, -1, -300, 2 ** 70, 10 ** 400, 1j, float("inf"), 1e300):
        assert outcome(torch, value) == outcome(oracle, value), value
    assert torch.ones(2, device="meta").apply_(None.__class__).is_meta
