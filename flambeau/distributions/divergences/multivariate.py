"""Divergences of multivariate normal distributions."""

from __future__ import annotations

from typing import Any

from ..._tensor import Tensor
from ..._tensor import functions as fn
from ..lowrank_multivariate_normal import (
    LowRankMultivariateNormal,
    _batch_lowrank_logdet,
    _batch_lowrank_mahalanobis,
)
from ..multivariate_normal import MultivariateNormal, _batch_mahalanobis
from .registry import register_kl


def _batch_trace_XXT(bmat: Tensor) -> Tensor:
    """The trace of X Xᵀ, for each matrix of a batch."""
    n, m = bmat.size(-1), bmat.size(-2)
    total: Tensor = bmat.reshape(-1, m * n).pow(2).sum(-1)
    return total.reshape(bmat.shape[:-2])


def _check_event_shapes(p: Any, q: Any, of: str) -> None:
    if p.event_shape != q.event_shape:
        raise ValueError(f"KL-divergence between two {of} with                          different event shapes "
                         "cannot be computed")


def _lowrank_log_det(d: LowRankMultivariateNormal) -> Tensor:
    return _batch_lowrank_logdet(d._unbroadcasted_cov_factor, d._unbroadcasted_cov_diag, d._capacitance_tril)


def _lowrank_distance(q: LowRankMultivariateNormal, x: Tensor) -> Tensor:
    return _batch_lowrank_mahalanobis(q._unbroadcasted_cov_factor, q._unbroadcasted_cov_diag, x, q._capacitance_tril)


def _half_log_det(d: MultivariateNormal) -> Tensor:
    total: Tensor = d._unbroadcasted_scale_tril.diagonal(dim1=-2, dim2=-1).log().sum(-1)
    return total


def _whitened_factor(q: LowRankMultivariateNormal) -> Tensor:
    """L⁻¹ Wᵀ D⁻¹, L the Cholesky factor of the capacitance matrix: Q⁻¹ = D⁻¹ - AᵀA."""
    scaled = q._unbroadcasted_cov_factor.mT / q._unbroadcasted_cov_diag.unsqueeze(-2)
    A: Tensor = fn.linalg_solve_triangular(q._capacitance_tril, scaled, upper=False)
    return A


@register_kl(LowRankMultivariateNormal, LowRankMultivariateNormal)
def _kl_lowrankmultivariatenormal_lowrankmultivariatenormal(
        p: LowRankMultivariateNormal, q: LowRankMultivariateNormal) -> Tensor:
    _check_event_shapes(p, q, "Low Rank Multivariate Normals")
    log_dets = _lowrank_log_det(q) - _lowrank_log_det(p)
    distance = _lowrank_distance(q, q.loc - p.loc)
    # the trace of Q⁻¹ (W Wᵀ + D), in four parts
    A = _whitened_factor(q)
    t1 = (p._unbroadcasted_cov_diag / q._unbroadcasted_cov_diag).sum(-1)
    t2 = _batch_trace_XXT(p._unbroadcasted_cov_factor * q._unbroadcasted_cov_diag.rsqrt().unsqueeze(-1))
    t3 = _batch_trace_XXT(A * p._unbroadcasted_cov_diag.sqrt().unsqueeze(-2))
    t4 = _batch_trace_XXT(A.matmul(p._unbroadcasted_cov_factor))
    return 0.5 * (log_dets + (t1 + t2 - t3 - t4) + distance - p.event_shape[0])


@register_kl(MultivariateNormal, LowRankMultivariateNormal)
def _kl_multivariatenormal_lowrankmultivariatenormal(p: MultivariateNormal, q: LowRankMultivariateNormal) -> Tensor:
    _check_event_shapes(p, q, "(Low Rank) Multivariate Normals")
    log_dets = _lowrank_log_det(q) - 2 * _half_log_det(p)
    distance = _lowrank_distance(q, q.loc - p.loc)
    A = _whitened_factor(q)
    t1 = _batch_trace_XXT(p._unbroadcasted_scale_tril * q._unbroadcasted_cov_diag.rsqrt().unsqueeze(-1))
    t2 = _batch_trace_XXT(A.matmul(p._unbroadcasted_scale_tril))
    return 0.5 * (log_dets + (t1 - t2) + distance - p.event_shape[0])


@register_kl(LowRankMultivariateNormal, MultivariateNormal)
def _kl_lowrankmultivariatenormal_multivariatenormal(p: LowRankMultivariateNormal, q: MultivariateNormal) -> Tensor:
    _check_event_shapes(p, q, "(Low Rank) Multivariate Normals")
    log_dets = 2 * _half_log_det(q) - _lowrank_log_det(p)
    distance = _batch_mahalanobis(q._unbroadcasted_scale_tril, q.loc - p.loc)
    batch_shape = fn.broadcast_shapes(q._unbroadcasted_scale_tril.shape[:-2], p._unbroadcasted_cov_factor.shape[:-2])
    n = p.event_shape[0]
    q_factor = q._unbroadcasted_scale_tril.expand((*batch_shape, n, n))
    p_factor = p._unbroadcasted_cov_factor.expand((*batch_shape, n, p.cov_factor.size(-1)))
    p_diagonal = fn.diag_embed(p._unbroadcasted_cov_diag.sqrt()).expand((*batch_shape, n, n))
    t1 = _batch_trace_XXT(fn.linalg_solve_triangular(q_factor, p_factor, upper=False))
    t2 = _batch_trace_XXT(fn.linalg_solve_triangular(q_factor, p_diagonal, upper=False))
    return 0.5 * (log_dets + (t1 + t2) + distance - p.event_shape[0])


@register_kl(MultivariateNormal, MultivariateNormal)
def _kl_multivariatenormal_multivariatenormal(p: MultivariateNormal, q: MultivariateNormal) -> Tensor:
    _check_event_shapes(p, q, "Multivariate Normals")
    half_log_dets = _half_log_det(q) - _half_log_det(p)
    batch_shape = fn.broadcast_shapes(q._unbroadcasted_scale_tril.shape[:-2], p._unbroadcasted_scale_tril.shape[:-2])
    n = p.event_shape[0]
    q_factor = q._unbroadcasted_scale_tril.expand((*batch_shape, n, n))
    p_factor = p._unbroadcasted_scale_tril.expand((*batch_shape, n, n))
    trace = _batch_trace_XXT(fn.linalg_solve_triangular(q_factor, p_factor, upper=False))
    distance = _batch_mahalanobis(q._unbroadcasted_scale_tril, q.loc - p.loc)
    return half_log_dets + 0.5 * (trace + distance - n)
