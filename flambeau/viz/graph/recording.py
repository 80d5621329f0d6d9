"""`watching()`: which line of the user's code and which module made each node, what it gave, what backward did.

    with watching(model) as watch:
        loss = criterion(model(x), y)
        loss.backward()
    watch.events                    # dicts, in the order in which things happened

Afterwards, too, `loss.graph()` knows the lines and modules of the nodes made in the block: they are noted beside the
node, for as long as it lives.
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
from ...engine.nodes.op_node import public_node
from ...engine.observers import Observer
from ...modes import grad_mode
from ...ops.declare import Op
from ..training.statistics import statistics
from .graph import Graph
from .provenance import Origin, Place, label_of, note_kind, note_label, note_origin, was_noted
from .saved_memory import bytes_held

_PACKAGE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))) + os.sep
_MODULE_CALL = "CallMixin.__call__"  # what runs every module's forward


class watching(Observer, Interceptor):
    """A block whose operators, backward passes and optimizer steps are written down.

    Args:
        model: whose submodules and parameters give the names; without it, each outermost module that is called names
            what is in it. The model's own class comes first: `Net.encoder.0`.
        values: note statistics of what each node gives and of what each backward step is given.
        graphs: keep a picture of the graph, as `Graph.to_dict()` gives it, at the beginning of every backward pass.

    Attributes:
        events: dictionaries in the order of what happened. Each has "kind", "step" (how many optimizer steps came
            before it) and, but for steps, "seq": the node's birth number, as `GraphNode.seq` has it. Kinds:

            * "forward": a node was made. "name", "operator", "module", "source" [file, line, text], "outputs" (one
              dictionary each: "shape" and "dtype" or the whole statistics; `None` for what is no tensor), "written"
              (whether in place).
            * "backward": a node ran. "name", "pass", "cotangents" and "found" (of its outputs and inputs, each
              statistics or `None`).
            * "accumulate": a leaf's gradient is complete. "label", "pass", "gradient" (what arrived), "grad" (what
              `.grad` holds then; `None` if `autograd.grad` took it: "captured").
            * "free": a node forgot what it saved. "pass", "bytes".
            * "step": an optimizer stepped. "optimizer", "parameters" {name: statistics}.

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
        self.keeps_graphs = graphs
        self.events: list[dict[str, Any]] = []
        self.graphs: list[dict[str, Any]] = []
        self.step = 0
        self.passes = 0
        self._open: list[int] = []  # the numbers of the passes that run, one within another
        self._modules: dict[int, tuple[Any, str]] = {}  # identity of a module -> itself, and its path
        self._roots: dict[str, int] = {}  # class -> how many outermost modules of it were met
        self._arriving: dict[str, Any] | None = None
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
        """Let a module, those within it and its parameters have paths that begin with its class."""
        kind = type(model).__name__
        number = self._roots[kind] = self._roots.get(kind, 0) + 1
        root = kind if number == 1 else f"{kind}({number})"
        for name, module in model.named_modules():
            path = f"{root}.{name}" if name else root
            self._modules.setdefault(id(module), (module, path))
            note_kind(path, type(module).__name__)
        for name, parameter in model.named_parameters():
            note_label(parameter, name)

    def _whereabouts(self) -> tuple[Place | None, str | None]:
        """The innermost frame outside this library, and the path of the innermost module whose call is running."""
        place = None
        outside: list[str] = []  # classes of modules that are in no model, innermost first
        frame: Any = sys._getframe(1)
        calls = []
        while frame is not None:
            code = frame.f_code
            if not code.co_filename.startswith(_PACKAGE):
                if place is None:
                    place = Place(code.co_filename, frame.f_lineno, code.co_name)
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
        if node is None or (not in_place and was_noted(node)):
            return
        made = [(node, outs)]
        if in_place and first._base is not None and first._base._node is not None:  # the base has a new history, too
            base = first._base
            node = base.grad_fn
            made += [(node, [base]), (getattr(node, "fn", None), outs)]
            outs = [base]
        self._made(node, op.name.lstrip("_") + "_" * in_place, outs, made, in_place)

    def on_custom_function(self, node: Any, inputs: Sequence[Any], outs: Sequence[Any]) -> None:
        self._made(node, node._forward_cls.__name__, outs, [(node, outs)], bool(node.dirty_tensors))

    def _made(self, node: Any, operator: str, outs: Sequence[Any], made: Sequence[tuple[Any, Sequence[Any]]],
              in_place: bool) -> None:
        place, module = self._whereabouts()
        for each, results in made:
            if each is not None:
                shown = tuple((x._array.shape, x.dtype.name) for x in results if isinstance(x, Tensor))
                note_origin(each, Origin(place, module, shown))
        outputs = [self._shown(x._array) if isinstance(x, Tensor) else None for x in outs]
        self._note("forward", node, name=type(node).__name__, operator=operator, module=module,
                   source=None if place is None else [place.file, place.line, place.code], outputs=outputs,
                   written=in_place)

    def _shown(self, value: Any) -> Any:
        """Statistics, or only shape and dtype, of a tensor or an array."""
        if value is None:
            return None
        array = np.asarray(getattr(value, "_array", value))
        if self.values:
            return statistics(array)
        return {"shape": list(array.shape), "dtype": dtypes.of(array.dtype).name}

    def _note(self, kind: str, node: Any, **more: Any) -> dict[str, Any]:
        event = {"kind": kind, "step": self.step, "seq": None if node is None else node.seq, **more}
        self.events.append(event)
        return event

    # ----- backward -----

    def on_backward_begin(self, roots: Sequence[tuple[Any, int]], cotangents: Sequence[Any]) -> None:
        number = self.passes
        self.passes += 1
        self._open.append(number)
        if self.keeps_graphs:
            graph = Graph([public_node(node) for node, _ in roots])
            values = {node.seq: self._shown(node.variable._array) for node in graph if node.variable is not None}
            self.graphs.append({"pass": number, "step": self.step, "graph": graph.to_dict(), "values": values})

    def on_backward_end(self) -> None:
        self._open.pop()

    @property
    def _pass(self) -> int:
        return self._open[-1]

    def on_node(self, node: Any, cotangents: Any, found: Sequence[Any]) -> None:
        given = cotangents if isinstance(cotangents, (list, tuple)) else [cotangents]
        self._note("backward", node, name=type(public_node(node)).__name__, cotangents=[self._shown(g) for g in given],
                   found=[self._shown(g) for g in found], **{"pass": self._pass})

    def on_release(self, node: Any) -> None:
        held = bytes_held(node)
        if held:
            self._note("free", node, name=type(public_node(node)).__name__, bytes=held, **{"pass": self._pass})

    def on_leaf(self, leaf: Any, cotangent: Any, captured: bool) -> None:
        if not leaf.is_leaf:
            return
        self._arriving = self._note("accumulate", leaf, name="AccumulateGrad", label=label_of(leaf.variable),
                                    gradient=self._shown(cotangent), grad=None, captured=captured,
                                    **{"pass": self._pass})

    def on_accumulate(self, leaf: Any) -> None:
        if self._arriving is not None and leaf.variable._grad is not None:
            self._arriving["grad"] = self._shown(leaf.variable._grad)
        self._arriving = None

    def on_optimizer_step(self, optimizer: Any) -> None:
        named: dict[str, Any] = {}
        for group in optimizer.param_groups:
            for number, parameter in enumerate(group["params"]):
                named[label_of(parameter) or f"parameter {number + len(named)}"] = self._shown(parameter)
        self.events.append({"kind": "step", "step": self.step, "seq": None, "optimizer": type(optimizer).__name__,
                            "parameters": named})
        self.step += 1


__all__ = ["watching"]
