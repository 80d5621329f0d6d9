"""Ways to look at a graph: torchviz's drawing, tables of traces, pictures in files.

>>> from flambeau.viz import make_dot
"""

from .dot import backward_picture, make_dot
from .explorer import explore
from .graph import Graph, GraphNode
from .leaks import leaks
from .memory import MemoryReport
from .picture import Picture
from .recording import watching
from .render import render
from .traces import Program, Trace, adjoint_trace, evaluation_trace, record, tangent_trace
from .training import (
    Descent,
    activations,
    animate_descent,
    descend,
    gradient_sizes,
    plot_descent,
    plot_gradient_flow,
    plot_histogram_over_steps,
    plot_histograms,
    plot_losses,
    save_animation,
)

__all__ = ["Descent", "Graph", "GraphNode", "MemoryReport", "Picture", "Program", "Trace", "activations",
           "adjoint_trace", "animate_descent", "backward_picture", "descend", "evaluation_trace", "explore",
           "gradient_sizes", "leaks", "make_dot", "plot_descent", "plot_gradient_flow", "plot_histogram_over_steps",
           "plot_histograms", "plot_losses", "record", "render", "save_animation", "tangent_trace", "watching"]
