"""`torch.fx`: functions and modules as graphs, which are changed and become code again.

    gm = torch.fx.symbolic_trace(module)    # a GraphModule
    gm.graph                                # its nodes
    gm.code                                 # the source generated from them
"""

from __future__ import annotations

import importlib
from typing import Any

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

#: modules that are imported when they are first looked up
_MODULES = ("_utils", "config")


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
