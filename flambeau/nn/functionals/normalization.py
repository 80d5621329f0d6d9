"""Normalization functions: argument checks, instance norm by batch norm, local response norm."""

from __future__ import annotations

from collections.abc import Sequence

from ..._tensor import Tensor
from ..._tensor import functions as fn
from ..._tensor.argument_errors.seen_classes import SeenClasses

__all__ = [
    "batch_norm", "group_norm", "instance_norm", "layer_norm", "local_response_norm", "rms_norm",
]


def _check_values_per_channel(size: Sequence[int]) -> None:
    values = size[0]
    for n in size[2:]:
        values *= n
    if values == 1:
        raise ValueError(f"Expected more than 1 value per channel when training, got input size {size}")


def batch_norm(input: Tensor, running_mean: Tensor | None, running_var: Tensor | None,
               weight: Tensor | None = None, bias: Tensor | None = None, training: bool = False,
               momentum: float = 0.1, eps: float = 1e-5) -> Tensor:
    """Batch normalization: (x - mean) / √(var + eps) · weight + bias, with statistics per channel.

    Args:
        input: (N, C) or (N, C, ...).
        running_mean: (C,), or None.
        running_var: (C,), or None.
        weight: (C,), or None.
        bias: (C,), or None.
        training: use the batch's statistics and update the running ones in place; else use the running ones.
        momentum: weight of the batch in the update of the running statistics.
        eps: added to the variance.

    Raises:
        ValueError: training with one value per channel, or `eps` is out of range.

    >>> import flambeau as torch
    >>> torch.nn.functional.batch_norm(torch.tensor([[0.0], [2.0]]), None, None, training=True)
    tensor([[-1.0000],
            [ 1.0000]])
    """
    if training:
        _check_values_per_channel(input.size())
        if eps <= 0.0:
            raise ValueError(f"batch_norm eps must be positive during training, but got {eps}")
    elif eps < 0.0:
        raise ValueError(f"batch_norm eps must be non-negative, but got {eps}")
    return fn.batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps, False)


def instance_norm(input: Tensor, running_mean: Tensor | None = None, running_var: Tensor | None = None,
                  weight: Tensor | None = None, bias: Tensor | None = None, use_input_stats: bool = True,
                  momentum: float = 0.1, eps: float = 1e-5) -> Tensor:
    """Instance normalization: (x - mean) / √(var + eps) · weight + bias, with statistics per sample and channel.

    Computed as batch normalization of one sample with N · C channels.

    Args:
        input: (N, C, ...).
        running_mean: (C,), or None.
        running_var: (C,), or None.
        weight: (C,), or None.
        bias: (C,), or None.
        use_input_stats: use the input's statistics; else the running ones.
        momentum: weight of the input in the update of the running statistics.
        eps: added to the variance.

    Raises:
        ValueError: one value per channel.

    >>> import flambeau as torch
    >>> torch.nn.functional.instance_norm(torch.tensor([[[0.0, 2.0]]]))
    tensor([[[-1.0000,  1.0000]]])
    """
    if use_input_stats:
        spatial_size = 1
        for n in input.size()[2:]:
            spatial_size *= n
        if spatial_size == 1:
            raise ValueError(f"Expected more than 1 spatial element when training, got input size {input.size()}")
    _instance_norm_classes.look(
        (input, weight, bias, running_mean, running_var, use_input_stats, momentum, eps, False), {})
    return normalize_instances(input, running_mean, running_var, weight, bias, use_input_stats, momentum, eps)


_instance_norm_classes = SeenClasses("torch", "instance_norm", skips=False)


def normalize_instances(input: Tensor, running_mean: Tensor | None, running_var: Tensor | None, weight: Tensor | None,
                        bias: Tensor | None, use_input_stats: bool, momentum: float, eps: float) -> Tensor:
    """`instance_norm` of any number of values per channel."""
    if not use_input_stats and (running_mean is None or running_var is None):
        raise RuntimeError("Expected running_mean and running_var to be defined when use_input_stats is false")
    batch, channels = input.size(0), input.size(1)

    def tile(t: Tensor | None) -> Tensor | None:
        return None if t is None else t.repeat(batch)

    means, variances = tile(running_mean), tile(running_var)
    flat_batch = input.contiguous().view(1, batch * channels, *input.shape[2:])
    out = fn.batch_norm(flat_batch, tile(weight), tile(bias), means, variances, use_input_stats, momentum, eps, False)
    if running_mean is not None and means is not None:
        running_mean.copy_(means.view(batch, channels).mean(0))
    if running_var is not None and variances is not None:
        running_var.copy_(variances.view(batch, channels).mean(0))
    return out.view(input.shape)


def group_norm(input: Tensor, num_groups: int, weight: Tensor | None = None, bias: Tensor | None = None,
               eps: float = 1e-5) -> Tensor:
    """Group normalization: (x - mean) / √(var + eps) · weight + bias, with statistics per sample and group of channels.

    Args:
        input: (N, C, ...).
        num_groups: the number of groups; divides C.
        weight: (C,), or None.
        bias: (C,), or None.
        eps: added to the variance.

    Raises:
        RuntimeError: the input has fewer than 2 dimensions.
        ValueError: one value per group.

    >>> import flambeau as torch
    >>> torch.nn.functional.group_norm(torch.tensor([[0.0, 2.0]]), 1)
    tensor([[-1.0000,  1.0000]])
    """
    if input.dim() < 2:
        raise RuntimeError(f"Expected at least 2 dimensions for input tensor but received {input.dim()}")
    size = input.size()
    _check_values_per_channel([size[0] * size[1] // num_groups, num_groups, *size[2:]])
    return fn.group_norm(input, num_groups, weight, bias, eps)


def layer_norm(input: Tensor, normalized_shape: Sequence[int], weight: Tensor | None = None,
               bias: Tensor | None = None, eps: float = 1e-5) -> Tensor:
    """Layer normalization: (x - mean) / √(var + eps) · weight + bias over the last dimensions.

    Args:
        input: (..., *normalized_shape).
        normalized_shape: the sizes of the last dimensions.
        weight: of shape `normalized_shape`, or None.
        bias: of shape `normalized_shape`, or None.
        eps: added to the variance.

    >>> import flambeau as torch
    >>> torch.nn.functional.layer_norm(torch.tensor([[0.0, 2.0]]), [2])
    tensor([[-1.0000,  1.0000]])
    """
    return fn.layer_norm(input, normalized_shape, weight, bias, eps)


def rms_norm(input: Tensor, normalized_shape: Sequence[int], weight: Tensor | None = None,
             eps: float | None = None) -> Tensor:
    """Root mean square normalization: x / √(mean(x²) + eps) · weight over the last dimensions.

    Args:
        input: (..., *normalized_shape).
        normalized_shape: the sizes of the last dimensions.
        weight: of shape `normalized_shape`, or None.
        eps: added to the mean square; None for the machine epsilon of the input's dtype.

    >>> import flambeau as torch
    >>> torch.nn.functional.rms_norm(torch.tensor([[3.0, 3.0]]), [2])
    tensor([[1., 1.]])
    """
    return fn.rms_norm(input, normalized_shape, weight, eps)


def local_response_norm(input: Tensor, size: int, alpha: float = 1e-4, beta: float = 0.75,
                        k: float = 1.0) -> Tensor:
    """Local response normalization: x / (k + alpha · mean(x²))^beta, the mean over `size` neighboring channels.

    Args:
        input: (N, C, ...), at least 3-D.
        size: the number of channels.
        alpha: factor of the mean.
        beta: the exponent.
        k: the additive constant.

    Raises:
        ValueError: the input has fewer than 3 dimensions.

    >>> import flambeau as torch
    >>> torch.nn.functional.local_response_norm(torch.ones(1, 2, 1), 1, alpha=1.0, beta=1.0).flatten()
    tensor([0.5000, 0.5000])
    """
    dimensions = input.dim()
    if dimensions < 3:
        raise ValueError("Expected 3D or higher dimensionality                          "
                         f"input (got {dimensions} dimensions)")
    if input.numel() == 0:
        return input
    before, after = size // 2, (size - 1) // 2
    squared = input.mul(input)
    if dimensions == 3:
        padded = fn.constant_pad_nd(squared.unsqueeze(1), (0, 0, before, after), 0)
        mean = fn.avg_pool2d(padded, (size, 1), stride=1).squeeze(1)
    else:
        batch, channels, *space = input.size()
        planes = squared.view(batch, 1, channels, space[0], -1)
        padded = fn.constant_pad_nd(planes, (0, 0, 0, 0, before, after), 0)
        mean = fn.avg_pool3d(padded, (size, 1, 1), stride=1).squeeze(1).view(input.size())
    return input / mean.mul(alpha).add(k).pow(beta)
