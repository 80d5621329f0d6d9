"""A Transformer that learns to sort, with label smoothing, warm-up and accumulated gradients."""

import argparse

import torch
import torch.nn.functional as F
from torch import nn

parser = argparse.ArgumentParser()
parser.add_argument("--steps", type=int, default=50)
args = parser.parse_args()
torch.manual_seed(9)
WORDS, LENGTH, START = 12, 8, 12


class Sorter(nn.Module):
    def __init__(self, width=32):
        super().__init__()
        self.words, self.places = nn.Embedding(WORDS + 1, width), nn.Parameter(torch.zeros(LENGTH + 1, width))
        self.transformer = nn.Transformer(width, 4, 2, 2, 64, dropout=0.1, batch_first=True, norm_first=True)
        self.head = nn.Linear(width, WORDS + 1, bias=False)
        self.head.weight = self.words.weight

    def forward(self, given, told):
        mask = nn.Transformer.generate_square_subsequent_mask(told.shape[1])
        y = self.transformer(self.words(given) + self.places[: given.shape[1]],
                             self.words(told) + self.places[: told.shape[1]], tgt_mask=mask, tgt_is_causal=True)
        return self.head(y)


model = Sorter()
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda n: min(1.0, (n + 1) / 10))
for step in range(args.steps):
    given = torch.randint(WORDS, (32, LENGTH))
    wanted = given.sort(dim=1).values
    told = torch.cat([torch.full((32, 1), START), wanted[:, :-1]], dim=1)
    logits = model(given, told)
    (F.cross_entropy(logits.flatten(0, 1), wanted.flatten(), label_smoothing=0.1) / 2).backward()
    if step % 2:
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        scheduler.step()
        optimizer.zero_grad()
model.eval()
given = torch.randint(WORDS, (4, LENGTH))
told = torch.full((4, 1), START)
with torch.no_grad():
    for _ in range(LENGTH):
        told = torch.cat([told, model(given, told)[:, -1:].argmax(-1)], dim=1)
print(told.tolist())
