"""Looking into and changing the backward pass: hooks, grad_fn walks, checkpoints of state, detached parts."""
import warnings

import torch
from torch import nn

torch.manual_seed(0)
x = torch.ones(2, requires_grad=True)
y = (x * 3).exp().log().sum()


def walk(node, depth=0):
    if node is None:
        print("  " * depth + "None")
        return
    print("  " * depth + node.name())
    for child, index in node.next_functions:
        walk(child, depth + 1)


walk(y.grad_fn)
w = torch.randn(3, 2, requires_grad=True)
b = torch.zeros(3, requires_grad=True)
out = torch.nn.functional.linear(torch.ones(4, 2), w, b).relu().view(2, 6).mean(0)[1:3].max()
walk(out.grad_fn)
print(y.grad_fn.next_functions[0][0]._saved_self, (x * x).grad_fn._saved_other, x.exp().grad_fn._saved_result, x.sum(0).grad_fn._saved_self_sym_sizes, (x ** 3).grad_fn._saved_exponent)
acc = (x * 2).grad_fn.next_functions[0][0]
print(acc.variable is x, type(acc).__name__, acc.next_functions)
order = []
h = x * 2
h.register_hook(lambda g: order.append(("h", g.tolist())))
z = h + 1
z.grad_fn.register_hook(lambda gi, go: order.append(("node", [g.tolist() if g is not None else None for g in gi], [g.tolist() for g in go])))
z.grad_fn.register_prehook(lambda go: order.append(("pre", go[0].tolist())))
x.register_hook(lambda g: order.append(("x", g.tolist())))
(z * torch.tensor([1.0, 2.0])).sum().backward()
print(order)
model = nn.Sequential(nn.Linear(2, 2), nn.ReLU(), nn.Linear(2, 1))
for i, layer in enumerate(model):
    layer.register_full_backward_hook(lambda m, gi, go, i=i: print("backward", i, type(m).__name__, [g is not None for g in gi], go[0].shape))
    layer.register_forward_hook(lambda m, a, o, i=i: print("forward", i, o.shape))
model(torch.ones(1, 2)).sum().backward()
frozen = nn.Linear(2, 2)
for p in frozen.parameters():
    p.requires_grad = False
o = frozen(torch.ones(1, 2))
print(o.requires_grad, o.grad_fn, frozen(x).grad_fn.name())
a = torch.ones(2, requires_grad=True)
c = a * 2
d = c.detach() * a
d.sum().backward()
print(a.grad, c.requires_grad, c.detach().requires_grad)
e = a.clone()
e.retain_grad()
e.sum().backward()
print(e.grad, a.grad, e.is_leaf)
print((a * 2).is_leaf, a.clone().detach().is_leaf, torch.ones(2).is_leaf)
print((c * 1).grad)
r = torch.ones(3, requires_grad=True)
with torch.autograd.set_detect_anomaly(True), warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    try:
        (torch.sqrt(r - 1) * 0).sum().backward()
    except RuntimeError as err:
        print(err, str(caught[0].message).splitlines()[0])
print(torch.autograd.grad(torch.sqrt(r - 1).sum(), r))
loss = 0
for i in range(3):
    loss = loss + (r * i).sum()
loss.backward()
print(r.grad, loss)
acc_steps = torch.zeros(1, requires_grad=True)
for i in range(4):
    ((acc_steps + i) ** 2).sum().div(4).backward()
print(acc_steps.grad)
