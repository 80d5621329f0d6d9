"""Implementation of `nn.functional`: compositions of operators, argument checks, deprecated arguments."""
