"""`CallsInParts`: calls that are not compiled as a whole: functions that are divided, limits and stances."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

from ...modes import special
from ...runtime import debug_output
from ..errors import FailOnRecompileLimitHit
from ..splitting.split_function import SplitFunction, resolve
from ..stance import policy
from ..tracing.break_frames import BreakFrame
from .cache_entry import GUARDS_FAILED
from .other_sizes import OtherSizes
from .signatures import SignatureCache


class CallsInParts(OtherSizes):
    """Calls that are not compiled as a whole: functions that are divided, limits and stances."""

    def _skipped_compilation(self, args: tuple, kwargs: dict[str, Any]) -> Any:
        """Run a call with a new signature while the stance forbids compiling."""
        if not policy.fails_on_recompile:
            return self.function(*args, **kwargs)
        code = getattr(self.function, "__code__", None)
        file, line = ("", 0) if code is None else (code.co_filename, code.co_firstlineno)
        raise RuntimeError(f"Detected recompile when torch.compile stance is {policy.stance!r}. filename: {file!r}, "
                           f"function name: {self._title!r}, line number: {line}")

    def _limit_reached(self, args: tuple, kwargs: dict[str, Any]) -> Any:
        """Run a call with one more signature than `recompile_limit` allows."""
        if self._part_of is not None:
            self._divide((), "an argument is another number in each call")
            return self.function(*args, **kwargs)
        if not self.fullgraph and not policy.fail_on_recompile_limit_hit:
            return self.function(*args, **kwargs)
        raise FailOnRecompileLimitHit(
            f"{self._title} has {len(self._signatures)} compiled signatures, as many as recompile_limit allows, and "
            "this call has another one. Pass tensors of the same shapes, or raise torch.compile(recompile_limit=...)")

    def _divide(self, frames: Sequence[BreakFrame], reason: str) -> None:
        """Split the function, or this part of one, because it cannot be compiled as a whole.

        Args:
            frames: the stack where the graph broke; () if unknown.
            reason: the reason.
        """
        if debug_output.is_enabled("graph_breaks"):
            debug_output.show(f"{self._title}: graph break\n  {reason}")
        if self._part_of is not None:
            split, key = self._part_of
            split.add_failure(frames, reason, key)
            return
        found = resolve(self.function)
        if found is None:
            return
        if self.split is None or self.split.function is not found[0]:
            self.split = SplitFunction(found[0], self._make_part, compile_module=self.like)
        self.split.add_failure(frames, reason)

    @abstractmethod
    def _make_part(self, function: Callable[..., Any], split: SplitFunction, key: str) -> Any:
        """Compile a part of a function that is split."""

    def _call_split(self, args: tuple, kwargs: dict[str, Any]) -> Any:
        """Run a call in parts."""
        split, found = self.split, resolve(self.function)
        if split is None or found is None or found[0] is not split.function or not split.is_ready:
            return self.function(*args, **kwargs)
        if policy.is_default and not any(cache.entries for cache in self._signatures.values()):
            self._call_stub = self._split_stub(split)
        return split(*found[1], *args, **kwargs)

    def _split_stub(self, split: SplitFunction) -> Callable[..., Any]:
        """Return the call stub of a function that is always run in parts: these check their own arguments."""
        function = self.function
        if function is split.function:
            code = split.function.__code__

            def call_function(*args: Any) -> Any:
                if special[0] or split.function.__code__ is not code:
                    return GUARDS_FAILED
                return split(*args)

            return call_function

        def call_split(*args: Any) -> Any:
            found = resolve(function)
            if special[0] or found is None or found[0] is not split.function or not split.is_ready:
                return GUARDS_FAILED
            return split(*found[1], *args)

        return call_split

    def _leave_if_empty(self, cache: SignatureCache) -> None:
        """Let a part run in Python if it has no kernels."""
        if self._part_of is not None and cache.entries and not cache.entries[0].program.schedule.kernels:
            split, key = self._part_of
            split.run_in_python(key)


__all__ = ["CallsInParts"]
