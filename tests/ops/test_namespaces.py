"""The functions of each namespace `xp`; declarations use only these."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import pytest

from flambeau.backends.numpy import primitives
from flambeau.ops.declare import COMPOSITE, REGISTRY, Op
from tests.ops.namespaces import FILE, _names_in, entry, table


def test_the_table_is_up_to_date() -> None:
    """A name that a namespace gained or lost shows here; `python -m tests.ops.namespaces --write` updates the file."""
    assert table().splitlines() == FILE.read_text(encoding="utf-8").splitlines()


def formulas(op: Op) -> list[Any]:
    rules = [*op.vjp_rules.values(), op.joint_vjp_rule, op.jvp_rule]
    return [rule.function for rule in rules if rule is not None]


#: composites that run on tensors alone
TENSORS_ONLY = {key for key, op in REGISTRY.items() if op.kind == COMPOSITE and op.expose}


@pytest.mark.parametrize("key", sorted(set(REGISTRY) - TENSORS_ONLY))
def test_forwards_run_on_arrays(key: str) -> None:
    op = REGISTRY[key]
    if entry("arrays", key) != "own":
        missing = [name for name in _names_in(op.forward, set()) if entry("arrays", name) == "-"]
        assert not missing, f"the forward of {key} uses {missing}, which arrays do not have"


@pytest.mark.parametrize("key", sorted(key for key, op in REGISTRY.items() if formulas(op)))
def test_derivative_formulas_run_on_arrays_and_tensors(key: str) -> None:
    names = {name for function in formulas(REGISTRY[key]) for name in _names_in(function, set())}
    for column in ("arrays", "tensors"):
        missing = [name for name in names if entry(column, name) == "-"]
        assert not missing, f"the formulas of {key} use {missing}, which {column} do not have"


@pytest.mark.parametrize("name", sorted(set(primitives()) & set(REGISTRY)))
def test_a_primitive_takes_the_parameters_of_its_operator(name: str) -> None:
    """It is called in place of the operator's forward."""
    op = REGISTRY[name]
    try:
        signature = inspect.signature(primitives()[name])
    except ValueError:  # a ufunc
        assert isinstance(primitives()[name], np.ufunc)
        return
    inputs = [None] * len(op.inputs)
    assert signature.bind(*inputs, **dict.fromkeys(op.params))
    required = inputs[:len(inputs) - op.n_optional]
    assert signature.bind(*required, **{p: None for p in op.params if p not in op.defaults})
