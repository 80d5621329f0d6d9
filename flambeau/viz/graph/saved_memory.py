"""Memory that nodes save for backward: their saved tensors and arrays, and the arrays that own the memory.

Saved values are read without unpack hooks and without version checks.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from ... import dtypes
from ...engine.nodes.node import Node
from ...engine.nodes.op_node import FREED, OpNode
from ...engine.nodes.saved_attributes import names_of_saved_tensors
from ...engine.profiler_events import owning_array
from ...engine.saved.saved_tensors import Packed

Array = np.ndarray[Any, Any]


class SavedValue(NamedTuple):
    """One saved value of a node.

    Attributes:
        name: as in `_saved_<name>`.
        array: the elements; None if a pack hook returned an object that is not an array.
        memory: the array that owns the memory; None if there is none.
        value: the tensor, the array, or the packed object.
    """

    name: str
    array: Array | None
    memory: Array | None
    value: Any

    @property
    def bytes(self) -> int:
        """The size of the memory that it keeps alive."""
        return 0 if self.memory is None else self.memory.nbytes

    @property
    def dtype(self) -> str:
        """The dtype's name, or the class name of a packed object."""
        return type(self.value).__name__ if self.array is None else dtypes.of(self.array.dtype).name


def saved_values(node: Any) -> list[SavedValue]:
    """The saved values of a node, in the order of its declaration; none after they were freed.

    >>> import flambeau as torch
    >>> from flambeau.viz.graph.saved_memory import saved_values
    >>> x = torch.ones(2, 3, requires_grad=True)
    >>> [(saved.name, saved.array.shape, saved.bytes) for saved in saved_values((x * 2.5).exp().grad_fn)]
    [('result', (2, 3), 24)]
    """
    result: list[SavedValue] = []
    for name, value in _named_values(node):
        if isinstance(value, Packed):
            value = value.data
        array = getattr(value, "_array", value)
        if isinstance(array, np.ndarray):
            result.append(SavedValue(name, array, owning_array(array), value))
        elif hasattr(array, "nbytes") and not np.isscalar(array):
            result.append(SavedValue(name, None, None, value))
        elif isinstance(value, (bytes, bytearray, memoryview)):
            result.append(SavedValue(name, None, np.frombuffer(value, np.uint8), value))
    return result


def saved_bytes(node: Any) -> int:
    """The bytes of memory that a node keeps alive; memory shared by several of its values counts once."""
    return sum({id(saved.memory): saved.bytes for saved in saved_values(node)}.values())


def is_freed(node: Any) -> bool:
    """Whether the saved values of a node were freed."""
    if isinstance(node, OpNode):
        return node.saved0 is FREED
    return bool(getattr(node, "_freed", False)) or (hasattr(type(node), "fn") and node.fn is None)


def format_bytes(size: float) -> str:
    """A number of bytes with its unit.

    >>> from flambeau.viz.graph.saved_memory import format_bytes
    >>> format_bytes(1), format_bytes(24), format_bytes(7812), format_bytes(2_500_000)
    ('1 byte', '24 bytes', '7.8 kB', '2.5 MB')
    """
    if size < 1000:
        return f"{size:.0f} byte" + "s" * (size != 1)
    units = ["kB", "MB", "GB"]
    size /= 1000
    while size >= 999.95 and len(units) > 1:
        size /= 1000
        units.pop(0)
    return f"{size:.1f} {units[0]}"


def _named_values(node: Any) -> Iterator[tuple[str, Any]]:
    """Names and saved values of any class."""
    if isinstance(node, OpNode):
        saved = node.saved
        if saved is not None:
            first_output = len(saved) - len(node.plan.saved_outputs)
            for place, (name, entry) in enumerate(zip(names_of_saved_tensors(node), saved, strict=True)):
                yield name, entry if place < first_output else entry[0]
        for (what, which), value in zip(node.plan.consts, node.consts, strict=True):
            if what == "param":
                yield from _within(which, value)
        if saved is not None:
            yield from _rule_arrays(node.run)
    elif hasattr(type(node), "_forward_cls"):  # a custom Function: saved tensors and attributes of ctx
        for number, (kind, value, *_) in enumerate(node._saved):
            if kind != "none":
                yield f"saved_tensors[{number}]", value
        for name, value in vars(node).items():
            if not name.startswith("_"):
                yield from _within(f"ctx.{name}", value)
    elif isinstance(getattr(node, "fn", None), Node):  # CopySlices: the node of the in-place operator
        yield from _named_values(node.fn)


def _rule_arrays(run: Any) -> Iterator[tuple[str, Any]]:
    """Arrays in the closure of a node's specialised rule."""
    cells = getattr(run, "__closure__", None) or ()
    for name, cell in zip(getattr(getattr(run, "__code__", None), "co_freevars", ()), cells, strict=True):
        try:
            value = cell.cell_contents
        except ValueError:  # an empty cell
            continue
        if isinstance(value, np.ndarray):
            yield name, value


def _within(name: str, value: Any, depth: int = 0) -> Iterator[tuple[str, Any]]:
    """The arrays and tensors in a value: itself, or the items of a container."""
    if isinstance(getattr(value, "_array", value), np.ndarray):
        yield name, value
    elif isinstance(value, (list, tuple)) and depth < 3:
        for number, item in enumerate(value):
            yield from _within(f"{name}[{number}]", item, depth + 1)
    elif isinstance(value, dict) and depth < 3:
        for key, item in value.items():
            yield from _within(f"{name}[{key!r}]", item, depth + 1)


__all__ = ["SavedValue", "format_bytes", "is_freed", "saved_bytes", "saved_values"]
