"""One operator on both libraries: the same call made on each side's own copy of a sample, and a verdict.

A check (see checks.py and derivatives.py) is a generator of outcomes over an operator's samples; it
registers itself here under its name.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
from collections.abc import Callable, Iterator
from typing import Any

from . import compare, opdb
from .bridge import Crossing, Side, Unsupported
from .outcome import Attempt, Outcome, attempt, raised

CHECKS: dict[str, Callable[[Run], Iterator[Outcome]]] = {}


@dataclasses.dataclass
class Run:
    """One operator on both sides, and which of its samples to take."""

    op: Any
    want: Side
    have: Side
    limit: int = 8
    dtype: str | None = None
    only: int | None = None
    rich: bool = False
    made: dict[tuple[str, bool], list[Any]] = dataclasses.field(default_factory=dict)

    @functools.cached_property
    def name(self) -> str:
        return opdb.full_name(self.op)

    @property
    def usual(self) -> list[str]:
        """The one dtype most checks take: float32 where the operator takes it."""
        return opdb.dtype_names(self.op)[:1]

    def comparison(self) -> compare.Comparison:
        return compare.Comparison(
            self.op,
            self.want,
            self.have,
            values=self.op.name not in opdb.UNINITIALISED,
            scaled=not opdb.is_elementwise(self.op),
        )

    def dtypes(self, usual: list[str]) -> list[str]:
        return [self.dtype] if self.dtype else usual

    def samples(
        self, dtype: str, *, share: float = 1.0, requires_grad: bool = False
    ) -> Iterator[tuple[int, Any]]:
        """(index, sample) pairs: the requested one, or samples spaced evenly over PyTorch's list, up to the limit."""
        key = dtype, requires_grad
        if key not in self.made:
            self.made[key] = opdb.samples(self.op, dtype, requires_grad=requires_grad, rich=self.rich)
        made = self.made[key]
        if self.only is not None:
            yield from [(self.only, made[self.only])] if self.only < len(made) else []
        else:
            yield from opdb.spread(made, max(1, round(self.limit * share)))

    def outcome(
        self, check: str, dtype: str, sample: int | str, reason: str | None = "", detail: str = ""
    ) -> Outcome:
        return Outcome(self.name, check, dtype, sample, reason or "", detail)


def check(function: Callable[[Run], Iterator[Outcome]]) -> Callable[[Run], Iterator[Outcome]]:
    """Register a check under its function's name."""
    CHECKS[function.__name__] = function
    return function


# ---- one call, both sides


@dataclasses.dataclass(slots=True)
class Call:
    """One side's call on its own copy of a sample."""

    side: Side
    crossing: Crossing
    input: Any
    args: tuple
    kwargs: dict
    result: Attempt


def call(
    side: Side, function: Callable, sample: Any, within: Callable[[Side], Any] | None = None, **more: Any
) -> Call:
    """Copy the sample to the side, seed, call; `within` makes a context for the call."""
    crossing = Crossing(side)
    copied = attempt(
        lambda: (crossing(sample.input), crossing(tuple(sample.args)), crossing(dict(sample.kwargs)) | more)
    )
    if copied.error is not None:
        copied.trace = f"while copying the sample: {copied.trace}"
        return Call(side, crossing, None, (), more, copied)
    given, args, kwargs = copied.value
    side.seed()
    with within(side) if within is not None else contextlib.nullcontext():
        return Call(side, crossing, given, args, kwargs, attempt(lambda: function(given, *args, **kwargs)))


def both(
    run: Run, function: Any, sample: Any, path: str | None = None, within: Callable[[Side], Any] | None = None
) -> tuple[Call, Call]:
    """The same PyTorch function, or its counterpart, on each side."""
    if path is None:
        return tuple(call(side, side.callable(function), sample, within) for side in (run.want, run.have))
    return tuple(call(side, opdb.function_of(run.op, side), sample, within) for side in (run.want, run.have))


def verdict(run: Run, want: Attempt, have: Attempt, sample: Any = None) -> tuple[str | None, str]:
    """(reason, detail): how the candidate's result differs from the oracle's."""
    judged = attempt(lambda: _verdict(run, want, have, sample))
    if judged.error is not None:  # reading the candidate's result is part of its test
        return f"comparing {raised(judged.error)}", judged.trace
    return judged.value


def _verdict(run: Run, want: Attempt, have: Attempt, sample: Any) -> tuple[str | None, str]:
    if want.error is not None:
        if have.error is None:
            return f"no error, expected {raised(want.error)}", ""
        if not same_error(want.error, have.error):
            return f"{raised(have.error)}, expected {raised(want.error)}", have.trace
        return None, ""
    if have.error is not None:
        return raised(have.error), have.trace
    compared = run.comparison()
    if sample is not None and run.op.name in opdb.GAUGE:
        process = sample.output_process_fn_grad
        kept = [
            attempt(lambda s=s, r=r: s.callable(process)(r.value))
            for s, r in ((run.want, want), (run.have, have))
        ]
        if kept[0].error is None and kept[1].error is None:
            return compared.results(kept[0].value, kept[1].value), ""
    return compared.results(want.value, have.value), ""


def same_error(want: BaseException, have: BaseException) -> bool:
    """Whether a program that catches the oracle's error catches the candidate's."""
    if type(want).__name__ == type(have).__name__:
        return True
    return type(want).__module__ == "builtins" and isinstance(have, type(want))


def describe(sample: Any) -> str:
    summary = attempt(sample.summary)  # it fails for sparse tensors
    return (summary.value or repr(sample)).removeprefix("SampleInput")[:600]


def compare_samples(
    run: Run, name: str, dtypes: list[str], pair: Callable[[Any], tuple[Call, Call]], share: float = 1.0
) -> Iterator[tuple[Outcome, Call, Call]]:
    """The common loop: every sample of every dtype, called on both sides and judged."""
    for dtype in dtypes:
        for index, sample in run.samples(dtype, share=share):
            try:
                want, have = pair(sample)
            except Unsupported:
                continue
            try:
                reason, detail = verdict(run, want.result, have.result, sample)
            except Unsupported:
                continue
            yield run.outcome(name, dtype, index, reason, f"{describe(sample)}\n{detail}"), want, have
