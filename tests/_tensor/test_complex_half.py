"""complex32: creation, conversions, views, arithmetic, derivatives and refusals are PyTorch's."""

from __future__ import annotations

import copy
import io
import pickle
import warnings
from typing import Any

import pytest

import flambeau

torch = pytest.importorskip("torch")
pytestmark = [pytest.mark.parity, pytest.mark.filterwarnings("ignore")]

PROGRAMS = """
t([[1 + 2j, float("nan")], [1e6, -1e-5j]], dtype=c)
t(2.5, dtype=c)
lib.zeros(2, dtype=c), lib.ones(2, dtype=c), lib.full((2,), 1 + 1j, dtype=c), lib.full_like(x, 2j)
lib.randn(2, 9, dtype=c).tolist(), lib.rand(2, dtype=c), lib.rand_like(x).tolist(), lib.randn_like(x).tolist()
lib.zeros(2, dtype=c).uniform_(), lib.zeros(2, dtype=c).normal_()
x.real, x.imag, x.conj(), lib.view_as_real(x), x.view(lib.float16), x.view(lib.int32)
x.real.fill_(3), x.imag.neg_(), x
lib.view_as_complex(lib.ones(2, 2, dtype=lib.half)), lib.complex(x.real, x.imag)
x.to(lib.complex64), x.to(lib.complex128), x.float(), x.half(), x.bfloat16(), x.int(), x.bool()
lib.ones(2).chalf(), lib.ones(2, dtype=lib.int).to(c), lib.ones(2, dtype=lib.bfloat16).to(c), x.chalf() is x
t([1, 2j], dtype=lib.complex128).to(c), lib.arange(6).reshape(2, 3).to(lib.complex64).t().to(c)
x + x, x - x, x * x, -x, abs(x), x == x, x != 1, x + 1, x * 1.5, x + 1j, 2 - x
x + lib.ones(2), x + lib.ones(2, dtype=lib.float64), x + lib.ones(2, dtype=lib.int), x * lib.ones(2).bfloat16()
lib.ones(1, dtype=lib.half) * 1j, lib.ones(1).bfloat16() * 1j, lib.result_type(x, lib.ones(1))
x.half().add_(x)
x.clone().add_(x, alpha=2j), x.clone().mul_(x), x.clone().sgn_(), x.clone().zero_()
lib.cat([x, x]), lib.stack([x, x]), x.repeat(2), x.roll(1), x.diag(), x.tril(), x.index_select(0, i)
x.masked_fill(x == x, 2j), x.index_fill(0, i, 2j), lib.where(x == x, x, -x), x.index_put_((i,), x[:1])
x.isnan(), x.isfinite(), x.isreal(), x.nonzero(), x.any(), x.all(), x.norm(), x.std(), x.allclose(x)
x.tolist(), x[0].item(), complex(x[0]), bool(x[0]), x.type(), x.element_size(), lib.is_complex(x), x.is_floating_point()
copy.deepcopy(x), load(x), lib.from_dlpack(x), x.storage().tolist(), x.to_sparse().to_dense()
lib.ones(100, 100, dtype=c).mul(2)[0, 0], lib.arange(20000).to(c)[-1]
lib.nn.functional.conv1d(lib.ones(1, 1, 2, dtype=c), lib.full((1, 1, 1), 1j, dtype=c))
x.clone().fill_(2), lib.fill(x, 1j), t([complex(1e6, 1), 0], dtype=c).sgn().isnan()
t([complex(-6e4, float("inf")), 3 + 4j, 0]).sgn().isnan()
x.numpy()
x / x
x.exp()
x.sum()
x.cumsum(0)
x.pow(2)
x > x
x.relu()
lib.arange(3, dtype=c)
lib.linspace(0.5, 1, 1, dtype=c), lib.linspace(0, 1, 0, dtype=c), lib.logspace(0, 1, 1, dtype=c)
lib.linspace(0, 1, 2, dtype=c)
lib.logspace(0, 1, 2, out=lib.empty(2, dtype=c))
lib.block_diag(x, x), lib.unsafe_chunk(x, 2), x.unsafe_split(1), lib.as_strided_scatter(x, x[:1], (1,), (1,))
x.reshape(2, 1).H, x.reshape(1, 2).mH, x.reshape(1, 2).adjoint(), x[0].H, x.real.reshape(2, 1).mH
x.index_add(0, lib.tensor([1, 1]), x, alpha=2j), x[0].index_add(0, i, x[0]), x.index_put((i,), x[:1], accumulate=True)
x.reshape(1, 2).index_add(1, i, x.reshape(1, 2)[:, 1:]), x.reshape(1, 2).index_put((i, i), x[1], accumulate=True)
x.index_put((x.real > 0,), x, accumulate=True), lib.ones(2, 99, dtype=c).index_add(0, i, lib.ones(1, 99, dtype=c))[0, 1]
[lib.promote_types(c, d) for d in (lib.complex64, lib.float32, lib.float64, lib.half, lib.bfloat16, lib.int64)]
c.to_real(), lib.half.to_complex(), lib.bfloat16.to_complex(), c.to_complex(), lib.can_cast(c, lib.half), lib.finfo(c)
gradients(lambda w: (w * w.conj()).real.sum()), gradients(lambda w: abs(w).sum())
gradients(lambda w: (w * 2j).imag.sum())
gradients(lambda w: w.reshape(2, 1).mH.imag.sum())
gradients(lambda w: w.index_add(0, w.new_ones(1).int(), w[:1]).imag.sum())
gradients(lambda w: lib.block_diag(w.reshape(2, 1), w.reshape(1, 2)).imag.sum())
gradients(lambda w: w.unsafe_split(1)[0].imag.sum())
gradients(lambda w: lib.view_as_real(w).sum()), gradients(lambda w: abs(w.to(lib.complex64)).sum())
gradients(lambda w: lib.stack([w, w - 1]).real.sum()), gradients(lambda w: w.reshape(2, 1)[0].imag.sum())
lib.ones(2, dtype=lib.half, requires_grad=True) * 2j
"""


@pytest.mark.parametrize("program", PROGRAMS.strip().split("\n"))
def test_programs(program: str) -> None:
    found = []
    for lib in (torch, flambeau):
        lib.manual_seed(0)

        def gradients(f: Any, lib: Any = lib) -> Any:
            w = lib.tensor([1 + 2j, 2], dtype=lib.complex32, requires_grad=True)
            (f(w) + f(w)).backward()
            return w.grad + 0  # without negative zeros

        def load(x: Any, lib: Any = lib) -> Any:
            file = io.BytesIO()
            lib.save(x, file)
            file.seek(0)
            return lib.load(file)

        names = {"lib": lib, "c": lib.complex32, "t": lib.tensor, "i": lib.tensor([0]), "copy": copy, "load": load,
                 "x": lib.tensor([1 + 2j, 3 - 1j], dtype=lib.complex32), "gradients": gradients}
        try:
            found.append(repr(eval(program, names)).replace("flambeau", "torch"))
        except Exception as error:
            found.append(f"{type(error).__name__}: {error}")
    assert found[0] == found[1]


def test_pickles_and_dtype_views() -> None:
    x = flambeau.tensor([1 + 2j], dtype=flambeau.chalf)
    assert pickle.loads(pickle.dumps(x)).tolist() == [1 + 2j]
    y = x.clone().requires_grad_().mul(1)
    y.real.mul_(2)  # a write through a view of another dtype
    y.imag.sum().backward()
    assert y.tolist() == [2 + 2j]


@pytest.mark.parametrize("make", [
    lambda c, x: flambeau.zeros(2, dtype=c), lambda c, x: flambeau.randn(2, dtype=c), lambda c, x: x + 1,
    lambda c, x: flambeau.empty_like(x), lambda c, x: flambeau.ones(2).to(c)])
def test_the_dtype_is_experimental(make: Any) -> None:
    x = flambeau.zeros(2, dtype=flambeau.chalf)
    always = flambeau.is_warn_always_enabled()
    flambeau.set_warn_always(True)
    try:
        with warnings.catch_warnings(record=True) as given:
            warnings.simplefilter("always")
            make(flambeau.chalf, x)
    finally:
        flambeau.set_warn_always(always)
    assert [str(each.message) for each in given] == [
        "ComplexHalf support is experimental and many operators don't support it yet."]
