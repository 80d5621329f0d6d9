"""Graph networks of plain operators: convolution by a sparse matrix, attention over edges, sums over neighbours."""

import argparse

import torch
import torch.nn.functional as F
from torch import nn

parser = argparse.ArgumentParser()
parser.add_argument("--steps", type=int, default=50)
args = parser.parse_args()
torch.manual_seed(4)
NODES, CLASSES, FEATURES = 300, 4, 16

labels = torch.randint(CLASSES, (NODES,))
features = F.one_hot(labels, CLASSES).float() @ torch.randn(CLASSES, FEATURES) + 1.5 * torch.randn(NODES, FEATURES)
close = (labels[:, None] == labels).float() * 0.03 + 0.003
edges = (torch.rand(NODES, NODES) < close).triu(1).nonzero().T
edges = torch.cat([edges, edges.flip(0), torch.arange(NODES).repeat(2, 1)], dim=1)
source, target = edges
degree = torch.bincount(target, minlength=NODES).float()
adjacency = torch.sparse_coo_tensor(edges, (degree[source] * degree[target]).rsqrt(), (NODES, NODES)).coalesce()


class Convolution(nn.Module):
    def __init__(self, inner, outer):
        super().__init__()
        self.linear = nn.Linear(inner, outer)

    def forward(self, x):
        return torch.sparse.mm(adjacency, self.linear(x))


class Attention(nn.Module):
    def __init__(self, inner, outer, heads=4):
        super().__init__()
        self.linear = nn.Linear(inner, heads * outer, bias=False)
        self.from_source, self.from_target = (nn.Parameter(torch.empty(heads, outer)) for _ in range(2))
        nn.init.xavier_uniform_(self.from_source)
        nn.init.xavier_uniform_(self.from_target)
        self.heads = heads

    def forward(self, x):
        x = self.linear(x).view(len(x), self.heads, -1)
        score = F.leaky_relu((x * self.from_source).sum(-1)[source] + (x * self.from_target).sum(-1)[target], 0.2)
        place = target[:, None].expand_as(score)
        largest = score.new_full((NODES, self.heads), -torch.inf).scatter_reduce(0, place, score, "amax")
        weight = (score - largest[target]).exp()
        total = torch.zeros_like(largest).index_add(0, target, weight)
        weight = F.dropout(weight / total[target], 0.2, self.training)
        return torch.zeros_like(x).index_add(0, target, weight[:, :, None] * x[source]).flatten(1)


class Isomorphism(nn.Module):
    def __init__(self, inner, outer):
        super().__init__()
        self.epsilon = nn.Parameter(torch.zeros(()))
        self.mlp = nn.Sequential(nn.Linear(inner, outer), nn.BatchNorm1d(outer), nn.ReLU(), nn.Linear(outer, outer))

    def forward(self, x):
        total = torch.zeros_like(x).scatter_add_(0, target[:, None].expand(-1, x.shape[1]), x[source])
        return self.mlp((1 + self.epsilon) * x + total)


class Network(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([Convolution(FEATURES, 32), Attention(32, 8), Isomorphism(32, 32)])
        self.head = nn.Linear(32, CLASSES)

    def forward(self, x):
        for layer in self.layers:
            x = F.elu(layer(x))
        return F.log_softmax(self.head(x), dim=-1)


order = torch.randperm(NODES)
train, test = order[:200], order[200:]
model = Network()
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3, weight_decay=5e-4)
for _ in range(args.steps):
    model.train()
    optimizer.zero_grad()
    F.nll_loss(model(features)[train], labels[train]).backward()
    optimizer.step()
model.eval()
accuracy = (model(features)[test].argmax(1) == labels[test]).float().mean()
print(f"accuracy {accuracy:.2f}")
