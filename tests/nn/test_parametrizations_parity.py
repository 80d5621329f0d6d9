"""Parametrizations, weight and spectral norm, pruning, fusion and member access, compared with PyTorch."""

from __future__ import annotations

import pytest

from tests.nn.same_program import compare

pytest.importorskip("torch")
pytestmark = pytest.mark.parity

START = """
from torch.nn.utils import *
from torch.nn.utils import parametrizations, parametrize, prune, fusion
from torch.nn.utils import _named_member_accessor
def trained(layer, *shape, steps=2):
    x = torch.linspace(-1, 1, torch.Size(shape).numel()).reshape(shape)
    for _ in range(steps):
        layer.zero_grad()
        out = layer(x)
        (out ** 2).sum().backward()
    grads = {name: p.grad for name, p in layer.named_parameters()}
    return [out.detach(), grads, dict(layer.state_dict()), repr(layer)]
class Symmetric(nn.Module):
    def forward(self, x): return x.triu() + x.triu(1).mT
    def right_inverse(self, x): return x.triu()
class Rank1(nn.Module):
    def forward(self, x, y): return x.unsqueeze(-1) @ y.unsqueeze(-2)
    def right_inverse(self, w): return w[..., 0], w[..., 0, :]
class Double(nn.Module):
    def forward(self, x): return x.double()
class Wide(nn.Module):
    def forward(self, x): return torch.cat([x, x])
class Skew(nn.Module):
    def forward(self, x): return x - x.mT
"""
PROGRAMS = [
    # hooks
    "result = trained(weight_norm(nn.Linear(3, 4)), 2, 3)",
    "result = trained(weight_norm(nn.Linear(3, 4), dim=None), 2, 3)",
    "result = trained(weight_norm(nn.Conv2d(2, 3, 2), dim=1), 1, 2, 4, 4)",
    "result = trained(weight_norm(nn.ConvTranspose1d(2, 3, 2), dim=-1), 1, 2, 4)",
    "result = trained(remove_weight_norm(weight_norm(nn.Linear(3, 4))), 2, 3)",
    "weight_norm(weight_norm(nn.Linear(3, 4)))", "remove_weight_norm(nn.Linear(3, 4))",
    "l = weight_norm(nn.Linear(3, 4)); result = l.weight",
    "result = trained(spectral_norm(nn.Linear(3, 4)), 2, 3)",
    "result = trained(spectral_norm(nn.Conv2d(2, 3, 2), n_power_iterations=3, eps=1e-3), 1, 2, 4, 4)",
    "result = trained(spectral_norm(nn.ConvTranspose2d(2, 3, 2)).eval(), 1, 2, 4, 4)",
    "result = trained(remove_spectral_norm(spectral_norm(nn.Linear(3, 4))), 2, 3)",
    "spectral_norm(spectral_norm(nn.Linear(3, 4)))", "remove_spectral_norm(nn.Linear(3, 4))",
    "spectral_norm(nn.Linear(3, 4), n_power_iterations=0)", "spectral_norm(nn.Linear(3, 4, bias=False), 'bias')",
    "l = spectral_norm(nn.Linear(3, 4)); s = l.state_dict(); result = dict(s._metadata)",
    ("l = spectral_norm(nn.Linear(3, 4)); l(torch.ones(1, 3)); s = l.state_dict(); del s['weight_v']; "
     "s['weight'] = l.weight.detach(); s._metadata[''].pop('spectral_norm'); l.load_state_dict(s); "
     "result = dict(l.state_dict())"),
    # parametrizations
    "result = trained(parametrizations.weight_norm(nn.Linear(3, 4)), 2, 3)",
    "result = trained(parametrizations.weight_norm(nn.Linear(3, 4), dim=None), 2, 3)",
    "result = trained(parametrizations.spectral_norm(nn.Linear(3, 4)), 2, 3)",
    "result = trained(parametrizations.spectral_norm(nn.Linear(3, 4), 'bias'), 2, 3)",
    "result = trained(parametrizations.spectral_norm(nn.ConvTranspose2d(2, 3, 2)), 1, 2, 4, 4)",
    "parametrizations.spectral_norm(nn.Linear(3, 4), dim=4)", "parametrizations.spectral_norm(nn.Linear(3, 4), 'x')",
    "parametrizations.spectral_norm(nn.Linear(3, 4), n_power_iterations=0)",
    *[f"l = parametrizations.orthogonal(nn.Linear({i}, {o}), orthogonal_map={m!r}, use_trivialization={t}); "
      f"result = trained(l, 2, {i}); result[1] = result[2] = 0" for i, o in ((3, 3), (2, 4), (4, 2))
      for m in ("matrix_exp", "cayley", "householder", None) for t in (True, False)],
    "parametrizations.orthogonal(nn.Linear(3, 4), 'bias')", "parametrizations.orthogonal(nn.Linear(3, 4), 'x')",
    "parametrizations.orthogonal(nn.Linear(3, 4), orthogonal_map='x')",
    "parametrizations.orthogonal(nn.Linear(3, 4, dtype=torch.complex64), orthogonal_map='householder')",
    ("l = parametrizations.orthogonal(nn.Linear(3, 3), use_trivialization=False, orthogonal_map='cayley'); "
     "l.weight = torch.eye(3)"),
    "result = trained(parametrize.register_parametrization(nn.Linear(3, 3), 'weight', Symmetric()), 2, 3)",
    ("l = parametrize.register_parametrization(nn.Linear(3, 3), 'weight', Symmetric()); l.weight = torch.ones(3, 3); "
     "result = [l.weight, l.parametrizations.weight.original, parametrize.is_parametrized(l, 'bias'), "
     "parametrize.is_parametrized(l), parametrize.type_before_parametrizations(l).__name__]"),
    ("l = parametrize.register_parametrization(nn.Linear(3, 3), 'weight', Symmetric());"
     "parametrize.register_parametrization(l, 'weight', nn.Tanh()); result = trained(l, 2, 3)"),
    "result = trained(parametrize.register_parametrization(nn.Linear(3, 4), 'weight', Rank1()), 2, 3)",
    "l = parametrize.register_parametrization(nn.Linear(3, 4), 'weight', Double())",
    "l = parametrize.register_parametrization(nn.Linear(3, 4), 'weight', Wide())",
    "l = parametrize.register_parametrization(nn.Linear(3, 4), 'weight', Wide(), unsafe=True); result = l.weight",
    "l = parametrize.register_parametrization(nn.Linear(3, 3), 'weight', Skew()); l.weight = torch.ones(3, 3)",
    ("l = parametrize.register_parametrization(nn.Linear(3, 3), 'weight', Skew());"
     "parametrize.register_parametrization(l, 'weight', Wide())"),
    ("l = parametrize.register_parametrization(nn.Linear(3, 3), 'weight', Skew());"
     "parametrize.register_parametrization(l, 'weight', Double())"),
    "parametrize.register_parametrization(nn.Linear(3, 3), 'nothing', Skew())",
    "parametrize.remove_parametrizations(nn.Linear(3, 3), 'weight')",
    ("l = parametrize.register_parametrization(nn.Linear(3, 3), 'weight', Skew());"
     "result = trained(parametrize.remove_parametrizations(l, 'weight'), 2, 3)"),
    ("l = parametrize.register_parametrization(nn.Linear(3, 3), 'weight', Skew());"
     "result = trained(parametrize.remove_parametrizations(l, 'weight', leave_parametrized=False), 2, 3)"),
    ("l = parametrize.register_parametrization(nn.Linear(3, 4), 'weight', Rank1());"
     "result = parametrize.remove_parametrizations(l, 'weight', leave_parametrized=False)"),
    ("l = parametrize.register_parametrization(nn.Linear(3, 4), 'weight', Rank1());"
     "result = trained(parametrize.remove_parametrizations(l, 'weight'), 2, 3)"),
    ("l = parametrize.register_parametrization(nn.Linear(3, 3), 'weight', Skew()); o = nn.Linear(3, 3);"
     "result = trained(parametrize.transfer_parametrizations_and_params(l, o), 2, 3)"),
    ("import copy; l = parametrize.register_parametrization(nn.Linear(3, 3), 'weight', Skew());"
     "result = trained(copy.deepcopy(l), 2, 3)"),
    "import pickle; l = parametrize.register_parametrization(nn.Linear(3, 3), 'weight', Skew()); pickle.dumps(l)",
    ("l = parametrize.register_parametrization(nn.Linear(3, 3), 'weight', Skew())\n"
     "with parametrize.cached(): result = [l.weight is l.weight, l.weight]\nresult.append(l.weight is l.weight)"),
    ("l = nn.BatchNorm1d(2); parametrize.register_parametrization(l, 'running_mean', nn.Tanh());"
     "result = [l.running_mean, dict(l.named_buffers())]"),
    ("l = weight_norm(nn.Linear(3, 4)); o = parametrizations.weight_norm(nn.Linear(3, 4));"
     "o.load_state_dict(l.state_dict()); result = dict(o.state_dict())"),
    "parametrize.ParametrizationList([], nn.Parameter(torch.ones(2)))",
    # pruning
    *[f"l = nn.Linear(6, 4); prune.{call}; result = trained(l, 2, 6)" for call in (
        "identity(l, 'bias')", "random_unstructured(l, 'weight', 5)", "l1_unstructured(l, 'weight', 0.3)",
        "random_structured(l, 'weight', 2, 1)", "ln_structured(l, 'weight', 0.5, 2, 0)",
        "l1_unstructured(l, 'bias', 0)",
        "ln_structured(l, 'weight', 1, float('inf'), -1)", "custom_from_mask(l, 'bias', torch.tensor([1, 0, 0, 1]))",
        "l1_unstructured(l, 'weight', 7, importance_scores=torch.arange(24.).reshape(4, 6))",
        "global_unstructured([(l, 'weight'), (l, 'bias')], prune.L1Unstructured, amount=9)",
        "global_unstructured([(l, 'weight')], prune.LnStructured, amount=9, n=1)",
        "global_unstructured(3, prune.Identity)",
        "l1_unstructured(l, 'weight', -1)", "l1_unstructured(l, 'weight', 1.5)", "l1_unstructured(l, 'weight', 'x')",
        "l1_unstructured(l, 'weight', 100)", "ln_structured(l, 'bias', 1, 2, 0)", "ln_structured(l, 'weight', 1, 2, 5)",
        "remove(l, 'weight')", "l1_unstructured(l, 'weight', 3, importance_scores=torch.ones(2))",
        "custom_from_mask(l, 'bias', torch.tensor([1, 0]))")],
    ("l = nn.Linear(6, 4); prune.l1_unstructured(l, 'weight', 5); prune.ln_structured(l, 'weight', 1, 2, 1);"
     "prune.random_unstructured(l, 'weight', 4); h = list(l._forward_pre_hooks.values());"
     "result = [*trained(l, 2, 6), len(h), [type(m).__name__ for m in h[0]], prune.is_pruned(l)]"),
    "l = nn.Linear(6, 4); prune.l1_unstructured(l, 'weight', 5); prune.remove(l, 'weight'); result = trained(l, 2, 6)",
    "result = prune.L1Unstructured(2).prune(torch.arange(6.).reshape(2, 3))",
    "result = prune.LnStructured(1, 1, 0).prune(torch.ones(3, 2), importance_scores=torch.arange(6.).reshape(3, 2))",
    "prune.L1Unstructured(2).prune(torch.ones(3), importance_scores=torch.ones(2))",
    "prune.PruningContainer(3)", "prune.PruningContainer().add_pruning_method(3)",
    # fusion and formats
    ("c = nn.Conv2d(2, 3, 2, bias=False).eval(); b = nn.BatchNorm2d(3).eval(); b.running_mean += 1; b.running_var *= 3;"
     "f = fuse_conv_bn_eval(c, b); result = [f.weight, f.bias]"),
    ("c = nn.ConvTranspose2d(2, 3, 2).eval(); b = nn.BatchNorm2d(3, affine=False).eval(); b.running_mean += 1;"
     "f = fuse_conv_bn_eval(c, b, transpose=True); result = [f.weight, f.bias]"),
    ("c = nn.Linear(2, 3).eval(); b = nn.BatchNorm1d(3).eval(); b.running_mean += 1; b.running_var *= 3;"
     "f = fuse_linear_bn_eval(c, b); result = [f.weight, f.bias]"),
    "fuse_linear_bn_eval(nn.Linear(2, 3).eval(), nn.BatchNorm1d(2).eval())",
    "fuse_conv_bn_eval(nn.Conv1d(2, 3, 1), nn.BatchNorm1d(3))",
    "fuse_conv_bn_eval(nn.Conv1d(2, 3, 1).eval(), nn.BatchNorm1d(3, track_running_stats=False).eval())",
    ("c = nn.Sequential(nn.Conv2d(2, 3, 2), nn.Linear(2, 2));"
     "convert_conv2d_weight_memory_format(c, torch.channels_last); result = [c[0].weight, c[0].weight.stride()]"),
    ("c = convert_conv3d_weight_memory_format(nn.Conv3d(2, 3, 2), torch.channels_last_3d);"
     "result = [c.weight, c.weight.stride()]"),
    "result = repr(skip_init(nn.Linear, 5, 1))", "skip_init(torch.Tensor, 5)", "skip_init(nn.ReLU)",
    # member access
    ("m = nn.Sequential(nn.Linear(1, 2), nn.BatchNorm1d(2)); a = _named_member_accessor.NamedMemberAccessor(m);"
     "old = a.swap_tensor('0.weight', torch.ones(2, 1)); a.set_tensor('1.running_mean', torch.ones(2));"
     "a.del_tensor('1.bias'); result = [old, dict(m.state_dict()), a.check_keys(['0.weight', 'x'])]"),
    *[f"a = _named_member_accessor.NamedMemberAccessor(nn.Sequential(nn.Linear(1, 2))); a.{call}" for call in (
        "get_tensor('0.x')", "get_submodule('1')", "get_submodule('0.weight')", "set_tensor('0.weight', 3)",
        "swap_tensor('0.y', torch.ones(1))", "swap_tensors_dict({'0.weight': torch.ones(2), '0.q': torch.ones(1)})",
        "swap_submodule('5', nn.ReLU())", "set_tensor('', torch.ones(1))", "swap_submodule('0', 3)",
        "set_tensors(['0.weight'], [])", "del_tensor('0.q')")],
    ("from torch.nn.utils import stateless; l = nn.Linear(1, 1);"
     "result = stateless.functional_call(l, {'bias': torch.ones(1)}, torch.zeros(1))"),
]


@pytest.mark.parametrize("program", PROGRAMS)
def test_program(program):
    compare(START + program, close=2e-5)
