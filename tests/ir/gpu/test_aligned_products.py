"""Large products with rows that are not aligned: views of wider products, and copies of factors."""

from __future__ import annotations

import numpy as np
import pytest

from flambeau import codegen
from flambeau.dtypes import BFLOAT16, to_bfloat16, widen
from flambeau.ir.gpu import aligned_products
from flambeau.ir.gpu.device_program import DeviceProgram
from flambeau.ir.gpu.families import GpuFamilies
from flambeau.ir.gpu.library_products import ProductLaunch
from flambeau.ir.graph.target import Target
from flambeau.ir.graph.value import FLOAT32, Graph

pytestmark = pytest.mark.skipif(not codegen.available(), reason="llvmlite is not installed, or FLAMBEAU_JIT is 0")


def test_rows_are_aligned(monkeypatch):
    monkeypatch.setattr(aligned_products, "LEAST", 1)
    g = Graph()
    x, w = g.input(0, (16, 8), BFLOAT16), g.input(1, (13, 8), BFLOAT16)
    scores = g.cast(g.matmul(g.cast(x, FLOAT32), g.permute(g.cast(w, FLOAT32), (1, 0))), BFLOAT16)
    slopes = g.cast(g.cast(g.reshape(scores, (4, 4, 13)), FLOAT32) * 2.0, BFLOAT16)
    flat = g.reshape(g.cast(slopes, FLOAT32), (16, 13))
    by_x = g.matmul(flat, g.cast(w, FLOAT32))
    by_w = g.matmul(g.permute(flat, (1, 0)), g.cast(x, FLOAT32))
    targets = [Target(by_x), Target(by_w), Target(g.reduce("sum", g.cast(scores, FLOAT32), (1,)))]
    program = DeviceProgram(g, targets, families=GpuFamilies(library=True))
    products = [each.launch for each in program.launches if isinstance(each.launch, ProductLaunch)]
    assert len(products) == 3
    assert all(n % 8 == 0 for each in products for n in each.rows)


def test_results(monkeypatch):
    import flambeau as torch
    from tests.backends.cuda_devices.on_fake_cupy import cupy_devices

    monkeypatch.setattr(aligned_products, "LEAST", 1)
    rng = np.random.default_rng(0)
    a, b = (to_bfloat16(rng.standard_normal(shape).astype("f4")) for shape in ((16, 8), (13, 8)))
    here = [torch.from_numpy(widen(each)).to(torch.bfloat16).requires_grad_() for each in (a, b)]

    def step(x, w):
        logits = torch.nn.functional.linear(x.view(4, 4, 8), w).flatten(0, 1).float()
        loss = torch.nn.functional.cross_entropy(logits, torch.arange(16, device=x.device) % 13)
        loss.backward()
        return loss.detach(), x.grad, w.grad

    expected = step(*here)
    with cupy_devices():
        compiled = torch.compile(step, fullgraph=True)
        for _ in range(4):
            there = [x.detach().cuda().requires_grad_() for x in here]
            found = compiled(*there)
        for p, q in zip(expected, found, strict=True):
            torch.testing.assert_close(q.cpu(), p, rtol=3e-2, atol=1e-2)
