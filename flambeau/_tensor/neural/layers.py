"""Embeddings, dropout and attention: argument checks and the operators they are composed of."""

from __future__ import annotations

import math
from functools import partial
from typing import Any, NoReturn

import numpy as np

from ... import dtypes
from ...backends.attention_kernels import check as check_kernels
from ...backends.attention_kernels import enabled as enabled_kernels
from ...backends.attention_kernels import restricted
from ...backends.elementless_array import ElementlessArray
from ...backends.numpy.memory import check_scalar_fits
from ...dtypes import C_NAMES
from ...engine.grad_mode import grad_mode
from ...engine.tensor_interface import layer
from ...kernels.memory_format import empty_in_layout
from ...modes import device_memory, dispatch_in_use, special
from ...ops.declare import REGISTRY
from ..argument_errors.guards import raise_refusal
from ..argument_errors.messages import unfit
from ..creation import direct_draws
from ..creation.distributions import bernoulli_array
from ..dispatch.apply import apply
from ..dispatch.batched_tensor import active_levels
from ..dispatch.handlers import handlers
from ..fastpath.levels import beside_handlers
from ..fastpath.repeated_calls import ANY, repeated
from ..linalg.matmul import matmul
from ..methods.sparse import implementation as sparse_implementation
from ..tensor import Tensor, wrap
from ..tracer_notifications import notify_created

__all__ = ["alpha_dropout", "alpha_dropout_", "dropout", "dropout_", "embedding",
           "feature_alpha_dropout", "feature_alpha_dropout_", "feature_dropout", "feature_dropout_",
           "scaled_dot_product_attention"]


# ----- embeddings ------------------------------------------------------------------------


@partial(repeated, most=ANY)
def embedding(weight: Tensor, indices: Tensor, padding_idx: int = -1, scale_grad_by_freq: bool = False,
              sparse: bool = False) -> Tensor:
    """The rows of `weight` at `indices`.

    Args:
        weight: (rows, width).
        indices: row indices, int64 or int32, any shape.
        padding_idx: the index of a row that gets no gradient; -1 for none.
        scale_grad_by_freq: divide the gradient of a row by the number of its occurrences in `indices`.

    Raises:
        IndexError: an index is out of range.

    >>> import flambeau as torch
    >>> torch.embedding(torch.tensor([[1.0], [2.0]]), torch.tensor([1, 0]))
    tensor([[2.],
            [1.]])
    """
    if scale_grad_by_freq.__class__ is not bool or sparse.__class__ is not bool:
        raise TypeError("embedding(): argument must be bool")  # a guard says which
    if weight._array.ndim != 2:
        raise RuntimeError("'weight' must be 2-D")
    if indices._array.dtype not in (np.int64, np.int32):
        raise_dtype_error("embedding", "indices", indices, "Long, Int")
    if sparse and weight._requires_grad and (not special[0] or beside_handlers(weight)):
        return sparse_implementation("embeddings", "embedding")(weight, indices, padding_idx, bool(scale_grad_by_freq))
    return apply(REGISTRY["_embedding"], [weight, indices], {
        "padding_idx": padding_idx, "scale_grad_by_freq": bool(scale_grad_by_freq),
        "sparse": bool(sparse)})


def raise_dtype_error(function: str, name: str, x: Tensor, types: str) -> NoReturn:
    got = dtypes.stream_type_name(x.dtype)
    raise RuntimeError(f"Expected tensor for argument #1 '{name}' to have one of the following scalar types: {types}; "
                       f"but got {got} instead (while checking arguments for {function})")


# ----- dropout ---------------------------------------------------------------------------

#: alpha · scale of selu, the negative of the value that dropped elements are set to
_SELU_FLOOR = 1.7580993408473766


def _dropout(input: Tensor, p: float, train: bool, inplace: bool, feature: bool, alpha: bool) -> Tensor:
    if not 0 <= p <= 1:
        raise RuntimeError(f"dropout probability has to be between 0 and 1, but got {p:g}")
    a = input._array
    if p == 0 or not train or not a.size:
        return input
    if p < 1 and not feature and not alpha and not inplace and not special[0] and a.__class__ is np.ndarray and (
            a.dtype.char in "fd" and a.flags.c_contiguous and 1 not in a.shape):
        kept = direct_draws.dropout_mask(a, 1 - p)
        if kept is None:
            kept = bernoulli_array(a.shape, 1 - p, a.dtype)
            np.true_divide(kept, a.dtype.type(1 - p), out=kept)
        return input * wrap(kept)
    fn = layer.functions
    if device_memory.count and p < 1 and not (feature or alpha or inplace) and input._device.type == "cuda":
        return handlers.dropout_on_device(input, p)
    if p == 1:
        zeros = fn.zeros((), dtype=input.dtype)
        return input.mul_(zeros) if inplace else input * zeros
    if feature:
        if a.ndim < 2:
            raise RuntimeError("Feature dropout requires at least 2 dimensions in the input")
        shape = (*a.shape[:2], *(1 for _ in a.shape[2:]))
        noise: Any = input.new_empty(shape) if dispatch_in_use[0] or isinstance(a, ElementlessArray) else wrap(
            np.empty(shape, a.dtype))
    elif dispatch_in_use[0] or isinstance(a, ElementlessArray):
        noise = fn.empty_like(input)
    elif a.__class__ is np.ndarray:
        noise = wrap(empty_in_layout(a))
    else:
        noise = wrap(np.empty(a.shape, a.dtype))
    if special[0] and not dispatch_in_use[0]:
        notify_created(noise._array, True)
    if special[0] and active_levels():
        noise = fn.bernoulli(noise, 1 - p)  # batched, if examples differ
    else:
        noise.bernoulli_(1 - p)
    if not alpha:
        noise.div_(1 - p)
        return input.mul_(noise) if inplace else input * noise
    scale = 1 / math.sqrt((_SELU_FLOOR * _SELU_FLOOR * p + 1) * (1 - p))
    shift = noise.add(-1).mul_(_SELU_FLOOR * scale).add_(_SELU_FLOOR * scale * p)
    noise.mul_(scale)
    return input.mul_(noise).add_(shift) if inplace else input * noise + shift


_DROPOUT_DOC = """{summary}

    Args:
        input: floating point, of any shape{shape}.
        p: the probability of zeroing, in [0, 1].
        train: whether to apply dropout; otherwise the result is `input`.

    Raises:
        RuntimeError: `p` is outside [0, 1]{error}.

    >>> import flambeau as torch
    >>> _ = torch.manual_seed(0)
    >>> x = torch.{name}(torch.ones(1, 4, 2), 0.5, train=True)
    >>> x.shape
    flambeau.Size([1, 4, 2])
    >>> torch.{name}(torch.ones(2, 2), 0.5, train=False)
    tensor([[1., 1.],
            [1., 1.]])
    """


def _dropout_functions(name: str, feature: bool, alpha: bool, doc: str) -> tuple[Any, Any]:
    def drop(input: Tensor, p: float, train: bool) -> Tensor:
        if train.__class__ is not bool:
            raise TypeError(f"{name}(): argument 'train' must be bool")  # a guard says more
        return _dropout(input, p, train, False, feature, alpha)

    def drop_in_place(input: Tensor, p: float, train: bool) -> Tensor:
        if train.__class__ is not bool:
            raise TypeError(f"{name}_(): argument 'train' must be bool")
        return _dropout(input, p, train, True, feature, alpha)

    drop.__name__ = drop.__qualname__ = name
    drop_in_place.__name__ = drop_in_place.__qualname__ = name + "_"
    shape, error = (" of at least 2 dimensions", ", or `input` has less than 2 dimensions") if feature else ("", "")
    drop.__doc__ = _DROPOUT_DOC.format(summary=doc, name=name, shape=shape, error=error)
    drop_in_place.__doc__ = _DROPOUT_DOC.format(summary=f"`{name}`, in place.", name=f"{name}_", shape=shape,
                                                error=error)
    return drop, drop_in_place


dropout, dropout_ = _dropout_functions(
    "dropout", False, False, "Set each element to zero with probability `p` and divide the others by 1 - p.")
feature_dropout, feature_dropout_ = _dropout_functions(
    "feature_dropout", True, False,
    "Set each channel (dimension 1) to zero with probability `p` and divide the others by 1 - p.")
alpha_dropout, alpha_dropout_ = _dropout_functions(
    "alpha_dropout", False, True, "Dropout that preserves the mean and variance of selu's outputs.")
feature_alpha_dropout, feature_alpha_dropout_ = _dropout_functions(
    "feature_alpha_dropout", True, True, "`alpha_dropout` of entire channels (dimension 1).")


# ----- attention -------------------------------------------------------------------------


def _check_attention(query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None) -> None:
    try:
        q, k, v = query._array, key._array, value._array
        fits = mask is None or mask._array.dtype.kind == "b" or mask._array.dtype in (np.float32, q.dtype)
    except AttributeError:
        raise_refusal(unfit(("scaled_dot_product_attention",), (query, key, value, mask), {}))
        raise
    if not q.dtype == k.dtype == v.dtype:
        names = [C_NAMES[x.dtype.name] for x in (query, key, value)]
        raise RuntimeError("Expected query, key, and value to have the same dtype, but got query.dtype: "
                           f"{names[0]} key.dtype: {names[1]} and value.dtype: {names[2]} instead.")
    if min(q.ndim, k.ndim, v.ndim) < 2:
        raise RuntimeError("Expected query, key, and value to all be  at least 2 dimensional, but got query.dim: "
                           f"{q.ndim} key.dim: {k.ndim} and value.dim: {v.ndim} instead.")
    if mask is not None and not fits:
        raise RuntimeError("Expected attn_mask dtype to be bool or float or to match query dtype, but got "
                           f"attn_mask.dtype: {C_NAMES[mask.dtype.name]} and  query.dtype: "
                           f"{C_NAMES[query.dtype.name]} instead.")


def _fits_one_node(query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, dropout_p: float,
                   enable_gqa: bool) -> bool:
    q, k, v = query._array, key._array, value._array
    if not q.ndim == k.ndim == v.ndim == 4 or dropout_p > 0 or q.dtype.kind not in "fV":
        return False
    shape, sources, size = q.shape, k.shape, q.itemsize
    width = shape[3]
    if not width == sources[3] == v.shape[3] or 0 in shape or 0 in sources or sources != v.shape:
        return False
    if mask is not None and (mask._requires_grad or mask._array.ndim not in (2, 4)):
        return False
    if shape[0] != sources[0] or (shape[1] % sources[1] if enable_gqa else shape[1] != sources[1]):
        return False
    return width == 1 or q.strides[3] == k.strides[3] == v.strides[3] == size


@repeated
def scaled_dot_product_attention(query: Tensor, key: Tensor, value: Tensor, attn_mask: Tensor | None = None,
                                 dropout_p: float = 0.0, is_causal: bool = False, scale: float | None = None,
                                 enable_gqa: bool = False) -> Tensor:
    """softmax(query keyᵀ · scale + attn_mask) value.

    Args:
        query: (..., L, E).
        key: (..., S, E).
        value: (..., S, Ev).
        attn_mask: float values to add, or bool, True where attention is permitted; broadcasts to (..., L, S).
        dropout_p: the dropout probability of the attention weights.
        is_causal: mask keys after the query's position.
        scale: default: 1 / √E.
        enable_gqa: grouped queries: several query heads share a head of keys and values.

    >>> import flambeau as torch
    >>> x = torch.ones(1, 1, 2, 4)
    >>> torch.nn.functional.scaled_dot_product_attention(x, x, x).shape
    flambeau.Size([1, 1, 2, 4])
    """
    _check_attention(query, key, value, attn_mask)
    if restricted[0]:
        check_kernels(query, key, value, dropout_p)
    fn = layer.functions
    mask = attn_mask
    if mask is not None and mask._array.dtype.kind == "b" and (special[0] or isinstance(mask._array, ElementlessArray)):
        mask = fn.where(mask, fn.zeros((), dtype=query.dtype), fn.full((), float("-inf"), dtype=query.dtype))
    elif mask is not None and mask._array.dtype.kind == "b":
        check_scalar_fits(-math.inf, query.dtype)
        added = np.where(mask._array, np.float32(0), np.float32(-np.inf))
        mask = wrap(dtypes.cast(added, query._array.dtype))
    width = query._array.shape[-1]
    if enabled_kernels["flash"] and _fits_one_node(query, key, value, attn_mask, dropout_p, enable_gqa):
        k, v = key, value
        if enable_gqa and query._array.shape[1] != key._array.shape[1]:
            repeats = query._array.shape[1] // key._array.shape[1]
            k, v = fn.repeat_interleave(key, repeats, -3), fn.repeat_interleave(value, repeats, -3)
        keeps = special[0] or (grad_mode.get() and (query._requires_grad or k._requires_grad or v._requires_grad))
        return apply(REGISTRY["_flash_attention"], [query, k, v, mask], {
            "is_causal": bool(is_causal), "scale": 1 / math.sqrt(width) if scale is None else scale,
            "saved": [] if keeps else None})
    if is_causal:
        if attn_mask is not None:
            raise RuntimeError("_scaled_dot_product_attention: Explicit attn_mask should not be set when "
                               "is_causal=True")
        n, m = query._array.shape[-2], key._array.shape[-2]
        mask = wrap(dtypes.cast(np.where(np.tri(n, m, dtype=bool), np.float32(0), np.float32(-np.inf)),
                                query._array.dtype))
        if special[0]:
            notify_created(mask._array)
    if enable_gqa:
        repeats = query.size(-3) // key.size(-3)
        key, value = fn.repeat_interleave(key, repeats, -3), fn.repeat_interleave(value, repeats, -3)
    narrow = query.dtype if query._array.dtype in dtypes.NARROW else None
    if narrow is not None:
        query, key, value = (x.to(dtypes.float32) for x in (query, key, value))
        mask = None if mask is None else mask.to(dtypes.float32)
    # the square root of the scale on either side, so that scores do not overflow
    factor = {"other": math.sqrt(1 / math.sqrt(width) if scale is None else scale) if width else 1.0}
    scaled = apply(REGISTRY["_mul_scalar"], [query], factor)
    key_t = apply(REGISTRY["_mul_scalar"], [fn.transpose(key, -2, -1)], factor)
    scores = matmul(scaled, key_t)
    if mask is not None:
        scores = scores + mask
    weights = apply(REGISTRY["_safe_softmax"], [scores], {"dim": -1})
    if dropout_p > 0:
        fusible = device_memory.count and narrow is None and dropout_p < 1 and weights._device.type == "cuda"
        weights = handlers.attention_dropout_on_device(weights, dropout_p, query, value) if fusible else dropout(
            weights, dropout_p, True)
    result = matmul(weights, value)
    return result if narrow is None else result.to(narrow)


METHODS: dict[str, Any] = {}
