"""`local_map`: a function of parts as one of distributed tensors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ....trees import tree_flatten, tree_unflatten
from ...device_mesh import DeviceMesh
from ...placement_types import Placement
from .._dtensor import DTensor


def local_map(func: Callable[..., Any] | None = None, out_placements: Any = None, in_placements: Any = None,
              in_grad_placements: Any = None, device_mesh: DeviceMesh | None = None, *,
              redistribute_inputs: bool = False) -> Callable[..., Any]:
    """Make a function of distributed tensors of one that computes on parts.

    Args:
        func: the function; None: return a decorator.
        out_placements: the placements of the result, or of each result; None for one that is no tensor.
        in_placements: those of each argument; None: any, or no tensor.
        in_grad_placements: those of the gradients of parts.
        device_mesh: the processes; default: the mesh of the arguments.
        redistribute_inputs: change placements that differ from `in_placements`, which else are an error.

    Raises:
        ValueError: an argument is placed otherwise.
        AssertionError: there are not as many placements as arguments or results.
    """
    if func is None:
        return lambda function: local_map(function, out_placements, in_placements, in_grad_placements, device_mesh,
                                          redistribute_inputs=redistribute_inputs)

    def wrapped(*args: Any, **kwargs: Any) -> Any:
        flat, spec = tree_flatten(args)
        if in_placements is not None and len(in_placements) != len(flat):
            raise AssertionError(f"in_placements length {len(in_placements)} does not match the number of input args "
                                 f"{len(flat)}!")
        mesh, parts, any_distributed = device_mesh, [], False
        for i, x in enumerate(flat):
            if isinstance(x, DTensor):
                any_distributed, mesh = True, mesh or x.device_mesh
                wanted = None if in_placements is None else in_placements[i]
                if wanted is not None and x.placements != tuple(wanted):
                    if not redistribute_inputs:
                        raise ValueError(f"arg {x} in local_map has a mismatched placements: arg placements is "
                                         f"{x.placements} but the input placements is {wanted}! If redistribute_inputs"
                                         " is wanted, set redistribute_inputs=True to local_map.")
                    x = x.redistribute(mesh, wanted)
                x = x.to_local(grad_placements=None if in_grad_placements is None else in_grad_placements[i])
            parts.append(x)
        out = func(*tree_unflatten(parts, spec), **kwargs)
        if not any_distributed:
            return out
        outs, out_spec = tree_flatten(out)
        placed = _by_result(out_placements, len(outs))
        if len(placed) != len(outs):
            raise AssertionError(f"local_map requires one PlacementType be provided for each output value, received "
                                 f"{len(placed)} out_placements but {len(outs)} is expected!")
        return tree_unflatten([x if p is None else DTensor.from_local(x, mesh, p, run_check=False)
                               for x, p in zip(outs, placed, strict=True)], out_spec)

    return wrapped


def _by_result(placements: Any, count: int) -> Sequence[Sequence[Placement] | None]:
    if placements is None or (placements and isinstance(placements[0], Placement)):
        return [placements]
    return list(placements)


__all__ = ["local_map"]
