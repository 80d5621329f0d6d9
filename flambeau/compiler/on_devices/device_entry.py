"""Cache entries whose programs run on a device: arrays are `DeviceArray`s, programs launches of GPU kernels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..._tensor.accelerated.convolutions import convolution_library
from ...backends.cuda_devices import current_runtime
from ...backends.cuda_devices.array import DeviceArray
from ...backends.cuda_settings import NAMES
from ...dtypes import NARROW
from ...ir.gpu.runtime_program import RuntimeProgram
from ...ir.graph.target import Target
from ...ir.graph.value import Graph, Unsupported, Value
from ...ir.schedule.program import Program
from ..execution.backward_graph import BackwardGraph
from ..execution.cache_entry import EMPTY, CacheEntry
from ..execution.subgraphs import rebuild
from ..guards.arguments import ArrayLayout
from ..tracing.trace import Trace
from .device_stub import device_stub


def _base_of(array: Any) -> Any:
    """The array that stands for a whole block of memory, of which views are made."""
    while isinstance(array.base, np.ndarray):
        array = array.base
    return array


def _memory_of(array: Any, count: int) -> DeviceArray:
    """So many elements of memory, beginning with an array's first element."""
    return np.ndarray.__new__(DeviceArray, (count,), array.dtype, _base_of(array), array.byte_offset)


class DeviceBackwardGraph(BackwardGraph):
    """The backward program on a device."""

    device = 0

    @staticmethod
    def _partition(gradients: Sequence[Value], of_backward: Sequence[Value]) -> tuple[list[Value], list[Value]]:
        """The values and inputs that backward reads: narrow ones where the forward part widened them.

        Convolutions and products of the backward part then read narrow arrays, too.
        """
        saved, leaves = BackwardGraph._partition(gradients, of_backward)
        kept: dict[Value, None] = {}
        read = dict.fromkeys(leaves)
        for value in saved:
            source = value.args[0].base if value.op == "cast" and value.args[0].dtype in NARROW else value
            (read if source.op == "input" else kept)[source] = None
        return list(kept), list(read)

    def dense_cotangents(self, cotangents: Sequence[Any]) -> list[np.ndarray]:
        """Return the cotangents as row-major arrays of the device, zeros for those that are None."""
        runtime, found = current_runtime(), []
        for g, leaf in zip(cotangents, self.joint.cotangents, strict=True):
            if g is None:
                g = runtime.upload(np.zeros((), leaf.dtype), self.device)
                g = np.broadcast_to(g, leaf.shape, subok=True)
            if not g.flags.c_contiguous:
                dense = runtime.empty(self.device, g.shape, g.dtype)
                runtime.copy_between(dense, g)
                g = dense
            found.append(g)
        return found


class DeviceCacheEntry(CacheEntry):
    """A compiled trace on a device.

    Args:
        trace: the trace.
        name: the name in profiles.
        guards: on Python objects.
        before: another trace that agrees.
        record: of the guards of both.
        device: the device's index.
    """

    def __init__(self, trace: Trace, name: str, guards: Any, before: Trace, record: Any, device: int) -> None:
        self.device, self.name = device, name
        self._host_inputs = {number for number, source in trace.sources.items()
                             if source[0] == "tensor" and source[2].__class__ is not DeviceArray}
        super().__init__(trace, name, guards, before, "", record)

    def make_program(self, graph: Graph, targets: list[Target], conditions: list[tuple[Any, bool]],
                     effects: Sequence[Any], plan_key: str | None) -> Any:
        """Make the program of launches.

        Raises:
            Unsupported: something has no GPU kernel, or an array of the host is computed from the device's.
        """
        of_host = [each for each in targets
                   if each.overwrites is not None and each.overwrites.attrs in self._host_inputs]
        return RuntimeProgram(graph, [each for each in targets if each not in of_host], conditions, effects,
                              current_runtime(), self.device, self.name, bool(NAMES["matmul"].allow_tf32),
                              self._host_program(of_host) if of_host else None,
                              convolution_library(current_runtime(), self.device))

    def stub_for(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The call stub for calls like this one; None before the second replay, and where there is none."""
        if self.call_stub is None:
            if not self.has_run:
                self.has_run = True
                return None
            self.call_stub = (device_stub(self, args, kwargs),)
        return self.call_stub[0]

    def _host_program(self, targets: list[Target]) -> Program:
        """Make the program that writes arrays of the host."""
        graph, rebuilt, stack = Graph(), {}, [each.value for each in targets]
        stack += [each.overwrites for each in targets if each.overwrites is not None]
        while stack:
            value = stack.pop()
            if value.op == "input" and value not in rebuilt:
                if value.attrs not in self._host_inputs:
                    raise Unsupported("an array of the host that is computed from the device's elements")
                rebuilt[value] = graph.input(value.attrs, value.shape, value.dtype)
            stack.extend(value.args)
        return Program(graph, [Target(rebuild(graph, each.value, rebuilt), rebuilt[each.overwrites], each.region)
                               for each in targets if each.overwrites is not None])

    def make_backward(self, joint: Any, name: str, written: Any) -> BackwardGraph:
        """Make the backward program of launches."""
        made = DeviceBackwardGraph(joint, name, written, lambda graph, targets: self.make_program(
            graph, targets, [], [], None))
        made.device = self.device
        made.prepare(self.trace.sources)
        return made

    def input_arrays(self, leaves: Sequence[int], arguments: Sequence[Any], computed: Mapping[int, Any] = EMPTY
                     ) -> list[np.ndarray] | None:
        """Return the arrays of graph inputs; those of the host, numbers, are copied when the program runs."""
        sources = self.trace.sources
        spans = {number: sources[number] for number in leaves if sources[number][0] == "memory of"}
        if not spans:
            return super().input_arrays(leaves, arguments, computed)
        found = super().input_arrays([number for number in leaves if number not in spans], arguments, computed)
        if found is None:
            return None
        rest = iter(found)
        return [_memory_of(arguments[spans[number][1]]._array, spans[number][2]) if number in spans else next(rest)
                for number in leaves]

    def output_array(self, layout: ArrayLayout, new: Sequence[np.ndarray], arguments: Sequence[Any]) -> np.ndarray:
        """Return the array of a layout: a new array of the program, or a view of an input."""
        if layout.array >= 0:
            array: Any = new[layout.array]
        else:
            [array] = self.input_arrays([-1 - layout.array], arguments) or []
        if array.dtype == layout.dtype and array.shape == layout.shape and array.strides == layout.strides and (
                not layout.offset):
            return array
        return np.ndarray.__new__(DeviceArray, layout.shape, layout.dtype, _base_of(array),
                                  array.byte_offset + layout.offset, layout.strides)


__all__ = ["DeviceBackwardGraph", "DeviceCacheEntry"]
