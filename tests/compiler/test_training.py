"""Compiled training steps: models, optimizers and schedulers, compared with eager after every step."""

from __future__ import annotations

import itertools

import pytest

import flambeau as torch
from flambeau import codegen, nn
from flambeau.nn import functional as F
from flambeau.runtime import compilation as code
from tests.compiler.eager_comparison import (
    Scenario,
    compare_with_eager,
    counted_captures,
    numbers,
    parameters,
    programs,
    reasons,
    same,
    state_of,
)

pytestmark = pytest.mark.skipif(not codegen.available(), reason="llvmlite is not installed, or FLAMBEAU_JIT is 0")


def training(model, loss, make=lambda ps: torch.optim.SGD(ps, lr=0.05), batch=None, **more):
    """A world of one training step: gradients are cleared, the loss differentiated, the parameters updated."""
    optimizer = make(model.parameters())

    def step(*data):
        optimizer.zero_grad()
        out = loss(model, *data)
        out.backward()
        optimizer.step()
        return out

    return Scenario(step, batch, lambda: (parameters(model), state_of(optimizer)), **more)


def mlp(*sizes):
    layers = []
    for a, b in itertools.pairwise(sizes):
        layers += [nn.Linear(a, b), nn.Tanh()]
    return nn.Sequential(*layers[:-1])


def regression(i, inputs=6, outputs=2, rows=8):
    return numbers(rows, inputs, seed=i), numbers(rows, outputs, seed=1000 + i)


def classes(i, *shape, count=4):
    x = numbers(*shape, seed=i)
    return x, (numbers(shape[0], seed=1000 + i).abs() * 100).long() % count


def squares(model, x, y):
    return F.mse_loss(model(x), y)


def entropy(model, x, y):
    return F.cross_entropy(model(x), y)


MODELS = {
    "mlp": lambda: training(mlp(6, 10, 2), squares, batch=regression),
    "mlp of double precision": lambda: training(
        mlp(6, 10, 2).double(), squares, batch=lambda i: tuple(x.double() for x in regression(i))),
    "classifier": lambda: training(mlp(5, 12, 4), entropy, batch=lambda i: classes(i, 9, 5)),
    "convolutions with batch norm and dropout": lambda: training(
        nn.Sequential(nn.Conv2d(2, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2), nn.Dropout(0.3),
                      nn.Conv2d(4, 6, 3), nn.BatchNorm2d(6), nn.LeakyReLU(0.1), nn.AdaptiveAvgPool2d(1), nn.Flatten(),
                      nn.Linear(6, 4)), entropy, batch=lambda i: classes(i, 5, 2, 8, 8)),
    "convolutions in one dimension": lambda: training(
        nn.Sequential(nn.Conv1d(3, 6, 3, stride=2), nn.GELU(), nn.Conv1d(6, 4, 3, dilation=2, groups=2), nn.SiLU(),
                      nn.AvgPool1d(2), nn.Flatten(), nn.Linear(8, 4)), entropy, batch=lambda i: classes(i, 4, 3, 20)),
    "transposed convolutions": lambda: training(
        nn.Sequential(nn.Conv2d(1, 3, 3, stride=2), nn.ReLU(), nn.ConvTranspose2d(3, 1, 3, stride=2), nn.Sigmoid()),
        lambda m, x: F.binary_cross_entropy(m(x), (x > 0).float()), batch=lambda i: (numbers(3, 1, 9, 9, seed=i),)),
    "group norm": lambda: training(
        nn.Sequential(nn.Conv2d(2, 6, 3), nn.GroupNorm(3, 6), nn.ELU(), nn.InstanceNorm2d(6, affine=True),
                      nn.Flatten(), nn.Linear(6 * 16, 4)), entropy, batch=lambda i: classes(i, 5, 2, 6, 6)),
    "layer norm and dropout": lambda: training(
        nn.Sequential(nn.Linear(6, 12), nn.LayerNorm(12), nn.Dropout(0.5), nn.Softplus(), nn.RMSNorm(12),
                      nn.Linear(12, 2)), squares, batch=regression),
    "embedding and attention": lambda: training(Attending(), entropy, batch=lambda i: (
        (numbers(4, 7, seed=i).abs() * 50).long() % 11, (numbers(4, seed=i + 1).abs() * 50).long() % 4)),
    "weights shared": lambda: training(Shared(), squares, batch=lambda i: (numbers(5, 6, seed=i),
                                                                         numbers(5, 6, seed=i + 50))),
    "recurrent": lambda: training(Recurrent(nn.RNN), squares, batch=lambda i: (numbers(5, 3, 4, seed=i),
                                                                              numbers(3, 2, seed=i + 50))),
    "lstm": lambda: training(Recurrent(nn.LSTM), squares, batch=lambda i: (numbers(5, 3, 4, seed=i),
                                                                          numbers(3, 2, seed=i + 50))),
    "gru of two layers both ways": lambda: training(
        Recurrent(nn.GRU, num_layers=2, bidirectional=True), squares,
        batch=lambda i: (numbers(5, 3, 4, seed=i), numbers(3, 2, seed=i + 50))),
    "cells": lambda: training(Cells(), squares, batch=lambda i: (numbers(5, 3, 4, seed=i),
                                                                numbers(3, 2, seed=i + 50))),
    "multi-head attention": lambda: training(
        Heads(), squares, batch=lambda i: (numbers(2, 5, 8, seed=i), numbers(2, 5, 8, seed=i + 50))),
}


class Attending(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(11, 8)
        self.query, self.key, self.value = (nn.Linear(8, 8) for _ in range(3))
        self.out = nn.Linear(8, 4)

    def forward(self, words):
        x = self.embedding(words)
        q, k, v = (each(x).view(*x.shape[:2], 2, 4).transpose(1, 2) for each in (self.query, self.key, self.value))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.out(y.transpose(1, 2).reshape(x.shape).mean(1))


class Shared(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(6, 6), nn.Linear(6, 6)
        self.second.weight = self.first.weight

    def forward(self, x):
        return F.linear(torch.tanh(self.second(torch.tanh(self.first(x)))), self.first.weight.t())


class Recurrent(nn.Module):
    def __init__(self, kind, **options):
        super().__init__()
        self.cells = kind(4, 6, **options)
        self.out = nn.Linear(self.cells(torch.zeros(1, 1, 4))[0].shape[-1], 2)

    def forward(self, x):
        return self.out(self.cells(x)[0][-1])


class Cells(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell, self.out = nn.LSTMCell(4, 6), nn.Linear(6, 2)

    def forward(self, x):
        h, c = torch.zeros(x.shape[1], 6), torch.zeros(x.shape[1], 6)
        for each in x:
            h, c = self.cell(each, (h, c))
        return self.out(h)


class Heads(nn.Module):
    def __init__(self):
        super().__init__()
        self.attention = nn.MultiheadAttention(8, 2, batch_first=True, dropout=0.1)
        self.norm = nn.LayerNorm(8)

    def forward(self, x):
        return self.norm(x + self.attention(x, x, x, need_weights=False)[0])


@pytest.mark.parametrize("name", MODELS)
def test_model(name):
    made = compare_with_eager(MODELS[name], 6, 1e-4)
    assert programs(made) == 1
    assert not reasons(made)


# ----- optimizers -------------------------------------------------------------------------

OPTIMIZERS = {
    "SGD": {}, "SGD with momentum": {"momentum": 0.9}, "SGD, Nesterov": {"momentum": 0.9, "nesterov": True},
    "SGD with decay": {"momentum": 0.5, "dampening": 0.1, "weight_decay": 0.01}, "SGD upwards": {"maximize": True},
    "Adam": {}, "Adam, largest": {"amsgrad": True, "weight_decay": 0.01}, "AdamW": {}, "Adamax": {}, "NAdam": {},
    "RAdam": {}, "Adagrad": {"lr_decay": 0.1}, "Adadelta": {}, "RMSprop": {"momentum": 0.5},
    "RMSprop, centered": {"centered": True}, "Rprop": {}, "ASGD": {}, "ASGD, averaging": {"t0": 1}, "Adafactor": {},
}
#: optimizers that run eagerly, and why
EAGER: dict[str, str] = {}


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_optimizer(name):
    kind = getattr(torch.optim, name.partition(",")[0].partition(" ")[0])
    options = {"lr": 0.02, **OPTIMIZERS[name]}
    made = compare_with_eager(
        lambda: training(mlp(6, 8, 2), squares, lambda ps: kind(ps, **options), regression), 9, 1e-4)
    if name in EAGER:
        assert any(EAGER[name] in reason for reason in reasons(made))
    else:
        assert programs(made) >= 1, reasons(made)


def test_every_optimizer_is_tested():
    tried = {name.partition(",")[0].partition(" ")[0] for name in OPTIMIZERS}
    kinds = {name for name in torch.optim.__all__ if isinstance(value := getattr(torch.optim, name), type)
             and issubclass(value, torch.optim.Optimizer)} - {"Optimizer"}
    assert kinds - tried <= {"LBFGS", "SparseAdam", "Muon"}


@pytest.mark.parametrize("name", ["LBFGS", "Muon"])
def test_optimizer_variants(name):
    if not hasattr(torch.optim, name):
        pytest.skip("there is none")

    def build():
        model = nn.Linear(4, 3, bias=False)
        optimizer = getattr(torch.optim, name)(model.parameters(), lr=0.1)

        def step(x, y):
            def closure():
                optimizer.zero_grad()
                loss = F.mse_loss(model(x), y)
                loss.backward()
                return loss

            return optimizer.step(closure)

        return Scenario(step, lambda i: (numbers(5, 4, seed=i), numbers(5, 3, seed=i + 9)), lambda: parameters(model))

    compare_with_eager(build, 5, 1e-4)


def test_several_groups():
    def groups(ps):
        first, *rest = ps
        return torch.optim.Adam([{"params": [first], "lr": 0.1, "betas": (0.8, 0.9)},
                                 {"params": rest, "weight_decay": 0.1}], lr=0.01)

    made = compare_with_eager(lambda: training(mlp(6, 8, 2), squares, groups, regression))
    assert programs(made) == 1


# ----- learning rates ---------------------------------------------------------------------

SCHEDULERS = {
    "StepLR": {"step_size": 2, "gamma": 0.5}, "ExponentialLR": {"gamma": 0.8}, "CosineAnnealingLR": {"T_max": 6},
    "LambdaLR": {"lr_lambda": lambda i: 1 / (1 + i)}, "OneCycleLR": {"max_lr": 0.1, "total_steps": 40},
    "CyclicLR": {"base_lr": 0.01, "max_lr": 0.1, "step_size_up": 2}, "LinearLR": {},
}


@pytest.mark.parametrize("name", SCHEDULERS)
def test_learning_rates_change_without_a_recompile(name):
    def build():
        kept = []

        def make(ps):
            kept.append(torch.optim.SGD(ps, lr=0.1, momentum=0.9))
            kept.append(getattr(torch.optim.lr_scheduler, name)(kept[0], **SCHEDULERS[name]))
            return kept[0]

        world = training(mlp(6, 8, 2), squares, make, regression)
        world.between = lambda i: kept[1].step()
        return world

    with counted_captures() as captures:
        made = compare_with_eager(build, 12)
    assert programs(made) == 1
    assert len(captures) == 3  # one before there are momentum buffers, two that agree


@pytest.mark.parametrize("option", ["lr", "weight_decay", "momentum", "betas", "eps"])
def test_optimizer_scalars_change_without_a_recompile(option):
    def build():
        adam = option in ("betas", "eps")
        kept = []

        def make(ps):
            options = {"betas": (0.9, 0.99), "eps": 1e-8} if adam else {"momentum": 0.9, "weight_decay": 0.1}
            kept.append((torch.optim.Adam if adam else torch.optim.SGD)(ps, lr=0.05, **options))
            return kept[0]

        def between(i):
            for group in kept[0].param_groups:
                group[option] = (0.9 - 0.1 * i, 0.9 + 0.01 * i) if option == "betas" else group[option] * 0.7

        world = training(mlp(6, 8, 2), squares, make, regression)
        world.between = between
        return world

    with counted_captures() as captures:
        compare_with_eager(build, 8)
    assert len(captures) == (2 if option in ("betas", "eps") else 3)  # of momentum, one before there are buffers


def test_zero_weight_decay_is_another_program():
    def build():
        kept = []

        def make(ps):
            kept.append(torch.optim.SGD(ps, lr=0.05, weight_decay=0.0))
            return kept[0]

        def between(i):
            kept[0].param_groups[0]["weight_decay"] = 0.1 if i in (5, 6, 7) else 0.0

        world = training(mlp(6, 8, 2), squares, make, regression)
        world.between = between
        return world

    compare_with_eager(build, 12)


@pytest.mark.parametrize("flag", ["nesterov", "maximize"])
def test_a_changed_flag_of_an_optimizer(flag):
    def build():
        kept = []

        def make(ps):
            kept.append(torch.optim.SGD(ps, lr=0.05, momentum=0.9))
            return kept[0]

        def between(i):
            kept[0].param_groups[0][flag] = i >= 5

        world = training(mlp(6, 8, 2), squares, make, regression)
        world.between = between
        return world

    compare_with_eager(build, 12)


# ----- what happens between steps ---------------------------------------------------------


def kept_world(make=lambda ps: torch.optim.SGD(ps, lr=0.05, momentum=0.9), model=None):
    model = mlp(6, 8, 2) if model is None else model
    kept = []

    def keeping(ps):
        kept.append(make(ps))
        return kept[0]

    world = training(model, squares, keeping, regression)
    return world, model, kept[0]


def test_gradients_accumulate_over_calls():
    def build():
        model = mlp(6, 8, 2)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.05)

        def accumulate(x, y):
            loss = squares(model, x, y)
            loss.backward()
            return loss

        def between(i):
            if i % 3 == 2:
                optimizer.step()
                optimizer.zero_grad(set_to_none=i > 5)

        return Scenario(accumulate, regression, lambda: parameters(model), between)

    made = compare_with_eager(build, 13)
    assert programs(made) >= 2


def test_gradients_accumulate_within_a_call():
    def build():
        model = mlp(6, 8, 2)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.05)

        def step(x, y):
            optimizer.zero_grad()
            for a, b in zip(x.chunk(4), y.chunk(4), strict=True):
                (squares(model, a, b) / 4).backward()
            optimizer.step()

        return Scenario(step, regression, lambda: parameters(model))

    assert programs(compare_with_eager(build)) == 1


@pytest.mark.parametrize("how", ["norm", "value", "norm of maximum"])
def test_clipped_gradients(how):
    def build():
        model = mlp(6, 8, 2)
        optimizer = torch.optim.Adam(model.parameters(), lr=0.05)

        def step(x, y):
            optimizer.zero_grad()
            loss = squares(model, x, y)
            loss.backward()
            if how == "value":
                nn.utils.clip_grad_value_(model.parameters(), 0.02)
            else:
                loss = loss, nn.utils.clip_grad_norm_(model.parameters(), 0.1, float("inf") if "max" in how else 2.0)
            optimizer.step()
            return loss

        return Scenario(step, regression, lambda: parameters(model))

    made = compare_with_eager(build)
    assert programs(made) == 1, reasons(made)


def test_a_state_is_loaded_between_calls():
    def build():
        world, model, optimizer = kept_world(lambda ps: torch.optim.Adam(ps, lr=0.05))
        saved = {}

        def between(i):
            if i == 3:
                saved["model"] = {k: v.clone() for k, v in model.state_dict().items()}
                saved["optimizer"] = optimizer.state_dict()
                saved["optimizer"]["state"] = {k: {n: t.clone() for n, t in v.items()}
                                               for k, v in saved["optimizer"]["state"].items()}
            if i == 6:
                model.load_state_dict(saved["model"])
                optimizer.load_state_dict(saved["optimizer"])

        world.between = between
        return world

    compare_with_eager(build, 12)


def test_an_optimizers_state_is_dropped():
    def build():
        world, model, optimizer = kept_world()

        def between(i):
            if i == 4:
                optimizer.state.clear()
            if i == 7:
                for p in model.parameters():
                    optimizer.state[p]["momentum_buffer"] = torch.ones_like(p)

        world.between = between
        return world

    compare_with_eager(build, 12)


def test_a_group_is_added():
    def build():
        first, second = nn.Linear(6, 8), nn.Linear(8, 2)
        optimizer = torch.optim.SGD(first.parameters(), lr=0.05)

        def step(x, y):
            optimizer.zero_grad()
            loss = F.mse_loss(second(torch.tanh(first(x))), y)
            loss.backward()
            optimizer.step()
            return loss

        def between(i):
            if i == 4:
                optimizer.add_param_group({"params": second.parameters(), "lr": 0.2})

        return Scenario(step, regression, lambda: (parameters(first), parameters(second)), between)

    compare_with_eager(build, 10)


@pytest.mark.parametrize("when", range(3))
def test_parameters_are_frozen_and_thawed(when):
    def build():
        world, model, _optimizer = kept_world()

        def between(i):
            if i == 3 + when:
                model[0].weight.requires_grad_(False)
                model[0].weight.grad = None
            if i == 7:
                model[0].weight.requires_grad_(True)

        world.between = between
        return world

    compare_with_eager(build, 12)


def test_gradients_are_zeroed_where_there_were_none():
    """Two calls that find no gradients do nothing; the program of these calls is not right for one that finds some."""
    def build():
        model = nn.Linear(6, 2)
        optimizer = torch.optim.SGD(model.parameters())

        def between(i):
            if i > 3:
                for p in model.parameters():
                    p.grad = torch.full_like(p, i)

        def zero():
            optimizer.zero_grad(set_to_none=False)

        return Scenario(zero, lambda _: (), lambda: parameters(model), between)

    compare_with_eager(build, 9)


def test_gradients_set_by_the_user():
    """A parameter that the loss does not touch is updated where it has a gradient all the same."""
    def build():
        model, idle = nn.Linear(6, 2), nn.Parameter(torch.ones(3))
        optimizer = torch.optim.SGD([*model.parameters(), idle], lr=0.1)

        def step(x, y):
            loss = squares(model, x, y)
            loss.backward()
            optimizer.step()
            for p in model.parameters():
                p.grad = None
            return loss

        def between(i):
            if i == 4:
                idle.grad = torch.full((3,), 2.0)
            if i == 8:
                idle.grad = None

        return Scenario(step, regression, lambda: (parameters(model), idle), between)

    compare_with_eager(build, 12)


@pytest.mark.parametrize("way", ["data", "copy", "replaced", "tensor of another size"])
def test_parameters_overwritten_between_calls(way):
    def build():
        model = mlp(6, 8, 2)

        def between(i):
            if i in (3, 6):
                new = numbers(8, 6, seed=i)
                if way == "data":
                    model[0].weight.data = new
                elif way == "copy":
                    with torch.no_grad():
                        model[0].weight.copy_(new)
                elif way == "replaced":
                    model[0].weight = nn.Parameter(new)
                else:
                    model[0].weight = nn.Parameter(numbers(4 + i, 6, seed=i))
                    model[0].bias = nn.Parameter(numbers(4 + i, seed=i))
                    model[2].weight = nn.Parameter(numbers(2, 4 + i, seed=i))

        def step(x, y):
            loss = squares(model, x, y)
            grads = torch.autograd.grad(loss, list(model.parameters()))
            with torch.no_grad():
                for p, g in zip(model.parameters(), grads, strict=True):
                    p -= 0.1 * g
            return loss

        return Scenario(step, regression, lambda: parameters(model), between)

    compare_with_eager(build, 10)


def test_an_average_of_parameters():
    def build():
        world, model, _ = kept_world()
        average = [p.detach().clone() for p in model.parameters()]
        train = world.function

        def step(x, y):
            loss = train(x, y)
            with torch.no_grad():
                for a, p in zip(average, model.parameters(), strict=True):
                    a.mul_(0.9).add_(p, alpha=0.1)
            return loss

        return Scenario(step, regression, lambda: (parameters(model), average))

    made = compare_with_eager(build)
    assert programs(made) == 1


def test_an_average_of_parameters_by_data():
    def build():
        world, model, _ = kept_world()
        average = nn.Parameter(torch.zeros(8, 6), requires_grad=False)
        train = world.function

        def step(x, y):
            loss = train(x, y)
            average.data = average.data * 0.9 + model[0].weight.data * 0.1
            return loss

        return Scenario(step, regression, lambda: (parameters(model), average))

    compare_with_eager(build)


def test_adversarial_training():
    def build():
        maker, judge = mlp(3, 8, 6), mlp(6, 8, 1)
        first, second = (torch.optim.Adam(m.parameters(), lr=0.02) for m in (maker, judge))

        def step(real):
            noise = torch.randn(real.shape[0], 3)
            fake = maker(noise)
            second.zero_grad()
            loss = (F.binary_cross_entropy_with_logits(judge(real), torch.ones(real.shape[0], 1))
                    + F.binary_cross_entropy_with_logits(judge(fake.detach()), torch.zeros(real.shape[0], 1)))
            loss.backward()
            second.step()
            first.zero_grad()
            fooled = F.binary_cross_entropy_with_logits(judge(fake), torch.ones(real.shape[0], 1))
            fooled.backward()
            first.step()
            return loss.detach(), fooled.detach()

        return Scenario(step, lambda i: (numbers(8, 6, seed=i),), lambda: (parameters(maker), parameters(judge)))

    made = compare_with_eager(build, 7, 1e-4)
    assert programs(made) == 1


def test_a_penalty_on_gradients():
    def build():
        model = mlp(4, 8, 1)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.05)

        def step(x):
            optimizer.zero_grad()
            x = x.clone().requires_grad_()
            out = model(x).sum()
            [g] = torch.autograd.grad(out, x, create_graph=True)
            loss = out + ((g.norm(dim=1) - 1) ** 2).mean()
            loss.backward()
            optimizer.step()
            return loss

        return Scenario(step, lambda i: (numbers(8, 4, seed=i),), lambda: parameters(model))

    assert programs(compare_with_eager(build, 7, 1e-4)) == 1


def test_checkpointed_activations_are_recomputed():
    from flambeau.utils.checkpoint import checkpoint

    def build():
        first, second = mlp(6, 8, 8), mlp(8, 8, 2)
        both = nn.Sequential(first, nn.Dropout(0.2), second)

        def loss(model, x, y):
            return F.mse_loss(checkpoint(model, x, use_reentrant=False), y)

        return training(both, loss, batch=regression)

    compare_with_eager(build, 7, 1e-4)


@pytest.mark.parametrize("name", ["Adam", "AdamW", "RMSprop", "Adagrad", "Adadelta", "Adamax"])
def test_the_first_optimizer_step_is_compiled(name):
    def build():
        options = {"lr": 0.05} | ({"momentum": 0.5, "centered": True} if name == "RMSprop" else {})
        return training(mlp(6, 8, 2), squares, lambda ps: getattr(torch.optim, name)(ps, **options), regression)

    with counted_captures() as captures:
        made = compare_with_eager(build, 6)
    assert programs(made) == 1
    assert len(captures) == 2


def test_a_dropped_optimizer_state_is_initialized_again():
    def build():
        kept = []

        def make(ps):
            kept.append(torch.optim.Adam(ps, lr=0.05))
            return kept[0]

        world = training(mlp(6, 8, 2), squares, make, regression)
        world.between = lambda i: kept[0].state.clear() if i in (3, 6) else None
        return world

    compare_with_eager(build, 12)


def test_an_optimizer_created_inside():
    weight = torch.ones(3)

    def adapted(x):
        fast = weight.clone().requires_grad_()
        optimizer = torch.optim.Adam([fast], lr=0.1)
        for _ in range(3):
            optimizer.zero_grad()
            ((fast * x).sum() - 1).square().backward()
            optimizer.step()
        return fast.detach()

    compiled = torch.compile(adapted)
    for i in range(5):
        x = torch.arange(3.) + i
        assert torch.allclose(compiled(x), adapted(x))


def test_more_layers_compile_no_more_kernels():
    def steps(layers):
        model = nn.Sequential(*[each for _ in range(layers) for each in (nn.Linear(16, 16), nn.ReLU())])
        optimizer = torch.optim.Adam(model.parameters())

        @torch.compile
        def step(x):
            optimizer.zero_grad()
            loss = model(x).square().mean()
            loss.backward()
            optimizer.step()
            return loss

        for _ in range(4):
            step(torch.ones(8, 16))
        assert programs(step) == 1
        return code.library_count()

    assert steps(4) == steps(9)


def test_replaced_parameter_groups():
    """`load_state_dict` makes new ones: what is set there counts, also for optimizers that remember nothing."""
    def trained(compile):
        torch.manual_seed(0)
        model = nn.Linear(3, 2)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

        def step(x):
            optimizer.zero_grad()
            model(x).square().sum().backward()
            optimizer.step()

        run = torch.compile(step) if compile else step
        for i in range(12):
            if i == 4:
                optimizer.load_state_dict(optimizer.state_dict())
            if i == 8:
                optimizer.param_groups[0]["lr"] = 0.5
            run(numbers(4, 3, seed=i))
        return [p.detach() for p in model.parameters()]

    same(trained(True), trained(False))
