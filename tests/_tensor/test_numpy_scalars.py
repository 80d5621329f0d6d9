"""Scalars of NumPy as parameters of operators: numbers, whose dtype does not decide that of the result."""

from __future__ import annotations

import numpy as np
import pytest

import flambeau as torch
import flambeau.nn.functional as F

X, HALF = torch.tensor([0.5, -1.0]), np.float64(0.5)

CALLS = {
    "clamp": lambda n: X.clamp(min=n), "clamp both": lambda n: X.clamp(-n, n),
    "add": lambda n: torch.add(X, X, alpha=n),
    "softplus": lambda n: F.softplus(X, n), "elu": lambda n: F.elu(X, alpha=n), "leaky": lambda n: F.leaky_relu(X, n),
    "threshold": lambda n: F.threshold(X, n, n), "addcmul": lambda n: torch.addcmul(X, X, X, value=n),
    "lerp": lambda n: torch.lerp(X, X, n), "huber": lambda n: F.huber_loss(X, 2 * X, delta=n),
    "logit": lambda n: torch.logit(X, n), "remainder": lambda n: torch.remainder(X, n),
    "rms_norm": lambda n: F.rms_norm(X, (2,), eps=n), "rrelu": lambda n: F.rrelu(X, n, n),
    "cross_entropy": lambda n: F.cross_entropy(X[None], torch.tensor([0]), label_smoothing=n),
    "full": lambda n: torch.full((2,), n), "normalize": lambda n: F.normalize(X, dim=0, eps=n),
}


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("scalar", [HALF, np.float32(0.5)], ids=["float64", "float32"])
def test_the_result_is_that_of_the_number(name: str, scalar: np.generic) -> None:
    result, expected = CALLS[name](scalar), CALLS[name](0.5)
    assert result.dtype == expected.dtype == torch.float32
    assert torch.equal(result.nan_to_num(7), expected.nan_to_num(7))


def test_fill_values() -> None:
    values = ((np.float32(1), torch.float32), (np.int32(1), torch.int64), (np.bool_(True), torch.float32))
    for value, dtype in values:
        assert torch.full((2,), value).dtype == dtype


@pytest.mark.parametrize("default", [torch.float32, torch.float64])
def test_the_class_tensor_as_a_type_is_the_default_dtype(default: torch.dtype) -> None:
    before = torch.get_default_dtype()
    torch.set_default_dtype(default)
    try:
        assert (X > 0).type(torch.Tensor).dtype == default
        assert X.type("torch.Tensor").dtype == default
    finally:
        torch.set_default_dtype(before)
