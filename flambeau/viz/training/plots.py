"""Training, in pictures: plain matplotlib functions that take tensors and modules as they are.

Each draws on `ax=` or on a new figure and returns the axes. The ways down a function
(`descent`), losses (`losses`), the sizes of gradients (`gradient_flow`), and the spread of
weights and activations (`histograms`) have a file each.
"""

from __future__ import annotations

from .descent import Descent, animate_descent, descend, plot_descent, save_animation
from .gradient_flow import gradient_sizes, plot_gradient_flow
from .histograms import activations, plot_histogram_over_steps, plot_histograms
from .losses import plot_losses

__all__ = ["Descent", "activations", "animate_descent", "descend", "gradient_sizes", "plot_descent",
           "plot_gradient_flow", "plot_histogram_over_steps", "plot_histograms", "plot_losses", "save_animation"]
