"""Recordings of what an operator launches: a launch stub that does the same for other arrays of the same layouts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Any

import numpy as np

from ...codegen.gpu.kernel_ir import Kernel
from ...codegen.gpu.launches import VECTOR
from ...codegen.gpu.statements import Buffer
from .allocator import DeviceMemory
from .array import DeviceArray
from .errors import device_error
from .launch_stub import ADDRESS, CONSTANT, STREAM, Call, LaunchFailed, LaunchStub, ResultSpec, Word
from .runtime import Place, Product


class Unrecordable(Exception):
    """What was launched depends on more than the layouts of operands."""


class LaunchRecording:
    """A block in which a runtime's launches of this thread are noted.

    Args:
        runtime: a `CupyRuntime`.
        device: the index of the device.
        keeps: whether launches are kept; else only whether there was anything else.
    """

    def __init__(self, runtime: Any, device: int, keeps: bool = True) -> None:
        self.runtime, self.device, self._keeps = runtime, device, keeps
        self.steps: list[tuple[Any, ...]] = []
        self.refused = False
        self.stub: LaunchStub | None = None  # of the last `launch`
        self._allocated: list[DeviceMemory] = []

    def __enter__(self) -> LaunchRecording:
        self._outer, self.runtime.current.recording = self.runtime.current.recording, self
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
                 ) -> None:
        self.runtime.current.recording = self._outer

    # ----- noted by the runtime -----

    def kernel(self, kernel: Kernel, grid: tuple[int, int, int], places: Sequence[Any], scalars: Sequence[Any],
               handle: int) -> None:
        """Note a generated kernel.

        Args:
            handle: the driver's function.
        """
        if not self._keeps:
            return
        if not all(each.__class__ is tuple for each in places):  # tables of addresses
            self.refused = True
            return
        self.steps.append(("kernel", kernel, grid, list(places), list(scalars), handle))

    def product(self, product: Product) -> None:
        """Note a batch of products."""
        if self._keeps:
            self.steps.append(("product", product))

    def call(self, function: int, arguments: Sequence[Any]) -> None:
        """Note a call of a library's function.

        Args:
            function: its address.
            arguments: numbers, places, and a `Word` for the stream.
        """
        if self._keeps:
            self.steps.append(("call", function, list(arguments)))

    def copy(self, target: Place, source: Place, nbytes: int) -> None:
        """Note a copy of bytes on the device."""
        if self._keeps:
            self.steps.append(("copy", target, source, nbytes))

    def refuse(self) -> None:
        """Note work that other arrays may need otherwise, such as a transfer from the host."""
        self.refused = True

    def allocated(self, memory: DeviceMemory) -> None:
        """Note new memory, which lives as long as the recording so that no other block has its address."""
        if self._keeps:
            self._allocated.append(memory)

    # ----- made of it -----

    def launch(self, operands: Sequence[DeviceArray], results: Sequence[DeviceArray], allocates: bool = False
               ) -> Callable[..., Any]:
        """A function of arrays that launches the same on the current stream; an array, or a tuple of several.

        Args:
            operands: the arrays that were launched on, of which the function takes others.
            results: the new arrays.
            allocates: whether nothing but the allocation of the results may be all that was done.

        Raises:
            Unrecordable: what was launched cannot be repeated so.
        """
        if self.refused or not (self.steps or allocates):
            raise Unrecordable
        layout = _Layout(self, operands, results)
        words = [self._call(step, layout) for step in self.steps]
        calls: list[Call] = [each for each in words if each is not None]
        if self.runtime.count > 1:
            calls.insert(0, Call(self.runtime.function("cuCtxSetCurrent"), [
                Word(CONSTANT, self.runtime.context(self.device))]))
        products = any(step[0] == "product" for step in self.steps)
        specs = [ResultSpec(each.shape, each.dtype, each.strides) for each in results]
        aligned = any(_wants_alignment(step) for step in self.steps)
        stub = LaunchStub(calls, specs, bool(layout.scratch) + products, layout.constants, len(operands), aligned)
        self.stub = stub
        return _launcher(self.runtime, self.device, stub, [each.memory.nbytes for each in results], layout, products)

    def _call(self, step: tuple[Any, ...], layout: _Layout) -> Call:
        kind = step[0]
        if kind == "kernel":
            _, kernel, grid, places, scalars, handle = step
            words = [Word(CONSTANT, handle), *(Word(CONSTANT, n) for n in grid), Word(CONSTANT, kernel.threads),
                     Word(CONSTANT, 1), Word(CONSTANT, 1), Word(CONSTANT, kernel.shared), Word(STREAM)]
            buffers, numbers = iter(places), iter(scalars)
            for parameter in kernel.parameters:
                if isinstance(parameter, Buffer):
                    words.append(layout.word(next(buffers)))
                else:
                    raw = np.zeros(8, np.uint8)
                    value = np.array(next(numbers), parameter.dtype)
                    raw[:value.nbytes] = np.frombuffer(value.tobytes(), np.uint8)
                    words.append(Word(CONSTANT, int(raw.view(np.uint64)[0])))
            return Call(self.runtime.function("cuLaunchKernel"), words, True)
        if kind == "copy":
            _, target, source, nbytes = step
            return Call(self.runtime.function("cuMemcpyDtoDAsync_v2"), [
                layout.word(target), layout.word(source), Word(CONSTANT, nbytes), Word(STREAM)])
        if kind == "call":
            return Call(step[1], [each if each.__class__ is Word else Word(CONSTANT, each) if each.__class__ is int
                                  else layout.word(each) for each in step[2]])
        function, arguments = self.runtime.product_call(step[1])
        return Call(function, [layout.handle() if each is None else Word(CONSTANT, each) if each.__class__ is int
                               else layout.word(each) for each in arguments])


class _Layout:
    """Where a recording's addresses are in a stub's table: results, scratch memory, a handle, operands, others."""

    def __init__(self, recording: LaunchRecording, operands: Sequence[DeviceArray], results: Sequence[DeviceArray]
                 ) -> None:
        self._entries: dict[int, tuple[int, int]] = {}  # by id of the memory: the entry, and an offset
        self.constants: list[int] = []
        self.kept: list[Any] = []
        self._products = any(step[0] == "product" for step in recording.steps)
        self._results = len(results)
        self.scratch = 0
        given = {id(each.memory): each for each in operands}
        made = [id(each.memory) for each in results]
        if given.keys() & set(made) or len(set(made)) < len(made) or len(given) < len(set(map(id, operands))):
            raise Unrecordable  # a result is a view of an operand, or different operands share memory
        temporary = []
        for memory in recording._allocated:
            if memory.nbytes and id(memory) not in made:
                temporary.append(memory)
        for number, each in enumerate(results):
            if each.byte_offset:
                raise Unrecordable
            self._entries[id(each.memory)] = number, 0
        for memory in temporary:
            self._entries[id(memory)] = self._results, self.scratch
            self.scratch += -(-memory.nbytes // 512) * 512
        self._handle = self._results + (1 if self.scratch else 0)
        self._first = self._handle + self._products
        for number, each in enumerate(operands):
            self._entries[id(each.memory)] = self._first + number, -each.byte_offset
        self._last = self._first + len(operands)

    def handle(self) -> Word:
        """The word of cuBLAS's handle."""
        return Word(ADDRESS, 0, self._handle)

    def word(self, place: Place) -> Word:
        """The word of an address."""
        memory, offset = place
        found = self._entries.get(id(memory))
        if found is None:
            if memory.segment is None:
                return Word(CONSTANT, 0)
            self.kept.append(memory)  # a constant of the program: it stays
            self.constants.append(memory.address)
            found = self._entries[id(memory)] = self._last + len(self.constants) - 1, 0
        return Word(ADDRESS, found[1] + offset, found[0])


def _wants_alignment(step: tuple[Any, ...]) -> bool:
    places = step[3] if step[0] == "kernel" else [each for each in step[2] if each.__class__ is tuple] if (
        step[0] == "call") else []
    return bool(places) and all((memory.address + offset) % VECTOR == 0 for memory, offset in places)


def _launcher(runtime: Any, device: int, stub: LaunchStub, sizes: Sequence[int], layout: _Layout, products: bool
              ) -> Callable[..., Any]:
    """The function of arrays that allocates and enters a stub."""
    enter, allocate, current, pools = stub.enter, runtime.allocators[device].allocate, runtime.current, runtime.pools
    scratch, failed, kept = layout.scratch, runtime._found, (stub, layout.kept)

    def begin() -> tuple[int, int]:
        """The number of the stream, and of the pool that memory comes from."""
        if not current.bound:
            runtime.bind_thread(device)
        if failed[device]:
            runtime.check(device)
        stream = current.streams.get(device, 0)
        return stream, pools.get((device, stream), stream) if pools else stream

    def fail() -> Any:
        return _error(runtime, kept[0].status, products)

    if len(sizes) == 1 and not scratch and not products:
        size, = sizes

        def launch_one(*arrays: DeviceArray) -> Any:
            stream, pool = begin()
            memory = allocate(size, pool)
            try:
                return enter(runtime.stream_address(device, stream) if stream else 0, memory.address, memory, *arrays)
            except LaunchFailed:
                raise fail() from None

        return launch_one

    def launch(*arrays: DeviceArray) -> Any:
        stream, pool = begin()
        memories = [allocate(size, pool) for size in sizes]
        more: list[int] = []
        temporary = None
        if scratch:
            temporary = allocate(scratch, pool)
            more.append(temporary.address)
        if products:
            more.append(runtime.product_handle(device))
        try:
            return enter(runtime.stream_address(device, stream) if stream else 0, *[each.address for each in memories],
                         *more, *memories, *arrays)
        except LaunchFailed:
            raise fail() from None

    return launch


def _error(runtime: Any, status: int, products: bool) -> Exception:
    return device_error(runtime.describe_error(status)) if not products else RuntimeError(
        f"CUDA error: status {status} of a launch with a product by cuBLAS")


__all__ = ["LaunchRecording", "Unrecordable"]
