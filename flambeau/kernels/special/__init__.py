"""Special functions of floating arrays; the caller sets NumPy's error state."""

from __future__ import annotations

from .bessel import i0, i0e, i1, i1e
from .bessel_jy import bessel_j0, bessel_j1, bessel_y0, bessel_y1
from .error import erf, erfc, erfcx, erfinv, log_ndtr, ndtr, ndtri
from .gamma import digamma, lgamma
from .incomplete_gamma import gammainc, gammaincc
from .sinc import sinc
from .zeta import polygamma, trigamma, zeta

__all__ = ["bessel_j0", "bessel_j1", "bessel_y0", "bessel_y1", "digamma", "erf", "erfc", "erfcx", "erfinv",
           "gammainc", "gammaincc", "i0", "i0e", "i1", "i1e", "lgamma", "log_ndtr", "ndtr", "ndtri", "polygamma",
           "sinc", "trigamma", "zeta"]
