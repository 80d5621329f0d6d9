"""PyTorch's signatures, and whether a call's arguments fit them."""

from __future__ import annotations

import functools
import os
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ... import devices, dtypes
from ..tensor import Tensor
from .type_names import type_name

# ----- signatures ---------------------------------------------------------------------------------

_TYPE_TEXTS = {
    "Scalar": "Number", "int64_t": "int", "SymInt": "int", "double": "float", "TensorList": "tuple of Tensors",
    "c10::List<::std::optional<Tensor>>": "tuple of Tensors", "IntArrayRef": "tuple of ints",
    "SymIntArrayRef": "tuple of ints", "ArrayRef<double>": "tuple of floats", "ScalarList": "tuple of Scalars",
    "Generator": "torch.Generator", "Storage": "torch.Storage", "PyObject*": "object", "ScalarType": "torch.dtype",
    "Layout": "torch.layout", "MemoryFormat": "torch.memory_format", "QScheme": "torch.qscheme",
    "Device": "torch.device", "std::string": "str", "c10::string_view": "str", "Dimname": "name",
    "DimnameList": "tuple of names",
}
_SPACES = ("torch._C._linalg", "torch._C._fft", "torch._C._special")
#: functions of `nn.functional` that are the operators themselves
_OF_NN = frozenset((
    "adaptive_avg_pool2d", "adaptive_avg_pool3d", "adaptive_max_pool2d", "adaptive_max_pool3d", "col2im", "huber_loss",
    "im2col", "soft_margin_loss",
    "avg_pool2d", "avg_pool3d", "elu", "elu_", "gelu", "glu", "hardtanh", "hardtanh_", "leaky_relu", "leaky_relu_",
    "linear", "log_sigmoid", "max_pool2d_with_indices", "max_pool3d_with_indices", "one_hot", "pad", "relu6", "relu6_",
    "scaled_dot_product_attention",
    "softplus", "softshrink"))
_NUMPY_NAMES = {"dim": ("axis",), "keepdim": ("keepdims",), "input": ("x", "a", "x1"), "other": ("x2",)}
#: functions whose tensors may be numbers
_NUMBERS_AS_TENSORS = frozenset(
    name + suffix for name in ("add", "div", "divide", "mul", "multiply", "sub", "subtract", "true_divide",
                               "floor_divide", "copy") for suffix in ("", "_"))


_LISTS = ("IntArrayRef", "SymIntArrayRef")


@dataclass(frozen=True)
class Parameter:
    """A parameter of a signature.

    Args:
        kind: its type in the signature, without marks, `SymIntArrayRef`.
        name: its name.
        size: of a list that one number stands for; 0 if none does.
        default: the text of its default; None if it is required.
        allows_none: whether it may be None.
        keyword_only: whether it is passed by name only.
    """

    kind: str
    name: str
    size: int
    default: str | None
    allows_none: bool
    keyword_only: bool

    @property
    def type_text(self) -> str:
        """Its type in messages."""
        return _TYPE_TEXTS.get(self.kind, self.kind)


def _parameter(text: str, keyword_only: bool) -> Parameter:
    declared, equals, default = text.partition("=")
    kind, _, name = declared.rpartition(" ")
    marked = "?" in kind.replace("<::std::optional<", "")
    bracket = re.search(r"\[(\d*)\]", kind)
    size = int(bracket.group(1) or 0) if bracket else 0
    bare = re.sub(r"\[\d*\]|\?", "", kind)
    return Parameter(bare, name, size, default if equals else None, marked or default == "None", keyword_only)


class Signature:
    """One overload: its parameters, and whether messages hide it because it is deprecated.

    >>> from flambeau._tensor.argument_errors.signatures import Signature
    >>> str(Signature("max(Tensor input, int64_t dim, bool keepdim=False, *, TensorList[2] out=None)"))
    '(Tensor input, int dim, bool keepdim = False, *, tuple of Tensors out = None)'
    """

    def __init__(self, text: str) -> None:
        text, bar, _ = text.partition("|")
        self.hidden = bool(bar)
        self.name, _, inside = text.partition("(")
        self.parameters: list[Parameter] = []
        keyword_only = False
        for part in filter(None, inside[:-1].split(", ")):
            if part == "*":
                keyword_only = True
            else:
                self.parameters.append(_parameter(part, keyword_only))
        self.least = sum(p.default is None for p in self.parameters)
        self.names_by_position = [p.name for p in self.parameters if not p.keyword_only]
        self.most_by_position = len(self.names_by_position)

    def __str__(self) -> str:
        parts: list[str] = []
        for p in self.parameters:
            if p.keyword_only and "*" not in parts:
                parts.append("*")
            parts.append(f"{p.type_text} {p.name}" + ("" if p.default is None else f" = {p.default}"))
        return f"({', '.join(parts)})"

    def mismatch(self, args: Sequence[Any], kwargs: dict[str, Any]) -> str | None:
        """What a call's arguments lack, as a message; None if they fit.

        Raises:
            TypeError: a list of tensors has other elements.
        """
        name, parameters = self.name, self.parameters
        spreads = self._spreads(args)
        if len(args) > self.most_by_position and not spreads:
            return self._too_many(len(args))
        at, named = 0, len(kwargs)
        for index, p in enumerate(parameters):
            by_name = at >= len(args)
            if not by_name and p.keyword_only:
                return self._too_many(len(args))
            if by_name:
                key = next((k for k in (p.name, *_NUMPY_NAMES.get(p.name, ())) if k in kwargs), None)
                given, value = key is not None, None if key is None else kwargs[key]
            else:
                given, value = True, args[at]
            if (not given and p.default is not None) or (given and value is None and p.allows_none):
                pass
            elif not given:
                missing = [f'"{q.name}"' for q in parameters[index:] if q.default is None]
                return (f"{name}() missing {len(missing)} required positional argument{'s' * (len(missing) == 1)}: "
                        f"{', '.join(missing)}")
            else:
                fits, bad = _fits(value, p, name, index)
                if not fits and spreads and not at and not by_name:
                    at = len(args)
                    continue
                if not fits:
                    where = "" if by_name else f" (position {at + 1})"
                    said = f"{name}(): argument '{p.name}'{where} must be {p.type_text}, "
                    if bad is None or by_name:
                        return said + f"not {type_name(value)}"
                    element = type_name(list(value or ())[bad])
                    return said + f"but found element of type {element} at pos {bad}"
            if not by_name:
                at += 1
            elif given:
                named -= 1
        return self._unknown(len(args), kwargs) if named > 0 else None

    def renamed(self, kwargs: dict[str, Any]) -> dict[str, Any]:
        """Arguments by name, those by a name of NumPy's under that of the parameter: `axis=0` as `dim=0`."""
        own = {p.name for p in self.parameters}
        others = {other: p.name for p in self.parameters for other in _NUMPY_NAMES.get(p.name, ()) if other not in own}
        return {others.get(key, key): value for key, value in kwargs.items()}

    def unconvertible(self, args: Sequence[Any], kwargs: dict[str, Any]) -> Exception | None:
        """The error of the first argument that fits its parameter and is no value of it: a number that is too large, or
        a device that is none. PyTorch converts all arguments before an operator looks at any.
        """
        if self._spreads(args):
            args = (tuple(args),)
        for index, p in enumerate(self.parameters):
            value = args[index] if index < len(args) else kwargs.get(p.name)
            if p.kind in ("int64_t", "SymInt", "Device", *_LISTS) and value.__class__ is int and not (
                    -_LIMIT <= value < _LIMIT):
                return ValueError("Overflow when unpacking long long")
            if p.kind in _LISTS and isinstance(value, (tuple, list)):
                for at, element in enumerate(value):
                    if element.__class__ is int and not -_LIMIT <= element < _LIMIT:
                        return TypeError(f"{self.name}(): argument '{p.name}' failed to unpack the object at pos "
                                         f'{at + 1} with error "Overflow when unpacking long long')
                    if not (_is_index(element) or isinstance(element, bool) or _overrides(element)):
                        return TypeError(
                            f"{self.name}(): argument '{p.name}' failed to unpack the object at pos {at + 1} with "
                            f'error "type must be tuple of ints,but got {type(element).__name__}"')
            if p.kind == "Scalar" and value.__class__ is int:
                try:
                    dtypes.check_fits_64_bits(value)
                except OverflowError as error:
                    return error
            if p.kind == "Device" and value is not None and self.name != "new":  # which compares types of devices
                try:
                    devices.storage_device(value)
                except (AssertionError, RuntimeError) as error:
                    return None if isinstance(error, NotImplementedError) else error
        return None

    def _spreads(self, args: Sequence[Any]) -> bool:
        """Whether numbers by position are the elements of the only list that a call takes so: `randn(2, 3)`."""
        return self.most_by_position == 1 and self.parameters[0].kind in _LISTS and (
            len(args) > 0 and _is_index(args[0]))

    def _too_many(self, given: int) -> str:
        most, positional = self.most_by_position, self.least
        if positional != most:
            return f"{self.name}() takes from {positional} to {most} positional arguments but {given} were given"
        return (f"{self.name}() takes {most} positional argument{'s' * (most != 1)} but {given} "
                f"{'was' if given == 1 else 'were'} given")

    def _unknown(self, given: int, kwargs: dict[str, Any]) -> str:
        names = [p.name for p in self.parameters]
        for key in kwargs:
            if key not in names:
                return f"{self.name}() got an unexpected keyword argument '{key}'"
            if names.index(key) < given:
                return f"{self.name}() got multiple values for argument '{key}'"
        return f"{self.name}(): invalid keyword arguments"


@functools.cache
def _texts() -> dict[tuple[str, str], list[str]]:
    """(Namespace, name) -> the texts of its signatures."""
    result: dict[tuple[str, str], list[str]] = {}
    space = ""
    with open(os.path.join(os.path.dirname(__file__), "signatures.txt"), encoding="utf-8") as file:
        lines = file.read().splitlines()
    for line in lines:
        if line[0] == "[":
            space = line[1:-1]
        elif line[0] != "#":
            name, colon, text = line.partition(": ")
            if not colon or "(" in name:
                name, text = line.partition("(")[0], line
            result.setdefault((space, name), []).append(text)
    return result


def known(space: str, name: str) -> bool:
    """Whether there is a function or a method of a name."""
    return (space, name) in _texts()


@functools.cache
def signatures(space: str, name: str) -> tuple[Signature, ...]:
    """The signatures of a function in `torch`, or of a method; none for names that are not known, or take nothing.

    >>> from flambeau._tensor.argument_errors.signatures import signatures
    >>> [str(signature) for signature in signatures("Tensor", "max")]
    ['()', '(Tensor other)', '(int dim, bool keepdim = False)']
    """
    texts = _texts()
    found = texts.get((space, name))
    if found is None and space == "torch":  # functions of `torch.linalg` and its like have the prefix in their names
        found = next((texts[other, name] for other in _SPACES if (other, name) in texts), None)
        if found is None and name in _OF_NN:
            found = texts["torch._C._nn", name]
    return tuple(Signature(text) for text in found or () if "(" in text)


@functools.cache
def takes_no_out(name: str) -> bool:
    """Whether a function of `torch` is known, and none of its signatures has `out=`."""
    overloads = signatures("torch", name)
    return bool(overloads) and not any(p.name == "out" for overload in overloads for p in overload.parameters)


# ----- types of values ----------------------------------------------------------------------------

#: the first integer that 64 bits do not hold
_LIMIT = 1 << 63
_SYMBOLIC = frozenset(("SymInt", "SymFloat", "SymBool"))
_NUMBER = (bool, int, float, complex, np.number, np.bool_)


def _is_index(value: Any) -> bool:
    """Whether a value counts as an integer of a list: not a bool, but whatever has `__index__`."""
    if isinstance(value, (bool, np.bool_)):
        return False
    if isinstance(value, Tensor):
        return value._array.size == 1 and value._array.dtype.kind in "iub"
    if isinstance(value, np.ndarray):
        return not value.ndim and value.dtype.kind in "iu"
    return hasattr(value, "__index__")


def _is_single(value: Any, kinds: str) -> bool:
    """Whether a value is a tensor that stands for a number, of the given kinds of dtypes."""
    return isinstance(value, Tensor) and not value._requires_grad and not value._array.ndim and (
        value._array.dtype.kind in kinds)


def _is_real(value: Any) -> bool:
    return isinstance(value, (int, float, np.number, np.bool_)) and not isinstance(value, np.complexfloating)


def _overrides(value: Any) -> bool:
    """Whether a value stands for any argument: a foreign class, or a symbolic number."""
    kind = type(value)
    return (hasattr(kind, "__torch_function__") and not isinstance(value, Tensor)) or kind.__name__ in _SYMBOLIC


def _fits_list(value: Any, p: Parameter, is_element: Callable[[Any], bool]) -> tuple[bool, int | None]:
    if isinstance(value, (tuple, list)):
        return (True, None) if not value or is_element(value[0]) or _overrides(value[0]) else (False, 0)
    return p.size > 0 and is_element(value), None


def _fits(value: Any, p: Parameter, name: str, index: int) -> tuple[bool, int | None]:
    """Whether a value fits a parameter; and the position of the element for which it does not."""
    kind = p.kind
    if kind in ("IntArrayRef", "SymIntArrayRef"):
        return _fits_list(value, p, _is_index)
    if kind == "ArrayRef<double>":
        return _fits_list(value, p, _is_real)
    if kind in ("TensorList", "c10::List<::std::optional<Tensor>>"):
        return _fits_tensors(value, kind, index), None
    if kind == "ScalarList":
        if not isinstance(value, (tuple, list)):
            return False, None
        bad = next((i for i, x in enumerate(value) if not isinstance(x, _NUMBER)), None)
        return bad is None, bad
    return _overrides(value) or _fits_one(value, kind, name), None


def _fits_tensors(value: Any, kind: str, index: int) -> bool:
    if not isinstance(value, (tuple, list)):
        return False
    for i, x in enumerate(value):
        if not (isinstance(x, Tensor) or _overrides(x)):
            raise TypeError(f"expected Tensor as element {i} in argument {index}, but got {type_name(x)}")
    return True


def _fits_one(value: Any, kind: str, name: str) -> bool:
    match kind:
        case "Tensor":
            return isinstance(value, Tensor) or (name in _NUMBERS_AS_TENSORS and isinstance(value, _NUMBER))
        case "Scalar" | "complex":
            return isinstance(value, _NUMBER) or _is_single(value, "biufcV")
        case "double":
            return _is_real(value) or _is_single(value, "biufV")
        case "SymInt":
            return _is_index(value)
        case "int64_t" | "DeviceIndex":
            return (isinstance(value, (int, np.integer)) and not isinstance(value, bool)) or _is_single(value, "iu")
        case "bool":
            return isinstance(value, bool)
        case "std::string" | "c10::string_view":
            return isinstance(value, str)
        case "ScalarType":
            return isinstance(value, dtypes.dtype) or any(value is kind for kind in (float, int, bool, complex))
        case "Device":
            return devices.is_device(value)
        case "Layout" | "MemoryFormat" | "QScheme" | "Generator":
            return type_name(value).rpartition(".")[2] == _TYPE_TEXTS[kind].removeprefix("torch.")
        case "Dimname":
            return value is None or isinstance(value, str)
        case "DimnameList":
            return isinstance(value, (tuple, list)) and all(x is None or isinstance(x, str) for x in value)
    return True


__all__ = ["Signature", "known", "signatures", "takes_no_out"]
