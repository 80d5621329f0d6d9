"""Fake tensors: tensors with shape, strides, dtype and device, without elements.

A `FakeTensor` is a subclass whose operators `FakeTensorMode` runs as operators on meta tensors (`_tensor.meta`), so
that the metadata of each result is inferred and autograd records as always. What needs elements raises.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partialmethod
from typing import Any, NoReturn

import numpy as np

from .. import devices
from .._library.fake_impl import FakeImplCtx, set_ctx_getter
from .._library.registry import kernels_of
from .._tensor import Tensor
from .._tensor.meta import reserved, reserved_like
from .._tensor.overriding.dispatch import dispatch_modes, without_handlers
from .._tensor.overriding.entry_points import note_instance
from .._tensor.overriding.protocol import DISABLED
from .._tensor.tensor import INFERENCE, wrap
from ..backends.elementless_array import WrapperArray, plain_dtype, without_elements
from ..backends.numpy.memory import address, owner
from ..modes import inference
from ..ops.overloads import OpOverload
from ..utils._python_dispatch import TorchDispatchMode
from ..utils._pytree import tree_flatten, tree_leaves, tree_map_only, tree_unflatten
from ..utils.weak import WeakIdKeyDictionary
from .fake_tensor_cache import CACHE, DispatchCacheInfo


class DynamicOutputShapeException(RuntimeError):
    """The shape of an operator's result depends on elements."""

    def __init__(self, func: OpOverload) -> None:
        super().__init__(func)
        self.func = func


class DataDependentOutputException(RuntimeError):
    """An operator returns a number that depends on elements."""

    def __init__(self, func: OpOverload) -> None:
        super().__init__(func)
        self.func = func


class UnsupportedOperatorException(RuntimeError):
    """An operator has no fake kernel (`torch.library.register_fake`)."""

    def __init__(self, func: OpOverload) -> None:
        super().__init__(func)
        self.func = func


class UnsupportedFakeTensorException(RuntimeError):
    """A tensor that cannot be faked."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class UnsupportedMutationAliasingException(RuntimeError):
    """An operator writes in a way that fake tensors do not follow."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class MetadataMismatchError(RuntimeError):
    """A fake result has other metadata than the real one."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class FakeTensorDeviceMismatchError(RuntimeError):
    """The tensors of a call are on different devices."""


class FakeTensorConfig:
    """Settings of fake tensors.

    Attributes:
        debug: not used.
    """

    debug = False


class FakeTensorTLS(threading.local):
    """Settings of this thread."""

    allow_non_fake_inputs_override: bool | None = None


fake_tensor_tls = FakeTensorTLS()


class FakeTensor(Tensor):
    """A tensor without elements.

    Args:
        fake_mode: the mode that computes its operators.
        elem: a meta tensor with its shape, strides and dtype.
        device: the device that it stands for.
        constant: the tensor of its value, where that is known.

    Attributes:
        fake_device: the device.
        fake_mode: the mode.

    >>> import flambeau as torch
    >>> from flambeau._subclasses.fake_tensor import FakeTensorMode
    >>> with FakeTensorMode():
    ...     torch.ones(10**6, 10**6) @ torch.ones(10**6, 3)
    FakeTensor(..., size=(1000000, 3))
    """

    fake_device: Any
    fake_mode: FakeTensorMode
    constant: Any
    _lacks_elements = True
    __torch_function__ = DISABLED

    def __new__(cls, fake_mode_or_elem: Any = None, elem: Any = None, device: Any = None, constant: Any = None,
                real_tensor: Any = None, pytype: Any = None, dispatch_keys: Any = None, *, fake_mode: Any = None,
                fake_device: Any = None, requires_grad: bool | None = None, **state: Any) -> Any:
        if isinstance(fake_mode_or_elem, Tensor):
            elem = fake_mode_or_elem
        elif isinstance(fake_mode_or_elem, FakeTensorMode):
            fake_mode = fake_mode_or_elem
        elif fake_mode_or_elem is not None or fake_mode is None:
            raise TypeError("FakeTensor.__new__() expected a FakeTensorMode or Tensor as the first argument, got "
                            f"{type(fake_mode_or_elem)}")
        return _fake(fake_mode, elem._array, device or fake_device or devices.CPU, constant,
                     elem._requires_grad if requires_grad is None else requires_grad)

    @property
    def device(self) -> Any:
        """The device that it stands for."""
        return self.fake_device

    is_meta = property(lambda self: self.fake_device.type == "meta",
                       doc="Whether it stands for a meta tensor.")

    @property
    def names(self) -> Any:
        """The names of dimensions, which fake tensors do not have."""
        raise UnsupportedFakeTensorException("torch.compile doesn't support named tensors")

    @staticmethod
    def from_tensor(t: Any, fake_mode: FakeTensorMode) -> FakeTensor:
        """The fake tensor of a tensor."""
        return fake_mode.from_tensor(t)

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        modes = {id(x.fake_mode): x.fake_mode for x in tree_leaves((args, kwargs)) if isinstance(x, FakeTensor)}
        if len(modes) != 1:
            raise AssertionError("Mixing fake modes NYI")
        (mode,) = modes.values()
        return mode.__torch_dispatch__(func, types, args, kwargs)

    def tolist(self) -> Any:
        """Refuse: there are no elements.

        Raises:
            DataDependentOutputException: unless the tensor is a constant of one element.
        """
        if self.dim() == 0:
            return self.item()
        raise DataDependentOutputException(layer_aten("_local_scalar_dense"))

    def numpy(self, *, force: bool = False) -> Any:
        """Refuse: there are no elements.

        Raises:
            RuntimeError: always (PyTorch's text).
        """
        raise RuntimeError(".numpy() is not supported for tensor subclasses.")

    def __array__(self, *args: Any, **kwargs: Any) -> Any:
        raise RuntimeError(".numpy() is not supported for tensor subclasses.")

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        if id(self) not in memo:
            copied = _fake(self.fake_mode, reserved_like(self._array), self.fake_device, self.constant,
                           self._requires_grad)
            if getattr(self, "_is_param", False):
                copied._is_param = True
            memo[id(self)] = copied
        return memo[id(self)]


def layer_aten(name: str, overload: str = "default") -> OpOverload:
    """An overload of PyTorch's namespace of operators."""
    return getattr(getattr(aten_namespace(), name), overload)


def aten_namespace() -> Any:
    """PyTorch's namespace of operators."""
    from ..ops import aten

    return aten


def _fake(mode: FakeTensorMode, array: Any, device: Any, constant: Any = None, requires_grad: bool = False) -> Any:
    """A fake tensor on the addresses of an array, which are never read."""
    out = wrap(without_elements(array, WrapperArray), FakeTensor)
    out.fake_mode, out.constant = mode, constant
    out.fake_device = device if isinstance(device, devices.device) else devices.device(device)
    note_instance(out)
    if requires_grad:
        out._requires_grad = True
    if inference.get():
        out._inference, out._counter = True, INFERENCE
    return out


#: overloads whose results depend on elements: the number, and the shape
_DATA_DEPENDENT = frozenset(("_local_scalar_dense", "equal", "allclose", "is_nonzero", "item"))
_DYNAMIC_SHAPE = frozenset(("nonzero", "masked_select", "_unique2", "unique_dim", "unique_consecutive", "argwhere",
                            "bincount", "repeat_interleave"))
_LIKE = ("empty_like", "full_like", "ones_like", "rand_like", "randn_like", "randint_like", "zeros_like")
_LIFTS = frozenset(("lift_fresh", "lift_fresh_copy", "lift"))


class FakeTensorMode(TorchDispatchMode):
    """A context manager in which tensors are made fake, and the mode of the fake tensors that it makes.

    Args:
        allow_fallback_kernels: kept for callers: without a rule for shapes, small kernels run on zeros.
        allow_non_fake_inputs: whether operators take other tensors too, by `from_tensor`.
        shape_env: kept for callers; sizes are known numbers.
        static_shapes, export: kept for callers.

    >>> import flambeau as torch
    >>> from flambeau._subclasses.fake_tensor import FakeTensorMode
    >>> mode = FakeTensorMode()
    >>> x = mode.from_tensor(torch.ones(2, 3))
    >>> x.sum(0)
    FakeTensor(..., size=(3,))
    """

    def __init__(self, *, allow_fallback_kernels: bool = True, allow_non_fake_inputs: bool = False,
                 shape_env: Any = None, static_shapes: bool | None = None, export: bool = False) -> None:
        super().__init__()
        self.allow_fallback_kernels, self.allow_non_fake_inputs = allow_fallback_kernels, allow_non_fake_inputs
        self.shape_env, self.export = shape_env, export
        self.static_shapes = shape_env is None if static_shapes is None else static_shapes
        self.fake_tensor_converter = FakeTensorConverter()
        self._made: weakref.WeakSet[Any] | None = None

    @property
    def allow_meta(self) -> bool:
        """Whether meta tensors are inputs: always."""
        return True

    def from_tensor(self, tensor: Any, *, static_shapes: bool | None = None, source: Any = None,
                    symbolic_context: Any = None, trace: bool = True) -> Any:
        """The fake tensor of a tensor, the same one each time.

        Raises:
            AssertionError: it is a fake tensor of another mode.
            UnsupportedFakeTensorException: it is sparse.
        """
        return self.fake_tensor_converter.from_real_tensor(self, tensor)

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        name = func.overloadpacket.__name__
        leaves, spec = tree_flatten((args, kwargs))
        if name in _LIFTS and not isinstance(args[0], FakeTensor):
            value = args[0]
            return _fake(self, reserved_like(value._array), value._device,
                         value.detach() if value.numel() <= 1 else None)
        known = self._constant(func, leaves, spec)
        if name in _DATA_DEPENDENT:
            if known is not None:
                return known[0]
            raise DataDependentOutputException(func)
        if name in _DYNAMIC_SHAPE and not (name == "repeat_interleave" and kwargs.get("output_size") is not None):
            raise DynamicOutputShapeException(func)
        leaves = [self._checked(x, func, args, kwargs) for x in leaves]
        fakes = {id(meta): x for x in leaves if isinstance(x, FakeTensor) for meta in (_meta_of(x),)}
        device = self._device(func, leaves, kwargs)
        args, kwargs = tree_unflatten([_meta_of(x) if isinstance(x, FakeTensor) else x for x in leaves], spec)
        if (not fakes or "device" in kwargs) and any(
                a.name == "device" for a in getattr(func._given_schema, "arguments", ())):
            kwargs = {**kwargs, "device": devices.META}
        result = self._run(func, args, kwargs) if known is not None else CACHE.run(
            func, args, kwargs, lambda: self._run(func, args, kwargs))
        out = tree_map_only(Tensor, lambda x: fakes[id(x)] if id(x) in fakes else _fake(self, x._array, device), result)
        if known is not None:
            for fake, value in zip(tree_leaves(out), tree_leaves(known[0]), strict=True):
                if isinstance(fake, FakeTensor):
                    fake.constant = value
        elif func._given_schema is not None and func._schema.is_mutable:
            for x in leaves[:1]:
                if isinstance(x, FakeTensor):
                    x.constant = None
                    _follow(x)
        return out

    @classmethod
    def cache_info(cls) -> DispatchCacheInfo:
        """How often the metadata of a result was known."""
        return CACHE.info()

    @classmethod
    def cache_clear(cls) -> None:
        """Forget the metadata of results."""
        CACHE.clear()

    def _checked(self, x: Any, func: Any, args: Any, kwargs: Any) -> Any:
        """An argument, a fake tensor if it is a tensor."""
        if not isinstance(x, Tensor):
            return x
        if isinstance(x, FakeTensor):
            if x.fake_mode is not self:
                raise AssertionError("Mixing fake modes NYI")
            return x
        allowed = fake_tensor_tls.allow_non_fake_inputs_override
        if not (self.allow_non_fake_inputs if allowed is None else allowed):
            shown = [repr(x) if isinstance(x, FakeTensor) else _shown(x) if isinstance(x, Tensor) else repr(x)
                     for x in (*args, *kwargs.values())]
            raise AssertionError("Please convert all Tensors to FakeTensors first or instantiate FakeTensorMode with "
                                 f"'allow_non_fake_inputs'. Found in {func}({', '.join(shown)})")
        return self.from_tensor(x)

    def _constant(self, func: Any, leaves: list[Any], spec: Any) -> tuple[Any] | None:
        """The result of an operator on known values; None where an argument or the result is not known."""
        tensors = [x for x in leaves if isinstance(x, Tensor)]
        if not tensors or not all(isinstance(x, FakeTensor) and x.constant is not None for x in tensors):
            return None
        if func.overloadpacket.__name__ in _RANDOM:
            return None
        args, kwargs = tree_unflatten([x.constant if isinstance(x, FakeTensor) else x for x in leaves], spec)
        with without_handlers():
            result = func(*args, **kwargs)
        if any(isinstance(x, Tensor) and x.numel() > 1 for x in tree_leaves(result)):
            return None
        return (result,)

    def _device(self, func: Any, leaves: list[Any], kwargs: Any) -> Any:
        """The device of the results.

        Raises:
            RuntimeError: the tensors are on different devices.
        """
        asked = kwargs.get("device")
        if asked is not None:
            return asked if isinstance(asked, devices.device) else devices.device(asked)
        found = None
        for x in leaves:
            if isinstance(x, FakeTensor) and (found is None or (found.type != x.fake_device.type and x.dim())):
                if found is not None and any(y.dim() for y in leaves if isinstance(y, FakeTensor) and (
                        y.fake_device.type == found.type)):
                    raise RuntimeError(f"Unhandled FakeTensor Device Propagation for {func}, found two different "
                                       f"devices {found}, {x.fake_device}")
                found = x.fake_device
        if found is None:
            found = devices.ambient[0]
        return devices.CPU if found is None else found

    def _run(self, func: Any, args: Any, kwargs: Any) -> Any:
        """An operator on meta tensors.

        Raises:
            UnsupportedOperatorException: a custom operator without a fake kernel.
        """
        if getattr(func, "kernel", None) is not None:
            custom = kernels_of(func)
            if custom.fake is None and custom.original is None and not custom.is_composite():
                raise UnsupportedOperatorException(func)

            def refuse() -> NoReturn:
                raise DynamicOutputShapeException(func)

            with self._meta_factories(), set_ctx_getter(lambda: FakeImplCtx(refuse)):
                return func(*args, **kwargs)
        with self._meta_factories():
            return func(*args, **kwargs)

    @contextmanager
    def _meta_factories(self) -> Iterator[None]:
        """The functions that an operator is made of create meta tensors."""
        token = dispatch_modes.set(())
        devices.ambient.append(devices.ambient[0])
        devices.ambient[0] = devices.META
        try:
            yield
        finally:
            devices.ambient[0] = devices.ambient.pop()
            dispatch_modes.reset(token)


_RANDOM = frozenset(("bernoulli", "rand_like", "randn_like", "randint_like", "normal_", "uniform_", "bernoulli_",
                     "random_", "exponential_", "geometric_", "cauchy_", "log_normal_", "multinomial", "poisson"))


def _shown(x: Any) -> str:
    return f"tensor({'[...]' if x.dim() else repr(x)[7:-1]}, size={tuple(x.shape)})"


def _meta_of(x: FakeTensor) -> Any:
    """The meta tensor on the addresses of a fake tensor, the same one each time."""
    found = x.__dict__.get("_meta")
    if found is None or x.__dict__["_addresses"] is not x._array:
        found = wrap(without_elements(x._array))
        x.__dict__["_meta"], x.__dict__["_addresses"] = found, x._array
    return found


def _follow(x: FakeTensor) -> None:
    """Give a fake tensor the shape and strides that its meta tensor was given in place, by `resize_` or `t_`."""
    array = x.__dict__["_meta"]._array
    if array.shape != x._array.shape or array.strides != x._array.strides or array.dtype != x._array.dtype:
        x._array = without_elements(array, WrapperArray)
        x.__dict__["_addresses"] = x._array


class FakeTensorConverter:
    """Makes fake tensors of tensors, the same one for the same tensor."""

    def __init__(self, *, copy_data: bool = False, export: bool = False) -> None:
        self.export = export
        self._made = WeakIdKeyDictionary()  # tensor -> a reference to its fake tensor
        self._made_of_meta: dict[str, WeakIdKeyDictionary] = {}  # by device
        #: id of the array that owns a storage -> references to it and to the addresses that stand for it
        self._memory: dict[int, tuple[Any, Any]] = {}

    @property
    def tensor_memo(self) -> WeakIdKeyDictionary:
        """Tensor -> the fake tensor that was made of it, while that is alive."""
        return WeakIdKeyDictionary({t: made for t, ref in self._made.items() if (made := ref()) is not None})

    def from_real_tensor(self, fake_mode: FakeTensorMode, t: Any, **settings: Any) -> Any:
        """The fake tensor of a tensor."""
        if isinstance(t, FakeTensor):
            if t.fake_mode is not fake_mode:
                raise AssertionError("Mixing fake modes NYI")
            return t
        if t.layout is not devices.strided:
            raise UnsupportedFakeTensorException("sparse tensors")
        found = _alive(self._made, t)
        if found is not None:
            return found
        out = _fake(fake_mode, self._addresses(t._array), t._device, requires_grad=t._requires_grad)
        from ..nn.parameter import Parameter

        if isinstance(t, Parameter):
            out._is_param = True
        self._made[t] = weakref.ref(out)
        if t._grad is not None:
            out._grad = self.from_real_tensor(fake_mode, t._grad)
        return out

    def _addresses(self, array: Any) -> Any:
        """The array of a fake tensor: fake tensors of one storage share their addresses."""
        if not array.size or min(array.strides, default=0) < 0:
            return reserved(array.shape, array.dtype, [abs(s) // array.itemsize for s in array.strides]
                            if array.size else None)
        storage = owner(array)
        known, memory = self._memory.get(id(storage), (None, None))
        memory = memory() if known is not None and known() is storage else None
        if memory is None:
            memory = owner(reserved((storage.nbytes,), np.dtype(np.uint8)))
            self._memory[id(storage)] = weakref.ref(storage), weakref.ref(memory)
        return np.ndarray(array.shape, plain_dtype(array.dtype), memory, address(array) - address(storage),
                          array.strides)

    def from_meta_and_device(self, fake_mode: FakeTensorMode, t: Any, device: Any, **settings: Any) -> Any:
        """The fake tensor of a meta tensor that stands for one of a device, the same one each time."""
        made = self._made_of_meta.setdefault(str(device), WeakIdKeyDictionary())
        found = _alive(made, t)
        if found is None:
            found = _fake(fake_mode, t._array, device)
            made[t] = weakref.ref(found)
        return found


def _alive(made: WeakIdKeyDictionary, t: Any) -> Any:
    """The fake tensor that a table has for a tensor, if it is alive; None: there is none."""
    found = made.get(t)
    return None if found is None else found()


def _fake_copy(tensor: Any, mode: FakeTensorMode, memo: dict[int, Any]) -> Any:
    if id(tensor) not in memo:
        memo[id(tensor)] = mode.from_tensor(tensor)
    return memo[id(tensor)]


def _is_tensor_constructor(func: OpOverload) -> bool:
    """Whether an operator makes one tensor, of no other tensors."""
    schema = func._schema
    return not any(a.is_tensor for a in schema.arguments) and len(schema.returns) == 1 and (
        schema.returns[0].type_name == "Tensor")


def __getattr__(name: str) -> Any:
    if name == "_like_tensor_constructors":  # the operators that make a tensor like another
        return [getattr(getattr(aten_namespace(), like), overload) for like in _LIKE
                for overload in getattr(aten_namespace(), like).overloads()]
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


class FakeCopyMode:
    """A context manager in which `copy.deepcopy` of tensors makes fake tensors.

    Args:
        fake_mode: the mode.
    """

    def __init__(self, fake_mode: FakeTensorMode) -> None:
        self.fake_mode = fake_mode

    def __enter__(self) -> FakeCopyMode:
        from ..nn.parameter import Parameter

        self._former: list[tuple[Any, Any]] = [(cls, cls.__dict__["__deepcopy__"]) for cls in (Tensor, Parameter)]
        for cls, _ in self._former:
            cls.__deepcopy__ = partialmethod(_fake_copy, self.fake_mode)  # no function, which would be kept as public
        return self

    def __exit__(self, *exception: object) -> None:
        for cls, function in self._former:
            cls.__deepcopy__ = function


class CrossRefFakeMode(TorchDispatchMode):
    """A mode in which the metadata of each result is compared with what fake tensors give.

    Args:
        ignore_op_fn: a function of an overload, whether it is not compared.
        check_strides: whether strides are compared.
    """

    def __init__(self, ignore_op_fn: Callable[[Any], bool] | None = None, *, check_strides: bool = True,
                 check_aliasing: bool = True, only_check_ops_with_meta: bool = True) -> None:
        super().__init__()
        self.ignore_op_fn = ignore_op_fn or (lambda func: False)
        self.check_strides = check_strides

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        fake = None
        name = func.overloadpacket.__name__
        if not self.ignore_op_fn(func) and name not in _LIFTS and name not in _RANDOM:
            mode = FakeTensorMode(allow_non_fake_inputs=True)
            try:
                fake = mode.__torch_dispatch__(func, types, *tree_map_only(Tensor, mode.from_tensor, (args, kwargs)))
            except (DataDependentOutputException, DynamicOutputShapeException):
                fake = None
        result = func(*args, **kwargs)
        if fake is not None:
            for x, y in zip(tree_leaves(result), tree_leaves(fake), strict=True):
                if isinstance(x, Tensor) and (x.shape != y.shape or x.dtype != y.dtype or (
                        self.check_strides and x.stride() != y.stride())):
                    raise MetadataMismatchError(f"{func}: {x.shape}, {x.dtype}, {x.stride()} != {y.shape}, {y.dtype}, "
                                                f"{y.stride()} (real != fake)")
        return result


def is_fake(x: Any) -> bool:
    """Whether a value is a fake tensor, or a parameter that is one.

    >>> import flambeau as torch
    >>> from flambeau._subclasses.fake_tensor import FakeTensorMode, is_fake
    >>> is_fake(torch.ones(1)), is_fake(FakeTensorMode().from_tensor(torch.ones(1)))
    (False, True)
    """
    return isinstance(x, FakeTensor)


def maybe_get_fake_mode(t: Any) -> FakeTensorMode | None:
    """The mode of a fake tensor; None for another value."""
    return t.fake_mode if isinstance(t, FakeTensor) else None


def active_fake_mode() -> FakeTensorMode | None:
    """The innermost active mode of fake tensors."""
    return next((mode for mode in reversed(dispatch_modes.get()) if isinstance(mode, FakeTensorMode)), None)


@contextmanager
def unset_fake_temporarily() -> Iterator[FakeTensorMode | None]:
    """A context manager in which no mode of fake tensors is active."""
    modes = dispatch_modes.get()
    token = dispatch_modes.set(tuple(mode for mode in modes if not isinstance(mode, FakeTensorMode)))
    try:
        yield next((mode for mode in reversed(modes) if isinstance(mode, FakeTensorMode)), None)
    finally:
        dispatch_modes.reset(token)


__all__ = [
    "CrossRefFakeMode",
    "DataDependentOutputException",
    "DynamicOutputShapeException",
    "FakeCopyMode",
    "FakeTensor",
    "FakeTensorConfig",
    "FakeTensorConverter",
    "FakeTensorDeviceMismatchError",
    "FakeTensorMode",
    "FakeTensorTLS",
    "MetadataMismatchError",
    "UnsupportedFakeTensorException",
    "UnsupportedMutationAliasingException",
    "UnsupportedOperatorException",
    "active_fake_mode",
    "fake_tensor_tls",
    "is_fake",
    "maybe_get_fake_mode",
    "unset_fake_temporarily",
]
