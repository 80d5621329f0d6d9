"""Graphs of ONNX models in TensorBoard's format."""

from __future__ import annotations

from typing import Any

from tensorboard.compat.proto.attr_value_pb2 import AttrValue
from tensorboard.compat.proto.graph_pb2 import GraphDef
from tensorboard.compat.proto.node_def_pb2 import NodeDef
from tensorboard.compat.proto.tensor_shape_pb2 import TensorShapeProto
from tensorboard.compat.proto.versions_pb2 import VersionDef


def load_onnx_graph(path: Any) -> Any:
    """The graph of a file of ONNX; its inputs and outputs are variables, its nodes are named by their first result."""
    import onnx

    graph = onnx.load(path).graph
    nodes = []
    for each in (*graph.input, *graph.output):
        kind = each.type.tensor_type
        shape = TensorShapeProto(dim=[TensorShapeProto.Dim(size=dim.dim_value) for dim in kind.shape.dim])
        nodes.append(NodeDef(name=each.name, op="Variable", attr={"dtype": AttrValue(type=kind.elem_type),
                                                                  "shape": AttrValue(shape=shape)}))
    for node in graph.node:
        parameters = ", ".join(" = ".join(str(value) for _, value in each.ListFields()) for each in node.attribute)
        nodes.append(NodeDef(name=node.output[0], op=node.op_type, input=node.input,
                             attr={"parameters": AttrValue(s=parameters.encode())}))
    return GraphDef(node=nodes, versions=VersionDef(producer=22))


__all__ = ["load_onnx_graph"]
