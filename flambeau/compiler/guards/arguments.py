"""Records of a trace about tensors: references to arguments and results, layouts of arrays, results to construct."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ..._tensor.dispatch.graph_recording import as_view


class ArrayLayout(NamedTuple):
    """A view of an array of a program.

    Attributes:
        array: the index of a new array; for a graph input, -1 - its number.
        shape: the shape.
        strides: the strides in bytes.
        offset: the offset in bytes.
        dtype: the dtype.
    """

    array: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    offset: int
    dtype: np.dtype


class TensorRef(NamedTuple):
    """A reference to a tensor of a call: an argument or a result by position, or a tensor from outside."""

    kind: str  # "argument", "result", "tensor"
    which: Any

    def same(self, other: TensorRef) -> bool:
        """Whether two references of two calls correspond."""
        return self.kind == other.kind and (
            self.which is other.which if self.kind == "tensor" else self.which == other.which)

    def resolve(self, arguments: Sequence[Any], results: Sequence[Any] = ()) -> Any:
        """Return the tensor in a call with these arguments and results."""
        if self.kind == "argument":
            return arguments[self.which]
        return results[self.which] if self.kind == "result" else self.which


class OutputTensor(NamedTuple):
    """A result tensor that the function made.

    Attributes:
        kind: "new", or "leaf" if it is a view of a graph input.
        layout: its array.
        requires_grad: its `requires_grad`.
        number: its index among the differentiable results, or None.
        leaf: whether it requires grad and has no grad_fn.
        parameter: whether it is a `Parameter`.
        base: its base, another view of that, or a tensor with the same version counter.
        is_view: whether it is a view.
        creation: how the view was made (see `Tensor`).
        inference: whether it is an inference tensor.
    """

    kind: str
    layout: ArrayLayout
    requires_grad: bool
    number: int | None
    leaf: bool = False
    parameter: bool = False
    base: TensorRef | None = None
    is_view: bool = False
    creation: str | None = None
    inference: bool = False

    def same(self, other: OutputTensor) -> bool:
        """Whether two results of two calls correspond."""
        if (self.base is None) != (other.base is None) or (
                self.base is not None and other.base is not None and not self.base.same(other.base)):
            return False
        return self._replace(base=None) == other._replace(base=None)

    @property
    def is_plain(self) -> bool:
        """Whether it is a new tensor without a base, created outside inference mode."""
        return not (self.leaf or self.parameter or self.base is not None or self.inference)


def bump_version(x: Any, times: int) -> None:
    """Increase a tensor's version by `times`."""
    counter = x._counter
    if counter is None:
        x._counter = [times]
    else:
        counter[0] += times


def restore_view(tensor: Any, output: OutputTensor, base: Any) -> None:
    """Make a result a view of `base`, or let it share the version counter, as the function's result did."""
    if not output.is_view:
        if base._counter is None:
            base._counter = [0]
        tensor._counter = base._counter
        return
    requires_grad = tensor._requires_grad
    as_view(tensor, base)
    tensor._creation, tensor._requires_grad = output.creation, requires_grad


__all__ = ["ArrayLayout", "OutputTensor", "TensorRef", "bump_version", "restore_view"]
