"""Hooks of modules, tensors and nodes, saved tensors packed, gradients of several tensors at once."""
import torch
from torch import nn

torch.manual_seed(0)
log = []
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Linear(3, 4)
        self.act = nn.Tanh()
        self.b = nn.Linear(4, 2)
        self.register_buffer("count", torch.zeros((), dtype=torch.long))
        self.register_buffer("scratch", torch.ones(2), persistent=False)
    def forward(self, x, scale=1.0):
        self.count += 1
        return self.b(self.act(self.a(x))) * scale
    def extra_repr(self):
        return f"calls={self.count.item()}"

net = Net()
def fpre(m, args, kwargs):
    log.append(("pre", type(m).__name__, len(args), dict(kwargs)))
    return args, {"scale": 2.0}
h1 = net.register_forward_pre_hook(fpre, with_kwargs=True)
h2 = net.a.register_forward_hook(lambda m, i, o: log.append(("fwd", tuple(i[0].shape), tuple(o.shape))))
h3 = net.b.register_full_backward_hook(lambda m, gi, go: log.append(("bwd", [tuple(g.shape) for g in gi], [tuple(g.shape) for g in go])))
h4 = net.act.register_full_backward_pre_hook(lambda m, go: (go[0] * 0.5,))
h5 = net.a.register_forward_hook(lambda m, i, o: o.relu(), prepend=True)
h6 = net.register_forward_hook(lambda m, args, kw, out: log.append(("kw", kw)), with_kwargs=True, always_call=True)
x = torch.randn(5, 3, requires_grad=True)
out = net(x)
out.sum().backward()
for line in log:
    print(line)
print(net)
print({k: v.shape for k, v in net.state_dict().items()})
print(x.grad)
for h in (h1, h2, h3, h4, h5, h6):
    h.remove()
log.clear()
net(x).mean().backward()
print(log, net.a.weight.grad.norm())
# tensor hooks
w = torch.tensor([1.0, 2.0], requires_grad=True)
h = w.register_hook(lambda g: g * 10)
w.register_post_accumulate_grad_hook(lambda p: print("accumulated", p.grad))
y = w * 3
y.retain_grad()
y.register_hook(lambda g: print("y grad", g))
y.sum().backward()
print(w.grad, y.grad, h.id if hasattr(h, "id") else None)
h.remove()
gf = y.grad_fn
(w * w).sum().backward()
with torch.autograd.graph.save_on_cpu():
    q = (w.exp() * w).sum()
q.backward()
print(w.grad)
packed = []
with torch.autograd.graph.saved_tensors_hooks(lambda t: (packed.append(t.shape), t)[1], lambda t: t):
    r = torch.sin(w) * torch.exp(w)
print(packed, r.grad_fn.next_functions[0][0]._saved_self)
n = r.grad_fn
n.register_prehook(lambda gs: print("prehook", gs))
n.register_hook(lambda gi, go: print("hook", gi, go))
r.sum().backward()
def handler(grads):
    print("all grads", [None if g is None else g.tolist() for g in grads])
a = torch.ones(2, requires_grad=True)
b = torch.ones(2, requires_grad=True)
h = torch.autograd.graph.register_multi_grad_hook((a, b), handler)
(a * b * 2).sum().backward()
with torch.autograd.graph.disable_saved_tensors_hooks("no hooks here"):
    try:
        with torch.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: t):
            pass
    except RuntimeError as e:
        print(e)
try:
    torch.ones(2).register_hook(lambda g: g)
except RuntimeError as e:
    print(e)
print(torch.autograd.graph.get_gradient_edge(a * 2))
nn.modules.module.register_module_forward_hook(lambda m, i, o: print("global", m.__class__.__name__))
net(x)
