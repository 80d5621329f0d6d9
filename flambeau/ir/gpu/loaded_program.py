"""Device programs on a runtime's devices: their constants in the device's memory, and launches on a stream."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from itertools import groupby
from time import perf_counter_ns
from typing import Any, NamedTuple

import numpy as np

from ...backends.cuda_devices.array import DeviceArray, device_array
from ...backends.cuda_devices.convolutions import ConvolutionOperands
from ...backends.cuda_devices.launch_recording import LaunchRecording, Unrecordable
from ...backends.cuda_devices.runtime import Product
from ...codegen.gpu.launches import VECTOR
from ..schedule.program import KernelCallback
from .device_program import BoundLaunch, DeviceProgram
from .library_convolutions import ConvolutionLaunch
from .library_products import ProductLaunch

#: launches from which on a CUDA graph is worth its capture; graphs that a program keeps
_FEWEST, _MOST_GRAPHS = 2, 8
#: launches from which on a graph is captured when addresses come for the first time, if others came before
_MANY = 100
#: the most launches of a stub; more are a graph
_MOST_CALLS = 12
#: instead of a graph or a stub: there is none yet
_SEEN = object()


class _Fixed(NamedTuple):
    """A block of memory that a graph uses without keeping it from being freed: whoever replays it has the memory."""

    device: Any
    segment: Any
    offset: int
    nbytes: int


class LoadedProgram:
    """A program that runs on one device.

    Args:
        program: it.
        runtime: the runtime (`backends.cuda_devices.runtime`).
        device: the device's index.
        name: of its launches.
    """

    def __init__(self, program: DeviceProgram, runtime: Any, device: int, name: str = "program") -> None:
        self.program, self.runtime, self.device, self.name = program, runtime, device, name
        self._graphs: dict[Any, Any] = {}  # by stream and addresses of the table, the latest last
        self._stream: int | None = None
        self._stub: Any = _SEEN if not runtime.computes_on_host and not program.guards and (
            0 < len(program.launches) <= _MOST_CALLS) else None
        self._constants = [runtime.constant(np.ascontiguousarray(each), device) for each in program.plan.constants]
        self._overwritten = [program.plan.inputs.index(each.overwrites.attrs) for each in program.schedule.targets
                             if each.overwrites is not None]

    def run(self, inputs: Sequence[DeviceArray], outputs: Sequence[DeviceArray] | None = None,
            callback: KernelCallback | None = None) -> list[DeviceArray] | None:
        """Launch the program on the device's current stream: the new arrays, or None where a data guard fails.

        The host waits for data guards only.

        Args:
            inputs: arrays in the order of `plan.inputs`, dense or spanning the input's memory.
            outputs: arrays to write, instead of new ones.
            callback: called for each kernel, with times by the device's clock; the host then waits for each.
        """
        plan, runtime, device = self.program.plan, self.runtime, self.device
        results = [runtime.empty(device, shape, dtype) for shape, dtype in plan.output_specs] if outputs is None else (
            list(outputs))
        arena = device_array(runtime.allocate(device, plan.arena), (plan.arena,), np.dtype(np.uint8))
        table = [(each.memory, each.byte_offset) for each in (*inputs, *results, arena, *self._constants)]
        written = {id(inputs[number]) for number in self._overwritten}
        reads = [each for each in inputs if id(each) not in written]
        writes = [*(each for each in inputs if id(each) in written), *results, arena]
        guarded = self.program.guarded
        if self.program.guards:
            self._launch(self.program.launches[:guarded], table, reads, writes, callback)
            if not self._guards_hold(table):
                return None
        else:
            guarded = 0
        self._launch(self.program.launches[guarded:], table, reads, writes, callback)
        return results

    def run_again(self, inputs: Sequence[DeviceArray]) -> Sequence[DeviceArray]:
        """`run` of a program without data guards: by a launch stub from the second time on, if it has few launches."""
        stub = self._stub
        if stub is not None and self.runtime.current.recording is None:
            if stub is not _SEEN:
                found = stub(*inputs)
                if found is not None:  # which an array that is not aligned as those before gives
                    return () if found is True else found if len(self.program.plan.output_specs) > 1 else (found,)
            else:
                return self._record(inputs)
        results = self.run(inputs)
        assert results is not None
        return results

    def _record(self, inputs: Sequence[DeviceArray]) -> Sequence[DeviceArray]:
        """Run the program, and make the stub of what it launches."""
        self._stub = None
        with LaunchRecording(self.runtime, self.device) as recording:
            results = self.run(inputs)
        assert results is not None
        with contextlib.suppress(Unrecordable):
            self._stub = recording.launch(inputs, results)
        return results

    def _launch(self, launches: Sequence[BoundLaunch], table: Sequence[Any], reads: Sequence[DeviceArray],
                writes: Sequence[DeviceArray], callback: KernelCallback | None) -> None:
        if callback is not None:
            for kernel, group in [(key, [*each]) for key, each in groupby(launches, lambda each: each.kernel)]:
                start = perf_counter_ns()
                _, nanoseconds = self.runtime.timed(self.name, self.device, reads, writes,
                                                    lambda group=group: self._start(group, table))
                callback(kernel, start, start + nanoseconds)
        elif len(launches) < _FEWEST or self.runtime.current.recording is not None or self.runtime.is_capturing(
                self.device, self.runtime.current_stream(self.device)):
            if launches:
                self.runtime.launch(self.name, self.device, reads, writes, lambda: self._start(launches, table))
        else:
            self._launch_graph(launches, table, reads, writes)

    def _launch_graph(self, launches: Sequence[BoundLaunch], table: Sequence[Any], reads: Sequence[DeviceArray],
                      writes: Sequence[DeviceArray]) -> None:
        """Launch a CUDA graph of the launches, captured when addresses come again; of many, when others came before."""
        runtime, device = self.runtime, self.device
        stream = runtime.current_stream(device)
        key = (len(launches), stream, *[
            0 if memory.segment is None else memory.segment.address + memory.offset + offset
            for memory, offset in table])
        graph = self._graphs.pop(key, None)
        if graph is None and len(launches) >= _MANY and self._graphs:
            graph = _SEEN  # the capture takes as long as the launches, whose kernels are loaded
        if graph is None:
            graph = _SEEN
            runtime.launch(self.name, device, reads, writes, lambda: self._start(launches, table))
        else:
            if graph is _SEEN:
                graph = self._capture(launches, [
                    (_Fixed(memory.device, memory.segment, memory.offset, memory.nbytes), offset)
                    for memory, offset in table])
            runtime.launch(self.name, device, reads, writes, lambda: runtime.replay(device, stream, graph))
        self._graphs[key] = graph
        if len(self._graphs) > _MOST_GRAPHS:
            del self._graphs[next(iter(self._graphs))]

    def _capture(self, launches: Sequence[BoundLaunch], table: Sequence[Any]) -> Any:
        """Capture the launches on a stream of their own: nothing is run or allocated."""
        runtime, device = self.runtime, self.device
        before = runtime.current_stream(device)
        stream = runtime.new_stream(device, 0) if self._stream is None else self._stream
        self._stream = stream
        runtime.begin_capture(device, stream, before)
        runtime.set_stream(device, stream)
        try:
            runtime.launch(self.name, device, (), (), lambda: self._start(launches, table))
        finally:
            runtime.set_stream(device, before)
            graph = runtime.end_capture(device, stream)
        return graph

    def _start(self, launches: Sequence[BoundLaunch], table: Sequence[Any]) -> None:
        for bound in launches:
            chosen = bound.launch
            places = [(table[entry][0], table[entry][1] + offset) for entry, offset in bound.operands]
            if isinstance(chosen, ProductLaunch):
                out, a, b = (places[each] for each in (chosen.out, chosen.a, chosen.b))
                self.runtime.multiply(Product(a, b, out, chosen.dtype, chosen.m, chosen.n, chosen.k,
                                              chosen.transposed, chosen.rows, chosen.steps, chosen.batch,
                                              tf32=chosen.tf32, out=chosen.out_dtype,
                                              bias=None if chosen.bias is None else places[chosen.bias]))
                continue
            if isinstance(chosen, ConvolutionLaunch):
                image, weight, result = (places[each] for each in (chosen.image, chosen.weight, chosen.result))
                self.runtime.convolutions.convolve(self.device, chosen.convolution, ConvolutionOperands(
                    image, weight, result, places[-1]))
                continue
            if chosen.unaligned is not None and any((memory.offset + offset) % VECTOR for memory, offset in places):
                chosen = chosen.unaligned
            self.runtime.run_kernel(chosen.kernel, chosen.grid, [
                (places[each.operand][0], places[each.operand][1] + each.offset) for each in chosen.arguments],
                chosen.scalars)

    def _guards_hold(self, table: Sequence[Any]) -> bool:
        """Read the data guards' values, for which the host waits."""
        for entry, offset, outcome in self.program.guards:
            memory, first = table[entry]
            flag = device_array(memory, (1,), np.dtype(np.uint8), None, first + offset)
            if bool(self.runtime.download(flag)[0]) != outcome:
                return False
        return True


__all__ = ["LoadedProgram"]
