"""What this thread records: the state of grad mode and inference mode, read by every operator.

Context variables belong to one thread (and, in asyncio, to one task); a new thread starts
with gradients enabled, as in PyTorch. What switches them is in `autograd.modes`.
"""

from __future__ import annotations

from contextvars import ContextVar

#: [how many ways of running operators other than plainly are on, over all threads: dual levels, anomaly
#: mode, ...]: a list, since every operator reads it and a list's item is the quickest thing to read that
#: can also be changed
special = [0]

grad_mode: ContextVar[bool] = ContextVar("grad_mode", default=True)
inference: ContextVar[bool] = ContextVar("inference_mode", default=False)


def is_grad_enabled() -> bool:
    """Whether operators record a graph in this thread.

    >>> import flambeau as torch
    >>> torch.is_grad_enabled()
    True
    """
    return grad_mode.get()


def is_inference_mode_enabled() -> bool:
    """Whether `inference_mode` is on in this thread."""
    return inference.get()
