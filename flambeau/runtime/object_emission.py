"""Compilation of LLVM IR to object code, by several threads at once.

llvmlite serializes all calls into LLVM by a lock. LLVM does not need that of threads that share nothing, and here each
thread has its own context, target machine and passes. So long calls go through ctypes, without llvmlite's lock and
without the GIL. Short calls keep the GIL, since reacquiring it may take longer than the call.
"""

from __future__ import annotations

import ctypes
import threading
from functools import cache
from typing import Any

from . import target

_LONG_CALLS = ("LLVMPY_ParseAssembly", "LLVMPY_VerifyModule", "LLVMPY_RunNewModulePassManager",
         "LLVMPY_TargetMachineEmitToMemory")
_SHORT_CALLS = ("LLVMPY_ContextCreate", "LLVMPY_SetTarget", "LLVMPY_SetDataLayout", "LLVMPY_GetBufferStart",
          "LLVMPY_GetBufferSize", "LLVMPY_DisposeMemoryBuffer", "LLVMPY_DisposeModule", "LLVMPY_ContextDispose",
          "LLVMPY_DisposeString")


@cache
def _functions() -> dict[str, Any]:
    """LLVM's functions by name, with llvmlite's signatures but without its lock."""
    import llvmlite.binding  # noqa: F401  declares the signatures
    from llvmlite.binding import ffi

    path = ffi.lib._name
    functions: dict[str, Any] = {}
    for library, names in ((ctypes.CDLL(path), _LONG_CALLS), (ctypes.PyDLL(path), _SHORT_CALLS)):
        for name in names:
            declared = getattr(ffi.lib, name)
            functions[name] = function = getattr(library, name)
            function.argtypes, function.restype = declared.argtypes, declared.restype
    return functions


class ThreadCompiler:
    """A thread's target machine and pass builder."""

    def __init__(self) -> None:
        self.machine = target.machine()
        self.layout = str(self.machine.target_data).encode()
        self.builder = target.pass_builder(self.machine)
        self.few = target.pipeline(self.builder, "few")

    def pipeline(self, passes: bool | str) -> Any:
        """The pass pipeline `passes`; the default one is built anew each time, since its inliner runs only once."""
        return self.few if passes == "few" else target.pipeline(self.builder, passes)

    def emit_object(self, source: str, passes: bool | str) -> bytes:
        """Compile a module's text to object code.

        Raises:
            RuntimeError: the text is not valid LLVM IR.
        """
        llvm = _functions()
        message = ctypes.c_char_p()
        message_pointer = ctypes.byref(message)
        context = llvm["LLVMPY_ContextCreate"]()
        module = None
        try:
            module = llvm["LLVMPY_ParseAssembly"](context, source.encode(), message_pointer)
            if not module:
                raise RuntimeError(f"LLVM IR parsing error\n{_text(message)}")
            llvm["LLVMPY_SetTarget"](module, target.host().triple.encode())
            llvm["LLVMPY_SetDataLayout"](module, self.layout)
            if llvm["LLVMPY_VerifyModule"](module, message_pointer):
                raise RuntimeError(_text(message))
            if passes:
                llvm["LLVMPY_RunNewModulePassManager"](self.pipeline(passes), module, self.builder)
            buffer = llvm["LLVMPY_TargetMachineEmitToMemory"](self.machine, module, 1, message_pointer)
            if not buffer:
                raise RuntimeError(_text(message))
            try:
                return ctypes.string_at(llvm["LLVMPY_GetBufferStart"](buffer), llvm["LLVMPY_GetBufferSize"](buffer))
            finally:
                llvm["LLVMPY_DisposeMemoryBuffer"](buffer)
        finally:
            if message:
                llvm["LLVMPY_DisposeString"](message)
            if module:
                llvm["LLVMPY_DisposeModule"](module)
            llvm["LLVMPY_ContextDispose"](context)


def _text(message: ctypes.c_char_p) -> str:
    return (message.value or b"").decode(errors="replace")


_thread_state = threading.local()


def emit_object(source: str, passes: bool | str = True) -> bytes:
    """Compile a module's text to object code with this thread's compiler and the passes of `target.pipeline`."""
    found: ThreadCompiler | None = getattr(_thread_state, "compiler", None)
    if found is None:
        found = _thread_state.compiler = ThreadCompiler()
    return found.emit_object(source, passes)


def emit_for(other: target.Host, source: str) -> bytes:
    """Compile a module's text to object code for another machine than the target of this process."""
    import llvmlite.binding as llvm

    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    tm = target.machine_for(other)
    module = llvm.parse_assembly(source)
    module.triple, module.data_layout = other.triple, str(tm.target_data)
    module.verify()
    code: bytes = tm.emit_object(module)
    return code


__all__ = ["ThreadCompiler", "emit_for", "emit_object"]
