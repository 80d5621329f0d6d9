"""Launches for small arrays whose layouts come again and again, and functions with known calls: one call in place of
the passes of NumPy.

Planning a launch takes as long as some tens of small calls, so that calls are counted first. A launch is used once its
results had the bits, dtype and strides of NumPy's several times: results do not depend on how often an operator was
called. A factory's results are the same in every call, so that generated code copies one that was kept.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Hashable
from typing import Any

import numpy as np

from ...backends.compiled.thresholds import SMALL_KERNELS
from ...devices import ambient
from ...dtypes import BFLOAT16, other_default
from ...errstate import run_in_quiet
from ...modes import special
from ...ops.declare import Op
from ..tensor import Tensor

ndarray = np.ndarray
F32 = np.dtype(np.float32)
F64 = np.dtype(np.float64)

#: the most elements of the arrays that launches are kept for
MOST = 65536
#: calls with one of few layouts before its launch is planned, and calls that compare its results
CALLS, PROOFS = 24, 4
#: calls that are looked up in vain before fewer are, and the number at which one of 8 is
MISSES, MOST_MISSES = 512, 960
#: calls that Python computes until one is planned for any number of rows; and at most
FREE, LONGEST_FREE_WAIT = 32, 4096
#: where calls are not counted by layout: the calls, neither recorded nor known, until one may become known; and at most
LEARNED, LONGEST_WAIT = 16, 1024
#: operators with positional parameters that have launches for small arrays
SMALL = frozenset(("cumsum", "cumprod", "softmax", "log_softmax", "logsumexp", "var", "std"))
#: operators that are not elementwise, and have launches
LAUNCHED = frozenset((
    "trace", "masked_fill", "scatter_add", "gather", "index_select", "index_fill", "index_add", "scatter", "addmm",
    "topk", "cummax", "cummin", "mse_loss", "smooth_l1_loss", "huber_loss", "binary_cross_entropy",
    "binary_cross_entropy_with_logits", "flip", "diff", "linalg_qr", "linalg_solve_triangular"))
#: the most layouts of one operator
LAYOUTS = 256
#: functions whose first argument is a tensor of which only the layout counts
_OF_A_TENSOR = frozenset(("empty_like", "zeros_like", "ones_like", "full_like", "new_empty", "new_zeros", "new_ones",
                          "new_full"))
#: functions whose results have any elements
_UNSET = frozenset(("empty", "empty_like", "new_empty"))


#: the value of `special` while a call is observed that may take its shortest way
observing = [0]
#: one thread at a time creates a table of known calls
_creating = threading.Lock()


class Launches:
    """The launches of one operator by layout.

    The more layouts have launches, the more calls another one has to be seen in: planning takes as long as hundreds of
    calls. Where most calls are of layouts without a launch, as with texts of ever other lengths, few are looked up.

    Attributes:
        single, double: float32's and float64's, functions of arrays by key; False where NumPy computes the operator.
        most: the most elements of an input whose launches are looked up; smaller once planning found none for a layout
            and the operator has none above.
        misses: how many calls of late were looked up in vain; each that was found makes up for four.
        skips: how many calls from now on need not be looked up, nor counted.
    """

    __slots__ = ("_candidates", "_counts", "double", "misses", "most", "single", "skips")

    def __init__(self) -> None:
        self.most = MOST
        self.single: dict[Any, Any] = {}
        self.double: dict[Any, Any] = {}
        self.misses = self.skips = 0
        self._counts: dict[Any, int] = {}
        self._candidates: dict[Any, Any] = {}

    def hit(self) -> None:
        """Note that a call was found."""
        self.misses = max(self.misses - 4, 0)

    def miss(self) -> None:
        """Note that a call was looked up in vain."""
        self.misses = misses = min(self.misses + 1, MOST_MISSES)
        if misses > MISSES:
            self.skips = (misses - MISSES) // 64

    def is_due(self, key: Hashable) -> bool:
        """Whether the launch of a layout is to be planned in this call."""
        counted = (F32.char, key)
        return self._counts.get(counted, 0) + 1 >= _needed(self.single) and counted not in self._candidates

    def candidate(self, key: Hashable) -> Any:
        """The launch of a layout that is being compared; None where there is none."""
        return self._candidates.get((F32.char, key), (None,))[0]

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
        if self.skips:
            self.skips -= 1
            return
        kept = self.single if dtype is F32 else self.double
        counts, counted = self._counts, (dtype.char, key)
        launch, comparisons = self._candidates.pop(counted, (None, 0))
        if launch is None:
            count = counts.get(counted, 0) + 1
            if count < _needed(kept):
                if len(counts) >= 4 * LAYOUTS:
                    counts.clear()
                counts[counted] = count
                self.miss()
                return
        if launch is None and _are_arrays(result) and all(a.__class__ is ndarray and a.size for a in arrays):
            launch = make(*arguments)
        if launch is None or not same_arrays(
                run_in_quiet(launch[0] if launch.__class__ is tuple else launch, arrays), result):
            launch = False
        elif comparisons < PROOFS:
            self._candidates[counted] = launch, comparisons + 1
            return
        if len(kept) >= LAYOUTS:
            kept.clear()
        kept[key] = launch
        counts.pop(counted, None)


def _needed(kept: dict[Any, Any]) -> int:
    """The calls with one layout before its launch is planned, beside those that have one."""
    return CALLS << len(kept) // 32


class KnownCalls:
    """The known calls of one function (`known_calls.CallTable`), which are imported with the first.

    An attempt to make a call known takes as long as a hundred calls: after each that added nothing, because the call
    cannot be known or the table is full, the next one waits twice as long.

    Args:
        differentiable: of `CallTable`.
        states: gives those of `CallTable`, when the first call is added.
        wait: one of so many calls is attempted to become known.

    Attributes:
        left: the calls until the next attempt, counted down by the function.
        differentiable: as given.
        free_left, free_wait: the calls until the next that is planned for any number of rows, or compared, and the
            number that there were at first (`free.calls.observe_free`).
        candidate: the plan that is compared.
    """

    __slots__ = ("_first_wait", "_states", "_table", "_wait", "candidate", "differentiable", "free_left", "free_wait",
                 "left")

    def __init__(self, differentiable: bool = True, states: Callable[[], tuple[list[Any], ...]] = tuple,
                 wait: int = LEARNED) -> None:
        self.differentiable = differentiable
        self._states = states
        self._table: Any = None
        self.candidate: Any = None
        self.left = self._wait = self._first_wait = wait
        self.free_left = self.free_wait = FREE

    def begin_attempt(self) -> None:
        """Set `left` for an attempt that adds nothing; `add` sets it again."""
        self.left = self._wait = min(2 * self._wait, LONGEST_WAIT)
        if self._table is not None:
            self._table.replaces = True

    def add(self, *args: Any, **options: Any) -> Callable[..., Any] | None:
        """`CallTable.add`."""
        return self._added(lambda table: table.add(*args, **options))

    def add_views(self, *args: Any) -> Callable[..., Any] | None:
        """`CallTable.add_views`."""
        return self._added(lambda table: table.add_views(*args))

    def add_free(self, args: tuple[Any, ...], kwargs: dict[str, Any], call: Any) -> Callable[..., Any] | None:
        """`CallTable.add_free`."""
        return self._added(lambda table: table.add_free(args, kwargs, call))

    def _added(self, add: Callable[[Any], Any]) -> Callable[..., Any] | None:
        table = self._table
        if table is None:
            from .known_calls import CallTable

            with _creating:  # a second table would free the first, whose `enter` a function may have
                table = self._table
                if table is None:
                    table = self._table = CallTable(self.differentiable, self._states())
        before = table.count
        enter: Callable[..., Any] | None = add(table)
        if table.count > before:
            self.left = self._wait = self._first_wait
        return enter


def known_results(function: Callable[..., Any]) -> Callable[..., Any]:
    """A factory with known calls: its results depend on its arguments, the default dtype and the default device.

    Its first argument may be a tensor of which only the layout counts. Calls with other tensors are never known.
    """
    first, unset = int(function.__name__ in _OF_A_TENSOR), function.__name__ in _UNSET

    def launch_of(result: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if ambient[0] is not None or other_default[0] or any(map(has_values, (*args[first:], *kwargs.values()))):
            return None
        from .copy_launches import constant_launch, empty_launch

        return (empty_launch if unset else constant_launch)(result._array)

    return _known(function, launch_of, KnownCalls(False, lambda: (ambient, other_default)))


def known_by(make: Callable[..., Any]) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """The decorator of a function with launches of its own.

    Args:
        make: (arguments of a call) -> the launch of this call, or None. The launch gives None where the function itself
            has to run.
    """
    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        def launch_of(result: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
            launch = make(*args, **kwargs)
            if launch is None:
                return None
            found = launch(*[x._array for x in (*args, *kwargs.values()) if isinstance(x, Tensor)])
            return launch if same_arrays(found, result._array) else None

        return _known(function, launch_of, KnownCalls())

    return decorate


def _known(function: Callable[..., Any], launch_of: Callable[..., Any], known_calls: KnownCalls) -> Callable[..., Any]:
    """A function of which every so many calls are made known.

    Args:
        launch_of: (result, arguments by position, by name) -> the launch, or None.
    """
    def learn(result: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if special[0] or not is_new(result):
            return None
        launch = launch_of(result, args, kwargs)
        return None if launch is None else known_calls.add(args, kwargs, launch)

    call, code = learning(function, learn, known_calls), function.__code__  # contexts of devices look for its name
    call.__code__ = call.__code__.replace(co_name=code.co_name, co_qualname=code.co_qualname)
    return call


def learning(function: Callable[..., Any], learn: Callable[..., Any],
             known_calls: KnownCalls) -> Callable[..., Any]:
    """A function that enters its known calls first, and of whose other calls some are attempted to become known.

    Args:
        learn: (result, arguments by position, by name) -> what enters known calls (`CallTable.enter`), or None.
    """
    enter: Any = None

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        nonlocal enter
        if enter is not None:
            result = enter(args, kwargs)
            if result is not None and result is not False:
                return result
        result = function(*args, **kwargs)
        if SMALL_KERNELS[0]:
            known_calls.left -= 1
            if known_calls.left <= 0:
                known_calls.begin_attempt()
                enter = learn(result, args, kwargs) or enter
        return result

    return call


def has_values(argument: Any) -> bool:
    """Whether an argument is a tensor, or has some."""
    if argument.__class__ is tuple or argument.__class__ is list:
        return any(map(has_values, argument))
    return isinstance(argument, Tensor)


def is_new(result: Any) -> bool:
    """Whether a result is a new tensor as those that known calls make."""
    if result.__class__ is not Tensor or result._requires_grad or result._inference or result._base is not None:
        return False
    a = result._array
    return a.__class__ is ndarray and result._counter is None and (
        a.dtype.kind != "V" or a.dtype is BFLOAT16)  # complex32 warns


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


__all__ = ["CALLS", "F32", "F64", "FREE", "LAUNCHED", "LAYOUTS", "LEARNED", "LONGEST_FREE_WAIT", "MOST", "PROOFS",
           "SMALL", "SMALL_KERNELS", "KnownCalls", "Launches", "consider_with_parameters", "has_values", "is_new",
           "known_by", "known_results", "launch_by", "launch_or_limit", "learning", "observing", "same_arrays"]
