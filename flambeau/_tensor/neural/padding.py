"""`pad`: constant, reflect, replicate and circular padding."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...engine.tensor_interface import layer
from ...modes import active_tracer, special
from ...ops.declare import REGISTRY
from ..dispatch.apply import apply
from ..fastpath.repeated_calls import repeated
from ..overriding.other_objects import with_other_object
from ..tensor import Tensor

__all__ = ["pad"]

_CONSTANT_PAD = REGISTRY["constant_pad_nd"]
_INTEGERS = frozenset((int,))

SUPPORTED = """\
Supported combinations for non-constant padding:
  - 2D or 3D input: padding size = 2 (pads last dimension)
  - 3D or 4D input: padding size = 4 (pads last 2 dimensions)
  - 4D or 5D input: padding size = 6 (pads last 3 dimensions)"""


@repeated
def pad(input: Tensor, pad: Sequence[int], mode: str = "constant", value: float | None = None) -> Tensor:
    """Pad the last dimensions of a tensor.

    Args:
        input: any shape for "constant"; else (N, C, ...) or (C, ...).
        pad: (before, after) of the last dimension, then of the one before it, and so on; negative widths crop.
        mode: "constant", "reflect", "replicate" or "circular"; the last three pad the spatial dimensions only.
        value: the padding value of mode "constant", 0 by default.

    Raises:
        RuntimeError: `pad` has odd length or too many elements, or a width is too large for the mode.
        NotImplementedError: `mode` is unknown, or not supported for this rank.

    >>> import flambeau as torch
    >>> torch.nn.functional.pad(torch.tensor([[1.0, 2.0, 3.0]]), (1, 1), mode="circular")
    tensor([[3., 1., 2., 3., 1.]])
    """
    try:
        widths, pad = pad, tuple(pad)
    except TypeError:
        _raise_if_unfit(input, pad, mode, value)
        raise
    if not _INTEGERS.issuperset(map(type, pad)) or mode.__class__ is not str or not (
            value is None or value.__class__ in (int, float)):
        _raise_if_unfit(input, widths, mode, value)
    if mode not in ("constant", "reflect", "replicate", "circular"):
        raise NotImplementedError(f"Unrecognised padding mode {mode}")
    if len(pad) % 2:
        raise RuntimeError("Padding length must be divisible by 2")
    try:
        ndim = input.dim()
    except AttributeError as error:
        return with_other_object(error, _pad, (input, widths), name="pad")
    if len(pad) // 2 > ndim:
        raise RuntimeError("Padding length should be less than or equal to two times the input dimension but "
                           f"got padding length {len(pad)} and input of dimension {ndim}")
    fn = layer.functions
    if mode == "constant":
        if isinstance(input, Tensor):
            return apply(_CONSTANT_PAD, [input], {"pad": pad, "value": 0 if value is None else value})
        return fn.constant_pad_nd(input, pad, 0 if value is None else value)
    if value is not None and value != 0:
        raise RuntimeError(f'Padding mode "{mode}" doesn\'t take in value argument')
    if len(pad) // 2 not in (input.dim() - 1, input.dim() - 2) or len(pad) > 6:
        raise NotImplementedError(f"Padding size {len(pad)} is not supported for {input.dim()}D input tensor.\n"
                                  + SUPPORTED)
    if mode != "circular":
        _check_not_empty(input, len(pad) // 2)
        for i in range(len(pad) // 2):
            _check_widths(input, -1 - i, pad[2 * i], pad[2 * i + 1], mode)
        name = "reflection" if mode == "reflect" else "replication"
        return getattr(fn, f"_{name}_pad{len(pad) // 2}d")(input, padding=pad)
    return _circular_pad(input, pad)


_pad = pad


def _raise_if_unfit(*args: Any) -> None:
    """Raise PyTorch's error if arguments of `pad` do not fit its signature."""
    from ..argument_errors.messages import FUNCTION, explained

    error = explained(FUNCTION, "pad", args, {})
    if error is not None:
        raise error
    for i, width in enumerate(args[1]):
        if not isinstance(width, int) and not hasattr(width, "__index__"):
            raise TypeError(f"pad(): argument 'pad' failed to unpack the object at pos {i + 1} with error \"type must "
                            f"be tuple of ints,but got {type(width).__name__}\"")


def _circular_pad(input: Tensor, pad: tuple[int, ...]) -> Tensor:
    """A new tensor: the input in the middle, then what is missing copied from there, dimension by dimension."""
    shape, widths = list(input.shape), [(pad[i], pad[i + 1]) for i in range(0, len(pad), 2)]
    for i in range(len(widths), 0, -1):
        size, (before, after) = shape[-i], widths[i - 1]
        if before > size or after > size:
            raise RuntimeError("Padding value causes wrapping around more than once.")
        if size + before + after < 0:
            raise RuntimeError("Negative padding value is resulting in an empty dimension")
        shape[-i] = size + before + after
    if special[0] and active_tracer.get() is not None:
        return _gathered(input, widths)
    out, slice_ = input.new_empty(shape), layer.functions.slice
    target, source = out, input
    for i, (before, after) in enumerate(widths, 1):
        target = slice_(target, -i, max(before, 0), shape[-i] - max(after, 0))
        source = slice_(source, -i, max(-before, 0), input.size(-i) - max(-after, 0))
    target.copy_(source)
    for i, (before, after) in enumerate(widths, 1):
        first, last = max(before, 0), shape[-i] - max(after, 0)
        if before > 0:
            slice_(out, -i, 0, before).copy_(slice_(out, -i, last - before, last))
        if after > 0:
            slice_(out, -i, last, shape[-i]).copy_(slice_(out, -i, first, first + after))
    return out


def _gathered(input: Tensor, widths: Sequence[tuple[int, int]]) -> Tensor:
    """The same for compiled programs: reads of the input fuse with what follows, writes to parts of memory do not."""
    fn = layer.functions
    padded = input
    for i, (before, after) in enumerate(widths, 1):
        if before or after:
            first, last = max(-before, 0), input.size(-i) - max(-after, 0)
            sources = [first + k % (last - first) for k in range(-max(before, 0), last - first + max(after, 0))]
            padded = padded.index_select(input.dim() - i, fn.tensor(sources, device=input.device))
    return input.clone() if padded is input else padded


def _check_not_empty(input: Tensor, rank: int) -> None:
    """Raise on a dimension of size 0, if it is not a batch dimension."""
    shape = input.size()
    if 0 in shape[len(shape) - rank - 1:]:
        raise refused(input, rank)


def refused(input: Tensor, rank: int) -> RuntimeError:
    """The error for an input of other dimensions than images and their batches have, or an empty one."""
    return RuntimeError(f"Expected {rank + 1}D or {rank + 2}D (batch mode) tensor with possibly 0 batch size and "
                        f"other non-zero dimensions for input, but got: {list(input.size())}")


def _check_widths(input: Tensor, dim: int, before: int, after: int, mode: str) -> None:
    """Raise on widths that are invalid for mode "reflect" or "replicate"."""
    size = input.size(dim)
    if before == after == 0:
        return
    if mode == "reflect":
        if before >= size or after >= size:
            axis = dim % input.dim()
            raise RuntimeError(
                f"Argument #{2 - 2 * dim}: Padding size should be less than the corresponding input dimension, "
                f"but got: padding ({before}, {after}) at dimension {axis} of input {list(input.size())}")
    elif size == 0:
        raise RuntimeError("Expected non-zero size for padded dimensions in replication padding, "
                           f"but got {list(input.size())}")
