"""The families of a GPU's kernels, for schedules."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

from ...backends.cuda_devices.convolutions import ConvolutionLibrary
from ...codegen.gpu import convolution, elementwise, indexing, philox, pooling, scan
from ...codegen.gpu.attention import flash
from ...codegen.gpu.launches import DeviceLaunch
from ...codegen.gpu.matmul import matmul
from ...codegen.gpu.rows import reduction, rows
from ...codegen.scalar.scalar_ir import Node
from ...runtime.launch import Spec
from ..graph.extern_kernels import ExternKernel
from ..graph.value import Unsupported
from ..kernels.families import KernelFamilies
from . import device_kernels, library_convolutions, library_products, narrow_products


def _take(outputs: list[Spec], inputs: list[Spec], dim: int) -> list[DeviceLaunch]:
    return _without_flag(indexing.take(outputs[0], None, inputs[0], inputs[1], dim))


def _put(outputs: list[Spec], inputs: list[Spec], dim: int, op: str = "add") -> list[DeviceLaunch]:
    return _without_flag(indexing.put(outputs[0], None, inputs[0], inputs[1], dim, op))


def _without_flag(launches: list[DeviceLaunch]) -> list[DeviceLaunch]:
    """Launches whose operands have a flag after the result, which is not written."""
    def moved(each: DeviceLaunch) -> DeviceLaunch:
        arguments = tuple([x._replace(operand=x.operand + (x.operand > 0)) for x in each.arguments])
        return each._replace(arguments=arguments, unaligned=None if each.unaligned is None else moved(each.unaligned))

    return [moved(each) for each in launches]


def _max_pool(outputs: list[Spec], inputs: list[Spec], windows: Any) -> list[DeviceLaunch]:
    return pooling.max_pool(outputs, inputs[0], windows)


def _max_pool_gradient(outputs: list[Spec], inputs: list[Spec]) -> list[DeviceLaunch]:
    return pooling.max_pool_gradient(outputs[0], inputs[0], inputs[1])


def _avg_pool(outputs: list[Spec], inputs: list[Spec], windows: Any, divisor: int) -> list[DeviceLaunch]:
    return pooling.avg_pool(outputs[0], inputs[0], windows, divisor)


def _avg_pool_gradient(outputs: list[Spec], inputs: list[Spec], windows: Any, divisor: int) -> list[DeviceLaunch]:
    return pooling.avg_pool_gradient(outputs[0], inputs[0], windows, divisor)


def _scan(outputs: list[Spec], inputs: list[Spec], scan: str, dim: int, back: bool) -> list[DeviceLaunch]:
    from ...backends.compiled.families.scans import scan_of

    return _scan_launches(scan_of(scan, inputs[0].dtype), outputs, inputs, dim, back)


_scan_launches = scan.launches


def _philox(outputs: list[Spec], inputs: list[Spec], draw: int) -> list[DeviceLaunch]:
    return philox.uniform(outputs[0], inputs[0], draw)


def _flash_attention(outputs: list[Spec], inputs: list[Spec], scale: float, causal: bool) -> list[DeviceLaunch]:
    out, lse = outputs
    query, key, value = inputs
    return flash.forward(out, lse, query, key, value, scale, causal)


def _flash_attention_gradient(outputs: list[Spec], inputs: list[Spec], scale: float, causal: bool
                              ) -> list[DeviceLaunch]:
    grad, query, key, value, lse, delta = inputs
    return flash.backward(outputs, grad, query, key, value, lse, delta, scale, causal)


_EXTERN: dict[str, Callable[..., list[DeviceLaunch]]] = {
    "take": _take, "put": _put, "max_pool": _max_pool, "max_pool_gradient": _max_pool_gradient, "avg_pool": _avg_pool,
    "avg_pool_gradient": _avg_pool_gradient, "scan": _scan, "philox": _philox,
    "flash_attention": _flash_attention, "flash_attention_gradient": _flash_attention_gradient,
    **device_kernels.FAMILIES,
}


class GpuFamilies(KernelFamilies):
    """The families of `codegen.gpu`.

    Args:
        tf32: whether products of float32 may take the tensor cores, which round factors to 10 bits of mantissa.
        library: whether products are cuBLAS's where it applies.
        convolutions: the library of convolutions; None: there is none.
    """

    reads_narrow: ClassVar[bool] = True
    merges_scalars: ClassVar[bool] = True
    elementwise: ClassVar[Callable[..., list[Any]]] = staticmethod(elementwise.launches)
    reduction: ClassVar[Callable[..., list[Any]]] = staticmethod(reduction.launches)
    rows: ClassVar[Callable[..., list[Any]]] = staticmethod(rows.launches)
    writes_parts: ClassVar[bool] = True

    def __init__(self, tf32: bool = False, library: bool = False,
                 convolutions: ConvolutionLibrary | None = None) -> None:
        self.tf32, self.library, self.convolutions = tf32, library, convolutions

    def matmul(self, outputs: Sequence[Spec], a: Spec, b: Spec, extras: Sequence[Spec],  # type: ignore[override]
               epilogue: Sequence[Node] | None) -> list[Any]:
        """Matrix products with an epilogue."""
        found = library_products.launches(outputs, a, b, extras, epilogue, self.tf32) if self.library else None
        if found is not None:
            return found
        return list(matmul.launches(outputs, a, b, extras, narrow_products.epilogue_of_sums(epilogue, a, outputs[0]),
                                    self.tf32))

    @staticmethod
    def convolution(kind: str, outputs: list[Spec], x: Spec, y: Spec, extras: list[Spec],
                    epilogue: tuple[Node, ...] | None, geometry: dict[str, Any]) -> list[Any]:
        """Convolutions ("forward"), and their gradients with respect to the image and the weight."""
        return list(convolution.launches(kind, outputs, x, y, extras, epilogue, **geometry))

    @staticmethod
    def extern(kernel: ExternKernel, outputs: list[Spec], inputs: list[Spec]) -> list[Any]:
        """Gathers, scatters, pooling, scans, random numbers, a library's convolutions.

        Raises:
            Unsupported: the kernel has no GPU family.
        """
        if kernel.name == library_convolutions.LIBRARY:
            return list(library_convolutions.launches(kernel))
        family = _EXTERN.get(kernel.name)
        if family is None:
            raise Unsupported(f"{kernel.name} has no GPU kernel; run it outside the compiled function")
        return list(family(outputs, inputs, **kernel.params))


__all__ = ["GpuFamilies"]
