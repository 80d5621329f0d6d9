"""Optimizers that run in backward passes, alone and under `DistributedDataParallel`; optimizers with names."""

from __future__ import annotations

import pytest

import flambeau as torch
from flambeau import distributed as dist
from flambeau import nn
from flambeau.distributed.optim import _apply_optimizer_in_backward, _get_in_backward_optimizers, _NamedOptimizer
from flambeau.nn.parallel import DistributedDataParallel


def trained(kind):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))
    if kind == "outside":
        optimizer = torch.optim.Adam(model.parameters(), 0.1)
    else:
        _apply_optimizer_in_backward(torch.optim.Adam, model.parameters(), {"lr": 0.1})
    call = DistributedDataParallel(model) if kind == "DDP" else model
    for step in range(3):
        call(torch.full((2, 3), step + 1.)).sum().backward()
        if kind == "outside":
            optimizer.step()
            optimizer.zero_grad()
        assert all(p.grad is None for p in model.parameters())
    return model


def test_parameters_are_updated_as_by_a_step():
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    try:
        models = [trained(kind) for kind in ("outside", "in backward", "DDP")]
    finally:
        dist.destroy_process_group()
    for model in models[1:]:
        assert len(_get_in_backward_optimizers(model)) == 4
        for p, q in zip(model.parameters(), models[0].parameters(), strict=True):
            assert torch.equal(p, q)


def test_states_have_names():
    model = nn.Linear(2, 1)
    optimizer = _NamedOptimizer(model.named_parameters(), torch.optim.SGD, None, model, lr=0.1, momentum=0.9)
    with pytest.raises(ValueError, match="Expects the optim to be initialized before load"):
        optimizer.load_state_dict(optimizer.state_dict())
    model(torch.ones(1, 2)).sum().backward()
    optimizer.step()
    state = optimizer.state_dict()
    assert sorted(state["state"]) == ["bias", "weight"]
    assert state["param_groups"][0]["params"] == ["bias", "weight"]
    other = nn.Linear(2, 1)
    copy = _NamedOptimizer(other.named_parameters(), torch.optim.SGD, None, other, lr=0.5, momentum=0.9)
    copy.init_state()
    copy.load_state_dict(state)
    assert copy.param_groups[0]["lr"] == 0.1
    assert torch.equal(copy.state[other.weight]["momentum_buffer"], torch.ones(1, 2))
    with pytest.raises(ValueError, match="some parameters are not in the module"):
        copy.add_param_group({"params": model.weight})
