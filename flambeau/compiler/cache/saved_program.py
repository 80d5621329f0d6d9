"""`SavedProgram`, a program in the persistent cache, and the fingerprints that its writer and reader share."""

from __future__ import annotations

import hashlib
import importlib
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ..._tensor import Tensor
from ..fingerprints import BypassCache, is_value
from ..guards.guard import DICT, LIST, MODULE, SET, Guard
from ..tracing.trace import Trace
from .trace_cache import TraceRecord

#: kinds of guards whose values are tuples of entries
CONTAINER_KINDS = (LIST, DICT, SET, MODULE)
_NAME = __name__.partition(".")[0]
#: stands for the class `Tensor` among the modules
TENSOR_CLASS = "Tensor"
#: public modules of this package in which user code looks up names
PUBLIC_MODULES = (_NAME, *(f"{_NAME}.{name}" for name in (
    "nn", "nn.functional", "nn.init", "nn.utils", "linalg", "special", "func", "optim", "autograd")), TENSOR_CLASS)


class SavedProgram(NamedTuple):
    """A program in the persistent cache.

    Attributes:
        trace: the trace; when loaded, it refers to objects of this process.
        guards: the guards on Python objects.
        trace_key: the key of such traces in the trace cache.
        record: their record there.
        initialized_states: when loaded, optimizers and parameters whose state was created.
    """

    trace: Trace
    guards: list[Guard]
    trace_key: str
    record: TraceRecord
    initialized_states: Sequence[tuple[Any, Any]] = ()


def array_summary(array: np.ndarray) -> tuple[str, tuple[int, ...], str]:
    """Return dtype, shape and a hash of the elements of an array."""
    return str(array.dtype), array.shape, hashlib.sha256(array.tobytes()).hexdigest()


def public_namespace(module: str) -> Any:
    """Return a public module of this package, or the class `Tensor`."""
    return Tensor if module == TENSOR_CLASS else importlib.import_module(module)


def definition_of(x: Any) -> str:
    """Return the module and the name with which a function or class was defined."""
    return f"{getattr(x, '__module__', None)}:{getattr(x, '__qualname__', None)}"


def options_fingerprint(group: dict[str, Any]) -> list[tuple[str, Any]]:
    """Return a group's options, without the values of numbers, which are inputs of the program."""
    options = []
    for key, value in group.items():
        if key != "params":
            is_number = type(value) in (float, int) or (
                type(value) is tuple and value and all(type(x) in (float, int) for x in value))
            if not is_number and not is_value(value):
                raise BypassCache(f"the option {key} of an optimizer")
            options.append((key, len(value) if type(value) is tuple else None if is_number else value))
    return options


__all__ = ["CONTAINER_KINDS", "PUBLIC_MODULES", "TENSOR_CLASS", "SavedProgram", "array_summary", "definition_of",
           "options_fingerprint", "public_namespace"]
