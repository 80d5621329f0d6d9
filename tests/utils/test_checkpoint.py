"""Activation checkpointing: gradients, memory, errors of recomputation, selective checkpointing."""

from __future__ import annotations

import contextlib
import functools
import gc
import re
import subprocess
import sys
import threading
import warnings
import weakref

import pytest

import flambeau as torch
from flambeau import nn
from flambeau._tensor.dispatch.interception import Interceptor
from flambeau.modes import special
from flambeau.ops.aten import overload_of
from flambeau.utils.checkpoint import (
    CheckpointError,
    CheckpointPolicy,
    GraphExecGroup,
    checkpoint,
    checkpoint_sequential,
    create_selective_checkpoint_contexts,
    detach_variable,
    noop_context_fn,
    set_checkpoint_debug_enabled,
    set_checkpoint_early_stop,
)

BOTH = pytest.mark.parametrize("reentrant", [False, True])
STOPS = pytest.mark.parametrize("early_stop", [False, True])


@pytest.fixture(autouse=True)
def nothing_is_left_on():
    before = special[0]
    yield
    assert special[0] == before


def leaf(*values):
    return torch.tensor(values, requires_grad=True)


def body(x):
    return x.sin().exp().sin()


def quietly(function, *args, **kwargs):
    return checkpoint(function, *args, use_reentrant=False, **kwargs)


class Calls:
    """A function that counts its calls."""

    def __init__(self, function):
        self.function, self.count = function, 0

    def __call__(self, *args, **kwargs):
        self.count += 1
        return self.function(*args, **kwargs)


def network():
    torch.manual_seed(0)
    return nn.Sequential(*[layer for _ in range(4) for layer in (nn.Linear(8, 8), nn.Tanh())])


# ----- the same results ------------------------------------------------------------------


@BOTH
def test_gradients(reentrant):
    model, x = network(), torch.randn(3, 8, requires_grad=True)

    def gradients(run):
        x.grad = None
        model.zero_grad()
        out = run(x)
        out.square().sum().backward()
        return [out.tolist(), x.grad.tolist(), *(p.grad.tolist() for p in model.parameters())]

    assert gradients(lambda x: checkpoint(model, x, use_reentrant=reentrant)) == gradients(model)


@BOTH
def test_the_function_runs_twice(reentrant):
    f, x = Calls(body), leaf(1.0)
    out = checkpoint(f, x, use_reentrant=reentrant)
    assert f.count == 1
    out.backward()
    assert f.count == 2


@BOTH
def test_rng_state_is_preserved(reentrant):
    x = torch.ones(100, requires_grad=True)
    torch.manual_seed(5)
    out = checkpoint(lambda x: nn.functional.dropout(x, 0.5), x, use_reentrant=reentrant)
    torch.rand(3)
    stream = torch.get_rng_state()
    out.sum().backward()
    assert torch.equal(x.grad, out)
    assert torch.equal(torch.get_rng_state(), stream)


@BOTH
def test_preserve_rng_state_false(reentrant):
    x = torch.ones(100, requires_grad=True)
    torch.manual_seed(5)
    out = checkpoint(lambda x: nn.functional.dropout(x, 0.5) * x, x, use_reentrant=reentrant, preserve_rng_state=False)
    before = torch.get_rng_state()
    out.sum().backward()
    assert not torch.equal(torch.get_rng_state(), before)


@pytest.mark.parametrize("reentrant", [True, False])
@pytest.mark.parametrize("backward_too", [True, False])
def test_autocast_is_as_it_was_in_forward(reentrant, backward_too):
    layer, seen = torch.nn.Linear(2, 2), []

    def run(x):
        y = layer(x.relu())
        seen.append(y.dtype)
        return y.sin()

    x = torch.ones(1, 2, requires_grad=True)
    with torch.autocast("cpu", enabled=not backward_too):
        y = checkpoint(run, x * 1, use_reentrant=reentrant)
    with torch.autocast("cpu", enabled=backward_too):
        y.float().sum().backward()
    assert seen == [torch.float32 if backward_too else torch.bfloat16] * 2


def test_outputs_inputs_and_keywords_of_any_kind():
    def f(x, things, *, factor=None):
        return {"out": things["f"](x * things["k"]) * factor, "rest": ["text", 1]}

    x, factor = leaf(2.0), leaf(3.0)
    found = quietly(f, x, {"k": 4, "f": torch.sin}, factor=factor)
    assert found["rest"] == ["text", 1]
    found["out"].backward()
    want = f(y := leaf(2.0), {"k": 4, "f": torch.sin}, factor=(z := leaf(3.0)))["out"]
    want.backward()
    assert (x.grad.tolist(), factor.grad.tolist()) == (y.grad.tolist(), z.grad.tolist())


def test_closure_tensors():
    w, x = leaf(2.0), leaf(3.0)
    seen = []
    w.register_hook(lambda g: seen.append(g.item()))
    quietly(lambda h: w * h, w * x).backward()
    assert seen == [12.0]
    assert x.grad.item() == 4.0


def test_no_grad():
    x, f = leaf(1.0), Calls(body)
    with torch.no_grad():
        assert not quietly(f, x).requires_grad
    assert f.count == 1
    assert not quietly(f, x.detach()).requires_grad


@STOPS
def test_double_backward(early_stop):
    def twice(f):
        x = torch.tensor([0.3, 0.7], requires_grad=True)
        g, = torch.autograd.grad(f(x).sum(), x, create_graph=True)
        return torch.autograd.grad((g * g).sum(), x)[0].tolist()

    assert twice(lambda x: quietly(body, x, early_stop=early_stop)) == twice(body)
    assert twice(lambda x: quietly(lambda x: quietly(body, x), x, early_stop=early_stop)) == twice(body)


@STOPS
def test_backward_inside_the_function(early_stop):
    def slope(x):
        y = x.sin()
        z = y.cos()
        g, = torch.autograd.grad(z, x, retain_graph=True)
        h, = torch.autograd.grad(y, x)
        return x.cos() * g + h

    x = leaf(0.4)
    quietly(slope, x, early_stop=early_stop).backward()
    y = leaf(0.4)
    slope(y).backward()
    assert x.grad.tolist() == y.grad.tolist()


@STOPS
def test_nested_checkpoints(early_stop):
    inner = Calls(body)

    def outer(x):
        return quietly(inner, x.cos()).cos() * quietly(inner, x)

    x, y = leaf(0.4), leaf(0.4)
    with set_checkpoint_early_stop(early_stop):
        quietly(lambda x: quietly(outer, x), x).backward()
    (body(y.cos()).cos() * body(y)).backward()
    assert x.grad.tolist() == y.grad.tolist()


def test_nested_reentrant():
    x, y = leaf(0.4), leaf(0.4)
    checkpoint(lambda x: quietly(body, x.cos()), x, use_reentrant=True).backward()
    body(y.cos()).backward()
    assert x.grad.tolist() == y.grad.tolist()
    x.grad = None
    with pytest.warns(UserWarning, match="None of the inputs have requires_grad"):  # the first run records nothing
        out = checkpoint(lambda x: checkpoint(body, x.cos(), use_reentrant=True), x, use_reentrant=True)
    out.backward()
    assert x.grad.tolist() == y.grad.tolist()


def test_saved_tensor_hooks_around_and_inside():
    packed = []

    def pack(t):
        packed.append(t.tolist())
        return t.detach().clone()

    hooks = torch.autograd.graph.saved_tensors_hooks(pack, lambda t: t)
    x = leaf(0.5).clone()
    with hooks:
        quietly(body, x)
    assert packed == [[0.5]]  # the argument alone
    del packed[:]

    def inside(x):
        with hooks:
            y = x.exp()
        return y.sin()

    z = leaf(0.5)
    quietly(inside, z).backward()
    assert len(packed) == 2  # once in each run
    w = leaf(0.5)
    w.exp().sin().backward()
    assert z.grad.tolist() == w.grad.tolist()


def test_the_argument_itself_is_unpacked():
    found = []

    class Look(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, y):
            ctx.save_for_backward(y)
            return x.clone()

        @staticmethod
        def backward(ctx, g):
            found.extend(ctx.saved_tensors)
            return g, None

    fixed = torch.ones(1)
    quietly(Look.apply, leaf(1.0), fixed).backward()
    assert found[0] is fixed


# ----- saved memory ----------------------------------------------------------------------


def kept(run, peak=None):
    """How many arrays the graph of `run` keeps, and at most while backward runs."""
    alive = weakref.WeakSet()
    most = [0]

    class Parcel:
        def __init__(self, t):
            self.t = t
            alive.add(self)
            most[0] = max(most[0], len(alive))

    with torch.autograd.graph.saved_tensors_hooks(Parcel, lambda parcel: parcel.t):
        out = run()
        after_forward = len(alive)
        most[0] = 0
        out.backward()
    return after_forward, most[0]


def test_saved_memory_is_smaller():
    layers, x = 8, torch.randn(4, 4, requires_grad=True)

    def chain(x):
        for _ in range(6):
            x = x.sin()
        return x

    def whole():
        y = x
        for _ in range(layers):
            y = chain(y)
        return y.sum()

    def in_pieces():
        y = x
        for _ in range(layers):
            y = quietly(chain, y)
        return y.sum()

    assert kept(whole) == (48, 0)
    assert kept(in_pieces) == (8, 0)  # the pieces' arguments
    gc.collect()
    live = []

    class Watch(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            out = x.sin()
            ctx.save_for_backward(x)
            live.append(weakref.ref(x))
            return out

        @staticmethod
        def backward(ctx, g):
            x, = ctx.saved_tensors
            counts.append(sum(r() is not None for r in live))
            return g * x.cos()

    def watched(x):
        for _ in range(6):
            x = Watch.apply(x)
        return x

    def run(step):
        del live[:], counts[:]
        y = x
        for _ in range(layers):
            y = step(y)
        held = sum(r() is not None for r in live)
        y.sum().backward()
        return held, max(counts)

    counts = []
    assert run(watched) == (48, 48)
    held, most = run(lambda y: quietly(watched, y))
    assert held <= 2 * layers
    assert most <= 3 * layers


def test_early_stop():
    tail = Calls(lambda x: x.clone())
    x = leaf(1.0)
    quietly(lambda x: tail(x.sin().cos()), x).backward()
    assert tail.count == 1
    quietly(lambda x: tail(x.sin().cos()), x, early_stop=False).backward()
    assert tail.count == 3
    with set_checkpoint_early_stop(False):
        out = quietly(lambda x: tail(x.sin().cos()), x)
    out.backward()
    assert tail.count == 5


def test_nothing_to_recompute():
    f, x = Calls(lambda x: x.clone()), leaf(1.0)
    quietly(f, x, early_stop=False).backward()
    assert f.count == 1


def test_reading_saved_tensors_recomputes():
    f, x = Calls(lambda x: (x * x).exp()), leaf(1.0)
    y = quietly(f, x)
    y.grad_fn._saved_result
    y.grad_fn._saved_result
    assert f.count == 3
    y.backward()
    assert f.count == 4
    with pytest.raises(RuntimeError, match="after they have already been freed"):
        y.grad_fn._saved_result


def test_each_backward_recomputes_once():
    f, x = Calls(lambda x: (x.sin(), x.cos())), leaf(1.0)
    a, b = quietly(f, x, early_stop=False)
    a.backward(retain_graph=True)
    b.backward()
    assert f.count == 3
    f.count = 0
    a, b = quietly(f, x, early_stop=False)
    with GraphExecGroup():
        a.backward()
        b.backward()
    assert f.count == 2


def test_graph_exec_groups():
    x = leaf(1.0)
    with GraphExecGroup(), pytest.raises(RuntimeError, match="cannot be nested"), GraphExecGroup():
        pass
    y = quietly(body, x)
    with GraphExecGroup():
        y.backward(retain_graph=True)
        with pytest.raises(CheckpointError, match="two backward calls that overlap"):
            y.backward()


def test_the_graph_is_freed_without_garbage_collection():
    class Marker:
        pass

    def scope():
        x = leaf(0.5)
        y = quietly(lambda x: quietly(body, x), x)
        y.backward(retain_graph=True)
        marker = y.grad_fn.metadata["marker"] = Marker()
        return weakref.ref(marker)

    gc.collect()
    gc.disable()
    try:
        assert scope()() is None
    finally:
        gc.enable()


# ----- errors and warnings ---------------------------------------------------------------


def changing(first, second):
    """A function that does something else when it is run again."""
    calls = Calls(lambda x: (first if calls.count == 1 else second)(x))
    return calls


def test_recomputation_with_fewer_tensors():
    out = quietly(changing(lambda x: x.sin().exp().sin(), lambda x: x.sin().exp()), leaf(1.0))
    with pytest.raises(CheckpointError, match="A different number of tensors was saved"):
        out.backward()


def test_recomputation_with_more_tensors():
    def make():
        return changing(lambda x: x.sin().exp(), lambda x: x.sin().exp().sin())

    quietly(make(), leaf(1.0)).backward()
    with pytest.raises(CheckpointError, match="trying to save more tensors during recomputation"):
        quietly(make(), leaf(1.0), early_stop=False).backward()


def test_recomputation_with_other_shapes():
    def make():
        return changing(lambda x: x.sin().exp(), lambda x: (x.sin() * torch.ones(2)).exp())

    with pytest.raises(CheckpointError, match="have different metadata") as caught:
        quietly(make(), leaf(1.0)).backward()
    assert "tensor at position 1:\nsaved metadata: {'shape': " in str(caught.value)
    with pytest.raises(ValueError, match=re.escape("should be one of ['default', 'none'], but got shapes")):
        quietly(body, leaf(1.0), determinism_check="shapes")
    quietly(changing(lambda x: x.sin(), lambda x: x.double().sin()), leaf(1.0), determinism_check="none").backward()


def test_saved_tensors_are_read_once():
    class Greedy(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x.clone()

        @staticmethod
        def backward(ctx, g):
            ctx.saved_tensors
            ctx.saved_tensors
            return g

    with pytest.raises(CheckpointError, match=re.escape("already unpacked once. If you are calling")):
        quietly(Greedy.apply, leaf(1.0)).backward()


def test_argument_modified_in_place():
    x = leaf(1.0).clone()
    out = quietly(body, x)
    x.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        out.backward()


def test_an_error_in_the_recomputation_leaves_everything_usable():
    def second(x):
        raise ValueError("again")

    x = leaf(1.0)
    out = quietly(changing(body, second), x)
    with pytest.raises(ValueError, match="again"):
        out.backward()
    assert torch.is_grad_enabled()
    quietly(body, x).backward()
    assert x.grad is not None


@pytest.mark.parametrize("around", ["block", "argument"])
def test_debugging_shows_both_runs(around):
    f = changing(lambda x: x.sin().exp(), lambda x: (x.sin() * torch.ones(2)).exp())
    with set_checkpoint_debug_enabled(True) if around == "block" else contextlib.nullcontext():
        out = quietly(f, leaf(1.0), debug=around == "argument")
    with pytest.raises(CheckpointError, match="you passed `debug=True` to checkpoint") as caught:
        out.backward()
    text = str(caught.value)
    assert "(1 of 2 in original)" in text
    first, _, again = text.partition("Operations executed during the original forward:")[2].partition(
        "Operations executed during recomputation:")
    assert first.split("\n")[2:4] == ["$1: f32[1] = torch._ops.aten.sin.default($0)",
                                      "$2: f32[1] = torch._ops.aten.exp.default($1)"]
    assert again.split("\n")[2] == "$1: f32[1] = torch._ops.aten.sin.default($0)"
    assert "exp" not in again
    assert "test_checkpoint.py" in text
    assert isinstance(caught.value.__cause__, CheckpointError)


def test_debug_excludes_context_fn():
    with pytest.raises(ValueError, match="debug=True is incompatible with non-default context_fn"):
        quietly(body, leaf(1.0), debug=True, context_fn=lambda: noop_context_fn())


def test_contexts_surround_the_two_runs():
    order = []

    @contextlib.contextmanager
    def told(name):
        order.append(f"{name} in")
        yield
        order.append(f"{name} out")

    x = leaf(1.0)
    out = quietly(lambda x: (order.append("run"), body(x))[1], x, context_fn=lambda: (told("first"), told("again")))
    out.backward()
    assert order == ["first in", "run", "first out", "again in", "run"]  # it is left by the early stop
    with pytest.raises(ValueError, match="only supported when use_reentrant=False"):
        checkpoint(body, x, use_reentrant=True, context_fn=lambda: noop_context_fn())


def test_a_context_may_not_hide_an_error():
    def fails(x):
        raise ValueError

    with pytest.raises(RuntimeError, match="suppressed an exception raised during the checkpointed forward"):
        quietly(fails, leaf(1.0), context_fn=lambda: (contextlib.suppress(ValueError), contextlib.nullcontext()))
    with pytest.raises(ValueError):
        quietly(fails, leaf(1.0))


def test_reentrant_rejects_inputs():
    x = leaf(1.0)
    message = "incompatible with .grad"
    with pytest.raises(RuntimeError, match=re.escape(message)):
        torch.autograd.grad(checkpoint(body, x, use_reentrant=True), x)
    with pytest.raises(RuntimeError, match=re.escape(message)):
        checkpoint(body, x, use_reentrant=True).backward(inputs=[x])
    checkpoint(body, x, use_reentrant=True).backward()
    assert x.grad is not None


def test_reentrant_requires_outputs_with_grad():
    x = leaf(1.0)
    out = checkpoint(lambda x: x.detach() * 2, x, use_reentrant=True)
    with pytest.raises(RuntimeError, match="none of output has requires_grad=True"):
        out.backward()


def test_several_outputs_of_a_reentrant_checkpoint():
    x, y = leaf(1.0), leaf(1.0)
    a, number, b = checkpoint(lambda x: (x.sin(), 5, x.cos()), x, use_reentrant=True)
    assert number == 5
    (a * b).backward()
    (y.sin() * y.cos()).backward()
    assert x.grad.tolist() == y.grad.tolist()
    assert a.grad_fn.name() == "CheckpointFunctionBackward"


def test_warnings():
    x = leaf(1.0)
    with pytest.warns(UserWarning, match="torch.utils.checkpoint: the use_reentrant parameter should be passed"):
        checkpoint(body, x)
    with pytest.warns(UserWarning, match="checkpoint_sequential: the use_reentrant parameter should be passed"):
        checkpoint_sequential([body, body], 2, x)
    with pytest.warns(UserWarning, match="None of the inputs have requires_grad=True. Gradients will be None"):
        checkpoint(body, x.detach(), use_reentrant=True)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        quietly(body, x.detach())
    with pytest.raises(ValueError, match="Unexpected keyword arguments: a,b"):
        checkpoint(body, x, use_reentrant=True, a=1, b=2)
    with pytest.raises(ValueError, match="Unexpected keyword arguments: a"):
        checkpoint_sequential([body], 1, x, use_reentrant=False, a=1)
    with pytest.raises(RuntimeError, match=re.escape("is supported. Got Unsupported input type: list")):
        detach_variable([x])


# ----- selective checkpoints -------------------------------------------------------------


class Policy:
    """A constant policy for some operators, which counts its calls."""

    def __init__(self, keep):
        self.keep, self.asked = keep, []

    def __call__(self, ctx, op, *args, **kwargs):
        assert not ctx.is_recompute
        assert ctx.op_output.shape == args[0].shape
        self.asked.append(str(op))
        return CheckpointPolicy.MUST_SAVE if op in self.keep else CheckpointPolicy.PREFER_RECOMPUTE


class Computed(Interceptor):
    """Which operators are left to be computed, in a block around everything."""

    def __init__(self):
        self.names = []

    def intercept(self, op, inputs, params, in_place):
        self.names.append(str(overload_of(op, inputs, in_place)))


ATEN = torch.ops.aten


@pytest.mark.parametrize("keep", [[], [ATEN.exp.default], [ATEN.sin.default], [ATEN.mm.default, ATEN.exp.default]])
def test_saved_outputs_are_not_recomputed(keep):
    def f(x):
        return (x.sin() @ x).exp().sin()

    x = torch.tensor([[0.1, 0.2], [0.3, 0.4]], requires_grad=True)
    policy = Policy(keep)
    with Computed() as computed:
        out = quietly(f, x, context_fn=functools.partial(create_selective_checkpoint_contexts, policy))
        assert policy.asked == ["aten.sin.default", "aten.mm.default", "aten.exp.default", "aten.sin.default"]
        del computed.names[:]
        out.sum().backward()
    again = [name for name in ("aten.sin.default", "aten.mm.default", "aten.exp.default") if name in computed.names]
    assert again == [str(op) for op in (ATEN.sin.default, ATEN.mm.default, ATEN.exp.default) if op not in keep]
    assert len(policy.asked) == 4
    y = x.detach().requires_grad_()
    f(y).sum().backward()
    assert x.grad.tolist() == y.grad.tolist()


def test_policy_list_and_bool_policy():
    for policy in ([ATEN.sin.default], lambda ctx, op, *args, **kwargs: op == ATEN.sin.default):
        x = leaf(0.5)
        quietly(body, x, context_fn=functools.partial(create_selective_checkpoint_contexts, policy)).backward()
        y = leaf(0.5)
        body(y).backward()
        assert x.grad.tolist() == y.grad.tolist()


def test_several_results_views_and_writes():
    def f(x):
        a, b = torch.var_mean(x.view(-1))
        c = (a * b + x).neg().mul_(2)
        return (c.max(0).values * x.double().exp().float()).sum()

    x, y = leaf(0.5, 1.0, 2.0), leaf(0.5, 1.0, 2.0)
    most = functools.partial(create_selective_checkpoint_contexts,  # outputs that are written to must not be saved
                             lambda ctx, op, *args, **kwargs: op is not ATEN.neg.default)
    quietly(f, x, context_fn=most).backward()
    f(y).backward()
    assert x.grad.tolist() == y.grad.tolist()


def test_saved_outputs_modified_in_place():
    def f(x):
        return x.sin().mul_(2).cos().exp()

    def run(**how):
        x = leaf(0.5)
        quietly(f, x, context_fn=functools.partial(create_selective_checkpoint_contexts, [ATEN.sin.default], **how)
                ).backward()

    with pytest.raises(RuntimeError, match="Tensor cached during selective activation checkpoint has been mutated"):
        run()
    run(allow_cache_entry_mutation=True)


def test_saved_outputs_serve_one_backward():
    keep = functools.partial(create_selective_checkpoint_contexts, [ATEN.sin.default])
    out = quietly(body, leaf(0.5), context_fn=keep)
    out.backward(retain_graph=True)
    with pytest.raises(RuntimeError, match="Trying to backward an extra time"):
        out.backward()


def test_recomputation_with_other_operators():
    for second, message in ((lambda x: x.cos().exp(), "aten.cos.default encountered during backward but not found"),
                            (lambda x: x.sin().sin().sin().exp(), "invocation index 1 encountered during backward")):
        keep = functools.partial(create_selective_checkpoint_contexts, [ATEN.sin.default])
        f = changing(lambda x: x.sin().exp().exp(), second)
        with pytest.raises(RuntimeError, match=message):
            quietly(f, leaf(0.5), context_fn=keep, early_stop=False).backward()


def test_invalid_policy_lists():
    with pytest.raises(ValueError, match="to be an OpOverload but got: 2 of type"):
        create_selective_checkpoint_contexts([2])
    with pytest.raises(ValueError, match="Please update the OpOverloadPacket to a specific OpOverload"):
        create_selective_checkpoint_contexts([ATEN.sin])
    with pytest.raises(TypeError, match="must be either a function or a list of ops"):
        create_selective_checkpoint_contexts(2)


def test_names_of_operators():
    assert str(ATEN.add.Tensor) == "aten.add.Tensor"
    assert repr(ATEN.add_.Tensor) == "<OpOverload(op='aten.add_', overload='Tensor')>"
    assert repr(ATEN.mm) == "<OpOverloadPacket(op='aten.mm')>"
    assert ATEN.mm.default.name() == "aten::mm"
    assert ATEN.mm.default.overloadpacket is ATEN.mm
    with pytest.raises(AttributeError, match="'_OpNamespace' 'aten' object has no attribute 'nope'"):
        ATEN.nope
    with pytest.raises(AttributeError, match=re.escape("The underlying op of 'aten.mm' has no overload name 'nope'")):
        ATEN.mm.nope


# ----- segments, threads, the alias ------------------------------------------------------


@BOTH
@pytest.mark.parametrize("segments", [1, 2, 3, 8])
def test_segments(reentrant, segments):
    model, x = network(), torch.randn(2, 8, requires_grad=True)
    checkpoint_sequential(model, segments, x, use_reentrant=reentrant).sum().backward()
    found = [p.grad.tolist() for p in model.parameters()]
    model.zero_grad()
    model(x.detach()).sum().backward()
    assert found == [p.grad.tolist() for p in model.parameters()]


def test_more_segments_than_functions():
    with pytest.raises(ValueError, match="must not be zero"):
        checkpoint_sequential([body], 3, leaf(1.0), use_reentrant=False)


def test_threads():
    want = leaf(0.5)
    body(body(want)).backward()
    found = []

    def work():
        x = leaf(0.5)
        for _ in range(10):
            x.grad = None
            quietly(lambda x: body(quietly(body, x)), x).backward()
        found.append(x.grad.tolist())

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [want.grad.tolist()] * 4


def test_public_names():
    program = """
import flambeau.alias
flambeau.alias.install()
import torch
import torch.utils.checkpoint as found
from torch.utils.checkpoint import CheckpointError
import flambeau.utils.checkpoint
assert found is torch.utils.checkpoint is flambeau.utils.checkpoint
assert CheckpointError is found.CheckpointError
assert str(torch.ops.aten.mm.default) == "aten.mm.default"
assert all(hasattr(found, name) for name in found.__all__)
"""
    subprocess.run([sys.executable, "-c", program], check=True)
