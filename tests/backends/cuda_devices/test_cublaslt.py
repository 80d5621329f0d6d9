"""Products with a bias in compiled programs: cuBLASLt adds it, and rounds."""

from __future__ import annotations

import pytest

import flambeau as torch
import flambeau.nn.functional as F
from flambeau import codegen
from flambeau.backends.cuda_devices import cublaslt
from flambeau.ir.gpu.library_products import ProductLaunch
from tests.backends.cuda_devices.on_fake_cupy import cupy_devices

pytestmark = pytest.mark.skipif(not codegen.available(), reason="llvmlite is not installed, or FLAMBEAU_JIT is 0")


def launches(compiled):
    return [each.launch for cached in compiled._device_calls._signatures.values() for entry in cached.entries
            for each in entry.program.device_program.launches]


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("sizes", [(8, 136, 16), (7, 131, 5)])
def test_a_bias_is_added_by_the_library(monkeypatch, dtype, sizes):
    monkeypatch.setattr(cublaslt, "_RATIO", 1e-9)
    narrow = dtype is not torch.float32
    functions = {F.linear: 1, lambda x, w, b: torch.addmm(b, x, w.t()): 1, lambda x, w, b: F.gelu(F.linear(x, w, b)): 2,
                 lambda x, w, b: F.linear(x, w, b) * b: 2, lambda x, w, b: F.linear(x.t(), w[:, :x.shape[0]], b): 1}
    m, k, n = sizes
    torch.manual_seed(0)
    here = [torch.randn(*shape).to(dtype) for shape in ((m, k), (n, k), (n,))]
    with cupy_devices() as cupy, torch.no_grad():
        for function, count in functions.items():
            compiled = torch.compile(function, fullgraph=True)
            for _ in range(4):  # the later ones by a graph
                found = compiled(*(x.cuda() for x in here))
            torch.testing.assert_close(found.cpu(), function(*here), rtol=2e-2 if narrow else 1e-4,
                                       atol=5e-2 if narrow else 1e-4)
            made = launches(compiled)
            assert len(made) == count
            product, = (each for each in made if isinstance(each, ProductLaunch))
            assert (product.bias is not None) == (narrow or count == 1)
            assert product.out_dtype == found._array.dtype
        assert cupy.state is None or {each[2] for each in cupy.state.biased} == {68}


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_batches_with_one_matrix_are_one_product(monkeypatch, dtype):
    monkeypatch.setattr(cublaslt, "_RATIO", 1e-9)
    with cupy_devices(), torch.no_grad():
        torch.manual_seed(0)
        x, w, b = (torch.randn(*shape, device="cuda").to(dtype) for shape in ((3, 4, 136), (16, 136), (16,)))
        for function, bias in ((F.linear, True), (lambda x, w, b: x @ w.t(), False),
                               (lambda x, w, b: F.linear(x.transpose(0, 1), w, b), None)):
            compiled = torch.compile(function, fullgraph=True)
            for _ in range(3):
                found = compiled(x, w, b)
            expected = function(x.cpu(), w.cpu(), b.cpu())
            torch.testing.assert_close(found.cpu(), expected, rtol=2e-2 if dtype is torch.bfloat16 else 1e-4, atol=1e-1)
            products = [each for each in launches(compiled) if isinstance(each, ProductLaunch)]
            if bias is not None:
                assert [(each.m, each.batch, each.bias is not None) for each in products] == [(12, 1, bias)]


def test_tf32(monkeypatch):
    monkeypatch.setattr(cublaslt, "_RATIO", 1e-9)
    with cupy_devices() as cupy, torch.no_grad():
        x, w, b = (torch.ones(*shape, device="cuda") for shape in ((4, 256), (8, 256), (8,)))
        compiled = torch.compile(F.linear)
        torch.backends.cuda.matmul.allow_tf32 = True
        try:
            for _ in range(3):
                assert compiled(x, w, b).tolist() == [[257] * 8] * 4
        finally:
            torch.backends.cuda.matmul.allow_tf32 = False
        assert cupy.state is None or {each[2] for each in cupy.state.biased} == {77}


def test_other_vectors_are_no_bias(monkeypatch):
    monkeypatch.setattr(cublaslt, "_RATIO", 1e-9)
    with cupy_devices(), torch.no_grad():
        x, w = torch.randn(5, 136, device="cuda"), torch.randn(5, 136, device="cuda")
        for function in (lambda x, w: x @ w.t() + x[:, :1], lambda x, w: x @ w.t() + w[:, 3],
                         lambda x, w: x @ w.t() + x[:, :5]):
            compiled = torch.compile(function)
            for _ in range(3):
                found = compiled(x, w)
            torch.testing.assert_close(found, function(x, w), rtol=1e-4, atol=1e-4)
            assert all(each.bias is None for each in launches(compiled) if isinstance(each, ProductLaunch))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_eager_linear_layers(monkeypatch, dtype):
    monkeypatch.setattr(cublaslt, "_RATIO", 1e-9)
    calls: list[int] = []
    multiply = cublaslt.BiasedProducts.multiply
    monkeypatch.setattr(cublaslt.BiasedProducts, "multiply", lambda *args: calls.append(1) or multiply(*args))
    with cupy_devices() as cupy, torch.no_grad():
        torch.manual_seed(0)
        w, b = (torch.randn(*shape, device="cuda").to(dtype) for shape in ((16, 32), (16,)))
        for number in range(8):  # the later ones by a launch stub
            x = torch.randn(4 * 32 + 1, device="cuda").to(dtype)[number % 2 * (number > 5):][:128].view(4, 32)
            vector = (b * number).repeat(2)[1:17] if number == 7 else b * number
            expected = F.linear(x.cpu(), w.cpu(), vector.cpu())
            torch.testing.assert_close(F.linear(x, w, vector).cpu(), expected, rtol=2e-2,
                                       atol=5e-2 if dtype is torch.bfloat16 else 1e-4)
        assert calls
        assert cupy.state is None or len(cupy.state.biased) > len(calls)  # the others were a stub's
