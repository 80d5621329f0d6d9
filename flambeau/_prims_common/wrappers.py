"""`torch._prims_common.wrappers`: decorators that give functions over operators promotion of dtypes and `out=`."""

from __future__ import annotations

import functools
import inspect
import warnings
from collections import namedtuple
from collections.abc import Callable, Sequence
from typing import Any

import flambeau as torch

from .dtype_rules import Number, can_safe_cast_to, dtype_to_type
from .promotion import ELEMENTWISE_TYPE_PROMOTION_KIND, elementwise_dtypes

__all__ = ["_maybe_convert_to_dtype", "_maybe_convert_to_type", "_maybe_remove_out_wrapper", "_maybe_resize_out",
           "_resize_output_check", "_safe_copy_out", "check_copy_devices", "elementwise_type_promotion_wrapper",
           "elementwise_unary_scalar_wrapper", "is_cpu_scalar", "out_wrapper"]

_MARK = "_torch_decompositions_out_wrapper"


def _maybe_convert_to_dtype(a: Any, dtype: torch.dtype) -> Any:
    """A tensor, number or sequence of them in a dtype; None as it is.

    Raises:
        ValueError: something else.
    """
    if isinstance(a, torch.Tensor):
        return a if a.dtype == dtype else a.to(dtype)
    if isinstance(a, Number):
        return dtype_to_type(dtype)(a)
    if isinstance(a, Sequence):
        return tuple(_maybe_convert_to_dtype(x, dtype) for x in a)
    if a is None:
        return None
    raise ValueError(f"Received unsupported type {type(a)}. Expected TensorLike, Number, or Sequence.")


def _maybe_convert_to_type(a: Any, typ: type) -> Any:
    """A number as one of a type that is not below its own.

    Raises:
        AssertionError: it is no number.
        ValueError: its type is above.
    """
    if not isinstance(a, Number):
        raise AssertionError(f"Found unknown type {type(a)} when trying to convert scalars!")
    order = (bool, int, float, complex)
    if order.index(type(a)) > order.index(typ):
        raise ValueError(f"Scalar {a} of type {type(a)} cannot be safely cast to type {typ}!")
    return typ(a)


class elementwise_type_promotion_wrapper:
    """A decorator that computes in the dtype that arguments are promoted to.

    Args:
        type_promotion_kind: the rule of the result's dtype.
        type_promoting_args: the names of the parameters that are promoted.

    >>> import flambeau as torch
    >>> from flambeau._prims_common import ELEMENTWISE_TYPE_PROMOTION_KIND
    >>> from flambeau._prims_common.wrappers import elementwise_type_promotion_wrapper
    >>> @elementwise_type_promotion_wrapper(
    ...     type_promoting_args=("a",), type_promotion_kind=ELEMENTWISE_TYPE_PROMOTION_KIND.INT_TO_FLOAT)
    ... def halved(a):
    ...     return a / 2
    >>> halved(torch.arange(3))
    tensor([0.0000, 0.5000, 1.0000])
    """

    def __init__(self, *, type_promotion_kind: ELEMENTWISE_TYPE_PROMOTION_KIND,
                 type_promoting_args: Sequence[str] | None = None) -> None:
        self.type_promoting_arg_names = type_promoting_args
        self.type_promotion_kind = type_promotion_kind

    def __call__(self, fn: Callable[..., Any]) -> Callable[..., Any]:
        signature = inspect.signature(fn)
        names = self.type_promoting_arg_names or ()

        @functools.wraps(fn)
        def promoted(*args: Any, **kwargs: Any) -> Any:
            bound = signature.bind(*args, **kwargs)
            leaves: list[Any] = []
            for name in names:
                value = bound.arguments.get(name)
                leaves += value if isinstance(value, (list, tuple)) else [value]
            compute, result = elementwise_dtypes(*leaves, type_promotion_kind=self.type_promotion_kind)
            bound.arguments.update({name: _maybe_convert_to_dtype(bound.arguments[name], compute)
                                    for name in names if name in bound.arguments})
            out = fn(**bound.arguments)
            if isinstance(out, torch.Tensor):
                return _maybe_convert_to_dtype(out, result)
            if isinstance(out, (list, tuple)):
                return type(out)(_maybe_convert_to_dtype(x, result) for x in out)
            raise AssertionError(f"Unhandled result type: {type(out)}")

        decorated: Any = promoted
        decorated.__signature__ = signature
        return promoted


def _resize_output_check(out: torch.Tensor, shape: Sequence[int]) -> bool:
    """Whether a result does not fit `out`; one with elements gives a warning."""
    if tuple(out.shape) == tuple(shape):
        return False
    if out.numel():
        warnings.warn(f"An output with one or more elements was resized since it had shape {out.shape!s} which does "
                      f"not match the required output shape {shape!s}. This behavior is deprecated, and in a future "
                      "PyTorch release outputs will not be resized unless they have zero elements. You can explicitly "
                      "reuse an out tensor t by resizing it, inplace, to zero elements with t.resize_(0).",
                      stacklevel=2)
    return True


def _maybe_resize_out(out: torch.Tensor, shape: Sequence[int], memory_format: Any = None) -> torch.Tensor:
    """`out` with the shape of a result."""
    return out.resize_(shape, memory_format=memory_format or torch.contiguous_format) if _resize_output_check(
        out, shape) else out


def is_cpu_scalar(x: torch.Tensor) -> bool:
    """Whether a tensor is on the CPU and has no dimensions."""
    return x.dim() == 0 and x.device.type == "cpu"


def check_copy_devices(*, copy_from: torch.Tensor, copy_to: torch.Tensor) -> None:
    """Check that a result is on the device of `out`.

    Raises:
        RuntimeError: it is not.
    """
    if copy_from.device != copy_to.device:
        raise RuntimeError(f"Attempting to copy from device {copy_from.device} to device {copy_to.device}, but "
                           "cross-device copies are not allowed!")


def _safe_copy_out(*, copy_from: torch.Tensor, copy_to: torch.Tensor, exact_dtype: bool = False) -> torch.Tensor:
    """Copy a result to `out`.

    Raises:
        RuntimeError: another device, or a dtype that its own cannot be cast to.
    """
    if not is_cpu_scalar(copy_from):
        check_copy_devices(copy_from=copy_from, copy_to=copy_to)
    if exact_dtype:
        if copy_from.dtype != copy_to.dtype:
            raise RuntimeError(f"Expected out tensor to have dtype {copy_from.dtype} but got {copy_to.dtype} instead")
    elif not can_safe_cast_to(cast_from=copy_from.dtype, cast_to=copy_to.dtype):
        raise RuntimeError(f"Attempting to cast from {copy_from.dtype} to out tensor with dtype {copy_to.dtype}, but "
                           "this can't be cast because it is not safe!")
    return copy_to.copy_(copy_from)


def out_wrapper(*out_names: str, exact_dtype: bool = False, pass_is_out: bool = False,
                preserve_memory_format: bool = False) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """A decorator that gives a function the keyword parameter `out`.

    Args:
        out_names: the names of its results, if there are several.
        exact_dtype: whether `out` must have the result's dtype.
        pass_is_out: whether the function is told, as `is_out`.
        preserve_memory_format: whether `out` takes the strides of the result.

    >>> import flambeau as torch
    >>> from flambeau._prims_common.wrappers import out_wrapper
    >>> @out_wrapper()
    ... def twice(a):
    ...     return a + a
    >>> out = torch.empty(2)
    >>> twice(torch.ones(2), out=out) is out
    True
    """
    names = out_names or ("out",)
    several = len(names) > 1

    def decorate(fn: Callable[..., Any]) -> Callable[..., Any]:
        signature = inspect.signature(fn)
        outputs = namedtuple(f"return_types_{fn.__name__}", names) if several else None

        def copied(result: torch.Tensor, out: torch.Tensor) -> torch.Tensor:
            from . import suggest_memory_format

            _maybe_resize_out(out, result.shape, suggest_memory_format(result) if preserve_memory_format else None)
            return _safe_copy_out(copy_from=result, copy_to=out, exact_dtype=exact_dtype)

        @functools.wraps(fn)
        def with_out(*args: Any, out: Any = None, **kwargs: Any) -> Any:
            if several and any(name in kwargs for name in names):
                out = tuple(kwargs.pop(name) for name in names)
            if pass_is_out:
                kwargs["is_out"] = out is not None
            result = fn(*args, **kwargs)
            if out is None:
                return result if outputs is None else outputs(*result)
            if outputs is None:
                if not isinstance(out, torch.Tensor):
                    raise AssertionError(f"out must be a Tensor, got {type(out)}")
                return copied(result, out)
            if not isinstance(out, tuple) or len(out) != len(result):
                raise TypeError(f"expected tuple of {len(result)} elements but got {len(out)}")
            return outputs(*(copied(r, o) for r, o in zip(result, out, strict=True)))

        parameters = [p for p in signature.parameters.values() if not (pass_is_out and p.name == "is_out")]
        parameters.append(inspect.Parameter("out", inspect.Parameter.KEYWORD_ONLY, default=None))
        decorated: Any = with_out
        decorated.__signature__ = inspect.Signature(parameters, return_annotation=signature.return_annotation)
        setattr(decorated, _MARK, f"{__name__}.{fn.__qualname__}")
        return with_out

    return decorate


def _maybe_remove_out_wrapper(fn: Callable[..., Any]) -> Callable[..., Any]:
    """The function that `out_wrapper` decorated; another one as it is."""
    return inspect.unwrap(fn, stop=lambda f: not hasattr(f, _MARK))


def elementwise_unary_scalar_wrapper(fn: Callable[..., Any]) -> Callable[..., Any]:
    """A decorator with which a function of tensors takes numbers, too."""
    @functools.wraps(fn)
    def of_numbers(*args: Any, **kwargs: Any) -> Any:
        if args and isinstance(args[0], Number):
            result = fn(torch.tensor(args[0]), *args[1:], **kwargs)
            if not isinstance(result, torch.Tensor):
                raise AssertionError(f"Expected torch.Tensor result, got {type(result)}")
            return result.item()
        return fn(*args, **kwargs)

    return of_numbers
