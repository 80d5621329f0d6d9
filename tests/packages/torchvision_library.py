"""A pytest plugin that lets torchvision be imported where its compiled library does not fit PyTorch's build.

Its wheels are built for PyTorch's GPU builds. Without the library torchvision is plain Python, but it declares the
shapes of two operators that the library would have defined: they are defined here, without kernels. It does nothing
where `torch` is flambeau, which defines them itself.
"""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

_OPERATORS = {"nms": "(Tensor dets, Tensor scores, float iou_threshold) -> Tensor",
              "qnms": "(Tensor dets, Tensor scores, float iou_threshold) -> Tensor"}


def pytest_configure(config: Any) -> None:
    spec = importlib.util.find_spec("torchvision")
    if spec is None or spec.origin is None or importlib.util.find_spec("flambeau") is not None:
        return
    import torch

    try:
        torch.ops.load_library(str(Path(spec.origin).with_name("_C.so")))
    except OSError:
        for name, schema in _OPERATORS.items():
            torch.library.define(f"torchvision::{name}", schema)
