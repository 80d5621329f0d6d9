"""Checks of the arguments of `ProcessGroupGloo`, with the texts of PyTorch's errors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ... import dtypes
from ..memory import array_of


def sizes_text(tensor: Any) -> str:
    """A shape as C++ prints it."""
    return "(" + ", ".join(map(str, tensor.shape)) + ")"


def type_text(tensor: Any) -> str:
    """The options of a tensor's type as C++ prints them."""
    name = tensor.dtype.name
    return (f"TensorOptions(dtype={dtypes.C_NAMES.get(name, name)}, device=cpu, layout=Strided, "
            "requires_grad=false (default), pinned_memory=false (default), memory_format=(nullopt))")


class Checks:
    """The checks of one collective, with the texts of PyTorch's errors."""

    def __init__(self, operation: str) -> None:
        self.operation = operation

    def fail(self, text: str) -> None:
        """Raise RuntimeError."""
        raise RuntimeError(f"ProcessGroupGloo::{self.operation}: {text}")

    def root(self, root: int, size: int) -> None:
        """Check a root's rank."""
        if not 0 <= root < size:
            self.fail(f"invalid root rank: {root}")

    def root_tensor(self, index: int, count: int) -> None:
        """Check which of a process's tensors is the root's."""
        if not 0 <= index < count:
            self.fail(f"invalid root tensor: {index}")

    def same_layout(self, tensors: Sequence[Any]) -> None:
        """Check that tensors have the layout of the first one."""
        for i, tensor in enumerate(tensors):
            if tensor.layout is not tensors[0].layout:
                self.fail(f"invalid tensor layout at index {i}")

    def not_empty(self, tensors: Sequence[Any]) -> None:
        """Check that there are tensors."""
        if not tensors:
            self.fail("requires non-empty tensor list")

    def single(self, tensors: Sequence[Any], what: str = "tensor") -> None:
        """Check that there is one tensor."""
        if len(tensors) != 1:
            self.fail(f"requires a single-element {what} list")

    def alike(self, tensors: Sequence[Any], model: Any) -> None:
        """Check that tensors have the dtype and shape of a model."""
        for i, tensor in enumerate(tensors):
            if tensor.dtype != model.dtype:
                self.fail(f"invalid tensor type at index {i} (expected {type_text(model)}, got {type_text(tensor)})")
            if tensor.shape != model.shape:
                self.fail(f"invalid tensor size at index {i} (expected {sizes_text(model)}, got {sizes_text(tensor)})")

    def dense(self, tensors: Sequence[Any]) -> None:
        """Check that tensors are dense."""
        for tensor in tensors:
            try:
                array_of(tensor)
            except RuntimeError as error:
                self.fail(str(error))


__all__ = ["Checks", "sizes_text", "type_text"]
