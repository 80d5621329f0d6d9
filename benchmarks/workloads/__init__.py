"""The workloads, in the order of the table's rows."""

from __future__ import annotations

from . import cnn, convolution, gpt, matmul, perceptrons, pointwise, recurrent, small
from .workload import Workload

ROWS: dict[str, Workload] = {row.name: row for family in (
    small, perceptrons, recurrent, pointwise, matmul, convolution, cnn, gpt) for row in family.ROWS}
