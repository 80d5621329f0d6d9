"""Values with NumPy's interface: special functions of arrays, given these, build expressions.

The functions of `kernels.special` compute with masks: a piece of a piecewise function is then computed everywhere, and
selected where its mask holds.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np

from ...scalar import scalar_ir
from ...scalar.scalar_ir import BOOL, FLOAT64, Node, cast
from ..kernel_ir import KernelBuilder


class Operations(Protocol):
    """What builds expressions: a graph of the IR, or `ScalarOperations`."""

    def apply(self, op: str, *values: Any) -> Any:
        """An operation of scalar IR."""

    def select(self, condition: Any, x: Any, y: Any) -> Any:
        """`x` where the condition is true, else `y`."""

    def cast(self, value: Any, dtype: np.dtype) -> Any:
        """Another dtype."""

    def constant(self, value: Any, dtype: np.dtype) -> Any:
        """A number."""


class ScalarOperations:
    """Expressions of one element in a kernel.

    Args:
        b: the kernel's builder, for loops.
    """

    def __init__(self, b: KernelBuilder) -> None:
        self.b = b

    def apply(self, op: str, *values: Any) -> Node:
        """An operation of scalar IR."""
        return scalar_ir.apply(op, *values)

    def select(self, condition: Node, x: Node, y: Node) -> Node:
        """`x` where the condition is true, else `y`."""
        return scalar_ir.select(condition, x, y)

    def cast(self, value: Node, dtype: np.dtype) -> Node:
        """Another dtype."""
        return cast(value, dtype)

    def constant(self, value: Any, dtype: np.dtype) -> Node:
        """A number."""
        return scalar_ir.constant(bool(value) if dtype == BOOL else float(value), dtype)

    def until_converged(self, step: Callable[..., Traced], state: list[Traced], result: int) -> Traced:
        """The result of a loop that ends where the step says so."""
        b = self.b
        held = [b.local(each.value) for each in state]
        going, count = b.local(scalar_ir.constant(True, BOOL)), b.local(scalar_ir.constant(0.0, FLOAT64))
        with b.loop_while(going):
            number = b.get(count) + 1.0
            current = [Traced(b.get(each), self) for each in held]
            converged = step(Traced(number, self), current)
            for local, each in zip(held, current, strict=True):
                b.set(local, each.value)
            b.set(count, number)
            b.set(going, ~converged.value)
        return Traced(b.get(held[result]), self)


#: NumPy's functions, and the operations of the IR
_OPERATIONS = {
    "add": "add", "subtract": "sub", "multiply": "mul", "divide": "div", "true_divide": "div", "negative": "neg",
    "absolute": "abs", "fabs": "abs", "minimum": "minimum", "maximum": "maximum", "sqrt": "sqrt", "exp": "exp",
    "expm1": "expm1", "log": "log", "log1p": "log1p", "sin": "sin", "cos": "cos", "tan": "tan", "arccos": "acos",
    "floor": "floor", "ceil": "ceil", "rint": "round", "power": "pow", "copysign": "copysign", "remainder": "remainder",
    "less": "lt", "less_equal": "le", "greater": "gt", "greater_equal": "ge", "equal": "eq", "not_equal": "ne",
    "logical_and": "and", "logical_or": "or", "logical_not": "not", "bitwise_and": "and", "bitwise_or": "or",
    "invert": "not",
}
#: the number of elements that no mask has
_COUNT = 1 << 40


class Traced(np.lib.mixins.NDArrayOperatorsMixin):
    """A value with the interface of an array, as far as special functions use it.

    Args:
        value: float64 or bool.
        operations: what it was built by.
    """

    def __init__(self, value: Any, operations: Operations) -> None:
        self.value, self.operations = value, operations

    @property
    def dtype(self) -> np.dtype:
        """Of the elements."""
        found: np.dtype = self.value.dtype
        return found

    @property
    def size(self) -> int:
        """More than any mask has: no piece is known to hold everywhere."""
        return _COUNT

    def _of(self, x: Any, dtype: np.dtype) -> Any:
        return x.value if isinstance(x, Traced) else self.operations.constant(np.asarray(x, dtype)[()], dtype)

    def _new(self, value: Any) -> Traced:
        return Traced(value, self.operations)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, out: Any = None, **kwargs: Any) -> Any:
        name = ufunc.__name__
        if method != "__call__" or kwargs:
            raise TypeError(f"{name} of a special function")
        g = self.operations
        if name in ("isnan", "isinf", "isfinite", "signbit"):
            [x] = (self._of(each, FLOAT64) for each in inputs)
            if name == "isnan":
                return self._new(g.apply("ne", x, x))
            if name == "signbit":
                return self._new(g.apply("lt", g.apply("copysign", g.constant(1.0, FLOAT64), x), 0.0))
            return self._new(g.apply("eq" if name == "isinf" else "lt", g.apply("abs", x), np.inf))
        op = _OPERATIONS.get(name)
        if op is None:
            raise TypeError(f"{name} of a special function")
        dtype = next(each.dtype for each in inputs if isinstance(each, Traced))
        result = self._new(g.apply(op, *[self._of(each, dtype) for each in inputs]))
        if out is not None:
            out[0].value = result.value
            return out[0]
        return result

    def __array_function__(self, function: Any, types: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        name, g = function.__name__, self.operations
        if name == "where":
            condition, x, y = args
            return self._new(g.select(condition.value, self._of(x, FLOAT64), self._of(y, FLOAT64)))
        if name in ("zeros_like", "ones_like", "empty_like", "full_like"):
            number = args[1] if name == "full_like" else float(name == "ones_like")
            return self._new(g.constant(float(number), FLOAT64))
        if name in ("round", "around"):
            return self._new(g.apply("round", args[0].value))
        if name == "count_nonzero":
            return 1
        if name == "broadcast_arrays":
            return list(args)
        raise TypeError(f"{name} of a special function")

    def copy(self) -> Traced:
        """An array that is written to for itself."""
        return self._new(self.value)

    def astype(self, dtype: Any) -> Traced:
        """Another dtype, or the rounding to it."""
        return self._new(self.operations.cast(self.value, np.dtype(dtype)))

    def any(self) -> bool:
        """Whether a piece may hold somewhere."""
        return True

    def all(self) -> bool:
        """Whether it is known to hold everywhere."""
        return False

    def until_converged(self, step: Callable[..., Traced], state: list[Traced], result: int) -> Traced:
        """The result of an iteration of states, of which this is one."""
        if not isinstance(self.operations, ScalarOperations):
            raise TypeError("a loop of a special function that is no kernel")
        return self.operations.until_converged(step, state, result)

    def __getitem__(self, mask: Any) -> Traced:
        if isinstance(mask, Traced) and mask.dtype == BOOL:
            return self.copy()  # computed everywhere
        raise TypeError("an index in a special function")

    def __setitem__(self, mask: Any, value: Any) -> None:
        if mask is Ellipsis:
            self.value = self._of(value, self.dtype)
            return
        if not isinstance(mask, Traced) or mask.dtype != BOOL:
            raise TypeError("an index in a special function")
        self.value = self.operations.select(mask.value, self._of(value, self.dtype), self.value)


__all__ = ["Operations", "ScalarOperations", "Traced"]
