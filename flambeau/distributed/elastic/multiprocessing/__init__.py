"""Errors of launched processes."""

from __future__ import annotations
