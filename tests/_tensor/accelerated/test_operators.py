"""Operators on the fake device: samples of the records give what they give on the CPU, gradients included."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import flambeau as torch
from tests.ops.spec import Make, load, public

#: whose samples overlap in memory, which a copy to the device does not
_OVERLAPPING = ("as_strided",)
RECORDS = sorted(name for name in load() if name not in _OVERLAPPING)
#: arguments whose default is another one on CUDA devices
_DEFAULTS: dict[str, dict[str, Any]] = {"linalg.lstsq": {"driver": "gels"}}


def keywords(name: str, sample: Any) -> dict[str, Any]:
    """The keyword arguments of a sample, with CUDA's defaults."""
    return {**sample.kwargs, **_DEFAULTS.get(name, {})}


@pytest.fixture(scope="module", autouse=True)
def device():
    with torch.testing.fake_cuda() as runtime:
        yield runtime


def moved(x: Any) -> Any:
    if isinstance(x, torch.Tensor):
        y = x.detach().cuda()
        return y.requires_grad_() if x.requires_grad else y
    if type(x) in (list, tuple):
        return type(x)(moved(each) for each in x)
    return {name: moved(value) for name, value in x.items()} if isinstance(x, dict) else x


def tensors(x: Any) -> list[Any]:
    if isinstance(x, torch.Tensor):
        return [x]
    values = x.values() if isinstance(x, dict) else x if isinstance(x, (list, tuple)) else ()
    return [each for value in values for each in tensors(value)]


def assert_same(here: Any, there: Any) -> None:
    assert there.device == torch.device("cuda:0")
    assert (here.shape, here.dtype, here.stride()) == (there.shape, there.dtype, there.stride())
    assert (here.grad_fn is None) == (there.grad_fn is None)
    if here.grad_fn is not None:
        assert here.grad_fn.name() == there.grad_fn.name()
    a, b = (x.detach().cpu().resolve_conj().resolve_neg() for x in (here, there))
    np.testing.assert_array_equal(a.float().numpy() if a.dtype is torch.bfloat16 else a.numpy(),
                                  b.float().numpy() if b.dtype is torch.bfloat16 else b.numpy())


@pytest.mark.parametrize("part", range(6))
def test_samples(part: int) -> None:
    for name in RECORDS[part::6]:
        record = load()[name]
        dtype = torch.float32 if record.floats else torch.int64
        function = public(torch, name)
        for sample in list(record.samples(Make(torch, dtype, record.differentiable)))[:2]:
            try:
                here = function(*sample.args, **keywords(name, sample))
            except (RuntimeError, TypeError, ValueError, IndexError, NotImplementedError):
                continue
            args, kwargs = moved(sample.args), moved(keywords(name, sample))
            there = function(*args, **kwargs)
            outs, device_outs = tensors(here), tensors(there)
            assert len(outs) == len(device_outs), name
            for a, b in zip(outs, device_outs, strict=True):
                assert_same(a, b)
            leaves, device_leaves = (
                [x for x in tensors([a, k]) if x.requires_grad]
                for a, k in ((list(sample.args), sample.kwargs), (list(args), kwargs)))
            outs, device_outs = ([x for x in each if x.requires_grad] for each in (outs, device_outs))
            if not leaves or not outs:
                continue
            grads, device_grads = (
                torch.autograd.grad(each, of, [torch.ones_like(x) for x in each], allow_unused=True)
                for each, of in ((outs, leaves), (device_outs, device_leaves)))
            for a, b in zip(grads, device_grads, strict=True):
                assert (a is None) == (b is None), name
                if a is not None:
                    assert b.is_cuda, name
                    torch.testing.assert_close(b.cpu(), a, equal_nan=True, msg=name)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float64, torch.complex64, torch.int32])
def test_dtypes(dtype: Any) -> None:
    x = torch.tensor([[1, 2], [3, 4]], dtype=dtype)
    for function in (lambda t: t + t, lambda t: t * 2, lambda t: t @ t, lambda t: t.sum(0), lambda t: t.T.contiguous(),
                     lambda t: t.to(torch.float32 if not dtype.is_complex else torch.complex128),
                     lambda t: torch.cat([t, t]), lambda t: t[:, 0], lambda t: t.clone().mul_(3)):
        assert_same(function(x), function(x.cuda()))
