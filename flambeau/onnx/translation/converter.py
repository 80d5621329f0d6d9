"""The converter: nodes of an exported program become nodes of an ONNX graph."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

import flambeau as torch

from ...export.graph_signature import ConstantArgument, InputKind, OutputKind
from ...export.tracing.symbolic_numbers import is_symbolic
from ...fx.node import Node
from ...ops.overloads import OpOverload
from ..errors import OnnxExporterError, UnsupportedOperatorError

#: name of a dtype -> name in onnx.TensorProto
TYPES = {"float32": "FLOAT", "float64": "DOUBLE", "float16": "FLOAT16", "bfloat16": "BFLOAT16", "int8": "INT8",
         "int16": "INT16", "int32": "INT32", "int64": "INT64", "uint8": "UINT8", "bool": "BOOL", "uint16": "UINT16",
         "uint32": "UINT32", "uint64": "UINT64", "complex64": "COMPLEX64", "complex128": "COMPLEX128"}
#: "aten.name.overload" or "aten.name" -> function of the converter and the node's arguments
TRANSLATIONS: dict[str, Callable[..., Any]] = {}
#: the same for complex arguments or results, which come first where there are any
COMPLEX_TRANSLATIONS: dict[str, Callable[..., Any]] = {}


class ComplexParts(NamedTuple):
    """The names of the parts of a complex value."""

    real: str
    imaginary: str


def translates(*names: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """A decorator of the function that translates some operators.

    It is given the converter and the arguments of the node, and returns the name of the result, or a list of names.
    """
    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        for name in names:
            if name in TRANSLATIONS:
                raise AssertionError(f"{name} is translated twice")
            TRANSLATIONS[name] = function
        return function

    return decorate


def translation_of(target: Any) -> Callable[..., Any] | None:
    """The function that translates an overload; None where there is none."""
    return TRANSLATIONS.get(str(target)) or TRANSLATIONS.get(f"{target.namespace}.{target.overloadpacket.__name__}")


class Converter:
    """Makes an ONNX graph.

    Args:
        program: the exported program, without writes.
        opset: the version of ONNX's operators.
        translations: overload -> function, which come before those here.
        names: symbol of a dynamic size -> name.

    Attributes:
        node: the node that is translated.
        part: which part of complex arguments `x` names: 0 the real one, 1 the imaginary one.
    """

    def __init__(self, program: Any, opset: int, translations: dict[Any, Any], names: dict[str, str]) -> None:
        import onnx

        self.onnx, self.program, self.opset, self.translations, self.names = onnx, program, opset, translations, names
        self.nodes: list[Any] = []
        self.initializers: dict[str, Any] = {}
        self.values: dict[Node, Any] = {}
        self.constants: dict[Any, str] = {}
        self.used: set[str] = set()
        self.node: Any = None
        self.scope = ""
        self.part = 0

    # ----- building -----

    def fresh(self, base: str) -> str:
        """A name that is not taken."""
        name, i = base, 0
        while name in self.used:
            i += 1
            name = f"{base}_{i}"
        self.used.add(name)
        return name

    def op(self, kind: str, *inputs: Any, outputs: int = 1, domain: str = "", **attributes: Any) -> Any:
        """Add a node; the name of its output, or a list of names."""
        names = [self.fresh(f"{self.scope}_{kind.lower()}" if self.scope else kind.lower()) for _ in range(outputs)]
        given = list(inputs)
        while given and given[-1] is None:
            given.pop()
        set_attributes = {key: value for key, value in attributes.items() if value is not None}
        self.nodes.append(self.onnx.helper.make_node(kind, ["" if x is None else x for x in given], names,
                                                     name=self.fresh(f"node_{names[0]}"), domain=domain,
                                                     **set_attributes))
        return names[0] if outputs == 1 else names

    def const(self, value: Any, dtype: Any = None) -> str:
        """The name of a constant.

        Args:
            value: a number, a list of numbers or an array.
            dtype: default: int64 for integers, float32 for floats.
        """
        array = np.asarray(value)
        if dtype is None and not isinstance(value, np.ndarray):
            array = array.astype(np.int64 if array.dtype.kind in "iu" or not array.size else
                                 np.bool_ if array.dtype.kind == "b" else np.float32)
        bfloat = dtype is not None and dtype == torch.bfloat16
        if dtype is not None:
            array = array.astype(np.float32 if bfloat else _numpy(dtype))
        key = array.dtype.str, array.shape, array.tobytes(), bfloat
        name = self.constants.get(key)
        if name is None:
            name = self.constants[key] = self.fresh("const")
            tensor = self.onnx.numpy_helper.from_array(array, name)
            if bfloat:
                tensor = self.onnx.helper.make_tensor(name, self.onnx.TensorProto.BFLOAT16, array.shape,
                                                      array.ravel().tolist())
            self.initializers[name] = tensor
        return name

    def fail(self, reason: str) -> UnsupportedOperatorError:
        """The error of an operator whose arguments cannot be translated."""
        return UnsupportedOperatorError(str(self.node.target), reason, self.node.meta.get("stack_trace", ""))

    # ----- arguments -----

    def val(self, x: Any) -> Any:
        """The metadata of an argument: a tensor without elements."""
        return x.meta["val"] if isinstance(x, Node) else x

    def dtype(self, x: Any) -> Any:
        """The dtype of a tensor argument; None for a number."""
        value = self.val(x)
        return value.dtype if isinstance(value, torch.Tensor) else None

    def rank(self, x: Any) -> int:
        """The number of dimensions of an argument."""
        return int(self.val(x).dim())

    def shape(self, x: Any) -> list[Any]:
        """The sizes of an argument: numbers, symbolic ones where they are dynamic."""
        return list(self.val(x).shape)

    def fixed(self, x: Any, dim: int) -> int:
        """A size that has to be known.

        Raises:
            UnsupportedOperatorError: it is dynamic.
        """
        size = self.shape(x)[dim]
        if is_symbolic(size):
            raise self.fail(f"dimension {dim} of an input is dynamic")
        return int(size)

    @property
    def result(self) -> Any:
        """The metadata of the node's result."""
        return self.node.meta["val"]

    def x(self, value: Any, dtype: Any = None) -> Any:
        """The name of a tensor or number, cast to a dtype."""
        if value is None:
            return None
        if isinstance(value, Node):
            name = self.values[value]
            if isinstance(name, ComplexParts):
                return name[self.part]
            own = self.dtype(value)
            if own is None:
                own = torch.float32 if isinstance(self.val(value), (float, torch.SymFloat)) else torch.int64
            return name if dtype is None or own == dtype else self.cast(name, dtype)
        if isinstance(value, str):
            return value
        return self.const(value, dtype)

    def pair(self, value: Any) -> Any:
        """The names of the parts of a complex tensor; of any other one, as `x`."""
        return self.values[value] if isinstance(value, Node) else self.x(value)

    def cast(self, name: str, dtype: Any) -> str:
        """A tensor in another dtype."""
        return str(self.op("Cast", name, to=self.type_of(dtype)))

    def type_of(self, dtype: Any) -> int:
        """ONNX's number of a dtype."""
        name = TYPES.get(repr(dtype).rpartition(".")[2])
        if name is None:
            raise OnnxExporterError(f"ONNX has no dtype {dtype}")
        return int(getattr(self.onnx.TensorProto, name))

    def ints(self, values: Any) -> str:
        """A list of numbers, some of them symbolic, as a tensor of one dimension."""
        if isinstance(values, (int, Node)):
            values = [values]
        if not any(isinstance(v, Node) for v in values):
            return self.const(np.asarray(list(values), dtype=np.int64))
        parts = [self.op("Reshape", self.x(v), self.const([1])) if isinstance(v, Node) else self.const([v])
                 for v in values]
        return str(self.op("Concat", *parts, axis=0)) if len(parts) > 1 else str(parts[0])

    def shape_of(self, name: str) -> str:
        """The shape of a tensor as a tensor."""
        return str(self.op("Shape", name))

    def dim_of(self, name: str, dim: int) -> str:
        """A size of a tensor, as a tensor of one element."""
        return str(self.op("Shape", name, start=dim, end=dim + 1))

    def sizes(self, x: Any) -> str:
        """The shape of an argument's metadata as a tensor: a constant where it is known."""
        shape = self.shape(x)
        if any(map(is_symbolic, shape)):
            return self.shape_of(self.x(x))
        return self.const(np.asarray(shape, np.int64))

    # ----- the whole graph -----

    def run(self, input_names: Sequence[str] | None, output_names: Sequence[str] | None,
            keep_initializers_as_inputs: bool = False) -> Any:
        """The ONNX model."""
        helper = self.onnx.helper
        signature = self.program.graph_signature
        graph = self.program.graph
        placeholders = [node for node in graph.nodes if node.op == "placeholder"]
        inputs: list[Any] = []
        given = list(input_names or ())
        for node, spec in zip(placeholders, signature.input_specs, strict=True):
            if spec.kind != InputKind.USER_INPUT:
                value = self.program.state_dict.get(spec.target, self.program.constants.get(spec.target))
                if node.users:
                    self.values[node] = self._weight(spec.target, value)
            elif not isinstance(spec.arg, ConstantArgument):
                name = self.fresh(given[len(inputs)] if len(inputs) < len(given) else spec.arg.name)
                inputs.append(self._info(name, node.meta["val"]))
                self.values[node] = self._argument(name, node.meta["val"])
        if len(given) > len(inputs):
            raise ValueError(f"{len(given)} input names for {len(inputs)} inputs of tensors")
        outputs: list[Any] = []
        for node in graph.nodes:
            if node.op == "call_function":
                self._translate(node)
            elif node.op == "output":
                outputs = self._outputs(node, signature, list(output_names or ()))
        self._prune({info.name for info in outputs})
        initializers = list(self.initializers.values())
        if keep_initializers_as_inputs:
            inputs += [helper.make_tensor_value_info(t.name, t.data_type, list(t.dims)) for t in initializers]
        made = helper.make_graph(self.nodes, "main_graph", inputs, outputs, initializers)
        model = helper.make_model(made, opset_imports=[helper.make_opsetid("", self.opset)], producer_name="pytorch",
                                  producer_version=torch.__version__)
        model.ir_version = 10 if self.opset <= 21 else 11
        return model

    def _argument(self, name: str, value: Any) -> Any:
        """An input as a value of the graph: a complex one has its parts in a last dimension."""
        if not (isinstance(value, torch.Tensor) and value.dtype.is_complex):
            return name
        return ComplexParts(*(self.op("Gather", name, self.const(i), axis=-1) for i in (0, 1)))

    def _weight(self, target: str, value: Any) -> Any:
        if not value.dtype.is_complex:
            return self._initializer(target, value)
        parts = torch.view_as_real(value.detach())
        return ComplexParts(*(self._initializer(f"{target}.{name}", parts[..., i])
                              for i, name in enumerate(("real", "imag"))))

    def _initializer(self, target: str, value: Any) -> str:
        name = self.fresh(target)
        array = value.detach().contiguous()
        if array.dtype == torch.bfloat16:
            tensor = self.onnx.helper.make_tensor(name, self.onnx.TensorProto.BFLOAT16, tuple(array.shape),
                                                  array.float().flatten().tolist())
        else:
            values = np.ascontiguousarray(array.numpy()).reshape(tuple(array.shape))  # which keeps () as it is
            tensor = self.onnx.numpy_helper.from_array(values, name)
        self.initializers[name] = tensor
        return name

    def _info(self, name: str, value: Any) -> Any:
        helper = self.onnx.helper
        if not isinstance(value, torch.Tensor):
            types = self.onnx.TensorProto
            kind = types.FLOAT if isinstance(value, (float, torch.SymFloat)) else types.INT64
            return helper.make_tensor_value_info(name, kind, [])
        sizes = [self._dim(n) for n in value.shape]
        if not value.dtype.is_complex:
            return helper.make_tensor_value_info(name, self.type_of(value.dtype), sizes)
        part = torch.float64 if value.dtype == torch.complex128 else torch.float32
        return helper.make_tensor_value_info(name, self.type_of(part), [*sizes, 2])

    def _dim(self, size: Any) -> Any:
        """A size as ONNX has it: a number, or the name of a dynamic one."""
        if not is_symbolic(size):
            return int(size)
        text = str(size)
        for symbol, name in self.names.items():
            text = text.replace(symbol, name)
        return text

    def _translate(self, node: Node) -> None:
        target: Any = node.target
        self.node, self.scope = node, node.name
        if target is operator.getitem:
            self.values[node] = self.values[node.args[0]][node.args[1]]
            return
        if not isinstance(target, OpOverload):
            self.values[node] = self._arithmetic(node)
            return
        function = self.translations.get(target) or self._complex(node) or translation_of(target)
        if function is None:
            raise UnsupportedOperatorError(str(target), "", node.meta.get("stack_trace", ""))
        try:
            result = function(self, *node.args, **node.kwargs)
        except OnnxExporterError:
            raise
        except Exception as error:
            raise OnnxExporterError(f"the translation of {target} failed ({type(error).__name__}: {error}).\n\nThe "
                                    f"following call uses it:\n{node.meta.get('stack_trace', '')}") from error
        self.values[node] = result

    def _complex(self, node: Node) -> Callable[..., Any] | None:
        """The translation of an operator of complex values; None for one of real values."""
        values = [node.meta.get("val"), *(each.meta.get("val") for each in node.all_input_nodes)]
        if not any(isinstance(value, torch.Tensor) and value.dtype.is_complex for value in values):
            return None
        function = COMPLEX_TRANSLATIONS.get(str(node.target))
        if function is None:
            raise self.fail("a complex number")
        return function

    def _arithmetic(self, node: Node) -> str:
        """Arithmetic on sizes."""
        name = node.target.__name__
        kinds = {"add": "Add", "sub": "Sub", "mul": "Mul", "floordiv": "Div", "neg": "Neg", "truediv": "Div",
                 "mod": "Mod", "pow": "Pow"}
        if name not in kinds:
            raise self.fail("arithmetic on sizes")
        floating = isinstance(node.meta.get("val"), (float, torch.SymFloat))
        dtype = torch.float32 if floating else torch.int64
        return str(self.op(kinds[name], *(self.x(a, dtype) for a in node.args)))

    def _outputs(self, node: Node, signature: Any, given: list[str]) -> list[Any]:
        infos: list[Any] = []
        self.scope = ""
        for value, spec in zip(node.args[0], signature.output_specs, strict=True):
            if spec.kind not in (OutputKind.USER_OUTPUT, OutputKind.LOSS_OUTPUT) or not isinstance(value, Node):
                continue
            source = self.values[value]
            if isinstance(source, ComplexParts):  # as in PyTorch: the parts are a last dimension
                parts = [self.op("Unsqueeze", each, self.const([-1])) for each in source]
                source = self.op("Concat", *parts, axis=-1)
            name = self.fresh(given[len(infos)] if len(infos) < len(given) else value.name)
            self.nodes.append(self.onnx.helper.make_node("Identity", [source], [name], name=self.fresh(f"node_{name}")))
            infos.append(self._info(name, value.meta["val"]))
        if len(given) > len(infos):
            raise ValueError(f"{len(given)} output names for {len(infos)} outputs of tensors")
        return infos

    def _prune(self, outputs: set[str]) -> None:
        """Leave out what no output depends on, and copies."""
        self._without_copies(outputs)
        needed, kept = set(outputs), []
        for node in reversed(self.nodes):
            if any(name in needed for name in node.output):
                needed.update(node.input)
                kept.append(node)
        self.nodes = kept[::-1]
        self.initializers = {name: tensor for name, tensor in self.initializers.items() if name in needed}


    def _without_copies(self, outputs: set[str]) -> None:
        """Replace copies by what they copy."""
        names: dict[str, str] = {}
        kept = []
        for node in self.nodes:
            given = [names.get(name, name) for name in node.input]
            del node.input[:]
            node.input.extend(given)
            if node.op_type == "Identity" and node.output[0] not in outputs:
                names[node.output[0]] = given[0]
            else:
                kept.append(node)
        produced = {name for node in kept for name in node.output if node.op_type != "Identity"}
        renamed: dict[str, str] = {}
        for node in kept:
            if node.op_type == "Identity" and node.input[0] in produced - outputs and node.input[0] not in renamed:
                renamed[node.input[0]] = node.output[0]
        self.nodes = [node for node in kept if not (node.op_type == "Identity" and renamed.get(
            node.input[0]) == node.output[0])]
        for node in self.nodes:
            for field in (node.input, node.output):
                values = [renamed.get(name, name) for name in field]
                del field[:]
                field.extend(values)


def _numpy(dtype: Any) -> Any:
    return np.dtype(repr(dtype).rpartition(".")[2])


__all__ = ["COMPLEX_TRANSLATIONS", "TRANSLATIONS", "TYPES", "ComplexParts", "Converter", "translates", "translation_of"]
