"""Records of products of matrices and vectors."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from tests.ops.spec import Make, Sample, record, sample


def of_shapes(*shapes: tuple[tuple[int, ...], ...], **kwargs: Any) -> Any:
    """One sample for each tuple of shapes."""
    def samples(make: Make) -> Iterable[Sample]:
        for group in shapes:
            yield sample(*(make(*shape) for shape in group), **kwargs)
    return samples


def scaled(*shapes: tuple[tuple[int, ...], ...]) -> Any:
    """Products added to something: plainly, and with both factors."""
    def samples(make: Make) -> Iterable[Sample]:
        for group in shapes:
            yield sample(*(make(*shape) for shape in group))
        yield sample(*(make(*shape) for shape in shapes[0]), beta=2, alpha=3)
    return samples


_BOTH = {"complex": True, "integers": True}

record("mm", of_shapes(((2, 3), (3, 4)), ((1, 3), (3, 1)), ((0, 3), (3, 2)), ((2, 0), (0, 2))), reference=np.matmul,
       **_BOTH)
record("bmm", of_shapes(((2, 3, 4), (2, 4, 2)), ((0, 3, 4), (0, 4, 2))), reference=np.matmul, **_BOTH)
record("mv", of_shapes(((2, 3), (3,)), ((0, 3), (3,))), reference=np.matmul, **_BOTH)
record("dot", of_shapes(((3,), (3,)), ((0,), (0,))), reference=np.dot, **_BOTH)
record("vdot", of_shapes(((3,), (3,))), reference=np.vdot, **_BOTH)
record("matmul", of_shapes(((3,), (3,)), ((2, 3), (3,)), ((3,), (3, 2)), ((2, 3), (3, 4)), ((5, 2, 3), (3, 4)),
                           ((5, 2, 3), (3,)), ((3,), (5, 3, 4)), ((2, 3), (5, 3, 4)), ((1, 2, 3), (5, 3, 4)),
                           ((2, 1, 2, 3), (5, 3, 4)), ((0, 2, 3), (3, 4))), reference=np.matmul, **_BOTH)
record("inner", of_shapes(((3,), (3,)), ((2, 3), (4, 3)), ((), (2, 3))), reference=np.inner, **_BOTH)
record("outer", of_shapes(((3,), (2,)), ((0,), (2,))), reference=np.outer, **_BOTH)
record("kron", of_shapes(((2, 2), (2, 3)), ((2,), (2, 3))), reference=np.kron,
       any_layout=False, **_BOTH)  # PyTorch refuses operands of different layouts
record("addmm", scaled(((2, 4), (2, 3), (3, 4)), ((4,), (2, 3), (3, 4)), ((), (2, 3), (3, 4))), **_BOTH)
record("addmv", scaled(((2,), (2, 3), (3,)), ((), (2, 3), (3,))), **_BOTH)
record("addbmm", scaled(((2, 4), (5, 2, 3), (5, 3, 4)), ((4,), (5, 2, 3), (5, 3, 4))), **_BOTH)
record("baddbmm", scaled(((5, 2, 4), (5, 2, 3), (5, 3, 4)), ((4,), (5, 2, 3), (5, 3, 4))), **_BOTH)
record("addr", scaled(((2, 3), (2,), (3,)), ((3,), (2,), (3,))), **_BOTH)
record("trace", of_shapes(((3, 3),), ((2, 4),), ((0, 3),)), reference=np.trace, complex=True)
record("linalg.cross", of_shapes(((2, 3), (2, 3)), ((2, 3), (1, 3)), ((3,), (3,))), reference=np.cross, **_BOTH,
       covers=("linalg_cross",))
record("cross", lambda make: [sample(make(3, 2), make(3, 2), dim=0)], complex=True)
record("linalg.vecdot", of_shapes(((2, 3), (2, 3)), ((3,), (3,))), complex=True)
record("linalg.multi_dot", lambda make: [sample([make(2, 3), make(3, 4), make(4, 2)]),
                                         sample([make(3), make(3, 4), make(4, 2), make(2)])], complex=True)
record("chain_matmul", of_shapes(((2, 3), (3, 4), (4, 2)), ((2, 3),)), complex=True)
record("matrix_power", lambda make: [sample(make(3, 3), n) for n in (0, 1, 2, 3, 5)], complex=True)
record("tensordot", lambda make: [
    sample(make(2, 3, 4), make(4, 3, 5), dims=([1, 2], [1, 0])), sample(make(2, 3), make(3, 4), dims=1),
    sample(make(2), make(3), dims=0), sample(make(3), make(3), dims=1), sample(make(2, 1), make(3, 2), dims=1)],
    complex=True)


def equations(make: Make) -> Iterable[Sample]:
    for equation, *shapes in (
            ("ij,jk->ik", (2, 3), (3, 4)), ("bij,bjk->bik", (2, 2, 3), (2, 3, 4)), ("ii->i", (3, 3)), ("ii", (3, 3)),
            ("ij->ji", (2, 3)), ("ij->i", (2, 3)), ("i,j->ij", (2,), (3,)), ("i,i", (3,), (3,)),
            ("...ij,...jk->...ik", (2, 1, 2, 3), (4, 3, 2)), ("bn,anm,bm->ba", (2, 3), (4, 3, 5), (2, 5)),
            ("ij,k->ik", (2, 3), (4,)), ("ijj->j", (2, 3, 3)), ("...i->...", (2, 3)), (",i->i", (), (3,))):
        yield sample(equation, *(make(*s) for s in shapes))


record("einsum", equations, reference=np.einsum, complex=True)

record("nn.functional.linear", of_shapes(((2, 3), (4, 3), (4,)), ((2, 3), (4, 3)), ((3,), (4, 3), (4,)),
                                         ((5, 2, 3), (4, 3), (4,)), ((5, 2, 3), (4, 3)), ((2, 3), (3,))),
       reference=lambda x, w, b=0: x @ np.swapaxes(w, -1, -2) + b if np.ndim(w) > 1 else x @ w + b, complex=True)
record("nn.functional.bilinear", of_shapes(((5, 2), (5, 3), (4, 2, 3), (4,)), ((6, 5, 2), (6, 5, 3), (4, 2, 3))),
       complex=True, covers=("_trilinear",))


# ----- decompositions and systems -------------------------------------------------------


def near_identity(make: Make, *shape: int) -> Any:
    """A well-conditioned square matrix."""
    n = shape[-1]
    x = make(*shape, low=-0.4, high=0.4, requires_grad=False) + make.module.eye(n, dtype=make.dtype) * 2
    return x.requires_grad_(make.requires_grad)


def positive(make: Make, n: int) -> Any:
    x = make(n, n, requires_grad=False)
    x = x @ x.mT.conj().resolve_conj() + make.module.eye(n, dtype=make.dtype)
    return x.requires_grad_(make.requires_grad)


def systems(**kwargs: Any) -> Any:
    def samples(make: Make) -> Iterable[Sample]:
        yield sample(near_identity(make, 3, 3), make(3, 2), **kwargs)
        yield sample(near_identity(make, 2, 3, 3), make(2, 3, 2), **kwargs)
    return samples


def square(make: Make) -> Iterable[Sample]:
    yield sample(near_identity(make, 3, 3))
    yield sample(near_identity(make, 2, 2, 2))
    yield sample(make(0, 0))


record("linalg.inv", square, reference=np.linalg.inv, complex=True, covers=("linalg_inv_ex",))
record("linalg.det", square, reference=np.linalg.det, complex=True,
       covers=("linalg_det", "_cofactors", "_cofactors_backward"))
record("linalg.slogdet", square, complex=True, covers=("linalg_slogdet",))
record("linalg.solve", lambda make: [*systems()(make), sample(near_identity(make, 3, 3), make(3)),
                                     sample(near_identity(make, 3, 3), make(2, 3), left=False)], complex=True,
       covers=("linalg_solve_ex",))
record("linalg.solve_triangular", systems(upper=True), complex=True, covers=("linalg_solve_triangular",))
record("linalg.pinv", lambda make: [sample(make(3, 2)), sample(make(2, 3)), sample(near_identity(make, 3, 3))],
       reference=np.linalg.pinv, complex=True, covers=("linalg_pinv",))
record("linalg.qr", lambda make: [sample(make(3, 2)), sample(make(2, 3)), sample(near_identity(make, 2, 3, 3))],
       covers=("linalg_qr", "_diagonal_part"))
record("linalg.svd", lambda make: [sample(make(3, 2), full_matrices=False), sample(make(2, 3), full_matrices=False)],
       covers=("linalg_svd",))
record("linalg.matrix_exp", lambda make: [sample(make(3, 3)), sample(make(2, 2, 2))], complex=True,
       covers=("linalg_matrix_exp",))
record("linalg.lstsq", lambda make: [sample(make(3, 2), make(3, 1), driver="gels"), sample(make(2, 3), make(2, 2)),
                                     sample(near_identity(make, 3, 3), make(3))], complex=True,
       covers=("_linalg_lstsq",))
# their gradients are along Hermitian matrices only: see test_matmul
record("linalg.cholesky", lambda make: [sample(positive(make, 3))], reference=np.linalg.cholesky, differentiable=False,
       covers=("linalg_cholesky_ex", "_cholesky"))
record("linalg.eigh", lambda make: [sample(positive(make, 3))], differentiable=False, covers=("linalg_eigh",))
record("linalg.eig", lambda make: [sample(near_identity(make, 3, 3))], differentiable=False, keeps_dtype=False,
       covers=("linalg_eig",))
record("cholesky_solve", lambda make: [sample(make(3, 2), near_identity(make, 3, 3).tril().detach())],
       differentiable=False)
record("cholesky_inverse", lambda make: [sample(near_identity(make, 3, 3).tril().detach())], differentiable=False)


def rows(make: Make) -> Iterable[Sample]:
    for p in (0.0, 1.0, 2.0, 3.0, float("inf")):
        yield sample(make(3, 2), make(4, 2), p)
        yield sample(make(2, 3, 2), make(1, 2, 2), p)
    yield sample(make(3, 2), make(4, 2), compute_mode="use_mm_for_euclid_dist")


record("cdist", rows, covers=("_cdist_forward", "_cdist_backward", "_euclidean_dist"))
record("nn.functional.pdist", lambda make: [sample(make(4, 2)), sample(make(4, 2), 3.0)],
       covers=("_pdist_forward", "_scatter_flat"))
