"""`torch._library.utils`: questions about operators and schemas that packages ask."""

from __future__ import annotations

import typing
from typing import Any

from .._tensor import Tensor
from ..ops.overloads import OpOverload
from ..ops.schemas import FunctionSchema
from .registry import operator_named

__all__ = ["is_functional_schema", "is_tensorlist_like_type", "lookup_op", "parse_namespace"]


def lookup_op(qualname: str) -> OpOverload:
    """The overload of a qualified name, `mylib::foo` or `mylib::foo.overload`.

    Raises:
        AttributeError: there is none.
    """
    parse_namespace(qualname)
    try:
        return operator_named(qualname)
    except RuntimeError as error:
        raise error.__context__ or error from None


def parse_namespace(qualname: str) -> tuple[str, str]:
    """The namespace and the name in `namespace::name`.

    Raises:
        ValueError: it has another form.
    """
    parts = qualname.split("::")
    if len(parts) != 2:
        raise ValueError(f"Expected `qualname` to be of the form \"namespace::name\", but got {qualname}. The qualname "
                         "passed to the torch.library APIs must consist of a namespace and a name, e.g. aten::sin")
    return parts[0], parts[1]


def is_functional_schema(schema: Any) -> bool:
    """Whether an operator writes to no argument, returns something, and returns no argument.

    >>> from flambeau._library.utils import is_functional_schema
    >>> [is_functional_schema(f"a::b({x}) -> Tensor") for x in ("Tensor x", "Tensor(a!) x")]
    [True, False]
    """
    if isinstance(schema, str):
        schema = FunctionSchema(schema)
    aliases = [each.alias_info for each in (*schema.arguments, *schema.returns)]
    return not any(alias is not None for alias in aliases) and bool(schema.returns) and str(
        schema.returns[0].type) not in ("", "()")


def is_tensorlist_like_type(typ: Any) -> bool:
    """Whether a type in a schema is a list of tensors, or of optional ones."""
    text = str(typ)
    return text in ("Tensor[]", "Tensor?[]", "Tensor[]?", "Tensor?[]?", "List[Tensor]", "List[Optional[Tensor]]",
                    "Optional[List[Tensor]]", "Optional[List[Optional[Tensor]]]") or typ in (
        list[Tensor], typing.List[Tensor])  # noqa: UP006
