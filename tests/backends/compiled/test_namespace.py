"""The namespace of symbolic elements against NumPy's primitives, at special and ordinary points."""

from __future__ import annotations

import math

import numpy as np
import pytest

from flambeau.backends.compiled.elementwise import ElementwiseKernel
from flambeau.backends.compiled.tracing.namespace import FUNCTIONS, ExpressionNamespace
from flambeau.backends.compiled.tracing.scalars import ScalarParameters
from flambeau.backends.compiled.tracing.symbolic_elements import Trace, Untraceable, promoted_dtype
from flambeau.backends.numpy import ArrayNamespace, primitives
from flambeau.ops.declare import REGISTRY

F32, F64, I64, U8, BOOL = (np.dtype(name) for name in ("f4", "f8", "i8", "u1", "?"))
ARRAYS = ArrayNamespace(primitives(), REGISTRY)
SPECIAL = [0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 2.5, -2.5, 3.0, 7.25, -7.25, math.inf, -math.inf, math.nan, 1e-3, 30.0]


def by_kernel(name, arrays, *numbers):
    [result] = all_by_kernel([name], arrays, *numbers)
    return result


def all_by_kernel(names, arrays, *numbers):
    """The functions' results, from one kernel."""
    trace = Trace(ScalarParameters(()), len(arrays))
    symbols = [trace.variable(i, a.dtype) for i, a in enumerate(arrays)]
    nodes = [FUNCTIONS[name](*symbols, *numbers).node for name in names]
    return ElementwiseKernel(nodes, [a.dtype for a in arrays])(arrays)


def all_close(names, arrays):
    for name, found in zip(names, all_by_kernel(names, arrays), strict=True):
        with np.errstate(all="ignore"):
            close(found, getattr(ARRAYS, name)(*arrays), name)


def close(found, expected, name, ulps=6):
    expected = np.asarray(expected)
    assert found.dtype == expected.dtype, name
    assert found.shape == expected.shape, name
    if expected.dtype.kind != "f":
        np.testing.assert_array_equal(found, expected, name)
        return
    np.testing.assert_array_equal(np.isnan(found), np.isnan(expected), name)
    number = np.isfinite(expected)
    endless = ~number & ~np.isnan(expected)
    np.testing.assert_array_equal(found[endless], expected[endless], name)
    limit = ulps * np.spacing(np.abs(expected[number]))
    assert np.all(np.abs(found[number] - expected[number]) <= limit), name


UNARY = ["exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sin", "cos", "tan", "asin", "acos", "atan", "sinh",
         "cosh", "tanh", "asinh", "acosh", "atanh", "sigmoid", "erf", "erfc", "erfinv", "sqrt", "rsqrt", "reciprocal",
         "abs", "neg", "sign", "sgn", "isnan", "isinf", "isfinite", "isreal", "signbit", "logical_not", "floor",
         "ceil", "trunc", "round", "square", "angle", "nan_to_num", "zeros_like", "ones_like"]


@pytest.mark.parametrize("dtype", [F32, F64], ids=str)
def test_functions_of_one_float(dtype):
    all_close(UNARY, [np.array(SPECIAL, dtype)])


@pytest.mark.parametrize("dtype", [I64, U8, np.dtype("i1")], ids=str)
def test_functions_of_one_integer(dtype):
    x = np.array([0, 1, 2, 7, 100, 127], dtype)
    if dtype.kind == "i":
        x = np.concatenate([x, -x]).astype(dtype)
    all_close(["abs", "neg", "sign", "isnan", "isinf", "isfinite", "signbit", "logical_not", "square", "bitwise_not",
               "floor"], [x])
    wide = x.astype(F64)  # NumPy has float16 for narrow integers; operators promote before
    for name, found in zip(["exp", "sqrt"], all_by_kernel(["exp", "sqrt"], [x]), strict=True):
        with np.errstate(all="ignore"):
            close(found, getattr(ARRAYS, name)(wide), name)


BINARY = ["add", "sub", "mul", "div", "maximum", "minimum", "fmax", "fmin", "eq", "ne", "lt", "le", "gt", "ge", "atan2",
          "copysign", "floor_divide", "trunc_divide", "remainder", "fmod", "pow", "hypot", "logaddexp", "logaddexp2",
          "logical_and", "logical_or", "logical_xor"]


@pytest.mark.parametrize("dtype", [F32, F64], ids=str)
def test_functions_of_two_floats(dtype):
    x, y = np.meshgrid(np.array(SPECIAL, dtype), np.array(SPECIAL, dtype))
    all_close(BINARY, [np.ascontiguousarray(x), np.ascontiguousarray(y)])


def test_signed_zeros_are_preserved():
    x, y = np.float32([0.0, -0.0, -4.0, 4.0]), np.float32([2.0, 2.0, 2.0, -2.0])
    names = ["mul", "remainder", "fmod", "floor_divide", "div"]
    for name, found in zip(names, all_by_kernel(names, [x, y]), strict=True):
        np.testing.assert_array_equal(np.signbit(found), np.signbit(getattr(ARRAYS, name)(x, y)), name)


@pytest.mark.parametrize("dtypes", [(I64, I64), (U8, U8), (np.dtype("i4"), U8), (I64, F64), (U8, BOOL)], ids=str)
def test_functions_of_two_integers(dtypes):
    x, y = (np.array([0, 1, 2, 5, 100, 127], dtype) for dtype in dtypes)
    names = ["add", "sub", "mul", "maximum", "minimum", "eq", "lt", "logical_and", "div"]
    if F64 not in dtypes:
        names += ["bitwise_and", "bitwise_or", "bitwise_xor"]
    all_close(names, [x, y[::-1].copy()])


@pytest.mark.parametrize("exponent", [0, 1.0, 2, 3, 0.5, -0.5, -1, -2, 2.5])
def test_powers_with_scalar_exponents(exponent):
    x = np.array(SPECIAL, F32)
    with np.errstate(all="ignore"):
        expected = ARRAYS.pow_scalar(x, exponent)
    if exponent == 1.0:
        assert FUNCTIONS["pow_scalar"](Trace(ScalarParameters(()), 1).variable(0, F32), exponent).node.op == "input"
    else:
        close(by_kernel("pow_scalar", [x], exponent), expected, exponent)


def test_scalars_promote_only_to_a_higher_kind():
    trace = Trace(ScalarParameters(()), 2)
    f, i = trace.variable(0, F32), trace.variable(1, I64)
    assert (f * 2.5).dtype == F32
    assert (f * 2).dtype == F32
    assert (i * 2).dtype == I64
    assert (i * 2.5).dtype == F64
    assert (f + i).dtype == F64
    assert promoted_dtype(f, True) == F32
    assert (i / i).dtype == F64


@pytest.mark.parametrize("ask", [
    lambda x: bool(x), lambda x: x.shape, lambda x: list(x), lambda x: x + 1j, lambda x: FUNCTIONS["gcd"](x, x),
    lambda x: FUNCTIONS["full_like"](x, x), lambda x: -(x > 0), lambda x: FUNCTIONS["where"](x > 0, 1j, x),
])
def test_unsupported_requests_raise(ask):
    with pytest.raises((Untraceable, TypeError)):
        ask(Trace(ScalarParameters(()), 1).variable(0, F32))


def test_declared_operators_are_found_by_name():
    xp = ExpressionNamespace(REGISTRY)
    x = Trace(ScalarParameters(()), 1).variable(0, F32)
    assert xp.silu(x).dtype == F32
    assert xp._threshold_backward(x, x, threshold=0).dtype == F32
    with pytest.raises(Untraceable, match="softmax is not elementwise"):
        xp.softmax(x)
    with pytest.raises(Untraceable, match="nothing is not elementwise"):
        xp.nothing(x)
