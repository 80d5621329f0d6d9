"""What typed storages are made of: PyTorch's refusals, word by word."""

import copy
import weakref

import pytest

import flambeau

torch = pytest.importorskip("torch")
pytestmark = [pytest.mark.parity, pytest.mark.filterwarnings("ignore")]

CALLS = [
    lambda m: m.FloatStorage(0, 0), lambda m: m.FloatStorage(device="cpu"), lambda m: m.FloatStorage(dtype=m.float32),
    lambda m: m.FloatStorage("text"), lambda m: m.FloatStorage(5.5), lambda m: m.FloatStorage(m.ones(1)),
    lambda m: m.FloatStorage(0, wrap_storage=m.UntypedStorage(4)),
    lambda m: m.FloatStorage(wrap_storage=m.FloatStorage(1)), lambda m: m.storage._LegacyStorage(),
    lambda m: m.TypedStorage(0, 0, dtype=m.float32), lambda m: m.TypedStorage(wrap_storage=m.UntypedStorage(4)),
    lambda m: m.TypedStorage(0, wrap_storage=m.UntypedStorage(4), dtype=m.float32),
    lambda m: m.TypedStorage(wrap_storage=m.UntypedStorage(4), dtype=0),
    lambda m: m.TypedStorage(wrap_storage=m.UntypedStorage(4), dtype=m.float32, device="cpu"),
    lambda m: m.TypedStorage(wrap_storage=m.FloatStorage(1), dtype=m.float32),
    lambda m: m._C.StorageBase(), lambda m: m.TypedStorage(m.ones(1), dtype=m.float32),
]


@pytest.mark.parametrize("call", CALLS)
def test_errors(call):
    found = []
    for module in (torch, flambeau):
        with pytest.raises((RuntimeError, TypeError)) as error:
            call(module)
        text = str(error.value).replace("flambeau._tensor.memory.storage", "torch.storage").replace("flambeau", "torch")
        found.append((error.type, text))
    assert found[0] == found[1]


def test_storage_is_one_object_while_it_is_referred_to():
    x = flambeau.ones(4)
    storage = x.untyped_storage()
    storage.note = "kept"
    assert x[1:].untyped_storage() is storage
    assert flambeau.ones(4).untyped_storage() is not storage
    x.share_memory_()
    assert x.untyped_storage().data_ptr() == storage.data_ptr() == x.data_ptr()
    assert isinstance(storage, flambeau._C.StorageBase)

    class Mine(flambeau._C.StorageBase):
        def __new__(cls, of):
            return super().__new__(cls, of)

    assert isinstance(Mine(storage), flambeau._C.StorageBase)


class Kept(flambeau.UntypedStorage):
    """A storage with attributes of its own."""


@pytest.mark.parametrize("make", [
    lambda: (x := flambeau.ones(4), x.untyped_storage()), lambda: (flambeau.tensor(s := Kept(16)), s),
    lambda: (flambeau.empty(0).set_(s := Kept(16)), s), lambda: (flambeau.as_tensor(s := Kept(16)), s)])
def test_a_tensor_keeps_the_object_of_its_storage(make):
    tensor, storage = make()
    cls, storage.note, weak = type(storage), "kept", weakref.ref(storage)
    del storage
    assert tensor.untyped_storage() is weak()
    assert (type(weak()), weak().note) == (cls, "kept")
    storage = weak()
    storage.resize_(64)
    assert tensor.untyped_storage() is storage
    tensor.resize_(100)
    assert tensor.untyped_storage() is storage
    assert storage.nbytes() == 100 * tensor.itemsize
    other = copy.deepcopy(tensor)
    assert other.untyped_storage() is not storage
    del storage
    tensor.data = other
    assert weak() is None
    assert "_storage" not in vars(tensor)


@pytest.mark.parametrize("call", [
    lambda m: m.ones(3).set_(m.ones(3).untyped_storage(), 10, (3,)), lambda m: m.ones(3).set_(m.ones(3), 0, (5,)),
    lambda m: m.ones(3).set_(m.ones(3).untyped_storage(), 1, (4,)),
    lambda m: m.ones(3).set_(m.ones(3).untyped_storage(), 1, (3,), (2,)),
    lambda m: m.ones(3).set_(m.ones(3).untyped_storage(), 1, (0,)),
    lambda m: m.ones(3).set_(m.ones(3).untyped_storage(), 1, ()),
])
def test_set_grows_a_storage(call):
    found = []
    for m in (torch, flambeau):
        try:
            x = call(m)
        except RuntimeError as error:
            found.append(str(error).replace("strides [1]", "strides []"))
        else:
            found.append((x.stride(), x.untyped_storage().nbytes(), x.flatten()[:1].tolist()))
    assert found[0] == found[1]


@pytest.mark.parametrize("name", ["float32", "float64", "int8", "bool", "bfloat16", "complex64"])
def test_storage_types(name):
    found, expected = (m.ones(2).to(getattr(m, name)).storage_type() for m in (flambeau, torch))
    assert found.__name__ == expected.__name__
    assert found is getattr(flambeau, found.__name__)
