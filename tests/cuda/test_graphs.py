"""CUDA graphs: captured launches run when they are replayed, on what memory holds then."""

from __future__ import annotations

import pytest

import flambeau as torch
from flambeau import codegen
from tests.backends.cuda_devices.on_fake_cupy import cupy_devices


@pytest.fixture(params=["fake", "cupy"], autouse=True)
def device(request):
    if request.param == "cupy" and not codegen.available():
        pytest.skip("llvmlite is not installed, or FLAMBEAU_JIT is 0")
    with torch.testing.fake_cuda() if request.param == "fake" else cupy_devices() as runtime:
        yield runtime


def test_replays_run_what_was_captured():
    x, w = torch.ones(3, device="cuda"), torch.full((3,), 2.0, device="cuda")
    (x * w + 1).sum()  # kernels are loaded
    graph = torch.cuda.CUDAGraph()
    assert not torch.cuda.is_current_stream_capturing()
    with torch.cuda.graph(graph):
        assert torch.cuda.is_current_stream_capturing()
        y = x * w + 1
        w.add_(1)
        z = y.sum()
    assert w.tolist() == [2, 2, 2]
    for value in (1, 5):
        x.fill_(value)
        before = w.tolist()[0]
        graph.replay()
        assert y.tolist() == [value * before + 1] * 3
        assert z.item() == 3 * (value * before + 1)
        assert w.tolist() == [before + 1] * 3


def test_memory_of_a_graph_is_its_own():
    x = torch.ones(64, device="cuda")
    x + 1
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        y = (x + 1) * 2 - 1
    others = [torch.full((64,), 7.0, device="cuda") for _ in range(8)]
    torch.cuda.empty_cache()
    graph.replay()
    assert y.tolist() == [3] * 64
    assert all(each.tolist() == [7] * 64 for each in others)
    assert graph.pool()[0] == 0
    graph.reset()


def test_errors(tmp_path):
    graph = torch.cuda.CUDAGraph()
    with pytest.raises(RuntimeError, match="Called CUDAGraph::replay without a preceding successful capture"):
        graph.replay()
    with pytest.raises(RuntimeError, match="must be captured on a non-default stream"):
        graph.capture_begin()
    with pytest.raises(RuntimeError, match="Unknown capture error mode"):
        graph.capture_begin(capture_error_mode="none")
    x = torch.ones(2, device="cuda")
    x + 1
    default = torch.cuda.current_stream()
    with pytest.raises(torch.AcceleratorError, match="operation failed due to a previous error during capture"):
        with torch.cuda.graph(graph):
            with pytest.raises(torch.AcceleratorError, match="operation not permitted when stream is capturing"):
                x.tolist()
            assert torch.cuda.is_current_stream_capturing()
    assert torch.cuda.current_stream() == default
    with pytest.raises(RuntimeError, match="Called CUDAGraph::replay without a preceding successful capture"):
        graph.replay()
    graph.enable_debug_mode()
    with torch.cuda.graph(graph):
        y = x + 1
    graph.replay()
    assert y.tolist() == [2, 2]
    graph.debug_dump(str(tmp_path / "graph.dot"))
    assert (tmp_path / "graph.dot").read_text().startswith("digraph")
    with pytest.raises(RuntimeError, match="already owns a captured graph"):
        graph.capture_begin(pool=torch.cuda.graph_pool_handle()) if not torch.cuda.is_current_stream_capturing() else 0


def test_a_training_step_is_captured():
    torch.manual_seed(0)
    model = torch.nn.Linear(4, 2, device="cuda")
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    x, y = torch.randn(3, 4, device="cuda"), torch.randn(3, 2, device="cuda")
    start = [p.detach().clone() for p in model.parameters()]

    def step() -> torch.Tensor:
        optimizer.zero_grad(set_to_none=True)
        loss = (model(x) - y).pow(2).mean()
        loss.backward()
        optimizer.step()
        return loss

    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        expected = [step().item() for _ in range(3)]
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        loss = step()
    with torch.no_grad():
        for p, value in zip(model.parameters(), start, strict=True):
            p.copy_(value)
    losses = []
    for _ in range(3):
        graph.replay()
        losses.append(loss.item())
    assert losses == pytest.approx(expected, rel=1e-5)


def test_make_graphed_callables():
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Tanh(), torch.nn.Linear(8, 2)).cuda()
    x = torch.randn(3, 4, device="cuda", requires_grad=True)
    inputs = [torch.randn(3, 4, device="cuda", requires_grad=True) for _ in range(2)]
    expected = []
    for each in inputs:
        out = model(each)
        expected.append((out.detach(), torch.autograd.grad(out.pow(2).sum(), [each, *model.parameters()])))
    graphed = torch.cuda.make_graphed_callables(model, (x,))
    assert graphed is model
    for each, (value, gradients) in zip(inputs, expected, strict=True):
        out = model(each)
        torch.testing.assert_close(out.detach(), value)
        assert out.grad_fn.name() == "GraphedBackward"
        for a, b in zip(torch.autograd.grad(out.pow(2).sum(), [each, *model.parameters()]), gradients, strict=True):
            torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-5)
    with pytest.raises(AssertionError, match="must contain only Tensors"):
        torch.cuda.make_graphed_callables(lambda t: t, (1,))
