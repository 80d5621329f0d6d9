"""What a call gives on both sides: values, or the type and text of the error."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np


def outcome(call: Callable[[], Any]) -> Any:
    """The result of a call; of an error its type and text, in which both libraries have PyTorch's name."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return call()
        except Exception as error:
            return type(error).__name__, str(error).replace("flambeau.", "torch.")


def assert_same(ours: Any, theirs: Any, tolerance: float = 0.0, what: str = "") -> None:
    """Equal dtype and shape, numbers to a relative tolerance; errors and other objects are equal."""
    if not hasattr(theirs, "detach"):
        assert ours == theirs, f"{what}: {ours!r} instead of {theirs!r}"
        return
    assert hasattr(ours, "detach"), f"{what}: {ours!r} instead of {theirs!r}"
    assert str(ours.dtype).split(".")[-1] == str(theirs.dtype).split(".")[-1], what
    assert tuple(ours.shape) == tuple(theirs.shape), f"{what}: {ours.shape} instead of {theirs.shape}"
    a, b = ours.detach().numpy(), theirs.detach().numpy()
    if tolerance and b.dtype.kind == "f":
        np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance, err_msg=what)
    else:
        np.testing.assert_array_equal(a, b, err_msg=what)
