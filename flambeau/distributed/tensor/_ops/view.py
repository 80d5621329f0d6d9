"""Views: which dimension of the result a dimension of the input becomes."""

from __future__ import annotations

from math import prod
from typing import Any

from ...._tensor.dispatch.apply import apply
from ....shapes import wrap_dim, wrap_dims
from ...placement_types import Partial, Shard
from .._dtensor_spec import DTensorSpec
from .._sharding import is_shard
from .strategy import OpCall, Strategy, rule


def moved(call: OpCall, where: dict[int, int]) -> list[Strategy]:
    """Strategies of an operator that moves dimensions: position in the input -> position in the result.

    What is pending stays so, since all results are elements of the input.
    """
    result = [call.strategy({0: Shard(d)}, Shard(to)) for d, to in where.items()]
    partial = {p for p in call.inputs[0].placements if p.is_partial()}
    strided = {p for p in call.inputs[0].placements if is_shard(p) and type(p) is not Shard and p.dim in where}
    result += [call.strategy({0: p}, type(p)(where[p.dim], split_factor=p.split_factor)) for p in strided]
    return result + [call.strategy({0: p}, p) for p in partial | {Partial("sum")}]


def groups_of(source: tuple[int, ...], target: tuple[int, ...]) -> list[tuple[list[int], list[int]]]:
    """The dimensions of two shapes of as many elements, in the smallest groups of equal products.

    >>> from flambeau.distributed.tensor._ops.view import groups_of
    >>> groups_of((2, 3, 4), (6, 4)), groups_of((6, 4), (2, 3, 4))
    ([([0, 1], [0]), ([2], [1])], [([0], [0, 1]), ([1], [2])])
    """
    result: list[tuple[list[int], list[int]]] = []
    i = j = 0
    while i < len(source) or j < len(target):
        left, right = [], []
        a = b = 1
        if i < len(source) and j < len(target) and source[i] == target[j]:
            left, right = [i], [j]
            i, j = i + 1, j + 1
        else:
            while True:
                if a == b and (left or right) and a > 1:
                    break
                if i < len(source) and (a <= b or j >= len(target)):
                    a *= source[i]
                    left.append(i)
                    i += 1
                elif j < len(target):
                    b *= target[j]
                    right.append(j)
                    j += 1
                else:
                    break
        result.append((left, right))
    return result


def _local_size(call: OpCall, inputs: list[Any], outputs: list[DTensorSpec]) -> dict[str, Any]:
    return {**call.params, "size": outputs[0].local_shape()}


def _view_run(call: OpCall, inputs: list[Any], params: dict[str, Any], specs: list[Any],
              outputs: list[DTensorSpec]) -> Any:
    """The view of a part, which was copied if it was gathered, and may have other strides then."""
    local = inputs[0]
    if tuple(specs[0].placements) != tuple(call.inputs[0].placements):
        local = local.contiguous()
    return apply(call.op, [local], params)


@rule("view", "_reshape_alias", "_unsafe_view", "view_copy", localize=_local_size, run=_view_run)
def view(call: OpCall, size: int) -> list[Strategy]:
    """Another shape: a group of dimensions may be cut along its first one, into parts of equal sizes."""
    source, target = call.shape(0), call.outputs[0][0]
    where, parts = {}, prod(call.inputs[0].mesh.shape)
    if prod(source) == 0:
        return moved(call, {})
    for left, right in groups_of(source, target):
        left = [d for d in left if source[d] != 1]
        right = [d for d in right if target[d] != 1]
        if len(left) == 1 and len(right) == 1:
            where[left[0]] = right[0]
        elif left and right:
            first, to = left[0], right[0]
            cut = size if not _cuts(call, first) else max(size, _cuts(call, first))
            if source[first] % cut == 0 and target[to] % cut == 0 and parts:
                where[first] = to
    return moved(call, where)


def _cuts(call: OpCall, dim: int) -> int:
    """The number of parts that a dimension of the input is in."""
    spec = call.inputs[0]
    return prod(spec.mesh.size(i) for i, p in enumerate(spec.placements) if is_shard(p) and p.dim == dim)


@rule("view_as_real", "view_as_complex", "_conj_view", "_neg_view", "_view_dtype")
def element_views(call: OpCall, size: int) -> list[Strategy]:
    """Other elements in the same places."""
    last = len(call.shape(0)) - 1
    return moved(call, {d: d for d in range(last + 1) if call.op.name != "view" or d != last})


def _expanded(call: OpCall, inputs: list[Any], outputs: list[DTensorSpec]) -> dict[str, Any]:
    return {**call.params, "size": outputs[0].local_shape()}


@rule("expand", "broadcast_to", "expand_copy", localize=_expanded)
def expand(call: OpCall, size: int) -> list[Strategy]:
    """Dimensions of size 1 repeated; those may be cut in the result alone."""
    source, target = call.shape(0), call.outputs[0][0]
    front = len(target) - len(source)
    return moved(call, {d: d + front for d, n in enumerate(source) if n == target[d + front] and (
        n != 1 or target[d + front] == 1)})


@rule("t", "_t_", "t_copy")
def t(call: OpCall, size: int) -> list[Strategy]:
    """The transpose of a matrix."""
    return moved(call, {0: 1, 1: 0} if len(call.shape(0)) == 2 else {0: 0})


@rule("transpose", "_transpose_", "transpose_copy")
def transpose(call: OpCall, size: int) -> list[Strategy]:
    """Two dimensions exchanged."""
    ndim = len(call.shape(0))
    a, b = (wrap_dim(call.params[name], max(1, ndim)) for name in ("dim0", "dim1"))
    return moved(call, {d: b if d == a else a if d == b else d for d in range(ndim)})


@rule("permute", "permute_copy")
def permute(call: OpCall, size: int) -> list[Strategy]:
    """Dimensions in another order."""
    dims = [wrap_dim(d, max(1, len(call.shape(0)))) for d in call.params["dims"]]
    return moved(call, {d: i for i, d in enumerate(dims)})


def _squeezed_dims(call: OpCall) -> tuple[int, ...]:
    shape, dim = call.shape(0), call.params.get("dim")
    dims = range(len(shape)) if dim is None else wrap_dims((dim,) if isinstance(dim, int) else tuple(dim),
                                                           max(1, len(shape)))
    return tuple(d for d in dims if d < len(shape) and shape[d] == 1)


def _squeeze_run(call: OpCall, inputs: list[Any], params: dict[str, Any], specs: list[Any],
                 outputs: list[DTensorSpec]) -> Any:
    """Only dimensions that are 1 in the whole tensor vanish: a part's may be 1, too."""
    return inputs[0].view(outputs[0].local_shape()) if inputs[0].is_contiguous() else inputs[0].squeeze(
        _squeezed_dims(call))


@rule("squeeze", "_squeeze_all_copy", "_squeeze_dim_copy", "_squeeze_dims_copy", run=_squeeze_run)
def squeeze(call: OpCall, size: int) -> list[Strategy]:
    """Without dimensions of size 1."""
    gone = _squeezed_dims(call)
    return moved(call, {d: d - sum(g < d for g in gone) for d in range(len(call.shape(0))) if d not in gone})


@rule("unsqueeze", "_unsqueeze_", "unsqueeze_copy")
def unsqueeze(call: OpCall, size: int) -> list[Strategy]:
    """With another dimension of size 1."""
    ndim = len(call.shape(0))
    at = wrap_dim(call.params["dim"], ndim + 1)
    return moved(call, {d: d + (d >= at) for d in range(ndim)})


@rule("select", "select_copy")
def select(call: OpCall, size: int) -> list[Strategy]:
    """One index of a dimension, which is needed whole."""
    ndim = len(call.shape(0))
    dim = wrap_dim(call.params["dim"], ndim)
    return moved(call, {d: d - (d > dim) for d in range(ndim) if d != dim})


@rule("unbind", "unbind_copy")
def unbind(call: OpCall, size: int) -> list[Strategy]:
    """All indices of a dimension."""
    return select(call, size)


def _all_of(call: OpCall) -> bool:
    """Whether a slice is of all elements."""
    return call.outputs[0][0] == call.shape(0) and (call.params.get("step") or 1) == 1


@rule("slice", "slice_copy", "split", "split_with_sizes", "split_copy", "split_with_sizes_copy",
      "unsafe_split", "unsafe_split_with_sizes", "narrow_copy")
def slices(call: OpCall, size: int) -> list[Strategy]:
    """Slices of a dimension, which is needed whole unless all of it is taken."""
    ndim = len(call.shape(0))
    dim = wrap_dim(call.params.get("dim", 0), max(1, ndim))
    return moved(call, {d: d for d in range(ndim) if d != dim or (len(call.outputs) == 1 and _all_of(call))})


@rule("diagonal", "diagonal_copy")
def diagonal(call: OpCall, size: int) -> list[Strategy]:
    """A diagonal of two dimensions, which becomes the last."""
    ndim = len(call.shape(0))
    gone = {wrap_dim(call.params.get(name, default), ndim) for name, default in (("dim1", 0), ("dim2", 1))}
    return moved(call, {d: d - sum(g < d for g in gone) for d in range(ndim) if d not in gone})


@rule("unfold", "unfold_copy")
def unfold(call: OpCall, size: int) -> list[Strategy]:
    """Windows of a dimension."""
    ndim = len(call.shape(0))
    dim = wrap_dim(call.params["dimension"], max(1, ndim))
    return moved(call, {d: d for d in range(ndim) if d != dim})


__all__ = ["groups_of", "moved", "view"]
