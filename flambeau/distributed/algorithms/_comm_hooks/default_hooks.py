"""Averages of gradients of `FullyShardedDataParallel`: of whole ones, or scattered, also in narrow dtypes."""

from __future__ import annotations

from typing import Any

from .... import dtypes
from ....c10d.process_group import ProcessGroup
from ...collectives import all_reduce, reduce_scatter_tensor
from ...groups.queries import get_world_size

__all__ = ["DefaultState", "LowPrecisionState", "allreduce_hook", "bf16_compress_hook", "fp16_compress_hook",
           "reduce_scatter_hook"]


class DefaultState:
    """What the hooks need: gradients are divided by n in two steps, around the sum, so that none overflows.

    Args:
        process_group: the processes.

    Raises:
        ValueError: there is none (PyTorch's text).
    """

    __slots__ = ("gradient_postdivide_factor", "gradient_predivide_factor", "process_group", "world_size")

    def __init__(self, process_group: ProcessGroup) -> None:
        if process_group is None:
            raise ValueError(f"Expected to pass in an explicit ProcessGroup to {self}.")
        self.process_group = process_group
        self.world_size = get_world_size(process_group)
        self.gradient_predivide_factor = self._get_gradient_predivide_factor(self.world_size)
        self.gradient_postdivide_factor = self.world_size / self.gradient_predivide_factor

    @staticmethod
    def _get_gradient_predivide_factor(world_size: int) -> float:
        """The power of two about the square root of n, where it divides n."""
        factor = 1
        while world_size % factor == 0 and world_size / factor > factor:
            factor *= 2
        return float(factor)


class LowPrecisionState(DefaultState):
    """`DefaultState`, and the dtype that reduced gradients are cast to.

    Args:
        process_group: the processes.
        parameter_type: the dtype of the parameters.
    """

    __slots__ = ("parameter_type",)

    def __init__(self, process_group: ProcessGroup, parameter_type: Any = dtypes.float32) -> None:
        super().__init__(process_group)
        self.parameter_type = parameter_type


def _divide(tensor: Any, factor: float) -> None:
    if factor > 1:
        tensor.div_(factor)


def allreduce_hook(state: DefaultState, grad: Any) -> None:
    """Average whole gradients.

    Args:
        state: the processes.
        grad: the gradients, which are written to.
    """
    _divide(grad, state.gradient_predivide_factor)
    all_reduce(grad, group=state.process_group)
    _divide(grad, state.gradient_postdivide_factor)


def reduce_scatter_hook(state: DefaultState, grad: Any, output: Any) -> None:
    """Average gradients, of which each process gets a part.

    Args:
        state: the processes.
        grad: this process's gradients.
        output: gets the part.
    """
    _divide(grad, state.gradient_predivide_factor)
    reduce_scatter_tensor(output, grad, group=state.process_group)
    _divide(output, state.gradient_postdivide_factor)


def _compressed(dtype: Any, state: LowPrecisionState, grad: Any, output: Any) -> None:
    if grad.dtype is not dtype:
        grad.data = grad.data.to(dtype)
    if output is None:
        allreduce_hook(state, grad)
        grad.data = grad.data.to(state.parameter_type)
        return
    if output.dtype is not dtype:
        output.data = output.data.to(dtype)
    reduce_scatter_hook(state, grad, output)
    output.data = output.data.to(state.parameter_type)


def fp16_compress_hook(state: LowPrecisionState, grad: Any, output: Any = None) -> None:
    """Average gradients in float16.

    Args:
        state: the processes, and the dtype of the parameters.
        grad: the gradients.
        output: gets this process's part; None: whole gradients are averaged.
    """
    _compressed(dtypes.float16, state, grad, output)


def bf16_compress_hook(state: LowPrecisionState, grad: Any, output: Any = None) -> None:
    """Average gradients in bfloat16; the arguments are those of `fp16_compress_hook`."""
    _compressed(dtypes.bfloat16, state, grad, output)
