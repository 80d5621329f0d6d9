"""The base class of tests: what unittest's has, and equality of tensors, warnings, golden strings."""

from __future__ import annotations

import contextlib
import random
import re
import unittest
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch

from ..placeholder import Internal
from .comparison import Comparison, Differs, message
from .installed import METHODS, take


class TestCase(unittest.TestCase):
    """Each test begins with the same random numbers."""

    maxDiff = None
    _default_dtype_check_enabled = False
    precision: float = 0
    rel_tol: float = 0
    device_type = "cpu"

    def setUp(self) -> None:
        torch.manual_seed(1234)
        random.seed(1234)
        np.random.seed(1234)

    def assertEqual(self, x: Any, y: Any, msg: str | Callable[[str], str] | None = None, *,
                    atol: float | None = None, rtol: float | None = None, equal_nan: bool = True,
                    exact_dtype: bool = True, **_exactness: bool) -> None:
        try:
            Comparison(atol, rtol, equal_nan, exact_dtype).check(x, y)
        except Differs as error:
            raise self.failureException(message(str(error), msg)) from None

    def assertNotEqual(self, x: Any, y: Any, msg: str | None = None, **kwargs: Any) -> None:
        with self.assertRaises(AssertionError, msg=msg):
            self.assertEqual(x, y, msg, **kwargs)

    def assertEqualIgnoreType(self, *args: Any, **kwargs: Any) -> None:
        self.assertEqual(*args, exact_dtype=False, **kwargs)

    def assertEqualBroadcasting(self, x: Any, y: Any, *args: Any, **kwargs: Any) -> None:
        self.assertEqual(x, torch.as_tensor(y, dtype=x.dtype).expand_as(x), *args, **kwargs)

    def assertObjectIn(self, item: Any, container: Any) -> None:
        self.assertTrue(any(item is other for other in container), "the object itself is not in the container")

    def assertExpectedInline(self, actual: Any, expect: str, skip: int = 0) -> None:
        self.assertMultiLineEqual(expect, actual if isinstance(actual, str) else str(actual))

    def assertExpectedRaisesInline(self, kind: type[BaseException], function: Callable[..., Any], expect: str,
                                   *args: Any, **kwargs: Any) -> None:
        with self.assertRaises(kind) as caught:
            function(*args, **kwargs)
        self.assertExpectedInline(str(caught.exception), expect)

    def assertExpected(self, text: str, subname: str | None = None) -> None:
        raise Internal("compares with a stored file of PyTorch's repository")

    @contextlib.contextmanager
    def assertWarnsOnceRegex(self, category: type[Warning], regex: str = "") -> Iterator[None]:
        with warnings.catch_warnings(record=True) as caught, set_warn_always_context(True):
            warnings.simplefilter("always")
            yield
        if len(caught) != 1:
            self.fail(f"{len(caught)} warnings instead of one: {[str(w.message) for w in caught]}")
        self.assertTrue(issubclass(caught[0].category, category) and re.search(regex, str(caught[0].message)),
                        f"{caught[0].message} does not match {regex}")

    @contextlib.contextmanager
    def _no_warning(self, msg: str) -> Iterator[None]:
        with warnings.catch_warnings(record=True) as caught, set_warn_always_context(True):
            warnings.simplefilter("always")
            yield
        self.assertTrue(not caught, f"{msg} {[str(w.message) for w in caught]}")

    def assertNotWarn(self, function: Callable[..., Any], msg: str = "") -> None:
        with self._no_warning(msg):
            function()

    assertLeaksNoCudaTensors = contextlib.nullcontext

    def __getattr__(self, name: str) -> Any:
        if name not in METHODS:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        setattr(TestCase, name, take(name, "TestCase"))
        return getattr(self, name)


@contextlib.contextmanager
def set_warn_always_context(value: bool) -> Iterator[None]:
    """Warnings that are given once in a process, given each time."""
    if not hasattr(torch, "set_warn_always"):
        yield
        return
    before = torch.is_warn_always_enabled()
    torch.set_warn_always(value)
    try:
        yield
    finally:
        torch.set_warn_always(before)
