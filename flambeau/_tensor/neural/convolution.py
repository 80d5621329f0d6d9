"""Convolutions, `fold` and `unfold`: argument normalization, checks, unbatched inputs and named paddings."""

from __future__ import annotations

import warnings
from math import prod
from operator import index
from typing import Any

from ...dtypes import C_NAMES, float32
from ...engine.tensor_interface import layer
from ...ops.declare import REGISTRY
from ...ops.neural.convolution import geometry_of
from ...warning_location import user_stacklevel
from ..argument_errors.parsed_calls import pair, parsed_as
from ..argument_errors.type_names import not_a_tensor
from ..dispatch.apply import apply
from ..fastpath.repeated_calls import repeated
from ..tensor import Tensor

__all__ = [
    "conv1d",
    "conv2d",
    "conv3d",
    "conv_tbc",
    "conv_transpose1d",
    "conv_transpose2d",
    "conv_transpose3d",
    "folded",
    "unfolded",
]

_convolution = REGISTRY["convolution"]


def _to_tuple(value: Any, rank: int, name: str) -> tuple[int, ...]:
    """`value` as a tuple with one element for each spatial dimension."""
    if value.__class__ is int:
        return (value,) * rank
    result = tuple(value) if isinstance(value, (tuple, list)) else (value,)
    if len(result) == 1 and rank > 1:
        result *= rank
    if len(result) != rank:
        raise RuntimeError(f"expected {name} to be a single integer value or a list of {rank} values to match the "
                           f"convolution dimensions, but got {name}={list(result)}")
    return result


def _as_int(value: Any) -> Any:
    """An integer of another class, also an array of one, as an int; what is none as it is, for the error of a guard."""
    try:
        return value if value.__class__ is bool else index(value)
    except TypeError:
        return value


def _check_complex(input: Tensor, weight: Tensor) -> None:
    """Check, before the shapes, that complex numbers meet weights of their dtype."""
    if input._array.dtype.kind == "c" and weight._array.dtype != input._array.dtype:
        kind = f"CPU{weight.dtype.scalar_name}Type" if weight.dtype.is_complex else (
            f"torch.{weight.dtype.scalar_name}Tensor")
        raise RuntimeError(f"Input type (CPU{input.dtype.scalar_name}Type) and weight type ({kind}) should be the same")


def _check_bias_type(input: Tensor, bias: Tensor) -> None:
    if bias._array.dtype != input._array.dtype:
        raise RuntimeError(f"Input type ({C_NAMES[input.dtype.name]}) and bias type ({C_NAMES[bias.dtype.name]}) "
                           "should be the same")


def _type_name(x: Tensor) -> str:
    """The name of a tensor's type in messages."""
    named = ("Float", "Double", "Half", "Byte", "Char", "Short", "Int", "Long")
    name = x.dtype.scalar_name
    return f"torch.{name}Tensor" if name in named else f"CPU{name}Type"


def _is_accelerated(x: tuple[int, ...], w: tuple[int, ...], groups: int) -> bool:
    """Whether PyTorch gives a convolution of float32 to oneDNN, which looks at the dtypes first."""
    return (len(x) == len(w) and x[0] > 1) or groups > 1 or (len(w) > 3 and min(w[-2:]) > 3) or prod(x) > 20480


def _check_types(input: Tensor, weight: Tensor, bias: Tensor | None, transposed: bool, groups: int) -> None:
    fits = weight._array.dtype == input._array.dtype
    if bias is not None and not transposed:
        _check_bias_type(input, bias)
    other = weight if not fits else bias if bias is not None and transposed and weight._array.ndim == 5 else None
    if input.dtype is float32 and _is_accelerated(input._array.shape, weight._array.shape, groups):
        for name, x in (("weight", weight), ("bias", bias)):
            if x is not None and x.dtype is not float32:
                raise RuntimeError(f"Input type (torch.FloatTensor) and {name} type ({_type_name(x)}) should be the "
                                   f"same or input should be a MKLDNN tensor and {name} is a dense tensor")
    if other is not None and other._array.dtype != input._array.dtype:
        raise RuntimeError(f"expected scalar type {input.dtype.scalar_name} but found {other.dtype.scalar_name}")


def _check(name: str, x: tuple[int, ...], w: tuple[int, ...], bias: Tensor | None, params: dict[str, Any]) -> None:
    """Check the arguments of a convolution, with PyTorch's errors. The shapes are batched."""
    rank = len(x) - 2
    groups, transposed = params["groups"], params["transposed"]
    if len(w) < 3:
        raise RuntimeError("weight should have at least three dimensions")
    if groups <= 0:
        raise RuntimeError("non-positive groups is not supported")
    if len(w) != len(x) and rank != 1:  # the options have a value for each dimension of the input
        _raise_rank_error(x, w, params["stride"])
    for sizes, what, least in ((params["padding"], "negative padding", 0),
                               (params["output_padding"], "negative output_padding", 0),
                               (params["stride"], "non-positive stride", 1)):
        if min(sizes) < least:
            raise RuntimeError(f"{what} is not supported")
    if len(w) != len(x):
        _raise_rank_error(x, w, params["stride"])
    _check_dilation(params["dilation"])
    if w[0] < groups:
        raise RuntimeError(f"Given groups={groups}, expected weight to be at least {groups} at dimension 0, but got "
                           f"weight of size {list(w)} instead")
    if w[0] % groups:
        raise RuntimeError(f"Given groups={groups}, expected weight to be divisible by {groups} at dimension 0, but "
                           f"got weight of size [{list(w)}] instead")
    channels = w[0] if transposed else w[1] * groups
    if x[1] != channels:
        first = f"transposed={int(transposed)}" if transposed else f"groups={groups}"
        raise RuntimeError(f"Given {first}, weight of size {list(w)}, expected input{list(x)} to have {channels} "
                           f"channels, but got {x[1]} channels instead")
    outputs = w[1] * groups if transposed else w[0]
    if bias is not None and bias._array.shape != (outputs,):
        first = f"transposed={int(transposed)}, " if transposed else ""
        raise RuntimeError(f"Given {first}weight of size {list(w)}, expected bias to be 1-dimensional with {outputs} "
                           f"elements, but got bias of size {list(bias._array.shape)} instead")
    if transposed:
        for e, s, d in zip(params["output_padding"], params["stride"], params["dilation"], strict=True):
            if e >= s and e >= d:
                raise RuntimeError(_output_padding_text(params, rank))
        _check_transposed_sizes(x, w, params)
        return
    padded = [n + 2 * p for n, p in zip(x[2:], params["padding"], strict=True)]
    extent = [d * (k - 1) + 1 for d, k in zip(params["dilation"], w[2:], strict=True)]
    if any(n < k for n, k in zip(padded, extent, strict=True)):
        raise RuntimeError(f"Calculated padded input size per channel: ({' x '.join(map(str, padded))}). Kernel size: "
                           f"({' x '.join(map(str, extent))}). Kernel size can't be greater than actual input size")


def _check_transposed_sizes(x: tuple[int, ...], w: tuple[int, ...], params: dict[str, Any]) -> None:
    """Check the output size of a transposed convolution; PyTorch's message shows one dimension as two."""
    if 0 in x[:2]:
        return
    if 0 in x:
        raise RuntimeError("Only zero batch or zero channel inputs are supported, but got input shape: "
                           f"{[*x[:2], *_as_plane(x[2:])]}")
    out = geometry_of(x, w, **params).spatial
    if min(out) < 1:
        given, calculated = (" x ".join(map(str, _as_plane(size))) for size in (x[2:], out))
        raise RuntimeError(f"Given input size per channel: ({given}). Calculated output size per channel: "
                           f"({calculated}). Output size is too small")


def _as_plane(sizes: tuple[int, ...]) -> tuple[int, ...]:
    return (1, *sizes) if len(sizes) == 1 else sizes


def _check_dilation(dilation: tuple[int, ...]) -> None:
    if min(dilation) < 1:
        got = f", but got {list(dilation)}" if min(dilation) == 0 else ""
        raise RuntimeError(f"dilation should be greater than zero{got}")


def _raise_rank_error(x: tuple[int, ...], w: tuple[int, ...], stride: tuple[int, ...]) -> None:
    """Raise the error for a weight with another number of dimensions than the input."""
    rank = len(w) - 2
    if len(stride) == 1:
        raise RuntimeError(f"Expected {len(w)}-dimensional input for {len(w)}-dimensional weight {list(w)}, but got "
                           f"{len(x)}-dimensional input of size {list(x)} instead")
    raise RuntimeError(f"expected stride to be a single integer value or a list of {rank} values to match the "
                       f"convolution dimensions, but got stride={list(stride)}")


def _output_padding_text(params: dict[str, Any], rank: int) -> str:
    names = ("depth", "height", "width")[3 - rank:]
    details = " ".join(f"{what}_{name}: {params[what][i]}" for what in ("output_padding", "stride", "dilation")
                       for i, name in enumerate(names))
    return f"output padding must be smaller than either stride or dilation, but got {details}"


def _check_ranks(name: str, rank: int, x: tuple[int, ...], w: tuple[int, ...]) -> None:
    """Check the numbers of dimensions, which come before the values for each dimension."""
    if len(x) not in (rank + 1, rank + 2):
        raise RuntimeError(f"Expected {rank + 1}D (unbatched) or {rank + 2}D (batched) input to {name}, but got input "
                           f"of size: {list(x)}")
    if len(w) < 3:
        raise RuntimeError("weight should have at least three dimensions")


def _convolve(name: str, rank: int, input: Tensor, weight: Tensor, bias: Tensor | None,
              params: dict[str, Any]) -> Tensor:
    try:
        x, w = input._array.shape, weight._array.shape
    except AttributeError:
        bad = next(v for v in (input, weight) if not isinstance(v, Tensor))
        raise TypeError(f"{name}() received an invalid combination of arguments - got a {type(bad).__name__} where a "
                        "Tensor is expected") from None
    unbatched = len(x) == rank + 1
    if not unbatched and len(x) != rank + 2:
        _check_ranks(name, rank, x, w)
    _check_complex(input, weight)
    _check(name, (1, *x) if unbatched else x, w, bias, params)
    _check_types(input, weight, bias, "transpose" in name, params["groups"])
    if unbatched:
        input = apply(REGISTRY["unsqueeze"], [input], {"dim": 0})
    out = apply(_convolution, [input, weight, bias], params)
    return apply(REGISTRY["_squeeze_dim"], [out], {"dim": 0}) if unbatched else out


def _check_in_order(name: str, rank: int, input: Tensor, weight: Tensor, bias: Any, groups: Any, padding: Any,
                    stride: Any) -> None:
    """What PyTorch looks at first, for a call that has failed.

    Raises:
        RuntimeError: the bias has another dtype, the input or the weight another number of dimensions, or there are
            no groups.
    """
    if isinstance(bias, Tensor):
        _check_bias_type(input, bias)
    x, w = input._array.shape, weight._array.shape
    _check_ranks(name, rank, x, w)
    if groups <= 0:
        raise RuntimeError("non-positive groups is not supported")
    if len(w) != rank + 2 and rank > 1 and padding.__class__ is not str:
        steps = tuple(stride) if isinstance(stride, (tuple, list)) else (stride,)
        _raise_rank_error(x, w, steps * rank if len(steps) == 1 else steps)
    if padding.__class__ is str and len(w) != rank + 2:
        x = (1, *x) if len(x) == rank + 1 else x
        raise RuntimeError(f"Expected {len(w)}-dimensional input for {len(w)}-dimensional weight{list(w)}, but got "
                           f"{len(x)}-dimensional input of size {list(x)} instead")


def _pad_same(input: Tensor, weight: Tensor, padding: str, stride: Any, dilation: tuple[int, ...],
              rank: int) -> tuple[Tensor, tuple[int, ...]]:
    """The input, zero-padded on one side where the padding is asymmetric, and the symmetric padding that remains."""
    if padding == "valid":
        return input, (0,) * rank
    if padding != "same":
        raise RuntimeError(f"Invalid padding string: '{padding}'")
    if any(s != 1 for s in stride):
        raise RuntimeError("padding='same' is not supported for strided convolutions")
    x, w = input._array.shape, weight._array.shape
    if len(w) != rank + 2:
        raise RuntimeError(f"Expected {len(w)}-dimensional input for {len(w)}-dimensional weight{list(w)}, but got "
                           f"{len(x)}-dimensional input of size {list(x)} instead")
    _check_dilation(dilation)
    totals = [d * (k - 1) for d, k in zip(dilation, w[2:], strict=True)]
    if any(total % 2 for total in totals):
        warnings.warn("Using padding='same' with even kernel lengths and odd dilation may require a zero-padded copy "
                      "of the input be created", UserWarning, stacklevel=user_stacklevel())
        border: list[int] = []
        for total in reversed(totals):
            border += [0, total % 2]
        input = layer.functions.constant_pad_nd(input, border, 0)
    return input, tuple(total // 2 for total in totals)


def _convolution_function(rank: int) -> Any:
    name = f"conv{rank}d"
    zeros = (0,) * rank

    def call(input: Tensor, weight: Tensor, bias: Tensor | None = None, stride: Any = 1, padding: Any = 0,
             dilation: Any = 1, groups: int = 1) -> Tensor:
        try:
            stride, dilation = _to_tuple(stride, rank, "stride"), _to_tuple(dilation, rank, "dilation")
            if groups.__class__ is not int:
                groups = _as_int(groups)
            padded, amounts = input, padding
            if padding.__class__ is str:
                padded, amounts = _pad_same(input, weight, padding, stride, dilation, rank)
            return _convolve(name, rank, padded, weight, bias, {
                "stride": stride, "padding": _to_tuple(amounts, rank, "padding"), "dilation": dilation,
                "transposed": False, "output_padding": zeros, "groups": groups})
        except RuntimeError:
            if isinstance(input, Tensor) and isinstance(weight, Tensor):
                _check_in_order(name, rank, input, weight, bias, groups, padding, stride)
            raise

    call.__name__ = call.__qualname__ = name
    call.__doc__ = f"""The cross-correlation of inputs with {rank} spatial dimension{'s' * (rank > 1)} and kernels.

    Args:
        input: (N, C, *spatial) or (C, *spatial).
        weight: (O, C / groups, *kernel).
        bias: (O).
        padding: the number of zeros on both sides, one or for each dimension; "valid" (none) or "same".

    >>> import flambeau as torch
    >>> x, w = torch.ones(1, 1{', 3' * rank}), torch.ones(1, 1{', 3' * rank})
    >>> torch.nn.functional.conv{rank}d(x, w).item()
    {float(3 ** rank)}
    """
    return call


def _transposed_function(rank: int) -> Any:
    name = f"conv_transpose{rank}d"

    def call(input: Tensor, weight: Tensor, bias: Tensor | None = None, stride: Any = 1, padding: Any = 0,
             output_padding: Any = 0, groups: int = 1, dilation: Any = 1) -> Tensor:
        if groups.__class__ is not int:
            groups = _as_int(groups)
        try:
            params: dict[str, Any] = {
                "stride": _to_tuple(stride, rank, "stride"), "padding": _to_tuple(padding, rank, "padding"),
                "dilation": _to_tuple(dilation, rank, "dilation"), "transposed": True,
                "output_padding": _to_tuple(output_padding, rank, "output_padding"), "groups": groups}
        except RuntimeError:
            _check_ranks(name, rank, input._array.shape, weight._array.shape)
            raise
        return _convolve(name, rank, input, weight, bias, params)

    call.__name__ = call.__qualname__ = name
    call.__doc__ = f"""The transposed convolution: the gradient of `conv{rank}d` with respect to its input.

    Args:
        input: (N, C, *spatial) or (C, *spatial).
        weight: (C, O / groups, *kernel).
        bias: (O).
        output_padding: additional size on one side of the output.

    >>> import flambeau as torch
    >>> x, w = torch.ones(1, 1{', 2' * rank}), torch.ones(1, 1{', 2' * rank})
    >>> torch.nn.functional.conv_transpose{rank}d(x, w, stride=2).sum().item()
    {float(4 ** rank)}
    """
    return call


conv1d, conv2d, conv3d = [repeated(_convolution_function(rank)) for rank in (1, 2, 3)]
conv_transpose1d, conv_transpose2d, conv_transpose3d = [repeated(_transposed_function(rank)) for rank in (1, 2, 3)]


def conv_tbc(input: Tensor, weight: Tensor, bias: Tensor, pad: int = 0) -> Tensor:
    """`conv1d` of (time, batch, channels) with kernels (time, in, out).

    >>> import flambeau as torch
    >>> torch.conv_tbc(torch.ones(3, 1, 2), torch.ones(2, 2, 1), torch.zeros(1)).flatten()
    tensor([4., 4.])
    """
    fn = layer.functions
    x, w, b = input._array.shape, weight._array.shape, bias._array.shape
    if len(x) != 3:
        raise RuntimeError("Input must have 3 dims: time, batch, in_channel")
    if len(w) != 3:
        raise RuntimeError("Weight tensor must have 3 dims: kernel_width, in_channels, out_channels.")
    if len(b) != 1:
        raise RuntimeError("Bias must be 1-D")
    if x[2] != w[1]:
        raise RuntimeError("Input dim 2 (input channels) is not == dim 1 in the weight tensor")
    if b[0] != w[2]:
        raise RuntimeError("Bias size must equal dim 2 in the weight tensor (output channels).")
    out = conv1d(fn.permute(input, (1, 2, 0)), fn.permute(weight, (2, 1, 0)), bias, padding=pad)
    return fn.permute(out, (2, 0, 1))


# ----- unfold and fold ------------------------------------------------------------------


def _to_pair(value: Any, name: str) -> tuple[int, ...]:
    result = tuple(value) if isinstance(value, (tuple, list)) else (value, value)
    if len(result) == 1:
        result *= 2
    if len(result) != 2:
        raise RuntimeError(f"It is expected {name} equals to 2, but got size {len(result)}")
    return result


def _window_params(kernel_size: Any, dilation: Any, padding: Any, stride: Any) -> dict[str, tuple[int, ...]]:
    params = {"kernel_size": _to_pair(kernel_size, "kernel_size"), "dilation": _to_pair(dilation, "dilation"),
              "padding": _to_pair(padding, "padding"), "stride": _to_pair(stride, "stride")}
    for name, word in (("kernel_size", "kernel"), ("dilation", "dilation"), ("stride", "stride")):
        h, w = params[name]
        if h <= 0 or w <= 0:
            label = "kernel size" if word == "kernel" else word
            raise RuntimeError(f"{label} should be greater than zero, but got {word}_height: {h} {word}_width: {w}")
    if min(params["padding"]) < 0:
        h, w = params["padding"]
        raise RuntimeError(f"padding should be non-negative, but got pad_height: {h} pad_width: {w}")
    return params


def _window_counts(size: Any, params: dict[str, Any]) -> list[int]:
    return [(n + 2 * p - d * (k - 1) - 1) // s + 1 for n, p, d, k, s in zip(
        size, params["padding"], params["dilation"], params["kernel_size"], params["stride"], strict=True)]


@repeated
@parsed_as("im2col", lambda input, kernel_size, dilation=1, padding=0, stride=1: (
    (input, pair(kernel_size), pair(dilation), pair(padding), pair(stride)), {}))
def unfolded(input: Tensor, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1) -> Tensor:
    """`nn.functional.unfold`: the sliding windows of (N, C, H, W) or (C, H, W) as columns, (N, C · kernel, windows).

    Args:
        input: (N, C, H, W) or (C, H, W).
        kernel_size: the window size, an int or (k_H, k_W).
        dilation: the distance between the elements of a window.
        padding: zeros added on both sides.
        stride: the distance between windows.

    >>> import flambeau as torch
    >>> torch.nn.functional.unfold(torch.arange(4.0).reshape(1, 2, 2), (1, 2))
    tensor([[0., 2.],
            [1., 3.]])
    """
    if not isinstance(input, Tensor):
        raise not_a_tensor("im2col", input)
    params = _window_params(kernel_size, dilation, padding, stride)
    shape = input._array.shape
    n = len(shape)
    if n < 3:
        raise IndexError(f"Dimension out of range (expected to be in range of [{-n}, {n - 1}], but got {n})")
    if n > 4 or 0 in shape[n - 3:]:
        raise RuntimeError("Expected 3D or 4D (batch mode) tensor with possibly 0 batch size and other non-zero "
                           f"dimensions for input, but got: {list(shape)}")
    blocks = _window_counts(shape[-2:], params)
    if min(blocks) < 1:
        raise RuntimeError(
            f"Given input with spatial size {tuple(shape[-2:])}, kernel_size={params['kernel_size']}, "
            f"dilation={params['dilation']}, padding={params['padding']}, calculated shape of the array of sliding "
            f"blocks as {tuple(blocks)}, but its components must be at least one.")
    return apply(REGISTRY["im2col"], [input], params)


@parsed_as("col2im", lambda input, output_size, kernel_size, dilation=1, padding=0, stride=1: (
    (input, pair(output_size), pair(kernel_size), pair(dilation), pair(padding), pair(stride)), {}))
def folded(input: Tensor, output_size: Any, kernel_size: Any, dilation: Any = 1, padding: Any = 0,
           stride: Any = 1) -> Tensor:
    """`nn.functional.fold`: the transpose of `unfold`, the sum of columns (N, C · kernel, windows) at their windows.

    Args:
        input: (N, C · kernel, windows) or (C · kernel, windows).
        output_size: (H, W) of the output.
        kernel_size: the window size, an int or (k_H, k_W).
        dilation: the distance between the elements of a window.
        padding: zeros that `unfold` added on both sides.
        stride: the distance between windows.

    >>> import flambeau as torch
    >>> torch.nn.functional.fold(torch.tensor([[0.0, 2.0], [1.0, 3.0]]), (2, 2), (1, 2))
    tensor([[[0., 1.],
             [2., 3.]]])
    """
    if not isinstance(input, Tensor):
        raise not_a_tensor("col2im", input)
    params = _window_params(kernel_size, dilation, padding, stride)
    size = _to_pair(output_size, "output_size")
    shape = input._array.shape
    if len(shape) not in (2, 3) or 0 in shape[-2:]:
        raise RuntimeError("Expected 2D or 3D (batch mode) tensor for input with possibly 0 batch size and non-zero "
                           f"dimensions for input, but got: {list(shape)}")
    area = prod(params["kernel_size"])
    if shape[-2] % area:
        raise RuntimeError("Expected size of input's dimension 1 to be divisible by the product of kernel_size, but "
                           f"got input.size(1)={shape[-2]} and kernel_size={params['kernel_size']}.")
    blocks = _window_counts(size, params)
    details = (f"Given output_size={size}, kernel_size={params['kernel_size']}, dilation={params['dilation']}, "
               f"padding={params['padding']}, stride={params['stride']}, ")
    if min(blocks) < 1:
        raise RuntimeError(details + f"calculated shape of the array of sliding blocks as {tuple(blocks)}, which is "
                           "too small (non-positive)")
    if prod(blocks) != shape[-1]:
        raise RuntimeError(details + "expected size of input's dimension 2 to match the calculated number of sliding "
                           f"blocks {blocks[0]} * {blocks[1]} = {prod(blocks)}, but got input.size(2)={shape[-1]}.")
    return apply(REGISTRY["col2im"], [input], {"output_size": size, **params})
