"""Templates of programs: which arguments of a compiled function vary, and in which range it does the same."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from math import copysign
from typing import Any, NamedTuple

from ..._tensor import Tensor
from ..symbolic.retracing import dense_layout
from ..symbolic.trace_template import TraceTemplate
from ..tracing.aliasing import address, owner

#: shape and strides of each tensor of a call
Layouts = tuple[tuple[tuple[int, ...], tuple[int, ...]], ...]
Places = frozenset[tuple[int, int]]


#: in a place, instead of the position of a tensor: an argument that is a number, which has the position that follows
NUMBER = -1
#: the numbers of a call: (position among all arguments, number)
Numbers = tuple[tuple[int, Any], ...]


def numbers_of(arguments: Sequence[Any]) -> Numbers:
    """Return the numbers among the arguments of a call."""
    return tuple([(i, x) for i, x in enumerate(arguments) if x.__class__ in (int, float)])


def is_same_number(x: Any, y: Any) -> bool:
    """Whether two numbers of one class are equal, with the sign of zeros; no NaN is.

    >>> is_same_number(0.0, -0.0), is_same_number(2, 2)
    (False, True)
    """
    return bool(x == y) and (x != 0 or copysign(1, x) == copysign(1, y))


class Symbol(NamedTuple):
    """A size or an argument that varies.

    Attributes:
        places: (position of a tensor, dimension), or (`NUMBER`, position of an argument): where it occurs.
        known: values that it had, ordered.
        least: the smaller one of the two that the template is made from.
    """

    places: tuple[tuple[int, int], ...]
    known: tuple[Any, ...]
    least: Any

    @property
    def is_float(self) -> bool:
        """Whether it is a number that is no integer."""
        return self.known[0].__class__ is float


def layouts_of(tensors: Sequence[Any]) -> Layouts:
    """Return the shapes and strides of tensors."""
    return tuple([(x._array.shape, x._array.strides) for x in tensors])


def symbol_values(symbols: Sequence[Symbol], arguments: Sequence[Any]) -> tuple[Any, ...]:
    """Return the values of symbols in a call."""
    tensors = [x for x in arguments if isinstance(x, Tensor)]
    return tuple([arguments[dim] if at == NUMBER else tensors[at]._array.shape[dim]
                  for at, dim in (symbol.places[0] for symbol in symbols)])


def pin_holds(x: Any, pin: tuple[Any, Any, int]) -> bool:
    """Whether an argument is the pinned tensor, in the pinned memory."""
    tensor, memory, at = pin
    return (tensor is None or tensor() is x) and (
        memory is None or (memory() is owner(x._array) and address(x._array) == at))


class Template:
    """The programs of a family for a range of sizes.

    Args:
        entry: the entry of the first shape, whose guards all programs have.
        symbols: the sizes and numbers that vary.
        layouts: shapes and strides of the tensors of the first call.
        numbers: its numbers.
        orders: by tensor, its memory order if its size varies; None for others.
        traces: the template of the traces.
        low, high: by symbol, the range in which the function does the same.
    """

    def __init__(self, entry: Any, symbols: tuple[Symbol, ...], layouts: Layouts, numbers: Numbers,
                 orders: tuple[list[int] | None, ...], traces: TraceTemplate, low: tuple[Any, ...],
                 high: tuple[Any, ...]) -> None:
        self.entry, self.symbols, self.layouts, self.numbers = entry, symbols, layouts, numbers
        self.orders, self.traces, self.low, self.high = orders, traces, low, high

    @cached_property
    def places(self) -> Places:
        """Where sizes vary."""
        return frozenset([place for symbol in self.symbols for place in symbol.places])

    @cached_property
    def varying(self) -> set[int]:
        """The tensors whose size varies."""
        return {at for at, _ in self.places if at != NUMBER}

    def pins_hold(self, arguments: Sequence[Any]) -> bool:
        """Whether a call has the tensors that the programs require."""
        varying, tensors = self.varying, [x for x in arguments if isinstance(x, Tensor)]
        return all(pin is None or i in varying or pin_holds(x, pin)
                   for i, (x, pin) in enumerate(zip(tensors, self.entry.pins, strict=True)))

    @cached_property
    def free_arguments(self) -> frozenset[int]:
        """Return the positions of the arguments that are inputs of the programs."""
        return frozenset([dim for i, symbol in enumerate(self.symbols) if i in self.traces.free
                          for at, dim in symbol.places if at == NUMBER])

    def sizes_of(self, arguments: Sequence[Any]) -> tuple[Any, ...] | None:
        """Return the values of the symbols in a call with these arguments; None if the template does not serve it."""
        sizes = symbol_values(self.symbols, arguments)
        shapes = [list(shape) for shape, _ in self.layouts]
        numbers = dict(self.numbers)
        tensors = [x for x in arguments if isinstance(x, Tensor)]
        for symbol, size in zip(self.symbols, sizes, strict=True):
            for at, dim in symbol.places:
                if at == NUMBER:
                    numbers[dim] = size
                else:
                    shapes[at][dim] = size
        if not all(is_same_number(arguments[at], number) for at, number in numbers.items()):
            return None
        if not all(low <= size <= high for low, size, high in zip(self.low, sizes, self.high, strict=True)):
            return None
        for x, shape, order, (_, strides) in zip(tensors, shapes, self.orders, self.layouts, strict=True):
            a = x._array
            if list(a.shape) != shape or a.strides != (
                    strides if order is None else dense_layout(shape, order, a.itemsize)):
                return None
        return sizes if self.traces.holds(sizes) else None


__all__ = ["NUMBER", "Layouts", "Numbers", "Places", "Symbol", "Template", "is_same_number", "layouts_of",
           "numbers_of", "pin_holds", "symbol_values"]
