"""Graphs drawn with Graphviz, through the package `pydot`."""

from __future__ import annotations

import hashlib
from typing import Any

from ..._tensor.parameter import Parameter
from .._compatibility import compatibility
from ..code.stack_traces import _parse_stack_trace
from ..code.torch_names import module_of, qualified_name
from ..graph_module import GraphModule
from ..node import Node, _format_arg
from ..operator_schemas import normalize_function
from .shape_prop import TensorMetadata

__all__ = ["FxGraphDrawer"]

_COLORS = {"placeholder": '"AliceBlue"', "call_module": "LemonChiffon1", "get_param": "Yellow2",
           "get_attr": "LightGrey", "output": "PowderBlue"}
_COLORS_OF_TARGETS = ("CadetBlue1", "Coral", "DarkOliveGreen1", "DarkSeaGreen1", "GhostWhite", "Khaki1",
                      "LavenderBlush1", "LightSkyBlue", "MistyRose1", "MistyRose2", "PaleTurquoise2", "PeachPuff1",
                      "Salmon", "Thistle1", "Thistle3", "Wheat1")


def _escaped(text: str) -> str:
    return text.replace("{", r"\{").replace("}", r"\}")


def _dtype(dtype: Any) -> str:
    return f"torch.{str(dtype).rpartition('.')[2]}"


@compatibility(is_backward_compatible=False)
class FxGraphDrawer:
    """Drawings of a module's graph and of those of its submodules.

    Args:
        graph_module: the module.
        name: the name of the drawing.
        ignore_getattr: whether attribute reads are left out.
        ignore_parameters_and_buffers: whether parameters and buffers of submodules are left out.
        skip_node_names_in_args: whether arguments that are nodes are left out of labels.
        parse_stack_trace: whether labels contain the line of the program.
        dot_graph_shape: the shape of nodes; None: `record`.
        normalize_args: whether arguments are matched to signatures.

    Raises:
        RuntimeError: `pydot` is not installed.
    """

    def __init__(self, graph_module: GraphModule, name: str, ignore_getattr: bool = False,
                 ignore_parameters_and_buffers: bool = False, skip_node_names_in_args: bool = True,
                 parse_stack_trace: bool = False, dot_graph_shape: str | None = None,
                 normalize_args: bool = False) -> None:
        try:
            import pydot  # type: ignore[import-not-found, unused-ignore]
        except ImportError:
            raise RuntimeError("FXGraphDrawer requires the pydot package to be installed. Please install pydot through "
                               "your favorite Python package manager.") from None
        self._pydot, self._name = pydot, name
        self.dot_graph_shape = "record" if dot_graph_shape is None else dot_graph_shape
        self.normalize_args = normalize_args
        self._skip_nodes, self._with_lines = skip_node_names_in_args, parse_stack_trace
        self._ignored = ignore_getattr, ignore_parameters_and_buffers
        self._dot_graphs = {name: self._to_dot(graph_module, name)}
        for node in graph_module.graph.nodes:
            inner = self._get_leaf_node(graph_module, node) if node.op == "call_module" else None
            if isinstance(inner, GraphModule):
                self._dot_graphs[f"{name}_{node.target}"] = self._to_dot(inner, f"{name}_{node.target}")

    def get_dot_graph(self, submod_name: str | None = None) -> Any:
        """The drawing of the module, or of a submodule."""
        return self.get_main_dot_graph() if submod_name is None else self.get_submod_dot_graph(submod_name)

    def get_main_dot_graph(self) -> Any:
        """The drawing of the module."""
        return self._dot_graphs[self._name]

    def get_submod_dot_graph(self, submod_name: str) -> Any:
        """The drawing of a submodule."""
        return self._dot_graphs[f"{self._name}_{submod_name}"]

    def get_all_dot_graphs(self) -> dict[str, Any]:
        """Name -> drawing."""
        return self._dot_graphs

    def _get_leaf_node(self, module: Any, node: Node) -> Any:
        for name in node.target.split("."):
            if not hasattr(module, name):
                raise RuntimeError(f"{module} does not have attribute {name}!")
            module = getattr(module, name)
        return module

    def _get_node_style(self, node: Node) -> dict[str, str]:
        color = _COLORS.get(node.op)
        if color is None:
            digest = hashlib.md5(node._pretty_print_target(node.target).encode(), usedforsecurity=False).hexdigest()
            color = _COLORS_OF_TARGETS[int(digest[:8], 16) % len(_COLORS_OF_TARGETS)]
        return {"shape": self.dot_graph_shape, "fillcolor": color, "style": '"filled,rounded"', "fontcolor": "#000000"}

    def _arguments(self, values: Any) -> str:
        if isinstance(values, tuple):
            head, tail, texts = r"|args=(\l", r",\n)\l", [_format_arg(value, max_list_len=8) for value in values]
        else:
            head, tail = r"|kwargs={\l", r",\n}\l"
            texts = [f"{name}: {_format_arg(value, max_list_len=8)}" for name, value in values.items()]
        if self._skip_nodes:
            texts = [text for text in texts if "%" not in text]
        if not texts:
            return ""
        text = head + r",\n".join(texts) + tail
        return _escaped(text.replace(r"\l", "").replace(r"\n", "") if len(texts) == 1 else text)

    def _label(self, module: GraphModule, node: Node) -> str:
        label = "{" + f"name=%{node.name}|op_code={node.op}\n"
        if node.op == "call_module":
            leaf = self._get_leaf_node(module, node)
            constants = [f"{name}: {getattr(leaf, name)}" for name in getattr(leaf, "__constants__", ())]
            label += (r"\n" + _escaped(f"{module_of(type(leaf))}.{type(leaf).__qualname__}") + r"\n|"
                      + r"\n".join(constants) + r"\n")
        else:
            target = node.target if isinstance(node.target, str) else qualified_name(node.target)
            label += f"|target={_escaped(target)}" + r"\n"
            args, kwargs = node.args, node.kwargs
            if self.normalize_args:
                try:
                    args, kwargs = normalize_function(  # type: ignore[misc]
                        node.target, args, kwargs, normalize_to_only_use_kwargs=True)
                except Exception:  # some functions need types to choose an overload
                    args, kwargs = node.args, node.kwargs
            label += (self._arguments(tuple(args)) if args else "") + (self._arguments(dict(kwargs)) if kwargs else "")
            label += f"|num_users={len(node.users)}" + r"\n"
        label += self._metadata(node.meta.get("tensor_meta"))
        frame = _parse_stack_trace(node.stack_trace) if self._with_lines else None
        if frame is not None:
            file = "/".join(frame.file.split("/")[-2:])
            label += f"|file={file}:{frame.lineno} {frame.code}" + r"\n"
        return label + "}"

    def _metadata(self, meta: Any) -> str:
        if meta is None:
            return ""
        if isinstance(meta, TensorMetadata):
            return (f"|dtype={_dtype(meta.dtype)}" + r"\n" + f"|shape={tuple(meta.shape)}" + r"\n"
                    + f"|requires_grad={meta.requires_grad}" + r"\n" + f"|stride={meta.stride}" + r"\n")
        if isinstance(meta, (list, tuple, dict)):
            return "".join(map(self._metadata, meta.values() if isinstance(meta, dict) else meta))
        raise RuntimeError(f"Unsupported tensor meta type {type(meta)}")

    def _to_dot(self, module: GraphModule, name: str) -> Any:
        pydot = self._pydot
        drawing = pydot.Dot(name, rankdir="TB")
        nodes = [node for node in module.graph.nodes if not (self._ignored[0] and node.op == "get_attr")]
        for node in nodes:
            drawing.add_node(pydot.Node(node.name, label=self._label(module, node), **self._get_node_style(node)))
            leaf = self._get_leaf_node(module, node) if node.op == "call_module" else None
            if leaf is None or self._ignored[1] or isinstance(leaf, GraphModule):
                continue
            for each, value in (*leaf.named_parameters(), *leaf.named_buffers()):
                path = f"{node.name}.{each}"
                kind = f"{path}|op_code=get_parameter" if isinstance(value, Parameter) else r"buffer\l"
                text = "{" + kind + _dtype(value.dtype) + str(list(value.shape)) + r"\n" + "}"
                drawing.add_node(pydot.Node(path, label=text, fillcolor="Salmon", style='"filled,rounded"',
                                            fontcolor="#000000", shape=self.dot_graph_shape))
                drawing.add_edge(pydot.Edge(path, node.name))
        for node in nodes:
            for user in node.users:
                drawing.add_edge(pydot.Edge(node.name, user.name))
        return drawing

