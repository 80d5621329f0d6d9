"""Symbolic scalars: arithmetic, guards, runtime scalars."""

from __future__ import annotations

import math

import pytest

from flambeau.backends.compiled.tracing.scalars import Scalar, ScalarParameters


def test_formulas_are_reevaluated_for_new_values():
    parameters = ScalarParameters(("lr", "beta", "step"))
    lr, beta, step = (parameters.scalar(*pair) for pair in (("lr", 0.1), ("beta", 0.9), ("step", 3.0)))
    formulas = [lr / (1 - beta**step), -lr, 2 * lr - 1, abs(lr - 5) % 3, 7 // lr, +lr, (1 - beta) ** 0.5, 2**step]
    for formula in formulas:
        parameters.add_runtime_scalar(formula, float)
    holds, values = parameters.functions()
    assert holds is None
    for case in ((0.1, 0.9, 3.0), (0.25, 0.5, 7.0)):
        a, b, s = case
        assert values(*case) == (a / (1 - b**s), -a, 2 * a - 1, abs(a - 5) % 3, 7 // a, a, (1 - b) ** 0.5, 2**s)
    assert [formula.value for formula in formulas] == list(values(0.1, 0.9, 3.0))


def test_equal_scalars_share_one_slot():
    parameters = ScalarParameters(("x",))
    x = parameters.scalar("x", 2.0)
    assert parameters.add_runtime_scalar(x * 2, float) == parameters.add_runtime_scalar(x * 2, float) == 0
    assert parameters.add_runtime_scalar(x, float) == 1


@pytest.mark.parametrize(("ask", "like", "unlike"), [
    (lambda x: x == 2, (2.0,), (3.0, math.nan)),
    (lambda x: x != 2, (2.0,), (1.0,)),
    (lambda x: x < 3, (1.0, 2.5), (3.0,)),
    (lambda x: x >= 3, (2.9,), (3.0, 9.0)),
    (bool, (1.0, -1.0), (0.0,)),
    (float, (2.0,), (2.1,)),
    (lambda x: x == None, (1.0, 5.0), ()),  # noqa: E711
    (lambda x: x > x * 0.5, (1.0,), (-1.0,)),
])
def test_specializations_are_guards(ask, like, unlike):
    parameters = ScalarParameters(("x",))
    ask(parameters.scalar("x", 2.0))
    holds, _ = parameters.functions()
    for value in like:
        assert holds is None or holds(value)
    for value in unlike:
        assert not holds(value)


def test_a_nan_guard_matches_nan():
    parameters = ScalarParameters(("x",))
    assert math.isnan(parameters.scalar("x", math.nan).specialized())
    holds, _ = parameters.functions()
    assert holds(math.nan)
    assert not holds(1.0)


def test_integer_scalars_work_as_indices_and_ranges():
    parameters = ScalarParameters(("n",))
    n = parameters.scalar("n", 3)
    assert [int(n), list(range(n))] == [3, [0, 1, 2]]
    assert f"{n:d}" == "3"
    assert "3" in repr(n)


def test_scalars_reject_other_operands():
    x = ScalarParameters(("x",)).scalar("x", 2.0)
    with pytest.raises(TypeError):
        x + "a"
    with pytest.raises(TypeError):
        x < []
    with pytest.raises(TypeError):
        hash(x)
    assert isinstance(x, Scalar)
