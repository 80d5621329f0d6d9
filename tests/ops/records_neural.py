"""Records of the neural network's operators: convolution, pooling, normalization, losses, lookups, attention."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from tests.ops.spec import Make, Sample, record, sample

_NN = "nn.functional."


# ----- convolution ----------------------------------------------------------------------


def convolutions(rank: int, transposed: bool) -> Any:
    """Plain, strided, padded, dilated, in groups, of one image, of none."""
    def samples(make: Make) -> Iterable[Sample]:
        size = (5, 4, 4)[:rank]
        for batch, c, o, groups, how in (
                ((2,), 2, 3, 1, {}), ((2,), 2, 2, 1, {"stride": 2, "padding": 1}), ((), 2, 3, 1, {"dilation": 2}),
                ((1,), 4, 4, 2, {"stride": (2,) * rank}), ((2,), 2, 2, 2, {"padding": 1}), ((0,), 2, 3, 1, {})):
            kernel = ((o if not transposed else c), (c if not transposed else o) // groups, *(2,) * rank)
            bias = make(o)
            yield sample(make(*batch, c, *size), make(*kernel), bias, groups=groups, **how)
        if transposed:
            yield sample(make(1, 2, *size), make(2, 2, *(3,) * rank), stride=2, output_padding=1)
        else:
            yield sample(make(1, 2, *size), make(2, 2, *(3,) * rank), padding="same")
    return samples


for _rank in (1, 2, 3):
    record(f"{_NN}conv{_rank}d", convolutions(_rank, False), complex=_rank < 3,
           covers=("convolution", "_conv_output", "_conv_image", "_conv_weight") if _rank == 2 else ())
    record(f"{_NN}conv_transpose{_rank}d", convolutions(_rank, True), complex=_rank < 3)
record(_NN + "unfold", lambda make: [sample(make(2, 2, 4, 4), 2), sample(make(2, 5, 4), (2, 3), 1, 1, 2),
                                     sample(make(1, 1, 5, 5), 2, dilation=2)], complex=True, covers=("im2col",))
record(_NN + "fold", lambda make: [sample(make(2, 8, 9), (4, 4), 2), sample(make(4, 4), 4, 2, stride=2)],
       complex=True, covers=("col2im",))


# ----- pooling --------------------------------------------------------------------------


def planes(rank: int, *arguments: tuple[Any, ...], **kwargs: Any) -> Any:
    def samples(make: Make) -> Iterable[Sample]:
        for args in arguments:
            yield sample(make.apart(2, 2, *(5,) * rank, gap=1e-3), *args, **kwargs)
            yield sample(make.apart(2, *(4,) * rank, gap=1e-3), *args, **kwargs)
    return samples


for _rank in (1, 2, 3):
    record(f"{_NN}max_pool{_rank}d", planes(_rank, (2,), (3, 2, 1), (2, 1, 0, 2), (2, 2, 0, 1, True)),
           covers=(f"_max_pool{_rank}d", "_scatter_planes", "_gather_planes") if _rank > 1 else ())
    record(f"{_NN}avg_pool{_rank}d", planes(_rank, (2,), (3, 2, 1), (2, 2, 0, True), (3, 2, 1, False, False)),
           covers=(f"_avg_pool{_rank}d", "_avg_pool_backward") if _rank > 1 else ())
    record(f"{_NN}adaptive_avg_pool{_rank}d", planes(_rank, (2,), (3,), (1,)),
           covers=(f"_adaptive_avg_pool{_rank}d", "_adaptive_avg_pool_backward") if _rank > 1 else ())
    record(f"{_NN}adaptive_max_pool{_rank}d", planes(_rank, (2,), (3,)),
           covers=(f"_adaptive_max_pool{_rank}d",) if _rank > 1 else ())
    record(f"{_NN}lp_pool{_rank}d", lambda make, rank=_rank: [sample(make(2, 2, *(4,) * rank, low=0.5), 2.0, 2)])


def unpooled(rank: int) -> Any:
    def samples(make: Make) -> Iterable[Sample]:
        places = np.stack([np.random.default_rng(0).permutation(4 ** rank)[:2 ** rank] for _ in range(2)])
        index = make.module.tensor(places.reshape(1, 2, *(2,) * rank))
        yield sample(make(1, 2, *(2,) * rank), index, 2)
    return samples


for _rank in (1, 2, 3):
    record(f"{_NN}max_unpool{_rank}d", unpooled(_rank), covers=(f"_max_unpool{_rank}d",) if _rank > 1 else ())


# ----- normalization --------------------------------------------------------------------


def batches(make: Make) -> Iterable[Sample]:
    zeros, ones = make.module.zeros(3, dtype=make.dtype), make.module.ones(3, dtype=make.dtype)
    yield sample(make(4, 3), None, None, make(3), make(3), training=True)
    yield sample(make(2, 3, 4), None, None, make(3), make(3), training=True)
    yield sample(make(2, 3, 2, 2), zeros, ones, make(3), make(3), training=False)
    yield sample(make(2, 3, 2), None, None, training=True)


record(_NN + "batch_norm", batches, covers=("_batch_norm", "_batch_norm_backward", "_shift_and_scale"))
record(_NN + "layer_norm", lambda make: [
    sample(make(2, 4), (4,), make(4), make(4)), sample(make(2, 3, 4), (3, 4), make(3, 4), make(3, 4)),
    sample(make(2, 4), (4,)), sample(make(4), (4,), make(4)), sample(make(0, 4), (4,), make(4))],
    covers=("_layer_norm", "_layer_norm_backward"))
record(_NN + "group_norm", lambda make: [
    sample(make(2, 4, 3), 2, make(4), make(4)), sample(make(2, 4), 2), sample(make(1, 6, 2, 2), 3, make(6), make(6))],
    covers=("_group_norm", "_group_norm_backward"))
record(_NN + "rms_norm", lambda make: [sample(make(2, 4), (4,), make(4)), sample(make(2, 4), (4,)),
                                       sample(make(2, 3, 4), (3, 4), None, 0.1)])


# ----- losses ---------------------------------------------------------------------------


def pairs(**kwargs: Any) -> Any:
    def samples(make: Make) -> Iterable[Sample]:
        for reduction in ("mean", "sum", "none"):
            yield sample(make(3, 2), make(3, 2), reduction=reduction, **kwargs)
        yield sample(make(), make(), **kwargs)
    return samples


record(_NN + "mse_loss", pairs(), covers=("_mse_loss_backward",))
record(_NN + "smooth_l1_loss", pairs(beta=0.7))
record(_NN + "huber_loss", pairs(delta=0.7))
record(_NN + "soft_margin_loss", lambda make: [
    sample(make(3, 2), make(3, 2, requires_grad=False), reduction=r) for r in ("mean", "sum", "none")])


def probabilities(make: Make) -> Iterable[Sample]:
    for reduction in ("mean", "sum", "none"):
        yield sample(make(3, 2, low=0.1, high=0.9), make(3, 2, low=0.1, high=0.9), reduction=reduction)
    yield sample(make(3, 2, low=0.1, high=0.9), make(3, 2, low=0.1, high=0.9), make(3, 2, requires_grad=False))


record(_NN + "binary_cross_entropy", probabilities, covers=("clamp_below",))
record(_NN + "binary_cross_entropy_with_logits", lambda make: [
    *(sample(make(3, 2), make(3, 2), reduction=r) for r in ("mean", "sum", "none")),
    sample(make(3, 2), make(3, 2), make(2, requires_grad=False), pos_weight=make(2, low=0.5, requires_grad=False))])


def margins(make: Make) -> Iterable[Sample]:
    for reduction in ("mean", "sum", "none"):
        yield sample(make(4, 3), make.integers(4, high=3), reduction=reduction)
        yield sample(make(4, 3), make.integers(4, high=3), 2, 0.7, make(3, low=0.5, requires_grad=False),
                     reduction=reduction)
    yield sample(make(3), make.integers(high=3))
    yield sample(make(), make.integers(high=1))


record(_NN + "multi_margin_loss", margins, twice=False,
       covers=("_multi_margin_loss", "_multi_margin_loss_backward", "_count_classes"))
record(_NN + "multilabel_margin_loss", lambda make: [
    *(sample(make(4, 3), make.integers(4, 3, high=3), reduction=r) for r in ("mean", "sum", "none")),
    sample(make(3), make.integers(3, high=3)), sample(make(), make.integers(high=1))],
    twice=False, covers=("_multilabel_margin_loss", "_multilabel_margin_loss_backward"))


def classes(make: Make) -> Iterable[Sample]:
    for reduction in ("mean", "sum", "none"):
        yield sample(make(4, 3), make.integers(4, high=3), reduction=reduction)
        yield sample(make(2, 3, 2), make.integers(2, 2, high=3), reduction=reduction)
    yield sample(make(3), make.integers(high=3))
    yield sample(make(2, 3, 2, 2), make.integers(2, 2, 2, high=3), make(3, low=0.5, requires_grad=False))
    yield sample(make(4, 3), make.integers(4, high=3), make(3, low=0.5, requires_grad=False), ignore_index=1)


record(_NN + "nll_loss", classes, covers=("_nll_loss", "_nll_loss2d", "_nll_loss_backward"))


def entropies(make: Make) -> Iterable[Sample]:
    yield from classes(make)
    yield sample(make(4, 3), make.integers(4, high=3), label_smoothing=0.2)
    yield sample(make(4, 3), make.integers(4, high=3), make(3, low=0.5, requires_grad=False), label_smoothing=0.2)
    yield sample(make(4, 3), make(4, 3, low=0))
    yield sample(make(2, 3, 2), make(2, 3, 2, low=0), make(3, low=0.5, requires_grad=False), label_smoothing=0.1)


record(_NN + "cross_entropy", entropies, covers=("_add_scalar", "_mul_scalar", "_div_scalar"))


# ----- lookups, dropout, attention ------------------------------------------------------


record(_NN + "embedding", lambda make: [
    sample(make.integers(2, 3, high=4), make(4, 2)), sample(make.integers(high=4), make(4, 2))],
    covers=("_embedding", "_embedding_backward", "_embedding_masked"))


def attentions(make: Make) -> Iterable[Sample]:
    mask = make.module.tensor(np.tri(3, 4, dtype=bool))
    yield sample(make(2, 2, 3, 4), make(2, 2, 5, 4), make(2, 2, 5, 4))
    yield sample(make(2, 2, 3, 4), make(2, 2, 4, 4), make(2, 2, 4, 4), mask)
    yield sample(make(2, 2, 3, 4), make(2, 2, 3, 4), make(2, 2, 3, 4), is_causal=True)
    yield sample(make(2, 3, 4), make(2, 4, 4), make(2, 4, 5), scale=0.3)
    yield sample(make(3, 4), make(4, 4), make(4, 4), make(3, 4))


record(_NN + "scaled_dot_product_attention", attentions,
       covers=("_flash_attention", "_attention_backward", "_safe_softmax", "_causal_mask", "_causal_zero"))


def bags(make: Make) -> Iterable[Sample]:
    flat, starts = make.integers(6, high=4), make.module.tensor([0, 2, 2, 3])
    for mode in ("sum", "mean", "max"):
        yield sample(make.integers(2, 3, high=4), make.apart(4, 2), mode=mode)
        yield sample(flat, make.apart(4, 2), starts, mode=mode)
    yield sample(flat, make(4, 2), starts, mode="sum", per_sample_weights=make(6))


record(_NN + "embedding_bag", bags, covers=("_embedding_bag", "_embedding_bag_max", "_take_rows", "_add_rows",
                                            "_scale_rows"))


def alignments(make: Make) -> Iterable[Sample]:
    logs = make(5, 2, 3, requires_grad=False).log_softmax(2)
    for reduction in ("none", "sum", "mean"):
        yield sample(logs, make.module.tensor([[1, 2], [2, 2]]), (5, 4), (2, 2), reduction=reduction)


# the gradient is right only behind a log_softmax: see test_neural
record(_NN + "ctc_loss", alignments, differentiable=False, covers=("_ctc_loss", "_ctc_loss_backward"))
