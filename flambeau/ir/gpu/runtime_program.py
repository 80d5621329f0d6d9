"""Programs of compiled functions on a device: what `ir.schedule.program.Program` is on the CPU."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...backends.cuda_devices.array import DeviceArray
from ...backends.cuda_devices.convolutions import ConvolutionLibrary
from ...codegen.gpu.launches import VECTOR
from ..graph.target import Target
from ..graph.value import Graph, Value
from ..schedule.program import KernelCallback, Program
from .device_program import DeviceProgram
from .families import GpuFamilies
from .loaded_program import LoadedProgram


class RuntimeProgram:
    """A graph as launches on one device.

    Args:
        graph, targets, conditions, effects: as for `DeviceProgram`.
        runtime: the runtime.
        device: the device's index.
        name: of its launches.
        tf32: whether products of float32 may round factors to TF32.
        on_host: the program that writes arrays of the host, such as counters of steps: from the host's arrays alone.
        convolutions: the library of convolutions; None: there is none.

    Attributes:
        inputs: the numbers of the inputs, in the order in which `run` takes their arrays.
        output_specs: shapes and dtypes of the new arrays.

    Raises:
        Unsupported: something has no GPU kernel.
    """

    #: what programs of the CPU have: a function that starts them, a segment, a key of the plan cache
    start = single = cache_key = None

    def __init__(self, graph: Graph, targets: Sequence[Target], conditions: Sequence[tuple[Value, bool]],
                 effects: Sequence[Value], runtime: Any, device: int, name: str, tf32: bool = False,
                 on_host: Program | None = None, convolutions: ConvolutionLibrary | None = None) -> None:
        self.device_program = DeviceProgram(graph, targets, conditions, effects,
                                            GpuFamilies(tf32, library=True, convolutions=convolutions))
        self.execution_plan, self.schedule = self.device_program.plan, self.device_program.schedule
        self.output_specs = self.execution_plan.output_specs
        self._on_host, own = on_host, self.execution_plan.inputs
        self.inputs = own if on_host is None else [*own, *(each for each in on_host.inputs if each not in own)]
        self._of_host = [] if on_host is None else [self.inputs.index(each) for each in on_host.inputs]
        self._loaded = LoadedProgram(self.device_program, runtime, device, name)

    def run(self, inputs: Sequence[Any], outputs: Sequence[DeviceArray] | None = None,
            callback: KernelCallback | None = None) -> list[DeviceArray] | None:
        """Run the program: the new arrays, or None where a data guard fails.

        Args:
            inputs: arrays in the order of `inputs`; those of the host are copied to the device.
            outputs: arrays to write, instead of new ones.
            callback: called for each kernel, with times by the device's clock.
        """
        results = self._loaded.run(self._on_device(inputs), outputs, callback)
        if results is not None and self._on_host is not None:
            self._on_host.run([inputs[i] for i in self._of_host])
        return results

    def run_again(self, inputs: Sequence[Any]) -> Sequence[DeviceArray]:
        """`run` of a program that has no data guards, with less work of the host from the second time on."""
        results = self._loaded.run_again(self._on_device(inputs))
        if self._on_host is not None:
            self._on_host.run([inputs[i] for i in self._of_host])
        return results

    def _on_device(self, inputs: Sequence[Any]) -> list[DeviceArray]:
        """The device program's inputs; those of the host, numbers, are copied to the device together."""
        operands: list[Any] = list(inputs[:len(self.execution_plan.inputs)])
        of_host = [i for i, each in enumerate(operands) if each.__class__ is not DeviceArray]
        if not of_host:
            return operands
        packed = np.empty(VECTOR * len(of_host), np.uint8)
        for place, i in enumerate(of_host):
            number = operands[i]
            packed[VECTOR * place:VECTOR * place + number.nbytes].view(number.dtype)[0] = number[()]
        there = self._loaded.runtime.upload(packed, self._loaded.device, blocking=False)
        for place, i in enumerate(of_host):
            operands[i] = np.ndarray.__new__(DeviceArray, operands[i].shape, operands[i].dtype, there, VECTOR * place)
        return operands


__all__ = ["RuntimeProgram"]
