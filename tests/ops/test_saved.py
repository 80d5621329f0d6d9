"""Operators save exactly what derivative formulas and `_saved_*` attributes request.

Every public operator has a record and an example.
"""

from __future__ import annotations

import doctest
from typing import Any

import numpy as np
import pytest

import flambeau as torch
from flambeau.ops.declare import COMPOSITE, REGISTRY, composite
from tests.ops.spec import RECORDS, load

load()

WITH_RULES = sorted(key for key, op in REGISTRY.items() if op.vjp_rules or op.joint_vjp_rule)


def requested(op: Any, names: tuple[str, ...], needs: tuple[bool, ...]) -> set[str]:
    """The names that the formulas of the inputs requiring grad request."""
    if op.joint_vjp_rule is not None:
        return set(op.joint_vjp_rule.names)
    rules = [op.rule_for(name) for name, need in zip(names, needs, strict=True) if need]
    return {name for rule in rules if rule for name in rule.names}


@pytest.mark.parametrize("key", WITH_RULES)
def test_plans_save_what_the_formulas_request(key: str) -> None:
    op = REGISTRY[key]
    count = len(op.inputs) + (1 if op.variadic else 0)
    names = op.input_names(count)
    for mask in range(1, 1 << count):
        plan = op.backward_plan(mask, count)
        needs = tuple(bool(mask >> i & 1) for i in range(count))
        wants = requested(op, names, needs)
        for i, name in enumerate(names):
            several = op.variadic and i >= len(op.inputs) - 1 and op.inputs[-1] in wants
            assert (i in plan.saved_inputs) == (name in wants or several), f"{key} keeps {name}"
        kept = {op.output_names()[i] for i in plan.saved_outputs}
        assert kept == wants & set(op.output_names())
        params = {which for what, which in plan.consts if what == "param"}
        shown = {attribute.source for attribute in op.saved_attributes or ()}
        assert params == (wants | shown) & set(op.params)


@pytest.mark.parametrize("key", WITH_RULES)
def test_unknown_requests_are_refused(key: str) -> None:
    """A formula with an unknown parameter name is a DeclarationError."""
    op = REGISTRY[key]
    with pytest.raises(TypeError, match="requests"):
        op._rule(lambda g, no_such_name: g, key)


def test_options_without_effect_are_refused() -> None:
    with pytest.raises(TypeError, match="unsupported_dtypes of a composite has no effect"):
        composite(unsupported_dtypes={})(lambda xp, x: x)


def test_exp_saves_only_its_result() -> None:
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    node = torch.exp(x).grad_fn
    assert [n for n in dir(node) if n.startswith("_saved_") and n not in dir(type(node))] == ["_saved_result"]
    np.testing.assert_array_equal(node._saved_result.detach().numpy(), torch.exp(x).detach().numpy())


def test_mul_by_data_saves_only_the_data() -> None:
    weight, data = torch.ones(3, requires_grad=True), torch.ones(3)
    plan = (weight * data).grad_fn.plan
    assert plan.saved_inputs == (1,)


DOCUMENTED = sorted(key for key, op in REGISTRY.items() if op.doc and ">>>" in op.doc)


@pytest.mark.parametrize("key", DOCUMENTED)
def test_docstring_examples_run(key: str) -> None:
    """doctest does not search declared operators, which are objects."""
    test = doctest.DocTestParser().get_doctest(REGISTRY[key].doc or "", {}, key, None, None)
    said: list[str] = []
    doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE).run(test, out=said.append)
    assert not said, "".join(said)


def test_public_operators_show_an_example() -> None:
    silent = [key for key, op in REGISTRY.items() if op.expose and not key.startswith("_") and key not in DOCUMENTED]
    assert not silent, f"public operators without an example: {silent}"


#: public operators without a record, each with the reason
WITHOUT_RECORD: dict[str, str] = {}


def recorded() -> set[str]:
    found = set()
    for name, record in RECORDS.items():
        found |= {name, name.replace(".", "_"), name.rpartition(".")[2], *record.covers}
    return found


def test_every_public_operator_has_a_record() -> None:
    found = recorded()
    missing = [key for key, op in REGISTRY.items()
               if op.expose and op.kind != COMPOSITE and not key.startswith("_")
               and not {key, op.name, *op.aliases} & found and key not in WITHOUT_RECORD]
    assert not missing, f"operators without a record in tests/ops/records_*.py: {missing}"


def test_exceptions_are_operators() -> None:
    assert set(WITHOUT_RECORD) <= set(REGISTRY)
