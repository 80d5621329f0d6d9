"""`torch._custom_ops`: operators by name, deprecated; `torch.library` has replaced it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from ._custom_op.impl import check_prototype_name, define_custom_op, find_custom_op, parse_qualname, validate_namespace
from ._library.infer_schema import infer_schema
from .library import get_ctx, register_fake


def _maker(register: Callable[[Any], Any], func: Any) -> Any:
    return register if func is None else register(func)


def custom_op(qualname: str, func_or_schema: Any = None) -> Any:
    """Define an operator by a schema, or by a function with type hints; usable as a decorator.

    Args:
        qualname: its qualified name, `mylib::name`.
        func_or_schema: the function or the schema without the name.

    Raises:
        ValueError: the name, the schema or the function does not fit.
        RuntimeError: the operator is defined already.

    >>> import warnings
    >>> import flambeau as torch
    >>> from flambeau import _custom_ops
    >>> with warnings.catch_warnings(action="ignore"):
    ...     _custom_ops.custom_op("manual::shifted", "(Tensor x) -> Tensor")
    ...     _custom_ops.impl("manual::shifted", device_types="cpu", func=lambda x: x + 1) is not None
    True
    >>> torch.ops.manual.shifted(torch.zeros(1))
    tensor([1.])
    """
    validate_namespace(parse_qualname(qualname)[0])

    def define(schema: str) -> None:
        define_custom_op(qualname, schema)._register_autograd_kernel()

    def decorate(function: Any) -> Any:
        check_prototype_name(qualname, function)
        define(infer_schema(function, mutates_args=()))
        return function

    if func_or_schema is None:
        return decorate
    return define(func_or_schema) if isinstance(func_or_schema, str) else decorate(func_or_schema)


def impl(qualname: str, *, device_types: str | Iterable[str] = ("cpu", "cuda"), func: Any = None) -> Any:
    """Register a kernel for device types; usable as a decorator.

    Raises:
        ValueError: another device type than cpu and cuda, or no such operator.
        RuntimeError: there is a kernel.
    """
    def register(function: Any) -> Any:
        return find_custom_op(qualname, also_check_torch_library=True).impl(device_types, _stacklevel=4)(function)

    return _maker(register, func)


def impl_abstract(qualname: str, *, func: Any = None) -> Any:
    """Register an operator's fake kernel; usable as a decorator."""
    return register_fake(qualname, func, _stacklevel=2)


def impl_save_for_backward(qualname: str, *, func: Any = None) -> Any:
    """Register what an operator saves for its derivative, `(inputs, output) -> saved`; usable as a decorator.

    Raises:
        RuntimeError: the operator writes, returns views, or has a derivative.
    """
    def register(function: Any) -> Any:
        find_custom_op(qualname, also_check_torch_library=True).impl_save_for_backward(_stacklevel=4)(function)
        return function

    return _maker(register, func)


def impl_backward(qualname: str, output_differentiability: Any = None, *, func: Any = None) -> Any:
    """Register an operator's derivative, `(ctx, saved, *grads) -> {argument: gradient}`; usable as a decorator.

    Raises:
        RuntimeError: the operator writes, returns views, or has a derivative.
    """
    def register(function: Any) -> Any:
        found = find_custom_op(qualname, also_check_torch_library=True)
        found.impl_backward(output_differentiability, _stacklevel=4)(function)
        return function

    return _maker(register, func)


def _destroy(qualname: str) -> None:
    find_custom_op(qualname)._destroy()


__all__ = ["custom_op", "get_ctx", "impl", "impl_abstract", "impl_backward", "impl_save_for_backward"]
