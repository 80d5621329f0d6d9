"""`torch.nn.init`: initializers that fill a tensor in place under `no_grad` and return it.

Random initializers consume the generator as PyTorch's do: the same seed gives the same weights.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from typing import Any

from .._tensor import Tensor, no_grad
from .._tensor import functions as fn
from .._tensor.overriding.protocol import ask_handlers, overrides

__all__ = [
    "calculate_gain", "constant", "constant_", "dirac", "dirac_", "eye", "eye_", "kaiming_normal",
    "kaiming_normal_", "kaiming_uniform", "kaiming_uniform_", "normal", "normal_", "ones_", "orthogonal",
    "orthogonal_", "sparse", "sparse_", "trunc_normal_", "uniform", "uniform_", "xavier_normal",
    "xavier_normal_", "xavier_uniform", "xavier_uniform_", "zeros_",
]

UNIT_GAIN = ("linear", "conv1d", "conv2d", "conv3d", "conv_transpose1d", "conv_transpose2d",
             "conv_transpose3d", "sigmoid")


def calculate_gain(nonlinearity: str, param: float | None = None) -> float:
    """The recommended gain of a nonlinearity.

    linear, convolutions, sigmoid: 1; tanh: 5/3; relu: √2; leaky_relu: √(2 / (1 + slope²)); selu: 3/4.

    Args:
        nonlinearity: name of the function in `nn.functional`.
        param: slope of leaky_relu, 0.01 by default.

    Raises:
        ValueError: the nonlinearity is unknown, or `param` is not a number.

    >>> import flambeau as torch
    >>> torch.nn.init.calculate_gain("relu") == 2 ** 0.5
    True
    """
    if nonlinearity in UNIT_GAIN:
        return 1
    if nonlinearity == "tanh":
        return 5.0 / 3
    if nonlinearity == "relu":
        return math.sqrt(2.0)
    if nonlinearity == "leaky_relu":
        if param is None:
            slope = 0.01
        elif isinstance(param, int | float) and not isinstance(param, bool):
            slope = param
        else:
            raise ValueError(f"negative_slope {param} not a valid number")
        return math.sqrt(2.0 / (1 + slope**2))
    if nonlinearity == "selu":
        return 3.0 / 4
    raise ValueError(f"Unsupported nonlinearity {nonlinearity}")


def uniform_(tensor: Tensor, a: float = 0.0, b: float = 1.0, generator: Any = None) -> Tensor:
    """Fill from the uniform distribution U(a, b).

    Args:
        tensor: the tensor to fill.
        a: the lower bound.
        b: the upper bound, exclusive.
        generator: the random number generator; the default one if None.

    >>> import flambeau as torch
    >>> _ = torch.manual_seed(0)
    >>> torch.nn.init.uniform_(torch.empty(2))
    tensor([0.4963, 0.7682])
    """
    if overrides(tensor):
        named = {"tensor": tensor, "a": a, "b": b, "generator": generator}
        return ask_handlers(uniform_, "uniform_", [tensor], (), named)
    with no_grad():
        return tensor.uniform_(a, b, generator=generator)


def normal_(tensor: Tensor, mean: float = 0.0, std: float = 1.0, generator: Any = None) -> Tensor:
    """Fill from the normal distribution N(mean, std²).

    Args:
        tensor: the tensor to fill.
        mean: the mean.
        std: the standard deviation.
        generator: the random number generator; the default one if None.

    >>> import flambeau as torch
    >>> _ = torch.manual_seed(0)
    >>> torch.nn.init.normal_(torch.empty(2))
    tensor([ 1.5410, -0.2934])
    """
    if overrides(tensor):
        named = {"tensor": tensor, "mean": mean, "std": std, "generator": generator}
        return ask_handlers(normal_, "normal_", [tensor], (), named)
    with no_grad():
        return tensor.normal_(mean, std, generator=generator)


def trunc_normal_(tensor: Tensor, mean: float = 0.0, std: float = 1.0, a: float = -2.0, b: float = 2.0,
                  generator: Any = None) -> Tensor:
    """Fill from the normal distribution N(mean, std²) truncated to [a, b].

    If [a, b] holds more than 0.3 of the probability, normal samples outside are resampled. Otherwise, rejection
    sampling from U(a, b) is used.

    Args:
        tensor: the tensor to fill.
        mean: the mean before truncation.
        std: the standard deviation before truncation.
        a: the lower bound.
        b: the upper bound.
        generator: the random number generator; the default one if None.

    >>> import flambeau as torch
    >>> _ = torch.manual_seed(0)
    >>> torch.nn.init.trunc_normal_(torch.empty(2))
    tensor([ 1.5410, -0.2934])
    """
    if tensor.device.type == "meta":
        return tensor
    if mean < a - 2 * std or mean > b + 2 * std:
        warnings.warn("mean is more than 2 std from [a, b] in nn.init.trunc_normal_. "
                      "The distribution of values may be incorrect.", stacklevel=2)
    probability = _normal_cdf((b - mean) / std) - _normal_cdf((a - mean) / std)
    with no_grad():
        if probability > 0.3:
            return _resample_outside(tensor, mean, std, a, b, generator)
        return _rejection_sample(tensor, mean, std, a, b, generator)


def _normal_cdf(x: float) -> float:
    return (1.0 + math.erf(x / math.sqrt(2.0))) / 2.0


def _resample_outside(tensor: Tensor, mean: float, std: float, a: float, b: float, generator: Any) -> Tensor:
    # bounds rounded to the tensor's dtype, like the samples
    low, high = tensor.new_tensor(a).item(), tensor.new_tensor(b).item()
    drawn = tensor.normal_(mean, std, generator=generator)
    outside = (drawn < low) | (drawn > high)
    while outside.any():
        redrawn = fn.empty_like(drawn).normal_(mean, std, generator=generator)
        drawn = fn.where(outside, redrawn, drawn)
        outside = (drawn < low) | (drawn > high)
    return tensor if drawn is tensor else tensor.copy_(drawn)


def _rejection_sample(tensor: Tensor, mean: float, std: float, a: float, b: float, generator: Any) -> Tensor:
    peak = -0.5 * ((max(a, min(mean, b)) - mean) / std) ** 2
    candidates, thresholds = fn.empty_like(tensor), fn.empty_like(tensor)
    accepted, pending = tensor, None
    while pending is None or pending.any():
        candidates.uniform_(a, b, generator=generator)
        accepted = candidates.clone() if pending is None else fn.where(pending, candidates, accepted)
        log_density = candidates.sub_(mean).div_(std).pow_(2).mul_(-0.5).sub_(peak)
        rejected = thresholds.uniform_(generator=generator).log_().gt(log_density)
        pending = rejected if pending is None else pending & rejected
    return tensor.copy_(accepted)


def constant_(tensor: Tensor, val: float) -> Tensor:
    """Fill with one value.

    Args:
        tensor: the tensor to fill.
        val: the value.

    >>> import flambeau as torch
    >>> torch.nn.init.constant_(torch.empty(2), 0.5)
    tensor([0.5000, 0.5000])
    """
    if overrides(tensor):
        named = {"tensor": tensor, "val": val}
        return ask_handlers(constant_, "constant_", [tensor], (), named)
    with no_grad():
        return tensor.fill_(val)


def ones_(tensor: Tensor) -> Tensor:
    """Fill with ones.

    Args:
        tensor: the tensor to fill.

    >>> import flambeau as torch
    >>> torch.nn.init.ones_(torch.empty(2))
    tensor([1., 1.])
    """
    with no_grad():
        return tensor.fill_(1.0)


def zeros_(tensor: Tensor) -> Tensor:
    """Fill with zeros.

    Args:
        tensor: the tensor to fill.

    >>> import flambeau as torch
    >>> torch.nn.init.zeros_(torch.empty(2))
    tensor([0., 0.])
    """
    with no_grad():
        return tensor.zero_()


def eye_(tensor: Tensor) -> Tensor:
    """Fill a matrix with the identity.

    Args:
        tensor: the 2-D tensor to fill.

    Raises:
        ValueError: the tensor is not 2-D.

    >>> import flambeau as torch
    >>> torch.nn.init.eye_(torch.empty(2, 3))
    tensor([[1., 0., 0.],
            [0., 1., 0.]])
    """
    if tensor.ndimension() != 2:
        raise ValueError("Only tensors with 2 dimensions are supported")
    with no_grad():
        return tensor.copy_(fn.eye(*tensor.shape, dtype=tensor.dtype, device=tensor.device))


def dirac_(tensor: Tensor, groups: int = 1) -> Tensor:
    """Fill convolution weights with the identity kernel: output channel i is input channel i, per group.

    Args:
        tensor: (C_out, C_in, *kernel), 3-D to 5-D.
        groups: the number of groups; divides C_out.

    Raises:
        ValueError: the rank is wrong, or `groups` does not divide C_out.

    >>> import flambeau as torch
    >>> torch.nn.init.dirac_(torch.empty(1, 2, 3))
    tensor([[[0., 1., 0.],
             [0., 0., 0.]]])
    """
    dimensions = tensor.ndimension()
    if dimensions not in (3, 4, 5):
        raise ValueError("Only tensors with 3, 4, or 5 dimensions are supported")
    sizes = tensor.size()
    if sizes[0] % groups != 0:
        raise ValueError("dim 0 must be divisible by groups")
    out_channels = sizes[0] // groups
    centre = tuple(size // 2 for size in sizes[2:])
    with no_grad():
        tensor.zero_()
        for group in range(groups):
            for channel in range(min(out_channels, sizes[1])):
                tensor[(group * out_channels + channel, channel, *centre)] = 1
    return tensor


def _calculate_fan_in_and_fan_out(tensor: Tensor) -> tuple[int, int]:
    if tensor.dim() < 2:
        raise ValueError("Fan in and fan out can not be computed for tensor with fewer than 2 dimensions")
    receptive_field = math.prod(tensor.shape[2:])
    return tensor.size(1) * receptive_field, tensor.size(0) * receptive_field


def _calculate_correct_fan(tensor: Tensor, mode: str) -> int:
    mode = mode.lower()
    modes = ["fan_in", "fan_out"]
    if mode not in modes:
        raise ValueError(f"Mode {mode} not supported, please use one of {modes}")
    return _calculate_fan_in_and_fan_out(tensor)[modes.index(mode)]


def xavier_uniform_(tensor: Tensor, gain: float = 1.0, generator: Any = None) -> Tensor:
    """Fill from U(-a, a), a = gain · √(6 / (fan_in + fan_out)).

    Args:
        tensor: (out, in, *kernel); fan_in = in · kernel size, fan_out = out · kernel size.
        gain: the factor; see `calculate_gain`.
        generator: the random number generator; the default one if None.

    Raises:
        ValueError: the tensor has fewer than 2 dimensions.

    >>> import flambeau as torch
    >>> _ = torch.manual_seed(0)
    >>> torch.nn.init.xavier_uniform_(torch.empty(1, 2))
    tensor([[-0.0106,  0.7586]])
    """
    std = gain * math.sqrt(2.0 / float(sum(_calculate_fan_in_and_fan_out(tensor))))
    bound = math.sqrt(3.0) * std
    return uniform_(tensor, -bound, bound, generator)


def xavier_normal_(tensor: Tensor, gain: float = 1.0, generator: Any = None) -> Tensor:
    """Fill from N(0, std²), std = gain · √(2 / (fan_in + fan_out)).

    Args:
        tensor: (out, in, *kernel); fan_in = in · kernel size, fan_out = out · kernel size.
        gain: the factor; see `calculate_gain`.
        generator: the random number generator; the default one if None.

    Raises:
        ValueError: the tensor has fewer than 2 dimensions.

    >>> import flambeau as torch
    >>> _ = torch.manual_seed(0)
    >>> torch.nn.init.xavier_normal_(torch.empty(1, 2))
    tensor([[ 1.2582, -0.2396]])
    """
    std = gain * math.sqrt(2.0 / float(sum(_calculate_fan_in_and_fan_out(tensor))))
    return normal_(tensor, 0.0, std, generator)


def kaiming_uniform_(tensor: Tensor, a: float = 0, mode: str = "fan_in", nonlinearity: str = "leaky_relu",
                     generator: Any = None) -> Tensor:
    """Fill from U(-b, b), b = gain · √(3 / fan).

    Args:
        tensor: (out, in, *kernel); fan_in = in · kernel size, fan_out = out · kernel size.
        a: negative slope of leaky_relu.
        mode: "fan_in" preserves the variance in the forward pass, "fan_out" in the backward pass.
        nonlinearity: determines the gain; see `calculate_gain`.
        generator: the random number generator; the default one if None.

    Raises:
        ValueError: `mode` or `nonlinearity` is unknown, or the tensor has fewer than 2 dimensions.

    >>> import flambeau as torch
    >>> _ = torch.manual_seed(0)
    >>> torch.nn.init.kaiming_uniform_(torch.empty(1, 2))
    tensor([[-0.0130,  0.9291]])
    """
    if overrides(tensor):
        named = {"tensor": tensor, "a": a, "mode": mode, "nonlinearity": nonlinearity, "generator": generator}
        return ask_handlers(kaiming_uniform_, "kaiming_uniform_", [tensor], (), named)
    if 0 in tensor.shape:
        warnings.warn("Initializing zero-element tensors is a no-op", stacklevel=2)
        return tensor
    bound = math.sqrt(3.0) * _kaiming_std(tensor, a, mode, nonlinearity)
    return uniform_(tensor, -bound, bound, generator)


def kaiming_normal_(tensor: Tensor, a: float = 0, mode: str = "fan_in", nonlinearity: str = "leaky_relu",
                    generator: Any = None) -> Tensor:
    """Fill from N(0, std²), std = gain / √fan.

    Args:
        tensor: (out, in, *kernel); fan_in = in · kernel size, fan_out = out · kernel size.
        a: negative slope of leaky_relu.
        mode: "fan_in" preserves the variance in the forward pass, "fan_out" in the backward pass.
        nonlinearity: determines the gain; see `calculate_gain`.
        generator: the random number generator; the default one if None.

    Raises:
        ValueError: `mode` or `nonlinearity` is unknown, or the tensor has fewer than 2 dimensions.

    >>> import flambeau as torch
    >>> _ = torch.manual_seed(0)
    >>> torch.nn.init.kaiming_normal_(torch.empty(1, 2))
    tensor([[ 1.5410, -0.2934]])
    """
    if 0 in tensor.shape:
        warnings.warn("Initializing zero-element tensors is a no-op", stacklevel=2)
        return tensor
    return normal_(tensor, 0, _kaiming_std(tensor, a, mode, nonlinearity), generator)


def _kaiming_std(tensor: Tensor, a: float, mode: str, nonlinearity: str) -> float:
    fan = _calculate_correct_fan(tensor, mode)
    return calculate_gain(nonlinearity, a) / math.sqrt(fan)


def orthogonal_(tensor: Tensor, gain: float = 1, generator: Any = None) -> Tensor:
    """Fill with a random (semi-)orthogonal matrix, scaled by `gain`.

    Args:
        tensor: at least 2-D; viewed as (size(0), product of the other sizes).
        gain: the factor.
        generator: the random number generator; the default one if None.

    Raises:
        ValueError: the tensor has fewer than 2 dimensions.

    >>> import flambeau as torch
    >>> w = torch.nn.init.orthogonal_(torch.empty(2, 3))
    >>> torch.allclose(w @ w.t(), torch.eye(2), atol=1e-5)
    True
    """
    if tensor.ndimension() < 2:
        raise ValueError("Only tensors with 2 or more dimensions are supported")
    if tensor.numel() == 0:
        return tensor
    rows = tensor.size(0)
    columns = tensor.numel() // rows
    with no_grad():
        drawn = tensor.new_empty((rows, columns)).normal_(0, 1, generator=generator)
        if rows < columns:
            drawn = drawn.t()
        q, r = fn.linalg_qr(drawn)
        # fix the signs of diag(R): Q is then Haar-distributed
        q = q * fn.sign(fn.diag(r))
        if rows < columns:
            q = q.t()
        tensor.view_as(q).copy_(q)
        return tensor.mul_(gain)


def sparse_(tensor: Tensor, sparsity: float, std: float = 0.01, generator: Any = None) -> Tensor:
    """Fill a matrix from N(0, std²), and set a fraction `sparsity` of each column to zero.

    Args:
        tensor: the 2-D tensor to fill.
        sparsity: the fraction of zeros per column, rounded up to rows.
        std: the standard deviation.
        generator: the random number generator; the default one if None.

    Raises:
        ValueError: the tensor is not 2-D.

    >>> import flambeau as torch
    >>> (torch.nn.init.sparse_(torch.empty(4, 3), sparsity=0.5) == 0).sum(0)
    tensor([2, 2, 2])
    """
    if tensor.ndimension() != 2:
        raise ValueError("Only tensors with 2 dimensions are supported")
    rows, columns = tensor.shape
    zeros = math.ceil(sparsity * rows)
    with no_grad():
        tensor.normal_(0, std, generator=generator)
        for column in range(columns):
            tensor[fn.randperm(rows)[:zeros], column] = 0
    return tensor


def _deprecated(function: Callable[..., Tensor], example: str = "torch.empty(2, 2)") -> Callable[..., Tensor]:
    """The deprecated alias without the trailing underscore."""
    new = function.__name__
    old = new[:-1]

    def call(*args: Any, **kwargs: Any) -> Tensor:
        warnings.warn(f"`nn.init.{old}` is now deprecated in favor of `nn.init.{new}`.",
                      FutureWarning, stacklevel=2)
        return function(*args, **kwargs)

    call.__name__ = call.__qualname__ = old
    call.__doc__ = f"""Deprecated: use `{new}`, which has the same arguments.

    >>> import warnings
    >>> import flambeau as torch
    >>> with warnings.catch_warnings(action="ignore"):
    ...     torch.nn.init.{old}({example}).isfinite().all()
    tensor(True)
    """
    return call


uniform = _deprecated(uniform_)
normal = _deprecated(normal_)
constant = _deprecated(constant_, "torch.empty(2, 2), 0.5")
eye = _deprecated(eye_)
dirac = _deprecated(dirac_, "torch.empty(2, 2, 3)")
xavier_uniform = _deprecated(xavier_uniform_)
xavier_normal = _deprecated(xavier_normal_)
kaiming_uniform = _deprecated(kaiming_uniform_)
kaiming_normal = _deprecated(kaiming_normal_)
orthogonal = _deprecated(orthogonal_)
sparse = _deprecated(sparse_, "torch.empty(2, 2), sparsity=0.5")

# PyTorch's private names, which packages call
_no_grad_uniform_, _no_grad_normal_, _no_grad_trunc_normal_ = uniform_, normal_, trunc_normal_
_no_grad_fill_, _no_grad_zero_ = constant_, zeros_
