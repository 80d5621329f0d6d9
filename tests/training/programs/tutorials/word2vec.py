"""Skip-gram with negative sampling: subsampling, a noise distribution, masks as weights, sparse gradients, neighbours."""

import argparse
import collections
import math
import random

import torch
from torch import nn

parser = argparse.ArgumentParser()
parser.add_argument("--steps", type=int, default=50)
args = parser.parse_args()
torch.manual_seed(5)
random.seed(5)
subjects, verbs, things = ["cat", "dog", "cow", "hen"], ["eats", "sees", "likes"], ["grass", "corn", "milk", "mice"]
sentences = [[random.choice(subjects), random.choice(verbs), "the", random.choice(things), "and", random.choice(verbs),
              "a", random.choice(things)] for _ in range(150)]
counter = collections.Counter(token for line in sentences for token in line)
vocab = {token: i for i, (token, _) in enumerate(counter.most_common())}
total = sum(counter.values())
keep = lambda token: random.uniform(0, 1) < math.sqrt(5e-2 / counter[token] * total)
corpus = [[vocab[token] for token in line if keep(token)] for line in sentences]
weights = torch.tensor([counter[token] ** 0.75 for token in vocab])


def examples(corpus, window=2, K=3):
    for line in corpus:
        if len(line) < 2:
            continue
        for i in range(len(line)):
            size = random.randint(1, window)
            context = [line[j] for j in range(max(0, i - size), min(len(line), i + 1 + size)) if j != i]
            negatives = []
            while len(negatives) < len(context) * K:
                found = int(torch.multinomial(weights, 1))
                if found not in context:
                    negatives.append(found)
            yield line[i], context, negatives


def batchify(data):
    longest = max(len(c) + len(n) for _, c, n in data)
    centers, contexts, masks, labels = [], [], [], []
    for center, context, negative in data:
        size = len(context) + len(negative)
        centers += [center]
        contexts += [context + negative + [0] * (longest - size)]
        masks += [[1] * size + [0] * (longest - size)]
        labels += [[1] * len(context) + [0] * (longest - len(context))]
    return torch.tensor(centers).reshape((-1, 1)), torch.tensor(contexts), torch.tensor(masks), torch.tensor(labels)


dataset = list(examples(corpus[:60]))
loader = torch.utils.data.DataLoader(dataset, 32, shuffle=True, collate_fn=batchify)
embed_v, embed_u = nn.Embedding(len(vocab), 16, sparse=True), nn.Embedding(len(vocab), 16, sparse=True)
for embedding in (embed_v, embed_u):
    nn.init.xavier_uniform_(embedding.weight)
optimizer = torch.optim.SparseAdam([embed_v.weight, embed_u.weight], lr=0.02)
loss_fn = lambda inputs, target, mask: nn.functional.binary_cross_entropy_with_logits(
    inputs, target, weight=mask, reduction="none").mean(dim=1)
step, seen = 0, 0.0
while step < args.steps:
    for center, context, mask, label in loader:
        optimizer.zero_grad()
        pred = torch.bmm(embed_v(center), embed_u(context).permute(0, 2, 1))
        loss = loss_fn(pred.reshape(label.shape).float(), label.float(), mask.float()) / mask.sum(axis=1) * mask.shape[1]
        loss.sum().backward()
        assert embed_v.weight.grad.is_sparse
        optimizer.step()
        seen += loss.sum().item()
        step += 1
        if step == args.steps:
            break
print(f"loss {seen / step:.4f}, gradients of {embed_v.weight.grad.coalesce().indices().numel()} rows")
W = embed_v.weight.data
x = W[vocab["cat"]]
cos = torch.mv(W, x) / torch.sqrt(torch.sum(W * W, dim=1) * torch.sum(x * x) + 1e-9)
names = list(vocab)
for i in torch.topk(cos, k=4)[1].cpu().numpy().astype("int32")[1:]:
    print(f"cosine sim={float(cos[i]):.3f}: {names[i]}")
