"""Tensors of an export: a fake tensor for each lane, so that it is seen which sizes depend on dynamic ones."""

from __future__ import annotations

from typing import Any

from ..._subclasses.fake_tensor import FakeTensor, _fake
from ..._tensor import Tensor
from ..._tensor.overriding.entry_points import note_instance
from ..._tensor.tensor import wrap
from .symbolic_numbers import SymbolicSize


class TracedTensor(FakeTensor):
    """A tensor of an export.

    Attributes:
        trace: the trace.
        lanes: its fake tensor in each lane; the first is that of the example.
        takes_both_branches: a program computes both branches of `cond`, and takes the elements of one.
    """

    takes_both_branches = True

    trace: Any
    lanes: tuple[FakeTensor, ...]

    def __new__(cls, trace: Any, lanes: tuple[FakeTensor, ...]) -> Any:
        first = lanes[0]
        out = wrap(first._array, cls)
        out.trace, out.lanes = trace, lanes
        out.fake_mode, out.fake_device, out.constant = first.fake_mode, first.fake_device, first.constant
        note_instance(out)
        out._requires_grad = first._requires_grad
        if getattr(first, "_is_param", False):
            out._is_param = True
        return out

    def __init__(self, *args: Any) -> None:
        pass

    def refresh(self) -> None:
        """Follow an operator that changed the metadata of the lanes."""
        self._array = self.lanes[0]._array
        self.constant = self.lanes[0].constant

    @property
    def shape(self) -> Any:
        """Its sizes, those that depend on dynamic ones as numbers of the trace."""
        if len(self.lanes) == 1:
            return Tensor.shape.fget(self)  # type: ignore[attr-defined]
        return self._sizes(tuple(x._array.shape for x in self.lanes))

    def _sizes(self, shapes: tuple[tuple[int, ...], ...]) -> Any:
        sizes = []
        for d, lanes in enumerate(zip(*shapes, strict=True)):
            same = all(n == lanes[0] for n in lanes)
            sizes.append(lanes[0] if same else self.trace.size(self, d, lanes))
        return SymbolicSize(sizes)

    def size(self, dim: Any = None) -> Any:
        """Its sizes, or one of them."""
        if dim is None:
            return self.shape
        if len(self.lanes) > 1 and isinstance(dim, int):
            if not -self.dim() <= dim < self.dim():
                return Tensor.size(self, dim)  # type: ignore[attr-defined]
            return self.shape[dim]
        return Tensor.size(self, dim)  # type: ignore[attr-defined]

    def stride(self, dim: Any = None) -> Any:
        """Its strides, or one of them."""
        strides = [x.stride() for x in self.lanes]
        whole = tuple(lanes[0] if all(n == lanes[0] for n in lanes) else self.trace.number(lanes)
                      for lanes in zip(*strides, strict=True))
        return whole if dim is None else whole[dim]

    def numel(self) -> Any:
        """The number of its elements."""
        count: Any = 1
        for n in self.shape:
            count = count * n
        return count

    nelement = numel

    def __len__(self) -> Any:
        if not self.dim():
            raise TypeError("len() of a 0-d tensor")
        return self.shape[0].__index__()

    def __iter__(self) -> Any:
        if not self.dim():
            raise TypeError("iteration over a 0-d tensor")
        return iter(self.unbind(0))

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        return self

    def __repr__(self, *, tensor_contents: Any = None) -> str:  # type: ignore[override]
        kind = "Parameter(" if getattr(self, "_is_param", False) else ""
        return f"{kind}FakeTensor(..., size=({', '.join(map(str, self.shape))}{',' * (self.dim() == 1)}))" + (
            ")" if kind else "")


def shown(x: TracedTensor) -> TracedTensor:
    """The metadata of a tensor, for `Node.meta`: not changed by later operators on it."""
    lanes = tuple(_fake(lane.fake_mode, lane._array, lane.fake_device, lane.constant) for lane in x.lanes)
    for lane in lanes:
        lane._requires_grad = x.lanes[0]._requires_grad
    out: TracedTensor = TracedTensor(x.trace, lanes)
    return out


__all__ = ["TracedTensor", "shown"]
