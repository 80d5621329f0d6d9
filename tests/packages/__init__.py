"""Test suites of packages that are built on PyTorch, run on flambeau and on PyTorch.

Each package is installed from its source into two virtual environments: one with PyTorch, one with flambeau and its
`torch` alias. The package's own tests run in both, and a table compares the outcomes test by test. See `__main__`.
"""
