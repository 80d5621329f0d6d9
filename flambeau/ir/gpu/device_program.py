"""Device programs: a graph as one list of launches over a table of addresses.

The table is that of the CPU's programs (`ir.schedule.steps.ExecutionPlan`): inputs, new outputs, the arena of the
memory planner, constants. A list without data guards can be captured as one CUDA graph: its launches, grids and
offsets do not change from run to run.

>>> import numpy as np
>>> from flambeau import codegen
>>> from flambeau.ir.graph.target import Target
>>> from flambeau.ir.graph.value import Graph
>>> g = Graph()
>>> x = g.input(0, (4, 8), np.dtype("f4"))
>>> top = g.expand(g.reshape(g.reduce("max", x, (1,)), (4, 1)), (4, 8))
>>> program = DeviceProgram(g, [Target(g.apply("exp", x - top))])
>>> [step.launch.kernel.family for step in program.launches]
['rows']
>>> [y] = program.emulate([np.ones((4, 8), "f4")]) if codegen.available() else [np.ones((4, 8), "f4")]
>>> y[0, :3]
array([1., 1., 1.], dtype=float32)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ...codegen.gpu.emulation import emulator
from ...codegen.gpu.emulation.emulator import View
from ...codegen.gpu.kernel_ir import Kernel
from ...codegen.gpu.launches import VECTOR, DeviceLaunch
from ...codegen.gpu.nvptx import ptx
from ...codegen.gpu.statements import Buffer
from ...runtime import launch
from ..graph.target import Target
from ..graph.value import Graph, Unsupported, Value
from ..kernels.pointwise import FALLBACK
from ..schedule.execution_plan import build_execution_plan
from ..schedule.scheduler import Schedule
from ..schedule.steps import ExecutionPlan, Step
from .aligned_products import aligned_products
from .attention_products import attention_products
from .families import GpuFamilies
from .library_convolutions import library_convolutions
from .narrow_products import narrow_products


class BoundLaunch(NamedTuple):
    """A launch with its operands.

    Attributes:
        launch: the kernel, grid, and which operands are its arguments.
        operands: for each operand (outputs, inputs, scratch) the table entry and an offset in bytes.
        kernel: the number of the kernel in the schedule; that of deferred copies follows the last one.
    """

    launch: Any  # DeviceLaunch, ProductLaunch or ConvolutionLaunch
    operands: list[tuple[int, int]]
    kernel: int


class DeviceProgram:
    """A graph as launches of GPU kernels.

    Args:
        graph: the graph.
        targets: the outputs.
        conditions: data guards: bool values and their required outcomes. A run checks them when the first
            `guarded` launches are done, and must not go on where one fails.
        effects: values that are computed even if no target depends on them.
        families: the kernels' families.

    Attributes:
        schedule: kernels and locations.
        plan: the table, and the size of the arena.
        launches: in order.
        guarded: the number of launches before the data guards are checked.
        guards: for each data guard the table entry, the offset in bytes and the required outcome.

    Raises:
        Unsupported: something has no GPU kernel.
    """

    def __init__(self, graph: Graph, targets: Sequence[Target], conditions: Sequence[tuple[Value, bool]] = (),
                 effects: Sequence[Value] = (), families: GpuFamilies | None = None) -> None:
        outputs = [*(each.value for each in targets), *(value for value, _ in conditions), *effects]
        narrow = narrow_products(graph, outputs)
        fused = attention_products(graph, [narrow[each] for each in outputs])
        families = families or GpuFamilies()
        convolved = library_convolutions(graph, [fused[narrow[each]] for each in outputs], families.convolutions)
        replacements = {each: convolved[fused[narrow[each]]] for each in outputs}
        if families.library:
            aligned = aligned_products(graph, list(replacements.values()))
            replacements = {each: aligned[value] for each, value in replacements.items()}
        self.schedule = Schedule(graph, [each._replace(value=replacements[each.value]) for each in targets],
                                 [(replacements[value], outcome) for value, outcome in conditions],
                                 [replacements[value] for value in effects], families=families)
        for kernel in self.schedule.kernels:
            if kernel.name == FALLBACK:
                name = kernel.outputs[0].args[0].attrs.name
                raise Unsupported(f"{name} runs in the interpreter, so it has no GPU kernel; run it outside the "
                                  "compiled function")
        self.plan: ExecutionPlan = build_execution_plan(self.schedule)
        self.launches: list[BoundLaunch] = []
        self.guards: list[tuple[int, int, bool]] = []
        self.guarded = 0
        for step in self.plan.steps:
            if not isinstance(step, Step):
                continue
            each: Any = step.launch
            if isinstance(each, launch.Condition):
                self.guarded = len(self.launches)
                self.guards.append((*step.pointers[0], bool(each.outcome)))
            else:
                assert step.kernel is not None
                self.launches.append(BoundLaunch(each, step.pointers, step.kernel))

    @property
    def kernels(self) -> list[Kernel]:
        """The distinct kernels, variants for memory that is not aligned included."""
        found: dict[str, Kernel] = {}
        for each in self.launches:
            if not isinstance(each.launch, DeviceLaunch):
                continue
            for one in (each.launch, each.launch.unaligned):
                if one is not None:
                    found.setdefault(one.kernel.name, one.kernel)
        return list(found.values())

    def ptx(self, architecture: str = "sm_80") -> str:
        """The PTX of all kernels, as one module."""
        return ptx.compile_kernels(self.kernels, architecture)

    def emulate(self, inputs: Sequence[np.ndarray], check: bool = True) -> list[np.ndarray] | None:
        """Run the program on the CPU (`codegen.gpu.emulator`): the new arrays, or None where a data guard fails.

        Args:
            inputs: dense arrays in the order of `plan.inputs`; those that are overwritten are written to.
            check: whether to look for races.
        """
        plan = self.plan
        results = [np.empty(shape, dtype) for shape, dtype in plan.output_specs]
        table = [*inputs, *results, np.full(plan.arena, emulator.UNDEFINED, np.uint8), *plan.constants]
        memory = [np.ascontiguousarray(each).reshape(-1).view(np.uint8) if each.size else np.empty(0, np.uint8)
                  for each in table]
        for number, each in enumerate(self.launches):
            if number == self.guarded and not self._guards_hold(memory):
                return None
            self._emulate(each, memory, check)
        if self.guarded == len(self.launches) and not self._guards_hold(memory):
            return None
        return results

    def _guards_hold(self, memory: Sequence[np.ndarray]) -> bool:
        return all(bool(memory[entry][offset]) == outcome for entry, offset, outcome in self.guards)

    def _emulate(self, bound: BoundLaunch, memory: Sequence[np.ndarray], check: bool) -> None:
        chosen = bound.launch
        if chosen.unaligned is not None and any(offset % VECTOR for _, offset in bound.operands):
            chosen = chosen.unaligned
        regions = self._regions(bound)
        arguments: list[Any] = []
        buffers = [each for each in chosen.kernel.parameters if isinstance(each, Buffer)]
        for buffer, argument in zip(buffers, chosen.arguments, strict=True):
            entry, offset = bound.operands[argument.operand]
            size = buffer.dtype.itemsize
            if argument.operand < len(regions):
                first, last = regions[argument.operand]
                part = memory[entry][first:last]
                arguments.append(View(part.view(buffer.dtype), (offset - first + argument.offset) // size))
            else:
                first = offset + argument.offset
                last = len(memory[entry]) if argument.size is None else first + argument.size * size
                arguments.append(memory[entry][first:last].view(buffer.dtype))
        emulator.run(chosen.kernel, chosen.grid, [*arguments, *chosen.scalars], check)

    def _regions(self, bound: BoundLaunch) -> list[tuple[int, int]]:
        """The bytes of the table entry that each operand may access: those of its value."""
        if bound.kernel >= len(self.schedule.kernels):
            return [(0, 1 << 62)] * 2  # deferred copies, of whole arrays
        kernel = self.schedule.kernels[bound.kernel]
        values = [*kernel.outputs, *(value for value, _ in kernel.inputs)]
        found = []
        for value in values:
            _, first = self.schedule.locations[value]
            found.append((first, first + value.size * value.dtype.itemsize))
        return found


__all__ = ["BoundLaunch", "DeviceProgram", "Unsupported"]
