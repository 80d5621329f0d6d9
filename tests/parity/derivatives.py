"""The checks of derivatives: reverse, reverse twice, forward, forward over reverse.

Cotangents and tangents are drawn by NumPy from a fixed seed, so both libraries push the same numbers
through; the gradients must agree, and so must which of them are None.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from . import compare, opdb
from .bridge import WIDENED_NAMES, Crossing, Side, Unsupported, dtype_name
from .outcome import Outcome, attempt, raised
from .runs import Run, check, describe


def draws(side: Side, tensors: list[Any], seed: int, requires_grad: bool = False) -> list[Any]:
    """One random tensor of `side` per given tensor, of its shape and dtype."""
    rng = np.random.default_rng(seed)
    made = []
    for like in tensors:
        shape, dtype = tuple(like.shape), dtype_name(like.dtype)
        values = np.asarray(rng.uniform(-1, 1, shape))
        if dtype.startswith("complex"):
            values = values + 1j * rng.uniform(-1, 1, shape)
        wide = WIDENED_NAMES.get(dtype)
        tensor = side.array(np.asarray(values, dtype=wide or dtype))
        if wide is not None:
            tensor = tensor.to(like.dtype)
        made.append(tensor.requires_grad_(True) if requires_grad else tensor)
    return made


class Recording:
    """One side's differentiable call: leaves in, differentiable outputs out."""

    def __init__(self, side: Side, function: Callable, sample: Any, wrap: Callable | None = None):
        crossing = Crossing(side, wrap)
        given = crossing(sample.input)
        args, kwargs = crossing(tuple(sample.args)), crossing(dict(sample.kwargs))
        side.seed()
        result = side.callable(sample.output_process_fn_grad)(function(given, *args, **kwargs))
        self.side, self.crossing = side, crossing
        self.outputs = list(side.tensors(result))
        self.flags = [bool(t.requires_grad) for t in self.outputs]
        self.names = [t.grad_fn.name() if t.grad_fn is not None else None for t in self.outputs]
        # A leaf that is returned unchanged has no derivative to compare.
        self.ends = [t for t in self.outputs if t.requires_grad]
        self.seed = 7

    def grad(self, inputs: list[Any], cotangents: list[Any], **how: Any) -> list[Any]:
        return list(self.side.module.autograd.grad(self.ends, inputs, cotangents, allow_unused=True, **how))


def first_order(rec: Recording) -> list[Any]:
    return (
        rec.grad(rec.crossing.leaves, draws(rec.side, rec.ends, 1))
        if rec.ends and rec.crossing.leaves
        else []
    )


def second_order(rec: Recording) -> list[Any]:
    """The gradient, with respect to inputs and cotangents, of the gradients against fixed directions."""
    if not rec.ends or not rec.crossing.leaves:
        return []
    cotangents = draws(rec.side, rec.ends, 1, requires_grad=True)
    grads = rec.grad(rec.crossing.leaves, cotangents, create_graph=True)
    live = [g for g in grads if g is not None and g.requires_grad]
    if not live:
        return []
    ends = rec.crossing.leaves + cotangents
    return list(rec.side.module.autograd.grad(live, ends, draws(rec.side, live, 2), allow_unused=True))


def derivative_check(
    run: Run, name: str, follow: Callable[[Side, Any], Any], dtypes: list[str], share: float = 1.0
) -> Iterator[Outcome]:
    """Run `follow(side, sample)` on both sides and compare what it returns."""
    for dtype in run.dtypes(dtypes):
        for index, sample in run.samples(dtype, share=share, requires_grad=True):
            try:
                want = attempt(lambda sample=sample: follow(run.want, sample))
                if want.error is not None:  # PyTorch has no such derivative: nothing to hold against
                    continue
                have = attempt(lambda sample=sample: follow(run.have, sample))
                reason, detail = raised(have.error) if have.error else None, have.trace
                if have.error is None:
                    judged = attempt(lambda w=want, h=have: _difference(run, w.value, h.value))
                    reason = judged.value if judged.error is None else f"comparing {raised(judged.error)}"
                    detail = judged.trace
            except Unsupported:
                continue
            yield run.outcome(name, dtype, index, reason, f"{describe(sample)}\n{detail}")


def _difference(run: Run, want: list[Any], have: list[Any]) -> str | None:
    compared = compare.Comparison(run.op, run.want, run.have)
    if want and isinstance(want[0], str) and want[0] != have[0]:
        return f"{have[0]}, expected {want[0]}"
    if len(want) != len(have):
        return f"{len(have)} gradients, expected {len(want)}"
    for k, (expected, found) in enumerate(zip(want, have, strict=True)):
        if (expected is None) != (found is None):
            return f"gradient {k} is {'None' if found is None else 'a tensor'}, expected the opposite"
        if isinstance(expected, str) or expected is None:
            reason = None if expected == found else f"{found}, expected {expected}"
        else:
            reason = compared.results(expected, found)
        if reason:
            return f"gradient {k}: {reason}" if not isinstance(expected, str) else reason
    return None


def _follow(run: Run, order: Callable[[Recording], list[Any]]) -> Callable[[Side, Any], list[Any]]:
    def follow(side: Side, sample: Any) -> list[Any]:
        rec = Recording(side, opdb.function_of(run.op, side), sample)
        return ["requires_grad of outputs: " + " ".join(map(str, rec.flags)), *order(rec)]

    return follow


@check
def grad(run: Run) -> Iterator[Outcome]:
    """autograd.grad against a fixed cotangent, and which outputs require grad."""
    yield from derivative_check(run, "grad", _follow(run, first_order), opdb.gradient_dtypes(run.op))


@check
def gradgrad(run: Run) -> Iterator[Outcome]:
    """The gradient of the gradient."""
    if run.op.supports_gradgrad:
        dtypes = opdb.gradient_dtypes(run.op)
        yield from derivative_check(run, "gradgrad", _follow(run, second_order), dtypes, share=0.6)


@check
def create_graph(run: Run) -> Iterator[Outcome]:
    """Which gradients have a history under create_graph."""

    def follow(side: Side, sample: Any) -> list[Any]:
        rec = Recording(side, opdb.function_of(run.op, side), sample)
        if not rec.ends or not rec.crossing.leaves:
            return []
        found = rec.grad(rec.crossing.leaves, draws(rec.side, rec.ends, 1), create_graph=True)
        return ["create_graph gives " + " ".join("None" if g is None else str(bool(g.requires_grad)) for g in found)]

    if run.op.supports_gradgrad:
        yield from derivative_check(run, "create_graph", follow, opdb.gradient_dtypes(run.op)[:1], share=0.6)


@check
def saved(run: Run) -> Iterator[Outcome]:
    """The gradient, and its gradient, where each saved tensor is replaced by a copy while it is saved."""

    def follow(side: Side, sample: Any) -> list[Any]:
        keep = side.module.autograd.graph.saved_tensors_hooks(lambda t: t.detach().clone(), lambda t: t)
        with keep:
            rec = Recording(side, opdb.function_of(run.op, side), sample)
            return second_order(rec) if run.op.supports_gradgrad else first_order(rec)

    yield from derivative_check(run, "saved", follow, opdb.gradient_dtypes(run.op)[:1], share=0.4)


@check
def packed(run: Run) -> Iterator[Outcome]:
    """The tensors passed to saved-tensor hooks, in any order."""

    def follow(side: Side, sample: Any) -> list[str]:
        seen: list[str] = []

        def pack(t: Any) -> Any:
            seen.append(f"{dtype_name(t.dtype)}{list(t.shape)}")
            return t

        with side.module.autograd.graph.saved_tensors_hooks(pack, lambda t: t):
            Recording(side, opdb.function_of(run.op, side), sample)
        return ["saves " + " ".join(sorted(seen))]

    yield from derivative_check(run, "packed", follow, opdb.gradient_dtypes(run.op)[:1], share=0.4)


@check
def grad_fn(run: Run) -> Iterator[Outcome]:
    """The name of each output's grad_fn."""

    def follow(side: Side, sample: Any) -> list[str]:
        return [f"grad_fn {name}" for name in Recording(side, opdb.function_of(run.op, side), sample).names]

    yield from derivative_check(run, "grad_fn", follow, opdb.gradient_dtypes(run.op)[:1], share=0.6)


@check
def attributes(run: Run) -> Iterator[Outcome]:
    """The `_saved_*` attributes of each output's grad_fn: names, numbers, shapes of tensors."""

    def shown(value: Any) -> str:
        if hasattr(value, "grad_fn"):
            return f"{dtype_name(value.dtype)}{list(value.shape)}"
        return f"[{', '.join(map(shown, value))}]" if isinstance(value, (tuple, list)) else repr(value)

    def follow(side: Side, sample: Any) -> list[str]:
        nodes = [t.grad_fn for t in Recording(side, opdb.function_of(run.op, side), sample).outputs]
        return ["; ".join(f"{x[7:]} {shown(getattr(node, x))}" for x in dir(node) if x.startswith("_saved_"))
                for node in nodes]

    yield from derivative_check(run, "attributes", follow, opdb.gradient_dtypes(run.op)[:1], share=0.4)


@check
def inplace_grad(run: Run) -> Iterator[Outcome]:
    """Gradients through the in-place method on a clone."""
    if run.op.inplace_variant is None or not run.op.supports_inplace_autograd:
        return

    def follow(side: Side, sample: Any) -> list[Any]:
        method = side.callable(run.op.inplace_variant)
        rec = Recording(side, lambda x, *args, **kwargs: method(x.clone(), *args, **kwargs), sample)
        return first_order(rec)

    yield from derivative_check(run, "inplace_grad", follow, opdb.gradient_dtypes(run.op), share=0.5)


def _dual(side: Side) -> Callable[[Any, int], Any]:
    forward_ad = side.module.autograd.forward_ad
    return lambda tensor, k: forward_ad.make_dual(tensor, draws(side, [tensor], 30 + k)[0])


@check
def fwad(run: Run) -> Iterator[Outcome]:
    """Forward mode: the outputs' tangents."""
    if not run.op.supports_forward_ad:
        return

    def follow(side: Side, sample: Any) -> list[Any]:
        forward_ad = side.module.autograd.forward_ad
        make = _dual(side)
        with forward_ad.dual_level():
            rec = Recording(side, opdb.function_of(run.op, side), sample, lambda t, k: make(t.detach(), k))
            return [forward_ad.unpack_dual(t).tangent for t in rec.outputs]

    yield from derivative_check(run, "fwad", follow, opdb.gradient_dtypes(run.op))


@check
def fwrev(run: Run) -> Iterator[Outcome]:
    """Forward over reverse: the tangents of the gradients."""
    if not run.op.supports_fwgrad_bwgrad:
        return

    def follow(side: Side, sample: Any) -> list[Any]:
        forward_ad = side.module.autograd.forward_ad
        with forward_ad.dual_level():
            rec = Recording(side, opdb.function_of(run.op, side), sample, _dual(side))
            if not rec.ends or not rec.crossing.leaves:
                return []
            grads = rec.grad(rec.crossing.wrapped, draws(side, rec.ends, 1), create_graph=True)
            return [None if g is None else forward_ad.unpack_dual(g).tangent for g in grads]

    yield from derivative_check(run, "fwrev", follow, opdb.gradient_dtypes(run.op)[:1], share=0.4)


__all__ = ["Recording", "derivative_check", "draws", "first_order", "second_order"]
