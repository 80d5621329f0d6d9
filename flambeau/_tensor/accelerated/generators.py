"""Generators of devices: Philox engines, one default generator for each device."""

from __future__ import annotations

from typing import Any

from ...backends.cuda_devices import current_runtime
from ...devices import cuda, device
from ...kernels.philox import PhiloxEngine
from ..creation import generators
from ..creation.generators import Generator

_defaults: list[Generator] = []
_of_runtime: list[Any] = [None]  # [the runtime whose generators they are]


def blocks_of(index: int) -> int:
    """The blocks of 256 threads that a device runs at once, on which the numbers of large tensors depend."""
    found = current_runtime().properties(index)
    return found.multi_processor_count * (found.max_threads_per_multi_processor // 256)


def engine_of(on: device) -> PhiloxEngine:
    """A new engine of a device."""
    return PhiloxEngine(blocks_of(on.index or 0))


def _made() -> list[Generator]:
    """The default generators of the present runtime, which are made once."""
    runtime = current_runtime()
    if _of_runtime[0] is not runtime:
        _of_runtime[0] = runtime
        _defaults[:] = [] if runtime is None else [Generator(cuda(i)) for i in range(runtime.count)]
        if generators.seeded[0]:
            for each in _defaults:
                each.engine.seed(generators.default_generator.initial_seed())
    return _defaults


def default_generator(index: int | None) -> Generator:
    """The default generator of a device."""
    return _made()[index or 0]


def default_generators() -> tuple[Generator, ...]:
    """The default generators of all devices."""
    return tuple(_made())


def generator_for(generator: Any, on: device) -> Any:
    """The generator of a call that makes a tensor on a device: the one that is given, or the default one.

    Raises:
        RuntimeError: it is not of the type of the device (PyTorch's text).
    """
    check_generator(generator, on)
    return default_generator(on.index) if generator is None else generator


def check_generator(generator: Any, on: device) -> None:
    """Check that a generator, if one is given, is of the type of a device.

    Raises:
        RuntimeError: it is not (PyTorch's text).
    """
    if generator is not None and on.type in ("cpu", "cuda") and generator.device.type != on.type:
        raise RuntimeError(f"Expected a '{on.type}' device type for generator but found '{generator.device.type}'")


generators.engine_of_device[0] = engine_of
generators.device_generators[0] = default_generators
generators.generator_for_device[0] = generator_for

__all__ = ["check_generator", "default_generator", "default_generators"]
