"""The state of autocast: for each type of device whether it is on and its dtype, and the cache of cast leaves.

The state belongs to one thread. While autocast is on for the CPU anywhere, public functions are replaced by code that
asks `policies.call` (`_tensor.overriding.entry_points`); otherwise autocast costs nothing.
"""

from __future__ import annotations

import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from .. import dtypes
from .._tensor.overriding import entry_points
from ..devices import device as _device
from ..modes import active_autocasts, enabled_autocasts, special

_DEFAULTS = {"cpu": dtypes.bfloat16, "cuda": dtypes.float16, "hpu": dtypes.bfloat16, "ipu": dtypes.float16,
             "maia": dtypes.bfloat16, "mps": dtypes.float16, "mtia": dtypes.float16, "privateuseone": dtypes.float16,
             "xla": dtypes.bfloat16, "xpu": dtypes.float16}


#: [what runs public functions under autocast: `policies.call`]
run_function: list[Any] = [None]


class _State(threading.local):
    def __init__(self) -> None:
        self.enabled = dict.fromkeys(_DEFAULTS, False)
        self.dtype = dict(_DEFAULTS)
        self.cache_enabled = True
        self.nesting = 0
        self.cached: dict[int, tuple[Any, Any]] = {}  # id of a leaf -> the leaf, its cast
        self.counted = 0  # of the types of devices, those for which it is on and acts
        self.excluded = 0  # the operators on the stack whose arguments autocast has cast


_state = _State()


def _kind(device_type: str, function: str) -> str:
    if not isinstance(device_type, str):
        raise TypeError(f"{function}(): argument 'device_type' (position 1) must be str, not "
                        f"{type(device_type).__name__}")
    kind = _device(device_type).type
    if kind not in _DEFAULTS:
        raise RuntimeError("unsupported scalarType" if function.startswith("get") else
                           "unknown device type for autocast in get_autocast_dispatch_key_from_device_type")
    return kind


def acts(kind: str = "cpu") -> bool:
    """Whether autocast on a type of device acts on the next operator of this thread."""
    return _state.enabled[kind] and not _state.excluded


class excluded:
    """A block in which autocast does not act, though it is on: fast paths are taken as if it were off."""

    __slots__ = ("_counted",)

    def __enter__(self) -> None:
        _state.excluded += 1
        self._counted, _state.counted = _state.counted, 0
        _count(-self._counted)

    def __exit__(self, *error: object) -> None:
        _state.excluded -= 1
        _state.counted += self._counted
        _count(self._counted)


def _count(change: int) -> None:
    """Count the types of devices for which autocast excludes fast paths, over all threads."""
    special[0] += change
    active_autocasts[0] += change


def casts_to() -> dtypes.dtype | None:
    """The dtype of autocast, where it acts on the next operator of this thread."""
    return _state.dtype["cpu"] if active_autocasts[0] and acts() else None


@contextmanager
def own_cache() -> Iterator[None]:
    """A block with a cache of its own: casts from before it are not used, those in it not kept."""
    before, _state.cached = _state.cached, {}
    try:
        yield
    finally:
        _state.cached = before


def dtype_of(kind: str) -> Any:
    """The dtype of autocast on a type of device."""
    return _state.dtype[kind]


def cast_leaves() -> dict[int, tuple[Any, Any]]:
    """The cache of this thread: id of a leaf -> the leaf, its cast."""
    return _state.cached


def is_autocast_available(device_type: str) -> bool:
    """Whether there is autocast for a type of device.

    >>> import flambeau as torch
    >>> torch.amp.is_autocast_available("cpu")
    True
    """
    return _device(device_type).type in _DEFAULTS


def is_autocast_enabled(device_type: str = "cuda") -> bool:
    """Whether autocast is on for a type of device.

    >>> import flambeau as torch
    >>> with torch.autocast("cpu"):
    ...     torch.is_autocast_enabled("cpu")
    True
    """
    return _state.enabled[_kind(device_type, "is_autocast_enabled")]


def set_autocast_enabled(*args: Any) -> None:
    """Switch autocast: `set_autocast_enabled(device_type, enabled)`; without a type, for CUDA.

    >>> import flambeau as torch
    >>> torch.set_autocast_enabled("cpu", True)
    >>> torch.is_autocast_enabled("cpu")
    True
    >>> torch.set_autocast_enabled("cpu", False)
    """
    device_type, enabled = args if len(args) == 2 else ("cuda", *args)
    if not isinstance(enabled, bool):
        raise TypeError(f"enabled must be a bool (got {type(enabled).__name__})")
    kind = _kind(device_type, "set_autocast_enabled")
    before, _state.enabled[kind] = _state.enabled[kind], enabled
    if kind not in ("cpu", "cuda") or before is enabled:
        return
    if enabled:
        entry_points.innermost[0] = run_function[0]
        entry_points.begin_use()
    else:
        entry_points.end_use()
    change = 1 if enabled else -1
    enabled_autocasts[0] += change
    _state.counted += change
    _count(change)


def get_autocast_dtype(device_type: str) -> Any:
    """The dtype of autocast on a type of device.

    >>> import flambeau as torch
    >>> torch.get_autocast_dtype("cuda")
    flambeau.float16
    """
    return _state.dtype[_kind(device_type, "get_autocast_dtype")]


def set_autocast_dtype(device_type: str, dtype: Any) -> None:
    """Set the dtype of autocast on a type of device.

    Raises:
        TypeError: not a dtype.

    >>> import flambeau as torch
    >>> torch.set_autocast_dtype("cpu", torch.float16)
    >>> torch.get_autocast_dtype("cpu")
    flambeau.float16
    >>> torch.set_autocast_dtype("cpu", torch.bfloat16)
    """
    if not isinstance(dtype, dtypes.dtype):
        raise TypeError("set_autocast_dtype(): argument 'dtype' (position 2) must be torch.dtype, not "
                        f"{type(dtype).__name__}")
    _state.dtype[_kind(device_type, "set_autocast_dtype")] = dtype


def is_autocast_cache_enabled() -> bool:
    """Whether the casts of leaves are cached until the outermost autocast block ends.

    >>> import flambeau as torch
    >>> torch.is_autocast_cache_enabled()
    True
    """
    return _state.cache_enabled


def set_autocast_cache_enabled(enabled: bool) -> None:
    """Switch the cache of cast leaves.

    >>> import flambeau as torch
    >>> torch.set_autocast_cache_enabled(True)
    """
    if not isinstance(enabled, bool):
        raise TypeError(f"enabled must be a bool (got {type(enabled).__name__})")
    _state.cache_enabled = enabled


def clear_autocast_cache() -> None:
    """Drop the cached casts of leaves.

    >>> import flambeau as torch
    >>> torch.clear_autocast_cache()
    """
    _state.cached.clear()


def autocast_increment_nesting() -> int:
    """Count an autocast block that begins; returns the depth.

    >>> import flambeau as torch
    >>> torch.autocast_increment_nesting(), torch.autocast_decrement_nesting()
    (1, 0)
    """
    _state.nesting += 1
    return _state.nesting


def autocast_decrement_nesting() -> int:
    """Count an autocast block that ends; returns the depth.

    >>> import flambeau as torch
    >>> torch.autocast_increment_nesting(), torch.autocast_decrement_nesting()
    (1, 0)
    """
    _state.nesting -= 1
    return _state.nesting


def _is_any_autocast_enabled() -> bool:
    return any(_state.enabled.values())


# ----- deprecated functions of one type of device -----

def _deprecated(name: str, replacement: str) -> None:
    warnings.warn(f"torch.{name} is deprecated. Please use torch.{replacement} instead.", DeprecationWarning,
                  stacklevel=3)


def is_autocast_cpu_enabled() -> bool:
    """Deprecated: `is_autocast_enabled("cpu")`.

    >>> import flambeau as torch
    >>> torch.is_autocast_cpu_enabled()  # doctest: +SKIP
    False
    """
    _deprecated("is_autocast_cpu_enabled()", "is_autocast_enabled('cpu')")
    return _state.enabled["cpu"]


def set_autocast_cpu_enabled(enabled: bool) -> None:
    """Deprecated: `set_autocast_enabled("cpu", enabled)`.

    >>> import flambeau as torch
    >>> torch.set_autocast_cpu_enabled(False)  # doctest: +SKIP
    """
    _deprecated("set_autocast_cpu_enabled(enabled)", "set_autocast_enabled('cpu', enabled)")
    set_autocast_enabled("cpu", enabled)


def is_autocast_ipu_enabled() -> bool:
    """Deprecated: `is_autocast_enabled("ipu")`.

    >>> import flambeau as torch
    >>> torch.is_autocast_ipu_enabled()  # doctest: +SKIP
    False
    """
    _deprecated("is_autocast_ipu_enabled()", "is_autocast_enabled('ipu')")
    return _state.enabled["ipu"]


def set_autocast_ipu_enabled(enabled: bool) -> None:
    """Deprecated: `set_autocast_enabled("ipu", enabled)`.

    >>> import flambeau as torch
    >>> torch.set_autocast_ipu_enabled(False)  # doctest: +SKIP
    """
    _deprecated("set_autocast_ipu_enabled(enabled)", "set_autocast_enabled('ipu', enabled)")
    set_autocast_enabled("ipu", enabled)


def is_autocast_xla_enabled() -> bool:
    """Deprecated: `is_autocast_enabled("xla")`.

    >>> import flambeau as torch
    >>> torch.is_autocast_xla_enabled()  # doctest: +SKIP
    False
    """
    _deprecated("is_autocast_xla_enabled()", "is_autocast_enabled('xla')")
    return _state.enabled["xla"]


def set_autocast_xla_enabled(enabled: bool) -> None:
    """Deprecated: `set_autocast_enabled("xla", enabled)`.

    >>> import flambeau as torch
    >>> torch.set_autocast_xla_enabled(False)  # doctest: +SKIP
    """
    _deprecated("set_autocast_xla_enabled(enabled)", "set_autocast_enabled('xla', enabled)")
    set_autocast_enabled("xla", enabled)


def get_autocast_cpu_dtype() -> Any:
    """Deprecated: `get_autocast_dtype("cpu")`.

    >>> import flambeau as torch
    >>> torch.get_autocast_cpu_dtype()  # doctest: +SKIP
    flambeau.bfloat16
    """
    _deprecated("get_autocast_cpu_dtype()", "get_autocast_dtype('cpu')")
    return _state.dtype["cpu"]


def set_autocast_cpu_dtype(dtype: Any) -> None:
    """Deprecated: `set_autocast_dtype("cpu", dtype)`.

    >>> import flambeau as torch
    >>> torch.set_autocast_cpu_dtype(torch.bfloat16)  # doctest: +SKIP
    """
    _deprecated("set_autocast_cpu_dtype(dtype)", "set_autocast_dtype('cpu', dtype)")
    set_autocast_dtype("cpu", dtype)


def get_autocast_gpu_dtype() -> Any:
    """Deprecated: `get_autocast_dtype("cuda")`.

    >>> import flambeau as torch
    >>> torch.get_autocast_gpu_dtype()  # doctest: +SKIP
    flambeau.float16
    """
    _deprecated("get_autocast_gpu_dtype()", "get_autocast_dtype('cuda')")
    return _state.dtype["cuda"]


def set_autocast_gpu_dtype(dtype: Any) -> None:
    """Deprecated: `set_autocast_dtype("cuda", dtype)`.

    >>> import flambeau as torch
    >>> torch.set_autocast_gpu_dtype(torch.float16)  # doctest: +SKIP
    """
    _deprecated("set_autocast_gpu_dtype(dtype)", "set_autocast_dtype('cuda', dtype)")
    set_autocast_dtype("cuda", dtype)


def get_autocast_ipu_dtype() -> Any:
    """Deprecated: `get_autocast_dtype("ipu")`.

    >>> import flambeau as torch
    >>> torch.get_autocast_ipu_dtype()  # doctest: +SKIP
    flambeau.float16
    """
    _deprecated("get_autocast_ipu_dtype()", "get_autocast_dtype('ipu')")
    return _state.dtype["ipu"]


def set_autocast_ipu_dtype(dtype: Any) -> None:
    """Deprecated: `set_autocast_dtype("ipu", dtype)`.

    >>> import flambeau as torch
    >>> torch.set_autocast_ipu_dtype(torch.float16)  # doctest: +SKIP
    """
    _deprecated("set_autocast_ipu_dtype(dtype)", "set_autocast_dtype('ipu', dtype)")
    set_autocast_dtype("ipu", dtype)


def get_autocast_xla_dtype() -> Any:
    """Deprecated: `get_autocast_dtype("xla")`.

    >>> import flambeau as torch
    >>> torch.get_autocast_xla_dtype()  # doctest: +SKIP
    flambeau.bfloat16
    """
    _deprecated("get_autocast_xla_dtype()", "get_autocast_dtype('xla')")
    return _state.dtype["xla"]


def set_autocast_xla_dtype(dtype: Any) -> None:
    """Deprecated: `set_autocast_dtype("xla", dtype)`.

    >>> import flambeau as torch
    >>> torch.set_autocast_xla_dtype(torch.bfloat16)  # doctest: +SKIP
    """
    _deprecated("set_autocast_xla_dtype(dtype)", "set_autocast_dtype('xla', dtype)")
    set_autocast_dtype("xla", dtype)


#: the functions of `torch`
NAMES = tuple(sorted(name for name in globals() if "autocast" in name and not name.startswith("_")
                     and name != "is_autocast_available"))
