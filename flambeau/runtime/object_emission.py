"""LLVM's intermediate code turned into object code, by several threads at once.

llvmlite lets one thread at a time into LLVM. LLVM itself asks for no such thing of threads that share nothing, and here
each has a context, a target machine and passes of its own; so what takes long is called past llvmlite's lock. What
takes microseconds is called without giving the interpreter's lock away, which would cost a wait to get back.
"""

from __future__ import annotations

import ctypes
import threading
from functools import cache
from typing import Any

from . import target

_LONG = ("LLVMPY_ParseAssembly", "LLVMPY_VerifyModule", "LLVMPY_RunNewModulePassManager",
         "LLVMPY_TargetMachineEmitToMemory")
_SHORT = ("LLVMPY_ContextCreate", "LLVMPY_SetTarget", "LLVMPY_SetDataLayout", "LLVMPY_GetBufferStart",
          "LLVMPY_GetBufferSize", "LLVMPY_DisposeMemoryBuffer", "LLVMPY_DisposeModule", "LLVMPY_ContextDispose",
          "LLVMPY_DisposeString")


@cache
def _functions() -> dict[str, Any]:
    """LLVM's functions by their names, as llvmlite declares them but without its lock."""
    import llvmlite.binding  # noqa: F401  which declares them
    from llvmlite.binding import ffi

    path = ffi.lib._name
    found: dict[str, Any] = {}
    for library, names in ((ctypes.CDLL(path), _LONG), (ctypes.PyDLL(path), _SHORT)):
        for name in names:
            declared = getattr(ffi.lib, name)
            found[name] = function = getattr(library, name)
            function.argtypes, function.restype = declared.argtypes, declared.restype
    return found


class Translator:
    """What one thread translates with."""

    def __init__(self) -> None:
        self.machine = target.machine()
        self.layout = str(self.machine.target_data).encode()
        self.builder = target.pass_builder(self.machine)
        self.few = target.pipeline(self.builder, "few")

    def pipeline(self, passes: bool | str) -> Any:
        """The passes of that name; the usual ones are made anew each time, since the inliner is used up by a run."""
        return self.few if passes == "few" else target.pipeline(self.builder, passes)

    def object_code(self, source: str, passes: bool | str) -> bytes:
        """The object code of a module's text.

        Raises:
            RuntimeError: the text is not well-formed.
        """
        llvm = _functions()
        told = ctypes.c_char_p()
        said = ctypes.byref(told)
        context = llvm["LLVMPY_ContextCreate"]()
        module = None
        try:
            module = llvm["LLVMPY_ParseAssembly"](context, source.encode(), said)
            if not module:
                raise RuntimeError(f"LLVM IR parsing error\n{_text(told)}")
            llvm["LLVMPY_SetTarget"](module, target.host().triple.encode())
            llvm["LLVMPY_SetDataLayout"](module, self.layout)
            if llvm["LLVMPY_VerifyModule"](module, said):
                raise RuntimeError(_text(told))
            if passes:
                llvm["LLVMPY_RunNewModulePassManager"](self.pipeline(passes), module, self.builder)
            buffer = llvm["LLVMPY_TargetMachineEmitToMemory"](self.machine, module, 1, said)
            if not buffer:
                raise RuntimeError(_text(told))
            try:
                return ctypes.string_at(llvm["LLVMPY_GetBufferStart"](buffer), llvm["LLVMPY_GetBufferSize"](buffer))
            finally:
                llvm["LLVMPY_DisposeMemoryBuffer"](buffer)
        finally:
            if told:
                llvm["LLVMPY_DisposeString"](told)
            if module:
                llvm["LLVMPY_DisposeModule"](module)
            llvm["LLVMPY_ContextDispose"](context)


def _text(told: ctypes.c_char_p) -> str:
    return (told.value or b"").decode(errors="replace")


_own = threading.local()


def object_code(source: str, passes: bool | str = True) -> bytes:
    """The object code of a module's text, after the passes that `target.pipeline` names."""
    found: Translator | None = getattr(_own, "translator", None)
    if found is None:
        found = _own.translator = Translator()
    return found.object_code(source, passes)


__all__ = ["Translator", "object_code"]
