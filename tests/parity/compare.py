"""Two results, one from each library: the first difference between them, in one line, or None."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np

from .bridge import Side, dtype_name

# dtype: (relative, absolute); what is not listed is compared exactly.
TOLERANCE = {
    "float16": (2e-3, 1e-5),
    "bfloat16": (1.6e-2, 1e-5),
    "float32": (1e-5, 1e-6),
    "float64": (1e-9, 1e-11),
    "complex32": (2e-3, 1e-5),
    "complex64": (1e-5, 1e-6),
    "complex128": (1e-9, 1e-11),
}
EPSILON = {"float16": 1e-3, "bfloat16": 8e-3, "float32": 1.2e-7, "float64": 2.3e-16}
EPSILON |= {"complex32": 1e-3, "complex64": 1.2e-7, "complex128": 2.3e-16}

# operator: the relative tolerance in float32.
ILL_CONDITIONED = {
    # a softmax of scores in the thousands: the rounding of a score, 2^-12, is the relative error of its exponential
    "nn.functional.multi_head_attention_forward": 2e-4,
}


def tolerance_of(op: Any, dtype: str) -> tuple[float, float]:
    """The dtype's tolerance, widened where PyTorch's own table widens it for the operator."""
    relative, absolute = TOLERANCE.get(dtype, (0.0, 0.0))
    for info in op.decorators:
        for decorator in getattr(info, "decorators", ()):
            for key, tol in getattr(decorator, "d", {}).items():
                if dtype_name(key) == dtype and hasattr(tol, "rtol") and info.device_type in (None, "cpu"):
                    relative, absolute = max(relative, tol.rtol), max(absolute, tol.atol)
    if dtype == "float32":
        relative = max(relative, ILL_CONDITIONED.get(op.name, 0.0))
    return relative, absolute


class Comparison:
    """How strictly to compare; one per operator and check."""

    def __init__(self, op: Any, want: Side, have: Side, *, values: bool = True, scaled: bool = True):
        self.op, self.want, self.have = op, want, have
        self.values = values
        self.scaled = scaled  # rounding errors of sums grow with the largest entry

    def tensors(self, want: Any, have: Any) -> str | None:
        """First difference of two tensors: kind, dtype, shape, values."""
        if not self.have.is_tensor(have):
            return f"type {type(have).__name__}, expected Tensor"
        dtype, other = dtype_name(want.dtype), dtype_name(have.dtype)
        if dtype != other:
            return f"dtype {other}, expected {dtype}"
        if tuple(want.shape) != tuple(have.shape):
            return f"shape {tuple(have.shape)}, expected {tuple(want.shape)}"
        return self.arrays(self.want.numpy(want), self.have.numpy(have), dtype) if self.values else None

    def arrays(self, want: np.ndarray, have: np.ndarray, dtype: str) -> str | None:
        """First difference of two arrays of one shape."""
        if want.dtype != have.dtype:
            return f"array dtype {have.dtype}, expected {want.dtype}"
        if want.size == 0:
            return None
        if want.dtype.kind not in "fc":
            wrong = want != have
        else:
            relative, absolute = tolerance_of(self.op, dtype)
            with np.errstate(all="ignore"):
                finite = np.isfinite(want)
                if self.scaled and finite.any():
                    absolute = max(absolute, 8 * EPSILON.get(dtype, 0.0) * float(np.abs(want[finite]).max()))
                close = np.abs(want - have) <= absolute + relative * np.abs(want)
                if want.dtype.kind == "c":
                    same = _alike(want.real, have.real) & _alike(want.imag, have.imag)
                else:
                    same = _alike(want, have)
            wrong = ~np.where(finite, close, same)
        if not wrong.any():
            return None
        where = tuple(int(i) for i in np.argwhere(wrong)[0])
        share = f"{int(wrong.sum())}/{wrong.size}"
        return f"values differ ({share}), at {where}: {have[where]}, expected {want[where]}"

    def results(self, want: Any, have: Any, path: str = "") -> str | None:
        """First difference of two nested results."""
        at = f"output{path}: " if path else ""
        if self.want.is_tensor(want):
            reason = self.tensors(want, have)
        elif isinstance(want, (tuple, list)):
            return self._sequences(want, have, path, at)
        elif isinstance(want, dict):
            if not isinstance(have, dict) or list(want) != list(have):
                return f"{at}{type(have).__name__}, expected dict of {list(want)}"
            pairs = (self.results(want[k], have[k], f"{path}[{k!r}]") for k in want)
            return next((r for r in pairs if r), None)
        elif isinstance(want, bool) or want is None or isinstance(want, str):
            reason = None if type(have) is type(want) and have == want else f"{have!r}, expected {want!r}"
        elif isinstance(want, (int, float, complex)):
            reason = self._numbers(want, have)
        else:
            reason = None if str(want) == str(have) else f"{have}, expected {want}"
        return at + reason if reason else None

    def _sequences(self, want: Any, have: Any, path: str, at: str) -> str | None:
        if not isinstance(have, (tuple, list)):
            return f"{at}type {type(have).__name__}, expected {type(want).__name__}"
        if isinstance(want, tuple) != isinstance(have, tuple):
            return f"{at}type {type(have).__name__}, expected {type(want).__name__}"
        if len(want) != len(have):
            return f"{at}{len(have)} items, expected {len(want)}"
        if (names := _fields(want)) != (others := _fields(have)):
            return f"{at}fields {others}, expected {names}"
        labels = [f".{n}" for n in names] if names else [f"[{i}]" for i in range(len(want))]
        pairs = (self.results(w, h, path + p) for w, h, p in zip(want, have, labels, strict=True))
        return next((r for r in pairs if r), None)

    def _numbers(self, want: Any, have: Any) -> str | None:
        if type(want) is not type(have):
            return f"type {type(have).__name__}, expected {type(want).__name__}"
        if want == have or (want != want and have != have):
            return None
        if isinstance(want, (float, complex)) and abs(want - have) <= 1e-5 * abs(want) + 1e-6:
            return None
        return f"{have!r}, expected {want!r}"


def _alike(want: np.ndarray, have: np.ndarray) -> np.ndarray:
    return (want == have) | (np.isnan(want) & np.isnan(have))


def _fields(value: Any) -> tuple[str, ...]:
    """The names of a named tuple's items; () for a plain sequence or a shape."""
    if not isinstance(value, tuple) or type(value) is tuple:
        return ()
    names = getattr(value, "_fields", None) or getattr(value, "__match_args__", ())
    return tuple(names)


def strides(want: Any, have: Any) -> str | None:
    """Difference of two tensors' layouts; strides of axes of length one and of empty tensors do not count."""
    if 0 in tuple(want.shape):
        return None
    axes = [i for i, n in enumerate(tuple(want.shape)) if n > 1]
    expected, found = ([t.stride()[i] for i in axes] for t in (want, have))
    if expected != found:
        return f"stride {tuple(have.stride())}, expected {tuple(want.stride())} of shape {tuple(want.shape)}"
    if want.is_contiguous() != have.is_contiguous():
        return f"is_contiguous() is {have.is_contiguous()}"
    return None


def sharing(side: Side, outputs: list[Any], inputs: list[Any]) -> list[str]:
    """Which outputs are, or share memory with, which inputs."""
    seen = []
    for (i, out), (j, given) in itertools.product(enumerate(outputs), enumerate(inputs)):
        if out is given:
            seen.append(f"output {i} is input {j}")
        elif math.prod(out.shape) and math.prod(given.shape) and _overlap(side, out, given):
            seen.append(f"output {i} shares memory with input {j}")
    return seen


def _overlap(side: Side, a: Any, b: Any) -> bool:
    one, other = side.numpy(a), side.numpy(b)
    try:
        return np.shares_memory(one, other, max_work=100_000)
    except np.exceptions.TooHardError:
        return np.may_share_memory(one, other)
