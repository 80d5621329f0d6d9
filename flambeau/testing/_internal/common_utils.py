"""`torch.testing._internal.common_utils`: a test case that compares tensors."""

from __future__ import annotations

import unittest
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ..._tensor import Tensor, functions
from ..close import assert_close
from ..tolerances import max_tolerances


class TestCase(unittest.TestCase):
    """A test case whose `assertEqual` compares tensors, numbers, and containers of them within tolerances.

    >>> import flambeau as torch
    >>> from flambeau.testing._internal.common_utils import TestCase
    >>> TestCase().assertEqual({"a": [torch.ones(2)]}, {"a": [torch.ones(2) + 1e-7]})
    """

    __test__ = False  # not a test of the module that imports it

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        cls.__test__ = True

    def assertEqual(
            self, x: Any, y: Any, msg: str | Callable[[str], str] | None = None, *, atol: float | None = None,
            rtol: float | None = None, equal_nan: bool = True, exact_dtype: bool = True, exact_device: bool = False,
            exact_layout: bool = False, exact_stride: bool = False, exact_is_coalesced: bool = False) -> None:
        """Compare two values.

        Args:
            x, y: tensors, numbers, strings, other objects; sequences and mappings of them. A number equals a tensor
                of one element.
            msg: the message of the error, or a function of the message.
            atol, rtol: the tolerances of floating-point numbers; defaults by dtype.
            equal_nan: whether NaN equals NaN.
            exact_dtype, exact_device, exact_layout, exact_stride: whether these attributes of tensors have to agree.
            exact_is_coalesced: unused.

        Raises:
            AssertionError: the values differ.
        """
        options = {"atol": atol, "rtol": rtol, "equal_nan": equal_nan, "exact_dtype": exact_dtype,
                   "exact_device": exact_device, "exact_layout": exact_layout, "exact_stride": exact_stride}
        if isinstance(x, Mapping) and isinstance(y, Mapping):
            super().assertEqual(x.keys(), y.keys())  # noqa: PT009
            for key in x:
                self.assertEqual(x[key], y[key], msg, **options)  # type: ignore[arg-type]  # noqa: PT009
        elif _is_sequence(x) and _is_sequence(y):
            super().assertEqual(len(x), len(y))  # noqa: PT009
            for a, b in zip(x, y, strict=True):
                self.assertEqual(a, b, msg, **options)  # type: ignore[arg-type]  # noqa: PT009
        elif _is_numeric(x) and _is_numeric(y):
            if isinstance(x, Tensor) != isinstance(y, Tensor):  # a number takes the form of the tensor
                x, y = (each if isinstance(each, Tensor) else functions.full_like(other, each)
                        for each, other in ((x, y), (y, x)))
            elif not isinstance(x, Tensor) and rtol is atol is None:  # numbers compare as tensors of them do
                rtol, atol = max_tolerances(*(functions.tensor(each).dtype for each in (x, y)))
            assert_close(x, y, rtol=rtol, atol=atol, equal_nan=equal_nan, check_dtype=exact_dtype,
                         check_device=exact_device, check_layout=exact_layout, check_stride=exact_stride, msg=msg)
        else:
            super().assertEqual(x, y, msg if isinstance(msg, str) else None)  # noqa: PT009


def _is_sequence(value: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, (str, bytes))


def _is_numeric(value: Any) -> bool:
    return isinstance(value, (Tensor, bool, int, float, complex))


__all__ = ["TestCase"]
