"""In-place writes: who may be written to, counting the write, and the history it leaves.

What could be refused is refused before anything is written, but for inference tensors outside inference mode: there
PyTorch, and so flambeau, finds that it may not count the write when it has been done.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

import numpy as np

from ... import dtypes
from ...backends.compiled.thresholds import MET, limit_of
from ...backends.errstate import IGNORE, quietly, reset_state, set_state
from ...engine.grad_mode import grad_mode
from ...engine.nodes.op_node import OpNode
from ...engine.profiler_events import recording
from ...modes import active_tracer, special, transforms
from ...ops.declare import ELEMENTWISE, Op
from ...shapes import broadcast_shapes
from ..tensor import Tensor, wrap
from ..untracked_views import tell
from ..view_geometry import Geometry
from ..view_history import CopySlices, keep_retaining
from .apply import on_kernel
from .array_kernels import kernel_of
from .forward_mode import set_written_tangent, tangent_of_write
from .gradient_edge import gradient_edge
from .graph_recording import origin_of, record
from .handlers import handlers
from .interception import answered, computed, told
from .profiling import timed as in_a_span
from .promotion import _operands, promoted_type, rounded_params
from .saved_tensor_packing import pack_inputs
from .write_checks import check_overlap, check_writable, is_tracked, refuse_captured


def rebase(x: Tensor, node: Any) -> None:
    """Make `node` the history of `x`, whose memory was just written; of its base, if it is a view."""
    base = x._base
    if base is None:
        _renew(x, node)
        return
    old = gradient_edge(base) if base._requires_grad else None
    slices = CopySlices(old, base._output_nr, Geometry(base._array, x._array), node)
    if isinstance(node, OpNode) and node.plan.saved_outputs:
        extra = node.make_extra()
        extra.written_view, extra.copy_slices = weakref.ref(x), weakref.ref(slices)
    _renew(base, slices)
    x._requires_grad = True
    x._view_version = -1  # its history was the base's old one: made anew when asked for


def _renew(x: Tensor, node: Any) -> None:
    """Give a tensor that is no view another history."""
    old, number, required = x._node, x._output_nr, x._requires_grad
    x._node = node
    x._output_nr = 0
    x._requires_grad = True
    x._hooks = None
    x._accumulator = None
    if x._retains:
        keep_retaining(x, old, number)
    if not required:
        tell(x)


def write(op: Op, inputs: list[Any], params: dict[str, Any]) -> Tensor:
    """Run an operator and write its result over its first input.

    Raises:
        RuntimeError: the result's shape or dtype does not fit, or autograd forbids the write.
    """
    if transforms[0]:
        refuse_captured(op, inputs[0])
    if special[0] and _some_batched(inputs):
        return handlers.write_batched(op, inputs, params)
    target = inputs[0]
    tracked = is_tracked(inputs)
    check_writable(target, tracked)
    if tracked:
        for x in inputs:
            if isinstance(x, Tensor) and x._creation is not None:
                x.grad_fn  # noqa: B018  # a view whose history cannot be made anew says so before anything else is said
    a = target._array
    read = [x._array for x in inputs[1:] if isinstance(x, Tensor)]
    if op.kind == ELEMENTWISE:
        check_overlap(a, *read)
    elif op.disjoint_out or "index" in op.inputs:
        check_overlap(a, *(b for b in read if b.ndim), apart=True)
    else:
        check_overlap(a)
    if op.kind == ELEMENTWISE:
        shape = a.shape
        for x in inputs[1:]:
            if isinstance(x, Tensor):
                shape = broadcast_shapes(shape, x._array.shape)
        if shape != a.shape:
            raise RuntimeError(f"output with shape {list(a.shape)} doesn't match the broadcast shape {list(shape)}")
    if op.promote != "none":
        result = promoted_type(op, inputs, params)
        if op.promote == "float" and result.category < dtypes.FLOATING:
            result = dtypes.get_default_dtype()
        if op.differentiable and not dtypes.can_cast(result, target.dtype):
            raise RuntimeError(f"result type {result.scalar_name} can't be cast to the desired output type "
                               f"{target.dtype.scalar_name}")
    large: list[np.dtype] | None = [] if MET[0] and op.kind == ELEMENTWISE else None
    values, narrow = _operands(op, inputs, params, large)
    if narrow is not None and op.promoting_params:
        params = rounded_params(op, params, narrow)

    def compute() -> None:
        run_on = values
        if large:
            if on_kernel(op, values, params, large[0], narrow, a) is not None:
                return
            run_on, _ = _operands(op, inputs, params)
        found = kernel_of(op)(*run_on, **params)
        if found.__class__ is np.ndarray and np.may_share_memory(found, a):
            found = found.copy()
        if op.kind != ELEMENTWISE and np.shape(found) != a.shape:
            raise RuntimeError(f"Bad in-place call: input tensor size {list(a.shape)} and output tensor size "
                               f"{list(found.shape)} should match")
        a[...] = found if found.dtype == a.dtype else dtypes.cast(np.asarray(found), a.dtype)

    return _run_over(op, inputs, params, compute, tracked)


def overwrite(op: Op, inputs: list[Any], params: dict[str, Any], compute: Callable[[], None]) -> Tensor:
    """Let `compute` write an operator's result into its first input, and record that it did.

    Raises:
        RuntimeError: autograd forbids the write.
    """
    if transforms[0]:
        refuse_captured(op, inputs[0])
    if special[0] and _some_batched(inputs):
        return handlers.write_batched(op, inputs, params)
    tracked = is_tracked(inputs)
    check_writable(inputs[0], tracked)
    return _run_over(op, inputs, params, compute, tracked)


def _some_batched(inputs: list[Any]) -> bool:
    """Whether an input has hidden dimensions (`batching`)."""
    return any(isinstance(x, Tensor) and x._array.__class__ is not np.ndarray for x in inputs)

def _run_over(op: Op, inputs: list[Any], params: dict[str, Any], compute: Callable[[], None],
              tracked: bool, *, timed: bool = False) -> Tensor:
    if special[0] and not timed and recording() is not None:
        return in_a_span(op, op.name + "_", inputs, params,
                         lambda: _run_over(op, inputs, params, compute, tracked, timed=True))
    if op.in_place_variants is not None:
        op = op.in_place_variants[len(inputs) > 1 and not isinstance(inputs[1], Tensor)]
    target = inputs[0]
    a = target._array
    wants = tracked and op.differentiable
    original = origin = None
    if wants:
        origin = origin_of(inputs)
        kept = op.backward_plan(origin[0], len(inputs)).saved_inputs
        _ = [bool(origin[3][i]) for i in kept if i]  # an inference tensor's version says that it cannot be saved
        if 0 in kept:
            original = wrap(a.copy())
            original._requires_grad, original._node = target._requires_grad, target.grad_fn
            original._output_nr = target._output_nr
    tangents = packed = None
    if special[0]:
        tracer = active_tracer.get()
        if tracer is not None and original is not None:
            tracer.on_copy(target, original)
        packed = pack_inputs(op, inputs, original)
        answered(op, inputs, params, True)
        tangents = tangent_of_write(op, inputs, params)
    token = set_state(IGNORE)
    try:
        if special[0]:
            computed(op.forward, compute)
        else:
            compute()
    finally:
        reset_state(token)
    target._bump_version()
    if wants:
        out = wrap(a)
        out._counter = target._counter
        try:
            record(op, inputs, [out], params, origin=origin, original=original, packed=packed)
        finally:  # a hook may refuse to pack the result, which is written already
            if out._node is not None:
                rebase(target, out._node)
    if tangents is not None:
        set_written_tangent(target, tangents)
    if special[0]:
        told(op, inputs, params, [target], True)
    return target


def fast_binary(op: Op, general: Callable[..., Any]) -> Callable[..., Any]:
    """The in-place form of an elementwise operator of two inputs, quick where nothing is recorded."""
    kernel, limit = kernel_of(op), limit_of(op.name)
    f32, f64 = np.dtype(np.float32), np.dtype(np.float64)
    enabled = grad_mode.get

    def call(input: Any, other: Any) -> Any:
        try:
            a = input._array
            b: Any = other if other.__class__ is float else other._array
            dt = a.dtype
        except AttributeError:
            return general(input, other)
        if ((b is not other and (dt is not b.dtype or b.shape != a.shape)) or not (dt is f32 or dt is f64)
                or special[0] or input._inference or 0 in a.strides or (MET[0] and a.size > limit[0])):
            return general(input, other)
        if b is not other and b is not a and (
                a.base is b or (b.base is not None and (b.base is a or b.base is a.base))):
            return general(input, other)  # they may overlap
        if (input._requires_grad or input._base is not None or (b is not other and other._requires_grad)) and enabled():
            return general(input, other)
        try:
            quietly(kernel, a, b, a)
        except RuntimeError:  # another thread is in there
            return general(input, other)
        counter = input._counter
        if counter is None:
            input._counter = [1]
        else:
            counter[0] += 1
        return input

    call.__name__ = call.__qualname__ = op.name + "_"
    return call


__all__ = ["fast_binary", "overwrite", "rebase", "write"]
