"""Process groups, works, stores and hooks that programs implement, and the objects that they are given."""

from __future__ import annotations

import pickle
from datetime import timedelta

import pytest

import flambeau as torch
from flambeau import distributed as dist
from flambeau.c10d.extension import _create_work_from_future
from flambeau.nn.parallel import DistributedDataParallel


class OwnWork(dist.Work):
    def __init__(self, result, group):
        super().__init__()
        self.own, self.group = torch.futures.Future(), group
        self.own.set_result(result)

    def wait(self, timeout):  # PyTorch passes it
        self.group.waits += 1
        return True

    def get_future(self):
        return self.own


class OwnGroup(dist.ProcessGroup):
    """A group of one process, with the names of PyTorch's groups alone."""

    waits = 0

    def broadcast(self, tensors, opts):
        return OwnWork(tensors, self)

    allreduce = broadcast

    def allgather(self, outputs, inputs, opts):
        for output, source in zip(outputs[0], inputs, strict=True):
            output.copy_(source)
        return OwnWork(outputs, self)

    def all_gather_single(self, output, source, opts):
        output.copy_(source)
        return OwnWork(output, self)

    def getBackendName(self):
        return "own"


def test_training_with_a_programs_group():
    group, layer = OwnGroup(0, 1), torch.nn.Linear(2, 2)
    model = DistributedDataParallel(layer, process_group=group)
    x = torch.ones(3, 2)
    model(x).sum().backward()
    assert layer.weight.grad.tolist() == [[3., 3.], [3., 3.]]
    assert group.waits > 0
    assert (group.name(), model._get_ddp_logging_data()["backend_name"]) == ("own", "own")
    out = torch.zeros(2)
    dist.all_gather_into_tensor(out, torch.ones(2), group=group, async_op=True)
    assert out.tolist() == [1, 1]


def test_work_of_a_future():
    future = torch.futures.Future()
    work = _create_work_from_future(future)
    assert not work.is_completed()
    future.set_result([1])
    assert work.wait()
    assert work.get_future().value() == [1]


def test_barrier_through_a_store():
    from flambeau.distributed.distributed_c10d import _store_based_barrier

    store = dist.HashStore()
    with pytest.raises(dist.DistStoreError, match=r"barrier on rank 0, .*num_workers_joined=1"):
        _store_based_barrier(0, store, "name", 2, timedelta(milliseconds=1))
    _store_based_barrier(1, store, "name", 2, timedelta(seconds=1))


def test_durations_may_be_seconds():
    options = dist.ProcessGroupGloo._Options()
    options._timeout = 5.0
    assert options._timeout == timedelta(seconds=5)
    call = dist.AllreduceOptions()
    call.timeout = 0.5
    assert call.timeout == timedelta(milliseconds=500)


def test_kinds_of_reductions():
    for kind in (dist.ReduceOp.SUM, dist.ReduceOp.MAX):
        made = dist.ReduceOp(kind)
        assert isinstance(kind, dist.ReduceOp)
        assert made == kind
        assert kind != made  # as in PyTorch
        assert kind != "abc"
        assert (pickle.loads(pickle.dumps(kind)), pickle.loads(pickle.dumps(made))) == (kind, made)


class Outputs(dist.Store):
    def __init__(self):
        super().__init__()
        self.calls = []

    def append(self, *given):
        self.calls.append(given)

    multi_set = compare_set = append


def test_stores_of_programs_get_bytes():
    store = Outputs()
    prefixed = dist.PrefixStore("p", store)
    prefixed.append("k", "v")
    prefixed.multi_set(["k"], ["v"])
    prefixed.compare_set("k", "v", "w")
    assert store.calls == [("p/k", b"v"), (["p/k"], [b"v"]), ("p/k", b"v", b"w")]
    with pytest.raises(RuntimeError, match="Not implemented"):
        store.get("k")


@pytest.fixture
def model():
    group = dist.ProcessGroupGloo(dist.HashStore(), 0, 1)
    yield DistributedDataParallel(torch.nn.Linear(2, 2), process_group=group)
    group.shutdown()


def test_results_may_be_dropped(model):
    for _ in range(3):
        model(torch.ones(1, 2))
    for _ in range(2):
        model(torch.ones(1, 2)).sum().backward()


def test_annotations_of_hooks_are_checked(model):
    def wrong_bucket(state: object, bucket: int):
        pass

    def wrong_result(state: object, bucket: dist.GradBucket) -> int:
        pass

    wrong_bucket.__annotations__["bucket"] = int
    wrong_result.__annotations__["return"] = int
    with pytest.raises(ValueError, match=r"bucket annotation should be dist\.GradBucket"):
        model.register_comm_hook(None, wrong_bucket)
    with pytest.raises(ValueError, match="return annotation should be"):
        model.register_comm_hook(None, wrong_result)
    data = model._get_ddp_logging_data()
    assert (data["has_error"], "return annotation" in data["error"]) == (1, True)
    model.register_comm_hook(None, lambda state, bucket: 1)
    with pytest.raises(RuntimeError, match=r"must return a torch\.futures\.Future object, but got int"):
        model(torch.ones(1, 2)).sum().backward()


def test_a_static_graph_is_promised_before_training(model):
    model(torch.ones(1, 2)).sum().backward()
    with pytest.raises(RuntimeError, match="should be called before training loop starts"):
        model._set_static_graph()


def test_buckets_have_one_dtype():
    parameters = [torch.nn.Parameter(torch.ones(2)), torch.nn.Parameter(torch.ones(2, dtype=torch.double))]
    with pytest.raises(RuntimeError, match="same dtype"):
        dist.Reducer(parameters, [[0, 1]], [dist._DEFAULT_FIRST_BUCKET_BYTES],
                     dist.ProcessGroupGloo(dist.HashStore(), 0, 1))


def test_a_group_that_exchanges_nothing():
    from flambeau.c10d.extension import FakeProcessGroup

    group = FakeProcessGroup._create_internal(1, 4)
    x = torch.ones(2)
    assert group.allreduce([x]).wait()
    assert (group.rank(), group.size(), group.name(), x.tolist()) == (1, 4, "fake", [1, 1])
    out = torch.zeros(8)
    group._allgather_base(out, x).wait()
    parts = [torch.zeros(2) for _ in range(4)]
    group.allgather([parts], [x]).wait()
    assert out.tolist() == [1] * 8
    assert torch.stack(parts).sum() == 8


def test_collectives_of_meta_tensors_need_no_group():
    from flambeau.distributed import _functional_collectives as collectives

    assert collectives.all_reduce(torch.empty(2, 3, device="meta"), "sum", "0").shape == (2, 3)


def test_zero_takes_one_dense_type():
    for tensors in ([torch.ones(1), torch.ones(1, dtype=torch.double)], [torch.ones(1).to_sparse()]):
        dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
        try:
            with pytest.raises(ValueError, match="only supports using the same dense type"):
                dist.optim.ZeroRedundancyOptimizer(tensors, torch.optim.SGD, lr=1.)
        finally:
            dist.destroy_process_group()


@pytest.fixture
def world():
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    yield dist.group.WORLD
    dist.destroy_process_group()


def test_options_have_objects_of_reductions():
    options = dist.AllreduceOptions()
    assert options.reduceOp.op is dist.ReduceOp.SUM
    options.reduceOp = dist.ReduceOp.MAX
    assert (options.reduceOp.op, options.reduceOp) == (dist.ReduceOp.MAX, dist.ReduceOp(dist.ReduceOp.MAX))


def test_groups_with_tags(world):
    from flambeau.distributed import _functional_collectives as collectives
    from flambeau.distributed import distributed_c10d as c10d

    first = c10d._new_group_with_tag([0], pg_tag="a")
    assert c10d._new_group_with_tag([0], pg_tag="a") is first
    assert c10d._find_or_create_pg_by_ranks_and_tag("a", [0], 1) is first
    assert c10d._new_group_with_tag([0], pg_tag="b") is not first
    assert collectives._expand_group(first) == ("a", [0], 1)
    assert collectives._expand_group([[0, 1], [2, 3]], "t") == ("t", [0, 1, 2, 3], 2)
    with pytest.raises(ValueError, match="group sizes must be identical found 1 and 2"):
        collectives._expand_group([[0], [1, 2]])
    with pytest.raises(ValueError, match="Cannot automatically create PG"):
        c10d._find_or_create_pg_by_ranks_and_tag("", [0, 1, 2], 3)
    with pytest.raises(AssertionError, match="rankset"):
        c10d._find_or_create_pg_by_ranks_and_tag("a", [1, 2], 2)


def test_collectives_are_asynchronous_events_with_shapes(world):
    with torch.autograd.profiler.profile(record_shapes=True) as profile:
        dist.all_reduce(torch.ones(2, 3))
        dist.all_reduce_coalesced([torch.ones(2), torch.ones(2, dtype=torch.complex64)])
    events = [each for each in profile.function_events if each.name == "gloo:all_reduce"]
    assert [(each.is_async, each.input_shapes) for each in events] == [(True, [[2, 3]]), (True, [[2], [2, 2]])]


def test_monitored_barrier_of_seconds(world):
    with pytest.warns(UserWarning, match="Converting current value of 0.5"):
        dist.monitored_barrier(timeout=0.5)


def test_parts_of_a_placement():
    shard = dist.tensor.Shard(0)
    parts, paddings = shard._split_tensor(torch.arange(5.), 4)
    assert ([each.tolist() for each in parts], paddings) == ([[0, 1], [2, 3], [4, 0], [0, 0]], [0, 0, 1, 2])
    parts, paddings = shard._split_tensor(torch.arange(5.), 4, with_padding=False)
    assert ([each.tolist() for each in parts], paddings) == ([[0, 1], [2, 3], [4], []], [])
    with pytest.raises(AssertionError, match="greater than tensor ndim"):
        dist.tensor.Shard(2)._split_tensor(torch.ones(1), 1)


def test_parameters_of_inference_tensors():
    with torch.inference_mode():
        parameter = torch.nn.Parameter(torch.ones(2, 3))
        assert parameter.is_inference()
        assert parameter.t().is_inference()


def test_results_of_one_process_and_of_all(world):
    from flambeau.distributed import collective_utils

    def failing():
        raise ValueError("reason")

    for group in (None, world):
        assert collective_utils.broadcast(lambda: 3, pg=group) == 3
        assert collective_utils.all_gather(lambda: 4, pg=group) == [4]
        with pytest.raises(RuntimeError, match="Rank 0 failed: stage s: exception reason"):
            collective_utils.broadcast(failing, stage_name="s", pg=group)
        with pytest.raises(RuntimeError, match="reason"):
            collective_utils.all_gather(failing, pg=group)
    with pytest.raises(RuntimeError, match="Rank 0 failed"):
        collective_utils.broadcast(None, success=False)
    with pytest.raises(TypeError, match="Object type at index 0"):
        collective_utils.all_gather_object_enforce_type(world, [None], 1, lambda x, y: False)


def test_lengths_of_parts_may_be_a_tensor(world):
    out = torch.zeros(3)
    dist.all_to_all_single(out, torch.arange(3.), torch.tensor([3]), torch.tensor([3]))
    assert out.tolist() == [0, 1, 2]
