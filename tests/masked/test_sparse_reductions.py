"""Masked reductions of sparse tensors compared with PyTorch: prints and errors."""

from __future__ import annotations

from typing import Any

import pytest

import flambeau

pytorch = pytest.importorskip("torch")
pytestmark = [pytest.mark.parity, pytest.mark.filterwarnings("ignore::UserWarning")]

EXPRESSIONS = """
masked.sum(coo, 1)
masked.sum(coo, 0, keepdim=True, mask=m)
masked.sum(coo, mask=m.to_sparse())
masked.sum(coo.int(), (0, 1), keepdim=True, mask=m.to_sparse_csr())
masked.sum(hybrid, (0, 1), mask=m)
masked.sum(hybrid, 1, mask=m)
masked.amax(coo, 1, mask=m)
masked.amax(coo, mask=none.to_sparse())
masked.amin(coo.bfloat16(), 0, mask=m)
masked.prod(coo, 0, mask=m[0])
masked.prod(hybrid, 0, mask=m)
masked.prod(hybrid, 1, mask=m)
masked.sum(csr, 0, keepdim=True, mask=m)
masked.sum(csr.to(torch.int32), 1, keepdim=True, mask=m)
masked.prod(csr, 1, keepdim=True, mask=m)
masked.prod(csr, keepdim=True, mask=m.to_sparse())
masked.amax(csr, 1, keepdim=True, mask=m[:1].to_sparse_csr())
masked.amin(csr, keepdim=True, mask=m)
masked.amin(csr, keepdim=True, mask=none)
masked.mean(csr, 1, keepdim=True, mask=m, dtype=torch.float64)
masked.sum(coo[0, 0], 0)
masked.sum(d, 0, mask=m.to_sparse_csr())
masked.mean(csr, 1, keepdim=True)
masked.mean(coo, 1, mask=m)
masked.sum(csr, 1, mask=m)
masked.amax(csr, 1, mask=m)
masked.prod(coo, 1)
masked.amin(csr, 1)
masked.softmax(coo, 1)
masked.sum(d.to_sparse_csc(), 1)
masked._where(m.to_sparse(), coo, 7)
masked._where(m.to_sparse_csr(), csr, 7)
masked._where(m.to_sparse(1), hybrid, 7)
""".strip().splitlines()


def _printed(torch: Any, text: str) -> str:
    d = torch.tensor([[0., 2., 3.], [4., 0., 5.], [0., 0., 0.]])
    m = torch.tensor([[0, 1, 1], [1, 0, 0], [0, 1, 0]]).bool()
    names = {"torch": torch, "masked": torch.masked, "d": d, "m": m, "none": torch.zeros(3, 3).bool(),
             "coo": d.to_sparse(), "csr": d.to_sparse_csr(), "hybrid": d.to_sparse(1)}
    try:
        result = eval(text, names)
        text = f"{result} {getattr(result, 'dtype', None)}"
    except Exception as error:
        text = f"{type(error).__name__}: {error}"
    return " ".join(text.replace("flambeau.", "torch.").split())  # the longer name breaks lines elsewhere


@pytest.mark.parametrize("text", EXPRESSIONS)
def test_as_in_pytorch(text: str) -> None:
    assert _printed(flambeau, text) == _printed(pytorch, text)
