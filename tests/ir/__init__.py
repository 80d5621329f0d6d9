"""Graphs, clusters and plans, by themselves."""
