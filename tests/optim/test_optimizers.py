"""Optimizers: updates, state dicts, parameter groups, hooks and pickling; does not need PyTorch."""

from __future__ import annotations

import copy
import pickle

import pytest

import flambeau as torch
from flambeau import nn, optim

#: Muon and SparseAdam, for matrices and sparse gradients, are tested in test_averaging_and_foreach_parity.py
_OTHERS = ("Optimizer", "LBFGS", "Muon", "SparseAdam", "lr_scheduler", "swa_utils",
           "swap_in_optimizer_params_and_state")
ALL = [getattr(optim, name) for name in optim.__all__ if name not in _OTHERS]


def quadratic(p):
    return ((p - torch.tensor([3.0, -1.0])) ** 2).sum()


@pytest.mark.parametrize("cls", ALL)
def test_descends(cls):
    p = nn.Parameter(torch.zeros(2))
    optimizer = cls([p], lr=0.1)
    first = quadratic(p).item()
    for _ in range(30):
        optimizer.zero_grad()
        quadratic(p).backward()
        optimizer.step()
    assert quadratic(p).item() < first
    assert p.is_leaf
    assert p.requires_grad


@pytest.mark.parametrize("cls", ALL)
def test_a_parameter_without_dims_takes_the_steps_of_one_with_one_element(cls):
    results = []
    for shape in ((), (1,)):
        p = nn.Parameter(torch.full(shape, 1.5))
        optimizer = cls([p], lr=0.1)
        for _ in range(3):
            p.grad = 2 * p.detach()
            optimizer.step()
        results.append(p.detach().reshape(1).tolist())
    assert results[0] == results[1]


@pytest.mark.parametrize("cls", ALL)
def test_maximize_negates_the_gradient(cls):
    results = []
    for sign, maximize in ((1, False), (-1, True)):
        p = nn.Parameter(torch.tensor([0.5, -0.5]))
        optimizer = cls([p], maximize=maximize)
        for _ in range(3):
            p.grad = sign * torch.tensor([1.0, -2.0])
            optimizer.step()
        results.append(p.tolist())
    assert results[0] == results[1]


@pytest.mark.parametrize("cls", ALL)
def test_resumed_training_equals_uninterrupted_training(cls):
    def steps(p, optimizer, n):
        for _ in range(n):
            optimizer.zero_grad()
            quadratic(p).backward()
            optimizer.step()

    p = nn.Parameter(torch.zeros(2))
    optimizer = cls([p])
    steps(p, optimizer, 3)
    state, values = copy.deepcopy(optimizer.state_dict()), p.detach().clone()
    steps(p, optimizer, 3)
    q = nn.Parameter(values)
    other = cls([q])
    other.load_state_dict(state)
    steps(q, other, 3)
    assert p.tolist() == q.tolist()


def test_block_by_block_updates_give_the_same_values():
    from flambeau.optim import update_rules

    size = update_rules.BLOCK + 5
    p = nn.Parameter(torch.ones(size, dtype=torch.float64))
    q = nn.Parameter(torch.ones(5, dtype=torch.float64))
    optimizer = optim.Adam([p, q])
    for _ in range(3):
        p.grad = torch.full((size,), 0.3, dtype=torch.float64)
        q.grad = torch.full((5,), 0.3, dtype=torch.float64)
        optimizer.step()
    assert set(p.tolist()) == set(q.tolist())
    assert len(set(q.tolist())) == 1


def test_non_contiguous_parameters():
    base = torch.arange(6.0).reshape(2, 3)
    p = nn.Parameter(base.t())
    optimizer = optim.SGD([p], lr=1.0)
    p.grad = torch.ones(3, 2)
    optimizer.step()
    assert p.tolist() == [[-1.0, 2.0], [0.0, 3.0], [1.0, 4.0]]


def test_step_counts_as_a_write():
    p = nn.Parameter(torch.ones(2))
    loss = (p * p).sum()
    p.grad = torch.ones(2)
    version = p._version
    optim.SGD([p], lr=0.1).step()
    assert p._version > version
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        loss.backward()


def test_closure():
    p = nn.Parameter(torch.tensor([2.0]))
    optimizer = optim.SGD([p], lr=0.1)

    def closure():
        optimizer.zero_grad()
        loss = (p * p).sum()
        loss.backward()
        return loss

    assert optimizer.step(closure).item() == 4.0
    assert optimizer.step(closure).item() < 4.0


def test_groups():
    p, q = nn.Parameter(torch.ones(1)), nn.Parameter(torch.ones(1))
    optimizer = optim.SGD([{"params": [p]}, {"params": q, "lr": 1.0}], lr=0.5)
    p.grad, q.grad = torch.ones(1), torch.ones(1)
    optimizer.step()
    assert (p.item(), q.item()) == (0.5, 0.0)
    extra = nn.Parameter(torch.ones(1))
    optimizer.add_param_group({"params": extra, "lr": 2.0})
    assert [group["lr"] for group in optimizer.param_groups] == [0.5, 1.0, 2.0]
    assert [group["params"] for group in optimizer.state_dict()["param_groups"]] == [[0], [1], [2]]


def test_named_parameters():
    net = nn.Linear(1, 1)
    optimizer = optim.SGD(net.named_parameters(), lr=0.1)
    assert optimizer.param_groups[0]["param_names"] == ["weight", "bias"]


def test_zero_grad():
    p = nn.Parameter(torch.ones(1))
    optimizer = optim.SGD([p])
    p.grad = torch.ones(1)
    grad = p.grad
    optimizer.zero_grad(set_to_none=False)
    assert p.grad is grad
    assert grad.item() == 0.0
    optimizer.zero_grad()
    assert p.grad is None


def test_tensor_lr():
    p = nn.Parameter(torch.ones(1))
    lr = torch.tensor(0.5)
    optimizer = optim.SGD([p], lr=lr)
    scheduler = optim.lr_scheduler.ExponentialLR(optimizer, 0.5)
    p.grad = torch.ones(1)
    optimizer.step()
    scheduler.step()
    assert p.item() == 0.5
    assert optimizer.param_groups[0]["lr"] is lr
    assert lr.item() == 0.25


def test_hooks():
    p = nn.Parameter(torch.ones(1))
    optimizer = optim.SGD([p])
    seen = []
    with optimizer.register_step_pre_hook(lambda opt, args, kwargs: seen.append("pre")), \
            optimizer.register_step_post_hook(lambda opt, args, kwargs: seen.append("post")), \
            optim.optimizer.register_optimizer_step_pre_hook(lambda opt, args, kwargs: seen.append("global")):
        optimizer.step()
    optimizer.step()
    assert seen == ["global", "pre", "post"]
    optimizer.register_state_dict_post_hook(lambda opt, state: {**state, "more": 1})
    assert optimizer.state_dict()["more"] == 1
    optimizer.register_load_state_dict_pre_hook(lambda opt, state: seen.append("load"))
    optimizer.load_state_dict(optimizer.state_dict())
    assert seen[-1] == "load"
    optimizer.register_step_pre_hook(lambda opt, args, kwargs: 3)
    with pytest.raises(RuntimeError, match=r"must return None or a tuple of \(new_args, new_kwargs\), but got 3."):
        optimizer.step()


def test_pickle_and_deepcopy():
    p = nn.Parameter(torch.ones(1))
    optimizer = optim.Adam([p])
    p.grad = torch.ones(1)
    optimizer.step()
    for other in (pickle.loads(pickle.dumps(optimizer)), copy.deepcopy(optimizer)):
        assert repr(other) == repr(optimizer)
        (q,) = other.param_groups[0]["params"]
        assert other.state[q]["step"].item() == 1.0
        q.grad = torch.ones(1)
        other.step()
        assert other.state[q]["step"].item() == 2.0
        assert optimizer.state[p]["step"].item() == 1.0


def test_state_dicts_of_older_versions():
    p = nn.Parameter(torch.ones(1))
    optimizer = optim.Adam([p])
    p.grad = torch.ones(1)
    optimizer.step()
    state = optimizer.state_dict()
    state["state"][0]["step"] = 5
    for group in state["param_groups"]:
        del group["amsgrad"]
    optimizer.load_state_dict(state)
    optimizer.step()
    assert optimizer.state[p]["step"].item() == 6.0


def test_subclass_is_an_optimizer():
    class Sign(optim.Optimizer):
        def __init__(self, params, lr):
            super().__init__(params, {"lr": lr})

        @torch.no_grad()
        def step(self, closure=None):
            for group in self.param_groups:
                for p in group["params"]:
                    p.add_(p.grad.sign(), alpha=-group["lr"])

    p = nn.Parameter(torch.ones(1))
    optimizer = Sign([p], lr=0.25)
    p.grad = torch.full((1,), 3.0)
    optimizer.step()
    assert p.item() == 0.75


def test_an_optimizer_without_init_wraps_its_step_itself():
    class Plain(torch.optim.Optimizer):
        def __init__(self):
            self._patch_step_function()

        def step(self, closure=None):
            return 1

    Plain()
    assert Plain.step.hooked


def test_the_namespace_lists_its_optimizers():
    found = {name for name, value in torch.optim.__dict__.items()
             if isinstance(value, type) and issubclass(value, torch.optim.Optimizer)}
    assert found >= {"Optimizer", "SGD", "LBFGS", *(cls.__name__ for cls in ALL)}
