"""Execution of a backward pass: graph tasks, topological order, gradient accumulation."""
