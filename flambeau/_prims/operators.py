"""The namespace `torch.ops.prims`: an overload for each name, which handlers of `__torch_dispatch__` see."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Iterator
from typing import Any

from .._library.composite_operators import KERNELS
from .._library.shown_operators import shown_to_handlers
from ..ops.overloads import namespace_of
from ..ops.schemas import FunctionSchema
from .implementations import implementation


def _schemas() -> Iterator[FunctionSchema]:
    with open(os.path.join(os.path.dirname(__file__), "schemas.txt"), encoding="utf-8") as lines:
        for line in lines:
            yield FunctionSchema(f"prims::{line.rstrip()}")


def _kernel(name: str) -> Callable[..., Any]:
    """What computes an operator; it is looked up when it is called, as `torch`'s functions are."""
    def run(*args: Any, **kwargs: Any) -> Any:
        return implementation(name)(*args, **kwargs)

    return run


@functools.cache
def define() -> None:
    """Make the operators."""
    namespace = namespace_of("prims")
    for schema in _schemas():
        name = schema.name.rpartition("::")[2]
        overload = namespace.packet(name)._overload(schema.overload_name or "default", schema)
        KERNELS[str(overload)] = shown_to_handlers(overload, _kernel(name))


__all__ = ["define"]
