"""Operator declarations, by family. They reach arrays, tensors and IR values only through the namespace `xp`."""

from __future__ import annotations

from . import linalg as linalg
from . import neural as neural
from . import pointwise as pointwise
from . import reduction as reduction
from . import shape as shape

from . import aten as aten  # isort: skip
