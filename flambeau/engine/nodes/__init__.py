"""Graph nodes, their hooks, and the nodes of operators without a derivative."""
