"""Other libraries' interfaces: the array API standard, and SciPy's optimizers."""
