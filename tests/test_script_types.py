"""The types of TorchScript: they print, compare and refuse as PyTorch's."""

from __future__ import annotations

import importlib

import pytest

import flambeau

SIMPLE = ("Any", "Bool", "Complex", "DeviceObj", "Float", "Int", "None", "Number", "PyObject", "StreamObj", "String",
          "Tensor")
TYPES = (*(f"{name}Type.get()" for name in SIMPLE), "ListType.ofInts()", "ListType.ofTensors()",
         "ListType(OptionalType(IntType.get()))", "OptionalType.ofTensor()", "OptionalType(ListType.ofFloats())",
         "FutureType(IntType.get())", "TupleType([IntType.get(), StringType.get()])", "TupleType([])",
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


VALUES = ("1", "True", "1.5", "1j", "'a'", "None", "t.ones(1)", "t.float32", "t.device('cpu')", "t.strided",
          "[1, None]", "(1, ['a'])", "()", "{'a': [1.0]}", "t.Size([1])", "[1, 2.0]", "[]", "{}", "{1: 'a', 2: 3}",
          "t.contiguous_format", "slice(1)", "range(3)", "[None, 1, 'a']")


@pytest.mark.parametrize("value", VALUES)
def test_inferred_types_are_those_of_pytorch(value):
    torch = pytest.importorskip("torch")
    found = []
    for t in (flambeau, torch):
        inferred = t._C._jit_try_infer_type(eval(value, {"t": t}))
        convert = importlib.import_module(f"{t.__name__}.fx.operator_schemas")._torchscript_type_to_python_type
        found.append((inferred.success(), inferred.reason() if not inferred.success() else (
            repr(inferred.type()), str(convert(inferred.type())).replace("flambeau", "torch"))))
    assert found[0] == found[1]
