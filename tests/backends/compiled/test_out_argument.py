"""Elementwise kernels that write `out=`, in any layout, against NumPy."""

from __future__ import annotations

import numpy as np
import pytest

import flambeau as torch
from flambeau._tensor.dispatch import public_functions

CALLS = {
    "add": lambda x, y, out: torch.add(x, y, out=out), "div": lambda x, y, out: torch.div(x, y, out=out),
    "add of a row": lambda x, y, out: torch.add(x, y[0], out=out), "exp": lambda x, y, out: torch.exp(x, out=out),
    "scaled": lambda x, y, out: torch.add(x, y, alpha=0.5, out=out), "tanh": lambda x, y, out: torch.tanh(x, out=out),
    "over an input": lambda x, y, out: torch.mul(x, y, out=x),
    "maximum": lambda x, y, out: torch.maximum(x, y, out=out),
    "addcmul": lambda x, y, out: torch.addcmul(x, x, y, value=2.0, out=out),
}


def out_tensors(shape, dtype):
    """Tensors of a shape with different memory layouts."""
    rows, columns = shape
    yield torch.zeros(shape, dtype=dtype)
    yield torch.zeros((columns, rows), dtype=dtype).t()
    yield torch.zeros((rows, 2 * columns), dtype=dtype)[:, ::2]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.float16], ids=str)
@pytest.mark.parametrize("name", CALLS)
def test_results_and_versions(impls, name, dtype):
    def run():
        found = []
        for out in out_tensors((40, 30), dtype):
            x, y = (torch.from_numpy(np.random.default_rng(k).uniform(1, 2, (40, 30))).to(dtype) for k in range(2))
            result = CALLS[name](x, y, out)
            assert result is (x if name == "over an input" else out)
            found.append((result.clone(), result.stride(), result._version, x, out))
        return found

    for (a, *as_ever, x, out), (b, *now, x_now, out_now) in zip(*impls.both(run), strict=True):
        assert as_ever == now
        for old, new in ((a, b), (x, x_now), (out, out_now)):
            torch.testing.assert_close(new, old)


def test_other_dtypes_are_converted(impls):
    def run():
        x = torch.arange(1200.).reshape(30, 40)
        wide, truth = torch.zeros(30, 40, dtype=torch.float64), torch.zeros(30, 40, dtype=torch.bool)
        torch.sqrt(x, out=wide)
        torch.gt(x, 7, out=truth)
        with pytest.raises(RuntimeError, match="result type Float can't be cast to the desired output type Long"):
            torch.sqrt(x, out=torch.zeros(30, 40, dtype=torch.int64))
        return wide, truth

    for old, new in zip(*impls.both(run), strict=True):
        torch.testing.assert_close(new, old)


@pytest.mark.usefixtures("everything_large")
def test_errors_and_resizing():
    x = torch.ones(1000)
    with pytest.raises(RuntimeError, match="some elements of the input tensor and the written-to tensor refer to a"):
        torch.exp(x[:-1], out=x[1:])
    with pytest.raises(RuntimeError, match="more than one element of the written-to tensor"):
        torch.exp(x, out=torch.zeros(1).expand(1000))
    assert x.eq(1).all()
    with pytest.raises(RuntimeError, match="don't support automatic differentiation"):
        torch.exp(x.requires_grad_(), out=torch.zeros(1000))
    with pytest.warns(UserWarning, match="An output with one or more elements was resized"):
        assert torch.exp(x.detach(), out=torch.zeros(500)).shape == (1000,)


@pytest.mark.usefixtures("everything_large")
def test_kernels_write_into_out(monkeypatch):
    monkeypatch.setattr(public_functions, "write_out", None)
    out = torch.zeros(1000)
    torch.add(torch.ones(1000), torch.ones(1000), out=out)
    assert out.eq(2).all()
