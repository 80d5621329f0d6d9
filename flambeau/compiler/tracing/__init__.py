"""Tracing: a function runs eagerly while operators, memory and Python frames are recorded."""
