"""Occupancy: how many blocks of a kernel a multiprocessor holds at once, from what the assembler reports.

The limits are those of NVIDIA's table of compute capabilities (CUDA C++ Programming Guide).
"""

from __future__ import annotations

from typing import NamedTuple

from ..kernel_ir import WARP, Kernel
from .ptxas import Resources


class Limits(NamedTuple):
    """What a multiprocessor has, and what it takes in units of."""

    threads: int
    blocks: int
    registers: int
    shared: int
    shared_of_block: int
    processors: int


LIMITS = {
    "sm_80": Limits(2048, 32, 65536, 164 << 10, 163 << 10, 108),
    "sm_86": Limits(1536, 16, 65536, 100 << 10, 99 << 10, 84),
    "sm_89": Limits(1536, 24, 65536, 100 << 10, 99 << 10, 128),
    "sm_90": Limits(2048, 32, 65536, 228 << 10, 227 << 10, 132),
}
#: shared memory of a block that needs no opt-in by the driver's function attribute, and what the system takes
DEFAULT_SHARED, SYSTEM_SHARED = 48 << 10, 1 << 10
_REGISTER_UNIT, _SHARED_UNIT = 256, 128


class Occupancy(NamedTuple):
    """Blocks that a multiprocessor holds, what limits them, and the share of its threads that they are."""

    blocks: int
    limit: str
    share: float


def occupancy(kernel: Kernel, resources: Resources, architecture: str = "sm_80") -> Occupancy:
    """The occupancy of a kernel.

    Raises:
        ValueError: no block of the kernel fits.

    >>> from flambeau.codegen.gpu.kernel_ir import KernelBuilder
    >>> occupancy(KernelBuilder("k", 256).kernel(), Resources(64, 0, 0), "sm_80")
    Occupancy(blocks=4, limit='registers', share=0.5)
    """
    limits = LIMITS[architecture]
    warps = kernel.threads // WARP
    of_warp = -(-max(1, resources.registers) * WARP // _REGISTER_UNIT) * _REGISTER_UNIT
    shared = kernel.shared + resources.shared
    taken = -(-(shared + SYSTEM_SHARED) // _SHARED_UNIT) * _SHARED_UNIT
    found = {"threads": limits.threads // kernel.threads, "blocks": limits.blocks,
             "registers": limits.registers // of_warp // warps, "shared memory": limits.shared // taken}
    limit = min(found, key=lambda each: found[each])
    if shared > limits.shared_of_block or not found[limit]:
        raise ValueError(f"kernel {kernel.name} does not fit on {architecture}: {resources.registers} registers of "
                         f"{kernel.threads} threads, {shared} bytes of shared memory")
    return Occupancy(found[limit], limit, found[limit] * kernel.threads / limits.threads)


__all__ = ["DEFAULT_SHARED", "LIMITS", "Occupancy", "occupancy"]
