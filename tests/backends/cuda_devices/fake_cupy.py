"""A module `cupy` without a GPU: the part of CuPy that flambeau calls, on memory of the host.

Names and signatures are those of CuPy: `cupy_surface.json`, made from CuPy's sources, has them, and `test_cupy.py`
compares.
PTX is known by its entry points: kernels run on the emulator. A stream runs its work at once, unless it is captured. An
access out of bounds is found by the next call that waits, and by all calls after it, as on a GPU.
"""

from __future__ import annotations

import ctypes
import mmap
import re
import sys
import time
from types import SimpleNamespace
from typing import Any

import numpy as np

from flambeau.codegen.gpu.emulation import emulator
from flambeau.codegen.gpu.emulation.race_detector import OutOfBoundsError
from flambeau.codegen.gpu.statements import Buffer

_MESSAGES = {1: ("cudaErrorInvalidValue", "invalid argument"), 2: ("cudaErrorMemoryAllocation", "out of memory"),
             101: ("cudaErrorInvalidDevice", "invalid device ordinal"),
             600: ("cudaErrorNotReady", "device not ready"),
             700: ("cudaErrorIllegalAddress", "an illegal memory access was encountered"),
             900: ("cudaErrorStreamCaptureUnsupported", "operation not permitted when stream is capturing"),
             901: ("cudaErrorStreamCaptureInvalidated", "operation failed due to a previous error during capture")}


_NORESERVE = 0x4000 if sys.platform == "linux" else 0


def _reserved(size: int) -> int:
    """Addresses without memory, by `mmap` with PROT_NONE."""
    function = ctypes.CDLL(None, use_errno=True).mmap
    function.restype = ctypes.c_void_p
    function.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *(ctypes.c_int,) * 3, ctypes.c_long]
    found: int = function(None, size, 0, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | _NORESERVE, -1, 0)
    assert found != ctypes.c_void_p(-1).value
    return found


class _State:
    """The machine: devices, their memory, and the errors that they have."""

    def __init__(self, count: int, memory: int, kernels: dict[str, Any], capability: tuple[int, int]) -> None:
        self.count, self.capacity, self.kernels, self.capability = count, memory, kernels, capability
        self.device = 0
        self.blocks: dict[int, tuple[int, np.ndarray]] = {}  # address -> device and bytes
        self.pinned: list[np.ndarray] = []  # bytes of the host that kernels may write to
        self.errors = [0] * count
        self.launched: list[tuple[str, tuple[int, ...], tuple[int, ...], int]] = []
        self.products: list[tuple[Any, ...]] = []
        self.attributes: list[tuple[int, int, int]] = []
        self.stream: dict[int, Any] = {}
        self.functions: dict[int, Any] = {}  # loaded kernels by their handles
        self.submit: Any = None
        self.capturing: dict[int, list[Any]] = {}  # streams' addresses -> work
        self.invalidated: set[int] = set()
        self.events: dict[int, Any] = {}
        self.next_address = 16
        self._next = self._left = 0  # of the reserved addresses
        self.asked: set[int] = set()
        self.submit: Any = None  # (stream's address, function): lets a stream do something

    def reserve(self, size: int) -> int:
        """Addresses of the device, which the host cannot read or write: a program that does ends by SIGSEGV."""
        if self._left < size + (2 << 12):
            self._left = max(size + (2 << 12), 1 << 34)
            self._next = _reserved(self._left)
        found, taken = self._next, (size // 4096 + 2) * 4096  # with a page in between
        self._next, self._left = found + taken, self._left - taken
        return found

    def used(self, device: int) -> int:
        return sum(each.size for on, each in self.blocks.values() if on == device)

    def find(self, address: int) -> tuple[int, np.ndarray]:
        """The block of an address, and its first byte."""
        for first, (_, block) in self.blocks.items():
            if first <= address <= first + block.size:
                return first, block
        for block in self.pinned:
            if 0 <= address - block.ctypes.data < block.size:
                return block.ctypes.data, block
        raise OutOfBoundsError(f"no memory at {address}")

    def bytes_at(self, address: int, size: int) -> np.ndarray:
        first, block = self.find(address)
        if address + size > first + block.size:
            raise OutOfBoundsError(f"{size} bytes at {address}")
        return block[address - first:address - first + size]


def fake_cupy(kernels: dict[str, Any], count: int = 1, memory: int = 1 << 30, capability: tuple[int, int] = (8, 0)
              ) -> Any:
    """The module.

    Args:
        kernels: by name, those that PTX may have; more may be added.
        count: the number of devices.
        memory: the bytes of each.
    """
    state = _State(count, memory, kernels, capability)

    class CUDARuntimeError(RuntimeError):
        def __init__(self, status):
            self.status = status
            super().__init__(": ".join(_MESSAGES[status]))

    class CUDADriverError(RuntimeError):
        def __init__(self, status):
            self.status = status
            super().__init__(": ".join(_MESSAGES[status]))

    def check(device=None):
        error = state.errors[state.device if device is None else device]
        if error:
            raise CUDARuntimeError(error)

    def submit(stream, work):
        """Run work at once, or add it to the graph that the stream is captured for."""
        check()
        if stream in state.capturing:
            if stream in state.invalidated:
                raise CUDARuntimeError(901)
            state.capturing[stream].append(work)
            return
        run(work)

    state.submit = submit

    def run(work):
        device = state.device
        try:
            work()
        except OutOfBoundsError:
            state.errors[device] = 700

    state.submit = submit

    def waits(stream=None):
        if state.capturing and (stream is None or stream in state.capturing):
            state.invalidated.update(state.capturing if stream is None else (stream,))
            raise CUDARuntimeError(900)
        check()

    # ----- cupy.cuda.runtime -----

    def runtimeGetVersion():
        return 13020

    def getDeviceCount():
        return state.count

    def getDevice():
        return state.device

    def setDevice(device):
        if not 0 <= device < state.count:
            raise CUDARuntimeError(101)
        state.device = device

    def getDeviceProperties(device):
        return {"name": b"fake GPU", "totalGlobalMem": state.capacity, "sharedMemPerBlock": 49152, "warpSize": 32,
                "maxThreadsPerBlock": 1024, "major": state.capability[0], "minor": state.capability[1],
                "multiProcessorCount": 108, "integrated": 0, "pciBusID": 7, "pciDeviceID": device, "pciDomainID": 0,
                "l2CacheSize": 41943040, "maxThreadsPerMultiProcessor": 2048, "isMultiGpuBoard": 0,
                "sharedMemPerMultiprocessor": 167936, "regsPerMultiprocessor": 65536,
                "sharedMemPerBlockOptin": 166912, "uuid": bytes(range(1, 15))}

    def malloc(size):
        if state.used(state.device) + size > state.capacity:
            raise CUDARuntimeError(2)
        whole = np.full(size + 512, 0xA5, np.uint8)
        aligned = -(-whole.ctypes.data // 512) * 512
        first = state.reserve(size)
        state.blocks[first] = state.device, whole[aligned - whole.ctypes.data:][:size]
        return first

    def free(ptr):
        if ptr:
            del state.blocks[ptr]

    def memGetInfo():
        return state.capacity - state.used(state.device), state.capacity

    def memcpyAsync(dst, src, size, kind, stream):
        def copy():
            to, of = (state.bytes_at(address, size).ctypes.data if on_device else address
                      for address, on_device in ((dst, kind in (1, 3)), (src, kind in (2, 3))))
            ctypes.memmove(to, of, size)

        submit(stream, copy)

    def memcpyPeerAsync(dst, dstDevice, src, srcDevice, size, stream):
        assert state.blocks[state.find(dst)[0]][0] == dstDevice
        assert state.blocks[state.find(src)[0]][0] == srcDevice
        memcpyAsync(dst, src, size, 3, stream)

    def eventQuery(event):
        """A device goes on while it is asked: it is done when it is asked again."""
        if state.errors[state.device]:
            return state.errors[state.device]
        if event in state.asked:
            return 0
        state.asked.add(event)
        return 600

    def streamQuery(stream):
        status = eventQuery(stream)
        if not status:
            state.asked.discard(stream)
        return status

    def deviceSynchronize():
        waits()

    runtime = SimpleNamespace(
        CUDARuntimeError=CUDARuntimeError, runtimeGetVersion=runtimeGetVersion, getDeviceCount=getDeviceCount,
        getDevice=getDevice, setDevice=setDevice,
        getDeviceProperties=getDeviceProperties, malloc=malloc, free=free, memGetInfo=memGetInfo,
        memcpyAsync=memcpyAsync, memcpyPeerAsync=memcpyPeerAsync, deviceSynchronize=deviceSynchronize,
        memcpyHostToDevice=1, memcpyDeviceToHost=2, memcpyDeviceToDevice=3,
        eventQuery=eventQuery, streamQuery=streamQuery, streamCaptureModeRelaxed=2)

    # ----- devices, streams, events, graphs -----

    class Device:
        def __init__(self, device=None):
            self.id = state.device if device is None else int(device)
            self._before: list[int] = []

        def __enter__(self):
            self._before.append(state.device)
            setDevice(self.id)
            return self

        def __exit__(self, *args):
            state.device = self._before.pop()

    class Event:
        def __init__(self, block=False, disable_timing=False, interprocess=False):
            self.ptr, self.seconds = id(self), 0.0

        @property
        def done(self):
            return eventQuery(self.ptr) == 0

        def synchronize(self):
            waits()

    class Graph:
        def __init__(self, *args, **kwargs):
            raise NotImplementedError("currently this class cannot be initiated by the user and must be created via "
                                      "stream capture")

        def debug_dot_str(self, flags=0):
            return "digraph dot {\n}\n"

        def launch(self, stream=None):
            work = list(self._work)
            submit((current_stream() if stream is None else stream).ptr, lambda: [each() for each in work])

    class Stream:
        null: Any = None

        def __init__(self, null=False, non_blocking=False, ptds=False, priority=None):
            self.device_id = -1 if null else state.device
            state.next_address += 16
            self.ptr, self._before = 0 if null else state.next_address, []

        @classmethod
        def from_external(cls, obj):
            version, ptr = obj.__cuda_stream__()
            assert version == 0
            stream = cls()
            stream.ptr, stream.device_id = ptr, -1
            return stream

        def __enter__(self):
            assert self.device_id in (-1, state.device)
            self._before.append(state.stream.get(state.device, Stream.null))
            state.stream[state.device] = self
            return self

        def __exit__(self, *args):
            state.stream[state.device] = self._before.pop()

        @property
        def done(self):
            return streamQuery(self.ptr) == 0

        def synchronize(self):
            waits(self.ptr)

        def record(self, event=None):
            event = Event() if event is None else event
            check()
            event.seconds = time.perf_counter()
            return event

        def wait_event(self, event):
            check()

        def begin_capture(self, mode=None):
            if not self.ptr:
                raise RuntimeError("cannot capture on the default (legacy) stream")
            state.capturing[self.ptr] = []

        def end_capture(self):
            graph = Graph.__new__(Graph)
            graph._work = state.capturing.pop(self.ptr)
            if self.ptr in state.invalidated:
                state.invalidated.discard(self.ptr)
                raise CUDARuntimeError(901)
            return graph

        def is_capturing(self):
            return self.ptr in state.capturing

    Stream.null = Stream(null=True)

    def current_stream():
        return state.stream.get(state.device, Stream.null)

    def get_elapsed_time(start_event, end_event):
        return (end_event.seconds - start_event.seconds) * 1e3

    def alloc_pinned_memory(size):
        bytes_ = bytearray(size)
        state.pinned.append(np.frombuffer(bytes_, np.uint8))
        return memoryview(bytes_)

    # ----- modules and launches -----

    class Function:
        def __init__(self, module, funcname):
            assert funcname in module.entries
            self.module, self.kernel, self.ptr = module, state.kernels[funcname], id(self)
            state.functions[self.ptr] = self

        def __call__(self, grid, block, args, shared_mem=0, stream=None, enable_cooperative_groups=False):
            kernel = self.kernel
            assert block == (kernel.threads, 1, 1)
            assert shared_mem == kernel.shared
            assert len(args) == len(kernel.parameters)
            assert all(1 <= n < limit for n, limit in zip(grid, (1 << 31, 65536, 65536), strict=True))
            arguments = []
            for parameter, value in zip(kernel.parameters, args, strict=True):
                assert isinstance(value, np.generic)  # CuPy passes its bytes
                assert value.dtype.itemsize == (8 if isinstance(parameter, Buffer) else parameter.dtype.itemsize)
                arguments.append(value)
            state.launched.append((kernel.family, grid, block, shared_mem))
            submit((current_stream() if stream is None else stream).ptr, lambda: self._run(grid, arguments))

        def _run(self, grid, values):
            arguments = []
            for parameter, value in zip(self.kernel.parameters, values, strict=True):
                if not isinstance(parameter, Buffer):
                    arguments.append(value)
                elif not value:
                    arguments.append(np.empty(0, parameter.dtype))
                else:
                    first, block = state.find(int(value))
                    size = parameter.dtype.itemsize
                    if (int(value) - first) % size:
                        raise OutOfBoundsError(f"kernel {self.kernel.name}: an address of {parameter.dtype} that is no "
                                               f"multiple of {size}")
                    arguments.append(emulator.View(block[:block.size // size * size].view(parameter.dtype),
                                                   (int(value) - first) // size))
            if any(each.space == "indirect" for each in _buffers(self.kernel)):
                arguments = _tables(self.kernel, arguments)
            emulator.run(self.kernel, grid, arguments, False)

    def _tables(kernel, arguments):
        """Arguments with the arrays that tables of addresses name."""
        found = list(arguments)
        for buffer in _buffers(kernel):
            if buffer.space == "indirect":
                table = arguments[buffer.table.position]
                arrays = []
                for address in table.memory[table.origin:].tolist():
                    try:
                        first, block = state.find(address)
                    except OutOfBoundsError:
                        break
                    data = block[address - first:]
                    arrays.append(data[:data.size // buffer.dtype.itemsize * buffer.dtype.itemsize].view(buffer.dtype))
                found[buffer.table.position] = emulator.Table(arrays)
        return found

    class Module:
        def __init__(self):
            self.entries: list[str] = []

        def load(self, cubin):
            assert isinstance(cubin, bytes)
            self.entries = re.findall(r"\.visible \.entry (\w+)", cubin.decode())

        def get_function(self, name):
            return Function(self, name)

    def funcSetAttribute(f, attribute, value):
        state.attributes.append((f, attribute, value))

    driver = SimpleNamespace(CUDADriverError=CUDADriverError, funcSetAttribute=funcSetAttribute,
                             CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES=8)
    cuda = SimpleNamespace(
        runtime=runtime, driver=driver, Device=Device, Event=Event, Graph=Graph, Stream=Stream,
        Function=Function, Module=Module, get_elapsed_time=get_elapsed_time, alloc_pinned_memory=alloc_pinned_memory,
        is_available=lambda: state.count > 0)
    return SimpleNamespace(cuda=cuda, state=state, libraries={}, __version__="14.2.0")


def _buffers(kernel: Any) -> list[Any]:
    """The buffers that a kernel's statements name."""
    found: dict[int, Any] = {}

    def walk(body: Any) -> None:
        for statement in body:
            buffer = getattr(statement, "buffer", None)
            if buffer is not None:
                found[id(buffer)] = buffer
            for name in ("body", "orelse"):
                walk(getattr(statement, name, None) or ())

    walk(kernel.body)
    return list(found.values())
