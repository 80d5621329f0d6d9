"""Process-wide settings of `torch`: threads, determinism, precision, defaults.

Every operator is deterministic and computes in the precision of its dtype. The settings of determinism and precision
are stored and returned; they affect only what uninitialised memory holds.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from . import devices, dtypes
from .kernels import threads
from .modes import determinism, filled_memory, float32_precision, float32_precision_observers
from .warning_location import always

__all__ = [
    "are_deterministic_algorithms_enabled", "get_default_device", "get_deterministic_debug_mode",
    "get_float32_matmul_precision", "get_num_interop_threads", "get_num_threads",
    "is_deterministic_algorithms_warn_only_enabled", "is_warn_always_enabled", "set_default_device",
    "set_default_tensor_type", "set_deterministic_debug_mode", "set_float32_matmul_precision", "set_flush_denormal",
    "set_num_interop_threads", "set_num_threads", "set_warn_always", "typename", "use_deterministic_algorithms",
]


class _State:
    interop = 0  # 0: not set
    deterministic = False
    fills = True
    warn_only = False
    device: Any = None


# ----- threads -----

def _positive(name: str, value: Any) -> int:
    if isinstance(value, np.integer):
        value = int(value)
    if not isinstance(value, int) or isinstance(value, bool):
        raise RuntimeError(f"{name} expects an int, but got {type(value).__name__}")
    if not -2 ** 31 <= value < 2 ** 31:
        raise ValueError(f"Overflow when unpacking long{'' if -2 ** 63 <= value < 2 ** 63 else ' long'}")
    if value < 1:
        raise RuntimeError(f"{name} expects a positive integer")
    return value


def get_num_threads() -> int:
    """The number of threads that an operator uses at most.

    >>> import flambeau as torch
    >>> torch.get_num_threads() >= 1
    True
    """
    return threads.count()


def set_num_threads(int: int) -> None:
    """Set the number of threads of kernels and of NumPy's BLAS.

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
    """The value set by `set_num_interop_threads`. Operators run one after the other.

    >>> import flambeau as torch
    >>> torch.get_num_interop_threads() >= 1
    True
    """
    return _State.interop or threads.count()


def set_num_interop_threads(int: int) -> None:
    """Set the number of operators that may run in parallel: stored, without effect.

    Raises:
        RuntimeError: not a positive int.

    >>> import flambeau as torch
    >>> torch.set_num_interop_threads(2)
    >>> torch.get_num_interop_threads()
    2
    """
    _State.interop = _positive("set_num_interop_threads", int)


# ----- determinism and precision -----

def use_deterministic_algorithms(mode: bool, *, warn_only: bool = False) -> None:
    """Require deterministic operators. Those that PyTorch has no deterministic version of raise or warn, although
    all are deterministic here; memory without values is filled.

    Args:
        mode: whether they are required.
        warn_only: whether others warn instead of raising.

    Raises:
        TypeError: an argument is no bool.

    >>> import flambeau as torch
    >>> torch.use_deterministic_algorithms(True)
    >>> torch.are_deterministic_algorithms_enabled()
    True
    >>> torch.use_deterministic_algorithms(False)
    """
    for name, value in (("mode", mode), ("warn_only", warn_only)):
        if not isinstance(value, bool):
            position = " (position 1)" if name == "mode" else ""
            raise TypeError(f"_set_deterministic_algorithms(): argument '{name}'{position} must be bool, not "
                            f"{type(value).__name__}")
    _State.deterministic, _State.warn_only = mode, warn_only
    determinism[0] = (1 if warn_only else 2) if mode else 0
    filled_memory[0] = mode and _State.fills


def set_fill_uninitialized_memory(value: bool) -> None:
    """Whether memory without values is filled where determinism is required.

    Raises:
        RuntimeError: it is no bool.
    """
    if not isinstance(value, bool):
        raise RuntimeError(f"expected a bool, but got {type(value).__name__}")
    _State.fills = value
    filled_memory[0] = _State.deterministic and value


def get_fill_uninitialized_memory() -> bool:
    """Whether memory without values is filled where determinism is required."""
    return _State.fills


def are_deterministic_algorithms_enabled() -> bool:
    """Whether deterministic operators are required (`use_deterministic_algorithms`).

    >>> import flambeau as torch
    >>> torch.are_deterministic_algorithms_enabled()
    False
    """
    return _State.deterministic


def is_deterministic_algorithms_warn_only_enabled() -> bool:
    """Whether nondeterministic operators warn instead of raising.

    >>> import flambeau as torch
    >>> torch.is_deterministic_algorithms_warn_only_enabled()
    False
    """
    return _State.warn_only


def get_deterministic_debug_mode() -> int:
    """The determinism setting as a number: 0 "default", 1 "warn", 2 "error".

    >>> import flambeau as torch
    >>> torch.get_deterministic_debug_mode()
    0
    """
    return (1 if _State.warn_only else 2) if _State.deterministic else 0


def set_deterministic_debug_mode(debug_mode: int | str) -> None:
    """Set determinism by number or name: 0 "default", 1 "warn", 2 "error" (`use_deterministic_algorithms`).

    Raises:
        TypeError: neither an int nor a str.
        RuntimeError: any other value.

    >>> import flambeau as torch
    >>> torch.set_deterministic_debug_mode("warn")
    >>> torch.get_deterministic_debug_mode()
    1
    >>> torch.set_deterministic_debug_mode("default")
    """
    if not isinstance(debug_mode, (int, str)):
        raise TypeError(f"debug_mode must be str or int, but got {type(debug_mode)}")
    if isinstance(debug_mode, str):
        modes = {"default": 0, "warn": 1, "error": 2}
        if debug_mode not in modes:
            raise RuntimeError("invalid value of debug_mode, expected one of `default`, `warn`, `error`, but got "
                               f"{debug_mode}")
        debug_mode = modes[debug_mode]
    if debug_mode not in (0, 1, 2):
        raise RuntimeError(f"invalid value of debug_mode, expected 0, 1, or 2, but got {debug_mode}")
    use_deterministic_algorithms(debug_mode > 0, warn_only=debug_mode == 1)


def get_float32_matmul_precision() -> str:
    """The precision set by `set_float32_matmul_precision`.

    >>> import flambeau as torch
    >>> torch.get_float32_matmul_precision()
    'highest'
    """
    return float32_precision[0]


def set_float32_matmul_precision(precision: str) -> None:
    """Set the minimal precision of float32 matmuls: below the highest, those on GPUs round factors to TF32.

    On the CPU it is always the highest.

    Raises:
        RuntimeError: not "highest", "high" or "medium".

    >>> import flambeau as torch
    >>> torch.set_float32_matmul_precision("high")
    >>> torch.get_float32_matmul_precision()
    'high'
    >>> torch.set_float32_matmul_precision("highest")
    """
    if precision not in ("highest", "high", "medium"):
        raise RuntimeError(f"float32_matmul_precision: {precision!r} is none of 'highest', 'high' and 'medium'.")
    float32_precision[0] = precision
    for function in float32_precision_observers:
        function()


def set_flush_denormal(mode: bool) -> bool:
    """Flush subnormal numbers to zero, or no longer, and return whether the processor has such a mode.

    It is set in the calling thread and in the threads of kernels, on Linux with x86-64 or AArch64.

    Raises:
        RuntimeError: `mode` is no bool.

    Source: https://docs.pytorch.org/docs/stable/generated/torch.set_flush_denormal.html

    >>> import flambeau as torch
    >>> supported = torch.set_flush_denormal(True)
    >>> smallest = torch.tensor([1e-323], dtype=torch.float64) * 1
    >>> torch.set_flush_denormal(False)
    True
    >>> (smallest == 0).item() == supported
    True
    """
    from .runtime.subnormals import set_flush_to_zero

    if mode.__class__ is not bool:
        raise RuntimeError(f"flush_denormal expects a bool, but got {type(mode).__name__}")
    return set_flush_to_zero(mode) or not mode


# ----- defaults -----

def get_default_device() -> Any:
    """The device of tensors created without `device=`: the CPU.

    >>> import flambeau as torch
    >>> torch.get_default_device()
    device(type='cpu')
    """
    found = devices.CPU if devices.ambient[0] is None else devices.ambient[0]
    return found if found.type in ("cpu", "meta") or found.index is not None else devices.check(found)


def set_default_device(device: Any) -> None:
    """Set the device of tensors created without `device=`; None: the CPU.

    A device that is not there is refused where a tensor is created.

    Raises:
        RuntimeError: not a device.

    >>> import flambeau as torch
    >>> torch.set_default_device("cpu")
    """
    found = None if device is None else devices.device(device)
    absent = found is not None and found.type not in ("cpu", "meta") and devices.current_cuda() is None
    _State.device = found if absent or found is None else devices.storage_device(found)
    devices.ambient[0] = _State.device


def set_default_tensor_type(t: Any, /) -> None:
    """Set the default dtype by a legacy tensor type. Deprecated: use `set_default_dtype`.

    Args:
        t: a class such as `torch.DoubleTensor`, or its name.

    Raises:
        TypeError: not a floating point tensor type.

    >>> import warnings
    >>> import flambeau as torch
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore", UserWarning)
    ...     torch.set_default_tensor_type(torch.FloatTensor)
    """
    warnings.warn("torch.set_default_tensor_type() is deprecated as of PyTorch 2.1, please use "
                  "torch.set_default_dtype() and torch.set_default_device() as alternatives.", UserWarning,
                  stacklevel=2)
    name = t.rpartition(".")[2] if isinstance(t, str) else getattr(t, "__name__", "")
    if t.startswith("torch.cuda.") if isinstance(t, str) else getattr(t, "__module__", "") == "torch.cuda":
        from . import cuda  # which is imported when a program needs it

        if not cuda.is_available():
            raise TypeError(f"type torch.cuda.{name} not available. Torch not compiled with CUDA enabled.")
    dtype = next((d for d in dtypes.ALL if d.legacy == name), None)
    if dtype is None:
        raise TypeError("invalid type object: only floating-point types are supported as the default type")
    if not dtype.is_floating_point:
        raise TypeError("only floating-point types are supported as the default type")
    dtypes.set_default_dtype(dtype)


def is_warn_always_enabled() -> bool:
    """The value set by `set_warn_always`.

    >>> import flambeau as torch
    >>> torch.set_warn_always(False)
    >>> torch.is_warn_always_enabled()
    False
    """
    return always[0]


def set_warn_always(b: bool, /) -> None:
    """Set whether warnings that are given once in a process are given always.

    >>> import flambeau as torch
    >>> torch.set_warn_always(False)
    """
    always[0] = bool(b)


def typename(obj: Any, /) -> str:
    """The qualified name of an object or its type; for a tensor, its legacy type name.

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
