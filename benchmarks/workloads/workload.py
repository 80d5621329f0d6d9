"""What a workload is: arrays, and the same program for PyTorch, for flambeau and for jax.

PyTorch and flambeau run the very same function, which gets the library as its argument
`torch`; jax's program is written as jax's users write. Arrays are float32 values, so that
a reference in float64 starts from the same numbers.
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

    forward: Callable[..., Any]  # inputs -> loss, or whatever the workload computes
    inputs: tuple[Any, ...]
    leaves: dict[str, Any] = field(default_factory=dict)  # what gets gradients, by name
    #: from a forward, which may have been compiled, the whole step: inputs -> what forward gives
    make_step: Callable[[Callable[..., Any]], Callable[..., Any]] = lambda forward: forward
    #: a timed unit that is more than one step: it gets the step
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
    #: (state, outputs) -> results by the names that `results` gives those of a Program
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
    #: forms of the program by name, of which a library's quickest counts: (torch, arrays, sizes, dtype, options)
    forms: dict[str, Callable[..., Program]]
    jax_forms: dict[str, Callable[..., JaxProgram]]  # (arrays, sizes)
    backward: bool = True
    optimizer: bool = False  # whether the forms take an optimizer's options, such as fused=True

    def data(self, sizes: Sizes) -> Arrays:
        """The same float32 and int64 arrays every time."""
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
    """The array as a tensor of its own memory; floats get the dtype."""
    wanted = array.astype(dtype) if array.dtype.kind == "f" else array.copy()
    made = torch.from_numpy(wanted)
    return made.requires_grad_() if requires_grad else made


def loaded(torch: Any, model: Any, arrays: Arrays, dtype: str) -> Any:
    """The model in that dtype, its parameters set to the arrays of their names."""
    model.to(getattr(torch, dtype))
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            parameter.copy_(tensor(torch, arrays[name], dtype))
    return model


def derivative(leaves: dict[str, Any], *cotangent: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Steps that run forward and then backward to the leaves, whose old gradients they drop."""
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
    """Steps of training: gradients of forward's loss, and the optimizer's update."""
    def make_step(forward: Callable[..., Any]) -> Callable[..., Any]:
        def step(*inputs: Any) -> Any:
            optimizer.zero_grad()
            loss = forward(*inputs)
            loss.backward()
            optimizer.step()
            return loss
        return step

    return make_step
