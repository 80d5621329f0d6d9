"""Programs of composites (softmax, norms) for any number of rows, as steps of calls (`rows`)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import numpy as np

from ....ir.decompositions.composites import COMPOSITES, cache_of
from ....ir.graph.value import Unsupported
from ....ir.shapes.polymorphic_programs import build_polymorphic_program
from ....ir.shapes.symbolic_shapes import shape_signature
from ....ops.declare import Op
from ....runtime.launch import Launch
from ....shapes import wrap_dim
from .rows import Range, Rows, Step, planned_by_rows

ndarray = np.ndarray


def composite(op: Op, operands: Sequence[Any], params: dict[str, Any], rows: Range) -> Step | None:
    """An operator that is one composite, along dimensions of rows."""
    x = operands[0]
    if x.__class__ is not Rows or any(y is not None and y.__class__ not in (Rows, ndarray) for y in operands):
        return None
    params = {name: [] if value.__class__ is list else value for name, value in params.items()}
    if "dim" in params:
        dim = params["dim"]
        if dim.__class__ is not int or wrap_dim(dim, x.free + len(x.rest)) < x.free:
            return None
        params["dim"] = wrap_dim(dim, x.free + len(x.rest)) - x.free + 1
    if "normalized_shape" in params and len(params["normalized_shape"]) > len(x.rest):
        return None
    name = COMPOSITES.get(op.name)
    args, named = (operands, params) if name is None else ((*operands, *params.values()), {})
    return program(name or op.name, args, named, rows)


def program(name: str, args: Sequence[Any], params: dict[str, Any], rows: Range) -> Step | None:
    """A composite's program of one kernel.

    Args:
        args, params: of the composite, with `Rows` in place of arrays that have rows.
    """
    unit = prod(args[0].rest)
    extents = {extent for x in args for extent in (x.rest if x.__class__ is Rows else getattr(x, "shape", ()))}
    number = next((n for n in range(rows.now, 2 * rows.now + 2) if n not in extents and n > 1), 0)

    def array(x: Any) -> Any:
        if x.__class__ is not Rows:
            return x
        spec = x.spec(number)
        return np.lib.stride_tricks.as_strided(np.empty(1, x.dtype), spec.shape, spec.strides, writeable=False)

    given = [array(x) for x in args]
    found = cache_of(name, given, params)
    if found is None or array(args[0]).size != number * unit:
        return None
    cache, least, most = found
    arrays = [x for x in (*given, *params.values()) if x.__class__ is ndarray]
    sources = [x for x in (*args, *params.values()) if x.__class__ in (Rows, ndarray)]
    signature = shape_signature(arrays, frozenset(extents))
    if signature is None or signature.extents != (number,):
        return None
    # the orders of magnitude that have one plan
    largest = max(x.size for x in arrays)
    magnitude = largest.bit_length() // 4
    per_row = largest // number
    interval = rows.between(max(-(-least // unit), -(-(1 << max(4 * magnitude - 1, 0)) // per_row)),
                            min(most // unit, ((1 << (4 * magnitude + 3)) - 1) // per_row))
    if interval is None:
        return None
    try:
        polymorphic = build_polymorphic_program(cache.title, cache.declaration, given, params, signature, cache.widens)
    except Unsupported:
        return None
    if polymorphic is None or (polymorphic.result != 0 and polymorphic.result.__class__ is int):
        return None
    return _step_of(polymorphic, sources, args[0], number, interval)


def _step_of(polymorphic: Any, sources: Sequence[Any], like: Rows, number: int, interval: Range) -> Step | None:
    sample = polymorphic.plan.instantiate((number,))
    if sample.arena or len(sample.steps) != 1 or len(polymorphic.list_outputs) > 1:
        return None
    step = sample.steps[0]
    inputs, outputs = len(sample.inputs), len(sample.output_specs)
    order: list[Any] = []
    results = [like.like(shape[1:], dtype) for shape, dtype in sample.output_specs]
    if any(shape[:1] != (number,) for shape, _ in sample.output_specs):
        return None
    pointers = [entry for entry, offset in step.pointers]
    if any(offset for _, offset in step.pointers) or pointers[:outputs] != list(range(inputs, inputs + outputs)):
        return None
    for entry in pointers[outputs:]:
        if entry < inputs:
            order.append(sample.inputs[entry])
        elif entry > sample.arena_entry:
            constant = sample.constants[entry - sample.arena_entry - 1]
            if constant.size > 1:
                return None
            order.append([constant])
        elif not step.launch.scratch:
            return None

    def make(n: Any) -> list[Launch]:
        return [each.launch for each in polymorphic.plan.instantiate((n,)).steps]

    made = planned_by_rows(make, interval, results, order)
    if made is None or any(x.__class__ is int and x >= len(sources) for x in order):
        return None
    return made


PROGRAMS: dict[str, Callable[..., Step | None]] = dict.fromkeys(
    ("softmax", "log_softmax", "logsumexp", "_layer_norm", "_softmax_backward", "_log_softmax_backward"), composite)

__all__ = ["PROGRAMS", "composite", "program"]
