"""Elementwise operators as steps of calls of any number of rows (`calls`)."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from ....backends.compiled import compiled_operators
from ....backends.compiled.thresholds import threshold_of
from ....backends.compiled.tracing.declarations import split_scalars
from ....dtypes import NARROW
from ....errstate import quietly
from ....ops.declare import REGISTRY, Op
from ....runtime.filling import Filling, NewRows
from ....runtime.launch import Launch, Spec
from ...dispatch.array_kernels import kernel_of
from ..repeated_layouts import MOST
from ..without_promotion import conversion_of
from .rows import Range, Rows, Step, launch_of_filling, planned_by_rows

ndarray = np.ndarray


def elementwise(op: Op, operands: Sequence[Any], params: dict[str, Any], rows: Range) -> Step | None:
    """The kernel of an elementwise operator; NumPy's, where that is one pass and exact to the bit only there."""
    kernels = compiled_operators(REGISTRY)
    if kernels is None or op.n_outputs != 1 or op.variadic:
        return None
    given = [x for x in operands if x.__class__ is Rows or x.__class__ is ndarray]
    dtypes = [x.dtype for x in given]
    unit = max(prod(x.rest) for x in given if x.__class__ is Rows)
    limit = threshold_of(op.name)[0]
    interval = rows.between(0, limit // unit) if rows.now * unit <= limit else rows.between(limit // unit + 1, MOST)
    if interval is None or any(x.__class__ is ndarray and x.size > unit for x in given):
        return None
    is_small = rows.now * unit <= limit
    numpy_kernel = kernel_of(op)
    numpy_kernel = getattr(numpy_kernel, "of_floats", numpy_kernel)
    compute: Any = None
    numbers: Any = None
    if len(operands) == 1:
        if op.opmath and dtypes[0] in NARROW:
            return None
    else:
        conversion = conversion_of(op, [x.dtype if hasattr(x, "dtype") else x.__class__ for x in operands])
        if conversion is None or conversion.narrow is not None or (
                conversion.numbers is None and len(given) < len(operands)):
            return None
        compute, numbers = conversion.compute, conversion.numbers
    inputs = [x if hasattr(x, "dtype") else numbers[x] for x in operands]
    kinds = [x.dtype for x in inputs]
    if compute is not None and kinds.count(compute) == len(kinds):
        compute = None
    if is_small and isinstance(numpy_kernel, np.ufunc) and op.name not in _EXACT and (
            numpy_kernel not in (np.maximum, np.minimum)):  # NumPy 2.4 warns where `out` is positional
        return None if compute is not None or params else _ufunc(numpy_kernel, inputs, operands, interval)
    formula = (kernels.rounded if is_small else kernels).kernel_for(op, kinds, params, compute)
    if formula is None or not formula.runner.direct_scalars or len(formula.runner.dtypes) != 1:
        return None
    scalars = () if formula.scalar_values is None else formula.scalar_values(*split_scalars(params)[2])
    runner = formula.runner
    try:
        rest = np.broadcast_shapes(*[x.rest if x.__class__ is Rows else x.shape for x in inputs])
    except ValueError:
        return None
    depth = len(rest)
    if any(x.__class__ is Rows and len(x.rest) != depth for x in inputs):
        return None
    result = next(x for x in given if x.__class__ is Rows).like(rest, runner.dtypes[0])

    def make(n: Any) -> list[Launch]:
        from ....codegen.elementwise import elementwise

        ins = [x.spec(n) if x.__class__ is Rows else Spec.of(x) for x in inputs]
        return elementwise.launches(runner.outputs, [result.spec(n)],
                                    ins + [Spec((), (), dtype) for dtype in runner.scalars], by_rows=True)

    numbered = iter(range(len(given)))
    sources = [next(numbered) if hasattr(x, "dtype") else [y] for x, y in zip(operands, inputs, strict=True)]
    return planned_by_rows(make, interval, [result], [*sources, *[[each] for each in scalars]], runner.scalars)


#: operators whose compiled kernels have NumPy's bits
_EXACT = frozenset(("add", "sub", "mul", "div"))


def _ufunc(ufunc: np.ufunc, inputs: Sequence[Any], operands: Sequence[Any], rows: Range) -> Step | None:
    """NumPy's function of rows of one shape, and numbers."""
    given = [x for x in inputs if x.__class__ is Rows]
    if ufunc.nout != 1 or any(x.__class__ is not Rows and x.shape for x in inputs) or len({x.rest for x in given}) > 1:
        return None
    dtype = ufunc(*[np.ones(1, x.dtype) for x in inputs]).dtype
    numbered = iter(range(len(operands)))
    sources = [next(numbered) if hasattr(x, "dtype") else [y] for x, y in zip(operands, inputs, strict=True)]
    filling = Filling(quietly, ([ufunc], *sources, NewRows(given[0].rest, dtype)))
    slots = tuple([x for x in sources if x.__class__ is int])
    return Step([(launch_of_filling(filling), slots)], given[0].like(given[0].rest, dtype), rows)


def masked_fill(op: Op, operands: Sequence[Any], params: dict[str, Any], rows: Range) -> Step | None:
    a, mask = operands[:2]
    value = params["value"] if "value" in params else operands[2]
    if a.__class__ is not Rows or value.__class__ not in (int, float):
        return None
    step = elementwise(REGISTRY["where"], [mask, value, a], {}, rows)
    if step is None or step.result != a:
        return None
    (launch, _), = step.launches
    return step._replace(launches=[(launch, (1, 0))])


__all__ = ["elementwise", "masked_fill"]
