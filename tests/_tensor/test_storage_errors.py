"""What typed storages are made of: PyTorch's refusals, word by word."""

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
        text = str(error.value).replace("flambeau._tensor.storage", "torch.storage").replace("flambeau", "torch")
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


@pytest.mark.parametrize("name", ["float32", "float64", "int8", "bool", "bfloat16", "complex64"])
def test_storage_types(name):
    found, expected = (m.ones(2).to(getattr(m, name)).storage_type() for m in (flambeau, torch))
    assert found.__name__ == expected.__name__
    assert found is getattr(flambeau, found.__name__)
