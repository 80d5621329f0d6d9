"""Calls that come again and again: the same results as the first ones, to the bit, and the same errors and warnings."""

from __future__ import annotations

import numpy as np
import pytest

import flambeau as torch
from flambeau import codegen
from flambeau._tensor.fastpath.repeated_layouts import CALLS, PROOFS
from flambeau.backends.compiled import enable_kernels
from flambeau.backends.compiled.thresholds import SMALL_KERNELS

F = torch.nn.functional
MANY = CALLS + PROOFS + 7  # the last ones by generated code
pytestmark = pytest.mark.skipif(not codegen.available(), reason="kernels cannot be compiled")


@pytest.fixture(autouse=True)
def _kernels():
    enable_kernels()


def _random(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


INDEX = np.array([[0, 2, 1], [3, 3, 0], [1, 1, 1], [2, 0, 3]])
CASES = {
    "exp": lambda x: x.exp(), "sigmoid": lambda x: x.sigmoid(), "erf": lambda x: x.erf(), "sign": lambda x: x.sign(),
    "isnan": lambda x: x.isnan(), "selu": lambda x: F.selu(x), "leaky_relu": lambda x: F.leaky_relu(x, 0.2),
    "relu6": lambda x: F.relu6(x), "softplus": lambda x: F.softplus(x), "gelu": lambda x: F.gelu(x, approximate="tanh"),
    "nan_to_num": lambda x: x.nan_to_num(), "clamp": lambda x: x.clamp(0.0, 0.5),
    "lerp": lambda x: torch.lerp(x, x * 2, 0.3),
    "addcmul": lambda x: torch.addcmul(x, x, x, value=0.5), "where": lambda x: torch.where(x > 0, x, 0.0),
    "masked_fill": lambda x: x.masked_fill(x > 0, -0.0),
    "masked_fill by a tensor": lambda x: x.masked_fill(x > 0, x[0, 0]),
    "masked_fill by another dtype": lambda x: x[0, 0].masked_fill(x > 0, x[0, 0].double()),
    "prelu": lambda x: F.prelu(x, x[0, :1]),
    "softmax": lambda x: x.softmax(1), "log_softmax": lambda x: x.log_softmax(0), "logsumexp": lambda x: x.logsumexp(1),
    "std": lambda x: x.std(), "var": lambda x: x.var(1), "glu": lambda x: F.glu(x, 0), "cumsum": lambda x: x.cumsum(1),
    "layer_norm": lambda x: F.layer_norm(x, (3,), x[0], x[1]), "rms_norm": lambda x: F.rms_norm(x, (3,)),
    "group_norm": lambda x: F.group_norm(x.view(1, 4, 3), 2), "mse_loss": lambda x: F.mse_loss(x, x * 2),
    "huber_loss": lambda x: F.huber_loss(x, x * 2, delta=0.5), "l1_loss": lambda x: F.l1_loss(x, x * 2),
    "cross_entropy": lambda x: F.cross_entropy(x, torch.tensor([0, 2, 1, 1])),
    "normalize": lambda x: F.normalize(x), "addmm": lambda x: torch.addmm(x[0], x, x[:3]),
    "roll": lambda x: x.roll(1, 1), "tril": lambda x: x.tril(), "trace": lambda x: x.trace(),
    "any": lambda x: (x > 1).any(), "all": lambda x: (x > -1).all(1), "flip": lambda x: x.flip(1),
    "pad": lambda x: F.pad(x, (1, 1), value=2.0), "reflect": lambda x: F.pad(x[None], (1, 1), mode="reflect"),
    "pixel_shuffle": lambda x: F.pixel_shuffle(x.view(1, 4, 1, 3), 2), "unfold": lambda x: F.unfold(x[None, None], 2),
    "nearest": lambda x: F.interpolate(x[None, None], scale_factor=2), "max_pool": lambda x: F.max_pool2d(x[None], 2),
    "avg_pool": lambda x: F.avg_pool2d(x[None], 2), "gather": lambda x: x.gather(0, torch.from_numpy(INDEX)),
    "scatter": lambda x: x.scatter(0, torch.from_numpy(INDEX), 0.5),
    "scatter_add": lambda x: x.scatter_add(0, torch.from_numpy(INDEX), x),
    "index_select": lambda x: x.index_select(1, torch.tensor([2, 0])),
    "index_add": lambda x: x.index_add(0, torch.tensor([1, 1]), x[:2]),
    "index_fill": lambda x: x.index_fill(1, torch.tensor([1]), -1.0),
    "embedding": lambda x: F.embedding(torch.tensor([[1, 3]]), x), "topk": lambda x: x.topk(2)[0],
    "conv1d": lambda x: F.conv1d(x[None], x[:2, None].expand(-1, 4, -1).contiguous(), x[0, :2], padding=1),
    "conv2d": lambda x: F.conv2d(x[None, None], x[None, None, :2, :2], stride=(1, 2), padding=1),
    "conv_transpose2d": lambda x: F.conv_transpose2d(x[None, None], x[None, None, :2, :2], stride=2),
    "einsum": lambda x: torch.einsum("ij,kj->ik", x, x * 2), "outer": lambda x: torch.outer(x[0], x[:, 1]),
    "smoothed": lambda x: F.cross_entropy(x, torch.tensor([0, 2, 1, 1]), label_smoothing=0.1),
    "batch_norm": lambda x: F.batch_norm(x, None, None, x[0] * 2, x[1], training=True),
    "batch_norm of images": lambda x: F.batch_norm(x.view(2, 3, 2, 1), None, None, training=True),
    "batch_norm with averages": lambda x: F.batch_norm(x, x[0].detach(), x[1].detach().square(), x[0] * 2, x[1]),
    "bilinear": lambda x: F.interpolate(x.view(1, 1, 4, 3), scale_factor=2.0, mode="bilinear"),
    "grid_sample": lambda x: F.grid_sample(x.view(1, 1, 4, 3), x.view(1, 2, 3, 2), align_corners=False),
    "causal attention": lambda x: F.scaled_dot_product_attention(x[None, None], x[None, None], x[None, None] + 1,
                                                                 is_causal=True),
    "attention": lambda x: F.scaled_dot_product_attention(x[None], x[None] * 2, x[None]),
    "matmul": lambda x: torch.matmul(x[None], x.view(1, 3, 4)), "cosine": lambda x: F.cosine_similarity(x, x * 2),
    "sort": lambda x: x.sort(0)[0], "sorting indices": lambda x: x.sort(1, descending=True)[1],
    "kthvalue": lambda x: x.kthvalue(2, 1)[0], "median": lambda x: x.median(1)[0],
    "its index": lambda x: x.median(1, keepdim=True)[1], "cummax": lambda x: x.cummax(0)[0],
    "cummin": lambda x: x.cummin(1)[1], "max": lambda x: x.max(1)[0], "argmin": lambda x: x.min(0)[1],
    "bfloat16": lambda x: x.bfloat16().float(), "diff": lambda x: x.diff(dim=0),
    "repeat_interleave": lambda x: x.repeat_interleave(2, 1),
    "searchsorted": lambda x: torch.searchsorted(torch.tensor([-1.0, 0.5, 2.0]), x),
    "alpha": lambda x: torch.add(x, x, alpha=0.3), "alpha in place": lambda x: (x * 2).add_(x, alpha=0.3),
    "x[rows]": lambda x: x[torch.tensor([1, 3, 1])], "x[:, columns]": lambda x: x[:, torch.tensor([[2, 0]])],
    "x[rows, columns]": lambda x: x[torch.tensor([1, 3]), torch.tensor([0, 2])],
    "x[-1]": lambda x: x[torch.tensor([-1, 0])],
    "flatten": lambda x: x.view(2, 2, 3).flatten(1), "narrow": lambda x: x.narrow(0, 1, 2),
    "permute": lambda x: x.view(2, 2, 3).permute(2, 0, 1), "expand": lambda x: x[:, :1].expand(-1, 5),
    "chunk": lambda x: x.chunk(2)[1], "diagonal": lambda x: x.diagonal(), "unbind": lambda x: x.unbind(1)[2],
}


@pytest.mark.parametrize("name", CASES)
def test_results_stay_the_same(name):
    """Calls with other data in the same layout have the bits, strides and nodes of calls that NumPy computes."""
    call = CASES[name]
    arrays = [_random(4, 3, seed=seed) for seed in range(MANY)]
    found = [call(torch.from_numpy(a.copy())) for a in arrays]
    with_gradient = call(torch.from_numpy(arrays[-1].copy()).requires_grad_())
    SMALL_KERNELS[0] = False
    try:
        expected = [call(torch.from_numpy(a.copy())) for a in arrays]
        recorded = call(torch.from_numpy(arrays[-1].copy()).requires_grad_())
    finally:
        SMALL_KERNELS[0] = True
    for ours, theirs in zip(found, expected, strict=True):
        assert ours.dtype is theirs.dtype
        assert ours.stride() == theirs.stride()
        assert ours._is_view() == theirs._is_view()
        assert ours.numpy().tobytes() == theirs.numpy().tobytes()
    assert type(with_gradient.grad_fn) is type(recorded.grad_fn)
    assert with_gradient.detach().numpy().tobytes() == recorded.detach().numpy().tobytes()


def _names(node):
    return None if node is None else (node.name(), node.next_functions and [
        (_names(each), number) for each, number in node.next_functions])


def _with_gradients(call, array):
    """The names of a result's graph, its gradient and that gradient's gradient."""
    leaf = torch.from_numpy(array.copy()).requires_grad_()
    result = call(leaf * 1)
    if not result.requires_grad:
        return None
    names = _names(result.grad_fn)
    weights = torch.from_numpy(_random(*result.shape, seed=9))
    first, = torch.autograd.grad((result * weights).sum(), leaf, create_graph=True)
    second = None
    if first.requires_grad:
        second, = torch.autograd.grad(first.square().sum(), leaf, allow_unused=True)
    result = call(leaf * 1)
    (result * weights).sum().backward()
    found = [first.detach(), leaf.grad, *([] if second is None else [second])]
    return names, [each.numpy().tobytes() for each in found]


@pytest.mark.parametrize("name", CASES)
def test_graphs_stay_the_same(name):
    """Calls that record have the nodes, gradients and second gradients of calls that NumPy computes."""
    array = _random(4, 3)
    for seed in range(MANY):
        CASES[name](torch.from_numpy(_random(4, 3, seed=seed)).requires_grad_() * 1)
    found = _with_gradients(CASES[name], array)
    SMALL_KERNELS[0] = False
    try:
        assert found == _with_gradients(CASES[name], array)
    finally:
        SMALL_KERNELS[0] = True


def test_arguments_that_were_one_tensor():
    x, y = torch.from_numpy(_random(2, 3)), torch.from_numpy(_random(2, 3, seed=1))
    expected = ((x - y) ** 2).mean().item()
    for _ in range(MANY):
        assert F.mse_loss(x, x).item() == 0
    for _ in range(MANY):
        assert F.mse_loss(x, y).item() == pytest.approx(expected)
    assert F.mse_loss(x, x).item() == 0


def test_equal_elements_and_nan():
    """Launches leave what PyTorch decides among equal elements, and NaN, to the operators' own kernels."""
    rows = [[1.0, 1.0, 0.0], [2.0, 0.0, 2.0], [0.0, float("nan"), 1.0], [0.0, -0.0, 0.0]]
    tied = torch.tensor(rows)
    calls = (lambda x: x.sort(1), lambda x: x.kthvalue(2, 1), lambda x: x.median(1), lambda x: x.topk(2),
             lambda x: x.cummax(1), lambda x: x.max(1), lambda x: x.min(0))
    for call in calls:
        first = [each.numpy().tobytes() for each in call(tied)]
        for seed in range(MANY):
            call(torch.from_numpy(_random(4, 3, seed=seed)))
        assert [each.numpy().tobytes() for each in call(tied)] == first
    sorted_ones, unsorted = torch.tensor([0.0, 1.0, 2.0]), torch.tensor([2.0, 0.0, 1.0])
    first = torch.searchsorted(unsorted, tied).tolist()
    for _ in range(MANY):
        torch.searchsorted(sorted_ones, tied)
    assert torch.searchsorted(unsorted, tied).tolist() == first


def test_indices_out_of_range_raise_later_too():
    x = torch.from_numpy(_random(4, 3)).requires_grad_()
    for _ in range(MANY):
        x[torch.tensor([0, 1])]
        x[torch.tensor([0, 1]), torch.tensor([0, 1])]
    with pytest.raises(IndexError, match="index 4 is out of bounds for dimension 0 with size 4"):
        x[torch.tensor([0, 4])]
    with pytest.raises(IndexError, match="index 3 is out of bounds for dimension 1 with size 3"):
        x[torch.tensor([0, 3]), torch.tensor([0, 3])]
    with torch.no_grad():
        y, z = x * 1, x * 2
        for _ in range(MANY):
            y.add_(z, alpha=0.5)
    assert y._version == MANY
    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad"):
        x.add_(z, alpha=0.5)


def test_saved_tensors_are_those_of_the_call():
    x, y = (torch.from_numpy(_random(2, 3, 4, seed=seed)).requires_grad_() for seed in (0, 1))
    for _ in range(MANY):
        result = torch.einsum("bij,bkj->bik", x, y)
    with torch.no_grad():
        y.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        result.sum().backward()
    mask = torch.from_numpy(_random(4, 3)) > 0
    leaf = torch.from_numpy(_random(4, 3)).requires_grad_()
    for _ in range(MANY):
        picked = torch.where(mask, leaf, 0.0)
    assert picked.grad_fn._saved_condition is mask
    assert picked.grad_fn.next_functions[0][0].variable is leaf


def test_outputs_of_several_tensors_record():
    leaf = torch.from_numpy(_random(4, 3)).requires_grad_()
    for _ in range(MANY):
        values, indices = leaf.topk(2)
    assert (type(values).__name__, values.grad_fn.name(), indices.requires_grad) == ("Tensor", "TopkBackward0", False)
    assert type(leaf.topk(2)).__name__ == "topk"


def test_gradients_of_launches():
    leaf = torch.from_numpy(_random(3, 4)).requires_grad_()
    gradients = []
    for _ in range(MANY):
        leaf.grad = None
        (torch.lerp(leaf, leaf * 2, 0.3) * F.softplus(leaf)).sum().backward()
        gradients.append(leaf.grad.numpy().copy())
    assert all((each == gradients[0]).all() for each in gradients)


def test_out_of_range_indices_raise_later_too():
    x = torch.arange(4.0)
    for _ in range(MANY):
        x.gather(0, torch.tensor([1]))
        x.index_select(0, torch.tensor([1]))
    with pytest.raises(RuntimeError, match="index 4 is out of bounds for dimension 0 with size 4"):
        x.gather(0, torch.tensor([4]))
    with pytest.raises(IndexError, match="index out of range in self"):
        x.index_select(0, torch.tensor([-1]))


def test_values_that_are_equal_but_not_the_same():
    x = torch.tensor([-1.0, 1.0])
    for _ in range(MANY):
        assert not np.signbit(x.clamp(min=0.0).numpy()[0])
        assert not np.signbit(torch.where(x > 0, x, 0.0).numpy()[0])
    assert np.signbit(torch.where(x > 0, x, -0.0).numpy()[0])
    integers = torch.tensor([-1, 1])
    for _ in range(MANY):
        assert torch.where(integers > 0, integers, 0).dtype is torch.int64
    assert torch.where(integers > 0, integers, 0.0).dtype is torch.float32


def test_warnings_are_given_in_every_call():
    x, y = torch.ones(2, 3), torch.ones(2, 1)
    for _ in range(MANY):
        with pytest.warns(UserWarning, match="Using a target size"):
            F.mse_loss(x, y)


def test_modes_take_the_function_itself():
    x = torch.ones(2, 3)
    for _ in range(MANY):
        F.layer_norm(x, (3,))
    with torch.inference_mode():
        assert F.layer_norm(x, (3,)).is_inference()
    assert torch.func.vmap(lambda row: F.layer_norm(row, (3,)))(x).shape == (2, 3)
    with pytest.raises(RuntimeError, match=r"Given normalized_shape=\[2\]"):
        F.layer_norm(x, (2,))


def test_views_of_known_layouts_share_versions():
    x = torch.ones(4, 3)
    for _ in range(MANY):
        view = x.narrow(0, 1, 2)
    view.add_(1)
    assert (x._version, x[1, 0].item()) == (1, 2)
    assert view._base is x
    with torch.no_grad():
        hidden = x.narrow(0, 1, 2)
    x.requires_grad_()
    with pytest.raises(RuntimeError, match="no_grad mode"):
        hidden.mul_(2)


def test_views_of_expanded_dimensions_of_size_1():
    x, row = torch.ones(()).expand(1), torch.arange(3.).expand(1, 3)
    for _ in range(MANY):
        assert x.expand(1).stride() == (0,)
        assert row.expand(2, 3).tolist() == [[0, 1, 2], [0, 1, 2]]
        assert row.narrow(0, 0, 1).tolist() == [[0, 1, 2]]
