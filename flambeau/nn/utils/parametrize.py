"""Parametrizations: parameters and buffers of modules that are computed from other tensors.

A module with parametrizations gets a class of its own, in which the parametrized tensor is a property.
"""

from __future__ import annotations

import copyreg
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from copy import deepcopy
from typing import Any, cast

from ..._tensor import Tensor, no_grad
from ..modules.container import ModuleDict, ModuleList
from ..modules.module import Module
from ..parameter import Parameter

__all__ = ["ParametrizationList", "cached", "is_parametrized", "register_parametrization", "remove_parametrizations",
           "transfer_parametrizations_and_params", "type_before_parametrizations"]

#: how many `cached` contexts are open; bitsandbytes counts, and empties the cache, under these names, too
_cache_enabled = 0
#: (id of a module, tensor name) -> its value, while a `cached` context is open
_cache: dict[tuple[int, str], Tensor] = {}


@contextmanager
def cached() -> Iterator[None]:
    """Inside this context every parametrized tensor is computed once.

    >>> import flambeau as torch
    >>> from flambeau.nn.utils import parametrize, parametrizations
    >>> layer = parametrizations.weight_norm(torch.nn.Linear(2, 2))
    >>> with parametrize.cached():
    ...     layer.weight is layer.weight
    True
    """
    global _cache_enabled
    _cache_enabled += 1
    try:
        yield
    finally:
        _cache_enabled -= 1
        if not _cache_enabled:
            _cache.clear()


def _register(module: Module, name: str, tensor: Tensor) -> None:
    """Register a tensor as a parameter if it is one, else as a buffer."""
    if isinstance(tensor, Parameter):
        module.register_parameter(name, tensor)
    else:
        module.register_buffer(name, tensor)


def _right_inverse(modules: Any, value: Any) -> Any:
    """The right inverses applied from the last parametrization to the first; absent ones are the identity."""
    for module in reversed(modules):
        if hasattr(module, "right_inverse"):
            try:
                value = module.right_inverse(value)
            except NotImplementedError:
                pass
    return value


def _check_kept(before: Any, after: Any, what: str, labels: tuple[str, str], flag: str = "`unsafe` flag") -> None:
    if before != after:
        raise ValueError(f"Registering a parametrization may not change the {what} of the tensor, unless {flag} "
                         f"is enabled.\n{labels[0]}: {before}\n{labels[1]}: {after}")


class ParametrizationList(ModuleList):
    """The parametrizations of one tensor, and the tensors that it is computed from.

    Attributes:
        original: the tensor in the domain of the first parametrization; `original0`, `original1`, ... if its right
            inverse returns several.
        unsafe: whether shape and dtype may change.

    >>> import flambeau as torch
    >>> from flambeau.nn.utils import parametrizations
    >>> layer = parametrizations.orthogonal(torch.nn.Linear(2, 2))
    >>> type(layer.parametrizations.weight).__name__
    'ParametrizationList'
    """

    original: Tensor
    unsafe: bool

    def __init__(self, modules: Sequence[Module], original: Tensor, unsafe: bool = False) -> None:
        if len(modules) == 0:
            raise ValueError("ParametrizationList requires one or more modules.")
        super().__init__(modules)
        self.unsafe = unsafe
        shape, dtype = original.shape, original.dtype
        with no_grad():
            new = _right_inverse(self, original)
        if not isinstance(new, Tensor | Sequence):
            raise ValueError("'right_inverse' must return a Tensor or a Sequence of tensors (list, tuple...). "
                             f"Got {type(new).__name__}")
        self.is_tensor = isinstance(new, Tensor)
        self.ntensors = 1 if self.is_tensor else len(new)
        if isinstance(new, Tensor):
            self._register_original(original, new)
        else:
            self._register_originals(original, new)
        if not unsafe:
            value = self()
            if not isinstance(value, Tensor):
                raise ValueError(f"A parametrization must return a tensor. Got {type(value).__name__}.")
            _check_kept(dtype, value.dtype, "dtype", ("unparametrized dtype", "parametrized dtype"))
            _check_kept(shape, value.shape, "shape", ("unparametrized shape", "parametrized shape"))

    def _register_original(self, original: Tensor, new: Tensor) -> None:
        for what in ("dtype", "device"):
            before, after = getattr(original, what), getattr(new, what)
            if before != after:
                raise ValueError(f"When `right_inverse` outputs one tensor, it may not change the {what}.\n"
                                 f"original.{what}: {before}\nright_inverse(original).{what}: {after}")
        with no_grad():
            original.set_(new)  # keeps the identity of the parameter, which optimizers hold
        _register(self, "original", original)

    def _register_originals(self, original: Tensor, new: Sequence[Any]) -> None:
        for i, each in enumerate(new):
            if not isinstance(each, Tensor):
                raise ValueError("'right_inverse' must return a Tensor or a Sequence of tensors (list, tuple...). "
                                 f"Got element {i} of the sequence with type {type(each).__name__}.")
            tensor = Parameter(each, original.requires_grad) if isinstance(original, Parameter) else each
            tensor.requires_grad_(original.requires_grad)
            _register(self, f"original{i}", tensor)

    def right_inverse(self, value: Any) -> None:
        """Assign a value to the parametrized tensor: set the originals by the right inverses.

        Raises:
            RuntimeError: a parametrization has no right inverse.
            ValueError: the right inverse returns something else than at registration.
        """
        with no_grad():
            for module in reversed(self):
                if not hasattr(module, "right_inverse"):
                    raise RuntimeError(f"parametrization {type(module).__name__} does not implement right_inverse.")
                value = module.right_inverse(value)
            if self.is_tensor:
                if not isinstance(value, Tensor):
                    raise ValueError(f"`right_inverse` should return a tensor. Got {type(value).__name__}")
                if value.dtype != self.original.dtype:
                    raise ValueError(f"The tensor returned by `right_inverse` has dtype {value.dtype} "
                                     f"while `original` has dtype {self.original.dtype}")
                self.original.set_(value)
                return
            if not isinstance(value, Sequence):
                raise ValueError(f"'right_inverse' must return a sequence of tensors. Got {type(value).__name__}.")
            if len(value) != self.ntensors:
                raise ValueError("'right_inverse' must return a sequence of tensors of length "
                                 f"{self.ntensors}. Got a sequence of length {len(value)}.")
            for i, tensor in enumerate(value):
                original = getattr(self, f"original{i}")
                if not isinstance(tensor, Tensor):
                    raise ValueError("'right_inverse' must return a sequence of tensors or reference-type opaques. "
                                     f"Got element {i} of type {type(tensor).__name__}.")
                if original.dtype != tensor.dtype:
                    raise ValueError(f"Tensor {i} returned by `right_inverse` has dtype {tensor.dtype} "
                                     f"while `original{i}` has dtype {original.dtype}")
                original.set_(tensor)

    def forward(self) -> Tensor:
        if self.is_tensor:
            value = self[0](self.original)
        else:
            value = self[0](*(getattr(self, f"original{i}") for i in range(self.ntensors)))
        i = 1
        while hasattr(self, str(i)):  # the originals are not modules, but a list may hold other names
            value = self[i](value)
            i += 1
        return value


def _deepcopy_of_slots_and_state(self: Any, memo: dict[int, Any]) -> Any:
    """`__deepcopy__` of classes that have none; pickling, which `deepcopy` would use, is forbidden."""
    done = memo.get(id(self))
    if done is not None:
        return done
    replica = self.__new__(self.__class__)
    memo[id(self)] = replica
    replica.__dict__ = deepcopy(self.__dict__, memo)
    for slot in copyreg._slotnames(self.__class__):  # type: ignore[attr-defined]
        if hasattr(self, slot):
            setattr(replica, slot, deepcopy(getattr(self, slot), memo))
    return replica


def _forbid_pickling(self: Any) -> Any:
    raise RuntimeError("Serialization of parametrized modules is only supported through state_dict(). See:\n"
                       "https://pytorch.org/tutorials/beginner/saving_loading_models.html"
                       "#saving-loading-a-general-checkpoint-for-inference-and-or-resuming-training")


def _give_own_class(module: Module) -> None:
    cls = module.__class__
    members: dict[str, Any] = {"__getstate__": _forbid_pickling}
    if not hasattr(cls, "__deepcopy__"):
        members["__deepcopy__"] = _deepcopy_of_slots_and_state
    module.__class__ = type(f"Parametrized{cls.__name__}", (cls,), members)


def _add_property(module: Module, tensor_name: str) -> None:
    """Make the tensor a property of the module's own class."""
    if hasattr(module, tensor_name):
        raise AssertionError(f"Module already has an attribute named '{tensor_name}'")
    key = (id(module), tensor_name)

    def get(self: Any) -> Tensor:
        parametrization = self.parametrizations[tensor_name]
        if not _cache_enabled:
            return parametrization()
        if key not in _cache:
            _cache[key] = parametrization()
        return _cache[key]

    def set(self: Any, value: Tensor) -> None:
        self.parametrizations[tensor_name].right_inverse(value)

    setattr(module.__class__, tensor_name, property(get, set))


def _check_appended(module: Module, tensor_name: str, parametrization: Module) -> None:
    """Check that a further parametrization keeps shape and dtype, and so does its right inverse."""
    label = f"module.{tensor_name}"
    before = getattr(module, tensor_name)
    after = parametrization(before)
    if not isinstance(after, Tensor):
        raise ValueError(f"A parametrization must return a tensor. Got {type(after).__name__}.")
    for what in ("dtype", "shape"):
        _check_kept(getattr(before, what), getattr(after, what), what,
                    (f"{label}.{what}", f"parametrization({label}).{what}"), "the `unsafe` flag")
    if not hasattr(parametrization, "right_inverse"):
        return
    try:
        inverse: Any = cast("Any", parametrization).right_inverse(after)
    except NotImplementedError:
        return
    if not isinstance(inverse, Tensor):
        raise ValueError(f"parametrization.right_inverse must return a tensor. Got: {type(inverse).__name__}")
    for what in ("dtype", "shape"):
        expected, got = getattr(before, what), getattr(inverse, what)
        if expected != got:
            raise ValueError(f"The tensor returned by parametrization.right_inverse must have the same {what} "
                             f"as {label}, unless the `unsafe` flag is enabled.\n"
                             f"{label}.{what}: {expected}\nreturned {what}: {got}")


def register_parametrization(module: Module, tensor_name: str, parametrization: Module, *,
                             unsafe: bool = False) -> Module:
    """Compute a parameter or buffer of a module by `parametrization(original)`.

    A method `right_inverse` of the parametrization initializes `original`, and allows assignment to the tensor.

    Args:
        module: the module.
        tensor_name: name of its parameter or buffer.
        parametrization: a module; several on one tensor are applied in the order of registration.
        unsafe: whether shape and dtype may change.

    Raises:
        ValueError: there is no such tensor, or its shape or dtype would change.

    >>> import flambeau as torch
    >>> class Symmetric(torch.nn.Module):
    ...     def forward(self, x):
    ...         return x.triu() + x.triu(1).T
    >>> layer = torch.nn.Linear(3, 3)
    >>> _ = torch.nn.utils.parametrize.register_parametrization(layer, "weight", Symmetric())
    >>> torch.equal(layer.weight, layer.weight.T)
    True
    """
    parametrization.train(module.training)
    if is_parametrized(module, tensor_name):
        if not unsafe:
            _check_appended(module, tensor_name, parametrization)
        registered = _lists(module)[tensor_name]
        registered.append(parametrization)
        registered.unsafe |= unsafe
    elif tensor_name in module._buffers or tensor_name in module._parameters:
        original = getattr(module, tensor_name)
        parametrizations = ParametrizationList([parametrization], original, unsafe=unsafe)
        delattr(module, tensor_name)
        if not is_parametrized(module):
            _give_own_class(module)
            module.parametrizations = ModuleDict()
        _add_property(module, tensor_name)
        _lists(module)[tensor_name] = parametrizations
    else:
        raise ValueError(f"Module '{module}' does not have a parameter, a buffer, or a "
                         f"parametrized element with name '{tensor_name}'")
    return module


def _lists(module: Module) -> Any:
    """The `ModuleDict` of parametrization lists by tensor name."""
    found = module.parametrizations
    if not isinstance(found, ModuleDict):
        raise AssertionError(f"Expected module.parametrizations to be a ModuleDict, got {type(found).__name__}")
    return found


def is_parametrized(module: Module, tensor_name: str | None = None) -> bool:
    """Whether a tensor of a module, or any if the name is None, is parametrized.

    >>> import flambeau as torch
    >>> torch.nn.utils.parametrize.is_parametrized(torch.nn.Linear(2, 2))
    False
    """
    parametrizations = getattr(module, "parametrizations", None)
    if not isinstance(parametrizations, ModuleDict):
        return False
    return len(parametrizations) > 0 if tensor_name is None else tensor_name in parametrizations


def remove_parametrizations(module: Module, tensor_name: str, leave_parametrized: bool = True) -> Module:
    """Make a parametrized tensor a parameter or buffer again.

    Args:
        module: the module.
        tensor_name: name of the parametrized tensor.
        leave_parametrized: keep its present value; otherwise `original` becomes its value.

    Raises:
        ValueError: the tensor is not parametrized, or has several originals and `leave_parametrized` is False.

    >>> import flambeau as torch
    >>> from flambeau.nn.utils import parametrizations, parametrize
    >>> layer = parametrizations.weight_norm(torch.nn.Linear(2, 2))
    >>> isinstance(parametrize.remove_parametrizations(layer, "weight").weight, torch.nn.Parameter)
    True
    """
    if not is_parametrized(module, tensor_name):
        raise ValueError(f"Module {module} does not have a parametrization on {tensor_name}")
    parametrizations = _lists(module)[tensor_name]
    if parametrizations.is_tensor:
        original = parametrizations.original
        if leave_parametrized:
            with no_grad():
                original.set_(getattr(module, tensor_name))
    elif leave_parametrized:
        value = getattr(module, tensor_name)
        original = Parameter(value) if value.requires_grad else value
    else:
        raise ValueError("Cannot leave unparametrized (`leave_parametrized=False`) a tensor "
                         "that is parametrized in terms of a sequence of tensors.")
    delattr(module.__class__, tensor_name)
    del _lists(module)[tensor_name]
    _register(module, tensor_name, original)
    if not is_parametrized(module):
        delattr(module, "parametrizations")
        module.__class__ = module.__class__.__bases__[0]
    return module


def type_before_parametrizations(module: Module) -> type:
    """The class of a module without its parametrizations.

    >>> import flambeau as torch
    >>> from flambeau.nn.utils import parametrizations, parametrize
    >>> layer = parametrizations.weight_norm(torch.nn.Linear(2, 2))
    >>> type(layer).__name__, parametrize.type_before_parametrizations(layer).__name__
    ('ParametrizedLinear', 'Linear')
    """
    return module.__class__.__bases__[0] if is_parametrized(module) else type(module)


def transfer_parametrizations_and_params(from_module: Module, to_module: Module,
                                         tensor_name: str | None = None) -> Module:
    """Share the parametrizations of a module, and their original tensors, with another module.

    Args:
        from_module: the module with parametrizations.
        to_module: the module that receives them.
        tensor_name: one parametrized tensor; None for all.

    >>> import flambeau as torch
    >>> from flambeau.nn.utils import parametrizations, parametrize
    >>> layer, other = parametrizations.weight_norm(torch.nn.Linear(2, 2)), torch.nn.Linear(2, 2)
    >>> torch.equal(parametrize.transfer_parametrizations_and_params(layer, other).weight, layer.weight)
    True
    """
    if not is_parametrized(from_module):
        return to_module
    for name in list(_lists(from_module)) if tensor_name is None else [tensor_name]:
        if not hasattr(to_module, name):
            setattr(to_module, name, Parameter(getattr(from_module, name)))
        source = _lists(from_module)[name]
        for parametrization in source:
            register_parametrization(to_module, name, parametrization)
        target = _lists(to_module)[name]
        if hasattr(source, "original"):
            target.original = source.original
        i = 0
        while hasattr(source, f"original{i}"):
            setattr(target, f"original{i}", getattr(source, f"original{i}"))
            i += 1
    return to_module
