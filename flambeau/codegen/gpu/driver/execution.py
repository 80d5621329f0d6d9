"""Launches on a GPU with arrays of the host: what `emulation.emulator.run_launches` does on the CPU."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..emulation.emulator import memory_of
from ..launches import VECTOR, DeviceLaunch
from .cuda_driver import CudaDriver


def run_launches(driver: CudaDriver, launches: Sequence[DeviceLaunch], operands: Sequence[np.ndarray]) -> None:
    """Copy arrays to the device, run launches on them, and copy them back.

    Args:
        driver: the GPU.
        launches: made for the layouts of these arrays.
        operands: outputs first. Arrays that share memory do so on the device if they span the same bytes.
    """
    views = [memory_of(each) for each in operands]
    addresses: dict[tuple[int, int], int] = {}
    places = []
    for view in views:
        key = (view.memory.ctypes.data, view.memory.nbytes)
        if key not in addresses:
            addresses[key] = driver.allocate(view.memory.nbytes)
            driver.write(addresses[key], view.memory)
        places.append(addresses[key] + view.origin * view.memory.itemsize)
    scratch = max((each.scratch for each in launches), default=0)
    if scratch:
        addresses[0, 0] = driver.allocate(scratch)
        places.append(addresses[0, 0])
    for each in launches:
        chosen = each
        if each.unaligned is not None and any(place % VECTOR for place in places):
            chosen = each.unaligned
        driver.launch(chosen.kernel, chosen.grid, [places[x.operand] + x.offset for x in chosen.arguments],
                      chosen.scalars)
    driver.synchronize()
    for view in views:
        driver.read(addresses[view.memory.ctypes.data, view.memory.nbytes], view.memory)
    for address in addresses.values():
        driver.free(address)


__all__ = ["run_launches"]
