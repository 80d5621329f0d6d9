"""Statements that differed once, under both libraries: by topic, several a test."""

from __future__ import annotations

import importlib.util

import pytest

import flambeau
from flambeau.modes import special

from .differential import libraries
from .shrinking import disagreement

pytestmark = [
    pytest.mark.parity,
    pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="PyTorch is the oracle"),
    pytest.mark.usefixtures("every_warning"),
]

#: statements, each of which assigns `r` and is a program by itself after its topic's first lines
FOUND = {
    "all arguments are parsed before any is looked at": """
        x, i, c = torch.ones(2, 3), torch.tensor([0, 1]), torch.ones(2, 3, requires_grad=True)
        r = x.exp(out=x)
        r = x.add(1, out=x)
        r = x.sum(0, out=x)
        r = x.kron(x, out=x)
        r = x.max(x, out=x)
        r = x.flip((2, 2), out=x)
        r = x.arctan(out=x)
        r = x.as_strided(3, 1)
        r = torch.linalg.eigh([1], UPLO=3)
        r = torch.index_put(True, -1, x)
        r = torch.acosh_(...)
        r = torch.log1p_(x, [1])
        r = torch.fft.rfft2(x, slice(1), [1.0])
        r = x.uniform_(to=slice(1))
        r = x.new_zeros(2, wrong=1)
        r = x.new_tensor([1], pin_memory=True)
        r = x.squeeze_("a")
        r = torch.special.chebyshev_polynomial_u(x[0], n=x[0]), torch.heaviside(x, values=x), x.size(axis=1)
        r = c.index_fill_(9, i, x)
        r = c[:1].cumsum_(9)
        r = c.addmm_(x, x)
        r = torch.ones(3, 3, requires_grad=True).logical_or_(torch.ones(3)).logical_not_()
        r = torch.zeros(2, pin_memory=True)
        r = torch.rand(2, pin_memory=True)
        r = torch.eye(2, pin_memory=True)
        r = torch.special.bessel_j0(x.to(torch.complex64), out=x.to(torch.int8))
        r = torch.isin(x, x, out=x.to(torch.uint8))
        r = torch.addbmm(x, x, x)
        r = torch.baddbmm(x, x, x)
        r = torch.svd(x[0, 0])
        r = torch.linalg.eigvals(x)
        r = torch.ones(2).scatter_reduce_(0, i, torch.ones(2), "add")
        r = torch.ones(2).scatter(3, i, torch.ones(2), reduce="amax")
        r = torch.linalg.vecdot(x[0], x[0], out=torch.tensor(1.0, requires_grad=True))
    """,
    "`out=` of factories and draws, and what is looked at first": """
        o, m, g = torch.ones(2), torch.arange(2.), torch.ones(2, requires_grad=True)
        r = torch.empty(2, out=o)
        r = torch.empty(3, out=torch.ones(2))._version
        r = torch.normal(m, 1., out=torch.ones(2, 2))
        r = torch.normal(m, 1., out=torch.ones(3))
        r = torch.normal(1., m, out=torch.ones(3))
        r = torch.detach_copy(o, out=torch.ones(1).expand(2))
        r = torch.randint_like(o, o)
        r = torch.randint_like(o, torch.tensor([3]))
        r = torch.randint_like(o, 1, torch.tensor(3))
        q = torch.ones(2, 3); r = torch.nn.functional.scaled_dot_product_attention(q, q, q, enable_gqa=True)
        r = torch.unflatten(torch.ones(0), 7, ())
        r = torch.conv3d(torch.ones(1, 2, 4, 4), torch.ones(1, 2, 4, 4), padding=[2, -1], groups=0)
        r = torch.conv3d(torch.ones(1, 2, 4, 4), torch.ones(1, 2, 4, 4), padding=[2, -1])
        r = torch.nn.functional.conv3d(torch.ones(2, 4, 6, 5, 4), torch.ones(3, 4, 1, 2), stride=0)
        r = torch.nn.functional.conv1d(torch.ones(1, 2, 4), torch.ones(2, 1, 2), groups=torch.tensor(2).numpy())
        r = torch.searchsorted(torch.ones(1, 3), True, sorter=torch.ones(3))
        r = torch.searchsorted(torch.ones(1, 3), torch.ones(2, 3), sorter=torch.ones(1, 3))
        r = torch.cumulative_trapezoid(torch.tensor(True), x=torch.ones(0).int())
        r = torch.linalg.vecdot(o.double(), o.double(), out=o)
        r = torch.nn.functional.binary_cross_entropy_with_logits(o, o, [1.])
        r = torch.nn.functional.binary_cross_entropy_with_logits(o, o, pos_weight=(1.,))
        r = torch.log_softmax(o, -1, axis=0)
        r = o.tile()
        r = torch.as_tensor(o, dtype=1.5)
        r = torch.cdist(torch.ones(2, 2), torch.ones(2, 2), (1.5,))
        r = o.norm((1.5,))
        r = torch.norm_except_dim(g, 2, -1)
        r = torch.func.jacrev(lambda x: torch.stack([x, x * x]))(torch.ones(2, 3, requires_grad=True)).grad_fn.name()
        r = torch.func.hessian(lambda x: x.sin().sum())(torch.ones(2, 3, requires_grad=True)).grad_fn.name()
    """,
    "dimensions that are None, and dtypes and strides of results": """
        x = torch.arange(6.).reshape(2, 3).requires_grad_(); p = torch.arange(16.).view(2, 2, 2, 2).transpose(0, 1)
        r = torch.sum(x, None)
        r = x.sum(dim=None)
        r = x.sum(axis=None)
        r = x.sum()
        r = x.mean(None, dtype=torch.float64)
        r = torch.mean(x, None, True)
        r = torch.sum(x.detach(), None, out=torch.ones(()))
        r = torch.nn.functional.rms_norm(x.detach(), (3,), torch.ones(3, dtype=torch.float64))
        r = torch.nn.functional.rms_norm(x.detach().half(), (3,), torch.ones(3, dtype=torch.float64), 0.1)
        r = torch.linalg.eigvalsh(p + p.mT)
        r = torch.linalg.svdvals(p)
        r = torch.linalg.slogdet(p)
        r = torch.linalg.det(p)
        r = torch.linalg.pinv(p)
        r = torch.linalg.eigvals(p + p.mT).stride()
    """,
    "options of optimizers that a step refuses, and objects that are copied": """
        import io, pickle; p, q = (torch.ones(2, requires_grad=True) for _ in "pq"); p.grad = torch.ones(2)
        r = torch.optim.Adam([p], capturable=True).step()
        o = torch.optim.SGD([p, p], 0.1, 0.9, 0.5); [((p ** 3).sum().backward(), o.step()) for _ in range(3)]; r = p
        r = torch.optim.NAdam([p], capturable=True, foreach=True).step()
        r = torch.optim.ASGD([p], capturable=True).step()
        r = torch.optim.Adamax([q], foreach=True, differentiable=True).step()
        r = torch.optim.Adam([q], foreach=True, differentiable=True).step()
        r = torch.optim.Adafactor([p], lr=-0.1)
        r = torch.nn.utils.clip_grad_value_([q], 1.0)
        r = repr(pickle.loads(pickle.dumps(torch.empty(2, 3, device="meta"))))
        f = io.BytesIO(); torch.save(torch.empty(3, device="meta"), f); f.seek(0); r = repr(torch.load(f))
        r = repr(torch.full((2,), -0.0)), repr(torch.full((2,), 0))
        r = torch.func.grad(lambda x: x.sum())(torch.tensor([1, 2]))
        r = torch.func.linearize(lambda x: x * 2, torch.tensor([1, 2]))
        r = torch.func.jvp(lambda x: x * 2, (torch.tensor([1, 2]),), (torch.tensor(1),))
        r = torch.Generator().manual_seed("a")
        r = torch.Generator().set_state(3)
        r = torch.quasirandom.SobolEngine(2, True, seed=3).draw(0)
        r = torch.nn.functional.rrelu(p, 0.5, 0.1)
        r = torch.nn.functional.soft_margin_loss(p.detach().half(), torch.ones(2).double())
        r = torch.nn.functional.rms_norm(torch.ones(2, 3).double(), (3,), torch.ones(3))
        r = torch.nn.functional.conv_transpose1d(torch.ones(1, 2, 3), torch.ones(2, 2, 1), torch.ones(2).double())
    """,
    "edges of what has one bound, no derivative, or itself as an operand": """
        x, y = torch.ones(2, 3, requires_grad=True), torch.ones(2, 3)
        r = torch.clamp(x, y), torch.clamp(x, max=y)
        r = torch.floor_divide(x, y), torch.heaviside(y, x)
        r = torch.detach_copy(x)
        r = torch.conj_physical(y) is y
        with torch.no_grad(): z = x[:]; torch.floor_divide(z, 2, out=y); r = y
        o = x * 2; torch.rand(2, 3, out=o); r = o
        b = x * 2; v = b[0].view(3); v.retain_grad(); v += v; b.sum().backward(); r = v.grad
    """,
    "what cannot be recorded is refused before the operator looks at anything": """
        x, m, i = torch.ones(2, 3, requires_grad=True), torch.ones(2, 3), torch.tensor([0, 1]); \
        with torch.inference_mode(): n, k = torch.ones(2, 3), torch.zeros(2, dtype=torch.int64)
        r = torch.mul(x, n[:, :2])
        r = torch.linalg.cross(x, n, dim=7)
        r = torch.gather(x, 7, k)
        r = x.index_select(7, k)
        r = x.scatter(7, k, 1.0)
        r = torch.mm(x, n)
        r = torch.bmm(x, n)
        r = torch.linalg.solve(n, x)
        r = torch.lerp(x, m, n[:, :2])
        r = torch.convolution(x, n, None, [1], [1], [1], False, [0], 1)
        r = torch.linalg.lu_solve(x, x, x)
        r = torch.binary_cross_entropy_with_logits(x, m[:, :2], weight=x)
        r = torch.binary_cross_entropy_with_logits(i, m)
        r = x[:].fill_(m)
        r = x[:].sub_(m, alpha=True)
        r = x[:].div_(m, rounding_mode="other")
        r = x[:].logical_and_(torch.ones(7))
        r = (x + 1j).nan_to_num()
        r = (x + 1j).select_scatter(x, 7, 0)
        r = torch.softmax(x, 0, torch.float16, out=m)
        r = torch.heaviside(m, m, out=x[:])
        r = torch.zeros(2, 3, out=(x * 1).chunk(1)[0])
        r = torch.special.ndtr(m, out=x)
        o = x * 1; torch.special.ndtr(m, out=o); r = o
        r = torch.matrix_power(m[:2, :2], 1, out=x[:, :2])
        r = torch.normal(x, 1.0, out=m.bool())
    """,
    "`out=` of factories, draws and lists": """
        o, i = torch.ones(2, 3), torch.ones(2, 3).long()
        r = torch.ones(-1, out=torch.ones(2))
        r = torch.rand((2, -1), out=torch.ones(2))
        r = torch.randperm(-1, out=i)
        r = torch.range(1, 4, out=o)
        r = torch.range(1, 4, out=o.bool())
        torch.randn(2, 3, out=o); r = o
        torch.randn(3, 2, out=o); r = o
        torch.normal(torch.zeros(2, 3), 1.0, out=o); r = o
        r = torch.normal(0.0, -torch.ones(2), out=i)
        r = torch.split_copy(o, 1, out=[torch.ones(1, 3)])
        r = torch.split_with_sizes_copy(o, [1, 1], out=[torch.ones(1, 3)])
        r = torch.sum(o, None, out=torch.ones(()))
        r = torch.sum(o, out=torch.ones(()))
        r = torch.pow(2, o, out=torch.ones(2, 3)), torch.orgqr(torch.ones(3, 2), input2=torch.ones(2))
        r = torch.pow(0.5, o, out=i)
        r = torch.nonzero_static(o, size=2, out=torch.ones(2))
        r = torch.isin(o.bool(), True, out=o)
        r = torch.lcm(o, o, out=torch.ones(1).expand(2))
        r = torch.add(o, torch.ones(7), out=torch.ones(1).expand(2, 3))
        r = torch.ldexp(o, i, out=i)
        r = torch.mvlgamma(o + 3, 1, out=i)
    """,
    "which of several errors": """
        m, i = torch.ones(2, 3), torch.tensor([0, 1])
        r = torch.complex(i, torch.ones(3))
        r = torch.polar(m.double(), torch.ones(7))
        r = torch.linalg.vecdot(m, torch.ones(2, 3).long())
        r = torch.renorm(m, 1j, 7, 1.0)
        r = torch.renorm(m, 2, 7, 1j)
        r = i[None].cumprod_(7, dtype=torch.float32)
        r = torch.linalg.matrix_rank(torch.ones(0, 2, 2).half())
        r = torch.convolution(m, m, None, [1], [1, 2], [1], False, [], 0)
        r = torch.convolution(m[None], m[None], None, [], [1], [1], True, [0], 1)
        r = torch.ones(2).addr_(torch.ones(3), torch.ones(1))
        r = m.masked_scatter(torch.ones(2, 2, 2).bool(), i)
        r = m.masked_scatter(m.to(torch.uint8), i)
        r = torch.celu(i, 1j)
        r = torch.threshold(m, 1, 1j)
        r = torch.nn.functional.elu_(m.double(), 1, 1j)
        r = torch.nn.functional.softshrink(m, 1j)
        r = torch.nn.functional.hardtanh_(m, -1, 1j)
        r = torch.special.round(i, decimals=2)
        r = torch.special.round(m.requires_grad_()).grad_fn.name()
        r = torch.swapdims(m, 3, (1.5,))
        r = torch.div(m, m, rounding_mode=True)
        r = torch.ones(2, pin_memory=[None])
        r = m.sum_to_size(size=(1, 3))
        r = m.gt(other=m, out=m)
        r = m.clamp_max(0.5, out=m)
        r = m.xlogy(3, out=m)
        r = torch.max_pool1d(m, [3, 1, 3])
        r = torch.linalg.lstsq(torch.eye(2), b=m), torch.linalg.tensorsolve(torch.eye(4).view(2, 2, 4), other=m[:, :2])
        r = torch.cholesky_solve(m, input2=torch.eye(2)), m.cholesky_solve(input2=torch.eye(2))
        r = m.cholesky_solve(m.long())
        r = torch.nansum(i, dtype=torch.int8), torch.nansum(i[None], 0, dtype=torch.int16)
        r = m.long().scatter_add_(7, i, m), torch.hash_tensor(m, mode=1, out=m)
        r = torch.hash_tensor(m, mode=1, out=m)
        r = m.masked_scatter_(m + 1j, m)
        r = m.div_(m, rounding_mode=slice(1))
        r = torch.autograd.grad({"a": m}, m)
        r = m.to_sparse().untyped_storage()
        x = torch.ones(1, 3, requires_grad=True); torch.linalg.pinv(x, m[:1] * 0.1).sum().backward(); r = x.grad * 1
        y = torch.ones(2, 3, requires_grad=True); v = torch.ones(2, 3)[:]; v.heaviside_(y); r = v
        y = torch.ones(2, 3, requires_grad=True); v = (y * 1)[:]; v.heaviside_(y); r = v
        r = torch.range(float("inf"), 2, out=i)
        r = torch.fft.ihfft2(m + 1j, dim=-5)
        r = torch.fft.ihfftn(m, dim=0, out=m)
        r = torch.histogramdd(m[0, 0], 1)
        r = torch.histogramdd(m.char(), [])
        o = torch.ones(0); torch.transpose_copy(torch.ones(2, 0).long(), 0, 1, out=o); r = o
        o = m[:, :2].int(); torch.t_copy(m, out=o)
        r = torch.nn.functional.linear(m, torch.ones(2, 2, requires_grad=True), out=m)
        r = m.bool().logical_xor_(m + 1j)
    """,
    "nodes of gradients": """
        x = (torch.arange(6.0).view(2, 3).requires_grad_() * 1); g = torch.ones(1, requires_grad=True); \
        names = lambda n, d=0: n and d < 4 and (n.name(), [names(e[0], d + 1) for e in n.next_functions]); \
        second = lambda y: names(torch.autograd.grad(y, x, g.expand(y.shape), create_graph=True)[0].grad_fn)
        r = second(x.unsqueeze(0)), second(x.unsqueeze(-1)), second(x.squeeze(0)), second(x[None, None].squeeze(0))
        r = second(x.unsqueeze(1).squeeze()), second(x.unsqueeze(0).squeeze((0, 1)))
        r = second(x.mean()), second(x.mean(0)), second(x.mean((0, 1))), second(x.mean(0, keepdim=True))
        r = second(x.sum(0)), second(x.sum((0, 1))), second(x.logsumexp(0)), second(x.logsumexp((0, 1)))
    """,
    "strides in dimensions of size 1": """
        x = torch.ones(1, 4).T; y = torch.ones(4, 1); z = torch.arange(4.0).view(1, 4, 1).movedim(0, -1)
        r = torch.where(x > y.T, x, y.T)
        r = (z.contiguous() * 3).to(torch.int8) + torch.ones(1, 4, 1)
        r = torch.ones(1, 2).T.mT.expand(2, 2) + torch.ones(2, 1)
        r = torch.func.vmap(lambda t: torch.outer(t, t), out_dims=-1)(y[:1]).clone() > torch.ones(2, 1)
    """,
    "conversions warn by the grad mode that was asked for": """
        x = torch.ones(1, requires_grad=True); enter(torch.inference_mode())
        r = float(x)
        enter(torch.set_grad_enabled(True)); r = float(x); r = complex(x)
    """,
    "reductions check dims before dtypes": """
        c, e, s, b = (torch.zeros(n, dtype=torch.complex64) for n in ((2, 0), 0, (), 2))
        r = c.amax(0), c.mode(0), s.mode(), s.kthvalue(1), e.median(), e.nanmedian(), e.cummax(9), e.cummin(9)
        r = c.max(9)
        r = c.max()
        r = c.max(0)
        r = c.max(1)
        r = c.aminmax(dim=0)
        r = c.aminmax(dim=1)
        r = s.aminmax(dim=0)
        r = c.median(9)
        r = c.sort(9)
        r = e.sort()
        r = b.topk(3)
        r = b.kthvalue(3)
        r = b.bool().kthvalue(1)
        r = c.log_softmax(9)
        r = c.cummax(9), b.cummax(9)
        r = torch.zeros(0, dtype=torch.bool).median(), torch.zeros(0, dtype=torch.int16).median()
        r = s.unique(dim=0)
        r = s.real.unique(dim=0)
        r = s.real.unique_consecutive(dim=0)
        r = c.unique_consecutive(dim=0)
        r = torch.zeros(2, 0, dtype=torch.int64).bincount()
        r = torch.zeros(0, dtype=torch.uint8).histc()
        r = b.norm("nuc")
        r = b.norm("other")
        r = torch.zeros(2, 2, dtype=torch.float16).norm("nuc")
        r = b.long().renorm(2, 0, 1.0)
        r = torch.zeros(2, 2, dtype=torch.int64).renorm(2, 9, 1.0)
        r = torch.ones(2, 3).logsumexp(()), torch.ones(()).logsumexp(())
        r = b.var(), s.std(0), torch.var_mean(s)
        r = b.prod(dtype=torch.int32)
        r = b.nansum(dtype=torch.int64)
    """,
    "shapes and types in errors": """
        x, m, f = torch.ones(4, 3, dtype=torch.bfloat16), torch.tensor(1.0), torch.tensor([0.5, 2.0, 3.0])
        r = x.expand(3)
        r = x.bool().expand(3)
        r = torch.meshgrid(f[None], f)
        r = torch.meshgrid(f, f.double())
        r = torch.meshgrid(x.view(2, 2, 3) * 0.3, x)
        r = torch.meshgrid(torch.arange(60.0).view(2, 30).sin() * 1e6, f)
        r = torch.meshgrid(torch.tensor([[1.0, float("inf")]]), f)
        r = torch.meshgrid(torch.tensor([[1e-7, 1e3]]), f)
        r = torch.meshgrid(torch.zeros(0, 3), f)
        r = torch.nn.functional.linear(m, x)
        r = torch.nn.functional.linear(f, f, f)
        r = torch.addmm(f[:1], f[None], f[:, None].double())
        r = torch.cross(m, m, dim=0)
        r = torch.zeros(2, 0)[torch.tensor([5])]
        r = torch.zeros(2, 0).index_put_((torch.tensor([5]),), m)
        r = torch.all(f.requires_grad_(), out=m.bool()), torch.any(f, 0, out=m.bool())
    """,
    "results in `out=`": """
        f, i, o = torch.tensor([1.5, -0.5, 0.0]), torch.tensor([1, 0, 2]), torch.zeros(2, 2)
        r = torch.zeros(3, out=o), torch.full((2,), 1.5, out=i)
        r = torch.sum(f, 0, out=i[0]), torch.sum(i, 0, out=i.bool()[0]), torch.prod(f, 0, out=i[0])
        r = torch.mean(f, 0, out=i[0])
        r = torch.mean(f, out=i[0])
        r = torch.mean(f, 0, out=f.double()[0])
        r = torch.mean(i, 0, out=f[0])
        r = torch.nansum(f.requires_grad_(), out=o[0, 0])
        v = o[0]; torch.mul(f[:2], 2, out=o); r = v, o, torch.empty(0).set_(o.untyped_storage())
        v = o[0]; torch.sum(f[None], 1, out=o); r = v, o; torch.zeros(2, out=o)
        r = torch.norm(f, out=o[0, 0].requires_grad_())
        r = torch.remainder(f.requires_grad_(), 2, out=o)
        r = torch.logsumexp(f, 0, out=i[0])
        r = torch.sum(o.bool(), 0, out=i.bool()[:2]), torch.nansum(o.long(), 0, out=i.bool()[:2])
        r = torch.round(f + 1j, out=i)
        r = torch.frac(i, out=f)
        r = torch.ceil(f + 1j, out=i)
        r = torch.bitwise_and(f, f, out=o)
        r = torch.div(f + 1j, 2, rounding_mode="floor", out=o)
        r = torch.logical_not(f, out=o), torch.floor_divide(f, 2, out=o.double()), torch.angle(f, out=o.double())
        r = torch.var(f[:1], 0, out=o)
        r = i.bool().sub_(1.5)
        r = i.lerp_(f[:2], 0.5)
    """,
    "`out=` that requires grad, or of another dtype": """
        i, o = torch.zeros(7).long(), torch.zeros(3); d, g = o + 0.5, torch.ones(3).requires_grad_(); f = g * 0.5
        r = torch.zeros(2, out=g)
        r = torch.eye(2, out=g)
        r = torch.arange(3, out=g)
        r = torch.randn(2, out=g)
        r = torch.softmax(d, 0, out=g)
        with torch.no_grad(): torch.zeros(3, out=g); r = g, torch.ones(3, out=g * 2)
        with torch.no_grad(): torch.arange(3.0, out=g); r = g
        r = torch.eye(2, out=d, requires_grad=True), torch.rand(2, out=o, requires_grad=True)
        r = torch.empty(3, out=g)
        r = torch.hstack([d, d], out=g)
        r = torch.kron(d, d, out=g[:0])
        r = torch.linalg.det(f.reshape(3, 1)[:1], out=o)
        r = torch.quantile(d, 0.5, out=g)
        r = torch.tensordot(d, d, 1, out=g)
        r = torch.gcd(d.long(), d.long(), out=g)
        r = torch.floor_divide(f, f, out=o), torch.softmax(f, 0, out=g * 1), torch.linalg.norm(f, out=torch.zeros(()))
        torch.heaviside(f, f, out=o).sum().backward(); r = 0
        r = torch.abs(d, out=i)
        r = torch.abs(d + 1j, out=o.double()), torch.abs(d + 1j, out=o + 0j)
        r = torch.abs(d + 1j, out=i)
        r = torch.slice_copy(d, 0, 1, 3, out=o)
        r = torch.slice_copy(d, 0, 1, 3, out=i)
        r = torch.view_as_real_copy(d + 1j, out=o)
        r = torch.view_as_complex_copy(torch.ones(3, 2), out=torch.zeros(2) + 0j)
        r = torch.diagonal_copy(d[None], out=i)
        r = torch.topk(d, 1, out=d)
        r = torch.topk(d, 1, out=(d,))
        r = torch.lerp(d, d, 0.5, out=o.double())
        r = torch.lerp(d, d, d, out=o.double())
        r = torch.max(d, 0, out=(o.double(), i))
        r = torch.median(d, 0, out=(o.bool(), i))
        r = torch.median(d, 0, out=(o, i.int()))
        r = torch.mode(d, 0, out=(o.double(), i))
        r = torch.dot(d, d, out=i)
        r = torch.mean(d, 0, out=i)
        r = torch.nansum(d, 0, out=i)
        r = torch.sum(d, out=o)
        r = torch.sum(d, 0, dtype=torch.float64, out=o)
        r = torch.cumsum(d + 1j, 0, out=i), torch.prod(d + 1j, 0, out=torch.zeros(7))
        r = torch.eq(d, d, out=i), torch.eq(d, d, out=torch.zeros(7)), torch.bitwise_and(i, i, out=o)
        r = torch.index_select(d, 0, torch.tensor([9]), out=i)
        r = torch.linalg.norm(d, out=i)
    """,
    "examples without dimensions, masks, and probabilities": """
        x, s = torch.tensor([[0.1, 1.2, -0.5], [0.3, 0.4, 0.9]]), torch.tensor(0.5); g = x.clone().requires_grad_()
        r = s.unbind(9)
        r = torch.func.vmap(lambda t: t.unbind(0)[0])(x[0])
        r = torch.func.vmap(lambda t: t.flip(0))(x[0])
        r = torch.func.vmap(lambda t: t.select(0, 0))(x[0])
        r = torch.func.vmap(lambda t: t.roll(1, 0))(x[0])
        r = x[torch.tensor([True, False, True]), True]
        r = x[torch.tensor(False), torch.tensor([True]), torch.tensor(0)]
        r = x[torch.tensor(False), torch.tensor([[2], [7]])], x[torch.tensor([], dtype=torch.int64), torch.tensor([7])]
        r = torch.nn.functional.binary_cross_entropy(x.abs() * 0.2, x)
        r = torch.nn.functional.binary_cross_entropy(torch.tensor([0.5, 3.0]), torch.tensor([-1.0, 0.0]))
        r = torch.nn.functional.pad(x, (-4, 5))
        r = torch.nn.functional.cosine_similarity(g[0, :1], g, dim=0, eps=0.1)
        torch.nn.functional.huber_loss(x.double(), g, delta=0.3).backward(); r = g.grad
        r = torch.searchsorted(x + 1j, x.double())
        r = g.quantile(0.5), g.quantile(0.5, 0), g.quantile(torch.tensor([0.5, 0.1]), 1, True), x.nanquantile(0.5)
        r = torch.clamp(x + 1j, x[:, :2])
        r = torch.dist(x.int(), x[:, :2].int())
    """,
    "derivatives under inference mode": """
        x, b, f, F = torch.tensor([[0.1, 1.2], [0.3, 0.4]]), torch.ones(2, 2, 3), lambda t: t[0] * t, torch.func
        enter(torch.inference_mode()); r = F.jvp(f, (x * 2,), (x,))[1].contiguous().clone()
        enter(torch.inference_mode()); r = F.vjp(f, x)[0].clone(), F.grad(lambda t: f(t).sum())(x).clone()
        enter(torch.inference_mode()); r = F.jacfwd(f)(x).contiguous().clone(), F.jacrev(f)(x).contiguous().clone()
        enter(torch.inference_mode()); r = F.hessian(lambda t: f(t).sum())(x).contiguous().clone()
        enter(torch.inference_mode()); r = torch.nn.functional.max_pool1d(b, 2, return_indices=True)[1]
        enter(torch.inference_mode()); torch.set_grad_enabled(True); r = torch.nn.functional.soft_margin_loss(x, x)
    """,
    "strides of copies with a part replaced, and of results": """
        x = torch.tensor([[0.1, 1.2, -0.5], [0.3, 0.4, 0.9]]); t, p = x.t(), torch.ones(2, 2, 3).permute(2, 1, 0)
        r = x.narrow(1, 1, 2).slice_scatter(x[:, :1], 1, 0, 1), x[:, 1].select_scatter(torch.tensor(9.0), 0, 0)
        r = x[1:, 1:].diagonal_scatter(torch.ones(1)), x.expand(2, 2, 3).select_scatter(torch.ones(2, 3), 0, 0)
        i = torch.tensor([0]); r = t.index_fill(0, i, 1), t.index_put((i,), x[0, 0]), t.put(i, x[0, :1])
        f, u = torch.nn.functional, x.view(3, 2); r = f.mse_loss(t, u, reduction="none"), f.huber_loss(u, t, 2, 2.0)
        r = f.smooth_l1_loss(t, u, reduction="none"), f.soft_margin_loss(t, u, reduction="none")
        r = torch.nn.functional.binary_cross_entropy_with_logits(u, t, reduction="none")
        r = f.binary_cross_entropy(t.sigmoid(), u.sigmoid(), reduction="none"), f.max_pool1d(p, 1)
        i = torch.tensor([[1], [0]]); r = p[i], p[:, i[:, 0]], p[i.t()], p[:, :, i.t()], p[[0, 1], :, [1, 0]], t[[[0]]]
        r = torch.mvlgamma(t + 3, 2), t.gather(1, t.long() * 0), torch.take_along_dim(t, t.long() * 0, 1)
        r = torch.ones(2, 2, 1).transpose(0, 1) @ torch.ones(1), torch.ones(2, 2, 1).transpose(0, 1) @ torch.ones(1, 3)
        r = torch.nn.functional.batch_norm(p, torch.zeros(2), torch.ones(2), training=True), p.argmax(1)
        r = t.renorm(2, 0, 1.0), torch.nn.functional.logsigmoid(t)
        r = torch.kron(t, x)
        r = torch.kron(x[:, ::2], x)
        e = t.expand(2, 3, 2); r = e.clone(), e.half(), torch.zeros_like(e), e.bool(), e.permute(1, 2, 0).double()
        e = torch.zeros_like(t.expand(2, 3, 2), device="meta").stride(); note(e); r = x
        F = torch.nn.functional; r = F.pad(t, (-1, 0)), F.pad(t, (0, 0)), F.pad(p, (0, -1, -1, 0)), F.pad(t, (-1, 1))
    """,
    "rarer functions": """
        x = torch.tensor([[0.1, 1.2, -0.5], [0.3, 0.4, 0.9]]); g = (x * 2).requires_grad_(); v, c = g[0], g + 1j
        r = torch.vander(v.long(), 2, True), torch.vander(v.long()), torch.vander(x[0], 0)
        r = torch.nn.GRUCell(3, 2)(g) * 0, torch.nn.LSTMCell(3, 2)(g)[0] * 0
        r = g.view(torch.float32), x[0].view(torch.int16), x.view(torch.float32).mul_(2)
        r = torch.unravel_index(torch.tensor([4, 1]), (2, 3)), torch.unravel_index(torch.tensor(0), (3,))
        r = x.bfloat16().put_(torch.tensor([-1, 5, 5]), torch.ones(3).bfloat16(), accumulate=True)
        r = torch.tensordot(v, v, 1), torch.tensordot(g[:1], g[:1], 2), torch.inner(v, v)
        r = c.select_scatter(c[0], 0, 0)
        r = x.expand(2, 2, 3).flip(0), x.t().flip(0)
        r = (x > 0).cumsum_(0)
        r = (x[0, 0] > 0).cumsum_(0), (x[0, 0] > 0).cumprod_(0)
        r = x.half()[0, :1].histc(), x.half()[1, :1].histc(10)
        enter(torch.inference_mode()); r = torch.unravel_index(torch.tensor([4, 1]), (2, 3))
        y = g * 1; r = y.gather(1, y.long() * 0); y.mul_(2); r.sum().backward()
        r = torch.ldexp(g, torch.tensor(2)); r.mul_(1); r.sum().backward()
        r = (x + 1j).abs_()
        enter(torch.inference_mode()); r = x.view(torch.int32), x.view(x.dtype), torch.from_numpy(x.numpy())
    """,
    "random numbers in tensors of any strides": """
        torch.manual_seed(0); x = torch.ones(4, 3, 2); t, u = x[0].t(), x.permute(2, 0, 1); e = t.expand(2, 2, 3)
        r = torch.bernoulli(u, 0.5), torch.bernoulli(e, 0.5), torch.bernoulli(e * 0.5), torch.poisson(u)
        r = torch.rand_like(e), torch.randn_like(e), torch.randint_like(e, 9), torch.rand_like(x[:, ::2].mT)
        f = torch.nn.functional.dropout; r = f(e, 0.5), f(u, 0.5), f(x[:, :1].permute(1, 0, 2), 0.5)
        r = torch.multinomial(t, 1), torch.multinomial(t, 2), torch.multinomial(x[:, :, 0], 2, True)
        r = torch.nn.functional.gumbel_softmax(t, dim=-1), torch.nn.functional.gumbel_softmax(e, hard=True)
    """,
    "nodes and errors of layers": """
        x, s = (torch.arange(6.0).view(2, 3) * 0.3 - 0.5).requires_grad_(), torch.tensor([[1.0, -1.0, 1.0]])
        r = torch.nn.functional.hinge_embedding_loss(x, s), torch.nn.functional.margin_ranking_loss(x, x * 2, s)
        r = torch.nn.functional.cosine_embedding_loss(x, x * 2, torch.ones(1), 0.1)
        r = torch.nn.functional.pairwise_distance(x, x * 2), torch.nn.functional.triplet_margin_loss(x, x * 2, x * 3)
        r = torch.nn.functional.hinge_embedding_loss(s.long(), s.long(), reduction="sum")
        r = torch.nn.functional.margin_ranking_loss(s.bool(), s.bool(), s.bool())
        f = torch.nn.functional.group_norm; r = f(x.t(), 1), f(x[:, 1:], 1), f(x, 1), f(x.expand(2, 2, 3), 1)
        p = s[0].abs().requires_grad_(); torch.nn.functional.binary_cross_entropy(p.detach(), p).backward(); r = p.grad
        r = torch.tensordot(x.t(), x.t(), 2), torch.tensordot(x[:, ::2], x[:, ::2], 2), torch.tensordot(x, x.t(), 1)
        r = torch.linalg.cond(x[:, :2]), torch.tensordot(x, x, 2), torch.trapezoid(x), torch.special.ndtr(x)
        r = torch.linalg.multi_dot([x[:, :2]] * 3), torch.var(x, (), correction=0)
        torch.manual_seed(0); r = torch.nn.MultiheadAttention(3, 1, batch_first=True)(*[x.expand(2, 2, 3)] * 3)
        f = torch.nn.functional.pad; r = f(x, (1, 2), "circular"), f(x[None], (1, -1, 0, 1), "circular"), f(x, (0, 0))
        torch.var(x, ()).backward(); r = x.grad
        y = torch.nn.functional.elu_(x * 1, 0.5); r = y; y.mul_(2); y.sum().backward()
        torch.nn.functional.elu_(x * 1, 0.5).sum().backward(); r = x.grad
        torch.nn.functional.celu_(x * 1, 0.5).sum().backward(); r = x.grad
        torch.nn.functional.leaky_relu_(x * 1, 0.5).sum().backward(); r = x.grad
        r = torch.nn.functional.leaky_relu_(x * 1, -0.5).sum().backward()
        r = torch.nn.functional.elu_(x * 1, -0.5).sum().backward()
        r = torch.nn.functional.softshrink(x, -1.0)
        r = torch.nn.functional.gelu(s.long(), approximate="other")
        r = torch.nn.functional.huber_loss(s.long(), s.long(), delta=0)
        r = torch.nn.functional.cross_entropy(x[0, 0], x[0, 0].detach())
        r = torch.nn.functional.cross_entropy(x[0], torch.tensor([0, 1]))
        r = torch.nn.functional.cross_entropy(x[:, :0].detach(), x[:, :0].detach(), label_smoothing=0.1)
        r = torch.nn.functional.cross_entropy(x[:, None], x.detach())
        r = torch.nn.functional.cross_entropy(torch.ones(2, 1, 3), torch.ones(2, 1))
        r = torch.nn.functional.conv1d(x.detach() + 1j, torch.ones(1, 1, 1))
        r = torch.nn.functional.max_pool1d(x.detach(), 2), torch.nn.functional.max_pool1d(x, 2)
        r = torch.nn.functional.max_pool1d(x, 2, return_indices=True)
        r = torch.nn.functional.binary_cross_entropy_with_logits(s.double(), s)
        r = torch.nn.functional.binary_cross_entropy_with_logits(s, s.long())
        r = torch.cross(s.bool(), s.bool(), dim=0)
        r = s.rot90(1, (0, 9))
        r = s.repeat(-1, 2)
        r = torch.linalg.cond(s[0])
        r = torch.linalg.lstsq(s[0], s[0])
        r = torch.quantile(s.long(), 2.0)
        r = s.clone(); r[[7]] = torch.tensor(1)
        r = s[[0, 0, 0], [1, 7, -9]]
        r = s[[[0], [-3]], [[1, 8]]]
        r = s[:, [5, -9]]
        r = s[:, :, None].index_add(1, torch.tensor([7]), s[:, :1, None])
        r = s[:, :0].detach().index_add(0, torch.tensor([7]), s[:, :0]), s[:, :0].index_fill(0, torch.tensor([7]), 0)
        r = s.index_put((torch.tensor([0, 0]), torch.tensor([0, 1, 9])), s[0, 0])
        r = s.clone(); r[:, [7]] = torch.ones(1, 5)
        r = torch.zeros(0).roll(1, 9), torch.zeros(0).long() // 0
    """,
    "transforms": """
        f = torch.tensor([1.5, -0.5, 0.3])
        r = torch.func.hessian(lambda t: t.clone().cumprod_(0).sum())(f)
        r = torch.func.jacfwd(torch.func.grad(lambda t: t.clone().cumprod_(0).sum()))(f).contiguous().clone()
        r = torch.func.jacrev(torch.func.jacfwd(lambda t: t.clone().sin_().mul_(t).exp_()))(f).contiguous().clone()
        r = torch.func.grad(lambda u: torch.func.jvp(lambda t: t.clone().tanh_(), (u,), (u,))[1].sum())(f)
        r = torch.func.grad(lambda u: torch.func.jvp(lambda t: t.mul(2).pow_(3), (u,), (u,))[1].sum())(f)
        r = torch.func.vmap(torch.func.grad(lambda t: t.clone().cumprod_(0).sum()))(f[None])
        r = torch.func.hessian(lambda t: (t.cummax(0).values ** 2).sum())(f).contiguous().clone()
        r = torch.func.jvp(lambda t: t.sum(), (f.expand(2, 3),), (torch.ones(2, 3),))
        r = torch.func.jacfwd(lambda t: torch.nn.functional.layer_norm(t, t.shape))(f).contiguous().clone()
        r = torch.func.jvp(lambda t: torch.linalg.qr(t)[1], (torch.eye(2),), (torch.ones(2, 2),))[1].clone()
        r = torch.func.jacfwd(lambda t: t.sum())(f.expand(2, 3))
    """,
    "the node of a view that was written to is older than what follows": """
        a = torch.ones(2, 3, requires_grad=True) * 2; v = a.logsumexp(0).unsqueeze(0)
        v.sub_(v, alpha=2); b = a.sin(); c = b + v; note(v.grad_fn._sequence_nr() < b.grad_fn._sequence_nr()); r = c
    """,
    "views whose history is not known, and none": """
        b, c = torch.ones(2, 3).requires_grad_() * 1; s = b[0].detach().requires_grad_(); u = torch.utils.checkpoint
        i = torch.inference_mode()(lambda: s[...])(); u.checkpoint(torch.sin, i, use_reentrant=False).backward(); r = s
        torch.set_grad_enabled(False); c.zero_(); torch.set_grad_enabled(True); r = b[torch.tensor([0]).char()]
        torch.set_grad_enabled(False); c.zero_(); torch.set_grad_enabled(True); r = b[7]
        r = torch.outer(torch.ones(4, requires_grad=True)[::2], s[None])
    """,
    "stale views, while something is hooked": """
        x = torch.ones(2, 3, requires_grad=True); h = torch.ones(4, 3).requires_grad_(); h.register_hook(fail)
        v = x[:1]; v.detach().add_(1); torch.nn.functional.linear(v, h, h[:, 0]).sum().backward(inputs=[x]); r = x.grad
        v = x[:]; v.detach().mul_(2); torch.nn.functional.nll_loss(v, torch.tensor([0, 1])).backward(); r = x.grad
    """,
    "strides of results": """
        x = torch.arange(6.0).view(2, 3).t(); z = torch.complex(x, x); b = torch.rand(2, 3, 2).mul(0).permute(2, 1, 0)
        r = x.angle(), z.angle(), 2.0 ** x, torch.pow(2, z), x ** 2, tuple(b.aminmax(dim=0))[0], b.aminmax(dim=1)[1]
        r = torch.cdist(b, b), torch.pow(2, b), torch.pow(torch.tensor(2.0), b), torch.pow(1, x)
    """,
    "gradients of numbers, factories into tensors that require grad": """
        y = torch.tensor(0.94, requires_grad=True) * 1; i = torch.tensor([0]); o = torch.zeros(2, 1, 1).requires_grad_()
        r = torch.autograd.grad(y.index_fill(0, i, 0.5) * 0.3, y)
        r = torch.autograd.grad(y.index_copy(0, i, torch.tensor([2.0])) * 0.3, y)
        r = torch.gradient(torch.outer(y * i + 1, torch.arange(3.0)), dim=1), torch.trapezoid(y * torch.ones(3), i)
        r = torch.gradient(y * torch.arange(4.0), spacing=2, edge_order=2)
        torch.set_grad_enabled(False); r = torch.full((2,), 1.5, out=o), torch.zeros(3, out=o), torch.arange(3, out=o)
        torch.set_grad_enabled(False); r = torch.empty(2, out=o)
        r = torch.hypot(i, i, out=torch.zeros(7))
    """,
    "the loss of two dtypes": """
        x = torch.tensor([0.5, -1.0], requires_grad=True); y = torch.tensor([[1.0, 2.0]]).double().requires_grad_()
        r = torch.nn.functional.huber_loss(x, y)
        r = torch.nn.functional.huber_loss(x, y, reduction="none")
        r = torch.nn.functional.huber_loss(x, y); r.backward()
        r = torch.nn.functional.huber_loss(y, x); r.backward()
        r = torch.nn.functional.huber_loss(x.detach(), y.detach())
    """,
    "what nodes save": """
        x = torch.tensor([[0.3, -0.7], [1.1, 0.2]], requires_grad=True); y = x * 1; i = torch.tensor([0])
        z = y.take(i); y.detach().mul_(2); r = z.backward()
        z = y.masked_select(y > 0); y.detach().mul_(2); r = z.sum().backward()
        z = y.cummax(0)[0]; y.detach().mul_(2); r = z.sum().backward()
        z = y.cummin(1).values; y.detach().mul_(2); r = z.sum().backward()
        z = y.index_add(0, i, y[:1]); y.detach().mul_(2); r = z.sum().backward()
        z = y.index_copy(0, i, y[:1]); y.detach().mul_(2); r = z.sum().backward()
        z = torch.combinations(y[0]); y.detach().mul_(2); r = z.sum().backward()
        z = y.put(i, y[0, :1]); y.detach().mul_(2); r = z.sum().backward()
        z = torch.complex(y, y); y.detach().mul_(2); r = z.real.sum().backward()
    """,
    "second derivatives": """
        x = torch.tensor([[0.5, -1.0, 2.0]], requires_grad=True); t = torch.tensor([1]); u = torch.tensor([1.2])
        y = torch.nn.functional.multi_margin_loss(x, t); g, = torch.autograd.grad(y, x, create_graph=True); r = g
        y = torch.nn.functional.multi_margin_loss(x, t); y.backward(create_graph=True); r = x.grad.sum().backward()
        y = torch.special.log_ndtr(x); y.mul_(2); r = y.sum().backward()
        r = torch.func.hessian(lambda t: t.var())(u).clone()
        r = torch.func.hessian(lambda t: (t * t).var(correction=3))(x.detach()[0]).clone()
        r = torch.func.hessian(lambda t: t.std(0))(u).clone()
    """,
    "inference tensors are not saved": """
        with torch.inference_mode(): z = torch.full((1, 1), 2.0)
        x = torch.ones(1, 1, requires_grad=True); x.data.mul_(1); x.detach().mul_(1); r = torch.fmin(x, z)
        x = torch.ones(1, 1, requires_grad=True); x.detach().mul_(1); r = x @ (z @ x)
        x = torch.ones(1, 1, requires_grad=True); v = x.t() * 1; r = torch.mm(v, z)
    """,
    "indices and masks": """
        e, z, v = torch.zeros(1, 0).double(), torch.zeros(2, 3).double(), torch.ones(2, 2); i = torch.tensor([-1])
        e[[-1], :-1] = v; r = e
        z[i, :0] = v; r = e
        r = e.index_put_((i,), v)
        z[[7], :0] = torch.ones(5); r = z
        e[[0], [0]] = v; r = e
        r = z[torch.tensor([0, 1]).char(), torch.tensor(-9)]
        r = z[torch.tensor([0, 1]).char(), torch.tensor([True])]
        g = torch.ones(1).requires_grad_(); x = z * 1; x[[True, False], 0] = g; x.sum().backward(); r = x, g.grad
        g = torch.ones(()).double().requires_grad_() * 2; x = torch.zeros(0); x[torch.zeros(0).bool()] = g; r = x
        with torch.no_grad(): x = torch.zeros(2, 3).requires_grad_(); torch.arange(3, out=x); r = x
    """,
    "layouts of sequences of length 1 and of one channel": """
        f, s, t = torch.nn.functional.conv1d, torch.zeros(1, 1, 3).permute(1, 2, 0), torch.zeros(1, 3).t()
        r = f(s, torch.ones(2, 3, 1)), f(t, torch.ones(2, 3, 1)), f(t.t(), torch.ones(2, 1, 1))
        r = f(torch.zeros(2, 3, 1).mT, torch.ones(2, 1, 1))
        r = f(torch.zeros(1, 3, 2).permute(2, 0, 1), torch.ones(2, 1, 2))
        r = torch.nn.functional.conv_transpose1d(s, torch.ones(3, 2, 2))
    """,
    "hooks of tensors whose shape changes in place": """
        import copy; x = torch.ones(3, requires_grad=True) * 1; v = x[None]; v.register_hook(lambda g: note("old", g))
        v.t_(); r = copy.copy(v)
        v.t_(); h = v.register_hook(lambda g: note("new", g)); r = (v * 2).sum().backward()
        x.unsqueeze_(0); h = x.register_hook(lambda g: note("new", g)); r = (x * 2).sum().backward()
        v.mul_(2); r = copy.copy(v)
        v.mul_(2); h = v.register_hook(lambda g: note("new", g)); r = (v * 2).sum().backward()
    """,
    "operands that do not fit each other": """
        f, c, i = torch.tensor([1.5, -0.5, 0.0]), torch.tensor([1 + 1j, 0, 0]), torch.tensor([1, 0, 2])
        r = f.masked_fill(f, 1)
        r = f.masked_fill(torch.ones(7), 1)
        r = torch.heaviside(f, i)
        r = torch.heaviside(f, c)
        r = torch.nn.functional.kl_div(f, i)
        r = torch.nn.functional.kl_div(f, c)
        r = torch.dist(f, i.bool())
        r = torch.dist(f, i[:2])
        r = torch.dist(i.bool(), i[:2].bool())
        r = torch.bmm(i.view(1, 1, 3).bool(), i.view(1, 3, 1))
        r = torch.matmul(i.view(1, 1, 3).bool(), f)
        r = torch.ldexp(f, i.bool())
        r = torch.nn.functional.huber_loss(f, f.double())
        r = torch.nn.functional.huber_loss(i, f)
        r = torch.cross(f, i)
        r = torch.isin(f, True)
        r = torch.isin(f, 1j)
        r = torch.isin(i.bool(), f)
        r = torch.clamp(f, c)
        r = torch.clamp(c, f)
        r = torch.clamp(f, max=c)
        r = torch.clamp(f, c, c)
        r = torch.clamp(f, 1j)
        r = torch.clamp_min(f, 1j)
        r = f.clamp_(1j)
        r = torch.clamp(i.bool(), True)
        r = torch.clamp(i.bool(), max=True)
        r = torch.clamp(i.bool(), True, False)
        r = i.bool().clamp_(0, 1)
        r = i.byte() % -1, torch.fmod(i.byte(), -2), torch.rsub(i.byte(), -1), torch.clamp(i.byte(), -1)
        r = torch.clamp(i.byte(), max=300)
        r = i.byte() % 300
        r = torch.searchsorted(f, c)
        r = torch.searchsorted(i.bool(), i.bool())
        r = torch.searchsorted(f, i.bool()), torch.searchsorted(i, 0.5)
        r = torch.searchsorted(f, 1j)
        r = torch.searchsorted(f[0], 2)
        r = torch.searchsorted(f, torch.tensor(1j, dtype=torch.complex128))
        r = torch.searchsorted(c, torch.tensor(1j, dtype=torch.complex128))
        r = torch.searchsorted(i, torch.tensor(1j, dtype=torch.complex64))
        r = torch.bucketize(f, c)
        r = torch.sub(i, True, alpha=0.5)
        r = torch.sub(i, i[:2], alpha=0.5)
        r = torch.rsub(i, i[:2])
        r = torch.sub(i.bool(), i.bool(), alpha=0.5)
        r = torch.pow(c, c), torch.pow(c, f), torch.pow(0, c), torch.pow(0j, f), c ** 0, c ** 1j
    """,
    "out= of linear algebra and of transforms, and numbers in torch.special": """
        x, z = torch.arange(6.0).view(2, 3), torch.ones(2, 3) + 0j; g, b = torch.ones(2, 3).requires_grad_(), z.bool()
        r = torch.fft.irfft(z, dim=5, out=z)
        r = torch.fft.ihfft(x, n=0, out=x)
        r = torch.fft.ifft(x), torch.fft.ihfft(g), torch.fft.rfftfreq(-1), torch.fft.fftfreq(3, d=0.0)
        r = torch.fft.fftfreq(2, out=b.long())
        r = torch.fft.fftfreq(2, out=torch.ones(5))
        r = torch.arange(3, out=torch.ones(2, 3).short())
        r = torch.linalg.solve(x, b.long())
        r = torch.linalg.solve(g, x, out=x)
        r = torch.linalg.cholesky(g, out=x)
        r = torch.linalg.matmul(g, x, out=x)
        r = torch.linalg.vecdot(g, x, out=x)
        r = torch.linalg.matrix_norm(b, 0.5)
        r = torch.linalg.matrix_norm(x, 1, dim=(-1, 1))
        r = torch.linalg.vector_norm(x, 1j)
        r = torch.linalg.eigvals(b)
        r = torch.linalg.eigvals(g)
        r = torch.linalg.svdvals(b, driver="x")
        r = torch.linalg.cross(torch.ones(3, 3), torch.ones(2, 3).int())
        r = torch.linalg.vander(b)
        r = torch.linalg.lstsq(b, x)
        r = torch.slogdet(torch.eye(2)), torch.eye(2).slogdet()
        r = torch.lu_unpack(torch.tensor(1), b)
        r = torch.norm_except_dim(b)
        r = torch.frobenius_norm(g, 7, out=x)
        r = torch.norm_except_dim(g)
        r = torch.special.erfc(3)
        r = torch.special.log1p(x, out=2)
        r = torch.special.zeta(2, g), torch.special.zeta(g, 2), torch.special.zeta(2, b.long())
        r = torch.special.round(b.long())
        r = torch.polygamma(0, x + 1), x.polygamma(0)
        r = torch.isinf(x, out=b)
        r = torch.masked_fill(x, b, 1, out=x)
        r = torch.detach_copy(x, out=g)
        r = torch.view_copy(g, torch.int32), torch.view_copy(x, torch.uint8)
        r = torch.searchsorted(g[0], 2, side="other", out=z)
        r = torch.ones(4).bfloat16()[1:].logsumexp(0, out=x)
    """,
    "which error comes first in layers": """
        x = torch.arange(6.0).view(2, 3); i, v, g = (x * 0 + 1).long(), x[0] * 0 + 1, (x + 1).requires_grad_()
        r = torch.block_diag([x, x])
        r = torch.broadcast_tensors([x, x])
        r = torch.cartesian_prod([v, v])
        r = torch.embedding(i, i, padding_idx=7, scale_grad_by_freq=1)
        r = torch.nn.functional.avg_pool3d(x, ...)
        r = torch.nn.functional.avg_pool1d(x, (-1,), [1])
        r = torch.nn.functional.max_pool2d(x[None], (1, -1), padding=3)
        r = torch.nn.functional.adaptive_avg_pool2d(i[None], 0), torch.nn.functional.lp_pool2d(x[None], float("inf"), 2)
        r = x.unflatten(7, 2)
        r = torch.nn.functional.elu_(x.clone(), 1.0, 2.0, 3.0), torch.nn.functional.elu_(g * 1, 1.0, 2.0, 3.0)
        r = torch.nn.functional.pad(x, (1, 1.0))
        r = torch.nn.functional.pad(x, [1], "other")
        r = torch.nn.functional.pad(x, [], value="mean")
        r = torch.dropout(x)
        r = torch.dropout(x, 0.5, 1j)
        r = torch.rrelu(x - 3, training=True, generator=torch.Generator().manual_seed(3))
        r = torch.rrelu_(i, upper=1, training=False)
        r = torch.affine_grid_generator(v, (), True)
        r = torch.group_norm(v, 0)
        r = torch.group_norm(x.half(), 3, v.double())
        r = torch.layer_norm(x.half(), [4], v.int())
        r = torch.layer_norm(x.double(), [3], v)
        r = torch.instance_norm(v, None, None, None, None, True, 0.1, 1e-5, False)
        r = torch.embedding_renorm_(torch.ones(2, 2, 2), i, 1.0, 2.0)
        r = torch.embedding_bag(x, torch.ones(2, 2, 2).long(), i)
        r = torch.multinomial(i, 1, out=x)
        r = torch.repeat_interleave(x)
        r = torch.quantile(i, x)
        r = torch.quantile(x, 2.0, dim=4)
        r = torch.nansum(x + 1j, (2,))
        r = torch.cosine_similarity(x, x, 1, -1.0)
        r = torch.linspace(x, x, -3)
        r = torch.logspace(1j, 0.5, -1)
        r = i.bool().mvlgamma_(-2)
        r = torch.std(x, correction=1j)
        r = torch.subtract(x, 3, -1), torch.rsub(x, 3, 2), x.sub_(-1, 2)
        r = x.subtract(2, x)
        r = torch.sub(x, x, alpha=True)
        r = torch.bilinear(i, x, x)
        r = torch.nn.functional.conv3d(v, v, stride=[0, -5])
        r = torch.nn.functional.conv1d(x[None], torch.ones(3, 2, 1, 2))
        r = torch.conv_tbc(x, x, x)
        r = torch.nn.functional.linear(i, torch.ones(4, 4), torch.ones(4))
        r = torch.nn.functional.soft_margin_loss(g, x.double())
        r = torch.nn.functional.multilabel_margin_loss(x.half()[0], i[0] * 7)
        r = torch.nn.functional.binary_cross_entropy_with_logits(x, x, pos_weight=torch.ones(2))
        r = torch.margin_ranking_loss(i[0, 0], i[0, 0], i[0, 0], 1, 0), torch.margin_ranking_loss(g, x, x)
        r = torch.triplet_margin_loss(x, x, x, 0.0)
        r = torch.autograd.grad(v * g[0], g, v[None], is_grads_batched=True)
        r = torch.autograd.grad(v * g[0], g, torch.ones(2, 2), is_grads_batched=True)
        r = x.random_(0, 1.5)
        r = torch.argmin(x, keepdim=1)
    """,
    "what PyTorch looks at first": """
        x, y, o, og = torch.ones(3, 3), torch.ones(3, 3), torch.ones(3), torch.ones(3, requires_grad=True)
        r = torch.cross(x, y, out=o)
        r = torch.kron(x, y, out=og)
        r = torch.kron(x, y, out=torch.ones(2, 9).int())
        r = torch.ger(o, o, out=y)
        r = torch.ger(x, o, out=o)
        r = torch.alias_copy(x, out=o.int())
        r = torch.cholesky(og.expand(3, 3), out=x)
        r = torch.lu_solve(x, torch.float32, x)
        r = torch.repeat_interleave(o, 2, output_size=3)
        r = torch.repeat_interleave(x, 2, 1, output_size=3)
        r = torch.repeat_interleave(torch.tensor([1, 2, 3]), output_size=3)
        r = torch.poisson_nll_loss(x, y, True, False, 0.1, 7)
        r = torch.kl_div(x, y, 5)
        r = torch.cosine_embedding_loss(x, y, o, reduction=-1)
        r = torch.bilinear(x, y, x)
        r = torch.bilinear(x, x, torch.ones(2, 3, 3), torch.tensor(1.))
        r = torch.bmm(x, y, torch.float32)
        r = torch.bmm(x, y, out_dtype=torch.float32)
        r = x.is_contiguous(torch.preserve_format)
        r = x.narrow_copy(3, 0, 1)
        r = x.narrow_copy(0, 2, -2)
        r = torch.indices_copy(x)
        r = torch.indices_copy([x])
        r = torch.values_copy(x, out=og)
        r = torch.kthvalue(x.bool(), 0)
        r = torch.nn.functional.glu(x.int())
        r = torch.index_reduce(x.cfloat(), 3, torch.tensor([0]), x.cfloat(), "amax")
        r = torch.linalg.diagonal(x, dim1=2**70)
        r = torch.linalg.vander(o, N=2**70)
        r = torch.logspace(2**70, x, steps=0)
        r = torch.hann_window(-1, dtype=torch.complex64, device="nowhere")
        r = x.new_ones((3, -1), device="nowhere")
        r = torch.nn.functional.smooth_l1_loss(x, y, beta=float("nan"))
        r = torch.nn.functional.binary_cross_entropy_with_logits(x.long(), y)
        r = torch.nn.functional.multi_margin_loss(x, torch.tensor([0, 1, 2]), margin="a")
    """,
    "memory that factories cannot give": """
        x, y, o = torch.ones(3, 3), torch.ones(3, 3), torch.ones(3)
        r = torch.zeros(2, layout=torch.sparse_coo, pin_memory=True)
        r = torch.full((2,), 1, layout=torch.sparse_coo, pin_memory=True)
        r = torch.ones(2, layout=torch.sparse_coo, pin_memory=True)
        r = torch.empty(2, layout=torch.sparse_coo, pin_memory=True)
        r = torch.randn(2, layout=torch.sparse_coo, pin_memory=True)
        r = torch.randn(2, layout=torch.sparse_coo)
        r = torch.rand(2, layout=torch.sparse_coo)
        r = torch.randint(2, (2,), layout=torch.sparse_coo)
        r = torch.randperm(2, layout=torch.sparse_coo)
        r = torch.arange(2, layout=torch.sparse_coo)
        r = torch.eye(2, layout=torch.sparse_coo)
        r = torch.linspace(0, 1, 2, layout=torch.sparse_coo)
        r = torch.hann_window(2, layout=torch.sparse_coo)
        r = torch.hann_window(2, layout=torch.sparse_coo, pin_memory=True)
        r = torch.hann_window(2, dtype=torch.int64, layout=torch.sparse_coo)
        r = torch.fft.fftfreq(2, layout=torch.sparse_coo)
        r = torch.tril_indices(2, 2, layout=torch.sparse_coo)
        r = torch.tril_indices(2, -2, layout=torch.sparse_coo)
        r = torch.rand_like(x, layout=torch.sparse_coo)
        r = x.new_zeros(2, layout=torch.sparse_coo, pin_memory=True)
        r = x.new_full((2,), 2, layout=torch.sparse_coo, pin_memory=True)
        r = x.new_full((2,), 2, layout=torch.sparse_coo)
        r = torch.normal(0., 1., (2,), layout=torch.sparse_coo)
        r = torch.zeros(2, device='meta', pin_memory=True)
        r = torch.rand(2, device='meta', pin_memory=True)
        r = torch.zeros_like(x, device='meta', pin_memory=True)
        r = x.new_zeros(2, device='meta', pin_memory=True)
        r = torch.tensor([1], device='meta', pin_memory=True)
        r = torch.fft.ifft2(x, out=o)
        r = torch.fft.ifft2(x.cfloat(), out=o)
    """,
    "products of batches expand their input first": """
        x, y, o, z = torch.ones(3, 3), torch.ones(3, 3), torch.ones(3), torch.tensor(1.); b = torch.ones(2,3,3)
        r = torch.addbmm(b, b.unsqueeze(0), b.unsqueeze(0))
        r = torch.addbmm(x, b.unsqueeze(0), b.unsqueeze(0))
        r = torch.addbmm(x, b, torch.ones(1,3,4))
        r = torch.baddbmm(b, b.unsqueeze(0), b.unsqueeze(0))
        r = torch.baddbmm(b, x, b)
        r = torch.baddbmm(b.unsqueeze(0), x, b)
    """,
    "what is passed by name, and to whom the write belongs": """
        x, y, o, z, i = torch.ones(3, 3), torch.ones(3, 3), torch.ones(3), torch.tensor(1.), torch.tensor([0,1]); \
        b = torch.ones(2,3,3); xg, og = torch.ones(3,3,requires_grad=True), torch.ones(3,requires_grad=True)
        r = o.index_put([i,i], x, True)
        r = o.index_put([i,i], x.bool(), True)
        r = torch.index_put_(x, [i,i,i], z)
        r = torch.index_put(x, [None, x.bool()], z)
        r = torch.index_put(x, [x.bool(), None], z)
        r = torch.index_put(x, [None, None], z)
        r = torch.index_put_(z, [i,i], z)
        r = torch.index_put_(x, i, z)
        r = torch.index_put_(x, x.bool(), z)
        r = torch.dropout_(xg, 2.5, True)
        r = torch.alpha_dropout_(xg, -1.5, True)
        r = torch.feature_alpha_dropout_(xg, 1.5, True)
        r = torch.feature_dropout_(og, 1.5, True)
        r = torch.feature_dropout_(og, .5, True)
        r = x.eq_(1j)
        r = x.ne_(x.cfloat())
        r = torch.eq(x.cfloat(), True, out=x)
        r = torch.eq(x.cfloat(), x.cfloat(), out=x)
        r = x.copy_(other=z)
        r = x.swapaxes_(axis0=0, axis1=1)
        r = x.resize_as_(the_template=o)
        r = torch.resize_as_(x, other=o)
        r = x.reshape(shape=3)
        r = x.reshape(shape=9)
        r = x.view(size=9)
        r = x.permute(dims=2)
        r = x.permute(0, x=x)
        r = x.permute(torch.ones(2))
        r = x.permute(i)
        r = torch.broadcast_to(o, size=3)
        r = torch.broadcast_to(o, 3)
        r = o.broadcast_to(size=3)
        r = x.expand(size=3)
        r = o.expand(size=3)
        r = x.new_zeros(size=3)
        r = torch.as_strided_(x, 3, 1)
        r = torch.cumprod(x, True, out=x)
        r = torch.cumsum(x, True)
    """,
    "shapes before dtypes in linear algebra, and numbers among tensors": """
        x, y, o, z, i = torch.ones(3, 3), torch.ones(3, 3), torch.ones(3), torch.tensor(1.), torch.tensor([0,1]); \
        b = torch.ones(2,3,3); c = torch.ones(1,2,4,4); \
        xg, og = torch.ones(3,3,requires_grad=True), torch.ones(3,requires_grad=True); F = torch.nn.functional
        r = torch.cholesky_solve(x.long(), y.int())
        r = torch.cholesky_solve(x, y.double())
        r = torch.cholesky_solve(o, o)
        r = torch.cholesky_solve(o.long(), o.long())
        r = torch.cholesky_solve(x, o)
        r = torch.cholesky_solve(x, torch.ones(2,3))
        r = torch.cholesky_solve(x, torch.ones(2,2))
        r = torch.cholesky_solve(x.long(), torch.ones(2,2).long())
        r = torch.linalg.eigvals(og, out=o)
        r = torch.linalg.eigvals(xg, out=x)
        r = torch.linalg.eigvals(xg.detach(), out=xg)
        r = torch.linalg.eigvals(torch.ones(3,2), out=xg)
        r = torch.linalg.svdvals(og, out=o)
        r = torch.linalg.svdvals(x, driver='gels', out=o.long())
        r = torch.linalg.eigvalsh(xg, 'X', out=o)
        r = torch.linalg.eigvalsh(x, 'X', out=og)
        r = torch.linalg.eig(o.long())
        r = torch.linalg.eig(torch.ones(2,3).long())
        r = torch.linalg.tensorinv(o)
        r = torch.linalg.tensorinv(z)
        r = torch.linalg.tensorinv(o.int())
        r = torch.linalg.pinv(o, atol=1, out=o)
        r = torch.linalg.pinv(torch.ones(2,3), hermitian=True)
        r = torch.linalg.pinv(torch.ones(2,3), rcond=1, hermitian=True)
        r = torch.linalg.vander(o.half())
        r = torch.linalg.vander(z.half())
        r = torch.matrix_power(xg, 3, out=x)
        r = torch.matrix_power(xg, 2, out=x)
        r = x.long().ldexp_(x)
        r = x.bool().ldexp_(x.bool())
        r = torch.unique_consecutive(o, return_inverse=0)
        r = o.unique_consecutive(return_counts=None)
        r = o.unique_consecutive(dim=1.)
        r = torch.median(x, -1, None)
        r = torch.median(x, -1, 1)
        r = torch.lerp(x, end=x, weight=torch.tensor(2))
        r = torch.lerp(x, x, torch.tensor(2.).double())
        r = x.lerp_(x, torch.tensor(2))
        r = o.lerp_(x, torch.tensor(2))
        r = torch.tensor_split(x, x.bool())
        r = torch.tensor_split(x, x)
        r = z.slice_scatter(z, -1)
        r = torch.slice_copy(z, 0, end=2)
        r = F.softplus(o.bool(), out=o.double())
        r = F.softplus(o, out=o.double())
        r = torch.rms_norm(o, (0, 1))
        r = torch.rms_norm(z, (3,))
        r = torch.logcumsumexp(o, 7, out=o.double())
        r = torch.logcumsumexp(o.long(), 7, out=o.bool())
        r = torch.embedding_renorm_(o, o, 1., 2.)
        r = torch.meshgrid([o.int(), o], indexing='other')
    """,
    "windows, bins and kernels that do not fit": """
        x, y, o, z, i = torch.ones(3, 3), torch.ones(3, 3), torch.ones(3), torch.tensor(1.), torch.tensor([0,1]); \
        b = torch.ones(2,3,3); c = torch.ones(1,2,4,4); \
        xg, og = torch.ones(3,3,requires_grad=True), torch.ones(3,requires_grad=True); F = torch.nn.functional
        r = F.max_unpool2d(x, x.long(), [2,0])
        r = F.max_unpool2d(x, i, 2)
        r = F.max_unpool2d(x, x.long(), 2, padding=(1,1,1))
        r = F.max_unpool2d(b, b.long(), 2, padding=[1])
        r = F.max_unpool2d(b, b.long(), [2,2,2])
        r = F.max_unpool2d(b, b.long(), [2])
        r = F.max_unpool3d(b, b.long(), [2])
        r = F.max_unpool3d(x, x.long(), [4,2], 1, (-1,-1,1))
        r = F.max_unpool3d(x, x.long(), 3, (1,0), [0])
        r = F.max_unpool3d(x, x.long(), 1, 2, 1)
        r = F.max_unpool3d(x, x.long(), [1], (0,-2,1), (0,2,1))
        r = F.max_unpool3d(b, b.long(), 1, 2, 1)
        r = F.max_unpool3d(c, c, 1, 2, 1)
        r = F.max_unpool3d(b, b, 1, 2, 1)
        r = F.max_unpool1d(o, o.long(), 2)
        r = F.max_unpool2d(b, b.long()*0, 2, 2, 0, [8,8])
        r = torch.histogramdd(x.byte(), [x.byte()], weight=x.byte())
        r = torch.histogramdd(x.bfloat16(), -1, [0.5,1.], x.bfloat16())
        r = torch.histogramdd(x, 2, [0.,1.])
        r = torch.histogramdd(x, 2, [0.,1.,0.,1.,0.,1.])
        r = torch.histogramdd(x, 2, [0.,1.,0.,1.,0.,1.], x[0])
        r = torch.histogramdd(x, 2, [0.,1.,0.,1.,0.,1.], o, True)
        r = torch.histogramdd(x, 3, weight=o.cfloat())
        r = torch.histogramdd(x, 3, weight=x.cfloat())
        r = torch.histogramdd(x, [o, o])
        r = torch.histogramdd(x, [o, o, o.double()])
        r = torch.histogramdd(x, [o, o, x])
        r = torch.histogramdd(x, (o, torch.ones(0), o))
        r = torch.histogram(x, o.double())
        r = torch.histogram(x, x)
        r = torch.histogram(x.long(), o, weight=o.cfloat())
        r = torch.histogram(x.short(), o.long())
        r = torch.histogram(x.long(), o.long())
        r = torch.histogram(x, 3, range=[0.])
        r = torch.histogram(x, 3, weight=o)
        r = torch.histogram(x, 3, weight=x.double())
        r = F.conv2d(x, x, o, padding='x')
        r = F.conv2d(x, x, o, padding='same')
        r = F.conv2d(x, x, o, 2, padding='same')
        r = F.conv2d(b, b, o, 2, padding='same')
        r = F.conv2d(c, c, o, 2, padding='same', groups=-1)
        r = F.conv2d(x, x, o.double())
        r = F.conv2d(x, x.double(), o.long())
        r = F.conv2d(c, c.double(), o.long())
        r = F.conv2d(c, c, o.long())
        r = F.conv2d(x, x, o.double(), stride=(1,1,1))
        r = F.conv3d(x, x, o, padding='x', groups=7)
        r = torch.conv1d(o, c, c.long(), groups=-2)
    """,
    "samples in inference mode, and results of underived operators in views": """
        x = torch.ones(3, 3).bfloat16().reshape(3,3); xg = torch.ones(3,3).bfloat16().requires_grad_(); \
        y=torch.ones(3,3).double().to(torch.float32).reshape(3,3); v = torch.ones(9).reshape(3,3); \
        w=torch.ones(9).reshape(3,3)
        r = torch.heaviside(xg, xg, out=x)
        r = torch.t_copy(xg.float(), out=v)
        r = torch.t_copy(xg.float(), out=v[:2])
        r = torch.heaviside(xg.float(), y, out=w)
        r = torch.inference_mode()(lambda: torch.detach_copy(xg))()
        r = torch.inference_mode()(lambda: torch.randint_like(y, 3))()
        r = torch.inference_mode()(lambda: torch.rand_like(y))()
        r = torch.inference_mode()(lambda: torch.rand(2))()
    """,
    "what a deprecated function warns of, and slices of memory": """
        x, o, z = torch.ones(3, 3), torch.ones(3), torch.tensor(1.)
        r = torch.triangular_solve(x, z)
        r = torch.triangular_solve(o, x)
        r = x.triangular_solve(x, transpose="a")
        r = torch.frobenius_norm(x, [o], False)
        r = torch.frobenius_norm(x, 0)
        r = torch.frobenius_norm(x, [0, 1], True)
        r = torch.linalg.tensorsolve(torch.ones(2, 2, 3), torch.ones(2, 2, 3))
        r = torch.linalg.tensorsolve(torch.eye(4).reshape(2, 2, 4), torch.ones(2, 2))
        r = x[1:].slice_inverse(x, 0, 1)
        r = x[1:].slice_inverse(x, 0, 2, step=0)
        r = x.slice_inverse(x[1:2])
        r = x.slice_inverse(o[1:], -5)
        r = torch.ones(2).slice_inverse(x)
    """,
    "checks in PyTorch's order": """
        x, i, w = torch.ones(2, 3), torch.zeros(2, 3).long(), torch.ones(2, 3, requires_grad=True)
        r = torch.meshgrid([1])
        r = torch.meshgrid([torch.tensor([1, 2]), torch.ones(1, 2).long()], indexing="xy")
        r = x.scatter(0, torch.zeros(2, 3), 5, reduce="other")
        r = x.scatter_(-5, i, x, reduce="mean")
        r = w.scatter_(0, i, x, reduce="add")
        r = x.scatter(0, i, x + 1, reduce="add")
        r = torch.ones(3, 3).addr_(torch.ones(1, 3), torch.ones(3))
        r = torch.ones(3).addr_(torch.ones(3), torch.ones(3))
        r = x.select_scatter(torch.ones(2, 2), 0, 0)
        r = torch.nonzero_static(torch.ones(2), size=2, out=torch.ones(2, requires_grad=True))
        r = torch.unbind_copy(torch.ones(2, requires_grad=True), out=[torch.ones(1)])
        r = torch.max_pool1d_with_indices(torch.ones(1, 1, 3), (1, 2))
        r = torch.ones(2).int().add_(torch.ones(2).int(), alpha=True)
        r = torch.rsub(torch.ones(2), 0.5, alpha=True)
        r = torch.cholesky(torch.eye(2), out=torch.eye(2))
        r = torch.func.vmap(lambda x: x, "a", "a")(x)
        r = torch.autograd.grad({"a": torch.ones(1)}, torch.ones(1))
    """,
    "losses with options that do not fit": """
        F, x, y, n = torch.nn.functional, torch.ones(3, 2, requires_grad=True), torch.zeros(3, 2), torch.zeros(3).long()
        r = F.cross_entropy(x, n, label_smoothing=-2.0)
        r = F.cross_entropy(x, y, label_smoothing=-2.0)
        r = F.cross_entropy(x, n, label_smoothing=2.0)
        r = F.cross_entropy(x, y, label_smoothing=2.0)
        r = F.cross_entropy(torch.ones(3), torch.zeros(3).long(), label_smoothing=2.0)
        r = F.cross_entropy(torch.tensor(1.), torch.tensor(0), label_smoothing=2.0)
        r = F.cross_entropy(x, y, label_smoothing=2.0, weight=torch.ones(3))
        r = F.nll_loss(torch.ones(2, 3).long(), torch.tensor([0, 1]), weight=torch.ones(3))
        r = F.smooth_l1_loss(x, y, beta=None)
        r = F.smooth_l1_loss(x, y, beta=float("nan"), reduction="x")
        r = F.smooth_l1_loss(x, y, beta=-1.)
        r = F.poisson_nll_loss(torch.ones(2).half(), torch.tensor([0, 2]), True, True)
        r = F.poisson_nll_loss(x, y, False, True)
        l = F.multilabel_margin_loss(x, y.long()); r, = torch.autograd.grad(l, x, None, None, True); r.sum().backward()
        r = F.multilabel_margin_loss(x, torch.tensor([[0, -1], [1, 0], [1, -1]])); r.backward(); note(x.grad)
    """,
    "layers of other dtypes and sizes": """
        F = torch.nn.functional; x, w, d = torch.ones(2, 1, 3, 3), torch.ones(1, 1, 2, 2), torch.ones(1).double()
        r = F.conv2d(x, w.double())
        r = F.conv2d(x, w.bool())
        r = F.conv2d(x[:1], w.double())
        r = F.conv2d(torch.ones(1, 2, 9, 9), torch.ones(2, 1, 2, 2).double(), groups=2)
        r = F.conv_transpose2d(x, w.double())
        r = F.conv_transpose2d(x, w, d)
        r = F.conv_transpose2d(x[:1], w, d)
        r = F.conv_transpose2d(x, w.double(), d)
        r = F.conv2d(torch.ones(2, 2, 6), w, stride=0)
        r = F.conv2d(torch.ones(2, 6), w, padding=-1)
        r = F.batch_norm(torch.ones(2, 3).int(), torch.ones(3), torch.ones(3))
        r = F.instance_norm(torch.ones(2, 3, 2, 2).int(), torch.ones(3), torch.ones(3))
        r = F.avg_pool3d(torch.ones(2, 6, 5, 4), 7)
        r = F.avg_pool3d(torch.ones(2, 6, 5, 4), (2, 2, 6), padding=(0, 0, 1))
        r = torch.nn.LSTM(3, 2, proj_size=1)(torch.zeros(4, 2, 3))[0] * 0
        r = torch.nn.LSTM(3, 2, proj_size=1).double()(torch.zeros(4, 2, 3).double())[0] * 0
        m = torch.nn.ConvTranspose1d(2, 4, 2, padding="same", bias=False); note(repr(m))
    """,
    "optimizers whose state is taken away, or not made": """
        p, q = (torch.nn.Parameter(torch.ones(2)) for _ in range(2)); p.grad = q.grad = torch.ones(2)
        o = torch.optim.Adagrad([p]); o.state.clear(); o.step(); r = p * 1
        o = torch.optim.SGD([p], lr=0.1, differentiable=True); o.step()
        o = torch.optim.LBFGS([p]); o.add_param_group({"params": [q]}); o.step(lambda: (p * p).sum())
        r = torch._sample_dirichlet(torch.tensor(2.5))
    """,
    "tensors that become meta tensors": """
        x = torch.ones(2, requires_grad=True)
        y = x.to("meta"); r = y * 2
        y = x.to("meta"); y.sum().backward()
        y = x.double().to("meta", torch.float32); y.sum().backward()
        r = x.to(torch.device("meta"), torch.int64)
        r = x.detach().to("meta")
    """,
    "strides of results and views of conjugates": """
        i, c = torch.zeros(3, 2).long().t(), torch.eye(4, dtype=torch.complex64) * torch.arange(1., 5)
        r = torch.take(torch.ones(2, 3), i)
        r = torch.ones(2, 3).bool().take(i)
        r = c.svd().V[:0]
        r = torch.svd(c, compute_uv=False).V
        r = torch.svd(torch.eye(3), compute_uv=False).V
    """,
    "a bool of NumPy is a float where a number is taken": """
        import numpy as np; t, i, b, x = np.bool_(True), torch.ones(2).int(), torch.tensor([True, False]), torch.ones(2)
        r = i + t, i * t, i // t, i % t, i ** t, torch.pow(t, i), t + i, t - i, b + t, b * t, x.sub(t, alpha=2)
        r = i.clamp(max=t), torch.where(b, i, t), torch.rsub(x, t), i.sub(t, alpha=2), x.clone().sub_(t, alpha=2)
        r = i == t, i > t, b == t, torch.full((2,), t), i.masked_fill(b, t), i.clone().fill_(t), torch.tensor(t)
        r = b & t
        r = i.clone().add_(t)
        r = b - t
        note(str(torch.result_type(i, t))[-7:])
    """,
    "numbers that are assigned": """
        import numpy as np; x, i, b = torch.ones(2, 3), torch.ones(2, 3).int(), torch.ones(2, 3).bool()
        x[0] = np.float32(2)
        x[0] = np.float16(2)
        x[0] = np.float64(2); x[1] = np.int64(3); x[:, 1] = np.uint8(4); r = x
        x[0] = np.bool_(True)
        x[0] = np.complex64(2)
        i[0] = np.float32(2)
        b[0] = np.bool_(True)
        b[0] = np.int32(0); r = b
        x[torch.tensor([0])] = np.float32(2)
        x[x > 0] = np.float32(3)
        r = x.new_tensor(torch.tensor(True))
        r = torch.where(b, x, 0, out=x)
        r = torch.where(b, 2, x, out=x)
        r = torch.addcmul(x, x, x, value=1j)
        r = x.addcdiv_(x, x, value=1j)
        r = torch.addcmul(x.double(), x, x, value=torch.tensor(1j))
    """,
    "reductions in a narrower dtype, and what is recorded": """
        x = torch.tensor([[0.5, -1.25, 2.], [1., 3., 0.25]]); h = x.bfloat16(); x.requires_grad_(); h.requires_grad_()
        r = x.sum(dtype=torch.float16); r.backward()
        r = x.sum(0, dtype=torch.float16); r.sum().backward()
        r = x.mean(0, True, dtype=torch.bfloat16); r.sum().backward()
        r = x.prod(0, dtype=torch.float16); r.sum().backward()
        r = (x * 1).cumsum(0, dtype=torch.float16); r.sum().backward()
        r = x.cumprod(1, dtype=torch.float16); r.sum().backward()
        r = x.nansum(0, dtype=torch.float16); r.sum().backward()
        r = h.sum(dtype=torch.float32); r.backward()
        r = h.mean(0, dtype=torch.float64); r.sum().backward()
        r = x.unbind(0)[1].sum(dtype=torch.float16); r.backward()
        r, = torch.autograd.grad((x.sum(0, dtype=torch.float16) ** 2).sum(), x, create_graph=True); r.sum().backward()
        r = x.softmax(0, dtype=torch.float16); r.sum().backward()
        r = x.cumsum(0, dtype=torch.int64)
        r = x.cumprod(0, dtype=torch.uint8)
        r = torch.where(x > 0, x, 1j); r.abs().sum().backward()
    """,
    "transforms in inference mode of what requires grad": """
        x = torch.ones(2, requires_grad=True); enter(torch.inference_mode())
        r = torch.func.grad(lambda y: (y * y).sum())(x)
        r = torch.func.jacrev(lambda y: y * y)(x)
        r = torch.func.grad(lambda y: torch.func.vmap(lambda z: z.sin())(y).sum())(x)
        r = torch.func.vjp(lambda y: y * y, x)[1](x)[0]
    """,
}


#: what `look()` sees of a tuple
_NAMED = "globals().update({f'r{i}': v for i, v in enumerate(r)} if isinstance(r, tuple) else {})"


def _check(topic: str) -> None:
    first, *statements = (line.strip() for line in FOUND[topic].strip().split("\n"))
    first = " ".join(first.split())  # which may go on in the next line
    for statement in statements:
        program = [first, statement, _NAMED, "look()"]
        found = disagreement([text.replace("; ", "\n") for text in program], *libraries())
        assert found is None, f"\n{found}"


@pytest.mark.parametrize("topic", FOUND)
def test_statements_do_what_they_do_under_pytorch(topic):
    _check(topic)


#: topics whose statements take functions' general paths, which are taken under hooks, profiles and other modes
_IN_MODES = ("strides in dimensions of size 1", "results in `out=`", "rarer functions", "the loss of two dtypes",
             "strides of copies with a part replaced, and of results", "indices and masks")


@pytest.mark.parametrize("topic", _IN_MODES)
def test_general_paths_do_the_same(topic):
    special[0] += 1
    try:
        _check(topic)
    finally:
        special[0] -= 1


def test_a_living_fake_tensor_changes_nothing():
    from flambeau._subclasses.fake_tensor import FakeTensorMode

    with FakeTensorMode():
        keep = flambeau.ones(1)
    for topic in ("the loss of two dtypes", "indices and masks", "strides in dimensions of size 1"):
        _check(topic)
    assert keep.shape == (1,)


def test_a_living_meta_tensor_changes_nothing():
    keep = flambeau.empty(1, device="meta", requires_grad=True)
    for topic in ("strides in dimensions of size 1", "results in `out=`", "indices and masks"):
        _check(topic)
    assert keep.is_meta
