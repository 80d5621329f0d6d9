"""Functions that make tensors of constants, or check values, are part of compiled programs."""

from __future__ import annotations

import pytest

import flambeau as torch
from flambeau import codegen
from flambeau.nn import functional as F
from flambeau.utils.checkpoint import checkpoint
from tests.compiler.eager_comparison import Scenario, compare_with_eager, numbers, programs, reasons

pytestmark = pytest.mark.skipif(not codegen.available(), reason="llvmlite is not installed, or FLAMBEAU_JIT is 0")


def _put(x, mask):
    y = x.clone()
    y[mask] = 1
    return y


FUNCTIONS = {
    "tril_indices": lambda x: x[tuple(torch.tril_indices(3, 3))],
    "matrix_rank": lambda x: torch.linalg.matrix_rank(x),
    "istft": lambda x: torch.istft(torch.stft(x.flatten(), 4, window=torch.ones(4), return_complex=True), 4,
                                   window=torch.ones(4)),
    "rand_like of a transposed tensor": lambda x: torch.rand_like(x.t()) + x,
    "dropout of a transposed tensor": lambda x: F.dropout(x.t(), 0.5),
    "dropout in causal attention": lambda x: F.scaled_dot_product_attention(x, x, x, dropout_p=0.5, is_causal=True),
    "one_hot": lambda x: F.one_hot((x > 0).long(), 3),
    "a number at a mask": lambda x: _put(x, x > 0),
    "a number at a mask of rows": lambda x: _put(x, x[:, 0] > 0),
    "embedding_bag": lambda x: F.embedding_bag((x > 0).long(), x),
    "embedding_bag with offsets": lambda x: F.embedding_bag((x > 0).long().flatten(), x, torch.tensor([0, 2, 2]),
                                                            mode="sum"),
    "grid_sample": lambda x: F.grid_sample(x[None, None], x[None, :, :2, None].expand(1, 3, 2, 2).tanh(),
                                           align_corners=False),
    "grid_sample, bicubic": lambda x: F.grid_sample(x[None, None], x[None, :, :2, None].expand(1, 3, 2, 2).tanh(),
                                                    mode="bicubic", padding_mode="reflection", align_corners=True),
    "grid_sample, nearest": lambda x: F.grid_sample(x[None, None], x[None, :, :2, None].expand(1, 3, 2, 2).tanh(),
                                                    mode="nearest", align_corners=True),
    "ctc_loss": lambda x: F.ctc_loss(x[:, None].log_softmax(-1), torch.tensor([[1]]), (3,), (1,)),
    "checkpoint": lambda x: checkpoint(lambda x: F.dropout(x, 0.5).sin(), x, use_reentrant=False),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_it_is_compiled(name):
    def build():
        weight = numbers(3, 3, seed=9).requires_grad_()

        def step(x):
            weight.grad = None
            result = FUNCTIONS[name](x * weight)
            if result.requires_grad:
                result.sum().backward()
            return result.detach()

        return Scenario(step, lambda i: (numbers(3, 3, seed=i),), lambda: weight)

    made = compare_with_eager(build, 4)
    assert programs(made) == 1
    assert not reasons(made)


def test_failed_checks_of_values_raise_in_compiled_functions():
    bags = torch.compile(lambda i, o: F.embedding_bag(i, torch.ones(4, 2), o))
    hot = torch.compile(lambda i: F.one_hot(i, 3))
    loss = torch.compile(lambda x, n: F.ctc_loss(x, torch.tensor([[1]]), n, torch.tensor([1])))
    x = torch.zeros(2, 1, 2).log_softmax(2)
    for _ in range(4):
        bags(torch.tensor([0, 3, 1]), torch.tensor([0, 1]))
        hot(torch.tensor([0, 2]))
        loss(x, torch.tensor([2]))
    assert programs(bags) == programs(hot) == programs(loss) == 1
    with pytest.raises(RuntimeError, match="i < index_size"):
        bags(torch.tensor([0, 4, 1]), torch.tensor([0, 1]))
    with pytest.raises(RuntimeError, match=r"offsets\[0\] has to be 0"):
        bags(torch.tensor([0, 3, 1]), torch.tensor([1, 1]))
    with pytest.raises(RuntimeError, match="smaller than num_classes"):
        hot(torch.tensor([0, 3]))
    with pytest.raises(RuntimeError, match="input_lengths to have value at most 2"):
        loss(x, torch.tensor([3]))
