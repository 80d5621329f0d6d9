"""`torch._numpy`: NumPy's API on tensors.

>>> import flambeau._numpy as np
>>> np.linspace(0, 1, 3).sum()
torch.ndarray(1.5000, dtype=float64)
"""

# ruff: noqa: F401  (what is imported are the names of the package)
from __future__ import annotations

from math import e, pi

from . import fft, linalg, random
from ._dtypes import *  # noqa: F403
from ._funcs import *  # noqa: F403
from ._getlimits import finfo, iinfo
from ._ndarray import array, asarray, ascontiguousarray, can_cast, from_dlpack, ndarray, newaxis, result_type
from ._ufuncs import *  # noqa: F403
from ._util import AxisError, UFuncTypeError
from .reductions import all as alltrue
from .reductions import any as sometrue

inf, nan = float("inf"), float("nan")
False_, True_ = False, True
