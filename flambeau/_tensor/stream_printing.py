"""How PyTorch's C++ streams print a tensor: the text that some of its errors contain."""

from __future__ import annotations

from itertools import product
from math import floor, isfinite, log10
from typing import Any

import numpy as np

from .. import dtypes

_LINE = 80


def stream_text(x: Any) -> str:
    """A tensor of two or more dimensions as C++ prints it: its matrices, one after another, its type and its sizes.

    >>> import flambeau as torch
    >>> from flambeau._tensor.stream_printing import stream_text
    >>> print(stream_text(torch.tensor([[0.5, -2.0]])))
     0.5000 -2.0000
    [ torch.FloatTensor{1,2} ]
    """
    values = np.asarray(x.detach().double()._array)
    shape = values.shape
    text = ""
    if values.size and len(shape) == 2:
        text = _matrix(values, 0)
    elif values.size:
        text = "\n".join(f"({','.join(str(i + 1) for i in place)},.,.) = \n{_matrix(values[place], 1)}"
                         for place in product(*map(range, shape[:-2])))
    return f"{text}[ {dtypes.stream_type_name(x.dtype)}{{{','.join(map(str, shape))}}} ]"


def _matrix(values: np.ndarray, indent: int) -> str:
    """The rows of a matrix, in several groups of columns where they are longer than a line."""
    scale, width, spec = _format(values)
    columns = values.shape[1]
    per_line = (_LINE - indent) // (width + 1)
    margin = " " * indent
    text = ""
    for first in range(0, columns, per_line):
        if per_line < columns:
            text += ("\n" if first else "") + f"Columns {first + 1} to {min(first + per_line, columns)}{margin}"
        if scale != 1:
            text += f"{scale:g} *\n{margin}"
        lines = [" ".join(format(v, spec).rjust(width) for v in row[first:first + per_line] / scale)
                 for row in values]
        text += ("\n" + margin + (" " if scale != 1 else "")).join(lines) + "\n"
    return text


def _format(values: np.ndarray) -> tuple[float, int, str]:
    """What the values are divided by, their width, and the format of each."""
    magnitudes = [abs(v) for v in values.flat if isfinite(v)]
    low, high = ((floor(log10(m)) + 1 if m else 1) for m in (
        (min(magnitudes), max(magnitudes)) if magnitudes else (1.0, 1.0)))
    if all(m == floor(m) for m in magnitudes):
        return (1.0, 11, ".4e") if high > 9 else (1.0, high + 1, "g")
    if high - low > 4:
        return 1.0, 12 if abs(high) > 99 or abs(low) > 99 else 11, ".4e"
    if high > 5 or high < 0:
        return 10.0 ** (high - 1), 7, ".4f"
    return 1.0, 7 if high == 0 else high + 6, ".4f"


__all__ = ["stream_text"]
