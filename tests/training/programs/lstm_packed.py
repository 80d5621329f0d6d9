"""A bidirectional LSTM and a GRU over packed sequences of unequal length."""

import argparse

import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.utils.rnn import pack_sequence, pad_packed_sequence

parser = argparse.ArgumentParser()
parser.add_argument("--steps", type=int, default=50)
args = parser.parse_args()
torch.manual_seed(10)


class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(8, 16, num_layers=2, bidirectional=True, dropout=0.2)
        self.gru = nn.GRU(32, 16)
        self.head = nn.Linear(16, 3)

    def forward(self, sequences):
        packed, _ = self.lstm(pack_sequence(sequences, enforce_sorted=False))
        packed, last = self.gru(packed)
        padded, lengths = pad_packed_sequence(packed, batch_first=True, padding_value=0.0)
        return self.head(padded), lengths, last


model = Tagger()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, nesterov=True)
for _ in range(args.steps):
    sequences = [torch.randn(int(n), 8) for n in torch.randint(2, 12, (8,))]
    labels = nn.utils.rnn.pad_sequence([(s.cumsum(0)[:, 0] > 0).long() for s in sequences], True, -100)
    logits, lengths, last = model(sequences)
    optimizer.zero_grad()
    (F.cross_entropy(logits.transpose(1, 2), labels) + 0.01 * last.square().mean()).backward()
    optimizer.step()
print(lengths.tolist())
