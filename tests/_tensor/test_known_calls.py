"""Calls that generated code finds and runs: the same results, errors and modes as calls that Python looks up."""

from __future__ import annotations

import gc
import subprocess
import sys
import threading
import tracemalloc
import warnings

import numpy as np
import pytest

import flambeau as torch
from flambeau import codegen
from flambeau._tensor.fastpath import known_calls, repeated_layouts
from flambeau._tensor.fastpath.known_calls import EVERY, MOST
from flambeau._tensor.fastpath.repeated_calls import launched
from flambeau._tensor.fastpath.repeated_layouts import CALLS, LEARNED, PROOFS, KnownCalls
from flambeau.backends.compiled import enable_kernels
from flambeau.backends.compiled.thresholds import SMALL_KERNELS
from flambeau.runtime import object_layout

F = torch.nn.functional
#: calls after which the next one is known
MANY = CALLS + PROOFS + 3
pytestmark = pytest.mark.skipif(not (codegen.available() and object_layout.readable()), reason="no generated code")


@pytest.fixture(autouse=True)
def _kernels():
    enable_kernels()


def _random(*shape, seed=0):
    return torch.from_numpy(np.random.default_rng(seed).standard_normal(shape).astype(np.float32))


def _counting(function=torch.lerp):
    """A launched function, and the list of its calls that Python ran."""
    calls = []

    def call(*args, **kwargs):
        calls.append(args)
        return function(*args, **kwargs)

    return launched(call), calls


def _known(function, *args, **kwargs):
    for _ in range(MANY):
        function(*args, **kwargs)


def test_known_calls_run_no_python():
    function, calls = _counting()
    x, y = _random(4, 4), _random(4, 4, seed=1)
    _known(function, x, y, 0.25)
    before = len(calls)
    frames = []
    sys.setprofile(lambda frame, event, _: event == "call" and frames.append(frame.f_code.co_name))
    found = function(x, y, 0.25)
    sys.setprofile(None)
    assert frames == ["call"]
    assert len(calls) == before
    assert found.numpy().tobytes() == (torch.lerp(x * 1, y, 0.25)).numpy().tobytes()
    assert (found.is_leaf, found.requires_grad, found._version, found.grad) == (True, False, 0, None)


@pytest.mark.parametrize("change", ["class", "value", "zero", "name", "count"])
def test_other_constants_are_other_calls(change):
    seen = []

    def call(x, *numbers, **named):
        seen.append((numbers, named))
        return torch.add(x, 0.5)

    function = launched(call)
    x = _random(4, 4)
    kept, other = {"class": (((1,), {}), ((1.0,), {})), "value": (((2.5, "a"), {}), ((2.5, "b"), {})),
                   "zero": (((0.0,), {}), ((-0.0,), {})), "name": (((), {"a": 1}), ((), {"b": 1})),
                   "count": (((1, (2, 3)), {}), ((1, (2, 3.0)), {}))}[change]
    _known(function, x, *kept[0], **kept[1])
    seen.clear()
    function(x, *kept[0], **kept[1])
    equal = tuple(float(str(n)) if n.__class__ is float else n for n in kept[0])  # equal, not identical
    function(x, *equal, **kept[1])
    assert not seen
    function(x, *other[0], **other[1])
    assert seen == [other]


def test_other_tensors_are_other_calls(monkeypatch):
    monkeypatch.setattr(repeated_layouts, "FREE", 1 << 20)  # no call is planned for any number of rows
    function, calls = _counting(torch.maximum)
    x, y = _random(4, 6), _random(4, 6, seed=1)
    _known(function, x, y)
    calls.clear()
    others = [(x, x), (x, y.double()), (x[:, :3], y[:, :3]), (x.t(), y.t()), (x[0], y[0]), (x, y.bfloat16()),
              (x.view(6, 4), y.view(6, 4)), (x.long(), y.long())]
    for number, (a, b) in enumerate(others, 1):
        expected = np.maximum(a.double().numpy(), b.double().numpy())
        assert np.array_equal(function(a, b).double().numpy(), expected)
        assert len(calls) == number
    parameter = torch.nn.Parameter(x.clone(), requires_grad=False)
    assert function(parameter, y).__class__ is torch.Tensor
    assert len(calls) == number


def test_a_tensor_given_twice():
    function, calls = _counting(torch.maximum)
    x, y = _random(3, 3), _random(3, 3, seed=1)
    _known(function, x, x)
    calls.clear()
    assert function(y, y).numpy().tobytes() == y.numpy().tobytes()
    assert not calls
    assert np.array_equal(function(x, y).numpy(), np.maximum(x.numpy(), y.numpy()))
    assert len(calls) == 1


def test_gradients_are_recorded():
    leaf = _random(4, 4).requires_grad_()
    plain = leaf.detach()
    for call in (lambda x: x.exp(), lambda x: x.softmax(1), lambda x: x.sum(0), lambda x: torch.lerp(x, x, 0.5),
                 lambda x: F.leaky_relu(x), lambda x: x.gather(0, torch.zeros(1, 4, dtype=torch.long))):
        _known(call, plain)
        assert call(leaf).grad_fn is not None
        with torch.no_grad():
            assert call(leaf).grad_fn is None
        with torch.no_grad(), torch.enable_grad():
            assert call(leaf).requires_grad
        assert torch.equal(call(leaf).detach(), call(plain))


def test_modes_are_seen():
    x = _random(4, 4)
    call = torch.exp
    _known(call, x)
    expected = call(x)
    assert torch.equal(torch.func.vmap(call)(x), expected)
    value, tangent = torch.func.jvp(call, (x,), (torch.ones_like(x),))
    assert torch.equal(value, expected)
    assert torch.equal(tangent, expected)
    seen = []
    from flambeau._tensor.dispatch.interception import Interceptor

    class Noting(Interceptor):
        def on_operator(self, op, inputs, params, outs, in_place):
            seen.append(op.name)

    with Noting():
        call(x)
    assert seen == ["exp"]


def test_inference_mode_marks_results():
    # in a process of its own: the mode is remembered
    import subprocess

    code = ("import flambeau as torch; torch.rand(64, 64).exp(); x = torch.rand(4, 4)\n"
            f"for _ in range({MANY}): x.exp(), torch.lerp(x, x + 1, 0.5)\n"
            "with torch.inference_mode():\n"
            "    y = x.exp()\n"
            "    assert y.is_inference() and torch.lerp(x, x + 1, 0.5).is_inference()\n"
            "    assert not x.diagonal().is_inference() and y.diagonal().is_inference()\n"
            f"for _ in range({MANY}):\n"
            "    assert not x.exp().is_inference() and not torch.lerp(x, y, 0.5).is_inference()\n"
            "    assert not y.softmax(1).is_inference()\n"
            "    assert y.diagonal().is_inference() and not x.diagonal().is_inference()\n"
            "import sys\n"
            "names = []\n"
            "sys.setprofile(lambda frame, event, _: event == 'call' and names.append(frame.f_code.co_name))\n"
            "torch.lerp(x, y, 0.5)\n"
            "sys.setprofile(None)\n"
            "assert len(names) == 1, names\n"
            "w = x.clone().requires_grad_()\n"
            "try: torch.lerp(w, y, w)\n"
            "except RuntimeError as error: assert 'Inference tensors cannot be saved' in str(error)\n"
            "else: raise AssertionError")
    subprocess.run([sys.executable, "-c", code], check=True)


def test_errors_are_those_of_the_function():
    x, good, bad = _random(4, 4), torch.tensor([0, 3]), torch.tensor([0, 4])
    _known(lambda: x.index_select(0, good))
    with pytest.raises(IndexError, match="out of range"):
        x.index_select(0, bad)
    with pytest.raises((IndexError, RuntimeError)):
        x.index_select(0, torch.tensor([-1, 0]))
    assert torch.equal(x.index_select(0, good), x[[0, 3]])


def test_a_step_that_raises_leaves_the_call_to_the_function():
    known = KnownCalls()
    x = _random(2, 2)

    def launch(a):
        raise ValueError("a step")

    enter = known.add((x,), {}, launch)
    assert enter((x,), {}) is None

    def interrupted(a):
        raise KeyboardInterrupt

    known = KnownCalls()
    with pytest.raises(KeyboardInterrupt):
        known.add((x,), {}, interrupted)((x,), {})


def test_attempts_that_add_nothing_become_rare():
    known = KnownCalls()
    assert known.left == LEARNED
    waits = []
    for _ in range(9):
        known.begin_attempt()
        waits.append(known.left)
    assert waits == [32, 64, 128, 256, 512, 1024, 1024, 1024, 1024]
    known.add((_random(2, 2),), {}, np.negative)
    assert known.left == LEARNED


def test_a_full_table_replaces_an_entry_at_each_attempt():
    known = KnownCalls()
    for n in range(1, MOST + 1):
        known.add((_random(2, n),), {}, np.negative)
    other = _random(3, 3)
    enter = known.add((other,), {}, np.negative)
    assert enter((other,), {}) is None
    known.begin_attempt()
    enter = known.add((other,), {}, np.negative)
    assert torch.equal(enter((other,), {}), -other)
    assert known.left == 2 * LEARNED


def test_joins_of_more_tensors_than_a_call_may_have_are_not_attempted():
    from flambeau._tensor.fastpath.known_calls import ITEMS
    from flambeau._tensor.shape import joining

    few = [_random(3, seed=i) for i in range(ITEMS)]
    assert joining._launch("stack", (few,), {}, torch.stack(few)) is not None
    many = [*few, few[0]]
    assert joining._launch("stack", (many,), {}, torch.stack(many)) is None


def test_no_warnings_of_numpy():
    x, infinite = _random(4, 4), torch.full((4, 4), float("inf"))
    index = torch.tensor([0, 0])
    calls = [lambda a: a.index_add(0, index, -a[:2]), lambda a: torch.cat([a, -a], 1).cumsum(1),
             lambda a: (a - 1).trace(),
             lambda a: (a * torch.tensor([1.0, -1.0, 1.0, -1.0])).sum(1), lambda a: torch.cat([a, -a]).mean(0)]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for call in calls:
            _known(call, x)
            call(infinite)


def test_entries_are_replaced():
    function, _ = _counting(torch.maximum)
    pairs = [(_random(2, n), _random(2, n, seed=1)) for n in range(1, 2 * MOST)]
    for x, y in pairs:
        _known(function, x, y)
    for _ in range(EVERY + 1):
        for x, y in pairs:
            assert np.array_equal(function(x, y).numpy(), np.maximum(x.numpy(), y.numpy()))


def test_a_step_may_change_the_table():
    known = KnownCalls()
    x = _random(2, 2)
    others = [_random(3, n) for n in range(1, 2 * MOST)]

    def launch(a):
        for _ in range(EVERY):
            for each in others:
                known.add((each,), {}, lambda b: b.copy())
        gc.collect()
        return a + 1

    enter = known.add((x,), {}, launch)
    assert np.array_equal(enter((x,), {}).numpy(), x.numpy() + 1)
    for each in others:
        found = enter((each,), {})
        assert found is None or torch.equal(found, each)


def test_several_results():
    x = _random(4, 4)
    _known(lambda: x.max(1))
    found = x.max(1)
    assert type(found) is torch.return_types.max
    assert np.array_equal(found.values.numpy(), x.numpy().max(1))
    assert np.array_equal(found.indices.numpy(), x.numpy().argmax(1))
    assert found.indices.dtype is torch.int64


def test_references_are_returned():
    x, y, index = _random(4, 4), _random(4, 4, seed=1), torch.tensor([[0, 1, 2, 3]])
    bad = torch.tensor([[0, 9, 2, 3]])

    def calls():
        torch.lerp(x, y, 0.3)
        x.exp()
        x.softmax(1)
        x.gather(0, index)
        x.sum(dim=0)
        x.max(1)
        x.bfloat16()
        F.scaled_dot_product_attention(x[None], y[None], y[None])
        F.cross_entropy(x, index[0])
        try:
            x.gather(0, bad)
        except (IndexError, RuntimeError):
            pass

    for _ in range(3 * MANY):
        calls()
    gc.unfreeze()
    waiting = [(each, each.left, each.free_left) for each in gc.get_objects() if type(each) is KnownCalls]
    for known, _, _ in waiting:  # no attempt in between: entries and candidates have references of their own
        known.left = known.free_left = 1 << 20
    objects = (x, y, index, x._array, y._array, index._array, x._array.dtype, None, False, 0, torch.Tensor, 0.3)
    gc.collect()
    tracemalloc.start()
    calls()
    size, before = tracemalloc.get_traced_memory()[0], [sys.getrefcount(each) for each in objects]
    for _ in range(200):
        calls()
    gc.collect()
    after, grown = [sys.getrefcount(each) for each in objects], tracemalloc.get_traced_memory()[0] - size
    tracemalloc.stop()
    for known, left, free_left in waiting:
        known.left, known.free_left = left, free_left
    assert all(abs(b - a) < 50 for a, b in zip(before, after, strict=True)), (before, after)
    assert grown < 20_000


def test_threads():
    x = [_random(4, 4, seed=i) for i in range(4)]
    expected = [each.numpy().max(1) for each in x]
    failures = []

    def work(number):
        for _ in range(400):
            found = x[number].max(1).values
            if not np.array_equal(found.numpy(), expected[number]) or not torch.equal(x[number].exp().log(), x[
                    number].exp().log()):
                failures.append(number)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert not failures


def test_other_interpreters_have_no_entries(monkeypatch):
    monkeypatch.setattr(known_calls, "_found", [None])
    function, _ = _counting()
    x, y = _random(4, 4), _random(4, 4, seed=1)
    _known(function, x, y, 0.25)
    assert torch.equal(function(x, y, 0.25), torch.lerp(x, y, 0.25))


VIEWS = {"diagonal": lambda x: x.diagonal(), "narrow": lambda x: x.narrow(1, 1, 2), "t": lambda x: x.t(),
         "unsqueeze": lambda x: x.unsqueeze(1), "view": lambda x: x.view(6, 4), "expand": lambda x: x.expand(2, 4, 6),
         "permute": lambda x: x.permute(1, 0), "unbind": lambda x: x.unbind(0)[1], "chunk": lambda x: x.chunk(2, 1)[1],
         "flatten": lambda x: x.flatten(), "transpose": lambda x: x.transpose(0, 1), "reshape": lambda x: x.reshape(-1),
         "chunk by name": lambda x: x.chunk(2, dim=1)[0], "split": lambda x: x.split(2, dim=1)[2],
         "split by sizes": lambda x: x.split((1, 3))[1], "unflatten": lambda x: x.unflatten(1, (2, -1)),
         "view of a tuple": lambda x: x.view((2, 12)), "reshape to a size": lambda x: x.reshape(torch.Size((3, 8))),
         "unflatten by name": lambda x: x.unflatten(dim=-1, sizes=(3, 2)),
         "view of rows apart": lambda x: x.chunk(2, 1)[1].view(2, 2, 3, 1)}
#: those that are one of several views
SEVERAL = ("unbind", "chunk", "chunk by name", "split", "split by sizes", "view of rows apart")


def _described(view, base):
    return (view.shape, view.stride(), view.storage_offset(), view._base is base, view._version, view.requires_grad,
            view.is_leaf, view._creation, view._array.flags.writeable, view.grad_fn and view.grad_fn.name())


@pytest.mark.parametrize("name", VIEWS)
def test_views_are_those_of_the_function(name):
    """Known views have the base, version, creation and history of views that Python makes."""
    call = VIEWS[name]

    def states():
        x = _random(4, 6)
        yield _described(call(x), x)
        with torch.no_grad():
            made = call(x)
            yield _described(made, x)
        yield _described(call(x.requires_grad_()), x)
        with torch.no_grad():
            yield _described(call(x), x)
        x = _random(8, 6)
        part = x[2:6]
        yield _described(call(part), x)
        with torch.no_grad():
            other = x[2:6]
        yield _described(call(other), x)
        x.add_(1)
        yield _described(call(part), x)
        x = _random(4, 6)
        view = call(x)
        x.mul_(2.0)
        yield view._version, view.clone().numpy().tobytes(), np.array_equal(view.numpy(), call(x).numpy())
        view.requires_grad_() if name not in SEVERAL else None
        x = _random(4, 6)
        view = call(x)
        x.requires_grad_()
        yield view.requires_grad, call(x).requires_grad

    SMALL_KERNELS[0] = False
    try:
        expected = list(states())
    finally:
        SMALL_KERNELS[0] = True
    for _ in range(3):
        list(states())
    assert list(states()) == expected


def test_views_are_known():
    x = _random(4, 6)
    for name, call in VIEWS.items():
        for _ in range(LEARNED * EVERY):  # even if other calls use up the function's entries
            call(x)
        frames = []
        sys.setprofile(lambda frame, event, _, frames=frames: event == "call" and frames.append(frame.f_code.co_name))
        call(x)
        sys.setprofile(None)
        assert "view_of" not in frames, name
        assert "make" not in frames, name


def test_equal_sizes_of_other_classes_are_refused():
    x = _random(4, 6)
    for _ in range(3 * LEARNED):
        x.unflatten(1, (2, 3))
        x.view((1, 24))
        x.chunk(2, dim=1)
    for call in (lambda: x.unflatten(1, (2, 3.0)), lambda: x.view((True, 24)), lambda: x.chunk(2.0, dim=1),
                 lambda: x.chunk(2, dims=1)):
        with pytest.raises(TypeError):
            call()


def test_views_of_one_tensor_are_forgotten():
    x = _random(4, 6)
    for _ in range(2000):
        x.diagonal()
        x.unbind(1)
    assert len(x._counter) < 200
    before = sys.getrefcount(x), sys.getrefcount(x._array)
    for _ in range(2000):
        x.diagonal()
        x.unbind(1)
    assert (sys.getrefcount(x), sys.getrefcount(x._array)) == before


BINARY = {"+": lambda x, y: x + y, "- 1": lambda x, y: x - 1, "* row": lambda x, y: x * y[0],
          "* column": lambda x, y: x * y[:, :1], "> 0.0": lambda x, y: x > 0.0, "==": lambda x, y: x == y,
          "maximum": torch.maximum, "0 / x": lambda x, y: x / 0.0, "1 - x": lambda x, y: 1 - x,
          "transposed": lambda x, y: x.t() + y.t(), "one transposed": lambda x, y: x.view(6, 4).t() * y,
          "0-d": lambda x, y: x + y[0, 0], "integers": lambda x, y: x.long() // 3,
          "masks": lambda x, y: (x > 0) & (y > 0)}


@pytest.mark.parametrize("name", BINARY)
def test_binary_operators(name):
    """Known calls have NumPy's bits and the strides of calls before any transposed tensor was seen."""
    call = BINARY[name]
    for seed in range(MANY + 40):
        x, y = _random(4, 6, seed=seed), _random(4, 6, seed=seed + 1)
        found = call(x, y)
        SMALL_KERNELS[0] = False
        try:
            expected = call(x, y)
        finally:
            SMALL_KERNELS[0] = True
        assert found.stride() == expected.stride()
        assert found.dtype is expected.dtype
        assert found.numpy().tobytes() == expected.numpy().tobytes()
    leaf = x.clone().requires_grad_()
    if found.is_floating_point():
        assert call(leaf, y).grad_fn is not None


def test_programs_without_kernels_compile_nothing():
    import subprocess

    code = ("import sys, flambeau as torch; x = torch.ones(4, 4)\n"
            "for _ in range(100): x + x, x - 1, x.t(), x.view(-1), x.unsqueeze(0), x.sum(), x.softmax(1), x.half()\n"
            "assert 'llvmlite' not in sys.modules and 'flambeau._tensor.fastpath.known_calls' not in sys.modules")
    subprocess.run([sys.executable, "-c", code], check=True)


def _frames(call):
    """The names of the Python functions that a call runs after it became known, and its result."""
    for _ in range(MANY * LEARNED):
        call()
    names = []
    sys.setprofile(lambda frame, event, _: event == "call" and names.append(frame.f_code.co_name))
    result = call()
    sys.setprofile(None)
    return names, result


@pytest.mark.parametrize("name", ["isnan", "logical_not", "signbit", "eq", "gt", "isfinite"])
def test_calls_without_derivative_are_known_where_tensors_require_gradients(name):
    x, y = _random(4, 6).requires_grad_(), _random(4, 6, seed=1).requires_grad_()
    arguments = (x, y) if name in ("eq", "gt") else (x,)
    function = getattr(torch, name)
    names, result = _frames(lambda: function(*arguments))
    assert set(names) <= {"<lambda>", "call", "classify", "operate"}
    assert (result.requires_grad, result.grad_fn, result.is_leaf) == (False, None, True)
    assert torch.equal(result, function(*(each.detach().double() for each in arguments)))


def test_any_and_all_of_tensors_that_require_gradients():
    x = _random(4, 6).requires_grad_()
    for function in (torch.any, torch.all, torch.argmax, torch.argmin):
        expected = function(x.detach().double(), 1)
        for _ in range(MANY):
            result = function(x, 1)
        assert torch.equal(result, expected)
        assert not result.requires_grad


@pytest.mark.parametrize("name", ["sqrt", "abs", "neg"])
def test_operators_that_numpy_computes_in_one_pass_are_known(name):
    x, function = _random(4, 6).abs(), getattr(torch, name)
    expected = function(x.double()).float()
    names, result = _frames(lambda: function(x))
    assert names == ["<lambda>", name if name in names else "call"]
    assert torch.equal(result, expected)
    leaf = x.clone().requires_grad_()
    assert type(function(leaf).grad_fn).__name__ == f"{name.capitalize()}Backward0"
    with torch.no_grad():
        assert not function(leaf).requires_grad
    transposed = function(x.t())
    assert transposed.stride() == x.t().stride()


def test_kernels_that_are_switched_off_leave_known_calls():
    function, calls = _counting()
    x, y = _random(4, 4), _random(4, 4, seed=1)
    _known(function, x, y, 0.25)
    calls.clear()
    SMALL_KERNELS[0] = False
    try:
        function(x, y, 0.25)
    finally:
        SMALL_KERNELS[0] = True
    assert len(calls) == 1


_THREADS = """
import sys, threading
import flambeau as torch
from flambeau.backends.compiled import enable_kernels

enable_kernels()
sys.setswitchinterval(1e-6)
wrong = []

def work(number):
    for i in range(500):
        size = 3 + (number * 7 + i // 3) % 40  # more shapes than a function has entries
        x, w = torch.full((5, size), 0.5), torch.eye(size)
        hidden = torch.tanh(x @ w)
        if abs(torch.log_softmax(hidden, -1).exp().sum().item() - 5) > 1e-3 or (hidden * x).sum().item() <= 0:
            wrong.append(size)

for turn in range(4):
    crew = [threading.Thread(target=work, args=(number,)) for number in range(5)]
    for thread in crew:
        thread.start()
    for thread in crew:
        thread.join()
print("wrong", wrong)
"""


def test_threads_replace_each_others_entries():
    done = subprocess.run([sys.executable, "-c", _THREADS], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "wrong []\n"), done.stderr
