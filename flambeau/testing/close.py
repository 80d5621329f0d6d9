"""`assert_close`: two results, however nested, are the same but for rounding."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from .._tensor import Tensor
from .._tensor import functions as fn
from .comparisons import KINDS, Closeness, Run, Where
from .mismatch import Message, Mismatch, place
from .tolerances import OLD_TOLERANCES, loosest


class _Pair(NamedTuple):
    """Two values that are no containers, and how to compare them."""

    kind: str
    actual: Any
    expected: Any
    where: Where
    compare: Run


def _pairs(actual: Any, expected: Any, where: Where, closeness: Closeness) -> list[_Pair]:
    """All pairs of values in two containers of one structure.

    Raises:
        Mismatch: the structures differ, or two values are of kinds that cannot be compared.
    """
    if _is_sequence(actual) and _is_sequence(expected):
        if len(actual) != len(expected):
            raise Mismatch(f"The length of the sequences mismatch: {len(actual)} != {len(expected)}", where)
        return [pair for i in range(len(actual))
                for pair in _pairs(actual[i], expected[i], (*where, i), closeness)]
    if isinstance(actual, Mapping) and isinstance(expected, Mapping):
        return [pair for key in _keys(actual, expected, where)
                for pair in _pairs(actual[key], expected[key], (*where, key), closeness)]
    for kind, find in KINDS.items():
        try:
            compare = find(actual, expected, where, closeness)
        except Mismatch:
            raise
        except Exception as error:
            raise RuntimeError(f"Originating a {kind}() at item {place(where)} with\n\n"
                               f"{type(actual).__name__}(): {actual}\n\nand\n\n"
                               f"{type(expected).__name__}(): {expected}\n\n"
                               "resulted in the unexpected exception above.") from error
        if compare is not None:
            return [_Pair(kind, actual, expected, where, compare)]
    raise Mismatch(f"No comparison pair was able to handle inputs of type {type(actual)} and {type(expected)}.", where,
                   TypeError)


def _is_sequence(x: Any) -> bool:
    return isinstance(x, Sequence) and not isinstance(x, str)  # the elements of a str are str again


def _keys(actual: Mapping[Any, Any], expected: Mapping[Any, Any], where: Where) -> list[Any]:
    """The keys that both have, in their order if they have one, else in that of a set, as in PyTorch."""
    have, want = set(actual), set(expected)
    if have != want:
        raise Mismatch("The keys of the mappings do not match:\n"
                       f"Missing keys in the actual mapping: {sorted(want - have)}\n"
                       f"Additional keys in the actual mapping: {sorted(have - want)}", where)
    keys = list(have)
    with contextlib.suppress(Exception):
        keys.sort()
    return keys


def assert_close(actual: Any, expected: Any, *, allow_subclasses: bool = True, rtol: float | None = None,
                 atol: float | None = None, equal_nan: bool = False, check_device: bool = True,
                 check_dtype: bool = True, check_layout: bool = True, check_stride: bool = False,
                 msg: Message = None) -> None:
    """Fail unless `actual` and `expected` are close.

    |actual - expected| <= atol + rtol * |expected| for every element; what is infinite must be equal.
    See https://docs.pytorch.org/docs/stable/testing.html#torch.testing.assert_close

    Args:
        actual: a tensor; what `as_tensor` takes; a number, a boolean or None; a sequence or mapping of such.
        expected: likewise, of the same structure.
        allow_subclasses: compare also what is of different classes, if one is derived from the other.
        rtol: together with `atol`; default: as the looser of the two dtypes needs.
        atol: together with `rtol`.
        equal_nan: NaN is close to NaN.
        check_device: devices must be the same.
        check_dtype: dtypes must be the same; else the values are compared in a common one.
        check_layout: layouts must be the same.
        check_stride: strides must be the same.
        msg: the text of the error, or what makes it from the usual one.

    Raises:
        AssertionError: they are not close, or an attribute, a length or the keys differ.
        TypeError: they are of kinds that cannot be compared.
        ValueError: only one of `rtol` and `atol` is given.

    >>> import flambeau as torch
    >>> torch.testing.assert_close(torch.tensor([1., 2.]), torch.tensor([1., 2.000001]))
    >>> torch.testing.assert_close(torch.tensor([1., 2.]), torch.tensor([1., 2.5]))
    Traceback (most recent call last):
    AssertionError: Tensor-likes are not close!
    <BLANKLINE>
    Mismatched elements: 1 / 2 (50.0%)
    Greatest absolute difference: 0.5 at index (1,) (up to 1e-05 allowed)
    Greatest relative difference: 0.20000000298023224 at index (1,) (up to 1.3e-06 allowed)
    """
    __tracebackhide__ = True
    closeness = Closeness(allow_subclasses, rtol, atol, equal_nan, check_device, check_dtype, check_layout,
                          check_stride)
    failed = _first_mismatch(actual, expected, closeness, msg)
    if failed is not None:
        raise failed


def _first_mismatch(actual: Any, expected: Any, closeness: Closeness, msg: Message) -> Exception | None:
    """The error of the first pair that differs; all pairs must have been found before."""
    try:
        pairs = _pairs(actual, expected, (), closeness)
    except Mismatch as mismatch:
        return mismatch.error()
    for pair in pairs:
        try:
            pair.compare()
        except Mismatch as mismatch:
            return mismatch.error(msg)
        except Exception as error:
            raise RuntimeError(f"Comparing\n\n{pair.kind}(\n    id={pair.where},\n    actual={pair.actual},\n"
                               f"    expected={pair.expected},\n)\n\n"
                               "resulted in the unexpected exception above.") from error
    return None


def assert_allclose(actual: Any, expected: Any, rtol: float | None = None, atol: float | None = None,
                    equal_nan: bool = True, msg: str = "") -> None:
    """Deprecated: `assert_close` of tensors, or what makes them, whatever their dtypes, with wider tolerances.

    >>> import flambeau as torch
    >>> import warnings
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore")
    ...     torch.testing.assert_allclose([1.0, 2.0], [1.0, 2.00001])
    """
    __tracebackhide__ = True
    warnings.warn("`torch.testing.assert_allclose()` is deprecated since 1.12 and will be removed in a future release. "
                  "Please use `torch.testing.assert_close()` instead. You can find detailed upgrade instructions in "
                  "https://github.com/pytorch/pytorch/issues/61844.", FutureWarning, stacklevel=2)
    if not isinstance(actual, Tensor):
        actual = fn.tensor(actual)
    if not isinstance(expected, Tensor):
        expected = fn.tensor(expected, dtype=actual.dtype)
    if rtol is None and atol is None:
        rtol, atol = loosest(actual.dtype, expected.dtype, table=OLD_TOLERANCES)
    assert_close(actual, expected, rtol=rtol, atol=atol, equal_nan=equal_nan, check_dtype=False, msg=msg or None)


__all__ = ["assert_allclose", "assert_close"]
