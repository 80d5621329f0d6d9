"""Restoration of a pipeline's position."""

from __future__ import annotations

from typing import Any

from ...graph_settings import apply_random_seed
from ..datapipe import IterDataPipe
from ..iterator_hooks import _SnapshotState


def _simple_graph_snapshot_restoration(datapipe: IterDataPipe[Any], n_iterations: int, rng: Any = None) -> None:
    """Read samples of a pipeline and drop them; the next iteration continues there.

    Args:
        datapipe: the pipeline.
        n_iterations: the number of samples.
        rng: the random number generator, in the state in which the loader got it.

    Raises:
        RuntimeError: the pipeline is restored already, or has fewer samples.
    """
    if datapipe._snapshot_state == _SnapshotState.Restored:
        raise RuntimeError("Snapshot restoration cannot be applied. You can only restore simple snapshot to the graph "
                           "if your graph has not been restored.")
    datapipe.reset()
    apply_random_seed(datapipe, rng)
    iterator = iter(datapipe)
    for _ in range(n_iterations):
        try:
            next(iterator)
        except StopIteration as error:
            raise RuntimeError(f"Fast-forward {datapipe} by {n_iterations} iterations exceeds the number of samples "
                               "available.") from error
    datapipe._fast_forward_iterator = iterator
    datapipe._snapshot_state = _SnapshotState.Restored
