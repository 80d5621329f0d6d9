"""EmbeddingBag, and sequences padded to one length."""
import torch
from torch import nn
import torch.nn.functional as F

torch.manual_seed(2)
rows = [torch.tensor([1, 2, 3]), torch.tensor([4]), torch.tensor([5, 1])]
offsets = torch.tensor([0, 3, 4])
flat = torch.cat(rows)
for mode in ("mean", "sum", "max"):
    bag = nn.EmbeddingBag(6, 4, mode=mode)
    out = bag(flat, offsets)
    out.sum().backward()
    print(bag, out, bag.weight.grad)
print(F.embedding_bag(flat[:4].view(2, 2), torch.eye(6), mode="sum"))
padded = nn.utils.rnn.pad_sequence(rows, batch_first=True)
print(padded, nn.utils.rnn.pad_sequence(rows, padding_value=-1), [len(r) for r in nn.utils.rnn.unpad_sequence(padded.T, torch.tensor([3, 1, 2]))])
packed = nn.utils.rnn.pack_padded_sequence(padded.unsqueeze(-1).float(), torch.tensor([3, 1, 2]), batch_first=True, enforce_sorted=False)
print(packed)
out, h = nn.GRU(1, 2, batch_first=True)(packed)
print(nn.utils.rnn.pad_packed_sequence(out, batch_first=True)[0].shape, h.shape)
