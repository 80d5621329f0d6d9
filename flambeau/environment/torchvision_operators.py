"""The operators that the package torchvision expects of its library in machine code, which cannot be loaded here.

Torchvision falls back to Python for most of them when its library is missing. It declares shapes for two without asking
whether they exist; these are defined here.
"""

from __future__ import annotations

import numpy as np

from .. import library
from .._tensor import Tensor, functions


def suppressed(dets: Tensor, scores: Tensor, iou_threshold: float) -> Tensor:
    """The indices of boxes that remain after non-maximum suppression, by decreasing score.

    Args:
        dets: boxes (n, 4) as x1, y1, x2, y2.
        scores: (n,).
        iou_threshold: a box whose overlap with a better one exceeds it, as intersection over union, is dropped.
    """
    boxes, order = dets.numpy(), np.argsort(-scores.numpy(), kind="stable")
    x1, y1, x2, y2 = boxes.T
    areas = (x2 - x1) * (y2 - y1)
    kept = []
    while order.size:
        best, others = order[0], order[1:]
        kept.append(best)
        width = np.clip(np.minimum(x2[best], x2[others]) - np.maximum(x1[best], x1[others]), 0, None)
        height = np.clip(np.minimum(y2[best], y2[others]) - np.maximum(y1[best], y1[others]), 0, None)
        both = width * height
        order = others[both <= iou_threshold * (areas[best] + areas[others] - both)]
    return functions.from_numpy(np.array(kept, np.int64))


def define() -> None:
    """Define the operators, once."""
    if not _defined:
        library.define("torchvision::nms", "(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
        library.define("torchvision::qnms", "(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
        library.impl("torchvision::nms", "cpu", suppressed)
        _defined.append(True)


_defined: list[bool] = []
