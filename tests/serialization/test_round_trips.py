"""Round trips: values, dtypes, shared memory, attributes and classes."""

from __future__ import annotations

import copy
import io
import pickle
import warnings

import pytest

import flambeau as torch
from tests.serialization.samples import SAFE, UNSAFE, plain

ALL = {**SAFE, **UNSAFE}


class Mine(torch.Tensor):
    """A subclass of tensors."""


class Slotted(torch.Tensor):
    """A subclass with a slot."""

    __slots__ = ("mark",)


class Net(torch.nn.Module):
    """A module of the tests'."""

    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(2, 2)
        self.tied = self.layer.weight
        self.register_buffer("kept", torch.ones(1))

    def forward(self, x):
        return self.layer(x)


def there_and_back(obj, *, load=None, **options):
    file = io.BytesIO()
    torch.save(obj, file, **options)
    file.seek(0)
    return torch.load(file, **(load or {}))


@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize("options", [{}, {"_use_new_zipfile_serialization": False}], ids=["zip", "legacy"])
def test_saved_objects_round_trip(name, options):
    if name == "a generator" and options:
        pytest.skip("takes its state before the old format has read it, in PyTorch too")
    obj = ALL[name](torch)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        if name == "leaves":  # without its history
            obj[1] = obj[1].detach().requires_grad_()
        back = there_and_back(obj, load={"weights_only": name in SAFE}, **options)
        assert plain(back, torch) == plain(obj, torch)


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
def test_every_protocol(protocol):
    obj = [UNSAFE["a module"](torch), torch.float32, torch.sin, torch.ones(2, dtype=torch.uint16)]
    back = there_and_back(obj, load={"weights_only": False}, pickle_protocol=protocol)
    assert plain(back, torch) == plain(obj, torch)


def test_shared_memory_stays_shared():
    x = torch.arange(6.0)
    a, b, c, p = there_and_back([x, x[2:], x.view(2, 3).t(), torch.nn.Parameter(x)])
    a[4] = 100
    assert b[2] == c[1, 1] == p[4] == 100
    assert b.storage_offset() == 2
    assert c.stride() == (1, 3)


def test_one_object_stays_one_object():
    x = torch.ones(2)
    a, b = there_and_back([x, x])
    assert a is b
    net = there_and_back(Net(), load={"weights_only": False})
    assert net.tied is net.layer.weight


def test_subclasses_and_their_attributes():
    x, s = torch.ones(2).as_subclass(Mine), torch.ones(2).as_subclass(Slotted)
    x.note, s.mark = {"a": 1}, 5
    back, slotted = there_and_back([x, s], load={"weights_only": False})
    assert type(back) is Mine
    assert back.note == {"a": 1}
    assert type(slotted) is Slotted
    assert slotted.mark == 5


def test_user_defined_modules(tmp_path):
    net = Net()
    torch.save(net, tmp_path / "net.pt")
    back = torch.load(tmp_path / "net.pt", weights_only=False)
    x = torch.ones(1, 2)
    assert torch.equal(back(x), net(x))
    assert list(back.state_dict()) == list(net.state_dict())


def test_hooks_are_left_out_with_a_warning():
    x = torch.ones(1, requires_grad=True)
    x.register_hook(print)
    with pytest.warns(UserWarning, match="backward hook <built-in function print> on tensor will not be serialized"):
        back = there_and_back(x)
    assert back._hooks is None


def test_hooks_that_need_not_be_saved():
    x = torch.ones(1, requires_grad=True)
    x.register_hook(torch.utils.hooks.unserializable_hook(lambda grad: None))
    assert torch.equal(there_and_back(x), x)


def test_storages():
    x = torch.arange(4)
    storage = x.untyped_storage()
    storage[:8][0] = 9  # a part of a storage is the same memory
    assert x[0] == 9
    a, b = pickle.loads(pickle.dumps([storage, storage[8:16]]))
    a[8] = 5
    assert b[0] == 5
    a, b = copy.deepcopy([x, storage])
    b[0] = 1
    assert a[0] == 1
    part, whole = there_and_back([storage[8:16], x])
    assert part.nbytes() == 8
    assert torch.equal(whole, x)


def test_the_same_memory_as_two_dtypes_is_refused():
    x = torch.ones(2)
    with pytest.raises(RuntimeError, match="Cannot save multiple tensors or storages that view the same data as diff"):
        there_and_back([x, x.view(torch.int32)])


def test_a_failed_save_leaves_the_old_file(tmp_path):
    path = tmp_path / "x.pt"
    torch.save(1, path)
    with pytest.raises((AttributeError, pickle.PicklingError)):
        torch.save(lambda: 1, path)
    assert torch.load(path) == 1


@pytest.mark.parametrize(("f", "error", "text"), [
    (3, AttributeError, "expected 'f' to be string, path, or a file-like object with a 'write' attribute"),
    ("/no/such/folder/x.pt", RuntimeError, "Parent directory /no/such/folder does not exist."),
])
def test_unwritable_destinations(f, error, text):
    with pytest.raises(error, match=text):
        torch.save(1, f)


def test_pickle_and_deepcopy():
    x = torch.arange(4.0, requires_grad=True)
    for again in (lambda o: pickle.loads(pickle.dumps(o)), copy.deepcopy):
        base = torch.arange(4.0)
        a, b, p, leaf = again([base, base[1:], torch.nn.Parameter(torch.ones(1)), x])
        a[1] = 50
        assert b[0] == 50
        assert type(p) is torch.nn.Parameter
        assert leaf.requires_grad
    y = pickle.loads(pickle.dumps(x * 2))
    assert y.requires_grad
    assert y.is_leaf
    with pytest.raises(RuntimeError, match="Only Tensors created explicitly by the user"):
        copy.deepcopy(x * 2)


def test_copies_of_complex_parts_stay_views():
    z = torch.ones(2, dtype=torch.complex64)
    a, real = copy.deepcopy([z, z.real])
    a[0] = 5
    assert real[0] == 5
