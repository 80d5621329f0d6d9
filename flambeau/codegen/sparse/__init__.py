"""Products of sparse and dense matrices: `products` has the launches, `code` the code generation."""
