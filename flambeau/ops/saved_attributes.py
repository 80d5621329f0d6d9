"""Names of saved values: what a node's `_saved_*` attributes are called in PyTorch, and where their values are.

A node shows the values that its derivative formulas request under their own names, unless the declaration states the
attributes of PyTorch's node: `saved="dim[] keepdim self_sym_sizes result1=saved[0]"`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, NamedTuple

#: an attribute, its source where it has another name, and what is taken of the source
_ITEM = re.compile(r"(?P<name>\w+)(?:=(?P<source>[\w.]+))?(?P<part>\[\d*\])?")
#: attributes of a tensor's geometry: `self_sym_sizes`, `weight_sym_argsize_minus_1`
_GEOMETRY = re.compile(r"(?P<tensor>\w+?)_(?P<part>sym_sizes|sym_sizes_opt|sym_strides|sym_numel|dim|"
                       r"sym_argsize_(?P<minus>minus_)?(?P<position>\d))")
#: values that do not depend on the call
_LITERALS = {"None": None, "False": False, "0.0": 0.0}

#: which part of its source an attribute is
WHOLE, INTS, ITEM, LITERAL, SIZES, SIZES_OR_ZERO, STRIDES, NUMEL, NDIM, SIZE = range(10)


class SavedAttribute(NamedTuple):
    """One `_saved_*` attribute of a node.

    Attributes:
        name: without the prefix.
        source: the input, output or parameter that it is taken from.
        part: what is taken: WHOLE, INTS (an int or ints as a tuple), ITEM (of a list), LITERAL, or of a tensor's shape
            SIZES, SIZES_OR_ZERO (those of an optional one: (0,) where it was left out), STRIDES, NUMEL, NDIM or SIZE.
        which: of an ITEM or a SIZE its position, of a LITERAL its value.
    """

    name: str
    source: str
    part: int = WHOLE
    which: Any = None

    @property
    def is_of_geometry(self) -> bool:
        """Whether it is taken of the shape or strides of a tensor."""
        return self.part >= SIZES


def parse_saved(text: str, inputs: Sequence[str], outputs: Sequence[str], params: Sequence[str]) -> tuple[
        SavedAttribute, ...]:
    """Parse the attributes that a declaration states.

    Args:
        text: items between spaces. `name` is the input, output or parameter of that name; `name=source` has another
            name here; `name[]` is an int or ints, as a tuple; `name=source[0]` is an item of a list; `name=None` does
            not depend on the call; `<tensor>_sym_sizes`, `_sym_strides`, `_sym_numel`, `_dim` and `_sym_argsize_<n>`
            are taken of an input or output.

    Raises:
        ValueError: a source is none of the operator's.
    """
    known = (*inputs, *outputs, *params)

    def find(name: str) -> str:
        if name not in known:
            name = {"self": inputs[0], "result": "out"}.get(name, name)
        return name if name in known else ""

    attributes = []
    for item in text.split():
        matched = _ITEM.fullmatch(item)
        assert matched is not None, item
        name, part = matched["name"], matched["part"]
        geometry = _GEOMETRY.fullmatch(name)
        if matched["source"] in _LITERALS:
            attributes.append(SavedAttribute(name, "", LITERAL, _LITERALS[matched["source"]]))
        elif geometry is not None and not find(name) and (source := find(matched["source"] or geometry["tensor"])):
            attributes.append(_of_geometry(name, source, geometry))
        elif source := find(matched["source"] or name):
            kind = WHOLE if part is None else INTS if part == "[]" else ITEM
            attributes.append(SavedAttribute(name, source, kind, int(part[1:-1]) if kind == ITEM else None))
        else:
            raise ValueError(f"saved: {item!r} is taken of none of {known}")
    return tuple(attributes)


def _of_geometry(name: str, source: str, matched: re.Match[str]) -> SavedAttribute:
    if matched["position"] is not None:
        position = int(matched["position"])
        return SavedAttribute(name, source, SIZE, -position if matched["minus"] else position)
    parts = {"sym_sizes": SIZES, "sym_sizes_opt": SIZES_OR_ZERO, "sym_strides": STRIDES, "sym_numel": NUMEL,
             "dim": NDIM}
    return SavedAttribute(name, source, parts[matched["part"]])


def constants_of(attributes: Sequence[SavedAttribute], names: Sequence[str], params: Sequence[str],
                 saved_inputs: Sequence[int]) -> set[tuple[str, Any]]:
    """The (kind, input's position or parameter's name) of the constants that attributes are taken of.

    The geometry of a tensor that is saved is that tensor's.
    """
    constants: set[tuple[str, Any]] = set()
    for attribute in attributes:
        if attribute.source in params:
            constants.add(("param", attribute.source))
        elif attribute.is_of_geometry and attribute.source in names:
            at = names.index(attribute.source)
            if at not in saved_inputs:
                constants.add(("strides" if attribute.part == STRIDES else "shape", at))
    return constants


__all__ = ["INTS", "ITEM", "LITERAL", "NDIM", "NUMEL", "SIZE", "SIZES", "SIZES_OR_ZERO", "STRIDES", "WHOLE",
           "SavedAttribute", "constants_of", "parse_saved"]
