"""Operators on tensors inside transforms, where values of batches and tensors of no level take the fast paths."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import numpy as np
import pytest

import flambeau

pytorch = pytest.importorskip("torch")
pytestmark = pytest.mark.parity

RNG = np.random.default_rng(0)
V, W, M, S = (RNG.normal(size=size).astype(np.float32) for size in ((3, 4), (3, 4), (3, 2, 4), (3,)))
D, I = RNG.normal(size=(3,)), RNG.integers(0, 5, (3, 4))

#: operands of one example: of one shape, of unlike numbers of dimensions, dtypes, and numbers
OPERANDS: dict[str, tuple[Any, ...]] = {
    "alike": (lambda t, x, y: x * y - y, V, W), "scalars": (lambda t, x, y: x + y, S, S),
    "vector and matrix": (lambda t, x, y: x * y, V, M), "matrix and vector": (lambda t, x, y: x / y, M, V),
    "scalar and matrix": (lambda t, x, y: x - y, S, M), "shared matrix": (lambda t, x: x + t.ones(2, 4), V),
    "shared vector": (lambda t, x: t.arange(4.) * x, M), "shared scalar": (lambda t, x: x * t.tensor(2.), V),
    "shared float64 scalar": (lambda t, x: x * t.tensor(2., dtype=t.float64), V),
    "shared float64 vector": (lambda t, x: x * t.ones(4, dtype=t.float64), S),
    "float64 scalar": (lambda t, x, y: x * y, V, D), "float64 scalars": (lambda t, x, y: x * y, S, D),
    "integers": (lambda t, x, y: x + y, V, I), "integers alone": (lambda t, x: x / 2, I),
    "numbers": (lambda t, x: 1 - x * 2, V), "comparisons": (lambda t, x, y: (x > y) & (x > 0), V, W),
    "maximum": (lambda t, x, y: t.maximum(x, y), V, M), "unary": (lambda t, x: t.tanh(x).exp().abs(), V),
    "unary of integers": (lambda t, x: t.sin(x), I), "dot": (lambda t, x, y: t.dot(x, y), V, W),
    "mv": (lambda t, x, y: t.mv(x, y), M, V), "mm": (lambda t, x: t.mm(x, x.t()), M),
    "linear": (lambda t, x, w: t.nn.functional.linear(x, w), V, M),
    "linear of rows": (lambda t, x, w, b: t.nn.functional.linear(x, w, b), M, M, V[:, :2]),
    "linear of a vector": (lambda t, x, w, b: t.nn.functional.linear(x, w, b), V, M, V[:, :2]),
    "linear, shared weight": (lambda t, x, b: t.nn.functional.linear(x, t.ones(2, 4), b), V, V[:, :2]),
    "linear, shared input": (lambda t, w: t.nn.functional.linear(t.ones(4), w), M),
    "dims": (lambda t, x: t.softmax(x, -1).sum(0).unsqueeze(-1).mean(), M), "sum": (lambda t, x: x.sum(), S),
    "sum of all": (lambda t, x: x.sum() + x.mean(), M), "max": (lambda t, x: x.max(-1).values, M),
}


def tensors(library: Any, arrays: Any) -> list[Any]:
    return [library.from_numpy(a.copy()) for a in arrays]


def same(ours: Any, theirs: Any) -> None:
    if isinstance(theirs, (tuple, list)):
        assert len(ours) == len(theirs)
        for a, b in zip(ours, theirs, strict=True):
            same(a, b)
        return
    assert str(ours.dtype).rpartition(".")[2] == str(theirs.dtype).rpartition(".")[2]
    np.testing.assert_allclose(ours.detach().numpy(), theirs.detach().numpy(), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", OPERANDS)
def test_operands_of_examples(name: str) -> None:
    function, *arrays = OPERANDS[name]
    def run(t: Any) -> Any:
        return t.vmap(lambda *xs: function(t, *xs))(*tensors(t, arrays))

    same(run(flambeau), run(pytorch))


@pytest.mark.parametrize("name", OPERANDS)
def test_operands_of_two_levels(name: str) -> None:
    """The first operand belongs to the outer level, too."""
    function, first, *others = OPERANDS[name]
    def run(t: Any) -> Any:
        x, *rest = tensors(t, (np.stack([first, first + 1]), *others))
        return t.vmap(lambda x: t.vmap(lambda *xs: function(t, *xs))(x, *rest))(x)

    same(run(flambeau), run(pytorch))


@pytest.mark.parametrize("name", OPERANDS)
def test_derivatives(name: str) -> None:
    """A gradient for each example, tangents, tangents of batches and of gradients."""
    function, *arrays = OPERANDS[name]
    floats = [i for i, a in enumerate(arrays) if a.dtype.kind == "f"]
    if name == "comparisons" or not floats:
        return

    def run(t: Any) -> list[Any]:
        xs = tensors(t, arrays)

        def loss(*xs: Any) -> Any:
            return (function(t, *xs) ** 2).sum()

        def of_first(x: Any) -> Any:
            return loss(*[x[0] if i == floats[0] else y[0] for i, y in enumerate(xs)])

        x = xs[floats[0]]
        mapped = t.vmap(t.func.grad(loss, tuple(floats)))
        tangents = tuple(y * 0.5 for y in (xs[i] for i in floats))

        def with_floats(f: Any) -> Any:
            return lambda *given: f(*[given[floats.index(i)] if i in floats else y for i, y in enumerate(xs)])

        return [mapped(*xs), t.func.jvp(of_first, (x,), (x * 2,)), t.func.jvp(t.func.grad(of_first), (x,), (x * 2,)),
                t.func.jvp(with_floats(t.vmap(loss)), tuple(xs[i] for i in floats), tangents),
                t.vmap(lambda v: t.func.jvp(of_first, (x,), (v,))[1])(t.stack([x, x + 1]))]

    same(run(flambeau), run(pytorch))


@pytest.mark.parametrize("groups", [1, 2])
@pytest.mark.parametrize("batched", ["both", "images", "weights"])
def test_convolutions_of_batches(groups: int, batched: str) -> None:
    images = RNG.normal(size=(3, 2, 4, 5, 6)).astype(np.float32)
    weights = RNG.normal(size=(3, 4, 4 // groups, 3, 2)).astype(np.float32)
    in_dims = {"both": (0, 0), "images": (0, None), "weights": (None, 0)}[batched]

    def run(t: Any) -> list[Any]:
        x, w = tensors(t, (images if in_dims[0] == 0 else images[0], weights if in_dims[1] == 0 else weights[0]))

        def convolve(x: Any, w: Any) -> Any:
            return t.nn.functional.conv2d(x, w, padding=1, groups=groups)

        return [t.vmap(convolve, in_dims)(x, w),
                t.vmap(t.func.grad(lambda x, w: (convolve(x, w) ** 2).sum(), (0, 1)), in_dims)(x, w)]

    for ours, theirs in zip(run(flambeau), run(pytorch), strict=True):
        for a, b in zip(ours if isinstance(ours, tuple) else [ours], theirs if isinstance(theirs, tuple) else [theirs],
                        strict=True):
            np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-4, atol=1e-4)


def test_an_output_with_a_recorded_tangent_is_freed() -> None:
    """The tangent's node saves the output, but not the tensor that refers to the tangent."""
    x = flambeau.ones(3, requires_grad=True)
    gc.collect()
    gc.disable()
    try:
        out, tangent = flambeau.func.jvp(flambeau.exp, (x,), (flambeau.ones(3, requires_grad=True),))
        reference = weakref.ref(out)
        del out, tangent
        assert reference() is None
    finally:
        gc.enable()


@pytest.mark.parametrize("function", ["tanh", "exp", "sigmoid", "sqrt"])
def test_tangents_by_formulas_of_results_are_compiled(function: str) -> None:
    """The tracer knows a result before the formula of its tangent reads it."""
    x = flambeau.tensor([0.5, 1.5])
    f = getattr(flambeau, function)

    def push(x: Any) -> Any:
        return flambeau.func.jvp(f, (x,), (x,))[1]

    assert "is one program" in str(flambeau._dynamo.explain(push)(x))
    flambeau.testing.assert_close(flambeau.compile(push)(x), push(x))


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("rows", [True, False])
@pytest.mark.parametrize("in_dims", [((None, 0), (0, None)), ((0, None), (None, 0))])
def test_linear_with_a_batched_tangent_of_an_unbatched_weight(bias: bool, rows: bool, in_dims: Any) -> None:
    f64 = flambeau.float64
    weight, b = flambeau.randn(2, 3, dtype=f64), flambeau.randn(2, dtype=f64) if bias else None
    tangents, inputs = flambeau.randn(4, 2, 3, dtype=f64), flambeau.randn(5, 3, dtype=f64)

    def directional(tangent: Any, x: Any) -> Any:
        def layer(w: Any) -> Any:
            return flambeau.nn.functional.linear(x[None] if rows else x, w, b).tanh()

        return flambeau.func.jvp(layer, (weight,), (tangent,))[1]

    batched = flambeau.func.vmap(flambeau.func.vmap(directional, in_dims[0]), in_dims[1])(tangents, inputs)
    of_tangents = flambeau.stack([flambeau.stack([directional(tangent, x) for x in inputs]) for tangent in tangents])
    assert flambeau.allclose(batched, of_tangents if in_dims[1][0] == 0 else of_tangents.transpose(0, 1))
