"""The CUDA driver's calls, against a driver in Python."""

from __future__ import annotations

import numpy as np
import pytest

from flambeau.codegen.gpu import elementwise
from flambeau.codegen.gpu.driver import execution
from flambeau.codegen.gpu.driver.cuda_driver import CudaDriver, architecture_of
from flambeau.codegen.gpu.kernel_ir import KernelBuilder
from flambeau.codegen.gpu.rows import reduction
from flambeau.codegen.scalar import scalar_ir as e
from flambeau.runtime.launch import Spec
from tests.codegen.gpu.assembling import kernels_of
from tests.codegen.gpu.fake_driver import FakeDriver

RANDOM = np.random.default_rng(0)


def test_launches_with_scratch_memory_and_strides():
    x, out = RANDOM.standard_normal((700, 40))[::-1, ::2], np.empty(20)
    launches = reduction.launches([("sum", e.variable(0, "float64"))], [Spec.of(out)], [Spec.of(x)], 0)
    assert len(launches) == 2
    library = FakeDriver(kernels_of(launches))
    execution.run_launches(CudaDriver(library=library), launches, [out, x])
    np.testing.assert_allclose(out, x.sum(0))
    assert library.launched == ["rows", "merge_blocks"]
    assert not library.memory  # all of it is freed


def test_in_place_and_unaligned_operands():
    x = np.arange(33, dtype="f4")
    before, part = x.copy(), x[1:]
    spec = Spec.of(part)
    launches = elementwise.launches([e.variable(0, "float32") * 2], [spec], [spec])
    library = FakeDriver(kernels_of(launches))
    driver = CudaDriver(library=library)
    execution.run_launches(driver, launches, [part, part])
    np.testing.assert_array_equal(x[1:], before[1:] * 2)
    execution.run_launches(driver, launches, [part, part])  # the module is loaded once
    assert len(library.loaded) == 1


def test_scalars_and_large_shared_memory():
    b = KernelBuilder("scaled", 32)
    x, factor, count = b.buffer("float32"), b.scalar("float64"), b.scalar("int32")
    held = b.shared("float32", 14_000)
    b.store(held, b.thread, b.load(x, b.thread))
    b.store(x, b.thread, b.load(held, b.thread) * e.cast(factor, "float32"), b.thread < count)
    kernel = b.kernel()
    library = FakeDriver([kernel])
    driver = CudaDriver(library=library)
    values = np.ones(32, "f4")
    address = driver.allocate(values.nbytes)
    driver.write(address, values)
    driver.launch(kernel, (1, 1, 1), [address], [2.5, 7])
    driver.read(address, values)
    np.testing.assert_array_equal(values, np.where(np.arange(32) < 7, 2.5, 1))
    assert library.attributes == [(8, 56_000)]


def test_errors_are_raised():
    with pytest.raises(RuntimeError, match=r"CUDA error: invalid device ordinal \(cuDeviceGet returned 101\)"):
        CudaDriver(3, FakeDriver([]))
    with pytest.raises(RuntimeError, match=r"compute capability 7\.5: flambeau's kernels need 8\.0 or newer"):
        CudaDriver(library=FakeDriver([], (7, 5)))
    assert architecture_of(9, 0) == "sm_90"
    b = KernelBuilder("fill", 32)
    b.store(b.buffer("int32"), b.thread, b.thread)
    with pytest.raises(RuntimeError, match="CUDA error: an illegal memory access was encountered"):
        CudaDriver(library=FakeDriver([b.kernel()])).launch(b.kernel(), (1, 1, 1), [64])
