"""Products of a vector with a function's Jacobian or Hessian: `vjp`, `jvp`, `vhp` and `hvp`.

One backward pass computes v^T J. J v differentiates that pass with respect to its cotangent, in which it is linear
(the double-backward trick): u -> J^T u has the transpose u -> J u.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...engine.grad_mode import enable_grad
from .arguments import (
    NEEDS_SCALAR_INPUT,
    NEEDS_SCALAR_OUTPUT,
    Tensors,
    as_graph_inputs,
    as_tuple,
    checked_vector,
    detach_results,
    gradients,
    placeholder_cotangents,
    unwrap_single,
)
from .strictness import fill_missing, require_graph

_OUTPUTS = "outputs of the user-provided function"
Product = tuple[Any, Any]  # the function's value and the product: each a tensor or a tuple of tensors


def vjp(func: Callable[..., Any], inputs: Any, v: Any = None, create_graph: bool = False,
        strict: bool = False) -> Product:
    """The function's value and its vector-Jacobian product v^T J, by one backward pass.

    See https://docs.pytorch.org/docs/stable/generated/torch.autograd.functional.vjp.html

    Args:
        func: takes tensors and returns a tensor or a tuple of tensors.
        inputs: a tensor or a tuple of tensors.
        v: tensors of the outputs' shapes; None for one output of one element.
        create_graph: record the computation, so that both results can be differentiated.
        strict: an output, or the product, that does not depend on an input is an error instead of zero.

    Returns:
        The value, and the product in the inputs' shapes.

    Raises:
        TypeError: an input, an output or an element of `v` is not a tensor.
        RuntimeError: `v` does not fit the outputs, or a `strict` check fails.

    >>> import flambeau as torch
    >>> torch.autograd.functional.vjp(lambda x: x.sum(1), torch.ones(2, 2), torch.tensor([1., 3.]))
    (tensor([2., 2.]), tensor([[1., 1.],
            [3., 3.]]))
    """
    with enable_grad():
        several, args = as_tuple(inputs, "inputs", "vjp")
        args = as_graph_inputs(args, create_graph)
        several_out, outputs = as_tuple(func(*args), _OUTPUTS, "vjp")
        require_graph(outputs, "outputs", strict)
        cotangents = checked_vector(v, outputs, several_out, "vjp", create_graph, NEEDS_SCALAR_OUTPUT)
        grads = gradients(outputs, args, cotangents, create_graph=create_graph)
        product = fill_missing(grads, args, strict, create_graph, "back")
    return (unwrap_single(detach_results(outputs, create_graph), several_out),
            unwrap_single(detach_results(product, create_graph), several))


def jvp(func: Callable[..., Any], inputs: Any, v: Any = None, create_graph: bool = False,
        strict: bool = False) -> Product:
    """The function's value and its Jacobian-vector product J v, by two backward passes.

    `torch.func.jvp` takes one forward pass.
    See https://docs.pytorch.org/docs/stable/generated/torch.autograd.functional.jvp.html

    Args:
        func: takes tensors and returns a tensor or a tuple of tensors.
        inputs: a tensor or a tuple of tensors.
        v: tensors of the inputs' shapes; None for one input of one element.
        create_graph: record the computation, so that both results can be differentiated.
        strict: an output, or the product, that does not depend on an input is an error instead of zero.

    Returns:
        The value, and the product in the outputs' shapes.

    Raises:
        TypeError: an input, an output or an element of `v` is not a tensor.
        RuntimeError: `v` does not fit the inputs, or a `strict` check fails.

    >>> import flambeau as torch
    >>> torch.autograd.functional.jvp(lambda x: x.sum(1), torch.ones(2, 2), torch.tensor([[1., 0.], [3., 1.]]))
    (tensor([2., 2.]), tensor([1., 4.]))
    """
    with enable_grad():
        several, args = as_tuple(inputs, "inputs", "jvp")
        args = as_graph_inputs(args, create_graph)
        directions = checked_vector(v, args, several, "jvp", create_graph, NEEDS_SCALAR_INPUT)
        several_out, outputs = as_tuple(func(*args), _OUTPUTS, "jvp")
        require_graph(outputs, "outputs", strict)
        cotangents = placeholder_cotangents(outputs)
        pulled = gradients(outputs, args, cotangents, create_graph=True)
        require_graph(pulled, "grad_inputs", strict)
        grads = gradients(pulled, cotangents, directions, create_graph=create_graph)
        product = fill_missing(grads, outputs, strict, create_graph, "back_trick")
    return (unwrap_single(detach_results(outputs, create_graph), several_out),
            unwrap_single(detach_results(product, create_graph), several_out))


def vhp(func: Callable[..., Any], inputs: Any, v: Any = None, create_graph: bool = False,
        strict: bool = False) -> Product:
    """A scalar function's value and the product v^T H of a vector and its Hessian, by two backward passes.

    See https://docs.pytorch.org/docs/stable/generated/torch.autograd.functional.vhp.html

    Args:
        func: takes tensors and returns one tensor of one element.
        inputs: a tensor or a tuple of tensors.
        v: tensors of the inputs' shapes; None for one input of one element.
        create_graph: record the computation, so that both results can be differentiated.
        strict: a value, gradient or product that does not depend on an input is an error instead of zero.

    Returns:
        The value, and the product in the inputs' shapes.

    Raises:
        TypeError: an input, an output or an element of `v` is not a tensor.
        RuntimeError: `v` does not fit the inputs, `func` does not return a scalar, or a `strict` check fails.

    >>> import flambeau as torch
    >>> torch.autograd.functional.vhp(lambda x: (x ** 3).sum(), torch.tensor([1., 2.]), torch.tensor([1., 1.]))
    (tensor(9.), tensor([ 6., 12.]))
    """
    with enable_grad():
        several, args, directions, outputs, gradient = _gradient(func, inputs, v, create_graph, strict, "vhp")
        grads = gradients(gradient, args, directions, create_graph=create_graph)
        product = fill_missing(grads, args, strict, create_graph, "double_back")
    return detach_results(outputs, create_graph)[0], unwrap_single(detach_results(product, create_graph), several)


def hvp(func: Callable[..., Any], inputs: Any, v: Any = None, create_graph: bool = False,
        strict: bool = False) -> Product:
    """A scalar function's value and the product H v of its Hessian and a vector, by three backward passes.

    For a symmetric Hessian it equals `vhp`, which takes two.
    See https://docs.pytorch.org/docs/stable/generated/torch.autograd.functional.hvp.html

    Args:
        func: takes tensors and returns one tensor of one element.
        inputs: a tensor or a tuple of tensors.
        v: tensors of the inputs' shapes; None for one input of one element.
        create_graph: record the computation, so that both results can be differentiated.
        strict: a value, gradient or product that does not depend on an input is an error instead of zero.

    Returns:
        The value, and the product in the inputs' shapes.

    Raises:
        TypeError: an input, an output or an element of `v` is not a tensor.
        RuntimeError: `v` does not fit the inputs, `func` does not return a scalar, or a `strict` check fails.

    >>> import flambeau as torch
    >>> torch.autograd.functional.hvp(lambda x: (x ** 3).sum(), torch.tensor([1., 2.]), torch.tensor([1., 1.]))
    (tensor(9.), tensor([ 6., 12.]))
    """
    with enable_grad():
        several, args, directions, outputs, gradient = _gradient(func, inputs, v, create_graph, strict, "hvp")
        cotangents = placeholder_cotangents(args)
        pulled = gradients(gradient, args, cotangents, create_graph=True)
        require_graph(pulled, "hessian", strict)
        grads = gradients(pulled, cotangents, directions, create_graph=create_graph)
        product = fill_missing(grads, args, strict, create_graph, "double_back_trick")
    return detach_results(outputs, create_graph)[0], unwrap_single(detach_results(product, create_graph), several)


def _gradient(func: Callable[..., Any], inputs: Any, v: Any, create_graph: bool, strict: bool,
              name: str) -> tuple[bool, Tensors, Tensors | None, Tensors, tuple[Any, ...]]:
    """A scalar function's inputs, direction, value and differentiable gradient."""
    several, args = as_tuple(inputs, "inputs", name)
    args = as_graph_inputs(args, create_graph)
    directions = checked_vector(v, args, several, name, create_graph, NEEDS_SCALAR_INPUT)
    several_out, outputs = as_tuple(func(*args), _OUTPUTS, name)
    require_graph(outputs, "outputs", strict)
    if several_out:
        raise RuntimeError(f"The function given to {name} should return a single Tensor")
    if outputs[0]._array.size != 1:
        raise RuntimeError(f"The Tensor returned by the function given to {name} should contain a single element")
    gradient = gradients(outputs, args, create_graph=True)
    require_graph(gradient, "jacobian", strict)
    return several, args, directions, outputs, gradient


__all__ = ["hvp", "jvp", "vhp", "vjp"]
