"""Lowerings of functions and methods whose arguments are not their schemas': conversions, factories, shapes."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import flambeau as torch

from ..._tensor.overriding.dispatch import without_handlers
from ...utils._pytree import tree_leaves
from .calls import INTEGERS, Lowering, bound, call, emit, lifted, overload
from .symbolic_numbers import SizesDisagree, is_symbolic

_FACTORIES = frozenset(("zeros", "ones", "empty", "full", "arange", "eye", "linspace", "logspace", "rand", "randn",
                        "randint", "randperm", "scalar_tensor", "empty_strided"))
_LIKES = frozenset(("zeros_like", "ones_like", "empty_like", "full_like", "rand_like", "randn_like", "randint_like",
                    "new_zeros", "new_ones", "new_empty", "new_full"))


def _factory(name: str, builder: Any, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    if kwargs.get("out") is not None:
        return NotImplemented
    options = {key: kwargs[key] for key in ("dtype", "layout", "generator") if kwargs.get(key) is not None}
    device = kwargs.get("device")
    options["device"] = torch.device("cpu" if device is None else device)
    options["pin_memory"] = bool(kwargs.get("pin_memory"))
    rest = {key: value for key, value in kwargs.items() if key not in (
        "dtype", "layout", "generator", "device", "pin_memory", "requires_grad", "names")}
    if name in ("zeros", "ones", "empty", "rand", "randn"):
        size = rest.pop("size", None)
        if size is None:
            size = args[0] if len(args) == 1 and isinstance(args[0], (tuple, list)) else args
        positional: tuple[Any, ...] = (list(size),)
    elif name == "full":
        positional = (list(args[0] if args else rest.pop("size")), args[1] if len(args) > 1 else rest.pop("fill_value"))
    elif name == "arange":
        positional = (*args, *(rest[key] for key in ("start", "end", "step") if key in rest))
    else:
        positional = (*args, *rest.values())
    which = {"arange": ("default", "start", "start_step")[len(positional) - 1] if name == "arange" else "default",
             "empty": "memory_format", "eye": "m" if len(positional) > 1 else "default",
             "randint": "low" if len(positional) == 3 else "default"}.get(name, "default")
    if name == "randint":
        positional = (*positional[:-1], list(positional[-1]))
    return call(builder, overload(name, which), positional, options, func, args, kwargs)


def _like(name: str, builder: Any, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    options = {key: kwargs[key] for key in ("dtype", "layout", "device", "memory_format")
               if kwargs.get(key) is not None}
    if "device" in options:
        options["device"] = torch.device(options["device"])
    options["pin_memory"] = bool(kwargs.get("pin_memory"))
    rest = [value for key, value in kwargs.items() if key in ("size", "fill_value", "low", "high")]
    positional = (*args, *rest)
    if name.startswith("new_") and name != "new_full":
        size = positional[1] if len(positional) == 2 and isinstance(positional[1], (tuple, list)) else positional[1:]
        positional = (positional[0], list(size))
    which = "low_dtype" if name == "randint_like" and len(positional) == 3 else "default"
    return call(builder, overload(name, which), positional, options, func, args, kwargs)


def _rtruediv(builder: Any, func: Any, args: Any, kwargs: Any) -> Any:
    return emit(builder, "mul.Tensor", emit(builder, "reciprocal", args[0]), args[1])


def _rsub(builder: Any, func: Any, args: Any, kwargs: Any) -> Any:
    if isinstance(args[1], torch.Tensor):
        return emit(builder, "rsub.Tensor", *args)
    return emit(builder, "rsub.Scalar", *args)


def _rpow(builder: Any, func: Any, args: Any, kwargs: Any) -> Any:
    return emit(builder, "pow.Scalar", args[1], args[0])


def _norm(builder: Any, func: Any, args: Any, kwargs: Any) -> Any:
    given = bound("input p dim keepdim dtype", {"p": "fro", "dim": None, "keepdim": False, "dtype": None}, args, {
        ("input" if key == "self" else key): value for key, value in kwargs.items()})
    p, dim = given["p"], given["dim"]
    if given.get("out") is not None or given["dtype"] is not None or p == "nuc":
        return NotImplemented
    dims = None if dim is None else list(dim) if isinstance(dim, (list, tuple)) else [dim]
    order = 2.0 if p in ("fro", None) else p
    return emit(builder, "linalg_vector_norm", given["input"], *(() if dims is None and order == 2.0 else (
        order, dims, given["keepdim"])))


def _to(builder: Any, func: Any, args: Any, kwargs: Any) -> Any:
    x, *rest = args
    dtype, device = kwargs.get("dtype"), kwargs.get("device")
    others = {key: value for key, value in kwargs.items() if key not in ("dtype", "device")}
    while rest:
        value = rest.pop(0)
        if isinstance(value, torch.dtype):
            dtype = value
        elif isinstance(value, torch.Tensor):
            builder.check_metadata(x)
            return call(builder, overload("to", "device"), (x, value.device, value.dtype), others, func, args, kwargs)
        elif isinstance(value, (str, torch.device)):
            device = value
        else:
            return NotImplemented
    builder.check_metadata(x)
    if device is not None:
        options = {"dtype": dtype or x.dtype, "layout": torch.strided, "device": torch.device(device), **others}
        return call(builder, overload("to", "dtype_layout"), (x,), options, func, args, kwargs)
    if dtype is None:
        return NotImplemented
    given = (x, dtype, *(others[key] for key in ("non_blocking", "copy", "memory_format") if key in others))
    return call(builder, overload("to", "dtype"), given[:2], others, func, args, kwargs)


def _conversion(dtype_name: str) -> Lowering:
    def lower(builder: Any, func: Any, args: Any, kwargs: Any) -> Any:
        builder.check_metadata(args[0])
        dtype = getattr(torch, dtype_name)
        return call(builder, overload("to", "dtype"), (args[0], dtype), {}, func, args, kwargs)

    return lower


def _cpu(builder: Any, func: Any, args: Any, kwargs: Any) -> Any:
    x = args[0]
    builder.check_metadata(x)
    options = {"dtype": x.dtype, "layout": torch.strided, "device": torch.device("cpu")}
    return call(builder, overload("to", "dtype_layout"), (x,), options, func, args, kwargs)


def _type(builder: Any, func: Any, args: Any, kwargs: Any) -> Any:
    dtype = args[1] if len(args) > 1 else kwargs.get("dtype")
    return _conversion(repr(dtype).rpartition(".")[2])(builder, func, args, kwargs) if isinstance(
        dtype, torch.dtype) else NotImplemented


def _contiguous(builder: Any, func: Any, args: Any, kwargs: Any) -> Any:
    given = kwargs.get("memory_format", torch.contiguous_format)
    if args[0].is_contiguous(memory_format=given):
        return args[0]
    options = {} if given is torch.contiguous_format else {"memory_format": given}
    return call(builder, overload("contiguous"), args[:1], options, func, args, kwargs)


def _tensor(builder: Any, func: Any, args: Any, kwargs: Any) -> Any:
    if isinstance(args[0] if args else kwargs.get("data"), torch.Tensor):
        return NotImplemented
    if any(is_symbolic(x) or isinstance(x, torch.Tensor) for x in tree_leaves((args, kwargs))):
        raise SizesDisagree("a tensor of numbers of Python")
    with without_handlers():
        value = func(*args, **{**kwargs, "requires_grad": False})
    return lifted(builder, value, detach=True)


def _new_tensor(builder: Any, func: Any, args: Any, kwargs: Any) -> Any:
    x, *rest = args
    options = {"dtype": x.dtype, **{key: value for key, value in kwargs.items() if key in ("dtype",) and value}}
    return _tensor(builder, torch.tensor, tuple(rest), {**options, **({"data": kwargs["data"]} if "data" in kwargs
                                                                     else {})})


def _split(builder: Any, func: Any, args: Any, kwargs: Any) -> Any:
    given = bound("input split_size dim", {"dim": 0}, args, {
        {"self": "input", "tensor": "input", "split_size_or_sections": "split_size"}.get(key, key): value
        for key, value in kwargs.items()})
    sizes = given["split_size"]
    which = overload("split", "Tensor") if isinstance(sizes, INTEGERS) else overload("split_with_sizes")
    sizes = sizes if isinstance(sizes, INTEGERS) else list(sizes)
    return call(builder, which, (given["input"], sizes, given["dim"]), {}, func, args, kwargs)


def _unbind(builder: Any, func: Any, args: Any, kwargs: Any) -> Any:
    given = bound("input dim", {"dim": 0}, args, {("input" if k == "self" else k): v for k, v in kwargs.items()})
    return call(builder, overload("unbind", "int"), (given["input"], given["dim"]), {}, func, args, kwargs)


def _einsum(builder: Any, func: Any, args: Any, kwargs: Any) -> Any:
    equation, *operands = args
    if not isinstance(equation, str):
        return NotImplemented
    if len(operands) == 1 and isinstance(operands[0], (list, tuple)):
        operands = list(operands[0])
    return call(builder, overload("einsum"), (equation, operands), {}, func, args, kwargs)


def _broadcast_tensors(builder: Any, func: Any, args: Any, kwargs: Any) -> Any:
    tensors = list(args[0]) if len(args) == 1 and isinstance(args[0], (list, tuple)) else list(args)
    return call(builder, overload("broadcast_tensors"), (tensors,), {}, func, args, kwargs)


def _meshgrid(builder: Any, func: Any, args: Any, kwargs: Any) -> Any:
    tensors = list(args[0]) if len(args) == 1 and isinstance(args[0], (list, tuple)) else list(args)
    indexing = kwargs.get("indexing")
    if indexing is None:
        return call(builder, overload("meshgrid"), (tensors,), {}, func, args, kwargs)
    return call(builder, overload("meshgrid", "indexing"), (tensors,), {"indexing": indexing}, func, args, kwargs)


def _clamp(builder: Any, func: Any, args: Any, kwargs: Any) -> Any:
    given = bound("input min max", {"min": None, "max": None}, args, {
        ("input" if key == "self" else key): value for key, value in kwargs.items()})
    if given.get("out") is not None:
        return NotImplemented
    has_tensor = any(isinstance(given[key], torch.Tensor) for key in ("min", "max"))
    return call(builder, overload("clamp", "Tensor" if has_tensor else "default"), (
        given["input"], given["min"], given["max"]), {}, func, args, kwargs)


def _tensordot(builder: Any, func: Any, args: Any, kwargs: Any) -> Any:
    given = bound("a b dims", {"dims": 2}, args, kwargs)
    dims = given["dims"]
    if given.get("out") is not None or isinstance(dims, torch.Tensor):
        return NotImplemented
    left, right = (list(range(-dims, 0)), list(range(dims))) if isinstance(dims, int) else (
        [x] if isinstance(x, int) else list(x) for x in dims)
    return call(builder, overload("tensordot"), (given["a"], given["b"], left, right), {}, func, args, kwargs)


def _one_hot(builder: Any, func: Any, args: Any, kwargs: Any) -> Any:
    given = bound("input num_classes", {"num_classes": -1}, args, {
        ("input" if key in ("self", "tensor") else key): value for key, value in kwargs.items()})
    count = given["num_classes"]
    if isinstance(count, int) and count < 0:
        return NotImplemented
    arguments = given["input"], count
    return builder.emit(overload("one_hot"), arguments, {}, _one_hot_metadata, arguments, {})


def _multinomial_metadata(x: Any, num_samples: int, replacement: bool = False, *, generator: Any = None) -> Any:
    return x.new_empty((*x.shape[:-1], num_samples), dtype=torch.int64)


def _multinomial(builder: Any, func: Any, args: Any, kwargs: Any) -> Any:
    given = bound("input num_samples replacement", {"replacement": False}, args, {
        ("input" if key == "self" else key): value for key, value in kwargs.items()})
    if given.get("out") is not None or given.get("generator") is not None:
        return NotImplemented
    arguments = given["input"], given["num_samples"], given["replacement"]
    return builder.emit(overload("multinomial"), arguments, {}, _multinomial_metadata, arguments, {})


def _one_hot_metadata(x: Any, count: int) -> Any:
    return x.new_zeros((*x.shape, count))


def _roll(builder: Any, func: Any, args: Any, kwargs: Any) -> Any:
    given = bound("input shifts dims", {"dims": ()}, args, kwargs)
    shifts, dims = (list(x) if isinstance(x, (list, tuple)) else [x] for x in (given["shifts"], given["dims"]))
    return call(builder, overload("roll"), (given["input"], shifts, dims), {}, func, args, kwargs)


def _flip(builder: Any, func: Any, args: Any, kwargs: Any) -> Any:
    dims = kwargs.get("dims", args[1:])
    dims = list(dims[0]) if len(dims) == 1 and isinstance(dims[0], (list, tuple)) else list(dims)
    return call(builder, overload("flip"), (args[0], dims), {}, func, args, kwargs)


def _property(name: str) -> Lowering:
    def lower(builder: Any, func: Any, args: Any, kwargs: Any) -> Any:
        return call(builder, overload(name), args, {}, func, args, kwargs)

    return lower


TENSORS: dict[str, Lowering] = {
    "__rtruediv__": _rtruediv, "__rdiv__": _rtruediv, "__rsub__": _rsub, "rsub": _rsub, "__rpow__": _rpow,
    "norm": _norm, "to": _to, "type": _type, "contiguous": _contiguous, "tensor": _tensor, "new_tensor": _new_tensor,
    "split": _split, "unbind": _unbind, "einsum": _einsum, "meshgrid": _meshgrid,
    "broadcast_tensors": _broadcast_tensors,
    **{name: _conversion(dtype) for name, dtype in (
        ("float", "float32"), ("double", "float64"), ("half", "float16"), ("bfloat16", "bfloat16"), ("long", "int64"),
        ("int", "int32"), ("short", "int16"), ("char", "int8"), ("byte", "uint8"), ("bool", "bool"))},
    "cpu": _cpu, "one_hot": _one_hot, "multinomial": _multinomial, "tensordot": _tensordot, "clamp": _clamp,
    "clip": _clamp, "roll": _roll, "flip": _flip,
    **{name: functools.partial(_factory, name) for name in _FACTORIES},
    **{name: functools.partial(_like, name) for name in _LIKES},
}
PROPERTIES: dict[str, Lowering] = {"mT": _property("mT"), "T": _property("numpy_T"), "mH": _property("mH"),
                                    "H": _property("matrix_H"), "real": _property("real"), "imag": _property("imag")}
#: operators that check elements run on no fake tensors -> what has their results' metadata
TENSOR_METADATA: dict[str, Callable[..., Any]] = {"one_hot": _one_hot_metadata, "multinomial": _multinomial_metadata}

__all__ = ["PROPERTIES", "TENSORS", "TENSOR_METADATA"]
