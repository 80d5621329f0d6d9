"""`torch.utils.ThroughputBenchmark`: calls of a model by several threads, timed."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any


class ExecutionStats:
    """The times of a benchmark.

    Args:
        latency: seconds of a call, on average.
        calls: how many calls were timed.
        total: seconds in all.
        config: the arguments of the benchmark.
    """

    def __init__(self, latency: float, calls: int, total: float, config: dict[str, Any]) -> None:
        self.latency_avg_ms, self.num_iters = latency * 1e3, calls
        self.total_time_seconds, self.benchmark_config = total, config

    @property
    def iters_per_second(self) -> float:
        """Calls a second, of all threads together."""
        return self.num_iters / self.total_time_seconds

    def __str__(self) -> str:
        return (f"Average latency per example: {self.latency_avg_ms:.3f}ms\n"
                f"Total number of iterations: {self.num_iters}\nTotal number of iterations per second (across all "
                f"threads): {self.iters_per_second:.2f}\nTotal time: {self.total_time_seconds:.3f}s")


class ThroughputBenchmark:
    """Calls a model by several threads at once, with inputs that are given before.

    Args:
        module: the model.

    >>> import flambeau as torch
    >>> bench = torch.utils.ThroughputBenchmark(torch.nn.Linear(2, 2))
    >>> bench.add_input(torch.ones(1, 2))
    >>> bench.benchmark(num_calling_threads=2, num_warmup_iters=1, num_iters=4).num_iters
    4
    """

    def __init__(self, module: Callable[..., Any]) -> None:
        self._module = module
        self._inputs: list[tuple[tuple[Any, ...], dict[str, Any]]] = []

    def add_input(self, *args: Any, **kwargs: Any) -> None:
        """Add the arguments of a call; calls take them in turn."""
        self._inputs.append((args, kwargs))

    def run_once(self, *args: Any, **kwargs: Any) -> Any:
        """Call the model once."""
        return self._module(*args, **kwargs)

    def benchmark(self, num_calling_threads: int = 1, num_warmup_iters: int = 10, num_iters: int = 100,
                  profiler_output_path: str = "") -> ExecutionStats:
        """Time calls.

        Args:
            num_calling_threads: how many threads call.
            num_warmup_iters: calls of each thread that are not timed.
            num_iters: calls that are timed, of all threads together.
            profiler_output_path: where the trace of a profiler is written; "" for none.

        Raises:
            AssertionError: no input was added.
        """
        if not self._inputs:
            raise AssertionError("Please provide benchmark inputs. Did you forget to call add_input()?")
        start, remaining = threading.Barrier(num_calling_threads + 1), iter(range(num_iters))
        latencies: list[float] = []
        next_call = threading.Lock()

        def call_in_turn(thread: int) -> None:
            for turn in range(num_warmup_iters):
                self._call(thread + turn)
            start.wait()
            while True:
                with next_call:
                    turn = next(remaining, -1)
                if turn < 0:
                    return
                began = time.perf_counter()
                self._call(turn)
                latencies.append(time.perf_counter() - began)

        threads = [threading.Thread(target=call_in_turn, args=(each,)) for each in range(num_calling_threads)]
        for thread in threads:
            thread.start()
        start.wait()
        began = time.perf_counter()
        for thread in threads:
            thread.join()
        config = {"num_calling_threads": num_calling_threads, "num_warmup_iters": num_warmup_iters,
                  "num_iters": num_iters}
        return ExecutionStats(sum(latencies) / max(len(latencies), 1), len(latencies), time.perf_counter() - began,
                              config)

    def _call(self, turn: int) -> None:
        args, kwargs = self._inputs[turn % len(self._inputs)]
        self._module(*args, **kwargs)


__all__ = ["ExecutionStats", "ThroughputBenchmark"]
