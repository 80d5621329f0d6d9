"""`Linear`, `Bilinear` and `Identity` layers."""

from __future__ import annotations

import math
from typing import Any

from ..._tensor import Parameter, Tensor
from ..._tensor import functions as fn
from .. import init
from ..parameter import UninitializedParameter
from .lazy import LazyModuleMixin
from .module import Module

__all__ = ["Bilinear", "Identity", "LazyLinear", "Linear", "NonDynamicallyQuantizableLinear"]


class Identity(Module):
    """Identity: returns its input; constructor arguments are ignored.

    Shape:
        Input and output: the same shape, any number of dimensions.

    >>> import flambeau as torch
    >>> torch.nn.Identity(54)(torch.ones(2))
    tensor([1., 1.])
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__()

    def forward(self, input: Tensor) -> Tensor:
        return input


class Linear(Module):
    """Affine map: y = x Wᵀ + b.

    Weight and bias are initialized from U(-1/√in_features, 1/√in_features).

    Args:
        in_features: size of the input's last dimension.
        out_features: size of the output's last dimension.
        bias: whether there is a bias.
        device: device of the parameters.
        dtype: dtype of the parameters.

    Shape:
        Input (..., in_features), output (..., out_features). `weight`: (out_features, in_features); `bias`:
        (out_features,).

    >>> import flambeau as torch
    >>> torch.nn.Linear(20, 30)(torch.ones(128, 20)).shape
    flambeau.Size([128, 30])
    """

    __constants__ = ["in_features", "out_features"]

    in_features: int
    out_features: int
    weight: Tensor
    bias: Tensor | None

    def __init__(self, in_features: int, out_features: int, bias: bool = True, device: Any = None,
                 dtype: Any = None) -> None:
        super().__init__()
        self.in_features = in_features
        self.out_features = out_features
        self.weight = Parameter(fn.empty((out_features, in_features), device=device, dtype=dtype))
        if bias:
            self.bias = Parameter(fn.empty(out_features, device=device, dtype=dtype))
        else:
            self.register_parameter("bias", None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Initialize weight and bias."""
        # a = √5 makes the bound 1/√fan_in
        init.kaiming_uniform_(self.weight, a=math.sqrt(5))
        if self.bias is not None:
            fan_in, _ = init._calculate_fan_in_and_fan_out(self.weight)
            bound = 1 / math.sqrt(fan_in) if fan_in > 0 else 0
            init.uniform_(self.bias, -bound, bound)

    def forward(self, input: Tensor) -> Tensor:
        return fn.linear(input, self.weight, self.bias)

    def extra_repr(self) -> str:
        return (f"in_features={self.in_features}, out_features={self.out_features}, "
                f"bias={self.bias is not None}")


class NonDynamicallyQuantizableLinear(Linear):
    """`Linear` under the class name that PyTorch uses for the output projection of attention."""


class Bilinear(Module):
    """Bilinear map: yₖ = x1ᵀ Aₖ x2 + bₖ.

    Weight and bias are initialized from U(-1/√in1_features, 1/√in1_features).

    Args:
        in1_features: size of the last dimension of x1.
        in2_features: size of the last dimension of x2.
        out_features: size of the output's last dimension.
        bias: whether there is a bias.
        device: device of the parameters.
        dtype: dtype of the parameters.

    Shape:
        x1 (..., in1_features), x2 (..., in2_features), output (..., out_features). `weight`: (out_features,
        in1_features, in2_features).

    Raises:
        ValueError: `in1_features` is not positive.

    >>> import flambeau as torch
    >>> torch.nn.Bilinear(20, 30, 40)(torch.ones(128, 20), torch.ones(128, 30)).shape
    flambeau.Size([128, 40])
    """

    __constants__ = ["in1_features", "in2_features", "out_features"]

    in1_features: int
    in2_features: int
    out_features: int
    weight: Tensor
    bias: Tensor | None

    def __init__(self, in1_features: int, in2_features: int, out_features: int, bias: bool = True,
                 device: Any = None, dtype: Any = None) -> None:
        super().__init__()
        if in1_features <= 0:
            raise ValueError(f"in1_features must be > 0, but got (in1_features={in1_features})")
        self.in1_features = in1_features
        self.in2_features = in2_features
        self.out_features = out_features
        self.weight = Parameter(fn.empty((out_features, in1_features, in2_features), device=device, dtype=dtype))
        if bias:
            self.bias = Parameter(fn.empty(out_features, device=device, dtype=dtype))
        else:
            self.register_parameter("bias", None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Initialize weight and bias."""
        bound = 1 / math.sqrt(self.weight.size(1))
        init.uniform_(self.weight, -bound, bound)
        if self.bias is not None:
            init.uniform_(self.bias, -bound, bound)

    def forward(self, input1: Tensor, input2: Tensor) -> Tensor:
        return fn.bilinear(input1, input2, self.weight, self.bias)

    def extra_repr(self) -> str:
        return (f"in1_features={self.in1_features}, in2_features={self.in2_features}, "
                f"out_features={self.out_features}, bias={self.bias is not None}")


class LazyLinear(LazyModuleMixin, Linear):
    """A `Linear` whose `in_features` is the size of the first input's last dimension.

    Args:
        out_features: size of the output's last dimension.
        bias: whether there is a bias.
        device: device of the parameters.
        dtype: dtype of the parameters.

    Shape:
        Those of `Linear`.

    >>> import flambeau as torch
    >>> torch.nn.LazyLinear(3)(torch.ones(2, 4)).shape
    flambeau.Size([2, 3])
    """

    cls_to_become = Linear

    def __init__(self, out_features: int, bias: bool = True, device: Any = None, dtype: Any = None) -> None:
        super().__init__(0, 0, False)
        self.weight = UninitializedParameter(device=device, dtype=dtype)
        self.out_features = out_features
        if bias:
            self.bias = UninitializedParameter(device=device, dtype=dtype)

    def reset_parameters(self) -> None:
        """Initialize weight and bias, once they have shapes."""
        if not self.has_uninitialized_params() and self.in_features != 0:
            super().reset_parameters()

    def initialize_parameters(self, input: Tensor) -> None:
        """Give weight and bias shapes, and values.

        Args:
            input: (..., in_features).
        """
        weight: Any = self.weight
        if self.has_uninitialized_params():
            self.in_features = input.shape[-1]
            weight.materialize((self.out_features, self.in_features))
            if isinstance(self.bias, UninitializedParameter):
                self.bias.materialize((self.out_features,))
            self.reset_parameters()
        if self.in_features == 0:  # the parameters were loaded
            if input.shape[-1] != weight.shape[-1]:
                raise AssertionError(f"The in_features inferred from input: {input.shape[-1]} is not equal to "
                                     f"in_features from self.weight: {weight.shape[-1]}")
            self.in_features = input.shape[-1]
