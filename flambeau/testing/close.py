"""`assert_close`: compare two nested results up to tolerances."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from .._tensor import Tensor
from .._tensor import functions as fn
from .comparisons import PAIR_TYPES, Closeness, Comparison, Path
from .mismatch import Message, Mismatch, item_path
from .tolerances import ALLCLOSE_TOLERANCES, max_tolerances


class _Pair(NamedTuple):
    """Two values that are not containers, and their comparison."""

    kind: str
    actual: Any
    expected: Any
    path: Path
    compare: Comparison


def _pairs(actual: Any, expected: Any, path: Path, closeness: Closeness) -> list[_Pair]:
    """All pairs of values in two containers of the same structure.

    Raises:
        Mismatch: the structures differ, or two values have types that cannot be compared.
    """
    if _is_sequence(actual) and _is_sequence(expected):
        if len(actual) != len(expected):
            raise Mismatch(f"The length of the sequences mismatch: {len(actual)} != {len(expected)}", path)
        return [pair for i in range(len(actual))
                for pair in _pairs(actual[i], expected[i], (*path, i), closeness)]
    if isinstance(actual, Mapping) and isinstance(expected, Mapping):
        return [pair for key in _keys(actual, expected, path)
                for pair in _pairs(actual[key], expected[key], (*path, key), closeness)]
    for kind, make_comparison in PAIR_TYPES.items():
        try:
            compare = make_comparison(actual, expected, path, closeness)
        except Mismatch:
            raise
        except Exception as error:
            raise RuntimeError(f"Originating a {kind}() at item {item_path(path)} with\n\n"
                               f"{type(actual).__name__}(): {actual}\n\nand\n\n"
                               f"{type(expected).__name__}(): {expected}\n\n"
                               "resulted in the unexpected exception above.") from error
        if compare is not None:
            return [_Pair(kind, actual, expected, path, compare)]
    raise Mismatch(f"No comparison pair was able to handle inputs of type {type(actual)} and {type(expected)}.", path,
                   TypeError)


def _is_sequence(x: Any) -> bool:
    return isinstance(x, Sequence) and not isinstance(x, str)  # items of a str are str


def _keys(actual: Mapping[Any, Any], expected: Mapping[Any, Any], path: Path) -> list[Any]:
    """The common keys, sorted if they can be compared, else in the order of a set, as in PyTorch."""
    actual_keys, expected_keys = set(actual), set(expected)
    if actual_keys != expected_keys:
        raise Mismatch("The keys of the mappings do not match:\n"
                       f"Missing keys in the actual mapping: {sorted(expected_keys - actual_keys)}\n"
                       f"Additional keys in the actual mapping: {sorted(actual_keys - expected_keys)}", path)
    keys = list(actual_keys)
    with contextlib.suppress(Exception):
        keys.sort()
    return keys


def assert_close(actual: Any, expected: Any, *, allow_subclasses: bool = True, rtol: float | None = None,
                 atol: float | None = None, equal_nan: bool = False, check_device: bool = True,
                 check_dtype: bool = True, check_layout: bool = True, check_stride: bool = False,
                 msg: Message = None) -> None:
    """Raise unless `actual` and `expected` are close.

    Close: |actual - expected| <= atol + rtol * |expected| for each element; infinities must be equal.
    See https://docs.pytorch.org/docs/stable/testing.html#torch.testing.assert_close

    Args:
        actual: a tensor, an argument of `as_tensor`, a number, a boolean or None; or a sequence or mapping of these.
        expected: the same, with the same structure.
        allow_subclasses: allow different classes if one is a subclass of the other.
        rtol: relative tolerance; requires `atol`. Default: the larger one of the two dtypes.
        atol: absolute tolerance; requires `rtol`. Default: the larger one of the two dtypes.
        equal_nan: NaN equals NaN.
        check_device: devices must be the same.
        check_dtype: dtypes must be the same; if False, values are compared in the promoted dtype.
        check_layout: layouts must be the same.
        check_stride: strides must be the same.
        msg: the message of the error, or a function that maps the default message to it.

    Raises:
        AssertionError: they are not close, or an attribute, a length or the keys differ.
        TypeError: their types cannot be compared.
        ValueError: only one of `rtol` and `atol` is passed.

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
    error = _first_mismatch(actual, expected, closeness, msg)
    if error is not None:
        raise error


def _first_mismatch(actual: Any, expected: Any, closeness: Closeness, msg: Message) -> Exception | None:
    """The error of the first pair that differs. Structures are compared before any values."""
    try:
        pairs = _pairs(actual, expected, (), closeness)
    except Mismatch as mismatch:
        return mismatch.to_error()
    for pair in pairs:
        try:
            pair.compare()
        except Mismatch as mismatch:
            return mismatch.to_error(msg)
        except Exception as error:
            raise RuntimeError(f"Comparing\n\n{pair.kind}(\n    id={pair.path},\n    actual={pair.actual},\n"
                               f"    expected={pair.expected},\n)\n\n"
                               "resulted in the unexpected exception above.") from error
    return None


def assert_allclose(actual: Any, expected: Any, rtol: float | None = None, atol: float | None = None,
                    equal_nan: bool = True, msg: str = "") -> None:
    """Deprecated: `assert_close` of tensors or tensor data, without dtype check and with larger tolerances.

    Args:
        actual: a tensor, or data for one.
        expected: the same.
        rtol: relative tolerance; requires `atol`.
        atol: absolute tolerance; requires `rtol`.
        equal_nan: NaN equals NaN (default True).
        msg: the message of the error.

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
        rtol, atol = max_tolerances(actual.dtype, expected.dtype, table=ALLCLOSE_TOLERANCES)
    assert_close(actual, expected, rtol=rtol, atol=atol, equal_nan=equal_nan, check_dtype=False, msg=msg or None)


__all__ = ["assert_allclose", "assert_close"]
