"""Visualization of graphs and training: drawings, traces, memory reports, leak reports, plots, the explorer.

>>> from flambeau.viz import make_dot
"""

from .drawing.dot import backward_picture, make_dot
from .drawing.picture import Picture
from .drawing.render import render
from .explorer import explore
from .graph.graph import Graph, GraphNode
from .graph.leaks import leaks
from .graph.memory import MemoryReport
from .graph.recording import watching
from .processes.charts import overlap, plot_pipeline, plot_ranks
from .processes.joining import join_traces
from .traces.traces import Program, Trace, adjoint_trace, evaluation_trace, record, tangent_trace
from .training.plots import (
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
           "gradient_sizes", "join_traces", "leaks", "make_dot", "overlap", "plot_descent", "plot_gradient_flow",
           "plot_histogram_over_steps", "plot_histograms", "plot_losses", "plot_pipeline", "plot_ranks", "record",
           "render", "save_animation", "tangent_trace", "watching"]
