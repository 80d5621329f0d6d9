"""Handlers: functions for batched tensors, tangents and fast paths, registered by the modules that import `apply`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


class Handlers:
    """The registered handlers; each is set once, when the module named next to it is imported."""

    batched_class: Any = None  # the class of batched tensors (`batched_tensor`)
    apply_batched: Callable[..., Any]  # `apply` with a batched input (`batching_rules`)
    write_batched: Callable[..., Any]  # an in-place operator with a batched input (`batching_rules`)
    push_forward: Callable[..., None]  # tangents of the outputs of an operator (`forward_mode`)
    fast_path_of: Callable[[Any], Any]  # the fast path of an operator, or None (`fastpath.unary_with_parameters`)


handlers = Handlers()

__all__ = ["Handlers", "handlers"]
