"""A rewrite for GPUs: convolutions become launches of a library (cuDNN), in the layout and dtype of their operands.

The IR's convolutions have row-major results, and read widened float16 and bfloat16. The library has channels last where
an operand has, as PyTorch does, and reads narrow arrays. What is added to the result is a kernel of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from ...backends.cuda_devices.convolutions import Convolution, ConvolutionLibrary
from ...dtypes import NARROW
from ..graph.extern_kernels import ExternKernel
from ..graph.rewrites import rebuild
from ..graph.value import Graph, Unsupported, Value, reachable
from ..graph.view_algebra import dense_strides
from .narrow_products import narrow_source

#: kind -> the operands of a convolution of the IR, and what it computes
_OPERANDS = {"forward": ("image", "weight", "result"), "image": ("result", "weight", "image"),
             "weight": ("result", "image", "weight")}
#: operations that are not elementwise
_NO_MAPS = frozenset(("input", "constant", "view", "copy", "reduce", "matmul", "convolve", "assemble", "extern",
                      "getitem"))
#: the name of the extern kernel
LIBRARY = "library_convolution"


class ConvolutionLaunch(NamedTuple):
    """A launch of the library's.

    Attributes:
        convolution: it.
        image, weight, result: the operands; the workspace, if any, follows them.
        scratch: bytes of the workspace.
    """

    convolution: Convolution
    image: int
    weight: int
    result: int
    scratch: int
    unaligned: None = None


def library_convolutions(graph: Graph, outputs: Sequence[Value], library: ConvolutionLibrary | None
                         ) -> dict[Value, Value]:
    """The replacement of each output and of every value that it is computed from.

    Args:
        graph: the graph.
        outputs: the values that are computed.
        library: the library; None: there is none, and nothing is replaced.

    >>> import numpy as np
    >>> g = Graph()
    >>> image, weight = (g.input(i, (1, 2, 4, 4), np.dtype(np.float32)) for i in range(2))
    >>> result = g.convolve("forward", image, weight, (1, 1, 1, 1), (1, 1), (0, 0), (1, 1), 1)
    >>> library_convolutions(g, [result], ConvolutionLibrary(lambda convolution: 0))[result].op
    'getitem'
    """
    replacements: dict[Value, Value] = {}
    for value in reachable(outputs):
        args = [replacements[x] for x in value.args]
        found = None
        if library is not None and value.op == "convolve":
            found = _convolved(graph, value, replacements, library)
        if found is not None:
            replacements[value] = found
        elif library is not None and _is_broadcast_cast(value):
            replacements[value] = graph.cast(_shown(graph, value.base.args[0], value), value.dtype)
        elif all(new is old for new, old in zip(args, value.args, strict=True)):
            replacements[value] = value
        else:
            replacements[value] = _rebuilt(graph, value, args)
    return replacements


def _rebuilt(graph: Graph, value: Value, args: list[Value]) -> Value:
    """A value over what replaces its arguments; elementwise operations keep channels last."""
    if value.op == "cast" and value.args[0].op == "convolve" and args[0].base.op == "cast" and (
            args[0].base.args[0].dtype == value.dtype):
        return _shown(graph, args[0].base.args[0], args[0])  # the library has rounded already
    if value.op == "view" and args[0].op == "view":
        return view_of_view(graph, value, args[0])
    if value.op == "copy":
        return graph.copy(args[0])
    if value.op not in _NO_MAPS and value.ndim > 3 and any(
            x.shape == value.shape and x.op == "view" and _is_last(x) and not _is_dense(x) for x in args):
        order = (0, *range(2, value.ndim), 1)
        moved = [_permuted(graph, x, order) for x in args]
        shape = [value.shape[axis] for axis in order]
        return _from_last(graph, graph.make(value.op, tuple(moved), value.attrs, tuple(shape), value.dtype))
    return rebuild(graph, value, args)


def _permuted(graph: Graph, x: Value, order: Sequence[int]) -> Value:
    """An argument with other dimensions' order; widened elements of a view are widened in that order."""
    if not x.ndim:
        return x
    if x.op == "cast" and x.args[0].op == "view":
        return graph.cast(graph.permute(x.args[0], order), x.dtype)
    return graph.permute(x, order)


def _is_broadcast_cast(value: Value) -> bool:
    """Whether a value repeats elements of an input that was widened, such as a bias: each use widens them."""
    base = value.base
    return value.op == "view" and 0 in value.strides and base.op == "cast" and base.args[0].op == "input" and (
        base.args[0].dtype in NARROW)


def _shown(graph: Graph, base: Value, like: Value) -> Value:
    """The elements of another base that a value shows of its own."""
    return graph.view(base, like.shape, like.strides, like.offset) if like.op == "view" else base


def view_of_view(graph: Graph, value: Value, replaced: Value) -> Value:
    """A view of a row-major array, over a view that has the array's elements.

    >>> import numpy as np
    >>> g = Graph()
    >>> x, y = (g.input(i, shape, np.dtype(np.float32)) for i, shape in enumerate([(2, 3, 4), (2, 4, 3)]))
    >>> part = g.view(x, (2, 2), (12, 2), 1)
    >>> view_of_view(g, part, g.permute(y, (0, 2, 1))).attrs
    ((12, 6), 3)
    """
    base, places, offset = dense_strides(replaced.shape), [], value.offset
    for step in base:
        places.append(offset // step)
        offset -= places[-1] * step
    first, strides = list(places), []
    for n, step in zip(value.shape, value.strides, strict=True):
        axis = next((i for i, each in enumerate(base) if replaced.shape[i] > 1 and step and not step % each and (
            places[i] + step // each * (n - 1) < replaced.shape[i])), None)
        if n == 1 or not step:
            strides.append(0)
        elif axis is None:
            return rebuild(graph, value, [replaced])
        else:
            places[axis] += step // base[axis] * (n - 1)
            strides.append(step // base[axis] * replaced.strides[axis])
    start = replaced.offset + sum(at * step for at, step in zip(first, replaced.strides, strict=True))
    return graph.view(replaced, value.shape, strides, start)


def _convolved(graph: Graph, value: Value, replacements: dict[Value, Value], library: ConvolutionLibrary
               ) -> Value | None:
    """What replaces a convolution; None where the library does not compute it."""
    kind, stride, padding, dilation, groups = value.attrs
    if not value.size or not all(x.size for x in value.args) or _has_own_kernel(kind, value):
        return None
    narrow = [narrow_source(graph, x, replacements) for x in value.args]
    operands = [x for x in narrow if x is not None]
    if len(operands) != 2 or operands[0].dtype != operands[1].dtype:
        operands = [replacements[x] for x in value.args]
    shapes = dict(zip(_OPERANDS[kind], (*(x.shape for x in operands), value.shape), strict=True))
    prefers_last = value.ndim > 3 and any(_is_last(x) and not _is_dense(x) for x in operands)
    for last in (True, False) if prefers_last else (False,):
        convolution = Convolution(kind, operands[0].dtype, shapes["image"], shapes["weight"], shapes["result"], last,
                                  stride, padding, dilation, groups, library.tf32, library.deterministic,
                                  library.benchmark)
        workspace = library.workspace(convolution)
        if workspace is not None:
            return _extern(graph, value, operands, convolution, workspace)
    return None


def _has_own_kernel(kind: str, value: Value) -> bool:
    """Whether a convolution sums few numbers for each result: of one channel for each group."""
    image, weight = value.args[0], value.args[1]
    return kind == "forward" and weight.shape[1] == 1 and image.shape[1] == weight.shape[0] > 1


def _extern(graph: Graph, value: Value, operands: Sequence[Value], convolution: Convolution, workspace: int) -> Value:
    laid_out = [_laid_out(graph, x, convolution.last) for x in operands]
    kernel = ExternKernel(LIBRARY, _on_devices_only, {"convolution": convolution, "workspace": workspace})
    shape = value.shape
    stored = (shape[0], *shape[2:], shape[1]) if convolution.last else shape
    [result] = graph.extern(kernel, laid_out, [(stored, convolution.dtype)])
    result = graph.cast(result, value.dtype)
    return _from_last(graph, result) if convolution.last else result


def _on_devices_only(outputs: Any, inputs: Any, **params: Any) -> Any:
    raise Unsupported("a library's convolutions are for GPUs only")


def _channels_last_strides(shape: Sequence[int]) -> tuple[int, ...]:
    strides = dense_strides((shape[0], *shape[2:], shape[1]))
    return (strides[0], strides[-1], *strides[1:-1])


def _has_strides(x: Value, strides: Sequence[int]) -> bool:
    return all(n == 1 or a == b for n, a, b in zip(x.shape, x.strides, strides, strict=True))


def _is_dense(x: Value) -> bool:
    return _has_strides(x, dense_strides(x.shape))


def _is_last(x: Value) -> bool:
    return _has_strides(x, _channels_last_strides(x.shape))


def _laid_out(graph: Graph, x: Value, last: bool) -> Value:
    """An operand in the convolution's layout; a copy where it has another."""
    if _is_last(x) if last else _is_dense(x):
        return x
    if not last:
        return graph.copy(x)
    return _from_last(graph, graph.copy(graph.permute(x, (0, *range(2, x.ndim), 1))))


def _from_last(graph: Graph, x: Value) -> Value:
    return graph.permute(x, (0, x.ndim - 1, *range(1, x.ndim - 1)))


def launches(kernel: ExternKernel) -> list[ConvolutionLaunch]:
    """The launch of an extern kernel that is a convolution: its operands are the result, and what it is computed of."""
    convolution = kernel.params["convolution"]
    first, second, result = _OPERANDS[convolution.kind]
    places = {result: 0, first: 1, second: 2}
    return [ConvolutionLaunch(convolution, places["image"], places["weight"], places["result"],
                              kernel.params["workspace"])]


__all__ = ["LIBRARY", "ConvolutionLaunch", "launches", "library_convolutions", "view_of_view"]
