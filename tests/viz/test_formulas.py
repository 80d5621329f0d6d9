"""Formulas of declarations: every elementwise operator has one, and it evaluates to the operator's result."""

from __future__ import annotations

import numpy as np
import pytest

import flambeau as torch
from flambeau._tensor.dispatch.interception import Interceptor
from flambeau.engine.tensor_interface import layer
from flambeau.ops.declare import ELEMENTWISE, REGISTRY
from flambeau.viz.traces.expressions import Symbol, Unknowable, evaluate, substituted
from flambeau.viz.traces.formulas import forward, node_formula, partial, pullback, pushforward
from flambeau.viz.traces.notation import latex, number, text
from tests.ops.spec import Make, load, public

#: their rules say that PyTorch has no derivative, or ask for the numbers of an argument that is none
UNDERIVABLE = {"floor_divide", "_scalar_remainder", "_hardsigmoid_backward", "heaviside", "_standard_gamma_grad",
               "_dirichlet_grad"}
#: the inputs by which PyTorch has no derivative of operators that it differentiates by others
UNDERIVABLE_BY = {"special_zeta": {"input"}, "_special_zeta_second_scalar": {"input"}, "igamma": {"input"},
                  "igammac": {"input"}}
#: what the records' samples do not come to in float64
MORE = [
    lambda x, y: torch.add(x, y, alpha=3), lambda x, y: torch.sub(x, y, alpha=3),
    lambda x, y: torch.div(x, y, rounding_mode="trunc"), lambda x, y: torch.div(x, y, rounding_mode="floor"),
    lambda x, y: x // y, lambda x, y: 3 % x, lambda x, y: torch.heaviside(x, y), lambda x, y: torch.nextafter(x, y),
    lambda x, y: torch.xlogy(2, x.abs()), lambda x, y: torch.special.xlog1py(2, x.abs()),
    lambda x, y: torch._standard_gamma_grad(x.abs() + 1, y.abs() + 1),
    lambda x, y: torch._dirichlet_grad(x.sigmoid(), x.abs() + 1, x.abs() + 3),
]
#: only rules use them, their results are complex, they are of other dtypes than float64, or a number is an operand
UNREACHED = {"_threshold_backward", "_leaky_relu_backward", "_hardtanh_backward", "_shrink_backward",
             "_hardsigmoid_backward", "_prelu_backward", "_div_rounded_twice", "polar", "complex",
             "_sub_scalar", "conj_physical", "_special_zeta_first_scalar", "_special_zeta_second_scalar"}

ELEMENTWISE_KEYS = [key for key, op in REGISTRY.items() if op.kind == ELEMENTWISE and op.differentiable
                    and op.n_outputs == 1]
KEY_OF = {id(op): key for key, op in REGISTRY.items()}


class Applied(Interceptor):
    """Each operator that ran on real tensors: its inputs, parameters and result."""

    def __init__(self):
        self.found = {}

    def on_operator(self, op, inputs, params, outs, in_place):
        if op.n_outputs != 1 or in_place or not outs[0].requires_grad or outs[0].dtype is not torch.float64:
            return
        given = [x.detach().numpy().copy() if isinstance(x, torch.Tensor) else x for x in inputs]
        if not any(isinstance(x, np.ndarray) and x.dtype.kind == "c" for x in given):
            self.found.setdefault(KEY_OF[id(op)], []).append((op, given, dict(params), outs[0].detach().numpy().copy(),
                                                              outs[0].grad_fn))


@pytest.fixture(scope="module")
def applied():
    """Every application that the operators' own samples come to, by the operator's key."""
    with Applied() as seen:
        for name, record in load().items():
            if not record.differentiable or not record.floats:
                continue
            for sample in record.samples(Make(torch, torch.float64, requires_grad=True)):
                public(torch, name)(*sample.args, **sample.kwargs)
        x, y = Make(torch, torch.float64, requires_grad=True)(2, 3), Make(torch, torch.float64, seed=1)(3)
        for call in MORE:
            call(x, y)
    return seen.found


def symbols_of(inputs):
    return [Symbol(f"x{i}", value=x) if isinstance(x, np.ndarray) else x for i, x in enumerate(inputs)]


def close(found, wanted):
    with np.errstate(all="ignore"):
        return np.allclose(np.broadcast_to(np.asarray(found, float), wanted.shape), wanted, rtol=1e-9, atol=1e-12,
                           equal_nan=True)


def test_the_samples_reach_every_elementwise_operator(applied):
    assert set(ELEMENTWISE_KEYS) - set(applied) <= UNREACHED


@pytest.mark.parametrize("key", ELEMENTWISE_KEYS)
def test_an_elementwise_operator_has_a_formula_and_derivatives(key):
    op = REGISTRY[key]
    inputs = [Symbol("xyz"[place]) for place in range(len(op.inputs))]
    params = {name: 2 for name in op.params if name not in op.defaults}
    formula = forward(op, inputs, params)
    assert text(formula)
    assert latex(formula)
    derivatives = {name: partial(op, place, inputs, Symbol("v"), params) for place, name in enumerate(op.inputs)
                   if name not in op.nondifferentiable_inputs and op.vjp_rules.get(name)}
    if key not in UNDERIVABLE:
        assert derivatives
        unknown = {name for name, derivative in derivatives.items() if derivative is None}
        assert unknown == UNDERIVABLE_BY.get(key, set())


@pytest.mark.parametrize("key", [key for key in ELEMENTWISE_KEYS if key not in UNREACHED | UNDERIVABLE])
def test_formulas_evaluated_are_values_and_gradients(applied, key):
    for op, inputs, params, out, node in applied.get(key, []):
        if out.size == 0:
            continue
        given = symbols_of(inputs)
        v = Symbol("v", value=out)
        with np.errstate(all="ignore"):
            formula = forward(op, given, params)
            assert close(_run(formula, op, inputs, params), out), (text(formula), inputs)
            g = np.random.default_rng(0).uniform(0.5, 2, out.shape)
            found = node(torch.tensor(g))
            found = found if isinstance(found, tuple) else (found,)
            for place, gradient in enumerate(_by_place(op, found, len(inputs))):
                if gradient is None or not isinstance(inputs[place], np.ndarray):
                    continue
                rule = pullback(op, place, [Symbol("g", value=g)], given, [v], params)
                assert rule is not None, (key, place)
                value = np.broadcast_to(np.asarray(evaluate(rule), float), out.shape)
                value = layer.arrays.sum_to_size(value, tuple(gradient.shape))
                assert close(value, gradient.detach().numpy()), (text(rule), inputs, params)


def _run(formula, op, inputs, params):
    try:
        return evaluate(formula)
    except (AttributeError, TypeError):  # written by its name, which is not how it is called on arrays
        with torch.no_grad():
            from flambeau._tensor.dispatch.apply import apply
            return apply(op, [torch.tensor(x) if isinstance(x, np.ndarray) else x for x in inputs], params).numpy()


def _by_place(op, found, count):
    """A node's gradients, with None for the inputs that it draws no edge to."""
    if len(found) == count:
        return found
    drawn = [place for place in range(count)
             if op.inputs[min(place, len(op.inputs) - 1)] not in op.nondifferentiable_inputs]
    gradients = dict(zip(drawn, found, strict=False))
    return [gradients.get(place) for place in range(count)]


def test_operators_of_whole_tensors_have_formulas_too(applied):
    told = {}
    for key, uses in applied.items():
        op = REGISTRY[key]
        if op.kind == ELEMENTWISE or op.variadic:
            continue
        for _, inputs, params, out, node in uses[:3]:
            if not out.size or any(x is None for x in inputs):
                continue
            g = np.random.default_rng(0).uniform(0.5, 2, out.shape)
            found = node(torch.tensor(g))
            found = found if isinstance(found, tuple) else (found,)
            for place, gradient in enumerate(_by_place(op, found, len(inputs))):
                if gradient is None:
                    continue
                rule = pullback(op, place, [Symbol("g", value=g)], symbols_of(inputs), [Symbol("v", value=out)], params)
                if rule is None:
                    told.setdefault(key, False)
                    continue
                assert text(rule)
                assert latex(rule)
                try:
                    value = np.asarray(evaluate(rule))
                except Exception as error:
                    raise AssertionError((key, text(rule))) from error
                assert np.allclose(np.broadcast_to(value, gradient.shape), gradient.detach().numpy(), equal_nan=True), (
                    key, text(rule))
                told[key] = True
    assert sum(told.values()) > 0.9 * len(told), sorted(key for key, known in told.items() if not known)


@pytest.mark.parametrize(("key", "shown", "by_inputs"), [
    ("mul", "x × y", ["y", "x"]),
    ("div", "x / y", ["1 / y", "-x / y²"]),
    ("sub", "x - y", ["1", "-1"]),
    ("neg", "-x", ["-1"]),
    ("reciprocal", "1 / x", ["-v²"]),
    ("sin", "sin x", ["cos x"]),
    ("cos", "cos x", ["-sin x"]),
    ("tanh", "tanh x", ["1 - v²"]),
    ("exp", "exp x", ["v"]),
    ("log", "ln x", ["1 / x"]),
    ("log2", "log₂ x", ["1 / (x × ln 2)"]),
    ("sqrt", "√x", ["1 / (2 × v)"]),
    ("sigmoid", "σ(x)", ["(1 - v) × v"]),
    ("relu", "max(0, x)", ["[v > 0]"]),
    ("abs", "|x|", ["sign x"]),
    ("asin", "arcsin x", ["1 / √(1 - x²)"]),
    ("maximum", "max(x, y)", ["(0.5 if x = y else 1) × [x ≥ y]", "(0.5 if x = y else 1) × [x ≤ y]"]),
    ("addcdiv", "x + y / z", ["1", "1 / z", "-y / z²"]),
    ("erf", "erf(x)", ["2/√π × exp(-x²)"]),
    ("silu", "silu(x)", ["σ(x) × (1 + x × (1 - σ(x)))"]),
])
def test_printed_formulas(key, shown, by_inputs):
    op = REGISTRY[key]
    inputs = [Symbol("xyz"[place]) for place in range(len(op.inputs))]
    assert text(forward(op, inputs)) == shown
    assert [text(partial(op, place, inputs, Symbol("v"))) for place in range(len(inputs))] == by_inputs


def test_a_tangent_is_the_declared_jvp():
    x, y, dx, dy = map(Symbol, ("x", "y", "ẋ", "ẏ"))
    assert text(pushforward(REGISTRY["mul"], [dx, dy], [x, y], [Symbol("v")])) == "ẋ × y + ẏ × x"
    assert text(pushforward(REGISTRY["mul"], [None, dy], [x, y], [Symbol("v")])) == "ẏ × x"
    assert text(pushforward(REGISTRY["mm"], [dx, dy], [x, y], [Symbol("v")])) == "ẋ @ y + x @ ẏ"
    assert text(pushforward(REGISTRY["sum"], [dx], [x], [Symbol("v")], {"dim": 0})) == "sum(ẋ, dim=0)"


def test_expressions_are_simplified_and_bracketed():
    x, y = Symbol("x"), Symbol("y")
    minus_y = -y
    made = (x * 0 + y, 1 * x, x - minus_y, x + minus_y, -minus_y, x * x * x, x + x, (x + y) * x, x - (y - x), x / y / y,
            x / (y * x), -x * y, 2 * (3 * x), (x + 1) ** 2, 2 ** (x + 1), x ** 1, x ** 0)
    assert [str(expression) for expression in made] == [
        "y", "x", "x + y", "x - y", "y", "x³", "2 × x", "(x + y) × x", "x - (y - x)",
        "x / y²", "x / (y × x)", "-x × y", "6 × x", "(x + 1)²", "2^(x + 1)", "x", "1"]
    assert str(substituted(x * x - y, {"x": Symbol("-2"), "y": Symbol("-3")})) == "(-2)² - (-3)"


def test_value_dependent_rules_have_no_formula():
    x = Symbol("x")
    with pytest.raises(Unknowable):
        bool(x > 0)
    with pytest.raises(Unknowable):
        x.shape
    assert Symbol("x", value=np.zeros((2, 3))).shape == (2, 3)
    assert (Symbol("x", value=np.zeros((2, 3))) * Symbol("y", value=np.zeros(3))).ndim == 2


def test_nodes_say_their_formula():
    x = torch.ones(2, 2, requires_grad=True)
    assert node_formula((x @ x).grad_fn, ["A", "B"]) == "A @ B"
    assert node_formula((x ** 3).grad_fn, ["a"]) == "a³"
    assert node_formula(x.relu().grad_fn) == "max(0, input)"
    assert node_formula(torch.cat([x, x]).grad_fn, ["a", "b"]) == "cat(a, b)"


@pytest.mark.parametrize(("value", "shown"), [
    (1.0, "1"), (-0.0, "0"), (1e-9, "1e-09"), (123456789.0, "1.235e+08"), (float("nan"), "nan"), (float("-inf"), "-∞"),
    (1 + 2j, "1+2i"), (0.1234, "0.123"),
])
def test_numbers(value, shown):
    assert number(value) == shown
