"""Convolutions by cuDNN, on a library with its functions: all geometries, layouts, dtypes, derivatives and settings."""

from __future__ import annotations

import copy

import pytest

import flambeau as torch
from flambeau import codegen
from flambeau.backends import cuda_devices, cudnn
from flambeau.backends.cuda_devices import current_runtime
from flambeau.backends.cuda_devices.convolutions import Convolution, ConvolutionLibrary
from flambeau.backends.cuda_devices.cupy_runtime import CupyRuntime
from flambeau.ir.gpu.device_program import DeviceProgram
from flambeau.ir.gpu.families import GpuFamilies
from flambeau.ir.gpu.library_convolutions import library_convolutions
from flambeau.ir.graph.target import Target
from flambeau.ir.graph.value import Graph
from tests.backends.cuda_devices.on_fake_cupy import cupy_devices

pytestmark = pytest.mark.skipif(not codegen.available(), reason="llvmlite is not installed, or FLAMBEAU_JIT is 0")
functional = torch.nn.functional

#: (input, weight, keyword arguments) of convolutions
FORWARD = {
    "1d": ((2, 4, 9), (6, 4, 3), {}),
    "1d, all options": ((2, 4, 11), (6, 2, 3), {"stride": 2, "padding": 1, "dilation": 2, "groups": 2}),
    "2d": ((2, 3, 7, 6), (5, 3, 3, 2), {}),
    "2d, 1 x 1": ((2, 8, 5, 5), (4, 8, 1, 1), {}),
    "2d, strides": ((2, 4, 8, 7), (6, 4, 3, 3), {"stride": (2, 1), "padding": (1, 2)}),
    "2d, dilation": ((1, 4, 9, 9), (2, 4, 3, 3), {"padding": (2, 1), "dilation": (2, 3)}),
    "2d, groups": ((2, 6, 6, 6), (9, 2, 3, 3), {"groups": 3, "padding": 1}),
    "2d, one channel a group": ((2, 4, 6, 6), (8, 1, 3, 3), {"groups": 4, "padding": 1, "stride": 2}),
    "2d, one image": ((4, 6, 6), (3, 4, 3, 3), {"padding": "same"}),
    "3d": ((2, 2, 5, 6, 4), (3, 2, 2, 3, 2), {"stride": (1, 2, 1), "padding": (0, 1, 1)}),
    "3d, groups": ((1, 4, 5, 5, 5), (4, 2, 3, 3, 3), {"groups": 2, "dilation": 2, "padding": 2}),
}
TRANSPOSED = {
    "1d": ((2, 4, 5), (4, 3, 3), {"stride": 2, "output_padding": 1, "padding": 1}),
    "2d": ((2, 4, 4, 5), (4, 3, 3, 2), {"stride": 2, "padding": (1, 0)}),
    "2d, groups": ((2, 4, 4, 5), (4, 3, 3, 3), {"groups": 2, "dilation": 2, "stride": 3, "output_padding": (2, 0)}),
    "3d": ((1, 2, 3, 3, 3), (2, 2, 2, 2, 2), {"stride": 2}),
}
CASES = [(f"conv{len(weight) - 2}d", *case) for case in FORWARD.values() for weight in (case[1],)] + [
    (f"conv_transpose{len(weight) - 2}d", *case) for case in TRANSPOSED.values() for weight in (case[1],)]


@pytest.fixture(autouse=True)
def exact():
    cudnn.allow_tf32 = False
    yield
    cudnn.allow_tf32 = True


@pytest.fixture(scope="module")
def cupy():
    with cupy_devices(1) as module:
        yield module


def operands(name, image, weight, dtype=torch.float64, groups=1):
    torch.manual_seed(0)
    channels = weight[1] * groups if "transpose" in name else weight[0]
    return [torch.randn(*shape).to(dtype) for shape in (image, weight, (channels,))]


def pairs(values):
    """The values as leaves, and copies on the device."""
    return [each.clone().requires_grad_() for each in values], [each.cuda().requires_grad_() for each in values]


def assert_close(there, here, dtype=torch.float64):
    tolerance = {2: 2e-2, 4: 1e-4, 8: 1e-10}[dtype.itemsize]
    torch.testing.assert_close(there.detach().cpu(), here.detach(), rtol=tolerance, atol=10 * tolerance)


@pytest.mark.parametrize(("name", "image", "weight", "options"), CASES)
def test_geometries(cupy, name, image, weight, options):
    values = operands(name, image, weight, groups=options.get("groups", 1))
    here, there = pairs(values)
    function = getattr(functional, name)
    y, z = function(*here, **options), function(*there, **options)
    assert (y.shape, y.stride()) == (z.shape, z.stride())
    assert_close(z, y)
    torch.manual_seed(1)
    g = torch.randn(y.shape, dtype=y.dtype)
    first = torch.autograd.grad(y, here, g, create_graph=True)
    second = torch.autograd.grad(z, there, g.cuda(), create_graph=True)
    for a, b in zip(first, second, strict=True):
        assert a.stride() == b.stride()
        assert_close(b, a)
    for a, b in zip(torch.autograd.grad(sum((x ** 3).sum() for x in first), here[:2]),
                    torch.autograd.grad(sum((x ** 3).sum() for x in second), there[:2]), strict=True):
        torch.testing.assert_close(b.cpu(), a)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
@pytest.mark.parametrize("layout", ["images", "weights", "both"])
@pytest.mark.parametrize("rank", [2, 3])
def test_channels_last(cupy, dtype, layout, rank):
    sizes = (5, 6, 4)[:rank]
    image, weight, bias = operands("conv", (2, 4, *sizes), (6, 4, *(3,) * rank), dtype)
    order = torch.channels_last if rank == 2 else torch.channels_last_3d
    values = [image.to(memory_format=order) if layout != "weights" else image,
              weight.to(memory_format=order) if layout != "images" else weight, bias]
    here, there = pairs(values)
    function = getattr(functional, f"conv{rank}d")
    before = len(cupy.state.convolutions) if cupy.state is not None else 0
    y, z = function(*here, padding=1), function(*there, padding=1)
    assert y.stride() == z.stride()
    assert_close(z, y, dtype)
    for a, b in zip(torch.autograd.grad(y, here, torch.ones_like(y)),
                    torch.autograd.grad(z, there, torch.ones_like(z)), strict=True):
        assert_close(b, a, dtype)
    if cupy.state is not None:
        name = str(dtype).partition(".")[2]
        math = 3 if dtype is torch.float32 else 1
        assert cupy.state.convolutions[before:] == [
            (kind, True, name, math) for kind in ("Forward", "BackwardData", "BackwardFilter")]


def test_views_are_read_in_place_or_copied(cupy):
    image, weight, bias = operands("conv2d", (4, 6, 5, 5), (3, 3, 2, 2))
    for view in (lambda x: x[1:, :3], lambda x: x[::2, ::2], lambda x: x[:, 3:].transpose(2, 3),
                 lambda x: x.flip(2)[:, :3], lambda x: x[:1, :3].expand(3, 3, 5, 5)):
        assert_close(functional.conv2d(view(image.cuda()), weight.cuda(), bias.cuda()),
                     functional.conv2d(view(image), weight, bias))


@pytest.mark.parametrize("last", [False, True])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_compiled_training_steps(cupy, dtype, last):
    torch.manual_seed(0)
    here = torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3, padding=1), torch.nn.BatchNorm2d(4), torch.nn.ReLU(),
                               torch.nn.Conv2d(4, 2, 3, stride=2), torch.nn.Flatten(1)).to(dtype)
    there = copy.deepcopy(here).cuda()
    x = torch.randn(2, 3, 6, 6).to(dtype)
    if last:
        x = x.to(memory_format=torch.channels_last)
    compiled, y = torch.compile(there), x.cuda()
    before = len(cupy.state.convolutions) if cupy.state is not None else 0
    for _ in range(4):  # eager, traced, run, and captured as a graph
        for model, call, given in ((here, here, x), (there, compiled, y)):
            model.zero_grad()
            call(given).float().pow(2).sum().backward()
    for p, q in zip(here.parameters(), there.parameters(), strict=True):
        torch.testing.assert_close(q.grad.cpu(), p.grad, rtol=5e-2, atol=5e-2 if dtype is torch.bfloat16 else 1e-4)
    if cupy.state is not None:
        found = cupy.state.convolutions[before:]
        assert len(found) >= 10
        assert last in {each[1] for each in found if each[0] == "Forward"}
        assert {each[2] for each in found} == {str(dtype).partition(".")[2]}


def test_settings(cupy):
    if cupy.state is None:
        return
    image, weight, _ = (each.float().cuda() for each in operands("conv2d", (2, 3, 6, 6), (4, 3, 3, 3)))
    noted = cupy.state.convolutions

    def run():
        del noted[:], cupy.state.tried[:]
        return functional.conv2d(image, weight)

    expected = functional.conv2d(image.cpu(), weight.cpu())
    for settings, math in (({"allow_tf32": True}, 0), ({"allow_tf32": False}, 3)):
        with cudnn.flags(enabled=True, **settings):
            for _ in range(4):  # calls of the same layouts are replayed, until a setting is written
                run()
                assert {each[-1] for each in noted} == {math}
    with cudnn.flags(enabled=True):
        cudnn.conv.fp32_precision = "ieee"
        try:
            run()
        finally:
            cudnn.conv.fp32_precision = "tf32"
    assert {each[-1] for each in noted} == {3}
    with cudnn.flags(enabled=False):
        assert_close(run(), expected, torch.float32)
        assert not noted
    with cudnn.flags(enabled=True, benchmark=True):
        assert_close(run(), expected, torch.float32)
        assert cupy.state.tried == ["Forward"]
        run()
        assert not cupy.state.tried
        assert noted


@pytest.mark.parametrize("wanted", [False, True])
def test_determinism(cupy, wanted):
    if cupy.state is None:
        return
    plans = current_runtime().convolutions._plans
    plans.clear()
    image, weight, _ = (each.cuda() for each in operands("conv2d", (2, 3, 6, 6 + wanted), (4, 3, 3, 3)))
    with cudnn.flags(enabled=True, deterministic=wanted):
        functional.conv2d(image, weight)
    assert [each.algorithm for each in plans.values()] == [0 if wanted else 1]


def test_graphs_have_workspaces_of_their_own(cupy):
    image, weight, bias = (each.float().cuda() for each in operands("conv2d", (2, 3, 6, 6), (4, 3, 3, 3)))
    functional.conv2d(image, weight, bias)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        y = functional.conv2d(image, weight, bias)
    image.copy_(torch.ones(2, 3, 6, 6))
    graph.replay()
    assert_close(y, functional.conv2d(image.cpu(), weight.cpu(), bias.cpu()), torch.float32)


def test_functions_of_torch_backends(cupy):
    assert cudnn.is_available()
    assert cudnn.version() >= 90000
    x = torch.ones(2, device="cuda")
    assert cudnn.is_acceptable(x)
    assert torch.cudnn_is_acceptable(x)
    assert not cudnn.is_acceptable(x.cpu())
    assert not cudnn.is_acceptable(x.long())
    with cudnn.flags(enabled=False):
        assert not cudnn.is_acceptable(x)


def test_without_cudnn_kernels_are_generated(cupy):
    if cupy.state is None:
        return

    def load(name, release):
        if name == "cudnn":
            raise OSError(f"{name} is not installed")
        return cupy.libraries[name]

    before = cuda_devices.install(CupyRuntime(cupy, load))
    try:
        assert not cudnn.is_available()
        assert cudnn.version() is None
        image, weight, bias = operands("conv2d", (2, 3, 6, 6), (4, 3, 3, 3))
        assert_close(functional.conv2d(image.cuda(), weight.cuda(), bias.cuda()),
                     functional.conv2d(image, weight, bias))
    finally:
        cuda_devices.install(before)


def test_errors_are_pytorchs(cupy):
    if cupy.state is None:
        return
    library = current_runtime().convolutions
    with pytest.raises(RuntimeError, match="cuDNN error: CUDNN_STATUS_BAD_PARAM"):
        library._call("cudnnSetConvolutionMathType", library._geometry(_convolution(), 0), 9)


def _convolution():
    return Convolution("forward", torch.float32.numpy, (1, 1, 3), (1, 1, 2), (1, 1, 2), False, (1,), (0,), (1,), 1)


@pytest.mark.parametrize("last", [False, True])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_a_bias_is_one_launch_after_the_library_s(dtype, last):
    kind, wide = dtype.numpy, torch.float32.numpy
    g = Graph()
    image, weight, bias = (g.input(i, shape, kind) for i, shape in enumerate((
        (2, 6, 6, 4) if last else (2, 4, 6, 6), (8, 3, 3, 4) if last else (8, 4, 3, 3), (8,))))
    if last:
        image, weight = (g.permute(each, (0, 3, 1, 2)) for each in (image, weight))
    y = g.convolve("forward", g.cast(image, wide), g.cast(weight, wide), (2, 8, 6, 6), (1, 1), (1, 1), (1, 1), 1)
    y = g.cast(g.apply("exp", y + g.reshape(g.cast(bias, wide), (1, 8, 1, 1))), kind)
    program = DeviceProgram(g, [Target(g.permute(y, (0, 2, 3, 1)) if last else y)],
                            families=GpuFamilies(convolutions=ConvolutionLibrary(lambda convolution: 16)))
    first, second = program.launches
    assert first.launch.convolution.last is last
    assert first.launch.convolution.dtype == kind
    assert second.launch.kernel.family == "elementwise"


def test_graphs_of_the_ir_are_left_alone_without_a_library():
    g = Graph()
    image, weight = (g.input(i, (1, 2, 4, 4), torch.float32.numpy) for i in range(2))
    result = g.convolve("forward", image, weight, (1, 1, 1, 1), (1, 1), (0, 0), (1, 1), 1)
    assert library_convolutions(g, [result], None)[result] is result


def test_calls_of_the_same_layouts_are_computed_each_time(cupy):
    for seed in range(5):  # from the third on launches may be replayed
        torch.manual_seed(seed)
        here, there = pairs([torch.randn(2, 3, 6, 6), torch.randn(4, 3, 3, 3), torch.randn(4)])
        y, z = functional.conv2d(*here, padding=1), functional.conv2d(*there, padding=1)
        assert_close(z, y, torch.float32)
        for a, b in zip(torch.autograd.grad(y, here, y.detach()), torch.autograd.grad(z, there, z.detach()),
                        strict=True):
            assert_close(b, a, torch.float32)
