"""State that functions assign: attributes, variables and containers that are inputs and results of programs."""
