"""The graph of a traced call as PyTorch's `torch._C.Graph` shows it: nodes, values and their types."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import flambeau as torch

from ...environment.script_types import (
    BoolType,
    ComplexType,
    DeviceObjType,
    FloatType,
    IntType,
    ListType,
    NoneType,
    StringType,
    TensorType,
    Type,
)

#: dtypes as values of type int, and in texts of tensor types
SCALAR_TYPES = ("uint8", "int8", "int16", "int32", "int64", "float16", "float32", "float64", "complex32", "complex64",
                "complex128", "bool", None, None, None, "bfloat16")
_MEMORY_FORMATS = ("contiguous_format", "preserve_format", "channels_last", "channels_last_3d")
_LAYOUTS = ("strided", "sparse_coo", "sparse_csr", "mkldnn", "sparse_csc", "sparse_bsr", "sparse_bsc")


#: operators that draw random numbers
_RANDOM = frozenset((
    "_sample_dirichlet", "_standard_gamma", "alpha_dropout", "bernoulli", "binomial", "cauchy", "dropout",
    "exponential", "feature_alpha_dropout", "feature_dropout", "geometric", "log_normal", "multinomial",
    "native_dropout", "normal", "poisson", "rand", "rand_like", "randint", "randint_like", "randn", "randn_like",
    "random", "randperm", "rrelu", "uniform"))


class CompleteTensorType(TensorType):
    """The type of a tensor whose dtype, sizes and strides are known."""

    def __init__(self, tensor: Any) -> None:
        self._sizes, self._strides = list(tensor.shape), list(tensor.stride())
        self._dtype, self._device, self._requires_grad = tensor.dtype, tensor.device, bool(tensor.requires_grad)

    def kind(self) -> str:
        """The name of the class."""
        return "TensorType"

    def sizes(self) -> list[int]:
        """The shape."""
        return list(self._sizes)

    varyingSizes = sizes  # noqa: N815  (the names are PyTorch's)

    def strides(self) -> list[int]:
        """The strides."""
        return list(self._strides)

    def dim(self) -> int:
        """The number of dimensions."""
        return len(self._sizes)

    def dtype(self) -> Any:
        """The dtype."""
        return self._dtype

    def device(self) -> Any:
        """The device."""
        return self._device

    def scalarType(self) -> str:
        """The dtype's name in TorchScript, such as `Float`."""
        return str(self._dtype.scalar_name)

    def requiresGrad(self) -> bool:
        """Whether derivatives are recorded."""
        return self._requires_grad

    requires_grad = requiresGrad

    def str(self) -> Any:
        """The type as graphs show it."""
        sizes = "".join(f"{n}, " for n in self._sizes)
        strides = f"strides=[{', '.join(map(str, self._strides))}], " if self._sizes else ""
        return f"{self.scalarType()}({sizes}{strides}requires_grad={int(self._requires_grad)}, device={self._device})"


CompleteTensorType.__name__ = "TensorType"


class ClassType(Type):
    """The type of a module."""

    def __init__(self, module: Any) -> None:
        self._name = f"__torch__.{type(module).__module__}.{type(module).__name__}".replace("__main__.", "").replace(
            f"__torch__.{torch.__name__}.", "__torch__.torch.")


class Value:
    """A value of a graph: an input, or a result of a node.

    Args:
        node: computes it.
        name: its name in the graph.
        type: its type.
        constant: what it is, where it is a constant.
    """

    def __init__(self, node: Node, name: str, type: Type, constant: Any = None) -> None:
        self._node, self._name, self._type, self._constant = node, name, type, constant
        self._uses: list[Use] = []

    def debugName(self) -> str:
        """The name, without the percent sign."""
        return self._name

    def setDebugName(self, name: str) -> Value:
        """Give it another name."""
        self._name = name
        return self

    def unique(self) -> int:
        """A number of its own in the graph."""
        return self._node._graph._numbers[id(self)]

    def type(self) -> Type:
        """Its type."""
        return self._type

    def setType(self, type: Type) -> Value:
        """Give it another type."""
        self._type = type
        return self

    def isCompleteTensor(self) -> bool:
        """Whether it is a tensor of known sizes."""
        return isinstance(self._type, CompleteTensorType)

    def requires_grad(self) -> bool:
        """Whether it is a tensor that requires grad."""
        return isinstance(self._type, CompleteTensorType) and self._type.requiresGrad()

    requiresGrad = requires_grad  # noqa: N815

    def toIValue(self) -> Any:
        """What it is, if it is a constant; None otherwise."""
        return self._constant

    def node(self) -> Node:
        """The node that computes it."""
        return self._node

    def offset(self) -> int:
        """Which of the node's results it is."""
        return next(i for i, each in enumerate(self._node._outputs) if each is self)

    def uses(self) -> list[Use]:
        """Where it is an input."""
        return list(self._uses)

    def __repr__(self) -> str:
        return f"{self._name} defined in ({self._node})"


class Use:
    """A use of a value: the node, and which of its inputs it is."""

    def __init__(self, user: Node, offset: int) -> None:
        self.user, self.offset = user, offset


class Node:
    """A node of a graph: an operator, a constant or a list.

    Args:
        graph: the graph.
        kind: `aten::add`, `prim::Constant`, ...
        inputs: the values it is computed of.
        scope: the scopes that were open, from the outermost.
        source: the file and line of the call.
        schema: the operator's signature.
    """

    def __init__(self, graph: Graph, kind: str, inputs: list[Value], scope: str = "", source: str = "",
                 schema: str | None = None) -> None:
        self._graph, self._kind, self._inputs, self._outputs = graph, kind, inputs, []  # type: ignore[var-annotated]
        self._scope, self._source, self._schema, self._name = scope, source, schema, ""
        self._written: int | None = None
        for i, value in enumerate(inputs):
            value._uses.append(Use(self, i))

    def _add_input(self, value: Value) -> None:
        value._uses.append(Use(self, len(self._inputs)))
        self._inputs.append(value)

    def kind(self) -> str:
        """The operator."""
        return self._kind

    def inputs(self) -> Iterator[Value]:
        """The values it is computed of."""
        return iter(list(self._inputs))

    def outputs(self) -> Iterator[Value]:
        """The results."""
        return iter(list(self._outputs))

    def input(self) -> Value:
        """The only input.

        Raises:
            RuntimeError: there is none, or several.
        """
        return self._only(self._inputs, "input")

    def output(self) -> Value:
        """The only result.

        Raises:
            RuntimeError: there is none, or several.
        """
        return self._only(self._outputs, "output")

    def _only(self, values: list[Value], what: str) -> Value:
        if len(values) != 1:
            raise RuntimeError(f"{self._kind} has {len(values)} {what}s")
        return values[0]

    def inputsAt(self, i: int) -> Value:
        """One of the inputs."""
        return self._inputs[i]

    def outputsAt(self, i: int) -> Value:
        """One of the results."""
        return self._outputs[i]

    def inputsSize(self) -> int:
        """The number of inputs."""
        return len(self._inputs)

    def outputsSize(self) -> int:
        """The number of results."""
        return len(self._outputs)

    def hasMultipleOutputs(self) -> bool:
        """Whether there are several results."""
        return len(self._outputs) > 1

    def hasUses(self) -> bool:
        """Whether a result is an input of another node."""
        return any(value._uses for value in self._outputs)

    def namedInput(self, name: str) -> Value:
        """The input that a parameter of the operator's signature names."""
        arguments = (self._schema or "").partition("(")[2].partition(") ->")[0].split(", ")
        names = [argument.partition("=")[0].split()[-1] for argument in arguments if argument != "*"]
        return self._inputs[names.index(name)]

    def mustBeNone(self) -> bool:
        """Whether it is the constant None."""
        return self._kind == "prim::Constant" and isinstance(self._outputs[0]._type, NoneType)

    def isNondeterministic(self) -> bool:
        """Whether the operator draws random numbers."""
        kind = self._kind.removeprefix("aten::")
        if kind == "dropout" and self._inputs[2].toIValue() is False:
            return False
        return kind.removesuffix("_") in _RANDOM and self._kind.startswith("aten::")

    def scopeName(self) -> str:
        """The names of the open scopes, joined by slashes."""
        return self._scope

    def schema(self) -> str | None:
        """The operator's signature; of other nodes "(no schema)"."""
        return self._schema or "(no schema)"

    def sourceRange(self) -> str:
        """The file and line of the call."""
        return self._source

    def blocks(self) -> Iterator[Any]:
        """The blocks of control flow: a traced graph has none."""
        return iter(())

    def attributeNames(self) -> list[str]:
        """The names of attributes: `value` of a constant."""
        if self._name and self._kind != "prim::PythonOp":
            return ["name"]
        return ["value"] if self._kind == "prim::Constant" and not self.mustBeNone() else []

    def pyname(self) -> str:
        """The name of the class of a call of an `autograd.Function`."""
        return self._name

    def hasAttribute(self, name: str) -> bool:
        """Whether there is an attribute."""
        return name in self.attributeNames()

    def hasAttributes(self) -> bool:
        """Whether there are attributes."""
        return bool(self.attributeNames())

    def kindOf(self, name: str) -> str:
        """The type of an attribute: `i`, `f`, `s`, `t` or `ival`."""
        value = self._attribute(name)
        if isinstance(value, torch.Tensor):
            return "t"
        return {bool: "i", int: "i", float: "f", str: "s", complex: "c"}.get(type(value), "ival")

    def _attribute(self, name: str) -> Any:
        if not self.hasAttribute(name):
            raise RuntimeError(f"required keyword attribute '{name}' is undefined")
        return self._name or self._outputs[0]._constant

    def i(self, name: str) -> int:
        """An attribute of type int."""
        return int(self._attribute(name))

    f = s = t = ival = c = _attribute

    def __str__(self) -> str:
        results = ", ".join(f"%{value._name} : {value._type.str()}" for value in self._outputs)
        arguments = ", ".join(f"%{value._name}" for value in self._inputs)
        value = "".join(f"[{name}={_literal(self._attribute(name))}]" for name in self.attributeNames())
        scope = f", scope: {self._scope}" if self._scope else ""
        source = f" # {self._source}" if self._source else ""
        return f"{results} = {self._kind}{value}({arguments}){scope}{source}\n"

    __repr__ = __str__


def _literal(value: Any) -> str:
    if isinstance(value, torch.Tensor):
        return f"{{{value.item():g}}}" if value.numel() == 1 else "<Tensor>"
    if isinstance(value, bool):
        return str(int(value))
    if isinstance(value, float):
        text = f"{value:.17g}"
        return text if any(c in text for c in ".einf") else f"{text}."
    return f'"{value}"' if isinstance(value, (str, torch.device)) else str(value)


class Graph:
    """The graph of a traced call.

    >>> import flambeau as torch
    >>> traced = torch.jit.trace(lambda x: x.relu(), torch.ones(2))
    >>> [node.kind() for node in traced.graph.nodes()]
    ['aten::relu']
    """

    def __init__(self) -> None:
        self._param, self._return = Node(self, "prim::Param", []), Node(self, "prim::Return", [])
        self._nodes: list[Node] = []
        self._numbers: dict[int, int] = {}
        self._names: set[str] = set()

    def _value(self, node: Node, type: Type, name: str = "", constant: Any = None) -> Value:
        number = len(self._numbers)
        wanted = name or str(number)
        count = 1
        while wanted in self._names:
            wanted, count = f"{name or number}.{count}", count + 1
        self._names.add(wanted)
        value = Value(node, wanted, type, constant)
        self._numbers[id(value)] = number
        node._outputs.append(value)
        return value

    def _append(self, node: Node) -> Node:
        self._nodes.append(node)
        return node

    def _eliminate_dead_code(self, storages: dict[int, int]) -> None:
        """Remove nodes whose results nobody needs; writes are needed if their memory is.

        Args:
            storages: id of a value -> what identifies the memory of its tensor.
        """
        live = {id(self._return)}
        memory = {storages[id(value)] for value in self._param._outputs if id(value) in storages}
        changed = True
        while changed:
            changed = False
            for node in reversed(self._nodes):
                if id(node) in live:
                    continue
                if node._written in memory or any(id(use.user) in live for value in node._outputs
                                                  for use in value._uses):
                    live.add(id(node))
                    memory |= {storages[id(value)] for value in (*node._inputs, *node._outputs)
                               if id(value) in storages}
                    changed = True
        self._nodes = [node for node in self._nodes if id(node) in live]
        for node in (self._param, *self._nodes):
            for value in node._outputs:
                value._uses = [use for use in value._uses if id(use.user) in live]

    def inputs(self) -> Iterator[Value]:
        """The inputs."""
        return self._param.outputs()

    def outputs(self) -> Iterator[Value]:
        """The results."""
        return self._return.inputs()

    def nodes(self) -> Iterator[Node]:
        """The nodes in the order of the calls."""
        return iter(list(self._nodes))

    def param_node(self) -> Node:
        """The node whose results are the inputs."""
        return self._param

    def return_node(self) -> Node:
        """The node whose inputs are the results."""
        return self._return

    def findNode(self, kind: str, recurse: bool = True) -> Node | None:
        """The first node of a kind."""
        return next((node for node in self._nodes if node._kind == kind), None)

    def findAllNodes(self, kind: str, recurse: bool = True) -> list[Node]:
        """The nodes of a kind."""
        return [node for node in self._nodes if node._kind == kind]

    def str(self, print_source_ranges: bool = True) -> Any:
        """The graph as text."""
        inputs = ",\n      ".join(f"%{value._name} : {value._type.str()}" for value in self._param._outputs)
        results = ", ".join(f"%{value._name}" for value in self._return._inputs)
        return f"graph({inputs}):\n{''.join(f'  {node}' for node in self._nodes)}  return ({results})\n"

    def __str__(self) -> Any:
        return self.str()

    __repr__ = __str__


def type_of(value: Any) -> Type:
    """The type of a value."""
    if isinstance(value, torch.Tensor):
        return CompleteTensorType(value)
    if isinstance(value, (list, tuple)):
        element = None if not value or isinstance(value[0], torch.Tensor) else value[0]
        return ListType(TensorType.get() if element is None else type_of(element))
    for kinds, made in ((bool, BoolType), (int, IntType), (float, FloatType), (complex, ComplexType),
                        (str, StringType), (torch.device, DeviceObjType), (type(None), NoneType)):
        if isinstance(value, kinds):
            return made.get()
    raise TypeError(f"no TorchScript type for a value of type {type(value).__name__}")


def plain(value: Any) -> Any:
    """A value as operators of TorchScript take it: dtypes, layouts and memory formats are numbers."""
    if isinstance(value, torch.dtype):
        return SCALAR_TYPES.index(value.name)
    for names, kind in ((_MEMORY_FORMATS, torch.memory_format), (_LAYOUTS, torch.layout)):
        if isinstance(value, kind):
            return names.index(str(value).rpartition(".")[2])
    return value


__all__ = ["ClassType", "CompleteTensorType", "Graph", "Node", "Use", "Value", "plain", "type_of"]
