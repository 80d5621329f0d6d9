"""`torch._decomp.decompositions`: the function that computes an operator of simpler ones, by the operator's name.

What is written out is in `shapes`, `elements`, `reductions` and `layers`, what follows from a declaration in `derived`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...ops import aten
from .entries import decomposition_table


def __getattr__(name: str) -> Callable[..., Any]:
    """The function of an operator's first overload that has one, `torch._decomp.decompositions.silu`."""
    packet = None if name.startswith("__") else getattr(aten, name, None)
    for overload in () if packet is None else packet.overloads():
        function = decomposition_table.get(getattr(packet, overload))
        if function is not None:
            return function
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
