"""The types that schemas of defined operators may name."""

from __future__ import annotations

import re

_TYPES = frozenset("""
    Tensor SymInt SymBool int float bool complex Scalar str ScalarType Device DeviceIndex Layout MemoryFormat Generator
    Stream Storage QScheme Any AnyEnumType AnyClassType Capsule ConstQuantizerPtr NoneType None Dict
""".split())  # noqa: SIM905
_INSTEAD = {
    "int64_t": "Use `SymInt` or `int` instead of `int64_t` in an operator's schema string. `SymInt` corresponds to "
               "c10::SymInt in C++ while `int` in schema corresponds to the int64_t type in C++.",
    "double": "Use `float` instead of `double` in an operator's schema string. `float` in schema corresponds to the "
              "double type in C++"}
#: the name at the start of an argument or of a return, wherever one may begin
_TYPE_NAME = re.compile(r"(?:[(,]|->)\s*([A-Za-z_][\w.]*)(?=[\s(\[?,)]|$)")
_ALIASES_AND_DEFAULTS = re.compile(r"(?<=[\w\]?])\([\w*!| ]*(?:->[^()]*)?\)"
                                   r"|=\s*(?:\"[^\"]*\"|'[^']*'|\[[^\]]*\]|[^,()]*)")


def refuse_unknown_types(schema: str) -> None:
    """Raise RuntimeError where a schema names a type that schemas do not have.

    >>> from flambeau._library.schema_types import refuse_unknown_types
    >>> refuse_unknown_types("scale(Tensor(a!) x, float[] by=[1.0], *, str how='a') -> (Tensor y, int)")
    """
    start = schema.find("(")
    head, text = schema[:start], schema[start:]
    text = _ALIASES_AND_DEFAULTS.sub(lambda match: " " * len(match.group()), text)
    for match in _TYPE_NAME.finditer(text):
        name = match.group(1)
        if name in _TYPES or name.startswith("__torch__"):
            continue
        reason = _INSTEAD.get(name, "unknown type specifier. Common valid schema types include Tensor, SymInt, int, "
                              "float, bool, Scalar; for a full list, please see https://github.com/pytorch/pytorch/blob/"
                              "main/aten/src/ATen/native/README.md#func ")
        mark = " " * (len(head) + match.start(1)) + "~" * len(name)
        raise RuntimeError(f"\n{reason}:\n{schema}\n{mark} <--- HERE\n")


__all__ = ["refuse_unknown_types"]
