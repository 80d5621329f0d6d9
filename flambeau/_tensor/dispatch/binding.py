"""Argument binding: the public function of each declared operator, with arguments bound and checked as in PyTorch."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from enum import IntEnum
from functools import reduce
from math import prod
from operator import index
from typing import Any

import numpy as np

from ... import dtypes
from ...backends.bit_views import BitView, memory_of, with_bits_of
from ...backends.compiled import copy
from ...backends.elementless_array import (
    ElementlessArray,
    MetaArray,
    meta_array,
    plain_dtype,
    reserved_like,
    without_elements,
)
from ...backends.numpy.memory import in_memory_of
from ...backends.sparse_array import has_sparse, not_implemented
from ...devices import strided
from ...kernels.memory_format import layouts_seen, with_preserved_strides
from ...lazy_modules import FUNCTIONS
from ...modes import active_tracers, device_memory, special
from ...ops.declare import COMPOSITE, ELEMENTWISE, REGISTRY, VIEW, Op
from ...shapes import broadcast_shapes
from ..argument_errors.guards import GUARDED_FUNCTIONS, NOT_GIVEN, UNCHECKED, raise_refusal, refused_write
from ..argument_errors.out_arguments import NO_DERIVATIVE, check_records_nothing
from ..argument_errors.seen_classes import PLAIN, OperatorClasses
from ..argument_errors.type_names import not_a_tensor, type_name
from ..fastpath.by_arity import binary, unary
from ..fastpath.known_views import known_views
from ..fastpath.out_argument import compute_into_out
from ..fastpath.repeated_calls import repeated
from ..fastpath.repeated_layouts import LAUNCHED
from ..fastpath.unary_with_parameters import parameter_function
from ..overriding.dispatch import is_on_accelerator
from ..overriding.entry_points import note_foreign
from ..overriding.protocol import OVERRIDES, kind_of
from ..tensor import Tensor
from ..tracer_notifications import notify_overwritten
from .apply import apply
from .array_kernels import kernel_of
from .handlers import handlers
from .inplace import record_underived
from .promotion import NO_PARAMS, promoted_type
from .write_checks import check_overlap, prepare_write, warn_of_real_parts, warn_of_resize

#: NumPy's spellings of arguments, which PyTorch accepts too
_NUMPY_NAMES = {"axis": "dim", "keepdims": "keepdim", "x": "input", "a": "input", "x1": "input", "x2": "other"}

#: parameters that a bool does not fit
_INTEGERS = frozenset(("N", "diagonal", "dim", "dim0", "dim1", "dim2", "dimension", "dims", "k", "n", "offset", "r",
                       "repeats", "shifts", "size", "step"))


#: classes of numbers, and of parameters, that `bind` passes on unchanged
_NUMBERS = frozenset((bool, int, float, complex))
_PLAIN = frozenset((int, float, str, tuple, list, type(None)))


def _is_number(x: Any) -> bool:
    return isinstance(x, (bool, int, float, complex, np.generic))


class _AllFit(dict[str, Any]):
    """The classes of parameters that are passed on as they are, by name, of functions that check none."""

    def __missing__(self, name: str) -> frozenset[type]:
        return _PASSED


_PASSED = PLAIN - {bool} | {dtypes.dtype}
_ALL_FIT = _AllFit()


def _bind_positional(op: Op, args: tuple[Any, ...], n: int,
                     fitting: dict[str, Any]) -> tuple[list[Any], dict[str, Any]] | None:
    """`bind` for inputs followed by parameters, all by position; None for any other call."""
    inputs = list(args[:n])
    for i, x in enumerate(inputs):
        if not isinstance(x, Tensor) and not (x.__class__ in _NUMBERS and op.inputs[i] in op.scalar_inputs):
            return None
    params = dict(zip(op.params, args[n:], strict=False))
    for name, value in params.items():
        if value.__class__ not in fitting[name]:
            return None
    return inputs, params


def _bind_named(op: Op, args: tuple[Any, ...], kwargs: dict[str, Any],
                fitting: dict[str, Any]) -> tuple[list[Any], dict[str, Any]] | None:
    """`bind` for inputs by position and parameters by name; None for any other call."""
    for i, x in enumerate(args):
        if not isinstance(x, Tensor) and not (x.__class__ in _NUMBERS and op.inputs[i] in op.scalar_inputs):
            return None
    names = op.params
    for name, value in kwargs.items():
        if name not in names or value.__class__ not in fitting[name]:
            return None
    for name in names[:op.required_params]:
        if name not in kwargs and name not in op.defaults:
            return None
    return list(args), kwargs.copy()


def _bind_ordered(op: Op, args: tuple[Any, ...], order: tuple[str, ...],
                  fitting: dict[str, Any]) -> tuple[list[Any], dict[str, Any]] | None:
    """`bind` for arguments by position where parameters stand between the inputs; None for any other call."""
    if len(args) > len(order):
        return None
    given = dict(zip(order, args, strict=False))
    inputs = []
    for name in op.inputs:
        x = given.pop(name, None)
        if not isinstance(x, Tensor):
            return None
        inputs.append(x)
    for name, value in given.items():
        if value.__class__ not in fitting[name]:
            return None
    for name in op.params:
        if name not in given and name not in op.defaults:
            return None
    return inputs, given


def bind(op: Op, args: tuple[Any, ...], kwargs: dict[str, Any],
         seen: OperatorClasses | None = None) -> tuple[list[Any], dict[str, Any]]:
    """Inputs and parameters from a call's arguments.

    Args:
        seen: the classes of arguments that fit; None if all do.

    Raises:
        TypeError: an argument is missing, unknown, given twice or of the wrong type.
    """
    names = op.inputs
    n = len(names)
    fitting = _ALL_FIT if seen is None else seen.passed
    if not kwargs and op.required_params is not None and n + op.required_params <= len(args) <= n + len(op.params):
        result = _bind_positional(op, args, n, fitting)
        if result is not None:
            return result
    elif kwargs and len(args) == n and op.required_params is not None:
        result = _bind_named(op, args, kwargs, fitting)
        if result is not None:
            return result
    elif op.argument_order is not None and not kwargs:
        result = _bind_ordered(op, args, op.argument_order, fitting)
        if result is not None:
            return result
    elif not kwargs and op.spread is not None and n == len(op.params) == 1 < len(args) and (
            isinstance(args[0], Tensor) and {int}.issuperset(map(type, args[1:]))):
        if seen is not None:
            seen.look(args, kwargs)
        return [args[0]], {op.spread: args[1:]}
    if seen is not None:
        return seen.bound(lambda: bind(op, args, kwargs), args, kwargs)
    inputs: list[Any] = []
    params: dict[str, Any] = {}
    if kwargs:
        kwargs = kwargs.copy()  # errors name the arguments as they were given
        for alias, name in _NUMPY_NAMES.items():
            if alias in kwargs and alias not in names and alias not in op.params and (
                    name in names or name in op.params):
                kwargs[name] = kwargs.pop(alias)
    if op.argument_order is not None and (len(args) > 1 or (args and kwargs)):
        if len(args) > len(op.argument_order):
            raise TypeError(f"{op.name}() takes {len(op.argument_order)} positional arguments but {len(args)} were "
                            "given")
        ordered = dict(zip(op.argument_order, args, strict=False))
        for name in ordered:
            if name in kwargs:
                raise TypeError(f"{op.name}() got multiple values for argument '{name}'")
        kwargs, args = {**ordered, **kwargs}, ()
    for i, name in enumerate(names):
        if i < len(args):
            if name in kwargs:
                raise TypeError(f"{op.name}() got multiple values for argument '{name}'")
            inputs.append(args[i])
        elif name in kwargs:
            inputs.append(kwargs.pop(name))
        elif i >= n - op.n_optional:
            inputs.append(None)
        else:
            raise TypeError(f'{op.name}() missing 1 required positional arguments: "{name}"')
    extra_args = args[n:]
    if extra_args:
        if op.spread is not None and not isinstance(extra_args[0], (tuple, list)) and extra_args[0] is not None:
            if extra_args[0].__class__ is bool:
                raise TypeError(f"{op.name}(): argument '{op.spread}' must be tuple of ints, not bool")
            params[op.spread] = extra_args
        else:
            if len(extra_args) > len(op.params):
                raise TypeError(f"{op.name}() takes {n + len(op.params)} positional arguments but {len(args)} were "
                                "given")
            for name, value in zip(op.params, extra_args, strict=False):
                params[name] = value
    for name, value in kwargs.items():
        if name not in op.params:
            raise TypeError(f"{op.name}() got an unexpected keyword argument '{name}'")
        if name in params:
            raise TypeError(f"{op.name}() got multiple values for argument '{name}'")
        params[name] = value
    for name in op.params:
        if name not in params:
            if name not in op.defaults:
                raise TypeError(f'{op.name}() missing 1 required positional arguments: "{name}"')
        else:
            value = params[name]
            if isinstance(value, np.generic):
                value = params[name] = value.item()
            elif isinstance(value, IntEnum):  # NumPy takes it for an object
                value = params[name] = int(value)
            if isinstance(value, Tensor):
                if value._array.ndim == 0 or (name in _INTEGERS and value._array.size == 1):
                    params[name] = value.item()
            elif name in _INTEGERS and value.__class__ not in _PLAIN and not isinstance(value, int) and (
                    kind_of(type(value)) != OVERRIDES and hasattr(value, "__index__")):
                params[name] = index(value)
            elif (value[0] if name == op.spread and isinstance(value, (tuple, list)) and value else value
                  ).__class__ is bool and name in _INTEGERS:
                raise TypeError(f"{op.name}(): argument '{name}' must be int, not bool")
            elif name == "dtype" and value is not None and value.__class__ is not dtypes.dtype:
                params[name] = dtypes.of_argument(value, op.name)
    if op.variadic:
        tensors = inputs.pop()
        if isinstance(tensors, Tensor) or not isinstance(tensors, (list, tuple)):
            raise TypeError(f"{op.name}(): argument '{names[-1]}' (position {n}) must be tuple of Tensors, not "
                            f"{type_name(tensors)}")
        for i, x in enumerate(tensors):
            if not isinstance(x, Tensor) and not (x is None and names[-1] in op.nondifferentiable_inputs):
                raise TypeError(f"expected Tensor as element {i} in argument {n - 1}, but got {type_name(x)}")
        inputs.extend(tensors)
    else:
        for i, x in enumerate(inputs):
            if isinstance(x, Tensor):
                continue
            if x is None and i >= n - op.n_optional:
                continue
            if _is_number(x) and names[i] in op.scalar_inputs:
                if isinstance(x, np.generic):
                    inputs[i] = x.item()
                continue
            if kind_of(type(x)) == OVERRIDES:
                raise ForeignArgument(x, inputs, params)
            raise not_a_tensor(op.name, x, names[i], i + 1)
    return inputs, params


class ForeignArgument(TypeError):
    """Raised by `bind` for a value that is no tensor and has a `__torch_function__`; with the arguments bound."""

    def call_again(self, function: Callable[..., Any], out: Any = None) -> Any:
        """Call the public function, whose code now asks the handler."""
        x, inputs, params = self.args
        note_foreign(type(x))
        return function(*inputs, **params, **({} if out is None else {"out": out}))


def _classes_of(op: Op, in_place: bool = False) -> OperatorClasses | None:
    """The classes of arguments that an operator's function has seen; None if another function has its public name."""
    if op.name in _WRITTEN or op.variadic or not op.params or (
            op.name in GUARDED_FUNCTIONS and op.name not in UNCHECKED):
        return None
    if "torch" not in op.expose and "method" not in op.expose and op.name not in _OF_NN:
        return None
    return OperatorClasses(tuple(name + "_" * in_place for name in (op.name, *op.aliases)),
                           op.argument_order or (*op.inputs, *op.params))


#: functions that are written by hand, which call that of the operator of their name in their own way
_WRITTEN = frozenset(name for names in FUNCTIONS.values() for name in names.split())


def general_function(op: Op, seen: OperatorClasses | None = None) -> Callable[..., Any]:
    """The public function of any operator, without a fast path.

    Args:
        seen: the classes of arguments that fit; None if all do.
    """
    result_type: Any = None
    result_type_of_out: Any = None
    if op.returns_namedtuple and op.outputs:
        from ..return_types import named_result

        result_type, result_type_of_out = named_result(op), named_result(op, with_out=True)
    # others are called by a function of the same name, in another order or form, which explains errors itself
    parses = op.name not in GUARDED_FUNCTIONS if not op.expose else (
        op.expose != ("nn.functional",) or op.name in _OF_NN)

    def call(*args: Any, out: Any = None, **kwargs: Any) -> Any:
        try:
            if out is not None and _takes_no_out(op.name):
                _raise_if_unfit(op, args, {**kwargs, "out": out})
            if op.scalar_overloads:
                for name, other in op.scalar_overloads.items():
                    at = op.inputs.index(name)
                    value = args[at] if at < len(args) else kwargs.get(name)
                    if _is_number(value):
                        if out is not None:
                            check_records_nothing(op.name, (*args, *kwargs.values()), (out,), op.differentiable)
                        try:
                            result = public_function(other)(*args, **kwargs)
                        except NotImplementedError:
                            if out is not None and isinstance(args[0] if args else None, Tensor):
                                _check_unsupported_out(op, [*args, value], {}, out)
                            raise
                        return result if out is None else write_out(other, result, out)
            try:
                inputs, params = bind(op, args, kwargs, seen)
            except ForeignArgument as foreign:
                return foreign.call_again(public_function(op), out)
            except TypeError:
                _raise_if_unfit(op, args, kwargs if out is None else {**kwargs, "out": out})
                _refuse_out_dtype(op, args, kwargs, out)
                if (reordered := _reordered(op, args, kwargs)) is None:
                    raise
                inputs, params = bind(op, (), reordered)
            if op.dtype_converts and "dtype" in params:
                to = params.pop("dtype")
                if to is not None and isinstance(inputs[0], Tensor) and inputs[0].dtype is not to:
                    inputs[0] = inputs[0].to(to)
            if out is not None and has_sparse((*inputs, out)):
                return handlers.write_sparse_out(op, apply(op, inputs, params), inputs, out)
            if out is not None:
                outs = out if isinstance(out, (tuple, list)) else (out,)
                check_out(op, inputs, outs)
                if op.name in _DTYPES_FIRST:
                    _check_dtypes(op, inputs[0], outs)
            if out is not None and compute_into_out(op, inputs, params, outs):
                return outs[0]
            try:
                result = apply(op, inputs, params)
            except NotImplementedError as error:  # a kernel's begins with its name
                if out is not None and op.kind == ELEMENTWISE and op.n_outputs == 1 and str(error).startswith('"'):
                    _check_unsupported_out(op, inputs, params, out)
                raise
            if out is not None:
                _check_out_overlap(op, inputs, outs)
                compared = op.name in _COMPARISONS and isinstance(out, Tensor)
                if op.name == "abs" and isinstance(out, Tensor) and inputs[0].is_complex():
                    result = write_out(REGISTRY["angle"], result, out)  # PyTorch takes complex numbers' by another way
                else:
                    result = write_out(op, result, out,
                                       computed=promoted_type(op, inputs, params).numpy if compared else None)
            if result_type is not None:
                return result_type(result) if out is None else result_type_of_out(result)
            return tuple(result) if result.__class__ is list else result
        except Exception:  # PyTorch parses all arguments before it looks at any
            if parses:
                _raise_if_unfit(op, args, kwargs if out is None else {**kwargs, "out": out})
            _refuse_out_dtype(op, args, kwargs, out)
            raise

    call.__name__ = call.__qualname__ = op.name
    call.__doc__ = op.doc
    return call


#: operators of `nn.functional` alone that are its functions
_OF_NN = frozenset(("elu", "gelu", "glu", "hardshrink", "hardtanh", "leaky_relu", "softplus", "softshrink"))


def _refuse_out_dtype(op: Op, args: tuple[Any, ...], kwargs: dict[str, Any], out: Any) -> None:
    """Raise PyTorch's error for the overload of a product with the dtype of its result, which devices alone have."""
    if op.name in _WITH_OUT_DTYPE and (
            "out_dtype" in kwargs or any(isinstance(x, dtypes.dtype) for x in args[len(op.inputs):])):
        raise not_implemented(f"{op.name}.dtype" + "_out" * (out is not None), strided) from None


def _takes_no_out(name: str) -> bool:
    """Whether PyTorch's function of this name refuses `out=`."""
    from ..argument_errors.signatures import takes_no_out

    return takes_no_out(name)


def _check_unsupported_out(op: Op, inputs: Sequence[Any], params: dict[str, Any], out: Any) -> None:
    """Check and warn of what PyTorch looks at before it finds that its kernel lacks a dtype.

    Raises:
        RuntimeError: the result's dtype is not, or cannot be cast to, that of `out`.
    """
    d = promoted_type(op, inputs, params)
    if not isinstance(out, Tensor):
        return
    if op.exact_out and d is not out.dtype:
        raise RuntimeError(_unequal_dtypes(op.exact_out, d, out.dtype, 0))
    if not dtypes.can_cast(d, out.dtype) and op.name not in _COMPARISONS:
        raise RuntimeError(f"result type {d.scalar_name} can't be cast to the desired output type "
                           f"{out.dtype.scalar_name}")
    shape = reduce(broadcast_shapes, (x._array.shape for x in inputs if isinstance(x, Tensor)))
    if shape != out._array.shape:
        warn_of_resize(out._array.shape, shape)
        if d is not out.dtype and op.name not in _RESIZED_ONCE:
            warn_of_resize(out._array.shape, shape)
        give_shape(out, shape)


def _unfit(op: Op, args: tuple[Any, ...], kwargs: dict[str, Any], suffix: str = "") -> Exception | None:
    """PyTorch's error for arguments that fit no signature; None if they fit one."""
    from ..argument_errors.messages import unfit

    given = [value for value in args if value is not NOT_GIVEN]
    return unfit([name + suffix for name in (op.name, *op.aliases)], given, kwargs)


def _reordered(op: Op, args: tuple[Any, ...], kwargs: dict[str, Any], suffix: str = "") -> dict[str, Any] | None:
    """The arguments by name of a call in a deprecated order, such as factors before tensors; None for other calls."""
    from ..argument_errors.deprecated_overloads import reordered

    return reordered([name + suffix for name in (op.name, *op.aliases)], args, kwargs)


def _raise_if_unfit(op: Op, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """Raise PyTorch's error if a call's arguments fit no signature."""
    raise_refusal(_unfit(op, args, kwargs))


def check_out(op: Op, inputs: Sequence[Any], outs: Sequence[Any]) -> None:
    """Check that a call with `out=` has nothing to record, neither a node nor tangents.

    Raises:
        RuntimeError: a tensor requires grad, and grad mode is on.
        NotImplementedError: a tensor has a tangent.
    """
    if op.name not in _COPIED:
        check_records_nothing(op.name, inputs, outs, op.differentiable)
    if special[0]:
        from .forward_mode import tangent_levels

        if tangent_levels((*inputs, *outs)):
            raise NotImplementedError(f"Trying to use forward AD with {op.name}_out that does not "
                                      "support it because it is an out= function")


def _check_out_overlap(op: Op, inputs: Sequence[Any], outs: Sequence[Any]) -> None:
    """Check the `out=` tensors for internal overlap and for partial overlap with inputs.

    Raises:
        RuntimeError: they overlap (PyTorch's texts).
    """
    for out in outs:
        if not isinstance(out, Tensor):
            continue
        check_overlap(out._array, *(x._array for x in inputs if isinstance(x, Tensor)), disjoint=op.disjoint_out)


#: scalar types whose tensors have a name of their own, `torch.FloatTensor`
_LEGACY_TYPES = frozenset(("Double", "Float", "Half", "Byte", "Char", "Short", "Int", "Long"))
#: operators that PyTorch composes of others, and whose result is then copied to `out`: a write that is recorded
_COPIED = frozenset(("quantile", "nanquantile"))
#: elementwise operators that compute into an `out=` of another dtype without a tensor of the result's
_RESIZED_ONCE = frozenset(("angle", "bitwise_not", "floor_divide", "isneginf", "isposinf", "logical_and",
                           "logical_not", "logical_or", "logical_xor", "signbit"))
#: products that have an overload with the dtype of the result, which PyTorch has no kernel for on CPUs
_WITH_OUT_DTYPE = frozenset(("addmm", "baddbmm", "bmm", "mm"))
_COMPARISONS = frozenset(("eq", "ge", "gt", "le", "lt", "ne"))
#: operators that look at the dtype of `out=` before they look at the input's, and at indices
_DTYPES_FIRST = frozenset(("cummax", "cummin", "gather", "index_reduce", "index_select", "kthvalue", "logcumsumexp",
                           "mode", "softplus"))
#: operators that resize `out=` before they look at its dtype
_RESIZED_FIRST = frozenset((
    "alias_copy", "diagonal_copy", "dot", "expand_copy", "mean", "nansum", "permute_copy", "prod", "select_copy",
    "slice_copy", "stack", "std", "sum", "unsqueeze_copy", "var", "vdot"))


def write_out(op: Op, result: Any, out: Any, number: int = 0, computed: np.dtype | None = None) -> Any:
    """Write results into the `out=` tensors, resizing them where their shape differs.

    Args:
        number: which of the operator's results this is.
        computed: the dtype that the operator computes in, where that is not the result's.

    Raises:
        RuntimeError: a result's dtype cannot be cast to its `out`'s.
    """
    if isinstance(result, (list, tuple)):
        if not isinstance(out, (list, tuple)):
            raise TypeError(f"{op.name}(): argument 'out' must be tuple of Tensors, not {type_name(out)}")
        if len(out) != len(result):
            if op.name == "unbind_copy":
                raise RuntimeError(f"unbind_copy_int_out expected an out= argument of size {len(result)}, got size "
                                   f"{len(out)}")
            raise TypeError(f"expected tuple of {len(result)} elements but got {len(out)}")
        if op.exact_out.__class__ is tuple:  # both are looked at first
            for number, (f, o) in enumerate(zip(result, out, strict=True)):
                if isinstance(o, Tensor) and o.dtype is not f.dtype:
                    raise RuntimeError(_unequal_dtypes(op.exact_out, f.dtype, o.dtype, number))
        return [write_out(op, f, o, i) for i, (f, o) in enumerate(zip(result, out, strict=True))]
    if isinstance(out, (list, tuple)) and len(out) == 1:
        out = out[0]
    if special[0] and isinstance(out, Tensor) and not (
            isinstance(out._array, np.ndarray) and isinstance(result._array, np.ndarray)):
        raise RuntimeError(f"Batching rule not implemented for aten::{op.name.strip('_')}.out; the fallback path "
                           "doesn't work on out= or view ops.")
    if not isinstance(out, Tensor):
        raise TypeError(f"{op.name}(): argument 'out' must be Tensor, not {type_name(out)}")
    if op.name in _RESIZED_FIRST:
        resize_out(out, result._array.shape)
    if op.exact_out and result._array.dtype != out._array.dtype:
        raise RuntimeError(_unequal_dtypes(op.exact_out, result.dtype, out.dtype, number))
    if op.name in _COPIED:
        return copy_out(result, out, "quantile() out tensor must be same dtype as the input tensor")
    check_records_nothing(op.name, (result,), (out,), op.differentiable)
    if not dtypes.can_cast(result.dtype, out.dtype):
        if op.castable_out:
            function, *names = op.castable_out
            raise RuntimeError(f"{function}: Expected {names[number]} to be safely castable from "
                               f"{result.dtype.scalar_name} dtype, but got {names[number]} with dtype "
                               f"{out.dtype.scalar_name}")
        raise RuntimeError(f"result type {result.dtype.scalar_name} can't be cast to the desired output type "
                           f"{out.dtype.scalar_name}")
    prepare_write(out)
    a, target = result._array, out._array
    if computed is not None and computed.kind == "c":
        warn_of_real_parts(out)
    if device_memory.count and (is_on_accelerator(out) or is_on_accelerator(result)):
        if target.shape != a.shape:
            warn_of_resize(target.shape, a.shape)
        handlers.write_out_on_device(op, result, out)
    elif isinstance(a, ElementlessArray) or isinstance(target, ElementlessArray):
        if target.shape != a.shape:
            warn_of_resize(target.shape, a.shape)
        write_without_elements(out, result)
    elif target.shape != a.shape:
        warn_of_resize(target.shape, a.shape)
        if op.kind == ELEMENTWISE and target.dtype != (computed or a.dtype) and op.name not in _RESIZED_ONCE:
            warn_of_resize(target.shape, a.shape)  # PyTorch computes into a tensor of the result's dtype, and copies
        if op.kind == ELEMENTWISE and a.ndim > 1 and layouts_seen[0]:
            out._array = with_preserved_strides(np.array(dtypes.cast(a, target.dtype), order="K", copy=True), a)
        else:
            out._array = np.array(dtypes.cast(a, target.dtype), order="C", copy=True)
        if not active_tracers[0]:  # which take it for a new array
            out._array = in_memory_of(target, out._array)
        if isinstance(target, BitView):
            out._array = with_bits_of(out._array, target)
            out._array[...] = a
    else:
        copy(target, dtypes.cast(a, target.dtype))
    if special[0]:
        notify_overwritten(out, a, out._array is not target)
    out._bump_version()  # raises for an inference tensor, after the write, as in PyTorch
    if op.name in NO_DERIVATIVE and (result._requires_grad or out._requires_grad):
        record_underived(op.name, result, out)
    return out


def _unequal_dtypes(text: Any, result: Any, out: Any, number: int) -> str:
    """The message for an `out=` tensor whose dtype is not the result's; `text` is the operator's `exact_out`."""
    if text is True:
        text = "Expected out tensor to have dtype {result_c}, but got {out_c} instead"
    elif text.__class__ is tuple:
        text = text[number]
    names = {name: d.scalar_name for name, d in (("result", result), ("out", out))}
    types = {f"{name}_type": f"torch.{n}Tensor" if n in _LEGACY_TYPES else f"CPU{n}Type" for name, n in names.items()}
    return str(text.format(result_c=dtypes.C_NAMES[result.name], out_c=dtypes.C_NAMES[out.name], **names, **types))


def _check_dtypes(op: Op, input: Tensor, outs: Sequence[Any]) -> None:
    """Check that results of the input's dtype, and indices, have `out=` tensors of their dtypes."""
    for number, (out, dtype) in enumerate(zip(outs, (input.dtype, dtypes.int64), strict=False)):
        if isinstance(out, Tensor) and out.dtype is not dtype:
            raise RuntimeError(_unequal_dtypes(op.exact_out, dtype, out.dtype, number))


def write_without_elements(out: Tensor, result: Tensor) -> None:
    """Give an `out=` tensor the shape of a result, of which one at least is a meta tensor.

    Raises:
        RuntimeError: only one is (PyTorch's text).
    """
    a, target = result._array, out._array
    if a.__class__ is not target.__class__:
        raise RuntimeError(f"Attempting to copy from device {result.device} to device {out.device}, but cross-device "
                           "copies are not allowed!")
    if target.shape != a.shape:
        out._array = without_elements(reserved_like(a, dtype=plain_dtype(target.dtype), dense=True))


def resize_out(out: Tensor, shape: tuple[int, ...]) -> None:
    """Give an `out=` tensor another shape, with PyTorch's warning."""
    if out._array.shape != shape:
        warn_of_resize(out._array.shape, shape)
        give_shape(out, shape)


def give_shape(out: Tensor, shape: tuple[int, ...]) -> None:
    """Give an `out=` tensor another shape: in its memory if that is large enough. This counts as no write."""
    target = out._array
    if target.shape != shape:
        if device_memory.count and is_on_accelerator(out):
            out.resize_(shape)
            return
        if target.__class__ is MetaArray:
            out._array = meta_array(shape, target.dtype)
            return
        kept = min(prod(shape), target.size)  # the elements stay
        memory = np.zeros(prod(shape), target.dtype)
        memory[:kept] = memory_of(target).reshape(-1)[:kept]
        resized = memory.reshape(shape)
        if not active_tracers[0]:
            resized = in_memory_of(target, resized)
        out._array = with_bits_of(resized, target) if isinstance(target, BitView) else resized


def copy_out(result: Tensor, out: Tensor, exact: str = "") -> Tensor:
    """Copy a result into `out`, resized where its shape differs, as `Tensor.copy_` does: this is recorded.

    Args:
        exact: the message for another dtype, with {result} and {out}.

    Raises:
        RuntimeError: `out` is a leaf that requires grad, or has another dtype.
    """
    if exact and out.dtype is not result.dtype:
        raise RuntimeError(exact.format(result=result.dtype.scalar_name, out=out.dtype.scalar_name))
    resize_out(out, result._array.shape)
    return out.copy_(result)


def public_function(op: Op) -> Callable[..., Any]:
    """An operator's public function: with a fast path where its declaration allows one. Cached in `op.call`."""
    call = op.call
    if call is None:
        seen = _classes_of(op)
        call = general = general_function(op, seen)
        if (op.kind == ELEMENTWISE and not op.params and not op.variadic and not op.n_optional
                and not op.scalar_overloads and op.n_outputs == 1 and not op.unpromoted
                and not op.unsupported_dtypes.keys() & {"float32", "float64"}):
            if len(op.inputs) == 1:
                call = unary(op, call)
            elif len(op.inputs) == 2:
                call, op.operator_method = binary(op, call)
                if op.inputs != ("input", "other"):
                    call.__code__ = call.__code__.replace(co_varnames=(*op.inputs, *call.__code__.co_varnames[2:]))
        else:
            call = parameter_function(op, call, seen)
        if call is general and not op.variadic and op.name != "pow" and (
                op.name in LAUNCHED or (op.kind == ELEMENTWISE and op.n_outputs == 1)):
            call = repeated(call)
        elif op.kind == VIEW and len(op.inputs) == 1 and not op.variadic:
            call = known_views(call)
        call.__doc__, call.__module__ = op.doc, _FUNCTIONS  # where pickles look it up
        with _lock:  # threads get one function
            call = op.call = op.call or call
    return call


_lock = threading.Lock()
#: the module that has the functions' public names
_FUNCTIONS = f"{__name__.partition('.')[0]}._tensor.functions"


def _inplace_doc(op: Op) -> str:
    """The docstring of the in-place variant; of an activation, with the operator's example."""
    summary = f"`{op.name}`, in place."
    _, prompt, rest = (op.doc or "").partition(">>>")
    if op.forward.__module__ != "flambeau.ops.pointwise.activation" or not prompt:
        return summary
    example = prompt + rest.rstrip()
    return f"{summary}\n\n    {example.replace(f'.{op.name}(', f'.{op.name}_(')}\n    "


def inplace_function(op: Op) -> Callable[..., Any]:
    """An operator's in-place function, `name_`. Cached in `op.in_place`."""
    if op.in_place is not None:
        return op.in_place
    from .inplace import apply_inplace, inplace_fast_path

    seen = _classes_of(op, in_place=True)

    def call(*args: Any, **kwargs: Any) -> Any:
        if op.scalar_overloads:
            for name, other in op.scalar_overloads.items():
                at = op.inputs.index(name)
                value = args[at] if at < len(args) else kwargs.get(name)
                if _is_number(value):
                    return inplace_function(other)(*args, **kwargs)
        try:
            inputs, params = bind(op, args, kwargs, seen)
        except ForeignArgument as foreign:
            return foreign.call_again(getattr(Tensor, op.name + "_"))
        except TypeError as error:
            unfit = _unfit(op, args, kwargs, "_")
            if unfit is None and str(error).startswith(f"{op.name}() "):
                unfit = TypeError(str(error).replace(op.name, op.name + "_", 1))
            if unfit is not None:
                try:
                    raise unfit from None
                finally:
                    del unfit
            if (reordered := _reordered(op, args, kwargs, "_")) is None:
                raise
            inputs, params = bind(op, (), reordered)
        if op.kind == COMPOSITE:
            raise NotImplementedError(f"{op.name}_")
        try:
            return apply_inplace(op, inputs, params)
        except Exception:  # PyTorch parses all arguments before it looks at any
            if (refused := _unfit(op, args, kwargs, "_") or refused_write(inputs)) is not None:
                try:
                    raise refused from None
                finally:
                    del refused  # whose traceback refers to this frame, and so to the arguments
            raise

    call.__name__ = call.__qualname__ = op.name + "_"
    call.__doc__ = _inplace_doc(op)
    if (op.kind == ELEMENTWISE and len(op.inputs) == 2 and not op.params and not op.scalar_overloads
            and isinstance(kernel_of(op), np.ufunc)):
        fast = inplace_fast_path(op, call)
        fast.__doc__ = call.__doc__
        call = fast
    call.__module__ = _FUNCTIONS  # where pickles look it up
    op.in_place = call
    return call


__all__ = ["NO_PARAMS", "REGISTRY", "bind", "check_out", "copy_out", "general_function", "give_shape",
           "inplace_function", "public_function", "resize_out", "write_out"]
