"""Error messages for saved tensors that were modified in place before backward."""

from __future__ import annotations

from typing import Any

import numpy as np

from ... import dtypes
from ..anomaly_mode import Anomaly
from .version_counters import IS_DETACHED, WRITES, was_detached


def modified_input_message(tensor: Any, version: int, expected: int) -> str:
    """The message for a saved input whose version is not the expected one."""
    if was_detached(version, expected):
        return IS_DETACHED
    origin = ""
    if not tensor.is_leaf:
        operator = operator_of(tensor.grad_fn)
        if operator == "T" and tensor._base is None:
            # the transpose that `linear` makes of its weight is recorded without being a view; the node of a view whose
            # base was written is AsStridedBackward0
            operator = "AsStrided"
        origin = f", which is output {tensor._output_nr} of {operator},"
    return _message(tensor._array, origin, version, expected)


def modified_output_message(node: Any, array: np.ndarray, number: int, version: int, expected: int) -> str:
    """The message for a saved output (of a node, with its number) whose version is not the expected one."""
    if was_detached(version, expected):
        return IS_DETACHED
    view = None if node.extra is None or node.extra.written_view is None else node.extra.written_view()
    if view is not None and view._base is not None and view._view_version in (-1, expected):
        node, number = view.grad_fn, view._output_nr
    return _message(array, f", which is output {number} of {operator_of(node)},", version, expected)


def operator_of(node: Any) -> str:
    """The operator's name in PyTorch's messages: the node's without `Backward0` (`Sum1` for `SumBackward1`)."""
    name = node.name()
    head, found, tail = name.rpartition("Backward")
    if not found or (tail and not tail.isdigit()):
        return name
    return head if tail == "0" else head + tail


def _message(array: np.ndarray, origin: str, version: int, expected: int) -> str:
    hint = ("enable anomaly detection to find the operation that failed to compute its gradient, with "
            "torch.autograd.set_detect_anomaly(True, check_nan=False).")
    if Anomaly.enabled:
        hint = ("the backtrace further above shows the operation that failed to compute its gradient. The variable in "
                "question was changed in there or anywhere later. Good luck!")
    return ("one of the variables needed for gradient computation has been modified by an inplace operation: "
            f"[{_type_text(array)}]{origin} is at version {version & WRITES}; expected version {expected & WRITES} "
            f"instead. Hint: {hint}")


def _type_text(array: np.ndarray) -> str:
    return f"{dtypes.stream_type_name(dtypes.of(array.dtype))} {list(array.shape)}"


__all__ = ["modified_input_message", "modified_output_message", "operator_of"]
