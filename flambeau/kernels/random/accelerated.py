"""Registration points of compiled kernels for bulk draws: same bits as NumPy's, but faster.

`backends.compiled` registers its kernels here, so that this package does not depend on it. A kernel returns None or
False where it does not apply.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

#: draw(bit generator, n): n words of NumPy's MT19937
WORDS: list[Callable[[Any, int], np.ndarray | None]] = []
#: as `boxmuller.box_muller`, in place; whether it was computed
NORMALS: list[Callable[[np.ndarray], bool]] = []
#: apply(name, x): a function of the C library applied to an array of float64
FUNCTIONS: list[Callable[[str, np.ndarray], np.ndarray | None]] = []
#: draws(bit generator, n): functions that draw from the state of NumPy's MT19937 (`codegen.random.draws.Draws`); n
#: numbers are to be drawn
DRAWS: list[Callable[[Any, int], Any]] = []
