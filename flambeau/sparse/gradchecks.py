"""`as_sparse_gradcheck`: gradcheck for functions of sparse tensors."""

from __future__ import annotations

from ..autograd.gradcheck.sparse_inputs import as_sparse_gradcheck

__all__ = ["as_sparse_gradcheck"]
