"""Calls of overloads, `torch.ops.aten.add.Tensor(x, y)`: by the public function of the name, or by the declaration."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ... import dtypes
from ...engine.grad_mode import no_grad
from ...engine.tensor_interface import layer
from ...ops.aten import declarations_of
from ...ops.declare import COMPOSITE, REGISTRY, VIEW, Op
from ...ops.overloads import OpOverload, OpOverloadPacket, runner
from ...ops.schemas import FunctionSchema, copies_to_out
from ..dispatch.apply import apply
from ..dispatch.inplace import apply_inplace
from ..dispatch.write_checks import warn_of_resize
from ..tensor import Tensor, wrap
from .aten_arguments import asked, aten_overload, declared, operator_call, output_positions
from .entry_points import in_use
from .protocol import ALL_DISABLED, ENABLED, ask_handlers, disabled, function_modes, overloaded_in_call, skips_next

#: public functions that differ from the operator of the name
_DECLARED_FIRST = frozenset(("slice", "softmax", "index", "unfold", "expand", "view", "permute", "reshape", "select",
                             "convolution", "native_layer_norm", "native_batch_norm", "native_group_norm",
                             "max_pool2d_with_indices", "max_pool3d_with_indices", "nll_loss_forward", "embedding",
                             "nll_loss2d_forward", "log_sigmoid_forward", "constant_pad_nd", "squeeze", "unsqueeze",
                             "split", "split_with_sizes", "unbind", "transpose", "t", "where", "cat", "stack", "repeat",
                             "flip", "native_dropout", "mse_loss", "smooth_l1_loss", "huber_loss", "im2col", "col2im",
                             "binary_cross_entropy", "binary_cross_entropy_with_logits", "diagonal", "gelu", "elu",
                             "leaky_relu", "glu", "hardtanh", "silu", "mish", "hardsigmoid", "hardswish", "hardshrink",
                             "softshrink", "softplus"))


#: operators of a list of tensors whose public functions take them one by one
_SEPARATE = frozenset(("block_diag", "broadcast_tensors", "cartesian_prod", "chain_matmul"))


def call(overload: OpOverload, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Run an overload, without overrides by `__torch_function__`.

    Raises:
        RuntimeError: the arguments do not fit its schema.
    """
    token = disabled.set(ALL_DISABLED)
    try:
        pending = asked.get()
        kernel = getattr(overload, "kernel", None)
        if kernel is None and (pending is None or pending[0] is not overload):
            kernel = _by_hand.get(str(overload))
        if kernel is not None:
            return kernel(*args, **kwargs)
        internal = declared.get(id(overload))
        if internal is not None:
            result = apply(internal, list(args[0] if internal.variadic and len(internal.inputs) == 1 else args),
                           kwargs)
            return tuple(result) if isinstance(result, list) else result
        schema = overload._schema
        bound = schema.bind(args, kwargs)
        if any(a.is_out for a in schema.arguments):
            return _run_into_out(overload, schema, bound)
        composite = runner.composites().get(str(overload)) if pending is None or pending[0] is not overload else None
        return _run(overload, schema, bound) if composite is None else composite(*args, **kwargs)
    finally:
        disabled.reset(token)


def overridden(op: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The result of the first mode or `__torch_function__` of an argument; NotImplemented: there is none."""
    if not in_use[0]:
        return NotImplemented
    state = disabled.get()
    if state == ALL_DISABLED:
        return NotImplemented
    if skips_next.get():
        skips_next.set(False)
        return NotImplemented
    found = overloaded_in_call(args, kwargs) if state == ENABLED else []
    return ask_handlers(op, str(op), found, args, kwargs) if found or function_modes.get() else NotImplemented


def _run(overload: OpOverload, schema: FunctionSchema, bound: dict[str, Any]) -> Any:
    name = overload.overloadpacket.__name__
    in_place = name.endswith("_") and not name.startswith("__")
    public = getattr(Tensor, name, None) if in_place else getattr(layer.functions, name, None)
    if public is None and not in_place:
        public = getattr(Tensor, name, None)
    pending = asked.get()
    if pending is not None and pending[0] is overload:
        found = operator_call(pending[1], schema, bound, pending[2:])
        if found is not None:
            asked.set(None)
            if in_place:
                return apply_inplace(pending[1], *found)
            return _all_outputs(pending[1], overload, apply(pending[1], *found), found[1])
    declared_first = name.startswith("_") or name.rstrip("_") in _DECLARED_FIRST or public is None
    if declared_first:
        for op in sorted(declarations_of(overload), key=lambda op: op.kind != VIEW):  # others of the name copy
            if op.kind == COMPOSITE:
                continue
            found = operator_call(op, schema, bound)
            if found is not None and _accepts(op, found[0]):
                if in_place:
                    return apply_inplace(op, *found)
                return _all_outputs(op, overload, apply(op, *found), found[1])
    if public is None:
        public = runner.public(name)
    if public is None:
        raise NotImplementedError(f"flambeau has no implementation of {overload.name()}")
    positional = [bound.get(a.name, a.default_value) for a in schema.arguments if not a.kwarg_only]
    names = [a for a in schema.arguments if not a.kwarg_only]
    while positional and names[len(positional) - 1].name not in bound:
        positional.pop()
    named = {a.name: bound[a.name] for a in schema.arguments if a.kwarg_only and a.name in bound}
    if name in _SEPARATE and len(positional) == 1:
        positional = list(positional[0])
    result = public(*positional, **named)
    if isinstance(result, tuple) and type(result) is not tuple:
        return tuple(result)
    return list(result) if isinstance(result, tuple) and schema.returns[0].type_name.startswith("Tensor[") else result


# ----- overloads with `out=` -----

def _run_into_out(overload: OpOverload, schema: FunctionSchema, bound: dict[str, Any]) -> Any:
    """The `out=` tensors of a call, after its results have been written to them."""
    outs = [bound.pop(a.name) for a in schema.arguments if a.is_out]
    for argument, out in zip((a for a in schema.arguments if a.is_out), outs, strict=True):
        if "[" not in argument.type_name and not isinstance(out, Tensor):
            raise RuntimeError(f"{schema.name}() Expected a value of type '{argument.type_name}' for argument "
                               f"'{argument.name}' but instead found type '{type(out).__name__}'.")
    positional = [bound.get(a.name, a.default_value) for a in schema.arguments if not a.kwarg_only]
    names = [a.name for a in schema.arguments if not a.kwarg_only]
    while positional and names[len(positional) - 1] not in bound:
        positional.pop()
    named = {a.name: bound[a.name] for a in schema.arguments if a.kwarg_only and a.name in bound}
    name = overload.overloadpacket.__name__
    copies = name.startswith("_") or copies_to_out(name, overload._overloadname)
    public = None if copies else getattr(layer.functions, name, None)
    result = None if str(schema).endswith("()") else outs[0] if len(outs) == 1 else tuple(outs)
    if public is not None and "out" in inspect.signature(public).parameters:
        public(*positional, **named, out=result)
        return result
    with no_grad():
        computed = call(functional_overload(overload, schema), tuple(positional), named)
    for value, out in zip(computed if len(outs) > 1 else [computed], outs, strict=True):
        for each, target in zip(value, out, strict=True) if isinstance(out, (list, tuple)) else [(value, out)]:
            _write(each, target)
    return result


def functional_overload(overload: OpOverload, schema: FunctionSchema) -> OpOverload:
    """The overload of the same name, or of the in-place variant's, with the same arguments but `out=`.

    Raises:
        NotImplementedError: there is none.
    """
    wanted = [(a.name, a.type_name) for a in schema.arguments if not a.is_out]
    factory_options = {"dtype", "layout", "device", "pin_memory"}
    for each in overload.overloadpacket._overloads.values():
        given = each._given_schema
        if given is not None and not given.is_mutable and [
                (a.name, a.type_name) for a in given.arguments
                if a.name not in factory_options or (a.name, a.type_name) in wanted] == wanted:
            return each
    raise NotImplementedError(f"flambeau has no implementation of {overload.name()}")


def _write(value: Tensor, out: Tensor) -> None:
    """Copy a result to a tensor of its dtype, which is resized."""
    if value.dtype is not out.dtype:
        names = dtypes.C_NAMES
        expected, given = (names.get(each.dtype.name, each.dtype.name) for each in (value, out))
        raise RuntimeError(f"Expected out tensor to have dtype {expected}, but got {given} instead")
    if out.shape != value.shape:
        warn_of_resize(tuple(out.shape), tuple(value.shape))
        out.resize_(value.shape)
    with no_grad():
        out.copy_(value)


def _all_outputs(op: Op, overload: OpOverload, result: Any, params: dict[str, Any]) -> Any:
    """An operator's outputs as those of an overload; those that only the overload has are empty tensors.

    Indices of maxima are what max pooling stores in its list `saved`, statistics of a batch what batch normalization
    stores there.
    """
    if isinstance(result, list) and not op.tensor_list:
        result = tuple(result)
    positions = output_positions(op, overload)
    if positions is None:
        return result
    outs = result if isinstance(result, tuple) else (result,)
    every: list[Any] = [None] * len(overload._schema.returns)
    for i, out in zip(positions, outs, strict=True):
        every[i] = out
    if "max_pool" in op.name and params.get("saved"):
        from ..neural.pooling import indices_of_maxima

        every[1] = indices_of_maxima(outs[0], params["saved"])
    elif op.name == "_batch_norm" and params["training"] and params.get("saved"):
        every[1:3] = [wrap(x) if type(x) is np.ndarray else None for x in params["saved"][:2]]
    elif op.name in ("_layer_norm", "_group_norm") and params.get("saved"):
        from ..neural.normalization import statistics_of

        every[1:3] = statistics_of(outs[0], params)
    return tuple(layer.functions.empty(0) if out is None else out for out in every)


def _accepts(op: Any, inputs: list[Any]) -> bool:
    """Whether inputs that are numbers may be: a declaration of tensors takes none."""
    for name, x in zip(op.inputs, inputs, strict=False):
        if not isinstance(x, Tensor) and x is not None and name not in op.scalar_inputs and not op.variadic:
            return False
    return True


#: operators that take numbers for each of their tensors
_NUMBERS_FOR_TENSORS = frozenset((
    "add", "sub", "mul", "div", "divide", "multiply", "subtract", "true_divide", "floor_divide"))


def resolve(packet: OpOverloadPacket, args: tuple[Any, ...], kwargs: dict[str, Any]) -> OpOverload:
    """The overload of a packet that the arguments fit.

    Raises:
        RuntimeError: they fit none.
    """
    for overload in packet._overloads.values():
        schema = overload._given_schema
        if schema is None:
            continue
        try:
            bound = schema.bind(args, dict(kwargs))
        except RuntimeError:
            continue
        types = {a.name: a.type_name for a in schema.arguments}
        if packet.__name__ in _NUMBERS_FOR_TENSORS:
            bound = {name: value for name, value in bound.items()
                     if types[name] != "Tensor" or not isinstance(value, (int, float, complex))}
        if all(_fits(value, types[name]) for name, value in bound.items()):
            return overload
    raise RuntimeError(f"{packet._qualified_op_name}() received an invalid combination of arguments: none of its "
                       f"overloads takes {[type(x).__name__ for x in args]}")


def _fits(value: Any, type_name: str) -> bool:
    if type_name.endswith("?"):
        return value is None or _fits(value, type_name[:-1])
    if type_name.startswith("Tensor"):
        if "[" in type_name:
            return isinstance(value, (list, tuple)) and all(x is None or isinstance(x, Tensor) for x in value)
        return isinstance(value, Tensor)
    if "[" in type_name:
        return isinstance(value, (list, tuple)) or (not type_name.endswith("[]") and isinstance(value, int))
    if type_name in ("int", "SymInt"):
        return isinstance(value, int) and not isinstance(value, bool)
    if type_name in ("float", "Scalar", "number"):
        return isinstance(value, (int, float, complex)) and not (type_name == "float" and isinstance(value, complex))
    if type_name == "bool":
        return isinstance(value, bool)
    if type_name == "str":
        return isinstance(value, str)
    return not isinstance(value, Tensor)


# ----- operators without a public function or declaration of the name -----

def _index(self: Tensor, indices: Any) -> Any:
    return self[tuple(slice(None) if i is None else i for i in indices)]


def _index_put_(self: Tensor, indices: Any, values: Any, accumulate: bool = False) -> Any:
    return self.index_put_(tuple(slice(None) if i is None else i for i in indices), values, accumulate) if (
        all(i is not None for i in indices)) else _assign(self, indices, values)


def _assign(self: Tensor, indices: Any, values: Any) -> Any:
    self[tuple(slice(None) if i is None else i for i in indices)] = values
    return self


def _to_copy(self: Tensor, *, dtype: Any = None, layout: Any = None, device: Any = None, pin_memory: Any = None,
             non_blocking: bool = False, memory_format: Any = None) -> Any:
    return self.to(dtype=dtype or self.dtype, copy=True, **({} if memory_format is None else {
        "memory_format": memory_format}))


def _softmax(self: Tensor, dim: int, half_to_float: bool) -> Any:
    return layer.functions.softmax(self, dim, dtypes.float32 if half_to_float else None)


def _log_softmax(self: Tensor, dim: int, half_to_float: bool) -> Any:
    return layer.functions.log_softmax(self, dim, dtypes.float32 if half_to_float else None)


def _local_scalar_dense(self: Tensor) -> Any:
    if not self.numel():
        raise RuntimeError("_local_scalar_dense: Empty tensor not supported")
    return self[(0,) * self.dim()].item()


def _slice(self: Tensor, dim: int = 0, start: Any = None, end: Any = None, step: int = 1) -> Any:
    return self[(slice(None),) * (dim % self._array.ndim) + (slice(start, end, step),)]


def _layer_norm(input: Tensor, normalized_shape: Any, weight: Any, bias: Any, eps: float) -> Any:
    return layer.functions.native_layer_norm(input, normalized_shape, weight, bias, eps)


def _nll_loss_forward(self: Tensor, target: Tensor, weight: Any, reduction: int, ignore_index: int) -> Any:
    loss = layer.functions.nll_loss(self, target, weight, ignore_index=ignore_index,
                                    reduction=("none", "mean", "sum")[reduction])
    counted = target != ignore_index
    if weight is None:
        total = counted.sum().to(self.dtype)
    else:
        total = weight[target.masked_fill(~counted, 0)].mul(counted).sum()
    return loss, total if reduction else total.new_zeros(())


def _empty(size: Any, *, memory_format: Any = None, **options: Any) -> Any:
    return layer.functions.empty(size, **_factory_options(options))


def _factory_options(options: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in options.items() if value is not None and name in ("dtype", "device")}


def _factory(name: str) -> Callable[..., Any]:
    def make(*args: Any, generator: Any = None, **options: Any) -> Any:
        return getattr(layer.functions, name)(*args, **_factory_options(options))

    return make


def _sparse_mm_reduce_impl(self: Tensor, other: Tensor, reduce: str) -> Any:
    from ..sparse.products import sparse_mm

    return sparse_mm(self, other, reduce), layer.functions.empty(0, dtype=dtypes.int64)


def _sparse_compressed_tensor_with_dims(nnz: int, dense_dim: int, size: Sequence[int], blocksize: Sequence[int],
                                        index_dtype: Any, *, dtype: Any = None, layout: Any = None, device: Any = None,
                                        pin_memory: bool | None = False) -> Tensor:
    from ..sparse.invariants import COMPRESSED
    from ..sparse.likes import compressed_of_dims

    if layout not in COMPRESSED:
        raise RuntimeError("sparse_compressed_tensor_with_dims: expected sparse compressed layout")
    return compressed_of_dims(nnz, dense_dim, tuple(size), tuple(blocksize), index_dtype.numpy,
                              dtype or dtypes.get_default_dtype(), layout)


def _max_unpool(rank: int) -> Callable[..., Any]:
    """Unpooling to a given size, of which the public function knows only how far it may be from the smallest one."""
    def run(self: Tensor, indices: Tensor, output_size: Any, stride: Any = 1, padding: Any = 0) -> Tensor:
        from ..neural.pooling import unpool_to_size

        return unpool_to_size(rank, self, indices, tuple(output_size))

    return run


def _fractional_max_pool(rank: int) -> Callable[..., Any]:
    """Fractional pooling with given samples, which the public function draws."""
    name = f"fractional_max_pool{rank}d"

    def run(self: Tensor, kernel_size: Any, output_size: Any, random_samples: Tensor) -> Any:
        op = REGISTRY[f"_{name}"]
        params: dict[str, Any] = {"kernel_size": tuple(kernel_size), "output_size": tuple(output_size), "saved": []}
        values = apply(op, [self, random_samples], params)
        return _all_outputs(op, aten_overload(name, "default"), values, params)

    return run


_by_hand: dict[str, Callable[..., Any]] = {
    "aten.fractional_max_pool2d.default": _fractional_max_pool(2),
    "aten.fractional_max_pool3d.default": _fractional_max_pool(3),
    "aten.max_unpool2d.default": _max_unpool(2), "aten.max_unpool3d.default": _max_unpool(3),
    "aten._sparse_mm_reduce_impl.default": _sparse_mm_reduce_impl,
    "aten._sparse_compressed_tensor_with_dims.default": _sparse_compressed_tensor_with_dims,
    "aten.index.Tensor": _index, "aten.index_put_.default": _index_put_, "aten._to_copy.default": _to_copy,
    "aten._softmax.default": _softmax, "aten._log_softmax.default": _log_softmax, "aten.slice.Tensor": _slice,
    "aten._local_scalar_dense.default": _local_scalar_dense, "aten.item.default": _local_scalar_dense,
    "aten.lift_fresh.default": lambda self: self, "aten.lift.default": lambda self: self,
    "aten.lift_fresh_copy.default": lambda self: self.clone(),
    "aten.detach.default": lambda self: self.detach(), "aten.alias.default": lambda self: layer.functions._alias(self),
    "aten.sym_size.default": lambda self: list(self.shape), "aten.sym_size.int": lambda self, dim: self.shape[dim],
    "aten.size.default": lambda self: list(self.shape), "aten.size.int": lambda self, dim: self.shape[dim],
    "aten.sym_stride.default": lambda self: list(self.stride()), "aten.stride.default": lambda self: self.stride(),
    "aten.sym_numel.default": lambda self: self.numel(), "aten.dim.default": lambda self: self.dim(),
    "aten.sym_storage_offset.default": lambda self: self.storage_offset(),
    "aten.is_same_size.default": lambda self, other: self.shape == other.shape,
    "aten.empty.memory_format": _empty, "aten.nll_loss_forward.default": _nll_loss_forward,
    "aten.nll_loss2d_forward.default": _nll_loss_forward,
    **{f"aten.{name}.{overload}": _factory(name) for name, overload in (
        ("zeros", "default"), ("ones", "default"), ("full", "default"), ("rand", "default"), ("randn", "default"),
        ("eye", "default"), ("eye", "m"), ("arange", "default"), ("arange", "start"), ("arange", "start_step"),
        ("linspace", "default"), ("logspace", "default"), ("randperm", "default"), ("scalar_tensor", "default"),
        ("zeros_like", "default"), ("ones_like", "default"), ("empty_like", "default"), ("full_like", "default"),
        ("rand_like", "default"), ("randn_like", "default"), ("empty_strided", "default"))},
}


def is_by_hand(overload: OpOverload) -> bool:
    """Whether an operator is computed by a function of its own."""
    return str(overload) in _by_hand


runner.call = call
runner.overridden = overridden
runner.resolve = resolve

__all__ = ["call", "is_by_hand", "resolve"]
