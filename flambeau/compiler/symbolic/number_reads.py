"""Sizes that Python code reads in a retrace, and numbers among the arguments: they record what depends on them.

User code sees a `SymbolicNumber` wherever it asks for a size, and for an argument that varies. It computes as a number;
comparisons are recorded with their outcome, and a use that depends on the exact value (a loop, an index of a list, a
hash, a text) is recorded as such. Numbers that are computed from arguments are recorded with how. This package itself
sees plain numbers.
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
from ...runtime.number_protocol import ComparedNumber
from ...shapes import Size
from ..tracing.frame_hook import is_internal_frame

#: decisions of one retrace
MAX_GUARDS = 2000


class NumberGuard(NamedTuple):
    """A decision of Python code.

    Attributes:
        compare: the comparison, or `operator.mod`; None where the code depends on the exact value of `left`.
        left, right: the numbers; `SymbolicNumber`s where they are computed.
        outcome: the result.
    """

    compare: Callable[[Any, Any], Any] | None
    left: Any
    right: Any
    outcome: Any


class TooManyDecisions(BaseException):
    """Python code decides by numbers too often to guard on it, as in a loop; no handler of user code may stop it."""


class NumberReads:
    """What a retrace did with numbers.

    Attributes:
        guards: the decisions.
        computed: arguments, and numbers that were computed from them, in this order.
        rounded: those that were rounded.
        returned: by position among the results, those that the function returned.
    """

    def __init__(self) -> None:
        self.guards: list[NumberGuard] = []
        self.computed: list[SymbolicNumber] = []
        self.rounded: list[SymbolicNumber] = []
        self.returned: dict[int, SymbolicNumber] = {}

    def add_guard(self, *guard: Any) -> None:
        """Record a decision (the fields of a `NumberGuard`)."""
        if len(self.guards) >= MAX_GUARDS:
            raise TooManyDecisions
        self.guards.append(NumberGuard(*guard))

    def argument(self, value: Any, symbol: int) -> SymbolicNumber:
        """Return a number for an argument, which is the symbol of this index."""
        number = SymbolicNumber(value, self, symbol)
        self.computed.append(number)
        return number


_floor, _ceil, _trunc = math.floor, math.ceil, math.trunc  # the module's are replaced in retraces
_ROUNDING = (operator.floordiv, round, _floor, _ceil, _trunc, math.fmod)


class SymbolicNumber(ComparedNumber):
    """A number that was computed from sizes or arguments.

    Args:
        value: the number.
        reads: receives the decisions.
        origin: the index of its symbol, for an argument; a function and its operands, for what is computed from one;
            None for sizes.
    """

    __slots__ = ("origin", "reads", "value")

    def __init__(self, value: Any, reads: NumberReads, origin: int | tuple[Any, ...] | None = None) -> None:
        self.value, self.reads, self.origin = value, reads, origin

    @property  # type: ignore[misc]
    def __class__(self) -> type:  # isinstance(size, int) holds, as for the numbers of eager calls
        return type(self.value)

    def _derived(self, value: Any, *origin: Any) -> Any:
        """Return the number that a function, the first of `origin`, has computed from the others."""
        if type(value) not in (int, float):
            return value
        if all(type(x) is not SymbolicNumber or x.origin is None for x in origin):
            return SymbolicNumber(value, self.reads)
        made = SymbolicNumber(value, self.reads, origin)
        self.reads.computed.append(made)
        if origin[0] in _ROUNDING:
            self.reads.rounded.append(made)
        return made

    def _exact(self) -> Any:
        """Return the value, which the code that asks for it depends on unless it belongs to this package."""
        if not is_internal_frame(sys._getframe(2)):
            self.reads.add_guard(None, self, None, True)
        return self.value

    def _compare(self, other: Any, function: Callable[[Any, Any], bool]) -> Any:
        right = plain(other)
        if not isinstance(right, (int, float)):
            return function(self.value, right) if function in (operator.eq, operator.ne) else NotImplemented
        outcome = function(self.value, right)
        if not is_internal_frame(sys._getframe(2)):
            self.reads.add_guard(function, self, other, outcome)
        return outcome

    def __bool__(self) -> bool:
        outcome = bool(self.value)
        if not is_internal_frame(sys._getframe(1)):
            self.reads.add_guard(operator.ne, self, 0, outcome)
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

    def __round__(self, digits: int | None = None) -> Any:
        return self._derived(round(self.value, digits), round, self, digits)

    def __floor__(self) -> Any:
        return self._derived(_floor(self.value), _floor, self)

    def __ceil__(self) -> Any:
        return self._derived(_ceil(self.value), _ceil, self)

    def __trunc__(self) -> Any:
        return self._derived(_trunc(self.value), _trunc, self)


def _binary(name: str, reverse: bool) -> Callable[[Any, Any], Any]:
    function = getattr(operator, name)

    def method(self: SymbolicNumber, other: Any) -> Any:
        right = plain(other)
        if type(right) not in (int, float, bool):
            return NotImplemented
        operands = (other, self) if reverse else (self, other)
        left, right = map(plain, operands)
        result = function(left, right)
        if function is operator.mod:  # the same for many sizes, and another one for those in between
            self.reads.add_guard(function, *operands, result)
        return self._derived(result, function, *operands)

    return method


def _unary(name: str) -> Callable[[Any], Any]:
    function = getattr(operator, name)
    return lambda self: self._derived(function(self.value), function, self)


for _name in ("add", "sub", "mul", "floordiv", "truediv", "mod", "pow"):
    setattr(SymbolicNumber, f"__{_name}__", _binary(_name, False))
    setattr(SymbolicNumber, f"__r{_name}__", _binary(_name, True))
for _name in ("neg", "pos", "abs"):
    setattr(SymbolicNumber, f"__{_name}__", _unary(_name))


def plain(x: Any) -> Any:
    """Return the value of a `SymbolicNumber`; anything else as it is."""
    return x.value if type(x) is SymbolicNumber else x


class _RecordedSize(Size):
    """A shape of `SymbolicNumber`s."""

    __slots__ = ()

    def __getitem__(self, index: Any) -> Any:
        item = tuple.__getitem__(self, index)
        return tuple.__new__(_RecordedSize, item) if isinstance(index, slice) else item

    def __add__(self, other: Any) -> Any:
        return tuple.__new__(_RecordedSize, tuple(self) + tuple(other))

    def __radd__(self, other: Any) -> Any:
        return tuple.__new__(_RecordedSize, tuple(other) + tuple(self))


def _recorded(x: Any, reads: NumberReads) -> Any:
    """Return a result of a function that reads sizes with `SymbolicNumber`s for ints."""
    if type(x) is int:
        return SymbolicNumber(x, reads)
    if isinstance(x, Size):
        return tuple.__new__(_RecordedSize, [_recorded(each, reads) for each in x])
    return tuple([_recorded(each, reads) for each in x]) if type(x) is tuple else x


#: methods and properties of tensors that return sizes
_METHODS = ("size", "numel", "nelement", "stride")
_PROPERTIES = ("shape", "nbytes")
#: functions that do
_FUNCTIONS = ("numel", "broadcast_shapes")
#: methods and functions that return as many tensors as sizes tell
_SEQUENCES = ("unbind", "split", "chunk", "tensor_split", "hsplit", "vsplit", "dsplit", "split_with_sizes",
              "unsafe_split", "unsafe_chunk")
#: functions of the module `math`
_MATH = ("acos", "asin", "atan", "atan2", "cbrt", "ceil", "cos", "cosh", "degrees", "erf", "exp", "exp2", "expm1",
         "fabs", "floor", "fmod", "hypot", "log", "log10", "log1p", "log2", "pow", "radians", "sin", "sinh", "sqrt",
         "tan", "tanh", "trunc")
#: those that compare shapes
_COMPARISONS = ("is_same_size", "equal")


def _reads_of_user() -> NumberReads | None:
    """Return where to record what the caller's caller reads; None if that is no user code of a retrace."""
    reads: NumberReads | None = getattr(active_tracer.get(), "number_reads", None)
    return None if reads is None or is_internal_frame(sys._getframe(2)) else reads


def _reading(original: Callable[..., Any]) -> Callable[..., Any]:
    def read(*args: Any, **kwargs: Any) -> Any:
        reads = _reads_of_user()
        result = original(*args, **kwargs)
        return result if reads is None else _recorded(result, reads)

    return read


def _dividing(original: Callable[..., Any]) -> Callable[..., Any]:
    def divide(*args: Any, **kwargs: Any) -> Any:
        reads = _reads_of_user()
        result = original(*args, **kwargs)
        if reads is not None:
            reads.add_guard(None, len(result), None, True)
        return result

    return divide


def _comparing(original: Callable[..., Any]) -> Callable[..., Any]:
    def compare(*args: Any, **kwargs: Any) -> Any:
        reads = _reads_of_user()
        if reads is not None:
            shapes = [x._array.shape for x in (*args, *kwargs.values()) if isinstance(x, Tensor)]
            for n, m in zip(*shapes, strict=False):
                reads.add_guard(operator.eq, n, m, n == m)
        return original(*args, **kwargs)

    return compare


def _counting(original: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def count(self: Any) -> Any:
        reads = _reads_of_user()
        if reads is not None and self._array.ndim:
            reads.add_guard(None, self._array.shape[0], None, True)
        return original(self)

    return count


def _computing(original: Callable[..., Any]) -> Callable[..., Any]:
    def compute(*args: Any) -> Any:
        symbolic = next((x for x in args if type(x) is SymbolicNumber), None)
        if symbolic is None:
            return original(*args)
        return symbolic._derived(original(*map(plain, args)), original, *args)

    return compute


def _replacements() -> list[tuple[Any, str, Any]]:
    package = sys.modules[__name__.partition(".")[0]]
    found: list[tuple[Any, str, Any]] = [(Tensor, name, _counting(getattr(Tensor, name))) for name in (
        "__len__", "__iter__")]
    found += [(Tensor, name, property(_reading(vars(Tensor)[name].fget))) for name in _PROPERTIES]
    for names, wrapper in ((_METHODS, _reading), (_SEQUENCES, _dividing), (_COMPARISONS, _comparing)):
        found += [(Tensor, name, wrapper(getattr(Tensor, name))) for name in names if hasattr(Tensor, name)]
    for names, wrapper in ((_FUNCTIONS, _reading), (_SEQUENCES, _dividing), (_COMPARISONS, _comparing)):
        found += [(package, name, wrapper(getattr(package, name))) for name in names if hasattr(package, name)]
    found += [(math, name, _computing(getattr(math, name))) for name in _MATH if hasattr(math, name)]
    return found


_MISSING = object()
_lock = threading.Lock()
_replaced: list[tuple[Any, str, Any]] = []  # what was replaced: class or module, name, original
_users = [0]  # threads that retrace


@contextmanager
def recorded_reads() -> Iterator[None]:
    """Let user code of threads whose tracer has `number_reads` read sizes as `SymbolicNumber`s."""
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


__all__ = ["NumberGuard", "NumberReads", "SymbolicNumber", "TooManyDecisions", "plain", "recorded_reads"]
