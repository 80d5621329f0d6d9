"""Deprecated public names of gradcheck's numerical and analytical Jacobians."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

from ..._tensor import Tensor
from .differences import Differences, as_tuple
from .messages import PRIVATE
from .products import differentiated, gradients


def _check_real(name: str, grad_out: float, outputs: Sequence[Any]) -> None:
    if grad_out != 1.0:
        raise ValueError(f"Expected grad_out to be 1.0. {name} no longer supports values of grad_out != 1.0.")
    if any(out.is_complex() for out in outputs):
        raise ValueError(f"Expected output to be non-complex. {name} no longer supports functions that return complex "
                         "outputs.")


def get_numerical_jacobian(fn: Callable[..., Any], inputs: Sequence[Any], target: Any = None, eps: float = 1e-3,
                           grad_out: float = 1.0) -> list[Tensor]:
    """The numerical Jacobian of a function's first output with respect to each input.

    Args:
        fn: takes the inputs as one tuple.
        inputs: tensors.
        target: the inputs, among `inputs`, to differentiate by. Default: all that require grad.
        eps: the step of the differences.
        grad_out: must be 1.
    """
    warnings.warn(PRIVATE.format("get_numerical_jacobian"), FutureWarning, stacklevel=2)
    _check_real("get_numerical_jacobian", grad_out, ())
    _check_real("get_numerical_jacobian", 1.0, as_tuple(fn(inputs)))
    indices = differentiated(inputs)
    if target is not None:
        chosen = {id(x) for x in as_tuple(target)}
        indices = [k for k in indices if id(inputs[k]) in chosen]
    differences = Differences(lambda *args: fn(args), inputs, eps)
    return [differences.jacobians(k)[0] for k in indices]


def get_numerical_jacobian_wrt_specific_input(fn: Callable[..., Any], input_idx: int, inputs: Sequence[Any],
                                              outputs: Any, eps: float, input: Any = None,
                                              is_forward_ad: bool = False) -> tuple[Tensor, ...]:
    """The numerical Jacobian of each output with respect to input `input_idx`."""
    return tuple(Differences(fn, inputs, eps).jacobians(input_idx))


def get_analytical_jacobian(inputs: Sequence[Any], output: Tensor, nondet_tol: float = 0.0,
                            grad_out: float = 1.0) -> tuple[tuple[Tensor, ...], bool, bool, bool]:
    """The Jacobian of an output with respect to each input by reverse mode, and three results of its checks.

    Returns:
        The Jacobians; whether two runs agree; whether sizes are those of the inputs; whether dtypes are.
    """
    warnings.warn(PRIVATE.format("get_analytical_jacobian"), FutureWarning, stacklevel=2)
    _check_real("get_analytical_jacobian", grad_out, (output,))
    first, second = gradients(inputs, output), gradients(inputs, output)
    return tuple(first.jacobians), first.agree(second, nondet_tol), first.sizes_fit, first.types_fit


__all__ = ["get_analytical_jacobian", "get_numerical_jacobian", "get_numerical_jacobian_wrt_specific_input"]
