"""`out_dtype`: an operator whose result has another dtype than promotion gives, as products of quantized models do."""

from __future__ import annotations

from typing import Any

from .._tensor import Tensor, functions, is_grad_enabled, no_grad
from ..dtypes import dtype
from ..engine.nodes.unsupported_derivatives import delayed_error
from ..ops import aten
from ..ops.function_operators import HigherOrderOperator
from ..ops.overloads import OpOverload

__all__ = ["ALLOWABLE_OPS", "OutDtypeOperator", "out_dtype"]

#: the operators that have results of another dtype
ALLOWABLE_OPS = [aten.linear.default, aten.mm.default, aten.conv2d.default, aten.convolution.default, aten.mul.Tensor,
                 aten.mul.Scalar, aten.div.Tensor, aten.div.Scalar]


class OutDtypeOperator(HigherOrderOperator):
    """`out_dtype(op, output_dtype, *args)`: `op` of arguments that are promoted with the dtype, converted to it.

    Args:
        op: an overload of `linear`, `mm`, `conv2d`, `convolution`, `mul` or `div`.
        output_dtype: the dtype of the result.
        args: the operator's arguments.

    Raises:
        ValueError: another operator.

    >>> import flambeau as torch
    >>> from flambeau._higher_order_ops.out_dtype import out_dtype
    >>> x = torch.full((1, 1), 100, dtype=torch.int8)
    >>> out_dtype(torch.ops.aten.mm.default, torch.int32, x, x).item()
    10000
    """

    def __init__(self) -> None:
        super().__init__("out_dtype")

    def __call__(self, op: Any, output_dtype: dtype, *args: Any) -> Any:
        if not isinstance(op, OpOverload):
            raise ValueError("out_dtype's first argument must be an OpOverload")
        if op._schema.is_mutable:
            raise ValueError("out_dtype's first argument needs to be a functional operator")
        returns = [str(each.type).replace("Tensor[]", "List[Tensor]") for each in op._schema.returns]
        if returns != ["Tensor"]:
            raise ValueError("out_dtype's can only apply to ops that return a single tensorInstead got "
                             f"[{', '.join(returns)}]")
        if op not in ALLOWABLE_OPS:
            raise ValueError(f"out_dtype only allows the following operators: {ALLOWABLE_OPS}.")
        return super().__call__(op, output_dtype, *args)


out_dtype = OutDtypeOperator()


@out_dtype.py_impl("CompositeExplicitAutograd")
def _compute(op: OpOverload, output_dtype: dtype, *args: Any) -> Any:
    tensors = [x for x in args if isinstance(x, Tensor)]
    with no_grad():
        common = output_dtype
        for x in args:
            if isinstance(x, (Tensor, bool, int, float, complex)):
                common = functions.result_type(functions.empty((1,), dtype=common), x)
        result = op(*(x.to(common) if isinstance(x, Tensor) else x for x in args)).to(output_dtype)
    if is_grad_enabled() and any(x.requires_grad for x in tensors) and (
            output_dtype.is_floating_point or output_dtype.is_complex):
        return delayed_error("Autograd not implemented for out_dtype", [result.requires_grad_()])[0]
    return result
