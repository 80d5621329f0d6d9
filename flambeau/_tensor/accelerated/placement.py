"""Which devices an operator's tensors may be on, and the errors of those that are not on one, in PyTorch's words.

Operators take tensors of one device. Exceptions: 0-d tensors of the CPU, which are numbers to kernels; indices and
masks; and what flambeau's own functions make while they compute, such as a table of constants.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextvars import ContextVar
from typing import Any

from ...devices import CPU, device
from ...ops.declare import ELEMENTWISE, Op
from ..tensor import Tensor

#: ids of the tensors that the user gave to the public function that runs; others on the CPU are constants of its own
given: ContextVar[frozenset[int] | None] = ContextVar("given_to_public_function", default=None)

#: operators -> positions of the inputs that may be on the CPU
_ON_EITHER: dict[str, int] = {"index": 1, "index_put": 2, "_index_put": 2, "add_at_indices": 1}
#: operators -> (PyTorch's name, the order in which it checks the inputs, their names)
_CHECKED_AS: dict[str, tuple[str, tuple[int, ...], tuple[str, ...]]] = {
    "linear": ("addmm", (2, 0, 1), ("self", "mat1", "mat2")),
    "linear_nobias": ("mm", (0, 1), ("self", "mat2")),
}
_NAMES = {"input": "self", "tensor": "self"}


def is_elsewhere(x: Any, than: device) -> bool:
    """Whether a value is a tensor on another device."""
    return isinstance(x, Tensor) and x._device is not than


def is_given(x: Tensor) -> bool:
    """Whether a tensor, or what it is a view of, was given by the user to the public function that runs."""
    found = given.get()
    return found is not None and (id(x) in found or (x._base is not None and id(x._base) in found))


def check_placement(op: Op, inputs: Sequence[Any], params: dict[str, Any], target: Tensor | None = None) -> device:
    """The device that an operator runs on.

    Args:
        target: the tensor that it writes to, for an in-place operator.

    Raises:
        RuntimeError: tensors are on two devices (PyTorch's text).
    """
    tensors = [(i, x) for i, x in enumerate(inputs) if isinstance(x, Tensor)]
    on = next(x._device for _, x in tensors if x._device.type == "cuda")
    if all(x._device is on for _, x in tensors):
        return on
    free = _ON_EITHER.get(op.name, len(inputs))
    for i, x in tensors:
        if x._device is on:
            continue
        if x._device is CPU and x is not target and (
                i >= free or not x._array.ndim or not (is_given(x) or (target is not None and is_given(x)))):
            continue
        _raise(op, tensors, on, x)
    return on


def _raise(op: Op, tensors: list[tuple[int, Tensor]], on: device, x: Tensor) -> None:
    if op.kind == ELEMENTWISE or op.name in ("copy", "where", "lerp"):
        other = x._device if x._device is not on else on
        raise RuntimeError("Expected all tensors to be on the same device, but found at least two devices, "
                           f"{on} and {other}!")
    name, order, names = _CHECKED_AS.get(op.name, (op.name, None, None))
    by_position = dict(tensors)
    if order is not None and names is not None:
        checked = [(names[k], by_position[i]) for k, i in enumerate(order) if i in by_position]
    elif op.name in ("cat", "stack"):
        checked = [("tensors", each) for _, each in tensors]
    else:
        checked = [(_NAMES.get(op.inputs[i] if i < len(op.inputs) else "tensors",
                               op.inputs[i] if i < len(op.inputs) else "tensors"), each) for i, each in tensors]
    common = checked[0][1]._device
    label, found = next((label, each) for label, each in checked if each._device is not common)
    raise RuntimeError(f"Expected all tensors to be on the same device, but got {label} is on {found._device}, "
                       f"different from other tensors on {common} (when checking argument in method "
                       f"wrapper_CUDA_{name.lstrip('_')})")


__all__ = ["check_placement", "given", "is_elsewhere", "is_given"]
