"""Containers of modules: `Sequential`, `ModuleList`, `ModuleDict`."""

from __future__ import annotations

import operator
import warnings
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from typing import Any, Self

from ...modes import module_changes
from .layers.parameter_containers import ParameterDict, ParameterList, checked_pairs
from .module import Module, _addindent

__all__ = ["Container", "ModuleDict", "ModuleList", "ParameterDict", "ParameterList", "Sequential"]


def normalize_index(length: int, index: Any) -> int:
    """The non-negative index equal to `index` in a sequence of `length` elements.

    Raises:
        IndexError: `index` is out of range.
    """
    index = operator.index(index)
    if not -length <= index < length:
        raise IndexError(f"index {index} is out of range")
    return index % length


class _IndexedModules(Module):
    """Base of containers whose submodules are named "0", "1", ..."""

    def _key_at(self, index: Any) -> str:
        return list(self._modules)[normalize_index(len(self), index)]

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[Module]:
        return iter(self._modules.values())

    def __dir__(self) -> list[str]:
        return [name for name in super().__dir__() if not name.isdigit()]

    def __delitem__(self, index: int | slice) -> None:
        keys = list(self._modules)[index] if isinstance(index, slice) else [self._key_at(index)]
        for key in keys:
            delattr(self, key)
        # renumber the modules after the removed ones
        names = [str(i) for i in range(len(self._modules))]
        self._modules = dict(zip(names, self._modules.values(), strict=True))

    def pop(self, key: Any) -> Any:
        """Remove and return the module at an index."""
        module = self[key]  # type: ignore[index]
        del self[key]
        return module


class Container(Module):
    """Deprecated: use `Module`. A module with submodules.

    Args:
        kwargs: the submodules by name.

    >>> import flambeau as torch
    >>> import warnings
    >>> with warnings.catch_warnings(action="ignore"):
    ...     list(torch.nn.Container(activation=torch.nn.ReLU()).children())
    [ReLU()]
    """

    def __init__(self, **kwargs: Any) -> None:
        warnings.warn("`nn.Container` is deprecated. All of its functionality is now implemented in `nn.Module`. "
                      "Subclass that instead.", FutureWarning, stacklevel=2)
        super().__init__()
        for key, value in kwargs.items():
            self.add_module(key, value)


class Sequential(_IndexedModules):
    """A chain of modules: the output of each module is the input of the next.

    Args:
        *args: modules, or one OrderedDict of modules by name.

    Shape:
        Input: that of the first module. Output: that of the last module.

    >>> import flambeau as torch
    >>> torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(4, 2))
    Sequential(
      (0): Flatten(start_dim=1, end_dim=-1)
      (1): Linear(in_features=4, out_features=2, bias=True)
    )
    """

    def __init__(self, *args: Any) -> None:
        super().__init__()
        if len(args) == 1 and isinstance(args[0], dict):
            for key, module in args[0].items():
                self.add_module(key, module)
        else:
            for i, module in enumerate(args):
                self.add_module(str(i), module)

    def forward(self, input: Any) -> Any:
        for module in self._modules.values():
            input = module(input)
        return input

    def __getitem__(self, idx: Any) -> Any:
        if isinstance(idx, slice):
            return type(self)(dict(list(self._modules.items())[idx]))
        return self._modules[self._key_at(idx)]

    def __setitem__(self, idx: int, module: Module) -> None:
        setattr(self, self._key_at(idx), module)

    def __add__(self, other: Any) -> Sequential:
        self._check_addend(other)
        return Sequential(*self, *other)

    def __iadd__(self, other: Any) -> Self:
        self._check_addend(other)
        return self._append_all(list(other))

    def __mul__(self, other: Any) -> Sequential:
        self._check_factor(other)
        return Sequential(*list(self) * other)

    def __rmul__(self, other: Any) -> Sequential:
        return self * other

    def __imul__(self, other: Any) -> Self:
        self._check_factor(other)
        return self._append_all(list(self) * (other - 1))

    def _append_all(self, modules: list[Module]) -> Self:
        for i, module in enumerate(modules, len(self)):
            self.add_module(str(i), module)
        return self

    def _check_addend(self, other: Any) -> None:
        if not isinstance(other, Sequential):
            raise ValueError("add operator supports only objects of Sequential class, "
                             f"but {type(other)} is given.")

    def _check_factor(self, factor: Any) -> None:
        if not isinstance(factor, int):
            raise TypeError(f"unsupported operand type(s) for *: {type(self)} and {type(factor)}")
        if factor <= 0:
            raise ValueError(f"Non-positive multiplication factor {factor} for {type(self)}")

    def append(self, module: Module) -> Self:
        """Append a module."""
        return self._append_all([module])

    def insert(self, index: int, module: Module) -> Self:
        """Insert a module before position `index`.

        Raises:
            IndexError: `index` is out of range.
            AssertionError: `module` is not a Module.
        """
        if not isinstance(module, Module):
            raise AssertionError(f"module should be of type: {Module}")
        length = len(self._modules)
        if not -length <= index <= length:
            raise IndexError(f"Index out of range: {index}")
        if index < 0:
            index += length
        modules = list(self)
        modules.insert(index, module)
        self._modules.update((str(i), m) for i, m in enumerate(modules) if i >= index)
        return self

    def extend(self, sequential: Iterable[Module]) -> Self:
        """Append all modules of an iterable."""
        return self._append_all(list(sequential))


class ModuleList(_IndexedModules):
    """A list whose elements are registered as submodules.

    Args:
        modules: an iterable of modules.

    >>> import flambeau as torch
    >>> torch.nn.ModuleList([torch.nn.ReLU(), torch.nn.ReLU()])
    ModuleList(
      (0-1): 2 x ReLU()
    )
    """

    def __init__(self, modules: Iterable[Module] | None = None) -> None:
        super().__init__()
        if modules is not None:
            self += modules

    def __getitem__(self, idx: Any) -> Any:
        if isinstance(idx, slice):
            return type(self)(list(self._modules.values())[idx])
        return self._modules[str(normalize_index(len(self), idx))]

    def __setitem__(self, idx: int, module: Module) -> None:
        setattr(self, str(normalize_index(len(self), idx)), module)

    def __iadd__(self, modules: Iterable[Module]) -> Self:
        return self.extend(modules)

    def __add__(self, other: Iterable[Module]) -> ModuleList:
        combined = ModuleList()
        for i, module in enumerate(chain(self, other)):
            combined.add_module(str(i), module)
        return combined

    def append(self, module: Module) -> Self:
        """Append a module."""
        self.add_module(str(len(self)), module)
        return self

    def extend(self, modules: Iterable[Module]) -> Self:
        """Append modules.

        Raises:
            TypeError: `modules` is not iterable.
        """
        if not isinstance(modules, Iterable):
            raise TypeError("ModuleList.extend should be called with an iterable, "
                            f"but got {type(modules).__name__}")
        for i, module in enumerate(modules, len(self)):
            self.add_module(str(i), module)
        return self

    def insert(self, index: int, module: Module) -> None:
        """Insert a module before position `index`."""
        module_changes[0] += 1
        for i in range(len(self._modules), index, -1):
            self._modules[str(i)] = self._modules[str(i - 1)]
        self._modules[str(index)] = module

    def __repr__(self) -> str:
        """Consecutive equal reprs share one line: `(0-2): 3 x ReLU()`."""
        groups: list[list[Any]] = []  # first index, last index, text
        for i, text in enumerate(map(repr, self)):
            if groups and groups[-1][2] == text:
                groups[-1][1] = i
            else:
                groups.append([i, i, text])
        if not groups:
            return f"{self._get_name()}()"
        lines = []
        for first, last, text in groups:
            entry = f"({first}): {text}" if first == last else f"({first}-{last}): {last - first + 1} x {text}"
            lines.append("\n  " + _addindent(entry, 2))
        return f"{self._get_name()}({''.join(lines)}\n)"


class ModuleDict(Module):
    """A dict whose values are registered as submodules.

    Args:
        modules: a mapping from names to modules, or an iterable of pairs.

    >>> import flambeau as torch
    >>> torch.nn.ModuleDict({"act": torch.nn.ReLU()})
    ModuleDict(
      (act): ReLU()
    )
    """

    def __init__(self, modules: Mapping[str, Module] | None = None) -> None:
        super().__init__()
        if modules is not None:
            self.update(modules)

    def __getitem__(self, key: str) -> Module:
        return self._modules[key]

    def __setitem__(self, key: str, module: Module) -> None:
        self.add_module(key, module)

    def __delitem__(self, key: str) -> None:
        module_changes[0] += 1
        del self._modules[key]

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[str]:
        return iter(self._modules)

    def __contains__(self, key: str) -> bool:
        return key in self._modules

    def clear(self) -> None:
        """Remove all modules."""
        self._modules.clear()

    def pop(self, key: str) -> Module:
        """Remove and return the module of that name."""
        module = self[key]
        del self[key]
        return module

    def keys(self) -> Any:
        """The names."""
        return self._modules.keys()

    def items(self) -> Any:
        """The (name, module) pairs."""
        return self._modules.items()

    def values(self) -> Any:
        """The modules."""
        return self._modules.values()

    def update(self, modules: Any) -> None:
        """Register modules from a mapping or an iterable of pairs; existing names are replaced.

        Raises:
            TypeError: `modules` is not iterable.
            ValueError: an element is not a pair.
        """
        if not isinstance(modules, Iterable):
            raise TypeError("ModuleDict.update should be called with an iterable of key/value pairs, "
                            f"but got {type(modules).__name__}")
        if isinstance(modules, ModuleDict | Mapping):
            pairs: Iterable[Any] = modules.items()
        else:
            pairs = checked_pairs(modules, "ModuleDict")
        for key, module in pairs:
            self[key] = module
