"""What a schema says of memory: which arguments are written, and what may share memory with what."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import Any

from .._tensor import Tensor
from ..backends.numpy.memory import address, owner
from ..devices import strided
from ..ops.schemas import AliasInfo, FunctionSchema
from ..trees import tree_leaves

#: operators that write running statistics, if they train, although their schemas do not say so
_TRAINING = {"aten::batch_norm": "training", "aten::instance_norm": "use_input_stats",
             "aten::native_batch_norm": "training", "aten::cudnn_batch_norm": "training"}
_STATISTICS = ("running_mean", "running_var")


class SchemaArgType(enum.Enum):
    """Whether a value goes in or comes out."""

    input = 0
    output = 1


@dataclass(frozen=True)
class SchemaArgument:
    """An argument or a return of a schema: `torch._C._SchemaArgument`."""

    type: SchemaArgType
    index: int


def _storages(value: Any) -> set[int]:
    return {address(owner(x._array)) for x in tree_leaves(value)
            if isinstance(x, Tensor) and x.layout is strided and x._array.size}


def overlaps(first: Any, second: Any) -> bool:
    """Whether a tensor of one value shares its storage with one of another: `torch._C._overlaps`.

    >>> import flambeau as torch
    >>> x = torch.ones(2)
    >>> torch._C._overlaps([x], x[:1]), torch._C._overlaps(x, torch.ones(2))
    (True, False)
    """
    return not _storages(first).isdisjoint(_storages(second))


class SchemaInfo:
    """What a schema says of memory, for the arguments of a call as far as they are known: `torch._C._SchemaInfo`.

    Args:
        schema: the schema, or its text.

    >>> import flambeau as torch
    >>> info = torch._C._SchemaInfo(torch.ops.aten.add_.Tensor._schema)
    >>> info.is_mutable("self"), info.is_mutable("other")
    (True, False)
    """

    def __init__(self, schema: Any) -> None:
        self._schema = FunctionSchema(schema) if isinstance(schema, str) else schema
        self._values: dict[str, Any] = {}

    def add_argument_value(self, name: str, value: Any) -> None:
        """Make an argument known."""
        self._values["self" if name == "input" and self._index("input") is None else name] = value

    def add_argument_values(self, values: dict[str, Any]) -> None:
        """Make arguments known."""
        for name, value in values.items():
            self.add_argument_value(name, value)

    def _index(self, name: str) -> int | None:
        names = [a.name for a in self._schema.arguments]
        return names.index(name) if name in names else None

    def _info(self, argument: SchemaArgument) -> AliasInfo | None:
        entries = self._schema.arguments if argument.type is SchemaArgType.input else self._schema.returns
        found: AliasInfo | None = entries[argument.index].alias_info
        return found

    def is_mutable(self, argument: Any = None) -> bool:
        """Whether an argument is written, an index, a name or a `SchemaArgument`; without one: whether any is."""
        if argument is None:
            return any(self.is_mutable(i) for i in range(len(self._schema.arguments)))
        if isinstance(argument, SchemaArgument):
            index: int | None = argument.index
        else:
            index = self._index(argument) if isinstance(argument, str) else argument
            if index is None and argument == "input":
                index = self._index("self")
        if index is None:
            raise RuntimeError(f"Schema has no argument named {argument}")
        given = self._schema.arguments[index]
        training = _TRAINING.get(self._schema.name)
        if training is not None and given.name in _STATISTICS and self._values.get(training):
            return True
        if given.alias_info is not None and given.alias_info.is_write:
            return True
        own = self._values.get(given.name)  # memory that is written under another name
        return own is not None and any(
            other.alias_info is not None and other.alias_info.is_write and overlaps(own, self._values.get(other.name))
            for other in self._schema.arguments if other is not given)

    def has_argument(self, name: str) -> bool:
        """Whether the schema has an argument of a name."""
        return self._index(name) is not None

    def may_alias(self, first: SchemaArgument, second: SchemaArgument) -> bool:
        """Whether two values may share memory."""
        if first.type is second.type is SchemaArgType.input:
            names = [self._schema.arguments[each.index].name for each in (first, second)]
            if all(name in self._values for name in names) and overlaps(*(self._values[name] for name in names)):
                return True
        sets = [self._sets(each) for each in (first, second)]
        return bool(sets[0] & sets[1]) or ("*" in sets[0] and bool(sets[1])) or ("*" in sets[1] and bool(sets[0]))

    def may_contain_alias(self, first: SchemaArgument, second: SchemaArgument, bidirectional: bool = True) -> bool:
        """Whether two values, or what is in them, may share memory."""
        return self.may_alias(first, second)

    def _sets(self, argument: SchemaArgument) -> set[str]:
        """The alias sets of a value, those of inputs that share its memory in this call included."""
        info = self._info(argument)
        if info is None:
            found: set[str] = set()
        else:
            found = set(info.before_set) | set(info.after_set)
        if argument.type is SchemaArgType.input:
            own = self._values.get(self._schema.arguments[argument.index].name)
            if own is not None:
                for other in self._schema.arguments:
                    value = self._values.get(other.name)
                    if other.alias_info is not None and value is not None and overlaps(own, value):
                        found |= set(other.alias_info.before_set) | set(other.alias_info.after_set)
        return found


__all__ = ["SchemaArgType", "SchemaArgument", "SchemaInfo", "overlaps"]
