"""Operators and constants of `torch` that belong to other backends and to quantization.

Operators of cuDNN, MIOpen and oneDNN exist in PyTorch's CPU build and refuse CPU tensors; those that do not work here,
too.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from .. import dtypes
from .._tensor import Tensor, functions
from ..autograd import Function
from ..backends.pytorch import cudnn
from ..devices import sparse_coo, strided

_REFUSED = """
    batch_norm_backward_elemt batch_norm_backward_reduce batch_norm_elemt batch_norm_gather_stats
    batch_norm_gather_stats_with_counts batch_norm_stats cudnn_affine_grid_generator cudnn_batch_norm cudnn_convolution
    cudnn_convolution_add_relu cudnn_convolution_relu cudnn_convolution_transpose cudnn_grid_sampler
    int_repr miopen_batch_norm miopen_convolution miopen_convolution_add_relu miopen_convolution_relu
    miopen_convolution_transpose miopen_ctc_loss miopen_depthwise_convolution miopen_rnn mkldnn_adaptive_avg_pool2d
    mkldnn_linear_backward_weights mkldnn_max_pool2d mkldnn_max_pool3d mkldnn_rnn_layer
    q_per_channel_axis q_per_channel_scales q_per_channel_zero_points q_scale q_zero_point
""".split()  # noqa: SIM905


def _refusing(name: str, backend: str = "CPU") -> Callable[..., Any]:
    def function(*args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError(f"Could not run 'aten::{name}' with arguments from the '{backend}' backend. This "
                                  "could be because the operator doesn't exist for this backend.")

    function.__name__ = function.__qualname__ = name
    function.__doc__ = (f"`aten::{name}`, which no CPU build of PyTorch runs on CPU tensors.\n\nRaises:\n"
                        "    NotImplementedError: always.\n\n"
                        f">>> import flambeau as torch\n>>> torch.{name}(torch.ones(1))\n"
                        "Traceback (most recent call last):\n    ...\n"
                        f"NotImplementedError: Could not run 'aten::{name}' with arguments from the 'CPU' backend. ...")
    return function


globals().update({_name: _refusing(_name) for _name in _REFUSED})


def native_norm(input: Tensor, p: Any = 2, dim: Any = (), keepdim: bool = False, dtype: Any = None) -> Tensor:
    """The norm of the values of a sparse tensor in coordinates, over all of its dimensions.

    Raises:
        NotImplementedError: the tensor is not sparse (PyTorch's text).
        RuntimeError: some of its dimensions, or `keepdim`.

    >>> import flambeau as torch
    >>> torch.native_norm(torch.tensor([3., 0., 4.]).to_sparse())
    tensor(5.)
    """
    if input.layout is not sparse_coo:
        _refusing("native_norm", "CPU" if input.layout is strided else "SparseCsrCPU")()
    if keepdim:
        raise RuntimeError("norm_sparse currently does not support keepdim=True")
    dims = (dim,) if isinstance(dim, int) else tuple(dim)
    if dims and sorted(d % input.ndim for d in dims) != list(range(input.ndim)):
        raise RuntimeError("norm_sparse currently only supports full reductions, so 'dim' must either be empty or "
                           "contain all dimensions of the input")
    return functions.norm(input.coalesce().values().flatten(), 2 if p is None else p, dtype=dtype)


def _unquantized(name: str) -> Callable[..., Any]:
    def function(*args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError(f"torch.{name}: flambeau has no quantized tensors")

    function.__name__ = function.__qualname__ = name
    function.__doc__ = (f"A quantized tensor, of which there are none.\n\nRaises:\n    NotImplementedError: always.\n\n"
                        f">>> import flambeau as torch\n>>> torch.{name}(torch.ones(1), 1.0, 0, None)\n"
                        "Traceback (most recent call last):\n    ...\n"
                        f"NotImplementedError: torch.{name}: flambeau has no quantized tensors")
    return function


quantize_per_tensor = _unquantized("quantize_per_tensor")
quantize_per_tensor_dynamic = _unquantized("quantize_per_tensor_dynamic")
quantize_per_channel = _unquantized("quantize_per_channel")


class qscheme:
    """A scheme of quantization; only a name here.

    >>> import flambeau as torch
    >>> torch.per_tensor_affine
    torch.per_tensor_affine
    """

    def __init__(self, name: str) -> None:
        self._name = name

    def __repr__(self) -> str:
        return f"torch.{self._name}"

    def __reduce__(self) -> str:
        return self._name


per_tensor_affine, per_channel_affine = qscheme("per_tensor_affine"), qscheme("per_channel_affine")
per_tensor_symmetric, per_channel_symmetric = qscheme("per_tensor_symmetric"), qscheme("per_channel_symmetric")
per_channel_affine_float_qparams = qscheme("per_channel_affine_float_qparams")


#: what PyTorch was built with
has_lapack = has_mkl = has_openmp = has_spectral = True


def compiled_with_cxx11_abi() -> bool:
    """Whether PyTorch was built with the newer C++ ABI: True.

    >>> import flambeau as torch
    >>> torch.compiled_with_cxx11_abi()
    True
    """
    return True


def cudnn_is_acceptable(tensor: Tensor) -> bool:
    """Whether cuDNN takes the tensor: one of floating-point numbers on a CUDA device that has cuDNN.

    >>> import flambeau as torch
    >>> torch.cudnn_is_acceptable(torch.ones(1))
    False
    """
    return bool(cudnn.is_acceptable(tensor))


def mkldnn_convolution(input: Tensor, weight: Tensor, bias: Tensor | None, padding: Sequence[int],
                       stride: Sequence[int], dilation: Sequence[int], groups: int) -> Tensor:
    """A convolution, as `torch.convolution` computes it.

    >>> import flambeau as torch
    >>> torch.mkldnn_convolution(torch.ones(1, 1, 2, 2), torch.ones(1, 1, 2, 2), None, [0, 0], [1, 1], [1, 1], 1)
    tensor([[[[4.]]]])
    """
    return functions.convolution(input, weight, bias, stride, padding, dilation, False, [0] * len(padding), groups)


def batch_norm_update_stats(input: Tensor, running_mean: Tensor | None, running_var: Tensor | None,
                            momentum: float) -> tuple[Tensor, Tensor]:
    """Mean and biased variance of each channel; the running ones move toward mean and unbiased variance.

    Args:
        input: (N, C, ...).
        momentum: the weight of the new statistics.

    Raises:
        RuntimeError: the input is empty.

    >>> import flambeau as torch
    >>> torch.batch_norm_update_stats(torch.tensor([[1.], [3.]]), torch.zeros(1), torch.ones(1), 0.1)
    (tensor([2.]), tensor([1.]))
    """
    channels = input.size(1)
    if not input.numel():
        raise RuntimeError(f"input tensor must have at least one element, but got input_sizes = {list(input.shape)}")
    axes = [axis for axis in range(input.dim()) if axis != 1]
    mean = functions.mean(input, axes)
    variance = functions.var(input, axes, correction=0)
    count = input.numel() // channels
    if running_mean is not None:
        running_mean.mul_(1 - momentum).add_(mean, alpha=momentum)
    if running_var is not None:
        running_var.mul_(1 - momentum).add_(variance * (count / max(count - 1, 1)), alpha=momentum)
    return mean, variance


def dequantize(input: Any) -> Any:
    """Tensors as float32: quantized ones do not exist here.

    Args:
        input: a tensor, or a sequence of tensors.

    >>> import flambeau as torch
    >>> torch.dequantize(torch.ones(2))
    tensor([1., 1.])
    """
    if isinstance(input, Tensor):
        return input.to(dtypes.float32)
    return [dequantize(each) for each in input]


class _FakeQuantize(Function):  # type: ignore[misc]
    """Rounding to multiples of a scale within limits, whose gradient is one within the limits."""

    @staticmethod
    def forward(ctx: Any, input: Tensor, scale: Any, zero_point: Any, low: int, high: int) -> Tensor:
        levels = functions.round(input * (1 / scale)) + zero_point
        ctx.save_for_backward((levels >= low) & (levels <= high))
        return (functions.clamp(levels, low, high) - zero_point) * scale

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Any:
        return gradient * ctx.saved_tensors[0], None, None, None, None


def fake_quantize_per_tensor_affine(input: Tensor, scale: Any, zero_point: Any, quant_min: int,
                                    quant_max: int) -> Tensor:
    """Numbers rounded as quantization would, (clamp(round(x / scale) + zero, min, max) - zero) · scale.

    Args:
        scale: a number, or a tensor of one element.
        zero_point: an integer, or a tensor of one element.
        quant_min, quant_max: limits of the integers.

    Raises:
        RuntimeError: the limits are in the wrong order.

    >>> import flambeau as torch
    >>> torch.fake_quantize_per_tensor_affine(torch.tensor([0.12, 9.]), 0.1, 0, 0, 15)
    tensor([0.1000, 1.5000])
    """
    if quant_min > quant_max:
        raise RuntimeError("`quant_min` should be less than or         equal to `quant_max`.")
    return _FakeQuantize.apply(input, scale, zero_point, quant_min, quant_max)


def fake_quantize_per_channel_affine(input: Tensor, scale: Tensor, zero_point: Tensor, axis: int, quant_min: int,
                                     quant_max: int) -> Tensor:
    """`fake_quantize_per_tensor_affine` with a scale and a zero point for each slice along `axis`.

    Args:
        scale, zero_point: (input.shape[axis],).

    Raises:
        RuntimeError: the limits are in the wrong order, or the shapes do not fit.

    >>> import flambeau as torch
    >>> torch.fake_quantize_per_channel_affine(torch.tensor([[0.12], [0.33]]), torch.tensor([0.1, 0.2]),
    ...                                        torch.zeros(2, dtype=torch.int32), 0, 0, 255)
    tensor([[0.1000],
            [0.4000]])
    """
    if quant_min > quant_max:
        raise RuntimeError("`quant_min` should be less than or         equal to `quant_max`.")
    if scale.dim() != 1 or scale.numel() != input.shape[axis]:
        raise RuntimeError("dimensions of scale and zero-point are not consistent with input tensor")
    shape = [1] * input.dim()
    shape[axis] = -1
    return _FakeQuantize.apply(input, scale.reshape(shape), zero_point.reshape(shape), quant_min, quant_max)


__all__ = sorted([  # noqa: PLE0605
    *_REFUSED, "batch_norm_update_stats", "compiled_with_cxx11_abi", "cudnn_is_acceptable", "dequantize",
    "fake_quantize_per_channel_affine", "fake_quantize_per_tensor_affine", "has_lapack", "has_mkl", "has_openmp",
    "has_spectral", "mkldnn_convolution", "native_norm", "per_channel_affine", "per_channel_affine_float_qparams",
    "per_channel_symmetric", "per_tensor_affine", "per_tensor_symmetric", "qscheme", "quantize_per_channel",
    "quantize_per_tensor", "quantize_per_tensor_dynamic"])
