"""What this thread records: the state of grad mode and inference mode, read by every operator.

Context variables belong to one thread (and, in asyncio, to one task); a new thread starts
with gradients enabled, as in PyTorch. What switches them is in `engine.grad_mode`.
"""

from __future__ import annotations

from contextvars import ContextVar
from typing import Any

#: [how many ways of running operators other than plainly are on, over all threads: dual levels, anomaly
#: mode, ...]: a list, since every operator reads it and a list's item is the quickest thing to read that
#: can also be changed
special = [0]

#: [how many of those are profiles being written down], which compiled functions run under as programs all the same
profiled = [0]
#: [how many of those are captures of functions, over all threads]
active_tracers = [0]
#: [how many of those are levels of forward mode and of vmap], which concern only tensors that belong to them
leveled = [0]
#: the levels of forward mode that are open, over all threads. Numbers are never used twice, so what a tensor still
#: carries from a level that has ended is not mistaken for anything.
forward_levels: set[int] = set()


class Transform:
    """A function that is being run under `func.grad`, `vmap` or their kin.

    Attributes:
        kind: "grad" (reverse mode), "jvp", "vmap" or "functionalize".
        inputs: the identities of what the function's inputs are views of: it may write to them.
        start: the nodes of the graph that are born in it have higher numbers.
    """

    __slots__ = ("inputs", "kind", "start")

    def __init__(self, kind: str, start: int = 0) -> None:
        self.kind = kind
        self.start = start
        self.inputs: set[int] = set()


#: [how many transforms are running functions, over all threads]
transforms = [0]
#: those that this thread is in, outermost first
transforming: ContextVar[tuple[Transform, ...]] = ContextVar("transforming", default=())

grad_mode: ContextVar[bool] = ContextVar("grad_mode", default=True)
#: whether tangents are pushed along in this thread
forward_mode: ContextVar[bool] = ContextVar("forward_mode", default=True)
inference: ContextVar[bool] = ContextVar("inference_mode", default=False)
#: [whether inference mode has ever been on, in any thread]: until then the quick ways need not ask
inferred = [False]
#: what grad mode was set to under inference mode, where `grad_mode` stays off whatever is asked for
grad_asked: ContextVar[bool] = ContextVar("grad_mode_asked", default=False)


def set_grad(enabled: bool) -> None:
    """Set grad mode: what operators read, or under inference mode only what is told of it."""
    (grad_asked if inference.get() else grad_mode).set(enabled)


def is_grad_enabled() -> bool:
    """Whether operators record a graph in this thread.

    >>> import flambeau as torch
    >>> torch.is_grad_enabled()
    True
    """
    return (grad_asked if inference.get() else grad_mode).get()


def is_inference_mode_enabled() -> bool:
    """Whether `inference_mode` is on in this thread."""
    return inference.get()

#: [how often a module was changed: an attribute set, a parameter or a hook registered], over all modules
configured = [0]
#: what writes down this thread's run of a function (`compiler.tracing.tracer.Tracer`); asked for only if `special`
#: is not 0
active_tracer: ContextVar[Any] = ContextVar("active_tracer", default=None)
