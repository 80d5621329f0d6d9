"""`torch.__future__`: behavior of modules that programs may choose."""

from __future__ import annotations

from ..nn.modules.base.conversion import OVERWRITE, SWAP


def set_overwrite_module_params_on_conversion(value: bool) -> None:
    """Whether `Module.to` and its like make new parameters instead of changing the present ones' data."""
    OVERWRITE[0] = bool(value)


def get_overwrite_module_params_on_conversion() -> bool:
    """Whether `Module.to` and its like make new parameters."""
    return OVERWRITE[0]


def set_swap_module_params_on_conversion(value: bool) -> None:
    """Whether `Module.to` and `load_state_dict` swap parameters with converted ones, by `utils.swap_tensors`."""
    SWAP[0] = bool(value)


def get_swap_module_params_on_conversion() -> bool:
    """Whether `Module.to` and `load_state_dict` swap parameters with converted ones."""
    return SWAP[0]
