"""The short ways: public functions of small operators, specialised by arity when they are declared.

Each does what `apply` does, for arrays of one float dtype with nothing special about them,
and hands everything else on. They are long because every call inside them would cost as
much as the arithmetic of a 4x4 product.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..autograd.modes import grad_mode, inference
from ..autograd.node import next_number
from ..autograd.runs import plan_of
from ..backends.errstate import IGNORE, reset_state, set_state
from ..ops.declare import Op
from .apply import gradient_edge, kernel_of, node_class
from .interpreting import special
from .tensor import Tensor

ndarray = np.ndarray
asarray = np.asarray
F32 = np.dtype(np.float32)
F64 = np.dtype(np.float64)
new = object.__new__
_grad_enabled = grad_mode.get
_inferring = inference.get


def unary(op: Op, general: Callable[..., Any]) -> Callable[..., Any]:
    """The public function of an operator of one input without parameters."""
    kernel = kernel_of(op)
    cls = node_class(op)
    plan = plan_of(op, 1, 1)
    saves_input, saves_out = bool(plan.tensors), bool(plan.outs)
    shape_only = plan.consts == (("shape", 0),)
    if (plan.consts and not shape_only) or not op.differentiable:
        return general

    def call(input: Any, *, out: Any = None) -> Any:
        if out is not None or special[0]:
            return general(input, out=out)
        try:
            a = input._array
            dt = a.dtype
        except AttributeError:
            return general(input)
        if dt is not F32 and dt is not F64:
            return general(input)
        token = set_state(IGNORE)
        r = kernel(a)
        reset_state(token)
        if type(r) is not ndarray:
            r = asarray(r)
        result = new(Tensor)
        result._array = r
        result._output_nr = 0
        result._grad = result._counter = result._base = result._accumulator = None
        if input._requires_grad and _grad_enabled():
            node = new(cls)
            edge = input._node
            if edge is None:
                edge = input._accumulator
                if edge is not None:
                    edge = edge()
                if edge is None:
                    edge = gradient_edge(input)
            elif input._base is not None:
                edge = gradient_edge(input)
            node.edge0 = edge
            node.edge1 = None
            node.n_edges = 1
            node.edge_outputs = (input._output_nr,) if input._output_nr else None
            node.plan = plan
            node.run = plan.run
            node.consts = (a.shape,) if shape_only else ()
            node.extra = node.outputs = node.fix = node.versions = None
            node.seq = next_number()
            node.saved1 = None
            if saves_input:
                counter = input._counter
                if saves_out:
                    result._counter = mine = [0]
                    node.saved0 = (input, (r, mine))
                    if counter is not None and counter[0]:
                        node.versions = (counter[0], 0)
                else:
                    node.saved0 = input
                    if counter is not None and counter[0]:
                        node.versions = (counter[0],)
            elif saves_out:
                result._counter = node.saved1 = [0]
                node.saved0 = r
            else:
                node.saved0 = None
            result._requires_grad = True
            result._node = node
        else:
            result._requires_grad = False
            result._node = None
            if _inferring():
                result._inference = True
        return result

    call.__name__ = call.__qualname__ = op.name
    return call


def binary(op: Op, general: Callable[..., Any]) -> tuple[Callable[..., Any], Callable[[Any, Any], Any]]:
    """The function of an elementwise operator of two inputs, and its operator form, which may decline."""
    kernel = kernel_of(op)
    cls = node_class(op)
    records = op.differentiable
    plans = (None, plan_of(op, 1, 2), plan_of(op, 2, 2), plan_of(op, 3, 2)) if records else (None,) * 4
    codes = []
    for plan in plans:
        if plan is None or not (plan.tensors or plan.outs or plan.consts):
            codes.append(0)
        elif plan.outs or plan.consts:
            codes.append(4)
        else:
            codes.append({(0,): 1, (1,): 2, (0, 1): 3}[plan.tensors])
    records_short = records and 4 not in codes

    def operate(input: Any, other: Any) -> Any:
        try:
            a = input._array
            dt = a.dtype
            kind = type(other)
            if kind is float or kind is int:
                b = other
                if not (dt is F32 or dt is F64) or special[0]:
                    return fall_back(input, other)
            else:
                b = other._array
                if dt is not b.dtype or not (dt is F32 or dt is F64) or special[0]:
                    return fall_back(input, other)
        except AttributeError:
            return fall_back(input, other)
        token = set_state(IGNORE)
        try:
            r = kernel(a, b)
        except BaseException as error:
            reset_state(token)
            if isinstance(error, (ValueError, OverflowError)):  # shapes that do not broadcast: the general way says it
                return fall_back(input, other)
            raise
        reset_state(token)
        if type(r) is not ndarray:
            r = asarray(r)
        result = new(Tensor)
        result._array = r
        result._output_nr = 0
        result._grad = result._counter = result._base = result._accumulator = None
        if b is other:
            mask = 1 if input._requires_grad else 0
        else:
            mask = (1 if input._requires_grad else 0) + (2 if other._requires_grad else 0)
        if not mask or not records or not _grad_enabled():
            result._requires_grad = False
            result._node = None
            if _inferring():
                result._inference = True
            return result
        if not records_short:
            return fall_back(input, other)
        left = right = None
        if mask & 1:
            left = input._node
            if left is None:
                left = input._accumulator
                if left is not None:
                    left = left()
                if left is None:
                    left = gradient_edge(input)
            elif input._base is not None:
                left = gradient_edge(input)
        if mask & 2:
            right = other._node
            if right is None:
                right = other._accumulator
                if right is not None:
                    right = right()
                if right is None:
                    right = gradient_edge(other)
            elif other._base is not None:
                right = gradient_edge(other)
        node = new(cls)
        node.edge0 = left
        node.edge1 = right
        node.n_edges = 2
        node.seq = next_number()
        node.plan = plan = plans[mask]
        node.run = plan.run
        node.extra = node.outputs = node.versions = node.fix = node.edge_outputs = node.saved0 = node.saved1 = None
        node.consts = ()
        code = codes[mask]
        if b is other:
            if input._output_nr:
                node.edge_outputs = (input._output_nr, 0)
            if code == 2:
                node.saved0 = other
            elif code:
                node.saved0 = input
                if code == 3:
                    node.saved1 = other
                counter = input._counter
                if counter is not None and counter[0]:
                    node.versions = (counter[0], 0) if code == 3 else (counter[0],)
        else:
            if input._output_nr or other._output_nr:
                node.edge_outputs = (input._output_nr, other._output_nr)
            shape = a.shape
            if shape != b.shape:
                node.fix = ((shape, b.shape), None, False, False)
                node.run = None
            if code == 0:
                pass
            elif code == 3:
                node.saved0 = input
                node.saved1 = other
                x, y = input._counter, other._counter
                if (x is not None and x[0]) or (y is not None and y[0]):
                    node.versions = (x[0] if x is not None else 0, y[0] if y is not None else 0)
            else:
                node.saved0 = input if code == 1 else other
                counter = input._counter if code == 1 else other._counter
                if counter is not None and counter[0]:
                    node.versions = (counter[0],)
        result._requires_grad = True
        result._node = node
        return result

    def fall_back(input: Any, other: Any) -> Any:
        if isinstance(other, (Tensor, bool, int, float, complex, np.generic)):
            return general(input, other)
        return NotImplemented

    def call(input: Any, other: Any, *, out: Any = None) -> Any:
        if out is None and isinstance(input, Tensor):
            result = operate(input, other)
            if result is not NotImplemented:
                return result
        return general(input, other, out=out)

    call.__name__ = call.__qualname__ = operate.__name__ = operate.__qualname__ = op.name
    return call, operate
