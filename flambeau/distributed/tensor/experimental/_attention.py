"""`torch.distributed.tensor.experimental._attention`: attention over sequences that are cut; left out."""

from __future__ import annotations

from ....environment.left_out import refusing_function

_REASON = "flambeau has no attention over sequences that are cut over processes; gather them before"
_NAME = "torch.distributed.tensor.experimental._attention."

context_parallel = refusing_function(_NAME + "context_parallel", _REASON)
context_parallel_unshard = refusing_function(_NAME + "context_parallel_unshard", _REASON)
set_rotate_method = refusing_function(_NAME + "set_rotate_method", _REASON)

__all__ = ["context_parallel", "context_parallel_unshard", "set_rotate_method"]
