"""`watching()`: records the source line, module and outputs of each node, and the events of backward passes.

    with watching(model) as watch:
        loss = criterion(model(x), y)
        loss.backward()
    watch.events                    # dictionaries, in chronological order

`loss.graph()` shows the lines and modules of these nodes after the block, too (`provenance`).
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np

from ... import dtypes
from ..._tensor.dispatch.interception import Interceptor
from ..._tensor.tensor import Tensor
from ...backends.bit_views import resolve
from ...engine.nodes.op_node import public_node
from ...engine.observers import Observer
from ...modes import grad_mode
from ...ops.declare import Op
from ..training.statistics import statistics
from .graph import Graph
from .provenance import Origin, SourceLine, has_origin, label_of, record_label, record_module_class, record_origin
from .saved_memory import saved_bytes

_PACKAGE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))) + os.sep
_MODULE_CALL = "CallMixin.__call__"  # the frame that runs a module's forward


class watching(Observer, Interceptor):
    """A block whose operators, backward passes and optimizer steps are recorded.

    Args:
        model: the module whose submodules and parameters are named; default: each outermost module that is called.
            Paths begin with the class: `Net.encoder.0`.
        values: record statistics of the outputs of nodes and of cotangents.
        graphs: record `Graph.to_dict()` at the beginning of every backward pass.

    Attributes:
        events: dictionaries in chronological order. Each has "kind", "step" (the number of optimizer steps before it)
            and, except for steps, "seq" (the node's sequence number, `GraphNode.seq`). Kinds:

            * "forward": a node was created. "name", "operator", "module", "source" [file, line, text], "outputs" (one
              dictionary each: "shape" and "dtype", or statistics; `None` for non-tensors), "written" (whether in
              place).
            * "backward": a node was evaluated. "name", "pass", "cotangents" and "found" (of its outputs and inputs,
              each statistics or `None`).
            * "accumulate": a leaf's gradient is complete. "label", "pass", "gradient", "grad" (`.grad` after the
              accumulation; `None` if `autograd.grad` "captured" it).
            * "free": a node freed its saved values. "pass", "bytes".
            * "step": an optimizer updated its parameters. "optimizer", "parameters" {name: statistics}.

        graphs: one dictionary for each backward pass: "pass", "step", "graph", and "values": the leaves' statistics by
            "seq".

    >>> import flambeau as torch
    >>> from flambeau.viz import watching
    >>> x = torch.tensor([1., 2.], requires_grad=True)
    >>> with watching() as watch:
    ...     (x * x).sum().backward()
    >>> [(event["kind"], event.get("name", "x")) for event in watch.events]  # doctest: +NORMALIZE_WHITESPACE
    [('forward', 'MulBackward0'), ('forward', 'SumBackward0'), ('backward', 'SumBackward0'),
     ('backward', 'MulBackward0'), ('free', 'MulBackward0'), ('accumulate', 'AccumulateGrad')]
    >>> watch.events[0]["source"][2], watch.events[3]["cotangents"][0]["values"]
    ('(x * x).sum().backward()', [1.0, 1.0])
    """

    def __init__(self, model: Any = None, values: bool = True, graphs: bool = True) -> None:
        self.values = values
        self.records_graphs = graphs
        self.events: list[dict[str, Any]] = []
        self.graphs: list[dict[str, Any]] = []
        self.step = 0
        self.passes = 0
        self._open: list[int] = []  # the numbers of the running passes, outermost first
        self._modules: dict[int, tuple[Any, str]] = {}  # id of a module -> module, path
        self._roots: dict[str, int] = {}  # class -> number of outermost modules
        self._accumulating: dict[str, Any] | None = None
        if model is not None:
            self.name_modules(model)

    def __enter__(self) -> watching:
        Interceptor.__enter__(self)
        self.attach()
        return self

    def __exit__(self, *exception: object) -> None:
        self.detach()
        Interceptor.__exit__(self)

    # ----- names -----

    def name_modules(self, model: Any) -> None:
        """Assign paths to a module, its submodules and its parameters; they begin with its class."""
        kind = type(model).__name__
        number = self._roots[kind] = self._roots.get(kind, 0) + 1
        root = kind if number == 1 else f"{kind}({number})"
        for name, module in model.named_modules():
            path = f"{root}.{name}" if name else root
            self._modules.setdefault(id(module), (module, path))
            record_module_class(path, type(module).__name__)
        for name, parameter in model.named_parameters():
            record_label(parameter, name)

    def _source_and_module(self) -> tuple[SourceLine | None, str | None]:
        """The innermost frame outside this library, and the path of the innermost module whose call is running."""
        place = None
        outside: list[str] = []  # classes of modules without a path, innermost first
        frame: Any = sys._getframe(1)
        calls = []
        while frame is not None:
            code = frame.f_code
            if not code.co_filename.startswith(_PACKAGE):
                if place is None:
                    place = SourceLine(code.co_filename, frame.f_lineno, code.co_name)
            elif code.co_qualname == _MODULE_CALL:
                calls.append(frame.f_locals["self"])
            frame = frame.f_back
        if not calls:
            return place, None
        for module in calls:
            known = self._modules.get(id(module))
            if known is not None:
                return place, ".".join([known[1], *reversed(outside)])
            outside.append(type(module).__name__)
        self.name_modules(calls[-1])
        known = self._modules.get(id(calls[0]))
        return place, self._modules[id(calls[-1])][1] if known is None else known[1]

    # ----- forward -----

    def on_operator(self, op: Op, inputs: Sequence[Any], params: dict[str, Any], outs: Sequence[Any],
                    in_place: bool) -> None:
        first = outs[0] if outs else None
        if not isinstance(first, Tensor) or not grad_mode.get() or not op.differentiable:
            return
        node = next((x.grad_fn for x in outs if x._node is not None or x._view_version == -1), None)
        if node is None or (not in_place and has_origin(node)):
            return
        created = [(node, outs)]
        if in_place and first._base is not None and first._base._node is not None:  # the base has a new history, too
            base = first._base
            node = base.grad_fn
            created += [(node, [base]), (getattr(node, "fn", None), outs)]
            outs = [base]
        self._record_forward(node, op.name.lstrip("_") + "_" * in_place, outs, created, in_place)

    def on_custom_function(self, node: Any, inputs: Sequence[Any], outs: Sequence[Any]) -> None:
        self._record_forward(node, node._forward_cls.__name__, outs, [(node, outs)], bool(node.dirty_tensors))

    def _record_forward(self, node: Any, operator: str, outs: Sequence[Any],
                        created: Sequence[tuple[Any, Sequence[Any]]], in_place: bool) -> None:
        place, module = self._source_and_module()
        for each, results in created:
            if each is not None:
                shapes = tuple((x._array.shape, x.dtype.name) for x in results if isinstance(x, Tensor))
                record_origin(each, Origin(place, module, shapes))
        outputs = [self._summary(x._array) if isinstance(x, Tensor) else None for x in outs]
        self._record("forward", node, name=type(node).__name__, operator=operator, module=module,
                   source=None if place is None else [place.file, place.line, place.code], outputs=outputs,
                   written=in_place)

    def _summary(self, value: Any) -> Any:
        """Statistics, or only shape and dtype, of a tensor or an array."""
        if value is None:
            return None
        array = np.asarray(resolve(getattr(value, "_array", value)))
        if self.values:
            return statistics(array)
        return {"shape": list(array.shape), "dtype": dtypes.of(array.dtype).name}

    def _record(self, kind: str, node: Any, **more: Any) -> dict[str, Any]:
        event = {"kind": kind, "step": self.step, "seq": None if node is None else node.seq, **more}
        self.events.append(event)
        return event

    # ----- backward -----

    def on_backward_begin(self, roots: Sequence[tuple[Any, int]], cotangents: Sequence[Any]) -> None:
        number = self.passes
        self.passes += 1
        self._open.append(number)
        if self.records_graphs:
            graph = Graph([public_node(node) for node, _ in roots])
            values = {node.seq: self._summary(node.variable._array) for node in graph if node.variable is not None}
            self.graphs.append({"pass": number, "step": self.step, "graph": graph.to_dict(), "values": values})

    def on_backward_end(self) -> None:
        self._open.pop()

    @property
    def _pass(self) -> int:
        return self._open[-1]

    def on_node(self, node: Any, cotangents: Any, found: Sequence[Any]) -> None:
        gs = cotangents if isinstance(cotangents, (list, tuple)) else [cotangents]
        self._record("backward", node, name=type(public_node(node)).__name__, cotangents=[self._summary(g) for g in gs],
                   found=[self._summary(g) for g in found], **{"pass": self._pass})

    def on_release(self, node: Any) -> None:
        size = saved_bytes(node)
        if size:
            self._record("free", node, name=type(public_node(node)).__name__, bytes=size, **{"pass": self._pass})

    def on_leaf(self, leaf: Any, cotangent: Any, captured: bool) -> None:
        if not leaf.is_leaf:
            return
        self._accumulating = self._record("accumulate", leaf, name="AccumulateGrad", label=label_of(leaf.variable),
                                    gradient=self._summary(cotangent), grad=None, captured=captured,
                                    **{"pass": self._pass})

    def on_accumulate(self, leaf: Any) -> None:
        if self._accumulating is not None and leaf.variable._grad is not None:
            self._accumulating["grad"] = self._summary(leaf.variable._grad)
        self._accumulating = None

    def on_optimizer_step(self, optimizer: Any) -> None:
        named: dict[str, Any] = {}
        for group in optimizer.param_groups:
            for number, parameter in enumerate(group["params"]):
                named[label_of(parameter) or f"parameter {number + len(named)}"] = self._summary(parameter)
        self.events.append({"kind": "step", "step": self.step, "seq": None, "optimizer": type(optimizer).__name__,
                            "parameters": named})
        self.step += 1


__all__ = ["watching"]
