"""The parts of `nn.functional` that are formulas of tensor operators, or handle their arguments."""
