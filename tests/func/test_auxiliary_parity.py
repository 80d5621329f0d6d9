"""Auxiliary outputs (`has_aux`) of the function transforms compared with PyTorch: results and errors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import flambeau

pytorch = pytest.importorskip("torch")
pytestmark = pytest.mark.parity

TRANSFORMS: dict[str, Callable[..., Any]] = {
    "grad": lambda F, f, x: F.grad(lambda y: _scalar(f(y)), has_aux=True)(x),
    "grad_and_value": lambda F, f, x: F.grad_and_value(lambda y: _scalar(f(y)), has_aux=True)(x),
    "vjp": lambda F, f, x: F.vjp(f, x, has_aux=True)[::2], "jvp": lambda F, f, x: F.jvp(f, (x,), (x,), has_aux=True),
    "vjp's pullback": lambda F, f, x: F.vjp(f, x, has_aux=True)[1](x),
    "jacrev": lambda F, f, x: F.jacrev(f, has_aux=True)(x), "jacfwd": lambda F, f, x: F.jacfwd(f, has_aux=True)(x),
    "jvp in vmap": lambda F, f, x: F.vmap(lambda row: F.jvp(f, (row,), (row,), has_aux=True))(x),
    "vjp in grad": lambda F, f, x: F.grad(lambda y: F.vjp(lambda z: (z * z, z * y), y, has_aux=True)[2].sum())(x),
    "jvp in grad": lambda F, f, x: F.grad(
        lambda y: F.jvp(lambda z: (z * z, z * y), (y,), (y,), has_aux=True)[2].sum())(x),
}
FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "tensor": lambda x: (x * x, x * 2), "tree": lambda x: (x * x, {"a": x * 2, "b": (x.sin(),)}),
    "no tuple": lambda x: x, "list": lambda x: [x * x, x], "three": lambda x: (x, x, x),
    "number": lambda x: (x * x, 3), "text": lambda x: (x * x, "a"),
}


def _scalar(result: Any) -> Any:
    """The result with a scalar as its first part."""
    return (result[0].sum(), *result[1:]) if isinstance(result, tuple) else result


def _leaves(value: Any) -> list[Any]:
    if isinstance(value, dict):
        value = list(value.values())
    return [leaf for each in value for leaf in _leaves(each)] if isinstance(value, (list, tuple)) else [value]


def _run(library: Any, transform: Callable[..., Any], function: Callable[[Any], Any]) -> Any:
    try:
        return _leaves(transform(library.func, function, library.arange(3.) + 0.5))
    except (RuntimeError, ValueError, TypeError) as error:
        return f"{type(error).__name__}: {error}".split("\n")[0].replace("flambeau", "torch")


@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize("transform", TRANSFORMS)
def test_auxiliary_outputs_are_pytorchs(transform: str, function: str) -> None:
    expected, result = (_run(library, TRANSFORMS[transform], FUNCTIONS[function]) for library in (pytorch, flambeau))
    if isinstance(expected, str) or isinstance(result, str):
        assert result == expected
        return
    for x, y in zip(result, expected, strict=True):
        np.testing.assert_allclose(*((t.detach().numpy() if hasattr(t, "detach") else t) for t in (x, y)), rtol=1e-6)
