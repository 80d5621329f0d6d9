"""Known calls of any number of rows: the same results as Python's, whatever shapes come one after the other."""

from __future__ import annotations

import gc
import threading

import numpy as np
import pytest

import flambeau as torch
from flambeau import codegen
from flambeau._tensor.fastpath import repeated_layouts
from flambeau._tensor.fastpath.free import calls as free_calls
from flambeau._tensor.fastpath.free.rows import formula_of
from flambeau._tensor.fastpath.repeated_calls import launched
from flambeau._tensor.fastpath.repeated_layouts import FREE, KnownCalls, same_arrays
from flambeau.backends.compiled import enable_kernels
from flambeau.kernels.memory_format import layouts_seen
from flambeau.runtime import object_layout
from tests._tensor.numpy_path import without_kernels

F = torch.nn.functional
W = 6
pytestmark = pytest.mark.skipif(not (codegen.available() and object_layout.readable()), reason="no generated code")


@pytest.fixture(autouse=True)
def _kernels():
    enable_kernels()


@pytest.fixture
def added(monkeypatch):
    """The calls whose entries serve any number of rows; they are planned early."""
    found = []
    observe = free_calls.observe_free

    def observe_free(known, function, args, kwargs, result):
        enter = observe(known, function, args, kwargs, result)
        if enter is not None:
            found.append(getattr(function, "__name__", ""))
        known.free_left, known.free_wait = min(known.free_left, 4), 1
        return enter

    monkeypatch.setattr(free_calls, "observe_free", observe_free)
    monkeypatch.setattr(repeated_layouts, "FREE", 4)
    layouts_seen[0], before = False, layouts_seen[0]
    _forget(4)
    yield found
    _forget(FREE)  # with so rare attempts as functions have at first: they make references
    layouts_seen[0] = before


def _forget(wait):
    """Make functions as new: without entries, and with their next attempt after `wait` calls."""
    gc.unfreeze()  # else objects that existed before a `gc.freeze` are not found
    for each in gc.get_objects():  # `isinstance` asks properties, which may warn
        if type(each) is KnownCalls:
            each.free_left = each.free_wait = wait
            each.left = each._wait = each._first_wait
            each.candidate = None
            if each._table is not None and each._table.enter is not None:
                each._table._block[1], each._table._entries = 0, []
                each._table._full = each._table._next = 0
                each._table._refused.clear()


def _floats(rng, *shape):
    return torch.from_numpy(rng.standard_normal(shape).astype(np.float32))


def _longs(rng, most, *shape):
    return torch.from_numpy(rng.integers(0, most, shape))


#: by name: (random numbers, shape of rows) -> arguments, and the function of them
CALLS = {
    "exp": (lambda r, s: (_floats(r, *s, W),), torch.exp),
    "gelu": (lambda r, s: (_floats(r, *s, W),), F.gelu),
    "gt": (lambda r, s: (_floats(r, *s, W), _floats(r, *s, W)), torch.gt),
    "add a number": (lambda r, s: (_floats(r, *s, W), 1.5), torch.add),
    "sub": (lambda r, s: (_floats(r, *s, W), _floats(r, *s, W)), torch.sub),
    "mul a row": (lambda r, s: (_floats(r, *s, W), _floats(r, W)), torch.mul),
    "sub a column": (lambda r, s: (_floats(r, *s, W), _floats(r, *s, 1)), torch.sub),
    "clamp": (lambda r, s: (_floats(r, *s, W), -0.5, 0.5), torch.clamp),
    "where": (lambda r, s: (_floats(r, *s, W) > 0, _floats(r, *s, W), _floats(r, *s, W)), torch.where),
    "masked_fill": (lambda r, s: (_floats(r, *s, W), _floats(r, *s, W) > 0, -1.0), torch.masked_fill),
    "lerp": (lambda r, s: (_floats(r, *s, W), _floats(r, *s, W), 0.25), torch.lerp),
    "sum": (lambda r, s: (_floats(r, *s, W), -1), torch.sum),
    "mean": (lambda r, s: (_floats(r, *s, W), -1), torch.mean),
    "amax": (lambda r, s: (_floats(r, *s, 300), -1), torch.amax),
    "cumsum": (lambda r, s: (_floats(r, *s, W), -1), torch.cumsum),
    "softmax": (lambda r, s: (_floats(r, *s, W), -1), torch.softmax),
    "log_softmax": (lambda r, s: (_floats(r, *s, W), -1), torch.log_softmax),
    "layer_norm": (lambda r, s: (_floats(r, *s, 300), (300,), _floats(r, 300), _floats(r, 300)), F.layer_norm),
    "gather": (lambda r, s: (_floats(r, *s, W), -1, _longs(r, W, *s, 2)), torch.gather),
    "index_select": (lambda r, s: (_floats(r, 9, 20), 0, _longs(r, 9, int(np.prod(s)))), torch.index_select),
    "embedding": (lambda r, s: (_longs(r, 9, *s), _floats(r, 9, 20)), F.embedding),
}


def _shape(rng):
    """Rows of one and two free extents, also none and one."""
    if rng.random() < 0.3:
        return int(rng.integers(0, 6)), int(rng.integers(1, 6))
    return (int(rng.integers(0, 40)),)


def _result(function, args):
    try:
        return function(*args)
    except Exception as error:  # both have to raise it
        return type(error), str(error)


def _same(found, expected):
    if isinstance(expected, tuple):
        return found == expected
    return found.requires_grad == expected.requires_grad and type(found.grad_fn) is type(expected.grad_fn) and (
        same_arrays(found._array, expected._array))


@pytest.mark.parametrize("name", CALLS)
def test_shapes_one_after_the_other(added, name):
    make, function = CALLS[name]
    rng = np.random.default_rng(7)
    for i in range(1500):
        args = make(rng, _shape(rng))
        kind = rng.random()
        if i > 200 and kind < 0.3:  # others than those that are known
            floats = [k for k, x in enumerate(args) if isinstance(x, torch.Tensor) and x.dtype == torch.float32]
            k = floats[int(rng.integers(len(floats)))] if floats else 0
            x = args[k]
            if kind < 0.1 and isinstance(x, torch.Tensor):
                x = x.clone().requires_grad_() if x.dtype == torch.float32 else x
            elif kind < 0.2:
                x = torch.from_numpy(np.repeat(x.numpy(), 2, axis=-1)[..., ::2])
            else:
                x = x.double()
            args = (*args[:k], x, *args[k + 1:])
        found = _result(function, args)
        expected = without_kernels(lambda args=args: _result(function, args))
        assert _same(found, expected), (i, [getattr(x, "shape", x) for x in args])
    assert added


def test_one_entry_serves_many_shapes(added):
    calls = []

    def lerp(*args):
        calls.append(args)
        return torch.lerp(*args)

    function, rng = launched(lerp), np.random.default_rng(0)
    for n in range(2, 80, 2):
        function(_floats(rng, n, 3), _floats(rng, n, 3), 0.25)
    assert added
    calls.clear()
    for n in range(3, 80, 2):
        x, y = _floats(rng, n, 3), _floats(rng, n, 3)
        np.testing.assert_array_equal(function(x, y, 0.25).numpy(), torch.lerp(x, y, 0.25).numpy())
    assert not [len(args[0]) for args in calls]


def test_extents_that_differ_between_tensors_are_the_functions(added):
    rng = np.random.default_rng(0)
    lerp = launched(lambda *args: torch.lerp(*args))
    for n in range(2, 60):
        lerp(_floats(rng, n, 4), _floats(rng, n, 4), 0.25)
    assert added
    x, y = _floats(rng, 61, 4), _floats(rng, 1, 4)
    np.testing.assert_array_equal(lerp(x, y, 0.25).numpy(), lerp(x, y.expand(61, 4).clone(), 0.25).numpy())
    with pytest.raises(RuntimeError):
        lerp(x, _floats(rng, 60, 4), 0.25)
    square = lerp(_floats(rng, 4, 61), _floats(rng, 4, 61), 0.25)
    assert square.shape == (4, 61)


def test_an_index_out_of_range_raises(added):
    rng = np.random.default_rng(0)
    x = _floats(rng, 9, 20)
    index_select = launched(lambda *args: torch.index_select(*args))
    for n in range(2, 60):
        index_select(x, 0, _longs(rng, 9, n))
    assert added
    index = _longs(rng, 9, 70)
    index[69] = 9
    with pytest.raises(IndexError):
        index_select(x, 0, index)


def test_threads(added):
    """Words of a plan are set and read while no other thread runs."""
    rng = np.random.default_rng(0)
    inputs = [_floats(rng, n, W) for n in range(2, 90)]
    expected = [x.numpy() * np.float32(1.5) for x in inputs]
    scale, softmax = launched(lambda x: torch.mul(x, 1.5)), launched(lambda x: torch.softmax(x, -1))
    for x in inputs:
        scale(x)
        softmax(x)
    rows = [torch.softmax(x, -1).numpy().copy() for x in inputs]
    assert added
    wrong = []

    def work(seed):
        order = np.random.default_rng(seed)
        for k in order.integers(0, len(inputs), 4000):
            if not np.array_equal(scale(inputs[k]).numpy(), expected[k]) or not np.array_equal(
                    softmax(inputs[k]).numpy(), rows[k]):
                wrong.append(k)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert not wrong


def test_a_word_that_no_formula_gives_is_refused():
    numbers = np.arange(2, 100)
    assert formula_of(numbers, 3 * numbers + 5) == (0, 0, 3, 5)
    assert formula_of(numbers, 8 * ((numbers + 15) // 16) - 1) == (15, 4, 8, -1)
    assert formula_of(numbers, numbers * numbers) is None
    assert formula_of(numbers, (numbers + 2) // 3) is None
