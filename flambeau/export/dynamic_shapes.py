"""Dynamic shapes: which sizes of the inputs may differ from those of the example, and in which range."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, NamedTuple

from ..compiler.errors import UserError as UserError
from ..utils._pytree import (
    BUILTIN_TYPES,
    SUPPORTED_NODES,
    _get_node_type,
    tree_map,
)

__all__ = ["AdditionalInputs", "Constraint", "Dim", "ShapesCollection", "ValueRanges", "dims",
           "refine_dynamic_shapes_from_suggested_fixes"]

#: the largest size of a dimension without a bound
INFINITY = 2**63 - 1
#: what PyTorch's errors of constraints end with
ADVICE = ("\n\nThe error above occurred when calling torch.export.export. If you would like to view some more "
           "information about this error, and get a list of all other errors that may occur in your export call, you "
           "can replace your `export()` call with `draft_export()`.")


class _DimHint:
    """A dimension without a name: `Dim.AUTO`, `Dim.DYNAMIC` or `Dim.STATIC`."""

    def __init__(self, kind: str, min: int | None = None, max: int | None = None) -> None:
        self.kind, self.min, self.max = kind, min, max

    def __call__(self, min: int | None = None, max: int | None = None) -> _DimHint:
        if self.kind == "STATIC":
            raise TypeError("'_DimHint' object is not callable")
        return _DimHint(self.kind, min, max)

    def __repr__(self) -> str:
        bounds = "".join(f", {name}={value}" for name, value in (("min", self.min), ("max", self.max))
                         if value is not None)
        return f"DimHint({self.kind}{bounds})"


class Dim:
    """A dimension whose size may differ from that of the example.

    Args:
        name: its name; equal names mean equal sizes.
        min, max: the smallest and the largest size.

    Source: https://docs.pytorch.org/docs/stable/export.html#torch.export.dynamic_shapes.Dim

    >>> import flambeau as torch
    >>> torch.export.Dim("batch", min=1, max=64)
    Dim('batch', min=1, max=64)
    """

    AUTO = _DimHint("AUTO")
    DYNAMIC = _DimHint("DYNAMIC")
    STATIC = _DimHint("STATIC")

    def __init__(self, name: str, *, min: int | None = None, max: int | None = None) -> None:
        low, high = 0 if min is None else min, INFINITY if max is None else max
        if high <= low:
            raise AssertionError(f"Cannot create Dim with inconsistent min={min}, max={max}")
        if not name.isidentifier():
            raise AssertionError(f"Dim name must be a valid identifier, got {name}")
        self.__name__, self.min, self.max = name, low, high

    def __repr__(self) -> str:
        parts = [repr(self.__name__)]
        parts += [f"min={self.min}"] if self.min != 2 else []
        parts += [f"max={self.max}"] if self.max < INFINITY else []
        return f"Dim({', '.join(parts)})"

    def _derive(self, factor: int, offset: int) -> DerivedDim:
        return DerivedDim(self, factor, offset)

    def __add__(self, other: int) -> DerivedDim:
        return self._derive(1, _whole(other, "+"))

    __radd__ = __add__

    def __sub__(self, other: int) -> DerivedDim:
        return self._derive(1, -_whole(other, "-"))

    def __mul__(self, other: int) -> DerivedDim:
        if not isinstance(other, int) or other <= 0:
            raise NotImplementedError(f"Attempted to multiply {other} with {self.__name__}, where a positive integer "
                                      "was expected. (Only increasing linear operations with integer coefficients are "
                                      "supported.)")
        return self._derive(other, 0)

    __rmul__ = __mul__


def _whole(other: Any, sign: str) -> int:
    if not isinstance(other, int):
        raise NotImplementedError(f"Attempted to {'add' if sign == '+' else 'subtract'} {other}, where an integer was "
                                  "expected. (Only increasing linear operations with integer coefficients are "
                                  "supported.)")
    return other


class DerivedDim(Dim):
    """A size that is `factor * root + offset`.

    Args:
        root: the dimension that it depends on.
    """

    def __init__(self, root: Dim, factor: int, offset: int) -> None:
        self.root, self.factor, self.offset = root, factor, offset
        scaled = root.__name__ if factor == 1 else f"{factor}*{root.__name__}"
        shift = "" if not offset else f" + {offset}" if offset > 0 else f" - {-offset}"
        self.__name__ = scaled + shift
        self.min = root.min * factor + offset
        self.max = INFINITY if root.max >= INFINITY else root.max * factor + offset

    def __repr__(self) -> str:
        return self.__name__

    def _derive(self, factor: int, offset: int) -> DerivedDim:
        return DerivedDim(self.root, self.factor * factor, self.offset * factor + offset)


class Constraint(NamedTuple):
    """The range of a dimension of an input.

    >>> import flambeau as torch
    >>> torch.export.Constraint("x", 0, 2, 64)
    Constraint(name='x', dim=0, min=2, max=64)
    """

    name: str
    dim: int
    min: int
    max: int


class ValueRanges(NamedTuple):
    """The range of a size."""

    lower: int
    upper: int

    def __repr__(self) -> str:
        return f"VR[{self.lower}, {'int_oo' if self.upper >= INFINITY else self.upper}]"

    def __str__(self) -> str:
        return repr(self)


def value_ranges(lower: int, upper: int) -> ValueRanges:
    """The range of a size."""
    return ValueRanges(lower, upper)


def dims(*names: str, min: int | None = None, max: int | None = None) -> tuple[Dim, ...]:
    """Dimensions of the same range.

    >>> import flambeau as torch
    >>> torch.export.dims("height", "width", max=512)
    (Dim('height', min=0, max=512), Dim('width', min=0, max=512))
    """
    return tuple(Dim(name, min=min, max=max) for name in names)


class ShapesCollection:
    """Dynamic shapes by tensor instead of by position.

    >>> import flambeau as torch
    >>> x = torch.ones(3, 2)
    >>> shapes = torch.export.ShapesCollection()
    >>> shapes[x] = {0: torch.export.Dim("batch")}
    >>> shapes.dynamic_shapes(torch.nn.Linear(2, 2), (x,))
    {'input': {0: Dim('batch', min=0)}}
    """

    def __init__(self) -> None:
        self._shapes: dict[int, Any] = {}
        self._tensors: list[Any] = []

    def __setitem__(self, t: Any, shape: Any) -> None:
        if id(t) in self._shapes and self._shapes[id(t)] != shape:
            raise AssertionError("Shapes assigned to input is a mismatch")
        self._shapes[id(t)] = shape
        self._tensors.append(t)

    def __getitem__(self, t: Any) -> Any:
        return self._shapes.setdefault(id(t), {})

    def __len__(self) -> int:
        return len(self._shapes)

    def dynamic_shapes(self, m: Any, args: tuple[Any, ...], kwargs: dict[str, Any] | None = None) -> Any:
        """The argument `dynamic_shapes` for arguments of a module."""
        bound = combined_arguments(m, args, kwargs)
        return {name: _shapes_like(lambda x: self._shapes.get(id(x)), value) for name, value in bound.items()}


class AdditionalInputs:
    """Dynamic shapes from further examples: a size that differs between examples is dynamic.

    >>> import flambeau as torch
    >>> more = torch.export.AdditionalInputs()
    >>> more.add((torch.ones(5, 2),))
    >>> more.dynamic_shapes(torch.nn.Linear(2, 2), (torch.ones(3, 2),))
    {'input': (DimHint(DYNAMIC), None)}
    """

    def __init__(self) -> None:
        self._examples: list[tuple[tuple[Any, ...], dict[str, Any]]] = []

    def add(self, args: tuple[Any, ...], kwargs: dict[str, Any] | None = None) -> None:
        """Add an example."""
        self._examples.append((tuple(args), kwargs or {}))

    def verify(self, ep: Any) -> None:
        """Check that a program takes each example.

        Args:
            ep: the exported program.

        Raises:
            RuntimeError: an example has a size that the program does not take.
        """
        module = ep.module()
        for args, kwargs in self._examples:
            module(*args, **kwargs)

    def dynamic_shapes(self, m: Any, args: tuple[Any, ...], kwargs: dict[str, Any] | None = None) -> Any:
        """The argument `dynamic_shapes` for arguments of a module."""
        first = combined_arguments(m, args, kwargs)
        others = [combined_arguments(m, *example) for example in self._examples]

        def shape_of(x: Any, *alternatives: Any) -> Any:
            if not hasattr(x, "shape"):
                return None
            return tuple(Dim.DYNAMIC if any(o.shape[i] != n for o in alternatives) else None
                         for i, n in enumerate(x.shape))

        return {name: _shapes_like(shape_of, value, *(o[name] for o in others)) for name, value in first.items()}


def _shapes_like(shape_of: Callable[..., Any], value: Any, *others: Any) -> Any:
    """What a function says of each leaf, in the form of `dynamic_shapes`: registered classes are lists of children."""
    children = registered_children(value)
    if children is not None:
        value, others = children, tuple(map(registered_children, others))

    def visit(leaf: Any, *same: Any) -> Any:
        return shape_of(leaf, *same) if registered_children(leaf) is None else _shapes_like(shape_of, leaf, *same)

    return tree_map(visit, value, *others, is_leaf=lambda x: registered_children(x) is not None)


def registered_children(value: Any) -> list[Any] | None:
    """The children of an object of a registered class; None for Python's own containers and for leaves."""
    kind = _get_node_type(value)
    if kind in BUILTIN_TYPES or kind not in SUPPORTED_NODES:
        return None
    return list(SUPPORTED_NODES[kind].flatten_fn(value)[0])


def refine_dynamic_shapes_from_suggested_fixes(msg: str, dynamic_shapes: Any) -> Any:
    """Refuse: flambeau's errors suggest no dynamic shapes.

    Raises:
        NotImplementedError: always.
    """
    raise NotImplementedError("flambeau's errors suggest no dynamic shapes")


def combined_arguments(f: Any, args: tuple[Any, ...], kwargs: dict[str, Any] | None = None,
                       check: bool = False) -> dict[str, Any]:
    """The arguments of a module or function by name.

    Args:
        check: whether arguments that do not fit raise.
    """
    function: Callable[..., Any] = getattr(f, "forward", f)
    try:
        bound = inspect.signature(function).bind(*args, **(kwargs or {}))
    except (TypeError, ValueError):
        if check:
            raise
        return {**{f"arg{i}": x for i, x in enumerate(args)}, **(kwargs or {})}
    return dict(bound.arguments)
