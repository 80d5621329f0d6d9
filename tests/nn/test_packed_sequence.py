"""Packed sequences, alone and through recurrent layers, compared with PyTorch."""

from __future__ import annotations

import pytest

from tests.nn.same_program import compare

pytest.importorskip("torch")
pytestmark = pytest.mark.parity

START = """
from torch.nn.utils.rnn import *
x = torch.arange(24.).reshape(4, 3, 2).sin().requires_grad_()
"""
PROGRAMS = [
    "result = pack_padded_sequence(x, [4, 3, 1])",
    "result = pack_padded_sequence(x, torch.tensor([2, 2, 1]))",
    "result = pack_padded_sequence(x, torch.tensor([4, 2, 1, 1.]), batch_first=True)",
    "result = pack_padded_sequence(x, [1, 3, 2, 2], batch_first=True, enforce_sorted=False)",
    "p = pack_padded_sequence(x, [1, 4, 2], enforce_sorted=False); result = pad_packed_sequence(p)",
    "p = pack_padded_sequence(x, [4, 2, 2]); result = pad_packed_sequence(p, True, -1., 6)",
    "p = pack_padded_sequence(x, [4, 2, 2]); (p.data ** 2).sum().backward(); result = x.grad",
    "p = pack_padded_sequence(x, [4, 2, 2]); pad_packed_sequence(p)[0].pow(2).sum().backward(); result = x.grad",
    "result = pad_packed_sequence(pack_padded_sequence(x, [3, 2, 2]), total_length=2)",
    "result = pack_padded_sequence(x, [3, 0, 2])", "result = pack_padded_sequence(x, [1, 2, 3])",
    "result = pack_padded_sequence(x, [1, 2], enforce_sorted=False)",
    "result = pack_padded_sequence(torch.zeros(0, 2), [1, 1])",
    "result = pack_padded_sequence(x, torch.tensor([[3, 2]]))", "result = pack_padded_sequence(x, [7, 2, 1])",
    "result = torch._pad_packed_sequence(x, torch.tensor([2, 2], dtype=torch.int32), False, 0., 3)",
    "result = pad_sequence([torch.ones(2), torch.ones(3)], padding_value=2)",
    "result = pad_sequence([x[0], x[1, :2]], batch_first=True, padding_side='left')",
    "result = pad_sequence([])", "result = pad_sequence(3)", "result = pad_sequence(['a'])",
    "result = pad_sequence([torch.ones(2), torch.ones(3, 2)])", "result = pad_sequence(x)",
    "result = pad_sequence([torch.ones(2)], padding_side='x')", "result = pad_sequence([torch.tensor(1.)])",
    "result = unpad_sequence(x.detach(), torch.tensor([1, 4, 2]))",
    "result = pack_sequence([x[0], x[1, :2]])", "result = pack_sequence([x[1, :2], x[0]])",
    "result = unpack_sequence(pack_sequence([x[1, :2], x[0]], enforce_sorted=False))",
    "result = invert_permutation(torch.tensor([2, 0, 1])), invert_permutation(None)",
    "p = pack_sequence([x[0]]); result = p.double(), p.half(), p.long(), p.int(), p.short(), p.char(), p.byte()",
    "p = pack_sequence([x[0]]); result = p.float() is p, p.to('cpu') is p, p.cpu() is p, p.is_cuda, p.is_pinned()",
    "p = pack_sequence([x[0]]); result = PackedSequence((p.data, p.batch_sizes)), repr(p)",
    "result = PackedSequence(x)", "nn.modules.rnn.apply_permutation(x, torch.tensor([1, 0, 2])); result = 1",
    "p = pack_padded_sequence(x, [4, 2, 2]); result = nn.GRU(3, 2)(p)",
    "p = pack_padded_sequence(x, [4, 2, 2]); result = nn.RNN(2, 3)(p, torch.zeros(1, 2, 3))",
    "p = pack_padded_sequence(x.double(), [4, 2, 2]); result = nn.RNN(2, 3)(p)",
]


@pytest.mark.parametrize("program", PROGRAMS)
def test_packing(program):
    compare(START + program)


@pytest.mark.parametrize("layer", ["LSTM(2, 3)", "GRU(2, 3)", "RNN(2, 3)", "RNN(2, 3, nonlinearity='relu')",
                                   "LSTM(2, 3, proj_size=2)"])
@pytest.mark.parametrize("how", ["", "num_layers=2, bidirectional=True", "bias=False, bidirectional=True",
                                 "num_layers=3, dropout=0.5"])
@pytest.mark.parametrize("lengths", ["[4, 2, 1]", "[1, 3, 4]", "[3, 3, 3]"])
@pytest.mark.parametrize("hidden", [False, True])
def test_recurrent_layers_of_packed_sequences(layer, how, lengths, hidden):
    layer = layer[:-1] + ", " + how + ")"
    states = "layer.num_layers * (2 if layer.bidirectional else 1), 3"
    size = "layer.proj_size or 3"
    hx = "None" if not hidden else f"torch.randn({states}, {size}).requires_grad_()"
    if hidden and layer.startswith("LSTM"):
        hx = f"({hx}, torch.randn({states}, 3).requires_grad_())"
    compare(START + f"""
layer = nn.{layer}
hx = {hx}
p = pack_padded_sequence(x, {lengths}, enforce_sorted=False)
out, final = layer(p, hx)
finals = final if isinstance(final, tuple) else (final,)
loss = out.data.pow(2).sum() + sum(f.sin().sum() for f in finals)
states = [] if hx is None else list(hx) if isinstance(hx, tuple) else [hx]
grads = torch.autograd.grad(loss, [x, *states, *layer.parameters()])
result = [out.data.detach(), out[1:], [f.detach() for f in finals], grads]
""")


@pytest.mark.parametrize("call", [
    "torch.lstm(x, (h, h), layer._flat_weights, True, 2, 0., True, False, False)",
    ("torch.lstm(x, hx=(h, h), params=layer._flat_weights, has_biases=True, num_layers=2, dropout=0., train=True, "
     "bidirectional=False, batch_first=False)"),
    "torch.lstm(p.data, p.batch_sizes, (h, h), layer._flat_weights, True, 2, 0., True, False)",
    "torch.gru(p.data, p.batch_sizes, h, gru._flat_weights, True, 2, 0., True, False)",
    "torch.gru(x.transpose(0, 1), h, gru._flat_weights, True, 2, 0., True, False, True)",
    "torch.rnn_tanh(x, h, rnn._flat_weights, True, 2, 0., True, False, False)",
    "torch.rnn_relu(x, h, rnn._flat_weights, True, 2, 0.3, True, False, False)",
    "torch.lstm_cell(x[0], (h[0], h[1]), *layer._flat_weights[:4])",
    "torch.gru_cell(x[0], h[0], *gru._flat_weights[:4])", "torch.gru_cell(x[0], h[0], *gru._flat_weights[:2])",
    "torch.rnn_tanh_cell(x[0], h[0], *rnn._flat_weights[:4])",
    "torch.rnn_relu_cell(x[0], h[0], *rnn._flat_weights[:4])",
    "torch.rnn_tanh_cell(x[0], h[0], *gru._flat_weights[:4])",
    "[i for i in torch._VF.lstm(x, (h, h), layer._flat_weights, True, 2, 0., True, False, False)]",
])
def test_functions(call):
    compare(START + f"""
layer, gru, rnn = nn.LSTM(2, 3, 2), nn.GRU(2, 3, 2), nn.RNN(2, 3, 2)
h = torch.randn(2, 3, 3)
p = pack_padded_sequence(x, [4, 2, 1])
result = {call}
result = [r.detach() for r in (result if isinstance(result, (list, tuple)) else [result])]
""")
