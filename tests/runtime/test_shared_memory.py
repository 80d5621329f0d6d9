"""Shared memory: anonymous files and named objects, and who removes them."""

from __future__ import annotations

import gc
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from flambeau.runtime import shared_memory

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="POSIX")


def in_child(run) -> int:
    """The status of a forked child in which `run` returns or raises."""
    pid = os.fork()
    if pid == 0:
        try:
            run()
        except BaseException:
            os._exit(1)
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


@pytest.mark.parametrize("named", [False, True])
def test_children_see_what_is_written(named):
    array = shared_memory.create(100, named)
    assert array.shape == (100,)
    assert not array.any()

    def write():
        array[3] = 7

    assert in_child(write) == 0
    assert array[3] == 7


@pytest.mark.parametrize("size", [0, 1, 4096, 100_000])
def test_a_descriptor_gives_the_same_array(size):
    array = shared_memory.create(size)
    mapping = shared_memory.mapping_of(array)
    assert mapping is not None
    assert (mapping.size, mapping.name) == (size, None)
    assert shared_memory.open_descriptor(mapping.fd, size) is array


def test_the_descriptor_is_closed_with_the_last_view():
    array = shared_memory.create(10)
    fd = shared_memory.mapping_of(array).fd
    view = array[2:5].view(np.int8)
    del array
    gc.collect()
    view[0] = 1
    os.fstat(fd)
    del view
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(fd)


def objects() -> set[str]:
    return {name for name in os.listdir("/dev/shm") if name.startswith(f"torch_{os.getpid()}_")}


@pytest.mark.skipif(not os.path.isdir("/dev/shm"), reason="the system does not list objects")
def test_named_objects_are_unlinked_with_their_last_reference():
    before = objects()
    array = shared_memory.create(10, named=True)
    mapping = shared_memory.mapping_of(array)
    assert shared_memory.open_name(mapping.name, 10) is array
    assert len(objects() - before) == 1
    mapping.add_references(1)  # a message on its way
    del array, mapping
    gc.collect()
    (left,) = objects() - before
    arrived = shared_memory.open_name(f"/{left}", 10)
    shared_memory.mapping_of(arrived).add_references(-1)
    assert in_child(gc.collect) == 0  # an inherited mapping is not counted
    del arrived
    gc.collect()
    assert objects() == before
    with pytest.raises(RuntimeError, match=r"unable to open shared memory object </torch_.*> in read-write mode: No"):
        shared_memory.open_name(f"/{left}", 10)


@pytest.mark.skipif(not os.path.isdir("/dev/shm"), reason="the system does not list objects")
def test_named_objects_do_not_outlive_processes():
    # the module alone starts sooner than the package
    program = ("import importlib.util, os, sys;"
               "spec = importlib.util.spec_from_file_location('shared_memory', sys.argv[1]);"
               "m = importlib.util.module_from_spec(spec); spec.loader.exec_module(m); kept = m.create(10, named=True);"
               "print(m.mapping_of(kept).name, flush=True); {}")
    for end in ("pass", "os.kill(os.getpid(), 9)"):
        done = subprocess.run([sys.executable, "-c", program.format(end), shared_memory.__file__],
                              capture_output=True, text=True, check=False)
        path = Path("/dev/shm" + done.stdout.strip())
        for _ in range(100):  # the tracker of a killed process unlinks it after the process has ended
            if not path.exists():
                break
            time.sleep(0.05)
        assert done.stdout.startswith("/torch_")
        assert not path.exists(), end
        assert ("leaked" in done.stderr) == ("kill" in end)


def test_sizes_that_the_system_refuses():
    with pytest.raises(RuntimeError, match=r"unable to (mmap|allocate)"):
        shared_memory.create(1 << 62)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="opens descriptors by /proc")
def test_descriptors_of_another_process():
    array = shared_memory.create(100)
    fd = shared_memory.mapping_of(array).fd
    file = shared_memory.identity(fd)
    parent, known = os.getpid(), id(array)
    assert shared_memory.open_in_process(parent, fd, file, 100) is array

    def write():
        shared_memory._arrays.clear()
        other = shared_memory.open_in_process(parent, fd, file, 100)
        assert id(other) != known
        other[5] = 9

    assert in_child(write) == 0
    assert array[5] == 9
    with pytest.raises(FileNotFoundError, match="has closed its descriptor"):
        shared_memory.open_in_process(parent, fd, (file[0] + 1, file[1]), 100)
    del array
    gc.collect()
    with pytest.raises(FileNotFoundError):
        shared_memory.open_in_process(parent, fd, file, 100)
    assert shared_memory.has_readable_descriptors(parent)
    assert not shared_memory.has_readable_descriptors(2**22 + 1)  # beyond the largest process number


@pytest.mark.parametrize("named", [False, True])
def test_an_interrupt_while_memory_is_freed_is_not_lost(named, monkeypatch):
    monkeypatch.setattr(shared_memory.Mapping, "release", interrupted(shared_memory.Mapping.release))
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # jobs in the background ignore it
    array = shared_memory.create(100, named)
    fd = shared_memory.mapping_of(array).fd
    try:
        with pytest.raises(KeyboardInterrupt):
            del array
            time.sleep(10)
    finally:
        signal.signal(signal.SIGINT, before)
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(fd)


def interrupted(function):
    """`function`, and a Ctrl-C at its end when it is called for the first time."""
    calls = []

    def call(*args):
        function(*args)
        calls.append(args)
        if len(calls) == 1:
            signal.raise_signal(signal.SIGINT)

    return call
