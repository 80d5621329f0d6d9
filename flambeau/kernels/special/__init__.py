"""Special functions of floating arrays; the caller sets NumPy's error state."""

from __future__ import annotations

from .airy import airy_ai
from .bessel import i0, i0e, i1, i1e
from .bessel_jy import bessel_j0, bessel_j1, bessel_y0, bessel_y1
from .bessel_k import bessel_k0, bessel_k0e, bessel_k1, bessel_k1e
from .error import erf, erfc, erfcx, erfinv, log_ndtr, ndtr, ndtri
from .gamma import digamma, lgamma
from .incomplete_gamma import gammainc, gammaincc
from .orthogonal_polynomials import (
    chebyshev_polynomial_t,
    chebyshev_polynomial_u,
    chebyshev_polynomial_v,
    chebyshev_polynomial_w,
    hermite_polynomial_h,
    hermite_polynomial_he,
    laguerre_polynomial_l,
    legendre_polynomial_p,
    shifted_chebyshev_polynomial_t,
    shifted_chebyshev_polynomial_u,
    shifted_chebyshev_polynomial_v,
    shifted_chebyshev_polynomial_w,
)
from .reparameterization import dirichlet_grad, standard_gamma_grad
from .sinc import sinc
from .spherical_bessel import spherical_bessel_j0
from .zeta import polygamma, trigamma, zeta

__all__ = ["airy_ai", "bessel_j0", "bessel_j1", "bessel_k0", "bessel_k0e", "bessel_k1", "bessel_k1e", "bessel_y0",
           "bessel_y1", "chebyshev_polynomial_t", "chebyshev_polynomial_u", "chebyshev_polynomial_v",
           "chebyshev_polynomial_w", "digamma", "dirichlet_grad", "erf", "erfc", "erfcx", "erfinv",
           "gammainc", "gammaincc", "hermite_polynomial_h", "hermite_polynomial_he", "i0", "i0e", "i1", "i1e",
           "laguerre_polynomial_l", "legendre_polynomial_p", "lgamma", "log_ndtr", "ndtr", "ndtri",
           "polygamma", "shifted_chebyshev_polynomial_t", "shifted_chebyshev_polynomial_u",
           "shifted_chebyshev_polynomial_v", "shifted_chebyshev_polynomial_w", "sinc", "spherical_bessel_j0",
           "standard_gamma_grad", "trigamma", "zeta"]
