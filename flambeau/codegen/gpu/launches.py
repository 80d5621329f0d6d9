"""Launches of GPU kernels: the interface to whatever runs them, a driver or the emulator.

A family of kernels takes the layouts of its operands and returns launches, as the families of the CPU do. The operands
of a list of launches are the outputs, the inputs and, if some launch has `scratch` bytes, the scratch memory.
"""

from __future__ import annotations

from typing import NamedTuple

from .kernel_ir import Kernel
from .statements import Buffer

#: alignment of memory that allocators return, and of vector accesses, in bytes
ALIGNMENT, VECTOR = 256, 16


class Argument(NamedTuple):
    """The memory of a kernel's buffer.

    Attributes:
        operand: the index of the operand.
        offset: in bytes, from the operand's first element.
        size: the number of elements, of a part of scratch memory; None: all of the operand.
    """

    operand: int
    offset: int = 0
    size: int | None = None


class DeviceLaunch(NamedTuple):
    """A kernel, its grid and its arguments.

    Attributes:
        kernel: the kernel; `ptx.compile_kernels` has its code, whose entry point is `kernel.name`.
        grid: the number of blocks in three dimensions; a block has `kernel.threads` threads.
        arguments: of the kernel's buffers, in the order of its parameters.
        scalars: of its other parameters, in their order.
        scratch: bytes of scratch memory.
        unaligned: the launch for operands of which one is not aligned to 16 bytes; None: this one serves all.
    """

    kernel: Kernel
    grid: tuple[int, int, int]
    arguments: tuple[Argument, ...]
    scalars: tuple[int | float, ...] = ()
    scratch: int = 0
    unaligned: DeviceLaunch | None = None

    @property
    def shared(self) -> int:
        """Bytes of shared memory of a block, all of it dynamic."""
        return self.kernel.shared


def launch(kernel: Kernel, blocks: int | tuple[int, int, int], arguments: list[Argument] | None = None,
           scratch: int = 0, scalars: tuple[int | float, ...] = ()) -> DeviceLaunch:
    """A launch; by default the buffers are the operands in their order."""
    grid = blocks if isinstance(blocks, tuple) else (blocks, 1, 1)
    if arguments is None:
        arguments = [Argument(i) for i in range(sum(isinstance(each, Buffer) for each in kernel.parameters))]
    return DeviceLaunch(kernel, grid, tuple(arguments), scalars, scratch)


__all__ = ["ALIGNMENT", "VECTOR", "Argument", "DeviceLaunch", "launch"]
