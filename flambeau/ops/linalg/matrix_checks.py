"""Input checks and helpers shared by the declarations of linear algebra operators."""

from __future__ import annotations

from typing import Any

LINALG_OPTIONS: dict[str, Any] = {"expose": ("linalg",), "batching_rule": "trailing"}


def transpose_last(xp, x):
    """Return the transposes of a batch of matrices."""
    return xp.transpose(x, -2, -1)


def conj_transpose(xp, x):
    """Return the conjugate transposes of a batch of matrices, Aᴴ."""
    return xp.conj(xp.transpose(x, -2, -1))


# ----- input checks ----------------------------------------------------------


def check_matrices(name: str, x: Any, letter: str = "A", square: bool = False) -> None:
    """Raise PyTorch's error unless `x` is a batch of (square) matrices."""
    shape = x.shape
    if len(shape) < 2:
        raise RuntimeError(f"{name}: The input tensor {letter} must have at least 2 dimensions.")
    *_, rows, columns = shape
    if square and rows != columns:
        raise RuntimeError(f"{name}: {letter} must be batches of square matrices, but they are {rows} by {columns} "
                           "matrices")


def check_floating(name: str, x: Any, low: bool = False) -> None:
    """Raise PyTorch's error unless `x` is floating point or complex, and unless `low` at least single precision."""
    dtype = x.dtype
    if not (dtype.is_floating_point or dtype.is_complex):
        raise RuntimeError(f"{name}: Expected a floating point or complex tensor as input. Got {dtype.scalar_name}")
    if not low and dtype.itemsize < 4:
        raise RuntimeError(f"{name}: Low precision dtypes not supported. Got {dtype.scalar_name}")


def check_batch_of_matrices(name: str, square: bool = True, low: bool = False) -> Any:
    """Return a check of the first input by `check_matrices` and `check_floating`."""
    def check(x: Any, *_: Any) -> None:
        check_matrices(name, x, square=square)
        check_floating(name, x, low)

    return check


#: dtype categories that LAPACK does not support
NO_LAPACK = ("bool", "integer", "narrow")
