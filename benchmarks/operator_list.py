"""The operators that `benchmarks.operators` times, one a line, and the inputs that they share."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np


class Inputs:
    """Inputs of the operators for one matrix shape, made when they are first used; each library gets the same values.

    Args:
        torch: the library.
        shape: rows and columns of the matrix. Images, sequences and batches have about as many elements.
        grad: whether the leaves require gradients.
        dtype: the name of the dtype of all floating-point inputs.
    """

    def __init__(self, torch: Any, shape: tuple[int, int], grad: bool, dtype: str = "float32") -> None:
        self.torch, (self.rows, self.columns), self.grad = torch, shape, grad
        self.dtype = getattr(torch, dtype)
        self.leaves: list[Any] = []
        total = self.rows * self.columns
        self.side = 4 if total < 4096 else 32 if total < 65536 else 64
        images = max(1, total // self.side ** 2)
        self.channels = next(c for c in (16, 8, 4, 2, 1) if c * c <= images * 2 or c == 1)
        self.images = max(1, images // self.channels)
        #: side of single square matrices, and the number of small ones
        self.order, self.batch = min(*shape, 128), max(1, min(512, total // 64))
        #: tokens of a sequence, and their width
        self.tokens, self.width = (4, 4) if total < 4096 else (16, 32) if total < 65536 else (64, 64)
        self.sequences = max(1, min(64, total // (self.tokens * self.width)))

    def _random(self, name: str) -> np.random.Generator:
        return np.random.default_rng([self.rows, self.columns, *name.encode()])

    def _leaf(self, array: Any) -> Any:
        leaf = self._constant(np.asarray(array, dtype=np.float32)).requires_grad_(self.grad)
        self.leaves.append(leaf)
        return leaf

    def _normal(self, name: str, *shape: int, scale: float = 1.0) -> Any:
        return self._leaf(scale * self._random(name).standard_normal(shape))

    def _constant(self, array: Any) -> Any:
        tensor = self.torch.from_numpy(np.ascontiguousarray(array))
        return tensor.to(self.dtype) if tensor.is_floating_point() else tensor

    def _integers(self, name: str, most: int, *shape: int) -> Any:
        return self._constant(self._random(name).integers(0, most, shape))

    # ----- matrices -----

    @cached_property
    def x(self) -> Any:
        """The matrix: a leaf of standard normal numbers, as all that have no other description."""
        return self._normal("x", self.rows, self.columns)

    @cached_property
    def y(self) -> Any:
        return self._normal("y", self.rows, self.columns)

    @cached_property
    def positive(self) -> Any:
        """Numbers from 0.1 on."""
        return self._leaf(np.abs(self._random("positive").standard_normal((self.rows, self.columns))) + 0.1)

    @cached_property
    def unit(self) -> Any:
        """Numbers between 0.05 and 0.95."""
        return self._leaf(self._random("unit").uniform(0.05, 0.95, (self.rows, self.columns)))

    @cached_property
    def row(self) -> Any:
        return self._normal("row", self.columns)

    @cached_property
    def column(self) -> Any:
        return self._normal("column", self.rows, 1)

    @cached_property
    def weight(self) -> Any:
        """A matrix for products with `x` from the right, as `linear` has it: at most 64 rows."""
        return self._normal("weight", min(64, self.columns), self.columns)

    @cached_property
    def bias(self) -> Any:
        return self._normal("bias", min(64, self.columns))

    @cached_property
    def scale(self) -> Any:
        return self._leaf(self._random("scale").uniform(0.5, 1.5, self.columns))

    # ----- constants -----

    @cached_property
    def constant(self) -> Any:
        """A matrix that needs no gradient."""
        return self._constant(self._random("constant").uniform(0, 1, (self.rows, self.columns)).astype(np.float32))

    @cached_property
    def mask(self) -> Any:
        """Booleans, half of them true."""
        return self._constant(self._random("mask").random((self.rows, self.columns)) < 0.5)

    @cached_property
    def row_mask(self) -> Any:
        return self._constant(np.arange(self.rows) % 2 == 0)

    @cached_property
    def integers(self) -> Any:
        """int64 numbers below 100."""
        return self._integers("integers", 100, self.rows, self.columns)

    @cached_property
    def some_rows(self) -> Any:
        """Numbers of rows, half as many as there are."""
        return self._integers("some_rows", self.rows, max(1, self.rows // 2))

    @cached_property
    def some_columns(self) -> Any:
        """Numbers of columns, half as many as there are rows."""
        return self._integers("some_columns", self.columns, max(1, self.rows // 2))

    @cached_property
    def picked(self) -> Any:
        """A column number for each element."""
        return self._integers("picked", self.columns, self.rows, self.columns)

    @cached_property
    def classes(self) -> Any:
        """A column number for each row."""
        return self._integers("classes", self.columns, self.rows)

    @cached_property
    def signs(self) -> Any:
        """-1 or 1 for each row."""
        return self._constant(np.where(self._random("signs").random(self.rows) < 0.5, -1, 1).astype(np.float32))

    @cached_property
    def sorted(self) -> Any:
        """A sorted vector, as long as a row."""
        return self._constant(np.sort(self._random("sorted").standard_normal(self.columns)).astype(np.float32))

    # ----- square matrices -----

    @cached_property
    def square(self) -> Any:
        """A well-conditioned matrix of at most 128 rows."""
        return self._leaf(self._well_conditioned("square", 1, self.order)[0])

    @cached_property
    def definite(self) -> Any:
        """A positive definite matrix of at most 128 rows."""
        return self._leaf(self._definite("definite", 1, self.order)[0])

    @cached_property
    def squares(self) -> Any:
        """Well-conditioned matrices of 8 rows, at most 512."""
        return self._leaf(self._well_conditioned("squares", self.batch, min(8, self.order)))

    @cached_property
    def definites(self) -> Any:
        """Positive definite matrices of 8 rows, at most 512."""
        return self._leaf(self._definite("definites", self.batch, min(8, self.order)))

    @cached_property
    def sides(self) -> Any:
        """Right-hand sides for `squares`."""
        return self._normal("sides", self.batch, min(8, self.order), 2)

    def _well_conditioned(self, name: str, count: int, order: int) -> Any:
        return self._random(name).standard_normal((count, order, order)) / (2 * math.sqrt(order)) + np.eye(order)

    def _definite(self, name: str, count: int, order: int) -> Any:
        half = self._random(name).standard_normal((count, order, order)) / math.sqrt(order)
        return half @ half.swapaxes(1, 2) + np.diag(np.linspace(1, 1 + order, order))

    # ----- images, signals, sequences -----

    @cached_property
    def image(self) -> Any:
        """Images: number, channels, height, width."""
        return self._normal("image", self.images, self.channels, self.side, self.side)

    @cached_property
    def filters(self) -> Any:
        return self._normal("filters", self.channels, self.channels, 3, 3, scale=0.3)

    @cached_property
    def depthwise(self) -> Any:
        return self._normal("depthwise", self.channels, 1, 3, 3, scale=0.3)

    @cached_property
    def signal(self) -> Any:
        """Signals: number, channels, samples."""
        return self._normal("signal", self.images, self.channels, self.side ** 2)

    @cached_property
    def signal_filters(self) -> Any:
        return self._normal("signal_filters", self.channels, self.channels, 3, scale=0.3)

    @cached_property
    def grid(self) -> Any:
        return self._constant(self._random("grid").uniform(-1, 1, (self.images, self.side, self.side, 2))
                              .astype(np.float32))

    @cached_property
    def query(self) -> Any:
        """Sequences: number, heads (2), tokens, width."""
        return self._normal("query", self.sequences, 2, self.tokens, self.width)

    @cached_property
    def key(self) -> Any:
        return self._normal("key", self.sequences, 2, self.tokens, self.width)

    @cached_property
    def table(self) -> Any:
        """The table of an embedding: 128 rows."""
        return self._normal("table", 128, self.columns)

    @cached_property
    def words(self) -> Any:
        """Rows of `table`, as many as there are rows."""
        return self._integers("words", 128, self.rows)


def assigned(x: Any, index: Any, value: float) -> Any:
    """`x` after `x[index] = value`."""
    x[index] = value
    return x


#: a function of the library and the inputs
Operator = Callable[[Any, Inputs], Any]

#: group -> name -> operator. `F` in names is `torch.nn.functional`
GROUPS: dict[str, dict[str, Operator]] = {
    "elementwise": {
        "x + y": lambda torch, i: i.x + i.y,
        "x - 1": lambda torch, i: i.x - 1,
        "x * row": lambda torch, i: i.x * i.row,
        "x * column": lambda torch, i: i.x * i.column,
        "x / y": lambda torch, i: i.x / i.positive,
        "1 / x": lambda torch, i: 1 / i.positive,
        "x / (|x| + 1)": lambda torch, i: i.x / (i.x.abs() + 1),
        "outer product": lambda torch, i: i.column * i.row,
        "neg": lambda torch, i: -i.x,
        "abs": lambda torch, i: i.x.abs(),
        "sign": lambda torch, i: i.x.sign(),
        "x ** 2": lambda torch, i: i.x ** 2,
        "x ** 3": lambda torch, i: i.x ** 3,
        "x ** 0.5": lambda torch, i: i.positive ** 0.5,
        "x ** y": lambda torch, i: i.positive ** i.y,
        "square": lambda torch, i: i.x.square(),
        "sqrt": lambda torch, i: i.positive.sqrt(),
        "rsqrt": lambda torch, i: i.positive.rsqrt(),
        "reciprocal": lambda torch, i: i.positive.reciprocal(),
        "exp": lambda torch, i: i.x.exp(),
        "expm1": lambda torch, i: i.x.expm1(),
        "log": lambda torch, i: i.positive.log(),
        "log1p": lambda torch, i: i.positive.log1p(),
        "log2": lambda torch, i: i.positive.log2(),
        "sin": lambda torch, i: i.x.sin(),
        "cos": lambda torch, i: i.x.cos(),
        "atan": lambda torch, i: i.x.atan(),
        "atan2": lambda torch, i: torch.atan2(i.x, i.y),
        "erf": lambda torch, i: i.x.erf(),
        "lgamma": lambda torch, i: i.positive.lgamma(),
        "floor": lambda torch, i: i.x.floor(),
        "round": lambda torch, i: i.x.round(),
        "x % 1": lambda torch, i: i.x % 1,
        "maximum": lambda torch, i: torch.maximum(i.x, i.y),
        "minimum": lambda torch, i: torch.minimum(i.x, i.y),
        "clamp": lambda torch, i: i.x.clamp(-1, 1),
        "clamp(min=)": lambda torch, i: i.x.clamp(min=0.1),
        "lerp": lambda torch, i: torch.lerp(i.x, i.y, 0.3),
        "addcmul": lambda torch, i: torch.addcmul(i.x, i.y, i.constant, value=0.5),
        "addcdiv": lambda torch, i: torch.addcdiv(i.x, i.y, i.positive, value=0.5),
        "hypot": lambda torch, i: torch.hypot(i.x, i.y),
        "x > 0": lambda torch, i: i.x > 0,
        "x == y": lambda torch, i: i.x == i.y,
        "isnan": lambda torch, i: i.x.isnan(),
        "mask & ~mask": lambda torch, i: i.mask & ~i.mask,
        "integers + 1": lambda torch, i: i.integers + 1,
        "integers // 3": lambda torch, i: i.integers // 3,
        "where": lambda torch, i: torch.where(i.mask, i.x, i.y),
        "where, number": lambda torch, i: torch.where(i.mask, i.x, 0.0),
        "masked_fill": lambda torch, i: i.x.masked_fill(i.mask, 0.0),
        "nan_to_num": lambda torch, i: i.x.nan_to_num(),
        "add_": lambda torch, i: (i.x * 2).add_(i.constant, alpha=0.1),
        "a longer formula": lambda torch, i: (i.x.exp() * i.x.sin() + i.x.cos()).tanh().sum(1),
    },
    "activations": {
        "relu": lambda torch, i: i.x.relu(),
        "leaky_relu": lambda torch, i: torch.nn.functional.leaky_relu(i.x),
        "elu": lambda torch, i: torch.nn.functional.elu(i.x),
        "selu": lambda torch, i: torch.nn.functional.selu(i.x),
        "gelu": lambda torch, i: torch.nn.functional.gelu(i.x),
        "gelu, tanh": lambda torch, i: torch.nn.functional.gelu(i.x, approximate="tanh"),
        "silu": lambda torch, i: torch.nn.functional.silu(i.x),
        "mish": lambda torch, i: torch.nn.functional.mish(i.x),
        "softplus": lambda torch, i: torch.nn.functional.softplus(i.x),
        "logsigmoid": lambda torch, i: torch.nn.functional.logsigmoid(i.x),
        "hardtanh": lambda torch, i: torch.nn.functional.hardtanh(i.x),
        "hardswish": lambda torch, i: torch.nn.functional.hardswish(i.x),
        "relu6": lambda torch, i: torch.nn.functional.relu6(i.x),
        "tanh": lambda torch, i: i.x.tanh(),
        "sigmoid": lambda torch, i: i.x.sigmoid(),
        "logit": lambda torch, i: i.unit.logit(),
        "prelu": lambda torch, i: torch.nn.functional.prelu(i.x, i.scale[:1]),
        "glu": lambda torch, i: torch.nn.functional.glu(i.x, 1),
        "softmax(0)": lambda torch, i: i.x.softmax(0),
        "softmax(1)": lambda torch, i: i.x.softmax(1),
        "log_softmax(1)": lambda torch, i: i.x.log_softmax(1),
        "F.softmin": lambda torch, i: torch.nn.functional.softmin(i.x, dim=1),
        "dropout": lambda torch, i: torch.nn.functional.dropout(i.x, 0.1),
    },
    "reductions": {
        "sum": lambda torch, i: i.x.sum(),
        "sum(0)": lambda torch, i: i.x.sum(0),
        "sum(1)": lambda torch, i: i.x.sum(1),
        "sum(1, keepdim)": lambda torch, i: i.x.sum(1, keepdim=True),
        "sum of integers": lambda torch, i: i.integers.sum(),
        "count of a mask": lambda torch, i: i.mask.sum(),
        "mean": lambda torch, i: i.x.mean(),
        "mean(0)": lambda torch, i: i.x.mean(0),
        "mean(-1)": lambda torch, i: i.x.mean(-1),
        "mean((2, 3))": lambda torch, i: i.image.mean((2, 3)),
        "prod(1)": lambda torch, i: i.x.prod(1),
        "max": lambda torch, i: i.x.max(),
        "amax(0)": lambda torch, i: i.x.amax(0),
        "amin(1)": lambda torch, i: i.x.amin(1),
        "max(0)": lambda torch, i: i.x.max(0)[0],
        "max(1)": lambda torch, i: i.x.max(1)[0],
        "min(1)": lambda torch, i: i.x.min(1)[0],
        "argmax": lambda torch, i: i.x.argmax(),
        "argmax(0)": lambda torch, i: i.x.argmax(0),
        "argmax(1)": lambda torch, i: i.x.argmax(1),
        "any": lambda torch, i: i.mask.any(),
        "all(1)": lambda torch, i: i.mask.all(1),
        "var": lambda torch, i: i.x.var(),
        "var(0)": lambda torch, i: i.x.var(0),
        "var(1)": lambda torch, i: i.x.var(1),
        "std": lambda torch, i: i.x.std(),
        "std(1)": lambda torch, i: i.x.std(1),
        "norm": lambda torch, i: i.x.norm(),
        "norm(dim=1)": lambda torch, i: i.x.norm(dim=1),
        "vector_norm(1)": lambda torch, i: torch.linalg.vector_norm(i.x, 1, dim=1),
        "logsumexp(0)": lambda torch, i: i.x.logsumexp(0),
        "logsumexp(1)": lambda torch, i: i.x.logsumexp(1),
        "median(1)": lambda torch, i: i.x.median(1)[0],
        "count_nonzero": lambda torch, i: i.integers.count_nonzero(),
        "allclose": lambda torch, i: torch.allclose(i.constant, i.constant),
    },
    "scans and orders": {
        "cumsum(0)": lambda torch, i: i.x.cumsum(0),
        "cumsum(1)": lambda torch, i: i.x.cumsum(1),
        "cumprod(1)": lambda torch, i: i.unit.cumprod(1),
        "logcumsumexp(1)": lambda torch, i: i.x.logcumsumexp(1),
        "cummax(1)": lambda torch, i: i.x.cummax(1)[0],
        "diff": lambda torch, i: i.x.diff(),
        "sort": lambda torch, i: i.x.sort(1)[0],
        "sort(0)": lambda torch, i: i.x.sort(0)[0],
        "argsort": lambda torch, i: i.x.argsort(1),
        "sort, all": lambda torch, i: i.x.flatten().sort()[0],
        "topk(3)": lambda torch, i: i.x.topk(3)[0],
        "kthvalue": lambda torch, i: i.x.kthvalue(2, 1)[0],
        "unique": lambda torch, i: i.integers.unique(),
        "bincount": lambda torch, i: i.integers.flatten().bincount(),
        "searchsorted": lambda torch, i: torch.searchsorted(i.sorted, i.constant),
        "one_hot": lambda torch, i: torch.nn.functional.one_hot(i.classes, i.columns),
    },
    "copies and casts": {
        "clone": lambda torch, i: i.x.clone(),
        "transposed copy": lambda torch, i: i.x.t().contiguous(),
        "permuted copy": lambda torch, i: i.image.permute(0, 2, 3, 1).contiguous(),
        "reshape of a transposed one": lambda torch, i: i.x.t().reshape(-1),
        "copy_": lambda torch, i: torch.empty_like(i.x).copy_(i.x),
        "float16": lambda torch, i: i.x.half(),
        "float16 and back": lambda torch, i: (i.x.half() * 2).float(),
        "bfloat16 and back": lambda torch, i: i.x.bfloat16().float(),
        "float64": lambda torch, i: i.x.double(),
        "int64": lambda torch, i: i.x.long(),
        "float of integers": lambda torch, i: i.integers.float(),
        "float of a mask": lambda torch, i: i.mask.float(),
        "zeros_like": lambda torch, i: torch.zeros_like(i.x),
        "full": lambda torch, i: torch.full((i.rows, i.columns), 0.5),
        "arange": lambda torch, i: torch.arange(i.rows * i.columns),
        "eye": lambda torch, i: torch.eye(i.columns),
        "cat": lambda torch, i: torch.cat([i.x, i.y], 1),
        "cat(0)": lambda torch, i: torch.cat([i.x, i.y]),
        "stack": lambda torch, i: torch.stack([i.x, i.y], 1),
        "stack(0)": lambda torch, i: torch.stack([i.x, i.y]),
        "chunks joined": lambda torch, i: torch.cat(i.x.chunk(4, 1)[::-1], 1),
        "F.pad": lambda torch, i: torch.nn.functional.pad(i.x, (1, 1, 1, 1)),
        "F.pad, reflect": lambda torch, i: torch.nn.functional.pad(i.image, (1, 1, 1, 1), mode="reflect"),
        "roll": lambda torch, i: i.x.roll(3, 1),
        "flip": lambda torch, i: i.x.flip(1),
        "repeat": lambda torch, i: i.x.repeat(1, 2),
        "repeat_interleave": lambda torch, i: i.x.repeat_interleave(2, 0),
        "tile": lambda torch, i: i.row.tile(4),
        "expand and copy": lambda torch, i: i.row.expand(i.rows, -1).contiguous(),
        "tril": lambda torch, i: i.x.tril(),
        "diag_embed": lambda torch, i: i.row[:128].diag_embed(),
        "meshgrid": lambda torch, i: sum(torch.meshgrid(i.row, i.column[:, 0], indexing="ij")),
    },
    "views": {
        "x.t()": lambda torch, i: i.x.t(),
        "view(-1)": lambda torch, i: i.x.view(-1),
        "reshape": lambda torch, i: i.x.reshape(2, -1),
        "unsqueeze": lambda torch, i: i.x.unsqueeze(1),
        "permute": lambda torch, i: i.image.permute(0, 2, 3, 1),
        "flatten": lambda torch, i: i.image.flatten(1),
        "expand": lambda torch, i: i.column.expand(-1, i.columns),
        "chunk": lambda torch, i: i.x.chunk(2)[0],
        "unbind": lambda torch, i: i.x.unbind(1)[1],
        "narrow": lambda torch, i: i.x.narrow(1, 1, 2),
        "diagonal": lambda torch, i: i.x.diagonal(),
        "detach": lambda torch, i: i.x.detach(),
    },
    "indexing": {
        "x[0]": lambda torch, i: i.x[0],
        "x[:, 1:]": lambda torch, i: i.x[:, 1:],
        "x[..., None]": lambda torch, i: i.x[..., None],
        "every other column": lambda torch, i: i.x[:, ::2] * 2,
        "rows by index": lambda torch, i: i.x[i.some_rows],
        "columns by index": lambda torch, i: i.x[:, i.some_columns],
        "elements by index": lambda torch, i: i.x[i.some_rows, i.some_columns],
        "rows by mask": lambda torch, i: i.x[i.row_mask],
        "elements by mask": lambda torch, i: i.x[i.mask],
        "rows shuffled": lambda torch, i: i.x[torch.randperm(i.rows)],
        "x[rows] = 0.5": lambda torch, i: assigned(i.x * 1, i.some_rows, 0.5),
        "x[mask] = 0": lambda torch, i: assigned(i.x * 1, i.mask, 0.0),
        "index_select": lambda torch, i: i.x.index_select(1, i.some_columns),
        "gather": lambda torch, i: i.x.gather(1, i.picked),
        "gather, one of a row": lambda torch, i: i.x.gather(1, i.classes[:, None]),
        "take_along_dim": lambda torch, i: torch.take_along_dim(i.x, i.picked, 1),
        "scatter": lambda torch, i: i.x.scatter(1, i.picked, 0.5),
        "scatter_add": lambda torch, i: i.x.scatter_add(1, i.picked, i.y),
        "index_add": lambda torch, i: i.x.index_add(0, i.some_rows, i.y[:i.some_rows.shape[0]]),
        "index_fill": lambda torch, i: i.x.index_fill(0, i.some_rows, 0.5),
        "masked_select": lambda torch, i: i.x.masked_select(i.mask),
        "nonzero": lambda torch, i: i.mask.nonzero(),
        "F.embedding": lambda torch, i: torch.nn.functional.embedding(i.words, i.table),
    },
    "layers": {
        "F.linear": lambda torch, i: torch.nn.functional.linear(i.x, i.weight, i.bias),
        "layer_norm": lambda torch, i: torch.nn.functional.layer_norm(i.x, (i.columns,), i.scale, i.row),
        "rms_norm": lambda torch, i: torch.nn.functional.rms_norm(i.x, (i.columns,), i.scale),
        "batch_norm": lambda torch, i: torch.nn.functional.batch_norm(i.x, None, None, i.scale, i.row, training=True),
        "group_norm": lambda torch, i: torch.nn.functional.group_norm(i.image, i.channels),
        "F.normalize": lambda torch, i: torch.nn.functional.normalize(i.x),
        "conv1d": lambda torch, i: torch.nn.functional.conv1d(i.signal, i.signal_filters, padding=1),
        "conv2d": lambda torch, i: torch.nn.functional.conv2d(i.image, i.filters, padding=1),
        "conv2d, stride 2": lambda torch, i: torch.nn.functional.conv2d(i.image, i.filters, padding=1, stride=2),
        "conv2d, depthwise": lambda torch, i: (
            torch.nn.functional.conv2d(i.image, i.depthwise, padding=1, groups=i.channels)),
        "conv_transpose2d": lambda torch, i: torch.nn.functional.conv_transpose2d(i.image, i.filters, stride=2),
        "max_pool2d": lambda torch, i: torch.nn.functional.max_pool2d(i.image, 2),
        "avg_pool2d": lambda torch, i: torch.nn.functional.avg_pool2d(i.image, 2),
        "adaptive_avg_pool2d": lambda torch, i: torch.nn.functional.adaptive_avg_pool2d(i.image, 1),
        "interpolate, nearest": lambda torch, i: torch.nn.functional.interpolate(i.image, scale_factor=2),
        "interpolate, bilinear": lambda torch, i: (
            torch.nn.functional.interpolate(i.image, scale_factor=2, mode="bilinear")),
        "grid_sample": lambda torch, i: torch.nn.functional.grid_sample(i.image, i.grid, align_corners=False),
        "unfold": lambda torch, i: torch.nn.functional.unfold(i.image, 3, padding=1),
        "pixel_shuffle": lambda torch, i: torch.nn.functional.pixel_shuffle(i.x.view(1, 4, 2, -1), 2),
        "attention": lambda torch, i: torch.nn.functional.scaled_dot_product_attention(i.query, i.key, i.key),
        "attention, causal": lambda torch, i: (
            torch.nn.functional.scaled_dot_product_attention(i.query, i.key, i.key, is_causal=True)),
    },
    "losses": {
        "mse_loss": lambda torch, i: torch.nn.functional.mse_loss(i.x, i.constant),
        "l1_loss": lambda torch, i: torch.nn.functional.l1_loss(i.x, i.constant),
        "smooth_l1_loss": lambda torch, i: torch.nn.functional.smooth_l1_loss(i.x, i.constant),
        "huber_loss": lambda torch, i: torch.nn.functional.huber_loss(i.x, i.constant),
        "cross_entropy": lambda torch, i: torch.nn.functional.cross_entropy(i.x, i.classes),
        "cross_entropy, smoothed": lambda torch, i: (
            torch.nn.functional.cross_entropy(i.x, i.classes, label_smoothing=0.1)),
        "cross_entropy, probabilities": lambda torch, i: torch.nn.functional.cross_entropy(i.x, i.constant),
        "nll_loss": lambda torch, i: torch.nn.functional.nll_loss(i.x, i.classes),
        "binary_cross_entropy": lambda torch, i: torch.nn.functional.binary_cross_entropy(i.unit, i.constant),
        "binary_cross_entropy_with_logits": lambda torch, i: (
            torch.nn.functional.binary_cross_entropy_with_logits(i.x, i.constant)),
        "kl_div": lambda torch, i: torch.nn.functional.kl_div(i.x, i.constant, reduction="batchmean"),
        "gaussian_nll_loss": lambda torch, i: torch.nn.functional.gaussian_nll_loss(i.x, i.constant, i.positive),
        "hinge_embedding_loss": lambda torch, i: torch.nn.functional.hinge_embedding_loss(i.x[:, 0], i.signs),
        "cosine_similarity": lambda torch, i: torch.nn.functional.cosine_similarity(i.x, i.y),
        "triplet_margin_loss": lambda torch, i: torch.nn.functional.triplet_margin_loss(i.x, i.y, i.positive),
    },
    "linear algebra": {
        "matmul": lambda torch, i: i.x @ i.weight.t(),
        "x @ vector": lambda torch, i: i.x @ i.row,
        "dot": lambda torch, i: i.row @ i.sorted,
        "bmm": lambda torch, i: i.squares @ i.sides,
        "addmm": lambda torch, i: torch.addmm(i.bias, i.x, i.weight.t()),
        "outer": lambda torch, i: torch.outer(i.column[:, 0], i.row),
        "einsum ij,kj->ik": lambda torch, i: torch.einsum("ij,kj->ik", i.x, i.weight),
        "einsum bhqd,bhkd->bhqk": lambda torch, i: torch.einsum("bhqd,bhkd->bhqk", i.query, i.key),
        "cdist": lambda torch, i: torch.cdist(i.x[:64], i.y[:64]),
        "trace": lambda torch, i: i.square.trace(),
        "det": lambda torch, i: torch.linalg.det(i.square),
        "inv": lambda torch, i: torch.linalg.inv(i.square),
        "solve": lambda torch, i: torch.linalg.solve(i.square, i.x[:i.order, :1]),
        "cholesky": lambda torch, i: torch.linalg.cholesky(i.definite),
        "qr": lambda torch, i: torch.linalg.qr(i.square)[1],
        "eigvalsh": lambda torch, i: torch.linalg.eigvalsh(i.definite),
        "svdvals": lambda torch, i: torch.linalg.svdvals(i.square),
        "triangular solve": lambda torch, i: (
            torch.linalg.solve_triangular(i.definite, i.x[:i.order, :1], upper=False)),
        "det, batched": lambda torch, i: torch.linalg.det(i.squares),
        "inv, batched": lambda torch, i: torch.linalg.inv(i.squares),
        "solve, batched": lambda torch, i: torch.linalg.solve(i.squares, i.sides),
        "cholesky, batched": lambda torch, i: torch.linalg.cholesky(i.definites),
        "eigvalsh, batched": lambda torch, i: torch.linalg.eigvalsh(i.definites),
        "svdvals, batched": lambda torch, i: torch.linalg.svdvals(i.squares),
        "qr, batched": lambda torch, i: torch.linalg.qr(i.squares)[1],
    },
    "random numbers": {
        "rand(())": lambda torch, i: torch.rand(()),
        "rand": lambda torch, i: torch.rand(i.rows, i.columns),
        "normal noise": lambda torch, i: i.x + torch.randn_like(i.x),
        "uniform noise": lambda torch, i: i.x + torch.rand_like(i.x),
        "bernoulli": lambda torch, i: i.constant.bernoulli(),
        "randint": lambda torch, i: torch.randint(0, 10, (i.rows, i.columns)),
        "randperm": lambda torch, i: torch.randperm(i.rows),
        "multinomial": lambda torch, i: i.constant[:8].multinomial(2),
    },
    "transforms": {
        "func.grad": lambda torch, i: torch.func.grad(lambda x: x.sin().sum())(i.constant),
        "func.vmap": lambda torch, i: torch.func.vmap(lambda x: (x * 2).sin().sum())(i.constant),
        "func.jvp": lambda torch, i: torch.func.jvp(lambda x: x.sin() * x, (i.constant,), (i.constant,))[1],
        "func.jacrev": lambda torch, i: torch.func.jacrev(lambda x: x.sin() * x)(i.constant[0, :4]),
        "func.hessian": lambda torch, i: torch.func.hessian(lambda x: (x ** 3).sum())(i.constant[0, :4]),
        "func.jacfwd": lambda torch, i: torch.func.jacfwd(lambda x: x.sin() * x)(i.constant[0, :4]),
        "func.vmap, a layer": lambda torch, i: torch.func.vmap(lambda x: torch.nn.functional.linear(
            x, i.constant[:4]).softmax(0)[1:] + x.mean())(i.constant[:8]),
        "func.jvp, a layer": lambda torch, i: torch.func.jvp(lambda x: torch.nn.functional.linear(
            x, i.constant[:4]).tanh(), (i.constant[:8],), (i.constant[:8],))[1],
        "gradients per sample": lambda torch, i: torch.func.vmap(torch.func.grad(
            lambda w, x: (torch.nn.functional.linear(x, w) ** 2).sum()), (None, 0))(
                i.weight[:4].detach(), i.constant[:8]),
        "gradients per sample, two layers": lambda torch, i: torch.func.vmap(torch.func.grad(
            lambda weights, x: torch.nn.functional.linear(torch.nn.functional.linear(x, weights[0]).tanh(), weights[1])
            .log_softmax(0)[0]), (None, 0))((i.weight[:4].detach(), i.constant[:3, :4]), i.constant[:8])[0],
    },
}

#: name -> operator
OPERATORS: dict[str, Operator] = {name: operator for group in GROUPS.values() for name, operator in group.items()}
