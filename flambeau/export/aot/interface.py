"""The C interface of a compiled program: its functions, operands, sizes and statuses."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from ...dtypes import BFLOAT16


class Extent(NamedTuple):
    """The extent of a dimension: `factor * size + offset` of a dynamic size, or `offset` where there is none."""

    size: str | None
    factor: int
    offset: int

    def value(self, sizes: Mapping[str, int]) -> int:
        """The extent for some sizes."""
        if self.size is None:
            return self.offset
        return self.factor * math.prod(sizes[name] for name in self.size.split("*")) + self.offset

    def __str__(self) -> str:
        if self.size is None:
            return str(self.offset)
        text = self.size if self.factor == 1 else f"{self.factor}*{self.size}"
        return text + (f"{self.offset:+d}" if self.offset else "")


class DerivedSize(NamedTuple):
    """A number that follows from the dynamic sizes: a sum of terms, divided and rounded down."""

    name: str
    terms: tuple[Extent, ...]
    divisor: int

    def __str__(self) -> str:
        total = " + ".join(map(str, self.terms)).replace("+ -", "- ")
        if self.divisor == 1:
            return f"{self.name} = {total}"
        return f"{self.name} = ({total}) / {self.divisor}, rounded down"

    def value(self, sizes: Mapping[str, int]) -> int:
        """The number for these sizes.

        >>> DerivedSize("rows", (Extent("h", 1, 0), Extent(None, 0, 1)), 2).value({"h": 6})
        3
        """
        return sum(each.value(sizes) for each in self.terms) // self.divisor


class Operand(NamedTuple):
    """An array that the caller passes.

    Attributes:
        name: of the parameter.
        dtype: of the elements.
        shape: the extents.
        written: whether the run writes to it.
    """

    name: str
    dtype: np.dtype
    shape: tuple[Extent, ...]
    written: bool

    @property
    def c_type(self) -> str:
        """The C type of an element."""
        return _C_TYPES["bfloat16" if self.dtype == BFLOAT16 else self.dtype.name]

    @property
    def alignment(self) -> int:
        """Bytes to which the address must be aligned."""
        return self.dtype.itemsize // 2 if self.dtype.kind == "c" else self.dtype.itemsize


class Setting(NamedTuple):
    """A number in the state that may be set between runs: a hyperparameter, a double, or a seed, an int64.

    Attributes:
        name: of the number.
        offset: in the state.
        default: in the initial state.
        is_integer: whether it is an int64.
    """

    name: str
    offset: int
    default: float
    is_integer: bool


class Interface(NamedTuple):
    """What the header declares.

    Attributes:
        name: the prefix of all functions.
        sizes: the names of the dynamic sizes.
        supported: the values of the sizes for which there are plans.
        inputs, outputs: the operands.
        state: bytes of the state; 0 for none.
        settings: hyperparameters in the state.
        guards: what must hold of the inputs' elements, by data guard.
        weights: bytes of the weights in memory.
        passes_weights: whether they are passed to each run.
        decodes_weights: whether they are decoded into memory of the caller.
        weights_file: whether they are in a file beside.
        targets: what the code is compiled for, in words.
        threads: how many threads a run is planned for; 1: no pool is passed.
        derived: numbers that follow from the sizes, in order.
    """

    name: str
    sizes: tuple[str, ...]
    supported: list[tuple[int, ...]]
    inputs: list[Operand]
    outputs: list[Operand]
    state: int
    settings: list[Setting]
    guards: list[str]
    weights: int
    passes_weights: bool
    decodes_weights: bool
    weights_file: bool
    targets: str
    threads: int = 1
    derived: tuple[DerivedSize, ...] = ()

    def numbers(self, sizes: Sequence[int]) -> dict[str, int]:
        """The dynamic sizes, and what is derived from them, by name."""
        found = dict(zip(self.sizes, sizes, strict=True))
        for each in self.derived:
            found[each.name] = each.value(found)
        return found


#: statuses, in order from 0 on: name, text
STATUSES = [
    ("OK", "no error"),
    ("NULL_POINTER", "a pointer is null"),
    ("MISALIGNED", "an address is not a multiple of its element's size"),
    ("UNSUPPORTED_SIZE", "there is no code for these sizes: the header lists those that there are"),
    ("SMALL_ARENA", "the arena has fewer bytes than the arena_size function returns for these sizes"),
    ("SMALL_STATE", "the state has fewer bytes than the state_size function returns"),
    ("UNSUPPORTED_PROCESSOR", "the processor lacks instructions that the code needs"),
    ("SMALL_WEIGHTS", "the memory for weights has fewer bytes than the weights_size function returns"),
    ("BAD_WEIGHTS", "the bytes are not the weights file of this model, or not all of it"),
    ("SMALL_POOL", "the memory of a pool has fewer bytes than the pool_size function returns"),
    ("NO_THREADS", "the system has not started the threads, or it is not a number from 1 to 64"),
]
#: the status of the first data guard
FIRST_GUARD = 32

_C_TYPES = {
    "float32": "float",
    "float64": "double",
    "int64": "int64_t",
    "int32": "int32_t",
    "int16": "int16_t",
    "int8": "int8_t",
    "uint8": "uint8_t",
    "bool": "uint8_t",
    "uint16": "uint16_t",
    "uint32": "uint32_t",
    "uint64": "uint64_t",
    "float16": "uint16_t",
    "bfloat16": "uint16_t",
    "complex64": "float",
    "complex128": "double",
}
_RESERVED = """
    alignas alignof auto bool break case catch char class const constexpr continue default delete do double else enum
    explicit export extern false float for friend goto if inline int long mutable namespace new nullptr operator private
    protected public register restrict return short signed sizeof static struct switch template this throw true try
    typedef typename union unsigned using virtual void volatile while and or not xor
    arena arena_bytes state state_bytes weights pool"""
_KEYWORDS = frozenset(_RESERVED.split())


def identifier(name: str) -> str:
    """A C identifier like a name.

    >>> identifier("3d-net"), identifier("class")
    ('_3d_net', 'class_')
    """
    text = re.sub(r"\W", "_", name, flags=re.ASCII) or "_"
    text = f"_{text}" if text[0].isdigit() else text
    return f"{text}_" if text in _KEYWORDS else text


def distinct(names: list[str]) -> list[str]:
    """C identifiers like these names, all different."""
    found: list[str] = []
    for name in map(identifier, names):
        number, unique = 1, name
        while unique in found:
            number += 1
            unique = f"{name}_{number}"
        found.append(unique)
    return found


__all__ = [
    "FIRST_GUARD",
    "STATUSES",
    "DerivedSize",
    "Extent",
    "Interface",
    "Operand",
    "Setting",
    "distinct",
    "identifier",
]
