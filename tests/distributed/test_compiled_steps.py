"""Compiled functions with `DistributedDataParallel` and collectives: each call averages, and exchanges, anew."""

from __future__ import annotations

import pytest

import flambeau as torch
from flambeau import codegen
from flambeau import distributed as dist
from flambeau.nn.parallel import DistributedDataParallel

from .forked import processes

pytestmark = pytest.mark.skipif(not codegen.available(), reason="compiled functions need LLVM")


def trained(mode, rank, steps=7):
    """The losses of a model on this rank's data, and its parameters."""
    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Linear(6, 8), torch.nn.BatchNorm1d(8), torch.nn.GELU(), torch.nn.Linear(8, 1))
    call = DistributedDataParallel(torch.compile(net) if mode == "inside" else net, bucket_cap_mb=0.0001)
    optimizer = torch.optim.SGD(net.parameters(), 0.1, momentum=0.9)
    if mode == "outside":
        call = torch.compile(call)

    def step(x):
        loss = call(x).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        return loss

    if mode == "step":
        step = torch.compile(step)
    data = torch.Generator().manual_seed(rank)
    losses = [step(torch.randn(5, 6, generator=data)).item() for _ in range(steps)]
    return losses, torch.cat([each.detach().flatten() for each in net.parameters()]), call, step


def test_gradients_are_averaged_in_every_call(tmp_path):
    def body(rank):
        losses, parameters, _, _ = trained("eager", rank)
        for mode in ("inside", "outside", "step"):
            ours, own, call, step = trained(mode, rank)
            assert ours == pytest.approx(losses, rel=1e-4), mode
            assert torch.allclose(own, parameters, atol=1e-5), mode
            everywhere = [torch.zeros_like(own) for _ in range(2)]
            dist.all_gather(everywhere, own)
            assert torch.equal(everywhere[0], everywhere[1]), mode
        assert "DistributedDataParallel prepares the averages of gradients" in " ".join(step.split.break_reasons())
        inner = list(step.split._modules.values())
        assert len(inner) == 1  # the module inside is compiled,
        assert any(cache.entries for cache in inner[0]._signatures.values())
        assert any(cache.entries for _, part in step.split.parts.values()  # and so is the rest of the step
                   for cache in part._signatures.values())
        assert call.module is next(iter(step.split._modules))

    assert processes(2, body, tmp_path) == [0, 0]


class TiedWeights(torch.nn.Module):
    """Two results, one of which may be left out of the loss, and a weight at both ends."""

    def __init__(self):
        super().__init__()
        self.ends = torch.nn.Linear(6, 6)
        self.middle = torch.nn.Sequential(torch.nn.Linear(6, 6), torch.nn.LayerNorm(6), torch.nn.Tanh())
        self.second = torch.nn.Linear(6, 3)
        self.scale = torch.nn.Parameter(torch.ones(()))

    def forward(self, x):
        x = self.ends(x)
        for _ in range(2):
            x = self.middle(x) * self.scale + x
        return torch.nn.functional.linear(x, self.ends.weight), self.second(x)


def parts_of(tensor):
    """The nodes of compiled functions in a tensor's graph."""
    nodes, stack = [], [tensor.grad_fn]
    while stack:
        nodes.append(stack.pop())
        stack += [n for n, _ in nodes[-1].next_functions if n is not None and n not in nodes and n not in stack]
    return [node for node in nodes if type(node).__name__ == "CompiledFunctionBackward"]


LOSSES = {
    "both": lambda model, a, b: (a.sum() + b.square().sum()).backward(),
    "first": lambda model, a, b: a.square().sum().backward(),
    "second": lambda model, a, b: b.sum().backward(),
    "twice": lambda model, a, b: [b.sum().backward(retain_graph=True), (a.sum() * b.sum()).backward()],
    "cotangents": lambda model, a, b: torch.autograd.backward([a, b], [torch.ones(6, 4).T, torch.ones(4, 3)]),
    "grad": lambda model, a, b: torch.autograd.grad(a.sum() + b.sum(), [*model.parameters()]),
}


@pytest.mark.parametrize("loss", LOSSES)
def test_backward_passes_that_are_divided_at_buckets(loss):
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    try:
        gradients = []
        for compiled in (False, True):
            torch.manual_seed(0)
            model = TiedWeights()
            call = DistributedDataParallel(torch.compile(model) if compiled else model, bucket_cap_mb=0.0001)
            for step in range(5):
                model.zero_grad()
                x = torch.linspace(-1, 1, 24).reshape(4, 6).mul(step + 1).requires_grad_()
                a, b = call(x)
                if loss not in ("both", "cotangents"):  # some parameters get no gradient, or several
                    call.reducer.expects_reduction = False
                found = LOSSES[loss](model, a, b)
                gradients.append(found if loss == "grad" else [p.grad for p in (*model.parameters(), x)])
        parts = parts_of(a)
        assert len(parts) > 2
        if loss in ("both", "twice", "cotangents"):
            assert all(part.backward is None for part in parts)
            with pytest.raises(RuntimeError, match="backward through the graph a second time"):
                b.sum().backward()
        for eager, ours in zip(gradients[:5], gradients[5:], strict=True):
            for g, h in zip(eager, ours, strict=True):
                assert (g is None) == (h is None)
                assert g is None or torch.allclose(g, h, atol=1e-5)
    finally:
        dist.destroy_process_group()


def test_optimizers_run_in_divided_backward_passes():
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    try:
        trained = []
        for compiled in (False, True):
            torch.manual_seed(0)
            layers = [layer for _ in range(4) for layer in (torch.nn.Linear(6, 6), torch.nn.Tanh())]
            model = torch.nn.Sequential(*layers)
            call = DistributedDataParallel(torch.compile(model) if compiled else model, bucket_cap_mb=0.0001)

            def update(state, bucket):
                with torch.no_grad():
                    for parameter, gradient in zip(bucket.parameters(), bucket.gradients(), strict=True):
                        parameter.sub_(gradient, alpha=0.1)
                done = torch.futures.Future()
                done.set_result(bucket.buffer())
                return done

            call.register_comm_hook(None, update)
            for step in range(5):
                loss = call(torch.linspace(-1, 1, 24).reshape(4, 6) + step).square().sum()
                loss.backward()
            assert not compiled or len(parts_of(loss)) > 2
            trained.append([p.detach().clone() for p in model.parameters()])
        for eager, ours in zip(*trained, strict=True):
            assert torch.allclose(eager, ours, atol=1e-5)
    finally:
        dist.destroy_process_group()


def test_collectives_exchange_in_every_call(tmp_path):
    def body(rank):
        @torch.compile
        def f(x):
            y = x * 2
            work = dist.all_reduce(y, async_op=True)
            z = x.sin().sum()
            work.wait()
            parts = [torch.zeros(3), torch.zeros(3)]
            dist.all_gather(parts, x)
            return y + parts[1], z

        for i in range(6):
            y, z = f(torch.full((3,), float(i * (rank + 1))))
            assert y.tolist() == [2 * i * 3 + 2 * i] * 3
            assert z.item() == pytest.approx(3 * torch.tensor(float(i * (rank + 1))).sin().item(), abs=1e-6)

    assert processes(2, body, tmp_path) == [0, 0]


def test_hooks_of_the_wrapper_run():
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    try:
        model = DistributedDataParallel(torch.nn.Linear(2, 1))
        compiled = torch.compile(model)
        calls = []
        handle = model.register_forward_hook(lambda *_: calls.append(1))
        for _ in range(4):
            compiled(torch.ones(1, 2)).sum().backward()
        assert len(calls) == 4
        handle.remove()
        compiled(torch.ones(1, 2)).sum().backward()
        assert len(calls) == 4
        assert list(compiled.state_dict()) == ["_orig_mod.module.weight", "_orig_mod.module.bias"]
        assert compiled.forward(torch.ones(1, 2)).shape == (1, 1)
    finally:
        dist.destroy_process_group()
