"""Update rules of optimizers as kernels: one pass that reads a parameter, its gradient and state, and writes them.

A rule is traced as it stands, over functions that write into their first argument by giving its symbol another
expression. What it left changed are the kernel's outputs, written over the arrays themselves.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from functools import cache
from types import SimpleNamespace
from typing import Any

import numpy as np

from ...codegen.scalar import scalar_ir
from ...codegen.scalar.scalar_ir import Node
from ...runtime import target, thread_pool
from .elementwise import Runner
from .tracing.declarations import Formula, Formulas
from .tracing.namespace import FUNCTIONS
from .tracing.scalars import Numbers, Scalar
from .tracing.symbolic_elements import Symbol, Trace, binary

_F = FUNCTIONS


@cache
def fuses() -> bool:
    """Whether the processor multiplies and adds with one rounding."""
    host = target.host()
    return host.triple.startswith(("aarch64", "arm64")) or "+fma," in host.features + ","


def _fused(x: Symbol, y: Any, factor: Any) -> Symbol:
    """x + factor · y, rounded once where the processor can: PyTorch's kernels do so."""
    if not fuses():
        return x + y * factor
    dtype = x.dtype
    return Symbol(scalar_ir.fma(x.trace.node(y, dtype), x.trace.node(factor, dtype), x.node), x.trace)


def _written(x: Symbol, value: Symbol) -> Symbol:
    x.node = value.node
    return x


def _add(x: Symbol, y: Any, alpha: Any = 1) -> Symbol:
    return x + y if not isinstance(alpha, Scalar) and alpha == 1 else _fused(x, y, alpha)


def _addcmul(x: Symbol, a: Symbol, b: Symbol, value: Any) -> Symbol:
    return _fused(x, a * value, b)


def _lerp(x: Symbol, y: Symbol, weight: Any) -> Symbol:
    if weight < 0.5:
        return _fused(x, y - x, weight)
    less = Symbol(x.trace.number(weight, x.dtype), x.trace) - 1
    return _fused(y, y - x, less)


def _over(function: Callable[..., Symbol]) -> Callable[..., Symbol]:
    def write(x: Symbol, *args: Any, **kwargs: Any) -> Symbol:
        return _written(x, function(x, *args, **kwargs))

    return write


def _clamp(x: Symbol, low: Any, high: Any) -> Symbol:
    return binary("minimum", binary("maximum", x, low), high)


def _copy_(x: Symbol, y: Symbol) -> Symbol:
    return _written(x, y)


symbols = SimpleNamespace(
    add=_add, add_=_over(_add), addcmul=_addcmul, addcmul_=_over(_addcmul),
    addcdiv_=_over(lambda x, a, b, value: x + a * value / b), lerp_=_over(_lerp), copy_=_copy_,
    neg=_F["neg"], abs=_F["abs"], sqrt=_F["sqrt"], sign=_F["sign"], maximum=_F["maximum"], where=_F["where"],
    mul=lambda x, y: x * y, sub=lambda x, y: x - y, div=lambda x, y: x / y,
    mul_=_over(lambda x, y: x * y), div_=_over(lambda x, y: x / y), sub_=_over(lambda x, y: x - y),
    sqrt_=_over(_F["sqrt"]), maximum_=_over(_F["maximum"]), clamp_=_over(_clamp),
)


class Rule:
    """A traced rule: which arrays it writes, and what runs it."""

    __slots__ = ("_pick", "runner")

    def __init__(self, runner: Runner, places: Sequence[int]) -> None:
        self.runner = runner
        self._pick = operator.itemgetter(*places) if len(places) > 1 else operator.itemgetter(
            slice(places[0], places[0] + 1))

    def __call__(self, arrays: list[np.ndarray], numbers: Sequence[Any], row_major: bool) -> None:
        """Update the arrays, all of one shape; `row_major`: each lies row by row, without gaps."""
        runner = self.runner
        key = arrays[0].size if row_major else tuple([each for x in arrays for each in (x.shape, x.strides)])
        plan = runner.plans.found.get(key)
        outs = self._pick(arrays)
        if plan is None:
            plan = runner.plans.keep(key, runner.plan_into(outs, arrays))
        if plan.enter is not None:
            plan.enter(thread_pool.pool(), *outs, *arrays, *numbers)


_rules: dict[Callable[..., None], Formulas] = {}
#: the update that was run last (rule, which arrays are missing, dtype, scalars), what ran it, and with which numbers
_last: list[tuple[Any, Any, Any]] = [(None, None, ())]
#: scalars that give the same results if they are equal
_PLAIN = frozenset({float, int, bool})


def update(rule: Callable[..., None], arrays: list[np.ndarray], missing: int, scalars: tuple[Any, ...],
           row_major: bool) -> bool:
    """Run `rule(xp, *arrays, *scalars)` in place, as one kernel; whether there is one.

    Args:
        rule: changes some of the arrays, through the functions of `xp`.
        arrays: float32 or float64, all of one dtype and shape, apart from each other in memory.
        missing: bits of the places among the arrays where the rule is to find None, the first place's lowest.
        scalars: numbers, which do not make another kernel when they change, and flags.
        row_major: whether each array lies row by row, without gaps.
    """
    dtype = arrays[0].dtype
    asked = rule, missing, dtype, scalars
    last, run, numbers = _last[0]
    if asked == last:  # most often it is the next parameter's turn, with the same numbers
        run(arrays, numbers, row_major)
        return True
    found = _rules.get(rule)
    if found is None:
        found = _rules[rule] = Formulas()
    key = (dtype, missing, len(arrays), *[x.__class__ if x.__class__ is float or x.__class__ is int else x
                                          for x in scalars])
    formula = found.find(key, scalars, lambda: _traced(rule, dtype, len(arrays), missing, scalars))
    if formula is None:
        return False
    numbers = () if formula.values is None else formula.values(*scalars)
    formula.runner(arrays, numbers, row_major)
    if all(x.__class__ in _PLAIN for x in scalars):
        _last[0] = asked, formula.runner, numbers
    return True


def _traced(rule: Callable[..., None], dtype: np.dtype, count: int, missing: int, scalars: Sequence[Any]) -> Formula:
    names = [f"s{i}" for i in range(len(scalars))]
    numbers = Numbers(names)
    trace = Trace(numbers, count)
    cells: list[Symbol | None] = [trace.variable(i, dtype) for i in range(count)]
    for i in range(missing.bit_length()):
        if missing >> i & 1:
            cells.insert(i, None)
    before = [None if cell is None else cell.node for cell in cells]
    rule(symbols, *cells, *[numbers.scalar(name, value) if value.__class__ is float or value.__class__ is int else
                            value for name, value in zip(names, scalars, strict=True)])
    outputs: list[Node] = []
    places = []
    position = 0
    for cell, node in zip(cells, before, strict=True):
        if cell is None:
            continue
        if cell.node is not node:
            outputs.append(scalar_ir.cast(cell.node, dtype))
            places.append(position)
        position += 1
    formula = Formula(outputs, [dtype] * count, numbers)
    formula.runner = Rule(Runner(outputs, formula.inputs, formula.numbers), places)
    return formula


__all__ = ["fuses", "symbols", "update"]
