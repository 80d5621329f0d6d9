"""Losses: examples may be cut; a mean needs the number, or the weight, of all examples."""

from __future__ import annotations

from typing import Any

from ...._tensor import functions as _functions
from ...._tensor.dispatch.apply import apply
from ...collectives import all_reduce
from ...placement_types import Partial, Shard
from .._dtensor_spec import DTensorSpec
from .strategy import OpCall, Strategy, rule

functions: Any = _functions
SUM = Partial("sum")


def _sharded_dims(spec: DTensorSpec) -> list[int]:
    """The dimensions of the mesh along which examples are cut."""
    return [i for i, placement in enumerate(spec.placements) if isinstance(placement, Shard)]


def _total_weight(target: Any, weight: Any, ignore_index: int, dtype: Any) -> Any:
    """The sum of the weights of examples."""
    counted = target != ignore_index
    if weight is None:
        return counted.sum().to(dtype=dtype)
    return (functions.index_select(weight, 0, target.masked_fill(~counted, 0).reshape(-1))
            * counted.reshape(-1)).sum()


def _over_all(total: Any, spec: DTensorSpec) -> Any:
    for i in _sharded_dims(spec):
        all_reduce(total, group=spec.mesh.get_group(i))
    return total


def _nll(call: OpCall, inputs: list[Any], params: dict[str, Any], specs: list[Any],
         outputs: list[DTensorSpec]) -> Any:
    """The loss of this process's examples; a mean is their sum by the weight of all examples."""
    if params["reduction"] != "mean" or not _sharded_dims(specs[0]):
        return apply(call.op, inputs, params)
    weight = inputs[2] if len(inputs) > 2 else None
    total = _over_all(_total_weight(inputs[1], weight, params["ignore_index"], inputs[0].dtype), specs[0])
    return apply(call.op, inputs, {**params, "reduction": "sum"}) / total


@rule("_nll_loss", "_nll_loss2d", run=_nll)
def nll_loss(call: OpCall, size: int) -> list[Strategy]:
    """input (N, C) or (N, C, ...), target (N) or (N, ...)."""
    out = Shard(0) if call.params["reduction"] == "none" else SUM
    return [call.strategy({0: Shard(0), 1: Shard(0)}, out)] if len(call.shape(0)) > 1 else []


def _nll_backward(call: OpCall, inputs: list[Any], params: dict[str, Any], specs: list[Any],
                  outputs: list[DTensorSpec]) -> Any:
    if params["reduction"] != "mean" or not _sharded_dims(specs[1]):
        return apply(call.op, inputs, params)
    weight = inputs[3] if len(inputs) > 3 else None
    total = _over_all(_total_weight(inputs[2], weight, params["ignore_index"], inputs[1].dtype), specs[1])
    return apply(call.op, [inputs[0] / total, *inputs[1:]], {**params, "reduction": "sum"})


@rule("_nll_loss_backward", run=_nll_backward)
def nll_loss_backward(call: OpCall, size: int) -> list[Strategy]:
    """The gradient of the input; that of the loss is a number, or (N)."""
    inputs: dict[int, Any] = {1: Shard(0), 2: Shard(0)}
    if call.params["reduction"] == "none":
        inputs[0] = Shard(0)
    return [call.strategy(inputs, Shard(0))] if len(call.shape(1)) > 1 else []


@rule("mse_loss", "smooth_l1_loss", "huber_loss", "binary_cross_entropy", "binary_cross_entropy_with_logits",
      "soft_margin_loss")
def elementwise_loss(call: OpCall, size: int) -> list[Strategy]:
    """A loss of each element: none, the sum, or the mean of all, of equal parts."""
    shape, reduction = call.shape(0), call.params["reduction"]
    result = []
    spec = call.inputs[0]
    for d in range(len(shape)):
        inputs = {i: Shard(d) for i in call.tensors() if call.shape(i) == shape}
        if len(inputs) != len(call.tensors()):
            continue
        if reduction == "none":
            result.append(call.strategy(inputs, Shard(d)))
        elif reduction == "sum":
            result.append(call.strategy(inputs, SUM))
        elif shape[d] % spec.mesh.size() == 0:
            result.append(call.strategy(inputs, Partial("avg")))
    return result


__all__ = ["nll_loss"]
