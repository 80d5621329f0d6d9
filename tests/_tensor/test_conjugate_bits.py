"""Conjugate and negative bits: views, writes, gradients and readers of memory, beside PyTorch.

`PROGRAMS` are expressions that both libraries evaluate: `x` and `m` are complex, `y` is `x.conj()`, `c` is a constant.
"""

import copy
import io
import pickle
import re
import warnings
from multiprocessing.reduction import ForkingPickler
from pathlib import Path

import numpy as np
import pytest

import flambeau
import flambeau.multiprocessing  # registers how tensors are sent
from flambeau.backends.bit_views import BitView, bits_used, resolve, toggle
from tests.ops.spec import Make, load, public

torch = pytest.importorskip("torch")

PROGRAMS = re.split(r"\n(?! )", r'''
y.is_conj(), y.conj().is_conj(), y.imag.is_neg(), y.real.is_neg(), y.imag.is_conj()
y.mH.is_conj(), y.H, y.adjoint(), m.mH.is_conj(), m.mH @ m
y.resolve_conj().is_conj(), y.resolve_neg() is y, x.resolve_conj() is x
y.conj_physical(), y.conj_physical().is_conj()
y.clone().is_conj(), y.contiguous().is_conj(), y.detach().is_conj(), y.data.is_conj(), y.to(torch.complex128), y.t()
y[0], y[0].is_conj(), y[[0]].is_conj(), y[None].is_conj(), y[..., 1]
y.tolist(), y[0].item(), complex(y[0]), bool(y[0])
str(y), repr(y.imag), f'{y[0]}'
torch.stack([y, x]), torch.cat([y, y.conj()]), torch.stack([y.imag, y.real]), torch.hstack([y, y])
y + 1, y * y, y - x, y / x, y ** 2, -y, y == x, y.abs(), y.angle(), y.sum(), y.mean(), y.prod(), y.cumsum(0)
y.imag + 1, y.imag * y.imag, y.imag.sum(), y.imag.sort(), y.imag.max(), y.imag.exp(), y.imag @ y.imag, y.imag[0] * 2
y.imag > 0
torch.dot(y, x), torch.vdot(y, x), torch.outer(y, x), m.conj() @ x, torch.einsum('i,ij->j', y[:2], m.conj())
torch.linalg.norm(y), torch.mv(m.mH, y)
torch.tensor(y), torch.as_tensor(y).is_conj(), torch.zeros_like(y), torch.empty_like(y).is_conj(), torch.ones_like(y)
y.new_zeros(2)
(z := torch.zeros(2, dtype=torch.complex64)).copy_(y), z
(z := x.clone()).conj().mul_(2), z
(z := x.clone()).conj().add_(1j), z
(z := x.clone()).conj().fill_(1j), z
(z := x.clone()).conj().zero_(), z
(z := x.clone()).conj().__setitem__(0, 5j), z
(z := x.clone()).conj().__setitem__(slice(None), y), z
(z := x.clone()).conj().copy_(x), z
(z := x.clone()).imag.mul_(2), z
(z := x.clone()).conj().imag.mul_(3), z
(z := x.clone()).conj().imag.fill_(3), z
(z := x.clone()).conj().imag.__setitem__(0, 7.), z
(z := x.clone()).conj().index_put_((torch.tensor([0]),), torch.tensor([1j])), z
(z := x.clone()).conj().index_add_(0, torch.tensor([0]), y[:1]), z
(z := x.clone()).conj().masked_fill_(torch.tensor([True, False]), 3j), z
(z := x.clone()).conj().scatter_(0, torch.tensor([0]), y[1:]), z
(z := x.clone()).conj().conj_physical_(), z
(z := x.clone()).conj().neg_(), z
(z := x.clone()).conj().pow_(2), z
(z := x.clone()).add_(y), z
(z := x.clone()).add_(z.conj()), z
(z := x.clone()).copy_(z.conj()), z
(z := x.clone()).mul_(y, ) , z
(z := x.clone()).__setitem__(0, y[1]), z
(z := x.clone()).__setitem__(slice(0, 2), y), z
(z := x.clone()).index_put_((torch.tensor([0]),), y[:1]), z
(z := x.clone()).fill_(y[0]), z
torch.add(x, 1, out=(z := x.clone().conj())), z, z.is_conj()
torch.mul(y, y, out=(z := x.clone().conj())), z
torch.add(x, y, out=(z := torch.empty(0, dtype=torch.complex64))), z
torch.add(x, y, out=(z := torch.zeros(3, dtype=torch.complex64).conj())), z, z.is_conj()
torch.mm(m.conj(), m, out=(z := torch.zeros(2, 2, dtype=torch.complex64).conj())), z
y.numpy()
y.imag.numpy()
y.numpy(force=True)
np.asarray(y)
torch.view_as_real(y)
torch.view_as_real(torch._neg_view(x)), torch.view_as_real(torch._neg_view(x)).is_neg()
y.view(torch.float32)
y.view(torch.complex64)
y.imag.view(torch.int32)
torch._neg_view(torch.ones(2)).view(torch.float32)
y.__dlpack__()
copy.deepcopy(y), copy.deepcopy(y).is_conj()
copy.copy(y).is_conj(), copy.copy(y)
pickle.loads(pickle.dumps(y)), pickle.loads(pickle.dumps(y)).is_conj(), pickle.loads(pickle.dumps(y.imag)).is_neg()
(b := io.BytesIO()), torch.save(y, b), b.seek(0), (q := torch.load(b)), q.is_conj(), q
(b := io.BytesIO()), torch.save([x, y, y.imag], b), b.seek(0), (q := torch.load(b)), q[1].is_conj(), q[0].mul_(2j), q
(z := torch.zeros(2, dtype=torch.complex64)).set_(y), z.is_conj()
(z := torch.zeros(2, dtype=torch.complex64)), setattr(z, "data", y), z, z.is_conj()
torch.equal(y, y.resolve_conj()), torch.allclose(y, y.clone()), torch.equal(y, x), torch.equal(y.imag, -x.imag)
y.resize_(1), y.is_conj()
y.untyped_storage().tolist() == x.untyped_storage().tolist(), y.storage().tolist()
y.data_ptr() == x.data_ptr(), y.stride(), y.storage_offset(), y.is_contiguous(), y._is_view(), y._base is x
y.imag.data_ptr() - x.data_ptr(), y.imag.stride()
y.share_memory_().is_conj(), y
setattr(y, "real", 9), y, x
setattr(y, "imag", 9), y, x
y.reshape(2, 1).is_conj(), m.conj().T.reshape(-1).is_conj(), m.conj().T.reshape(-1), y.flatten().is_conj()
y.ravel().is_conj(), y.view(1, 2).is_conj()
y.expand(2, 2), y.unsqueeze(0).is_conj(), y.flip(0).is_conj(), m.conj().diagonal().is_conj()
m.conj().permute(1, 0).is_conj(), [t.is_conj() for t in m.conj().unbind()], [t.is_conj() for t in y.split(1)]
[t.is_conj() for t in y], y.squeeze().is_conj(), y.narrow(0, 0, 1).is_conj(), y.select(0, 0).is_conj()
m.conj().swapaxes(0, 1).is_conj(), y.chunk(2)[0].is_conj(), y.as_strided((2,), (1,)).is_conj()
y.unfold(0, 1, 1).is_conj(), m.conj().movedim(0, 1).is_conj(), y.view_as(x).is_conj(), m.conj().triu().is_conj()
torch.fft.fft(y), torch.fft.ihfft(y.imag), torch.fft.ifft(m.conj()), torch.fft.hfft(y), torch.fft.irfft(y)
torch.linalg.svdvals(m.conj()), torch.linalg.inv(m.conj()), torch.linalg.solve(m.mH, y), torch.linalg.det(m.conj())
m.conj().trace(), torch.linalg.matrix_norm(m.mH), torch.linalg.eigvalsh(m @ m.mH)
torch.linalg.cholesky(m @ m.mH + 9 * torch.eye(2))
torch.where(torch.tensor([True, False]), y, x), torch.complex(y.real, y.imag), torch.polar(y.abs(), y.imag)
torch.sgn(y), y.isnan(), torch.nonzero(y), torch.count_nonzero(y), torch.isclose(y, x)
torch.take(y, torch.tensor([1])), y.gather(0, torch.tensor([1])), y.index_select(0, torch.tensor([1]))
y.masked_select(torch.tensor([True, False])), y.repeat(2), torch.roll(y, 1), torch.kron(y, x)
torch.tensordot(y, x, 1), torch.block_diag(y, x), torch.cartesian_prod(y, x), torch.meshgrid(y, x, indexing='ij')[0]
torch.conj(torch.ones(2)), torch.ones(2).conj().is_conj(), torch.is_conj(y), torch.is_neg(y.imag)
torch._conj(x).is_conj() if hasattr(torch, '_conj') else True
torch._neg_view(x), torch._neg_view(x).is_neg(), torch._neg_view(y), torch._neg_view(y).is_conj()
torch._neg_view(y).conj(), torch._neg_view(torch._neg_view(x)).is_neg(), torch._neg_view(y).resolve_conj().is_neg()
torch._neg_view(y).imag, torch._neg_view(y).real, torch._neg_view(y).resolve_neg().is_conj()
torch._neg_view(torch.tensor([1, 2])), torch._neg_view(torch.tensor([1, 2])) + 1
torch._neg_view(torch.tensor([1, 2])).tolist()
(z := x.clone()), torch._C._set_conj(z, True), z, torch._C._set_neg(z, True), z, torch._C._set_conj(z, False), z
torch.view_as_complex(torch._neg_view(torch.ones(2, 2)))
torch.view_as_complex(torch._neg_view(torch.ones(2, 2))).is_neg()
torch.nn.functional.linear(m.conj(), m), torch.bmm(m.conj()[None], m[None]), torch.addmm(m, m.conj(), m.mH)
torch.baddbmm(m[None], m.conj()[None], m[None]), torch.matmul(m.mH, m), torch.linalg.multi_dot([m.conj(), m, m.mH])
torch.matmul(m.conj()[None, None], m[None, None])
y.to_sparse().to_dense(), torch.std(y), torch.var(y), y.imag.var(), y.imag.topk(1), y.imag.argmax()
torch.softmax(y.imag, 0), torch.nn.functional.relu(y.imag), torch.clamp(y.imag, 0)
torch.nn.functional.mse_loss(y.imag, y.real), torch.histc(y.imag), torch.bucketize(y.imag, torch.tensor([0.0, 1.0]))
torch.searchsorted(torch.tensor([-5.0, 0.0]), y.imag), torch.cdist(y.imag[None], y.real[None])
torch.nn.functional.layer_norm(y.imag, (2,)), torch.logsumexp(y.imag, 0), torch.cumprod(y.imag, 0)
torch.nn.functional.conv1d(y.imag[None, None], torch.ones(1, 1, 1)), torch.nn.functional.pad(y.imag, (1, 1))
torch.nn.functional.pad(y, (1, 1))
torch.vmap(lambda a: a * 2)(y), torch.vmap(lambda a: a.conj() * 1j)(x), torch.vmap(lambda a: a.conj().imag)(y)
torch.vmap(lambda a: (a.conj() * y).sum())(m)
torch.func.grad(lambda a: (a.conj() * a).real.sum())(y)
torch.func.vjp(lambda a: a.conj(), x)[1](y)
torch.func.jacrev(lambda a: (a * a.conj()).real)(y), torch.func.jacfwd(lambda a: (a.conj() * 2).imag)(y)
torch.autograd.functional.jacobian(lambda a: a.conj() * a, y)
y.element_size(), y.numel(), y.dtype, y.imag.dtype, y.type(), y.requires_grad, y.is_complex()
y.imag.is_floating_point()
torch.result_type(y, 1), torch.promote_types(y.dtype, y.imag.dtype), y.imag.double(), y.imag.int(), y.imag.half()
y.imag.bfloat16(), y.to(torch.complex128).is_conj()
torch.complex(y.imag, y.imag).conj(), (y.imag + y.real).conj(), y.imag.conj().is_neg(), y.imag.real.is_neg()
torch.special.expit(y.imag), torch.sigmoid(y.imag), torch.tanh(y), torch.atan2(y.imag, y.real)
torch.hypot(y.imag, y.real), torch.lerp(x, y, 0.5), torch.addcmul(x, y, y), torch.addcdiv(x, y, y)
torch.fmod(y.imag, 2), torch.remainder(y.imag, 2), torch.maximum(y.imag, y.real), torch.logaddexp(y.imag, y.real)
torch.pow(2, y), torch.pow(y, y), torch.rsub(y, 1), torch.true_divide(y, 2), 2 ** y, 1 - y, 1 / y, y.reciprocal()
y.sqrt(), y.exp(), y.log(), y.sin()
torch.bernoulli(torch._neg_view(torch.tensor([-1.0, 0.0])))
torch.normal(torch._neg_view(torch.zeros(2)), torch.zeros(2))
torch.multinomial(torch._neg_view(torch.tensor([-1.0, 0.0])), 1)
[t for t in torch._foreach_add([y, x], 1)], torch._foreach_mul([y], [x]), torch._foreach_neg([y])
(z := x.clone()), (w := z.conj()), z.mul_(2j), w, w.imag, z
(z := m.clone()), (w := z.mH), w.t_(), w, w.is_conj(), z
(z := m.clone()), (w := z.conj()[0]), w.mul_(2), w.add_(1j), z
(z := x.clone()), (w := z.conj()), w.squeeze_(), w.unsqueeze_(0), w.is_conj(), w
torch.quantile(y.imag, 0.5), torch.median(y.imag), torch.unique(y.imag), torch.sort(y.imag), torch.diff(y)
torch.trapezoid(y), torch.gradient(y), torch.cov(m.conj()), torch.corrcoef(m.conj())
torch.cross(torch.ones(3) * y[0], torch.ones(3) * y[1], dim=0), torch.vander(y), torch.renorm(m.conj(), 2, 0, 1.0)
torch.cumulative_trapezoid(y), torch.logcumsumexp(y, 0), torch.dist(y, x), torch.linalg.vander(y)
torch.tril(m.conj()), torch.diag(y), torch.diag_embed(y), torch.rot90(m.conj()), torch.fliplr(m.conj())
torch.repeat_interleave(y, 2), torch.tile(y, (2,)), torch.nan_to_num(y.imag), torch.rad2deg(y.imag)
torch.heaviside(y.imag, y.real), torch.sum(y, 0), torch.linalg.vecdot(y, x), torch.linalg.matrix_power(m.conj(), 2)
torch.matrix_exp(m.conj()), torch.linalg.pinv(m.conj()), torch.chain_matmul(m.conj(), m), torch.inner(y, x)
torch.addr(m, y, x), torch.addmv(x, m.conj(), y), torch.linalg.lu_factor(m.conj()), torch.linalg.qr(m.conj())[1].abs()
torch.ger(y, x)
torch.testing.assert_close(y, x.conj().clone()), torch.testing.assert_close(y, x)
torch.isin(y.imag, y.imag), torch.scatter_reduce(y.imag, 0, torch.tensor([0, 1]), y.imag, 'sum')
torch.index_fill(y, 0, torch.tensor([0]), y[0]), torch.masked_fill(y, torch.tensor([True, False]), y[0])
torch.index_add(x, 0, torch.tensor([0]), y[:1]), torch.slice_scatter(x, y[:1], 0, 0, 1)
torch.select_scatter(x, y[0], 0, 0), torch.as_strided_scatter(x, y[:1], (1,), (1,)), torch.diagonal_scatter(m, y)
torch.index_copy(x, 0, torch.tensor([0]), y[:1]), torch.put(x, torch.tensor([0]), y[:1])
torch.masked_scatter(x, torch.tensor([True, True]), y), torch.scatter_add(x, 0, torch.tensor([0]), y)
torch.scatter(x, 0, torch.tensor([0]), y), torch.scatter(x, 0, torch.tensor([0]), y, reduce='add')
torch.index_reduce(y.imag, 0, torch.tensor([0]), y.imag[:1], 'mean')
(z := x.clone()).masked_scatter_(torch.tensor([True, True]), y), z.put_(torch.tensor([0]), y[1:]), z.index_copy_(0,
  torch.tensor([0]), y[:1]), z.scatter_add_(0, torch.tensor([0]), y), z.lerp_(y, 0.5), z.addcmul_(y, y), z.sub_(y),
  z.div_(y), z
(z := x.clone()), (w := z.conj()), w.masked_scatter_(torch.tensor([True, True]), y), w.put_(torch.tensor([0]), y[1:]),
  w.index_copy_(0, torch.tensor([0]), y[:1]), w.scatter_add_(0, torch.tensor([0]), y), w.lerp_(y, 0.5), w.addcmul_(y,
  y), w.sub_(y), w.div_(y), w.cumsum_(0), w.index_fill_(0, torch.tensor([1]), 2j), w.sqrt_(), w, z
(z := m.clone()), (w := z.conj()), w.addmm_(m, m), w.tril_(), w.fill_diagonal_(2), w.transpose_(0, 1), w.addr_(y, y),
  w, z
(z := x.clone()), (w := z.conj().imag), w.abs_(), w.clamp_(0, 1), w.relu_(), w.sigmoid_(), w.add_(w), w.copy_(x.real),
  w, z
(z := x.clone()), (w := z.conj().imag), torch.manual_seed(0), w.normal_(), w.uniform_(), w.bernoulli_(0.5),
  w.exponential_(), z
(z := x.clone()), (w := z.conj()), torch.manual_seed(0), w.normal_(), z
torch.nn.Parameter(y).is_conj(), torch.nn.Parameter(y).detach().is_conj()
'''.strip())

WITH_GRADIENTS = re.split(r"\n(?! )", r'''
y.grad_fn.name(), y.conj().grad_fn.name(), y.resolve_conj().grad_fn.name(), y.clone().grad_fn.name()
y.contiguous() is y, y.conj_physical().grad_fn.name()
y.imag.grad_fn.name(), y.imag.grad_fn.next_functions[0][0].name()
y.imag.grad_fn.next_functions[0][0].next_functions[0][0].name(), y.real.grad_fn.name()
y.real.grad_fn.next_functions[0][0].name()
chain(y * 2), chain(y.mH @ m), chain(m.mH @ m), chain(y.imag.exp()), chain((y + y).sum())
chain(y.reshape(1, 2)), chain(m.conj().T.reshape(-1)), chain(y[0]), chain(y[:1]), chain(y[[0]])
g((y * y).abs().sum()), g(y.imag.pow(2).sum()), g((y.real * y.imag).sum()), g((m.mH @ m).abs().sum())
g((y.conj() * y).real.sum())
g((y * c).imag.sum()), g((y ** 3).real.sum()), g(torch.linalg.inv(m.mH).abs().sum()), g(y.abs().prod())
g(torch._neg_view(y).imag.exp().sum())
g2(lambda x, m: (x.conj() * x * c).imag.pow(2).sum()), g2(lambda x, m: (m.mH @ m).abs().pow(3).sum())
g2(lambda x, m: x.conj().imag.pow(4).sum()), g2(lambda x, m: (x.conj() ** 3).real.sum())
(z := x.clone()), z.conj().mul_(2j), g((z * c).real.sum())
(z := x.clone()), z.conj().mul_(x), chain(z), g((z * z * c).imag.sum())
(z := x.clone()), (w := z.conj()), w.mul_(w.detach() + 1j), chain(w), g((w * z * c).imag.sum())
(z := x.clone()), (w := z.conj()), z.mul_(x), chain(w), g((w * w * c).imag.sum())
(z := x.clone()), (w := z.conj().imag), w.mul_(3), chain(w), chain(z), g((z * c).imag.pow(2).sum()), g(w.pow(2).sum())
(z := x.clone()), (w := z.conj()), w[0].mul_(3j), chain(w), g((w * c * z).real.sum())
(z := x.clone()), (w := z.conj()), w.copy_(x * x), chain(z), g((z * c).real.sum())
(z := x.clone()), (w := z.conj()), w.__setitem__(0, x[1]), chain(z), g((z * c).real.sum())
(z := x.clone()), (w := z.conj().imag), w.copy_(x.real), chain(z), g((z * c).real.sum())
(z := x.clone()), (w := z.conj()), w.exp_(), g((z * c).real.sum())
(z := x.clone()), (w := torch._neg_view(z)), w.exp_(), g((z * c).real.sum()), chain(w)
(z := x.clone()), (w := z.conj()), (q := w * w), w.add_(1), g(q.abs().sum())
(z := x.clone()), (w := z.conj()), (q := w * w), z.add_(1), g(q.abs().sum())
(z := m.clone()), (w := z.mH), w.mul_(2j), g((z @ m).abs().sum()), chain(w)
g2(lambda x, m: inpl(x.clone(), lambda z: z.conj().mul_(z.conj() * 1j), c))
g2(lambda x, m: inpl(x.clone(), lambda z: z.conj().exp_(), c))
g2(lambda x, m: inpl(x.clone(), lambda z: z.conj().imag.mul_(x.real), c))
y.backward(c), x.grad
y.backward(c.conj()), x.grad
torch.autograd.grad(y * y, x, c.conj())
torch.autograd.grad(y * y, x, c.conj(), create_graph=True)
(h := (x * 1)), h.register_hook(lambda g: g.conj()), (h * c).real.sum().backward(), x.grad
Fn.apply(x).backward(c), x.grad
Fn.apply(y).backward(c.conj()), x.grad
(q := x * 2), q.retain_grad(), q.conj().backward(c), q.grad, x.grad
(z := x.detach().conj().requires_grad_()), (z * z * c).real.sum().backward(), z.grad, z.is_leaf, z.is_conj()
setattr(x, "grad", c.conj()), (x * c).real.sum().backward(), x.grad
torch.utils.checkpoint.checkpoint(lambda a: (a.conj() * a).real.sum(), y, use_reentrant=False).backward(), x.grad
torch.autograd.gradcheck(lambda a: a.conj() * a, x.detach().to(torch.complex128).requires_grad_())
torch.autograd.gradcheck(lambda a: a.conj().imag ** 2, x.detach().to(torch.complex128).conj().requires_grad_())
torch.autograd.gradgradcheck(lambda a: a.conj() * a * a, x.detach().to(torch.complex128).requires_grad_())
torch.func.grad(lambda a: (a.conj() * y).imag.sum())(x)
'''.strip())


class Conjugating:
    """An autograd function whose forward and backward return views with the conjugate bit."""

    def __new__(cls, t):
        class Function(t.autograd.Function):
            @staticmethod
            def forward(ctx, a):
                ctx.save_for_backward(a)
                return a.conj() * 2

            @staticmethod
            def backward(ctx, g):
                return (g * 2).conj()

        return Function


def names(t, requires_grad):
    x = t.tensor([1 + 2j, 3 - 4j], requires_grad=requires_grad)
    m = t.tensor([[1 + 2j, 3 + 1j], [0.5 - 1j, 2j]], requires_grad=requires_grad)
    c = t.tensor([2 - 1j, 0.5 + 3j])

    def chain(v):
        found, node = [], v.grad_fn
        while node is not None:
            found.append(node.name())
            node = node.next_functions[0][0] if node.next_functions else None
        return found

    def g(v):
        first = t.autograd.grad(v, [x, m], allow_unused=True, retain_graph=True)
        again = t.autograd.grad(v, [x, m], allow_unused=True, retain_graph=True, create_graph=True)
        return first, [q is not None and q.detach() for q in again]

    def g2(f):
        first = t.autograd.grad(f(x, m), [x, m], create_graph=True, allow_unused=True)
        total = sum((q * c[0]).imag.pow(2).sum() for q in first if q is not None)
        return first, total.requires_grad and t.autograd.grad(total, [x, m], allow_unused=True)

    def inpl(z, write, c):
        write(z)
        return (z * c * z).imag.sum()

    return {"torch": t, "x": x, "m": m, "c": c, "y": x.conj(), "np": np, "copy": copy, "pickle": pickle, "io": io,
            "chain": chain, "g": g, "g2": g2, "inpl": inpl, "Fn": Conjugating(t)}


def plain(v, t):
    """A result as values that both libraries share."""
    if isinstance(v, t.Tensor):
        wide = v.detach().to(t.complex128 if v.is_complex() else t.float64)
        return str(v.dtype).rpartition(".")[2], v.requires_grad, np.array(wide.tolist())
    if isinstance(v, (list, tuple)):
        return [plain(q, t) for q in v]
    if isinstance(v, str):
        return v.replace("flambeau", "torch")
    return v if isinstance(v, (bool, int, float, complex, np.ndarray, np.dtype, type(None))) else type(v).__name__


def run(t, program, requires_grad):
    t.manual_seed(0)
    with warnings.catch_warnings(action="ignore"):
        try:
            return plain(eval(program, names(t, requires_grad)), t)
        except Exception as error:
            return type(error).__name__, str(error).replace("flambeau", "torch")


def same(a, b):
    if isinstance(a, (list, tuple)) and isinstance(b, (list, tuple)):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, (np.ndarray, float, complex)) and isinstance(b, (np.ndarray, float, complex)):
        return np.shape(a) == np.shape(b) and np.allclose(a, b, rtol=2e-4, atol=1e-5, equal_nan=True)
    return a == b


@pytest.mark.parametrize("program", PROGRAMS)
def test_as_in_pytorch(program):
    assert same(run(flambeau, program, False), run(torch, program, False)), (
        run(flambeau, program, False), run(torch, program, False))


@pytest.mark.parametrize("program", WITH_GRADIENTS)
def test_gradients_as_in_pytorch(program):
    assert same(run(flambeau, program, True), run(torch, program, True)), (
        run(flambeau, program, True), run(torch, program, True))


# ----- all operators -------------------------------------------------------------------------

RECORDS = load()


def with_bits(t):
    """The same elements with another memory: conjugated for complex numbers, negated for others."""
    if t.is_complex():
        return t.conj_physical().conj()
    return flambeau._neg_view(t.neg()) if t.is_floating_point() else t


def mapped(value, convert):
    if isinstance(value, flambeau.Tensor):
        return convert(value)
    if isinstance(value, (list, tuple)) and not hasattr(value, "_fields"):
        return type(value)(mapped(v, convert) for v in value)
    return {k: mapped(v, convert) for k, v in value.items()} if isinstance(value, dict) else value


def tensors_of(value):
    found = []
    mapped(list(value) if isinstance(value, tuple) else value, found.append)
    return found


def outcomes(name, sample, convert, requires_grad):
    """The elements of the results, the names of their nodes, and the gradients."""
    flambeau.manual_seed(0)
    leaves = [t for t in tensors_of([list(sample.args), sample.kwargs]) if t.requires_grad]
    outs = tensors_of(public(flambeau, name)(*mapped(sample.args, convert), **mapped(sample.kwargs, convert)))
    kept = [np.array(resolve(t._array)) for t in outs], [t.grad_fn and t.grad_fn.name() for t in outs]
    total = sum((t * (1 + 2j) if t.is_complex() else t).real.pow(2).sum() for t in outs if t.requires_grad)
    if not leaves or not isinstance(total, flambeau.Tensor):
        return kept, []
    return kept, [np.array(g._array) for g in flambeau.autograd.grad(total, leaves, allow_unused=True) if g is not None]


@pytest.mark.parametrize("name", [name for name, r in RECORDS.items() if (r.complex or r.floats) and name not in (
    "positive", "resolve_conj", "resolve_neg")])  # which return their argument
def test_operators_on_views_with_bits(name):
    record = RECORDS[name]
    dtype = flambeau.complex128 if record.complex else flambeau.float64
    samples = [list(record.samples(Make(flambeau, dtype, record.differentiable)))[:2] for _ in range(2)]
    for ordinary, other in zip(*samples, strict=True):
        (values, nodes), grads = outcomes(name, ordinary, lambda t: t, record.differentiable)
        (values_2, nodes_2), grads_2 = outcomes(name, other, with_bits, record.differentiable)
        assert nodes == nodes_2
        for a, b in zip([*values, *grads], [*values_2, *grads_2], strict=True):
            np.testing.assert_allclose(b.astype(a.dtype), a, rtol=1e-6, atol=1e-9)


# ----- arrays --------------------------------------------------------------------------------


def test_an_array_with_bits_computes_with_its_elements():
    a = np.array([[1 + 2j, 3j], [4.0, 5 - 1j]])
    v, expected = toggle(a, conjugate=True), a.conj()
    for method in ("sum", "copy", "tolist", "cumsum", "conj", "flatten", "nonzero", "prod", "mean", "trace", "tobytes"):
        np.testing.assert_equal(getattr(v, method)(), getattr(expected, method)())
    for function in (np.sort, np.exp, np.linalg.inv, np.fft.fft, np.concatenate, np.imag, np.angle, np.array_repr):
        np.testing.assert_equal(function(v), function(expected))
    for view in (v[0], v.T, v[..., None], v.reshape(4), v.swapaxes(0, 1), np.transpose(v), v.imag):
        assert np.may_share_memory(view, a)
        assert isinstance(view, BitView)
    assert np.may_share_memory(v.real, a)
    assert not isinstance(v.real, BitView)
    v[0] = 7j
    v += 1
    np.add(v, 1, out=v)
    np.copyto(v[1], [1j, 2j])
    assert a.tolist() == [[2 - 7j, 2 - 7j], [-1j, -2j]]
    assert v.dtype == a.dtype
    assert v.dtype is not a.dtype  # which fast paths test
    assert (v * 2).dtype is a.dtype
    assert pickle.loads(pickle.dumps(v)).__class__ is copy.deepcopy(v).__class__ is np.ndarray


def test_memory_is_not_read_by_functions_that_ignore_bits():
    """`np.asarray` and its like return the memory of an array: what reads a tensor with them resolves it first."""
    call = re.compile(r"np\.(asarray|array|ascontiguousarray|asfortranarray|frombuffer)\((\w+\.)*_array[,)]")
    package = Path(flambeau.__file__).parent
    assert not [(path.name, line) for path in package.rglob("*.py") for line in path.read_text().splitlines()
                if call.search(line)]


# ----- compiled functions and other readers ----------------------------------------------------


def _doubled_in_place(a):
    b = a.conj()
    b.mul_(2j)
    return a + 1


def _written_after(a):
    b = a.conj()
    a.mul_(2j)
    return b + 1, b.imag


@pytest.mark.parametrize("function", [
    lambda a: a * 2, lambda a: a + a.conj(), lambda a: a.conj().imag.exp(), lambda a: a.conj(), lambda a: a.mH @ a,
    lambda a: a.abs().sum().item() * a, _doubled_in_place, _written_after],
    ids=["mul", "conj", "imag", "view", "matrix", "item", "write", "write after"])
def test_compiled_functions(function):
    compiled = flambeau.compile(function)
    m = flambeau.tensor([[1 + 2j, 3 - 4j], [2.0, 1j]])
    for bits in (False, False, False, True, True, True, False, True):
        a, b = m.clone(), m.clone()
        found, expected = compiled(a.conj() if bits else a), function(b.conj() if bits else b)
        for have, want in zip(tensors_of([found, a]), tensors_of([expected, b]), strict=True):
            np.testing.assert_allclose(have.tolist(), want.tolist(), rtol=1e-6)


def test_compiled_functions_of_a_tensor_and_its_conjugate():
    compiled = flambeau.compile(lambda a, b: a * 2 + b)
    x = flambeau.tensor([1 + 2j])
    for _ in range(3):
        assert compiled(x, x.conj()).tolist() == [3 + 2j]
        assert compiled(x.conj(), x).tolist() == [3 - 2j]
        assert compiled(x, x).tolist() == [3 + 6j]


@pytest.mark.parametrize("optimizer", ["SGD", "Adam"])
def test_gradients_with_bits_in_optimizers(optimizer):
    def trained(convert):
        p = flambeau.nn.Parameter(flambeau.ones(3))
        update = getattr(flambeau.optim, optimizer)([p], lr=0.1)
        for _ in range(3):
            p.grad = convert(flambeau.tensor([1.0, -2.0, 3.0]))
            update.step()
        return p.tolist()

    np.testing.assert_allclose(trained(with_bits), trained(lambda t: t), rtol=1e-6)


def test_hooks_and_saved_tensors_with_bits():
    x, c = flambeau.tensor([1 + 2j, 3 - 4j], requires_grad=True), flambeau.tensor([2 - 1j, 0.5 + 3j])
    (x.conj() * x * c).abs().sum().backward()
    expected, x.grad = x.grad, None
    with flambeau.autograd.graph.saved_tensors_hooks(lambda t: t.conj(), lambda t: t.conj()), (
            flambeau.autograd.set_detect_anomaly(True)):
        (x.conj() * x * c).abs().sum().backward()
    flambeau.testing.assert_close(x.grad, expected)


def test_tangents_with_bits():
    x, t = flambeau.tensor([1 + 2j]), flambeau.tensor([3 - 1j])
    for convert in (lambda v: v, with_bits):
        out, tangent = flambeau.func.jvp(lambda a: a.conj().imag * a.real, (convert(x),), (with_bits(t),))
        assert (out.tolist(), tangent.tolist()) == ([-2.0], [-5.0])


def test_tensors_with_bits_are_sent_to_processes():
    x = flambeau.tensor([1 + 2j, 3j])
    y, z = x.conj(), x.conj().imag
    received = pickle.loads(ForkingPickler.dumps(y))
    received.mul_(2)
    assert received.is_conj()
    assert x.tolist() == [2 + 4j, 6j]
    assert z.tolist() == [-4, -6]


def test_running_averages_with_bits():
    x, mean, var = flambeau.tensor([[1.0, 2.0], [3.0, 5.0]]), flambeau.tensor([1.0, 2.0]), flambeau.tensor([2.0, 3.0])
    found = [flambeau.nn.functional.batch_norm(x, convert(mean), convert(var)) for convert in (lambda t: t, with_bits)]
    assert found[0].tolist() == found[1].tolist()


def test_bits_are_noticed():
    """Until the first view with a bit, operators look for none; fast paths never do."""
    flambeau.ones(1, dtype=flambeau.complex64).conj()
    assert bits_used[0]
