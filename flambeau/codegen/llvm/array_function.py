"""The frame of built-in functions on arrays: arguments checked, their data, what is returned."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from llvmlite import ir

from ...runtime import entry_points, numpy_abi
from . import kernel_entry
from .kernel_entry import FunctionPointer
from .loop_nests import I64, POINTER, as_opaque_pointer, at, i64, local, word

_BUILTIN = ir.FunctionType(POINTER, [POINTER, POINTER, I64])
_VOID = ir.VoidType()
#: types of elements by the dtype's character
TYPES: dict[str, ir.Type] = {"f": ir.FloatType(), "d": ir.DoubleType(), "l": I64}


class ArrayFunction:
    """A built-in function whose arguments are arrays, but for a None before them, which it returns where it gives up.

    Its block has words of its own, then the fields of `entry_points`.

    Args:
        name: of the function.
        words: how many words of its own the block has.
        arrays: how many arguments are arrays.
        first: the number of the first one: 1 after a None.
        module: a module that has other functions already.

    Attributes:
        b: the builder.
        data: the addresses of the arrays' elements.
    """

    def __init__(self, name: str, words: int, arrays: int, first: int = 1, module: ir.Module | None = None) -> None:
        self.module = module or ir.Module(name)
        function, self.b = kernel_entry.begin(self.module, name, _BUILTIN)
        b = self.b
        self._fields = entry_points.field_indices(words)
        self_, self._arguments, given = function.args
        self._block = b.load(at(b, self_, numpy_abi.DATA), typ=POINTER)
        self._refuse_unless(b.icmp_signed("==", given, i64(first + arrays)))
        self.data = [self._data(i) for i in range(first, first + arrays)]

    def word(self, index: Any) -> Any:
        """A word of the block."""
        return word(self.b, self._block, index)

    def variable(self, type_: ir.Type, value: Any) -> Any:
        """Memory of a variable, with its first value."""
        memory = as_opaque_pointer(self.b, local(self.b, type_))
        self.b.store(value, memory)
        return memory

    @contextmanager
    def released(self, condition: Any) -> Iterator[None]:
        """Code during which other threads of Python run where a condition holds; it may not leave the function."""
        b, state = self.b, self.variable(POINTER, ir.Constant(POINTER, None))
        with b.if_then(condition, likely=False):
            b.store(b.call(self.python("save", POINTER), []), state)
        yield
        with b.if_then(condition, likely=False):
            b.call(self.python("restore", _VOID, POINTER), [b.load(state, typ=POINTER)])

    def leave(self, index: int) -> None:
        """Return an argument."""
        value = self.argument(index)
        self.b.call(self.python("refer", _VOID, POINTER), [value])
        self.b.ret(value)

    def argument(self, index: int) -> Any:
        """An argument, an object."""
        return self.b.load(self.b.gep(self._arguments, [i64(index)], source_etype=POINTER), typ=POINTER)

    def python(self, field: str, result: Any, *types: Any) -> FunctionPointer:
        """A function of CPython's API."""
        address = self.b.inttoptr(self.word(self._fields[field]), POINTER)
        return FunctionPointer(address, ir.FunctionType(result, types))

    def _refuse_unless(self, condition: Any) -> None:
        b = self.b
        with b.if_then(b.not_(condition), likely=False):
            b.call(self.python("raise_error", _VOID, I64, I64),
                   [self.word(self._fields["error"]), self.word(self._fields["text"])])
            b.ret(ir.Constant(POINTER, None))

    def _data(self, index: int) -> Any:
        b, array = self.b, self.argument(index)
        self._refuse_unless(b.icmp_unsigned("==", b.ptrtoint(b.load(at(b, array, entry_points.TYPE), typ=POINTER), I64),
                                            self.word(self._fields["ndarray"])))
        return b.load(at(b, array, numpy_abi.DATA), typ=POINTER)


__all__ = ["TYPES", "ArrayFunction"]
