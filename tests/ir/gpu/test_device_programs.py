"""Graphs as lists of launches: emulated against NumPy, with checks of races and bounds; then assembled."""

from __future__ import annotations

import numpy as np
import pytest

from flambeau import codegen
from flambeau.codegen.gpu.launches import DeviceLaunch
from flambeau.dtypes import BFLOAT16, to_bfloat16, widen
from flambeau.ir.gpu.device_program import DeviceProgram
from flambeau.ir.graph.extern_kernels import ExternKernel, FallbackKernel
from flambeau.ir.graph.target import Target
from flambeau.ir.graph.value import Graph, Unsupported
from flambeau.ir.lowering import indexed_kernels
from flambeau.ir.lowering.namespace import namespace_of
from tests.codegen.gpu.assembling import assemble
from tests.ir.evaluator import evaluate
from tests.ir.random_graphs import Random

pytestmark = pytest.mark.skipif(not codegen.available(), reason="llvmlite is not installed, or FLAMBEAU_JIT is 0")

F4 = np.dtype("f4")


class GpuRandom(Random):
    """Random graphs without operations of the interpreter."""

    def foreign(self):
        raise Unsupported("runs in the interpreter")


def compare(graph, targets, conditions, inputs, rtol=1e-9):
    """Run a graph on the emulator, and compare all results with NumPy's; the program."""
    expected = evaluate(graph, inputs)
    program = DeviceProgram(graph, targets, conditions)
    arrays = [inputs[number].copy() for number in program.plan.inputs]
    results = program.emulate(arrays)
    holds = all(bool(expected[value].all()) == outcome for value, outcome in conditions)
    assert (results is not None) == holds
    if results is None:
        return program
    new = [target.value for target in targets if target.overwrites is None]
    for value, array in zip(new, results, strict=True):
        np.testing.assert_allclose(array, expected[value], rtol=rtol, atol=rtol)
    for target in targets:
        if target.overwrites is not None:
            array = arrays[program.plan.inputs.index(target.overwrites.attrs)]
            np.testing.assert_allclose(array, expected[target.value], rtol=rtol, atol=rtol)
    return program


@pytest.mark.parametrize("seed", range(24))
def test_random_graphs(seed):
    made = GpuRandom(9_000 + seed, steps=15)
    compare(made.graph, made.targets, made.conditions, made.inputs)


def test_a_network_is_a_list_of_launches_over_one_arena():
    """Two linear layers with gelu, layer norm, cross entropy, and the arena of the memory planner."""
    random, g = np.random.default_rng(0), Graph()
    arrays = [random.standard_normal(shape).astype(F4) for shape in ((40, 24), (24, 64), (64,), (64, 16), (64,))]
    x, w, bias, v, scale = (g.input(i, a.shape, F4) for i, a in enumerate(arrays))
    xp = namespace_of(g)
    h = g.matmul(x, w) + bias
    h = h * 0.5 * (g.apply("erf", h * 0.7071067811865476) + 1.0)
    saved: list = []
    h = xp.layer_norm(h, scale, None, (64,), 1e-5, saved)
    y = xp.log_softmax(g.matmul(h, v), -1)
    total = g.reduce("sum", y, (0, 1))
    program = DeviceProgram(g, [Target(y), Target(total)])
    families = [step.launch.kernel.family for step in program.launches]
    assert families.count("matmul") == 2
    assert all(isinstance(step.launch, DeviceLaunch) for step in program.launches)
    assert program.plan.arena % 64 == 0
    assert not program.guards
    results = program.emulate(arrays)
    from math import erf

    h = arrays[0] @ arrays[1] + arrays[2]
    h = h * 0.5 * (np.vectorize(erf)(h / np.sqrt(2)) + 1)
    h = (h - h.mean(1, keepdims=True)) / np.sqrt(h.var(1, keepdims=True) + 1e-5) * arrays[4]
    z = h @ arrays[3]
    z = z - np.log(np.exp(z).sum(1, keepdims=True))
    np.testing.assert_allclose(results[0], z, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(results[1], z.sum(), rtol=1e-4)
    assemble(program.kernels)


def test_gathers_scatters_pooling_and_scans():
    random, g = np.random.default_rng(0), Graph()
    table, index = random.standard_normal((9, 5)), random.integers(0, 9, (20, 1))
    image, line = random.standard_normal((2, 3, 8, 9)), random.standard_normal((4, 30))
    arrays = [table, index, image, line]
    t, i, im, li = (g.input(n, a.shape, a.dtype) for n, a in enumerate(arrays))
    xp = namespace_of(g)
    taken = indexed_kernels.take(t, i, (20, 5), 0)
    added = indexed_kernels.scatter_add(taken, i, (9, 5), 0)
    last = indexed_kernels.scatter_set(taken, i, (9, 5), 0)
    saved: list = [None]
    pooled = xp.max_pool(im, (3, 2), (2, 2), (1, 0), (1, 1), False, saved)
    spread = xp.scatter_planes(pooled, saved[0], (8, 9), True)
    mean = xp.avg_pool(im, (2, 3), (2, 2), (0, 1), False, False, None)
    back = xp.avg_pool_backward(mean, (8, 9), (2, 3), (2, 2), (0, 1), False, None)
    sums, reverse = xp.cumsum(li, 1), xp._cumsum_backward(li, 1)
    most, where = xp.cummax(li, 0)
    values = [taken, added, last, pooled, spread, mean, back, sums, reverse, most, where]
    program = DeviceProgram(g, [Target(value) for value in values])
    found = program.emulate(arrays)
    from flambeau.ir.schedule.program import Program

    cpu = Program(g, [Target(value) for value in values])
    for mine, other in zip(found, cpu.run([arrays[number] for number in cpu.inputs]), strict=True):
        np.testing.assert_allclose(mine, other, rtol=1e-12, atol=1e-12)
    assemble(program.kernels)


@pytest.mark.parametrize("dtype", [np.dtype("f2"), BFLOAT16])
def test_products_of_narrow_floats_take_the_tensor_cores(dtype):
    random, g = np.random.default_rng(0), Graph()
    x, w = (random.standard_normal(shape).astype(F4) for shape in ((33, 40), (24, 40)))
    arrays = [to_bfloat16(each) if dtype == BFLOAT16 else each.astype(dtype) for each in (x, w)]
    a, b = (g.cast(g.input(i, each.shape, dtype), F4) for i, each in enumerate(arrays))
    y = g.cast(g.apply("maximum", g.matmul(a, g.permute(b, (1, 0))), 0.0), dtype)
    z = g.matmul(g.cast(y, F4), b)
    program = DeviceProgram(g, [Target(y), Target(z)])
    assert [step.launch.kernel.family for step in program.launches] == ["matmul", "matmul"]
    assert all("mma m16n8k16" in kernel.text for kernel in program.kernels)
    first, second = program.emulate(arrays)
    wide = [widen(each) for each in arrays]
    expected = np.maximum(wide[0] @ wide[1].T, 0)
    np.testing.assert_allclose(widen(first), expected, rtol=2**-7, atol=1e-5)
    np.testing.assert_allclose(second, widen(first) @ wide[1], rtol=1e-5, atol=1e-4)


def test_what_has_no_gpu_kernel_is_refused():
    g = Graph()
    x = g.input(0, (4,), F4)
    [y] = g.extern(FallbackKernel("sort", lambda a: [np.sort(a)]), [x], [((4,), F4)])
    with pytest.raises(Unsupported, match="sort runs in the interpreter, so it has no GPU kernel; run it outside"):
        DeviceProgram(g, [Target(y)])
    [z] = g.extern(ExternKernel("fft", lambda outputs, inputs: [], {}), [x], [((4,), F4)])
    with pytest.raises(Unsupported, match="fft has no GPU kernel; run it outside the compiled function"):
        DeviceProgram(g, [Target(z)])


@pytest.mark.parametrize("geometry", [((1, 1), (0, 0), (1, 1), 1), ((2, 3), (1, 2), (2, 1), 2)])
def test_convolutions_and_their_gradients(geometry):
    torch = pytest.importorskip("torch")
    random, g = np.random.default_rng(0), Graph()
    stride, padding, dilation, groups = geometry
    x, w = random.standard_normal((2, 4, 11, 9)), random.standard_normal((6, 4 // groups, 3, 2))
    a, b = (torch.tensor(each, requires_grad=True) for each in (x, w))
    y = torch.nn.functional.conv2d(a, b, None, stride, padding, dilation, groups)
    gy = random.standard_normal(y.shape)
    y.backward(torch.tensor(gy))
    xv, wv, gv = (g.input(i, each.shape, each.dtype) for i, each in enumerate((x, w, gy)))
    made = [g.apply("maximum", g.convolve("forward", xv, wv, y.shape, *geometry), 0.0),
            g.convolve("image", gv, wv, x.shape, *geometry), g.convolve("weight", gv, xv, w.shape, *geometry)]
    program = DeviceProgram(g, [Target(each) for each in made])
    assert len(program.launches) == 3  # relu is an epilogue
    found = program.emulate([x, w, gy])
    for mine, other in zip(found, (y.detach().relu(), a.grad, b.grad), strict=True):
        np.testing.assert_allclose(mine, other.numpy(), rtol=1e-10, atol=1e-10)
    assemble(program.kernels)
