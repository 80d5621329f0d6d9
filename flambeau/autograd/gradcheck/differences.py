"""Central differences: how a function's outputs move when its inputs are pushed a little.

    J u  ~  (f(x + eps u) - f(x - eps u)) / (2 eps)

The inputs are moved in place, in their own memory, so that functions which know them by other
ways (a closure, a module's parameters) see the move too.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from ..._tensor import Tensor
from ..._tensor import functions as fn

Outputs = tuple[Any, ...]


def as_tuple(value: Any) -> tuple[Any, ...]:
    """`value`, in a tuple if it is not a sequence already."""
    return tuple(value) if isinstance(value, (tuple, list)) else (value,)


def positions(shape: Sequence[int]) -> Iterator[tuple[int, ...]]:
    """The indices of an array's elements, in row-major order."""
    return itertools.product(*[range(n) for n in shape])


class Differences:
    """A function's outputs, differentiated by moving its inputs by `eps`.

    Args:
        function: takes `*inputs`, gives a tensor or several.
        inputs: tensors, and whatever else the function takes.
        eps: how far to move.
    """

    def __init__(self, function: Callable[..., Any], inputs: Sequence[Any], eps: float) -> None:
        self.function = function
        self.inputs = inputs
        self.eps = eps

    def _outputs(self) -> Outputs:
        # copies: an output may be a view of what is about to move again
        return tuple(out.detach().clone() for out in as_tuple(self.function(*self.inputs)))

    def _moved(self, part: Tensor, step: Any, where: str) -> Outputs:
        """d outputs / d step, with `part` (a view of an input's memory) at either side of where it stands."""
        start = part.clone()
        part.copy_(start - step)
        below = self._outputs()
        part.copy_(start + step)
        above = self._outputs()
        part.copy_(start)
        return tuple(self._quotient(a, b, where) for a, b in zip(above, below, strict=True))

    def _quotient(self, above: Tensor, below: Tensor, where: str) -> Tensor:
        for what, a, b in (("shape", below.shape, above.shape), ("dtype", below.dtype, above.dtype)):
            if a != b:
                raise AssertionError(f"Expected `func` to return outputs with the same {what} when inputs are "
                                     f"perturbed {where}by {self.eps}, but got: {what}s {a} and {b}.")
        return (above - below) / (2 * self.eps)

    def jacobians(self, k: int) -> list[Tensor]:
        """The Jacobian of each output by input number `k`: (elements of the input, elements of the output).

        For a complex input, d/dx + i d/dy, which is what reverse mode gives for a real output.
        """
        memory = self.inputs[k].data  # the same memory; what was saved of it does not count these writes
        rows: list[Outputs] = []
        for at in positions(memory.shape):
            where = f"on index {at} "
            along = self._moved(memory[at], self.eps, where)
            if memory.is_complex():
                across = self._moved(memory[at], self.eps * 1j, where)
                along = tuple(fn.complex(a.contiguous(), b.contiguous()) for a, b in zip(along, across, strict=True))
            rows.append(along)
        if not rows:
            return [fn.zeros(0, out.numel(), dtype=out.dtype) for out in self._outputs()]
        return [fn.stack([part.reshape(-1) for part in column]) for column in zip(*rows, strict=True)]

    def along(self, k: int, u: Any) -> list[Any]:
        """The derivative of each output as input number `k` moves in the direction `u`.

        Args:
            u: of the input's shape when reshaped; for a complex input a pair, the directions in which its real and
                its imaginary part move. Then each derivative is a pair as well.
        """
        memory = self.inputs[k].data
        if not memory.is_complex():
            return list(self._moved(memory, u.reshape(memory.shape) * self.eps, ""))
        across, up = (part.reshape(memory.shape) * self.eps for part in u)
        return list(zip(self._moved(memory, across, ""), self._moved(memory, up * 1j, ""), strict=True))
