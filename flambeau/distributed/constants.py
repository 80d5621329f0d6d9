"""Constants of process groups."""

from __future__ import annotations

from datetime import timedelta

from ..c10d.backend import DEFAULT_TIMEOUT

default_pg_timeout: timedelta = DEFAULT_TIMEOUT
default_pg_nccl_timeout: timedelta | None = None

__all__ = ["default_pg_nccl_timeout", "default_pg_timeout"]
