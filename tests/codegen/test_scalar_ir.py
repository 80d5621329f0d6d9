from __future__ import annotations

import copy
import gc
import pickle
import weakref

import numpy as np
import pytest

from flambeau.codegen.scalar import scalar_ir as e
from flambeau.dtypes import BFLOAT16


def test_equal_expressions_are_one_object():
    x, y = e.variable(0, "float32"), e.variable(1, "float32")
    assert e.tanh(x * y + 2) is e.tanh(x * y + 2.0)
    assert x * y is not y * x
    assert e.constant(0.0, "float32") is not e.constant(-0.0, "float32")
    assert e.constant(float("nan"), "float64") is e.constant(float("nan"), "float64")
    assert pickle.loads(pickle.dumps(x * y)) is copy.deepcopy(x * y) is x * y


def test_unreferenced_nodes_are_freed():
    kept = e.sin(e.variable(777_777, "float64"))
    references = [weakref.ref(node) for node in (kept, kept.args[0])]
    assert all(any(node is reference() for node in e._made.values()) for reference in references)
    del kept
    gc.collect()
    assert [reference() for reference in references] == [None, None]


def test_narrow_floats_are_widened_and_scalars_take_the_nodes_dtype():
    h, b = e.variable(0, "float16"), e.variable(1, BFLOAT16)
    total = h + b
    assert total.dtype == np.float32
    assert [arg.op for arg in total.args] == ["cast", "cast"]
    assert e.cast(e.variable(0, "float64"), "float16").args[0].dtype == np.float32
    assert (e.variable(0, "int32") + 1).dtype == np.int32
    assert (e.variable(0, "float32") < 1).dtype == np.bool_


@pytest.mark.parametrize("make", [
    lambda: e.variable(0, "complex64"), lambda: e.variable(0, ">f4"), lambda: e.variable(0, "U3"),
    lambda: e.variable(0, "float32") + e.variable(1, "float64"), lambda: e.variable(0, "int32") + 0.5,
    lambda: e.exp(e.variable(0, "int64")), lambda: ~e.variable(0, "float32"), lambda: e.apply("frobnicate", 1),
    lambda: e.apply("add", e.variable(0, "float32")), lambda: e.apply("add", 1, 2),
    lambda: e.select(e.variable(0, "float32"), 1, 2), lambda: bool(e.variable(0, "float32")),
    lambda: e.variable(0, "bool") + e.variable(1, "bool"),
])
def test_invalid_expressions_raise_type_error(make):
    with pytest.raises(TypeError):
        make()


def test_the_text_is_the_same_for_the_same_expression():
    x = e.variable(0, "float32")
    assert e.canonical_text([x * x + 1]).splitlines() == [
        "%0 = input.float32 0", "%1 = mul.float32 %0 %0", "%2 = constant.float32 0000803f",
        "%3 = add.float32 %1 %2", "out %3"]


def test_deep_expressions_need_no_recursion():
    x = node = e.variable(0, "float32")
    for _ in range(5000):
        node = node + x
    assert len(e.topological_order([node])) == 5001
    assert e.cost([node]) == 5000


def test_every_function_has_its_operation():
    from flambeau.codegen.math import functions

    assert set(functions.FUNCTIONS) <= set(e.FLOATING)
    assert set(e.TRANSCENDENTAL) <= set(functions.FUNCTIONS)
    assert {name for name in functions.FUNCTIONS if e.FLOATING[name] == 2} == functions.BINARY
