"""`torch.nn.attention`: selection of attention kernels; causal biases, flexible and variable-length attention."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import Enum
from importlib import import_module
from typing import Any

from ...backends.attention_kernels import enabled, priority, set_enabled

__all__ = ["WARN_FOR_UNFUSED_KERNELS", "SDPBackend", "activate_flash_attention_impl", "current_flash_attention_impl",
           "list_flash_attention_impls", "register_flash_attention_impl", "restore_flash_attention_impl",
           "sdpa_kernel"]

WARN_FOR_UNFUSED_KERNELS = False


class SDPBackend(Enum):
    """The kernels of `scaled_dot_product_attention`, for `sdpa_kernel`.

    >>> import flambeau as torch
    >>> torch.nn.attention.SDPBackend.MATH
    <SDPBackend.MATH: 0>
    """

    ERROR = -1
    MATH = 0
    FLASH_ATTENTION = 1
    EFFICIENT_ATTENTION = 2
    CUDNN_ATTENTION = 3
    OVERRIDEABLE = 4

    def __int__(self) -> int:
        return int(self.value)

    __index__ = __int__


_NAMES = {"cudnn": SDPBackend.CUDNN_ATTENTION, "flash": SDPBackend.FLASH_ATTENTION,
          "mem_efficient": SDPBackend.EFFICIENT_ATTENTION, "math": SDPBackend.MATH,
          "overrideable": SDPBackend.OVERRIDEABLE}
_backend_names = {name: backend.name for name, backend in _NAMES.items()}


def _backend_from_string(name: str) -> SDPBackend:
    return SDPBackend[name]


def _cur_sdpa_kernel_backends(with_priority: bool = False) -> list[SDPBackend]:
    """The enabled kernels."""
    backends = [backend for name, backend in _NAMES.items() if enabled[name]]
    return sorted(backends, key=lambda b: priority.index(int(b))) if with_priority else backends


def _sdpa_kernel(backends: list[SDPBackend], set_priority: bool = False) -> None:
    for name, backend in _NAMES.items():
        set_enabled(name, backend in backends)
    if set_priority:
        first = [int(backend) for backend in backends]
        priority[:] = [*first, *(n for n in priority if n not in first)]


@contextmanager
def sdpa_kernel(backends: list[SDPBackend] | SDPBackend, set_priority: bool = False) -> Iterator[dict[str, Any]]:
    """Enable only the given kernels of `scaled_dot_product_attention` in a block.

    All are computed by one implementation. As in PyTorch on a CPU, calls raise without `MATH`, unless `FLASH_ATTENTION`
    is enabled and takes the arguments.

    Args:
        backends: a kernel, or a list of kernels.
        set_priority: whether the list is in the order of priority.

    Raises:
        AssertionError: `backends` is neither.

    >>> import flambeau as torch
    >>> x = torch.ones(1, 1, 2, 4)
    >>> with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH):
    ...     torch.nn.functional.scaled_dot_product_attention(x, x, x).shape
    flambeau.Size([1, 1, 2, 4])
    """
    if not isinstance(backends, (list, SDPBackend)):
        raise AssertionError("Backend must be an instance of SDPBackend or a list of SDPBackend instances, got "
                             f"{type(backends).__name__}")
    chosen = list(dict.fromkeys([backends] if isinstance(backends, SDPBackend) else backends))
    before = _cur_sdpa_kernel_backends(with_priority=set_priority)
    try:
        _sdpa_kernel(chosen, set_priority)
        yield {}
    finally:
        _sdpa_kernel(before, set_priority)


@contextmanager
def _sdpa_kernel_variadic(*backends: SDPBackend) -> Iterator[None]:
    with sdpa_kernel(list(backends)):
        yield


# ----- implementations of flash attention -----

_implementations: dict[str, Callable[..., Any]] = {
    "FA3": lambda: import_module("flash_attn_interface"), "FA4": lambda: import_module("flash_attn.cute.interface")}
_active: list[tuple[str, Any]] = []


def register_flash_attention_impl(impl: str, *, register_fn: Callable[..., Any]) -> None:
    """Register an implementation of flash attention.

    Args:
        impl: its name.
        register_fn: called when it is activated; may return a handle with the method `remove`.

    >>> import flambeau as torch
    >>> torch.nn.attention.register_flash_attention_impl("FA3", register_fn=lambda: None)
    """
    _implementations[impl] = register_fn


def activate_flash_attention_impl(impl: str) -> None:
    """Activate an implementation of flash attention.

    Args:
        impl: its name.

    Raises:
        ValueError: the name is unknown.

    >>> import flambeau as torch
    >>> try:
    ...     torch.nn.attention.activate_flash_attention_impl("FA4")
    ... except Exception as error:
    ...     print(type(error).__name__)
    ModuleNotFoundError
    """
    restore_flash_attention_impl(_raise_warn=False)
    register = _implementations.get(impl)
    if register is None:
        raise ValueError(f"Unknown flash attention impl '{impl}'. Available implementations: "
                         f"{list_flash_attention_impls()}")
    handle = register()
    if handle is not None:
        _active.append((impl, handle))


def list_flash_attention_impls() -> list[str]:
    """The names of the registered implementations of flash attention.

    >>> import flambeau as torch
    >>> torch.nn.attention.list_flash_attention_impls()
    ['FA3', 'FA4']
    """
    return sorted(_implementations)


def current_flash_attention_impl() -> str | None:
    """The name of the active implementation of flash attention, or None for the default.

    >>> import flambeau as torch
    >>> torch.nn.attention.current_flash_attention_impl()
    """
    return _active[-1][0] if _active else None


def restore_flash_attention_impl(_raise_warn: bool = True) -> None:
    """Restore the default implementation of flash attention.

    >>> import flambeau as torch
    >>> torch.nn.attention.restore_flash_attention_impl(_raise_warn=False)
    """
    if _active:
        _active.pop()[1].remove()
    elif _raise_warn:
        import logging

        logging.getLogger(__name__).warning("Trying to restore default FA2 impl when no custom impl was activated")


def __getattr__(name: str) -> Any:
    if name in ("bias", "flex_attention", "varlen"):
        return import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
