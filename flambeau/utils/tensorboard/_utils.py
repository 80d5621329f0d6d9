"""Pictures and videos as arrays of pixels, for summaries."""

from __future__ import annotations

from typing import Any

import numpy as np


def convert_to_HWC(tensor: np.ndarray, input_format: str) -> np.ndarray:
    """An image, or a batch of images side by side, with height, width and 3 channels in this order."""
    order = input_format.upper()
    if len(set(order)) != len(order):
        raise AssertionError(f"You can not use the same dimension shordhand twice. input_format: {input_format}")
    if tensor.ndim != len(order):
        raise AssertionError(f"size of input tensor and input format are different. tensor shape: {tensor.shape}, "
                             f"input_format: {input_format}")
    if "N" in order:
        batch = tensor.transpose([order.index(axis) for axis in "NHWC"])
        columns = min(len(batch), 8)
        rows = -(-len(batch) // columns)
        filled = np.zeros((rows * columns, *batch.shape[1:]), batch.dtype)
        filled[:len(batch)] = batch
        height, width, channels = batch.shape[1:]
        image = filled.reshape(rows, columns, height, width, channels).swapaxes(1, 2).reshape(
            rows * height, columns * width, channels)
    elif "C" in order:
        image = tensor.transpose([order.index(axis) for axis in "HWC"])
    else:
        image = tensor.transpose([order.index(axis) for axis in "HW"])[..., None]
    return np.repeat(image, 3, 2) if image.shape[2] == 1 else image


def _prepare_video(V: np.ndarray) -> np.ndarray:
    """Videos, (number, frames, channels, height, width), side by side: (frames, height, width, channels)."""
    number, frames, channels, height, width = V.shape
    padded = 1 << (number - 1).bit_length() if number > 1 else 1
    rows = 1 << ((number.bit_length() - 1) // 2)
    V = np.concatenate([V, np.zeros((padded - number, *V.shape[1:]), V.dtype)])
    grid = V.reshape(rows, padded // rows, frames, channels, height, width).transpose(2, 0, 4, 1, 5, 3)
    return grid.reshape(frames, rows * height, padded // rows * width, channels)


def figure_to_image(figures: Any, close: bool = True) -> np.ndarray:
    """A figure of Matplotlib as an array with channels first; of a list, a batch."""
    if isinstance(figures, list):
        return np.stack([figure_to_image(each, close) for each in figures])
    from matplotlib import pyplot
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    canvas: Any = FigureCanvasAgg(figures)
    canvas.draw()
    array = np.asarray(canvas.buffer_rgba())[:, :, :3].transpose(2, 0, 1)
    if close:
        pyplot.close(figures)
    return array


__all__ = ["_prepare_video", "convert_to_HWC", "figure_to_image"]
