"""Optimizers' updates of float16 and bfloat16 parameters: one kernel each, with the roundings of the operators."""

from __future__ import annotations

from typing import Any

import pytest

import flambeau as torch
from flambeau import codegen
from tests.backends.cuda_devices.on_fake_cupy import cupy_devices

pytestmark = pytest.mark.skipif(not codegen.available(), reason="llvmlite is not installed, or FLAMBEAU_JIT is 0")


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize(("optimizer", "options"), [
    ("AdamW", {"eps": 1e-3}), ("Adam", {"amsgrad": True, "eps": 1e-3}),
    ("SGD", {"momentum": 0.9, "nesterov": True, "weight_decay": 0.1}), ("RMSprop", {"eps": 1e-3})])
def test_updates_are_one_launch_and_round_as_operators_do(optimizer: str, options: dict[str, Any], dtype: Any) -> None:
    found = []
    with cupy_devices() as cupy:
        for device in ("cpu", "cuda"):
            torch.manual_seed(0)
            parameter = torch.nn.Parameter(torch.randn(9, 7).to(dtype).to(device))
            gradients = torch.randn(3, 9, 7).to(dtype).to(device)
            updates = getattr(torch.optim, optimizer)([parameter], lr=0.01, **options)
            for gradient in gradients:
                parameter.grad = gradient.clone()
                launched = 0 if cupy.state is None else len(cupy.state.launched)
                updates.step()  # the first one makes the state
            if cupy.state is not None:
                assert len(cupy.state.launched) - launched == (device == "cuda")
            found.append(parameter.detach().cpu())
    if cupy.state is None:
        torch.testing.assert_close(found[1], found[0], rtol=1e-2, atol=1e-3)
    else:
        assert torch.equal(*found)
