"""Comparisons of tensors' metadata, and refusals of what operators over them do not take."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from enum import Enum
from typing import Any

import flambeau as torch

from .dimensions import is_same_shape
from .dtype_rules import Number, dtype_to_type, is_cpu_scalar_tensor

__all__ = [
    "RETURN_TYPE", "alert_not_deterministic", "canonicalize_device", "check", "check_all_strides",
    "check_layout", "check_pin_memory", "check_same_device", "check_same_dtype",
    "check_same_shape", "check_significant_strides", "compare_tensor_meta", "extract_shape", "get_aten_op",
    "mask_tensor", "torch_function_passthrough"]


class RETURN_TYPE(Enum):
    """What an operator returns: a new tensor, a view, an argument that it wrote to, or nothing."""

    NEW = (0,)
    VIEW = (1,)
    INPLACE = (2,)
    NONE = (3,)


#: functions that modes which replace operators leave as they are
torch_function_passthrough = {
    torch.device, torch.sym_not, torch.sym_float, torch.sym_int, torch.sym_max, torch.sym_min, torch.sym_sqrt,
    torch.sym_ite, torch.Tensor.__format__, torch.Tensor.__repr__, torch.Tensor.__getitem__,
    *(getattr(torch.Tensor, name) for name in ("dim", "numel", "size", "storage_offset", "stride", "is_contiguous")),
    *(getattr(torch.Tensor, name).__get__ for name in ("ndim", "dtype", "is_sparse", "shape", "device",
                                                       "requires_grad", "layout"))}


def _check_strides(a: torch.Tensor, b: torch.Tensor, only_cuda: bool, significant_only: bool) -> tuple[
        bool, int | None]:
    compared = not only_cuda or "cuda" in (a.device.type, b.device.type)
    if compared and a.numel() > 0:
        for i, (first, second) in enumerate(zip(a.stride(), b.stride(), strict=True)):
            if first != second and (not significant_only or a.shape[i] > 1):
                return False, i
    return True, None


def check_significant_strides(a: torch.Tensor, b: torch.Tensor, *, only_cuda: bool = True,
                              allow_rhs_unbacked: bool = False) -> tuple[bool, int | None]:
    """Whether the strides of dimensions of more than one element are equal, and the first that are not."""
    return _check_strides(a, b, only_cuda, True)


def check_all_strides(a: torch.Tensor, b: torch.Tensor, *, only_cuda: bool = True) -> tuple[bool, int | None]:
    """Whether strides are equal, and the first that are not."""
    return _check_strides(a, b, only_cuda, False)


def compare_tensor_meta(a: Any, b: Any, check_sizes: bool = True, check_strides: bool = False, *,
                        allow_rhs_unbacked: bool = False, check_conj: bool = True) -> None:
    """Check that two tensors have the same metadata.

    Raises:
        MetadataMismatchError: they have not.
    """
    from .._subclasses.fake_tensor import MetadataMismatchError

    for name, x in (("a", a), ("b", b)):
        if not isinstance(x, torch.Tensor):
            raise AssertionError(f"{name} must be TensorLike, got {type(x)}")
    asked = [("Shapes", "shape")] if check_sizes else []
    for title, name in (*asked, ("Dtypes", "dtype"), ("Devices", "device")):
        first, second = getattr(a, name), getattr(b, name)
        if first != second:
            raise MetadataMismatchError(f"{title} {first} and {second} are not equal!")
    if check_strides:
        same, at = check_significant_strides(a, b, only_cuda=False)
        if not same:
            raise MetadataMismatchError(f"Stride mismatch! Strides are {a.stride()} and {b.stride()} (mismatched at "
                                        f"{at})!")
        if a.storage_offset() != b.storage_offset():
            raise MetadataMismatchError("Storage offset mismatch! Storage offsets are "
                                        f"{a.storage_offset()} and {b.storage_offset()}!")
    if check_conj and a.is_conj() != b.is_conj():
        raise MetadataMismatchError(f"Conj mismatch! is_conj is set to {a.is_conj()} and {b.is_conj()}")
    if a.is_neg() != b.is_neg():
        raise MetadataMismatchError(f"Neg mismatch! is_neg is set to {a.is_neg()} and {b.is_neg()}")


def _tensors(what: str, args: tuple[Any, ...]) -> list[torch.Tensor]:
    """The tensors among tensors and numbers."""
    found = []
    for arg in args:
        if isinstance(arg, torch.Tensor):
            found.append(arg)
        elif not isinstance(arg, Number):
            raise RuntimeError(f"Unexpected type when checking for same {what}, {type(arg)}!")
    return found


def check_same_device(*args: Any, allow_cpu_scalar_tensors: bool) -> None:
    """Check that tensors are on one device.

    Raises:
        RuntimeError: they are not, or something else than tensors and numbers is among them.
    """
    if len(args) <= 1:
        return
    found = [x for x in _tensors("device", args) if not (allow_cpu_scalar_tensors and is_cpu_scalar_tensor(x))]
    for x in found:
        if x.device != found[0].device:
            raise RuntimeError(f"Tensor on device {x.device} is not on the expected device {found[0].device}!")


def canonicalize_device(device: Any) -> torch.device:
    """A device of its name."""
    if isinstance(device, torch.device):
        return device
    if not isinstance(device, str):
        raise AssertionError(f"device must be torch.device or str, got {type(device)}")
    return torch.device(device)


def check_same_shape(*args: Any, allow_cpu_scalar_tensors: bool) -> None:
    """Check that tensors have one shape.

    Raises:
        RuntimeError: they have not, or something else than tensors and numbers is among them.
    """
    found = [x for x in _tensors("shape", args) if not (allow_cpu_scalar_tensors and is_cpu_scalar_tensor(x))]
    for x in found:
        if not is_same_shape(found[0].shape, x.shape):
            raise RuntimeError(f"Shape {x.shape} is not the expected shape {found[0].shape}!")


def check_same_dtype(*args: Any) -> None:
    """Check that tensors have one dtype.

    Raises:
        RuntimeError: they have not, or something else than tensors and numbers is among them.
    """
    found = _tensors("dtype", args)
    for x in found:
        if x.dtype is not found[0].dtype:
            raise RuntimeError(f"Tensor with dtype {x.dtype} is not the expected dtype of {found[0].dtype}!")
        if dtype_to_type(x.dtype) is not dtype_to_type(found[0].dtype):
            raise AssertionError("one dtype has one type of numbers")


def extract_shape(*args: Any, allow_cpu_scalar_tensors: bool) -> Any:
    """The shape that tensors have; None where they have several."""
    shape = scalar = None
    for arg in args:
        if isinstance(arg, Number):
            continue
        if not isinstance(arg, torch.Tensor):
            return None
        if allow_cpu_scalar_tensors and is_cpu_scalar_tensor(arg):
            scalar = arg.shape
        elif shape is None:
            shape = arg.shape
        elif not is_same_shape(shape, arg.shape):
            return None
    return scalar if shape is None else shape


def check_pin_memory(pin_memory: bool) -> None:
    """Refuse pinned memory.

    Raises:
        NotImplementedError: it is asked for.
    """
    if pin_memory:
        raise NotImplementedError("PrimTorch does not support pinned memory")


def check_layout(layout: torch.layout) -> None:
    """Refuse other layouts than strided.

    Raises:
        NotImplementedError: one is asked for.
    """
    if layout != torch.strided:
        raise NotImplementedError(f"PrimTorch doesn't support layout={layout}")


def check(b: bool, s: Callable[[], str], exc_type: type[Exception] = RuntimeError) -> None:
    """Deprecated: `torch._check` and its like.

    Raises:
        exc_type: the condition is false.
    """
    warnings.warn("`torch._prims_common.check` is deprecated and will be removed in the future. Please use "
                  "`torch._check*` functions instead.", FutureWarning, stacklevel=2)
    if not b:
        raise exc_type(s())


def mask_tensor(mask: torch.Tensor, t: torch.Tensor) -> torch.Tensor:
    """The elements where a mask is true, zeros elsewhere."""
    return t.logical_and(mask) if t.dtype is torch.bool else torch.where(mask, t, 0)


def get_aten_op(fn: Callable[..., Any], name: str) -> Any:
    """The overload of `torch.ops.aten` of a name, which a function of a module of the same prefix stands for."""
    prefix = getattr(fn, "__module__", "").rpartition("._refs")[2].replace(".", "_").strip("_")
    full = f"{prefix}_{name}" if prefix and prefix in ("fft", "linalg", "special") else name
    return getattr(torch.ops.aten, full)


def alert_not_deterministic(caller: str) -> None:
    """Warn or refuse where only deterministic algorithms are allowed.

    Raises:
        RuntimeError: they are.
    """
    if not torch.are_deterministic_algorithms_enabled():
        return
    if torch.is_deterministic_algorithms_warn_only_enabled():
        warnings.warn(f"{caller} does not have a deterministic implementation, but you set "
                      "'torch.use_deterministic_algorithms(True, warn_only=True)'. You can file an issue at "
                      "https://github.com/pytorch/pytorch/issues to help us prioritize adding deterministic support "
                      "for this operation.", stacklevel=2)
        return
    raise RuntimeError(f"{caller} does not have a deterministic implementation, but you set "
                       "'torch.use_deterministic_algorithms(True)'. You can turn off determinism just for this "
                       "operation, or you can use the 'warn_only=True' option, if that's acceptable for your "
                       "application. You can also file an issue at https://github.com/pytorch/pytorch/issues to help "
                       "us prioritize adding deterministic support for this operation.")
