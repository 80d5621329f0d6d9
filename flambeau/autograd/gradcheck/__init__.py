"""Derivatives checked against differences: `gradcheck` and `gradgradcheck`.

A function's Jacobian as autograd has it, against the one measured by moving each input a little.
What is not holomorphic has no complex derivative to compare: reverse mode is checked on the real
and the imaginary part of complex outputs, forward mode on those of complex inputs.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

from ..._tensor import Tensor
from ..._tensor import functions as fn
from ...engine.api import grad
from .comparison import Settings, Trial, live_outputs
from .differences import as_tuple
from .exposed import get_analytical_jacobian, get_numerical_jacobian, get_numerical_jacobian_wrt_specific_input
from .messages import NO_INPUT, NOT_DOUBLE, STRIDE_0, GradcheckError
from .probes import batched_cotangents, batched_tangents, undefined_cotangents, undefined_tangents, zero_cotangents
from .products import differentiated


def gradcheck(func: Callable[..., Any], inputs: Any, *, eps: float = 1e-6, atol: float = 1e-5, rtol: float = 1e-3,
              raise_exception: bool = True, nondet_tol: float = 0.0, check_undefined_grad: bool = True,
              check_grad_dtypes: bool = False, check_batched_grad: bool = False,
              check_batched_forward_grad: bool = False, check_forward_ad: bool = False,
              check_backward_ad: bool = True, fast_mode: bool = False, masked: bool | None = None) -> bool:
    """Compare a function's derivatives with differences: |a - n| <= atol + rtol |n|, element by element.

        n = (f(x + eps) - f(x - eps)) / (2 eps)

    See https://docs.pytorch.org/docs/stable/generated/torch.autograd.gradcheck.gradcheck.html

    Args:
        func: takes the inputs, gives a tensor or a tuple of tensors.
        inputs: a tensor or a tuple; those that require grad are checked, and should be float64 or complex128.
        eps: how far each element is moved to either side.
        atol: absolute tolerance.
        rtol: relative tolerance.
        raise_exception: whether a wrong derivative is an error; else False is returned.
        nondet_tol: how far two backward runs may be apart.
        check_undefined_grad: expect undefined gradients and tangents to be taken for zeros.
        check_grad_dtypes: expect gradients in their inputs' dtypes.
        check_batched_grad: expect batches of cotangents to give what each gives.
        check_batched_forward_grad: the same of tangents, in forward mode.
        check_forward_ad: check forward mode.
        check_backward_ad: check reverse mode.
        fast_mode: compare a random product with each Jacobian only.
        masked: how zeros of sparse inputs are looked at; for dense ones nothing.

    Returns:
        True; False where a derivative is wrong and `raise_exception` is not set.

    Raises:
        GradcheckError: a derivative is wrong.
        ValueError: no input requires grad.
        RuntimeError: an input's elements overlap.

    >>> import flambeau as torch
    >>> x = torch.tensor([0.5, 2.0], dtype=torch.double, requires_grad=True)
    >>> torch.autograd.gradcheck(torch.sin, x)
    True
    >>> torch.autograd.gradcheck(lambda x: x.detach() * x, x, raise_exception=False)
    False
    """
    _require(check_forward_ad or check_backward_ad,
             "Expected at least one of check_forward_ad or check_backward_ad to be True")
    _require(check_backward_ad or not check_batched_grad,
             "Setting check_batched_grad=True requires check_backward_ad to be True")
    _require(check_forward_ad or not check_batched_forward_grad,
             "Setting check_batched_forward_grad=True requires check_forward_ad to be True")
    settings = Settings(eps, atol, rtol, nondet_tol, check_grad_dtypes, fast_mode)
    try:
        given = as_tuple(inputs)
        _validate(given)
        raw = func(*given)
        outputs = live_outputs(raw)
        if check_backward_ad:
            for trial in _reverse_trials(func, given, raw, settings):
                trial.run()
        if check_forward_ad:
            for trial in _forward_trials(func, given, raw, settings):
                trial.run()
                if check_undefined_grad and trial.live:
                    undefined_tangents(trial.function, trial.inputs)
        if check_batched_forward_grad:
            batched_tangents(func, given)
        if check_backward_ad and outputs:
            if check_batched_grad:
                batched_cotangents(given, outputs)
            zero_cotangents(outputs, given)
            if check_undefined_grad:
                undefined_cotangents(func, outputs, given)
    except GradcheckError:
        if raise_exception:
            raise
        return False
    return True


def _require(condition: bool, text: str) -> None:
    if not condition:
        raise AssertionError(text)


def _validate(inputs: Sequence[Any]) -> None:
    wanted = differentiated(inputs)
    if not wanted:
        raise ValueError(NO_INPUT)
    for k in wanted:
        x = inputs[k]
        if x.dtype.itemsize != (16 if x.is_complex() else 8):
            warnings.warn(NOT_DOUBLE.format(k), UserWarning, stacklevel=3)
        if any(step == 0 and size > 1 for step, size in zip(x.stride(), x.size(), strict=True)):
            raise RuntimeError(STRIDE_0.format(k))


def _reverse_trials(func: Callable[..., Any], inputs: Sequence[Any], outputs: Any, settings: Settings) -> Any:
    """The function, or, where outputs are complex, their imaginary and their real parts."""
    if not any(out.is_complex() for out in as_tuple(outputs)):
        yield Trial(func, inputs, outputs, settings)
        return
    parted = [i for i, out in enumerate(live_outputs(outputs)) if out.is_complex()]
    for part, of in (("imaginary", "imag"), ("real", "real")):
        def parts(*args: Any, of: str = of) -> tuple[Any, ...]:
            return tuple(getattr(out, of) if out.is_complex() else out for out in as_tuple(func(*args)))

        yield Trial(parts, inputs, parts(*inputs), settings, part=part, parted=parted)


def _forward_trials(func: Callable[..., Any], inputs: Sequence[Any], outputs: Any, settings: Settings) -> Any:
    """The function, or, where inputs are complex, the function of their imaginary and of their real parts."""
    parted = [k for k in differentiated(inputs) if inputs[k].is_complex()]
    if not parted:
        yield Trial(func, inputs, outputs, settings, forward=True)
        return
    for part in ("imaginary", "real"):
        def of_parts(*args: Any, part: str = part) -> Any:
            whole = list(args)
            for k in parted:
                fixed = inputs[k]
                whole[k] = fixed.real + args[k] * 1j if part == "imaginary" else args[k] + fixed.imag * 1j
            return func(*whole)

        chosen = list(inputs)
        for k in parted:
            fixed = inputs[k].detach()
            chosen[k] = (fixed.imag if part == "imaginary" else fixed.real).clone().requires_grad_()
        yield Trial(of_parts, chosen, of_parts(*chosen), settings, forward=True, part=part, parted=parted)


def gradgradcheck(func: Callable[..., Any], inputs: Any, grad_outputs: Any = None, *, eps: float = 1e-6,
                  atol: float = 1e-5, rtol: float = 1e-3, gen_non_contig_grad_outputs: bool = False,
                  raise_exception: bool = True, nondet_tol: float = 0.0, check_undefined_grad: bool = True,
                  check_grad_dtypes: bool = False, check_batched_grad: bool = False, check_fwd_over_rev: bool = False,
                  check_rev_over_rev: bool = True, fast_mode: bool = False, masked: bool = False) -> bool:
    """Compare a function's second derivatives with differences of its first ones.

    `gradcheck` of (inputs, cotangents) -> gradients of the inputs.
    See https://docs.pytorch.org/docs/stable/generated/torch.autograd.gradcheck.gradgradcheck.html

    Args:
        func: takes the inputs, gives a tensor or a tuple of tensors.
        inputs: a tensor or a tuple; those that require grad are checked.
        grad_outputs: a cotangent for each output that requires grad. Default: random ones, in [-1, 1).
        gen_non_contig_grad_outputs: whether the random ones are laid out with gaps.
        check_fwd_over_rev: check forward mode over the gradients.
        check_rev_over_rev: check reverse mode over them.

    The others are `gradcheck`'s.

    Returns:
        True; False where a derivative is wrong and `raise_exception` is not set.

    Raises:
        GradcheckError: a second derivative is wrong.

    >>> import flambeau as torch
    >>> x = torch.tensor([0.5, 2.0], dtype=torch.double, requires_grad=True)
    >>> torch.autograd.gradgradcheck(torch.sin, x)
    True
    """
    _require(check_fwd_over_rev or check_rev_over_rev,
             "Expected at least one of check_fwd_over_rev or check_rev_over_rev to be True")
    _require(check_rev_over_rev or not check_undefined_grad,
             "Setting check_undefined_grad=True requires check_rev_over_rev to be True")
    _require(check_rev_over_rev or not check_batched_grad,
             "Setting check_batched_grad=True requires check_rev_over_rev to be True")
    given = as_tuple(inputs)
    if grad_outputs is None:
        cotangents = tuple(_cotangent_for(out, gen_non_contig_grad_outputs) for out in live_outputs(func(*given)))
    else:
        cotangents = as_tuple(grad_outputs)
    n = len(given)
    wanted = differentiated(given)

    def gradients(*args: Any) -> tuple[Any, ...]:
        held = [x.requires_grad_() if k in wanted and not x.requires_grad else x for k, x in enumerate(args[:n])]
        outputs = live_outputs(func(*held))
        found = grad(outputs, [held[k] for k in wanted], args[n:], create_graph=True, allow_unused=True)
        return tuple(g for g in found if g is not None)

    return gradcheck(gradients, given + cotangents, eps=eps, atol=atol, rtol=rtol, raise_exception=raise_exception,
                     nondet_tol=nondet_tol, check_undefined_grad=check_undefined_grad,
                     check_grad_dtypes=check_grad_dtypes, check_batched_grad=check_batched_grad, fast_mode=fast_mode,
                     check_forward_ad=check_fwd_over_rev, check_backward_ad=check_rev_over_rev, masked=masked)


def _cotangent_for(out: Tensor, gaps: bool) -> Tensor:
    """A random cotangent, each number uniform in [-1, 1); every second element of its memory, if `gaps`."""
    spread = 2 if gaps and out.numel() > 1 else 1
    shape = (*out.shape[:-1], out.shape[-1] * spread) if out.dim() else ()
    if out.is_complex():
        made = fn.view_as_complex(fn.empty(*shape, 2, dtype=out.real.dtype).uniform_(-1, 1))
    else:
        made = fn.empty(shape, dtype=out.dtype).uniform_(-1, 1)
    return (made[..., 1::2] if spread == 2 else made).detach().requires_grad_()


__all__ = ["GradcheckError", "get_analytical_jacobian", "get_numerical_jacobian",
           "get_numerical_jacobian_wrt_specific_input", "gradcheck", "gradgradcheck"]
