"""What a node keeps alive: the tensors and arrays that it saved for backward, and the memory that they lie in.

Nothing is unpacked or checked here: a saved-tensor hook is not called, and what was written to since may be looked at.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from ... import dtypes
from ...engine.nodes.node import Node
from ...engine.nodes.op_node import FREED, OpNode
from ...engine.profiler_events import owner
from ...engine.saved.saved_tensors import Packed

Array = np.ndarray[Any, Any]


class Holding(NamedTuple):
    """One thing that a node keeps.

    Attributes:
        name: as in `_saved_<name>`.
        array: the values; None for what hooks have packed into something that is no array.
        memory: the array whose memory they lie in, all of which stays; None where there is none.
        value: what is kept: a tensor, an array, or what a pack hook gave.
    """

    name: str
    array: Array | None
    memory: Array | None
    value: Any

    @property
    def bytes(self) -> int:
        """How much memory stays because of it."""
        return 0 if self.memory is None else self.memory.nbytes

    @property
    def dtype(self) -> str:
        """The dtype's name; that of a packed thing's class."""
        return type(self.value).__name__ if self.array is None else dtypes.of(self.array.dtype).name


def holdings(node: Any) -> list[Holding]:
    """What a node keeps, in the order of its declaration; nothing once it was freed.

    >>> import flambeau as torch
    >>> from flambeau.viz.graph.saved_memory import holdings
    >>> x = torch.ones(2, 3, requires_grad=True)
    >>> [(held.name, held.array.shape, held.bytes) for held in holdings((x * 2.5).exp().grad_fn)]
    [('result', (2, 3), 24)]
    """
    found: list[Holding] = []
    for name, value in _kept(node):
        if isinstance(value, Packed):
            value = value.data
        array = getattr(value, "_array", value)
        if isinstance(array, np.ndarray):
            found.append(Holding(name, array, owner(array), value))
        elif hasattr(array, "nbytes") and not np.isscalar(array):
            found.append(Holding(name, None, None, value))
        elif isinstance(value, (bytes, bytearray, memoryview)):
            found.append(Holding(name, None, np.frombuffer(value, np.uint8), value))
    return found


def bytes_held(node: Any) -> int:
    """The bytes of memory that stay because of a node, what several of its values share counted once."""
    return sum({id(held.memory): held.bytes for held in holdings(node)}.values())


def is_freed(node: Any) -> bool:
    """Whether a node has forgotten what it saved, as backward has it do."""
    if isinstance(node, OpNode):
        return node.saved0 is FREED
    return bool(getattr(node, "_freed", False)) or (hasattr(type(node), "fn") and node.fn is None)


def amount(size: float) -> str:
    """A number of bytes in words.

    >>> from flambeau.viz.graph.saved_memory import amount
    >>> amount(1), amount(24), amount(7812), amount(2_500_000)
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


def _kept(node: Any) -> Iterator[tuple[str, Any]]:
    """Names and values, whatever they are."""
    if isinstance(node, OpNode):
        saved = node.saved
        if saved is not None:
            first_output = len(saved) - len(node.plan.saved_outputs)
            for place, (name, entry) in enumerate(zip(node._names_of_saved(), saved, strict=True)):
                yield name, entry if place < first_output else entry[0]
        for (what, which), value in zip(node.plan.consts, node.consts, strict=True):
            if what == "param":
                yield from _within(which, value)
        if saved is not None:
            yield from _of_rule(node.run)
    elif hasattr(type(node), "_forward_cls"):  # a user's Function: what it saved, and what it hung on ctx
        for number, (kind, value, *_) in enumerate(node._saved):
            if kind != "none":
                yield f"saved_tensors[{number}]", value
        for name, value in vars(node).items():
            if not name.startswith("_"):
                yield from _within(f"ctx.{name}", value)
    elif isinstance(getattr(node, "fn", None), Node):  # a write through a view: the operator that wrote
        yield from _kept(node.fn)


def _of_rule(run: Any) -> Iterator[tuple[str, Any]]:
    """Arrays that a rule made for one node has at hand."""
    cells = getattr(run, "__closure__", None) or ()
    for name, cell in zip(getattr(getattr(run, "__code__", None), "co_freevars", ()), cells, strict=True):
        try:
            value = cell.cell_contents
        except ValueError:  # not set yet
            continue
        if isinstance(value, np.ndarray):
            yield name, value


def _within(name: str, value: Any, depth: int = 0) -> Iterator[tuple[str, Any]]:
    """A value, or the values in a container of values, that are arrays or tensors."""
    if isinstance(getattr(value, "_array", value), np.ndarray):
        yield name, value
    elif isinstance(value, (list, tuple)) and depth < 3:
        for number, item in enumerate(value):
            yield from _within(f"{name}[{number}]", item, depth + 1)
    elif isinstance(value, dict) and depth < 3:
        for key, item in value.items():
            yield from _within(f"{name}[{key!r}]", item, depth + 1)


__all__ = ["Holding", "amount", "bytes_held", "holdings", "is_freed"]
