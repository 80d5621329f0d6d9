"""Matrix multiplication: cache-blocked, multi-threaded GEMM with optional packing and fused epilogues.

C is partitioned into regions (macro-tiles, the tasks of the threads), regions into panels a few vectors wide, and
panels into register blocks, which stay in registers while K runs. A is read in place, unless its columns are
contiguous and far apart (`plan.packs_left`). B is read in place, unless its rows are not contiguous or are so far
apart that packing pays. K is accumulated in parts of a few hundred, which keeps the rounding error of the sum small;
the order of the additions depends on the shapes alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from math import prod
from typing import TYPE_CHECKING

import numpy as np

from ...runtime import compilation, target
from ...runtime.launch import Launch, Preparation, Spec
from ...runtime.symbolic_integers import typical
from .. import iteration_space
from ..scalar.scalar_ir import Node, topological_order, variable
from . import plan as matmul_plan
from .plan import PackingPlan, Problem, RightLayout

if TYPE_CHECKING:
    from .microkernel import RegisterBlocking

Address = int | compilation.Symbol

F32, F64 = np.dtype(np.float32), np.dtype(np.float64)
#: split-K: K of a slice, and the largest number of slices
SPLIT_K_DEPTH, SPLIT_K_LIMIT = 1024, 16
#: smallest K and N for which a vector-matrix product is computed as a reduction over the matrix's rows
REDUCTION_MINIMUM = 64
#: dot products along K: the smallest K per row of A for which they are faster than packing (transposing) B, and the
#: largest number of rows of A; the same where a vector has 256 bits and B, which is packed once otherwise, not constant
DOT_DEPTH_PER_ROW, DOT_ROWS, DOT_ROWS_256 = 17, 6, 16


def launches(outputs: Sequence[Spec], a: Spec, b: Spec, extras: Sequence[Spec] = (),
             epilogue: Sequence[Node] | None = None, constant: tuple[bool, bool] = (False, False),
             repeated: bool = False) -> list[Launch]:
    """Return the launches that compute matrix products: C = epilogue(A B, extras...).

    Args:
        outputs: (..., M, N), of any strides, one for each expression of the epilogue.
        a: (..., M, K), float32 or float64.
        b: (..., K, N), of the same dtype; the batch dimensions broadcast.
        extras: arrays that broadcast to the outputs' shape; an extra may be an output, read elementwise before it is
            written.
        epilogue: expressions of variable 0, the product, and variables 1, 2, ..., the extras. None: the product itself.
        constant: whether a and b are constant: the one that is packed is packed by a launch of its own.
        repeated: whether many products with a constant matrix follow its packing, so that it pays for few rows, too.

    Returns:
        Launches whose pointers are outputs, a, b, extras, in the order in which `launch.run` takes the arrays.

    Raises:
        TypeError: if the dtypes do not match.
        ValueError: if the shapes do not match.

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
    return list(_launches(tuple(outputs), a, b, tuple(extras), None if epilogue is None else tuple(epilogue),
                          constant, repeated))


@lru_cache(4096)
def _launches(outputs: tuple[Spec, ...], a: Spec, b: Spec, extras: tuple[Spec, ...],
              epilogue: tuple[Node, ...] | None, constant: tuple[bool, bool], repeated: bool) -> tuple[Launch, ...]:
    _check(outputs, a, b, extras, epilogue)
    if not outputs[0].size:
        return ()
    problem = _problem(outputs, a, b, extras)
    nodes = (variable(0, a.dtype),) if epilogue is None else epilogue
    # pointers are those of outputs, a and b
    is_constant = constant[problem.pointers[-1] - len(outputs)]
    return tuple(_select_kernel(problem, nodes, outputs, extras, epilogue is None, is_constant,
                                repeated and is_constant))


def _check(outputs: tuple[Spec, ...], a: Spec, b: Spec, extras: tuple[Spec, ...],
           epilogue: tuple[Node, ...] | None) -> None:
    if a.dtype != b.dtype or a.dtype not in (F32, F64):
        raise TypeError(f"matmul takes two float32 or two float64 matrices, got {a.dtype} and {b.dtype}")
    if len(a.shape) < 2 or len(b.shape) < 2 or a.shape[-1] != b.shape[-2]:
        raise ValueError(f"matmul cannot multiply matrices of shapes {a.shape} and {b.shape}")
    shape = (*iteration_space.broadcast([a.shape[:-2], b.shape[:-2]]), a.shape[-2], b.shape[-1])
    if epilogue is None:
        if len(outputs) != 1 or extras:
            raise ValueError("matmul without an epilogue takes one output and no extras")
        dtypes = [a.dtype]
    else:
        dtypes = [node.dtype for node in epilogue]
        for node in _variables(epilogue):
            if not (node.dtype == a.dtype if node.const == 0 else node.const <= len(extras)
                                           and extras[node.const - 1].dtype == node.dtype):
                raise TypeError(f"{node} of {node.dtype} is neither the product of {a.dtype} nor one of the extras")
    if len(outputs) != len(dtypes):
        raise ValueError(f"matmul got {len(outputs)} outputs for {len(dtypes)} expressions")
    for each, dtype in zip(outputs, dtypes, strict=True):
        if each.dtype != dtype:
            raise TypeError(f"expected an output of {dtype}, got {each.dtype}")
        if each.shape != shape:
            raise ValueError(f"expected an output of shape {shape}, got {each.shape}")
        if each.size and any(extent > 1 and not stride
                             for extent, stride in zip(shape, each.strides, strict=True)):
            raise ValueError("elements of an output must not share memory")
    for each in extras:
        if iteration_space.broadcast([each.shape, shape]) != shape:
            raise ValueError(f"an extra of shape {each.shape} does not broadcast to the product's shape {shape}")


@lru_cache(1024)
def _variables(nodes: tuple[Node, ...]) -> tuple[Node, ...]:
    return tuple(node for node in topological_order(nodes) if node.op == "input")


def _problem(outputs: tuple[Spec, ...], a: Spec, b: Spec, extras: tuple[Spec, ...]) -> Problem:
    """Return the product with as few batch dimensions as possible, transposed if C's columns are contiguous."""
    shape = outputs[0].shape
    lead, (m, n), k = shape[:-2], shape[-2:], a.shape[-1]
    full = [iteration_space.broadcast_strides(each.shape, each.strides, shape) for each in (*outputs, *extras)]
    left, right = (iteration_space.broadcast_strides(each.shape[:-2], each.strides[:-2], lead) for each in (a, b))
    # strides of dimensions of extent 1 carry no information
    a_row, a_k = a.strides[-2] if m > 1 else 0, a.strides[-1] if k > 1 else 0
    b_k, b_column = b.strides[-2] if k > 1 else 0, b.strides[-1] if n > 1 else 0
    dims = iteration_space.collapse(lead, [*(each[:-2] for each in full), left, right], range(len(lead)))
    count = len(outputs)
    pointers = (*range(count), *range(count + 2, count + 2 + len(extras)), count, count + 1)
    problem = Problem(a.dtype, m, n, k, tuple(dims.extents), tuple(map(tuple, dims.strides)), (a_row, a_k),
                       (b_k, b_column), tuple((each[-2], each[-1]) for each in full), pointers)
    problem = _fold_batches(problem)
    size = outputs[0].dtype.itemsize
    row, column = problem.others[0]
    if problem.n == 1 < problem.m or (column != size and row == size and problem.n > 1):
        problem = _fold_batches(_transpose(problem))
    return problem


def _transpose(problem: Problem) -> Problem:
    """Return the transposed problem Cᵀ = Bᵀ Aᵀ."""
    *rest, a, b = problem.strides
    *others, left, right = problem.pointers
    return problem._replace(m=problem.n, n=problem.m, a=problem.b[::-1], b=problem.a[::-1], strides=(*rest, b, a),
                            others=tuple(each[::-1] for each in problem.others), pointers=(*others, right, left))


def _fold_batches(problem: Problem) -> Problem:
    """Merge batch dimensions that share B into M where their rows follow each other in memory."""
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


def _select_kernel(problem: Problem, nodes: tuple[Node, ...], outputs: tuple[Spec, ...], extras: tuple[Spec, ...],
                   is_plain: bool, constant: bool, repeated: bool) -> list[Launch]:
    from . import epilogue as matmul_epilogue
    from .microkernel import register_blocking

    shape, dtype = register_blocking(problem.dtype), problem.dtype
    dtypes = tuple([each.dtype for each in (*outputs, *extras)])
    steps = "".join("c" if column == each.itemsize or problem.n == 1 else "b" if column == 0 else "s"
                    for (_, column), each in zip(problem.others, dtypes, strict=True))
    batch, vectors = prod(problem.batch), -(-problem.n // shape.lanes)
    dot = _is_dot(problem, constant) and not (repeated and problem.m > 1)
    slices = 1
    if not dot and batch == 1 and matmul_plan.needs_split_k(problem, vectors):
        slices = min(SPLIT_K_LIMIT, problem.k // SPLIT_K_DEPTH)
    if is_plain and _is_reduction(problem):
        return _reduction_launches(problem)
    is_stored = is_plain and steps == "c" and (shape.masked or not problem.n % shape.lanes)
    if is_stored and not dot and slices == 1:
        return _blocked_launches(problem, 0, problem.k, constant, repeated)
    library = matmul_epilogue.library(dtype, nodes, dtypes, steps, shape.lanes)
    epilogue = library.symbol("epilogue")
    if dot:
        return [_dot_launch(problem, epilogue)]
    if slices > 1 or problem.k > matmul_plan.SLAB:  # an epilogue takes complete sums only
        return _split_k_launches(problem, epilogue, slices, shape.lanes)
    return _blocked_launches(problem, epilogue, problem.k, constant, repeated)


def _is_dot(problem: Problem, constant: bool) -> bool:
    """Whether to compute dot products with K along the vectors: A has few rows, and A and B are contiguous along K."""
    size = problem.dtype.itemsize
    most = DOT_ROWS if constant or target.host().vector_bits != 256 else DOT_ROWS_256
    return (problem.a[1] == size and problem.b[0] == size and problem.n > 1 and problem.m <= most
            and problem.k >= max(64, DOT_DEPTH_PER_ROW * problem.m))


def _is_reduction(problem: Problem) -> bool:
    """Whether a vector-matrix product reads B row by row, as a sum reduction over its rows: the rows are long."""
    size = problem.dtype.itemsize
    return (problem.m == 1 and not problem.batch and problem.n >= REDUCTION_MINIMUM and problem.k >= REDUCTION_MINIMUM
            and problem.b[1] == size and abs(problem.b[0]) >= problem.n * size)


def _reduction_launches(problem: Problem) -> list[Launch]:
    """Return the launches of a vector-matrix product as a sum reduction over the matrix's rows."""
    from ..rows import reduction

    (_, column), = problem.others
    vector = Spec((problem.k, 1), (problem.a[1], 0), problem.dtype)
    matrix = Spec((problem.k, problem.n), problem.b, problem.dtype)
    _, left, right = problem.pointers
    return reduction.launches([("sum", variable(0, problem.dtype) * variable(1, problem.dtype))],
                              [Spec((problem.n,), (column,), problem.dtype)],
                              [vector, matrix] if left < right else [matrix, vector], 0)


def _blocked_launches(problem: Problem, epilogue: Address, part: int, constant: bool = False,
                      repeated: bool = False) -> list[Launch]:
    """Return the launches of a blocked product over K slices of length `part`.

    They are preceded by packing B if it is shared by many regions, or `constant`. `epilogue` is the address of the
    epilogue function; 0 stores the product itself.
    """
    from .microkernel import register_blocking

    shape, dtype = register_blocking(problem.dtype), problem.dtype
    code = _blocked_library(dtype, shape)
    slab = matmul_plan.k_slab(problem, part, epilogue != 0)
    tile = matmul_plan.Tile(shape.lanes, shape.vectors, shape.rows[0])
    vectors, layout = -(-problem.n // shape.lanes), matmul_plan.right_layout(problem, repeated)
    max_rows = matmul_plan.region_rows(problem, slab, shape.rows[0], epilogue != 0)
    packs_left = matmul_plan.packs_left(problem)
    if packs_left:
        partition = matmul_plan.choose_partition_packing_left(problem, vectors, max_rows, tile)
    else:
        partition = matmul_plan.choose_partition(problem, vectors, max_rows, tile,
                                                 layout is not RightLayout.IN_PLACE and not constant,
                                                 constant and layout is not RightLayout.IN_PLACE and not problem.batch)
    launches, scratch = [], 0
    prepared: tuple[int, ...] = ()
    if matmul_plan.packs_right(problem, partition, layout, constant):
        pointer = max(problem.pointers) + 1
        scratch = vectors * shape.lanes * problem.k * dtype.itemsize
        packing = _packing_launch(problem, partition, layout, pointer)
        launches.append(packing._replace(preparation=Preparation(problem.pointers[-1], 0, scratch)))
        prepared = (matmul_plan.Plan.POINTERS + len(problem.pointers) - 1,)
        problem = problem._replace(b=(0, problem.k * dtype.itemsize), pointers=(*problem.pointers[:-1], pointer))
        layout = RightLayout.PACKED
    left = (-1, 0, 0)
    if packs_left:
        pointer = problem.pointers[-1] if scratch else max(problem.pointers) + 1
        each = partition.rows * min(slab, problem.k) * dtype.itemsize
        left = pointer, scratch, each
        scratch += partition.chunks * each
    words = matmul_plan.plan_words(problem, partition, part, epilogue, shape.lanes, slab, layout, left)
    launches.append(Launch(code, code.symbol("body"), partition.chunks, words, prepared=prepared))
    return [each._replace(scratch=scratch) for each in launches]


@lru_cache
def _blocked_library(dtype: np.dtype, shape: RegisterBlocking) -> compilation.Library:
    from . import code as matmul_code

    return compilation.load(f"matmul {dtype} {shape}", ("body", "combine"), lambda: matmul_code.generate(dtype),
                         passes=False)


def _packing_launch(problem: Problem, partition: matmul_plan.Partition, layout: RightLayout, pointer: int) -> Launch:
    """Return the launch that packs all of B into scratch memory, whose pointer has index `pointer`."""
    from . import pack_right
    from .microkernel import register_blocking

    shape = register_blocking(problem.dtype)
    code = compilation.load(f"matmul packing {problem.dtype} {shape}", ("body",),
                         lambda: pack_right.generate(problem.dtype), passes=False)
    words = matmul_plan.packing_plan(problem, partition, layout, shape.lanes, shape.vectors, pointer)
    per_chunk = words[PackingPlan.VECTORS]
    chunks = -(-words[PackingPlan.ALL_VECTORS] // per_chunk) if per_chunk else partition.column_regions
    return Launch(code, code.symbol("body"), chunks, words)


def _dot_launch(problem: Problem, epilogue: Address) -> Launch:
    """Return the launch that computes dot products with K along the vectors."""
    from . import dot as matmul_dot
    from .microkernel import register_blocking

    lanes = register_blocking(problem.dtype).lanes
    code = compilation.load(f"matmul dot {problem.dtype} {lanes}", ("body",),
                         lambda: matmul_dot.generate(problem.dtype), passes=False)
    tile = matmul_plan.Tile(lanes, 4, 1)
    partition = matmul_plan.choose_partition(problem, -(-problem.n // lanes), problem.m, tile, False)
    words = matmul_plan.plan_words(problem, partition, problem.k, epilogue, lanes, problem.k, RightLayout.COLUMNS)
    return Launch(code, code.symbol("body"), partition.chunks, words)


def _split_k_launches(problem: Problem, epilogue: Address, slices: int, lanes: int) -> list[Launch]:
    """Return the split-K launches: slices of K into scratch memory, then their sums through the epilogue."""
    size, pointer, part = problem.dtype.itemsize, max(problem.pointers) + 1, -(-problem.k // slices)
    slices = -(-problem.k // part)
    pitch = -(-problem.n // lanes) * lanes * size
    # byte offset of each batch's slices: batches are dense, the fastest dimension first
    begin = [slices * problem.m * pitch * prod(problem.batch[:i]) for i in range(len(problem.batch) + 1)]
    *rest, a, b = problem.strides
    partial = problem._replace(
        others=((pitch, size),), pointers=(pointer, *problem.pointers[-2:]), batch=(slices, *problem.batch),
        strides=((problem.m * pitch, *begin[:-1]), (part * problem.a[1], *a), (part * problem.b[0], *b)))
    first, = _blocked_launches(partial, 0, part)
    begins = tuple(begin[:-1])
    total = problem._replace(k=slices, a=(pitch, problem.m * pitch), strides=(*rest, begins, begins),
                             pointers=(*problem.pointers[:-2], pointer, pointer))
    rows = max(8, -(-typical(problem.m) // 8 // 8) * 8)
    partition = matmul_plan.of_regions(problem, rows, 1, 1)
    words = matmul_plan.plan_words(total, partition, 1, epilogue, lanes, 1, RightLayout.IN_PLACE)
    second = Launch(first.library, first.library.symbol("combine"), partition.chunks, words)
    return [each._replace(scratch=begin[-1]) for each in (first, second)]
