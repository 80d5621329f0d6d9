"""Graphs of `make_fx` with `cond`, `while_loop`, `map` and `scan` compared with PyTorch: code and results."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import flambeau
from flambeau.fx.experimental.proxy_tensor import make_fx
from flambeau.ops.function_operators import HigherOrderOperator

pytorch = pytest.importorskip("torch")
pytestmark = [pytest.mark.parity, pytest.mark.filterwarnings("ignore")]


def branches(t: Any, h: Any) -> Any:
    y, p = t.full((3,), 2.0), t.nn.Parameter(t.ones(3))
    return lambda x, z: t.cond((x * z).sum() > 0, lambda a: (a.sin() * y, {"k": a * p}),
                               lambda a: (a.cos() + z, {"k": a + 1}), (x,))


def nested_branches(t: Any, h: Any) -> Any:
    def inner(a: Any) -> Any:
        return t.cond(a.sum() > 2, lambda b: b + 1, lambda b: b - 1, (a,))

    return lambda x, z: t.cond(x.sum() > 0, inner, lambda a: a * 2, (x * z,))


def loop(t: Any, h: Any) -> Any:
    return lambda x, z: t.while_loop(lambda a: a.sum() < 50, lambda a: (a + z * 2,), (x.abs(),))


def mapped(t: Any, h: Any) -> Any:
    return lambda x, z: h.map.map(lambda a, b: (a * b.sum(), {"d": a + 1}), x, z)


def scanned(t: Any, h: Any) -> Any:
    w = t.ones(())
    return lambda x, z: h.scan.scan(lambda c, a: ((c[0] + a * w,), {"k": c[0] * a}), (z[0],), x)


def scanned_backward(t: Any, h: Any) -> Any:
    return lambda x, z: h.scan.scan(lambda c, a: (c + a, c * a), z[0], x, reverse=True)


PROGRAMS = [branches, nested_branches, loop, mapped, scanned, scanned_backward]


def _code(module: Any) -> list[str]:
    return [module.code.strip(), *(line for child in module.children() for line in _code(child))]


@pytest.mark.parametrize("program", PROGRAMS)
def test_code_and_results(program: Callable[[Any, Any], Any]) -> None:
    importlib.import_module("torch._dynamo").reset()  # else it remembers what differed between calls
    found = []
    for t in (flambeau, pytorch):
        proxy_tensor = importlib.import_module(f"{t.__name__}.fx.experimental.proxy_tensor")
        for name in ("map", "scan"):
            importlib.import_module(f"{t.__name__}._higher_order_ops.{name}")
        h = type("h", (), {name: importlib.import_module(f"{t.__name__}._higher_order_ops.{name}")
                           for name in ("map", "scan")})
        module = proxy_tensor.make_fx(program(t, h))(t.tensor([1.0, 2.0, 3.0]), t.tensor([1.0, 0.5, 2.0]))
        results = [t.utils._pytree.tree_map(lambda x: x.tolist(), module(t.tensor(values), t.tensor([1.0, 0.5, 2.0])))
                   for values in ([1.0, 2.0, 3.0], [-1.0, -2.0, 0.5])]
        found.append((_code(module), results))
    (code, results), (expected_code, expected) = found
    assert code == expected_code
    assert str(results) == str(expected)


def test_vmap_of_cond_chooses_for_each_example() -> None:
    x = [[0.5, 1.0], [2.0, 3.0]]
    found = [t.vmap(lambda p, x, t=t: t.cond(p, t.sin, t.cos, (x,)))(t.tensor([True, False]), t.tensor(x)).tolist()
             for t in (flambeau, pytorch)]
    np.testing.assert_allclose(found[0], found[1], rtol=1e-6)


@pytest.mark.parametrize(("branch", "text"), [
    (lambda a: (a, a), "number of outputs"), (lambda a: a.sum(), "merging two branches"),
    (lambda a: a.add_(1), "modifying the input")])
def test_refused_branches(branch: Any, text: str) -> None:
    with pytest.raises(RuntimeError, match=text):
        make_fx(lambda x: flambeau.cond(x.sum() > 0, branch, lambda a: a * 2, (x,)))(flambeau.ones(3))


def test_tracing_draws_no_numbers() -> None:
    def f(x: Any) -> Any:
        return flambeau.cond(x.sum() > 0, lambda a: a + flambeau.rand(3), lambda a: a * 2, (x,))

    flambeau.manual_seed(0)
    make_fx(f)(flambeau.ones(3))
    after = flambeau.rand(1)
    flambeau.manual_seed(0)
    flambeau.rand(3)
    assert flambeau.equal(after, flambeau.rand(1))


def test_operators_of_programs() -> None:
    class Twice(HigherOrderOperator):
        def __init__(self) -> None:
            super().__init__("twice_for_tests")

    twice = Twice()
    with pytest.raises(NotImplementedError, match="could not find kernel for HigherOrderOperator twice_for_tests"):
        twice(abs, 1)
    twice.py_impl("CompositeExplicitAutograd")(lambda f, x: f(f(x)))
    assert flambeau.ops.higher_order.twice_for_tests(lambda x: x * 3, 1) == 9
    with pytest.raises(RuntimeError, match="Direct instantiation"):
        HigherOrderOperator("a")
    with pytest.raises(NotImplementedError, match="does not trace the HigherOrderOperator twice_for_tests"):
        make_fx(lambda x: twice(flambeau.sin, x))(flambeau.ones(1))
