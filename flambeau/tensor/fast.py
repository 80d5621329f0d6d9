"""The short ways: public functions of small operators, specialised by arity when they are declared.

Each does what `apply` does, for arrays of one float dtype with nothing special about them,
and hands everything else to it.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

import numpy as np

from ..autograd.modes import grad_mode, inference
from ..autograd.node import AccumulateGrad, next_number
from ..backends.errstate import IGNORE, reset_state, set_state
from ..ops.declare import Op
from .apply import Interpreters, apply, gradient_edge, kernel_of, node_class
from .tensor import Tensor

ndarray = np.ndarray
F32 = np.dtype(np.float32)
F64 = np.dtype(np.float64)
new = object.__new__
_grad_enabled = grad_mode.get
_inferring = inference.get


def unary(op: Op, general: Callable[..., Any]) -> Callable[..., Any]:
    """The public function of an elementwise operator of one input without parameters."""
    kernel = kernel_of(op)
    cls = node_class(op)
    plan = op.plan(1, 1)
    saves_input, saves_out = bool(plan.tensors), bool(plan.outs)
    plain = not plan.consts and op.differentiable
    doc_name = op.name

    def call(input: Any, *, out: Any = None) -> Any:
        try:
            a = input._array
        except AttributeError:
            return general(input, out=out)
        dt = a.dtype
        if (dt is not F32 and dt is not F64) or out is not None or Interpreters.active or not plain:
            return general(input, out=out)
        token = set_state(IGNORE)
        r = kernel(a)
        reset_state(token)
        if r.__class__ is not ndarray:
            r = np.asarray(r)
        result = new(Tensor)
        result._array = r
        if input._requires_grad and _grad_enabled():
            node = new(cls)
            node.edges = (gradient_edge(input),)
            node.edge_outputs = (input._output_nr,) if input._output_nr else None
            node.plan = plan
            node.consts = ()
            node.extra = node.outputs = node.fix = node.versions = None
            node.seq = next_number()
            if saves_input:
                counter = input._counter
                if saves_out:
                    result._counter = mine = [0]
                    node.saved = (input, (r, mine))
                    if counter is not None and counter[0]:
                        node.versions = (counter[0], 0)
                else:
                    node.saved = (input,)
                    if counter is not None and counter[0]:
                        node.versions = (counter[0],)
            elif saves_out:
                result._counter = mine = [0]
                node.saved = ((r, mine),)
            else:
                node.saved = ()
            result._requires_grad = True
            result._node = node
        elif _inferring():
            result._inference = True
        return result

    call.__name__ = call.__qualname__ = doc_name
    return call


def binary(op: Op, general: Callable[..., Any]) -> tuple[Callable[..., Any], Callable[[Any, Any], Any]]:
    """The function of an elementwise operator of two inputs, and the operator form that may decline."""
    kernel = kernel_of(op)
    cls = node_class(op)
    plans = (None, op.plan(1, 2), op.plan(2, 2), op.plan(3, 2)) if op.differentiable else (None,) * 4
    codes = []
    for plan in plans:
        if plan is None or (not plan.tensors and not plan.outs and not plan.consts):
            codes.append(0)
        elif plan.outs or plan.consts:
            codes.append(4)
        else:
            codes.append({(0,): 1, (1,): 2, (0, 1): 3}[plan.tensors])
    plain = 4 not in codes
    keeps_type = op.differentiable  # comparisons give bools whatever they are given

    def short(input: Any, other: Any) -> Any:
        """The result, or NotImplemented where the general way is needed."""
        try:
            a = input._array
            if other.__class__ is float:
                dt = a.dtype
                if not (dt is F32 or dt is F64) or Interpreters.active:
                    return NotImplemented
                b = other
            else:
                b = other._array
                dt = a.dtype
                if dt is not b.dtype or not (dt is F32 or dt is F64) or Interpreters.active:
                    return NotImplemented
        except AttributeError:
            return NotImplemented
        token = set_state(IGNORE)
        try:
            r = kernel(a, b)
        except ValueError:  # shapes that do not broadcast: said in full by the general way
            return NotImplemented
        finally:
            reset_state(token)
        if r.__class__ is not ndarray:
            r = np.asarray(r)
        result = new(Tensor)
        result._array = r
        if b is other:
            if not (input._requires_grad and keeps_type and _grad_enabled()):
                if _inferring():
                    result._inference = True
                return result
            if not plain:
                return NotImplemented
            mask = 1
            left, right = gradient_edge(input), None
            same = True
        else:
            mask = (1 if input._requires_grad else 0) + (2 if other._requires_grad else 0)
            if not (mask and keeps_type and _grad_enabled()):
                if _inferring():
                    result._inference = True
                return result
            if not plain:
                return NotImplemented
            left = right = None
            if mask & 1:
                left = input._node
                if left is None or input._base is not None:
                    left = gradient_edge(input)
            if mask & 2:
                right = other._node
                if right is None or other._base is not None:
                    right = gradient_edge(other)
            shape = r.shape
            same = a.shape == shape and b.shape == shape
        node = new(cls)
        node.edges = (left, right)
        node.seq = next_number()
        node.plan = plans[mask]
        node.extra = node.outputs = node.versions = None
        node.consts = ()
        if same:
            node.fix = None
        else:
            node.fix = ((a.shape, b.shape), None, False, False)
        code = codes[mask]
        if code == 0:
            node.saved = ()
        elif code == 3:
            node.saved = (input, other)
            x, y = input._counter, other._counter if b is not other else None
            if (x is not None and x[0]) or (y is not None and y[0]):
                node.versions = (x[0] if x is not None else 0, y[0] if y is not None else 0)
        elif code == 1:
            node.saved = (input,)
            x = input._counter
            if x is not None and x[0]:
                node.versions = (x[0],)
        else:
            node.saved = (other,)
            if b is not other:
                y = other._counter
                if y is not None and y[0]:
                    node.versions = (y[0],)
        if b is other:
            node.edge_outputs = (input._output_nr, 0) if input._output_nr else None
        elif input._output_nr or other._output_nr:
            node.edge_outputs = (input._output_nr, other._output_nr)
        else:
            node.edge_outputs = None
        result._requires_grad = True
        result._node = node
        return result

    def call(input: Any, other: Any, *, out: Any = None) -> Any:
        if out is None:
            result = short(input, other)
            if result is not NotImplemented:
                return result
        return general(input, other, out=out)

    call.__name__ = call.__qualname__ = op.name
    return call, short


