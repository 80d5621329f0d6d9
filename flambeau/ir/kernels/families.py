"""Kernel families: what makes launches of the kernels that a schedule consists of, for one kind of device.

A schedule decides which values a kernel computes and where they are in memory; a family decides how. `CPU` are the
families of `codegen`; those of a GPU are `ir.gpu.families`. All take layouts (`runtime.launch.Spec`) and return a list
of launches over the pointers of outputs, inputs and scratch memory.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

from ...codegen.elementwise import elementwise
from ...codegen.rows import reduction, rows
from ...codegen.scalar.scalar_ir import Node
from ...runtime.launch import Spec
from ..graph.extern_kernels import ExternKernel
from ..graph.value import Value


class KernelFamilies:
    """The families of the CPU's kernels; other devices override all of them."""

    #: whether kernels that read a widened value read the narrow one and widen it, so that only that is stored
    reads_narrow: ClassVar[bool] = False
    #: whether expressions of single elements that have nothing in common are one kernel: starting one takes longest
    merges_scalars: ClassVar[bool] = False
    #: fused expressions: expressions, outputs, inputs
    elementwise: ClassVar[Callable[..., list[Any]]] = staticmethod(elementwise.launches)
    #: reductions over the same axes: pairs of operation and expression, outputs, inputs, axes
    reduction: ClassVar[Callable[..., list[Any]]] = staticmethod(reduction.launches)
    #: operations on rows: `codegen.rows.Rows`, outputs, inputs, number of dimensions of a row
    rows: ClassVar[Callable[..., list[Any]]] = staticmethod(rows.launches)
    #: whether elementwise kernels write results with gaps in between, instead of copies
    writes_parts: ClassVar[bool] = False

    def for_operands(self, a: Value, b: Value) -> KernelFamilies:
        """The families for a product or convolution of these values."""
        return self

    def is_constant(self, value: Value) -> bool:
        """Whether a value is the same in all runs, so that kernels may find it rearranged."""
        return False

    @staticmethod
    def matmul(outputs: Sequence[Spec], a: Spec, b: Spec, extras: Sequence[Spec], epilogue: Sequence[Node] | None
               ) -> list[Any]:
        """Matrix products with an epilogue."""
        from ...codegen.matmul import matmul

        return list(matmul.launches(outputs, a, b, extras, epilogue))

    @staticmethod
    def convolution(kind: str, outputs: list[Spec], x: Spec, y: Spec, extras: list[Spec],
                    epilogue: tuple[Node, ...] | None, geometry: dict[str, Any]) -> list[Any]:
        """Convolutions ("forward"), and their gradients with respect to the image and the weight."""
        from ...codegen.convolution import convolution

        if kind == "weight":
            return list(convolution.weight_gradient(outputs, x, y, **geometry))
        build = convolution.forward if kind == "forward" else convolution.input_gradient
        return list(build(outputs, x, y, extras, epilogue=epilogue, **geometry))

    @staticmethod
    def extern(kernel: ExternKernel, outputs: list[Spec], inputs: list[Spec]) -> list[Any]:
        """Gathers, scatters, pooling, scans: an extern kernel's own family."""
        return list(kernel.launches(outputs, inputs))


CPU = KernelFamilies()

__all__ = ["CPU", "KernelFamilies"]
