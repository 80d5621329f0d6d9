"""Statements that draw random numbers: used or unused, in place, and as branch conditions.

A program has them only on request (see `generation.written`).
"""

from __future__ import annotations

from .generation import DRAWING, Unfit, Writer, statement

_LIKE = ("torch.rand_like({})", "torch.randn_like({})", "torch.nn.functional.dropout({}, 0.5)",
         "torch.nn.functional.dropout({}, 0.2) * {}", "torch.bernoulli(torch.sigmoid({}))", "torch.normal({}, 0.5)",
         "{} + 0.1 * torch.randn_like({})", "torch.where(torch.rand_like({}) > 0.4, {}, -{})",
         "torch.nn.functional.alpha_dropout({}, 0.3, training=True)")
_OF_SHAPE = ("torch.rand({})", "torch.randn({})", "torch.randint(-3, 4, {})", "torch.empty({}).uniform_(-1, 1)",
             "torch.empty({}).normal_(0.5, 2)", "torch.zeros({}).bernoulli_(0.3)",
             "torch.randn({}, dtype=torch.float64)")
_IN_PLACE = ("{}.uniform_()", "{}.normal_()", "{}.uniform_(-2, 0.5)", "{}.bernoulli_(0.5)")


@statement(12, DRAWING)
def _like(w: Writer) -> str:
    x = w.real(lambda t: t.dtype.itemsize > 2)
    return f"{w.fresh()} = " + w.choose(*_LIKE).replace("{}", x)


@statement(6, DRAWING)
def _of_shape(w: Writer) -> str:
    text = w.choose(*_OF_SHAPE).format(repr(w.shape()))
    return text if w.chance(0.2) else f"{w.fresh()} = {text}"


@statement(4, DRAWING)
def _in_place(w: Writer) -> str:
    x = w.writable(lambda t: t.is_floating_point() and t.dtype.itemsize > 2)
    return w.choose(*_IN_PLACE).format(x)


@statement(4, DRAWING)
def _shuffled(w: Writer) -> str:
    x = w.floating(lambda t: t.ndim > 0)
    length = w.value(x).shape[0]
    if not length:
        raise Unfit
    return w.choose(f"{w.fresh()} = {x}[torch.randperm({length})]", f"{w.fresh()} = torch.randperm({length})",
                    f"{w.fresh()} = {x}[torch.randint(0, {length}, (3,))]")


@statement(4, DRAWING)
def _decided(w: Writer) -> str:
    """What comes next depends on a number that was drawn."""
    x = w.floating()
    return f"{w.fresh()} = {x} * 2 if torch.rand(()) > {w.choose(0.1, 0.5, 0.9)} else {x} + torch.rand(())"
