"""Meta tensors compared with PyTorch: each program runs on both."""

from __future__ import annotations

import inspect
import resource
import warnings
from typing import Any

import pytest

import flambeau
from flambeau._tensor.overriding.entry_points import in_use
from flambeau.backends.compiled.thresholds import LARGE_SEEN
from flambeau.modes import dispatch_in_use, special

PROGRAMS = {
    "operators": """
        x = torch.empty(2, 3, device="meta")
        for y in (x, x + 1, x @ x.t(), x.sum(), x[0], torch.cat([x, x]), F.relu(x), x.double(), x.max(1)[1], x.clone(),
                  torch.zeros_like(x), x.new_ones(3), x.detach(), torch.rand(2, device="meta"), x.half(),
                  x.expand(4, 2, 3),
                  torch.ones(2, device="meta"), torch.tensor([1., 2], device="meta"), torch.arange(5, device="meta"),
                  torch.ones(2).to("meta"), torch.ones(2, 2).t().to("meta"), x.view(3, 2), x.data, torch.ones(2),
                  torch.empty_like(x, device="cpu").fill_(1), F.rrelu(x.t()), F.rrelu(x, training=True)):
            out.append((str(y), y.device.type, y.is_meta, y.stride()))
        out.append(x.to("meta") is x)
    """,
    "errors": """
        x = torch.empty(2, 3, device="meta")
        for f in (lambda: x.sum().item(), lambda: x.tolist(), lambda: x.numpy(), lambda: bool(x.sum()), lambda: x.cpu(),
                  lambda: x.to("cpu"), lambda: torch.ones(2, 3).copy_(x)):
            try: f()
            except Exception as error: out.append((type(error).__name__, str(error)))
        try: x.nonzero()
        except NotImplementedError: out.append("nonzero")
    """,
    "beside tensors of the CPU": """
        a, b, zero = torch.ones(2, 2), torch.ones(2, 2, device="meta"), torch.tensor(1.)
        for f in (torch.add, torch.pow, torch.eq, torch.maximum, torch.atan2, torch.hypot, torch.clamp,
                  lambda x, y: torch.cat([x, y]), lambda x, y: torch.stack([x, y]), lambda x, y: torch.mv(x, y[0]),
                  lambda x, y: torch.dot(x[0], y[0]), lambda x, y: torch.where(x > 0, x, y), torch.dist,
                  lambda x, y: torch.where(x > 0, y, y), lambda x, y: torch.lerp(x, x, y), torch.kron,
                  lambda x, y: torch.addcmul(x, x, y), F.mse_loss, F.binary_cross_entropy, torch.outer,
                  lambda x, y: x.masked_fill(y > 0, 1.), lambda x, y: torch.meshgrid(x[0], y[0], indexing="ij")):
            for x, y in ((a, b), (b, a), (b, b)):
                try: out.append(str(f(x, y)))
                except RuntimeError as error: out.append(str(error))
        for x, y in ((b, zero), (zero, b), (zero.to("meta"), zero), (a, zero.to("meta"))):
            try: out.append(str(x + y))
            except RuntimeError as error: out.append(str(error))
    """,
    "writes": """
        x = torch.empty(2, 3, device="meta")
        state = torch.get_rng_state()
        x.normal_(); torch.nn.init.kaiming_uniform_(x); x.fill_(2); x.zero_(); x.add_(1); x.copy_(torch.ones(3))
        x[0] = 1
        F.rrelu_(x, training=True); F.rrelu(x, training=True)
        out.append(torch.equal(state, torch.get_rng_state()))
        a = torch.empty(3, 4, device="meta", requires_grad=True)
        (a * 2).sum().backward()
        out.append(str(a.grad))
    """,
    "modules": """
        import copy
        with torch.device("meta"):
            m = torch.nn.Sequential(torch.nn.Linear(4, 5), torch.nn.LayerNorm(5), torch.nn.Conv2d(1, 2, 3),
                                    torch.nn.Embedding(3, 2), torch.nn.BatchNorm1d(3))
            out.append((str(torch.ones(2)), str(torch.get_default_device())))
        out.append([(n, p.device.type, type(p).__name__) for n, p in m.named_parameters()])
        out.append([b.device.type for b in m.buffers()])
        out.append(str(m[0](torch.empty(2, 4, device="meta"))))
        out.append(list(m[2](torch.empty(1, 1, 8, 8, device="meta")).shape))
        out.append(copy.deepcopy(m[0]).weight.device.type)
        try: m.to("cpu")
        except NotImplementedError as error: out.append(str(error))
        out.append([p.device.type for p in m.to_empty(device="cpu").parameters()])
        lin = torch.nn.Linear(2, 3, device="meta")
        out.append(str(lin.load_state_dict(torch.nn.Linear(2, 3).state_dict(), assign=True)))
        out.append((lin.weight.device.type, list(lin(torch.ones(1, 2)).shape)))
        torch.set_default_device("meta")
        out.append(str(torch.zeros(1)))
        torch.set_default_device(None)
        out.append(str(torch.zeros(1)))
    """,
}


def _run(module: Any, program: str) -> list[Any]:
    out: list[Any] = []
    scope = {"torch": module, "F": module.nn.functional, "out": out}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        exec(inspect.cleandoc(program), scope)
    scope.clear()
    return [eval(repr(each).replace("flambeau.", "torch.")) for each in out]


@pytest.mark.parity
@pytest.mark.parametrize("name", PROGRAMS)
def test_program(name: str) -> None:
    torch = pytest.importorskip("torch")
    assert _run(flambeau, PROGRAMS[name]) == _run(torch, PROGRAMS[name])


def test_a_meta_tensor_changes_nothing_for_others() -> None:
    """Its array alone tells operators of it: no mode is counted, and no public function is replaced."""
    large_seen, LARGE_SEEN[0] = LARGE_SEEN[0], False
    (flambeau.empty(1 << 12, 1 << 12, device="meta").t() + 1)[0].clone()
    assert not LARGE_SEEN[0]  # small operators do not look for large arrays
    LARGE_SEEN[0] = large_seen
    before = special[0], dispatch_in_use[0], in_use[0]
    x = flambeau.empty(2, device="meta", requires_grad=True)
    (x.exp() + flambeau.nn.Parameter(x)).sum().backward()
    assert (special[0], dispatch_in_use[0], in_use[0]) == before
    function = flambeau.compile(lambda a: (a * 2).sin().sum())
    for _ in range(3):
        expected = function(flambeau.ones(3))
    cache, = function._signatures.values()
    assert cache.entries
    assert function(x).is_meta
    assert flambeau.equal(function(flambeau.ones(3)), expected)
    assert len(function._signatures) == 1


def test_moving_to_meta_copies_nothing():
    x = flambeau.empty(1 << 14, 1 << 14).t()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    y = x.to("meta", flambeau.float64)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 1 << 19  # KiB: the elements have 2 GiB
    assert y.stride() == x.stride()
    assert (y.dtype, y.device.type) == (flambeau.float64, "meta")
