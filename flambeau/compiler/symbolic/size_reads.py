"""Sizes that Python code reads in a rehearsal: numbers that record the decisions that depend on them.

User code sees a `SizeNumber` wherever it asks for a size. It computes as a number; comparisons are recorded with their
outcome, and a use that depends on the exact value (a loop, an index of a list, a hash, a text) is recorded as such.
This package itself sees plain numbers.
"""

from __future__ import annotations

import math
import operator
import sys
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


@contextmanager
def recorded_size_reads(tracer: Any, guards: list[SizeGuard]) -> Iterator[None]:
    """Let user code of this thread read sizes as `SizeNumber`s while a tracer is active.

    Args:
        tracer: the tracer.
        guards: receives the decisions of the code.
    """
    package = sys.modules[__name__.partition(".")[0]]

    def is_user() -> bool:
        return active_tracer.get() is tracer and not is_internal_frame(sys._getframe(2))

    def method(original: Callable[..., Any]) -> Callable[..., Any]:
        def read(*args: Any, **kwargs: Any) -> Any:
            result = original(*args, **kwargs)
            return _recorded(result, guards) if is_user() else result

        return read

    def length(self: Any) -> int:
        result = original_length(self)
        if is_user():
            guards.append(SizeGuard(None, result, None, True))
        return result

    def sequence(original: Callable[..., Any]) -> Callable[..., Any]:
        def divide(*args: Any, **kwargs: Any) -> Any:
            result = original(*args, **kwargs)
            if is_user():
                guards.append(SizeGuard(None, len(result), None, True))
            return result

        return divide

    def comparison(original: Callable[..., Any]) -> Callable[..., Any]:
        def compare(*args: Any, **kwargs: Any) -> Any:
            if is_user():
                shapes = [x._array.shape for x in (*args, *kwargs.values()) if isinstance(x, Tensor)]
                guards.extend([SizeGuard(operator.eq, n, m, n == m) for n, m in zip(*shapes, strict=False)])
            return original(*args, **kwargs)

        return compare

    def iterate(self: Any) -> Any:
        if is_user():
            guards.append(SizeGuard(None, original_length(self), None, True))
        return original_iter(self)

    def reading(getter: Callable[[Any], Any]) -> property:
        def read(self: Any) -> Any:
            result = getter(self)
            return _recorded(result, guards) if is_user() else result

        return property(read)

    missing = object()
    places: list[tuple[Any, str, Any]] = []
    original_length, original_iter = Tensor.__len__, Tensor.__iter__
    replacements: list[tuple[Any, str, Any]] = [(Tensor, "__len__", length), (Tensor, "__iter__", iterate)]
    replacements += [(Tensor, name, method(vars(Tensor)[name])) for name in _METHODS if name in vars(Tensor)]
    replacements += [(Tensor, name, reading(vars(Tensor)[name].fget)) for name in _PROPERTIES]
    replacements += [(package, name, method(getattr(package, name))) for name in _FUNCTIONS]
    for names, wrapper in ((_SEQUENCES, sequence), (_COMPARISONS, comparison)):
        replacements += [(owner, name, wrapper(getattr(owner, name))) for owner in (Tensor, package) for name in names
                         if hasattr(owner, name)]
    try:
        for owner, name, new in replacements:
            places.append((owner, name, vars(owner).get(name, missing)))
            setattr(owner, name, new)
        yield
    finally:
        for owner, name, old in places:
            if old is missing:
                delattr(owner, name)
            else:
                setattr(owner, name, old)


__all__ = ["SizeGuard", "SizeNumber", "plain", "recorded_size_reads"]
