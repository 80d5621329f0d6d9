"""`torch.export.unflatten`: a program as modules that are nested as those that it was exported from."""

from __future__ import annotations

from typing import Any

import flambeau as torch

from ..fx.graph import Graph
from ..fx.graph_module import GraphModule
from ..fx.node import Node, map_arg
from ..utils._pytree import tree_flatten, tree_unflatten
from .exported_program import ExportedProgram
from .graph_signature import InputKind, OutputKind

__all__ = ["FlatArgsAdapter", "InterpreterModule", "InterpreterModuleDispatcher", "UnflattenedModule", "unflatten"]


class FlatArgsAdapter:
    """Adapts arguments of another structure to that of the program: subclasses define `adapt`.

    >>> import flambeau as torch
    >>> class First(torch.export.FlatArgsAdapter):
    ...     def adapt(self, target_spec, input_spec, input_args, metadata=None, obj=None):
    ...         return input_args[:1]
    >>> program = torch.export.export(torch.nn.ReLU(), (torch.ones(1),))
    >>> torch.export.unflatten(program, First())(torch.ones(1), torch.zeros(1))
    tensor([1.])
    """

    def adapt(self, target_spec: Any, input_spec: Any, input_args: list[Any], metadata: dict[str, Any] | None = None,
              obj: Any = None) -> list[Any]:
        """The leaves of arguments in the program's order."""
        raise NotImplementedError

    def get_flat_arg_paths(self) -> list[str]:
        """The paths of the arguments' leaves that are used: none are named."""
        return []


class InterpreterModule(torch.nn.Module):  # type: ignore[misc]
    """A module that runs a graph, whose placeholders are its arguments.

    Attributes:
        graph: the graph; parameters are read by `get_attr` from this module, submodules called by `call_module`.
    """

    graph: Graph
    _original_class: str | None = None

    def type_name(self) -> str | None:
        """The name of the class of the module that was exported; None where it is not known."""
        return self._original_class

    def finalize(self) -> None:
        """Check the graph, after it was changed."""
        self.graph.lint()

    def print_readable(self, print_output: bool = True, include_stride: bool = False, include_device: bool = False,
                       colored: bool = False) -> str:
        """The code of the graph and of those below it; printed, too, by default."""
        code = GraphModule(self, self.graph).print_readable(False, include_stride, include_device, colored)
        if print_output:
            print(code)
        return str(code)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Run the graph."""
        values: dict[Node, Any] = {}
        given = iter(args)

        def load(node: Node) -> Any:
            return values[node]

        for node in self.graph.nodes:
            if node.op == "placeholder":
                values[node] = kwargs[node.name] if node.name in kwargs else next(given)
            elif node.op == "get_attr":
                value: Any = self
                for part in str(node.target).split("."):
                    value = getattr(value, part)
                values[node] = value
            elif node.op == "output":
                return map_arg(node.args[0], load)
            else:
                arguments, named = map_arg(node.args, load), map_arg(node.kwargs, load)
                function: Any = self.get_submodule(str(node.target)) if node.op == "call_module" else node.target
                values[node] = function(*arguments, **named)
        return None


class InterpreterModuleDispatcher(torch.nn.Module):  # type: ignore[misc]
    """A module of several calls of one module: each call runs the next of them, after the last the first.

    Args:
        attrs: names that it has in common with the first.
        call_modules: the modules of the calls.

    >>> from flambeau.export.unflatten import InterpreterModuleDispatcher
    >>> import flambeau as torch
    >>> calls = InterpreterModuleDispatcher(set(), [torch.nn.ReLU(), torch.nn.Tanh()])
    >>> [calls(torch.tensor(-10.)).item() for _ in range(3)]
    [0.0, -1.0, 0.0]
    """

    def __init__(self, attrs: set[str], call_modules: list[Any]) -> None:
        super().__init__()
        if not call_modules:
            raise AssertionError("call_modules must not be empty")
        self._modules = call_modules[0]._modules
        for name in attrs:
            setattr(self, name, getattr(call_modules[0], name))
        self._original_class = getattr(call_modules[0], "_original_class", None)
        self._call_modules, self._num_calls = call_modules, 0

    def type_name(self) -> str | None:
        """The name of the class of the module that was exported; None where it is not known."""
        return self._original_class

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Run the next call; after an error the first is the next."""
        module = self._call_modules[self._num_calls]
        self._num_calls = (self._num_calls + 1) % len(self._call_modules)
        try:
            return module(*args, **kwargs)
        except Exception:
            self._num_calls = 0
            raise

    def call_modules(self) -> list[Any]:
        """The modules of the calls."""
        return self._call_modules

    def print_readable(self, print_output: bool = True, include_stride: bool = False, include_device: bool = False,
                       colored: bool = False) -> str:
        """The code of each call; printed, too, by default."""
        return "\n".join(module.print_readable(print_output, include_stride, include_device, colored)
                         for module in self._call_modules)


class UnflattenedModule(InterpreterModule):
    """The root of the modules of a program; called like the module that was exported.

    Args:
        export_module: the program.
        flat_args_adapter: takes arguments of another structure.

    >>> import flambeau as torch
    >>> program = torch.export.export(torch.nn.Sequential(torch.nn.ReLU()), (torch.ones(1),))
    >>> torch.export.UnflattenedModule(program)
    UnflattenedModule(
      (0): InterpreterModule()
    )
    """

    def __init__(self, export_module: ExportedProgram, flat_args_adapter: FlatArgsAdapter | None = None) -> None:
        super().__init__()
        program = export_module
        entry = program.module_call_graph[0].signature
        assert entry is not None
        self.in_spec, self.out_spec, self.flat_args_adapter = entry.in_spec, entry.out_spec, flat_args_adapter
        _Builder(self, program).build()

    def process_forward_inputs(self, *args: Any, **kwargs: Any) -> list[Any]:
        """The leaves of arguments in the program's order.

        Raises:
            TypeError: their structure is not the program's, and there is no adapter.
        """
        names = list(self.in_spec.children()[1].context or ())
        kwargs = {**{key: kwargs[key] for key in names if key in kwargs},
                  **{key: value for key, value in kwargs.items() if key not in names}}
        leaves, spec = tree_flatten((args, kwargs))
        if spec != self.in_spec:
            if self.flat_args_adapter is None:
                raise TypeError(f"There is no flat args adapter specified. Are you sure you are calling this with the "
                                f"right arguments? Expected the structure {self.in_spec}, got {spec}")
            leaves = self.flat_args_adapter.adapt(target_spec=self.in_spec, input_spec=spec, input_args=leaves)
        return leaves

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Run the program."""
        leaves = self.process_forward_inputs(*args, **kwargs)
        return tree_unflatten(list(super().forward(*leaves)), self.out_spec)


class _Scope:
    """A call of a module: consecutive nodes of the program, and the calls inside it.

    Attributes:
        path: the module's name.
        items: nodes and scopes, in order.
    """

    def __init__(self, path: str, key: str) -> None:
        self.path, self.key = path, key
        self.items: list[Any] = []

    def nodes(self) -> list[Node]:
        """All nodes in it."""
        return [node for item in self.items for node in (item.nodes() if isinstance(item, _Scope) else [item])]


class _Builder:
    """Divides the graph of a program by the modules that its nodes come from."""

    def __init__(self, root: UnflattenedModule, program: ExportedProgram) -> None:
        self.root, self.program = root, program
        self.targets: dict[Node, str] = {}
        self.calls: dict[str, int] = {}

    def build(self) -> None:
        program, signature = self.program, self.program.graph_signature
        if any(spec.kind != OutputKind.USER_OUTPUT for spec in signature.output_specs):
            raise NotImplementedError("unflatten takes programs before run_decompositions: this one returns what it "
                                      "writes to buffers or parameters")
        for entry in program.module_call_graph[1:]:
            self._module(entry.fqn)
        inputs = []
        placeholders = [node for node in program.graph.nodes if node.op == "placeholder"]
        for node, spec in zip(placeholders, signature.input_specs, strict=True):
            if spec.kind == InputKind.USER_INPUT:
                inputs.append(node)
                continue
            target = spec.target or ""
            self.targets[node] = target
            path, _, name = target.rpartition(".")
            owner = self._module(path)
            if spec.kind == InputKind.PARAMETER:
                owner.register_parameter(name, program.state_dict[target])
            else:
                value = program.state_dict.get(target, program.constants.get(target))
                owner.register_buffer(name, value, persistent=bool(spec.persistent))
        top = _Scope("", "")
        open_scopes = [top]
        for node in program.graph.nodes:
            if node.op in ("placeholder", "output"):
                continue
            stack = [(key, path) for key, (path, _) in node.meta.get("nn_module_stack", {}).items() if path]
            depth = 0
            while depth < len(stack) and depth + 1 < len(open_scopes) and open_scopes[depth + 1].key == stack[depth][0]:
                depth += 1
            del open_scopes[depth + 1:]
            for key, path in stack[depth:]:
                scope = _Scope(path, key)
                open_scopes[-1].items.append(scope)
                open_scopes.append(scope)
            open_scopes[-1].items.append(node)
        output = next(node for node in program.graph.nodes if node.op == "output")
        self.root.graph = self._graph(top, inputs, list(output.args[0]), True)

    def _module(self, path: str) -> Any:
        module: Any = self.root
        for part in path.split(".") if path else ():
            if part not in module._modules:
                module.add_module(part, InterpreterModule())
            module = module._modules[part]
        return module

    def _graph(self, scope: _Scope, inputs: list[Node], outputs: list[Any], root: bool = False) -> Graph:
        graph = Graph()
        values: dict[Node, Node] = {}
        for node in inputs:
            values[node] = graph.placeholder(node.name)
        for i, item in enumerate(scope.items):
            if isinstance(item, Node):
                for each in item.all_input_nodes:
                    self._read(each, values, graph, scope)
                values[item] = graph.node_copy(item, values.__getitem__)
                continue
            inside = set(item.nodes())
            needed = [each for node in item.nodes() for each in node.all_input_nodes
                      if each not in inside and not self._is_own(each, item.path)]
            needed = list(dict.fromkeys(needed))
            later = set(outputs)
            for other in scope.items[i + 1:]:
                for node in other.nodes() if isinstance(other, _Scope) else [other]:
                    later.update(node.all_input_nodes)
            results = [node for node in item.nodes() if node in later]
            for each in needed:
                self._read(each, values, graph, scope)
            number = self.calls.get(item.path, 0)
            self.calls[item.path] = number + 1
            target = item.path + (f"@{number}" if number else "")
            owner = self._module(item.path)
            if number:  # a further call of a module, with the parameters of the first
                parent, _, name = target.rpartition(".")
                again = InterpreterModule()
                again._parameters, again._buffers, again._modules = owner._parameters, owner._buffers, owner._modules
                self._module(parent).add_module(name, again)
                owner = again
            owner.graph = self._graph(item, needed, results)
            relative = target[len(scope.path) + 1:] if scope.path else target
            call = graph.create_node("call_module", relative, tuple(values[each] for each in needed), {})
            for j, node in enumerate(results):
                values[node] = graph.call_function(_item, (call, j))
        for value in outputs:
            if isinstance(value, Node):
                self._read(value, values, graph, scope)
        graph.output(tuple(values[x] if isinstance(x, Node) else x for x in outputs))
        return graph

    def _is_own(self, node: Node, path: str) -> bool:
        """Whether a module reads a value itself: a parameter or buffer of it."""
        return node in self.targets and (not path or self.targets[node].startswith(f"{path}."))

    def _read(self, node: Node, values: dict[Node, Node], graph: Graph, scope: _Scope) -> None:
        if node not in values and node in self.targets:
            target = self.targets[node]
            values[node] = graph.create_node("get_attr", target[len(scope.path) + 1:] if scope.path else target, (), {})


def _item(values: Any, index: int) -> Any:
    return values[index]


def unflatten(module: ExportedProgram, flat_args_adapter: FlatArgsAdapter | None = None) -> UnflattenedModule:
    """A program as nested modules, with the names of the modules that it was exported from.

    Args:
        module: the program.
        flat_args_adapter: takes arguments of another structure.

    Raises:
        NotImplementedError: the program returns what it writes (after `run_decompositions`).

    Source: https://docs.pytorch.org/docs/stable/export.html#torch.export.unflatten

    >>> import flambeau as torch
    >>> net = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.ReLU())
    >>> nested = torch.export.unflatten(torch.export.export(net, (torch.ones(1, 2),)))
    >>> [name for name, _ in nested.named_parameters()]
    ['0.weight', '0.bias']
    >>> nested(torch.ones(1, 2)).shape
    flambeau.Size([1, 3])
    """
    return UnflattenedModule(module, flat_args_adapter)
