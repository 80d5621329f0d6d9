"""`autograd.Function`: operators whose forward and backward the user writes.

The context that forward and backward share is the node itself, as in PyTorch: what forward
hangs on `ctx` is found on `y.grad_fn`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from ...engine.anomaly_mode import Anomaly, remember
from ...engine.grad_mode import grad_mode, no_grad
from ...engine.node import _NodeType, next_number
from ...engine.unsupported_derivatives import delayed_error
from ...modes import forward_mode, special, transforming, transforms
from ...trees import tree_flatten
from ..tensor import Tensor, as_leaf
from .batched_tensor import is_batched
from .custom_node import NO_BACKWARD, FunctionCtx, FunctionNode
from .custom_outputs import hang_outputs
from .custom_tangents import push_tangents
from .forward_mode import below, levels_of
from .gradient_edge import gradient_edge
from .handlers import handlers
from .interception import told_custom

_TWICE = "trying to differentiate twice a function that was marked with @once_differentiable"


class FunctionMeta(type):
    """Gives each Function the class of its nodes, `<name>Backward`."""

    def __init__(cls, name: str, bases: tuple[type, ...], namespace: dict[str, Any]) -> None:
        members = {"_forward_cls": cls, "__module__": cls.__module__}
        node = _NodeType(name + "Backward", (FunctionNode,), members)
        cls._backward_cls = node
        super().__init__(name, bases, namespace)


class Function(metaclass=FunctionMeta):
    """An operator of the user's own: subclass it, write `forward` and `backward`, call `apply`.

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
        """The operator: `forward(ctx, *inputs)`, or `forward(*inputs)` beside a `setup_context`."""
        raise NotImplementedError("You must implement the forward function for custom autograd.Function.")

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> Any:
        """What `forward` would have told `ctx`, where forward takes none."""
        raise NotImplementedError("setup_context is not implemented.")

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Any) -> Any:
        """The inputs' gradients from the outputs', one for each argument of `forward`."""
        raise NotImplementedError(NO_BACKWARD)

    @staticmethod
    def vjp(ctx: Any, *grad_outputs: Any) -> Any:
        """Another name for `backward`."""
        raise NotImplementedError(NO_BACKWARD)

    @staticmethod
    def jvp(ctx: Any, *grad_inputs: Any) -> Any:
        """The outputs' tangents from the inputs'."""
        raise NotImplementedError("You must implement the jvp function for custom autograd.Function to use it with "
                                  "forward mode AD.")

    @staticmethod
    def vmap(info: Any, in_dims: Any, *args: Any) -> Any:
        """The operator on batches."""
        raise NotImplementedError("To use autograd.Function with vmap, you must either override the vmap "
                                  "staticmethod or set generate_vmap_rule=True.")

    @classmethod
    def apply(cls, *args: Any, **kwargs: Any) -> Any:
        """Run `forward` and record it."""
        if transforms[0] and transforming.get() and cls.setup_context is Function.setup_context:
            raise RuntimeError("In order to use an autograd.Function with functorch transforms (vmap, grad, jvp, "
                               "jacrev, ...), it must override the setup_context staticmethod. For more details, "
                               "please see https://pytorch.org/docs/main/notes/extending.func.html")
        if special[0] and _some_batched(args):
            return handlers.apply_batched_function(cls, args, kwargs)
        return recorded(cls, args, kwargs)


FunctionNode._function_class = Function


def _some_batched(args: tuple[Any, ...]) -> bool:
    return is_batched(*tree_flatten(args)[0])


def recorded(cls: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Run a Function's `forward` and make its node the history of what it returned."""
    node: FunctionNode = object.__new__(cls._backward_cls if not transforms[0] else _node_class(cls))
    apart = cls.setup_context is not Function.setup_context
    if apart:
        args, kwargs = _with_defaults(cls.forward, args, kwargs)
    tensors = [(i, x) for i, x in enumerate(args) if isinstance(x, Tensor)]
    node.needs_input_grad = tuple(isinstance(x, Tensor) and x._requires_grad for x in args)
    executable = grad_mode.get() and any(node.needs_input_grad)
    node.edges = tuple(gradient_edge(x) if x._requires_grad and executable else None for _, x in tensors)
    numbers = tuple(x._output_nr for _, x in tensors)
    node.edge_outputs = numbers if any(numbers) else None
    node.extra = node.outputs = node.run = None
    node.seq = next_number()
    node._positions = tuple(i for i, _ in tensors)
    node._n_args = len(args)
    node._input_metas = tuple((x._array.shape, None if x._grad_type is None else x._array.dtype) for _, x in tensors)
    if Anomaly.enabled and executable:
        remember(node)
    plain = args
    levels: Sequence[int] = ()
    if special[0]:
        levels = _levels(args)
        if levels:
            plain = _without_tangents(args, levels[0])
    with no_grad(), without_tangents():
        if apart:
            output = cls.forward(*plain, **kwargs)
            cls.setup_context(node, plain, output)
        else:
            output = cls.forward(node, *plain, **kwargs)
    single = not isinstance(output, tuple)
    given = {id(p): x for p, x in zip(plain, args, strict=True) if isinstance(x, Tensor)}
    outputs = hang_outputs(node, given, [output] if single else output, executable, apart)
    if executable:
        node.keep(outputs)
    if levels:
        for level in levels:
            push_tangents(cls, node, level, args, plain, outputs)
    if special[0] and executable:
        told_custom(node, args, outputs)
    return outputs[0] if single else tuple(outputs)


class without_tangents:
    """A block in which forward mode is off: a Function's own operators push no tangents, its `jvp` does."""

    def __enter__(self) -> None:
        self._token = forward_mode.set(False)

    def __exit__(self, *exception: object) -> None:
        forward_mode.reset(self._token)


def _node_class(cls: Any) -> Any:
    """The class of a Function's nodes: under a transform, as in PyTorch, one whose name says so."""
    if not transforming.get():
        return cls._backward_cls
    made = cls.__dict__.get("_generated_cls")
    if made is None:
        made = cls._generated_cls = _NodeType(f"{cls.__name__}GeneratedBackward", (cls._backward_cls,), {})
    return made


def _with_defaults(forward: Callable[..., Any], args: tuple[Any, ...],
                   kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The arguments with those that were named, or left out, in their places: `setup_context` is given all of them."""
    code = getattr(forward, "__code__", None)
    if not kwargs and code is not None and code.co_argcount == len(args) and not code.co_kwonlyargcount:
        return args, kwargs
    import inspect

    bound = inspect.signature(forward).bind(*args, **kwargs)
    bound.apply_defaults()
    return bound.args, bound.kwargs


def _levels(args: tuple[Any, ...]) -> Sequence[int]:
    return levels_of(args)


def _without_tangents(args: tuple[Any, ...], level: int) -> tuple[Any, ...]:
    """The arguments as the levels outside `level` see them, each sharing its version."""
    found = []
    for x in args:
        if isinstance(x, Tensor) and x._tangents:
            if x._counter is None:
                x._counter = [0]
            x = below(x, level)
        found.append(x)
    return tuple(found)


def once_differentiable(fn: Callable[..., Any]) -> Callable[..., Any]:
    """For a `backward` that cannot itself be differentiated: a second derivative is an error."""

    @functools.wraps(fn)
    def wrapper(ctx: Any, *args: Any) -> Any:
        with no_grad():
            outputs = fn(ctx, *args)
        if not grad_mode.get() or not any(isinstance(a, Tensor) and a._requires_grad for a in args):
            return outputs
        found = outputs if isinstance(outputs, tuple) else (outputs,)
        fake = [None if x is None else as_leaf(x.detach()) for x in found]
        refusing = delayed_error(_TWICE, fake) if any(x is not None for x in fake) else found
        return refusing if isinstance(outputs, tuple) else refusing[0]

    return wrapper


__all__ = ["Function", "FunctionCtx", "FunctionNode", "once_differentiable", "recorded"]
