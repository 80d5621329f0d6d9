"""The kernels that fusion makes of common patterns."""

from __future__ import annotations

import numpy as np
import pytest

from flambeau import codegen
from flambeau.ir.graph.target import Target
from flambeau.ir.graph.value import Graph
from flambeau.ir.schedule.program import Program
from tests.ir.evaluator import evaluate
from tests.ir.legality import check

pytestmark = pytest.mark.skipif(not codegen.available(), reason="llvmlite is not installed, or FLAMBEAU_JIT is 0")


def kernels_of(graph, arrays, results):
    """The names of the kernels that compute these values, which are compared with NumPy's."""
    program = Program(graph, [Target(value) for value in results], [])
    check(program.schedule)
    found = program.run([arrays[number] for number in program.inputs])
    values = evaluate(graph, arrays)
    for value, array in zip(results, found, strict=True):
        np.testing.assert_allclose(array, values[value], rtol=1e-9, atol=1e-9)
    return [kernel.name for kernel in program.schedule.kernels]


def graph_of(*shapes):
    graph, random = Graph(), np.random.default_rng(0)
    arrays = [random.standard_normal(shape) for shape in shapes]
    return graph, arrays, [graph.input(i, a.shape, a.dtype) for i, a in enumerate(arrays)]


def test_elementwise_product_and_column_sum_are_fused():
    graph, arrays, (x, y, bias) = graph_of((300, 128), (300, 128), (128,))
    z = graph.apply("mul", x, y)
    total = graph.reduce("sum", z, (0,))
    moved = graph.apply("add", bias, total)  # a consumer of the sums
    assert kernels_of(graph, arrays, [z, total, moved]) == ["rows", "elementwise"]


def test_consumers_of_a_column_sum_are_a_second_kernel():
    graph, arrays, (x,) = graph_of((300, 128))
    mean = graph.apply("mul", graph.reduce("sum", x, (0,)), graph.constant(1 / 300, x.dtype))
    centred = graph.apply("sub", x, graph.expand(mean, x.shape))
    squares = graph.reduce("sum", graph.apply("mul", centred, centred), (0,))
    kernels_of(graph, arrays, [centred, squares])


@pytest.mark.parametrize("turned", [False, True])
def test_attention_heads_are_multiplied_without_copies(turned):
    """(batch, length, heads, width) seen as (batch, heads, length, width), as a batch of matrices."""
    graph, arrays, (q, k) = graph_of((3, 10, 4, 8), (3, 10, 4, 8))
    q, k = (graph.permute(x, (0, 2, 1, 3)) for x in (q, k))
    k = graph.permute(k, (0, 1, 3, 2))
    scores = graph.matmul(graph.reshape(q, (12, 10, 8)), graph.reshape(k, (12, 8, 10)))
    assert scores.shape == (12, 10, 10)
    if turned:  # a product of what is dense and what is not
        scores = graph.matmul(scores, graph.reshape(q, (12, 10, 8)))
    results = [graph.copy(graph.reshape(scores, (3, 4, *scores.shape[1:])))]
    assert set(kernels_of(graph, arrays, results)) == {"matmul"}


def masked(graph, x, w, mask):
    """A product where a mask is above 0, and its sums over the rows: the gradient of a layer with relu."""
    product = graph.matmul(x, w)
    zero = graph.constant(0.0, x.dtype)
    kept = graph.select(graph.apply("gt", mask, zero), product, graph.expand(zero, product.shape))
    return product, kept, graph.reduce("sum", kept, (0,))


def test_mask_before_a_sum_is_fused_into_the_matmul_epilogue():
    graph, arrays, (x, w, mask) = graph_of((256, 30), (30, 128), (256, 128))
    _, kept, total = masked(graph, x, w, mask)
    later = graph.matmul(kept, graph.permute(w, (1, 0)))
    assert kernels_of(graph, arrays, [total, later]) == ["matmul", "reduction", "matmul"]
    assert kernels_of(graph, arrays, [kept, total]) == ["matmul", "reduction"]


def test_mask_is_not_fused_into_the_matmul_if_only_the_sum_reads_it():
    graph, arrays, (x, w, mask) = graph_of((256, 30), (30, 128), (256, 128))
    product, kept, total = masked(graph, x, w, mask)
    assert kernels_of(graph, arrays, [total]) == ["matmul", "reduction"]
    both = graph.reduce("sum", graph.apply("mul", product, product), (0,))  # two arrays are summed
    kernels_of(graph, arrays, [kept, total, both])


def test_consumers_of_a_row_sum_are_fused():
    graph, arrays, (x, w) = graph_of((256, 30), (30, 128))
    product = graph.matmul(x, w)
    total = graph.reduce("sum", product, (1,))
    share = graph.apply("div", product, graph.expand(graph.unsqueeze(total, 1), product.shape))
    assert kernels_of(graph, arrays, [share, total]) == ["matmul", "rows"]
