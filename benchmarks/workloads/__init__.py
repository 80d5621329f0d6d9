"""The workloads, in the order of the rows of their tables."""

from __future__ import annotations

from . import cnn, convolution, gpt, matmul, perceptrons, pointwise, recurrent, small
from .models import ROWS as MODELS
from .workload import Workload

ROWS: dict[str, Workload] = {row.name: row for family in (
    small, perceptrons, recurrent, pointwise, matmul, convolution, cnn, gpt) for row in family.ROWS}
#: those of all tables
WORKLOADS: dict[str, Workload] = {**ROWS, **MODELS}
