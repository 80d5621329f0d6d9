"""Lists of tensors grouped by device and dtype."""

from __future__ import annotations

from typing import Any


def _group_tensors_by_device_and_dtype(tensorlistlist: list[list[Any]],
                                       with_indices: bool = False) -> dict[Any, tuple[list[list[Any]], list[int]]]:
    """Split parallel lists of tensors by the device and dtype of the first list's tensors.

    Args:
        tensorlistlist: lists of equal length; those after the first may be empty or hold None.
        with_indices: also return the indices of the tensors of each group.

    Returns:
        A dictionary of (device, dtype) to (lists, indices).

    >>> import flambeau as torch
    >>> from flambeau.optim.tensor_groups import _group_tensors_by_device_and_dtype
    >>> groups = _group_tensors_by_device_and_dtype([[torch.ones(1), torch.ones(1).double()]])
    >>> [dtype for _, dtype in groups]
    [flambeau.float32, flambeau.float64]
    """
    if not tensorlistlist or not tensorlistlist[0]:
        raise RuntimeError("nested_tensorlist[0] must have at least one tensor")
    groups: dict[Any, tuple[list[list[Any]], list[int]]] = {}
    for i, tensor in enumerate(tensorlistlist[0]):
        lists, indices = groups.setdefault((tensor.device, tensor.dtype), ([[] for _ in tensorlistlist], []))
        for group, tensors in zip(lists, tensorlistlist, strict=True):
            if tensors:
                group.append(tensors[i])
        if with_indices:
            indices.append(i)
    return groups
