"""Devices as arguments: what `torch.device`, `device=` and `to` take, and what a context of a device reaches."""

from __future__ import annotations

import importlib
import importlib.util
from typing import Any

import numpy as np
import pytest

pytestmark = [pytest.mark.parity,
              pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="PyTorch is the oracle"),
              pytest.mark.filterwarnings("ignore")]

DEVICES = ("1", "-1", "np.int64(1)", "{}", "1.5", "b'x'", "b'cpu'", "'x'", "'cuda'", "'cpu:1'", "None", "True",
           "object()",
           "torch.float32", "torch.tensor(1)", "'meta:3'", "'cpu:-1'", "''", "np.str_('cpu')", "2**70")
TAKERS = ("torch.zeros((1,), device={})", "torch.full((1,), 2., device={})", "torch.tensor(1., device={})",
          "torch.as_tensor(x, device={})", "torch.asarray(a, device={})", "x.new_zeros((1,), device={})",
          "x.new_tensor([1.], device={})", "torch.zeros_like(x, device={})", "torch.arange(2, device={})",
          "torch.eye(2, device={})", "torch.tril_indices(2, 2, device={})", "torch.Tensor([1.], device={})",
          "torch.nn.Identity().to({})", "x.to({})", "x.to(device={})", "torch.device({})",
          "torch.hann_window(3, device={})", "torch.Generator(device={}).device")
CONSTRUCTIONS = (
    "", "'cpu', 0", "'cpu', -1", "'cpu', index=0", "type='cpu'", "type=0", "1, 2", "'cuda:0', 1", "'cpu', 1.5",
    "'cpu', 'a'",
    "'cpu', True", "torch.device('cpu'), 0", "foo=1", "'cpu', 2**70", "'cpu:300'", "'cuda', np.int64(1)", "b'cuda', 1",
    "'cuda:'", "'cuda:01'", "device='cpu'", "torch.device('cuda'), index=1", "'cpu', None")
CONVERSIONS = (
    "", "torch.float64", "float", "1.5", "1j", "True", "np.float64(1)", "i", "[1]", "None, torch.float64",
    "'cpu', float", "torch.float64, True, True", "torch.float64, 'cpu'", "i, torch.float64",
    "'cpu', torch.float64, True, True, 1",
    "'cpu', True", "None, None, None", "None, None, True, True", "torch.float64, 1", "torch.float64, copy=1",
    "copy=True",
    "copy=None", "dtype=int", "dtype='a'", "torch.int8, dtype=torch.int16", "tensor=i", "other=i", "i, copy=True",
    "memory_format='a'", "wrong=1", "'cpu', 1.5", "np.float32", "'float64'", "non_blocking=1")
#: what is made within a context of a device, of other tensors or of none
MADE = ("torch.zeros_like(x)", "torch.rand_like(x)", "x.new_ones(1)", "x.new_tensor([1.])", "x.new(2)", "torch.ones(1)",
        "torch.empty_strided((1,), (1,))", "torch.randn(1)", "torch.randperm(3)", "torch.arange(2)",
        "torch.tensor([1.])",
        "torch.asarray(a)", "torch.as_tensor(x)", "torch.triu_indices(2, 2)", "torch.kaiser_window(3)",
        "torch.range(0, 1)",
        "torch.normal(0., 1., (2,))", "torch.vander(x)", "torch.fft.rfftfreq(3)", "torch.signal.windows.hann(3)",
        "torch.from_numpy(a)", "torch.frombuffer(bytearray(8), dtype=torch.float32)", "torch.quantile(x, 0.5)",
        "torch.nn.Linear(1, 1).weight", "torch.nn.functional.gumbel_softmax(x)", "torch.Tensor(2)", "m.new(2)",
        "torch.zeros_like(m)", "torch.multinomial(x, 1)", "torch.corrcoef(x)", "torch.get_default_device()")


def _outcome(library: str, text: str, within: str | None = None) -> Any:
    torch = importlib.import_module(library)
    names = {"torch": torch, "np": np, "x": torch.ones(2), "i": torch.ones(2, dtype=torch.int32), "a": np.ones(2),
             "m": torch.ones(2, device="meta")}
    try:
        if within is not None:
            with torch.device(within):
                result = eval(text, names)
            return str(getattr(result, "device", result))
        return repr(eval(text, names)).replace(library, "torch")
    except Exception as error:
        text = str(error).replace(library, "torch")
        # PyTorch has no sparse, legacy or CUDA dispatch here that could fail later
        return type(error).__name__, text.partition(" PyTorch splits")[0]


@pytest.mark.parametrize("device", DEVICES)
def test_functions_take_what_pytorch_takes(device):
    here = {text: _outcome("flambeau", text.format(device)) for text in TAKERS}
    there = {text: _outcome("torch", text.format(device)) for text in TAKERS}
    if device == "'cuda'":  # PyTorch copies NumPy's arrays by another way, whose error is another one
        del here[TAKERS[4]], there[TAKERS[4]]
    assert here == there


@pytest.mark.parametrize("text", CONSTRUCTIONS)
def test_devices_are_made_of_what_pytorch_takes(text):
    assert _outcome("flambeau", f"torch.device({text})") == _outcome("torch", f"torch.device({text})")


@pytest.mark.parametrize("text", CONVERSIONS)
@pytest.mark.parametrize("of", ["x", "i", "torch.nn.Linear(1, 1, dtype=torch.float64).requires_grad_(False)"])
def test_to_takes_what_pytorch_takes(text, of):
    assert _outcome("flambeau", f"{of}.to({text})") == _outcome("torch", f"{of}.to({text})")


@pytest.mark.parametrize("text", MADE)
@pytest.mark.parametrize("within", ["meta", "cpu"])
def test_contexts_reach_what_is_made_of_no_other_tensor(text, within):
    assert _outcome("flambeau", text, within) == _outcome("torch", text, within)
