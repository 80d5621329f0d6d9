"""Sparse tensors: products, reductions and settings. See https://docs.pytorch.org/docs/stable/sparse.html"""

from __future__ import annotations

from .._tensor.overriding.entry_points import register_namespace
from .._tensor.sparse.diagonals import spdiags, spsolve
from .._tensor.sparse.products import sampled_addmm
from .._tensor.sparse.products import sparse_addmm as addmm
from .._tensor.sparse.products import sparse_mm as mm
from .._tensor.sparse.reductions import sparse_log_softmax as log_softmax
from .._tensor.sparse.reductions import sparse_softmax as softmax
from .._tensor.sparse.reductions import sparse_sum as sum
from .checks import check_sparse_tensor_invariants
from .legacy import (
    BFloat16Tensor,
    ByteTensor,
    CharTensor,
    DoubleTensor,
    FloatTensor,
    HalfTensor,
    IntTensor,
    LongTensor,
    ShortTensor,
)
from .semi_structured import (
    SparseSemiStructuredTensor,
    SparseSemiStructuredTensorCUSPARSELT,
    SparseSemiStructuredTensorCUTLASS,
    to_sparse_semi_structured,
)

for _name, _function in (("addmm", addmm), ("mm", mm), ("sum", sum), ("softmax", softmax),
                         ("log_softmax", log_softmax)):
    _function.__name__ = _function.__qualname__ = _name

register_namespace("torch.sparse.", lambda: {name: globals()[name] for name in (
    "addmm", "log_softmax", "mm", "sampled_addmm", "softmax", "spdiags", "sum")})

from .gradchecks import as_sparse_gradcheck  # noqa: E402

__all__ = ["BFloat16Tensor", "ByteTensor", "CharTensor", "DoubleTensor", "FloatTensor", "HalfTensor", "IntTensor",
           "LongTensor", "ShortTensor", "SparseSemiStructuredTensor", "SparseSemiStructuredTensorCUSPARSELT",
           "SparseSemiStructuredTensorCUTLASS", "addmm", "as_sparse_gradcheck", "check_sparse_tensor_invariants",
           "log_softmax", "mm", "sampled_addmm", "softmax", "spdiags", "spsolve", "sum", "to_sparse_semi_structured"]
