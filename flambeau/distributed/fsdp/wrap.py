"""`torch.distributed.fsdp.wrap`: which submodules are wrapped."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from ...nn.modules.activation import MultiheadAttention
from ...nn.modules.container import ModuleDict, ModuleList
from ...nn.modules.module import Module


class _Policy(ABC):
    """Which submodules of a module are wrapped."""

    @abstractmethod
    def _run_policy(self, root_module: Module, ignored_modules: set[Module],
                    root_kwargs: dict[str, Any]) -> dict[Module, dict[str, Any]]:
        """Module -> the arguments that it is wrapped with."""


class ModuleWrapPolicy(_Policy):
    """Submodules of some classes are wrapped.

    Args:
        module_classes: the classes.
    """

    def __init__(self, module_classes: Iterable[type]) -> None:
        self._module_classes = set(module_classes)
        self._module_classes_str = str(self._module_classes)

    def _run_policy(self, root_module: Module, ignored_modules: set[Module],
                    root_kwargs: dict[str, Any]) -> dict[Module, dict[str, Any]]:
        return {module: dict(root_kwargs) for module in root_module.modules()
                if module not in ignored_modules and isinstance(module, tuple(self._module_classes))}

    def __call__(self, module: Module, recurse: bool, *args: Any, **kwargs: Any) -> bool:
        """Whether to go below a module, or to wrap it.

        Args:
            module: the module.
            recurse: go below.
        """
        return _module_wrap_policy(module, recurse, -1, self._module_classes)

    def __repr__(self) -> str:
        return f"{super().__repr__()}({self._module_classes_str})"


class CustomPolicy(_Policy):
    """Submodules are wrapped for which a function returns True, or the arguments that they are wrapped with.

    Args:
        lambda_fn: the function.

    Raises:
        ValueError: it returns something else.
    """

    def __init__(self, lambda_fn: Callable[[Module], bool | dict[str, Any]]) -> None:
        self._lambda_fn = lambda_fn

    def _run_policy(self, root_module: Module, ignored_modules: set[Module],
                    root_kwargs: dict[str, Any]) -> dict[Module, dict[str, Any]]:
        chosen: dict[Module, dict[str, Any]] = {}
        for module in root_module.modules():
            if module in ignored_modules:
                continue
            result = self._lambda_fn(module)
            if not isinstance(result, (dict, bool)):
                raise ValueError("The lambda_fn passed to CustomPolicy should return False/True or a kwarg dict, but "
                                 f"it returned {result}")
            if result:
                chosen[module] = {**root_kwargs, **(result if isinstance(result, dict) else {})}
        return chosen


def always_wrap_policy(*args: Any, **kwargs: Any) -> bool:
    """Wrap every submodule."""
    return True


def lambda_auto_wrap_policy(module: Module, recurse: bool, nonwrapped_numel: int,
                            lambda_fn: Callable[[Module], bool]) -> bool:
    """Wrap submodules for which a function is true.

    Args:
        module: the module.
        recurse: go below.
        nonwrapped_numel: the number of elements that are not wrapped yet.
        lambda_fn: the function.
    """
    return True if recurse else lambda_fn(module)


def _module_wrap_policy(module: Module, recurse: bool, nonwrapped_numel: int, module_classes: set[type]) -> bool:
    return True if recurse else isinstance(module, tuple(module_classes))


def transformer_auto_wrap_policy(module: Module, recurse: bool, nonwrapped_numel: int,
                                 transformer_layer_cls: set[type]) -> bool:
    """Wrap submodules of some classes.

    Args:
        module: the module.
        recurse: go below.
        nonwrapped_numel: the number of elements that are not wrapped yet.
        transformer_layer_cls: the classes.
    """
    return _module_wrap_policy(module, recurse, nonwrapped_numel, transformer_layer_cls)


def _or_policy(module: Module, recurse: bool, nonwrapped_numel: int, policies: Iterable[Callable[..., bool]]) -> bool:
    return any(policy(module=module, recurse=recurse, nonwrapped_numel=nonwrapped_numel) for policy in policies)


def size_based_auto_wrap_policy(module: Module, recurse: bool, nonwrapped_numel: int,
                                min_num_params: int = int(1e8),
                                force_leaf_modules: set[type] | None = None,
                                exclude_wrap_modules: set[type] | None = None) -> bool:
    """Wrap submodules of so many elements.

    Args:
        module: the module.
        recurse: go below.
        nonwrapped_numel: the number of elements that are not wrapped yet.
        min_num_params: the least number.
        force_leaf_modules: classes below which nothing is wrapped; default: `MultiheadAttention`.
        exclude_wrap_modules: classes that are not wrapped; default: `ModuleList` and `ModuleDict`.
    """
    leaves = {MultiheadAttention} if force_leaf_modules is None else force_leaf_modules
    excluded = {ModuleList, ModuleDict} if exclude_wrap_modules is None else exclude_wrap_modules
    large = nonwrapped_numel >= min_num_params
    if recurse:
        return large and not isinstance(module, tuple(leaves))
    return large and not isinstance(module, tuple(excluded))


size_based_auto_wrap_policy.EXCLUDE_WRAP_MODULES = {ModuleList, ModuleDict}  # type: ignore[attr-defined]
size_based_auto_wrap_policy.FORCE_LEAF_MODULES = {MultiheadAttention}  # type: ignore[attr-defined]

_context: list[dict[str, Any]] = []


@contextmanager
def enable_wrap(*, wrapper_cls: Any, **wrapper_kwargs: Any) -> Iterator[None]:
    """Let `wrap` wrap modules in the block.

    Args:
        wrapper_cls: the class of the wrapper.
        wrapper_kwargs: its arguments.
    """
    _context.append({"wrapper_cls": wrapper_cls, **wrapper_kwargs})
    try:
        yield
    finally:
        _context.pop()


def wrap(module: Module, **wrap_overrides: Any) -> Module:
    """A module, wrapped within a block of `enable_wrap`.

    Args:
        module: the module.
        wrap_overrides: arguments that replace those of the block.
    """
    if not _context:
        return module
    options = {**_context[-1], **wrap_overrides}
    return _wrap(module, options.pop("wrapper_cls"), **options)


def _wrap(module: Module, wrapper_cls: Any, **kwargs: Any) -> Any:
    overrides = getattr(module, "_wrap_overrides", None)
    return wrapper_cls(module, **{**kwargs, **(overrides or {})})


def _recursive_wrap(module: Module, auto_wrap_policy: Callable[..., bool], wrapper_cls: Any,
                    ignored_modules: set[Module], ignored_params: set[Any], only_wrap_children: bool = False,
                    **kwargs: Any) -> tuple[Module, int]:
    """Wrap submodules from the inside out; the module, and the number of elements that are wrapped."""
    numel = sum(p.numel() for p in module.parameters() if p not in ignored_params)
    if not auto_wrap_policy(module=module, recurse=True, nonwrapped_numel=numel):
        return module, 0
    wrapped_numel = 0
    for name, child in module.named_children():
        if child in ignored_modules:
            continue
        wrapped, count = _recursive_wrap(child, auto_wrap_policy, wrapper_cls, ignored_modules, ignored_params,
                                         **kwargs)
        setattr(module, name, wrapped)
        wrapped_numel += count
    rest = numel - wrapped_numel
    if not only_wrap_children and auto_wrap_policy(module=module, recurse=False, nonwrapped_numel=rest):
        return _wrap(module, wrapper_cls, **kwargs), numel
    return module, wrapped_numel


def wrap_submodules(root: Module, policy: Any, wrapper_cls: Any, ignored_modules: set[Module],
                    ignored_params: set[Any], kwargs: dict[str, Any]) -> None:
    """Wrap the submodules of a module that a policy names.

    Args:
        root: the module, which is not wrapped.
        policy: a policy, or a function as `size_based_auto_wrap_policy`.
        wrapper_cls: the class of the wrapper.
        ignored_modules: modules that are left as they are.
        ignored_params: parameters that do not count.
        kwargs: arguments of the wrapper.
    """
    if not isinstance(policy, _Policy):
        _recursive_wrap(root, policy, wrapper_cls, ignored_modules, ignored_params, only_wrap_children=True, **kwargs)
        return
    chosen = policy._run_policy(root, ignored_modules, kwargs)
    chosen.pop(root, None)

    def visit(module: Module) -> None:
        for name, child in module.named_children():
            visit(child)
            if child in chosen:
                setattr(module, name, wrapper_cls(child, **chosen[child]))

    visit(root)


__all__ = ["CustomPolicy", "ModuleWrapPolicy", "always_wrap_policy", "enable_wrap", "lambda_auto_wrap_policy",
           "size_based_auto_wrap_policy", "transformer_auto_wrap_policy", "wrap", "wrap_submodules"]
