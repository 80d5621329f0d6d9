"""Compiled matmuls: values, gradients, the crossover with BLAS, and without compiled kernels."""

from __future__ import annotations

import os
import subprocess
import sys
import threading

import numpy as np
import pytest

import flambeau as torch
from flambeau import codegen
from flambeau.backends.compiled.families import matmul

pytestmark = pytest.mark.skipif(not codegen.available(), reason="llvmlite is not installed, or FLAMBEAU_JIT is 0")


@pytest.fixture
def always_compiled(tmp_path_factory, monkeypatch):
    """All matmuls run on kernels, however small."""
    monkeypatch.setenv("FLAMBEAU_CACHE_DIR", str(tmp_path_factory.getbasetemp() / "cache"))
    kernels = matmul.kernels()
    monkeypatch.setattr(kernels.crossovers, "limits", dict.fromkeys(kernels.crossovers.limits, -1))
    kernels.dispatches.clear()
    before = matmul.MIN_ELEMENTS[0]
    matmul.MIN_ELEMENTS[0] = -1
    yield kernels
    matmul.MIN_ELEMENTS[0] = before
    kernels.dispatches.clear()


def random(*shape, dtype=torch.float32, seed=0):
    values = np.random.default_rng(seed).standard_normal(shape)
    return torch.tensor(values.astype("f4" if dtype is torch.float32 else "f8"))


def near(got, want):
    array = got.detach().numpy()
    np.testing.assert_allclose(array, want, rtol=0, atol=(2e-5 if array.dtype == np.float32 else 1e-13) * (
        1 + abs(want).max(initial=0)))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("turned", ["nn", "nt", "tn", "tt"])
@pytest.mark.parametrize("wanted", [(True, True), (True, False), (False, True), (False, False)])
def test_product_and_gradients(always_compiled, dtype, turned, wanted):
    x, y = random(23, 40, dtype=dtype), random(40, 31, dtype=dtype, seed=1)
    x = x if turned[0] == "n" else x.t().contiguous().t()
    y = y if turned[1] == "n" else y.t().contiguous().t()
    for each, flag in zip((x, y), wanted, strict=True):
        each.requires_grad_(flag)
    out = x @ y
    near(out, x.detach().numpy().astype("f8") @ y.detach().numpy().astype("f8"))
    assert all(dispatch.plan is not None for dispatch in always_compiled.dispatches.values())
    assert always_compiled.dispatches
    if any(wanted):
        g = random(23, 31, dtype=dtype, seed=2)
        out.backward(g)
        for each, want in ((x, g.numpy() @ y.detach().numpy().T), (y, x.detach().numpy().T @ g.numpy())):
            if each.requires_grad:
                near(each.grad, want)
                assert each.grad.stride() == each.stride()


@pytest.mark.parametrize("shape", [(17, 20), (3, 5, 20)])
@pytest.mark.parametrize("bias", [True, False])
def test_linear(always_compiled, shape, bias):
    layer = torch.nn.Linear(20, 33, bias=bias)
    x = random(*shape).requires_grad_()
    out = layer(x)
    weight = layer.weight.detach().numpy().astype("f8")
    near(out, x.detach().numpy() @ weight.T + (layer.bias.detach().numpy() if bias else 0))
    out.sum().backward()
    near(x.grad, np.ones((*shape[:-1], 33)) @ weight)
    near(layer.weight.grad, np.ones((33, 1)) * x.detach().numpy().reshape(-1, 20).sum(0))


@pytest.mark.parametrize("shapes", [((4, 9, 20), (4, 20, 7)), ((2, 3, 9, 20), (3, 20, 7)), ((4, 9, 20), (20, 7)),
                                    ((9, 20), (4, 20, 7)), ((1, 9, 20), (4, 20, 7))])
def test_batches(always_compiled, shapes):
    x, y = (random(*shape, seed=i).requires_grad_() for i, shape in enumerate(shapes))
    out = x @ y
    near(out, x.detach().numpy() @ y.detach().numpy())
    g = random(*out.shape, seed=3)
    out.backward(g)
    a, b = x.detach().numpy().astype("f8"), y.detach().numpy().astype("f8")
    left = g.numpy() @ np.swapaxes(b, -1, -2)
    right = np.swapaxes(a, -1, -2) @ g.numpy()
    near(x.grad, left.sum(tuple(range(left.ndim - x.ndim))).reshape(x.shape) if left.size != x.numel() and
         x.shape[0] != 1 else (left.sum(0, keepdims=True) if x.shape[0] == 1 and x.ndim == 3 else left))
    near(y.grad, right.sum(tuple(range(right.ndim - y.ndim))))


def test_expanded_and_empty_operands(always_compiled):
    x = torch.ones(1, 30).expand(20, 30)
    near(x @ random(30, 10), np.ones((20, 30)) @ random(30, 10).numpy())
    assert (torch.ones(5, 0) @ torch.ones(0, 4)).tolist() == [[0.0] * 4] * 5
    assert (torch.ones(0, 4) @ torch.ones(4, 3)).shape == (0, 3)
    assert torch.addmm(torch.ones(4), torch.ones(5, 0), torch.ones(0, 4)).tolist() == [[1.0] * 4] * 5
    near(torch.baddbmm(torch.ones(2, 3, 5), random(2, 3, 4), random(2, 4, 5), beta=2, alpha=0.5),
         2 + 0.5 * (random(2, 3, 4).numpy() @ random(2, 4, 5).numpy()))


def test_results_are_new_contiguous_arrays(always_compiled):
    x = random(30, 30)
    for out in (x @ x, x.t() @ x, x @ x.t(), torch.bmm(x[None], x[None])):
        assert out.is_contiguous()
    out = x @ x
    x.zero_()
    assert out.abs().sum() > 0


def test_several_threads_at_once(always_compiled):
    x = random(300, 300)
    want, wrong = (x @ x).numpy().copy(), []

    def work():
        wrong.extend(1 for _ in range(20) if not np.array_equal((x @ x).numpy(), want))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert not wrong


class Clock:
    """A clock for measurements that only `sleep` advances: what else the machine does is not in them."""

    now = 0.0

    def sleep(self, seconds):
        self.now += seconds

    def perf_counter(self):
        self.now += 1e-7
        return self.now


@pytest.fixture
def clock(monkeypatch):
    from flambeau.backends.compiled import blas_crossover

    made = Clock()
    monkeypatch.setattr(blas_crossover, "time", made)
    return made


def limits(folder, monkeypatch, ours, theirs):
    from flambeau.backends.compiled.blas_crossover import Crossovers

    monkeypatch.setenv("FLAMBEAU_CACHE_DIR", str(folder))
    monkeypatch.delenv("FLAMBEAU_KERNELS_FROM", raising=False)
    return Crossovers(ours, theirs)


F32, F64 = np.dtype(np.float32), np.dtype(np.float64)


def test_limits_are_measured_once_and_cached(tmp_path, monkeypatch, clock):
    from flambeau.backends.compiled import blas_crossover

    def steady(x, y):
        clock.sleep(5e-4)

    def growing(x, y):
        clock.sleep(2e-3 if x.size * y.shape[-1] > 1 << 17 else 1e-4)

    crossovers = limits(tmp_path, monkeypatch, steady, growing)
    key = F32, blas_crossover.MATRIX
    crossovers.measure(*key)  # its budget is not used up
    assert crossovers.limits[key] == blas_crossover.DEFAULT_LIMIT
    crossovers.budget[key][0] = -1
    crossovers.measure(*key)
    limit = crossovers.limits[key]
    assert 1 << 16 < limit < 1 << 19
    assert crossovers.budget[key][0] == blas_crossover.NEVER
    again = limits(tmp_path, monkeypatch, None, None)
    assert again.limits[key] == limit
    assert again.budget[key][0] == blas_crossover.NEVER
    assert again.budget[F32, blas_crossover.NARROW][0] == blas_crossover.MEASURE_AFTER


def test_limits_of_a_kernel_that_never_wins(tmp_path, monkeypatch, clock):
    from flambeau.backends.compiled import blas_crossover

    crossovers = limits(tmp_path, monkeypatch, lambda x, y: clock.sleep(3e-4), lambda x, y: None)
    crossovers.budget[F64, blas_crossover.BATCHED][0] = -1
    crossovers.measure(F64, blas_crossover.BATCHED)
    assert crossovers.limits[F64, blas_crossover.BATCHED] == blas_crossover.MAX_LIMIT


def test_no_measurement_on_a_busy_machine(tmp_path, monkeypatch, clock):
    from flambeau.backends.compiled import blas_crossover

    runs = []
    crossovers = limits(tmp_path, monkeypatch, lambda x, y: runs.append(clock.sleep(0.1)), lambda x, y: None)
    crossovers.budget[F32, blas_crossover.NARROW][0] = -1
    crossovers.measure(F32, blas_crossover.NARROW)
    assert 1 <= len(runs) < 20
    assert crossovers.limits[F32, blas_crossover.NARROW] == blas_crossover.DEFAULT_LIMIT
    again = limits(tmp_path, monkeypatch, None, None)
    assert again.budget[F32, blas_crossover.NARROW][0] == blas_crossover.MEASURE_AFTER


def test_a_damaged_entry_is_measured_again(tmp_path, monkeypatch, clock):
    from flambeau.backends.compiled import blas_crossover

    crossovers = limits(tmp_path, monkeypatch, lambda x, y: None, lambda x, y: clock.sleep(1e-4))
    key = F32, blas_crossover.TRANSPOSED
    crossovers.budget[key][0] = -1
    crossovers.measure(*key)
    assert crossovers.limits[key] < blas_crossover.DEFAULT_LIMIT
    entry, = (tmp_path / "measurements").iterdir()
    entry.write_bytes(entry.read_bytes()[:-3])
    again = limits(tmp_path, monkeypatch, None, None)
    assert again.limits[key] == blas_crossover.DEFAULT_LIMIT
    assert again.budget[key][0] == blas_crossover.MEASURE_AFTER


def test_an_exhausted_budget_ends_the_measurement(always_compiled, tmp_path, monkeypatch):
    monkeypatch.setenv("FLAMBEAU_CACHE_DIR", str(tmp_path))
    measured = []
    monkeypatch.setattr(always_compiled.crossovers, "measure", lambda *key: measured.append(key))
    x = random(40, 40)
    budget = always_compiled.crossovers.budget[F32, "matrix"]
    before, budget[0] = budget[0], 70_000
    try:
        x @ x
        assert not measured
        near(x @ x, x.numpy() @ x.numpy())
        assert measured == [(F32, "matrix")]
    finally:
        budget[0] = before


def test_without_machine_code(tmp_path):
    code = """
import sys
import flambeau as torch
x = torch.ones(300, 300, requires_grad=True)
out = torch.nn.functional.linear(x, x, x[0])
out.sum().backward()
print(out[0, 0].item(), x.grad[0, 0].item(), torch.bmm(x[None], x[None]).sum().item(), "llvmlite" in sys.modules)
"""
    for extra in ({"FLAMBEAU_JIT": "0"}, {}):
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True,
                              env=os.environ | {"FLAMBEAU_CACHE_DIR": str(tmp_path)} | extra)
        # the first row is the bias, too
        assert done.stdout.split() == ["301.0", "900.0", "27000000.0", str(not extra)], done.stderr
