"""PyTorch's conventions of neural network operators: graphs, statistics, ignored classes, errors.

Expected values are PyTorch's.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import flambeau as torch
from tests.ops.test_matmul import leaf, tree

F = torch.nn.functional


@pytest.mark.filterwarnings("ignore:Using padding='same' with even kernel lengths")
@pytest.mark.parametrize(("result", "expected"), [
    (lambda: F.conv2d(leaf(2, 3, 5, 5), leaf(4, 3, 3, 3), leaf(4)), "Convolution(*,*,*)"),
    (lambda: F.conv2d(leaf(3, 5, 5), leaf(4, 3, 3, 3)), "SqueezeBackward1(Convolution(Unsqueeze(*),*,-))"),
    (lambda: F.conv1d(leaf(2, 3, 5), leaf(4, 3, 2), leaf(4), padding="same"), "Convolution(ConstantPadNd(*),*,*)"),
    (lambda: F.max_pool1d(leaf(2, 3, 6), 2), "SqueezeBackward1(MaxPool2DWithIndices(Unsqueeze(*)))"),
    (lambda: F.max_pool2d(leaf(2, 3, 6, 6), 2), "MaxPool2DWithIndices(*)"),
    (lambda: F.avg_pool3d(leaf(2, 3, 6, 6, 6), 2), "AvgPool3D(*)"),
    (lambda: F.adaptive_avg_pool2d(leaf(2, 3, 6, 6), 1), "MeanBackward1(*)"),
    (lambda: F.adaptive_avg_pool2d(leaf(2, 3, 6, 6), 2), "AdaptiveAvgPool2D(*)"),
    (lambda: F.batch_norm(leaf(4, 3), None, None, leaf(3), leaf(3), True), "NativeBatchNorm(*,*,*)"),
    (lambda: F.layer_norm(leaf(2, 3), (3,)), "NativeLayerNorm(*,-,-)"),
    (lambda: F.group_norm(leaf(2, 6, 4), 2, leaf(6), leaf(6)), "NativeGroupNorm(*,*,*)"),
    (lambda: F.rms_norm(leaf(2, 3), (3,), leaf(3)), "Mul(Mul(*,Rsqrt(AddBackward1(MeanBackward1(Pow(*))))),*)"),
    (lambda: F.embedding(torch.tensor([0, 2]), leaf(4, 3)), "Embedding(*)"),
    (lambda: F.dropout(leaf(3), 0.5), "Mul(*,-)"),
    (lambda: F.cross_entropy(leaf(3, 4), torch.tensor([0, 2, 1])), "NllLoss(LogSoftmax(*))"),
    (lambda: F.cross_entropy(leaf(3, 4, 2), torch.zeros(3, 2, dtype=torch.int64)), "NllLoss2D(View(LogSoftmax(*)))"),
    (lambda: F.cross_entropy(leaf(3, 4), leaf(3, 4)), "DivBackward1(Neg(Sum(Mul(LogSoftmax(*),*))))"),
    (lambda: F.mse_loss(leaf(3), torch.zeros(3)), "MseLoss(*,-)"),
    (lambda: F.binary_cross_entropy_with_logits(leaf(3), torch.zeros(3), torch.ones(3)),
     "BinaryCrossEntropyWithLogits(*,-)"),
    (lambda: F.scaled_dot_product_attention(*(leaf(2, 2, 3, 4) for _ in range(3))),
     "ScaledDotProductFlashAttentionForCpu(*,*,*)"),
])
def test_graph(result: Any, expected: str) -> None:
    assert tree(result().grad_fn) == expected


@pytest.mark.parametrize(("call", "error", "text"), [
    (lambda: F.conv2d(torch.ones(2, 3, 5, 5), torch.ones(4, 2, 3, 3)), RuntimeError,
     ("Given groups=1, weight of size [4, 2, 3, 3], expected input[2, 3, 5, 5] to have 2 channels, but got 3 channels "
      "instead")),
    (lambda: F.conv2d(torch.ones(3, 5), torch.ones(4, 3, 3, 3)), RuntimeError,
     "Expected 3D (unbatched) or 4D (batched) input to conv2d, but got input of size: [3, 5]"),
    (lambda: F.conv2d(torch.ones(2, 3, 2, 2), torch.ones(4, 3, 3, 3)), RuntimeError,
     ("Calculated padded input size per channel: (2 x 2). Kernel size: (3 x 3). Kernel size can't be greater than "
      "actual input size")),
    (lambda: F.conv2d(torch.ones(2, 3, 5, 5), torch.ones(4, 3, 3, 3), torch.ones(4).double()), RuntimeError,
     "Input type (float) and bias type (double) should be the same"),
    (lambda: F.max_pool2d(torch.ones(3, 2, 2), 3), RuntimeError,
     "Given input size: (3x2x2). Calculated output size: (3x0x0). Output size is too small"),
    (lambda: F.layer_norm(torch.ones(2, 3), (2,)), RuntimeError,
     "Given normalized_shape=[2], expected input with shape [*, 2], but got input of size[2, 3]"),
    (lambda: F.batch_norm(torch.ones(2, 3), torch.zeros(2), torch.ones(3)), RuntimeError,
     "running_mean should contain 3 elements not 2"),
    (lambda: F.nll_loss(torch.ones(3, 4), torch.tensor([0, 1])), ValueError,
     "Expected input batch_size (3) to match target batch_size (2)."),
    (lambda: F.cross_entropy(torch.ones(3, 4), torch.tensor([0, 1, 4])), IndexError, "Target 4 is out of bounds."),
    (lambda: F.cross_entropy(torch.ones(3, 4), torch.tensor([0, 1, -1])), IndexError, "Target -1 is out of bounds."),
    (lambda: F.cross_entropy(torch.ones(3, 4), torch.tensor([0., 1., 2.])), RuntimeError,
     "expected target dtype to be Long or Byte, but got Float"),
    (lambda: F.embedding(torch.tensor([5]), torch.ones(3, 2)), IndexError, "index out of range in self"),
    (lambda: F.binary_cross_entropy(torch.full((2,), 2.), torch.ones(2)), RuntimeError,
     "all elements of input should be between 0 and 1"),
    (lambda: F.dropout(torch.ones(2), 1.5), ValueError, "dropout probability has to be between 0 and 1, but got 1.5"),
])
def test_error(call: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error) as raised:
        call()
    assert str(raised.value) == text


def test_running_averages_take_the_unbiased_variance() -> None:
    x = torch.tensor([[1., 2.], [3., 6.]])
    mean, var = torch.zeros(2), torch.ones(2)
    F.batch_norm(x, mean, var, training=True, momentum=0.5)
    np.testing.assert_allclose(mean.numpy(), [1, 2])
    np.testing.assert_allclose(var.numpy(), [1.5, 4.5])


def test_ignored_targets_do_not_count() -> None:
    x = torch.tensor([[1., 2.], [3., 5.], [0., 1.]], requires_grad=True)
    loss = F.nll_loss(x, torch.tensor([0, -100, 1]))
    assert loss.item() == -1.0
    loss.backward()
    assert x.grad.tolist() == [[-0.5, 0], [0, 0], [0, -0.5]]
    assert torch.isnan(F.nll_loss(x, torch.tensor([-100, -100, -100])))


def test_padding_and_frequency_change_the_embedding_gradient() -> None:
    weight = leaf(4, 2)
    F.embedding(torch.tensor([1, 2, 2, 3]), weight, padding_idx=1, scale_grad_by_freq=True).sum().backward()
    assert weight.grad.tolist() == [[0, 0], [0, 0], [1, 1], [1, 1]]


def test_first_of_equal_maxima_gets_the_gradient() -> None:
    x = leaf(1, 2, 2)
    F.max_pool2d(x, 2).sum().backward()
    assert x.grad.tolist() == [[[1, 0], [0, 0]]]


def test_pooling_returns_flat_indices() -> None:
    values, index = F.max_pool2d(torch.arange(16.).reshape(1, 4, 4), 2, return_indices=True)
    assert index.tolist() == [[[5, 7], [13, 15]]]
    assert F.max_unpool2d(values, index, 2)[0, 1].tolist() == [0, 5, 0, 7]


def test_fully_masked_rows_attend_to_nothing() -> None:
    x = torch.ones(1, 1, 2, 4)
    mask = torch.tensor([[True, True], [False, False]])
    out = F.scaled_dot_product_attention(x, x, x, mask)
    assert out[0, 0].tolist() == [[1] * 4, [0] * 4]


def test_dropout_scales_retained_elements() -> None:
    torch.manual_seed(0)
    x = torch.ones(1000)
    out = F.dropout(x, 0.25)
    assert set(out.tolist()) == {0.0, float(np.float32(1) / np.float32(0.75))}
    assert F.dropout(x, 0.25, training=False) is x


def test_alignment_loss() -> None:
    logs = torch.zeros(3, 1, 2, dtype=torch.float64).log_softmax(2).requires_grad_()
    loss = F.ctc_loss(logs, torch.tensor([[1]]), (3,), (1,), reduction="sum")
    np.testing.assert_allclose(loss.item(), -np.log(6 / 8))  # of 8 paths all but `blank³` and `1 blank 1`
    loss.backward()
    np.testing.assert_allclose(logs.grad.sum(2).numpy(), 0, atol=1e-12)


@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
def test_empty_bags_give_zeros(mode: str) -> None:
    weight = torch.tensor([[1., 2.], [3., 1.], [5., 0.]])
    out = F.embedding_bag(torch.tensor([0, 1, 2]), weight, torch.tensor([0, 2, 2]), mode=mode)
    first = {"sum": [4, 3], "mean": [2, 1.5], "max": [3, 2]}[mode]
    assert out.tolist() == [first, [0, 0], [5, 0]]


@pytest.mark.parametrize(("rank", "how", "said"), [
    (1, {"padding": 1}, "(1 x 1). Calculated output size per channel: (1 x 0)"),
    (1, {"padding": 2, "stride": 2, "output_padding": 1}, "(1 x 1). Calculated output size per channel: (1 x -1)"),
    (2, {"padding": 1}, "(1 x 1). Calculated output size per channel: (0 x 0)"),
    (3, {"padding": (1, 0, 0)}, "(1 x 1 x 1). Calculated output size per channel: (0 x 2 x 2)"),
])
def test_transposed_convolutions_with_empty_output_raise(rank: int, how: dict[str, Any], said: str) -> None:
    call = getattr(F, f"conv_transpose{rank}d")
    with pytest.raises(RuntimeError) as error:
        call(torch.ones(1, 1, *(1,) * rank), torch.ones(1, 1, *(2,) * rank), **how)
    assert str(error.value) == f"Given input size per channel: {said}. Output size is too small"


@pytest.mark.parametrize("kind", ["uint16", "uint32", "uint64"])
def test_pooling_of_wide_unsigned_integers_raises(kind: str) -> None:
    x = torch.ones(1, 1, 4, 4).to(getattr(torch, kind))
    named = kind.replace("uint", "UInt")
    for call, kernel, where in ((F.max_pool1d, "max_pool1d_impl", x[0]), (F.max_pool2d, "max_pool2d", x),
                                (F.max_pool3d, "max_pool3d", x[None]), (F.avg_pool1d, "avg_pool2d", x[0]),
                                (F.avg_pool2d, "avg_pool2d", x), (F.avg_pool3d, "avg_pool3d_out_frame", x[None])):
        size = (1, 2, 2) if where.dim() == 5 else 2
        with pytest.raises(NotImplementedError, match=f"^\"{kernel}\" not implemented for '{named}'$"):
            call(where, size)
