"""Instance normalization layers."""

from __future__ import annotations

import warnings
from typing import Any

from ..._tensor import Tensor
from .. import functional as F
from .batchnorm import _LazyNormBase, _NormBase

__all__ = ["InstanceNorm1d", "InstanceNorm2d", "InstanceNorm3d", "LazyInstanceNorm1d", "LazyInstanceNorm2d",
           "LazyInstanceNorm3d"]


class _InstanceNorm(_NormBase):
    def __init__(self, num_features: int, eps: float = 1e-5, momentum: float = 0.1, affine: bool = False,
                 track_running_stats: bool = False, device: Any = None, dtype: Any = None, *,
                 bias: bool = True) -> None:
        super().__init__(num_features, eps, momentum, affine, track_running_stats, device, dtype, bias=bias)

    def _get_no_batch_dim(self) -> int:
        raise NotImplementedError

    def forward(self, input: Tensor) -> Tensor:
        self._check_input_dim(input)
        unbatched = input.dim() == self._get_no_batch_dim()
        channels = input.size(-self._get_no_batch_dim())
        if channels != self.num_features:
            dim = input.dim() - self._get_no_batch_dim()
            if self.affine:
                raise ValueError(f"expected input's size at dim={dim} to match num_features"
                                 f" ({self.num_features}), but got: {channels}.")
            warnings.warn(f"input's size at dim={dim} does not match num_features. "
                          "You can silence this warning by not passing in num_features, "
                          "which is not used because affine=False", stacklevel=2)
        out = F.instance_norm(input.unsqueeze(0) if unbatched else input, self.running_mean, self.running_var,
                              self.weight, self.bias, self.training or not self.track_running_stats,
                              self.momentum if self.momentum is not None else 0.0, self.eps)
        return out.squeeze(0) if unbatched else out


class InstanceNorm1d(_InstanceNorm):
    """Instance normalization: (x - mean) / √(var + eps) · weight + bias, with statistics per sample and channel.

    The arguments are those of `BatchNorm1d`; `affine` and `track_running_stats` default to False.

    Shape:
        Input and output: (N, C, L) or (C, L).

    Raises:
        ValueError: the rank is wrong, or there is one value per channel.

    >>> import flambeau as torch
    >>> torch.nn.InstanceNorm1d(1)(torch.tensor([[0.0, 2.0]]))
    tensor([[-1.0000,  1.0000]])
    """

    def _get_no_batch_dim(self) -> int:
        return 2

    def _check_input_dim(self, input: Tensor) -> None:
        if input.dim() not in (2, 3):
            raise ValueError(f"expected 2D or 3D input (got {input.dim()}D input)")


class InstanceNorm2d(_InstanceNorm):
    """Instance normalization of 3-D and 4-D inputs; see `InstanceNorm1d` for formula and arguments.

    Shape:
        Input and output: (N, C, H, W) or (C, H, W).

    Raises:
        ValueError: the rank is wrong, or there is one value per channel.

    >>> import flambeau as torch
    >>> torch.nn.InstanceNorm2d(1)(torch.tensor([[[0.0, 2.0]]]))
    tensor([[[-1.0000,  1.0000]]])
    """

    def _get_no_batch_dim(self) -> int:
        return 3

    def _check_input_dim(self, input: Tensor) -> None:
        if input.dim() not in (3, 4):
            raise ValueError(f"expected 3D or 4D input (got {input.dim()}D input)")


class InstanceNorm3d(_InstanceNorm):
    """Instance normalization of 4-D and 5-D inputs; see `InstanceNorm1d` for formula and arguments.

    Shape:
        Input and output: (N, C, D, H, W) or (C, D, H, W).

    Raises:
        ValueError: the rank is wrong, or there is one value per channel.

    >>> import flambeau as torch
    >>> torch.nn.InstanceNorm3d(1)(torch.tensor([[[[0.0, 2.0]]]]))
    tensor([[[[-1.0000,  1.0000]]]])
    """

    def _get_no_batch_dim(self) -> int:
        return 4

    def _check_input_dim(self, input: Tensor) -> None:
        if input.dim() not in (4, 5):
            raise ValueError(f"expected 4D or 5D input (got {input.dim()}D input)")


class LazyInstanceNorm1d(_LazyNormBase, _InstanceNorm):
    """An `InstanceNorm1d` whose `num_features` is taken from the first input; the other arguments are the same.

    >>> import flambeau as torch
    >>> torch.nn.LazyInstanceNorm1d()(torch.ones(2, 3, 4)).shape
    flambeau.Size([2, 3, 4])
    """

    cls_to_become = InstanceNorm1d

    def _get_no_batch_dim(self) -> int:
        return 2

    def _check_input_dim(self, input: Tensor) -> None:
        if input.dim() not in (2, 3):
            raise ValueError(f"expected 2D or 3D input (got {input.dim()}D input)")


class LazyInstanceNorm2d(_LazyNormBase, _InstanceNorm):
    """An `InstanceNorm2d` whose `num_features` is taken from the first input; the other arguments are the same.

    >>> import flambeau as torch
    >>> torch.nn.LazyInstanceNorm2d()(torch.ones(2, 3, 4, 4)).shape
    flambeau.Size([2, 3, 4, 4])
    """

    cls_to_become = InstanceNorm2d

    def _get_no_batch_dim(self) -> int:
        return 3

    def _check_input_dim(self, input: Tensor) -> None:
        if input.dim() not in (3, 4):
            raise ValueError(f"expected 3D or 4D input (got {input.dim()}D input)")


class LazyInstanceNorm3d(_LazyNormBase, _InstanceNorm):
    """An `InstanceNorm3d` whose `num_features` is taken from the first input; the other arguments are the same.

    >>> import flambeau as torch
    >>> torch.nn.LazyInstanceNorm3d()(torch.ones(2, 3, 4, 4, 4)).shape
    flambeau.Size([2, 3, 4, 4, 4])
    """

    cls_to_become = InstanceNorm3d

    def _get_no_batch_dim(self) -> int:
        return 4

    def _check_input_dim(self, input: Tensor) -> None:
        if input.dim() not in (4, 5):
            raise ValueError(f"expected 4D or 5D input (got {input.dim()}D input)")
