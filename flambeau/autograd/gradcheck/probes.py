"""Cotangents and tangents out of the ordinary: none, zero, and many at a time."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from ..._tensor import Tensor
from ..._tensor import functions as fn
from ..._tensor.creation.random import Generator
from ..._tensor.dispatch.custom_function import Function
from ..._tensor.dispatch.dual_tensors import dual_level, make_dual, unpack_dual
from ..._tensor.dispatch.vmap_gradients import mapped
from ...engine.api import grad
from .comparison import live_outputs, unit_vector
from .differences import as_tuple
from .messages import (
    BATCHED_FORWARD,
    BATCHED_REVERSE,
    UNDEFINED_FAILS,
    UNDEFINED_IS_NEW,
    UNDEFINED_IS_NOT_ZERO,
    GradcheckError,
    in_a_batch,
)
from .products import differentiated, pulled_back, pushed_forward


def _tensors(inputs: Sequence[Any]) -> list[Tensor]:
    wanted = [inputs[k] for k in differentiated(inputs)]
    if not wanted:
        raise GradcheckError("no Tensors requiring grad found in input")
    return wanted


def zero_cotangents(outputs: Sequence[Tensor], inputs: Sequence[Any]) -> None:
    """Expect zeros, of the inputs' kind, for cotangents that are zero.

    Raises:
        GradcheckError: a gradient is not zero, or not like its input.
    """
    wanted = _tensors(inputs)
    zeros = [fn.zeros_like(out) for out in outputs]
    for g, x in zip(grad(outputs, wanted, zeros, retain_graph=True, allow_unused=True), wanted, strict=True):
        if g is None:
            continue
        if g.layout != x.layout:
            raise GradcheckError(f"grad is incorrect layout ({g.layout} is not {x.layout})")
        if not bool((g == 0).all()):
            raise GradcheckError("backward not multiplied by grad_output")
        if g.dtype != x.dtype:
            raise GradcheckError("grad is incorrect type")
        if g.device != x.device:
            raise GradcheckError("grad is incorrect device")
        if g.shape != x.shape:
            raise GradcheckError("grad is incorrect size")


class UndefinedGrad(Function):
    """The identity, through which no cotangent comes back."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        return x.view_as(x)

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> None:
        return None


def undefined_cotangents(function: Callable[..., Any], outputs: Sequence[Tensor], inputs: Sequence[Any]) -> None:
    """Expect nothing or zeros where no cotangent comes to the outputs: to all of them, then to each alone.

    Raises:
        GradcheckError: a gradient is not zero, or there was an error on the way.
    """
    wanted = _tensors(inputs)
    everything = set(range(len(outputs)))
    for undefined in [everything, *({i} for i in everything if len(everything) > 1)]:
        made = live_outputs(function(*inputs))
        ends = [UndefinedGrad.apply(out) if i in undefined else out for i, out in enumerate(made)]
        try:
            found = grad(ends, wanted, [fn.zeros_like(out) for out in ends], allow_unused=True)
        except RuntimeError as error:
            warnings.warn(UNDEFINED_IS_NEW, UserWarning, stacklevel=3)
            raise GradcheckError(UNDEFINED_FAILS) from error
        if any(g is not None and bool((g != 0).any()) for g in found):
            warnings.warn(UNDEFINED_IS_NEW, UserWarning, stacklevel=3)
            raise GradcheckError(UNDEFINED_IS_NOT_ZERO)


def undefined_tangents(function: Callable[..., Any], inputs: Sequence[Any]) -> None:
    """Expect the same of an input without a tangent as of one whose tangent is zero.

    Raises:
        GradcheckError: an output's tangents differ.
    """
    wanted = differentiated(inputs)
    generator = Generator()
    with dual_level():
        moved = [x.detach() if k in wanted else x for k, x in enumerate(inputs)]
        for k in wanted:
            u = unit_vector(inputs[k], generator).to(inputs[k].dtype)
            moved[k] = make_dual(moved[k], u.reshape(inputs[k].shape).clone())
        for k in wanted:
            with_zero, without = list(moved), list(moved)
            with_zero[k] = make_dual(inputs[k].detach(), fn.zeros_like(inputs[k].detach()))
            without[k] = inputs[k].detach()
            pairs = zip(as_tuple(function(*with_zero)), as_tuple(function(*without)), strict=True)
            for i, (first, second) in enumerate(pairs):
                got, expected = unpack_dual(first).tangent, unpack_dual(second).tangent
                if got is not None and expected is not None and not fn.allclose(got, expected):
                    raise GradcheckError("Mismatch in tangent values for output with index: ", i, " when input: ",
                                         inputs[k], " has an undefined tangent value. ", " Got: ", got,
                                         " but expected: ", expected)


# ----- batches -----

def batched_cotangents(inputs: Sequence[Any], outputs: Sequence[Tensor]) -> None:
    """Expect of two cotangents at a time what each gives alone.

    Raises:
        GradcheckError: the batch gives something else, or cannot be computed.
    """
    wanted = _tensors(inputs)
    for i, output in enumerate(outputs):
        cotangents = [fn.randn_like(output.detach()) for _ in range(2)]
        alone = [pulled_back(output, wanted, g) for g in cotangents]
        together = _batched(partial(grad, output, wanted, fn.stack(cotangents), retain_graph=True, allow_unused=True,
                                    is_grads_batched=True), BATCHED_REVERSE)
        for j, got in enumerate(together):
            rows = [fn.zeros_like(wanted[j].detach()) if row[j] is None else row[j] for row in alone]
            _expect(i, j, got, rows, BATCHED_REVERSE)


def batched_tangents(function: Callable[..., Any], inputs: Sequence[Any]) -> None:
    """Expect of two tangents at a time what each gives alone.

    Raises:
        GradcheckError: the batch gives something else, or cannot be computed.
    """
    for k in differentiated(inputs):
        tangents = [fn.randn_like(inputs[k].detach()) for _ in range(2)]

        def pushed(tangent: Tensor, k: int = k) -> tuple[Any, ...]:
            with dual_level():
                return tuple(fn.zeros_like(value) if t is None else t
                             for value, t in pushed_forward(function, inputs, k, tangent))

        alone = [pushed(t) for t in tangents]
        together = _batched(partial(mapped, pushed, [fn.stack(tangents)]), BATCHED_FORWARD)
        for i, got in enumerate(together):
            _expect(i, k, got, [row[i] for row in alone], BATCHED_FORWARD)


def _batched(run: Callable[[], Sequence[Any]], advice: str) -> Sequence[Any]:
    """What `run` gives, which works on a batch."""
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "There is a performance drop")  # slow, but this is not about speed
            return run()
    except RuntimeError as error:
        raise GradcheckError(f"While computing batched gradients, got: {error}\n\n{advice}") from error


def _expect(i: int, j: int, got: Any, rows: Sequence[Tensor], advice: str) -> None:
    expected = fn.stack(list(rows))
    got = fn.zeros_like(expected) if got is None else got
    if not fn.allclose(got, expected):
        raise GradcheckError(in_a_batch(i, j, got, expected, advice))
