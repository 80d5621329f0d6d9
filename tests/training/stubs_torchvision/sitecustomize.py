"""Declares the operators that torchvision's Python part refers to when its compiled part does not load.

PyPI's torchvision is compiled for PyTorch's CUDA build; beside the CPU build only its Python part works. This module is
imported when the oracle's interpreter, or a worker process of it, starts.
"""

import torch

for name in ("nms", "qnms"):
    torch.library.define(f"torchvision::{name}", "(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
