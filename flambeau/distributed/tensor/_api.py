"""`torch.distributed.tensor._api`: distributed tensors, and what makes them."""

from __future__ import annotations

from ._dispatch import OpDispatcher
from ._distribute import distribute_module, distribute_tensor
from ._dtensor import DTensor
from ._factories import empty, full, ones, rand, randn, zeros

__all__ = ["DTensor", "OpDispatcher", "distribute_module", "distribute_tensor", "empty", "full", "ones", "rand",
           "randn", "zeros"]
