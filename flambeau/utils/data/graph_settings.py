"""Settings of whole pipelines: shards, shuffling and seeds."""

from __future__ import annotations

import inspect
import warnings
from typing import Any

from .datapipes.iter.sharding import SHARDING_PRIORITIES, _ShardingIterDataPipe
from .graph import DataPipe, DataPipeGraph, traverse_dps
from .seeds import draw_seed

__all__ = ["apply_random_seed", "apply_sharding", "apply_shuffle_seed", "apply_shuffle_settings",
           "get_all_graph_pipes"]


def get_all_graph_pipes(graph: DataPipeGraph) -> list[DataPipe]:
    """All pipelines of a graph, each once.

    >>> from flambeau.utils.data.datapipes.iter import IterableWrapper
    >>> from flambeau.utils.data.graph import traverse_dps
    >>> from flambeau.utils.data.graph_settings import get_all_graph_pipes
    >>> get_all_graph_pipes(traverse_dps(IterableWrapper([1]).map(abs)))
    [MapperIterDataPipe, IterableWrapperIterDataPipe]
    """
    found: dict[int, DataPipe] = {}

    def collect(graph: DataPipeGraph) -> None:
        for number, (pipe, sources) in graph.items():
            if number not in found:
                found[number] = pipe
                collect(sources)

    collect(graph)
    return list(found.values())


def _has_methods(pipe: Any, *names: str) -> bool:
    return all(inspect.ismethod(getattr(pipe, name, None)) for name in names)


def apply_sharding(datapipe: DataPipe, num_of_instances: int, instance_id: int,
                   sharding_group: Any = SHARDING_PRIORITIES.DEFAULT) -> DataPipe:
    """Make the sharding filters of a pipeline yield one of several parts.

    Args:
        datapipe: the pipeline.
        num_of_instances: the number of parts.
        instance_id: the number of the part.
        sharding_group: the group of shards that is set.

    Raises:
        RuntimeError: one filter reads from another.

    >>> from flambeau.utils.data.datapipes.iter import IterableWrapper
    >>> from flambeau.utils.data.graph_settings import apply_sharding
    >>> list(apply_sharding(IterableWrapper(range(5)).sharding_filter(), 2, 1))
    [1, 3]
    """
    def apply(graph: DataPipeGraph, previous: Any = None) -> None:
        for each, sources in graph.values():
            pipe: Any = each
            applied = previous
            if isinstance(pipe, _ShardingIterDataPipe) or _has_methods(pipe, "apply_sharding"):
                if previous is not None:
                    raise RuntimeError("Sharding twice on a single pipeline is likely unintended and will cause data "
                                       f"loss. Sharding already applied to {previous} while trying to apply to {pipe}")
                if len(inspect.signature(pipe.apply_sharding).parameters) < 3:
                    pipe.apply_sharding(num_of_instances, instance_id)
                else:
                    pipe.apply_sharding(num_of_instances, instance_id, sharding_group=sharding_group)
                applied = pipe
            apply(sources, applied)

    apply(traverse_dps(datapipe))
    return datapipe


def apply_shuffle_settings(datapipe: DataPipe, shuffle: bool | None = None) -> DataPipe:
    """Turn the shufflers of a pipeline on or off; a shuffler is added where there is none to turn on.

    Args:
        datapipe: the pipeline.
        shuffle: whether to shuffle; None changes nothing.

    >>> from flambeau.utils.data.datapipes.iter import IterableWrapper
    >>> from flambeau.utils.data.graph_settings import apply_shuffle_settings
    >>> list(apply_shuffle_settings(IterableWrapper(range(3)).shuffle(), shuffle=False))
    [0, 1, 2]
    """
    if shuffle is None:
        return datapipe
    shufflers: list[Any] = [pipe for pipe in get_all_graph_pipes(traverse_dps(datapipe))
                            if _has_methods(pipe, "set_shuffle", "set_seed")]
    if not shufflers and shuffle:
        warnings.warn("`shuffle=True` was set, but the datapipe does not contain a `Shuffler`. Adding one at the end. "
                      "Be aware that the default buffer size might not be sufficient for your task.", stacklevel=2)
        datapipe = datapipe.shuffle()
        shufflers = [datapipe]
    for shuffler in shufflers:
        shuffler.set_shuffle(shuffle)
    return datapipe


def apply_shuffle_seed(datapipe: DataPipe, rng: Any) -> DataPipe:
    """`apply_random_seed`; deprecated."""
    warnings.warn("`apply_shuffle_seed` is deprecated since 1.12 and will be removed in the future releases. Please "
                  "use `apply_random_seed` instead.", FutureWarning, stacklevel=2)
    return apply_random_seed(datapipe, rng)


def apply_random_seed(datapipe: DataPipe, rng: Any) -> DataPipe:
    """Seed the random parts of a pipeline, each by a number drawn from a generator.

    Args:
        datapipe: the pipeline.
        rng: the random number generator.

    >>> import flambeau as torch
    >>> from flambeau.utils.data.datapipes.iter import IterableWrapper
    >>> from flambeau.utils.data.graph_settings import apply_random_seed
    >>> pipe = IterableWrapper(range(5)).shuffle()
    >>> once = list(apply_random_seed(pipe, torch.Generator().manual_seed(0)))
    >>> once == list(apply_random_seed(pipe, torch.Generator().manual_seed(0)))
    True
    """
    for pipe in get_all_graph_pipes(traverse_dps(datapipe)):
        if _has_methods(pipe, "set_seed"):
            pipe.set_seed(draw_seed(rng))
    return datapipe
