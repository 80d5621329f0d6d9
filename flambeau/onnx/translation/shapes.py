"""Views, joins, indexing, padding, conversions."""

from __future__ import annotations

from typing import Any

import numpy as np

import flambeau as torch

from ...export.tracing.symbolic_numbers import is_symbolic
from ...fx.node import Node
from .converter import Converter, translates

_END = 2**63 - 1


def transposed(c: Converter, name: Any, order: list[int]) -> Any:
    """A tensor with its dimensions in another order."""
    return name if order == list(range(len(order))) else c.op("Transpose", name, perm=order)


translates("aten.view.default", "aten.reshape.default", "aten._unsafe_view.default")(
    lambda c, x, size: _reshape(c, c.x(x), size))
translates("aten.view_as.default", "aten.reshape_as.default")(lambda c, x, y: c.op("Reshape", c.x(x), c.sizes(y)))


def _reshape(c: Converter, name: Any, size: Any) -> Any:
    return c.op("Reshape", name, c.ints(size), allowzero=1 if 0 in [n for n in size if isinstance(n, int)] else None)


@translates("aten.flatten.using_ints")
def _flatten(c: Converter, x: Any, start: int = 0, end: int = -1) -> Any:
    rank = c.rank(x)
    if not rank:
        return c.op("Reshape", c.x(x), c.const([1]))
    start, end = start % rank, end % rank
    sizes: list[Any] = []
    for d in range(rank):
        if d < start or d > end:
            sizes.append(0 if d < start else None)
        elif d == start:
            sizes.append(-1)
    if None not in sizes:  # 0 copies the size of the same position
        return c.op("Reshape", c.x(x), c.const(sizes))
    shape = c.sizes(x)
    parts = [c.op("Slice", shape, c.const([0]), c.const([start]))] if start else []
    parts += [c.const([-1]), c.op("Slice", shape, c.const([end + 1]), c.const([rank]))]
    return c.op("Reshape", c.x(x), c.op("Concat", *parts, axis=0))


@translates("aten.unflatten.int")
def _unflatten(c: Converter, x: Any, dim: int, sizes: Any) -> Any:
    rank = c.rank(x)
    dim %= rank
    shape = c.sizes(x)
    parts = [c.op("Slice", shape, c.const([0]), c.const([dim]))] if dim else []
    parts.append(c.ints(sizes))
    if dim + 1 < rank:
        parts.append(c.op("Slice", shape, c.const([dim + 1]), c.const([rank])))
    return c.op("Reshape", c.x(x), c.op("Concat", *parts, axis=0) if len(parts) > 1 else parts[0])


@translates("aten.permute.default")
def _permute(c: Converter, x: Any, dims: Any) -> Any:
    return transposed(c, c.x(x), [d % c.rank(x) for d in dims])


@translates("aten.transpose.int", "aten.swapaxes.default", "aten.swapdims.default")
def _transpose(c: Converter, x: Any, a: int, b: int) -> Any:
    order = list(range(c.rank(x)))
    if order:
        order[a], order[b] = order[b], order[a]
    return transposed(c, c.x(x), order)


translates("aten.t.default", "aten.numpy_T.default")(lambda c, x: transposed(c, c.x(x), list(range(c.rank(x)))[::-1]))
translates("aten.mT.default", "aten.mH.default", "aten.adjoint.default")(lambda c, x: _transpose(c, x, -1, -2))


@translates("aten.movedim", "aten.moveaxis")
def _movedim(c: Converter, x: Any, source: Any, destination: Any) -> Any:
    rank = c.rank(x)
    sources = [d % rank for d in (source if isinstance(source, (list, tuple)) else [source])]
    targets = [d % rank for d in (destination if isinstance(destination, (list, tuple)) else [destination])]
    rest = iter(d for d in range(rank) if d not in sources)
    order = [sources[targets.index(d)] if d in targets else next(rest) for d in range(rank)]
    return transposed(c, c.x(x), order)


translates("aten.unsqueeze.default")(lambda c, x, dim: c.op("Unsqueeze", c.x(x), c.const([dim])))


@translates("aten.squeeze")
def _squeeze(c: Converter, x: Any, dim: Any = None) -> Any:
    shape = c.shape(x)
    dims = range(len(shape)) if dim is None else dim if isinstance(dim, (list, tuple)) else [dim]
    gone = [d % len(shape) for d in dims if shape and not is_symbolic(shape[d]) and shape[d] == 1]
    return c.op("Squeeze", c.x(x), c.const(gone)) if gone else c.op("Identity", c.x(x))


@translates("aten.expand.default", "aten.broadcast_to.default")
def _expand(c: Converter, x: Any, size: Any, implicit: bool = False) -> Any:
    return c.op("Expand", c.x(x), c.ints([1 if isinstance(n, int) and n == -1 else n for n in size]))


translates("aten.expand_as.default")(lambda c, x, y: c.op("Expand", c.x(x), c.sizes(y)))


@translates("aten.broadcast_tensors.default")
def _broadcast_tensors(c: Converter, tensors: Any) -> Any:
    shapes = [c.shape_of(c.x(x)) for x in tensors]
    first = c.result[0]
    if not any(map(is_symbolic, first.shape)):
        size = c.const(np.asarray(list(first.shape), np.int64))
        return [c.op("Expand", c.x(x), size) for x in tensors]
    return [_expanded_by(c, c.x(x), shapes[:i] + shapes[i + 1:]) for i, x in enumerate(tensors)]


def _expanded_by(c: Converter, name: Any, shapes: list[Any]) -> Any:
    for shape in shapes:
        name = c.op("Expand", name, shape)
    return name


@translates("aten.repeat.default", "aten.tile.default")
def _repeat(c: Converter, x: Any, repeats: Any) -> Any:
    rank, count = c.rank(x), len(repeats)
    name = c.x(x)
    if count > rank:
        name = c.op("Unsqueeze", name, c.const(list(range(count - rank))))
    return c.op("Tile", name, c.ints([1] * (rank - count) + list(repeats)))


@translates("aten.repeat_interleave.self_int")
def _repeat_interleave(c: Converter, x: Any, repeats: Any, dim: Any = None, output_size: Any = None) -> Any:
    if isinstance(repeats, Node):
        raise c.fail("a dynamic number")
    name, rank = c.x(x), c.rank(x)
    if dim is None:
        name, rank, dim = c.op("Reshape", name, c.const([-1])), 1, 0
    dim %= rank
    wide = c.op("Unsqueeze", name, c.const([dim + 1]))
    repeated = c.op("Tile", wide, c.const([repeats if d == dim + 1 else 1 for d in range(rank + 1)]))
    shape = c.op("Shape", name)
    factors = c.const([repeats if d == dim else 1 for d in range(rank)])
    return c.op("Reshape", repeated, c.op("Mul", shape, factors))


@translates("aten.cat.default")
def _cat(c: Converter, tensors: Any, dim: int = 0) -> Any:
    kept = [t for t in tensors if c.rank(t) != 1 or c.rank(t) == len(c.result.shape)]
    return c.op("Concat", *(c.x(t, c.result.dtype) for t in kept), axis=dim)


@translates("aten.stack.default")
def _stack(c: Converter, tensors: Any, dim: int = 0) -> Any:
    dim %= c.rank(tensors[0]) + 1
    axes = c.const([dim])
    return c.op("Concat", *(c.op("Unsqueeze", c.x(t, c.result.dtype), axes) for t in tensors), axis=dim)


def _parts(c: Converter, x: Any, sizes: list[Any], dim: int) -> Any:
    if len(sizes) == 1:
        return [c.op("Identity", c.x(x))]
    return c.op("Split", c.x(x), c.ints(sizes), outputs=len(sizes), axis=dim)


@translates("aten.split.Tensor", "aten.unsafe_split.Tensor", "aten.split.int",
            "aten.split.default", "aten.chunk.default", "aten.tensor_split")
def _split(c: Converter, x: Any, size: Any, dim: int = 0) -> Any:
    sizes = [part.shape[dim] for part in c.result]
    if any(map(is_symbolic, sizes)):  # equal parts of a dynamic size
        if any(str(n) != str(sizes[0]) for n in sizes):
            raise c.fail("parts of different dynamic sizes")
        return c.op("Split", c.x(x), outputs=len(sizes), axis=dim, num_outputs=len(sizes))
    return _parts(c, x, [int(n) for n in sizes], dim)


@translates("aten.split_with_sizes.default", "aten.unsafe_split_with_sizes.default")
def _split_with_sizes(c: Converter, x: Any, sizes: Any, dim: int = 0) -> Any:
    return _parts(c, x, list(sizes), dim)


@translates("aten.unbind.int")
def _unbind(c: Converter, x: Any, dim: int = 0) -> Any:
    count = c.fixed(x, dim)
    return [c.op("Gather", c.x(x), c.const(i), axis=dim) for i in range(count)]


@translates("aten.select.int")
def _select(c: Converter, x: Any, dim: int, index: Any) -> Any:
    return c.op("Gather", c.x(x), c.x(index), axis=dim)


@translates("aten.slice.Tensor")
def _slice(c: Converter, x: Any, dim: int = 0, start: Any = None, end: Any = None, step: int = 1) -> Any:
    return c.op("Slice", c.x(x), c.ints([0 if start is None else start]), c.ints([_END if end is None else end]),
                c.const([dim]), c.const([step]))


@translates("aten.narrow.default")
def _narrow(c: Converter, x: Any, dim: int, start: Any, length: Any) -> Any:
    begin = c.ints([start])
    if isinstance(start, int) and start < 0:
        begin = c.op("Add", begin, c.dim_of(c.x(x), dim % c.rank(x)))
    return c.op("Slice", c.x(x), begin, c.op("Add", begin, c.ints([length])), c.const([dim]))


def _positions(c: Converter, x: Any, dim: int, start: Any, end: Any, step: int) -> Any:
    """The indices of a slice of a dimension."""
    count = c.dim_of(c.x(x), dim)
    every = c.op("Range", c.const(0), c.op("Reshape", count, c.const([])), c.const(1))
    return c.op("Slice", every, c.ints([0 if start is None else start]), c.ints([_END if end is None else end]),
                c.const([0]), c.const([step]))


@translates("aten.slice_scatter.default")
def _slice_scatter(c: Converter, x: Any, source: Any, dim: int = 0, start: Any = None, end: Any = None,
                   step: int = 1) -> Any:
    rank = c.rank(x)
    dim %= rank
    positions = _positions(c, x, dim, start, end, step)
    order = [dim, *(d for d in range(rank) if d != dim)]
    back = [order.index(d) for d in range(rank)]
    moved = transposed(c, c.x(x), order)
    update = transposed(c, c.x(source, c.result.dtype), order)
    out = c.op("ScatterND", moved, c.op("Unsqueeze", positions, c.const([1])), update)
    return transposed(c, out, back)


@translates("aten.select_scatter.default")
def _select_scatter(c: Converter, x: Any, source: Any, dim: int, index: Any) -> Any:
    rank = c.rank(x)
    dim %= rank
    order = [dim, *(d for d in range(rank) if d != dim)]
    position = c.op("Reshape", c.x(index), c.const([1, 1]))
    update = c.op("Unsqueeze", c.x(source, c.result.dtype), c.const([0]))
    out = c.op("ScatterND", transposed(c, c.x(x), order), position, update)
    return transposed(c, out, [order.index(d) for d in range(rank)])


@translates("aten.flip.default")
def _flip(c: Converter, x: Any, dims: Any) -> Any:
    count = len(dims)
    return c.op("Slice", c.x(x), c.const([-1] * count), c.const([-_END] * count), c.const(list(dims)), c.const(
        [-1] * count)) if count else c.op("Identity", c.x(x))


@translates("aten.roll.default")
def _roll(c: Converter, x: Any, shifts: Any, dims: Any = ()) -> Any:
    name = c.x(x)
    if not dims:
        flat = c.op("Reshape", name, c.const([-1]))
        return c.op("Reshape", _rolled(c, flat, shifts[0], 0), c.op("Shape", name))
    for shift, dim in zip(shifts, dims, strict=True):
        name = _rolled(c, name, shift, dim)
    return name


def _rolled(c: Converter, name: Any, shift: int, dim: int) -> Any:
    if not shift:
        return name
    axis = c.const([dim])
    last = c.op("Slice", name, c.const([-shift]), c.const([_END]), axis)
    return c.op("Concat", last, c.op("Slice", name, c.const([0]), c.const([-shift]), axis), axis=dim)


@translates("aten.pad.default")
def _pad(c: Converter, x: Any, pad: Any, mode: str = "constant", value: Any = None) -> Any:
    rank = c.rank(x)
    before: list[Any] = [0] * rank
    after: list[Any] = [0] * rank
    for i in range(len(pad) // 2):
        before[rank - 1 - i], after[rank - 1 - i] = pad[2 * i], pad[2 * i + 1]
    kind = {"constant": "constant", "reflect": "reflect", "replicate": "edge", "circular": "wrap"}[mode]
    if kind == "wrap" and c.opset < 19:
        return _circular(c, x, before, after)
    fill = c.const(value or 0, c.dtype(x)) if kind == "constant" else None
    return c.op("Pad", c.x(x), c.ints(before + after), fill, mode=kind)


def _circular(c: Converter, x: Any, before: list[Any], after: list[Any]) -> Any:
    name = c.x(x)
    for d, (low, high) in enumerate(zip(before, after, strict=True)):
        parts = [c.op("Slice", name, c.const([-low]), c.const([_END]), c.const([d]))] if low else []
        parts.append(name)
        parts += [c.op("Slice", name, c.const([0]), c.const([high]), c.const([d]))] if high else []
        name = c.op("Concat", *parts, axis=d) if len(parts) > 1 else name
    return name


translates("aten.constant_pad_nd.default")(lambda c, x, pad, value=0: _pad(c, x, pad, "constant", value))


def _triangle(upper: int) -> Any:
    return lambda c, x, diagonal=0: c.op("Trilu", c.x(x), c.const(diagonal), upper=upper)


translates("aten.tril.default")(_triangle(0))
translates("aten.triu.default")(_triangle(1))


@translates("aten.diagonal.default")
def _diagonal(c: Converter, x: Any, offset: int = 0, a: int = 0, b: int = 1) -> Any:
    rank = c.rank(x)
    a, b = a % rank, b % rank
    c.fixed(x, a), c.fixed(x, b)
    count = int(c.result.shape[-1])
    order = [a, b, *(d for d in range(rank) if d not in (a, b))]
    start = max(-offset, 0), max(offset, 0)
    positions = np.stack([np.arange(count) + start[0], np.arange(count) + start[1]], 1)
    out = c.op("GatherND", transposed(c, c.x(x), order), c.const(positions.astype(np.int64)))
    return transposed(c, out, [*range(1, rank - 1), 0])


@translates("aten.unfold.default")
def _unfold(c: Converter, x: Any, dim: int, size: int, step: int) -> Any:
    rank = c.rank(x)
    dim %= rank
    count = int(c.result.shape[dim]) if not is_symbolic(c.result.shape[dim]) else None
    if count is None:
        raise c.fail("a dynamic size")
    positions = np.arange(count)[:, None] * step + np.arange(size)[None]
    out = c.op("Gather", c.x(x), c.const(positions.astype(np.int64)), axis=dim)  # (..., count, size, ...)
    return transposed(c, out, [d for d in range(rank + 1) if d != dim + 1] + [dim + 1])


@translates("aten.im2col.default")
def _im2col(c: Converter, x: Any, kernel: Any, dilation: Any, padding: Any, stride: Any) -> Any:
    rank, name = c.rank(x), c.x(x)
    counts = []
    if any(padding):
        before = [*[0] * (rank - 2), *padding]
        name = c.op("Pad", name, c.const(before * 2))
    for i, dim in enumerate((rank - 2, rank - 1)):
        size = c.fixed(x, dim) + 2 * padding[i]
        counts.append((size - dilation[i] * (kernel[i] - 1) - 1) // stride[i] + 1)
        places = np.arange(kernel[i])[:, None] * dilation[i] + np.arange(counts[-1])[None] * stride[i]
        name = c.op("Gather", name, c.const(places.astype(np.int64)), axis=dim + i)
    lead = list(range(rank - 2))
    windows = transposed(c, name, [*lead, rank - 2, rank, rank - 1, rank + 1])
    return c.op("Reshape", windows, c.const([*[0] * (rank - 3), -1, counts[0] * counts[1]]))


# ----- indexing -----

translates("aten.index_select.default")(lambda c, x, dim, index: c.op("Gather", c.x(x), c.x(index), axis=dim))
translates("aten.gather.default")(
    lambda c, x, dim, index, sparse_grad=False: c.op("GatherElements", c.x(x), c.x(index), axis=dim))
translates("aten.take.default")(lambda c, x, index: c.op("Gather", c.op("Reshape", c.x(x), c.const([-1])), c.x(index)))
translates("aten.take_along_dim.default")(
    lambda c, x, index, dim=None: c.op("GatherElements", c.x(x), c.x(index), axis=dim))


@translates("aten.embedding.default")
def _embedding(c: Converter, weight: Any, indices: Any, *rest: Any) -> Any:
    return c.op("Gather", c.x(weight), c.x(indices))


@translates("aten.one_hot.default")
def _one_hot(c: Converter, x: Any, count: int = -1) -> Any:
    return c.op("OneHot", c.x(x), c.const(count), c.const([0, 1]))


@translates("aten.scatter")
def _scatter(c: Converter, x: Any, dim: int, index: Any, source: Any, *, reduce: Any = None) -> Any:
    kind = {None: None, "add": "add", "multiply": "mul"}[reduce]
    if not (isinstance(source, Node) and isinstance(c.val(source), torch.Tensor)):
        source = c.op("Expand", c.x(source, c.result.dtype), c.op("Shape", c.x(index)))
    else:
        source = _cropped(c, source, index)
    return c.op("ScatterElements", c.x(x), c.x(index), source, axis=dim, reduction=kind)


def _cropped(c: Converter, source: Any, index: Any) -> Any:
    """The part of a source of the index's shape."""
    if [str(n) for n in c.shape(source)] == [str(n) for n in c.shape(index)]:
        return c.x(source)
    rank = c.rank(index)
    return c.op("Slice", c.x(source), c.const([0] * rank), c.op("Shape", c.x(index)), c.const(list(range(rank))))


@translates("aten.scatter_add.default")
def _scatter_add(c: Converter, x: Any, dim: int, index: Any, source: Any) -> Any:
    return c.op("ScatterElements", c.x(x), c.x(index), _cropped(c, source, index), axis=dim, reduction="add")


@translates("aten.scatter_reduce.two")
def _scatter_reduce(c: Converter, x: Any, dim: int, index: Any, source: Any, reduce: str, *,
                    include_self: bool = True) -> Any:
    kinds = {"sum": "add", "prod": "mul", "amax": "max", "amin": "min"}
    if reduce not in kinds or not include_self:
        raise c.fail(f"reduce='{reduce}', include_self={include_self}")
    return c.op("ScatterElements", c.x(x), c.x(index), _cropped(c, source, index), axis=dim, reduction=kinds[reduce])


def _written(c: Converter, x: Any, dim: int, index: Any, source: Any, reduction: str | None, alpha: Any = 1) -> Any:
    """A tensor whose slices of a dimension are replaced, or added to."""
    rank = c.rank(x)
    dim %= rank
    order = [dim, *(d for d in range(rank) if d != dim)]
    moved = transposed(c, c.x(x), order)
    if isinstance(source, Node) and c.rank(source) == rank:
        update = transposed(c, c.x(source), order)
    else:  # a number for all of them
        rest = c.op("Slice", c.op("Shape", moved), c.const([1]), c.const([rank]))
        size = c.op("Concat", c.op("Shape", c.x(index)), rest, axis=0)
        update = c.op("Expand", c.x(source, c.result.dtype), size)
    update = update if alpha == 1 else c.op("Mul", update, c.const(alpha, c.result.dtype))
    out = c.op("ScatterND", moved, c.op("Unsqueeze", c.x(index), c.const([1])), update, reduction=reduction)
    return transposed(c, out, [order.index(d) for d in range(rank)])


@translates("aten.index_add.default")
def _index_add(c: Converter, x: Any, dim: int, index: Any, source: Any, *, alpha: Any = 1) -> Any:
    return _written(c, x, dim, index, source, "add", alpha)


translates("aten.index_copy.default", "aten.index_fill")(
    lambda c, x, dim, index, source: _written(c, x, dim, index, source, None))


def _index_tensors(c: Converter, x: Any, indices: Any) -> tuple[list[int], list[Any]]:
    """The indexed dimensions, and their indices without negative ones."""
    dims, tensors = [], []
    for d, index in enumerate(indices):
        if index is None:
            continue
        if c.dtype(index) in (torch.bool, torch.uint8):
            raise c.fail("masks as indices: the shape of the result depends on data")
        dims.append(d)
        name = c.x(index, torch.int64)
        size = c.dim_of(c.x(x), d)
        tensors.append(c.op("Where", c.op("Less", name, c.const(0)), c.op("Add", name, size), name))
    return dims, tensors


def _points(c: Converter, tensors: list[Any]) -> Any:
    """Broadcast indices as one tensor of coordinates."""
    total = tensors[0]
    for other in tensors[1:]:
        total = c.op("Add", total, other)
    shape = c.op("Shape", total)
    return c.op("Concat", *(c.op("Unsqueeze", c.op("Expand", t, shape), c.const([-1])) for t in tensors), axis=-1)


@translates("aten.index.Tensor")
def _index(c: Converter, x: Any, indices: Any) -> Any:
    rank = c.rank(x)
    dims, tensors = _index_tensors(c, x, indices)
    if len(dims) == 1:
        return c.op("Gather", c.x(x), tensors[0], axis=dims[0])
    order = [*dims, *(d for d in range(rank) if d not in dims)]
    out = c.op("GatherND", transposed(c, c.x(x), order), _points(c, tensors))
    count = len(c.result.shape) - (rank - len(dims))  # dimensions of the indices, which are first now
    if dims != list(range(dims[0], dims[0] + len(dims))) or not dims[0]:
        return out
    before = dims[0]
    return transposed(c, out, [*range(count, count + before), *range(count), *range(count + before, count + rank
                                                                                    - len(dims))])


@translates("aten.index_put.default")
def _index_put(c: Converter, x: Any, indices: Any, values: Any, accumulate: bool = False) -> Any:
    rank = c.rank(x)
    dtype = c.result.dtype
    if sum(index is not None for index in indices) == 1:
        at = next(i for i, index in enumerate(indices) if index is not None)
        if c.dtype(indices[at]) == torch.bool and not at and c.rank(values) == 0 and not accumulate:
            mask = c.x(indices[at])
            extra = rank - c.rank(indices[at])
            if extra:
                mask = c.op("Unsqueeze", mask, c.const(list(range(-extra, 0))))
            return c.op("Where", mask, c.x(values, dtype), c.x(x))
    dims, tensors = _index_tensors(c, x, indices)
    order = [*dims, *(d for d in range(rank) if d not in dims)]
    moved = transposed(c, c.x(x), order)
    points = _points(c, tensors)
    ranks = [c.rank(index) for index in indices if index is not None]
    count = max(ranks)
    rest = rank - len(dims)
    head = c.op("Slice", c.op("Shape", points), c.const([0]), c.const([count]))
    tail = c.op("Slice", c.op("Shape", moved), c.const([len(dims)]), c.const([rank])) if rest else None
    update = c.x(values, dtype)
    consecutive = dims == list(range(dims[0], dims[0] + len(dims)))
    if consecutive and dims[0] and c.rank(values) > rest:  # the values have the dimensions before the indices first
        before = dims[0]
        wide = c.rank(values)
        if wide != count + rest:
            raise c.fail("values that are broadcast before indexed dimensions")
        update = transposed(c, update, [*range(before, before + count), *range(before), *range(before + count, wide)])
    update = c.op("Expand", update, head if tail is None else c.op("Concat", head, tail, axis=0))
    out = c.op("ScatterND", moved, points, update, reduction="add" if accumulate else None)
    return transposed(c, out, [order.index(d) for d in range(rank)])


@translates("aten.meshgrid")
def _meshgrid(c: Converter, tensors: Any, *, indexing: str = "ij") -> Any:
    if indexing == "xy" and len(tensors) >= 2:
        first = _meshgrid(c, [tensors[1], tensors[0], *tensors[2:]], indexing="ij")
        return [first[1], first[0], *first[2:]]
    count = len(tensors)
    shapes = [c.op("Reshape", c.op("Size", c.x(t)), c.const([1])) for t in tensors]
    shape = c.op("Concat", *shapes, axis=0)
    out = []
    for i, tensor in enumerate(tensors):
        wide = c.op("Reshape", c.x(tensor), c.const([-1 if d == i else 1 for d in range(count)]))
        out.append(c.op("Expand", wide, shape))
    return out


@translates("aten.isin.Tensor_Tensor")
def _isin(c: Converter, x: Any, among: Any, *, assume_unique: bool = False, invert: bool = False) -> Any:
    wide = c.op("Unsqueeze", c.x(x), c.const([-1]))
    same = c.op("Equal", wide, c.op("Reshape", c.x(among, c.dtype(x)), c.const([-1])))
    found = c.op("Cast", c.op("ReduceMax", c.op("Cast", same, to=c.type_of(torch.int32)), c.const([-1]), keepdims=0),
                 to=c.type_of(torch.bool))
    return c.op("Not", found) if invert else found


@translates("aten.pixel_shuffle.default")
def _pixel_shuffle(c: Converter, x: Any, factor: int) -> Any:
    if c.rank(x) != 4:
        raise c.fail("an input that is not (N, C, H, W)")
    return c.op("DepthToSpace", c.x(x), blocksize=factor, mode="CRD")


@translates("aten.pixel_unshuffle.default")
def _pixel_unshuffle(c: Converter, x: Any, factor: int) -> Any:
    channels = c.shape(x)[1]
    if c.rank(x) != 4 or is_symbolic(channels):
        raise c.fail("an input that is not (N, C, H, W)")
    h, w = c.fixed(x, 2), c.fixed(x, 3)
    wide = c.op("Reshape", c.x(x), c.const([-1, channels, h // factor, factor, w // factor, factor]))
    order = c.op("Transpose", wide, perm=[0, 1, 3, 5, 2, 4])
    return c.op("Reshape", order, c.const([-1, channels * factor**2, h // factor, w // factor]))


# ----- conversions -----

@translates("aten.to", "aten._to_copy.default", "aten.type_as.default", "aten.copy.default")
def _to(c: Converter, x: Any, *rest: Any, **options: Any) -> Any:
    if c.node.target.overloadpacket.__name__ == "copy":
        return c.op("Expand", c.x(rest[0], c.result.dtype), c.sizes(x))
    dtype = c.result.dtype
    if c.dtype(x) == dtype:
        return c.op("Identity", c.x(x))
    return c.cast(c.x(x), dtype)
