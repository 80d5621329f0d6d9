"""The types of TorchScript, `torch.TensorType` and others: programs name them in annotations and compare them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

__all__ = ["AnyType", "BoolType", "ComplexType", "DeviceObjType", "DictType", "FloatType", "FutureType", "IntType",
           "ListType", "NoneType", "NumberType", "OptionalType", "PyObjectType", "StreamObjType", "StringType",
           "TensorType", "TupleType", "Type"]


class Type:
    """A type of TorchScript. Types are equal if they print the same.

    >>> import flambeau as torch
    >>> torch.ListType(torch.IntType.get())
    List[int]
    >>> torch.OptionalType(torch.TensorType.get()).kind()
    'OptionalType'
    """

    _name = ""

    def kind(self) -> str:
        """The name of the class."""
        return type(self).__name__

    def str(self) -> str:
        """The type as TorchScript's intermediate representation writes it."""
        return self._name

    @property
    def annotation_str(self) -> Any:
        """The type as an annotation."""
        return repr(self)

    def isSubtypeOf(self, other: Type) -> bool:
        """Whether values of this type are of the other type, too."""
        if self == other or isinstance(other, AnyType):
            return True
        if isinstance(other, OptionalType):
            return isinstance(self, NoneType) or self.isSubtypeOf(other._element)
        return isinstance(other, NumberType) and isinstance(self, (IntType, FloatType, ComplexType))

    def __repr__(self) -> Any:
        return self._name

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Type) and type(self) is type(other) and repr(self) == repr(other)

    __hash__ = None  # type: ignore[assignment]


class _Simple(Type):
    """A type without parameters, of which there is one object."""

    _instance: Any = None

    @classmethod
    def get(cls) -> Any:
        """The type."""
        if cls.__dict__.get("_instance") is None:
            cls._instance = cls.__new__(cls)
        return cls._instance

    def __init__(self) -> None:
        raise TypeError(f"torch._C.{type(self).__name__}: No constructor defined!")


class AnyType(_Simple):
    """The type of all values.

    >>> import flambeau as torch
    >>> torch.AnyType.get()
    Any
    """

    _name = "Any"


class NumberType(_Simple):
    """The type of integers, floats and complex numbers.

    >>> import flambeau as torch
    >>> torch.NumberType.get()
    number
    """

    _name = "number"

    def str(self) -> Any:
        return "Scalar"


class IntType(_Simple):
    """The type of integers.

    >>> import flambeau as torch
    >>> torch.IntType.get()
    int
    """

    _name = "int"


class FloatType(_Simple):
    """The type of floats.

    >>> import flambeau as torch
    >>> torch.FloatType.get()
    float
    """

    _name = "float"


class ComplexType(_Simple):
    """The type of complex numbers.

    >>> import flambeau as torch
    >>> torch.ComplexType.get()
    complex
    """

    _name = "complex"


class BoolType(_Simple):
    """The type of booleans.

    >>> import flambeau as torch
    >>> torch.BoolType.get()
    bool
    """

    _name = "bool"


class StringType(_Simple):
    """The type of strings.

    >>> import flambeau as torch
    >>> torch.StringType.get()
    str
    """

    _name = "str"


class NoneType(_Simple):
    """The type of None.

    >>> import flambeau as torch
    >>> torch.NoneType.get()
    NoneType
    """

    _name = "NoneType"


class TensorType(_Simple):
    """The type of tensors.

    >>> import flambeau as torch
    >>> torch.TensorType.get()
    Tensor
    """

    _name = "Tensor"


class DeviceObjType(_Simple):
    """The type of devices.

    >>> import flambeau as torch
    >>> torch.DeviceObjType.get()
    Device
    """

    _name = "Device"


class StreamObjType(_Simple):
    """The type of streams.

    >>> import flambeau as torch
    >>> torch.StreamObjType.get()
    Stream
    """

    _name = "Stream"


class PyObjectType(_Simple):
    """The type of Python objects that TorchScript does not know.

    >>> import flambeau as torch
    >>> torch.PyObjectType.get()
    PyObject
    """

    _name = "PyObject"


class _WithElement(Type):
    """A type with one parameter."""

    _written = ""

    def __init__(self, element: Type, /) -> None:
        if not isinstance(element, Type):
            raise TypeError("__init__(): incompatible constructor arguments. The following argument types are "
                            f"supported:\n    1. torch._C.{self.kind()}(arg0: torch._C.Type)\n\n"
                            f"Invoked with: {element!r}")
        self._element = element

    def getElementType(self) -> Type:
        """The parameter."""
        return self._element

    def __repr__(self) -> Any:
        return f"{self._name}[{self._element!r}]"

    def str(self) -> Any:
        return self._written.format(self._element.str())


class ListType(_WithElement):
    """The type of lists.

    >>> import flambeau as torch
    >>> torch.ListType(torch.IntType.get())
    List[int]
    """

    _name, _written = "List", "{}[]"

    @staticmethod
    def ofInts() -> ListType:
        """The type of lists of integers."""
        return ListType(IntType.get())

    @staticmethod
    def ofFloats() -> ListType:
        """The type of lists of floats."""
        return ListType(FloatType.get())

    @staticmethod
    def ofBools() -> ListType:
        """The type of lists of booleans."""
        return ListType(BoolType.get())

    @staticmethod
    def ofTensors() -> ListType:
        """The type of lists of tensors."""
        return ListType(TensorType.get())


class FutureType(_WithElement):
    """The type of futures.

    >>> import flambeau as torch
    >>> torch.FutureType(torch.IntType.get())
    Future[int]
    """

    _name, _written = "Future", "Future[{}]"


class OptionalType(_WithElement):
    """The type of values that may be None.

    >>> import flambeau as torch
    >>> torch.OptionalType(torch.IntType.get())
    Optional[int]
    """

    _name, _written = "Optional", "{}?"

    @staticmethod
    def ofTensor() -> OptionalType:
        """The type of tensors that may be None."""
        return OptionalType(TensorType.get())


class _WithMembers(Type):
    """A type with several parameters."""

    _written = ""

    def __init__(self, members: Sequence[Type], /) -> None:
        self._members = list(members)

    def __repr__(self) -> Any:
        return f"{self._name}[{', '.join(map(repr, self._members)) or '()'}]"

    def str(self) -> Any:
        return f"{self._written}({', '.join(member.str() for member in self._members)})"


class TupleType(_WithMembers):
    """The type of tuples.

    >>> import flambeau as torch
    >>> torch.TupleType([torch.IntType.get()])
    Tuple[int]
    """

    _name = "Tuple"

    def elements(self) -> list[Type]:
        """The types of the elements."""
        return self._members


class DictType(_WithMembers):
    """The type of dictionaries.

    >>> import flambeau as torch
    >>> torch.DictType(torch.StringType.get(), torch.IntType.get())
    Dict[str, int]
    """

    _name = _written = "Dict"

    def __init__(self, key: Type, value: Type, /) -> None:
        super().__init__((key, value))

    def getKeyType(self) -> Type:
        """The type of the keys."""
        return self._members[0]

    def getValueType(self) -> Type:
        """The type of the values."""
        return self._members[1]
