"""`make test-cuda`: with FLAMBEAU_TEST_CUDA=1 the tests of families and programs run on the first GPU, not emulated."""

from __future__ import annotations

import os
from functools import cache

import pytest

from flambeau.codegen.gpu.driver import execution
from flambeau.codegen.gpu.driver.cuda_driver import CudaDriver
from flambeau.codegen.gpu.emulation import emulator
from flambeau.ir.gpu import execution as program_execution
from flambeau.ir.gpu.device_program import DeviceProgram


@cache
def driver() -> CudaDriver:
    """The first GPU."""
    return CudaDriver()


@pytest.fixture(autouse=True)
def kernels_run_on_the_gpu(monkeypatch):
    """Run launches and programs on the GPU, if FLAMBEAU_TEST_CUDA is 1."""
    if os.environ.get("FLAMBEAU_TEST_CUDA") == "1":
        monkeypatch.setattr(emulator, "run_launches", lambda launches, operands, check=True: execution.run_launches(
            driver(), launches, operands))
        monkeypatch.setattr(DeviceProgram, "emulate", lambda self, inputs, check=True: program_execution.run(
            self, driver(), inputs))
