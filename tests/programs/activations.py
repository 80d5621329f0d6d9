"""Activations over a range, their gradients, their modules."""
import torch
import torch.nn as nn
import torch.nn.functional as F

x = torch.tensor([-3.0, -1.0, -0.25, 0.0, 0.25, 1.0, 3.0])
for name in ("relu", "relu6", "leaky_relu", "elu", "selu", "celu", "gelu", "silu", "mish", "softplus", "softsign", "tanhshrink", "hardtanh", "hardsigmoid", "hardswish", "logsigmoid", "sigmoid", "tanh", "softshrink", "hardshrink", "rrelu"):
    t = x.clone().requires_grad_()
    f = getattr(F, name) if name not in ("sigmoid", "tanh") else getattr(torch, name)
    y = f(t)
    y.sum().backward()
    print(name, [f"{v:.3f}" for v in y.tolist()], t.grad)
print(F.gelu(x, approximate="tanh"), F.threshold(x, 0.1, -1), F.glu(x[:6]), F.prelu(x, torch.tensor([0.25])), F.elu(x, alpha=0.5), F.softplus(x, beta=2), F.leaky_relu(x, 0.2))
m = x[:6].view(2, 3)
print(F.softmax(m, 1), F.softmin(m, dim=0), F.log_softmax(m, -1), F.normalize(m), F.softmax(m, 0, dtype=torch.float64).dtype, torch.softmax(m, 1).sum(1), nn.Softmax2d()(torch.zeros(1, 2, 1, 1)))
for module in (nn.ReLU(), nn.ReLU6(), nn.LeakyReLU(), nn.ELU(), nn.SELU(), nn.CELU(), nn.GELU(), nn.SiLU(), nn.Mish(), nn.Softplus(), nn.Softsign(), nn.Tanhshrink(), nn.Hardtanh(), nn.Hardsigmoid(), nn.Hardswish(), nn.LogSigmoid(), nn.Sigmoid(), nn.Tanh(), nn.Softshrink(), nn.Hardshrink(), nn.Softmax(0), nn.LogSoftmax(0), nn.Threshold(0, 1), nn.PReLU()):
    print(module, [round(v, 3) for v in module(x).tolist()])
y = torch.tensor([-1.0, 2.0])
print(F.relu_(y), F.relu(torch.tensor([-1, 2])), torch.relu_(torch.tensor([-1.0])), nn.ReLU(inplace=True)(torch.tensor([-2.0])), y)
print(F.relu(torch.tensor([-1.0, 1.0], requires_grad=True)).grad_fn, F.gelu(torch.ones(1, requires_grad=True)).grad_fn, F.silu(torch.ones(1, requires_grad=True)).grad_fn, F.elu(torch.ones(1, requires_grad=True)).grad_fn, F.softmax(torch.ones(2, requires_grad=True), 0).grad_fn, F.leaky_relu(torch.ones(1, requires_grad=True)).grad_fn, F.normalize(torch.ones(1, 2, requires_grad=True)).grad_fn)
for f in (lambda: F.softmax(torch.tensor([1, 2]), 0), lambda: F.gelu(torch.tensor([1])), lambda: torch.sigmoid(torch.tensor([1, 2])), lambda: F.glu(torch.ones(3)), lambda: F.gelu(x, approximate="no"), lambda: nn.Softmax(3)(x), lambda: F.silu(torch.tensor([1])), lambda: F.hardtanh(x, 1, -1), lambda: F.relu(x, 1, 2), lambda: F.leaky_relu(torch.tensor([1])), lambda: F.prelu(m, torch.ones(4))):
    try:
        print(f())
    except Exception as e:
        print(type(e).__name__, "|", e)
