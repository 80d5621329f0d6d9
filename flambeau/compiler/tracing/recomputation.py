"""What backward passes of a program compute again: checkpointed regions of a trace, and the memory budget."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from ..._tensor import Tensor
from ..._tensor.dispatch.interception import Interceptor
from ...ir.graph.value import Value
from ...ir.rematerialization.rewriting import is_deterministic
from ...trees import tree_flatten
from .speculation import run_once

#: `torch._functorch.config.activation_memory_budget`
memory_budget = [1.0]
_NO_OPERATION = frozenset(("input", "constant", "view"))


class Recomputation(NamedTuple):
    """What is known of a trace.

    Attributes:
        regions: (number of a value, number of its checkpointed region), for values to compute again.
        passes: the ranges of value numbers that were made by backward passes.
        budget: the memory budget.
    """

    regions: tuple[tuple[int, int], ...] = ()
    passes: tuple[tuple[int, int], ...] = ()
    budget: float = 1.0

    @property
    def is_asked_for(self) -> bool:
        """Whether anything may be computed again."""
        return bool(self.regions) or self.budget < 1

    def renumbered(self, values: Sequence[Value]) -> Recomputation:
        """Return it for a graph that has these values in place of those of its own."""
        if not self.is_asked_for:
            return self
        regions = {values[number].number: region for number, region in self.regions}
        passes = []
        for start, end in self.passes:
            numbers = [x.number for x in values[start:end] if x.op not in _NO_OPERATION]
            passes.append((numbers[0], numbers[-1] + 1) if numbers else (0, 0))
        return self._replace(regions=tuple(regions.items()), passes=tuple(passes))


def current_budget() -> float:
    """Return the memory budget.

    Raises:
        RuntimeError: it is not in [0, 1].
    """
    budget = memory_budget[0]
    if budget > 1 or budget < 0:
        raise RuntimeError(f"The valid ranges for memory budget are 0 <= m <= 1. The provided value is {budget}")
    return budget


class CheckpointRecorder:
    """Records which values of a trace were made in checkpointed regions, and which in backward passes.

    Attributes:
        records_draws: whether draws of random numbers record their state, so that they can be drawn again.
    """

    def __init__(self) -> None:
        self.regions: dict[int, int] = {}
        self.passes: list[tuple[int, int]] = []
        self.records_draws = current_budget() < 1
        self._depth = self._count = 0
        self._pass_depth = self._pass_start = 0

    def begin_pass(self, values: int) -> None:
        """Note that a backward pass begins, when the graph has so many values."""
        if not self._pass_depth:
            self._pass_start = values
        self._pass_depth += 1

    def end_pass(self, values: int) -> None:
        """Note that a backward pass ends. One within a checkpointed region is a part of it."""
        if not self._pass_depth:  # it began before the trace
            return
        self._pass_depth -= 1
        if not self._pass_depth and not self._depth and values > self._pass_start:
            self.passes.append((self._pass_start, values))

    def run(self, tracer: Any, function: Callable[..., Any], args: tuple, kwargs: dict[str, Any],
            preserves_random_state: bool, policy: PolicyRecorder | None) -> tuple[bool, Any]:
        """Call a checkpointed function once.

        Args:
            tracer: the tracer.
            function, args, kwargs: what is called.
            preserves_random_state: whether the same random numbers are drawn again; else they are saved.
            policy: tells which results of operators are saved.

        Returns:
            As `speculation.run_once`.
        """
        values, start, region = tracer.graph.values, len(tracer.graph.values), self._count
        before = self.records_draws
        self.records_draws = before or preserves_random_state
        self._depth += 1
        self._count += 1
        try:
            if policy is None:
                was_run, result = run_once(tracer, function, args, kwargs)
            else:
                with policy:
                    was_run, result = run_once(tracer, function, args, kwargs, (policy.policy,))
        finally:
            self.records_draws = before
            self._depth -= 1
        if was_run:
            kept = {id(x): x for x in tree_flatten(result)[0] if isinstance(x, Tensor)}
            kept |= {id(x): x for x in (() if policy is None else policy.saved)}
            found = [tracer.known_value(x._array) for x in kept.values()]
            numbers = {value.base.number for value in found if value is not None}
            for value in values[start:]:
                if value.op not in _NO_OPERATION and value.number not in numbers and is_deterministic(value):
                    self.regions.setdefault(value.number, region)
        return was_run, result

    def recomputation(self) -> Recomputation:
        """Return what was recorded so far."""
        found = Recomputation(tuple(self.regions.items()), tuple(self.passes), current_budget())
        return found if found.is_asked_for else Recomputation()


class PolicyRecorder(Interceptor):
    """Asks a policy which results of operators are saved.

    Args:
        policy: the user's function, for guards.
        decide: called with the arguments of `on_operator`: whether the results are saved.

    Attributes:
        saved: these results.
    """

    def __init__(self, policy: Any, decide: Callable[..., bool | None]) -> None:
        self.policy, self._decide = policy, decide
        self.saved: list[Any] = []

    def on_operator(self, op: Any, inputs: Sequence[Any], params: dict[str, Any], outs: Sequence[Any],
                    in_place: bool) -> None:
        if self._decide(op, inputs, params, outs, in_place):
            self.saved += outs


__all__ = ["CheckpointRecorder", "PolicyRecorder", "Recomputation", "current_budget", "memory_budget"]
