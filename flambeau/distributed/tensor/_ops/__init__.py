"""Rules of operators on distributed tensors, by family."""

from __future__ import annotations

from . import (
    attention,
    batched,
    embedding,
    indexing,
    loss,
    matrix,
    normalization,
    pointwise,
    pooling,
    random,
    reduction,
    view,
)
from .strategy import OpCall, Rule, Strategy, choose, rule, rule_of

__all__ = ["OpCall", "Rule", "Strategy", "attention", "batched", "choose", "embedding", "indexing", "loss", "matrix",
           "normalization", "pointwise", "pooling", "random", "reduction", "rule", "rule_of", "view"]
