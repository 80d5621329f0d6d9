"""Dispatch to sparse implementations: what `apply` runs where a dense kernel met a sparse array.

`IMPLEMENTATIONS` maps an operator's key to a function of (operator, inputs, parameters). It returns a sparse or dense
array, which is recorded as the dense operator is, with its declared derivative; or a tensor that is already recorded.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ... import dtypes
from ...backends.sparse_array import CompressedArray, CooArray, SparseAccess, SparseArray, not_implemented
from ...engine.grad_mode import grad_mode
from ...engine.tensor_interface import layer
from ...ops.declare import REGISTRY, VIEW, Op
from ..dispatch.graph_recording import record as record_operator
from ..dispatch.handlers import handlers
from ..dispatch.inplace import rebase_history
from ..dispatch.write_checks import check_writable, is_tracked
from ..tensor import Tensor, wrap
from . import elementwise, products, reductions, shape
from .conversion import to_dense_array
from .recording import is_coo, is_sparse, make, record

Implementation = Callable[[Op, Sequence[Any], dict[str, Any]], Any]
IMPLEMENTATIONS: dict[str, Implementation] = {}


def implements(*keys: str) -> Callable[[Implementation], Implementation]:
    """Register a sparse implementation of operators."""
    def register(function: Implementation) -> Implementation:
        for key in keys:
            IMPLEMENTATIONS[key] = function
        return function

    return register


def _implementation(op: Op) -> Implementation | None:
    for key in _keys_of(op):
        found = IMPLEMENTATIONS.get(key)
        if found is not None:
            return found
    if op.name in elementwise.KEEP_ZERO or op.name in elementwise.LINEAR:
        return _unary
    return None


def _keys_of(op: Op) -> list[str]:
    key = op.__dict__.get("registry_key")
    if key is None:
        key = REGISTRY.key_of(op) or op.name
        op.registry_key = key  # type: ignore[attr-defined]
    return [key, op.name] if key != op.name else [key]


def apply_sparse(op: Op, inputs: Sequence[Any], params: dict[str, Any]) -> Any:
    """Run an operator of which an input is sparse, and record it.

    Raises:
        NotImplementedError: the operator has no sparse implementation (PyTorch's text).
    """
    run = _implementation(op)
    if run is None:
        first = next((x for x in inputs if is_sparse(x)), None)
        if first is None:
            raise SparseAccess(f"Could not run 'aten::{op.name}' with arguments from the 'SparseCPU' backend.")
        raise not_implemented(_name_in_error(op, inputs, params), first.layout)
    params = {**op.defaults, **params}
    result = run(op, inputs, params)
    if isinstance(result, (Tensor, list, tuple)):
        return result
    out = make(result)
    if grad_mode.get() and op.differentiable and any(isinstance(x, Tensor) and x._requires_grad for x in inputs):
        record_operator(op, inputs, [out], params)
        if out._node is not None:
            out._node.run = None
    return out


def _alias(x: Tensor) -> Tensor:
    """The same value and history as another tensor object."""
    out = make(x._array)
    out._requires_grad, out._node, out._output_nr = x._requires_grad, x.grad_fn, x._output_nr
    return out


#: views that are no `as_strided` in PyTorch, whose refusals name that one
_NOT_STRIDED = frozenset(("unfold", "view", "view_as_complex", "view_as_real"))


def _name_in_error(op: Op, inputs: Sequence[Any], params: dict[str, Any]) -> str:
    """The overload that PyTorch has no sparse kernel of: `gt.Scalar`."""
    from ..overriding.aten_arguments import call_arguments

    overload = str(call_arguments(op, inputs, params)[0]).removeprefix("aten.").removesuffix(".default")
    return overload if op.kind != VIEW or overload in _NOT_STRIDED else "as_strided"


def apply_sparse_inplace(op: Op, inputs: Sequence[Any], params: dict[str, Any]) -> Tensor:
    """Run an operator in place, where the target or another input is sparse."""
    target: Any = inputs[0]
    tracked = is_tracked(list(inputs))
    check_writable(target, tracked)
    if _implementation(op) is _unary:
        elementwise.check_in_place(op.name, target)
    result = apply_sparse(op, [_alias(target), *inputs[1:]], params)
    return assign(target, result, tracked)


def assign(target: Any, result: Tensor, tracked: bool) -> Tensor:
    """Make a result the value and the history of a tensor."""
    value: Any = result._array
    if not dtypes.can_cast(result.dtype, target.dtype):
        raise RuntimeError(f"result type {result.dtype.scalar_name} can't be cast to the desired output type "
                           f"{target.dtype.scalar_name}")
    to = target.dtype.numpy
    if is_sparse(target):
        if not isinstance(value, SparseArray):
            raise RuntimeError("add(sparse, dense) is not supported. Use add(dense, sparse) instead.")
        if value.values.dtype != to:
            value = value.with_values(dtypes.cast(value.values, to))
        target._array = value
    else:
        target._array[...] = dtypes.cast(to_dense_array(value) if isinstance(value, SparseArray) else value, to)
    target._bump_version()
    if tracked and result._node is not None:
        rebase_history(target, result._node)
    return target


def restride(target: Tensor, key: str, params: dict[str, Any]) -> Tensor:
    """A change of shape in place: `t_`, `transpose_`, `unsqueeze_`."""
    return assign(target, apply_sparse(REGISTRY[key], [_alias(target)], params), is_tracked([target]))


def write_out(op: Op, result: Any, inputs: Sequence[Any], out: Any) -> Any:
    """Write a result into an `out=` tensor, where one of the tensors is sparse."""
    if grad_mode.get() and any(isinstance(x, Tensor) and x._requires_grad for x in (*inputs, out)):
        raise RuntimeError(f"{op.name}(): functions with out=... arguments don't support automatic differentiation, "
                           "but one of the arguments requires grad.")
    if not dtypes.can_cast(result.dtype, out.dtype):
        raise RuntimeError(f"result type {result.dtype.scalar_name} can't be cast to the desired output type "
                           f"{out.dtype.scalar_name}")
    if is_sparse(result) and is_sparse(out):
        value: Any = result._array
        out._array = value.with_values(dtypes.cast(value.values, out.dtype.numpy))
        out._bump_version()
        return out
    if not is_sparse(result) and not is_sparse(out):
        out._array = np.array(dtypes.cast(result._array, out.dtype.numpy), order="C")
        out._bump_version()
        return out
    raise RuntimeError("Expected out to have the layout of the result")


# ----- implementations -----------------------------------------------------------------------------


def _unary(op: Op, inputs: Sequence[Any], params: dict[str, Any]) -> Any:
    if any(is_sparse(x) for x in inputs[1:]):
        return _several_on_values(op, inputs, params)
    result = elementwise.unary(op, inputs[0], params)
    factor = _FACTORS.get(op.name)
    if factor is None:
        return result
    x, out = inputs[0], make(result)
    return record(out, op.node, (x,), lambda g: (g * _scaled_places(x, factor),), (x,))


#: operators whose derivative formula has dense intermediate values -> the derivative at a stored value
_FACTORS: dict[str, Callable[[Tensor], Tensor]] = {
    "relu": lambda v: (v > 0).to(v.dtype), "log1p": lambda v: 1 / (1 + v)}


def _scaled_places(x: Tensor, factor: Callable[[Tensor], Tensor]) -> Tensor:
    """A sparse tensor with a function of the stored values of another one, differentiable."""
    from .components import coalesce, with_values

    x = coalesce(x) if is_coo(x) else x
    return with_values(x, factor(x.values()))


def _several_on_values(op: Op, inputs: Sequence[Any], params: dict[str, Any]) -> Any:
    """An operator of sparse tensors with the same places, such as `threshold_backward`, on their values."""
    like = next(x for x in inputs if is_sparse(x))
    arrays = []
    for x in inputs:
        if isinstance(x, Tensor):
            if not is_sparse(x):
                x = x.sparse_mask(like)
            if is_coo(x):
                x = x.coalesce()
            x = wrap(x._array.values)
        arrays.append(x)
    a: Any = like._array
    if isinstance(a, CooArray) and not a.coalesced:
        a = like.coalesce()._array
    return a.with_values(elementwise._on_values(op, arrays, params)._array)


@implements("add", "_add_scaled", "_add_scalar")
def _add(op: Op, inputs: Sequence[Any], params: dict[str, Any]) -> Any:
    other = inputs[1] if len(inputs) > 1 else params["other"]
    return elementwise.add(inputs[0], other, params.get("alpha", 1))


@implements("sub", "_sub_scaled", "_sub_scalar")
def _sub(op: Op, inputs: Sequence[Any], params: dict[str, Any]) -> Any:
    other = inputs[1] if len(inputs) > 1 else params["other"]
    for x in (inputs[0], other):
        if is_sparse(x) and not is_coo(x):
            from .conversion import layout_name

            raise RuntimeError(f"unsupported tensor layout: {layout_name(x)}")
    return elementwise.add(inputs[0], other, -params.get("alpha", 1))


@implements("_rsub", "_rsub_scalar")
def _rsub(op: Op, inputs: Sequence[Any], params: dict[str, Any]) -> Any:
    other = inputs[1] if len(inputs) > 1 else params["other"]
    return elementwise.add(other, inputs[0], -params.get("alpha", 1))


@implements("mul", "_mul_scalar")
def _mul(op: Op, inputs: Sequence[Any], params: dict[str, Any]) -> Any:
    return elementwise.mul(REGISTRY["mul"], inputs[0], inputs[1] if len(inputs) > 1 else params["other"])


@implements("div", "_div_scalar", "_div_floored", "_div_rounded", "_div_rounded_twice", "floor_divide")
def _div(op: Op, inputs: Sequence[Any], params: dict[str, Any]) -> Any:
    return elementwise.divide(op, inputs[0], inputs[1] if len(inputs) > 1 else params["other"], params)


@implements("pow", "_pow_scalar")
def _pow(op: Op, inputs: Sequence[Any], params: dict[str, Any]) -> Any:
    return elementwise.power(op, inputs[0], inputs[1] if len(inputs) > 1 else params["exponent"])


@implements("_reshape_alias")
def _reshape(op: Op, inputs: Sequence[Any], params: dict[str, Any]) -> Any:
    raise RuntimeError("reshape is not implemented for sparse tensors" if is_coo(inputs[0]) else
                       "Sparse CSR tensors do not have is_contiguous")


@implements("clone")
def _clone(op: Op, inputs: Sequence[Any], params: dict[str, Any]) -> Any:
    chosen = params.get("memory_format")
    if chosen is not None and chosen.name != "preserve_format":
        names = {"contiguous_format": "Contiguous", "channels_last": "ChannelsLast",
                 "channels_last_3d": "ChannelsLast3d"}
        raise RuntimeError(f"unsupported memory format option {names[chosen.name]}")
    return inputs[0]._array.copy()


@implements("_to_copy")
def _cast(op: Op, inputs: Sequence[Any], params: dict[str, Any]) -> Any:
    a = inputs[0]._array
    to = params["dtype"].numpy
    return a.with_values(np.array(dtypes.cast(a.values, to)))


@implements("_alias")
def _same(op: Op, inputs: Sequence[Any], params: dict[str, Any]) -> Any:
    return inputs[0]._array


@implements("t")
def _t(op: Op, inputs: Sequence[Any], params: dict[str, Any]) -> Any:
    a = inputs[0]._array
    if a.ndim > 2 or a.dense_dim:
        raise RuntimeError("t() expects a tensor with <= 2 sparse and 0 dense dimensions, but got "
                           f"{a.sparse_dim} sparse and {a.dense_dim} dense dimensions")
    return shape.transpose(a, 0, 1) if a.ndim == 2 else a.with_values(a.values)


@implements("transpose")
def _transpose(op: Op, inputs: Sequence[Any], params: dict[str, Any]) -> Any:
    return shape.transpose(inputs[0]._array, params["dim0"], params["dim1"])


@implements("permute")
def _permute(op: Op, inputs: Sequence[Any], params: dict[str, Any]) -> Any:
    return shape.permute(inputs[0]._array, params["dims"])


@implements("select", "select_copy")
def _select(op: Op, inputs: Sequence[Any], params: dict[str, Any]) -> Any:
    x = inputs[0]
    out = make(shape.select(x._array, params["dim"], params["index"], op.name))

    def rule(g: Tensor) -> Any:
        raise not_implemented("select_backward", out.layout)

    return record(out, "SelectBackward0", (x,), rule)


@implements("unsqueeze")
def _unsqueeze(op: Op, inputs: Sequence[Any], params: dict[str, Any]) -> Any:
    return shape.unsqueeze(inputs[0]._array, params["dim"])


@implements("narrow_copy")
def _narrow_copy(op: Op, inputs: Sequence[Any], params: dict[str, Any]) -> Any:
    x = inputs[0]
    out = make(shape.narrow(x._array, params["dim"], params["start"], params["length"]))
    return record(out, "NarrowCopyBackward0", (x,), None, (), "narrow_copy")


@implements("index_select")
def _index_select(op: Op, inputs: Sequence[Any], params: dict[str, Any]) -> Any:
    return shape.index_select(inputs[0]._array, params["dim"], inputs[1])


@implements("cat")
def _cat(op: Op, inputs: Sequence[Any], params: dict[str, Any]) -> Any:
    return shape.cat(inputs, params["dim"])


@implements("stack")
def _stack(op: Op, inputs: Sequence[Any], params: dict[str, Any]) -> Any:
    return shape.stack(inputs, params["dim"])


@implements("unbind")
def _unbind(op: Op, inputs: Sequence[Any], params: dict[str, Any]) -> Any:
    x = inputs[0]
    dim = shape.wrap_dim(params.get("dim", 0), x._array.ndim)
    return [x.select(dim, k) for k in range(x._array.shape[dim])]


@implements("expand", "repeat")
def _expand(op: Op, inputs: Sequence[Any], params: dict[str, Any]) -> Any:
    raise RuntimeError("expand is unsupported for Sparse tensors")


@implements("_sum_all")
def _sum_all(op: Op, inputs: Sequence[Any], params: dict[str, Any]) -> Any:
    return reductions.sum_all(inputs[0], params.get("dtype"))


@implements("sum")
def _sum(op: Op, inputs: Sequence[Any], params: dict[str, Any]) -> Any:
    return reductions.sum_dims(inputs[0], params.get("dim"), bool(params.get("keepdim")), params.get("dtype"))


@implements("any")
def _any(op: Op, inputs: Sequence[Any], params: dict[str, Any]) -> Any:
    if params.get("dim") is not None:
        raise not_implemented("any.out", inputs[0].layout)
    return reductions.any_all(inputs[0])


@implements("linalg_vector_norm", "norm")
def _norm(op: Op, inputs: Sequence[Any], params: dict[str, Any]) -> Any:
    return reductions.norm(inputs[0], params.get("ord", 2), params.get("dim"), bool(params.get("keepdim")),
                           params.get("dtype"))


@implements("mm")
def _mm(op: Op, inputs: Sequence[Any], params: dict[str, Any]) -> Any:
    return products.mm(*inputs)


@implements("mv")
def _mv(op: Op, inputs: Sequence[Any], params: dict[str, Any]) -> Any:
    return products.mv(*inputs)


@implements("bmm")
def _bmm(op: Op, inputs: Sequence[Any], params: dict[str, Any]) -> Any:
    return products.bmm(*inputs)


@implements("addmm")
def _addmm(op: Op, inputs: Sequence[Any], params: dict[str, Any]) -> Any:
    return products.addmm(*inputs, beta=params.get("beta", 1), alpha=params.get("alpha", 1))


@implements("addmv")
def _addmv(op: Op, inputs: Sequence[Any], params: dict[str, Any]) -> Any:
    return products.addmv(*inputs, beta=params.get("beta", 1), alpha=params.get("alpha", 1))


@implements("_zero")
def _zero(op: Op, inputs: Sequence[Any], params: dict[str, Any]) -> Any:
    from .constructors import empty_coo

    a = inputs[0]._array
    if isinstance(a, CompressedArray):
        batch = a.batch_dim
        return CompressedArray(a.layout, np.zeros_like(a.compressed), a.plain[..., :0],
                               a.values[(*(slice(None),) * batch, slice(0))], a.shape)
    return empty_coo(a.shape, a.sparse_dim, a.dense_dim, dtypes.of(a.values.dtype))._array


def operate(name: str, x: Any, y: Any) -> Any:
    """A binary operator on arrays of which at least one is sparse, not recorded: the arithmetic of gradients."""
    token = grad_mode.set(False)
    try:
        if name == "add" and isinstance(x, SparseArray) and isinstance(y, np.ndarray):
            x, y = y, x
        first, second = (make(a) if isinstance(a, (SparseArray, np.ndarray)) else
                         wrap(np.asarray(a)) if isinstance(a, np.generic) else a for a in (x, y))
        return getattr(layer.functions, name)(first, second)._array
    finally:
        grad_mode.reset(token)


SparseArray.operate = staticmethod(operate)
handlers.apply_sparse = apply_sparse
handlers.apply_sparse_inplace = apply_sparse_inplace
handlers.write_sparse_out = write_out

__all__ = ["IMPLEMENTATIONS", "apply_sparse", "apply_sparse_inplace", "assign", "implements", "operate", "restride",
           "write_out"]
