"""Experiments of `torch.fx`: operator traces, constant folding, normal forms."""

from . import _config as _config
