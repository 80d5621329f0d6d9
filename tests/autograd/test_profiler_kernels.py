"""Compiled functions under a profiler: events of kernels, and the roofline columns."""

from __future__ import annotations

import json
import re
import threading

import pytest

import flambeau as torch
from flambeau import codegen, modes, nn
from flambeau.autograd.profiler import profile
from flambeau.codegen import roofline

pytestmark = pytest.mark.skipif(not codegen.available(), reason="llvmlite is not installed, or FLAMBEAU_JIT is 0")


@pytest.fixture(autouse=True)
def known_peaks(monkeypatch):
    """Peaks as if they were measured; and what earlier processes learned of functions is left aside."""
    monkeypatch.setattr("flambeau.compiler.cache.trace_cache.load", lambda entry: [])
    monkeypatch.setattr("flambeau.compiler.cache.program_cache.load", lambda *call: None)
    machine = roofline.Peaks(2, 100e9, 50e9, ((1 << 14, 80e9), (1 << 26, 10e9)))
    monkeypatch.setattr("flambeau.codegen.roofline.peaks", lambda: machine)


def f(x, w):
    return torch.softmax(x @ w, -1) + 1


X, W = torch.randn(32, 64), torch.randn(64, 16)


def compiled(function, *args):
    made = torch.compile(function)
    for _ in range(3):
        made(*args)
    return made


def names(prof):
    return [event.name for event in prof.function_events]


def test_a_call_is_an_event_with_its_kernels_within():
    made = compiled(f, X, W)
    with profile(record_shapes=True) as prof:
        result = made(X, W)
    assert torch.allclose(result, f(X, W))
    call, *kernels = sorted(prof.function_events, key=lambda e: e.time_range.start)
    assert (call.name, call.input_shapes) == ("compiled f", [[32, 64], [64, 16]])
    assert [kernel.name for kernel in kernels] == ["f[0] matmul", "f[1] rows max+sub+exp+sum+div…"]
    assert all(kernel.cpu_parent is call for kernel in kernels)
    assert call.self_cpu_time_total <= call.cpu_time_total - sum(kernel.cpu_time_total for kernel in kernels) + 1e-6
    [work] = kernels[0].kernel_costs
    assert work == (4 * (32 * 64 + 64 * 16 + 32 * 16), 2 * 32 * 64 * 16, False)
    assert kernels[0].flops == work[1]


def test_the_table_compares_kernels_with_the_peaks():
    made = compiled(f, X, W)
    with profile() as prof:
        for _ in range(3):
            made(X, W)
            X.sin()
    text = prof.key_averages().table(sort_by="self_cpu_time_total")
    head = next(line for line in text.splitlines() if "Name" in line)
    assert head.split()[-5:] == ["Moved", "GB/s", "Gflop/s", "Of", "peak"]
    line = next(line for line in text.splitlines() if "f[0] matmul" in line)
    moved = 3 * 4 * (32 * 64 + 64 * 16 + 32 * 16) / 1024
    assert f"{moved:.2f} KB" in line
    assert re.search(r"\d+\.\d\d%\s*$", line)
    plain = next(line for line in text.splitlines() if "aten::sin" in line)
    assert len(plain.rstrip()) < len(line.rstrip())
    assert "Peaks measured here: 10 GB/s in 64 MB, 80 GB/s in 16 KB, 100 Gflop/s in float32" in text


def test_the_share_of_the_peak():
    made = compiled(f, X, W)
    with profile() as prof:
        made(X, W)
    event = next(event for event in prof.function_events if event.name == "f[0] matmul")
    event.time_range.start, event.time_range.end = 0.0, 2 * 2 * 32 * 64 * 16 / 100e9 * 1e6  # twice the roofline
    assert re.search(r" 50\.00%\s*$", next(line for line in prof.table().splitlines() if "f[0]" in line))


def test_tables_without_kernels_are_unchanged():
    with profile() as prof:
        X.sin()
    text = prof.key_averages().table()
    assert "Of peak" not in text
    assert "Peaks" not in text


def test_backward_of_a_compiled_function():
    w = torch.randn(64, 16, requires_grad=True)
    made = compiled(f, X, w)
    with profile() as prof:
        made(X, w).sum().backward()
    found = names(prof)
    node = next(event for event in prof.function_events if event.name == "CompiledFunctionBackward")
    kernels = [event for event in prof.function_events if event.name.startswith("f backward[")]
    assert "compiled f" in found
    assert kernels
    assert all(event.cpu_parent is node for event in kernels)
    expected = torch.autograd.grad(f(X, w).sum(), w)[0]
    assert torch.allclose(w.grad, expected, atol=1e-5)


def test_functions_are_traced_under_a_profiler():
    made = torch.compile(f)
    with profile() as prof:
        results = [made(X, W) for _ in range(4)]
    assert all(torch.allclose(result, f(X, W)) for result in results)
    found = names(prof)
    assert found.count("capture of f") == 2
    assert found.count("compiled f") == 2
    assert found.count("aten::softmax") == 2
    assert modes.active_profilers[0] == modes.special[0] == 0


def test_a_training_step_does_the_same_as_without():
    def run(profiled):
        torch.manual_seed(0)
        model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
        optimizer = torch.optim.Adam(model.parameters(), lr=0.1)

        @torch.compile
        def step(x):
            optimizer.zero_grad()
            loss = model(x).square().mean()
            loss.backward()
            optimizer.step()
            return loss

        x = torch.randn(5, 4)
        losses = []
        for _ in range(6):
            if profiled:
                with profile(profile_memory=True):
                    losses.append(step(x).item())
            else:
                losses.append(step(x).item())
        return losses

    assert run(True) == run(False)


def test_fallback_kernels_and_data_guards():
    def g(x):
        if x.sum() > 0:
            return torch.sort(x * 2)[0] + 1
        return x

    x = torch.tensor([3., 1., 2.])
    made = compiled(g, x)
    with profile() as prof:
        assert made(x).tolist() == [3., 5., 7.]
        assert made(-x).tolist() == (-x).tolist()  # another way, which is captured
    assert any("numpy sort" in name for name in names(prof))


def test_final_copies_are_events():
    a, b = torch.ones(8), torch.zeros(8)

    def swap():
        old = a * 1.5
        a.copy_(b + 1)
        b.copy_(old)

    made = compiled(swap)
    with profile() as prof:
        made()
    assert any(name.startswith("swap[") for name in names(prof))
    a2, b2 = a.clone(), b.clone()
    swap()
    assert torch.equal(a, b2 + 1)
    assert torch.equal(b, a2 * 1.5)


def test_other_threads_are_not_recorded():
    made = compiled(f, X, W)
    results = []
    with profile() as prof:
        thread = threading.Thread(target=lambda: results.append(made(X, W)))
        thread.start()
        thread.join()
    assert torch.allclose(results[0], f(X, W))
    assert names(prof) == []


def test_operator_modes_run_eagerly():
    made = compiled(f, X, W)
    with profile() as prof, torch.autograd.graph.saved_tensors_hooks(lambda x: x, lambda x: x):
        made(X, W)
    assert "compiled f" not in names(prof)
    assert "aten::softmax" in names(prof)


def test_traces_have_bytes_and_flops_of_kernels(tmp_path):
    made = compiled(f, X, W)
    with profile(with_stack=True) as prof:
        made(X, W)
    prof.export_chrome_trace(tmp_path / "trace.json")
    events = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    kernel = next(event for event in events if event["name"] == "f[0] matmul")
    assert kernel["args"]["Bytes moved"] == 4 * (32 * 64 + 64 * 16 + 32 * 16)
    assert kernel["args"]["Flops"] == 2 * 32 * 64 * 16
    assert "test_profiler_kernels.py" in kernel["args"]["Call stack"]


def test_memory_of_results():
    made = compiled(f, X, W)
    with profile(profile_memory=True) as prof:
        result = made(X, W)
    call = next(event for event in prof.function_events if event.name == "compiled f")
    assert call.cpu_memory_usage == result.numel() * 4


def test_schedules_and_the_other_profiler():
    made = compiled(f, X, W)
    with torch.profiler.profile(schedule=torch.profiler.schedule(wait=0, warmup=1, active=2, repeat=1)) as prof:
        for _ in range(4):
            made(X, W)
            prof.step()
    found = {event.key: event.count for event in prof.key_averages()}
    assert found["f[0] matmul"] == found["compiled f"] == 2
