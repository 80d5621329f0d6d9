"""A tour of autograd: graph, accumulation, hooks, modes."""
import torch

x = torch.tensor([[1., 2.], [3., 4.]], requires_grad=True)
y = x + 2
z = y * y * 3
out = z.mean()
print(y.grad_fn, z.grad_fn, out.grad_fn, out, x.grad_fn)
print(out.grad_fn.next_functions, out.grad_fn.next_functions[0][0].next_functions[0][0].name())
out.backward()
print(x.grad, y.is_leaf, x.is_leaf)
(x ** 2).sum().backward()
print(x.grad)
x.grad = None
(x ** 2).sum().backward()
print(x.grad)
x.grad.zero_()

y = x * 2
y.retain_grad()
w = (y ** 2).sum()
w.backward()
print(y.grad, y.retains_grad, x.grad)

h = x.register_hook(lambda g: print("hook", g) or g * 10)
x.grad = None
(x * 3).sum().backward()
print(x.grad)
h.remove()
x.grad = None
(x * 3).sum().backward()
print(x.grad)
t = x * 2
t.register_hook(lambda g: g.clamp(max=1.5))
t.register_hook(lambda g: print("second", g))
(t ** 2).sum().backward()
print(x.grad)
x.register_post_accumulate_grad_hook(lambda p: print("accumulated", p.grad.sum()))
x.sum().backward()

with torch.no_grad():
    a = x * 2
print(a.requires_grad, torch.is_grad_enabled())
with torch.no_grad(), torch.enable_grad():
    b = x * 2
print(b.requires_grad)


@torch.no_grad()
def evaluate(m):
    return m.sum()


print(evaluate(x), x.detach().requires_grad, x.detach() is x)
torch.set_grad_enabled(False)
print((x * 2).requires_grad)
torch.set_grad_enabled(True)
with torch.set_grad_enabled(False):
    print((x * 2).requires_grad)
with torch.inference_mode():
    i = x * 2
    print(i.requires_grad, i.is_inference(), torch.is_inference_mode_enabled())
print(torch.ones(2).requires_grad_(), torch.ones(2).requires_grad_().mul(2).requires_grad)

v = torch.tensor([1., 10.])
q = torch.tensor([2., 3.], requires_grad=True)
(q ** 3).backward(v)
print(q.grad)
g, = torch.autograd.grad((q ** 2).sum(), q)
print(g, q.grad)
g, = torch.autograd.grad((q ** 3).sum(), q, create_graph=True)
print(g, torch.autograd.grad(g.sum(), q))
print(torch.autograd.grad(q.sum(), [q, x], allow_unused=True))
print(torch.autograd.grad(q.sum(), [q, x], materialize_grads=True, allow_unused=True))
print(torch.autograd.grad([q.sum(), (q * q).sum()], q), torch.autograd.grad(q * q, q, grad_outputs=torch.ones(2)))
r = (q * q).sum()
r.backward(retain_graph=True)
r.backward()
print(q.grad)

f = lambda a, b: (a * b).sum() + (b ** 3).sum()
a, b = torch.tensor([1., 2.]), torch.tensor([3., 4.])
print(torch.autograd.functional.jacobian(lambda t: t ** 2 + t.sum(), a))
print(torch.autograd.functional.hessian(lambda t: (t ** 3).sum(), a))
print(torch.autograd.functional.jacobian(f, (a, b)))
print(torch.autograd.functional.vjp(lambda t: t ** 2, a, torch.ones(2)))
print(torch.autograd.functional.jvp(lambda t: t ** 2, a, torch.ones(2)))
print(torch.autograd.functional.hvp(lambda t: (t ** 3).sum(), a, torch.ones(2)))
print(torch.func.grad(lambda t: (t ** 3).sum())(a), torch.func.jacrev(torch.sin)(a), torch.func.hessian(lambda t: t.prod())(a))
with torch.autograd.set_detect_anomaly(False):
    print(torch.tensor(2., requires_grad=True).log())
print(torch.relu(torch.tensor([-1., 0., 1.], requires_grad=True)), torch.ones(2, requires_grad=True)[0], q.view(2, 1), q.sum(0), q.max())
m = torch.tensor([1., 5., 5., 2.], requires_grad=True)
m.max().backward()
print(m.grad)
m.grad = None
m.max(0).values.backward()
print(m.grad)
k = torch.tensor(2., requires_grad=True)
l = k
for _ in range(4):
    l = l * k if l < 10 else l + k
print(l, torch.autograd.grad(l, k))
