"""The random number generators of CUDA devices."""

from __future__ import annotations

from typing import Any

from ..._tensor.accelerated.generators import default_generator, default_generators
from .devices import index_of


def get_rng_state(device: Any = "cuda") -> Any:
    """The state of a device's generator, a uint8 tensor of the CPU: seed and offset."""
    return default_generator(index_of(device)).get_state()


def get_rng_state_all() -> list[Any]:
    """The states of the generators of all devices."""
    return [each.get_state() for each in default_generators()]


def set_rng_state(new_state: Any, device: Any = "cuda") -> None:
    """Restore a state of a device's generator."""
    default_generator(index_of(device)).set_state(new_state)


def set_rng_state_all(new_states: Any) -> None:
    """Restore the states of the generators of all devices."""
    for each, state in zip(default_generators(), new_states, strict=False):
        each.set_state(state)


def manual_seed(seed: int) -> None:
    """Set the seed of the current device's generator."""
    default_generator(index_of()).manual_seed(int(seed))


def manual_seed_all(seed: int) -> None:
    """Set the seed of the generators of all devices."""
    for each in default_generators():
        each.manual_seed(int(seed))


def seed() -> None:
    """Set a nondeterministic seed of the current device's generator."""
    default_generator(index_of()).seed()


def seed_all() -> None:
    """Set one nondeterministic seed of the generators of all devices."""
    first, *rest = default_generators()
    chosen = first.seed()
    for each in rest:
        each.manual_seed(chosen)


def initial_seed() -> int:
    """The last seed of the current device's generator."""
    return default_generator(index_of()).initial_seed()


NAMES: dict[str, Any] = {each.__name__: each for each in (
    get_rng_state, get_rng_state_all, set_rng_state, set_rng_state_all, manual_seed, manual_seed_all, seed, seed_all,
    initial_seed)}

__all__ = ["NAMES"]
