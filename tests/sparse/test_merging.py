"""Sums of COO tensors with repeated and unsorted indices, compared with PyTorch."""

from __future__ import annotations

import pytest

import flambeau

pytorch = pytest.importorskip("torch")

PAIRS = [([0], [0, 1]), ([0, 1], [0, 1, 2]), ([1, 0], [0, 1]), ([0, 0], [0]), ([0, 0, 2], [0, 2, 2, 3]),
         ([3], [1, 0, 3]), ([1, 0, 1], [1, 0]), ([2, 2, 1], [1, 2])]


@pytest.mark.filterwarnings("ignore:Sparse invariant checks")
@pytest.mark.parametrize(("first", "second"), PAIRS)
@pytest.mark.parametrize("dense", [(), (2,)])
def test_entries_of_sums(first, second, dense):
    seen = []
    for torch in (flambeau, pytorch):
        width = 2 if dense else 1
        a, b = (torch.sparse_coo_tensor(
            [rows], torch.arange(1., len(rows) * width + 1).reshape(-1, *dense), (4, *dense))
            for rows in (first, second))
        total = torch.add(a, b, alpha=2)
        seen.append((total._indices().tolist(), total._values().tolist(), total.is_coalesced()))
    assert seen[0] == seen[1]
