"""Containers of parameters: `ParameterList`, `ParameterDict`."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Self

from ...._tensor import Parameter, Tensor
from ...typename import typename
from ..module import Module

__all__ = ["ParameterDict", "ParameterList"]


def checked_pairs(elements: Iterable[Any], owner: str) -> Iterator[Any]:
    """Yield the elements of an iterable of pairs; raise if an element is not a pair."""
    for i, element in enumerate(elements):
        if not isinstance(element, Iterable):
            raise TypeError(f"{owner} update sequence element #{i} should be Iterable; is"
                            f"{type(element).__name__}")
        if len(element) != 2:  # type: ignore[arg-type]
            raise ValueError(f"{owner} update sequence element #{i} has length {len(element)}; "  # type: ignore[arg-type]
                             "2 is required")
        yield element


def _as_parameter(value: Any) -> Any:
    return Parameter(value) if isinstance(value, Tensor) and not isinstance(value, Parameter) else value


def _describe(key: Any, value: Any, element_type: Any) -> str:
    """One line of the repr: element type and size of a tensor, type name of another object."""
    if not isinstance(value, Tensor):
        return f"  ({key}): Object of type: {type(value).__name__}"
    kind = "Parameter" if isinstance(value, Parameter) else "Tensor"
    size = "x".join(str(n) for n in value.size())
    where = "" if value.device.type == "cpu" else f" ({value.device})"
    return f"  ({key}): {kind} containing: [{element_type(value)} of size {size}{where}]"


class ParameterList(Module):
    """A list whose tensors become registered parameters; other values are stored unchanged.

    Args:
        values: an iterable.

    Raises:
        TypeError: `values` is not iterable, or a tensor.

    >>> import flambeau as torch
    >>> params = torch.nn.ParameterList([torch.zeros(2), torch.zeros(3)])
    >>> [name for name, _ in params.named_parameters()]
    ['0', '1']
    """

    def __init__(self, values: Iterable[Any] | None = None) -> None:
        super().__init__()
        self._size = 0
        if values is not None:
            self += values

    def _name_at(self, index: Any) -> str:
        index, size = operator.index(index), len(self)
        if not -size <= index < size:
            raise IndexError(f"index {index} is out of range")
        return str(index % size)

    def __getitem__(self, idx: Any) -> Any:
        if idx.__class__ is int and 0 <= idx < self._size:  # what most programs do
            found = self._parameters.get(str(idx))
            if found is not None:
                return found
        if isinstance(idx, slice):
            chosen = type(self)()
            for i in range(*idx.indices(len(self))):
                chosen.append(self[i])
            return chosen
        return getattr(self, self._name_at(idx))

    def __setitem__(self, idx: int, param: Any) -> None:
        # a plain tensor is wrapped in a Parameter
        setattr(self, self._name_at(idx), _as_parameter(param))

    def __len__(self) -> int:
        return self._size

    def __iter__(self) -> Iterator[Any]:
        return map(self.__getitem__, range(len(self)))

    def __iadd__(self, parameters: Iterable[Any]) -> Self:
        return self.extend(parameters)

    def __dir__(self) -> list[str]:
        return [name for name in super().__dir__() if not name.isdigit()]

    def append(self, value: Any) -> Self:
        """Append a value."""
        index = len(self)
        self._size += 1
        self[index] = value
        return self

    def extend(self, values: Iterable[Any]) -> Self:
        """Append values.

        Raises:
            TypeError: `values` is not iterable, or a tensor.
        """
        if not isinstance(values, Iterable) or isinstance(values, Tensor):
            raise TypeError("ParameterList.extend should be called with an iterable, "
                            f"but got {type(values).__name__}")
        for value in values:
            self.append(value)
        return self

    def extra_repr(self) -> str:
        return "\n".join(_describe(i, value, lambda t: t.dtype) for i, value in enumerate(self))

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise RuntimeError("ParameterList should not be called.")


class ParameterDict(Module):
    """A dict whose tensors become registered parameters; other values are stored unchanged.

    Args:
        parameters: a mapping with string keys, or an iterable of pairs.

    Raises:
        TypeError: a key is not a string, or `parameters` is not iterable.

    >>> import flambeau as torch
    >>> params = torch.nn.ParameterDict({"gain": torch.ones(1)})
    >>> list(params.keys())
    ['gain']
    """

    def __init__(self, parameters: Any = None) -> None:
        super().__init__()
        self._keys: dict[str, None] = {}
        if parameters is not None:
            self.update(parameters)

    def _key_to_attr(self, key: str) -> str:
        if not isinstance(key, str):
            raise TypeError("Index given to ParameterDict cannot be used as a key as it is "
                            f"not a string (type is '{type(key).__name__}'). Open an issue on "
                            "github if you need non-string keys.")
        return key

    def __getitem__(self, key: str) -> Any:
        return getattr(self, self._key_to_attr(key))

    def __setitem__(self, key: str, value: Any) -> None:
        attribute = self._key_to_attr(key)
        self._keys[key] = None
        setattr(self, attribute, _as_parameter(value))

    def __delitem__(self, key: str) -> None:
        del self._keys[key]
        delattr(self, self._key_to_attr(key))

    def __len__(self) -> int:
        return len(self._keys)

    def __iter__(self) -> Iterator[str]:
        return iter(self._keys)

    def __reversed__(self) -> Iterator[str]:
        return reversed(list(self._keys))

    def __contains__(self, key: str) -> bool:
        return key in self._keys

    def __or__(self, other: ParameterDict) -> ParameterDict:
        combined = self.copy()
        combined.update(other)
        return combined

    def __ror__(self, other: ParameterDict) -> ParameterDict:
        combined = other.copy()
        combined.update(self)
        return combined

    def __ior__(self, other: ParameterDict) -> Self:
        self.update(other)
        return self

    def copy(self) -> ParameterDict:
        """A shallow copy."""
        return ParameterDict({key: self[key] for key in self._keys})

    def setdefault(self, key: str, default: Any = None) -> Any:
        """The value of `key`; a missing key is first set to `default`."""
        if key not in self:
            self[key] = default
        return self[key]

    def clear(self) -> None:
        """Remove all items."""
        for key in list(self._keys):
            del self[key]

    def pop(self, key: str) -> Any:
        """Remove a key and return its value."""
        value = self[key]
        del self[key]
        return value

    def popitem(self) -> tuple[str, Any]:
        """Remove and return the last (key, value) pair."""
        key, _ = self._keys.popitem()
        self._keys[key] = None  # restored for pop, which deletes key and attribute
        return key, self.pop(key)

    def get(self, key: str, default: Any = None) -> Any:
        """The value of `key`, or `default` if it is missing."""
        if key not in self:
            return default
        return self[key]

    def fromkeys(self, keys: Iterable[str], default: Any = None) -> ParameterDict:
        """A new dict that maps each of `keys` to `default`."""
        return ParameterDict(dict.fromkeys(keys, default))

    def keys(self) -> Any:
        """The keys."""
        return self._keys.keys()

    def items(self) -> Iterator[tuple[str, Any]]:
        """The (key, value) pairs."""
        return ((key, self[key]) for key in self._keys)

    def values(self) -> Iterator[Any]:
        """The values."""
        return (self[key] for key in self._keys)

    def update(self, parameters: Any) -> None:
        """Set items from a mapping or an iterable of pairs; existing keys are replaced.

        Raises:
            TypeError: `parameters` is not iterable.
            ValueError: an element is not a pair.
        """
        if not isinstance(parameters, Iterable):
            raise TypeError("ParametersDict.update should be called with an iterable of key/value pairs, "
                            f"but got {type(parameters).__name__}")
        if isinstance(parameters, ParameterDict | Mapping):
            for key, value in parameters.items():
                self[key] = value
            return
        for key, value in checked_pairs(parameters, "ParameterDict"):
            self[key] = value

    def extra_repr(self) -> str:
        return "\n".join(_describe(key, value, typename) for key, value in self.items())

    def __call__(self, input: Any) -> Any:
        raise RuntimeError("ParameterDict should not be called.")
