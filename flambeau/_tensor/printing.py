"""`repr` and `format` of tensors, identical to PyTorch's.

One number format (integral, fixed or scientific) and one width are chosen for all elements shown. A large tensor is
first cut to its edge items, so the cost does not depend on its size. Only the NumPy array is read: printing runs no
operator and records nothing.
"""

from __future__ import annotations

from contextlib import contextmanager
from math import inf, isfinite
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import config, dtypes
from ..backends.sparse_array import CooArray, SparseArray
from ..modes import active_transforms, forward_levels, special, transform_stack
from .dispatch.handlers import host_elements
from .meta import lacks_elements
from .tensor import Tensor, transform_depth
from .tracer_notifications import notify_read

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

_HOME = __name__.partition(".")[0]


class _PrintOptions:
    """The options of `set_printoptions`."""

    __slots__ = ("edgeitems", "linewidth", "precision", "sci_mode", "threshold")

    def __init__(self) -> None:
        self.precision: int = 4
        self.threshold: float = 1000
        self.edgeitems: int = 3
        self.linewidth: int = 80
        self.sci_mode: bool | None = None


PRINT_OPTS = _PrintOptions()

_PROFILES: dict[str, dict[str, float]] = {
    "default": {"precision": 4, "threshold": 1000, "edgeitems": 3, "linewidth": 80},
    "short": {"precision": 2, "threshold": 1000, "edgeitems": 2, "linewidth": 80},
    "full": {"precision": 4, "threshold": inf, "edgeitems": 3, "linewidth": 80},
}


def set_printoptions(
    precision: int | None = None,
    threshold: float | None = None,
    edgeitems: int | None = None,
    linewidth: int | None = None,
    profile: str | None = None,
    sci_mode: bool | None = None,
) -> None:
    """Set the options for printing tensors.

    Args:
        precision: digits after the point (4).
        threshold: tensors with more elements than this are summarised (1000).
        edgeitems: elements shown at either end of a summarised dimension (3).
        linewidth: characters per line (80).
        profile: "default", "short" or "full": sets the four above; arguments given as well take precedence.
        sci_mode: scientific notation always (True), never (False), or chosen from the values (None). Unlike the
            others it is set by every call: to None if omitted.

    >>> import flambeau as torch
    >>> torch.set_printoptions(precision=2)
    >>> torch.tensor([1.12345])
    tensor([1.12])
    >>> torch.set_printoptions(profile="default")
    """
    chosen: dict[str, Any] = dict(_PROFILES.get(profile or "", {}))
    given = {"precision": precision, "threshold": threshold, "edgeitems": edgeitems, "linewidth": linewidth}
    chosen.update((name, value) for name, value in given.items() if value is not None)
    for name, value in chosen.items():
        setattr(PRINT_OPTS, name, value)
    PRINT_OPTS.sci_mode = sci_mode


def get_printoptions() -> dict[str, Any]:
    """The current print options, as keyword arguments of `set_printoptions`."""
    return {name: getattr(PRINT_OPTS, name)
            for name in ("precision", "threshold", "edgeitems", "linewidth", "sci_mode")}


@contextmanager
def printoptions(**options: Any) -> Iterator[None]:
    """`set_printoptions` for the duration of a `with` block."""
    before = get_printoptions()
    set_printoptions(**options)
    try:
        yield
    finally:
        set_printoptions(**before)


# ----- one element -----------------------------------------------------------------------


def _real_style(values: np.ndarray) -> tuple[Callable[[float], str], int]:
    """The format function for the elements of a float array, and the width to pad to.

    Zeros, infinities and NaN do not influence the choice; they may be wider than the width.
    """
    counted = values[np.isfinite(values) & (values != 0)]
    if not counted.size:
        return _integral, 1
    magnitudes = np.abs(counted)
    low, high = float(magnitudes.min()), float(magnitudes.max())
    wide = high / low > 1000.0 or high > 1.0e8
    integral = bool((counted == np.ceil(counted)).all())
    forced = PRINT_OPTS.sci_mode
    write: Callable[[float], str]
    if forced if forced is not None else wide or (low < 1.0e-4 and not integral):
        write = f"{{:.{PRINT_OPTS.precision}e}}".format
    elif integral:
        write = _integral
    else:
        write = f"{{:.{PRINT_OPTS.precision}f}}".format
    # for each sign the longest text is at one end of the range, in either notation
    width = 1
    for part in (counted[counted < 0], counted[counted > 0]):
        if part.size:
            width = max(width, len(write(float(part.min()))), len(write(float(part.max()))))
    return write, width


def _integral(value: float) -> str:
    return f"{value:.0f}." if isfinite(value) else str(value)


def _texts(array: np.ndarray) -> tuple[list[str], int]:
    """The texts of the elements of a non-empty array, flattened, and the width used for line breaks."""
    if dtypes.is_complex(array.dtype):
        array = dtypes.widen(array)
        real, real_width = _texts(array.real)
        imag, imag_width = _texts(array.imag)
        joined = []
        for a, b in zip(real, imag, strict=True):
            b = b.lstrip()
            joined.append(f"{a}{b}j" if b[0] == "-" else f"{a}+{b}j")
        return joined, real_width + imag_width + 1
    array = dtypes.widen(array)
    values = array.ravel().tolist()
    write: Callable[[Any], str]
    if array.dtype.kind == "f":
        write, width = _real_style(array)
    else:
        write, width = str, max(len(str(array.min())), len(str(array.max())))
    return [write(v).rjust(width) for v in values], width


# ----- nested brackets -------------------------------------------------------------------


def _corners(array: np.ndarray) -> tuple[np.ndarray, tuple[bool, ...]]:
    """The elements to show, and which dimensions are abbreviated."""
    if array.size <= PRINT_OPTS.threshold:
        return array, (False,) * array.ndim
    edge = PRINT_OPTS.edgeitems
    cut = tuple(n > 2 * edge for n in array.shape)
    if not any(cut):
        return array, cut
    indices = [np.r_[:edge, n - edge : n] if c else np.arange(n) for n, c in zip(array.shape, cut, strict=True)]
    return array[np.ix_(*indices)], cut


def _contents(array: np.ndarray, indent: int) -> str:
    """The elements in brackets; lines after the first are indented by `indent` characters."""
    if array.size == 0:
        return "[]"
    if array.size > PRINT_OPTS.threshold and array.ndim and PRINT_OPTS.edgeitems <= 0:
        return "[...]"
    shown, cut = _corners(array)
    if not isinstance(shown, np.ndarray):  # on another device
        shown = shown.get()
    texts, width = _texts(shown)
    if not shown.ndim:
        return texts[0]
    per_line = (PRINT_OPTS.linewidth - indent - (shown.ndim - 1)) // (width + 2)
    return _bracketed(texts, shown.shape, cut, indent, max(1, per_line))


def _bracketed(texts: list[str], shape: tuple[int, ...], cut: tuple[bool, ...], indent: int,
               per_line: int) -> str:
    margin = " " * (indent + 1)
    if len(shape) == 1:
        row = texts
        if cut[0]:
            row = [*texts[: len(texts) // 2], " ...", *texts[len(texts) // 2 :]]
        if len(row) <= per_line:
            return f"[{', '.join(row)}]"
        lines = [", ".join(row[i : i + per_line]) for i in range(0, len(row), per_line)]
        return "[" + f",\n{margin}".join(lines) + "]"
    step = len(texts) // shape[0]
    blocks = [_bracketed(texts[i : i + step], shape[1:], cut[1:], indent + 1, per_line)
              for i in range(0, len(texts), step)]
    if cut[0]:
        blocks.insert(len(blocks) // 2, "...")
    return "[" + ("," + "\n" * (len(shape) - 1) + margin).join(blocks) + "]"


# ----- tensors ---------------------------------------------------------------------------


def _is_library_class(cls: type, name: str) -> bool:
    """Whether `cls` is flambeau's class of that name, which this module cannot import."""
    return cls.__name__ == name and cls.__module__.partition(".")[0] in (_HOME, config.module_name)


def _is_plain(tensor: Any) -> bool:
    return _is_library_class(type(tensor), "Tensor")


def _is_parameter(tensor: Any) -> bool:
    return getattr(tensor, "_is_param", False) or any(_is_library_class(c, "Parameter") for c in type(tensor).__mro__)


def tensor_str(tensor: Any, *, tensor_contents: str | None = None) -> str:
    """`repr` of a tensor: its elements, then every attribute that is not the default.

    Args:
        tensor: any shape, dtype and device.
        tensor_contents: text to show instead of the elements.

    >>> import flambeau as torch
    >>> torch.zeros(2, 3, dtype=torch.float64)
    tensor([[0., 0., 0.],
            [0., 0., 0.]], dtype=flambeau.float64)
    """
    plain = _is_plain(tensor) or _is_library_class(type(tensor), "Parameter")
    prefix = "tensor(" if plain else f"{type(tensor).__name__}("
    dtype, device = tensor.dtype, tensor.device
    meta = lacks_elements(tensor)
    shape = tuple(tensor.shape if meta else tensor._array.shape)
    empty = 0 in shape

    suffixes = []
    if device.type != "cpu":
        suffixes.append(f"device='{device}'")
    sized = meta and (tensor_contents is None or device.type == "meta" or (
        getattr(type(tensor), "_lacks_elements", False)))
    if sized or (PRINT_OPTS.edgeitems == 0 and not empty) or (empty and len(shape) != 1):
        suffixes.append(f"size={shape}")
    sparse = not meta and isinstance(tensor._array, SparseArray)
    if sparse:
        suffixes = [f"size={shape}", f"nnz={tensor._array.nnz}"]
        empty = False
    default = dtypes.get_default_dtype()
    default_dtypes = (default,) if meta or empty else (
        default, dtypes.complex128 if default is dtypes.float64 else dtypes.complex64, dtypes.int64, dtypes.bool_)
    if dtype not in default_dtypes:
        suffixes.append(f"dtype={dtype!r}")
    if sparse:
        suffixes.append(f"layout={tensor._array.layout!r}")
    try:
        grad_fn = tensor.grad_fn
        grad_fn_name = None if grad_fn is None else grad_fn.name().rpartition("::")[2]
    except RuntimeError:  # a view whose history cannot be regenerated after a write to its base
        grad_fn_name = "Invalid"
    if grad_fn_name is not None:
        suffixes.append(f"grad_fn=<{grad_fn_name}>")
    elif tensor.requires_grad:
        suffixes.append("requires_grad=True")
    tangent = _tangent_of(tensor)
    if tangent is not None:
        suffixes.append(f"tangent={tensor_format(tangent, '')}")

    if tensor_contents is None:
        if special[0] and not meta:
            notify_read(tensor, "printing")
        tensor_contents = "..." if meta else (_components if sparse else _contents)(host_elements(tensor), len(prefix))
    text = _with_suffixes(prefix + tensor_contents, suffixes, len(prefix),
                          sparse and tensor._array.__class__ is CooArray) + ")"
    return f"Parameter({text})" if not plain and _is_parameter(tensor) else text


def _tensor_str(self: Any, indent: int) -> str:
    """The elements of a tensor as `repr` shows them, without "tensor(" and attributes (PyTorch's private name).

    Args:
        self: any shape and dtype, dense.
        indent: the column where the text starts, by which its further lines are indented.

    >>> import flambeau as torch
    >>> torch._tensor_str._tensor_str(torch.eye(2), 0)
    '[[1., 0.],\\n [0., 1.]]'
    """
    return "..." if lacks_elements(self) else "[]" if 0 in self._array.shape else _contents(host_elements(self), indent)


def nested_transform_str(tensor: Any, frames: Sequence[Any]) -> str:
    """`repr` of a tensor inside transforms: one wrapper for each transform, the innermost transform's outermost.

    Args:
        frames: the active transforms, outermost first.
    """
    levels = getattr(tensor, "_levels", ())
    value = tensor._value if levels else tensor
    places = dict.fromkeys((level.depth for level in levels), 0)
    shown = getattr(tensor, "_in_dims", ())
    if levels and len(shown) == len(levels):  # an input of `vmap`: in its original layout
        places = {level.depth: place for level, place in zip(levels, shown, strict=True)}
        for k in reversed(range(len(levels))):
            value = value.movedim(k, k + shown[k])
    depth_made = transform_depth(tensor)
    wrappers: list[str] = []
    for depth, frame in enumerate(frames, 1):
        if frame.kind == "vmap":
            if depth in places:
                wrappers.append(f"BatchedTensor(lvl={depth}, bdim={places[depth]}, value=")
        elif depth <= depth_made and frame.kind in ("grad", "jvp"):
            wrappers.append(f"GradTrackingTensor(lvl={depth}, value=")
    wrappers += [f"BatchedTensor(lvl={depth}, bdim={places[depth]}, value=" for depth in places if depth > len(frames)]
    differentiated = any(frame.kind in ("grad", "jvp") for frame in frames[:depth_made])
    text = tensor_str(value.detach() if differentiated else value)
    for opening in wrappers:
        inner = "\n".join("    " + line for line in text.split("\n"))
        text = f"{opening}\n{inner}\n)"
    return text


def _tangent_of(tensor: Any) -> Any:
    """The tangent of the innermost open level; None where there is none."""
    if not getattr(tensor, "_tangents", None):
        return None
    levels = forward_levels & tensor._tangents.keys()
    return tensor._tangents[max(levels)] if levels else None


def _components(array: Any, indent: int) -> str:
    """The components of a sparse array, one below the other."""
    if array.__class__ is CooArray:
        parts = {"indices": array.indices, "values": array.values}
    else:
        names = ("crow_indices", "col_indices") if array.by_row else ("ccol_indices", "row_indices")
        parts = {names[0]: array.compressed, names[1]: array.plain, "values": array.values}
    texts = []
    for name, part in parts.items():
        text = _contents(part, indent + len(f"{name}=tensor("))
        texts.append(f"{name}=tensor({text}" + ("" if part.size else f", size={tuple(part.shape)}") + ")")
    return (",\n" + " " * indent).join(texts)


def _add_suffixes(tensor_str: str, suffixes: list[str], indent: int, force_newline: bool) -> str:
    """Append the attributes of a tensor to its elements and close the parenthesis (PyTorch's private name).

    Args:
        tensor_str: "tensor(" and the elements.
        suffixes: attributes, such as `"dtype=torch.float64"`.
        indent: the column where lines after the first one start.
        force_newline: whether the first attribute has a new line.

    >>> import flambeau as torch
    >>> torch._tensor_str._add_suffixes("tensor([1.]", ["requires_grad=True"], 7, False)
    'tensor([1.], requires_grad=True)'
    """
    return _with_suffixes(tensor_str, suffixes, indent, force_newline) + ")"


def _str_intern(inp: Any, *, tensor_contents: str | None = None) -> str:
    """`repr` of a tensor, with other text for its elements (PyTorch's private name).

    Args:
        inp: any tensor.
        tensor_contents: the text of the elements; the elements themselves if None.

    >>> import flambeau as torch
    >>> torch._tensor_str._str_intern(torch.ones(2), tensor_contents="<2 ones>")
    'tensor(<2 ones>)'
    """
    return tensor_str(inp, tensor_contents=tensor_contents)


def _with_suffixes(text: str, suffixes: list[str], indent: int, new_line: bool = False) -> str:
    """Append suffixes to the last line while they fit, then on new lines; the first one with `new_line`."""
    column = len(text) - text.rfind("\n") + 1
    for suffix in suffixes:
        if new_line or column + len(suffix) + 2 > PRINT_OPTS.linewidth:
            new_line = False
            text += f",\n{' ' * indent}{suffix}"
            column = indent + len(suffix)
        else:
            text += f", {suffix}"
            column += len(suffix) + 2
    return text


def parameter_str(tensor: Any) -> str:
    """`repr` of a parameter.

    >>> import flambeau as torch
    >>> torch.nn.Parameter(torch.ones(2))
    Parameter containing:
    tensor([1., 1.], requires_grad=True)
    """
    return "Parameter containing:\n" + tensor_str(tensor)


def tensor_format(tensor: Any, spec: str) -> str:
    """`format` of a tensor: of the element of a 0-d tensor, else of the `repr`.

    Raises:
        TypeError: a format spec for a tensor with dimensions.
        ValueError: a format spec that the element's type does not support.

    >>> import flambeau as torch
    >>> f"{torch.tensor(3.14159):.2f}"
    '3.14'
    """
    if _is_plain(tensor) and tensor.device.type != "meta" and not tensor._array.ndim:
        if special[0]:
            notify_read(tensor, "format()")
        return format(dtypes.widen(tensor._array).item(), spec)
    return object.__format__(tensor, spec)


def __repr__(self: Tensor, *, tensor_contents: Any = None) -> str:
    if active_transforms[0] and (frames := transform_stack.get()) and tensor_contents is None:
        return nested_transform_str(self, frames)
    return tensor_str(self, tensor_contents=tensor_contents)


METHODS: dict[str, Any] = {"__repr__": __repr__, "__format__": tensor_format}
