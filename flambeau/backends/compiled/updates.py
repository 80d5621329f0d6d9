"""Optimizer updates as kernels: one pass that reads a parameter, its gradient and its state, and writes them in place.

A rule is traced over symbolic elements; an in-place function assigns a new expression to its first argument. The
arguments that have changed are the outputs of the kernel.
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
from ...dtypes import NARROW
from ...runtime import target, thread_pool
from .elementwise import ElementwiseKernel
from .tracing.declarations import Formula, FormulaCache
from .tracing.namespace import FUNCTIONS
from .tracing.scalars import Scalar, ScalarParameters
from .tracing.symbolic_elements import SymbolicElement, Trace, binary

FLOAT32 = np.dtype(np.float32)


@cache
def has_fma() -> bool:
    """Whether the processor has fused multiply-add."""
    host = target.host()
    return host.triple.startswith(("aarch64", "arm64")) or "+fma," in host.features + ","


def _fma(x: SymbolicElement, y: Any, factor: Any) -> SymbolicElement:
    """x + factor · y, as a fused multiply-add where the processor has it, as in PyTorch's kernels."""
    if not has_fma():
        return x + y * factor
    dtype = x.dtype
    return SymbolicElement(scalar_ir.fma(x.trace.node(y, dtype), x.trace.node(factor, dtype), x.node), x.trace)


def _assign(x: SymbolicElement, value: SymbolicElement) -> SymbolicElement:
    x.node = value.node
    return x


def _add(x: SymbolicElement, y: Any, alpha: Any = 1) -> SymbolicElement:
    return x + y if not isinstance(alpha, Scalar) and alpha == 1 else _fma(x, y, alpha)


def _addcmul(x: SymbolicElement, a: SymbolicElement, b: SymbolicElement, value: Any) -> SymbolicElement:
    return _fma(x, a * value, b)


def _lerp(x: SymbolicElement, y: SymbolicElement, weight: Any) -> SymbolicElement:
    if weight < 0.5:
        return _fma(x, y - x, weight)
    less = SymbolicElement(x.trace.number(weight, x.dtype), x.trace) - 1
    return _fma(y, y - x, less)


def _in_place(function: Callable[..., SymbolicElement]) -> Callable[..., SymbolicElement]:
    def write(x: SymbolicElement, *args: Any, **kwargs: Any) -> SymbolicElement:
        return _assign(x, function(x, *args, **kwargs))

    return write


def _clamp(x: SymbolicElement, low: Any, high: Any) -> SymbolicElement:
    return binary("minimum", binary("maximum", x, low), high)


def _copy_(x: SymbolicElement, y: SymbolicElement) -> SymbolicElement:
    return _assign(x, y)


SYMBOLIC_OPERATIONS = SimpleNamespace(
    add=_add, add_=_in_place(_add), addcmul=_addcmul, addcmul_=_in_place(_addcmul),
    addcdiv_=_in_place(lambda x, a, b, value: x + a * value / b), lerp_=_in_place(_lerp), copy_=_copy_,
    **{name: FUNCTIONS[name] for name in ("neg", "abs", "sqrt", "sign", "maximum", "where")},
    mul=lambda x, y: x * y, sub=lambda x, y: x - y, div=lambda x, y: x / y,
    mul_=_in_place(lambda x, y: x * y), div_=_in_place(lambda x, y: x / y),
    maximum_=_in_place(FUNCTIONS["maximum"]), clamp_=_in_place(_clamp),
)


@cache
def _rounding(dtype: np.dtype) -> SimpleNamespace:
    """The operations, each of which computes in float32 and rounds its result to a narrow dtype, as operators do."""

    def rounded(function: Callable[..., SymbolicElement]) -> Callable[..., SymbolicElement]:
        def operate(x: SymbolicElement, *args: Any, **kwargs: Any) -> SymbolicElement:
            result = function(x, *args, **kwargs)
            if result.dtype == FLOAT32:
                result.node = scalar_ir.cast(scalar_ir.cast(result.node, dtype), FLOAT32)
            return result

        return operate

    return SimpleNamespace(**{name: rounded(function) for name, function in vars(SYMBOLIC_OPERATIONS).items()})


class TracedUpdate:
    """A traced update rule: its kernel, and the arrays that it writes."""

    __slots__ = ("_pick", "runner", "written")

    def __init__(self, runner: ElementwiseKernel, written: Sequence[int]) -> None:
        self.runner, self.written = runner, tuple(written)
        self._pick = operator.itemgetter(*written) if len(written) > 1 else operator.itemgetter(
            slice(written[0], written[0] + 1))

    def __call__(self, arrays: list[np.ndarray], scalars: Sequence[Any], row_major: bool) -> None:
        """Update arrays of one shape; `row_major`: all are dense in row-major order."""
        runner = self.runner
        key = arrays[0].size if row_major else tuple([each for x in arrays for each in (x.shape, x.strides)])
        plan = runner.plans.plans.get(key)
        outputs = self._pick(arrays)
        if plan is None:
            plan = runner.plans.insert(key, runner.plan_into(outputs, arrays))
        if plan.enter is not None:
            plan.enter(thread_pool.pool(), *outputs, *arrays, *scalars)


_rules: dict[Callable[..., None], FormulaCache] = {}
#: the last update (rule, missing arrays, dtype, scalars), its kernel and the kernel's scalars
_last: list[tuple[Any, Any, Any]] = [(None, None, ())]
#: types of scalars that give the same results if they are equal
_SCALAR_TYPES = frozenset({float, int, bool})


def run_update(rule: Callable[..., None], arrays: list[np.ndarray], missing: int, scalars: tuple[Any, ...],
           row_major: bool) -> bool:
    """Run `rule(xp, *arrays, *scalars)` in place, as one kernel; whether there is one.

    Args:
        rule: updates some of the arrays through the functions of `xp`.
        arrays: float32 or float64, of one dtype and shape, disjoint in memory.
        missing: bit mask of the positions where the rule gets None, lowest bit first.
        scalars: numbers, which may change without compiling another kernel, and flags.
        row_major: whether all arrays are dense in row-major order.
    """
    dtype = arrays[0].dtype
    call = rule, missing, dtype, scalars
    last, kernel, values = _last[0]
    if call == last:  # the next parameter of the same step
        kernel(arrays, values, row_major)
        return True
    found = traced_update(rule, dtype, len(arrays), missing, scalars)
    if found is None:
        return False
    runner, values = found
    runner(arrays, values, row_major)
    if all(x.__class__ in _SCALAR_TYPES for x in scalars):
        _last[0] = call, runner, values
    return True


def traced_update(rule: Callable[..., None], dtype: np.dtype, count: int, missing: int, scalars: tuple[Any, ...]
                  ) -> tuple[TracedUpdate, tuple[Any, ...]] | None:
    """A traced rule, and the values of its kernel's scalars; None where the rule cannot be traced.

    Args:
        rule, missing, scalars: as for `run_update`.
        dtype: of the arrays.
        count: the number of arrays.
    """
    formulas = _rules.get(rule)
    if formulas is None:
        formulas = _rules[rule] = FormulaCache()
    key = (dtype, missing, count, *[x.__class__ if x.__class__ is float or x.__class__ is int else x
                                    for x in scalars])
    formula = formulas.find(key, scalars, lambda: _traced(rule, dtype, count, missing, scalars))
    if formula is None:
        return None
    return formula.runner, () if formula.scalar_values is None else formula.scalar_values(*scalars)


def _traced(rule: Callable[..., None], dtype: np.dtype, count: int, missing: int, scalars: Sequence[Any]) -> Formula:
    names = [f"s{i}" for i in range(len(scalars))]
    parameters = ScalarParameters(names)
    trace = Trace(parameters, count)
    elements: list[SymbolicElement | None] = [trace.variable(i, dtype) for i in range(count)]
    operations = SYMBOLIC_OPERATIONS
    if dtype in NARROW:
        operations = _rounding(dtype)
        elements = [SymbolicElement(scalar_ir.cast(each.node, FLOAT32), trace) for each in elements if each is not None]
    for i in range(missing.bit_length()):
        if missing >> i & 1:
            elements.insert(i, None)
    initial = [None if element is None else element.node for element in elements]
    rule(operations, *elements, *[
        parameters.scalar(name, value) if value.__class__ is float or value.__class__ is int else value
        for name, value in zip(names, scalars, strict=True)])
    outputs: list[Node] = []
    written = []
    position = 0
    for element, node in zip(elements, initial, strict=True):
        if element is None:
            continue
        if element.node is not node:
            outputs.append(scalar_ir.cast(element.node, dtype))
            written.append(position)
        position += 1
    formula = Formula(outputs, [dtype] * count, parameters)
    formula.runner = TracedUpdate(ElementwiseKernel(outputs, formula.inputs, formula.scalar_dtypes), written)
    return formula


__all__ = ["SYMBOLIC_OPERATIONS", "TracedUpdate", "has_fma", "run_update", "traced_update"]
