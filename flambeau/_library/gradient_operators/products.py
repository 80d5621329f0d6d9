"""Gradients of convolutions, embeddings, distances and other sums of products as operators."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..._tensor import Tensor
from ..._tensor import functions as fn
from ..registry import operator_named
from .vector_jacobian import vector_jacobian

_SUM, _MEAN, _MAX = range(3)


def _convolution(grad_output: Tensor, input: Tensor, weight: Tensor, bias_sizes: Any, stride: Any, padding: Any,
                 dilation: Any, transposed: bool, output_padding: Any, groups: int,
                 output_mask: Sequence[bool]) -> tuple[Tensor | None, ...]:
    def function(*inputs: Tensor) -> Tensor:
        given = iter(inputs)
        x, w = (next(given) if needed else value for needed, value in zip(output_mask, (input, weight), strict=False))
        return fn.convolution(x, w, None, tuple(stride), tuple(padding), tuple(dilation), transposed,
                              tuple(output_padding), groups)

    wanted = [x for x, needed in zip((input, weight), output_mask, strict=False) if needed]
    found = iter(vector_jacobian(function, wanted, (grad_output,)) if wanted else ())
    spatial = (0, *range(2, grad_output.ndim))
    return (next(found) if output_mask[0] else None, next(found) if output_mask[1] else None,
            fn.sum(grad_output, spatial) if output_mask[2] else None)


def _convolution_twice(ggI: Tensor | None, ggW: Tensor | None, ggb: Tensor | None, gO: Tensor, weight: Tensor,
                       self: Tensor, stride: Any, padding: Any, dilation: Any, transposed: bool, output_padding: Any,
                       groups: int, output_mask: Sequence[bool]) -> tuple[Tensor | None, ...]:
    """The gradients of the gradient of the result, of the input and of the weight, by those of `_convolution`."""
    given = (ggI, ggW, ggb)
    mask = [g is not None for g in given]

    def function(g: Tensor, x: Tensor, w: Tensor) -> Any:
        found = _convolution(g, x, w, None, stride, padding, dilation, transposed, output_padding, groups, mask)
        return tuple(each for each in found if each is not None)

    if not any(mask):
        return None, None, None
    found = vector_jacobian(function, [gO, self, weight], tuple(g for g in given if g is not None))
    return tuple(x if needed else None for x, needed in zip(found, output_mask, strict=True))


def _embedding(grad: Tensor, indices: Tensor, num_weights: int, padding_idx: int, scale_grad_by_freq: bool,
               sparse: bool = False) -> Tensor:
    zeros = fn.zeros((num_weights, grad.shape[-1]), dtype=grad.dtype, device=grad.device)
    forward = operator_named("aten::embedding")
    return vector_jacobian(lambda w: forward(w, indices, padding_idx, scale_grad_by_freq, sparse), [zeros], (grad,))[0]


def _sparse_embedding(grad: Tensor, indices: Tensor, num_weights: int, padding_idx: int,
                      scale_grad_by_freq: bool) -> Tensor:
    return _embedding(grad, indices, num_weights, padding_idx, scale_grad_by_freq, True)


def _embedding_bag_dense(grad: Tensor, indices: Tensor, offset2bag: Tensor, bag_size: Tensor, maximum_indices: Tensor,
                         num_weights: int, scale_grad_by_freq: bool, mode: int, per_sample_weights: Tensor | None,
                         padding_idx: int = -1) -> Tensor:
    """The gradient of the table: that of each bag, at the rows that the bag sums."""
    zeros = fn.zeros((num_weights, grad.shape[1]), dtype=grad.dtype, device=grad.device)
    if mode == _MAX:
        full = (bag_size > 0).unsqueeze(1)
        return zeros.scatter_add(0, maximum_indices.masked_fill(~full, 0).long(), grad.masked_fill(~full, 0))
    rows = _rows(grad, indices, offset2bag, bag_size, scale_grad_by_freq, mode, per_sample_weights, num_weights)
    if padding_idx >= 0:
        rows = rows.masked_fill((indices == padding_idx).unsqueeze(1), 0)
    return zeros.index_add(0, indices, rows)


def _rows(grad: Tensor, indices: Tensor, offset2bag: Tensor, bag_size: Tensor, scale_grad_by_freq: bool, mode: int,
          per_sample_weights: Tensor | None, num_weights: int) -> Tensor:
    """What each index of a bag adds to its row."""
    rows = grad.index_select(0, offset2bag)
    if per_sample_weights is not None:
        rows = rows * per_sample_weights.unsqueeze(1)
    if mode == _MEAN:
        rows = rows / bag_size.clamp(min=1).index_select(0, offset2bag).unsqueeze(1).to(rows.dtype)
    if scale_grad_by_freq:
        count = fn.bincount(indices, minlength=num_weights)
        rows = rows / count.index_select(0, indices).unsqueeze(1).to(rows.dtype)
    return rows


def _embedding_bag_sparse(grad: Tensor, indices: Tensor, offsets: Tensor, offset2bag: Tensor, bag_size: Tensor,
                          num_weights: int, scale_grad_by_freq: bool, mode: int, per_sample_weights: Tensor | None,
                          padding_idx: int = -1) -> Tensor:
    rows = _rows(grad, indices, offset2bag, bag_size, scale_grad_by_freq, mode, per_sample_weights, num_weights)
    if padding_idx >= 0:
        kept = indices != padding_idx
        rows, indices = rows[kept], indices[kept]
    return fn.sparse_coo_tensor(indices.unsqueeze(0), rows, (num_weights, grad.shape[1]))


def _embedding_bag(grad: Tensor, indices: Tensor, offsets: Tensor, offset2bag: Tensor, bag_size: Tensor,
                   maximum_indices: Tensor, num_weights: int, scale_grad_by_freq: bool, mode: int, sparse: bool,
                   per_sample_weights: Tensor | None, padding_idx: int = -1) -> Tensor:
    if not offset2bag.numel() and indices.numel():  # what the operator leaves out where it does not need it
        bags = fn.zeros_like(indices)
        offset2bag = bags.index_add(0, offsets[1:], fn.ones_like(offsets[1:])).cumsum(0)
    if sparse:
        return _embedding_bag_sparse(grad, indices, offsets, offset2bag, bag_size, num_weights, scale_grad_by_freq,
                                     mode, per_sample_weights, padding_idx)
    return _embedding_bag_dense(grad, indices, offset2bag, bag_size, maximum_indices, num_weights, scale_grad_by_freq,
                                mode, per_sample_weights, padding_idx)


def _per_sample_weights(grad: Tensor, weight: Tensor, indices: Tensor, offsets: Tensor, offset2bag: Tensor, mode: int,
                        padding_idx: int = -1) -> Tensor:
    found = fn.sum(grad.index_select(0, offset2bag) * weight.index_select(0, indices), 1)
    return found if padding_idx < 0 else found.masked_fill(indices == padding_idx, 0)


def _pdist(grad: Tensor, self: Tensor, p: float, pdist: Tensor) -> Tensor:
    return vector_jacobian(lambda x: fn.pdist(x, p), [self], (grad,))[0]


def _cdist(grad: Tensor, x1: Tensor, x2: Tensor, p: float, cdist: Tensor) -> Tensor:
    forward = operator_named("aten::_cdist_forward")
    return vector_jacobian(lambda x: forward(x, x2, p, None), [x1], (grad,))[0]


def _matrix_exp(self: Tensor, grad: Tensor) -> Tensor:
    return vector_jacobian(fn.matrix_exp, [self], (grad,))[0]


def _packed_sequence(grad: Tensor, input_size: Sequence[int], batch_sizes: Tensor, batch_first: bool) -> Tensor:
    """The rows of a packed sequence at their places in the padded one."""
    sizes = list(input_size)
    if batch_first:
        sizes[:2] = sizes[1::-1]
    out = fn.zeros(tuple(sizes), dtype=grad.dtype, device=grad.device)
    start = 0
    for step, count in enumerate(batch_sizes.tolist()):
        out[step, :count] = grad[start:start + count]
        start += count
    return out.transpose(0, 1) if batch_first else out


def _segments(grad: Tensor, output: Tensor, data: Tensor, reduce: str, *, lengths: Tensor | None = None,
              offsets: Tensor | None = None, axis: int = 0, initial: Any = None) -> Tensor:
    return vector_jacobian(lambda x: fn.segment_reduce(x, reduce, lengths=lengths, offsets=offsets, axis=axis,
                                                       unsafe=True, initial=initial), [data], (grad,))[0]


def _conv_tbc(self: Tensor, input: Tensor, weight: Tensor, bias: Tensor, pad: int) -> tuple[Tensor, ...]:
    return vector_jacobian(lambda x, w, b: fn.conv_tbc(x, w, b, pad), [input, weight, bias], (self,))


def _halves(x: Tensor, dim: int) -> tuple[Tensor, Tensor]:
    first, second = x.chunk(2, dim)
    return first, second


def _glu_jvp(glu: Tensor, x: Tensor, dx: Tensor, dim: int) -> Tensor:
    """The tangent of `glu` for the tangent `dx` of its input."""
    _, b = _halves(x, dim)
    da, db = _halves(dx, dim)
    s = fn.sigmoid(b)
    return da * s + db * (1 - s) * glu


def _glu_backward_jvp(grad_x: Tensor, grad_glu: Tensor, x: Tensor, dgrad_glu: Tensor, dx: Tensor, dim: int) -> Tensor:
    """The tangent of `glu_backward` for those of the gradient and of the input."""
    a, b = _halves(x, dim)
    da, db = _halves(dx, dim)
    s = fn.sigmoid(b)
    slope = s * (1 - s)
    ds = slope * db
    by_a = dgrad_glu * s + grad_glu * ds
    by_b = slope * (dgrad_glu * a + grad_glu * da) + grad_glu * a * (1 - 2 * s) * ds
    return fn.cat([by_a, by_b], dim)


#: "aten.name.overload" -> kernel
KERNELS: dict[str, Callable[..., Any]] = {
    "aten.convolution_backward.default": _convolution, "aten._convolution_double_backward.default": _convolution_twice,
    "aten.embedding_backward.default": _embedding, "aten.embedding_dense_backward.default": _embedding,
    "aten.embedding_sparse_backward.default": _sparse_embedding,
    "aten._embedding_bag_backward.default": _embedding_bag,
    "aten._embedding_bag_dense_backward.default": _embedding_bag_dense,
    "aten._embedding_bag_sparse_backward.default": _embedding_bag_sparse,
    "aten._embedding_bag_per_sample_weights_backward.default": _per_sample_weights,
    "aten._pdist_backward.default": _pdist, "aten._cdist_backward.default": _cdist,
    "aten.matrix_exp_backward.default": _matrix_exp,
    "aten._pack_padded_sequence_backward.default": _packed_sequence,
    "aten._segment_reduce_backward.default": _segments, "aten.conv_tbc_backward.default": _conv_tbc,
    "aten.glu_jvp.default": _glu_jvp, "aten.glu_backward_jvp.default": _glu_backward_jvp,
}

__all__ = ["KERNELS"]
