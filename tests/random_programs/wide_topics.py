"""Topics of `objects` that cut across the library: overlapping memory, autocast, transforms in transforms,
distributions, loaders, sparse and nested tensors, closures and hooks of optimizers, complex and 16-bit numbers.
"""

from __future__ import annotations

import random

from .topics import BOOL, Lines, call_of, given_of, options_of, topic

_VIEWS = ("x.expand(3, 4)", "torch.as_strided(y, (3, 2), (1, 1))", "y.unfold(0, 3, 1)",
    "torch.as_strided(y, (2, 3), (2, 1), 1)", "x.expand(3, 4).t()", "y.unfold(0, 2, 1).t()")
_OF_VIEWS = ("v.add_(1)", "v.mul_(v)", "v[0] = 3", "v.copy_(v.clone())", "v.zero_()", "v.fill_(2)",
    "v.index_fill_(0, torch.tensor([0]), 1)", "v.t_()", "torch.add(v, 1, out=v)", "v[0, 0] += 1", "v.sort()",
    "v.cumsum_(0)", "v.masked_fill_(v != 0, 1)", "v.sub_(v[0])", "torch.cat([v, v]).sum()", "v.clone().stride()",
    "(v + 1).stride()", "v.contiguous().stride()", "v.reshape(-1).stride()", "v.sum(0)", "v.flatten().is_contiguous()",
    "torch.empty_like(v).stride()", "v.to(torch.float64).stride()", "y[1:].copy_(y[:-1])", "y[:-1].add_(y[1:])",
    "y.view(2, 3).t().copy_(y.view(3, 2))", "v.unsqueeze(0).expand(2, -1, -1).mul_(2)")
_OF_MATRICES = ("a @ b", "torch.nn.functional.linear(a, b)", "(a @ b).sum()",
    "torch.nn.functional.softmax(a @ b, 0)", "torch.nn.functional.layer_norm(a @ b, (3,))", "torch.cat([a @ b, a])",
    "(a @ b) + a", "torch.nn.functional.mse_loss(a @ b, a)", "torch.einsum('ij,jk->ik', a, b)",
    "torch.nn.functional.conv1d(a[None], b[:, :, None])", "torch.bmm(a[None], b[None])", "torch.addmm(a, a, b)",
    "(a @ b).exp()", "torch.nn.functional.cross_entropy(a @ b, torch.tensor([0, 1, 2]))",
    "torch.nn.functional.gelu(a @ b)", "torch.linalg.inv(a @ b + 3 * torch.eye(3))", "torch.cumsum(a @ b, 0)",
    "torch.prod(a @ b)", "torch.cdist(a, b)",
    "torch.nn.functional.scaled_dot_product_attention(a[None], b[None], a[None])",
    "torch.nn.functional.embedding(torch.tensor([0]), a @ b)", "torch.stack([a @ b, a @ b])",
    "torch.where(a > 0, a @ b, a)", "torch.nn.functional.binary_cross_entropy_with_logits(a @ b, a.sigmoid())",
    "torch.nn.functional.batch_norm(a @ b, None, None, training=True)", "torch.fft.fft(a @ b)",
    "torch.nn.functional.interpolate((a @ b)[None], scale_factor=2.)", "torch.baddbmm(a[None], a[None], b[None])",
    "torch.logsumexp(a @ b, 0)", "torch.nn.functional.group_norm(a @ b, 3)")
_AUTOCAST_DTYPES = ("float32", "float32", "float32", "float64", "bfloat16", "float16")
_FUNCTIONS = ("lambda x: x.sin().sum()", "lambda x: (x * x).sum()", "lambda x: x.prod()",
    "lambda x: torch.linalg.norm(x)", "lambda x: (x @ x.T).sum() if x.dim() > 1 else (x @ x)",
    "lambda x: x.softmax(-1).max()", "lambda x: torch.nn.functional.layer_norm(x, x.shape[-1:]).pow(3).sum()",
    "lambda x: x.cumsum(-1).tanh().sum()", "lambda x: torch.where(x > 0, x, x * 2).sum()",
    "lambda x: x.sort(-1)[0][..., 0].sum()", "lambda x: x.clone().mul_(x).sum()",
    "lambda x: torch.cat([x, x * 2]).exp().sum()", "lambda x: x[..., :1].expand(x.shape).mul(x).sum()",
    "lambda x: torch.logsumexp(x, -1).sum()", "lambda x: x.abs().sqrt().sum()")
_TRANSFORMS = ("torch.func.vmap(torch.func.grad(f))(x)",
    "torch.func.grad(lambda x: torch.func.vmap(f)(x).sum())(x)", "torch.func.hessian(f)(x)",
    "torch.func.jacrev(torch.func.grad(f))(x)", "torch.func.jacfwd(torch.func.grad(f))(x)",
    "torch.func.vmap(torch.func.vmap(f))(x[None])", "torch.func.vmap(torch.func.hessian(f))(x)",
    "torch.func.jvp(torch.func.grad(f), (x,), (x + 1,))", "torch.func.vmap(f, in_dims=-1)(x)",
    "torch.func.grad_and_value(f)(x)", "torch.func.vmap(torch.func.grad_and_value(f), randomness='different')(x)",
    "torch.func.vjp(torch.func.grad(f), x)[1](x)",
    "torch.func.vmap(lambda v: torch.func.jvp(f, (x,), (v,))[1])(torch.stack([x, x]))",
    "torch.func.vmap(f, chunk_size=1)(x)", "torch.func.linearize(f, x)[1](x)",
    "torch.func.jacfwd(torch.func.jacrev(f))(x)")
_DISTRIBUTIONS = ("Normal(a, b)", "Bernoulli(logits=a)", "Categorical(logits=a)", "Beta(b, b + 1)",
    "Gamma(b, b + 1)", "Dirichlet(b)", "Exponential(b)", "Laplace(a, b)", "Poisson(b)", "Uniform(a, a + b)",
    "MultivariateNormal(a, torch.eye(3))", "StudentT(b + 2, a, b)", "LogNormal(a, b)", "Geometric(logits=a)",
    "Binomial(5, logits=a)", "OneHotCategorical(logits=a)", "RelaxedBernoulli(b[0, 0], logits=a)",
    "Independent(torch.distributions.Normal(a, b), 1)", "Gumbel(a, b)", "Weibull(b, b)", "VonMises(a, b)",
    "Cauchy(a, b)", "HalfNormal(b)", "Pareto(b, b + 1)", "NegativeBinomial(3, logits=a)", "Kumaraswamy(b, b)",
    "ContinuousBernoulli(logits=a)",
    "MixtureSameFamily(torch.distributions.Categorical(logits=a), torch.distributions.Normal(a, b))",
    "Wishart(torch.tensor(4.).double(), torch.eye(3).double())", "LKJCholesky(3, 1.5)", "InverseGamma(b, b)",
    "LowRankMultivariateNormal(a, b[..., None], b)",
    "TransformedDistribution(torch.distributions.Normal(a, b), [torch.distributions.SigmoidTransform()])")
_OF_DISTRIBUTIONS = ("d.sample()", "d.sample((2,))", "d.rsample()", "d.log_prob(d.sample())", "d.entropy()", "d.mean",
    "d.variance", "d.stddev", "d.mode", "d.cdf(d.sample())", "repr(d)", "d.batch_shape, d.event_shape",
    "d.expand((2, 2, 3)).batch_shape", "d.support", "d.enumerate_support()", "torch.distributions.kl_divergence(d, d)",
    "d.log_prob(torch.tensor(0.5))", "d.log_prob(torch.tensor([float('nan')]))", "d.icdf(torch.full((2, 3), 0.3))",
    "d.has_rsample", "d.perplexity()", "sorted(d.arg_constraints)")
_DATA_SETS = ("torch.utils.data.TensorDataset(x, torch.arange(7))", "list(range(7))",
    "torch.utils.data.Subset(list(range(9)), [1, 3, 5])",
    "torch.utils.data.ConcatDataset([list(range(3)), list(range(4))])",
    "torch.utils.data.StackDataset(a=list(range(4)), b=list(range(4)))", "torch.utils.data.ChainDataset([])",
    "[{'a': i, 'b': torch.ones(2) * i} for i in range(5)]", "['a', 'b', 'c']", "[(1, 2.5), (3, 4.5)]", "[None, 1]",
    "[torch.ones(2), torch.ones(3)]", "torch.utils.data.random_split(list(range(7)), [3, 4])[0]",
    "torch.utils.data.random_split(list(range(7)), [0.5, 0.5])[0]", "[np.float32(1), np.float32(2)]",
    "[np.ones(2), np.ones(2)]")
_LOADER_SAMPLERS = ("None", "[0, 1]", "torch.utils.data.SequentialSampler(range(2))",
    "torch.utils.data.WeightedRandomSampler([1., 2.], 3)", "torch.utils.data.RandomSampler(range(3), True, 4)",
    "torch.utils.data.SubsetRandomSampler([0, 1])")
_LOADER_BATCHES = ("None", "[[0], [1, 0]]", "torch.utils.data.BatchSampler([0, 1, 0], 2, False)")
_CONVERSIONS = ("x.to_sparse()", "x.to_sparse_csr()",
    "torch.sparse_coo_tensor(torch.tensor([[0, 1, 1], [2, 0, 0]]), torch.tensor([1., 2., 3.]), (2, 3))",
    "x.to_sparse(1)", "x.to_sparse_csc()")
_OF_SPARSE = ("s + s", "s * 2", "s @ y", "torch.sparse.mm(s, y)", "s.to_dense()", "s.coalesce()", "s.values()",
    "s.t()", "s.sum()", "torch.sparse.sum(s, 0)", "s * x", "s + x", "s.abs()", "s.sqrt()", "torch.sparse.softmax(s, 1)",
    "s.float().to_dense()", "s.indices()", "s[0]", "s.mul(s)", "s / 2", "-s", "s.unsqueeze(0)", "torch.cat([s, s])",
    "s.transpose(0, 1)", "s.norm()", "s.nnz() if hasattr(s, 'nnz') else s._nnz()", "s.relu()", "s.clone()",
    "s.detach()", "repr(s)", "s.is_coalesced()", "torch.sparse.addmm(torch.ones(2, 2), s, y)",
    "s.index_select(0, torch.tensor([1]))", "s.crow_indices()", "s.to_sparse_bsr((1, 1))", "s.sin()", "s.requires_grad",
    "s.to(torch.float64)", "s.zero_()", "s.narrow(0, 0, 1)", "s.mv(y[:, 0])", "s.pow(2)", "torch.empty_like(s)",
    "torch.zeros_like(s)", "s.any()", "s == s", "s.max()", "s.numel()", "s.sparse_dim(), s.dense_dim()")
_OF_RAGGED = ("n + n", "n * 2", "n.to_padded_tensor(0.)", "n.unbind()", "n.size(0)", "n.sin()",
    "n @ torch.ones(3, 2)", "torch.nn.functional.linear(n, torch.ones(4, 3))", "n.sum()", "n.sum(-1)",
    "torch.nn.functional.softmax(n, -1)", "torch.nn.functional.layer_norm(n, (3,))", "n[0]", "n.transpose(0, 1)",
    "n.detach()", "n.is_nested, n.layout", "n.values()", "n.offsets()", "n.mean(dim=1)", "n.clone()", "n.dim()",
    "torch.nn.functional.relu(n)", "n.unsqueeze(-1)", "repr(n)", "n.shape", "n.numel()", "n.contiguous()",
    "n.requires_grad", "torch.nested.to_padded_tensor(n, 1.)", "n.half()", "torch.zeros_like(n)", "n.reshape(2, -1)",
    "n == n", "torch.cat([n, n])", "n.chunk(3, -1)", "n.amax(1)")
_OPTIMIZERS = ("SGD(ps, 0.1, momentum=0.9)", "Adam(ps, 0.1)", "AdamW(ps, 0.1)", "LBFGS(ps, 0.1)",
    "RMSprop(ps, 0.1, centered=True)", "Adagrad(ps)", "Rprop(ps)", "NAdam(ps)", "RAdam(ps)", "ASGD(ps)", "Adadelta(ps)",
    "Adamax(ps)")
_RETURNED = ("return l", "return None", "return round(l.item(), -1)", "return l.detach()")
_BETWEEN_STEPS = ("", "o.register_step_pre_hook(lambda o, a, k: note('pre', len(a)))",
    "o.register_step_post_hook(lambda o, a, k: note('post'))", "o.add_param_group({'params': [q2], 'lr': 0.5})",
    "o.load_state_dict(o.state_dict())", "torch.nn.utils.clip_grad_norm_(ps, 0.1)", "o.param_groups[0]['lr'] = 0.5",
    "o.zero_grad(set_to_none=False)", "sch = torch.optim.lr_scheduler.StepLR(o, 1)", "p.register_hook(lambda g: g * 2)",
    "p.register_post_accumulate_grad_hook(lambda p: note('acc', p.grad))", "torch.nn.utils.clip_grad_value_(ps, 0.1)",
    "swa = torch.optim.swa_utils.AveragedModel(torch.nn.Linear(1, 1))")
_OF_NARROW = ("x.cumsum(0)", "x.mean()", "x.var()", "x.std(0)", "x.prod()", "torch.nn.functional.softmax(x, 0)",
    "x.logsumexp(0)", "x.norm()", "x @ x.T", "torch.linalg.norm(x)", "x.sum(0)", "x.pow(2.5)", "x.pow(3)", "x / 3",
    "x.div(3, rounding_mode='floor')", "x.round(decimals=1)", "x.cosh()", "torch.fft.fft(x)", "torch.fft.ifft2(x)",
    "torch.fft.hfft(x)", "x.sgn()", "x.angle()", "x.log1p()", "x.reciprocal()", "x.rsqrt()", "x.sigmoid()", "x.tan()",
    "torch.linalg.inv(x @ x.mT + 3 * torch.eye(2, dtype=x.dtype))", "torch.linalg.eigvals(x @ x.mT)",
    "torch.linalg.svdvals(x)", "x.matmul(x[0])", "torch.nn.functional.mse_loss(x, x * 2)",
    "torch.nn.functional.gelu(x)", "torch.nn.functional.silu(x)", "torch.nn.functional.layer_norm(x, (3,))",
    "torch.nn.functional.conv1d(x[None], x[:, :2, None][:1].mT)", "torch.addcmul(x, x, x, value=0.3)",
    "torch.lerp(x, x * 2, 0.3)", "x.erf()", "x.lgamma()", "torch.cdist(x, x)", "x.cumprod(1)",
    "torch.einsum('ij,kj->ik', x, x)", "x.topk(2)", "x.sort()", "x.argmax()", "x.median()", "x.quantile(0.3)",
    "x.histc(3)", "x.float()", "x.to(torch.complex64)", "torch.polar(x.abs(), x.abs())", "x.conj() * x", "x.real + 1",
    "torch.view_as_real(x)", "x.frexp()", "x.fmod(0.7)", "x.remainder(-0.7)", "torch.nextafter(x, x + 1)",
    "torch.hypot(x, x)", "torch.atan2(x, x + 1)", "x.masked_fill(x.abs() > 1, 0)", "torch.heaviside(x, x)",
    "torch.trapezoid(x)", "x.diff()", "torch.kron(x, x)", "x.renorm(2, 0, 1.)", "torch.nan_to_num(x / 0)", "x.expm1()",
    "x.acosh()", "torch.special.bessel_j0(x)", "torch.xlogy(x, x)", "torch.logaddexp(x, x)")
_DTYPES = ("float32", "float64", "float16", "bfloat16", "complex64", "int64", "bool")
#: notes a tensor, the components of a nested one, or how another value is written
_NOTED = ("note([described(v) for v in z.unbind()] if isinstance(z, torch.Tensor) and z.is_nested else "
          "described(z) if isinstance(z, torch.Tensor) else len(z) if isinstance(z, (tuple, list)) else "
          "plain(repr(z)))")


@topic
def _overlapping(r: random.Random) -> Lines:
    """An in-place or other operator on a view whose elements share memory."""
    dtype = r.choice(_DTYPES)
    return [f"x = {given_of(r, (4,), dtype)}", f"y = {given_of(r, (6,), dtype)}",
            f"v = {r.choice(_VIEWS)}", f"z = {r.choice(_OF_VIEWS)}", "note(described(z))",
            "look()"]


@topic
def _autocast(r: random.Random) -> Lines:
    """A function under autocast, and its backward pass."""
    mode = f"torch.autocast('cpu', dtype=torch.{r.choice(('bfloat16', 'float16'))}, enabled={r.random() < 0.9})"
    return [f"a = {given_of(r, (3, 3), r.choice(_AUTOCAST_DTYPES), True)}",
            f"b = {given_of(r, (3, 3), 'float32', r.random() < 0.5)}",
            f"with {mode}:\n    c = {r.choice(_OF_MATRICES)}", "note(described(c))", "c.sum().abs().backward()",
            "look()"]


@topic
def _nested_transforms(r: random.Random) -> Lines:
    """Transforms of transforms."""
    return [f"x = {given_of(r, (2, 3), r.choice(('float32', 'float64', 'float64')), r.random() < 0.3)}",
            f"f = {r.choice(_FUNCTIONS)}", f"z = {r.choice(_TRANSFORMS)}",
            "note(described(z if not isinstance(z, tuple) else list(z)))"]


@topic
def _distribution(r: random.Random) -> Lines:
    """A property or a method of a distribution."""
    dtype = r.choice(("float32", "float64"))
    return [f"a = {given_of(r, (2, 3), dtype, r.random() < 0.4)}", f"b = {given_of(r, (2, 3), dtype)}.abs() + 0.5",
            f"torch.manual_seed({r.randrange(9)})", f"d = torch.distributions.{r.choice(_DISTRIBUTIONS)}",
            f"z = {r.choice(_OF_DISTRIBUTIONS)}", _NOTED, "note(torch.rand(1))"]


@topic
def _loader(r: random.Random) -> Lines:
    """A data loader with random options."""
    options = options_of(
        r, 0.2, batch_size=("1", "2", "3", "None", "0", "'a'"), shuffle=("True", "False", "None", "1"), drop_last=BOOL,
        generator=("torch.Generator().manual_seed(3)",), sampler=_LOADER_SAMPLERS, batch_sampler=_LOADER_BATCHES,
        collate_fn=("None", "list", "lambda b: len(b)"), num_workers=("0", "-1"), timeout=("0", "1", "-1"),
        prefetch_factor=("2",), persistent_workers=("True",), pin_memory=("False",), in_order=("False",))
    return ["import numpy as np", f"x = {given_of(r, (7, 2))}", "torch.manual_seed(1)",
            f"s = {r.choice(_DATA_SETS)}", f"l = {call_of('torch.utils.data.DataLoader', 's', options)}",
            "note(len(l))", "b = list(l)", "note(plain(repr(b)))", "note(torch.rand(1))"]


@topic
def _sparse(r: random.Random) -> Lines:
    """An operator on a sparse tensor."""
    x = given_of(r, (2, 3), r.choice(("float32", "float64", "complex64")), r.random() < 0.3)
    return [f"x = {x}", "x.data[0, 1] = 0", f"y = {given_of(r, (3, 2))}", f"s = {r.choice(_CONVERSIONS)}",
            f"z = {r.choice(_OF_SPARSE)}", "note(plain(repr(z)))"]


@topic
def _ragged(r: random.Random) -> Lines:
    """An operator on a nested tensor."""
    made = f"{r.choice(('nested_tensor', 'as_nested_tensor'))}([a, b], layout=torch.{r.choice(('strided', 'jagged'))})"
    return [f"a = {given_of(r, (2, 3), grad=r.random() < 0.5)}", f"b = {given_of(r, (4, 3))}",
            f"n = torch.nested.{made}", f"z = {r.choice(_OF_RAGGED)}", _NOTED]


@topic
def _closure(r: random.Random) -> Lines:
    """Steps of an optimizer with a closure and a hook."""
    dtype = r.choice(("float32", "float64", "bfloat16", "complex64"))
    closure = ("def closure():\n    o.zero_grad()\n    l = (p.abs() ** 2).sum() + (q.abs() ** 3).sum()\n"
               f"    l.backward()\n    {r.choice(_RETURNED)}")
    return [f"p = {given_of(r, (2, 3), dtype, True)}", f"q = {given_of(r, (3,), dtype, True)}",
            f"q2 = {given_of(r, (3,), dtype, True)}", "ps = [p, q]", f"o = torch.optim.{r.choice(_OPTIMIZERS)}",
            closure, "z = o.step(closure)", "note(described(z) if isinstance(z, torch.Tensor) else z)",
            r.choice(_BETWEEN_STEPS) or "pass", "z = o.step(closure)", "z = o.step()",
            "note(described(p), described(q))"]


@topic
def _narrow(r: random.Random) -> Lines:
    """A function of 16-bit or complex numbers, and its gradient."""
    dtype = r.choice(("float16", "bfloat16", "complex64", "complex128"))
    return [f"x = {given_of(r, (2, 3), dtype, r.random() < 0.7)}", f"z = {r.choice(_OF_NARROW)}",
            "note(described(z))", "note(differentiated(z, [x], False))", "look()"]
