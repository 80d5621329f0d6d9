"""What launched processes have in common with their launcher: errors."""

from __future__ import annotations
