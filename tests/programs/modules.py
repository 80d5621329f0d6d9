"""Modules: registration, iteration, printing, modes, hooks, conversion."""
import torch
from torch import nn
import torch.nn.functional as F

torch.manual_seed(0)


class Residual(nn.Module):
    def __init__(self, inner):
        super().__init__()
        self.inner = inner
        self.gain = nn.Parameter(torch.ones(1))

    def forward(self, x):
        return x + self.gain * self.inner(x)

    def extra_repr(self):
        return "gain=learned"


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([Residual(nn.Linear(4, 4)) for _ in range(2)])
        self.table = nn.ModuleDict({"a": nn.Tanh(), "b": nn.Softmax(dim=-1)})
        self.weights = nn.ParameterList([nn.Parameter(torch.zeros(2)), nn.Parameter(torch.ones(3))])
        self.named = nn.ParameterDict({"k": nn.Parameter(torch.ones(1, 2))})
        self.register_parameter("nothing", None)
        self.seq = nn.Sequential(nn.Linear(4, 3), nn.Dropout(), nn.Identity(), nn.LayerNorm(3))

    def forward(self, x, key="a"):
        for layer in self.layers:
            x = layer(x)
        return self.table[key](self.seq(x))


m = Model()
print(m)
print([n for n, _ in m.named_modules()])
print([n for n, _ in m.named_children()], [n for n, _ in m.named_parameters()], len(list(m.modules())))
print(m.seq[0], m.seq[-1], len(m.seq), m.seq[1:3], m.get_submodule("layers.0.inner"), m.get_parameter("named.k"))
print(sum(p.numel() for p in m.parameters()), m.nothing, "a" in m.table, list(m.table.keys()))
m.eval()
print(m.training, m.seq[1].training, all(not c.training for c in m.modules()))
print(m(torch.ones(1, 4), key="b").sum(), m.train().training)
count = []
m.apply(lambda mod: count.append(type(mod).__name__))
print(count)
seen = []
h1 = m.seq[0].register_forward_hook(lambda mod, args, out: seen.append(("forward", tuple(args[0].shape), tuple(out.shape))))
h2 = m.seq[0].register_forward_pre_hook(lambda mod, args: (args[0] * 0,))
h3 = m.seq[0].register_full_backward_hook(lambda mod, gi, go: seen.append(("backward", gi[0].shape, go[0].shape)))
m(torch.ones(2, 4, requires_grad=True)).sum().backward()
print(seen)
for h in (h1, h2, h3):
    h.remove()
for p in m.layers.parameters():
    p.requires_grad = False
print([n for n, p in m.named_parameters() if p.requires_grad])
m.requires_grad_(True).zero_grad()
print(all(p.grad is None for p in m.parameters()), m.double().seq[0].weight.dtype, m.half().gain if hasattr(m, "gain") else m.seq[0].bias.dtype)
m.float().to(torch.float64).to("cpu")
print(next(m.parameters()).dtype, m.type(torch.float32).seq[0].weight.type())
m.seq.append(nn.Linear(3, 1))
m.seq[1] = nn.ReLU()
m.seq.add_module("last", nn.Sigmoid())
del m.seq[2]
print(m.seq)
m.layers.extend([nn.Identity()])
m.weights.append(nn.Parameter(torch.ones(1)))
print(m.layers, m.weights, m.named)
print(nn.Linear(2, 3, bias=False), nn.Bilinear(2, 3, 4), nn.PReLU(), nn.ReLU(True), nn.Hardtanh(-2, 2), nn.Softplus(), nn.Threshold(0.1, 20))
print(nn.CrossEntropyLoss(), nn.MSELoss(), nn.BatchNorm2d(3, affine=False), nn.GroupNorm(2, 4), nn.Unflatten(1, (2, 2)), nn.ZeroPad2d(1), nn.CELU(), nn.GLU())
print(nn.Parameter(torch.ones(2)), nn.Parameter(torch.ones(1), requires_grad=False), isinstance(m.gain if hasattr(m, "gain") else m.seq[0].weight, nn.Parameter))
print(F.relu(torch.tensor([-1., 2.])), F.dropout(torch.ones(3), training=False), nn.Flatten()(torch.ones(2, 3, 4)).shape)
shared = nn.Linear(2, 2)
tied = nn.Sequential(shared, nn.Tanh(), shared)
print(len(list(tied.parameters())), len(list(tied.named_parameters(remove_duplicate=False))), list(tied.state_dict()))


class Bad(nn.Module):
    def __init__(self):
        self.fc = nn.Linear(1, 1)


class Empty(nn.Module):
    pass


def attempt(f):
    try:
        print(f())
    except Exception as e:
        print(type(e).__name__, "|", e)


attempt(Bad)
attempt(lambda: Empty()(torch.ones(1)))
attempt(lambda: m.get_submodule("seq.nope"))
attempt(lambda: m.missing)
attempt(lambda: setattr(m, "seq", 3))
attempt(lambda: setattr(nn.Linear(1, 1), "weight", torch.ones(1)))
attempt(lambda: m.register_parameter("p", torch.ones(1)))
attempt(lambda: m.register_buffer("seq", torch.ones(1)))
attempt(lambda: m.register_buffer("a.b", torch.ones(1)))
attempt(lambda: m.add_module("x", 3))
attempt(lambda: nn.Sequential(3))
attempt(lambda: m.seq[10])
attempt(lambda: m.to(torch.int64))
attempt(lambda: nn.Linear(2, 3)())
attempt(lambda: nn.Linear(2, 3)(torch.ones(2), 1))
attempt(lambda: nn.Linear(2, 3)([1., 2.]))
attempt(lambda: nn.Linear(2, 3, foo=1))
attempt(lambda: nn.init.kaiming_normal_(torch.ones(2)))
attempt(lambda: nn.Parameter(torch.arange(2)))
