"""bfloat16 and float16: rounding, promotion, overflow, a linear layer, gradients."""
import torch
from torch import nn

for dt in (torch.float16, torch.bfloat16):
    x = torch.tensor([1.0, 1.001, 3.14159, 65504.0, 1e-5, -2.71828], dtype=dt)
    print(x, x.dtype, x.float(), x * 2, x + 1e-3, x.sum(), x.mean(), x.double()[2], x[2].item())
    print(x.exp(), x.sqrt(), x.sigmoid(), x.abs().log(), 1 / x, x ** 2, x.cumsum(0), x.max(), x.sort()[0], x.tanh(), x.reciprocal())
    print((x + torch.ones(6)).dtype, (x + 1.5).dtype, (x * torch.tensor(2.0)).dtype, (x + torch.arange(6)).dtype, (x + torch.ones(1, dtype=torch.double)).dtype, (x == x).all())
    m = torch.arange(6).reshape(2, 3).to(dt) / 3
    print(m, m @ m.T, m.softmax(-1), nn.functional.gelu(m), nn.functional.layer_norm(m * m, (3,)).float().round(decimals=2), m.std(), m.norm())
    w = m.clone().requires_grad_()
    (w * w).sum().backward()
    print(w.grad, w.grad.dtype, torch.finfo(dt).max, torch.zeros(2, dtype=dt), torch.full((2,), 0.1, dtype=dt), torch.linspace(0, 1, 4, dtype=dt), torch.arange(0, 1, 0.3, dtype=dt))
    print(torch.tensor([0.1, 0.2], dtype=dt).tolist(), torch.tensor(1e6).to(dt), torch.tensor([float("nan"), float("inf")]).to(dt), x.view(torch.int16), x.type(), x.element_size(), repr(x.half()[1]))
    torch.manual_seed(0)
    layer = nn.Linear(3, 2).to(dt)
    out = layer(m)
    out.pow(2).mean().backward()
    print(layer, out.dtype, layer.weight.grad.dtype, layer.weight)
    try:
        print(layer(torch.ones(1, 3)))
    except Exception as e:
        print(type(e).__name__, "|", e)
a, b = torch.ones(1, dtype=torch.half), torch.ones(1, dtype=torch.bfloat16)
print((a + b).dtype, a.bfloat16(), b.half(), torch.promote_types(torch.half, torch.bfloat16), torch.tensor(70000.).half(), torch.tensor(1.).bfloat16() + 2 ** -9)
total = torch.zeros((), dtype=torch.half)
for _ in range(3000):
    total += 1
print(total, torch.ones(3000, dtype=torch.half).sum(), torch.ones(300, dtype=torch.bfloat16).cumsum(0)[-1], sum(torch.ones(300, dtype=torch.bfloat16)))
try:
    torch.mm(torch.ones(2, 2).half(), torch.ones(2, 2))
except Exception as e:
    print(type(e).__name__, "|", e)
