"""Measures the largest errors of math functions, on samples or on every float32.

    python -m tests.codegen.sweep                      a table of all functions, in both formats, on samples
    python -m tests.codegen.sweep exp --all            exp on every one of the 2^32 patterns
    python -m tests.codegen.sweep exp --stride 97      on every 97th
"""

from __future__ import annotations

import argparse

import numpy as np

from flambeau.codegen.math.functions import BINARY, FUNCTIONS

from .driver import over_arrays
from .references import BY_ELEMENT, reference, ulps

EDGES32 = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -1.0, 2.0**-149, -(2.0**-149), 2.0**-126, 2.0**-127,
                    3.4028235e38, -3.4028235e38, 0.5, -0.5, 2.0, 88.72284, 88.72283, -87.33655, -103.97208,
                    16777216.0, 131072.0, 131072.0078125, 1.6367173e38], np.float32)


def patterns(stride: int, start: int = 0, stop: int = 2**32) -> np.ndarray:
    """Every stride-th float32, as bit patterns count."""
    return np.arange(start, stop, stride, dtype=np.uint64).astype(np.uint32).view(np.float32)


def near_multiples(dtype: np.dtype, count: int) -> np.ndarray:
    """The numbers nearest to multiples of π/2, where argument reduction cancels most."""
    rng = np.random.default_rng(5)
    k = np.concatenate([np.arange(1, count // 2), np.exp(rng.uniform(0, 40, count // 2)).round()])
    return np.concatenate([s * (k * np.longdouble("1.57079632679489661923132169163975144")).astype(dtype)
                           for s in (1, -1)])


def samples(name: str, dtype: np.dtype, count: int) -> tuple[np.ndarray, ...]:
    """Random arguments over the entire range, and densely where the function varies."""
    rng = np.random.default_rng(20)
    unsigned, bits = (np.uint32, 32) if dtype == np.float32 else (np.uint64, 64)
    with np.errstate(all="ignore"):
        def whole_range(n: int) -> np.ndarray:
            return rng.integers(0, 2**bits - 1, n, dtype=unsigned, endpoint=True).view(dtype)

        if name == "pow":
            x = np.exp(rng.normal(0, 3, count)).astype(dtype)
            limit = (88 if dtype == np.float32 else 709) / np.abs(np.log(x.astype(np.float64)))
            y = (rng.uniform(-1.18, 1.18, count) * limit).astype(dtype)
            near = (1 + rng.normal(0, 1, count) * 2.0 ** -rng.integers(1, 20, count)).astype(dtype)
            far = (rng.uniform(-1.1, 1.1, count) / np.abs(np.log(np.abs(near.astype(np.float64)))) * 700).astype(dtype)
            x = np.concatenate([x, np.abs(near), whole_range(count), -x[: count // 4]])
            y = np.concatenate([y, far, rng.normal(0, 2, count).astype(dtype), y[: count // 4].round()])
            return x, y
        if name in BINARY:
            x = np.concatenate([rng.normal(0, 3, count).astype(dtype), whole_range(count)])
            y = np.concatenate([rng.normal(0, 3, count).astype(dtype), whole_range(count)])
            return x, y
        scale = [rng.normal(0, s, count // 4) for s in (0.3, 1, 8)]
        logs = np.exp(rng.uniform(-20, 8, count // 2)) * rng.choice([-1, 1], count // 2)
        ones = 1 + rng.normal(0, 1, count // 2) * 2.0 ** -rng.integers(1, 50, count // 2)
        wide = rng.uniform(-110 if dtype == np.float32 else -750, 710, count // 2)
        parts = [a.astype(dtype) for a in (*scale, logs, ones, wide, EDGES32, rng.uniform(-1, 1, count))]
        if name not in BY_ELEMENT or dtype == np.float32:
            parts.append(whole_range(count // 2))
        if name in ("sin", "cos", "tan"):
            parts.append(near_multiples(dtype, count // 4))
        if name in BY_ELEMENT and dtype == np.float64:
            parts = [p[:: 6] for p in parts]
        return (np.concatenate(parts),)


def largest(name: str, args: tuple[np.ndarray, ...], lanes: int, fused: bool | None = None) -> tuple[float, tuple]:
    """(the largest error in ulp, the arguments where it is)."""
    got = over_arrays(name, args[0].dtype, lanes, fused)(*args)
    error = ulps(got, reference(name, *args))
    worst = int(np.argmax(error))
    return float(error[worst]), tuple(a[worst] for a in args)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*")
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--stride", type=int, default=0)
    parser.add_argument("--count", type=int, default=200_000)
    parser.add_argument("--unfused", action="store_true")
    given = parser.parse_args()
    fused = False if given.unfused else None
    for name in given.names or [n for n in FUNCTIONS if n not in ("remainder", "lgamma", "digamma")]:
        if given.all or given.stride:
            stride = given.stride or 1
            worst: tuple[float, tuple] = (0.0, ())
            run = over_arrays(name, np.dtype(np.float32), 16, fused)
            chunk = stride << 20
            for start in range(0, 2**32, chunk):
                x = patterns(stride, start, min(start + chunk, 2**32))
                error = ulps(run(x), reference(name, x))
                i = int(np.argmax(error))
                worst = max(worst, (float(error[i]), (x[i],)), key=lambda w: w[0])
            print(f"{name:12} float32 {worst[0]:8.3f} ulp at {worst[1]}", flush=True)
            continue
        for dtype, lanes in ((np.dtype(np.float32), 16), (np.dtype(np.float64), 8)):
            error, where = largest(name, samples(name, dtype, given.count), lanes, fused)
            print(f"{name:12} {dtype.name} {error:8.3f} ulp at {where}", flush=True)


if __name__ == "__main__":
    main()
