"""The operators of `torch.ops.profiler`: events of a profile as calls, which graphs can hold."""

from __future__ import annotations

import weakref
from typing import Any

from .. import dtypes
from .._tensor import Tensor, functions
from ..engine.profiler_events import USER, record_span
from ..library import Library


class RecordFunction:
    """A block of a profile that is open."""

    def __init__(self, name: str) -> None:
        self.span = record_span(name, USER)
        self.span.__enter__()

    def __repr__(self) -> str:
        return "ScriptObject <__torch__.torch.classes.profiler._RecordFunction>"


#: id of a handle -> its open block, while the handle is alive
_open: dict[int, RecordFunction] = {}


def _enter(name: str, args: str | None = None) -> Tensor:
    block = RecordFunction(name)
    handle = functions.empty((1,), dtype=dtypes.uint8)
    _open[id(handle)] = block
    weakref.finalize(handle, _open.pop, id(handle), None)
    return handle


def _exit(handle: Any) -> None:
    block = handle if isinstance(handle, RecordFunction) else _open.pop(id(handle), None)
    if block is not None:
        block.span.__exit__()


def _enter_new(name: str, args: str | None = None) -> RecordFunction:
    return RecordFunction(name)


def define() -> None:
    """Define the operators, once.

    >>> import flambeau as torch
    >>> with torch.autograd.profiler.profile() as prof:
    ...     block = torch.ops.profiler._record_function_enter_new("block")
    ...     torch.ops.profiler._record_function_exit(block)
    >>> [event.name for event in prof.function_events]
    ['block']
    """
    if _libraries:
        return
    record = "__torch__.torch.classes.profiler._RecordFunction"
    library = Library("profiler", "DEF")
    _libraries.append(library)
    for schema, kernel in (("_record_function_enter(str name, str? args=None) -> Tensor", _enter),
                           (f"_record_function_enter_new(str name, str? args=None) -> {record}", _enter_new),
                           ("_record_function_exit(Tensor handle) -> ()", _exit),
                           (f"_record_function_exit._RecordFunction({record} record) -> ()", _exit)):
        library.impl(library.define(schema), kernel, "CompositeExplicitAutograd")


_libraries: list[Library] = []

__all__ = ["define"]
