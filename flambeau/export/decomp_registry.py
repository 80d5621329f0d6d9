"""`torch._decomp`: tables of functions that compute operators of other ones.

Programs fill them. They start empty: operators of flambeau are taken apart by the declarations that they are made of.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from ..ops.overloads import OpOverload, OpOverloadPacket
from ..trees import tree_leaves
from .decomposition import CustomDecompTable, default_decompositions

#: kind -> overload -> function
global_decomposition_table: dict[str, dict[Any, Callable[..., Any]]] = {
    "post_autograd": {}, "pre_autograd": {}, "meta": {}}
decomposition_table = global_decomposition_table["post_autograd"]
pre_autograd_decomposition_table = global_decomposition_table["pre_autograd"]
meta_table = global_decomposition_table["meta"]


def _table(type: str) -> dict[Any, Callable[..., Any]]:
    if type not in global_decomposition_table:
        raise AssertionError(f"type must be one of post_autograd, pre_autograd, or meta, got {type}")
    return global_decomposition_table[type]


def _overloads(op: Any) -> list[Any]:
    return [getattr(op, name) for name in op.overloads()] if isinstance(op, OpOverloadPacket) else [op]


def register_decomposition(aten_op: Any, registry: dict[Any, Any] | None = None, *, type: str = "post_autograd",
                           unsafe: bool = False) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """A decorator that enters a function for operators in a table.

    Args:
        aten_op: an overload, a packet (all its overloads) or a sequence of them.
        registry: the table; that of `type` for None.
        unsafe: whether something else than a function is entered.

    Raises:
        AssertionError: an unknown type.
        RuntimeError: there is one for an overload already.

    >>> import flambeau as torch
    >>> @torch._decomp.register_decomposition(torch.ops.aten.square.default, table := {})
    ... def square(x):
    ...     return x * x
    >>> table
    {<OpOverload(op='aten.square', overload='default')>: <function square at ...>}
    """
    table = _table(type) if registry is None else registry

    def enter(function: Callable[..., Any]) -> Callable[..., Any]:
        for leaf in tree_leaves(aten_op):
            for overload in _overloads(leaf):
                if overload in table:
                    raise RuntimeError(f"duplicate registrations for {overload}")
                table[overload] = function
        return function

    return enter


def get_decompositions(aten_ops: Iterable[Any], type: str = "post_autograd") -> dict[Any, Callable[..., Any]]:
    """The entries of a table for operators; of a packet those of all its overloads. Others are left out.

    Raises:
        AssertionError: an unknown type.
    """
    table = _table(type)
    return {overload: table[overload] for op in aten_ops for overload in _overloads(op) if overload in table}


def remove_decompositions(decompositions: dict[Any, Callable[..., Any]], aten_ops: Sequence[Any]) -> None:
    """Take operators out of a table, if they are in it."""
    for op in aten_ops:
        for overload in _overloads(op):
            decompositions.pop(overload, None)


def core_aten_decompositions() -> CustomDecompTable:
    """The table that exports use: `torch.export.default_decompositions`."""
    return default_decompositions()


__all__ = ["OpOverload", "core_aten_decompositions", "decomposition_table", "get_decompositions",
           "global_decomposition_table", "meta_table", "pre_autograd_decomposition_table", "register_decomposition",
           "remove_decompositions"]
