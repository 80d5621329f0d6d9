"""Pooling functions: argument normalization and checks; 1-d pooling as 2-d pooling of height 1."""

from __future__ import annotations

from collections.abc import Iterable
from math import prod
from typing import Any

import numpy as np

from ... import dtypes
from ...kernels.memory_format import channels_last_strides, is_channels_last
from ...modes import active_tracer, inference
from ...ops.declare import REGISTRY
from ...warning_location import alert_not_deterministic
from ..argument_errors.type_names import not_a_tensor
from ..dispatch.apply import apply
from ..dispatch.array_kernels import row_major
from ..dispatch.out_tensors import write_out
from ..fastpath.repeated_calls import repeated
from ..meta import lacks_elements
from ..tensor import INFERENCE, Tensor, wrap

__all__ = [
    "adaptive_avg_pool1d", "adaptive_avg_pool2d", "adaptive_avg_pool3d", "adaptive_max_pool1d", "adaptive_max_pool2d",
    "adaptive_max_pool3d", "avg_pool1d", "avg_pool2d", "avg_pool3d", "max_pool1d", "max_pool1d_with_indices",
    "max_pool2d", "max_pool2d_with_indices", "max_pool3d", "max_pool3d_with_indices", "max_unpool1d", "max_unpool2d",
    "max_unpool3d",
]

_PLANES = {2: "3D or 4D", 3: "4D or 5D"}


def _to_tuple(value: Any, rank: int, function: str, name: str) -> tuple[int, ...]:
    if value.__class__ is int:
        return (value,) * rank
    result = tuple(value) if isinstance(value, (tuple, list)) else (value,)
    if len(result) == 1:
        return result * rank
    if len(result) != rank:
        words = "int" if rank == 1 else "ints"
        number = ("one", "two", "three")[rank - 1]
        either = "be" if function == "avg_pool3d" else "be either" if name == "dilation" else "either be"
        raise RuntimeError(f"{function}: {name} must {either} a single int, or a tuple of {number} {words}")
    return result


def _strides(value: Any, kernel: tuple[int, ...], function: str, name: str = "stride") -> tuple[int, ...]:
    if value is None or (isinstance(value, (tuple, list)) and not value):
        return kernel
    if isinstance(value, (tuple, list)) and len(value) not in (1, len(kernel)):
        number = ("one", "two", "three")[len(kernel) - 1]
        either = "" if function == "avg_pool3d" else "either "
        raise RuntimeError(f"{function}: {name} must {either}be omitted, a single int, or a tuple of {number} ints")
    return _to_tuple(value, len(kernel), function, name)


def _unsqueezed(x: Tensor) -> Tensor:
    return apply(REGISTRY["unsqueeze"], [x], {"dim": -2})


def _squeezed(x: Tensor) -> Tensor:
    return apply(REGISTRY["_squeeze_dim"], [x], {"dim": -2})


def _check_vectors(x: Tensor, function: str) -> None:
    n = x._array.ndim
    if n not in (2, 3):
        raise RuntimeError(f"Expected 2 to 3 dimensions, but got {n}-dimensional tensor for argument #1 'self' (while "
                           f"checking arguments for {function})")


def _check_windows(shape: tuple[int, ...], kernel: tuple[int, ...], stride: tuple[int, ...], padding: tuple[int, ...],
                   dilation: tuple[int, ...], ceil_mode: bool) -> tuple[int, ...]:
    """The spatial output size.

    Raises:
        RuntimeError: invalid window parameters (PyTorch's texts).
    """
    rank = len(kernel)
    for k, s, p, d in zip(kernel, stride, padding, dilation, strict=True):
        if s == 0:
            raise RuntimeError("stride should not be zero")
        if p < 0:
            raise RuntimeError(f"pad must be non-negative, but got pad: {p}")
        if p > int(((k - 1) * d + 1) / 2):
            raise RuntimeError(f"pad should be at most half of effective kernel size, but got pad={p}, kernel_size={k} "
                               f"and dilation={d}")
    if min(kernel) <= 0:
        names = "THW"[3 - rank:]
        raise RuntimeError("kernel size should be greater than zero, but got "
                           + " ".join(f"k{c}: {k}" for c, k in zip(names, kernel, strict=True)))
    if min(dilation) <= 0:
        names = "THW"[3 - rank:]
        raise RuntimeError("dilation should be greater than zero, but got "
                           + " ".join(f"dilation{c}: {d}" for c, d in zip(names, dilation, strict=True)))
    from ...kernels.pooling import pool_output_size

    spatial = shape[len(shape) - rank:]
    out = pool_output_size(spatial, kernel, stride, padding, dilation, ceil_mode)
    if min(out) < 1:
        channels = shape[len(shape) - rank - 1]
        raise RuntimeError(f"Given input size: ({'x'.join(map(str, (channels, *spatial)))}). Calculated output size: "
                           f"({'x'.join(map(str, (channels, *out)))}). Output size is too small")
    return out


def _check_planes(x: Tensor, rank: int) -> None:
    shape = x._array.shape
    n = len(shape)
    if n not in (rank + 1, rank + 2):
        raise RuntimeError(f"non-empty {_PLANES[rank]} (batch mode) tensor expected for input")
    if 0 in shape[n - rank - 1:]:
        if rank == 2:
            raise RuntimeError("Expected 3D or 4D (batch mode) tensor with optional 0 dim batch size for input, but "
                               f"got:{list(shape)}")
        raise RuntimeError("Expected input's non-batch dimensions to have positive length, but input has a shape of "
                           f"{tuple(shape)} and non-batch dimension {shape[n - rank - 1:].index(0) + n - rank - 1} has "
                           "length zero!")


# ----- max_pool --------------------------------------------------------------------------


def _max_pool(rank: int, function: str, x: Tensor, kernel_size: Any, stride: Any, padding: Any, dilation: Any,
              ceil_mode: bool) -> tuple[Tensor, list[Any]]:
    kernel = _to_tuple(kernel_size, rank, function, "kernel_size")
    params: dict[str, Any] = {"kernel_size": kernel, "stride": _strides(stride, kernel, function),
                              "padding": _to_tuple(padding, rank, function, "padding"),
                              "dilation": _to_tuple(dilation, rank, function, "dilation"), "ceil_mode": bool(ceil_mode)}
    n = x._array.ndim
    if n in (rank + 1, rank + 2):
        _check_windows(x._array.shape, *params.values())
    _check_planes(x, rank)
    saved: list[Any] = []
    return apply(REGISTRY[f"_max_pool{rank}d"], [x], {**params, "saved": saved}), saved


def indices_of_maxima(values: Any, saved: list[Any]) -> Tensor:
    """The indices of the maxima, batched like the values."""
    if len(saved) > 1:  # of a handler
        return saved[1]
    if lacks_elements(values):
        return values.new_empty(values.shape, dtype=dtypes.int64)
    if isinstance(values._array, np.ndarray):
        found = wrap(saved[0].reshape(values._array.shape))
        if inference.get():
            found._inference, found._counter = True, INFERENCE
        return found
    from ..dispatch.batched_tensor import make_batched

    return make_batched(wrap(saved[0]), values._levels)


def _max_pool_functions(rank: int) -> tuple[Any, Any]:
    name = f"max_pool{rank}d"

    def with_indices(input: Tensor, kernel_size: Any, stride: Any = None, padding: Any = 0, dilation: Any = 1,
                     ceil_mode: bool = False) -> tuple[Tensor, Tensor]:
        values, saved = _max_pool(rank, name, input, kernel_size, stride, padding, dilation, ceil_mode)
        return values, indices_of_maxima(values, saved)

    def pool(input: Tensor, kernel_size: Any, stride: Any = None, padding: Any = 0, dilation: Any = 1,
             ceil_mode: bool = False) -> Tensor:
        return _max_pool(rank, name, input, kernel_size, stride, padding, dilation, ceil_mode)[0]

    pool.__name__ = pool.__qualname__ = name
    return repeated(pool), with_indices


max_pool2d, max_pool2d_with_indices = _max_pool_functions(2)
max_pool3d, max_pool3d_with_indices = _max_pool_functions(3)


def _single_int(value: Any, name: str, function: str = "max_pool1d") -> int:
    if isinstance(value, (tuple, list)):
        if len(value) != 1:
            raise RuntimeError(f"{function}() {name} must be an int, list of ints or tuple of ints of size 1 but got "
                               f"size {len(value)}" if function == "max_pool1d" else
                               f"{function.removesuffix('_with_indices')}() argument '{name}' should contain one int "
                               f"(got {len(value)})")
        return int(value[0])
    return int(value)


def _check_max_pool1d(x: Tensor, kernel: int, stride: int, padding: int, dilation: int, ceil_mode: bool) -> None:
    shape = x._array.shape
    if len(shape) not in (2, 3) or 0 in shape[len(shape) - 2:]:
        raise RuntimeError("max_pool1d: Expected 2D or 3D (batch mode) tensor with optional 0 dim batch size for "
                           f"input, but got:{list(shape)}")
    if kernel <= 0:
        raise RuntimeError(f"max_pool1d() kernel_size must be greater than zero, but got {kernel}")
    if stride <= 0:
        raise RuntimeError(f"max_pool1d() stride must be greater than zero, but got {stride}")
    if padding < 0:
        raise RuntimeError(f"max_pool1d() padding must be non-negative, but got {padding}")
    if padding > kernel // 2:
        raise RuntimeError(f"max_pool1d() padding should be at most half of kernel size, but got padding={padding} and "
                           f"kernel_size={kernel}")
    if dilation <= 0:
        raise RuntimeError(f"max_pool1d() dilation must be greater than zero, but got {dilation}")
    from ...kernels.pooling import pool_output_size

    out = pool_output_size((shape[-1],), (kernel,), (stride,), (padding,), (dilation,), ceil_mode)[0]
    if out <= 0:
        raise RuntimeError(f"max_pool1d() Invalid computed output size: {out}")
    if not x.dtype.is_floating_point:
        raise NotImplementedError(f"\"max_pool1d_impl\" not implemented for '{x.dtype.scalar_name}'")


def max_pool1d_with_indices(input: Tensor, kernel_size: Any, stride: Any = None, padding: Any = 0, dilation: Any = 1,
                            ceil_mode: bool = False) -> tuple[Tensor, Tensor]:
    """`max_pool1d`, and the index of each maximum in its row.

    >>> import flambeau as torch
    >>> torch.nn.functional.max_pool1d_with_indices(torch.tensor([[1., 3., 2., 0.]]), 2)[1]
    tensor([[1, 2]])
    """
    _check_vectors(input, "max_pool1d")
    name = "max_pool1d_with_indices"
    kernel = _single_int(kernel_size, "kernel_size", name)
    step = kernel if stride is None or stride == [] or stride == () else _single_int(stride, "stride", name)
    pad, dil = _single_int(padding, "padding", name), _single_int(dilation, "dilation", name)
    values, saved = _max_pool(2, "max_pool1d", _unsqueezed(input), (1, kernel), (1, step), (0, pad), (1, dil),
                              ceil_mode)
    return _squeezed(values), _squeezed(indices_of_maxima(values, saved))


def max_pool1d(input: Tensor, kernel_size: Any, stride: Any = None, padding: Any = 0, dilation: Any = 1,
               ceil_mode: bool = False) -> Tensor:
    """The maximum of each window of the last dimension.

    >>> import flambeau as torch
    >>> torch.max_pool1d(torch.tensor([[1., 3., 2., 0.]]), 2)
    tensor([[3., 2.]])
    """
    if input._array.ndim not in (2, 3):
        _check_max_pool1d(input, 1, 1, 0, 1, False)
    kernel = _single_int(kernel_size, "kernel_size")
    step = kernel if stride is None or stride == [] or stride == () else _single_int(stride, "stride")
    pad, dil = _single_int(padding, "padding"), _single_int(dilation, "dilation")
    _check_max_pool1d(input, kernel, step, pad, dil, ceil_mode)
    values, _ = _max_pool(2, "max_pool1d", _unsqueezed(input), (1, kernel), (1, step), (0, pad), (1, dil), ceil_mode)
    result = _squeezed(values)
    if not values._requires_grad and values._array.__class__ is np.ndarray and active_tracer.get() is None:
        result._base = None  # PyTorch pools without history by a kernel of its own
        result._array = row_major(result._array)
    return result


def _check_adaptive(x: Tensor, output: tuple[int, ...], rank: int, function: str, colon: str) -> None:
    shape = x._array.shape
    n = len(shape)
    if n not in (rank + 1, rank + 2):
        raise RuntimeError(f"{function}(): Expected {_PLANES[rank]} tensor, but got{colon} {list(shape)}")
    for i in range(n - rank, n):
        if shape[i] == 0:
            raise RuntimeError(f"{function}(): Expected input to have non-zero size for non-batch dimensions, but "
                               f"input has sizes {list(shape)} with dimension {i} being empty")
    if min(output) < 0:
        raise RuntimeError(f"{function}: elements of output_size must be greater than or equal to 0 but received "
                           "{" + ", ".join(map(str, output)) + "}")


def _check_memory(x: Tensor, output: tuple[int, ...], rank: int, text: str) -> None:
    """Raise where the number of bytes of the results is no int64."""
    if max(output) > 1 << 16:
        sizes = [*x._array.shape[:-rank], *output]
        if prod(sizes) >= 1 << 60:
            raise RuntimeError(text.format(sizes))


def _output(value: Any, rank: int, function: str, x: Tensor) -> tuple[int, ...]:
    if isinstance(value, (tuple, list)):
        result = tuple(value)
        if len(result) != rank:
            raise RuntimeError(f"{function}(): internal error: output_size.size() must be {rank}" if "max" in function
                               else f"{function}: output_size must be {rank}")
        return tuple(x._array.shape[i - rank] if v is None else int(v) for i, v in enumerate(result))
    return (int(value),) * rank


def _adaptive_max(rank: int) -> Any:
    function = f"adaptive_max_pool{rank}d"

    def pool(input: Tensor, output_size: Any) -> tuple[Tensor, Tensor]:
        output = _output(output_size, rank, function, input)
        _check_adaptive(input, output, rank, function, ":")
        _check_memory(input, output, rank, "Storage size calculation overflowed with sizes={}")
        saved: list[Any] = []
        values = apply(REGISTRY["_" + function], [input], {"output_size": output, "saved": saved})
        return values, indices_of_maxima(values, saved)

    pool.__name__ = pool.__qualname__ = function
    pool.__doc__ = f"The maxima of `output_size` windows that cover the last {rank} dimensions, and their indices."
    return pool


adaptive_max_pool2d, adaptive_max_pool3d = _adaptive_max(2), _adaptive_max(3)


def adaptive_max_pool1d(input: Tensor, output_size: Any) -> tuple[Tensor, Tensor]:
    """The maxima of `output_size` windows that cover the last dimension evenly, and their indices.

    >>> import flambeau as torch
    >>> torch.adaptive_max_pool1d(torch.tensor([[1., 3., 2., 0.]]), 2)[0]
    tensor([[3., 2.]])
    """
    _check_vectors(input, "adaptive_max_pool1d")
    length = _single_int(output_size, "output_size", "adaptive_max_pool1d")
    values, index = adaptive_max_pool2d(_unsqueezed(input), (1, length))
    return _squeezed(values), _squeezed(index)


# ----- avg_pool --------------------------------------------------------------------------


def _check_volume(size: tuple[int, ...], kernel: tuple[int, ...]) -> None:
    """Check that windows fit in a volume without its padding: PyTorch's rule for averages in three dimensions."""
    if min(kernel) > 0 and min(size) > 0 and any(n < k for n, k in zip(size, kernel, strict=True)):
        sizes, kernels = (" ".join(f"{prefix}{c}: {n}" for c, n in zip("THW", numbers, strict=True))
                          for prefix, numbers in (("", size), ("k", kernel)))
        raise RuntimeError(f"input image ({sizes}) smaller than kernel size ({kernels})")


def _avg_pool(rank: int, function: str, x: Tensor, kernel_size: Any, stride: Any, padding: Any, ceil_mode: bool,
              count_include_pad: bool, divisor_override: int | None) -> Tensor:
    kernel = _to_tuple(kernel_size, rank, function, "kernel_size")
    steps = _strides(stride, kernel, function)
    pad = _to_tuple(padding, rank, function, "padding")
    if divisor_override == 0:
        raise RuntimeError("divisor must be not zero")
    n = x._array.ndim
    if rank == 2 and n < 3:
        raise IndexError(f"Dimension out of range (expected to be in range of [{-n}, {n - 1}], but got -3)")
    if n in (rank + 1, rank + 2):
        if rank == 3:
            _check_volume(x._array.shape[-3:], kernel)
        _check_windows(x._array.shape, kernel, steps, pad, (1,) * rank, bool(ceil_mode))
    _check_planes(x, rank)
    return apply(REGISTRY[f"_avg_pool{rank}d"], [x], {
        "kernel_size": kernel, "stride": steps, "padding": pad, "ceil_mode": bool(ceil_mode),
        "count_include_pad": bool(count_include_pad), "divisor_override": divisor_override})


def avg_pool1d(input: Tensor, kernel_size: Any, stride: Any = None, padding: Any = 0, ceil_mode: bool = False,
               count_include_pad: bool = True) -> Tensor:
    """The mean of each window of the last dimension.

    >>> import flambeau as torch
    >>> torch.nn.functional.avg_pool1d(torch.tensor([[1., 3., 2., 0.]]), 2)
    tensor([[2., 1.]])
    """
    _check_vectors(input, "avg_pool1d")
    kernel = _single_int(kernel_size, "kernel_size", "avg_pool1d")
    step = kernel if stride is None or stride == [] or stride == () else _single_int(stride, "stride", "avg_pool1d")
    return _squeezed(_avg_pool(2, "avg_pool1d", _unsqueezed(input), (1, kernel), (1, step),
                               (0, _single_int(padding, "padding", "avg_pool1d")), ceil_mode, count_include_pad, None))


def _avg_pool_function(rank: int) -> Any:
    function = f"avg_pool{rank}d"

    def pool(input: Tensor, kernel_size: Any, stride: Any = None, padding: Any = 0, ceil_mode: bool = False,
             count_include_pad: bool = True, divisor_override: int | None = None, *,
             out: Tensor | None = None) -> Tensor:
        result = _avg_pool(rank, function, input, kernel_size, stride, padding, ceil_mode, count_include_pad,
                           divisor_override)
        return result if out is None else write_out(REGISTRY[f"_{function}"], result, out)

    pool.__name__ = pool.__qualname__ = function
    pool.__doc__ = f"""The mean of each window over the last {rank} dimensions.

    Args:
        count_include_pad: whether zeros of the padding count as elements.
        divisor_override: divide by this instead of the number of elements.

    >>> import flambeau as torch
    >>> torch.nn.functional.avg_pool{rank}d(torch.ones(1{', 2' * rank}), 2).flatten()
    tensor([1.])
    """
    return pool


avg_pool2d, avg_pool3d = repeated(_avg_pool_function(2)), repeated(_avg_pool_function(3))


def _adaptive_avg(rank: int) -> Any:
    function = f"adaptive_avg_pool{rank}d"

    def pool(input: Tensor, output_size: Any) -> Tensor:
        output = _output(output_size, rank, function, input)
        _check_adaptive(input, output, rank, function, "")
        _check_memory(input, output, rank, "numel: integer multiplication overflow")
        if output == (1,) * rank:
            dims = tuple(range(-rank, 0)) if rank == 3 else (-1, -2)
            result = apply(REGISTRY["mean"], [input], {"dim": dims, "keepdim": True})
            a = input._array
            if a.__class__ is np.ndarray and is_channels_last(a.shape, a.strides):
                item = a.itemsize
                result.as_strided_(result.shape, [s // item for s in channels_last_strides(result._array.shape, item)])
            return result
        if rank == 2 and 0 in output and not input.dtype.is_floating_point:  # which no kernel looks at
            return input.new_empty((*input._array.shape[:-rank], *output))
        return apply(REGISTRY["_" + function], [input], {"output_size": output})

    pool.__name__ = pool.__qualname__ = function
    pool.__doc__ = f"The means of `output_size` windows that cover the last {rank} dimensions evenly."
    return pool


adaptive_avg_pool2d, adaptive_avg_pool3d = _adaptive_avg(2), _adaptive_avg(3)


def adaptive_avg_pool1d(input: Tensor, output_size: Any) -> Tensor:
    """The means of `output_size` windows that cover the last dimension evenly.

    >>> import flambeau as torch
    >>> torch.adaptive_avg_pool1d(torch.tensor([[1., 3., 2., 0.]]), 2)
    tensor([[2., 1.]])
    """
    _check_vectors(input, "adaptive_avg_pool1d")
    size = _single_int(output_size, "output_size", "adaptive_avg_pool1d")
    return _squeezed(adaptive_avg_pool2d(_unsqueezed(input), (1, size)))


# ----- max_unpool ------------------------------------------------------------------------


def _unpooled_size(x: Tensor, kernel: tuple[int, ...], stride: tuple[int, ...], padding: tuple[int, ...],
                   output_size: Any) -> tuple[int, ...]:
    rank = len(kernel)
    shape = x.size()
    default = tuple((shape[d - rank] - 1) * stride[d] + kernel[d] - 2 * padding[d] for d in range(rank))
    if output_size is None:
        return default
    if len(output_size) == rank + 2:
        output_size = output_size[2:]  # of its class, as the message shows it
    if len(output_size) != rank:
        raise ValueError(f"output_size should be a sequence containing {rank} or {rank + 2} elements, but it has a "
                         f"length of '{len(output_size)}'")
    for d, n in enumerate(default):
        low, high = n - stride[d], n + stride[d]
        if not low < output_size[d] < high:
            raise ValueError(f'invalid output_size "{output_size}" (dim {d} must be between {low} and {high})')
    return tuple(output_size)


def _each(value: Any, rank: int) -> tuple[int, ...]:
    """A number for each dimension: as many as are given, which nothing checks."""
    return tuple(value) if isinstance(value, Iterable) else (value,) * rank


def unpool_to_size(rank: int, x: Tensor, indices: Tensor, size: tuple[int, ...]) -> Tensor:
    """Zeros of a given spatial size, with each value at its flat index."""
    for position, (name, value) in enumerate((("input", x), ("indices", indices)), 1):
        if not isinstance(value, Tensor):
            raise not_a_tensor(f"max_unpool{rank}d", value, name, position)
    alert_not_deterministic(f"max_unpooling{rank}d_forward_out")
    if indices._array.dtype.kind != "i" or indices._array.dtype.itemsize != 8:
        raise RuntimeError("elements in indices should be type int64" + (
            f" but got: {indices.dtype.scalar_name}" if rank == 2 else ""))
    fits = rank < x._array.ndim < rank + 3
    if len(size) != rank and (fits or rank == 2):
        raise RuntimeError(f"There should be exactly {('two', 'three')[rank - 2]} elements "
                           f"({', '.join(('depth', 'height', 'width')[3 - rank:])}) in output_size, but got "
                           f"{len(size)} elements.")
    if not fits:
        raise RuntimeError(f"Input to max_unpooling{rank}d should be a {rank + 1}d or {rank + 2}d Tensor, but got a "
                           f"tensor with {x._array.ndim} dimensions.")
    if x._array.shape != indices._array.shape:
        raise RuntimeError(f"Expected shape of indices to be same as that of the input tensor ({list(x._array.shape)}) "
                           f"but got indices tensor with shape: {list(indices._array.shape)}")
    return apply(REGISTRY[f"_max_unpool{rank}d"], [x, indices], {"output_size": size})


def _unpool_function(rank: int) -> Any:
    function = f"max_unpool{rank}d"

    def unpool(input: Tensor, indices: Tensor, kernel_size: Any, stride: Any = None, padding: Any = 0,
               output_size: Any = None) -> Tensor:
        kernel, pad = _each(kernel_size, rank), _each(padding, rank)
        steps = kernel if stride is None else _each(stride, rank)
        size = _unpooled_size(input, kernel, steps, pad, output_size)
        if rank == 1:
            wide = [apply(REGISTRY["unsqueeze"], [x], {"dim": -1}) for x in (input, indices)]
            return apply(REGISTRY["_squeeze_dim"], [unpool_to_size(2, wide[0], wide[1], (*size, 1))], {"dim": -1})
        return unpool_to_size(rank, input, indices, size)

    unpool.__name__ = unpool.__qualname__ = function
    unpool.__doc__ = f"""Partial inverse of `max_pool{rank}d`: zeros, with each value at the index of its maximum.

    Args:
        input: (N, C, *spatial) or (C, *spatial), the values that `max_pool{rank}d` returned.
        indices: the indices that it returned, int64.
        kernel_size: the window size.
        stride: the distance between windows; `kernel_size` by default.
        padding: the padding.
        output_size: the spatial size, or shape, of the output; by default the smallest that fits.

    >>> import flambeau as torch
    >>> values, indices = torch.nn.functional.max_pool{rank}d(torch.ones(1{', 2' * rank}), 2, return_indices=True)
    >>> torch.nn.functional.max_unpool{rank}d(values, indices, 2).sum()
    tensor(1.)
    """
    return unpool


max_unpool1d, max_unpool2d, max_unpool3d = _unpool_function(1), _unpool_function(2), _unpool_function(3)

for _rank, _pool, _with in ((2, max_pool2d, max_pool2d_with_indices), (3, max_pool3d, max_pool3d_with_indices)):
    _pool.__name__ = _pool.__qualname__ = f"max_pool{_rank}d"
    _pool.__doc__ = f"""The maximum of each window over the last {_rank} dimensions.

    Args:
        input: (N, C, ...) or (C, ...) with {_rank} spatial dimensions.
        kernel_size, stride, padding, dilation: an int, or {_rank} ints; `stride` defaults to `kernel_size`.
        ceil_mode: whether a last, partial window counts.

    >>> import flambeau as torch
    >>> torch.max_pool{_rank}d(torch.arange({2 ** _rank}.).reshape(1{", 2" * _rank}), 2).tolist()
    {"[" * (_rank + 1)}{2.0 ** _rank - 1}{"]" * (_rank + 1)}
    """
    _with.__name__ = _with.__qualname__ = f"max_pool{_rank}d_with_indices"
    _with.__doc__ = f"`max_pool{_rank}d`, and the flat index of each maximum in its channel."

