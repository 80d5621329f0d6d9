"""`FunctionCaches`: what every layer of a compiled function knows: its options, and its caches by signature."""

from __future__ import annotations

import functools
import threading
import warnings
from abc import abstractmethod
from collections.abc import Callable, Iterator
from typing import Any

from ...runtime import debug_output
from ...trees import tree_flatten
from ..splitting.split_function import SplitFunction
from ..stance import compiled_functions, policy
from ..state.stateful_function import StatefulFunction
from .cache_entry import CacheEntry
from .shape_families import ShapeFamily
from .signatures import SignatureCache, signature_of


class FunctionCaches:
    """What every layer of a compiled function knows: its options, and its caches by signature.

    Attributes:
        has_state: whether Python state is among the arguments.
    """

    has_state = False

    def __init__(self, function: Callable[..., Any], *, fullgraph: bool = False, limit: int | None = None,
                 check: bool = False, enabled: bool = True, part_of: tuple[SplitFunction, str] | None = None,
                 dynamic: bool | None = None) -> None:
        self.function, self.dynamic = function, dynamic
        if not isinstance(function, functools.partial) and hasattr(function, "__name__"):
            functools.update_wrapper(self, function, updated=())
        self.fullgraph, self.limit, self.check, self.enabled = fullgraph, limit, check, enabled
        self._signatures: dict[Any, SignatureCache] = {}
        self._families: dict[Any, ShapeFamily] = {}
        self._instances: dict[Any, SignatureCache] = {}  # of templates, the least recently used first
        self._seen: dict[Any, float] = {}  # seconds of eager calls of signatures that have no program yet
        self._num_instances = self._num_reused = 0
        self._seconds_of_instances = 0.0
        self._lock = threading.RLock()
        self._call_stub: Callable[..., Any] | None = None
        self._num_programs = 0
        self._num_unstable = 0  # signatures with `has_unstable_objects`
        self.records_provenance = False  # whether to trace with `ProvenanceTracer`
        self.split: SplitFunction | None = None  # the function in parts, once a trace has failed
        self._part_of = part_of
        self._device_calls: Any = None
        self.stateful: dict[tuple, StatefulFunction | None] = {}  # by objects among the arguments; None: not possible
        compiled_functions.add(self)

    def __repr__(self) -> str:
        return f"<compiled {self.function!r}>"

    @abstractmethod
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run a call."""

    @abstractmethod
    def like(self, function: Callable[..., Any]) -> Any:
        """Another function, compiled with these options."""

    @property
    def _torchdynamo_orig_callable(self) -> Callable[..., Any]:
        """The function, under the name by which packages recognise compiled ones."""
        return self.function

    def clear_call_stub(self) -> None:
        """Drop the call stub, so that the next call checks the policy."""
        self._call_stub = None

    def reset(self) -> None:
        """Drop all programs."""
        self._device_calls = None
        self._signatures, self._call_stub, self._num_unstable, self.split = {}, None, 0, None
        self._families, self._instances, self._seen, self.stateful = {}, {}, {}, {}
        self._num_instances = self._num_reused = 0
        self._seconds_of_instances = 0.0

    @property
    def _title(self) -> str:
        return getattr(self.function, "__name__", type(self.function).__name__)

    def _next_program_name(self) -> str:
        """Return the name of the next program: the function's, with "#2" and so on from the second on."""
        self._num_programs += 1
        return self._title if self._num_programs == 1 else f"{self._title}#{self._num_programs}"

    def signature_cache(self, args: tuple, kwargs: dict[str, Any]) -> SignatureCache | None:
        """Return the cache of calls with these arguments; None if there is none."""
        return self._signatures.get(signature_of(*tree_flatten((args, kwargs))))

    def all_entries(self) -> Iterator[CacheEntry]:
        """Yield the cache entries of all signatures, those of templates last."""
        for cache in (*self._signatures.values(), *self._instances.values()):
            yield from cache.entries

    @property
    def _needs_provenance(self) -> bool:
        """Whether programs need a trace of this process, for provenance or debug output."""
        return self.records_provenance or debug_output.is_enabled("ir", "kernels")

    @property
    def _needs_independent_results(self) -> bool:
        """Whether traces must have `Tracer.needs_independent_results`."""
        return self._part_of is not None and self._part_of[0].inspects_gradients

    @property
    def _varies(self) -> bool | None:
        """Whether sizes may vary: from the first shape on, not at all, or (None) from the second one on."""
        if self.dynamic is not None:
            return self.dynamic
        if not policy.assume_static_by_default:
            return True
        return None if policy.automatic_dynamic_shapes else False

    def _warn_internal_error(self, what: str, error: Exception) -> str:
        """Warn of an internal error that does not affect results, and return its description."""
        text = f"internal error: {type(error).__name__}: {error}"
        warnings.warn(f"{self._title} {what}: {text}. Please report it.", RuntimeWarning, stacklevel=4)
        return text


__all__ = ["FunctionCaches"]
