"""`torch.utils.weak`: weak references and dictionaries by identity, for tensors, whose `==` is elementwise."""

from __future__ import annotations

import builtins
import weakref
from collections.abc import Callable, Iterator, MutableMapping
from typing import Any
from weakref import ref

from .._tensor import Tensor


class WeakIdRef(weakref.ref):
    """A weak reference that is equal to another one of the same object, and hashed by identity.

    >>> import flambeau as torch
    >>> from flambeau.utils.weak import WeakIdRef
    >>> x = torch.ones(2)
    >>> WeakIdRef(x) == WeakIdRef(x)
    True
    """

    __slots__ = ("_id",)

    def __init__(self, key: Any, callback: Callable[[Any], None] | None = None) -> None:
        self._id = id(key)
        super().__init__(key, callback)  # type: ignore[call-arg]

    def __call__(self) -> Any:
        return super().__call__()

    def __hash__(self) -> int:
        return self._id

    def __eq__(self, other: object) -> bool:
        mine, theirs = self(), other() if isinstance(other, weakref.ref) else None
        if mine is not None and theirs is not None:
            return mine is theirs
        return self is other

    def __ne__(self, other: object) -> bool:
        return not self == other


class WeakIdKeyDictionary(MutableMapping):
    """A dictionary whose keys are compared by identity and do not keep their objects alive.

    Args:
        dict: initial items.
        ref_type: the class of the references.

    >>> import flambeau as torch
    >>> from flambeau.utils.weak import WeakIdKeyDictionary
    >>> x = torch.ones(2)
    >>> d = WeakIdKeyDictionary({x: 1})
    >>> d[x], len(d)
    (1, 1)
    >>> del x
    >>> len(d)
    0
    """

    def __init__(self, dict: Any = None, ref_type: type[Any] = WeakIdRef) -> None:
        self.data: Any = {}
        self.ref_type = ref_type
        weak_self = weakref.ref(self)

        def remove(key: Any) -> None:
            owner = weak_self()
            if owner is not None:
                owner.data.pop(key, None)

        self._remove = remove
        if dict is not None:
            self.update(dict)

    def __getitem__(self, key: Any) -> Any:
        return self.data[self.ref_type(key)]

    def __setitem__(self, key: Any, value: Any) -> None:
        self.data[self.ref_type(key, self._remove)] = value

    def __delitem__(self, key: Any) -> None:
        del self.data[self.ref_type(key)]

    def __len__(self) -> int:
        return len(self.data)

    def __iter__(self) -> Iterator[Any]:
        for reference in list(self.data):
            key = reference()
            if key is not None:
                yield key

    def __contains__(self, key: Any) -> bool:
        try:
            return self.ref_type(key) in self.data
        except TypeError:
            return False

    def __repr__(self) -> str:
        return f"<{type(self).__name__} at {id(self):#x}>"

    def keyrefs(self) -> list[Any]:
        """The references to the keys."""
        return list(self.data)

    def copy(self) -> WeakIdKeyDictionary:
        """A dictionary of the same items."""
        new = WeakIdKeyDictionary(ref_type=self.ref_type)
        new.update(self)
        return new

    __copy__ = copy

    def __deepcopy__(self, memo: Any) -> WeakIdKeyDictionary:
        import copy

        new = type(self)()
        for key, value in self.items():
            new[key] = copy.deepcopy(value, memo)
        return new

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, MutableMapping):
            return NotImplemented
        return {id(k): v for k, v in self.items()} == {id(k): v for k, v in other.items()}

    __hash__ = None  # type: ignore[assignment]

    def __or__(self, other: Any) -> WeakIdKeyDictionary:
        new = self.copy()
        new.update(other)
        return new

    def __ror__(self, other: Any) -> WeakIdKeyDictionary:
        new = self.__class__(None, self.ref_type)
        new.update(other)
        new.update(self)
        return new

    def update(self, dict: Any = None, **kwargs: Any) -> None:  # type: ignore[override]
        """Set the entries of a mapping or of (key, value) pairs."""
        for entries in ({} if dict is None else dict, kwargs):
            super().update(entries if hasattr(entries, "items") else builtins.dict(entries))

    def __ior__(self, other: Any) -> WeakIdKeyDictionary:
        self.update(other)
        return self


WeakTensorKeyDictionary = WeakIdKeyDictionary
WeakRef = WeakIdRef


class TensorWeakRef:
    """A weak reference to a tensor.

    >>> import flambeau as torch
    >>> from flambeau.utils.weak import TensorWeakRef
    >>> x = torch.ones(2)
    >>> TensorWeakRef(x)() is x
    True
    """

    def __init__(self, tensor: Tensor) -> None:
        if not isinstance(tensor, Tensor):
            raise AssertionError(f"expected torch.Tensor, got {type(tensor)}.")
        self.ref = weakref.ref(tensor)

    def __call__(self) -> Any:
        return self.ref()


__all__ = ["TensorWeakRef", "WeakIdKeyDictionary", "WeakIdRef", "WeakRef", "WeakTensorKeyDictionary", "ref"]
