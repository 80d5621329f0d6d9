"""Sizes that Python code reads in a retrace: numbers that record the decisions that depend on them.

User code sees a `SizeNumber` wherever it asks for a size. It computes as a number; comparisons are recorded with their
outcome, and a use that depends on the exact value (a loop, an index of a list, a hash, a text) is recorded as such.
This package itself sees plain numbers.
"""

from __future__ import annotations

import math
import operator
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from ..._tensor import Tensor
from ...modes import active_tracer
from ...shapes import Size
from ..tracing.frame_hook import is_internal_frame


class SizeGuard(NamedTuple):
    """A decision of Python code.

    Attributes:
        compare: the comparison, or `operator.mod`; None where the code depends on the exact value of `left`.
        left, right: the numbers.
        outcome: the result.
    """

    compare: Callable[[Any, Any], Any] | None
    left: Any
    right: Any
    outcome: Any


class SizeNumber:
    """A number that was computed from sizes.

    Args:
        value: the number.
        guards: receives the decisions.
    """

    __slots__ = ("guards", "value")

    def __init__(self, value: Any, guards: list[SizeGuard]) -> None:
        self.value, self.guards = value, guards

    @property  # type: ignore[misc]
    def __class__(self) -> type:  # isinstance(size, int) holds, as for the numbers of eager calls
        return type(self.value)

    def _derived(self, value: Any) -> Any:
        return SizeNumber(value, self.guards) if type(value) in (int, float) else value

    def _exact(self) -> Any:
        """Return the value, which the code that asks for it depends on unless it belongs to this package."""
        if not is_internal_frame(sys._getframe(2)):
            self.guards.append(SizeGuard(None, self.value, None, True))
        return self.value

    def _compare(self, other: Any, function: Callable[[Any, Any], bool]) -> Any:
        right = plain(other)
        if not isinstance(right, (int, float)):
            return function(self.value, right) if function in (operator.eq, operator.ne) else NotImplemented
        outcome = function(self.value, right)
        if not is_internal_frame(sys._getframe(2)):
            self.guards.append(SizeGuard(function, self.value, right, outcome))
        return outcome

    def __eq__(self, other: object) -> Any:
        return self._compare(other, operator.eq)

    def __ne__(self, other: object) -> Any:
        return self._compare(other, operator.ne)

    def __lt__(self, other: Any) -> Any:
        return self._compare(other, operator.lt)

    def __le__(self, other: Any) -> Any:
        return self._compare(other, operator.le)

    def __gt__(self, other: Any) -> Any:
        return self._compare(other, operator.gt)

    def __ge__(self, other: Any) -> Any:
        return self._compare(other, operator.ge)

    def __bool__(self) -> bool:
        outcome = bool(self.value)
        if not is_internal_frame(sys._getframe(1)):
            self.guards.append(SizeGuard(operator.ne, self.value, 0, outcome))
        return outcome

    def __index__(self) -> int:
        return operator.index(self._exact())

    def __int__(self) -> int:
        return int(self._exact())

    def __float__(self) -> float:
        return float(self._exact())

    def __hash__(self) -> int:
        return hash(self._exact())

    def __repr__(self) -> str:
        return repr(self._exact())

    def __str__(self) -> str:
        return str(self._exact())

    def __format__(self, spec: str) -> str:
        return format(self._exact(), spec)

    def __reduce__(self) -> Any:
        return type(self.value), (self._exact(),)

    def bit_length(self) -> int:
        """The number of bits."""
        return int(self._exact()).bit_length()

    def is_integer(self) -> bool:
        """Whether it is an integer."""
        return float(self._exact()).is_integer()

    def __divmod__(self, other: Any) -> Any:
        return self // other, self % other

    def __rdivmod__(self, other: Any) -> Any:
        return other // self, other % self

    def __round__(self, digits: int | None = None) -> Any:
        return self._derived(round(self.value, digits))

    def __floor__(self) -> Any:
        return self._derived(math.floor(self.value))

    def __ceil__(self) -> Any:
        return self._derived(math.ceil(self.value))

    def __trunc__(self) -> Any:
        return self._derived(math.trunc(self.value))


def _binary(name: str, reverse: bool) -> Callable[[Any, Any], Any]:
    function = getattr(operator, name)

    def method(self: SizeNumber, other: Any) -> Any:
        right = plain(other)
        if type(right) not in (int, float, bool):
            return NotImplemented
        left, right = (right, self.value) if reverse else (self.value, right)
        result = function(left, right)
        if function is operator.mod:  # the same for many sizes, and another one for those in between
            self.guards.append(SizeGuard(function, left, right, result))
        return self._derived(result)

    return method


def _unary(name: str) -> Callable[[Any], Any]:
    function = getattr(operator, name)
    return lambda self: self._derived(function(self.value))


for _name in ("add", "sub", "mul", "floordiv", "truediv", "mod", "pow"):
    setattr(SizeNumber, f"__{_name}__", _binary(_name, False))
    setattr(SizeNumber, f"__r{_name}__", _binary(_name, True))
for _name in ("neg", "pos", "abs"):
    setattr(SizeNumber, f"__{_name}__", _unary(_name))


def plain(x: Any) -> Any:
    """Return the value of a number that was computed from sizes; anything else as it is."""
    return x.value if type(x) is SizeNumber else x


class _RecordedSize(Size):
    """A shape of `SizeNumber`s."""

    __slots__ = ()

    def __getitem__(self, index: Any) -> Any:
        item = tuple.__getitem__(self, index)
        return tuple.__new__(_RecordedSize, item) if isinstance(index, slice) else item

    def __add__(self, other: Any) -> Any:
        return tuple.__new__(_RecordedSize, tuple(self) + tuple(other))

    def __radd__(self, other: Any) -> Any:
        return tuple.__new__(_RecordedSize, tuple(other) + tuple(self))


def _recorded(x: Any, guards: list[SizeGuard]) -> Any:
    """Return a result of a function that reads sizes with `SizeNumber`s for ints."""
    if type(x) is int:
        return SizeNumber(x, guards)
    if isinstance(x, Size):
        return tuple.__new__(_RecordedSize, [_recorded(each, guards) for each in x])
    return tuple([_recorded(each, guards) for each in x]) if type(x) is tuple else x


#: methods and properties of tensors that return sizes
_METHODS = ("size", "numel", "nelement", "stride")
_PROPERTIES = ("shape", "nbytes")
#: functions that do
_FUNCTIONS = ("numel", "broadcast_shapes")
#: methods and functions that return as many tensors as sizes tell
_SEQUENCES = ("unbind", "split", "chunk", "tensor_split", "hsplit", "vsplit", "dsplit", "split_with_sizes",
              "unsafe_split", "unsafe_chunk")
#: those that compare shapes
_COMPARISONS = ("is_same_size", "equal")


def _guards_of_user() -> list[SizeGuard] | None:
    """Return where to record what the caller's caller reads; None if that is no user code of a retrace."""
    guards: list[SizeGuard] | None = getattr(active_tracer.get(), "size_guards", None)
    return None if guards is None or is_internal_frame(sys._getframe(2)) else guards


def _reading(original: Callable[..., Any]) -> Callable[..., Any]:
    def read(*args: Any, **kwargs: Any) -> Any:
        guards = _guards_of_user()
        result = original(*args, **kwargs)
        return result if guards is None else _recorded(result, guards)

    return read


def _dividing(original: Callable[..., Any]) -> Callable[..., Any]:
    def divide(*args: Any, **kwargs: Any) -> Any:
        guards = _guards_of_user()
        result = original(*args, **kwargs)
        if guards is not None:
            guards.append(SizeGuard(None, len(result), None, True))
        return result

    return divide


def _comparing(original: Callable[..., Any]) -> Callable[..., Any]:
    def compare(*args: Any, **kwargs: Any) -> Any:
        guards = _guards_of_user()
        if guards is not None:
            shapes = [x._array.shape for x in (*args, *kwargs.values()) if isinstance(x, Tensor)]
            guards.extend([SizeGuard(operator.eq, n, m, n == m) for n, m in zip(*shapes, strict=False)])
        return original(*args, **kwargs)

    return compare


def _counting(original: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def count(self: Any) -> Any:
        guards = _guards_of_user()
        if guards is not None and self._array.ndim:
            guards.append(SizeGuard(None, self._array.shape[0], None, True))
        return original(self)

    return count


def _replacements() -> list[tuple[Any, str, Any]]:
    package = sys.modules[__name__.partition(".")[0]]
    found: list[tuple[Any, str, Any]] = [(Tensor, name, _counting(getattr(Tensor, name))) for name in (
        "__len__", "__iter__")]
    found += [(Tensor, name, property(_reading(vars(Tensor)[name].fget))) for name in _PROPERTIES]
    for names, wrapper in ((_METHODS, _reading), (_SEQUENCES, _dividing), (_COMPARISONS, _comparing)):
        found += [(Tensor, name, wrapper(getattr(Tensor, name))) for name in names if hasattr(Tensor, name)]
    for names, wrapper in ((_FUNCTIONS, _reading), (_SEQUENCES, _dividing), (_COMPARISONS, _comparing)):
        found += [(package, name, wrapper(getattr(package, name))) for name in names if hasattr(package, name)]
    return found


_MISSING = object()
_lock = threading.Lock()
_replaced: list[tuple[Any, str, Any]] = []  # what was replaced: class or module, name, original
_users = [0]  # threads that retrace


@contextmanager
def recorded_size_reads() -> Iterator[None]:
    """Let user code read sizes as `SizeNumber`s in threads whose tracer has `size_guards`, which get its decisions."""
    with _lock:
        if not _users[0]:
            for owner, name, new in _replacements():
                _replaced.append((owner, name, vars(owner).get(name, _MISSING)))
                setattr(owner, name, new)
        _users[0] += 1
    try:
        yield
    finally:
        with _lock:
            _users[0] -= 1
            while not _users[0] and _replaced:
                owner, name, old = _replaced.pop()
                if old is _MISSING:
                    delattr(owner, name)
                else:
                    setattr(owner, name, old)


__all__ = ["SizeGuard", "SizeNumber", "plain", "recorded_size_reads"]
