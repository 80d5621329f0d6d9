"""Views after in-place writes: where a view lies in its base, and the history it gets anew.

A write through a view changes its base, so the *base* gets the new history (`CopySlices`),
and every view of it becomes stale: its `grad_fn` is made anew, as a selection of positions
from the base, when it is next asked for. This is PyTorch's design (its issue #3313).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..engine.nodes.hooks import NodeExtra
from ..engine.nodes.node import FREED_MESSAGE, Node, next_number
from ..engine.nodes.op_node import OpNode, public_node
from ..engine.rules.inlined_rules import plan_of
from ..engine.tensor_interface import layer
from ..ops.declare import REGISTRY
from .dispatch.gradient_edge import gradient_edge
from .dispatch.graph_recording import hang
from .dispatch.write_checks import refuse_view
from .dtype_views import replayed
from .tensor import Tensor, wrap
from .view_geometry import Geometry


def regenerate(view: Tensor) -> None:
    """Give a stale view its history again: its positions, taken from its base as that now is."""
    base = view._base
    counter = view._counter
    assert base is not None
    assert counter is not None
    if view._creation is not None:
        refuse_view(view, indirect=True)
    retained = view._retains
    old, number = view._node, view._output_nr
    view._view_version = counter[0]
    if view._steps is not None:
        node = replayed(view)
    else:
        geometry = Geometry(base._array, view._array)
        op = REGISTRY["_as_strided"]
        plan = plan_of(op, 1, 1)
        node = OpNode()
        node.edges = (gradient_edge(base) if base._requires_grad else None,)
        node.edge_outputs = (base._output_nr,) if base._output_nr else None
        node.extra = node.outputs = node.versions = None
        node.plan = plan
        node.saved = ()
        node.run = None
        node.seq = next_number()
        node.fix = None
        if base._array.dtype.kind == "V" or base._array.dtype.kind == "c":
            types = (base._array.dtype,)
            node.fix = (None, types, False, base._array.dtype.kind == "V")
        node.consts = (geometry,)
    view._node = node
    view._output_nr = 0
    view._requires_grad = True
    view._hooks = None
    if retained:
        keep_retaining(view, old, number)


def follow_write(out: Tensor, extra: NodeExtra) -> None:
    """Give what a write through a view saved as its result the history of that view: a part of the base, as written."""
    view, slices = extra.written_view(), extra.copy_slices()
    if view is not None and view._base is not None:
        out._node, out._output_nr = view.grad_fn, view._output_nr
    elif slices is not None and slices.geometry.dtype == slices.geometry.base_dtype:
        op = REGISTRY["_as_strided"]
        out._output_nr = 0
        hang(out, slices, 0, op, plan_of(op, 1, 1), (slices.geometry,), out)


def keep_retaining(x: Tensor, old: Node | None, number: int) -> None:
    """Let a tensor that keeps its gradient keep that of its new history, no longer of output `number` of the old."""
    if old is not None and old.extra is not None and old.extra.retained is not None:
        old.extra.retained.pop(number, None)
    x._retains = None
    x.retain_grad()


class CopySlices(Node):
    """The history of a base after a write through a view of it.

    The cotangent of the base is split: the part at the view's positions goes through the
    node of the in-place operator; the rest goes to what the base was before.
    """

    __slots__ = ("drawn", "fn", "geometry")

    def __init__(self, base_edge: Node | None, base_nr: int, geometry: Geometry, fn: OpNode) -> None:
        self.fn: Any = fn  # None once freed
        self.drawn = fn.visible_edges()
        self.geometry = geometry
        self.edges = (base_edge, *fn.edges[1:])
        numbers = (base_nr, *(fn.edge_outputs or (0,) * len(fn.edges))[1:])
        self.edge_outputs = numbers if any(numbers) else None
        self.outputs = self.extra = self.run = None
        self.seq = next_number()

    def release_variables(self) -> None:
        if self.fn is not None:
            self.fn.release_variables()
            self.fn = None

    def visible_edges(self) -> list[int] | None:
        return self.drawn

    def vjp(self, cotangents: Any, tensors: bool) -> Any:
        if self.fn is None:
            raise RuntimeError(FREED_MESSAGE)
        geometry, fn = self.geometry, self.fn
        if geometry.dtype != geometry.base_dtype:
            return self._through_parts(cotangents, tensors)
        if tensors:
            functions = layer.functions
            part = functions._take_strided(cotangents, geometry=geometry)
            found = list(fn.vjp(part, True))
            first = found[0]
            if self.edges[0] is not None:
                self._check_distinct()
                if first is None:
                    first = functions.zeros_like(part)
                found[0] = functions._replace_strided(cotangents, first, geometry=geometry)
            return found
        whole = np.array(cotangents, order="C", copy=True)
        found = list(fn.vjp(geometry.take(whole), False))
        first = found[0]
        if self.edges[0] is not None:
            self._check_distinct()
            geometry.put(whole, np.zeros((), whole.dtype) if first is None else first)
            found[0] = whole
        return found

    def _check_distinct(self) -> None:
        if self.geometry.is_expanded():
            raise RuntimeError("unsupported operation: more than one element of the written-to tensor refers to a "
                               "single memory location. Please clone() the tensor before performing the operation.")

    def _through_parts(self, cotangents: Any, tensors: bool) -> Any:
        """A view of real parts of a complex base, or complex numbers made of a real one: the same, on the parts."""
        functions, geometry, fn = layer.functions, self.geometry, self.fn
        g = cotangents if tensors else layer.wrap(np.asarray(cotangents))
        of_complex = geometry.base_dtype.kind == "c"
        if of_complex:
            g = functions.view_as_real(functions.contiguous(g))
        geometry = geometry.of_parts()
        part = functions._take_strided(g, geometry=geometry)
        shown = part if of_complex else functions.view_as_complex(part)
        found = list(fn.vjp(shown if tensors else shown._array, tensors))
        if self.edges[0] is not None:
            self._check_distinct()
            first = found[0]
            if first is None:
                first = functions.zeros_like(part)
            else:
                first = first if tensors else layer.wrap(first)
                if not of_complex:
                    first = functions.view_as_real(functions.contiguous(first))
            whole = functions._replace_strided(g, first, geometry=geometry)
            if of_complex:
                whole = functions.view_as_complex(whole)
            found[0] = whole if tensors else whole._array
        return found

    def name(self) -> str:
        return "torch::autograd::CopySlices"

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"'CopySlices' object has no attribute '{name}'")


def grad_fn(self: Tensor) -> Node | None:
    """The node that made this tensor; None for a leaf."""
    base = self._base
    if base is not None and (base._requires_grad or self._node is not None):
        assert self._counter is not None
        if self._view_version != self._counter[0]:
            regenerate(self)
    return public_node(self._node)


def wrap_output(array: np.ndarray, node: Node, number: int, counter: list[int]) -> Tensor:
    """A tensor for a value that its own node saved: the same memory, version and history."""
    out: Tensor = wrap(array)
    out._counter = counter
    if array.dtype.kind in "fcV":
        out._requires_grad = True
        out._node = node
        out._output_nr = number
        if node.extra is not None and node.extra.copy_slices is not None:
            follow_write(out, node.extra)
    return out


layer.wrap_output = wrap_output

METHODS: dict[str, Any] = {"grad_fn": property(grad_fn)}
