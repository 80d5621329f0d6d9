"""`loss_parallel`: cross entropy of scores whose classes are cut over processes, which are never gathered.

Within the block, `log_softmax` along the cut dimension sends a maximum and a sum of each row, and `nll_loss` takes from
each process the scores of the classes that it has.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ...._tensor import functions as _functions
from ....shapes import wrap_dim
from ...collectives import all_reduce
from ...placement_types import Partial, Shard
from .._dtensor import DTensor
from .._dtensor_spec import DTensorSpec
from .._ops.loss import _total_weight
from .._ops.strategy import RULES, OpCall, Rule, Strategy
from .._partial import _OPS
from .._sharding import local_shape_and_offset

functions: Any = _functions
SUM = Partial("sum")


def _groups(spec: DTensorSpec, dim: int) -> list[Any]:
    """The groups over which a dimension is cut."""
    return [spec.mesh.get_group(i) for i, p in enumerate(spec.placements) if p.is_shard(dim)]


def _over(x: Any, op: str, groups: list[Any]) -> Any:
    for group in groups:
        all_reduce(x, _OPS[op], group)
    return x


def _log_softmax(call: OpCall, inputs: list[Any], params: dict[str, Any], specs: list[Any],
                 outputs: list[DTensorSpec]) -> Any:
    x, dim = inputs[0], wrap_dim(params["dim"], specs[0].ndim)
    if params.get("dtype") is not None:
        x = x.to(dtype=params["dtype"])
    groups = _groups(specs[0], dim)
    shifted = x - _over(functions.amax(x, dim, True).contiguous(), "max", groups)
    total = _over(shifted.exp().sum(dim, keepdim=True).contiguous(), "sum", groups)
    return shifted - total.log()


def _log_softmax_backward(call: OpCall, inputs: list[Any], params: dict[str, Any], specs: list[Any],
                          outputs: list[DTensorSpec]) -> Any:
    grad, output = inputs
    dim = wrap_dim(params["dim"], specs[0].ndim)
    total = _over(grad.sum(dim, keepdim=True).contiguous(), "sum", _groups(specs[0], dim))
    return grad - output.exp() * total


def _same(call: OpCall, size: int) -> list[Strategy]:
    every = call.tensors()
    return [call.strategy(dict.fromkeys(every, Shard(d)), Shard(d)) for d in range(len(call.shape(every[0])))]


def _own_classes(target: Any, spec: DTensorSpec) -> tuple[Any, Any]:
    """The targets as positions in this process's classes, and which of them it has."""
    mesh = spec.mesh
    sizes, offsets = local_shape_and_offset(spec.shape, mesh.shape, mesh.get_coordinate(), spec.placements)
    at = 1 if spec.ndim > 1 else 0
    mine = (target >= offsets[at]) & (target < offsets[at] + sizes[at])
    return (target - offsets[at]).masked_fill(~mine, 0), mine


def _factors(target: Any, weight: Any, ignore_index: int, dtype: Any) -> Any:
    """The weight of each example; 0 for those that do not count."""
    counted = target != ignore_index
    if weight is None:
        return counted.to(dtype=dtype)
    return functions.index_select(weight, 0, target.masked_fill(~counted, 0).reshape(-1)).view(
        target.shape) * counted


def _total(target: Any, weight: Any, params: dict[str, Any], spec: DTensorSpec, dtype: Any) -> Any:
    return _over(_total_weight(target, weight, params["ignore_index"], dtype), "sum",
                 _groups(spec, 0) if spec.ndim > 1 else [])


def _nll_loss(call: OpCall, inputs: list[Any], params: dict[str, Any], specs: list[Any],
              outputs: list[DTensorSpec]) -> Any:
    x, target = inputs[0], inputs[1]
    weight = inputs[2] if len(inputs) > 2 else None
    own, mine = _own_classes(target, specs[0])
    at = 1 if specs[0].ndim > 1 else 0
    found = x.gather(at, own.unsqueeze(at)).squeeze(at)
    losses = -found.masked_fill(~mine, 0) * _factors(target, weight, params["ignore_index"], x.dtype)
    losses = _over(losses.contiguous(), "sum", _groups(specs[0], at))
    if params["reduction"] == "none":
        return losses
    total = losses.sum()
    return total / _total(target, weight, params, specs[0], x.dtype) if params["reduction"] == "mean" else total


def _nll_loss_backward(call: OpCall, inputs: list[Any], params: dict[str, Any], specs: list[Any],
                       outputs: list[DTensorSpec]) -> Any:
    grad, x, target = inputs[:3]
    weight = inputs[3] if len(inputs) > 3 else None
    own, mine = _own_classes(target, specs[1])
    at = 1 if specs[1].ndim > 1 else 0
    scale = _factors(target, weight, params["ignore_index"], x.dtype) * grad
    if params["reduction"] == "mean":
        scale = scale / _total(target, weight, params, specs[1], x.dtype)
    values = (-scale * mine).to(dtype=x.dtype)
    return functions.zeros_like(x).scatter(at, own.unsqueeze(at), values.unsqueeze(at))


def _of_classes(first: int) -> Any:
    """Strategies of a loss: examples are cut, or classes, which a process's own sum is completed over."""
    def strategies(call: OpCall, size: int) -> list[Strategy]:
        at = 1 if len(call.shape(first)) > 1 else 0
        none, scores = call.params["reduction"] == "none", first == 1
        classes = call.strategy({first: Shard(at)}, Shard(at) if scores else call.replicated().outputs[0])
        if not at:
            return [classes]
        inputs: dict[int, Any] = {first: Shard(0), first + 1: Shard(0)}
        if none and scores:
            inputs[0] = Shard(0)
        return [classes, call.strategy(inputs, Shard(0) if none or scores else SUM)]

    return strategies


_RULES = {"log_softmax": Rule(_same, None, _log_softmax),
          "_log_softmax_backward": Rule(_same, None, _log_softmax_backward),
          "_nll_loss": Rule(_of_classes(0), None, _nll_loss), "_nll_loss2d": Rule(_of_classes(0), None, _nll_loss),
          "_nll_loss_backward": Rule(_of_classes(1), None, _nll_loss_backward)}


@contextmanager
def loss_parallel() -> Iterator[None]:
    """Compute cross entropy of scores that are cut along the classes without gathering them.

    The block holds the loss and its backward pass.

    >>> from flambeau.distributed.tensor.parallel import loss_parallel
    >>> with loss_parallel():
    ...     pass
    """
    before = {name: RULES[name] for name in _RULES if name in RULES}
    dispatcher = DTensor._op_dispatcher
    RULES.update(_RULES)
    kept, dispatcher._chosen = dispatcher._chosen, {}
    replicating, dispatcher.replicating = dispatcher.replicating, frozenset(("nll_loss", "_nll_loss_backward",
                                                                             *_RULES))
    try:
        yield
    finally:
        for name in _RULES:
            if name in before:
                RULES[name] = before[name]
            else:
                del RULES[name]
        dispatcher._chosen, dispatcher.replicating = kept, replicating


__all__ = ["loss_parallel"]
