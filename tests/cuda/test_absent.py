"""Legacy classes of tensors and storages of `torch.cuda` without a device, compared with PyTorch."""

from __future__ import annotations

import pytest

import flambeau
from tests.autograd.differential import attempt, said

pytorch = pytest.importorskip("torch")
pytestmark = [pytest.mark.filterwarnings("ignore:torch.set_default_tensor_type"),
              pytest.mark.filterwarnings("ignore:TypedStorage is deprecated")]


def test_legacy_classes():
    def program(torch):
        cuda = torch.cuda
        return [said(attempt(step)) for step in (
            cuda.FloatTensor, lambda: cuda.FloatTensor([1.]), lambda: torch.set_default_tensor_type(cuda.FloatTensor),
            lambda: torch.set_default_tensor_type("torch.cuda.FloatTensor"), cuda.ByteStorage.from_buffer,
            cuda.FloatStorage._new_with_weak_ptr, lambda: cuda.FloatStorage._new_shared_filename(0, 0, 0))]

    assert program(flambeau) == program(pytorch)


def test_state_of_the_initialization():
    def program(torch):
        return torch.cuda._initialized, torch.cuda.is_initialized(), torch.cuda._queued_calls

    assert program(flambeau)[:2] == program(pytorch)[:2] == (False, False)
    assert isinstance(program(flambeau)[2], list)
