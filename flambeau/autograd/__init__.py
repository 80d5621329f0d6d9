"""The graph: nodes, the engine that runs them backward, and the modes that decide what is recorded."""
