"""Lists of tensors, averaged models, Muon, fused updates and swapped state, compared with PyTorch."""

from __future__ import annotations

import pytest

from tests.nn.same_program import compare

pytest.importorskip("torch")
pytestmark = pytest.mark.parity

START = """
from torch.optim import swa_utils
a = [torch.linspace(0.1, 0.9, 4).reshape(2, 2), torch.linspace(0.2, 0.8, 3)]
b = [torch.linspace(0.5, 2.9, 4).reshape(2, 2), torch.linspace(0.1, 0.8, 3)]
c = [torch.ones(2, 2) * 3, torch.full((3,), 2.)]
i = [torch.arange(3), torch.arange(2)]
def trained(optimizer_of, steps=3, shapes=((3, 2), (2, 4))):
    torch.manual_seed(1)
    params = [nn.Parameter(torch.randn(s)) for s in shapes]
    optimizer = optimizer_of(params)
    for step in range(steps):
        optimizer.zero_grad()
        sum((p * p).sum() + p.sin().sum() for p in params).backward()
        optimizer.step()
    return [[p.detach() for p in params], [sorted(g) for g in optimizer.param_groups], optimizer.state_dict()["state"]]
def model_and_data():
    torch.manual_seed(2)
    model = nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3), nn.Linear(3, 1))
    return model, [torch.randn(4, 2) for _ in range(3)]
def averaged(**how):
    model, data = model_and_data()
    average = swa_utils.AveragedModel(model, **how)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for x in data:
        optimizer.zero_grad(); model(x).pow(2).sum().backward(); optimizer.step()
        average.update_parameters(model)
    return average
"""
_UNARY = ("abs", "acos", "asin", "atan", "ceil", "clone", "cos", "cosh", "erf", "erfc", "exp", "expm1", "floor", "frac",
          "lgamma", "log", "log10", "log1p", "log2", "neg", "reciprocal", "round", "rsqrt", "sigmoid", "sign", "sin",
          "sinh", "sqrt", "tan", "tanh", "trunc")
_BINARY = ("add", "sub", "mul", "div", "clamp_max", "clamp_min", "maximum", "minimum")
PROGRAMS = [
    f"result = [{', '.join(f'torch._foreach_{name}(a)' for name in _UNARY)}]",
    (f"for n in {[name for name in _UNARY if name != 'clone']}:\n"
     "    result = getattr(torch, f'_foreach_{n}_')(a)\n    assert result is a"),
    *[f"result = [torch._foreach_{n}(a, 2), torch._foreach_{n}(a, [2., 0.5]), torch._foreach_{n}(a, b)]"
      for n in _BINARY],
    *[f"torch._foreach_{n}_(a, 2); torch._foreach_{n}_(a, [2., 0.5]); torch._foreach_{n}_(a, b); result = a"
      for n in _BINARY],
    "result = torch._foreach_add(a, b, alpha=2), torch._foreach_sub(a, b, alpha=2)",
    "result = torch._foreach_add(a, torch.tensor(2)), torch._foreach_div(i, 2)",
    "result = torch._foreach_mul(a, torch.tensor(2.)), torch._foreach_div(a, torch.tensor(2.))",
    "result = torch._foreach_pow(a, 2), torch._foreach_pow(a, [2, 3])",
    "result = torch._foreach_pow(a, b), torch._foreach_pow(2, a)",
    "torch._foreach_pow_(a, 2); torch._foreach_pow_(a, b); result = a",
    *[f"result = torch._foreach_{n}(a, b, c), torch._foreach_{n}(a, b, c, 0.5), torch._foreach_{n}(a, b, c, [0.5, 2]), "
      f"torch._foreach_{n}(a, b, c, torch.tensor([0.5, 2])), torch._foreach_{n}_(a, b, c, value=3), a"
      for n in ("addcmul", "addcdiv")],
    "result = torch._foreach_lerp(a, b, 0.3), torch._foreach_lerp(a, b, c), torch._foreach_lerp(a, b, [0.1, 0.9])",
    "torch._foreach_lerp_(a, b, 0.3); torch._foreach_lerp_(a, b, c); result = a",
    "result = torch._foreach_norm(a), torch._foreach_norm(a, 1), torch._foreach_norm(a, float('inf'), torch.float64)",
    "result = torch._foreach_max(a), torch._foreach_powsum(a, 3), torch._foreach_mm([a[0]], [b[0]])",
    "result = torch._foreach_copy_(a, b), torch._foreach_zero_(b), a",
    "result = torch._foreach_abs(self=a), torch._foreach_add(self=a, scalar=2), torch._foreach_add(a, scalars=[1, 2])",
    ("x = [t.requires_grad_() for t in a]; r = torch._foreach_mul(torch._foreach_exp(x), b);"
     "result = torch.autograd.grad(sum(t.sum() for t in r), x)"),
    *[f"torch._foreach_{call}" for call in (
        "add()", "add(a)", "add([], 1)", "abs([])", "abs([1])", "add(a, [torch.ones(2)])", "add(a, [1.])",
        "add(a, torch.ones(2))", "mul(a, torch.ones(2))", "norm(i)", "norm([torch.ones(0)], float('inf'))",
        "max([torch.ones(0)])", "addcdiv(a, b, c, torch.tensor([1, 2, 3]))", "addcmul(a, b, [torch.ones(2)])",
        "addcmul(a, b, c, [1, 2, 3])", "div_(i, 2)", "add_([torch.ones(2, requires_grad=True)], 1)",
        "sub([torch.ones(2).bool()], [torch.ones(2).bool()])", "add([torch.ones(2)], [torch.ones(3)])",
        "abs(torch.ones(2))", "clamp_max(a)", "addcdiv(a, b, c, torch.ones(4)[::2])", "minimum([x * 1j for x in a], a)",
        "addcmul_(a, b, c, torch.ones(2, 2)[:, 1])", "maximum_([x * 1j for x in a], a)")],
    # averages
    *[f"m = averaged({how}); result = [dict(m.state_dict()), m(torch.ones(2, 2)).detach()]" for how in (
        "", "avg_fn=swa_utils.get_ema_avg_fn(0.9)", "multi_avg_fn=swa_utils.get_ema_multi_avg_fn(0.9)",
        "multi_avg_fn=swa_utils.get_swa_multi_avg_fn()", "use_buffers=True", "avg_fn=swa_utils.get_swa_avg_fn()",
        "use_buffers=True, multi_avg_fn=swa_utils.get_ema_multi_avg_fn(0.5)", "device='cpu'")],
    "m, d = model_and_data(); swa_utils.update_bn(d, m); result = [dict(m.state_dict()), m.training, m[1].momentum]",
    ("m, d = model_and_data(); m.eval(); swa_utils.update_bn([(x, 1) for x in d], m, 'cpu');"
     "result = dict(m.state_dict())"),
    "swa_utils.update_bn([torch.ones(2)], nn.Linear(2, 2)); result = 0",
    *[f"o = torch.optim.SGD([nn.Parameter(torch.ones(1))], lr=1.); s = swa_utils.SWALR(o, 0.1, {how}); result = []\n"
      "for _ in range(6): o.step(); s.step(); result.append(s.get_last_lr())\nresult.append(s.state_dict())"
      for how in ("3", "4, 'linear'", "0", "anneal_strategy='cos'", "3, 'x'", "-1")],
    ("rate = torch.tensor(0.5); o = torch.optim.SGD([nn.Parameter(torch.ones(1))], lr=1.); "
     "s = swa_utils.SWALR(o, rate); rate.zero_(); result = o.param_groups[0]['swa_lr']"),
    "swa_utils.get_ema_avg_fn(1.5)", "swa_utils.get_ema_multi_avg_fn(-1)", "averaged(avg_fn=len, multi_avg_fn=len)",
    # optimizers
    *[f"result = trained(lambda p: torch.optim.Muon(p, {how}))" for how in (
        "lr=0.1", "lr=0.1, nesterov=False", "lr=0.1, adjust_lr_fn='match_rms_adamw', weight_decay=0.",
        "lr=torch.tensor(0.1), ns_steps=3", "lr=-1.", "momentum=-1.", "weight_decay=-1.", "adjust_lr_fn='x'",
        "ns_steps=100", "ns_coefficients=(1, 2)")],
    "result = trained(torch.optim.Muon, shapes=((3,),))", "result = trained(torch.optim.SparseAdam)",
    *[("g = torch.sparse_coo_tensor([[0, 2, 2]], [1., 2., 3.], (3,), check_invariants=True);"
       f"p = nn.Parameter(torch.ones(3)); p.grad = g; o = torch.optim.{optimizer}\n"
       "for _ in range(3): o.step()\nresult = p.detach()") for optimizer in (
        "SGD([p], lr=0.1)", "SparseAdam([p], lr=0.1)", "SparseAdam([p], maximize=True, betas=(0.5, 0.9))",
        "Adagrad([p], lr=0.1)", "Adagrad([p], lr=0.1, weight_decay=0.1)", "Adam([p])", "RMSprop([p])", "Adamax([p])")],
    "torch.optim.SparseAdam([nn.Parameter(torch.ones(2))], lr=0.)", "torch.optim.SparseAdam([torch.ones(2) * 1j])",
    "result = repr(torch.optim.SparseAdam([nn.Parameter(torch.ones(2))])), repr(torch.optim.Muon([torch.ones(2, 2)]))",
    *[f"from torch.optim import _multi_tensor; result = trained(lambda p: _multi_tensor.{n}(p, lr=0.1))"
      for n in ("Adam", "SGD", "RMSprop")],
    *[f"s = [torch.tensor(2.), torch.tensor(3.)]; torch._fused_adam{w}_(a, b, c, [x * 2 for x in c], {m}, s, lr=0.1,"
      f"beta1=0.9, beta2=0.99, weight_decay=0.1, eps=1e-8, amsgrad={m != '[]'}, maximize={m != '[]'}); result = [a, c]"
      for w in ("", "w") for m in ("[]", "[x * 3 for x in c]")],
    ("torch._fused_sgd_(a, b, c, weight_decay=0.1, momentum=0.9, lr=torch.tensor(0.1), dampening=0., nesterov=True,"
     "maximize=False, is_first_step=False, grad_scale=torch.tensor(2.), found_inf=torch.tensor(0.)); result = [a, c]"),
    ("torch._fused_sgd_(a, b, [], weight_decay=0., momentum=0., lr=0.1, dampening=0., nesterov=False,"
     "maximize=True, is_first_step=True, found_inf=torch.tensor(1.)); result = [a, b]"),
    ("s = [torch.tensor(2.), torch.tensor(3.)]; torch._fused_adagrad_(a, b, c, s, lr=0.1, lr_decay=0.1,"
     "weight_decay=0.1, eps=1e-10, maximize=False); result = [a, c]"),
    ("p = nn.Parameter(torch.ones(2)); o = torch.optim.SGD([p], lr=0.1, momentum=0.9); p.grad = torch.ones(2);"
     "o.step(); q = torch.zeros(2, requires_grad=True); q.grad = torch.ones(2); s = o.state_dict()\n"
     "with torch.optim.swap_in_optimizer_params_and_state(o, {'p': q}, s): o.step()\n"
     "result = [p.detach(), q.detach(), o.state_dict(), s]"),
    *[("p = nn.Parameter(torch.ones(2)); o = torch.optim.SGD([p], lr=0.1, momentum=0.9); p.grad = torch.ones(2);"
       f"{'o.step();' if run else ''} s = o.state_dict(); {change}\n"
       "with torch.optim.swap_in_optimizer_params_and_state(o, {'p': p}, s): pass")
      for run, change in ((False, ""), (True, "s = 3"), (True, "s['state'] = 3"), (True, "s['param_groups'] = []"),
                          (True, "s['state'] = {0: 3}"), (True, "s['state'][7] = {}"), (True, "s['param_groups'] = 1"),
                          (True, "s['param_groups'][0]['x'] = 1"), (True, "s['param_groups'][0]['params'] = []"))],
    ("from torch.utils._foreach_utils import _group_tensors_by_device_and_dtype as g;"
     "r = g([[torch.ones(1), torch.ones(1).double(), torch.zeros(1)], [None] * 3], True);"
     "result = sorted(r.items(), key=str)"),
]


@pytest.mark.parametrize("program", PROGRAMS)
def test_program(program):
    compare(START + program, close=2e-5)
