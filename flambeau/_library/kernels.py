"""The kernels of an operator that the program defines, and how a call runs: vmap, autograd, handlers, the kernel."""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from typing import Any

import numpy as np

from .._tensor import Tensor
from .._tensor.custom_functions.function import Function
from .._tensor.meta import is_meta
from .._tensor.overriding.dispatch import ask, dispatch_modes, handling_inputs, no_dispatch
from .._tensor.overriding.protocol import DisableTorchFunction, EnableTorchFunction
from ..amp.state import is_autocast_enabled
from ..backends.numpy.memory import owner
from ..engine.grad_mode import grad_mode, no_grad
from ..ops.overloads import OpOverload
from ..ops.schemas import FunctionSchema
from ..trees import tree_flatten, tree_leaves, tree_unflatten
from .autograd_fallback import record
from .fake_impl import has_ctx, refusing_getter, set_ctx_getter

#: dispatch keys whose kernel is made of operators, which record themselves
_COMPOSITE_KEYS = ("CompositeImplicitAutograd", "Autograd", "AutogradCPU")
#: dispatch keys of kernels that compute, in order of preference
_COMPUTING_KEYS = ("CPU", "CompositeExplicitAutograd", "CompositeExplicitAutogradNonFunctional")


#: whether kernels for autograd are passed over
_below_autograd: ContextVar[bool] = ContextVar("below_autograd", default=False)


class _AutoDispatchBelowAutograd:
    """While it lives, kernels for autograd are passed over, and nothing is recorded; as a block, to the block's end.

    Such a kernel calls its operator again in it, which then runs the kernel that computes.
    """

    def __init__(self) -> None:
        self._token: Any = _below_autograd.set(True)
        self._no_grad = no_grad()
        self._no_grad.__enter__()

    def __enter__(self) -> None:
        pass

    def __exit__(self, *error: Any) -> None:
        if self._token is not None:
            self._no_grad.__exit__(*error)
            _below_autograd.reset(self._token)
            self._token = None

    def __del__(self) -> None:
        self.__exit__(None, None, None)


def refuse_keyword_tensors(what: str, schema: FunctionSchema) -> None:
    """Raise NotImplementedError if an operator has tensors that are keyword-only arguments.

    Args:
        what: the function that was called, `register_autograd`.
    """
    if any(a.kwarg_only and a.type_name.startswith("Tensor") for a in schema.arguments):
        raise NotImplementedError(f"{what} with kwarg-only Tensor args. In the original definition of the op, please "
                                  f"make your tensors not kwarg-only. Got: {schema}")


class OperatorKernels:
    """The kernels of one overload, by dispatch key.

    Attributes:
        by_key: dispatch key -> kernel.
        backward, setup_context: the derivative, if one is registered.
        fake: the fake kernel, on tensors without elements.
        vmap: the batching rule: `(info, in_dims, *args) -> (outputs, out_dims)`.
        handlers: class of a subclass or mode -> what it does with the operator.
        autocast_dtypes: device type -> the dtype that inputs are cast to under autocast.
        records_itself: whether the operators that the kernel applies are recorded, where there is no derivative.
        checks_aliases: whether a result may not be an input.
    """

    def __init__(self, overload: OpOverload, records_itself: bool) -> None:
        self.overload = overload
        self.by_key: dict[str, Callable[..., Any]] = {}
        self.backward: Callable[..., Any] | None = None
        self.setup_context: Callable[..., Any] | None = None
        self.fake: Callable[..., Any] | None = None
        self.vmap: Callable[..., Any] | None = None
        self.handlers: dict[type, Callable[..., Any]] = {}
        self.autocast_dtypes: dict[str, Any] = {}
        self.disabled_keys: set[str] = set()
        self.records_itself = records_itself
        self.checks_aliases = not records_itself
        self.original: Callable[..., Any] | None = None
        self._function: type[Function] | None = None

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        schema = self.overload._schema
        bound = schema.bind(args, kwargs)
        self._check_types(bound)
        args, named = schema.normalized(bound)
        for key in _COMPOSITE_KEYS:
            if key in self.by_key and not (_below_autograd.get() and key.startswith("Autograd")):
                with EnableTorchFunction():
                    return self.by_key[key](*args, **named)
        if self.autocast_dtypes:
            args, named = self._autocast(args, named)
        tensors = [x for x in tree_leaves((args, named)) if isinstance(x, Tensor)]
        batched = any(not isinstance(x._array, np.ndarray) for x in tensors)
        differentiated = grad_mode.get() and any(x._requires_grad for x in tensors)
        if batched or (differentiated and (self.backward is not None or not self.records_itself)):
            return self._apply_function(args, named)
        result = self.compute(args, named)
        return record(self.overload, tensors, result) if differentiated and not _below_autograd.get() else result

    def set_derivative(self, op: Any, backward: Callable[..., Any], setup_context: Callable[..., Any] | None) -> None:
        """Register the derivative.

        Args:
            op: the operator as the caller names it, for the errors' texts.

        Raises:
            RuntimeError: the operator writes to an argument or returns one.
            NotImplementedError: it has tensors that are keyword-only arguments.
        """
        schema = self.overload._schema
        if schema.is_mutable:
            raise RuntimeError(f"Cannot register autograd formula for non-functional operator {op} with schema "
                               f"{schema}. Please create a functional operator and register an autograd formula for "
                               "that.")
        refuse_keyword_tensors("register_autograd", schema)
        self.backward, self.setup_context = backward, setup_context
        self.reset()

    def reset(self) -> None:
        """Forget the function that was made from the registrations."""
        self._function = None

    def _check_types(self, bound: dict[str, Any]) -> None:
        schema = self.overload._schema
        for position, argument in enumerate(schema.arguments):
            value = bound.get(argument.name)
            if argument.type_name == "Tensor" and argument.name in bound and not isinstance(value, Tensor):
                raise RuntimeError(f"{schema.name}() Expected a value of type 'Tensor' for argument '{argument.name}' "
                                   f"but instead found type '{type(value).__name__}'.\nPosition: {position}\nValue: "
                                   f"{value!r}\nDeclaration: {schema}\nCast error details: Unable to cast {value} to "
                                   "Tensor")

    def _autocast(self, args: Any, named: Any) -> tuple[Any, Any]:
        to = self.autocast_dtypes.get("cpu")
        if to is None or not is_autocast_enabled("cpu"):
            return args, named
        leaves, structure = tree_flatten((args, named))
        return tree_unflatten([x.to(to) if isinstance(x, Tensor) and x.dtype.is_floating_point else x for x in leaves],
                              structure)

    def compute(self, args: tuple[Any, ...], named: dict[str, Any]) -> Any:
        """Run the handler of a mode or subclass, the kernel, or for tensors without elements the fake kernel."""
        found = [] if no_dispatch.get() else handling_inputs(args)
        if not no_dispatch.get() and (found or dispatch_modes.get()):
            return self._ask(found, args, named)
        if not any(is_meta(x) for x in tree_leaves((args, named))):
            return self._run(self._kernel(), args, named)
        fake = self._meta_kernel()
        if has_ctx():
            return self._run(fake, args, named)
        with set_ctx_getter(refusing_getter(self.overload.name(), fake)):
            return self._run(fake, args, named)

    def _run(self, kernel: Callable[..., Any], args: tuple[Any, ...], named: dict[str, Any]) -> Any:
        """Run a kernel or the fake kernel; write counters of written arguments."""
        schema = self.overload._schema
        with EnableTorchFunction():
            if self.records_itself:
                result = kernel(*args, **named)
            else:
                with no_grad():
                    result = kernel(*args, **named)
        for _, value in self._written(args, named):
            for x in tree_leaves(value):
                if isinstance(x, Tensor):
                    x._bump_version()
        if self.checks_aliases:
            self._check_aliases(args, named, result)
        if isinstance(result, list) and len(schema.returns) > 1:
            return tuple(result)
        return result

    def _ask(self, found: list[Any], args: tuple[Any, ...], named: dict[str, Any]) -> Any:
        """The result of the handler that is registered for the innermost mode or for a subclass, else of its own."""
        types, modes = tuple(map(type, found)), dispatch_modes.get()
        if modes and type(modes[-1]) in self.handlers:
            token = dispatch_modes.set(modes[:-1])
            try:
                return self.handlers[type(modes[-1])](modes[-1], self.overload, types, args, named)
            finally:
                dispatch_modes.reset(token)
        if not modes and found and type(found[0]) in self.handlers:
            return self.handlers[type(found[0])](type(found[0]), self.overload, types, args, named)
        return ask(self.overload, found, args, named)

    def _written(self, args: Any, named: Any) -> list[tuple[Any, Any]]:
        bound = self.overload._schema.bind(args, named)
        return [(a, bound[a.name]) for a in self.overload._schema.arguments
                if a.alias_info is not None and a.alias_info.is_write and bound.get(a.name) is not None]

    def _kernel(self) -> Callable[..., Any]:
        for key in _COMPUTING_KEYS:
            if key in self.by_key and key not in self.disabled_keys:
                return self.by_key[key]
        if self.original is not None:
            return self.original
        name = self.overload.name()
        raise NotImplementedError(
            f"Could not run '{name}' with arguments from the 'CPU' backend. This could be because the operator doesn't "
            f"exist for this backend. '{name}' is only available for these backends: {sorted(self.by_key)}.")

    def is_composite(self) -> bool:
        """Whether the operator is a function of other operators, which works on tensors without elements too."""
        return any(key in self.by_key for key in _COMPOSITE_KEYS)

    def _meta_kernel(self) -> Callable[..., Any]:
        """The fake kernel.

        Raises:
            NotImplementedError, RuntimeError: there is none (PyTorch's text).
        """
        found = self.fake or self.by_key.get("Meta")
        if found is None and self.original is not None:
            short = self.original.__name__
            raise RuntimeError(
                f"There was no fake impl registered for <CustomOpDef({self.overload.name()})>. This is necessary for "
                f"torch.compile/export/fx tracing to work. Please use `{short}.register_fake` to add an fake impl.")
        if found is None:
            raise NotImplementedError(
                f"{self.overload.name()}: attempted to run this operator with Meta tensors, but there was no fake impl "
                "or Meta kernel registered for this operator. You may have run into this message while using an "
                "operator with PT2 compilation APIs (torch.compile/torch.export); in order to use this operator with "
                "those APIs you'll need to add a fake impl. Please see the following for next steps:  "
                "https://pytorch.org/tutorials/advanced/custom_ops_landing_page.html")
        return found

    def _check_aliases(self, args: Any, named: Any, result: Any) -> None:
        memory = {id(owner(x._array)) for x in tree_leaves((args, named)) if isinstance(x, Tensor) and x._array.size}
        for x in tree_leaves(result):
            if isinstance(x, Tensor) and x._array.size:
                if id(owner(x._array)) in memory:
                    kernel = self._kernel()
                    raise RuntimeError(
                        f"{self.overload.overloadpacket.__name__} (with implementation in {kernel.__module__}): The "
                        "output of this custom operator (1) must not also be an input to this custom operator and (2) "
                        "may not alias any inputs to this custom operator or other returns. The most common way to "
                        "trigger this error is if we have y = custom_op(x) and y and x are the same Tensor. Please "
                        "instead return a clone of the offending output tensor(s) (e.g. return x.clone()) or refactor "
                        "the custom operator to not return y.")
                memory.add(id(owner(x._array)))

    # ----- autograd and vmap -----

    def _apply_function(self, args: tuple[Any, ...], named: dict[str, Any]) -> Any:
        """Run the operator as an `autograd.Function` of the leaves of its arguments."""
        leaves, structure = tree_flatten((args, named))
        if self._function is None:
            self._function = _function_of(self)
        with DisableTorchFunction():
            result = self._function.apply(structure, *leaves)
        returns = self.overload._schema.returns
        return list(result) if len(returns) == 1 and returns[0].type_name.startswith("Tensor[") else result


def _function_of(kernels: OperatorKernels) -> type[Function]:
    """The `autograd.Function` of an operator, with its derivative and its batching rule."""
    overload = kernels.overload
    schema = overload._schema
    lists = len(schema.returns) == 1 and schema.returns[0].type_name.startswith("Tensor[")

    def forward(structure: Any, *leaves: Any) -> Any:
        args, named = tree_unflatten(leaves, structure)
        result = kernels.compute(args, named)
        return tuple(result) if lists else result

    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        structure, *leaves = inputs
        ctx._structure = structure
        written = [x for _, value in kernels._written(*tree_unflatten(leaves, structure))
                   for x in tree_leaves(value) if isinstance(x, Tensor)]
        if written and output is not None:
            ctx.mark_dirty(*[x for x in written if any(x is y for y in tree_leaves(output))])
        if kernels.setup_context is None:
            return
        args, named = tree_unflatten(leaves, structure)
        bound = schema.bind(args, named)
        given = tuple(bound.get(a.name, a.default_value) for a in schema.arguments if not a.kwarg_only)
        only = {a.name: bound.get(a.name, a.default_value) for a in schema.arguments if a.kwarg_only}
        output = list(output) if lists else output
        if only:
            kernels.setup_context(ctx=_NeedsOfArguments(ctx), inputs=given, keyword_only_inputs=only, output=output)
        else:
            kernels.setup_context(ctx=_NeedsOfArguments(ctx), inputs=given, output=output)

    def backward(ctx: Any, *grads: Any) -> Any:
        if kernels.backward is None:
            raise RuntimeError(f"Trying to backward through {overload} but no autograd formula was registered. Please "
                               "use register_autograd to add one.")
        found = kernels.backward(_NeedsOfArguments(ctx), list(grads)) if lists else (
            kernels.backward(_NeedsOfArguments(ctx), *grads))
        found = found if isinstance(found, tuple) else (found,)
        return (None, *_flat_gradients(ctx._structure, found))

    def vmap(info: Any, in_dims: Any, structure: Any, *leaves: Any) -> Any:
        assert kernels.vmap is not None
        args, named = tree_unflatten(leaves, structure)
        dims, _ = tree_unflatten(in_dims[1:], structure)
        if named:
            return kernels.vmap(info, dims, *args, **named)
        return kernels.vmap(info, dims, *args)

    name = f"GeneratedBackwardFor_{overload.namespace}_{overload.overloadpacket.__name__}_{overload._overloadname}"
    members: dict[str, Any] = {"forward": staticmethod(forward), "setup_context": staticmethod(setup_context),
                               "backward": staticmethod(backward)}
    if kernels.vmap is not None:
        members["vmap"] = staticmethod(vmap)
    else:
        members["generate_vmap_rule"] = False
        members["vmap"] = staticmethod(_one_by_one(kernels))
    return type(name, (Function,), members)


def _one_by_one(kernels: OperatorKernels) -> Callable[..., Any]:
    """The batching rule of an operator without one: a call for each example."""
    def vmap(info: Any, in_dims: Any, structure: Any, *leaves: Any) -> Any:
        from .._tensor import functions

        calls = []
        for i in range(info.batch_size):
            example = [x if dim is None else x.select(dim, i) for x, dim in zip(leaves, in_dims[1:], strict=True)]
            args, named = tree_unflatten(example, structure)
            calls.append(kernels(*args, **named))
        if isinstance(calls[0], (tuple, list)):
            return tuple(functions.stack(list(column)) for column in zip(*calls, strict=True)), (0,) * len(calls[0])
        return functions.stack(calls), 0

    return vmap


class _NeedsOfArguments:
    """The context of an operator's Function, whose `needs_input_grad` is by argument, not by leaf."""

    def __init__(self, ctx: Any) -> None:
        object.__setattr__(self, "_ctx", ctx)

    @property
    def needs_input_grad(self) -> Any:
        """For each argument whether its gradient is needed; a list for a list of tensors."""
        args, named = tree_unflatten(self._ctx.needs_input_grad[1:], self._ctx._structure)
        return (*args, *named.values())

    def __getattr__(self, name: str) -> Any:
        return getattr(self._ctx, name)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self._ctx, name, value)


def _flat_gradients(structure: Any, gradients: tuple[Any, ...]) -> list[Any]:
    """One gradient for each leaf of the arguments."""
    args_structure, named_structure = structure.children()
    flat: list[Any] = []
    for child, gradient in zip(args_structure.children(), gradients, strict=False):
        if child.is_leaf():
            flat.append(gradient)
        elif gradient is None:
            flat.extend([None] * child.num_leaves)
        else:
            flat.extend(gradient)
    missing = args_structure.num_leaves + named_structure.num_leaves - len(flat)
    return flat + [None] * missing


__all__ = ["OperatorKernels", "_AutoDispatchBelowAutograd", "refuse_keyword_tensors"]
