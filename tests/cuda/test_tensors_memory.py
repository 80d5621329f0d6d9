"""What looks at or replaces a tensor's memory, on devices."""

from __future__ import annotations

import pytest

import flambeau as torch
from tests.backends.cuda_devices.on_fake_cupy import cupy_devices


@pytest.fixture(autouse=True)
def devices():
    with cupy_devices():
        yield


def test_resizing():
    x = torch.arange(6.0, device="cuda")
    assert x.resize_as_(torch.ones(2, 3)).tolist() == [[0, 1, 2], [3, 4, 5]]
    assert torch.resize_as_(x, torch.ones(3, device="cuda")).tolist() == [0, 1, 2]
    assert x.resize_(2, 4).shape == (2, 4)
    assert x.is_cuda


def test_memory_is_replaced():
    x = torch.arange(6.0, device="cuda")
    assert x.set_().is_cuda
    assert x.shape == (0,)
    assert x.set_(torch.ones(4, device="cuda").untyped_storage(), 1, (2,), (1,)).tolist() == [1, 1]
    x.data = torch.zeros(3, device="cuda")
    assert x.tolist() == [0, 0, 0]


def test_sharing_is_for_nothing():
    x = torch.ones(2, device="cuda")
    assert x.share_memory_() is x
    assert x.is_shared()


def test_python_functions_of_elements_are_for_the_cpu():
    x = torch.ones(2, device="cuda")
    with pytest.raises(TypeError, match=r"^apply_ is only implemented on CPU tensors$"):
        x.apply_(lambda v: v)
    with pytest.raises(TypeError, match=r"^map_ is only implemented on CPU tensors$"):
        x.map_(x, lambda v, w: v)


def test_cuda_array_interface():
    x = torch.arange(6, device="cuda").view(2, 3)
    assert x.__cuda_array_interface__ == {
        "typestr": "<i8", "shape": (2, 3), "strides": None, "data": (x.data_ptr(), False), "version": 2}
    assert x.t().__cuda_array_interface__["strides"] == (8, 24)
    assert x.bfloat16().__cuda_array_interface__["typestr"] == "<V2"
    assert x[:0].__cuda_array_interface__["data"] == (0, False)
    with pytest.raises(RuntimeError, match="on Variable that requires grad"):
        _ = x.float().requires_grad_().__cuda_array_interface__
    with pytest.raises(AttributeError, match=r"non-CUDA tensor type: flambeau.FloatTensor If CUDA data"):
        _ = torch.ones(1).__cuda_array_interface__


def test_types_have_devices():
    x, y = torch.ones(1, device="cuda"), torch.ones(1, dtype=torch.double)
    assert x.type("torch.DoubleTensor").type() == "flambeau.DoubleTensor"
    assert y.type("torch.cuda.FloatTensor").type() == "flambeau.cuda.FloatTensor"
    assert x.type(torch.double).type() == "flambeau.cuda.DoubleTensor"
    assert y.type_as(x).type() == "flambeau.cuda.FloatTensor"
    assert x.type_as(y).type() == "flambeau.DoubleTensor"


def test_pickles_stay_on_their_device():
    import io

    x = torch.arange(6.0, device="cuda")
    file = io.BytesIO()
    torch.save({"a": x, "b": x[1:]}, file)
    file.seek(0)
    found = torch.load(file)
    assert found["a"].is_cuda
    assert found["b"].data_ptr() == found["a"].data_ptr() + 4
    file.seek(0)
    assert torch.load(file, map_location="cpu")["b"].device.type == "cpu"
