"""Strategies: which placements of an operator's inputs give which placements of its outputs.

A rule lists the strategies of an operator for one dimension of the mesh. All inputs replicated is always one of them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import prod
from typing import Any, NamedTuple

from ....ops.declare import REGISTRY, Op
from ...placement_types import Placement, Replicate
from .._dtensor_spec import DTensorSpec
from .._sharding import is_shard

REPLICATE = Replicate()


class Strategy(NamedTuple):
    """Placements on one dimension of the mesh; None for an input that is no tensor."""

    inputs: tuple[Placement | None, ...]
    outputs: tuple[Placement, ...]


class OpCall:
    """A call of an operator on distributed tensors.

    Args:
        op: the operator.
        inputs: a `DTensorSpec` for each tensor, other values as they are.
        params: its parameters.
        outputs: (shape, strides, dtype) of each result.
    """

    __slots__ = ("in_place", "inputs", "op", "outputs", "params")

    def __init__(self, op: Op, inputs: Sequence[Any], params: dict[str, Any],
                 outputs: Sequence[tuple[tuple[int, ...], tuple[int, ...], Any]], in_place: bool = False) -> None:
        self.op, self.inputs, self.params = op, tuple(inputs), params
        self.outputs, self.in_place = tuple(outputs), in_place

    def shape(self, index: int) -> tuple[int, ...]:
        """The shape of an input; () if it is no tensor."""
        spec = self.inputs[index]
        return tuple(spec.shape) if isinstance(spec, DTensorSpec) else ()

    def tensors(self) -> list[int]:
        """The positions of the inputs that are tensors."""
        return [i for i, each in enumerate(self.inputs) if isinstance(each, DTensorSpec)]

    def strategy(self, inputs: Mapping[int, Placement],
                 outputs: Placement | Sequence[Placement]) -> Strategy:
        """A strategy; inputs that are not named are replicated, one output placement is that of all outputs."""
        placed = tuple(inputs.get(i, REPLICATE) if isinstance(each, DTensorSpec) else None
                       for i, each in enumerate(self.inputs))
        outs = (outputs,) * len(self.outputs) if isinstance(outputs, Placement) else tuple(outputs)
        return Strategy(placed, outs)

    def replicated(self) -> Strategy:
        """The strategy in which each process computes everything."""
        return self.strategy({}, REPLICATE)


RuleFunction = Callable[[OpCall, int], list[Strategy]]
#: parameters of the local call, made of the call, and the specs of the inputs and outputs that were chosen
Localize = Callable[[OpCall, list[Any], list[DTensorSpec]], dict[str, Any]]
#: the local computation, of the call, the local inputs and parameters, and the specs
Run = Callable[[OpCall, list[Any], dict[str, Any], list[Any], list[DTensorSpec]], Any]


class Rule(NamedTuple):
    """What is known of an operator."""

    strategies: RuleFunction
    localize: Localize | None = None
    run: Run | None = None
    #: whether replicated inputs would give another result, where there is a strategy
    exclusive: bool = False
    #: (shape, strides, dtype) of the results, of the specs and the parameters; default: inferred
    outputs: Callable[[list[Any], dict[str, Any]], list[Any]] | None = None


#: key or name of an operator -> its rule
RULES: dict[str, Rule] = {}
_KEYS: dict[int, str] = {}
_FOUND: dict[int, Rule | None] = {}  # by id of an operator; the registry keeps operators


def rule(*names: str, localize: Localize | None = None, run: Run | None = None,
         exclusive: bool = False, outputs: Any = None) -> Callable[[RuleFunction], RuleFunction]:
    """Register a rule for operators.

    Args:
        names: keys of the registry, or names.
        localize: makes the parameters of the local call; default: they are the same.
        run: the local computation; default: the operator.
        exclusive: no other strategy is possible, where there is one.
        outputs: the metadata of the results; default: it is inferred.
    """
    def register(function: RuleFunction) -> RuleFunction:
        for name in names:
            RULES[name] = Rule(function, localize, run, exclusive, outputs)
        return function

    return register


def rule_of(op: Op) -> Rule | None:
    """The rule of an operator."""
    known = id(op)
    if known in _FOUND:
        return _FOUND[known]
    if len(_KEYS) != len(REGISTRY):
        _KEYS.update((id(each), key) for key, each in REGISTRY.items())
    key = _KEYS.get(known, op.name)
    found = RULES.get(key) or RULES.get(op.name) or RULES.get(f"kind {op.kind}")
    if known in _KEYS:
        _FOUND[known] = found
    return found


_LATENCY = 1.0  # of a collective, in bytes: decides between strategies for empty tensors
_LOCAL = 0.25  # of a change without communication: no change is better


def cost(spec: DTensorSpec, mesh_dim: int, target: Placement) -> float:
    """Bytes that a process sends to change the placement of a tensor on one dimension of the mesh."""
    source = spec.placements[mesh_dim]
    if source == target and type(source) is type(target):
        return 0.0
    n = spec.mesh.size(mesh_dim)
    others = prod(spec.mesh.size(i) for i, p in enumerate(spec.placements) if i != mesh_dim and is_shard(p))
    whole = prod(spec.shape) * spec.dtype.itemsize / others
    if is_shard(target) and spec.shape[target.dim] < n:  # type: ignore[attr-defined]
        return float("inf")
    share = whole * (n - 1) / n
    if is_shard(source):
        if target.is_partial():
            return float("inf")
        return _LATENCY + (share / n if is_shard(target) else share)
    if source.is_partial():
        if target.is_partial():
            return float("inf")
        return _LATENCY + (share if is_shard(target) else 2 * share)
    return _LOCAL


def _keeps(call: OpCall, strategy: Strategy, mesh_dim: int) -> bool:
    """Whether the tensor that is written to keeps its placement, or only completes a reduction."""
    before = call.inputs[0].placements[mesh_dim]
    return strategy.outputs[0] == strategy.inputs[0] and (strategy.inputs[0] == before or (
        before.is_partial() and not strategy.inputs[0].is_partial()))


def choose(call: OpCall, rule: Rule, mesh: Any) -> tuple[list[Any], list[tuple[Placement, ...]]]:
    """The cheapest strategy for each dimension of the mesh: placements of the inputs, and of the outputs.

    Raises:
        RuntimeError: an in-place operator would change the placement of the tensor that it writes to.
    """
    chosen = []
    for mesh_dim in range(mesh.ndim):
        best, best_cost = None, float("inf")
        listed = rule.strategies(call, mesh.size(mesh_dim))
        for strategy in listed if listed and rule.exclusive else (*listed, call.replicated()):
            total = 0.0
            for spec, placement in zip(call.inputs, strategy.inputs, strict=True):
                if placement is not None:
                    total += cost(spec, mesh_dim, placement)
            if call.in_place and not _keeps(call, strategy, mesh_dim):
                total = float("inf")
            if total < best_cost:
                best, best_cost = strategy, total
        if best is None:
            raise RuntimeError(f"{call.op.name}_: in-place operations that require placement changes are not "
                               f"supported. The tensor that is written to is placed as {call.inputs[0].placements}, "
                               "and the operator cannot run on its parts. Redistribute it before, or use the "
                               "out-of-place operator")
        chosen.append(best)
    inputs = [None if not isinstance(each, DTensorSpec) else tuple(s.inputs[i] for s in chosen)
              for i, each in enumerate(call.inputs)]
    return inputs, [tuple(s.outputs[k] for s in chosen) for k in range(len(call.outputs))]


__all__ = ["REPLICATE", "RULES", "OpCall", "Rule", "Strategy", "choose", "cost", "rule", "rule_of"]
