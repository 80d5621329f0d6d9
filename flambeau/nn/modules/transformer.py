"""`Transformer`, its encoder, decoder and their layers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..._tensor import Tensor
from .. import functional as F
from .. import init
from .layers.transformer_decoder import TransformerDecoder, TransformerDecoderLayer
from .layers.transformer_encoder import TransformerEncoder, TransformerEncoderLayer
from .layers.transformer_masks import (
    _detect_is_causal_mask,
    _generate_square_subsequent_mask,
    _get_activation_fn,
    _get_clones,
    _get_seq_len,
)
from .module import Module
from .normalization import LayerNorm

__all__ = ["Transformer", "TransformerDecoder", "TransformerDecoderLayer", "TransformerEncoder",
           "TransformerEncoderLayer", "_detect_is_causal_mask", "_generate_square_subsequent_mask",
           "_get_activation_fn", "_get_clones", "_get_seq_len"]


class Transformer(Module):
    """A transformer: an encoder of the source sequences, and a decoder that attends to its output.

    Args:
        d_model: E, the size of the inputs.
        nhead: the number of attention heads.
        num_encoder_layers: the number of encoder layers.
        num_decoder_layers: the number of decoder layers.
        dim_feedforward: the size between the two linear layers of each layer.
        dropout: dropout probability.
        activation: "relu", "gelu" or a function of one tensor.
        custom_encoder: used instead of the encoder.
        custom_decoder: used instead of the decoder.
        layer_norm_eps: eps of the layer norms.
        batch_first: inputs are (N, L, E) instead of (L, N, E).
        norm_first: normalize inputs instead of sums.
        bias: whether linear layers and norms have biases.
        device: device of the parameters.
        dtype: dtype of the parameters.

    Shape:
        Source (S, N, E), target and output (T, N, E); with `batch_first` (N, S, E) and (N, T, E); or without N.

    >>> import flambeau as torch
    >>> model = torch.nn.Transformer(8, 2, 1, 1, 16, batch_first=True)
    >>> model(torch.rand(3, 5, 8), torch.rand(3, 4, 8)).shape
    flambeau.Size([3, 4, 8])
    """

    def __init__(self, d_model: int = 512, nhead: int = 8, num_encoder_layers: int = 6, num_decoder_layers: int = 6,
                 dim_feedforward: int = 2048, dropout: float = 0.1,
                 activation: str | Callable[[Tensor], Tensor] = F.relu, custom_encoder: Any = None,
                 custom_decoder: Any = None, layer_norm_eps: float = 1e-5, batch_first: bool = False,
                 norm_first: bool = False, bias: bool = True, device: Any = None, dtype: Any = None) -> None:
        super().__init__()
        arguments = (d_model, nhead, dim_feedforward, dropout, activation, layer_norm_eps, batch_first, norm_first,
                     bias, device, dtype)

        def norm() -> LayerNorm:
            return LayerNorm(d_model, eps=layer_norm_eps, bias=bias, device=device, dtype=dtype)

        if custom_encoder is None:
            layer = TransformerEncoderLayer(*arguments)
            custom_encoder = TransformerEncoder(layer, num_encoder_layers, norm())
        self.encoder = custom_encoder
        if custom_decoder is None:
            custom_decoder = TransformerDecoder(TransformerDecoderLayer(*arguments), num_decoder_layers, norm())
        self.decoder = custom_decoder
        self._reset_parameters()
        self.d_model = d_model
        self.nhead = nhead
        self.batch_first = batch_first

    def forward(self, src: Tensor, tgt: Tensor, src_mask: Tensor | None = None, tgt_mask: Tensor | None = None,
                memory_mask: Tensor | None = None, src_key_padding_mask: Tensor | None = None,
                tgt_key_padding_mask: Tensor | None = None, memory_key_padding_mask: Tensor | None = None,
                src_is_causal: bool | None = None, tgt_is_causal: bool | None = None,
                memory_is_causal: bool = False) -> Tensor:
        """Encode the source and decode the target.

        Masks are bool (True: no attention) or float (added to the scores).

        Args:
            src: the source sequences.
            tgt: the target sequences.
            src_mask: (S, S) or (N · nhead, S, S).
            tgt_mask: (T, T) or (N · nhead, T, T).
            memory_mask: (T, S) or (N · nhead, T, S).
            src_key_padding_mask: (N, S) or (S,).
            tgt_key_padding_mask: (N, T) or (T,).
            memory_key_padding_mask: (N, S) or (S,).
            src_is_causal: hint that `src_mask` is the causal mask; None detects it.
            tgt_is_causal: hint that `tgt_mask` is the causal mask; None detects it.
            memory_is_causal: hint that `memory_mask` is the causal mask.
        """
        batch_dim = 0 if self.batch_first else 1
        if src.dim() == 3 and src.size(batch_dim) != tgt.size(batch_dim):
            raise RuntimeError("the batch number of src and tgt must be equal")
        if src.size(-1) != self.d_model or tgt.size(-1) != self.d_model:
            raise RuntimeError("the feature number of src and tgt must be equal to d_model")
        memory = self.encoder(src, mask=src_mask, src_key_padding_mask=src_key_padding_mask, is_causal=src_is_causal)
        return self.decoder(tgt, memory, tgt_mask=tgt_mask, memory_mask=memory_mask,
                            tgt_key_padding_mask=tgt_key_padding_mask,
                            memory_key_padding_mask=memory_key_padding_mask, tgt_is_causal=tgt_is_causal,
                            memory_is_causal=memory_is_causal)

    @staticmethod
    def generate_square_subsequent_mask(sz: int, device: Any = None, dtype: Any = None) -> Tensor:
        """The causal mask (sz, sz): -inf above the diagonal, 0 elsewhere.

        Args:
            sz: the sequence length.
            device: device of the mask.
            dtype: dtype of the mask.

        >>> import flambeau as torch
        >>> torch.nn.Transformer.generate_square_subsequent_mask(2)
        tensor([[0., -inf],
                [0., 0.]])
        """
        return _generate_square_subsequent_mask(sz, dtype=dtype, device=device)

    def _reset_parameters(self) -> None:
        for parameter in self.parameters():
            if parameter.dim() > 1:
                init.xavier_uniform_(parameter)
