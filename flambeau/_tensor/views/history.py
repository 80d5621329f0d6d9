"""Histories of views after in-place writes: CopySlices, and regeneration of a view's `grad_fn`.

A write through a view changes its base, so the base gets the new history, `CopySlices`. Every view of the base becomes
stale: its `grad_fn` is regenerated on access, as an `as_strided` of the base. This is PyTorch's design (issue 3313).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...backends.bit_views import apply_bits
from ...dtypes import is_complex
from ...engine.nodes.hooks import NodeExtra
from ...engine.nodes.node import FREED_MESSAGE, Node, next_number
from ...engine.nodes.op_node import OpNode, public_node
from ...engine.rules.inlined_rules import plan_of
from ...engine.tensor_interface import layer
from ...ops.declare import REGISTRY
from ..dispatch.gradient_edge import gradient_edge
from ..dispatch.graph_recording import record_unary
from ..dispatch.write_checks import raise_view_error
from ..tensor import Tensor, wrap
from .dtype_views import replay_view
from .geometry import Geometry


def regenerate_grad_fn(view: Tensor) -> None:
    """Regenerate the history of a stale view: an `as_strided` of its base in its present state."""
    base = view._base
    counter = view._counter
    assert base is not None
    assert counter is not None
    if view._creation is not None:
        raise_view_error(view, indirect=True)
    retained = view._retains_grad
    old, number = view._node, view._output_nr
    if view._view_steps is not None:
        node = replay_view(view)
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
        node.seq = base._node.regenerated_number(view) if base._node.__class__ is CopySlices else next_number()
        node.fix = None
        if base._array.dtype.kind == "V" or base._array.dtype.kind == "c":
            types = (base._array.dtype,)
            node.fix = (None, types, False, base._array.dtype.kind == "V")
        node.consts = geometry.as_strided_constants()
    view._node = node
    view._view_version = counter[0]
    view._output_nr = 0
    view._requires_grad = True
    view._hooks = None
    if retained:
        retain_new_history(view, old, number)


def attach_view_history(out: Tensor, extra: NodeExtra) -> None:
    """Connect the saved result of a write through a view to the graph: it is the view's part of the written base."""
    view, slices = extra.written_view(), extra.copy_slices()
    if view is not None and view._base is not None:
        out._node, out._output_nr = view.grad_fn, view._output_nr
    elif slices is not None and slices.geometry.dtype == slices.geometry.base_dtype:
        op = REGISTRY["_as_strided"]
        out._output_nr = 0
        record_unary(out, slices, 0, op, plan_of(op, 1, 1), slices.geometry.as_strided_constants(), out)
        for key, bit in (("_conj_view", slices.geometry.conjugated), ("_neg_view", slices.geometry.negated)):
            if bit:
                op = REGISTRY[key]
                record_unary(out, out._node, 0, op, plan_of(op, 1, 1), (), out)


def retain_new_history(x: Tensor, old: Node | None, number: int) -> None:
    """Move `retain_grad` of a tensor from output `number` of its old node to its new node."""
    if old is not None and old.extra is not None and old.extra.retained is not None:
        old.extra.retained.pop(number, None)
    x._retains_grad = None
    x.retain_grad()


class CopySlices(Node):
    """The node of a base after a write through a view of it.

    The part of the cotangent at the view's positions is passed to the node of the in-place operator, the rest to the
    previous history of the base.
    """

    __slots__ = ("drawn", "fn", "geometry", "reserved")

    def __init__(self, base_edge: Node | None, base_nr: int, geometry: Geometry, fn: OpNode) -> None:
        self.fn: Any = fn  # None once freed
        self.drawn = fn.visible_edges()
        if self.drawn and self.drawn[0] != 0:  # the first edge is replaced by that of the base
            self.drawn = [0, *self.drawn[1:]]
        self.geometry = geometry
        self.edges = (base_edge, *fn.edges[1:])
        numbers = (base_nr, *(fn.edge_outputs or (0,) * len(fn.edges))[1:])
        self.edge_outputs = numbers if any(numbers) else None
        self.outputs = self.extra = self.run = None
        self.reserved: tuple[int, int] | None = None
        self.seq = next_number()

    def reserve_number(self, view: Tensor) -> None:
        """Take the number of the written view's own node now: PyTorch makes that node at once, flambeau on access."""
        self.reserved = id(view), next_number()

    def regenerated_number(self, view: Tensor) -> int:
        """The number of a view's regenerated node: the reserved one if it is the view that was written."""
        reserved = self.reserved
        if reserved is None or view._view_version != -1 or reserved[0] != id(view):
            return next_number()
        self.reserved = None
        return reserved[1]

    def release_variables(self) -> None:
        if self.fn is not None:
            self.fn.release_variables()
            self.fn = None

    def visible_edges(self) -> Sequence[int | None] | None:
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
            result = list(fn.vjp(self._with_bits(part, True), True))
            first = result[0]
            if self.edges[0] is not None:
                self._check_distinct()
                first = functions.zeros_like(part) if first is None else self._with_bits(first, True)
                result[0] = functions._replace_strided(cotangents, first, geometry=geometry)
            return result
        full_gradient = np.array(cotangents, order="C", copy=True)
        result = list(fn.vjp(self._with_bits(geometry.take(full_gradient), False), False))
        first = result[0]
        if self.edges[0] is not None:
            self._check_distinct()
            geometry.put(full_gradient, np.zeros((), full_gradient.dtype) if first is None else
                         self._with_bits(first, False))
            result[0] = full_gradient
        return result

    def _with_bits(self, g: Any, tensors: bool) -> Any:
        """A cotangent of the view as one of its memory, or the reverse: conjugated or negated, as the bits say."""
        geometry = self.geometry
        if not tensors:
            return apply_bits(g, geometry.conjugated, geometry.negated)
        if geometry.conjugated:
            g = layer.functions.conj_physical(g)
        return layer.functions.neg(g) if geometry.negated else g

    def _check_distinct(self) -> None:
        if self.geometry.is_expanded():
            raise RuntimeError("unsupported operation: more than one element of the written-to tensor refers to a "
                               "single memory location. Please clone() the tensor before performing the operation.")

    def _through_parts(self, cotangents: Any, tensors: bool) -> Any:
        """`vjp` for a real view of a complex base or the reverse: on `view_as_real` of both."""
        functions, geometry, fn = layer.functions, self.geometry, self.fn
        g = cotangents if tensors else layer.wrap(np.asarray(cotangents))
        of_complex = is_complex(geometry.base_dtype)
        if of_complex:
            g = functions.view_as_real(functions.contiguous(g))
        geometry = geometry.of_parts()
        part = functions._take_strided(g, geometry=geometry)
        cotangent = self._with_bits(part if of_complex else functions.view_as_complex(part), True)
        result = list(fn.vjp(cotangent if tensors else cotangent._array, tensors))
        if self.edges[0] is not None:
            self._check_distinct()
            first = result[0]
            if first is None:
                first = functions.zeros_like(part)
            else:
                first = self._with_bits(first if tensors else layer.wrap(first), True)
                if not of_complex:
                    first = functions.view_as_real(functions.contiguous(first))
            full_gradient = functions._replace_strided(g, first, geometry=geometry)
            if of_complex:
                full_gradient = functions.view_as_complex(full_gradient)
            result[0] = full_gradient if tensors else full_gradient._array
        return result

    def name(self) -> str:
        return "torch::autograd::CopySlices"

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"'CopySlices' object has no attribute '{name}'")


def grad_fn(self: Tensor) -> Node | None:
    """The graph node that computed this tensor; None for a leaf.

    >>> import flambeau as torch
    >>> (torch.ones(1, requires_grad=True) * 2).grad_fn.name()
    'MulBackward0'
    """
    base = self._base
    if base is not None and (base._requires_grad or self._node is not None):
        assert self._counter is not None
        if self._view_version != self._counter[0]:
            regenerate_grad_fn(self)
    return public_node(self._node)


def wrap_output(array: np.ndarray, node: Node, number: int, counter: list[int]) -> Tensor:
    """A tensor for an output that its own node saved: same memory, version counter and history."""
    out: Tensor = wrap(array) if isinstance(array, np.ndarray) else array.tensor()
    out._counter = counter
    if array.dtype.kind in "fcV":
        out._requires_grad = True
        out._node = node
        out._output_nr = number
        if node.extra is not None and node.extra.copy_slices is not None:
            attach_view_history(out, node.extra)
    return out


layer.wrap_output = wrap_output

METHODS: dict[str, Any] = {"grad_fn": property(grad_fn)}
