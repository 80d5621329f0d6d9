"""Averages of parameters over processes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ...._tensor import Tensor
from ...._tensor.shape.joining import cat
from ....c10d.process_group import ProcessGroup
from ....c10d.world import default_group
from ....engine.grad_mode import no_grad
from ....nn.parameter import Parameter
from ...collectives import all_reduce
from ...groups.queries import _rank_not_in_group, get_world_size

__all__ = ["average_parameters", "average_parameters_or_parameter_groups", "get_params_to_average"]


@no_grad()
def average_parameters(params: Iterable[Tensor], process_group: ProcessGroup | None) -> None:
    """Replace parameters by their averages over processes.

    Args:
        params: the parameters, the same in all processes.
        process_group: the processes; all if None.
    """
    group = default_group() if process_group is None else process_group
    if _rank_not_in_group(group):
        return
    params = list(params)
    flat = cat([each.data.reshape(-1) for each in params])  # of the widest dtype
    flat /= get_world_size(group)
    all_reduce(flat, group=group)
    start = 0
    for each in params:
        each.data = flat[start:start + each.numel()].view_as(each).type_as(each)
        start += each.numel()


def get_params_to_average(params: Iterable[Any]) -> list[Tensor]:
    """The parameters that have gradients.

    Args:
        params: parameters, or parameter groups of an optimizer.

    Raises:
        NotImplementedError: an element is neither.

    >>> import flambeau as torch
    >>> from flambeau.distributed.algorithms.model_averaging.utils import get_params_to_average
    >>> layer = torch.nn.Linear(2, 1)
    >>> layer.weight.sum().backward()
    >>> [list(p.shape) for p in get_params_to_average(layer.parameters())]
    [[1, 2]]
    """
    found = []
    for each in params:
        if isinstance(each, Parameter):
            found.append(each)
        elif isinstance(each, dict):
            found += each["params"]
        else:
            raise NotImplementedError(f"Parameter input of type {type(each)} is not supported")
    return [each for each in found if each.grad is not None]


def average_parameters_or_parameter_groups(params: Iterable[Any], process_group: ProcessGroup | None) -> None:
    """Replace the parameters that have gradients by their averages over processes.

    Args:
        params: parameters, or parameter groups of an optimizer.
        process_group: the processes; all if None.
    """
    average_parameters(get_params_to_average(params), process_group)
