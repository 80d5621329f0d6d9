"""Comparison of two runs of a program: the first statement that disagrees, and the difference."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import numpy as np

from .execution import Step

_NARROW = ("float32", "complex64", "float()", "torch.ones(", "torch.zeros(", "torch.tensor(", "'int", "'uint8", "'bool")
_NARROWEST = ("half()", "float16")

#: PyTorch's errors after which its programs are not compared
_NOT_ITSELF = ("INTERNAL ASSERT", "ZeroTensors are immutable",
               "the derivative for '_pdist_backward' is not implemented")
#: a product, not `cumprod`
_PRODUCT = re.compile(r"(?<!cum)prod\(")


@dataclass(frozen=True)
class Disagreement:
    """One statement that did not do the same."""

    index: int
    text: str
    what: str  # `x3.grad_fn`, `error`
    here: Any
    there: Any
    trace: str = ""
    sides: tuple[str, str] = ("flambeau", "PyTorch")

    @property
    def kind(self) -> str:
        """What disagrees, without the name of the tensor."""
        return self.what.rpartition(".")[2]

    def __str__(self) -> str:
        here, there = (f"{side}:".ljust(10) for side in self.sides)
        return (f"statement {self.index}: {self.text}\n  {self.what}\n    {here}{_short(self.here)}\n"
                f"    {there}{_short(self.there)}" + (f"\n{self.trace}" if self.trace else ""))


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) < 1500 else text[:1500] + " ..."


def compare(here: list[Step], there: list[Step]) -> Disagreement | None:
    """The first disagreement between flambeau's run and PyTorch's, or None."""
    tolerance, recorded = 1e-8, False
    for step in here:
        if any(word in step.text for word in _NARROWEST):
            tolerance = 3e-2
        elif tolerance < 1e-4 and any(word in step.text for word in _NARROW):
            tolerance = 3e-4
    for index, (mine, theirs) in enumerate(zip(here, there, strict=True)):
        if any(text in (theirs.error or "") for text in _NOT_ITSELF) or any(
                "INTERNAL ASSERT" in str(seen["grad_fn"]) for seen in theirs.seen.values()):
            return None  # from here on PyTorch is not itself
        recorded = recorded or "create_graph" in mine.text
        if recorded and "modified by an inplace" in (theirs.error or ""):
            return None  # PyTorch's nodes for derivatives save more, and other tensors
        for what in ("error", "noted", "warned", "seen"):
            found = differs(getattr(mine, what), getattr(theirs, what), what if what != "seen" else "", tolerance)
            if found is not None:
                if found[0].endswith("value") and _divided_by_others(here[:index], mine.text + found[0]):
                    return None
                trace = mine.trace if what == "error" and not theirs.error else ""
                return Disagreement(index, mine.text, *found, trace)
    return None


def _divided_by_others(steps: list[Step], where: str) -> bool:
    """Whether a value is a gradient of a product whose saved tensors were replaced behind the graph's back.

    PyTorch divides the saved result by the element; here the other elements are multiplied, which is exact.

    Args:
        steps: those before the one that differs.
        where: its text, and the path to the value.
    """
    if "backward" not in where and "grad" not in where:
        return False
    written = [index for index, step in enumerate(steps) if ".data." in step.text or ".detach()." in step.text]
    return bool(written) and any(_PRODUCT.search(step.text) for step in steps[:written[-1]])


def differs(mine: Any, theirs: Any, path: str, tolerance: float) -> tuple[str, Any, Any] | None:
    """Where two nested records differ first: the path to it, and both sides."""
    if path.endswith("grad_fn") and (_is_recorded(mine) or _is_recorded(theirs)):
        return None
    if isinstance(mine, np.ndarray) and isinstance(theirs, np.ndarray):
        return None if close(mine, theirs, tolerance) else (path, mine, theirs)
    if isinstance(mine, dict) and isinstance(theirs, dict) and mine.keys() == theirs.keys():
        for key in mine:
            found = differs(mine[key], theirs[key], f"{path}.{key}" if path else str(key), tolerance)
            if found is not None:
                return found
        return None
    if isinstance(mine, list) and isinstance(theirs, list) and len(mine) == len(theirs) and any(
            isinstance(v, (list, dict, np.ndarray)) for v in mine):
        for i, (a, b) in enumerate(zip(mine, theirs, strict=True)):
            found = differs(a, b, f"{path}[{i}]", tolerance)
            if found is not None:
                return found
        return None
    if type(mine) is not type(theirs) or isinstance(mine, dict):
        return path, mine, theirs
    return None if mine == theirs else (path, mine, theirs)


def _is_recorded(graph: Any) -> bool:
    """Whether part of a graph was made by running backward: of that, more than the values is not compared."""
    return isinstance(graph, list) and "recorded" in graph


def close(a: np.ndarray, b: np.ndarray, tolerance: float) -> bool:
    """Whether two arrays have one shape and dtype, the same infinities and NaNs, and values close for their size."""
    if a.shape != b.shape or a.dtype != b.dtype:
        return False
    if a.dtype.kind not in "fc":
        return bool((a == b).all())
    finite = np.isfinite(a)
    if not np.array_equal(finite, np.isfinite(b)) or not np.array_equal(a[~finite], b[~finite], equal_nan=True):
        return False
    if not finite.any():
        return True
    a, b = a[finite], b[finite]
    return bool(np.abs(a - b).max() <= tolerance * max(1.0, float(np.abs(b).max())))
