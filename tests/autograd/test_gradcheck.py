"""gradcheck: errors that it detects, correct derivatives that it accepts, and its messages."""

from __future__ import annotations

import subprocess
import sys
import warnings

import pytest

import flambeau as torch
from flambeau.autograd import Function, gradcheck, gradgradcheck
from flambeau.autograd.gradcheck import GradcheckError

both_modes = pytest.mark.parametrize("fast", [False, True], ids=["slow", "fast"])


def leaf(*values, dtype=torch.double):
    return torch.tensor(values, dtype=dtype, requires_grad=True)


def scaled_gradient(factor, offset=0.0):
    """x -> 2 x, whose gradient is wrong by a factor and an offset."""
    def function(x):
        y = x * 2
        y.register_hook(lambda g: g * factor + offset)
        return y
    return function


class Double(Function):
    """2 x; forward mode says `push` x instead."""

    push = 2.0

    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, g):
        return g * 2

    @classmethod
    def jvp(cls, ctx, t):
        return t * cls.push


class PushedTooFar(Double):
    @staticmethod
    def jvp(ctx, t):
        return t * 3


# ----- what is right -----

RIGHT = {
    "one input": (lambda x: x.sin() * x, [leaf(0.5, 2.0)]),
    "matrices": (torch.mm, [torch.rand(2, 3, dtype=torch.double, requires_grad=True),
                            torch.rand(3, 2, dtype=torch.double, requires_grad=True)]),
    "several outputs": (lambda x: (x.exp(), x.sum(), x[:1]), [leaf(0.5, 2.0)]),
    "an input that needs none": (lambda x, y, n: x * y * n, [leaf(1.0, 2.0), torch.ones(2, dtype=torch.double), 3]),
    "an input without influence": (lambda x, y: x * 2, [leaf(1.0), leaf(2.0)]),
    "scalars": (lambda x: x.exp(), [leaf(1.0).sum().detach().requires_grad_()]),
    "no elements": (lambda x: x * 2, [torch.empty(0, 3, dtype=torch.double, requires_grad=True)]),
    "gaps in memory": (lambda x: x * x, [torch.rand(4, 3, dtype=torch.double)[::2].detach().requires_grad_()]),
    "real to complex": (lambda x: torch.complex(x, x * x), [leaf(1.0, 2.0)]),
    "complex to real": (lambda z: z.abs() ** 2, [leaf(1 + 2j, 3 - 1j, dtype=torch.cdouble)]),
    "complex": (lambda z, x: (z * z * x, x + 1), [leaf(1 + 2j, 3 - 1j, dtype=torch.cdouble), leaf(1.0, 2.0)]),
    "conjugate": (lambda z: z.conj(), [leaf(1 + 2j, dtype=torch.cdouble)]),
    "outputs that need none": (lambda x: (x.detach() * 3, x * 2), [leaf(1.0, 2.0)]),
    "whole numbers": (lambda x: (x.detach().long(), x * 2), [leaf(1.0, 2.0)]),
    "nothing to differentiate": (lambda x: torch.ones(2), [leaf(1.0, 2.0)]),
    "no outputs": (lambda x: (), [leaf(1.0)]),
}


@both_modes
@pytest.mark.parametrize("name", RIGHT)
def test_correct_gradients_pass_in_reverse_and_forward_mode(name, fast):
    function, inputs = RIGHT[name]
    before = [x.clone() if isinstance(x, torch.Tensor) else x for x in inputs]
    assert gradcheck(function, inputs, fast_mode=fast, check_forward_ad=True)
    for x, y in zip(inputs, before, strict=True):
        if isinstance(x, torch.Tensor):
            assert torch.equal(x, y), "the inputs were not put back where they were"
            assert x.grad is None


@both_modes
@pytest.mark.parametrize("name", ["one input", "matrices", "several outputs", "complex", "real to complex"])
def test_second_derivatives(name, fast):
    function, inputs = RIGHT[name]
    assert gradgradcheck(function, inputs, fast_mode=fast)
    assert gradgradcheck(function, inputs, fast_mode=fast, gen_non_contig_grad_outputs=True, check_fwd_over_rev=True)


def test_second_derivatives_with_cotangents_given():
    x = leaf(1.0, 2.0)
    assert gradgradcheck(torch.sin, x, torch.ones(2, dtype=torch.double, requires_grad=True))
    assert gradgradcheck(torch.sin, x, torch.ones(2, dtype=torch.double))


@both_modes
def test_batches(fast):
    x, y = leaf(1.0, 2.0), leaf(3.0, 4.0)
    assert gradcheck(lambda x, y: (x * y, x.sum()), (x, y), check_batched_grad=True, check_forward_ad=True,
                     check_batched_forward_grad=True, fast_mode=fast)
    assert gradgradcheck(lambda x, y: x * y, (x, y), check_batched_grad=True, fast_mode=fast)


# ----- what is wrong -----

def said(function, inputs, **options):
    with pytest.raises(GradcheckError) as caught:
        gradcheck(function, inputs, **options)
    assert gradcheck(function, inputs, **options, raise_exception=False) is False
    return str(caught.value)


@both_modes
def test_a_wrong_gradient_shows_both_jacobians(fast):
    text = said(scaled_gradient(2), leaf(1.0, 2.0), fast_mode=fast)
    assert text.startswith("Jacobian mismatch for output 0 with respect to input 0,\nnumerical:")
    assert "tensor([[4., 0.],\n        [0., 4.]], dtype=flambeau.float64)" in text
    if fast:
        assert "in fast mode. See: https://github.com/pytorch/pytorch/issues/53876" in text
        assert "The max per-element difference (slow mode) is: 2." in text
    else:
        assert text.endswith("analytical:tensor([[4., 0.],\n        [0., 4.]], dtype=flambeau.float64)\n")


def test_fast_mode_says_where_slow_mode_would_pass():
    signs = torch.tensor([1.0, -1.0] * 5, dtype=torch.double)

    class Nearly(Function):
        @staticmethod
        def forward(ctx, x):
            return x * signs

        @staticmethod
        def backward(ctx, g):
            return g * (signs + 0.9e-3)

    x = torch.ones(10, dtype=torch.double, requires_grad=True)
    assert "Fast gradcheck failed but element-wise differences are small" in said(Nearly.apply, x, fast_mode=True,
                                                                                 atol=0.0)


@pytest.mark.parametrize(("function", "dtype"), [
    (scaled_gradient(2), torch.cdouble), (lambda x: scaled_gradient(2)(torch.complex(x, x)), torch.double)])
@both_modes
def test_real_and_imaginary_parts_are_checked_separately(function, dtype, fast):
    text = said(function, leaf(1.0, 2.0, dtype=dtype), fast_mode=fast)
    assert text.startswith("While considering the imaginary part of complex outputs only, Jacobian mismatch for output")


@both_modes
def test_real_outputs_of_complex_inputs_are_not(fast):
    assert said(lambda z: scaled_gradient(2)(z.real), leaf(1 + 1j, dtype=torch.cdouble),
                fast_mode=fast).startswith("Jacobian mismatch")


@both_modes
def test_forward_mode(fast):
    x = leaf(1.0, 2.0)
    text = said(PushedTooFar.apply, x, check_forward_ad=True, check_backward_ad=False, check_undefined_grad=False,
                fast_mode=fast)
    assert text.startswith("Jacobian computed with forward mode mismatch for output 0 with respect to input 0,")
    z = leaf(1 + 1j, dtype=torch.cdouble)
    assert said(PushedTooFar.apply, z, check_forward_ad=True, fast_mode=fast).startswith(
        "While considering the imaginary part of complex inputs only, Jacobian computed with forward mode mismatch")


@both_modes
def test_other_wrong_gradients(fast):
    x = leaf(1.0, 2.0)
    assert said(scaled_gradient(1, 1e-2), x, atol=1e-1, fast_mode=fast) == "backward not multiplied by grad_output"
    assert said(lambda x: torch.tensor([x[0].item()]), x, fast_mode=fast) == (
        "Numerical gradient for function expected to be zero")

    class Shaky(Double):
        @staticmethod
        def backward(ctx, g):
            return g * 2 * (1 + 1e-9 * torch.rand_like(g))

    text = said(Shaky.apply, x, fast_mode=fast)
    assert text.startswith("Backward is not reentrant, i.e., running backward with same input")
    assert "The tolerance for nondeterminism was 0.0." in text
    assert gradcheck(Shaky.apply, x, nondet_tol=1e-6, fast_mode=fast)


@both_modes
def test_undefined_cotangents_equal_zeros(fast):
    def refuses(x):
        y = x.clone()
        y.register_hook(lambda g: g * 1)  # None * 1
        return y

    def fails(x):
        y = x.clone()

        def hook(g):
            if g is None:
                raise RuntimeError("no cotangent")
        y.register_hook(hook)
        return y

    x = leaf(1.0, 2.0)
    with pytest.warns(UserWarning, match="New undefined gradient support checking feature"):
        assert said(fails, x, fast_mode=fast).startswith("Expected backward function to handle undefined output grads.")
    with pytest.raises(TypeError):
        gradcheck(refuses, x, fast_mode=fast)
    assert gradcheck(fails, x, check_undefined_grad=False, fast_mode=fast)


def test_undefined_tangents_equal_zeros():
    class Product(Function):
        @staticmethod
        def forward(ctx, x, y):
            ctx.set_materialize_grads(False)
            ctx.save_for_backward(x, y)
            ctx.save_for_forward(x, y)
            return x * y

        @staticmethod
        def backward(ctx, g):
            x, y = ctx.saved_tensors
            return (None, None) if g is None else (g * y, g * x)

        @staticmethod
        def jvp(ctx, s, t):
            x, y = ctx.saved_tensors
            return (s * y if s is not None else 1) + (t * x if t is not None else 1)

    with pytest.raises(GradcheckError) as caught:
        gradcheck(Product.apply, (leaf(1.0, 2.0), leaf(3.0, 4.0)), check_forward_ad=True)
    assert caught.value.args[0] == "Mismatch in tangent values for output with index: "


def test_check_grad_dtypes():
    class Halved(Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, g):
            return g * 2

        @staticmethod
        def jvp(ctx, t):
            return t * (2 + 0j)

    with pytest.raises(GradcheckError, match="Forward AD gradient has dtype mismatch"):
        gradcheck(Halved.apply, leaf(1.0), check_forward_ad=True, check_grad_dtypes=True)


def test_inconsistent_batched_gradients():
    calls = []

    class Unsteady(Double):
        @staticmethod
        def backward(ctx, g):
            calls.append(g)
            return g * (2 if len(calls) < 7 else 3)

    with pytest.raises(GradcheckError, match="gradgradcheck failed while testing batched gradient") as caught:
        gradcheck(Unsteady.apply, leaf(1.0, 2.0), check_batched_grad=True)
    assert "For output 0 and input 0:" in str(caught.value)
    assert "Expected:\ntensor(" in str(caught.value)


# ----- what cannot be checked -----

@both_modes
def test_inputs_are_validated_first(fast):
    with pytest.raises(ValueError, match="gradcheck expects at least one input tensor to require gradient, but none"):
        gradcheck(lambda x: x, torch.rand(2), raise_exception=False, fast_mode=fast)
    x = torch.ones(1, dtype=torch.double, requires_grad=True)
    with pytest.raises(RuntimeError, match="The 0th input has a dimension with stride 0"):
        gradcheck(lambda x: x, x.expand(2, 2), raise_exception=False, fast_mode=fast)
    with pytest.warns(UserWarning, match="Input #0 requires gradient and is not a double precision"):
        assert gradcheck(lambda x: x * 1, leaf(1.0, dtype=torch.float32), atol=1e-1, fast_mode=fast)


@both_modes
def test_nondeterministic_outputs(fast):
    x = leaf(1.0)
    with pytest.raises(AssertionError, match="return outputs with the same shape when inputs are perturbed"):
        gradcheck(lambda x: x * 1 if x[0] < 1 else torch.cat([x, x]), x, fast_mode=fast)
    with pytest.raises(AssertionError, match="return outputs with the same dtype when inputs are perturbed"):
        gradcheck(lambda x: x * 1 if x[0] < 1 else x.float(), x, fast_mode=fast)


@pytest.mark.parametrize(("check", "options", "text"), [
    (gradcheck, {"check_backward_ad": False}, "Expected at least one of check_forward_ad or check_backward_ad"),
    (gradcheck, {"check_backward_ad": False, "check_forward_ad": True, "check_batched_grad": True},
     "Setting check_batched_grad=True requires check_backward_ad to be True"),
    (gradcheck, {"check_batched_forward_grad": True}, "Setting check_batched_forward_grad=True requires"),
    (gradgradcheck, {"check_rev_over_rev": False}, "Expected at least one of check_fwd_over_rev or check_rev_over_rev"),
    (gradgradcheck, {"check_rev_over_rev": False, "check_fwd_over_rev": True},
     "Setting check_undefined_grad=True requires check_rev_over_rev to be True"),
])
def test_conflicting_options(check, options, text):
    with pytest.raises(AssertionError, match=text):
        check(lambda x: x * 2, leaf(1.0), **options)


def test_other_errors_propagate():
    def broken(x):
        raise RuntimeError("broken")

    with pytest.raises(RuntimeError, match="broken"):
        gradcheck(broken, leaf(1.0), raise_exception=False)


# ----- the names -----

def test_the_name_is_the_functions_whichever_way_it_was_imported():
    code = """
import flambeau.autograd.gradcheck
from flambeau.autograd.gradcheck import GradcheckError, gradcheck as first
import flambeau as torch
assert torch.autograd.gradcheck is first
x = torch.ones(1, dtype=torch.double, requires_grad=True)
assert torch.autograd.gradcheck(torch.sin, x) and torch.autograd.gradgradcheck(torch.sin, x)
import flambeau.alias
flambeau.alias.install()
import torch.autograd.gradcheck
from torch.autograd.gradcheck import GradcheckError as again
assert torch.autograd.gradcheck is first and again is GradcheckError
import pickle
assert type(pickle.loads(pickle.dumps(again("x")))) is again
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_deprecated_jacobian_functions():
    from flambeau.autograd import gradcheck as function  # the function
    from flambeau.autograd.gradcheck import get_analytical_jacobian, get_numerical_jacobian

    assert function is gradcheck
    a, b = leaf(1.0, 2.0), leaf(3.0, 4.0)
    two, one = 2 * torch.eye(2, dtype=torch.double), torch.eye(2, dtype=torch.double)
    with pytest.warns(FutureWarning, match="`get_numerical_jacobian` was part of PyTorch's private API"):
        found = get_numerical_jacobian(lambda given: 2 * given[0] + given[1], (a, b), eps=1e-6)
    assert torch.allclose(found[0], two)
    assert torch.allclose(found[1], one)
    with pytest.warns(FutureWarning, match="`get_analytical_jacobian` was part of PyTorch's private API"):
        found, reentrant, sizes, types = get_analytical_jacobian((a, b), 2 * a + b)
    assert torch.equal(found[0], two)
    assert (reentrant, sizes, types) == (True, True, True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises(ValueError, match=r"Expected grad_out to be 1\.0"):
            get_analytical_jacobian((a,), a * 2, grad_out=2.0)
        with pytest.raises(ValueError, match="Expected output to be non-complex"):
            get_numerical_jacobian(lambda given: given[0] * 1j, (a,))


def test_random_numbers_in_a_batch_raise():
    class Noisy(Double):
        @staticmethod
        def jvp(ctx, t):
            torch.randn_like(t)
            return t * 2

        @staticmethod
        def backward(ctx, g):
            torch.rand(2)
            return g * 2

    text = "While computing batched gradients, got: vmap: We do not yet support calling random operations inside of"
    with pytest.raises(GradcheckError, match=text):
        gradcheck(Noisy.apply, leaf(1.0, 2.0), check_batched_grad=True)
    with pytest.raises(GradcheckError, match=text):
        gradcheck(Noisy.apply, leaf(1.0, 2.0), check_forward_ad=True, check_batched_forward_grad=True)


@pytest.mark.parametrize("shape", [(2, 2), (3, 2), (2, 3)])
@pytest.mark.parametrize("complex", [False, True])
def test_tangents_of_singular_vectors(shape, complex):
    torch.manual_seed(0)
    x = torch.randn(shape, dtype=torch.complex128 if complex else torch.double).requires_grad_()

    def program(x):  # does not depend on the vectors' phases
        u, s, vh = torch.linalg.svd(x, full_matrices=False)
        return (u * torch.tensor([1., 3.])) @ vh, u.abs(), s

    assert gradcheck(program, x, check_forward_ad=True, check_backward_ad=False)
    assert gradgradcheck(lambda x: torch.linalg.matrix_norm(x, "nuc"), x, check_fwd_over_rev=True,
                         check_rev_over_rev=False, check_undefined_grad=False)
