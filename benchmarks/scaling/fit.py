"""The model's numbers, fitted to measurements by least squares of relative errors."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from .model import Link, SharedMachine

HELD_OUT = 8  # processes; what is predicted, not fitted


def _positive(columns: list[list[float]], times: list[float]) -> list[float]:
    """Coefficients, none negative, for which columns times coefficients is closest to the times, relative to them."""
    a = np.array(columns).T / np.array(times)[:, None]
    kept = list(range(a.shape[1]))
    while kept:
        found, *_ = np.linalg.lstsq(a[:, kept], np.ones(len(times)), rcond=None)
        if (found >= 0).all():
            break
        kept.pop(int(found.argmin()))
    result = [0.0] * a.shape[1]
    for i, value in zip(kept, found if kept else [], strict=True):
        result[i] = float(value)
    return result


def fit_link(messages: Mapping[int, float]) -> Link:
    """What a message costs.

    Args:
        messages: bytes -> seconds.
    """
    alpha, beta = _positive([[1.0] * len(messages), [float(size) for size in messages]], list(messages.values()))
    return Link(alpha, beta)


def _error(machine: SharedMachine, measured: Mapping[str, Any], held_out: int | None) -> float:
    errors = [machine.compute(n) / each["compute"] - 1 for n, each in measured["steps"].items() if n != held_out]
    errors += [machine.all_reduce(n, size) / time - 1 for n, each in measured["reductions"].items() if n != held_out
               for size, time in each.items()]
    return float(np.mean(np.square(errors)))


def fit_machine(measured: Mapping[str, Any], held_out: int | None = HELD_OUT) -> SharedMachine:
    """The machine that explains steps and reductions best.

    Args:
        measured: what `measure` returns.
        held_out: a number of processes whose measurements are not used.
    """
    best: tuple[float, SharedMachine] | None = None
    for cores in np.arange(0.5, float(measured["cores"]) + 0.01, 0.05):
        turns = {n: max(1.0, n / cores) for n in measured["steps"]}
        used = [n for n in measured["steps"] if n != held_out]
        (work,) = _positive([[turns[n] for n in used]], [measured["steps"][n]["compute"] for n in used])
        rows = [(n, size, time) for n, each in measured["reductions"].items() if n != held_out
                for size, time in each.items()]
        alpha, beta = _positive([[turns[n] * (n - 1) for n, _, _ in rows],
                                 [turns[n] * (n - 1) / n * size for n, size, _ in rows]], [time for *_, time in rows])
        machine = SharedMachine(float(cores), work, alpha, beta)
        error = _error(machine, measured, held_out)
        if best is None or error < best[0]:
            best = error, machine
    assert best is not None
    return best[1]


__all__ = ["HELD_OUT", "fit_link", "fit_machine"]
