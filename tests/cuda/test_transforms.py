"""Function transforms, gradcheck and layers on devices: what they make is where their arguments are."""

from __future__ import annotations

import pytest

import flambeau as torch
from tests.backends.cuda_devices.on_fake_cupy import cupy_devices


@pytest.fixture(autouse=True)
def devices():
    with cupy_devices():
        yield


def test_copies_between_devices_are_batched_and_have_tangents():
    x = torch.tensor([[1.0, 2.0], [3.0, 4.0]], device="cuda")
    moved = torch.vmap(lambda row: row.cpu() * 2)(x)
    assert moved.device.type == "cpu"
    assert moved.tolist() == [[2, 4], [6, 8]]
    value, tangent = torch.func.jvp(lambda row: row.cpu() ** 2, (x[0],), (torch.ones_like(x[0]),))
    assert (value.tolist(), tangent.tolist()) == ([1, 4], [2, 4])
    assert torch.func.hessian(lambda row: (row.cpu() ** 3).sum())(x[0]).tolist() == [[6, 0], [0, 12]]
    y = x[0].requires_grad_()
    out = y.cpu()
    rows = torch.vmap(lambda g: torch.autograd.grad(out, y, g)[0])(torch.eye(2))
    assert rows.device == y.device
    assert rows.tolist() == [[1, 0], [0, 1]]


@pytest.mark.parametrize("fast", [False, True])
def test_gradcheck(fast):
    x = torch.tensor([0.5, -1.0], dtype=torch.double, device="cuda", requires_grad=True)
    assert torch.autograd.gradcheck(lambda x: (x.sin() * x, x.cpu()), (x,), fast_mode=fast, check_forward_ad=True)
    assert torch.autograd.gradgradcheck(torch.tanh, (x,), fast_mode=fast)


def test_gradients_are_where_their_tensors_are():
    x = torch.ones(2, device="cuda")
    with pytest.raises(RuntimeError, match="gradient with device type 'cpu' to a tensor with device type 'cuda'"):
        x.grad = torch.ones(2)
    with pytest.raises(RuntimeError, match="gradient with device type 'cuda' to a tensor with device type 'cpu'"):
        torch.ones(2).grad = x


def test_pinned_copies():
    x = torch.ones(2, requires_grad=True)
    pinned = x.pin_memory()
    assert pinned.is_pinned()
    assert pinned.grad_fn.name() == "PinMemoryBackward0"
    (pinned * 3).sum().backward()
    assert x.grad.tolist() == [3, 3]
    with torch.autograd.graph.save_on_cpu(pin_memory=True):
        y = torch.ones(2, device="cuda", requires_grad=True) ** 2
    assert y.grad_fn._saved_self.is_cuda


def test_packed_sequences():
    x = torch.arange(12.0, device="cuda").reshape(3, 2, 2)
    packed = torch.nn.utils.rnn.pack_padded_sequence(x, torch.tensor([2, 3]), enforce_sorted=False)
    assert packed.data.is_cuda
    assert packed.sorted_indices.is_cuda
    back, lengths = torch.nn.utils.rnn.pad_packed_sequence(packed)
    assert lengths.tolist() == [2, 3]
    assert back.is_cuda
    assert back[:2].tolist() == x[:2].tolist()


def test_layers_that_make_tensors():
    assert torch.nn.CrossMapLRN2d(2)(torch.ones(1, 3, 2, 2, device="cuda")).is_cuda
    one_hot = torch.vmap(lambda x: torch.nn.functional.one_hot(x, 3))(torch.tensor([1, 2], device="cuda"))
    assert one_hot.tolist() == [[0, 1, 0], [0, 0, 1]]


def test_gradients_have_the_layout_of_their_leaves():
    a = torch.rand(2, 3, 4, 5, device="cuda").to(memory_format=torch.channels_last).requires_grad_()
    b = torch.rand(2, 3, 4, 5, device="cuda").requires_grad_()
    for loss in (a.sum() + b.sum(), (a * b).sum()):
        a.grad = b.grad = None
        loss.backward()
        assert (a.grad.stride(), b.grad.stride()) == (a.stride(), b.stride())
    c = torch.empty_strided((2, 2), (4, 2), device="cuda").fill_(1).requires_grad_()
    (c * torch.rand(2, 2, device="cuda")).sum().backward()
    assert c.grad.stride() == (2, 1)


def test_a_number_is_among_elements():
    assert torch.isin(1, torch.arange(3, device="cuda")).item()
    assert torch.isin(torch.arange(3, device="cuda"), 1).tolist() == [False, True, False]


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_statistics_that_gradients_are_scaled_by(dtype):
    norm = torch.nn.BatchNorm1d(2).to("cuda", dtype).eval()
    x = torch.randn(3, 2, device="cuda", dtype=dtype, requires_grad=True)
    norm(x).sum().backward()
    torch.testing.assert_close(x.grad.cpu(), torch.ones(3, 2, dtype=dtype))


@pytest.mark.parametrize("device", ["cuda", "meta"])
def test_shapes_that_cannot_be_joined(device):
    a, b, c = torch.ones(3, 2, device=device), torch.ones(3, 3, device=device), torch.ones(3, device=device)
    with pytest.raises(RuntimeError, match=r"dimension 0\. Expected size 2 but got size 3 for tensor number 1"):
        torch.cat([a, b])
    with pytest.raises(RuntimeError, match="Tensors must have same number of dimensions: got 1 and 2"):
        torch.cat([c, a])
    with pytest.raises(RuntimeError, match=r"but got \[3, 2\] at entry 0 and \[3, 3\] at entry 1"):
        torch.stack([a, b])
    assert torch.cat([c[:0], a]).shape == (3, 2)
    assert torch.cat([a, b], 1).shape == (3, 5)
