"""`vmap`: in_dims and out_dims, nesting, chunks, errors, and printing."""

from __future__ import annotations

import warnings
from typing import Any

import pytest

import flambeau as torch
from flambeau.func import vmap


def test_dimensions_in_and_out() -> None:
    x, y = torch.randn(2, 3, 5), torch.randn(3, 7, 5)
    found = vmap(lambda a, b: a @ b, in_dims=(1, 0), out_dims=2)(x, y.transpose(1, 2))
    expected = torch.stack([x[:, k] @ y[k].T for k in range(3)], 2)
    torch.testing.assert_close(found, expected)


def test_negative_dimensions_and_nested_arguments() -> None:
    x, y = torch.randn(2, 3), torch.randn(3)
    found = vmap(lambda d, pair: {"sum": d["x"].sum() + pair[0] * pair[1]}, in_dims=({"x": -1}, (0, None)))(
        {"x": x}, (y, 2.0))
    torch.testing.assert_close(found["sum"], x.sum(0) + 2 * y)


def test_nested() -> None:
    x, y = torch.randn(3), torch.randn(4)
    outer = vmap(lambda a: vmap(lambda b: a * b)(y))(x)
    torch.testing.assert_close(outer, torch.outer(x, y))
    crossed = vmap(vmap(lambda a, b: a + b, in_dims=(None, 0)), in_dims=(0, None))(x, y)
    torch.testing.assert_close(crossed, x[:, None] + y)


def test_a_result_without_batch_is_repeated() -> None:
    assert vmap(lambda x: torch.ones(2))(torch.zeros(3)).tolist() == [[1., 1.]] * 3
    assert vmap(lambda x: torch.ones(2), out_dims=None)(torch.zeros(3)).tolist() == [1., 1.]


@pytest.mark.parametrize("chunk", [1, 2, 3, 7])
def test_chunks(chunk: int) -> None:
    x = torch.randn(7, 3)
    sizes = []

    def f(row: Any) -> Any:
        sizes.append(row._value.shape[0])
        return row.softmax(0), row.sum()

    soft, total = vmap(f, out_dims=(1, 0), chunk_size=chunk)(x)
    torch.testing.assert_close(soft, x.softmax(1).T)
    torch.testing.assert_close(total, x.sum(1))
    assert sum(sizes) == 7
    assert max(sizes) == chunk


def test_a_zero_dimensional_batch_counts_as_zero_dimensional_in_promotion() -> None:
    x, s = torch.randn(4, 3), torch.randn(4, dtype=torch.float64)
    assert vmap(lambda a, b: a * b)(x, s).dtype is torch.float32
    assert vmap(lambda a, b: a * b)(s, s.float()).dtype is torch.float64


def test_views_of_a_batch_share_its_memory() -> None:
    x = torch.zeros(3, 4)

    def f(row: Any) -> Any:
        row[1:3].add_(1)
        row[0] = 7
        return row.sum()

    assert vmap(f)(x).tolist() == [9., 9., 9.]
    assert x.tolist() == [[7., 1., 1., 0.]] * 3


def test_batched_writes_into_unbatched_tensors_raise() -> None:
    y = torch.zeros(3)
    with pytest.raises(RuntimeError, match="doesn't match the broadcast shape"):
        vmap(lambda x: y.add_(x))(torch.ones(2, 3))
    assert not y.any()


@pytest.mark.parametrize(("function", "said"), [
    (lambda x: x.item(), r"calling .item\(\) on a Tensor"),
    (lambda x: x if x > 0 else -x, "data-dependent control flow"),
    (lambda x: x.data, "accessing `data` under vmap"),
])
def test_reading_elements_raises(function: Any, said: str) -> None:
    with pytest.raises(RuntimeError, match=said):
        vmap(function)(torch.ones(3))


@pytest.mark.parametrize(("call", "said"), [
    (lambda: vmap(torch.sin)(), "got no inputs"),
    (lambda: vmap(torch.sin, in_dims="a")(torch.ones(2)), "expected `in_dims` to be int or"),
    (lambda: vmap(torch.sin, in_dims=(0, 1))(torch.ones(2)), "in_dims is not compatible with the structure"),
    (lambda: vmap(torch.sin, in_dims=(None,))(torch.ones(2)), "Expected at least one Tensor to vmap over"),
    (lambda: vmap(torch.sin)(3.0), "cannot vmap over non-Tensor arguments"),
    (lambda: vmap(torch.sin, in_dims=2)(torch.ones(2)), "expected in_dim to satisfy -1 <= in_dim < 1"),
    (lambda: vmap(torch.add)(torch.ones(2), torch.ones(3)), r"got sizes \[2, 3\]"),
    (lambda: vmap(lambda x: 3)(torch.ones(2)), "must only return Tensors"),
    (lambda: vmap(lambda x: x, out_dims="a")(torch.ones(2)), "`out_dims` must be an int, None or"),
    (lambda: vmap(lambda x: x, out_dims=None)(torch.ones(2)), "can not return a BatchedTensor when out_dim is None"),
    (lambda: vmap(lambda x: x, chunk_size=0)(torch.ones(2)), "chunk_size should be None or greater than 0"),
])
def test_errors(call: Any, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        call()


def test_repr_of_batched_tensors() -> None:
    texts = []
    vmap(lambda x: (texts.append(repr(x)), x)[1], in_dims=1)(torch.tensor([[1., 2.], [3., 4.]]))
    assert texts == ["BatchedTensor(lvl=1, bdim=1, value=\n    tensor([[1., 2.],\n            [3., 4.]])\n)"]
    torch.func.grad(lambda x: (texts.append(repr(x)), x)[1])(torch.tensor(1.))
    assert texts[1] == "GradTrackingTensor(lvl=1, value=\n    tensor(1.)\n)"


def test_operators_without_batching_rule_loop_and_warn_once() -> None:
    from flambeau._tensor.dispatch import batching_rules
    from flambeau.ops.declare import REGISTRY

    op = REGISTRY["sort"] if "sort" in REGISTRY else REGISTRY["_sort"]
    kept, op.batching_rule = op.batching_rule, None
    batching_rules._warned.clear()
    try:
        x = torch.tensor([[2., 1.], [3., 4.]])
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            first = vmap(lambda row: row.sort()[0])(x)
            vmap(lambda row: row.sort()[0])(x)
    finally:
        op.batching_rule = kept
    assert first.tolist() == [[1., 2.], [3., 4.]]
    said = [str(w.message) for w in caught if "performance drop" in str(w.message)]
    assert len(said) == 1
    assert "aten::sort" in said[0]


class Cube(torch.autograd.Function):
    """x^3 with a rule generated for batches."""

    generate_vmap_rule = True

    @staticmethod
    def forward(x: Any, scale: float) -> Any:
        return scale * x ** 3

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.save_for_backward(inputs[0])
        ctx.save_for_forward(inputs[0])
        ctx.scale = inputs[1]

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        x, = ctx.saved_tensors
        return g * 3 * ctx.scale * x ** 2, None

    @staticmethod
    def jvp(ctx: Any, t: Any, _: Any) -> Any:
        x, = ctx.saved_tensors
        return t * 3 * ctx.scale * x ** 2


def test_functions_with_a_generated_rule() -> None:
    x = torch.tensor([1., 2., 3.])
    f = lambda v: Cube.apply(v, 2.0)
    torch.testing.assert_close(vmap(f)(x), 2 * x ** 3)
    torch.testing.assert_close(vmap(torch.func.grad(f))(x), 6 * x ** 2)
    torch.testing.assert_close(vmap(torch.func.grad(torch.func.grad(f)))(x), 12 * x)
    torch.testing.assert_close(torch.func.grad(lambda v: vmap(f)(v).sum())(x), 6 * x ** 2)
    torch.testing.assert_close(torch.func.jacfwd(vmap(f))(x), torch.diag(6 * x ** 2))
    torch.testing.assert_close(torch.func.jacrev(vmap(f))(x), torch.diag(6 * x ** 2))


def test_functions_with_a_vmap_method() -> None:
    seen = []

    class Double(torch.autograd.Function):
        @staticmethod
        def forward(x: Any) -> Any:
            return x * 2

        @staticmethod
        def setup_context(ctx: Any, inputs: Any, output: Any) -> None: ...

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g * 2

        @staticmethod
        def vmap(info: Any, in_dims: Any, x: Any) -> Any:
            seen.append((info.batch_size, info.randomness, in_dims, tuple(x.shape)))
            return Double.apply(x), in_dims[0]

    x = torch.randn(3, 4)
    torch.testing.assert_close(vmap(Double.apply, in_dims=1, randomness="same")(x), 2 * x.T)
    assert seen == [(4, "same", (1,), (3, 4))]
    torch.testing.assert_close(vmap(vmap(Double.apply))(x), 2 * x)


def test_functions_without_a_rule_raise() -> None:
    class Plain(torch.autograd.Function):
        @staticmethod
        def forward(x: Any) -> Any:
            return x.clone()

        @staticmethod
        def setup_context(ctx: Any, inputs: Any, output: Any) -> None: ...

    with pytest.raises(RuntimeError, match="does not have vmap support"):
        vmap(Plain.apply)(torch.ones(2))
