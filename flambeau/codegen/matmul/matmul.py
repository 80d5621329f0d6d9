"""Products of matrices, blocked, packed where they must be, done by several threads, and finished by any expression.

The result is cut into regions, and these into panels of some vectors' width, whose blocks stay in registers while K
runs. The left operand is read as it lies; the right one too, unless its rows are no vectors or lie so far apart that
a copy pays. K is summed up in parts of some hundred, so that the sum's error stays small, in an order that depends on
nothing but the shapes.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from math import prod
from typing import TYPE_CHECKING

import numpy as np

from ...runtime import compilation
from ...runtime.launch import Launch, Spec
from .. import iteration_space
from ..scalar.scalar_ir import Node, ordered, variable
from . import plan as matmul_plan
from .plan import Packing, Problem, Way

if TYPE_CHECKING:
    from .microkernel import Tiling

Address = int | compilation.Symbol

F32, F64 = np.dtype(np.float32), np.dtype(np.float64)
#: K of a slice, where K is cut into slices, and how many there are, at most
SLICE, SLICES = 1024, 16
#: K and columns from which a vector times a matrix is sums of columns
COLUMNS = 64
#: K for a row of A, from which sums along K's vectors are quicker than turning columns of B into rows, and how many
#: rows there are then, at most
DOT, FEW = 17, 6


def launches(outputs: Sequence[Spec], a: Spec, b: Spec, extras: Sequence[Spec] = (),
             epilogue: Sequence[Node] | None = None) -> list[Launch]:
    """The launches that compute matrix products: C = epilogue(A B, extras...).

    Args:
        outputs: (..., M, N), of any strides and as many as the epilogue has expressions.
        a: (..., M, K), float32 or float64.
        b: (..., K, N), of the same dtype; the batches broadcast.
        extras: arrays that broadcast to the outputs' shape; they may be outputs, too, element by element.
        epilogue: expressions of variable 0, the product, and 1, 2, ..., the extras. None: the product itself.

    Returns:
        What `launch.run` takes with the arrays outputs, a, b, extras.

    Raises:
        TypeError: dtypes that do not fit.
        ValueError: shapes that do not fit.

    >>> import numpy as np
    >>> from flambeau import codegen
    >>> from flambeau.runtime import launch; from flambeau.codegen.matmul import matmul
    >>> a, b, c = np.eye(2, dtype="f4"), np.float32([[1, 2], [3, 4]]), np.empty((2, 2), "f4")
    >>> if codegen.available():
    ...     launch.run(matmul.launches([Spec.of(c)], Spec.of(a), Spec.of(b)), [c, a, b])
    ... else:
    ...     c = a @ b
    >>> c
    array([[1., 2.],
           [3., 4.]], dtype=float32)
    """
    return list(_launches(tuple(outputs), a, b, tuple(extras), None if epilogue is None else tuple(epilogue)))


@lru_cache(4096)
def _launches(outputs: tuple[Spec, ...], a: Spec, b: Spec, extras: tuple[Spec, ...],
              epilogue: tuple[Node, ...] | None) -> tuple[Launch, ...]:
    _check(outputs, a, b, extras, epilogue)
    if not outputs[0].size:
        return ()
    problem = _problem(outputs, a, b, extras)
    nodes = (variable(0, a.dtype),) if epilogue is None else epilogue
    return tuple(_planned(problem, nodes, outputs, extras, epilogue is None))


def _check(outputs: tuple[Spec, ...], a: Spec, b: Spec, extras: tuple[Spec, ...],
           epilogue: tuple[Node, ...] | None) -> None:
    if a.dtype != b.dtype or a.dtype not in (F32, F64):
        raise TypeError(f"products are of two float32 or two float64 matrices, not of {a.dtype} and {b.dtype}")
    if len(a.shape) < 2 or len(b.shape) < 2 or a.shape[-1] != b.shape[-2]:
        raise ValueError(f"a product of matrices of the shapes {a.shape} and {b.shape}")
    shape = (*iteration_space.broadcast([a.shape[:-2], b.shape[:-2]]), a.shape[-2], b.shape[-1])
    if epilogue is None:
        if len(outputs) != 1 or extras:
            raise ValueError("without an epilogue a product has one output and no extras")
        dtypes = [a.dtype]
    else:
        dtypes = [node.dtype for node in epilogue]
        for node in _variables(epilogue):
            if not (node.dtype == a.dtype if node.const == 0 else node.const <= len(extras)
                                           and extras[node.const - 1].dtype == node.dtype):
                raise TypeError(f"{node} of {node.dtype} is neither the product of {a.dtype} nor among the extras")
    if len(outputs) != len(dtypes):
        raise ValueError(f"{len(outputs)} outputs for {len(dtypes)} expressions")
    for each, dtype in zip(outputs, dtypes, strict=True):
        if each.dtype != dtype:
            raise TypeError(f"an output of {each.dtype} for a result of {dtype}")
        if each.shape != shape:
            raise ValueError(f"an output of shape {each.shape} for a product of shape {shape}")
        if each.size and any(extent > 1 and not stride
                             for extent, stride in zip(shape, each.strides, strict=True)):
            raise ValueError("an output whose elements share memory")
    for each in extras:
        if iteration_space.broadcast([each.shape, shape]) != shape:
            raise ValueError(f"an extra of shape {each.shape} for a product of shape {shape}")


@lru_cache(1024)
def _variables(nodes: tuple[Node, ...]) -> tuple[Node, ...]:
    return tuple(node for node in ordered(nodes) if node.op == "input")


def _problem(outputs: tuple[Spec, ...], a: Spec, b: Spec, extras: tuple[Spec, ...]) -> Problem:
    """The product with as few batch dimensions as can be, turned if its columns are what lies together."""
    shape = outputs[0].shape
    lead, (m, n), k = shape[:-2], shape[-2:], a.shape[-1]
    full = [iteration_space.stretched(each.shape, each.strides, shape) for each in (*outputs, *extras)]
    left, right = (iteration_space.stretched(each.shape[:-2], each.strides[:-2], lead) for each in (a, b))
    # strides along what has one element only mean nothing
    a_row, a_k = a.strides[-2] if m > 1 else 0, a.strides[-1] if k > 1 else 0
    b_k, b_column = b.strides[-2] if k > 1 else 0, b.strides[-1] if n > 1 else 0
    dims = iteration_space.collapse(lead, [*(each[:-2] for each in full), left, right], range(len(lead)))
    count = len(outputs)
    pointers = (*range(count), *range(count + 2, count + 2 + len(extras)), count, count + 1)
    problem = Problem(a.dtype, m, n, k, tuple(dims.extents), tuple(map(tuple, dims.strides)), (a_row, a_k),
                       (b_k, b_column), tuple((each[-2], each[-1]) for each in full), pointers)
    problem = _folded(problem)
    size = outputs[0].dtype.itemsize
    row, column = problem.others[0]
    if problem.n == 1 < problem.m or (column != size and row == size and problem.n > 1):
        problem = _folded(_transposed(problem))
    return problem


def _transposed(problem: Problem) -> Problem:
    """Cᵀ = Bᵀ Aᵀ."""
    *rest, a, b = problem.strides
    *others, left, right = problem.pointers
    return problem._replace(m=problem.n, n=problem.m, a=problem.b[::-1], b=problem.a[::-1], strides=(*rest, b, a),
                            others=tuple(each[::-1] for each in problem.others), pointers=(*others, right, left))


def _folded(problem: Problem) -> Problem:
    """Batches that share B are more rows, if they follow the rows in memory."""
    while problem.batch:
        extent, m = problem.batch[0], problem.m
        *rest, a, b = [each[0] for each in problem.strides]
        rows = [problem.a[0], *(row for row, _ in problem.others)]
        follow = all(step == m * row or m == 1 for step, row in zip([a, *rest], rows, strict=True))
        if b or not follow:
            break
        if m == 1:
            rows = [a, *rest]
        problem = problem._replace(m=m * extent, batch=problem.batch[1:], a=(rows[0], problem.a[1]),
                                   strides=tuple(each[1:] for each in problem.strides),
                                   others=tuple((row, column) for row, (_, column) in zip(rows[1:], problem.others,
                                                                                         strict=True)))
    return problem


def _planned(problem: Problem, nodes: tuple[Node, ...], outputs: tuple[Spec, ...], extras: tuple[Spec, ...],
             plain: bool) -> list[Launch]:
    from . import epilogue as matmul_epilogue
    from .microkernel import tiling

    shape, dtype = tiling(problem.dtype), problem.dtype
    dtypes = tuple([each.dtype for each in (*outputs, *extras)])
    steps = "".join("c" if column == each.itemsize or problem.n == 1 else "b" if column == 0 else "s"
                    for (_, column), each in zip(problem.others, dtypes, strict=True))
    dot, batch, vectors = _along(problem), prod(problem.batch), -(-problem.n // shape.lanes)
    slices = 1
    if not dot and batch == 1 and matmul_plan.long(problem, vectors):
        slices = min(SLICES, problem.k // SLICE)
    if plain and _of_columns(problem):
        return _summed(problem)
    stored = plain and steps == "c" and (shape.masked or not problem.n % shape.lanes)
    if stored and not dot and slices == 1:
        return _blocked(problem, 0, problem.k)
    library = matmul_epilogue.library(dtype, nodes, dtypes, steps, shape.lanes)
    finish = library.symbol("finish")
    if dot:
        return [_dotted(problem, finish)]
    if slices > 1 or problem.k > matmul_plan.SLAB:  # an epilogue sees whole sums only
        return _combined(problem, finish, slices, shape.lanes)
    return _blocked(problem, finish, problem.k)


def _along(problem: Problem) -> bool:
    """Whether K runs along the vectors: few rows, and both operands' elements along K together."""
    size = problem.dtype.itemsize
    return (problem.a[1] == size and problem.b[0] == size and problem.n > 1 and problem.m <= FEW
            and problem.k >= max(64, DOT * problem.m))


def _of_columns(problem: Problem) -> bool:
    """Whether a vector is multiplied by a matrix whose rows are long: sums of columns read it row by row."""
    size = problem.dtype.itemsize
    return (problem.m == 1 and not problem.batch and problem.n >= COLUMNS and problem.k >= COLUMNS
            and problem.b[1] == size and abs(problem.b[0]) >= problem.n * size)


def _summed(problem: Problem) -> list[Launch]:
    """The product of a vector and a matrix as sums of the matrix's columns."""
    from ..rows import reduction

    (_, column), = problem.others
    vector = Spec((problem.k, 1), (problem.a[1], 0), problem.dtype)
    matrix = Spec((problem.k, problem.n), problem.b, problem.dtype)
    _, left, right = problem.pointers
    return reduction.launches([("sum", variable(0, problem.dtype) * variable(1, problem.dtype))],
                              [Spec((problem.n,), (column,), problem.dtype)],
                              [vector, matrix] if left < right else [matrix, vector], 0)


def _blocked(problem: Problem, finish: Address, part: int) -> list[Launch]:
    """The product in slices of `part` of K, stored as it is if `finish` is 0, after what is packed as a whole."""
    from .microkernel import tiling

    shape, dtype = tiling(problem.dtype), problem.dtype
    code = _code(dtype, shape)
    slab = matmul_plan.slab(problem, part, finish != 0)
    tile = matmul_plan.Tile(shape.lanes, shape.vectors, shape.rows[0])
    vectors, how = -(-problem.n // shape.lanes), matmul_plan.way(problem)
    most = matmul_plan.rows(problem, slab, shape.rows[0], finish != 0)
    turned = matmul_plan.packs_left(problem)
    if turned:
        shared = matmul_plan.regions_left(problem, vectors, most, tile)
    else:
        shared = matmul_plan.regions(problem, vectors, most, tile, how is not Way.IN_PLACE)
    launches, scratch = [], 0
    if matmul_plan.packs(problem, shared, how):
        place = max(problem.pointers) + 1
        launches.append(_packed(problem, shared, how, place))
        scratch = vectors * shape.lanes * problem.k * dtype.itemsize
        problem = problem._replace(b=(0, problem.k * dtype.itemsize), pointers=(*problem.pointers[:-1], place))
        how = Way.PACKED
    left = (-1, 0, 0)
    if turned:
        place = problem.pointers[-1] if scratch else max(problem.pointers) + 1
        each = shared.rows * min(slab, problem.k) * dtype.itemsize
        left = place, scratch, each
        scratch += shared.chunks * each
    words = matmul_plan.words(problem, shared, part, finish, shape.lanes, slab, how, left)
    launches.append(Launch(code, code.symbol("body"), shared.chunks, words))
    return [each._replace(scratch=scratch) for each in launches]


@lru_cache
def _code(dtype: np.dtype, shape: Tiling) -> compilation.Library:
    from . import code as matmul_code

    return compilation.load(f"matmul {dtype} {shape}", ("body", "combine"), lambda: matmul_code.generate(dtype),
                         passes=False)


def _packed(problem: Problem, shared: matmul_plan.Regions, how: Way, place: int) -> Launch:
    """The launch that packs B into scratch memory, whose pointer is number `place`."""
    from . import pack_right
    from .microkernel import tiling

    shape = tiling(problem.dtype)
    code = compilation.load(f"matmul packing {problem.dtype} {shape}", ("body",),
                         lambda: pack_right.generate(problem.dtype), passes=False)
    words = matmul_plan.packing(problem, shared, how, shape.lanes, shape.vectors, place)
    chunks = -(-words[Packing.ALL_VECTORS] // words[Packing.VECTORS]) if words[Packing.VECTORS] else shared.across
    return Launch(code, code.symbol("body"), chunks, words)


def _dotted(problem: Problem, finish: Address) -> Launch:
    """The product as sums along K's vectors."""
    from . import dot as matmul_dot
    from .microkernel import tiling

    lanes = tiling(problem.dtype).lanes
    code = compilation.load(f"matmul dot {problem.dtype} {lanes}", ("body",),
                         lambda: matmul_dot.generate(problem.dtype), passes=False)
    shared = matmul_plan.regions(problem, -(-problem.n // lanes), problem.m, matmul_plan.Tile(lanes, 4, 1), False)
    words = matmul_plan.words(problem, shared, problem.k, finish, lanes, problem.k, Way.COLUMNS)
    return Launch(code, code.symbol("body"), shared.chunks, words)


def _combined(problem: Problem, finish: Address, slices: int, lanes: int) -> list[Launch]:
    """Sums of slices of K into scratch memory; then these added up, through the epilogue."""
    size, place, part = problem.dtype.itemsize, max(problem.pointers) + 1, -(-problem.k // slices)
    slices = -(-problem.k // part)
    pitch = -(-problem.n // lanes) * lanes * size
    # where the slices of each batch begin: batches dense, the fastest first
    begin = [slices * problem.m * pitch * prod(problem.batch[:i]) for i in range(len(problem.batch) + 1)]
    *rest, a, b = problem.strides
    partial = problem._replace(
        others=((pitch, size),), pointers=(place, *problem.pointers[-2:]), batch=(slices, *problem.batch),
        strides=((problem.m * pitch, *begin[:-1]), (part * problem.a[1], *a), (part * problem.b[0], *b)))
    first, = _blocked(partial, 0, part)
    total = problem._replace(k=slices, a=(pitch, problem.m * pitch), pointers=(*problem.pointers[:-2], place, place),
                             strides=(*rest, tuple(begin[:-1]), tuple(begin[:-1])))
    rows = max(8, -(-problem.m // 8 // 8) * 8)
    shared = matmul_plan.Regions(rows, 1, 1, prod(problem.batch) * -(-problem.m // rows))
    words = matmul_plan.words(total, shared, 1, finish, lanes, 1, Way.IN_PLACE)
    second = Launch(first.library, first.library.symbol("combine"), shared.chunks, words)
    return [each._replace(scratch=begin[-1]) for each in (first, second)]
