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


__all__ = ["CPUOffloadPolicy", "MixedPrecisionPolicy", "OffloadPolicy"]
