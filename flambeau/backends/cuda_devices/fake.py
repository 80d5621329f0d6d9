"""A fake device: its memory is the host's, its kernels are the host's, its rules are those of a GPU.

- Memory comes from the caching allocator. The host's addresses that stand for it are filled with a pattern, so that
  host code that reads them past `DeviceArray` computes nonsense.
- A launch returns before it counts as done: its error is raised when the host synchronizes, and by every call after
  that. Kernels run at once, in the order of launches.
- What one stream may see of another is checked: each launch notes which memory it reads and writes, and a launch of
  another stream that was not made to wait (by an event, or by the host) raises `StreamRaceError`.
- Events have the host's clock.
"""

from __future__ import annotations

import ctypes
import threading
import time
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np

from ...codegen.gpu.kernel_ir import Kernel
from ...kernels.memory_format import is_dense
from ..numpy.memory import address, owner
from . import emulated
from .array import DeviceArray, device_array
from .captured_launches import CapturedLaunches
from .emulated import memory_of
from .errors import StreamRaceError, device_error
from .runtime import AddressTable, Place, Product, Properties, Runtime

_PATTERN = 0xA5
_INVALIDATED = "operation failed due to a previous error during capture"


class HostMemory:
    """Memory of a fake device."""

    __slots__ = ("address", "data", "device")

    def __init__(self, device: int, size: int) -> None:
        self.device, self.data = device, np.full(size, _PATTERN, np.uint8)
        self.address = address(self.data)


class _Clock(dict[int, int]):
    """For each stream the number of its last launch that is known to be done."""

    def join(self, other: dict[int, int]) -> None:
        for stream, number in other.items():
            if self.get(stream, 0) < number:
                self[stream] = number

    def covers(self, stream: int, number: int) -> bool:
        return self.get(stream, 0) >= number


class _Point:
    """A recorded event."""

    __slots__ = ("clock", "device", "seconds", "stream")

    def __init__(self, device: int, stream: int, clock: _Clock) -> None:
        self.device, self.stream, self.clock = device, stream, clock
        self.seconds = time.perf_counter()


class FakeRuntime(Runtime):
    """Fake CUDA devices.

    Args:
        count: the number of devices.
        memory: the bytes of each.
        processors: the multiprocessors of each, on which the random numbers of large tensors depend.
        name: of the devices.
    """

    computes_on_host = True
    #: whether generated kernels are searched for races, which takes several times as long
    checks_kernels = False

    def __init__(self, count: int = 1, memory: int = 1 << 30, processors: int = 108,
                 name: str = "flambeau fake device") -> None:
        super().__init__(count)
        self._memory, self._processors, self._name = memory, processors, name
        self._used = [0] * count
        self._lock = threading.RLock()
        self._clocks: dict[int, _Clock] = {}  # of streams: what their next launch waits for
        self._host: dict[int, _Clock] = {}  # of threads: what they have synchronized with
        self._numbers: dict[int, int] = {}
        self._streams: dict[int, int] = {}  # stream -> device
        self._capturing: dict[int, CapturedLaunches] = {}
        self._default = [self._add_stream(i) for i in range(count)]

    # ----- devices -----

    def properties(self, device: int) -> Properties:
        """The properties of a device: those of an A100, but memory and processors."""
        self.check_index(device)
        return Properties(self._name, 8, 0, self._memory, self._processors,
                          uuid=f"00000000-0000-0000-0000-{device:012d}")

    # ----- memory -----

    def malloc(self, device: int, size: int) -> HostMemory:
        """Memory of a device.

        Raises:
            MemoryError: it has not as many bytes left.
        """
        if self._used[device] + size > self._memory:
            raise MemoryError
        self._used[device] += size
        return HostMemory(device, size)

    def foreign(self, device: int, address: int, nbytes: int) -> Any:
        """Memory that another library has allocated: the host's."""
        whole: Any = (ctypes.c_uint8 * nbytes).from_address(address) if nbytes else b""
        data = np.frombuffer(whole, np.uint8)
        return SimpleNamespace(device=device, data=data, address=address)

    def release(self, memory: HostMemory) -> None:
        """Give memory back."""
        self._used[memory.device] -= memory.data.size

    def memory_info(self, device: int) -> tuple[int, int]:
        """(free bytes, all bytes) of a device."""
        return self._memory - self._used[device], self._memory

    def stand_in(self, addresses: np.ndarray) -> None:
        """Fill the addresses that stand for a block with a pattern."""
        addresses.fill(_PATTERN)

    def operand(self, array: DeviceArray) -> np.ndarray:
        """A device's elements, for a kernel."""
        memory = array.memory
        if memory.segment is None:
            return np.ndarray(array.shape, array.dtype)
        # an array that owns its memory, as far as `owner` can see: offsets are those in the block
        block = np.frombuffer(memory.segment.data.data[memory.offset:memory.offset + memory.nbytes], np.uint8)
        return np.ndarray(array.shape, array.dtype, block, array.byte_offset, array.strides)

    def copy_from_host(self, target: DeviceArray, source: np.ndarray, blocking: bool) -> None:
        """Copy from the host to a device; `blocking`: wait until that is done."""
        device = target.torch_device.index
        self.launch("Memcpy HtoD", device, (), (target,), lambda: np.copyto(self.operand(target), source))
        if blocking:
            self.synchronize(device, self.stream_id(device))

    def copy_to_host(self, target: np.ndarray, source: DeviceArray, blocking: bool) -> None:
        """Copy from a device to the host; `blocking`: wait until that is done."""
        device = source.torch_device.index
        self.launch("Memcpy DtoH", device, (source,), (), lambda: np.copyto(target, self.operand(source)))
        if blocking:
            self.synchronize(device, self.stream_id(device))

    def copy_between(self, target: DeviceArray, source: DeviceArray) -> None:
        """Copy between devices, on the current streams of both, each of which waits for the other."""
        here, there = source.torch_device.index, target.torch_device.index
        if here != there:
            self.wait_event(here, self.stream_id(here), self.record_event(there, self.stream_id(there)))
        self.launch("Memcpy DtoD", here, (source,), (target,),
                    lambda: np.copyto(self.operand(target), self.operand(source)))
        if here != there:
            self.wait_event(there, self.stream_id(there), self.record_event(here, self.stream_id(here)))

    def adopt(self, results: Sequence[Any], device: int, operands: Sequence[DeviceArray]) -> list[Any]:
        """Results of a kernel as arrays on its device: views of operands, or memory of their own."""
        ranges = []
        for each in operands:
            memory = each.memory
            if memory.segment is not None:
                ranges.append((memory.segment.address + memory.offset, memory, each))
        wholes: dict[int, DeviceArray] = {}
        adopted: list[Any] = []
        for result in results:
            array = np.asarray(result)
            begin = address(array)
            found = next(((at, memory, each) for at, memory, each in ranges
                          if array.size and at <= begin < at + memory.nbytes), None)
            if found is not None:
                at, _, each = found
                base: Any = each
                while isinstance(base.base, np.ndarray):
                    base = base.base
                adopted.append(np.ndarray.__new__(DeviceArray, array.shape, array.dtype, base, begin - at,
                                                  array.strides))
                continue
            if array.size and not is_dense(array):
                source = owner(array)
                if source.flags.forc and source.nbytes <= 4 * array.nbytes + 4096:
                    whole = wholes.get(id(source))
                    if whole is None:
                        flat = source.reshape(-1, order="A").view(np.uint8)
                        whole = wholes[id(source)] = device_array(self.allocate(device, flat.size), flat.shape,
                                                                  flat.dtype)
                        np.copyto(self.operand(whole), flat)
                    adopted.append(np.ndarray.__new__(DeviceArray, array.shape, array.dtype, _base(whole),
                                                      begin - address(source), array.strides))
                    continue
            strides = array.strides if array.size and is_dense(array) else None
            new = self.empty(device, array.shape, array.dtype, strides)
            np.copyto(self.operand(new), array)
            adopted.append(new)
        captured = self._capturing.get(self.stream_id(device))
        if captured is not None:
            captured.adopt(adopted, {id(each.memory) for each in operands})
        return adopted

    # ----- streams -----

    def _add_stream(self, device: int) -> int:
        stream = len(self._streams)
        self._streams[stream], self._clocks[stream], self._numbers[stream] = device, _Clock(), 0
        return stream

    def new_stream(self, device: int, priority: int) -> int:
        """A stream of a device."""
        with self._lock:
            return self._add_stream(device)

    def stream_id(self, device: int) -> int:
        """The current stream on a device, under its number among all streams of all devices."""
        return self.current_stream(device) or self._default[device]

    def _its(self, device: int, stream: int) -> int:
        return stream or self._default[device]

    def _of_host(self) -> _Clock:
        return self._host.setdefault(threading.get_ident(), _Clock())

    def synchronize(self, device: int, stream: int | None = None) -> None:
        """Wait for a stream, or for all streams of a device.

        Raises:
            AcceleratorError: a launch has failed.
        """
        host = self._of_host()
        for each, its in self._streams.items():
            if its == device and (stream is None or each == self._its(device, stream)):
                if each in self._capturing:
                    self._capturing[each].valid = False
                    raise device_error("operation not permitted when stream is capturing")
                host.join(self._clocks[each])
        self.meet_error(device)

    def is_idle(self, device: int, stream: int) -> bool:
        """Whether a stream has nothing left to do. Whoever asks a second time is told that it has not."""
        return self._happens(self._clocks[self._its(device, stream)], device)

    def _happens(self, clock: _Clock, device: int) -> bool:
        host = self._of_host()
        done = all(host.covers(*each) for each in clock.items())
        host.join(clock)  # a device that is asked goes on meanwhile
        if done:
            self.meet_error(device)
        return done

    def record_event(self, device: int, stream: int) -> _Point:
        """A point in time on a stream."""
        return _Point(device, stream, _Clock(self._clocks[self._its(device, stream)]))

    def wait_event(self, device: int, stream: int, point: _Point) -> None:
        """Let the further launches of a stream wait for a point in time."""
        self._clocks[self._its(device, stream)].join(point.clock)

    def synchronize_event(self, point: _Point) -> None:
        """Wait for a point in time."""
        self._of_host().join(point.clock)
        self.meet_error(point.device)

    def has_happened(self, point: _Point) -> bool:
        """Whether a point in time has passed. Whoever asks a second time is told that it has."""
        return self._happens(point.clock, point.device)

    def elapsed(self, first: _Point, last: _Point) -> float:
        """The milliseconds between two points in time."""
        return (last.seconds - first.seconds) * 1e3

    # ----- launches -----

    def launch(self, name: str, device: int, reads: Sequence[DeviceArray], writes: Sequence[DeviceArray],
               kernel: Callable[[], Any]) -> Any:
        """Run a kernel on the current stream of a device; what it returns.

        Raises:
            StreamRaceError: another stream writes what it reads, or uses what it writes, and neither waits.
        """
        self.check(device)
        stream = self.stream_id(device)
        captured = self._capturing.get(stream)
        if captured is not None:
            if not captured.valid:
                raise device_error(_INVALIDATED)
            return captured.record(name, reads, writes, kernel)
        with self._lock:
            clock = self._clocks[stream]
            clock.join(self._of_host())
            number = self._numbers[stream] = self._numbers[stream] + 1
            for each in reads:
                self._note(name, stream, number, clock, each, False)
            for each in writes:
                self._note(name, stream, number, clock, each, True)
            clock[stream] = number
        return kernel()

    def begin_capture(self, device: int, stream: int, replayed_on: int | None = None) -> None:
        """Record the launches of a stream from now on: what they write is undone."""
        its = self._its(device, stream)
        if its == self._default[device]:
            raise device_error("operation not permitted when stream is capturing")
        self._capturing[its] = CapturedLaunches(self.operand)

    def end_capture(self, device: int, stream: int) -> CapturedLaunches:
        """End the recording of a stream; the memory of results is filled with a pattern until they are replayed.

        Raises:
            AcceleratorError: the stream was synchronized meanwhile.
        """
        captured = self._capturing.pop(self._its(device, stream))
        if not captured.valid:
            raise device_error(_INVALIDATED)
        for array in captured.results():
            memory_of(array.memory).fill(_PATTERN)
        return captured

    def describe(self, graph: CapturedLaunches) -> str:
        """Recorded launches, one after the other, in Graphviz's language."""
        nodes = [f'"{i} {each.name}"' for i, each in enumerate(graph.launches)]
        return f"digraph graph_1 {{\n{' -> '.join(nodes)}\n}}\n"

    def is_capturing(self, device: int, stream: int) -> bool:
        """Whether the launches of a stream are recorded."""
        return self._its(device, stream) in self._capturing

    def replay(self, device: int, stream: int, graph: CapturedLaunches) -> None:
        """Run recorded launches on a stream."""
        before = self.current_stream(device)
        self.set_stream(device, stream)
        try:
            for each in graph.launches:
                self.launch(each.name, device, each.reads, [*each.writes, *each.adopted], each.run)
        finally:
            self.set_stream(device, before)

    def timed(self, name: str, device: int, reads: Sequence[DeviceArray], writes: Sequence[DeviceArray],
              kernel: Callable[[], Any]) -> tuple[Any, int]:
        """`launch`, and the nanoseconds that the kernel took on the host."""
        begin = time.perf_counter_ns()
        result = self.launch(name, device, reads, writes, kernel)
        return result, time.perf_counter_ns() - begin

    def _note(self, name: str, stream: int, number: int, clock: _Clock, array: DeviceArray, writes: bool) -> None:
        accesses = array.memory.accesses
        earlier = [] if accesses.write is None else [(*accesses.write, "wrote")]
        if writes:
            earlier += [(*each, "reads") for each in accesses.reads.items()]
        for other, other_number, what in earlier:
            if other != stream and not clock.covers(other, other_number):
                raise StreamRaceError(
                    f"stream {stream} launches '{name}', which {'writes' if writes else 'reads'} memory that stream "
                    f"{other} {what}, and does not wait for it. Let it wait: stream.wait_stream(other) or "
                    "stream.wait_event(event); for memory that is freed while another stream uses it: "
                    "tensor.record_stream(stream)")
        if writes:
            accesses.write = stream, number
            accesses.reads.clear()
        else:
            accesses.reads[stream] = max(number, accesses.reads.get(stream, 0))

    def number_of(self, device: int, stream: int) -> int:
        """The number of a stream among the streams of all devices."""
        return self._its(device, stream)

    def run_kernel(self, kernel: Kernel, grid: tuple[int, int, int], places: Sequence[Place | AddressTable],
                   scalars: Sequence[Any]) -> None:
        """Run a generated kernel on the emulator."""
        emulated.run_kernel(kernel, grid, places, scalars, self.checks_kernels)

    def multiply(self, product: Product) -> None:
        """Compute a batch of matrix products by NumPy."""
        emulated.multiply(product)

    def wrote(self, device: int, arrays: Sequence[DeviceArray]) -> None:
        """Note that the last launch wrote new arrays, which are its results."""
        stream = self.stream_id(device)
        for each in arrays:
            accesses = each.memory.accesses
            accesses.write = stream, self._numbers[stream]
            accesses.reads.clear()


def _base(array: Any) -> Any:
    while isinstance(array.base, np.ndarray):
        array = array.base
    return array


__all__ = ["FakeRuntime"]
