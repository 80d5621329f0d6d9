"""`torch.ops.aten`: operators that are the gradient of another one, and those that functions are made of."""

from __future__ import annotations

import math

import pytest

import flambeau

#: arguments of calls: x and g of the shape of a result, probabilities p, images, weights, indices
ACTIVATIONS = [
    "hardtanh_backward(g, x, -0.5, 0.5)", "hardsigmoid_backward(g, x)", "hardswish_backward(g, x)",
    "mish_backward(g, x)", "softplus_backward(g, x, 2.0, 20.0)", "softplus_backward(g, x, 1, 0.5)",
    "softshrink_backward(g, x, 0.3)", "hardshrink_backward(g, x, 0.3)", "logit_backward(g, p, None)",
    "logit_backward(g, p, 0.2)", "log_sigmoid_backward(g, x, t.exp(-x.abs()))", "glu_backward(g[:, :2], x, 1)",
    "glu_backward(g[:1], x[:2], 0)", "leaky_relu_backward(g, x, 0.1, False)", "leaky_relu_backward(g, x, 0.1, True)",
    "elu_backward(g, 1.5, 1.1, 0.7, False, x)", "elu_backward(g, 1.5, 1.1, 0.7, True, t.nn.functional.elu(x, 1.5))",
    "elu_backward(g, -1.0, 1.0, 1.0, True, x)", "leaky_relu_backward(g, x, -0.1, True)",
    "rrelu_with_noise_backward(g, x, p, 0.1, 0.3, True, False)",
    "rrelu_with_noise_backward(g, x, p, 0.1, 0.3, False, False)",
    "rrelu_with_noise_backward(g, x, p, 0.2, 0.2, True, False)",
    "_prelu_kernel_backward(g, x, p)", "hardtanh_backward(g[:1], x, -0.5, 0.5)", "hardswish_backward(g, x[0])",
    "glu_jvp(t.nn.functional.glu(x, 1), x, g, 1)",
    "glu_backward_jvp(t.ops.aten.glu_backward(g[:, :2], x, 1), g[:, :2], x, p[:, :2], p, 1)",
    "gelu_backward(g, x)", "gelu_backward(g, x, approximate='tanh')", "sigmoid_backward(g, p)", "tanh_backward(g, p)",
    "silu_backward(g, x)", "threshold_backward(g, x, 0.2)", "native_dropout_backward(g, x > 0, 2.0)",
    "_softmax_backward_data(g, p, 1, t.float32)", "_log_softmax_backward_data(g, x, 1, t.float32)",
    "_masked_softmax_backward(g, p, x > 0, 1)",
]
LOSSES = [
    *(f"{name}_backward({g}, x, p, {reduction}{rest})" for name, rest in (
        ("mse_loss", ""), ("huber_loss", ", 0.4"), ("smooth_l1_loss", ", 0.4"), ("soft_margin_loss", ""))
      for g, reduction in (("g", 0), ("s", 1), ("s", 2))),
    *(f"binary_cross_entropy_backward({g}, p, (x > 0).float(), {weight}, {reduction})"
      for g, reduction in (("g", 0), ("s", 1), ("s", 2)) for weight in ("None", "p")),
    *(f"multi_margin_loss_backward({g}, x, labels, {power}, 1.0, {weight}, {reduction})"
      for g, reduction in (("g[:, 0]", 0), ("s", 1), ("s", 2)) for power, weight in ((1, "None"), (2, "p[0]"))),
    *(f"multilabel_margin_loss_backward({g}, x, several, {reduction}, "
      f"t.ops.aten.multilabel_margin_loss_forward(x, several, {reduction})[1])"
      for g, reduction in (("g[:, 0]", 0), ("s", 1), ("s", 2))),
    *(f"nll_loss_backward({g}, x, labels, {weight}, {reduction}, -100, t.tensor(2.5))"
      for g, reduction in (("g[:, 0]", 0), ("s", 1), ("s", 2)) for weight in ("None", "p[0]")),
    *(f"nll_loss2d_backward({g}, image, t.zeros(2, 4, 6, dtype=t.int64), {weight}, {reduction}, -100, t.tensor(2.5))"
      for g, reduction in (("image[:, 0]", 0), ("s", 1), ("s", 2)) for weight in ("None", "p[0, :3]")),
]
SHAPES = [
    "diagonal_backward(g[0, :3], [3, 4], 0, 0, 1)", "diagonal_backward(g[0, :2], [3, 4], -1, 0, 1)",
    "select_backward(g, [3, 2, 4], 1, 1)", "select_backward(g, [3, 2, 4], -2, -1)",
    "slice_backward(g, [3, 9], 1, 1, 9, 2)", "slice_backward(g, [3, 4], 1, 0, 9223372036854775807, 1)",
    "unfold_backward(t.ones(3, 4), [6], 0, 4, 1)",
    "trace_backward(s, [3, 4])", "index_select_backward(g, [3, 5], 1, t.tensor([0, 2, 2, 4]))",
    "value_selecting_reduction_backward(g[0], 0, t.tensor([0, 2, 1, 0]), [3, 4], False)",
    "value_selecting_reduction_backward(g[:1], 0, t.tensor([[0, 2, 1, 0]]), [3, 4], True)",
    "cummaxmin_backward(g, x, t.cummax(x, 1)[1], 1)", "cumprod_backward(g, x, 1, t.cumprod(x, 1))",
    "masked_scatter_backward(g, x > 0, [12])", "masked_scatter_backward(g, x > 0, [4, 4])",
    "masked_select_backward(t.ones(int((x > 0).sum())), x, x > 0)", "gather_backward(g, x, 1, several.abs(), False)",
    "matrix_exp_backward(x[:, :3] / 3, g[:, :3])",
    "_pack_padded_sequence_backward(image[:, 0].flatten(0, 1)[:5], [2, 3, 6], t.tensor([2, 2, 1]), True)",
    "_pack_padded_sequence_backward(image[:, 0].flatten(0, 1)[:5], [3, 2, 6], t.tensor([2, 2, 1]), False)",
]
RESAMPLING = [
    *(f"{kind}_pad1d_backward(image[0], image[0, :, :, :4], [1, 1])" for kind in ("reflection", "replication")),
    *(f"{kind}_pad2d_backward(image, image[:, :, 1:-1, :4], [1, 1, 1, 1])" for kind in ("reflection", "replication")),
    *(f"{kind}_pad3d_backward(image, image[:, :1, 1:-1, :4], [1, 1, 1, 1, 1, 1])" for kind in ("replication",)),
    "avg_pool2d_backward(image[:, :, ::2, ::2], image, [2, 2], [2, 2], [0, 0], False, True, None)",
    "avg_pool2d_backward(image[:, :, :3, :4], image, [3, 3], [2, 2], [1, 1], True, False, None)",
    "avg_pool2d_backward(image[:, :, ::2, ::2], image, [2, 2], [2, 2], [0, 0], False, True, 3)",
    "avg_pool3d_backward(image[:, :1, ::2, ::2], image[:, :2], [2, 2, 2], [2, 2, 2], [0, 0, 0], False, True, None)",
    "_adaptive_avg_pool2d_backward(image[:, :, :3, :2], image)",
    "_adaptive_avg_pool3d_backward(image[:, :2, :3, :2], image)",
    "adaptive_max_pool2d_backward(image[:, :, :3, :2], image, t.ops.aten.adaptive_max_pool2d(image, [3, 2])[1])",
    "adaptive_max_pool3d_backward(image[:, :2, :3, :2], image, t.ops.aten.adaptive_max_pool3d(image, [2, 3, 2])[1])",
    ("max_pool2d_with_indices_backward(image[:, :, ::2, ::2], image, [2, 2], [2, 2], [0, 0], [1, 1], False, "
    "t.ops.aten.max_pool2d_with_indices(image, [2, 2])[1])"),
    ("max_pool3d_with_indices_backward(image[:, :1, ::2, ::2], image, [2, 2, 2], [2, 2, 2], [0, 0, 0], [1, 1, 1], "
    "False, t.ops.aten.max_pool3d_with_indices(image, [2, 2, 2])[1])"),
    ("fractional_max_pool2d_backward(image[:, :, :3, :2], image, [2, 2], [3, 2], "
    "t.ops.aten.fractional_max_pool2d(image, [2, 2], [3, 2], t.full((2, 3, 2), 0.5))[1])"),
    *(f"{name}_backward(t.arange(24.).reshape(1, 4, 6), [6], [1, 4, 3], {flag}None)" for name, flag in (
        ("upsample_nearest1d", ""), ("_upsample_nearest_exact1d", ""), ("upsample_linear1d", "False, "),
        ("upsample_linear1d", "True, "))),
    *(f"{name}_backward(image, [4, 6], [2, 3, 3, 4], {flag}None, None)" for name, flag in (
        ("upsample_nearest2d", ""), ("_upsample_nearest_exact2d", ""), ("upsample_bilinear2d", "False, "),
        ("upsample_bilinear2d", "True, "), ("upsample_bicubic2d", "False, "), ("_upsample_bilinear2d_aa", "False, "),
        ("_upsample_bicubic2d_aa", "False, "))),
    *(f"{name}_backward(image[:, None], [3, 4, 6], [2, 1, 2, 3, 4], {flag}None, None, None)" for name, flag in (
        ("upsample_nearest3d", ""), ("_upsample_nearest_exact3d", ""), ("upsample_trilinear3d", "False, "))),
    *(f"grid_sampler_2d_backward(image[:, :, :2, :3], image, grid, {mode}, {padding}, False, {mask})"
      for mode in (0, 1) for padding in (0, 1, 2) for mask in ("[True, True]",)),
    "grid_sampler_2d_backward(image[:, :, :2, :3], image, grid, 0, 0, True, [False, True])[1]",
    "grid_sampler_3d_backward(image[:, None, :1, :2, :3], image[:, None], space, 0, 0, False, [True, True])",
    "affine_grid_generator_backward(grid, [2, 1, 2, 3], False)",
]
NORMALIZATION = [
    ("native_layer_norm_backward(g, x, [4], *t.native_layer_norm(x, [4], None, None, 1e-5)[1:], p[0], p[0], "
    "[True, True, True])"),
    ("native_layer_norm_backward(g, x, [4], *t.native_layer_norm(x, [4], None, None, 1e-5)[1:], None, None, "
    "[True, False, False])[0]"),
    ("native_group_norm_backward(image, image, *t.native_group_norm(image, None, None, 2, 3, 24, 3, 1e-5)[1:], p[0, "
     ":3],"
    " 2, 3, 24, 3, [True, True, True])"),
    *(f"native_batch_norm_backward(image, image, {weight}, p[0, :3], p[1, :3], p[2, :3], p[0, :3], {train}, 1e-5, "
      "[True, True, True])" for weight in ("None", "p[1, :3]") for train in (True, False)),
    "_weight_norm_interface_backward(g, x, p[:, :1].contiguous(), x.norm(dim=1), 0)",
    "_weight_norm_interface_backward(g, x, p[:1], x.norm(dim=0), 1)",
    "_weight_norm_differentiable_backward(g, x, p[:, :1].contiguous(), x.norm(dim=1, keepdim=True), 0)",
]
PRODUCTS = [
    ("convolution_backward(image[:, :2, 1:, 1:], image, kernel, [2], [1, 1], [0, 0], [1, 1], False, [0, 0], 1, "
    "[True, True, True])"),
    ("convolution_backward(image[:, :2, 1:, 1:], image, kernel, [2], [1, 1], [0, 0], [1, 1], False, [0, 0], 1, "
    "[False, True, False])[1]"),
    ("_convolution_double_backward(image, kernel, p[0, :2], image[:, :2, 1:, 1:], kernel, image, [1, 1], [0, 0], "
    "[1, 1], False, [0, 0], 1, [True, True, True])"),
    "embedding_backward(g, t.tensor([0, 2, 2]), 4, -1, False, False)",
    "embedding_dense_backward(g, t.tensor([0, 2, 2]), 4, 2, False)",
    "embedding_dense_backward(g, t.tensor([0, 2, 2]), 4, -1, True)",
    "embedding_sparse_backward(g, t.tensor([0, 2, 2]), 4, -1, False).to_dense()",
    *(f"_embedding_bag_backward(g[:2], bag, starts, *t.ops.aten._embedding_bag(x, bag, starts, mode={mode})[1:], 3, "
      f"False, "
      f"{mode}, False, None)" for mode in (0, 1, 2)),
    ("_embedding_bag_backward(g[:2], bag, starts, *t.ops.aten._embedding_bag(x, bag, starts, mode=0)[1:], 3, True, "
     "0, False, "
    "None)"),
    "_embedding_bag_dense_backward(g[:2], bag, t.tensor([0, 0, 1, 1]), t.tensor([2, 2]), starts, 3, False, 0, p[0], 2)",
    "_embedding_bag_per_sample_weights_backward(g[:2], x, bag, starts, t.tensor([0, 0, 1, 1]), 0)",
    *(f"_pdist_backward(g[0, :3], x, {p}, t.pdist(x, {p}))" for p in (1.0, 2.0, 3.0)),
    *(f"_cdist_backward(g[:, :3], x, p, {power}, t.cdist(x, p, {power}))" for power in (1.0, 2.0, 3.0)),
    "conv_tbc_backward(image.flatten(2)[:, :, :2], image.flatten(2)[:, :, :3], x[None, :, :2], p[0, :2], 0)",
    *(f"_segment_reduce_backward(g[:2], t.segment_reduce(x, '{kind}', lengths=t.tensor([1, 2])), x, '{kind}', "
      "lengths=t.tensor([1, 2]))" for kind in ("sum", "mean", "max", "prod")),
    ("_scaled_dot_product_flash_attention_for_cpu_backward(heads, heads, heads * 0.5, heads + 0.1, *"
    "t.ops.aten._scaled_dot_product_flash_attention_for_cpu(heads, heads * 0.5, heads + 0.1), 0.0, False)"),
]
#: operators that functions of PyTorch call, with the shapes of the inputs below
INNER = [
    *(f"upsample_{name}({image}, {size}, {flag}{scales})" for name, image, size, flag, scales in (
        ("nearest1d", "image[0]", "[9]", "", "None"), ("nearest1d", "image[0]", "[9]", "", "1.6"),
        ("linear1d", "image[0]", "[9]", "False, ", "None"), ("nearest2d", "image", "[5, 9]", "", "None, None"),
        ("bilinear2d", "image", "[5, 9]", "True, ", "None, None"), ("bicubic2d", "image", "[5, 9]", "False, ",
        "1.2, 1.4"),
        ("nearest3d", "image[:, None]", "[3, 5, 9]", "", "None"),
        ("trilinear3d", "image[:, None]", "[3, 5, 9]", "False, ", "None"))),
    "_upsample_nearest_exact2d(image, [5, 9], None, None)", "_upsample_bilinear2d_aa(image, [2, 3], False)",
    "_upsample_bilinear2d_aa(image, [2, 3], False, scale_factors=None)",
    "_upsample_bicubic2d_aa(image, None, False, scale_factors=[0.5, 0.5])",
    "_upsample_bicubic2d_aa(image, [2, 3], True)",
    "_convolution(image, kernel, p[0, :2], [1, 1], [0, 0], [1, 1], False, [0, 0], 1, False, False, True, True)",
    "_convolution_mode(image, kernel, None, [1, 1], 'valid', [1, 1], 1)", "thnn_conv2d(image, kernel, [2, 2])",
    "slow_conv_transpose2d(image[:, :2], kernel, [2, 2], None, [2, 2])", ("slow_conv3d(image[:, None], kernel[:, "
     "None, :1], "
    "[1, 2, 2])"), "slow_conv_dilated2d(image, kernel, [2, 2], None, [1, 1], [0, 0], [2, 2])",
    "_native_batch_norm_legit(image, None, None, p[0, :3].clone(), p[1, :3].clone(), False, 0.1, 1e-5)[0]",
    "_batch_norm_impl_index(image, None, None, None, None, True, 0.1, 1e-5, False)[:3]",
    *(f"_embedding_bag(x, bag, starts, mode={mode})[0]" for mode in (0, 1, 2)),
    "_embedding_bag_forward_only(x, bag, starts, padding_idx=2)[0]",
    "_unsafe_index(x, [t.tensor([0, 2])])", "_unsafe_index_put(x, [t.tensor([0, 0])], g[:2], True)",
    "_unsafe_masked_index(x[0], t.tensor([True, False]), [t.tensor([1, 7])], 2.0)",
    "_unsafe_masked_index_put_accumulate(x[0], t.tensor([True, False]), [t.tensor([1, 7])], g[0, :2])",
    "_scaled_dot_product_attention_math(heads, heads * 0.5, heads + 0.1, None, 0.0, True)",
    "_scaled_dot_product_flash_attention_for_cpu(heads, heads * 0.5, heads + 0.1)",
    "_scaled_dot_product_flash_attention_for_cpu(heads, heads * 0.5, heads + 0.1, 0.0, True, scale=0.3)",
    "_aminmax(x)", "_aminmax.dim(x, 1)", "_stack([x, g], 1)", "_logcumsumexp(x, 1)", "_conj_physical(x)",
    "_is_all_true(x > 0)", "_is_any_true(x > 0)", "_pad_enum(image, [1, 1, 1, 1], 0)",
    "_pad_circular(image, [1, 1, 1, 1])", "pad_sequence([x, g[:2]], True, 7.0)", "flatten_dense_tensors([x, g[:2]])",
    "unflatten_dense_tensors(t.arange(20.), [x, g[:2]])", "sym_stride.int(x, 0)", "_cast_Float(labels)", "_cast_Int(x)",
    "_neg_view_copy(x)", "_conj_copy(x + 1j * g).real", "relu6_(x.clone() * 9)", "_fused_rms_norm(x, [4], p[0], 1e-5)",
    "gru_cell(x, g, x.repeat(4, 1), g.repeat(4, 1), None, None)",
    "native_channel_shuffle(image[:, :2], 2)", "selu_(x.clone())",
]
CALLS = [*INNER, *ACTIVATIONS, *LOSSES, *SHAPES, *RESAMPLING, *NORMALIZATION, *PRODUCTS]


def inputs(module):
    def wave(*shape, start=0):
        count = math.prod(shape)
        return module.tensor([math.sin(1.3 * i + 0.7 * start + 0.4) for i in range(count)]).reshape(shape)

    return {"t": module, "x": wave(3, 4), "g": wave(3, 4, start=1), "p": wave(3, 4, start=2) * 0.4 + 0.5,
            "s": module.tensor(1.5), "image": wave(2, 3, 4, 6), "kernel": wave(2, 3, 2, 2, start=3),
            "labels": module.tensor([0, 3, 1]), "several": module.tensor([[0, 2, -1, 0], [3, -1, 0, 0], [1, 0, 2, 3]]),
            "grid": wave(2, 2, 3, 2, start=4) * 1.1, "space": wave(2, 1, 2, 3, 3, start=5),
            "bag": module.tensor([0, 2, 2, 1]), "starts": module.tensor([0, 2]), "heads": wave(1, 2, 3, 4)}


def outcome(module, source, names=None):
    try:
        return eval(f"t.ops.aten.{source}", names or inputs(module))
    except Exception as error:
        return type(error).__name__


def numbers(result):
    if isinstance(result, (list, tuple)):
        return [numbers(each) for each in result]
    return result.tolist() if hasattr(result, "tolist") else result


def shapes(result):
    if isinstance(result, (list, tuple)):
        return [shapes(each) for each in result]
    return tuple(result.shape) if hasattr(result, "shape") else result


def flat(values):
    return [number for each in values for number in flat(each)] if isinstance(values, list) else [values]


@pytest.mark.parity
@pytest.mark.parametrize("source", CALLS)
def test_values_are_those_of_pytorch(source):
    torch = pytest.importorskip("torch")
    mine, theirs = outcome(flambeau, source), outcome(torch, source)
    assert shapes(mine) == shapes(theirs)
    for a, b in zip(flat(numbers(mine)), flat(numbers(theirs)), strict=True):
        assert a == b if not isinstance(b, float) else a == pytest.approx(b, rel=2e-5, abs=2e-6)


@pytest.mark.parity
@pytest.mark.parametrize("source", [
    "hardtanh_backward(g, x, -0.5, 0.5)", "elu_backward(g, 1.5, 1.1, 0.7, False, x)",
    "gelu_backward(g, x)", "sigmoid_backward(g, x)", "glu_backward(g[:, :2], x, 1)",
    "huber_loss_backward(g, x, p, 0, 0.4)",
    "softplus_backward(g, x, 2.0, 20.0)", "slice_backward(g, [3, 9], 1, 1, 9, 2)",
    "upsample_linear1d_backward(g[:, None], [4], [3, 1, 2], False, None)",
    "index_select_backward(g, [3, 5], 1, several[0].abs())",
    ("native_layer_norm_backward(g, x, [4], *t.native_layer_norm(x.detach(), [4], None, None, 1e-5)[1:], p[0], p[0], "
    "[True, True, True])[0]")])
def test_second_derivatives_are_those_of_pytorch(source):
    torch = pytest.importorskip("torch")

    def gradients(module):
        names = inputs(module)
        leaves = [names[name].requires_grad_() for name in ("x", "g")]
        result = outcome(module, source, names)
        found = module.autograd.grad(result.cos().sum(), leaves, allow_unused=True)
        return [None if each is None else each.tolist() for each in found]

    for mine, theirs in zip(gradients(flambeau), gradients(torch), strict=True):
        assert (mine is None) == (theirs is None) or not any(map(any, mine or theirs))
        if mine is not None and theirs is not None:
            for a, b in zip(flat(mine), flat(theirs), strict=True):
                assert a == pytest.approx(b, rel=2e-4, abs=2e-5)


def test_handlers_are_given_the_operator():
    from flambeau.utils._python_dispatch import TorchDispatchMode

    seen = []

    class Log(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            seen.append(str(func))
            return func(*args, **(kwargs or {}))

    x = flambeau.ones(3)
    with Log():
        flambeau.ops.aten.hardtanh_backward(x, x, -1, 1)
    assert seen[0] == "aten.hardtanh_backward.default"


@pytest.mark.parametrize("source", [
    "hardtanh_backward(g, x, -1, 1)", "upsample_bilinear2d(image, [5, 9], True)",
    "avg_pool2d_backward(image[:, :, ::2, ::2], image, [2, 2], [2, 2], [0, 0], False, True, None)",
    "native_layer_norm_backward(g, x, [4], x[:, :1], x[:, :1], None, None, [True] * 3)"])
def test_they_run_on_meta_and_fake_tensors(source):
    from flambeau._subclasses.fake_tensor import FakeTensorMode

    def with_tensors(change):
        return {name: change(value) if isinstance(value, flambeau.Tensor) else value
                for name, value in inputs(flambeau).items()}

    expected = shapes(outcome(flambeau, source))
    assert shapes(outcome(flambeau, source, with_tensors(lambda x: x.to("meta")))) == expected
    with FakeTensorMode() as mode:
        assert shapes(outcome(flambeau, source, with_tensors(mode.from_tensor))) == expected
