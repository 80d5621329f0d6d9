from __future__ import annotations

import numpy as np
import pytest

from flambeau import dtypes
from flambeau.kernels.scatter import index_add, index_add_rows, index_put_accumulate, scatter_add, scatter_reduce

torch = pytest.importorskip("torch")

RNG = np.random.default_rng(0)
DTYPES = [np.bool_, np.uint8, np.int8, np.int32, np.int64, np.float16, np.float32, np.float64, np.complex64]


def numbers(shape: tuple[int, ...], dtype: type) -> np.ndarray:
    return RNG.integers(-5, 6, shape).astype(dtype)


@pytest.mark.parametrize("include_self", [True, False])
@pytest.mark.parametrize("reduction", ["sum", "prod", "mean", "amax", "amin"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_scatter_reduce(dtype: type, reduction: str, include_self: bool) -> None:
    if (dtype, reduction) in [(np.bool_, "mean"), (np.complex64, "amax"), (np.complex64, "amin")]:
        pytest.skip("not a reduction of this dtype")
    for shape, axis, index_shape in [((7,), 0, (20,)), ((), 0, ()), ((5, 6), 0, (9, 4)), ((5, 6), 1, (3, 11)),
                                     ((3, 4, 5), -2, (2, 9, 5)), ((4, 3), 0, (0, 2))]:
        target = numbers(shape, dtype)
        limit = shape[axis] if shape else 1
        index = np.asarray(RNG.integers(0, limit, index_shape))
        source = numbers(tuple(n + 1 for n in index_shape), dtype)
        expected = torch.tensor(target).scatter_reduce(axis, torch.tensor(index), torch.tensor(source), reduction,
                                                       include_self=include_self)
        with np.errstate(all="ignore"):
            result = scatter_reduce(target, axis, index, source, reduction, include_self)
        assert result is target
        np.testing.assert_allclose(result, expected, rtol=1e-3 if dtype == np.float16 else 1e-6)


def test_nan_wins_amax() -> None:
    target, source = np.zeros(2, np.float32), np.array([1, np.nan, 2], np.float32)
    with np.errstate(all="ignore"):
        scatter_reduce(target, 0, np.array([0, 1, 1]), source, "amax")
    np.testing.assert_array_equal(target, [1, np.nan])


def test_half_scatter_rounds_once() -> None:
    ones = dtypes.cast(np.ones(4096, np.float32), dtypes.BFLOAT16)
    for one in (ones, np.ones(4096, np.float16)):
        target = np.zeros(1, one.dtype)
        scatter_add(target, 0, np.zeros(4096, np.int64), one)
        assert dtypes.widen(target)[0] == 4096


def test_index_bounds() -> None:
    with pytest.raises(RuntimeError, match=r"^index 5 is out of bounds for dimension 0 with size 3$"):
        scatter_add(np.ones(3), 0, np.array([0, 5]), np.ones(2))
    with pytest.raises(IndexError, match=r"^index out of range in self$"):
        index_add(np.ones(3), 0, np.array([0, -1]), np.ones(2))
    with pytest.raises(RuntimeError, match=r"^index -1 is out of bounds for dimension 0 with size 3$"):
        index_add(np.ones((3, 2)), 0, np.array([0, -1]), np.ones((2, 2)))
    with pytest.raises(IndexError, match=r"^index 5 is out of bounds for dimension 0 with size 3$"):
        index_put_accumulate(np.ones(3), (np.array([0, 5]),), np.ones(2))


@pytest.mark.parametrize("dtype", DTYPES)
def test_index_add(dtype: type) -> None:
    for shape, axis, count in [((7,), 0, 20), ((5, 6), 0, 9), ((5, 6), 1, 9), ((3, 4, 5), -2, 9), ((30, 80), 0, 50),
                               ((3, 80), 0, 90), ((3, 80), 0, 3), ((5, 2), 0, 0), ((4, 0), 0, 3)]:
        target = numbers(shape, dtype)
        index = RNG.integers(0, shape[axis], count)
        source_shape = list(shape)
        source_shape[axis] = count
        source = numbers(tuple(source_shape), dtype)
        expected = torch.tensor(target).index_add(axis, torch.tensor(index), torch.tensor(source))
        transposed = np.array(target, order="F")
        np.testing.assert_array_equal(index_add(target, axis, index, source), expected)
        np.testing.assert_array_equal(index_add(transposed, axis, index, source), expected)


@pytest.mark.parametrize(("count", "width"), [(50, 8), (4, 100), (500, 100)])
def test_rows_accumulate_in_order(count: int, width: int) -> None:
    index = RNG.integers(0, count, 300)
    rows = RNG.standard_normal((300, width)).astype(np.float32)
    expected = np.zeros((count, width), np.float32)
    for i, row in zip(index, rows, strict=True):
        expected[i] += row
    np.testing.assert_array_equal(index_add_rows(np.zeros((count, width), np.float32), index, rows), expected)


@pytest.mark.parametrize("dtype", [np.bool_, np.int64, np.float16, np.float32, np.complex64])
def test_index_put_accumulate(dtype: type) -> None:
    rows, columns = RNG.integers(-5, 5, (8,)), RNG.integers(0, 6, (3, 1))
    target = numbers((5, 6, 4), dtype)
    cases = [(rows,), (columns, rows), (columns, rows, rows % 4), (slice(None), columns), (rows, slice(None), rows % 4),
             (target.real[..., 0] > 0,)]
    for case in cases:
        case = case if len(case) < 3 or isinstance(case[1], slice) else (columns % 5, rows, rows % 4)
        if len(case) == 2 and case[1] is rows:
            case = (columns % 5, rows)
        values = numbers(target[case].shape, dtype)
        tensors = tuple(torch.tensor(i) if isinstance(i, np.ndarray) else i for i in case)
        expected = torch.tensor(target)
        with_none = tuple(None if isinstance(i, slice) else i for i in tensors)
        expected = torch.ops.aten.index_put(expected, with_none, torch.tensor(values), True)
        np.testing.assert_array_equal(index_put_accumulate(target.copy(), case, values), expected)
        np.testing.assert_array_equal(index_put_accumulate(np.asfortranarray(target), case, values), expected)
    np.testing.assert_array_equal(index_put_accumulate(np.zeros(3), (np.array([0, 0, 2]),), np.array(2.0)), [4, 0, 2])
    np.testing.assert_array_equal(index_put_accumulate(np.zeros((2, 0)), (np.array([0, 0]),), np.array(2.0)),
                                  np.zeros((2, 0)))


def test_bfloat16() -> None:
    def store(values: object) -> np.ndarray:
        return dtypes.cast(np.asarray(values, np.float32), dtypes.BFLOAT16)

    index = np.array([0, 2, 0])
    for result in (index_add(store([1, 2, 3]), 0, index, store([1, 1, 1])),
                   scatter_add(store([1, 2, 3]), 0, index, store([1, 1, 1])),
                   index_put_accumulate(store([1, 2, 3]), (index,), store([1, 1, 1])),
                   index_put_accumulate(store([[1, 2, 3]]), (slice(None), index), store([[1, 1, 1]]))[0]):
        np.testing.assert_array_equal(dtypes.widen(result), [3, 2, 4])
