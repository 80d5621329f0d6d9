"""The quiet context: flambeau's NumPy calls without NumPy's floating point warnings, and with flambeau's allocator.

PyTorch computes log(0) silently; NumPy warns. `np.seterr` would silence the user's NumPy code too, and `np.errstate`
costs 0.7 us, more than a small operator. So the context variable behind them is set and reset directly:
`token = set_state(IGNORE)` ... `reset_state(token)` (110 ns). A single ufunc runs in a `contextvars` context in which
the variable is set already: `quietly(ufunc, x, y)` (20 ns). Only one thread can be in that context at a time; others
get a RuntimeError and have to set the variable themselves. Functions inside see none of the caller's context variables.
"""

from __future__ import annotations

from contextvars import ContextVar, copy_context
from time import sleep
from typing import Any

import numpy as np

try:
    from numpy._core.umath import _extobj_contextvar, _make_extobj

    IGNORE: Any = _make_extobj(all="ignore")
    set_state = _extobj_contextvar.set
    reset_state = _extobj_contextvar.reset
except ImportError:  # another version of NumPy: the public, slower API
    IGNORE = None

    def set_state(_: Any) -> Any:
        """Switch the warnings off; return the token for `reset_state`."""
        state = np.errstate(all="ignore")
        state.__enter__()
        return state

    def reset_state(token: Any) -> None:
        """Restore the state before `set_state`."""
        token.__exit__(None, None, None)


_inside: ContextVar[bool] = ContextVar("quiet", default=False)
_quiet = copy_context()
_quiet.run(set_state, IGNORE)
_quiet.run(_inside.set, True)
quietly = _quiet.run
is_inside = _inside.get


def in_quiet(function: Any) -> None:
    """Call a function in the quiet context, waiting until no other thread is in it."""
    if is_inside():
        function()
        return
    while True:
        try:
            quietly(function)
            return
        except RuntimeError:
            sleep(1e-5)


def run_quietly(function: Any, *args: Any) -> Any:
    """`quietly` from any thread, for a function that does not raise RuntimeError."""
    if is_inside():
        return function(*args)
    try:
        return quietly(function, *args)
    except RuntimeError:  # another thread is in the context
        return _ignoring(function, args, {})


def _ignoring(function: Any, args: Any, params: Any) -> Any:
    """A call in the current context with the warnings off."""
    token = set_state(IGNORE)
    try:
        return function(*args, **params)
    finally:
        reset_state(token)


def _result_or_error(function: Any, args: Any, params: Any) -> tuple[Any, RuntimeError | None]:
    """The result and the RuntimeError of a call, to tell the latter from the error of a context in use."""
    try:
        return function(*args, **params), None
    except RuntimeError as error:
        return None, error


def run_in_quiet(function: Any, args: Any, params: Any = {}) -> Any:  # noqa: B006 - it is not changed
    """`run_quietly` of a function that may raise RuntimeError."""
    if is_inside():
        return function(*args, **params)
    try:
        result, error = quietly(_result_or_error, function, args, params)
    except RuntimeError:
        return _ignoring(function, args, params)
    if error is not None:
        try:
            raise error
        finally:
            del error  # whose traceback refers to this frame
    return result
