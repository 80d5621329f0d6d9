"""Tensors in shared memory: what moves with them, and how they are pickled for other processes."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from multiprocessing.reduction import ForkingPickler

import pytest

import flambeau as torch
from flambeau.storage import TypedStorage, UntypedStorage

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="POSIX")


def write_in_child(write) -> None:
    pid = os.fork()
    if pid == 0:
        try:
            write()
        finally:
            os._exit(0)
    os.waitpid(pid, 0)


ALIASES = {
    "itself": lambda x: x, "row": lambda x: x[0], "transposed": lambda x: x.t(), "detached": lambda x: x.detach(),
    "bits": lambda x: x.view(torch.int32), "expanded": lambda x: x[:1].expand(4, 3), "parameter": torch.nn.Parameter,
    "subclass": lambda x: x.as_subclass(type("Own", (torch.Tensor,), {})), "diagonal": torch.diagonal,
    "empty": lambda x: x[:0],
}


@pytest.mark.parametrize("shared", ["itself", "row", "bits"])
@pytest.mark.parametrize("alias", ALIASES)
def test_all_tensors_on_a_storage_move(shared, alias):
    x = torch.zeros(2, 3)
    one, other = ALIASES[shared](x), ALIASES[alias](x)
    storage = x.untyped_storage()
    expected = x.clone()
    assert not x.is_shared()
    assert one.share_memory_() is one
    for each in (x, one, other, storage):
        assert each.is_shared()
    write_in_child(lambda: x.fill_(1.0))
    assert torch.equal(x, expected + 1)
    assert torch.equal(x, ALIASES["itself"](x))
    assert UntypedStorage.of(x._array).tolist() == storage.tolist()
    assert other.data_ptr() == ALIASES[alias](x).data_ptr()
    assert other.stride() == ALIASES[alias](x).stride()


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16, torch.complex64, torch.bool, torch.uint16])
def test_dtypes(dtype):
    x = torch.tensor([0, 1, 3]).to(dtype)
    expected = x.clone()
    assert x.share_memory_().dtype is dtype
    assert torch.equal(x, expected)
    assert torch.equal(pickle.loads(ForkingPickler.dumps(x)), expected)


def test_a_shared_tensor_stays_where_it_is():
    x = torch.ones(3).share_memory_()
    address = x.data_ptr()
    assert x.share_memory_().data_ptr() == x[:].share_memory_().data_ptr() == address
    assert not (x + 1).is_shared()
    assert not x.clone().is_shared()


def test_gradients_and_modules():
    layer = torch.nn.Linear(2, 2)
    weight = layer.weight
    assert layer.share_memory() is layer
    assert layer.weight is weight
    assert weight.is_shared()
    assert layer.bias.is_shared()
    layer(torch.ones(1, 2)).sum().backward()
    with torch.no_grad():
        weight -= weight.grad
    assert weight.is_shared()


def test_storages():
    x = torch.ones(3)
    assert x.untyped_storage().share_memory_().is_shared()
    assert x.is_shared()
    typed = TypedStorage(torch.ones(2).untyped_storage(), torch.float32)
    assert typed.share_memory_() is typed
    assert typed.is_shared()
    made = UntypedStorage._new_shared(5)
    assert (made.is_shared(), made.tolist()) == (True, [0] * 5)
    assert typed._new_shared(4).size() == 4
    assert torch.zeros(0).share_memory_().is_shared()


def received(value):
    return pickle.loads(ForkingPickler.dumps(value))


@pytest.mark.parametrize("strategy", ["file_descriptor", "file_system"])
def test_the_receiver_has_the_same_memory(strategy):
    torch.multiprocessing.set_sharing_strategy(strategy)
    try:
        x = torch.zeros(2, 3)
        got, row, storage = received((x, x[1], x.untyped_storage()))
        assert x.is_shared()
        x[1] = 5
        assert got.tolist() == [[0, 0, 0], [5, 5, 5]]
        assert row.tolist() == [5, 5, 5]
        assert storage.data_ptr() == got.data_ptr() == x.data_ptr()
        assert received(torch.empty(0, 2)).shape == (0, 2)
    finally:
        torch.multiprocessing.set_sharing_strategy("file_descriptor")


def test_what_is_pickled_with_a_tensor():
    leaf = received(torch.ones(2, requires_grad=True))
    assert leaf.requires_grad
    assert leaf.is_leaf
    parameter = received(torch.nn.Parameter(torch.ones(2), requires_grad=False))
    assert type(parameter) is torch.nn.Parameter
    assert not parameter.requires_grad
    with pytest.raises(RuntimeError, match="Cowardly refusing to serialize non-leaf tensor which requires_grad"):
        ForkingPickler.dumps(torch.ones(2, requires_grad=True) * 2)


def test_other_picklers_copy():
    x = torch.ones(2)
    assert not pickle.loads(pickle.dumps(x)).is_shared()
    assert not x.is_shared()


def test_batched_tensors_have_no_storage():
    with pytest.raises(NotImplementedError, match="Cannot access storage of BatchedTensorImpl"):
        torch.vmap(lambda x: x.share_memory_())(torch.ones(2))


def test_compiled_code_sees_the_shared_memory():
    x = torch.ones(3)
    double = torch.compile(lambda x: x * 2)
    for _ in range(3):
        double(x)
    x.share_memory_()
    write_in_child(lambda: x.fill_(4.0))
    assert double(x).tolist() == [8, 8, 8]


def test_storages_have_their_methods_before_anything_else_is_imported():
    code = ("import flambeau as torch; s = torch.UntypedStorage([1, 2]); print(s.is_shared(), s.resize_(4).nbytes(), "
            "torch.FloatStorage(3).share_memory_().is_shared())")
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert found.split() == ["False", "4", "True"]
