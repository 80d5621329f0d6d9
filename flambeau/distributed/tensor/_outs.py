"""Calls with `out=` on distributed tensors."""

from __future__ import annotations

from typing import Any

from ..._tensor.overriding.dispatch import outside_handlers
from ..._tensor.overriding.overload_calls import functional_overload
from ...ops.aten import declarations_of
from ...ops.declare import ELEMENTWISE
from ._dtensor import DTensor
from ._redistribute import redistribute_local_tensor


def names_of_outs(func: Any) -> tuple[str, ...]:
    """The names of the arguments of an overload that results are written to.

    Args:
        func: the overload.
    """
    schema = func._given_schema
    return () if schema is None else tuple(a.name for a in schema.arguments if a.is_out)


def into_outs(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Compute the results of an overload, and write them to its `out=` tensors.

    An elementwise operator keeps the placements of `out`; another one gives it those of the result.

    Args:
        func: the overload.
        args, kwargs: its arguments.

    Raises:
        RuntimeError: a result that is cut would have to become a sum (PyTorch's text), or an `out=` is no `DTensor`.
    """
    names = names_of_outs(func)
    outs = [kwargs[name] for name in names]
    functional = functional_overload(func, func._given_schema)
    with outside_handlers():
        result = functional(*args, **{name: value for name, value in kwargs.items() if name not in names})
    keeps = any(op.kind == ELEMENTWISE for op in declarations_of(functional))
    for out, value in zip(outs, result if isinstance(result, (tuple, list)) else [result], strict=True):
        if not isinstance(out, DTensor):
            raise RuntimeError(f"{func} got mixed torch.Tensor and DTensor, need to convert all torch.Tensor to "
                               "DTensor before calling distributed operators!")
        local, spec = value._local_tensor, value._spec
        if keeps and spec.placements != out.placements:
            for old, new in zip(spec.placements, out.placements, strict=True):
                if new.is_partial() and old != new and not old.is_replicate():
                    raise RuntimeError(f"redistribute from {old} to {new} not supported yet")
            target = spec.with_placements(out.placements)
            local, spec = redistribute_local_tensor(local, spec, target), target
        own = out._local_tensor
        if own.shape == local.shape and own.dtype is local.dtype:
            own.copy_(local)
        else:
            out._local_tensor = local
        out._spec = spec
        if out.shape != spec.shape:
            out._array = value._array
        out._bump_version()
    return outs[0] if len(outs) == 1 else tuple(outs)


__all__ = ["into_outs", "names_of_outs"]
