"""`torch._inductor.runtime.benchmarking`: medians of the times of functions."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import flambeau as torch

from ....utils import _pytree as pytree


class Benchmarker:
    """Measures functions on the device of their arguments.

    >>> import flambeau as torch
    >>> benchmarker.benchmark(torch.sin, (torch.ones(3),), {}, warmup=1, rep=1) > 0
    True
    """

    def infer_device(self, *fn_args: Any, **fn_kwargs: Any) -> torch.device:
        """The device of the tensors among a function's arguments.

        Raises:
            ValueError: there is none, or there are several.
        """
        devices = {x.device for x in pytree.tree_leaves((fn_args, fn_kwargs)) if isinstance(x, torch.Tensor)}
        if len(devices) > 1:
            raise ValueError("Can't safely infer the device type of `fn` with multiple device types in `fn_args` and "
                             "`fn_kwargs`!")
        if not devices:
            raise ValueError("Can't safely infer the device type of `fn` with no device types in `fn_args` or "
                             "`fn_kwargs`. Use a direct benchmarking method instead e.g. "
                             "`Benchmarker.benchmark_cpu` or `Benchmarker.benchmark_gpu`.")
        return devices.pop()

    def benchmark(self, fn: Callable[..., Any], fn_args: Sequence[Any] | None = None,
                  fn_kwargs: Mapping[str, Any] | None = None, device: str | torch.device | None = None,
                  **kwargs: Any) -> float:
        """The median time of a function in milliseconds.

        Args:
            fn: the function.
            fn_args, fn_kwargs: its arguments.
            device: where it runs; that of its arguments by default.
            kwargs: `warmup` and `rep` of `benchmark_cpu`.

        Raises:
            ValueError: the device follows from nothing.
        """
        if device is None and fn_args is None and fn_kwargs is None:
            raise ValueError("`fn_args` and `fn_kwargs` cannot both be None if `device` is not provided.")
        args, named = fn_args or (), fn_kwargs or {}
        where = torch.device(device) if device is not None else self.infer_device(*args, **named)
        measure = self.benchmark_cpu if where.type == "cpu" else self.benchmark_gpu
        return measure(lambda: fn(*args, **named), **kwargs)

    def benchmark_cpu(self, _callable: Callable[[], Any], warmup: int = 20, rep: int = 100) -> float:
        """The median time of a function in milliseconds.

        Args:
            _callable: the function.
            warmup: for how many milliseconds it runs before it is measured.
            rep: for how many milliseconds it is measured.

        >>> benchmarker.benchmark_cpu(lambda: sum(range(10)), warmup=1, rep=1) > 0
        True
        """
        def run_for(milliseconds: float) -> list[float]:
            times = []
            end = time.perf_counter() + milliseconds / 1e3
            while True:
                start = time.perf_counter()
                _callable()
                now = time.perf_counter()
                times.append((now - start) * 1e3)
                if now > end:
                    return times

        run_for(warmup)
        return statistics.median(run_for(rep))

    def benchmark_gpu(self, _callable: Callable[[], Any], warmup: int = 25, rep: int = 100, **kwargs: Any) -> float:
        """The median time of a function between two events of the device, in milliseconds.

        Raises:
            AssertionError: there is no CUDA device.
        """
        if not torch.cuda.is_available():
            raise AssertionError("Torch not compiled with CUDA enabled")

        def waited() -> None:
            _callable()
            torch.cuda.synchronize()

        return self.benchmark_cpu(waited, warmup, rep)


benchmarker = Benchmarker()

__all__ = ["Benchmarker", "benchmarker"]
