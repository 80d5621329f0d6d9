"""Checks with special cotangents and tangents: undefined, zero, and batched ones."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from ..._tensor import Tensor
from ..._tensor import functions as fn
from ..._tensor.creation.generators import Generator
from ..._tensor.custom_functions.function import Function
from ..._tensor.dispatch.dual_tensors import dual_level, make_dual, unpack_dual
from ..._tensor.dispatch.vmap_gradients import vmap_over_cotangents
from ...engine.api import grad
from .comparison import differentiable_outputs, unit_vector
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


def _differentiated_tensors(inputs: Sequence[Any]) -> list[Tensor]:
    tensors = [inputs[k] for k in differentiated(inputs)]
    if not tensors:
        raise GradcheckError("no Tensors requiring grad found in input")
    return tensors


def check_zero_cotangents(outputs: Sequence[Tensor], inputs: Sequence[Any]) -> None:
    """Check that zero cotangents give zero gradients of the inputs' shape, dtype, layout and device.

    Raises:
        GradcheckError: a gradient is not zero, or its metadata differs from its input's.
    """
    tensors = _differentiated_tensors(inputs)
    zeros = [fn.zeros_like(out) for out in outputs]
    for g, x in zip(grad(outputs, tensors, zeros, retain_graph=True, allow_unused=True), tensors, strict=True):
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
    """The identity, with an undefined gradient."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        return x.view_as(x)

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> None:
        return None


def check_undefined_cotangents(function: Callable[..., Any], outputs: Sequence[Tensor], inputs: Sequence[Any]) -> None:
    """Check that undefined cotangents give undefined or zero gradients: of all outputs, then of each output alone.

    Raises:
        GradcheckError: a gradient is not zero, or backward raised an error.
    """
    tensors = _differentiated_tensors(inputs)
    everything = set(range(len(outputs)))
    for undefined in [everything, *({i} for i in everything if len(everything) > 1)]:
        fresh = differentiable_outputs(function(*inputs))
        ends = [UndefinedGrad.apply(out) if i in undefined else out for i, out in enumerate(fresh)]
        try:
            grads = grad(ends, tensors, [fn.zeros_like(out) for out in ends], allow_unused=True)
        except RuntimeError as error:
            warnings.warn(UNDEFINED_IS_NEW, UserWarning, stacklevel=3)
            raise GradcheckError(UNDEFINED_FAILS) from error
        if any(g is not None and bool((g != 0).any()) for g in grads):
            warnings.warn(UNDEFINED_IS_NEW, UserWarning, stacklevel=3)
            raise GradcheckError(UNDEFINED_IS_NOT_ZERO)


def check_undefined_tangents(function: Callable[..., Any], inputs: Sequence[Any]) -> None:
    """Check that an undefined tangent of an input is equivalent to a zero tangent.

    Raises:
        GradcheckError: an output's tangents differ.
    """
    indices = differentiated(inputs)
    generator = Generator()
    with dual_level():
        duals = [x.detach() if k in indices else x for k, x in enumerate(inputs)]
        for k in indices:
            u = unit_vector(inputs[k], generator).to(inputs[k].dtype)
            duals[k] = make_dual(duals[k], u.reshape(inputs[k].shape).clone())
        for k in indices:
            with_zero, without = list(duals), list(duals)
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

def check_batched_cotangents(inputs: Sequence[Any], outputs: Sequence[Tensor]) -> None:
    """Check that a batch of two cotangents gives the gradients of each.

    Raises:
        GradcheckError: the results differ, or the batch cannot be computed.
    """
    tensors = _differentiated_tensors(inputs)
    for i, output in enumerate(outputs):
        cotangents = [fn.randn_like(output.detach()) for _ in range(2)]
        single = [pulled_back(output, tensors, g) for g in cotangents]
        batched = _run_batched(partial(grad, output, tensors, fn.stack(cotangents), retain_graph=True,
                                       allow_unused=True, is_grads_batched=True), BATCHED_REVERSE)
        for j, got in enumerate(batched):
            rows = [fn.zeros_like(tensors[j].detach()) if row[j] is None else row[j] for row in single]
            _compare(i, j, got, rows, BATCHED_REVERSE)


def check_batched_tangents(function: Callable[..., Any], inputs: Sequence[Any]) -> None:
    """Check that a batch of two tangents gives the output tangents of each.

    Raises:
        GradcheckError: the results differ, or the batch cannot be computed.
    """
    for k in differentiated(inputs):
        tangents = [fn.randn_like(inputs[k].detach()) for _ in range(2)]

        def pushed(tangent: Tensor, k: int = k) -> tuple[Any, ...]:
            with dual_level():
                return tuple(fn.zeros_like(value) if t is None else t
                             for value, t in pushed_forward(function, inputs, k, tangent))

        single = [pushed(t) for t in tangents]
        batched = _run_batched(partial(vmap_over_cotangents, pushed, [fn.stack(tangents)]), BATCHED_FORWARD)
        for i, got in enumerate(batched):
            _compare(i, k, got, [row[i] for row in single], BATCHED_FORWARD)


def _run_batched(run: Callable[[], Sequence[Any]], advice: str) -> Sequence[Any]:
    """The result of `run()`, a computation on a batch."""
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "There is a performance drop")  # speed is irrelevant here
            return run()
    except RuntimeError as error:
        raise GradcheckError(f"While computing batched gradients, got: {error}\n\n{advice}") from error


def _compare(i: int, j: int, got: Any, rows: Sequence[Tensor], advice: str) -> None:
    expected = fn.stack(list(rows))
    got = fn.zeros_like(expected) if got is None else got
    if not fn.allclose(got, expected):
        raise GradcheckError(in_a_batch(i, j, got, expected, advice))
