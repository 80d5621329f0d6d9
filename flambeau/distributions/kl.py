"""Kullback-Leibler divergences: `kl_divergence`, and `register_kl` for pairs of one's own."""

from __future__ import annotations

from .divergences.across_families import _infinite_like as _infinite_like
from .divergences.across_families import _x_log_x as _x_log_x
from .divergences.multivariate import _batch_trace_XXT as _batch_trace_XXT
from .divergences.registry import KL_MEMOIZE as _KL_MEMOIZE  # noqa: F401 - PyTorch's names
from .divergences.registry import KL_REGISTRY as _KL_REGISTRY  # noqa: F401
from .divergences.registry import dispatch_kl as _dispatch_kl  # noqa: F401
from .divergences.registry import kl_divergence, register_kl
from .divergences.same_family import _kl_categorical_categorical as _kl_categorical_categorical
from .divergences.same_family import _kl_expfamily_expfamily as _kl_expfamily_expfamily
from .divergences.same_family import _kl_normal_normal as _kl_normal_normal

__all__ = ["kl_divergence", "register_kl"]
