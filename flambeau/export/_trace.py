"""`torch.export.export`: a module is run on fake tensors, and what it calls becomes the graph of a program."""

from __future__ import annotations

import functools
import hashlib
import inspect
import keyword
import linecache
import operator
import re
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import flambeau as torch

from .._subclasses.fake_tensor import (
    DataDependentOutputException,
    DynamicOutputShapeException,
    FakeTensorMode,
    UnsupportedOperatorException,
)
from ..compiler.api import active_export
from ..compiler.errors import UserError, UserErrorType
from ..fx.experimental.symbolic_shapes import GuardOnDataDependentSymNode
from ..fx.graph_module import GraphModule
from ..fx.node import Node
from ..ops.overloads import OpOverload
from ..utils._pytree import GetAttrKey, MappingKey, SequenceKey, tree_flatten, tree_flatten_with_path, tree_unflatten
from .dynamic_shapes import INFINITY, combined_arguments, value_ranges
from .dynamic_sizes import DynamicSize, dynamic_sizes
from .exported_program import ExportedProgram, ModuleCallEntry, ModuleCallSignature
from .graph_signature import (
    ConstantArgument,
    ExportGraphSignature,
    InputKind,
    InputSpec,
    OutputKind,
    OutputSpec,
    SymIntArgument,
    TensorArgument,
)
from .tracing.expressions import symbol
from .tracing.modules import FORWARDS
from .tracing.symbolic_numbers import SizesDisagree, is_symbolic
from .tracing.tracer import ElementsNeeded, FunctionRecorder, GraphBuilder, OperatorRecorder, is_program

__all__ = ["SymbolOfSize", "export_module"]

#: sizes of the lanes beside the example's: small ones that share no factors, and a large one
_PROBES = (37, 53, 8)
_LARGE = 1031
_END = 2**63 - 1


class SymbolOfSize(str):
    """The symbol of a dynamic size.

    Attributes:
        root: the name of the `Dim`.
    """

    root: str

    def __new__(cls, name: str, root: str) -> Any:
        made = super().__new__(cls, name)
        made.root = root
        return made

    def __repr__(self) -> str:
        return str(self)


def export_module(mod: Any, args: Any, kwargs: Any = None, *, dynamic_shapes: Any = None, strict: bool = False,
                  preserve_module_call_signature: tuple[str, ...] = (), prefer_deferred_runtime_asserts: bool = False,
                  **settings: Any) -> ExportedProgram:
    """`torch.export.export`, which documents it.

    Raises:
        UserError: the arguments or the program contradict `dynamic_shapes`.
    """
    if not isinstance(mod, torch.nn.Module):
        raise ValueError(f"Expected `mod` to be an instance of `torch.nn.Module`, got {type(mod)}.")
    if isinstance(mod, torch.jit.ScriptModule):
        raise ValueError("Exporting a ScriptModule is not supported. Maybe try converting your ScriptModule to an "
                         "ExportedProgram using `TS2EPConverter(mod, args, kwargs).convert()` instead.")
    if not isinstance(args, tuple):
        raise UserError(UserErrorType.INVALID_INPUT,
                        f"Expecting `args` to be a tuple of example positional inputs, got {type(args)}")
    kwargs = dict(kwargs or {})
    try:
        combined_arguments(mod, args, kwargs, check=True)
    except TypeError as error:
        raise TypeError(str(error)) from None
    sizes = dynamic_sizes(mod, args, kwargs, dynamic_shapes)
    attempts = [sizes]
    if any(each.hint for each in sizes):
        attempts += [_shared(sizes, args, kwargs), [each for each in sizes if not each.hint]]
    for i, attempt in enumerate(attempts):
        try:
            return _Trace(mod, args, kwargs, attempt, settings).program()
        except SizesDisagree as error:
            if i == len(attempts) - 1 or (any(each.required for each in sizes) and i == len(attempts) - 2):
                raise _violated(error, attempt, mod, args, kwargs) from error
    raise AssertionError


def _shared(sizes: list[DynamicSize], args: Any, kwargs: Any) -> list[DynamicSize]:
    """Sizes without a name that are equal in the example have to be equal always."""
    leaves = tree_flatten((args, kwargs))[0]
    names: dict[int, str] = {}
    found = []
    for each in sizes:
        if each.hint:
            each = each._replace(root=names.setdefault(leaves[each.leaf].shape[each.dim], each.root))
        found.append(each)
    return found


def _violated(error: SizesDisagree, sizes: list[DynamicSize], mod: Any, args: Any, kwargs: Any) -> Exception:
    roots = list(dict.fromkeys(each.root for each in sizes))
    where = getattr(error, "where", "")
    names = ", ".join(roots)
    return UserError(UserErrorType.CONSTRAINT_VIOLATION,
                     f"Constraints violated ({names})! Not all values of {names} in the specified range give the same "
                     f"program: {error.what}.{where}")


class _Trace:
    """One trace of a module.

    Args:
        mod: the module.
        args, kwargs: the example.
        sizes: the dynamic sizes.
    """

    def __init__(self, mod: Any, args: Any, kwargs: Any, sizes: list[DynamicSize], settings: Any) -> None:
        self.mod, self.args, self.kwargs, self.sizes, self.settings = mod, args, kwargs, sizes, settings
        self.ranges: dict[Any, Any] = {}
        self.assignments = self._assignments()
        self.mode = FakeTensorMode(allow_non_fake_inputs=True)
        self.builder = GraphBuilder(self.mode, 1 + max(map(len, self.assignments.values()), default=0))
        self.inputs: list[InputSpec] = []
        self.constants: dict[str, Any] = {}

    # ----- dynamic sizes -----

    def _assignments(self) -> dict[str, tuple[int, ...]]:
        """Symbol's root -> its values in the further lanes."""
        leaves = tree_flatten((self.args, self.kwargs))[0]
        roots: dict[str, DynamicSize] = {}
        for each in self.sizes:
            roots.setdefault(each.root, each)
        found = {}
        count = len(_PROBES) + len(roots)
        for number, (root, each) in enumerate(roots.items()):
            example = self._root_value(each, leaves)
            low, high = max(each.min, 2), each.max
            if high <= low:  # a range that has no two sizes from 2 on
                low = min(high, max(each.min, 1))
            values = []
            for lane in range(count):
                if lane < len(_PROBES):
                    value = _PROBES[(lane + number) % len(_PROBES)] + 2 * number
                else:
                    value = _LARGE + 6 * number if lane - len(_PROBES) == number else 11 + 2 * lane + 4 * number
                if not low <= value <= high:
                    value = (high if lane >= len(_PROBES) and lane - len(_PROBES) == number and high < INFINITY
                             else low + (value * 7 + lane) % (min(high, low + 4096) - low + 1))
                values.append(value)
            if all(v == example for v in values) and high > low:
                values[0] = low if example != low else high
            if high < INFINITY:
                values[0], values[1] = low, high
            elif each.min > 1:
                values[0] = low
            found[root] = tuple(values)
        return found

    def _root_value(self, each: DynamicSize, leaves: list[Any]) -> int:
        value = leaves[each.leaf].shape[each.dim] - each.offset
        if value % each.factor:
            raise UserError(UserErrorType.CONSTRAINT_VIOLATION,
                            f"the size {leaves[each.leaf].shape[each.dim]} of dimension {each.dim} is not "
                            f"{each.factor} times an integer, plus {each.offset}")
        return int(value // each.factor)

    def _shapes_of(self, leaf: int, value: Any) -> list[tuple[int, ...]]:
        shapes = [tuple(value.shape)]
        mine = {each.dim: each for each in self.sizes if each.leaf == leaf}
        for lane in range(self.builder.lanes - 1):
            shapes.append(tuple(self.assignments[mine[d].root][lane] * mine[d].factor + mine[d].offset
                                if d in mine else n for d, n in enumerate(value.shape)))
        return shapes

    def _declare_symbols(self, nodes: list[Any], paths: list[str], leaves: list[Any]) -> None:
        """Give each dynamic size a symbol, named after the last input that has it, as PyTorch names it."""
        used: set[int] = set()
        roots: dict[str, str] = {}
        # of equal sizes, PyTorch keeps the symbol of the last input
        for each in sorted(self.sizes, key=lambda each: (each.factor != 1 or each.offset != 0, -each.leaf, each.dim)):
            example = self._root_value(each, leaves)
            lanes = (example, *self.assignments[each.root])
            if each.root not in roots:
                number = int(hashlib.sha256(f"L{paths[each.leaf]}.size()[{each.dim}]".encode()).hexdigest(), 16) % 100
                while number in used:
                    number += 1
                used.add(number)
                name = SymbolOfSize(f"s{number}", each.root)
                roots[each.root] = name
                self.ranges[name] = value_ranges(each.min, each.max)
                self.builder.expressions[lanes] = symbol(name)
            if each.factor == 1 and not each.offset:
                self.builder.symbol_sources[roots[each.root]] = nodes[each.leaf], each.dim
            else:
                scaled = tuple(n * each.factor + each.offset for n in lanes)
                self.builder.expressions.setdefault(scaled, symbol(roots[each.root]) * each.factor + each.offset)

    # ----- the trace -----

    def program(self) -> ExportedProgram:
        """The exported program."""
        result = self._traced()
        if self.sizes:
            self._verify()
        builder = self.builder
        leaves, out_spec = tree_flatten(result)
        outputs, specs = [], []
        for leaf in leaves:
            if isinstance(leaf, (int, float, bool, str, torch.dtype, torch.device)) or leaf is None:
                outputs.append(leaf)
                specs.append(OutputSpec(OutputKind.USER_OUTPUT, ConstantArgument("", leaf), None))
                continue
            if not isinstance(leaf, torch.Tensor) and not is_symbolic(leaf):
                raise UserError(UserErrorType.INVALID_OUTPUT,
                                f"It looks like one of the outputs with type `{type(leaf)}` is not supported or pytree-"
                                "registered. Exported graphs inputs can only contain the following supported types: "
                                "tensors, numbers, strings, None and containers of them.")
            with builder.silent():
                node = builder.argument(leaf)
            outputs.append(node)
            kind = SymIntArgument if is_symbolic(leaf) else TensorArgument
            specs.append(OutputSpec(OutputKind.USER_OUTPUT, kind(node.name), None))
        builder.graph.output(tuple(outputs))
        builder.graph.eliminate_dead_code(_is_kept)
        for node in builder.graph.find_nodes(op="placeholder"):
            node.name = node.target  # also where that is a name of Python, which the code then renames
        self._rename_size_nodes(specs)
        inputs = self._constants_first()
        others = {spec.target for spec in inputs if spec.kind == InputKind.BUFFER}
        self.constants = dict(sorted(self.constants.items(), key=lambda item: item[0] in others))
        entry = ModuleCallEntry("", ModuleCallSignature([], [], self.in_spec, out_spec, self.names))
        graph_module = GraphModule(torch.nn.Module(), builder.graph)
        graph_module.meta.update(getattr(self.mod, "meta", {}))
        program = ExportedProgram(
            graph_module, builder.graph, ExportGraphSignature(inputs, specs), self.state_dict, self.ranges,
            [entry, *self._calls()], (self.args, self.kwargs), self.constants, input_constraints=self.sizes)
        program.validate()
        return program

    def _verify(self) -> None:
        """Check that the graph is that of a trace with other sizes, with the values that its numbers have there.

        Raises:
            SizesDisagree: it is not.
        """
        leaves, spec = tree_flatten((self.args, self.kwargs))
        shapes = {i: self._shapes_of(i, leaf) for i, leaf in enumerate(leaves) if isinstance(leaf, torch.Tensor)}
        made: dict[Any, Any] = {}  # a tensor that is several inputs stays one
        resized = [made.setdefault((id(leaf), shapes[i][1]), leaf.new_empty(shapes[i][1]))
                   if any(each.leaf == i for each in self.sizes) else leaf for i, leaf in enumerate(leaves)]
        args, kwargs = tree_unflatten(resized, spec)
        other = _Trace(self.mod, args, kwargs, [], self.settings)
        other._traced()
        mine, others = _operators(self.builder), _operators(other.builder)
        same: dict[Any, Any] = {}
        for a, b in zip(mine, others, strict=False):
            self.builder.current = str(a.target)
            if a.target is not b.target or not _equal((a.args, dict(a.kwargs)), (b.args, dict(b.kwargs)), same):
                where = a.meta.get("stack_trace", "")
                error = SizesDisagree(f"the arguments of {a.target} depend on a dynamic size, and are no numbers that "
                                      "follow from it")
                error.where = f"\n\nThe following call raised this error:\n{where}\n"  # type: ignore[attr-defined]
                raise error
            same[a] = b
        if len(mine) != len(others):
            raise SizesDisagree("the number of operators depends on a dynamic size")

    def _calls(self) -> list[ModuleCallEntry]:
        return [ModuleCallEntry(name) for name, module in self.mod.named_modules() if name]

    def _rename_size_nodes(self, specs: list[OutputSpec]) -> None:
        """Nodes of sizes of inputs are named after all others, as the pass of PyTorch that inserts them does."""
        nodes = list(self.builder.symbol_nodes.values())
        alive = set(self.builder.graph.nodes)
        taken = {node.name for node in self.builder.graph.nodes if node not in nodes}
        count = len(nodes)
        for node in nodes:
            if node not in alive:
                continue
            former = node.name
            while f"sym_size_int_{count}" in taken:
                count += 1
            node._rename(f"sym_size_int_{count}")
            taken.add(node.name)
            for spec in specs:
                if not isinstance(spec.arg, ConstantArgument) and spec.arg.name == former:
                    spec.arg.name = node.name

    def _constants_first(self) -> list[InputSpec]:
        """The input specs in the order of the placeholders."""
        others = iter(self.inputs)
        specs = []
        for node in self.builder.graph.nodes:
            if node.op != "placeholder":
                break
            name = node.meta.get("constant")
            if name is not None:
                value = self.builder.constants[name]
                for alias in self.builder.constant_names.get(id(value), [name]):
                    self.constants[alias] = value
                specs.append(InputSpec(InputKind.CONSTANT_TENSOR, TensorArgument(node.name), name))
            else:
                spec = next(others)
                spec.arg.name = node.name
                specs.append(spec)
        return specs

    def _traced(self) -> Any:
        mod, builder = self.mod, self.builder
        state = dict(mod.state_dict(keep_vars=True))
        own = {key: state[key] for key, _ in mod.named_parameters(remove_duplicate=False) if key in state}
        self.state_dict = {**own, **state}  # parameters come first
        swapped: list[tuple[Any, str, str, Any, Any]] = []
        with builder.silent():
            for prefix, module in mod.named_modules(remove_duplicate=False):
                for name, value in vars(module).items():
                    if isinstance(value, torch.Tensor):
                        builder.constant_names.setdefault(id(value), []).append(f"{prefix}.{name}".strip("."))
            for registry, kind in (("_parameters", InputKind.PARAMETER), ("_buffers", InputKind.BUFFER)):
                self._lift(registry, kind, swapped)
            args, kwargs = self._lift_inputs()
        try:
            for module, registry, name, _, new in swapped:
                getattr(module, registry)[name] = new
            with self._patched(), _preserved_state(), self.mode, OperatorRecorder(builder), FunctionRecorder(builder):
                return trace_program(mod, args, kwargs, builder)
        finally:
            changed = []
            for module, registry, name, old, new in reversed(swapped):
                if getattr(module, registry).get(name) is not new:
                    changed.append(name)
                getattr(module, registry)[name] = old
            if changed:
                warnings.warn(f"The buffers or parameters {', '.join(changed)} were assigned during export; write to "
                              "them in place (`copy_`) to keep the change.", UserWarning)

    def _lift(self, registry: str, kind: InputKind, swapped: list[Any]) -> None:
        """Make the parameters or buffers of all modules placeholders."""
        seen: dict[int, Any] = {}
        persistent = set(self.state_dict)
        visited: set[int] = set()
        for prefix, module in self.mod.named_modules(remove_duplicate=False):
            own = getattr(module, registry)
            again = id(module) in visited
            visited.add(id(module))
            for name, value in list(own.items()):
                if value is None:
                    continue
                target = f"{prefix}.{name}".strip(".")
                if again:
                    value = next(old for m, r, n, old, _ in swapped if m is module and n == name and r == registry)
                traced = seen.get(id(value))
                if traced is None:
                    traced = seen[id(value)] = self.builder.fake(value)
                text = ("p_" if kind is InputKind.PARAMETER else "b_") + target.replace(".", "_")
                node = self.builder.placeholder(text, traced)
                if not again:
                    swapped.append((module, registry, name, value, traced))
                if kind is InputKind.PARAMETER:
                    self.inputs.append(InputSpec(kind, TensorArgument(node.name), target))
                else:
                    self.inputs.append(InputSpec(kind, TensorArgument(node.name), target, target in persistent))
                    if target not in persistent:
                        self.constants[target] = value

    def _lift_inputs(self) -> tuple[Any, Any]:
        leaves, self.in_spec = tree_flatten((self.args, self.kwargs))
        paths, names = _input_names(self.mod, self.args, self.kwargs)
        self.names = _argument_names(self.mod, self.args, self.kwargs)
        values: list[Any] = []
        nodes = []
        fakes = [self.builder.fake(leaf, self._shapes_of(i, leaf)) if isinstance(leaf, torch.Tensor) and any(
            each.leaf == i for each in self.sizes) else None for i, leaf in enumerate(leaves)]
        pending = []
        for i, (leaf, name) in enumerate(zip(leaves, names, strict=True)):
            if isinstance(leaf, torch.Tensor):
                value: Any = fakes[i] if fakes[i] is not None else self.builder.fake(leaf)
                node = self.builder.graph.create_node("placeholder", name, (), {}, name)
                self.builder.last_placeholder = node
                pending.append((node, value))
                self.inputs.append(InputSpec(InputKind.USER_INPUT, TensorArgument(node.name), None))
            else:
                if leaf is not None and not isinstance(leaf, (int, float, bool, str, torch.dtype, torch.device)):
                    raise UserError(UserErrorType.INVALID_INPUT,
                                    f"Unsupported input type {type(leaf)}. Export only supports pytree containers of "
                                    "basic types (Tensor, int, float, ...) as input. To register a custom dataclass, "
                                    "use torch.export.register_dataclass. To register a custom container type, use "
                                    "torch.utils._pytree.register_pytree_node. To register a constant input, use "
                                    "torch.utils._pytree.register_constant")
                value = leaf
                node = self.builder.placeholder(name, leaf)
                self.inputs.append(InputSpec(InputKind.USER_INPUT, ConstantArgument(node.name, leaf), None))
            self.builder.first_input = self.builder.first_input or node
            values.append(value)
            nodes.append(node)
        self._declare_symbols(nodes, paths, leaves)
        for node, value in pending:
            self.builder.track(value, node)
        args, kwargs = tree_unflatten(values, self.in_spec)
        return args, kwargs

    @contextmanager
    def _patched(self) -> Iterator[None]:
        """Calls of modules are noted, and those of recurrent ones are one node."""
        builder = self.builder
        former = torch.nn.Module.__call__
        names = {id(module): name for name, module in self.mod.named_modules()}
        counts: dict[str, int] = {}

        @functools.wraps(former)
        def call(module: Any, *args: Any, **kwargs: Any) -> Any:
            if not builder.recording:
                return former(module, *args, **kwargs)
            path = names.get(id(module), "")
            key = f"L__self__{'_' if path else ''}{path.replace('.', '_')}" if path else "L__self__"
            counts[path] = counts.get(path, 0) + 1
            if counts[path] > 1:
                key += f"@{counts[path] - 1}"
            builder.modules.append((key, path, f"{type(module).__module__}.{type(module).__qualname__}"))
            try:
                recorder = FORWARDS.get(type(module))
                if recorder is None:
                    return former(module, *args, **kwargs)
                with _replaced_forward(module, functools.partial(recorder, builder, module, module.forward)):
                    return former(module, *args, **kwargs)
            finally:
                builder.modules.pop()

        torch.nn.Module.__call__ = call
        try:
            yield
        finally:
            torch.nn.Module.__call__ = former


@contextmanager
def _replaced_forward(module: Any, forward: Callable[..., Any]) -> Iterator[None]:
    object.__setattr__(module, "forward", forward)
    try:
        yield
    finally:
        object.__delattr__(module, "forward")


@contextmanager
def _preserved_state() -> Iterator[None]:
    """The generator of random numbers goes on afterwards as if nothing had run."""
    state = torch.get_rng_state()
    try:
        yield
    finally:
        torch.set_rng_state(state)


def trace_program(mod: Any, args: Any, kwargs: Any, builder: GraphBuilder) -> Any:
    """Run the program.

    Raises:
        GuardOnDataDependentSymNode: Python needs an element of a tensor.
        UserError: the shape of a result depends on elements.
    """
    token = active_export.set(True)
    try:
        return mod(*args, **kwargs)
    except SizesDisagree as error:
        error.where = _where(error)  # type: ignore[attr-defined]
        raise
    except DataDependentOutputException as error:
        raise GuardOnDataDependentSymNode(
            f"Could not extract a number from elements of a tensor ({error.func}): the program decides in Python by "
            f"data that are not known while it is exported.{_where(error)}") from error
    except DynamicOutputShapeException as error:
        raise UserError(UserErrorType.DYNAMIC_CONTROL_FLOW,
                        f"the shape of the result of {error.func} depends on data that are not known while the program "
                        f"is exported.{_where(error)}") from error
    except ElementsNeeded as error:
        raise UserError(UserErrorType.DYNAMIC_CONTROL_FLOW, f"{error}.{_where(error)}") from error
    except UnsupportedOperatorException as error:
        raise UserError(UserErrorType.ANTI_PATTERN,
                        f"Operator {error.func} has no fake kernel: register one with torch.library."
                        f"register_fake.{_where(error)}") from error
    finally:
        active_export.reset(token)


def _where(error: BaseException) -> str:
    """The program's line that raised an error."""
    found = ""
    step = error.__traceback__
    while step is not None:
        code = step.tb_frame.f_code
        if is_program(code.co_filename):
            line = linecache.getline(code.co_filename, step.tb_lineno).strip()
            found = (f"\n\nThe following call raised this error:\n  File \"{code.co_filename}\", line "
                     f"{step.tb_lineno}, in {code.co_name}\n    {line}\n")
        step = step.tb_next
    return found


def _is_kept(node: Any) -> bool:
    """Whether a node is kept although nobody uses it."""
    if node.op in ("placeholder", "output"):
        return True
    if node.target is operator.getitem:  # all results of an operator that is used have a node
        return any(part.users for part in node.args[0].users)
    return isinstance(node.target, OpOverload) and (
        node.target.overloadpacket.__name__ == "_assert_tensor_metadata" or node.is_impure(False))


def _operators(builder: GraphBuilder) -> list[Any]:
    """The nodes of a trace other than arithmetic on sizes, and than slices of everything."""
    return [node for node in builder.graph.nodes if node.op == "call_function" and _sliced(node) is node and (
        node.target is operator.getitem or (isinstance(node.target, OpOverload)
                                            and node.target.overloadpacket.__name__ != "sym_size"))]


def _sliced(node: Any) -> Any:
    """What a node is a slice of everything of, which dynamic dimensions have a node for; another node as it is."""
    while str(node.target) == "aten.slice.Tensor" and tuple(node.args[2:]) == (0, _END):
        node = node.args[0]
    return node


def _equal(a: Any, b: Any, same: dict[Any, Any]) -> bool:
    """Whether arguments of two traces are the same, numbers by their value in the second lane."""
    if isinstance(a, Node):
        value: Any = a.meta.get("val")
        if is_symbolic(value):
            return bool(value.lanes[1] == b)
        a, b = _sliced(a), _sliced(b) if isinstance(b, Node) else b
        return isinstance(b, Node) and (same.get(a) is b if a in same else a.op == b.op == "placeholder"
                                        and a.target == b.target)
    if isinstance(a, (list, tuple)):
        return isinstance(b, (list, tuple)) and len(a) == len(b) and all(map(_equal, a, b, [same] * len(a)))
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(_equal(a[key], b[key], same) for key in a)
    if isinstance(a, slice):
        return _equal((a.start, a.stop, a.step), (b.start, b.stop, b.step), same)
    return bool(a == b) or (a != a and b != b)


# ----- names of inputs -----

def _argument_names(mod: Any, args: Any, kwargs: Any) -> list[str]:
    """The names of the arguments of the forward method, those of `*args` with their position."""
    bound = combined_arguments(mod, args, kwargs)
    parameters = _parameters(mod)
    names = []
    for name, value in bound.items():
        kind = parameters[name].kind if name in parameters else None
        if kind is inspect.Parameter.VAR_POSITIONAL:
            names += [f"{name}_{i}" for i in range(len(value))]
        elif kind is inspect.Parameter.VAR_KEYWORD:
            names += list(value)
        elif name not in kwargs:
            names.append(name)
    return [name for name in names if name not in kwargs] + list(kwargs)


def _parameters(mod: Any) -> Any:
    try:
        return inspect.signature(mod.forward).parameters
    except (TypeError, ValueError):
        return {}


def _input_names(mod: Any, args: Any, kwargs: Any) -> tuple[list[str], list[str]]:
    """For each leaf: its path as PyTorch's sources name it, and the name of its placeholder."""
    names = _argument_names(mod, args, kwargs)
    paths, found = [], []
    taken: dict[str, int] = {}
    bound = combined_arguments(mod, args, kwargs)
    for path, _ in tree_flatten_with_path((args, kwargs))[0]:
        rest = list(path[2:])
        first = path[1]
        name = names[first.idx] if isinstance(first, SequenceKey) else first.key
        top = name
        text = "".join(_subscript(key) for key in rest)
        if name not in bound and isinstance(first, SequenceKey):  # of *args
            variadic, _, number = name.rpartition("_")
            top, text = variadic, f"[{number}]{text}"
        base = "_".join([str(name), *(_key_name(key) for key in rest)])
        base = re.sub(r"[^A-Za-z0-9_]", "_", base)
        if keyword.iskeyword(base) or base[:1].isdigit():
            base = f"_{base}"
        count = taken.get(base, 0)
        taken[base] = count + 1
        found.append(base if not count else f"{base}_{count}")
        paths.append(f"['{top}']{text}")
    return paths, found


def _subscript(key: Any) -> str:
    if isinstance(key, GetAttrKey):
        return f".{key.name}"
    return f"[{key.idx}]" if isinstance(key, SequenceKey) else f"[{key.key!r}]"


def _key_name(key: Any) -> str:
    if isinstance(key, SequenceKey):
        return str(key.idx)
    return str(key.key if isinstance(key, MappingKey) else key.name).lower()


_export = export_module
