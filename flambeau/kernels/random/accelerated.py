"""What is quicker than NumPy with many numbers, if anything is: filled in by whoever has it, and of the same bits."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

#: draw so many words of NumPy's MT19937; None where they do not
WORDS: list[Callable[[Any, int], np.ndarray | None]] = []
#: do as `boxmuller.box_muller`, and say whether they did
NORMALS: list[Callable[[np.ndarray], bool]] = []
#: shuffle 0 ... n by n words, as `permutation.randperm` does; None where they do not
SHUFFLES: list[Callable[[np.ndarray], np.ndarray | None]] = []
