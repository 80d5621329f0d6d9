"""NumPy's floating point warnings, switched off for flambeau's own calls alone.

PyTorch computes log(0) silently; NumPy warns. Setting `np.seterr` would silence the user's
own NumPy code as well and `np.errstate` costs more than a small operator, so the context
variable behind them is set and reset directly: `token = set_state(IGNORE)` ...
`reset_state(token)` (110 ns). A single ufunc is run in a context where it is set already:
`quietly(ufunc, x, y)` (20 ns). Only one thread can be in that context: a second one gets a
RuntimeError, and must take the other way.
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
except ImportError:  # another NumPy: the public, slower way
    IGNORE = None

    def set_state(_: Any) -> Any:
        """Switch the warnings off; gives what `reset_state` asks for."""
        state = np.errstate(all="ignore")
        state.__enter__()
        return state

    def reset_state(token: Any) -> None:
        """Make the warnings what they were before `set_state`."""
        token.__exit__(None, None, None)


_inside: ContextVar[bool] = ContextVar("quiet", default=False)
_quiet = copy_context()
_quiet.run(set_state, IGNORE)
_quiet.run(_inside.set, True)
quietly = _quiet.run
is_inside = _inside.get


def in_quiet(function: Any) -> None:
    """Call a function in the context that `quietly` enters, as soon as no other thread is there."""
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
    """`quietly`, whatever other threads do, of a function that raises no RuntimeError of its own."""
    if is_inside():
        return function(*args)
    try:
        return quietly(function, *args)
    except RuntimeError:  # another thread is in there
        return _ignoring(function, args, {})


def _ignoring(function: Any, args: Any, params: Any) -> Any:
    """A call with the warnings off, in this context."""
    token = set_state(IGNORE)
    try:
        return function(*args, **params)
    finally:
        reset_state(token)


def _result_or_error(function: Any, args: Any, params: Any) -> tuple[Any, RuntimeError | None]:
    """What a function gives, and its RuntimeError, which is not taken for that of a context in use."""
    try:
        return function(*args, **params), None
    except RuntimeError as error:
        return None, error


def run_in_quiet(function: Any, args: Any, params: Any = {}) -> Any:  # noqa: B006 - it is not changed
    """`run_quietly` of a function that may raise anything."""
    if is_inside():
        return function(*args, **params)
    try:
        found, error = quietly(_result_or_error, function, args, params)
    except RuntimeError:
        return _ignoring(function, args, params)
    if error is not None:
        try:
            raise error
        finally:
            del error  # whose traceback refers to this frame
    return found
