"""Functions that compute an operator of PyTorch's of simpler ones, derived from declarations.

The forward of a declaration and its derivatives are formulas over `xp`. Over tensors they are decompositions: they
call the operators that they consist of. An operator that is one primitive converts its inputs and calls that of
`torch.ops.prims`. A variant that writes copies what the other one returns.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import flambeau as torch

from ..._tensor import Tensor
from ..._tensor.dispatch.promotion import promoted_type
from ..._tensor.overriding.aten_arguments import operator_call
from ...dtypes import NARROW, complex64, float16, float32
from ...engine.tensor_interface import layer
from ...ops import aten
from ...ops.aten import declarations_of
from ...ops.declare import COMPOSITE, ELEMENTWISE, Op
from ...ops.overloads import OpOverload
from ...trees import tree_map


def _operands(op: Op, inputs: list[Any], params: dict[str, Any]) -> tuple[list[Any], Any]:
    """The inputs in the dtype that the formula computes with, and that of its results (None: as they come)."""
    tensors = [x for x in inputs if isinstance(x, Tensor)]
    if op.promote == "none":
        narrow = next((x.dtype for x in tensors if op.opmath and x.dtype.numpy in NARROW), None)
        return [x.to(float32) if isinstance(x, Tensor) and x.dtype is narrow else x for x in inputs], narrow
    common = promoted_type(op, inputs, params)
    if op.promote == "float" and not (common.is_floating_point or common.is_complex):
        common = torch.get_default_dtype()
    compute = common
    if op.opmath:
        compute = float32 if common.numpy in NARROW else complex64 if common is torch.complex32 else common
    fixed = op.unpromoted
    made = [x.to(compute) if isinstance(x, Tensor) and name not in fixed else x
            for x, name in zip(inputs, op.inputs, strict=False)]
    return made, None if compute is common else common


def _rounded(result: Any, narrow: Any) -> Any:
    """Results in the dtype that their inputs had; integers, masks and what is real of complex results stay."""
    if narrow is None:
        return result
    rounded = {complex64: narrow, float32: float16} if narrow.is_complex else {float32: narrow}
    return tree_map(lambda x: x.to(rounded.get(x.dtype, x.dtype)) if isinstance(x, Tensor) else x, result)


def by_declaration(overload: OpOverload) -> Callable[..., Any] | None:
    """The formula of an operator's declaration as a function of its overload's arguments; None: it has none."""
    schema = overload._schema
    declarations = [op for op in declarations_of(overload) if op.kind != COMPOSITE and not op.variadic
                    and op.n_outputs == len(schema.returns)]
    if not declarations:
        return None

    def decomposition(*args: Any, **kwargs: Any) -> Any:
        bound = schema.bind(args, kwargs)
        for op in declarations:
            found = operator_call(op, schema, bound)
            if found is None:
                continue
            inputs, narrow = _operands(op, *found)
            return _rounded(op.forward(*([layer.functions] if op.takes_xp else []), *inputs, **found[1]), narrow)
        return NotImplemented

    return decomposition


def by_gradient(overload: OpOverload) -> Callable[..., Any] | None:
    """The formula of a derivative as a function of the arguments of `<name>_backward`; None: there is none.

    Its arguments are the gradient of the result, and those of the operator.
    """
    name = overload.overloadpacket.__name__.removesuffix("_backward")
    forward = getattr(aten, name).default
    schema, own = forward._schema, overload._schema
    op = next((op for op in declarations_of(forward) if op.kind != COMPOSITE), None)
    rule = None if op is None else op.rule_for(op.inputs[0])
    if op is None or rule is None:
        return None
    names = [a.name for a in schema.arguments]

    def decomposition(*args: Any, **kwargs: Any) -> Any:
        bound = own.bind(args, kwargs)
        bound = {a.name: bound.get(a.name, a.default_value) for a in own.arguments}
        found = operator_call(op, schema, {key: value for key, value in bound.items() if key in names})
        g = bound.get("grad_output", bound.get("grad"))
        if found is None or not isinstance(g, Tensor):
            return NotImplemented
        params = {**op.defaults, **found[1]}
        inputs, narrow = _operands(op, found[0], params)
        g = g if narrow is None else g.to(float32)
        known = {"g": g, "xp": layer.functions, **dict(zip(op.inputs, inputs, strict=False)), **params}
        known.update({f"{key}_shape": x.shape for key, x in zip(op.inputs, inputs, strict=False)
                      if isinstance(x, Tensor)})
        if any(known.get(key) is None for key in rule.names):
            return NotImplemented
        return _rounded(rule.function(*(known[key] for key in rule.names)), narrow)

    return decomposition


def by_primitive(overload: OpOverload) -> Callable[..., Any] | None:
    """The primitive of an elementwise operator's name, of operands in one dtype; None: there is none."""
    name = overload.overloadpacket.__name__
    primitive: Any = getattr(torch.ops.prims, name, None)
    schema = overload._schema
    declarations = [op for op in declarations_of(overload) if op.kind == ELEMENTWISE and op.name == name]
    if primitive is None or not declarations or len(schema.returns) != 1:
        return None

    def decomposition(*args: Any, **kwargs: Any) -> Any:
        bound = schema.bind(args, kwargs)
        alpha = bound.pop("alpha", 1)
        for op in declarations:
            found = operator_call(op, schema, bound)
            if found is None or found[1]:
                continue
            inputs, narrow = _operands(op, *found)
            dtype = next(x.dtype for x in inputs if isinstance(x, Tensor))
            operands = [x if isinstance(x, Tensor) else torch.scalar_tensor(x, dtype=dtype) for x in inputs]
            if alpha != 1:
                operands[1] = torch.ops.prims.mul(operands[1], torch.scalar_tensor(alpha, dtype=dtype))
            return _rounded(primitive(*operands), narrow)
        return NotImplemented

    return decomposition


def in_place(overload: OpOverload, functional: Callable[..., Any]) -> Callable[..., Any]:
    """The function of the operator that writes to its first argument, by that of the one that does not."""
    def decomposition(self: Tensor, *args: Any, **kwargs: Any) -> Any:
        result = functional(self, *args, **kwargs)
        return result if result is NotImplemented else self.copy_(result)

    return decomposition


def into_out(overload: OpOverload, functional: Callable[..., Any]) -> Callable[..., Any]:
    """The function of the overload with `out=`, by that of the one without."""
    outs = [a.name for a in overload._schema.arguments if a.is_out]

    def decomposition(*args: Any, **kwargs: Any) -> Any:
        given = [kwargs.pop(name) for name in outs]
        result = functional(*args, **kwargs)
        if result is NotImplemented:
            return result
        for out, value in zip(given, result if len(outs) > 1 else [result], strict=True):
            if out.shape != value.shape:
                out.resize_(value.shape)
            out.copy_(value)
        return given[0] if len(outs) == 1 else tuple(given)

    return decomposition


__all__ = ["by_declaration", "by_gradient", "by_primitive", "in_place", "into_out"]
