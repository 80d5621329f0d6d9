"""`apply`: runs an operator on tensors and records it in the graph.

`apply` is the general path: any dtype, scalar, broadcast, view, transform and mode. The functions of `fastpath` do the
same for float32 and float64 tensors outside transforms; `tests/_tensor/test_fastpaths.py` compares the two.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from ...backends.bit_views import bits_used
from ...backends.compiled import compiled_operators
from ...backends.compiled.thresholds import LARGE_SEEN, MIN_ELEMENTS, NARROW_CASTS, threshold_of
from ...backends.elementless_array import any_without_elements, elementless_used
from ...backends.numpy.memory import address
from ...backends.sparse_array import has_sparse
from ...engine.grad_mode import grad_mode, inference
from ...engine.profiler_events import active_timeline
from ...engine.tensor_interface import layer
from ...errstate import IGNORE, reset_state, run_in_quiet, run_quietly, set_state
from ...kernels.memory_format import in_elementwise_layout, layouts_seen, note_layout
from ...modes import dispatch_in_use, forward_levels, inference_used, level_count, special
from ...ops.declare import COMPOSITE, ELEMENTWISE, REGISTRY, VIEW, Op
from ...shapes import broadcast_shapes
from ..argument_errors.guards import raise_refusal
from ..fastpath.levels import any_tangents
from ..fastpath.without_promotion import PERMUTING, without_promotion
from ..tensor import INFERENCE, Tensor
from .array_kernels import ROW_MAJOR, follows_inputs, kernel_of, row_major
from .bit_resolution import resolved_inputs
from .graph_recording import as_view, record, wrap_result
from .handlers import handlers
from .interception import intercept, is_lowered_whole, notify_operator, run_with_hooks
from .profiling import run_in_span
from .promotion import NO_PARAMS, converted_params, promoted_operands
from .saved_tensor_packing import pack_inputs

ndarray = np.ndarray


def run_compiled_kernel(op: Op, values: Sequence[Any], params: dict[str, Any], compute: np.dtype,
                        narrow: np.dtype | None, out: np.ndarray | None = None) -> Any:
    """Run an elementwise operator on large arrays with its compiled kernel; None where NumPy must compute it.

    Args:
        values: the operands, as returned by `promoted_operands`.
        compute: the dtype to compute in.
        narrow: the dtype that the result is rounded to, if any.
        out: the array to write into, of the result's shape; default: a new one.
    """
    limit = threshold_of(op.name)[0]
    if narrow is not None:  # NumPy would convert the operands, then the result
        limit = min(limit, NARROW_CASTS[0])
    larger = False
    shape: tuple[int, ...] | None = None
    for a in values:
        if a.__class__ is not ndarray:
            return None
        larger = larger or a.size > limit
        shape = a.shape if shape is None or shape == a.shape else broadcast_shapes(shape, a.shape)
    larger = larger or (shape is not None and prod(shape) > limit)
    kernels = compiled_operators(REGISTRY) if larger else None
    if kernels is None:
        return None
    if out is not None and (not out.flags.writeable or not all(_allows_output(a, out) for a in values)):
        return None
    return run_quietly(kernels.run, op, values, params, compute, narrow, out)


def _allows_output(a: np.ndarray, out: np.ndarray) -> bool:
    """Whether a kernel may read `a` while it writes `out`: no shared memory, or the very same elements."""
    return a is out or not np.may_share_memory(a, out) or (
        address(a) == address(out) and a.shape == out.shape and a.strides == out.strides and a.dtype == out.dtype)


_NUMBER = np.zeros(())  # stands for Python numbers where shapes and strides count


def _in_layout_of(inputs: Sequence[Any], result: Any) -> Any:
    """The result of an elementwise operator in the layout that its inputs determine; an input itself as it is."""
    operands = [x._array if isinstance(x, Tensor) else _NUMBER for x in inputs if x is not None]
    if result.ndim < 2 or any(each.__class__ is not ndarray for each in (result, *operands)) or any(
            each is result for each in operands):
        return result
    return in_elementwise_layout(result, operands)


def _raise_unrecordable(op: Op, inputs: Sequence[Any]) -> None:
    """Raise PyTorch's error if a call that failed could not have been recorded, which is found before."""
    from ..argument_errors.saved_inputs import refused_saving  # imported when a call fails only

    raise_refusal(refused_saving(op, inputs))


def apply(op: Op, inputs: Sequence[Any], params: dict[str, Any] = NO_PARAMS, *, in_span: bool = False) -> Any:
    """Run an operator on tensors (scalars and None where it takes them); record it if an input requires grad.

    Args:
        in_span: the profiler, if it is on, has already opened a span for this call.
    """
    packed = result = None
    intercepted = False
    if bits_used[0] and op.kind != VIEW and op.kind != COMPOSITE:
        inputs = resolved_inputs(inputs)
    if not special[0]:
        fast_path = op.fast_path
        if fast_path is None:
            fast_path = op.fast_path = handlers.fast_path_of(op) or False
        if fast_path:
            result = fast_path(inputs[0], params)
            if result is not None:
                return result
        fast_path = op.without_promotion
        if fast_path is None:
            fast_path = op.without_promotion = without_promotion(op) or False
        if fast_path:
            try:
                result = fast_path(inputs, params)
            except Exception:
                _raise_unrecordable(op, inputs)
                raise
            if result is not None:
                return result
        if elementless_used[0] and op.kind != COMPOSITE and any_without_elements(inputs):
            outs = handlers.dispatch(op, inputs, params, None)
            if outs is not NotImplemented:
                return outs
    else:
        intercepted = special[0] != level_count[0]
        if intercepted and not in_span and active_timeline() is not None:
            return run_in_span(op, op.name, inputs, params, lambda: apply(op, inputs, params, in_span=True))
        if op.kind != COMPOSITE:
            for x in inputs:
                if type(x) is handlers.batched_class:
                    return handlers.apply_batched(op, inputs, params)
            if intercepted:
                packed = pack_inputs(op, inputs)
                if dispatch_in_use[0] or elementless_used[0]:
                    outs = handlers.dispatch(op, inputs, params, packed)
                    if outs is not NotImplemented:
                        return outs
                result = intercept(op, inputs, params)
            elif elementless_used[0] and any_without_elements(inputs):
                outs = handlers.dispatch(op, inputs, params, None)
                if outs is not NotImplemented:
                    return outs
            else:  # only levels are active, and no input is a batch
                path = op.fast_path
                if path is None:
                    path = op.fast_path = handlers.fast_path_of(op) or False
                if path:
                    result = path(inputs[0], params)
                if result is None:
                    path = op.without_promotion
                    if path is None:
                        path = op.without_promotion = without_promotion(op) or False
                    if path:
                        result = path(inputs, params)
                if result is not None:
                    if forward_levels and any_tangents(inputs):
                        handlers.push_forward(op, inputs, result if result.__class__ is list else [result], params)
                    return result
    if op.kind == COMPOSITE and not (intercepted and is_lowered_whole(op, inputs)):
        if op.takes_xp:
            return op.forward(layer.functions, *inputs, **params)
        return op.forward(*inputs, **params)
    try:
        if intercepted:
            return run_with_hooks(op.forward, _apply_operator, op, inputs, params, packed, result, intercepted)
        return _apply_operator(op, inputs, params, packed, result, intercepted)
    except (RuntimeError, IndexError, TypeError, ValueError):  # SparseAccess, or the check of a dense operand
        if not has_sparse(inputs):
            _raise_unrecordable(op, inputs)
            raise
    return handlers.apply_sparse(op, inputs, params)


def _apply_operator(op: Op, inputs: Sequence[Any], params: dict[str, Any], packed: Any, result: Any,
                    intercepted: bool) -> Any:
    """Promote, run, wrap and record an operator that is no composite.

    Args:
        packed: the result of `pack_inputs`.
        result: the result that an interceptor supplied; None: run the kernel.
        intercepted: whether to notify interceptors afterwards.
    """
    large: list[np.dtype] | None = [] if LARGE_SEEN[0] and op.kind == ELEMENTWISE and result is None else None
    values, narrow = promoted_operands(op, inputs, params, large)
    if op.kind == ELEMENTWISE and len(values) > 1:
        shape: tuple[int, ...] | None = None
        for a in values:
            if a is not None:
                shape = a.shape if shape is None or shape == a.shape else broadcast_shapes(shape, a.shape)
    run_params = params
    if op.promoting_params:
        run_params = converted_params(op, params, narrow, values[0])
    if large is not None and not large and narrow is None and len(values) > 1 and shape is not None and (
            prod(shape) > MIN_ELEMENTS[0]):  # only the broadcast result is large
        large = [a.dtype for a, name in zip(values, op.inputs, strict=False)
                 if a.__class__ is ndarray and name not in op.unpromoted]
    if large:
        result = run_compiled_kernel(op, values, run_params, large[0], narrow)
        if result is None:
            values, _ = promoted_operands(op, inputs, params)
        else:
            narrow = None
    if result is None:
        if LARGE_SEEN[0] and not special[0]:  # large results come from the caching allocator
            result = run_in_quiet(kernel_of(op), values, run_params)
        else:
            token = set_state(IGNORE)
            try:
                result = kernel_of(op)(*values, **run_params)
            finally:
                reset_state(token)
    if op.name in ROW_MAJOR:
        result = row_major(result)
    if op.n_outputs == 1:
        outs = [wrap_result(result, narrow)]
        if layouts_seen[0] and follows_inputs(op):
            outs[0]._array = _in_layout_of(inputs, outs[0]._array)
    else:
        outs = [wrap_result(a, narrow) for a in result]
    if op.kind == VIEW:
        for i, out in enumerate(outs):
            if out._array.base is not None or out._array is inputs[0]._array:
                outs[i] = as_view(out, inputs[0], multi=op.multi_output_view)
        if op.name in PERMUTING:
            note_layout(outs[0]._array)
    if grad_mode.get() and op.differentiable and not (op.kind == VIEW and inputs[0]._inference):
        for x in inputs:
            if isinstance(x, Tensor) and x._requires_grad:
                if outs:  # unbind along an empty dimension has no result
                    record(op, inputs, outs, params, packed=packed)
                break
    if inference_used[0] and inference.get():
        for out in outs:
            if out._base is None:
                out._inference, out._counter = True, INFERENCE
    if intercepted:
        notify_operator(op, inputs, params, outs)
    if forward_levels:  # after the notification, since formulas use the outputs
        handlers.push_forward(op, inputs, outs, params)
    if op.n_outputs == 1:
        return outs[0]
    return outs
