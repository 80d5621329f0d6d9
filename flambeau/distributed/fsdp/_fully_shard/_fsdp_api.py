"""Policies of `fully_shard`: dtypes, and where parts are kept."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class MixedPrecisionPolicy:
    """The dtypes in which a module computes and communicates; its parameters keep theirs.

    Attributes:
        param_dtype: of gathered parameters, and so of the computation; None: their own.
        reduce_dtype: in which gradients are reduced; None: that of the computation.
        output_dtype: to which floating outputs are converted.
        cast_forward_inputs: convert floating inputs to `param_dtype`.

    >>> from flambeau.distributed.fsdp import MixedPrecisionPolicy
    >>> MixedPrecisionPolicy().cast_forward_inputs
    True
    """

    param_dtype: Any = None
    reduce_dtype: Any = None
    output_dtype: Any = None
    cast_forward_inputs: bool = True


@dataclass
class OffloadPolicy:
    """Parts stay on the device.

    >>> from flambeau.distributed.fsdp import OffloadPolicy
    >>> OffloadPolicy()
    OffloadPolicy()
    """


@dataclass
class CPUOffloadPolicy(OffloadPolicy):
    """Parts are kept on the CPU, where flambeau's are in any case.

    Attributes:
        pin_memory: without effect.

    >>> from flambeau.distributed.fsdp import CPUOffloadPolicy
    >>> CPUOffloadPolicy()
    CPUOffloadPolicy(pin_memory=True)
    """

    pin_memory: bool = True


@dataclass
class DataParallelMeshDims:
    """Which dimensions of a mesh parameters are cut over, and copied over; `fully_shard` refuses it.

    Attributes:
        shard: names of dimensions to cut over.
        replicate: names of dimensions to copy over.

    Raises:
        ValueError: both are None (PyTorch's text).
    """

    shard: str | tuple[str, ...] | None = None
    replicate: str | tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        if self.shard is None and self.replicate is None:
            raise ValueError("At least one of shard or replicate must be set in DataParallelMeshDims")


__all__ = ["CPUOffloadPolicy", "DataParallelMeshDims", "MixedPrecisionPolicy", "OffloadPolicy"]
