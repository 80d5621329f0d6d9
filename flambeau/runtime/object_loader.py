"""Object code put into memory without LLVM: a process that finds its kernels on disk loads nothing else.

What LLVM makes of kernels is plain: code and constants that refer to each other at distances, and a few functions of
the C library. So on Linux and x86-64 this reads the ELF object itself. Whatever is beyond that, it leaves to LLVM.
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
#: kinds of sections: contents, relocations, memory of zeros
_CONTENTS, _SYMBOLS, _RELOCATIONS, _ZEROS = 1, 2, 4, 8
#: sections' flags: written to, in memory, of one thread's own
_WRITTEN, _IN_MEMORY, _OF_THREAD = 1, 2, 0x400
#: relocations: an address of 64 bits, a distance of 32, and that to a function
_ABSOLUTE, _DISTANCE, _CALL = 1, 2, 4
#: jmp [rip], before the address of what is further away than a distance can say
_JUMP = b"\xff\x25\0\0\0\0"


class NotPlain(Exception):
    """Object code that LLVM's linker is to look at."""


@cache
def works() -> bool:
    """Whether this is a system whose object code is read here."""
    return sys.platform == "linux" and platform.machine() == "x86_64" and sys.maxsize > 1 << 32


def load(code: bytes, names: Sequence[str]) -> dict[str, int]:
    """Where the functions of these names are, the code being in memory as long as the process is.

    Raises:
        NotPlain: it is not this module's to read.
    """
    if not works():
        raise NotPlain("another system")
    try:
        return _loaded(code, names)
    except (struct.error, IndexError, ValueError, KeyError, OSError, OverflowError) as error:
        raise NotPlain(str(error)) from error


def _loaded(code: bytes, names: Sequence[str]) -> dict[str, int]:
    if code[:6] != b"\x7fELF\x02\x01" or struct.unpack_from("<HH", code, 16) != (1, 62):
        raise NotPlain("no object of this kind")
    start, = struct.unpack_from("<Q", code, 40)
    size, count = struct.unpack_from("<HH", code, 58)
    if size != _SECTION.size or start + size * count > len(code):
        raise NotPlain("sections of another kind")
    sections = [_SECTION.unpack_from(code, start + i * size) for i in range(count)]
    places: dict[int, int] = {}
    total = 0
    for i, (_, kind, flags, _, offset, length, _, _, alignment, _) in enumerate(sections):
        if not flags & _IN_MEMORY or kind not in (_CONTENTS, _ZEROS):
            continue  # such as tables for unwinding, which nobody asks for
        if flags & (_WRITTEN | _OF_THREAD) or kind == _ZEROS:
            raise NotPlain("memory to be written")
        if alignment > mmap.PAGESIZE or offset + length > len(code):
            raise NotPlain("a section that does not fit")
        total = -(-total // max(1, alignment)) * max(1, alignment)
        places[i] = total
        total += length
    table = next(section for section in sections if section[1] == _SYMBOLS)
    strings = sections[table[6]]
    symbols = list(_SYMBOL.iter_unpack(code[table[4]:table[4] + table[5]]))

    def name_of(symbol: tuple[int, ...]) -> str:
        first = strings[4] + symbol[0]
        return code[first:code.index(0, first)].decode()

    far = {i: name_of(symbol) for i, symbol in enumerate(symbols) if i and not symbol[3]}
    jumps = -(-total // 16) * 16
    memory = mmap.mmap(-1, max(1, jumps + 16 * len(far)), mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    base = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    for i, place in places.items():
        memory[place:place + sections[i][5]] = code[sections[i][4]:sections[i][4] + sections[i][5]]
    addresses: dict[int, int] = {}
    for number, (i, name) in enumerate(far.items()):
        at = jumps + 16 * number
        memory[at:at + 14] = _JUMP + struct.pack("<Q", _function(name))
        addresses[i] = base + at
    for i, symbol in enumerate(symbols):
        if symbol[3] in places:
            addresses[i] = base + places[symbol[3]] + symbol[4]
    for section in sections:
        if section[1] != _RELOCATIONS or section[7] not in places:
            continue
        inside = places[section[7]]
        for offset, info, addend in _RELOCATION.iter_unpack(code[section[4]:section[4] + section[5]]):
            at, kind, symbol_number = inside + offset, info & 0xFFFFFFFF, info >> 32
            target = addresses[symbol_number] + addend
            if kind == _ABSOLUTE:
                struct.pack_into("<Q", memory, at, target)
            elif kind == _CALL or (kind == _DISTANCE and symbol_number not in far):
                struct.pack_into("<i", memory, at, target - (base + at))
            else:
                raise NotPlain(f"a relocation of kind {kind}")
    if _protect()(base, len(memory), mmap.PROT_READ | mmap.PROT_EXEC):
        raise NotPlain("memory that must not hold code")
    # Never unmapped, not even while the interpreter takes its modules down: arrays that are freed last of all go
    # through the allocator's code, and threads may wait in the pool's.
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(memory))
    wanted = set(names)
    found = {name_of(symbol): addresses[i] for i, symbol in enumerate(symbols)
             if symbol[3] in places and symbol[1] >> 4 and name_of(symbol) in wanted}
    return {name: found[name] for name in names}


@cache
def _library() -> Any:
    return ctypes.CDLL(None)


@cache
def _protect() -> Any:
    function = _library().mprotect
    function.argtypes, function.restype = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int), ctypes.c_int
    return function


def _function(name: str) -> int:
    """Where a function of the C library lies."""
    try:
        found = getattr(_library(), name)
    except AttributeError:
        raise NotPlain(f"there is no function {name}") from None
    return ctypes.cast(found, ctypes.c_void_p).value or 0


__all__ = ["NotPlain", "load", "works"]
