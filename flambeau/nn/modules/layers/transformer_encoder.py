"""`TransformerEncoder` and `TransformerEncoderLayer`."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

from ...._tensor import Tensor
from ...._tensor import functions as fn
from ... import functional as F
from ...functionals.native_attention import (
    native_encoder_layer,
    warn_of_nested_tensors,
    why_not_inference,
    why_not_packed,
)
from ..activation import GELU, MultiheadAttention, ReLU
from ..dropout import Dropout
from ..linear import Linear
from ..module import Module
from ..normalization import LayerNorm
from .transformer_masks import _detect_is_causal_mask, _get_activation_fn, _get_clones, _get_seq_len

__all__ = ["TransformerEncoder", "TransformerEncoderLayer"]


def _tensors(layer: TransformerEncoderLayer, src: Tensor) -> tuple[Tensor | None, ...]:
    """The input and the parameters of the inference path."""
    attention = layer.self_attn
    return (src, attention.in_proj_weight, attention.in_proj_bias, attention.out_proj.weight, attention.out_proj.bias,
            layer.norm1.weight, layer.norm1.bias, layer.norm2.weight, layer.norm2.bias, layer.linear1.weight,
            layer.linear1.bias, layer.linear2.weight, layer.linear2.bias)


class TransformerEncoderLayer(Module):
    """One layer of a transformer encoder: self-attention and a feed-forward network, each with a residual and a norm.

    x = norm1(x + dropout(attention(x))), x = norm2(x + dropout(linear2(dropout(activation(linear1(x)))))); with
    `norm_first`, the norms are applied to the inputs of attention and feed-forward network instead.

    In evaluation mode, where nothing requires grad, floating-point masks exclude a position where they are not 0, as in
    PyTorch's fused operator.

    Args:
        d_model: E, the size of the inputs.
        nhead: the number of attention heads.
        dim_feedforward: the size between the two linear layers.
        dropout: dropout probability.
        activation: "relu", "gelu" or a function of one tensor.
        layer_norm_eps: eps of the layer norms.
        batch_first: inputs are (N, L, E) instead of (L, N, E).
        norm_first: normalize inputs instead of sums.
        bias: whether linear layers and norms have biases.
        device: device of the parameters.
        dtype: dtype of the parameters.

    Shape:
        Input and output: (L, N, E), or (N, L, E) with `batch_first`, or (L, E).

    Raises:
        RuntimeError: the activation's name is unknown.

    >>> import flambeau as torch
    >>> layer = torch.nn.TransformerEncoderLayer(d_model=8, nhead=2, dim_feedforward=16)
    >>> layer(torch.rand(5, 3, 8)).shape
    flambeau.Size([5, 3, 8])
    """

    __constants__ = ["norm_first"]

    def __init__(self, d_model: int, nhead: int, dim_feedforward: int = 2048, dropout: float = 0.1,
                 activation: str | Callable[[Tensor], Tensor] = F.relu, layer_norm_eps: float = 1e-5,
                 batch_first: bool = False, norm_first: bool = False, bias: bool = True, device: Any = None,
                 dtype: Any = None) -> None:
        super().__init__()
        kind: dict[str, Any] = {"bias": bias, "device": device, "dtype": dtype}
        self.self_attn = MultiheadAttention(d_model, nhead, dropout=dropout, batch_first=batch_first, **kind)
        self.linear1 = Linear(d_model, dim_feedforward, **kind)
        self.dropout = Dropout(dropout)
        self.linear2 = Linear(dim_feedforward, d_model, **kind)
        self.norm_first = norm_first
        self.norm1 = LayerNorm(d_model, eps=layer_norm_eps, **kind)
        self.norm2 = LayerNorm(d_model, eps=layer_norm_eps, **kind)
        self.dropout1 = Dropout(dropout)
        self.dropout2 = Dropout(dropout)
        if isinstance(activation, str):
            activation = _get_activation_fn(activation)
        self.activation_relu_or_gelu = (1 if activation is F.relu or isinstance(activation, ReLU) else
                                        2 if activation is fn.gelu or isinstance(activation, GELU) else 0)
        self.activation = activation

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        if not hasattr(self, "activation"):
            self.activation = F.relu

    def forward(self, src: Tensor, src_mask: Tensor | None = None, src_key_padding_mask: Tensor | None = None,
                is_causal: bool = False) -> Tensor:
        """Encode.

        Args:
            src: the sequences, see the class.
            src_mask: (L, L) or (N · nhead, L, L), bool (True: no attention) or float (added to the scores).
            src_key_padding_mask: (N, L) or (L,), bool (True: ignore the key) or float (added to the scores).
            is_causal: hint that `src_mask` is the causal mask.
        """
        src_key_padding_mask = F._canonical_mask(src_key_padding_mask, "src_key_padding_mask",
                                                 F._none_or_dtype(src_mask), "src_mask", src.dtype)
        src_mask = F._canonical_mask(src_mask, "src_mask", None, "", src.dtype, check_other=False)
        if not self._why_not_inference(src):
            mask, mask_type = self.self_attn.merge_masks(src_mask, src_key_padding_mask, src)
            parameters: Any = _tensors(self, src)[1:]
            return native_encoder_layer(src, self.self_attn.embed_dim, self.self_attn.num_heads, parameters[:4],
                                        self.activation_relu_or_gelu == 2, self.norm_first, self.norm1.eps,
                                        parameters[4:], mask, mask_type)
        x = src
        if self.norm_first:
            x = x + self._sa_block(self.norm1(x), src_mask, src_key_padding_mask, is_causal=is_causal)
            return x + self._ff_block(self.norm2(x))
        x = self.norm1(x + self._sa_block(x, src_mask, src_key_padding_mask, is_causal=is_causal))
        return self.norm2(x + self._ff_block(x))

    def _why_not_inference(self, src: Tensor) -> str:
        attention = self.self_attn
        if src.dim() != 3:
            return f"input not batched; expected src.dim() of 3 but got {src.dim()}"
        if self.training:
            return "training is enabled"
        if not attention.batch_first:
            return "self_attn.batch_first was not True"
        if attention.in_proj_bias is None:
            return "self_attn was passed bias=False"
        if not attention._qkv_same_embed_dim:
            return "self_attn._qkv_same_embed_dim was not True"
        if not self.activation_relu_or_gelu:
            return "activation_relu_or_gelu was not True"
        if self.norm1.eps != self.norm2.eps:
            return "norm1.eps is not equal to norm2.eps"
        if attention.num_heads % 2:
            return "num_head is odd"
        if any(module._forward_hooks or module._forward_pre_hooks for module in self.modules()):
            return "forward pre-/hooks are attached to the module"
        return why_not_inference(_tensors(self, src))

    def _sa_block(self, x: Tensor, attn_mask: Tensor | None, key_padding_mask: Tensor | None,
                  is_causal: bool = False) -> Tensor:
        x = self.self_attn(x, x, x, attn_mask=attn_mask, key_padding_mask=key_padding_mask, need_weights=False,
                           is_causal=is_causal)[0]
        return self.dropout1(x)

    def _ff_block(self, x: Tensor) -> Tensor:
        x = self.linear2(self.dropout(self.activation(self.linear1(x))))
        return self.dropout2(x)


class TransformerEncoder(Module):
    """A stack of encoder layers, which start as copies of one layer.

    In evaluation mode, where nothing requires grad, outputs at padded positions are 0 if `src_key_padding_mask` masks
    the ends of sequences.

    Args:
        encoder_layer: the layer that is copied.
        num_layers: the number of copies.
        norm: a final normalization, or None.
        enable_nested_tensor: whether padded positions may be skipped in inference.
        mask_check: whether to check that the mask covers the ends only.

    Shape:
        Input and output: those of the layer.

    >>> import flambeau as torch
    >>> layer = torch.nn.TransformerEncoderLayer(d_model=8, nhead=2, dim_feedforward=16, batch_first=True)
    >>> torch.nn.TransformerEncoder(layer, num_layers=2)(torch.rand(3, 5, 8)).shape
    flambeau.Size([3, 5, 8])
    """

    __constants__ = ["norm"]

    def __init__(self, encoder_layer: Any, num_layers: int, norm: Module | None = None,
                 enable_nested_tensor: bool = True, mask_check: bool = True) -> None:
        super().__init__()
        self.layers = _get_clones(encoder_layer, num_layers)
        self.num_layers = num_layers
        self.norm = norm
        self.enable_nested_tensor = enable_nested_tensor
        self.use_nested_tensor = enable_nested_tensor
        self.mask_check = mask_check
        reason = _why_not_nested(encoder_layer)
        if enable_nested_tensor and reason:
            warnings.warn("enable_nested_tensor is True, but self.use_nested_tensor is False because "
                          f"encoder_layer{reason}", stacklevel=2)
            self.use_nested_tensor = False

    def forward(self, src: Tensor, mask: Tensor | None = None, src_key_padding_mask: Tensor | None = None,
                is_causal: bool | None = None) -> Tensor:
        """Encode by all layers.

        Args:
            src: the sequences, see the layer.
            mask: (L, L) or (N · nhead, L, L), bool (True: no attention) or float (added to the scores).
            src_key_padding_mask: (N, L) or (L,), bool (True: ignore the key) or float (added to the scores).
            is_causal: hint that `mask` is the causal mask; None detects it.
        """
        src_key_padding_mask = F._canonical_mask(src_key_padding_mask, "src_key_padding_mask", F._none_or_dtype(mask),
                                                 "mask", src.dtype)
        mask = F._canonical_mask(mask, "mask", None, "", src.dtype, check_other=False)
        padding = None
        if src_key_padding_mask is not None and not self._why_not_packed(src, mask, src_key_padding_mask):
            warn_of_nested_tensors()
            padding = src_key_padding_mask != 0
        is_causal = _detect_is_causal_mask(mask, is_causal, _get_seq_len(src, self.layers[0].self_attn.batch_first))
        output = src
        for layer in self.layers:
            output = layer(output, src_mask=mask, is_causal=is_causal, src_key_padding_mask=src_key_padding_mask)
        if padding is not None:
            output = output.masked_fill(padding.unsqueeze(-1), 0.0)
        return output if self.norm is None else self.norm(output)

    def _why_not_packed(self, src: Tensor, mask: Tensor | None, src_key_padding_mask: Tensor) -> str:
        layer = self.layers[0]
        if not getattr(self, "use_nested_tensor", False):
            return "self.use_nested_tensor (set in init) was not True"
        if layer.training:
            return "self.layers[0] was in training mode"
        if src.dim() != 3:
            return f"input not batched; expected src.dim() of 3 but got {src.dim()}"
        if reason := why_not_inference(()):
            return reason
        if reason := why_not_packed(src, src_key_padding_mask.logical_not(), getattr(self, "mask_check", True)):
            return reason
        if mask is not None:
            return "src_key_padding_mask and mask were both supplied"
        return why_not_inference(_tensors(layer, src))


def _why_not_nested(layer: Any) -> str:
    """Why an encoder of this layer does not use nested tensors, after the layer's name."""
    if not isinstance(layer, TransformerEncoderLayer):
        return " was not TransformerEncoderLayer"
    attention = layer.self_attn
    if layer.norm_first:
        return ".norm_first was True"
    if not attention.batch_first:
        return ".self_attn.batch_first was not True(use batch_first for better inference performance)"
    if not attention._qkv_same_embed_dim:
        return ".self_attn._qkv_same_embed_dim was not True"
    if attention.in_proj_bias is None:
        return ".self_attn was passed bias=False"
    if not layer.activation_relu_or_gelu:
        return ".activation_relu_or_gelu was not True"
    if layer.norm1.eps != layer.norm2.eps:
        return ".norm1.eps was not equal to encoder_layer.norm2.eps"
    return ".self_attn.num_heads is odd" if attention.num_heads % 2 else ""
