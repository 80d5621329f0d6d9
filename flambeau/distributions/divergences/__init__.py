"""Formulas of Kullback-Leibler divergences, registered by pairs of distributions."""
