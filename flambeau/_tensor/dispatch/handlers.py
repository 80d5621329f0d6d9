"""Handlers: functions for batched tensors, tangents and fast paths, registered by the modules that import `apply`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


class Handlers:
    """The registered handlers; each is set when the module named next to it is imported, or as said there."""

    batched_class: Any = None  # the class of batched tensors (`batched_tensor`)
    apply_batched: Callable[..., Any]  # `apply` with a batched input (`batching_rules`)
    align_levels: Callable[..., Any]  # the value of a batched tensor with more logical dimensions (`batched_tensor`)
    write_batched: Callable[..., Any]  # an in-place operator with a batched input (`batching_rules`)
    dispatch: Callable[..., Any]  # an operator's outputs by a handler of `__torch_dispatch__` (`overriding.dispatched`)
    dispatched_write: Callable[..., Any]  # the same for an in-place operator (`overriding.dispatched`)
    # for a tensor that a handler of `__torch_dispatch__` wrote to: a copy from before the write; what its node saves
    copy_before_write: Callable[..., Any]
    save_written: Callable[..., None]
    push_forward: Callable[..., None]  # tangents of the outputs of an operator (`forward_mode`)
    # operators with a sparse input (`sparse.dispatch`): `apply`, in place, and into `out=`
    apply_sparse: Callable[..., Any]
    apply_sparse_inplace: Callable[..., Any]
    write_sparse_out: Callable[..., Any]
    # while a trace records calls of Functions: the result of one, or NotImplemented (`export.script.recording`)
    record_function: Callable[..., Any] | None = None
    fast_path_of: Callable[[Any], Any]  # the fast path of an operator, or None (`fastpath.unary_with_parameters`)


handlers = Handlers()

__all__ = ["Handlers", "handlers"]
