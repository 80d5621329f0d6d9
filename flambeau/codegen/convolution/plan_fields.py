"""Access to a plan's fields from generated code, and calls of functions whose addresses are fields."""

from __future__ import annotations

from typing import Any

from llvmlite import ir

from ..llvm.loop_nests import POINTER, i64, word
from .plan import OPERAND, PlanLayout


class Callee:
    """A callee given by an integer address, with the attributes that llvmlite's builder requires of a callee."""

    def __init__(self, builder: ir.IRBuilder, address: Any, function_type: ir.FunctionType) -> None:
        self.pointer = builder.inttoptr(address, POINTER)
        self.function_type, self.type = function_type, POINTER

    def get_reference(self) -> str:
        return str(self.pointer.get_reference())


class Plan:
    """Loads of a plan's fields at the builder's position."""

    def __init__(self, builder: ir.IRBuilder, words: Any, names: PlanLayout) -> None:
        self.builder, self.words, self.names = builder, words, names

    def __getitem__(self, name: str) -> Any:
        return word(self.builder, self.words, self.names.places[name])

    def operand(self, index: int, axis: int) -> Any:
        """Stride number `axis` of an operand."""
        return self.at("operands.at", i64(index * OPERAND + axis))

    def at(self, start: str, index: Any) -> Any:
        """Element `index` of the list whose start is the field `start`."""
        return word(self.builder, self.words, self.builder.add(self[start], index))

    def list(self, start: str) -> Any:
        """The address of the list whose start is the field `start`."""
        return self.builder.gep(self.words, [self[start]], source_etype=ir.IntType(64))
