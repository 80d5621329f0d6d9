"""`device`, `layout` and `memory_format`: where and how a tensor lies."""

from __future__ import annotations

from typing import Any

from . import config

_TYPES = ("cpu", "cuda", "ipu", "xpu", "mkldnn", "opengl", "opencl", "ideep", "hip", "ve", "fpga", "maia", "xla",
          "lazy", "vulkan", "mps", "meta", "hpu", "mtia", "privateuseone")


class device:
    """Where a tensor lies: a type and, where there are several of it, an index.

    >>> import flambeau as torch
    >>> torch.device("cuda:0")
    device(type='cuda', index=0)

    Raises:
        RuntimeError: the text names no known device type, or its index is no number.
    """

    __slots__ = ("index", "type")
    type: str
    index: int | None

    def __new__(cls, type: Any, index: int | None = None) -> device:
        if isinstance(type, device):
            return type
        self = object.__new__(cls)
        if isinstance(type, int) and not isinstance(type, bool):
            if index is not None:
                raise TypeError("device(): an index given twice")
            if type < 0:
                raise RuntimeError(f"Device index must not be negative, got {type}")
            type, index = "cuda", type
        if not isinstance(type, str):
            raise TypeError(f"device(): argument 'type' must be str, not {type.__class__.__name__}")
        name, colon, number = type.partition(":")
        if not type:
            raise RuntimeError("Device string must not be empty")
        if name not in _TYPES:
            raise RuntimeError(f"Expected one of {', '.join(_TYPES)} device type at start of device string: {name}")
        if colon:
            if index is not None:
                raise RuntimeError(f"type (string) must not include an index because index was passed explicitly: "
                                   f"{type}")
            if not number.isdigit() or (len(number) > 1 and number[0] == "0"):
                raise RuntimeError(f"Invalid device string: '{type}'")
            index = int(number)
        object.__setattr__(self, "type", name)
        object.__setattr__(self, "index", index)
        return self

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

    def __reduce__(self) -> tuple[Any, ...]:
        return device, (self.type,) if self.index is None else (self.type, self.index)

    def __enter__(self) -> device:
        check(self)
        _entered.append(self)
        return self

    def __exit__(self, *exception: object) -> None:
        _entered.pop()


_entered: list[device] = []

CPU = device("cpu")


def check(where: Any) -> device:
    """The device that `where` (a device, a text, a number or None) means, if tensors can be made there.

    Raises:
        AssertionError: CUDA asked for; this build has none (PyTorch's type and text).
        NotImplementedError: another device that is not there.
    """
    if where is None:
        return CPU
    d = where if where.__class__ is device else device(where)
    if d.type == "cpu":
        return CPU
    if d.type == "cuda":
        raise AssertionError("Torch not compiled with CUDA enabled")
    raise NotImplementedError(f"Could not run 'aten::empty.memory_format' with arguments from the "
                              f"'{d.type.upper() if d.type != 'meta' else 'Meta'}' backend: flambeau computes on "
                              f"the CPU only. Use device='cpu'.")


class layout:
    """How elements lie: `strided` is the only one implemented."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return f"{config.module_name}.{self.name}"

    def __reduce__(self) -> str:
        return self.name


class memory_format(layout):
    """The order of dimensions in memory that an operator is asked to give."""

    __slots__ = ()


strided = layout("strided")
sparse_coo = layout("sparse_coo")
sparse_csr = layout("sparse_csr")
contiguous_format = memory_format("contiguous_format")
preserve_format = memory_format("preserve_format")
channels_last = memory_format("channels_last")
channels_last_3d = memory_format("channels_last_3d")
