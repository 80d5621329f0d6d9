"""Errors of scripted and traced programs: what TorchScript's interpreter makes of an exception of the Python code."""

from __future__ import annotations

import inspect
import opcode
from collections.abc import Callable, Iterator
from pathlib import Path
from types import CodeType, TracebackType
from typing import Any

from ..modes import active_tracer

_HERE = Path(__file__).resolve().parents[1]
_CONTEXT = 3  # lines before and after the one that failed
_depth = [0]


class Error(Exception):
    """An exception that scripted code raises itself, by `raise` or `assert`.

    Source: https://docs.pytorch.org/docs/stable/generated/torch.jit.script.html

    >>> import flambeau as torch
    >>> issubclass(torch.jit.Error, RuntimeError)
    False
    """


Error.__module__ = "torch.jit"


class TorchScriptUnsupported(NotImplementedError):
    """TorchScript itself is asked for: its code, its graphs, its files."""

    def __init__(self, what: str) -> None:
        super().__init__(f"{what}: flambeau runs scripted programs as Python and has no TorchScript. Use torch.compile "
                         "for speed, and torch.save with a state_dict to save a model.")


def interpret(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], *, traced: bool) -> Any:
    """Call a function of a scripted or traced program; the outermost call turns exceptions into the interpreter's.

    Args:
        function: what runs as Python.
        args: its positional arguments.
        kwargs: its arguments by name.
        traced: whether errors quote the calls while tracing, not the source.

    Raises:
        Error: the code raised an exception or an assertion failed.
        RuntimeError: an operator failed.
    """
    if _depth[0] or active_tracer.get() is not None:
        return function(*args, **kwargs)
    _depth[0] += 1
    try:
        return function(*args, **kwargs)
    except TorchScriptUnsupported:
        raise
    except Exception as error:
        entries = list(_entries(error.__traceback__))
        if not entries:  # the arguments do not fit
            raise
        raise _translated(error, entries, traced=traced) from error
    finally:
        _depth[0] -= 1


def _entries(traceback: TracebackType | None) -> Iterator[TracebackType]:
    """The entries below the call in this file."""
    traceback = traceback and traceback.tb_next
    while traceback is not None:
        yield traceback
        traceback = traceback.tb_next


def _translated(error: Exception, entries: list[TracebackType], *, traced: bool) -> Exception:
    quote = _quoted_calls if traced else _quoted_source
    text = ("The following operation failed in the TorchScript interpreter.\n"
            f"Traceback of TorchScript (most recent call last):\n{quote(_programs_own(entries))}")
    if isinstance(error, AssertionError):
        return Error(f"{text}RuntimeError: AssertionError: {error}\n")
    if _raises(entries[-1]) and not _is_ours(entries[-1]):
        return Error(f"{text}{type(error).__module__}.{type(error).__qualname__}: {error}\n")
    return RuntimeError(f"{text}RuntimeError: {error}\n")


def _is_ours(entry: TracebackType) -> bool:
    return Path(entry.tb_frame.f_code.co_filename).is_relative_to(_HERE)


def _raises(entry: TracebackType) -> bool:
    """Whether the program stopped at a statement that raises."""
    return opcode.opname[entry.tb_frame.f_code.co_code[entry.tb_lasti]] == "RAISE_VARARGS"


def _programs_own(entries: list[TracebackType]) -> list[TracebackType]:
    """The entries of the program, without those of operators and modules of this package if there are others."""
    return [entry for entry in entries if not _is_ours(entry)] or entries[:1]


def _quoted_calls(entries: list[TracebackType]) -> str:
    codes = [(entry.tb_frame.f_code, entry.tb_lineno) for entry in reversed(entries)]
    return "".join(f"{code.co_filename}({line}): {code.co_name}\n" for code, line in codes)


def _quoted_source(entries: list[TracebackType]) -> str:
    return "".join(f'  File "{entry.tb_frame.f_code.co_filename}", line {entry.tb_lineno}, in '
                   f"{entry.tb_frame.f_code.co_name}\n{_source(entry.tb_frame.f_code, entry)}" for entry in entries)


def _source(code: CodeType, entry: TracebackType) -> str:
    """Lines of the function around the one that failed, with the expression underlined."""
    try:
        lines, first = inspect.getsourcelines(code)
    except (OSError, TypeError):
        return ""
    at = entry.tb_lineno - first
    if not 0 <= at < len(lines):
        return ""
    whole = len(lines[at]) - len(lines[at].lstrip()), len(lines[at].rstrip())
    start, end = whole if _raises(entry) else _columns(code, entry.tb_lasti, whole)
    marked = f"{' ' * start}{'~' * (end - start)} <--- HERE\n"
    shown = (*lines[max(at - _CONTEXT, 0):at + 1], marked, *lines[at + 1:at + 1 + _CONTEXT])
    return "".join(line if line.endswith("\n") else f"{line}\n" for line in shown)


def _columns(code: CodeType, offset: int, whole: tuple[int, int]) -> tuple[int, int]:
    """Where the expression of an instruction starts and ends; the whole line if it is on several."""
    first, last, start, end = list(code.co_positions())[offset // 2]
    return whole if start is None or end is None or first != last else (start, end)
