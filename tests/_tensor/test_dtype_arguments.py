"""Python's scalar types as `dtype=` arguments, compared with PyTorch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import flambeau

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.parity

CALLS: dict[str, Callable[[Any, Any], Any]] = {
    "zeros": lambda t, d: t.zeros(2, dtype=d),
    "ones": lambda t, d: t.ones(2, dtype=d),
    "empty": lambda t, d: t.empty(0, dtype=d),
    "full": lambda t, d: t.full((2,), 1, dtype=d),
    "eye": lambda t, d: t.eye(3, dtype=d),
    "tensor": lambda t, d: t.tensor([1, 0], dtype=d),
    "as_tensor": lambda t, d: t.as_tensor([1, 0], dtype=d),
    "zeros_like": lambda t, d: t.zeros_like(t.ones(2), dtype=d),
    "ones_like": lambda t, d: t.ones_like(t.ones(2), dtype=d),
    "full_like": lambda t, d: t.full_like(t.ones(2), 1, dtype=d),
    "new_zeros": lambda t, d: t.ones(2).new_zeros(2, dtype=d),
    "new_full": lambda t, d: t.ones(2).new_full((2,), 1, dtype=d),
    "new_tensor": lambda t, d: t.ones(2).new_tensor([1, 2], dtype=d),
    "to": lambda t, d: t.ones(2).to(d),
    "to dtype=": lambda t, d: t.ones(2).to(dtype=d),
    "to device and dtype": lambda t, d: t.ones(2).to("cpu", d),
    "scalar_tensor": lambda t, d: t.scalar_tensor(2, dtype=d),
    "view": lambda t, d: t.zeros(2, dtype=t.float64).view(d),
    "sum": lambda t, d: t.ones(2).sum(dtype=d),
    "prod": lambda t, d: t.ones(2).prod(dtype=d),
}


@pytest.mark.parametrize("scalar_type", [bool, int, float, complex])
@pytest.mark.parametrize("name", CALLS)
def test_python_scalar_types_name_dtypes(name: str, scalar_type: type) -> None:
    ours, theirs = CALLS[name](flambeau, scalar_type), CALLS[name](torch, scalar_type)
    assert str(ours.dtype).partition(".")[2] == str(theirs.dtype).partition(".")[2]
    assert ours.tolist() == theirs.tolist()


@pytest.mark.parametrize("name", ["arange", "linspace"])
def test_sequences_of_python_floats(name: str) -> None:
    arguments = {"arange": (3,), "linspace": (0, 1, 3)}[name]
    ours = getattr(flambeau, name)(*arguments, dtype=float)
    assert ours.dtype is flambeau.float64
    assert ours.tolist() == getattr(torch, name)(*arguments, dtype=float).tolist()


@pytest.mark.parametrize("name", ["rand", "randn"])
def test_random_python_floats(name: str) -> None:
    values = []
    for module in (flambeau, torch):
        module.manual_seed(0)
        values.append([getattr(module, name)(3, dtype=float).tolist(),
                       getattr(module, f"{name}_like")(module.ones(3), dtype=float).tolist()])
    assert values[0] == values[1]


@pytest.mark.parametrize("name", ["zeros", "ones", "full", "full_like"])
def test_other_classes_are_refused(name: str) -> None:
    messages = []
    for module in (flambeau, torch):
        with pytest.raises(TypeError) as caught:
            CALLS[name](module, str)
        messages.append(str(caught.value).partition("\n")[0])
    assert messages[0] == messages[1]
