"""Joining, splitting and repeating functions whose arguments a declaration cannot express."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations as _combinations
from itertools import combinations_with_replacement as _with_replacement
from operator import index
from typing import Any

import numpy as np

from ... import dtypes
from ...backends.bit_views import bits_used, resolve
from ...backends.compiled.thresholds import CONCATENATIONS, SMALL_KERNELS
from ...backends.numpy.joining import concatenate_arrays, stack_arrays
from ...devices import CPU, contiguous_format
from ...engine.grad_mode import grad_mode, inference
from ...engine.nodes.op_node import OpNode
from ...modes import inference_used, special
from ...ops.declare import REGISTRY, Op
from ...shapes import wrap_dim
from ...warning_location import user_stacklevel
from ..argument_errors.guards import NOT_GIVEN, raise_refusal, refused
from ..argument_errors.type_names import check_tensors, type_name
from ..dispatch.apply import apply
from ..dispatch.array_kernels import joined, row_major
from ..dispatch.gradient_edge import gradient_edge
from ..dispatch.handlers import handlers, host_elements
from ..dispatch.out_tensors import check_out, write_out
from ..dispatch.public_functions import public_function
from ..dispatch.write_checks import check_overlap
from ..fastpath.known_views import known_views
from ..fastpath.node_templates import NodeTemplate, Unlike
from ..fastpath.repeated_calls import repeated
from ..fastpath.repeated_layouts import KnownCalls
from ..fastpath.unary_with_parameters import positional_parameters
from ..meta import is_meta, meta_array
from ..parameter import Parameter
from ..stream_printing import stream_text
from ..tensor import Tensor, wrap
from ..tracer_notifications import notify_read
from .reshaping import as_ints, expand, reshape, unsqueeze, view

__all__ = ["block_diag", "cartesian_prod", "cat", "chunk", "column_stack", "combinations", "concat",
           "concatenate", "diag", "diagflat", "dsplit", "dstack", "hsplit", "hstack", "meshgrid",
           "repeat_interleave", "row_stack", "slice_copy", "split", "split_copy", "split_with_sizes_copy",
           "stack", "tensor_split", "tile", "tril_indices", "triu_indices", "unbind_copy", "unsafe_chunk",
           "vsplit", "vstack"]


# ----- splitting ---------------------------------------------------------------------------


@known_views
def split(tensor: Tensor, split_size_or_sections: Any = None, dim: int = 0, *, split_size: Any = None) -> Any:
    """Views of consecutive slices along a dimension, all of one size or of the given sizes.

    >>> import flambeau as torch
    >>> torch.split(torch.arange(3), 2)
    (tensor([0, 1]), tensor([2]))
    """
    sizes = split_size if split_size_or_sections is None else split_size_or_sections
    if isinstance(sizes, (tuple, list)):
        try:
            return public_function(REGISTRY["split_with_sizes"])(tensor, as_ints(sizes, "split", "split_size"), dim=dim)
        except TypeError:
            _raise_unsplit("split_with_sizes", tensor, sizes, dim)
            raise
    try:
        size = sizes.__index__()
    except AttributeError:
        if sizes is None:
            raise TypeError("split() missing 1 required positional argument: 'split_size_or_sections'") from None
        raise TypeError("split_with_sizes(): argument 'split_sizes' (position 2) must be tuple of ints, not "
                        f"{type_name(sizes)}") from None
    try:
        return public_function(REGISTRY["_split"])(tensor, split_size=size, dim=dim)
    except TypeError:
        _raise_unsplit("split", tensor, size, dim)
        raise


def _raise_unsplit(name: str, *args: Any) -> None:
    """Raise the refusal of a call whose arguments PyTorch's `split` passes on by position, whatever its caller did."""
    from ..argument_errors.messages import explained

    raise_refusal(explained("torch", name, args, {}))


def _copy_variant(key: str, source: str, arguments: str) -> Any:
    copy = public_function(REGISTRY[key])

    def call(*args: Any, out: Any = None, **kwargs: Any) -> Any:
        if out is None:
            return copy(*args, **kwargs)
        token = grad_mode.set(False)  # PyTorch's autograd does not see these overloads
        try:
            copy(*args, out=out, **kwargs)
        finally:
            grad_mode.reset(token)
        return None

    call.__name__ = call.__qualname__ = key
    call.__doc__ = f"""`{source}` with copies instead of views.

    Args:
        out: a list of tensors to write to; then the result is None.

    >>> import flambeau as torch
    >>> torch.{key}(torch.arange(2){arguments})
    """ + ("    (tensor([0]), tensor([1]))\n    " if source != "unbind" else "    (tensor(0), tensor(1))\n    ")
    return call


split_copy = _copy_variant("split_copy", "split", ", 1")
split_with_sizes_copy = _copy_variant("split_with_sizes_copy", "split_with_sizes", ", [1, 1]")
unbind_copy = _copy_variant("unbind_copy", "unbind", "")


def slice_copy(input: Tensor, dim: int = 0, start: int | None = None, end: int | None = None, step: int = 1, *,
               out: Tensor | None = None) -> Tensor:
    """A copy of `input[start:end:step]` along a dimension.

    >>> import flambeau as torch
    >>> torch.slice_copy(torch.arange(4), 0, 1, 3)
    tensor([1, 2])
    """
    return public_function(REGISTRY["slice_copy"])(input, dim=dim, start=start, end=end, step=step, out=out)


def _chunks(input: Tensor, chunks: int, dim: int, one: str, sizes: str) -> Any:
    shape = input._array.shape
    if not shape:
        raise RuntimeError("chunk expects at least a 1-dimensional tensor")
    try:
        if chunks.__class__ is not int or dim.__class__ is not int:
            raise_refusal(refused("chunk" if one == "_split" else "unsafe_chunk", (input,), (
                ("chunks", chunks, NOT_GIVEN), ("dim", dim, 0))))
        if chunks <= 0:
            raise RuntimeError(f"chunk expects `chunks` to be greater than 0, got: {chunks}")
        length = shape[wrap_dim(dim, len(shape))]
    except TypeError:
        raise_refusal(refused("chunk" if one == "_split" else "unsafe_chunk", (input,), (
            ("chunks", chunks, NOT_GIVEN), ("dim", dim, 0))))
        raise
    size = -(-length // chunks)
    if not size and not length:
        return public_function(REGISTRY[sizes])(input, split_sizes=(0,) * chunks, dim=dim)
    if dim.__class__ is not int:
        return public_function(REGISTRY[one])(input, split_size=size, dim=dim)
    return tuple(apply(REGISTRY[one], [input], {"split_size": size, "dim": dim}))


@known_views
def chunk(input: Tensor, chunks: int, dim: int = 0) -> Any:
    """At most `chunks` views of equal size along a dimension; the last may be smaller.

    >>> import flambeau as torch
    >>> torch.chunk(torch.arange(3), 2)
    (tensor([0, 1]), tensor([2]))
    """
    return _chunks(input, chunks, dim, "_split", "split_with_sizes")


def unsafe_chunk(input: Tensor, chunks: int, dim: int = 0) -> Any:
    """`chunk`, whose outputs autograd does not treat as views.

    >>> import flambeau as torch
    >>> torch.unsafe_chunk(torch.arange(3), 2)
    (tensor([0, 1]), tensor([2]))
    """
    return _chunks(input, chunks, dim, "unsafe_split", "unsafe_split_with_sizes")


def tensor_split(input: Tensor, indices_or_sections: Any = None, dim: int = 0, *, indices: Any = None,
                 sections: Any = None) -> Any:
    """Views along a dimension: a number of sections of nearly equal size, or split at the given indices.

    >>> import flambeau as torch
    >>> torch.tensor_split(torch.arange(3), 2)
    (tensor([0, 1]), tensor([2]))
    """
    splits = next(x for x in (indices_or_sections, indices, sections) if x is not None)
    shape = input._array.shape
    if not shape:
        raise RuntimeError("tensor_split expected at least a 1-dimensional tensor, but got a tensor with 0 dims")
    axis = wrap_dim(dim, len(shape))
    length = shape[axis]
    if isinstance(splits, Tensor):
        if splits._array.dtype != np.int64:
            raise RuntimeError("tensor_split expected tensor_indices_or_sections to have dtype of long, but got "
                               f"{splits.dtype.scalar_name}")
        if splits._array.ndim > 1:
            raise RuntimeError("tensor_split expected tensor_indices_or_sections to be a zero-dimensional or "
                               f"one-dimensional tensor, but got a tensor with {splits._array.ndim} dims")
        splits = splits.tolist()
    if isinstance(splits, int):
        if splits <= 0:
            raise RuntimeError(f"number of sections must be larger than 0, got {splits}")
        if splits >= 2**63:
            raise ValueError("Overflow when unpacking long long")
        small, larger = divmod(length, splits)
        bounds, start = [], 0
        for i in range(splits):
            end = start + small + (1 if i < larger else 0)
            bounds.append((start, end))
            start = end
    else:
        cuts = [int(i) for i in splits]
        bounds = list(zip([0, *cuts], [*cuts, length], strict=True))
    return tuple(apply(REGISTRY["slice"], [input], {"dim": axis, "start": a, "end": b, "step": 1}) for a, b in bounds)


def _split_along(name: str, at_least: int, dim_of: Any) -> Any:
    def call(input: Tensor, indices_or_sections: Any = None, *, indices: Any = None, sections: Any = None) -> Any:
        splits = next(x for x in (indices_or_sections, indices, sections) if x is not None)
        if not isinstance(splits, (int, tuple, list)):
            raise TypeError(f"{name}() received an invalid combination of arguments - got (Tensor, "
                            f"{type(splits).__name__}), but expected one of:\n * (Tensor input, int sections)\n * "
                            "(Tensor input, tuple of ints indices)\n")
        n = input._array.ndim
        if n < at_least:
            raise RuntimeError(f"torch.{name} requires a tensor with at least {at_least} dimension, but got a tensor "
                               f"with {n} dimensions!")
        dim = dim_of(n)
        if isinstance(splits, int):
            length = input._array.shape[dim]
            if splits == 0 or length % splits:
                raise RuntimeError(f"torch.{name} attempted to split along dimension {dim}, but the size of the "
                                   f"dimension {length} is not divisible by the split_size {splits}!")
        return tensor_split(input, splits, dim)

    call.__name__ = call.__qualname__ = name
    call.__doc__ = (f"`tensor_split` along a fixed dimension.\n\n    >>> import flambeau as torch\n"
                    f"    >>> len(torch.{name}(torch.ones(2, 2, 2), 2))\n    2\n    ")
    return call


hsplit = _split_along("hsplit", 1, lambda n: 0 if n == 1 else 1)
vsplit = _split_along("vsplit", 2, lambda n: 0)
dsplit = _split_along("dsplit", 3, lambda n: 2)


# ----- concatenation -------------------------------------------------------------------------


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
            result = general(*args, **kwargs)
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


# ----- combinations ------------------------------------------------------------------------


def _as_list(tensors: tuple[Any, ...]) -> list[Tensor]:
    if len(tensors) == 1 and isinstance(tensors[0], (tuple, list)):
        return list(tensors[0])
    return list(tensors)


def _separate(tensors: tuple[Any, ...]) -> list[Tensor]:
    """Tensors that are passed one by one.

    Raises:
        TypeError: one of them is not a tensor.
    """
    check_tensors(tensors)
    return list(tensors)


def block_diag(*tensors: Any) -> Tensor:
    """A block diagonal matrix.

    >>> import flambeau as torch
    >>> torch.block_diag(torch.tensor([[1]]), torch.tensor([[2, 3]]))
    tensor([[1, 0, 0],
            [0, 2, 3]])
    """
    inputs = _separate(tensors)
    if not inputs:
        return wrap(np.zeros((1, 0), dtypes.get_default_dtype().numpy))
    return apply(REGISTRY["_block_diag"], inputs)


def meshgrid(*tensors: Any, indexing: str | None = None) -> tuple[Tensor, ...]:
    """The coordinates of a grid: each vector, expanded to the shape of the grid.

    >>> import flambeau as torch
    >>> torch.meshgrid(torch.tensor([1, 2]), torch.tensor([3]), indexing="ij")
    (tensor([[1],
            [2]]), tensor([[3],
            [3]]))
    """
    inputs = _as_list(tensors)
    if not inputs:
        raise RuntimeError("meshgrid expects a non-empty TensorList")
    if indexing is not None and not isinstance(indexing, str):
        raise TypeError(f"meshgrid(): argument 'indexing' must be str, not {type_name(indexing)}")
    check_tensors(inputs)
    if indexing is None:
        import warnings

        warnings.warn("torch.meshgrid: in an upcoming release, it will be required to pass the indexing argument.",
                      UserWarning, stacklevel=user_stacklevel())
        indexing = "ij"
    dtype, device = inputs[0]._array.dtype, inputs[0]._device
    for x in inputs:
        if x._array.dtype != dtype:
            raise RuntimeError("meshgrid expects all tensors to have the same dtype")
    for x in inputs:
        if x._device is not device and x.device != inputs[0].device:
            raise RuntimeError("meshgrid expects all tensors to have the same device")
    if indexing not in ("ij", "xy"):
        raise RuntimeError(f'torch.meshgrid: indexing must be one of "xy" or "ij", but received: {indexing}')
    swapped = indexing == "xy" and len(inputs) >= 2
    if swapped:
        inputs[0], inputs[1] = inputs[1], inputs[0]
    for x in inputs:
        if x._array.ndim > 1:
            raise RuntimeError(f"torch.meshgrid: Expected 0D or 1D tensor in the tensor list but got: "
                               f"{stream_text(x)}")
    shape = tuple(max(1, x._array.size) if not x._array.ndim else x._array.size for x in inputs)
    n = len(shape)
    ones = (1,) * n
    grids = [expand(view(x, *ones[:i], -1 if x._array.size else 0, *ones[i + 1:]), *shape)
             for i, x in enumerate(inputs)]
    if swapped:
        grids[0], grids[1] = grids[1], grids[0]
    return tuple(grids)


def cartesian_prod(*tensors: Any) -> Tensor:
    """The Cartesian product of vectors, one row for each combination.

    >>> import flambeau as torch
    >>> torch.cartesian_prod(torch.tensor([1, 2]), torch.tensor([3]))
    tensor([[1, 3],
            [2, 3]])
    """
    inputs = _separate(tensors)
    for x in inputs:
        if x._array.ndim != 1:
            raise RuntimeError(f"Expect a 1D vector, but got shape {list(x._array.shape)}")
    if len(inputs) == 1:
        return inputs[0]
    grids = meshgrid(*inputs, indexing="ij")
    flat = [reshape(x, -1) for x in grids]
    return public_function(REGISTRY["stack"])(flat, dim=1)


def combinations(input: Tensor, r: int = 2, with_replacement: bool = False) -> Tensor:
    """The combinations of `r` elements of a vector, one row each.

    >>> import flambeau as torch
    >>> torch.combinations(torch.tensor([1, 2, 3]))
    tensor([[1, 2],
            [1, 3],
            [2, 3]])
    """
    if input._array.ndim != 1:
        raise RuntimeError(f"Expect a 1D vector, but got shape {list(input._array.shape)}")
    if r < 0:
        raise RuntimeError(f"Expect a non-negative number, but got {r}")
    if r == 0:
        return wrap(np.zeros(0, input._array.dtype))
    n = input._array.size
    mask = np.zeros((n,) * r, np.bool_)
    chosen = list((_with_replacement if with_replacement else _combinations)(range(n), r))
    if chosen:
        mask[tuple(np.array(chosen).T)] = True
    grids = meshgrid(*[input] * r, indexing="ij")
    select = public_function(REGISTRY["masked_select"])
    return public_function(REGISTRY["stack"])([select(x, wrap(mask)) for x in grids], dim=1)


# ----- repetition --------------------------------------------------------------------------

_repeat = positional_parameters(REGISTRY["repeat"])


def tile(input: Tensor, *dims: Any, **named: Any) -> Tensor:
    """The input repeated `dims[i]` times along each dimension; missing counts are 1.

    >>> import flambeau as torch
    >>> torch.tile(torch.tensor([1, 2]), (2,))
    tensor([1, 2, 1, 2])
    """
    if named:
        if dims or named.keys() != {"dims"} or not isinstance(named["dims"], (tuple, list)):
            raise refused("tile", (input, *dims), kwargs=named) or TypeError("tile() takes 'dims' only")
        dims = (named["dims"],)
    if len(dims) == 1 and isinstance(dims[0], (tuple, list)):
        dims = tuple(dims[0])
    counts = as_ints(dims, "tile", "dims")
    counts = (1,) * (input._array.ndim - len(counts)) + counts
    return _repeat(input, counts)


def tile_to(input: Tensor, dims: Any = NOT_GIVEN) -> Tensor:
    """`torch.tile`: the method takes counts one by one, too.

    >>> import flambeau as torch
    >>> torch.tile(torch.tensor([1, 2]), (2,))
    tensor([1, 2, 1, 2])
    """
    try:
        counts = as_ints(dims, "tile", "dims")
    except TypeError as error:
        raise refused("tile", (input, dims)) or error from None
    counts = (1,) * (input._array.ndim - len(counts)) + counts
    return _repeat(input, counts)


@repeated
def _repeated_slices(input: Tensor, repeats: int, dim: int | None) -> Tensor:
    return _repeat_interleave(input, repeats, dim)


def repeat_interleave(input: Tensor, repeats: Any = None, dim: int | None = None, *,
                      output_size: int | None = None) -> Tensor:
    """Each element, or each slice along `dim`, repeated consecutively.

    >>> import flambeau as torch
    >>> torch.repeat_interleave(torch.tensor([1, 2]), 2)
    tensor([1, 1, 2, 2])
    """
    if repeats.__class__ is int and output_size is None:
        return _repeated_slices(input, repeats, dim)
    return _repeat_interleave(input, repeats, dim, output_size)


def _repeat_interleave(input: Tensor, repeats: Any, dim: int | None, output_size: int | None = None) -> Tensor:
    from ..dispatch.array_kernels import arrays

    if special[0] and isinstance(repeats if repeats is not None else input, Tensor) and (
            not isinstance((repeats if repeats is not None else input)._array, np.ndarray)):
        return _repeat_batched(input, repeats, dim, output_size)
    if special[0] and isinstance(input if repeats is None else repeats, Tensor):
        notify_read(input if repeats is None else repeats, "repeat_interleave")
    if is_meta(input if repeats is None else repeats):
        if output_size is None:
            raise RuntimeError("cannot repeat_interleave a meta tensor without output_size")
        if repeats is None:
            return input.new_empty(output_size)
        return _repeated_on_meta(input, dim, output_size)
    if repeats is None:
        indices = wrap(arrays.repeat_interleave_indices(host_elements(input)))
        if output_size is not None and output_size != indices._array.size:
            raise RuntimeError("allocated size does not match required size")
        return indices if input._device is CPU else handlers.transfer(indices, input._device)
    if isinstance(repeats, Tensor):
        repeats = wrap(host_elements(repeats))
    if dim is None:
        input = reshape(input, -1)
        dim = 0
    axis = wrap_dim(dim, input._array.ndim)
    if not isinstance(repeats, Tensor):
        if isinstance(repeats, (tuple, list)):
            repeats = wrap(np.asarray(repeats, np.int64))
        else:
            if repeats < 0:
                raise RuntimeError("Repeats must be non-negative")
            shape = input._array.shape
            if output_size is not None and output_size != shape[axis] * repeats:
                raise RuntimeError(f"repeat_interleave: Invalid output_size, expected {shape[axis] * repeats} but got "
                                   f"{output_size}")
            expanded_input = expand(unsqueeze(input, axis + 1), (*shape[:axis + 1], repeats, *shape[axis + 1:]))
            copied = apply(REGISTRY["clone"], [expanded_input], {"memory_format": contiguous_format})
            return view(copied, (*shape[:axis], shape[axis] * repeats, *shape[axis + 1:]))
    counts = repeats._array.reshape(-1) if not repeats._array.ndim or repeats._array.size == 1 else repeats._array
    length = input._array.shape[axis] if input._array.ndim else 1
    if counts.size == 1 and counts.ndim <= 1:
        counts = np.repeat(counts, length)
    elif counts.ndim != 1:
        raise RuntimeError("repeats must be 0-dim or 1-dim tensor")
    elif counts.size != length:
        raise RuntimeError("repeats must have the same size as input along dim, but got repeats.size(0) = "
                           f"{counts.size} and input.size({axis}) = {length}")
    indices = arrays.repeat_interleave_indices(counts)
    if output_size is not None and output_size != indices.size:
        raise RuntimeError("allocated size does not match required size")
    return public_function(REGISTRY["index_select"])(input, axis, wrap(indices))


def _repeated_on_meta(input: Tensor, dim: int | None, output_size: int) -> Tensor:
    """`repeat_interleave` by counts that are not known."""
    if dim is None:
        input, dim = reshape(input, -1), 0
    return public_function(REGISTRY["index_select"])(input, dim, wrap(meta_array((output_size,), np.dtype(np.int64))))


def _repeat_batched(input: Tensor, repeats: Any, dim: int | None, output_size: int | None) -> Tensor:
    """`repeat_interleave` with batched counts, whose sums must be equal."""
    from ..dispatch.batched_tensor import vmap_levels
    from ..dispatch.batching_rules import fallback_loop, warn_fallback

    warn_fallback("repeat_interleave.Tensor")
    levels = vmap_levels([input, repeats])
    if repeats is None:
        return fallback_loop(repeat_interleave, [input], levels)
    return fallback_loop(lambda x, counts: repeat_interleave(x, counts, dim, output_size=output_size),
                         [input, repeats], levels)


# ----- diagonals ---------------------------------------------------------------------------


def diag(input: Tensor, diagonal: int = 0, *, out: Any = None) -> Tensor:
    """A matrix with the given diagonal, for a vector; the diagonal, for a matrix.

    >>> import flambeau as torch
    >>> torch.diag(torch.tensor([1, 2]))
    tensor([[1, 0],
            [0, 2]])
    """
    n = input._array.ndim
    if n == 2:
        return public_function(REGISTRY["diagonal_copy"])(input, offset=diagonal, out=out)
    if n != 1:
        raise RuntimeError(f"{'diag(): ' if out is None else ''}Supports 1D or 2D tensors. Got {n}D")
    embed = REGISTRY["diag_embed"]
    result = public_function(embed)(input, offset=diagonal)
    if out is None:
        return result
    if not isinstance(out, Tensor):  # the function `diag_embed` takes none
        raise TypeError(f"diag(): argument 'out' must be Tensor, not {type_name(out)}")
    if not dtypes.can_cast(input.dtype, out.dtype):
        raise RuntimeError(f"diag: result type {input.dtype.scalar_name} can't be cast to the desired out= type "
                           f"{out.dtype.scalar_name}")
    check_out(embed, (input,), (out,))
    check_overlap(out._array, disjoint=False)
    return write_out(embed, result, out)


def diagflat(input: Tensor, offset: int = 0) -> Tensor:
    """A matrix whose diagonal consists of all elements of the input.

    >>> import flambeau as torch
    >>> torch.diagflat(torch.tensor([[1, 2]]))
    tensor([[1, 0],
            [0, 2]])
    """
    return diag(view(input.contiguous(), -1), offset)


def _triangle(upper: bool) -> Any:
    name = "triu_indices" if upper else "tril_indices"

    def call(row: int, col: int, offset: int = 0, *, dtype: Any = dtypes.int64, device: Any = None, layout: Any = None,
             pin_memory: bool = False, requires_grad: bool = False) -> Tensor:
        row, col, offset = index(row), index(col), index(offset)
        from ..creation.from_data import refuse_pinned, refuse_sparse, wrap_new

        if layout is not None:
            refuse_sparse(layout, name)
        if row < 0 or col < 0:
            which, n = ("row", row) if row < 0 else ("col", col)
            raise RuntimeError(f"{which} must be non-negative, got{n}")
        dtype = dtypes.int64 if dtype is None else dtypes.of_argument(dtype, name)
        if dtype not in (dtypes.int32, dtypes.int64):
            raise NotImplementedError(f"\"{name}\" not implemented for '{dtype.scalar_name}'")
        if pin_memory:
            refuse_pinned(device, layout)
        found = np.triu_indices(row, offset, col) if upper else np.tril_indices(row, offset, col)
        return wrap_new(np.stack(found).astype(dtype.numpy), device, requires_grad)

    call.__name__ = call.__qualname__ = name
    call.__code__ = call.__code__.replace(co_name=name, co_qualname=name)  # contexts of devices look for it
    call.__doc__ = f"""The row and column indices of the {'upper' if upper else 'lower'} triangle of a matrix, (2, n).

    Args:
        row, col: the shape of the matrix.
        offset: the diagonal that bounds the triangle: 0 the main one, positive above it.

    Raises:
        RuntimeError: `row` or `col` is negative.

    >>> import flambeau as torch
    >>> torch.{name}(2, 2)
    {"tensor([[0, 0, 1]," if upper else "tensor([[0, 1, 1],"}
            {"[0, 1, 1]])" if upper else "[0, 0, 1]])"}
    """
    return call


tril_indices, triu_indices = _triangle(False), _triangle(True)

METHODS: dict[str, Any] = {
    "split": split, "chunk": chunk, "unsafe_chunk": unsafe_chunk, "tensor_split": tensor_split, "hsplit": hsplit,
    "vsplit": vsplit, "dsplit": dsplit, "tile": tile, "repeat_interleave": repeat_interleave, "diag": diag,
    "diagflat": diagflat,
}
