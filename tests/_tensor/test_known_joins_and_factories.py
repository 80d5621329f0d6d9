"""Joins and factories that generated code finds and runs: results, layouts and modes of calls that Python runs."""

from __future__ import annotations

import gc
import subprocess
import sys

import numpy as np
import pytest

import flambeau as torch
from flambeau import codegen
from flambeau._tensor.fastpath.known_calls import EVERY
from flambeau._tensor.fastpath.repeated_layouts import LEARNED
from flambeau.backends.compiled import enable_kernels
from flambeau.runtime import object_layout
from tests._tensor.numpy_path import without_kernels

#: calls after which the next one is known
MANY = 2 * LEARNED + 2
pytestmark = pytest.mark.skipif(not (codegen.available() and object_layout.readable()), reason="no generated code")


@pytest.fixture(autouse=True)
def _kernels():
    enable_kernels()


def _random(*shape, seed=0, dtype=torch.float32):
    return torch.from_numpy(np.random.default_rng(seed).standard_normal(shape) * 8).to(dtype)


def _frames(call):
    """The names of the Python functions of this package that a call enters."""
    names = []

    def note(frame, event, _):
        if event == "call" and "flambeau" in frame.f_code.co_filename and "tests" not in frame.f_code.co_filename:
            names.append(frame.f_code.co_name)

    sys.setprofile(note)
    call()
    sys.setprofile(None)
    return names


def _same(found, expected):
    assert found.dtype is expected.dtype
    assert found.shape == expected.shape
    assert found.stride() == expected.stride()
    assert found.contiguous().view(torch.uint8).numpy().tobytes() == (
        expected.contiguous().view(torch.uint8).numpy().tobytes()) if found.ndim else torch.equal(found, expected)
    assert (found.requires_grad, found.is_leaf, found._version, found._base) == (False, True, 0, None)


JOINS = {
    "cat": lambda x, y: torch.cat([x, y]), "cat(1)": lambda x, y: torch.cat((x, y), 1),
    "cat(dim=-1)": lambda x, y: torch.cat([x, y, y], dim=-1), "cat(-2)": lambda x, y: torch.cat([x, x], -2),
    "stack": lambda x, y: torch.stack([x, y]), "stack(1)": lambda x, y: torch.stack((x, y), 1),
    "stack(-1)": lambda x, y: torch.stack([x, y, x], dim=-1), "hstack": lambda x, y: torch.hstack([x, y]),
    "vstack": lambda x, y: torch.vstack((x, y)), "dstack": lambda x, y: torch.dstack([x, y]),
    "column_stack": lambda x, y: torch.column_stack([x, y]), "concat": lambda x, y: torch.concat([x, y], 1),
    "rows": lambda x, y: torch.stack([x[0], y[1]]), "columns": lambda x, y: torch.cat([x[:, 1:3], y], 1),
    "chunks": lambda x, y: torch.cat(x.chunk(2, 1)[::-1], 1), "vectors": lambda x, y: torch.hstack([x[0], y[0]]),
    "transposed": lambda x, y: torch.cat([x.t(), y.t()]), "expanded": lambda x, y: torch.cat([x[:1].expand(4, -1), y]),
    "every other": lambda x, y: torch.cat([x[::2], y]),
    "scalars": lambda x, y: torch.stack([x[0, 0], y[0, 0]]), "column of vectors": lambda x, y: torch.column_stack(
        [x[0], y[0]]), "of one": lambda x, y: torch.cat([x])}


@pytest.mark.parametrize("dtype", ["float32", "float64", "int64", "bool", "bfloat16", "float16", "complex64"])
@pytest.mark.parametrize("name", JOINS)
def test_joins(name, dtype):
    call = JOINS[name]
    for seed in range(MANY):
        x, y = (_random(4, 6, seed=seed + i, dtype=getattr(torch, dtype)) for i in (0, 1))
        _same(call(x, y), without_kernels(lambda x=x, y=y: call(x, y)))


def test_joins_beside_pytorch():
    oracle = pytest.importorskip("torch")
    for name, call in JOINS.items():
        x, y = _random(4, 6), _random(4, 6, seed=1)
        a, b = oracle.from_numpy(x.numpy()), oracle.from_numpy(y.numpy())
        for _ in range(MANY):
            found = call(x, y)
        scope = {"torch": oracle}
        expected = type(call)(call.__code__, scope)(a, b)
        assert np.array_equal(found.numpy(), expected.numpy()), name
        assert found.stride() == expected.stride(), name


def test_known_joins_run_no_python():
    x, y = _random(4, 4), _random(4, 4, seed=1)
    for call in (lambda: torch.cat([x, y], 1), lambda: torch.stack((x, y)), lambda: torch.vstack([x, y])):
        for _ in range(LEARNED * EVERY + 1):  # even if other calls use up the entries
            call()
        assert len(_frames(call)) == 1


def test_other_lists_are_other_calls():
    x, y, z = _random(2, 2), _random(2, 2, seed=1), _random(2, 3, seed=2)
    for _ in range(MANY):
        torch.cat([x, y], 1)
    numbers = [each.numpy() for each in (x, y, z)]
    for given, dim in (([x, y], 0), ([y, x], 1), ([x, x], 1), ([x, z], 1), ([x], 1), ([x, y, x], 1), ((x, y), 1),
                       ([x, y], -1), ([x.t(), y], 1), ([x.double(), y.double()], 1)):
        found = torch.cat(given, dim)
        assert np.array_equal(found.numpy(), np.concatenate([each.numpy() for each in given], dim))
    items = [x, y]
    torch.cat(items, 1)
    items[1] = z
    assert np.array_equal(torch.cat(items, 1).numpy(), np.concatenate([numbers[0], numbers[2]], 1))
    items.append(y)
    assert torch.cat(items, 1).shape == (2, 7)
    assert torch.cat([x, y.double()], 1).dtype is torch.float64
    with pytest.raises(RuntimeError, match="Sizes of tensors must match"):
        torch.cat([x, _random(3, 2)], 1)
    with pytest.raises(IndexError, match="Dimension out of range"):
        torch.cat([x, y], 2)
    with pytest.raises(TypeError):
        torch.cat([x, 1], 1)
    with pytest.raises(TypeError):
        torch.cat([x, y], 1.0)
    with pytest.raises((RuntimeError, ValueError)):
        torch.cat([], 1)
    out = torch.empty(2, 4)
    assert torch.cat([x, y], 1, out=out) is out
    assert torch.equal(out, torch.cat([x, y], 1))


def test_joins_are_recorded():
    x, leaf = _random(4, 4), _random(4, 4, seed=1).requires_grad_()
    plain = leaf.detach()
    for call, name in ((lambda a: torch.cat([x, a], 1), "CatBackward0"), (lambda a: torch.stack([a, x]),
                                                                          "StackBackward0")):
        for _ in range(MANY):
            call(plain)
        assert call(leaf).grad_fn.name() == name
        with torch.no_grad():
            for _ in range(MANY):
                assert call(leaf).grad_fn is None
        result = call(leaf)
        result.backward(torch.ones_like(result))
        assert torch.equal(leaf.grad, torch.ones(4, 4))
        leaf.grad = None
    parameter = torch.nn.Parameter(plain.clone())
    assert torch.cat([x, parameter], 1).requires_grad


def test_joins_in_modes():
    x, y = _random(4, 4), _random(4, 4, seed=1)

    def call(a):
        return torch.cat([a, a.new_zeros(a.shape)])

    for _ in range(MANY):
        call(x[0])
    assert torch.equal(torch.func.vmap(call)(x), torch.cat([x, torch.zeros(4, 4)], 1))
    value, tangent = torch.func.jvp(lambda a: torch.stack([a, y]), (x,), (y,))
    assert torch.equal(value, torch.stack([x, y]))
    assert torch.equal(tangent, torch.stack([y, torch.zeros(4, 4)]))
    seen = []
    from flambeau._tensor.dispatch.interception import Interceptor

    class Noting(Interceptor):
        def on_operator(self, op, inputs, params, outs, in_place):
            seen.append(op.name)

    with Noting():
        torch.cat([x, y])
    assert seen == ["cat"]


FACTORIES = {
    "zeros": lambda x: torch.zeros(4, 6), "zeros of a tuple": lambda x: torch.zeros((4, 6)),
    "zeros of a list": lambda x: torch.zeros([4, 6]), "zeros of a size": lambda x: torch.zeros(x.shape),
    "ones": lambda x: torch.ones(3, dtype=torch.int64), "full": lambda x: torch.full((4, 6), 0.5),
    "full of integers": lambda x: torch.full((4, 6), 3), "-0.0": lambda x: torch.full((2,), -0.0),
    "0.0": lambda x: torch.full((2,), 0.0), "True": lambda x: torch.full((2,), True),
    "bfloat16": lambda x: torch.full((5,), 0.3, dtype=torch.bfloat16), "complex": lambda x: torch.full((2,), 1j),
    "zeros_like": lambda x: torch.zeros_like(x), "ones_like": lambda x: torch.ones_like(x, dtype=torch.float64),
    "full_like": lambda x: torch.full_like(x, 2.5), "of transposed": lambda x: torch.zeros_like(x.t()),
    "of expanded": lambda x: torch.ones_like(x[:1].expand(4, 6)), "new_zeros": lambda x: x.new_zeros(2, 3),
    "new_ones": lambda x: x.new_ones((2, 3)), "new_full": lambda x: x.new_full((2, 3), 7),
    "eye": lambda x: torch.eye(4),
    "eye(2, 5)": lambda x: torch.eye(2, 5, dtype=torch.int32), "arange": lambda x: torch.arange(7),
    "arange of floats": lambda x: torch.arange(0, 1, 0.25), "linspace": lambda x: torch.linspace(0, 1, 5),
    "on the CPU": lambda x: torch.zeros(2, device="cpu"), "named": lambda x: torch.zeros(size=(2, 2))}


@pytest.mark.parametrize("name", FACTORIES)
def test_factories(name):
    oracle = pytest.importorskip("torch")
    call, x = FACTORIES[name], _random(4, 6)
    theirs = type(call)(call.__code__, {"torch": oracle, "__builtins__": __builtins__})(oracle.from_numpy(x.numpy()))
    for _ in range(MANY):
        found = call(x)
        _same(found, without_kernels(lambda: call(x)))
        assert found.stride() == theirs.stride()
        assert np.array_equal(found.to(torch.complex128).numpy(), theirs.to(oracle.complex128).numpy())
        assert str(found.dtype).split(".")[1] == str(theirs.dtype).split(".")[1]
        found.fill_(9)  # which changes no later result


def test_known_factories_run_no_python():
    x, size = _random(4, 4), torch.Size((4, 4))
    for call in (lambda: torch.zeros_like(x), lambda: torch.full((4, 4), 0.5), lambda: torch.eye(4),
                 lambda: torch.arange(16), lambda: torch.zeros(2, 3), lambda: x.new_zeros(size)):
        for _ in range(LEARNED * EVERY + 1):
            call()
        assert len(_frames(call)) == 1


def test_factories_see_their_states():
    leaf = _random(4, 4).requires_grad_()
    calls = {"zeros": lambda: torch.zeros(2), "full": lambda: torch.full((2,), 0.5), "eye": lambda: torch.eye(2),
             "linspace": lambda: torch.linspace(0, 1, 3), "ones_like": lambda: torch.ones_like(leaf)}
    for _ in range(MANY):
        for call in calls.values():
            assert call().dtype is torch.float32
    assert not calls["ones_like"]().requires_grad
    for _ in range(LEARNED * EVERY + 1):
        calls["ones_like"]()
    assert len(_frames(calls["ones_like"])) == 1  # also of tensors that require gradients
    torch.set_default_dtype(torch.float64)
    try:
        for _ in range(MANY):
            assert all((call().dtype is torch.float64) == (name != "ones_like") for name, call in calls.items())
    finally:
        torch.set_default_dtype(torch.float32)
    assert all(call().dtype is torch.float32 for call in calls.values())
    with torch.device("meta"):
        for _ in range(MANY):
            assert all(call().is_meta == (name != "ones_like") for name, call in calls.items())
    assert not any(call().is_meta for call in calls.values())
    assert torch.zeros(2, requires_grad=True).requires_grad
    assert torch.zeros(2, device="meta").is_meta
    out = torch.empty(2)
    for _ in range(MANY):
        assert torch.zeros(2, out=out) is out
    with pytest.raises(TypeError):
        torch.zeros(2.0)
    with pytest.raises(TypeError):
        torch.full((2,), "a")


def test_values_of_tensors_count():
    for number in range(MANY):
        value = torch.tensor(float(number))
        assert torch.full((2,), value).tolist() == [number, number]
        assert torch.full_like(value, value).item() == number
        assert torch.arange(value).shape == (number,)
        assert torch.zeros([torch.tensor(number), 2]).shape == (number, 2)
        assert value.new_full((1,), value).item() == number


def test_inference_mode_marks_results():
    # in a process of its own: the mode is remembered
    code = ("import flambeau as torch; torch.rand(64, 64).exp(); x = torch.ones(4, 4)\n"
            "def calls(): return torch.zeros(4), torch.zeros_like(x), torch.cat([x, x]), torch.stack((x, x + 1))\n"
            f"for _ in range({MANY}): calls()\n"
            "with torch.inference_mode():\n"
            f"    for _ in range({MANY}): assert all(each.is_inference() for each in calls())\n"
            f"for _ in range({MANY}): assert not any(each.is_inference() for each in calls())\n"
            "with torch.inference_mode(): y = torch.empty(4, 4).copy_(x)\n"
            "try: y.copy_(x)\n"
            "except RuntimeError as error: assert 'nference tensor' in str(error)\n"
            "else: raise AssertionError")
    subprocess.run([sys.executable, "-c", code], check=True)


def test_references_are_returned():
    x, y = _random(4, 4), _random(4, 4, seed=1)
    items = [x, y]

    def calls():
        torch.cat(items, 1)
        torch.stack((x, y))
        torch.cat([x, x])
        torch.zeros_like(x)
        torch.full((4, 4), 0.5)
        torch.zeros(x.shape)

    for _ in range(3 * MANY):
        calls()
    objects = (x, y, items, x._array, y._array, x._array.dtype, list, tuple, torch.Size, None)
    gc.collect()
    before = [sys.getrefcount(each) for each in objects]
    for _ in range(500):
        calls()
    gc.collect()
    assert all(abs(b - a) < 50 for a, b in zip(before, map(sys.getrefcount, objects), strict=True))


def test_programs_without_kernels_compile_nothing():
    code = ("import sys, flambeau as torch; x = torch.ones(4, 4)\n"
            "for _ in range(100): torch.cat([x, x]), torch.stack([x, x]), torch.zeros(2), torch.zeros_like(x)\n"
            "assert 'llvmlite' not in sys.modules and 'flambeau._tensor.fastpath.known_calls' not in sys.modules")
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize("name", ["dot", "vectors", "matrix", "transposed", "mv", "trace"])
def test_products_with_vectors_are_arrays(name):
    """What a known product gives may be written to, and has the bits of the operator that is recorded."""
    call = {"dot": lambda x, y: torch.dot(x[0], y[0]), "vectors": lambda x, y: x[0] @ y[1],
            "matrix": lambda x, y: x @ y[0], "transposed": lambda x, y: x.t() @ y[:, 0],
            "mv": lambda x, y: torch.mv(x, y[0]), "trace": lambda x, y: x.trace()}[name]
    for seed in range(40):
        x, y = _random(6, 6, seed=seed), _random(6, 6, seed=seed + 1)
        found = call(x, y)
        expected = call(x.requires_grad_(), y)
        assert expected.requires_grad
        assert found.numpy().tobytes() == expected.detach().numpy().tobytes()
        assert torch.equal(found.clone().add_(1), expected.detach() + 1)
        assert torch.equal(found.add_(1), expected.detach() + 1)


def test_searches():
    edges, values = torch.tensor([-1.0, 0.0, 0.0, 2.0]), torch.tensor([[-2.0, -1.0, 0.0], [1.0, 2.0, 3.0]])
    special = torch.tensor([[float("nan"), -0.0, 0.0], [float("inf"), -float("inf"), 2.0]])
    for dtype in (torch.float32, torch.float64, torch.int64):
        a, b = edges.to(dtype), values.to(dtype)
        for right in (False, True):
            expected = np.searchsorted(a.numpy(), b.numpy(), "right" if right else "left")
            for _ in range(40):
                assert np.array_equal(torch.searchsorted(a, b, right=right).numpy(), expected)
            if dtype.is_floating_point:
                assert np.array_equal(torch.searchsorted(a, special.to(dtype), right=right).numpy(), np.searchsorted(
                    a.numpy(), special.numpy(), "right" if right else "left"))
    for edges in (torch.tensor([2.0, 0.0, 1.0, -1.0]), torch.tensor([0.0, 1.0, 2.0, float("nan")])):
        expected = without_kernels(lambda edges=edges: torch.searchsorted(edges, values))
        assert torch.equal(torch.searchsorted(edges, values), expected)


def test_counts():
    numbers = torch.tensor([3, 0, 3, 1])
    for minlength in (0, 6):
        for _ in range(40):
            assert torch.equal(numbers.bincount(minlength=minlength), torch.tensor([1, 1, 0, 2, 0, 0][:minlength or 4]))
        for other in ([0, 0, 1, 0], [7, 0, 0, 1], [5, 5, 5, 5]):
            assert np.array_equal(torch.tensor(other).bincount(minlength=minlength).numpy(),
                                  np.bincount(other, minlength=minlength))
        with pytest.raises(RuntimeError, match="non-negative"):
            torch.tensor([0, -1, 3, 3]).bincount(minlength=minlength)


def test_one_hot():
    one_hot = torch.nn.functional.one_hot
    classes = torch.tensor([[2, 0], [1, 4]])
    for _ in range(MANY):
        found = one_hot(classes, 5)
        assert np.array_equal(found.numpy(), np.eye(5, dtype=np.int64)[classes.numpy()])
        found.fill_(7)
        assert one_hot(classes).shape == (2, 2, 5)
    for bad, text in (([[2, 0], [1, 5]], "smaller than num_classes"), ([[2, 0], [1, -1]], "non-negative")):
        with pytest.raises(RuntimeError, match=text):
            one_hot(torch.tensor(bad), 5)


def test_reshapes_that_copy():
    x = _random(4, 6)
    for _ in range(MANY):
        for call in (lambda: x.t().reshape(-1), lambda: x.t().reshape(3, 8), lambda: x.t().reshape((8, 3)),
                     lambda: x[:, ::2].reshape(-1), lambda: x[:, 1:3].flatten(), lambda: x.view((6, 4)),
                     lambda: x.reshape([2, -1])):
            found, expected = call(), without_kernels(call)
            assert found.numpy().tobytes() == expected.numpy().tobytes()
            assert (found.shape, found.stride(), found._base is x) == (
                expected.shape, expected.stride(), expected._base is x)
    with torch.enable_grad():
        leaf = x.clone().requires_grad_()
        assert leaf.t().reshape(-1).grad_fn.name() == "UnsafeViewBackward0"


def test_copies_into_tensors():
    x, y = _random(4, 6), _random(4, 6, seed=1)
    to = torch.empty(4, 6)
    assert to.copy_(x) is to
    assert to._version == 1
    assert torch.equal(to, x)
    to.copy_(to)
    assert torch.equal(to, x)
    to[1:].copy_(to[:-1].clone())
    assert torch.equal(to[1:], x[:-1])
    leaf = y.clone().requires_grad_()
    with pytest.raises(RuntimeError, match="leaf Variable"):
        leaf.copy_(x)
    with torch.no_grad():
        assert torch.equal(leaf.copy_(x), x)
    assert to.copy_(leaf).grad_fn.name() == "torch::autograd::CopyBackwards"


def test_comparisons_of_launches_do_not_warn():
    code = ("import warnings; warnings.simplefilter('error'); import flambeau as torch\n"
            "from flambeau.backends.compiled import enable_kernels; enable_kernels()\n"
            "x, ignored = torch.rand(3, 3, dtype=torch.float64), torch.tensor([1, 1, 1])\n"
            "for _ in range(40): torch.nn.functional.nll_loss(x, ignored, ignore_index=1)")
    subprocess.run([sys.executable, "-c", code], check=True)
