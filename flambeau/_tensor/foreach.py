"""`torch._foreach_*`: an operator applied to each tensor of a list.

The functional variants return tuples; those in place return the list. Scalars, lists of scalars, tensors of one
element and lists of tensors are accepted where PyTorch accepts them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..engine.tensor_interface import layer
from .tensor import Tensor

UNARY = ("abs", "acos", "asin", "atan", "ceil", "clone", "cos", "cosh", "erf", "erfc", "exp", "expm1", "floor", "frac",
         "lgamma", "log", "log10", "log1p", "log2", "neg", "reciprocal", "round", "rsqrt", "sigmoid", "sign", "sin",
         "sinh", "sqrt", "tan", "tanh", "trunc")
#: name -> the overloads that PyTorch's errors list
BINARY = {
    "add": ("Number scalar", "tuple of Scalars scalars", "Tensor other, *, Number alpha = 1",
            "tuple of Tensors other, *, Number alpha = 1"),
    "sub": ("Number scalar", "tuple of Scalars scalars", "tuple of Tensors other, *, Number alpha = 1"),
    "mul": ("Number scalar", "tuple of Scalars scalars", "Tensor other", "tuple of Tensors other"),
    "div": ("Number scalar", "tuple of Scalars scalars", "Tensor other", "tuple of Tensors other"),
    **dict.fromkeys(("clamp_max", "clamp_min", "maximum", "minimum"),
                    ("Number scalar", "tuple of Scalars scalars", "tuple of Tensors other")),
}

_NUMBERS = (bool, int, float, complex)


def _type_name(value: Any) -> str:
    return type(value).__name__


def _rejected(name: str, overloads: Sequence[str], args: Sequence[Any], kwargs: dict[str, Any]) -> TypeError:
    got = ", ".join([*map(_type_name, args), *(f"{key}={_type_name(value)}" for key, value in kwargs.items())])
    lines = "".join(f" * (tuple of Tensors self, {overload})\n" for overload in overloads)
    return TypeError(f"{name}() received an invalid combination of arguments - got ({got}), "
                     f"but expected one of:\n{lines}")


def _tensors(name: str, tensors: Any, argument: str = "self", position: int = 1) -> Sequence[Tensor]:
    """The list itself, if it is one of tensors."""
    if not isinstance(tensors, list | tuple):
        raise TypeError(f"{name}(): argument '{argument}' (position {position}) must be tuple of Tensors, "
                        f"not {_type_name(tensors)}")
    for i, each in enumerate(tensors):
        if not isinstance(each, Tensor):
            raise TypeError(f"expected Tensor as element {i} in argument {position - 1}, but got {_type_name(each)}")
    if argument == "self" and not tensors:
        raise RuntimeError("Tensor list must have at least one tensor.")
    return tensors


def _same_length(tensors: Sequence[Any], other: Sequence[Any]) -> None:
    if len(tensors) != len(other):
        raise RuntimeError("Tensor lists must have the same number of tensors, "
                           f"got {len(tensors)} and {len(other)}")


def _is_tensor_list(value: Any) -> bool:
    return isinstance(value, list | tuple) and bool(value) and all(isinstance(each, Tensor) for each in value)


def _operands(tensors: Sequence[Tensor], value: Any) -> list[Any] | None:
    """One operand per tensor from a scalar, a list of scalars, a 0-D tensor or a list of tensors; None if none."""
    if isinstance(value, _NUMBERS):
        return [value] * len(tensors)
    if isinstance(value, Tensor):
        if value.dim() != 0:
            raise RuntimeError(f"scalar tensor expected to be 0 dim but it has {value.dim()} dimensions "
                               f"and {value.numel()} elements.")
        return [value] * len(tensors)
    if isinstance(value, list | tuple):
        if _is_tensor_list(value):
            _same_length(tensors, value)
        elif all(isinstance(each, _NUMBERS) for each in value):
            if len(tensors) != len(value):
                raise RuntimeError("Tensor list must have same number of elements as scalar list.")
        else:
            return None
        return list(value)
    return None


def _finished(tensors: Any, results: list[Any], in_place: bool) -> Any:
    return tensors if in_place else tuple(results)


# ----- one list -------------------------------------------------------------------------


def _unary(name: str, in_place: bool) -> Callable[..., Any]:
    method = name + "_" if in_place else name
    full = "_foreach_" + method

    def function(self: Any) -> Any:
        _tensors(full, self)
        return _finished(self, [getattr(each, method)() for each in self], in_place)

    return _named(function, full, f"`{method}` of each tensor of a list.", "torch.ones(2)")


def _named(function: Callable[..., Any], name: str, doc: str, example: str, more: str = "") -> Callable[..., Any]:
    function.__name__ = function.__qualname__ = name
    function.__module__ = __name__.partition(".")[0]
    function.__doc__ = (f"{doc}\n\n    >>> import flambeau as torch\n"
                        f"    >>> len(torch.{name}([{example}]{more}))\n    1\n    ")
    return function


# ----- two lists ------------------------------------------------------------------------


def _binary(name: str, in_place: bool) -> Callable[..., Any]:
    method = name + "_" if in_place else name
    full = "_foreach_" + method
    overloads = BINARY[name]
    has_alpha = name in ("add", "sub")
    limit = {"maximum": "clamp_min", "minimum": "clamp_max"}.get(name, name)

    def apply_one(tensor: Tensor, other: Any, alpha: Any) -> Tensor:
        if name in ("maximum", "minimum", "clamp_min", "clamp_max") and not isinstance(other, Tensor):
            return getattr(tensor, limit + "_" if in_place else limit)(other)
        if name in ("maximum", "minimum"):
            if tensor.is_complex():
                raise NotImplementedError(f'"{name}_cpu" not implemented for \'{tensor.dtype.scalar_name}\'')
            result = getattr(tensor, name)(other)
            return tensor.copy_(result) if in_place else result
        if has_alpha and alpha != 1:
            return getattr(tensor, method)(other, alpha=alpha)
        return getattr(tensor, method)(other)

    def function(*args: Any, **kwargs: Any) -> Any:
        given = dict(kwargs)
        for key, value in zip(("self", "other"), args, strict=False):
            given[key] = value
        alpha = given.pop("alpha", 1)
        for key in ("scalar", "scalars"):
            if key in given and "other" not in given:
                given["other"] = given.pop(key)
        if set(given) != {"self", "other"} or len(args) > 2 or (alpha != 1 and not has_alpha):
            raise _rejected(full, overloads, args, kwargs)
        tensors = _tensors(full, given["self"])
        if isinstance(given["other"], Tensor) and not any(o.startswith("Tensor other") for o in overloads):
            raise _rejected(full, overloads, args, kwargs)
        others = _operands(tensors, given["other"])
        if others is None:
            raise _rejected(full, overloads, args, kwargs)
        return _finished(tensors, [apply_one(t, o, alpha) for t, o in zip(tensors, others, strict=True)], in_place)

    return _named(function, full, f"`{method}` of each tensor of a list, with scalars or tensors.", "torch.ones(2)",
                  ", 2.0")


def _pow(in_place: bool) -> Callable[..., Any]:
    full = "_foreach_pow_" if in_place else "_foreach_pow"
    overloads = ("Number exponent", "tuple of Scalars exponent", "tuple of Tensors exponent")

    def function(self: Any, exponent: Any) -> Any:
        if isinstance(self, _NUMBERS) and not in_place:
            return tuple(layer.functions.pow(self, each) for each in _tensors(full, exponent))
        tensors = _tensors(full, self)
        exponents = _operands(tensors, exponent)
        if exponents is None or isinstance(exponent, Tensor):
            raise _rejected(full, overloads, (self, exponent), {})
        method = "pow_" if in_place else "pow"
        return _finished(self, [getattr(t, method)(e) for t, e in zip(tensors, exponents, strict=True)], in_place)

    return _named(function, full, "The power of each tensor of a list.", "torch.ones(2)", ", 2")


# ----- three lists ----------------------------------------------------------------------


def _pointwise(name: str, in_place: bool) -> Callable[..., Any]:
    method = name + "_" if in_place else name
    full = "_foreach_" + method

    def function(self: Any, tensor1: Any, tensor2: Any, value: Any = 1, *, scalars: Any = None) -> Any:
        tensors = _tensors(full, self)
        _tensors(full, tensor1, "tensor1", 2)
        _tensors(full, tensor2, "tensor2", 3)
        values = value if scalars is None else scalars
        if isinstance(values, Tensor):
            if not values.is_contiguous():
                raise RuntimeError("Expected scalars to be contiguous.")
            if values.dim() != 1:
                raise RuntimeError(f"Expected packed scalar Tensor to be of dimension 1. Got {values.dim()} instead.")
            if len(values) != len(tensors):
                raise RuntimeError(f"Expected length of scalars to match input of length {len(tensors)} "
                                   f"but got {len(values)} instead.")
            values = values.tolist()
        _same_length(tensors, tensor1)
        _same_length(tensors, tensor2)
        if not isinstance(values, list | tuple):
            values = [values] * len(tensors)
        elif len(values) != len(tensors):
            raise RuntimeError("Tensor list must have same number of elements as scalar list.")
        results = [getattr(t, method)(a, b, value=v)
                   for t, a, b, v in zip(tensors, tensor1, tensor2, values, strict=True)]
        return _finished(self, results, in_place)

    return _named(function, full, f"`{method}` of each tensor of a list.", "torch.ones(2)",
                  ", [torch.ones(2)], [torch.ones(2)]")


def _lerp(in_place: bool) -> Callable[..., Any]:
    method = "lerp_" if in_place else "lerp"
    full = "_foreach_" + method

    def function(self: Any, tensors1: Any, weight: Any = None, *, weights: Any = None) -> Any:
        tensors = _tensors(full, self)
        _tensors(full, tensors1, "tensors1", 2)
        _same_length(tensors, tensors1)
        weight = weights if weight is None else weight
        values = _operands(tensors, weight)
        if values is None:
            raise _rejected(full, ("tuple of Tensors tensors1, Number weight",
                                   "tuple of Tensors tensors1, tuple of Scalars weight",
                                   "tuple of Tensors tensors1, tuple of Tensors weights"), (self, tensors1, weight), {})
        results = [getattr(t, method)(end, w) for t, end, w in zip(tensors, tensors1, values, strict=True)]
        return _finished(self, results, in_place)

    return _named(function, full, f"`{method}` of each tensor of a list.", "torch.ones(2)", ", [torch.ones(2)], 0.5")


# ----- reductions and others ------------------------------------------------------------


def _foreach_norm(self: Any, ord: Any = 2, dtype: Any = None) -> tuple[Tensor, ...]:
    """The p-norm of each tensor of a list.

    >>> import flambeau as torch
    >>> torch._foreach_norm([torch.tensor([3., 4.])])
    (tensor(5.),)
    """
    for each in _tensors("_foreach_norm", self):
        if each.numel() == 0 and ord == float("inf"):
            raise RuntimeError("_foreach_norm cannot compute the infinity norm on an empty tensor because the "
                               "operation does not have an identity")
    return tuple(layer.functions.linalg_vector_norm(each, ord, dtype=dtype) for each in self)


def _foreach_powsum(self: Any, ord: Any = 2, dtype: Any = None) -> tuple[Tensor, ...]:
    """Σ |x|ᵖ of each tensor of a list.

    >>> import flambeau as torch
    >>> torch._foreach_powsum([torch.tensor([3., 4.])])
    (tensor(25.),)
    """
    _tensors("_foreach_powsum", self)
    return tuple((each if dtype is None else each.to(dtype)).abs().pow(ord).sum() for each in self)


def _foreach_max(self: Any) -> tuple[Tensor, ...]:
    """The maximum of each tensor of a list.

    >>> import flambeau as torch
    >>> torch._foreach_max([torch.tensor([3., 4.])])
    (tensor(4.),)
    """
    for each in _tensors("_foreach_max", self):
        if each.numel() == 0:
            raise RuntimeError("_foreach_max cannot compute the maximum of an empty tensor; max over zero elements is "
                               "undefined.")
    return tuple(each.max() for each in self)


def _foreach_mm(self: Any, mat2: Any) -> tuple[Tensor, ...]:
    """The matrix product of each pair of matrices.

    >>> import flambeau as torch
    >>> torch._foreach_mm([torch.ones(1, 2)], [torch.ones(2, 1)])
    (tensor([[2.]]),)
    """
    _tensors("_foreach_mm", self)
    _same_length(self, _tensors("_foreach_mm", mat2, "mat2", 2))
    return tuple(a.mm(b) for a, b in zip(self, mat2, strict=True))


def _foreach_copy_(self: Any, src: Any, non_blocking: bool = False) -> Any:
    """Copy each tensor of a list into another.

    >>> import flambeau as torch
    >>> torch._foreach_copy_([torch.zeros(2)], [torch.ones(2)])
    [tensor([1., 1.])]
    """
    _tensors("_foreach_copy_", self)
    _same_length(self, _tensors("_foreach_copy_", src, "src", 2))
    for target, source in zip(self, src, strict=True):
        target.copy_(source, non_blocking)
    return self


def _foreach_zero_(self: Any) -> Any:
    """Fill each tensor of a list with zeros.

    >>> import flambeau as torch
    >>> torch._foreach_zero_([torch.ones(2)])
    [tensor([0., 0.])]
    """
    for each in _tensors("_foreach_zero_", self):
        each.zero_()
    return self


for _name in UNARY:
    globals()["_foreach_" + _name] = _unary(_name, False)
    if _name != "clone":
        globals()[f"_foreach_{_name}_"] = _unary(_name, True)
for _in_place, _suffix in ((False, ""), (True, "_")):
    for _name in BINARY:
        globals()[f"_foreach_{_name}{_suffix}"] = _binary(_name, _in_place)
    for _name in ("addcdiv", "addcmul"):
        globals()[f"_foreach_{_name}{_suffix}"] = _pointwise(_name, _in_place)
    globals()["_foreach_pow" + _suffix] = _pow(_in_place)
    globals()["_foreach_lerp" + _suffix] = _lerp(_in_place)
