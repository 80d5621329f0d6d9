"""`Module.__call__`: runs `forward` with the module's and the global hooks."""

from __future__ import annotations

import sys
import warnings
from collections import OrderedDict
from collections.abc import Callable
from functools import partial
from typing import Any

from ...._tensor import Tensor
from ....engine.nodes.hooks import RemovableHandle
from ....modes import active_tracer, special
from .hooks import GLOBAL_HOOKS, BackwardHook, add_hook, warn_if_grads_missing


class CallMixin:
    """Mixin of `Module`: call, hook registration, `compile`."""

    training: bool
    _forward_hooks: OrderedDict
    _forward_hooks_with_kwargs: OrderedDict
    _forward_hooks_always_called: OrderedDict
    _forward_pre_hooks: OrderedDict
    _forward_pre_hooks_with_kwargs: OrderedDict
    _backward_hooks: OrderedDict
    _backward_pre_hooks: OrderedDict
    _is_full_backward_hook: bool | None

    def _forward_unimplemented(self, *input: Any) -> None:
        raise NotImplementedError(
            f'Module [{type(self).__name__}] is missing the required "forward" function')

    forward: Callable[..., Any] = _forward_unimplemented

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        own = self.__dict__
        if special[0]:
            _notify_tracer(self)
        if (own["_forward_hooks"] or own["_forward_pre_hooks"] or own["_backward_hooks"]
                or own["_backward_pre_hooks"] or GLOBAL_HOOKS.any or "_compiled_call_impl" in own):
            if "_compiled_call_impl" in own:
                return own["_compiled_call_impl"](*args, **kwargs)
            return _call_with_hooks(self, args, kwargs)
        return self.forward(*args, **kwargs)

    def _call_impl(self, *args: Any, **kwargs: Any) -> Any:
        if special[0]:
            _notify_tracer(self)
        return _call_with_hooks(self, args, kwargs)

    def compile(self, *args: Any, **kwargs: Any) -> None:
        """Compile the calls of this module, hooks included, with `torch.compile`; copies are not compiled.

        Source: https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html#torch.nn.Module.compile

        Args:
            args: positional arguments of `torch.compile` after the function.
            kwargs: keyword arguments of `torch.compile`.

        >>> import flambeau as torch
        >>> m = torch.nn.Tanh()
        >>> m.compile()
        >>> [m(torch.zeros(2)).tolist() for _ in range(3)][-1]
        [0.0, 0.0]
        """
        package = sys.modules[__name__.partition(".")[0]]
        self.__dict__["_compiled_call_impl"] = package.compile(self._call_impl, *args, **kwargs)

    def register_forward_pre_hook(self, hook: Callable, *, prepend: bool = False,
                                  with_kwargs: bool = False) -> RemovableHandle:
        """Run `hook(module, args)` before each forward; a result other than None replaces `args`.

        Args:
            hook: the function.
            prepend: run it before the hooks registered so far.
            with_kwargs: call `hook(module, args, kwargs)`, which returns None or `(args, kwargs)`.

        Returns:
            A handle whose `remove()` unregisters the hook.

        >>> import flambeau as torch
        >>> m = torch.nn.Identity()
        >>> _ = m.register_forward_pre_hook(lambda module, args: args[0] * 2)
        >>> m(torch.tensor([1.0]))
        tensor([2.])
        """
        id_sets = [self._forward_pre_hooks_with_kwargs] * with_kwargs
        return add_hook(self._forward_pre_hooks, hook, prepend, *id_sets)

    def register_forward_hook(self, hook: Callable, *, prepend: bool = False, with_kwargs: bool = False,
                              always_call: bool = False) -> RemovableHandle:
        """Run `hook(module, args, output)` after each forward; a result other than None replaces `output`.

        Args:
            hook: the function.
            prepend: run it before the hooks registered so far.
            with_kwargs: call `hook(module, args, kwargs, output)`.
            always_call: run the hook even if forward raises.

        Returns:
            A handle whose `remove()` unregisters the hook.

        >>> import flambeau as torch
        >>> m = torch.nn.Identity()
        >>> _ = m.register_forward_hook(lambda module, args, output: -output)
        >>> m(torch.tensor([1.0]))
        tensor([-1.])
        """
        id_sets = [self._forward_hooks_with_kwargs] * with_kwargs + [self._forward_hooks_always_called] * always_call
        return add_hook(self._forward_hooks, hook, prepend, *id_sets)

    def register_full_backward_pre_hook(self, hook: Callable, prepend: bool = False) -> RemovableHandle:
        """Run `hook(module, grad_output)` in backward, once the gradients of the outputs are computed.

        A result other than None replaces `grad_output`.

        Args:
            hook: the function.
            prepend: run it before the hooks registered so far.

        Returns:
            A handle whose `remove()` unregisters the hook.

        >>> import flambeau as torch
        >>> m = torch.nn.Identity()
        >>> _ = m.register_full_backward_pre_hook(lambda module, grad_output: print(grad_output))
        >>> m(torch.tensor([1.0], requires_grad=True)).sum().backward()
        (tensor([1.]),)
        """
        return add_hook(self._backward_pre_hooks, hook, prepend)

    def register_full_backward_hook(self, hook: Callable, prepend: bool = False) -> RemovableHandle:
        """Run `hook(module, grad_input, grad_output)` in backward, once the gradients of the inputs are computed.

        A result other than None replaces `grad_input`. Both are tuples, with None for non-tensor arguments and outputs.

        Args:
            hook: the function.
            prepend: run it before the hooks registered so far.

        Returns:
            A handle whose `remove()` unregisters the hook.

        Raises:
            RuntimeError: the module has non-full backward hooks.

        >>> import flambeau as torch
        >>> m = torch.nn.ReLU()
        >>> _ = m.register_full_backward_hook(lambda module, grad_input, grad_output: print(grad_input))
        >>> m(torch.tensor([-1.0, 1.0], requires_grad=True)).sum().backward()
        (tensor([0., 1.]),)
        """
        _set_backward_hook_kind(self, full=True)
        return add_hook(self._backward_hooks, hook, prepend)

    def register_backward_hook(self, hook: Callable) -> RemovableHandle:
        """Deprecated: use `register_full_backward_hook`. Hooks the `grad_fn` of the output only.

        Args:
            hook: called as `hook(module, grad_input, grad_output)`, the gradients of that node.

        Raises:
            RuntimeError: the module has full backward hooks.
        """
        _set_backward_hook_kind(self, full=False)
        return add_hook(self._backward_hooks, hook)


def _notify_tracer(module: CallMixin) -> None:
    """Notify the active tracer, if any, of a module call."""
    tracer = active_tracer.get()
    if tracer is not None:
        tracer.on_module_call(module)


def _call_with_hooks(module: CallMixin, args: tuple, kwargs: dict[str, Any]) -> Any:
    if not (module._forward_hooks_always_called or GLOBAL_HOOKS.forward_always):
        return _forward_with_hooks(module, args, kwargs, set())
    called_ids: set[int] = set()
    result: list[Any] = [None]
    try:
        return _forward_with_hooks(module, args, kwargs, called_ids, result)
    except Exception:
        _run_always_call_hooks(module, args, kwargs, called_ids, result[0])
        raise


def _forward_with_hooks(module: CallMixin, args: tuple, kwargs: dict[str, Any], called_ids: set[int],
                        last_result: list[Any] | None = None) -> Any:
    args, kwargs = _run_pre_hooks(module, args, kwargs)
    full, non_full, pre = _backward_hooks_to_run(module)
    backward_hook = BackwardHook(module, full, pre) if full or pre else None
    if backward_hook is not None:
        args = backward_hook.setup_input_hook(args)
    result = module.forward(*args, **kwargs)
    for hook_id, hook, with_kwargs in _forward_hooks_to_run(module):
        called_ids.add(hook_id)
        changed = hook(module, args, kwargs, result) if with_kwargs else hook(module, args, result)
        if changed is not None:
            result = changed
        if last_result is not None:
            last_result[0] = result
    if backward_hook is not None:
        if not isinstance(result, (Tensor, tuple)):
            warnings.warn("For backward hooks to be called, module output should be a Tensor or a tuple of "
                          f"Tensors but received {type(result)}", stacklevel=4)
        result = backward_hook.setup_output_hook(result)
    if non_full:
        _register_non_full_hooks(module, args, result, non_full)
    return result


def _run_pre_hooks(module: CallMixin, args: tuple, kwargs: dict[str, Any]) -> tuple[tuple, dict[str, Any]]:
    with_kwargs = module._forward_pre_hooks_with_kwargs
    for hook_id, hook in (*GLOBAL_HOOKS.forward_pre.items(), *module._forward_pre_hooks.items()):
        if hook_id in with_kwargs:
            changed = hook(module, args, kwargs)
            if changed is None:
                continue
            if not (isinstance(changed, tuple) and len(changed) == 2):
                raise RuntimeError("forward pre-hook must return None or a tuple "
                                   f"of (new_args, new_kwargs), but got {changed}.")
            args, kwargs = changed
        else:
            changed = hook(module, args)
            if changed is not None:
                args = changed if isinstance(changed, tuple) else (changed,)
    return args, kwargs


def _forward_hooks_to_run(module: CallMixin) -> list[tuple[int, Callable, bool]]:
    own_with_kwargs = module._forward_hooks_with_kwargs
    return ([(i, hook, i in GLOBAL_HOOKS.forward_with_kwargs) for i, hook in GLOBAL_HOOKS.forward.items()]
            + [(i, hook, i in own_with_kwargs) for i, hook in module._forward_hooks.items()])


def _run_always_call_hooks(module: CallMixin, args: tuple, kwargs: dict[str, Any], called_ids: set[int],
                           result: Any) -> None:
    """After an exception in forward, run the remaining `always_call` hooks; their own exceptions become warnings."""
    for hook_id, hook, with_kwargs in _forward_hooks_to_run(module):
        is_global = hook_id in GLOBAL_HOOKS.forward_always
        if hook_id in called_ids or not (is_global or hook_id in module._forward_hooks_always_called):
            continue
        try:
            changed = hook(module, args, kwargs, result) if with_kwargs else hook(module, args, result)
            if changed is not None:
                result = changed
        except Exception as error:
            kind = "global module" if is_global else "module"
            warnings.warn(f"{kind} forward hook with ``always_call=True`` raised an exception that was "
                          f"silenced as another error was raised in forward: {error!s}", stacklevel=4)


def _backward_hooks_to_run(module: CallMixin) -> tuple[list[Callable], list[Callable], list[Callable]]:
    """The full, non-full and pre-hooks of backward, global hooks first."""
    full: list[Callable] = []
    non_full: list[Callable] = []
    (full if GLOBAL_HOOKS.backward_is_full else non_full).extend(GLOBAL_HOOKS.backward.values())
    (full if module._is_full_backward_hook else non_full).extend(module._backward_hooks.values())
    return full, non_full, [*GLOBAL_HOOKS.backward_pre.values(), *module._backward_pre_hooks.values()]


def _register_non_full_hooks(module: CallMixin, args: tuple, result: Any, hooks: list[Callable]) -> None:
    first = result
    while not isinstance(first, Tensor):
        if isinstance(first, dict):
            first = next(value for value in first.values() if isinstance(value, Tensor))
        else:
            first = first[0]
    node = first.grad_fn
    if node is None:
        return
    for hook in hooks:
        node.register_hook(partial(hook, module))
    warn_if_grads_missing(args, result, node)


def _set_backward_hook_kind(module: CallMixin, full: bool) -> None:
    if module._is_full_backward_hook is (not full):
        raise RuntimeError("Cannot use both regular backward hooks and full backward hooks on a "
                           "single Module. Please use only one of them.")
    module._is_full_backward_hook = full
