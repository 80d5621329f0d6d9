"""`torch._fused_*_`: the update of all parameters of an optimizer in one call."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .._tensor import Tensor, no_grad
from . import adagrad, adam, sgd
from .update_rules import apply_update, scalar_value


def _gradients(grads: Sequence[Tensor], grad_scale: Tensor | None, found_inf: Tensor | None) -> bool:
    """Divide the gradients by their scale, in place; False if the step is skipped because one is not finite."""
    if found_inf is not None and found_inf.item() == 1:
        return False
    if grad_scale is not None:
        for grad in grads:
            grad.div_(grad_scale)
    return True


def _adam(self: Any, grads: Any, exp_avgs: Any, exp_avg_sqs: Any, max_exp_avg_sqs: Any, state_steps: Any, lr: Any,
          beta1: float, beta2: float, weight_decay: float, eps: float, amsgrad: bool, maximize: bool, decoupled: bool,
          grad_scale: Any, found_inf: Any) -> None:
    with no_grad():
        if not _gradients(grads, grad_scale, found_inf):
            return
        for i, (param, grad) in enumerate(zip(self, grads, strict=True)):
            largest = max_exp_avg_sqs[i] if amsgrad else None
            apply_update(adam.rule, param, grad, (exp_avgs[i], exp_avg_sqs[i], largest), scalar_value(lr), beta1, beta2,
                         eps, weight_decay, decoupled, maximize, scalar_value(state_steps[i]))


def _fused_adam_(self: Any, grads: Any, exp_avgs: Any, exp_avg_sqs: Any, max_exp_avg_sqs: Any, state_steps: Any, *,
                 lr: Any, beta1: float, beta2: float, weight_decay: float, eps: float, amsgrad: bool, maximize: bool,
                 grad_scale: Tensor | None = None, found_inf: Tensor | None = None) -> None:
    """Update lists of parameters and state by `Adam`; the steps are already incremented.

    >>> import flambeau as torch
    >>> p, m, v = torch.ones(1), torch.zeros(1), torch.zeros(1)
    >>> torch._fused_adam_([p], [torch.ones(1)], [m], [v], [], [torch.tensor(1.)], lr=0.5, beta1=0.9, beta2=0.99,
    ...                    weight_decay=0., eps=1e-8, amsgrad=False, maximize=False)
    >>> p
    tensor([0.5000])
    """
    _adam(self, grads, exp_avgs, exp_avg_sqs, max_exp_avg_sqs, state_steps, lr, beta1, beta2, weight_decay, eps,
          amsgrad, maximize, False, grad_scale, found_inf)


def _fused_adamw_(self: Any, grads: Any, exp_avgs: Any, exp_avg_sqs: Any, max_exp_avg_sqs: Any, state_steps: Any, *,
                  lr: Any, beta1: float, beta2: float, weight_decay: float, eps: float, amsgrad: bool, maximize: bool,
                  grad_scale: Tensor | None = None, found_inf: Tensor | None = None) -> None:
    """Update lists of parameters and state by `AdamW`; the steps are already incremented.

    >>> import flambeau as torch
    >>> p, m, v = torch.ones(1), torch.zeros(1), torch.zeros(1)
    >>> torch._fused_adamw_([p], [torch.ones(1)], [m], [v], [], [torch.tensor(1.)], lr=0.5, beta1=0.9, beta2=0.99,
    ...                     weight_decay=1., eps=1e-8, amsgrad=False, maximize=False)
    >>> p.abs() < 1e-6
    tensor([True])
    """
    _adam(self, grads, exp_avgs, exp_avg_sqs, max_exp_avg_sqs, state_steps, lr, beta1, beta2, weight_decay, eps,
          amsgrad, maximize, True, grad_scale, found_inf)


def _fused_sgd_(self: Any, grads: Any, momentum_buffer_list: Any, *, weight_decay: float, momentum: float, lr: Any,
                dampening: float, nesterov: bool, maximize: bool, is_first_step: bool,
                grad_scale: Tensor | None = None, found_inf: Tensor | None = None) -> None:
    """Update lists of parameters and momentum buffers by `SGD`.

    >>> import flambeau as torch
    >>> p = torch.ones(1)
    >>> torch._fused_sgd_([p], [torch.ones(1)], [], weight_decay=0., momentum=0., lr=0.5, dampening=0., nesterov=False,
    ...                   maximize=False, is_first_step=True)
    >>> p
    tensor([0.5000])
    """
    if momentum_buffer_list and any(buffer is None for buffer in momentum_buffer_list):
        momentum_buffer_list = []
    with no_grad():
        if not _gradients(grads, grad_scale, found_inf):
            return
        for i, (param, grad) in enumerate(zip(self, grads, strict=True)):
            buffer = momentum_buffer_list[i] if momentum != 0 else None
            apply_update(sgd.rule, param, grad, (buffer,), scalar_value(lr), momentum, dampening, weight_decay,
                         nesterov, maximize, is_first_step)


def _fused_adagrad_(self: Any, grads: Any, state_sums: Any, state_steps: Any, *, lr: Any, lr_decay: float,
                    weight_decay: float, eps: float, maximize: bool, grad_scale: Tensor | None = None,
                    found_inf: Tensor | None = None) -> None:
    """Update lists of parameters and sums by `Adagrad`; the steps are already incremented.

    >>> import flambeau as torch
    >>> p = torch.ones(1)
    >>> torch._fused_adagrad_([p], [torch.ones(1)], [torch.zeros(1)], [torch.tensor(1.)], lr=0.5, lr_decay=0.,
    ...                       weight_decay=0., eps=1e-10, maximize=False)
    >>> p
    tensor([0.5000])
    """
    with no_grad():
        if not _gradients(grads, grad_scale, found_inf):
            return
        for param, grad, total, step in zip(self, grads, state_sums, state_steps, strict=True):
            rate = scalar_value(lr) / (1 + (scalar_value(step) - 1) * lr_decay)
            apply_update(adagrad.rule, param, grad, (total,), rate, eps, weight_decay, maximize)
