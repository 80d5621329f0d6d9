"""Central differences: numerical Jacobians and directional derivatives.

    J u  ~  (f(x + eps u) - f(x - eps u)) / (2 eps)

The inputs are perturbed in place, so that functions that reach them through a closure or a module's parameters see
the perturbation too.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from ..._tensor import Tensor
from ..._tensor import functions as fn

Outputs = tuple[Any, ...]


def as_tuple(value: Any) -> tuple[Any, ...]:
    """`value` as a tuple; a single value as a tuple of one."""
    return tuple(value) if isinstance(value, (tuple, list)) else (value,)


def positions(shape: Sequence[int]) -> Iterator[tuple[int, ...]]:
    """The indices of an array's elements, in row-major order."""
    return itertools.product(*[range(n) for n in shape])


class Differences:
    """Numerical derivatives of a function.

    Args:
        function: maps `*inputs` to a tensor or several.
        inputs: tensors and other arguments of the function.
        eps: the step.
    """

    def __init__(self, function: Callable[..., Any], inputs: Sequence[Any], eps: float) -> None:
        self.function = function
        self.inputs = inputs
        self.eps = eps

    def _outputs(self) -> Outputs:
        # copies: an output may be a view of an input that is perturbed again
        return tuple(out.detach().clone() for out in as_tuple(self.function(*self.inputs)))

    def _difference(self, part: Tensor, step: Any, where: str) -> Outputs:
        """The difference quotients of the outputs, with `part` (a view of an input's memory) perturbed by ±step."""
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
        """The Jacobian of each output with respect to input `k`: (elements of the input, elements of the output).

        For a complex input it is d/dx + i d/dy, which reverse mode computes for a real output.
        """
        memory = self.inputs[k].data  # the same memory; writes to it do not change the input's version
        rows: list[Outputs] = []
        for at in positions(memory.shape):
            where = f"on index {at} "
            along = self._difference(memory[at], self.eps, where)
            if memory.is_complex():
                across = self._difference(memory[at], self.eps * 1j, where)
                along = tuple(fn.complex(a.contiguous(), b.contiguous()) for a, b in zip(along, across, strict=True))
            rows.append(along)
        if not rows:
            return [fn.zeros(0, out.numel(), dtype=out.dtype, device=out.device) for out in self._outputs()]
        return [fn.stack([part.reshape(-1) for part in column]) for column in zip(*rows, strict=True)]

    def along(self, k: int, u: Any) -> list[Any]:
        """The directional derivative of each output with respect to input `k`.

        Args:
            u: the direction, with as many elements as the input; for a complex input a pair of directions, of its
                real and its imaginary part. Then each derivative is a pair, too.
        """
        memory = self.inputs[k].data
        if not memory.is_complex():
            return list(self._difference(memory, u.reshape(memory.shape) * self.eps, ""))
        across, up = (part.reshape(memory.shape) * self.eps for part in u)
        return list(zip(self._difference(memory, across, ""), self._difference(memory, up * 1j, ""), strict=True))
