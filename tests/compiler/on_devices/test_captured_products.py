"""Products in CUDA graphs of compiled programs."""

from __future__ import annotations

import pytest

import flambeau as torch
from flambeau import codegen
from flambeau.backends.cuda_devices import current_runtime
from tests.backends.cuda_devices.on_fake_cupy import cupy_devices

pytestmark = pytest.mark.skipif(not codegen.available(), reason="llvmlite is not installed, or FLAMBEAU_JIT is 0")


def test_products_are_captured_with_the_stream_s_workspace(monkeypatch):
    with cupy_devices(), torch.no_grad():
        torch.manual_seed(0)
        model = torch.nn.Sequential(torch.nn.Linear(8, 130), torch.nn.ReLU(), torch.nn.Linear(130, 4)).cuda()
        x = torch.randn(3, 8, device="cuda")
        expected = model(x)
        runtime, captures = current_runtime(), []
        begin = runtime.begin_capture
        monkeypatch.setattr(runtime, "begin_capture", lambda *args: captures.append(args) or begin(*args))
        compiled = torch.compile(model)
        compiled(x)
        before = torch.cuda.memory_allocated()
        for _ in range(4):
            torch.testing.assert_close(compiled(x), expected, rtol=1e-4, atol=1e-5)
        assert captures
        assert all(each[2] == 0 for each in captures)
        assert torch.cuda.memory_allocated() - before < 1 << 20  # no workspace of its own
