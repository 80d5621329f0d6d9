"""Which values backward passes compute again, for a memory budget: a minimum cut of saved bytes and recomputation.

For a price of bytes, the cheapest choice is a minimum cut. Each value has two nodes, before and after it is saved:

    source -> before    the cost of computing it again; unbounded if that is impossible
    before -> after     the price of saving it; unbounded if it may not be saved
    after -> before'    unbounded, for each value that is computed from it
    after -> sink       unbounded, if a backward pass reads it

A node on the sink's side is available in the backward pass. The price is the smallest one whose choice fits the budget;
what it computes again beyond the budget is then saved, as far as there is room. AOTAutograd chooses by a minimum cut
and a knapsack, XLA by a greedy search.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from ..graph.extern_kernels import FallbackKernel
from ..graph.value import Value
from ..kernels.cost_model import flops_of
from .min_cut import UNBOUNDED, FlowNetwork
from .rewriting import is_deterministic, replay_of

#: prices in additions per byte: two to the power of an eighth of these
_LOWEST, _HIGHEST = -8 * 8, 8 * 30
#: capacities are integers, in this part of an addition
_UNIT = 1 << 10
#: the cost per element of a kernel of unknown cost, in additions
_UNKNOWN = 64
#: of the values that do not fit the budget together, how many are tried
_TRIED = 64


class Choice:
    """The values of a forward part that backward passes read, and the choices among them.

    Args:
        read: the values that backward passes read; no views.
        can_recompute: whether a value may be computed again.
        free: whether keeping a value takes no memory, as that of inputs.
        forced: whether a value must be computed again.
    """

    def __init__(self, read: Sequence[Value], can_recompute: Callable[[Value], bool], free: Callable[[Value], bool],
                 forced: Callable[[Value], bool]) -> None:
        self.read = list(dict.fromkeys(read))
        self._can_recompute, self._free, self._forced = can_recompute, free, forced
        self._operands: dict[Value, list[Value]] = {}
        self._order: list[Value] = []  # operands first
        stack = [(value, False) for value in self.read]
        while stack:
            value, done = stack.pop()
            if done:
                self._order.append(value)
            elif value not in self._operands:
                self._operands[value] = [] if free(value) or not self.may_recompute(value) else operands_of(value)
                stack.append((value, True))
                stack += [(x, False) for x in self._operands[value]]

    def may_recompute(self, value: Value) -> bool:
        """Whether a value may be computed again."""
        return self._forced(value) or (value.op != "input" and is_deterministic(value) and self._can_recompute(value))

    def saved(self, recomputed: Mapping[Value, object] | set[Value]) -> list[Value]:
        """Return the values that are saved, if all of these that are needed are computed again."""
        found: dict[Value, None] = {}
        seen: set[Value] = set()
        stack = list(self.read)
        while stack:
            value = stack.pop()
            if value in seen:
                continue
            seen.add(value)
            if value in recomputed:
                stack += self._operands[value]
            elif not self._free(value):
                found[value] = None
        return list(found)

    def bytes(self, recomputed: Mapping[Value, object] | set[Value]) -> int:
        """Return the bytes of the values that are saved."""
        return sum(map(_bytes_of, self.saved(recomputed)))

    def within(self, budget: float) -> set[Value]:
        """Return the values to compute again, for a budget in [0, 1] of the bytes that are saved without any."""
        forced = {value for value in self._order if self._forced(value)}
        if budget >= 1:
            return forced
        allowed = int(budget * self.bytes(forced))
        low, high = _LOWEST, _HIGHEST
        chosen = self._cheapest(high)
        if self.bytes(chosen) >= allowed:
            return chosen
        while low < high:
            middle = (low + high) // 2
            tried = self._cheapest(middle)
            if self.bytes(tried) <= allowed:
                high, chosen = middle, tried
            else:
                low = middle + 1
        return self._without_excess(chosen, forced, allowed)

    def _cheapest(self, price: int) -> set[Value]:
        """The values that are computed again where bytes have this price."""
        network = FlowNetwork(2 + 2 * len(self._order))
        before = {value: 2 + 2 * i for i, value in enumerate(self._order)}
        factor = 2.0 ** (price / 8)
        for value, node in before.items():
            is_free, forced = self._free(value), self._forced(value)
            network.add_edge(0, node, int(_UNIT * cost_of(value)) if self.may_recompute(value) and not is_free
                             else UNBOUNDED)
            saving = UNBOUNDED if forced or value.op == "extern" else int(_UNIT * factor * _bytes_of(value))
            network.add_edge(node, node + 1, 0 if is_free else saving)
            for x in self._operands[value]:
                network.add_edge(before[x] + 1, node, UNBOUNDED)
        for value in self.read:
            network.add_edge(before[value] + 1, 1, UNBOUNDED)
        kept = network.source_side()
        return {value for value, node in before.items() if node not in kept}

    def _without_excess(self, chosen: set[Value], forced: set[Value], allowed: int) -> set[Value]:
        """Save some of the chosen values as long as there is room, first those that cost most for their bytes."""
        candidates = [value for value in self._order if value in chosen and value not in forced and _bytes_of(value)
                      and value.op != "extern"]
        candidates.sort(key=lambda value: -self._with_extern(value) / _bytes_of(value))
        low, high = 0, len(candidates)
        while low < high:
            middle = (low + high + 1) // 2
            if self.bytes(chosen.difference(candidates[:middle])) <= allowed:
                low = middle
            else:
                high = middle - 1
        chosen = chosen.difference(candidates[:low])
        for value in candidates[low:low + _TRIED]:
            fewer = chosen - {value}
            if self.bytes(fewer) <= allowed:
                chosen = fewer
        return chosen

    def _with_extern(self, value: Value) -> int:
        return cost_of(value) + sum(cost_of(x) for x in self._operands[value] if x.op == "extern")


def operands_of(value: Value) -> list[Value]:
    """Return what a value is computed again from, without constants and views."""
    replayed = replay_of(value)
    args = value.args if replayed is None else replayed[1]
    return [x.base for x in args if x.base.op != "constant"]


def cost_of(value: Value) -> int:
    """Return the cost of computing a value, in additions."""
    if value.op == "getitem":
        return 0 if replay_of(value) is None else value.size * _UNKNOWN
    if value.op == "extern":
        size = sum(x.size for x in (*value.args, *value.graph.extern_outputs[value]))
        return size * (_UNKNOWN if isinstance(value.attrs, FallbackKernel) else 8)
    return flops_of(value) + value.size


def _bytes_of(value: Value) -> int:
    return value.size * value.dtype.itemsize


__all__ = ["Choice", "cost_of", "operands_of"]
