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
record("kron", of_shapes(((2, 2), (2, 3)), ((2,), (2, 3))), reference=np.kron, **_BOTH)
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
record("matrix_power", lambda make: [sample(make(3, 3), n) for n in (0, 1, 2, 3, 5, -2)], complex=True)
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
