"""`torch.distributed.launcher`: functions and programs in several processes, as by `torchrun`."""

from __future__ import annotations

from .api import LaunchConfig, elastic_launch, launch_agent

__all__ = ["LaunchConfig", "elastic_launch", "launch_agent"]
