"""Retracing: a compiled function is traced once more, for arguments of other sizes, without lasting effects.

The function runs on copies of its arguments that have other sizes, and on other numbers. Everything outside of it that
it writes to is known from an earlier trace, and is restored afterwards; a write to anything else, a side effect, and
user code that did not run then end the retrace before they happen.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any, NamedTuple

import numpy as np

from ..._tensor import Tensor
from ..._tensor.creation.generators import default_generator
from ..._tensor.tensor import wrap
from ...amp import state as autocast
from ...ir.graph.extern_kernels import FallbackKernel
from ...ops.declare import Op
from ...shapes import Size, as_size
from ...trees import tree_flatten, tree_unflatten
from ..guards.guard import Guard
from ..state.with_state import WithState
from ..tracing.aliasing import memory_order, owner
from ..tracing.frame_hook import SideEffect
from ..tracing.speculation import known_codes, random_states
from ..tracing.trace import Trace
from ..tracing.tracer import Tracer
from .formulas import DependsOnSize, NotSymbolic
from .number_reads import NumberReads, SymbolicNumber, TooManyDecisions, plain, recorded_reads
from .rollback import preserved_objects


class Retrace(NamedTuple):
    """The trace of a retrace, and what user code did with sizes and arguments."""

    trace: Trace
    reads: NumberReads


class _RetracedTrace(Trace):
    """A trace whose guards on Python objects are those of an earlier trace."""

    def _collect_guards(self) -> None:
        hook = self._tracer.frame_hook
        hook.stop()
        if self.failure is None:
            self.failure = hook.effect


class _UnexpectedWrite(BaseException):
    """A write to memory that the earlier trace did not write to; no handler of user code may stop it."""


class _RetracingTracer(Tracer):
    """A tracer that stops the function before it writes to memory that the earlier trace did not write to.

    Attributes:
        number_reads: what user code does with sizes and arguments.
    """

    def __init__(self, written: set[int], number_reads: NumberReads) -> None:
        super().__init__()
        self._written, self.number_reads = written, number_reads

    def _check_write(self, tensor: Any) -> None:
        root = owner(tensor._array)
        storage = self.storages.get(id(root))
        if id(root) not in self._written and (storage is None or storage.leaf is not None):
            raise _UnexpectedWrite

    def intercept(self, op: Op, inputs: Sequence[Any], params: dict[str, Any], in_place: bool) -> Any:
        if in_place:
            self._check_write(inputs[0])
        for name, param in params.items():  # kernels see plain numbers
            params[name] = plain(param)
        return super().intercept(op, inputs, params, in_place)

    def on_running_average(self, average: Any, value: np.ndarray, momentum: float, factor: float) -> None:
        self._check_write(average)
        super().on_running_average(average, value, momentum, factor)

    def _update_scalar_state(self, tensor: Any, make: Callable[[], Any], new: Any) -> Any:
        if new is not None:
            self._check_write(tensor)
        return super()._update_scalar_state(tensor, make, new)

    def trace_update(self, rule: Callable[..., None], param: Any, grad: Any, state: tuple, scalars: tuple,
                     differentiable: bool) -> tuple:
        for tensor in (param, *state):
            if tensor is not None:
                self._check_write(tensor)
        return super().trace_update(rule, param, grad, state, scalars, differentiable)


@contextmanager
def _preserved(trace: Trace, arguments: Sequence[Any]) -> Iterator[set[int]]:
    """Restore afterwards what a function writes to according to a trace; yields the identities of that memory.

    Args:
        trace: the trace.
        arguments: the tensors among the arguments.
    """
    tensors = {id(x): x for x in (*trace.outside_tensors(), *arguments)}
    gradients = [(x, x._grad) for x in tensors.values()]
    arrays = [arguments[at]._array for at, _ in trace.version_bumps]
    for number in trace.written_leaves:
        source = trace.sources[number]
        if source[0] == "tensor":
            arrays.append(source[2])
            if source[1] is not None:
                tensors[id(source[1])] = source[1]
        elif source[0] == "gradient of":
            gradient = source[1].resolve(arguments)._grad
            if gradient is not None:
                arrays.append(gradient._array)
                tensors[id(gradient)] = gradient
    engines = [default_generator.engine, *(
        v.attrs.stream for v in trace.graph.values if v.op == "extern" and isinstance(v.attrs, FallbackKernel)
        and v.attrs.stream is not None)]
    streams = {id(engine): (engine, engine.snapshot()) for engine in engines}
    contents = [(a, a.copy(order="K")) for a in arrays]
    versions = [(x._counter, x._counter[0]) for x in tensors.values() if x._counter is not None]
    versions = [(counter, number) for counter, number in versions if counter.__class__ is list]
    without = [x for x in tensors.values() if x._counter is None]
    try:
        yield {id(owner(a)) for a in arrays}
    finally:
        for a, content in contents:
            a[...] = content
        for tensor, gradient in gradients:
            tensor._grad = gradient
        for counter, number in versions:
            counter[0] = number
        for tensor in without:
            tensor._counter = None
        for engine, snapshot in streams.values():
            engine.restore(snapshot)


def resized(x: Any, shape: tuple[int, ...]) -> Any:
    """Return a tensor like `x`, of another shape, with repeated elements of it in its memory order.

    Raises:
        NotSymbolic: there is none.
    """
    a = x._array
    order = memory_order(a)
    if order is None or type(x) is not Tensor or x._inference:
        raise NotSymbolic("an argument that is not dense, or of a subclass")
    dense = np.resize(a.transpose(order).reshape(-1), [shape[d] for d in order])
    result = wrap(dense.transpose([order.index(d) for d in range(a.ndim)]))
    if x._requires_grad:
        result._requires_grad = True
        if x._node is not None:
            result = result.clone()
    return result


def dense_layout(shape: Sequence[int], order: Sequence[int], itemsize: int) -> tuple[int, ...]:
    """Return the strides in bytes of a dense array of this shape and memory order.

    >>> dense_layout((2, 3), [1, 0], 4)
    (4, 8)
    """
    strides, stride = [0] * len(shape), itemsize
    for d in reversed(order):
        strides[d] = stride
        stride *= shape[d]
    return tuple(strides)


def retrace(function: Callable[..., Any], args: tuple, kwargs: dict[str, Any], shapes: dict[int, tuple[int, ...]],
            numbers: dict[int, tuple[int, Any]], trace: Trace, python_guards: Sequence[Guard],
            needs_independent_results: bool = False) -> Retrace:
    """Trace a function for arguments of other shapes, and other numbers.

    Args:
        function: the function.
        args, kwargs: arguments of a call.
        shapes: by position among the tensors of the arguments, the shapes to retrace.
        numbers: by position among the arguments, symbols and their values.
        trace: a trace of an earlier call.
        python_guards: its guards on Python objects.
        needs_independent_results: as in `Tracer`.

    Raises:
        NotSymbolic: the function cannot be traced for these shapes.
    """
    leaves, tree = tree_flatten((args, kwargs))
    tensors: list[Any] = []
    replaced: list[Any] = []
    reads = NumberReads()
    for i, x in enumerate(leaves):
        if i in numbers:
            symbol, value = numbers[i]
            x = reads.argument(value, symbol)
        elif isinstance(x, Tensor):
            shape = shapes.get(len(tensors))
            x = x if shape is None else resized(x, shape)
            tensors.append(x)
        replaced.append(x)
    new_args, new_kwargs = tree_unflatten(replaced, tree)
    with ExitStack() as stack:
        stack.enter_context(preserved_objects(python_guards))
        for undo in function.restorers() if isinstance(function, WithState) else ():
            stack.callback(undo)
        written = stack.enter_context(_preserved(trace, tensors))
        tracer = _RetracingTracer(written | {id(owner(x._array)) for i, x in enumerate(tensors) if i in shapes}, reads)
        tracer.needs_independent_results = needs_independent_results
        tracer.frame_hook.known_codes = known_codes(function, trace, python_guards)
        for restore in random_states():
            stack.callback(restore)
        try:
            with recorded_reads(), tracer, autocast.own_cache():
                tracer.bind_arguments(tensors)
                result = function(*new_args, **new_kwargs)
                after, now = tree_flatten((new_args, new_kwargs))
                if now != tree or any(x is not y for x, y in zip(replaced, after, strict=True)):
                    tracer.graph_break("a container among the arguments is changed")
                result = _with_plain_numbers(result, reads.returned)
                retraced = _RetracedTrace(tracer, tensors, result)
        except (Exception, _UnexpectedWrite, SideEffect, TooManyDecisions) as error:
            kind = DependsOnSize if isinstance(error, Exception) else NotSymbolic
            raise kind(f"the function fails for shapes {[*shapes.values()]} and numbers "
                       f"{[value for _, value in numbers.values()]}: {type(error).__name__}: {error}") from None
        finally:
            for tensor, gradient in tracer.entry_grads.values():
                tensor._grad = gradient
            tracer.release()
    if retraced.failure is not None:
        raise NotSymbolic(retraced.failure)
    return Retrace(retraced, reads)


def _with_plain_numbers(result: Any, returned: dict[int, SymbolicNumber]) -> Any:
    """Return a result without symbolic numbers, and put those that were computed from arguments into `returned`."""
    leaves, tree = tree_flatten(result, lambda x: isinstance(x, Size))
    returned.update({i: x for i, x in enumerate(leaves) if type(x) is SymbolicNumber and x.origin is not None})
    return tree_unflatten([as_size([*map(plain, x)]) if isinstance(x, Size) else plain(x) for x in leaves], tree)


__all__ = ["Retrace", "dense_layout", "resized", "retrace"]
