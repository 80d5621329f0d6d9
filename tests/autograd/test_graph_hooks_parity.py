"""Saved-tensor hooks, multi-grad hooks and checkpoints, compared with PyTorch.

Each program takes a module, PyTorch or flambeau, and returns what it saw; both must see the same.
"""

from __future__ import annotations

import importlib
import re
import warnings

import numpy as np
import pytest

import flambeau

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.parity

PROGRAMS = []


def program(function):
    PROGRAMS.append(pytest.param(function, id=function.__name__))
    return function


def plain(value):
    """What a program saw, in words and numbers that do not depend on the module."""
    if isinstance(value, (list, tuple)):
        return [plain(v) for v in value]
    if isinstance(value, dict):
        return {k: plain(v) for k, v in value.items()}
    if hasattr(value, "detach"):
        return [str(value.dtype).partition(".")[2], list(value.shape), value.requires_grad,
                None if value.grad_fn is None else value.grad_fn.name(),
                np.asarray(value.detach().tolist(), complex).round(4).tolist()]
    if isinstance(value, BaseException):
        text = re.sub(r"0x[0-9a-f]+", "0x", str(value).replace("flambeau.", "torch."))
        return [type(value).__name__, text]
    return value


def caught(function):
    try:
        return function()
    except Exception as error:
        return error


def leaf(t, *values):
    return t.tensor(values, requires_grad=True)


class Spy:
    """Hooks that note all they see."""

    def __init__(self, t):
        self.seen = []
        self.hooks = t.autograd.graph.saved_tensors_hooks(self.pack, self.unpack)
        self.t = t

    def pack(self, x):
        self.seen.append(["pack", plain(x), x._version, x.is_leaf, self.t.is_grad_enabled()])
        return x.detach().clone()

    def unpack(self, x):
        self.seen.append(["unpack", self.t.is_grad_enabled()])
        return x


def spied(t, function, *inputs):
    spy = Spy(t)
    with spy.hooks:
        out = function(*inputs)
    spy.seen.append(plain(out))
    out.sum().backward()
    return spy.seen, [x.grad for x in inputs if x.requires_grad]


FUNCTIONS = {
    "products": lambda t, x: (x * x) * 3 + x / 2,
    "matrices": lambda t, x: x.view(2, 2) @ x.view(2, 2),
    "linear": lambda t, x: t.nn.functional.linear(x.view(2, 2), x.view(2, 2), x[:2]),
    "softmax": lambda t, x: x.softmax(0).log(),
    "loss": lambda t, x: t.nn.functional.mse_loss(x, t.ones(4)),
    "written": lambda t, x: x.clone().sin_().exp_(),
    "indices": lambda t, x: x[t.tensor([0, 3])] * x[:2],
    "masks": lambda t, x: t.where(x > 0, x, x.exp()),
    "sorted": lambda t, x: x.sort().values * x.max(),
    "norms": lambda t, x: x.norm() + x.std() + x.prod(),
    "narrow": lambda t, x: x.half().mul(2).float().pow(2),
    "complex": lambda t, x: x.to(t.complex64).exp().abs(),
    "cumulated": lambda t, x: x.cumprod(0).cumsum(0),
    "pooled": lambda t, x: t.nn.functional.avg_pool1d(x.view(1, 1, 4), 2).tanh(),
    "convolved": lambda t, x: t.nn.functional.conv1d(x.view(1, 1, 4), x[:2].view(1, 1, 2)).relu(),
    "embedded": lambda t, x: t.nn.functional.embedding(t.tensor([1, 0]), x.view(2, 2)).sigmoid(),
}


for _name, _function in FUNCTIONS.items():
    def _spied(t, _function=_function):
        return spied(t, lambda x: _function(t, x), leaf(t, 0.5, -1.0, 2.0, 0.25))
    _spied.__name__ = f"packed_{_name}"
    program(_spied)


@program
def graphs_of_gradients(t):
    x = leaf(t, 0.5, 1.5)
    spy = Spy(t)
    with spy.hooks:
        g, = t.autograd.grad((x * x).exp().sum(), x, create_graph=True)
        g.sum().backward()
    return sorted(map(str, spy.seen)), x.grad


@program
def functions(t):
    class F(t.autograd.Function):
        @staticmethod
        def forward(ctx, x, fixed):
            out = x * 2
            ctx.save_for_backward(x, None, out, fixed)
            return out

        @staticmethod
        def backward(ctx, g):
            seen.append(list(ctx.saved_tensors))
            return g * 3, None

    seen = []
    return spied(t, lambda x: F.apply(x, t.ones(2)), leaf(t, 1.0, 2.0)), seen


@program
def places(t):
    x = leaf(t, 1.0, 2.0)
    y = x * x
    place = y.grad_fn._raw_saved_self
    seen = [place.data, place.unpack_hook, place.unpack()]
    seen.append(place.register_hooks(lambda v: [v, v * 2], lambda pair: pair[1]))
    seen += [place.data, place.unpack(), y.grad_fn._saved_self, y.grad_fn._saved_other]
    seen.append(caught(lambda: place.register_hooks(lambda v: v, lambda v: v)))
    y.sum().backward()
    seen += [x.grad, caught(lambda: place.register_hooks(lambda v: v, lambda v: v))]
    z = x.exp()
    z.grad_fn._raw_saved_result.register_hooks(lambda v: v + 1, lambda v: v)
    seen.append(z.grad_fn._saved_result)
    z.sum().backward()
    seen.append(x.grad)
    loss = t.nn.functional.nll_loss(t.log_softmax(x.view(1, 2), 1), t.tensor([1]))
    seen.append(caught(lambda: loss.grad_fn._raw_saved_weight.register_hooks(lambda v: v, lambda v: v)))
    w = x * x
    w.grad_fn._raw_saved_self.register_hooks(lambda v: v, lambda v: 5)
    seen.append(caught(lambda: w.sum().backward()))
    return seen


@program
def hooks_that_write(t):
    x = leaf(t, 1.0).clone()

    def write(v):
        v += 1
        return v

    with t.autograd.graph.saved_tensors_hooks(write, lambda v: v):
        return [caught(x.exp), caught(x.sin)]


@program
def refusals(t):
    graph = t.autograd.graph

    def use():
        with graph.save_on_cpu():
            return "used"

    seen = []
    with graph.disable_saved_tensors_hooks("outer"):
        seen.append(caught(use))
        with graph.disable_saved_tensors_hooks("inner"):
            seen.append(caught(use))
        seen.append(caught(use))
    seen.append(caught(use))
    with graph.save_on_cpu():
        seen.append(caught(graph.disable_saved_tensors_hooks("late").__enter__))
    seen.append(caught(use))
    seen.append(caught(lambda: graph.get_gradient_edge(t.ones(1))))
    seen.append(caught(lambda: graph.increment_version(1)))
    seen.append(caught(lambda: graph.register_multi_grad_hook([leaf(t, 1.0)], print, mode="one")))
    seen.append(caught(lambda: graph.register_multi_grad_hook([t.ones(1)], print)))
    seen.append(caught(lambda: graph.region_activation_memory_budget(1.0)))
    return seen


@program
def many_gradients(t):
    seen = []
    a, b, c = (leaf(t, float(k)) for k in range(1, 4))
    x, y = a * b, b.sin()
    t.autograd.graph.register_multi_grad_hook((a, b, c, x, y), lambda grads: seen.append(list(grads)))
    t.autograd.graph.register_multi_grad_hook((x, y), lambda g: seen.append(["any", g]), mode="any")
    out = x * y
    out.backward(retain_graph=True)
    (y * c).backward(retain_graph=True)
    out.backward(inputs=[a], retain_graph=True)
    out.backward(inputs=[b])
    seen.append(caught(lambda: t.autograd.grad(a * 2, a)))
    return seen


@program
def writes_to_saved_tensors(t):
    seen = []
    with t.autograd.graph.allow_mutation_on_saved_tensors() as context:
        for write in (lambda b: b.sin_(), lambda b: b.zero_(), lambda b: b[0].mul_(5), lambda b: b.view(-1).add_(1)):
            a = leaf(t, 1.0, 2.0)
            b = a.clone()
            out = (b ** 2).sum()
            write(b)
            seen.append(len(context.cloned))
            out.backward()
            seen += [a.grad, len(context.cloned)]
        nested = t.autograd.graph.allow_mutation_on_saved_tensors()
        seen.append(caught(nested.__enter__))
    return seen


@program
def writes_outside_their_block(t):
    with t.autograd.graph.allow_mutation_on_saved_tensors():
        out = (leaf(t, 1.0) ** 2).sum()
    return caught(out.backward)


# ----- checkpoints -----------------------------------------------------------------------


def checkpoints(t):
    return importlib.import_module(t.__name__ + ".utils.checkpoint")


def body(x):
    return x.sin().exp().sin()


@program
def checkpointed(t):
    seen = []
    for reentrant in (False, True):
        x = leaf(t, 0.5, 1.0)
        calls = []
        out = checkpoints(t).checkpoint(lambda x, calls=calls: (calls.append(t.is_grad_enabled()), body(x))[1], x,
                                        use_reentrant=reentrant)
        out.sum().backward(retain_graph=True)
        seen += [out, x.grad, list(calls)]
        out.sum().backward()
        seen += [x.grad, list(calls), caught(lambda out=out: out.sum().backward())]
    return seen


@program
def nested_and_differentiated_twice(t):
    c = checkpoints(t)
    seen = []
    for early in (False, True):
        x = leaf(t, 0.3, 0.7)
        with c.set_checkpoint_early_stop(early):
            out = c.checkpoint(lambda x: c.checkpoint(body, x, use_reentrant=False).cos(), x, use_reentrant=False)
            g, = t.autograd.grad(out.sum(), x, create_graph=True)
            g.sum().backward()
        seen += [out, g, x.grad]
    return seen


@program
def dropped_out(t):
    t.manual_seed(3)
    x = t.ones(8, requires_grad=True)
    seen = []
    for reentrant in (False, True):
        out = checkpoints(t).checkpoint(lambda x: t.nn.functional.dropout(x, 0.5) * x, x, use_reentrant=reentrant)
        t.rand(2)
        out.sum().backward()
        seen += [out, x.grad, t.rand(2)]
    return seen


@program
def how_often_it_runs(t):
    c = checkpoints(t)
    seen = []
    for early in (False, True):
        calls, tail = [], []

        def f(x, calls=calls, tail=tail):
            calls.append(1)
            y = x.sin() * 2
            tail.append(1)
            return y + 1, x.cos()

        x = leaf(t, 0.5)
        a, b = c.checkpoint(f, x, use_reentrant=False, early_stop=early)
        t.autograd.grad(b, x, retain_graph=True)
        seen.append([len(calls), len(tail)])
        a.grad_fn.next_functions[0][0].next_functions[0][0]._saved_self
        seen.append([len(calls), len(tail)])
        (a * b).backward()
        seen.append([len(calls), len(tail)])
    return seen


@program
def recomputations_that_differ(t):
    c = checkpoints(t)

    def run(first, second, **how):
        calls = []

        def f(x):
            calls.append(1)
            return (first if len(calls) == 1 else second)(x)

        x = leaf(t, 1.0)
        return caught(lambda: c.checkpoint(f, x, use_reentrant=False, **how).sum().backward()), x.grad

    two, three = lambda x: x.sin().exp(), lambda x: x.sin().exp().sin()
    wide = lambda x: (x.sin() * t.ones(3)).exp()
    return [run(two, three), run(three, two), run(two, three, early_stop=False), run(two, wide),
            run(two, wide, determinism_check="none"), run(two, two, determinism_check="some"), run(two, two)]


@program
def unpacked_tensors_of_other_shapes_and_dtypes(t):
    seen = []
    for size, unpacked, f in (
            ((1,), t.ones(3), t.sin), ((2,), t.ones(3, 2), lambda x: x.exp().sin()), ((2,), t.ones(1, 2), t.sin),
            ((2,), t.ones(3, 2), lambda x: x * x), ((2,), t.ones(2, dtype=t.float64), t.sin),
            ((2, 3), t.ones(5, 2), lambda x: x @ t.ones(3, 2)),
            ((3, 2), t.ones(2, 2), lambda x: x @ t.ones(2, 2)), ((2,), t.ones(3), t.sin), ((2,), t.ones(3), t.exp),
            ((2, 3), t.ones(3, 4), lambda x: x @ t.ones(3, 2)), ((2,), t.ones(3), lambda x: x * t.ones(2))):
        for create_graph in (False, True):
            x = t.full(size, 2.0, requires_grad=True)
            with t.autograd.graph.saved_tensors_hooks(lambda v: v, lambda v, unpacked=unpacked: unpacked):
                y = f(x)
            with warnings.catch_warnings(action="ignore"):
                seen += [caught(lambda: y.sum().backward(create_graph=create_graph)), x.grad]  # noqa: B023
    return seen


@program
def refused_checkpoints(t):
    c = checkpoints(t)
    x = leaf(t, 1.0)
    check = c.checkpoint
    seen = [
        lambda: t.autograd.grad(check(body, x, use_reentrant=True), x),
        lambda: check(body, x, use_reentrant=True).backward(inputs=[x]),
        lambda: check(lambda x: x.detach(), x, use_reentrant=True).backward(),
        lambda: check(body, x, use_reentrant=True, a=1, b=2),
        lambda: check(body, x, use_reentrant=True, debug=True),
        lambda: check(body, x, use_reentrant=False, debug=True, context_fn=lambda: c.noop_context_fn()),
        lambda: c.checkpoint_sequential([body], 1, x, use_reentrant=False, a=1),
        lambda: c.checkpoint_sequential([body], 2, x, use_reentrant=False),
        lambda: c.detach_variable([x]),
        lambda: c.create_selective_checkpoint_contexts(2),
    ]
    return [caught(function) for function in seen]


@program
def warned(t):
    c = checkpoints(t)
    seen = []
    for call in (lambda x: c.checkpoint(body, x), lambda x: c.checkpoint_sequential([body, body], 2, x),
                 lambda x: c.checkpoint(body, x.detach(), use_reentrant=True),
                 lambda x: c.checkpoint(body, x.detach(), use_reentrant=False)):
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            call(leaf(t, 1.0))
        seen.append([[w.category.__name__, str(w.message)] for w in told])
    return seen


@program
def kept_selectively(t):
    c = checkpoints(t)
    aten = t.ops.aten
    seen = []
    for keep in ([], [aten.exp.default], [aten.sin.default, aten.mul.Tensor]):
        asked = []

        def policy(ctx, op, *args, keep=keep, asked=asked, **kwargs):
            asked.append([str(op), plain(ctx.op_output.detach()), len(args)])
            return c.CheckpointPolicy.MUST_SAVE if op in keep else c.CheckpointPolicy.PREFER_RECOMPUTE

        x = leaf(t, 0.5, 1.0)
        out = c.checkpoint(lambda x: (x.sin() * x).exp().sum(), x, use_reentrant=False,
                           context_fn=lambda policy=policy: c.create_selective_checkpoint_contexts(policy))
        out.backward(retain_graph=True)
        seen += [asked, x.grad]
        if keep:
            seen.append(caught(out.backward))
    return seen


@program
def order_in_which_saved_tensors_are_packed_and_unpacked(torch):
    functional = torch.nn.functional
    made = iter(range(1, 1000))

    def new(*shape):
        count = int(np.prod(shape))
        return (torch.arange(float(count)).reshape(shape) / 8 + next(made)).requires_grad_()

    def seen(call, *arguments):
        found = []

        def hook(tensor):
            found.append(round(float(tensor.detach().double().sum()), 3))
            return tensor

        with torch.autograd.graph.saved_tensors_hooks(hook, hook):
            call(*arguments).sum().backward()
        return found

    pair, matrices = lambda: (new(3), new(3)), lambda: (new(2, 3, 3), new(2, 3, 3))
    calls = [seen(call, *pair()) for call in (
        torch.mul, torch.div, torch.atan2, torch.hypot, torch.fmod, torch.remainder, torch.maximum, torch.logaddexp,
        torch.outer, torch.dist, torch.linalg.cross, lambda x, y: x.tanh() * y.sigmoid(), lambda x, y: (x * 2).mul_(y),
        lambda x, y: torch.clamp(x, y, y + 1), lambda x, y: torch.lerp(x, y, x * y))]
    return [*calls, *(seen(call, *matrices()) for call in (torch.bmm, torch.matmul)),
            seen(torch.mm, new(2, 3), new(3, 2)),
            seen(functional.linear, new(2, 3), new(4, 3), new(4)), seen(functional.conv1d, new(1, 2, 4), new(3, 2, 3)),
            seen(lambda x: x.gather(1, torch.tensor([[1]])), new(2, 3)),
            seen(lambda x: torch.linalg.svd(x)[1], torch.diag(torch.tensor([3., 2.])).requires_grad_())]


@pytest.mark.parametrize("run", PROGRAMS)
def test_hooks_see_pytorchs_gradients(run):
    assert plain(run(flambeau)) == plain(run(torch))
