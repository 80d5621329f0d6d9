"""The names of the special functions: primitives whose kernels are those of `kernels.special`."""

from __future__ import annotations

_CHEBYSHEV = tuple(f"chebyshev_polynomial_{kind}" for kind in "tuvw")
_POLYNOMIALS = (*_CHEBYSHEV, *(f"shifted_{name}" for name in _CHEBYSHEV), "hermite_polynomial_h",
                "hermite_polynomial_he", "laguerre_polynomial_l", "legendre_polynomial_p")
SPECIAL = ("erf", "erfc", "erfcx", "erfinv", "log_ndtr", "ndtri", "lgamma", "digamma", "polygamma", "zeta", "i0",
           "i0e", "i1", "i1e", "standard_gamma_grad", "dirichlet_grad", "bessel_j0", "bessel_j1", "bessel_y0",
           "bessel_y1", "bessel_k0", "bessel_k1", "bessel_k0e", "bessel_k1e", "spherical_bessel_j0", "airy_ai",
           "gammainc", "gammaincc", *_POLYNOMIALS)

#: functions that small float32 arrays are computed by in double, and rounded
ROUNDED = frozenset((
    "exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sin", "cos", "tan", "asin", "acos", "atan", "sinh",
    "cosh", "tanh", "asinh", "acosh", "atanh", "sigmoid", "erf", "erfc", "erfinv"))
