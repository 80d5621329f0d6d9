"""Autograd's derivatives beside the measured ones: whole Jacobians, or one random product with each.

Slow mode compares J element by element; fast mode compares v^T J u (reverse) or J u (forward) for
random unit vectors u and v, which costs two evaluations for an input instead of two for an element.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from ... import dtypes
from ..._tensor import Tensor
from ..._tensor import functions as fn
from ..._tensor.creation.random import Generator
from ..._tensor.dispatch.dual_tensors import dual_level
from .differences import Differences, as_tuple
from .messages import GradcheckError, in_slow_mode, mismatch
from .products import differentiated, directional, forward_jacobians, gradients, reliable


class Settings(NamedTuple):
    """How far derivatives are measured apart, and how far they may be apart."""

    eps: float
    atol: float
    rtol: float
    nondet_tol: float
    check_dtypes: bool
    fast: bool


def live_outputs(outputs: Any) -> tuple[Tensor, ...]:
    """The outputs that require grad."""
    return tuple(out for out in as_tuple(outputs) if out.requires_grad)


def unit_vector(x: Tensor, generator: Generator) -> Tensor:
    """A random direction in the space of x's elements, each of its numbers real and positive."""
    vector = fn.rand(x.numel(), generator=generator).to(x.real.dtype if x.is_complex() else x.dtype)
    return vector / vector.norm()


class Trial:
    """One function in one mode, all of whose outputs (forward mode: inputs) are real.

    Args:
        function: takes `*inputs`, gives a tensor or several.
        outputs: what it gave.
        forward: whether forward mode is on trial; else reverse mode.
        part: "real" or "imaginary", where the function is a part of the one that was asked about.
        parted: the numbers of the outputs (forward mode: inputs) that are such parts.
    """

    def __init__(self, function: Callable[..., Any], inputs: Sequence[Any], outputs: Any, settings: Settings, *,
                 forward: bool = False, part: str | None = None, parted: Sequence[int] = ()) -> None:
        self.function = function
        self.inputs = inputs
        self.outputs = as_tuple(outputs)
        self.settings = settings
        self.forward = forward
        self.part = part
        self.parted = parted
        self.wanted = differentiated(inputs)
        self.live = [i for i, out in enumerate(self.outputs) if out.requires_grad]
        self.differences = Differences(function, inputs, settings.eps)

    def run(self) -> None:
        """Compare.

        Raises:
            GradcheckError: a derivative is wrong.
        """
        if not self.live:
            self._expect_zero()
        elif self.settings.fast:
            self._compare_products()
        else:
            self._compare_jacobians()

    def _expect_zero(self) -> None:
        generator = Generator()
        for k in self.wanted:
            measured = (self.differences.along(k, self._direction(k, generator)) if self.settings.fast else
                        self.differences.jacobians(k))
            for found in measured:
                if any(bool((part != 0).any()) for part in as_tuple(found)):
                    raise GradcheckError("Numerical gradient for function expected to be zero")

    def _close(self, analytical: Tensor, numerical: Tensor, atol: float) -> bool:
        common = dtypes.promote_types(analytical.dtype, numerical.dtype)
        return fn.allclose(analytical.to(common), numerical.to(common), self.settings.rtol, atol)

    def _mismatch(self, i: int, j: int, numerical: Any, analytical: Any) -> str:
        place = self.wanted[j] if self.forward else i
        return mismatch(i, j, numerical, analytical, forward=self.forward,
                        part=self.part if place in self.parted else None)

    # ----- slow mode -----

    def _compare_jacobians(self) -> None:
        numerical = [self.differences.jacobians(k) for k in self.wanted]
        pushed = [forward_jacobians(self.function, self.inputs, k, self.settings.check_dtypes)
                  for k in self.wanted] if self.forward else None
        for i, number in enumerate(self.live):
            rows = ([found[number] for found in pushed] if pushed is not None else
                    reliable(self.inputs, self.outputs[number], self.settings.nondet_tol, self.settings.check_dtypes))
            for j, analytical in enumerate(rows):
                measured = numerical[j][number]
                if not self._close(analytical, measured, self.settings.atol):
                    raise GradcheckError(self._mismatch(i, j, measured, analytical))

    # ----- fast mode -----

    def _direction(self, k: int, generator: Generator) -> Any:
        x = self.inputs[k]
        u = unit_vector(x, generator)
        return (u, unit_vector(x, generator)) if x.is_complex() else u

    def _compare_products(self) -> None:
        generator = Generator()  # one of its own, so that the user's random numbers stay what they would be
        directions = [self._direction(k, generator) for k in self.wanted]
        moved = [self.differences.along(k, u) for k, u in zip(self.wanted, directions, strict=True)]
        if self.forward:
            with dual_level():
                pushed = [directional(self.function, self.inputs, k, u.reshape(self.inputs[k].shape),
                                      self.settings.check_dtypes)
                          for k, u in zip(self.wanted, directions, strict=True)]
            for i, number in enumerate(self.live):
                for j, u in enumerate(directions):
                    self._compare_product(i, j, moved[j][number].reshape(-1), pushed[j][number], float(u.sum()))
            return
        covectors = [unit_vector(self.outputs[number], generator) for number in self.live]
        pulled = [reliable(self.inputs, self.outputs[number], self.settings.nondet_tol, self.settings.check_dtypes, v)
                  for number, v in zip(self.live, covectors, strict=True)]
        for i, (number, v) in enumerate(zip(self.live, covectors, strict=True)):
            for j, u in enumerate(directions):
                numerical = _along(moved[j][number], v)
                analytical = _against(pulled[i][j].reshape(-1), u)
                weight = float(sum(part.sum() for part in as_tuple(u))) * float(v.sum())
                self._compare_product(i, j, numerical, analytical, weight)

    def _compare_product(self, i: int, j: int, numerical: Tensor, analytical: Tensor, weight: float) -> None:
        """Args: weight: the sum of the Jacobian's weights in the product: so often may `atol` be in it."""
        settings = self.settings
        if self._close(analytical, numerical, settings.atol * weight):
            return
        k, number = self.wanted[j], self.live[i]
        full = self.differences.jacobians(k)[number]
        if self.forward:
            whole = forward_jacobians(self.function, self.inputs, k, settings.check_dtypes)[number]
        else:
            whole = gradients(self.inputs, self.outputs[number]).jacobians[j]
        raise GradcheckError(self._mismatch(i, j, numerical, analytical) +
                             in_slow_mode(full, whole, self._close(whole, full, settings.atol)))


def _dot(a: Tensor, b: Tensor) -> Tensor:
    common = dtypes.promote_types(a.dtype, b.dtype)
    return fn.dot(a.to(common), b.to(common))


def _along(found: Any, v: Tensor) -> Tensor:
    """A derivative times a covector; for a complex input, v.d/dx + i v.d/dy."""
    if isinstance(found, tuple):
        return fn.complex(_dot(found[0].reshape(-1), v), _dot(found[1].reshape(-1), v))
    return _dot(found.reshape(-1), v)


def _against(g: Tensor, u: Any) -> Tensor:
    """A gradient times a direction; part by part for a complex one."""
    return fn.complex(_dot(g.real, u[0]), _dot(g.imag, u[1])) if isinstance(u, tuple) else _dot(g, u)
