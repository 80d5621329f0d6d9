"""`Module`: the base class of layers and models, with registered parameters, buffers and submodules.

`__setattr__` registers by type: a `Parameter` in `_parameters`, a `Module` in `_modules`, a `Buffer` in `_buffers`,
anything else in `__dict__`. Three mixins hold the rest: `call` (forward and hooks), `state_dict` (saving, loading),
`conversion` (dtype, device). Helpers are functions, not methods, so that they take no names from subclasses.
"""

from __future__ import annotations

import sys
from collections import OrderedDict
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any, Self, TypeVar

from ..._tensor import Parameter, Tensor
from ...modes import module_changes
from ..parameter import Buffer
from ..typename import typename
from .base.call import CallMixin
from .base.conversion import ConversionMixin
from .base.hooks import (
    GLOBAL_HOOKS,
    register_module_backward_hook,
    register_module_buffer_registration_hook,
    register_module_forward_hook,
    register_module_forward_pre_hook,
    register_module_full_backward_hook,
    register_module_full_backward_pre_hook,
    register_module_module_registration_hook,
    register_module_parameter_registration_hook,
)
from .base.state_dict import EXTRA_STATE, StateDictMixin, _IncompatibleKeys, _WrappedHook

_EXTRA_STATE_KEY_SUFFIX = EXTRA_STATE

#: PyTorch's names of the global hooks
_global_forward_pre_hooks, _global_forward_hooks = GLOBAL_HOOKS.forward_pre, GLOBAL_HOOKS.forward
_global_backward_pre_hooks, _global_backward_hooks = GLOBAL_HOOKS.backward_pre, GLOBAL_HOOKS.backward
_global_forward_hooks_always_called = GLOBAL_HOOKS.forward_always
_global_forward_hooks_with_kwargs = GLOBAL_HOOKS.forward_with_kwargs
_global_buffer_registration_hooks = GLOBAL_HOOKS.buffer_registration
_global_module_registration_hooks = GLOBAL_HOOKS.module_registration
_global_parameter_registration_hooks = GLOBAL_HOOKS.parameter_registration


class _ModuleWithHooks(ModuleType):
    """The type of this module: assignment to a dictionary of global hooks replaces it, as in PyTorch."""

    def __setattr__(self, name: str, value: Any) -> None:
        field = name.removeprefix("_global_").removesuffix("_hooks")
        if name.startswith("_global_") and name.endswith("_hooks") and hasattr(GLOBAL_HOOKS, field):
            setattr(GLOBAL_HOOKS, field, value)
            hooks = GLOBAL_HOOKS
            if not (hooks.forward or hooks.forward_pre or hooks.backward or hooks.backward_pre):
                hooks.any.clear()
        super().__setattr__(name, value)


sys.modules[__name__].__class__ = _ModuleWithHooks

__all__ = [
    "Module",
    "_IncompatibleKeys",
    "_WrappedHook",
    "register_module_backward_hook",
    "register_module_buffer_registration_hook",
    "register_module_forward_hook",
    "register_module_forward_pre_hook",
    "register_module_full_backward_hook",
    "register_module_full_backward_pre_hook",
    "register_module_module_registration_hook",
    "register_module_parameter_registration_hook",
]


class Module(CallMixin, StateDictMixin, ConversionMixin):
    """Base class of all neural network modules.

    A subclass creates parameters and submodules in `__init__`, after `super().__init__()`, and computes in `forward`.
    Calling the module runs `forward` and the hooks.

    >>> import flambeau as torch
    >>> class Scale(torch.nn.Module):
    ...     def __init__(self):
    ...         super().__init__()
    ...         self.factor = torch.nn.Parameter(torch.tensor(3.0))
    ...     def forward(self, x):
    ...         return x * self.factor
    >>> Scale()(torch.tensor(2.0))
    tensor(6., grad_fn=<MulBackward0>)
    """

    #: the type variable of state dicts in annotations
    T_destination = TypeVar("T_destination", bound=dict[str, Any])

    dump_patches: bool = False
    call_super_init: bool = False

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if not self.call_super_init:
            if kwargs:
                raise TypeError(f"{type(self).__name__}.__init__() got an unexpected keyword argument "
                                f"'{next(iter(kwargs))}'")
            if args:
                raise TypeError(f"{type(self).__name__}.__init__() takes 1 positional argument "
                                f"but {len(args) + 1} were given")
        # written to __dict__: __setattr__ reads these
        own = self.__dict__
        own["training"] = True
        own["_parameters"] = {}
        own["_buffers"] = {}
        own["_non_persistent_buffers_set"] = set()
        own["_backward_pre_hooks"] = OrderedDict()
        own["_backward_hooks"] = OrderedDict()
        own["_is_full_backward_hook"] = None
        own["_forward_hooks"] = OrderedDict()
        own["_forward_hooks_with_kwargs"] = OrderedDict()
        own["_forward_hooks_always_called"] = OrderedDict()
        own["_forward_pre_hooks"] = OrderedDict()
        own["_forward_pre_hooks_with_kwargs"] = OrderedDict()
        own["_state_dict_hooks"] = OrderedDict()
        own["_state_dict_pre_hooks"] = OrderedDict()
        own["_load_state_dict_pre_hooks"] = OrderedDict()
        own["_load_state_dict_post_hooks"] = OrderedDict()
        own["_modules"] = {}
        if self.call_super_init:
            super().__init__(*args, **kwargs)

    # -- attributes ----------------------------------------------------------------------------------

    def __getattr__(self, name: str) -> Any:
        own = self.__dict__
        for kind in ("_parameters", "_buffers", "_modules"):
            members = own.get(kind)
            if members is not None and name in members:
                return members[name]
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")

    def __setattr__(self, name: str, value: Any) -> None:
        module_changes[0] += 1
        own = self.__dict__
        params = own.get("_parameters")
        if isinstance(value, Parameter):
            if params is None:
                raise AttributeError("cannot assign parameters before Module.__init__() call")
            _remove_attribute(self, name, "_buffers", "_modules")
            self.register_parameter(name, value)
            return
        if params is not None and name in params:
            if value is not None:
                raise TypeError(f"cannot assign '{typename(value)}' as parameter '{name}' "
                                "(torch.nn.Parameter or None expected)")
            self.register_parameter(name, value)
            return
        modules = own.get("_modules")
        if isinstance(value, Module):
            if modules is None:
                raise AttributeError("cannot assign module before Module.__init__() call")
            _remove_attribute(self, name, "_parameters", "_buffers")
            modules[name] = _run_registration_hooks(self, GLOBAL_HOOKS.module_registration, name, value)
            return
        if modules is not None and name in modules:
            if value is not None:
                raise TypeError(f"cannot assign '{typename(value)}' as child module '{name}' "
                                "(torch.nn.Module or None expected)")
            modules[name] = _run_registration_hooks(self, GLOBAL_HOOKS.module_registration, name, value)
            return
        buffers = own.get("_buffers")
        is_buffer = isinstance(value, Tensor) and isinstance(value, Buffer)
        if is_buffer or (buffers is not None and name in buffers):
            _set_buffer(self, name, value, is_buffer, buffers)
            return
        super().__setattr__(name, value)

    def __delattr__(self, name: str) -> None:
        module_changes[0] += 1
        for kind in ("_parameters", "_buffers", "_modules"):
            members = self.__dict__.get(kind, {})
            if name in members:
                del members[name]
                if kind == "_buffers":
                    self._non_persistent_buffers_set.discard(name)
                return
        super().__delattr__(name)

    def __dir__(self) -> list[str]:
        names = [*dir(type(self)), *self.__dict__, *self._parameters, *self._modules, *self._buffers]
        # "0", "1", ... of Sequential are not valid identifiers
        return sorted(name for name in names if not name[0].isdigit())

    def __getstate__(self) -> dict[str, Any]:
        state = self.__dict__.copy()
        state.pop("_compiled_call_impl", None)
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        # modules pickled by older versions lack some of these
        for name in ("_forward_pre_hooks", "_forward_pre_hooks_with_kwargs", "_forward_hooks_with_kwargs",
                     "_forward_hooks_always_called", "_state_dict_hooks", "_state_dict_pre_hooks",
                     "_load_state_dict_pre_hooks", "_load_state_dict_post_hooks", "_backward_pre_hooks"):
            self.__dict__.setdefault(name, OrderedDict())
        self.__dict__.setdefault("_non_persistent_buffers_set", set())
        self.__dict__.setdefault("_is_full_backward_hook", None)

    # -- registration ------------------------------------------------------------------------------

    def register_buffer(self, name: str, tensor: Tensor | None, persistent: bool = True) -> None:
        """Register a tensor that is not trained.

        Args:
            name: the attribute name.
            tensor: the buffer, or None.
            persistent: whether it is part of the state dict.

        Raises:
            KeyError: the name is empty, contains a dot, or is in use.
            TypeError: the name is not a string, or `tensor` is neither a tensor nor None.

        >>> import flambeau as torch
        >>> m = torch.nn.Module()
        >>> m.register_buffer("mean", torch.zeros(2))
        >>> m.mean
        tensor([0., 0.])
        """
        module_changes[0] += 1
        if "_buffers" not in self.__dict__:
            raise AttributeError("cannot assign buffer before Module.__init__() call")
        _check_name(self, name, "buffer", self._buffers)
        if tensor is not None and not isinstance(tensor, Tensor):
            raise TypeError(f"cannot assign '{typename(tensor)}' object to buffer '{name}' "
                            "(torch Tensor or None required)")
        self._buffers[name] = _run_registration_hooks(self, GLOBAL_HOOKS.buffer_registration, name, tensor)
        if persistent:
            self._non_persistent_buffers_set.discard(name)
        else:
            self._non_persistent_buffers_set.add(name)

    def register_parameter(self, name: str, param: Parameter | None) -> None:
        """Register a parameter.

        Args:
            name: the attribute name.
            param: the parameter; None sets the attribute to None.

        Raises:
            KeyError: the name is empty, contains a dot, or is in use.
            TypeError: the name is not a string, or `param` is neither a Parameter nor None.
            ValueError: `param` is not a leaf tensor.

        >>> import flambeau as torch
        >>> m = torch.nn.Module()
        >>> m.register_parameter("bias", None)
        >>> m.bias is None
        True
        """
        module_changes[0] += 1
        if "_parameters" not in self.__dict__:
            raise AttributeError("cannot assign parameter before Module.__init__() call")
        _check_name(self, name, "parameter", self._parameters)
        if param is not None:
            if not isinstance(param, Parameter):
                raise TypeError(f"cannot assign '{typename(param)}' object to parameter '{name}' "
                                "(torch.nn.Parameter or None required)")
            if param.grad_fn is not None:
                raise ValueError(
                    f"Cannot assign non-leaf Tensor to parameter '{name}'. Model "
                    f"parameters must be created explicitly. To express '{name}' "
                    "as a function of another Tensor, compute the value in the forward() method.")
            param = _run_registration_hooks(self, GLOBAL_HOOKS.parameter_registration, name, param)
        self._parameters[name] = param

    def add_module(self, name: str, module: Module | None) -> None:
        """Register a submodule.

        Args:
            name: the attribute name.
            module: the submodule; None sets the attribute to None.

        Raises:
            KeyError: the name is empty, contains a dot, or is in use.
            TypeError: the name is not a string, or `module` is neither a Module nor None.

        >>> import flambeau as torch
        >>> m = torch.nn.Module()
        >>> m.add_module("act", torch.nn.ReLU())
        >>> m.act
        ReLU()
        """
        module_changes[0] += 1
        if not isinstance(module, Module) and module is not None:
            raise TypeError(f"{typename(module)} is not a Module subclass")
        if not isinstance(name, str):
            raise TypeError(f"module name should be a string. Got {typename(name)}")
        if hasattr(self, name) and name not in self._modules:
            raise KeyError(f"attribute '{name}' already exists")
        if "." in name:
            raise KeyError(f'module name can\'t contain ".", got: {name}')
        if name == "":
            raise KeyError('module name can\'t be empty string ""')
        self._modules[name] = _run_registration_hooks(self, GLOBAL_HOOKS.module_registration, name, module)

    def register_module(self, name: str, module: Module | None) -> None:
        """Alias of `add_module`."""
        self.add_module(name, module)

    # -- by path -----------------------------------------------------------------------------------

    def get_submodule(self, target: str) -> Module:
        """The submodule at a dotted path; the empty path is the module itself.

        Args:
            target: the path, such as "encoder.0.norm".

        Raises:
            AttributeError: the path does not exist, or is not a module.

        >>> import flambeau as torch
        >>> torch.nn.Sequential(torch.nn.ReLU()).get_submodule("0")
        ReLU()
        """
        module = self
        for name in target.split(".") if target else ():
            if not hasattr(module, name):
                raise AttributeError(f"{module._get_name()} has no attribute `{name}`")
            module = getattr(module, name)
            if not isinstance(module, Module):
                raise AttributeError(f"`{name}` is not an nn.Module")
        return module

    def set_submodule(self, target: str, module: Module, strict: bool = False) -> None:
        """Set the submodule at a dotted path.

        Args:
            target: the path.
            module: the new submodule.
            strict: require that the path exists already.

        Raises:
            ValueError: the path is empty, or `module` is not a Module.
            AttributeError: a parent does not exist, the attribute is not a module, or it is missing and `strict`.

        >>> import flambeau as torch
        >>> model = torch.nn.Sequential(torch.nn.ReLU())
        >>> model.set_submodule("0", torch.nn.Tanh())
        >>> model[0]
        Tanh()
        """
        if target == "":
            raise ValueError("Cannot set the submodule without a target name!")
        if not isinstance(module, Module):
            raise ValueError(f"`module` is not an nn.Module, found {type(module)}")
        path, _, name = target.rpartition(".")
        parent = self.get_submodule(path)
        if strict and not hasattr(parent, name):
            raise AttributeError(f"{parent._get_name()} has no attribute `{name}`")
        if hasattr(parent, name) and not isinstance(getattr(parent, name), Module):
            raise AttributeError(f"`{name}` is not an nn.Module")
        setattr(parent, name, module)

    def get_parameter(self, target: str) -> Parameter:
        """The parameter at a dotted path.

        Args:
            target: the path, such as "0.weight".

        Raises:
            AttributeError: the path does not exist, or is not a parameter.

        >>> import flambeau as torch
        >>> torch.nn.Sequential(torch.nn.Linear(2, 3)).get_parameter("0.weight").shape
        flambeau.Size([3, 2])
        """
        param = _get_member(self, target)
        if not isinstance(param, Parameter):
            raise AttributeError(f"`{target.rpartition('.')[2]}` is not an nn.Parameter")
        return param

    def get_buffer(self, target: str) -> Tensor:
        """The buffer at a dotted path.

        Args:
            target: the path, such as "0.running_mean".

        Raises:
            AttributeError: the path does not exist, or is not a buffer.

        >>> import flambeau as torch
        >>> torch.nn.Sequential(torch.nn.BatchNorm1d(2)).get_buffer("0.running_mean")
        tensor([0., 0.])
        """
        buffer = _get_member(self, target)
        path, _, name = target.rpartition(".")
        if name not in self.get_submodule(path)._buffers:
            raise AttributeError(f"`{name}` is not a buffer")
        return buffer

    # -- traversal ---------------------------------------------------------------------------------

    def named_modules(self, memo: set[Module] | None = None, prefix: str = "",
                      remove_duplicate: bool = True) -> Iterator[tuple[str, Module]]:
        """Iterate over (dotted path, module) of this module and all its descendants.

        Args:
            memo: modules to skip.
            prefix: prepended to every path.
            remove_duplicate: yield each module once.

        >>> import flambeau as torch
        >>> [name for name, _ in torch.nn.Sequential(torch.nn.ReLU(), torch.nn.ReLU()).named_modules()]
        ['', '0', '1']
        """
        memo = set() if memo is None else memo
        if self in memo:
            return
        if remove_duplicate:
            memo.add(self)
        yield prefix, self
        for name, module in self._modules.items():
            if module is not None:
                path = f"{prefix}.{name}" if prefix else name
                yield from module.named_modules(memo, path, remove_duplicate)

    def modules(self) -> Iterator[Module]:
        """Iterate over this module and all its descendants, each once.

        >>> import flambeau as torch
        >>> len(list(torch.nn.Sequential(torch.nn.ReLU(), torch.nn.ReLU()).modules()))
        3
        """
        for _, module in self.named_modules():
            yield module

    def named_children(self) -> Iterator[tuple[str, Module]]:
        """Iterate over (name, module) of the direct submodules, each once.

        >>> import flambeau as torch
        >>> [name for name, _ in torch.nn.Sequential(torch.nn.ReLU()).named_children()]
        ['0']
        """
        seen = set()
        for name, module in self._modules.items():
            if module is not None and module not in seen:
                seen.add(module)
                yield name, module

    def children(self) -> Iterator[Module]:
        """Iterate over the direct submodules, each once.

        >>> import flambeau as torch
        >>> list(torch.nn.Sequential(torch.nn.ReLU()).children())
        [ReLU()]
        """
        for _, module in self.named_children():
            yield module

    def _named_members(self, get_members_fn: Callable[[Module], Any], prefix: str = "", recurse: bool = True,
                       remove_duplicate: bool = True) -> Iterator[tuple[str, Any]]:
        seen = set()
        modules: Any = [(prefix, self)]
        if recurse:
            modules = self.named_modules(prefix=prefix, remove_duplicate=remove_duplicate)
        for path, module in modules:
            for name, value in get_members_fn(module):
                if value is None or value in seen:
                    continue
                if remove_duplicate:
                    seen.add(value)
                yield f"{path}.{name}" if path else name, value

    def named_parameters(self, prefix: str = "", recurse: bool = True,
                         remove_duplicate: bool = True) -> Iterator[tuple[str, Parameter]]:
        """Iterate over (dotted path, parameter).

        Args:
            prefix: prepended to every path.
            recurse: include the parameters of all descendants.
            remove_duplicate: yield each parameter once.

        >>> import flambeau as torch
        >>> [(name, tuple(p.shape)) for name, p in torch.nn.Linear(2, 3).named_parameters()]
        [('weight', (3, 2)), ('bias', (3,))]
        """
        yield from self._named_members(lambda module: module._parameters.items(), prefix, recurse,
                                       remove_duplicate)

    def parameters(self, recurse: bool = True) -> Iterator[Parameter]:
        """Iterate over the parameters, each once.

        Args:
            recurse: include the parameters of all descendants.

        >>> import flambeau as torch
        >>> [tuple(p.shape) for p in torch.nn.Linear(2, 3).parameters()]
        [(3, 2), (3,)]
        """
        for _, param in self.named_parameters(recurse=recurse):
            yield param

    def named_buffers(self, prefix: str = "", recurse: bool = True,
                      remove_duplicate: bool = True) -> Iterator[tuple[str, Tensor]]:
        """Iterate over (dotted path, buffer).

        Args:
            prefix: prepended to every path.
            recurse: include the buffers of all descendants.
            remove_duplicate: yield each buffer once.

        >>> import flambeau as torch
        >>> [name for name, _ in torch.nn.BatchNorm1d(2).named_buffers()]
        ['running_mean', 'running_var', 'num_batches_tracked']
        """
        yield from self._named_members(lambda module: module._buffers.items(), prefix, recurse,
                                       remove_duplicate)

    def buffers(self, recurse: bool = True) -> Iterator[Tensor]:
        """Iterate over the buffers, each once.

        Args:
            recurse: include the buffers of all descendants.

        >>> import flambeau as torch
        >>> [tuple(b.shape) for b in torch.nn.BatchNorm1d(2).buffers()]
        [(2,), (2,), ()]
        """
        for _, buffer in self.named_buffers(recurse=recurse):
            yield buffer

    # -- mode ----------------------------------------------------------------------------------------

    def train(self, mode: bool = True) -> Self:
        """Set training mode, or evaluation mode, of this module and all its descendants.

        Args:
            mode: True for training mode.

        Raises:
            ValueError: `mode` is not a bool.

        >>> import flambeau as torch
        >>> torch.nn.Dropout().train(False).training
        False
        """
        if not isinstance(mode, bool):
            raise ValueError("training mode is expected to be boolean")
        self.training = mode
        for module in self.children():
            module.train(mode)
        return self

    def eval(self) -> Self:
        """Set evaluation mode of this module and all its descendants: `train(False)`.

        >>> import flambeau as torch
        >>> torch.nn.Dropout().eval().training
        False
        """
        return self.train(False)

    # -- printing ------------------------------------------------------------------------------------

    def _get_name(self) -> str:
        return type(self).__name__

    def extra_repr(self) -> str:
        """The text between the parentheses of the repr; for overriding.

        >>> import flambeau as torch
        >>> torch.nn.Linear(2, 3).extra_repr()
        'in_features=2, out_features=3, bias=True'
        """
        return ""

    def __repr__(self) -> str:
        extra = self.extra_repr()
        lines = extra.split("\n") if extra else []
        children = [f"({name}): {_addindent(repr(module), 2)}" for name, module in self._modules.items()]
        if len(lines) == 1 and not children:
            return f"{self._get_name()}({extra})"
        if not lines and not children:
            return f"{self._get_name()}()"
        return f"{self._get_name()}(\n  " + "\n  ".join(lines + children) + "\n)"


def _addindent(s_: str, numSpaces: int) -> str:
    """A text with all lines but the first indented."""
    return s_.replace("\n", "\n" + " " * numSpaces)


def _set_buffer(module: Module, name: str, value: Any, is_buffer: bool, buffers: dict[str, Any] | None) -> None:
    if value is not None and not isinstance(value, Tensor):
        raise TypeError(f"cannot assign '{typename(value)}' as buffer '{name}' "
                        "(torch.nn.Buffer, torch.Tensor or None expected)")
    if buffers is not None and name in buffers and not is_buffer:
        buffers[name] = _run_registration_hooks(module, GLOBAL_HOOKS.buffer_registration, name, value)
        return
    persistent = value.persistent if is_buffer and value is not None else name not in module._non_persistent_buffers_set
    _remove_attribute(module, name, "_parameters", "_modules")
    if getattr(module.register_buffer, "__func__", None) is Module.register_buffer:
        module.register_buffer(name, value, persistent)
    elif persistent:
        module.register_buffer(name, value)
    else:
        try:
            module.register_buffer(name, value, persistent)
        except TypeError as error:
            raise RuntimeError("Registering a non-persistent buffer on a Module subclass that implements "
                               "register_buffer() without the persistent argument is not allowed."
                               ) from error


def _remove_attribute(module: Module, name: str, *kinds: str) -> None:
    """Remove `name` from `__dict__`, the given registries and the non-persistent set."""
    own = module.__dict__
    own.pop(name, None)
    for kind in kinds:
        own[kind].pop(name, None)
    own["_non_persistent_buffers_set"].discard(name)


def _run_registration_hooks(module: Module, hooks: OrderedDict, name: str, value: Any) -> Any:
    for hook in hooks.values():
        changed = hook(module, name, value)
        if changed is not None:
            value = changed
    return value


def _check_name(module: Module, name: Any, kind: str, members: dict[str, Any]) -> None:
    if not isinstance(name, str):
        raise TypeError(f"{kind} name should be a string. Got {typename(name)}")
    if "." in name:
        raise KeyError(f'{kind} name can\'t contain "."')
    if name == "":
        raise KeyError(f'{kind} name can\'t be empty string ""')
    if hasattr(module, name) and name not in members:
        raise KeyError(f"attribute '{name}' already exists")


def _get_member(module: Module, target: str) -> Any:
    path, _, name = target.rpartition(".")
    module = module.get_submodule(path)
    if not hasattr(module, name):
        raise AttributeError(f"{module._get_name()} has no attribute `{name}`")
    return getattr(module, name)
