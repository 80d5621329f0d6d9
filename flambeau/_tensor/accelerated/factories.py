"""Functions that make tensors, on a device: constants, sequences, data and random numbers."""

from __future__ import annotations

from typing import Any

import numpy as np

from ... import devices
from ...backends.cuda_devices import current_runtime
from ...devices import CPU, META, device
from ...modes import active_tracer
from ..argument_errors.out_arguments import check_records_nothing
from ..creation.constants import _like
from ..creation.factory_arguments import finished
from ..dispatch.handlers import handlers
from ..meta import reserved
from ..tensor import Tensor, wrap
from .calls import HANDLERS, Implementation, making_on
from .execution import on_device
from .generators import check_generator, default_generator
from .transfers import transfer


def target_of(wanted: Any, like: device | None) -> device:
    """The device that a factory makes its tensor on.

    Args:
        wanted: its argument `device=`.
        like: the device of the tensor that it follows, if any.
    """
    if wanted is None:
        found = like if like is not None else devices.ambient[0]
        return CPU if found is None else found if found.index is not None or found.type != "cuda" else (
            devices.check(found))
    return devices.storage_device(wanted)


def _stand_in(x: Any) -> Any:
    """A tensor of the CPU with the metadata of one in a device's memory, for factories that look at no elements."""
    if not on_device(x):
        return x
    a = x._array
    strides = None if a.flags.c_contiguous or not a.size else [s // a.itemsize for s in a.strides]
    return wrap(reserved(a.shape, a.dtype, strides))


def uninitialised(like: np.ndarray, on: device) -> Any:
    """A new tensor on a device with the shape, strides and dtype of an array."""
    strides = None if like.flags.c_contiguous else like.strides
    made: Any = wrap(current_runtime().empty(on.index or 0, like.shape, like.dtype, strides))
    tracer = active_tracer.get()
    if tracer is not None:
        tracer.on_create(made._array, True)
    return made


def _factory(name: str = "", draws: bool = False, like: bool = False, fill: float | None = None,
             empty: bool = False) -> Any:
    """What runs instead of a factory.

    Args:
        name: the operator's, for errors of `out=`.
        draws: whether it draws random numbers.
        like: whether it follows its first argument, a tensor.
        fill: the number that all elements are, where it is known.
        empty: whether elements are uninitialised.
    """
    def run(implementation: Implementation, on: device | None, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if like and on is not None and args and not on_device(args[0]):
            return NotImplemented  # a batch: its value is on the device
        out = kwargs.get("out")
        followed = on if like or out is not None else None
        target = out._device if out is not None else target_of(kwargs.get("device"), followed)
        if out is not None and name:
            check_records_nothing(name, (), (out,))
        if draws:
            check_generator(kwargs.get("generator"), target)
        if target.type != "cuda" and (followed is None or target is META):
            return NotImplemented
        given = dict(kwargs)
        requires_grad = bool(given.pop("requires_grad", False))
        given.pop("out", None)
        pinned = bool(given.pop("pin_memory", False))
        if pinned:
            raise RuntimeError("Only dense CPU tensors can be pinned")
        if out is not None and given.get("dtype") is None:
            given["dtype"] = out.dtype
        if draws and given.get("generator") is None and target.type == "cuda":
            given["generator"] = default_generator(target.index or 0)
        operands = tuple(_stand_in(x) for x in args) if like else args
        made: Any
        if (empty or fill is not None) and target.type == "cuda" and out is None:
            given["device"] = "meta"
            with making_on(None):
                a = implementation(*operands, **given)._array
            made = uninitialised(a, target)
            if fill is not None:
                made.fill_(fill)
            return finished(made, requires_grad)
        given["device"] = "cpu"
        with making_on(None):
            made = implementation(*operands, **given)
        if out is not None:
            if out._array.shape != made._array.shape:
                out.resize_(made._array.shape)
            return out.copy_(made)
        if target.type == "cuda" and made._device is not target:
            made = transfer(made.detach(), target)
        return finished(made, requires_grad)

    return run


def _tensor(implementation: Implementation, on: device | None, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """`torch.tensor`, `asarray`, `as_tensor`: data of any place."""
    data: Any = args[0] if args else kwargs.get("data", kwargs.get("obj"))
    wanted = kwargs.get("device", args[2] if len(args) > 2 else None)
    target = target_of(wanted, data._device if isinstance(data, Tensor) else None)
    if target.type != "cuda" and not on_device(data) and not _any_on_device(data):
        return NotImplemented
    given = dict(kwargs)
    requires_grad = bool(given.pop("requires_grad", False))
    if on_device(data):
        copied = transfer(data.detach(), CPU)
        if args:
            args = (copied, *args[1:])
        else:
            given["data" if "data" in given else "obj"] = copied
    elif isinstance(data, (list, tuple)):
        args = (_read(data), *args[1:])
    given["device"] = "cpu"
    values: Any
    with making_on(None):
        values = implementation(*args[:2], **given)
    return finished(transfer(values.detach(), target) if target.type == "cuda" else values, requires_grad)


def _as_tensor(implementation: Implementation, on: device | None, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """`torch.as_tensor`: the tensor itself where nothing changes."""
    data: Any = args[0] if args else kwargs.get("data", kwargs.get("obj"))
    if isinstance(data, Tensor):
        wanted = kwargs.get("device", args[2] if len(args) > 2 else None)
        dtype = kwargs.get("dtype", args[1] if len(args) > 1 else None)
        copy = bool(kwargs.get("copy"))
        if on is None and (wanted is None or target_of(wanted, None).type != "cuda"):
            return NotImplemented
        result = data.to(device=data._device if wanted is None else wanted, dtype=dtype, copy=copy)
        return result.requires_grad_() if kwargs.get("requires_grad") else result
    return _tensor(implementation, on, args, kwargs)


def _any_on_device(data: Any) -> bool:
    return isinstance(data, (list, tuple)) and any(on_device(x) or _any_on_device(x) for x in data)


def _read(data: Any) -> Any:
    """Nested sequences with numbers in place of tensors in a device's memory."""
    if on_device(data):
        return data.tolist()
    return [_read(x) for x in data] if isinstance(data, (list, tuple)) and _any_on_device(data) else data


def like_on_device(input: Tensor, fill: Any, dtype: Any, device: Any, requires_grad: bool,
                   memory_format: Any) -> Tensor:
    """A tensor of one number, or an uninitialised one (None), with the metadata of a tensor on a device."""
    target = target_of(device, input._device)
    with making_on(None):
        stand_in = _stand_in(input)
        if target.type != "cuda":
            made: Any = _like(stand_in, fill, dtype, target, requires_grad, memory_format)
            return made
        a = _like(stand_in, None, dtype, None, False, memory_format)._array
    made = uninitialised(a, target)
    if fill is not None:
        made.fill_(fill)
    return finished(made, requires_grad)


normal_of_size = _factory("normal", draws=True)
handlers.like_on_device, handlers.uninitialised = like_on_device, uninitialised
HANDLERS.update({
    **{f"torch.{name}": _factory(name, fill=fill) for name, fill in (("zeros", 0), ("ones", 1))},
    **{f"torch.{name}": _factory(name, empty=True) for name in ("empty", "empty_strided", "empty_permuted")},
    **{f"torch.{name}": _factory(like=True, fill=fill) for name, fill in (("zeros_like", 0), ("ones_like", 1))},
    **{f"torch.Tensor.{name}": _factory(like=True, fill=fill) for name, fill in (("new_zeros", 0), ("new_ones", 1))},
    "torch.empty_like": _factory(like=True, empty=True),
    **{f"torch.Tensor.{name}": _factory(like=True, empty=True) for name in ("new_empty", "new_empty_strided")},
    "torch.full_like": _factory(like=True),
    **{f"torch.Tensor.{name}": _factory(like=True) for name in ("new_full", "new_tensor", "new")},
    **{f"torch.{name}": _factory(name) for name in (
        "full", "arange", "range", "linspace", "logspace", "eye", "tril_indices", "triu_indices", "scalar_tensor",
        "bartlett_window", "blackman_window", "hamming_window", "hann_window", "kaiser_window", "complex_",
        "fft_fftfreq", "fft_rfftfreq", "from_file", "frombuffer")},
    **{f"torch.{name}": _factory(name, draws=True) for name in ("rand", "randint", "randperm")},
    "torch.randn": _factory(draws=True),
    **{f"torch.{name}": _factory(draws=True, like=True) for name in ("rand_like", "randn_like", "randint_like")},
    "torch.tensor": _tensor, "torch.as_tensor": _as_tensor, "torch.asarray": _as_tensor,
})

__all__ = ["normal_of_size", "target_of"]
