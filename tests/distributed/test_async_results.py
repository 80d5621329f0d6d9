"""`AsyncCollectiveTensor`: collectives that go on until a result is read."""

from __future__ import annotations

import pytest

import flambeau as torch
from flambeau.distributed import _functional_collectives as collectives
from flambeau.distributed.tensor import DTensor, Replicate, Shard, distribute_tensor

from .ranks import run

dist = torch.distributed


@pytest.fixture
def group():
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    yield dist.group.WORLD
    dist.destroy_process_group()


def test_views_do_not_wait_and_what_reads_does(group):
    x = collectives.all_reduce(torch.arange(4.), "sum", group)
    assert type(x) is collectives.AsyncCollectiveTensor
    view = x.view(2, 2)[0]
    assert type(view) is type(x)
    assert not x.completed
    total = view + 1
    assert type(total) is torch.Tensor
    assert total.tolist() == [1, 2]
    assert view.completed
    assert not x.completed
    assert x.numpy().tolist() == [0, 1, 2, 3]
    assert x.completed
    assert type(collectives.wait_tensor(x)) is torch.Tensor


@pytest.mark.parametrize("call", [
    lambda x, group: collectives.all_gather_tensor(x, 0, group),
    lambda x, group: collectives.reduce_scatter_tensor(x, "sum", 0, group),
    lambda x, group: collectives.all_to_all_single(x, None, None, group),
    lambda x, group: collectives.broadcast(x, 0, group),
    lambda x, group: collectives.permute_tensor(x, [0], group),
    lambda x, group: collectives.all_reduce(x, "max", group),
])
def test_results_are_inputs_of_the_next_collective(group, call):
    x = call(call(torch.arange(4.).reshape(2, 2), group), group)
    assert not x.completed
    assert str(x).startswith("AsyncCollectiveTensor(tensor(")
    assert x.tolist() == [[0, 1], [2, 3]]


def test_gradients_flow_through_the_wait(group):
    x = torch.ones(3, requires_grad=True)
    y = collectives.all_reduce(2 * x, "sum", group)
    assert y.grad_fn is not None
    (y.wait() * y).sum().backward()
    assert type(x.grad) is torch.Tensor
    assert x.grad.tolist() == [8, 8, 8]


def test_modes_see_whole_results(group):
    from flambeau.utils._python_dispatch import TorchDispatchMode

    class Mode(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            return func(*args, **(kwargs or {}))

    with Mode():
        assert type(collectives.all_reduce(torch.ones(2), "sum", group)) is torch.Tensor


def test_results_of_several_processes():
    for rank, report in enumerate(run("async_results", "flambeau", 2)):
        assert report == {
            "late": [[3., 3.], True], "early": False, "second": [rank * 1. + 1] * 2,
            "redistributed": ["AsyncCollectiveTensor", False, [[1., 1.]] * 4, [[2., 2.]] * 4],
            "gradient": [[2., 2.]] * 2}


def test_distributed_tensors_wait_for_their_parts(group):
    mesh = dist.init_device_mesh("cpu", (1,))
    x = distribute_tensor(torch.arange(4.), mesh, [Shard(0)])
    y = x.redistribute(placements=[Replicate()], async_op=True).view(2, 2).view(-1)
    assert isinstance(y, DTensor)
    assert (y + 1).to_local().tolist() == [1, 2, 3, 4]
