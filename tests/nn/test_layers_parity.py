"""Every layer compared with PyTorch: repr, initial weights, state dict, outputs, gradients."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import flambeau
import flambeau.nn as fnn

torch = pytest.importorskip("torch")
pytestmark = [pytest.mark.parity, pytest.mark.filterwarnings("ignore::UserWarning")]

#: constructor source -> input shapes; "i<n>" is an integer input below n
CASES: dict[str, tuple] = {
    "Linear(4, 3)": ((5, 4),),
    "Linear(4, 3, bias=False)": ((2, 5, 4),),
    "Bilinear(2, 3, 4)": ((5, 2), (5, 3)),
    "Identity(3)": ((2, 3),),
    "Conv1d(2, 4, 3, 2, 1, 2, 2, False, 'reflect')": ((2, 2, 12),),
    "Conv1d(2, 4, 3)": ((2, 8),),
    "Conv2d(2, 4, (3, 2), padding='same')": ((2, 2, 6, 5),),
    "Conv2d(2, 4, 3, padding=(1, 0), stride=2)": ((2, 2, 8, 9),),
    "Conv2d(2, 4, 3, padding=1, padding_mode='circular')": ((2, 2, 8, 9),),
    "Conv2d(2, 4, 3, padding=2, padding_mode='replicate', dilation=2)": ((2, 2, 8, 9),),
    "Conv3d(1, 2, 2)": ((2, 1, 4, 4, 4),),
    "ConvTranspose1d(4, 2, 3, stride=2)": ((2, 4, 5),),
    "ConvTranspose2d(2, 4, 3, output_padding=1, stride=2, groups=2, dilation=2)": ((2, 2, 4, 5),),
    "ConvTranspose3d(2, 1, 2)": ((1, 2, 3, 3, 3),),
    "MaxPool1d(3, 2, 1)": ((2, 3, 9),),
    "MaxPool2d(2)": ((2, 3, 6, 7),),
    "MaxPool2d(3, 2, ceil_mode=True)": ((3, 6, 7),),
    "MaxPool3d(2)": ((1, 2, 4, 4, 4),),
    "AvgPool1d(2)": ((2, 3, 9),),
    "AvgPool2d(2, ceil_mode=True, padding=1, count_include_pad=False)": ((2, 3, 7, 6),),
    "AvgPool3d(2)": ((1, 2, 4, 4, 4),),
    "AdaptiveAvgPool1d(3)": ((2, 3, 8),),
    "AdaptiveAvgPool2d((None, 3))": ((2, 3, 5, 7),),
    "AdaptiveAvgPool3d(2)": ((1, 2, 4, 5, 6),),
    "AdaptiveMaxPool1d(3)": ((2, 3, 8),),
    "AdaptiveMaxPool2d(3)": ((2, 3, 8, 5),),
    "AdaptiveMaxPool3d(2)": ((1, 2, 4, 5, 6),),
    "LPPool1d(2, 3)": ((2, 3, 9),),
    "LPPool2d(2, 3)": ((2, 3, 9, 9),),
    "BatchNorm1d(3)": ((5, 3),),
    "BatchNorm1d(3, affine=False)": ((5, 3, 4),),
    "BatchNorm1d(3, momentum=None, track_running_stats=True)": ((5, 3, 4),),
    "BatchNorm1d(3, track_running_stats=False)": ((5, 3, 4),),
    "BatchNorm2d(3, bias=False)": ((4, 3, 2, 5),),
    "BatchNorm3d(2)": ((2, 2, 2, 3, 4),),
    "LayerNorm((2, 3))": ((4, 2, 3),),
    "LayerNorm(3, bias=False)": ((4, 2, 3),),
    "LayerNorm(3, elementwise_affine=False)": ((4, 3),),
    "GroupNorm(2, 4)": ((3, 4, 5),),
    "InstanceNorm1d(3, affine=True)": ((2, 3, 6),),
    "InstanceNorm2d(3, track_running_stats=True)": ((2, 3, 4, 4),),
    "InstanceNorm3d(2)": ((2, 3, 3, 3),),
    "RMSNorm(3)": ((4, 3),),
    "LocalResponseNorm(2)": ((2, 4, 3, 3),),
    "Embedding(6, 4, padding_idx=1)": (("i6", 2, 3),),
    "Embedding(6, 4, max_norm=1.0)": (("i6", 7),),
    "Embedding(6, 4, scale_grad_by_freq=True)": (("i6", 7),),
    "Dropout(0.0)": ((3, 4),),
    "Flatten()": ((2, 3, 4),),
    "Flatten(0, 1)": ((2, 3, 4),),
    "Unflatten(1, (2, 3))": ((2, 6),),
    "PReLU()": ((3, 4),),
    "PReLU(3)": ((2, 3, 4),),
    "GELU('tanh')": ((3, 4),),
    "Threshold(0.1, 2)": ((3, 4),),
    "Hardtanh(-0.5, 0.7)": ((3, 4),),
    "ReLU(inplace=True)": ((3, 4),),
    "Hardswish(inplace=True)": ((3, 4),),
    "Softmax(1)": ((3, 4),),
    "LogSoftmax(-1)": ((3, 4),),
    "Softmin(0)": ((3, 4),),
    "Softmax2d()": ((2, 3, 4, 5),),
    "CosineSimilarity()": ((3, 4), (3, 4)),
    "PairwiseDistance()": ((3, 4), (3, 4)),
    "PairwiseDistance(1, keepdim=True)": ((3, 4), (3, 4)),
    "PixelShuffle(2)": ((2, 8, 3, 4),),
    "PixelUnshuffle(2)": ((2, 2, 4, 6),),
    "ChannelShuffle(2)": ((2, 4, 3),),
    "Upsample(scale_factor=2)": ((1, 2, 3),),
    "Upsample(scale_factor=1.7, mode='linear')": ((1, 2, 5),),
    "Upsample(size=(5, 7), mode='bilinear')": ((1, 2, 3, 4),),
    "Upsample(size=(5, 7), mode='bilinear', align_corners=True)": ((1, 2, 3, 4),),
    "Upsample(scale_factor=2, mode='bicubic')": ((1, 2, 4, 4),),
    "Upsample(scale_factor=(1, 2, 2), mode='trilinear')": ((1, 2, 3, 4, 2),),
    "UpsamplingBilinear2d(scale_factor=2)": ((1, 2, 3, 4),),
    "UpsamplingNearest2d(size=(5, 2))": ((1, 2, 3, 4),),
    "RNN(3, 4)": ((5, 2, 3),),
    "RNN(3, 4, nonlinearity='relu', batch_first=True, bidirectional=True)": ((2, 5, 3),),
    "LSTM(3, 4)": ((5, 2, 3),),
    "LSTM(3, 4, 2, bidirectional=True, batch_first=True, proj_size=2)": ((2, 5, 3),),
    "LSTM(3, 4, bias=False)": ((5, 3),),
    "GRU(3, 4, 2)": ((5, 2, 3),),
    "GRU(3, 4, bias=False, bidirectional=True)": ((5, 2, 3),),
    "RNNCell(3, 4)": ((2, 3),),
    "RNNCell(3, 4, nonlinearity='relu')": ((3,),),
    "LSTMCell(3, 4)": ((2, 3),),
    "GRUCell(3, 4)": ((2, 3),),
    "MultiheadAttention(8, 2)": ((5, 3, 8), (4, 3, 8), (4, 3, 8)),
    "MultiheadAttention(8, 2, batch_first=True, add_bias_kv=True, add_zero_attn=True)": ((3, 5, 8),) * 3,
    "MultiheadAttention(8, 2, kdim=6, vdim=5, bias=False)": ((5, 3, 8), (4, 3, 6), (4, 3, 5)),
}
_PLAIN = """
    ReLU GELU SiLU Tanh Sigmoid LeakyReLU ELU SELU CELU Hardtanh ReLU6 Softplus Softsign Mish
    Hardswish Hardsigmoid LogSigmoid Tanhshrink Softshrink Hardshrink GLU
"""
for _name in _PLAIN.split():
    CASES[f"{_name}()"] = ((3, 4),)
for _name in ("Zero", "Constant", "Reflection", "Replication", "Circular"):
    for _rank in (1, 2, 3):
        _value = ", 3.5" if _name == "Constant" else ""
        CASES[f"{_name}Pad{_rank}d(1{_value})"] = ((2, 3, *(3, 4, 5)[:_rank]),)
        _sides = (1, 0) if _rank == 1 else 1
        CASES[f"{_name}Pad{_rank}d({_sides}{_value})"] = (
            (3, *(3, 4, 5)[:_rank]),)

PRINTED = [
    "Dropout(0.3, True)", "Dropout2d()", "AlphaDropout()", "FeatureAlphaDropout()", "RReLU()", "RReLU(inplace=True)",
    "LeakyReLU(inplace=True)", "Softmax()", "Embedding(3, 4, padding_idx=-1, max_norm=2.0, norm_type=1.0, sparse=True)",
    "MaxPool1d(3, return_indices=True)", "LPPool3d(2, 3)", "LSTM(2, 3, 2, dropout=0.1)", "MSELoss()", "L1Loss('sum')",
    "CrossEntropyLoss(label_smoothing=0.1)", "TripletMarginWithDistanceLoss()", "ReLU6(True)", "ELU(2.0, True)",
    "ModuleList([nn.ReLU(), nn.ReLU(), nn.Tanh()])", "Sequential(nn.Linear(1, 2), nn.Sequential(nn.ReLU()))",
    "ModuleDict({'a': nn.Linear(1, 1)})", "ParameterList([torch.zeros(2, 3), 'x'])",
    "ParameterDict({'a': torch.zeros(2, 3), 'b': 3})", "ParameterList()", "ModuleDict()",
]


def build(source, nn, module):
    constructor = eval(f"lambda nn, torch: nn.{source}")
    module.manual_seed(0)
    return constructor(nn, module)


def inputs(shapes, seed=1):
    rng = np.random.default_rng(seed)
    arrays = []
    for shape in shapes:
        if isinstance(shape[0], str):
            arrays.append(rng.integers(0, int(shape[0][1:]), shape[1:]))
        else:
            arrays.append(rng.standard_normal(shape).astype(np.float32))
    return arrays


def flat(value):
    return [t for v in value for t in flat(v)] if isinstance(value, tuple | list) else [value]


def run(module, layer, arrays):
    xs = [module.tensor(a.copy()) for a in arrays]
    for x in xs:
        if x.dtype == module.float32:
            x.requires_grad_()
    # a copy, so that an in-place layer does not write to a leaf
    given = [x * 1 if x.requires_grad else x for x in xs]
    outs = [o for o in flat(layer(*given)) if o is not None]
    total = None
    for i, out in enumerate(outs):
        if out.requires_grad:
            weights = np.cos(np.arange(out.numel()) + i).astype(np.float32).reshape(tuple(out.shape))
            term = (out * module.tensor(weights)).sum()
            total = term if total is None else total + term
    if total is not None:
        total.backward()
    grads = [x.grad for x in xs] + [p.grad for p in layer.parameters()]
    return outs, grads


def close(a, b, what):
    assert (a is None) == (b is None), what
    if a is not None:
        x, y = a.detach().numpy(), b.detach().numpy()
        assert (x.shape, x.dtype) == (y.shape, y.dtype), what
        np.testing.assert_allclose(y, x, rtol=2e-5, atol=2e-6, err_msg=what)


@pytest.mark.parametrize("source", CASES)
def test_layer(source):
    theirs, ours = build(source, torch.nn, torch), build(source, fnn, flambeau)
    assert repr(ours) == repr(theirs)
    mine, its = ours.state_dict(), theirs.state_dict()
    assert list(mine) == list(its)
    assert mine._metadata == its._metadata
    for name in its:
        x, y = its[name].numpy(), mine[name].numpy()
        assert x.dtype == y.dtype
        assert x.shape == y.shape
        assert np.array_equal(x, y), f"initial {name} differs"
    arrays = inputs(CASES[source])
    for mode in (True, False):
        for layer in (theirs, ours):
            layer.train(mode)
            layer.zero_grad()
        (outs1, grads1), (outs2, grads2) = run(torch, theirs, arrays), run(flambeau, ours, arrays)
        assert len(outs1) == len(outs2)
        for i, (a, b) in enumerate(zip(outs1, outs2, strict=True)):
            close(a, b, f"output {i}")
        for i, (a, b) in enumerate(zip(grads1, grads2, strict=True)):
            close(a, b, f"gradient {i}")
        for (name, a), (_, b) in zip(theirs.named_buffers(), ours.named_buffers(), strict=True):
            close(a, b, name)


@pytest.mark.parametrize("source", PRINTED)
def test_print(source):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs, ours = build(source, torch.nn, torch), build(source, fnn, flambeau)
    assert repr(ours).replace("flambeau.", "torch.") == repr(theirs)


@pytest.mark.parametrize("source", [
    "Conv2d(3, 4, 3, groups=2)", "Conv2d(4, 3, 3, groups=2)", "Conv2d(3, 4, 3, groups=0)",
    "Conv2d(3, 4, 3, padding='same', stride=2)", "ConvTranspose2d(3, 4, 3, padding_mode='reflect')",
    "Dropout(2)", "Dropout(-0.1)", "Embedding(3, 2, padding_idx=5)", "Unflatten(1, 3)", "Unflatten(1, (2, 'a'))",
    "GroupNorm(3, 4)", "Hardtanh(2, 1)", "LSTM(2.0, 3)", "LSTM(2, 0)", "LSTM(2, 3, num_layers=0)",
    "LSTM(2, 3, proj_size=3)", "LSTM(2, 3, bias=None)", "LSTM(2, 3, dropout=2)", "GRU(2, 3, proj_size=1)",
    "RNN(2, 3, nonlinearity='x')", "MultiheadAttention(5, 2)", "MultiheadAttention(0, 2)", "TripletMarginLoss(0)",
    "HuberLoss(delta='a')", "MultiMarginLoss(p=3)", "BatchNorm1d(3)(torch.zeros(3))", "Bilinear(0, 1, 1)",
    "BatchNorm1d(3)(torch.zeros(1, 3))", "BatchNorm2d(3)(torch.zeros(1, 3))", "BatchNorm3d(3)(torch.zeros(1, 3))",
    "InstanceNorm2d(3)(torch.zeros(3))", "InstanceNorm1d(3)(torch.zeros(1, 3, 1))", "Softmax2d()(torch.zeros(2))",
    "CircularPad1d(1)(torch.zeros(1))", "ReflectionPad1d(3)(torch.zeros(1, 3))",
    "PixelShuffle(2)(torch.zeros(3, 1, 1))",
    "LSTM(2, 3)(torch.zeros(3))", "LSTM(2, 3)(torch.zeros(3, 4))", "GRU(2, 3)(torch.zeros(3, 2), torch.zeros(1))",
    "GRU(2, 3)(torch.zeros(3, 2), torch.zeros(1, 4))",
    "LSTM(2, 3)(torch.zeros(3, 2), (torch.zeros(1, 2), torch.zeros(1, 3)))",
    "RNNCell(2, 3)(torch.zeros(3, 3))", "RNNCell(2, 3)(torch.zeros(3, 2), torch.zeros(3, 2))",
    "LSTMCell(2, 3)(torch.zeros(1, 1, 2))",
    "ConvTranspose1d(1, 1, 3, stride=2)(torch.zeros(1, 1, 3), output_size=[20])",
    "AdaptiveAvgPool2d((1, None))(torch.zeros(2, 2))", "Upsample(size=3, mode='bilinear')(torch.zeros(1, 1, 3))",
    "Upsample()(torch.zeros(1, 1, 3))",
])
def test_error(source):
    caught = []
    for nn, module in ((torch.nn, torch), (fnn, flambeau)):
        with pytest.raises(Exception) as info:
            build(source, nn, module)
        caught.append((type(info.value), str(info.value).replace("flambeau.", "torch.")))
    assert caught[1] == caught[0]


def test_signatures():
    import inspect

    for name in fnn.modules.__all__:
        theirs, ours = getattr(torch.nn, name), getattr(fnn, name)
        if name in ("RNN", "LSTM", "GRU", "Module", "Identity", "Sequential"):
            continue
        mine = [(p.name, p.default) for p in list(inspect.signature(ours.__init__).parameters.values())[1:]]
        its = [(p.name, p.default) for p in list(inspect.signature(theirs.__init__).parameters.values())[1:]]
        if [p[0] for p in its] == ["args", "kwargs"]:
            its = [p for p in its if mine]
        if [p[0] for p in mine] == ["args", "kwargs"]:
            mine = [p for p in mine if its]
        mine, its = ([(n, getattr(d, "__qualname__", d)) for n, d in side] for side in (mine, its))
        assert mine == its, name


def test_checkpoints_interchange():
    theirs, ours = build("Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4))", torch.nn, torch), None
    ours = build("Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4))", fnn, flambeau)
    with torch.no_grad():
        theirs[0].weight.fill_(0.5)
    state = {k: flambeau.tensor(v.numpy()) for k, v in theirs.state_dict().items()}
    assert repr(ours.load_state_dict(state)) == "<All keys matched successfully>"
    back = {k: torch.tensor(v.numpy()) for k, v in ours.state_dict().items()}
    assert repr(theirs.load_state_dict(back)) == "<All keys matched successfully>"
    assert ours[0].weight.sum().item() == 6.0
