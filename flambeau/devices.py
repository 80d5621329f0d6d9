"""`device`, `layout` and `memory_format`."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from . import config

_TYPES = ("cpu", "cuda", "ipu", "xpu", "mkldnn", "opengl", "opencl", "ideep", "hip", "ve", "fpga", "maia", "xla",
          "lazy", "vulkan", "mps", "meta", "hpu", "mtia", "privateuseone")


class device:
    """The device of a tensor: a type and an optional index.

    Args:
        type: a name such as "cpu" or "cuda:0", a device, or the index of a device of the accelerator that is there.
        index: the index, unless `type` contains one.

    >>> import flambeau as torch
    >>> torch.device("cuda:0")
    device(type='cuda', index=0)

    Raises:
        RuntimeError: an unknown device type, an invalid index, or an index where there is no accelerator.
        TypeError: arguments of other types.

    Source: https://docs.pytorch.org/docs/stable/tensor_attributes.html#torch.device
    """

    __slots__ = ("index", "type")
    type: str
    index: int | None

    def __new__(cls, *args: Any, **kwargs: Any) -> device:
        if kwargs or len(args) != 1:
            return _of_arguments(args, kwargs)
        found = parsed(args[0])
        if found is None:
            raise _call_error(args, kwargs)
        return found

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"attribute '{name}' of 'torch.device' objects is not writable")

    def __repr__(self) -> str:
        return f"device(type='{self.type}'" + (")" if self.index is None else f", index={self.index})")

    def __str__(self) -> str:
        return self.type if self.index is None else f"{self.type}:{self.index}"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, device) and (self.type, self.index) == (other.type, other.index)

    def __hash__(self) -> int:
        return hash((self.type, self.index))

    def __lt__(self, other: object) -> bool:
        raise TypeError("comparison not implemented")

    __le__ = __gt__ = __ge__ = __lt__

    def __reduce__(self) -> tuple[Any, ...]:
        return device, (self.type,) if self.index is None else (self.type, self.index)

    def __enter__(self) -> device:
        storage_device(self)
        _entered.append(ambient[0])
        ambient[0] = self
        return self

    def __exit__(self, *exception: object) -> None:
        ambient[0] = _entered.pop()


def _make(type: str, index: int | None) -> device:
    result = object.__new__(device)
    object.__setattr__(result, "type", type)
    # PyTorch keeps eight bits of it
    object.__setattr__(result, "index", index if index is None or index < 128 else (index + 128) % 256 - 128)
    return result


def parsed(argument: Any) -> device | None:
    """The device that an argument means: a device, a text or an index; None if it is of another type.

    Raises:
        RuntimeError: an unknown device type, an invalid index, or an index where there is no accelerator.
    """
    if isinstance(argument, device):
        return argument
    if isinstance(argument, str):
        return _of_text(argument, None)
    if isinstance(argument, bytes):
        return _of_text(argument.decode(), None)
    if isinstance(argument, (int, np.integer)) and not isinstance(argument, bool):
        index = checked_index(argument)
        if current_cuda() is None:
            raise RuntimeError("Cannot access accelerator device when none is available.")
        return _make("cuda", index)
    return None


def is_device(argument: Any) -> bool:
    """Whether an argument is of a type that means a device."""
    return isinstance(argument, (device, str, bytes)) or (
        isinstance(argument, (int, np.integer)) and not isinstance(argument, bool))


def checked_index(index: int | np.integer[Any]) -> int:
    """The index of a device.

    Raises:
        RuntimeError: it is negative.
        ValueError: it has more than 64 bits.
    """
    index = int(index)
    if not -1 << 63 <= index < 1 << 63:
        raise ValueError("Overflow when unpacking long long")
    if index < 0:
        raise RuntimeError("Device index must not be negative")
    return index


def _of_text(text: str, index: int | None) -> device:
    name, colon, number = text.partition(":")
    if not text:
        raise RuntimeError("Device string must not be empty")
    if not name.replace("_", "").isalpha():
        raise RuntimeError(f"Invalid device string: '{text}'")
    if name not in _TYPES:
        raise RuntimeError(f"Expected one of {', '.join(_TYPES)} device type at start of device string: {name}")
    if colon:
        if index is not None:
            raise RuntimeError(f"type (string) must not include an index because index was passed explicitly: {text}")
        if not number.isdigit() or (len(number) > 1 and number[0] == "0"):
            raise RuntimeError(f"Invalid device string: '{text}'")
        index = int(number)
    return _make(str(name), index)


def _of_arguments(args: tuple[Any, ...], kwargs: dict[str, Any]) -> device:
    """The device of several arguments, or of those by name: `device=`, or a type and an index."""
    if not args and kwargs.keys() == {"device"} and (found := parsed(kwargs["device"])) is not None:
        return found
    given = dict(zip(("type", "index"), args, strict=False))
    text, index = (given | kwargs).get("type"), (given | kwargs).get("index")
    if not isinstance(text, (str, bytes)) or len(args) > 2 or kwargs.keys() & given.keys() or (
            kwargs.keys() - {"type", "index"}) or isinstance(index, bool) or (
            not isinstance(index, (int, np.integer, type(None)))):
        raise _call_error(args, kwargs)
    return _of_text(text if isinstance(text, str) else text.decode(),
                    None if index is None else checked_index(index))


def _call_error(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Exception:
    error: Exception = errors[0]().of_call(args, kwargs)
    return error


#: [returns the module that makes PyTorch's errors for arguments that are no device]; `_tensor` sets it
errors: list[Any] = []
_entered: list[device | None] = []
#: [the device of tensors created without `device=`]; None: the CPU
ambient: list[device | None] = [None]

CPU = device("cpu")
META = device("meta")

#: [a CUDA device -> the same with its index, None where there is no runtime]; `backends.cuda_devices` sets it
cuda_resolver: list[Any] = [None]
_cuda: dict[int, device] = {}


def cuda(index: int) -> device:
    """The CUDA device of an index; always the same object, as tensors have it."""
    found = _cuda.get(index)
    if found is None:
        found = _cuda[index] = device("cuda", index)
    return found


def current_cuda() -> device | None:
    """The current CUDA device; None where there is none."""
    found: device | None = None if cuda_resolver[0] is None else cuda_resolver[0](device("cuda"))
    return found


def of_argument(argument: Any) -> device:
    """The device that an argument `device=` means.

    Raises:
        TypeError: it is none (PyTorch's text, with the name of the function that was called).
        RuntimeError: an unknown device type, an invalid index, or an index where there is no accelerator.
    """
    found = parsed(argument)
    if found is None:
        raise errors[0]().of_argument(argument)
    return found


#: with what the names of modules begin whose functions are operators
_OPERATORS = (__name__, *(f"{__package__}.{name}." for name in (
    "_tensor", "ops", "nn.functionals", "backends", "kernels", "fft")))
#: the functions whose tensors are on the device of a context (PyTorch's list, `torch.utils._device`)
CONSTRUCTORS = frozenset("""
    arange as_tensor asarray bartlett_window blackman_window empty empty_permuted empty_quantized empty_strided eye
    fft_fftfreq fft_rfftfreq fftfreq full hamming_window hann_window kaiser_window linspace logspace nested_tensor ones
    rand randint randn randperm rfftfreq scalar_tensor sparse_bsc_tensor sparse_bsr_tensor sparse_compressed_tensor
    sparse_coo_tensor sparse_csc_tensor sparse_csr_tensor tensor tril_indices triu_indices zeros
""".split())  # noqa: SIM905


def _follows_context() -> bool:
    """Whether the operator that a program has called is one of `CONSTRUCTORS`."""
    name, frame = "", sys._getframe(2)
    while frame is not None and frame.f_globals.get("__name__", "").startswith(_OPERATORS):
        name, frame = frame.f_code.co_name, frame.f_back  # type: ignore[assignment]
    return name in CONSTRUCTORS


def storage_device(argument: Any) -> device:
    """`check`, for functions that make meta tensors too; without an argument the device of the context.

    A context is for the factories that a program calls. While operators run on an accelerator, its device is the
    context of what they make.
    """
    if argument is None:
        argument = ambient[0]
        if argument is not None and argument.type != "cuda" and not _follows_context():
            return CPU
    d = argument if argument is None or argument.__class__ is device else of_argument(argument)
    return META if d is not None and d.type == "meta" else check(d)


def check(argument: Any) -> device:
    """The device of an argument `device=`: a device, a string, an index or None (the CPU).

    Raises:
        AssertionError: CUDA, where there is none (PyTorch's type and text in a build without CUDA).
        NotImplementedError: any other device but the CPU.
    """
    if argument is None:
        return CPU
    d = argument if argument.__class__ is device else of_argument(argument)
    if d.type == "cpu":
        return CPU
    if d.type == "cuda":
        found: device | None = None if cuda_resolver[0] is None else cuda_resolver[0](d)
        if found is not None:
            return found
        raise AssertionError("Torch not compiled with CUDA enabled")
    raise NotImplementedError(f"Could not run 'aten::empty.memory_format' with arguments from the "
                              f"'{d.type.upper() if d.type != 'meta' else 'Meta'}' backend: flambeau computes on "
                              f"the CPU only. Use device='cpu'.")


class layout:
    """The memory layout of a tensor: `strided`, or one of the sparse layouts.

    >>> import flambeau as torch
    >>> torch.zeros(2).layout
    flambeau.strided
    """

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return f"{config.module_name}.{self.name}"

    def __reduce__(self) -> str:
        return self.name


class memory_format(layout):
    """The order of dimensions in memory that is requested of an operator.

    >>> import flambeau as torch
    >>> torch.ones(1, 3, 2, 2).contiguous(memory_format=torch.channels_last).stride()
    (12, 1, 6, 3)
    """

    __slots__ = ()


strided = layout("strided")
sparse_coo = layout("sparse_coo")
sparse_csr = layout("sparse_csr")
sparse_csc = layout("sparse_csc")
sparse_bsr = layout("sparse_bsr")
sparse_bsc = layout("sparse_bsc")
jagged = layout("jagged")  # of nested tensors
_mkldnn = layout("_mkldnn")  # of tensors that oneDNN owns: there are none
contiguous_format = memory_format("contiguous_format")
legacy_contiguous_format = contiguous_format
preserve_format = memory_format("preserve_format")
channels_last = memory_format("channels_last")
channels_last_3d = memory_format("channels_last_3d")
