"""Storages compared with PyTorch's: construction, files, buffers, slices, legacy classes."""

from __future__ import annotations

import warnings

import pytest

import flambeau

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.parity

PROGRAMS = """
U([1, 2, 300, -1]).tolist()
U(["a"])
U(2.5)
U(3, device="cpu").nbytes()
U(2, device="meta").device
U()
U([1, 2, 3])[1]
U([1, 2, 3])[5]
U([1, 2, 3])[1:]
U([1, 2, 3])[::2]
U(3).fill_(7).tolist()
U(3).copy_(U([1, 2, 3])).tolist()
U(3).copy_(U([1, 2]))
U([1, 2]).resize_(4).nbytes()
U([1, 2]).type()
U([1, 2]).float()
U([1, 2]).complex_float()
list(U([1, 2]))
bytes(U([1, 2]))
U(3) == U(3)
U(3).new().nbytes()
U(3).get_device()
U(3).is_cuda
U.from_buffer(b"abcdefgh", "big", dtype=lib.int16).tolist()
U.from_buffer(b"abcdefgh", dtype=lib.float32)
U.from_file(path, False, 16).tolist()
U.from_file(path, False, 32)
U.from_file(path + "none", False, 4)
U.from_file(path, nbytes=4).nbytes()
U.from_file(path, True, 16).filename
U.from_file(path, False, 16).filename
U.from_file(path, False, 16).is_shared()
U.from_file(path).nbytes()
U.from_file(path, False, 16)[2:5]
lib.asarray(U.from_file(path, False, 16)[2:5], dtype=lib.uint8)
lib.asarray(U.from_file(path, False, 16), dtype=lib.float32)
lib.asarray(U(4))
lib.tensor(U([1] * 8))
lib.as_tensor(U([1] * 8))
lib.from_file(path, size=4, dtype=lib.float32)
lib.from_file(path, True, 4, dtype=lib.uint8)
lib.from_file(path, size=20, dtype=lib.uint8)
lib.FloatStorage([1, 2, 3])
lib.FloatStorage(2).size()
lib.FloatStorage().dtype
lib.LongStorage([1, 2])[1]
lib.LongStorage([1, 2])[5]
lib.ByteTensor(lib.ByteStorage._from_buffer(b"abc"))
lib.tensor([1., 2.]).storage().fill_(3)
lib.FloatStorage.from_file(path, False, 4).tolist()
isinstance(lib.FloatStorage(2), lib.FloatStorage), isinstance(lib.LongStorage(2), lib.FloatStorage)
isinstance(lib.ones(2).storage(), lib.FloatStorage)
lib.TypedStorage([1, 2], dtype=lib.float32).type()
lib.TypedStorage(wrap_storage=U(8), dtype=lib.float32).size()
lib.zeros(2).set_(U([1] * 8))
lib.zeros(2).set_(lib.FloatStorage([1, 2, 3]))
lib.empty(0, dtype=lib.uint8).set_(U([1, 2, 3]))
U(2, device="meta")[0]
U(2, device="meta")
U(2, device="meta").fill_(1).tolist()
U(2).copy_(U(2, device="meta"))
U(2, device="meta").copy_(U(2)).clone().device
U(2, device="meta").float()
U(2, device="meta").resize_(5).nbytes()
U(2, device="meta").to(device="meta").data_ptr()
U(2, device="meta").to(device="cpu")
U(2).to(device="meta")
U(2, device="meta").share_memory_()
U(2, device="meta")._share_filename_cpu_()
U(2, device="meta").pin_memory()
lib.tensor(U(8, device="meta"))
lib.ones(3, device="meta").storage()
lib.ones(3, device="meta").storage().tolist()
lib.TypedStorage([1, 2], dtype=lib.int16, device="meta").nbytes()
lib.TypedStorage([1, 2], dtype=lib.int16, device="meta").type()
lib.TypedStorage(3, dtype=lib.int16, device="meta")[0]
lib.TypedStorage([1], dtype=lib.int16).copy_(lib.TypedStorage([1], dtype=lib.int16, device="meta"))
lib.tensor(lib.IntStorage([1, 2]))
lib.tensor(lib.IntStorage([1, 2]), dtype=lib.bool)
lib.as_tensor(lib.HalfStorage([1, 2]), dtype=lib.half)
lib.asarray(lib.FloatStorage([1, 2]), dtype=lib.complex64)
lib.FloatTensor(lib.FloatStorage([1, 2])).fill_(3).storage().tolist()
lib.DoubleTensor(lib.FloatStorage([1, 2]))
lib.ByteTensor(U([1, 2]))
lib.zeros(1).new(lib.FloatStorage([1, 2]))
lib.zeros(1).new(size=(3, 4)).shape
lib.FloatTensor(lib.FloatStorage(2), 2)
lib.LongTensor((6, 0), 1, 1, 0)
(lambda s: (s._cdata == lib.FloatTensor(s).untyped_storage()._cdata))(lib.FloatStorage(2))
lib.is_storage(U(2)), lib.is_storage(lib.FloatStorage(1)), lib.is_storage(lib.ones(1))
""".strip().splitlines()


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    file = tmp_path_factory.mktemp("storage") / "bytes"
    file.write_bytes(bytes(range(16)))
    return str(file)


@pytest.mark.parametrize("program", PROGRAMS)
def test_programs(program, path):
    texts = []
    for lib in (torch, flambeau):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                result = repr(eval(program, {"lib": lib, "U": lib.UntypedStorage, "path": path}))
            except Exception as error:
                result = f"{type(error).__name__}: {error}".split("\n")[0]
        texts.append(result.replace("flambeau.", "torch."))
    assert texts[1] == texts[0]


def test_writes_to_a_shared_file(path):
    flambeau.from_file(path, shared=False, size=2, dtype=flambeau.uint8).fill_(9)
    assert flambeau.from_file(path, size=2, dtype=flambeau.uint8).tolist() == [0, 1]
    flambeau.from_file(path, shared=True, size=2, dtype=flambeau.uint8).fill_(9)
    assert flambeau.from_file(path, size=3, dtype=flambeau.uint8).tolist() == [9, 9, 2]
    flambeau.from_file(path, shared=True, size=2, dtype=flambeau.uint8)[:] = flambeau.arange(2)


def test_parts_are_storages_of_their_own():
    whole = flambeau.UntypedStorage([1, 2, 3, 4])
    x, y = (flambeau.asarray(part, dtype=flambeau.uint8) for part in (whole[:2], whole[2:]))
    assert x.untyped_storage().nbytes() == y.untyped_storage().nbytes() == 2
    x.fill_(7)
    assert whole.tolist() == [7, 7, 3, 4]


def test_resizing_moves_the_tensors():
    x = flambeau.arange(3, dtype=flambeau.uint8)
    y = x[1:]
    x.untyped_storage().resize_(5)
    x.fill_(7)
    assert y.tolist() == [7, 7]
    assert x.untyped_storage().tolist() == [7, 7, 7, 0, 0]
    with pytest.raises(NotImplementedError):
        x.untyped_storage().resize_(1)
