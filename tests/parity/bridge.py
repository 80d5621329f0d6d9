"""Values cross between PyTorch and the candidate here, through NumPy and bit for bit.

A `Side` is one of the two libraries. Both sides rebuild a sample from the same PyTorch tensors, with the
same strides and the same sharing of arguments, so that neither sees an object the other has touched.
"""

from __future__ import annotations

import dataclasses
import functools
import importlib
import inspect
import os
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

import numpy as np
import torch

from .rebind import Missing, path_of, rebind, resolve

# NumPy has no such dtypes: their values are exact in the wider one.
WIDENED = {
    torch.bfloat16: torch.float32,
    torch.complex32: torch.complex64,
    torch.float8_e4m3fn: torch.float32,
    torch.float8_e5m2: torch.float32,
    torch.float8_e4m3fnuz: torch.float32,
    torch.float8_e5m2fnuz: torch.float32,
}
WIDENED_NAMES = {
    str(narrow).rpartition(".")[2]: str(wide).rpartition(".")[2] for narrow, wide in WIDENED.items()
}


class Unsupported(Exception):
    """A sample holds something the bridge cannot carry (a sparse or quantised tensor)."""


def candidate_name() -> str:
    """The module under test: the environment's FLAMBEAU_CANDIDATE, or flambeau."""
    return os.environ.get("FLAMBEAU_CANDIDATE", "flambeau")


def dtype_name(dtype: Any) -> str:
    """'float32' for torch.float32, whichever library the dtype belongs to."""
    return str(dtype).rpartition(".")[2]


def memory_of(tensor: torch.Tensor) -> np.ndarray:
    """A copy of the flat memory the tensor spans, gaps included, so that any layout can be rebuilt."""
    if tensor.layout is not torch.strided or tensor.is_quantized or tensor.device.type != "cpu":
        raise Unsupported(f"{tensor.layout} tensor on {tensor.device}")
    tensor = tensor.detach().resolve_conj().resolve_neg()
    shape, stride = tuple(tensor.shape), tuple(tensor.stride())
    span = 0 if 0 in shape else 1 + sum((n - 1) * s for n, s in zip(shape, stride, strict=True))
    memory = torch.as_strided(tensor, (span,), (1,), tensor.storage_offset())
    return memory.to(WIDENED.get(tensor.dtype, tensor.dtype)).numpy(force=True).copy()


class Side:
    """One of the two libraries, and how values get into and out of it."""

    def __init__(self, module: ModuleType):
        self.module = module
        self.name = module.__name__

    @classmethod
    @functools.cache
    def named(cls, name: str) -> Side:
        return cls(importlib.import_module(name))

    def seed(self, value: int = 20) -> None:
        """Put the default generator of this side into the state both sides share."""
        if seed := getattr(self.module, "manual_seed", None):
            seed(value)

    def is_tensor(self, value: Any) -> bool:
        return isinstance(value, self.module.Tensor)

    def dtype(self, name: str) -> Any:
        """The dtype of this name; Missing where the library has none, or no tensors of it."""
        found = resolve(self.module, name)
        try:
            self.module.empty(0, dtype=found)
        except NotImplementedError:
            raise Missing(name) from None
        return found

    def has_dtype(self, name: str) -> bool:
        """Whether the library has tensors of the dtype of this name."""
        try:
            self.dtype(name)
        except Missing:
            return False
        return True

    # ---- in

    def tensor(self, source: torch.Tensor) -> Any:
        """The tensor of this side with the same values, dtype, strides and requires_grad."""
        memory = memory_of(source)
        shape, stride = tuple(source.shape), tuple(source.stride())
        array = np.lib.stride_tricks.as_strided(memory, shape, tuple(s * memory.itemsize for s in stride))
        made = self.module.from_numpy(array)
        if array.flags.c_contiguous:
            made = made.clone()  # memory of the library's own, which it may resize
        if source.dtype in WIDENED:
            narrow = self.dtype(dtype_name(source.dtype))
            made = made.to(narrow)
            if tuple(made.stride()) != stride:  # a conversion closes gaps and unfolds overlaps
                made = self.module.from_numpy(memory).to(narrow).as_strided(shape, stride).detach()
        if source.requires_grad:
            made.requires_grad_(True)
        return made

    def array(self, values: np.ndarray) -> Any:
        """A tensor of this side owning a copy of `values`."""
        return self.module.from_numpy(values.copy())

    def convert(self, value: Any, wrap: Callable[[Any, int], Any] | None = None) -> Any:
        """`value`, however nested, with everything of PyTorch's replaced by this side's counterpart.

        `wrap(tensor, k)` replaces the k-th tensor that requires grad (used to make dual tensors).
        """
        return Crossing(self, wrap)(value)

    def callable(self, function: Callable | None) -> Callable | None:
        """This side's counterpart of one of PyTorch's functions, or of a function that calls them."""
        return rebind(function, self.module)

    # ---- out

    def numpy(self, tensor: Any) -> np.ndarray:
        """The values of a tensor of this side; narrow floats are widened."""
        tensor = tensor.detach()
        if getattr(tensor, "layout", None) is not getattr(self.module, "strided", None):
            raise Unsupported(f"{tensor.layout} result")
        if hasattr(tensor, "resolve_conj"):
            tensor = tensor.resolve_conj().resolve_neg()
        wide = WIDENED_NAMES.get(dtype_name(tensor.dtype))
        if wide is not None:
            tensor = tensor.to(self.dtype(wide))
        # PyTorch keeps undefined gradients as zeros without memory; only `force` writes them out.
        return tensor.numpy(force=True)

    def tensors(self, value: Any) -> Iterator[Any]:
        """The tensors in a nested result, in order."""
        if self.is_tensor(value):
            yield value
        elif isinstance(value, (list, tuple)):
            for item in value:
                yield from self.tensors(item)
        elif isinstance(value, dict):
            for item in value.values():
                yield from self.tensors(item)


class Crossing:
    """One conversion of one sample: a tensor given twice arrives as one tensor given twice."""

    def __init__(self, side: Side, wrap: Callable[[Any, int], Any] | None = None):
        self.side, self.wrap = side, wrap
        self.made: dict[int, Any] = {}
        self.tensors: list[Any] = []  # every tensor made, in order of appearance
        self.leaves: list[Any] = []  # those that require grad, before `wrap`
        self.wrapped: list[Any] = []  # those that require grad, after `wrap`

    def _tensor(self, source: torch.Tensor) -> Any:
        known = self.made.get(id(source))
        if known is not None:
            return known
        made = self.side.tensor(source)
        if source.requires_grad:
            self.leaves.append(made)
            if self.wrap is not None:
                made = self.wrap(made, len(self.leaves) - 1)
            self.wrapped.append(made)
        self.tensors.append(made)
        self.made[id(source)] = made
        return made

    def __call__(self, value: Any) -> Any:
        module = self.side.module
        match value:
            case None | bool() | int() | float() | complex() | str() | bytes():
                return value
            case torch.Tensor():
                return self._tensor(value)
            case torch.Size():
                return module.Size(value)
            case torch.dtype() | torch.memory_format() | torch.layout():
                return resolve(module, dtype_name(value))
            case torch.device():
                return module.device(str(value))
            case torch.Generator():
                made = module.Generator()
                made.manual_seed(value.initial_seed())
                return made
            case slice():
                return slice(self(value.start), self(value.stop), self(value.step))
            case list():
                return [self(item) for item in value]
            case tuple():
                items = [self(item) for item in value]
                return type(value)(*items) if hasattr(value, "_fields") else tuple(items)
            case dict():
                return {key: self(item) for key, item in value.items()}
            case np.ndarray():
                return value.copy()
            case torch.nn.Module():
                return _module_like(value, module)
        if dataclasses.is_dataclass(value) and (path := path_of(type(value))):
            fields = {field.name: self(getattr(value, field.name)) for field in dataclasses.fields(value) if field.init}
            return resolve(module, path)(**fields)
        if callable(value) and (path_of(value) or inspect.isfunction(value)):
            return rebind(value, module)
        return value  # Ellipsis, range, NumPy scalars, enumerations


def _module_like(layer: torch.nn.Module, module: ModuleType) -> Any:
    """The candidate's layer built with the same constructor arguments (parameterless layers only)."""
    names = [n for n in inspect.signature(type(layer).__init__).parameters if hasattr(layer, n)]
    made = resolve(module, "nn." + type(layer).__name__)
    return made(**{name: getattr(layer, name) for name in names})


__all__ = ["Crossing", "Missing", "Side", "Unsupported", "candidate_name", "dtype_name"]
