"""`torch.cuda.random`: the random number generators of GPUs, of which there are none."""

from __future__ import annotations

from ..accelerators.absent import shared_names
from . import _names_of_device

globals().update({name: value for name, value in shared_names("cuda", "torch.cuda").items()
                  if "seed" in name or "rng" in name})
globals().update(_names_of_device(globals()))
