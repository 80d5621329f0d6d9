"""Launches for small arrays whose layouts come again and again: one call in place of the passes of NumPy.

Planning a launch takes as long as some tens of small calls, so that calls are counted first. A launch is used once its
results had the bits, dtype and strides of NumPy's several times: results do not depend on how often an operator was
called.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any

import numpy as np

from ...backends.compiled.thresholds import SMALL_KERNELS
from ...errstate import run_in_quiet
from ...ops.declare import Op

ndarray = np.ndarray
F32 = np.dtype(np.float32)
F64 = np.dtype(np.float64)

#: the most elements of the arrays that launches are kept for
MOST = 16384
#: calls with one layout before its launch is planned, and calls that compare its results
CALLS, PROOFS = 24, 4
#: where calls are not counted by layout: every so many that are neither recorded nor known, one becomes known
LEARNED = 16
#: operators with positional parameters that have launches for small arrays
SMALL = frozenset(("cumsum", "cumprod", "softmax", "log_softmax", "logsumexp", "var", "std"))
#: operators that are not elementwise, and have launches
LAUNCHED = frozenset((
    "trace", "masked_fill", "scatter_add", "gather", "index_select", "index_fill", "index_add", "scatter", "addmm",
    "topk", "cummax", "cummin", "mse_loss", "smooth_l1_loss", "huber_loss", "binary_cross_entropy",
    "binary_cross_entropy_with_logits", "flip", "diff", "linalg_qr", "linalg_solve_triangular"))
#: the most layouts of one operator
LAYOUTS = 256


class Launches:
    """The launches of one operator by layout.

    Attributes:
        single, double: float32's and float64's, functions of arrays by key; False where NumPy computes the operator.
        most: the most elements of an input whose launches are looked up; smaller once planning found none for a layout
            and the operator has none above.
    """

    __slots__ = ("_candidates", "_counts", "double", "most", "single")

    def __init__(self) -> None:
        self.most = MOST
        self.single: dict[Any, Any] = {}
        self.double: dict[Any, Any] = {}
        self._counts: dict[Any, int] = {}
        self._candidates: dict[Any, Any] = {}

    def count(self, key: Hashable) -> int:
        """How many calls of a layout were counted."""
        return self._counts.get((F32.char, key), 0)

    def candidate(self, key: Hashable) -> Any:
        """The launch of a layout that is being compared; None where there is none."""
        return self._candidates.get((F32.char, key))

    def refuse(self, key: Hashable) -> None:
        """Leave a layout to NumPy from now on."""
        counted = (F32.char, key)
        self._candidates.pop(counted, None)
        self._counts.pop(counted, None)
        self.single[key] = False

    def consider(self, dtype: np.dtype, key: Hashable, arrays: tuple[ndarray, ...], result: Any,
                 make: Callable[..., Any], *arguments: Any) -> None:
        """Count a call that NumPy computed; plan, compare and at last keep the launch of its layout.

        Args:
            key: the layouts and parameters.
            make: (*arguments) -> the function of the arrays, or None.
        """
        counts, counted = self._counts, (dtype.char, key)
        count = counts.get(counted, 0) + 1
        if count < CALLS:
            if len(counts) >= 4 * LAYOUTS:
                counts.clear()
            counts[counted] = count
            return
        launch = self._candidates.pop(counted, None)
        if launch is None and _are_arrays(result) and all(a.__class__ is ndarray and a.size for a in arrays):
            launch = make(*arguments)
        if launch is None or not same_arrays(
                run_in_quiet(launch[0] if launch.__class__ is tuple else launch, arrays), result):
            launch = False
        elif count < CALLS + PROOFS:
            counts[counted] = count
            self._candidates[counted] = launch
            return
        kept = self.single if dtype is F32 else self.double
        if len(kept) >= LAYOUTS:
            kept.clear()
        kept[key] = launch
        counts.pop(counted, None)


class KnownCalls:
    """The known calls of one function (`known_calls.CallTable`), which are imported with the first.

    Args:
        differentiable, states: of `CallTable`.
    """

    __slots__ = ("_differentiable", "_states", "_table")

    def __init__(self, differentiable: bool = True, states: tuple[list[Any], ...] = ()) -> None:
        self._differentiable, self._states = differentiable, states
        self._table: Any = None

    def _found(self) -> Any:
        if self._table is None:
            from .known_calls import CallTable

            self._table = CallTable(self._differentiable, self._states)
        return self._table

    def add(self, *args: Any, **options: Any) -> Callable[..., Any] | None:
        """`CallTable.add`."""
        enter: Callable[..., Any] | None = self._found().add(*args, **options)
        return enter

    def add_views(self, *args: Any) -> Callable[..., Any] | None:
        """`CallTable.add_views`."""
        enter: Callable[..., Any] | None = self._found().add_views(*args)
        return enter


def _are_arrays(result: Any) -> bool:
    """Whether a result, or each of several, is an array with elements."""
    if result.__class__ is tuple:
        return all(map(_are_arrays, result))
    return result.__class__ is ndarray and bool(result.size)


def same_arrays(found: Any, expected: Any) -> bool:
    """Whether arrays, or tuples of arrays, have the same layouts, dtypes and bits."""
    if expected.__class__ is tuple:
        return found.__class__ is tuple and len(found) == len(expected) and all(map(same_arrays, found, expected))
    return (found.__class__ is expected.__class__ is ndarray and found.dtype is expected.dtype
            and found.shape == expected.shape and found.strides == expected.strides
            and bool(found.tobytes() == expected.tobytes()))


def launch_by(op: Op, inputs: list[Any], params: dict[str, Any]) -> Any:
    """The launch of an operator (`launch_makers.launch_of`)."""
    from .launch_makers import launch_of

    return launch_of(op, inputs, params)


def launch_or_limit(launches: Launches, op: Op, inputs: list[Any], params: dict[str, Any]) -> Any:
    """`launch_by`, which sets `launches.most` where there is no launch."""
    from .launch_makers import launch_of, most_elements

    launch = launch_of(op, inputs, params)
    if launch is None:
        launches.most = most_elements(op, MOST)
    return launch


def consider_with_parameters(launches: Launches, op: Op, key: Hashable, a: ndarray, result: Any,
                             params: dict[str, Any]) -> None:
    """Consider the launch of an operator with one input and parameters."""
    values = {name: params[name] if name in params else op.defaults[name] for name in op.params}
    launches.consider(a.dtype, key, (a,), result, _with_values, launches, op, a, values)


def _with_values(launches: Launches, op: Op, a: ndarray, values: dict[str, Any]) -> Any:
    launch = launch_or_limit(launches, op, [a], values)
    return None if launch is None else (launch, tuple(values.values()))


__all__ = ["CALLS", "F32", "F64", "LAUNCHED", "LAYOUTS", "LEARNED", "MOST", "PROOFS", "SMALL", "SMALL_KERNELS",
           "KnownCalls", "Launches", "consider_with_parameters", "launch_by", "launch_or_limit", "same_arrays"]
