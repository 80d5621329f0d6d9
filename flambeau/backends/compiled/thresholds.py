"""Thresholds: the number of elements above which an operator runs on its compiled kernel. All of them are measured.

Starting a kernel costs about 1 us; a NumPy ufunc costs a third of that, for each pass of the operator's formula. Each
threshold is a list of one number, so that fast paths can hold a reference to it.

`FLAMBEAU_KERNELS_FROM` sets all thresholds to one number.
"""

from __future__ import annotations

import os
import threading

#: operators that NumPy computes in one fast pass
_ONE_PASS = ("add", "sub", "mul", "neg", "abs", "eq", "ne", "lt", "le", "gt", "ge", "maximum", "minimum", "square",
             "bitwise_and", "bitwise_or", "bitwise_xor", "bitwise_not", "logical_and", "logical_or", "logical_xor",
             "logical_not", "floor", "ceil", "trunc", "round", "isnan", "isinf", "isfinite", "signbit", "clone",
             "conj_physical", "div", "sqrt", "reciprocal", "copysign")
#: the threshold of all other operators
_DEFAULT = 1024
_THRESHOLDS: dict[str, list[int]] = {name: [16384] for name in _ONE_PASS}
#: sums and means, and other reductions
SUMS = _THRESHOLDS["sums"] = [2048]
REDUCTIONS = _THRESHOLDS["reductions"] = [1023]
#: argmax and argmin, which NumPy does fast over contiguous elements
ARG_REDUCTIONS = _THRESHOLDS["arg reductions"] = [8192]
#: scans along a dimension
SCANS = _THRESHOLDS["scans"] = [1024]
#: gathers and scatters
INDEXING = _THRESHOLDS["indexing"] = [2048]
#: multiplications of a product of a sparse matrix
SPARSE_PRODUCTS = _THRESHOLDS["sparse products"] = [1024]
#: elements of a Fourier transform
FOURIER = _THRESHOLDS["fourier"] = [4095]
#: the most counts of large arrays that have tables of their own
MOST_COUNTS = 1 << 14
#: elements of keys that single queries attend to; and the most, for which a call keeps other threads of Python waiting
ATTENTION_OF_ROWS = _THRESHOLDS["attention of rows"] = [1024]
MOST_KEYS = 1 << 20
#: elements that `grid_sample` interpolates, for which NumPy takes about 50 passes
GRID_SAMPLES = _THRESHOLDS["grid samples"] = [255]
#: elements of an image that is resampled
RESAMPLING = _THRESHOLDS["resampling"] = [1023]
#: masked fills and triangular masks
MASKING = _THRESHOLDS["masking"] = [2048]
#: top k of rows, and sorted rows
TOP_K = _THRESHOLDS["top k"] = [1023]
#: optimizer updates
OPTIMIZER_UPDATES = _THRESHOLDS["optimizer updates"] = [2048]
#: float32 updates: on processors with FMA, kernels and NumPy round alike, so that the threshold drops to 0 once kernels
#: are loaded
FLOAT32_UPDATES = _THRESHOLDS["float32 updates"] = [2048]
#: copies and fills: NumPy reaches the memory bandwidth of one thread
COPIES = _THRESHOLDS["copies"] = [131072]
#: fills: NumPy writes 16 bytes at a time
FILLS = _THRESHOLDS["fills"] = [16384]
#: concatenations: threads win where the result is large
CONCATENATIONS = _THRESHOLDS["concatenations"] = [3 << 17]
#: copies that permute elements
PERMUTED_COPIES = _THRESHOLDS["permuted copies"] = [16384]
#: casts to and from float16 and bfloat16, which NumPy does one by one; and other casts, which it vectorizes
NARROW_CASTS = _THRESHOLDS["narrow casts"] = [1024]
CASTS = _THRESHOLDS["casts"] = [65536]
#: random 32-bit words
RANDOM_WORDS = _THRESHOLDS["random words"] = [1023]
#: matrices of triangular systems with few right-hand sides, which NumPy factorizes
TRIANGULAR_SYSTEMS = _THRESHOLDS["triangular systems"] = [1023]
#: normal numbers from uniforms, for which NumPy takes about 90 passes
NORMALS = _THRESHOLDS["normal numbers"] = [255]
#: the gates of one step of a recurrent layer, for which NumPy takes about 15 passes
RECURRENT_STEPS = _THRESHOLDS["recurrent steps"] = [255]
#: special functions, computed by kernels even while kernels are paused
SINGLE_USE = [1 << 17]
#: the smallest threshold: no operator on smaller arrays has to look up its own
MIN_ELEMENTS = [_DEFAULT]
#: [whether an array larger than that was seen, or kernels are loaded]: until then fast paths skip the size check. NumPy
#: computes what they miss, to the same bits.
LARGE_SEEN = [False]
#: [whether kernels may run on smaller arrays, too, of layouts that come again and again]: once kernels are loaded, and
#: while nobody has set the thresholds
SMALL_KERNELS = [False]
_loaded = False
_set_depth = 0
_override = os.environ.get("FLAMBEAU_KERNELS_FROM", "")


_lock = threading.Lock()
_saved_thresholds: list[dict[str, int]] = []
_pause_depth = 0


def threshold_of(name: str) -> list[int]:
    """The threshold of an operator."""
    threshold = _THRESHOLDS.get(name)
    if threshold is None:
        threshold = _THRESHOLDS[name] = [1 << 62 if _saved_thresholds else _DEFAULT]
        if _override:
            threshold[0] = int(_override) - 1
    return threshold


def lower_threshold(name: str, elements: int) -> None:
    """Lower a threshold to `elements`; during a pause, from its end on."""
    with _lock:
        saved = _saved_thresholds[-1] if _saved_thresholds else None
        if saved is None:
            _THRESHOLDS[name][0] = min(_THRESHOLDS[name][0], elements)
        else:
            saved[name] = min(saved[name], elements)


def allow_small_kernels() -> None:
    """Let kernels run on small arrays from now on: kernels are loaded."""
    global _loaded
    with _lock:
        _loaded = LARGE_SEEN[0] = True
        SMALL_KERNELS[0] = not _set_depth


def _count_setters(change: int) -> None:
    global _set_depth
    _set_depth += change
    SMALL_KERNELS[0] = _loaded and not _set_depth


def set_thresholds(elements: int) -> dict[str, int]:
    """Run all operators on kernels from `elements` elements on; return the previous thresholds."""
    _count_setters(1)
    before = {name: threshold[0] for name, threshold in _THRESHOLDS.items()}
    before |= {"": MIN_ELEMENTS[0], "once": SINGLE_USE[0]}
    for threshold in (MIN_ELEMENTS, SINGLE_USE, *_THRESHOLDS.values()):
        threshold[0] = elements - 1
    LARGE_SEEN[0] = True
    return before


def restore_thresholds(before: dict[str, int]) -> None:
    """Restore the thresholds that `set_thresholds` returned."""
    _count_setters(-1)
    MIN_ELEMENTS[0], SINGLE_USE[0] = before[""], before["once"]
    for name, threshold in _THRESHOLDS.items():
        threshold[0] = before.get(name, _DEFAULT)


def pause_kernels() -> None:
    """Run all operators on NumPy until `resume_kernels`; calls nest. While tracing, compiling kernels does not pay."""
    global _pause_depth
    with _lock:
        _pause_depth += 1
        if _pause_depth == 1 and not _override:
            _saved_thresholds.append(set_thresholds(1 << 62))
            SINGLE_USE[0] = _saved_thresholds[-1]["once"]


def resume_kernels() -> None:
    """End a pause."""
    global _pause_depth
    with _lock:
        _pause_depth -= 1
        if not _pause_depth and _saved_thresholds:
            restore_thresholds(_saved_thresholds.pop())


if _override:
    set_thresholds(int(_override))

__all__ = ["ARG_REDUCTIONS", "ATTENTION_OF_ROWS", "CASTS", "CONCATENATIONS", "COPIES", "FILLS", "FLOAT32_UPDATES",
           "FOURIER", "GRID_SAMPLES", "INDEXING", "LARGE_SEEN", "MASKING", "MIN_ELEMENTS", "MOST_COUNTS", "MOST_KEYS",
           "NARROW_CASTS", "NORMALS", "OPTIMIZER_UPDATES", "PERMUTED_COPIES", "RANDOM_WORDS", "RECURRENT_STEPS",
           "REDUCTIONS", "RESAMPLING", "SCANS", "SINGLE_USE", "SMALL_KERNELS", "SPARSE_PRODUCTS", "SUMS", "TOP_K",
           "TRIANGULAR_SYSTEMS", "allow_small_kernels", "lower_threshold", "pause_kernels", "restore_thresholds",
           "resume_kernels", "set_thresholds", "threshold_of"]
