"""A loader of ELF object code, so that processes that find their kernels in the persistent cache need not import LLVM.

The object code of kernels is simple: code and constants with PC-relative references to each other, and calls of a few
functions of the C library. This module loads such objects on Linux and x86-64; all others go to LLVM's linker.
"""

from __future__ import annotations

import ctypes
import mmap
import platform
import struct
import sys
from collections.abc import Sequence
from functools import cache
from typing import Any

_SECTION = struct.Struct("<IIQQQQIIQQ")
_SYMBOL = struct.Struct("<IBBHQQ")
_RELOCATION = struct.Struct("<QQq")
#: section types: contents, symbols, relocations, zero-initialized memory
_PROGBITS, _SYMTAB, _RELA, _NOBITS = 1, 2, 4, 8
#: section flags: writable, loaded into memory, thread-local
_WRITE, _ALLOC, _TLS = 1, 2, 0x400
#: relocation types: a 64-bit address, a 32-bit PC-relative offset, and that of a call
_R_64, _R_PC32, _R_PLT32 = 1, 2, 4
#: jmp [rip]; the 8-byte address follows. For functions out of reach of a 32-bit offset
_INDIRECT_JUMP = b"\xff\x25\0\0\0\0"


class UnsupportedObject(Exception):
    """Object code that this loader cannot load, and LLVM's linker may."""


@cache
def is_supported() -> bool:
    """Whether this loader supports the system."""
    return sys.platform == "linux" and platform.machine() == "x86_64" and sys.maxsize > 1 << 32


def load(code: bytes, names: Sequence[str]) -> dict[str, int]:
    """Load object code for the rest of the process; the addresses of the functions of these names.

    Raises:
        UnsupportedObject: the object has features that this loader lacks.
    """
    if not is_supported():
        raise UnsupportedObject("the system is not supported")
    try:
        return _link(code, names)
    except (struct.error, IndexError, ValueError, KeyError, OSError, OverflowError) as error:
        raise UnsupportedObject(str(error)) from error


def _link(code: bytes, names: Sequence[str]) -> dict[str, int]:
    if code[:6] != b"\x7fELF\x02\x01" or struct.unpack_from("<HH", code, 16) != (1, 62):
        raise UnsupportedObject("not an x86-64 ELF object")
    start, = struct.unpack_from("<Q", code, 40)
    size, count = struct.unpack_from("<HH", code, 58)
    if size != _SECTION.size or start + size * count > len(code):
        raise UnsupportedObject("an invalid section table")
    sections = [_SECTION.unpack_from(code, start + i * size) for i in range(count)]
    offsets: dict[int, int] = {}
    total = 0
    for i, (_, kind, flags, _, offset, length, _, _, alignment, _) in enumerate(sections):
        if not flags & _ALLOC or kind not in (_PROGBITS, _NOBITS):
            continue  # such as unwind tables, which nothing uses
        if flags & (_WRITE | _TLS) or kind == _NOBITS:
            raise UnsupportedObject("writable memory")
        if alignment > mmap.PAGESIZE or offset + length > len(code):
            raise UnsupportedObject("a section that does not fit")
        total = -(-total // max(1, alignment)) * max(1, alignment)
        offsets[i] = total
        total += length
    table = next(section for section in sections if section[1] == _SYMTAB)
    strings = sections[table[6]]
    symbols = list(_SYMBOL.iter_unpack(code[table[4]:table[4] + table[5]]))

    def name_of(symbol: tuple[int, ...]) -> str:
        first = strings[4] + symbol[0]
        return code[first:code.index(0, first)].decode()

    external = {i: name_of(symbol) for i, symbol in enumerate(symbols) if i and not symbol[3]}
    jump_table = -(-total // 16) * 16
    memory = mmap.mmap(-1, max(1, jump_table + 16 * len(external)), mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    base = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    for i, start_offset in offsets.items():
        memory[start_offset:start_offset + sections[i][5]] = code[sections[i][4]:sections[i][4] + sections[i][5]]
    addresses: dict[int, int] = {}
    for number, (i, name) in enumerate(external.items()):
        at = jump_table + 16 * number
        memory[at:at + 14] = _INDIRECT_JUMP + struct.pack("<Q", _c_function_address(name))
        addresses[i] = base + at
    for i, symbol in enumerate(symbols):
        if symbol[3] in offsets:
            addresses[i] = base + offsets[symbol[3]] + symbol[4]
    for section in sections:
        if section[1] != _RELA or section[7] not in offsets:
            continue
        inside = offsets[section[7]]
        for offset, info, addend in _RELOCATION.iter_unpack(code[section[4]:section[4] + section[5]]):
            at, kind, symbol_number = inside + offset, info & 0xFFFFFFFF, info >> 32
            target = addresses[symbol_number] + addend
            if kind == _R_64:
                struct.pack_into("<Q", memory, at, target)
            elif kind == _R_PLT32 or (kind == _R_PC32 and symbol_number not in external):
                struct.pack_into("<i", memory, at, target - (base + at))
            else:
                raise UnsupportedObject(f"a relocation of kind {kind}")
    if _mprotect()(base, len(memory), mmap.PROT_READ | mmap.PROT_EXEC):
        raise UnsupportedObject("memory cannot be made executable")
    # Never unmapped, not even at interpreter shutdown: arrays freed last go through the allocator's code, and threads
    # may wait in the pool's code.
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(memory))
    exported = set(names)
    exports = {name_of(symbol): addresses[i] for i, symbol in enumerate(symbols)
             if symbol[3] in offsets and symbol[1] >> 4 and name_of(symbol) in exported}
    return {name: exports[name] for name in names}


@cache
def _c_library() -> Any:
    return ctypes.CDLL(None)


@cache
def _mprotect() -> Any:
    function = _c_library().mprotect
    function.argtypes, function.restype = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int), ctypes.c_int
    return function


def _c_function_address(name: str) -> int:
    """The address of a function of the C library."""
    try:
        function = getattr(_c_library(), name)
    except AttributeError:
        raise UnsupportedObject(f"the C library has no function {name}") from None
    return ctypes.cast(function, ctypes.c_void_p).value or 0


__all__ = ["UnsupportedObject", "is_supported", "load"]
