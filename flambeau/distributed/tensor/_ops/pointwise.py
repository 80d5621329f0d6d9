"""Elementwise operators, and those that keep every element in its place."""

from __future__ import annotations

from ...placement_types import Partial, Shard
from .._partial import _NormPartial
from .._sharding import is_shard
from .strategy import RULES, OpCall, Rule, Strategy, rule

SUM, AVERAGE = Partial("sum"), Partial("avg")


def broadcast_shards(call: OpCall) -> list[Strategy]:
    """All inputs cut along one dimension of the result; an input that is broadcast along it is replicated.

    The dimensions that inputs are cut along come first.
    """
    if not call.outputs:
        return []
    ndim = max(len(call.shape(i)) for i in call.tensors())
    sizes = [1] * ndim
    for i in call.tensors():
        shape = call.shape(i)
        for d, n in enumerate(shape):
            if n != 1:
                sizes[ndim - len(shape) + d] = n
    first: dict[int, None] = {}
    for i in call.tensors():
        spec = call.inputs[i]
        for placement in spec.placements:
            if is_shard(placement):
                first[placement.dim + ndim - spec.ndim] = None
    result = []
    for dim in (*first, *(d for d in range(ndim) if d not in first)):
        inputs = {}
        for i in call.tensors():
            shape = call.shape(i)
            own = dim - (ndim - len(shape))
            if own >= 0 and (shape[own] != 1 or sizes[dim] == 1):
                inputs[i] = Shard(own)
        result.append(call.strategy(inputs, Shard(dim)))
        strided = {p for i in inputs for p in call.inputs[i].placements
                   if is_shard(p) and type(p) is not Shard and p.dim == inputs[i].dim}
        for placement in strided:
            if all(call.inputs[i].ndim == ndim for i in inputs):
                result.append(call.strategy(dict.fromkeys(inputs, placement), placement))
    return result


@rule("kind elementwise")
def pointwise(call: OpCall, size: int) -> list[Strategy]:
    """An operator of one element of each input."""
    return broadcast_shards(call)


@rule("add", "sub", "_add_scaled", "_sub_scaled", "_rsub")
def sums(call: OpCall, size: int) -> list[Strategy]:
    """Sums and differences of tensors: partial sums of partial sums."""
    result = broadcast_shards(call)
    if len(call.tensors()) == 2:
        result += [call.strategy(dict.fromkeys(call.tensors(), p), p) for p in (SUM, AVERAGE)]
    else:  # a number is added once: to an average, a maximum or a minimum
        result += [call.strategy(dict.fromkeys(call.tensors(), p), p)
                   for p in (AVERAGE, Partial("max"), Partial("min")) if call.op.name == "add"]
    return result


@rule("mul")
def product(call: OpCall, size: int) -> list[Strategy]:
    """A product: linear in each factor."""
    result = broadcast_shards(call)
    return result + [call.strategy({i: p}, p) for i in call.tensors() for p in (SUM, AVERAGE)]


@rule("div", "_mul_scalar", "_div_scalar")
def quotient(call: OpCall, size: int) -> list[Strategy]:
    """Linear in the first operand."""
    result = broadcast_shards(call)
    if call.tensors() and call.tensors()[0] == 0 and not call.params.get("rounding_mode"):
        result += [call.strategy({0: p}, p) for p in (SUM, AVERAGE)]
    return result


@rule("neg", "clone", "_to_copy", "_alias", "conj", "alias_copy", "deg2rad", "rad2deg")
def linear(call: OpCall, size: int) -> list[Strategy]:
    """A linear function of one tensor."""
    result = broadcast_shards(call)
    current = {p for p in call.inputs[0].placements if p.is_partial()}
    wide = {SUM, AVERAGE} if call.op.name in ("neg", "deg2rad", "rad2deg", "_to_copy") else current
    return result + [call.strategy({0: p}, p) for p in wide if not (
        isinstance(p, _NormPartial) and call.op.name != "clone")]


@rule("maximum", "minimum")
def extrema(call: OpCall, size: int) -> list[Strategy]:
    """The larger or smaller of two elements: of pending maxima or minima."""
    pending = Partial("max" if call.op.name == "maximum" else "min")
    return [*broadcast_shards(call), call.strategy(dict.fromkeys(call.tensors(), pending), pending)]


@rule("_copy")
def copy(call: OpCall, size: int) -> list[Strategy]:
    """A copy of `src` in the place of `input`, which keeps its placement."""
    result = broadcast_shards(call)
    return result + [call.strategy({0: p, 1: p}, p) for p in call.inputs[0].placements if p.is_partial()]


@rule("_zero", "_fill_scalar_", "_fill_scalar")
def filled(call: OpCall, size: int) -> list[Strategy]:
    """The same number everywhere: as in PyTorch, also in each summand."""
    return broadcast_shards(call) + [call.strategy({0: p}, p) for p in call.inputs[0].placements if p.is_partial()]


RULES["_causal_mask"] = RULES["_causal_zero"] = Rule(
    lambda call, size: [call.strategy({0: Shard(d)}, Shard(d)) for d in range(len(call.shape(0)) - 2)])

for _name in ("masked_fill", "_masked_fill_scalar", "_fill_tensor", "_fill_tensor_", "_standard_gamma",
              "_shift_and_scale"):
    RULES[_name] = Rule(pointwise)

__all__ = ["broadcast_shards"]
