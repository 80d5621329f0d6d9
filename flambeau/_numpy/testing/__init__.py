"""`torch._numpy.testing`: NumPy's assertions, of arrays on tensors."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy.testing as npt

import flambeau as torch

from .._ndarray import ndarray

HAS_REFCOUNT = npt.HAS_REFCOUNT
IS_WASM = npt.IS_WASM
suppress_warnings = npt.suppress_warnings
assert_ = npt.assert_
assert_raises_regex = npt.assert_raises_regex
assert_warns = npt.assert_warns


def _plain(x: Any) -> Any:
    """Values with NumPy's arrays in place of those on tensors."""
    if isinstance(x, ndarray):
        x = x.tensor
    if isinstance(x, torch.Tensor):
        return x.detach().resolve_conj().numpy()
    if type(x) in (list, tuple):
        return type(x)(map(_plain, x))
    return {key: _plain(value) for key, value in x.items()} if type(x) is dict else x


def _of_arrays(assertion: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(assertion)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        __tracebackhide__ = True
        return assertion(*map(_plain, args), **{key: _plain(value) for key, value in kwargs.items()})

    return wrapped



def assert_allclose(actual: Any, desired: Any, rtol: float = 1e-7, atol: float = 0, equal_nan: bool = True,
                    err_msg: str = "", verbose: bool = True, check_dtype: bool = False) -> None:
    """Raise unless all elements are equal up to tolerances, and with `check_dtype` the dtypes, too.

    >>> import flambeau._numpy as np
    >>> assert_allclose(np.array([1.0, 2.0]), [1.0, 2.0])
    """
    __tracebackhide__ = True
    a, b = _plain(actual), _plain(desired)
    if check_dtype and a.dtype != b.dtype:
        raise AssertionError(f"dtype mismatch: {a.dtype} != {b.dtype}")
    npt.assert_allclose(a, b, rtol=rtol, atol=atol, equal_nan=equal_nan, err_msg=err_msg, verbose=verbose)


assert_almost_equal = _of_arrays(npt.assert_almost_equal)
assert_approx_equal = _of_arrays(npt.assert_approx_equal)
assert_array_almost_equal = _of_arrays(npt.assert_array_almost_equal)
assert_array_equal = _of_arrays(npt.assert_array_equal)
assert_array_less = _of_arrays(npt.assert_array_less)
assert_equal = _of_arrays(npt.assert_equal)
assert_string_equal = npt.assert_string_equal

__all__ = ["HAS_REFCOUNT", "IS_WASM", "assert_", "assert_allclose", "assert_almost_equal", "assert_approx_equal",
           "assert_array_almost_equal", "assert_array_equal", "assert_array_less", "assert_equal",
           "assert_raises_regex", "assert_string_equal", "assert_warns", "suppress_warnings"]
