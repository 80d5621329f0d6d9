"""What the compiler's graph cannot express."""

from __future__ import annotations


class Unsupported(Exception):
    """The graph cannot express this; the caller runs the operator's own kernel instead."""
