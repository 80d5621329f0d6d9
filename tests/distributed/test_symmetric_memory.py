"""`torch.distributed._symmetric_memory` answers as PyTorch's build for the CPU."""

from __future__ import annotations

from importlib import import_module

import pytest

CALLS = {
    "empty": lambda torch, s: s.empty(2, 3), "empty of a tuple": lambda torch, s: s.empty((2, 3), dtype=torch.int64),
    "rendezvous": lambda torch, s: s.rendezvous(torch.ones(2), "0"),
    "rendezvous of a number": lambda torch, s: s.rendezvous(torch.ones(2), 3),
    "is_symm_mem_tensor": lambda torch, s: s.is_symm_mem_tensor(torch.ones(2)),
    "is_nvshmem_available": lambda torch, s: s.is_nvshmem_available(),
    "set_backend": lambda torch, s: s.set_backend("NVSHMEM"), "get_backend": lambda torch, s: s.get_backend("cpu"),
    "get_mem_pool": lambda torch, s: s.get_mem_pool("cpu"),
    "get_signal_pad_size": lambda torch, s: s.get_signal_pad_size(),
    "is_symm_mem_enabled_for_group": lambda torch, s: s.is_symm_mem_enabled_for_group("0"),
    "enable_symm_mem_for_group": lambda torch, s: s.enable_symm_mem_for_group("0"),
}


def answer(library, call):
    torch = import_module(library)
    try:
        return call(torch, import_module(f"{library}.distributed._symmetric_memory"))
    except Exception as error:
        return type(error).__name__, str(error)


@pytest.mark.parity
@pytest.mark.filterwarnings("ignore:`enable_symm_mem_for_group` is deprecated")
@pytest.mark.parametrize("name", CALLS)
def test_answers(name):
    pytest.importorskip("torch")
    assert answer("flambeau", CALLS[name]) == answer("torch", CALLS[name])
