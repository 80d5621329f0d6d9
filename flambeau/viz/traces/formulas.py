"""The formulas of operators and of their derivatives, derived from their declarations.

An operator's forward and its rules are functions of a namespace `xp`. Called with arrays they return
arrays, with tensors a graph, with `Formulas` expressions: the printed formulas are those that are computed.

    forward         φ(v₁, v₂, ...)
    pullback        v̄ · ∂φ/∂v₁: the result of the vjp rule of an input
    pushforward     Σᵢ v̇ᵢ · ∂φ/∂vᵢ: the jvp, as its kind implies it
    partial         ∂φ/∂v₁: the pullback of 1, for elementwise operators

A rule that reads a shape or an element (the number of elements, whether one is positive) reads the
values that symbols may have. Without values there is no formula, and the functions return None.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from ...ops.declare import ELEMENTWISE, LINEAR, REGISTRY, VIEW, Op
from .expressions import (
    Call,
    Expression,
    Filled,
    Number,
    Symbol,
    Unknowable,
    add,
    as_expression,
    divide,
    is_number,
    parts,
    power,
    subtract,
    where,
)
from .notation import number as number
from .notation import text

#: errors of rules that need values instead of expressions
_NO_FORMULA = (Unknowable, RuntimeError, TypeError, ValueError, AttributeError, IndexError, KeyError,
               ZeroDivisionError, OverflowError)


class Formulas:
    """The namespace of formulas: `xp.sin(x)` is the expression sin x."""

    def __init__(self) -> None:
        self._running: list[str] = []

    def __getattr__(self, name: str) -> Callable[..., Any]:
        if name.startswith("__"):
            raise AttributeError(name)
        declared = REGISTRY.get(name)
        if name.startswith("_") and declared is not None and name not in self._running:
            return lambda *arguments, **parameters: self._inner(name, declared, arguments, parameters)
        return lambda *arguments, **parameters: _called(name, arguments, parameters)

    def _inner(self, name: str, op: Op, arguments: tuple[Any, ...], parameters: dict[str, Any]) -> Any:
        """The formula of an operator that only rules use."""
        self._running.append(name)
        try:
            return op.forward(self, *arguments, **parameters) if op.takes_xp else op.forward(*arguments, **parameters)
        finally:
            self._running.pop()

    # ----- arithmetic and creation functions -----

    def where(self, condition: Any, a: Any, b: Any) -> Expression:
        return where(condition, a, b)

    def zeros_like(self, x: Any) -> Expression:
        return Filled(0, x)

    def ones_like(self, x: Any) -> Expression:
        return Filled(1, x)

    def full_like(self, x: Any, value: Any) -> Expression:
        return as_expression(value)

    def sub(self, a: Any, b: Any) -> Expression:
        return subtract(a, b)

    def square(self, x: Any) -> Expression:
        return power(x, 2)

    def reciprocal(self, x: Any) -> Expression:
        return divide(1, x)

    def pow(self, base: Any, exponent: Any) -> Expression:
        return power(base, exponent)

    def pow_scalar(self, base: Any, exponent: Any) -> Expression:
        return power(base, exponent)

    def scalar_pow(self, base: Any, exponent: Any) -> Expression:
        return power(base, exponent)

    def real(self, x: Any) -> Any:
        return Call("real", (x,)) if self.is_complex(x) else x

    def conj(self, x: Any) -> Any:
        return Call("conj", (x,)) if self.is_complex(x) else x

    def is_complex(self, x: Any) -> bool:
        """Whether an expression's value is complex; without a value it counts as real."""
        try:
            return bool(as_expression(x)._number().dtype.kind == "c")
        except (Unknowable, AttributeError):
            return False

    def broadcast_to(self, x: Any, size: Any) -> Any:
        while isinstance(x, Call) and x.name in ("reshape", "unsqueeze") and self._has_shape(x.arguments[0], ()):
            x = x.arguments[0]
        return self._laid(x, size) or Call("broadcast_to", (x, tuple(size)))

    def reshape(self, x: Any, shape: Any) -> Any:
        return self._laid(x, shape) or Call("reshape", (x, tuple(shape)))

    def sum_to_size(self, x: Any, size: Any) -> Any:
        return self._laid(x, size) or Call("sum_to_size", (x, tuple(size)))

    def _laid(self, x: Any, shape: Any) -> Any:
        """`x` itself if it has this shape or is a number, else None."""
        return x if isinstance(x, Number) or self._has_shape(x, shape) else None

    def _has_shape(self, x: Any, shape: Any) -> bool:
        try:
            return tuple(x.shape) == tuple(shape)
        except (Unknowable, AttributeError):
            return False


def _called(name: str, arguments: tuple[Any, ...], parameters: dict[str, Any]) -> Expression:
    declared = REGISTRY.get(name)
    if declared is not None and declared.kind in (LINEAR, VIEW) and len(declared.inputs) == 1 and arguments and (
            is_number(arguments[0], 0)):
        return Number(0)
    return Call(name, arguments, parameters)


def _run(function: Callable[..., Any], names: Iterable[str], values: Mapping[str, Any]) -> Any:
    try:
        return function(*[values[name] for name in names])
    except _NO_FORMULA:
        return None


def _values(op: Op, inputs: Sequence[Any], outs: Sequence[Any], params: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments that rules of an operator may use, as expressions."""
    values: dict[str, Any] = {"xp": Formulas(), "needs": (True,) * len(inputs)}
    for name in op.params:
        value = params.get(name, op.defaults.get(name, Symbol(name)))
        values[name] = value
    names = op.input_names(len(inputs))
    for name, x in zip(names, inputs, strict=True):
        values[name] = x
        _describe(values, name, x)
    if op.variadic:
        star, first = op.inputs[-1], len(op.inputs) - 1
        values[star] = list(inputs[first:])
        for what in ("shape", "dtype"):
            if all(f"{name}_{what}" in values for name in names[first:]):
                values[f"{star}_{what}s"] = tuple(values[f"{name}_{what}"] for name in names[first:])
    values.update(zip(op.output_names(), outs, strict=False))
    return values


def _describe(values: dict[str, Any], name: str, x: Any) -> None:
    from ...dtypes import float32, of

    array: Any = getattr(x, "value", None)
    if hasattr(array, "shape"):
        values[name + "_shape"], values[name + "_dtype"] = tuple(array.shape), of(array.dtype)
        values[name + "_strides"] = array.strides
    elif isinstance(x, Expression):
        values[name + "_dtype"] = float32


def _given(inputs: Sequence[Any]) -> list[Any]:
    return [None if x is None else as_expression(x) for x in inputs]


# ----- forward -----

def forward(op: Op, inputs: Sequence[Any], params: Mapping[str, Any] | None = None) -> Expression:
    """An operator's formula: arithmetic as declared, anything longer by the operator's name.

    Args:
        op: the declared operator.
        inputs: expressions or numbers; None for a missing optional one.
        params: keyword parameters; the rest have their defaults.

    >>> import flambeau as torch
    >>> from flambeau.ops.declare import REGISTRY
    >>> from flambeau.viz.traces.expressions import Symbol
    >>> from flambeau.viz.traces.formulas import forward
    >>> x, y = Symbol("x"), Symbol("y")
    >>> print(forward(REGISTRY["mul"], [x, y]), forward(REGISTRY["relu"], [x]), forward(REGISTRY["gelu"], [x]))
    x × y max(0, x) gelu(x)
    """
    given = _given(inputs)
    params = params or {}
    if op.n_outputs == 1 and not op.variadic:
        values = _values(op, given, (), params)
        if op.takes_xp:
            values["xp"]._running.append(op.name)
        names = [*(("xp",) if op.takes_xp else ()), *op.input_names(len(given))]
        found = _run(lambda *a: op.forward(*a, **{name: values[name] for name in op.params}), names, values)
        if found is not None and _is_brief(found, given) and not (isinstance(found, Call) and found.name == op.name):
            return as_expression(found)
    values = dict(zip(op.input_names(len(given)), given, strict=True))
    values.update((name, as_expression(params[name])) for name in op.promoting_params if params.get(name) is not None)
    order = [name for name in op.argument_order or () if name in values]
    shown = {name: value for name, value in params.items() if name not in values and (
        name not in op.defaults or not (op.defaults[name] is value or op.defaults[name] == value))}
    return Call(op.name, tuple(x for x in (map(values.__getitem__, order) if order else values.values())
                               if x is not None), shown)


def _is_brief(found: Any, inputs: Sequence[Any]) -> bool:
    """Whether a formula is arithmetic on the inputs, or a single function of them."""
    calls = [part for part in parts(found) if isinstance(part, Call)]
    if not calls:
        return isinstance(found, Expression) and not isinstance(found, Number)
    return (len(calls) == 1 and calls[0] is found and found.name != "where" and len(list(parts(found))) <= 4
            and all(isinstance(x, (Number, Symbol, int, float, complex, type(None))) for x in found.arguments))


# ----- derivatives -----

def pullback(op: Op, place: int, cotangents: Sequence[Any], inputs: Sequence[Any], outs: Sequence[Any],
             params: Mapping[str, Any] | None = None) -> Expression | None:
    """The cotangent of one input, of the cotangents of an operator's outputs, by its vjp rule.

    Args:
        place: the index of the input.
        cotangents: one expression per output.
        inputs, outs, params: of the application.

    Returns:
        The formula; None if the rule needs values.
    """
    given = _given(inputs)
    names = op.input_names(len(given))
    values = _values(op, given, outs, params or {})
    cotangents = [as_expression(g) for g in cotangents]
    values["gs"] = list(cotangents)
    values["g"] = cotangents[0] if cotangents else None
    values.update((f"g{k}", g) for k, g in enumerate(cotangents))
    if op.joint_vjp_rule is not None:
        values["needs"] = tuple(i == place for i in range(len(given)))
        found = _run(op.joint_vjp_rule.function, op.joint_vjp_rule.names, values)
        try:
            found = None if found is None else list(found)[place]
        except (Unknowable, IndexError):
            found = None
    else:
        rule = op.rule_for(names[place])
        found = None if rule is None else _run(rule.function, rule.names, values)
    return None if found is None else as_expression(found)


def partial(op: Op, place: int, inputs: Sequence[Any], out: Any,
            params: Mapping[str, Any] | None = None) -> Expression | None:
    """The partial derivative of an elementwise operator with respect to one input.

    >>> import flambeau as torch
    >>> from flambeau.ops.declare import REGISTRY
    >>> from flambeau.viz.traces.expressions import Symbol
    >>> from flambeau.viz.traces.formulas import partial
    >>> x, y, v = Symbol("x"), Symbol("y"), Symbol("v")
    >>> print(partial(REGISTRY["div"], 1, [x, y], v), partial(REGISTRY["tanh"], 0, [x], v), sep="   ")
    -x / y²   1 - v²
    """
    if op.kind != ELEMENTWISE or op.n_outputs != 1:
        return None
    return pullback(op, place, [Number(1)], inputs, [out], params)


def pushforward(op: Op, tangents: Sequence[Any], inputs: Sequence[Any], outs: Sequence[Any],
                params: Mapping[str, Any] | None = None, output: int = 0) -> Expression | None:
    """The tangent of one output of an operator, of the tangents of its inputs (None for none)."""
    given = _given(inputs)
    params = params or {}
    names = op.input_names(len(given))
    values = _values(op, given, outs, params)
    values["needs"] = tuple(t is not None for t in tangents)
    if op.jvp_rule is not None:
        values.update(("t_" + name, t) for name, t in zip(names, tangents, strict=True))
        if op.variadic:
            values["t_" + op.inputs[-1]] = list(tangents[len(op.inputs) - 1:])
        found = _run(op.jvp_rule.function, op.jvp_rule.names, values)
        if found is not None and op.n_outputs > 1:
            found = found[output] if isinstance(found, (list, tuple)) else None
        return None if found is None else as_expression(found)
    if op.kind in (LINEAR, VIEW):
        return _linear(op, tangents, given, params, names, output)
    if op.kind == ELEMENTWISE and op.vjp_rules and op.holomorphic:
        total: Expression = Number(0)
        for name, t in zip(names, tangents, strict=True):
            rule = op.rule_for(name)
            if t is None or rule is None:
                continue
            values["g"] = t
            part = _run(rule.function, rule.names, values)
            if part is None:
                return None
            total = add(total, part)
        return total
    return None


def _linear(op: Op, tangents: Sequence[Any], inputs: list[Any], params: Mapping[str, Any], names: Sequence[str],
            output: int) -> Expression | None:
    def applied(values: list[Any]) -> Expression:
        formula = forward(op, values, params)
        return formula[output] if op.n_outputs > 1 else formula

    if op.variadic and not op.linear_in:
        return applied([Number(0) if t is None else t for t in tangents])
    linear_inputs = op.linear_in or names[:1]
    total: Expression = Number(0)
    for place, t in enumerate(tangents):
        if t is not None and names[place] in linear_inputs:
            total = add(total, applied([t if i == place else x for i, x in enumerate(inputs)]))
    return total


# ----- nodes of a graph -----

def operator_name(node: Any) -> str:
    """The name of a node's operator, `mul` for `MulBackward0`; else the node's name."""
    op = getattr(node, "op", None)
    if op is not None:
        return str(op.name).lstrip("_")
    return node.name().removeprefix("torch::autograd::").removesuffix("Backward")  # type: ignore[no-any-return]


def params_of(node: Any) -> dict[str, Any]:
    """The keyword parameters that a node saves for its rules."""
    plan = getattr(node, "plan", None)
    if plan is None:
        return {}
    return {which: value for (what, which), value in zip(plan.consts, node.consts, strict=True) if what == "param"}


def node_formula(node: Any, operands: Sequence[Any] | None = None) -> str:
    """A node of the graph as a formula of its operands.

    Args:
        node: a `grad_fn`.
        operands: names of its inputs. Default: those of the declaration.

    >>> import flambeau as torch
    >>> from flambeau.viz.traces.formulas import node_formula
    >>> x = torch.ones(2, requires_grad=True)
    >>> node_formula((x * x).grad_fn), node_formula((x * x).grad_fn, ["a", "b"])
    ('input × other', 'a × b')
    """
    op: Op | None = getattr(node, "op", None)
    count = len(node.edges)
    if operands is None:
        operands = op.input_names(count) if op is not None else [f"x{i}" for i in range(count)]
    symbols = [x if isinstance(x, Expression) or x is None else Symbol(str(x)) for x in operands]
    if op is None:
        return text(Call(operator_name(node), tuple(symbols)))
    params = params_of(node)
    return text(forward(op, symbols, params))
