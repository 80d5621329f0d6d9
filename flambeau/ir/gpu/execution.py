"""Device programs on a GPU, with arrays of the host."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...codegen.gpu.driver.cuda_driver import CudaDriver
from ...codegen.gpu.launches import VECTOR
from .device_program import BoundLaunch, DeviceProgram


def run(program: DeviceProgram, driver: CudaDriver, inputs: Sequence[np.ndarray]) -> list[np.ndarray] | None:
    """Run a program: the new arrays, or None where a data guard fails.

    Args:
        program: the program.
        driver: the GPU.
        inputs: dense arrays in the order of `plan.inputs`; those that are overwritten are written to.
    """
    plan = program.plan
    driver.load(program.kernels)
    results = [np.empty(shape, dtype) for shape, dtype in plan.output_specs]
    table = [*inputs, *results, np.zeros(plan.arena, np.uint8), *plan.constants]
    addresses = [driver.allocate(each.nbytes) for each in table]
    try:
        for address, array in zip(addresses, table, strict=True):
            if array.nbytes:
                driver.write(address, array)
        for number, each in enumerate(program.launches):
            if number == program.guarded and not _guards_hold(program, driver, addresses):
                return None
            _launch(driver, each, addresses)
        if program.guarded == len(program.launches) and not _guards_hold(program, driver, addresses):
            return None
        driver.synchronize()
        overwritten = {program.plan.inputs.index(each.overwrites.attrs) for each in program.schedule.targets
                       if each.overwrites is not None}
        for number, array in enumerate([*inputs, *results]):
            if array.nbytes and (number >= len(inputs) or number in overwritten):
                driver.read(addresses[number], array)
    finally:
        for address in addresses:
            driver.free(address)
    return results


def _launch(driver: CudaDriver, bound: BoundLaunch, addresses: Sequence[int]) -> None:
    places = [addresses[entry] + offset for entry, offset in bound.operands]
    chosen = bound.launch
    if chosen.unaligned is not None and any(place % VECTOR for place in places):
        chosen = chosen.unaligned
    driver.launch(chosen.kernel, chosen.grid, [places[each.operand] + each.offset for each in chosen.arguments],
                  chosen.scalars)


def _guards_hold(program: DeviceProgram, driver: CudaDriver, addresses: Sequence[int]) -> bool:
    for entry, offset, outcome in program.guards:
        flag = np.zeros(1, np.uint8)
        driver.read(addresses[entry] + offset, flag)
        if bool(flag[0]) != outcome:
            return False
    return True


__all__ = ["run"]
