"""`make_tensor` compared with PyTorch: the same values for the same seed, and the same errors."""

from __future__ import annotations

import math
import warnings
from typing import Any

import pytest

import flambeau

pytorch = pytest.importorskip("torch")

DTYPES = ["bool", "uint8", "int8", "int16", "int32", "int64", "uint16", "uint32", "uint64", "float16", "bfloat16",
          "float32", "float64", "complex64", "complex128"]
SHAPES: list[tuple[Any, ...]] = [(), (3,), (2, 3), (0,), (1,), ((2, 2),), ([3, 1],), (2, 3, 4, 5), (17,)]
OPTIONS: list[dict[str, Any]] = [
    {}, {"noncontiguous": True}, {"low": 0}, {"low": -1, "high": 3}, {"low": 0, "high": 1},
    {"low": 0, "high": 2, "exclude_zero": True}, {"requires_grad": True}, {"low": 2, "high": 2}, {"low": 3, "high": 2},
    {"low": math.nan}, {"low": -1e40, "high": 1e40}, {"low": 300, "high": 1e30}, {"low": 0.5, "high": 1.5},
    {"low": -math.inf, "high": math.inf}, {"high": -20}, {"memory_format": "channels_last"},
    {"memory_format": "contiguous_format", "noncontiguous": True}]


def outcome(t: Any, shape: tuple[Any, ...], dtype: str, options: dict[str, Any]) -> Any:
    given = dict(options)
    if "memory_format" in given:
        given["memory_format"] = getattr(t, given["memory_format"])
    t.manual_seed(3)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            x = t.testing.make_tensor(*shape, dtype=getattr(t, dtype), device="cpu", **given)
        except Exception as error:
            return type(error).__name__, str(error).replace("flambeau.", "torch.")
    values = x.detach().double() if dtype in ("float16", "bfloat16") else x.detach()
    return (str(x.dtype).rpartition(".")[2], tuple(x.shape), x.stride(), x.requires_grad, x.is_leaf, values.tolist(),
            [(w.category.__name__, str(w.message)) for w in caught])


@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize("dtype", DTYPES)
def test_equals_pytorch(dtype: str, options: dict[str, Any]) -> None:
    if "exclude_zero" in options and dtype in ("uint16", "uint32", "uint64"):
        return  # PyTorch cannot write to a mask of these
    for shape in SHAPES:
        assert outcome(flambeau, shape, dtype, options) == outcome(pytorch, shape, dtype, options), shape


def test_unsigned_numbers_without_zero() -> None:
    x = flambeau.testing.make_tensor(50, dtype=flambeau.uint16, device="cpu", low=0, high=2, exclude_zero=True)
    assert x.tolist() == [1] * 50


def test_invalid_dtypes() -> None:
    with pytest.raises(TypeError, match=r"The requested dtype '3' is not supported by torch.testing.make_tensor\(\)"):
        flambeau.testing.make_tensor(2, dtype=3, device="cpu")
    with pytest.raises(TypeError, match="missing 2 required keyword-only arguments: 'dtype' and 'device'"):
        flambeau.testing.make_tensor(2)
