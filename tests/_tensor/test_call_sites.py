"""Errors tell how an argument was passed, by position or by name, whatever a fast path has made of it."""

from __future__ import annotations

import importlib
import importlib.util
from typing import Any

import numpy as np
import pytest

import flambeau

pytestmark = [pytest.mark.parity,
              pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="PyTorch is the oracle"),
              pytest.mark.filterwarnings("ignore")]


class Index:
    """What has `__index__` is an integer in lists."""

    def __index__(self) -> int:
        return 1


#: wrong calls; `x` is a tensor
WRONG = (
    "torch.all(x, dim=2., keepdim=False)", "torch.all((1, 'a'), dim=0, keepdim=True)", "x.amin(dim=0, keepdim=[1])",
    "x.amin(0, [1])", "torch.amin(x, 0, keepdim=1.5)", "torch.mean(x, dim=[None], keepdim=False)",
    "torch.mean(x, [None], False)", "torch.mean(x, [None], keepdim=False)", "x.sum(dim='a')", "x.sum(1, 3)",
    "x.sum(torch.tensor([1, 0]))", "x.any(torch.tensor([1]))", "torch.permute(x, torch.tensor([1, 0]))",
    "torch.tile(x, range(2))", "torch.permute(x, {0, 1})",
    "x.mean(0, 1)", "torch.prod(x, 0, keepdim=1)", "torch.mean(x, 1, 1)", "torch.Tensor.sum(x, 'a')",
    "torch.argmin(x, [1., 2])", "torch.argmin(x, dim=[1., 2])", "torch.argmin(x, 0, 1)", "x.argmax(0, keepdim=1)",
    "torch.max(x, dim='a')", "torch.max(x, dim=0, keepdim='a')", "x.max(keepdim='a', dim=0)",
    "torch.logsumexp(x, dim='a')", "torch.cumsum(x, dim='a')", "torch.cumsum(True, 1)", "torch.std(x, dim='a')",
    "torch.special.legendre_polynomial_p(x, n=(True,))", "torch.special.hermite_polynomial_h(x, n='a', out=[x])",
    "torch.add(x, other='a')", "torch.add(x, 'a', alpha=1)", "torch.add(input=x, other='a')", "x.mul(other=None)",
    "torch.Tensor.add(x, other='a')", "torch.pow(x, exponent='a')", "torch.atan2(x, other=1)", "torch.atan2(x, 1)",
    "x.copy_(other=[1])", "x.copy_([1])", "torch.matmul(x, other=1)", "torch.mm(x, mat2=1)", "x.matmul(1)",
    "torch.addmm(x, mat1=1, mat2=x)", "torch.gather(x, 0, index=1)", "torch.linalg.norm(x, dim='a')",
    "x.size([1])", "x.size(True)", "x.size(dim=1.5)", "x.stride(1.5)", "x.stride(dim='a')",
    "F.softmax(x, dim='a')", "torch.norm(x, dim='a')", "F.normalize(x, dim='a')",
    "torch.meshgrid(x[0], indexing=np.array('ij'))", "torch.special.round(1)", "torch.special.round(x, decimals='a')",
    "F.one_hot(i, num_classes=1.5)", "F.one_hot(i, np.float64(1))", "F.one_hot(i, np.array(3))",
    "torch.channel_shuffle(x, 1.)", "torch.channel_shuffle(x, groups=1.)",
    "torch.split_with_sizes(x, [np.int64(1)])",
    "torch.eye(1, 10, device='cpu', dtype=(1, 'a'), requires_grad=False)",
    "torch.eye(0, 7, device='cpu', dtype=torch.float32, requires_grad=False, other=2)",
    "torch.eye(2, requires_grad=0.)",
    "x.sum().stride(())", "x.sum().stride(1)", "x.sum().size(np.int64(1))", "x.stride(np.array([1, 2]))",
    "F.linear(x, torch.float32)", "F.linear(x, x, (1,))", "F.linear(x, x, bias=1)", "torch.unflatten(x, '0', (2, 2))",
    "torch.fft.fft(x, 1.5)", "x.equal(1)", "torch.reshape(x, [1., 2])", "x.reshape([1., 2])",
    "torch.signal.windows.bartlett(2, sym=False, device='cpu', dtype=torch.float32, requires_grad=1j)",
)
#: calls of functions that are made of others, whose own signature is checked first
COMPOSED = ("torch.square(True)", "torch.square(input=True)", "torch.selu(1)", "F.selu(1)", "F.relu6([1., 2])",
            "F.relu(input=1)", "F.logsigmoid(1)", "F.instance_norm(b, weight=range(3))", "F.instance_norm(b, eps=1j)",
            "F.instance_norm(b, use_input_stats=1)", "F.hinge_embedding_loss(x, True)",
            "F.hinge_embedding_loss(x, x, margin='a')", "F.cosine_embedding_loss(x, x, torch.ones(2), 1j)",
            "F.poisson_nll_loss(1.5, x)", "F.poisson_nll_loss(x, x, eps=[1])",
            "F.pixel_shuffle(b, upscale_factor=(1,))",
            "F.pixel_unshuffle(b, downscale_factor=slice(1))", "torch.chunk(x, 2, (1,))", "x.chunk([2])",
            "torch.unsafe_chunk(x, 'a')", "F.layer_norm(x, (3,), x[0], 3)", "F.layer_norm(x, (3,), 'a')",
            "F.scaled_dot_product_attention(1, x, x)", "F.scaled_dot_product_attention(x, x, [1.])",
            "F.scaled_dot_product_attention(x, x, x, 1)", "x.requires_grad_(np.bool_(True))",
            "F.binary_cross_entropy_with_logits(x, x.bool())",
            "F.binary_cross_entropy_with_logits(x.double(), x.int())",
            "F.binary_cross_entropy_with_logits(x, x.int(), x.double())", "F.soft_margin_loss(x.bool(), x)",
            "F.soft_margin_loss(x.int(), x.bool())", "F.binary_cross_entropy(x.int(), x.int(), x)",
            "torch.repeat_interleave(x[0], x[0])", "x.repeat_interleave(i.short(), 0)",
            "torch.repeat_interleave(x > 0)",
            "x.slogdet()", "torch.slogdet(x)", "torch.Tensor.slogdet(x)", "torch.linalg.solve(torch.eye(3), x.sum())",
            "F.batch_norm(x[0], None, None, training=True)")
#: calls that are right, though rarely seen
RIGHT = ("x.sum((Index(),))", "x.sum(torch.tensor([[1]]))", "x.std(torch.tensor([1]))",
         "torch.eye(2, requires_grad=None)",
         "torch.var_mean(x, [Index()])", "x.to(True)", "x.to(False, True)",
         "torch.histogram(x)[0].sum()", "F.one_hot(i, np.int64(3))", "F.one_hot(i, torch.tensor(3))",
         "x.size(np.int64(1))", "x.stride(torch.tensor(1))", "F.relu6(x, True)",
         "torch.fft.ifft(x, Index())", "torch.fft.fftshift(x, [Index()])",
         "x.argmax(np.int64(1), True)", "F.instance_norm(b, eps=np.float64(1e-3))",
         "F.poisson_nll_loss(x, x, True, True)",
         "F.hinge_embedding_loss(x, x, margin=np.float32(2))", "F.cosine_embedding_loss(x, x, torch.ones(2), 1)",
         "x.chunk(np.int64(2), np.int64(1))", "F.hinge_embedding_loss(x, x, torch.tensor(2.))",
         "F.binary_cross_entropy(x / 2, x, x.int())",
         "F.binary_cross_entropy(x / 2, x, x.double() / 3, reduction='none')",
         "F.soft_margin_loss(x, x.bool())", "F.soft_margin_loss(x.double(), x.bool(), reduction='none')")


def _outcome(library: str, text: str) -> Any:
    torch = importlib.import_module(library)
    names = {"torch": torch, "F": torch.nn.functional, "np": np, "Index": Index, "x": torch.ones(2, 3),
             "b": torch.arange(6.0).reshape(1, 2, 3), "i": torch.tensor([1, 2])}
    try:
        result = eval(text, names)
    except Exception as error:
        return type(error).__name__, str(error)
    return repr(result).replace(library, "torch")


@pytest.mark.parametrize("text", WRONG + COMPOSED)
def test_wrong_calls_have_the_words_of_pytorch(text):
    here = _outcome("flambeau", text)
    assert isinstance(here, tuple)
    assert here == _outcome("torch", text)


@pytest.mark.parametrize("text", WRONG + COMPOSED)
def test_wrong_calls_while_functions_ask_for_overrides(text):
    class Overriding(flambeau.Tensor):
        @classmethod
        def __torch_function__(cls, function, types, args=(), kwargs=None):
            return super().__torch_function__(function, types, args, kwargs or {})

    (flambeau.ones(2).as_subclass(Overriding) + 1).sum()
    assert _outcome("flambeau", text) == _outcome("torch", text)


@pytest.mark.parametrize("text", ["torch.amin(x, 0, keepdim=1.5)", "torch.mm(x, mat2=1)", "x.size(dim=1.5)",
                                  "torch.add(input=x, other='a')", "F.linear(x, x, bias=1)", "torch.selu(1)"])
def test_wrong_calls_under_autocast(text):
    with flambeau.autocast("cpu"):
        here = _outcome("flambeau", text)
    with importlib.import_module("torch").autocast("cpu"):
        assert here == _outcome("torch", text)
    assert isinstance(here, tuple)


@pytest.mark.parametrize("text", RIGHT)
def test_right_calls_are_taken(text):
    here = _outcome("flambeau", text)
    assert isinstance(here, str)
    assert here == _outcome("torch", text)
