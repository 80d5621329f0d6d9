"""`MaxUnpool`, the partial inverse of max pooling, and fractional max pooling."""

from __future__ import annotations

from typing import Any

from ...._tensor import Tensor
from ... import functional as F
from ...ntuple import ntuple
from ..base.own_methods import OwnMethods
from ..module import Module


class _MaxUnpoolNd(OwnMethods, Module, shares=("__init__", "forward")):
    _rank: int

    def __init__(self, kernel_size: Any, stride: Any = None, padding: Any = 0) -> None:
        super().__init__()
        self.kernel_size = ntuple(kernel_size, self._rank)
        self.stride = ntuple(stride if stride is not None else kernel_size, self._rank)
        self.padding = ntuple(padding, self._rank)

    def forward(self, input: Tensor, indices: Tensor, output_size: Any = None) -> Tensor:
        unpool = getattr(F, f"max_unpool{self._rank}d")
        return unpool(input, indices, self.kernel_size, self.stride, self.padding, output_size)

    def extra_repr(self) -> str:
        return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}"


class MaxUnpool1d(_MaxUnpoolNd):
    """The partial inverse of `MaxPool1d`: zeros with each maximum at its place.

    Args:
        kernel_size: the window size of the pooling.
        stride: its stride; `kernel_size` by default.
        padding: its padding.

    Shape:
        Input and indices (N, C, L) or (C, L); output (N, C, (L - 1) · stride - 2 · padding + kernel_size), or
        `output_size`, an argument of the call.

    >>> import flambeau as torch
    >>> x = torch.tensor([[1., 3., 2., 0.]])
    >>> torch.nn.MaxUnpool1d(2)(*torch.nn.MaxPool1d(2, return_indices=True)(x))
    tensor([[0., 3., 2., 0.]])
    """

    _rank = 1


class MaxUnpool2d(_MaxUnpoolNd):
    """The partial inverse of `MaxPool2d`; see `MaxUnpool1d`.

    >>> import flambeau as torch
    >>> x = torch.tensor([[[1., 3.], [2., 0.]]])
    >>> torch.nn.MaxUnpool2d(2)(*torch.nn.MaxPool2d(2, return_indices=True)(x))
    tensor([[[0., 3.],
             [0., 0.]]])
    """

    _rank = 2


class MaxUnpool3d(_MaxUnpoolNd):
    """The partial inverse of `MaxPool3d`; see `MaxUnpool1d`.

    >>> import flambeau as torch
    >>> pooled = torch.nn.MaxPool3d(2, return_indices=True)(torch.ones(1, 2, 2, 2))
    >>> torch.nn.MaxUnpool3d(2)(*pooled).sum()
    tensor(1.)
    """

    _rank = 3


class _FractionalMaxPoolNd(OwnMethods, Module, shares=("__init__", "forward")):
    _rank: int
    _random_samples: Tensor | None

    def __init__(self, kernel_size: Any, output_size: Any = None, output_ratio: Any = None,
                 return_indices: bool = False, _random_samples: Tensor | None = None) -> None:
        super().__init__()
        if self._rank == 3 and not all(k > 0 for k in ntuple(kernel_size, 3)):
            raise ValueError(f"kernel_size must be greater than 0, but got {kernel_size}")
        self.kernel_size = ntuple(kernel_size, self._rank)
        self.return_indices = return_indices
        self.register_buffer("_random_samples", _random_samples)
        self.output_size = ntuple(output_size, self._rank) if output_size is not None else None
        self.output_ratio = ntuple(output_ratio, self._rank) if output_ratio is not None else None
        if output_size is None and output_ratio is None:
            raise ValueError(f"FractionalMaxPool{self._rank}d requires specifying either an output size, "
                             "or a pooling ratio")
        if output_size is not None and output_ratio is not None:
            raise ValueError("only one of output_size and output_ratio may be specified")
        if self.output_ratio is not None and not all(0 < ratio < 1 for ratio in self.output_ratio):
            raise ValueError(f"output_ratio must be between 0 and 1 (got {output_ratio})")

    def forward(self, input: Tensor) -> Any:
        pool = getattr(F, f"fractional_max_pool{self._rank}d")
        return pool(input, self.kernel_size, self.output_size, self.output_ratio, self.return_indices,
                    _random_samples=self._random_samples)


class FractionalMaxPool2d(_FractionalMaxPoolNd):
    """Maximum of windows at pseudorandom positions of the last 2 dimensions.

    Args:
        kernel_size: the window size, an int or one int per dimension.
        output_size: the size of the result, an int or one int per dimension.
        output_ratio: the size of the result as a fraction of the input's, instead of `output_size`.
        return_indices: also return the flat index of each maximum within its plane (int64).

    Raises:
        ValueError: not exactly one of `output_size` and `output_ratio` is given, or a ratio is not in (0, 1).

    >>> import flambeau as torch
    >>> torch.nn.FractionalMaxPool2d(2, output_ratio=0.5)(torch.ones(1, 6, 8)).shape
    flambeau.Size([1, 3, 4])
    """

    __constants__ = ["kernel_size", "return_indices", "output_size", "output_ratio"]

    _rank = 2


class FractionalMaxPool3d(_FractionalMaxPoolNd):
    """Maximum of windows at pseudorandom positions of the last 3 dimensions; see `FractionalMaxPool2d`.

    >>> import flambeau as torch
    >>> torch.nn.FractionalMaxPool3d(2, output_size=2)(torch.ones(1, 4, 4, 4)).shape
    flambeau.Size([1, 2, 2, 2])
    """

    __constants__ = ["kernel_size", "return_indices", "output_size", "output_ratio"]

    _rank = 3
