"""Overloads that PyTorch composes of others, where no public function has the operator's name and arguments."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .. import dtypes, special
from .._tensor import foreach, functions
from ..nn import functional as F
from ..nn import recurrent
from ..nn.functionals.resample import upsampled
from ..ops.schemas import aten_names, aten_overloads
from .assertion_operators import KERNELS as ASSERTIONS
from .gradient_operators import KERNELS as GRADIENTS
from .inner_operators import KERNELS as INNER
from .packed_weights import KERNELS as PACKED

_REDUCTIONS = ("none", "mean", "sum")


def _loss(function: Callable[..., Any]) -> Callable[..., Any]:
    """A loss whose operator takes the reduction as a number."""
    def run(self: Any, target: Any, reduction: int = 1) -> Any:
        return function(self, target, reduction=_REDUCTIONS[reduction])

    return run


def _cross_entropy(self: Any, target: Any, weight: Any = None, reduction: int = 1, ignore_index: int = -100,
                   label_smoothing: float = 0.0) -> Any:
    return F.cross_entropy(self, target, weight, ignore_index=ignore_index, reduction=_REDUCTIONS[reduction],
                           label_smoothing=label_smoothing)


def _nll_loss(self: Any, target: Any, weight: Any = None, reduction: int = 1, ignore_index: int = -100) -> Any:
    return F.nll_loss(self, target, weight, ignore_index=ignore_index, reduction=_REDUCTIONS[reduction])


def _kl_div(self: Any, target: Any, reduction: int = 1, *, log_target: bool = False) -> Any:
    return F.kl_div(self, target, reduction=_REDUCTIONS[reduction], log_target=log_target)


def _ctc_loss(log_probs: Any, targets: Any, input_lengths: Any, target_lengths: Any, blank: int = 0,
              reduction: int = 1, zero_infinity: bool = False) -> Any:
    return functions.ctc_loss(log_probs, targets, input_lengths, target_lengths, blank, reduction, zero_infinity)


def _margin(function: Callable[..., Any], tensors: int, names: tuple[str, ...]) -> Callable[..., Any]:
    def run(*args: Any, **kwargs: Any) -> Any:
        given = dict(zip((*names, "reduction"), args[tensors:], strict=False)) | kwargs
        given["reduction"] = _REDUCTIONS[given.get("reduction", 1)]
        return function(*args[:tensors], **given)

    return run


def _instance_norm(input: Any, weight: Any, bias: Any, running_mean: Any, running_var: Any, use_input_stats: bool,
                   momentum: float, eps: float, cudnn_enabled: bool) -> Any:
    return F.instance_norm(input, running_mean, running_var, weight, bias, use_input_stats, momentum, eps)


def _batch_norm(input: Any, weight: Any, bias: Any, running_mean: Any, running_var: Any, training: bool,
                momentum: float, eps: float, cudnn_enabled: bool) -> Any:
    return F.batch_norm(input, running_mean, running_var, weight, bias, training, momentum, eps)


def _method(name: str) -> Callable[..., Any]:
    """A method that changes the shape of a tensor in place, which no declared operator does."""
    return lambda self, *args, **kwargs: getattr(self, name)(*args, **kwargs)


def _upsample_vec(mode: str, antialias: bool = False) -> Callable[..., Any]:
    if "nearest" in mode:
        return lambda input, output_size, scale_factors: F.interpolate(
            input, output_size, None if scale_factors is None else tuple(scale_factors), mode)
    return lambda input, output_size, align_corners, scale_factors: F.interpolate(
        input, output_size, None if scale_factors is None else tuple(scale_factors), mode, align_corners,
        antialias=antialias)


def _upsample(mode: str, antialias: bool = False) -> Callable[..., Any]:
    """Upsampling to a size, by scales where they are given."""
    if "nearest" in mode:
        def nearest(self: Any, output_size: Any, *scales: Any, **named: Any) -> Any:
            return upsampled(self, list(output_size), _scales(self, scales, named), mode, False, False)

        return nearest

    def run(self: Any, output_size: Any, align_corners: bool, *scales: Any, **named: Any) -> Any:
        return upsampled(self, list(output_size), _scales(self, scales, named), mode, align_corners, antialias)

    return run


def _scales(x: Any, scales: tuple[Any, ...], named: dict[str, Any]) -> list[Any]:
    """The scale of each spatial dimension, None for one that is not given."""
    rank = x.dim() - 2
    names = ("scales_d", "scales_h", "scales_w")[-rank:] if rank > 1 else ("scales",)
    return [*scales, *(named.get(name) for name in names[len(scales):])]


def _to_options(self: Any, *, dtype: Any = None, layout: Any = None, device: Any = None, pin_memory: Any = None,
                non_blocking: bool = False, copy: bool = False, memory_format: Any = None) -> Any:
    return self.to(dtype=dtype, device=device, non_blocking=non_blocking, copy=copy, **(
        {} if memory_format is None else {"memory_format": memory_format}))


def _dropout_(self: Any, p: float, train: bool) -> Any:
    return F.dropout(self, p, train, inplace=True)


def _attention_with_sums(query: Any, key: Any, value: Any, dropout_p: float = 0.0, is_causal: bool = False, *,
                         attn_mask: Any = None, scale: float | None = None) -> tuple[Any, Any]:
    """Attention, and the logarithms of the sums that its softmax divides by.

    Raises:
        RuntimeError: dropout, or no four dimensions.
    """
    if dropout_p > 0.0:
        raise RuntimeError("scaled_dot_product_attention_flash_attention: Currently do not support dropout > 0")
    if query.dim() != 4:
        raise RuntimeError("scaled_dot_product_attention_flash_attention: Accept only 4 dims inputs shape of {B, H, T, "
                           "K}")
    out = F.scaled_dot_product_attention(query, key, value, attn_mask, 0.0, is_causal, scale=scale)
    scores = query @ key.transpose(-2, -1) * (query.shape[-1] ** -0.5 if scale is None else scale)
    if attn_mask is not None:
        scores = scores + attn_mask
    if is_causal:
        later = functions.ones(scores.shape[-2:], dtype=dtypes.bool_, device=scores.device).triu(1)
        scores = scores.masked_fill(later, float("-inf"))
    return out, functions.logsumexp(scores, -1).detach()


def _batch_norm_functional(input: Any, weight: Any, bias: Any, running_mean: Any, running_var: Any, training: bool,
                           momentum: float, eps: float) -> Any:
    """Batch normalization that returns the new running statistics instead of writing them."""
    mean, var = running_mean.clone(), running_var.clone()
    out, saved_mean, saved_invstd = functions.native_batch_norm(input, weight, bias, mean, var, training, momentum, eps)
    return out, saved_mean, saved_invstd, mean, var


def _batch_norm_no_training(input: Any, weight: Any, bias: Any, running_mean: Any, running_var: Any, momentum: float,
                            eps: float) -> Any:
    out = F.batch_norm(input, running_mean, running_var, weight, bias, False, momentum, eps)
    return out, functions.empty(0), functions.empty(0)


def _batch_norm_no_stats(input: Any, weight: Any, bias: Any, training: bool, momentum: float, eps: float) -> Any:
    return functions.native_batch_norm(input, weight, bias, None, None, training, momentum, eps)


def _index_put(self: Any, indices: Any, values: Any, accumulate: bool = False) -> Any:
    from ..ops import aten

    out = self.clone()
    aten.index_put_.default(out, indices, values, accumulate)
    return out


def _copied(self: Any, src: Any, non_blocking: bool = False) -> Any:
    """The values of `src` with shape and dtype of `self`."""
    out = functions.empty_like(self)
    return out.copy_(src)


def _filled(self: Any, value: Any) -> Any:
    return functions.empty_like(self).fill_(value)


#: "aten.name.overload" -> function with the schema's arguments
KERNELS: dict[str, Callable[..., Any]] = {
    "aten.cross_entropy_loss.default": _cross_entropy, "aten.nll_loss_nd.default": _nll_loss,
    "aten.nll_loss.default": _nll_loss, "aten.nll_loss2d.default": _nll_loss,
    "aten.l1_loss.default": _loss(F.l1_loss), "aten.soft_margin_loss.default": _loss(F.soft_margin_loss),
    "aten.kl_div.default": _kl_div, "aten.multilabel_margin_loss.default": _loss(F.multilabel_margin_loss),
    **dict.fromkeys(("aten.ctc_loss.IntList", "aten.ctc_loss.Tensor"), _ctc_loss),
    "aten.channel_shuffle.default": F.channel_shuffle,
    "aten.margin_ranking_loss.default": _margin(F.margin_ranking_loss, 3, ("margin",)),
    "aten.hinge_embedding_loss.default": _margin(F.hinge_embedding_loss, 2, ("margin",)),
    "aten.cosine_embedding_loss.default": _margin(F.cosine_embedding_loss, 3, ("margin",)),
    "aten.triplet_margin_loss.default": _margin(F.triplet_margin_loss, 3, ("margin", "p", "eps", "swap")),
    "aten.poisson_nll_loss.default": _margin(F.poisson_nll_loss, 2, ("log_input", "full", "eps")),
    "aten.instance_norm.default": _instance_norm, "aten.batch_norm.default": _batch_norm,
    "aten.tensordot.default": lambda self, other, dims_self, dims_other: functions.tensordot(
        self, other, (dims_self, dims_other)),
    "aten.pad.default": lambda self, pad, mode="constant", value=None: (
        F.pad(self, tuple(pad), mode, value)),
    **{f"aten.upsample_{name}.vec": _upsample_vec(mode) for name, mode in (
        ("nearest1d", "nearest"), ("nearest2d", "nearest"), ("nearest3d", "nearest"), ("linear1d", "linear"),
        ("bilinear2d", "bilinear"), ("trilinear3d", "trilinear"), ("bicubic2d", "bicubic"))},
    **{f"aten._upsample_nearest_exact{d}d.vec": _upsample_vec("nearest-exact") for d in (1, 2, 3)},
    **{f"aten.upsample_{name}.default": _upsample(mode) for name, mode in (
        ("nearest1d", "nearest"), ("nearest2d", "nearest"), ("nearest3d", "nearest"), ("linear1d", "linear"),
        ("bilinear2d", "bilinear"), ("trilinear3d", "trilinear"), ("bicubic2d", "bicubic"))},
    **{f"aten._upsample_nearest_exact{d}d.default": _upsample("nearest-exact") for d in (1, 2, 3)},
    **{f"aten.{name}": _method(name.partition(".")[0]) for name in (
        "squeeze_.default", "squeeze_.dim", "squeeze_.dims", "unsqueeze_.default", "transpose_.int",
        "transpose_.default", "t_.default", "swapaxes_.default", "swapdims_.default", "as_strided_.default")},
    **{f"aten._upsample_{mode}2d_aa.vec": _upsample_vec(mode, True) for mode in ("bilinear", "bicubic", "lanczos")},
    **{f"aten._upsample_{mode}2d_aa.default": _upsample(mode, True) for mode in ("bilinear", "bicubic", "lanczos")},
    "aten._scaled_dot_product_flash_attention_for_cpu.default": _attention_with_sums,
    **ASSERTIONS, **GRADIENTS, **INNER, **PACKED, "aten.to.dtype_layout": _to_options,
    "aten.dropout_.default": _dropout_, "aten.alpha_dropout_.default": lambda self, p, train: F.alpha_dropout(
        self, p, train, inplace=True),
    "aten.feature_dropout.default": lambda self, p, train: F.dropout2d(self, p, train),
    "aten.pixel_shuffle.default": F.pixel_shuffle, "aten.pixel_unshuffle.default": F.pixel_unshuffle,
    "aten.log_sigmoid.default": lambda self: F.logsigmoid(self),
    "aten.numpy_T.default": lambda self: self.T,
    "aten.mT.default": lambda self: self.mT, "aten.mH.default": lambda self: self.mH,
    "aten.matrix_H.default": lambda self: self.H, "aten.one_hot.default": F.one_hot,
    "aten.lstm.input": recurrent.lstm, "aten.gru.input": recurrent.gru, "aten.rnn_tanh.input": recurrent.rnn_tanh,
    "aten.rnn_relu.input": recurrent.rnn_relu,
    "aten._native_batch_norm_legit_functional.default": _batch_norm_functional,
    "aten._native_batch_norm_legit_no_training.default": _batch_norm_no_training,
    "aten._native_batch_norm_legit.no_stats": _batch_norm_no_stats,
    "aten.index_put.default": _index_put, "aten.copy.default": _copied, "aten.fill.Scalar": _filled,
    "aten.fill.Tensor": _filled,
}

def _of_lists(function: Callable[..., Any], in_place: bool) -> Callable[..., Any]:
    """A function on lists as an operator: it returns a list; nothing if it writes in place."""
    def run(*args: Any, **kwargs: Any) -> Any:
        result = function(*args, **kwargs)
        return None if in_place else list(result)

    return run


def _add_lists_and_special_functions() -> None:
    """Enter the functions on lists of tensors, and those of `torch.special`, whose operators have their names."""
    for name in aten_names():
        if name.startswith("_foreach_"):
            function = _of_lists(getattr(foreach, name), name.endswith("_"))
        elif name.startswith("special_"):
            found = getattr(special, name.removeprefix("special_"), None)
            if found is None:
                continue
            function = found
        else:
            continue
        for overload in aten_overloads(name):
            KERNELS.setdefault(f"aten.{name}.{overload}", function)


_add_lists_and_special_functions()

__all__ = ["KERNELS"]
