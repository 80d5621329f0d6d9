"""Principal components by SVD and by eigenvectors of the covariance."""
import torch

torch.manual_seed(8)
X = torch.randn(50, 2, dtype=torch.float64) @ torch.randn(2, 4, dtype=torch.float64) + 0.01 * torch.randn(50, 4, dtype=torch.float64)
X = X - X.mean(0, keepdim=True)
U, S, Vh = torch.linalg.svd(X, full_matrices=False)
print(U.shape, S, Vh.abs())
cov = X.T @ X / (len(X) - 1)
print(torch.allclose(cov, torch.cov(X.T)), cov)
L, Q = torch.linalg.eigh(cov)
print(L, torch.allclose(L.flip(0), S ** 2 / 49))
ratio = S ** 2 / (S ** 2).sum()
print(ratio, ratio.cumsum(0))
Z = X @ Vh[:2].T
print(Z.shape, (X - Z @ Vh[:2]).norm() < 0.2, torch.dist(X, U * S @ Vh) < 1e-10)
print(torch.linalg.norm(X), torch.linalg.cond(cov) > 1e3, torch.trace(cov), torch.linalg.det(cov).abs() < 1e-3)
u, s, v = torch.svd(X)
print(u.shape, v.shape, s)
q, r = torch.linalg.qr(X)
print(q.shape, r.triu().equal(r), torch.allclose(q @ r, X), torch.allclose(q.T @ q, torch.eye(4, dtype=torch.float64)))
A = cov + torch.eye(4, dtype=torch.float64)
C = torch.linalg.cholesky(A)
print(C, torch.allclose(C @ C.mT, A), torch.logdet(A), torch.linalg.slogdet(A))
print(torch.linalg.inv(A) @ A.diag(), torch.linalg.pinv(X).shape, torch.corrcoef(X.T))
w = X.clone().requires_grad_()
torch.linalg.svdvals(w).sum().backward()
print(torch.allclose(w.grad, U @ Vh))
for f in (lambda: torch.linalg.inv(torch.zeros(2, 2)), lambda: torch.linalg.cholesky(-torch.eye(2)), lambda: torch.linalg.inv(torch.ones(2, 3)),
          lambda: torch.linalg.eigh(torch.eye(2, dtype=torch.long)), lambda: torch.linalg.solve(torch.zeros(2, 2), torch.ones(2))):
    try:
        print(f())
    except Exception as e:
        print(type(e).__name__, isinstance(e, RuntimeError), "|", e)
