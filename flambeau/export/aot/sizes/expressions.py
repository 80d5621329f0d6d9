"""Symbolic integers as LLVM IR: what a program computes from its sizes before it runs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ....runtime.symbolic_integers import Expression, SymbolicInteger

_OPERATIONS = {"add": "add", "sub": "sub", "mul": "mul"}


class SizeFunction:
    """The body of a function that computes integers from `%sizes`, an array of 64-bit integers."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self._known: dict[int, tuple[str, Expression]] = {}  # by identity: the operand; the expression lives as long

    def value(self, x: int | SymbolicInteger) -> str:
        """The operand that is an integer."""
        return self._value(x.expression) if isinstance(x, SymbolicInteger) else str(x)

    def _name(self, text: str) -> str:
        name = f"%v{len(self.lines)}"
        self.lines.append(f"  {name} = {text}")
        return name

    def _value(self, expression: Expression) -> str:
        if isinstance(expression, int):
            return str(expression)
        if id(expression) not in self._known:
            self._known[id(expression)] = self._computed(expression), expression
        return self._known[id(expression)][0]

    def _computed(self, expression: Expression) -> str:
        name, *operands = expression
        if name == "size":
            place = self._name(f"getelementptr i64, ptr %sizes, i64 {operands[0]}")
            return self._name(f"load i64, ptr {place}, align 8")
        left, right = map(self._value, operands)
        if name in _OPERATIONS:
            return self._name(f"{_OPERATIONS[name]} i64 {left}, {right}")
        if name in ("min", "max"):
            is_left = self._name(f"icmp {'slt' if name == 'min' else 'sgt'} i64 {left}, {right}")
            return self._name(f"select i1 {is_left}, i64 {left}, i64 {right}")
        # Python rounds quotients down: a remainder has the sign of the divisor
        rest = self._name(f"srem i64 {left}, {right}")
        signs = self._name(f"xor i64 {rest}, {right}")
        differ = self._name(f"icmp slt i64 {signs}, 0")
        some = self._name(f"icmp ne i64 {rest}, 0")
        is_other = self._name(f"and i1 {differ}, {some}")
        if name == "mod":
            moved = self._name(f"select i1 {is_other}, i64 {right}, i64 0")
            return self._name(f"add i64 {rest}, {moved}")
        quotient = self._name(f"sdiv i64 {left}, {right}")
        less = self._name(f"sext i1 {is_other} to i64")
        return self._name(f"add i64 {quotient}, {less}")


def arena_function(name: str, arena: int | SymbolicInteger, before: int) -> Iterator[str]:
    """A function that returns the bytes of an arena, behind those of the table."""
    body = SizeFunction()
    total = body.value(arena)
    yield f"define internal i64 @{name}(ptr %sizes) {{"
    yield from body.lines
    yield f"  %total = add i64 {total}, {before}\n  ret i64 %total\n}}"


def fill_function(name: str, template: str, words: Sequence[int | SymbolicInteger]) -> Iterator[str]:
    """A function that copies a table and computes those of its words that depend on sizes."""
    body = SizeFunction()
    yield f"define internal void @{name}(ptr %sizes, ptr %table) {{"
    copied = f"ptr align 64 %table, ptr align 64 @{template}, i64 {8 * len(words)}, i1 false"
    yield f"  call void @llvm.memcpy.p0.p0.i64({copied})"
    for i, word in enumerate(words):
        if isinstance(word, SymbolicInteger):
            value = body.value(word)
            body.lines.append(f"  %at{i} = getelementptr i64, ptr %table, i64 {i}")
            body.lines.append(f"  store i64 {value}, ptr %at{i}, align 8")
    yield from body.lines
    yield "  ret void\n}"


__all__ = ["SizeFunction", "arena_function", "fill_function"]
