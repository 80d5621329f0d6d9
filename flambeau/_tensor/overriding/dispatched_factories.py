"""Factory functions and reads of elements as operators, for handlers of `__torch_dispatch__`."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any, cast

from numpy import ndarray

from ...backends.elementless_array import WrapperArray, without_elements
from ...devices import CPU, strided
from ...devices import device as device_of
from ...engine.tensor_interface import layer
from ...shapes import contiguous_strides
from ..creation.legacy_constructor import shown_to_handlers
from ..dispatch.batched_tensor import is_batched, make_batched
from ..sparse.recording import record
from ..tensor import Tensor, wrap
from .aten_arguments import aten_overload
from .dispatch import (
    ask,
    dispatch_modes,
    handles,
    handling_inputs,
    no_dispatch,
    note_extra_keys,
    note_policy,
    note_wrapper,
    policies,
    without_handlers,
)
from .entry_points import below_overrides

Implementation = Callable[..., Any]


def _has_handler(args: tuple[Any, ...]) -> bool:
    return not no_dispatch.get() and (bool(dispatch_modes.get()) or any(handles(type(x)) for x in args))


def _options(kwargs: dict[str, Any], device: bool = True) -> dict[str, Any]:
    """The options of a factory as handlers are given them."""
    options = {name: kwargs[name] for name in ("dtype", "layout", "device") if kwargs.get(name) is not None}
    if isinstance(options.get("device"), str):
        options["device"] = device_of(options["device"])
    if device:
        options.setdefault("device", CPU)
    return {**options, "pin_memory": bool(kwargs.get("pin_memory"))}


def _asking(positional: Callable[..., tuple[str, tuple[Any, ...]]], device: bool = True, likes: bool = False) -> Any:
    """A factory whose overload and positional arguments a function of its arguments tells.

    Args:
        device: whether its tensors are on the CPU by default, not on the device of an argument.
        likes: whether the result has the shape of the first argument.
    """
    def run(implementation: Implementation, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if not _has_handler(args) or kwargs.get("out") is not None:
            return implementation(*args, **kwargs)
        if is_batched(*args[:1]):  # handlers see values of batched tensors
            if not likes:
                return implementation(*args, **kwargs)
            return make_batched(run(implementation, (args[0]._value, *args[1:]), kwargs), args[0]._levels)
        kwargs = dict(kwargs)
        requires_grad = kwargs.pop("requires_grad", False)
        own = {name: kwargs.pop(name) for name in ("generator", "names") if name in kwargs}
        memory_format = kwargs.pop("memory_format", None)
        options = _options(kwargs, device)
        others = {name: value for name, value in kwargs.items()
                  if name not in ("dtype", "layout", "device", "pin_memory", "out")}
        name, given = positional(*args, **others)
        packet, _, overload = name.partition(".")
        if own.get("generator") is not None:
            options["generator"] = own["generator"]
            overload = "generator"
        if memory_format is not None:
            options["memory_format"] = memory_format
        result = ask(aten_overload(packet, overload), handling_inputs(given), given, options)
        return result.requires_grad_() if requires_grad else result

    return run


def _sized(name: str) -> Any:
    def arguments(*args: Any, size: Any = None) -> tuple[str, tuple[Any, ...]]:
        if size is None:
            size = args[0] if len(args) == 1 and isinstance(args[0], (tuple, list)) else args
        return name, (_numbers(size),)

    return _asking(arguments)


def _like(name: str) -> Any:
    return _asking(lambda input, *args, fill_value=None: (
        f"{name}.default", (input, *args) if fill_value is None else (input, fill_value)), device=False, likes=True)


def _randint_like(input: Tensor, *args: Any, low: Any = None, high: Any = None) -> tuple[str, tuple[Any, ...]]:
    given = (*(x for x in (low,) if x is not None), *args, *(x for x in (high,) if x is not None))
    return f"randint_like.{'low_dtype' if len(given) == 2 else 'default'}", (input, *given)


def _new(name: str) -> Any:
    def arguments(self: Tensor, *args: Any, size: Any = None, **others: Any) -> tuple[str, tuple[Any, ...]]:
        if name == "new_full":
            return f"{name}.default", (self, _numbers(args[0] if args else size), *args[1:], *others.values())
        if size is None:
            size = args[0] if len(args) == 1 and isinstance(args[0], (tuple, list)) else args
        return f"{name}.default", (self, _numbers(size))

    return _asking(arguments, device=False)


def _stepped(name: str) -> Any:
    overloads = ("default", "start", "start_step")

    def arguments(*args: Any, start: Any = None, end: Any = None, step: Any = None) -> tuple[str, tuple[Any, ...]]:
        given = (*args, *(x for x in (start, end, step) if x is not None))
        return f"{name}.{overloads[len(given) - 1]}", given

    return _asking(arguments)


def _triangle(name: str) -> Any:
    return _asking(lambda row, col, offset=0: (
        f"{name}_indices.default", (row, col) if offset == 0 else (row, col, offset)))


def _randint(*args: Any, low: Any = None, high: Any = None, size: Any = None) -> tuple[str, tuple[Any, ...]]:
    given = (*(x for x in (low,) if x is not None), *args, *(x for x in (high, size) if x is not None))
    return ("randint.low" if len(given) == 3 else "randint.default"), (*given[:-1], list(given[-1]))


def _normal(implementation: Implementation, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """`torch.normal`: a factory of numbers, or an operator of tensors."""
    given = dict(zip(("mean", "std", "size"), args, strict=False)) | kwargs
    mean, std, size = given.pop("mean", 0.0), given.pop("std", 1.0), given.pop("size", None)
    if given.get("out") is not None or not _has_handler((mean, std)):
        return implementation(*args, **kwargs)
    if size is None:
        kinds = ("Tensor" if isinstance(x, Tensor) else "float" for x in (mean, std))
        return ask(aten_overload("normal", "_".join(kinds)), handling_inputs((mean, std)), (mean, std),
                   {name: value for name, value in given.items() if value is not None})
    requires_grad, generator = given.pop("requires_grad", False), given.pop("generator", None)
    options = ({} if generator is None else {"generator": generator}) | _options(given)
    result = ask(aten_overload("normal", "float_float"), [], (mean, std, list(size)), options)
    return result.requires_grad_() if requires_grad else result


def _drawn(name: str) -> Any:
    """A draw whose parameters are a tensor's elements: an operator.

    Without a mode tensors with handlers are given the declared operator, with the numbers drawn.
    """
    def run(implementation: Implementation, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        given = {key: value for key, value in kwargs.items() if value is not None}
        if not args or "out" in given or no_dispatch.get() or not dispatch_modes.get():
            return implementation(*args, **kwargs)
        overload = "p" if name == "bernoulli" and (len(args) > 1 or "p" in given) else "default"
        result = ask(aten_overload(name, overload), handling_inputs(args), args, given)
        x = args[0]
        if name == "multinomial" or not isinstance(result, Tensor) or result._requires_grad:
            return result
        return record(result, f"{name.capitalize()}Backward0", (x,), lambda g: (layer.functions.zeros_like(g),))

    return run


def _lifted(implementation: Implementation, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """`torch.tensor`: the new tensor is the argument of `lift_fresh`."""
    made = implementation(*args, **kwargs)
    if not dispatch_modes.get() or no_dispatch.get():
        return made
    result = ask(aten_overload("lift_fresh", "default"), [], (made,), {})
    return result.requires_grad_() if made._requires_grad and not result._requires_grad else result


def _lifted_data(position: int) -> Any:
    """`torch.as_tensor` and others: a tensor that is not made of another one is the argument of `lift_fresh`.

    Args:
        position: of the data among the arguments.
    """
    def run(implementation: Implementation, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if any(isinstance(x, Tensor) for x in (*args[position:position + 1], *kwargs.values())):
            return implementation(*args, **kwargs)
        if any(type(x) is ndarray for x in args[position:position + 1]):  # implementations call one another
            with without_handlers():
                made = implementation(*args, **kwargs)
            return _lifted(lambda: made, (), {})
        return _lifted(implementation, args, kwargs)

    return run


def _constructed(made: Tensor, data: Any) -> Any:
    """`torch.Tensor(data)`: the argument of `lift_fresh`, or an alias; `torch.Tensor(2, 3)`: the operator `empty`."""
    if not _has_handler((data,)):
        return made
    if data is None:
        return ask(aten_overload("empty", "memory_format"), [], (list(made.shape),), {
            "dtype": made.dtype, "layout": strided, "device": made.device})
    if isinstance(data, Tensor):
        return ask(aten_overload("alias", "default"), handling_inputs((data,)), (data,), {})
    return _lifted(lambda: made, (), {})


def _element(convert: Callable[[Any], Any] | None) -> Any:
    """A read of the only element: the operator `_local_scalar_dense`."""
    def run(implementation: Implementation, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if not _has_handler(args) or args[0]._array.size != 1:
            return implementation(*args, **kwargs)
        value = ask(aten_overload("_local_scalar_dense", "default"), handling_inputs(args), args[:1], {})
        return value if convert is None else convert(value)

    return run


def _detaching(shares_version: bool) -> Any:
    """`x.detach()`, whose writes are counted for `x`, too, and `x.data`: the operator `detach`."""
    def run(implementation: Implementation, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if not _has_handler(args) or is_batched(args[0]):  # handlers see the value of a batched tensor
            return implementation(*args, **kwargs)
        x = args[0]
        made = ask(aten_overload("detach", "default"), handling_inputs(args), args[:1], {})
        if made is not None and not isinstance(made, Tensor):
            raise RuntimeError(f"Unable to cast {made} to Tensor")
        if shares_version and made is not None and made is not x and not x._inference and not made._inference:
            if x._counter is None:
                x._counter = [0]
            made._counter = x._counter
        return made

    return run


def _set(implementation: Implementation, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """`x.set_(source)` of a tensor whose class handles operators: an overload of `set_`."""
    if no_dispatch.get() or not handles(type(args[0])):
        return implementation(*args, **kwargs)
    names = ("source", "storage_offset", "size", "stride")
    given = dict(zip(names, args[1:], strict=False)) | kwargs
    source = given.pop("source", None)
    overload, rest = "default", cast("tuple[Any, ...]", ())
    if source is not None:
        if given and isinstance(source, Tensor):
            source = source.untyped_storage()
        overload = "source_Tensor" if isinstance(source, Tensor) else "source_Storage"
        rest = (source,)
    if given:
        overload += "_storage_offset"
        rest += (given.get("storage_offset", 0), list(given["size"]), list(given.get("stride", ())))
    ask(aten_overload("set_", overload), handling_inputs(args), (args[0], *rest), {})
    return args[0]


def _resize(implementation: Implementation, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """`x.resize_(size)` of a tensor whose class handles operators: the operator `resize_`."""
    if no_dispatch.get() or not handles(type(args[0])):
        return implementation(*args, **kwargs)
    size = args[1] if len(args) == 2 and isinstance(args[1], (tuple, list)) else args[1:]
    ask(aten_overload("resize_", "default"), handling_inputs(args), (args[0], list(size)), kwargs)
    return args[0]


def _numbers(sizes: Any) -> list[Any]:
    """Sizes, those that are tensors as numbers."""
    return [operator.index(each) if isinstance(each, Tensor) else each for each in sizes]


def _compared(name: str) -> Any:
    """A comparison of all elements that returns a bool."""
    def run(implementation: Implementation, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if not _has_handler(args):
            return implementation(*args, **kwargs)
        return ask(aten_overload(name, "default"), handling_inputs(args), args, kwargs)

    return run


def _unread(text: str) -> Any:
    """A read of all elements, which a class that handles operators refuses.

    Args:
        text: the message, with the name of the class.
    """
    def run(implementation: Implementation, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if handles(type(args[0])):
            raise RuntimeError(text.format(type(args[0]).__name__))
        return implementation(*args, **kwargs)

    return run


def _by_policy(query: str) -> Any:
    """A query that the handler of a wrapper answers whose policy says so."""
    def run(implementation: Implementation, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if not policies:
            return implementation(*args, **kwargs)
        from .dispatch_policies import ANSWERS

        return ANSWERS[query](implementation, args, kwargs)

    return run


below_overrides.update({
    **{name: _by_policy(name) for name in ("torch.numel", *(f"torch.Tensor.{name}" for name in (
        "device.__get__", "is_cuda.__get__", "layout.__get__", "shape.__get__", "ndim.__get__", "stride", "size", "dim",
        "ndimension", "numel", "nelement", "__len__", "storage_offset", "is_contiguous", "data_ptr",
        "type_as")))},
    "torch.Tensor.tolist": _unread(".tolist() is not supported for tensor subclasses, got {0}"),
    "torch.Tensor.numpy": _unread(".numpy() is not supported for tensor subclasses."),
    **{f"torch.{name}": _sized(f"{name}.{'memory_format' if name == 'empty' else 'default'}")
       for name in ("zeros", "ones", "empty", "rand", "randn")},
    **{f"torch.{name}": _like(name) for name in ("zeros_like", "ones_like", "empty_like", "rand_like", "randn_like",
                                                 "full_like")},
    "torch.randint_like": _asking(_randint_like, device=False),
    **{f"torch.Tensor.{name}": _new(name) for name in ("new_zeros", "new_ones", "new_empty", "new_full")},
    "torch.full": _asking(lambda size, fill_value: ("full.default", (_numbers(size), fill_value))),
    "torch.arange": _stepped("arange"), "torch.randint": _asking(_randint),
    "torch.eye": _asking(lambda n, m=None: ("eye.default", (n,)) if m is None else ("eye.m", (n, m))),
    "torch.linspace": _asking(lambda start, end, steps: ("linspace.default", (start, end, steps))),
    "torch.logspace": _asking(lambda start, end, steps, base=10.0: (
        "logspace.default", (start, end, steps) if base == 10.0 else (start, end, steps, base))),
    "torch.empty_permuted": _asking(lambda size, physical_layout: (
        "empty_permuted.default", (_numbers(size), list(physical_layout)))),
    **{f"torch.{name}_indices": _triangle(name) for name in ("tril", "triu")},
    "torch.normal": _normal,
    "torch.poisson": _drawn("poisson"), **{f"{prefix}.{name}": _drawn(name) for prefix in ("torch", "torch.Tensor")
                                           for name in ("bernoulli", "multinomial")},
    "torch.randperm": _asking(lambda n: ("randperm.default", (n,))),
    "torch.empty_strided": _asking(lambda size, stride: ("empty_strided.default", (list(size), list(stride)))),
    "torch.scalar_tensor": _asking(lambda s: ("scalar_tensor.default", (s,))),
    **dict.fromkeys(("torch.detach", "torch.Tensor.detach"), _detaching(True)),
    "torch.Tensor.data.__get__": _detaching(False), "torch.Tensor.set_": _set, "torch.Tensor.resize_": _resize,
    **{f"{prefix}.{name}": _compared(name) for prefix in ("torch", "torch.Tensor") for name in ("equal", "allclose")},
    "torch.tensor": _lifted, "torch.Tensor.new_tensor": _lifted_data(1),
    **{f"torch.{name}": _lifted_data(0) for name in ("as_tensor", "asarray", "from_numpy")},
    "torch.Tensor.item": _element(None), "torch.Tensor.__bool__": _element(bool),
    "torch.Tensor.__float__": _element(float), "torch.Tensor.__int__": _element(int),
    "torch.Tensor.__index__": _element(int), "torch.Tensor.__complex__": _element(complex),
})


shown_to_handlers[0] = _constructed


def _addresses(shape: tuple[int, ...], dtype: Any) -> Tensor:
    """A tensor whose elements nobody touches; of more than the memory has, addresses alone."""
    try:
        return layer.functions.empty(shape, dtype=dtype)
    except MemoryError:
        return layer.functions.empty(shape, dtype=dtype, device="meta")


def make_wrapper_subclass(cls: type, size: Any, strides: Any = None, storage_offset: Any = None,
                           memory_format: Any = None, dtype: Any = None, layout: Any = None, device: Any = None,
                           pin_memory: bool = False, requires_grad: bool = False,
                           dispatch_sizes_strides_policy: Any = None, dispatch_device: bool = False,
                           dispatch_layout: bool = False, _extra_dispatch_keys: Any = None,
                           storage_size: Any = None) -> Any:
    """A tensor of a subclass without elements of its own; its `__torch_dispatch__` computes every operator.

    Raises:
        TypeError: the class has no `__torch_dispatch__`.
    """
    if not handles(cls):
        raise TypeError(f"{cls.__name__} must define __torch_dispatch__")
    shape, offset = tuple(size), storage_offset or 0
    with without_handlers():
        if strides is None and not offset:
            memory = _addresses(shape, dtype)
            if memory_format is not None:
                memory = memory.contiguous(memory_format=memory_format)
        else:
            if strides is None:
                strides = contiguous_strides(shape)
            last = sum((n - 1) * s for n, s in zip(shape, strides, strict=True)) if 0 not in shape else -1
            memory = _addresses((offset + last + 1,), dtype).as_strided(shape, tuple(strides), offset)
    out = wrap(without_elements(memory._array, WrapperArray), cls)
    out._requires_grad = requires_grad
    note_wrapper(out)
    note_policy(out, dispatch_sizes_strides_policy, dispatch_device, dispatch_layout)
    if _extra_dispatch_keys is not None:
        note_extra_keys(out, _extra_dispatch_keys)
    return out


__all__ = ["below_overrides"]
