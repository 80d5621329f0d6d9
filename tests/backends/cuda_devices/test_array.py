"""Arrays in a device's memory: the host makes views of them, and cannot compute."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest

from flambeau.backends.cuda_devices.array import DeviceArray
from flambeau.backends.cuda_devices.fake import FakeRuntime


@pytest.fixture
def array() -> DeviceArray:
    runtime = FakeRuntime()
    made = runtime.upload(np.arange(6, dtype=np.float32).reshape(2, 3), 0)
    made.runtime = runtime  # keeps the device
    return made


@pytest.mark.parametrize("compute", [
    lambda a: a + 1, lambda a: 1 - a, lambda a: np.exp(a), lambda a: np.add(a, a), lambda a: np.sum(a),
    lambda a: np.concatenate([a, a]), lambda a: np.where(a, a, a), lambda a: a.sum(), lambda a: a.astype(int),
    lambda a: a.copy(), lambda a: a.item(), lambda a: a.tolist(), lambda a: a[0, 0], lambda a: a[[0, 1]],
    lambda a: a[np.array([0])], lambda a: bool(a), lambda a: float(a[0, :1]), lambda a: list(a[0]), lambda a: 1 in a,
    lambda a: a.T.reshape(-1), lambda a: a.fill(0), lambda a: a.__setitem__(0, 1), lambda a: a.tobytes(),
    lambda a: copy.deepcopy(a), lambda a: pickle.dumps(a), lambda a: a.flat, lambda a: a @ a.T, lambda a: a == a,
])
def test_the_host_cannot_compute(array, compute):
    with pytest.raises(TypeError, match="in a device's memory: the host cannot compute"):
        compute(array)


def test_reads_past_the_type_are_nonsense(array):
    """`np.asarray` of a subclass asks nobody; the fake device leaves a pattern where the elements seem to be."""
    assert set(np.asarray(array).view(np.uint8).ravel().tolist()) == {0xA5}


def test_views_are_made_by_numpy(array):
    memory = array.memory
    for view in (array[1:], array.T, array.reshape(6), array[None], array[..., ::2], np.broadcast_to(array, (4, 2, 3)),
                 array.view(np.int32), array[1, 1:]):
        assert view.__class__ is DeviceArray
        assert view.memory is memory
    assert array[1, 1:].byte_offset == 16
    assert str(array.torch_device) == "cuda:0"


def test_copies(array):
    runtime = array.runtime
    assert runtime.download(array).tolist() == [[0, 1, 2], [3, 4, 5]]
    transposed = runtime.download(array.T)
    assert transposed.tolist() == [[0, 3], [1, 4], [2, 5]]
    assert transposed.strides == (4, 12)
    other = runtime.empty(0, (2, 3), np.dtype(np.float32))
    runtime.copy_between(other, array)
    assert runtime.download(other[1]).tolist() == [3, 4, 5]
