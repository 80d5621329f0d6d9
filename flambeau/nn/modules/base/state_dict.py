"""`Module.state_dict` and `load_state_dict`: parameters and persistent buffers by name."""

from __future__ import annotations

import itertools
import warnings
import weakref
from collections import OrderedDict, namedtuple
from collections.abc import Callable, Mapping
from typing import Any

from ...._tensor import Parameter, Tensor, no_grad
from ....engine.nodes.hooks import RemovableHandle
from ...parameter import is_lazy
from ...swapping import swap_tensors
from .conversion import SWAP
from .hooks import add_hook

EXTRA_STATE = "_extra_state"
NOT_OVERRIDDEN = ("Reached a code path in Module.{}() that should never be called. "
                  "Please file an issue at https://github.com/pytorch/pytorch/issues/new?template=bug-report.yml "
                  "to report this bug.")


class _IncompatibleKeys(namedtuple("IncompatibleKeys", ["missing_keys", "unexpected_keys"])):
    __slots__ = ()

    def __repr__(self) -> str:
        if not self.missing_keys and not self.unexpected_keys:
            return "<All keys matched successfully>"
        return super().__repr__()

    __str__ = __repr__


class _WrappedHook:
    """A hook bound to its module by weak reference; the module is its first argument."""

    def __init__(self, hook: Callable, module: Any) -> None:
        self.hook = hook
        self.module = weakref.ref(module)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        module = self.module()
        if module is None:
            raise RuntimeError("You are trying to call the hook of a dead Module!")
        return self.hook(module, *args, **kwargs)

    def __getstate__(self) -> dict[str, Any]:
        return {"hook": self.hook, "module": self.module()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        if state["module"] is None:
            raise RuntimeError("You are trying to revive the hook of a dead Module!")
        self.hook = state["hook"]
        self.module = weakref.ref(state["module"])


class StateDictMixin:
    """Mixin of `Module`: state dicts.

    `_version` is stored in the state dict's metadata; `_load_from_state_dict` reads it to convert older formats.
    """

    _version: int = 1

    _parameters: dict
    _buffers: dict
    _modules: dict
    _non_persistent_buffers_set: set
    _state_dict_hooks: OrderedDict
    _state_dict_pre_hooks: OrderedDict
    _load_state_dict_pre_hooks: OrderedDict
    _load_state_dict_post_hooks: OrderedDict

    def get_extra_state(self) -> Any:
        """Non-tensor state to save in the state dict; override together with `set_extra_state`."""
        raise RuntimeError(NOT_OVERRIDDEN.format("get_extra_state"))

    def set_extra_state(self, state: Any) -> None:
        """Restore the state returned by `get_extra_state`."""
        raise RuntimeError(NOT_OVERRIDDEN.format("set_extra_state"))

    def register_state_dict_post_hook(self, hook: Callable) -> RemovableHandle:
        """Run `hook(module, state_dict, prefix, local_metadata)` after `state_dict`; it may edit the dict in place."""
        hook._from_public_api = True  # type: ignore[attr-defined]
        return self._register_state_dict_hook(hook, _public=True)

    def _register_state_dict_hook(self, hook: Callable, _public: bool = False) -> RemovableHandle:
        if not _public and getattr(hook, "_from_public_api", False):
            raise RuntimeError("Cannot register the same function as the state dict post hook that was "
                               "previously registered via register_state_dict_post_hook")
        return add_hook(self._state_dict_hooks, hook)

    def register_state_dict_pre_hook(self, hook: Callable) -> RemovableHandle:
        """Run `hook(module, prefix, keep_vars)` before `state_dict`."""
        return add_hook(self._state_dict_pre_hooks, hook)

    def _register_load_state_dict_pre_hook(self, hook: Callable, with_module: bool = False) -> RemovableHandle:
        return add_hook(self._load_state_dict_pre_hooks, _WrappedHook(hook, self) if with_module else hook)

    def register_load_state_dict_pre_hook(self, hook: Callable) -> RemovableHandle:
        """Run `hook(module, state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys,
        error_msgs)` before the module's own tensors are loaded.
        """
        return self._register_load_state_dict_pre_hook(hook, with_module=True)

    def register_load_state_dict_post_hook(self, hook: Callable) -> RemovableHandle:
        """Run `hook(module, incompatible_keys)` after loading; it may edit the keys in place."""
        return add_hook(self._load_state_dict_post_hooks, hook)

    def _save_to_state_dict(self, destination: Any, prefix: str, keep_vars: bool) -> None:
        for name, param in self._parameters.items():
            if param is not None:
                destination[prefix + name] = param if keep_vars else param.detach()
        for name, buffer in self._buffers.items():
            if buffer is not None and name not in self._non_persistent_buffers_set:
                destination[prefix + name] = buffer if keep_vars else buffer.detach()
        if _overrides(self, "get_extra_state"):
            destination[prefix + EXTRA_STATE] = self.get_extra_state()

    def state_dict(self, *args: Any, destination: Any = None, prefix: str = "", keep_vars: bool = False) -> Any:
        """Parameters and persistent buffers of this module and its descendants, by dotted path.

        Args:
            destination: the dict to fill; a new OrderedDict by default.
            prefix: prepended to every name.
            keep_vars: return the parameters and buffers themselves instead of detached tensors.

        >>> import flambeau as torch
        >>> list(torch.nn.Linear(2, 3).state_dict())
        ['weight', 'bias']
        """
        if args:
            warnings.warn("Positional args are being deprecated, use kwargs instead. Refer to "
                          "https://pytorch.org/docs/main/generated/torch.nn.Module.html#torch.nn.Module.state_dict"
                          " for details.", FutureWarning, stacklevel=2)
            destination = args[0] if destination is None else destination
            prefix = args[1] if len(args) > 1 and prefix == "" else prefix
            keep_vars = args[2] if len(args) > 2 and keep_vars is False else keep_vars
        if destination is None:
            destination = OrderedDict()
            destination._metadata = OrderedDict()
        local_metadata = {"version": self._version}
        if hasattr(destination, "_metadata"):
            destination._metadata[prefix[:-1]] = local_metadata

        for hook in self._state_dict_pre_hooks.values():
            hook(self, prefix, keep_vars)
        self._save_to_state_dict(destination, prefix, keep_vars)
        for name, module in self._modules.items():
            if module is not None:
                module.state_dict(destination=destination, prefix=f"{prefix}{name}.", keep_vars=keep_vars)
        for hook in self._state_dict_hooks.values():
            result = hook(self, destination, prefix, local_metadata)
            if result is None:
                continue
            if getattr(hook, "_from_public_api", False):
                raise RuntimeError("state_dict post-hook must return None")
            destination = result
        return destination

    def _load_from_state_dict(self, state_dict: Any, prefix: str, local_metadata: Any, strict: bool,
                              missing_keys: list[str], unexpected_keys: list[str],
                              error_msgs: list[str]) -> None:
        for hook in self._load_state_dict_pre_hooks.values():
            hook(state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs)
        persistent = ((name, buffer) for name, buffer in self._buffers.items()
                      if name not in self._non_persistent_buffers_set)
        state = {name: value for name, value in itertools.chain(self._parameters.items(), persistent)
                 if value is not None}
        assign = local_metadata.get("assign_to_params_buffers", False)
        for name, current in state.items():
            key = prefix + name
            if key in state_dict:
                message = _load_tensor(self, key, name, current, state_dict[key], assign)
                if message is not None:
                    error_msgs.append(message)
            elif strict:
                missing_keys.append(key)

        extra_key = prefix + EXTRA_STATE
        if _overrides(self, "set_extra_state"):
            if extra_key in state_dict:
                self.set_extra_state(state_dict[extra_key])
            elif strict:
                missing_keys.append(extra_key)
        elif strict and extra_key in state_dict:
            unexpected_keys.append(extra_key)
        if strict:
            for key in state_dict:
                if not key.startswith(prefix) or key == extra_key:
                    continue
                head, dot, _ = key[len(prefix):].partition(".")
                if head not in (self._modules if dot else state):
                    unexpected_keys.append(key)

    def load_state_dict(self, state_dict: Mapping[str, Any], strict: bool = True,
                        assign: bool = False) -> _IncompatibleKeys:
        """Copy the values of `state_dict` into the parameters and buffers of this module and its descendants.

        Args:
            state_dict: tensors by dotted path, as returned by `state_dict()`.
            strict: raise if the names are not exactly those of `state_dict()`.
            assign: assign the tensors themselves instead of copying their values.

        Returns:
            A named tuple (missing_keys, unexpected_keys).

        Raises:
            RuntimeError: names (if `strict`) or shapes do not match; the matching tensors have been loaded.
            TypeError: `state_dict` is not a mapping.

        >>> import flambeau as torch
        >>> a, b = torch.nn.Linear(2, 2), torch.nn.Linear(2, 2)
        >>> a.load_state_dict(b.state_dict())
        <All keys matched successfully>
        """
        if not isinstance(state_dict, Mapping):
            raise TypeError(f"Expected state_dict to be dict-like, got {type(state_dict)}.")
        missing: list[str] = []
        unexpected: list[str] = []
        errors: list[str] = []
        metadata = getattr(state_dict, "_metadata", None)
        state: Any = OrderedDict(state_dict)
        if metadata is not None:
            state._metadata = metadata
        _load_module_tree(self, state, state, metadata, "", strict, assign, missing, unexpected, errors)
        if strict:
            if unexpected:
                names = ", ".join(f'"{key}"' for key in unexpected)
                errors.insert(0, f"Unexpected key(s) in state_dict: {names}. ")
            if missing:
                names = ", ".join(f'"{key}"' for key in missing)
                errors.insert(0, f"Missing key(s) in state_dict: {names}. ")
        if errors:
            listed = "\n\t".join(errors)
            raise RuntimeError(f"Error(s) in loading state_dict for {type(self).__name__}:\n\t{listed}")
        return _IncompatibleKeys(missing, unexpected)


def _overrides(module: StateDictMixin, method: str) -> bool:
    return getattr(type(module), method) is not getattr(StateDictMixin, method)


def _load_tensor(module: Any, key: str, name: str, current: Tensor, saved: Any, assign: bool) -> str | None:
    """Load one tensor into this module; returns an error message, or None."""
    if not isinstance(saved, Tensor):
        return (f'While copying the parameter named "{key}", expected torch.Tensor or Tensor-like object '
                f"from checkpoint but received {type(saved)}")
    lazy = is_lazy(current)
    if not lazy and len(current.shape) == 0 and len(saved.shape) == 1 and saved.shape[0] == 1:
        saved = saved[0]  # 0-d tensors were saved with shape (1,) by PyTorch < 0.4
    if not lazy and saved.shape != current.shape:
        return (f"size mismatch for {key}: copying a param with shape {saved.shape} from checkpoint, "
                f"the shape in current model is {current.shape}.")
    if current.is_meta and not saved.is_meta and not assign:
        warnings.warn(f"for {key}: copying from a non-meta parameter in the checkpoint to a meta parameter in the "
                      "current model, which is a no-op. (Did you mean to pass `assign=True` to assign items in the "
                      "state dictionary to their corresponding key in the module instead of copying them in place?)",
                      stacklevel=3)
    try:
        with no_grad():
            if SWAP[0]:
                _swap_loaded(current, saved, assign)
                return None
            if not assign:
                current.copy_(saved)
                return None
            if isinstance(current, Parameter):
                if isinstance(saved, Parameter):
                    saved.requires_grad_(current.requires_grad)
                else:
                    saved = Parameter(saved, requires_grad=current.requires_grad)
            setattr(module, name, saved)
    except Exception as error:
        action = "swapping" if SWAP[0] else "copying"
        return (f'While {action} the parameter named "{key}", whose dimensions in the model are '
                f"{current.size()} and whose dimensions in the checkpoint are {saved.size()}, "
                f"an exception occurred : {error.args}.")
    return None


def _swap_loaded(current: Tensor, saved: Tensor, assign: bool) -> None:
    new = current.module_load(saved, assign=assign)
    if new is saved or new is current:
        raise RuntimeError("module_load returned one of self or other, please .detach() the result if returning one "
                           "of the inputs in module_load")
    if isinstance(current, Parameter):
        if isinstance(new, Parameter):
            new.requires_grad_(current.requires_grad)
        else:
            new = Parameter(new, requires_grad=current.requires_grad)
    swap_tensors(current, new)


def _load_module_tree(module: Any, state: Any, local_state: Any, metadata: Any, prefix: str, strict: bool, assign: bool,
                      missing: list[str], unexpected: list[str], errors: list[str]) -> None:
    local_metadata = {} if metadata is None else metadata.get(prefix[:-1], {})
    if assign:
        local_metadata["assign_to_params_buffers"] = assign
    # strict=True collects the key lists; load_state_dict decides whether they are errors
    module._load_from_state_dict(local_state, prefix, local_metadata, True, missing, unexpected, errors)
    for name, child in module._modules.items():
        if child is not None:
            child_prefix = f"{prefix}{name}."
            child_state = {k: v for k, v in local_state.items() if k.startswith(child_prefix)}
            _load_module_tree(child, state, child_state, metadata, child_prefix, strict, assign, missing, unexpected,
                              errors)
    keys = _IncompatibleKeys(missing, unexpected)
    for hook in module._load_state_dict_post_hooks.values():
        if hook(module, keys) is not None:
            raise AssertionError(
                "Hooks registered with ``register_load_state_dict_post_hook`` are not"
                "expected to return new values, if incompatible_keys need to be modified,"
                "it should be done inplace.")
