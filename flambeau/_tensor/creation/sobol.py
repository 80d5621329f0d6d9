"""`torch.quasirandom`: scrambled Sobol' sequences."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from ... import dtypes
from ..tensor import Tensor, wrap

__all__ = ["SobolEngine"]

#: for dimensions 2, 3, ...: a primitive polynomial as an integer, and the first direction numbers (Joe and Kuo)
_DIRECTIONS = (
    (3, 1), (7, 1, 3), (11, 1, 3, 1), (13, 1, 1, 1), (19, 1, 1, 3, 3), (25, 1, 3, 5, 13), (37, 1, 1, 5, 5, 17), (41,
    1, 1, 5, 5, 5), (47, 1, 1, 7, 11, 19), (55, 1, 1, 5, 1, 1), (59, 1, 1, 1, 3, 11), (61, 1, 3, 5, 5, 31), (67, 1,
    3, 3, 9, 7, 49), (91, 1, 1, 1, 15, 21, 21), (97, 1, 3, 1, 13, 27, 49), (103, 1, 1, 1, 15, 7, 5), (109, 1, 3, 1,
    15, 13, 25), (115, 1, 1, 5, 5, 19, 61), (131, 1, 3, 7, 11, 23, 15, 103), (137, 1, 3, 7, 13, 13, 15, 69), (143,
    1, 1, 3, 13, 7, 35, 63), (145, 1, 3, 5, 9, 1, 25, 53), (157, 1, 3, 1, 13, 9, 35, 107), (167, 1, 3, 1, 5, 27, 61,
    31), (171, 1, 1, 5, 11, 19, 41, 61), (185, 1, 3, 5, 3, 3, 13, 69), (191, 1, 1, 7, 13, 1, 19, 1), (193, 1, 3, 7,
    5, 13, 19, 59), (203, 1, 1, 3, 9, 25, 29, 41), (211, 1, 3, 5, 13, 23, 1, 55), (213, 1, 3, 7, 3, 13, 59, 17),
    (229, 1, 3, 1, 3, 5, 53, 69), (239, 1, 1, 5, 5, 23, 33, 13), (241, 1, 1, 7, 7, 1, 61, 123), (247, 1, 1, 7, 9,
    13, 61, 49), (253, 1, 3, 3, 5, 3, 55, 33), (285, 1, 3, 1, 15, 31, 13, 49, 245), (299, 1, 3, 5, 15, 31, 59, 63,
    97), (301, 1, 3, 1, 11, 11, 11, 77, 249)
)


def _table(dimension: int) -> list[tuple[int, ...]]:
    """Polynomials and first direction numbers of dimensions 2 to `dimension`."""
    if dimension - 1 <= len(_DIRECTIONS):
        return list(_DIRECTIONS[:dimension - 1])
    try:
        import scipy.stats
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(f"SobolEngine of more than {len(_DIRECTIONS) + 1} dimensions reads SciPy's table of "
                                  f"direction numbers: pip install scipy ({error})", name="scipy") from error

    with np.load(Path(scipy.stats.__file__).with_name("_sobol_direction_numbers.npz")) as file:
        polynomials, numbers = file["poly"][1:dimension].tolist(), file["vinit"][1:dimension].tolist()
    return [(polynomial, *(n for n in row if n)) for polynomial, row in zip(polynomials, numbers, strict=True)]


def _direction_numbers(dimension: int, bits: int) -> np.ndarray:
    """The direction numbers, (dimension, bits), as integers whose highest bit is 2^(bits - 1)."""
    state = np.ones((dimension, bits), np.int64)
    for row, (polynomial, *first) in enumerate(_table(dimension), 1):
        degree = polynomial.bit_length() - 1
        numbers = list(first)
        for j in range(degree, bits):
            new = numbers[j - degree] ^ (numbers[j - degree] << degree)
            for k in range(1, degree):
                if polynomial >> (degree - k) & 1:
                    new ^= numbers[j - k] << k
            numbers.append(new)
        state[row] = numbers[:bits]
    return state << np.arange(bits - 1, -1, -1)


class SobolEngine:
    """Points of a Sobol' sequence, low-discrepancy points in [0, 1)^d.

    Args:
        dimension: the number of dimensions, at most 21,201; more than 40 need SciPy's table.
        scramble: scramble the sequence (a random linear matrix and a random digital shift).
        seed: the seed of the scrambling; None: the global generator.

    Raises:
        ValueError: the dimension is out of range.

    Source: S. Joe and F. Y. Kuo, "Constructing Sobol sequences with better two-dimensional projections", 2008;
    A. B. Owen, "Scrambling Sobol and Niederreiter-Xing points", 1998.

    >>> import flambeau as torch
    >>> engine = torch.quasirandom.SobolEngine(2)
    >>> engine.draw(3)
    tensor([[0.0000, 0.0000],
            [0.5000, 0.5000],
            [0.7500, 0.2500]])
    """

    MAXBIT = 30
    MAXDIM = 21201

    def __init__(self, dimension: int, scramble: bool = False, seed: int | None = None) -> None:
        if dimension > self.MAXDIM or dimension < 1:
            raise ValueError(f"Supported range of dimensionality for SobolEngine is [1, {self.MAXDIM}]")
        self.seed, self.scramble, self.dimension = seed, scramble, dimension
        self.sobolstate: Tensor = wrap(_direction_numbers(dimension, self.MAXBIT))
        self.shift: Tensor = wrap(np.zeros(dimension, np.int64))
        if scramble:
            self._scramble()
        self.quasi: Tensor = wrap(self.shift._array.copy())
        first = wrap((self.quasi._array / 2 ** self.MAXBIT).astype(
            dtypes.get_default_dtype().numpy if dtypes.get_default_dtype() is dtypes.float64 else np.float32))
        self._first_point: Tensor = first.reshape(1, -1)
        self.num_generated = 0

    def _scramble(self) -> None:
        """Draw the shift and the lower triangular matrices, and multiply the direction numbers by them, bit by bit."""
        from ..functions import randint
        from .generators import Generator

        generator = None
        if self.seed is not None:
            generator = Generator()
            generator.manual_seed(self.seed)
        bits = self.MAXBIT
        places = 1 << np.arange(bits, dtype=np.int64)
        drawn = randint(2, (self.dimension, bits), generator=generator)
        self.shift = wrap(drawn._array @ places)
        matrices = np.tril(randint(2, (self.dimension, bits, bits), generator=generator)._array)
        matrices[:, np.arange(bits), np.arange(bits)] = 1
        of_numbers = self.sobolstate._array[:, None, :] >> np.arange(bits - 1, -1, -1)[:, None] & 1
        products = np.einsum("dpq,dqj->dpj", matrices, of_numbers) & 1
        self.sobolstate = wrap(np.einsum("dpj,p->dj", products, places[::-1].copy()))

    def _steps(self, n: int) -> np.ndarray:
        """The next `n` points as integers, (n, dimension), by Gray codes; `quasi` becomes the last one."""
        at = self.num_generated + np.arange(n, dtype=np.int64)
        lowest_zero = np.log2(~at & (at + 1)).astype(np.int64)
        changes = self.sobolstate._array[:, lowest_zero].T
        points = np.bitwise_xor.accumulate(np.concatenate([self.quasi._array[None], changes]))[1:]
        if n:
            self.quasi._array[...] = points[-1]
        return points

    def draw(self, n: int = 1, out: Any = None, dtype: Any = None) -> Tensor:
        """The next `n` points, of shape (n, dimension).

        Args:
            out: a tensor that is resized and written.
            dtype: the dtype of the result; default: the default dtype.
        """
        dtype = dtypes.get_default_dtype() if dtype is None else dtype
        scale = 2.0 ** -self.MAXBIT
        steps = n - 1 if self.num_generated == 0 else n
        if steps < 0:
            raise RuntimeError(f"Trying to create tensor with negative dimension {steps}: [{steps}, {self.dimension}]")
        if self.num_generated == 0 and n == 1 and out is None:
            self.num_generated = 1
            return self._first_point.to(dtype)
        if self.num_generated == 0:
            points = self._steps(n - 1)
            array = np.concatenate([self._first_point._array.astype(np.float64), points * scale])
        else:
            self.num_generated -= 1
            array = self._steps(n) * scale
            self.num_generated += 1
        self.num_generated += n
        result: Tensor = wrap(dtypes.cast(array, dtype.numpy))
        if out is not None:
            return out.resize_(result.shape).copy_(result)
        return result

    def draw_base2(self, m: int, out: Any = None, dtype: Any = None) -> Tensor:
        """The next 2^m points, which complete a power of two.

        Raises:
            ValueError: the number of points drawn would be no power of two.
        """
        n = 2 ** m
        total = self.num_generated + n
        if total & (total - 1):
            raise ValueError("The balance properties of Sobol' points require n to be a power of 2. "
                             f"{self.num_generated} points have been previously generated, then: "
                             f"n={self.num_generated}+2**{m}={total}. If you still want to do this, please use "
                             "'SobolEngine.draw()' instead.")
        return self.draw(n=n, out=out, dtype=dtype)

    def reset(self) -> SobolEngine:
        """Begin again at the first point; the scrambling stays."""
        self.quasi._array[...] = self.shift._array
        self.num_generated = 0
        return self

    def fast_forward(self, n: int) -> SobolEngine:
        """Skip `n` points."""
        if self.num_generated == 0:
            self._steps(n - 1)
        else:
            self.num_generated -= 1
            self._steps(n)
            self.num_generated += 1
        self.num_generated += n
        return self

    def __repr__(self) -> str:
        options = [f"dimension={self.dimension}"]
        if self.scramble:
            options.append("scramble=True")
        if self.seed is not None:
            options.append(f"seed={self.seed}")
        return f"{type(self).__name__}({', '.join(options)})"
