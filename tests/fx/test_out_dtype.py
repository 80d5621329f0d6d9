"""`out_dtype`: values, errors, graphs and the node of its results."""

from __future__ import annotations

import importlib

import numpy as np
import pytest

import flambeau

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.parity

X = np.arange(-60, 60, 14, dtype=np.int8).reshape(3, 3)
CALLS = {
    "mm": lambda m, f, x: f(m.ops.aten.mm.default, m.int32, x, x),
    "mul by a number": lambda m, f, x: f(m.ops.aten.mul.Scalar, m.int32, x, 3.0),
    "mul, truncated": lambda m, f, x: f(m.ops.aten.mul.Tensor, m.int32, x, 3.7),
    "float": lambda m, f, x: f(m.ops.aten.mul.Tensor, m.float32, x, x),
    "narrower": lambda m, f, x: f(m.ops.aten.div.Tensor, m.int16, x.float(), 7),
    "another operator": lambda m, f, x: f(m.ops.aten.add.Tensor, m.int16, x, x),
    "in place": lambda m, f, x: f(m.ops.aten.add_.Tensor, m.int16, x, x),
    "a function": lambda m, f, x: f(m.add, m.int16, x, x),
    "two results": lambda m, f, x: f(m.ops.aten.topk.default, m.int16, x, 1),
    "a list": lambda m, f, x: f(m.ops.aten.split_copy.Tensor, m.int16, x, 1),
}


def of(module):
    return importlib.import_module(f"{module.__name__}._higher_order_ops.out_dtype").out_dtype


@pytest.mark.parametrize("call", CALLS)
def test_values_and_errors(call):
    def outcome(module):
        try:
            result = CALLS[call](module, of(module), module.tensor(X))
            return str(result.dtype).rpartition(".")[2], result.tolist()
        except ValueError as error:
            return str(error)

    assert outcome(flambeau) == outcome(torch)


def test_results_refuse_gradients():
    for module in (torch, flambeau):
        x = module.ones(2, 2, requires_grad=True)
        result = of(module)(module.ops.aten.mm.default, module.float64, x, x)
        assert result.requires_grad
        assert result.dtype is module.float64
        with pytest.raises(RuntimeError, match="Autograd not implemented for out_dtype"):
            result.sum().backward()


def product(module):
    def add_one(x, y):
        return of(module)(module.ops.aten.mm.default, module.int32, x, y) + 1

    return add_one


def test_graphs_have_one_node():
    code = []
    for module in (torch, flambeau):
        make_fx = importlib.import_module(f"{module.__name__}.fx.experimental.proxy_tensor").make_fx
        graph = make_fx(product(module))(module.tensor(X), module.tensor(X))
        assert graph(module.tensor(X), module.tensor(X)).tolist() == (X.astype(int) @ X + 1).tolist()
        code.append(graph.code)
    assert code[0] == code[1]
