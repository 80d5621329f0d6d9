"""Ways to look at a graph: torchviz's drawing, tables of traces, pictures in files.

>>> from flambeau.viz import make_dot
"""

from .dot import backward_picture, make_dot
from .graph import Graph, GraphNode
from .picture import Picture
from .recording import watching
from .render import render
from .programs import Program, record
from .traces import Trace, adjoint_trace, evaluation_trace, tangent_trace

__all__ = ["Graph", "GraphNode", "Picture", "Program", "Trace", "adjoint_trace", "backward_picture", "evaluation_trace", "make_dot",
           "record", "render", "tangent_trace", "watching"]
