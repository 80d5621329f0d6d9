"""Random sampling as recorded operators: the samples are drawn before, and the gradients are zero."""

from __future__ import annotations

from typing import Any

from ..declare import op


def _declare_random(name: str, node: str, inputs: int = 1) -> None:
    """Declare an operator whose result is the parameter `values`, drawn before the call."""
    if inputs == 1:
        def forward(input: Any, *, values: Any) -> Any:
            return values
    else:
        def forward(input: Any, other: Any, *, values: Any) -> Any:  # type: ignore[misc]
            return values
    declared = op(forward, name=name, key=f"_{name}_{node}", node=node, expose=(), opmath=False)
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
