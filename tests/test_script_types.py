"""The types of TorchScript: they print, compare and refuse as PyTorch's."""

from __future__ import annotations

import pytest

import flambeau

SIMPLE = ("Any", "Bool", "Complex", "DeviceObj", "Float", "Int", "None", "Number", "PyObject", "StreamObj", "String",
          "Tensor")
TYPES = (*(f"{name}Type.get()" for name in SIMPLE), "ListType.ofInts()", "ListType.ofTensors()",
         "ListType(OptionalType(IntType.get()))", "OptionalType.ofTensor()", "OptionalType(ListType.ofFloats())",
         "FutureType(IntType.get())", "TupleType([IntType.get(), StringType.get()])",
         "DictType(StringType.get(), ListType.ofBools())")
EXPRESSIONS = (*(f"[repr(t), t.str(), t.kind(), t.annotation_str][{i}]" for i in range(4)),
               "t == IntType.get()", "t == t", "t.isSubtypeOf(NumberType.get())", "t.isSubtypeOf(AnyType.get())",
               "t.isSubtypeOf(OptionalType(IntType.get()))")
ERRORS = ("IntType()", "ListType(3)")


def outcome(library, source, t=""):
    try:
        space = names(library)
        return eval(source, space | ({"t": eval(t, space)} if t else {}))
    except Exception as error:
        return f"{type(error).__name__}: {str(error).replace('torch._C.', 'torch.')}"


def names(library):
    return {name: getattr(library, name) for name in (
        *(f"{name}Type" for name in SIMPLE), "ListType", "OptionalType", "FutureType", "TupleType", "DictType")}


@pytest.mark.parametrize("t", TYPES)
def test_types_answer_as_those_of_pytorch(t):
    torch = pytest.importorskip("torch")
    for source in EXPRESSIONS:
        assert outcome(flambeau, source, t) == outcome(torch, source, t), source


@pytest.mark.parametrize("source", ERRORS)
def test_errors_are_those_of_pytorch(source):
    torch = pytest.importorskip("torch")
    assert outcome(flambeau, source) == outcome(torch, source)
