"""`scatter` and `gather`: tensors divided among accelerators and concatenated."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NoReturn

from ..._tensor import Tensor

__all__ = ["gather", "scatter", "scatter_kwargs"]


def check_device(target: Any) -> None:
    """Raise ValueError for the CPU."""
    if str(target).partition(":")[0] == "cpu":
        raise ValueError(f"Expected a non cpu device, but got: {target}")


def _refuse(target_gpus: Sequence[Any]) -> NoReturn:
    for target in target_gpus:
        check_device(target)
    raise RuntimeError("Cannot access accelerator device when none is available.")


def scatter(inputs: Any, target_gpus: Sequence[Any], dim: int = 0) -> Any:
    """Divide tensors among accelerators; other values are repeated.

    Args:
        inputs: a tensor, or a tuple, list or dict.
        target_gpus: the accelerators.
        dim: the dimension that is divided.

    Raises:
        RuntimeError: a value is a tensor, and there is no accelerator.

    >>> import flambeau as torch
    >>> torch.nn.parallel.scatter((1, "a"), [0, 1])
    [(1, 'a'), (1, 'a')]
    """
    if isinstance(inputs, Tensor):
        _refuse(target_gpus)
    if isinstance(inputs, tuple) and hasattr(inputs, "_fields"):
        return [type(inputs)(*parts) for parts in zip(*(scatter(x, target_gpus, dim) for x in inputs), strict=True)]
    if isinstance(inputs, tuple) and inputs:
        return list(zip(*(scatter(x, target_gpus, dim) for x in inputs), strict=True))
    if isinstance(inputs, list) and inputs:
        return [list(parts) for parts in zip(*(scatter(x, target_gpus, dim) for x in inputs), strict=True)]
    if isinstance(inputs, dict) and inputs:
        values = zip(*(scatter(x, target_gpus, dim) for x in inputs.values()), strict=True)
        return [type(inputs)(zip(inputs, parts, strict=True)) for parts in values]
    return [inputs for _ in target_gpus]


def scatter_kwargs(inputs: tuple[Any, ...], kwargs: dict[str, Any] | None, target_gpus: Sequence[Any],
                   dim: int = 0) -> tuple[tuple[Any, ...], tuple[dict[str, Any], ...]]:
    """`scatter` of positional and keyword arguments, as tuples of the same length.

    Args:
        inputs: positional arguments.
        kwargs: keyword arguments.
        target_gpus: the accelerators.
        dim: the dimension that is divided.

    >>> from flambeau.nn.parallel.scatter_gather import scatter_kwargs
    >>> scatter_kwargs((1,), {"a": 2}, [0, 1])
    (((1,), (1,)), ({'a': 2}, {'a': 2}))
    """
    positional = scatter(inputs, target_gpus, dim) if inputs else []
    named = scatter(kwargs, target_gpus, dim) if kwargs else []
    count = max(len(positional), len(named))
    return (tuple(positional + [() for _ in range(count - len(positional))]),
            tuple(named + [{} for _ in range(count - len(named))]))


def gather(outputs: Any, target_device: Any, dim: int = 0) -> Any:
    """Raise: outputs on the CPU are not gathered.

    Args:
        outputs: an output for each device.
        target_device: the device of the result.
        dim: the dimension along which they are concatenated.

    Raises:
        AssertionError: the outputs are tensors on the CPU.
    """
    first = outputs[0]
    if isinstance(first, Tensor):
        raise AssertionError("Gather function not implemented for CPU tensors")
    if first is None:
        return None
    if isinstance(first, dict):
        if any(len(first) != len(other) for other in outputs):
            raise ValueError("All dicts must have the same number of keys")
        return type(first)((key, gather([other[key] for other in outputs], target_device, dim)) for key in first)
    return type(first)(gather(list(parts), target_device, dim) for parts in zip(*outputs, strict=False))
