"""Graph networks of torch-geometric: classification of nodes, and of whole graphs in batches."""

import argparse

import torch
import torch.nn.functional as F
from torch import nn
from torch_geometric.data import Data
from torch_geometric.loader import DataLoader
from torch_geometric.nn import GATv2Conv, GCNConv, GINConv, GraphNorm, SAGEConv, TransformerConv, global_add_pool
from torch_geometric.utils import erdos_renyi_graph, to_undirected

parser = argparse.ArgumentParser()
parser.add_argument("--steps", type=int, default=50)
args = parser.parse_args()
torch.manual_seed(5)


class Nodes(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([GCNConv(16, 32), SAGEConv(32, 32), GATv2Conv(32, 8, heads=4, dropout=0.1),
                                     TransformerConv(32, 16, heads=2)])
        self.head = nn.Linear(32, 4)

    def forward(self, x, edges):
        for layer in self.layers:
            x = F.relu(layer(x, edges))
        return self.head(x)


class Graphs(nn.Module):
    def __init__(self):
        super().__init__()
        mlp = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 32))
        self.first, self.norm, self.second = GINConv(mlp, train_eps=True), GraphNorm(32), GCNConv(32, 32)
        self.head = nn.Linear(32, 2)

    def forward(self, x, edges, batch):
        x = self.norm(self.first(x, edges), batch).relu()
        return self.head(global_add_pool(self.second(x, edges).relu(), batch))


x, y = torch.randn(200, 16), torch.randint(4, (200,))
edges = to_undirected(erdos_renyi_graph(200, 0.03))
model = Nodes()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for _ in range(args.steps):
    optimizer.zero_grad()
    F.cross_entropy(model(x, edges), y).backward()
    optimizer.step()

graphs = []
for _ in range(64):
    label = int(torch.randint(2, ()))
    count = int(torch.randint(8, 20, ()))
    graphs.append(Data(x=torch.randn(count, 8), edge_index=erdos_renyi_graph(count, 0.2 + 0.2 * label), y=label))
model = Graphs()
optimizer = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9)
step = 0
while step < args.steps:
    for batch in DataLoader(graphs, batch_size=16, shuffle=True):
        optimizer.zero_grad()
        F.cross_entropy(model(batch.x, batch.edge_index, batch.batch), batch.y).backward()
        optimizer.step()
        step += 1
        if step == args.steps:
            break
