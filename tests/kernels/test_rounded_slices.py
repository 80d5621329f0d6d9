"""16-bit slices added or reduced at indices: where PyTorch rounds each partial result, and where it rounds once."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import flambeau

torch = pytest.importorskip("torch")

CALLS = {
    **{f"index_reduce-{reduce}-{include}": lambda x, index, source, dim, reduce=reduce, include=include: (
        x.index_reduce(dim, index, source, reduce, include_self=include))
       for reduce in ("prod", "mean", "amax") for include in (True, False)},
    **{f"index_add-{alpha}": lambda x, index, source, dim, alpha=alpha: x.index_add(dim, index, source, alpha=alpha)
       for alpha in (1, 0.3, -1.7)},
    **{f"scatter_reduce-{reduce}-{include}": lambda x, index, source, dim, reduce=reduce, include=include: (
        x.scatter_reduce(dim, index.reshape([-1 if d == dim else 1 for d in range(x.ndim)]).expand_as(source).clone(),
                         source, reduce, include_self=include))
       for reduce in ("sum", "mean") for include in (True, False)},
}


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("call", CALLS)
def test_sums_are_rounded_where_pytorch_rounds_them(call, dtype):
    generator = np.random.default_rng(0)
    rows, many = generator.standard_normal((3, 5)), generator.standard_normal((40, 5))
    index = generator.integers(0, 3, 40)
    calls = ((rows, many, 0), (rows.T.copy(), many.T.copy(), 1), (rows[:, 0].copy(), many[:, 0].copy(), 0))
    for x, source, dim in calls:
        results = []
        for library in (torch, flambeau):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                result = CALLS[call](*(library.tensor(each).to(getattr(library, dtype)) if each is not index else
                                       library.tensor(index) for each in (x, index, source)), dim)
            results.append(result.float().numpy())
        np.testing.assert_array_equal(*results)
