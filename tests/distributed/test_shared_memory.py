"""Messages through shared memory: the same results and bytes as over sockets, room, order, and processes that end."""

from __future__ import annotations

import os
import signal
import threading
from datetime import timedelta

import numpy as np
import pytest

import flambeau as torch
from flambeau import distributed as dist
from flambeau.c10d.transport import segment
from flambeau.c10d.transport.shared_memory_transport import SharedMemoryTransport, share_memory
from flambeau.c10d.transport.socket_transport import SocketTransport
from flambeau.c10d.transport.transport import Deadline

from .test_process_groups import run_ranks

pytestmark = pytest.mark.skipif(not segment.supported(), reason="shared memory needs Linux on x86-64")
LONG = timedelta(seconds=20)


def run_transports(size, body):
    """`body(transport, rank)` of each rank in its own thread; what they return."""
    results = run_ranks(size, body, make=share_memory, timeout=LONG)
    for each in results:
        if isinstance(each, BaseException):
            raise each
    return results


def collectives(group, rank, size, count, dtype):
    """The bytes of the results of all collectives."""
    values = torch.tensor(np.random.default_rng(rank).standard_normal(count * size)).to(dtype)
    out = []
    x = values.clone()
    group.allreduce(x).wait()
    out.append(x)
    x = values.clone()
    group.reduce([x], root=size - 1).wait()
    out.append(x if rank == size - 1 else x * 0)
    x = values.clone()
    group.broadcast([x], root=1).wait()
    out.append(x)
    part = torch.zeros(count, dtype=dtype)
    group._reduce_scatter_base(part, values).wait()
    out.append(part)
    everything = torch.zeros(count * size, dtype=dtype)
    group._allgather_base(everything, part).wait()
    out.append(everything)
    exchanged = torch.zeros(count * size, dtype=dtype)
    group.alltoall_base(exchanged, values, [], []).wait()
    out.append(exchanged)
    group.barrier().wait()
    return [bytes(memoryview(each.view(torch.uint8).numpy()).cast("B")) for each in out], group.bytes_sent


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=["float32", "bfloat16"])
@pytest.mark.parametrize(("size", "count"), [(2, 3), (2, 600_001), (3, 5000), (3, 250_000)])
def test_results_have_the_bits_and_cost_the_bytes_of_sockets(size, count, dtype):
    ours = run_ranks(size, lambda group, rank: collectives(group, rank, size, count, dtype))
    store = dist.HashStore()

    def over_sockets(_, rank):
        transport = SocketTransport(dist.PrefixStore("s", store), rank, size, LONG)
        return collectives(dist.ProcessGroupGloo(store, rank, size, LONG, transport), rank, size, count, dtype)

    theirs = run_ranks(size, over_sockets)
    for (results, _), (expected, _) in zip(ours, theirs, strict=True):
        assert results == expected
    assert sum(sent for _, sent in ours) == sum(sent for _, sent in theirs)


def test_groups_of_one_machine_share_memory():
    def body(group, rank):
        assert isinstance(group._collectives, SharedMemoryTransport)
        assert isinstance(group._transport, SocketTransport)

    assert run_ranks(2, body) == [None, None]


def test_sums_of_views_of_the_input():
    def body(group, rank):
        x = torch.arange(40_000.) + rank
        group._reduce_scatter_base(x[:20_000], x).wait()  # the output is sent, too, at rank 1
        return x[:20_000].tolist()

    assert run_ranks(2, body) == [[2 * i + 1. for i in range(20_000)], [2 * i + 1. for i in range(20_000, 40_000)]]


def test_messages_arrive_in_the_order_of_their_tag():
    deadline = Deadline(20)

    def body(net, rank):
        if rank:
            for i in range(200):  # more than rings have entries
                net.send(0, i % 2, memoryview(bytes([i])), deadline)
            return None
        received = {tag: [] for tag in (1, 0)}
        for tag in received:
            for _ in range(100):
                buffer = bytearray(1)
                assert net.expect(1, tag, memoryview(buffer)).wait(deadline) == 1
                received[tag].append(buffer[0])
        return received

    assert run_transports(2, body)[0] == {1: list(range(1, 200, 2)), 0: list(range(0, 200, 2))}


def test_messages_of_any_rank_and_in_pieces():
    deadline = Deadline(20)
    size = 3 * segment.ARENA // 2  # more than there is room for at once
    content = [np.random.default_rng(rank).integers(0, 256, size, np.uint8) for rank in range(3)]

    def body(net, rank):
        if rank:
            net.send(0, 7, content[rank].data, deadline)
            return 0
        found = []
        for _ in range(2):
            buffer = np.zeros(size, np.uint8)
            sender = net.expect(None, 7, buffer.data).wait(deadline)
            assert np.array_equal(buffer, content[sender])
            found.append(sender)
        return sorted(found)

    assert run_transports(3, body)[0] == [1, 2]


def test_a_receive_from_any_rank_after_the_first_piece():
    deadline = Deadline(20)
    content = np.arange(segment.ARENA // 2, dtype=np.int32).view(np.uint8)

    def body(net, rank):
        if rank:
            net.send(0, 7, content.data, deadline)
            return True
        while not net._inboxes[1].incoming:
            net.receive()
        buffer = np.zeros(content.size, np.uint8)
        assert net.expect(None, 7, buffer.data).wait(deadline) == 1
        return np.array_equal(buffer, content)

    assert run_transports(2, body) == [True, True]


def test_processes_that_send_to_each_other_at_once_find_room():
    deadline = Deadline(20)
    content = bytes(3 * segment.ARENA)

    def body(net, rank):
        peers = [(rank + 1) % 3, (rank + 2) % 3]
        net.multicast(peers, 1, memoryview(content), deadline)  # nobody expects it yet
        for peer in peers:
            net.expect(peer, 1, memoryview(bytearray(len(content)))).wait(deadline)
        return net.bytes_sent

    assert run_transports(3, body) == [2 * len(content)] * 3


def test_borrowed_messages_keep_their_bytes_until_they_are_released():
    deadline, late = Deadline(20), Deadline(0.05)

    def body(net, rank):
        message = bytes([rank]) * (segment.ARENA // 16)
        if rank:
            for _ in range(16):
                net.send(0, 3, memoryview(message), deadline)
            with pytest.raises(RuntimeError, match=r"50ms for send operation .* rank 0 does not rec"):
                net.send(0, 3, memoryview(message), late)
            net.expect(0, 4, memoryview(bytearray(1))).wait(deadline)
            net.send(0, 5, memoryview(message), deadline)
            return
        receipts = [net.borrow(1, 3, len(message)) for _ in range(16)]
        for receipt in receipts:
            receipt.wait(deadline)
        assert all(bytes(receipt.buffer) == b"\1" * len(message) for receipt in receipts)
        threading.Event().wait(0.2)
        for receipt in reversed(receipts):
            receipt.release()
        net.send(1, 4, memoryview(b"\0"), deadline)
        assert net.expect(1, 5, memoryview(bytearray(len(message)))).wait(deadline) == 1

    run_transports(2, body)


def test_a_rank_that_comes_too_late_disturbs_no_later_collective():
    done = threading.Event()

    def body(group, rank):
        if rank == 0:
            group._set_default_timeout(timedelta(milliseconds=50))
            with pytest.raises(RuntimeError, match="nothing came from rank 1"):
                group.allreduce(torch.zeros(5000)).wait()
            group._set_default_timeout(LONG)
            done.set()
        else:
            done.wait(20)
            group._set_default_timeout(timedelta(milliseconds=50))
            with pytest.raises(RuntimeError, match="nothing came from rank 0"):
                group.allreduce(torch.zeros(5000)).wait()
            group._set_default_timeout(LONG)
        results = []
        for _ in range(3):
            x = torch.ones(300_000)
            group.allreduce(x).wait()
            results.append(x.sum().item())
        return results

    assert run_ranks(2, body) == [[600_000.] * 3] * 2


def processes(size, body, tmp_path):
    """`body(group, rank)` of each rank in its own process; their wait statuses, and what their files hold."""
    children = []
    for rank in range(size):
        child = os.fork()
        if not child:
            status = 1
            try:
                store = dist.FileStore(str(tmp_path / "store"), size)
                result = body(dist.ProcessGroupGloo(store, rank, size, LONG), rank)
                (tmp_path / str(rank)).write_text(str(result))
                status = 0
            finally:
                os._exit(status)
        children.append(child)
    statuses = [os.waitpid(child, 0)[1] for child in children]
    return statuses, [path.read_text() if (path := tmp_path / str(rank)).exists() else None for rank in range(size)]


def test_a_process_that_is_killed_is_named(tmp_path):
    def body(group, rank):
        group.barrier().wait()
        if rank == 2:
            os.kill(os.getpid(), signal.SIGKILL)
        x = torch.ones(3_000_000)
        try:
            group.allreduce(x).wait()
        except RuntimeError as error:
            return error

    statuses, texts = processes(3, body, tmp_path)
    assert statuses == [0, 0, signal.SIGKILL]
    expected = "Connection closed by peer: rank {} has left the process group, or its process has ended"
    assert expected.format(2) in texts
    assert set(texts[:2]) <= {expected.format(rank) for rank in range(3)}  # whose error ended it may be named, too


def test_threads_ask_at_the_same_time_whether_a_process_has_ended():
    child = os.fork()
    if not child:
        threading.Event().wait(20)
        os._exit(0)
    process = segment._process(child)
    found, stop = [], threading.Event()

    def ask():
        try:
            while not stop.is_set() and not process.ended():
                pass
        except RuntimeError as error:
            found.append(error)

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    stop.wait(0.2)
    os.kill(child, signal.SIGKILL)
    for thread in threads:
        thread.join(10)  # it has ended, though nobody has waited for it
    stop.set()
    os.waitpid(child, 0)
    assert not found
    assert not any(thread.is_alive() for thread in threads)
    assert segment._process(os.getpid()) is None


def test_no_file_and_no_descriptor_remains(tmp_path):
    before = set(os.listdir("/dev/shm"))

    def body(group, rank):
        group.barrier().wait()
        count = len(os.listdir("/proc/self/fd"))
        assert set(os.listdir("/dev/shm")) == before
        store = dist.FileStore(str(tmp_path / "other"), 2)
        other = dist.ProcessGroupGloo(store, rank, 2, LONG)
        other.allreduce(torch.ones(5000)).wait()
        other.shutdown()
        del other, store
        group.barrier().wait()
        return len(os.listdir("/proc/self/fd")) - count

    statuses, counts = processes(2, body, tmp_path)
    assert statuses == [0, 0]
    assert counts == ["0", "0"]


def test_a_process_that_cannot_share_memory_leaves_sockets_to_all(monkeypatch):
    monkeypatch.setattr(segment.Segment, "attach", lambda *_: (_ for _ in ()).throw(PermissionError("refused")))

    def body(group, rank):
        assert isinstance(group._collectives, SocketTransport)
        x = torch.ones(5000)
        group.allreduce(x).wait()
        return x.sum().item()

    assert run_ranks(2, body) == [10_000., 10_000.]
