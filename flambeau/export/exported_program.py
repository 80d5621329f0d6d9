"""`ExportedProgram`: a graph of operators, its signature, and the state of the module that it was made of."""

from __future__ import annotations

import copy
import dataclasses
import functools
import importlib
import os
from collections.abc import Iterator
from typing import Any, NoReturn

import flambeau as torch

from ..fx.code.pytree_codegen import _PyTreeCodeGen, _PyTreeInfo
from ..fx.graph import Graph
from ..fx.graph_module import GraphModule
from ..utils._pytree import TreeSpec, tree_flatten
from .decomposition import decomposed, default_decompositions
from .graph_signature import (
    ConstantArgument,
    ExportGraphSignature,
    InputKind,
    OutputKind,
    TensorArgument,
)
from .verifier import Verifier

__all__ = ["ExportedProgram", "ModuleCallEntry", "ModuleCallSignature", "default_decompositions"]

#: suffix of a file -> the module, imported when it is needed, and the function that saves a program in that form
_FORMS = {".so": (".aot", "compile_program"), ".o": (".aot", "compile_program"), ".wasm": (".aot", "compile_program"),
          ".onnx": ("..onnx.exporting", "save_program"), ".pt2": (".saving", "save")}


@dataclasses.dataclass
class ModuleCallSignature:
    """The structure of a module's inputs and outputs.

    >>> import flambeau as torch
    >>> program = torch.export.export(torch.nn.ReLU(), (torch.ones(1),))
    >>> program.module_call_graph[0].signature.forward_arg_names
    ['input']
    """

    inputs: list[Any]
    outputs: list[Any]
    in_spec: TreeSpec
    out_spec: TreeSpec
    forward_arg_names: list[str] | None = None

    def replace_all_uses_with(self, original_node: Any, new_node: Any) -> None:
        """Name another node where one is named."""
        for each in (*self.inputs, *self.outputs):
            if each.name == original_node.name:
                each.name = new_node.name


@dataclasses.dataclass
class ModuleCallEntry:
    """A module that was called, and its signature where that is kept.

    >>> import flambeau as torch
    >>> program = torch.export.export(torch.nn.Sequential(torch.nn.ReLU()), (torch.ones(1),))
    >>> [entry.fqn for entry in program.module_call_graph]
    ['', '0']
    """

    fqn: str
    signature: ModuleCallSignature | None = None


@dataclasses.dataclass
class CallSpec:
    """The structures of inputs and outputs."""

    in_spec: TreeSpec | None
    out_spec: TreeSpec | None


class ExportedProgram:
    """A program of operators, without side effects on the module that it was made of.

    Attributes:
        graph_module: the graph, whose inputs are parameters, buffers, constants, then the program's inputs.
        graph_signature: what inputs and outputs stand for.
        state_dict: parameters and persistent buffers by name.
        constants: other tensors by name.
        range_constraints: symbol of a dynamic size -> its range.

    Source: https://docs.pytorch.org/docs/stable/export.html#torch.export.ExportedProgram

    >>> import flambeau as torch
    >>> ep = torch.export.export(torch.nn.ReLU(), (torch.ones(2),))
    >>> ep.module()(torch.tensor([-1., 1.]))
    tensor([0., 1.])
    """

    def __init__(self, root: Any, graph: Graph, graph_signature: ExportGraphSignature, state_dict: dict[str, Any],
                 range_constraints: dict[Any, Any], module_call_graph: list[ModuleCallEntry],
                 example_inputs: tuple[tuple[Any, ...], dict[str, Any]] | None = None,
                 constants: dict[str, Any] | None = None, *, verifiers: Any = None,
                 input_constraints: list[Any] | None = None, dialect: str = "TRAINING") -> None:
        graph._codegen = type(Graph()._codegen)()
        self._graph_module = root if isinstance(root, GraphModule) else GraphModule(root, graph)
        self._graph_signature, self._state_dict = graph_signature, state_dict
        self._range_constraints, self._module_call_graph = range_constraints, module_call_graph
        self._example_inputs, self._constants = example_inputs, constants or {}
        self._input_constraints = input_constraints or []
        self._verifiers, self._dialect = verifiers or [Verifier], dialect

    @property
    def graph_module(self) -> GraphModule:
        """The graph as a module."""
        return self._graph_module

    @property
    def graph(self) -> Graph:
        """The graph."""
        return self._graph_module.graph

    @property
    def graph_signature(self) -> ExportGraphSignature:
        """What inputs and outputs stand for."""
        return self._graph_signature

    @property
    def state_dict(self) -> dict[str, Any]:
        """Parameters and persistent buffers by name."""
        return self._state_dict

    @property
    def constants(self) -> dict[str, Any]:
        """Buffers that are not persistent, and other tensors, by name."""
        return self._constants

    tensor_constants = constants

    @property
    def range_constraints(self) -> dict[Any, Any]:
        """Symbol of a dynamic size -> its range."""
        return self._range_constraints

    @property
    def module_call_graph(self) -> list[ModuleCallEntry]:
        """The modules that were called."""
        return self._module_call_graph

    @property
    def example_inputs(self) -> Any:
        """The arguments that it was made with: positional ones, and those by name."""
        return self._example_inputs

    @example_inputs.setter
    def example_inputs(self, value: Any) -> None:
        self._example_inputs = value

    @property
    def dialect(self) -> str:
        """Which operators the graph consists of: "TRAINING", or "ATEN" after `run_decompositions`."""
        return self._dialect

    @property
    def verifier(self) -> Any:
        """The class whose `check` `validate` calls: the first of `verifiers`.

        Raises:
            RuntimeError: it is set.
        """
        return self._verifiers[0]

    @verifier.setter
    def verifier(self, value: Any) -> None:
        raise RuntimeError("Unable to set ExportedProgram's verifier attribute.")

    @property
    def verifiers(self) -> Any:
        """The classes whose `check` `validate` calls.

        Raises:
            RuntimeError: they are set.
        """
        return self._verifiers

    @verifiers.setter
    def verifiers(self, value: Any) -> None:
        raise RuntimeError("Unable to set ExportedProgram's verifiers attribute.")

    @property
    def call_spec(self) -> CallSpec:
        """The structures of inputs and outputs."""
        signature = self._module_call_graph[0].signature
        assert signature is not None
        return CallSpec(signature.in_spec, signature.out_spec)

    def parameters(self) -> Iterator[Any]:
        """The parameters."""
        for _, parameter in self.named_parameters():
            yield parameter

    def named_parameters(self) -> Iterator[tuple[str, Any]]:
        """The names and parameters."""
        for name in self.graph_signature.parameters:
            yield name, self.state_dict[name]

    def buffers(self) -> Iterator[Any]:
        """The buffers."""
        for _, buffer in self.named_buffers():
            yield buffer

    def named_buffers(self) -> Iterator[tuple[str, Any]]:
        """The names and buffers."""
        others = set(self.graph_signature.non_persistent_buffers)
        for name in self.graph_signature.buffers:
            yield name, (self.constants if name in others else self.state_dict)[name]

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise RuntimeError("Unable to call ExportedProgram directly. You should use `exported_program.module()` "
                           "instead.")

    def __str__(self) -> str:
        code = self.graph_module.print_readable(print_output=False, colored=False).replace("\n", "\n    ")
        signature = str(self.graph_signature).replace("\n", "\n    ")
        return (f"ExportedProgram:\n    {code}\nGraph signature: {signature}\n"
                f"Range constraints: {self.range_constraints}\n")

    def validate(self) -> None:
        """Check that the graph is well formed, by each of the verifiers.

        Raises:
            SpecViolationError: the signature has other inputs or outputs than the graph.
            RuntimeError: the graph is not well formed.
        """
        for verifier in self._verifiers:
            verifier().check(self)

    def module(self, check_guards: bool = True) -> GraphModule:
        """A module that computes what the program computes, with its parameters and buffers.

        Args:
            check_guards: whether calls check the sizes of inputs.

        >>> import flambeau as torch
        >>> ep = torch.export.export(torch.nn.Linear(2, 1), (torch.ones(3, 2),))
        >>> ep.module()(torch.ones(3, 2)).shape
        flambeau.Size([3, 1])
        """
        module = unlifted(self, check_guards)
        for name in ("train", "eval"):
            setattr(module, name, functools.partial(_refused, name))
        return module

    def run_decompositions(self, decomp_table: dict[Any, Any] | None = None,
                           decompose_custom_triton_ops: bool = False) -> ExportedProgram:
        """A program of fewer operators, none of which writes.

        Args:
            decomp_table: overload -> function that computes it of others; default: those of PyTorch's core operators.

        >>> import flambeau as torch
        >>> ep = torch.export.export(torch.nn.Linear(2, 1), (torch.ones(3, 2),)).run_decompositions()
        >>> [str(node.target) for node in ep.graph.nodes if node.op == "call_function"]
        ['aten.permute.default', 'aten.addmm.default']
        """
        return decomposed(self, decomp_table)

    def save(self, path: str | os.PathLike[str], *, name: str | None = None, target: str | None = None,
             sizes: dict[str, Any] | None = None, weights: str | None = None, weight_dtype: str | None = None,
             threads: int | None = None, pack_weights: bool | None = None) -> Any:
        """Save the program in the form that the suffix of a path names.

        `.so`: a shared library with a C interface, and its header. `.o`: the same as an object file. `.wasm`: a
        WebAssembly module, and its loader in JavaScript. `.onnx`: an ONNX model. `.pt2`: `torch.export.save`'s archive.

        Args:
            path: of the file.
            name: the prefix of the C functions; default: the file's name.
            target: what code is compiled for (`flambeau.export.aot.NAMES`); default: x86-64 or what this machine is.
            sizes: name of a dynamic size -> the values for which code is compiled; default: its range, or, where it
                has no maximum, 1 to 8, 16, 32 and 64.
            weights: "inside" the file (the default), or "beside" it in a safetensors file, which may be mapped.
            weight_dtype: in which large float32 weights are stored, "bfloat16" or "int8", to be decoded once.
            threads: how many threads a run is planned for; default: 1.
            pack_weights: whether weights inside are stored as kernels read them, a copy for each processor. Default:
                for targets of one processor, or up to a megabyte.

        Returns:
            For `.so`, `.o` and `.wasm` a report of files, memory and kernels, else None.

        Raises:
            ExportError: the program cannot be compiled.
            ValueError: the suffix or target is unknown, or an option is not one of this form.

        >>> import os, tempfile
        >>> import flambeau as torch
        >>> program = torch.export.export(torch.nn.ReLU(), (torch.ones(2),))
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     program.save(os.path.join(folder, "relu.pt2"))
        ...     os.listdir(folder)
        ['relu.pt2']
        """
        suffix = os.path.splitext(path)[1]
        if suffix not in _FORMS:
            raise ValueError(f"a program is saved as {', '.join(_FORMS)}, not as {suffix!r} ({os.fspath(path)!r})")
        options = {key: value for key, value in (("name", name), ("target", target), ("sizes", sizes), (
            "weights", weights), ("weight_dtype", weight_dtype), ("threads", threads),
                                            ("pack_weights", pack_weights)) if value is not None}
        if options and suffix in (".onnx", ".pt2"):
            raise ValueError(f"only compiled programs (.so, .o, .wasm) take {', '.join(options)}, not {suffix}")
        module, function = _FORMS[suffix]
        return getattr(importlib.import_module(module, __package__), function)(self, path, **options)

    def _update(self, graph_module: GraphModule, graph_signature: ExportGraphSignature, *, state_dict: Any = None,
                constants: Any = None, dialect: str | None = None) -> ExportedProgram:
        return ExportedProgram(graph_module, graph_module.graph, graph_signature, dict(
            self.state_dict if state_dict is None else state_dict), dict(self.range_constraints),
            copy.deepcopy(self._module_call_graph), self.example_inputs, dict(
                self.constants if constants is None else constants), input_constraints=self._input_constraints,
            dialect=dialect or self.dialect)

    def __deepcopy__(self, memo: dict[int, Any]) -> ExportedProgram:
        graph_module = copy.deepcopy(self.graph_module, memo)
        return self._update(graph_module, copy.deepcopy(self.graph_signature, memo))


# ----- the module of a program -----

class GuardsFn(torch.nn.Module):  # type: ignore[misc]
    """Checks the inputs of an exported module.

    Args:
        checks: pairs of a condition of the flat inputs and its text.
    """

    def __init__(self, checks: list[tuple[Any, str]]) -> None:
        super().__init__()
        self._checks = checks

    def forward(self, *inputs: Any) -> None:
        """Check the inputs.

        Raises:
            AssertionError: a condition does not hold.
        """
        for condition, text in self._checks:
            if not condition(inputs):
                raise AssertionError(f"Guard failed: {text}")


def _refused(name: str, *args: Any, **kwargs: Any) -> NoReturn:
    raise NotImplementedError(f"Calling {name}() is not supported yet.")


def unlifted(ep: ExportedProgram, check_guards: bool) -> GraphModule:
    """The module of a program: parameters, buffers and constants are attributes again."""
    root = torch.nn.Module()
    graph = Graph()
    values: dict[Any, Any] = {}
    signature = ep.graph_signature
    others = set(signature.non_persistent_buffers)
    entry = ep.module_call_graph[0].signature
    assert entry is not None
    placeholders = [node for node in ep.graph.nodes if node.op == "placeholder"]
    inputs = []
    by_target: dict[str, Any] = {}
    for node, spec in zip(placeholders, signature.input_specs, strict=True):
        if spec.kind == InputKind.USER_INPUT:
            inputs.append(node)
            continue
        assert spec.target is not None
        if spec.kind == InputKind.PARAMETER:
            _assign(root, spec.target, ep.state_dict[spec.target])
        elif spec.kind == InputKind.BUFFER:
            value = (ep.constants if spec.target in others else ep.state_dict)[spec.target]
            _assign(root, spec.target, value, buffer=True, persistent=bool(spec.persistent))
        else:
            _assign(root, spec.target, ep.constants[spec.target], buffer=True, persistent=False)
        values[node] = graph.create_node("get_attr", spec.target, (), {}, spec.target.replace(".", "_"))
        values[node].meta = dict(node.meta)
        by_target[spec.target] = values[node]
    for node in inputs:
        values[node] = graph.node_copy(node, values.__getitem__)
    if check_guards:
        root.add_module("_guards_fn", GuardsFn(_checks(ep, inputs)))
        graph.create_node("call_module", "_guards_fn", tuple(values[node] for node in inputs), {}, "_guards_fn")
    for node in ep.graph.nodes:
        if node.op == "placeholder":
            continue
        if node.op != "output":
            values[node] = graph.node_copy(node, values.__getitem__)
            continue
        results = []
        for value, result_spec in zip(node.args[0], signature.output_specs, strict=True):
            mapped = values.get(value, value) if not isinstance(value, (int, float, str, bool)) else value
            if result_spec.kind in (OutputKind.BUFFER_MUTATION, OutputKind.PARAMETER_MUTATION):
                graph.call_function(torch.ops.aten.copy_.default, (by_target[result_spec.target or ""], mapped))
            elif result_spec.kind == OutputKind.USER_INPUT_MUTATION:
                target = next(values[each] for each in inputs if each.name == result_spec.target)
                graph.call_function(torch.ops.aten.copy_.default, (target, mapped))
            else:
                results.append(mapped)
        graph.output(tuple(results))
    names = entry.forward_arg_names or []
    graph._codegen = _PyTreeCodeGen(_PyTreeInfo(list(names), entry.in_spec, entry.out_spec))
    module = GraphModule(root, graph)
    module._in_spec, module._out_spec = entry.in_spec, entry.out_spec
    module.train(True)
    module.register_forward_pre_hook(_check_structure, with_kwargs=True)
    module.module_call_graph = ep.module_call_graph
    return module


def _check_structure(module: Any, args: Any, kwargs: Any) -> Any:
    """Check that arguments have the structure of the example.

    Raises:
        ValueError: they have another one.
    """
    kwargs = {key: kwargs[key] for key in [*(key for key in _names(module._in_spec) if key in kwargs), *(
        key for key in kwargs if key not in _names(module._in_spec))]}
    _, spec = tree_flatten((tuple(args), dict(kwargs)))
    if spec != module._in_spec:
        raise ValueError(f"Trying to flatten user inputs with exported input tree spec: \n{module._in_spec}\nbut "
                         f"actually got inputs with tree spec of: \n{spec}.\nPlease check that the inputs have the "
                         "same number and type of args and kwargs as the ones you used when tracing.")
    return args, kwargs


def _names(spec: TreeSpec) -> list[str]:
    return list(spec.children()[1].context or ())


def _assign(root: Any, target: str, value: Any, buffer: bool = False, persistent: bool = True) -> None:
    *path, name = target.split(".")
    for part in path:
        child = root._modules.get(part)
        if child is None:
            child = torch.nn.Module()
            root.add_module(part, child)
        root = child
    if buffer:
        root.register_buffer(name, value, persistent=persistent)
    else:
        root.register_parameter(name, value)


def _checks(ep: ExportedProgram, inputs: list[Any]) -> list[tuple[Any, str]]:
    """The conditions on the flat inputs, with their texts."""
    found: list[tuple[Any, str]] = []
    sizes = {(each.leaf, each.dim): each for each in ep._input_constraints}
    roots: dict[str, tuple[int, Any]] = {}
    for i, node in enumerate(inputs):
        value = node.meta.get("val")
        if not isinstance(value, torch.Tensor):
            if isinstance(value, (int, float, bool, str)) and not isinstance(value, torch.Tensor):
                found.append(((lambda xs, i=i, value=value: xs[i] == value), f"{node.name} == {value!r}"))
            continue
        for d, n in enumerate(value.shape):
            what = f"{node.name}.size()[{d}]"
            size = sizes.get((i, d))
            if size is None:
                found.append(((lambda xs, i=i, d=d, n=n: xs[i].dim() > d and xs[i].shape[d] == n), f"{what} == {n}"))
                continue
            known = roots.get(size.root)
            if known is not None:
                j, other = known
                found.append(((lambda xs, i=i, d=d, s=size, j=j, o=other: (xs[i].shape[d] - s.offset) * o.factor == (
                    xs[j].shape[o.dim] - o.offset) * s.factor), f"{what} == {inputs[j].name}.size()[{other.dim}]"))
                continue
            roots[size.root] = i, size
            low, high = ep.range_constraints[ep_symbol(ep, size)]
            found.append(((lambda xs, i=i, d=d, s=size, low=low: xs[i].shape[d] >= low * s.factor + s.offset),
                          f"{what} >= {low * size.factor + size.offset}"))
            if high < 2**62:
                found.append(((lambda xs, i=i, d=d, s=size, high=high: xs[i].shape[d] <= high * s.factor + s.offset),
                              f"{what} <= {high * size.factor + size.offset}"))
    return found


def ep_symbol(ep: ExportedProgram, size: Any) -> Any:
    """The symbol of a dynamic size."""
    return next(symbol for symbol in ep.range_constraints if symbol.root == size.root)


def argument_spec(node: Any) -> Any:
    """The argument that stands for a node, or for a constant."""
    return TensorArgument(node.name) if hasattr(node, "name") else ConstantArgument("", node)

