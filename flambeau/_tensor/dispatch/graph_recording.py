"""Graph recording: the node of each applied operator, and the link from a view to its base."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ... import dtypes
from ...backends.compiled import compiled_operators
from ...backends.compiled.thresholds import LARGE_SEEN, MIN_ELEMENTS, threshold_of
from ...engine.anomaly_mode import Anomaly, store_traceback
from ...engine.grad_mode import grad_mode, inference
from ...engine.nodes.node import Node, next_number
from ...engine.nodes.op_node import OpNode
from ...engine.rules.compiled_rules import allocator_rule, kernel_rule
from ...engine.rules.inlined_rules import (
    cast_rule,
    first_output_rule,
    full_rule,
    pass_on,
    plan_of,
    several_outputs_rule,
)
from ...modes import active_tracer, special
from ...ops.backward_plan import BackwardPlan
from ...ops.declare import ELEMENTWISE, REGISTRY, VIEW, Op
from ..tensor import INFERENCE, Tensor, wrap
from ..views.dtype_views import view_steps_to
from ..views.untracked import register_view
from .complex_half import warn_of_complex_half
from .gradient_edge import gradient_edge
from .promotion import result_type, scalar_operand
from .saved_tensor_packing import replace_saved_with_packed

ndarray = np.ndarray
_F32, _F64 = np.dtype(np.float32), np.dtype(np.float64)


def wrap_result(a: Any, narrow: np.dtype | None) -> Tensor:
    if a.__class__ is not ndarray and not isinstance(a, ndarray):
        a = np.asarray(a)
    if narrow is not None:
        to = dtypes.rounded_type(a.dtype, narrow)
        if to == dtypes.COMPLEX32:
            warn_of_complex_half()
        a = dtypes.cast(a, to)
    return wrap(a)


def as_view(out: Tensor, source: Tensor, *, multi: bool = False) -> Tensor:
    """Make `out`, whose array shares `source`'s memory, a view of it: same base, same version counter."""
    counter = source._counter
    if counter is None:
        counter = source._counter = [0]
    out._counter = counter
    if source._inference:
        out._inference, out._counter = True, INFERENCE
        return out
    base = source._base
    if base is None:
        base = source
    out._base = base
    if counter[0]:
        out._view_version = counter[0]
    if inference.get() or source._creation == "inference":
        out._creation = "inference"
    elif not grad_mode.get():
        out._creation = "no_grad"
    elif multi:
        out._creation = "multi"
    elif source._creation is not None:
        out._creation = source._creation
    array, source_array = out._array, source._array
    if source._view_steps is not None or (
            array.dtype is not source_array.dtype and array.dtype.kind + source_array.dtype.kind in ("fc", "cf")) or (
            array.__class__ is not source_array.__class__):
        out._view_steps = view_steps_to(array, source)
    out._requires_grad = base._requires_grad
    register_view(out, counter)
    return out


def as_views(arrays: Sequence[np.ndarray], source: Tensor, *, multi: bool) -> list[Tensor]:
    """Tensors on arrays that share `source`'s memory, views of it; `as_view` of each."""
    if not arrays:
        return []
    first = as_view(wrap(arrays[0]), source, multi=multi)
    outs = [first]
    base = first._base
    if base is None or first._view_steps is not None or arrays[0].__class__ is not ndarray:
        return outs + [as_view(wrap(array), source, multi=multi) for array in arrays[1:]]
    counter, creation, version = first._counter, first._creation, first._view_version
    requires_grad = first._requires_grad
    for array in arrays[1:]:
        out: Tensor = wrap(array)
        out._counter, out._base, out._requires_grad = counter, base, requires_grad
        if creation is not None:
            out._creation = creation
        if version:
            out._view_version = version
        register_view(out, counter)  # type: ignore[arg-type]
        outs.append(out)
    return outs


#: the outputs of operators whose second one gets no gradient
VALUES_AND_INDICES = ("values", "indices")
#: (mask of the inputs that require grad, their gradient edges, output numbers of those edges, the inputs' versions)
InputEdges = tuple[int, list[Node | None], list[int] | None, list[Any]]


def collect_edges(inputs: Sequence[Any]) -> InputEdges:
    """The gradient edges and versions of an operator's inputs."""
    mask = 0
    edges: list[Node | None] = []
    numbers: list[int] | None = None
    versions: list[Any] = []
    for i, x in enumerate(inputs):
        edge = None
        version = 0
        if isinstance(x, Tensor):
            if x._requires_grad:
                edge = x._node
                if edge is None or x._base is not None:
                    edge = gradient_edge(x)
                if edge is not None or len(inputs) == 1:
                    mask |= 1 << i
                if x._output_nr:
                    if numbers is None:
                        numbers = [0] * len(inputs)
                    numbers[i] = x._output_nr
            counter = x._counter
            if counter is not None:
                version = counter[0]
        edges.append(edge)
        versions.append(version)
    return mask, edges, numbers, versions


def record(op: Op, inputs: Sequence[Any], outs: Sequence[Tensor], params: dict[str, Any], *,
           input_edges: InputEdges | None = None, original: Tensor | None = None,
           packed: dict[int, Any] | None = None) -> OpNode:
    """Make the node of one operator call and set it as `grad_fn` of the outputs.

    Args:
        input_edges: the inputs' edges and versions, for an in-place operator as they were before the write.
        original: a copy of the first input before the write, for an in-place operator whose rule uses it.
        packed: the inputs that saved-tensor hooks have already packed, by input number.
    """
    mask, edges, numbers, input_versions = input_edges or collect_edges(inputs)
    plan = plan_of(op, mask, len(inputs))
    node = OpNode()
    count = node.n_edges = len(edges)
    node.edge0 = edges[0] if count else None
    node.edge1 = edges[1] if count > 1 else None
    if count > 2:
        node.more_edges = tuple(edges[2:])
    node.edge_outputs = None if numbers is None else tuple(numbers)
    node.extra = None
    node.seq = next_number()
    node.plan = plan
    node.versions = None
    saved: list[Any] = []
    versions: list[int] = []
    if not plan.saves_tensors:
        node.saved0 = node.saved1 = None
    for i in plan.saved_inputs:
        x = inputs[i]
        if i == 0 and original is not None:
            x = original
        elif not isinstance(x, Tensor) and x is not None:
            x = wrap_result(scalar_operand(x, outs[0]._array.dtype if outs[0]._array.dtype.kind != "b" else
                                           result_type(inputs).numpy), None)
            if special[0]:
                _notify_scalar(x._array)
        saved.append(x)
        versions.append(input_versions[i] if x is inputs[i] else 0)
    for k in plan.saved_outputs:
        out = outs[k]
        if out._counter is None:
            out._counter = [0]
        saved.append((out._array, out._counter))
        versions.append(out._counter[0])
    if saved:
        node.saved = tuple(saved)
        if [v for v in versions if v]:  # a list, so that each is tested: an inference tensor's version raises
            node.versions = tuple(versions)
    node.consts = tuple([_const(what, which, inputs, params, op) for what, which in plan.consts]) if plan.consts else ()
    first = outs[0]._array
    node.outputs = None if op.n_outputs == 1 else tuple((o._array.shape, o._array.dtype) for o in outs)
    node.fix = gradient_fix(op, inputs, first, mask)
    if LARGE_SEEN[0] and op.kind == ELEMENTWISE and op.n_outputs == 1 and first.size > threshold_of(op.name)[0] and (
            first.__class__ is ndarray) and compiled_operators(REGISTRY) is not None:
        node.run = kernel_rule
    elif node.fix is None and op.n_outputs == 1:
        node.run = allocator_rule if LARGE_SEEN[0] and op.kind != VIEW and _are_large(outs, inputs) else plan.run
    elif node.fix is None and op.outputs == VALUES_AND_INDICES and plan.joint is None:
        node.run = first_output_rule
    elif op.n_outputs > 1:
        node.run = several_outputs_rule
    else:
        node.run = full_rule if first.size <= MIN_ELEMENTS[0] else None
    if Anomaly.enabled:  # takes the node off the fast path, which ignores the hooks that it may be given
        store_traceback(node)
    for k, out in enumerate(outs):
        if out._array.dtype.kind in "fcV":
            out._requires_grad = True
            out._node = node
            if k:
                out._output_nr = k
    if special[0] and plan.saves_tensors:
        replace_saved_with_packed(node, inputs, outs, packed, original)
    return node


def _notify_scalar(array: np.ndarray) -> None:
    """Notify the tracer of a scalar that is saved as a tensor."""
    tracer = active_tracer.get()
    if tracer is not None:
        tracer.on_create(array, False)


def _are_large(outs: Sequence[Tensor], inputs: Sequence[Any]) -> bool:
    least = MIN_ELEMENTS[0]
    for x in outs:
        if x._array.size > least:
            return True
    for x in inputs:  # noqa: SIM110 - a generator takes twice as long
        if isinstance(x, Tensor) and x._array.size > least:
            return True
    return False


def _const(what: str, which: Any, inputs: Sequence[Any], params: dict[str, Any], op: Op) -> Any:
    if what == "param":
        return params[which] if which in params else op.defaults[which]
    if what == "shape":
        x = inputs[which]
        return () if not isinstance(x, Tensor) else x._array.shape
    if what == "dtype":
        return inputs[which].dtype
    if what == "strides":
        return inputs[which]._array.strides
    if what == "shapes":
        return tuple(x._array.shape for x in inputs[which:])
    return tuple(x.dtype for x in inputs[which:])


def gradient_fix(op: Op, inputs: Sequence[Any], first: np.ndarray, mask: int = -1) -> tuple[Any, ...] | None:
    """The post-processing of a call's gradients, (shapes, dtypes, conjugate, widen); None where they need none.

    Args:
        mask: the inputs that get a gradient, as bits.
    """
    shape, dtype = first.shape, first.dtype
    if dtype is _F32 or dtype is _F64:
        any_shape, any_index = op.kind != ELEMENTWISE, op.promote == "none"
        for i, x in enumerate(inputs):
            if isinstance(x, Tensor):
                a = x._array
                if a.dtype is not dtype:
                    if not any_index or mask >> i & 1 or a.dtype.kind not in "iub":
                        break
                elif not (any_shape or a.shape == shape):
                    break
        else:
            return None
    unlike_shape = unlike_type = is_complex = is_narrow = False
    for i, x in enumerate(inputs):
        if not isinstance(x, Tensor):
            continue
        a = x._array
        d = a.dtype
        gets_gradient = mask >> i & 1
        if gets_gradient:
            unlike_shape = unlike_shape or a.shape != shape
        if d is not dtype and d != dtype and (  # a rule may multiply with a promoted operand, but not with an index
                gets_gradient or (op.promote != "none" and (not op.unpromoted or op.inputs[i] not in op.unpromoted))):
            unlike_type = True
        if d is dtype and (d is _F32 or d is _F64):
            continue
        is_complex = is_complex or d.kind == "c"
        is_narrow = is_narrow or d in dtypes.NARROW
        if d.kind == "V" and d == dtypes.COMPLEX32:
            is_complex = is_narrow = True
    is_complex = is_complex or dtype.kind == "c"
    is_narrow = is_narrow or dtype in dtypes.NARROW
    if dtype.kind == "V" and dtype == dtypes.COMPLEX32:
        is_complex = is_narrow = True
    unlike_shape = unlike_shape and op.kind == ELEMENTWISE
    if not (unlike_shape or unlike_type or is_complex or (is_narrow and not op.moves_gradients)):
        return None
    if is_complex and not op.complex_gradients:
        raise RuntimeError(f"{op.name} does not support automatic differentiation for outputs with complex dtype.")
    shapes = None
    if unlike_shape:
        shapes = tuple(x._array.shape if isinstance(x, Tensor) else () for x in inputs)
    types = tuple(x._array.dtype if isinstance(x, Tensor) else dtype for x in inputs)
    return shapes, types, is_complex and op.holomorphic, is_narrow and (is_complex or not op.moves_gradients)


def record_unary(out: Tensor, edge: Node | None, number: int, op: Op, plan: BackwardPlan, consts: tuple[Any, ...],
                 source: Tensor) -> None:
    """Make the node of an operator with one input and set it as `grad_fn` of `out`.

    Args:
        edge: the gradient edge of the input.
        number: the output number of `edge` that the input is.
        source: a tensor of the input's dtype.
    """
    node = OpNode()
    node.edges = (edge,)
    node.edge_outputs = (number,) if number else None
    node.extra = node.outputs = node.versions = None
    node.plan = plan
    node.saved0 = node.saved1 = None
    node.consts = consts
    node.seq = next_number()
    dt = out._array.dtype
    if (dt is _F32 or dt is _F64) and source._array.dtype is dt:
        node.fix = None
        node.run = plan.run
    else:
        fix = node.fix = gradient_fix(op, (source,), out._array)
        if fix is None:
            node.run = plan.run
        elif plan.run is pass_on and fix[0] is None and not fix[2] and not dtypes.is_complex(fix[1][0]) and (
                not dtypes.is_complex(dt)):
            node.run = cast_rule
        else:
            node.run = full_rule if out._array.size <= MIN_ELEMENTS[0] else None
    out._requires_grad = True
    out._node = node
