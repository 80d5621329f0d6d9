"""Access to the tensors and submodules of a module by dotted names, with submodules cached."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from ..._tensor import Tensor
from ..modules.module import Module

_MISSING: Any = object()


def _check(module: Any, name: str, kind: str = "tensor") -> None:
    if not isinstance(module, Module):
        raise TypeError(f"{module} is not an instance of torch.nn.Module")
    if "." in name:
        raise KeyError(f'{kind} name can\'t contain "."')
    if name == "":
        raise KeyError(f'{kind} name can\'t be empty string ""')


def _check_tensor(value: Any) -> None:
    if not isinstance(value, Tensor) and value is not None and value is not _MISSING:
        raise TypeError(f"{value} is not an instance of torch.Tensor")


def set_tensor(module: Any, name: str, tensor: Any) -> None:
    """Set a parameter, a buffer or an attribute of a module to a tensor.

    >>> import flambeau as torch
    >>> from flambeau.nn.utils._named_member_accessor import set_tensor
    >>> layer = torch.nn.Linear(1, 1)
    >>> set_tensor(layer, "bias", torch.zeros(1))
    >>> layer.bias
    tensor([0.])
    """
    if isinstance(module, Module):
        _check_tensor(tensor)
    _check(module, name)
    for owner in (module._parameters, module._buffers):
        if name in owner:
            owner[name] = tensor
            return
    setattr(module, name, tensor)


def swap_tensor(module: Any, name: str, tensor: Any, allow_missing: bool = False) -> Any:
    """`set_tensor`, and return the previous value.

    >>> import flambeau as torch
    >>> from flambeau.nn.utils._named_member_accessor import swap_tensor
    >>> swap_tensor(torch.nn.BatchNorm1d(1), "running_mean", torch.ones(1))
    tensor([0.])
    """
    if isinstance(module, Module):
        _check_tensor(tensor)
    _check(module, name)
    for owner in (module._parameters, module._buffers):
        if name in owner:
            before = owner[name]
            if tensor is _MISSING:
                del owner[name]
            else:
                owner[name] = tensor
            return before
    before = getattr(module, name, _MISSING)
    if before is _MISSING and not allow_missing:
        raise AttributeError(f"{module._get_name()} has no attribute `{name}`")
    if before is not _MISSING and before is not None and not isinstance(before, Tensor):
        raise TypeError(f"attribute `{name}`: {before} is not an instance of torch.Tensor")
    if tensor is not _MISSING:
        setattr(module, name, tensor)
    elif hasattr(module, name):
        delattr(module, name)
    return before


def swap_submodule(module: Any, name: str, submodule: Any) -> Any:
    """Replace a submodule, and return the previous one.

    >>> import flambeau as torch
    >>> from flambeau.nn.utils._named_member_accessor import swap_submodule
    >>> swap_submodule(torch.nn.Sequential(torch.nn.ReLU()), "0", torch.nn.Tanh())
    ReLU()
    """
    if isinstance(module, Module) and not isinstance(submodule, Module):
        raise TypeError(f"{submodule} is not an instance of torch.nn.Module")
    _check(module, name, "submodule")
    if name not in module._modules:
        raise KeyError(f"submodule {name} does not exist")
    before = module._modules[name]
    if not isinstance(before, Module):
        raise TypeError(f"{name} attribute is not an instance of torch.nn.Module")
    module._modules[name] = submodule
    return before


class NamedMemberAccessor:
    """The tensors and submodules of a module by dotted names.

    >>> import flambeau as torch
    >>> from flambeau.nn.utils._named_member_accessor import NamedMemberAccessor
    >>> accessor = NamedMemberAccessor(torch.nn.Sequential(torch.nn.Linear(1, 2)))
    >>> accessor.get_tensor("0.weight").shape
    flambeau.Size([2, 1])
    """

    def __init__(self, module: Module) -> None:
        self.module = module
        self.memo: dict[str, Any] = {}

    def get_submodule(self, name: str) -> Any:
        """The submodule of a dotted name."""
        if not name:
            return self.module
        if name not in self.memo:
            prefix, _, attribute = name.rpartition(".")
            module = self.get_submodule(prefix)
            try:
                submodule = getattr(module, attribute)
            except AttributeError as error:
                raise AttributeError(f"{module._get_name()} has no attribute `{attribute}`") from error
            if not isinstance(submodule, Module):
                raise TypeError(f"submodule `{name}`: {submodule} is not an instance of torch.nn.Module")
            self.memo[name] = submodule
        return self.memo[name]

    def swap_submodule(self, path: str, value: Any) -> Any:
        """Replace the submodule of a dotted name, and return the previous one."""
        prefix, _, attribute = path.rpartition(".")
        return swap_submodule(self.get_submodule(prefix), attribute, value)

    def get_tensor(self, name: str) -> Any:
        """The tensor of a dotted name."""
        prefix, _, attribute = name.rpartition(".")
        module = self.get_submodule(prefix)
        try:
            tensor = getattr(module, attribute)
        except AttributeError as error:
            raise AttributeError(f"{module._get_name()} has no attribute `{name}`") from error
        if not isinstance(tensor, Tensor) and tensor is not None:
            raise TypeError(f"{tensor} is not an instance of torch.Tensor")
        return tensor

    def set_tensor(self, name: str, value: Any) -> None:
        """Set the tensor of a dotted name."""
        prefix, _, attribute = name.rpartition(".")
        set_tensor(self.get_submodule(prefix), attribute, value)

    def del_tensor(self, name: str) -> None:
        """Delete the tensor of a dotted name."""
        prefix, _, attribute = name.rpartition(".")
        module = self.get_submodule(prefix)
        try:
            delattr(module, attribute)
        except AttributeError as error:
            raise AttributeError(f"{module._get_name()} has no attribute `{name}`") from error

    def swap_tensor(self, name: str, value: Any, allow_missing: bool = False) -> Any:
        """Set the tensor of a dotted name, and return the previous one."""
        prefix, _, attribute = name.rpartition(".")
        return swap_tensor(self.get_submodule(prefix), attribute, value, allow_missing=allow_missing)

    def get_tensors(self, names: Iterable[str]) -> list[Any]:
        """The tensors of dotted names."""
        return [self.get_tensor(name) for name in names]

    @staticmethod
    def _pairs(names: Iterable[str], values: Iterable[Any]) -> Iterator[tuple[str, Any]]:
        names, values = list(names), list(values)
        if len(names) != len(values):
            raise AssertionError("names and values must have the same length, "
                                 f"got {len(names)} names and {len(values)} values")
        return zip(names, values, strict=True)

    def set_tensors(self, names: Iterable[str], values: Iterable[Any]) -> None:
        """Set the tensors of dotted names."""
        for name, value in self._pairs(names, values):
            self.set_tensor(name, value)

    def set_tensors_dict(self, named_tensors: dict[str, Any]) -> None:
        """Set tensors by a dictionary of dotted names."""
        for name, value in named_tensors.items():
            self.set_tensor(name, value)

    def del_tensors(self, names: Iterable[str]) -> None:
        """Delete the tensors of dotted names."""
        for name in names:
            self.del_tensor(name)

    def swap_tensors(self, names: Iterable[str], values: Iterable[Any], allow_missing: bool = False) -> list[Any]:
        """Set the tensors of dotted names, and return the previous ones."""
        return [self.swap_tensor(name, value, allow_missing) for name, value in self._pairs(names, values)]

    def swap_tensors_dict(self, named_tensors: dict[str, Any],
                          allow_missing: bool = False) -> tuple[dict[str, Any], list[str]]:
        """Set tensors by a dictionary; return the previous ones and the missing names. Nothing changes on errors."""
        before: dict[str, Any] = {}
        missing = []
        try:
            for name, tensor in named_tensors.items():
                before[name] = self.swap_tensor(name, tensor, allow_missing=True)
                if before[name] is _MISSING:
                    missing.append(name)
            if missing and not allow_missing:
                raise RuntimeError(f"Missing key(s): {', '.join(map(repr, missing))}.")
        except Exception:
            for name, tensor in before.items():
                self.swap_tensor(name, tensor, allow_missing=True)
            raise
        return before, missing

    def check_keys(self, keys: Iterable[str]) -> tuple[list[str], list[str]]:
        """The names that are missing in `keys`, and those that the module lacks."""
        given, valid = set(keys), {name for name, _ in self.named_tensors(remove_duplicate=False)}
        return sorted(valid - given), sorted(given - valid)

    def named_parameters(self, remove_duplicate: bool = True) -> Iterator[tuple[str, Any]]:
        """`Module.named_parameters`."""
        yield from self.module.named_parameters(remove_duplicate=remove_duplicate)

    def named_buffers(self, remove_duplicate: bool = True) -> Iterator[tuple[str, Any]]:
        """`Module.named_buffers`."""
        yield from self.module.named_buffers(remove_duplicate=remove_duplicate)

    def named_tensors(self, remove_duplicate: bool = True) -> Iterator[tuple[str, Any]]:
        """Parameters, then buffers."""
        yield from self.named_parameters(remove_duplicate)
        yield from self.named_buffers(remove_duplicate)

    def named_modules(self, remove_duplicate: bool = True) -> Iterator[tuple[str, Any]]:
        """`Module.named_modules`."""
        yield from self.module.named_modules(remove_duplicate=remove_duplicate)
