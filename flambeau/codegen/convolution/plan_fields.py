"""A plan's words as code reads them, and functions whose addresses are among them."""

from __future__ import annotations

from typing import Any

from llvmlite import ir

from ..llvm.loop_nests import POINTER, i64, word
from .plan import OPERAND, Words


class Callee:
    """A function whose address is a value: llvmlite's builder asks a callee for its type, which an integer has not."""

    def __init__(self, builder: ir.IRBuilder, address: Any, function_type: ir.FunctionType) -> None:
        self.pointer = builder.inttoptr(address, POINTER)
        self.function_type, self.type = function_type, POINTER

    def get_reference(self) -> str:
        return str(self.pointer.get_reference())


class Plan:
    """A plan's words, read where a builder stands."""

    def __init__(self, builder: ir.IRBuilder, words: Any, names: Words) -> None:
        self.builder, self.words, self.names = builder, words, names

    def __getitem__(self, name: str) -> Any:
        return word(self.builder, self.words, self.names.places[name])

    def operand(self, index: int, axis: int) -> Any:
        """An operand's stride."""
        return self.at("operands.at", i64(index * OPERAND + axis))

    def at(self, start: str, index: Any) -> Any:
        """Element `index` of the list that begins where the word `start` says."""
        return word(self.builder, self.words, self.builder.add(self[start], index))

    def list(self, start: str) -> Any:
        """Where the list begins that the word `start` tells of."""
        return self.builder.gep(self.words, [self[start]], source_etype=ir.IntType(64))
