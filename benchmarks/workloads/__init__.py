"""The rows of the table, in its order."""

from __future__ import annotations

from . import cnn, convolution, gpt, perceptrons, pointwise, products, recurrent, small
from .workload import Workload

ROWS: dict[str, Workload] = {row.name: row for family in (
    small, perceptrons, recurrent, pointwise, products, convolution, cnn, gpt) for row in family.ROWS}
