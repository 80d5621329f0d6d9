"""`torch.utils.model_zoo`: the former place of `torch.hub.load_state_dict_from_url`."""

from __future__ import annotations

from ..environment.hub import load_state_dict_from_url as load_url
from ..environment.hub import tqdm

__all__ = ["load_url", "tqdm"]
