"""Special functions of floating arrays; NumPy's error state is the caller's."""

from __future__ import annotations

from .bessel import i0, i0e, i1, i1e
from .error import erf, erfc, erfcx, erfinv, log_ndtr, ndtr, ndtri
from .gamma import digamma, lgamma
from .zeta import polygamma, trigamma, zeta

__all__ = ["digamma", "erf", "erfc", "erfcx", "erfinv", "i0", "i0e", "i1", "i1e", "lgamma", "log_ndtr", "ndtr",
           "ndtri", "polygamma", "trigamma", "zeta"]
