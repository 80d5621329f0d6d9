"""`embedding_bag` in ONNX, which has no such operator: rows are gathered, then added or compared at their bags."""

from __future__ import annotations

from typing import Any

import flambeau as torch

from .converter import Converter, translates

_SUM, _MEAN, _MAX = 0, 1, 2


@translates("aten.embedding_bag.padding_idx", "aten.embedding_bag.default")
def _embedding_bag(c: Converter, weight: Any, indices: Any, offsets: Any, scale_grad_by_freq: bool = False,
                   mode: int = 0, sparse: bool = False, per_sample_weights: Any = None,
                   include_last_offset: bool = False, padding_idx: Any = None) -> Any:
    if mode == _MAX or padding_idx is not None:
        raise c.fail("maxima of bags, or a row that is skipped")
    dtype = c.dtype(weight)
    starts, index = c.x(offsets, torch.int64), c.x(indices, torch.int64)
    factors = None if per_sample_weights is None else c.x(per_sample_weights)
    samples = c.op("Shape", index)  # a mean's, which counts in the last bag what follows it, too
    if include_last_offset:  # what follows the last bag is in no sum
        end = c.op("Slice", starts, c.const([-1]), c.const([1 << 62]), c.const([0]))
        starts = c.op("Slice", starts, c.const([0]), c.const([-1]), c.const([0]))
        index = c.op("Slice", index, c.const([0]), end, c.const([0]))
        factors = None if factors is None else c.op("Slice", factors, c.const([0]), end, c.const([0]))
    rows = c.op("Gather", c.x(weight), index)
    if factors is not None:
        rows = c.op("Mul", rows, c.op("Unsqueeze", factors, c.const([1])))
    count = samples if mode == _MEAN else c.op("Shape", index)
    number = c.op("Squeeze", count, c.const([0]))
    places = c.op("Unsqueeze", c.op("Range", c.const(0), number, c.const(1)), c.const([1]))
    began = c.op("Cast", c.op("GreaterOrEqual", places, c.op("Unsqueeze", starts, c.const([0]))),
                 to=int(c.onnx.TensorProto.INT64))
    bags = c.op("Sub", c.op("ReduceSum", began, c.const([1]), keepdims=1), c.const(1))  # (indices, 1)
    summed = bags if count is not samples or not include_last_offset else c.op(
        "Slice", bags, c.const([0]), end, c.const([0]))
    width = c.op("Slice", c.op("Shape", c.x(weight)), c.const([1]), c.const([2]))
    shape = c.op("Concat", c.op("Shape", starts), width, axis=0)
    zeros = c.op("Expand", c.const(0, dtype), shape)
    total = c.op("ScatterND", zeros, summed, rows, reduction="add")
    if mode == _MEAN:
        ones = c.op("Expand", c.const(1, dtype), count)
        none = c.op("Expand", c.const(0, dtype), c.op("Shape", starts))
        sizes = c.op("Max", c.op("ScatterND", none, bags, ones, reduction="add"), c.const(1, dtype))
        total = c.op("Div", total, c.op("Unsqueeze", sizes, c.const([1])))
    return [total, None, None, None]
