"""Recurrent layers and the encoder layer's inference path under autocast: dtypes and values are PyTorch's."""

from __future__ import annotations

import pytest

import flambeau

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.parity


def _same(run):
    mine, theirs = ([(str(t.dtype).rpartition(".")[2], t.detach().float().numpy()) for t in run(library)]
                    for library in (flambeau, torch))
    assert [dtype for dtype, _ in mine] == [dtype for dtype, _ in theirs]
    for (_, a), (_, b) in zip(mine, theirs, strict=True):
        assert a == pytest.approx(b, abs=1e-2)


@pytest.mark.parametrize("name", ["RNN", "LSTM", "GRU"])
@pytest.mark.parametrize("given", ["float32", "bfloat16", "packed"])
def test_recurrent_layers(name, given):
    def run(library):
        library.manual_seed(0)
        layer = getattr(library.nn, name)(4, 5, 2, bidirectional=True)
        x = library.randn(3, 2, 4)
        if given == "packed":
            x = library.nn.utils.rnn.pack_sequence([x[:, 0], x[:2, 1]])
        else:
            x = x.to(getattr(library, given))
        with library.autocast("cpu", dtype=library.bfloat16):
            y, states = layer(x)
        y = y.data if given == "packed" else y
        y.float().sum().backward()
        return [y, *(states if isinstance(states, tuple) else (states,)), layer.weight_hh_l0.grad]

    if name == "LSTM" and given == "float32":
        # oneDNN refuses mixed dtypes on some processors; where it does not, the result is that of the narrow input
        y, h, c, grad = run(flambeau)
        assert {str(t.dtype) for t in (y, h, c)} == {"flambeau.bfloat16"}
        assert grad.dtype is flambeau.float32
    else:
        _same(run)


@pytest.mark.parametrize("norm_first", [False, True])
def test_encoder_layers_in_inference(norm_first):
    def run(library):
        library.manual_seed(0)
        layer = library.nn.TransformerEncoderLayer(16, 2, 32, batch_first=True, norm_first=norm_first).eval()
        x = library.randn(2, 3, 16)
        with library.no_grad(), library.autocast("cpu", dtype=library.bfloat16):
            plain = layer(x)
            padded = layer(x, src_key_padding_mask=library.tensor([[False, False, True], [False, False, False]]))
        return [plain, padded[:1, :2]]

    _same(run)
