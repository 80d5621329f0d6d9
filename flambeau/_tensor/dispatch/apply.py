"""Applying an operator: promote, run on arrays, wrap, record.

`apply` is the general way, for any dtypes, scalars, broadcasting, views and forward mode.
Small operators on like arrays take the shorter ways of `fast`, which do the same.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Sequence
from functools import partial
from math import prod
from typing import Any

import numpy as np

from ... import dtypes
from ...backends.compiled import copied, kernels_of
from ...backends.compiled.thresholds import LEAST, MET, NARROW_CASTS, limit_of
from ...backends.errstate import IGNORE, reset_state, run_in_quiet, run_quietly, set_state
from ...backends.numpy import ArrayNamespace, primitives
from ...backends.numpy.memory import address
from ...engine.anomaly_mode import Anomaly, remember
from ...engine.compiled_rules import by_kernel, quiet_run
from ...engine.grad_mode import grad_mode, inference
from ...engine.inlined_rules import plan_of
from ...engine.node import AccumulateGrad, Node, OpNode, layer, next_number
from ...engine.profiler_events import recording
from ...ir.decompositions.composites import lines_with_programs, with_programs
from ...modes import capturing, forward_levels, inferred, leveled, special
from ...ops.declare import COMPOSITE, ELEMENTWISE, REGISTRY, VIEW, Op
from ...shapes import broadcast_shapes
from ..dtype_views import steps_to
from ..tensor import INFERENCE, Tensor, wrap
from ..untracked_views import follow
from .interception import answered, computed, told
from .saved_tensor_packing import hold_packed, pack_inputs

ndarray = np.ndarray
arrays = layer.arrays = ArrayNamespace(with_programs(primitives()), REGISTRY)
arrays.__dict__.update(lines_with_programs(arrays))
NO_PARAMS: dict[str, Any] = {}
#: set by the modules above this one, `along`, `batching` and `forward_mode`
short_way_of: Any = None
batched_class: Any = None
apply_batched: Any = None
push_forward: Any = None
_NUMBERS = frozenset(dtypes.PYTHON_CATEGORY)


def kernel_of(op: Op) -> Any:
    """What computes an operator on arrays: the namespace's primitive of its name, or its own forward."""
    kernel = op.__dict__.get("kernel")
    if kernel is None:
        name = op.name
        if REGISTRY.get(name) is op or (name in arrays.__dict__ and op.forward.__name__ == name):
            kernel = getattr(arrays, name)
        else:
            kernel = partial(op.forward, arrays) if op.takes_xp else op.forward
        op.kernel = kernel  # type: ignore[attr-defined]
    return kernel


def gradient_edge(x: Tensor) -> Node:
    """The node that a cotangent of `x` goes to: the one that made it, or its accumulator.

    None for a view that requires grad only because its base does: made where nothing was recorded.
    """
    node = x._node
    if node is not None:
        return x.grad_fn if x._base is not None else node  # type: ignore[return-value]
    reference = x._accumulator
    node = None if reference is None else reference()
    if node is None:
        if x._base is not None:
            node = x.grad_fn
            if node is not None or not x._own:
                return node  # type: ignore[return-value]
        with _accumulating:
            reference = x._accumulator
            node = None if reference is None else reference()
            if node is None:
                node = AccumulateGrad(x)
                x._accumulator = weakref.ref(node)
                if x._hooks:
                    node.register_tensor_hook(0, x._hooks)
    return node


#: a leaf has one accumulator, whichever threads ask for it at the same time; the collector may ask in between
_accumulating = threading.RLock()


def result_type(operands: Sequence[Any]) -> dtypes.dtype:
    """PyTorch's promotion over tensors with dimensions, 0-d tensors and numbers, in that priority."""
    with_dims = zero_dims = wrapped = None
    for x in operands:
        if x is None:
            continue
        if x.__class__ in _NUMBERS or not isinstance(x, Tensor):
            d = dtypes.of_scalar(x)
            wrapped = d if wrapped is None else dtypes.promote_types(wrapped, d)
        else:
            d = x.dtype
            if x._array.ndim:
                with_dims = d if with_dims is None else dtypes.promote_types(with_dims, d)
            else:
                zero_dims = d if zero_dims is None else dtypes.promote_types(zero_dims, d)
    found = dtypes.combine_categories(with_dims, dtypes.combine_categories(zero_dims, wrapped))
    assert found is not None
    return found


def refuse(op: Op, d: dtypes.dtype, inputs: Sequence[Any], params: dict[str, Any]) -> None:
    """Raise what an operator has to say to numbers of a dtype it does not support."""
    error = op.unsupported_dtypes.get(d.name)
    if error is None:
        return
    if not isinstance(error, Exception):
        error = error(*inputs, **params)
    if error is not None:
        raise type(error)(str(error).replace("{}", d.scalar_name))


def promoted_type(op: Op, inputs: Sequence[Any], params: dict[str, Any] = NO_PARAMS) -> dtypes.dtype:
    """The dtype that an operator's inputs are promoted to before it is asked whether floats are needed."""
    operands = list(inputs)
    if op.unpromoted:
        operands = [x for x, name in zip(inputs, op.inputs, strict=False) if name not in op.unpromoted]
    for name in op.promoting_params:
        value = params.get(name)
        if value is not None:
            operands.append(value)
    return result_type(operands)


def _operands(op: Op, inputs: Sequence[Any], params: dict[str, Any] = NO_PARAMS,
              large: list[np.dtype] | None = None) -> tuple[list[Any], np.dtype | None]:
    """The arrays an operator computes on, promoted as it says, and the narrow dtype to round results to.

    Args:
        large: leave large arrays as they are, and put here, for each of them, the dtype to compute in.
    """
    narrow: np.dtype | None = None
    found: list[Any] = []
    if op.check is not None:
        op.check(*inputs)
    if op.promote == "none":
        if op.unsupported_dtypes and isinstance(inputs[0], Tensor):
            refuse(op, inputs[0].dtype, inputs, params)
        for x in inputs:
            a = x._array if isinstance(x, Tensor) else x
            if a.__class__ is ndarray and op.opmath and a.dtype in dtypes.NARROW:
                narrow = a.dtype if narrow is None else narrow
                a = dtypes.widen(a)
            found.append(a)
        return found, narrow
    common: np.dtype | None = None
    unpromoted = op.unpromoted
    for i, x in enumerate(inputs):
        if x is None or (unpromoted and op.inputs[i] in unpromoted):
            continue
        if not isinstance(x, Tensor) or (common is not None and x._array.dtype != common):
            common = None
            break
        common = x._array.dtype
    if common is not None and op.promoting_params and (
            common.kind not in "fV" or any(params.get(name).__class__ is complex for name in op.promoting_params)):
        common = None  # beside floats, only a complex number changes anything
    if common is None:
        common = promoted_type(op, inputs, params).numpy
    if op.unsupported_dtypes:
        refuse(op, dtypes.of(common), inputs, params)
    if op.promote == "float" and common.kind not in "fcV":
        common = dtypes.get_default_dtype().numpy
    compute = common
    if op.opmath and common in dtypes.NARROW:
        narrow, compute = common, dtypes.float32.numpy
    for i, x in enumerate(inputs):
        if x is None:
            found.append(None)
        elif isinstance(x, Tensor):
            a = x._array
            if large is not None and a.size > LEAST[0]:
                large.append(compute)
                found.append(a)
                continue
            if unpromoted and op.inputs[i] in unpromoted:
                found.append(a)
                continue
            if narrow is not None and a.dtype != narrow and (a.ndim or op.inputs[i] not in op.unrounded):
                a = dtypes.cast(a, narrow)
            found.append(a if a.dtype == compute else dtypes.cast(a, compute))
        elif narrow is not None and op.inputs[i] not in op.unrounded:
            found.append(rounded_number(x, narrow))
        else:
            found.append(_number(x, compute))
    return found, narrow


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


def rounded_number(value: Any, narrow: np.dtype) -> np.ndarray:
    """A number rounded to float16 or bfloat16, in float32."""
    return dtypes.widen(dtypes.cast(_number(value, dtypes.float32.numpy), narrow))


def rounded_params(op: Op, params: dict[str, Any], narrow: np.dtype) -> dict[str, Any]:
    """Parameters with those numbers rounded that stand for an input."""
    rounded = {name: float(rounded_number(params[name], narrow)) for name in op.promoting_params
               if params.get(name).__class__ is float}
    return {**params, **rounded}


def _number(value: Any, to: np.dtype) -> np.ndarray:
    if to.kind in "iu" and not isinstance(value, bool):
        if not -(2**63) <= value < 2**64:
            raise OverflowError("int too big to convert")
        return np.array(int(value) & (2 ** (8 * to.itemsize) - 1), np.uint64).astype(to)
    if to == dtypes.BFLOAT16:
        return dtypes.to_bfloat16(np.asarray(value, np.float32))
    return np.asarray(value).astype(to)


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
            short = op.fast_path = short_way_of(op) or False
        if short:
            found = short(inputs[0], params)
            if found is not None:
                return found
    else:
        watched = special[0] != leveled[0]
        if watched and not timed and recording() is not None:
            from .profiling import timed as in_a_span

            return in_a_span(op, op.name, inputs, params, lambda: apply(op, inputs, params, timed=True))
        if op.kind != COMPOSITE:
            for x in inputs:
                if type(x) is batched_class:
                    return apply_batched(op, inputs, params)
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
        push_forward(op, inputs, outs, params)
    if watched:
        told(op, inputs, params, outs)
    if op.n_outputs == 1:
        return outs[0]
    return outs


def _are_large(outs: Sequence[Tensor], inputs: Sequence[Any]) -> bool:
    least = LEAST[0]
    return any(isinstance(x, Tensor) and x._array.size > least for x in (*outs, *inputs))


#: operators whose results PyTorch lays out in row-major order, in whatever order their inputs lie
ROW_MAJOR = frozenset((
    "sum", "nansum", "mean", "prod", "amax", "amin", "max", "min", "any", "all", "var", "std", "var_mean", "std_mean",
    "norm", "linalg_vector_norm", "logsumexp", "softmax", "log_softmax", "cumsum", "cumprod", "cummax", "cummin",
    "logcumsumexp", "cat", "stack", "roll", "masked_fill", "repeat", "index", "tril", "triu",
))


def row_major(found: Any) -> Any:
    """What a kernel found, with its elements in row-major order."""
    if found.__class__ is ndarray:
        if found.ndim > 1:
            if not found.flags.c_contiguous:
                return copied(found)
            if 1 in found.shape and found.size:  # NumPy does not mind what strides these have
                return found.reshape(-1).reshape(found.shape)
        return found
    return [row_major(a) for a in found] if found.__class__ in (tuple, list) else found


def _wrapped(a: Any, narrow: np.dtype | None) -> Tensor:
    if a.__class__ is not ndarray:
        a = np.asarray(a)
    if narrow is not None and a.dtype == np.float32:
        a = dtypes.cast(a, narrow)
    return wrap(a)


def as_view(out: Tensor, source: Tensor, *, multi: bool = False) -> Tensor:
    """Make `out`, whose array lies in `source`'s memory, a view of it: one base, one version counter."""
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
    out._view_version = counter[0]
    if inference.get() or source._creation == "inference":
        out._creation = "inference"
    elif not grad_mode.get():
        out._creation = "no_grad"
    elif multi:
        out._creation = "multi"
    elif source._creation is not None:
        out._creation = source._creation
    array, shown = out._array, source._array
    if source._steps is not None or (array.dtype is not shown.dtype and array.dtype.kind + shown.dtype.kind in (
            "fc", "cf")):
        out._steps = steps_to(array, source)
    out._requires_grad = base._requires_grad
    follow(out, counter)
    return out


#: which inputs require grad, as bits; their nodes; the numbers of those nodes' outputs; the inputs' versions
Origin = tuple[int, list[Node | None], list[int] | None, list[Any]]


def origin_of(inputs: Sequence[Any]) -> Origin:
    """Where in the graph an application's inputs come from."""
    mask = 0
    edges: list[Node | None] = []
    numbers: list[int] | None = None
    versions: list[Any] = []
    for i, x in enumerate(inputs):
        edge = None
        version = 0
        if isinstance(x, Tensor):
            if x._requires_grad:
                edge = gradient_edge(x)
                if edge is not None or len(inputs) == 1:
                    mask |= 1 << i
                if x._output_nr:
                    if numbers is None:
                        numbers = [0] * len(inputs)
                    numbers[i] = x._output_nr
            if x._counter is not None:
                version = x._counter[0]
        edges.append(edge)
        versions.append(version)
    return mask, edges, numbers, versions


def record(op: Op, inputs: Sequence[Any], outs: Sequence[Tensor], params: dict[str, Any], *,
           origin: Origin | None = None, original: Tensor | None = None,
           packed: dict[int, Any] | None = None) -> OpNode:
    """Make the node of one application and hang it on the outputs.

    Args:
        origin: where the inputs came from, if one of them was written to since.
        original: what the first input held before it was overwritten, for an in-place application.
        packed: the inputs that saved-tensor hooks have packed already, by their numbers.
    """
    mask, edges, numbers, at_first = origin or origin_of(inputs)
    plan = plan_of(op, mask, len(inputs))
    node = OpNode()
    node.edges = tuple(edges)
    node.edge_outputs = None if numbers is None else tuple(numbers)
    node.extra = None
    node.seq = next_number()
    node.plan = plan
    node.versions = None
    saved: list[Any] = []
    versions: list[int] = []
    for i in plan.saved_inputs:
        x = inputs[i]
        if i == 0 and original is not None:
            x = original
        elif not isinstance(x, Tensor) and x is not None:
            x = _wrapped(_number(x, outs[0]._array.dtype if outs[0]._array.dtype.kind != "b" else
                                 result_type(inputs).numpy), None)
            if special[0]:
                _tell_number(x._array)
        saved.append(x)
        versions.append(at_first[i] if x is inputs[i] else 0)
    for k in plan.saved_outputs:
        out = outs[k]
        if out._counter is None:
            out._counter = [0]
        saved.append((out._array, out._counter))
        versions.append(out._counter[0])
    node.saved = tuple(saved)
    if [v for v in versions if v]:  # all are asked: that of an inference tensor says that it cannot be saved
        node.versions = tuple(versions)
    node.consts = tuple([_const(what, which, inputs, params, op) for what, which in plan.consts])
    if Anomaly.enabled:
        remember(node)
    first = outs[0]._array
    node.outputs = None if op.n_outputs == 1 else tuple((o._array.shape, o._array.dtype) for o in outs)
    node.fix = _fix(op, inputs, first)
    if MET[0] and op.kind == ELEMENTWISE and op.n_outputs == 1 and first.size > limit_of(op.name)[0] and (
            first.__class__ is ndarray) and kernels_of(REGISTRY) is not None:
        node.run = by_kernel
    elif node.fix is None and op.n_outputs == 1:
        node.run = quiet_run if MET[0] and op.kind != VIEW and _are_large(outs, inputs) else plan.run
    else:
        node.run = None
    for k, out in enumerate(outs):
        if out._array.dtype.kind in "fcV":
            out._requires_grad = True
            out._node = node
            if k:
                out._output_nr = k
    if special[0] and plan.saves_tensors:
        hold_packed(node, inputs, outs, packed, original)
    return node


def _tell_number(array: np.ndarray) -> None:
    """Tell a function's capture of a number that is saved as a tensor."""
    capture = capturing.get()
    if capture is not None:
        capture.creates(array, False)


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


def _fix(op: Op, inputs: Sequence[Any], first: np.ndarray) -> tuple[Any, ...] | None:
    """What the gradients of this application need mending for, or None."""
    shape, dtype = first.shape, first.dtype
    unlike_shape = unlike_type = is_complex = is_narrow = False
    for x in inputs:
        if x is None:
            continue
        if not isinstance(x, Tensor):
            unlike_shape = unlike_shape or shape != ()
            continue
        a = x._array
        unlike_shape = unlike_shape or a.shape != shape
        d = a.dtype
        if d is not dtype and d != dtype:
            unlike_type = True
        is_complex = is_complex or d.kind == "c"
        is_narrow = is_narrow or d in dtypes.NARROW
    is_complex = is_complex or dtype.kind == "c"
    is_narrow = is_narrow or dtype in dtypes.NARROW
    unlike_shape = unlike_shape and op.kind == ELEMENTWISE
    if not (unlike_shape or unlike_type or is_complex or is_narrow):
        return None
    shapes = None
    if unlike_shape:
        shapes = tuple(x._array.shape if isinstance(x, Tensor) else () for x in inputs)
    types = tuple(x._array.dtype if isinstance(x, Tensor) else dtype for x in inputs)
    return shapes, types, is_complex and op.holomorphic, is_narrow
layer.gradient_edge = gradient_edge
