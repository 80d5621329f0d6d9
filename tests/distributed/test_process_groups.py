"""Stores, transports and process groups in the threads of one process: values, bytes, timeouts, departures."""

from __future__ import annotations

import gc
import threading
from datetime import timedelta

import numpy as np
import pytest

import flambeau as torch
from flambeau import distributed as dist
from flambeau.c10d.stores.store import Store

SHORT = timedelta(milliseconds=60)


def run_ranks(size, body, *, make=dist.ProcessGroupGloo, timeout=timedelta(seconds=20)):
    """`body(group, rank)` of each rank in its own thread; what they return or raise."""
    store, results = dist.HashStore(), [None] * size

    def run(rank):
        try:
            results[rank] = body(make(store, rank, size, timeout), rank)
        except Exception as error:
            results[rank] = error

    threads = [threading.Thread(target=run, args=(rank,)) for rank in range(size)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
        assert not thread.is_alive()
    for each in results:
        if isinstance(each, AssertionError):
            raise each
    return results


# ----- stores ------------------------------------------------------------------------------


@pytest.fixture(params=["hash", "file", "tcp", "prefix", "client"])
def store(request, tmp_path):
    if request.param == "hash":
        yield dist.HashStore()
    elif request.param == "file":
        yield dist.FileStore(str(tmp_path / "store"), 1)
    elif request.param == "prefix":
        yield dist.PrefixStore("part", dist.HashStore())
    else:
        master = dist.TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
        yield master if request.param == "tcp" else dist.TCPStore("127.0.0.1", master.port, wait_for_workers=False)


def test_store_operations(store):
    store.set_timeout(SHORT)
    assert store.timeout == SHORT
    store.set("a", "1")
    store.set("b", b"\x00\xff")
    assert (store.get("a"), store.get("b")) == (b"1", b"\x00\xff")
    assert (store.add("c", 3), store.add("c", -1), store.get("c"), store.add("a", 5)) == (3, 2, b"2", 6)
    assert store.check(["a", "b"])
    assert not store.check(["a", "none"])
    assert store.compare_set("k", "x", "y") == b"x"
    assert not store.check(["k"])
    assert (store.compare_set("k", "", "y"), store.compare_set("k", "z", "w"), store.compare_set("k", "y", "w")) == (
        b"y", b"y", b"w")
    store.append("k", "++")
    store.append("new", "+")
    assert store.multi_get(["k", "new"]) == [b"w++", b"+"]
    store.multi_set(["m", "n"], ["1", "2"])
    assert store.multi_get(["m", "n"]) == [b"1", b"2"]
    count = store.num_keys()
    assert store.delete_key("a")
    assert not store.check(["a"])
    assert store.num_keys() == count - 1
    store.wait(["b", "c"], SHORT)
    assert store.has_extended_api()
    assert {"b", "c", "k"} <= set(store.list_keys())
    store.barrier("all", 1, SHORT)
    store.clone().set("cloned", "yes")
    assert store.get("cloned") == b"yes"
    with pytest.raises(ValueError, match="stoll"):
        store.add("b", 1)
    with pytest.raises(TypeError, match="incompatible function arguments"):
        store.set(1, 2)


def test_store_timeouts(store):
    store.set_timeout(SHORT)
    error = RuntimeError if isinstance(store, dist.FileStore) else dist.DistStoreError
    text = {"FileStore": "Timeout waiting for key: x after 60 ms", "TCPStore": "wait timeout after 60ms, keys: /x"}.get(
        type(store).__name__, "Wait timeout")
    with pytest.raises(error, match=text):
        store.get("x")
    with pytest.raises(error, match=r"wait timeout after 20ms, keys: /x, /y" if isinstance(store, dist.TCPStore)
                       else "Wait timeout"):
        store.wait(["x", "y"], timedelta(milliseconds=20))


def test_store_waits_for_another_thread(store):
    other = threading.Timer(0.05, store.clone().set, ("late", "1"))
    other.start()
    assert store.get("late") == b"1"
    other.join()  # the answer to its request, before the store ends


def test_queues():
    for each in (dist.HashStore(), dist.TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)):
        each.set_timeout(SHORT)
        each.queue_push("q", "1")
        assert (each.queue_len("q"), each.queue_pop("q"), each.queue_len("q")) == (1, b"1", 0)
        with pytest.raises(dist.QueueEmptyError, match="queue is empty"):
            each.queue_pop("q", False)
        with pytest.raises(dist.DistStoreError):
            each.queue_pop("q")


def test_stores_of_programs():
    class Own(Store):
        def __init__(self):
            super().__init__()
            self.values = {}

        def set(self, key, value):
            self.values[key] = value

        def get(self, key):
            return self.values[key]

    own = Own()
    part = dist.PrefixStore("p", own)
    part.set("a", "b")
    assert own.values == {"p/a": b"b"}
    assert part.get("a") == b"b"
    assert own.timeout == timedelta(seconds=300)
    with pytest.raises(RuntimeError, match=r'Tried to call pure virtual function "::c10d::Store::add"'):
        own.add("a", 1)


def test_file_store_ends_with_its_last_process(tmp_path):
    path = tmp_path / "store"
    stores = [dist.FileStore(str(path), 2) for _ in range(2)]
    stores[0].set("a", "1")
    assert stores[1].get("a") == b"1"
    stores.pop()
    gc.collect()
    assert path.exists()
    stores.clear()
    gc.collect()
    assert not path.exists()


def test_tcp_store_errors():
    master = dist.TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
    assert repr(master).startswith("TCPStore(client=TCPClient(SocketImpl(fd=")
    with pytest.raises(dist.DistNetworkError,
                       match=r"has failed to listen .* name: EADDRINUSE, message: address already"):
        dist.TCPStore("127.0.0.1", master.port, is_master=True)
    with pytest.raises(dist.DistNetworkError,
                       match=r"has timed out after 60ms while trying to connect to \(127.0.0.1, 1\)"):
        dist.TCPStore("127.0.0.1", 1, timeout=SHORT)
    with pytest.raises(dist.DistStoreError, match=r"waiting for clients. 1/2 clients joined"):
        dist.TCPStore("127.0.0.1", 0, 2, True, SHORT)
    with pytest.raises(dist.DistStoreError, match="multiSet keys and values vectors must be of same size"):
        master.multi_set(["a"], ["1", "2"])
    worker = dist.TCPStore("127.0.0.1", master.port, timeout=timedelta(seconds=5))
    master._server._service.close()
    with pytest.raises(dist.DistNetworkError):
        worker.get("a")


def test_rendezvous(tmp_path, monkeypatch):
    found = next(dist.rendezvous(f"file://{tmp_path}/store?rank=1&world_size=3"))
    assert found[1:] == (1, 3)
    for name, value in {"RANK": "0", "WORLD_SIZE": "1", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "0"}.items():
        with pytest.raises(ValueError, match=f"environment variable {name} expected, but not set"):
            next(dist.rendezvous("env://"))
        monkeypatch.setenv(name, value)
    store, rank, size = next(dist.rendezvous("env://"))
    assert isinstance(store, dist.TCPStore)
    assert (rank, size) == (0, 1)
    with pytest.raises(RuntimeError, match="No rendezvous handler for foo://"):
        dist.rendezvous("foo://x")
    with pytest.raises(ValueError, match="tcp:// rendezvous: rank parameter missing"):
        next(dist.rendezvous("tcp://127.0.0.1:1"))


# ----- bytes and bits ----------------------------------------------------------------------


@pytest.mark.parametrize("size", [2, 3, 4])
def test_bytes_sent_equal_the_theory(size):
    n = 12_000 * size  # elements of 4 bytes, divisible by the number of ranks

    def body(group, rank):
        sent = {}

        def count(name, start):
            before = group.bytes_sent
            start().wait()
            sent[name] = group.bytes_sent - before

        x, parts = torch.ones(n), torch.zeros(n // size)
        count("all_reduce", lambda: group.allreduce(x))
        count("reduce_scatter", lambda: group._reduce_scatter_base(parts, x))
        count("all_gather", lambda: group._allgather_base(x, parts))
        count("all_to_all", lambda: group.alltoall_base(torch.zeros(n), x, [], []))
        count("broadcast", lambda: group.broadcast(x, root=0))
        count("gather", lambda: group.gather([[torch.zeros(n) for _ in range(size)]] if rank == 0 else [], [x], root=0))
        return sent

    results = run_ranks(size, body)
    whole, share = 4 * n, (size - 1) / size
    for sent in results:
        assert sent["all_reduce"] == 2 * share * whole
        assert sent["reduce_scatter"] == sent["all_gather"] == sent["all_to_all"] == share * whole
    assert sum(sent["broadcast"] for sent in results) == sum(sent["gather"] for sent in results) == (size - 1) * whole


@pytest.mark.parametrize("count", [1, 7, 5000, 600_000])
def test_all_ranks_get_the_same_bits(count):
    values = [np.random.default_rng(rank).standard_normal(count).astype(np.float32) for rank in range(3)]

    def body(group, rank):
        x = torch.tensor(values[rank])
        group.allreduce(x).wait()
        return x.numpy()

    results = run_ranks(3, body)
    assert results[0].tobytes() == results[1].tobytes() == results[2].tobytes()
    np.testing.assert_allclose(results[0], sum(values), rtol=1e-4, atol=1e-5)


def test_writes_go_to_views_and_count():
    def body(group, rank):
        x = torch.arange(6.) + rank
        version = x._version
        group.allreduce(x[::2]).wait()
        assert x.tolist() == [1., 1. + rank, 5., 3. + rank, 9., 5. + rank]
        assert x._version > version
        z = torch.complex(torch.ones(2), torch.arange(2.)).conj()
        group.allreduce(z).wait()
        return z.tolist()

    assert run_ranks(2, body) == [[2, 2 - 2j]] * 2


# ----- what goes wrong ---------------------------------------------------------------------


def test_a_missing_rank_is_named():
    store = dist.HashStore()
    with pytest.raises(dist.DistStoreError, match="Wait timeout: ranks 1, 2 have not joined the process group"):
        dist.ProcessGroupGloo(store, 0, 3, SHORT)

    seen = threading.Event()

    def body(group, rank):
        if rank == 1:
            seen.wait(20)
            return
        group._set_default_timeout(timedelta(milliseconds=100))
        with pytest.raises(RuntimeError, match=r"Timed out waiting 100ms .* nothing came from rank 1"):
            group.allreduce(torch.ones(2)).wait()
        with pytest.raises(RuntimeError, match=r"\[Rank 0\]: Rank 1 failed to pass monitoredBarrier in 60 ms"):
            group.monitored_barrier(SHORT)
        with pytest.raises(RuntimeError, match=r"\[Rank 0\]: Ranks 1 failed to pass monitoredBarrier in 60 ms"):
            group.monitored_barrier(SHORT, wait_all_ranks=True)
        seen.set()

    assert run_ranks(2, body) == [None, None]


def test_a_rank_that_leaves_is_named():
    def body(group, rank):
        if rank == 1:
            group.barrier().wait()
            group.shutdown()
            return
        group.barrier().wait()
        with pytest.raises(RuntimeError, match="Connection closed by peer: rank 1 has left"):
            for _ in range(50):  # the connection's end arrives a moment later
                group.allreduce(torch.ones(2)).wait()

    for each in run_ranks(2, body):
        assert each is None


def test_differing_shapes_are_an_error():
    def body(group, rank):
        with pytest.raises(RuntimeError, match="the tensors of the ranks differ in shape or dtype"):
            group.allreduce(torch.ones(2 + rank)).wait()

    run_ranks(2, body)


def test_works_run_in_the_order_they_were_started():
    def body(group, rank):
        tensors = [torch.full((2000,), float(i)) for i in range(20)]
        works = [group.allreduce(each) for each in tensors]
        assert all(work.wait() and work.is_completed() and work.is_success() for work in works)
        doubled = works[0].get_future().then(  # once all are done: each rank runs the callback at the same place
            lambda done: group.allreduce([torch.ones(1)]).wait() and done.value()[0] * 2)
        assert works[3].exception() is None
        assert works[3].result()[0] is tensors[3]
        assert doubled.wait()[0] == 0
        with pytest.raises(RuntimeError, match="sourceRank"):
            works[0].source_rank()
        return [each[0].item() for each in tensors]

    assert run_ranks(2, body) == [[2. * i for i in range(20)]] * 2


# ----- the default group of one process -----------------------------------------------------


@pytest.fixture
def world():
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    yield dist.group.WORLD
    if dist.is_initialized():
        dist.destroy_process_group()


def test_default_group(world):
    assert dist.is_initialized()
    assert dist.get_rank() == 0
    assert dist.get_backend() == "gloo"
    assert dist.get_backend_config() == "cpu:gloo,cuda:gloo"
    assert world.group_desc == "default_pg"
    with pytest.raises(ValueError, match="trying to initialize the default process group twice!"):
        dist.init_process_group("gloo")
    group = dist.new_group([0])
    assert dist.get_process_group_ranks(group) == [0]
    dist.destroy_process_group(group)
    with pytest.raises(ValueError, match="is not registered"):
        dist.get_rank(group)
    dist.destroy_process_group()
    with pytest.raises(ValueError, match="Default process group has not been initialized"):
        dist.get_rank()


@pytest.mark.parametrize(("backend", "error", "text"), [
    ("nccl", RuntimeError, "Distributed package doesn't have NCCL built in"),
    ("foo", AssertionError, "Unknown backend type foo")])
def test_backends_that_are_not_there(backend, error, text):
    with pytest.raises(error, match=text):
        dist.init_process_group(backend, store=dist.HashStore(), rank=0, world_size=1)
    assert not dist.is_initialized()


def test_backends_of_programs(world):
    class Doubling(dist.ProcessGroup):
        def allreduce(self, tensors, opts=None):
            tensors[0].mul_(2)
            work = dist.Work()
            work._finish(tensors)
            return work

        def shutdown(self):
            pass

    dist.Backend.register_backend("doubling", lambda store, rank, size, timeout: Doubling(rank, size), devices="cpu")
    try:
        group = dist.new_group(backend="doubling")
        x = torch.ones(2)
        dist.all_reduce(x, group=group)
        assert x.tolist() == [2, 2]
        assert dist.get_backend(group) == "doubling"
    finally:
        del dist.Backend.DOUBLING
        dist.Backend.backend_list.remove("doubling")
        for table in (dist.Backend.backend_capability, dist.Backend.backend_type_map):
            table.pop("doubling")
        dist.Backend._plugins.pop("DOUBLING")


def test_collectives_outside_of_a_group_warn(world):
    outside = dist.GroupMember.NON_GROUP_MEMBER
    with pytest.warns(UserWarning,
                      match="Running all_reduce on global rank 0 which does not belong to the given group"):
        dist.all_reduce(torch.ones(2), group=outside)
    assert dist.get_rank(outside) == dist.get_world_size(outside) == -1


def test_reductions_are_reported_in_order(world):
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.Linear(3, 1)),
                                                      bucket_cap_mb=0.00001)
    for _ in range(3):
        model(torch.ones(2, 3)).sum().backward()
    assert [number for number, _, _ in sorted(model.reducer.timeline, key=lambda each: each[1])] == list(
        range(len(model.reducer.buckets)))
    data = model._get_ddp_logging_data()
    assert (data["has_rebuilt_buckets"], data["iteration"]) == (1, 2)
    assert data["num_buckets_reduced"] == len(model.reducer.buckets)


def test_every_pass_of_a_number_is_sampled(world):
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(3, 1))
    with pytest.raises(ValueError, match="sample rate should be equal or greater than 1"):
        model._set_ddp_runtime_logging_sample_rate(0)
    model._set_ddp_runtime_logging_sample_rate(4)
    seen = []
    for _ in range(18):
        model(torch.ones(2, 3)).sum().backward()
        seen.append(model._get_ddp_logging_data()["iteration"])
    assert seen == [*range(11), 10, 12, 12, 12, 12, 16, 16]
    data = model._get_ddp_logging_data()
    order = data["rebuilt_per_bucket_param_indices"].split()
    assert data["prev_iteration_grad_ready_order_indices"].split(", ") == order
    assert (data["dtypes"], data["rebuilt_bucket_sizes"], data["unused_parameter_size"]) == ("float", "16", 0)
    starts = [data[f"{part}_time_start"] for part in ("forward_compute", "backward_compute", "backward_comm")]
    assert starts == sorted(starts)
    assert data["backward_comm_time"] == data["backward_comm_time_end"] - data["backward_comm_time_start"] > 0
    for part in ("forward_compute", "backward_compute", "backward_comm"):
        assert data[f"avg_{part}_time"] > 0
    assert data["avg_backward_compute_comm_overlap_time"] <= data["avg_backward_comm_time"]


def test_cores_are_divided_between_the_processes_of_a_machine(monkeypatch):
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        monkeypatch.delenv(name, raising=False)
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(6)
        monkeypatch.setenv("LOCAL_WORLD_SIZE", "2")
        dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
        assert torch.get_num_threads() == 3
    finally:
        torch.set_num_threads(before)
        dist.destroy_process_group()


def test_names_of_the_extension():
    assert torch._C._distributed_c10d.ProcessGroup is dist.ProcessGroup
    assert dist.tensor.DeviceMesh is dist.DeviceMesh


def test_torchrun_options():
    from flambeau.distributed import run

    options = run.parse_args(["--nnodes", "1:2", "--nproc_per_node=3", "--max-restarts", "2", "-m", "pkg.main", "--lr",
                              "1"])
    assert (options.nnodes, options.nproc_per_node, options.max_restarts, options.module, options.training_script) == (
        "1:2", "3", 2, True, "pkg.main")
    assert options.training_script_args == ["--lr", "1"]
    assert run.parse_min_max_nnodes("1:2") == (1, 2)
    assert run.determine_local_world_size("3") == 3
    with pytest.raises(ValueError, match="Unsupported nproc_per_node value: many"):
        run.determine_local_world_size("many")


def test_torchrun_restarts_and_names_the_rank_that_failed(tmp_path, capfd):
    from flambeau.distributed import run
    from flambeau.distributed.elastic.multiprocessing.errors import ChildFailedError

    program = tmp_path / "program.sh"
    program.write_text('echo "$RANK of $WORLD_SIZE, attempt $TORCHELASTIC_RESTART_COUNT"\n'
                       'if [ $RANK = 1 ]; then exit 3; fi\nsleep 30\n')
    with pytest.raises(ChildFailedError) as caught:
        run.main(["--standalone", "--nproc-per-node", "2", "--max-restarts", "1", "--monitor-interval", "0.02",
                  "--no-python",
                  "sh", str(program)])
    number, first = caught.value.get_first_failure()
    assert (number, first.local_rank, first.exitcode) == (1, 1, 3)
    assert "exitcode  : -15" in str(caught.value)
    assert "sh FAILED" in str(caught.value)
    said = capfd.readouterr()
    assert {"1 of 2, attempt 0", "1 of 2, attempt 1"} <= set(said.out.splitlines())
    assert "restart 1 of 1" in said.err


@pytest.mark.parametrize(("ignored", "buffers", "sent"), [((), True, 7), ((), False, 4), (("0.weight",), False, 3)])
def test_states_of_a_module_are_broadcast(monkeypatch, ignored, buffers, sent):
    from flambeau.distributed import module_states, utils

    calls = []
    monkeypatch.setattr(module_states, "broadcast_coalesced", lambda *args: calls.append(args))
    model = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.BatchNorm1d(3))
    utils._sync_module_states(model, "group", 100, 1, ignored, buffers)
    [(group, states, size, source)] = calls
    assert (group, len(states), size, source) == ("group", sent, 100, 1)
    assert not any(state.requires_grad for state in states)
