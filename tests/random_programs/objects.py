"""Random programs about objects: modules, losses, optimizers, schedules, generators, printing, files and transforms.

    python -m tests.random_programs.objects --programs 2000
    python -m tests.random_programs.objects --replay 1234 --topic _optimizer

A program has one topic. It makes an object with random options, some of which do not fit, uses it and notes what it
shows: values, `repr`, state dictionaries, copies through pickle and `torch.save`, and the random numbers left behind.
"""

from __future__ import annotations

import argparse
import random
import sys
import time

from . import module_topics, training_topics, wide_topics  # noqa: F401  (they declare topics)
from .comparison import Disagreement, compare
from .differential import explained, libraries
from .execution import run
from .shrinking import decided
from .topics import BOOL, TOPICS, Lines, call_of, given_of, options_of, topic

# ----- printing -----

_VALUES = (
    "given({s}, 'float32', {n})", "given({s}, 'float64', {n}) * 1e{e}", "given({s}, 'int64', {n}) * 10 ** {e}",
    "given({s}, 'float32', {n}) * 1e{e}", "given({s}, 'bfloat16', {n})", "given({s}, 'float16', {n}) * 1e{e}",
    "given({s}, 'complex64', {n})", "given({s}, 'complex128', {n}) * 1e{e}", "given({s}, 'bool', {n})",
    "given({s}, 'uint8', {n})", "given({s}, 'int8', {n})", "torch.where(given({s}, 'float32', {n}) > 1, {v}, 0.5)",
    "given({s}, 'float32', {n}).round()", "given({s}, 'float32', {n}, grad=True)", "-given({s}, 'float64', {n}).abs()",
    "given({s}, 'float32', {n}, grad=True) * 2", "torch.nn.Parameter(given({s}, 'float32', {n}))",
    "given({s}, 'complex64', {n}).conj()", "given({s}, 'float32', {n}, how='expanded')", "torch.zeros({s})",
    "torch.empty({s}, device='meta')", "given({s}, 'float32', {n}).to_sparse()", "torch.full({s}, {v})",
    "torch.arange({e}0.0) * {v}", "torch.zeros({s}, dtype=torch.{d})", "given({s}, 'float32', {n}) * {v}",
    "torch.quantize_per_tensor(torch.zeros(2), 0.1, 0, torch.quint8)" * 0 + "given({s}, 'complex64', {n}) * {v}")


@topic
def _printed(r: random.Random) -> Lines:
    shape = r.choice(((), (1,), (3,), (2, 3), (0,), (2, 0), (1, 1), (2, 2, 2), (30,), (3, 40), (1200,), (60, 30),
        (1, 0, 2),
                      (2, 1, 2, 2), (500, 3), (2, 2, 300)))
    value = r.choice(_VALUES).format(
        s=shape, n=r.randrange(999), e=r.choice((0, 1, 3, 5, 8, 12)),
            d=r.choice(("float16", "int32", "complex64", "bool")),
        v=r.choice(("float('inf')", "-float('inf')", "float('nan')", "1e-9", "1e9", "123456.789", "-0.0", "1e38",
            "1e-42")))
    options = options_of(r, 0.3, precision=("0", "1", "3", "8", "12"), threshold=("0", "5", "1000", "float('inf')"),
                       edgeitems=("0", "1", "3", "10"), linewidth=("1", "20", "80", "200"),
                       sci_mode=("True", "False", "None"), profile=("'default'", "'short'", "'full'", "'x'"))
    show = r.choice(("repr(x)", "str(x)", "repr(x)", "f'{x}'", "repr([x, x])", "format(x, '.2f')", "x.__repr__()",
                     "repr(x.dtype) + repr(x.shape) + repr(x.device) + repr(x.layout)", "repr({'a': x})",
                     "repr(x.untyped_storage().nbytes())", "x.type()", "f'{x:>20}'", "repr(x.data)", "repr(x.T)"))
    return ["torch.set_printoptions(profile='default')", f"x = {value}", call_of("torch.set_printoptions", options),
            f"note(plain({show}))", "torch.set_printoptions(profile='default')"]


# ----- optimizers -----

_LR = ("0.1", "0.01", "1.0", "torch.tensor(0.1)", "-0.1", "0.0", "1")
_DECAY = ("0.0", "0.1", "-0.1")
_COMMON = {"maximize": BOOL, "foreach": ("True", "False", "None"), "differentiable": ("False", "False", "True"),
    "capturable": ("False", "True")}
_OPTIMIZERS: dict[str, dict[str, tuple[str, ...]]] = {
    "SGD": {"momentum": ("0.9", "0.0", "-1"), "dampening": ("0.0", "0.5"), "weight_decay": _DECAY, "nesterov": BOOL,
        "fused": BOOL},
    "Adam": {"betas": ("(0.9, 0.99)", "(1.0, 0.9)", "(0.5, -1)", "(torch.tensor(0.9), 0.9)"),
        "eps": ("1e-8", "0.1", "-1.0"), "weight_decay": _DECAY,
             "amsgrad": BOOL, "fused": BOOL, "decoupled_weight_decay": BOOL},
    "AdamW": {"betas": ("(0.9, 0.99)",), "eps": ("0.1",), "weight_decay": _DECAY, "amsgrad": BOOL, "fused": BOOL},
    "NAdam": {"betas": ("(0.5, 0.9)",), "weight_decay": _DECAY, "momentum_decay": ("0.1", "-0.1"),
        "decoupled_weight_decay": BOOL},
    "RAdam": {"betas": ("(0.5, 0.9)",), "weight_decay": _DECAY, "decoupled_weight_decay": BOOL},
        "Adamax": {"betas": ("(0.5, 0.9)",), "eps": ("0.1",), "weight_decay": _DECAY},
    "Adagrad": {"lr_decay": ("0.1", "-0.1"), "weight_decay": _DECAY, "initial_accumulator_value": ("0.5", "-1"),
        "eps": ("0.1",), "fused": BOOL},
    "Adadelta": {"rho": ("0.5", "2.0"), "eps": ("0.1",), "weight_decay": _DECAY},
        "ASGD": {"lambd": ("0.1",), "alpha": ("0.5",), "t0": ("1", "1e6"), "weight_decay": _DECAY},
    "RMSprop": {"alpha": ("0.5", "-1"), "eps": ("0.1",), "weight_decay": _DECAY, "momentum": ("0.9",),
        "centered": BOOL},
    "Rprop": {"etas": ("(0.5, 1.2)", "(1.5, 0.5)"), "step_sizes": ("(1e-6, 50)",)},
    "Adafactor": {"beta2_decay": ("-0.8", "0.5"), "eps": ("(None, 0.001)",), "d": ("1.0", "0.5"),
        "weight_decay": _DECAY},
    "LBFGS": {"max_iter": ("2", "3"), "max_eval": ("4",), "history_size": ("2",),
        "line_search_fn": ("'strong_wolfe'", "'x'", "None"), "tolerance_grad": ("1e-7",)},
    "SparseAdam": {"betas": ("(0.5, 0.9)",)}, "Muon": {"momentum": ("0.9",), "nesterov": BOOL,
        "weight_decay": _DECAY, "ns_steps": ("3", "200")}}
_SCHEDULES = (
    "StepLR(o, {i})", "StepLR(o, 2, gamma={f})", "MultiStepLR(o, [1, 3], {f})", "ExponentialLR(o, {f})",
        "CosineAnnealingLR(o, {i}, {f})",
    "ConstantLR(o, {f}, {i})", "LinearLR(o, {f}, 1.0, {i})", "PolynomialLR(o, {i}, {f})",
        "LambdaLR(o, lambda e: 0.9 ** e)",
    "LambdaLR(o, [lambda e: e, lambda e: 1])", "MultiplicativeLR(o, lambda e: 0.5)", "CyclicLR(o, 0.01, {f}, 2)",
        "CyclicLR(o, 0.01, 0.1, mode='x')",
    "OneCycleLR(o, {f}, total_steps={i})",
        "OneCycleLR(o, 0.5, epochs=2, steps_per_epoch=2, anneal_strategy='linear')",
            "CosineAnnealingWarmRestarts(o, {i}, {i})",
    "ReduceLROnPlateau(o, 'min', {f}, {i})", "ReduceLROnPlateau(o, 'x')", "StepLR(o, 2, last_epoch={i})",
        "StepLR(3, 1)",
    ("SequentialLR(o, [torch.optim.lr_scheduler.ConstantLR(o, 0.1), torch.optim.lr_scheduler.ExponentialLR(o, 0.9)], "
    "[{i}])"),
    "ChainedScheduler([torch.optim.lr_scheduler.ConstantLR(o, 0.1), torch.optim.lr_scheduler.ExponentialLR(o, {f})])")


@topic
def _optimizer(r: random.Random) -> Lines:
    name = r.choice(tuple(_OPTIMIZERS))
    options = options_of(r, 0.3, lr=_LR, **_OPTIMIZERS[name], **(_COMMON if name not in ("LBFGS", "SparseAdam", "Muon",
        "Adafactor") else {"maximize": BOOL} if name != "LBFGS" else {}))
    dtype = r.choice(("float64", "float64", "float32", "complex128", "float16"))
    shape = r.choice(((2, 3), (2, 3), (3,), ()))
    params = r.choice(("[p, q]", "[p]", "[{'params': [p]}, {'params': [q], 'lr': 0.5}]", "p", "[]",
        "[('p', p), ('q', q)]", "iter([p, q])",
                       "[p, p]", "[p * 2]", "{p}", "[{'params': p, 'x': 1}]",
                           "[p.detach()]")) if r.random() < 0.5 else "[p, q]"
    loss = "((p * p.conj()).real.sum() + (q * q.conj()).real.sum() * 2)"
    lines = [f"p, q = {given_of(r, shape, dtype, True)}, {given_of(r, shape, dtype, True)}",
        f"o = torch.optim.{call_of(name, params, options)}",
             "note(plain(repr(o)))"]
    if r.random() < 0.25:
        schedule = r.choice(_SCHEDULES).format(i=r.choice((1, 2, 3, 0, -1)), f=r.choice((0.5, 0.9, 0.1, 1.5)))
        lines += [f"s = torch.optim.lr_scheduler.{schedule}", "note(plain(repr(s.state_dict())))"]
        for _ in range(3):
            lines += ["o.step()", f"s.step({'1.0' if 'Plateau' in schedule else ''})",
                "note([g['lr'] for g in o.param_groups], plain(s.get_last_lr()))"]
        return lines
    for _ in range(3):
        if name == "LBFGS":
            lines += [f"def closure():\n    o.zero_grad()\n    l = {loss}\n    l.backward()\n    return l",
                "note(described(o.step(closure)))"]
        else:
            lines += [f"o.zero_grad({r.choice(('', 'False', 'set_to_none=True'))})", f"{loss}.backward()",
                r.choice(("o.step()", "o.step()", "o.step(lambda: 3)", "note(o.step())"))]
        lines += ["note(described([p, q]))"]
        if r.random() < 0.15:
            lines.append(r.choice((
                "o.add_param_group({'params': [p]})", "o.add_param_group({'params': [torch.ones(1)]})",
                    "o.add_param_group([p])", "o.param_groups[0]['lr'] = 0.3",
                "o.load_state_dict(o.state_dict())", "import copy; o = copy.deepcopy(o)",
                    "import pickle; o = pickle.loads(pickle.dumps(o))", "p.grad = None",
                "o.load_state_dict({'state': {}, 'param_groups': []})", "o.load_state_dict({})",
                    "p.requires_grad_(False)", "o.state.clear()",
                "h = o.register_step_post_hook(lambda *a: note('hook'))", "p.data = p.data * 2",
                    "p.grad = p.grad.to_sparse() if p.grad is not None else None")))
    lines.append("note([(k, sorted((n, described(v)) for n, v in s.items() if not isinstance(v, list))) "
                 "for k, s in o.state_dict()['state'].items()])")
    lines.append("note(plain(repr(o.state_dict()['param_groups'])))")
    return lines


# ----- state, copies, files -----

_THINGS = ("given((2, 3), 'float32', 3)", "given((2, 3), 'float32', 3, grad=True)",
    "given((2, 3), 'complex64', 3).conj()", "given((4,), 'int8', 3)[1:]",
           "torch.nn.Parameter(given((2,), 'float64', 3))", "torch.nn.Linear(2, 3)",
               "[given((2,), 'bool', 3), 'a', 1]", "given((2, 3), 'float32', 3).to_sparse()",
           "torch.Size([2, 3])", "torch.float16", "torch.device('cpu')", "given((2, 3), 'bfloat16', 3).t()",
               "torch.nn.BatchNorm1d(3)",
           "given((2, 3), 'float32', 3, how='expanded')", "given((2, 3), 'float32', 3, grad=True) * 2",
               "torch.empty(2, device='meta')",
           "torch.nn.Sequential(torch.nn.Linear(1, 1), torch.nn.ReLU())", "{'a': given((2,), 'int64', 3)}",
               "torch.strided",
           "torch.nn.utils.rnn.pack_padded_sequence(given((3, 2, 1), 'float32', 3), [3, 2])",
           "torch.return_types.max((given((2,), 'float32', 3), given((2,), 'int64', 3)))",
               "torch.nn.ParameterList([given((2,), 'float64', 3)])",
                   "torch.optim.SGD([given((2,), 'float64', 3, grad=True)], 0.1)")


@topic
def _copied(r: random.Random) -> Lines:
    options = options_of(r, 0.4, weights_only=BOOL, mmap=BOOL, map_location=(
        "'cpu'", "None", "lambda s, l: s", "'cuda'"))
    lines = ["import copy, pickle, io, collections", f"torch.manual_seed(3); x = {r.choice(_THINGS)}"]
    if r.random() < 0.3:  # other objects than these are C's, whose errors name their classes in another way
        lines.append("if isinstance(x, (torch.Tensor, torch.nn.Module)):\n    x.extra = 3")
    lines.append(r.choice((
        "y = copy.deepcopy(x)", "y = copy.copy(x)", "y = pickle.loads(pickle.dumps(x))",
            "y = pickle.loads(pickle.dumps(x, 2))", "y = copy.deepcopy([x, x]); note(y[0] is y[1])",
        f"f = io.BytesIO(); torch.save(x, f); f.seek(0); y = torch.load(f, {options})",
        "f = io.BytesIO(); torch.save({'a': x, 'b': [x]}, f); f.seek(0); y = torch.load(f, weights_only=False)",
        ("f = io.BytesIO(); torch.save(x, f, _use_new_zipfile_serialization=False); f.seek(0); "
        "y = torch.load(f, weights_only=False)"),
        "f = io.BytesIO(b'abc'); y = torch.load(f)", "f = io.BytesIO(pickle.dumps(3)); y = torch.load(f)",
            "y = torch.load('/nonexistent/file')", "torch.save(x, '/nonexistent/file')", "torch.save(x, 3)")))
    lines += ["note(type(y).__name__, plain(repr(y)))",
        "note(described(y) if isinstance(y, torch.Tensor) else 0, getattr(y, 'extra', None))",
              "note([(k, described(v)) for k, v in y.state_dict().items()] if isinstance(y, torch.nn.Module) else 0)"]
    return lines


@topic
def _loaded(r: random.Random) -> Lines:
    """State dictionaries that do not fit, hooks on them, buffers and parameters of every kind."""
    model = r.choice(("torch.nn.Linear(2, 3)", "torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.BatchNorm1d(3))",
        "torch.nn.LSTM(2, 3)",
                      "torch.nn.ModuleDict({'a': torch.nn.Linear(1, 2)})", "torch.nn.ParameterList([torch.ones(2)])",
                          "torch.nn.ParameterDict({'a': torch.ones(2)})"))
    change = r.choice(("d.popitem()", "d['other'] = torch.ones(1)", "d[next(iter(d))] = torch.ones(7)",
        "d[next(iter(d))] = 3", "d[next(iter(d))] = d[next(iter(d))].double()",
                       "d = list(d.items())", "d = None", "d['x.y'] = 1; d.popitem()",
                           "d = {k: v.to('meta') for k, v in d.items()}", "pass", "d = {}",
                               "d = {k.replace('w', 'v'): v for k, v in d.items()}",
                       "d[next(iter(d))] = d[next(iter(d))].t()", "d[next(iter(d))] = torch.tensor(1.)",
                           "d[next(iter(d))] = torch.nn.Parameter(d[next(iter(d))])"))
    act = r.choice((
        f"r = m.load_state_dict(d, {options_of(r, 0.5, strict=BOOL, assign=BOOL)})", "r = m.load_state_dict(d)",
            "m.register_buffer('b', torch.ones(2), persistent=False); r = list(m.state_dict())",
        "m.register_buffer('weight', torch.ones(1)); r = 0", "m.register_parameter('p', torch.ones(1)); r = 0",
            "m.register_parameter('p.q', None); r = 0", "m.register_buffer('', None); r = 0",
        "m.register_module('a.b', m); r = 0", "m.add_module('x', 3); r = 0", "m.weight = torch.ones(2); r = 0",
            "m.x = torch.nn.Parameter(torch.ones(2)); r = [n for n, _ in m.named_parameters()]",
        "r = m.get_parameter('weight').shape", "r = m.get_submodule('0').training", "r = m.get_buffer('x')",
            "del m.weight; r = list(m.state_dict())", "r = m.undefined",
                "r = m.state_dict(prefix='a.', keep_vars=True)",
        "r = [n for n, _ in m.named_modules(prefix='z', remove_duplicate=False)]",
            "r = [n for n, _ in m.named_children()]", "r = m(torch.tensor([[1., 2.], [4., 3.]]))",
                "r = m(torch.ones(3, 7))",
                "r = m.to(torch.float64, copy=True)", "r = m.to('cuda')",
        "r = m.to(torch.int64)", "r = m.type(torch.float64)", "m.train(3); r = 0",
            "r = torch.nn.utils.parameters_to_vector(m.parameters())",
                "r = torch.nn.utils.clip_grad_norm_(m.parameters(), 1.0)",
        "torch.nn.utils.vector_to_parameters(torch.ones(99), m.parameters()); r = 0",
            "r = torch.nn.utils.clip_grad_value_(m.parameters(), 1.0)", "r = m.__dir__()[-3:]",
                "r = sorted(m._parameters)",
        "m.set_extra_state(3); r = 0", "r = m.get_extra_state()",
            "m.register_forward_hook(lambda m, a, o: o[0]); r = 0", "r = m.extra_repr()",
                "m.double(); r = [p.dtype for p in m.parameters()]", "m[0] = 3; r = 0", "r = m[5]", "r = len(m)",
                    "m.append(torch.nn.ReLU()); r = m",
        "r = 'a' in m", "m.share_memory(); r = 0", "r = m == m", "m.forward = None; r = m(torch.ones(2, 2))",
            "r = m.parameters()", "r = type(m.state_dict()).__name__, m.state_dict()._metadata"))
    return ["torch.manual_seed(3)", f"m = {model}", "d = m.state_dict()", change, act, "note(plain(repr(r)))",
        "note([(k, described(v)) for k, v in m.state_dict().items()])"]


# ----- random numbers -----

_DRAWS = (
    "torch.rand({s}, generator=g)", "torch.randn({s}, generator=g, dtype=torch.{d})",
        "torch.randint({i}, {j}, {s}, generator=g)", "torch.randperm({n}, generator=g)",
            "torch.normal(0.0, 1.0, {s}, generator=g)",
    "torch.normal(x, 2.0, generator=g)", "torch.bernoulli(x.sigmoid(), generator=g)",
        "torch.multinomial(x.abs() + 0.1, {n}, {b}, generator=g)", "x.uniform_({i}, {j}, generator=g)",
            "x.normal_({i}, {j}, generator=g)",
    "x.exponential_({j}, generator=g)", "x.geometric_({p}, generator=g)", "x.cauchy_(0, {j}, generator=g)",
        "x.log_normal_(0, {j}, generator=g)", "x.random_(generator=g)", "x.random_({n}, generator=g)",
            "x.random_({i}, {j}, generator=g)",
    "x.bernoulli_({p}, generator=g)", "torch.poisson(x.abs(), generator=g)",
        "torch.binomial(x.abs().round(), x.sigmoid(), generator=g)",
            "torch._standard_gamma(x.abs() + 0.1, generator=g)", "torch._sample_dirichlet(x.abs() + 0.1, generator=g)",
    "torch.rand_like(x, dtype=torch.{d})", "torch.randint_like(x, {i}, {j})", "torch.nn.functional.dropout(x, {p})",
        "torch.nn.functional.gumbel_softmax(x, 1.0, {b})", "torch.nn.functional.rrelu(x, training=True)",
    "torch.nn.functional.feature_alpha_dropout(x, {p}, True)", "torch.empty({s}, dtype=torch.{d}).random_()",
        "torch.empty({s}, dtype=torch.{d}).uniform_()", "torch.empty({s}, dtype=torch.{d}).normal_()",
            "torch.randint({n}, {s}, dtype=torch.{d})",
    "torch.randperm({n}, dtype=torch.{d})", "torch.nn.init.kaiming_uniform_(x, {p})",
        "torch.nn.init.xavier_normal_(x)", "torch.nn.init.orthogonal_(x)",
            "torch.nn.init.trunc_normal_(x, 0, 1, {i}, {j}, generator=g)", "torch.nn.init.sparse_(x, {p})",
                "torch.nn.init.eye_(x)",
    "torch.nn.init.dirac_(x)", "torch.nn.init.calculate_gain('leaky_relu', {p})",
        "torch.nn.init.kaiming_normal_(x, mode='fan_out', nonlinearity='selu')",
            "torch.quasirandom.SobolEngine(2, True, seed=3).draw({n})",
                "torch.distributions.Beta(x.abs() + 0.1, 1.0).sample()",
    "torch.distributions.Categorical(logits=x).sample(({n},))", "torch.distributions.Gamma({j}, 1.0).rsample({s})",
        "torch.distributions.Poisson({j}).sample({s})",
            "torch.utils.data.random_split(range(9), [4, 5], g)[0].indices",
    "list(torch.utils.data.RandomSampler(range({n}), {b}, {n}, g))",
        "list(torch.utils.data.WeightedRandomSampler([0.1, 0.9], {n}, True, g))", "torch.initial_seed()",
            "torch.seed() * 0", "g.initial_seed()", "g.device", "torch.get_rng_state()[:8].sum()",
                "g.get_state().shape",
    "g.clone_state().get_state().sum()", "g.graphsafe_get_state()",
        "torch.nn.functional.scaled_dot_product_attention(x[None], x[None], x[None], dropout_p={p})",
            "torch.empty({s}).exponential_()", "torch.randn({s}, device='meta', generator=g)",
                "torch.rand({s}, generator=3)", "torch.pca_lowrank(x, 2)[1].shape",
    "torch.rand({s}, out=torch.empty({s}, dtype=torch.{d}))",
        "torch.randint({j}, {s}, generator=g, out=torch.empty(2, dtype=torch.int64))",
            "torch.randn(*{s}, generator=g, requires_grad={b})", "torch.empty({s}, dtype=torch.{d}).bernoulli_({p})")


@topic
def _drawn(r: random.Random) -> Lines:
    def one() -> str:
        return r.choice(_DRAWS).format(
            s=r.choice(((), (3,), (2, 3), (17,), (16,), (0,), (40,), (-1,), (5, 5))),
                d=r.choice(("float32", "float64", "float16", "bfloat16", "int64", "int32", "uint8", "bool",
                    "complex64", "int8")),
            i=r.choice((0, 1, -3, 5, 0.5)), j=r.choice((1, 2, 100, 2**33, 0, -1, 1.5)),
                n=r.choice((0, 1, 2, 3, 20, -1)), p=r.choice((0.0, 0.3, 0.5, 1.0, 1.5)), b=r.choice(BOOL))
    shape = r.choice(((2, 3), (4,), (3, 3), (20,), ()))
    dtype = r.choice(("float32", "float64", "float32", "float16", "bfloat16", "int64", "complex64"))
    seed = r.choice((0, 3, 2**31, 2**63, -5, 2**64, 1.5, "None")) if r.random() < 0.15 else 7
    generator = r.choice(("torch.Generator().manual_seed(3)", "torch.Generator().manual_seed(3)", "None",
                          "torch.default_generator", "torch.Generator()"))
    lines = [f"torch.manual_seed({seed})", f"g = {generator}", f"x = {given_of(r, shape, dtype, r.random() < 0.2)}"]
    for _ in range(r.choice((1, 2, 3))):
        if r.random() < 0.15:
            lines.append(r.choice(("s = torch.get_rng_state(); torch.rand(3); torch.set_rng_state(s)",
                "torch.set_rng_state(torch.zeros(3, dtype=torch.uint8))", "torch.set_rng_state(torch.zeros(3))",
                    "g.set_state(torch.Generator().get_state())",
                                   "g.manual_seed('a')", "with torch.random.fork_rng():\n    torch.rand(5)",
                                       "torch.set_rng_state(torch.get_rng_state()[:9])", "g.manual_seed(2**70)",
                                           "g = torch.Generator('cuda')", "g.set_state(3)", "torch.manual_seed(-1)",
                                               "torch.Generator(3)")))
        lines += [f"y = {one()}", "note(described(y))"]
    return [*lines,
        "note(torch.rand(2), torch.rand(1, generator=g) if g is not None and g.initial_seed() == 3 else 0)"]


# ----- transforms and autograd's functions -----

_FUNCTIONS = ("lambda x: x.sin().sum()", "lambda x: (x * x).sum()", "lambda x: x * 2", "lambda x: x.sum() * 3 + x",
    "lambda x: (x, x * 2)", "lambda x: {'a': x.sum(), 'b': x}", "lambda x: 3", "lambda x: x.relu()",
        "lambda x: x.detach()", "lambda x: x.sum().item()",
              "lambda x: torch.rand(2) * x.sum()", "lambda x: x.mul_(2)", "lambda x: x[0]",
                  "lambda x: x.reshape(-1).cumsum(0)", "lambda x: x.exp().prod()", "lambda x: x @ x.mT",
                      "lambda x: x if x.sum() > 0 else -x", "lambda x: torch.nn.functional.dropout(x)",
                          "lambda x: x.T", "lambda x: x.softmax(-1)",
              "lambda x, y=None: x if y is None else x * y", "lambda x: x.norm()", "lambda x: x.clone().fill_(1)",
                  "lambda x: None", "lambda x: x.max(0)", "lambda x: x.int()", "lambda x: x.sort()[0]",
                      "lambda x: x.expand(2, *x.shape)")
_TRANSFORMS = ("torch.func.grad({f})(x)", "torch.func.grad({f}, argnums={i})(x)", "torch.func.grad_and_value({f})(x)",
    "torch.func.grad({f}, has_aux=True)(x)", "torch.func.vmap({f}, {d}, {d})(x)",
        "torch.func.vmap({f}, in_dims={d})(x)", "torch.func.vmap({f}, out_dims={d})(x)",
               "torch.func.vmap({f}, randomness={r})(x)", "torch.func.vmap({f}, chunk_size={i})(x)",
                   "torch.func.jacrev({f})(x)", "torch.func.jacfwd({f})(x)",
                       "torch.func.jacrev({f}, chunk_size={i})(x)", "torch.func.hessian({f})(x)",
                           "torch.func.vjp({f}, x)[1](x)", "torch.func.vjp({f}, x)[0]",
               "torch.func.jvp({f}, (x,), (x,))", "torch.func.jvp({f}, (x,), (x[0],))", "torch.func.jvp({f}, x, x)",
                   "torch.func.linearize({f}, x)[1](x)", "torch.func.functionalize({f})(x)",
                       "torch.func.vmap(torch.func.grad({f}))(x)", "torch.func.grad(torch.func.grad({f}))(x)",
                           "torch.vmap({f})(x, x)",
               "torch.func.vmap({f}, ({d}, None))(x, x)", "torch.autograd.functional.jacobian({f}, x)",
                   "torch.autograd.functional.hessian({f}, x, vectorize={b})",
                       "torch.autograd.functional.vjp({f}, x, x)",
                           "torch.autograd.functional.jvp({f}, x, x, strict={b})",
                               "torch.autograd.functional.hvp({f}, x, x)",
               "torch.autograd.functional.vhp({f}, x, x, create_graph={b})", "torch.autograd.gradcheck({f}, x)",
                   "torch.autograd.forward_ad.make_dual(x, x)",
                       "torch.utils.checkpoint.checkpoint({f}, x, use_reentrant={b})",
                           "torch.utils.checkpoint.checkpoint({f}, x)",
               "torch.autograd.functional.jacobian({f}, x, strategy='forward-mode', vectorize={b})",
                   "torch.func.stack_module_state([torch.nn.Linear(1, 1)] * 2)[0]['weight'].shape",
                       "torch.func.functional_call(torch.nn.Linear(3, 1), {{}}, (x,)).shape",
               "torch.func.functional_call(torch.nn.Linear(3, 1), {{'weight': x}}, x).shape",
                   "torch.autograd.grad(({f})(x), x)", "torch.autograd.grad(({f})(x).sum(), x, {b}, {b})",
                       "torch.autograd.grad(({f})(x), x, x, is_grads_batched={b})",
                           "torch.autograd.grad([x.sum()], [x, x], allow_unused={b})", "({f})(x).backward()",
                               "({f})(x).backward(x)",
               "torch.autograd.backward([x.sum(), x], [None, x])", "torch.autograd.grad(x.sum(), 3)",
                   "torch.autograd.grad(x.sum(), [])", "x.backward(inputs=[x])",
                       "torch.autograd.grad(x.sum(), x, materialize_grads=True, allow_unused=False)",
               "torch.vmap({f}, in_dims=({d}, {d}))(x)", "torch.func.vmap(lambda a: a.sum() + x, {d})(x)",
                   "torch.func.vmap(torch.func.vmap({f}))(x)", "torch.func.jvp({f}, (x, x), (x, x))",
                       "torch.func.debug_unwrap(x)", "torch.func.grad(lambda d: d['a'].sum())({{'a': x}})")


@topic
def _transformed(r: random.Random) -> Lines:
    text = r.choice(_TRANSFORMS).format(f=f"({r.choice(_FUNCTIONS)})", i=r.choice((0, 1, "(0,)", -1, "None", 2)),
        d=r.choice((0, 1, -1, "None", 5, "'a'", "(0, 0)", "(0,)")),
            r=r.choice(("'same'", "'different'", "'error'", "'x'")), b=r.choice(BOOL)).removesuffix("; ")
    dtype = r.choice(("float64", "float64", "float32", "int64", "complex128"))
    mode = r.choice(("", "", "", "with torch.no_grad():\n    ", "with torch.inference_mode():\n    "))
    shape = r.choice(((2, 3), (3, 3), (3,), (), (0, 2)))
    return [f"x = {given_of(r, shape, dtype, r.random() < 0.4 and dtype != 'int64')}", "torch.manual_seed(3)",
            f"{mode}y = {text}",
            "note(described(list(y.items()) if isinstance(y, dict) else y))", "note(torch.rand(1))",
                "note(described(x), described(x.grad))"]


def written(seed: int, chosen: str = "") -> Lines:
    """The program of a seed."""
    r = random.Random(seed)
    topics = [t for t in TOPICS if chosen in t.__name__]
    return r.choice(topics)(r)


def checked(seed: int, chosen: str = "") -> tuple[Lines, Disagreement | None]:
    """The program of a seed, and where the libraries disagree about it."""
    here, there = libraries()
    program = written(seed, chosen)
    steps = run(program, there)
    return program, decided(program, compare(run(program, here), steps), steps, here, there)


def main() -> int:
    """Run programs; the exit status says whether all agreed."""
    parser = argparse.ArgumentParser(prog="python -m tests.random_programs.objects", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--programs", type=int, default=2000, help="how many (default 2000)")
    parser.add_argument("--seed", type=int, default=0, help="the first program's seed (default 0)")
    parser.add_argument("--replay", type=int, metavar="SEED", help="run the program of one seed")
    parser.add_argument("--topic", default="", help="only topics with this in their names")
    parser.add_argument("--most", type=int, default=10, help="stop after so many disagreements (default 10)")
    given = parser.parse_args()
    failed, began = [], time.perf_counter()
    for seed in [given.replay] if given.replay is not None else range(given.seed, given.seed + given.programs):
        program, found = checked(seed, given.topic)
        if found is None:
            continue
        failed.append(seed)
        print(explained(seed, program, found, command=f"tests.random_programs.objects --topic '{given.topic}'"),
            flush=True)
        if len(failed) >= given.most:
            break
    print(f"{len(failed)} disagreements, {time.perf_counter() - began:.0f} s")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
