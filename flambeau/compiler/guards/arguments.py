"""What a run does to tensors that are seen outside: those that it is given, and those that it gives."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ..._tensor.dispatch.graph_recording import as_view


class ArrayLayout(NamedTuple):
    """A tensor over an array: which, and how it lies there, strides and offset in bytes."""

    array: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    offset: int
    dtype: np.dtype


class TensorRef(NamedTuple):
    """A tensor that is there before the run or after it: an argument or a result by its position, or another one."""

    kind: str  # "argument", "result", "tensor"
    which: Any

    def same(self, other: TensorRef) -> bool:
        """Whether this is the other in another call."""
        return self.kind == other.kind and (
            self.which is other.which if self.kind == "tensor" else self.which == other.which)

    def of(self, arguments: Sequence[Any], results: Sequence[Any] = ()) -> Any:
        """The tensor in a call."""
        if self.kind == "argument":
            return arguments[self.which]
        return results[self.which] if self.kind == "result" else self.which


class OutputTensor(NamedTuple):
    """A result that the function made.

    Attributes:
        kind: "new", or "leaf" where it lies in memory that was there before.
        shown: its array.
        requires_grad: whether it does.
        number: which of the differentiable results it is, if it is one.
        leaf: whether it requires grad, and has no history.
        parameter: whether it is a `Parameter`.
        base: a tensor that it is a view of, or shares its base with, or at least its version.
        is_view: whether it is a view.
        creation: how it came to be one (see `Tensor`).
        inference: whether it was made in inference mode.
    """

    kind: str
    shown: ArrayLayout
    requires_grad: bool
    number: int | None
    leaf: bool = False
    parameter: bool = False
    base: TensorRef | None = None
    is_view: bool = False
    creation: str | None = None
    inference: bool = False

    def same(self, other: OutputTensor) -> bool:
        """Whether this is the other in another call."""
        if (self.base is None) != (other.base is None) or (
                self.base is not None and other.base is not None and not self.base.same(other.base)):
            return False
        return self._replace(base=None) == other._replace(base=None)

    @property
    def is_plain(self) -> bool:
        """Whether there is nothing to it but its array, and perhaps a history."""
        return not (self.leaf or self.parameter or self.base is not None or self.inference)


def bump_version(x: Any, times: int) -> None:
    """Count so many writes to a tensor."""
    counter = x._counter
    if counter is None:
        x._counter = [times]
    else:
        counter[0] += times


def restore_view(tensor: Any, made: OutputTensor, beside: Any) -> None:
    """Let a result be a view of another tensor, or share its version, as the function's result did."""
    if not made.is_view:
        if beside._counter is None:
            beside._counter = [0]
        tensor._counter = beside._counter
        return
    requires_grad = tensor._requires_grad
    as_view(tensor, beside)
    tensor._creation, tensor._requires_grad = made.creation, requires_grad


__all__ = ["ArrayLayout", "OutputTensor", "TensorRef", "bump_version", "restore_view"]
