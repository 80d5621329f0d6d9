"""Operators that PyTorch's functions call and programs meet in graphs, `torch.ops.aten._convolution`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from .. import dtypes
from .._tensor import functions as fn
from ..devices import contiguous_format
from ..nn import functional as F
from .registry import operator_named


def _convolution(input: Any, weight: Any, bias: Any, stride: Any, padding: Any, dilation: Any, transposed: bool,
                 output_padding: Any, groups: int, *flags: bool) -> Any:
    """`convolution`; the flags choose between kernels that do not exist here."""
    return fn.convolution(input, weight, bias, tuple(stride), tuple(padding), tuple(dilation), transposed,
                          tuple(output_padding), groups)


def _convolution_mode(input: Any, weight: Any, bias: Any, stride: Any, padding: str, dilation: Any, groups: int) -> Any:
    convolve = (F.conv1d, F.conv2d, F.conv3d)[weight.dim() - 3]
    return convolve(input, weight, bias, tuple(stride), padding, tuple(dilation), groups)


def _plain_convolution(rank: int) -> Callable[..., Any]:
    convolve = (F.conv1d, F.conv2d, F.conv3d)[rank - 1]

    def run(self: Any, weight: Any, kernel_size: Any, bias: Any = None, stride: Any = 1, padding: Any = 0,
            dilation: Any = 1) -> Any:
        return convolve(self, weight, bias, _each(stride, rank), _each(padding, rank), _each(dilation, rank))

    return run


def _transposed_convolution(rank: int) -> Callable[..., Any]:
    convolve = (F.conv_transpose1d, F.conv_transpose2d, F.conv_transpose3d)[rank - 1]

    def run(self: Any, weight: Any, kernel_size: Any, bias: Any = None, stride: Any = 1, padding: Any = 0,
            output_padding: Any = 0, dilation: Any = 1) -> Any:
        return convolve(self, weight, bias, _each(stride, rank), _each(padding, rank), _each(output_padding, rank), 1,
                        _each(dilation, rank))

    return run


def _depthwise(rank: int) -> Callable[..., Any]:
    convolve = (F.conv1d, F.conv2d, F.conv3d)[rank - 1]

    def run(self: Any, weight: Any, kernel_size: Any, bias: Any, stride: Any, padding: Any, dilation: Any) -> Any:
        return convolve(self, weight, bias, _each(stride, rank), _each(padding, rank), _each(dilation, rank),
                        self.shape[-rank - 1])

    return run


def _each(value: Any, rank: int) -> tuple[int, ...]:
    """One number for each dimension."""
    given = (value,) if isinstance(value, int) else tuple(value)
    return given * rank if len(given) == 1 else given


def _batch_norm_legit(input: Any, weight: Any, bias: Any, running_mean: Any, running_var: Any, training: bool,
                      momentum: float, eps: float) -> Any:
    return fn.native_batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps)


def _batch_norm_impl_index(input: Any, weight: Any, bias: Any, running_mean: Any, running_var: Any, training: bool,
                           momentum: float, eps: float, cudnn_enabled: bool) -> Any:
    """`native_batch_norm`, an empty reserve and the number of the kernel, 0."""
    out, mean, invstd = fn.native_batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps)
    return out, mean, invstd, fn.empty(0, dtype=dtypes.uint8), 0


def _embedding_bag(weight: Any, indices: Any, offsets: Any, scale_grad_by_freq: bool = False, mode: int = 0,
                   sparse: bool = False, per_sample_weights: Any = None, include_last_offset: bool = False,
                   padding_idx: int = -1) -> Any:
    return fn.embedding_bag(weight, indices, offsets, scale_grad_by_freq, mode, sparse, per_sample_weights,
                            include_last_offset, None if padding_idx < 0 else padding_idx)


def _unsafe_index_put(self: Any, indices: Any, values: Any, accumulate: bool = False) -> Any:
    out = self.clone()
    operator_named("aten::index_put_")(out, indices, values, accumulate)
    return out


def _index_put_impl_(self: Any, indices: Any, values: Any, accumulate: bool = False, unsafe: bool = False) -> Any:
    return operator_named("aten::index_put_")(self, indices, values, accumulate)


def _within(x: Any, indices: Sequence[Any], mask: Any) -> list[Any]:
    """Indices that are in range: 0 where a mask is False."""
    return [None if each is None else fn.where(mask, each, 0).clamp(-size, size - 1)
            for each, size in zip(indices, x.shape, strict=False)]


def _unsafe_masked_index(self: Any, mask: Any, indices: Any, fill: Any) -> Any:
    """The elements at indices, and `fill` where the mask is False."""
    found = operator_named("aten::index.Tensor")(self, _within(self, indices, mask))
    return found.masked_fill(~mask, fill)


def _unsafe_masked_index_put_accumulate(self: Any, mask: Any, indices: Any, values: Any) -> Any:
    """The sum with values at indices where the mask is True."""
    return _unsafe_index_put(self, _within(self, indices, mask), values.masked_fill(~mask, 0), True)


def _attention_math(query: Any, key: Any, value: Any, attn_mask: Any = None, dropout_p: float = 0.0,
                    is_causal: bool = False, dropout_mask: Any = None, *, scale: float | None = None,
                    enable_gqa: bool = False) -> Any:
    """Attention and its weights."""
    if enable_gqa:
        key = key.repeat_interleave(query.shape[-3] // key.shape[-3], -3)
        value = value.repeat_interleave(query.shape[-3] // value.shape[-3], -3)
    scores = query @ key.transpose(-2, -1) * (query.shape[-1] ** -0.5 if scale is None else scale)
    if is_causal:
        attn_mask = fn.ones(scores.shape[-2:], dtype=dtypes.bool_, device=scores.device).tril()
    if attn_mask is not None:
        scores = scores.masked_fill(~attn_mask, float("-inf")) if attn_mask.dtype is dtypes.bool_ else (
            scores + attn_mask)
    weights = fn._safe_softmax(scores, -1)
    if dropout_mask is not None:
        kept = weights.masked_fill(~dropout_mask, 0.0)
        return kept @ (value * (1.0 / (1.0 - dropout_p))), weights
    if dropout_p > 0.0:
        weights = fn.dropout(weights, dropout_p, True)
    return weights @ value, weights


def _cast(dtype: Any) -> Callable[..., Any]:
    return lambda self, non_blocking=False: self.to(dtype, non_blocking=non_blocking)



def _fused_rms_norm(input: Any, normalized_shape: Any, weight: Any, eps: float | None) -> Any:
    """RMS normalization, and the reciprocal roots of the mean squares."""
    dims = tuple(range(-len(normalized_shape), 0))
    added = eps if eps is not None else float(dtypes.finfo(input.dtype).eps)
    rstd = fn.rsqrt(input.square().mean(dims, keepdim=True) + added)
    return F.rms_norm(input, tuple(normalized_shape), weight, eps), rstd


def _pad_enum(self: Any, pad: Any, mode: int, value: float | None = None) -> Any:
    return F.pad(self, tuple(pad), ("reflect", "replicate", "circular", "constant")[mode], value)


def _pad_sequence(sequences: Any, batch_first: bool = False, padding_value: float = 0.0,
                  padding_side: str = "right") -> Any:
    from ..nn.utils.rnn import pad_sequence

    return pad_sequence(sequences, batch_first, padding_value, padding_side)


def _flatten_dense_tensors(tensors: Any) -> Any:
    return fn.cat([x.contiguous().view(-1) for x in tensors])


def _unflatten_dense_tensors(flat: Any, tensors: Any) -> Any:
    start, outs = 0, []
    for x in tensors:
        outs.append(flat.narrow(0, start, x.numel()).view_as(x))
        start += x.numel()
    return outs


#: "aten.name.overload" -> function with the schema's arguments
KERNELS: dict[str, Callable[..., Any]] = {
    **dict.fromkeys(("aten._convolution.default", "aten._convolution.deprecated"), _convolution),
    "aten._convolution_mode.default": _convolution_mode,
    "aten.thnn_conv2d.default": _plain_convolution(2), "aten.slow_conv3d.default": _plain_convolution(3),
    **{f"aten.slow_conv_dilated{rank}d.default": _plain_convolution(rank) for rank in (2, 3)},
    **{f"aten.slow_conv_transpose{rank}d.default": _transposed_convolution(rank) for rank in (2, 3)},
    "aten._conv_depthwise2d.default": _depthwise(2), "aten.conv_depthwise3d.default": _depthwise(3),
    "aten._native_batch_norm_legit.default": _batch_norm_legit,
    "aten._batch_norm_impl_index.default": _batch_norm_impl_index,
    **{f"aten.{name}.default": _embedding_bag for name in ("_embedding_bag", "_embedding_bag_forward_only")},
    "aten._unsafe_index.Tensor": lambda self, indices: operator_named("aten::index.Tensor")(self, indices),
    "aten._unsafe_index_put.default": _unsafe_index_put, "aten._index_put_impl_.default": _index_put_impl_,
    "aten._unsafe_masked_index.default": _unsafe_masked_index,
    "aten._unsafe_masked_index_put_accumulate.default": _unsafe_masked_index_put_accumulate,
    "aten._scaled_dot_product_attention_math.default": _attention_math,
    "aten._fused_rms_norm.default": _fused_rms_norm,
    "aten._aminmax.default": lambda self: tuple(fn.aminmax(self)),
    "aten._aminmax.dim": lambda self, dim, keepdim=False: tuple(fn.aminmax(self, dim=dim, keepdim=keepdim)),
    "aten._stack.default": lambda tensors, dim=0: fn.stack(tuple(tensors), dim),
    "aten._logcumsumexp.default": lambda self, dim: fn.logcumsumexp(self, dim),
    "aten._conj_physical.default": lambda self: fn.conj_physical(self),
    "aten._is_all_true.default": lambda self: fn.all(self), "aten._is_any_true.default": lambda self: fn.any(self),
    "aten._pad_enum.default": _pad_enum,
    "aten._pad_circular.default": lambda self, pad: F.pad(self, tuple(pad), "circular"),
    "aten.pad_sequence.default": _pad_sequence, "aten.relu6_.default": lambda self: F.relu6(self, inplace=True),
    "aten.flatten_dense_tensors.default": _flatten_dense_tensors,
    "aten.unflatten_dense_tensors.default": _unflatten_dense_tensors,
    "aten.sym_stride.int": lambda self, dim: self.stride(dim),
    "aten.sym_is_contiguous.default": lambda self, memory_format=contiguous_format: self.is_contiguous(
        memory_format=memory_format),
    **{f"aten._cast_{name}.default": _cast(dtype) for name, dtype in (
        ("Byte", dtypes.uint8), ("Char", dtypes.int8), ("Double", dtypes.float64), ("Float", dtypes.float32),
        ("Half", dtypes.float16), ("Int", dtypes.int32), ("Long", dtypes.int64), ("Short", dtypes.int16))},
    "aten._conj_copy.default": lambda self: fn.conj_physical(self).clone(),
    "aten._neg_view_copy.default": lambda self: fn.neg(self),
    "aten._reshape_alias_copy.default": lambda self, size, stride: self.reshape(tuple(size)).clone(),
    "aten._to_cpu.default": lambda tensors: [x.cpu() for x in tensors],
}

__all__ = ["KERNELS"]
