"""Process-wide settings: getters return the set values, invalid values raise."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

import flambeau as torch
from flambeau.kernels import threads


@pytest.fixture(autouse=True)
def as_before() -> Any:
    count = torch.get_num_threads()
    yield
    torch.set_num_threads(count)
    torch.use_deterministic_algorithms(False)
    torch.set_float32_matmul_precision("highest")
    torch.set_default_device(None)
    torch.set_default_dtype(torch.float32)


def test_threads() -> None:
    torch.set_num_threads(1)
    assert torch.get_num_threads() == 1
    a = np.ones((64, 64), np.float32)
    assert (a @ a == 64).all()
    for wrong in (0, -1, 1.5, "2", True):
        with pytest.raises(RuntimeError, match="set_num_threads expects"):
            torch.set_num_threads(wrong)
    for name in ("set_num_threads", "set_num_interop_threads"):
        with pytest.raises(ValueError, match=r"^Overflow when unpacking long$"):
            getattr(torch, name)(2 ** 31)
        with pytest.raises(ValueError, match=r"^Overflow when unpacking long long$"):
            getattr(torch, name)(2 ** 65)
    assert torch.get_num_threads() == 1


def test_thread_limit_applies_to_numpys_blas() -> None:
    setter = threads._setter()
    if setter is None:
        pytest.skip("NumPy's BLAS has no function that sets its threads")
    import ctypes

    library = next(path for path in threads._loaded_libraries() if hasattr(ctypes.CDLL(path), setter.__name__))
    get_threads = getattr(ctypes.CDLL(library), setter.__name__.replace("set", "get"))
    torch.set_num_threads(1)
    assert get_threads() == 1


@pytest.mark.parametrize("convert", [float, complex, int, bool])
def test_conversion_of_a_tensor_with_gradient_warns_once(convert, monkeypatch) -> None:
    monkeypatch.setattr("flambeau.warning_location.given", set())
    x = torch.tensor(2.0, requires_grad=True)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for _ in range(2):
            convert(x)
            convert(x.detach())
    assert [str(w.message)[:30] for w in caught] == ["Converting a tensor with requi"] * (convert in (float, complex))


def test_memory_that_is_filled() -> None:
    assert torch._C._get_deterministic_fill_uninitialized_memory() is True
    torch._C._set_deterministic_fill_uninitialized_memory(False)
    assert torch._C._get_deterministic_fill_uninitialized_memory() is False
    assert torch.utils.deterministic.fill_uninitialized_memory is False
    torch._C._set_deterministic_fill_uninitialized_memory(True)


def test_determinism() -> None:
    assert torch.get_deterministic_debug_mode() == 0
    torch.set_deterministic_debug_mode("warn")
    assert torch.are_deterministic_algorithms_enabled()
    assert torch.is_deterministic_algorithms_warn_only_enabled()
    torch.set_deterministic_debug_mode(2)
    assert torch.get_deterministic_debug_mode() == 2
    with pytest.raises(RuntimeError, match="invalid value of debug_mode"):
        torch.set_deterministic_debug_mode("often")


def test_precision_and_defaults() -> None:
    torch.set_float32_matmul_precision("high")
    assert torch.get_float32_matmul_precision() == "high"
    torch.set_default_device("cpu")
    assert torch.get_default_device() == torch.device("cpu")
    with pytest.warns(UserWarning, match="deprecated as of PyTorch 2.1"):
        torch.set_default_tensor_type("torch.DoubleTensor")
    assert torch.ones(1).dtype is torch.float64
    assert torch.typename(torch.nn.Linear(1, 1)).endswith("nn.modules.linear.Linear")


def test_grad_dtype_of_a_leaf() -> None:
    x = torch.ones(2, requires_grad=True)
    assert x.grad_dtype is torch.float32
    x.grad_dtype = torch.float64
    (x * 2).sum().backward()
    (x * 2).sum().backward()
    assert x.grad.dtype is torch.float64
    assert x.grad.tolist() == [4.0, 4.0]
    assert torch.autograd.grad((x * 2).sum(), x)[0].dtype is torch.float64
    with pytest.raises(RuntimeError, match="already a gradient with dtype 'double'"):
        x.grad_dtype = torch.float32
    with pytest.raises(RuntimeError, match="only be set on leaf"):
        (x * 2).grad_dtype = None
    x.grad, x.grad_dtype = None, None
    x.grad = torch.ones(2, dtype=torch.float16)
    assert x.grad.dtype is torch.float16


def test_the_fill_of_memory_is_a_setting_of_a_module():
    import flambeau.utils.deterministic as deterministic

    assert deterministic is torch.utils.deterministic
    torch.use_deterministic_algorithms(True)
    try:
        deterministic.fill_uninitialized_memory = False
        with pytest.raises(RuntimeError, match="expected a bool, but got int"):
            deterministic.fill_uninitialized_memory = 1
        assert deterministic.fill_uninitialized_memory is False
        deterministic.fill_uninitialized_memory = True
        assert torch.empty(2).isnan().all()
    finally:
        deterministic.fill_uninitialized_memory = True
        torch.use_deterministic_algorithms(False)


def _flushed(torch: Any, count: int) -> list[Any]:
    """What is left of subnormal numbers under the mode that flushes them, and without it."""
    found: list[Any] = []
    small = torch.full((count,), 1e-40)
    try:
        for mode in (True, False):
            found += [torch.set_flush_denormal(mode), (torch.tensor([1e-323], dtype=torch.float64) * 1).item() == 0,
                      (small * 0.5).abs().max().item() == 0, small.sum().item() == 0]
    finally:
        torch.set_flush_denormal(False)
    for wrong in (1, None, "a"):
        with pytest.raises(RuntimeError) as info:
            torch.set_flush_denormal(wrong)
        found.append(str(info.value))
    return found


@pytest.mark.parity
def test_subnormal_numbers_are_flushed() -> None:
    assert _flushed(torch, 100) == _flushed(pytest.importorskip("torch"), 100)


def test_subnormal_numbers_are_flushed_in_all_threads() -> None:
    assert _flushed(torch, 100_000) == _flushed(torch, 100)
