"""Products of matrices and vectors."""

from __future__ import annotations

from .declare import linear


@linear("input", "mat2")
def mm(xp, input, mat2):
    """The product of two matrices, (n, m) by (m, p).

    >>> import flambeau as torch
    >>> torch.mm(torch.ones(2, 3), torch.ones(3, 1))
    tensor([[3.],
            [3.]])
    """
    return xp.mm(input, mat2)


mm.vjp(input=lambda xp, g, mat2: xp.mm(g, xp.t(mat2)),
       mat2=lambda xp, g, input: xp.mm(xp.t(input), g))
