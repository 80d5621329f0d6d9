"""The version, read by packaging, `flambeau.__version__` and the changelog's test."""

__version__ = "0.1.0"
