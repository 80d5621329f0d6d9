"""Private functions of `torch` that are operators."""

from __future__ import annotations

import numpy as np
import pytest

import flambeau

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.parity


@pytest.mark.parametrize("name", flambeau._OF_ATEN)
def test_names_are_pytorchs(name):
    assert callable(getattr(torch, name))
    assert getattr(flambeau, name).__name__ == getattr(torch, name).__name__


def packed(m, dtype):
    """Inputs, weights and scales."""
    return (m.arange(64.0).reshape(2, 32).to(dtype), (m.arange(128).reshape(4, 32) % 23 - 11).to(m.int8),
            m.tensor([0.5, 1.0, 0.375, 2.0]).to(dtype))


CALLS = {
    "unsafe_index": lambda m, x: m._unsafe_index(x, [m.tensor([0, 1])]), "stack": lambda m, x: m._stack([x, x], 1),
    "convolution": lambda m, x: m._convolution(x[None], x[:2, None, :2], None, [1], [0], [1], False, [0], 2, False,
                                               False, True, True),
    "is_all_true": lambda m, x: m._is_all_true(x > 0), "to_dtype": lambda m, x: m._cast_Int(x),
    "no tensor": lambda m, x: m._adaptive_avg_pool2d(1, [1, 1]),
    "sizes": lambda m, x: m._assert_tensor_metadata(x, [2, 4]), "dtype": lambda m, x: m._assert_tensor_metadata(
        a=x, dtype=m.float64), "right": lambda m, x: m._assert_tensor_metadata(x, (2, 3), (3, 1), m.float32),
    # PyTorch's kernel reads beyond small weights
    "int8": lambda m, x: m._weight_int8pack_mm(*packed(m, m.float32)),
    "int8, rounded": lambda m, x: m._weight_int8pack_mm(*packed(m, m.bfloat16)),
    "weights of another dtype": lambda m, x: m._weight_int8pack_mm(x, x, x[0, :2]),
    "a vector": lambda m, x: m._weight_int8pack_mm(x[0], x, x[0, :2]),
    "too few scales": lambda m, x: m._weight_int8pack_mm(x, m.ones(4, 3, dtype=m.int8), x[0]),
    "scales of another dtype": lambda m, x: m._weight_int8pack_mm(*packed(m, m.float32)[:2], m.ones(4).double()),
}


@pytest.mark.parametrize("call", CALLS)
def test_results(call):
    def outcome(module):
        x = module.arange(6.0).reshape(2, 3) - 1.5
        try:
            result = CALLS[call](module, x)
        except Exception as error:
            return type(error), str(error)
        parts = result if isinstance(result, tuple) else (result,)
        return [None if each is None else (str(each.dtype).rpartition(".")[2], each.tolist()) for each in parts]

    assert outcome(flambeau) == outcome(torch)


#: functions of several results
SEVERAL = {
    "_scaled_dot_product_flash_attention_for_cpu": lambda f, x: f(x, x, x),
    "_scaled_dot_product_attention_math": lambda f, x: f(x, x, x),
    "_native_batch_norm_legit": lambda f, x: f(x, None, None, True, 0.1, 1e-5),
    "_fused_rms_norm": lambda f, x: f(x, [8], None, 1e-5),
    "_aminmax": lambda f, x: f(x),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", SEVERAL)
def test_functions_of_several_results(name):
    found, expected = (SEVERAL[name](getattr(module, name), module.linspace(-1, 2, 64).reshape(1, 2, 4, 8))
                       for module in (flambeau, torch))
    assert type(found).__name__ == type(expected).__name__
    for ours, theirs in zip(found, expected, strict=True):
        np.testing.assert_allclose(ours.numpy(), theirs.numpy(), rtol=1e-5, atol=1e-6)
