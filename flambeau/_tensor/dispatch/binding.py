"""Argument binding: the inputs and parameters of an operator's call, checked as in PyTorch."""

from __future__ import annotations

from collections.abc import Callable
from operator import index
from typing import Any

import numpy as np

from ... import dtypes
from ...ops.declare import Op
from ..argument_errors.seen_classes import PLAIN, OperatorClasses
from ..argument_errors.type_names import not_a_tensor, type_name
from ..overriding.entry_points import note_foreign
from ..overriding.first_calls import public_function_of
from ..overriding.protocol import ENABLED, OVERRIDES, disabled, kind_of
from ..tensor import Tensor

#: NumPy's spellings of arguments, which PyTorch accepts too
_NUMPY_NAMES = {"axis": "dim", "keepdims": "keepdim", "x": "input", "a": "input", "x1": "input", "x2": "other"}

#: parameters that a bool does not fit
_INTEGERS = frozenset(("N", "diagonal", "dim", "dim0", "dim1", "dim2", "dimension", "dims", "k", "n", "offset", "r",
                       "repeats", "shifts", "size", "step"))

#: parameters that are numbers of any kind
_SCALARS = frozenset(("alpha", "beta", "exponent", "max", "min", "other", "value", "weight"))

#: classes of numbers, and of parameters, that `bind` passes on unchanged
_NUMBERS = frozenset((bool, int, float, complex))
_PLAIN = frozenset((int, float, str, tuple, list, type(None)))


def is_number(x: Any) -> bool:
    """Whether an argument is a number of Python or NumPy."""
    return isinstance(x, (bool, int, float, complex, np.generic))


class _AllFit(dict[str, Any]):
    """The classes of parameters that are passed on as they are, by name, of functions that check none."""

    def __missing__(self, name: str) -> frozenset[type]:
        self[name] = _PASSED
        return _PASSED


_PASSED = PLAIN - {bool} | {dtypes.dtype}
_ALL_FIT = _AllFit()


def _bind_positional(op: Op, args: tuple[Any, ...], n: int,
                     fitting: dict[str, Any]) -> tuple[list[Any], dict[str, Any]] | None:
    """`bind` for inputs followed by parameters, all by position; None for any other call."""
    inputs = list(args[:n])
    for i, x in enumerate(inputs):
        if not isinstance(x, Tensor) and not (x.__class__ in _NUMBERS and op.inputs[i] in op.scalar_inputs):
            return None
    params = dict(zip(op.params, args[n:], strict=False))
    for name, value in params.items():
        if value.__class__ not in fitting[name]:
            return None
    return inputs, params


def _bind_named(op: Op, args: tuple[Any, ...], kwargs: dict[str, Any],
                fitting: dict[str, Any]) -> tuple[list[Any], dict[str, Any]] | None:
    """`bind` for inputs by position and parameters by name; None for any other call."""
    for i, x in enumerate(args):
        if not isinstance(x, Tensor) and not (x.__class__ in _NUMBERS and op.inputs[i] in op.scalar_inputs):
            return None
    names = op.params
    for name, value in kwargs.items():
        if name not in names or value.__class__ not in fitting[name]:
            return None
    for name in names[:op.required_params]:
        if name not in kwargs and name not in op.defaults:
            return None
    return list(args), kwargs.copy()


def _bind_ordered(op: Op, args: tuple[Any, ...], order: tuple[str, ...],
                  fitting: dict[str, Any]) -> tuple[list[Any], dict[str, Any]] | None:
    """`bind` for arguments by position where parameters stand between the inputs; None for any other call."""
    if len(args) > len(order):
        return None
    given = dict(zip(order, args, strict=False))
    inputs = []
    for name in op.inputs:
        x = given.pop(name, None)
        if not isinstance(x, Tensor):
            return None
        inputs.append(x)
    for name, value in given.items():
        if value.__class__ not in fitting[name]:
            return None
    for name in op.params:
        if name not in given and name not in op.defaults:
            return None
    return inputs, given


def bind(op: Op, args: tuple[Any, ...], kwargs: dict[str, Any],
         seen: OperatorClasses | None = None) -> tuple[list[Any], dict[str, Any]]:
    """Inputs and parameters from a call's arguments.

    Args:
        seen: the classes of arguments that fit; None if all do.

    Raises:
        TypeError: an argument is missing, unknown, given twice or of the wrong type.
    """
    names = op.inputs
    n = len(names)
    fitting = _ALL_FIT if seen is None else seen.passed
    if not kwargs and op.required_params is not None and n + op.required_params <= len(args) <= n + len(op.params):
        result = _bind_positional(op, args, n, fitting)
        if result is not None:
            return result
    elif kwargs and len(args) == n and op.required_params is not None:
        result = _bind_named(op, args, kwargs, fitting)
        if result is not None:
            return result
    elif op.argument_order is not None and not kwargs:
        result = _bind_ordered(op, args, op.argument_order, fitting)
        if result is not None:
            return result
    elif not kwargs and op.spread is not None and n == len(op.params) == 1 < len(args) and (
            isinstance(args[0], Tensor) and {int}.issuperset(map(type, args[1:]))):
        if seen is not None:
            seen.look(args, kwargs)
        return [args[0]], {op.spread: args[1:]}
    if seen is not None:
        return seen.bound(lambda: bind(op, args, kwargs), args, kwargs)
    inputs: list[Any] = []
    params: dict[str, Any] = {}
    if kwargs:
        kwargs = kwargs.copy()  # errors name the arguments as they were given
        for alias, name in _NUMPY_NAMES.items():
            if alias in kwargs and alias not in names and alias not in op.params and (
                    name in names or name in op.params):
                kwargs[name] = kwargs.pop(alias)
    if op.argument_order is not None and (len(args) > 1 or (args and kwargs)):
        if len(args) > len(op.argument_order):
            raise TypeError(f"{op.name}() takes {len(op.argument_order)} positional arguments but {len(args)} were "
                            "given")
        ordered = dict(zip(op.argument_order, args, strict=False))
        for name in ordered:
            if name in kwargs:
                raise TypeError(f"{op.name}() got multiple values for argument '{name}'")
        kwargs, args = {**ordered, **kwargs}, ()
    for i, name in enumerate(names):
        if i < len(args):
            if name in kwargs:
                raise TypeError(f"{op.name}() got multiple values for argument '{name}'")
            inputs.append(args[i])
        elif name in kwargs:
            inputs.append(kwargs.pop(name))
        elif i >= n - op.n_optional:
            inputs.append(None)
        else:
            raise TypeError(f'{op.name}() missing 1 required positional arguments: "{name}"')
    extra_args = args[n:]
    if extra_args:
        if op.spread is not None and not isinstance(extra_args[0], (tuple, list)) and extra_args[0] is not None:
            if extra_args[0].__class__ is bool:
                raise TypeError(f"{op.name}(): argument '{op.spread}' must be tuple of ints, not bool")
            params[op.spread] = extra_args
        else:
            if len(extra_args) > len(op.params):
                raise TypeError(f"{op.name}() takes {n + len(op.params)} positional arguments but {len(args)} were "
                                "given")
            for name, value in zip(op.params, extra_args, strict=False):
                params[name] = value
    for name, value in kwargs.items():
        if name not in op.params:
            raise TypeError(f"{op.name}() got an unexpected keyword argument '{name}'")
        if name in params:
            raise TypeError(f"{op.name}() got multiple values for argument '{name}'")
        params[name] = value
    for name in op.params:
        if name not in params:
            if name not in op.defaults:
                raise TypeError(f'{op.name}() missing 1 required positional arguments: "{name}"')
        else:
            value = params[name]
            if isinstance(value, np.generic):
                value = params[name] = dtypes.python_number(value) if name in _SCALARS else value.item()
            elif dtypes.is_derived_number(value):
                value = params[name] = dtypes.python_number(value)
            if isinstance(value, Tensor):
                if value._array.ndim == 0 or (name in _INTEGERS and value._array.size == 1):
                    params[name] = value.item()
            elif name in _INTEGERS and value.__class__ not in _PLAIN and not isinstance(value, int) and (
                    kind_of(type(value)) != OVERRIDES and hasattr(value, "__index__")):
                params[name] = index(value)
            elif (value[0] if name == op.spread and isinstance(value, (tuple, list)) and value else value
                  ).__class__ is bool and name in _INTEGERS:
                raise TypeError(f"{op.name}(): argument '{name}' must be int, not bool")
            elif name == "dtype" and value is not None and value.__class__ is not dtypes.dtype:
                params[name] = dtypes.of_argument(value, op.name)
    if op.variadic:
        tensors = inputs.pop()
        if isinstance(tensors, Tensor) or not isinstance(tensors, (list, tuple)):
            raise TypeError(f"{op.name}(): argument '{names[-1]}' (position {n}) must be tuple of Tensors, not "
                            f"{type_name(tensors)}")
        for i, x in enumerate(tensors):
            if not isinstance(x, Tensor) and not (x is None and names[-1] in op.nondifferentiable_inputs):
                raise TypeError(f"expected Tensor as element {i} in argument {n - 1}, but got {type_name(x)}")
        inputs.extend(tensors)
    else:
        for i, x in enumerate(inputs):
            if isinstance(x, Tensor):
                continue
            if x is None and i >= n - op.n_optional:
                continue
            if is_number(x) and names[i] in op.scalar_inputs:
                if isinstance(x, np.generic) or dtypes.is_derived_number(x):
                    inputs[i] = dtypes.python_number(x)
                continue
            if kind_of(type(x)) == OVERRIDES:
                raise ForeignArgument(x, inputs, params)
            raise not_a_tensor(op.name, x, names[i], i + 1)
    return inputs, params


class ForeignArgument(TypeError):
    """Raised by `bind` for a value that is no tensor and has a `__torch_function__`; with the arguments bound."""

    def call_again(self, function: Callable[..., Any], out: Any = None) -> Any:
        """Call the public function, whose code now asks the handler."""
        x, inputs, params = self.args
        note_foreign(type(x))
        public = public_function_of(function)
        if public is None or disabled.get() != ENABLED:  # what called it may be public, and ask then
            raise self
        return public(*inputs, **params, **({} if out is None else {"out": out}))


__all__ = ["ForeignArgument", "bind", "is_number"]
