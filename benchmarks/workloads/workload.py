"""Workloads: arrays, and one program for PyTorch, flambeau and jax each.

PyTorch and flambeau run the same function, with the library as the argument `torch`. The program of jax is idiomatic.
Arrays are rounded to float32, so that the reference in float64 starts from the same values.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

Arrays = dict[str, np.ndarray]
Sizes = Mapping[str, int]


@dataclass
class Program:
    """A workload in PyTorch or in flambeau."""

    forward: Callable[..., Any]  # inputs -> loss or other output
    inputs: tuple[Any, ...]
    leaves: dict[str, Any] = field(default_factory=dict)  # name -> leaf tensor
    #: forward, eager or compiled -> the complete step: inputs -> output of forward
    make_step: Callable[[Callable[..., Any]], Callable[..., Any]] = lambda forward: forward
    #: the timed unit, a function of the step, if it is more than one step
    loop: Callable[[Callable[..., Any]], Any] | None = None
    trains: bool = False  # whether a step changes the leaves

    def run(self, step: Callable[..., Any]) -> Any:
        return self.loop(step) if self.loop else step(*self.inputs)


@dataclass
class JaxProgram:
    """A workload in jax: a pure function from a state and inputs to the next state and outputs."""

    step: Callable[..., tuple[Any, Any]]
    inputs: tuple[Any, ...]
    state: Any = ()
    #: (state, outputs) -> results, named as in `reference.results`
    named: Callable[[Any, Any], dict[str, Any]] = lambda state, outputs: {"output": outputs}
    loop: Callable[[Callable[..., Any], Any], tuple[Any, Any]] | None = None


@dataclass(frozen=True)
class Workload:
    """One row of the table."""

    name: str
    title: str
    eager_floor: float  # PyTorch eager's time over flambeau eager's
    compiled_floor: float  # the best peer's time over flambeau compiled's
    sizes: dict[str, int]
    tiny: dict[str, int]  # for tests
    arrays: Callable[[Sizes, np.random.Generator], Arrays]
    #: name -> form of the program, a function of (torch, arrays, sizes, dtype, options); the fastest form counts
    forms: dict[str, Callable[..., Program]]
    jax_forms: dict[str, Callable[..., JaxProgram]]  # (arrays, sizes)
    backward: bool = True
    optimizer: bool = False  # whether the forms take an optimizer's options, such as fused=True
    #: the sizes at which results are checked; None: those that are timed
    checked: dict[str, int] | None = None

    def data(self, sizes: Sizes) -> Arrays:
        """The float32 and int64 arrays, from a fixed seed."""
        made = self.arrays(sizes, np.random.default_rng(0))
        return {name: array.astype(np.float32) if array.dtype.kind == "f" else array for name, array in made.items()}


# ----- arrays -----

def dense(rng: np.random.Generator, name: str, inputs: int, outputs: int) -> Arrays:
    """Weight (outputs, inputs) and bias of a linear layer, as PyTorch draws them: U(-k, k), k = 1/√inputs."""
    bound = inputs ** -0.5
    return {f"{name}.weight": rng.uniform(-bound, bound, (outputs, inputs)),
            f"{name}.bias": rng.uniform(-bound, bound, outputs)}


# ----- programs of PyTorch and flambeau -----

def tensor(torch: Any, array: np.ndarray, dtype: str, requires_grad: bool = False) -> Any:
    """A tensor of a copy of the array; floating point arrays are cast to the dtype."""
    copied = array.astype(dtype) if array.dtype.kind == "f" else array.copy()
    made = torch.from_numpy(copied)
    return made.requires_grad_() if requires_grad else made


def loaded(torch: Any, model: Any, arrays: Arrays, dtype: str) -> Any:
    """The model in the dtype, with its parameters set to the arrays of the same names."""
    model.to(getattr(torch, dtype))
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            parameter.copy_(tensor(torch, arrays[name], dtype))
    return model


def derivative(leaves: dict[str, Any], *cotangent: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """A factory of steps: set gradients to None, run forward and backward."""
    tensors = list(leaves.values())

    def make_step(forward: Callable[..., Any]) -> Callable[..., Any]:
        def step(*inputs: Any) -> Any:
            for leaf in tensors:
                leaf.grad = None
            output = forward(*inputs)
            output.backward(*cotangent)
            return output
        return step

    return make_step


def training(optimizer: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """A factory of training steps: zero gradients, forward, backward, update."""
    def make_step(forward: Callable[..., Any]) -> Callable[..., Any]:
        def step(*inputs: Any) -> Any:
            optimizer.zero_grad()
            loss = forward(*inputs)
            loss.backward()
            optimizer.step()
            return loss
        return step

    return make_step
