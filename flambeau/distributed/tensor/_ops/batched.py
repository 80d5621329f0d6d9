"""Operators of matrices, images and transforms: dimensions before those that belong together may be cut."""

from __future__ import annotations

from collections.abc import Callable

from ....shapes import wrap_dims
from ...placement_types import Partial, Placement, Shard
from .pointwise import broadcast_shards
from .strategy import RULES, OpCall, Rule, Strategy, rule

SUM = Partial("sum")
#: operators whose other inputs may be batches of vectors or numbers, which have fewer dimensions
_OF_VECTORS = frozenset(("_cofactors", "_lu_unpack", "linalg_lu_solve", "linalg_ldl_solve", "linalg_solve_ex", "ormqr",
                         "linalg_householder_product", "_triangular_solve"))


def _batches(call: OpCall, dims: int) -> list[Strategy]:
    """All inputs and results cut along one of the dimensions before the last `dims` of the first input.

    An input that lacks these dimensions is replicated. Where shapes are broadcast, nothing is cut.
    """
    batch = call.shape(0)[:len(call.shape(0)) - dims]
    least = len(batch) - 1 if call.op.name in _OF_VECTORS else dims
    whole = [i for i in call.tensors() if i and len(call.shape(i)) <= least]
    if any(call.shape(i)[:len(batch)] != batch for i in call.tensors() if i not in whole):
        return []
    if any(tuple(shape[:len(batch)]) != batch for shape, _, _ in call.outputs):
        return []
    return [call.strategy({i: Shard(d) for i in call.tensors() if i not in whole}, Shard(d)) for d in range(len(batch))]


def _of_batches(dims: int) -> Callable[[OpCall, int], list[Strategy]]:
    return lambda call, size: _batches(call, dims)


#: operators by the number of dimensions that belong together
_FAMILIES = {
    1: ("_upsample_linear1d _upsample_nearest1d _upsample_nearest_exact1d _reflection_pad1d _replication_pad1d",),
    2: ("linalg_cholesky_ex _cholesky linalg_qr linalg_eigh linalg_eig linalg_svd linalg_matrix_exp linalg_det",
        "linalg_slogdet linalg_lu linalg_lu_factor_ex linalg_ldl_factor_ex geqrf linalg_householder_product",
        "linalg_inv_ex linalg_solve_ex linalg_solve_triangular linalg_pinv cholesky_solve cholesky_inverse",
        "_triangular_solve _lu_unpack linalg_lu_solve linalg_ldl_solve ormqr _cofactors col2im",
        "_upsample_bilinear2d _upsample_bicubic2d _upsample_nearest2d _upsample_nearest_exact2d _reflection_pad2d",
        "_replication_pad2d _upsample_bilinear2d_aa _upsample_bicubic2d_aa _upsample_lanczos2d_aa"),
    3: ("_upsample_trilinear3d _upsample_nearest3d _upsample_nearest_exact3d _reflection_pad3d _replication_pad3d",
        "_pixel_shuffle _pixel_unshuffle im2col"),
}
for _dims, _lines in _FAMILIES.items():
    for _name in " ".join(_lines).split():
        RULES[_name] = RULES[f"{_name}_backward"] = Rule(_of_batches(_dims))

#: computed by each process: no dimension is known to be independent
for _name in ("_cofactors_backward", "_linalg_lstsq", "renorm", "dist", "_trilinear", "_weight_norm_interface",
              "_block_diag", "_pdist_forward", "_multi_margin_loss", "_multi_margin_loss_backward",
              "_multilabel_margin_loss", "masked_scatter", "_masked_scatter_backward", "_histogram", "_affine_grid"):
    RULES[_name] = Rule(lambda call, size: [])


def _along_others(call: OpCall, dims: tuple[int, ...]) -> list[Strategy]:
    """The first input and the result cut along a dimension that is not among `dims`."""
    return [call.strategy({0: Shard(d)}, Shard(d)) for d in range(len(call.shape(0))) if d not in dims]


@rule("_fft_c2c", "_fft_r2c", "_fft_c2r", "_fft_r2c_adjoint", "_fft_c2r_adjoint")
def transforms(call: OpCall, size: int) -> list[Strategy]:
    """Fourier transforms: linear; dimensions that are not transformed may be cut."""
    dims = wrap_dims(tuple(call.params["dim"]), len(call.shape(0)))
    return [*_along_others(call, dims), call.strategy({0: SUM}, SUM)]


@rule("linalg_cross")
def cross(call: OpCall, size: int) -> list[Strategy]:
    """Vector products along a dimension."""
    dim = wrap_dims((call.params["dim"],), len(call.outputs[0][0]))[0]
    return [each for each in broadcast_shards(call) if each.outputs[0].dim != dim]  # type: ignore[attr-defined]


@rule("_index_fill_tensor")
def index_fill(call: OpCall, size: int) -> list[Strategy]:
    """A number at positions along a dimension."""
    return _along_others(call, wrap_dims((call.params["dim"],), len(call.shape(0))))


@rule("index_reduce")
def index_reduce(call: OpCall, size: int) -> list[Strategy]:
    """A reduction into positions along a dimension."""
    dim = wrap_dims((call.params["dim"],), len(call.shape(0)))[0]
    return [call.strategy({0: Shard(d), 2: Shard(d)}, Shard(d)) for d in range(len(call.shape(0))) if d != dim]


@rule("diagonal_scatter")
def diagonal_scatter(call: OpCall, size: int) -> list[Strategy]:
    """A diagonal of two dimensions, which is replaced."""
    ndim = len(call.shape(0))
    dims = wrap_dims((call.params.get("dim1", 0), call.params.get("dim2", 1)), ndim)
    return [call.strategy({0: Shard(d), 1: Shard(d - sum(each < d for each in dims))}, Shard(d))
            for d in range(ndim) if d not in dims]


@rule("_channel_shuffle")
def channel_shuffle(call: OpCall, size: int) -> list[Strategy]:
    """Channels, dimension 1, in another order."""
    return _along_others(call, (1,))


@rule("_cdist_forward", "_euclidean_dist")
def distances(call: OpCall, size: int) -> list[Strategy]:
    """Distances of rows: rows of either input, and batches, may be cut."""
    ndim = len(call.shape(0))
    result = _batches(call, 2) if ndim == len(call.shape(1)) else []
    return [*result, call.strategy({0: Shard(ndim - 2)}, Shard(len(call.outputs[0][0]) - 2)),
            call.strategy({1: Shard(len(call.shape(1)) - 2)}, Shard(len(call.outputs[0][0]) - 1))] if (
        len(call.outputs[0][0]) == ndim == len(call.shape(1))) else result


def _summand(call: OpCall, dim: int) -> dict[int, Placement]:
    """The placement of the first input, which is broadcast to a result of two dimensions that is cut along `dim`."""
    shape = call.shape(0)
    own = dim - (2 - len(shape))
    return {0: Shard(own)} if own >= 0 and shape[own] != 1 else {}


@rule("addr")
def addr(call: OpCall, size: int) -> list[Strategy]:
    """beta · input + alpha · (M,) by (N,)."""
    return [call.strategy({**_summand(call, d), 1 + d: Shard(0)}, Shard(d)) for d in range(2)]


@rule("addbmm")
def addbmm(call: OpCall, size: int) -> list[Strategy]:
    """beta · input + alpha · the sum over b of (b, M, K) by (b, K, N)."""
    return [call.strategy({**_summand(call, 0), 1: Shard(1)}, Shard(0)),
            call.strategy({**_summand(call, 1), 2: Shard(2)}, Shard(1)),
            call.strategy({0: SUM, 1: Shard(0), 2: Shard(0)}, SUM),
            call.strategy({0: SUM, 1: Shard(2), 2: Shard(1)}, SUM)]


@rule("histc")
def histc(call: OpCall, size: int) -> list[Strategy]:
    """Counts in bins: those of parts add up, if the bins do not depend on the elements."""
    if call.params.get("min", 0) == call.params.get("max", 0):
        return []
    return [call.strategy({0: Shard(d)}, SUM) for d in range(len(call.shape(0)))]


__all__ = ["transforms"]
