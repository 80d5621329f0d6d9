"""Traces of programs: tables of values, of tangents (forward mode), and of adjoints (reverse mode).

    evaluation trace   vₖ  = φₖ(vᵢ, ...)
    tangent trace      v̇ₖ = Σᵢ v̇ᵢ · ∂vₖ/∂vᵢ      forward mode, one pass for each input
    adjoint trace      v̄ᵢ = Σₖ v̄ₖ · ∂vₖ/∂vᵢ      reverse mode, one pass for each output

The formulas come from the operators' declarations, evaluated on symbols. The numbers come from the program's run: its
values, the operators' tangents, the engine's gradients.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..._tensor.tensor import Tensor, wrap
from ...ops.declare import ELEMENTWISE
from ..drawing.picture import Picture
from .expressions import Expression, Filled, Number, Symbol, add, multiply, substituted
from .formulas import Formulas, forward, operator_name, pullback, pushforward
from .notation import BAR, DOT, SUBSCRIPTS, latex, text, written
from .programs import Application, Run, Variable, leaves_in_order, recorded, recovered
from .tables import Cell, Table

_HEADS = ("", "is", "with numbers", "value")
_BLANK = Cell("", "")
_MAX_LENGTH = 72  # characters of a formula with numbers; longer ones are omitted


@dataclass
class Trace(Table):
    """A trace as a table, with its values by index (`values[-1]`, `values[0]`, `values[1]`, ...), and its graph.

    A value is a float for a scalar, a tensor for several elements, and None if unknown. `formulas` are expressions by
    index; `picture` is the graph in the direction of the trace.

    >>> from flambeau.viz import evaluation_trace
    >>> evaluation_trace(lambda x, y: x * y, 2., 5.).values
    {-1: 2.0, 0: 5.0, 1: 10.0}
    """

    values: dict[int, Any] = field(default_factory=dict)
    formulas: dict[int, Expression] = field(default_factory=dict)
    picture: Picture | None = None

    def _repr_html_(self) -> str:
        return f'<div style="overflow-x:auto">{self.to_html()}{_svg(self.picture)}</div>'


class Program(Run):
    """A recorded program: its traces, and its pictures (`forward_picture()`, `reverse_picture()`).

    >>> from flambeau.viz import record
    >>> program = record(lambda x, y: x * y, 2., 5.)
    >>> program.tangent_trace(1).values, program.adjoint_trace().values
    ({-1: 0.0, 0: 1.0, 1: 2.0}, {-1: 5.0, 0: 2.0, 1: 1.0})
    """

    def evaluation_trace(self) -> Trace:
        """The values of all steps."""
        return evaluation(self)

    def tangent_trace(self, wrt: int = 0, direction: Any = None) -> Trace:
        """The tangents of all steps, for a tangent of one input.

        Args:
            wrt: the index of the input.
            direction: the input's tangent; ones if None.
        """
        return tangent(self, wrt, direction)

    def adjoint_trace(self) -> Trace:
        """The adjoints of all steps, as the engine computed them."""
        return adjoint(self)


def record(function: Callable[..., Any], *point: Any) -> Program:
    """Run a program and record all steps of its graph.

    Args:
        function: maps tensors to one tensor.
        point: the inputs: numbers, lists or tensors.

    Raises:
        ValueError: the output does not depend on the inputs.
        TypeError: the output is not a tensor.

    >>> import flambeau as torch
    >>> from flambeau.viz import record
    >>> program = record(lambda x, y: torch.log(x) + x * y - torch.sin(y), 2., 5.)
    >>> program.adjoint_trace().values[-1], round(program.adjoint_trace().values[0], 3)
    (5.5, 1.716)
    """
    return Program(**vars(recorded(function, *point)))


def evaluation_trace(function: Callable[..., Any] | Tensor, *point: Any) -> Trace:
    """The evaluation trace of a program: the values of all steps.

    Args:
        function: maps tensors to one tensor; or a tensor, whose graph is traced as far as its values are known.
        point: the inputs of the function: numbers, lists or tensors.

    Raises:
        ValueError: the output does not depend on the inputs.

    >>> import flambeau as torch
    >>> from flambeau.viz import evaluation_trace
    >>> print(evaluation_trace(lambda x: torch.sin(x) * x, 5.))
    forward evaluation trace
        is       with numbers   value
    ─────────────────────────────────
    v₀  x₁                          5
    v₁  sin v₀   sin 5         -0.959
    v₂  v₁ × v₀  (-0.959) × 5  -4.795
    y   v₂                     -4.795
    """
    return evaluation(_program(function, point))


def tangent_trace(function: Callable[..., Any] | Tensor, *point: Any, wrt: int = 0, direction: Any = None) -> Trace:
    """The tangent trace of forward mode: the derivative of every step with respect to one input.

    Args:
        function: maps tensors to one tensor; or a tensor, and then `point` is the leaf to differentiate by. Default:
            the first leaf.
        point: the inputs of the function.
        wrt: the index of the input.
        direction: the tangent of that input, of its shape; ones if None.

    Raises:
        IndexError: there is no such input.

    >>> import flambeau as torch
    >>> from flambeau.viz import tangent_trace
    >>> tangent_trace(lambda x, y: x * y, 2., 5., wrt=1).values
    {-1: 0.0, 0: 1.0, 1: 2.0}
    >>> x = torch.tensor(3., requires_grad=True)
    >>> tangent_trace(x ** 2, x).values
    {0: 1.0, 1: 6.0}
    """
    if isinstance(function, Tensor) and point:
        leaves = [] if function.grad_fn is None else leaves_in_order(function.grad_fn)
        wrt = next((place for place, leaf in enumerate(leaves) if leaf is point[0]), len(leaves))
    return tangent(_program(function, point), wrt, direction)


def adjoint_trace(function: Callable[..., Any] | Tensor, *point: Any) -> Trace:
    """The adjoint trace of reverse mode: the derivative of the output with respect to every step.

    Args:
        function: maps tensors to one tensor; or a tensor. An output with several elements is summed.
        point: the inputs of the function.

    >>> import flambeau as torch
    >>> from flambeau.viz import adjoint_trace
    >>> adjoint_trace(lambda x, y: x * y, 2., 5.).values
    {-1: 5.0, 0: 2.0, 1: 1.0}
    """
    return adjoint(_program(function, point))


def _program(function: Any, point: tuple[Any, ...]) -> Run:
    if isinstance(function, Run):
        return function
    return recovered(function) if isinstance(function, Tensor) else recorded(function, *point)


# ----- the three tables -----

def evaluation(program: Run) -> Trace:
    """The evaluation trace of a recorded program."""
    names = _Names(program)
    rows: list[tuple[str, ...]]
    rows = [(names.cell(index), Cell(f"x{_sub(place)}", f"x_{{{place}}}"), _BLANK, _number(program.values[index]))
            for place, index in enumerate(program.inputs, 1)]
    formulas: dict[int, Expression] = {}
    for application in program.applications:
        formula = _applied(program, application)
        for number, index in application.outputs.items():
            formulas[index] = formula if len(application.outs) == 1 else formula[number]
            rows.append(names.row(index, formulas[index]))
    rows.append((Cell("y", "y"), names.cell(program.output), _BLANK, _number(program.values[program.output])))
    return Trace("forward evaluation trace", _HEADS, rows, _values(program.values), formulas,
                 program.forward_picture())


def tangent(program: Run, wrt: int, direction: Any = None) -> Trace:
    """The tangent trace of a recorded program with respect to input `wrt`."""
    if not 0 <= wrt < len(program.inputs):
        raise IndexError(f"wrt is {wrt}, but the program has {len(program.inputs)} inputs (0 is the first)")
    start = {index: np.zeros_like(program.values[index]) for index in program.inputs}
    chosen = program.inputs[wrt]
    given = 1 if direction is None else np.asarray(direction, start[chosen].dtype)
    start[chosen] = np.broadcast_to(given, start[chosen].shape).astype(start[chosen].dtype)
    tangents = program.tangents(start)
    program.symbols = {key: symbol for key, symbol in program.symbols.items() if key[1] != DOT}
    names = _Names(program, DOT, tangents)
    rows: list[tuple[str, ...]]
    rows = [(names.cell(index), Cell(f"x{DOT}{_sub(place)}", rf"\dot{{x}}_{{{place}}}"), _BLANK,
             _number(tangents[index])) for place, index in enumerate(program.inputs, 1)]
    formulas: dict[int, Expression] = {}
    for application in program.applications:
        for number, index in application.outputs.items():
            formulas[index] = _pushed_formula(names, application, number, index)
            rows.append(names.row(index, formulas[index]))
    rows.append((Cell(f"y{DOT}", r"\dot{y}"), names.cell(program.output), _BLANK, _number(tangents[program.output])))
    return Trace(f"forward derivative trace, by x{_sub(wrt + 1)}", _HEADS, rows, _values(tangents), formulas,
                 program.forward_picture())


def adjoint(program: Run) -> Trace:
    """The adjoint trace of a recorded program."""
    adjoints = program.adjoints
    names = _Names(program, BAR, adjoints)
    chain: dict[int, Expression] = dict.fromkeys(program.values, Number(0))
    formulas: dict[int, Expression] = dict(chain)
    for application in program.applications:
        for place, index in application.variables:
            exact = _pulled_formula(names, application, place, index)
            term: Expression = Number(0)
            for user in application.outputs.values():
                term = add(term, multiply(names.of(user), _ratio(f"v{_sub(user)}", f"v{_sub(index)}",
                                                                 f"v_{{{user}}}", f"v_{{{index}}}")))
            chain[index] = add(chain[index], term)
            formulas[index] = add(formulas[index], term if exact is None else exact)
    formulas[program.output] = Number(1)
    rows: list[tuple[str, ...]] = []
    for index in sorted(program.values, reverse=True):
        if index == program.output:
            seed = _ratio("y", f"v{_sub(index)}", "y", f"v_{{{index}}}")
            rows.append((names.cell(index), _cell(seed), _BLANK, _BLANK, _number(adjoints[index])))
            continue
        name, *rest = names.row(index, formulas[index])
        rows.append((name, _cell(chain[index]), *rest))
    rows += [(_cell(_ratio("y", f"x{_sub(place)}", "y", f"x_{{{place}}}")), names.cell(index), _BLANK, _BLANK,
              _number(adjoints[index])) for place, index in enumerate(program.inputs, 1)]
    return Trace("reverse adjoint trace", ("", "by the chain rule", *_HEADS[1:]), rows, _values(adjoints), formulas,
                 program.reverse_picture())


# ----- formulas -----

class _Names:
    """The variables of one trace: as symbols with a mark (dot, bar), and as numbers."""

    def __init__(self, program: Run, mark: str = "", values: dict[int, Any] | None = None) -> None:
        self.program, self.mark = program, mark
        self.marked = program.values if values is None else values
        self.numbers: dict[str, Symbol] = {}
        for kind, known in (("", program.values), (mark, self.marked)):
            for index, value in known.items():
                symbol = program.symbol(index, kind, value)
                self.numbers[symbol.text] = Symbol("?", "?") if value is None else Symbol(*written(value))

    def of(self, index: int) -> Symbol:
        return self.program.symbol(index, self.mark, self.marked.get(index))

    def cell(self, index: int) -> Cell:
        return _cell(self.of(index))

    def row(self, index: int, formula: Expression) -> tuple[str, ...]:
        """A variable's name, its formula, the formula with numbers and its value.

        The formula with numbers is omitted if a number is unknown, if it is too long, or if it equals the value.
        """
        value = _number(self.marked[index])
        filled = _cell(substituted(formula, self.numbers))
        hidden = "?" in filled or "∂" in filled or len(filled) > _MAX_LENGTH or filled in (value, text(formula))
        return self.cell(index), _cell(formula), _BLANK if hidden else filled, value


def _applied(program: Run, application: Application) -> Expression:
    operands = [program.operand(x) for x in application.operands]
    if application.op is not None:
        return forward(application.op, operands, application.params)
    from .expressions import Call

    return Call(operator_name(application.node), tuple(x for x in operands if x is not None))


def _outs(program: Run, application: Application) -> list[Any]:
    return [program.symbol(application.outputs[number]) if number in application.outputs else
            None if value is None else Symbol("?", "?", value) for number, value in enumerate(application.outs)]


def _pushed_formula(names: _Names, application: Application, number: int, index: int) -> Expression:
    program, op = names.program, application.op
    tangents: list[Any] = [names.of(x.index) if isinstance(x, Variable) else None for x in application.operands]
    if op is not None:
        operands = [program.operand(x) for x in application.operands]
        if op.kind == ELEMENTWISE and op.n_outputs == 1:  # as in the adjoint trace, even if a jvp rule is declared
            parts = [_pulled(program, application, [t], place) for place, t in enumerate(tangents) if t is not None]
            if op.holomorphic and all(part is not None for part in parts):
                return _total(parts)
        found = pushforward(op, tangents, operands, _outs(program, application), application.params, number)
        if found is not None and not _has_unknown(found):
            return found
    return _total(multiply(t, _ratio(f"v{_sub(index)}", f"v{_sub(x.index)}", f"v_{{{index}}}", f"v_{{{x.index}}}"))
                  for t, x in zip(tangents, application.operands, strict=True) if t is not None)


def _pulled_formula(names: _Names, application: Application, place: int, index: int) -> Expression | None:
    """The contribution of an application's output adjoints to the adjoint of one operand, in the operand's shape."""
    cotangents = [names.of(application.outputs[number]) if number in application.outputs else
                  Number(0) if value is None else Filled(0, Symbol("0", "0", value))
                  for number, value in enumerate(application.outs)]
    found = _pulled(names.program, application, cotangents, place)
    if found is None:
        return None
    value = names.program.values[index]
    if application.op is not None and application.op.kind == ELEMENTWISE and value is not None:
        found = Formulas().sum_to_size(found, value.shape) if _is_larger(application, names.program, value) else found
    return found


def _is_larger(application: Application, program: Run, operand: Any) -> bool:
    out = program.values[next(iter(application.outputs.values()))]
    return out is not None and out.shape != operand.shape


def _pulled(program: Run, application: Application, cotangents: list[Any], place: int) -> Expression | None:
    if application.op is None:
        return None
    operands = [program.operand(x) for x in application.operands]
    found = pullback(application.op, place, cotangents, operands, _outs(program, application), application.params)
    return None if found is None or _has_unknown(found) else found


def _has_unknown(formula: Expression) -> bool:
    """Whether a formula contains a value without a name: an unused output."""
    return "?" in text(formula)


def _total(terms: Iterable[Any]) -> Expression:
    total: Expression = Number(0)
    for term in terms:
        total = add(total, term)
    return total


def _ratio(over: str, under: str, over_latex: str, under_latex: str) -> Symbol:
    return Symbol(f"∂{over}/∂{under}", rf"\frac{{\partial {over_latex}}}{{\partial {under_latex}}}")


# ----- cells -----

def _cell(formula: Expression) -> Cell:
    return Cell(text(formula), latex(formula))


def _number(value: Any) -> Cell:
    return _BLANK if value is None else Cell(*written(value))


def _values(arrays: dict[int, Any]) -> dict[int, Any]:
    return {index: None if a is None else wrap(np.array(a)) if np.shape(a) else a.item() for index, a in arrays.items()}


def _sub(index: int) -> str:
    return str(index).translate(SUBSCRIPTS)


def _svg(picture: Picture | None) -> str:
    """The picture as an SVG element; empty if no drawing program is installed."""
    import tempfile
    from pathlib import Path

    from ..drawing.render import render

    if picture is None:
        return ""
    with tempfile.TemporaryDirectory() as folder:
        try:
            drawn = render(picture, Path(folder) / "graph.svg").read_text(encoding="utf-8")
        except ModuleNotFoundError:
            return ""
    return drawn[drawn.index("<svg"):]


__all__ = ["Program", "Trace", "adjoint", "adjoint_trace", "evaluation", "evaluation_trace", "record", "tangent",
           "tangent_trace"]
