"""Gradients of each sample beside PyTorch, and beside a loop over samples."""

import numpy as np
import pytest

import flambeau

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.parity

MODELS = {
    "linear": (lambda nn: nn.Linear(3, 2), (4, 3)),
    "convolution": (lambda nn: nn.Sequential(nn.Conv2d(1, 2, 3), nn.ReLU(), nn.Flatten(), nn.Linear(8, 2)),
                    (3, 1, 4, 4)),
    "normalization": (lambda nn: nn.Sequential(nn.Linear(3, 4), nn.LayerNorm(4), nn.Linear(4, 1)), (5, 3)),
}


def call_for_per_sample_grads(module):
    if module is torch:
        from torch.nn.utils._per_sample_grad import call_for_per_sample_grads as call
    else:
        from flambeau.nn.utils._per_sample_grad import call_for_per_sample_grads as call
    return call


@pytest.mark.parametrize("reduction", ["sum", "mean"])
@pytest.mark.parametrize("name", MODELS)
def test_gradients_are_pytorchs(name, reduction):
    build, shape = MODELS[name]
    found = []
    for module in (torch, flambeau):
        module.manual_seed(0)
        model = build(module.nn)
        x = module.tensor(np.random.default_rng(0).standard_normal(shape).astype(np.float32))
        out = call_for_per_sample_grads(module)(model, loss_reduction=reduction)(x)
        loss = out.sum(1)
        (loss.mean() if reduction == "mean" else loss.sum()).backward()
        assert all(parameter.grad is None for parameter in model.parameters())
        found.append([out.detach().numpy(), *(p.grad_sample.detach().numpy() for p in model.parameters())])
    for expected, ours in zip(*found, strict=True):
        np.testing.assert_allclose(ours, expected, rtol=1e-4, atol=1e-5)


def twice(module):
    model = module.nn.Linear(3, 2)
    call = call_for_per_sample_grads(module)
    call(model)(module.ones(4, 3)).sum().backward()
    call(model)


CALLS = [
    twice, lambda m: call_for_per_sample_grads(m)(5),
    lambda m: call_for_per_sample_grads(m)(m.nn.Linear(3, 2), batch_size=0),
    lambda m: call_for_per_sample_grads(m)(m.nn.Linear(3, 2), batch_size="a"),
    lambda m: call_for_per_sample_grads(m)(m.nn.Linear(3, 2), loss_reduction="x"),
    lambda m: call_for_per_sample_grads(m)(m.nn.Linear(3, 2), batch_size=5)(m.ones(4, 3)),
    lambda m: call_for_per_sample_grads(m)(m.nn.Linear(3, 2))(m.ones(4, 3), m.ones(5, 3)),
    lambda m: call_for_per_sample_grads(m)(m.nn.Linear(3, 2))(3),
]


@pytest.mark.parametrize("call", CALLS)
def test_errors_are_pytorchs(call):
    texts = []
    for module in (torch, flambeau):
        with pytest.raises(RuntimeError) as error:
            call(module)
        texts.append(str(error.value).split(" of Parameter")[0])
    assert texts[0] == texts[1]


def test_samples_that_depend_on_each_other_are_refused():
    with pytest.raises(RuntimeError, match="batch_norm"):
        call_for_per_sample_grads(flambeau)(flambeau.nn.BatchNorm1d(2))


@pytest.mark.parametrize("batch_first", [False, True])
@pytest.mark.parametrize("layers", [1, 2])
@pytest.mark.parametrize("kind", ["RNN", "GRU", "LSTM"])
def test_hidden_states_have_the_batch_in_dimension_1(kind, layers, batch_first):
    torch = flambeau
    layer = getattr(torch.nn, kind)(5, 3, layers, batch_first=batch_first)
    x, state = torch.randn(2, 4, 5) if batch_first else torch.randn(4, 2, 5), torch.randn(layers, 2, 3)
    arguments = x, (state, state.sin()) if kind == "LSTM" else state
    out, final = call_for_per_sample_grads(torch)(layer, batch_size=2, batch_first=batch_first)(*arguments)
    expected, last = layer(*arguments)
    torch.testing.assert_close(out, expected)
    torch.testing.assert_close(final, last)
    out.sum().backward()
    expected.sum().backward()
    for parameter in layer.parameters():
        torch.testing.assert_close(parameter.grad_sample.sum(0), parameter.grad)
