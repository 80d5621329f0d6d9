"""Whole models, in the order of their table."""

from __future__ import annotations

from ..workload import Workload
from . import graphs, language, transformers, vision

ROWS: dict[str, Workload] = {row.name: row for family in (vision, language, transformers, graphs)
                             for row in family.ROWS}
