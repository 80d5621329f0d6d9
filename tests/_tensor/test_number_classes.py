"""Numbers of other classes than Python's where PyTorch takes them: NumPy's, enumerations, tensors, bools."""

from __future__ import annotations

import enum
import importlib.util
from typing import Any

import numpy as np
import pytest

import flambeau

pytestmark = [pytest.mark.parity,
              pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="PyTorch is the oracle"),
              pytest.mark.filterwarnings("ignore")]


class Choice(enum.IntEnum):
    """An enumeration whose members are ints."""

    ONE = 1


class Count(int):
    """A class derived from int."""


class Loss(float):
    """A class derived from float."""


#: expressions of an int `d`; `x`, `m`, `v` and `img` are tensors
INTEGERS = (
    "x.sum(d)", "torch.sum(x, dim=d)", "torch.sum(x, axis=d)",
    "x.sum(axis=d, keepdims=True)", "x.mean(d, True)", "x.squeeze(d)", "x.unsqueeze(d)",
    "torch.cat([x, x], d)", "torch.stack([x, x], d)", "x.split(d)", "torch.split(x, d, d)", "x.chunk(d, d)",
    "x.transpose(0, d)", "x.permute(0, d, 2)", "x.view(2, d, 12)", "x.reshape((2, d, 12))", "m.expand(d, 3, 3)",
    "m.repeat(d, 2)", "torch.tile(m, (d, 2))", "m.roll(d, d)", "m.flip(d)", "torch.flip(m, [d])",
    "torch.rot90(m, d, [0, 1])",
    "m.narrow(0, d, d)", "m.select(d, d)", "m.topk(d)", "m.kthvalue(d)", "m.sort(d)", "m.sort(d, True)", "m.argsort(d)",
    "m.cumsum(d)", "m.softmax(d)", "F.softmax(m, d)", "m.logsumexp(d)", "m.max(d)", "m.argmax(d)", "m.bool().any(d)",
    "m.std(d)", "m.var(d, correction=d)", "m.norm(d)", "m.norm(2, d)", "torch.linalg.vector_norm(m, d, d)",
    "torch.eye(d, d)", "torch.zeros(d, d)", "torch.zeros([d, 2])", "torch.full((d, 2), d)", "torch.arange(d)",
    "torch.arange(0, 5, d)", "torch.linspace(0, 1, d)", "m.tril(d)", "m.diag(d)", "m.diagonal(d)",
    "torch.diag_embed(m, d)", "F.one_hot(torch.tensor([0, 0]), d)", "m.unfold(0, d, d)", "F.unfold(img, d)",
    "F.conv2d(img, torch.ones(2, 2, 2, 2), None, d, d)",
    "F.conv2d(img, torch.ones(2, 2, 2, 2), stride=(d, d), padding=d, dilation=d, groups=d)", "F.max_pool2d(img, d)",
    "F.avg_pool2d(img, (d, d), d)", "F.adaptive_avg_pool2d(img, d)", "F.adaptive_avg_pool2d(img, (d, None))",
    "F.interpolate(img, (d, 2))", "F.interpolate(img, size=d)", "F.pad(m, (d, d))", "F.pad(m, [d, 0], value=d)",
    "m.gather(d, torch.zeros(3, 3).long())", "m.clone().scatter_(d, torch.zeros(3, 3).long(), d)",
    "m.index_select(d, torch.tensor([0]))", "m.index_fill(d, torch.tensor([0]), d)", "m.masked_fill(m>0, d)",
    "m.clone().fill_(d)", "m.pow(d)", "m.clamp(d)", "m.clamp(min=d, max=d)", "torch.add(m, m, alpha=d)",
    "torch.addmm(m, m, m, beta=d, alpha=d)", "torch.mul(m, d)", "torch.div(m, d)", "x.flatten(d)",
    "x.unflatten(2, (2, d, 2))",
    "x.movedim(0, d)", "torch.tensordot(m, m, d)", "torch.linalg.matrix_power(m, d)",
    "torch.bincount(torch.tensor([0, 1]), minlength=d)", "torch.histc(v, d)", "v.repeat_interleave(d)",
    "m.unbind(d)", "v.tensor_split(d)", "v.diff(d)", "torch.hann_window(d)",
    "torch.fft.fft(v, d,)", "torch.fft.fft(m, dim=d)", "F.layer_norm(torch.ones(2, 1), (d,))", "F.group_norm(img, d)",
    "F.embedding(torch.tensor([0]), m, d)", "F.cross_entropy(m, torch.tensor([0, 1, 2]), ignore_index=d)",
    "F.glu(torch.ones(2, 2), d)", "F.pixel_shuffle(img, d)", "m.new_zeros(d, 2)", "m.new_full((d,), d)",
    "m.as_strided((d, d), (d, d), d)", "m.count_nonzero(d)", "m.nansum(d)", "m.prod(d)", "m.amax(d)",
    "torch.aminmax(m, dim=d)", "m.mode(d)", "m.median(d)", "m.cummax(d)", "m.renorm(d, 0, d)", "torch.cdist(m, m, d)",
    "m.select_scatter(torch.ones(3), 0, d)", "m.hsplit(d)", "m.swapaxes(0, d)",
    "torch.take_along_dim(m, torch.zeros(3, 3).long(), d)",
    "m.index_add(0, torch.tensor([0]), torch.ones(1, 3), alpha=d)",
    "torch.mvlgamma(m+3, d)", "torch.polygamma(d, m)", "torch.tril_indices(d, d)",
    "torch.vander(v, d)", "torch.combinations(v, d)", "v[d:]", "m[d]", "x[d, :, d]",
)
#: expressions of a float
FLOATS = (
    "m.pow(d)", "m.clamp(0, d)", "torch.full((2,), d)", "F.dropout(m, d*0, False)", "F.leaky_relu(m, d)", "F.elu(m, d)",
    "F.celu(m, d)", "F.threshold(m, d, d)", "F.hardtanh(m, -1, d)", "F.softplus(m, d)",
    "F.batch_norm(img, None, None, training=True, eps=d)", "F.layer_norm(m, (3,), eps=d)", "F.normalize(m, d)",
    "v.quantile(d)", "m.lerp(m, d)", "torch.addcmul(m, m, m, value=d)", "torch.linspace(0, d, 5)",
    "torch.arange(0, 2, d)",
    "m.norm(d)", "torch.isclose(m, m, d, d)", "torch.allclose(m, m, d)", "m.nan_to_num(d)", "(m*.5).logit(d*.1)",
    "F.huber_loss(m, m, delta=d)", "F.smooth_l1_loss(m, m, beta=d)",
    "F.cross_entropy(m, torch.tensor([0, 1, 2]), label_smoothing=d)", "F.cosine_similarity(m, m, 1, d)",
    "F.triplet_margin_loss(m, m, m, margin=d)", "torch.add(m, d)", "torch.add(m, m, alpha=d)", "torch.sub(m, d)",
    "torch.where(m>0, m, d)", "m.masked_fill(m>0, d)", "m.index_fill(0, torch.tensor([0]), d)", "m.clone().fill_(d)",
    "m.clone().scatter_(0, torch.zeros(3, 3).long(), d)", "torch.full_like(m, fill_value=d)", "torch.eq(m, d)",
    "F.interpolate(img, scale_factor=d*2 if not isinstance(d, bool) else 2)",
    "F.scaled_dot_product_attention(img, img, img, scale=d)", "m.renorm(d, 0, d)", "F.pad(m, (1, 1), value=d)",
    "m.clamp(max=d)", "torch.rsub(m, d)", "torch.true_divide(m, d)", "torch.fmod(m, d)", "torch.float_power(m, d)",
    "F.hardshrink(m, d)", "F.softshrink(m, d)", "F.rrelu(m, d*.1, d)", "m/d", "torch.linalg.pinv(m, d)",
    "torch.linalg.matrix_rank(m, d)", "torch.cdist(m, m, d)", "torch.histc(v, 5, 0, d+1)", "m.std(correction=d)",
    "m.clone().clip_(d)",
)

#: of each kind, what makes the number
NUMBERS: dict[str, Any] = {
    "NumPy's int64": lambda torch: np.int64(1), "NumPy's int32": lambda torch: np.int32(1),
    "a tensor": lambda torch: torch.tensor(1), "an enumeration": lambda torch: Choice.ONE, "a bool": lambda torch: True,
    "a class derived from int": lambda torch: Count(1),
}
FRACTIONS: dict[str, Any] = {
    "NumPy's float32": lambda torch: np.float32(0.5), "NumPy's float64": lambda torch: np.float64(0.5),
    "NumPy's int64": lambda torch: np.int64(1), "a tensor": lambda torch: torch.tensor(0.5),
    "an enumeration": lambda torch: Choice.ONE, "an int": lambda torch: 1, "a bool": lambda torch: True,
    "a class derived from int": lambda torch: Count(1), "a class derived from float": lambda torch: Loss(0.5),
}
#: expression -> the kinds of numbers whose answer differs
ACCEPTED = {  # here only: PyTorch refuses them
    "x.split(d)": ("NumPy's int64", "NumPy's int32", "a bool"),
    "torch.split(x, d, d)": ("NumPy's int64", "NumPy's int32"),
    "F.interpolate(img, (d, 2))": ("a bool",),
    "F.interpolate(img, size=d)": ("a bool",), "F.layer_norm(torch.ones(2, 1), (d,))": ("a bool",),
    "F.embedding(torch.tensor([0]), m, d)": ("a bool",),
    "F.interpolate(img, scale_factor=d*2 if not isinstance(d, bool) else 2)": ("a tensor",),
}
REFUSED = {  # here, or with another class of error
    "F.avg_pool2d(img, (d, d), d)": ("a tensor",),
    "F.cross_entropy(m, torch.tensor([0, 1, 2]), ignore_index=d)": ("a tensor", "a bool"),
    "F.batch_norm(img, None, None, training=True, eps=d)": ("a tensor",),
    "F.cross_entropy(m, torch.tensor([0, 1, 2]), label_smoothing=d)": ("a tensor",),
}
DEVIATIONS = ACCEPTED | REFUSED


def outcome(torch: Any, expression: str, number: Any) -> Any:
    """Class of the error, or dtypes, shapes and values of the results."""
    names = {"torch": torch, "F": torch.nn.functional, "d": number, "x": torch.ones(2, 3, 4), "m": torch.ones(3, 3),
             "v": torch.arange(6.), "img": torch.ones(1, 2, 4, 4)}
    try:
        found = eval(expression, names)
    except Exception as error:
        return type(error).__name__
    found = list(found) if isinstance(found, (list, tuple)) else [found]
    return [(str(y.dtype).partition(".")[2], tuple(y.shape), str(np.asarray(y.tolist(), complex).round(4) + 0))
            if isinstance(y, torch.Tensor) else y for y in found]


@pytest.mark.parametrize(("expression", "kinds"), [*((each, NUMBERS) for each in INTEGERS),
                                                   *((each, FRACTIONS) for each in FLOATS)])
def test_numbers_of_other_classes(expression, kinds):
    import torch as pytorch

    for kind, number in kinds.items():
        ours, theirs = outcome(flambeau, expression, number(flambeau)), outcome(pytorch, expression, number(pytorch))
        if kind in DEVIATIONS.get(expression, ()):
            assert ours != theirs, f"{kind}: no deviation any more"
        else:
            assert ours == theirs, kind


@pytest.mark.parametrize("value", ["np.int64(3)", "np.float32(3)", "np.array(3)", "np.array([3])", "np.bool_(True)",
                                   "np.int64(-1)", "3", "[np.int64(3)]"])
@pytest.mark.parametrize("constructor", ["FloatTensor", "LongTensor", "Tensor"])
def test_legacy_constructors(constructor, value):
    import torch as pytorch

    def said(torch):
        try:
            return tuple(getattr(torch, constructor)(eval(value, {"np": np})).shape)
        except Exception as error:
            return type(error), str(error)

    assert said(flambeau) == said(pytorch)


def test_inputs_that_are_numbers():
    boundaries = flambeau.arange(3.)
    for value in (np.float64(1.5), 1.5, flambeau.tensor(1.5), np.float32(1.5), 1):
        assert flambeau.bucketize(value, boundaries).item() == (1 if value == 1 else 2)


def test_threads():
    before = flambeau.get_num_threads()
    flambeau.set_num_threads(np.int64(1))
    assert flambeau.get_num_threads() == 1
    flambeau.set_num_threads(before)


@pytest.mark.parametrize("call", ["torch.zeros(np.float64(2))", "torch.zeros(np.array([2, 3]))",
                                  "torch.tensordot(torch.ones(2, 2), torch.ones(2, 2), dims=np.int32(1))"])
def test_refusals_name_classes_of_numpy(call):
    import torch as pytorch

    def said(torch):
        with pytest.raises((TypeError, RuntimeError)) as info:
            eval(call, {"torch": torch, "np": np})
        return type(info.value), str(info.value)

    assert said(flambeau) == said(pytorch)
