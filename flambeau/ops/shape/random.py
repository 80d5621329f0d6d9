"""Random sampling as recorded operators, whose samples are drawn before; derivatives of samples by their parameters.

Gamma and Dirichlet samples are differentiable by implicit reparameterization; the gradients of others are zero.
"""

from __future__ import annotations

from typing import Any

from ..declare import elementwise, not_implemented, op

#: the `_saved_*` attributes of nodes that have some in PyTorch
_SAVED = {"NormalBackward1": "mean_sym_sizes=input", "NormalBackward2": "std_sym_sizes=input",
          "NormalBackward3": "mean_sym_sizes=input std_sym_sizes=other"}


def _declare_random(name: str, node: str, inputs: int = 1) -> None:
    """Declare an operator whose result is the parameter `values`, drawn before the call."""
    if inputs == 1:
        def forward(input: Any, *, values: Any) -> Any:
            return values
    else:
        def forward(input: Any, other: Any, *, values: Any) -> Any:  # type: ignore[misc]
            return values
    declared = op(forward, name=name, key=f"_{name}_{node}", node=node, expose=(), opmath=False,
                  saved=_SAVED.get(node, ""))
    declared.vjp(input=lambda xp, g, input_shape: xp.sum_to_size(xp.zeros_like(g), input_shape))
    if inputs == 2:
        declared.vjp(other=lambda xp, g, other_shape: xp.sum_to_size(xp.zeros_like(g), other_shape))
    declared.jvp(lambda xp, out: xp.zeros_like(out))


#: (name, node, number of inputs) of the random operators that autograd records
RANDOM_OPERATORS = (
    ("uniform", "UniformBackward0", 1), ("normal", "NormalBackward0", 1), ("normal", "NormalBackward1", 1),
    ("normal", "NormalBackward2", 1), ("normal", "NormalBackward3", 2), ("random", "RandomBackward0", 1),
    ("random", "RandomBackward1", 1), ("random", "RandomBackward2", 1), ("bernoulli", "BernoulliBackward0", 1),
    ("bernoulli", "BernoulliBackward1", 2), ("bernoulli", "BernoulliBackward2", 1),
    ("exponential", "ExponentialBackward0", 1), ("geometric", "GeometricBackward0", 1),
    ("cauchy", "CauchyBackward0", 1), ("log_normal", "LogNormalBackward0", 1), ("poisson", "PoissonBackward0", 1),
)
for _name, _node, _inputs in RANDOM_OPERATORS:
    _declare_random(_name, _node, _inputs)


# ----- samples that move with their parameters -----

def _check_one_dtype(first: Any, *others: Any, **_: Any) -> None:
    for other in others:
        if other.dtype is not first.dtype:
            raise RuntimeError(f"Found dtype {other.dtype.scalar_name} but expected {first.dtype.scalar_name}")


def _no_second_derivative(g: Any) -> Any:
    raise NotImplementedError("the derivative for '_standard_gamma_grad' is not implemented.")


def _no_dirichlet_derivative(g: Any) -> Any:
    raise RuntimeError("derivative for aten::_dirichlet_grad is not implemented")


@op(name="_standard_gamma", node="StandardGammaBackward0", expose=(), opmath=False)
def _standard_gamma(xp, input, *, values):
    """Samples of standard gamma distributions: the parameter `values`, drawn before."""
    return values


_standard_gamma.vjp(input=lambda xp, g, input, out: g * xp._standard_gamma_grad(input, out))


@elementwise(expose=(), opmath=False, scalar_inputs=(), check=_check_one_dtype,
             unsupported_dtypes=not_implemented("_standard_gamma_grad_cpu", "narrow", "integer", "complex", "bool"))
def _standard_gamma_grad(xp, input, output):
    """The derivative of standard gamma samples `output` by their concentration `input`."""
    return xp.standard_gamma_grad(input, output)


_standard_gamma_grad.vjp(input=_no_second_derivative, output=_no_second_derivative)


@elementwise(expose=(), opmath=False, scalar_inputs=(), check=_check_one_dtype, node="NotImplemented",
             unsupported_dtypes=not_implemented("_dirichlet_grad_cpu", "narrow", "integer", "complex", "bool"))
def _dirichlet_grad(xp, x, alpha, total):
    """The derivative of components `x` of Dirichlet samples by their concentration `alpha` of the sum `total`,
    divided by 1 - x.
    """
    return xp.dirichlet_grad(x, alpha, total)


_dirichlet_grad.vjp(x=_no_dirichlet_derivative, alpha=_no_dirichlet_derivative, total=_no_dirichlet_derivative)
