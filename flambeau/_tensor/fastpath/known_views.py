"""Views of layouts that are known: shape, strides and offset of an earlier view of the same layout and arguments."""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable, Iterable
from itertools import permutations
from typing import Any

import numpy as np

from ...backends.compiled.thresholds import SMALL_KERNELS
from ...backends.numpy.memory import address
from ...engine.grad_mode import grad_mode, inference
from ...engine.nodes.op_node import OpNode
from ...modes import active_transforms, special
from ...ops.declare import VIEW
from ...shapes import Size
from ..dispatch.gradient_edge import gradient_edge
from ..parameter import Parameter
from ..tensor import INFERENCE, Tensor
from ..views.untracked import register_view
from .repeated_layouts import KnownCalls, learning

ndarray = np.ndarray
#: past the checks of arrays in a device's memory
reshape, get_item = ndarray.reshape, ndarray.__getitem__
new, reference = object.__new__, weakref.ref
_grad_enabled, _inferring = grad_mode.get, inference.get
_INTS, _TUPLES = frozenset((int,)), frozenset((tuple, Size))
_SEQUENCES = frozenset((tuple, list, Size))
#: the most layouts of one function
LAYOUTS = 512


def known_views(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function (tensor, *sizes) -> view or tuple of views, with the views of known layouts made at once.

    Where views are recorded, their nodes are made from templates, too, once kernels are loaded.
    """
    known: dict[Any, Any] = {}
    find = known.get
    recorded: dict[Any, Any] = {}
    known_calls = KnownCalls()
    enter: Any = None

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        nonlocal enter
        if enter is not None:
            result = enter(args, kwargs)
            if result is not None:
                return result if result is not False else function(*args, **kwargs)
        if special[0] or not args:
            return function(*args, **kwargs)
        source = args[0]
        kind = source.__class__
        if kind is not Tensor and kind is not Parameter:
            return function(*args, **kwargs)
        a = source._array
        if a.__class__ is not ndarray:
            return function(*args, **kwargs)
        if source._requires_grad and _grad_enabled():
            return (_recorded(function, recorded, source, args[1:], kwargs) if SMALL_KERNELS[0] else
                    function(*args, **kwargs))
        rest = args[1:]
        key: tuple[Any, ...]
        if kwargs:
            rest = (*rest, *kwargs.values())
            key = (a.shape, a.strides, *rest, a.itemsize, *kwargs)
        else:
            key = (a.shape, a.strides, *rest, a.itemsize)
        try:
            makers = find(key)
        except TypeError:
            return function(*args, **kwargs)
        if makers is None or source._counter is INFERENCE or source._view_steps is not None or (
                active_transforms[0]) or (
                source._inference or not (_INTS.issuperset(map(type, rest)) or _are_sizes(rest))):
            result = function(*args, **kwargs)
            if _are_sizes(rest):
                if len(known) >= LAYOUTS:
                    known.clear()
                made = _makers(source, result)
                if made:
                    known[key] = made
            return result
        if makers.__class__ is tuple:
            result = tuple([view_of(source, make(a), True) for make in makers])
        else:
            result = view_of(source, makers(a), False)
        if SMALL_KERNELS[0]:
            enter = known_calls.add_views(source, args[1:], kwargs, result)
        return result

    return call


def _recorded(function: Callable[..., Any], known: dict[Any, Any], source: Tensor, rest: tuple[Any, ...],
              kwargs: dict[str, Any]) -> Any:
    """The views of a tensor that requires gradients, recorded; known ones by their template."""
    a = source._array
    sizes = (*rest, *kwargs.values()) if kwargs else rest
    key = (a.dtype.num, a.shape, a.strides, *sizes, *kwargs)
    if source._counter is INFERENCE or source._view_steps is not None or source._inference or active_transforms[0] or (
            not _are_sizes(sizes)):
        return function(source, *rest, **kwargs)
    found = known.get(key)
    if found is not None:
        edge: Any = source._node
        if edge is None or source._base is not None:
            edge = gradient_edge(source)
            if edge is None:  # of a view that was made without gradients
                return function(source, *rest, **kwargs)
        makers, template = found
        outs = [view_of(source, make(a), template.outputs is not None) for make in makers]
        template.make((edge, None), (source._output_nr, 0) if source._output_nr else None, (source,), outs)
        return outs[0] if template.outputs is None else tuple(outs)
    result = function(source, *rest, **kwargs)
    outs = [*result] if result.__class__ is tuple else [result]
    makers = _makers(source, tuple(outs))
    node = outs[0]._node if makers else None
    edge = gradient_edge(source) if makers else None
    if edge is not None and node.__class__ is OpNode and node.edges == (edge,) and (
            node.plan.op.kind == VIEW and node.extra is None and node.versions is None) and (
            (node.outputs is not None) == (result.__class__ is tuple)) and all(x._node is node for x in outs):
        from .node_templates import NodeTemplate, Unlike

        try:
            template = NodeTemplate(node.plan.op, (source,), outs, {id(source): 0})
        except (Unlike, KeyError):
            return result
        if len(known) >= LAYOUTS:
            known.clear()
        known[key] = makers, template
    return result


def _are_sizes(values: Iterable[Any]) -> bool:
    """Whether values are integers, or tuples of them: equal ones are alike, unlike 1, 1.0 and True."""
    return all(x.__class__ is int or (x.__class__ in _TUPLES and _INTS.issuperset(map(type, x))) for x in values)


def views_by_code(function: Callable[..., Any]) -> Callable[..., Any]:
    """`known_views` of a function that makes views as quickly itself, except for those that generated code makes.

    Where it copies, generated code copies.
    """
    known_calls = KnownCalls()

    def learn(result: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if not _can_be_known(args, kwargs):
            return None
        if _makers(args[0], result):
            return known_calls.add_views(args[0], args[1:], {}, result)
        launch = _copying(args[0], result)
        return None if launch is None else known_calls.add(args, kwargs, launch)

    return learning(function, learn, known_calls)


def _copying(source: Tensor, result: Any) -> Any:
    """The launch of a copy of a tensor's elements, in their order, in another shape; None for other results."""
    if result.__class__ is not Tensor or result is source or result._requires_grad or result._inference or (
            result._base is not None or result._version):
        return None
    a, b = source._array, result._array
    if b.__class__ is not ndarray or a.dtype is not b.dtype or a.size != b.size or not b.flags.c_contiguous or (
            1 in b.shape or np.may_share_memory(a, b)):
        return None
    from .copy_launches import picking_launch

    launch = picking_launch(a, np.arange(a.size).reshape(b.shape))
    return launch if launch is not None and launch(a).tobytes() == b.tobytes() else None


def _is_size(value: Any) -> bool:
    """Whether an argument is an integer, or a sequence of some."""
    return value.__class__ is int or (value.__class__ in _SEQUENCES and _INTS.issuperset(map(type, value)))


def _can_be_known(args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Whether a call has a plain tensor that requires no gradients here, and sizes."""
    if kwargs or not args or special[0] or active_transforms[0]:
        return False
    source = args[0]
    return (source.__class__ is Tensor or source.__class__ is Parameter) and source._array.__class__ is ndarray and (
        all(map(_is_size, args[1:]))) and source._counter is not INFERENCE and source._view_steps is None and (
        not source._inference and not (source._requires_grad and _grad_enabled()))


def view_of(source: Tensor, array: ndarray, multi: bool) -> Tensor:
    """`as_view` of a tensor without gradients, outside inference mode's tensors."""
    out: Any = new(Tensor)
    out._array = array
    out._output_nr = 0
    out._node = out._grad = out._accumulator = None
    counter: Any = source._counter
    if counter is None:
        counter = source._counter = [0]
    out._counter = counter
    base = source._base
    out._base = source if base is None else base
    if counter[0]:
        out._view_version = counter[0]
    if not _grad_enabled():
        out._creation = "inference" if _inferring() or source._creation == "inference" else "no_grad"
    elif multi:
        out._creation = "inference" if source._creation == "inference" else "multi"
    elif base is not None and source._creation is not None:
        out._creation = source._creation
    out._requires_grad = out._base._requires_grad
    if 1 < len(counter) <= counter[1]:
        counter.append(reference(out))
    else:
        register_view(out, counter)
    return out


def _makers(source: Tensor, result: Any) -> Any:
    """The functions of an array of the source's layout that give these views' arrays; None where there is none."""
    if result.__class__ is tuple:
        makers = [_maker(source, each) for each in result]
        return tuple(makers) if makers and None not in makers else None
    return _maker(source, result)


def _maker(source: Tensor, view: Any) -> Callable[[ndarray], ndarray] | None:
    array = view._array if isinstance(view, Tensor) else None
    if array is None or view is source or array.__class__ is not ndarray or (
            view._base is not (source if source._base is None else source._base)):
        return None
    return array_maker(source._array, array)


def view_launch(operands: list[Any], kernel: Callable[..., Any], params: dict[str, Any]) -> Any:
    """The function of an array that gives an operator's view of it; the kernel itself where there is none."""
    if len(operands) != 1:
        return None
    a, found = operands[0], kernel(operands[0], **params)
    if found.__class__ is not a.__class__:
        return None
    if found is not a and np.may_share_memory(a, found):
        maker = array_maker(a, found)
        if maker is not None:
            return maker
    return lambda x: kernel(x, **params)


def array_maker(a: ndarray, array: ndarray) -> Callable[[ndarray], ndarray] | None:
    """The function of an array of a layout that gives a view of given layout."""
    if array.dtype is not a.dtype or not array.size:
        return None
    shape, strides, offset = array.shape, array.strides, address(array) - address(a)
    if not offset and array.size == a.size:
        try:
            reshaped = a.reshape(shape)
        except (TypeError, ValueError):
            reshaped = a
        if reshaped.shape == shape and reshaped.strides == strides and address(reshaped) == address(a):
            return (lambda x: x.reshape(shape)) if a.__class__ is ndarray else lambda x: reshape(x, shape)
    if not offset and array.ndim == a.ndim and array.ndim < 7:
        for axes in permutations(range(a.ndim)):
            if a.transpose(axes).shape == shape and a.transpose(axes).strides == strides:
                return lambda x: x.transpose(axes)
    slices = _slices(a, array, offset)
    if slices is not None:
        return (lambda x: x[slices]) if a.__class__ is ndarray else lambda x: get_item(x, slices)
    if not a.flags.c_contiguous and not a.flags.f_contiguous:  # which is no buffer
        return None
    if a.__class__ is ndarray:
        return lambda x: ndarray(shape, x.dtype, x, offset, strides)
    return lambda x: ndarray.__new__(x.__class__, shape, x.dtype, x, offset, strides)


def _slices(a: ndarray, view: ndarray, offset: int) -> tuple[slice, ...] | None:
    """The slices of an array that give a view; None where there are none."""
    if view.ndim != a.ndim:
        return None
    slices = []
    for n, length, step, stride in zip(a.shape, view.shape, a.strides, view.strides, strict=True):
        if step != stride or not step:  # of expanded dimensions of size 1
            return None
        start, offset = divmod(offset, step)
        if start + length > n:
            return None
        slices.append(slice(start, start + length))
    picked = tuple(slices)
    return picked if not offset and a[picked].shape == view.shape and a[picked].strides == view.strides and (
        address(a[picked]) == address(view)) else None


__all__ = ["array_maker", "known_views", "view_launch", "view_of", "views_by_code"]
