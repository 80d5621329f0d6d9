"""Gradient clipping by norm and by value."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable
from types import GeneratorType
from typing import Any

from ..._tensor import Tensor, no_grad
from ..._tensor import functions as fn

#: what the functions here take: programs annotate their own with it
_tensor_or_tensors = Tensor | Iterable[Tensor]


def _no_grad(func: Callable[..., Any]) -> Callable[..., Any]:
    """The function without recording, with its name and signature: programs decorate their own clipping with it."""
    return no_grad()(func)


def get_total_norm(tensors: Tensor | Iterable[Tensor], norm_type: float = 2.0,
                   error_if_nonfinite: bool = False, foreach: bool | None = None) -> Tensor:
    """The p-norm of all tensors, as if concatenated: (Σ |xᵢ|ᵖ)^(1/p).

    Args:
        tensors: a tensor, or an iterable of tensors.
        norm_type: p; may be inf.
        error_if_nonfinite: raise if the norm is infinite or nan.
        foreach: accepted for compatibility.

    Raises:
        RuntimeError: the norm is infinite or nan, and `error_if_nonfinite`.

    >>> import flambeau as torch
    >>> torch.nn.utils.get_total_norm([torch.tensor([3.0]), torch.tensor([4.0])])
    tensor(5.)
    """
    with no_grad():
        tensors = [tensors] if isinstance(tensors, Tensor) else list(tensors)
        norm_type = float(norm_type)
        if not tensors:
            return fn.tensor(0.0)
        norms = [fn.norm(t, norm_type) for t in tensors]
        total = fn.norm(fn.stack(norms), norm_type)
        if error_if_nonfinite and not total.isfinite():
            raise RuntimeError(f"The total norm of order {norm_type} for gradients from "
                               "`parameters` is non-finite, so it cannot be clipped. To disable "
                               "this error and scale the gradients by the non-finite norm anyway, "
                               "set `error_if_nonfinite=False`")
        return total


def clip_grads_with_norm_(parameters: Tensor | Iterable[Tensor], max_norm: float, total_norm: Tensor,
                          foreach: bool | None = None) -> None:
    """Multiply all gradients in place by min(1, max_norm / (total_norm + 1e-6)).

    Args:
        parameters: a tensor, or an iterable of tensors; those without `grad` are skipped.
        max_norm: the largest norm allowed.
        total_norm: the norm of all gradients, a 0-D tensor; see `get_total_norm`.
        foreach: accepted for compatibility.

    >>> import flambeau as torch
    >>> p = torch.nn.Parameter(torch.zeros(2))
    >>> p.grad = torch.tensor([3.0, 4.0])
    >>> torch.nn.utils.clip_grads_with_norm_([p], 1.0, torch.tensor(5.0))
    >>> p.grad
    tensor([0.6000, 0.8000])
    """
    with no_grad():
        parameters = [parameters] if isinstance(parameters, Tensor) else parameters
        grads = [p.grad for p in parameters if p.grad is not None]
        largest = float(max_norm)
        if not grads:
            return
        # multiplied even if 1: a comparison would synchronize with the device
        scale = fn.clamp(largest / (total_norm + 1e-6), max=1.0)
        for grad in grads:
            grad.mul_(scale)


def clip_grad_norm_(parameters: Tensor | Iterable[Tensor], max_norm: float, norm_type: float = 2.0,
                    error_if_nonfinite: bool = False, foreach: bool | None = None) -> Tensor:
    """Scale the gradients in place so that their total norm is at most `max_norm`.

    Args:
        parameters: a tensor, or an iterable of tensors; those without `grad` are skipped.
        max_norm: the largest norm allowed.
        norm_type: p of the norm; may be inf.
        error_if_nonfinite: raise if the norm is infinite or nan.
        foreach: accepted for compatibility.

    Returns:
        The total norm before scaling, a 0-D tensor.

    Raises:
        RuntimeError: the norm is infinite or nan, and `error_if_nonfinite`.

    >>> import flambeau as torch
    >>> p = torch.nn.Parameter(torch.zeros(2))
    >>> p.grad = torch.tensor([3.0, 4.0])
    >>> torch.nn.utils.clip_grad_norm_([p], 1.0), p.grad
    (tensor(5.), tensor([0.6000, 0.8000]))
    """
    with no_grad():
        if isinstance(parameters, Tensor):
            parameters = [parameters]
        else:
            is_generator = isinstance(parameters, GeneratorType)
            parameters = list(parameters)
            if is_generator and not parameters:
                warnings.warn("`parameters` is an empty generator, no gradient clipping will occur.",
                              stacklevel=2)
        grads = [p.grad for p in parameters if p.grad is not None]
        total = get_total_norm(grads, norm_type, error_if_nonfinite, foreach)
        clip_grads_with_norm_(parameters, max_norm, total, foreach)
        return total


def clip_grad_norm(parameters: Tensor | Iterable[Tensor], max_norm: float, norm_type: float = 2.0,
                   error_if_nonfinite: bool = False, foreach: bool | None = None) -> Tensor:
    """Deprecated: use `clip_grad_norm_`, which has the same arguments.

    >>> import flambeau as torch
    >>> import warnings
    >>> p = torch.nn.Parameter(torch.zeros(2))
    >>> p.grad = torch.tensor([3.0, 4.0])
    >>> with warnings.catch_warnings(action="ignore"):
    ...     torch.nn.utils.clip_grad_norm([p], 1.0)
    tensor(5.)
    """
    warnings.warn("`torch.nn.utils.clip_grad_norm` is now deprecated in favor of "
                  "`torch.nn.utils.clip_grad_norm_`.", FutureWarning, stacklevel=2)
    return clip_grad_norm_(parameters, max_norm, norm_type, error_if_nonfinite, foreach)


def clip_grad_value_(parameters: Tensor | Iterable[Tensor], clip_value: Any,
                     foreach: bool | None = None) -> None:
    """Clamp each element of the gradients to [-clip_value, clip_value], in place.

    Args:
        parameters: a tensor, or an iterable of tensors; those without `grad` are skipped.
        clip_value: the largest absolute value allowed.
        foreach: accepted for compatibility.

    >>> import flambeau as torch
    >>> p = torch.nn.Parameter(torch.zeros(2))
    >>> p.grad = torch.tensor([3.0, 4.0])
    >>> torch.nn.utils.clip_grad_value_([p], 3.5)
    >>> p.grad
    tensor([3.0000, 3.5000])
    """
    with no_grad():
        clip_value = float(clip_value)
        grads = [p.grad for p in ([parameters] if isinstance(parameters, Tensor) else parameters) if p.grad is not None]
        if not grads:
            raise RuntimeError("Expected !nested_tensorlist[0].empty() to be true, but got false.  (Could this error "
                               "message be improved?  If so, please report an enhancement request to PyTorch.)")
        for grad in grads:
            grad.clamp_(min=-clip_value, max=clip_value)
