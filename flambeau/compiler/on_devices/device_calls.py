"""Calls of a compiled function with tensors on a device: traced twice, then replayed as launches.

Traces, their comparison, guards, call stubs and the construction of results are those of the CPU. There are no programs
for several sizes, no parts and no persistent cache: a call that cannot be one program runs eagerly.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any

from ..._tensor import Tensor
from ...amp import state as autocast
from ...backends.cuda_devices import current_runtime
from ...ir.graph.value import Unsupported as NoKernel
from ...modes import active_tracer, device_memory
from ...trees import tree_flatten
from ..cache.trace_cache import record_agreement
from ..errors import Unsupported
from ..execution.cache_entry import GUARDS_FAILED
from ..execution.signatures import is_static_argument, signature_of
from ..splitting.part_results import held_elsewhere
from ..tracing.trace import MAX_TRACES, Trace
from ..tracing.trace_comparison import difference
from .device_entry import DeviceCacheEntry
from .device_tracer import DeviceTracer

#: traces of one signature before its calls run eagerly for good; signatures
_MAX_TRACES, _MAX_SIGNATURES = MAX_TRACES, 64


class _Signature:
    """The entries and traces of the calls of one signature."""

    def __init__(self) -> None:
        self.entries: list[DeviceCacheEntry] = []
        self.pending: list[Trace] = []
        self.num_traces = 0
        self.reason: str | None = None
        self.mismatch: str | None = None  # of the last trace with an earlier one


class DeviceCalls:
    """The calls of a function with tensors on devices.

    Args:
        function: the function.
        fullgraph: raise where a call cannot be compiled.
    """

    def __init__(self, function: Callable[..., Any], fullgraph: bool) -> None:
        self.function, self.fullgraph = function, fullgraph
        self._signatures: dict[Any, _Signature] = {}
        self._lock = threading.RLock()
        self._runtime: Any = None
        self.num_programs = 0
        self.call_stub: Callable[..., Any] | None = None  # of the entry that ran last

    @property
    def title(self) -> str:
        """The function's name."""
        return getattr(self.function, "__name__", type(self.function).__name__)

    @property
    def reasons(self) -> list[str]:
        """Why calls run eagerly, by signature."""
        return [each.reason for each in self._signatures.values() if each.reason is not None]

    def __call__(self, args: tuple[Any, ...], kwargs: dict[str, Any], device: int) -> Any:
        """Replay a program, or run the function, traced or not.

        Args:
            device: the device of the tensors among the arguments.

        Raises:
            Unsupported: with `fullgraph`, the call cannot be compiled.
        """
        runtime = current_runtime()
        if self._runtime is not runtime:
            self._runtime, self._signatures = runtime, {}
        leaves, tree = tree_flatten((args, kwargs))
        if not all(map(is_static_argument, leaves)):
            return self._eagerly(args, kwargs, "an argument that is no tensor, number, string, function or module")
        key = (device, autocast.is_autocast_enabled("cuda") and autocast.get_autocast_dtype("cuda"),
               *signature_of(leaves, tree))
        found = self._signatures.get(key)
        if found is None:
            if len(self._signatures) >= _MAX_SIGNATURES:
                return self._eagerly(args, kwargs, "too many signatures")
            found = self._signatures[key] = _Signature()
        tensors = [x for x in leaves if isinstance(x, Tensor)]
        for entry in found.entries:
            result = entry.run(tensors) if not _is_profiled() else entry.run_profiled(tensors)
            if result is not GUARDS_FAILED:
                self.call_stub = entry.stub_for(args, kwargs)
                return result
        if found.reason is not None:
            return self._eagerly(args, kwargs, found.reason)
        with self._lock:
            return self._trace(found, tensors, args, kwargs, device)

    def _eagerly(self, args: tuple[Any, ...], kwargs: dict[str, Any], reason: str) -> Any:
        if self.fullgraph:
            raise Unsupported(f"a call of {self.function!r} cannot be compiled as one graph: {reason}")
        return self.function(*args, **kwargs)

    def _trace(self, found: _Signature, tensors: Sequence[Any], args: tuple[Any, ...], kwargs: dict[str, Any],
               device: int) -> Any:
        """Run a call while a tracer records it; make an entry if the trace agrees with an earlier one."""
        tracer = DeviceTracer(device)
        tracer.frame_hook.add_object(self.title, self.function)
        for x in tree_flatten((args, kwargs))[0]:
            if not isinstance(x, Tensor):
                tracer.frame_hook.add_object(type(x).__name__, x)
        with tracer, autocast.own_cache():
            tracer.bind_arguments(tensors)
            result = self.function(*args, **kwargs)
            if held := held_elsewhere(result, tracer.frame_hook.objects):
                tracer.graph_break(held)
            trace = Trace(tracer, tensors, result)
        tracer.release()
        if any(entry.relax_pins(trace) for entry in found.entries):
            return result
        reason = trace.failure
        if reason is None:
            for other in reversed(found.pending):
                reason = difference(other, trace)
                if reason is None:
                    found.pending.remove(other)
                    found.reason = self._add_entry(found, trace, other, device)
                    break
            else:
                found.pending = [*found.pending[-3:], trace]
        found.mismatch = reason
        found.num_traces += 1 if trace.failure is None else trace.retry_cost
        if found.num_traces >= _MAX_TRACES and found.reason is None:
            found.reason, found.pending = reason or "traces that differ", []
        if found.reason is not None and self.fullgraph:
            raise Unsupported(f"a call of {self.function!r} cannot be compiled as one graph: {found.reason}")
        return result

    def _add_entry(self, found: _Signature, trace: Trace, other: Trace, device: int) -> str | None:
        """Compile a trace that agrees with another; the reason where there are no kernels."""
        guard_set, other_set = trace.guard_set, other.guard_set
        assert guard_set is not None
        assert other_set is not None
        self.num_programs += 1
        name = self.title if self.num_programs == 1 else f"{self.title}#{self.num_programs}"
        try:
            entry = DeviceCacheEntry(trace, name, guard_set.common_guards(other_set), other,
                                     record_agreement(guard_set, other_set), device)
        except NoKernel as error:
            return str(error)
        trace.initial_state = []
        found.entries.insert(0, entry)
        found.num_traces = 0
        return None


def _is_profiled() -> bool:
    from ...engine.profiler_events import active_timeline

    return active_timeline() is not None


def device_of(args: tuple[Any, ...], kwargs: dict[str, Any], function: Any) -> int | None:
    """The device of all tensors among arguments and parameters; None if there is none, or several, or a trace runs."""
    if not device_memory.count or active_tracer.get() is not None:
        return None
    leaves = tree_flatten((args, kwargs))[0]
    devices = {x._device for x in leaves if isinstance(x, Tensor) and (x._array.ndim or x._device.type == "cuda")}
    if not devices:
        module = getattr(function, "__self__", function)
        parameters = getattr(module, "parameters", None)
        devices = {x._device for x in parameters()} if callable(parameters) else set()
    if len(devices) != 1:
        return None
    [only] = devices
    return only.index if only.type == "cuda" else None


__all__ = ["DeviceCalls", "device_of"]
