"""Device programs through the CUDA driver's calls, against a driver in Python."""

from __future__ import annotations

import numpy as np
import pytest

from flambeau import codegen
from flambeau.codegen.gpu.driver.cuda_driver import CudaDriver
from flambeau.ir.gpu import execution
from flambeau.ir.gpu.device_program import DeviceProgram
from flambeau.ir.graph.target import Target
from flambeau.ir.graph.value import Graph
from tests.codegen.gpu.fake_driver import FakeDriver
from tests.ir.evaluator import evaluate
from tests.ir.gpu.test_device_programs import GpuRandom

pytestmark = pytest.mark.skipif(not codegen.available(), reason="llvmlite is not installed, or FLAMBEAU_JIT is 0")


@pytest.mark.parametrize("seed", [9_001, 9_004, 9_007])
def test_random_graphs(seed):
    made = GpuRandom(seed, steps=10)
    program = DeviceProgram(made.graph, made.targets)
    expected = evaluate(made.graph, made.inputs)
    arrays = [made.inputs[number].copy() for number in program.plan.inputs]
    library = FakeDriver(program.kernels)
    results = execution.run(program, CudaDriver(library=library), arrays)
    assert len(library.launched) == len(program.launches)
    assert not library.memory
    new = [target.value for target in made.targets if target.overwrites is None]
    for value, array in zip(new, results, strict=True):
        np.testing.assert_allclose(array, expected[value], rtol=1e-9, atol=1e-9)
    for target in made.targets:
        if target.overwrites is not None:
            array = arrays[program.plan.inputs.index(target.overwrites.attrs)]
            np.testing.assert_allclose(array, expected[target.value], rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("number", [0.5, -0.5])
def test_data_guards_end_a_run(number):
    g = Graph()
    x = g.input(0, (3,), np.dtype("f8"))
    positive = g.reduce("all", g.apply("gt", x, 0.0), (0,))
    program = DeviceProgram(g, [Target(g.apply("sqrt", x))], [(positive, True)])
    library = FakeDriver(program.kernels)
    results = execution.run(program, CudaDriver(library=library), [np.full(3, number)])
    assert (results is None) == (number < 0)
    assert not library.memory
