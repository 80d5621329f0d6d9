"""Saved tensor hooks: pack and unpack, save_on_cpu, disabled hooks."""
import torch

a = torch.ones(2, requires_grad=True)
with torch.autograd.graph.saved_tensors_hooks(lambda t: t * 1, lambda t: t * 10):
    s = (a * a).sum()
print(torch.autograd.grad(s, a))
with torch.autograd.graph.saved_tensors_hooks(lambda t: print("pack", t) or (t.shape, t), lambda p: print("unpack", p[0]) or p[1]):
    b = a.exp().sin()
b.sum().backward()
print(a.grad)
with torch.autograd.graph.save_on_cpu():
    c = (a * a).sum()
c.backward()
print(a.grad)
with torch.autograd.graph.disable_saved_tensors_hooks("not here"):
    try:
        with torch.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: t):
            a * a
    except RuntimeError as e:
        print(e)
y = a * a
y.grad_fn._raw_saved_self.register_hooks(lambda t: t + 1, lambda t: t + 1)
y.sum().backward()
print(a.grad)
