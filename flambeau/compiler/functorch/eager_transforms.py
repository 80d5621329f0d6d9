"""`torch._functorch.eager_transforms`: the transforms of `torch.func`, and the selection of arguments by number."""

from __future__ import annotations

from typing import Any

from ...func import functionalize, grad, grad_and_value, hessian, jacfwd, jacrev, jvp, linearize, vjp
from ...func.derivatives import check_argnums, select_arguments

argnums_t = int | tuple[int, ...]  # the name is PyTorch's


def _slice_argnums(args: tuple[Any, ...], argnums: argnums_t, as_tuple: bool = True) -> Any:
    """The arguments at some indices; one index gives a tuple of one, or the argument itself.

    Raises:
        RuntimeError: an index is out of range or repeated, or no int.
    """
    check_argnums(argnums, len(args))
    selected = select_arguments(argnums, args)
    return (selected,) if isinstance(argnums, int) and as_tuple else selected


def _as_tuple(val: Any) -> tuple[Any, ...]:
    """A tuple as it is, another value as a tuple of one."""
    return val if isinstance(val, tuple) else (val,)


__all__ = ["functionalize", "grad", "grad_and_value", "hessian", "jacfwd", "jacrev", "jvp", "linearize", "vjp"]
