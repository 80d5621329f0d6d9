"""`numpy.random` on tensors, from PyTorch's generator, or from NumPy's by the setting `use_numpy_random_stream`."""

from __future__ import annotations

import functools
from collections.abc import Callable
from math import prod, sqrt
from typing import Any

import numpy as np

import flambeau as torch

from . import _dtypes_impl, _ndarray, _util
from ._normalizations import ArrayLike, OptionalArray, array_or_scalar, normalizer


def use_numpy_random() -> bool:
    """Whether numbers come from NumPy's generator."""
    return bool(torch._dynamo.config.use_numpy_random_stream)


def _from_either(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function that is NumPy's one of its name where the setting says so."""
    @functools.wraps(function)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        if not use_numpy_random():
            return function(*args, **kwargs)

        def array(x: Any) -> Any:
            return x.tensor.numpy() if isinstance(x, _ndarray.ndarray) else x

        value = getattr(np.random, function.__name__)(*map(array, args), **{k: array(x) for k, x in kwargs.items()})
        return _ndarray.ndarray(torch.as_tensor(value)) if isinstance(value, np.ndarray) else value

    return wrapped


def _new(size: Any) -> Any:
    return torch.empty(() if size is None else size, dtype=_dtypes_impl.default_dtypes().float_dtype)


def _returned(values: Any, size: Any, py_type: Callable[[Any], Any] = float) -> Any:
    return array_or_scalar(values, py_type, return_scalar=size is None or size == ())


@_from_either
def seed(seed: int | None = None) -> None:
    """Set the generator's seed."""
    if seed is not None:
        torch.random.manual_seed(seed)


@_from_either
def random_sample(size: Any = None) -> Any:
    """Uniform numbers from 0 to 1.

    >>> 0 <= random_sample() < 1
    True
    """
    return _returned(_new(size).uniform_(), size)


def rand(*size: int) -> Any:
    """`random_sample` of a shape."""
    return random_sample(size or None)


sample = random = random_sample


@_from_either
def uniform(low: float = 0.0, high: float = 1.0, size: Any = None) -> Any:
    """Uniform numbers between two bounds."""
    return _returned(_new(size).uniform_(low, high), size)


@_from_either
def randn(*size: int) -> Any:
    """Standard normal numbers."""
    return _returned(torch.randn(size, dtype=_dtypes_impl.default_dtypes().float_dtype), size)


@_from_either
def normal(loc: float = 0.0, scale: float = 1.0, size: Any = None) -> Any:
    """Normal numbers."""
    return _returned(_new(size).normal_(loc, scale), size)


@_from_either
def shuffle(x: Any) -> None:
    """Bring the rows of an array into a random order.

    Raises:
        NotImplementedError: it is no array.
    """
    tensor = _util.ndarrays_to_tensors(x)
    if not isinstance(tensor, torch.Tensor):
        raise NotImplementedError("We do not random.shuffle lists in-place")
    tensor.copy_(tensor[torch.randperm(tensor.shape[0])])


@_from_either
def randint(low: int, high: int | None = None, size: Any = None) -> Any:
    """Integers from `low`, or from 0 to `low` if that is all."""
    if high is None:
        low, high = 0, low
    sizes = () if size is None else size if isinstance(size, (tuple, list)) else (size,)
    return _returned(torch.randint(low, high, size=sizes), sizes, int)


@_from_either
@normalizer
def choice(a: ArrayLike, size: Any = None, replace: bool = True, p: OptionalArray = None) -> Any:
    """Rows of an array by chance; of a number n those of range(n).

    Args:
        a: the array.
        size: how many, or the shape of the result.
        replace: whether a row may be drawn again.
        p: their probabilities.

    Raises:
        ValueError: the probabilities do not sum to 1.
    """
    values = torch.arange(a) if a.numel() == 1 else a
    count = 1 if size is None else prod(size) if _util.is_sequence(size) else size
    p = torch.ones_like(values) / values.shape[0] if p is None else p
    if abs(p.sum() - 1.0) > sqrt(torch.finfo(p.dtype).eps):
        raise ValueError("probabilities do not sum to 1.")
    positions = torch.multinomial(p, count, replacement=replace)
    return values[positions.reshape(size) if _util.is_sequence(size) else positions]


__all__ = ["choice", "normal", "rand", "randint", "randn", "random", "random_sample", "sample", "seed", "shuffle",
           "uniform"]
