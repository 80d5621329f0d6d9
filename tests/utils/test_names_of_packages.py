"""Names below the public ones that packages take from PyTorch."""

from __future__ import annotations

import numpy as np
import pytest

import flambeau as torch
from tests.packages.used_names import missing_part, names_in


@pytest.mark.parametrize("name", [
    "_dynamo.is_dynamo_supported", "_dynamo.utils.disable_cache_limit", "_dynamo.utils.warn_once",
    "_utils._set_obj_state", "distributed.autograd.is_available", "optim.optimizer.ParamsT",
    "nn.modules.pooling._AvgPoolNd", "optim.Optimizer._group_tensors_by_device_and_dtype",
    "optim.optimizer.StateDict", "optim.optimizer._use_grad_for_differentiable",
    "profiler.profiler._default_schedule_fn",
    "utils.data._utils.HAS_NUMPY", "utils.data._utils.pin_memory._pin_memory_loop",
    "utils.data.dataloader._collate_fn_t", "utils.data.dataloader._sharding_worker_init_fn",
    "utils.data.dataloader._worker_init_fn_t", "utils.tensorboard._convert_np.make_np",
    "utils.tensorboard._utils.figure_to_image",
])
def test_they_are_there(name):
    if "tensorboard" in name:
        pytest.importorskip("tensorboard")
    assert missing_part("flambeau", f"torch.{name}") is None


def test_a_missing_part_is_the_shortest_beginning():
    assert missing_part("flambeau", "torch.nn.Linear.forward") is None
    assert missing_part("flambeau", "torch.nn.NoSuchModule.forward") == "torch.nn.NoSuchModule"


def test_names_in_a_source():
    source = ("import torch\nimport torch.nn.functional as F\nfrom torch import nn as layers\n"
              "F.relu, layers.Linear, torch.add")
    assert set(names_in(source)) == {"torch", "torch.nn.functional", "torch.nn", "torch.nn.functional.relu",
                                     "torch.nn.Linear", "torch.add"}


def test_implementations_of_steps():
    optimizer = torch.optim.optimizer
    x = [torch.ones(2), torch.ones(2, requires_grad=True)]
    assert optimizer._default_to_fused_or_foreach(x, False) == (False, False)
    assert optimizer._default_to_fused_or_foreach(x, False, use_fused=True) == (True, False)
    assert optimizer._default_to_fused_or_foreach([torch.ones(2).int()], False, use_fused=True) == (False, False)

    class Mode(torch.optim.Optimizer):
        @optimizer._use_grad_for_differentiable
        def step(self):
            return torch.is_grad_enabled()

    assert [Mode([x[1]], {"differentiable": each}).step() for each in (False, True)] == [False, True]
    assert torch.is_grad_enabled()


def test_gradients_of_softmax_by_their_result():
    x = torch.tensor([[0.5, 1.0, -1.0]], dtype=torch.float64)
    for operator, backward in ((torch.softmax, torch._softmax_backward_data),
                               (torch.log_softmax, torch._log_softmax_backward_data)):
        slope = torch.func.vjp(lambda x, f=operator: f(x, 1), x)[1](x)[0]
        torch.testing.assert_close(backward(x, operator(x, 1), 1, torch.float64), slope)


def test_results_of_gradients_are_written():
    y = torch.softmax(torch.arange(3.0), 0)
    into, logs = torch.zeros(3), torch.zeros(3)
    torch._softmax_backward_data(y, y, 0, torch.float32, grad_input=into)
    torch._log_softmax_backward_data(y, y.log(), 0, torch.float32, out=logs)
    assert into.abs().sum() > 0
    torch.testing.assert_close(logs, torch._log_softmax_backward_data(y, y.log(), 0, torch.float32))


def test_products_of_bytes():
    a = torch.full((2, 300), 100, dtype=torch.int8)
    assert torch._int_mm(a, a.T).tolist() == [[3_000_000, 3_000_000]] * 2
    with pytest.raises(RuntimeError, match="Expected self dtype to be int8 or uint8 but got float"):
        torch._int_mm(a.float(), a.T)


def test_torchaudio_finds_its_operators(tmp_path):
    torch.ops.load_library(tmp_path / "libtorchaudio.so")
    assert torch.ops._torchaudio.is_align_available() is False
    assert torch.ops._torchaudio.cuda_version() is None
    x, coefficients = torch.tensor([[[1.0, 0.0, 0.0, 2.0]]]), torch.tensor([[0.5, -0.5, 1.0]])  # of t - 2, t - 1, t
    filtered = torch.zeros(1, 1, 6)
    torch.ops.torchaudio._lfilter_core_loop(x, coefficients, filtered)
    assert filtered.tolist() == [[[0.0, 0.0, 1.0, 0.5, -0.25, 1.625]]]
    doubles = torch.zeros(1, 1, 6, dtype=torch.float64)
    torch.ops.torchaudio._lfilter_core_loop(x.double() / 3, coefficients.double(), doubles)
    np.testing.assert_allclose(doubles.numpy() * 3, filtered.numpy(), rtol=1e-15)
    wave, mixed = torch.tensor([[1.0, 0.5]]), torch.zeros(1, 2)
    torch.ops.torchaudio._overdrive_core_loop(wave, wave, torch.zeros(1), torch.zeros(1), mixed)
    np.testing.assert_allclose(mixed.numpy(), [[1.25, 0.25 + 0.75 * 0.495]], rtol=1e-6)


def test_other_libraries_cannot_be_loaded(tmp_path):
    with pytest.raises(OSError, match="cannot load libraries"):
        torch.ops.load_library(tmp_path / "lib.so")
