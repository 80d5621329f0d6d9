"""GPUs through CuPy: memory, copies, streams, events and launches.

CuPy is the interface to CUDA's runtime and its modules; no array of CuPy's is made. NVIDIA's libraries, and the driver
where CuPy's calls would take too long, are called by ctypes (`libraries`). Generated kernels are PTX (`codegen.gpu`),
loaded as modules. Memory comes from the caching allocator above, not from CuPy's pool.
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from typing import Any

import numpy as np

from ...codegen.gpu.driver.cuda_driver import architecture_of
from ...codegen.gpu.kernel_ir import Kernel
from ...kernels.memory_format import is_dense
from ..numpy.memory import address
from . import libraries, strided_copies
from .array import DeviceArray
from .cublas import Products
from .cublaslt import BiasedProducts
from .cuda_objects import DRIVER, Capture, ForeignStream, GpuMemory, Point
from .cudnn import Cudnn
from .cufft import FourierTransforms
from .cupy_kernels import Kernels
from .cusolver import LinearAlgebra
from .errors import device_error
from .runtime import AddressTable, Place, Product, Properties, Runtime

#: CUDA's cudaErrorMemoryAllocation and cudaErrorNotReady, which CuPy does not name
_OUT_OF_MEMORY, _NOT_READY = 2, 600


class CupyRuntime(Runtime):
    """The GPUs that CUDA sees.

    Args:
        cupy: the module `cupy`.
        load: (name, CUDA's release) -> a library of NVIDIA's, as `libraries.load`.
    """

    arrays_at_addresses = True

    def __init__(self, cupy: Any, load: Callable[[str, int], Any] = libraries.load) -> None:
        self.cupy, self.cuda, self.api, self._load = cupy, cupy.cuda, cupy.cuda.runtime, load
        super().__init__(self.api.getDeviceCount())
        self._lock = threading.RLock()
        self._streams: dict[int, Any] = {}
        self._made = 0
        self._properties = [self._read_properties(i) for i in range(self.count)]
        self._kernels = [Kernels(cupy, architecture_of(each.major, each.minor)) for each in self._properties]
        for each in self.allocators:
            each.is_shared = True
        self._products = Products(self)
        self._biased_products = BiasedProducts(self)
        self._addresses: dict[str, int] = {}
        self._contexts: dict[int, int] = {}
        self.captured: dict[int, Capture] = {}  # by stream, the graph that it is captured for
        self._staged: list[tuple[Any, Any]] = []  # buffers of the host that copies under way read or write, and events

    # ----- devices -----

    def _read_properties(self, device: int) -> Properties:
        found = self.api.getDeviceProperties(device)
        uuid = found["uuid"].ljust(16, b"\0").hex()  # which may end at its first zero
        return Properties(
            found["name"].decode(), found["major"], found["minor"], found["totalGlobalMem"],
            found["multiProcessorCount"], found["maxThreadsPerMultiProcessor"], found["warpSize"],
            found["regsPerMultiprocessor"], found["sharedMemPerBlock"], found["sharedMemPerBlockOptin"],
            found["sharedMemPerMultiprocessor"], found["l2CacheSize"], found["integrated"], found["isMultiGpuBoard"],
            found["maxThreadsPerBlock"], found["pciBusID"], found["pciDeviceID"], found["pciDomainID"],
            "-".join(uuid[i:j] for i, j in ((0, 8), (8, 12), (12, 16), (16, 20), (20, 32))))

    def properties(self, device: int) -> Properties:
        """The properties of a GPU."""
        self.check_index(device)
        return self._properties[device]

    def library(self, name: str) -> Any:
        """A library of NVIDIA's, for ctypes: `libraries.load` of CuPy's release of CUDA.

        Raises:
            OSError: it is not installed.
        """
        return self._load(name, self.api.runtimeGetVersion() // 1000)

    @cached_property
    def fourier(self) -> FourierTransforms:
        """Fourier transforms by cuFFT.

        Raises:
            OSError: it is not installed.
        """
        return FourierTransforms(self)

    @cached_property
    def linear_algebra(self) -> LinearAlgebra:
        """Factorizations and solutions by cuSOLVER and cuBLAS.

        Raises:
            OSError: one of them is not installed.
        """
        return LinearAlgebra(self, self._products)

    @contextmanager
    def _on(self, device: int, stream: int | None = None) -> Iterator[Any]:
        """A block whose CUDA calls concern a device; its stream, which is CuPy's current one within.

        Raises:
            AcceleratorError: a call in it failed, or an earlier launch has.
        """
        its = self._stream(device, self.current_stream(device) if stream is None else stream)
        try:
            with self.cuda.Device(device), its:
                yield its
        except (self.api.CUDARuntimeError, self.cuda.driver.CUDADriverError) as error:
            raise device_error(str(error).partition(": ")[2] or str(error)) from None

    # ----- memory -----

    def malloc(self, device: int, size: int) -> GpuMemory:
        """Memory of a GPU.

        Raises:
            MemoryError: it has not as many bytes left.
        """
        try:
            with self.cuda.Device(device):
                return GpuMemory(device, self.api.malloc(size), size)
        except self.api.CUDARuntimeError as error:
            if error.status == _OUT_OF_MEMORY:
                raise MemoryError from None
            raise device_error(str(error).partition(": ")[2]) from None

    def foreign(self, device: int, address: int, nbytes: int) -> GpuMemory:
        """Memory that another library has allocated."""
        return GpuMemory(device, address, nbytes)

    def release(self, memory: GpuMemory) -> None:
        """Give memory back, after all that uses it."""
        with self.cuda.Device(memory.device):
            self.api.free(memory.address)

    def memory_info(self, device: int) -> tuple[int, int]:
        """(free bytes, all bytes) of a GPU."""
        with self.cuda.Device(device):
            free, total = self.api.memGetInfo()
        return free, total

    def pinned(self, nbytes: int) -> np.ndarray:
        """Page-locked bytes of the host, which are freed with the array."""
        return np.frombuffer(self.cuda.alloc_pinned_memory(max(nbytes, 1)), np.uint8, nbytes)

    def operand(self, array: DeviceArray) -> DeviceArray:
        """The array itself: the host cannot see its elements."""
        return array

    @staticmethod
    def address_of(place: Place) -> int:
        """A place's address on the GPU."""
        memory, offset = place
        return 0 if memory.segment is None else int(memory.segment.address + memory.offset + offset)

    def _at(self, array: DeviceArray) -> int:
        return self.address_of((array.memory, array.byte_offset))

    def copy_from_host(self, target: DeviceArray, source: np.ndarray, blocking: bool) -> None:
        """Copy from the host to a GPU; `blocking`: wait until that is done."""
        if self.current.recording is not None:
            self.current.recording.refuse()
        device = target.torch_device.index
        if not _same_order(target, source):
            dense = self.empty(device, source.shape, source.dtype)
            self.copy_from_host(dense, np.ascontiguousarray(source), blocking)
            self.copy_between(target, dense)
            return
        with self._on(device) as stream:
            if not blocking:  # the caller may write to its memory before the copy has been made
                source = self._kept(source, device)
            self.api.memcpyAsync(self._at(target), address(source), source.nbytes, self.api.memcpyHostToDevice,
                                 stream.ptr)
            if blocking:
                stream.synchronize()
            elif not self.captured:
                with self._lock:
                    self._staged.append((source, stream.record()))

    def _kept(self, source: np.ndarray, device: int) -> np.ndarray:
        """The array, kept until the copy that reads it is done, or with the graph that the copy is part of."""
        captured = self.captured.get(self.current_stream(device))
        if captured is not None:
            source = np.array(source)
            captured.kept.append(source)
        elif not self.captured:
            with self._lock:
                self._staged = [(array, event) for array, event in self._staged if not event.done]
        return source

    def copy_to_host(self, target: np.ndarray, source: DeviceArray, blocking: bool) -> None:
        """Copy from a GPU to the host; `blocking`: wait until that is done."""
        if self.current.recording is not None:
            self.current.recording.refuse()
        device = source.torch_device.index
        if not _same_order(source, target):
            dense = self.empty(device, source.shape, source.dtype)
            self.copy_between(dense, source)
            if target.flags.c_contiguous:
                self.copy_to_host(target, dense, blocking)
            else:
                staged = np.empty(target.shape, target.dtype)
                self.copy_to_host(staged, dense, True)
                target[...] = staged
            return
        with self._on(device) as stream:
            self.api.memcpyAsync(address(target), self._at(source), target.nbytes, self.api.memcpyDeviceToHost,
                                 stream.ptr)
            if blocking:
                stream.synchronize()
        if blocking:
            self.meet_error(device)

    def copy_between(self, target: DeviceArray, source: DeviceArray) -> None:
        """Copy on a GPU, or between two, on the current streams of both, each of which waits for the other."""
        here, there = source.torch_device.index, target.torch_device.index
        if not source.size:
            return
        if here == there and not _same_order(target, source):
            self.launch("copy", here, (source,), (target,), lambda: strided_copies.copy(self, target, source))
            return
        if not _same_order(target, source):
            dense = self.empty(there, source.shape, source.dtype)
            packed = source if source.flags.c_contiguous else self.empty(here, source.shape, source.dtype)
            if packed is not source:
                self.copy_between(packed, source)
            self.copy_between(dense, packed)
            self.copy_between(target, dense)
            return
        if here == there:
            with self._on(here) as stream:
                self.api.memcpyAsync(self._at(target), self._at(source), source.nbytes,
                                     self.api.memcpyDeviceToDevice, stream.ptr)
            if self.current.recording is not None:
                self.current.recording.copy((target.memory, target.byte_offset), (source.memory, source.byte_offset),
                                            source.nbytes)
            return
        self.wait_event(here, self.current_stream(here), self.record_event(there, self.current_stream(there)))
        with self._on(here) as stream:
            self.api.memcpyPeerAsync(self._at(target), there, self._at(source), here, source.nbytes, stream.ptr)
        self.wait_event(there, self.current_stream(there), self.record_event(here, self.current_stream(here)))

    def adopt(self, results: Sequence[Any], device: int, operands: Sequence[DeviceArray]) -> list[Any]:
        """Results of a kernel, those that the host has computed copied to the GPU."""
        return [each if each.__class__ is DeviceArray else self.upload(np.asarray(each), device) for each in results]

    # ----- streams -----

    def _stream(self, device: int, stream: int) -> Any:
        if not stream:
            return self.cuda.Stream.null
        found = self._streams.get(stream)
        if found is None:  # the handle of a stream of another library
            found = self._streams[stream] = self.cuda.Stream.from_external(ForeignStream(stream))
        return found

    def new_stream(self, device: int, priority: int) -> int:
        """A stream of a GPU, which does not wait for the default stream."""
        with self.cuda.Device(device):
            made = self.cuda.Stream(non_blocking=True, priority=priority)
        with self._lock:
            self._made += 1
            number = self._made
            self._streams[number] = made
        return number

    def number_of(self, device: int, stream: int) -> int:
        """The number of a stream among the streams of all devices; negative for default streams."""
        return stream or -1 - device

    def stream_address(self, device: int, stream: int) -> int:
        """The address of CUDA's object."""
        return int(self._stream(device, stream).ptr)

    def synchronize(self, device: int, stream: int | None = None) -> None:
        """Wait for a stream, or for all streams of a GPU.

        Raises:
            AcceleratorError: a launch has failed.
        """
        with self._on(device, stream or 0) as its:
            if stream is None:
                self.api.deviceSynchronize()
            else:
                its.synchronize()
        self.meet_error(device)

    def is_idle(self, device: int, stream: int) -> bool:
        """Whether a stream has nothing left to do."""
        with self._on(device, stream) as its:
            done = self._is_done(self.api.streamQuery(its.ptr))
        if done:
            self.meet_error(device)
        return done

    def _is_done(self, status: int) -> bool:
        """What the status of a query says, of which CuPy raises none."""
        if status in (0, _NOT_READY):
            return not status
        raise self.api.CUDARuntimeError(status)

    def record_event(self, device: int, stream: int) -> Point:
        """A point in time on a stream."""
        with self._on(device, stream) as its:
            return Point(device, its.record(self.cuda.Event()))

    def wait_event(self, device: int, stream: int, point: Point) -> None:
        """Let the further launches of a stream wait for a point in time."""
        with self._on(device, stream) as its:
            its.wait_event(point.event)

    def synchronize_event(self, point: Point) -> None:
        """Wait for a point in time."""
        with self._on(point.device):
            point.event.synchronize()
        self.meet_error(point.device)

    def has_happened(self, point: Point) -> bool:
        """Whether a point in time has passed."""
        with self._on(point.device):
            done = self._is_done(self.api.eventQuery(point.event.ptr))
        if done:
            self.meet_error(point.device)
        return done

    def elapsed(self, first: Point, last: Point) -> float:
        """The milliseconds between two points in time."""
        with self._on(first.device):
            return float(self.cuda.get_elapsed_time(first.event, last.event))

    # ----- launches -----

    def launch(self, name: str, device: int, reads: Sequence[DeviceArray], writes: Sequence[DeviceArray],
               kernel: Callable[[], Any]) -> Any:
        """Call what starts kernels on the current stream of a GPU; what it returns."""
        self.check(device)
        with self._on(device):
            result = kernel()
        if self.blocking:  # CUDA has waited for it
            self.meet_error(device)
        return result

    def timed(self, name: str, device: int, reads: Sequence[DeviceArray], writes: Sequence[DeviceArray],
              kernel: Callable[[], Any]) -> tuple[Any, int]:
        """`launch`, and the nanoseconds that the kernels took by events of the stream."""
        stream = self.current_stream(device)
        first = self.record_event(device, stream)
        result = self.launch(name, device, reads, writes, kernel)
        last = self.record_event(device, stream)
        self.synchronize_event(last)
        return result, round(self.elapsed(first, last) * 1e6)

    def run_kernel(self, kernel: Kernel, grid: tuple[int, int, int], places: Sequence[Place | AddressTable],
                   scalars: Sequence[Any]) -> None:
        """Start a generated kernel on the current stream; within `launch`."""
        device = self.api.getDevice()
        addresses = [self.address_of(self._table(device, each)) if isinstance(each, AddressTable)
                     else self.address_of(each) for each in places]
        self._kernels[device].start(kernel, grid, addresses, scalars)
        recording = self.current.recording
        if recording is not None:
            recording.kernel(kernel, grid, places, scalars, self._kernels[device].handle(kernel))

    def _table(self, device: int, table: AddressTable) -> Place:
        addresses = np.array([self.address_of(each) for each in table.places], np.int64)
        array = self.upload(addresses, device, blocking=False)
        return array.memory, 0

    def multiply(self, product: Product) -> None:
        """Start matrix products on the current stream, by cuBLAS, or with a bias by cuBLASLt; within `launch`."""
        if product.bias is not None:
            self._biased_products.multiply(product)
            return
        self._products.multiply(product)
        if self.current.recording is not None:
            self.current.recording.product(product)

    @cached_property
    def convolutions(self) -> Cudnn | None:
        """cuDNN; None where it is not installed."""
        try:
            return Cudnn(self)
        except OSError:
            return None

    # ----- launch stubs -----

    @cached_property
    def driver(self) -> Any:
        """CUDA's driver: the functions of `DRIVER`."""
        return libraries.functions(self.library("cuda"), DRIVER)

    def function(self, name: str) -> int:
        """The address of a function of CUDA's driver."""
        found = self._addresses.get(name)
        if found is None:
            found = self._addresses[name] = libraries.address(self.driver, name)
        return found

    def context(self, device: int) -> int:
        """The address of a GPU's primary context."""
        found = self._contexts.get(device)
        if found is None:
            current = ctypes.c_void_p()
            with self.cuda.Device(device):
                self.api.free(0)  # which makes the primary context
                self.driver.cuCtxGetCurrent(ctypes.byref(current))
            found = self._contexts[device] = current.value or 0
        return found

    def bind_thread(self, device: int) -> None:
        """Give this thread a context of CUDA's, without which the driver launches nothing."""
        self.driver.cuCtxSetCurrent(self.context(device))
        self.current.bound = True

    def describe_error(self, status: int) -> str:
        """The driver's text of an error."""
        text = ctypes.c_char_p()
        if self.driver.cuGetErrorString(status, ctypes.byref(text)) or text.value is None:
            return f"unknown error {status}"
        return text.value.decode()

    def product_call(self, product: Product) -> tuple[int, list[Any]]:
        """The address of cuBLAS's function for a product, and its arguments: None for the handle, places, numbers."""
        return self._products.call(product)

    def product_handle(self, device: int) -> int:
        """This thread's handle of cuBLAS's, set to the current stream."""
        return self._products.handle(device)

    # ----- graphs -----

    def begin_capture(self, device: int, stream: int, replayed_on: int | None = None) -> None:
        """Record the launches of a stream from now on instead of running them."""
        with self._on(device, stream) as its:
            if not stream:
                raise device_error("operation not permitted when stream is capturing")
            its.begin_capture(self.api.streamCaptureModeRelaxed)
        self.captured[stream] = Capture(replayed_on)

    def end_capture(self, device: int, stream: int) -> Any:
        """End the recording of a stream: a CUDA graph, and the memory that it uses beside its operands'."""
        kept = self.captured.pop(stream).kept
        self._products.end_capture(device)
        with self._on(device, stream) as its:
            graph = its.end_capture()
        return graph, kept

    def is_capturing(self, device: int, stream: int) -> bool:
        """Whether the launches of a stream are recorded."""
        if stream in self.captured:
            return True
        its = self._stream(device, stream)
        return stream > self._made and bool(its.is_capturing())  # another library's

    def describe(self, graph: Any) -> str:
        """A CUDA graph in Graphviz's language."""
        graph = graph[0]
        return str(graph.debug_dot_str())

    def replay(self, device: int, stream: int, graph: Any) -> None:
        """Launch a CUDA graph on a stream."""
        with self._on(device, stream) as its:
            graph[0].launch(its)


def _same_order(a: np.ndarray, b: np.ndarray) -> bool:
    """Whether two arrays of one shape are dense and have their elements in the same order."""
    if a.flags.c_contiguous and b.flags.c_contiguous:
        return True
    return a.strides == b.strides and is_dense(a)


__all__ = ["CupyRuntime"]
