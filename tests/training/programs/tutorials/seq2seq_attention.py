"""Sequence to sequence with additive attention: reversal of digits, teacher forcing, masked loss, packed inputs."""

import argparse

import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence, pad_sequence

parser = argparse.ArgumentParser()
parser.add_argument("--steps", type=int, default=50)
args = parser.parse_args()
torch.manual_seed(7)
SOS, EOS, PAD, SIZE, MAX = 0, 1, 2, 13, 8


def sequence_mask(X, valid_len, value=0):
    mask = torch.arange(X.size(1), dtype=torch.float32, device=X.device)[None, :] < valid_len[:, None]
    X[~mask] = value
    return X


def masked_softmax(X, valid_lens):
    shape = X.shape
    valid_lens = torch.repeat_interleave(valid_lens, shape[1]) if valid_lens.dim() == 1 else valid_lens.reshape(-1)
    X = sequence_mask(X.reshape(-1, shape[-1]), valid_lens, value=-1e6)
    return F.softmax(X.reshape(shape), dim=-1)


class AdditiveAttention(nn.Module):
    def __init__(self, n, dropout):
        super().__init__()
        self.W_k, self.W_q = nn.Linear(n, n, bias=False), nn.Linear(n, n, bias=False)
        self.w_v, self.dropout = nn.Linear(n, 1, bias=False), nn.Dropout(dropout)

    def forward(self, queries, keys, values, valid_lens):
        features = torch.tanh(self.W_q(queries).unsqueeze(2) + self.W_k(keys).unsqueeze(1))
        self.attention_weights = masked_softmax(self.w_v(features).squeeze(-1), valid_lens)
        return torch.bmm(self.dropout(self.attention_weights), values)


class Encoder(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.embedding = nn.Embedding(SIZE, n, padding_idx=PAD)
        self.rnn = nn.GRU(n, n, bidirectional=True, batch_first=True)
        self.merge = nn.Linear(2 * n, n)

    def forward(self, X, lengths):
        packed = pack_padded_sequence(self.embedding(X), lengths.cpu(), batch_first=True, enforce_sorted=False)
        output, state = self.rnn(packed)
        output, _ = pad_packed_sequence(output, batch_first=True)
        state = torch.tanh(self.merge(torch.cat([state[0], state[1]], -1)))
        return self.merge(output), state.unsqueeze(0)


class Decoder(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.attention = AdditiveAttention(n, 0.1)
        self.embedding = nn.Embedding(SIZE, n)
        self.rnn = nn.GRU(2 * n, n)
        self.dense = nn.Linear(n, SIZE)

    def forward(self, X, enc_outputs, state, lengths):
        outputs = []
        for x in self.embedding(X).permute(1, 0, 2):
            query = torch.unsqueeze(state[-1], dim=1)
            context = self.attention(query, enc_outputs, enc_outputs, lengths)
            x = torch.cat((context, torch.unsqueeze(x, dim=1)), dim=-1)
            out, state = self.rnn(x.permute(1, 0, 2), state)
            outputs.append(out)
        return self.dense(torch.cat(outputs, dim=0)).permute(1, 0, 2), state


def batch(size):
    lengths = torch.randint(3, MAX, (size,))
    source = [torch.randint(3, SIZE, (int(n),)) for n in lengths]
    target = [torch.cat([s.flip(0), torch.tensor([EOS])]) for s in source]
    return (pad_sequence(source, batch_first=True, padding_value=PAD), lengths,
            pad_sequence(target, batch_first=True, padding_value=PAD), lengths + 1)


encoder, decoder = Encoder(24), Decoder(24)
for module in (encoder, decoder):
    for name, parameter in module.named_parameters():
        if "weight" in name and parameter.dim() > 1 and "embedding" not in name:
            nn.init.orthogonal_(parameter) if "rnn" in name else nn.init.xavier_uniform_(parameter)
parameters = [*encoder.parameters(), *decoder.parameters()]
optimizer = torch.optim.NAdam(parameters, lr=5e-3)
for step in range(args.steps):
    source, lengths, target, target_lengths = batch(16)
    optimizer.zero_grad()
    enc_outputs, state = encoder(source, lengths)
    begin = torch.full((len(target), 1), SOS)
    logits, _ = decoder(torch.cat([begin, target[:, :-1]], 1), enc_outputs, state, lengths)
    weights = sequence_mask(torch.ones_like(target, dtype=torch.float32), target_lengths)
    unweighted = F.cross_entropy(logits.permute(0, 2, 1), target, reduction="none")
    loss = (unweighted * weights).mean(dim=1).sum()
    loss.backward()
    norm = torch.sqrt(sum(torch.sum(p.grad ** 2) for p in parameters))
    if norm > 1:
        for p in parameters:
            p.grad[:] *= 1 / norm
    optimizer.step()
encoder.eval(), decoder.eval()
source, lengths, target, _ = batch(2)
with torch.no_grad():
    enc_outputs, state = encoder(source, lengths)
    x, said = torch.full((2, 1), SOS), []
    for _ in range(MAX):
        logits, state = decoder(x, enc_outputs, state, lengths)
        x = logits.argmax(dim=2)
        said.append(x)
print(torch.cat(said, 1).tolist(), target.tolist())
print(decoder.attention.attention_weights.shape, f"{decoder.attention.attention_weights.sum():.4f}")
