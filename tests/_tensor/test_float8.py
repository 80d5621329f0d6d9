"""Tensors of eight-bit floating point numbers, compared with PyTorch's."""

from __future__ import annotations

import io

import numpy as np
import pytest

import flambeau

NAMES = ("float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz", "float8_e8m0fnu")
CALLS = ("x", "x.float()", "x * x", "x == x", "x[1]", "x.tolist()", "lib.cat([x, x])", "x.view(lib.uint8)", "x.abs()",
         "lib.ones(2, dtype=d)", "lib.full((2,), 2., dtype=d)", "lib.tensor([1., 1e9], dtype=d)", "lib.ones_like(x)",
         "x.repeat(2)", "x.new_ones(2)", "x.int()", "x.bool()", "x.isnan()", "x.type()", "x.is_signed()", "x.numpy()",
         "lib.finfo(d)", "lib.promote_types(d, lib.int8)", "x + lib.ones(3)", "x.sum(dtype=lib.float32)", "-x",
         "lib.set_default_dtype(d)", "x[lib.tensor([2, 0])]", "x.clone().fill_(4.)", "x.mT if x.ndim > 1 else x.t()",
         "x.to(lib.float8_e5m2)", "x.untyped_storage().nbytes()", "x.double().to(d)", "x.sum()", "x.any()")


def text(program, lib, d):
    scope = {"lib": lib, "d": getattr(lib, d), "x": lib.tensor([1.0, 1.3, 0.02]).to(getattr(lib, d))}
    try:
        return repr(eval(program, scope)).replace("flambeau.", "torch.")
    except Exception as error:
        return f"{type(error).__name__}: {error}".replace("flambeau.", "torch.")


@pytest.mark.parity
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("program", CALLS)
def test_calls(program, name):
    torch = pytest.importorskip("torch")
    if program == "-x":
        assert text(program, flambeau, name).startswith("NotImplementedError")
    else:
        assert text(program, flambeau, name) == text(program, torch, name)


@pytest.mark.parity
@pytest.mark.parametrize("name", NAMES)
def test_all_codes_and_rounding(name):
    torch = pytest.importorskip("torch")
    codes = np.arange(256, dtype=np.uint8)
    theirs = torch.from_numpy(codes).view(getattr(torch, name)).float().numpy()
    ours = flambeau.from_numpy(codes).view(getattr(flambeau, name)).float().numpy()
    np.testing.assert_array_equal(ours, theirs)
    numbers = np.unique(np.abs(theirs[np.isfinite(theirs)]))
    ties = (numbers[1:] + numbers[:-1]) / 2
    x = np.concatenate([numbers, ties, np.nextafter(ties, np.float32(np.inf)), np.nextafter(ties, np.float32(0)),
                        np.random.default_rng(0).integers(0, 2**32, 20_000, np.uint32).view(np.float32),
                        np.array([464, 465, 248, 61_440, np.inf, np.nan], np.float32)])
    x = np.concatenate([x, -x])
    expected = torch.from_numpy(x).to(getattr(torch, name)).view(torch.uint8).numpy()
    result = flambeau.from_numpy(x).to(getattr(flambeau, name)).view(flambeau.uint8).numpy()
    np.testing.assert_array_equal(result, expected)


def test_two_numbers_of_four_bits_in_a_byte():
    x = flambeau.tensor([33, 243], dtype=flambeau.uint8).view(flambeau.float4_e2m1fn_x2)
    assert x.view(flambeau.uint8).tolist() == [33, 243]
    with pytest.raises(NotImplementedError, match="copy_kernel"):
        x.float()


@pytest.mark.parametrize("name", NAMES)
def test_save_and_load(name):
    x = flambeau.tensor([1.0, 4.0]).to(getattr(flambeau, name))
    file = io.BytesIO()
    flambeau.save({"x": x}, file)
    file.seek(0)
    loaded = flambeau.load(file)["x"]
    assert loaded.dtype is x.dtype
    assert loaded.tolist() == [1.0, 4.0]
