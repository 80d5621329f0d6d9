"""`torch.fx`: functions and modules as graphs, which are changed and become code again.

    gm = torch.fx.symbolic_trace(module)    # a GraphModule
    gm.graph                                # its nodes
    gm.code                                 # the source generated from them
"""

from __future__ import annotations

from . import _lazy_graph_module, graph_module, immutable_collections, proxy, traceback
from ._symbolic_trace import ProxyableClassMeta, Tracer, symbolic_trace
from .graph import CodeGen, Graph
from .graph_module import GraphModule
from .interpreter import Interpreter, Transformer
from .node import Node, has_side_effect, map_arg
from .proxy import Proxy
from .subgraph_rewriter import replace_pattern
from .tracing.patching import wrap
from .tracing.placeholders import PH

__all__ = ["Graph", "GraphModule", "Interpreter", "Node", "Proxy", "Tracer", "Transformer", "has_side_effect",
           "map_arg", "replace_pattern", "symbolic_trace", "wrap"]
_ = (PH, CodeGen, ProxyableClassMeta, _lazy_graph_module, graph_module, immutable_collections, proxy, traceback)
