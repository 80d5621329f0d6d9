"""Padding by kernels beside `numpy.pad`: shapes, borders, dtypes, known calls, gradients."""

from __future__ import annotations

import numpy as np
import pytest

import flambeau as torch
from flambeau import codegen, dtypes
from flambeau._tensor.fastpath.repeated_layouts import CALLS, PROOFS
from flambeau.backends.compiled import enable_kernels

pad = torch.nn.functional.pad
pytestmark = pytest.mark.skipif(not codegen.available(), reason="no generated code")
CASES = {
    "images": ((2, 3, 40, 50), [(1, 1, 1, 1), (3, 0, 2, 5), (0, 0, 0, 0), (49, 49, 39, 39)]),
    "cropped": ((2, 3, 40, 50), [(-1, 2, 3, 0)]), "sequences": ((2, 3, 700), [(1, 1), (5, 0), (699, 1)]),
    "volumes": ((2, 3, 6, 20, 30), [(1, 2, 3, 4, 5, 0)]), "narrow rows": ((2, 3, 900, 3), [(1, 1, 2, 2)]),
    "two columns": ((50, 50, 2), [(1, 1)]), "large": ((4, 3, 200, 210), [(2, 1, 0, 3)])}
MODES = {"reflect": "reflect", "replicate": "edge"}


@pytest.mark.parametrize("dtype", ["float32", "float64", "int64", "int32", "int8", "complex64", "bfloat16"])
@pytest.mark.parametrize("name", CASES)
def test_values(name, dtype):
    enable_kernels()
    shape, pads = CASES[name]
    kind = getattr(torch, dtype)
    array = dtypes.cast(np.random.default_rng(0).standard_normal(shape).astype(np.float32) * 50, kind.numpy)
    bits = array.view(np.uint16) if dtype == "bfloat16" else array
    x = torch.from_numpy(bits).view(kind) if dtype == "bfloat16" else torch.from_numpy(array)
    for widths in pads:
        borders = [(0, 0)] * (len(shape) - len(widths) // 2)
        borders += [(widths[i], widths[i + 1]) for i in range(len(widths) - 2, -1, -2)]
        for mode, of_numpy in MODES.items():
            expected = np.pad(bits, np.maximum(borders, 0), of_numpy)
            expected = expected[tuple(slice(max(-a, 0), n - max(-b, 0)) for n, (a, b) in zip(
                expected.shape, borders, strict=True))]
            for _ in range(CALLS + PROOFS + 3 if dtype == "float32" and x.numel() <= 65536 else 2):
                found = pad(x, widths, mode=mode)
            assert found.dtype is kind
            assert found.is_contiguous()
            found = found.view(torch.uint16) if dtype == "bfloat16" else found
            assert found.shape == expected.shape
            assert found.numpy().tobytes() == expected.tobytes(), (widths, mode)


def test_layouts_and_gradients():
    enable_kernels()
    array = np.random.default_rng(0).standard_normal((3, 60, 50)).astype(np.float32)
    x = torch.from_numpy(array).requires_grad_()
    for mode, of_numpy in MODES.items():
        result = pad(x.transpose(1, 2), (2, 3), mode=mode)
        assert np.array_equal(result.detach().numpy(), np.pad(array.transpose(0, 2, 1), [(0, 0), (0, 0), (2, 3)],
                                                              of_numpy))
        result.sum().backward()
        assert float(x.grad.sum()) == 3 * 50 * 65
        x.grad = None


def test_errors_remain():
    enable_kernels()
    x = torch.ones(3, 60, 50)
    with pytest.raises(RuntimeError, match="Padding size should be less than the corresponding input dimension"):
        pad(x, (50, 0), mode="reflect")
    assert pad(x, (50, 0), mode="replicate").shape == (3, 60, 100)
