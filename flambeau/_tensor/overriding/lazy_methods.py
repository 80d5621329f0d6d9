"""Methods of tensors that are made, and their modules imported, when they are first looked up."""

from __future__ import annotations

import importlib
import threading
from collections.abc import Callable
from typing import Any

from ...lazy_modules import FUNCTIONS, METHODS, OPERATOR_NAMES
from ...ops.declare import REGISTRY
from .. import functions
from ..argument_errors import guards
from ..dispatch.public_functions import inplace_function
from ..tensor import Tensor, TensorBase
from .entry_points import another_function
from .other_objects import reports_other_objects

_package = functions.__name__.rpartition(".")[0]
_GUARDED = frozenset(guards.GUARDED_METHODS)
#: methods with a second tensor that no declaration binds
_REPORT_OTHER_OBJECTS = frozenset(("inner", "is_same_size", "is_set_to", "kron", "resize_as_", "slice_inverse",
                                   "triangular_solve", "type_as"))
#: methods whose only parameter by position is a list of ints, unlike the functions of that name, which have a tensor
#: before it; those of `reshaping` and `joining` that do so themselves are left out
_TAKE_INTS_ONE_BY_ONE = frozenset(("count_nonzero", "dsplit", "hsplit", "squeeze_", "vsplit"))
_lock = threading.RLock()


def taking_ints_one_by_one(function: Any) -> Any:
    """A function of a tensor and a list of ints as a method, which PyTorch lets take the ints one by one, too.

    >>> taking_ints_one_by_one(lambda x, dims: dims)("x", 0, 2)
    (0, 2)
    """
    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        return function(self, args if len(args) > 1 else args[0], **kwargs) if args else function(self, **kwargs)

    method.__doc__ = function.__doc__
    return method


class LazyMethod:
    """A method that replaces itself in the class by its function when it is first looked up.

    Args:
        name: the method's.
        make: makes the function, given the name and `argument`.
        argument: the operator's key, or the module.
    """

    __slots__ = ("argument", "make", "name")

    def __init__(self, name: str, make: Callable[[str, str], Any], argument: str) -> None:
        self.name, self.make, self.argument = name, make, argument

    def __get__(self, instance: Any, owner: type) -> Any:
        return self.resolve().__get__(instance, owner)

    def resolve(self) -> Any:
        """Make the function and put it into the classes, unless another method has taken the place."""
        name = self.name
        made = self.make(name, self.argument)
        if name in _TAKE_INTS_ONE_BY_ONE:
            made = taking_ints_one_by_one(made)
        function = another_function(made, name, f"Tensor.{name}")
        function = guards.without_out(function, name)
        with _lock:
            present = vars(TensorBase)[name]
            if present is not self:  # another thread was first, or a test has put this object back
                if vars(Tensor).get(name) is self:
                    setattr(Tensor, name, present)
                return present
            if name in _GUARDED:
                guards.guard(function, "Tensor", name)
            setattr(TensorBase, name, function)  # pickles refer to the base's methods
            if vars(Tensor).get(name) is self:
                setattr(Tensor, name, function)
        return function


def _of_operator(name: str, key: str) -> Any:
    return getattr(functions, REGISTRY[key].name)


def _inplace_of_operator(name: str, key: str) -> Any:
    return inplace_function(REGISTRY[key])


def _of_module(name: str, module: str) -> Any:
    if module in FUNCTIONS:
        functions.load_module(module)  # which guards functions that are methods, too
    method = importlib.import_module(f"{_package}.{module}").METHODS[name]
    return reports_other_objects(method, name, of_method=True) if name in _REPORT_OTHER_OBJECTS else method


def install_lazy_methods() -> None:
    """Give the tensor's classes the methods of declared operators and of the modules of `lazy_modules.METHODS`."""
    found: dict[str, LazyMethod] = {}
    for kind, make, suffix in (("methods", _of_operator, ""), ("inplace", _inplace_of_operator, "_")):
        for entry in OPERATOR_NAMES[kind].split():
            name, _, key = entry.partition("=")
            found[name + suffix] = LazyMethod(name + suffix, make, key or name)
    for module, names in METHODS.items():
        for name in names.split():
            found[name] = LazyMethod(name, _of_module, module)
    for name, method in found.items():
        setattr(TensorBase, name, method)
        setattr(Tensor, name, method)


def resolve_all() -> None:
    """Make all methods, and import their modules."""
    for method in list(vars(TensorBase).values()):
        if method.__class__ is LazyMethod:
            method.resolve()


__all__ = ["LazyMethod", "install_lazy_methods", "resolve_all", "taking_ints_one_by_one"]
