"""Arithmetic functions that choose the operator by their arguments: `alpha`, rounding modes, scalars on either side."""

from __future__ import annotations

from typing import Any

import numpy as np

from ... import dtypes
from ...backends.sparse_array import CompressedArray, SparseArray
from ...ops.declare import REGISTRY
from ...ops.pointwise.arithmetic import no_bool_operand
from ...shapes import broadcast_shapes
from ..argument_errors.guards import NOT_GIVEN, raise_refusal, refused_write
from ..argument_errors.out_arguments import check_records_nothing
from ..argument_errors.type_names import type_name
from ..dispatch.apply import apply
from ..dispatch.array_kernels import arrays
from ..dispatch.out_tensors import write_out
from ..dispatch.promotion import result_type
from ..dispatch.public_functions import inplace_function, public_function
from ..fastpath.repeated_calls import launched, repeated, repeated_in_place
from ..fastpath.unary_with_parameters import positional_parameters
from ..overriding.other_objects import with_other_object
from ..tensor import Tensor

__all__ = ["add", "addcdiv", "addcmul", "div", "divide", "float_power", "mvlgamma", "polygamma", "pow", "remainder",
           "round", "rsub", "special_polygamma", "special_round", "square", "sub", "subtract", "true_divide"]

_ONE = 1  # the default of `alpha`: to compare objects is quicker than to compare numbers
_add, _sub, _pow, _div, _round = (
    public_function(REGISTRY[name]) for name in ("add", "sub", "pow", "div", "round"))


def _call(key: str, *inputs: Any, out: Any = None, **params: Any) -> Any:
    return public_function(REGISTRY[key])(*inputs, out=out, **params)


def _write(key: str, *inputs: Any, **params: Any) -> Any:
    return inplace_function(REGISTRY[key])(*inputs, **params)


def _is_one(alpha: Any) -> bool:
    """Whether `alpha` is the number one; of a bool or a tensor it depends on the dtypes whether it is accepted."""
    return alpha.__class__ is not bool and not isinstance(alpha, Tensor) and bool(alpha == 1)


def _checked_alpha(input: Any, other: Any, alpha: Any, subtracts: bool = False) -> Any:
    """`alpha`, converted to the result's dtype after a check that it fits."""
    if subtracts:
        no_bool_operand(input, other)
        if result_type([input, other]) is dtypes.bool_:
            return 1  # which is refused
    if isinstance(alpha, Tensor):
        alpha = alpha.item()
    elif alpha.__class__ is np.bool_:
        alpha = float(alpha)
    d = result_type([input, other])
    refused = ""
    if isinstance(alpha, bool) and d is not dtypes.bool_:
        refused = "Boolean alpha only supported for Boolean results."
    elif d.category < dtypes.FLOATING and isinstance(alpha, (float, complex)):
        refused = "For integral input tensors, argument alpha must not be a floating point number."
    elif d.category < dtypes.COMPLEX and isinstance(alpha, complex):
        refused = "For non-complex input tensors, argument alpha must not be a complex number."
    if refused:
        if isinstance(input, Tensor) and isinstance(other, Tensor):
            broadcast_shapes(input._array.shape, other._array.shape)  # whose error comes first
        raise RuntimeError(refused)
    if d.category == dtypes.INTEGER:  # wraps around like the elements
        return np.asarray(alpha, np.int64).astype(d.numpy).item()
    return bool(alpha) if d is dtypes.bool_ else alpha


def _unfit(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Exception:
    """PyTorch's error of a call whose arguments fit no signature."""
    from ..argument_errors.messages import FUNCTION, METHOD, explained  # imported when a call fails only

    of_method = name.endswith("_")
    return explained(METHOD if of_method else FUNCTION, name, args[of_method:], kwargs) or TypeError(
        f"{name}(): an argument has another type")


def _legacy(names: tuple[str, ...], first: Any, rest: tuple[Any, ...]) -> tuple[Any, ...]:
    """The factor and the other operands of a deprecated call with the factor second, `add(input, alpha, other)`.

    Args:
        names: the function's, and its aliases.
        first: the second argument of the call, after the tensor.
        rest: those after it.
    """
    from ..argument_errors.deprecated_overloads import warn_deprecated
    from ..argument_errors.messages import called
    from ..argument_errors.signatures import signatures

    space, name = called(names)
    overloads = signatures(space, name)
    deprecated = next(overload for overload in overloads if overload.hidden)
    if any(isinstance(x, (list, tuple, str)) for x in (first, *rest)):
        raise TypeError(f"{name}(): an argument is no tensor")
    warn_deprecated(deprecated, [overload for overload in overloads if not overload.hidden])
    return (first, *rest)


# ----- addition -----

def add(input: Any, other: Any = NOT_GIVEN, *legacy: Any, alpha: Any = 1, out: Any = None) -> Any:
    """input + alpha · other.

    >>> import flambeau as torch
    >>> torch.add(torch.ones(2), torch.ones(2), alpha=3)
    tensor([4., 4.])
    """
    if legacy:
        alpha, other = _legacy(("add", "add_"), other, legacy)
    if alpha is _ONE or _is_one(alpha):
        return _add(input, other, out=out)
    if alpha.__class__ is float and out is None:
        return _scaled_sum(input, other, alpha)
    input, other = _dense_first(input, other)
    return _call("_add_scaled", input, other, alpha=_checked_alpha(input, other, alpha), out=out)


@repeated
def _scaled_sum(input: Any, other: Any, alpha: float) -> Any:
    input, other = _dense_first(input, other)
    return _call("_add_scaled", input, other, alpha=_checked_alpha(input, other, alpha))


def _dense_first(input: Any, other: Any) -> tuple[Any, Any]:
    """The operands; a compressed one and a dense one are exchanged, as in PyTorch: `alpha` scales the former."""
    if isinstance(input, Tensor) and isinstance(other, Tensor) and isinstance(input._array, CompressedArray) and (
            not isinstance(other._array, SparseArray) and input._array.shape == other._array.shape):
        return other, input
    return input, other


def _write_scaled_sum(self: Tensor, other: Any, alpha: Any) -> Any:
    return _write("_add_scaled", self, other, alpha=_writable_alpha(self, other, alpha))


def _writable_alpha(self: Tensor, other: Any, alpha: Any, subtracts: bool = False) -> Any:
    """`_checked_alpha` for an in-place variant: that autograd forbids the write is found first."""
    try:
        return _checked_alpha(self, other, alpha, subtracts)
    except RuntimeError:
        raise_refusal(refused_write((self, other)))
        raise


_scaled_sum_in_place = repeated_in_place(_scaled_sum, _write_scaled_sum)


def _add_in_place(self: Tensor, other: Any, *legacy: Any, alpha: Any = 1) -> Tensor:
    """`add`, in place."""
    if legacy:
        alpha, other = _legacy(("add", "add_"), other, legacy)
    if alpha is _ONE or _is_one(alpha):
        return _write("add", self, other)
    return _scaled_sum_in_place(self, other, alpha)


def sub(input: Any, other: Any = NOT_GIVEN, *legacy: Any, alpha: Any = 1, out: Any = None) -> Any:
    """input - alpha · other.

    >>> import flambeau as torch
    >>> torch.sub(torch.ones(2), torch.ones(2), alpha=3)
    tensor([-2., -2.])
    """
    if legacy:
        alpha, other = _legacy(("sub", "sub_"), other, legacy)
    if alpha is _ONE or _is_one(alpha):
        return _sub(input, other, out=out)
    return _call("_sub_scaled", input, other, alpha=_checked_alpha(input, other, alpha, True), out=out)


def subtract(input: Any, other: Any = NOT_GIVEN, *numbers: Any, alpha: Any = 1, out: Any = None) -> Any:
    """`sub`; the factor of a number may be given by position.

    >>> import flambeau as torch
    >>> torch.subtract(torch.ones(2), 1, 3)
    tensor([-2., -2.])
    """
    if numbers:
        alpha = _factor_of_number("subtract", other, numbers)
    return sub(input, other, alpha=alpha, out=out)


def _factor_of_number(name: str, other: Any, numbers: tuple[Any, ...]) -> Any:
    """The factor by position.

    Raises:
        TypeError: there are more arguments, or the operand is no number; a guard says more.
    """
    if len(numbers) > 1 or not isinstance(other, (int, float, complex)):
        raise TypeError(f"{name}(): takes a factor of numbers only")
    return numbers[0]


def _subtract_in_place(self: Tensor, other: Any, *numbers: Any, alpha: Any = 1) -> Tensor:
    """`subtract`, in place."""
    if numbers:
        alpha = _factor_of_number("subtract_", other, numbers)
    return _sub_in_place(self, other, alpha=alpha)


def _sub_in_place(self: Tensor, other: Any, *legacy: Any, alpha: Any = 1) -> Tensor:
    """`sub`, in place."""
    if legacy:
        alpha, other = _legacy(("sub", "sub_"), other, legacy)
    if alpha is _ONE or _is_one(alpha):
        return _write("sub", self, other)
    return _write("_sub_scaled", self, other, alpha=_writable_alpha(self, other, alpha, True))


def rsub(input: Tensor, other: Any, *numbers: Any, alpha: Any = 1) -> Tensor:
    """other - alpha · input.

    >>> import flambeau as torch
    >>> torch.rsub(torch.ones(2), 3)
    tensor([2., 2.])
    """
    if not isinstance(input, Tensor):
        return _call("_rsub", input, other)  # raises
    if numbers:
        alpha = _factor_of_number("rsub", other, numbers)
    if isinstance(other, np.generic):
        other = dtypes.python_number(other)
    if alpha is not _ONE and not _is_one(alpha):
        alpha = _checked_alpha(other, input, alpha)
    if isinstance(other, Tensor):
        if input._array.shape != other._array.shape:
            broadcast_shapes(other._array.shape, input._array.shape)  # the error names the second operand first
        return _call("_rsub", input, other, alpha=alpha)
    if isinstance(other, bool) != (input.dtype is dtypes.bool_):
        return _sub(other, input)  # raises the error of subtraction
    return _call("_rsub_scalar", input, other=other, alpha=alpha)


def _check_real_factor(value: Any, *operands: Any) -> None:
    """Check that no complex number is a factor of real floating-point numbers.

    Raises:
        RuntimeError: it is (PyTorch's text).
    """
    if isinstance(value, Tensor) and value.dtype.is_complex and not value._array.ndim and not value.is_meta:
        value = value.item()
    if isinstance(value, complex) and value.imag and all(isinstance(x, Tensor) for x in operands):
        d = result_type(operands)
        if d.is_floating_point:
            kind = "double" if d is dtypes.float64 else "float"
            raise RuntimeError(f"value cannot be converted to type {kind} without overflow")


def _scaled_operands(name: str) -> tuple[Any, Any]:
    """`addcmul` or `addcdiv` and its in-place form, with the deprecated argument order."""
    op = REGISTRY[name]

    def call(input: Tensor, tensor1: Any, tensor2: Any, *legacy: Any, value: Any = 1, out: Any = None) -> Any:
        if legacy:
            value, tensor1, tensor2 = _legacy((name, name + "_"), tensor1, (tensor2, *legacy))
        _check_real_factor(value, input, tensor1, tensor2)
        return public_function(op)(input, tensor1, tensor2, value=value, out=out)

    def write(self: Tensor, tensor1: Any, tensor2: Any, *legacy: Any, value: Any = 1) -> Any:
        if legacy:
            value, tensor1, tensor2 = _legacy((name, name + "_"), tensor1, (tensor2, *legacy))
        _check_real_factor(value, self, tensor1, tensor2)
        return inplace_function(op)(self, tensor1, tensor2, value=value)

    call.__name__ = call.__qualname__ = name
    write.__name__ = write.__qualname__ = name + "_"
    call.__doc__, write.__doc__ = op.doc, f"`{name}`, in place."
    return repeated(call), write


addcmul, _addcmul_in_place = _scaled_operands("addcmul")
addcdiv, _addcdiv_in_place = _scaled_operands("addcdiv")


# ----- division -----

_ROUNDED = {"trunc": "_div_rounded", "floor": "_div_floored"}


def _rounded(rounding_mode: Any, input: Any, other: Any, name: str = "div") -> str:
    key = _ROUNDED.get(rounding_mode) if rounding_mode.__class__ is str else None
    if key is None:
        if rounding_mode.__class__ is not str:
            raise _unfit(name, (input, other), {"rounding_mode": rounding_mode})
        raise RuntimeError("div expected rounding_mode to be one of None, 'trunc', or 'floor' but found "
                           f"'{rounding_mode}'")
    if (rounding_mode == "trunc" and isinstance(other, Tensor) and other._array.size != 1
            and result_type([input, other]).numpy in dtypes.NARROW):
        return "_div_rounded_twice"
    return key


def div(input: Any, other: Any, *, rounding_mode: str | None = None, out: Any = None) -> Any:
    """input / other, optionally rounded down (`rounding_mode="floor"`) or towards zero ("trunc").

    >>> import flambeau as torch
    >>> torch.div(torch.tensor([-7, 7]), 2, rounding_mode="trunc")
    tensor([-3,  3])
    """
    if rounding_mode is None:
        return _div(input, other, out=out)
    return _call(_rounded(rounding_mode, input, other), input, other, rounding_mode=rounding_mode, out=out)


divide = div


def true_divide(input: Any, other: Any, *, out: Any = None) -> Any:
    """input / other.

    >>> import flambeau as torch
    >>> torch.true_divide(torch.tensor([1, 2]), 2)
    tensor([0.5000, 1.0000])
    """
    return _div(input, other, out=out)


def _div_in_place(self: Tensor, other: Any, *, rounding_mode: str | None = None) -> Tensor:
    """`div`, in place."""
    if rounding_mode is None:
        return _write("div", self, other)
    try:
        key = _rounded(rounding_mode, self, other, "div_")
    except RuntimeError:
        raise_refusal(refused_write((self, other)))
        raise
    return _write(key, self, other, rounding_mode=rounding_mode)


def _true_divide_in_place(self: Tensor, other: Any) -> Tensor:
    """`true_divide`, in place."""
    return _write("div", self, other)


def remainder(input: Any, other: Any, *, out: Any = None) -> Any:
    """The remainder of division rounded down, input - other · floor(input / other); has the sign of `other`.

    >>> import flambeau as torch
    >>> torch.remainder(torch.tensor([-3., 3.]), 2)
    tensor([1., 1.])
    """
    if isinstance(input, Tensor):
        return _call("remainder", input, other, out=out)
    return _call("_scalar_remainder", input, other, out=out)


# ----- powers -----

def _is_number(x: Any) -> bool:
    return isinstance(x, (bool, int, float, complex, np.generic))


def _check_integer_power(input: Tensor, exponent: Any) -> None:
    kind = input._array.dtype.kind
    if kind in "iub" and not isinstance(exponent, (float, complex)) and exponent < 0:
        raise RuntimeError("Integers to negative integer powers are not allowed.")


pow_scalar = positional_parameters(REGISTRY["_pow_scalar"], arrays.pow_scalar)


@launched
def pow(input: Any, exponent: Any, *, out: Any = None) -> Any:
    """input ** exponent; one of the two may be a scalar.

    >>> import flambeau as torch
    >>> torch.pow(2, torch.tensor([1., 2.]))
    tensor([2., 4.])
    """
    kind = type(exponent)
    if out is None and (kind is int or kind is float):
        try:
            if input._array.dtype.kind == "f":
                return pow_scalar(input, exponent)
        except AttributeError:
            pass
    if isinstance(input, Tensor):
        if isinstance(exponent, Tensor) or not _is_number(exponent):
            return _pow(input, exponent, out=out)
        if isinstance(exponent, np.generic) or dtypes.is_derived_number(exponent):
            exponent = dtypes.python_number(exponent)
        _check_integer_power(input, exponent)
        if out is None:
            return apply(REGISTRY["_pow_scalar"], [input], {"exponent": exponent})
        if not isinstance(out, Tensor):
            raise _unfit("pow", (input, exponent), {"out": out})
        return _call("_pow_scalar", input, exponent=exponent, out=out)
    if isinstance(input, np.generic) or dtypes.is_derived_number(input):
        input = dtypes.python_number(input)
    if not _is_number(input) or not isinstance(exponent, Tensor):
        return _pow(input, exponent, out=out)
    if out is not None:
        if not isinstance(out, Tensor):
            raise _unfit("pow", (input, exponent), {"out": out})
        check_records_nothing("pow", (exponent,), (out,))
    result = apply(REGISTRY["_scalar_pow"], [exponent], {"base": input})
    return result if out is None else write_out(REGISTRY["_scalar_pow"], result, out)


def _pow_in_place(self: Tensor, exponent: Any) -> Tensor:
    """`pow`, in place."""
    if isinstance(exponent, Tensor):
        return _write("pow", self, exponent)
    _check_integer_power(self, exponent)
    return _write("_pow_scalar", self, exponent=exponent)


@launched
def square(input: Tensor, *, out: Any = None) -> Tensor:
    """input².

    >>> import flambeau as torch
    >>> torch.square(torch.tensor([-2., 3.]))
    tensor([4., 9.])
    """
    if not isinstance(input, Tensor):  # a number would be one of `pow`
        return with_other_object(AttributeError("_array"), square, (input,))
    return pow(input, 2, out=out)


def _square_in_place(self: Tensor) -> Tensor:
    """`square`, in place."""
    if not isinstance(self, Tensor):  # a number would be one of `pow_`
        raise TypeError(f"square_(): argument 'input' (position 1) must be Tensor, not {type_name(self)}")
    return _pow_in_place(self, 2)


def _to_dtype(x: Any, like: dtypes.dtype) -> Any:
    return x.to(like) if isinstance(x, Tensor) and x.dtype is not like else x


def _power_dtype(*operands: Any) -> dtypes.dtype:
    for x in operands:
        d = x.dtype if isinstance(x, Tensor) else dtypes.of_scalar(x)
        if d.is_complex:
            return dtypes.complex128
    return dtypes.float64


def float_power(input: Any, exponent: Any, *, out: Any = None) -> Any:
    """input ** exponent, computed in float64 (or complex128) for all dtypes.

    >>> import flambeau as torch
    >>> torch.float_power(torch.tensor([2, 3]), 2)
    tensor([4., 9.], dtype=flambeau.float64)
    """
    d = _power_dtype(input, exponent)
    if out is not None and out.dtype is not d:
        raise RuntimeError(f"the output given to float_power has dtype {out.dtype.scalar_name} but the operation's "
                           f"result requires dtype {d.scalar_name}")
    return pow(_as_float(_to_dtype(input, d)), _as_float(_to_dtype(exponent, d)), out=out)


def _as_float(x: Any) -> Any:
    return float(x) if isinstance(x, (bool, int)) else x


def _float_power_in_place(self: Tensor, exponent: Any) -> Tensor:
    """`float_power`, in place."""
    d = _power_dtype(self, exponent)
    if self.dtype is not d:
        raise RuntimeError(f"the base given to float_power_ has dtype {self.dtype.scalar_name} but the operation's "
                           f"result requires dtype {d.scalar_name}")
    return _pow_in_place(self, _as_float(_to_dtype(exponent, d)))


# ----- rounding, polygamma -----

def round(input: Tensor, *, decimals: int = 0, out: Any = None) -> Tensor:
    """The input rounded to `decimals` digits after the point, halves to even.

    >>> import flambeau as torch
    >>> torch.round(torch.tensor([1.25, -2.7]), decimals=1)
    tensor([ 1.2000, -2.7000])
    """
    if decimals == 0 and decimals.__class__ is not float:
        return _round(input, out=out)
    if decimals.__class__ is float:
        raise TypeError("round(): argument 'decimals' must be int, not float")
    return _call("_round_decimals", input, decimals=decimals, out=out)


def _round_in_place(self: Tensor, *, decimals: int = 0) -> Tensor:
    """`round`, in place."""
    if decimals == 0:
        return _write("round", self)
    return _write("_round_decimals", self, decimals=decimals)


def polygamma(n: int, input: Tensor, *, out: Any = None) -> Tensor:
    """The n-th derivative of digamma(x).

    >>> import flambeau as torch
    >>> torch.polygamma(1, torch.tensor([1., 0.5]))
    tensor([1.6449, 4.9348])
    """
    if isinstance(n, Tensor):  # the method: x.polygamma(n)
        n, input = input, n  # type: ignore[assignment]
    if n < 0:
        raise RuntimeError("polygamma(n, x) does not support negative n.")
    return _call("_polygamma", input, n=n, out=out)


special_polygamma = polygamma


def special_round(input: Tensor, *, decimals: int = 0, out: Any = None) -> Tensor:
    """`round` of floating point numbers.

    >>> import flambeau as torch
    >>> torch.special.round(torch.tensor([1.5, -0.25]), decimals=1)
    tensor([ 1.5000, -0.2000])
    """
    if not (input.dtype.is_floating_point or input.dtype.is_complex):
        kernel = "round_cpu" if decimals else "round_vml_cpu"
        raise NotImplementedError(f"\"{kernel}\" not implemented for '{input.dtype.scalar_name}'")
    return _call("_round_decimals", input, decimals=decimals, out=out)


def _polygamma_in_place(self: Tensor, n: int) -> Tensor:
    """`polygamma`, in place."""
    if n < 0:
        raise RuntimeError("polygamma(n, x) does not support negative n.")
    return _write("_polygamma", self, n=n)


def mvlgamma(input: Tensor, p: int, *, out: Any = None) -> Tensor:
    """The logarithm of the p-dimensional gamma function.

    >>> import flambeau as torch
    >>> torch.mvlgamma(torch.tensor([2., 3.]), 2)
    tensor([0.4516, 1.5502])
    """
    _check_mvlgamma(input, p)
    if out is not None and out._array.dtype.kind in "iub":
        default = input.dtype if input.dtype.is_floating_point else dtypes.get_default_dtype()
        raise RuntimeError(f"mvlgamma: result type {input.dtype.scalar_name} can't be cast to the desired output type "
                           f"{default.scalar_name}")
    return _call("mvlgamma", input, p=p, out=out)


def _check_mvlgamma(input: Tensor, p: int) -> None:
    if input.dtype is dtypes.bool_:
        raise RuntimeError("The input tensor may not be a boolean tensor.")
    if p < 1:
        raise RuntimeError("p has to be greater than or equal to 1")


def _mvlgamma_in_place(self: Tensor, p: int) -> Tensor:
    """`mvlgamma`, in place."""
    _check_mvlgamma(self, p)
    if not (self.dtype.is_floating_point or self.dtype.is_complex):
        raise RuntimeError(f"mvlgamma: result type {self.dtype.scalar_name} can't be cast to the desired output type "
                           f"{dtypes.get_default_dtype().scalar_name}")
    return _write("mvlgamma", self, p=p)


METHODS: dict[str, Any] = {
    "addcmul": addcmul, "addcmul_": _addcmul_in_place, "addcdiv": addcdiv, "addcdiv_": _addcdiv_in_place,
    "add": add, "add_": _add_in_place, "sub": sub, "sub_": _sub_in_place, "subtract": subtract,
    "subtract_": _subtract_in_place,
    "div": div, "div_": _div_in_place, "divide": div, "divide_": _div_in_place, "true_divide": true_divide,
    "true_divide_": _true_divide_in_place, "remainder": remainder, "pow": pow,
    "pow_": _pow_in_place, "square": square, "square_": _square_in_place, "float_power": float_power,
    "float_power_": _float_power_in_place, "round": round, "round_": _round_in_place, "polygamma": polygamma,
    "polygamma_": _polygamma_in_place, "mvlgamma": mvlgamma,
    "mvlgamma_": _mvlgamma_in_place,
}
