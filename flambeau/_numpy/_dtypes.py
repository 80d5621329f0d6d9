"""NumPy's classes of scalars, and dtypes that stand for those of tensors."""

from __future__ import annotations

import builtins
import importlib
from typing import Any, ClassVar

import flambeau as torch

from . import _dtypes_impl


class generic:
    """The root of the classes of scalars; calling one returns an array without dimensions.

    >>> int8(3).dtype
    dtype("int8")
    """

    name: ClassVar[str] = "generic"
    typecode: ClassVar[str]
    torch_dtype: ClassVar[torch.dtype]

    def __new__(cls, value: Any) -> Any:
        arrays = importlib.import_module(f"{__package__}._ndarray")
        if isinstance(value, str) and value in ("inf", "nan"):
            value = float(value)
        return value.astype(cls) if isinstance(value, arrays.ndarray) else arrays.asarray(value, dtype=cls)


def _abstract(name: str, base: type) -> Any:
    return type(name, (base,), {"name": name, "__module__": __name__, "__doc__": f"NumPy's `{name}`."})


number = _abstract("number", generic)
integer = _abstract("integer", number)
inexact = _abstract("inexact", number)
signedinteger = _abstract("signedinteger", integer)
unsignedinteger = _abstract("unsignedinteger", integer)
floating = _abstract("floating", inexact)
complexfloating = _abstract("complexfloating", inexact)

_abstract_dtypes = ["generic", "number", "integer", "signedinteger", "unsignedinteger", "inexact", "floating",
                    "complexfloating"]


def _concrete(name: str, base: type, typecode: str) -> Any:
    return type(name, (base,), {"name": name, "typecode": typecode, "__module__": __name__,
                                "torch_dtype": getattr(torch, name.rstrip("_")), "__doc__": f"NumPy's `{name}`."})


int8 = _concrete("int8", signedinteger, "b")
int16 = _concrete("int16", signedinteger, "h")
int32 = _concrete("int32", signedinteger, "i")
int64 = _concrete("int64", signedinteger, "l")
uint8 = _concrete("uint8", unsignedinteger, "B")
uint16 = _concrete("uint16", unsignedinteger, "H")
uint32 = _concrete("uint32", signedinteger, "I")  # PyTorch's base
uint64 = _concrete("uint64", signedinteger, "L")
float16 = _concrete("float16", floating, "e")
float32 = _concrete("float32", floating, "f")
float64 = _concrete("float64", floating, "d")
complex64 = _concrete("complex64", complexfloating, "F")
complex128 = _concrete("complex128", complexfloating, "D")
bool_ = _concrete("bool_", generic, "?")

intp = int_ = longlong = int64
intc, byte, short = int32, int8, int16
ulonglong, ubyte = uint64, uint8
half, single, double, float_ = float16, float32, float64, float64
csingle = singlecomplex = complex64
cdouble = cfloat = complex_ = complex128

_ALIASES = [
    "intp", "int_", "intc", "byte", "short", "longlong", "ulonglong", "ubyte", "half", "single", "double",
    "float_", "csingle", "singlecomplex", "cdouble", "cfloat", "complex_",
]

#: kind -> classes of scalars
sctypes = {"int": [int8, int16, int32, int64], "uint": [uint8, uint16, uint32, uint64],
           "float": [float16, float32, float64], "complex": [complex64, complex128], "others": [bool_]}

_names = {each.name: each for classes in sctypes.values() for each in classes}
_of_torch = {each.torch_dtype: each for each in _names.values()}
_of_python = {int: int64, float: float64, complex: complex128, builtins.bool: bool_}
#: what a string may say; earlier entries win
_of_string: dict[Any, Any] = {
    **{kind.__name__: each for kind, each in _of_python.items()}, **_of_python,
    "u1": uint8, "i1": int8, "i2": int16, "i4": int32, "i8": int64, "f2": float16, "f4": float32, "f8": float64,
    "c8": complex64, "c16": complex128, **{each.typecode: each for each in _names.values()},
    **{name: globals()[name] for name in _ALIASES}, **_names}

typecodes = {"All": "efdFDBbhil?", "AllFloat": "efdFD", "AllInteger": "Bbhil", "Integer": "bhil",
             "UnsignedInteger": "B", "Float": "efd", "Complex": "FD"}


def sctype_from_torch_dtype(torch_dtype: torch.dtype) -> Any:
    """The class of scalars of a tensor's dtype."""
    return _of_torch[torch_dtype]


class DType:
    """A dtype of arrays.

    Args:
        arg: a dtype of tensors, a tensor, a class of scalars, a dtype, what has one, or a name.

    Raises:
        TypeError: it is nothing of this.

    >>> DType("i4"), DType(torch.float32) == "float32", DType(float).itemsize
    (dtype("int32"), True, 8)
    """

    _scalar_type: Any

    def __init__(self, arg: Any) -> None:
        kind: Any
        if isinstance(arg, torch.dtype):
            kind = _of_torch[arg]
        elif isinstance(arg, torch.Tensor):
            kind = _of_torch[arg.dtype]
        elif issubclass_(arg, generic):
            kind = arg
        elif isinstance(arg, DType):
            kind = arg._scalar_type
        elif hasattr(arg, "dtype"):
            kind = arg.dtype._scalar_type
        elif arg in _of_string:
            kind = _of_string[arg]
        else:
            raise TypeError(f"data type {arg!r} not understood")
        self._scalar_type = kind

    @property
    def name(self) -> str:
        """Its name."""
        name: str = self._scalar_type.name
        return name

    @property
    def type(self) -> Any:
        """The class of its scalars."""
        return self._scalar_type

    @property
    def kind(self) -> str:
        """The first letter of its name."""
        return self.name[0]

    @property
    def typecode(self) -> str:
        """NumPy's letter of it."""
        code: str = self._scalar_type.typecode
        return code

    @property
    def torch_dtype(self) -> torch.dtype:
        """The dtype of tensors."""
        dtype: torch.dtype = self._scalar_type.torch_dtype
        return dtype

    @property
    def itemsize(self) -> int:
        """The bytes of an element."""
        return self.torch_dtype.itemsize

    def __eq__(self, other: object) -> bool:
        try:
            return self._scalar_type is DType(other)._scalar_type
        except TypeError:
            return False

    def __hash__(self) -> int:
        return hash(self.name)

    def __repr__(self) -> str:
        return f'dtype("{self.name}")'

    def __getstate__(self) -> Any:
        return self._scalar_type.torch_dtype  # the classes are made by a function: pickle would not find them by name

    def __setstate__(self, value: Any) -> None:
        self._scalar_type = _of_torch[value]


def dtype(arg: Any) -> DType:
    """The dtype that something stands for (`DType`); None is the default of floating point.

    >>> dtype(None)
    dtype("float64")
    """
    return DType(_dtypes_impl.default_dtypes().float_dtype if arg is None else arg)


def set_default_dtype(fp_dtype: Any = "numpy", int_dtype: Any = "numpy") -> Any:
    """Set the dtypes of numbers that have none; complex ones take twice the bytes of floating point, or 8.

    Args:
        fp_dtype: "numpy" (float64), "pytorch" (float32), or a dtype.
        int_dtype: "numpy", "pytorch" (both int64), or a dtype.

    Returns: the function that returns the present ones.
    """
    names = {"numpy": torch.float64, "pytorch": torch.float32}
    floating_dtype = names[fp_dtype] if fp_dtype in ("numpy", "pytorch") else dtype(fp_dtype).torch_dtype
    integer_dtype = torch.int64 if int_dtype in ("numpy", "pytorch") else dtype(int_dtype).torch_dtype
    complex_dtype = {torch.float64: torch.complex128, torch.float32: torch.complex64,
                     torch.float16: torch.complex64}[floating_dtype]
    _dtypes_impl.set_defaults(_dtypes_impl.DefaultDTypes(floating_dtype, complex_dtype, integer_dtype))
    return _dtypes_impl.default_dtypes


def issubclass_(arg: Any, klass: type) -> bool:
    """Whether it is a class that is derived from another one.

    >>> issubclass_(3, int)
    False
    """
    return isinstance(arg, type) and issubclass(arg, klass)


def issubdtype(arg1: Any, arg2: Any) -> bool:
    """Whether the first dtype is the second one or one of its kind.

    >>> issubdtype("float32", floating), issubdtype(int, "floating")
    (True, False)
    """
    kinds = []
    for arg in (arg1, arg2):
        each = globals()[arg] if isinstance(arg, str) and arg in _abstract_dtypes else arg
        kinds.append(each if issubclass_(each, generic) else dtype(each).type)
    return issubclass(kinds[0], kinds[1])


__all__ = [
    "DType",
    "bool_",
    "byte",
    "cdouble",
    "cfloat",
    "complex64",
    "complex128",
    "complex_",
    "complexfloating",
    "csingle",
    "double",
    "dtype",
    "float16",
    "float32",
    "float64",
    "float_",
    "floating",
    "generic",
    "half",
    "inexact",
    "int8",
    "int16",
    "int32",
    "int64",
    "int_",
    "intc",
    "integer",
    "intp",
    "issubdtype",
    "longlong",
    "number",
    "sctypes",
    "set_default_dtype",
    "short",
    "signedinteger",
    "single",
    "singlecomplex",
    "typecodes",
    "ubyte",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "ulonglong",
    "unsignedinteger",
]
