"""The namespace `xp` over IR values of a device's program: what the CPU's has, and primitives with kernels for GPUs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ....modes import determinism
from ...graph.value import Graph
from ...lowering.namespace import Namespace
from ..interleaved_graph import InterleavedGraph
from .complex_numbers import DeviceComplexNumbers
from .copies import CopyOps
from .elementwise import DeviceElementwise
from .reductions_at import DeviceReductionsAt
from .special import DeviceSpecial

#: operators whose declarations use attributes of arrays: the primitives of these names take their place
_REPLACED = frozenset(("alias_copy", "narrow_copy", "_basic_index", "_as_strided_copy"))


class DeviceNamespace(DeviceComplexNumbers, CopyOps, DeviceElementwise, DeviceReductionsAt, DeviceSpecial, Namespace):
    """`xp` over the values of one graph that becomes a device's program."""

    graph: InterleavedGraph  # of compiled functions, which have no complex values, any graph

    pools_narrow = True
    samples_grids = False
    centers_again = False  # one kernel reads the rows of all its passes

    def declared(self, op: Any) -> Callable[..., Any]:
        """The function that lowers an operator; see `Namespace.declared`."""
        name: str = op.name
        if name in _REPLACED:
            found: Callable[..., Any] = getattr(self, name)
            return found
        return self.copied_view(name) or super().declared(op)


def lower_for_device(graph: Graph, address: int | None = None) -> DeviceNamespace:
    """Let a graph's operators be lowered for a device; the namespace.

    Args:
        address: where kernels write that an assertion failed; None: graphs have data guards instead.
    """
    made = graph.__dict__["namespace"] = DeviceNamespace(graph)
    made.deterministic = bool(determinism[0])
    if address is not None:
        made.assert_by(address)
    return made


__all__ = ["DeviceNamespace", "lower_for_device"]
