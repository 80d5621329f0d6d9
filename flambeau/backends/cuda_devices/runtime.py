"""`Runtime`: what a backend of CUDA devices provides; the part that all of them share.

Every thread has a current device and, for each device, a current stream. Launches go to the current stream of the
device that the operands are on.
"""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from ... import devices
from ...codegen.gpu.kernel_ir import Kernel
from ...kernels.memory_format import is_dense
from .allocator import CachingAllocator, DeviceMemory
from .array import DeviceArray, device_array
from .assertions import Assertions
from .errors import device_error

#: operators that a GPU's kernels find errors of elements in, by assertions, and the texts of the host's errors
_ASSERTING = ("index", "gather", "scatter", "embedding", "nll_loss", "take", "put", "binary_cross_entropy",
              "max_unpool")
_ASSERTED = re.compile(r"[Ii]ndex out of range|is out of bounds(?! for dimension with size 0)|out of range in self|"
                       r"should be between 0 and 1|out of range: tried to access")

#: a block of memory and an offset in bytes
Place = tuple[DeviceMemory, int]


class AddressTable(NamedTuple):
    """An argument of a kernel that is a table of addresses of arrays, all of one dtype."""

    dtype: np.dtype
    places: tuple[Place, ...]


class Product(NamedTuple):
    """A batch of products of row-major matrices, C = alpha A B + beta C.

    Attributes:
        a, b, c: where the first elements are.
        dtype: of the elements.
        m, n, k: A has m rows and k columns, B has n columns.
        transposed: whether A, and whether B, is stored column by column.
        rows: the distances of neighbouring rows of A, B and C (columns, where they are stored so), in elements.
        steps: the distances of neighbouring matrices, in elements.
        batch: the number of matrices.
        tf32: whether float32 factors may be rounded to TF32.
        out: the dtype of C: float32 for narrow factors; None: that of the factors.
        bias: a vector of n elements of the dtype of C, which is added to each row before it is rounded; of one product
            of float32 or narrow matrices, with alpha and beta 1 and 0.
    """

    a: Place
    b: Place
    c: Place
    dtype: np.dtype
    m: int
    n: int
    k: int
    transposed: tuple[bool, bool]
    rows: tuple[int, int, int]
    steps: tuple[int, int, int] = (0, 0, 0)
    batch: int = 1
    alpha: complex = 1.0
    beta: complex = 0.0
    tf32: bool = False
    out: np.dtype | None = None
    bias: Place | None = None


@dataclass(frozen=True)
class Properties:
    """What `torch.cuda.get_device_properties` tells of a device."""

    name: str
    major: int
    minor: int
    total_memory: int
    multi_processor_count: int
    max_threads_per_multi_processor: int = 2048
    warp_size: int = 32
    regs_per_multiprocessor: int = 65536
    shared_memory_per_block: int = 49152
    shared_memory_per_block_optin: int = 166912
    shared_memory_per_multiprocessor: int = 167936
    L2_cache_size: int = 41943040
    is_integrated: int = 0
    is_multi_gpu_board: int = 0
    max_threads_per_block: int = 1024
    pci_bus_id: int = 0
    pci_device_id: int = 0
    pci_domain_id: int = 0
    uuid: str = ""
    gcnArchName: str = ""  # noqa: N815 - PyTorch's name

    def __repr__(self) -> str:
        return (f"_CudaDeviceProperties(name='{self.name}', major={self.major}, minor={self.minor}, total_memory="
                f"{self.total_memory >> 20}MB, multi_processor_count={self.multi_processor_count}, uuid={self.uuid}, "
                f"pci_bus_id={self.pci_bus_id}, pci_device_id={self.pci_device_id}, pci_domain_id="
                f"{self.pci_domain_id}, L2_cache_size={self.L2_cache_size >> 20}MB)")


class _Current(threading.local):
    """The current device of a thread, and its current stream on each device."""

    def __init__(self) -> None:
        self.device = 0
        self.streams: dict[int, int] = {}
        self.recording: Any = None  # the `LaunchRecording` that notes what is launched
        self.bound = False  # whether CUDA has a context for this thread


class Runtime:
    """Devices and what runs on them. A subclass provides memory, copies, streams, events and launches.

    Args:
        count: the number of devices.
    """

    #: whether its kernels are the host's, which compute with views of the device's memory
    computes_on_host = False
    #: whether arrays lie at the device's addresses, so that generated code reads these from array objects
    arrays_at_addresses = False

    #: what computes convolutions by a library (`cudnn.Cudnn`); None: there is none
    convolutions: Any = None

    def __init__(self, count: int) -> None:
        self.count = count
        self.current = _Current()
        #: (device, stream) -> the pool, in place of the stream's own, that memory comes from while it is captured
        self.pools: dict[tuple[int, int], int] = {}
        self._for_constants: dict[int, int] = {}
        self._errors: list[str | None] = [None] * count  # assertions that failed
        self._found = [False] * count  # whether a synchronization has met the error
        self.assertions = Assertions(self.pinned)
        self.blocking = os.environ.get("CUDA_LAUNCH_BLOCKING") == "1"  # whether launches are waited for
        self.allocators = [
            CachingAllocator(devices.cuda(i), partial(self.malloc, i), self.release, partial(self.memory_info, i),
                             self.stand_in, self.arrays_at_addresses) for i in range(count)]

    # ----- devices and streams -----

    def check_index(self, index: int) -> None:
        """Check that there is a device of an index.

        Raises:
            AcceleratorError: there is none (PyTorch's text).
        """
        if not 0 <= index < self.count:
            raise device_error("invalid device ordinal\nGPU device may be out of range, do you have enough GPUs?")

    def current_device(self) -> int:
        """The index of the current device of this thread."""
        return self.current.device

    def set_device(self, index: int) -> None:
        """Make a device the current one of this thread."""
        self.check_index(index)
        self.current.device = index

    def current_stream(self, device: int) -> int:
        """The current stream of this thread on a device; 0 is the default stream."""
        return self.current.streams.get(device, 0)

    def set_stream(self, device: int, stream: int) -> None:
        """Make a stream the current one of this thread on its device."""
        self.current.streams[device] = stream

    # ----- memory -----

    def allocate(self, device: int, nbytes: int) -> DeviceMemory:
        """A block of memory of a device, for its current stream."""
        self.check(device)
        stream = self.current_stream(device)
        memory = self.allocators[device].allocate(nbytes, self.pools.get((device, stream), stream))
        if self.current.recording is not None:
            self.current.recording.allocated(memory)
        return memory

    def constant(self, array: np.ndarray, device: int) -> DeviceArray:
        """A copy of an array on a device that all streams may read; it may be made while a stream is captured."""
        before = self.current_stream(device)
        if device not in self._for_constants:
            self._for_constants[device] = self.new_stream(device, 0)
        self.set_stream(device, self._for_constants[device])
        try:
            return self.upload(array, device)
        finally:
            self.set_stream(device, before)

    def empty(self, device: int, shape: Sequence[int], dtype: np.dtype, strides: Sequence[int] | None = None
              ) -> DeviceArray:
        """A new array on a device; its elements are uninitialised.

        Args:
            strides: in bytes; default: row-major.
        """
        span = dtype.itemsize
        for n, s in zip(shape, strides or (), strict=False):
            span += (n - 1) * s
        count = 1
        for n in shape:
            count *= n
        nbytes = 0 if not count else count * dtype.itemsize if strides is None else span
        return device_array(self.allocate(device, nbytes), shape, dtype, strides)

    def upload(self, array: np.ndarray, device: int, blocking: bool = True) -> DeviceArray:
        """A copy of an array of the host's on a device, with its strides if it is dense."""
        dense = array.flags.c_contiguous or not is_dense(array)
        result = self.empty(device, array.shape, array.dtype, None if dense else array.strides)
        if array.size:
            self.copy_from_host(result, array, blocking)
        return result

    def download(self, array: DeviceArray, blocking: bool = True) -> np.ndarray:
        """A copy of a device's array in the host's memory, with its strides if it is dense."""
        order = array.size and is_dense(array) and not array.flags.c_contiguous
        result = np.empty(array.shape, array.dtype)
        if order:
            axes = sorted(range(array.ndim), key=lambda i: -array.strides[i])
            back = np.argsort(axes)
            result = np.empty([array.shape[i] for i in axes], array.dtype).transpose(back)
        if array.size:
            self.copy_to_host(result, array, blocking)
        return result

    def adopt(self, results: Sequence[Any], device: int, operands: Sequence[DeviceArray]) -> list[Any]:
        """Results of a kernel as arrays on its device: views of operands, or memory of their own."""
        raise NotImplementedError

    def timed(self, name: str, device: int, reads: Sequence[DeviceArray], writes: Sequence[DeviceArray],
              kernel: Callable[[], Any]) -> tuple[Any, int]:
        """`launch`, and the nanoseconds that the kernel took on the device."""
        raise NotImplementedError

    def number_of(self, device: int, stream: int) -> int:
        """The number of a stream among the streams of all devices."""
        return stream

    # ----- what a subclass provides -----

    def run_kernel(self, kernel: Kernel, grid: tuple[int, int, int], places: Sequence[Place | AddressTable],
                   scalars: Sequence[Any]) -> None:
        """Start a generated kernel on the current stream of the device that runs a launch.

        Args:
            kernel: it.
            grid: the number of blocks in three dimensions.
            places: of the kernel's buffers.
            scalars: its other parameters.
        """
        raise NotImplementedError

    def multiply(self, product: Product) -> None:
        """Compute a batch of matrix products on the current stream of the device that runs a launch."""
        raise NotImplementedError

    def begin_capture(self, device: int, stream: int, replayed_on: int | None = None) -> None:
        """Record the launches of a stream from now on instead of running them.

        Args:
            replayed_on: the only stream that will replay them, whose workspaces serve them, too; None: any.
        """
        raise NotImplementedError

    def end_capture(self, device: int, stream: int) -> Any:
        """End the recording of a stream; what was recorded, for `replay`."""
        raise NotImplementedError

    def is_capturing(self, device: int, stream: int) -> bool:
        """Whether the launches of a stream are recorded."""
        return False

    def replay(self, device: int, stream: int, graph: Any) -> None:
        """Run recorded launches on a stream."""
        raise NotImplementedError

    def describe(self, graph: Any) -> str:
        """Recorded launches in Graphviz's language."""
        raise NotImplementedError

    def foreign(self, device: int, address: int, nbytes: int) -> Any:
        """Memory of a device that another library has allocated, as what `malloc` returns."""
        raise NotImplementedError

    def stream_address(self, device: int, stream: int) -> int:
        """The number by which other libraries know a stream."""
        return stream

    def pinned(self, nbytes: int) -> np.ndarray:
        """Bytes of the host that a device copies from and to while the host goes on."""
        return np.empty(nbytes, np.uint8)

    def wrote(self, device: int, arrays: Sequence[DeviceArray]) -> None:
        """Note that the last launch wrote new arrays, which are its results."""

    def is_asserted(self, name: str, error: Exception) -> bool:
        """Whether an error of the host's kernel is one that a GPU's kernel finds by an assertion, after the launch."""
        return any(each in name for each in _ASSERTING) and _ASSERTED.search(str(error)) is not None

    def fail(self, device: int) -> None:
        """Note that a launch failed by an assertion; raised at the next synchronization.

        Raises:
            AcceleratorError: at once, if CUDA_LAUNCH_BLOCKING is set.
        """
        if self._errors[device] is None:
            self._errors[device] = "device-side assert triggered"
        if os.environ.get("CUDA_LAUNCH_BLOCKING") == "1":
            self.meet_error(device)

    def meet_error(self, device: int) -> None:
        """Raise the error of a launch that failed, at a synchronization; from then on `check` raises it, too."""
        error = self._errors[device]
        if error is None and self.assertions.have_failed(device):
            error = self._errors[device] = "device-side assert triggered"
        if error is not None:
            self._found[device] = True
            raise device_error(error)

    def check(self, device: int) -> None:
        """Raise the error of a launch that failed, if a synchronization has found it before."""
        if self._found[device]:
            raise device_error(str(self._errors[device]))

    def stand_in(self, addresses: np.ndarray) -> None:
        """Prepare the host's addresses that stand for a new block of memory."""

    malloc: Callable[[int, int], Any]  # device, bytes -> memory; raises MemoryError
    release: Callable[[Any], None]
    memory_info: Callable[[int], tuple[int, int]]  # device -> (free bytes, all bytes)
    properties: Callable[[int], Properties]
    copy_from_host: Callable[[DeviceArray, np.ndarray, bool], None]
    copy_to_host: Callable[[np.ndarray, DeviceArray, bool], None]
    copy_between: Callable[[DeviceArray, DeviceArray], None]  # target, source, of the same shape and dtype
    launch: Callable[..., Any]
    operand: Callable[[DeviceArray], Any]
    new_stream: Callable[[int, int], int]  # device, priority -> stream
    synchronize: Callable[[int, int | None], None]  # device, stream; None: all of them
    is_idle: Callable[[int, int], bool]  # device, stream
    record_event: Callable[[int, int], Any]  # device, stream -> a point in time on it
    wait_event: Callable[[int, int, Any], None]  # device, stream, the point that its further work waits for
    synchronize_event: Callable[[Any], None]
    has_happened: Callable[[Any], bool]
    elapsed: Callable[[Any, Any], float]  # milliseconds between two points


__all__ = ["AddressTable", "Place", "Product", "Properties", "Runtime"]
