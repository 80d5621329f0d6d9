"""Files in both directions: flambeau and PyTorch load each other's files, and write the same bytes."""

from __future__ import annotations

import io
import re
import warnings
import zipfile

import pytest

import flambeau
from tests.serialization.samples import SAFE, UNSAFE, plain

torch = pytest.importorskip("torch")
pytestmark = [pytest.mark.parity, pytest.mark.filterwarnings("ignore::UserWarning")]

ALL = {**SAFE, **UNSAFE}


def written(library, obj, **options):
    file = io.BytesIO()
    library.save(obj, file, **options)
    file.seek(0)
    return file


@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize("options", [{}, {"_use_new_zipfile_serialization": False}], ids=["zip", "legacy"])
def test_files_are_interchangeable(name, options):
    if options and name in ("a generator", "a storage", "every dtype"):
        pytest.skip("PyTorch itself does not read these from the old format")
    theirs, ours = ALL[name](torch), ALL[name](flambeau)
    if name in ("a module", "recurrent", "moved classes"):  # drawn anew each time
        torch.manual_seed(0)
        theirs = ALL[name](torch)
        flambeau.manual_seed(0)
        ours = ALL[name](flambeau)
    safe = name in SAFE
    assert plain(torch.load(written(flambeau, ours, **options), weights_only=safe), torch) == plain(
        torch.load(written(torch, theirs, **options), weights_only=safe), torch)
    assert plain(flambeau.load(written(torch, theirs, **options), weights_only=safe), flambeau) == plain(
        flambeau.load(written(flambeau, ours, **options), weights_only=safe), flambeau)


@pytest.mark.parametrize("name", ["a number", "every dtype", "views", "leaves", "attributes", "state dicts", "a module",
                                  "named results", "an optimizer", "a storage", "the same twice"])
def test_the_files_are_the_same(name):
    torch.manual_seed(0)
    theirs = written(torch, ALL[name](torch)).getvalue()
    flambeau.manual_seed(0)
    ours = written(flambeau, ALL[name](flambeau)).getvalue()
    until = b"archive/.data/serialization_id"  # a number of the writer's own
    assert ours[:ours.index(until)] == theirs[:theirs.index(until)]
    assert len(ours) == len(theirs)
    for mine, yours in zip(*(zipfile.ZipFile(io.BytesIO(file)).infolist() for file in (ours, theirs)), strict=True):
        assert (mine.filename, mine.header_offset, mine.flag_bits) == (
            yours.filename, yours.header_offset, yours.flag_bits)


def test_training_continues_in_the_other_library():
    def begin(library):
        library.manual_seed(0)
        net = library.nn.Sequential(library.nn.Linear(3, 4), library.nn.Tanh(), library.nn.Linear(4, 1))
        return net, library.optim.Adam(net.parameters(), lr=0.1, weight_decay=0.01)

    def step(library, net, optimizer):
        x = library.linspace(-1, 1, 6).reshape(2, 3)
        optimizer.zero_grad()
        net(x).square().sum().backward()
        optimizer.step()

    for first, second in ((torch, flambeau), (flambeau, torch)):
        net, optimizer = begin(first)
        step(first, net, optimizer)
        file = written(first, [net.state_dict(), optimizer.state_dict()])
        other, other_optimizer = begin(second)
        weights, state = second.load(file)
        other.load_state_dict(weights)
        other_optimizer.load_state_dict(state)
        for _ in range(3):
            step(first, net, optimizer)
            step(second, other, other_optimizer)
        for a, b in zip(net.parameters(), other.parameters(), strict=True):
            torch.testing.assert_close(torch.tensor(a.tolist()), torch.tensor(b.tolist()))


def test_generator_state_is_interchangeable():
    g = torch.Generator().manual_seed(9)
    torch.randn(7, generator=g)
    back = flambeau.load(written(torch, g), weights_only=False)
    assert flambeau.rand(3, generator=back).tolist() == torch.rand(3, generator=g).tolist()
    assert torch.rand(3, generator=torch.load(written(flambeau, back), weights_only=False)).tolist() == flambeau.rand(
        3, generator=back).tolist()


@pytest.mark.parametrize("options", [{}, {"_use_new_zipfile_serialization": False}], ids=["zip", "legacy"])
def test_conjugate_and_negative_bits(options):
    z = torch.tensor([1 + 2j, 3j])
    back = flambeau.load(written(torch, [z.conj(), z.clone().conj().imag, z], **options))
    assert [x.tolist() for x in back] == [[1 - 2j, -3j], [-2, -3], [1 + 2j, 3j]]
    assert (back[0].is_conj(), back[1].is_neg()) == (True, True)
    again = torch.load(written(flambeau, back, **options))
    assert [(x.tolist(), x.is_conj(), x.is_neg()) for x in again] == [
        (x.tolist(), x.is_conj(), x.is_neg()) for x in back]


def test_mapped_files(tmp_path):
    x = [torch.arange(5.0), torch.ones(3, dtype=torch.bfloat16), torch.empty(0)]
    torch.save(x, tmp_path / "theirs.pt")
    flambeau.save([flambeau.arange(5.0), flambeau.ones(3, dtype=flambeau.bfloat16), flambeau.empty(0)],
                  tmp_path / "ours.pt")
    for library in (torch, flambeau):
        for name in ("theirs.pt", "ours.pt"):
            back = library.load(tmp_path / name, mmap=True)
            assert [y.tolist() for y in back] == [y.tolist() for y in x]
    from torch.utils.serialization import config
    with config.patch("load.calculate_storage_offsets", True):  # computed from how PyTorch lays records out
        back = torch.load(tmp_path / "ours.pt", mmap=True)
    assert [y.tolist() for y in back] == [y.tolist() for y in x]


def test_plain_pickles_of_pytorch():
    import pickle

    from flambeau.serialization.pickling import unpickler
    text = pickle.dumps({"a": torch.arange(3), "p": torch.nn.Parameter(torch.ones(2))})
    back = unpickler(pickle, io.BytesIO(text), None).load()
    assert back["a"].tolist() == [0, 1, 2]
    assert type(back["p"]) is flambeau.nn.Parameter


REFUSED = {
    "a class": lambda t: t.nn.Linear(1, 1),
    "a function": lambda t: eval,
    "a blocked module": lambda t: __import__("os").getcwd,
    "a frozen set": lambda t: frozenset({1}),
    "a long number": lambda t: 1 << 3000,
    "a named result": lambda t: t.max(t.ones(2, 2), 0),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused_is_refused_in_the_same_words(name):
    said = []
    for library in (torch, flambeau):
        file = written(library, REFUSED[name](library))
        with pytest.raises(Exception, match="Weights only load failed") as caught:
            library.load(file)
        said.append((type(caught.value), str(caught.value)))
    assert said[0] == said[1]


BROKEN = {
    "nothing": lambda file: b"",
    "text": lambda file: b"no such opcode",
    "a memo": lambda file: b"hello world",
    "cut in the header": lambda file: file[:10],
    "cut in the middle": lambda file: file[:500],
    "cut at the end": lambda file: file[:-3],
}


@pytest.mark.parametrize("name", BROKEN)
@pytest.mark.parametrize("weights_only", [True, False])
def test_broken_files_are_called_broken_in_the_same_words(name, weights_only, tmp_path):
    broken = BROKEN[name](written(torch, [torch.ones(3)]).getvalue())
    (tmp_path / "broken.pt").write_bytes(broken)
    for file in (lambda: io.BytesIO(broken), lambda: tmp_path / "broken.pt"):
        said = []
        for library in (torch, flambeau):
            with pytest.raises(Exception, match="") as caught:
                library.load(file(), weights_only=weights_only)
            said.append((type(caught.value), str(caught.value)))
        assert said[0] == said[1]


@pytest.mark.parametrize("place", ["cpu", "cuda", "cuda:1", "xpu", "hpu", "mps", "foo", {"cpu": "cuda"}, {"cpu": "cpu"},
                                   3])
def test_places(place):
    said = []
    for library in (torch, flambeau):
        try:
            said.append(library.load(written(torch, torch.ones(2)), map_location=place).tolist())
        except Exception as error:
            said.append((type(error), str(error)))
    assert said[0] == said[1]


def test_a_function_of_places():
    seen = []
    flambeau.load(written(torch, [torch.ones(2), torch.ones(3)]),
                  map_location=lambda storage, where: seen.append((len(storage), where)))
    assert seen == [(8, "cpu"), (12, "cpu")]


def test_names_are_pytorchs():
    """Every public class and function is found under the name it is written under, in both libraries."""
    import importlib
    import inspect
    import sys

    from flambeau._tensor import functions
    from flambeau.serialization import names

    missing, lost = [], []
    for place in ("", "nn", "nn.functional", "nn.init", "optim", "optim.lr_scheduler"):
        library = importlib.import_module(f"flambeau.{place}".rstrip("."))
        for name in dir(library if place else functions):
            obj = getattr(library, name, None)
            if name.startswith("_") or not (isinstance(obj, type) or inspect.isfunction(obj)):
                continue
            where = names.torch_name(obj)
            if where is None or (re.match(r"torch\.(nn\.modules|optim)", where[0]) is None and not hasattr(
                    importlib.import_module(f"torch.{place}".rstrip(".")), name)):
                continue
            module, path = where
            if names.resolve(module, path) is not obj:
                lost.append((place, name, where))
            found = sys.modules.get(module) or importlib.import_module(module)
            for part in path.split("."):
                found = getattr(found, part, None)
            if found is None:
                missing.append((place, name, where))
    assert not lost
    assert not missing


def test_flambeau_does_not_import_pytorch():
    import subprocess
    import sys

    file = written(torch, [torch.nn.LSTM(2, 2), torch.max(torch.ones(2, 2), 0), torch.sin, torch.Tensor.add])
    code = ("import sys, io, warnings, flambeau; warnings.simplefilter('ignore');"
            "x = flambeau.load(io.BytesIO(sys.stdin.buffer.read()), weights_only=False);"
            "flambeau.save(x, io.BytesIO()); print(x[0], 'torch' in sys.modules)")
    done = subprocess.run([sys.executable, "-c", code], input=file.getvalue(), capture_output=True, check=False)
    assert done.stdout.decode().strip() == "LSTM(2, 2) False", done.stderr.decode()


def test_warnings_name_the_protocol():
    for library in (torch, flambeau):
        file = written(library, [1.5], pickle_protocol=3)
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            library.load(file)
        assert str(seen[0].message).startswith("Detected pickle protocol 3 in the checkpoint")
