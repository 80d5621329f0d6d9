"""`torch._inductor`: the settings of PyTorch's code generator, stored without effect."""

from __future__ import annotations

import importlib
from typing import Any

from ...settings import Settings
from .config_defaults import INDUCTOR


def _make_config() -> Settings:
    name = "torch._inductor.config"
    groups = {group: Settings(f"{name}.{group}", values) for group, values in INDUCTOR.items() if group}
    return Settings(name, {**INDUCTOR[""], **groups})


#: PyTorch's settings with its defaults; others do not exist
config = _make_config()

_AUTOTUNE = {"max_autotune": True, "coordinate_descent_tuning": True}
_LITE = {"fallback_by_default": True, "selective_decompose": True, **dict.fromkeys((
    "reorder_for_peak_memory", "reorder_for_compute_comm_overlap", "triton.reorder_for_reducing_graph_partitions",
    "use_pre_grad_passes", "use_joint_graph_passes", "use_post_grad_passes", "use_dce", "allow_buffer_reuse"), False)}
_MODES: dict[str, dict[str, Any]] = {
    "default": {}, "lite": _LITE, "reduce-overhead": {"triton.cudagraphs": True},
    "max-autotune-no-cudagraphs": _AUTOTUNE, "max-autotune": {**_AUTOTUNE, "triton.cudagraphs": True}}


def list_mode_options(mode: str | None = None, dynamic: bool | None = None) -> dict[str, Any]:
    """The settings that the modes of `compile` stand for in PyTorch.

    Args:
        mode: one of them; None: a dictionary of all.
        dynamic: without effect.

    >>> list_mode_options("reduce-overhead")
    {'triton.cudagraphs': True}
    """
    return dict(_MODES[mode]) if mode else {name: dict(options) for name, options in _MODES.items()}


def list_options() -> list[str]:
    """The names of the settings.

    >>> "triton.cudagraphs" in list_options()
    True
    """
    return [*config.to_dict()]


def check_options(options: dict[str, Any]) -> None:
    """Check options of `compile`.

    Raises:
        RuntimeError: one does not exist, or has another type.

    >>> check_options({"max_autotune": True})
    """
    known = config.to_dict()
    for name, value in options.items():
        key = name.replace("-", "_")
        if key not in known:
            raise RuntimeError(f"Unexpected optimization option {name}, known options are {[*known]}")
        default = known[key]
        if isinstance(default, (bool, int, float)) and value is not None and not isinstance(value, type(default)):
            raise RuntimeError(f"Unexpected type of attr {name}, got {type(value).__name__} should be "
                               f"{type(default).__name__}")


def __getattr__(name: str) -> Any:
    if name in ("aoti_compile_and_package", "aoti_load_package"):  # of exported programs, which stand above
        return getattr(importlib.import_module(f"{__package__.partition('.')[0]}.export.aoti"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


__all__ = ["check_options", "config", "list_mode_options", "list_options"]
