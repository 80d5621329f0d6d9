"""Plots of training: losses, gradients, histograms and descent paths."""
