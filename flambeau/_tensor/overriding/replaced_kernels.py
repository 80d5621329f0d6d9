"""Kernels that a program registers for PyTorch's operators, `Library("aten", "IMPL").impl("div.Tensor", f, "CPU")`.

A kernel for "CPU" computes below autograd: the operator is recorded with its result. One for "Autograd" or
"AutogradCPU" replaces the whole operator, so that the operators that it calls are recorded. While there is one,
operators take the general path.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextvars import ContextVar
from typing import Any

from ...engine.grad_mode import grad_mode
from ...ops.aten import declarations_of
from ...ops.declare import Op
from ...ops.overloads import OpOverload
from .aten_arguments import call_arguments
from .dispatch import begin_dispatch, end_dispatch, replaced_count

#: dispatch keys of kernels that replace an operator, and those of kernels that compute below autograd
ABOVE_AUTOGRAD, BELOW_AUTOGRAD = frozenset(("Autograd", "AutogradCPU")), frozenset(("CPU",))

#: name of the overload -> dispatch key -> kernel
_kernels: dict[str, dict[str, Callable[..., Any]]] = {}


#: names of overloads whose own kernels run, although others replace them
_running_originals: ContextVar[frozenset[str]] = ContextVar("running_originals", default=frozenset())


def original_kernel(overload: OpOverload) -> Callable[..., Any]:
    """A function that calls an operator's own kernel, also where another one replaces it."""
    def kernel(*args: Any, **kwargs: Any) -> Any:
        token = _running_originals.set(_running_originals.get() | {str(overload)})
        try:
            return overload(*args, **kwargs)
        finally:
            _running_originals.reset(token)

    return kernel


def replace(overload: OpOverload, key: str, kernel: Callable[..., Any]) -> Callable[[], None]:
    """Register a kernel; a function that removes it.

    Raises:
        NotImplementedError: the operator writes in place, or its kernel here is no operator of its own.
    """
    declared = declarations_of(overload)
    if not declared or overload._schema.is_mutable:
        raise NotImplementedError(f"{overload.name()}: flambeau replaces the kernels of operators that it declares and "
                                  "that do not write in place. Define an operator in a namespace of your own.")
    by_key = _kernels.setdefault(str(overload), {})
    is_new = key not in by_key
    by_key[key] = kernel
    if is_new:
        replaced_count[0] += 1
        begin_dispatch()

    def remove() -> None:
        if by_key.get(key) is kernel:
            del by_key[key]
            replaced_count[0] -= 1
            end_dispatch()

    return remove


def run_replaced(op: Op, inputs: Sequence[Any], params: dict[str, Any]) -> tuple[Any, bool]:
    """The result of the kernel that replaces an operator's, and whether autograd has seen it; NotImplemented: none."""
    overload, args, kwargs = call_arguments(op, inputs, params)
    by_key = {} if str(overload) in _running_originals.get() else _kernels.get(str(overload), {})
    if grad_mode.get():
        for key in sorted(ABOVE_AUTOGRAD & by_key.keys()):
            return by_key[key](*args, **kwargs), True
    for key in sorted(by_key.keys() & (BELOW_AUTOGRAD if BELOW_AUTOGRAD & by_key.keys() else ABOVE_AUTOGRAD)):
        token = grad_mode.set(False)
        try:
            return by_key[key](*args, **kwargs), False
        finally:
            grad_mode.reset(token)
    return NotImplemented, False


__all__ = ["ABOVE_AUTOGRAD", "BELOW_AUTOGRAD", "original_kernel", "replace", "run_replaced"]
