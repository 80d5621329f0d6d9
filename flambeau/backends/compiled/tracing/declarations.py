"""Operators' own lines, run once on symbols: what kernels are made of.

A `Formula` is what one line computes, element by element, and which Python numbers it takes besides the arrays. It is
traced when an operator first meets its arrays' dtypes, and kept; numbers among the parameters are asked for anew at
every call, so that another one does not make another kernel.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ....codegen.scalar import scalar_ir
from ....codegen.scalar.scalar_ir import FLOAT32, Node
from .scalars import Numbers
from .symbolic_elements import Symbol, Trace, Untraceable, as_symbol

#: traces that are kept of one line with the same arguments but for its numbers
TRACES = 16


class Formula:
    """What a traced line computes.

    Attributes:
        outputs: its results' expressions. The variables are the arrays, then the numbers.
        same: for each result the array that it is, unchanged, or None.
        numbers: the numbers' dtypes.
        holds: whether a call's numbers are ones that this was traced for; None: all are.
        values: a call's numbers, from the parameters.
    """

    __slots__ = ("holds", "inputs", "numbers", "outputs", "runner", "same", "values")

    def __init__(self, outputs: Sequence[Node], inputs: Sequence[np.dtype], numbers: Numbers) -> None:
        self.outputs = tuple(outputs)
        self.inputs = tuple(inputs)
        self.same = tuple(node.const if node.op == "input" and node.const < len(inputs) else None for node in outputs)
        self.numbers = tuple(dtype for _, dtype in numbers.kept)
        self.holds, values = numbers.functions()
        self.values = values if numbers.kept else None
        self.runner: Any = None


def split(params: dict[str, Any]) -> tuple[tuple[Any, ...], tuple[str, ...], tuple[Any, ...]]:
    """Parameters as a key, the names of the numbers among them, and these numbers."""
    key: list[Any] = []
    names, values = [], []
    for name, value in params.items():
        kind = value.__class__
        if kind is float or kind is int:
            key += (name, kind)
            names.append(name)
            values.append(value)
        else:
            key += (name, value)
    return tuple(key), tuple(names), tuple(values)


class Formulas:
    """All traces of one line: those of a forward, or of the rules that one use of an operator runs."""

    def __init__(self) -> None:
        self._found: dict[Any, list[Formula]] = {}
        self._why: dict[Any, str] = {}
        self._lock = threading.Lock()

    def find(self, key: Any, values: Sequence[Any], make: Callable[[], Formula]) -> Formula | None:
        """The formula for these dtypes and parameters; None where none can be traced.

        Args:
            values: the parameters that guards ask for, in the formulas' order.
            make: traces one.
        """
        try:
            known = self._found.get(key)
        except TypeError:  # a parameter that is no key: a list, an array
            return None
        if known is not None:
            for formula in known:
                if formula.holds is None or formula.holds(*values):
                    return formula
        if key in self._why:
            return None
        with self._lock:
            try:
                formula = make()
            except (Untraceable, TypeError) as why:  # or an expression says that it is not defined for a dtype
                self._why[key] = str(why)
                return None
            known = self._found.setdefault(key, [])
            if len(known) >= TRACES:
                known.pop(0)
            known.append(formula)
        return formula

    def refusals(self) -> list[str]:
        """Why lines could not be traced."""
        return list(self._why.values())


def elements(trace: Trace, arrays: Sequence[np.dtype], compute: np.dtype | None, narrow: np.dtype | None,
             promoted: Sequence[bool], rounded: Sequence[bool]) -> list[Symbol]:
    """The operands as the operator's line sees them: promoted to one dtype, narrow floats widened.

    Args:
        compute: the dtype they are promoted to; None: they keep theirs.
        narrow: the dtype that results are rounded to, and operands of other dtypes first, where `rounded` says so.
        promoted: which operands are promoted at all.
    """
    found = []
    for i, dtype in enumerate(arrays):
        node = trace.variable(i, dtype).node
        if compute is not None and promoted[i]:
            if narrow is not None and dtype != narrow and rounded[i]:
                node = scalar_ir.cast(node, narrow)
            node = scalar_ir.cast(node, compute)
        found.append(Symbol(node, trace))
    return found


def result(value: Any, trace: Trace, like: np.dtype, narrow: np.dtype | None) -> Node:
    """A line's result, rounded to the narrow dtype if its operands were of that."""
    node = as_symbol(value, trace, like).node
    return scalar_ir.cast(node, narrow) if narrow is not None and node.dtype == FLOAT32 else node


__all__ = ["Formula", "Formulas", "elements", "result", "split"]
