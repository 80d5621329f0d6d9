"""Bag-of-words text classification with Embedding."""
import torch
from torch import nn

sentences = [("i love this film", 1), ("what a great story", 1), ("i hate this film", 0), ("a terrible boring story", 0),
             ("great great film", 1), ("boring and terrible", 0)]
vocab = {"<pad>": 0}
for s, _ in sentences:
    for word in s.split():
        vocab.setdefault(word, len(vocab))
print(vocab)
torch.manual_seed(2)
rows = [torch.tensor([vocab[w] for w in s.split()]) for s, _ in sentences]
labels = torch.tensor([label for _, label in sentences])
padded = torch.zeros(len(rows), max(map(len, rows)), dtype=torch.long)
for i, row in enumerate(rows):
    padded[i, :len(row)] = row
print(padded)


class Bag(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(len(vocab), 4, padding_idx=0)
        self.fc = nn.Linear(4, 2)

    def forward(self, text):
        found = self.embedding(text)
        return self.fc(found.sum(1) / (text != 0).sum(1, keepdim=True))


model = Bag()
print(model)
opt = torch.optim.Adagrad(model.parameters(), lr=0.5)
for epoch in range(20):
    opt.zero_grad()
    loss = nn.CrossEntropyLoss()(model(padded), labels)
    loss.backward()
    opt.step()
    if epoch % 5 == 0:
        print(epoch, f"{loss:.4f}")
print(model(padded).argmax(1), labels)

emb = nn.Embedding(len(vocab), 3, padding_idx=0)
print(emb, emb.weight[0])
out = emb(padded)
mask = (padded != 0).unsqueeze(-1)
mean = (out * mask).sum(1) / mask.sum(1)
mean.sum().backward()
print(out.shape, mean.shape, emb.weight.grad[0], emb.weight.grad[1], mean.grad_fn)
print(nn.Embedding.from_pretrained(torch.eye(3))(torch.tensor([[2, 0]])), emb.weight.requires_grad)
counts = torch.zeros(len(rows), len(vocab)).scatter_add_(1, padded, torch.ones(padded.shape))
print(counts[:, 1:].sum(1), counts[4])
print(torch.stack([torch.bincount(r, minlength=len(vocab)) for r in rows])[4])
sparse = nn.Embedding(5, 2, max_norm=1.0)
print(sparse(torch.tensor([1, 2])).norm(dim=1).le(1.0001), sparse)
