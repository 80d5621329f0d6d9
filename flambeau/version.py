"""The version, said once: packaging, `flambeau.__version__` and the changelog's test read it here."""

__version__ = "0.1.0"
