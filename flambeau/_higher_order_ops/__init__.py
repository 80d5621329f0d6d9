"""Control flow as operators: `cond`, `while_loop`, `scan`, `map`, `associative_scan`; they run Python's control flow.

A branch or body is an ordinary function: it is called with the operands, and the graph records what it computes.
"""

from __future__ import annotations

from .associative_scan import associative_scan
from .cond import cond
from .map import map
from .scan import scan
from .while_loop import while_loop

__all__ = ["associative_scan", "cond", "map", "scan", "while_loop"]
