"""einsum and its relatives, attention by einsum, matrix powers and Fibonacci."""
import torch

a, b = torch.arange(6).view(2, 3), torch.arange(12).view(3, 4)
print(torch.einsum("ij,jk->ik", a, b), torch.einsum("ij->ji", a), torch.einsum("ij->", a), torch.einsum("ij->j", a))
print(torch.einsum("i,j->ij", torch.arange(3), torch.arange(2)), torch.einsum("ii", torch.eye(3)), torch.einsum("ii->i", torch.arange(9).view(3, 3)))
print(torch.einsum("bij,bjk->bik", torch.ones(2, 3, 4), torch.ones(2, 4, 5)).shape, torch.einsum("...ij->...ji", torch.ones(2, 3, 4)).shape)
print(torch.einsum("bhqd,bhkd->bhqk", torch.ones(1, 2, 3, 4), torch.ones(1, 2, 5, 4))[0, 0, 0], torch.einsum("ij,ij", a, a), torch.einsum("i,i", [torch.ones(3), torch.ones(3)]))
print(torch.tensordot(a, b, dims=1), torch.tensordot(torch.ones(2, 3, 4), torch.ones(4, 3, 5), dims=([1, 2], [1, 0])).shape)
print(torch.outer(torch.arange(3), torch.arange(2)), torch.kron(torch.eye(2, dtype=torch.long), a), torch.inner(a, a), torch.vdot(torch.arange(3), torch.arange(3)))
print(a @ b, a.matmul(b[:, 0]), torch.mm(a, b).shape, torch.mv(a, torch.arange(3)), torch.linalg.multi_dot([a.float(), b.float(), b.T.float()]))
print(torch.addmm(torch.ones(2, 4), a.float(), b.float(), beta=2, alpha=0.5), torch.baddbmm(torch.zeros(1), torch.ones(2, 1, 2), torch.ones(2, 2, 1)).flatten())
print(torch.addcmul(torch.ones(2), torch.tensor([1., 2.]), torch.tensor([3., 4.]), value=2), torch.addr(torch.zeros(2, 2), torch.ones(2), torch.ones(2)), torch.linalg.vecdot(a.float(), a.float()))
M = torch.tensor([[1, 1], [1, 0]])
print(torch.linalg.matrix_power(M.double(), 30)[0, 1], torch.matrix_power(M.float(), 10))


def fib(n):
    result, base = torch.eye(2, dtype=torch.long), M
    while n:
        if n & 1:
            result = result @ base
        base = base @ base
        n >>= 1
    return result[0, 1].item()


print([fib(i) for i in range(12)], fib(90))
print(torch.trace(M), M.T, M.mT, M.t(), M.diag(), M.diagonal().sum(), torch.diag_embed(torch.tensor([1, 2])), torch.triu(M))
torch.manual_seed(0)
q, k, v = torch.randn(3, 2, 4, 8, requires_grad=True).unbind(0)
scores = torch.einsum("bqd,bkd->bqk", q, k) / 8 ** 0.5
out = torch.einsum("bqk,bkd->bqd", scores.softmax(-1), v)
print(out.shape, scores[0, 0], out.grad_fn.name(), q.grad_fn)
x = torch.rand(2, 3, requires_grad=True)
y = torch.rand(3, 2, requires_grad=True)
torch.einsum("ij,ji->", x, y).backward()
print(torch.allclose(x.grad, y.detach().t()))
for f in (lambda: torch.einsum("ij,jk->ik", a, a), lambda: torch.einsum("ij->ik", a), lambda: torch.einsum("ijk->i", a), lambda: torch.einsum("i?->i", a),
          lambda: torch.einsum("ij,jk", a), lambda: torch.einsum("ij->ii", a), lambda: torch.tensordot(a, b, dims=2), lambda: torch.outer(a, a),
          lambda: torch.linalg.matrix_power(a.float(), 2), lambda: torch.trace(torch.ones(2)), lambda: torch.einsum("ij,jk->ik", a, b.float())):
    try:
        print(f())
    except Exception as e:
        print(type(e).__name__, "|", e)
