"""Warnings that come once, of operators that may change."""
import torch
from torch import nn

for _ in range(2):
    print(torch.ones(3).index_reduce_(0, torch.tensor([0, 2]), torch.tensor([5.0, 6.0]), "prod"))
layer = nn.TransformerEncoderLayer(8, 2, 16)
print(layer)
print(nn.TransformerEncoder(layer, 2)(torch.zeros(3, 1, 8)).shape)
