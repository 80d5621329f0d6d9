"""Overloads: operators under the names of PyTorch's dispatcher, as `torch.ops.aten.add.Tensor`.

    torch.ops.aten.mm.default       one operator: an overload
    torch.ops.aten.mm               an overload packet: all overloads of a name
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from .overload_runner import runner
from .schemas import FunctionSchema


class OpOverload:
    """One overload of an operator, as PyTorch's dispatcher names it.

    >>> import flambeau as torch
    >>> print(torch.ops.aten.mm.default)
    aten.mm.default
    >>> torch.ops.aten.add.Tensor(torch.ones(1), 2, alpha=3)
    tensor([7.])
    """

    def __init__(self, packet: OpOverloadPacket, overload: str, schema: FunctionSchema | None = None) -> None:
        self.overloadpacket = packet
        self.namespace = packet.namespace
        self._overloadname = overload
        self._given_schema = schema
        self.__name__ = self.__qualname__ = f"{packet.__name__}.{overload}"
        self.__module__ = f"torch._ops.{packet.namespace}"
        self._tags: list[Any] | None = None

    @property
    def tags(self) -> list[Any]:
        """What is known of the operator, `[torch.Tag.pointwise]`."""
        if self._tags is None:
            from .tags import aten_tags

            known = self.namespace == "aten" and self._given_schema is not None
            self._tags = aten_tags(self.name().partition("::")[2], self._schema) if known else []
        return self._tags

    @tags.setter
    def tags(self, tags: list[Any]) -> None:
        self._tags = tags

    @property
    def _schema(self) -> FunctionSchema:
        schema = self._given_schema
        if schema is None:
            raise AttributeError(f"flambeau has no schema of {self}")
        return schema

    @property
    def _opname(self) -> str:
        return self.overloadpacket.__name__

    @property
    def _overloadpacket(self) -> OpOverloadPacket:
        return self.overloadpacket

    @property
    def _namespace(self) -> str:
        return self.namespace

    @property
    def _name(self) -> str:
        return self.name()

    @property
    def op(self) -> Any:
        """What runs it: the overload."""
        return self

    _op = op

    def name(self) -> str:
        """Return the qualified name of the schema, `aten::add.Tensor`."""
        overload = self._overloadname
        return f"{self.namespace}::{self.overloadpacket.__name__}" + ("" if overload == "default" else f".{overload}")

    @property
    def is_view(self) -> bool:
        """Whether a result aliases an argument that is not written."""
        return any(r.alias_info is not None and not r.alias_info.is_write for r in self._schema.returns)

    def _can_decompose(self) -> bool:
        """Whether it has no kernel of its own, but is a formula of other operators under each dispatch key."""
        return bool(self.has_kernel_for_dispatch_key("CompositeImplicitAutograd"))

    def decompose(self, /, *args: Any, **kwargs: Any) -> Any:
        """What its formula of other operators returns; `NotImplemented` where it has a kernel of its own.

        >>> import flambeau as torch
        >>> torch.ops.aten.linear.default.decompose(torch.ones(2), torch.ones(1, 2))
        tensor([2.])
        >>> torch.ops.aten.mm.default.decompose(torch.ones(1, 1), torch.ones(1, 1))
        NotImplemented
        """
        return self(*args, **kwargs) if self._can_decompose() else NotImplemented

    def has_kernel_for_dispatch_key(self, key: Any) -> bool:
        """Whether it has a kernel of its own for a dispatch key."""
        return runner.has_kernel(self.name(), key)

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        result = runner.overridden(self, args, kwargs)
        return runner.call(self, args, kwargs) if result is NotImplemented else result

    def __str__(self) -> str:
        return f"{self.namespace}.{self.__name__}"

    def __repr__(self) -> str:
        return f"<OpOverload(op='{self.namespace}.{self.overloadpacket.__name__}', overload='{self._overloadname}')>"

    def __copy__(self) -> OpOverload:
        return self

    def __deepcopy__(self, memo: Any = None) -> OpOverload:
        return self

    def __reduce__(self) -> Any:
        return _overload_at, (self.namespace, self.overloadpacket.__name__, self._overloadname)


class OpOverloadPacket:
    """All the overloads of one name.

    >>> import flambeau as torch
    >>> torch.ops.aten.mul.overloads()
    ['Tensor', 'Scalar', 'Scalar_out', 'out']
    """

    def __init__(self, name: str, namespace: str = "aten") -> None:
        self.__name__ = name
        self.namespace = namespace
        self._qualified_op_name = f"{namespace}::{name}"
        self.__module__ = f"torch._ops.{namespace}"
        self._overloads: dict[str, OpOverload] = {}

    def _overload(self, name: str, schema: FunctionSchema | None = None) -> OpOverload:
        result = self._overloads.get(name)
        if result is None:
            result = self._overloads[name] = OpOverload(self, name, schema)
        return result

    def overloads(self) -> list[str]:
        """Return the names of the overloads."""
        return list(self._overloads)

    @property
    def op(self) -> OpOverloadPacket:
        """What runs it: the packet."""
        return self

    _op = op

    @property
    def _overload_names(self) -> list[str]:
        return ["" if name == "default" else name for name in self._overloads]

    def __getattr__(self, name: str) -> OpOverload:
        result = self.__dict__.get("_overloads", {}).get(name)
        if result is None:
            qualified = f"{self.__dict__.get('namespace')}.{self.__dict__.get('__name__')}"
            raise AttributeError(f"The underlying op of '{qualified}' has no overload name '{name}'")
        return result

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        result = runner.overridden(self, args, kwargs)
        if result is not NotImplemented:
            return result
        overloads = self._overloads
        chosen = next(iter(overloads.values())) if len(overloads) == 1 else runner.resolve(self, args, kwargs)
        return runner.call(chosen, args, kwargs)

    def __iter__(self) -> Iterator[str]:
        return iter(self._overloads)

    def __str__(self) -> str:
        return f"{self.namespace}.{self.__name__}"

    def __repr__(self) -> str:
        return f"<OpOverloadPacket(op='{self.namespace}.{self.__name__}')>"

    def __deepcopy__(self, memo: Any = None) -> OpOverloadPacket:
        return self


class OpNamespace:
    """The operators of one library, `torch.ops.mylib`."""

    def __init__(self, name: str) -> None:
        self.__name__ = name
        self._packets: dict[str, OpOverloadPacket] = {}

    @property
    def name(self) -> str:
        """The library's name."""
        return self.__name__

    def __getattr__(self, name: str) -> OpOverloadPacket:
        packet = self.__dict__.get("_packets", {}).get(name)
        if packet is None:
            if name.startswith("__"):
                raise AttributeError(name)
            raise AttributeError(f"'_OpNamespace' '{self.__dict__.get('__name__')}' object has no attribute '{name}'")
        return packet

    def __iter__(self) -> Iterator[str]:
        return iter(self._packets)

    def __dir__(self) -> list[str]:
        return sorted(self._packets)

    def __repr__(self) -> str:
        return f"<module 'torch.ops.{self.__name__}'>"

    def packet(self, name: str) -> OpOverloadPacket:
        """The packet of a name, made where there is none."""
        found = self._packets.get(name)
        if found is None:
            found = self._packets[name] = OpOverloadPacket(name, self.__name__)
        return found


#: the libraries that the program defines, by name
namespaces: dict[str, OpNamespace] = {}


def namespace_of(name: str) -> OpNamespace:
    """The namespace of a library, made where there is none."""
    found = namespaces.get(name)
    if found is None:
        found = namespaces[name] = OpNamespace(name)
    return found


def _overload_at(namespace: str, name: str, overload: str) -> OpOverload:
    """The overload of a pickle."""
    library: Any = runner.aten() if namespace == "aten" else namespace_of(namespace)
    return getattr(getattr(library, name), overload)


__all__ = ["OpNamespace", "OpOverload", "OpOverloadPacket", "namespace_of", "namespaces", "runner"]
