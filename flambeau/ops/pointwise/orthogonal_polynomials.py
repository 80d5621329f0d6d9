"""Orthogonal polynomials of degree n at x; PyTorch defines no derivatives."""

from __future__ import annotations

from typing import Any

from ..declare import elementwise, not_implemented


def _declare(name: str, doc: str, example: str) -> None:
    def forward(xp, x, n):
        return getattr(xp, name)(x, n)

    def check(x: Any, n: Any) -> None:
        if not hasattr(x, "dtype") and not hasattr(n, "dtype"):
            raise TypeError(f"special_{name}() received an invalid combination of arguments - got "
                            f"({type(x).__name__}, {type(n).__name__}), but expected one of:\n"
                            " * (Tensor x, Tensor n, *, Tensor out = None)\n"
                            " * (Number x, Tensor n, *, Tensor out = None)\n"
                            " * (Tensor x, Number n, *, Tensor out = None)\n")

    forward.__name__ = f"special_{name}"
    forward.__doc__ = f"""{doc} of degree n at x; degrees are truncated to integers, and the value is 0 for n < 0.

    Args:
        x, n: tensors that broadcast together, of which one may be a number.

    >>> import flambeau as torch
    >>> torch.special.{name}(torch.tensor([0.5, 2.]), 2)
    {example}
    """
    elementwise(promote="float", expose=("special",), differentiable=False, key=f"special_{name}",
                scalar_inputs=("x", "n"), check=check,
                unsupported_dtypes=not_implemented(f"{name}_cpu", "complex", "narrow"))(forward)


for _name, _doc, _example in (
        ("chebyshev_polynomial_t", "The Chebyshev polynomial of the first kind, Tₙ(x),", "tensor([-0.5000,  7.0000])"),
        ("chebyshev_polynomial_u", "The Chebyshev polynomial of the second kind, Uₙ(x),", "tensor([ 0., 15.])"),
        ("chebyshev_polynomial_v", "The Chebyshev polynomial of the third kind, Vₙ(x),", "tensor([-1., 11.])"),
        ("chebyshev_polynomial_w", "The Chebyshev polynomial of the fourth kind, Wₙ(x),", "tensor([ 1., 19.])"),
        ("shifted_chebyshev_polynomial_t", "The shifted Chebyshev polynomial Tₙ(2x - 1)", "tensor([-1., 17.])"),
        ("shifted_chebyshev_polynomial_u", "The shifted Chebyshev polynomial Uₙ(2x - 1)", "tensor([-1., 35.])"),
        ("shifted_chebyshev_polynomial_v", "The shifted Chebyshev polynomial Vₙ(2x - 1)", "tensor([-1., 29.])"),
        ("shifted_chebyshev_polynomial_w", "The shifted Chebyshev polynomial Wₙ(2x - 1)", "tensor([-1., 41.])"),
        ("hermite_polynomial_h", "The physicists' Hermite polynomial Hₙ(x)", "tensor([-1., 14.])"),
        ("hermite_polynomial_he", "The probabilists' Hermite polynomial Heₙ(x)", "tensor([-0.7500,  3.0000])"),
        ("laguerre_polynomial_l", "The Laguerre polynomial Lₙ(x)", "tensor([ 0.1250, -1.0000])"),
        ("legendre_polynomial_p", "The Legendre polynomial Pₙ(x)", "tensor([-0.1250,  5.5000])")):
    _declare(_name, _doc, _example)
