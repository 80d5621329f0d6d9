"""State dicts: copied, pickled, loaded back, and mismatched."""
import copy
import pickle
from collections import OrderedDict

import torch
from torch import nn

torch.manual_seed(6)


class Net(nn.Module):
    def __init__(self, width=4):
        super().__init__()
        self.body = nn.Sequential(OrderedDict([("fc", nn.Linear(3, width)), ("bn", nn.BatchNorm1d(width)), ("act", nn.ReLU())]))
        self.head = nn.Linear(width, 2)
        self.register_buffer("scale", torch.tensor(2.0))
        self.register_buffer("scratch", torch.zeros(1), persistent=False)

    def forward(self, x):
        return self.head(self.body(x)) * self.scale


net = Net()
state = net.state_dict()
print(type(state), list(state), state["scale"], state["head.weight"].requires_grad)
print({k: (tuple(v.shape), v.dtype) for k, v in state.items()})
state["scale"].fill_(3)
print(net.scale)
other = Net()
print(other.load_state_dict(state), all(torch.equal(a, b) for a, b in zip(net.parameters(), other.parameters())))
twin = copy.deepcopy(net)
twin.head.weight.data.zero_()
print(torch.equal(twin.head.weight, net.head.weight), twin.body.fc.weight is net.body.fc.weight)
again = pickle.loads(pickle.dumps(net))
x = torch.randn(5, 3)
print(torch.equal(again.eval()(x), net.eval()(x)), again.training)
print(pickle.loads(pickle.dumps(state))["scale"], copy.deepcopy(state)["head.bias"].equal(net.head.bias))
print(pickle.loads(pickle.dumps(torch.arange(3.)[1:])), pickle.loads(pickle.dumps(nn.Parameter(torch.ones(2)))))
print(copy.copy(torch.ones(1)), copy.deepcopy(torch.ones(2, requires_grad=True)), pickle.loads(pickle.dumps(torch.float16)))
print(pickle.loads(pickle.dumps([torch.Size([1, 2]), torch.device("cpu"), torch.tensor(1j), torch.tensor([True])])))
net.train()
opt = torch.optim.Adam(net.parameters())
net(x).sum().backward()
opt.step()
fresh = torch.optim.Adam(Net().parameters())
fresh.load_state_dict(pickle.loads(pickle.dumps(opt.state_dict())))
print(fresh.state_dict()["state"][0]["step"], fresh.param_groups[0]["lr"])
for f in (lambda: net.load_state_dict({}), lambda: Net(5).load_state_dict(state), lambda: net.load_state_dict({**state, "extra": torch.ones(1)}),
          lambda: net.load_state_dict({"head.weight": torch.ones(1)}, strict=False), lambda: net.load_state_dict([1]),
          lambda: net.load_state_dict({k: v for k, v in state.items() if "bias" not in k}, strict=False),
          lambda: opt.load_state_dict(torch.optim.Adam([torch.ones(1)]).state_dict()), lambda: opt.load_state_dict({})):
    try:
        print(f())
    except Exception as e:
        print(type(e).__name__, "|", e)
