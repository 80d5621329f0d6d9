"""L-BFGS: Newton steps with a Hessian that is estimated from the last steps."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from .._tensor import Tensor, enable_grad, no_grad
from .._tensor import functions as fn
from .arithmetic import number
from .optimizer import Optimizer, check_lr

__all__ = ["LBFGS"]


class LBFGS(Optimizer):
    """Minimises the loss that `step`'s closure computes, in up to `max_iter` quasi-Newton iterations a step.

    Args:
        lr: the step's length, in Newton steps.
        max_eval: how often the closure may be called in one step; 1.25 · max_iter by default.
        tolerance_grad: stop when no element of the gradient is larger.
        tolerance_change: stop when the loss or the parameters change by less.
        history_size: how many past steps the Hessian is estimated from.
        line_search_fn: "strong_wolfe", or None for steps of fixed length.

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

    later_options = ()

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
        """Iterate; returns the first loss."""
        group = self.param_groups[0]
        lr = number(group["lr"])
        tolerance, change = group["tolerance_grad"], group["tolerance_change"]
        search = group["line_search_fn"]

        def evaluate() -> Any:
            with enable_grad():
                return closure()

        # as in PyTorch, the first parameter's state stands for all
        state = self.state[self._params[0]]
        state.setdefault("func_evals", 0)
        state.setdefault("n_iter", 0)
        first_loss = evaluate()
        loss = number(first_loss)
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
                direction = _newton_direction(state, grad, changes, steps, ratios, scale, group["history_size"])
            previous_grad = grad.clone() if previous_grad is None else previous_grad.copy_(grad)
            previous_loss = loss
            length = min(1.0, 1.0 / float(grad.abs().sum())) * lr if state["n_iter"] == 1 else lr
            slope = grad.dot(direction)
            if slope > -change:
                break
            done = 0
            if search is not None:
                if search != "strong_wolfe":
                    raise RuntimeError("only 'strong_wolfe' is supported")
                saved = [p.clone() for p in self._params]

                def probe(t: float) -> tuple[float, Tensor]:
                    self._move(t, direction)  # noqa: B023
                    value = number(evaluate())
                    gradient = self._flat_grad()
                    self._restore(saved)  # noqa: B023
                    return value, gradient

                loss, grad, length, done = strong_wolfe(probe, length, direction, loss, grad, slope)
                self._move(length, direction)
                converged = bool(grad.abs().max() <= tolerance)
            else:
                self._move(length, direction)
                converged = False
                if iterations != group["max_iter"]:
                    loss = number(evaluate())
                    grad = self._flat_grad()
                    converged = bool(grad.abs().max() <= tolerance)
                    done = 1
            evaluations += done
            state["func_evals"] += done
            if iterations == group["max_iter"] or evaluations >= group["max_eval"] or converged:
                break
            if direction.mul(length).abs().max() <= change or abs(loss - previous_loss) < change:
                break
        state.update(d=direction, t=length, old_dirs=changes, old_stps=steps, ro=ratios, H_diag=scale,
                     prev_flat_grad=previous_grad, prev_loss=previous_loss)
        return first_loss


def _newton_direction(state: dict[str, Any], grad: Tensor, changes: list[Tensor], steps: list[Tensor],
                      ratios: list[Tensor], scale: Any, history_size: int) -> Tensor:
    """-H⁻¹ g, by the two-loop recursion over the last steps and changes of the gradient."""
    weights = state.setdefault("al", [None] * history_size)
    q = grad.neg()
    for i in range(len(changes) - 1, -1, -1):
        weights[i] = steps[i].dot(q) * ratios[i]
        q.add_(changes[i], alpha=-number(weights[i]))
    direction = fn.mul(q, scale)
    for i, change in enumerate(changes):
        direction.add_(steps[i], alpha=number(weights[i] - change.dot(direction) * ratios[i]))
    return direction


def cubic_minimum(x1: float, f1: float, g1: Any, x2: float, f2: float, g2: Any,
                  bounds: tuple[float, float] | None = None) -> float:
    """Where the cubic through two points with given values and slopes is least, within the bounds."""
    low, high = bounds if bounds is not None else (min(x1, x2), max(x1, x2))
    d1 = g1 + g2 - 3 * (f1 - f2) / (x1 - x2)
    square = d1**2 - g1 * g2
    if not square >= 0:
        return (low + high) / 2.0
    d2 = square.sqrt() if isinstance(square, Tensor) else square**0.5
    if x1 <= x2:
        place = x2 - (x2 - x1) * ((g2 + d2 - d1) / (g2 - g1 + 2 * d2))
    else:
        place = x1 - (x1 - x2) * ((g1 + d2 - d1) / (g1 - g2 + 2 * d2))
    return min(max(place, low), high)


def strong_wolfe(probe: Callable[[float], tuple[float, Tensor]], t: float, d: Tensor, f: float, g: Tensor,
                 gtd: Any, c1: float = 1e-4, c2: float = 0.9, tolerance: float = 1e-9,
                 max_probes: int = 25) -> tuple[float, Tensor, float, int]:
    """A step length that lowers the loss enough (c1) and flattens its slope enough (c2).

    First the step grows until it brackets such a length, then the bracket shrinks.

    Args:
        probe: the loss and the gradient at a step length.
        t: the length to try first.
        d, f, g, gtd: the direction; loss, gradient and slope at length 0.

    Returns:
        Loss and gradient there, the length, and how often the closure was called.
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
        # twice in a row too near an end, or beyond it: keep a tenth away
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
