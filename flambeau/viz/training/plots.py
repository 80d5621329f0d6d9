"""Plots of training: descent paths, losses, gradient sizes, and histograms of weights and activations.

Each function takes tensors and modules, draws on `ax=` or on a new figure, and returns the axes.
"""

from __future__ import annotations

from .descent import Descent, animate_descent, descend, plot_descent, save_animation
from .gradient_flow import gradient_sizes, plot_gradient_flow
from .histograms import activations, plot_histogram_over_steps, plot_histograms
from .losses import plot_losses

__all__ = ["Descent", "activations", "animate_descent", "descend", "gradient_sizes", "plot_descent",
           "plot_gradient_flow", "plot_histogram_over_steps", "plot_histograms", "plot_losses", "save_animation"]
