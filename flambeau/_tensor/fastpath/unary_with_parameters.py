"""Fast paths of operators with one input and parameters: reductions, scans, softmax along `dim`, clamp, pad.

As in `by_arity`, they do what `apply` does for float32 and float64 tensors, and call `apply` for anything else.
`positional_parameters` takes all parameters by position, already checked, for the functions written by hand;
`keyword_parameters` takes them by name, for `apply` and `parameter_function`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...backends.bit_views import bits_used
from ...backends.compiled import compiled_operators
from ...backends.compiled.thresholds import LARGE_SEEN, MIN_ELEMENTS, threshold_of
from ...dtypes import NARROW
from ...engine.grad_mode import grad_mode, inference
from ...engine.nodes.node import next_number
from ...engine.nodes.op_node import OpNode
from ...engine.rules.compiled_rules import allocator_rule, kernel_rule
from ...engine.rules.inlined_rules import expand, first_output_rule, full_rule, plan_of
from ...errstate import IGNORE, quietly, reset_state, run_in_quiet, set_state
from ...kernels.memory_format import in_elementwise_layout, layouts_seen
from ...modes import active_transforms, inference_used, result_modes_used, special, transform_stack
from ...ops.declare import COMPOSITE, ELEMENTWISE, REGISTRY, VIEW, Op
from ..argument_errors.seen_classes import PLAIN, OperatorClasses
from ..argument_errors.type_names import not_a_tensor
from ..dispatch.apply import apply
from ..dispatch.array_kernels import ROW_MAJOR, follows_inputs, kernel_of, row_major
from ..dispatch.gradient_edge import create_gradient_edge, gradient_edge
from ..dispatch.handlers import handlers
from ..return_types import named_result
from ..tensor import INFERENCE, Tensor, wrap
from .by_arity import F32, F64, asarray, ndarray, new
from .levels import beside_levels
from .repeated_calls import launched
from .repeated_layouts import (
    MOST,
    SMALL,
    SMALL_KERNELS,
    KnownCalls,
    Launches,
    consider_with_parameters,
    launch_or_limit,
)
from .without_promotion import without_promotion_if_any

_grad_enabled = grad_mode.get
_inferring = inference.get
_INT64 = np.dtype(np.int64)
#: operators that NumPy computes without checks of floating-point errors
_NO_WARNINGS = frozenset(("argmax", "argmin"))


def _constants(op: Op, consts: tuple[tuple[str, Any], ...]) -> Callable[..., tuple[Any, ...]]:
    """The function (input shape, parameters) -> the node's constants."""
    positions = tuple(0 if what == "shape" else 1 + op.params.index(name) for what, name in consts)
    if not positions:
        return lambda shape, params: ()
    if positions == tuple(range(1 + len(op.params))):
        return lambda shape, params: (shape, *params)
    if positions == tuple(range(1, 1 + len(op.params))):
        return lambda shape, params: params
    return lambda shape, params: tuple([(shape, *params)[i] for i in positions])


def _general(op: Op, input: Any, params: tuple[Any, ...]) -> Any:
    """The general path: check the input and call `apply`."""
    if not isinstance(input, Tensor):
        raise not_a_tensor(op.name, input)
    return apply(op, [input], dict(zip(op.params, params, strict=False)))


def positional_parameters(op: Op, kernel: Any = None) -> Callable[..., Any]:
    """The function `(input, *parameters)` of an operator with one input and one output."""
    kernel = kernel or kernel_of(op)
    if not op.differentiable:
        return _nondifferentiable(op, kernel)
    finish = _result_recorder(op)
    run = plan_of(op, 1, 1).run
    elementwise, limit = op.kind == ELEMENTWISE, threshold_of(op.name)
    compiled_kernel, count = _compiled_kernel(op), len(op.params)
    launches = Launches() if op.name in SMALL or hasattr(kernel, "launch") else None
    least = 0 if op.name in SMALL else 4096

    def call(input: Any, *params: Any) -> Any:
        try:
            a = input._array
            dt = a.dtype
        except AttributeError:
            return _general(op, input, params)
        if (dt is not F32 and dt is not F64) or (special[0] and not beside_levels(input)):
            return _general(op, input, params)
        if launches is not None and SMALL_KERNELS[0] and dt is F32 and least <= a.size <= launches.most:
            key = (a.shape, a.strides, *params)
            launch = launches.single.get(key)
            if launch:
                return finish(input, a, launch(a), params, run)
            if launch is None:
                try:
                    r = quietly(kernel, a, *params)
                except RuntimeError:
                    return _general(op, input, params)
                launches.consider(
                    dt, key, (a,), asarray(r), launch_or_limit, launches, op, [a],
                    dict(zip(op.params, params, strict=False)))
                return finish(input, a, r, params, run)
        try:
            if elementwise and LARGE_SEEN[0] and a.size > limit[0]:
                r = quietly(compiled_kernel, a, params) if len(params) == count else None
                if r is None or r.dtype is not dt:
                    return _general(op, input, params)
                return finish(input, a, r, params, kernel_rule)
            r = quietly(kernel, a, *params)
        except RuntimeError:  # the context is entered by another thread, or the kernel raised and will raise again
            return _general(op, input, params)
        return finish(input, a, r, params, run)

    call.__name__ = call.__qualname__ = op.name
    return call


def _compiled_kernel(op: Op) -> Callable[[np.ndarray, tuple[Any, ...]], Any]:
    """An elementwise operator's compiled kernel, (array, all parameters) -> result, or None where there is none."""
    result: Any = None

    def run(a: np.ndarray, params: tuple[Any, ...]) -> Any:
        nonlocal result
        if result is None:
            kernels = compiled_operators(REGISTRY)
            if kernels is None:
                return None
            result = kernels.unary_with_parameters(op)
        return result(a, params)

    return run


def _result_recorder(op: Op) -> Callable[..., Any]:
    """The function that wraps a kernel's result as a tensor and records its node."""
    plan = plan_of(op, 1, 1)
    saves_input, saves_out = bool(plan.saved_inputs), bool(plan.saved_outputs)
    constants = _constants(op, plan.consts)
    keeps_params = plan.consts == tuple(("param", name) for name in op.params)
    is_row_major = op.name in ROW_MAJOR
    specialized_rule, large_size = (None if plan.run is expand else plan.run), MIN_ELEMENTS

    def finish(input: Any, a: Any, r: Any, params: tuple[Any, ...], run: Any) -> Any:
        dt = a.dtype
        if r.__class__ is not ndarray:
            r = asarray(r)
        elif is_row_major and r.ndim > 1 and (1 in r.shape or not r.flags.c_contiguous):
            r = row_major(r)
        result = new(Tensor)
        result._array = r
        result._output_nr = 0
        result._grad = result._counter = result._base = result._accumulator = None
        if not (input._requires_grad and _grad_enabled()):
            result._requires_grad = False
            result._node = None
            if result_modes_used[0]:
                if _inferring():
                    result._inference, result._counter = True, INFERENCE
                if active_transforms[0]:
                    result._transform_depth = len(transform_stack.get())
            return result
        node = OpNode()
        edge = input._node
        if edge is None:
            edge = input._accumulator
            if edge is not None:
                edge = edge()
            if edge is None:
                edge = create_gradient_edge(input)
        elif input._base is not None:
            edge = gradient_edge(input)
        node.edge0 = edge
        node.edge1 = None
        node.n_edges = 1
        node.edge_outputs = (input._output_nr,) if input._output_nr else None
        node.plan = plan
        if r.dtype is dt:
            node.run = allocator_rule if LARGE_SEEN[0] and a.size > large_size[0] and run is specialized_rule else run
            node.fix = None
        else:
            node.run, node.fix = full_rule if a.size <= large_size[0] else None, (None, (dt,), False, False)
        node.consts = params if keeps_params else constants(a.shape, params)
        node.extra = node.outputs = node.versions = node.saved1 = None
        node.seq = next_number()
        if saves_input:
            counter = input._counter
            if saves_out:
                result._counter = mine = [0]
                node.saved0 = (input, (r, mine))
                if counter is not None and counter[0]:
                    node.versions = (counter[0], 0)
            else:
                node.saved0 = input
                if counter is not None and counter[0]:
                    node.versions = (counter[0],)
        elif saves_out:
            result._counter = mine = [0]
            node.saved0, node.saved1 = r, mine
        else:
            node.saved0 = None
        result._requires_grad = True
        result._node = node
        return result

    return finish


#: operators with complex results, which `_result_recorder` does not record: the kernel would run in vain
_COMPLEX_RESULTS = frozenset(("_fft_r2c", "_fft_c2r_adjoint"))


def keyword_parameters(op: Op) -> Callable[..., Any] | None:
    """The fast path `(input, {name: parameter})` of an operator with one input and one output, or None.

    The fast path returns None for calls that it does not handle.
    """
    if (op.kind in (VIEW, COMPOSITE) or op.n_outputs != 1 or op.variadic or len(op.inputs) != 1
            or op.check is not None or op.unsupported_dtypes.keys() & {"float32", "float64"} or not op.differentiable
            or op.name in _COMPLEX_RESULTS):
        return None
    if any(what not in ("shape", "param") for what, _ in plan_of(op, 1, 1).consts):
        return None
    kernel, finish, run = kernel_of(op), _result_recorder(op), plan_of(op, 1, 1).run
    elementwise, limit, promoting = op.kind == ELEMENTWISE, threshold_of(op.name), op.promoting_params
    names, defaults = op.params, op.defaults
    follows_input = follows_inputs(op)
    compiled_kernel = _compiled_kernel(op)

    def call(input: Any, params: dict[str, Any]) -> Any:
        try:
            a = input._array
            dt = a.dtype
        except AttributeError:
            return None
        if dt is not F32 and dt is not F64:
            return None
        large = elementwise and LARGE_SEEN[0] and a.size > limit[0]
        values = tuple(params.values()) if tuple(params) == names else (
            tuple([params[name] if name in params else defaults[name] for name in names]))
        if promoting and complex in map(type, values):
            return None
        try:
            r = quietly(compiled_kernel, a, values) if large else quietly(kernel, a, **params)
        except (RuntimeError, TypeError):  # the context is another thread's, or the kernel raised and will raise again
            return None
        if r is None or r.dtype is not dt:  # no kernel, or a dtype that `finish` does not record
            return None
        if follows_input and layouts_seen[0] and (layouts_seen[0] > 1 or not a.flags.c_contiguous):
            r = in_elementwise_layout(r, (a,))
        return finish(input, a, r, values, kernel_rule if large else run)

    return call


handlers.fast_path_of = keyword_parameters

def parameter_function(op: Op, _general: Callable[..., Any], seen: OperatorClasses | None) -> Callable[..., Any]:
    """The public function of an operator with one input and parameters: with `keyword_parameters` where `bind` would
    pass the arguments on unchanged.

    Args:
        _general: runs all other calls.
        seen: the classes of parameters that fit; None if all do.
    """
    if (len(op.inputs) != 1 or not op.params or op.spread is not None or op.argument_order is not None
            or op.scalar_overloads or op.dtype_converts or op.returns_namedtuple or op.n_outputs != 1):
        return _general
    names, names_set, most = op.params, frozenset(op.params), len(op.params)
    fitting: Any = dict.fromkeys(names, PLAIN) if seen is None else seen.by_name
    elements: Any = PLAIN if seen is None else seen.elements
    run = plan_of(op, 1, 1).run if op.differentiable and op.kind not in (VIEW, COMPOSITE) else None
    required = tuple(name for name in names if name not in op.defaults)
    fast_path: Any = None
    unconverted = without_promotion_if_any(op)
    launches = Launches()
    single, double = launches.single.get, launches.double.get
    finish: Any = None
    elementwise, threshold = op.kind == ELEMENTWISE, threshold_of(op.name)
    known_calls = KnownCalls(wait=1)
    enter: Any = None
    of_narrow = launched(_general)

    def call(*args: Any, out: Any = None, **params: Any) -> Any:
        nonlocal fast_path, finish, enter
        if enter is not None and out is None:
            result = enter(args, params)
            if result is not None and result is not False:
                return result
        launch: Any = False
        if SMALL_KERNELS[0] and fast_path and out is None and not special[0] and args:
            try:
                input = args[0]
                a = input._array
                dt = a.dtype
                if (dt is F32 or dt is F64) and a.size <= launches.most:
                    key: tuple[Any, ...] = (a.shape, a.strides)
                    if len(args) > 1:
                        rest = args[1:]
                        key = (*key, *rest, *map(type, rest))
                        if 0 in rest or tuple in map(type, rest):  # 0.0 and -0.0 are equal, (1,) and (True,), too
                            key = (*key, repr(rest))
                    if params:
                        values = params.values()
                        key = (*key, *params, *values, *map(type, values))
                        if 0 in values or tuple in map(type, values):
                            key = (*key, repr(params))
                    launch = (single if dt is F32 else double)(key)
            except (AttributeError, TypeError, ValueError):  # no tensor; a parameter that is unhashable, an array
                pass
            if launch:
                if launches.misses:
                    launches.hit()
                r = launch[0](a)
                if not (input._requires_grad and _grad_enabled()) and not (
                        result_modes_used[0] and (active_transforms[0] or _inferring())):
                    result = new(Tensor)
                    result._array = r
                    result._output_nr = 0
                    result._grad = result._counter = result._base = result._accumulator = result._node = None
                    result._requires_grad = False
                    known_calls.left -= 1
                    if known_calls.left <= 0:
                        known_calls.begin_attempt()
                        enter = known_calls.add(args, params, launch[0])
                    return result
                return finish(input, a, r, launch[1], kernel_rule if elementwise and a.size > threshold[0] else run)
        if out is not None or not args or (special[0] and not beside_levels(*args)):
            return _general(*args, out=out, **params)
        bound = params
        if len(args) > 1:
            if len(args) > most + 1 or params:
                return _general(*args, **params)
            bound = dict(zip(names, args[1:], strict=False))
        elif not names_set.issuperset(params):
            return _general(*args, **params)
        has_bool = False  # which `bind` refuses for integers
        for name, value in bound.items():
            kind = value.__class__
            if kind not in fitting[name] or ((kind is tuple or kind is list) and (
                    not elements.issuperset(map(type, value)))):
                return _general(*args, **params)
            if kind is bool:
                has_bool = True
        for name in required:
            if name not in bound:
                return _general(*args, **params)
        if fast_path is None:
            fast_path = op.fast_path
            if fast_path is None:
                fast_path = op.fast_path = keyword_parameters(op) or False
            if fast_path and finish is None:
                finish = _result_recorder(op)
        result = fast_path(args[0], bound) if fast_path else None
        if launch is None and result is not None:
            consider_with_parameters(launches, op, key, a, result._array, bound)
            if elementwise and not result._requires_grad:
                known_calls.free_left -= 1
                if known_calls.free_left <= 0:
                    from .free.calls import observe_free

                    enter = observe_free(known_calls, _general, args, params, result) or enter
        if result is None and not has_bool and isinstance(args[0], Tensor) and not bits_used[0]:
            if SMALL_KERNELS[0] and not special[0] and (a := args[0]._array).size <= MOST and a.dtype in NARROW:
                return of_narrow(*args, **params)
            result = unconverted([args[0]], bound)
        return _general(*args, **params) if result is None else result

    call.__name__ = call.__qualname__ = op.name
    return call


def _nondifferentiable(op: Op, kernel: Any) -> Callable[..., Any]:
    """`positional_parameters` of an operator without a derivative."""
    quiet = op.name in _NO_WARNINGS

    def call(input: Any, *params: Any) -> Any:
        try:
            a = input._array
            dt = a.dtype
        except AttributeError:
            return _general(op, input, params)
        if (dt is not F32 and dt is not F64) or (inference_used[0] and _inferring()) or (
                special[0] and not beside_levels(input)):
            return _general(op, input, params)
        if quiet:
            r = kernel(a, *params)
        elif LARGE_SEEN[0]:
            r = run_in_quiet(kernel, (a, *params))
        else:
            token = set_state(IGNORE)
            try:
                r = kernel(a, *params)
            finally:
                reset_state(token)
        if r.__class__ is not ndarray:
            r = asarray(r)
        if active_transforms[0] or not LARGE_SEEN[0]:
            return wrap(r)
        result = new(Tensor)
        result._array = r
        result._output_nr = 0
        result._grad = result._counter = result._base = result._accumulator = result._node = None
        result._requires_grad = False
        return result

    call.__name__ = call.__qualname__ = op.name
    return call


def _selection(name: str, a: ndarray, params: tuple[Any, ...]) -> Any:
    from .selection_launches import SELECTIONS

    make = SELECTIONS.get(name)
    return None if make is None else make(a, *params)


def values_and_indices(op: Op) -> Callable[..., Any]:
    """The function `(input, *parameters)` of an operator that returns (values, indices): max, sort, kthvalue."""
    kernel = kernel_of(op)
    plan = plan_of(op, 1, 1)
    constants = _constants(op, plan.consts)
    result_type = named_result(op)
    launches = Launches()
    find = launches.single.get
    name = "sort_stable" if op.params[0] == "stable" else op.name

    def call(input: Any, *params: Any) -> Any:
        try:
            a = input._array
            dt = a.dtype
        except AttributeError:
            return _general(op, input, params)
        if (dt is not F32 and dt is not F64) or (inference_used[0] and _inferring()) or (
                special[0] and not beside_levels(input)):
            return result_type(_general(op, input, params))
        found = None
        if SMALL_KERNELS[0] and dt is F32 and a.size <= MOST:
            key = (a.shape, a.strides, *params)
            launch = find(key)
            if launch:
                found = launch(a)
            elif launch is None and a.__class__ is ndarray:
                r, index = run_in_quiet(kernel, (a, *params))
                launches.consider(dt, key, (a,), (asarray(r), asarray(index)), _selection, name, a, params)
                found = r, index
        if found is not None:
            r, index = found
        elif LARGE_SEEN[0]:
            r, index = run_in_quiet(kernel, (a, *params))
        else:
            token = set_state(IGNORE)
            try:
                r, index = kernel(a, *params)
            finally:
                reset_state(token)
        if r.__class__ is not ndarray:
            r = asarray(r)
        if index.__class__ is not ndarray:
            index = asarray(index)
        values, indices = wrap(r), wrap(index)
        if input._requires_grad and _grad_enabled():
            node = OpNode()
            node.edges = (gradient_edge(input),)
            node.edge_outputs = (input._output_nr,) if input._output_nr else None
            node.plan = plan
            node.consts = constants(a.shape, params)
            node.extra = node.versions = node.fix = None
            node.run = first_output_rule
            node.outputs = ((r.shape, dt), (index.shape, _INT64))
            node.seq = next_number()
            indices._counter = mine = [0]
            node.saved0, node.saved1 = index, mine
            values._requires_grad = True
            values._node = node
        return result_type((values, indices))

    call.__name__ = call.__qualname__ = op.name
    return call
