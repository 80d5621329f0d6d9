"""L-BFGS: quasi-Newton steps, the two-loop recursion and a strong Wolfe line search."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from .._tensor import Tensor, enable_grad, no_grad
from .._tensor import functions as fn
from .optimizer import Optimizer, check_lr
from .update_rules import scalar_value

__all__ = ["LBFGS"]


class LBFGS(Optimizer):
    """L-BFGS: quasi-Newton steps p ← p - lr · H⁻¹ g, with H estimated from the last `history_size` steps.

    One `step` runs up to `max_iter` iterations and calls the closure for the loss and its gradients.
    Source: Liu and Nocedal, "On the Limited Memory BFGS Method for Large Scale Optimization" (1989).

    Args:
        params: parameters; there may be one group only.
        lr: step length, or the first one that the line search tries (default 1).
        max_iter: iterations per `step` (default 20).
        max_eval: closure calls per `step` (default 1.25 · max_iter).
        tolerance_grad: stop if no element of the gradient exceeds this (default 1e-7).
        tolerance_change: stop if the loss or all parameters change by less (default 1e-9).
        history_size: number of steps from which H is estimated (default 100).
        line_search_fn: "strong_wolfe", or None for steps of fixed length.

    Raises:
        ValueError: `lr` is negative, or there are several groups.
        RuntimeError: in `step`: `line_search_fn` is another string.

    >>> import flambeau as torch
    >>> p = torch.nn.Parameter(torch.tensor([1.0]))
    >>> optimizer = torch.optim.LBFGS([p], line_search_fn="strong_wolfe")
    >>> def closure():
    ...     optimizer.zero_grad()
    ...     loss = ((p - 3) ** 2).sum()
    ...     loss.backward()
    ...     return loss
    >>> _ = optimizer.step(closure)
    >>> p.detach()
    tensor([3.])
    """

    added_options = ()

    def __init__(self, params: Iterable[Any], lr: Any = 1, max_iter: int = 20, max_eval: int | None = None,
                 tolerance_grad: float = 1e-7, tolerance_change: float = 1e-9, history_size: int = 100,
                 line_search_fn: str | None = None) -> None:
        check_lr(lr)
        if max_eval is None:
            max_eval = max_iter * 5 // 4
        super().__init__(params, {"lr": lr, "max_iter": max_iter, "max_eval": max_eval,
                                  "tolerance_grad": tolerance_grad, "tolerance_change": tolerance_change,
                                  "history_size": history_size, "line_search_fn": line_search_fn})
        if len(self.param_groups) != 1:
            raise ValueError("LBFGS doesn't support per-parameter options (parameter groups)")
        self._params = self.param_groups[0]["params"]

    def _flat_grad(self) -> Tensor:
        parts = []
        for p in self._params:
            part = p.new_zeros(p.numel()) if p.grad is None else p.grad.reshape(-1)
            if p.is_complex():
                part = fn.view_as_real(p.new_zeros(p.numel()) if p.grad is None else p.grad).reshape(-1)
            parts.append(part)
        return fn.cat(parts, 0)

    def _move(self, length: float, direction: Tensor) -> None:
        start = 0
        for p in self._params:
            p = fn.view_as_real(p) if p.is_complex() else p
            stop = start + p.numel()
            p.add_(direction[start:stop].view_as(p), alpha=length)
            start = stop

    def _restore(self, saved: list[Tensor]) -> None:
        for p, values in zip(self._params, saved, strict=True):
            p.copy_(values)

    @no_grad()
    def step(self, closure: Callable[[], Any]) -> Any:  # type: ignore[override]
        """Run up to `max_iter` iterations.

        Args:
            closure: computes the loss and its gradients, and returns the loss.

        Returns:
            The loss of the first closure call.
        """
        if len(self.param_groups) != 1:  # another one was added
            raise AssertionError(f"Expected exactly one param_group, but got {len(self.param_groups)}")
        group = self.param_groups[0]
        lr = group["lr"].reshape(()) if isinstance(group["lr"], Tensor) else group["lr"]
        tolerance, change = group["tolerance_grad"], group["tolerance_change"]
        search = group["line_search_fn"]

        def evaluate() -> Any:
            with enable_grad():
                return closure()

        # as in PyTorch, the first parameter's state holds that of all
        state = self.state[self._params[0]]
        state.setdefault("func_evals", 0)
        state.setdefault("n_iter", 0)
        first_loss = evaluate()
        loss = float(first_loss)
        evaluations = 1
        state["func_evals"] += 1
        grad = self._flat_grad()
        if bool(grad.abs().max() <= tolerance):
            return first_loss
        direction, length = state.get("d"), state.get("t")
        steps, changes, ratios = state.get("old_stps"), state.get("old_dirs"), state.get("ro")
        scale = state.get("H_diag")
        previous_grad, previous_loss = state.get("prev_flat_grad"), state.get("prev_loss")
        iterations = 0
        while iterations < group["max_iter"]:
            iterations += 1
            state["n_iter"] += 1
            if state["n_iter"] == 1:
                direction = grad.neg()
                changes, steps, ratios, scale = [], [], [], 1
            else:
                y = grad.sub(previous_grad)
                s = direction.mul(length)
                ys = y.dot(s)
                if ys > 1e-10:
                    if len(changes) == group["history_size"]:
                        changes.pop(0)
                        steps.pop(0)
                        ratios.pop(0)
                    changes.append(y)
                    steps.append(s)
                    ratios.append(1.0 / ys)
                    scale = ys / y.dot(y)
                direction = _search_direction(state, grad, changes, steps, ratios, scale, group["history_size"])
            previous_grad = grad.clone() if previous_grad is None else previous_grad.copy_(grad)
            previous_loss = loss
            length = min(1.0, 1.0 / grad.abs().sum()) * lr if state["n_iter"] == 1 else lr
            slope = grad.dot(direction)
            if slope > -change:
                break
            calls = 0
            if search is not None:
                if search != "strong_wolfe":
                    raise RuntimeError("only 'strong_wolfe' is supported")
                saved = [p.clone() for p in self._params]

                def probe(t: float) -> tuple[float, Tensor]:
                    self._move(t, direction)  # noqa: B023
                    value = float(evaluate())
                    gradient = self._flat_grad()
                    self._restore(saved)  # noqa: B023
                    return value, gradient

                loss, grad, length, calls = strong_wolfe(probe, scalar_value(length), direction, loss, grad, slope)
                self._move(length, direction)
                converged = bool(grad.abs().max() <= tolerance)
            else:
                self._move(length, direction)
                converged = False
                if iterations != group["max_iter"]:
                    loss = float(evaluate())
                    grad = self._flat_grad()
                    converged = bool(grad.abs().max() <= tolerance)
                    calls = 1
            evaluations += calls
            state["func_evals"] += calls
            if iterations == group["max_iter"] or evaluations >= group["max_eval"] or converged:
                break
            if direction.mul(length).abs().max() <= change or abs(loss - previous_loss) < change:
                break
        state.update(d=direction, t=length, old_dirs=changes, old_stps=steps, ro=ratios, H_diag=scale,
                     prev_flat_grad=previous_grad, prev_loss=previous_loss)
        return first_loss


def _search_direction(state: dict[str, Any], grad: Tensor, changes: list[Tensor], steps: list[Tensor],
                      ratios: list[Tensor], scale: Any, history_size: int) -> Tensor:
    """-H⁻¹ g, by the two-loop recursion over the last steps and changes of the gradient."""
    weights = state.setdefault("al", [None] * history_size)
    q = grad.neg()
    for i in range(len(changes) - 1, -1, -1):
        weights[i] = steps[i].dot(q) * ratios[i]
        q.add_(changes[i], alpha=-scalar_value(weights[i]))
    direction = fn.mul(q, scale)
    for i, change in enumerate(changes):
        direction.add_(steps[i], alpha=scalar_value(weights[i] - change.dot(direction) * ratios[i]))
    return direction


def cubic_minimum(x1: float, f1: float, g1: Any, x2: float, f2: float, g2: Any,
                  bounds: tuple[float, float] | None = None) -> float:
    """The minimizer, within the bounds, of the cubic through two points with given values and slopes."""
    low, high = bounds if bounds is not None else (min(x1, x2), max(x1, x2))
    d1 = g1 + g2 - 3 * (f1 - f2) / (x1 - x2)
    square = d1**2 - g1 * g2
    if not square >= 0:
        return (low + high) / 2.0
    d2 = square.sqrt() if isinstance(square, Tensor) else square**0.5
    if x1 <= x2:
        minimizer = x2 - (x2 - x1) * ((g2 + d2 - d1) / (g2 - g1 + 2 * d2))
    else:
        minimizer = x1 - (x1 - x2) * ((g1 + d2 - d1) / (g1 - g2 + 2 * d2))
    return min(max(minimizer, low), high)


def strong_wolfe(probe: Callable[[float], tuple[float, Tensor]], t: float, d: Tensor, f: float, g: Tensor,
                 gtd: Any, c1: float = 1e-4, c2: float = 0.9, tolerance: float = 1e-9,
                 max_probes: int = 25) -> tuple[float, Tensor, float, int]:
    """A step length that satisfies the strong Wolfe conditions: sufficient decrease (c1) and curvature (c2).

    The bracketing phase grows the step until an interval contains such a length; the zoom phase shrinks the interval.

    Args:
        probe: maps a step length to (loss, gradient).
        t: first step length to try.
        d: direction.
        f: loss at length 0.
        g: gradient at length 0.
        gtd: slope at length 0, g · d.
        c1: constant of the decrease condition.
        c2: constant of the curvature condition.
        tolerance: smallest width of the interval, times the largest element of d.
        max_probes: maximum number of iterations.

    Returns:
        (loss, gradient, step length, number of calls of `probe`).
    """
    largest = d.abs().max()
    g = g.clone()
    f_new, g_new = probe(t)
    probes = 1
    gtd_new = g_new.dot(d)
    t_prev, f_prev, g_prev, gtd_prev = 0.0, f, g, gtd
    done = False
    n = 0
    bracket: list[tuple[float, float, Tensor, Any]] = []  # (length, loss, gradient, slope)
    while n < max_probes:
        if f_new > f + c1 * t * gtd or (n > 1 and f_new >= f_prev):
            bracket = [(t_prev, f_prev, g_prev, gtd_prev), (t, f_new, g_new.clone(), gtd_new)]
            break
        if abs(gtd_new) <= -c2 * gtd:
            bracket = [(t, f_new, g_new, gtd_new)]
            done = True
            break
        if gtd_new >= 0:
            bracket = [(t_prev, f_prev, g_prev, gtd_prev), (t, f_new, g_new.clone(), gtd_new)]
            break
        bounds = (t + 0.01 * (t - t_prev), t * 10)
        grown = cubic_minimum(t_prev, f_prev, gtd_prev, t, f_new, gtd_new, bounds)
        t_prev, f_prev, g_prev, gtd_prev = t, f_new, g_new.clone(), gtd_new
        t = grown
        f_new, g_new = probe(t)
        probes += 1
        gtd_new = g_new.dot(d)
        n += 1
    if not bracket:
        bracket = [(0.0, f, g, gtd), (t, f_new, g_new, gtd_new)]

    stalled = False
    low, high = (0, 1) if bracket[0][1] <= bracket[-1][1] else (1, 0)
    while not done and n < max_probes:
        ends = [end[0] for end in bracket]
        if abs(ends[1] - ends[0]) * largest < tolerance:
            break
        t = cubic_minimum(bracket[0][0], bracket[0][1], bracket[0][3], bracket[1][0], bracket[1][1],
                          bracket[1][3])
        # too near an end twice in a row, or beyond it: move a tenth of the width away from it
        margin = 0.1 * (max(ends) - min(ends))
        if min(max(ends) - t, t - min(ends)) < margin:
            if stalled or t >= max(ends) or t <= min(ends):
                t = max(ends) - margin if abs(t - max(ends)) < abs(t - min(ends)) else min(ends) + margin
                stalled = False
            else:
                stalled = True
        else:
            stalled = False
        f_new, g_new = probe(t)
        probes += 1
        gtd_new = g_new.dot(d)
        n += 1
        new = (t, f_new, g_new.clone(), gtd_new)
        if f_new > f + c1 * t * gtd or f_new >= bracket[low][1]:
            bracket[high] = new
            low, high = (0, 1) if bracket[0][1] <= bracket[1][1] else (1, 0)
        else:
            if abs(gtd_new) <= -c2 * gtd:
                done = True
            elif gtd_new * (bracket[high][0] - bracket[low][0]) >= 0:
                bracket[high] = bracket[low]
            bracket[low] = new
    best = bracket[low if len(bracket) > 1 else 0]
    return best[1], best[2], best[0], probes


#: PyTorch's name of `cubic_minimum`, which packages import
_cubic_interpolate = cubic_minimum


def _strong_wolfe(obj_func: Callable[[Any, float, Tensor], tuple[float, Tensor]], x: Any, t: float, d: Tensor, f: float,
                  g: Tensor, gtd: Any, c1: float = 1e-4, c2: float = 0.9, tolerance_change: float = 1e-9,
                  max_ls: int = 25) -> tuple[float, Tensor, float, int]:
    """`strong_wolfe` with PyTorch's arguments, which packages call.

    Args:
        obj_func: maps x, a step length and d to (loss, gradient).
        x: passed on to `obj_func`.

    >>> import flambeau as torch
    >>> from flambeau.optim.lbfgs import _strong_wolfe
    >>> x, d = torch.tensor([1.]), torch.tensor([-2.])
    >>> _strong_wolfe(lambda x, t, d: (float((x + t * d) ** 2), 2 * (x + t * d)), x, 1., d, 1., 2 * x,
    ...               torch.tensor(-4.))
    (0.0, tensor([0.]), tensor(0.5000), 2)
    """
    return strong_wolfe(lambda length: obj_func(x, length, d), t, d, f, g, gtd, c1, c2, tolerance_change, max_ls)
