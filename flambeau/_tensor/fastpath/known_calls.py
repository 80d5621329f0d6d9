"""Calls of a function that generated code finds and runs, from the arguments to the result, without bytecode.

`codegen.known_calls` has the built-in function. Its entries are calls that Python has looked up once, whose results
are not recorded; everything else about a call is decided in Python.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ... import codegen
from ...backends.compiled.thresholds import SMALL_KERNELS
from ...backends.numpy.memory import address
from ...devices import memory_format
from ...dtypes import BFLOAT16, dtype
from ...errstate import IGNORE, quietly
from ...modes import active_transforms, determinism, grad_mode, inference, inference_used, special
from ...shapes import Size
from ..parameter import Parameter
from ..tensor import Tensor
from ..views.untracked import register_view

ndarray = np.ndarray
#: the most items of a list or a tuple with tensors
ITEMS = 16
#: the most entries of a function; when they are used up, every 64th call that Python looks up replaces one, and each
#: one that was waited for (`KnownCalls`)
MOST, EVERY = 16, 64
#: one thread at a time changes tables
_adding = threading.Lock()
#: the tables before the last changes
_replaced: deque[Any] = deque(maxlen=64)
_PLAIN = frozenset((int, float, bool, str, type(None), dtype, memory_format))
_SLOTS = ("_array", "_requires_grad", "_output_nr", "_node", "_grad", "_counter", "_base", "_accumulator")


class CallTable:
    """The known calls of one function.

    Args:
        differentiable: whether a call is recorded if one of its tensors requires gradients.
        states: at most four lists; while the first item of one is neither None nor false, no call is known.

    Attributes:
        enter: `enter(args, kwargs)`: the result; None where the call is not known, or computes nothing; False where it
            would be recorded. None before there is an entry.
        replaces: whether the next call that is added replaces an entry of a full table, and is not one of `EVERY`.
    """

    __slots__ = ("_block", "_differentiable", "_entries", "_full", "_next", "_refused", "_states", "_table", "enter",
                 "replaces")

    def __init__(self, differentiable: bool = True, states: tuple[list[Any], ...] = ()) -> None:
        self._differentiable = differentiable
        self.enter: Callable[..., Any] | None = None
        self._states = states
        self._entries: list[list[Any]] = []
        self._refused: set[Any] = set()
        self._full = self._next = 0
        self.replaces = False

    @property
    def count(self) -> int:
        """The number of entries."""
        return len(self._entries)

    def add(self, args: tuple[Any, ...], kwargs: dict[str, Any], launch: Callable[..., Any],
            several: Any = None, constants: tuple[Any, ...] = ()) -> Callable[..., Any] | None:
        """Add a call whose result nothing records, unless it cannot be an entry; return `enter`.

        Args:
            launch: the function of the arrays of the tensors among the arguments.
            several: the class of the results, where `launch` returns a tuple of arrays, not one.
            constants: what is passed to it after the arrays.
        """
        return self._add(launch, lambda: _entry(args, kwargs, launch, several, constants, self._differentiable))

    def add_views(self, source: Tensor, args: tuple[Any, ...], kwargs: dict[str, Any],
                  result: Any) -> Callable[..., Any] | None:
        """Add a call `(source, *args, **kwargs)` whose result is a view of the source, or a tuple of views."""
        return self._add(None, lambda: _views_entry(source, args, kwargs, result))

    def add_free(self, args: tuple[Any, ...], kwargs: dict[str, Any], call: Any) -> Callable[..., Any] | None:
        """Add calls of any number of rows (`free.calls.FreeCall`), to all entries that there may be."""
        self.replaces = True
        return self._add(None, lambda: _free_entry(args, kwargs, call, self._differentiable))

    def _add(self, launch: Any, make: Callable[[], list[Any] | None]) -> Callable[..., Any] | None:
        if launch in self._refused or special[0] or active_transforms[0] or determinism[0] or inference.get():
            return self.enter
        if len(self._entries) >= MOST and not self.replaces:
            self._full += 1
            if self._full % EVERY:
                return self.enter
        self.replaces = False
        maker = _maker()
        entry = None if maker is None else make()
        if maker is None or entry is None:
            if len(self._refused) >= EVERY:
                self._refused.clear()
            if launch is not None:
                self._refused.add(launch)
            return self.enter
        with _adding:
            entries = [*self._entries]
            if len(entries) < MOST:
                entries.append(entry)
            else:
                entries[self._next] = entry
                self._next = (self._next + 1) % MOST
            table = np.array([each[0].ctypes.data for each in entries], np.int64)
            if self.enter is None:
                self._block = np.array(_fields(self._states), np.int64)
                self.enter = maker(self._block)
                self._table = table
            former = self._entries, self._table
            # the new table has as many entries as the former one, or one more: it is there before their number
            self._block[0] = table.ctypes.data
            self._block[1] = len(entries)
            self._entries, self._table = entries, table
            _replaced.append(former)  # another thread may be in the middle of a call that it found there
        return self.enter


def _maker() -> Any:
    """The maker of built-in functions; None where objects cannot be read."""
    found = _found
    if not found:
        from ...runtime import object_layout

        found.append(None)
        if codegen.available() and object_layout.readable():
            slots = [(name, object_layout.slot_offset(Tensor, name)) for name in _SLOTS]
            if all(at is not None for _, at in slots) and all(
                    object_layout.slot_offset(Parameter, name) == at for name, at in slots):
                from ...codegen import known_calls

                found[0] = known_calls.maker(tuple(slots))
    return found[0]


_found: list[Any] = []


def _fields(states: tuple[list[Any], ...]) -> list[int]:
    """The words of a block without entries."""
    from ...codegen.known_calls import CLEAR, function_fields

    objects = (Tensor, Parameter, ndarray, tuple, float, int, str, None, False, True, 0, grad_mode, inference,
               Exception,
               "_view_steps", "_creation", "no_grad", "multi", register_view, tuple.__new__, Size,
               special, active_transforms, determinism, *states, *[special] * (CLEAR - 3 - len(states)), SMALL_KERNELS,
               inference_used)
    return [0, 0, *map(id, objects), *function_fields()]


def _entry(args: tuple[Any, ...], kwargs: dict[str, Any], launch: Callable[..., Any],
           several: Any, constants: tuple[Any, ...], differentiable: bool) -> list[Any] | None:
    """An entry: its words, and what they refer to; None where the call cannot be one."""
    from ...codegen import known_calls as code

    owner: list[Any] = [None, launch, several]
    found = _arguments(args, kwargs, owner)
    if found is None or (several is not None and not issubclass(several, tuple)):
        return None
    words, arrays = found
    steps, result = getattr(launch, "steps", (((launch, tuple(range(len(arrays)))),), 0))
    described: list[int] = []
    for step, slots in steps:
        words_of_step = _step(step, slots, owner, constants)
        if words_of_step is None:
            return None
        described += words_of_step
    if len(steps) > code.STEPS:
        return None
    first = code.ARGUMENTS + len(words)
    head = (len(args), len(kwargs), len(arrays), id(owner), 0 if several is None else id(several), len(steps), first,
            len(arrays) + result, 0, int(differentiable), 0)
    owner[0] = np.array([*head, *words, *described], np.int64)
    return owner


def _free_entry(args: tuple[Any, ...], kwargs: dict[str, Any], call: Any, differentiable: bool) -> list[Any] | None:
    """The entry of calls of any number of rows."""
    from ...codegen import known_calls as code

    owner: list[Any] = [None, call]
    found = _arguments(args, kwargs, owner, call)
    if found is None or len(call.steps) > code.STEPS:
        return None
    words, arrays = found
    described: list[int] = []
    for launch, slots in call.steps:
        words_of_step = _step(launch, slots, owner, (), call.free)
        if words_of_step is None:
            return None
        described += words_of_step
    first = code.ARGUMENTS + len(words)
    free = first + len(described)
    head = (len(args), len(kwargs), len(arrays), id(owner), 0, len(call.steps), first,
            len(arrays) + len(call.steps) - 1, 0, int(differentiable), free)
    settings = [each for setting in call.settings for each in setting]
    owner[0] = np.array([*head, *words, *described, call.least, call.most, len(call.settings), *settings], np.int64)
    return owner


def _views_entry(source: Tensor, args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> list[Any] | None:
    """The entry of a call that makes views of its first argument; None where it cannot be one."""
    from ...codegen import known_calls as code

    owner: list[Any] = [None]
    found = _arguments((source, *args), kwargs, owner)
    several = result.__class__ is tuple
    if found is None or len(found[1]) != 1 or (several and not result):
        return None
    words, (a,) = found
    described = [len(result) if several else 0]
    for view in result if several else (result,):
        b = view._array
        if b.__class__ is not ndarray or b.dtype is not a.dtype:
            return None
        described += (address(b) - address(a), b.ndim, *b.shape, *b.strides)
    first = code.ARGUMENTS + len(words)
    owner[0] = np.array([1 + len(args), len(kwargs), 1, id(owner), 0, 0, 0, 0, first, 1, 0, *words,
                         *described], np.int64)
    return owner


def _arguments(args: tuple[Any, ...], kwargs: dict[str, Any], owner: list[Any],
               free: Any = None) -> tuple[list[int], list[ndarray]] | None:
    """The words of arguments, whose objects `owner` gets, and the tensors' arrays; None: they cannot be described.

    Args:
        free: which tensors have how many free extents (`free.calls.FreeCall`).
    """
    from ...codegen import known_calls as code

    words: list[int] = []
    arrays: list[ndarray] = []
    seen: list[Any] = []
    for name, given in (*((None, x) for x in args), *kwargs.items()):
        if name is not None:
            words.append(id(name))
            owner.append(name)
        if (given.__class__ is list or given.__class__ is tuple) and not _is_plain(given):
            if not 0 < len(given) <= ITEMS:
                return None
            words += (code.SEQUENCE, id(given.__class__), len(given))
            items: Any = given
        else:
            items = (given,)
        if not all(_describe(x, words, arrays, seen, owner, free) for x in items):
            return None
    return (words, arrays) if len(arrays) <= code.TENSORS else None


def _describe(given: Any, words: list[int], arrays: list[ndarray], seen: list[Any], owner: list[Any],
              free: Any = None) -> bool:
    """Append the words of an argument, or of an item of one; return whether it can be described.

    Args:
        arrays, seen: of the tensors so far.
    """
    from ...codegen import known_calls as code

    if given.__class__ is Tensor or given.__class__ is Parameter:
        a = given._array
        if a.__class__ is not ndarray or (a.dtype is not BFLOAT16 and a.dtype is not np.dtype(a.dtype.type)):
            return False
        again = next((i for i, x in enumerate(seen) if x is given), None)
        seen.append(given)
        arrays.append(a)
        if again is None and free is not None and free.of_rows[len(arrays) - 1]:
            n = free.free
            words += (code.ROWS, id(a.dtype), a.ndim, n, a.strides[n - 1], *a.shape[n:], *a.strides[n:])
        elif again is None:
            words += (code.TENSOR, id(a.dtype), a.ndim, *a.shape, *a.strides)
        else:
            words += (code.AGAIN, again)
        owner.append(a.dtype)
        return True
    if not _is_plain(given):
        return False
    words += (code.CONSTANT, id(given))
    owner.append(given)
    return True


def _step(launch: Callable[..., Any], slots: tuple[int, ...], owner: list[Any], constants: tuple[Any, ...],
          free: int = 0) -> list[int] | None:
    """The words of a step, whose objects `owner` gets; None where it has too many arguments.

    Args:
        free: how many first extents of new rows are free.
    """
    from ...codegen import known_calls as code
    from ...runtime.filling import NewArray, NewRows

    filling = getattr(launch, "filling", None)
    sources: Sequence[Any] = (*range(len(slots)), *[[each] for each in constants])
    function = launch
    if filling is not None:
        function, sources = filling.function, filling.sources
    elif IGNORE is not None:  # NumPy's floating point warnings are off in the quiet context
        function, sources = quietly, ([launch], *sources)
    owner += (launch, function, sources)
    words: list[int] = []
    for source in sources:
        if source.__class__ is int:
            words += (code.GIVEN, slots[source])
        elif source.__class__ is NewArray:
            words += (code.FRESH, id(source.dtype), len(source.shape), *source.shape)
        elif source.__class__ is NewRows:
            words += (code.FRESH_ROWS, id(source.dtype), free, len(source.rest), *source.rest)
        else:
            words += (code.FIXED, id(source[0]))
    if len(sources) > code.SOURCES or sum(
            each.__class__ in (NewArray, NewRows) for each in sources) > code.NEW:
        return None
    head = [code.FIRST_SOURCE + len(words), id(function), len(sources), 0 if filling is None else 1 + filling.result]
    return head + words


def _is_plain(value: Any) -> bool:
    """Whether an argument's value is part of a key."""
    kind = value.__class__
    return kind in _PLAIN or ((kind is tuple or kind is Size) and all(map(_is_plain, value)))


__all__ = ["CallTable"]
