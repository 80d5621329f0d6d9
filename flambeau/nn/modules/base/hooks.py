"""Module hooks: the global hook registry, and the autograd nodes that run full backward hooks."""

from __future__ import annotations

import warnings
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Any

from ...._tensor import Tensor
from ....engine.nodes.hooks import RemovableHandle
from ....modes import module_changes
from ....warning_location import user_stacklevel

FULL_HOOK_URL = ("https://docs.pytorch.org/docs/main/generated/torch.nn.Module.html"
                 "#torch.nn.Module.register_full_backward_hook")


class GlobalHooks:
    """Hooks of all modules; `any` holds the ids of those that run in `Module.__call__`."""

    def __init__(self) -> None:
        self.any: OrderedDict[int, bool] = OrderedDict()
        self.forward_pre: OrderedDict[int, Callable] = OrderedDict()
        self.forward: OrderedDict[int, Callable] = OrderedDict()
        self.forward_with_kwargs: OrderedDict[int, bool] = OrderedDict()
        self.forward_always: OrderedDict[int, bool] = OrderedDict()
        self.backward_pre: OrderedDict[int, Callable] = OrderedDict()
        self.backward: OrderedDict[int, Callable] = OrderedDict()
        self.backward_is_full: bool | None = None
        self.buffer_registration: OrderedDict[int, Callable] = OrderedDict()
        self.module_registration: OrderedDict[int, Callable] = OrderedDict()
        self.parameter_registration: OrderedDict[int, Callable] = OrderedDict()

    def add(self, hooks: OrderedDict, hook: Callable, *id_sets: OrderedDict) -> RemovableHandle:
        return add_hook(hooks, hook, False, self.any, *id_sets)


GLOBAL_HOOKS = GlobalHooks()


def add_hook(hooks: OrderedDict, hook: Callable, prepend: bool = False, *id_sets: OrderedDict) -> RemovableHandle:
    """Register a hook, and add its id to each of `id_sets` (with_kwargs, always_call, ...)."""
    module_changes[0] += 1
    handle = RemovableHandle(hooks, extra_dict=list(id_sets))
    hooks[handle.id] = hook
    for id_set in id_sets:
        id_set[handle.id] = True
    if prepend:
        hooks.move_to_end(handle.id, last=False)
    return handle


def register_module_buffer_registration_hook(hook: Callable) -> RemovableHandle:
    """Run `hook(module, name, buffer)` when a module registers a buffer; a result other than None replaces it."""
    return add_hook(GLOBAL_HOOKS.buffer_registration, hook)


def register_module_module_registration_hook(hook: Callable) -> RemovableHandle:
    """Run `hook(module, name, submodule)` when a module registers a submodule; a result other than None replaces it."""
    return add_hook(GLOBAL_HOOKS.module_registration, hook)


def register_module_parameter_registration_hook(hook: Callable) -> RemovableHandle:
    """Run `hook(module, name, param)` when a module registers a parameter; a result other than None replaces it."""
    return add_hook(GLOBAL_HOOKS.parameter_registration, hook)


def register_module_forward_pre_hook(hook: Callable) -> RemovableHandle:
    """Run `hook(module, args)` before every module's forward; a result other than None replaces `args`."""
    return GLOBAL_HOOKS.add(GLOBAL_HOOKS.forward_pre, hook)


def register_module_forward_hook(hook: Callable, *, with_kwargs: bool = False,
                                 always_call: bool = False) -> RemovableHandle:
    """Run `hook(module, args, output)` after every module's forward; a result other than None replaces `output`."""
    id_sets = [GLOBAL_HOOKS.forward_with_kwargs] * with_kwargs + [GLOBAL_HOOKS.forward_always] * always_call
    return GLOBAL_HOOKS.add(GLOBAL_HOOKS.forward, hook, *id_sets)


def register_module_full_backward_pre_hook(hook: Callable) -> RemovableHandle:
    """Run `hook(module, grad_output)` in the backward of every module; see `Module.register_full_backward_pre_hook`."""
    return GLOBAL_HOOKS.add(GLOBAL_HOOKS.backward_pre, hook)


def register_module_backward_hook(hook: Callable) -> RemovableHandle:
    """Deprecated: run `hook(module, grad_input, grad_output)` at the `grad_fn` of the output of every module."""
    return _register_global_backward(hook, full=False)


def register_module_full_backward_hook(hook: Callable) -> RemovableHandle:
    """Run `hook(module, grad_input, grad_output)` for every module; see `Module.register_full_backward_hook`."""
    return _register_global_backward(hook, full=True)


def _register_global_backward(hook: Callable, full: bool) -> RemovableHandle:
    if GLOBAL_HOOKS.backward_is_full is (not full):
        raise RuntimeError("Cannot use both regular backward hooks and full backward hooks as a "
                           "global Module hook. Please use only one of them.")
    GLOBAL_HOOKS.backward_is_full = full
    return GLOBAL_HOOKS.add(GLOBAL_HOOKS.backward, hook)


def _identity_function() -> Any:
    """The identity `Function` that gives the inputs, or the outputs, of a module call one common node."""
    global _IDENTITY
    if _IDENTITY is None:
        from ...._tensor.custom_functions.function import Function

        class BackwardHookFunction(Function):
            @staticmethod
            def forward(ctx: Any, *args: Tensor) -> tuple[Tensor, ...]:
                ctx.mark_non_differentiable(*[arg for arg in args if not arg.requires_grad])
                return args

            @staticmethod
            def backward(ctx: Any, *grads: Any) -> tuple[Any, ...]:
                return grads

        _IDENTITY = BackwardHookFunction
    return _IDENTITY


_IDENTITY: Any = None


class BackwardHook:
    """Runs the full backward hooks of one module call.

    The inputs and the outputs each pass through an identity node. A post-hook of the output node, which comes after
    the pre-hooks of users, receives the gradients of all outputs and runs the backward pre-hooks. A post-hook of the
    input node receives the gradients of all inputs and runs the backward hooks.
    """

    def __init__(self, module: Any, user_hooks: Sequence[Callable], user_pre_hooks: Sequence[Callable]) -> None:
        self.user_hooks = user_hooks
        self.user_pre_hooks = user_pre_hooks
        self.module = module
        self.grad_outputs: tuple | None = None
        self.output_positions: list[int] | None = None
        self.input_positions: list[int] | None = None
        self.n_outputs = -1
        self.n_inputs = -1

    def setup_input_hook(self, args: tuple) -> tuple:
        """`args`, its tensors replaced by outputs of the input node."""
        result, self.input_positions = self._apply_identity(args, self._register_input_hook)
        self.n_inputs = len(args)
        return result

    def setup_output_hook(self, result: Any) -> Any:
        """`result`, a tensor or a tuple, its tensors replaced by outputs of the output node."""
        single = not isinstance(result, tuple)
        values = (result,) if single else result
        values, self.output_positions = self._apply_identity(values, self._register_output_hook)
        self.n_outputs = len(values)
        return values[0] if single else values

    def _apply_identity(self, values: tuple, register: Callable[[Any], None]) -> tuple[tuple, list[int] | None]:
        positions = [i for i, value in enumerate(values) if isinstance(value, Tensor)]
        if not any(values[i].requires_grad for i in positions):
            return values, None
        from ...._tensor import is_grad_enabled

        if not is_grad_enabled():
            return values, None
        outputs = _identity_function().apply(*[values[i] for i in positions])
        if not outputs:
            raise RuntimeError("Cannot set Module backward hook for a Module with no input Tensors.")
        if isinstance(outputs, Tensor):
            outputs = (outputs,)
        nodes = [t.grad_fn for t in outputs
                 if t.grad_fn is not None and t.grad_fn.name() == "BackwardHookFunctionBackward"]
        if not nodes:
            raise RuntimeError("Error while setting up backward hooks. Please open "
                               "an issue with a code sample to reproduce this.")
        register(nodes[0])
        all_values = list(values)
        for i, tensor in zip(positions, outputs, strict=True):
            all_values[i] = tensor
        rebuilt = type(values)(*all_values) if hasattr(values, "_fields") else tuple(all_values)
        return rebuilt, positions

    def _register_input_hook(self, node: Any) -> None:
        def hook(grad_input: tuple, _: tuple) -> tuple | None:
            if self.grad_outputs is None:
                # the outputs in use do not depend on the input node
                return None
            full = self._pack_with_none(self.input_positions, grad_input, self.n_inputs)
            new_grads = self._run_hooks(full, self.grad_outputs, len(grad_input))
            self.grad_outputs = None
            return new_grads

        node.register_hook(hook)

    def _run_hooks(self, grad_input: tuple, grad_output: tuple, expected: int) -> tuple:
        for hook in self.user_hooks:
            out = hook(self.module, grad_input, grad_output)
            if out is None:
                continue
            if len(out) != len(grad_input):
                raise RuntimeError("Backward hook returned an invalid number of grad_input, "
                                   f"got {len(out)}, but expected {len(grad_input)}")
            grad_input = out
        return tuple(grad_input[i] for i in self.input_positions or ())

    def _register_output_hook(self, node: Any) -> None:
        def hook(_: tuple, grad_output: tuple) -> tuple:
            grads = self._pack_with_none(self.output_positions, grad_output, self.n_outputs)
            for pre_hook in self.user_pre_hooks:
                out = pre_hook(self.module, grads)
                if out is None:
                    continue
                if len(out) != len(grads):
                    raise RuntimeError("Backward pre hook returned an invalid number of grad_output, "
                                       f"got {len(out)}, but expected {len(grads)}")
                grads = out
            self.grad_outputs = grads
            if self.input_positions is None:
                self._run_hooks_without_inputs()
            return tuple(grads[i] for i in self.output_positions or ())

        node.register_hook(hook)

    def _run_hooks_without_inputs(self) -> None:
        if self.user_hooks:
            warnings.warn("Full backward hook is firing when gradients are computed with respect to module "
                          f"outputs since no inputs require gradients. See {FULL_HOOK_URL} for more details.",
                          stacklevel=user_stacklevel())
        none = (None,) * self.n_inputs
        for hook in self.user_hooks:
            out = hook(self.module, none, self.grad_outputs)
            if out is not None and not (isinstance(out, tuple) and all(grad is None for grad in out)):
                raise RuntimeError("Backward hook for Modules where no input requires "
                                   "gradient should always return None or None for all gradients.")
        self.grad_outputs = None

    @staticmethod
    def _pack_with_none(positions: list[int] | None, values: Sequence, n: int) -> tuple:
        """A tuple of `n` elements: `values` at `positions`, None elsewhere."""
        full: list[Any] = [None] * n
        for i, value in zip(positions or (), values, strict=True):
            full[i] = value
        return tuple(full)


def warn_if_grads_missing(inputs: Any, result: Any, node: Any) -> None:
    """Warn if a non-full backward hook misses gradients.

    It is a hook of the output's `grad_fn`, so it sees all gradients only if forward consists of that single node.
    """
    deprecated = "is deprecated and will be removed in future versions. This hook will be missing some "
    advice = "Please use register_full_backward_hook to get the documented behavior."
    if not (isinstance(result, Tensor)
            or (isinstance(result, tuple) and all(isinstance(r, Tensor) for r in result))):
        message = ("Using non-full backward hooks on a Module that does not return a "
                   f"single Tensor or a tuple of Tensors {deprecated}of the grad_output. {advice}")
    elif not (isinstance(inputs, Tensor)
              or (isinstance(inputs, tuple) and all(isinstance(i, Tensor) for i in inputs))):
        message = ("Using non-full backward hooks on a Module that does not take as input a "
                   f"single Tensor or a tuple of Tensors {deprecated}of the grad_input. {advice}")
    elif isinstance(result, tuple) and len({r.grad_fn for r in result}) > 1:
        message = ("Using a non-full backward hook when outputs are generated by different autograd Nodes "
                   f"{deprecated}grad_output. {advice}")
    else:
        inputs = (inputs,) if isinstance(inputs, Tensor) else inputs
        inputs_nodes = {i.grad_fn for i in inputs if i.grad_fn is not None}
        if {n[0] for n in node.next_functions} == inputs_nodes:  # as in PyTorch, leaves count as other nodes
            return
        message = ("Using a non-full backward hook when the forward contains multiple autograd Nodes "
                   f"{deprecated}grad_input. {advice}")
    warnings.warn(message, FutureWarning, stacklevel=4)
