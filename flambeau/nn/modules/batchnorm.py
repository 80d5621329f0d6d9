"""Batch normalization layers."""

from __future__ import annotations

from typing import Any

from ..._tensor import Parameter, Tensor
from ..._tensor import functions as fn
from .. import functional as F
from .. import init
from ..parameter import UninitializedBuffer, UninitializedParameter
from .base.own_methods import OwnMethods
from .lazy import LazyModuleMixin
from .module import Module

__all__ = ["BatchNorm1d", "BatchNorm2d", "BatchNorm3d", "LazyBatchNorm1d", "LazyBatchNorm2d", "LazyBatchNorm3d",
           "SyncBatchNorm"]


class _NormBase(OwnMethods, Module):
    """Base of batch and instance normalization: parameters and running statistics."""

    __constants__ = ["track_running_stats", "momentum", "eps", "num_features", "affine"]

    _version = 2
    num_features: int
    eps: float
    momentum: float | None
    affine: bool
    track_running_stats: bool
    weight: Tensor | None
    bias: Tensor | None
    running_mean: Tensor | None
    running_var: Tensor | None
    num_batches_tracked: Tensor | None

    def __init__(self, num_features: int, eps: float = 1e-5, momentum: float | None = 0.1, affine: bool = True,
                 track_running_stats: bool = True, device: Any = None, dtype: Any = None, *,
                 bias: bool = True) -> None:
        super().__init__()
        self.num_features = num_features
        self.eps = eps
        self.momentum = momentum
        self.affine = affine
        self.track_running_stats = track_running_stats
        kind = {"device": device, "dtype": dtype}
        self.register_parameter("weight", Parameter(fn.empty(num_features, **kind)) if affine else None)
        self.register_parameter("bias", Parameter(fn.empty(num_features, **kind)) if affine and bias else None)
        if track_running_stats:
            self.register_buffer("running_mean", fn.zeros(num_features, **kind))
            self.register_buffer("running_var", fn.ones(num_features, **kind))
            self.register_buffer("num_batches_tracked", fn.tensor(0, device=device))
        else:
            for name in ("running_mean", "running_var", "num_batches_tracked"):
                self.register_buffer(name, None)
        self.reset_parameters()

    def reset_running_stats(self) -> None:
        """Set the running mean to 0, the running variance to 1, the batch count to 0."""
        if self.track_running_stats:
            assert self.running_mean is not None
            assert self.running_var is not None
            assert self.num_batches_tracked is not None
            self.running_mean.zero_()
            self.running_var.fill_(1)
            self.num_batches_tracked.zero_()

    def reset_parameters(self) -> None:
        """Reset the running statistics; set weight to 1 and bias to 0."""
        self.reset_running_stats()
        if self.affine:
            assert self.weight is not None
            init.ones_(self.weight)
            if self.bias is not None:
                init.zeros_(self.bias)

    def _check_input_dim(self, input: Tensor) -> None:
        raise NotImplementedError

    def extra_repr(self) -> str:
        return (f"{self.num_features}, eps={self.eps}, momentum={self.momentum}, affine={self.affine}, "
                f"bias={self.bias is not None}, track_running_stats={self.track_running_stats}")

    def _load_from_state_dict(self, state_dict: Any, prefix: str, local_metadata: Any, strict: bool,
                              missing_keys: list[str], unexpected_keys: list[str],
                              error_msgs: list[str]) -> None:
        version = local_metadata.get("version", None)
        key = prefix + "num_batches_tracked"
        if (version is None or version < 2) and self.track_running_stats and key not in state_dict:
            # num_batches_tracked was added in version 2
            own = self.num_batches_tracked
            has_values = own is not None and own.device.type != "meta"
            state_dict[key] = own if has_values else fn.tensor(0)
        super()._load_from_state_dict(state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys,
                                      error_msgs)


class _BatchNorm(_NormBase, own=("__init__",)):
    def forward(self, input: Tensor) -> Tensor:
        self._check_input_dim(input)
        momentum = self.momentum if self.momentum is not None else 0.0
        if self.training and self.track_running_stats and self.num_batches_tracked is not None:
            self.num_batches_tracked.add_(1)
            if self.momentum is None:
                momentum = 1.0 / float(self.num_batches_tracked)  # cumulative average
        mean, var = self.running_mean, self.running_var
        uses_batch = self.training or (mean is None and var is None)
        if self.training and not self.track_running_stats:
            mean = var = None
        return F.batch_norm(input, mean, var, self.weight, self.bias, uses_batch, momentum, self.eps)


class BatchNorm1d(_BatchNorm):
    """Batch normalization: (x - mean) / √(var + eps) · weight + bias, with statistics per channel.

    In training mode, mean and (biased) variance are the batch's, and the running statistics become
    (1 - momentum) · running + momentum · batch, with the unbiased variance. In evaluation mode, the running statistics
    are used.

    Args:
        num_features: C.
        eps: added to the variance.
        momentum: the update factor; None for the cumulative average over all batches.
        affine: whether there are weight and bias, of shape (C,).
        track_running_stats: whether there are running statistics; without, evaluation uses the batch's, too.
        device: device of parameters and buffers.
        dtype: dtype of parameters and buffers.
        bias: whether there is a bias.

    Shape:
        Input and output: (N, C) or (N, C, L).

    Raises:
        ValueError: the rank is wrong, or training has one value per channel.

    >>> import flambeau as torch
    >>> torch.nn.BatchNorm1d(1)(torch.tensor([[0.0], [2.0]])).detach()
    tensor([[-1.0000],
            [ 1.0000]])
    """

    def _check_input_dim(self, input: Tensor) -> None:
        if input.dim() not in (2, 3):
            raise ValueError(f"expected 2D or 3D input (got {input.dim()}D input)")


class BatchNorm2d(_BatchNorm):
    """Batch normalization of 4-D inputs; see `BatchNorm1d` for formula and arguments.

    Shape:
        Input and output: (N, C, H, W).

    Raises:
        ValueError: the input is not 4-D, or training has one value per channel.

    >>> import flambeau as torch
    >>> torch.nn.BatchNorm2d(3)(torch.ones(2, 3, 4, 4)).shape
    flambeau.Size([2, 3, 4, 4])
    """

    def _check_input_dim(self, input: Tensor) -> None:
        if input.dim() != 4:
            raise ValueError(f"expected 4D input (got {input.dim()}D input)")


class BatchNorm3d(_BatchNorm):
    """Batch normalization of 5-D inputs; see `BatchNorm1d` for formula and arguments.

    Shape:
        Input and output: (N, C, D, H, W).

    Raises:
        ValueError: the input is not 5-D, or training has one value per channel.

    >>> import flambeau as torch
    >>> torch.nn.BatchNorm3d(3)(torch.ones(2, 3, 4, 4, 4)).shape
    flambeau.Size([2, 3, 4, 4, 4])
    """

    def _check_input_dim(self, input: Tensor) -> None:
        if input.dim() != 5:
            raise ValueError(f"expected 5D input (got {input.dim()}D input)")


class _LazyNormBase(LazyModuleMixin, _NormBase):
    """Base of the lazy batch and instance normalizations: `num_features` is taken from the first input."""

    weight: Any
    bias: Any

    def __init__(self, eps: float = 1e-5, momentum: float | None = 0.1, affine: bool = True,
                 track_running_stats: bool = True, device: Any = None, dtype: Any = None, *,
                 bias: bool = True) -> None:
        super().__init__(0, eps, momentum, False, False, device, dtype, bias=False)
        self.affine = affine
        self.track_running_stats = track_running_stats
        kind = {"device": device, "dtype": dtype}
        if affine:
            self.weight = UninitializedParameter(**kind)
            if bias:
                self.bias = UninitializedParameter(**kind)
        if track_running_stats:
            self.running_mean = UninitializedBuffer(**kind)
            self.running_var = UninitializedBuffer(**kind)
            self.num_batches_tracked = fn.tensor(0, device=device)

    def reset_parameters(self) -> None:
        """Initialize parameters and running statistics, once they have shapes."""
        if not self.has_uninitialized_params() and self.num_features != 0:
            super().reset_parameters()

    def initialize_parameters(self, input: Tensor) -> None:
        """Give parameters and running statistics shapes, and values.

        Args:
            input: (N, num_features, ...).
        """
        if self.has_uninitialized_params():
            self.num_features = input.shape[1]
            deferred: list[Any] = [self.weight, self.bias, self.running_mean, self.running_var]
            for x in deferred:
                if x is not None:
                    x.materialize((self.num_features,))
            self.reset_parameters()


class LazyBatchNorm1d(_LazyNormBase, _BatchNorm):
    """A `BatchNorm1d` whose `num_features` is taken from the first input; the other arguments are the same.

    >>> import flambeau as torch
    >>> torch.nn.LazyBatchNorm1d()(torch.ones(2, 3)).shape
    flambeau.Size([2, 3])
    """

    cls_to_become = BatchNorm1d

    def _check_input_dim(self, input: Tensor) -> None:
        if input.dim() not in (2, 3):
            raise ValueError(f"expected 2D or 3D input (got {input.dim()}D input)")


class LazyBatchNorm2d(_LazyNormBase, _BatchNorm):
    """A `BatchNorm2d` whose `num_features` is taken from the first input; the other arguments are the same.

    >>> import flambeau as torch
    >>> torch.nn.LazyBatchNorm2d()(torch.ones(2, 3, 4, 4)).shape
    flambeau.Size([2, 3, 4, 4])
    """

    cls_to_become = BatchNorm2d

    def _check_input_dim(self, input: Tensor) -> None:
        if input.dim() != 4:
            raise ValueError(f"expected 4D input (got {input.dim()}D input)")


class LazyBatchNorm3d(_LazyNormBase, _BatchNorm):
    """A `BatchNorm3d` whose `num_features` is taken from the first input; the other arguments are the same.

    >>> import flambeau as torch
    >>> torch.nn.LazyBatchNorm3d()(torch.ones(2, 3, 4, 4, 4)).shape
    flambeau.Size([2, 3, 4, 4, 4])
    """

    cls_to_become = BatchNorm3d

    def _check_input_dim(self, input: Tensor) -> None:
        if input.dim() != 5:
            raise ValueError(f"expected 5D input (got {input.dim()}D input)")


class SyncBatchNorm(_BatchNorm):
    """Batch normalization with statistics over all processes; in one process, that of its input.

    Args:
        num_features: C.
        eps: added to the variance.
        momentum: the update factor; None for the cumulative average over all batches.
        affine: whether there are weight and bias, of shape (C,).
        track_running_stats: whether there are running statistics; without, evaluation uses the batch's, too.
        process_group: the processes over which statistics are computed.
        device: device of parameters and buffers.
        dtype: dtype of parameters and buffers.
        bias: whether there is a bias.

    Shape:
        Input and output: (N, C, ...).

    Raises:
        ValueError: the input is not at least 2-D, or has no channels.

    >>> import flambeau as torch
    >>> torch.nn.SyncBatchNorm(3)(torch.ones(2, 3, 4)).shape
    flambeau.Size([2, 3, 4])
    """

    def __init__(self, num_features: int, eps: float = 1e-5, momentum: float | None = 0.1, affine: bool = True,
                 track_running_stats: bool = True, process_group: Any = None, device: Any = None, dtype: Any = None, *,
                 bias: bool = True) -> None:
        super().__init__(num_features, eps, momentum, affine, track_running_stats, device, dtype, bias=bias)
        self.process_group = process_group

    def _check_input_dim(self, input: Tensor) -> None:
        if input.dim() < 2:
            raise ValueError(f"expected at least 2D input (got {input.dim()}D input)")
        if input.size(1) == 0:
            raise ValueError("SyncBatchNorm number of input channels should be non-zero")

    @classmethod
    def convert_sync_batchnorm(cls, module: Module, process_group: Any = None) -> Module:
        """A module with its batch normalizations replaced by `SyncBatchNorm` of the same parameters and buffers.

        Args:
            module: the module; its children are replaced in place.
            process_group: the processes over which statistics are computed.

        Returns:
            The module, or if it is a batch normalization itself, its replacement.

        >>> import flambeau as torch
        >>> torch.nn.SyncBatchNorm.convert_sync_batchnorm(torch.nn.Sequential(torch.nn.BatchNorm1d(2)))[0]
        SyncBatchNorm(2, eps=1e-05, momentum=0.1, affine=True, bias=True, track_running_stats=True)
        """
        result = module
        if isinstance(module, _BatchNorm):
            result = SyncBatchNorm(module.num_features, module.eps, module.momentum, module.affine,
                                   module.track_running_stats, process_group, bias=module.bias is not None)
            if module.affine:
                result.weight, result.bias = module.weight, module.bias
            for name in ("running_mean", "running_var", "num_batches_tracked", "training", "qconfig"):
                if hasattr(module, name):
                    setattr(result, name, getattr(module, name))
        for name, child in module.named_children():
            result.add_module(name, cls.convert_sync_batchnorm(child, process_group))
        return result
