"""Traced declarations: the scalar expressions of elementwise declarations, cached by dtypes and parameters.

A `Formula` has the expressions of a declaration's results and its kernel's Python scalar arguments.
Numbers among the parameters are runtime arguments, so that a changed number does not compile another kernel.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ....codegen.scalar import scalar_ir
from ....codegen.scalar.scalar_ir import FLOAT32, Node
from .scalars import ScalarParameters
from .symbolic_elements import SymbolicElement, Trace, Untraceable, as_symbol

#: the most formulas of one key, which differ in guards on numbers
MAX_TRACES = 16


class Formula:
    """A traced declaration.

    Attributes:
        outputs: the expressions of the results. The variables are the arrays, then the runtime scalars.
        inputs: the dtypes of the arrays.
        passthrough: for each result the index of the array that it is, unchanged, or None.
        scalar_dtypes: the dtypes of the runtime scalars.
        guard: a function of the parameters, whether the formula serves them; None: it always does.
        scalar_values: a function of the parameters that gives the runtime scalars; None: there are none.
        runner: the kernel of the formula.
    """

    __slots__ = ("guard", "inputs", "outputs", "passthrough", "runner", "scalar_dtypes", "scalar_values")

    def __init__(self, outputs: Sequence[Node], inputs: Sequence[np.dtype], scalars: ScalarParameters) -> None:
        self.outputs = tuple(outputs)
        self.inputs = tuple(inputs)
        self.passthrough = tuple(node.const if node.op == "input" and node.const < len(inputs) else None
                                 for node in outputs)
        self.scalar_dtypes = tuple(dtype for _, dtype in scalars.runtime_scalars)
        self.guard, values = scalars.functions()
        self.scalar_values = values if scalars.runtime_scalars else None
        self.runner: Any = None


def split_scalars(params: dict[str, Any]) -> tuple[tuple[Any, ...], tuple[str, ...], tuple[Any, ...]]:
    """Split parameters into a key, and the names and values of the numbers among them."""
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


class FormulaCache:
    """The formulas of one declaration, or of the rules of one backward plan."""

    def __init__(self) -> None:
        self._formulas: dict[Any, list[Formula]] = {}
        self._failures: dict[Any, str] = {}
        self._lock = threading.Lock()

    def find(self, key: Any, values: Sequence[Any], make: Callable[[], Formula]) -> Formula | None:
        """The formula of a key; None where the declaration cannot be traced.

        Args:
            key: dtypes and parameters.
            values: the numbers among the parameters, on which guards depend.
            make: traces a formula.
        """
        try:
            known = self._formulas.get(key)
        except TypeError:  # an unhashable parameter: a list, an array
            return None
        if known is not None:
            for formula in known:
                if formula.guard is None or formula.guard(*values):
                    return formula
        if key in self._failures:
            return None
        with self._lock:
            try:
                formula = make()
            except (Untraceable, TypeError) as why:  # or an expression is not defined for a dtype
                self._failures[key] = str(why)
                return None
            known = self._formulas.setdefault(key, [])
            if len(known) >= MAX_TRACES:
                known.pop(0)
            known.append(formula)
        return formula

    def failures(self) -> list[str]:
        """Why declarations could not be traced."""
        return list(self._failures.values())


def operand_elements(trace: Trace, arrays: Sequence[np.dtype], compute: np.dtype | None, narrow: np.dtype | None,
             promoted: Sequence[bool], rounded: Sequence[bool]) -> list[SymbolicElement]:
    """The operands of a declaration: promoted to one dtype, narrow floats widened.

    Args:
        compute: the dtype to promote to; None: operands keep theirs.
        narrow: the dtype that results are rounded to; operands of other dtypes are first rounded to it, where `rounded`
            is true.
        promoted: which operands are promoted.
        rounded: which operands are rounded.
    """
    result = []
    for i, dtype in enumerate(arrays):
        node = trace.variable(i, dtype).node
        if compute is not None and promoted[i]:
            if narrow is not None and dtype != narrow and rounded[i]:
                node = scalar_ir.cast(node, narrow)
            node = scalar_ir.cast(node, compute)
        result.append(SymbolicElement(node, trace))
    return result


def rounded_result(value: Any, trace: Trace, like: np.dtype, narrow: np.dtype | None) -> Node:
    """The expression of a result, rounded to the narrow dtype of the operands, if any."""
    node = as_symbol(value, trace, like).node
    return scalar_ir.cast(node, narrow) if narrow is not None and node.dtype == FLOAT32 else node


__all__ = ["Formula", "FormulaCache", "operand_elements", "rounded_result", "split_scalars"]
