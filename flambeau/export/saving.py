"""`torch.export.save` and `load`: a program as a zip archive of a graph in JSON and tensors.

    archive_format        "flambeau.export"
    version               of this layout
    models/model.json     nodes, signature, structures of inputs and outputs, dynamic sizes
    data/weights.pt       the state dict
    data/constants.pt     other tensors
    data/inputs.pt        the example
    extra/NAME            further files
"""

from __future__ import annotations

import builtins
import io
import json
import math
import operator
import os
import zipfile
from typing import IO, Any

import flambeau as torch

from .._subclasses.fake_tensor import FakeTensorMode
from ..fx.graph import Graph
from ..fx.graph_module import GraphModule
from ..fx.node import Node
from ..nn.parameter import Parameter
from ..ops import aten
from ..ops.overloads import OpOverload, namespace_of
from ..utils._pytree import tree_flatten, tree_unflatten, treespec_dumps, treespec_loads
from . import graph_signature as signatures
from .dynamic_shapes import value_ranges
from .dynamic_sizes import DynamicSize
from .exported_program import ExportedProgram, ModuleCallEntry, ModuleCallSignature
from .graph_signature import ExportGraphSignature, InputKind, InputSpec, OutputKind, OutputSpec
from .tracing.expressions import Expression
from .tracing.symbolic_numbers import is_symbolic
from .tracing.traced_tensor import TracedTensor
from .tracing.tracer import GraphBuilder

__all__ = ["load", "save"]


FORMAT, VERSION = "flambeau.export", 1
_FUNCTIONS = {f"operator.{name}": getattr(operator, name) for name in (
    "getitem", "add", "sub", "mul", "floordiv", "truediv", "mod", "pow", "neg")}


def save(ep: ExportedProgram, f: str | os.PathLike[str] | IO[bytes], *, extra_files: dict[str, Any] | None = None,
         opset_version: dict[str, int] | None = None, pickle_protocol: int = 2) -> None:
    """Save a program to a file, by convention `.pt2`.

    Args:
        ep: the program.
        f: a path or a binary file.
        extra_files: name -> contents of further files in the archive.
        opset_version, pickle_protocol: kept for callers.

    Raises:
        TypeError: `ep` is no ExportedProgram.

    Source: https://docs.pytorch.org/docs/stable/export.html#torch.export.save

    >>> import io
    >>> import flambeau as torch
    >>> file = io.BytesIO()
    >>> torch.export.save(torch.export.export(torch.nn.ReLU(), (torch.ones(2),)), file)
    >>> _ = file.seek(0)
    >>> torch.export.load(file).module()(torch.tensor([-1., 1.]))
    tensor([0., 1.])
    """
    if not isinstance(ep, ExportedProgram):
        raise TypeError(f"The 'ep' parameter must be an instance of 'ExportedProgram', got "
                        f"'{type(ep).__name__}' instead.")
    with zipfile.ZipFile(f, "w", zipfile.ZIP_STORED) as archive:
        archive.writestr("archive_format", FORMAT)
        archive.writestr("version", str(VERSION))
        archive.writestr("models/model.json", json.dumps(_described(ep), indent=1))
        for name, value in (("weights", ep.state_dict), ("constants", ep.constants), ("inputs", _leaves(ep))):
            archive.writestr(f"data/{name}.pt", _tensors(value))
        for name, value in (extra_files or {}).items():
            archive.writestr(f"extra/{name}", value)


def load(f: str | os.PathLike[str] | IO[bytes], *, extra_files: dict[str, Any] | None = None,
         expected_opset_version: dict[str, int] | None = None) -> ExportedProgram:
    """Load a program that `save` wrote.

    Args:
        f: a path or a binary file.
        extra_files: a dictionary whose values become the contents of the files of these names.
        expected_opset_version: kept for callers.

    Raises:
        RuntimeError: the file is no such archive, or one of PyTorch.

    Source: https://docs.pytorch.org/docs/stable/export.html#torch.export.load

    >>> import io
    >>> import flambeau as torch
    >>> file = io.BytesIO()
    >>> torch.export.save(torch.export.export(torch.nn.ReLU(), (torch.ones(2),)), file, extra_files={"note": "text"})
    >>> _ = file.seek(0)
    >>> notes = {"note": ""}
    >>> program = torch.export.load(file, extra_files=notes)
    >>> program.graph_signature.user_outputs, notes
    (('relu',), {'note': 'text'})
    """
    try:
        archive = zipfile.ZipFile(f)
    except zipfile.BadZipFile as error:
        raise RuntimeError(f"{f} is no archive of an exported program") from error
    with archive:
        names = set(archive.namelist())
        if "archive_format" not in names or archive.read("archive_format").decode() != FORMAT:
            raise RuntimeError(f"{f} was not written by torch.export.save of flambeau: archives of PyTorch are not "
                               "read; save the state_dict there, and export the module here")
        if int(archive.read("version")) > VERSION:
            raise RuntimeError(f"{f} was written by a newer version of flambeau")
        for name in extra_files or {}:
            if f"extra/{name}" in names:
                extra_files[name] = archive.read(f"extra/{name}").decode()  # type: ignore[index]
        data = json.loads(archive.read("models/model.json"))
        weights, constants, inputs = (torch.load(io.BytesIO(archive.read(f"data/{name}.pt")), weights_only=True)
                                      for name in ("weights", "constants", "inputs"))
    return _Reader(data).program(_with_parameters(data, weights), constants, inputs)


def _tensors(value: Any) -> bytes:
    buffer = io.BytesIO()
    torch.save({key: x.detach() if isinstance(x, torch.Tensor) else x for key, x in value.items()}, buffer)
    return buffer.getvalue()


def _leaves(ep: ExportedProgram) -> dict[str, Any]:
    if ep.example_inputs is None:
        return {}
    return {str(i): x for i, x in enumerate(tree_flatten(ep.example_inputs)[0])}


def _with_parameters(data: Any, weights: dict[str, Any]) -> dict[str, Any]:
    trained = data["parameters"]
    return {name: Parameter(x, requires_grad=trained[name]) if name in trained else x
            for name, x in weights.items()}


# ----- writing -----

def _described(ep: ExportedProgram) -> dict[str, Any]:
    trace = next((v.trace for node in ep.graph.nodes for v in (node.meta.get("val"),)
                  if isinstance(v, TracedTensor)), None)
    entry = ep.module_call_graph[0].signature
    assert entry is not None
    names = set(ep.graph_signature.parameters)
    return {
        "nodes": [_node(node) for node in ep.graph.nodes],
        "inputs": [_spec(spec) for spec in ep.graph_signature.input_specs],
        "outputs": [_spec(spec) for spec in ep.graph_signature.output_specs],
        "parameters": {name: p.requires_grad for name, p in ep.state_dict.items() if name in names},
        "in_spec": treespec_dumps(entry.in_spec), "out_spec": treespec_dumps(entry.out_spec),
        "argument_names": entry.forward_arg_names, "calls": [each.fqn for each in ep.module_call_graph[1:]],
        "dialect": ep.dialect, "lanes": 1 if trace is None else trace.lanes,
        "ranges": [[str(symbol), symbol.root, *values] for symbol, values in ep.range_constraints.items()],
        "sizes": [list(each) for each in ep._input_constraints],
        "expressions": [] if trace is None else [[list(lanes), _terms(e)] for lanes, e in trace.expressions.items()],
    }


def _terms(expression: Expression) -> list[Any]:
    return [[list(key), value] for key, value in expression.terms.items()]


def _node(node: Node) -> dict[str, Any]:
    target: Any = node.target
    if isinstance(target, OpOverload):
        target = f"{target.namespace}::{target.__name__}"
    elif callable(target):
        target = f"operator.{target.__name__}"
        if target not in _FUNCTIONS:
            raise RuntimeError(f"the function {node.target} of node {node.name} cannot be saved")
    meta: dict[str, Any] = {key: node.meta[key] for key in ("stack_trace", "constant") if key in node.meta}
    if "nn_module_stack" in node.meta:
        meta["nn_module_stack"] = {key: list(value) for key, value in node.meta["nn_module_stack"].items()}
    return {"op": node.op, "name": node.name, "target": target, "args": encode(node.args),
            "kwargs": encode(dict(node.kwargs)), "val": encode(node.meta.get("val")), "meta": meta}


def encode(value: Any) -> Any:
    """A value as JSON.

    Raises:
        RuntimeError: there is no form for it.
    """
    if isinstance(value, Node):
        return {"node": value.name}
    if value is None or isinstance(value, (bool, str)):
        return value
    if isinstance(value, TracedTensor):
        return {"tensor": repr(value.dtype).rpartition(".")[2], "shapes": [list(x._array.shape) for x in value.lanes],
                "strides": [list(x.stride()) for x in value.lanes], "requires_grad": value._requires_grad}
    if is_symbolic(value):
        return {"number": list(value.lanes)}
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float):
        return value if math.isfinite(value) else {"float": str(value)}
    if isinstance(value, complex):
        return {"complex": [value.real, value.imag]}
    if isinstance(value, tuple):
        return {"tuple": [encode(x) for x in value]}
    if isinstance(value, list):
        return [encode(x) for x in value]
    if isinstance(value, dict):
        return {"dict": {key: encode(x) for key, x in value.items()}}
    if isinstance(value, slice):
        return {"slice": [encode(x) for x in (value.start, value.stop, value.step)]}
    for kind in ("dtype", "layout", "memory_format"):
        if isinstance(value, getattr(torch, kind)):
            return {kind: repr(value).rpartition(".")[2]}
    if isinstance(value, torch.device):
        return {"device": str(value)}
    raise RuntimeError(f"a value of type {type(value).__name__} cannot be saved")


def _spec(spec: Any) -> dict[str, Any]:
    argument = spec.arg
    found = {"kind": spec.kind.name, "argument": type(argument).__name__, "name": argument.name, "target": spec.target}
    if hasattr(argument, "value"):
        found["value"] = encode(argument.value)
    if isinstance(spec, InputSpec):
        found["persistent"] = spec.persistent
    return found


# ----- reading -----

class _Reader:
    """Makes a program of its description."""

    def __init__(self, data: dict[str, Any]) -> None:
        self.data = data
        self.builder = GraphBuilder(FakeTensorMode(allow_non_fake_inputs=True), data["lanes"])
        for lanes, terms in data["expressions"]:
            self.builder.expressions[tuple(lanes)] = Expression({tuple(key): value for key, value in terms})
        self.nodes: dict[str, Node] = {}

    def program(self, state_dict: Any, constants: Any, inputs: Any) -> ExportedProgram:
        from ._trace import SymbolOfSize

        data, graph = self.data, Graph()
        for each in data["nodes"]:
            target: Any = each["target"]
            if each["op"] == "call_function":
                target = _FUNCTIONS.get(target) or _overload(target)
            node = graph.create_node(each["op"], target, self.decode(each["args"]), self.decode(each["kwargs"]),
                                     each["name"])
            node.name = each["name"]
            self.nodes[each["name"]] = node
            node.meta.update(each["meta"])
            if "nn_module_stack" in node.meta:
                node.meta["nn_module_stack"] = {k: tuple(v) for k, v in node.meta["nn_module_stack"].items()}
            if each["op"] != "output":
                node.meta["val"] = self.decode(each["val"])
        signature = ExportGraphSignature(
            [InputSpec(InputKind[x["kind"]], self.argument(x), x["target"], x["persistent"]) for x in data["inputs"]],
            [OutputSpec(OutputKind[x["kind"]], self.argument(x), x["target"]) for x in data["outputs"]])
        in_spec = treespec_loads(data["in_spec"])
        entry = ModuleCallEntry("", ModuleCallSignature([], [], in_spec, treespec_loads(data["out_spec"]),
                                                        data["argument_names"]))
        example = tree_unflatten([inputs[str(i)] for i in range(len(inputs))], in_spec) if inputs else None
        ranges = {SymbolOfSize(name, root): value_ranges(low, high) for name, root, low, high in data["ranges"]}
        return ExportedProgram(
            GraphModule(torch.nn.Module(), graph), graph, signature, state_dict, ranges,
            [entry, *map(ModuleCallEntry, data["calls"])], example, constants,
            input_constraints=[DynamicSize(*each) for each in data["sizes"]], dialect=data["dialect"])

    def argument(self, spec: Any) -> Any:
        kind = getattr(signatures, spec["argument"])
        return kind(spec["name"], self.decode(spec["value"])) if "value" in spec else kind(spec["name"])

    def decode(self, value: Any) -> Any:
        """The value of its JSON."""
        if isinstance(value, list):
            return [self.decode(x) for x in value]
        if not isinstance(value, dict):
            return value
        if "shapes" in value:
            return self.tensor(value)
        (kind, content), = value.items()
        if kind == "node":
            return self.nodes[content]
        if kind == "tuple":
            return tuple(self.decode(x) for x in content)
        if kind == "dict":
            return {key: self.decode(x) for key, x in content.items()}
        if kind == "slice":
            return slice(*(self.decode(x) for x in content))
        if kind == "number":
            return self.builder.number(tuple(content))
        if kind in ("float", "complex"):
            return float(content) if kind == "float" else complex(*content)
        return torch.device(content) if kind == "device" else getattr(torch, content)

    def tensor(self, value: Any) -> TracedTensor:
        dtype = getattr(torch, value["tensor"])
        lanes = []
        for shape, strides in builtins.zip(value["shapes"], value["strides"], strict=True):
            meta = torch.empty_strided(shape, strides, dtype=dtype, device="meta")
            mode = self.builder.mode
            fake = mode.fake_tensor_converter.from_meta_and_device(mode, meta, torch.device("cpu"))
            fake._requires_grad = value["requires_grad"]
            lanes.append(fake)
        return TracedTensor(self.builder, tuple(lanes))


def _overload(name: str) -> OpOverload:
    namespace, _, rest = name.partition("::")
    packet, _, which = rest.rpartition(".")
    library: Any = aten if namespace == "aten" else namespace_of(namespace)
    return getattr(getattr(library, packet), which)

