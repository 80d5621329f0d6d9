"""`torch.Tag`, and the tags of PyTorch's operators, `torch.ops.aten.add.Tensor.tags`, from `aten_tags.txt`."""

from __future__ import annotations

import enum
import functools
import os
from typing import Any

from .schemas import FunctionSchema


class Numbered(enum.Enum):
    """The base of PyTorch's enumerations: members convert to int, and are equal to members only."""

    def __int__(self) -> int:
        return int(self.value)

    __index__ = __int__


_enumeration: Any = Numbered
#: what `torch.ops` operators are marked with
Tag = _enumeration("Tag", """
    core cudagraph_unsafe data_dependent_output dynamic_output_shape flexible_layout generated inplace inplace_view
    maybe_aliasing_or_mutating needs_contiguous_strides needs_exact_strides needs_fixed_stride_order
    nondeterministic_bitwise nondeterministic_seeded out out_variant pointwise pt2_compliant_tag reduction view_copy
""", module="torch", start=0)
Tag.__doc__ = """A property of an operator of `torch.ops`.

>>> import flambeau as torch
>>> torch.Tag.pointwise.name
'pointwise'
"""

#: the tag of all operators of PyTorch's
_OF_ALL = "pt2_compliant_tag"


@functools.cache
def _operators_by_tag() -> dict[str, frozenset[str]]:
    """Tag -> the operators that have it."""
    found: dict[str, frozenset[str]] = {}
    with open(os.path.join(os.path.dirname(__file__), "aten_tags.txt"), encoding="utf-8") as lines:
        for line in lines:
            tag, _, names = line.partition(":")
            found[tag] = frozenset(names.split())
    return found


def aten_tags(name: str, schema: FunctionSchema) -> list[Any]:
    """The tags of one of PyTorch's operators by its name without the namespace, `add.Tensor`."""
    found = {_OF_ALL, *(tag for tag, names in _operators_by_tag().items() if name in names)}
    if any(argument.is_out for argument in schema.arguments):
        found.add("out")
    return [Tag[tag] for tag in sorted(found)]


__all__ = ["Numbered", "Tag", "aten_tags"]
