"""The functions of the C interface as LLVM IR: checks of arguments, and the choice of the variant of the code."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from .interface import FIRST_GUARD, STATUSES, Interface
from .pool_ir import aligned, pool_functions
from .targets import Variant
from .web.pool_ir import web_pool_functions
from .weights import StoredWeights
from .weights_ir import FILE_ALIGNMENT, weights_functions

_STATUS = {name: number for number, (name, _) in enumerate(STATUSES)}
ALIGNMENT = 64

#: sets @level to the level of x86-64 that the processor and the system have; 1 below level 2
_DETECT = """
declare hidden void @NAME_cpuid(i32, ptr)
declare hidden i32 @NAME_xgetbv()
define internal { i32, i32, i32, i32 } @cpuid(i32 %leaf) {
  %words = alloca [4 x i32], align 16
  call void @NAME_cpuid(i32 %leaf, ptr %words)
  %all = load { i32, i32, i32, i32 }, ptr %words, align 16
  ret { i32, i32, i32, i32 } %all
}
@level = internal global i32 0
define internal i32 @detect() {
entry:
  %known = load atomic i32, ptr @level monotonic, align 4
  %is.known = icmp ne i32 %known, 0
  br i1 %is.known, label %return, label %look
return:
  ret i32 %known
look:
  %l0 = call { i32, i32, i32, i32 } @cpuid(i32 0)
  %most = extractvalue { i32, i32, i32, i32 } %l0, 0
  %l1 = call { i32, i32, i32, i32 } @cpuid(i32 1)
  %c1 = extractvalue { i32, i32, i32, i32 } %l1, 2
  %v2.bits = and i32 %c1, 9970177
  %v2 = icmp eq i32 %v2.bits, 9970177
  %v3.bits = and i32 %c1, 943722496
  %v3.c1 = icmp eq i32 %v3.bits, 943722496
  %new = icmp uge i32 %most, 7
  %v3.maybe = and i1 %v3.c1, %new
  %v3.and = and i1 %v3.maybe, %v2
  br i1 %v3.and, label %look.further, label %two
two:
  %low = select i1 %v2, i32 2, i32 1
  br label %done
look.further:
  %xcr = call i32 @NAME_xgetbv()
  %l7 = call { i32, i32, i32, i32 } @cpuid(i32 7)
  %b7 = extractvalue { i32, i32, i32, i32 } %l7, 1
  %le = call { i32, i32, i32, i32 } @cpuid(i32 -2147483647)
  %ce = extractvalue { i32, i32, i32, i32 } %le, 2
  %lzcnt.bit = and i32 %ce, 32
  %lzcnt = icmp ne i32 %lzcnt.bit, 0
  %avx2.bits = and i32 %b7, 296
  %avx2 = icmp eq i32 %avx2.bits, 296
  %ymm.bits = and i32 %xcr, 6
  %ymm = icmp eq i32 %ymm.bits, 6
  %v3.a = and i1 %lzcnt, %avx2
  %v3 = and i1 %v3.a, %ymm
  %avx512.bits = and i32 %b7, -805109760
  %avx512 = icmp eq i32 %avx512.bits, -805109760
  %zmm.bits = and i32 %xcr, 230
  %zmm = icmp eq i32 %zmm.bits, 230
  %v4.a = and i1 %avx512, %zmm
  %v4 = and i1 %v4.a, %v3
  %three = select i1 %v3, i32 3, i32 2
  %four = select i1 %v4, i32 4, i32 %three
  br label %done
done:
  %level.found = phi i32 [ %low, %two ], [ %four, %look.further ]
  store atomic i32 %level.found, ptr @level monotonic, align 4
  ret i32 %level.found
}
"""
#: functions that read the processor's features, in assembly: LLVM parses inline assembly of this machine only
_FEATURES = """
\t.text
\t.hidden NAME_cpuid
\t.globl NAME_cpuid
\t.type NAME_cpuid,@function
NAME_cpuid:
\tpushq %rbx
\tmovl %edi, %eax
\txorl %ecx, %ecx
\tcpuid
\tmovl %eax, (%rsi)
\tmovl %ebx, 4(%rsi)
\tmovl %ecx, 8(%rsi)
\tmovl %edx, 12(%rsi)
\tpopq %rbx
\tretq
\t.hidden NAME_xgetbv
\t.globl NAME_xgetbv
\t.type NAME_xgetbv,@function
NAME_xgetbv:
\txorl %ecx, %ecx
\txgetbv
\tretq
\t.section .note.GNU-stack,"",@progbits
"""


def interface_assembly(interface: Interface, variants: Sequence[Variant]) -> str:
    """Assembly that the module of a program's C functions calls; "" for none."""
    return _FEATURES.replace("NAME", interface.name) if any(each.level for each in variants) else ""


def interface_module(
    interface: Interface, variants: Sequence[Variant], pointer_bits: int, weights: StoredWeights
) -> str:
    """The module of a program's C functions.

    Args:
        interface: what they are.
        variants: of the code, the best first; a program's module has the prefix `NAME_VARIANT`.
        pointer_bits: of the target.
        weights: how they are stored.
    """
    lines = [*_Module(interface, variants, pointer_bits).lines()]
    if weights.is_parameter:
        lines += weights_functions(interface, weights, f"i{pointer_bits}")
    if interface.threads > 1:
        functions = web_pool_functions if pointer_bits == 32 else pool_functions
        lines += functions(interface, f"{interface.name}_{variants[-1].name}")
    return "\n".join(lines) + "\n"


class _Module:
    def __init__(self, interface: Interface, variants: Sequence[Variant], pointer_bits: int) -> None:
        self.interface, self.variants = interface, variants
        self.name, self.size = interface.name, f"i{pointer_bits}"
        self.leveled = any(each.level for each in variants)
        self.rank = len(interface.sizes)

    def lines(self) -> Iterator[str]:
        """The module's text."""
        if self.leveled:
            yield _DETECT.replace("NAME", self.name)
        for each in self.variants:
            yield f"declare hidden i64 @{self.name}_{each.name}_run(ptr, ptr)"
            yield f"declare hidden i64 @{self.name}_{each.name}_arena(ptr)"
        if self.interface.weights and not self.interface.weights_file:
            yield f"@{self.name}_weights = external hidden constant i8"
        yield from self._arena_size()
        yield from self._run()
        yield from self._error_text()
        if self.interface.state:
            yield from self._state()

    def _sizes(self) -> Iterator[str]:
        yield f"  %sizes = alloca [{max(1, self.rank)} x i64], align 8"
        for d, each in enumerate(self.interface.sizes):
            yield f"  %size.{d} = getelementptr i64, ptr %sizes, i64 {d}\n  store i64 %arg.{each}, ptr %size.{d}"

    def _parameters(self) -> list[str]:
        return [f"i64 %arg.{each}" for each in self.interface.sizes]

    def _by_variant(self, function: str, arguments: str, unsupported: str) -> Iterator[str]:
        """Call a function of the best variant that the processor runs; then go on at `done`, with %found."""
        found = []
        if self.leveled:
            yield "  %level = call i32 @detect()"
        for i, each in enumerate(self.variants):
            if each.level:
                yield f"  %has.{i} = icmp sge i32 %level, {each.level}"
                yield f"  br i1 %has.{i}, label %use.{i}, label %next.{i}\nuse.{i}:"
            else:
                yield f"  br label %use.{i}\nuse.{i}:"
            yield f"  %found.{i} = call i64 @{self.name}_{each.name}_{function}({arguments})\n  br label %done"
            found.append(f"[ %found.{i}, %use.{i} ]")
            if each.level:
                yield f"next.{i}:"
        if self.leveled:
            yield unsupported
        yield f"done:\n  %found = phi i64 {', '.join(found)}"

    def _arena_size(self) -> Iterator[str]:
        yield f"define {self.size} @{self.name}_arena_size({', '.join(self._parameters())}) {{\nentry:"
        yield from self._sizes()
        yield from self._by_variant("arena", "ptr %sizes", f"  ret {self.size} 0")
        yield f"  %none = icmp slt i64 %found, 0\n  %all = add i64 %found, {2 * ALIGNMENT}"
        yield "  %bytes = select i1 %none, i64 0, i64 %all"
        yield from self._return_size("%bytes")

    def _return_size(self, value: str) -> Iterator[str]:
        if self.size == "i64":
            yield f"  ret i64 {value}\n}}"
        else:
            yield f"  %narrow = trunc i64 {value} to i32\n  ret i32 %narrow\n}}"

    def _check(self, number: int, condition: str, status: str) -> Iterator[str]:
        """Return a status if a condition, an i1, holds."""
        yield f"  br i1 {condition}, label %fail.{number}, label %ok.{number}"
        yield f"fail.{number}:\n  ret i32 {_STATUS[status]}\nok.{number}:"

    def _run(self) -> Iterator[str]:
        api, checks = self.interface, iter(range(1 << 30))
        operands = [*api.inputs, *api.outputs]
        parameters = ["ptr %state", f"{self.size} %state_bytes"] if api.state else []
        parameters += ["ptr %weights"] if api.passes_weights else []
        parameters += [
            *self._parameters(),
            *(f"ptr %arg.{each.name}" for each in operands),
            "ptr %arena",
            f"{self.size} %arena_bytes",
            *(["ptr %pool.memory"] if api.threads > 1 else []),
        ]
        yield f"define i32 @{self.name}_run({', '.join(parameters)}) {{\nentry:"
        yield from self._sizes()
        pointers = [(f"arg.{each.name}", each.alignment) for each in operands] + [("arena", 1)]
        pointers += [("state", ALIGNMENT)] if api.state else []
        pointers += [("weights", FILE_ALIGNMENT)] if api.passes_weights else []
        for name, _ in pointers:
            yield f"  %null.{name} = icmp eq ptr %{name}, null"
            yield from self._check(next(checks), f"%null.{name}", "NULL_POINTER")
        for name, alignment in pointers:
            if alignment > 1:
                yield f"  %address.{name} = ptrtoint ptr %{name} to i64"
                yield f"  %low.{name} = and i64 %address.{name}, {alignment - 1}"
                yield f"  %off.{name} = icmp ne i64 %low.{name}, 0"
                yield from self._check(next(checks), f"%off.{name}", "MISALIGNED")
        if api.state:
            yield f"  %small.state = icmp ult {self.size} %state_bytes, {api.state}"
            yield from self._check(next(checks), "%small.state", "SMALL_STATE")
        arguments = ", ".join(f"i64 %arg.{each}" for each in api.sizes)
        yield f"  %needed = call {self.size} @{self.name}_arena_size({arguments})"
        if self.leveled:
            yield f"  %processor = call i32 @detect()\n  %old = icmp slt i32 %processor, {self.variants[-1].level}"
            yield from self._check(next(checks), "%old", "UNSUPPORTED_PROCESSOR")
        yield f"  %unknown = icmp eq {self.size} %needed, 0"
        yield from self._check(next(checks), "%unknown", "UNSUPPORTED_SIZE")
        yield f"  %small.arena = icmp ult {self.size} %arena_bytes, %needed"
        yield from self._check(next(checks), "%small.arena", "SMALL_ARENA")
        yield from self._bases([f"%arg.{each.name}" for each in operands])
        yield from self._by_variant("run", "ptr %bases, ptr %sizes", f"  ret i32 {_STATUS['UNSUPPORTED_PROCESSOR']}")
        yield "  %fine = icmp eq i64 %found, 0\n  br i1 %fine, label %fine.return, label %guard"
        yield "fine.return:\n  ret i32 0\nguard:\n  %number = trunc i64 %found to i32"
        yield f"  %status = add i32 %number, {FIRST_GUARD - 1}\n  ret i32 %status\n}}"

    def _bases(self, operands: list[str]) -> Iterator[str]:
        api = self.interface
        yield f"  %arena.address = ptrtoint ptr %arena to i64\n  %arena.up = add i64 %arena.address, {ALIGNMENT - 1}"
        yield f"  %arena.aligned = and i64 %arena.up, {-ALIGNMENT}"
        yield "  %arena.step = sub i64 %arena.aligned, %arena.address"
        yield "  %arena.base = getelementptr i8, ptr %arena, i64 %arena.step"
        weights = "%weights" if api.passes_weights else f"@{self.name}_weights" if api.weights else "null"
        bases = [*operands, "%state" if api.state else "null", weights, "%arena.base"]
        if api.threads > 1:
            yield aligned("%pool.memory", "pool")
            bases.append("%pool")
        yield f"  %bases = alloca [{len(bases)} x ptr], align 8"
        for i, each in enumerate(bases):
            yield f"  %base.{i} = getelementptr ptr, ptr %bases, i64 {i}\n  store ptr {each}, ptr %base.{i}"

    def _error_text(self) -> Iterator[str]:
        texts = {number: text for number, (_, text) in enumerate(STATUSES)}
        texts |= {FIRST_GUARD + i: text for i, text in enumerate(self.interface.guards)}
        texts[-1] = "there is no such status"
        for number, text in texts.items():
            bits = text.encode() + b"\0"
            data = "".join(f"\\{byte:02X}" for byte in bits)
            yield f'@text.{number + 1} = internal constant [{len(bits)} x i8] c"{data}"'
        yield f"define ptr @{self.name}_error_text(i32 %status) {{\nentry:\n  switch i32 %status, label %none ["
        yield from (f"    i32 {number}, label %text{number}" for number in texts if number >= 0)
        yield "  ]"
        yield from (f"text{number}:\n  ret ptr @text.{number + 1}" for number in texts if number >= 0)
        yield "none:\n  ret ptr @text.0\n}"

    def _state(self) -> Iterator[str]:
        api = self.interface
        yield f"@{self.name}_initial = external hidden constant i8"
        yield f"declare void @llvm.memcpy.p0.p0.{self.size}(ptr, ptr, {self.size}, i1)"
        yield f"define {self.size} @{self.name}_state_size() {{\n  ret {self.size} {api.state}\n}}"
        head = f"(ptr %state, {self.size} %state_bytes) {{\nentry:"
        yield f"define i32 @{self.name}_state_init{head}"
        yield from self._checked_state()
        yield (
            f"  call void @llvm.memcpy.p0.p0.{self.size}(ptr align {ALIGNMENT} %state, ptr align {ALIGNMENT} "
            f"@{self.name}_initial, {self.size} {api.state}, i1 false)\n  ret i32 0\n}}"
        )
        for each in api.settings:
            kind = "i64" if each.is_integer else "double"
            parameters = f"ptr %state, {self.size} %state_bytes, {kind} %value"
            yield f"define i32 @{self.name}_set_{each.name}({parameters}) {{\nentry:"
            yield from self._checked_state()
            yield f"  %at = getelementptr i8, ptr %state, i64 {each.offset}\n  store {kind} %value, ptr %at, align 8"
            yield "  ret i32 0\n}"

    def _checked_state(self) -> Iterator[str]:
        yield "  %null = icmp eq ptr %state, null"
        yield from self._check(0, "%null", "NULL_POINTER")
        yield f"  %address = ptrtoint ptr %state to i64\n  %low = and i64 %address, {ALIGNMENT - 1}"
        yield "  %off = icmp ne i64 %low, 0"
        yield from self._check(1, "%off", "MISALIGNED")
        yield f"  %small = icmp ult {self.size} %state_bytes, {self.interface.state}"
        yield from self._check(2, "%small", "SMALL_STATE")


__all__ = ["ALIGNMENT", "interface_assembly", "interface_module"]
