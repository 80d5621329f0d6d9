"""Newton's method with autograd and with finite differences; implicit functions; scalars."""
import torch


def newton(f, x, steps=8):
    for i in range(steps):
        x = x.detach().requires_grad_()
        y = f(x)
        y.backward()
        x = x - y / x.grad
        print(i, f"{x.item():.10f}", f"{y.item():.3e}")
        if y.abs() < 1e-12:
            break
    return x.item()


print(newton(lambda x: x ** 2 - 2, torch.tensor(1.0, dtype=torch.float64)))
print(newton(lambda x: x.cos() - x, torch.tensor(1.0, dtype=torch.float64)))


def minimise(f, x, steps=6):
    for _ in range(steps):
        g = torch.autograd.functional.jacobian(f, x)
        h = torch.autograd.functional.hessian(f, x)
        x = x - torch.linalg.solve(h, g)
        print([round(v, 6) for v in x.tolist()], f"{f(x).item():.2e}")
    return x


rosenbrock = lambda p: (1 - p[0]) ** 2 + 100 * (p[1] - p[0] ** 2) ** 2
minimise(rosenbrock, torch.tensor([-1.2, 1.0], dtype=torch.float64))


def difference(f, x, h=1e-5):
    return (f(x + h) - f(x - h)) / (2 * h)


x = torch.tensor(3.0, dtype=torch.double)
for _ in range(5):
    x = x - torch.exp(x - 2).sub(1) / difference(lambda t: torch.exp(t - 2) - 1, x)
print(f"{x:.8f}")
x = torch.tensor(2.0, requires_grad=True)
y = x
for order in range(1, 5):
    value = x ** 5 if order == 1 else y
    y, = torch.autograd.grad(value, x, create_graph=True)
    print(order, y)
grads = []
u = torch.linspace(0, 1, 4, requires_grad=True)
f = u.sin()
while len(grads) < 3:
    f, = torch.autograd.grad(f.sum(), u, create_graph=True)
    grads.append(f.detach())
print(torch.stack(grads))
s = torch.tensor(0.5, requires_grad=True)
fixed = torch.tensor(1.0)
for _ in range(50):
    fixed = torch.cos(s * fixed)
fixed.backward()
print(fixed, s.grad, abs(fixed.item() - 0.9) < 0.1, bool(s > 0), not s, s.item() + 1, round(s.item(), 2), pow(2, torch.tensor(3)), abs(torch.tensor(-2)), -s)
