"""Modes: the state of grad mode, inference mode, forward mode, tracing and transforms, which every operator reads.

Context variables belong to one thread (in asyncio, to one task). A new thread starts with gradients enabled, as in
PyTorch. Counters are lists of one int, over all threads: reading an item of a list is the fastest read of mutable
state. `engine.grad_mode` has the context managers.
"""

from __future__ import annotations

from contextvars import ContextVar
from threading import RLock
from typing import Any

#: [whether operators must be deterministic: 0, or 1 to warn of others, or 2 to refuse them]
determinism = [0]
#: [the number of active modes that exclude fast paths: dual levels, vmap levels, tracers, profiles, anomaly mode, ...]
special = [0]

#: [the precision of float32 products: `set_float32_matmul_precision`], and what is called when it changes
float32_precision = ["highest"]
float32_precision_observers: list[Any] = []
#: [whether new memory without values is filled]: `use_deterministic_algorithms`
filled_memory = [False]
#: [the number of those that are profiles]; compiled programs are replayed under a profile
active_profilers = [0]
#: [the number of types of devices for which autocast is on, over all threads], and [those of them for which it acts on
#: the next operator]
enabled_autocasts, active_autocasts = [0], [0]
#: [the number of those that are traces of functions]
active_tracers = [0]
#: [the number of those that are handlers of `__torch_dispatch__`: modes, and live instances of subclasses]
dispatch_in_use = [0]
#: [the number of those that are lazy storages, which are copied before they are written to]
lazy_storages = [0]
#: [the number of those that concern only their tensors: levels of forward mode and of vmap, and live instances of
#: subclasses without memory]
level_count = [0]
#: the open levels of forward mode, over all threads. Level numbers are never reused: a tangent of a level that has
#: ended is ignored.
forward_levels: set[int] = set()


class DeviceMemoryInUse:
    """The number of blocks of devices' memory that are in use."""

    __slots__ = ("_lock", "count")

    def __init__(self) -> None:
        self.count = 0
        self._lock = RLock()

    def add(self, change: int) -> None:
        """Count blocks."""
        with self._lock:
            self.count += change


device_memory = DeviceMemoryInUse()


class Transform:
    """One running transform of `func`.

    Attributes:
        kind: "grad" (reverse mode), "jvp", "vmap" or "functionalize".
        inputs: the ids of the tensors of which the function's inputs are views; the function may write to them.
        start: graph nodes with a higher sequence number were created inside the transform.
    """

    __slots__ = ("inputs", "kind", "start")

    def __init__(self, kind: str, start: int = 0) -> None:
        self.kind = kind
        self.start = start
        self.inputs: set[int] = set()


#: [the number of running transforms]
active_transforms = [0]
#: the transforms of this thread, outermost first
transform_stack: ContextVar[tuple[Transform, ...]] = ContextVar("transform_stack", default=())

grad_mode: ContextVar[bool] = ContextVar("grad_mode", default=True)
#: whether this thread computes tangents
forward_mode: ContextVar[bool] = ContextVar("forward_mode", default=True)
inference: ContextVar[bool] = ContextVar("inference_mode", default=False)
#: [whether inference mode was ever enabled, in any thread]; until then fast paths do not read `inference`
inference_used = [False]
#: [whether inference mode or a transform was ever entered, in any thread]: until then results are marked with neither
result_modes_used = [False]
#: the grad mode set by the program under inference mode, where `grad_mode` itself stays False
requested_grad_mode: ContextVar[bool] = ContextVar("requested_grad_mode", default=False)


def set_grad(enabled: bool) -> None:
    """Set grad mode. Under inference mode only the requested value is stored."""
    (requested_grad_mode if inference.get() else grad_mode).set(enabled)


def is_grad_enabled() -> bool:
    """Whether operators record a graph in this thread.

    >>> import flambeau as torch
    >>> torch.is_grad_enabled()
    True
    """
    return (requested_grad_mode if inference.get() else grad_mode).get()


def is_inference_mode_enabled() -> bool:
    """Whether `inference_mode` is enabled in this thread.

    >>> import flambeau as torch
    >>> with torch.inference_mode():
    ...     torch.is_inference_mode_enabled()
    True
    """
    return inference.get()


#: [the number of changes to modules of `nn`: attributes set, parameters or hooks registered]
module_changes = [0]
#: the tracer of this thread (`compiler.tracing.tracer.Tracer`); read only if `special` is not 0
active_tracer: ContextVar[Any] = ContextVar("active_tracer", default=None)
