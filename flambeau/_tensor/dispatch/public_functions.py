"""The public function of each declared operator, and its in-place variant: arguments bound, checked and applied."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy as np

from ... import dtypes
from ...backends.sparse_array import has_sparse, not_implemented
from ...devices import strided
from ...lazy_modules import FUNCTIONS
from ...ops.declare import COMPOSITE, ELEMENTWISE, REGISTRY, VIEW, Op
from ..argument_errors.guards import GUARDED_FUNCTIONS, NOT_GIVEN, UNCHECKED, raise_refusal, refused_write
from ..argument_errors.out_arguments import check_records_nothing
from ..argument_errors.seen_classes import OperatorClasses
from ..fastpath.by_arity import binary, unary
from ..fastpath.known_views import known_views
from ..fastpath.out_argument import compute_into_out
from ..fastpath.repeated_calls import ANY, launched, repeated
from ..fastpath.repeated_layouts import LAUNCHED, MOST
from ..fastpath.unary_with_parameters import parameter_function
from ..tensor import Tensor
from .apply import apply
from .array_kernels import kernel_of
from .binding import ForeignArgument, bind, is_number
from .handlers import handlers
from .out_tensors import COMPARISONS, check_out, check_out_dtypes, check_out_overlap, check_unsupported_out, write_out
from .promotion import NO_PARAMS, promoted_type

#: products that have an overload with the dtype of the result, which PyTorch has no kernel for on CPUs
_WITH_OUT_DTYPE = frozenset(("addmm", "baddbmm", "bmm", "mm"))
#: operators that may read few elements of a large tensor
_READING_FEW = frozenset(("gather", "index_select", "trace"))
#: operators that look at the dtype of `out=` before they look at the input's, and at indices
_DTYPES_FIRST = frozenset(("cummax", "cummin", "gather", "index_reduce", "index_select", "kthvalue",
                           "logcumsumexp", "mode", "softplus"))


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
    is_repeated, is_real = op.name in LAUNCHED, op.name in _REAL_NUMBERS

    def call(*args: Any, out: Any = None, **kwargs: Any) -> Any:
        try:
            if out is not None and _takes_no_out(op.name):
                _raise_if_unfit(op, args, {**kwargs, "out": out})
            if op.scalar_overloads:
                for name, other in op.scalar_overloads.items():
                    at = op.inputs.index(name)
                    value = args[at] if at < len(args) else kwargs.get(name)
                    if is_number(value):
                        if "out" in kwargs:  # a method's, which takes none (`without_out`)
                            _raise_if_unfit(op, args, kwargs)
                        if out is not None:
                            check_records_nothing(op.name, (*args, *kwargs.values()), (out,), op.differentiable)
                        try:
                            function = public_function(other)
                            if is_repeated:  # launches of calls that come again are this function's
                                function = getattr(function, "__wrapped__", function)
                            result = function(*args, **kwargs)
                        except NotImplementedError:
                            if out is not None and isinstance(args[0] if args else None, Tensor):
                                check_out_overlap(op, args, (out,))
                                check_unsupported_out(op, [*args, value], {}, out)
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
            if is_real and complex in map(type, params.values()):
                _refuse_complex(op, inputs[0])
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
                    check_out_dtypes(op, inputs[0], outs)
            if out is not None and compute_into_out(op, inputs, params, outs):
                return outs[0]
            try:
                result = apply(op, inputs, params)
            except Exception as error:
                if out is not None and op.kind == ELEMENTWISE:
                    check_out_overlap(op, inputs, outs)  # which PyTorch looks at first
                    if isinstance(error, NotImplementedError) and op.n_outputs == 1 and str(error).startswith('"'):
                        check_unsupported_out(op, inputs, params, out)  # a kernel's error begins with its name
                raise
            if out is not None:
                check_out_overlap(op, inputs, outs)
                compared = op.name in COMPARISONS and isinstance(out, Tensor)
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


#: operators whose parameters are real numbers: of the type that is named, or of that which the kernel computes in
_REAL_NUMBERS = {"celu": "double", "elu": "", "hardshrink": "", "hardtanh": "double", "leaky_relu": "",
                 "softshrink": "double", "threshold": ""}


def _refuse_complex(op: Op, input: Any) -> None:
    """Raise PyTorch's error for a complex parameter, unless the kernel lacks the input's dtype."""
    kind = _REAL_NUMBERS[op.name]
    if kind or (isinstance(input, Tensor) and input.dtype.is_floating_point):
        kind = kind or ("double" if input.dtype is dtypes.float64 else "float")
        raise RuntimeError(f"value cannot be converted to type {kind} without overflow")


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
        if call is general and not op.variadic and op.name != "pow" and "generator" not in op.params and (
                op.kind != VIEW and (op.kind != ELEMENTWISE or op.n_outputs == 1)):
            call = repeated(call, differentiable=op.differentiable, most=ANY if op.name in _READING_FEW else MOST)
        elif op.kind not in (ELEMENTWISE, VIEW) and not op.variadic and "generator" not in op.params:
            call = launched(call, op.differentiable, ANY if op.name in _READING_FEW else MOST)
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
    from .inplace import UNRECORDED, apply_inplace, inplace_fast_path

    seen = _classes_of(op, in_place=True)

    def call(*args: Any, **kwargs: Any) -> Any:
        if op.scalar_overloads:
            for name, other in op.scalar_overloads.items():
                at = op.inputs.index(name)
                value = args[at] if at < len(args) else kwargs.get(name)
                if is_number(value):
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
        if op.name in _REAL_NUMBERS and complex in map(type, params.values()):
            if (refused := refused_write(inputs)) is not None:
                raise_refusal(refused)
            _refuse_complex(op, inputs[0])
        try:
            return apply_inplace(op, inputs, params)
        except Exception:  # PyTorch parses all arguments before it looks at any
            unfit = _unfit(op, args, kwargs, "_")
            if unfit is None and op.name not in UNRECORDED:
                unfit = refused_write(inputs)
            if unfit is not None:
                try:
                    raise unfit from None
                finally:
                    del unfit  # whose traceback refers to this frame, and so to the arguments
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


__all__ = ["NO_PARAMS", "REGISTRY", "general_function", "inplace_function", "public_function"]
