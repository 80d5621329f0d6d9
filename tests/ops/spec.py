"""Test records: the samples and properties of each operator, which the generic tests run over."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Sample:
    """One call: tensors and other arguments as the user would pass them."""

    args: tuple[Any, ...]
    kwargs: dict[str, Any] = field(default_factory=dict)


def sample(*args: Any, **kwargs: Any) -> Sample:
    """A call with these arguments."""
    return Sample(args, kwargs)


class Make:
    """Makes sample tensors from a fixed seed."""

    def __init__(self, module: Any, dtype: Any, requires_grad: bool = False, seed: int = 0) -> None:
        self.module, self.dtype, self.requires_grad = module, dtype, requires_grad
        self.random = np.random.default_rng(seed)

    def __call__(self, *shape: int, low: float = -2.0, high: float = 2.0, dtype: Any = None,
                 requires_grad: bool | None = None) -> Any:
        """A tensor with elements spread evenly between `low` and `high`."""
        d = dtype or self.dtype
        values = self.random.uniform(low, high, shape)
        if d.is_complex:
            values = values + 1j * self.random.uniform(low, high, shape)
        x = self.module.tensor(values, dtype=d)
        wants = self.requires_grad if requires_grad is None else requires_grad
        return x.requires_grad_() if wants and (d.is_floating_point or d.is_complex) else x

    def apart(self, *shape: int, gap: float = 0.1, low: float = -2.0, high: float = 2.0) -> Any:
        """A tensor whose elements differ from each other and from 0 by about `gap` or more, in random order.

        For functions with kinks: where elements are compared, a finite difference must not change the order.
        """
        count = int(np.prod(shape, dtype=int))
        values = np.linspace(low, high, count + 1)[:-1] + 0.2718 * (high - low) / max(count, 1)
        values = np.where(np.abs(values) < gap, gap, values)
        x = self.module.tensor(self.random.permutation(values).reshape(shape), dtype=self.dtype)
        return x.requires_grad_() if self.requires_grad and self.dtype.is_floating_point else x

    def integers(self, *shape: int, low: int = 0, high: int = 5, dtype: Any = None) -> Any:
        """An integer tensor with elements in [low, high)."""
        return self.module.tensor(self.random.integers(low, high, shape), dtype=dtype or self.module.int64)

    def bools(self, *shape: int) -> Any:
        """A bool tensor."""
        return self.module.tensor(self.random.random(shape) < 0.5)


@dataclass(frozen=True)
class Record:
    """The samples and properties of one operator."""

    name: str  # its public path: "exp", "nn.functional.relu", "Tensor.view"
    samples: Callable[[Make], Iterable[Sample]]
    reference: Callable[..., Any] | None = None  # on arrays: the value it should have
    differentiable: bool = True
    twice: bool = True  # has second derivatives
    complex: bool = False  # also for complex numbers
    inplace: str | None = None  # the in-place method's name, where it is not `name_`
    integers: bool = False  # also for integer tensors
    floats: bool = True  # takes floating point tensors at all
    keeps_dtype: bool = True  # floating point results have the input's dtype
    any_layout: bool = True  # takes tensors of any strides
    covers: tuple[str, ...] = ()  # other declared operators (keys) that these samples call


RECORDS: dict[str, Record] = {}


def record(name: str, samples: Callable[[Make], Iterable[Sample]], **what: Any) -> None:
    """Register the record of one operator."""
    assert name not in RECORDS, f"two records of {name}"
    RECORDS[name] = Record(name, samples, **what)


def load() -> dict[str, Record]:
    """All records, of every family."""
    for path in sorted(Path(__file__).parent.glob("records_*.py")):
        importlib.import_module(f"tests.ops.{path.stem}")
    return RECORDS


def public(module: Any, name: str) -> Callable[..., Any]:
    """The function of a record's path: `module.nn.functional.relu`, or a method as a function of its tensor."""
    found = module
    for part in name.split("."):
        found = getattr(found, part)
    return found  # type: ignore[no-any-return]
