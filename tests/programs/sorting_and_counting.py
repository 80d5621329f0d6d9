"""topk, sort, unique, cumulative operations, histograms, searching."""
import torch

x = torch.tensor([3, 1, 2, 3, 0])
print(x.sort(), x.sort(descending=True), x.argsort(), x.topk(2), x.topk(2, largest=False), torch.sort(x, stable=True).indices)
values, indices = torch.tensor([[5., 1.], [2., 8.]]).sort(dim=0)
print(values, indices, torch.tensor([float("nan"), 1., -1.]).sort())
print(torch.unique(x), torch.unique(x, return_inverse=True), torch.unique(x, return_counts=True), x.unique_consecutive())
print(torch.unique(torch.tensor([[1, 2], [1, 2], [0, 1]]), dim=0, return_counts=True))
print(x.cumsum(0), x.cumprod(0), x.float().cummax(0), torch.cummin(x, 0), torch.logcumsumexp(torch.zeros(3), 0), torch.diff(x))
print(x.max(), x.min(), x.argmax(), x.argmin(), x.max(0), torch.aminmax(x), x.amax(), x.float().median(), x.mode(), x.kthvalue(2))
print(x.float().mean(), x.float().std(), x.float().var(0), x.sum(), x.prod(), x.float().norm(), torch.std_mean(x.float()), x.float().quantile(0.5))
print(torch.quantile(torch.arange(5.), torch.tensor([0.1, 0.9])), torch.nanmean(torch.tensor([1., float("nan")])), torch.nansum(torch.tensor([1., float("nan")])))
print(torch.bincount(x), torch.histc(torch.tensor([1., 2., 1.]), bins=4, min=0, max=3), torch.histogram(torch.tensor([1., 2., 1.]), 3))
print(torch.searchsorted(torch.tensor([1, 3, 5]), torch.tensor([0, 3, 9])), torch.bucketize(torch.tensor([2, 6]), torch.tensor([1, 3, 5]), right=True))
m = torch.arange(12.).reshape(3, 4)
print(m.sum(0), m.sum(1, keepdim=True), m.mean(dim=(0, 1)), m.max(1), m.max(dim=1).indices, m.argmax(), m.argmax(1), m.prod(1), m.any(), (m > 5).all(1))
print(m.std(0), m.var(1, unbiased=False), m.var(1, correction=0), m.norm(dim=1), m.logsumexp(1), m.count_nonzero(), (m > 3).sum(dim=1), m.median(1))
print(m.flip(0), m.flip([0, 1])[0], m.roll(1), m.roll((1, 1), (0, 1)), m.rot90(), m.fliplr()[0], m.repeat(1, 2).shape, m.tile(2).shape, m.repeat_interleave(2, 0).shape)
print(m.chunk(2, 1), m.split([1, 2])[1], m.unbind(1)[0], m.tensor_split(3, 1)[2], torch.hstack([m, m]).shape, torch.vstack([m, m]).shape, torch.dstack([m, m]).shape)
print(m.gather(1, torch.tensor([[0, 3], [1, 1], [2, 0]])), torch.take_along_dim(m, m.argmax(1, keepdim=True), 1))
print(torch.zeros(3, 5).scatter_(1, torch.tensor([[0], [4], [2]]), 1.0), torch.zeros(3).scatter_add_(0, torch.tensor([0, 0, 2]), torch.tensor([1., 2., 3.])))
print(torch.zeros(3).scatter_reduce(0, torch.tensor([0, 0, 2]), torch.tensor([1., 2., 3.]), reduce="amax"))
print(torch.isin(x, torch.tensor([0, 3])), torch.is_nonzero(torch.tensor(1)), torch.clamp(x, min=1, max=2), x.clip(max=2), torch.where(x > 1, x, -x), torch.lerp(torch.zeros(2), torch.ones(2), 0.3))
print(x.eq(3), x.ne(3), (x >= 2) & (x < 3), (x == 0) | (x == 1), torch.logical_not(x), torch.logical_xor(x > 1, x > 2), x.bool(), x.nonzero().squeeze(1))
print(torch.bitwise_and(x, 1), x << 1, x >> 1, x ^ 3, ~x, torch.gcd(x, torch.tensor(6)), torch.lcm(x, torch.tensor(2)), torch.floor_divide(x, 2), torch.remainder(x, 2), torch.sign(x - 1))
print(torch.round(torch.tensor([0.5, 1.5, -2.5])), torch.trunc(torch.tensor([-1.7])), torch.frac(torch.tensor([-1.25])), torch.ceil(torch.tensor(1.2)), torch.floor(torch.tensor(-1.2)), torch.round(torch.tensor(3.14159), decimals=2))
v, i = torch.tensor([[1., 3., 2.], [9., 7., 8.]]).topk(2, dim=1, sorted=True)
print(v, i, m.max(1).indices[0], m.sort(1)[0].shape)
t = torch.tensor([1., 3., 2.], requires_grad=True)
t.sort(descending=True)[0][:2].sum().backward()
print(t.grad, t.cumsum(0), t.topk(1), t.detach().unique())
for f in (lambda: x.sort(1), lambda: x.kthvalue(9), lambda: torch.bincount(torch.tensor([-1])), lambda: torch.bincount(torch.ones(2)), lambda: x.cumsum(2),
          lambda: m.gather(1, torch.tensor([0])), lambda: torch.tensor([]).argmax(), lambda: m.chunk(0), lambda: m.split(0), lambda: torch.quantile(m, 2.0), lambda: m.repeat(2), lambda: x.quantile(0.5),
          lambda: torch.clamp(x), lambda: torch.searchsorted(torch.tensor([1, 2]), torch.tensor([1.0])), lambda: m.flip(0, 0), lambda: m.roll((1, 1), 0)):
    try:
        print(f())
    except Exception as e:
        print(type(e).__name__, "|", e)
