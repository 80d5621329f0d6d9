"""Dtypes: their NumPy counterparts, type promotion, casts, and limits (`finfo`, `iinfo`).

Each dtype corresponds to exactly one NumPy dtype. bfloat16, which NumPy lacks, is a structured dtype with one uint16
field: indexing, copying and concatenation work unchanged, arithmetic raises. Operators widen it to float32 (`widen`)
and round the result (`cast`). complex32, pairs of float16, is one with a uint32 field, widened to complex64. The dtypes
of eight bits are structured dtypes with a uint8 field. As in PyTorch, they hold data: few operators compute with them.

Promotion follows PyTorch: https://docs.pytorch.org/docs/stable/tensor_attributes.html#type-promotion-doc
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, Literal, NoReturn

import numpy as np

from . import config
from .errstate import IGNORE, reset_state, set_state

BOOL, INTEGER, FLOATING, COMPLEX = range(4)


class dtype:
    """The type of a tensor's elements.

    Attributes:
        itemsize: bytes of one element.
        is_floating_point, is_complex, is_signed: the kind of number.

    >>> import flambeau as torch
    >>> torch.float64.itemsize, torch.float64.is_floating_point
    (8, True)
    """

    __slots__ = ("__weakref__", "category", "is_complex", "is_floating_point", "is_signed", "itemsize",
                 "legacy", "name", "numpy", "rank", "scalar_name")

    def __init__(self, name: str, array_dtype: object, category: int, rank: int, legacy: str,
                 scalar_name: str) -> None:
        self.name = name
        self.numpy = np.dtype(array_dtype)  # type: ignore[call-overload]
        self.category = category
        self.rank = rank
        self.legacy = legacy  # the class of torch.FloatTensor
        self.scalar_name = scalar_name  # the name in PyTorch's error messages
        self.itemsize = self.numpy.itemsize
        self.is_complex = category == COMPLEX
        self.is_floating_point = category == FLOATING
        self.is_signed = category >= FLOATING or name.startswith("int")

    def __repr__(self) -> str:
        return f"{config.module_name}.{self.name}"

    def __getattr__(self, name: str) -> NoReturn:
        if name in ("numpy", "category", "rank"):
            raise NotImplementedError(f"tensors of {self!r} are not implemented: NumPy has no such dtype")
        if name == "is_signed":
            raise RuntimeError("Bits types are undefined" if self.name.startswith("bits") else
                               "isSignedType not supported for quantized types")
        raise AttributeError(f"'{config.module_name}.dtype' object has no attribute '{name}'")

    def __reduce__(self) -> str:
        return self.name

    @property
    def abbr(self) -> str:
        """A short name, as in the display of graphs: "f32"."""
        return _ABBREVIATIONS.get(self.name, self.name)

    def __copy__(self) -> dtype:
        return self

    def __deepcopy__(self, memo: object) -> dtype:
        return self

    def to_real(self) -> dtype:
        """The dtype of the real part."""
        return {complex64: float32, complex128: float64, complex32: float16}.get(self, self)

    def to_complex(self) -> dtype:
        """The complex dtype whose parts have at least this precision.

        Raises:
            RuntimeError: an integer dtype, or bool.
        """
        if self.is_complex:
            return self
        if not self.is_floating_point or self.itemsize < 2:
            raise RuntimeError(f"Unknown Complex ScalarType for {self.scalar_name}")
        return complex128 if self is float64 else complex32 if self is float16 else complex64


#: names that `dtype.abbr` shortens
_ABBREVIATIONS = {
    **{f"{kind}{bits}": f"{kind[0]}{bits}" for kind in ("uint", "int", "float", "complex")
       for bits in (8, 16, 32, 64, 128)},
    "bool": "b8", "bfloat16": "bf16", "bits1x8": "b1x8", "bits2x4": "b2x4", "bits4x2": "b4x2", "bits8": "b8x1",
    "bits16": "b16x1", "float8_e4m3fn": "f8e4m3fn", "float8_e5m2": "f8e5m2", "float8_e4m3fnuz": "f8e4m3fnuz",
    "float8_e5m2fnuz": "f8e5m2fnuz", "float8_e8m0fnu": "f8e8m0fnu", "float4_e2m1fn_x2": "f4e2m1fnx2",
}

bool_ = dtype("bool", np.bool_, BOOL, 0, "BoolTensor", "Bool")
uint8 = dtype("uint8", np.uint8, INTEGER, 1, "ByteTensor", "Byte")
int8 = dtype("int8", np.int8, INTEGER, 1, "CharTensor", "Char")
int16 = dtype("int16", np.int16, INTEGER, 2, "ShortTensor", "Short")
int32 = dtype("int32", np.int32, INTEGER, 3, "IntTensor", "Int")
int64 = dtype("int64", np.int64, INTEGER, 4, "LongTensor", "Long")
uint16 = dtype("uint16", np.uint16, INTEGER, 2, "UInt16Tensor", "UInt16")
uint32 = dtype("uint32", np.uint32, INTEGER, 3, "UInt32Tensor", "UInt32")
uint64 = dtype("uint64", np.uint64, INTEGER, 4, "UInt64Tensor", "UInt64")
float16 = dtype("float16", np.float16, FLOATING, 5, "HalfTensor", "Half")
bfloat16 = dtype("bfloat16", [("bfloat16", "<u2")], FLOATING, 5, "BFloat16Tensor", "BFloat16")
float32 = dtype("float32", np.float32, FLOATING, 6, "FloatTensor", "Float")
float64 = dtype("float64", np.float64, FLOATING, 7, "DoubleTensor", "Double")
complex32 = dtype("complex32", [("complex32", "<u4")], COMPLEX, 7, "ComplexHalfTensor", "ComplexHalf")
complex64 = dtype("complex64", np.complex64, COMPLEX, 8, "ComplexFloatTensor", "ComplexFloat")
complex128 = dtype("complex128", np.complex128, COMPLEX, 9, "ComplexDoubleTensor", "ComplexDouble")


def _eight_bits(name: str) -> dtype:
    return dtype(name, [(name, np.uint8)], FLOATING, 4, f"{name.capitalize()}Tensor", name.capitalize())


float8_e4m3fn = _eight_bits("float8_e4m3fn")
float8_e5m2 = _eight_bits("float8_e5m2")
float8_e4m3fnuz = _eight_bits("float8_e4m3fnuz")
float8_e5m2fnuz = _eight_bits("float8_e5m2fnuz")
float8_e8m0fnu = _eight_bits("float8_e8m0fnu")
float8_e8m0fnu.is_signed = False
float4_e2m1fn_x2 = _eight_bits("float4_e2m1fn_x2")  # two numbers in a byte; their values are not read



def _without_data(name: str, itemsize: int, signed: bool | None, scalar_name: str) -> dtype:
    """A dtype that programs may name and compare; a tensor of it raises NotImplementedError."""
    result = object.__new__(dtype)
    result.name, result.itemsize, result.scalar_name, result.legacy = name, itemsize, scalar_name, ""
    result.is_complex = result.is_floating_point = False
    if signed is not None:
        result.is_signed = signed
    return result


WITHOUT_DATA = (
    *(_without_data(name, size, None, scalar_name) for name, size, scalar_name in (
        ("qint8", 1, "QInt8"), ("quint8", 1, "QUInt8"), ("qint32", 4, "QInt32"), ("quint4x2", 1, "QUInt4x2"),
        ("quint2x4", 1, "QUInt2x4"), ("bits1x8", 1, "Bits1x8"), ("bits2x4", 1, "Bits2x4"), ("bits4x2", 1, "Bits4x2"),
        ("bits8", 1, "Bits8"), ("bits16", 2, "Bits16"))),
    *(_without_data(f"uint{bits}", 1, False, f"UInt{bits}") for bits in range(1, 8)),
    *(_without_data(f"int{bits}", 1, True, f"Int{bits}") for bits in range(1, 8)),
)  #: dtypes without tensors: NumPy has none of them

ALL = (bool_, uint8, int8, int16, int32, int64, uint16, uint32, uint64,
       float16, bfloat16, float32, float64, complex32, complex64, complex128,
       float8_e4m3fn, float8_e5m2, float8_e4m3fnuz, float8_e5m2fnuz, float8_e8m0fnu, float4_e2m1fn_x2)
WIDE_UNSIGNED = frozenset((uint16, uint32, uint64))
EIGHT_BITS = frozenset(ALL[16:])
WITHOUT_STORAGE_CLASS = WIDE_UNSIGNED | EIGHT_BITS | {complex32}  #: no legacy tensor and storage classes

#: NumPy dtype -> flambeau dtype, with the aliases `longlong` and `ulonglong`
OF_NUMPY = {d.numpy: d for d in ALL} | {np.dtype(np.longlong): int64, np.dtype(np.ulonglong): uint64}

#: Python scalar type -> category, for promotion
PYTHON_CATEGORY = {bool: BOOL, int: INTEGER, float: FLOATING, complex: COMPLEX}

BFLOAT16, HALF = bfloat16.numpy, float16.numpy
_SINGLE, _empty = float32.numpy, np.empty
NARROW = frozenset((np.dtype(np.float16), BFLOAT16))
COMPLEX32 = complex32.numpy

#: the C++ names of dtypes in some of PyTorch's messages
C_NAMES = {"float32": "float", "float64": "double", "float16": "c10::Half", "bfloat16": "c10::BFloat16",
           "int64": "long int", "int32": "int", "int16": "short int", "int8": "signed char",
           "uint8": "unsigned char", "bool": "bool", "uint16": "unsigned short", "uint32": "unsigned int",
           "uint64": "unsigned long", "complex32": "c10::complex<c10::Half>",
           "complex64": "c10::complex<float>", "complex128": "c10::complex<double>",
           **{name: f"c10::{name.capitalize()}" for name in (
               "float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz", "float8_e8m0fnu",
               "float4_e2m1fn_x2")}}

_default = float32


def of(array_dtype: np.dtype) -> dtype:
    """The flambeau dtype of a NumPy dtype.

    Raises:
        TypeError: the dtype has no counterpart (strings, objects, dates, ...).
    """
    result = OF_NUMPY.get(array_dtype)
    if result is None:
        result = OF_NUMPY.get(array_dtype.newbyteorder("=")) if array_dtype.kind in "biufc" else None
    if result is None:
        raise TypeError(
            f"can't convert np.ndarray of type {array_dtype.type.__module__}.{array_dtype.type.__name__}. "
            "The only supported types are: float64, float32, float16, complex64, complex128, int64, int32, "
            "int16, int8, uint64, uint32, uint16, uint8, and bool."
        )
    return result


def get_default_dtype() -> dtype:
    """The default dtype, which tensors of Python floats get.

    >>> import flambeau as torch
    >>> torch.get_default_dtype()
    flambeau.float32
    """
    return _default


#: [whether the default dtype is another one than float32]
other_default = [False]
#: called when the default dtype is set
default_observers: list[Callable[[], None]] = []


def set_default_dtype(d: dtype) -> None:
    """Set the default dtype.

    Args:
        d: a floating point dtype.

    Raises:
        TypeError: `d` is not a floating point dtype.

    >>> import flambeau as torch
    >>> torch.set_default_dtype(torch.float64)
    >>> torch.tensor(1.5).dtype
    flambeau.float64
    >>> torch.set_default_dtype(torch.float32)
    """
    global _default
    if not isinstance(d, dtype):
        raise TypeError("invalid dtype object: only floating-point types are supported as the default type")
    if not d.is_floating_point:
        raise TypeError("only floating-point types are supported as the default type")
    if d in EIGHT_BITS:
        raise TypeError(f"couldn't find storage object {d.scalar_name}Storage")
    _default = d
    other_default[0] = d is not float32
    for function in default_observers:
        function()


def default_complex() -> dtype:
    """The dtype of tensors of Python complex numbers: parts of the default dtype."""
    return _default.to_complex()


def of_scalar(value: object) -> dtype:
    """The dtype of a tensor of a Python scalar, or one of NumPy, which counts as Python's."""
    if isinstance(value, bool):
        return bool_
    if isinstance(value, (int, np.integer)):
        return int64
    if isinstance(value, (float, np.floating, np.bool_)):
        return _default
    if isinstance(value, complex):
        return default_complex()
    raise TypeError(f"not a number: {type(value).__name__}")


def python_number(scalar: Any) -> Any:
    """A scalar of NumPy, or of a class derived from a number's, as the number that PyTorch's argument parser makes of
    it: of a bool, a float.

    >>> import numpy as np
    >>> python_number(np.int32(3)), python_number(np.bool_(True))
    (3, 1.0)
    """
    if not isinstance(scalar, np.generic):
        return int(scalar) if isinstance(scalar, int) else float(scalar)
    return float(scalar) if scalar.__class__ is np.bool_ else scalar.item()


def is_derived_number(value: Any) -> bool:
    """Whether the class of an int or a float is derived from Python's; NumPy takes such numbers for its own.

    >>> is_derived_number(True), is_derived_number(type("Loss", (float,), {})(0.5))
    (False, True)
    """
    return isinstance(value, (int, float)) and value.__class__ not in _PYTHON_NUMBERS


_PYTHON_NUMBERS = frozenset((bool, int, float))


def check_fits_64_bits(value: int) -> None:
    """Check that an integer is a number of PyTorch's.

    Raises:
        OverflowError: it has more than 64 bits (PyTorch's text).

    >>> check_fits_64_bits(2**64 - 1)
    """
    if not -(2**63) <= value < 2**64:
        raise OverflowError("int too big to convert" if value > 0 else "can't convert negative int to unsigned")


@cache
def promote_types(type1: dtype, type2: dtype) -> dtype:
    """The smallest dtype that both arguments convert to.

    >>> import flambeau as torch
    >>> torch.promote_types(torch.int32, torch.float16)
    flambeau.float16
    """
    a, b = type1, type2
    if a is b and a.__class__ is dtype:
        return a
    for position, x in enumerate((a, b), 1):
        if not isinstance(x, dtype):
            raise TypeError(f"promote_types(): argument 'type{position}' (position {position}) must be torch.dtype, "
                            f"not {type(x).__name__}")
    if WIDE_UNSIGNED & {a, b} and not (a.is_floating_point or b.is_floating_point):
        raise RuntimeError("Promotion for uint16, uint32, uint64 types is not supported, attempted to "
                           f"promote {a.scalar_name} and {b.scalar_name}")
    if EIGHT_BITS & {a, b}:
        raise RuntimeError("Promotion for Float8 Types is not supported, attempted to promote "
                           f"{a.scalar_name} and {b.scalar_name}")
    if a.category != b.category:
        low, high = (a, b) if a.category < b.category else (b, a)
        if high.is_complex and low is float64:
            return complex128
        return complex64 if high is complex32 and low in (float32, bfloat16) else high
    if a.rank != b.rank:
        return a if a.rank > b.rank else b
    # different dtypes of equal rank: uint8 with int8, float16 with bfloat16
    return int16 if a.category == INTEGER else float32


def combine_categories(higher: dtype | None, lower: dtype | None) -> dtype | None:
    """Promote operands of two priorities (tensor, 0-d tensor, scalar): `lower` counts if its category is higher."""
    if higher is None or lower is None:
        return higher or lower
    if higher.is_complex:
        return higher
    if higher.is_floating_point:
        return higher.to_complex() if lower.is_complex else higher
    if higher is bool_ or lower.category >= FLOATING:
        return promote_types(higher, lower)
    return higher


def can_cast(from_: dtype, to: dtype) -> bool:
    """Whether a result of dtype `from_` may be written to a tensor of dtype `to` (in-place and `out=`).

    >>> import flambeau as torch
    >>> torch.can_cast(torch.float64, torch.float32), torch.can_cast(torch.float32, torch.int64)
    (True, False)
    """
    if from_.__class__ is not dtype or to.__class__ is not dtype:
        for position, (name, x) in enumerate((("from_", from_), ("to", to)), 1):
            if not isinstance(x, dtype):
                raise TypeError(f"can_cast(): argument '{name}' (position {position}) must be torch.dtype, not "
                                f"{type(x).__name__}")
    if from_.is_complex and not to.is_complex:
        return False
    if from_.is_floating_point and to.category < FLOATING:
        return False
    return not (from_ is not bool_ and to is bool_)


_converter: list[Callable[[np.ndarray, np.dtype], np.ndarray | None]] = []
_threshold = [1 << 62]


def register_converter(threshold: list[int], converter: Callable[[np.ndarray, np.dtype], np.ndarray | None]) -> None:
    """Register a kernel that casts large arrays; NumPy casts if it returns None.

    Args:
        threshold: [n]: arrays of more than n elements are passed to the kernel; n may change later.
    """
    global _threshold
    _converter[:] = [converter]
    _threshold = threshold


#: [(to float32, to bfloat16)] of few elements, each (result, array) -> result; [whether they are used]
_few: list[tuple[Callable[..., np.ndarray], Callable[..., np.ndarray]]] = []
_few_used = [False]


def register_casts_of_few(functions: tuple[Callable[..., np.ndarray], Callable[..., np.ndarray]],
                          used: list[bool]) -> None:
    """Register the functions that convert row-major arrays between bfloat16 and float32 in one call.

    Args:
        functions: (result, array) -> result, from bfloat16 and to it.
        used: [whether they are]; may change later.
    """
    global _few_used
    _few[:] = [functions]
    _few_used = used


_float8: list[Any] = []


def register_float8(formats: Any) -> None:
    """Register the module with the numbers of eight bits: `values`, `decode` and `encode`."""
    _float8[:] = [formats]


def is_complex(array_dtype: np.dtype) -> bool:
    """Whether a NumPy dtype is that of a complex one.

    >>> is_complex(complex32.numpy), is_complex(bfloat16.numpy)
    (True, False)
    """
    kind = array_dtype.kind
    return kind == "c" or (kind == "V" and array_dtype == COMPLEX32)


def widen(array: np.ndarray) -> np.ndarray:
    """An array of less than 32 bits as float32 (exact), complex32 as complex64; other arrays unchanged."""
    d = array.dtype
    if d is BFLOAT16 and _few_used[0] and array.size <= _threshold[0] and array.__class__ is np.ndarray and (
            array.flags.c_contiguous):
        return _few[0][0](_empty(array.shape, _SINGLE), array)
    if d in NARROW and array.size > _threshold[0]:
        converted = _converter[0](array, float32.numpy)
        if converted is not None:
            return converted
    if d == BFLOAT16:
        whole = array if isinstance(array, np.ndarray) else np.asarray(array)  # a subclass may refuse to be read
        bits = whole.view(np.uint16).astype(np.uint32, order=_order(array))
        return np.left_shift(bits, 16, out=bits).view(np.float32)
    if d == np.float16:
        return array.astype(np.float32)
    if d == COMPLEX32:
        pairs = np.asarray(array)[..., np.newaxis].view(np.float16)
        return pairs.astype(np.float32, order=_order(array)).view(np.complex64)[..., 0]
    if d.kind == "V":
        codes = array.view(np.uint8)
        return codes.astype(np.float32) if d == float4_e2m1fn_x2.numpy else _float8[0].decode(codes, OF_NUMPY[d].name)
    return array


def _check_readable(d: np.dtype) -> None:
    """Check that values of a dtype are converted.

    Raises:
        NotImplementedError: they are not (PyTorch's text).
    """
    if d == float4_e2m1fn_x2.numpy:
        raise NotImplementedError(f"\"copy_kernel\" not implemented for '{float4_e2m1fn_x2.scalar_name}'")


def _to_eight_bits(array: np.ndarray, to: np.dtype) -> np.ndarray:
    single = np.array(array, np.float32, order=_order(array), ndmin=1)
    return _float8[0].encode(single, OF_NUMPY[to].name).view(to).reshape(np.shape(array))


def to_bfloat16(array: np.ndarray) -> np.ndarray:
    """A real array rounded to the nearest bfloat16, ties to even."""
    single = np.array(array, np.float32, order=_order(array), ndmin=1)
    if _few_used[0] and single.flags.c_contiguous:
        return _few[0][1](_empty(single.shape, BFLOAT16), single).reshape(np.shape(array))
    bits = single.view(np.uint32)
    rounded = (bits + (((bits >> 16) & 1) + np.uint32(0x7FFF))) >> 16
    rounded[np.isnan(single)] = 0x7FC0
    return rounded.astype(np.uint16).view(BFLOAT16).reshape(np.shape(array))


def _rounded_to_bfloat16(array: np.ndarray) -> np.ndarray:
    """`to_bfloat16` of a row-major float32 array."""
    bits = array.view(np.uint32)
    rounded = bits >> 16
    rounded &= 1
    rounded += 0x7FFF
    rounded += bits
    rounded >>= 16
    result = rounded.astype(np.uint16)
    nan = array != array
    if np.logical_or.reduce(nan, None):
        result[nan] = 0x7FC0
    return result.view(BFLOAT16)


def rounded_type(d: np.dtype, narrow: np.dtype) -> np.dtype:
    """The dtype of a result that was computed, as `d`, with operands widened from `narrow`.

    >>> rounded_type(np.dtype(np.float32), BFLOAT16) == BFLOAT16, rounded_type(np.dtype(np.bool_), HALF)
    (True, dtype('bool'))
    """
    if d == complex64.numpy and narrow in (COMPLEX32, HALF):
        return COMPLEX32
    if d != float32.numpy:
        return d
    return HALF if narrow == COMPLEX32 else narrow


def _to_complex32(array: np.ndarray) -> np.ndarray:
    single = np.array(array, np.complex64, order=_order(array))
    return single[..., np.newaxis].view(np.float32).astype(np.float16, order="K").view(COMPLEX32)[..., 0]


def cast(array: np.ndarray, to: np.dtype) -> np.ndarray:
    """`array` converted as by PyTorch's `.to`; the same object if it has that dtype."""
    source = array.dtype
    if source is to:
        return array
    if array.__class__ is np.ndarray and array.size <= _threshold[0] and array.flags.c_contiguous:
        if source is BFLOAT16 and to is _SINGLE:
            if _few_used[0]:
                return _few[0][0](_empty(array.shape, to), array)
            if array.ndim:
                bits = array.view(np.uint16).astype(np.uint32)
                bits <<= 16
                return bits.view(to)
        elif to is BFLOAT16 and source is _SINGLE:
            if _few_used[0]:
                return _few[0][1](_empty(array.shape, to), array)
            if array.ndim:
                return _rounded_to_bfloat16(array)
    if source == to:
        return array
    if source.kind in "biu" and to.kind == "f" and to.itemsize > 2:
        return array.astype(to, order=_order(array))
    if array.size > _threshold[0]:
        converted = _converter[0](array, to)
        if converted is not None:
            return converted
    if to in (HALF, COMPLEX32) or (source.kind in "fcV" and (
            to.itemsize < source.itemsize or to.kind in "iu" or source.kind == "V")):
        token = set_state(IGNORE)  # overflow to inf or wrap-around, without a warning
        try:
            return _converted(array, to)
        finally:
            reset_state(token)
    return _converted(array, to)


#: NumPy's bool, integers and floats
REAL_SOURCES = tuple(map(np.dtype, "?bBhHiIlLefd"))


def exact_sources(to: np.dtype) -> frozenset[np.dtype]:
    """The other dtypes whose elements NumPy converts to `to` as PyTorch does, without a warning.

    >>> np.dtype(np.float32) in exact_sources(np.dtype(np.float64))
    True
    """
    return frozenset(source for source in REAL_SOURCES if to.kind in "iuf" and source != to and (
        np.can_cast(source, to) or (source.kind in "biu" and to.kind == "f" and to.itemsize > 2)))


def _converted(array: np.ndarray, to: np.dtype) -> np.ndarray:
    if to == COMPLEX32:
        return _to_complex32(widen(array))
    if array.dtype == COMPLEX32:
        array = widen(array)
    if to == BFLOAT16:
        return to_bfloat16(widen(array.real if array.dtype.kind == "c" else array))
    if to.kind == "V":
        _check_readable(to)
        return _to_eight_bits(widen(array.real if array.dtype.kind == "c" else array), to)
    if array.dtype.kind == "V":
        _check_readable(array.dtype)
        array = widen(array)
    if array.dtype.kind == "c" and to.kind not in "cb":
        array = array.real
    if array.dtype.kind == "f" and to.kind in "iu" and to.itemsize < 4:
        # PyTorch's result: the low bits of the processor's conversion to int32
        array = array.astype(np.int32)
    if to == HALF and array.dtype.itemsize == 8 and array.dtype.kind == "f":
        array = array.astype(np.float32)  # PyTorch rounds twice
    return array.astype(to, order=_order(array))


def _order(array: np.ndarray) -> Literal["C", "K"]:
    """The memory order of a converted array."""
    return "C" if 0 in array.strides else "K"  # "K" would put expanded dimensions last


_type = type  # `finfo` and `iinfo` have a parameter of that name
_DEFAULT = object()

#: Python scalar type -> the dtype that it means as an argument `dtype=`
OF_PYTHON = {bool: bool_, int: int64, float: float64, complex: complex128}


def of_argument(value: object, caller: str, argument: str = "dtype") -> dtype:
    """The dtype that an argument `dtype=` means: a dtype itself, or that of Python's bool, int, float and complex.

    Args:
        value: what the caller passed.
        caller: the public function, for the message.
        argument: the parameter's name, for the message.

    Raises:
        TypeError: `value` names no dtype.

    >>> of_argument(float, "zeros")
    flambeau.float64
    """
    d = OF_PYTHON.get(value, value) if isinstance(value, _type) else value
    if not isinstance(d, dtype):
        kind = _type(value)
        name = f"numpy.{kind.__name__}" if kind.__module__ == "numpy" else kind.__name__
        raise TypeError(f"{caller}(): argument '{argument}' must be torch.dtype, not {name}")
    return d


def _limits_dtype(type: object, caller: str) -> dtype:
    d = OF_PYTHON.get(type, type) if isinstance(type, _type) else type
    if not isinstance(d, dtype):
        raise TypeError(f"{caller}(): argument 'type' (position 1) must be torch.dtype, not "
                        f"{_type(type).__name__}")
    return d


#: the dtypes whose tensor types C++ prints by their legacy name
_LEGACY_NAMED = frozenset(("Byte", "Char", "Short", "Int", "Long", "Half", "Float", "Double"))


def stream_type_name(d: dtype) -> str:
    """The name of a tensor's type as PyTorch's C++ prints it, in some errors."""
    return f"torch.{d.legacy}" if d.scalar_name in _LEGACY_NAMED else f"CPU{d.scalar_name}Type"


class _Limits:
    """The base of `finfo` and `iinfo`: compared by value, unhashable, not writable."""

    __slots__ = ("bits", "dtype", "max", "min")
    bits: int
    min: float
    max: float
    dtype: str

    def __eq__(self, other: object) -> bool:
        if self.__class__ is not other.__class__:
            return NotImplemented
        return self.dtype == other.dtype

    def __setattr__(self, name: str, value: object) -> None:
        kind = f"'torch.{_type(self).__name__}'"
        if hasattr(self, name):
            raise AttributeError(f"attribute '{name}' of {kind} objects is not writable")
        if not hasattr(_type(self), name):
            raise AttributeError(f"{kind} object has no attribute '{name}'")
        object.__setattr__(self, name, value)


class finfo(_Limits):
    """Limits of a floating point dtype: `bits`, `eps`, `max`, `min`, `tiny`, `smallest_normal`, `resolution`.

    >>> import flambeau as torch
    >>> torch.finfo(torch.float32).eps
    1.1920928955078125e-07
    """

    __slots__ = ("eps", "resolution", "smallest_normal", "tiny")

    def __init__(self, type: dtype = _DEFAULT) -> None:  # type: ignore[assignment]
        d = _default if type is _DEFAULT else _limits_dtype(type, "finfo")
        if d is float4_e2m1fn_x2:
            raise TypeError("bad argument type for built-in operation")
        if not (d.is_floating_point or d.is_complex):
            raise TypeError("torch.finfo() requires a floating point input type. Use torch.iinfo to handle "
                            "'torch.finfo'")  # PyTorch's text: not the dtype
        d = d.to_real()
        self.dtype = d.name
        self.bits = d.itemsize * 8
        if d is bfloat16:
            self.eps, self.max, self.resolution = 2.0**-7, (2 - 2.0**-7) * 2.0**127, 0.01
            self.tiny = 2.0**-126
        elif d in EIGHT_BITS:
            numbers = _float8[0].values(d.name)
            # as in PyTorch, where float8_e5m2fnuz has the eps of float8_e4m3fnuz
            self.eps, smallest_normal = {"float8_e4m3fn": (0.125, 0x08), "float8_e5m2": (0.25, 0x04),
                                         "float8_e4m3fnuz": (0.125, 0x08), "float8_e5m2fnuz": (0.125, 0x04),
                                         "float8_e8m0fnu": (1.0, 0x00)}[d.name]
            self.resolution, self.tiny = 1.0, float(numbers[smallest_normal])
            self.max = float(np.max(numbers[np.isfinite(numbers)]))
        else:
            limits = np.finfo(d.numpy)
            self.eps, self.max, self.tiny = float(limits.eps), float(limits.max), float(limits.tiny)
            self.resolution = float(f"1e-{limits.precision}")  # NumPy's is rounded to the dtype
        self.min, self.smallest_normal = -self.max if d.is_signed else self.tiny, self.tiny

    def __repr__(self) -> str:
        return (f"finfo(resolution={self.resolution:g}, min={self.min:g}, max={self.max:g}, "
                f"eps={self.eps:g}, smallest_normal={self.smallest_normal:g}, tiny={self.tiny:g}, "
                f"dtype={self.dtype})")


class iinfo(_Limits):
    """Limits of an integer dtype: `bits`, `max`, `min`.

    >>> import flambeau as torch
    >>> torch.iinfo(torch.int8).max
    127
    """

    __slots__ = ()

    def __init__(self, type: dtype = _DEFAULT) -> None:  # type: ignore[assignment]
        if type is _DEFAULT:
            raise TypeError('iinfo() missing 1 required positional arguments: "type"')
        d = _limits_dtype(type, "iinfo")
        if d is bool_:
            raise TypeError("torch.bool is not supported by torch.iinfo")
        if d in WITHOUT_DATA or d.category != INTEGER:
            raise TypeError("torch.iinfo() requires an integer input type. Use torch.finfo to handle "
                            "'torch.iinfo'")
        self.dtype = d.name
        self.bits = d.itemsize * 8
        limits = np.iinfo(d.numpy)
        self.min, self.max = int(limits.min), int(limits.max)

    def __repr__(self) -> str:
        return f"iinfo(min={self.min:g}, max={self.max:g}, dtype={self.dtype})"
