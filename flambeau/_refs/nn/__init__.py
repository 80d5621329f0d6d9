"""`torch._refs.nn`: its functions are in `functional`."""

from . import functional

__all__ = ["functional"]
