"""Broadcasting: what lines up, what does not, and what gradients come back as."""
import torch

a, b = torch.arange(3.).view(3, 1), torch.arange(4.)
print(a + b, (a * b).shape, (a - b.view(1, 1, 4)).shape, (torch.ones(5, 1, 3) / torch.ones(4, 1)).shape)
print(torch.broadcast_shapes((3, 1), (1, 4), (2, 1, 1)), [t.shape for t in torch.broadcast_tensors(a, b)])
print(a.expand(3, 2), b.expand(2, -1), torch.broadcast_to(torch.tensor(1), (2, 2)), a.expand_as(torch.zeros(2, 3, 2)).stride())
print(torch.tensor(2) + torch.tensor([1.5]), 1 - torch.tensor([1, 2]), 2 ** torch.arange(4), 10 // torch.tensor([3, -3]))
print(torch.arange(4) % 3, -torch.arange(4) % 3, torch.tensor([7.5]) // 2, torch.tensor([-7]) / 2, torch.fmod(torch.tensor([-7.]), 3))
print(torch.ones(0, 3) + torch.ones(1, 3), torch.ones(3, 0).sum(), torch.ones(2, 1) @ torch.ones(1, 3))
print((torch.ones(2, 1, 3, 4) @ torch.ones(5, 4, 2)).shape, (torch.ones(3) @ torch.ones(4, 3, 2)).shape, torch.ones(3) @ torch.ones(3))
w = torch.ones(3, 1, requires_grad=True)
v = torch.ones(4, requires_grad=True)
((w * v) ** 2).sum().backward()
print(w.grad, v.grad)
bias = torch.zeros(2, requires_grad=True)
out = torch.arange(6.).view(3, 2) + bias
out.backward(torch.ones(3, 2) * 2)
print(bias.grad, out.grad_fn)
x = torch.zeros(3)
x += torch.tensor(5)
x[:2] -= torch.tensor([1., 2.])
print(x, torch.maximum(x, torch.tensor(4.)), torch.minimum(x, torch.tensor([1., 9., 4.])))
print(torch.equal(x, x.clone()), torch.allclose(x, x + 1e-9), (x == 5), torch.isclose(x, torch.tensor([4., 3.1, 5.])))
for f in (lambda: torch.ones(3) + torch.ones(4), lambda: torch.ones(2, 3) * torch.ones(3, 2), lambda: torch.ones(3).expand(4),
          lambda: torch.ones(2, 3).expand(3), lambda: torch.zeros(3).add_(torch.zeros(2, 3)), lambda: torch.zeros(3, 1).mul_(torch.ones(3, 2)),
          lambda: torch.ones(3).view(2, 2), lambda: torch.ones(2, 3).reshape(-1, 4), lambda: torch.ones(6).view(-1, -1),
          lambda: torch.broadcast_shapes((2,), (3,)), lambda: torch.stack([torch.ones(2), torch.ones(3)]),
          lambda: torch.cat([torch.ones(2, 3), torch.ones(2, 4)]), lambda: torch.cat([torch.ones(2), torch.ones(2, 2)]),
          lambda: torch.cat([]), lambda: torch.stack([]), lambda: torch.ones(2, 3).squeeze(5), lambda: torch.ones(2).unsqueeze(3),
          lambda: torch.ones(2, 3).transpose(0, 2), lambda: torch.ones(2, 3).permute(0), lambda: torch.ones(2, 3).permute(0, 0),
          lambda: torch.ones(2, 3).sum(2), lambda: torch.ones(5).split([2, 2]), lambda: torch.ones(2, 3).t_().view(6),
          lambda: torch.ones(2, 3, 4).t(), lambda: torch.ones(2, 3).flatten(1, 0), lambda: torch.ones(6).unflatten(0, (4, 2))):
    try:
        print(f())
    except Exception as e:
        print(type(e).__name__, "|", e)
