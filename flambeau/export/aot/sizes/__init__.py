"""Dynamic sizes: one graph, and what runs compute from the sizes, for many combinations of them."""
