"""Checks of collectives' arguments, with the texts of PyTorch's errors, and their options."""

from __future__ import annotations

import itertools
from typing import Any

from .. import dtypes
from .._tensor import Tensor
from ..c10d.process_group import ProcessGroup
from ..c10d.reduce_op import ReduceOp, kind_of
from ..c10d.work import Work
from .groups.queries import get_global_rank, get_group_rank

__all__ = ["supports_complex"]


def _check_single_tensor(param: Any, param_name: str) -> None:
    if not isinstance(param, Tensor):
        raise TypeError(f"Invalid function argument. Expected parameter `{param_name}` of type torch.Tensor\n"
                        f"             but got {type(param)} instead.")


def _check_tensor_list(param: Any, param_name: str) -> None:
    if not isinstance(param, list):
        raise TypeError(f"Invalid function argument. Expected parameter `{param_name}` of type List[torch.Tensor]\n"
                        f"             but got {type(param)} instead.")
    if not all(isinstance(each, Tensor) for each in param):
        raise TypeError(f"Invalid function argument. Expected parameter `{param_name}` of type List[torch.Tensor]\n"
                        f"             but got {type(param)} with elements of type {[type(each) for each in param]}.")


def _ensure_all_tensors_same_dtype(*tensors: Any) -> None:
    last = None
    for tensor in itertools.chain.from_iterable(each if isinstance(each, list) else (each,) for each in tensors):
        own = tensor.dtype
        if own.is_complex:  # goes together with the dtype of its parts
            own = dtypes.float32 if own is dtypes.complex64 else dtypes.float64
        if last is not None and last is not own:
            raise ValueError(f"Invalid usage of tensors with different dtypesFound {last} and  {tensor.dtype}")
        last = own


def _canonicalize_group_rank(group: ProcessGroup, global_rank: int | None = None, group_rank: int | None = None,
                             return_global: bool = False) -> int:
    if group_rank is not None:
        if global_rank is not None:
            raise ValueError("Can't specify both group_rank and global_rank")
        return get_global_rank(group, group_rank) if return_global else group_rank
    if global_rank is None:
        raise ValueError("Must specify global_rank or group_rank")
    return global_rank if return_global else get_group_rank(group, global_rank)


def supports_complex(reduceOp: Any) -> bool:
    """Whether a reduction of complex numbers is that of their real and imaginary parts.

    Args:
        reduceOp: the reduction.

    >>> import flambeau as torch
    >>> torch.distributed.supports_complex(torch.distributed.ReduceOp.SUM)
    True
    """
    return kind_of(reduceOp) in (ReduceOp.SUM, ReduceOp.AVG, ReduceOp.PREMUL_SUM)


def _check_complex(operation: str, op: Any, *tensors: Any) -> None:
    if any(tensor.is_complex() for tensor in tensors) and not supports_complex(op):
        raise ValueError(f"{operation} does not support {op} on complex tensors")


def _finished(work: Work, async_op: bool) -> Work | None:
    if async_op:
        return work
    work.wait()
    return None


def _with(options: Any, async_op: bool, **values: Any) -> Any:
    options.asyncOp = async_op
    for name, value in values.items():
        setattr(options, name, value)
    return options


def _reducing(options: Any, op: Any) -> Any:
    if op is ReduceOp.PREMUL_SUM:  # lacks its factor
        raise TypeError("(): incompatible function arguments. The following argument types are supported:\n"
                        f"    1. (self: torch._C._distributed_c10d.{type(options).__name__}, arg0: "
                        f"torch._C._distributed_c10d.ReduceOp) -> None\n\nInvoked with: {options!r}, {op!r}")
    options.reduceOp = op
    return options


def _checked_list(tensor: Tensor, tensors: list[Tensor] | None, name: str) -> list[Tensor]:
    """Check the tensors that one process gathers or scatters; return them, an empty list if there are none."""
    if tensors:
        _check_tensor_list(tensors, name)
    else:
        tensors = []
    _ensure_all_tensors_same_dtype(tensor, tensors)
    return tensors


def _check_only_root_has(tensors: list[Tensor], is_root: bool, name: str, root: str) -> None:
    """Check that there is a list of tensors at the root, and none elsewhere."""
    if is_root and not tensors:
        raise ValueError(f"Argument ``{name}`` must be specified on {root} rank.")
    if not is_root and tensors:
        raise ValueError(f"Argument ``{name}`` must NOT be specified on non-{root} ranks.")
