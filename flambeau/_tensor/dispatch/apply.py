"""`apply`: runs an operator on tensors and records it.

`apply` is the general path, for any dtype, number, broadcast, view, transform and mode. The functions of `fastpath`
do the same for small tensors of one float dtype; `docs/internals/dispatch.md` states what both must do.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from ...backends.compiled import kernels_of
from ...backends.compiled.thresholds import LEAST, MET, NARROW_CASTS, limit_of
from ...backends.errstate import IGNORE, reset_state, run_in_quiet, run_quietly, set_state
from ...backends.numpy.memory import address
from ...engine.grad_mode import grad_mode, inference
from ...engine.profiler_events import recording
from ...engine.tensor_interface import layer
from ...modes import forward_levels, inferred, leveled, special
from ...ops.declare import COMPOSITE, ELEMENTWISE, REGISTRY, VIEW, Op
from ...shapes import broadcast_shapes
from ..tensor import INFERENCE, Tensor
from .array_kernels import ROW_MAJOR, kernel_of, row_major
from .graph_recording import _wrapped, as_view, record
from .handlers import handlers
from .interception import answered, computed, told
from .profiling import timed as in_a_span
from .promotion import NO_PARAMS, _operands, rounded_params
from .saved_tensor_packing import pack_inputs

ndarray = np.ndarray


def on_kernel(op: Op, values: Sequence[Any], params: dict[str, Any], compute: np.dtype, narrow: np.dtype | None,
              out: np.ndarray | None = None) -> Any:
    """An elementwise operator's result on large arrays, by its kernel; None where NumPy is to compute it.

    Args:
        values: as `_operands` leaves them.
        compute: the dtype that they are promoted to.
        narrow: the dtype that the result is rounded to.
        out: where it is written, if there is a kernel for that: of the result's shape.
    """
    limit = limit_of(op.name)[0]
    if narrow is not None:  # NumPy would convert them first, and then the result
        limit = min(limit, NARROW_CASTS[0])
    larger = False
    shape: tuple[int, ...] | None = None
    for a in values:
        if a.__class__ is not ndarray:
            return None
        larger = larger or a.size > limit
        shape = a.shape if shape is None or shape == a.shape else broadcast_shapes(shape, a.shape)
    larger = larger or (shape is not None and prod(shape) > limit)
    kernels = kernels_of(REGISTRY) if larger else None
    if kernels is None:
        return None
    if out is not None and (not out.flags.writeable or not all(_lies_apart(a, out) for a in values)):
        return None
    return run_quietly(kernels.run, op, values, params, compute, narrow, out)


def _lies_apart(a: np.ndarray, out: np.ndarray) -> bool:
    """Whether an array shares no memory with another, or is the same."""
    return a is out or not np.may_share_memory(a, out) or (
        address(a) == address(out) and a.shape == out.shape and a.strides == out.strides and a.dtype == out.dtype)


def apply(op: Op, inputs: Sequence[Any], params: dict[str, Any] = NO_PARAMS, *, timed: bool = False) -> Any:
    """Run an operator on tensors (numbers and None where it takes them) and record it where asked.

    Args:
        timed: a profiler, if one is on, has opened a span for it already.
    """
    packed = found = None
    watched = False
    if not special[0]:
        short = op.fast_path
        if short is None:
            short = op.fast_path = handlers.fast_path_of(op) or False
        if short:
            found = short(inputs[0], params)
            if found is not None:
                return found
    else:
        watched = special[0] != leveled[0]
        if watched and not timed and recording() is not None:
            return in_a_span(op, op.name, inputs, params, lambda: apply(op, inputs, params, timed=True))
        if op.kind != COMPOSITE:
            for x in inputs:
                if type(x) is handlers.batched_class:
                    return handlers.apply_batched(op, inputs, params)
            if watched:
                packed = pack_inputs(op, inputs)
                found = answered(op, inputs, params)
    if op.kind == COMPOSITE:
        if op.takes_xp:
            return op.forward(layer.functions, *inputs, **params)
        return op.forward(*inputs, **params)
    if watched:
        return computed(op.forward, _applied, op, inputs, params, packed, found, watched)
    return _applied(op, inputs, params, packed, found, watched)


def _applied(op: Op, inputs: Sequence[Any], params: dict[str, Any], packed: Any, found: Any, watched: bool) -> Any:
    """What an operator that is no composite gives, recorded where asked.

    Args:
        packed: what `pack_inputs` made of the inputs.
        found: what an interceptor answers for it; None: let its kernel run.
        watched: whether interceptors are to be told.
    """
    large: list[np.dtype] | None = [] if MET[0] and op.kind == ELEMENTWISE and found is None else None
    values, narrow = _operands(op, inputs, params, large)
    if op.kind == ELEMENTWISE and len(values) > 1:
        shape: tuple[int, ...] | None = None
        for a in values:
            if a is not None:
                shape = a.shape if shape is None or shape == a.shape else broadcast_shapes(shape, a.shape)
    run_params = params if narrow is None or not op.promoting_params else rounded_params(op, params, narrow)
    if large is not None and not large and narrow is None and len(values) > 1 and shape is not None and (
            prod(shape) > LEAST[0]):  # the result alone is large
        large = [a.dtype for a, name in zip(values, op.inputs, strict=False)
                 if a.__class__ is ndarray and name not in op.unpromoted]
    if large:
        found = on_kernel(op, values, run_params, large[0], narrow)
        if found is None:
            values, _ = _operands(op, inputs, params)
        else:
            narrow = None
    if found is None:
        if MET[0] and not special[0]:  # large results are put where memory is kept
            found = run_in_quiet(kernel_of(op), values, run_params)
        else:
            token = set_state(IGNORE)
            try:
                found = kernel_of(op)(*values, **run_params)
            finally:
                reset_state(token)
    if op.name in ROW_MAJOR:
        found = row_major(found)
    if op.n_outputs == 1:
        outs = [_wrapped(found, narrow)]
    else:
        outs = [_wrapped(a, narrow) for a in found]
    if op.kind == VIEW:
        for i, out in enumerate(outs):
            if out._array.base is not None or out._array is inputs[0]._array:
                outs[i] = as_view(out, inputs[0], multi=op.multi_output_view)
    if grad_mode.get() and op.differentiable and not (op.kind == VIEW and inputs[0]._inference):
        for x in inputs:
            if isinstance(x, Tensor) and x._requires_grad:
                record(op, inputs, outs, params, packed=packed)
                break
    if inferred[0] and inference.get():
        for out in outs:
            if out._base is None:
                out._inference, out._counter = True, INFERENCE
    if forward_levels:
        handlers.push_forward(op, inputs, outs, params)
    if watched:
        told(op, inputs, params, outs)
    if op.n_outputs == 1:
        return outs[0]
    return outs
