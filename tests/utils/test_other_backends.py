"""Operators of other backends and of quantization: what PyTorch's CPU build computes, and what it refuses."""

import numpy as np
import pytest

import flambeau
from flambeau.environment import other_backends

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.parity


@pytest.mark.parametrize("name", other_backends.__all__)
def test_names_are_pytorchs(name):
    assert hasattr(torch, name)
    assert hasattr(flambeau, name)


def image(module):
    return module.tensor(np.arange(48, dtype=np.float32).reshape(1, 3, 4, 4))


CALLS = {
    "cudnn_is_acceptable": lambda m: m.cudnn_is_acceptable(image(m)),
    "compiled_with_cxx11_abi": lambda m: m.compiled_with_cxx11_abi(),
    "mkldnn_convolution": lambda m: m.mkldnn_convolution(image(m), m.ones(2, 3, 2, 2), m.ones(2), [1, 0], [2, 1],
                                                         [1, 1], 1),
    "dequantize": lambda m: m.dequantize(m.ones(2, dtype=m.float64)),
    "fake_quantize_per_tensor_affine": lambda m: m.fake_quantize_per_tensor_affine(image(m) / 7, 0.1, 3, 0, 15),
    "fake_quantize_per_channel_affine": lambda m: m.fake_quantize_per_channel_affine(
        image(m) / 7, m.tensor([0.1, 0.2, 0.3]), m.tensor([0, 1, 2], dtype=m.int32), 1, -8, 7),
    "crow_indices_copy": lambda m: m.crow_indices_copy(m.eye(3).to_sparse_csr()),
    "row_indices_copy": lambda m: m.row_indices_copy(m.eye(3).to_sparse_csc()),
    "sym_sqrt": lambda m: m.sym_sqrt(4), "sym_constrain_range": lambda m: m.sym_constrain_range(3, min=1, max=5),
    "batch_norm_update_stats": lambda m: m.batch_norm_update_stats(image(m), m.zeros(3), m.ones(3), 0.1)[1],
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("call", [
    lambda m, x: m.native_norm(x.to_sparse()), lambda m, x: m.native_norm(x.to_sparse(), 1),
    lambda m, x: m.native_norm(x.to_sparse_csr()), lambda m, x: m.native_norm(x.to_sparse(), None, [], False, None),
    lambda m, x: m.native_norm(x.to_sparse(), float("inf"), [0, 1], False, None),
    lambda m, x: m.native_norm(x.to_sparse(), 2, [0], False, None),
    lambda m, x: m.native_norm(x.to_sparse(), 2, [0, 1], True, None)])
def test_norms_of_sparse_tensors(call):
    def outcome(module):
        try:
            return call(module, module.tensor([[3.0, 0.0], [-4.0, 1.0]])).item()
        except Exception as error:
            return type(error), str(error).split(", or was omitted")[0].rstrip(".")

    assert outcome(flambeau) == pytest.approx(outcome(torch)) if isinstance(outcome(torch), float) else (
        outcome(flambeau) == outcome(torch))


@pytest.mark.parametrize("name", CALLS)
def test_values(name):
    expected, found = CALLS[name](torch), CALLS[name](flambeau)
    if isinstance(expected, torch.Tensor):
        assert str(expected.dtype).split(".")[1] == str(found.dtype).split(".")[1]
        np.testing.assert_allclose(found.numpy(), expected.numpy(), rtol=1e-5, atol=1e-6)
    else:
        assert expected == found


@pytest.mark.parametrize("call", [
    lambda m: m.sym_constrain_range(9, min=1, max=5), lambda m: m.int_repr(m.ones(1)), lambda m: m.q_scale(m.ones(1)),
    lambda m: m.mkldnn_max_pool2d(m.ones(1, 1, 4, 4), 2), lambda m: m.native_norm(m.ones(2)),
    lambda m: m.row_indices_copy(m.eye(2).to_sparse_csr()),
    lambda m: m.fake_quantize_per_tensor_affine(m.ones(2), 0.1, 0, 3, 1)])
def test_refusals(call):
    texts = []
    for module in (torch, flambeau):
        with pytest.raises(RuntimeError) as error:
            call(module)
        texts.append((type(error.value), str(error.value).split(", or was omitted")[0].rstrip(".")))
    assert texts[0] == texts[1]


def test_gradients_of_fake_quantization_stop_at_the_limits():
    for module in (torch, flambeau):
        x = module.tensor([-5.0, 0.12, 0.34, 9.0], requires_grad=True)
        module.fake_quantize_per_tensor_affine(x, 0.1, 0, 0, 15).sum().backward()
        assert x.grad.tolist() == [0, 1, 1, 0]


def test_quantized_tensors_are_refused():
    with pytest.raises(NotImplementedError, match="quantized"):
        flambeau.quantize_per_tensor(flambeau.ones(2), 1.0, 0, None)


def test_modes_are_cloned():
    for name in ("no_grad", "enable_grad", "inference_mode"):
        assert isinstance(getattr(flambeau, name)().clone(), getattr(flambeau, name))


def test_tensors_with_two_zeros_in_four_elements_are_not_made():
    for name in ("SparseSemiStructuredTensorCUTLASS", "SparseSemiStructuredTensorCUSPARSELT"):
        texts = []
        for module in (torch, flambeau):
            with pytest.raises(NotImplementedError) as error:
                getattr(module.sparse, name).prune_dense_static_sort(module.ones(64, 64))
            texts.append(str(error.value).split(", or was omitted")[0].rstrip("."))
        assert texts[0] == texts[1]


@pytest.mark.parametrize("shape", [(0, 3), (4, 3, 0), (4, 0), (3,)])
def test_statistics_of_no_elements_are_refused(shape):
    with pytest.raises(Exception) as expected:
        torch.batch_norm_update_stats(torch.ones(shape), torch.zeros(3), torch.ones(3), 0.1)
    with pytest.raises(expected.type) as found:
        flambeau.batch_norm_update_stats(flambeau.ones(shape), flambeau.zeros(3), flambeau.ones(3), 0.1)
    assert str(found.value) == str(expected.value)
