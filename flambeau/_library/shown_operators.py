"""Kernels that are made of other operators, of operators that handlers of `__torch_dispatch__` are given."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from .._tensor import Tensor
from .._tensor.overriding.dispatch import ask, dispatch_modes, handling_inputs, no_dispatch
from ..engine.grad_mode import grad_mode
from ..modes import dispatch_in_use
from ..ops.overloads import OpOverload
from ..trees import tree_leaves
from .registry import operator_named


def shown_to_handlers(operator: OpOverload | str, kernel: Callable[..., Any]) -> Callable[..., Any]:
    """A kernel that asks the handlers first.

    A call that is to be recorded is not shown: handlers are given the operators that it is made of, which record
    themselves.

    Args:
        operator: the overload, or its qualified name, `aten::hardtanh_backward`.
    """
    @functools.wraps(kernel)
    def run(*args: Any, **kwargs: Any) -> Any:
        if dispatch_in_use[0] and not no_dispatch.get():
            found = handling_inputs((*args, *kwargs.values()))
            recorded = grad_mode.get() and any(isinstance(x, Tensor) and x._requires_grad
                                               for x in tree_leaves((args, kwargs)))
            if (found or dispatch_modes.get()) and not recorded:
                overload = operator_named(operator) if isinstance(operator, str) else operator
                schema = overload._schema
                args, kwargs = schema.normalized(schema.bind(args, kwargs))
                return ask(overload, found, args, kwargs)
        return kernel(*args, **kwargs)

    return run


__all__ = ["shown_to_handlers"]
