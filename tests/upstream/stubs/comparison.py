"""Equality up to rounding, of tensors, arrays, numbers and containers of them."""

from __future__ import annotations

import cmath
import numbers
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import torch

from ..placeholder import Internal

#: relative and absolute tolerance by dtype; whole numbers must agree
_TOLERANCES = {"float16": (1e-3, 1e-5), "bfloat16": (1.6e-2, 1e-5), "float32": (1.3e-6, 1e-5),
               "float64": (1e-7, 1e-7), "complex32": (1e-3, 1e-5), "complex64": (1.3e-6, 1e-5),
               "complex128": (1e-7, 1e-7)}


class Differs(AssertionError):
    """Two values are not equal; the text says where."""


class Comparison:
    """What two values may differ in."""

    def __init__(self, atol: float | None, rtol: float | None, equal_nan: bool, exact_dtype: bool) -> None:
        if (atol is None) != (rtol is None):
            raise ValueError("atol and rtol are given together, or not at all")
        self.given = None if atol is None or rtol is None else (rtol, atol)
        self.equal_nan, self.exact_dtype = equal_nan, exact_dtype

    def check(self, x: Any, y: Any, where: str = "") -> None:
        """Raise Differs if x and y are not equal."""
        if isinstance(x, torch.Tensor) or isinstance(y, torch.Tensor):
            self._tensors(x, y, where)
        elif isinstance(x, np.ndarray) or isinstance(y, np.ndarray):
            self._arrays(np.asarray(x), np.asarray(y), where)
        elif isinstance(x, str) or isinstance(y, str):
            self._same(x, y, where)
        elif isinstance(x, Mapping) and isinstance(y, Mapping):
            self._same(set(x), set(y), f"{where} keys")
            for key in x:
                self.check(x[key], y[key], f"{where}[{key!r}]")
        elif isinstance(x, Sequence) and isinstance(y, Sequence):
            self._same(len(x), len(y), f"{where} length")
            for i, (a, b) in enumerate(zip(x, y, strict=True)):
                self.check(a, b, f"{where}[{i}]")
        elif isinstance(x, numbers.Number) and isinstance(y, numbers.Number) and not isinstance(x, bool):
            self._numbers(x, y, where)
        else:
            self._same(x, y, where)

    @staticmethod
    def _same(x: Any, y: Any, where: str) -> None:
        if not (x is y or bool(x == y)):
            raise Differs(f"{where.strip()}: {x!r} is not {y!r}".lstrip(": "))

    def _numbers(self, x: Any, y: Any, where: str) -> None:
        whole = isinstance(x, numbers.Integral) and isinstance(y, numbers.Integral)
        rtol, atol = self.given or ((0.0, 0.0) if whole else (1e-7, 1e-7))
        if x == y or (self.equal_nan and cmath.isnan(x) and cmath.isnan(y)) or abs(x - y) <= atol + rtol * abs(y):
            return
        raise Differs(f"{where.strip()}: {x} is not {y}, to {rtol} and {atol}".lstrip(": "))

    def _tensors(self, x: Any, y: Any, where: str) -> None:
        if isinstance(x, numbers.Number) or isinstance(y, numbers.Number):
            tensor, other = (x, y) if isinstance(x, torch.Tensor) else (y, x)
            if tensor.numel() != 1:
                raise Differs(f"{where}: tensor of shape {tuple(tensor.shape)} beside the number {other}")
            self._numbers(tensor.item(), other, where)
            return
        if isinstance(x, (Sequence, np.ndarray)):
            x = torch.as_tensor(x, dtype=y.dtype)
        elif isinstance(y, (Sequence, np.ndarray)):
            y = torch.as_tensor(y, dtype=x.dtype)
        if not (isinstance(x, torch.Tensor) and isinstance(y, torch.Tensor)):
            raise Differs(f"{where.strip()}: {x!r} is not {y!r}".lstrip(": "))
        if self.exact_dtype and x.dtype != y.dtype:
            raise Differs(f"{where.strip()}: dtypes {x.dtype} and {y.dtype}".lstrip(": "))
        rtol, atol = self.given or self._looser(x.dtype, y.dtype)
        self._arrays(_array(x), _array(y), where, rtol, atol)

    @staticmethod
    def _looser(a: Any, b: Any) -> tuple[float, float]:
        one, other = (_TOLERANCES.get(str(d).rpartition(".")[2], (0.0, 0.0)) for d in (a, b))
        return max(one[0], other[0]), max(one[1], other[1])

    def _arrays(self, x: Any, y: Any, where: str, rtol: float = 1e-7, atol: float = 1e-7) -> None:
        where = where.strip()
        if x.shape != y.shape:
            raise Differs(f"{where}: shapes {x.shape} and {y.shape}".lstrip(": "))
        if x.dtype.kind in "biu" and y.dtype.kind in "biu":
            near = x == y
        elif x.dtype.kind in "OSU":
            near = np.asarray(x == y)
        else:
            with np.errstate(all="ignore"):
                near = np.isclose(x, y, rtol=rtol, atol=atol, equal_nan=self.equal_nan)
        if not near.all():
            at = tuple(int(i) for i in np.argwhere(~near)[0]) if near.ndim else ()
            raise Differs(f"{where}: {int((~near).sum())} of {near.size} values differ, at {at} "
                          f"{x[at]} and {y[at]}, to {rtol} and {atol}".lstrip(": "))


def _array(tensor: Any) -> np.ndarray:
    with torch.no_grad():
        tensor = tensor.detach()
        if tensor.layout != torch.strided:
            tensor = tensor.to_dense()
        if tensor.dtype == torch.bfloat16:
            tensor = tensor.to(torch.float32)
        if tensor.device.type == "meta":
            return np.zeros(tensor.shape)  # there are no values to compare
        if type(tensor) is not torch.Tensor:
            raise Internal(f"compares values of {type(tensor).__name__}")
        return tensor.resolve_conj().resolve_neg().numpy()


def message(found: str, msg: str | Callable[[str], str] | None) -> str:
    """The text of a failure, with the test's own words."""
    return found if msg is None else msg(found) if callable(msg) else f"{found}\n{msg}"
