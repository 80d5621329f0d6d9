"""Comparison of analytical and numerical derivatives: entire Jacobians, or one random product with each.

Slow mode compares J elementwise. Fast mode compares v^T J u (reverse) or J u (forward) for random unit vectors u and
v, which takes two evaluations per input instead of two per element.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from ... import dtypes
from ..._tensor import Tensor
from ..._tensor import functions as fn
from ..._tensor.creation.generators import Generator
from ..._tensor.dispatch.dual_tensors import dual_level
from .differences import Differences, as_tuple
from .messages import GradcheckError, in_slow_mode, mismatch
from .products import checked_jacobians, differentiated, directional, forward_jacobians, gradients


class Settings(NamedTuple):
    """The step of the differences, the tolerances, and the mode of comparison."""

    eps: float
    atol: float
    rtol: float
    nondet_tol: float
    check_dtypes: bool
    fast: bool


def differentiable_outputs(outputs: Any) -> tuple[Tensor, ...]:
    """The outputs that require grad."""
    return tuple(out for out in as_tuple(outputs) if out.requires_grad)


def unit_vector(x: Tensor, generator: Generator) -> Tensor:
    """A random direction in the space of x's elements, with real positive elements."""
    dtype = x.real.dtype if x.is_complex() else x.dtype
    vector = fn.rand(x.numel(), generator=generator, device="cpu").to(x.device, dtype)
    return vector / vector.norm()


class Trial:
    """The comparison for one function in one mode; all its outputs (forward mode: inputs) are real.

    Args:
        function: maps `*inputs` to a tensor or several.
        outputs: its value.
        forward: check forward mode instead of reverse mode.
        part: "real" or "imaginary" if the function is that part of the user's function.
        split: the indices of the outputs (forward mode: inputs) that are such parts.
    """

    def __init__(self, function: Callable[..., Any], inputs: Sequence[Any], outputs: Any, settings: Settings, *,
                 forward: bool = False, part: str | None = None, split: Sequence[int] = ()) -> None:
        self.function = function
        self.inputs = inputs
        self.outputs = as_tuple(outputs)
        self.settings = settings
        self.forward = forward
        self.part = part
        self.split = split
        self.indices = differentiated(inputs)
        self.live_outputs = [i for i, out in enumerate(self.outputs) if out.requires_grad]
        self.differences = Differences(function, inputs, settings.eps)

    def run(self) -> None:
        """Run the comparison.

        Raises:
            GradcheckError: a derivative is wrong.
        """
        if not self.live_outputs:
            self._expect_zero()
        elif self.settings.fast:
            self._compare_products()
        else:
            self._compare_jacobians()

    def _expect_zero(self) -> None:
        generator = Generator()
        for k in self.indices:
            numerical = (self.differences.along(k, self._direction(k, generator)) if self.settings.fast else
                        self.differences.jacobians(k))
            for derivative in numerical:
                if any(bool((part != 0).any()) for part in as_tuple(derivative)):
                    raise GradcheckError("Numerical gradient for function expected to be zero")

    def _close(self, analytical: Tensor, numerical: Tensor, atol: float) -> bool:
        common = dtypes.promote_types(analytical.dtype, numerical.dtype)
        numerical = numerical.to(analytical.device, common)  # of the output's device
        return fn.allclose(analytical.to(common), numerical, self.settings.rtol, atol)

    def _mismatch(self, i: int, j: int, numerical: Any, analytical: Any) -> str:
        index = self.indices[j] if self.forward else i
        return mismatch(i, j, numerical, analytical, forward=self.forward,
                        part=self.part if index in self.split else None)

    def _checked_jacobians(self, number: int, v: Tensor | None = None) -> list[Tensor]:
        settings = self.settings
        return checked_jacobians(self.inputs, self.outputs[number], settings.nondet_tol, settings.check_dtypes, v)

    # ----- slow mode -----

    def _compare_jacobians(self) -> None:
        numerical = [self.differences.jacobians(k) for k in self.indices]
        pushed = [forward_jacobians(self.function, self.inputs, k, self.settings.check_dtypes)
                  for k in self.indices] if self.forward else None
        for i, number in enumerate(self.live_outputs):
            rows = ([jacobians[number] for jacobians in pushed] if pushed is not None else
                    self._checked_jacobians(number))
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
        generator = Generator()  # separate, so that the user's random state does not change
        directions = [self._direction(k, generator) for k in self.indices]
        quotients = [self.differences.along(k, u) for k, u in zip(self.indices, directions, strict=True)]
        if self.forward:
            with dual_level():
                pushed = [directional(self.function, self.inputs, k, u.reshape(self.inputs[k].shape),
                                      self.settings.check_dtypes)
                          for k, u in zip(self.indices, directions, strict=True)]
            for i, number in enumerate(self.live_outputs):
                for j, u in enumerate(directions):
                    self._compare_product(i, j, quotients[j][number].reshape(-1), pushed[j][number], float(u.sum()))
            return
        covectors = [unit_vector(self.outputs[number], generator) for number in self.live_outputs]
        pulled = [self._checked_jacobians(number, v)
                  for number, v in zip(self.live_outputs, covectors, strict=True)]
        for i, (number, v) in enumerate(zip(self.live_outputs, covectors, strict=True)):
            for j, u in enumerate(directions):
                numerical = _along(quotients[j][number], v)
                analytical = _against(pulled[i][j].reshape(-1), u)
                weight = float(sum(part.sum() for part in as_tuple(u))) * float(v.sum())
                self._compare_product(i, j, numerical, analytical, weight)

    def _compare_product(self, i: int, j: int, numerical: Tensor, analytical: Tensor, weight: float) -> None:
        """Compare one product; `weight`, the sum of the Jacobian's coefficients in it, scales `atol`."""
        settings = self.settings
        if self._close(analytical, numerical, settings.atol * weight):
            return
        k, number = self.indices[j], self.live_outputs[i]
        full = self.differences.jacobians(k)[number]
        if self.forward:
            analytical_full = forward_jacobians(self.function, self.inputs, k, settings.check_dtypes)[number]
        else:
            analytical_full = gradients(self.inputs, self.outputs[number]).jacobians[j]
        raise GradcheckError(self._mismatch(i, j, numerical, analytical) +
                             in_slow_mode(full, analytical_full, self._close(analytical_full, full, settings.atol)))


def _dot(a: Tensor, b: Tensor) -> Tensor:
    common = dtypes.promote_types(a.dtype, b.dtype)
    return fn.dot(a.to(common), b.to(common))


def _along(derivative: Any, v: Tensor) -> Tensor:
    """A derivative times a covector; for a complex input, v.d/dx + i v.d/dy."""
    if isinstance(derivative, tuple):
        return fn.complex(_dot(derivative[0].reshape(-1), v), _dot(derivative[1].reshape(-1), v))
    return _dot(derivative.reshape(-1), v)


def _against(g: Tensor, u: Any) -> Tensor:
    """A gradient times a direction; for complex ones the real and imaginary parts separately."""
    return fn.complex(_dot(g.real, u[0]), _dot(g.imag, u[1])) if isinstance(u, tuple) else _dot(g, u)
