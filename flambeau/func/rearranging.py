"""`func.rearrange`: dimensions permuted, split and joined by a pattern such as "b h w c -> b (h w) c"."""

from __future__ import annotations

import keyword
import warnings
from functools import lru_cache
from math import prod
from typing import Any

from .._tensor import Tensor
from .._tensor import functions as fn

_ELLIPSIS = "\u2026"  # one character, so that a pattern is read by characters


class _Side:
    """One side of a pattern: a list of names for each dimension, a string for the ellipsis."""

    def __init__(self, text: str) -> None:
        self.dims: list[list[str] | str] = []
        self.names: list[str] = []
        self.has_numbers = False
        self.ellipsis_in_parentheses = False
        if "." in text:
            if "..." not in text:
                raise ValueError("Expression may contain dots only inside ellipsis (...)")
            if text.count("...") != 1 or text.count(".") != 3:
                raise ValueError("Expression may contain dots only inside ellipsis (...); only one ellipsis for "
                                 "tensor ")
        group: list[str] | None = None
        name = ""
        for char in (*text.replace("...", _ELLIPSIS), " "):
            if char.isalnum() or char in ("_", _ELLIPSIS):
                name += char
                continue
            if char not in "() ":
                raise ValueError(f"Unknown character '{char}'")
            if name:
                self._add(name, group)
            name = ""
            if char == "(":
                if group is not None:
                    raise ValueError("Axis composition is one-level (brackets inside brackets not allowed)")
                group = []
            elif char == ")":
                if group is None:
                    raise ValueError("Brackets are not balanced")
                self.dims.append(group)
                group = None
        if group is not None:
            raise ValueError(f"Imbalanced parentheses in expression: '{text.replace('...', _ELLIPSIS)}'")

    def _add(self, name: str, group: list[str] | None) -> None:
        if name in self.names:
            raise ValueError(f"Indexing expression contains duplicate dimension '{name}'")
        if name.isdecimal() and int(name) == 1:
            if group is None:
                self.dims.append([])
            return
        if name.isdecimal():
            if int(name) < 1:
                raise ValueError(f"Anonymous axis should have positive length, not {int(name)}")
            self.has_numbers = True
        elif name == _ELLIPSIS:
            self.ellipsis_in_parentheses = group is not None
        else:
            _check_name(name)
        self.names.append(name)
        if group is not None:
            group.append(name)
        else:
            self.dims.append(name if name == _ELLIPSIS else [name])


def _check_name(name: str) -> None:
    if not name.isidentifier():
        raise ValueError(f"Invalid axis identifier: {name}\nnot a valid python identifier")
    if name[0] == "_" or name[-1] == "_":
        raise ValueError(f"Invalid axis identifier: {name}\naxis name should should not start or end with underscore")
    if keyword.iskeyword(name):
        warnings.warn(f"It is discouraged to use axes names that are keywords: {name}", RuntimeWarning, stacklevel=2)
    if name == "axis":
        warnings.warn("It is discouraged to use 'axis' as an axis name and will raise an error in future",
                      FutureWarning, stacklevel=2)


@lru_cache(256)
def _parsed(pattern: str, lengths: tuple[str, ...]) -> tuple[_Side, _Side]:
    sides = pattern.split("->")
    if len(sides) != 2:
        raise ValueError("Pattern must contain a single '->' separator")
    left, right = map(_Side, sides)
    if _ELLIPSIS in right.names and _ELLIPSIS not in left.names:
        raise ValueError(f"Ellipsis found in right side, but not left side of a pattern {pattern}")
    if left.ellipsis_in_parentheses:
        raise ValueError(f"Ellipsis is parenthesis in the left side is not allowed: {pattern}")
    if left.has_numbers or right.has_numbers:
        raise ValueError("rearrange only supports unnamed axes of size 1")
    difference = set(left.names) ^ set(right.names)
    if difference:
        raise ValueError(f"Identifiers only on one side of rearrange expression (should be on both): {difference}")
    unknown = set(lengths) - set(left.names)
    if unknown:
        raise ValueError(f"Identifiers not found in rearrange expression: {unknown}")
    return left, right


def rearrange(tensor: Any, pattern: str, **axes_lengths: int) -> Tensor:
    """Permute, split and join dimensions by a pattern, as `einops.rearrange`.

    Source: https://einops.rocks/api/rearrange

    Args:
        tensor: a tensor, or a sequence of tensors, which are stacked.
        pattern: the dimensions before and after, "b (h k) -> (b h) k"; "..." for several.
        axes_lengths: the sizes of names in parentheses.

    Raises:
        ValueError: the pattern is wrong, or does not fit the tensor.

    >>> import flambeau as torch
    >>> torch.func.rearrange(torch.arange(6), "(h w) -> w h", h=2).tolist()
    [[0, 3], [1, 4], [2, 5]]
    """
    if not isinstance(tensor, Tensor):
        tensor = fn.stack(tensor)
    for length in axes_lengths.values():
        if type(length) is not int:
            raise TypeError(f"rearrange axis lengths must be integers, got: {type(length)}")
    left, right = _parsed(pattern, tuple(axes_lengths))
    shape = list(tensor.shape)
    written = len(left.dims) - (_ELLIPSIS in left.names)
    if _ELLIPSIS in left.names:
        if written > len(shape):
            raise ValueError(f"Number of dimensions in pattern ({written}) must be less than or equal to the number of "
                             f"dimensions in the tensor ({len(shape)})")
    elif written != len(shape):
        raise ValueError(f"Number of dimensions in pattern ({written}) must be equal to the number of dimensions in "
                         f"the tensor ({len(shape)})")
    sizes: list[int] = []  # of all names, in the order of the left side
    places: dict[str, list[int]] = {}  # name -> its positions in `sizes`
    position = 0
    for dim in left.dims:
        if isinstance(dim, str):
            count = len(shape) - written
            places[dim] = list(range(len(sizes), len(sizes) + count))
            sizes += shape[position:position + count]
            position += count
            continue
        given = [axes_lengths.get(name, -1) for name in dim]
        known = prod(n for n in given if n >= 0)
        if given.count(-1) == 1 and known:
            given[given.index(-1)] = shape[position] // known
        if -1 in given or prod(given) != shape[position]:
            raise ValueError(f"Shape mismatch, can't divide axis of length {shape[position]} in chunks of "
                             f"{axes_lengths or given}")
        for name, size in zip(dim, given, strict=True):
            places[name] = [len(sizes)]
            sizes.append(size)
        position += 1
    order = [place for dim in right.dims for name in dim for place in places[name]]
    joined: list[int] = []
    for dim in right.dims:
        if isinstance(dim, str):
            joined += [sizes[place] for place in places[dim]]
        else:
            joined.append(prod(sizes[place] for name in dim for place in places[name]))
    return tensor.reshape(sizes).permute(order).reshape(joined)
