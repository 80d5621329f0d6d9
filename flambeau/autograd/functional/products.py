"""Products of a vector with a function's Jacobian or Hessian: `vjp`, `jvp`, `vhp` and `hvp`.

One backward pass multiplies from the left. From the right, the same pass is differentiated
by its own cotangent, in which it is linear: u -> J^T u has the transpose u -> J u.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...engine.grad_mode import enable_grad
from .arguments import (
    NEEDS_SCALAR_INPUT,
    NEEDS_SCALAR_OUTPUT,
    Tensors,
    alone,
    as_tuple,
    dummies,
    entered,
    gradients,
    left,
    weights,
)
from .strictness import filled, must_have_graph

_OUTPUTS = "outputs of the user-provided function"
Product = tuple[Any, Any]  # what the function returned, and its product: each a tensor or a tuple of tensors


def vjp(func: Callable[..., Any], inputs: Any, v: Any = None, create_graph: bool = False,
        strict: bool = False) -> Product:
    """The function's value and its vector-Jacobian product v^T J, by one backward pass.

    See https://docs.pytorch.org/docs/stable/generated/torch.autograd.functional.vjp.html

    Args:
        func: takes tensors and returns a tensor or a tuple of tensors.
        inputs: a tensor or a tuple of tensors.
        v: of the outputs' shapes; None for one output of one element.
        create_graph: let both results be differentiated, also by `inputs`.
        strict: an output, or the product, that does not depend on an input is an error, and not zero.

    Returns:
        The value, and the product in the inputs' shapes.

    Raises:
        TypeError: inputs, outputs or `v` are no tensors.
        RuntimeError: `v` does not fit the outputs, or `strict` refuses.

    >>> import flambeau as torch
    >>> torch.autograd.functional.vjp(lambda x: x.sum(1), torch.ones(2, 2), torch.tensor([1., 3.]))
    (tensor([2., 2.]), tensor([[1., 1.],
            [3., 3.]]))
    """
    with enable_grad():
        several, given = as_tuple(inputs, "inputs", "vjp")
        given = entered(given, create_graph)
        several_out, outputs = as_tuple(func(*given), _OUTPUTS, "vjp")
        must_have_graph(outputs, "outputs", strict)
        cotangents = weights(v, outputs, several_out, "vjp", create_graph, NEEDS_SCALAR_OUTPUT)
        found = gradients(outputs, given, cotangents, create_graph=create_graph)
        product = filled(found, given, strict, create_graph, "back")
    return alone(left(outputs, create_graph), several_out), alone(left(product, create_graph), several)


def jvp(func: Callable[..., Any], inputs: Any, v: Any = None, create_graph: bool = False,
        strict: bool = False) -> Product:
    """The function's value and its Jacobian-vector product J v, by two backward passes.

    `torch.func.jvp` takes one forward pass.
    See https://docs.pytorch.org/docs/stable/generated/torch.autograd.functional.jvp.html

    Args:
        func: takes tensors and returns a tensor or a tuple of tensors.
        inputs: a tensor or a tuple of tensors.
        v: of the inputs' shapes; None for one input of one element.
        create_graph: let both results be differentiated, also by `inputs`.
        strict: an output, or the product, that does not depend on an input is an error, and not zero.

    Returns:
        The value, and the product in the outputs' shapes.

    Raises:
        TypeError: inputs, outputs or `v` are no tensors.
        RuntimeError: `v` does not fit the inputs, or `strict` refuses.

    >>> import flambeau as torch
    >>> torch.autograd.functional.jvp(lambda x: x.sum(1), torch.ones(2, 2), torch.tensor([[1., 0.], [3., 1.]]))
    (tensor([2., 2.]), tensor([1., 4.]))
    """
    with enable_grad():
        several, given = as_tuple(inputs, "inputs", "jvp")
        given = entered(given, create_graph)
        directions = weights(v, given, several, "jvp", create_graph, NEEDS_SCALAR_INPUT)
        several_out, outputs = as_tuple(func(*given), _OUTPUTS, "jvp")
        must_have_graph(outputs, "outputs", strict)
        cotangents = dummies(outputs)
        pulled = gradients(outputs, given, cotangents, create_graph=True)
        must_have_graph(pulled, "grad_inputs", strict)
        found = gradients(pulled, cotangents, directions, create_graph=create_graph)
        product = filled(found, outputs, strict, create_graph, "back_trick")
    return alone(left(outputs, create_graph), several_out), alone(left(product, create_graph), several_out)


def vhp(func: Callable[..., Any], inputs: Any, v: Any = None, create_graph: bool = False,
        strict: bool = False) -> Product:
    """A scalar function's value and the product v^T H of a vector and its Hessian, by two backward passes.

    See https://docs.pytorch.org/docs/stable/generated/torch.autograd.functional.vhp.html

    Args:
        func: takes tensors and returns one tensor of one element.
        inputs: a tensor or a tuple of tensors.
        v: of the inputs' shapes; None for one input of one element.
        create_graph: let both results be differentiated, also by `inputs`.
        strict: a value, gradient or product that does not depend on an input is an error, and not zero.

    Returns:
        The value, and the product in the inputs' shapes.

    Raises:
        TypeError: inputs, outputs or `v` are no tensors.
        RuntimeError: `v` does not fit the inputs, `func` does not return a scalar, or `strict` refuses.

    >>> import flambeau as torch
    >>> torch.autograd.functional.vhp(lambda x: (x ** 3).sum(), torch.tensor([1., 2.]), torch.tensor([1., 1.]))
    (tensor(9.), tensor([ 6., 12.]))
    """
    with enable_grad():
        several, given, directions, outputs, gradient = _gradient(func, inputs, v, create_graph, strict, "vhp")
        found = gradients(gradient, given, directions, create_graph=create_graph)
        product = filled(found, given, strict, create_graph, "double_back")
    return left(outputs, create_graph)[0], alone(left(product, create_graph), several)


def hvp(func: Callable[..., Any], inputs: Any, v: Any = None, create_graph: bool = False,
        strict: bool = False) -> Product:
    """A scalar function's value and the product H v of its Hessian and a vector, by three backward passes.

    For a symmetric Hessian that is `vhp`, which needs but two.
    See https://docs.pytorch.org/docs/stable/generated/torch.autograd.functional.hvp.html

    Args:
        func: takes tensors and returns one tensor of one element.
        inputs: a tensor or a tuple of tensors.
        v: of the inputs' shapes; None for one input of one element.
        create_graph: let both results be differentiated, also by `inputs`.
        strict: a value, gradient or product that does not depend on an input is an error, and not zero.

    Returns:
        The value, and the product in the inputs' shapes.

    Raises:
        TypeError: inputs, outputs or `v` are no tensors.
        RuntimeError: `v` does not fit the inputs, `func` does not return a scalar, or `strict` refuses.

    >>> import flambeau as torch
    >>> torch.autograd.functional.hvp(lambda x: (x ** 3).sum(), torch.tensor([1., 2.]), torch.tensor([1., 1.]))
    (tensor(9.), tensor([ 6., 12.]))
    """
    with enable_grad():
        several, given, directions, outputs, gradient = _gradient(func, inputs, v, create_graph, strict, "hvp")
        cotangents = dummies(given)
        pulled = gradients(gradient, given, cotangents, create_graph=True)
        must_have_graph(pulled, "hessian", strict)
        found = gradients(pulled, cotangents, directions, create_graph=create_graph)
        product = filled(found, given, strict, create_graph, "double_back_trick")
    return left(outputs, create_graph)[0], alone(left(product, create_graph), several)


def _gradient(func: Callable[..., Any], inputs: Any, v: Any, create_graph: bool, strict: bool,
              name: str) -> tuple[bool, Tensors, Tensors | None, Tensors, tuple[Any, ...]]:
    """A scalar function's inputs, direction, value and gradient, that can be differentiated once more."""
    several, given = as_tuple(inputs, "inputs", name)
    given = entered(given, create_graph)
    directions = weights(v, given, several, name, create_graph, NEEDS_SCALAR_INPUT)
    several_out, outputs = as_tuple(func(*given), _OUTPUTS, name)
    must_have_graph(outputs, "outputs", strict)
    if several_out:
        raise RuntimeError(f"The function given to {name} should return a single Tensor")
    if outputs[0]._array.size != 1:
        raise RuntimeError(f"The Tensor returned by the function given to {name} should contain a single element")
    gradient = gradients(outputs, given, create_graph=True)
    must_have_graph(gradient, "jacobian", strict)
    return several, given, directions, outputs, gradient


__all__ = ["hvp", "jvp", "vhp", "vjp"]
