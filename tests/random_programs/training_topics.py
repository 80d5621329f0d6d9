"""Topics of `objects` as scripts use the library: training loops, hooks, parametrizations, files, transforms of
modules, loaders with samplers, in-place statements on views. Nearly all of their calls are right ones.
"""

from __future__ import annotations

import random

from .topics import BOOL, Lines, call_of, given_of, options_of, topic

_NETS = (
    ("torch.nn.Linear(4, 3)", (5, 4), (5, 3)),
    ("torch.nn.Sequential(torch.nn.Linear(4, 6), torch.nn.Tanh(), torch.nn.Linear(6, 3))", (5, 4), (5, 3)),
    ("torch.nn.Sequential(torch.nn.Linear(4, 6, bias=False), torch.nn.BatchNorm1d(6), torch.nn.GELU())",
     (5, 4), (5, 6)),
    ("torch.nn.Sequential(torch.nn.Conv1d(2, 3, 3, padding=1), torch.nn.GroupNorm(1, 3), torch.nn.SiLU())",
     (2, 2, 5), (2, 3, 5)),
    (("torch.nn.Sequential(torch.nn.Conv2d(1, 2, 2, bias=False), torch.nn.BatchNorm2d(2), torch.nn.Softplus(), "
     "torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten(), torch.nn.Linear(2, 3))"), (3, 1, 4, 4), (3, 3)),
    ("torch.nn.Sequential(torch.nn.LayerNorm(4), torch.nn.Linear(4, 4), torch.nn.Dropout(0.3), torch.nn.PReLU(4))",
     (3, 4), (3, 4)),
)
_OPTIMIZERS = (
    "SGD({p}, lr=0.1, momentum=0.9, nesterov=True, weight_decay=0.01)", "SGD({p}, 0.05)", "Adam({p}, 0.01)",
    "Adam({p}, 0.01, amsgrad=True, betas=(0.8, 0.9))", "AdamW({p}, 0.01, weight_decay=0.1)", "RMSprop({p}, 0.01)",
    "RMSprop({p}, 0.01, centered=True, momentum=0.5)", "Adagrad({p}, 0.1, lr_decay=0.1)", "Adadelta({p})",
    "NAdam({p}, 0.01)", "RAdam({p}, 0.01)", "Adamax({p}, 0.01)", "ASGD({p}, 0.01)", "Rprop({p}, 0.01)",
    "SGD({p}, 0.1, foreach=True)", "Adam({p}, 0.01, fused=True)", "AdamW({p}, torch.tensor(0.01), foreach=False)",
    "Adafactor({p}, 0.01)")
_GROUPS = (
    "m.parameters()", "list(m.parameters())", "m.named_parameters()",
    ("[{'params': [p for p in m.parameters() if p.ndim > 1]}, {'params': [p for p in m.parameters() if p.ndim < 2], "
     "'lr': 0.02}]"),
    "[{'params': m.parameters(), 'weight_decay': 0.1}]")
_SCHEDULES = (
    "lr.StepLR(o, 2, 0.5)", "lr.MultiStepLR(o, [1, 2], 0.5)", "lr.ExponentialLR(o, 0.9)", "lr.CosineAnnealingLR(o, 3)",
    "lr.LinearLR(o, 0.5, 1.0, 2)", "lr.ConstantLR(o, 0.5, 2)", "lr.PolynomialLR(o, 3, 2.0)",
    "lr.LambdaLR(o, lambda e: 1 / (e + 1))", "lr.MultiplicativeLR(o, lambda e: 0.9)",
    "lr.OneCycleLR(o, 0.1, total_steps=9)", "lr.CosineAnnealingWarmRestarts(o, 2, 2)",
    "lr.ChainedScheduler([lr.LinearLR(o, 0.5, 1.0, 2), lr.ExponentialLR(o, 0.9)])",
    "lr.SequentialLR(o, [lr.LinearLR(o, 0.1, 1.0, 2), lr.CosineAnnealingLR(o, 3)], [2])",
    "lr.SequentialLR(o, [lr.ConstantLR(o, 0.1, 1), lr.ExponentialLR(o, 0.9), lr.StepLR(o, 1)], [1, 3])",
    "torch.optim.swa_utils.SWALR(o, 0.05, 2)", "lr.CyclicLR(o, 0.01, 0.1, 2, cycle_momentum=False)")
_LOSSES = (
    "torch.nn.functional.mse_loss(y, t)", "torch.nn.functional.smooth_l1_loss(y, t)",
    "torch.nn.functional.huber_loss(y, t, delta=0.5)", "((y - t) ** 2).mean()",
    "torch.nn.functional.cross_entropy(y, t.softmax(1))", "torch.nn.functional.l1_loss(y, t, reduction='sum')",
    "torch.nn.functional.kl_div(y.log_softmax(1), t.softmax(1), reduction='batchmean')",
    "torch.nn.functional.binary_cross_entropy_with_logits(y, t.sigmoid())",
    "-torch.nn.functional.cosine_similarity(y, t).mean()", "torch.linalg.vector_norm(y - t)",
    "torch.nn.functional.cross_entropy(y, t.argmax(1), label_smoothing=0.1)",
    "torch.nn.functional.gaussian_nll_loss(y, t, y.exp() + 0.1)")
_BEFORE_STEP = (
    "pass", "pass", "note(described(torch.nn.utils.clip_grad_norm_(m.parameters(), 0.5)))",
    "torch.nn.utils.clip_grad_value_(m.parameters(), 0.1)",
    "note(described(torch.nn.utils.clip_grad_norm_(m.parameters(), 1.0, norm_type=1)))",
    "note(described(torch.nn.utils.get_total_norm([p.grad for p in m.parameters()])))",
    "[p.grad.mul_(0.5) for p in m.parameters() if p.grad is not None]",
    "torch._foreach_mul_([p.grad for p in m.parameters()], 2.)",
    "note(described(torch.nn.utils.clip_grad_norm_(m.parameters(), 1.0, norm_type=float('inf'), foreach=False)))")
_AFTER_STEP = (
    "pass", "o.load_state_dict(o.state_dict())", "m.load_state_dict(m.state_dict())",
    "o2 = type(o)(o.param_groups, lr=0.1); o2.load_state_dict(o.state_dict()); o = o2",
    ("f = io.BytesIO(); torch.save({'m': m.state_dict(), 'o': o.state_dict()}, f); f.seek(0); d = torch.load(f); "
     "m.load_state_dict(d['m']); o.load_state_dict(d['o'])"),
    "m, o = copy.deepcopy((m, o))", "m, o = pickle.loads(pickle.dumps((m, o)))",
    "with torch.no_grad():\n    [p.sub_(0.01 * p) for p in m.parameters()]",
    ("v = torch.nn.utils.parameters_to_vector(m.parameters()); torch.nn.utils.vector_to_parameters(v.detach() * "
     "0.9, m.parameters()); note(described(v))"),
    "m.eval(); note(described(m(x))); m.train()", "m.zero_grad()", "m.requires_grad_(False).requires_grad_(True)",
    "next(m.parameters()).requires_grad_(False)", "o.add_param_group({'params': [torch.ones(2, requires_grad=True)]})",
    "o.zero_grad(set_to_none=False)", "o.param_groups[0]['lr'] *= 0.5",
    "m.load_state_dict({k: v * 0.5 for k, v in m.state_dict().items()}, assign=True)",
    "m.apply(lambda l: torch.nn.init.zeros_(l.bias) if getattr(l, 'bias', None) is not None else None)")
_AVERAGES = (
    "torch.optim.swa_utils.AveragedModel(m)",
    "torch.optim.swa_utils.AveragedModel(m, multi_avg_fn=torch.optim.swa_utils.get_ema_multi_avg_fn(0.9))",
    "torch.optim.swa_utils.AveragedModel(m, avg_fn=lambda a, p, n: 0.5 * a + 0.5 * p, use_buffers=True)",
    "torch.optim.swa_utils.AveragedModel(m, multi_avg_fn=torch.optim.swa_utils.get_swa_multi_avg_fn())")
_STATE = "note([(k, described(v)) for k, v in {0}.state_dict().items() if isinstance(v, torch.Tensor)])"


@topic
def _fit(r: random.Random) -> Lines:
    """A training loop: groups of parameters, schedules, clipping, averages, saved and loaded states.

    No parameter has a gradient that is 0 but for rounding, which most optimizers would scale up.
    """
    net, x, y = r.choice(_NETS)
    optimizer = r.choice(_OPTIMIZERS).format(p=r.choice(_GROUPS))
    lines = ["import copy, io, pickle; lr = torch.optim.lr_scheduler", f"torch.manual_seed({r.randrange(99)})",
             f"m = {net}.double()", f"x = {given_of(r, x, 'float64')}", f"t = {given_of(r, y, 'float64')}",
             f"o = torch.optim.{optimizer}"]
    schedule = r.random() < 0.5
    average = r.random() < 0.3
    if schedule:
        lines += [f"s = {r.choice(_SCHEDULES)}"]
    if average:
        lines += [f"a = {r.choice(_AVERAGES)}"]
    loss, before = r.choice(_LOSSES), r.choice(_BEFORE_STEP)
    for _ in range(3):
        lines += ["o.zero_grad()", "y = m(x)", f"l = {loss}", "note(described(l))", "l.backward()", before, "o.step()",
                  "note([described(p) for p in m.parameters()])"]
        if schedule:
            lines += ["s.step()", "note(s.get_last_lr(), [g['lr'] for g in o.param_groups])"]
        if average:
            lines += ["a.update_parameters(m)"]
        if r.random() < 0.4:
            lines += [r.choice(_AFTER_STEP)]
    if average:
        lines += ["torch.optim.swa_utils.update_bn([x, x], a)", _STATE.format("a"), "note(described(a(x)))"]
    if schedule:
        lines += ["note(plain(repr({k: v for k, v in s.state_dict().items() if isinstance(v, (int, float, list))})))",
                  "s.load_state_dict(s.state_dict())"]
    return [*lines, _STATE.format("m"), "note(plain(repr(o)))", "look()",
            ("note([(k, sorted((n, described(v)) for n, v in s.items() if v is not None)) "
            "for k, s in o.state_dict()['state'].items()])")]


_WRITES = (
    "v.add_(1)", "v.mul_(w)", "v.copy_(w)", "v[0] = w[0]", "v[..., 1:] *= 2", "v += w", "v -= 1", "v /= 2", "v **= 2",
    "v.clamp_(-1, 1)", "v.fill_(0.5)", "v.zero_()", "v[v > 0] = 0", "v[v < 0] *= -1", "v.masked_fill_(w > 0, 1)",
    "v.index_add_(0, torch.tensor([0, 0]), w[:2])", "v.index_copy_(0, torch.tensor([1]), w[:1])",
    "v.scatter_(1, torch.tensor([[0], [1]]), 2)", "v.index_fill_(-1, torch.tensor([0]), 3)", "v.swapdims_(0, 1)",
    "v.unsqueeze_(0)", "v.squeeze_()", "v.t_()", "v.transpose_(0, 1)", "torch.add(v, w, out=v)",
    "torch.mul(w, 2, out=v)", "torch.sum(w, 0, out=v[0])", "torch.cat([w[:1], w[1:]], out=v)",
    "torch.matmul(w.clone(), w.t() @ w, out=v)", "torch.where(w > 0, w, v, out=v)", "v.addmm_(w, w.t() @ w)",
    "v.addcmul_(w, w, value=0.5)", "v.addcdiv_(w, w.abs() + 1)", "v.lerp_(w, 0.5)", "v.data.mul_(2)",
    "v.detach().add_(1)", "v.relu_()", "torch.nn.functional.relu(v, inplace=True)", "torch.nn.init.constant_(v, 2)",
    "v.set_(w)", "v.data = w", "v.requires_grad_()", "v.detach_()", "v.cumsum_(1)", "v.sigmoid_().neg_()", "v.tril_()",
    "v.fill_diagonal_(1)", "v.round_(decimals=1)", "v.renorm_(2, 0, 1.)",
    "v.put_(torch.tensor([0]), torch.tensor([5.]).to(v.dtype))", "v.select(1, 0).copy_(w[:, 1])", "v.nan_to_num_()",
    "v.index_put_((torch.tensor([0]), torch.tensor([1])), torch.tensor(2.).to(v.dtype), accumulate=True)", "v.exp_()",
    "v.div_(w.abs() + 1, rounding_mode='floor')", "v.square_()", "v.bernoulli_(0.5)", "v.uniform_(-1, 1)",
    "v.normal_()", "v.random_(5)", "v.exponential_()", "v.log_normal_()", "v.flatten()[1:3] = 7", "v.view(-1)[0] = 1",
    "v.masked_scatter_(w > 0, w)", "torch.clamp(w, 0, out=v)", "torch.sort(w, 1, out=(v, i))",
    "torch.max(w, 1, out=(v[:, 0], i[:, 0]))", "torch.cumsum(w, 1, out=v)", "torch.stack([w[0], w[1]], out=v)",
    "torch._foreach_mul_([v], [w])", "v.hypot_(w)", "v.copysign_(w)",
    "v.map_(w, lambda a, b: a + b)", "v.scatter_add_(0, torch.tensor([[0, 1, 0]]), w)", "v.floor_()",
    "v.to(torch.float64).add_(1)", "v.ne_(w)", "v.logical_not_()", "v.sub_(w, alpha=0.5)",
    "v[:, [0, 2]] = w[:, [2, 0]]", "v[[0, 1], [1, 2]] += 1", "v[None, 0, ...] = 4",
    "v[torch.tensor([True, False])] = w[0]")
_VIEWS = (
    "x", "x[:]", "x.view(2, 3)", "x.t().t()", "x.detach()", "x.data", "x[..., :3]", "x.narrow(1, 0, 3)",
    "x.unfold(1, 3, 3)[:, 0]", "x.as_strided((2, 3), (3, 1))", "x.chunk(1)[0]", "x.split(2)[0]", "x.expand(2, 3)",
    "x.unbind(0)[0].expand(2, 3).clone()", "x.reshape(3, 2).reshape(2, 3)", "x.view_as(x)", "x.squeeze()",
    "x.permute(1, 0).mT", "x.movedim(0, 1).T", "x.unflatten(1, (3, 1))[..., 0]")
_MODES = (
    "with torch.no_grad():\n    ", "with torch.no_grad():\n    ", "", "with torch.inference_mode():\n    ",
    "with torch.enable_grad():\n    ", "with torch.set_grad_enabled(False):\n    ")


@topic
def _written(r: random.Random) -> Lines:
    """In-place statements on views in modes, `out=`, and the backward pass of what is left."""
    dtype = r.choice(("float32", "float64", "float64", "float16", "bfloat16", "complex64", "int64"))
    other = dtype if r.random() < 0.8 else r.choice(("float32", "float64", "int64"))
    grad = dtype[0] in "fbc" and r.random() < 0.5
    lines = [f"x = {given_of(r, (2, 3), dtype, grad)}", f"w = {given_of(r, (2, 3), other)}",
             "i = torch.zeros(2, 3, dtype=torch.int64)"]
    if grad and r.random() < 0.6:
        lines.append("x = x * 1")
    lines += ["torch.manual_seed(1)", f"v = {r.choice(_VIEWS)}"]
    for _ in range(r.choice((1, 2, 2, 3))):
        lines += [r.choice(_MODES) + r.choice(_WRITES), "note(described([v, x, w]))", "look()"]
    return [*lines, "note(v._version, x._version, v.is_leaf)", "z = (v * v).sum().abs()",
            "z.backward() if z.requires_grad else 0", "look()"]


_HOOKS = (
    "m.register_forward_hook(lambda m, a, y: note('forward', y))",
    "m.register_forward_pre_hook(lambda m, a: (a[0] * 2,))", "m.register_forward_hook(lambda m, a, y: y * 2)",
    "m.register_full_backward_hook(lambda m, gi, go: note('backward', gi, go))",
    "m.register_full_backward_hook(lambda m, gi, go: tuple(None if g is None else g * 2 for g in gi))",
    "m.register_full_backward_pre_hook(lambda m, go: tuple(g * 3 for g in go))",
    "m[0].register_forward_hook(lambda m, a, k, y: note('keywords', sorted(k)), with_kwargs=True)",
    "m[0].register_full_backward_hook(lambda m, gi, go: note('inner', [g is None for g in gi]))",
    "m[-1].register_forward_hook(lambda m, a, y: note('last'), always_call=True)",
    "m.register_forward_hook(lambda m, a, y: note('first'), prepend=True)",
    "m.register_state_dict_post_hook(lambda m, d, p, l: note('saved', sorted(d)))",
    "m.register_state_dict_pre_hook(lambda m, p, k: note('saving', p))",
    "m.register_load_state_dict_post_hook(lambda m, k: note('loaded', str(k)))",
    "m.register_load_state_dict_pre_hook(lambda m, d, *a: note('loading', sorted(d)))",
    "torch.nn.modules.module.register_module_forward_hook(lambda m, a, y: note(type(m).__name__))",
    "torch.nn.modules.module.register_module_full_backward_hook(lambda m, gi, go: note('global', type(m).__name__))",
    "torch.nn.modules.module.register_module_forward_pre_hook(lambda m, a: None)",
    "x.register_hook(lambda g: note('x', g))", "x.register_hook(lambda g: g * 2)",
    "m[0].weight.register_hook(lambda g: g.clamp(-1, 1))",
    "m[0].weight.register_post_accumulate_grad_hook(lambda p: note('accumulated', p.grad))",
    "torch.nn.modules.module.register_module_buffer_registration_hook(lambda m, n, b: note(n))",
    "torch.nn.modules.module.register_module_parameter_registration_hook(lambda m, n, p: note(n))",
    "torch.autograd.graph.register_multi_grad_hook([x, m[0].weight], lambda gs: note('all', gs))",
    "torch.autograd.graph.register_multi_grad_hook([x, m[0].weight], lambda g: note('any'), mode='any')")
_NODE_HOOKS = (
    "y.grad_fn.register_hook(lambda gi, go: note('node', gi, go))",
    "y.grad_fn.register_prehook(lambda g: note('before', g))", "y.retain_grad()", "y.register_hook(lambda g: g * 0.5)",
    "y.grad_fn.register_prehook(lambda g: tuple(t * 2 for t in g))",
    "note(y.grad_fn.name(), [n[0].name() for n in y.grad_fn.next_functions if n[0]])", "h.remove()",
    "y = torch.utils.checkpoint.checkpoint(m, x, use_reentrant=False)",
    "y = torch.utils.checkpoint.checkpoint_sequential(m, 2, x, use_reentrant=False)",
    "y.grad_fn.metadata['a'] = 1; note(y.grad_fn.metadata['a'])", "note(len(m._forward_hooks), len(hs))")
_SAVING = (
    "", "", "", "with torch.autograd.graph.saved_tensors_hooks(lambda t: t * 1, lambda t: t):\n    ",
    "with torch.autograd.graph.save_on_cpu():\n    ", "with torch.autograd.set_detect_anomaly(True):\n    ",
    "with torch.autograd.graph.disable_saved_tensors_hooks('no'):\n    ",
    "with torch.autograd.graph.allow_mutation_on_saved_tensors():\n    ",
    "with torch.autograd.set_multithreading_enabled(False):\n    ")


@topic
def _hooked(r: random.Random) -> Lines:
    """Hooks of modules, tensors and nodes."""
    net, x, _ = r.choice([n for n in _NETS if n[0].startswith("torch.nn.Seq") and "Dropout" not in n[0]])
    lines = [f"torch.manual_seed({r.randrange(99)})", f"m = {net}.double()", f"x = {given_of(r, x, 'float64', True)}"]
    chosen = [r.choice(_HOOKS) for _ in range(r.choice((1, 2, 3)))]
    lines += [f"h = {text}; hs = [h]" if i == 0 else f"hs.append({text})" for i, text in enumerate(chosen)]
    lines += [f"{r.choice(_SAVING)}y = m(x)", *(r.choice(_NODE_HOOKS) for _ in range(r.choice((0, 1, 2)))),
              "note(described(y))", "(y * y).sum().backward()", "note([described(p.grad) for p in m.parameters()])",
              "look()", "d = m.state_dict()", "note(m.load_state_dict(d))", "[h.remove() for h in hs]",
              "note(described(m(x.detach())))"]
    return lines


_PARAMETRIZED = (
    "parametrizations.weight_norm(m)", "parametrizations.weight_norm(m, dim=None)", "parametrizations.spectral_norm(m)",
    "parametrizations.spectral_norm(m, n_power_iterations=3)", "parametrizations.orthogonal(m)",
    "parametrizations.orthogonal(m, orthogonal_map='cayley')",
    "parametrizations.orthogonal(m, orthogonal_map='householder')", "weight_norm(m)", "spectral_norm(m)",
    "parametrize.register_parametrization(m, 'weight', torch.nn.Softplus())",
    "parametrize.register_parametrization(m, 'bias', torch.nn.Tanh())",
    "parametrize.register_parametrization(m, 'weight', torch.nn.Identity(), unsafe=True)",
    "parametrize.register_parametrization(m, 'weight', torch.nn.Hardtanh())", "prune.l1_unstructured(m, 'weight', 0.4)",
    "prune.random_unstructured(m, 'weight', 3)", "prune.ln_structured(m, 'weight', 0.5, 2, 0)",
    "prune.custom_from_mask(m, 'bias', torch.tensor([1, 0, 1]))", "prune.identity(m, 'weight')",
    "prune.random_structured(m, 'weight', 1, 1)")
_OF_PARAMETRIZED = (
    "note(plain(repr(m)))", "note([(n, described(p)) for n, p in m.named_parameters()])",
    "note([(n, described(p)) for n, p in m.named_buffers()])", "m = copy.deepcopy(m)", "m.eval()",
    "m.weight = m.weight", "m.load_state_dict(m.state_dict())", "parametrize.remove_parametrizations(m, 'weight')",
    "parametrize.remove_parametrizations(m, 'weight', leave_parametrized=False)", "prune.remove(m, 'weight')",
    "remove_weight_norm(m)", "remove_spectral_norm(m)", "note(parametrize.is_parametrized(m), prune.is_pruned(m))",
    "with parametrize.cached():\n    note(m.weight is m.weight)",
    "note(type(m).__name__, isinstance(m, torch.nn.Linear))", "m.float().double()", "m = pickle.loads(pickle.dumps(m))",
    "note(described(m.weight), m.weight.is_leaf)",
    "with torch.no_grad():\n    m.weight = torch.eye(3, 4, dtype=torch.float64)",
    "note(hasattr(m, 'weight_v'), dir(m)[-3:])", "note(parametrize.type_before_parametrizations(m).__name__)",
    "m.zero_grad()", "prune.l1_unstructured(m, 'weight', 1)",
    "f = io.BytesIO(); torch.save(m.state_dict(), f); f.seek(0); note(sorted(torch.load(f)))",
    "m2 = torch.nn.Linear(4, 3).double(); parametrize.transfer_parametrizations_and_params(m, m2); m = m2",
    "parametrize.register_parametrization(m, 'weight', torch.nn.Tanh())", "note(m.weight._version)")


@topic
def _parametrized(r: random.Random) -> Lines:
    """Parametrizations, norms of weights and pruning of a module, through steps of training."""
    lines = ["import copy, importlib, io, pickle",
             "prune = importlib.import_module(f'{torch.__name__}.nn.utils.prune')", *(
        f"{name} = torch.nn.utils.{name}" for name in (
            "parametrizations", "parametrize", "weight_norm", "spectral_norm", "remove_weight_norm",
            "remove_spectral_norm"))]
    lines += [f"torch.manual_seed({r.randrange(99)})", "m = torch.nn.Linear(4, 3).double()",
              f"x = {given_of(r, (2, 4), 'float64', True)}", r.choice(_PARAMETRIZED)]
    for _ in range(r.choice((1, 2, 3))):
        lines += [r.choice(_OF_PARAMETRIZED), "y = m(x)", "note(described(y))", "y.square().sum().backward()", "look()",
                  "with torch.no_grad():\n    [p.sub_(0.1 * p.grad) for p in m.parameters() if p.grad is not None]"]
    return [*lines, _STATE.format("m"), "note(plain(repr(m)))"]


_OVER_MODULES = (
    "functional_call(m, p, (x,))", "functional_call(m, (p, b), x)", "functional_call(m, {**p, **b}, x, {})",
    "grad(lambda p: functional_call(m, (p, b), (x,)).square().sum())(p)",
    "vmap(grad(lambda p, x: functional_call(m, (p, b), (x[None],)).square().sum()), (None, 0))(p, x)",
    "jacrev(lambda p: functional_call(m, (p, b), (x,)))(p)", "jacfwd(lambda x: functional_call(m, (p, b), (x,)))(x)",
    "hessian(lambda x: functional_call(m, (p, b), (x,)).sum())(x)",
    "vjp(lambda p: functional_call(m, (p, b), (x,)), p)[0]",
    "vjp(lambda p: functional_call(m, (p, b), (x,)).sum(), p)[1](torch.tensor(1., dtype=torch.float64))[0]",
    "jvp(lambda p: functional_call(m, (p, b), (x,)), (p,), (p,))",
    "grad_and_value(lambda p: functional_call(m, (p, b), (x,)).mean())(p)",
    "vmap(lambda p, b: functional_call(m, (p, b), (x,)), (0, 0))(*torch.func.stack_module_state([m, m2]))",
    ("vmap(lambda p, b, x: functional_call(m, (p, b), (x,)), (0, 0, None))(*torch.func.stack_module_state([m, m2]), "
     "x)"),
    "vmap(m)(x)", "vmap(m, randomness='different')(x[:, None])[:, 0]", "vmap(m)(x)",
    "torch.autograd.functional.jacobian(m, x)", "torch.autograd.functional.hessian(lambda x: m(x).sum(), x)",
    "torch.func.functionalize(m)(x)", "grad(lambda x: grad(lambda x: m(x).sum())(x).square().sum())(x)",
    "torch.autograd.functional.vhp(lambda x: m(x).square().sum(), x, x)",
    "torch.nn.utils.stateless.functional_call(m, p, x)", "torch.vmap(lambda w: x @ w.t())(p['0.weight'][None])",
    "torch.autograd.grad(functional_call(m, p, x).sum(), list(p.values()))", "jvp(m, (x,), (x,))[1]",
    "vmap(vmap(m))(x[:, None, None])", "torch.autograd.grad(m(x).sum(), list(m.parameters()), create_graph=True)",
    "torch.autograd.grad(m(x).sum(), list(m.parameters()), is_grads_batched=False)",
    "torch.func.jacrev(m, chunk_size=1)(x)", "vmap(lambda x: jacrev(m)(x))(x)",
    "tree_map(lambda t: t.shape, grad(lambda p: functional_call(m, p, x).sum())(p))", "fwAD(m, x)")


@topic
def _of_modules(r: random.Random) -> Lines:
    """Transforms of functions that call modules."""
    net, x, _ = r.choice([n for n in _NETS if "(torch.nn.L" in n[0] and "Batch" not in n[0]])
    dtype = r.choice(("float64", "float64", "float32"))
    return ["from types import SimpleNamespace", f"torch.manual_seed({r.randrange(99)})", f"m, m2 = {net}, {net}",
            f"m.to(torch.{dtype}), m2.to(torch.{dtype})", r.choice(("m.eval()", "m.eval()", "m.train()")),
            f"x = {given_of(r, x, dtype, r.random() < 0.3)}",
            r.choice(("p = dict(m.named_parameters())", "p = {k: v.detach() for k, v in m.named_parameters()}")),
            "b = dict(m.named_buffers())",
            ("for n in 'grad vmap vjp jvp jacrev jacfwd hessian grad_and_value functional_call'.split():\n"
             "    globals()[n] = getattr(torch.func, n)"),
            "tree_map = torch.utils._pytree.tree_map",
            ("def fwAD(f, x):\n    ad = torch.autograd.forward_ad\n    with ad.dual_level():\n"
            "        return tuple(ad.unpack_dual(f(ad.make_dual(x, x * 2))))"),
            ("def shown(t):\n    return (described(t) | {'view': 0, 'node': 0}) if isinstance(t, torch.Tensor) else "
             "repr(t)"),
            f"z = {r.choice(_OVER_MODULES)}",
            "note([shown(t) for t in torch.utils._pytree.tree_leaves(z)])"]


_SETS = (
    "TensorDataset(x, torch.arange(7))", "TensorDataset(x)", "list(range(7))", "Subset(list(range(9)), range(7))",
    "ConcatDataset([list(range(3)), list(range(4))])", "[{'a': i, 'b': torch.ones(2) * i, 'c': 'x'} for i in range(7)]",
    "[(np.ones(2) * i, i, float(i)) for i in range(7)]", "random_split(list(range(14)), [0.5, 0.5], g)[0]",
    "random_split(range(10), [7, 3])[0]", "Squares()", "[[i, [i, str(i)]] for i in range(7)]")
_SAMPLERS = (
    "shuffle=True", "shuffle=True, generator=g", "sampler=RandomSampler(s)", "shuffle=False",
    "sampler=RandomSampler(s, generator=g)", "sampler=RandomSampler(s, True, 5)", "sampler=SequentialSampler(s)",
    "sampler=WeightedRandomSampler([.1, .2, .3, .4, .5, .6, .7], 6)",
    "sampler=WeightedRandomSampler(torch.ones(7), 5, False, g)", "sampler=SubsetRandomSampler([1, 3, 5], g)",
    "batch_sampler=BatchSampler(RandomSampler(s), 3, True)", "batch_sampler=[[0, 1], [2], [3, 4, 5]]",
    "sampler=torch.utils.data.distributed.DistributedSampler(s, 2, 1, seed=3)",
    "sampler=torch.utils.data.distributed.DistributedSampler(s, 2, 0, shuffle=False, drop_last=True)")


@topic
def _sampled(r: random.Random) -> Lines:
    """Epochs of a loader, and the random numbers that are left."""
    sampler = r.choice(_SAMPLERS)
    options = "" if "batch_sampler" in sampler else options_of(
        r, 0.5, batch_size=("1", "2", "3", "None", "7"), drop_last=("False", "True"))
    if "None" in options:
        options = options.replace(", drop_last=True", "")
    more = options_of(r, 0.15, collate_fn=("list", "lambda b: len(b) if isinstance(b, list) else b"),
                      num_workers=("0",), in_order=BOOL)
    return ["import collections; import numpy as np",
            ("for n in 'TensorDataset Subset ConcatDataset random_split RandomSampler SequentialSampler BatchSampler "
            "WeightedRandomSampler SubsetRandomSampler'.split():\n    globals()[n] = getattr(torch.utils.data, n)"),
            ("class Squares(torch.utils.data.Dataset):\n    def __len__(self):\n        return 7\n"
            "    def __getitem__(self, i):\n        return torch.rand(2) * i, i"),
            f"x = {given_of(r, (7, 2))}", f"torch.manual_seed({r.randrange(9)})",
            f"g = torch.Generator().manual_seed({r.randrange(9)})", f"s = {r.choice(_SETS)}",
            f"l = {call_of('torch.utils.data.DataLoader', 's', sampler, options, more)}", "note(len(l), len(s))",
            "note(plain(repr(list(l))))",
            "note(plain(repr(list(l))))", "l2 = iter(l); a = next(l2); note(plain(repr(a)))",
            "note(torch.rand(2), torch.rand(1, generator=g))"]


_FUNCTIONALS = (
    "linear(x, w)", "linear(x, w, b)", "softmax(x, -1)", "softmax(x, -1, dtype=torch.float64)", "log_softmax(x, 0)",
    "layer_norm(x, (3,), b)", "layer_norm(x, (3,), None, b)", "mse_loss(x, w)", "l1_loss(x, w)", "smooth_l1_loss(x, w)",
    "huber_loss(x, w)", "binary_cross_entropy_with_logits(x, w)", "cross_entropy(x, w)", "cross_entropy(x, i)",
    "cross_entropy(x, i, b)", "nll_loss(x, i)", "kl_div(x, w)", "cosine_similarity(x, w)", "pairwise_distance(x, w)",
    "batch_norm(x, b, b.abs(), b, b)", "batch_norm(x, None, None, training=True)", "group_norm(x, 1)",
    "rms_norm(x, (3,))", "rms_norm(x, (3,), b)", "instance_norm(x[None])", "normalize(x)", "gelu(x)", "silu(x)",
    "elu(x)", "prelu(x, b)", "hardtanh(x)", "softplus(x)", "leaky_relu(x, 0.1)", "glu(x.repeat(1, 2))",
    "dropout(x, 0.5)", "embedding(i, w)", "one_hot(i)", "conv1d(x[None], w[:, :, None][:, :2])",
    "conv1d(x[None], w[:, :2, None], b)", "avg_pool1d(x, 2)", "max_pool1d(x, 2)", "adaptive_avg_pool1d(x, 2)",
    "interpolate(x[None], scale_factor=2)", "pad(x, (1, 1))", "pad(x, (1, 0), value=2)",
    "pad(x[None], (1, 1), 'reflect')", "unfold(x[None, None], 2)", "bilinear(x, w, w[None])",
    "scaled_dot_product_attention(x, w, w)", "scaled_dot_product_attention(x, w, w, is_causal=True)",
    "scaled_dot_product_attention(x, w, x, x[:, :3] > 0)", "margin_ranking_loss(x, w, x.sign())",
    "threshold(x, 0., 1.)", "hinge_embedding_loss(x, w.sign())", "cosine_embedding_loss(x, w, i)",
    "triplet_margin_loss(x, w, w)", "multi_margin_loss(x, i)", "poisson_nll_loss(x, w)",
    "gaussian_nll_loss(x, w, w.abs() + 1)", "soft_margin_loss(x, w)", "gumbel_softmax(x)", "logsigmoid(x)",
    "tanhshrink(x)", "softmin(x, 0)", "relu6(x)", "hardswish(x)", "mish(x)",
    "embedding_bag(i, w, torch.tensor([0, 2]))", "multilabel_soft_margin_loss(x, w)", "pdist(x)", "alpha_dropout(x)",
    "local_response_norm(x[None], 2)", "lp_pool1d(x, 2, 2)", "grid_sample(x[None, None], w[None, :, None, :2])",
    "affine_grid(w[None, :2], [1, 1, 2, 2])", "pixel_shuffle(x.repeat(4, 1)[:4, :, None], 2)", "rrelu(x)", "selu(x)",
    "ctc_loss(x[:, None].log_softmax(-1), torch.tensor([[1]]), [3], [1])", "hardsigmoid(x)", "hardshrink(x)", "celu(x)",
    "conv2d(x[None, None], w[None, None, :2, :2])", "conv_transpose1d(x[None], w[:, :, None])", "softshrink(x)",
    "cosine_similarity(x, b)", "fold(x.repeat(4, 1)[None, :4], (2, 4), 2)",
    "max_unpool1d(*torch.nn.functional.max_pool1d(x[None], 2, return_indices=True), 2)")


@topic
def _functional(r: random.Random) -> Lines:
    """A function of `nn.functional` of tensors of several dtypes, and its gradient."""
    dtypes = ("float32", "float32", "float64", "float16", "bfloat16")
    first = r.choice(dtypes)
    others = [first if r.random() < 0.5 else r.choice((*dtypes, "int64", "complex64")) for _ in range(2)]
    x = given_of(r, (3, 3), first, r.random() < 0.7)
    how = r.choice(("", "", "", ".t()", ".contiguous()", "[:, :]", ".t().contiguous().t()"))
    w = given_of(r, (3, 3), others[0], others[0][0] in "fb" and r.random() < 0.4)
    return ["torch.manual_seed(1)", f"x = {x}", f"w = {w}",
            f"b = {given_of(r, (3,), others[1])}", "i = torch.tensor([0, 2, 1])",
            f"y = torch.nn.functional.{r.choice(_FUNCTIONALS).replace('(x', '(x' + how, 1)}", "note(described(y))",
            "note(differentiated(y, [t for t in (x, w) if t.requires_grad], False))", "look()"]


_MADE = (
    "torch.nn.Transformer(4, 2, 1, 1, 8)", "torch.nn.MultiheadAttention(4, 2)", "torch.nn.LSTM(2, 3, 2, dropout=0.1)",
    "torch.nn.ModuleList([torch.nn.Linear(1, 2) for _ in range({n})])", "torch.nn.ModuleDict({{'a': torch.nn.ReLU()}})",
    "torch.nn.ParameterList([torch.ones(2), torch.ones(1, 3)])", "torch.nn.ParameterDict({{'a': torch.ones(2)}})",
    "torch.nn.Sequential(*[torch.nn.ReLU() for _ in range({n})])", "torch.nn.Sequential()",
    "torch.nn.CrossEntropyLoss()",
    "torch.nn.Sequential(torch.nn.Sequential(torch.nn.Linear(1, 1)), torch.nn.Identity())",
    "torch.nn.EmbeddingBag(3, 2)", "torch.nn.Linear(1, 1).weight.grad_fn", "torch.Size([1])",
    "torch.optim.Adam([torch.ones(1, requires_grad=True)])", "torch.Generator().device", "torch.ones(2).max(0)",
    "torch.linalg.svd(torch.eye(2))",
    "torch.optim.lr_scheduler.StepLR(torch.optim.SGD([torch.ones(1, requires_grad=True)], 0.1), 1).state_dict()",
    "torch.nn.utils.rnn.pack_sequence([torch.ones(2), torch.ones(1)])",
    "torch.distributions.Normal(0., torch.ones({n}))", "[torch.nn.UninitializedParameter()]", "torch.nn.LazyLinear(3)",
    "torch.nn.Buffer(torch.ones(2))",
    "torch.nn.Conv2d(2, 4, (1, {n}), stride=2, padding='valid', bias=False, padding_mode='zeros')",
    "torch.nn.BatchNorm2d(3, affine=False)", "torch.nn.Upsample(scale_factor=2, mode='bilinear')",
    "torch.nn.Softmax(1)", "torch.ones({n}, 3).to_sparse()", "torch.ones(2, {n}).to_sparse_csr()",
    "torch.nn.Linear(2, {n}).state_dict()", "torch.arange(12.).view(3, 4)[::2, 1:].requires_grad_()",
    "torch.tensor([])", "torch.randn(3, {n}, generator=torch.Generator().manual_seed(1)).unbind()",
    "torch.ones(2, dtype=torch.bool)", "[torch.zeros(0, {n}), torch.tensor(1e-10), torch.tensor([1e10, 1])]",
    "torch.tensor([1 + 2j, float('nan')])", "{{'a': torch.tensor(1.5), 'b': (torch.ones(1),)}}",
    "torch.nn.Parameter(torch.zeros({n}, 2))", "torch.tensor(True)", "torch.full((2, 2), float('inf'))",
    "torch.tensor([1e-5, 1.0, 1e5])", "torch.tensor([0.1, 100000.])",
    "torch.tensor([[1.0, float('nan')], [float('inf'), -1]])", "torch.rand(2, 2, 2, 2, generator=torch.Generator())",
    "torch.linspace(0, 1, 1001)", "torch.eye(40)", "torch.ones(3, device='meta')", "torch.ones(2).bfloat16() / 3",
    "torch.ones(2, requires_grad=True).sum()", "torch.ones(2, requires_grad=True)[0].detach()",
    "torch.ones({n}).to(torch.float8_e5m2)", "torch.ones(2, dtype=torch.uint16)", "torch.quasirandom.SobolEngine(2)",
    "torch.utils.data.TensorDataset(torch.ones(2)).tensors", "torch.nn.TransformerDecoderLayer(4, 2, 8)",
    "torch.nn.GRUCell(2, 3)", "torch.nn.AdaptiveLogSoftmaxWithLoss(4, 6, [2])", "torch.nn.Unflatten(1, (2, 3))",
    "torch.nn.Fold(2, 2)", "torch.nn.TripletMarginLoss()", "torch.nn.LPPool2d(2, 3)", "torch.ones(2).untyped_storage()",
    "torch.nn.init.calculate_gain('tanh')", "torch.ones(2).dtype.is_complex",
    "torch.func.vmap(lambda x: (x, repr(x))[0])(torch.ones({n}))", "torch.ones(2, 2).names")
_SHOWN = (
    "repr(z)", "str(z)", "f'{z}'", "repr([z, z])", "repr((z,))", "format(z)", "'%s' % (z,)", "str({'k': z})",
    "z.__repr__()", "repr(copy.copy(z))", "repr(copy.deepcopy(z))", "repr(pickle.loads(pickle.dumps(z)))",
    "repr(z.double()) if hasattr(z, 'double') else 0", "repr(z.T) if hasattr(z, 'T') else 0",
    "repr(z.eval()) if hasattr(z, 'eval') else 0", "type(z).__name__, type(z).__module__", "repr(z == z)",
    "repr(len(z))", "repr(list(z))", "bool(z)", "repr(z.half()) if hasattr(z, 'half') else 0",
    "repr(z.to('meta')) if hasattr(z, 'to') else 0", "repr(z.grad_fn) if hasattr(z, 'grad_fn') else 0")


@topic
def _shown(r: random.Random) -> Lines:
    """How objects of every kind are printed, and their copies."""
    made = r.choice(_MADE).format(n=r.choice((0, 1, 2, 3, 4)))
    return ["import copy, pickle", "torch.manual_seed(0)", f"z = {made}", f"note(plain({r.choice(_SHOWN)}))"]
