"""The dynamic sizes that an argument `dynamic_shapes` describes, which must have the structure of the inputs."""

from __future__ import annotations

from typing import Any, NamedTuple

from ..compiler.errors import ConstraintViolationError, UserError, UserErrorType
from ..utils._pytree import tree_leaves
from .dynamic_shapes import (
    ADVICE,
    INFINITY,
    AdditionalInputs,
    DerivedDim,
    Dim,
    ShapesCollection,
    _DimHint,
    combined_arguments,
    registered_children,
)

__all__ = ["DynamicSize", "dynamic_sizes"]


class DynamicSize(NamedTuple):
    """A dimension of an input leaf that may differ: what the program calls it, and its range."""

    leaf: int
    dim: int
    root: str
    factor: int
    offset: int
    min: int
    max: int
    hint: bool
    required: bool = False


def dynamic_sizes(f: Any, args: tuple[Any, ...], kwargs: dict[str, Any], dynamic_shapes: Any) -> list[DynamicSize]:
    """The dynamic dimensions of the leaves of arguments.

    Raises:
        UserError: `dynamic_shapes` has another structure than the arguments, or says something else than sizes.
    """
    if dynamic_shapes is None or (isinstance(dynamic_shapes, (dict, tuple, list)) and not dynamic_shapes):
        return []
    if isinstance(dynamic_shapes, (ShapesCollection, AdditionalInputs)):
        dynamic_shapes = dynamic_shapes.dynamic_shapes(f, args, kwargs)
    if not isinstance(dynamic_shapes, (dict, tuple, list)):
        raise AssertionError(f"expected dynamic_shapes to be dict, tuple, or list, got {type(dynamic_shapes)}")
    bound = combined_arguments(f, args, kwargs)
    if isinstance(dynamic_shapes, dict):
        if set(dynamic_shapes) != set(bound):
            raise _refusal("When `dynamic_shapes` is specified as a dict, its top-level keys must be the arg names "
                           f"{list(bound)} of `inputs`, but here they are {list(dynamic_shapes)}. Alternatively, you "
                           "could also ignore arg names entirely and specify `dynamic_shapes` as a list/tuple matching "
                           "`inputs`.")
        entries = [(name, f"[{name!r}]", dynamic_shapes[name]) for name in bound]
    else:
        if len(dynamic_shapes) != len(bound):
            raise _mismatch("", f"has {len(bound)} elements", f"has {len(dynamic_shapes)} elements")
        entries = [(name, f"[{i}]", shape) for i, (name, shape) in enumerate(zip(bound, dynamic_shapes, strict=True))]
    for name, path, shape in entries:
        _check_structure(bound[name], shape, path)
    positions: dict[int, list[int]] = {}  # of a tensor, which may be several inputs
    for i, leaf in enumerate(tree_leaves((args, kwargs))):
        positions.setdefault(id(leaf), []).append(i)
    found: list[DynamicSize] = []
    for name, path, shape in entries:
        _collect(bound[name], shape, path, f"L[{name!r}]", positions, found)
    return found


def _refusal(message: str) -> UserError:
    error = UserError(UserErrorType.INVALID_INPUT, message, "dynamic_shapes_validation")
    error.args = (f"{error.args[0]}{ADVICE}",)
    return error


def _mismatch(path: str, inputs: str, shapes: str) -> UserError:
    return _refusal("Detected mismatch between the structure of `inputs` and `dynamic_shapes`: "
                    f"`inputs{path}` {inputs}, but `dynamic_shapes{path}` {shapes}")


def _check_structure(value: Any, shape: Any, path: str) -> None:
    """Raise if the containers of an input are not those of its shapes."""
    if registered_children(value) is not None or not isinstance(value, (dict, list, tuple)):
        return
    if not isinstance(shape, (dict, list, tuple)):
        raise _mismatch(path, f"is a {type(value)}", "is not")
    if type(value) is not type(shape):
        raise _mismatch(path, f"is a {type(value)}", f"is a {type(shape)}")
    if len(value) != len(shape):
        raise _mismatch(path, f"has {len(value)} elements", f"has {len(shape)} elements")
    if isinstance(value, dict):
        assert isinstance(shape, dict)
        if value.keys() != shape.keys():
            raise _mismatch(path, f"has keys {list(value)}", f"has keys {list(shape)}")
        for key, child in value.items():
            _check_structure(child, shape[key], f"{path}[{key!r}]")
    else:
        for i, (child, one) in enumerate(zip(value, shape, strict=True)):
            _check_structure(child, one, f"{path}[{i}]")


def _collect(value: Any, shape: Any, path: str, source: str, positions: dict[int, list[int]],
             found: list[DynamicSize]) -> None:
    """Append the dynamic sizes of the tensors in an input."""
    children = registered_children(value)
    if children is not None:  # PyTorch takes the children of a registered class for a list
        if type(shape) is not list:
            raise ValueError(f"Node type mismatch; expected {list}, but got {type(shape)}.")
        if len(shape) != len(children):
            raise ValueError(f"Node arity mismatch; expected {len(children)}, but got {len(shape)}.")
        value = children
    if isinstance(value, dict):
        for key, child in value.items():
            _collect(child, shape[key], f"{path}[{key!r}]", f"{source}[{key!r}]", positions, found)
    elif isinstance(value, (list, tuple)):
        for i, (child, one) in enumerate(zip(value, shape, strict=True)):
            _collect(child, one, f"{path}[{i}]", f"{source}[{i}]", positions, found)
    elif hasattr(value, "shape") and hasattr(value, "dim"):
        leaf = positions[id(value)].pop(0)
        for dim, size in _dimensions(value, shape, path):
            made = _size(leaf, dim, size, value, source)
            if made is not None:
                found.append(made)
    elif type(value) is int:
        _check_number(shape)
    elif shape is not None:
        raise _refusal(f"Cannot associate shape {shape} specified at `dynamic_shapes{path}` to non-tensor type "
                       f"{type(value)} at `inputs{path}` (expected None)")


def _dimensions(value: Any, shape: Any, path: str) -> list[tuple[int, Any]]:
    """The dimensions that a shape describes, with what it says of them."""
    if shape is None:
        return []
    if isinstance(shape, dict):
        items = list(shape.items())
    elif isinstance(shape, (list, tuple)):
        if len(shape) != value.dim():
            raise _refusal(f"Expected dynamic shape spec {shape} specified at `dynamic_shapes{path}` to have the same "
                           f"length as the actual tensor shape {value.shape} (expected {value.dim()}, but got "
                           f"{len(shape)} instead)")
        items = list(enumerate(shape))
    else:
        raise _refusal(f"Unexpected input tensor shape {shape} specified at `dynamic_shapes{path}` (expected either a "
                       "list/tuple of dimensions, or a dict mapping indices to dimensions, where each dimension is an "
                       "int, a Dim, Dim.AUTO, Dim.STATIC, or Dim.DYNAMIC)")
    found = []
    for dim, size in items:
        if size is not None and not isinstance(size, (int, Dim, _DimHint)):
            raise _refusal(f"Unexpected dimension #{dim} in input tensor shape {shape} specified at `dynamic_shapes"
                           f"{path}` (expected None, an int, a Dim, Dim.AUTO, Dim.STATIC, or Dim.DYNAMIC, but got "
                           f"{size!r} instead)")
        if not isinstance(dim, int):
            raise TypeError(f"list indices must be integers or slices, not {type(dim).__name__}")
        if not -value.dim() <= dim < value.dim():
            raise IndexError("list assignment index out of range")
        found.append((dim % value.dim(), size))
    return found


def _check_number(shape: Any) -> None:
    """Raise if an integer among the inputs has a shape."""
    if isinstance(shape, Dim):
        raise ValueError("Unable to specify input integers as dynamic through named Dims. Please use Dim.AUTO/DYNAMIC "
                         "instead.")
    if shape is not None and not isinstance(shape, (int, _DimHint)):
        raise AssertionError("expected dynamic_shape to be None, int, or _DimHint for _IntWrapper, got "
                             f"{type(shape)}")


def _size(leaf: int, dim: int, size: Any, value: Any, name: str) -> DynamicSize | None:
    """What is dynamic of a dimension; None if nothing is."""
    if size is None or isinstance(size, int) or size is Dim.STATIC:
        if size.__class__ is int and size != value.shape[dim]:
            raise ConstraintViolationError(f"Static shape constraint of {size} does not match input size of "
                                           f"{value.shape[dim]}, for {name}.size()[{dim}]{ADVICE}")
        return None
    if isinstance(size, _DimHint):
        if size.kind == "STATIC" or (size.kind == "AUTO" and value.shape[dim] in (0, 1)):
            return None
        low, high = size.min or 0, INFINITY if size.max is None else size.max
        return DynamicSize(leaf, dim, f"_auto_{leaf}_{dim}", 1, 0, low, high, True, size.kind == "DYNAMIC")
    root, factor, offset = (size.root, size.factor, size.offset) if isinstance(size, DerivedDim) else (size, 1, 0)
    if not size.min <= value.shape[dim] <= size.max:
        least, most = max(2, size.min), "int_oo" if size.max >= INFINITY else size.max
        raise ConstraintViolationError(f"{value.shape[dim]} not in range [{least}, {most}]{ADVICE}")
    return DynamicSize(leaf, dim, root.__name__, factor, offset, root.min, root.max, False)
