"""Backward passes that are divided: gradients of inputs first, of weights later, together those of a whole pass."""

from __future__ import annotations

import copy
import gc
import weakref

import pytest

import flambeau as torch
from flambeau import nn
from flambeau.distributed.pipelining import SplitPoint, pipe_split, pipeline
from flambeau.distributed.pipelining.backward import stage_backward, stage_backward_input
from flambeau.engine.nodes.op_node import OpNode


class Product(torch.autograd.Function):
    @staticmethod
    def forward(ctx, a, b):
        ctx.save_for_backward(a, b)
        return a @ b

    @staticmethod
    def backward(ctx, g):
        a, b = ctx.saved_tensors
        return g @ b.mT, a.mT @ g


class Custom(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Parameter(torch.randn(6, 6)), nn.Parameter(torch.randn(6, 6))

    def forward(self, x):
        return Product.apply(Product.apply(x, self.a).tanh(), self.b)


class Shared(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.randn(6, 6) / 3)

    def forward(self, x):
        return ((x @ self.w).relu() @ self.w.mT) @ self.w


class Branches(nn.Module):
    """Several results of one node, weights in each branch, one weight that two branches share."""

    def __init__(self):
        super().__init__()
        self.first, self.one, self.other, self.both = (nn.Linear(*s) for s in ((6, 6), (3, 3), (3, 3), (3, 3)))

    def forward(self, x):
        a, b = self.first(x).split(3, -1)
        return torch.cat([self.both(self.one(a)), self.both(self.other(b)) * a.sin()], -1)


class Aside(nn.Module):
    """Weights that meet before they meet the input, one that no result needs, one that does not need the input."""

    def __init__(self):
        super().__init__()
        self.a, self.b, self.unused, self.bias = (nn.Parameter(torch.randn(6, 6)) for _ in range(4))

    def forward(self, x):
        return x @ (self.a.exp() * self.b).tanh() + self.bias.sum(0)


class Apart(nn.Module):
    """One of two results does not depend on the input."""

    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(6, 6), nn.Parameter(torch.randn(4, 6))

    def forward(self, x):
        return self.a(x), self.b.sin()


class Viewed(nn.Sequential):
    def forward(self, x):
        return super().forward(x).view(2, -1)


class Checkpointed(nn.Sequential):
    def forward(self, x):
        return torch.utils.checkpoint.checkpoint(super().forward, x, use_reentrant=False)


class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(6, 6, batch_first=True)

    def forward(self, x):
        return self.lstm(x.unsqueeze(1))[0].squeeze(1)


MODULES = {
    "layers": lambda: nn.Sequential(nn.Linear(6, 8), nn.GELU(), nn.LayerNorm(8), nn.Linear(8, 6)),
    "custom": Custom, "shared": Shared, "branches": Branches, "aside": Aside, "apart": Apart,
    "view": lambda: Viewed(nn.Linear(6, 6), nn.Tanh()),
    "checkpoint": lambda: Checkpointed(nn.Linear(6, 6), nn.Tanh(), nn.Linear(6, 6)),
    "recurrent": Recurrent,
    "convolution": lambda: nn.Sequential(nn.Unflatten(1, (1, 6)), nn.Conv1d(1, 4, 3), nn.BatchNorm1d(4), nn.ReLU(),
                                         nn.Flatten(), nn.Linear(16, 6)),
    "attention": lambda: nn.TransformerEncoderLayer(6, 2, 12, dropout=0.0, batch_first=True),
    "no weights": lambda: nn.Sequential(nn.Tanh()),
    "no input": lambda: Branches().requires_grad_(False),
}


@pytest.mark.parametrize("name", MODULES)
@pytest.mark.parametrize("loss", [False, True])
def test_both_parts_are_the_whole(name, loss):
    torch.manual_seed(1)
    module = MODULES[name]()
    other = copy.deepcopy(module)
    x, same = torch.randn(4, 6, requires_grad=True), torch.zeros(0)
    same = x.detach().clone().requires_grad_()

    def results(module, x):
        out = module(x)
        out = out if isinstance(out, tuple) else (out,)
        return [sum((each ** 2).sum() for each in out)] if loss else list(out)

    outputs, expected = results(module, x), results(other, same)
    gradients = None if loss else [torch.randn_like(each) for each in outputs]
    (wanted,) = stage_backward(expected, gradients or [None], [same])
    found, waiting = stage_backward_input(outputs, gradients, [x], module.parameters())
    assert torch.allclose(found[0], wanted, atol=1e-5)
    assert all(p.grad is None for p in module.parameters())
    del outputs
    waiting.run()
    for (path, mine), theirs in zip(module.named_parameters(), other.parameters(), strict=True):
        assert (mine.grad is None) == (theirs.grad is None), path
        assert mine.grad is None or torch.allclose(mine.grad, theirs.grad, atol=1e-4), path


def test_no_gradient_of_an_activation_is_computed_twice(monkeypatch):
    module = nn.Sequential(nn.Linear(6, 6, bias=False), nn.Tanh(), nn.Linear(6, 6, bias=False))
    x = torch.randn(4, 6, requires_grad=True)
    out = module(x)

    asked = []
    whole = OpNode.vjp

    def watched(node, cotangents, tensors, wanted=None):
        asked.append((node.name(), wanted))
        return whole(node, cotangents, tensors, wanted)
    monkeypatch.setattr(OpNode, "vjp", watched)
    _, waiting = stage_backward_input([out.sum()], None, [x], module.parameters())
    products = [wanted for name, wanted in asked if name == "MmBackward0"]
    assert products == [(True, False), (True, False)]
    asked.clear()
    waiting.run()
    assert [each for each in asked if each[0] == "MmBackward0"] == [("MmBackward0", (False, True))] * 2


def test_what_was_saved_is_freed():
    module, x = nn.Sequential(nn.Linear(3, 3), nn.Tanh()), torch.randn(2, 3, requires_grad=True)
    out = module(x)
    saved = weakref.ref(out)
    _, waiting = stage_backward_input([out], [torch.ones(2, 3)], [x, "text"], module.parameters())
    waiting.run()
    del out, waiting
    gc.collect()
    assert saved() is None


def test_errors_say_what_a_pass_had():
    x = torch.ones(2, requires_grad=True)
    with pytest.raises(RuntimeError, match=r"Failed to run stage backward:\n.*Stage output: Tensor\(") as error:
        stage_backward(x * 2, torch.ones(3), [x])
    assert error.value.__cause__ is not None
    with pytest.raises(RuntimeError, match="Failed to run stage backward input"):
        stage_backward_input([x * 2], [torch.ones(3)], [x], [])


class Example(nn.Module):
    """A weight of two stages, a constant that skips one, an argument that is used later."""

    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Parameter(torch.randn(6, 6)), nn.Parameter(torch.randn(6, 6))
        self.register_buffer("constant", torch.randn(6))
        self.layer = nn.Linear(6, 6)
        self.alias = self.layer

    def forward(self, x, y):
        x = (x @ self.first + y).relu()
        constant = self.constant.clone()
        x = self.layer(x)
        pipe_split()
        x = (x.relu() + constant) @ self.first
        pipe_split()
        return self.alias(x) @ self.second


def test_modules_are_cut_with_names_and_copies():
    torch.manual_seed(0)
    module, x, y = Example(), torch.randn(4, 6), torch.randn(4, 6)
    pipe = pipeline(module, (x, y))
    assert pipe.num_stages == 3
    assert torch.allclose(pipe(x, y)[0], module(x, y))
    names = [set(pipe.get_stage_module(i).state_dict()) for i in range(3)]
    assert names[0] >= {"first", "constant"}
    assert names[1] == {"first"}
    assert "second" in names[2]
    assert set().union(*names) <= set(module.state_dict())
    assert {"submod_pp_0": "first", "submod_pp_1": "first"} in pipe.replicated_params
    assert pipe.get_stage_module(0).get_parameter("first") is not pipe.get_stage_module(1).get_parameter("first")
    assert not any("forward" in each.__dict__ for each in module.modules())
    with pytest.raises(ValueError, match="Invalid stage index 3!"):
        pipe.get_stage_module(3)


def test_marks_without_stages_make_none():
    net = nn.Sequential(nn.Linear(2, 2), nn.Tanh())
    spec = {"0": SplitPoint.BEGINNING, "1": SplitPoint.END}
    assert pipeline(net, (torch.ones(1, 2),), split_spec=spec).num_stages == 1
    assert "forward" not in net[0].__dict__

    def policy(graph_module):
        (node,) = [node for node in graph_module.graph.nodes if "tanh" in node.name]
        with graph_module.graph.inserting_before(node):
            graph_module.graph.call_function(torch.ops.pippy._pipe_split.default)
        return graph_module

    assert pipeline(net, (torch.ones(1, 2),), split_policy=policy).num_stages == 2
    with pytest.raises(ValueError, match="Unknown split point type"):
        pipeline(net, (torch.ones(1, 2),), split_spec={"0": "END"})
    with pytest.raises(AttributeError, match=r"Specified target 5\.a referenced nonexistent module 5"):
        pipeline(net, (torch.ones(1, 2),), split_spec={"5.a": SplitPoint.END})


def test_models_that_cannot_be_exported():
    class Depends(nn.Module):
        def forward(self, x):
            return x * 2 if x.sum() > 0 else x

    with pytest.raises(RuntimeError, match="we cannot capture your model as a full graph"):
        pipeline(Depends(), (torch.ones(2),))
