"""Complex tensors: arithmetic, parts, views, gradients, Mandelbrot."""
import torch

z = torch.tensor([1 + 2j, -0.5j, 3 + 0j])
print(z, z.dtype, z.real, z.imag, z.abs(), z.angle(), z.conj(), z.resolve_conj())
print(z * 2, z + 1j, z / (1 - 1j), z ** 2, z.exp(), z.sqrt(), torch.log(z), z.sin(), 1 / z, z.sum(), z.prod(), z.mean(), z.sgn())
print(torch.complex(torch.tensor([1., 2.]), torch.tensor([3., 4.])), torch.polar(torch.tensor([1., 2.]), torch.tensor([0., 3.14159])), torch.view_as_real(z), torch.view_as_complex(torch.ones(2, 2)))
print(z == z.clone(), z.isreal(), torch.is_complex(z), z.to(torch.complex128).dtype, torch.tensor([1.]).to(torch.complex64), z.reciprocal(), z.dot(z), torch.vdot(z, z), z.norm())
print(torch.eye(2, dtype=torch.complex64) @ torch.tensor([1j, 2.]), torch.tensor([[1, 1j], [-1j, 2]]).mH, torch.tensor([[1, 1j], [-1j, 2]]).adjoint().T, torch.outer(z, z.conj())[0])
z.real[0] = 10
z.imag.zero_()
print(z, z.item() if z.numel() == 1 else complex(z[0]), torch.zeros(1, dtype=torch.complex64), torch.tensor(1j).item(), torch.complex64.is_complex, torch.complex64.to_real())
w = torch.tensor([1 + 1j, 2 - 1j], requires_grad=True)
(w.abs() ** 2).sum().backward()
print(w.grad)
w.grad = None
loss = ((w * (1 - 2j)).real ** 2).sum() + w.imag.prod() + torch.view_as_real(w).sum()
loss.backward()
print(loss, w.grad, w.real.grad_fn, w.conj().grad_fn)
h = w.exp().sum()
h.backward(torch.tensor(1 + 0j))
print(w.grad, h)
y, x = torch.meshgrid(torch.linspace(-1.2, 1.2, 21), torch.linspace(-2, 0.6, 52), indexing="ij")
c = torch.complex(x, y)
zz = torch.zeros_like(c)
steps = torch.zeros(c.shape, dtype=torch.int32)
for _ in range(40):
    alive = zz.abs() <= 2
    zz = torch.where(alive, zz * zz + c, zz)
    steps += alive
for row in steps:
    print("".join("#" if v >= 40 else "+" if v > 6 else "." if v > 3 else " " for v in row.tolist()))
print(steps.sum() > 0, steps.float().mean().round(decimals=1), steps.max(), (steps == 40).sum() // 10)


def attempt(f):
    try:
        print(f())
    except Exception as e:
        print(type(e).__name__, "|", e)


attempt(lambda: float(torch.tensor(1j)))
attempt(lambda: torch.tensor([1.]).imag)
attempt(lambda: z.max())
attempt(lambda: z.sort())
attempt(lambda: z < z)
attempt(lambda: torch.tensor([1j]).to(torch.float32))
attempt(lambda: z.floor())
attempt(lambda: w.sum().backward())
attempt(lambda: torch.complex(torch.ones(1), torch.ones(1).double()))
attempt(lambda: torch.tensor([1.0]).add_(1j))
attempt(lambda: torch.clamp(z, 0))
attempt(lambda: z % 2)
attempt(lambda: torch.view_as_complex(torch.ones(2, 3)))
attempt(lambda: torch.view_as_real(torch.ones(2)))
attempt(lambda: torch.relu(z))
