"""Convolutions, pooling, normalizations, attention, recurrent networks, resizing."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

import flambeau as torch

from .converter import Converter, translates


def _spatial(c: Converter, x: Any, dims: int) -> tuple[Any, bool]:
    """An input with a batch, and whether it had one."""
    if c.rank(x) == dims + 2:
        return c.x(x), True
    return c.op("Unsqueeze", c.x(x), c.const([0])), False


def _unbatched(c: Converter, name: Any, batched: bool) -> Any:
    return name if batched else c.op("Squeeze", name, c.const([0]))


def _wide(value: Any, dims: int) -> list[int]:
    values = list(value) if isinstance(value, (list, tuple)) else [value]
    return [int(v) for v in (values * dims if len(values) == 1 else values)]


def _convolution(dims: int) -> Any:
    def run(c: Converter, x: Any, weight: Any, bias: Any = None, stride: Any = 1, padding: Any = 0, dilation: Any = 1,
            groups: int = 1) -> Any:
        name, batched = _spatial(c, x, dims)
        options: dict[str, Any] = {"strides": _wide(stride, dims), "dilations": _wide(dilation, dims), "group": groups}
        if padding == "same":
            pads = [d * (k - 1) for d, k in zip(options["dilations"], c.shape(weight)[2:], strict=True)]
            options["pads"] = [p // 2 for p in pads] + [p - p // 2 for p in pads]
        elif padding != "valid":
            options["pads"] = _wide(padding, dims) * 2
        return _unbatched(c, c.op("Conv", name, c.x(weight), c.x(bias), **options), batched)

    return run


def _transposed_convolution(dims: int) -> Any:
    def run(c: Converter, x: Any, weight: Any, bias: Any = None, stride: Any = 1, padding: Any = 0,
            output_padding: Any = 0, groups: int = 1, dilation: Any = 1) -> Any:
        name, batched = _spatial(c, x, dims)
        out = c.op("ConvTranspose", name, c.x(weight), c.x(bias), strides=_wide(stride, dims),
                   pads=_wide(padding, dims) * 2, output_padding=_wide(output_padding, dims), group=groups,
                   dilations=_wide(dilation, dims))
        return _unbatched(c, out, batched)

    return run


for _dims in (1, 2, 3):
    translates(f"aten.conv{_dims}d")(_convolution(_dims))
    translates(f"aten.conv_transpose{_dims}d")(_transposed_convolution(_dims))


@translates("aten.convolution.default")
def _general_convolution(c: Converter, x: Any, weight: Any, bias: Any, stride: Any, padding: Any, dilation: Any,
                         transposed: bool, output_padding: Any, groups: int) -> Any:
    dims = c.rank(weight) - 2
    if transposed:
        return _transposed_convolution(dims)(c, x, weight, bias, stride, padding, output_padding, groups, dilation)
    return _convolution(dims)(c, x, weight, bias, stride, padding, dilation, groups)


def _max_pool(dims: int, indices: bool) -> Any:
    def run(c: Converter, x: Any, kernel: Any, stride: Any = (), padding: Any = 0, dilation: Any = 1,
            ceil_mode: bool = False) -> Any:
        name, batched = _spatial(c, x, dims)
        window = _wide(kernel, dims)
        wanted = indices and any(user.args[1] == 1 and user.users for user in c.node.users)
        found = c.op("MaxPool", name, outputs=1 + wanted, kernel_shape=window, strides=_wide(
            stride, dims) if stride else window, pads=_wide(padding, dims) * 2, dilations=_wide(dilation, dims),
            ceil_mode=int(ceil_mode))
        out = _unbatched(c, found[0] if wanted else found, batched)
        if not wanted:
            return [out, None] if indices else out
        # ONNX counts positions in the whole input, PyTorch those in the plane
        index = c.op("Mod", found[1], _elements(c, x, dims))
        return [out, _unbatched(c, index, batched)]

    return run


def _elements(c: Converter, x: Any, dims: int) -> str:
    """The number of elements of a plane, the last `dims` dimensions."""
    sizes: str = c.op("Slice", c.sizes(x), c.const([-dims]), c.const([np.iinfo(np.int64).max]))
    product: str = c.op("ReduceProd", sizes, keepdims=1)
    return product


def _max_unpool(dims: int) -> Any:
    def run(c: Converter, x: Any, indices: Any, size: Any, stride: Any = (), padding: Any = ()) -> Any:
        rows = c.const([-1])
        lead = c.op("Slice", c.sizes(x), c.const([0]), c.const([-dims]))
        planes = c.op("Concat", rows, _elements(c, x, dims), axis=0)
        extents = c.ints(size)
        count = c.op("ReduceProd", lead, keepdims=1)
        zeros = c.op("Expand", c.const(0, c.dtype(x)), c.op(
            "Concat", count, c.op("ReduceProd", extents, keepdims=1), axis=0))
        found = c.op("ScatterElements", zeros, c.op("Reshape", c.x(indices), planes), c.op(
            "Reshape", c.x(x), planes), axis=1)
        return c.op("Reshape", found, c.op("Concat", lead, extents, axis=0))

    return run


def _avg_pool(dims: int) -> Any:
    def run(c: Converter, x: Any, kernel: Any, stride: Any = (), padding: Any = 0, ceil_mode: bool = False,
            count_include_pad: bool = True, divisor_override: Any = None) -> Any:
        if divisor_override is not None:
            raise c.fail("divisor_override")
        name, batched = _spatial(c, x, dims)
        window = _wide(kernel, dims)
        out = c.op("AveragePool", name, kernel_shape=window, strides=_wide(stride, dims) if stride else window,
                   pads=_wide(padding, dims) * 2, ceil_mode=int(ceil_mode), count_include_pad=int(count_include_pad))
        return _unbatched(c, out, batched)

    return run


def _uneven_windows(c: Converter, name: str, sizes: Sequence[int], targets: Sequence[int], kind: str) -> str:
    """Reductions of windows of different sizes, one dimension after another."""
    for axis, (n, count) in enumerate(zip(sizes, targets, strict=True), 2):
        if n == count:
            continue
        windows = [(i * n // count, -(-(i + 1) * n // count)) for i in range(count)]
        parts = [c.op("Slice", name, c.const([begin]), c.const([end]), c.const([axis])) for begin, end in windows]
        name = c.op("Concat", *[c.op(kind, each, c.const([axis]), keepdims=1) for each in parts], axis=axis)
    return name


def _adaptive_pool(dims: int, kind: str) -> Any:
    def run(c: Converter, x: Any, size: Any) -> Any:
        targets = _wide(size, dims)
        name, batched = _spatial(c, x, dims)
        if all(t == 1 for t in targets):
            out = c.op("GlobalAveragePool" if kind == "Average" else "GlobalMaxPool", name)
        else:
            sizes = [c.fixed(x, d - dims) for d in range(dims)]
            if any(n % t for n, t in zip(sizes, targets, strict=True)):
                out = _uneven_windows(c, name, sizes, targets, "ReduceMean" if kind == "Average" else "ReduceMax")
            else:
                window = [n // t for n, t in zip(sizes, targets, strict=True)]
                out = c.op(f"{kind}Pool", name, kernel_shape=window, strides=window)
        out = _unbatched(c, out, batched)
        if kind == "Max":
            if any(user.args[1] == 1 for user in c.node.users if len(user.args) == 2 and user.users):
                raise c.fail("indices of maxima")
            return [out, None]
        return out

    return run


for _dims in (1, 2, 3):
    translates(f"aten.max_pool{_dims}d.default")(_max_pool(_dims, False))
    translates(f"aten.avg_pool{_dims}d.default")(_avg_pool(_dims))
    translates(f"aten.adaptive_avg_pool{_dims}d.default")(_adaptive_pool(_dims, "Average"))
    translates(f"aten.adaptive_max_pool{_dims}d.default")(_adaptive_pool(_dims, "Max"))
    translates(f"aten.max_pool{_dims}d_with_indices.default")(_max_pool(_dims, True))
    if _dims > 1:
        translates(f"aten.max_unpool{_dims}d.default")(_max_unpool(_dims))


# ----- normalizations -----

def _ones(c: Converter, x: Any, value: float) -> Any:
    return c.const(np.full(c.fixed(x, 1), value), c.dtype(x))


@translates("aten.batch_norm.default")
def _batch_norm(c: Converter, x: Any, weight: Any, bias: Any, mean: Any, var: Any, training: bool, momentum: float,
                eps: float, cudnn: bool = False) -> Any:
    if training:
        return _batch_statistics(c, x, weight, bias, eps)
    return c.op("BatchNormalization", c.x(x), _ones(c, x, 1) if weight is None else c.x(weight),
                _ones(c, x, 0) if bias is None else c.x(bias), c.x(mean), c.x(var), epsilon=eps)


@translates("aten._native_batch_norm_legit_functional.default")
def _batch_norm_functional(c: Converter, x: Any, weight: Any, bias: Any, mean: Any, var: Any, training: bool,
                           momentum: float, eps: float) -> Any:
    return [_batch_statistics(c, x, weight, bias, eps), None, None, None, None]


translates("aten._native_batch_norm_legit_no_training.default")(
    lambda c, x, weight, bias, mean, var, momentum, eps: [
        _batch_norm(c, x, weight, bias, mean, var, False, momentum, eps), None, None])


def _batch_statistics(c: Converter, x: Any, weight: Any, bias: Any, eps: float) -> Any:
    rank = c.rank(x)
    axes = [0, *range(2, rank)]
    return _affine(c, x, _normalized(c, c.x(x), axes, eps, c.dtype(x)), weight, bias)


def _normalized(c: Converter, name: Any, axes: list[int], eps: float, dtype: Any) -> Any:
    where = c.const(axes)
    deviation = c.op("Sub", name, c.op("ReduceMean", name, where, keepdims=1))
    var = c.op("ReduceMean", c.op("Mul", deviation, deviation), where, keepdims=1)
    return c.op("Div", deviation, c.op("Sqrt", c.op("Add", var, c.const(eps, dtype))))


def _affine(c: Converter, x: Any, name: Any, weight: Any, bias: Any) -> Any:
    """Scale and shift of the channels."""
    shape = c.const([-1, *[1] * (c.rank(x) - 2)])
    if weight is not None:
        name = c.op("Mul", name, c.op("Reshape", c.x(weight), shape))
    return name if bias is None else c.op("Add", name, c.op("Reshape", c.x(bias), shape))


@translates("aten.instance_norm.default")
def _instance_norm(c: Converter, x: Any, weight: Any, bias: Any, mean: Any, var: Any, use_input_stats: bool,
                   momentum: float, eps: float, cudnn: bool) -> Any:
    if not use_input_stats:
        return _batch_norm(c, x, weight, bias, mean, var, False, momentum, eps)
    return c.op("InstanceNormalization", c.x(x), _ones(c, x, 1) if weight is None else c.x(weight),
                _ones(c, x, 0) if bias is None else c.x(bias), epsilon=eps)


@translates("aten.layer_norm.default")
def _layer_norm(c: Converter, x: Any, shape: Any, weight: Any = None, bias: Any = None, eps: float = 1e-5,
                cudnn: bool = True) -> Any:
    scale = c.const(np.ones([int(n) for n in shape]), c.dtype(x)) if weight is None else c.x(weight)
    return c.op("LayerNormalization", c.x(x), scale, c.x(bias), axis=-len(shape), epsilon=eps)


translates("aten.native_layer_norm.default")(
    lambda c, x, shape, weight, bias, eps: [_layer_norm(c, x, shape, weight, bias, eps), None, None])


@translates("aten.rms_norm.default")
def _rms_norm(c: Converter, x: Any, shape: Any, weight: Any = None, eps: Any = None) -> Any:
    dtype = c.dtype(x)
    axes = c.const(list(range(-len(shape), 0)))
    square = c.op("ReduceMean", c.op("Mul", c.x(x), c.x(x)), axes, keepdims=1)
    eps = torch.finfo(dtype).eps if eps is None else eps
    out = c.op("Div", c.x(x), c.op("Sqrt", c.op("Add", square, c.const(eps, dtype))))
    return out if weight is None else c.op("Mul", out, c.x(weight))


@translates("aten.group_norm.default")
def _group_norm(c: Converter, x: Any, groups: int, weight: Any = None, bias: Any = None, eps: float = 1e-5,
                cudnn: bool = True) -> Any:
    dtype = c.dtype(x)
    grouped = c.op("Reshape", c.x(x), c.const([0, groups, -1]))
    scale, shift = c.const(np.ones(groups), dtype), c.const(np.zeros(groups), dtype)
    out = c.op("InstanceNormalization", grouped, scale, shift, epsilon=eps)
    return _affine(c, x, c.op("Reshape", out, c.op("Shape", c.x(x))), weight, bias)


# ----- attention -----

@translates("aten.scaled_dot_product_attention.default")
def _attention(c: Converter, query: Any, key: Any, value: Any, mask: Any = None, dropout: float = 0.0,
               is_causal: bool = False, *, scale: Any = None, enable_gqa: bool = False) -> Any:
    if dropout:
        raise c.fail("dropout")
    dtype = c.dtype(query)
    rank = c.rank(key)
    k, v = c.x(key), c.x(value)
    if enable_gqa:
        times = c.fixed(query, -3) // c.fixed(key, -3)
        k, v = (_repeated_heads(c, name, rank, times) for name in (k, v))
    order = [*range(rank - 2), rank - 1, rank - 2]
    factor = 1 / math.sqrt(c.fixed(query, -1)) if scale is None else scale
    scores = c.op("Mul", c.op("MatMul", c.x(query), c.op("Transpose", k, perm=order)), c.const(factor, dtype))
    lowest = c.const(float("-inf"), dtype)
    if is_causal:
        length, width = (c.dim_of(c.x(t), c.rank(t) - 2) for t in (query, key))
        ones = c.op("Expand", c.const(1), c.op("Concat", length, width, axis=0))
        allowed = c.op("Cast", c.op("Trilu", ones, c.const(0), upper=0), to=c.type_of(torch.bool))
        scores = c.op("Where", allowed, scores, lowest)
    if mask is not None:
        if c.dtype(mask) == torch.bool:
            scores = c.op("Where", c.x(mask), scores, lowest)
        else:
            scores = c.op("Add", scores, c.x(mask, dtype))
    weights = c.op("Softmax", scores, axis=-1)
    if mask is not None:  # rows of which nothing is allowed are zero
        weights = c.op("Where", c.op("IsNaN", weights), c.const(0, dtype), weights)
    return c.op("MatMul", weights, v)


def _repeated_heads(c: Converter, name: Any, rank: int, times: int) -> Any:
    if times == 1:
        return name
    wide = c.op("Unsqueeze", name, c.const([rank - 2]))
    tiled = c.op("Tile", wide, c.const([times if d == rank - 2 else 1 for d in range(rank + 1)]))
    shape = c.op("Mul", c.op("Shape", name), c.const([times if d == rank - 3 else 1 for d in range(rank)]))
    return c.op("Reshape", tiled, shape)


# ----- recurrent networks -----

_GATES = {"LSTM": [0, 3, 1, 2], "GRU": [1, 0, 2], "RNN": [0]}  # ONNX's order of PyTorch's blocks of rows


def _recurrent(kind: str, activation: str | None = None) -> Any:
    def run(c: Converter, x: Any, hx: Any, params: Any, has_biases: bool, num_layers: int, dropout: float, train: bool,
            bidirectional: bool, batch_first: bool) -> Any:
        if train and dropout:
            raise c.fail("dropout between layers in training mode")
        states = list(hx) if kind == "LSTM" else [hx]
        directions = 2 if bidirectional else 1
        per_cell = 4 if has_biases else 2
        if len(params) != num_layers * directions * per_cell:
            raise c.fail("projections")
        hidden = c.fixed(params[1], 1)
        sequence = c.op("Transpose", c.x(x), perm=[1, 0, 2]) if batch_first else c.x(x)
        finals: list[list[Any]] = [[] for _ in states]
        for layer in range(num_layers):
            cells = [params[(layer * directions + d) * per_cell:(layer * directions + d + 1) * per_cell]
                     for d in range(directions)]
            weights, recurrent = (_stacked(c, [_gates(c, cell[i], kind, hidden) for cell in cells]) for i in (0, 1))
            biases = None
            if has_biases:
                biases = _stacked(c, [c.op("Concat", *(_gates(c, cell[i], kind, hidden) for i in (2, 3)), axis=0)
                                      for cell in cells])
            initial = [c.op("Slice", c.x(state), c.const([layer * directions]), c.const([(layer + 1) * directions]),
                            c.const([0])) for state in states]
            options: dict[str, Any] = {"hidden_size": hidden,
                                       "direction": "bidirectional" if bidirectional else "forward"}
            if kind == "GRU":
                options["linear_before_reset"] = 1
            if activation:
                options["activations"] = [activation] * directions
            out, *last = c.op(kind, sequence, weights, recurrent, biases, None, *initial, outputs=1 + len(states),
                              **options)
            for found, value in zip(finals, last, strict=True):
                found.append(value)
            # (L, directions, N, H) -> (L, N, directions · H)
            sequence = c.op("Reshape", c.op("Transpose", out, perm=[0, 2, 1, 3]), c.const([0, 0, -1]))
        result = c.op("Transpose", sequence, perm=[1, 0, 2]) if batch_first else sequence
        return [result, *(c.op("Concat", *found, axis=0) if len(found) > 1 else found[0] for found in finals)]

    return run


def _gates(c: Converter, weight: Any, kind: str, hidden: int) -> Any:
    """The rows of a weight or bias in ONNX's order of gates."""
    order = _GATES[kind]
    if order == [0]:
        return c.x(weight)
    rows = np.concatenate([np.arange(g * hidden, (g + 1) * hidden) for g in order])
    return c.op("Gather", c.x(weight), c.const(rows.astype(np.int64)), axis=0)


def _stacked(c: Converter, names: list[Any]) -> Any:
    wide = [c.op("Unsqueeze", name, c.const([0])) for name in names]
    return wide[0] if len(wide) == 1 else c.op("Concat", *wide, axis=0)


translates("aten.lstm.input")(_recurrent("LSTM"))
translates("aten.gru.input")(_recurrent("GRU"))
translates("aten.rnn_tanh.input")(_recurrent("RNN", "Tanh"))
translates("aten.rnn_relu.input")(_recurrent("RNN", "Relu"))


# ----- resizing -----

def _resize(mode: str, **options: Any) -> Any:
    def run(c: Converter, x: Any, size: Any, *rest: Any) -> Any:
        corners, scales = (rest[0], rest[1]) if mode != "nearest" else (False, rest[0])
        kind = dict(options)
        if mode != "nearest":
            kind["coordinate_transformation_mode"] = "align_corners" if corners else (
                "pytorch_half_pixel" if mode == "linear" else "half_pixel")
        if mode == "cubic":
            kind["cubic_coeff_a"] = -0.75
        if size is not None:
            head = c.op("Slice", c.op("Shape", c.x(x)), c.const([0]), c.const([2]))
            sizes = c.op("Concat", head, c.ints(size), axis=0)
            return c.op("Resize", c.x(x), None, None, sizes, mode=mode, **kind)
        factors = c.const(np.asarray([1.0, 1.0, *scales], np.float32))
        return c.op("Resize", c.x(x), None, factors, mode=mode, **kind)

    return run


for _dims in (1, 2, 3):
    translates(f"aten.upsample_nearest{_dims}d.vec")(_resize(
        "nearest", coordinate_transformation_mode="asymmetric", nearest_mode="floor"))
    translates(f"aten._upsample_nearest_exact{_dims}d.vec")(_resize(
        "nearest", coordinate_transformation_mode="half_pixel", nearest_mode="round_prefer_ceil"))
for _name in ("linear1d", "bilinear2d", "trilinear3d"):
    translates(f"aten.upsample_{_name}.vec")(_resize("linear"))
translates("aten.upsample_bicubic2d.vec")(_resize("cubic"))


@translates("aten._weight_norm_interface.default")
def _weight_norm(c: Converter, direction: Any, magnitude: Any, dim: int = 0) -> Any:
    axes = c.const([d for d in range(c.rank(direction)) if d != dim % c.rank(direction)])
    norms = c.op("ReduceL2", c.x(direction), axes, keepdims=1)
    return [c.op("Mul", c.x(direction), c.op("Div", c.x(magnitude), norms)), norms]


@translates("aten._trilinear.default")
def _trilinear(c: Converter, x: Any, weight: Any, y: Any, *expanded: Any) -> Any:
    given = [each if each is None else list(each) for each in expanded[:4]]
    if any(each is not None for each in given) and given != [[1, 3], [0], [1, 2], [2, 3]]:
        raise c.fail("sums that bilinear layers do not take")
    return c.op("Einsum", c.x(x), c.x(weight), c.x(y), equation="bi,oij,bj->bo")


@translates("flambeau._affine_grid.default")
def _affine_grid(c: Converter, theta: Any, base: Any, *, size: Any) -> Any:
    order = [*range(c.rank(theta) - 2), c.rank(theta) - 1, c.rank(theta) - 2]
    return c.op("Reshape", c.op("MatMul", c.x(base), c.op("Transpose", c.x(theta), perm=order)), c.ints(size))


@translates("aten.grid_sampler", "aten.grid_sampler_2d.default")
def _grid_sampler(c: Converter, x: Any, grid: Any, interpolation: int, padding: int, align_corners: bool) -> Any:
    modes = ("bilinear", "nearest", "bicubic") if c.opset < 20 else ("linear", "nearest", "cubic")
    return c.op("GridSample", c.x(x), c.x(grid), mode=modes[interpolation], padding_mode=(
        "zeros", "border", "reflection")[padding], align_corners=int(align_corners))

