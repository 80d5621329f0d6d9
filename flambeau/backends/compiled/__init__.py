"""Compiled kernels for eager operators on large arrays.

`thresholds` has the sizes from which arrays are large. The other modules are imported with the first large array, and
need `codegen.available()`. Every function here returns None (or False) where NumPy has to compute the result.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from importlib import import_module
from itertools import count
from math import prod
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy import ndarray

from ... import dtypes
from ...errstate import run_quietly
from ...kernels import float8, threads
from ...kernels.random import accelerated
from ..bit_views import resolve
from ..elementless_array import ElementlessArray, elements_of
from .thresholds import (
    ATTENTION_OF_ROWS,
    CONCATENATIONS,
    COPIES,
    FILLS,
    FOURIER,
    GRID_SAMPLES,
    INDEXING,
    LARGE_SEEN,
    MOST_COUNTS,
    MOST_KEYS,
    NARROW_CASTS,
    NORMALS,
    PERMUTED_COPIES,
    RANDOM_WORDS,
    RECURRENT_STEPS,
    RESAMPLING,
    SMALL_KERNELS,
    SPARSE_PRODUCTS,
    SUMS,
    TRIANGULAR_SYSTEMS,
)

if TYPE_CHECKING:
    from .operators import Operators

_operators: list[Operators | None] = []


def enable_kernels() -> bool:
    """Prepare compiled kernels: whether there are any. The allocator serves large arrays from then on."""
    from ... import codegen
    from .thresholds import allow_small_kernels, lower_threshold

    LARGE_SEEN[0] = True
    if not codegen.available():
        return False
    from .allocator import allocator
    from .updates import has_fma

    allocator()
    if has_fma():
        lower_threshold("float32 updates", 0)
        lower_threshold("normal numbers", 0)  # of the same bits
    lower_threshold("grid samples", 0)
    allow_small_kernels()
    return True


#: small calls for which NumPy takes several times a launch's time, before kernels are loaded for their sake alone:
#: loading takes as long as some thousand of them
SMALL_CALLS_BEFORE_KERNELS = 10_000
#: () -> the number of the small call that asks
next_small_call = count(1).__next__


def compiled_operators(registry: dict[str, Any]) -> Operators | None:
    """The kernels of declared operators, created on first use; None where kernels cannot be compiled.

    Args:
        registry: the operators by name.
    """
    if not _operators:
        if enable_kernels():
            from .operators import Operators

            _operators.append(Operators(registry))
        else:
            _operators.append(None)
    return _operators[0]


@cache
def _module(name: str) -> Any:
    """Import a module of this package; None where kernels cannot be compiled."""
    return import_module(f"{__name__}.{name}") if enable_kernels() else None


#: [`families.reductions.reduce_arrays`], once it is imported
_reduce: list[Any] = []


def reduce_arrays(ops: tuple[str, ...], of: str, arrays: Sequence[Any], dim: Any, keepdim: bool) -> Any:
    """Reductions of large arrays (`families.reductions.reduce_arrays`)."""
    if not _reduce:
        module = _module("families.reductions")
        if module is None:
            return None
        _reduce.append(module.reduce_arrays)
    return _reduce[0](ops, of, arrays, dim, keepdim)


def reduce_launch(op: str, of: str, x: Any, dim: Any, keepdim: bool) -> Any:
    """The function that reduces arrays of a layout (`families.reductions.reduce_launch`)."""
    module = _module("families.reductions")
    return None if module is None else module.reduce_launch(op, of, x, dim, keepdim)


def sum_rows(x: np.ndarray) -> np.ndarray:
    """The sum of a matrix over dim 0; pairwise, where NumPy adds row by row and loses accuracy."""
    sums = reduce_arrays(("sum",), "", (x,), 0, False) if LARGE_SEEN[0] and x.size > SUMS[0] else None
    total: np.ndarray = np.add.reduce(x, 0) if sums is None else sums[0]
    return total


def scaled_negative_exp(x: np.ndarray, value: Any) -> np.ndarray | None:
    """-e^x · value of a large matrix (`families.softmax_gradient.scaled_negative_exp`)."""
    module = _module("families.softmax_gradient")
    result: np.ndarray | None = None if module is None else module.scaled_negative_exp(x, value)
    return result


def scan_arrays(name: str, arrays: Sequence[Any], dim: int, back: bool = False) -> Any:
    """Scans of large arrays (`families.scans.scan_arrays`)."""
    module = _module("families.scans")
    return None if module is None else module.scan_arrays(name, arrays, dim, back)


def select_top_k(rows: Any, count: int, largest: bool) -> Any:
    """The top k elements of rows of large arrays (`families.sorting.select_top_k`)."""
    module = _module("families.sorting")
    return None if module is None else module.select_top_k(rows, count, largest)


def order_tied_rows(rows: Any, count: int, descending: bool, sort: bool) -> Any:
    """The first elements of sorted rows with equal elements (`families.sorting.order_tied_rows`)."""
    module = _module("families.sorting")
    return None if module is None else module.order_tied_rows(rows, count, descending, sort)


def sort_rows(rows: Any, back: bool) -> Any:
    """Sorted rows of large arrays (`families.sorting.sort_rows`)."""
    module = _module("families.sorting")
    return None if module is None else module.sort_rows(rows, back)


def distances_of_pairs(x: Any) -> Any:
    """The distances of rows (`families.row_vectors.distances_of_pairs`)."""
    module = _module("families.row_vectors")
    return None if module is None else module.distances_of_pairs(x)


def attention_of_rows(query: Any, key: Any, value: Any, scale: float) -> Any:
    """Attention of one query in each head (`families.row_vectors.attention_of_rows`)."""
    if query.__class__ is not np.ndarray or not ATTENTION_OF_ROWS[0] < key.size <= MOST_KEYS:
        return None
    module = _module("families.row_vectors")
    return None if module is None else module.attention_of_rows(query, key, value, scale)


def attention_of_rows_launch(query: Any, key: Any, value: Any, scale: float) -> Any:
    """The function that computes `attention_of_rows` of arrays of a layout."""
    module = _module("families.row_vectors") if ATTENTION_OF_ROWS[0] < key.size <= MOST_KEYS else None
    return None if module is None else module.attention_of_rows_launch(query, key, value, scale)


def histogram(x: Any, length: int) -> Any:
    """How often each number below `length` occurs in a large array (`codegen.indexing.searching.histogram`)."""
    if x.size <= COPIES[0] or not 0 < length <= MOST_COUNTS or x.dtype != np.int64 or not x.flags.c_contiguous or (
            not enable_kernels()):
        return None
    from ...codegen.indexing import searching

    return searching.histogram(x, length)


def modes_launch(x: Any) -> Any:
    """The function that finds the most frequent elements of rows (`families.sorting.modes_launch`)."""
    module = _module("families.sorting")
    return None if module is None else module.modes_launch(x)


def modes_of_rows(x: Any) -> Any:
    """The most frequent elements of rows and their indices (`families.sorting.modes_of_rows`)."""
    module = _module("families.sorting")
    return None if module is None else module.modes_of_rows(x)


def sort_launch(rows: Any, descending: bool) -> Any:
    """The function that sorts short rows of small arrays (`families.sorting.sort_launch`)."""
    module = _module("families.sorting")
    return None if module is None else module.sort_launch(rows, descending)


def tied_rows_launch(rows: Any, count: int, descending: bool, sort: bool) -> Any:
    """The function that orders rows with equal elements (`families.sorting.tied_rows_launch`)."""
    module = _module("families.sorting")
    return None if module is None else module.tied_rows_launch(rows, count, descending, sort)


def top_k_launch(rows: Any, count: int, largest: bool) -> Any:
    """The function that gives the top k elements of rows of small arrays (`families.sorting.top_k_launch`)."""
    module = _module("families.sorting")
    return None if module is None else module.top_k_launch(rows, count, largest)


def scan_launch(name: str, x: Any, dim: int) -> Any:
    """The function that scans small arrays (`families.scans.scan_launch`)."""
    module = _module("families.scans")
    return None if module is None else module.scan_launch(name, x, dim)


def border_pad(x: Any, pad: tuple[int, ...], mode: str) -> Any:
    """A large array with a reflecting or replicating border (`families.padding.border_pad`)."""
    if x.size <= INDEXING[0]:
        return None
    module = _module("families.padding")
    return None if module is None else module.border_pad(x, pad, mode)


def special_function(name: str, x: np.ndarray) -> np.ndarray | None:
    """A special function of an array (`families.special.special_function`)."""
    module = _module("families.special")
    return None if module is None else module.special_function(name, x)


def run_update(rule: Callable[..., None], arrays: list[Any], missing: int, scalars: tuple[Any, ...],
           row_major: bool) -> bool:
    """Run an optimizer's update rule on large arrays (`updates.run_update`); whether there is a kernel."""
    module = _module("updates")
    return module is not None and module.run_update(rule, arrays, missing, scalars, row_major)


def update_kernel(rule: Callable[..., None], arrays: list[Any], missing: int, scalars: tuple[Any, ...]) -> Any:
    """The kernel of an update rule and its numbers (`updates.traced_update`); None if there is no kernel."""
    module = _module("updates")
    return None if module is None else module.traced_update(rule, arrays[0].dtype, len(arrays), missing, scalars)


def convert(array: np.ndarray, to: np.dtype) -> np.ndarray | None:
    """A large array in another dtype (`families.casting.convert`, which is the converter from then on)."""
    module = _module("families.casting")
    if module is None:
        return None
    dtypes.register_converter(NARROW_CASTS, module.convert)
    result: np.ndarray | None = module.convert(array, to)
    return result


def _load_casts_of_few() -> tuple[Any, Any]:
    from ...codegen.elementwise import few_casts

    functions = few_casts.function(few_casts.WIDEN), few_casts.function(few_casts.ROUND)
    dtypes.register_casts_of_few(functions, SMALL_KERNELS)
    return functions


def _widen_few(result: np.ndarray, array: np.ndarray) -> np.ndarray:
    """The first call, which loads the functions for those that follow."""
    widened: np.ndarray = _load_casts_of_few()[0](result, array)
    return widened


def _round_few(result: np.ndarray, array: np.ndarray) -> np.ndarray:
    """The first call, which loads the functions for those that follow."""
    rounded: np.ndarray = _load_casts_of_few()[1](result, array)
    return rounded


dtypes.register_converter(NARROW_CASTS, convert)
dtypes.register_casts_of_few((_widen_few, _round_few), SMALL_KERNELS)
dtypes.register_float8(float8)


#: modules by name; imported with the first large request, and used for small ones from then on
_loaded: dict[str, Any] = {}


def _module_for(name: str, count: int, least: int) -> Any:
    if count > least and name not in _loaded:
        _loaded[name] = _module(name)
    return _loaded.get(name)


def fill_normal(uniforms: np.ndarray) -> bool:
    """Turn uniforms into normal numbers in place (`families.normals.box_muller`)."""
    module = _module_for("families.normals", uniforms.size, NORMALS[0])
    return module is not None and module.box_muller(uniforms)


def random_words(generator: Any, count: int) -> np.ndarray | None:
    """The next 32-bit outputs of a generator (`families.random_words.draw`)."""
    module = _module_for("families.random_words", count, RANDOM_WORDS[0])
    return None if module is None else module.draw(generator, count)


def direct_draws(generator: Any, numbers: int) -> Any:
    """Functions that draw from a generator's state (`families.random_words.direct_draws`)."""
    module = _module_for("families.random_words", numbers, RANDOM_WORDS[0])
    if module is None and SMALL_KERNELS[0] and next(_small_draws) >= _SMALL_DRAWS:
        module = _module_for("families.random_words", RANDOM_WORDS[0] + 1, RANDOM_WORDS[0])
    return None if module is None else module.direct_draws(generator)


#: small draws before code is compiled for them
_SMALL_DRAWS = 24
_small_draws = count()


def solve_triangular(a: np.ndarray, b: np.ndarray, upper: bool, unit: bool) -> np.ndarray | None:
    """The solution of triangular systems (`families.triangular.solve_triangular`)."""
    module = _module_for("families.triangular", a.size, TRIANGULAR_SYSTEMS[0])
    return None if module is None else module.solve_triangular(a, b, upper, unit)


def label_paths(emission: np.ndarray, skips: np.ndarray, steps: np.ndarray, states: np.ndarray, back: bool
                ) -> np.ndarray | None:
    """Sums over paths through labels (`families.scans.label_paths`)."""
    module = _module_for("families.scans", emission.size, 0 if SMALL_KERNELS[0] else SUMS[0])
    return None if module is None else module.label_paths(emission, skips, steps, states, back)


def eliminate_panels(panels: np.ndarray) -> np.ndarray | None:
    """Gaussian elimination in place (`families.triangular.eliminate_panels`)."""
    module = _module_for("families.triangular", panels.size, 0 if SMALL_KERNELS[0] else TRIANGULAR_SYSTEMS[0])
    return None if module is None else module.eliminate_panels(panels)


def scalar_function(name: str, x: np.ndarray) -> np.ndarray | None:
    """A function of the C library over an array (`families.random_words.scalar_function`)."""
    module = _loaded.get("families.random_words")
    return None if module is None else module.scalar_function(name, x)


accelerated.NORMALS.append(fill_normal)
accelerated.FUNCTIONS.append(scalar_function)
accelerated.WORDS.append(random_words)
accelerated.DRAWS.append(direct_draws)


def copy_kernels() -> Any:
    """The module of copies and fills (`families.copying`), for arrays of more than `COPIES` elements."""
    return _module("families.copying")


def indexing_kernels() -> Any:
    """The module of gathers and scatters (`families.indexing`), for arrays of more than `INDEXING` elements."""
    return _module("families.indexing")


def few_positions() -> Any:
    """The module of gathers and scatters of few elements (`families.few_positions`), once kernels are loaded."""
    return _module("families.few_positions") if SMALL_KERNELS[0] else None


def recurrent_kernels(elements: int) -> Any:
    """The module of recurrent steps (`families.recurrent`), for gates of that many elements."""
    return _module("families.recurrent") if elements > RECURRENT_STEPS[0] else None


def fourier_kernels(elements: int) -> Any:
    """The module of Fourier transforms (`families.fourier`), for arrays of that many elements."""
    return _module("families.fourier") if elements > FOURIER[0] else None


def bfloat16_products(elements: int) -> Any:
    """The module of products of bfloat16 (`families.bfloat16_products`), for operands of that many elements."""
    return _module_for("families.bfloat16_products", elements, NARROW_CASTS[0])


def grid_sampling_kernels(elements: int) -> Any:
    """The module of `grid_sample` (`families.grid_sampling`), for as many interpolated elements."""
    return _module_for("families.grid_sampling", elements, GRID_SAMPLES[0])


def resampling_kernels(elements: int) -> Any:
    """The module of resampling (`families.resampling`), for images of that many elements."""
    return _module("families.resampling") if elements > RESAMPLING[0] else None


def sparse_kernels(multiplications: int) -> Any:
    """The module of sparse products (`families.sparse`), for products of that many multiplications."""
    return _module("families.sparse") if multiplications > SPARSE_PRODUCTS[0] else None


def empty_array(shape: Sequence[int], dtype: np.dtype) -> np.ndarray:
    """`np.empty`, with memory from the allocator for large arrays."""
    from_allocator = LARGE_SEEN[0] or (prod(shape) > COPIES[0] and enable_kernels())
    result: np.ndarray = run_quietly(np.empty, shape, dtype) if from_allocator else np.empty(shape, dtype)
    return result


def empty_array_like(like: np.ndarray, dtype: np.dtype, order: Literal["C", "K"] = "K") -> np.ndarray:
    """`np.empty_like` without subclasses, with memory from the allocator for large arrays."""
    from_allocator = LARGE_SEEN[0] or (like.size > COPIES[0] and enable_kernels())
    args = (like, dtype, order, False)
    result: np.ndarray = run_quietly(np.empty_like, *args) if from_allocator else np.empty_like(*args)
    return result


def copy(to: np.ndarray, source: Any) -> None:
    """Write an array or a scalar over an array."""
    is_large = to.size > COPIES[0] or (to.size > PERMUTED_COPIES[0] and is_transposing_copy(to, source))
    kernels = copy_kernels() if is_large else None
    if kernels is None or not kernels.copy(to, source):
        to[...] = source if source.__class__ is ndarray else elements_of(resolve(source))


def fill(to: np.ndarray, value: Any) -> None:
    """Set all elements of an array to a scalar, which NumPy converts, or to a 0-d array of its dtype."""
    if to.size > FILLS[0] and (LARGE_SEEN[0] or to.size > COPIES[0]):
        kernels = copy_kernels()
        if kernels is not None and kernels.copy(to, np.asarray(value, to.dtype)):
            return
    to[...] = value


def is_transposing_copy(to: np.ndarray, source: Any) -> bool:
    """Whether a copy permutes elements: the innermost strides differ."""
    strides = getattr(source, "strides", None)
    if not strides or to.shape != source.shape:
        return False
    return bool(strides[-1] != to.strides[-1])


def concat_kernels(size: int, pieces: int) -> Any:
    """`copy_kernels` for a concatenation of `size` elements whose pieces are large on average, by several threads."""
    large = size > CONCATENATIONS[0] and size > PERMUTED_COPIES[0] * pieces
    return copy_kernels() if large and threads.count() > 1 else None


def copy_with_layout(x: np.ndarray, like: np.ndarray) -> np.ndarray:
    """A copy of an array in the dense layout of another array of its shape."""
    if x.size > PERMUTED_COPIES[0]:
        result = empty_array_like(like, x.dtype)
        copy(result, x)
        return result
    result = np.empty_like(like, x.dtype)
    result[...] = resolve(x)
    return result


def new_copy(x: np.ndarray, order: Literal["C", "K"] = "C") -> np.ndarray:
    """A copy of an array: C-contiguous, or in the memory order of its elements ("K")."""
    if x.__class__ is not np.ndarray:
        if isinstance(x, ElementlessArray):
            return x.copy(order)
        x = resolve(x)
    if x.size <= PERMUTED_COPIES[0]:
        return np.array(x, order=order, copy=True)
    is_permuted = order == "C" and x.ndim and (x.strides[-1] != x.itemsize or (
        x.size > 2 * PERMUTED_COPIES[0] and not x.flags.c_contiguous))
    kernels = copy_kernels() if is_permuted or x.size > COPIES[0] else None
    if kernels is not None:
        result: np.ndarray = kernels.new_copy(x, order)
        return result
    result = empty_array_like(x, x.dtype, order)
    result[...] = x
    return result


__all__ = ["SMALL_CALLS_BEFORE_KERNELS", "bfloat16_products", "compiled_operators", "concat_kernels", "convert", "copy",
           "copy_kernels", "copy_with_layout", "enable_kernels", "fill", "fourier_kernels", "grid_sampling_kernels",
           "indexing_kernels", "new_copy", "next_small_call", "recurrent_kernels", "reduce_arrays",
           "resampling_kernels", "run_update", "scaled_negative_exp", "scan_arrays", "select_top_k", "sort_rows",
           "sparse_kernels", "sum_rows",
           "update_kernel"]
