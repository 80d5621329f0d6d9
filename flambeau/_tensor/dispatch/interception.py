"""Interceptors: observers of every operator call, which may supply the result in place of the kernel.

They run below autograd, like a `TorchDispatchMode`: the operator is recorded in either case. The innermost interceptor
is called first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from ...modes import active_tracer, grad_mode, special
from ...ops.declare import Op
from ..tensor import Tensor


class Interceptor:
    """A context manager whose methods are called for every operator of this thread inside the block."""

    def intercept(self, op: Op, inputs: Sequence[Any], params: dict[str, Any], in_place: bool) -> Any:
        """The operator's result, an array or a list of arrays; None: run its kernel."""
        return None

    def before_kernel(self, rule: Callable[..., Any]) -> None:
        """Called before an operator's kernel or an optimizer's update rule runs."""

    def after_kernel(self, rule: Callable[..., Any]) -> None:
        """Called after it has returned or raised."""

    def on_operator(self, op: Op, inputs: Sequence[Any], params: dict[str, Any], outs: Sequence[Any],
                    in_place: bool) -> None:
        """Called after an operator was applied and recorded."""

    def on_custom_function(self, node: Any, inputs: Sequence[Any], outs: Sequence[Any]) -> None:
        """Called after a user-defined Function was applied and recorded."""

    def __enter__(self) -> Any:
        _stack.set((*_stack.get(), self))
        special[0] += 1
        return self

    def __exit__(self, *exception: object) -> None:
        _stack.set(_stack.get()[:-1])
        special[0] -= 1


_stack: ContextVar[tuple[Interceptor, ...]] = ContextVar("interceptors", default=())


@contextmanager
def without_interceptors() -> Iterator[None]:
    """A block whose operators no interceptor sees: what computes one operator that they have seen."""
    token = _stack.set(())
    try:
        yield
    finally:
        _stack.reset(token)


def intercept(op: Op, inputs: Sequence[Any], params: dict[str, Any], in_place: bool = False) -> Any:
    """The result that an interceptor supplies for an operator; None: run its kernel."""
    stack = _stack.get()
    result = None
    for i in range(len(stack) - 1, -1, -1):
        token = _stack.set(stack[:i])  # its own operators are seen only by the interceptors below it
        try:
            result = stack[i].intercept(op, inputs, params, in_place)
        finally:
            _stack.reset(token)
        if result is not None:
            break
    return result


def run_with_hooks(rule: Callable[..., Any], kernel: Callable[..., Any], *values: Any, **params: Any) -> Any:
    """Run a kernel between the interceptors' `before_kernel` and `after_kernel`.

    Args:
        rule: the declaration of the kernel: an operator's forward or an optimizer's update rule.
    """
    stack = _stack.get()
    for each in stack:
        each.before_kernel(rule)
    try:
        return kernel(*values, **params)
    finally:
        for each in stack:
            each.after_kernel(rule)


def notify_operator(op: Op, inputs: Sequence[Any], params: dict[str, Any], outs: Sequence[Any],
                    in_place: bool = False) -> None:
    """Notify the interceptors of an operator that was applied."""
    stack = _stack.get()
    for i in range(len(stack) - 1, -1, -1):
        token = _stack.set(stack[:i])
        try:
            stack[i].on_operator(op, inputs, params, outs, in_place)
        finally:
            _stack.reset(token)


def is_lowered_whole(op: Op, inputs: Sequence[Any]) -> bool:
    """Whether a tracer of this thread lowers an operator to one kernel: where no input is recorded, or a batch."""
    tracer = active_tracer.get()
    return (tracer is not None and op.name in tracer.lowered_whole
            and all(isinstance(x, Tensor) and not (x._requires_grad and grad_mode.get()) for x in inputs))


def notify_custom_function(node: Any, inputs: Sequence[Any], outs: Sequence[Any]) -> None:
    """Notify the interceptors of a user-defined Function that was applied."""
    stack = _stack.get()
    for i in range(len(stack) - 1, -1, -1):
        token = _stack.set(stack[:i])
        try:
            stack[i].on_custom_function(node, inputs, outs)
        finally:
            _stack.reset(token)


__all__ = ["Interceptor", "intercept", "is_lowered_whole", "notify_custom_function", "notify_operator",
           "run_with_hooks", "without_interceptors"]
