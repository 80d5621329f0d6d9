"""`TransformerDecoder` and `TransformerDecoderLayer`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...._tensor import Tensor
from ... import functional as F
from ..activation import MultiheadAttention
from ..dropout import Dropout
from ..linear import Linear
from ..module import Module
from ..normalization import LayerNorm
from .transformer_masks import _detect_is_causal_mask, _get_activation_fn, _get_clones, _get_seq_len

__all__ = ["TransformerDecoder", "TransformerDecoderLayer"]


class TransformerDecoderLayer(Module):
    """One layer of a transformer decoder: self-attention, attention to the memory, and a feed-forward network.

    Each of the three is dropped out, added to its input and normalized; with `norm_first`, inputs are normalized
    instead.

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
        Target and output (T, N, E), memory (S, N, E); with `batch_first` (N, T, E) and (N, S, E); or without N.

    Raises:
        RuntimeError: the activation's name is unknown.

    >>> import flambeau as torch
    >>> layer = torch.nn.TransformerDecoderLayer(d_model=8, nhead=2, dim_feedforward=16)
    >>> layer(torch.rand(4, 3, 8), torch.rand(5, 3, 8)).shape
    flambeau.Size([4, 3, 8])
    """

    __constants__ = ["norm_first"]

    def __init__(self, d_model: int, nhead: int, dim_feedforward: int = 2048, dropout: float = 0.1,
                 activation: str | Callable[[Tensor], Tensor] = F.relu, layer_norm_eps: float = 1e-5,
                 batch_first: bool = False, norm_first: bool = False, bias: bool = True, device: Any = None,
                 dtype: Any = None) -> None:
        super().__init__()
        kind: dict[str, Any] = {"bias": bias, "device": device, "dtype": dtype}
        self.self_attn = MultiheadAttention(d_model, nhead, dropout=dropout, batch_first=batch_first, **kind)
        self.multihead_attn = MultiheadAttention(d_model, nhead, dropout=dropout, batch_first=batch_first, **kind)
        self.linear1 = Linear(d_model, dim_feedforward, **kind)
        self.dropout = Dropout(dropout)
        self.linear2 = Linear(dim_feedforward, d_model, **kind)
        self.norm_first = norm_first
        self.norm1 = LayerNorm(d_model, eps=layer_norm_eps, **kind)
        self.norm2 = LayerNorm(d_model, eps=layer_norm_eps, **kind)
        self.norm3 = LayerNorm(d_model, eps=layer_norm_eps, **kind)
        self.dropout1 = Dropout(dropout)
        self.dropout2 = Dropout(dropout)
        self.dropout3 = Dropout(dropout)
        self.activation = _get_activation_fn(activation) if isinstance(activation, str) else activation

    def __setstate__(self, state: dict[str, Any]) -> None:
        if "activation" not in state:
            state["activation"] = F.relu
        super().__setstate__(state)

    def forward(self, tgt: Tensor, memory: Tensor, tgt_mask: Tensor | None = None, memory_mask: Tensor | None = None,
                tgt_key_padding_mask: Tensor | None = None, memory_key_padding_mask: Tensor | None = None,
                tgt_is_causal: bool = False, memory_is_causal: bool = False) -> Tensor:
        """Decode.

        Args:
            tgt: the target sequences.
            memory: the encoder's output.
            tgt_mask: (T, T) or (N · nhead, T, T), bool (True: no attention) or float (added to the scores).
            memory_mask: (T, S) or (N · nhead, T, S), the same for the memory.
            tgt_key_padding_mask: (N, T) or (T,), bool (True: ignore the key) or float (added to the scores).
            memory_key_padding_mask: (N, S) or (S,), the same for the memory.
            tgt_is_causal: hint that `tgt_mask` is the causal mask.
            memory_is_causal: hint that `memory_mask` is the causal mask.
        """
        own = (tgt_mask, tgt_key_padding_mask, tgt_is_causal)
        other = (memory, memory_mask, memory_key_padding_mask, memory_is_causal)
        x = tgt
        if self.norm_first:
            x = x + self._sa_block(self.norm1(x), *own)
            x = x + self._mha_block(self.norm2(x), *other)
            return x + self._ff_block(self.norm3(x))
        x = self.norm1(x + self._sa_block(x, *own))
        x = self.norm2(x + self._mha_block(x, *other))
        return self.norm3(x + self._ff_block(x))

    def _sa_block(self, x: Tensor, attn_mask: Tensor | None, key_padding_mask: Tensor | None,
                  is_causal: bool = False) -> Tensor:
        x = self.self_attn(x, x, x, attn_mask=attn_mask, key_padding_mask=key_padding_mask, is_causal=is_causal,
                           need_weights=False)[0]
        return self.dropout1(x)

    def _mha_block(self, x: Tensor, mem: Tensor, attn_mask: Tensor | None, key_padding_mask: Tensor | None,
                   is_causal: bool = False) -> Tensor:
        x = self.multihead_attn(x, mem, mem, attn_mask=attn_mask, key_padding_mask=key_padding_mask,
                                is_causal=is_causal, need_weights=False)[0]
        return self.dropout2(x)

    def _ff_block(self, x: Tensor) -> Tensor:
        x = self.linear2(self.dropout(self.activation(self.linear1(x))))
        return self.dropout3(x)


class TransformerDecoder(Module):
    """A stack of decoder layers, which start as copies of one layer.

    Args:
        decoder_layer: the layer that is copied.
        num_layers: the number of copies.
        norm: a final normalization, or None.

    Shape:
        Inputs and output: those of the layer.

    >>> import flambeau as torch
    >>> layer = torch.nn.TransformerDecoderLayer(d_model=8, nhead=2, dim_feedforward=16)
    >>> torch.nn.TransformerDecoder(layer, num_layers=2)(torch.rand(4, 3, 8), torch.rand(5, 3, 8)).shape
    flambeau.Size([4, 3, 8])
    """

    __constants__ = ["norm"]

    def __init__(self, decoder_layer: Any, num_layers: int, norm: Module | None = None) -> None:
        super().__init__()
        self.layers = _get_clones(decoder_layer, num_layers)
        self.num_layers = num_layers
        self.norm = norm

    def forward(self, tgt: Tensor, memory: Tensor, tgt_mask: Tensor | None = None, memory_mask: Tensor | None = None,
                tgt_key_padding_mask: Tensor | None = None, memory_key_padding_mask: Tensor | None = None,
                tgt_is_causal: bool | None = None, memory_is_causal: bool = False) -> Tensor:
        """Decode by all layers; the arguments are those of the layer.

        Args:
            tgt: the target sequences.
            memory: the encoder's output.
            tgt_mask: see the layer.
            memory_mask: see the layer.
            tgt_key_padding_mask: see the layer.
            memory_key_padding_mask: see the layer.
            tgt_is_causal: hint that `tgt_mask` is the causal mask; None detects it.
            memory_is_causal: see the layer.
        """
        length = _get_seq_len(tgt, self.layers[0].self_attn.batch_first)
        tgt_is_causal = _detect_is_causal_mask(tgt_mask, tgt_is_causal, length)
        output = tgt
        for layer in self.layers:
            output = layer(output, memory, tgt_mask=tgt_mask, memory_mask=memory_mask,
                           tgt_key_padding_mask=tgt_key_padding_mask, memory_key_padding_mask=memory_key_padding_mask,
                           tgt_is_causal=tgt_is_causal, memory_is_causal=memory_is_causal)
        return output if self.norm is None else self.norm(output)
