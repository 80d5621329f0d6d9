"""Memory: conversions, copies, writes, storages, NumPy interoperability, pickles and deep copies."""

from __future__ import annotations

import copy
import gc
import pickle
import warnings
import weakref
from typing import Any

import numpy as np
import pytest

import flambeau as torch


def test_to_returns_self_if_nothing_changes() -> None:
    x = torch.ones(2)
    assert x.to(torch.float32) is x.to("cpu") is x.float() is x.contiguous() is x
    assert x.to(torch.float32, copy=True) is not x
    assert x.to(torch.ones(1, dtype=torch.int64)).dtype is torch.int64


@pytest.mark.parametrize(("method", "dtype"), [
    ("double", torch.float64), ("half", torch.float16), ("bfloat16", torch.bfloat16), ("int", torch.int32),
    ("long", torch.int64), ("short", torch.int16), ("char", torch.int8), ("byte", torch.uint8), ("bool", torch.bool),
    ("cfloat", torch.complex64), ("cdouble", torch.complex128)])
def test_conversions(method: str, dtype: Any) -> None:
    found = getattr(torch.tensor([0.0, 1.0]), method)()
    assert found.dtype is dtype
    assert [bool(v) for v in found.tolist()] == [False, True]


def test_gradient_of_a_cast_has_the_source_dtype() -> None:
    x = torch.ones(2, requires_grad=True)
    y = x.double()
    assert y.grad_fn.name() == "ToCopyBackward0"
    (y * 2).sum().backward()
    assert x.grad.dtype is torch.float32


def test_complex_to_real_warns() -> None:
    with pytest.warns(UserWarning, match="Casting complex values to real discards the imaginary part"):
        assert torch.tensor([1 + 2j]).to(torch.float32).tolist() == [1.0]


def test_type_names() -> None:
    x = torch.ones(2)
    assert x.type() == "flambeau.FloatTensor"
    assert x.type("torch.DoubleTensor").dtype is torch.float64
    assert x.type(torch.LongTensor).dtype is torch.int64
    assert isinstance(x, torch.FloatTensor)
    assert not isinstance(x, torch.DoubleTensor)
    with pytest.raises(ValueError, match="invalid type: 'NoTensor'"):
        x.type("NoTensor")


def test_cuda_is_unavailable() -> None:
    for move in (lambda x: x.cuda(), lambda x: x.to("cuda")):
        with pytest.raises(AssertionError, match="Torch not compiled with CUDA enabled"):
            move(torch.ones(1))


# ----- writes ----------------------------------------------------------------------------------

def test_copy_converts_broadcasts_and_differentiates() -> None:
    x, y = torch.ones(3, requires_grad=True), torch.zeros(2, 3, dtype=torch.float64)
    y.copy_(x)
    assert y.grad_fn.name() == "torch::autograd::CopyBackwards"
    y.sum().backward()
    assert x.grad.tolist() == [2.0] * 3
    with pytest.raises(RuntimeError, match=r"The size of tensor a \(2\) must match the size of tensor b \(3\)"):
        torch.ones(2).copy_(torch.ones(3))


@pytest.mark.parametrize(("write", "node"), [
    (lambda x: x.fill_(2.0), "FillBackward2"), (lambda x: x.fill_(torch.tensor(2.0)), "FillBackward3"),
    (lambda x: x.zero_(), "ZeroBackward0"), (lambda x: x.copy_(torch.ones(2)), "torch::autograd::CopyBackwards")])
def test_fill_detaches_the_history(write: Any, node: str) -> None:
    x = torch.ones(2, requires_grad=True)
    y = x * 3
    write(y)
    assert y.grad_fn.name() == node
    y.sum().backward()
    assert x.grad.tolist() == [0.0, 0.0]


def test_fill_errors() -> None:
    with pytest.raises(RuntimeError, match="fill_ only supports 0-dimension value tensor but got tensor with 1 "
                                           "dimensions"):
        torch.ones(2).fill_(torch.ones(2))
    with pytest.raises(RuntimeError, match="value cannot be converted to type int64_t without overflow"):
        torch.arange(2).fill_(1j)
    assert torch.arange(2).fill_(1.5).tolist() == [1, 1]


def test_writes_to_leaves_raise() -> None:
    x = torch.ones(2, requires_grad=True)
    for write in (lambda: x.zero_(), lambda: x.fill_(1), lambda: x.copy_(torch.ones(2)), lambda: x.__setitem__(0, 1.0)):
        with pytest.raises(RuntimeError, match="a leaf Variable that requires grad is being used in an in-place "
                                               "operation"):
            write()
    with torch.no_grad():
        x.zero_()
        x[0] = 5.0
    assert x.tolist() == [5.0, 0.0]


def test_fill_diagonal() -> None:
    x = torch.zeros(7, 3)
    x.fill_diagonal_(1)
    assert x.nonzero().tolist() == [[0, 0], [1, 1], [2, 2]]
    y = torch.zeros(7, 3)
    y.fill_diagonal_(1, wrap=True)
    assert y.nonzero().tolist() == [[0, 0], [1, 1], [2, 2], [4, 0], [5, 1], [6, 2]]


def test_resizing_keeps_what_fits() -> None:
    x = torch.arange(4.0)
    pointer = x.data_ptr()
    assert x.resize_(2).tolist() == [0.0, 1.0]
    assert x.data_ptr() == pointer
    assert x.resize_(2, 2).tolist() == [[0.0, 1.0], [2.0, 3.0]]
    assert x.resize_(6).shape == (6,)
    assert x[:4].tolist() == [0.0, 1.0, 2.0, 3.0]
    with pytest.raises(RuntimeError, match="cannot resize variables that require grad"):
        torch.ones(2, requires_grad=True).resize_(3)


# ----- memory formats --------------------------------------------------------------------------

def test_channels_last() -> None:
    x = torch.arange(24.0).view(1, 2, 3, 4)
    y = x.contiguous(memory_format=torch.channels_last)
    assert y.stride() == (24, 1, 8, 2)
    assert y.is_contiguous(memory_format=torch.channels_last)
    assert not y.is_contiguous()
    assert y.tolist() == x.tolist()
    assert y.clone().stride() == y.stride()
    assert y.clone(memory_format=torch.contiguous_format).stride() == x.stride()
    assert torch.empty_like(y).stride() == y.stride()
    assert x.to(memory_format=torch.channels_last).stride() == y.stride()
    with pytest.raises(RuntimeError, match="required rank 4 tensor to use channels_last format"):
        torch.ones(2).contiguous(memory_format=torch.channels_last)


# ----- storages --------------------------------------------------------------------------------

def test_a_storage_is_shared_by_views() -> None:
    x = torch.arange(4.0)
    part = x[1:3]
    assert part.untyped_storage().data_ptr() == x.data_ptr()
    assert part.untyped_storage().nbytes() == 16
    assert part.storage_offset() == 1
    assert part.data_ptr() == x.data_ptr() + 4
    with pytest.warns(UserWarning, match="TypedStorage is deprecated"):
        assert part.storage().tolist() == [0.0, 1.0, 2.0, 3.0]
    part.untyped_storage()[0:4] = 0
    y = torch.zeros(0)
    y.set_(x.untyped_storage(), 1, (2,), (2,))
    assert y.tolist() == [1.0, 3.0]
    assert x.is_set_to(x.view(4))
    assert not x.is_set_to(part)


# ----- other libraries -------------------------------------------------------------------------

def test_numpy_shares_memory() -> None:
    x = torch.ones(2)
    x.numpy()[0] = 5
    assert x.tolist() == [5.0, 1.0]
    a = np.zeros(3)
    torch.from_numpy(a)[1] = 7
    assert a.tolist() == [0, 7, 0]
    assert np.asarray(x).dtype == np.float32
    assert np.sin(np.asarray(x, np.float64)).dtype == np.float64
    with pytest.raises(RuntimeError, match=r"Can't call numpy\(\) on Tensor that requires grad"):
        torch.ones(1, requires_grad=True).numpy()
    with pytest.raises(TypeError, match="Got unsupported ScalarType BFloat16"):
        torch.ones(1, dtype=torch.bfloat16).numpy()


def test_dlpack_both_ways() -> None:
    x = torch.arange(3.0)
    a = np.from_dlpack(x)
    assert np.shares_memory(a, x.numpy())
    y = torch.from_dlpack(x.numpy())  # `a` is read-only before NumPy 2.1 and would be copied
    assert y.data_ptr() == x.data_ptr()
    with pytest.raises(BufferError, match="Can't export tensors that require gradient"):
        np.from_dlpack(torch.ones(1, requires_grad=True))


def test_from_numpy_rejects_other_types() -> None:
    with pytest.raises(TypeError, match=r"expected np\.ndarray"):
        torch.from_numpy([1])
    with pytest.raises(ValueError, match="negative"):
        torch.from_numpy(np.arange(3)[::-1])
    with pytest.raises(TypeError, match=r"can't convert np\.ndarray of type numpy\.str_"):
        torch.from_numpy(np.array(["a"]))
    frozen = np.ones(2)
    frozen.flags.writeable = False
    with pytest.warns(UserWarning, match="The given NumPy array is not writable"):
        torch.from_numpy(frozen)


def test_writes_to_read_only_arrays_reach_them() -> None:
    """As in PyTorch: columns of pandas, which copies on writes, are such arrays."""
    frozen = np.arange(6.0).reshape(2, 3)
    frozen.flags.writeable = False
    with warnings.catch_warnings(action="ignore"):
        x, shared = torch.from_numpy(frozen), torch.as_tensor(frozen)
    x[x > 2] = -1
    x.mul_(2)
    assert frozen.tolist() == shared.tolist() == [[0.0, 2.0, 4.0], [-2.0, -2.0, -2.0]]
    assert x.numpy().flags.writeable
    assert x.untyped_storage().nbytes() == 48


def test_python_numbers() -> None:
    assert float(torch.tensor([2.5])) == 2.5
    assert int(torch.tensor(2.7)) == 2
    assert complex(torch.tensor(1 + 2j)) == 1 + 2j
    assert [10, 20][torch.tensor(1)] == 20
    assert 3 in torch.tensor([1, 2, 3])
    with pytest.raises(ValueError, match="only one element tensors can be converted to Python scalars"):
        float(torch.ones(2))
    with pytest.raises(TypeError, match="only integer tensors of a single element can be converted to an index"):
        [1][torch.tensor(0.0)]
    with pytest.raises(RuntimeError, match="Boolean value of Tensor with more than one value is ambiguous"):
        bool(torch.ones(2))
    with pytest.raises(RuntimeError, match="a Tensor with 2 elements cannot be converted to Scalar"):
        torch.ones(2).item()


# ----- copies of the object --------------------------------------------------------------------

def test_deepcopy_preserves_shared_memory() -> None:
    x = torch.arange(4.0)
    part = x[1:3]
    y, other = copy.deepcopy([x, part])
    y[1] = 9.0
    assert other[0].item() == 9.0
    assert x[1].item() == 1.0
    leaf = torch.ones(2, requires_grad=True)
    (leaf * 2).sum().backward()
    twin = copy.deepcopy(leaf)
    assert twin.requires_grad
    assert twin.grad.tolist() == [2.0, 2.0]
    twin.grad.zero_()
    assert leaf.grad.tolist() == [2.0, 2.0]
    with pytest.raises(RuntimeError, match="Only Tensors created explicitly by the user"):
        copy.deepcopy(leaf * 1)
    assert copy.deepcopy(x.view(2, 2).t()).stride() == (1, 2)


def test_pickles() -> None:
    x = torch.arange(6.0).view(2, 3)
    both = pickle.loads(pickle.dumps([x, x.t()[1:]]))
    assert both[1].tolist() == x.t()[1:].tolist()
    both[0][0, 1] = 50.0
    assert both[1][0, 0].item() == 50.0
    leaf = pickle.loads(pickle.dumps(torch.ones(2, requires_grad=True)))
    assert leaf.requires_grad
    for dtype in (torch.bfloat16, torch.complex64, torch.bool):
        y = pickle.loads(pickle.dumps(torch.ones(2, dtype=dtype)))
        assert y.dtype is dtype
        assert y.tolist() == torch.ones(2, dtype=dtype).tolist()
    assert copy.copy(x).data_ptr() == x.data_ptr()


def test_detach_and_data() -> None:
    x = torch.ones(2, requires_grad=True)
    y = x.detach()
    y[0] = 3.0
    assert x[0].item() == 3.0
    assert x._version == y._version == 1
    x.data[1] = 4.0
    assert x._version == 1
    assert x[1].item() == 4.0


def test_subclasses() -> None:
    class Mine(torch.Tensor):
        pass

    x = torch.ones(2, requires_grad=True)
    y = x.as_subclass(Mine)
    assert type(y) is Mine
    assert y.grad_fn.name() == "AliasBackward0"
    y.sum().backward()
    assert x.grad.tolist() == [1.0, 1.0]


def test_dir_names_methods() -> None:
    names = dir(torch.ones(1))
    assert {"view", "backward", "grad_fn", "T"} <= set(names)


def test_view_of_a_contiguous_transpose_does_not_warn() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        torch.ones(2, 2).t().contiguous().view(-1)


REFUSED: list[Any] = [
    lambda x: torch.add(x, "a"), lambda x: x.add_("a"), lambda x: x.pow_("a"), lambda x: x.requires_grad_().add_(1),
    lambda x: x.sum("a"), lambda x: x.max("a"), lambda x: x.any("a"), lambda x: x.view("a"), lambda x: x.view(7),
    lambda x: x.reshape("a"), lambda x: torch.cat([x, 3]), lambda x: torch.outer(x, 3), lambda x: x @ torch.ones(9),
    lambda x: torch.nn.functional.relu("a", x), lambda x: torch.rrelu(x, "a"), lambda x: x.softmax(9), lambda x: x[99],
]


def test_nothing_refers_to_tensors_after_a_call() -> None:
    """An error, its traceback and the frame that raised it would be a cycle; so is a closure that calls itself."""
    gc.collect()
    gc.disable()
    try:
        for call in REFUSED:
            x = torch.ones(3, 4)
            left = weakref.ref(x)
            with pytest.raises((TypeError, RuntimeError, IndexError)):
                call(x)
            del x
            assert left() is None, call
        x = torch.ones(3, 3)
        left = weakref.ref(x)
        torch.linalg.multi_dot([x, x, x, x])
        del x
        assert left() is None
    finally:
        gc.enable()


def test_a_refused_source_of_memory_changes_nothing() -> None:
    x = torch.ones(2)
    with pytest.raises(TypeError, match="source"):
        x.set_(1)
    assert (x._version, x.tolist()) == (0, [1.0, 1.0])
