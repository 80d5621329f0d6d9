"""Padding of tensors with dimensions of size 0, or of too few or many, compared with PyTorch."""

from __future__ import annotations

import pytest

from tests.autograd.differential import attempt, same


@pytest.mark.parametrize("mode", ["reflect", "replicate", "circular"])
@pytest.mark.parametrize("rank", [1, 2, 3])
def test_empty_dimensions(mode, rank):
    def program(torch):
        results = []
        for ndim in (rank + 1, rank + 2):
            for empty in range(ndim):
                if mode == "circular" and empty >= ndim - rank:
                    continue
                shape = [5] * ndim
                shape[empty] = 0
                x = torch.zeros(shape)
                results.append(attempt(lambda x=x: tuple(torch.nn.functional.pad(x, (2, 2) * rank, mode).shape)))
        return results

    same(program)


@pytest.mark.parametrize("name", ["replication", "reflection"])
@pytest.mark.parametrize("rank", [1, 2, 3])
def test_sizes_of_the_functions_of_one_rank(name, rank):
    def program(torch):
        pad = getattr(torch._C._nn, f"{name}_pad{rank}d")
        return [attempt(lambda shape=shape, widths=widths: pad(torch.ones(shape), widths))
                for shape in ([2], [2] * rank, [2] * (rank + 1), [0] + [2] * rank, [2] * (rank + 3))
                for widths in ([], [1], [1, 1] * rank)]

    same(program)
