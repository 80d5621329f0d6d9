"""Single operators on a GPU: the total and the host's time of a call, beside PyTorch's."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from .. import markdown
from ..operator_list import OPERATORS, Inputs
from ..operators import BOTH, FORWARD, MODES
from ..peers import EAGER
from .cases import Libraries, OnDevice, Running

PYTORCH = "PyTorch eager"
SIZES = ((64, 64), (2048, 1024))
NAMES = (
    "x + y", "x - 1", "x * row", "x * column", "x / y", "neg", "x ** 2", "sqrt", "exp", "log", "sin", "erf",
    "maximum", "clamp", "addcmul", "x > 0", "integers + 1", "where", "masked_fill", "add_", "a longer formula",
    "relu", "gelu", "silu", "tanh", "sigmoid", "softmax(0)", "softmax(1)", "log_softmax(1)", "dropout", "sum",
    "sum(0)", "sum(1)", "mean", "max", "max(1)", "argmax(1)", "any", "var(1)", "norm", "logsumexp(1)", "cumsum(1)",
    "sort", "topk(3)", "clone", "transposed copy", "float16", "cat", "F.pad", "flip", "view(-1)", "rows by index",
    "elements by mask", "gather", "scatter_add", "F.embedding", "F.linear", "layer_norm", "addmm", "conv2d")

Case = tuple[str, int, int, str]  # operator, rows, columns, mode


def make(libraries: Libraries) -> Callable[[Case], Running]:
    """What makes an operator's calls."""
    torch = OnDevice(libraries.library, libraries.device)

    def of(case: Case) -> Running:
        name, rows, columns, mode = case
        operator, inputs = OPERATORS[name], Inputs(torch, (8, 8) if libraries.fake else (rows, columns), mode == BOTH)
        library = libraries.library
        library.manual_seed(0)
        with library.set_grad_enabled(mode == BOTH), library.device(libraries.device):
            result = operator(library, inputs)
        if mode == FORWARD:
            def run() -> Any:
                with library.no_grad():
                    return operator(library, inputs)
        else:
            if not (isinstance(result, library.Tensor) and result.requires_grad):
                raise NotDifferentiable
            gradient = torch.from_numpy(np.random.default_rng(0).standard_normal(tuple(result.shape))).to(result.dtype)
            leaves = inputs.leaves

            def run() -> Any:
                for leaf in leaves:
                    leaf.grad = None
                operator(library, inputs).backward(gradient)
                return leaves[0].grad

        def observed(result: Any) -> float | None:
            if not isinstance(result, library.Tensor) or name == "dropout":
                return None
            return float(np.linalg.norm(np.asarray(result.detach().double().cpu().numpy())))

        return Running(run, libraries.wait, libraries.memory, observed)

    return of


class NotDifferentiable(ValueError):
    """There is nothing to differentiate."""


def plan(names: Iterable[str], columns: Iterable[str]) -> dict[str, list[Case]]:
    """The cases of each column."""
    chosen = list(names) or list(NAMES)
    return {column: [(name, *size, mode) for name in chosen for size in SIZES for mode in MODES] for column in columns}


def title(case: Case) -> str:
    """A case in words."""
    name, rows, columns, mode = case
    return f"{name}, {rows} x {columns}, {mode}"


class Results:
    """What a session has recorded of operators.

    Attributes:
        times: (column, case) -> (seconds, of them the host's) by round.
    """

    def __init__(self, records: Iterable[dict[str, Any]]) -> None:
        self.device = ""
        self.times: dict[tuple[str, Case], dict[int, tuple[float, float]]] = {}
        self.made: dict[tuple[str, Case], dict[str, Any]] = {}
        self.failed: dict[tuple[str, Case], str] = {}
        for each in records:
            if "case" not in each:
                self.device = each.get("device") or self.device
                continue
            key = each["column"], tuple(each["case"])
            if "failed" in each:
                self.failed[key] = each["failed"]
            elif "round" in each:
                self.times.setdefault(key, {})[each["round"]] = each["seconds"], each["host"]
            else:
                self.made[key] = each
                self.failed.pop(key, None)

    def ratio(self, case: Case, part: int) -> float | None:
        """PyTorch's time over ours: the median of the rounds; `part` 1 compares the host's times."""
        theirs, ours = self.times.get((PYTORCH, case), {}), self.times.get((EAGER, case), {})
        found = [theirs[number][part] / ours[number][part] for number in theirs if number in ours]
        return statistics.median(found) if found else None

    def text(self) -> str:
        """The table as Markdown: for each size and mode PyTorch's time over ours, and both times."""
        columns = [(*size, mode) for size in SIZES for mode in MODES]
        names = list(dict.fromkeys(case[0] for _, case in self.times))

        def cell(case: Case) -> str:
            ratio = self.ratio(case, 0)
            if ratio is None:
                return "-"
            ours, theirs = (statistics.median(each[0] for each in self.times[column, case].values())
                            for column in (EAGER, PYTORCH))
            shown = f"{ratio:.2f}" if ratio >= 0.995 else f"**{ratio:.2f}**"
            return f"{shown} ({markdown.duration(theirs)} / {markdown.duration(ours)})"

        lines = [[name, *(cell((name, *column)) for column in columns)] for name in names]
        for summary, part in (("median", 0), ("median of the host's time", 1)):
            each = [[ratio for name in names if (ratio := self.ratio((name, *column), part)) is not None]
                    for column in columns]
            lines.append([summary, *(f"{statistics.median(values):.2f}" if values else "-" for values in each)])
        heads = ["", *(f"{high} x {wide}" + ", with backward" * (mode == BOTH) for high, wide, mode in columns)]
        about = ("PyTorch's time over flambeau's, both eager, and both times. A time is the mean of calls that end "
                 "when the device is done; the median of the rounds, in which one library measures at a time.")
        notes = [f"- {title(case)}, {column}: {why}" for (column, case), why in self.failed.items()
                 if not why.startswith(NotDifferentiable.__name__)]
        for (column, case), found in self.made.items():
            expected = self.made.get((PYTORCH, case), {}).get("observed")
            if expected is not None and found.get("observed") is not None and not np.isclose(
                    found["observed"], expected, rtol=1e-3, atol=1e-4, equal_nan=True):
                notes.append(f"- {title(case)}, {column}: {found['observed']:.6g}, not {expected:.6g}")
        parts = [about, markdown.table(heads, lines), *(["Failures:\n\n" + "\n".join(notes)] if notes else [])]
        return "\n\n".join(([f"{self.device}."] if self.device else []) + parts)


__all__ = ["NAMES", "NotDifferentiable", "Results", "make", "plan"]
