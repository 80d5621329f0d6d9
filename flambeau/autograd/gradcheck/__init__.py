"""`gradcheck` and `gradgradcheck`: analytical derivatives compared with central differences.

Functions that are not holomorphic have no complex derivative: reverse mode is checked separately on the real and the
imaginary part of complex outputs, forward mode on those of complex inputs.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

from ..._tensor import Tensor
from ..._tensor import functions as fn
from ...backends.sparse_array import has_sparse
from ...engine.api import grad
from .comparison import Settings, Trial, differentiable_outputs
from .differences import as_tuple
from .exposed import get_analytical_jacobian, get_numerical_jacobian, get_numerical_jacobian_wrt_specific_input
from .messages import NO_INPUT, NOT_DOUBLE, STRIDE_0, GradcheckError
from .products import differentiated
from .special_cotangents import (
    check_batched_cotangents,
    check_batched_tangents,
    check_undefined_cotangents,
    check_undefined_tangents,
    check_zero_cotangents,
)


def gradcheck(func: Callable[..., Any], inputs: Any, *, eps: float = 1e-6, atol: float = 1e-5, rtol: float = 1e-3,
              raise_exception: bool = True, nondet_tol: float = 0.0, check_undefined_grad: bool = True,
              check_grad_dtypes: bool = False, check_batched_grad: bool = False,
              check_batched_forward_grad: bool = False, check_forward_ad: bool = False,
              check_backward_ad: bool = True, fast_mode: bool = False, masked: bool | None = None) -> bool:
    """Compare a function's derivatives with central differences: |a - n| <= atol + rtol |n|, elementwise.

        n = (f(x + eps) - f(x - eps)) / (2 eps)

    See https://docs.pytorch.org/docs/stable/generated/torch.autograd.gradcheck.gradcheck.html

    Args:
        func: maps the inputs to a tensor or a tuple of tensors.
        inputs: a tensor or a tuple; those that require grad are checked, and should be float64 or complex128.
        eps: the step of the central difference.
        atol: absolute tolerance.
        rtol: relative tolerance.
        raise_exception: raise an error for a wrong derivative instead of returning False.
        nondet_tol: absolute tolerance between two runs of backward.
        check_undefined_grad: check that undefined cotangents and tangents are treated as zeros.
        check_grad_dtypes: check that gradients have their inputs' dtypes.
        check_batched_grad: check that a batch of cotangents gives the gradients of each.
        check_batched_forward_grad: the same for a batch of tangents in forward mode.
        check_forward_ad: check forward mode.
        check_backward_ad: check reverse mode.
        fast_mode: compare one random product with each Jacobian instead of the Jacobian.
        masked: semantics of unspecified elements of sparse inputs; ignored for dense ones.

    Returns:
        True; False if a derivative is wrong and `raise_exception` is False.

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
    if has_sparse(inputs if isinstance(inputs, (tuple, list)) else (inputs,)):
        from .sparse_inputs import on_values

        func, inputs = on_values(func, inputs, bool(masked))
    try:
        args = as_tuple(inputs)
        _validate(args)
        raw = func(*args)
        if has_sparse(raw if isinstance(raw, (tuple, list)) else (raw,)):
            raise ValueError("Sparse output is not supported at gradcheck yet. Please call to_dense(masked_grad=...) "
                             "on the output of fn for gradcheck.")
        outputs = differentiable_outputs(raw)
        if check_backward_ad:
            for trial in _reverse_trials(func, args, raw, settings):
                trial.run()
        if check_forward_ad:
            for trial in _forward_trials(func, args, raw, settings):
                trial.run()
                if check_undefined_grad and trial.live_outputs:
                    check_undefined_tangents(trial.function, trial.inputs)
        if check_batched_forward_grad:
            check_batched_tangents(func, args)
        if check_backward_ad and outputs:
            if check_batched_grad:
                check_batched_cotangents(args, outputs)
            check_zero_cotangents(outputs, args)
            if check_undefined_grad:
                check_undefined_cotangents(func, outputs, args)
    except GradcheckError:
        if raise_exception:
            raise
        return False
    return True


def _require(condition: bool, text: str) -> None:
    if not condition:
        raise AssertionError(text)


def _validate(inputs: Sequence[Any]) -> None:
    indices = differentiated(inputs)
    if not indices:
        raise ValueError(NO_INPUT)
    for k in indices:
        x = inputs[k]
        if x.dtype.itemsize != (16 if x.is_complex() else 8):
            warnings.warn(NOT_DOUBLE.format(k), UserWarning, stacklevel=3)
        if any(step == 0 and size > 1 for step, size in zip(x.stride(), x.size(), strict=True)):
            raise RuntimeError(STRIDE_0.format(k))


def _reverse_trials(func: Callable[..., Any], inputs: Sequence[Any], outputs: Any, settings: Settings) -> Any:
    """The trials of reverse mode: the function, or the imaginary and the real part of complex outputs."""
    if not any(out.is_complex() for out in as_tuple(outputs)):
        yield Trial(func, inputs, outputs, settings)
        return
    split = [i for i, out in enumerate(differentiable_outputs(outputs)) if out.is_complex()]
    for part, of in (("imaginary", "imag"), ("real", "real")):
        def parts(*args: Any, of: str = of) -> tuple[Any, ...]:
            return tuple(getattr(out, of) if out.is_complex() else out for out in as_tuple(func(*args)))

        yield Trial(parts, inputs, parts(*inputs), settings, part=part, split=split)


def _forward_trials(func: Callable[..., Any], inputs: Sequence[Any], outputs: Any, settings: Settings) -> Any:
    """The trials of forward mode: the function, or the function of the imaginary and of the real part of inputs."""
    split = [k for k in differentiated(inputs) if inputs[k].is_complex()]
    if not split:
        yield Trial(func, inputs, outputs, settings, forward=True)
        return
    for part in ("imaginary", "real"):
        def of_parts(*args: Any, part: str = part) -> Any:
            full = list(args)
            for k in split:
                fixed = inputs[k]
                full[k] = fixed.real + args[k] * 1j if part == "imaginary" else args[k] + fixed.imag * 1j
            return func(*full)

        chosen = list(inputs)
        for k in split:
            fixed = inputs[k].detach()
            chosen[k] = (fixed.imag if part == "imaginary" else fixed.real).clone().requires_grad_()
        yield Trial(of_parts, chosen, of_parts(*chosen), settings, forward=True, part=part, split=split)


def gradgradcheck(func: Callable[..., Any], inputs: Any, grad_outputs: Any = None, *, eps: float = 1e-6,
                  atol: float = 1e-5, rtol: float = 1e-3, gen_non_contig_grad_outputs: bool = False,
                  raise_exception: bool = True, nondet_tol: float = 0.0, check_undefined_grad: bool = True,
                  check_grad_dtypes: bool = False, check_batched_grad: bool = False, check_fwd_over_rev: bool = False,
                  check_rev_over_rev: bool = True, fast_mode: bool = False, masked: bool = False) -> bool:
    """Compare a function's second derivatives with central differences of its first derivatives.

    This is `gradcheck` of the function (inputs, cotangents) -> gradients of the inputs.
    See https://docs.pytorch.org/docs/stable/generated/torch.autograd.gradcheck.gradgradcheck.html

    Args:
        func: maps the inputs to a tensor or a tuple of tensors.
        inputs: a tensor or a tuple; those that require grad are checked.
        grad_outputs: a cotangent for each output that requires grad. Default: uniform in [-1, 1).
        gen_non_contig_grad_outputs: make the default cotangents non-contiguous.
        check_fwd_over_rev: check forward mode over the gradients.
        check_rev_over_rev: check reverse mode over the gradients.

    The other arguments are those of `gradcheck`.

    Returns:
        True; False if a derivative is wrong and `raise_exception` is False.

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
    primals = as_tuple(inputs)
    if grad_outputs is None:
        cotangents = tuple(_cotangent_for(out, gen_non_contig_grad_outputs)
                           for out in differentiable_outputs(func(*primals)))
    else:
        cotangents = as_tuple(grad_outputs)
    n = len(primals)
    indices = differentiated(primals)

    def gradients(*args: Any) -> tuple[Any, ...]:
        leaves = [x.requires_grad_() if k in indices and not x.requires_grad else x for k, x in enumerate(args[:n])]
        outputs = differentiable_outputs(func(*leaves))
        grads = grad(outputs, [leaves[k] for k in indices], args[n:], create_graph=True, allow_unused=True)
        return tuple(g for g in grads if g is not None)

    return gradcheck(gradients, primals + cotangents, eps=eps, atol=atol, rtol=rtol, raise_exception=raise_exception,
                     nondet_tol=nondet_tol, check_undefined_grad=check_undefined_grad,
                     check_grad_dtypes=check_grad_dtypes, check_batched_grad=check_batched_grad, fast_mode=fast_mode,
                     check_forward_ad=check_fwd_over_rev, check_backward_ad=check_rev_over_rev, masked=masked)


def _cotangent_for(out: Tensor, gaps: bool) -> Tensor:
    """A random cotangent, uniform in [-1, 1); every second element of its memory if `gaps`."""
    spread = 2 if gaps and out.numel() > 1 else 1
    shape = (*out.shape[:-1], out.shape[-1] * spread) if out.dim() else ()
    if out.is_complex():
        values = fn.view_as_complex(fn.empty(*shape, 2, dtype=out.real.dtype, device=out.device).uniform_(-1, 1))
    else:
        values = fn.empty(shape, dtype=out.dtype, device=out.device).uniform_(-1, 1)
    return (values[..., 1::2] if spread == 2 else values).detach().requires_grad_()


__all__ = ["GradcheckError", "get_analytical_jacobian", "get_numerical_jacobian",
           "get_numerical_jacobian_wrt_specific_input", "gradcheck", "gradgradcheck"]
