"""Sparse tensors: tensors whose array is a `SparseArray`, and the implementations of operators on them.

Imported when the first sparse tensor is made.
"""

from __future__ import annotations

from . import dispatch as dispatch
