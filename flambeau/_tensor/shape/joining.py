"""Functions that join tensors, with fast paths."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...backends.bit_views import bits_used, resolve
from ...backends.compiled.thresholds import CONCATENATIONS, SMALL_KERNELS
from ...backends.numpy.joining import concatenate_arrays, stack_arrays
from ...engine.grad_mode import grad_mode, inference
from ...engine.nodes.op_node import OpNode
from ...modes import inference_used, special
from ...ops.declare import REGISTRY, Op
from ..argument_errors.guards import refused
from ..dispatch.apply import apply
from ..dispatch.array_kernels import joined, row_major
from ..dispatch.gradient_edge import gradient_edge
from ..dispatch.public_functions import public_function
from ..fastpath.node_templates import NodeTemplate, Unlike
from ..fastpath.repeated_layouts import KnownCalls
from ..overriding.first_calls import called_again
from ..parameter import Parameter
from ..tensor import Tensor, wrap

__all__ = ["cat", "column_stack", "concat", "concatenate", "dstack", "hstack", "row_stack", "stack", "vstack"]

def _stack(arrays: list[np.ndarray], dim: int) -> np.ndarray:
    """`numpy.stack` of arrays of one shape, for small ones without an expanded view of each.

    Raises:
        ValueError: shapes differ, or there is no such dimension.
    """
    shape = arrays[0].shape
    ndim = len(shape)
    at = dim + ndim + 1 if dim < 0 else dim
    if not 0 <= at < ndim:
        return np.stack(arrays, dim)
    if [a.shape for a in arrays].count(shape) != len(arrays):
        raise ValueError("all input arrays must have the same shape")
    # concatenated along `dim`, each array is one block of rows of that dimension
    return np.concatenate(arrays, at).reshape(*shape[:at], len(arrays), *shape[at:])


def _fast_join(kernels: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Tensor | None:
    """The fast path for arrays of one dtype where nothing is recorded; None where the general path is needed."""
    tensors = args[0]
    dim = args[1] if len(args) == 2 else kwargs.get("dim", 0) if len(kwargs) < 2 else None
    if tensors.__class__ not in (list, tuple) or not tensors or dim.__class__ is not int or len(args) > 2 or (
            kwargs and "dim" not in kwargs):
        return None
    if inference.get():
        return None
    try:
        arrays = [x._array for x in tensors]
        dtype = arrays[0].dtype
        for a in arrays:
            if a.dtype is not dtype:
                return None
        if grad_mode.get() and True in [x._requires_grad for x in tensors]:
            return None
        size = sum([a.size for a in arrays])
        if bits_used[0]:
            arrays = [resolve(a) for a in arrays]
        small, large = kernels
        if size <= CONCATENATIONS[0]:
            result = small(arrays, dim)  # arrays of several ranks are a ValueError
            return wrap(row_major(result) if result.ndim < 4 or small is _stack else joined(result, arrays))
        if len({a.ndim for a in arrays}) > 1:
            return None
        result = large(arrays, dim)
        return wrap(row_major(result) if small is _stack else joined(result, arrays))
    except (AttributeError, ValueError, NotImplementedError):
        return None  # the general path raises PyTorch's error, or dispatches sparse and meta tensors


def _recorded_join(op: Op, kernels: Any, tensors: Sequence[Any], dim: int, known: dict[Any, Any]) -> Tensor | None:
    """The join of few elements, recorded by the template of an earlier node; None where the general path is needed.

    Args:
        known: the templates by dtype, shapes and what requires gradients; calls of the general path add theirs.
    """
    dtype = tensors[0]._array.dtype
    parts: list[Any] = [dim, dtype]
    arrays, nodes, numbers, size = [], [], [], 0
    for x in tensors:
        a = x._array
        if x.__class__ not in _PLAIN or a.__class__ is not np.ndarray or a.dtype is not dtype:
            return None
        arrays.append(a)
        size += a.size
        edge = None
        if x._requires_grad:
            edge = x._node
            if edge is None or x._base is not None:
                edge = gradient_edge(x)
        nodes.append(edge)
        numbers.append(x._output_nr)
        parts += (a.shape, edge is not None)
    key = tuple(parts)
    template = known.get(key)
    if template is None:
        out = apply(op, tensors, {"dim": dim})
        node = out._node
        is_join = len({a.ndim for a in arrays}) == 1  # `cat` leaves out empty vectors, which kernels do not
        if is_join and size <= _FEW and node.__class__ is OpNode and node.extra is None and dtype.kind == "f":
            try:
                template = NodeTemplate(op, tensors, [out], {id(x): i for i, x in enumerate(tensors)})
            except (Unlike, KeyError):
                return out
            if len(known) >= _KNOWN:
                known.clear()
            known[key] = template
        return out
    joined_array = kernels[0](arrays, dim)
    out = wrap(row_major(joined_array) if joined_array.ndim < 4 or kernels[0] is _stack else
               joined(joined_array, arrays))
    nodes.append(None)
    template.make(nodes, (*numbers, 0) if any(numbers) else None, tensors, [out])
    return out


def stack_into_new(tensors: Sequence[Tensor], out: Tensor) -> bool:
    """Write `stack(tensors)` into a contiguous tensor that shares memory with none of them, if there is a fast path.

    Returns:
        whether it was done; nothing was written otherwise.
    """
    if special[0] or inference.get():
        return False
    try:
        arrays = [x._array for x in tensors]
        shape, dtype, target = arrays[0].shape, out._array.dtype, out._array
        if not shape or target.shape != (len(arrays), *shape) or True in [x._requires_grad for x in tensors]:
            return False
        for a in arrays:
            if a.dtype is not dtype or a.shape != shape or a.__class__ is not np.ndarray:
                return False
    except AttributeError:
        return False
    np.concatenate(arrays, out=target.reshape(len(arrays) * shape[0], *shape[1:]))
    return True


_PLAIN = {Tensor, Parameter}
#: the most elements of a join whose node is made from a template, and the most templates of a function
_FEW, _KNOWN = 16384, 256

#: the joins that copy blocks, of lists of arrays, along a dimension or without one
_JOINS: dict[str, Any] = {
    "cat": lambda dim: lambda arrays: np.concatenate(arrays, dim),
    "stack": lambda dim: lambda arrays: _stack(arrays, dim),
    "hstack": lambda dim: np.hstack, "vstack": lambda dim: np.vstack, "dstack": lambda dim: np.dstack,
    "column_stack": lambda dim: np.column_stack}


def _launch(name: str, args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> Any:
    """The launch of a join whose result nothing records; None where it has none."""
    from ..fastpath.copy_launches import join_launch
    from ..fastpath.known_calls import ITEMS

    tensors, dim = args[0] if args else (), args[1] if len(args) > 1 else kwargs.get("dim", 0)
    if tensors.__class__ in (list, tuple) and len(args) + len(kwargs) < 3 and kwargs.keys() <= {"dim"} and (
            dim.__class__ is int and len(tensors) <= ITEMS and all(x.__class__ in _PLAIN for x in tensors)) and (
            result.__class__ is Tensor and result._node is None and result._counter is None and not result._inference):
        arrays = [x._array for x in tensors]
        if result._array.__class__ is np.ndarray and all(a.__class__ is np.ndarray for a in arrays):
            return join_launch(_JOINS[name](dim), arrays, result._array)
    return None


def _make_known(known_calls: KnownCalls, name: str, args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> Any:
    """Attempt to make a join known; return what enters known calls, or None."""
    known_calls.begin_attempt()
    launch = _launch(name, args, kwargs, result)
    return None if launch is None else known_calls.add(args, kwargs, launch)


def _cat_like(name: str) -> Any:
    op = REGISTRY[name]
    general = public_function(op)
    kernels = {"cat": (np.concatenate, concatenate_arrays), "stack": (_stack, stack_arrays)}.get(name)
    known_calls = KnownCalls()
    templates: dict[Any, Any] = {}
    enter: Any = None

    def call(*args: Any, out: Any = None, **kwargs: Any) -> Tensor:
        nonlocal enter
        if enter is not None and out is None:
            result = enter(args, kwargs)
            if result is not None and result is not False:
                return result
        if kernels is not None and out is None and args and not special[0]:
            result = _fast_join(kernels, args, kwargs)
            if result is not None:
                if SMALL_KERNELS[0]:
                    known_calls.left -= 1
                    if known_calls.left <= 0:
                        enter = _make_known(known_calls, name, args, kwargs, result) or enter
                return result
            tensors, dim = args[0], args[1] if len(args) == 2 else kwargs.get("dim", 0)
            if tensors.__class__ in (list, tuple) and tensors and dim.__class__ is int and (
                    len(args) + len(kwargs) < 3 and (not kwargs or "dim" in kwargs)) and (
                    {type(x) for x in tensors} <= _PLAIN):
                if SMALL_KERNELS[0] and grad_mode.get() and not inference.get() and not bits_used[0] and (
                        not inference_used[0]):
                    result = _recorded_join(op, kernels, tensors, dim, templates)
                    if result is not None:
                        return result
                return apply(op, tensors, {"dim": dim})
        if args and args[0].__class__ in (list, tuple) and not args[0]:
            if name == "cat":
                raise ValueError("torch.cat(): expected a non-empty list of Tensors")
            raise RuntimeError(f"{name} expects a non-empty TensorList")
        if args and isinstance(args[0], Tensor):  # which is no sequence of tensors
            error = refused(name, args, kwargs=kwargs)
            if error is not None:
                raise error
        if out is None:
            try:
                result = general(*args, **kwargs)
            except TypeError:
                result = called_again(call, args, kwargs)
                if result is NotImplemented:
                    raise
                return result
            if SMALL_KERNELS[0] and kernels is None and not special[0]:
                known_calls.left -= 1
                if known_calls.left <= 0:
                    enter = _make_known(known_calls, name, args, kwargs, result) or enter
            return result
        try:
            return general(*args, out=out, **kwargs)
        except RuntimeError as error:
            if "desired output type" in str(error):
                raise TypeError("torch.cat(): input types can't be cast to the desired output type "
                                f"{out.dtype.scalar_name}") from None
            raise

    call.__name__ = call.__qualname__ = name
    call.__doc__ = general.__doc__
    return call


cat, stack, hstack, vstack, dstack, column_stack = map(
    _cat_like, ("cat", "stack", "hstack", "vstack", "dstack", "column_stack"))
concat = concatenate = cat
row_stack = vstack
