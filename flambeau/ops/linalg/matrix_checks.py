"""Input checks and helpers that the declarations on matrices share."""

from __future__ import annotations

from typing import Any

LINALG_OPTIONS: dict[str, Any] = {"expose": ("linalg",), "batching_rule": "trailing"}


def transpose_last(xp, x):
    """Return the transposes of a batch of matrices."""
    return xp.transpose(x, -2, -1)


def conj_transpose(xp, x):
    """Return the conjugate transposes of a batch of matrices, Aᴴ."""
    return xp.conj(xp.transpose(x, -2, -1))


# ----- what the inputs must be ----------------------------------------------------------


def check_matrices(name: str, x: Any, letter: str = "A", square: bool = False) -> None:
    """Refuse what is no batch of (square) matrices, in PyTorch's words."""
    if len(x.shape) < 2:
        raise RuntimeError(f"{name}: The input tensor {letter} must have at least 2 dimensions.")
    if square and x.shape[-1] != x.shape[-2]:
        raise RuntimeError(f"{name}: {letter} must be batches of square matrices, but they are {x.shape[-2]} by "
                           f"{x.shape[-1]} matrices")


def check_floating(name: str, x: Any, low: bool = False) -> None:
    """Refuse numbers that are no floating point ones, and unless `low` those of half precision, in PyTorch's words."""
    if not (x.dtype.is_floating_point or x.dtype.is_complex):
        raise RuntimeError(f"{name}: Expected a floating point or complex tensor as input. Got {x.dtype.scalar_name}")
    if not low and x.dtype.itemsize < 4:
        raise RuntimeError(f"{name}: Low precision dtypes not supported. Got {x.dtype.scalar_name}")


def check_batch_of_matrices(name: str, square: bool = True, low: bool = False) -> Any:
    """A check of the first input by both of them."""
    def check(x: Any, *_: Any) -> None:
        check_matrices(name, x, square=square)
        check_floating(name, x, low)

    return check


#: what LAPACK has no functions for
NO_LAPACK = ("bool", "integer", "narrow")
