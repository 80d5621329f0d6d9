"""Distributed tensors in a group of one process: saved-tensor hooks, checkpoints, groups that are made again."""

from __future__ import annotations

from contextlib import nullcontext

import flambeau as torch
from flambeau import nn
from flambeau.autograd.graph import saved_tensors_hooks
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
