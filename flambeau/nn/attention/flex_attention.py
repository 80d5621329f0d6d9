"""`flex_attention`: attention with a function of each score and a block-sparse mask."""

from __future__ import annotations

import inspect
import math
import warnings
from collections.abc import Callable
from enum import Enum
from itertools import groupby
from typing import Any, NamedTuple, TypedDict

from ..._tensor import Tensor
from ..._tensor import functions as fn
from ...dtypes import bool_, float32, float64, int8
from ...func import vmap
from .. import functional as F
from .block_mask import (
    DEFAULT_BLOCK_SIZE,
    LARGE_BLOCK_SIZE,
    BlockMask,
    dense_to_ordered,
    noop_mask,
    sliced_mask_mod,
    write_order,
)

__all__ = ["AuxOutput", "AuxRequest", "BlockMask", "FlexKernelOptions", "and_masks", "create_block_mask", "create_mask",
           "flex_attention", "noop_mask", "or_masks"]

_DEFAULT_SPARSE_BLOCK_SIZE = DEFAULT_BLOCK_SIZE
_FLEX_ATTENTION_DISABLE_COMPILE_DEBUG = False
_BACKENDS = ("AUTO", "TRITON", "FLASH", "TRITON_DECODE")
_warned_of_lse = [False]
#: (score, batch, head, query, key) -> score
_score_mod_signature = Callable[[Tensor, Tensor, Tensor, Tensor, Tensor], Tensor]
#: (batch, head, query, key) -> whether the query attends to the key
_mask_mod_signature = Callable[[Tensor, Tensor, Tensor, Tensor], Tensor]


class FlexKernelOptions(TypedDict, total=False):
    """Options of PyTorch's kernels on GPUs, without effect on a CPU.

    >>> from flambeau.nn.attention.flex_attention import FlexKernelOptions
    >>> FlexKernelOptions(BLOCK_M=64)
    {'BLOCK_M': 64}
    """

    num_warps: int
    num_stages: int
    BLOCK_M: int
    BLOCK_N: int
    BLOCK_M1: int
    BLOCK_N1: int
    BLOCK_M2: int
    BLOCK_N2: int
    PRESCALE_QK: bool
    ROWS_GUARANTEED_SAFE: bool
    BLOCKS_ARE_CONTIGUOUS: bool
    WRITE_DQ: bool
    FORCE_USE_FLEX_ATTENTION: bool
    USE_TMA: bool
    kpack: int
    matrix_instr_nonkdim: int
    waves_per_eu: int
    BACKEND: str


class AuxRequest(NamedTuple):
    """Requested additional outputs.

    Attributes:
        lse: the log-sum-exp of the scores.
        max_scores: the largest scores.

    >>> from flambeau.nn.attention.flex_attention import AuxRequest
    >>> AuxRequest(lse=True)
    AuxRequest(lse=True, max_scores=False)
    """

    lse: bool = False
    max_scores: bool = False


class AuxOutput(NamedTuple):
    """Additional outputs, None where they are not requested.

    Attributes:
        lse: (B, H, L), the log-sum-exp of the scores of each query.
        max_scores: (B, H, L), the largest score of each query.

    >>> from flambeau.nn.attention.flex_attention import AuxOutput
    >>> AuxOutput()
    AuxOutput(lse=None, max_scores=None)
    """

    lse: Tensor | None = None
    max_scores: Tensor | None = None


class _ModificationType(Enum):
    SCORE_MOD = 1
    MASK_MOD = 2
    UNKNOWN = 3


def _get_mod_type(mod: Callable[..., Any]) -> _ModificationType:
    """Whether a function takes a score and four indices, or four indices."""
    if hasattr(mod, "__code__"):
        count = mod.__code__.co_argcount - len(getattr(mod, "__defaults__", None) or ())
    else:
        count = sum(p.default is inspect.Parameter.empty for p in inspect.signature(mod).parameters.values())
    if count not in (4, 5):
        raise AssertionError(f"Expected 4 or 5 positional args, got {count}")
    return _ModificationType.SCORE_MOD if count == 5 else _ModificationType.MASK_MOD


def _vmap_for_bhqkv(mod: Callable[..., Any], prefix: tuple[int | None, ...],
                    suffix: tuple[int | None, ...] = ()) -> Callable[..., Any]:
    """A function of single indices as a function of arange tensors: the result is (B, H, Q, KV)."""
    for dims in ((None, None, None, 0), (None, None, 0, None), (None, 0, None, None), (0, None, None, None)):
        mod = vmap(mod, in_dims=prefix + dims + suffix)
    return mod


def _identity(score: Tensor, batch: Tensor, head: Tensor, token_q: Tensor, token_kv: Tensor) -> Tensor:
    """The score modification that changes nothing."""
    return score


def _combined(mask_mods: tuple[Callable[..., Tensor], ...], is_and: bool) -> Callable[..., Tensor]:
    if not all(callable(mod) for mod in mask_mods):
        raise RuntimeError(f"All inputs should be callable mask_mods: {mask_mods}")

    def mask_mod(b: Tensor, h: Tensor, q_idx: Tensor, kv_idx: Tensor) -> Tensor:
        result = b.new_ones((), dtype=bool_) if is_and else b.new_zeros((), dtype=bool_)
        for mod in mask_mods:
            result = result & mod(b, h, q_idx, kv_idx) if is_and else result | mod(b, h, q_idx, kv_idx)
        return result

    mask_mod.__name__ = "and_mask" if is_and else "or_mask"
    return mask_mod


def or_masks(*mask_mods: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """The mask function that is True where any of several is.

    Args:
        mask_mods: mask functions.

    Raises:
        RuntimeError: one is not callable.

    >>> from flambeau.nn.attention.flex_attention import create_mask, or_masks
    >>> create_mask(or_masks(lambda b, h, q, kv: q >= kv, lambda b, h, q, kv: kv == 2), 1, 1, 1, 3)
    tensor([[[[ True, False, True]]]])
    """
    return _combined(mask_mods, is_and=False)


def and_masks(*mask_mods: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """The mask function that is True where all of several are.

    Args:
        mask_mods: mask functions.

    Raises:
        RuntimeError: one is not callable.

    >>> from flambeau.nn.attention.flex_attention import and_masks, create_mask
    >>> create_mask(and_masks(lambda b, h, q, kv: q <= kv, lambda b, h, q, kv: kv < 2), 1, 1, 1, 3)
    tensor([[[[ True, True, False]]]])
    """
    return _combined(mask_mods, is_and=True)


def create_mask(mod_fn: Callable[..., Tensor], B: int | None, H: int | None, Q_LEN: int, KV_LEN: int,
                device: Any = None) -> Tensor:
    """The dense mask (B, H, Q_LEN, KV_LEN) of a mask function, or where a score function does not return -inf.

    Args:
        mod_fn: `mask_mod(b, h, q_idx, kv_idx)` or `score_mod(score, b, h, q_idx, kv_idx)`.
        B: batch size; None for 1.
        H: number of heads; None for 1.
        Q_LEN: number of queries.
        KV_LEN: number of keys.
        device: device of the mask.

    Raises:
        AssertionError: the function does not take four or five arguments.

    >>> from flambeau.nn.attention.flex_attention import create_mask
    >>> create_mask(lambda b, h, q, kv: q >= kv, 1, 1, 2, 2)
    tensor([[[[ True, False],
              [ True, True]]]])
    """
    b, h, q, kv = (fn.arange(n, device=device) for n in (1 if B is None else B, 1 if H is None else H, Q_LEN, KV_LEN))
    if _get_mod_type(mod_fn) == _ModificationType.SCORE_MOD:
        zeros = fn.zeros((len(b), len(h), Q_LEN, KV_LEN), device=device)
        return fn.logical_not(fn.isneginf(_vmap_for_bhqkv(mod_fn, (0,))(zeros, b, h, q, kv)))
    result: Tensor = _vmap_for_bhqkv(mod_fn, ())(b, h, q, kv)
    return result


def _block_sums(mask: Tensor, q_size: int, kv_size: int) -> Tensor:
    """The number of Trues in each block, (B, H, rows, columns)."""
    if mask.dtype != bool_:
        raise AssertionError(f"mask.dtype must be torch.bool, got {mask.dtype}")
    mask = F.pad(mask, (0, -mask.shape[-1] % kv_size, 0, -mask.shape[-2] % q_size))
    blocks = mask.view(*mask.shape[:2], mask.shape[2] // q_size, q_size, mask.shape[3] // kv_size, kv_size)
    return blocks.sum((3, 5))


def create_block_mask(mask_mod: Callable[..., Tensor], B: int | None, H: int | None, Q_LEN: int, KV_LEN: int,
                      device: Any = None, BLOCK_SIZE: int | tuple[int, int] = DEFAULT_BLOCK_SIZE,
                      _compile: bool = False, separate_full_blocks: bool = True, compute_dq_write_order: bool = False,
                      dq_kv_order: bool = True) -> BlockMask:
    """The block-sparse mask of a mask function.

    Args:
        mask_mod: `mask_mod(b, h, q_idx, kv_idx)`, whether a query attends to a key.
        B: batch size; None where the mask is the same for all elements.
        H: number of heads; None where the mask is the same for all heads.
        Q_LEN: number of queries.
        KV_LEN: number of keys.
        device: device of the mask.
        BLOCK_SIZE: numbers of queries and of keys in a block.
        separate_full_blocks: whether blocks without masked elements are full ones.
        compute_dq_write_order: whether to compute the order of additions of PyTorch's backward pass on GPUs.
        dq_kv_order: whether that order is reversed.

    Raises:
        AssertionError: the function does not take four arguments.

    >>> from flambeau.nn.attention.flex_attention import create_block_mask
    >>> mask = create_block_mask(lambda b, h, q, kv: q >= kv, None, None, 512, 512)
    >>> mask.shape, mask.sparsity()
    ((1, 1, 512, 512), 37.5)
    """
    if _get_mod_type(mask_mod) != _ModificationType.MASK_MOD:
        raise AssertionError(f"create-block_mask requires a mask_mod function! Got {mask_mod}")
    if _compile:
        warnings.warn("_compile flag on create_block_mask was originally added to work around a torch.compile "
                      "limitation. That limitation has since been addressed. So, to compile create_block_mask, we "
                      "suggest doing torch.compile(create_block_mask). This still works for now, but will be removed "
                      "in the future.", DeprecationWarning, stacklevel=2)
    if not isinstance(dq_kv_order, bool):
        raise ValueError("dq_kv_order must be a bool when using create_block_mask")
    sizes = (BLOCK_SIZE, BLOCK_SIZE) if isinstance(BLOCK_SIZE, int) else (BLOCK_SIZE[0], BLOCK_SIZE[1])
    sums = _block_sums(create_mask(mask_mod, B, H, Q_LEN, KV_LEN, device), *sizes)
    is_full = sums == (sizes[0] * sizes[1] if separate_full_blocks else -1)
    partial = dense_to_ordered(((sums > 0) & fn.logical_not(is_full)).to(int8))
    full: Any = dense_to_ordered(is_full.to(int8)) if separate_full_blocks else (None, None)
    mask = BlockMask.from_kv_blocks(partial[0], partial[1], full[0], full[1], BLOCK_SIZE=sizes, mask_mod=mask_mod,
                                    seq_lengths=(Q_LEN, KV_LEN))
    if compute_dq_write_order:
        mask.dq_write_order, mask.dq_write_order_full = write_order(mask, dq_kv_order)
        mask.dq_kv_order_spt = dq_kv_order
    return mask


def flex_attention(query: Tensor, key: Tensor, value: Tensor, score_mod: Callable[..., Tensor] | None = None,
                   block_mask: BlockMask | None = None, scale: float | None = None, enable_gqa: bool = False,
                   return_lse: bool = False, kernel_options: FlexKernelOptions | None = None, *,
                   return_aux: AuxRequest | None = None) -> Any:
    """softmax(score_mod(query keyᵀ · scale)) value, where blocks that the mask excludes are not computed.

    Args:
        query: (B, Hq, L, E).
        key: (B, Hkv, S, E); B may be 1.
        value: (B, Hkv, S, Ev).
        score_mod: `score_mod(score, b, h, q_idx, kv_idx)`, evaluated by `vmap`; may use other tensors, by index.
        block_mask: which queries attend to which keys; None for all.
        scale: factor of the scores, by default 1 / √E.
        enable_gqa: whether Hkv may divide Hq.
        return_lse: deprecated: use `return_aux`.
        kernel_options: without effect.
        return_aux: requested additional outputs.

    Returns:
        (B, Hq, L, Ev), and with `return_aux` an `AuxOutput`.

    Raises:
        ValueError: shapes do not match, or `block_mask` is for other lengths.
        NotImplementedError: a tensor is not 4-D, or the largest scores are requested.

    >>> import flambeau as torch
    >>> from flambeau.nn.attention.flex_attention import create_block_mask, flex_attention
    >>> mask = create_block_mask(lambda b, h, q, kv: q >= kv, None, None, 4, 4)
    >>> x = torch.arange(4.0).reshape(1, 1, 4, 1)
    >>> flex_attention(torch.zeros(1, 1, 4, 1), x, x, block_mask=mask).flatten()
    tensor([0.0000, 0.5000, 1.0000, 1.5000])
    """
    _check(query, key, value, block_mask, enable_gqa)
    if return_lse:
        if return_aux is not None:
            raise ValueError("Cannot specify both return_lse and return_aux. return_lse is deprecated, please use "
                             "return_aux=AuxRequest(lse=True) instead.")
        if not _warned_of_lse[0]:
            _warned_of_lse[0] = True
            warnings.warn("return_lse is deprecated and will be removed in v2.10. Please use "
                          "return_aux=AuxRequest(lse=True) instead.", FutureWarning, stacklevel=2)
    _check_options(kernel_options or {}, return_aux)
    scale = 1.0 / math.sqrt(query.size(-1)) if scale is None else scale
    groups = query.size(1) // key.size(1)
    if groups != 1:
        key, value = (fn.repeat_interleave(x, groups, dim=1) for x in (key, value))
    if key.size(0) != query.size(0):
        if key.size(0) != 1:
            raise RuntimeError(f"Bq and Bkv must broadcast. Got Bq={query.size(0)} and Bkv={key.size(0)}")
        key, value = (x.expand(query.size(0), *x.shape[1:]) for x in (key, value))
    wants_lse = return_lse or (return_aux is not None and return_aux.lse)
    out, lse = _attend(query, key, value, score_mod, block_mask, scale, wants_lse)
    if return_aux is not None:
        return out, AuxOutput(lse=lse)
    return (out, lse) if return_lse else out


def _check(query: Tensor, key: Tensor, value: Tensor, block_mask: BlockMask | None, enable_gqa: bool) -> None:
    dims = (query.dim(), key.dim(), value.dim())
    if min(dims) < 2:
        raise ValueError("Expected query, key, and value to all be  at least 2 dimensional, but got query.dim: "
                         f"{dims[0]}, key.dim: {dims[1]} and value.dim: {dims[2]} instead.")
    if query.size(-1) != key.size(-1):
        raise ValueError("Expect query and key/value to have the same embedding dimension but got "
                         f"E={query.size(-1)} and E={key.size(-1)}.")
    if dims != (4, 4, 4):
        raise NotImplementedError("NYI: query, key, and value must be 4D tensors")
    if not enable_gqa and query.size(1) != key.size(1):
        raise ValueError("Expect query and key/value to have the same number of heads but got "
                         f"Hq={query.size(1)} and Hkv={key.size(1)}. Try setting enable_gqa=True for GQA.")
    if enable_gqa and query.size(1) % key.size(1):
        raise ValueError("Expect number of query heads to be a multiple of kv heads for GQA but got "
                         f"Hq={query.size(1)} and Hkv={key.size(1)}.")
    if query.size(0) != key.size(0):
        if block_mask is None:
            raise ValueError("Expect query and key/value to have the same batch size, or non-none block_mask, but got "
                             f"block_mask=None, Bq={query.size(0)}, and Bkv={key.size(0)}.")
        if block_mask.kv_num_blocks.size(0) != query.size(0):
            raise ValueError("Expect query and key/value to have the same batch size, or block_mask and query to have "
                             f"the same batch size, but got Bq={query.size(0)}, Bkv={key.size(0)}, "
                             f"B_block_mask={block_mask.kv_num_blocks.size(0)}.")
    if block_mask is None:
        return
    if block_mask.mask_mod is sliced_mask_mod:
        raise RuntimeError("Cannot use mask_mod from a sliced BlockMask")
    if block_mask.BLOCK_SIZE[0] == LARGE_BLOCK_SIZE == block_mask.BLOCK_SIZE[1]:
        return
    q_len, kv_len = query.size(-2), key.size(-2)
    mask_q, mask_kv = block_mask.shape[-2:]
    made_for = (f"block_mask was created for block_mask.shape={block_mask.shape} but got q_len={q_len} and "
                f"kv_len={kv_len}. As the block mask was created for a ")
    if q_len > mask_q or kv_len > mask_kv:
        raise ValueError(f"{made_for}smaller length than you're using it for, you likely need to create a new block "
                         "mask.")
    if (q_len, kv_len) != (mask_q, mask_kv):
        raise ValueError(
            f"{made_for}larger length than you're using it for, you can either 1. create a new block mask with the "
            "correct length, or 2. 'adjust' the existing block mask to the correct length by calling "
            "block_mask._adjust(q_len, kv_len). This essentially 'crops' the block mask to the upper left corner, "
            "which does not work for all mask_mods!")


def _check_options(options: Any, return_aux: AuxRequest | None) -> None:
    if "BACKEND" in options and options.get("FORCE_USE_FLEX_ATTENTION", False):
        raise RuntimeError("BACKEND cannot be combined with legacy FORCE_USE_FLEX_ATTENTION. BACKEND supersedes the "
                           "legacy knob; please drop FORCE_USE_FLEX_ATTENTION and only specify the desired BACKEND.")
    if options.get("BACKEND", "AUTO") not in _BACKENDS:
        raise ValueError(f"Invalid BACKEND value '{options['BACKEND']}'. Must be one of {_BACKENDS}")
    for name in ("OUTPUT_LOGSUMEXP", "OUTPUT_MAX"):
        if name in options:
            raise AssertionError(f"{name} must not be in kernel_options")
    if return_aux is not None and return_aux.max_scores:
        if options.get("BACKEND") == "FLASH":
            raise NotImplementedError("Returning max scores is not supported with BACKEND='FLASH'. Use "
                                      "return_aux=AuxRequest(lse=True) or omit max_scores.")
        raise NotImplementedError("Returning max scores is not supported on CPU/MPS.")


# ----- computation -----


def _attend(query: Tensor, key: Tensor, value: Tensor, score_mod: Any, block_mask: BlockMask | None, scale: float,
            wants_lse: bool) -> tuple[Tensor, Tensor | None]:
    """The output and the log-sum-exp, by batch elements and heads with the same blocks."""
    batch, heads, q_len, _ = query.shape
    kv_len = key.shape[2]
    rows: Any = None if block_mask is None else block_mask.rows
    mask_mod = noop_mask if block_mask is None else block_mask.mask_mod
    if rows is None:
        rows, sizes = ((((0, mask_mod is noop_mask),),),), (q_len, kv_len)
        rows = (rows,)
    else:
        assert block_mask is not None
        sizes = block_mask.BLOCK_SIZE
    places = [fn.arange(n, device=query.device) for n in (batch, heads, q_len, kv_len)]
    parts = []
    for b in _shared(rows, batch):
        of_heads = [_attend_rows(query[b, h], key[b, h], value[b, h], [places[0][b], places[1][h], *places[2:]],
                                 rows[b.start if len(rows) > 1 else 0][h.start if len(rows[0]) > 1 else 0], sizes,
                                 score_mod, mask_mod, scale, wants_lse)
                    for h in _shared(rows[b.start if len(rows) > 1 else 0], heads)]
        parts.append([_joined(xs, 1) for xs in zip(*of_heads, strict=True)])
    out, lse = (_joined(xs, 0) for xs in zip(*parts, strict=True))
    return out, lse if wants_lse else None


def _shared(rows: Any, size: int) -> list[slice]:
    """The slices of a dimension in which all have the same blocks."""
    if len(rows) == 1:
        return [slice(0, size)]
    starts = [i for i in range(size) if i == 0 or rows[i] != rows[i - 1]]
    return [slice(i, j) for i, j in zip(starts, [*starts[1:], size], strict=True)]


def _joined(parts: Any, dim: int) -> Any:
    return parts[0] if len(parts) == 1 or parts[0] is None else fn.cat(list(parts), dim)


def _attend_rows(query: Tensor, key: Tensor, value: Tensor, places: list[Tensor], rows: Any, sizes: tuple[int, int],
                 score_mod: Any, mask_mod: Any, scale: float, wants_lse: bool) -> tuple[Tensor, Tensor | None]:
    """The output of batch elements and heads with the same blocks, by rows of blocks with the same columns."""
    outs, lses = [], []
    first = 0
    q_len = query.shape[2]
    for blocks, group in groupby(rows):
        end = min(first + len(list(group)) * sizes[0], q_len)
        if first >= q_len:
            break
        out, lse = _attend_block(query[:, :, first:end], key, value, [*places[:2], places[2][first:end], places[3]],
                                 blocks, sizes[1], score_mod, mask_mod, scale, wants_lse)
        outs.append(out)
        lses.append(lse)
        first = end
    return _joined(outs, 2), _joined(lses, 2)


def _attend_block(query: Tensor, key: Tensor, value: Tensor, places: list[Tensor], blocks: Any, size: int,
                  score_mod: Any, mask_mod: Any, scale: float, wants_lse: bool) -> tuple[Tensor, Tensor | None]:
    """The output of queries that attend to the same blocks of keys."""
    b, h, q, kv = places
    dtype = float64 if query.dtype == float64 else float32
    kv_len = key.shape[2]
    runs = [(is_full, c * size, min((c + 1) * size, kv_len)) for c, is_full in blocks if c * size < kv_len]
    if not runs:
        shape = query.shape[:3]
        lse = fn.full(shape, float("-inf"), dtype=dtype, device=query.device) if wants_lse else None
        return query.new_zeros((*shape, value.shape[-1])), lse
    spans: list[list[Any]] = []  # adjacent blocks of the same kind
    for is_full, start, end in runs:
        if spans and spans[-1][0] == is_full and spans[-1][2] == start:
            spans[-1][2] = end
        else:
            spans.append([is_full, start, end])
    key, value, kv = (_columns(x, dim, spans) for x, dim in ((key, 2), (value, 2), (kv, 0)))
    scores = fn.matmul(query.to(dtype), key.to(dtype).transpose(-2, -1)) * scale
    if score_mod is not None:
        scores = _vmap_for_bhqkv(score_mod, (0,))(scores, b, h, q, kv).to(dtype)
    if not all(is_full for is_full, _, _ in spans):
        allowed, at = [], 0
        for is_full, start, end in spans:
            part = kv[at:at + end - start]
            at += end - start
            allowed.append(fn.ones((len(b), len(h), len(q), len(part)), dtype=bool_, device=query.device)
                           if is_full else _vmap_for_bhqkv(mask_mod, ())(b, h, q, part))
        scores = fn.where(_joined(allowed, -1), scores, float("-inf"))
    lse = scores.logsumexp(-1) if wants_lse else None
    return fn.matmul(fn._safe_softmax(scores, -1).to(query.dtype), value.to(query.dtype)), lse


def _columns(x: Tensor, dim: int, spans: list[list[Any]]) -> Tensor:
    """The spans of a dimension: a view where they are adjacent."""
    first, end = spans[0][1], spans[-1][2]
    if sum(stop - start for _, start, stop in spans) == end - first:
        return x if end - first == x.shape[dim] else fn.narrow(x, dim, first, end - first)
    return fn.cat([fn.narrow(x, dim, start, stop - start) for _, start, stop in spans], dim)
