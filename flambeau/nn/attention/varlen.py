"""Attention over concatenated sequences, for which there is no kernel on the CPU."""

from __future__ import annotations

from typing import Any, NamedTuple, NoReturn

from ..._tensor import Tensor

__all__ = ["AuxRequest", "varlen_attn", "varlen_attn_out"]


class AuxRequest(NamedTuple):
    """Requested additional outputs.

    Attributes:
        lse: the log-sum-exp of the scores.

    >>> from flambeau.nn.attention.varlen import AuxRequest
    >>> AuxRequest()
    AuxRequest(lse=False)
    """

    lse: bool = False


def varlen_attn(query: Tensor, key: Tensor, value: Tensor, cu_seq_q: Tensor, cu_seq_k: Tensor | None, max_q: int,
                max_k: int, *, return_aux: AuxRequest | None = None, scale: float | None = None,
                window_size: tuple[int, int] = (-1, -1), enable_gqa: bool = False, seqused_k: Tensor | None = None,
                block_table: Tensor | None = None, num_splits: int | None = None) -> NoReturn:
    """Raise NotImplementedError: PyTorch, too, has this operator on GPUs only.

    Args:
        query: (T, H, E), sequences one after the other.
        key: (T, H, E).
        value: (T, H, E).
        cu_seq_q: starts of the sequences of queries, and their end.
        cu_seq_k: starts of the sequences of keys, and their end.
        max_q: length of the longest sequence of queries.
        max_k: length of the longest sequence of keys.
        return_aux: requested additional outputs.
        scale: factor of the scores.
        window_size: numbers of keys to the left and to the right.
        enable_gqa: whether keys may have fewer heads.
        seqused_k: lengths of the sequences of keys.
        block_table: blocks of a paged cache.
        num_splits: number of parts of the keys.
    """
    raise NotImplementedError("Could not run 'aten::_flash_attention_forward' with arguments from the 'CPU' backend.")


def varlen_attn_out(out: Tensor, query: Tensor, key: Tensor, value: Tensor, cu_seq_q: Tensor, cu_seq_k: Tensor | None,
                    max_q: int, max_k: int, **options: Any) -> NoReturn:
    """Raise NotImplementedError: PyTorch, too, has this operator on GPUs only.

    Args:
        out: the result.
        query: see `varlen_attn`.
        key: see `varlen_attn`.
        value: see `varlen_attn`.
        cu_seq_q: see `varlen_attn`.
        cu_seq_k: see `varlen_attn`.
        max_q: see `varlen_attn`.
        max_k: see `varlen_attn`.
        options: see `varlen_attn`.
    """
    raise NotImplementedError("Could not run 'aten::_flash_attention_forward' with arguments from the 'CPU' backend.")
