"""`autograd.Function`: operators with user-defined forward and backward.

The context `ctx` is the graph node itself, as in PyTorch: attributes set on `ctx` are attributes of `y.grad_fn`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from ... import config
from ...engine.grad_mode import grad_mode, no_grad
from ...engine.nodes.node import NodeType
from ...engine.nodes.unsupported_derivatives import delayed_error
from ...modes import active_transforms, special, transform_stack
from ...trees import tree_flatten
from ..dispatch.batched_tensor import is_batched
from ..tensor import Tensor, set_requires_grad
from .batching import apply_batched_function
from .node import NO_BACKWARD, FunctionCtx, FunctionNode
from .recording import apply_function

_TWICE = "trying to differentiate twice a function that was marked with @once_differentiable"


class FunctionMeta(type):
    """Metaclass of Function: makes the class of its nodes, `<name>Backward`."""

    def __init__(cls, name: str, bases: tuple[type, ...], attrs: dict[str, Any]) -> None:
        members = {"_forward_cls": cls, "__module__": f"{config.module_name}.autograd.function"}
        node = NodeType(name + "Backward", (FunctionNode,), members)
        cls._backward_cls = node
        super().__init__(name, bases, attrs)


class Function(metaclass=FunctionMeta):
    """Base class of user-defined operators: define `forward` and `backward`, call `apply`.

    See https://docs.pytorch.org/docs/stable/autograd.html#function

    >>> import flambeau as torch
    >>> class Square(torch.autograd.Function):
    ...     @staticmethod
    ...     def forward(ctx, x):
    ...         ctx.save_for_backward(x)
    ...         return x * x
    ...     @staticmethod
    ...     def backward(ctx, g):
    ...         x, = ctx.saved_tensors
    ...         return 2 * x * g
    >>> x = torch.tensor(3., requires_grad=True)
    >>> Square.apply(x)
    tensor(9., grad_fn=<SquareBackward>)
    """

    generate_vmap_rule = False
    clear_saved_tensors_on_access = False  #: whether `ctx.saved_tensors` can be read only once, and lets go of them
    boxed_grads_call = False  #: whether `backward` gets the gradients as one list, from which it may remove them

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        import warnings

        warnings.warn(f"{type(self)} should not be instantiated. Methods on autograd functions are all static, so you "
                      "should invoke them on the class itself. Instantiating an autograd function will raise an error "
                      "in a future version of PyTorch.", DeprecationWarning, stacklevel=2)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise RuntimeError("Legacy autograd function with non-static forward method is deprecated. Please use "
                           "new-style autograd function with static forward method. (Example: "
                           "https://pytorch.org/docs/stable/autograd.html#torch.autograd.Function)")

    @staticmethod
    def forward(*args: Any, **kwargs: Any) -> Any:
        """The operator: `forward(ctx, *inputs)`; `forward(*inputs)` where `setup_context` is defined."""
        raise NotImplementedError("You must implement the forward function for custom autograd.Function.")

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> Any:
        """Save what backward needs on `ctx`, for a `forward` without `ctx`."""
        raise NotImplementedError("setup_context is not implemented.")

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Any) -> Any:
        """The gradients of the inputs, one for each argument of `forward`, from those of the outputs."""
        raise NotImplementedError(NO_BACKWARD)

    @staticmethod
    def vjp(ctx: Any, *grad_outputs: Any) -> Any:
        """Another name for `backward`."""
        raise NotImplementedError(NO_BACKWARD)

    @staticmethod
    def jvp(ctx: Any, *grad_inputs: Any) -> Any:
        """The tangents of the outputs, from those of the inputs."""
        raise NotImplementedError("You must implement the jvp function for custom autograd.Function to use it with "
                                  "forward mode AD.")

    @staticmethod
    def vmap(info: Any, in_dims: Any, *args: Any) -> Any:
        """The batching rule: `(output, out_dims)` of batched arguments."""
        raise NotImplementedError("To use autograd.Function with vmap, you must either override the vmap "
                                  "staticmethod or set generate_vmap_rule=True.")

    @classmethod
    def apply(cls, *args: Any, **kwargs: Any) -> Any:
        """Run `forward` and record its node."""
        if active_transforms[0] and transform_stack.get() and cls.setup_context is Function.setup_context:
            raise RuntimeError("In order to use an autograd.Function with functorch transforms (vmap, grad, jvp, "
                               "jacrev, ...), it must override the setup_context staticmethod. For more details, "
                               "please see https://pytorch.org/docs/main/notes/extending.func.html")
        if special[0] and _some_batched(args):
            return apply_batched_function(cls, args, kwargs)
        return apply_function(cls, args, kwargs)


FunctionNode._function_class = Function


def _some_batched(args: tuple[Any, ...]) -> bool:
    return is_batched(*tree_flatten(args)[0])


def once_differentiable(fn: Callable[..., Any]) -> Callable[..., Any]:
    """Decorator of a `backward` that is not differentiable: a second derivative raises."""

    @functools.wraps(fn)
    def wrapper(ctx: Any, *args: Any) -> Any:
        with no_grad():
            outputs = fn(ctx, *args)
        if not grad_mode.get() or not any(isinstance(a, Tensor) and a._requires_grad for a in args):
            return outputs
        result = outputs if isinstance(outputs, tuple) else (outputs,)
        fake = [None if x is None else set_requires_grad(x.detach()) for x in result]
        refusing = delayed_error(_TWICE, fake) if any(x is not None for x in fake) else result
        return refusing if isinstance(outputs, tuple) else refusing[0]

    return wrapper


for _method in ("mark_dirty", "mark_non_differentiable", "mark_shared_storage", "save_for_backward", "save_for_forward",
                "set_materialize_grads"):
    setattr(Function, _method, vars(FunctionCtx)[_method])  # programs find them on the class, too

__all__ = ["Function", "FunctionCtx", "FunctionNode", "once_differentiable"]
