"""Interceptors: told of each operator that is applied, and free to answer for it instead of its kernel.

They stand below autograd: an operator that is answered for is recorded all the same. The last
one to be switched on is asked first, and told first.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextvars import ContextVar
from typing import Any

from ...modes import special
from ...ops.declare import Op


class Interceptor:
    """A block whose operators, in this thread, are shown to `answer` and `tell`."""

    def answer(self, op: Op, inputs: Sequence[Any], params: dict[str, Any], in_place: bool) -> Any:
        """The array or arrays that the operator would compute; None: let it compute them."""
        return None

    def before_kernel(self, rule: Callable[..., Any]) -> None:
        """An operator's kernel, or an optimizer's rule, is about to compute arrays."""

    def after_kernel(self, rule: Callable[..., Any]) -> None:
        """It has done so, or has failed."""

    def tell(self, op: Op, inputs: Sequence[Any], params: dict[str, Any], outs: Sequence[Any], in_place: bool) -> None:
        """Take note of an operator that was applied and its results."""

    def tell_custom(self, node: Any, inputs: Sequence[Any], outs: Sequence[Any]) -> None:
        """Take note of a user's Function that was applied and recorded, and its results."""

    def __enter__(self) -> Any:
        _stack.set((*_stack.get(), self))
        special[0] += 1
        return self

    def __exit__(self, *exception: object) -> None:
        _stack.set(_stack.get()[:-1])
        special[0] -= 1


_stack: ContextVar[tuple[Interceptor, ...]] = ContextVar("interceptors", default=())


def answered(op: Op, inputs: Sequence[Any], params: dict[str, Any], in_place: bool = False) -> Any:
    """What an interceptor answers for an operator; None where it is to be computed."""
    stack = _stack.get()
    found = None
    for i in range(len(stack) - 1, -1, -1):
        token = _stack.set(stack[:i])  # what it does itself is shown to those below it only
        try:
            found = stack[i].answer(op, inputs, params, in_place)
        finally:
            _stack.reset(token)
        if found is not None:
            break
    return found


def computed(rule: Callable[..., Any], kernel: Callable[..., Any], *values: Any, **params: Any) -> Any:
    """What a kernel computes; interceptors are told when it begins and when it ends.

    Args:
        rule: what the kernel was made of: an operator's forward, or an optimizer's rule.
    """
    stack = _stack.get()
    for each in stack:
        each.before_kernel(rule)
    try:
        return kernel(*values, **params)
    finally:
        for each in stack:
            each.after_kernel(rule)


def told(op: Op, inputs: Sequence[Any], params: dict[str, Any], outs: Sequence[Any], in_place: bool = False) -> None:
    """Tell the interceptors of an operator that was applied."""
    stack = _stack.get()
    for i in range(len(stack) - 1, -1, -1):
        token = _stack.set(stack[:i])
        try:
            stack[i].tell(op, inputs, params, outs, in_place)
        finally:
            _stack.reset(token)


def told_custom(node: Any, inputs: Sequence[Any], outs: Sequence[Any]) -> None:
    """Tell the interceptors of a user's Function that was applied and recorded."""
    stack = _stack.get()
    for i in range(len(stack) - 1, -1, -1):
        token = _stack.set(stack[:i])
        try:
            stack[i].tell_custom(node, inputs, outs)
        finally:
            _stack.reset(token)


__all__ = ["Interceptor", "answered", "computed", "told", "told_custom"]
