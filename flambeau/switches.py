"""Switches that programs set for the whole process: threads, determinism, precision, defaults.

On a CPU, and here, every operator is deterministic and computes in the precision of its dtype:
those switches are kept and told, and change nothing.
"""

from __future__ import annotations

import warnings
from typing import Any

from . import devices, dtypes
from .kernels import threads

__all__ = [
    "are_deterministic_algorithms_enabled", "get_default_device", "get_deterministic_debug_mode",
    "get_float32_matmul_precision", "get_num_interop_threads", "get_num_threads",
    "is_deterministic_algorithms_warn_only_enabled", "is_warn_always_enabled", "set_default_device",
    "set_default_tensor_type", "set_deterministic_debug_mode", "set_float32_matmul_precision", "set_flush_denormal",
    "set_num_interop_threads", "set_num_threads", "set_warn_always", "typename", "use_deterministic_algorithms",
]


class _State:
    interop = 0  # 0: not asked for
    deterministic = False
    warn_only = False
    precision = "highest"
    warn_always = False
    device: Any = None


# ----- threads -----

def _positive(name: str, value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise RuntimeError(f"{name} expects an int, but got {type(value).__name__}")
    if value < 1:
        raise RuntimeError(f"{name} expects a positive integer")
    return value


def get_num_threads() -> int:
    """How many threads an operator may use."""
    return threads.count()


def set_num_threads(int: int) -> None:
    """Let operators use so many threads: NumPy's matrix products, and kernels.

    Raises:
        RuntimeError: not a positive int.

    >>> import flambeau as torch
    >>> before = torch.get_num_threads()
    >>> torch.set_num_threads(1)
    >>> torch.get_num_threads()
    1
    >>> torch.set_num_threads(before)
    """
    threads.limit(_positive("set_num_threads", int))


def get_num_interop_threads() -> int:
    """How many operators may run side by side: what was asked for; operators run one after the other."""
    return _State.interop or threads.count()


def set_num_interop_threads(int: int) -> None:
    """Keep how many operators may run side by side.

    Raises:
        RuntimeError: not a positive int.
    """
    _State.interop = _positive("set_num_interop_threads", int)


# ----- determinism and precision -----

def use_deterministic_algorithms(mode: bool, *, warn_only: bool = False) -> None:
    """Ask for deterministic operators: all are.

    >>> import flambeau as torch
    >>> torch.use_deterministic_algorithms(True)
    >>> torch.are_deterministic_algorithms_enabled()
    True
    >>> torch.use_deterministic_algorithms(False)
    """
    _State.deterministic, _State.warn_only = bool(mode), bool(warn_only)


def are_deterministic_algorithms_enabled() -> bool:
    """Whether deterministic operators were asked for."""
    return _State.deterministic


def is_deterministic_algorithms_warn_only_enabled() -> bool:
    """Whether, asked for deterministic operators, others were to warn only."""
    return _State.warn_only


def get_deterministic_debug_mode() -> int:
    """0: not asked for; 1: others warn; 2: others are an error."""
    return (1 if _State.warn_only else 2) if _State.deterministic else 0


def set_deterministic_debug_mode(debug_mode: int | str) -> None:
    """`use_deterministic_algorithms` by a number or a word: "default", "warn" or "error".

    Raises:
        TypeError: neither an int nor a str.
        RuntimeError: another number or word.
    """
    if not isinstance(debug_mode, (int, str)):
        raise TypeError(f"debug_mode must be str or int, but got {type(debug_mode)}")
    if isinstance(debug_mode, str):
        words = {"default": 0, "warn": 1, "error": 2}
        if debug_mode not in words:
            raise RuntimeError("invalid value of debug_mode, expected one of `default`, `warn`, `error`, but got "
                               f"{debug_mode}")
        debug_mode = words[debug_mode]
    if debug_mode not in (0, 1, 2):
        raise RuntimeError(f"invalid value of debug_mode, expected 0, 1, or 2, but got {debug_mode}")
    use_deterministic_algorithms(debug_mode > 0, warn_only=debug_mode == 1)


def get_float32_matmul_precision() -> str:
    """The precision that float32 matrix products were asked to have at least."""
    return _State.precision


def set_float32_matmul_precision(precision: str) -> None:
    """Keep the precision that float32 matrix products must have at least: they always have the highest.

    Raises:
        RuntimeError: not "highest", "high" or "medium".
    """
    if precision not in ("highest", "high", "medium"):
        raise RuntimeError(f"float32_matmul_precision: {precision!r} is none of 'highest', 'high' and 'medium'.")
    _State.precision = precision


def set_flush_denormal(mode: bool) -> bool:
    """Whether subnormal numbers could be flushed to zero: they cannot, and leaving them alone always works."""
    return not mode


# ----- defaults -----

def get_default_device() -> Any:
    """The device of tensors that are made without one: the CPU."""
    return devices.device("cpu") if _State.device is None else _State.device


def set_default_device(device: Any) -> None:
    """Set the device of tensors that are made without one; None: the CPU.

    Raises:
        RuntimeError: there is no such device here.
    """
    _State.device = None if device is None else devices.check(devices.device(device))


def set_default_tensor_type(t: Any, /) -> None:
    """Set the default dtype by a tensor type, such as `torch.DoubleTensor` or its name (`set_default_dtype`).

    Raises:
        TypeError: not a floating point tensor type.
    """
    warnings.warn("torch.set_default_tensor_type() is deprecated as of PyTorch 2.1, please use "
                  "torch.set_default_dtype() and torch.set_default_device() as alternatives.", UserWarning,
                  stacklevel=2)
    name = t.rpartition(".")[2] if isinstance(t, str) else getattr(t, "__name__", "")
    found = next((d for d in dtypes.ALL if d.legacy == name), None)
    if found is None:
        raise TypeError("invalid type object: only floating-point types are supported as the default type")
    if not found.is_floating_point:
        raise TypeError("only floating-point types are supported as the default type")
    dtypes.set_default_dtype(found)


def is_warn_always_enabled() -> bool:
    """Whether warnings that come once were asked to come always."""
    return _State.warn_always


def set_warn_always(b: bool, /) -> None:
    """Keep whether warnings that come once shall come always: Python's filters decide here."""
    _State.warn_always = bool(b)


def typename(obj: Any, /) -> str:
    """The full name of an object's type; of a tensor, its old type name.

    >>> import flambeau as torch
    >>> torch.typename(torch.ones(1)), torch.typename(3)
    ('flambeau.FloatTensor', 'int')
    """
    from ._tensor import Tensor

    if isinstance(obj, Tensor):
        return str(obj.type())
    module = getattr(obj, "__module__", "") or ""
    if hasattr(obj, "__qualname__"):
        name = obj.__qualname__
    elif hasattr(obj, "__name__"):
        name = obj.__name__
    else:
        module, name = type(obj).__module__ or "", type(obj).__qualname__
    return name if module in ("", "builtins") else f"{module}.{name}"
