"""CUDA graphs: work of a stream that is recorded once and launched as a whole."""

from __future__ import annotations

import gc
import itertools
from typing import Any

from ..._tensor.accelerated import graph_draws
from ..._tensor.accelerated.generators import default_generator
from ...backends.cuda_devices import current_runtime
from .streams import Stream, stream

#: pools are negative, so that they are no streams
_numbers = itertools.count(1 << 20)
_MODES = ("global", "thread_local", "relaxed")


def is_current_stream_capturing() -> bool:
    """Whether the current stream is recorded for a graph."""
    runtime = current_runtime()
    device = runtime.current_device()
    return bool(runtime.is_capturing(device, runtime.current_stream(device)))


def graph_pool_handle() -> tuple[int, int]:
    """A new pool of memory, which graphs may share."""
    return (0, next(_numbers))


class CUDAGraph:
    """Work of a stream, recorded by `capture_begin` and `capture_end`, and launched by `replay`.

    Args:
        keep_graph: whether the graph is instantiated by `instantiate` or the first `replay`.

    >>> import flambeau as torch
    >>> with torch.testing.fake_cuda():
    ...     x, graph = torch.zeros(2, device="cuda"), torch.cuda.CUDAGraph()
    ...     with torch.cuda.graph(graph):
    ...         y = x + 1
    ...     _ = x.fill_(3)
    ...     graph.replay()
    ...     print(y.tolist())
    [4.0, 4.0]
    """

    __module__ = "torch.cuda.graphs"

    def __init__(self, keep_graph: bool = False) -> None:
        self._keep_graph, self._graph, self._pool = keep_graph, None, (0, 0)
        self._place: tuple[int, int] | None = None
        self._runtime: Any = None
        self._is_debugged = False
        self._generators: list[Any] = []  # those that are registered besides the default one
        self._draws: list[Any] = []  # what the graph draws from generators

    def register_generator_state(self, generator: Any) -> None:
        """Let a generator's numbers be drawn anew by each replay, as those of the device's default generator are."""
        self._generators.append(generator)

    def capture_begin(self, pool: Any = None, capture_error_mode: str = "global", check_input_liveness: bool = False
                      ) -> None:
        """Record the current stream from now on.

        Args:
            pool: of `graph_pool_handle` or of another graph, for the memory of results.
            capture_error_mode: "global", "thread_local" or "relaxed".

        Raises:
            RuntimeError: an unknown mode, the default stream, or a graph that has been captured.
        """
        if capture_error_mode not in _MODES:
            raise RuntimeError("Unknown capture error mode. Expected `global`, `thread_local`, or `relaxed`, got "
                               f"{capture_error_mode}")
        if self._graph is not None:
            raise RuntimeError("This CUDAGraph instance already owns a captured graph. To capture a new graph, create "
                               "a new instance.")
        runtime = current_runtime()
        device = runtime.current_device()
        number = runtime.current_stream(device)
        if not number:
            raise RuntimeError("CUDA graphs must be captured on a non-default stream. (However, after capture, it's ok "
                               "to replay them on the default stream.)")
        self._runtime, self._place = runtime, (device, number)
        self._pool = graph_pool_handle() if pool is None else tuple(pool)
        runtime.pools[device, number] = -self._pool[1]
        runtime.allocators[device].kept[-self._pool[1]] += 1
        self._draws = graph_draws.begin({id(each): each for each in (
            default_generator(device), *self._generators)}.values())
        runtime.begin_capture(device, number)

    def capture_end(self) -> None:
        """End the recording; results have no values before the first `replay`.

        Raises:
            RuntimeError: nothing is recorded.
            AcceleratorError: what must not happen meanwhile has, such as a synchronization; nothing is captured.
        """
        if self._place is None or self._graph is not None:
            raise RuntimeError("capture_end() called before capture_begin().")
        place = self._place
        del self._runtime.pools[place]
        self._draws = graph_draws.end(self._draws)
        try:
            self._graph = self._runtime.end_capture(*place)
        except RuntimeError:
            self._runtime.allocators[place[0]].kept[-self._pool[1]] -= 1
            self._place = None
            raise

    def instantiate(self) -> None:
        """Prepare a graph that was made with `keep_graph`, which CuPy has done."""
        if self._graph is None:
            raise RuntimeError("capture_end() must have been called before calling instantiate")

    def replay(self) -> None:
        """Launch the work on the current stream.

        Raises:
            RuntimeError: nothing was captured.
        """
        if self._graph is None or self._place is None:
            raise RuntimeError("Called CUDAGraph::replay without a preceding successful capture.")
        device = self._place[0]
        for each in self._draws:
            each.before_replay()
        self._runtime.replay(device, self._runtime.current_stream(device), self._graph)

    def reset(self) -> None:
        """Drop the graph; its memory may then be used by others."""
        if self._graph is not None and self._place is not None:
            self._graph = None
            self._runtime.allocators[self._place[0]].kept[-self._pool[1]] -= 1
            self._place = None

    def __del__(self) -> None:
        self.reset()

    def pool(self) -> tuple[int, int]:
        """The pool of the graph's memory, for other graphs."""
        if self._graph is None:
            raise RuntimeError("Called CUDAGraph::pool() without a preceding successful capture.")
        return self._pool

    def enable_debug_mode(self) -> None:
        """Let `debug_dump` describe the graph."""
        self._is_debugged = True

    def debug_dump(self, debug_path: str) -> None:
        """Write a description of the graph to a file, in the language of Graphviz."""
        if self._is_debugged and self._graph is not None:
            with open(debug_path, "w") as file:
                file.write(self._runtime.describe(self._graph))


class graph:
    """A context manager in which the work of a stream is captured.

    Args:
        cuda_graph: the `CUDAGraph` that it becomes.
        pool: of another graph, to share its memory.
        stream: the stream; default: one of the class's own.
        capture_error_mode: as for `CUDAGraph.capture_begin`.
    """

    __module__ = "torch.cuda.graphs"
    default_capture_stream: Any = None
    _of_runtime: Any = None

    def __init__(self, cuda_graph: CUDAGraph, pool: Any = None, stream: Any = None, capture_error_mode: str = "global",
                 enable_annotations: bool = False, check_input_liveness: bool = False) -> None:
        if stream is None and (graph.default_capture_stream is None or graph._of_runtime is not current_runtime()):
            graph.default_capture_stream, graph._of_runtime = Stream(), current_runtime()
        self.pool = pool
        self.capture_stream = graph.default_capture_stream if stream is None else stream
        self.stream_ctx, self.cuda_graph = _stream_context(self.capture_stream), cuda_graph
        self.capture_error_mode = capture_error_mode

    def __enter__(self) -> None:
        runtime = current_runtime()
        runtime.synchronize(runtime.current_device(), None)
        gc.collect()
        for each in runtime.allocators:
            each.empty_cache()
        self.stream_ctx.__enter__()
        self.cuda_graph.capture_begin(self.pool, capture_error_mode=self.capture_error_mode)

    def __exit__(self, *exception: Any) -> None:
        try:
            self.cuda_graph.capture_end()
        finally:
            self.stream_ctx.__exit__(*exception)


def _stream_context(capture_stream: Any) -> Any:
    return stream(capture_stream)


NAMES: dict[str, Any] = {each.__name__: each for each in (
    CUDAGraph, graph, graph_pool_handle, is_current_stream_capturing)}

__all__ = ["NAMES", "CUDAGraph", "graph", "graph_pool_handle", "is_current_stream_capturing"]
