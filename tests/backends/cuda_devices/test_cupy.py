"""The runtime on CuPy, on a module with CuPy's names: all calls are CuPy's, operators have the CPU's results."""

from __future__ import annotations

import copy
import inspect
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import flambeau as torch
from flambeau import codegen
from flambeau._tensor.accelerated import host_copies
from flambeau.backends.cuda_devices import cupy_kernels
from flambeau.codegen.gpu.kernel_ir import KernelBuilder
from tests._tensor.accelerated.test_operators import moved, tensors
from tests.backends.cuda_devices.cupy_surface import SURFACE, used_names
from tests.backends.cuda_devices.fake_cupy import fake_cupy
from tests.backends.cuda_devices.on_fake_cupy import cupy_devices
from tests.ops.spec import Make, load, public

pytestmark = pytest.mark.skipif(not codegen.available(), reason="llvmlite is not installed, or FLAMBEAU_JIT is 0")
ROOT = Path(__file__).parents[3]
NAMES: dict[str, Any] = json.loads(SURFACE.read_text())["names"]


@pytest.fixture
def cupy():
    with cupy_devices(2) as module:
        yield module


# ----- CuPy's names -----

def test_sources_name_only_what_cupy_has():
    for name, count in used_names().items():
        assert name in NAMES, f"{name}: run `python -m tests.backends.cuda_devices.cupy_surface`"
        if count is not None and NAMES[name] is not None:
            assert count <= len(NAMES[name]), name


def test_the_fake_has_cupys_signatures():
    module = fake_cupy({})
    for name, parameters in NAMES.items():
        owner: Any = module
        parts = name.split(".")[1:]
        if parts[-2:-1] == ["getDeviceProperties"]:
            assert parts[-1] in module.cuda.runtime.getDeviceProperties(0)
            continue
        for part in parts:
            if isinstance(owner, type) and part in ("ptr",):
                break
            owner = getattr(owner, part)
        else:
            if parameters is not None and not isinstance(owner, int):
                found = [("*" if each.kind is each.VAR_POSITIONAL else "**" if each.kind is each.VAR_KEYWORD else "")
                         + each.name for each in inspect.signature(owner).parameters.values()]
                assert [each for each in found if each != "self"] == parameters, name


# ----- devices -----

def test_a_gpu_is_available(cupy):
    assert torch.cuda.is_available()
    if cupy.state is None:
        assert torch.cuda.get_device_capability() >= (8, 0)
        return
    assert torch.cuda.device_count() == 2
    assert torch.cuda.get_device_name(1) == "fake GPU"
    assert torch.cuda.get_device_capability() == (8, 0)
    assert torch.cuda.get_device_properties(0).uuid == "01020304-0506-0708-090a-0b0c0d0e0000"
    assert "index=1" in repr(torch.zeros(1, device="cuda:1").device)


def test_copies(cupy):
    x = torch.arange(12.).reshape(3, 4)
    for each in (x, x.t(), x[:, ::2], x.expand(2, 3, 4), x.to(torch.bfloat16), x.to(torch.complex128)):
        there = each.cuda()
        assert there.is_cuda
        assert torch.equal(there.cpu(), each)
        if torch.cuda.device_count() > 1:
            assert torch.equal(there.to("cuda:1").cpu(), each)
        assert torch.equal(each.to("cuda", non_blocking=True).cpu(), each)
    y = x.cuda().t()
    y[0] = torch.ones(3)
    assert y.cpu().tolist()[0] == [1, 1, 1]
    assert y.contiguous().cpu().tolist() == y.tolist()
    assert x.pin_memory().is_pinned()
    assert torch.equal(x.pin_memory(), x)


def test_memory_is_counted(cupy):
    before = torch.cuda.memory_allocated()
    x = torch.empty(1000, device="cuda")
    assert torch.cuda.memory_allocated() - before == 4096
    assert x.data_ptr() % 512 == 0
    del x
    assert torch.cuda.memory_allocated() == before
    torch.cuda.empty_cache()
    with pytest.raises(torch.OutOfMemoryError, match="CUDA out of memory"):
        torch.empty(1 << 36, device="cuda")
    assert torch.cuda.mem_get_info()[1] == (1 << 30) or cupy.state is None


def test_streams_and_events(cupy):
    side, event = torch.cuda.Stream(), torch.cuda.Event(enable_timing=True)
    with torch.cuda.stream(side):
        x = torch.ones(3, device="cuda") + 1
        event.record()
    assert cupy.state is None or not event.query()
    event.synchronize()
    assert event.query()
    torch.cuda.current_stream().wait_event(event)
    end = torch.cuda.Event(enable_timing=True)
    end.record()
    end.synchronize()
    assert event.elapsed_time(end) >= 0
    assert (x + 1).tolist() == [3, 3, 3]
    side.synchronize()


_OUTSIDE = """
import flambeau as torch
from flambeau.backends.cuda_devices import current_runtime
from flambeau.codegen.gpu.kernel_ir import KernelBuilder
from tests.backends.cuda_devices.on_fake_cupy import cupy_devices

with cupy_devices():
    b = KernelBuilder("outside", 32)
    array = b.buffer("float32")
    b.store(array, b.thread + (1 << 30), b.load(array, b.thread))
    kernel = b.kernel()
    x = torch.ones(3, device="cuda")
    memory, runtime = x._array.memory, current_runtime()
    runtime.launch("outside", 0, (), (), lambda: runtime.run_kernel(kernel, (1, 1, 1), [(memory, 0)], ()))
    for use in (torch.cuda.synchronize, torch.cuda.synchronize, lambda: x + 1, x.tolist, torch.cuda.Event().record):
        try:
            use()
        except torch.AcceleratorError as error:
            print(str(error).splitlines()[0])
    print(torch.cuda.device_count())
"""


def test_errors_are_raised_at_synchronization():
    """In a process of its own: a GPU's context is lost afterwards."""
    done = subprocess.run([sys.executable, "-c", _OUTSIDE], cwd=ROOT, capture_output=True, text=True, check=False)
    found = done.stdout.splitlines()
    assert found[:-1] == ["CUDA error: an illegal memory access was encountered"] * 5, done.stderr
    assert int(found[-1]) >= 1


# ----- kernels -----

def test_ptx_is_loaded_with_packed_arguments():
    with cupy_devices(ptx=True) as cupy:
        assert (torch.ones(1000, device="cuda") * 2).sum().item() == 2000
        assert cupy.state is None or {grid for _, grid, *_ in cupy.state.launched} >= {(1, 1, 1)}
    b = KernelBuilder("scaled", 32)
    array, factor, count = b.buffer("float32"), b.scalar("float16"), b.scalar("int64")
    b.store(array, b.thread, b.load(array, b.thread))
    kernel = b.kernel()
    arguments = cupy_kernels.packed(kernel, [1 << 40], [0.5, 7])
    assert [(each.dtype.itemsize, each.item()) for each in arguments] == [(8, 1 << 40), (2, 0.5), (8, 7)]
    assert (array, factor, count) == kernel.parameters


def test_large_shared_memory_is_requested():
    shared = 60_000
    b = KernelBuilder("shared", 32)
    buffer = b.shared("float32", shared // 4)
    b.store(buffer, b.thread, b.load(b.buffer("float32"), b.thread))
    kernel = b.kernel()
    module = fake_cupy({kernel.name: kernel})
    kernels = cupy_kernels.Kernels(module, "sm_80")
    kernels.load([kernel])
    assert [value for _, _, value in module.state.attributes] == [kernel.shared]


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16, torch.float64, torch.complex64])
def test_products(cupy, dtype):
    torch.manual_seed(0)
    a, b, c = (torch.randn(*shape).to(dtype) for shape in ((2, 3, 4), (2, 4, 5), (3, 5)))
    layouts = (lambda x: x, lambda x: x.transpose(-1, -2).contiguous().transpose(-1, -2),
               lambda x: torch.stack([x, x], -1)[..., 0])
    for left in layouts:
        for right in layouts:
            x, y = left(a), right(b)
            for here, there in ((x @ y, x.cuda() @ y.cuda()), (x[0] @ y[0], x[0].cuda() @ y[0].cuda()),
                                (torch.addmm(c, x[0], y[0], beta=2, alpha=3),
                                 torch.addmm(c.cuda(), x[0].cuda(), y[0].cuda(), beta=2, alpha=3))):
                torch.testing.assert_close(there.cpu(), here, rtol=1e-2, atol=1e-2)
    assert not host_copies.computed.get("mm")
    if dtype is torch.float32 and cupy.state is not None:
        assert {each[-1] for each in cupy.state.products} == {68}
        torch.backends.cuda.matmul.allow_tf32 = True
        try:
            a.cuda() @ b.cuda()
        finally:
            torch.backends.cuda.matmul.allow_tf32 = False
        assert cupy.state.products[-1][-1] == 77


def test_a_training_step_needs_no_kernel_of_the_host(cupy):
    host_copies.computed.clear()
    torch.manual_seed(0)
    here = torch.nn.Sequential(torch.nn.Conv2d(1, 4, 3, bias=False), torch.nn.BatchNorm2d(4), torch.nn.ReLU(),
                               torch.nn.MaxPool2d(2), torch.nn.Flatten(),
                               torch.nn.Linear(36, 8), torch.nn.LayerNorm(8), torch.nn.GELU(),
                               torch.nn.Linear(8, 3))
    there = copy.deepcopy(here).cuda()
    x, y = torch.randn(2, 1, 8, 8), torch.tensor([0, 1])
    for model, a, b in ((here, x, y), (there, x.cuda(), y.cuda())):
        optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
        for _ in range(2):
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(model(a), b).backward()
            optimizer.step()
    for p, q in zip(here.parameters(), there.parameters(), strict=True):
        torch.testing.assert_close(q.cpu(), p, rtol=2e-3, atol=2e-4)
    assert not host_copies.computed
    assert cupy.state is None or cupy.state.launched


def test_out_of_range_indices_are_assertions(cupy):
    table = torch.ones(3, 2, device="cuda")
    table[torch.tensor([5], device="cuda")]
    with pytest.raises(torch.AcceleratorError, match="device-side assert triggered"):
        torch.cuda.synchronize()


@pytest.mark.parametrize("part", range(3))
def test_samples_of_records(cupy, part):
    for name in sorted(load())[part::24]:
        record = load()[name]
        if name == "as_strided":
            continue
        dtype = torch.float32 if record.floats else torch.int64
        function = public(torch, name)
        for sample in list(record.samples(Make(torch, dtype, record.differentiable)))[:1]:
            try:
                here = function(*sample.args, **sample.kwargs)
            except (RuntimeError, TypeError, ValueError, IndexError, NotImplementedError):
                continue
            there = function(*moved(sample.args), **moved(sample.kwargs))
            for a, b in zip(tensors(here), tensors(there), strict=True):
                assert (a.shape, a.dtype, a.stride()) == (b.shape, b.dtype, b.stride()), name
                torch.testing.assert_close(b.detach().cpu(), a.detach(), rtol=1e-4, atol=1e-5, equal_nan=True,
                                           msg=name)


def test_the_surface_is_of_a_release():
    assert re.fullmatch(r"\d+\.\d+\.\d+", json.loads(SURFACE.read_text())["version"])


# ----- detection -----

_FIRST_USE = """
import flambeau as torch
from flambeau.backends import cuda_devices
from flambeau.backends.cuda_devices import cupy_kernels
from tests.backends.cuda_devices.on_fake_cupy import _LIBRARY, CupyRuntime

kernels = {}


def compile_kernels(wanted, architecture):
    kernels.update((each.name, each) for each in wanted)
    return "\\n".join(f".visible .entry {each.name}()" for each in wanted)


cupy_kernels.ptx.compile_kernels = compile_kernels
cuda_devices._detect = lambda: CupyRuntime(_LIBRARY["fake_cupy"](kernels, 1, 1 << 30))
FIRST
x = torch.ones(5, device="cuda")
print((x + 1).sum())
"""


@pytest.mark.parametrize("first", ["", "torch.cuda.is_available()", "import flambeau.cuda"])
def test_a_gpu_that_is_detected_is_followed(first):
    program = _FIRST_USE.replace("FIRST", first)
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.stdout == "tensor(10., device='cuda:0')\n", done.stderr
