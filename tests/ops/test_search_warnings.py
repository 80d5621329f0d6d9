"""Searches warn once of tensors that are not contiguous."""

from __future__ import annotations

import warnings

import pytest

import flambeau as torch
from flambeau import warning_location


@pytest.mark.parametrize("kind", ["input value", "boundary", "sorter"])
def test_a_tensor_that_is_not_contiguous(kind, monkeypatch):
    monkeypatch.setattr(warning_location, "given", set())
    spaced = {name: (lambda x: x.repeat_interleave(2)[::2]) if name == kind else (lambda x: x)
              for name in ("input value", "boundary", "sorter")}
    edges, values = spaced["boundary"](torch.arange(4.0)), spaced["input value"](torch.tensor([0.5, 2.5]))
    sorter = spaced["sorter"](torch.arange(4))
    with pytest.warns(UserWarning, match=rf"torch.searchsorted\(\): {kind} tensor is non-contiguous, .* use contiguous "
                                         rf"{kind} tensor if possible"):
        assert torch.searchsorted(edges, values, sorter=sorter).tolist() == [1, 3]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        torch.searchsorted(edges, values, sorter=sorter)
