"""Models under `vmap`: gradients for each sample, and ensembles of models, against loops over them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import flambeau as torch
from flambeau import nn
from flambeau.func import grad, jacrev, vmap

F = nn.functional


def near(found: Any, expected: Any) -> None:
    assert found.shape == expected.shape
    np.testing.assert_allclose(found.detach().numpy(), expected.detach().numpy(), rtol=1e-9, atol=1e-11)


def draw(*size: int) -> Any:
    return torch.randn(*size, dtype=torch.float64)


# Each model is a function of its parameters and one sample (or some): what `functional_call` makes of a module.


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
def test_gradients_for_each_sample(name: str) -> None:
    torch.manual_seed(0)
    model, parameters, shape = MODELS[name]
    p, x, y = parameters(), draw(6, *shape), torch.tensor([0, 2, 1, 1, 0, 2])
    loss = loss_of(model)
    found = vmap(grad(loss), (None, 0, 0))(p, x, y)
    for k in range(6):
        expected = grad(loss)(p, x[k], y[k])
        for key in p:
            near(found[key][k], expected[key])


@pytest.mark.parametrize("name", sorted(MODELS))
def test_the_gradients_of_samples_add_up_to_that_of_their_batch(name: str) -> None:
    torch.manual_seed(1)
    model, parameters, shape = MODELS[name]
    p, x, y = parameters(), draw(4, *shape), torch.tensor([0, 2, 1, 1])
    found = vmap(grad(loss_of(model)), (None, 0, 0))(p, x, y)
    whole = grad(lambda p: F.cross_entropy(model(p, x), y, reduction="sum"))(p)
    for key in p:
        near(found[key].sum(0), whole[key])


@pytest.mark.parametrize("samples", [None, 0])
@pytest.mark.parametrize("name", sorted(MODELS))
def test_an_ensemble_is_a_loop_over_its_models(name: str, samples: int | None) -> None:
    torch.manual_seed(2)
    model, parameters, shape = MODELS[name]
    each = [parameters() for _ in range(3)]
    stacked = {key: torch.stack([p[key] for p in each]) for key in each[0]}
    x = draw(2, *shape) if samples is None else draw(3, 2, *shape)
    y = torch.tensor([0, 1])

    def loss(p: dict[str, Any], x: Any) -> Any:
        return F.cross_entropy(model(p, x), y)

    found = vmap(model, (0, samples))(stacked, x)
    slopes = vmap(grad(loss), (0, samples))(stacked, x)
    for k, p in enumerate(each):
        one = x if samples is None else x[k]
        near(found[k], model(p, one))
        expected = grad(loss)(p, one)
        for key in p:
            near(slopes[key][k], expected[key])


def test_an_ensemble_gives_gradients_for_each_sample() -> None:
    torch.manual_seed(3)
    each = [cnn_parameters() for _ in range(2)]
    stacked = {key: torch.stack([p[key] for p in each]) for key in each[0]}
    x, y = draw(3, 1, 6, 6), torch.tensor([0, 1, 2])
    loss = loss_of(cnn)
    found = vmap(vmap(grad(loss), (None, 0, 0)), (0, None, None))(stacked, x, y)
    for i, p in enumerate(each):
        for k in range(3):
            expected = grad(loss)(p, x[k], y[k])
            for key in p:
                near(found[key][i, k], expected[key])


def test_a_gradient_flows_through_a_batch_of_gradients() -> None:
    """grad of vmap of grad: the norm of each sample's gradient, differentiated by the parameters."""
    torch.manual_seed(4)
    p, x, y = mlp_parameters(), draw(3, 4), torch.tensor([0, 1, 2])
    loss = loss_of(mlp)

    def norms(p: dict[str, Any]) -> Any:
        g = vmap(grad(loss), (None, 0, 0))(p, x, y)
        return sum((v * v).sum() for v in g.values())

    def one_by_one(p: dict[str, Any]) -> Any:
        gs = [grad(loss)(p, x[k], y[k]) for k in range(3)]
        return sum((v * v).sum() for g in gs for v in g.values())

    found, expected = grad(norms)(p), grad(one_by_one)(p)
    for key in p:
        near(found[key], expected[key])


@pytest.mark.parametrize("name", sorted(MODELS))
def test_jacobians_by_rows_are_those_of_a_loop(name: str) -> None:
    """`jacrev` maps the cotangents over a graph that has no batch."""
    torch.manual_seed(5)
    model, parameters, shape = MODELS[name]
    p, x = parameters(), draw(*shape)
    found = jacrev(lambda x: model(p, x))(x)
    for k in range(3):
        near(found[k], grad(lambda x, k=k: model(p, x)[k])(x))


@pytest.mark.parametrize("training", [True, False])
def test_batch_norm_keeps_running_averages_for_each_element(training: bool) -> None:
    torch.manual_seed(6)
    x, mean, var = draw(3, 4, 2, 5), draw(3, 2), draw(3, 2).abs()
    weight, bias = draw(2), draw(3, 2)
    means, variances = mean.clone(), var.clone()

    def normalized(x: Any, m: Any, v: Any, b: Any) -> Any:
        return F.batch_norm(x, m, v, weight, b, training=training)

    found = vmap(normalized)(x, means, variances, bias)
    for k in range(3):
        m, v = mean[k].clone(), var[k].clone()
        near(found[k], normalized(x[k], m, v, bias[k]))
        near(means[k], m)
        near(variances[k], v)


def test_batch_norm_refuses_to_move_averages_that_all_elements_share() -> None:
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

    found = vmap(loss, on)(*given)
    slopes = vmap(grad(lambda *a: loss(*a).sum()), on)(*given)
    for k in range(3):
        one = [x[k] if d == 0 else x for x, d in zip(given, on, strict=True)]
        near(found[k], loss(*one))
        near(slopes[k], grad(lambda *a: loss(*a).sum())(*one))


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

    found = vmap(grad(total, (0, 1)), on)(x, w)
    twice = vmap(grad(lambda x, w: (grad(total)(x, w) ** 2).sum(), (0, 1)), on)(x, w)
    for k in range(3):
        one = [t[k] if d == 0 else t for t, d in zip((x, w), on, strict=True)]
        for got, want in zip(found, grad(total, (0, 1))(*one), strict=True):
            near(got[k], want)
        expected = grad(lambda x, w: (grad(total)(x, w) ** 2).sum(), (0, 1))(*one)
        for got, want in zip(twice, expected, strict=True):
            near(got[k], want)
