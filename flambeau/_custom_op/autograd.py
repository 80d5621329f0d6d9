"""The derivative of a `CustomOp`: a function says what is saved, another returns the gradients by argument's name."""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Callable
from typing import Any, NoReturn

from .._library.kernels import _AutoDispatchBelowAutograd
from .._tensor import Tensor
from .._tensor.custom_functions.function import Function
from ..engine.grad_mode import is_grad_enabled
from ..ops.schemas import FunctionSchema
from ..trees import tree_flatten, tree_leaves, tree_map, tree_unflatten


def is_tensor_like(type_name: str) -> bool:
    """Whether arguments of a schema's type are tensors, optional ones, or lists of them."""
    return type_name.replace("?", "").rstrip("[]") == "Tensor"


def refusing_kernel(call: Callable[..., Any]) -> Callable[..., Any]:
    """The kernel for autograd of an operator without derivative: it refuses inputs that require gradients."""
    def kernel(*args: Any, **kwargs: Any) -> Any:
        if is_grad_enabled() and any(isinstance(x, Tensor) and x.requires_grad for x in tree_leaves((args, kwargs))):
            raise RuntimeError("Autograd has not been implemented for operator")
        with _AutoDispatchBelowAutograd():
            return call(*args, **kwargs)

    return kernel


class DerivativeByName:
    """The derivative of one operator.

    Args:
        operator: the operator as errors name it.
        name: its name without namespace.
        schema: its schema.
        call: runs it.
        differentiable: for each result whether it has a gradient; None: all have.
        save: `(inputs, output) -> saved`.
        backward: `(ctx, saved, *grads) -> {name of an argument: its gradient}`.
        location: the file and line of `backward`.
    """

    def __init__(self, operator: Any, name: str, schema: FunctionSchema, call: Callable[..., Any],
                 differentiable: list[bool] | None, save: Callable[..., Any], backward: Callable[..., Any],
                 location: str) -> None:
        self.operator, self.schema, self.call, self.differentiable = operator, schema, call, differentiable
        self.save, self.backward, self.location = save, backward, location
        self.named = namedtuple(f"{name}_args", [a.name for a in schema.arguments])  # type: ignore[misc]
        self.expected = {a.name for a in schema.arguments if is_tensor_like(a.type_name)}
        members = {"forward": staticmethod(self._forward), "backward": staticmethod(self._backward)}
        self.function: Any = type(f"{name}_customop", (Function,), members)

    def __call__(self, *args: Any) -> Any:
        leaves, structure = tree_flatten(args)
        results: list[Any] = []
        flat = self.function.apply(structure, results, *leaves)
        return tree_unflatten(list(flat), results[0])

    def _forward(self, ctx: Any, structure: Any, results: list[Any], *leaves: Any) -> Any:
        args = tree_unflatten(list(leaves), structure)
        with _AutoDispatchBelowAutograd():
            output = self.call(*args)
        saved, ctx.saved_structure = tree_flatten(self.save(self.named(*args), output))
        ctx.save_for_backward(*[x for x in saved if isinstance(x, Tensor)])
        ctx.saved_values = [None if isinstance(x, Tensor) else x for x in saved]
        ctx.holds_tensor = [isinstance(x, Tensor) for x in saved]
        ctx.types = self.named(*tree_map(type, args))
        ctx.mark_non_differentiable(*self._without_gradient(output))
        flat, ctx.output_structure = tree_flatten(output)
        results.append(ctx.output_structure)
        return tuple(flat)

    def _without_gradient(self, output: Any) -> list[Tensor]:
        found: list[Tensor] = []
        if self.differentiable is None:
            return found
        each = output if isinstance(output, tuple) else (output,)
        for position, (differentiable, result) in enumerate(zip(self.differentiable, each, strict=True)):
            if not isinstance(result, (Tensor, list)):
                if differentiable:
                    raise RuntimeError(
                        f"With output_differentiability={self.differentiable}. At idx {position}, we received an "
                        f"object of type {type(result)} that is not a Tensor, so it cannot have be marked as "
                        "differentiable in output_differentiability.")
            elif not differentiable:
                found.extend(result if isinstance(result, list) else [result])
        return found

    def _backward(self, ctx: Any, *flat_grads: Any) -> Any:
        grads = tree_unflatten(list(flat_grads), ctx.output_structure)
        tensors = iter(ctx.saved_tensors)
        saved = [next(tensors) if holds else value
                 for holds, value in zip(ctx.holds_tensor, ctx.saved_values, strict=True)]
        found = self.backward(object(), tree_unflatten(saved, ctx.saved_structure),
                              *(grads if isinstance(grads, tuple) else (grads,)))
        self._check(found, ctx.types)
        by_leaf = [found[name] if name in found else tree_map(lambda _: None, types)
                   for name, types in ctx.types._asdict().items()]
        return (None, None, *tree_leaves(by_leaf))

    def _refuse(self, what: str) -> NoReturn:
        raise RuntimeError(f"In the backward function defined for {self.operator} at {self.location} using the "
                           f"CustomOp API, {what}")

    def _check(self, found: Any, types: Any) -> None:
        """Raise RuntimeError where the gradients do not fit the arguments."""
        if not isinstance(found, dict):
            self._refuse(f"expected the output of the backward function to be a dict but got {type(found)}")
        if found.keys() != self.expected:
            self._refuse(
                f"expected the returned grad_input dict to have keys {self.expected} but got {found.keys()}. The "
                "backward function must return a gradient (can be None) for each arg to the CustomOp that may be a "
                "Tensor or Sequence[Tensor]. Args declared to be non-Tensor-like types should not appear in the "
                "grad_input dict")
        for name, gradient in found.items():
            of_argument = getattr(types, name)
            if isinstance(of_argument, list):
                self._check_list(name, gradient, of_argument)
            elif gradient is not None:
                if not isinstance(gradient, Tensor):
                    self._refuse(f"got object of type {type(gradient)} as the gradient for input '{name}', but "
                                 "expected the gradient to be either None or a Tensor")
                if not issubclass(of_argument, Tensor):
                    self._refuse(f"got a Tensor as the gradient for input '{name}' but expected None as the gradient "
                                 f"because input '{name}' was not a Tensor (it was type {of_argument}).")

    def _check_list(self, name: str, gradients: Any, types: list[Any]) -> None:
        for_input = f"for input '{name}' expected the grad_input dict to hold a list of"
        if not isinstance(gradients, (tuple, list)):
            self._refuse(f"{for_input} gradients but got object of type {type(gradients)}.")
        if len(gradients) != len(types):
            self._refuse(f"{for_input} {len(types)} gradients but got {len(gradients)}")
        for position, (gradient, of_value) in enumerate(zip(gradients, types, strict=True)):
            if gradient is None:
                continue
            if not isinstance(gradient, Tensor):
                self._refuse(f"{for_input} None or Tensor gradients but got object of {type(gradient)} at index "
                             f"{position}")
            if not issubclass(of_value, Tensor):
                self._refuse(f"for input '{name}', got a Tensor as the gradient for the {position}-th value but "
                             f"expected None because the {position}-th value was not a Tensor (it was type {types}")




__all__ = ["DerivativeByName", "is_tensor_like", "refusing_kernel"]
