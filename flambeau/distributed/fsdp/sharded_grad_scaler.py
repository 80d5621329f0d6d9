"""`ShardedGradScaler`: a `GradScaler` of gradients that are divided between processes."""

from __future__ import annotations

from typing import Any

from ...amp.grad_scaler import GradScaler
from ...c10d.reduce_op import ReduceOp
from ..collectives import all_reduce


class ShardedGradScaler(GradScaler):
    """A `GradScaler` that skips a step in all processes where one has a gradient that is not finite.

    Args:
        device: "cpu".
        init_scale: the first scale.
        backoff_factor: what the scale is multiplied with after a step that was skipped.
        growth_factor: what it is multiplied with after `growth_interval` steps.
        growth_interval: the number of steps.
        enabled: False: do nothing.
        process_group: the processes.
    """

    def __init__(self, device: str = "cpu", init_scale: float = 2.0**16, backoff_factor: float = 0.5,
                 growth_factor: float = 2.0, growth_interval: int = 2000, enabled: bool = True,
                 process_group: Any = None) -> None:
        super().__init__(device, init_scale=init_scale, backoff_factor=backoff_factor, growth_factor=growth_factor,
                         growth_interval=growth_interval, enabled=enabled)
        self.process_group = process_group

    def unscale_(self, optimizer: Any) -> None:
        """Divide the gradients of an optimizer by the scale.

        Args:
            optimizer: the optimizer.
        """
        super().unscale_(optimizer)
        if not self._enabled:
            return
        for found in self._per_optimizer_states[id(optimizer)]["found_inf_per_device"].values():
            all_reduce(found, ReduceOp.MAX, self.process_group)


__all__ = ["ShardedGradScaler"]
