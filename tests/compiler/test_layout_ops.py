"""Operators that move elements, index or scan are compiled without fallbacks, and equal eager."""

from __future__ import annotations

import pytest

import flambeau as torch
from flambeau import codegen
from flambeau.nn import functional as fn

pytestmark = pytest.mark.skipif(not codegen.available(), reason="llvmlite is not installed, or FLAMBEAU_JIT is 0")

SOME, COLUMN, INSIDE = torch.tensor([1, -2, 0, 1]), torch.tensor([[0], [3]]), torch.tensor([2, 0, 0, 4])

MOVES = {
    "flip": lambda x: x.flip(1), "flip two": lambda x: x.flip(0, 2) * 2, "flip and add": lambda x: x.flip(-1) + x,
    "fliplr": torch.fliplr, "rot90": lambda x: torch.rot90(x, 1, (0, 1)), "rot270": lambda x: torch.rot90(x, 3, (0, 2)),
    "rot180": lambda x: torch.rot90(x, 2, (2, 1)), "roll": lambda x: x.roll(3, 1), "roll all": lambda x: x.roll(-7),
    "roll two": lambda x: x.roll((1, 2), (0, 2)), "repeat": lambda x: x.repeat(2, 1, 3),
    "repeat more": lambda x: x.repeat(2, 1, 3, 1), "reflect": lambda x: fn.pad(x, (2, 1), mode="reflect"),
    "reflect two": lambda x: fn.pad(x[None], (2, 1, 1, 3), mode="reflect"),
    "replicate": lambda x: fn.pad(x[None], (2, 1, 1, 3), mode="replicate"),
    "circular": lambda x: fn.pad(x[None], (2, 1, 1, 3), mode="circular"), "unfold": lambda x: x.unfold(1, 3, 2),
    "diagonal": lambda x: x.diagonal(1, 0, 2), "diagonal below": lambda x: x.diagonal(-2, 2, 1) * 3,
    "index_select": lambda x: x.index_select(1, INSIDE), "index_add": lambda x: x.index_add(1, INSIDE, x[:, :4]),
    "index": lambda x: x[SOME], "index two": lambda x: x[SOME, SOME], "index behind": lambda x: x[..., SOME],
    "index of one dimension": lambda x: x[:, SOME], "index by a column": lambda x: x[:, SOME, COLUMN],
    "max": lambda x: x.max(1)[0], "max places": lambda x: x.max(1)[1], "min": lambda x: x.min(2, keepdim=True)[0],
    "amax": lambda x: x.amax((0, 2)), "largest": lambda x: x.max(), "infinity norm": lambda x: x.norm(float("inf")),
    "bilinear": lambda x: fn.interpolate(x[None], scale_factor=2, mode="bilinear"),
    "nearest": lambda x: fn.interpolate(x, scale_factor=2),
    "cumsum": lambda x: x.cumsum(1), "cumsum of the last": lambda x: x.cumsum(-1), "cumprod": lambda x: x.cumprod(0),
    "cummax": lambda x: x.cummax(1)[0], "cummin places": lambda x: x.cummin(0)[1],
    "logcumsumexp": lambda x: x.logcumsumexp(1), "prod": lambda x: x.prod(1), "prod of all": lambda x: x[0].prod(),
}


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("name", MOVES)
def test_results_and_gradients(name, dtype):
    function = MOVES[name]

    def both(x):
        leaf = x.detach().clone().requires_grad_()
        y = function(leaf)
        if y.is_floating_point():
            (y * y.detach()).sum().backward()
        return function(x), leaf.grad

    for shape in ((6, 8, 5), (31, 40, 33)):
        made = torch.compile(both)
        for turn in range(4):
            x = torch.randn(shape, dtype=dtype, generator=torch.Generator().manual_seed(turn))
            for expected, found in zip(both(x), made(x), strict=True):
                assert (expected is None) == (found is None)
                if expected is not None:
                    assert expected.stride() == found.stride()
                    torch.testing.assert_close(found, expected)
        replay, = [replay for kind in made._signatures.values() for replay in kind.entries]
        assert "fallback" not in [kernel.name for kernel in replay.program.schedule.kernels]


@pytest.mark.parametrize("function", [lambda x, i: x[i], lambda x, i: x.index_select(0, i), lambda x, i: x[i, i]])
def test_out_of_range_indices_raise_as_in_eager(function):
    made, x = torch.compile(function), torch.randn(5, 5)
    for _ in range(3):
        torch.testing.assert_close(made(x, torch.tensor([1, 4])), function(x, torch.tensor([1, 4])))
    for wrong in (5, 17, -6):
        with pytest.raises(IndexError) as expected:
            function(x, torch.tensor([1, wrong]))
        with pytest.raises(IndexError) as found:
            made(x, torch.tensor([1, wrong]))
        assert str(found.value) == str(expected.value)


def test_nan_is_the_largest_and_the_smallest():
    x = torch.tensor([[1., float("nan"), 3.], [2., 2., 1.]])
    for name in ("max", "min"):
        made = torch.compile(lambda x, name=name: getattr(x, name)(1))
        for _ in range(3):
            for expected, found in zip(getattr(x, name)(1), made(x), strict=True):
                torch.testing.assert_close(found, expected, equal_nan=True)


@pytest.mark.parametrize("dtype", [torch.complex128, torch.complex64, torch.bfloat16, torch.int8, torch.bool], ids=str)
@pytest.mark.parametrize("name", ["index", "index two", "index_select", "flip", "roll", "repeat", "bilinear"])
def test_other_dtypes(name, dtype):
    function = MOVES[name]
    if name == "bilinear" and not dtype.is_floating_point:
        return
    compiled = torch.compile(function)
    for seed in range(4):
        torch.manual_seed(seed)
        real = torch.randn(4, 5, 6) * 3
        x = torch.complex(real, real.flip(0)).to(dtype) if dtype.is_complex else real.to(dtype)
        found, expected = compiled(x), function(x)
        assert found.dtype is expected.dtype
        assert torch.equal(found, expected)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.bool, torch.complex64], ids=str)
@pytest.mark.parametrize("numbers", [[1, 2, 3], [0, 0, 0]], ids=str)
def test_tensors_created_from_scalars_inside(dtype, numbers):
    compiled = torch.compile(lambda x: x * torch.tensor(numbers, dtype=dtype))
    x = torch.ones(3, dtype=dtype)
    for _ in range(4):
        assert torch.equal(compiled(x), x * torch.tensor(numbers, dtype=dtype))


@pytest.mark.parametrize("seen", [lambda x: (x * (0.5 + 2j)).real, lambda x: (x * (0.5 + 2j)).imag,
                                  lambda x: torch.zeros_like(x, dtype=torch.complex128).real,
                                  lambda x: (x * 2).view(torch.int64), lambda x: torch.view_as_real(x * 1j)])
def test_results_viewed_as_another_dtype(seen):
    compiled = torch.compile(seen)
    for k in range(5):
        x = torch.arange(3, dtype=torch.float64) + k
        found, expected = compiled(x), seen(x)
        assert (found.dtype, found.stride()) == (expected.dtype, expected.stride())
        assert torch.equal(found, expected)


@pytest.mark.parametrize("shape", [(3, 4), (2, 3, 4), (7,), (1, 5), ()], ids=str)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16, torch.int64], ids=str)
def test_indices_into_computed_tensors(shape, dtype):
    def places(x):
        y = x * 2 + 1
        return y.argmax(), y.argmin(), y.mT.argmax() if y.ndim > 1 else y.argmax(), x.argmax()

    compiled = torch.compile(places)
    for seed in range(4):
        torch.manual_seed(seed)
        x = (torch.randn(shape) * 20).to(dtype)
        assert [each.item() for each in compiled(x)] == [each.item() for each in places(x)]


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float32], ids=str)
def test_scalars_of_narrow_dtypes(dtype):
    def numbers(x):
        half = torch.full((), 2.5, dtype=dtype)
        return x * half, torch.fill(x, 2.5), x + torch.tensor([0.5], dtype=dtype), fn.pad(x, (1, 1), value=2.5), (
            torch.nan_to_num(x / 0, 0.5, 2.5, -2.5)), x * 1j

    compiled = torch.compile(numbers)
    for k in range(4):
        x = (torch.arange(6.) - k).to(dtype)
        for found, expected in zip(compiled(x), numbers(x), strict=True):
            assert found.dtype is expected.dtype
            assert torch.equal(found, expected)
