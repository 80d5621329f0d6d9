"""Generators of distributed tensors: parts draw from disjoint ranges of one counter-based generator.

A mesh of CPUs has none: there each process draws from its own generator.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from math import prod
from typing import Any

from ...random import manual_seed as _manual_seed
from ..collectives import broadcast
from ..device_mesh import DeviceMesh
from ._dtensor_spec import DTensorSpec
from ._sharding import is_shard, shard_range

_ROOT = __name__.partition(".")[0]
#: the tracker of this process, made for the first random operator on a mesh of devices
_rng_tracker: OffsetBasedRNGTracker | None = None


def _device_module(device_type: str) -> Any:
    """The module of a type of device, if it has generators; else None."""
    if device_type == "cpu":
        return None
    module = import_module(f"{_ROOT}.{device_type}")
    return module if hasattr(module, "set_rng_state") else None


def is_rng_supported_mesh(device_mesh: DeviceMesh) -> bool:
    """Whether parts of a tensor of the mesh get different random numbers from generators of the same state.

    Args:
        device_mesh: the processes.

    Warns:
        UserWarning: they do not.
    """
    if _device_module(device_mesh.device_type) is not None:
        return True
    warnings.warn(f"DTensor random operators may not have complete support on {device_mesh.device_type} device mesh",
                  stacklevel=2)
    return False


def manual_seed(seed: int, device_mesh: DeviceMesh) -> None:
    """Set the seed of the generators with which the processes of a mesh draw.

    Args:
        seed: the same in all of them.
        device_mesh: the processes, among them this one.

    Raises:
        RuntimeError: this process is not in the mesh.
    """
    global _rng_tracker
    if not is_rng_supported_mesh(device_mesh):
        warnings.warn(f"DTensor manual_seed() may not have complete support on {device_mesh.device_type} device mesh",
                      stacklevel=2)
        return
    if _rng_tracker is None:
        _rng_tracker = OffsetBasedRNGTracker(device_mesh, run_state_sync=False)
    if device_mesh.get_coordinate() is None:
        raise RuntimeError("manual_seed requires the current rank to be a part of the device mesh otherwise DTensor "
                           "RNG state on the rank will not be initialized and the behavior of DTensor random ops is "
                           "undefined.")
    _manual_seed(seed)


class OffsetBasedRNGTracker:
    """Moves the offsets of counter-based generators, so that parts draw from disjoint ranges, and copies the same.

    Args:
        device_mesh: the processes.
        run_state_sync: whether all processes take over the state of the first.

    Raises:
        RuntimeError: the mesh is one of CPUs, or there is no such device (PyTorch's texts).
    """

    def __init__(self, device_mesh: DeviceMesh, run_state_sync: bool = True) -> None:
        kind = device_mesh.device_type
        self._module = _device_module(kind)
        name = type(self).__name__
        if kind == "cpu":
            raise RuntimeError(f"{name} instantiation requires the presence of CUDA/CUDA-like/XPU device. Got {kind} "
                               "instead.")
        if self._module is None or not self._module.is_available():
            raise RuntimeError(f"{name} instantiation requires the presence of {kind} device but couldn't find.")
        self.distribute_region_enabled = True
        if run_state_sync:
            state = self._module.get_rng_state()
            broadcast(state, 0)
            self._module.set_rng_state(state)

    @contextmanager
    def _distribute_region(self, spec: DTensorSpec, generator: Any = None) -> Iterator[None]:
        """Draw for a part of a tensor in the block; afterwards all processes have the same state.

        Args:
            spec: how the tensor is placed.
            generator: what draws; default: the device's generator.
        """
        holder = _Default(self._module) if generator is None else generator
        if not self.distribute_region_enabled:
            yield
            return
        state = holder.get_state()
        begin, length = self._compute_rng_offsets(spec)
        holder.set_state(_moved(state, begin))
        try:
            yield
        finally:
            holder.set_state(_moved(state, length))

    def _compute_rng_offsets(self, spec: DTensorSpec) -> tuple[int, int]:
        """Where this process's part begins in the sequence of numbers of the whole tensor, and the sequence's length.

        Both are multiples of 4, the numbers that Philox makes at once.
        """
        coordinate = spec.mesh.get_coordinate()
        assert coordinate is not None
        indices, counts = _shard_indices(coordinate, spec)
        index = _linear_index(indices, counts)
        return (index * prod(_first_part(spec)) + 3) // 4 * 4, (prod(spec.shape) + 3) // 4 * 4


class _Default:
    """The generator of a device, by its module."""

    def __init__(self, module: Any) -> None:
        self.get_state, self.set_state = module.get_rng_state, module.set_rng_state


def _moved(state: Any, by: int) -> Any:
    """The state of a Philox generator, (seed, offset) as 16 bytes, with another offset."""
    out = state.clone()
    array = out.numpy()
    array[8:16] = (array[8:16].view("<i8") + by).view("u1")
    return out


def _first_part(spec: DTensorSpec) -> list[int]:
    """The sizes of the part of the first process: the largest."""
    sizes = list(spec.shape)
    for i, placement in enumerate(spec.placements):
        if is_shard(placement):
            dim: int = placement.dim  # type: ignore[attr-defined]
            sizes[dim] = shard_range(spec.shape[dim], spec.mesh.size(i), 0)[1]
    return sizes


def _shard_indices(coordinate: Sequence[int], spec: DTensorSpec) -> tuple[list[int], list[int]]:
    """For each dimension of a tensor, which part a process has, and the number of parts."""
    indices, counts = [0] * spec.ndim, [1] * spec.ndim
    for i, placement in enumerate(spec.placements):
        if is_shard(placement):
            dim: int = placement.dim  # type: ignore[attr-defined]
            indices[dim] = indices[dim] * spec.mesh.size(i) + coordinate[i]
            counts[dim] *= spec.mesh.size(i)
    return indices, counts


def _linear_index(indices: Sequence[int], counts: Sequence[int]) -> int:
    """The number of a part in row-major order."""
    found = 0
    for index, count in zip(indices, counts, strict=True):
        found = found * count + index
    return found


@contextmanager
def distribute_region(spec: DTensorSpec, generator: Any = None) -> Iterator[None]:
    """Draw for a part of a tensor in the block, on any mesh.

    Args:
        spec: how the tensor is placed.
        generator: what draws; default: the device's generator.
    """
    global _rng_tracker
    if _device_module(spec.mesh.device_type) is None:
        yield
        return
    if _rng_tracker is None:
        _rng_tracker = OffsetBasedRNGTracker(spec.mesh)
    with _rng_tracker._distribute_region(spec, generator):
        yield


__all__ = ["OffsetBasedRNGTracker", "is_rng_supported_mesh", "manual_seed"]
