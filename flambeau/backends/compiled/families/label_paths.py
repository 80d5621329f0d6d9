"""Sums over the paths of connectionist temporal classification."""

from __future__ import annotations

import numpy as np

from ....codegen.scan import label_paths as kernels


def label_paths(emission: np.ndarray, skips: np.ndarray, steps: np.ndarray, states: np.ndarray, back: bool
                ) -> np.ndarray | None:
    """The logarithms of sums over paths; -inf at steps and states that a sample has not; None: there is no kernel.

    Args:
        emission: (steps, samples, states), float32 or float64.
        skips: (samples, states), whether a state is entered from the one two before.
        steps, states: (samples,), of each sample; at least one state.
        back: whether paths run from the last step of a sample to its first.
    """
    if emission.dtype.char not in "fd":
        return None
    find = kernels.function(emission.dtype.char, *emission.shape[1:], back)
    sums = np.full(emission.shape, -np.inf, emission.dtype)
    if find is None or not sums.size:
        return None
    arrays = (np.ascontiguousarray(each) for each in (emission, skips, steps, states))
    found: np.ndarray = find(None, sums, *arrays)
    return found


__all__ = ["label_paths"]
