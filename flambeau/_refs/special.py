"""`torch._refs.special`: the functions of `torch.special`."""

from __future__ import annotations

from typing import Any

from .. import special as _functions

_NAMES = """
    bessel_j0 bessel_j1 entr erfcx expit i0e i1 i1e log_ndtr log_softmax logit multigammaln ndtr ndtri softmax
    spherical_bessel_j0 xlog1py zeta
""".split()  # noqa: SIM905
__all__ = [*_NAMES]  # noqa: PLE0604


def __getattr__(name: str) -> Any:
    return getattr(_functions, name)
