"""`ExportedProgram.run_decompositions`: a program without writes, of the operators below autograd.

A graph is run again on fake tensors. A write becomes an operator that returns the new values; views of what was
written are taken again from them, and what a program writes to parameters, buffers and inputs becomes outputs.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

import flambeau as torch

from .._subclasses.fake_tensor import FakeTensorMode
from ..fx.graph_module import GraphModule
from ..fx.node import Node
from ..ops import aten
from ..ops.overloads import OpOverload
from ..ops.schemas import aten_overloads
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
from .tracing.lowerings import METADATA
from .tracing.symbolic_numbers import is_symbolic
from .tracing.traced_tensor import TracedTensor
from .tracing.tracer import ElementsNeeded, GraphBuilder, OperatorRecorder

__all__ = ["CustomDecompTable", "decomposed", "default_decompositions"]

#: operators that stay, although they are composed of others
_KEPT = frozenset(("sym_size", "_assert_tensor_metadata", "one_hot", "_native_batch_norm_legit_no_training",
                   "_native_batch_norm_legit", "_native_batch_norm_legit_functional", "lstm", "gru", "rnn_tanh",
                   "rnn_relu", "scaled_dot_product_attention", "index_put", "copy", "fill"))


class CustomDecompTable(dict):
    """A table of decompositions: overload -> function that computes it of other operators.

    >>> import flambeau as torch
    >>> len(torch.export.CustomDecompTable())
    0
    """

    def copy(self) -> CustomDecompTable:
        """A table of the same entries."""
        return CustomDecompTable(self)

    def materialize(self) -> dict[Any, Any]:
        """The entries as a plain dictionary."""
        return dict(self)


def default_decompositions() -> CustomDecompTable:
    """The table that `run_decompositions` uses: empty, since operators are taken apart as eager mode computes them.

    An entry replaces that for one overload; an overload that maps to None is kept.

    >>> import flambeau as torch
    >>> torch.export.default_decompositions()
    {}
    """
    return CustomDecompTable()


class _Storage:
    """Memory of the program: the newest values of the tensor that owns it.

    Attributes:
        placeholder: the node whose argument it is; None where the program made it.
    """

    def __init__(self, value: TracedTensor, placeholder: Node | None) -> None:
        self.value, self.placeholder, self.version = value, placeholder, 0


class _Alias:
    """A tensor of the program: the views by which it is taken from its memory.

    Args:
        storage: the memory.
        path: (overload, arguments after the first, keyword arguments, index of the result or None), outermost first.
    """

    def __init__(self, storage: _Storage, path: tuple[Any, ...], value: TracedTensor) -> None:
        self.storage, self.path, self.value, self.version = storage, path, value, storage.version


class _CoreRecorder(OperatorRecorder):
    """Records operators; those that another one stands for as that one, as PyTorch's core operators have it."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = func.overloadpacket.__name__
        if self.builder.recording:
            if name in ("t", "transpose") and args[0].dim() > 1:
                a, b = (0, 1) if name == "t" else args[1:3]
                order = list(range(args[0].dim()))
                order[a], order[b] = order[b], order[a]
                func, args = aten.permute.default, (args[0], order)
            elif name == "_unsafe_view":
                func = aten.view.default
        return super().__torch_dispatch__(func, types, args, kwargs)


class Functionalizer:
    """Runs a graph without writes.

    Operators on tensors with dynamic sizes, but `linear` of matrices, stay as they are: what eager mode takes them
    apart to depends on sizes.

    Args:
        program: the exported program.
        decompose: whether operators are taken apart as autograd's backends see them.
        table: overload -> function that computes it of others; None: it is kept.
    """

    def __init__(self, program: Any, decompose: bool, table: dict[Any, Any]) -> None:
        self.program, self.decompose, self.table = program, decompose, table
        former = next((value.trace for node in program.graph.nodes if node.op == "placeholder" for value in (
            node.meta.get("val"),) if isinstance(value, TracedTensor)), None)
        self.mode: FakeTensorMode = former.mode if former is not None else FakeTensorMode(allow_non_fake_inputs=True)
        self.builder = GraphBuilder(self.mode, former.lanes if former is not None else 1)
        self.builder.lifted = sum(name.startswith("lifted_tensor_") for name in program.constants)
        if former is not None:
            self.builder.expressions.update(former.expressions)
            self.builder.unknown = former.unknown
        self.aliases: dict[Node, _Alias] = {}
        self.values: dict[Node, Any] = {}
        self.parts: dict[Node, list[Any]] = {}

    def run(self) -> tuple[GraphModule, ExportGraphSignature]:
        """The new graph and its signature."""
        signature = self.program.graph_signature
        placeholders = []
        for node in self.program.graph.nodes:
            if node.op == "placeholder":
                placeholders.append(node)
                self._placeholder(node, former=node)
            elif node.op == "output":
                return self._finish(node, placeholders, signature)
            else:
                self._step(node)
        raise RuntimeError("the graph has no output")

    def _placeholder(self, node: Node, former: Node) -> None:
        value = node.meta.get("val")
        builder = self.builder
        if isinstance(value, TracedTensor):
            with builder.silent(), self.mode:
                own = builder.tensor(value.lanes)
            new = builder.graph.create_node("placeholder", node.target, (), {}, node.target)
            builder.last_placeholder = new
            builder.track(own, new)
            new.meta.update({k: v for k, v in node.meta.items() if k != "val"})
            self.aliases[node] = _Alias(_Storage(own, node), (), own)
        else:
            new = builder.placeholder(str(node.target), value)
            self.values[node] = value
        new.name = node.name
        if any(spec.arg.name == node.name and spec.kind == InputKind.USER_INPUT
               for spec in self.program.graph_signature.input_specs):
            builder.first_input = builder.first_input or new

    # ----- values -----

    def value(self, node: Node) -> Any:
        """The value of a node of the old graph, after the writes so far."""
        alias = self.aliases.get(node)
        if alias is None:
            return self.values[node]
        if alias.version != alias.storage.version:
            alias.value = self._replayed(alias.storage.value, alias.path)
            alias.version = alias.storage.version
        return alias.value

    def mapped(self, values: Any) -> Any:
        """Arguments of the old graph as values."""
        if isinstance(values, Node):
            return self.value(values)
        if isinstance(values, (list, tuple)):
            made = [self.mapped(x) for x in values]
            return made if isinstance(values, list) else tuple(made)
        if isinstance(values, dict):
            return {key: self.mapped(x) for key, x in values.items()}
        if isinstance(values, slice):
            return slice(*(self.mapped(x) for x in (values.start, values.stop, values.step)))
        return values

    def _replayed(self, value: TracedTensor, path: tuple[Any, ...]) -> Any:
        for overload, rest, kwargs, index in path:
            result = self.call(overload, (value, *rest), kwargs)
            value = result if index is None else result[index]
        return value

    # ----- operators -----

    def call(self, overload: OpOverload, args: Any, kwargs: Any) -> Any:
        """Nodes for a call of an operator that does not write; its value."""
        builder = self.builder
        name = overload.overloadpacket.__name__
        if overload in self.table and self.table[overload] is not None:
            with self.mode, torch.no_grad(), _CoreRecorder(builder):
                result = self.table[overload](*args, **kwargs)
            if result is not NotImplemented:
                return result
        if self.decompose and name not in _KEPT and overload not in self.table:
            if name == "batch_norm":
                x, weight, bias, mean, var, training, momentum, eps, _ = args
                if training and mean is None:
                    overload, args = aten._native_batch_norm_legit.no_stats, (x, weight, bias, True, momentum, eps)
                else:
                    overload = aten._native_batch_norm_legit_no_training.default
                    args = x, weight, bias, mean, var, momentum, eps
                return self.call(overload, args, {})[0]
            if name == "linear" and args[0].dim() == 2 and builder.depends(args, kwargs):
                x, weight, bias = (*args, kwargs.get("bias"))[:3]
                turned = self.call(aten.permute.default, (weight, [1, 0]), {})
                return self.call(aten.mm.default, (x, turned), {}) if bias is None else (
                    self.call(aten.addmm.default, (bias, x, turned), {}))
            if not builder.depends(args, kwargs):
                last = next(iter(reversed(builder.graph.nodes)))
                try:
                    with self.mode, torch.no_grad(), _CoreRecorder(builder):
                        result = overload(*args, **kwargs)
                    if not self._undone(last):
                        return result
                except ElementsNeeded:
                    self._undone(last, True)
        with self.mode, torch.no_grad():
            return builder.emit(overload, args, kwargs, METADATA.get(name, overload), args, kwargs)

    def _undone(self, last: Node, anyway: bool = False) -> bool:
        """Take back the nodes after `last`, anyway or if one of them writes; whether they are taken back."""
        added = []
        for node in reversed(self.builder.graph.nodes):
            if node is last:
                break
            added.append(node)
        if not anyway and not any(node.op == "call_function" and isinstance(node.target, OpOverload)
                                  and _writes(node.target) for node in added):
            return False
        for node in added:
            if node.op != "placeholder":
                self.builder.graph.erase_node(node)
        return True

    def _step(self, node: Node) -> None:
        self.builder.meta = {key: node.meta[key] for key in ("nn_module_stack", "stack_trace") if key in node.meta}
        target: Any = node.target
        if target is operator.getitem:
            self._item(node)
            return
        if not isinstance(target, OpOverload):
            self.values[node] = target(*self.mapped(node.args), **self.mapped(node.kwargs))
            return
        name = target.overloadpacket.__name__
        if name == "sym_size":
            self.values[node] = self.value(node.args[0]).shape[node.args[1]]
            return
        if name == "_assert_tensor_metadata":
            return
        if name in ("lift_fresh_copy",):
            self._define(node, self.call(aten.clone.default, self.mapped(node.args), {}))
        elif name == "detach_":
            self.aliases[node] = self.aliases[node.args[0]]
        elif name == "batch_norm" and node.args[5] and node.args[3] is not None:
            self._batch_norm(node)
        elif name == "instance_norm" and node.args[5] and node.args[3] is not None:
            raise NotImplementedError("run_decompositions of instance_norm that updates running statistics")
        elif _writes(target):
            self._write(node, target)
        else:
            self._define(node, self.call(target, self.mapped(node.args), self.mapped(node.kwargs)))

    def _item(self, node: Node) -> None:
        parent, index = node.args
        whole = self.parts[parent]
        found = whole[index]
        if isinstance(found, _Alias):
            self.aliases[node] = found
        else:
            self.values[node] = found

    def _define(self, node: Node, result: Any) -> None:
        """Remember the result of a node, and of what it is a view."""
        if isinstance(result, TracedTensor):
            self.aliases[node] = self._alias(node, result, None)
        elif isinstance(result, (list, tuple)):
            self.parts[node] = [self._alias(node, x, i) if isinstance(x, TracedTensor) else x
                                for i, x in enumerate(result)]
        else:
            self.values[node] = result

    def _alias(self, node: Node, result: TracedTensor, index: int | None) -> _Alias:
        target: Any = node.target
        source = node.args[0] if node.args else None
        base = self.aliases.get(source) if isinstance(source, Node) else None
        if base is not None and target._given_schema is not None and any(
                r.alias_info is not None for r in target._schema.returns) and _shares(result, base.value):
            if result is base.value:
                return base
            step = (target, self.mapped(node.args[1:]), self.mapped(node.kwargs), index)
            return _Alias(base.storage, (*base.path, step), result)
        return _Alias(_Storage(result, None), (), result)

    # ----- writes -----

    def _write(self, node: Node, target: OpOverload) -> None:
        args, kwargs = self.mapped(node.args), self.mapped(node.kwargs)
        written: Any = node.args[0]
        alias = self.aliases[written]
        former = self.value(written)
        new = self.functional(target, args, kwargs)
        if new.dtype != former.dtype:
            new = self.call(aten._to_copy.default, (new,), {"dtype": former.dtype})
        if [*new.shape] != [*former.shape]:
            new = self.call(aten.expand.default, (new, [*former.shape]), {})
        self._assign(alias, new)
        self.aliases[node] = alias

    def _assign(self, alias: _Alias, new: TracedTensor) -> None:
        """Give a tensor new values, and the memory that it is a view of."""
        storage = alias.storage
        parents = [storage.value]
        for overload, rest, kwargs, index in alias.path[:-1]:
            result = self.call(overload, (parents[-1], *rest), kwargs)
            parents.append(result if index is None else result[index])
        value = new
        for parent, step in zip(reversed(parents[:len(alias.path)]), reversed(alias.path), strict=True):
            value = self._put_back(parent, value, *step)
        storage.value = value
        storage.version += 1
        alias.value, alias.version = new, storage.version

    def functional(self, target: OpOverload, args: Any, kwargs: Any) -> Any:
        """The values that a writing operator writes to its first argument."""
        name = target.overloadpacket.__name__
        which = target._overloadname
        plain = name[:-1] if not name.startswith("__") else f"__{name[3:]}"
        if name == "copy_":
            source = args[1]
            if source.dtype == args[0].dtype and [*source.shape] == [*args[0].shape]:
                return source
            return self.call(aten.copy.default, args, kwargs)
        if name == "zero_":
            return self.call(aten.zeros_like.default, args, {})
        if name == "fill_":
            if which == "Scalar":
                return self.call(aten.full_like.default, args, {})
            return self.call(aten.expand.default, (args[1], [*args[0].shape]), {})
        if which not in aten_overloads(plain):
            raise NotImplementedError(f"{target} has no operator that returns what it writes")
        return self.call(getattr(getattr(aten, plain), which), args, kwargs)

    def _put_back(self, parent: Any, value: Any, overload: OpOverload, rest: Any, kwargs: Any, index: Any) -> Any:
        """The values of `parent` after its view has become `value`."""
        name = overload.overloadpacket.__name__
        rank = parent.dim()
        if name in ("view", "reshape", "flatten", "unflatten", "squeeze", "unsqueeze", "_unsafe_view", "view_as",
                    "reshape_as"):
            return self.call(aten.view.default, (value, [*parent.shape]), {})
        if name in ("alias", "detach", "contiguous", "to", "lift_fresh", "type_as", "expand_as", "expand") and (
                [*parent.shape] == [*value.shape]):
            return value
        if name in ("transpose", "swapaxes", "swapdims", "t", "mT", "numpy_T", "mH", "adjoint"):
            return self.call(overload, (value, *rest), kwargs)
        if name == "permute":
            order = [d % rank for d in rest[0]]
            return self.call(overload, (value, [order.index(d) for d in range(rank)]), {})
        if name in ("movedim", "moveaxis"):
            return self.call(overload, (value, rest[1], rest[0]), {})
        if name in ("select", "slice", "diagonal"):
            scatter = {"select": aten.select_scatter, "slice": aten.slice_scatter,
                       "diagonal": aten.diagonal_scatter}[name]
            return self.call(scatter.default, (parent, value, *rest), kwargs)
        if name == "narrow":
            dim, start, length = rest
            return self.call(aten.slice_scatter.default, (parent, value, dim, start, start + length), {})
        if name == "unbind":
            return self.call(aten.select_scatter.default, (parent, value, rest[0] if rest else 0, index), {})
        if name in ("chunk", "split", "split_with_sizes", "tensor_split"):
            dim = rest[1] if len(rest) > 1 else kwargs.get("dim", 0)
            pieces = self.call(overload, (parent, *rest), kwargs)
            start = sum(piece.shape[dim] for piece in pieces[:index])
            return self.call(aten.slice_scatter.default, (parent, value, dim, start, start + value.shape[dim]), {})
        raise NotImplementedError(f"a write to a view by {overload}")

    def _batch_norm(self, node: Node) -> None:
        x, weight, bias, mean, var, training, momentum, eps, _ = self.mapped(node.args)
        results = self.call(aten._native_batch_norm_legit_functional.default, (
            x, weight, bias, mean, var, training, momentum, eps), {})
        self._define(node, results[0])
        for old, new in zip(node.args[3:5], results[3:5], strict=True):
            self._assign(self.aliases[old], new)

    # ----- outputs -----

    def _finish(self, output: Node, placeholders: list[Node],
                signature: ExportGraphSignature) -> tuple[GraphModule, ExportGraphSignature]:
        builder = self.builder
        outputs, specs = [], []
        for node, source in zip(placeholders, signature.input_specs, strict=True):
            alias = self.aliases.get(node)
            if alias is None or not alias.storage.version or source.kind == InputKind.CONSTANT_TENSOR:
                continue
            kind = {InputKind.PARAMETER: OutputKind.PARAMETER_MUTATION, InputKind.BUFFER: OutputKind.BUFFER_MUTATION,
                    InputKind.USER_INPUT: OutputKind.USER_INPUT_MUTATION}[source.kind]
            result = builder.argument(self.value(node))
            outputs.append(result)
            specs.append(OutputSpec(kind, TensorArgument(result.name), source.target or source.arg.name))
        for value, spec in zip(output.args[0], signature.output_specs, strict=True):
            if not isinstance(value, Node):
                outputs.append(value)
                specs.append(OutputSpec(spec.kind, ConstantArgument("", value), spec.target))
                continue
            mapped = self.value(value)
            result = builder.argument(mapped)
            outputs.append(result)
            name = getattr(result, "name", "")
            kind_of = SymIntArgument if is_symbolic(mapped) else TensorArgument
            specs.append(OutputSpec(spec.kind, kind_of(name), spec.target))
        builder.graph.output(tuple(outputs))
        builder.graph.eliminate_dead_code(_is_kept)
        former = {spec.arg.name: spec for spec in signature.input_specs}
        inputs = [former[node.name] if node.name in former else InputSpec(
            InputKind.CONSTANT_TENSOR, TensorArgument(node.name), node.meta["constant"])
            for node in builder.graph.find_nodes(op="placeholder")]
        return GraphModule(torch.nn.Module(), builder.graph), ExportGraphSignature(inputs, specs)


def _is_kept(node: Node) -> bool:
    if node.op in ("placeholder", "output"):
        return True
    return isinstance(node.target, OpOverload) and node.is_impure(False)


def _writes(target: OpOverload) -> bool:
    """Whether an operator writes to its first argument."""
    schema = target._given_schema
    return schema is not None and schema.is_mutable


def _shares(x: TracedTensor, y: TracedTensor) -> bool:
    return bool(np.may_share_memory(x.lanes[0]._array, y.lanes[0]._array))


def decomposed(program: Any, table: dict[Any, Callable[..., Any]] | None) -> Any:
    """The program of `run_decompositions`."""
    return _rewritten(program, Functionalizer(program, True, dict(table or {})), "ATEN")


def functionalized(program: Any) -> Any:
    """The program without writes, of the same operators otherwise."""
    return _rewritten(program, Functionalizer(program, False, {}), program.dialect)


def _rewritten(program: Any, functionalizer: Functionalizer, dialect: str) -> Any:
    graph_module, signature = functionalizer.run()
    constants = {**program.constants, **functionalizer.builder.constants}
    return program._update(graph_module, signature, constants=constants, dialect=dialect)

