"""Operator declarations, by family. They compute on arrays, tensors and IR values through the namespace `xp` alone."""

from __future__ import annotations

from . import linalg as linalg
from . import neural as neural
from . import pointwise as pointwise
from . import reduction as reduction
from . import shape as shape

from . import aten as aten  # isort: skip
