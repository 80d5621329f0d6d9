"""Distributed tensors in a group of one process: saved-tensor hooks, checkpoints, groups that are made again."""

from __future__ import annotations

import functools
import gc
from contextlib import nullcontext

import pytest

import flambeau as torch
from flambeau import nn
from flambeau.autograd.graph import saved_tensors_hooks
from flambeau.distributed.fsdp import FullyShardedDataParallel, OptimStateKeyType, ShardingStrategy
from flambeau.distributed.tensor import DTensor, Partial, Replicate, Shard, distribute_tensor
from flambeau.distributed.tensor.parallel import ColwiseParallel, parallelize_module
from flambeau.utils.checkpoint import checkpoint

dist = torch.distributed


def meshes(count):
    """The mesh of a group that is made anew each time."""
    for _ in range(count):
        dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
        yield dist.init_device_mesh("cpu", (1,))
        dist.destroy_process_group()


def test_saved_tensors_keep_their_parts():
    mesh = next(made := meshes(1))
    layer = parallelize_module(nn.Linear(4, 8), mesh, ColwiseParallel())
    found = []
    for around in (lambda x: layer(x), lambda x: checkpoint(layer, x, use_reentrant=False),
                   lambda x: checkpoint(layer, x, use_reentrant=True)):
        for hooks in (nullcontext(), saved_tensors_hooks(lambda x: x, lambda x: x)):
            layer.zero_grad()
            x = torch.arange(8.).reshape(2, 4).requires_grad_()
            with hooks:
                around(x).square().sum().backward()
            found.append((x.grad.tolist(), layer.weight.grad.full_tensor().tolist()))
    assert found == found[:1] * 6
    assert any(found[0][0][0])
    assert not list(made)  # destroys the group


def test_placements_of_a_group_that_was_destroyed_are_chosen_anew():
    for mesh in meshes(2):
        x = distribute_tensor(torch.ones(4, 4), mesh, [Shard(0)])
        assert (x.t() @ x).redistribute(placements=[Replicate()]).to_local().sum().item() == 64
        pending = DTensor.from_local(torch.ones(4, 4), mesh, [Partial()])
        assert (pending * x).full_tensor().sum().item() == 16


def test_large_arrays_are_gathered_from_one_process():
    for _ in meshes(1):
        x = torch.arange(3000.)
        received = [torch.zeros(3000)]
        dist.all_gather(received, x)
        assert torch.equal(received[0], x)


class Tied(nn.Module):
    """A weight under two names, in modules that are wrapped and one that is not."""

    def __init__(self):
        super().__init__()
        self.embedding, self.middle, self.head = nn.Embedding(5, 4), nn.Linear(4, 4), nn.Linear(4, 5, bias=False)
        self.head.weight = self.embedding.weight

    def forward(self, x):
        return self.head(self.middle(self.embedding(x)))


def test_whole_state_dicts_of_wrapped_modules_with_a_weight_under_two_names():
    for _ in meshes(1):
        model = Tied()
        model.middle = FullyShardedDataParallel(model.middle)
        model = FullyShardedDataParallel(model)
        state = {name: value + 1 for name, value in model.state_dict().items()}
        assert list(state) == ["embedding.weight", "middle.weight", "middle.bias", "head.weight"]
        model.load_state_dict(state)
        assert all(torch.equal(value, state[name]) for name, value in model.state_dict().items())
        gc.collect()


def test_hooks_and_whole_gradients_of_wrapped_modules():
    for _ in meshes(1):
        calls: list = []
        hook = functools.partial(lambda calls, state, grad: calls.append((state, grad.mul_(2).shape)), calls)
        model = FullyShardedDataParallel(nn.Linear(3, 2), sharding_strategy=ShardingStrategy.NO_SHARD)
        model.register_comm_hook(7, hook)
        model(torch.ones(4, 3)).sum().backward()
        assert calls == [(7, (8,))]
        assert [p.grad.full_tensor().unique().item() for p in model.parameters()] == [8, 8]
        with FullyShardedDataParallel.summon_full_params(model, with_grads=True):
            assert type(model.weight.grad) is torch.Tensor
            model.weight.grad.zero_()
        assert [p.grad.full_tensor().unique().item() for p in model.parameters()] == [0, 8]
        with pytest.raises(AssertionError, match="already registered"):
            model.register_comm_hook(None, print)
        gc.collect()


def _pair():
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(3, 4), nn.Linear(4, 2))
    model = FullyShardedDataParallel(net, ignored_modules=[net[0]])
    return model, torch.optim.AdamW(model.parameters(), lr=0.1)


def test_norms_of_parameters_of_which_some_stay_whole():
    for _ in meshes(1):
        model, _ = _pair()
        model(torch.ones(2, 3)).sum().backward()
        grads = [each.grad for each in model.parameters()]
        assert {isinstance(each, DTensor) for each in grads} == {False, True}
        expected = torch.cat([(each.full_tensor() if isinstance(each, DTensor) else each).flatten() for each in grads])
        torch.testing.assert_close(model.clip_grad_norm_(0.5), expected.norm())
        torch.testing.assert_close(model.clip_grad_norm_(9.0), torch.tensor(0.5))


def test_optimizer_states_by_names_and_by_numbers():
    for _ in meshes(1):
        model, optimizer = _pair()
        model(torch.ones(2, 3)).sum().backward()
        optimizer.step()
        named = FullyShardedDataParallel.full_optim_state_dict(model, optimizer)
        assert list(named["state"]) == ["0.weight", "0.bias", "1.weight", "1.bias"]
        numbered = FullyShardedDataParallel.rekey_optim_state_dict(named, OptimStateKeyType.PARAM_ID, model)
        back = FullyShardedDataParallel.rekey_optim_state_dict(numbered, OptimStateKeyType.PARAM_NAME, model)
        assert list(numbered["state"]) == [0, 1, 2, 3]
        assert back["param_groups"] == named["param_groups"]
        other, second = _pair()
        for state in (FullyShardedDataParallel.shard_full_optim_state_dict(named, other),
                      FullyShardedDataParallel.scatter_full_optim_state_dict(named, other, optim=second),
                      FullyShardedDataParallel.flatten_sharded_optim_state_dict(
                          FullyShardedDataParallel.sharded_optim_state_dict(model, optimizer), other, second)):
            second.load_state_dict(state)
            own, loaded = (each.state_dict()["state"] for each in (optimizer, second))
            for number, values in own.items():
                torch.testing.assert_close(loaded[number]["exp_avg"], values["exp_avg"], rtol=0, atol=0)
