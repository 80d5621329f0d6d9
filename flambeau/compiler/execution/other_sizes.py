"""`OtherSizes`: calls with sizes and numbers that were not traced, which templates serve."""

from __future__ import annotations

from collections.abc import Sequence
from time import perf_counter
from typing import Any

from ..._tensor import Tensor
from ...modes import active_profilers
from ...runtime import debug_output
from ..errors import ConstraintViolationError
from ..stance import policy
from ..tracing.trace import Trace
from .dynamic_marks import DYNAMIC, STATIC, WEAKLY_DYNAMIC, marked_dimensions, tensor_names
from .shape_families import LONG, ShapeFamily, family_key
from .signatures import SignatureCache, without_numbers, without_values
from .stored_programs import StoredPrograms

#: signatures of a part that differ in numbers only, which may be others in each call, before it is divided; those that
#: differ in numbers and sizes only, which may depend on data
MAX_NUMBERS, MAX_SIZES = 6, 16
#: signatures of programs that were made from templates, and bytes of their arenas, which programs keep; the least
#: recently used are dropped
MAX_INSTANCES, MAX_ARENAS = 64, 1 << 28
#: those of one signature, with other guards
MAX_INSTANCES_OF_KEY = 4
#: programs made from templates, from which on a new size runs eagerly at first, if sizes came again less often
MAX_NEW_SIZES, CALLS_PER_SIZE = 24, 8
#: signatures that are remembered in that case
MAX_SEEN = 1024


class OtherSizes(StoredPrograms):
    """Calls with sizes and numbers that were not traced, which templates serve."""

    def _check_marks(self, trace: Trace, tensors: Sequence[Any], arguments: list[Any], args: tuple,
                     kwargs: dict[str, Any]) -> None:
        """Raise after the first call if the function depends on the size of a marked dimension."""
        marked, static = (marked_dimensions(tensors, kind) for kind in (DYNAMIC, STATIC))
        with self._lock:
            if ShapeFamily().depends_on(self.function, args, kwargs, arguments, static, marked, trace,
                                        self._needs_independent_results):
                self._raise_violation(tensors, marked, args, kwargs)

    def _raise_violation(self, tensors: Sequence[Any], marked: Sequence[frozenset[int]], args: tuple,
                         kwargs: dict[str, Any]) -> None:
        raise ConstraintViolationError([(f"{name}.size()[{d}]", x.shape[d]) for name, x, dims in zip(
            tensor_names(self.function, args, kwargs), tensors, marked, strict=True) for d in sorted(dims)])

    def _instance(self, key: tuple, arguments: list[Any]) -> SignatureCache | None:
        """Return the cache of a signature whose program a template gives.

        None if there is no such template; also, with the signature in `_seen`, if most sizes do not come again often,
        and calls of this one have not yet taken as long eagerly as making its program takes.
        """
        family = self._families.get(family_key(key))
        free = [] if family is None or self.check else family.free_arguments()
        for instance_key in (key, *(without_values(key, positions) for positions in free)):
            cache = self._instances.pop(instance_key, None)
            if cache is not None:
                self._instances[instance_key] = cache
                if cache.matches(arguments) and any(entry.computed_inputs(arguments) is not None
                                                    and entry.python_guards_hold() for entry in cache.entries):
                    self._num_reused += 1
                    if family is not None:
                        family.num_served += 1
                    return cache
        if family is None or not policy.is_default:
            return None
        with self._lock:
            try:
                if self._num_instances >= MAX_NEW_SIZES and (
                        self._num_reused < CALLS_PER_SIZE * self._num_instances
                        and self._seen.get(key, 0.0) * self._num_instances < self._seconds_of_instances
                        and family.serves(arguments)):
                    self._seen.setdefault(key, 0.0)
                    return None
                self._seen.pop(key, None)
                started = perf_counter()
                entry = family.instance(arguments, self._next_program_name, self.check)
                self._seconds_of_instances += perf_counter() - started
            except Exception as error:
                self._warn_internal_error("has no program for other sizes", error)
                return None
        if entry is None:
            return None
        cache = SignatureCache(arguments, family_key(key))
        cache.entries.append(entry)
        size = entry.arena_bytes + sum(each.arena_bytes for made in self._instances.values() for each in made.entries)
        while self._instances and (len(self._instances) >= MAX_INSTANCES or size > MAX_ARENAS):
            dropped = self._instances.pop(next(iter(self._instances)))
            size -= sum(each.arena_bytes for each in dropped.entries)
        instance_key, cache.is_of_template = without_values(key, entry.free_arguments), True
        known = self._instances.pop(instance_key, None)  # their guards on Python objects do not hold
        if known is not None and known.matches(arguments):
            cache.entries += known.entries[:MAX_INSTANCES_OF_KEY - 1]
        self._instances[instance_key] = cache
        self._num_instances += 1
        family.num_served += 1
        return cache

    def _run_new_size(self, key: tuple, args: tuple, kwargs: dict[str, Any]) -> Any:
        """Run a call eagerly, and record how long calls of its signature took in all."""
        started = perf_counter()
        result = self.function(*args, **kwargs)
        seconds = self._seen.pop(key, 0.0) + perf_counter() - started
        if len(self._seen) >= MAX_SEEN:
            self._seen.pop(next(iter(self._seen)), None)
        self._seen[key] = seconds
        return result

    def _expect_trace(self, cache: SignatureCache, arguments: list[Any], args: tuple, kwargs: dict[str, Any]) -> None:
        """Let the first trace of a call agree with that of a call with other sizes or numbers, if it does the same."""
        family, varies = self._families.get(cache.family), self._varies
        if family is None or varies is False or active_profilers[0] or self._needs_provenance:
            return
        static = marked_dimensions([x for x in arguments if isinstance(x, Tensor)], STATIC)
        with self._lock:
            try:
                trace = family.agreeing_trace(self.function, args, kwargs, arguments, static,
                                              self._needs_independent_results)
            except Exception as error:
                self._warn_internal_error("is compiled for each size", error)
                return
        if trace is not None:
            cache.pending_traces, cache.num_traces = [trace], 1

    def _make_template(self, key: tuple, arguments: list[Any], args: tuple, kwargs: dict[str, Any]) -> bool:
        """Try to make a template that serves a call with new sizes; return whether there is one."""
        family, varies = self._families.get(family_key(key)), self._varies
        if family is None or family.needs_other_tensors(arguments) or active_profilers[0] or (
                self._needs_provenance):
            return False
        tensors = [x for x in arguments if isinstance(x, Tensor)]
        marked, possible, static = (marked_dimensions(tensors, kind) for kind in (DYNAMIC, WEAKLY_DYNAMIC, STATIC))
        if varies is True:
            possible = [frozenset(range(x.ndim)) for x in tensors]
        if varies is False and not any(marked) and not any(possible):
            return False
        with self._lock:
            try:
                made = family.make_template(self.function, args, kwargs, arguments, static, marked, possible,
                                            self._needs_independent_results)
                made = made and (self._instance(key, arguments) is not None or key in self._seen)
            except Exception as error:
                self._warn_internal_error("is compiled for each size", error)
                return False
            if not made and any(marked) and key in self._signatures and any(
                    x.shape[d] > 1 for x, dims in zip(tensors, marked, strict=True) for d in dims):
                self._raise_violation(tensors, marked, args, kwargs)
            if not made and debug_output.is_enabled("recompiles"):
                debug_output.show(f"{self._title}: no program for other sizes\n  {family.reason}")
            return made

    def _number_varies(self, key: tuple) -> bool:
        """Whether a signature differs in numbers only, or in numbers and sizes only, from several others."""
        # state of other numbers or sizes is expected where there are programs
        others = [other for other, cache in self._signatures.items() if not (self.has_state and cache.entries)]
        return any(sum(without_numbers(other, sizes) == without_numbers(key, sizes) for other in others)
                   >= limit for sizes, limit in ((False, MAX_NUMBERS), (True, MAX_SIZES)))

    def _relax_template(self, cache: SignatureCache, arguments: list[Any], trace: Trace) -> bool:
        """Let a template serve calls with other tensors, if that is the only reason why it did not; whether it was."""
        family = None if trace.failure is not None else self._families.get(cache.family)
        entry = None if family is None else family.relax_pins(arguments, trace)
        if entry is None:
            return False
        self._instances = {key: made for key, made in self._instances.items()
                           if (template := made.entries[0].template) is None or template.entry is not entry}
        self._call_stub = None
        return True

    def _add_pending(self, cache: SignatureCache, trace: Trace) -> None:
        """Let the traces of calls with other sizes or numbers agree with this one, unless finding out takes long."""
        if cache.family is not None and (cache.layouts or cache.numbers) and cache.seconds <= LONG:
            self._families.setdefault(cache.family, ShapeFamily()).pending = trace, cache.layouts, cache.numbers


__all__ = ["OtherSizes"]
