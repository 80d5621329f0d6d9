"""`nn.functional` compared with PyTorch: values, gradients, warnings, errors."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import flambeau
import flambeau.nn.functional as FF

torch = pytest.importorskip("torch")
TF = torch.nn.functional
pytestmark = pytest.mark.parity

#: call, over x (3, 4), y (3, 4), s = sign(y), p = softmax of y, c = classes (3), l = multi-hot labels
CALLS = [
    *[f"{name}(x, y, reduction={r!r})" for name in ("mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss")
      for r in ("mean", "sum", "none")],
    "mse_loss(x, y, weight=y.abs())", "l1_loss(x, y, weight=y.abs(), reduction='sum')",
    "huber_loss(x, y, delta=0.3)", "smooth_l1_loss(x, y, beta=0.0)", "smooth_l1_loss(x, y, beta=0.3)",
    "huber_loss(x, y, weight=y.abs(), reduction='none')",
    "nll_loss(x.log_softmax(1), c)", "nll_loss(x.log_softmax(1), c, weight=w, ignore_index=1)",
    "cross_entropy(x, c)", "cross_entropy(x, c, weight=w, reduction='sum')", "cross_entropy(x, p)",
    "cross_entropy(x, c, label_smoothing=0.1)", "cross_entropy(x, p, label_smoothing=0.1, weight=w)",
    "cross_entropy(x, c, ignore_index=2, reduction='none')", "cross_entropy(x[0], c[0])",
    "binary_cross_entropy(x.sigmoid(), l)", "binary_cross_entropy(x.sigmoid(), l, weight=w)",
    "binary_cross_entropy_with_logits(x, l)", "binary_cross_entropy_with_logits(x, l, pos_weight=w, weight=w)",
    "kl_div(x.log_softmax(1), p, reduction='batchmean')", "kl_div(x, y, log_target=True, reduction='sum')",
    "poisson_nll_loss(x, y.abs())", "poisson_nll_loss(x.exp(), y.abs() * 3, log_input=False, full=True)",
    "gaussian_nll_loss(x, y, y.abs())", "gaussian_nll_loss(x, y, y.abs()[:, :1], full=True)",
    "gaussian_nll_loss(x, y, 0.3)", "hinge_embedding_loss(x, s)", "margin_ranking_loss(x, y, s, margin=0.2)",
    "cosine_embedding_loss(x, y, s[:, 0])", "cosine_embedding_loss(x[0], y[0], s[0, 0], margin=0.1)",
    "triplet_margin_loss(x, y, y.flip(0), swap=True)", "triplet_margin_with_distance_loss(x, y, y.flip(0))",
    "soft_margin_loss(x, s)", "multilabel_soft_margin_loss(x, l, weight=w)", "multi_margin_loss(x, c)",
    "multi_margin_loss(x, c, p=2, weight=w, margin=0.5)", "multi_margin_loss(x[0], c[0], reduction='none')",
    "multilabel_margin_loss(x, m)", "multilabel_margin_loss(x[0], m[0])",
    "normalize(x)", "normalize(x, p=1, dim=0)", "cosine_similarity(x, y, dim=0)", "cosine_similarity(x, y[0])",
    "pairwise_distance(x, y, p=3, keepdim=True)", "softmin(x, 1)", "softmax(x, 0, dtype=torch.float64)",
    "log_softmax(x, 1, dtype=torch.float64)", "softsign(x)", "tanhshrink(x)", "glu(x)", "glu(x, 1)",
    "hardtanh(x, -0.1, 0.3)", "relu6(x * 4)", "elu(x, 0.7)", "celu(x, 0.7)", "threshold(x, 0.1, 0.5)",
    "rrelu(x, 0.1, 0.3)", "leaky_relu(x, 0.2)", "softplus(x, 2, 1)", "gelu(x, approximate='tanh')",
    "pad(x, (1, 2))", "pad(x, (1, -1, 2, 0), value=3.0)", "pad(x, (-1, 2), mode='reflect')",
    "pad(x, (-1, 2), mode='replicate')", "pad(x, (-1, 2), mode='circular')", "pad(x, (2, -1), mode='circular')",
    "one_hot(c)", "one_hot(c, 7)", "embedding(c, x.t())", "layer_norm(x, (4,))", "rms_norm(x, (4,), w)",
    "group_norm(x, 2, w)", "batch_norm(x, None, None, training=True)",
    "interpolate(x[None], scale_factor=1.5)", "interpolate(x[None], size=7, mode='linear')",
    "interpolate(x[None], size=3, mode='area')", "interpolate(x[None], size=7, mode='nearest-exact')",
    "interpolate(x[None, None], scale_factor=(2, 1.5), mode='bilinear', recompute_scale_factor=True)",
    "interpolate(x[None, None], size=(5, 6), mode='bicubic', align_corners=True)",
    *[f"interpolate(x[None, None], size=({size}), mode={mode!r}, antialias=True)" for size in ("2, 3", "7, 2")
      for mode in ("bilinear", "bicubic", "lanczos")],
    "interpolate(x[None, None], scale_factor=0.4, mode='bicubic', antialias=True)",
    "interpolate(x[None, None], size=(2, 6), mode='bilinear', align_corners=True, antialias=True)",
    "local_response_norm(x[None], 3)", "linear(x, y)", ("bilinear(x, y, y.reshape(1, 3, 4)[:, :, :].expand(2, 3, 4)"
    ".transpose(1, 2)[:, :4, :3] @ y)"),
    "dropout(x, 0.0)", "dropout(x, 0.5, training=False)", "scaled_dot_product_attention(x, y, y)",
    "scaled_dot_product_attention(x, y, y, is_causal=True)",
]


def namespace(module):
    rng = np.random.default_rng(0)
    x, y = rng.standard_normal((3, 4)).astype(np.float32), rng.standard_normal((3, 4)).astype(np.float32)
    e = np.exp(y)
    arrays = {"y": y, "s": np.sign(y), "p": e / e.sum(1, keepdims=True), "c": np.array([2, 0, 1]),
              "l": (y > 0).astype(np.float32), "w": np.array([0.5, 1.5, 2.0, 1.0], np.float32),
              "m": np.array([[1, 3, -1, 0], [2, -1, 0, 1], [0, 1, 2, 3]])}
    names = {k: module.tensor(v) for k, v in arrays.items()}
    names["x"] = module.tensor(x, requires_grad=True)
    names["torch"] = module
    return names


@pytest.mark.parametrize("call", CALLS)
def test_call(call):
    results = []
    for module, F in ((torch, TF), (flambeau, FF)):
        names = namespace(module)
        out = eval(f"F.{call}", {**names, "F": F})
        if out.requires_grad:
            weights = np.cos(np.arange(out.numel())).astype(np.float32).reshape(tuple(out.shape))
            (out * module.tensor(weights)).sum().backward()
        results.append((out.detach().numpy(), None if names["x"].grad is None else names["x"].grad.numpy()))
    (a, ga), (b, gb) = results
    assert a.shape == b.shape
    assert a.dtype == b.dtype
    np.testing.assert_allclose(b, a, rtol=2e-5, atol=2e-6)
    assert (ga is None) == (gb is None)
    if ga is not None:
        np.testing.assert_allclose(gb, ga, rtol=2e-5, atol=2e-6)


@pytest.mark.parametrize("call", [
    "mse_loss(x, y, reduction='foo')", "l1_loss(x, y, reduction='foo')", "cross_entropy(x, c, reduction='foo')",
    "binary_cross_entropy(x, y[0])", "binary_cross_entropy_with_logits(x, y[0])", "dropout(x, 1.5)",
    "dropout1d(x[0])", "hardtanh(x, 1, 0)", "glu(x.sum())", "kl_div(x, y, reduction='foo')",
    "poisson_nll_loss(x, y, reduction='foo')", "gaussian_nll_loss(x, y, -1.0)", "gaussian_nll_loss(x, y, y.abs()[0])",
    "margin_ranking_loss(x, y, c)", "cosine_embedding_loss(x, y, s)", "cosine_embedding_loss(x, y, s[0, 0])",
    "triplet_margin_loss(x, y, y[0])", "triplet_margin_loss(x, y, y, margin=-1)",
    "triplet_margin_with_distance_loss(x, y, y, reduction='foo')", "multi_margin_loss(x, c, p=3)",
    "multilabel_margin_loss(x, c)", "pad(x, (1,))", "pad(x, (1,) * 6)", "pad(x, (1, 1), 'foo')",
    "pad(x[0], (1, 1), 'reflect')", "pad(x, (4, 1), 'reflect')", "pad(x, (5, 1), 'circular')",
    "pad(x, (1, 1), 'reflect', 2.0)", "one_hot(x)", "one_hot(-c)", "one_hot(c, 1)", "one_hot(c[:0])",
    "interpolate(x[None])", "interpolate(x[None], 3, 2)", "interpolate(x[None], (3, 3))",
    "interpolate(x[None], scale_factor=(2, 2))", "interpolate(x[None], 3, mode='bilinear')",
    *[f"interpolate(x[None, None].to({dtype}), ({size}), mode={mode!r})" for dtype, size, mode in (
        ("c.dtype", "3, 3", "nearest"), ("c.dtype", "80, 80", "bilinear"), ("c.dtype", "3, 3", "bicubic"))],
    "interpolate(x[None].to(c.dtype), 3, mode='linear')", "interpolate(x[None], 3, mode='linear', antialias=True)",
    "interpolate(x[None, None].half(), 3, mode='bilinear', antialias=True)",
    "interpolate(x[None, None], 3, mode='lanczos')",
    "interpolate(x[None, None], 3, mode='lanczos', align_corners=True, antialias=True)",
    "interpolate(x[None], 3, align_corners=True)", "interpolate(x[None], 0)", "interpolate(x, 3)",
    "embedding(c, x, padding_idx=9)", "batch_norm(x[:1], None, None, training=True)",
    "batch_norm(x, None, None, training=True, eps=0)", "instance_norm(x)", "group_norm(x[0], 2)",
    "local_response_norm(x, 2)", "smooth_l1_loss(x, y, beta=-1)", "max_pool1d(x, 2, return_indices=True)[5]",
    "adaptive_avg_pool2d(x, (1, None))", "adaptive_avg_pool2d(x[None], 2 ** 40)", "adaptive_max_pool1d(x, 2 ** 61)",
    "rrelu_(x.clone(), -5.0, 1.0).sum().backward()",
])
def test_error(call):
    caught = []
    for module, F in ((torch, TF), (flambeau, FF)):
        with pytest.raises(Exception) as info, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            eval(f"F.{call}", {**namespace(module), "F": F})
        caught.append((type(info.value), str(info.value).replace("flambeau.", "torch.")))
    assert caught[1] == caught[0]


@pytest.mark.parametrize("call", [
    "softmax(x)", "log_softmax(x[0])", "softmin(x[None])", "mse_loss(x, y[0])", "l1_loss(x, y[0])",
    "huber_loss(x, y[0])", "smooth_l1_loss(x, y[0])", "mse_loss(x, y, size_average=False)",
    "mse_loss(x, y, reduce=False)", "cross_entropy(x, c, size_average=True)", "kl_div(x, p)",
    "upsample(x[None], 3)", "upsample_nearest(x[None], 3)", "dropout2d(x[None], 0.0)", "dropout2d(x, 0.0)",
    "dropout3d(x[None], 0.0)", "gumbel_softmax(x, eps=1.0)",
])
def test_warning(call):
    caught = []
    for module, F in ((torch, TF), (flambeau, FF)):
        with warnings.catch_warnings(record=True) as records:
            warnings.simplefilter("always")
            eval(f"F.{call}", {**namespace(module), "F": F})
        caught.append([(w.category, str(w.message).replace("flambeau.", "torch.")) for w in records])
    assert caught[1] == caught[0]


@pytest.mark.parametrize("call", [
    "dropout(x, 0.3)", "dropout1d(x, 0.4)", "dropout2d(x[None, :, :, None], 0.4)",
    "dropout3d(x[:, :, None, None], 0.4)",
    "alpha_dropout(x, 0.3, training=True)", "feature_alpha_dropout(x, 0.3, training=True)", "gumbel_softmax(x)",
    "gumbel_softmax(x, hard=True)", "rrelu(x, training=True)",
])
def test_random(call):
    results = []
    for module, F in ((torch, TF), (flambeau, FF)):
        module.manual_seed(3)
        results.append(eval(f"F.{call}", {**namespace(module), "F": F}).detach().numpy())
    np.testing.assert_allclose(results[1], results[0], rtol=2e-6, atol=1e-7)


@pytest.mark.parametrize("dims", [1, 2, 3])
@pytest.mark.parametrize("name", ["conv", "conv_transpose"])
@pytest.mark.parametrize("weight", ["float32", "float64"])
def test_convolutions_with_a_bias_of_another_dtype(name, dims, weight):
    found = []
    for module, F in ((torch, TF), (flambeau, FF)):
        x, w = module.ones(1, 2, *[4] * dims), module.ones(2, 2, *[2] * dims, dtype=getattr(module, weight))
        try:
            found.append(getattr(F, f"{name}{dims}d")(x, w, module.ones(2, dtype=module.float64)).numpy().dtype)
        except RuntimeError as error:
            found.append(str(error))
    assert found[1] == found[0]
