"""In-place operators: checks, the write, the version bump and the new history of the target.

All checks precede the write, except the one for inference tensors outside inference mode: as in PyTorch, the version
bump raises after the write.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from ... import dtypes
from ...backends.bit_views import BitView, bits_used, resolve
from ...backends.compiled.thresholds import LARGE_SEEN, threshold_of
from ...backends.elementless_array import elementless_used
from ...backends.sparse_array import has_sparse
from ...engine.grad_mode import grad_mode
from ...engine.nodes.op_node import OpNode
from ...engine.nodes.unsupported_derivatives import NotImplemented
from ...engine.profiler_events import active_timeline
from ...engine.tensor_interface import layer
from ...errstate import IGNORE, quietly, reset_state, set_state
from ...modes import active_tracer, active_transforms, dispatch_in_use, lazy_storages, special
from ...ops.declare import ELEMENTWISE, Op
from ...shapes import broadcast_shapes, wrap_dim
from ..argument_errors.guards import raise_refusal, refused_write
from ..shape.lazy_clones import write as write_lazily
from ..tensor import Tensor, wrap
from ..views.geometry import Geometry
from ..views.history import CopySlices, retain_new_history
from ..views.untracked import update_requires_grad
from .apply import run_compiled_kernel
from .array_kernels import kernel_of
from .bit_resolution import resolved_inputs
from .forward_mode import copy_tangents, save_output_tangents, tangents_of_write, write_tangents
from .gradient_edge import gradient_edge
from .graph_recording import collect_edges, record
from .handlers import handlers
from .interception import intercept, notify_operator, run_with_hooks
from .profiling import run_in_span
from .promotion import converted_params, promoted_operands, promoted_type
from .saved_tensor_packing import pack_inputs
from .write_checks import (
    check_captured_write,
    check_no_overlap,
    check_overlap,
    check_writable,
    is_tracked,
    warn_of_real_parts,
)

#: operators without derivative whose result has the promoted dtype
_OF_INTEGERS = frozenset(("bitwise_and", "bitwise_or", "bitwise_xor", "bitwise_left_shift", "bitwise_right_shift",
                          "gcd", "lcm"))

#: operators whose in-place forms take integers as numbers of the target's dtype, and the largest of them
_ARITHMETIC, _EXACT = frozenset(("add", "sub", "mul", "div")), 1 << 24


def rebase_history(x: Tensor, node: Any) -> None:
    """Make `node` the history of `x` after a write to it; for a view, the history of its base (CopySlices)."""
    base = x._base
    if base is None:
        set_history(x, node)
        return
    old = gradient_edge(base) if base._requires_grad else None
    slices = CopySlices(old, base._output_nr, Geometry(base._array, x._array), node)
    if isinstance(node, OpNode) and node.plan.saved_outputs:
        extra = node.make_extra()
        extra.written_view, extra.copy_slices = weakref.ref(x), weakref.ref(slices)
    slices.reserve_number(x)
    set_history(base, slices)
    x._requires_grad = True
    x._hooks = None
    x._view_version = -1  # stale: regenerated from the base on access
    if x._retains_grad:
        x.grad_fn  # noqa: B018  # which takes `retain_grad` from the old node, to which an operand may lead


def set_history(x: Tensor, node: Any) -> None:
    """Set another `grad_fn` on a tensor; that of its base, if it has one, stays."""
    old, number, required = x._node, x._output_nr, x._requires_grad
    x._node = node
    x._output_nr = 0
    x._requires_grad = True
    x._hooks = None
    x._accumulator = None
    if x._retains_grad:
        retain_new_history(x, old, number)
    if not required:
        update_requires_grad(x)
    if x._base is not None:
        assert x._counter is not None
        x._view_version = x._counter[0]


def record_underived(name: str, result: Tensor | None, out: Tensor) -> None:
    """Give an `out=` tensor that an operator without derivative has written to the node that says so.

    Args:
        result: what was written: its node leads to the operator's inputs.
    """
    if out._array.dtype.kind not in "fcV" or not grad_mode.get():
        return
    node = NotImplemented(f"derivative for aten::{name.removesuffix('.size')} is not implemented", (out,))
    sources = [node] if result is None or result._node is None else [result._node, node]
    edges: list[Any] = [(edge, number) for source in sources for edge, number in zip(
        source.edges, source.edge_outputs or (0,) * len(source.edges), strict=True) if edge is not None]
    edges = edges or [(None, 0)]  # to a view that requires grad since its base does
    node.edges, node.edge_outputs = tuple(edge for edge, _ in edges), tuple(number for _, number in edges)
    rebase_history(out, node)


#: operators that PyTorch's autograd does not see: their in-place variants may write to leaves, whose nodes stay
UNRECORDED = frozenset(("logical_and", "logical_not", "logical_or", "logical_xor"))
#: operators that refuse a 0-d source for its shape first
_SHAPES_FIRST = ("index_add", "index_reduce")


#: operators that compute in a complex dtype and write numbers of the target's
_OF_COMPLEX_NUMBERS = frozenset(("eq", "ne", "logical_and", "logical_or", "logical_xor"))


def _check_dtypes(op: Op, target: Tensor, params: dict[str, Any]) -> None:
    """Check what only in-place variants refuse: absolute values of complex numbers, scans of bools or in another dtype.

    Raises:
        RuntimeError, NotImplementedError: the dtype is not supported (PyTorch's texts).
    """
    if op.name == "abs":
        if target.dtype.is_complex:
            raise RuntimeError("In-place abs is not supported for complex tensors.")
    elif op.name in ("cumsum", "cumprod"):
        dtype = params.get("dtype")
        wrap_dim(params["dim"], target.dim())
        if dtype is not None and dtype is not target.dtype:
            raise RuntimeError(f"Bad in-place call: input tensor dtype {dtypes.C_NAMES[target.dtype.name]} and output "
                               f"tensor dtype {dtypes.C_NAMES[dtype.name]} should match")
        if target.dtype is dtypes.bool_ and target.dim() and target.numel():
            raise NotImplementedError(f"\"{op.name}_out_cpu\" not implemented for 'Bool'")


def apply_inplace(op: Op, inputs: list[Any], params: dict[str, Any]) -> Tensor:
    """Run an operator and write its result into its first input.

    Raises:
        RuntimeError: the result's shape or dtype does not fit, or autograd forbids the write.
    """
    try:
        if bits_used[0]:
            inputs = [inputs[0], *resolved_inputs(inputs[1:])]
        if active_transforms[0]:
            check_captured_write(op, inputs[0])
        if special[0] and _any_batched(inputs):
            return handlers.write_batched(op, inputs, params)
        if dispatch_in_use[0] or elementless_used[0]:
            write = handlers.dispatched_write(op, inputs, params)
            if write is not None:
                tracked = is_tracked(inputs)
                check_writable(inputs[0], tracked)
                return _run_inplace(op, inputs, params, write, tracked)
        target = inputs[0]
        tracked = op.name not in UNRECORDED and is_tracked(inputs)
        check_writable(target, tracked)
        if tracked:
            for x in inputs:
                if isinstance(x, Tensor) and x._creation is not None:
                    x.grad_fn  # noqa: B018  # raises first for a view whose history cannot be regenerated
        a = target._array
        check_fits(op, inputs, params)
        large: list[np.dtype] | None = [] if LARGE_SEEN[0] and op.kind == ELEMENTWISE else None
        values, narrow = promoted_operands(op, inputs, params, large)
        if isinstance(a, BitView):
            large, values = None, [resolve(x) for x in values]
        if op.promoting_params:
            params = converted_params(op, params, narrow, values[0])

        def compute() -> None:
            operands = values
            if large:
                if run_compiled_kernel(op, values, params, large[0], narrow, a) is not None:
                    return
                operands, _ = promoted_operands(op, inputs, params)
            output = kernel_of(op)(*operands, **params)
            if isinstance(output, np.ndarray) and np.may_share_memory(output, a):
                output = output.copy()
            if op.kind != ELEMENTWISE and np.shape(output) != a.shape:
                raise RuntimeError(f"Bad in-place call: input tensor size {list(a.shape)} and output tensor size "
                                   f"{list(output.shape)} should match")
            a[...] = output if output.dtype == a.dtype else dtypes.cast(np.asarray(output), a.dtype)

        return _run_inplace(op, inputs, params, compute, tracked)
    except (RuntimeError, IndexError, TypeError, ValueError):  # SparseAccess, or the check of a dense operand
        if not has_sparse(inputs):
            if op.name not in UNRECORDED:
                from ..argument_errors.saved_inputs import refused_saving  # imported when a call fails only

                raise_refusal(refused_write(inputs) or refused_saving(op, inputs))
            raise
    return handlers.apply_sparse_inplace(op, inputs, params)


def check_fits(op: Op, inputs: list[Any], params: dict[str, Any]) -> None:
    """Check that an operator's result may be written into its first input.

    Raises:
        RuntimeError: its shape or dtype does not fit, or the memory of the inputs overlaps.
    """
    target = inputs[0]
    a = target._array
    if op.name == "addr":
        for name, x in zip(("vec1", "vec2"), inputs[1:], strict=True):
            if x.dim() != 1:
                raise RuntimeError(f"addr: Expected 1-D argument {name}, but got {x.dim()}-D")
    if op.name == "addr" and a.ndim != 2:
        raise RuntimeError(f"2D tensor expected, got {a.ndim}D tensor for input")
    if op.name == "addbmm" and not inputs[1].dim():
        raise IndexError("Dimension specified as 0 but tensor has no dimensions")
    _check_dtypes(op, target, params)
    if op.kind == ELEMENTWISE:
        (check_no_overlap if op.expanded_target else check_overlap)(
            a, *[x._array for x in inputs[1:] if isinstance(x, Tensor)])
    elif op.disjoint_out or "index" in op.inputs:
        check_overlap(a, *(x._array for name, x in zip(op.inputs[1:], inputs[1:], strict=True)
                           if isinstance(x, Tensor) and name != "value" and (
                               x._array.ndim or op.name not in _SHAPES_FIRST)), disjoint=True)
    else:
        check_overlap(a)
    if op.check is not None:
        op.check(*inputs)
    if op.kind == ELEMENTWISE:
        shape = a.shape
        for x in inputs[1:]:
            if isinstance(x, Tensor) and x._array.shape != shape:
                shape = broadcast_shapes(shape, x._array.shape)
        if shape != a.shape:
            raise RuntimeError(f"output with shape {list(a.shape)} doesn't match the broadcast shape {list(shape)}")
    if op.promote != "none":
        result = promoted_type(op, inputs, params)
        if op.promote == "float" and result.category < dtypes.FLOATING:
            result = dtypes.get_default_dtype()
        if op.name in _OF_COMPLEX_NUMBERS and result.is_complex:
            warn_of_real_parts(target)
        if (op.differentiable or op.name in _OF_INTEGERS) and not dtypes.can_cast(result, target.dtype):
            to = dtypes.C_NAMES[target.dtype.name] if op.name.startswith("clamp") else target.dtype.scalar_name
            what = "ldexp" if op.name == "ldexp" else f"result type {result.scalar_name}"
            raise RuntimeError(f"{what} can't be cast to the desired output type {to}")


def overwrite(op: Op, inputs: list[Any], params: dict[str, Any], compute: Callable[[], None]) -> Tensor:
    """Call `compute`, which writes an operator's result into its first input, and record the operator.

    Raises:
        RuntimeError: autograd forbids the write.
    """
    if bits_used[0]:
        inputs = [inputs[0], *resolved_inputs(inputs[1:])]
    if active_transforms[0]:
        check_captured_write(op, inputs[0])
    if special[0] and _any_batched(inputs):
        return handlers.write_batched(op, inputs, params)
    if dispatch_in_use[0] or elementless_used[0]:
        write = handlers.dispatched_write(op, inputs, params)
        if write is not None:
            tracked = is_tracked(inputs)
            check_writable(inputs[0], tracked)
            return _run_inplace(op, inputs, params, write, tracked)
    tracked = is_tracked(inputs)
    check_writable(inputs[0], tracked)
    return _run_inplace(op, inputs, params, compute, tracked)


def _any_batched(inputs: list[Any]) -> bool:
    """Whether an input is a batched tensor."""
    return any(isinstance(x, Tensor) and type(x) is handlers.batched_class for x in inputs)


def _run_inplace(op: Op, inputs: list[Any], params: dict[str, Any], compute: Callable[[], None],
                 tracked: bool, *, in_span: bool = False) -> Tensor:
    if special[0] and not in_span and active_timeline() is not None:
        return run_in_span(op, op.name + "_", inputs, params,
                           lambda: _run_inplace(op, inputs, params, compute, tracked, in_span=True))
    if op.in_place_variants is not None:
        op = op.in_place_variants[len(inputs) > 1 and not isinstance(inputs[1], Tensor)]
    target = inputs[0]
    a = target._array
    if special[0] and lazy_storages[0]:
        compute = partial(write_lazily, a, compute)
    records = tracked and op.differentiable
    original = input_edges = None
    if records:
        input_edges = collect_edges(inputs)
        saved_inputs = op.backward_plan(input_edges[0], len(inputs)).saved_inputs
        _ = [bool(input_edges[3][i]) for i in saved_inputs if i]  # raises for an inference tensor
        if 0 in saved_inputs:
            original = wrap(a.copy()) if not (special[0] and dispatch_in_use[0] and layer.is_handled(target)) else (
                handlers.copy_before_write(target))
            original._requires_grad, original._node = target._requires_grad, target.grad_fn
            original._output_nr = target._output_nr
    tangents = packed = None
    if special[0]:
        tracer = active_tracer.get()
        if tracer is not None and original is not None:
            tracer.on_copy(target, original)
        if original is not None:
            copy_tangents(target, original)
        packed = pack_inputs(op, inputs, original)
        intercept(op, inputs, params, True)
        tangents = tangents_of_write(op, inputs, params)
    token = set_state(IGNORE)
    try:
        if special[0]:
            run_with_hooks(op.forward, compute)
        else:
            compute()
    finally:
        reset_state(token)
    target._bump_version()
    if records:
        out = wrap(resolve(target._array))
        out._counter = target._counter
        try:
            node = record(op, inputs, [out], params, input_edges=input_edges, original=original, packed=packed)
        finally:  # a hook may raise while it packs the result, which is already written
            if out._node is not None:
                rebase_history(target, out._node)
        if special[0] and dispatch_in_use[0] and layer.is_handled(target):
            handlers.save_written(node, target)
    if tangents is not None:
        write_tangents(target, tangents)
        if records:
            save_output_tangents(node, target)
    if special[0]:
        notify_operator(op, inputs, params, [target], True)
    return target


def inplace_fast_path(op: Op, general: Callable[..., Any]) -> Callable[..., Any]:
    """The in-place function of a binary elementwise operator, with a fast path where nothing is recorded."""
    if op.unsupported_dtypes.keys() & {"float32", "float64"}:
        return general
    kernel, limit = kernel_of(op), threshold_of(op.name)
    f32, f64, whole = np.dtype(np.float32), np.dtype(np.float64), np.dtype(np.int64)
    enabled = grad_mode.get
    takes_integers, of_integers = op.name in _ARITHMETIC, op.name in _ARITHMETIC and op.promote != "float"

    def call(input: Any, other: Any) -> Any:
        try:
            a = input._array
            dt = a.dtype
            if other.__class__ is int and takes_integers and -_EXACT <= other <= _EXACT:
                if dt is whole and of_integers:
                    return count(input, a, other)
                b: Any = float(other)
            else:
                b = other if other.__class__ is float else other._array
        except AttributeError:
            return general(input, other)
        if ((b.__class__ is not float and (dt is not b.dtype or b.shape != a.shape)) or not (dt is f32 or dt is f64)
                or special[0] or input._inference or 0 in a.strides or (LARGE_SEEN[0] and a.size > limit[0])):
            return general(input, other)
        if b.__class__ is not float and b is not a and (
                a.base is b or (b.base is not None and (b.base is a or b.base is a.base))):
            return general(input, other)  # may overlap partially
        if (input._requires_grad or input._base is not None or (
                b.__class__ is not float and other._requires_grad)) and enabled():
            return general(input, other)
        try:
            quietly(kernel, a, b, a)
        except RuntimeError:  # the context is entered by another thread
            return general(input, other)
        counter = input._counter
        if counter is None:
            input._counter = [1]
        else:
            counter[0] += 1
        return input

    def count(input: Any, a: Any, number: int) -> Any:
        """A number added to int64, or multiplied by it."""
        if a.__class__ is not np.ndarray or input.__class__ is not Tensor or special[0] or input._inference or (
                0 in a.strides or active_transforms[0] or dispatch_in_use[0] or (LARGE_SEEN[0] and a.size > limit[0])):
            return general(input, number)
        kernel(a, number, a)  # integers wrap around without a warning
        counter = input._counter
        if counter is None:
            input._counter = [1]
        else:
            counter[0] += 1
        return input

    call.__name__ = call.__qualname__ = op.name + "_"
    return call


__all__ = ["UNRECORDED", "apply_inplace", "check_fits", "inplace_fast_path", "overwrite", "rebase_history",
           "set_history"]
