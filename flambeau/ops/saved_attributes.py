"""Names of saved values: what a node's `_saved_*` attributes are called in PyTorch, and where their values are.

A node shows the values that its derivative formulas request under their own names, unless the declaration states the
attributes of PyTorch's node: `saved="dim[] keepdim self_sym_sizes result1=saved[0]"`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

#: values that do not depend on the call
_LITERALS = {"None": None, "False": False, "0.0": 0.0}

#: which part of its source an attribute is
WHOLE, INTS, ITEM, LITERAL, SIZES, SIZES_OR_ZERO, STRIDES, NUMEL, NDIM, SIZE = range(10)
#: how the names of attributes of a tensor's geometry end
_GEOMETRY = {"_sym_sizes": SIZES, "_sym_sizes_opt": SIZES_OR_ZERO, "_sym_strides": STRIDES, "_sym_numel": NUMEL,
             "_dim": NDIM}


class SavedAttribute:
    """One `_saved_*` attribute of a node.

    Args:
        name: without the prefix.
        source: the input, output or parameter that it is taken from.
        part: what is taken: WHOLE, INTS (an int or ints as a tuple), ITEM (of a list), LITERAL, or of a tensor's shape
            SIZES, SIZES_OR_ZERO (those of an optional one: (0,) where it was left out), STRIDES, NUMEL, NDIM or SIZE.
        which: of an ITEM or a SIZE its position, of a LITERAL its value.
    """

    __slots__ = ("name", "part", "source", "which")

    def __init__(self, name: str, source: str, part: int = WHOLE, which: Any = None) -> None:
        self.name, self.source, self.part, self.which = name, source, part, which

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
        named, bracket, index = item.partition("[")
        name, _, given = named.partition("=")
        tensor, part, which = _geometry_of(name)
        if given in _LITERALS:
            attributes.append(SavedAttribute(name, "", LITERAL, _LITERALS[given]))
        elif part != WHOLE and not find(name) and (source := find(given or tensor)):
            attributes.append(SavedAttribute(name, source, part, which))
        elif source := find(given or name):
            if not bracket:
                attributes.append(SavedAttribute(name, source))
            elif index == "]":
                attributes.append(SavedAttribute(name, source, INTS))
            else:
                attributes.append(SavedAttribute(name, source, ITEM, int(index[:-1])))
        else:
            raise ValueError(f"saved: {item!r} is taken of none of {known}")
    return tuple(attributes)


def _geometry_of(name: str) -> tuple[str, int, int | None]:
    """The tensor, the part and the position of an attribute such as `self_sym_sizes` or `weight_sym_argsize_minus_1`.

    The part of other names is WHOLE.
    """
    for suffix, part in _GEOMETRY.items():
        if name.endswith(suffix):
            return name[:-len(suffix)], part, None
    tensor, size, position = name.partition("_sym_argsize_")
    if not size:
        return name, WHOLE, None
    minus = position.startswith("minus_")
    return tensor, SIZE, -int(position[6:]) if minus else int(position)


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
