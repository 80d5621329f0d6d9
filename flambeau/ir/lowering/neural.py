"""Matmul, convolution, softmax, normalization and attention over IR values."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..graph.value import Unsupported, Value
from .reductions import Reductions
from .view_ops import ViewOps


class NeuralOps(Reductions, ViewOps):
    """Primitives of neural networks, except pooling and losses."""

    #: whether kernels after sums subtract the mean once more instead of reading the differences
    centers_again = True

    def mm(self, x: Value, y: Value) -> Value:
        g = self.graph
        if x.ndim == 1:
            return self.dot(x, y) if y.ndim == 1 else g.reshape(g.matmul(g.unsqueeze(x, 0), y), y.shape[1:])
        return self.mv(x, y) if y.ndim == 1 else g.matmul(x, y)

    def bmm(self, x: Value, y: Value) -> Value:
        return self.graph.matmul(x, y)

    def matmul(self, x: Value, y: Value) -> Value:
        if x.ndim == 1 or y.ndim == 1:
            raise Unsupported("matmul of vectors")
        return self.graph.matmul(x, y)

    def mv(self, x: Value, y: Value) -> Value:
        g = self.graph
        return g.reshape(g.matmul(x, g.unsqueeze(y, 1)), x.shape[:1])

    def dot(self, x: Value, y: Value) -> Value:
        return self._reduce("sum", x * y, None, False)

    def _scale(self, x: Value, factor: Any) -> Value:
        return x if factor == 1 else x * factor

    def add_matmul(self, input: Value, x: Value, y: Value, beta: Any = 1, alpha: Any = 1) -> Value:
        product = self.graph.matmul(x, y) if y.ndim > 1 else self.mv(x, y)
        product = self._scale(product, alpha)
        return product if beta == 0 else self._scale(input, beta) + product

    def conv_output(self, image: Value, weight: Value, geometry: Any) -> Value:
        shape = (image.shape[0], weight.shape[0], *geometry.positions)
        return self.graph.convolve("forward", image, weight, shape, *geometry[3:])

    def conv_image(self, output: Value, weight: Value, geometry: Any) -> Value:
        shape = (output.shape[0], weight.shape[1] * geometry.groups, *geometry.spatial)
        return self.graph.convolve("image", output, weight, shape, *geometry[3:])

    def conv_weight(self, output: Value, image: Value, geometry: Any) -> Value:
        shape = (output.shape[1], image.shape[1] // geometry.groups, *geometry.kernel)
        return self.graph.convolve("weight", output, image, shape, *geometry[3:])

    def convolve(self, x: Value, weight: Value, bias: Any, geometry: Any, transposed: bool) -> Value:
        out = (self.conv_image if transposed else self.conv_output)(x, weight, geometry)
        return out if bias is None else out + self.reshape(bias, (1, -1, *(1 for _ in geometry.spatial)))

    # ----- softmax, norms, attention -----

    def softmax(self, x: Value, dim: int, dtype: Any = None) -> Value:
        if dtype is not None:
            x = self.graph.cast(x, dtype.numpy)
        e = self.graph.apply("exp", x - self._reduce("max", x, dim, True))
        return e / self._reduce("sum", e, dim, True)

    def safe_softmax(self, x: Value, dim: int) -> Value:
        g = self.graph
        top = self._reduce("max", x, dim, True)
        nothing = g.apply("eq", top, -math.inf)
        e = g.apply("exp", x - g.select(nothing, 0.0, top))
        return e / g.select(nothing, 1.0, self._reduce("sum", e, dim, True))

    def log_softmax(self, x: Value, dim: int, dtype: Any = None) -> Value:
        if dtype is not None:
            x = self.graph.cast(x, dtype.numpy)
        off = x - self._reduce("max", x, dim, True)
        return off - self.graph.apply("log", self._reduce("sum", self.graph.apply("exp", off), dim, True))

    def _softmax_backward(self, g: Value, out: Value, dim: int) -> Value:
        weighted = g * out
        return weighted - out * self._reduce("sum", weighted, dim, True)

    def _log_softmax_backward(self, g: Value, out: Value, dim: int) -> Value:
        return g - self.graph.apply("exp", out) * self._reduce("sum", g, dim, True)

    def layer_norm(self, x: Value, weight: Any, bias: Any, normalized_shape: Any, eps: float, saved: Any) -> Value:
        dims = tuple(range(x.ndim - len(normalized_shape), x.ndim))
        y, mean, rstd = self._standardize(x, dims, eps)
        saved[:] = (self.graph.reshape(mean, x.shape[:dims[0]]), self.graph.reshape(rstd, x.shape[:dims[0]]))
        if weight is not None:
            y = y * weight
        return y if bias is None else y + bias

    def _standardize(self, x: Value, dims: Any, eps: float) -> tuple[Value, Value, Value]:
        mean = self.mean(x, dims, True)
        d = x - mean
        rstd = self.graph.apply("rsqrt", self.mean(d * d, dims, True) + eps)
        return d * rstd, mean, rstd

    def batch_norm(self, x: Value, weight: Any, bias: Any, running_mean: Any, running_var: Any, training: bool,
                   eps: float, saved: Any) -> Value:
        g = self.graph
        dims = (0, *range(2, x.ndim))
        across = (1, -1, *(1 for _ in dims[1:]))
        if training:
            mean = self.mean(x, dims)
            d = x - self.reshape(mean, across)
            var = self.mean(d * d, dims)
            rstd = g.apply("rsqrt", var + eps)
            saved[:] = (mean, rstd, var)
        else:
            mean, rstd = running_mean, g.apply("rsqrt", running_var + eps)
            d = x - self.reshape(mean, across)
            saved[:] = (mean, rstd)
        if training:
            d = self._centered_again(x, mean, across)
        y = d * self.reshape(rstd, across)
        if weight is not None:
            y = y * self.reshape(weight, across)
        return y if bias is None else y + self.reshape(bias, across)

    def _centered_again(self, x: Value, mean: Value, across: tuple[int, ...]) -> Value:
        """x - mean, to the bit, as another value: kernels after the sums read x again, and no difference is stored."""
        if not self.centers_again:
            return x - self.reshape(mean, across)
        again = x + self.reshape(-mean, across)
        self.graph.late.add(again)
        return again

    def _batch_norm_backward(self, g: Value, input: Value, weight: Any = None, *, training: bool, eps: float,
                             saved: Any, needs: Any) -> Any:
        dims = (0, *range(2, input.ndim))
        across = (1, -1, *(1 for _ in dims[1:]))
        mean, rstd = saved[0], saved[1]
        weighted: Any = None  # Σ g · y
        if needs[1] or training:
            weighted = self.sum(g * (input - self.reshape(mean, across)), dims) * rstd
        total: Any = self.sum(g, dims) if needs[2] or training else None
        by_input = None
        if needs[0]:
            scale = rstd if weight is None else rstd * weight
            slope = g
            if training:
                count = input.size // input.shape[1]
                d = self._centered_again(input, mean, across)
                slope = g - d * self.reshape(weighted * rstd / count, across) - self.reshape(total / count, across)
            by_input = slope * self.reshape(scale, across)
        return by_input, weighted if needs[1] else None, total if needs[2] else None

    def group_norm(self, x: Value, weight: Any, bias: Any, group: int, eps: float, saved: Any) -> Value:
        n, c = x.shape[:2]
        y, mean, rstd = self._standardize(self.reshape(x, (n * group, -1)), (1,), eps)
        saved[:] = (self.reshape(mean, (n * group,)), self.reshape(rstd, (n * group,)))
        y = self.reshape(y, x.shape)
        across = (1, c, *(1 for _ in x.shape[2:]))
        if weight is not None:
            y = y * self.reshape(weight, across)
        return y if bias is None else y + self.reshape(bias, across)

    def scaled_dot_product_attention(self, query: Value, key: Value, value: Value, attn_mask: Any, is_causal: bool,
                                     scale: float, saved: Any) -> Value:
        scores = self.matmul(query, self.transpose(key, -2, -1)) * scale
        if attn_mask is not None:
            scores = scores + attn_mask
        if is_causal:
            scores = self.causal_mask(scores, -math.inf)
        weights = self.safe_softmax(scores, -1)
        if saved is not None:
            saved[:] = (weights,)
        return self.matmul(weights, value)

    def _attention_backward(self, g: Value, query: Value, key: Value, value: Value, attn_mask: Any = None, *,
                            is_causal: bool, scale: float, saved: Any, needs: Any) -> Any:
        weights = saved[0]
        by_value = self.matmul(self.transpose(weights, -2, -1), g) if needs[2] else None
        if not (needs[0] or needs[1]):
            return None, None, by_value
        slope = self._softmax_backward(self.matmul(g, self.transpose(value, -2, -1)), weights, -1) * scale
        return (self.matmul(slope, key) if needs[0] else None,
                self.matmul(self.transpose(slope, -2, -1), query) if needs[1] else None, by_value)

    # ----- triangular masks -----

    def _lower_mask(self, shape: tuple[int, ...], diagonal: int) -> Value:
        if len(shape) < 2:
            raise Unsupported("a triangular mask of fewer than two dimensions")
        rows = self.graph.constant(np.arange(shape[-2]).reshape(-1, 1))
        columns = self.graph.constant(np.arange(-diagonal, shape[-1] - diagonal))
        return self.graph.expand(rows, shape) >= self.graph.expand(columns, shape)

    def tril(self, x: Value, diagonal: int = 0) -> Value:
        return self.graph.select(self._lower_mask(x.shape, diagonal), x, self.graph.constant(0, x.dtype))

    def triu(self, x: Value, diagonal: int = 0) -> Value:
        return self.graph.select(self._lower_mask(x.shape, diagonal - 1), self.graph.constant(0, x.dtype), x)

    def causal_mask(self, x: Value, value: Any) -> Value:
        return self.graph.select(self._lower_mask(x.shape, 0), x, self.graph.constant(value, x.dtype))


__all__ = ["NeuralOps"]
