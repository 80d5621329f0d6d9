"""Models under `vmap`: per-sample gradients and model ensembles, compared with loops."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import flambeau as torch
from flambeau import nn
from flambeau.func import grad, jacrev, vmap

F = nn.functional


def assert_close(actual: Any, expected: Any) -> None:
    assert actual.shape == expected.shape
    np.testing.assert_allclose(actual.detach().numpy(), expected.detach().numpy(), rtol=1e-9, atol=1e-11)


def draw(*size: int) -> Any:
    return torch.randn(*size, dtype=torch.float64)


# Each model is a pure function of parameters and one or more samples, as `functional_call` makes it.


def mlp(p: dict[str, Any], x: Any) -> Any:
    x = F.gelu(F.linear(x, p["first"], p["shift"]))
    x = F.layer_norm(x, (5,), p["scale"], p["offset"])
    return F.linear(x, p["last"])


def mlp_parameters() -> dict[str, Any]:
    return {"first": draw(5, 4), "shift": draw(5), "scale": draw(5), "offset": draw(5), "last": draw(3, 5)}


def cnn(p: dict[str, Any], x: Any) -> Any:
    batch = x if x.dim() == 4 else x.unsqueeze(0)
    y = F.max_pool2d(F.relu(F.conv2d(batch, p["kernels"], p["shift"], padding=1)), 2)
    y = F.group_norm(y, 2, p["scale"], p["offset"])
    y = F.avg_pool2d(F.conv2d(y, p["grouped"], stride=1, groups=2), 2)
    y = F.linear(y.flatten(1), p["last"])
    return y if x.dim() == 4 else y.squeeze(0)


def cnn_parameters() -> dict[str, Any]:
    return {"kernels": draw(4, 1, 3, 3), "shift": draw(4), "scale": draw(4), "offset": draw(4),
            "grouped": draw(2, 2, 2, 2), "last": draw(3, 2)}


def attention(p: dict[str, Any], x: Any) -> Any:
    q, k, v = F.linear(x, p["queries"]), F.linear(x, p["keys"]), F.linear(x, p["values"])
    y = F.scaled_dot_product_attention(q, k, v)
    return F.linear(F.rms_norm(y + x, (4,), p["scale"]).mean(-2), p["last"])


def attention_parameters() -> dict[str, Any]:
    return {"queries": draw(4, 4), "keys": draw(4, 4), "values": draw(4, 4), "scale": draw(4), "last": draw(3, 4)}


MODELS: dict[str, tuple[Callable[..., Any], Callable[[], dict[str, Any]], tuple[int, ...]]] = {
    "mlp": (mlp, mlp_parameters, (4,)),
    "cnn": (cnn, cnn_parameters, (1, 6, 6)),
    "attention": (attention, attention_parameters, (5, 4)),
}


def loss_of(model: Callable[..., Any]) -> Callable[..., Any]:
    def loss(p: dict[str, Any], x: Any, y: Any) -> Any:
        return F.cross_entropy(model(p, x), y)

    return loss


@pytest.mark.parametrize("name", sorted(MODELS))
def test_per_sample_gradients(name: str) -> None:
    torch.manual_seed(0)
    model, parameters, shape = MODELS[name]
    p, x, y = parameters(), draw(6, *shape), torch.tensor([0, 2, 1, 1, 0, 2])
    loss = loss_of(model)
    actual = vmap(grad(loss), (None, 0, 0))(p, x, y)
    for k in range(6):
        expected = grad(loss)(p, x[k], y[k])
        for key in p:
            assert_close(actual[key][k], expected[key])


@pytest.mark.parametrize("name", sorted(MODELS))
def test_per_sample_gradients_sum_to_the_batch_gradient(name: str) -> None:
    torch.manual_seed(1)
    model, parameters, shape = MODELS[name]
    p, x, y = parameters(), draw(4, *shape), torch.tensor([0, 2, 1, 1])
    actual = vmap(grad(loss_of(model)), (None, 0, 0))(p, x, y)
    of_batch = grad(lambda p: F.cross_entropy(model(p, x), y, reduction="sum"))(p)
    for key in p:
        assert_close(actual[key].sum(0), of_batch[key])


@pytest.mark.parametrize("samples", [None, 0])
@pytest.mark.parametrize("name", sorted(MODELS))
def test_ensemble_equals_loop_over_models(name: str, samples: int | None) -> None:
    torch.manual_seed(2)
    model, parameters, shape = MODELS[name]
    each = [parameters() for _ in range(3)]
    stacked = {key: torch.stack([p[key] for p in each]) for key in each[0]}
    x = draw(2, *shape) if samples is None else draw(3, 2, *shape)
    y = torch.tensor([0, 1])

    def loss(p: dict[str, Any], x: Any) -> Any:
        return F.cross_entropy(model(p, x), y)

    actual = vmap(model, (0, samples))(stacked, x)
    slopes = vmap(grad(loss), (0, samples))(stacked, x)
    for k, p in enumerate(each):
        one = x if samples is None else x[k]
        assert_close(actual[k], model(p, one))
        expected = grad(loss)(p, one)
        for key in p:
            assert_close(slopes[key][k], expected[key])


def test_ensemble_per_sample_gradients() -> None:
    torch.manual_seed(3)
    each = [cnn_parameters() for _ in range(2)]
    stacked = {key: torch.stack([p[key] for p in each]) for key in each[0]}
    x, y = draw(3, 1, 6, 6), torch.tensor([0, 1, 2])
    loss = loss_of(cnn)
    actual = vmap(vmap(grad(loss), (None, 0, 0)), (0, None, None))(stacked, x, y)
    for i, p in enumerate(each):
        for k in range(3):
            expected = grad(loss)(p, x[k], y[k])
            for key in p:
                assert_close(actual[key][i, k], expected[key])


def test_gradient_of_per_sample_gradients() -> None:
    """grad of vmap of grad: the per-sample gradient norms, differentiated with respect to the parameters."""
    torch.manual_seed(4)
    p, x, y = mlp_parameters(), draw(3, 4), torch.tensor([0, 1, 2])
    loss = loss_of(mlp)

    def norms(p: dict[str, Any]) -> Any:
        g = vmap(grad(loss), (None, 0, 0))(p, x, y)
        return sum((v * v).sum() for v in g.values())

    def one_by_one(p: dict[str, Any]) -> Any:
        gs = [grad(loss)(p, x[k], y[k]) for k in range(3)]
        return sum((v * v).sum() for g in gs for v in g.values())

    actual, expected = grad(norms)(p), grad(one_by_one)(p)
    for key in p:
        assert_close(actual[key], expected[key])


@pytest.mark.parametrize("name", sorted(MODELS))
def test_jacrev_equals_loop_over_rows(name: str) -> None:
    """`jacrev` vmaps over cotangents; the graph itself is not batched."""
    torch.manual_seed(5)
    model, parameters, shape = MODELS[name]
    p, x = parameters(), draw(*shape)
    actual = jacrev(lambda x: model(p, x))(x)
    for k in range(3):
        assert_close(actual[k], grad(lambda x, k=k: model(p, x)[k])(x))


@pytest.mark.parametrize("training", [True, False])
def test_batch_norm_batched_running_statistics(training: bool) -> None:
    torch.manual_seed(6)
    x, mean, var = draw(3, 4, 2, 5), draw(3, 2), draw(3, 2).abs()
    weight, bias = draw(2), draw(3, 2)
    means, variances = mean.clone(), var.clone()

    def normalized(x: Any, m: Any, v: Any, b: Any) -> Any:
        return F.batch_norm(x, m, v, weight, b, training=training)

    actual = vmap(normalized)(x, means, variances, bias)
    for k in range(3):
        m, v = mean[k].clone(), var[k].clone()
        assert_close(actual[k], normalized(x[k], m, v, bias[k]))
        assert_close(means[k], m)
        assert_close(variances[k], v)


def test_batch_norm_rejects_update_of_unbatched_running_statistics() -> None:
    with pytest.raises(RuntimeError, match="Batch norm got a batched tensor as input while the running_mean"):
        vmap(lambda x: F.batch_norm(x, torch.zeros(2), torch.ones(2), training=True))(torch.ones(3, 4, 2))


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("on", [(0, 0, 0), (0, 0, None), (None, 0, None), (None, None, 0), (0, None, 0)])
def test_losses_of_classes_with_weights_and_ignored_targets(on: tuple[Any, ...], reduction: str) -> None:
    torch.manual_seed(7)
    given = [draw(3, 4, 5), torch.randint(5, (3, 4)), draw(3, 5).abs()]
    given = [x if d == 0 else x[0] for x, d in zip(given, on, strict=True)]

    def loss(x: Any, t: Any, w: Any) -> Any:
        return F.cross_entropy(x, t, w, reduction=reduction, ignore_index=2, label_smoothing=0.1)

    actual = vmap(loss, on)(*given)
    slopes = vmap(grad(lambda *a: loss(*a).sum()), on)(*given)
    for k in range(3):
        one = [x[k] if d == 0 else x for x, d in zip(given, on, strict=True)]
        assert_close(actual[k], loss(*one))
        assert_close(slopes[k], grad(lambda *a: loss(*a).sum())(*one))


@pytest.mark.parametrize("groups", [1, 2])
@pytest.mark.parametrize("on", [(0, None), (None, 0), (0, 0)])
@pytest.mark.parametrize("transposed", [False, True])
def test_convolutions_with_either_operand_batched(transposed: bool, on: tuple[Any, Any], groups: int) -> None:
    torch.manual_seed(8)
    convolve = F.conv_transpose2d if transposed else F.conv2d
    x = draw(*([3] if on[0] == 0 else []), 2, 4, 5, 6)
    w = draw(*([3] if on[1] == 0 else []), 4, 6 // groups if transposed else 4 // groups, 3, 2)

    def total(x: Any, w: Any) -> Any:
        return (convolve(x, w, stride=(2, 1), padding=1, groups=groups) ** 2).sum()

    actual = vmap(grad(total, (0, 1)), on)(x, w)
    twice = vmap(grad(lambda x, w: (grad(total)(x, w) ** 2).sum(), (0, 1)), on)(x, w)
    for k in range(3):
        one = [t[k] if d == 0 else t for t, d in zip((x, w), on, strict=True)]
        for got, want in zip(actual, grad(total, (0, 1))(*one), strict=True):
            assert_close(got[k], want)
        expected = grad(lambda x, w: (grad(total)(x, w) ** 2).sum(), (0, 1))(*one)
        for got, want in zip(twice, expected, strict=True):
            assert_close(got[k], want)
