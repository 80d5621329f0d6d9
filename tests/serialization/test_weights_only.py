"""`weights_only=True`: allowed and rejected globals and opcodes, and globals that a program adds."""

from __future__ import annotations

import io
import pickle
from collections import OrderedDict

import pytest

import flambeau as torch
from flambeau.serialization.archive import ArchiveWriter


class Trusted:
    """A class that the tests trust or not."""

    def __init__(self, x):
        self.x = x


class Settable:
    """A class that takes its state itself."""

    def __setstate__(self, state):
        self.state = state

    def __getstate__(self):
        return {"a": 1}


def written(obj):
    file = io.BytesIO()
    torch.save(obj, file)
    file.seek(0)
    return file


def forged(pickled):
    """An archive with a pickle of one's own."""
    file = io.BytesIO()
    archive = ArchiveWriter(file, "archive")
    archive.record("data.pkl", pickled)
    archive.close()
    file.seek(0)
    return file


@pytest.fixture(autouse=True)
def _forget():
    yield
    torch.serialization.clear_safe_globals()


def test_classes_raise_until_they_are_allowed():
    file = written([Trusted(3), Settable()])
    name = f"{Trusted.__module__}.Trusted"
    assert set(torch.serialization.get_unsafe_globals_in_checkpoint(file)) == {name, f"{Settable.__module__}.Settable"}
    file.seek(0)
    with pytest.raises(pickle.UnpicklingError, match=rf"add_safe_globals\(\[{name}\]\)"):
        torch.load(file)
    torch.serialization.add_safe_globals([Trusted, Settable])
    file.seek(0)
    back, settable = torch.load(file)
    assert back.x == 3
    assert settable.state == {"a": 1}
    assert set(torch.serialization.get_safe_globals()) == {Trusted, Settable}
    torch.serialization.clear_safe_globals()
    assert torch.serialization.get_safe_globals() == []


def test_trust_for_a_block_and_under_another_name():
    file = forged(pickle.dumps(Trusted(1), protocol=2).replace(f"c{Trusted.__module__}\n".encode(), b"celsewhere\n"))
    with torch.serialization.safe_globals([(Trusted, "elsewhere.Trusted")]):
        assert torch.load(file).x == 1
    file.seek(0)
    with pytest.raises(pickle.UnpicklingError, match=r"elsewhere\.Trusted"):
        torch.load(file)


@pytest.mark.parametrize(("given", "error"), [((Trusted,), ValueError), ((Trusted, 3), TypeError)])
def test_invalid_safe_globals(given, error):
    with torch.serialization.safe_globals([given]), pytest.raises(error, match="Expected"):
        torch.load(written(Trusted(1)))


def test_modules_are_trusted_under_pytorchs_names():
    net = torch.nn.Sequential(torch.nn.Linear(2, 2))
    wanted = [torch.nn.Sequential, torch.nn.Linear]
    file = written(net)
    assert set(torch.serialization.get_unsafe_globals_in_checkpoint(file)) == {
        "torch.nn.modules.container.Sequential", "torch.nn.modules.linear.Linear"}
    with torch.serialization.safe_globals([*wanted, dict]):
        file.seek(0)
        assert repr(torch.load(file)) == repr(net)


ATTACKS = {
    "a call of what is in the stack": (b"\x80\x02K\x01)R.", "Trying to call reduce for unrecognized function 1"),
    "an instance of what is in the stack": (b"\x80\x02K\x01)\x81.", "Can only create new object for nn.Parameter"),
    "state for a number": (b"\x80\x02K\x01}b.", "Can only build Tensor, Parameter, OrderedDict"),
    "items for a number": (b"\x80\x02K\x01K\x02K\x03s.", "Can only SETITEM for dict"),
    "more items for a number": (b"\x80\x02K\x01(K\x02K\x03u.", "Can only SETITEMS for dict"),
    "an item for a tuple": (b"\x80\x02)K\x01a.", "Can only append to lists"),
    "items for a tuple": (b"\x80\x02)(K\x01e.", "Can only extend lists"),
    "the system": (b"\x80\x02cos\nsystem\n.", "unsupported GLOBAL os.system whose module os is blocked"),
    "a builtin": (b"\x80\x02c__builtin__\neval\n.", r"add_safe_globals\(\[eval\]\)"),
    "an instance by name": (b"\x80\x02(ibuiltins\nlist\n.", "Unsupported operand 105"),
    "another name for a storage": (b"\x80\x02X\x06\x00\x00\x00moduleK\x01\x86Q.", "Only persistent_load of storage"),
    "a text for a storage": (b"\x80\x02X\x01\x00\x00\x00aQ.", "persistent_load id must be tuple or int"),
}


@pytest.mark.parametrize("name", ATTACKS)
def test_malicious_pickles_raise(name):
    pickled, text = ATTACKS[name]
    with pytest.raises(pickle.UnpicklingError, match=text):
        torch.load(forged(pickled))


@pytest.mark.parametrize(("size", "stride", "offset", "text"), [
    ((100,), (1,), 0, "out of bounds for storage of size 8"), ((2,), (1,), 1, "out of bounds"),
    ((2,), (100,), 0, "out of bounds"), ((2,), (-1,), 1, "Negative strides"), ((-2,), (1,), 0, "negative dimension"),
    ((2,), (1,), -1, "invalid storage offset"), ((2,), (), 0, "mismatch in length"),
])
def test_tensors_stay_within_their_storage(size, stride, offset, text):
    x = torch.ones(2)
    call, (storage, *_, requires_grad, hooks) = x.__reduce_ex__(2)

    class Forged:
        def __reduce__(self):
            return call, (storage, offset, size, stride, requires_grad, hooks)

    with pytest.raises(RuntimeError, match=text):
        torch.load(written(Forged()))


def test_classes_that_pytorch_allows_and_flambeau_lacks():
    with pytest.raises(NotImplementedError, match=r"torch\.quint8, which flambeau does not have"):
        torch.load(forged(b"\x80\x02ctorch\nquint8\n."))
    with pytest.raises(NotImplementedError, match="the file holds a quantized tensor"):
        torch.load(forged(b"\x80\x02ctorch._utils\n_rebuild_qtensor\n)R."))
    with pytest.raises(AttributeError, match=r"flambeau has no 'torch.nowhere.Thing'"):
        torch.load(forged(b"\x80\x02ctorch.nowhere\nThing\n."), weights_only=False)


def test_state_of_an_ordered_dict():
    d = OrderedDict(a=1)
    d._metadata = {"version": 1}
    assert torch.load(written(d))._metadata == {"version": 1}


def test_arguments():
    file = written(1)
    with pytest.raises(RuntimeError, match="Can not safely load weights when explicit pickle_module is specified"):
        torch.load(file, pickle_module=pickle, weights_only=True)
    with pytest.warns(UserWarning, match="pickle_load_args only works if"):
        assert torch.load(file, encoding="latin1") == 1
    file.seek(0)
    assert torch.load(file, pickle_module=pickle, encoding="latin1") == 1


def test_environment_variables(monkeypatch):
    file = written(Trusted(1))
    monkeypatch.setenv("TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD", "1")
    with pytest.warns(UserWarning, match="forcing weights_only=False"):
        assert torch.load(file).x == 1
    monkeypatch.setenv("TORCH_FORCE_WEIGHTS_ONLY_LOAD", "1")
    with pytest.raises(RuntimeError, match="but both were set"):
        torch.load(file)
    monkeypatch.delenv("TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD")
    file.seek(0)
    with pytest.raises(pickle.UnpicklingError):
        torch.load(file, weights_only=False)
