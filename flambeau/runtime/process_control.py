"""Names of threads and signals of processes, by system calls that Python has no functions for.

`Workers` are processes that another one supervises: a fatal signal is reported on the worker's standard error, and
SIGTERM from the supervisor ends it with status 0. The handlers are generated code, since a handler in Python runs only
after the C function that the signal interrupted.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
from functools import cache
from typing import Any

_SET_PARENT_DEATH_SIGNAL, _SET_NAME, _GET_NAME = 1, 15, 16


@cache
def _prctl() -> Any:
    return ctypes.CDLL(None).prctl if sys.platform.startswith("linux") else None


def set_parent_death_signal(signal: int) -> None:
    """Ask for a signal when the parent process ends; without effect outside Linux."""
    if _prctl() is not None:
        _prctl()(_SET_PARENT_DEATH_SIGNAL, signal)


def set_thread_name(name: str) -> None:
    """Set the name of the calling thread, of which the system keeps 15 bytes; without effect outside Linux."""
    if _prctl() is not None:
        _prctl()(_SET_NAME, name.encode()[:15])


def get_thread_name() -> str:
    """Return the name of the calling thread."""
    if _prctl() is None:
        import threading

        return threading.current_thread().name
    name = ctypes.create_string_buffer(16)
    _prctl()(_GET_NAME, name)
    return name.value.decode()


# ----- handlers of workers -----------------------------------------------------------------

_REPORTS = {
    "SIGBUS": "ERROR: Unexpected bus error encountered in worker. "
              "This might be caused by insufficient shared memory (shm).\n",
    "SIGSEGV": "ERROR: Unexpected segmentation fault encountered in worker.\n",
    "SIGFPE": "ERROR: Unexpected floating-point exception encountered in worker.\n",
}

_DECLARATIONS = """
declare i64 @write(i32, ptr, i64)
declare i32 @raise(i32)
declare i32 @getppid()
declare void @_exit(i32)
"""

# The action is reset before the handler runs, and the signal is not blocked: `raise` ends the process.
_REPORT = """
@text_{name} = internal constant [{length} x i8] c"{text}"
define void @{name}(i32 %signal, ptr %info, ptr %context) {{
  %written = call i64 @write(i32 2, ptr @text_{name}, i64 {length})
  %raised = call i32 @raise(i32 %signal)
  ret void
}}
"""

_TERMINATE = """
define void @SIGTERM(i32 %signal, ptr %info, ptr %context) {{
  %sender.at = getelementptr i8, ptr %info, i64 {sender}
  %sender = load i32, ptr %sender.at
  %parent = call i32 @getppid()
  %expected = icmp eq i32 %sender, %parent
  br i1 %expected, label %leave, label %die
leave:
  call void @_exit(i32 0)
  unreachable
die:
  %raised = call i32 @raise(i32 %signal)
  ret void
}}
"""

#: the offset of the sender in the system's description of a signal
_SENDER = 12 if sys.platform == "darwin" else 16


def _generate() -> str:
    def literal(text: str) -> str:
        return "".join(c if c.isalnum() or c in " :.()-" else f"\\{ord(c):02X}" for c in text)

    return _DECLARATIONS + "".join(
        _REPORT.format(name=name, text=literal(text), length=len(text)) for name, text in _REPORTS.items()
    ) + _TERMINATE.format(sender=_SENDER)


class _Action(ctypes.Structure):
    """`struct sigaction`."""

    if sys.platform == "darwin":
        _fields_ = (("handler", ctypes.c_void_p), ("mask", ctypes.c_uint32), ("flags", ctypes.c_int))
    else:
        _fields_ = (("handler", ctypes.c_void_p), ("mask", ctypes.c_ubyte * 128), ("flags", ctypes.c_int),
                    ("restorer", ctypes.c_void_p))


# SA_SIGINFO, SA_NODEFER and SA_RESETHAND
_FLAGS = 0x40 | 0x10 | 0x4 if sys.platform == "darwin" else 0x4 | 0x40000000 | 0x80000000


def _exit_if_parent_asks(number: int, frame: Any) -> None:
    os._exit(0)


def set_worker_signal_handlers() -> None:
    """Set the handlers of this process, a worker."""
    if sys.platform == "win32":
        return
    try:
        from . import compilation

        library = compilation.load(f"worker signals {sys.platform}", (*_REPORTS, "SIGTERM"), _generate, "few")
        addresses = {name: library.address(name) for name in (*_REPORTS, "SIGTERM")}
    except ImportError:  # no LLVM
        signal.signal(signal.SIGTERM, _exit_if_parent_asks)
        return
    sigaction = ctypes.CDLL(None).sigaction
    for name, address in addresses.items():
        action = _Action(handler=address, flags=ctypes.c_int(_FLAGS).value)
        sigaction(int(getattr(signal, name)), ctypes.byref(action), None)


# ----- supervision -------------------------------------------------------------------------

#: the processes that are supervised, by owner
_workers: dict[int, set[int]] = {}


def supervise(owner: int, pids: tuple[int, ...]) -> None:
    """Register the worker processes of an owner.

    Raises:
        ValueError: the owner has workers (PyTorch's text).
    """
    if owner in _workers:
        raise ValueError("_set_worker_pids should be called only once for each _BaseDataLoaderIter.")
    _workers[owner] = set(pids)


def release(owner: int) -> None:
    """Forget the workers of an owner.

    Raises:
        ValueError: it has none (PyTorch's text).
    """
    if owner not in _workers:
        raise ValueError("Cannot find worker information for _BaseDataLoaderIter with id " + str(owner))
    del _workers[owner]


def raise_if_any_worker_failed() -> None:
    """Check the registered workers, without waiting and without reaping.

    Raises:
        RuntimeError: one has ended with an error or by a signal (PyTorch's texts).
    """
    for pids in list(_workers.values()):
        for pid in tuple(pids):
            try:
                ended = os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            except ChildProcessError:  # reaped already
                continue
            if ended is None:
                continue
            if ended.si_code == os.CLD_EXITED and ended.si_status != 0:
                pids.clear()  # the error ends the other workers, which must not raise again
                raise RuntimeError(f"DataLoader worker (pid {pid}) exited unexpectedly with exit code "
                                   f"{ended.si_status}. Details are lost due to multiprocessing. Rerunning with "
                                   "num_workers=0 may give better error trace.")
            if ended.si_code in (os.CLD_KILLED, os.CLD_DUMPED):
                pids.clear()
                text = f"DataLoader worker (pid {pid}) is killed by signal: {signal.strsignal(ended.si_status)}. "
                if ended.si_status == signal.SIGBUS:
                    text += ("It is possible that dataloader's workers are out of shared memory. Please try to raise "
                             "your shared memory limit.")
                raise RuntimeError(text)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_workers.clear)
