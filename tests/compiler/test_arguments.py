"""Arguments and results of compiled functions: kinds, layouts, aliasing, containers."""

from __future__ import annotations

import gc
import weakref
from collections import OrderedDict, namedtuple

import numpy as np
import pytest

import flambeau as torch
from flambeau import codegen, nn
from tests.compiler.eager_comparison import Scenario, compare_with_eager, compiled_of, numbers, programs, reasons, same

pytestmark = pytest.mark.skipif(not codegen.available(), reason="llvmlite is not installed, or FLAMBEAU_JIT is 0")


def twice(function, *calls, **options):
    """Call a function and its compiled form with what each of the callables makes; the compiled function."""
    made = torch.compile(function, **options)
    for i, call in enumerate(calls):
        mine, theirs = call(), call()
        want = function(*theirs)
        got = made(*mine)
        same(got, want, path=f"result of call {i}")
        same(mine, theirs, path=f"arguments after call {i}")
        assert [t._version for t in mine if isinstance(t, torch.Tensor)] == [
            t._version for t in theirs if isinstance(t, torch.Tensor)]
    return made


def call(*makers):
    return lambda: tuple(make() if callable(make) else make for make in makers)


def random(*shape, seed=0, grad=False):
    return lambda: numbers(*shape, seed=seed).requires_grad_(grad)


# ----- layouts ----------------------------------------------------------------------------

LAYOUTS = {
    "transposed": lambda s: numbers(5, 4, seed=s).t(),
    "with steps": lambda s: numbers(8, 10, seed=s)[::2, 1::2],
    "a part": lambda s: numbers(6, 7, seed=s)[1:5, 1:6],
    "expanded": lambda s: numbers(4, 1, seed=s).expand(4, 5),
    "repeated": lambda s: numbers(5, seed=s).expand(4, 5),
    "permuted": lambda s: numbers(5, 3, 4, seed=s).permute(2, 0, 1)[..., 1],
    "channels last": lambda s: numbers(1, 4, 1, 5, seed=s).contiguous(memory_format=torch.channels_last)[0, :, 0],
    "one element wide": lambda s: numbers(4, 1, seed=s).expand(4, 5).t().t(),
    "windows": lambda s: numbers(12, seed=s).unfold(0, 5, 2),
}


@pytest.mark.parametrize("name", LAYOUTS)
@pytest.mark.parametrize("grad", [False, True])
def test_layouts(name, grad):
    def f(x, y):
        z = (x * y + 1).tanh()
        out = [z, z.t() @ x, x.sum(0), x.reshape(-1)[:3] * 2, x.contiguous() + y]
        if grad:
            return [o.detach() for o in out] + list(torch.autograd.grad(sum(o.sum() for o in out), [x, y]))
        return out

    def make(s):
        return LAYOUTS[name](s).requires_grad_(grad), numbers(4, 5, seed=s + 10).requires_grad_(grad)

    made = twice(f, *[lambda s=s: make(s) for s in range(5)])
    assert programs(made) == 1, reasons(made)


@pytest.mark.parametrize("name", [name for name in LAYOUTS if name not in ("expanded", "repeated", "windows",
                                                                         "one element wide")])
def test_writes_to_layouts(name):
    def f(x):
        x.mul_(2)
        x[1] = 3.0
        x[:, 2] += 1
        x.t()[1].add_(5)
        return x.sum()

    made = twice(f, *[lambda s=s: (LAYOUTS[name](s),) for s in range(5)])
    assert programs(made) == 1, reasons(made)


def test_another_layout_is_another_signature():
    made = twice(lambda x: (x * 2).sum(1), *[call(random(4, 4, seed=i)) for i in range(3)],
                 *[lambda i=i: (numbers(4, 4, seed=i).t(),) for i in range(3)], call(random(4, 4, seed=9)))
    assert programs(made) == 2


def test_zero_dimensional_tensors():
    def f(x, y):
        z = x * y + 2
        return z, z.exp() - x, (z > 0), z.reshape(1), z.expand(3)

    made = twice(f, *[call(random(seed=i), random(seed=i + 9)) for i in range(5)])
    assert programs(made) == 1


@pytest.mark.parametrize("shape", [(0,), (0, 3), (3, 0), (2, 0, 4)])
def test_empty_tensors(shape):
    def f(x):
        return x * 2, x.sum(), x.sum(0), torch.cat([x, x]), x.reshape(-1), x.clone().add_(1), x.exp().mean()

    twice(f, *[call(random(*shape)) for _ in range(4)])
    twice(lambda x: torch.autograd.grad((x * 2).sum(), x), *[call(random(*shape, grad=True)) for _ in range(4)])


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "bfloat16", "int64", "int32", "int16", "int8",
                                   "uint8", "bool", "complex64", "complex128"])
def test_dtypes(dtype):
    kind = getattr(torch, dtype)

    def f(x, y):
        return x + y if kind is not torch.bool else x ^ y, x * y, x == y, x.sum(), torch.where(x == y, x, y), -y \
            if kind is not torch.bool else ~y, torch.cat([x, y]), x.to(torch.float32 if not kind.is_complex else kind)

    def make(s):
        def one(seed):
            return (numbers(4, 3, seed=seed) * 3).to(kind)

        return one(s), one(s + 5)

    twice(f, *[lambda s=s: make(s) for s in range(5)])


def test_alternating_shapes_and_dtypes():
    def f(x):
        return (x * 2 + 1).sum(-1)

    shapes = [(3,), (4, 3), (2, 4, 3), (3,), (4, 3), (2, 4, 3)] * 3
    made = twice(f, *[call(random(*shape, seed=i)) for i, shape in enumerate(shapes)],
                 *[lambda i=i: (numbers(4, 3, seed=i, dtype="float64"),) for i in range(4)])
    assert programs(made) == 4


# ----- Python's values --------------------------------------------------------------------

def test_python_scalars_are_part_of_the_signature():
    made = twice(lambda x, k, mode="a": x * k if mode == "a" else x + k,
                 *[call(random(3, seed=i), k) for i, k in enumerate([2, 2, 2, 3, 3, 3, 2, 2.0, 2.0, 2.0, True, 2])],
                 *[call(random(3), 2, "b") for _ in range(4)])
    assert programs(made) >= 3


@pytest.mark.parametrize("spans", [
    (slice(0, 2), slice(1, 3), slice(0, 3, 2), slice(None)), (range(2), range(1, 3), range(0, 3, 2), range(3, 1, -1))])
def test_slices_and_ranges_are_part_of_the_signature(spans):
    made = torch.compile(lambda x, span: x[span].exp() * (span.start or 1))
    for _ in range(4):
        for span in spans:
            x = numbers(4, 3)
            same(made(x, type(span)(span.start, span.stop, span.step) if span != slice(None) else slice(None)),
                 made.function(x, span))
    assert programs(made) == len(spans)


def test_signed_zeros():
    made = torch.compile(lambda x, zero: x / zero)
    x = torch.ones(3)
    for zero in (0.0, 0.0, 0.0, -0.0, -0.0, -0.0, 0.0, -0.0):
        assert made(x, zero).tolist() == [float("inf") * np.copysign(1, zero)] * 3
    for zero in (0j, 0j, 0j, complex(0.0, -0.0), complex(-0.0, 0.0)):
        assert str(made(x, 1 / (1 + zero)).tolist()) == str((x / (1 / (1 + zero))).tolist())


def test_nan_is_one_signature():
    made = torch.compile(lambda x, k: x + k)
    for _ in range(6):
        assert made(torch.ones(2), float("nan")).isnan().all()
    assert len(made._signatures) == 1


def test_keyword_arguments_and_defaults():
    def f(x, *, scale=2.0, shift=None):
        return x * scale + (0 if shift is None else shift)

    made = torch.compile(f)
    for i in range(4):
        x, shift = numbers(3, seed=i), numbers(3, seed=i + 9)
        same(made(x), f(x))
        same(made(x, scale=3.0), f(x, scale=3.0))
        same(made(x, shift=shift), f(x, shift=shift))
        same(made(x=x, shift=shift), f(x, shift=shift))
    assert programs(made) == 4


Pair = namedtuple("Pair", "first second")


def test_nested_containers_in_and_out():
    def f(tree):
        a, (b, c), named = tree["a"], tree["more"], tree["named"]
        return {"sum": a + b, "pair": Pair(c * 2, [named.first, {"k": named.second - a}]), "n": 3, "none": None,
                "ordered": OrderedDict(x=a * 2)}

    def make(s):
        x = [numbers(3, seed=s + 10 * i) for i in range(5)]
        return ({"a": x[0], "more": (x[1], x[2]), "named": Pair(x[3], x[4])},)

    made = twice(f, *[lambda s=s: make(s) for s in range(5)])
    assert programs(made) == 1


def test_other_keys_are_other_signatures():
    made = torch.compile(lambda d: sum(v * (i + 1) for i, v in enumerate(d.values())))
    for i in range(4):
        x, y = numbers(3, seed=i), numbers(3, seed=i + 9)
        for d in ({"a": x, "b": y}, {"b": x, "a": y}, {1: x, 2: y}, {"1": x, "2": y}, {"a": x}):
            same(made(d), made.function(d))
    assert programs(made) == 5


def test_mutated_containers():
    def f(out, x):
        out["y"] = x * 2
        out["list"].append(x + 1)
        return x

    def make(s):
        return {"list": []}, numbers(3, seed=s)

    twice(f, *[lambda s=s: make(s) for s in range(5)])


def test_objects_are_distinguished_by_identity():
    class Scale:
        def __init__(self, k):
            self.k = k

    def f(x, scale):
        return x * scale.k

    made = torch.compile(f)
    x = numbers(3)
    for k in range(40):  # many will have the address of an earlier one
        scale = Scale(k)
        for _ in range(3):
            same(made(x, scale), x * k)
        del scale


def test_mutated_objects():
    class Scale:
        k = 2.0

    scale, x = Scale(), numbers(3)
    made = torch.compile(lambda x, scale: x * scale.k)
    for k in (2.0, 2.0, 2.0, 3.0, 3.0, 3.0, 2.0):
        scale.k = k
        same(made(x, scale), x * k)


@pytest.mark.parametrize("size", [3, 100_000])
def test_numpy_arrays(size):
    array, x = np.ones(size, np.float32), torch.ones(size)
    for f in (lambda x, a: x * torch.from_numpy(a), lambda x, a: x * torch.tensor(a), lambda x, a: x * float(a.sum()),
              lambda x, a: x + torch.as_tensor(a)):
        made = torch.compile(f)
        for i in range(6):
            array[:] = max(1, i - 2)
            same(made(x, array), f(x, array))


def test_modules_as_arguments():
    first, second = nn.Linear(3, 3), nn.Linear(3, 3)
    made = torch.compile(lambda m, x: m(x).detach())
    for i in range(5):
        for m in (first, second):
            x = numbers(2, 3, seed=i)
            same(made(m, x), m(x).detach())
        with torch.no_grad():
            first.weight.mul_(1.5)


# ----- memory that is shared --------------------------------------------------------------

def writes_first(x, y):
    x.mul_(2)
    return x + y, y * 3


def writes_second(x, y):
    y.add_(1)
    return x * y


def only_reads(x, y):
    return x * y + x


@pytest.mark.parametrize("f", [writes_first, writes_second, only_reads])
def test_aliased_arguments(f):
    apart = [call(random(4, seed=i), random(4, seed=i + 9)) for i in range(4)]

    def one():
        x = numbers(4, seed=30)
        return x, x

    def views():
        x = numbers(6, seed=30)
        return x[:4], x[2:]

    def alike():
        x = numbers(4, seed=30)
        return x, x.view(4)

    def detached():
        x = numbers(4, seed=30)
        return x, x.detach()

    for shared in (one, views, alike, detached):
        twice(f, *apart, shared, shared, shared, *apart)
        twice(f, shared, shared, shared, *apart, shared)


def test_views_of_one_array_are_compiled():
    def halves(s):
        x = numbers(9, 4, seed=s)
        return x[:-1], x[1:]

    def f(x, y):
        return ((x - y) ** 2).mean(), x[2:5, 1] * 2

    made = twice(f, *[lambda s=s: halves(s) for s in range(5)])
    assert programs(made) == 1, reasons(made)


def test_a_repeated_argument_is_compiled():
    def f(x, y):
        return x @ y.t()

    def both(s):
        x = numbers(3, 4, seed=s)
        return x, x

    assert programs(twice(f, *[lambda s=s: both(s) for s in range(5)])) == 1


@pytest.mark.parametrize("f", [writes_first, writes_second, only_reads])
def test_arguments_that_are_also_globals(f):
    def build():
        known = numbers(4, seed=3)
        calls = [known, known, known, numbers(4, seed=1), numbers(4, seed=2), known, known.detach(), known[:]]

        def g(x):
            return f(x, known)

        return Scenario(g, lambda i: (calls[i],), lambda: known)

    compare_with_eager(build, 8)

    def in_turn():
        known = numbers(4, seed=3)
        calls = [numbers(4, seed=1), numbers(4, seed=2), numbers(4, seed=2), known, known, known.view(4), numbers(4)]
        return Scenario(lambda x: f(known, x), lambda i: (calls[i],), lambda: known)

    compare_with_eager(in_turn, 7)


def test_a_parameter_as_an_argument():
    def build():
        model = nn.Linear(3, 3)
        calls = [model.weight] * 4 + [numbers(3, 3, seed=2).requires_grad_()] * 3 + [model.weight]

        def f(w):
            loss = (model(w) ** 2).sum()
            loss.backward()
            return loss

        return Scenario(f, lambda i: (calls[i],), lambda: (model.weight, model.bias, calls))

    compare_with_eager(build, 8)


def test_gradients_of_arguments():
    """Backward inside a function leaves its gradients at the argument of this call."""
    def build():
        leaves = [numbers(3, seed=i).requires_grad_() for i in range(4)]
        order = [0, 0, 0, 1, 1, 2, 2, 3, 0, 3]

        def f(x):
            (x * x).sum().backward()

        def between(i):
            if i == 6:
                leaves[2].grad = None

        return Scenario(f, lambda i: (leaves[order[i]],), lambda: leaves, between)

    compare_with_eager(build, 10)


def test_gradients_of_a_repeated_argument():
    def build():
        leaves = [numbers(3, seed=i).requires_grad_() for i in range(2)]
        order = [(0, 1)] * 4 + [(0, 0)] * 4 + [(1, 0)] * 2

        def f(x, y):
            (x * x * y).sum().backward()

        return Scenario(f, lambda i: tuple(leaves[k] for k in order[i]), lambda: leaves)

    compare_with_eager(build, 10)


def test_outer_gradients_of_a_repeated_argument():
    made = torch.compile(lambda x, y: (x * x * y).sum())
    for pair in [(0, 1)] * 4 + [(0, 0)] * 4 + [(1, 0)] * 2:
        leaves = [numbers(3, seed=i).requires_grad_() for i in range(2)]
        again = [numbers(3, seed=i).requires_grad_() for i in range(2)]
        made(*[leaves[k] for k in pair]).backward()
        made.function(*[again[k] for k in pair]).backward()
        same(leaves, again)


def test_arguments_are_not_retained():
    def f(x, w):
        y = (x * w).sum()
        y.backward()
        return x * 2

    made = torch.compile(f)
    for i in range(5):
        x, w = numbers(4, seed=i), numbers(4, seed=i).requires_grad_()
        made(x, w)
    assert programs(made) >= 1
    gone = [weakref.ref(x), weakref.ref(w)]
    del x, w
    gc.collect()
    assert [ref() for ref in gone] == [None, None]


# ----- results ----------------------------------------------------------------------------

def test_results_that_are_arguments_or_globals():
    def build():
        known, parameter = numbers(3, seed=5), nn.Parameter(numbers(3, seed=6))

        def f(x, y):
            return x, y, known, parameter, x + y, "a constant", 7, [x]

        return Scenario(f, lambda i: (numbers(3, seed=i), numbers(3, seed=i).requires_grad_()), lambda: known)

    made = compare_with_eager(build)
    x, y = numbers(3), numbers(3, seed=9).requires_grad_()
    for _ in range(2):
        found = made(x, y)
        assert found[0] is x
        assert found[1] is y
        assert found[7][0] is x


def test_repeated_results_are_one_object():
    def f(x):
        y = x * 2
        return y, [y], x + 1

    made = torch.compile(f)
    for i in range(5):
        first, [second], _ = made(numbers(3, seed=i))
        assert first is second
        x = numbers(3, seed=i).requires_grad_()
        first, [second], _ = made(x)
        assert first is second
        first.sum().backward()
        assert x.grad.tolist() == [2.0] * 3


def test_results_that_are_views_share_memory():
    def f(x, y):
        z = x * 2
        return z, z[1], z.t(), x[0], y.view(-1)

    made = torch.compile(f)
    for i in range(6):
        x, y = numbers(3, 4, seed=i), numbers(3, 4, seed=i + 9)
        z, row, turned, part, flat = made(x, y)
        expected = f(x, y)
        same([z, row, turned, part, flat], list(expected))
        row.fill_(7)
        assert z[1].tolist() == [7] * 4
        assert turned[:, 1].tolist() == [7] * 4
        part.fill_(8)
        assert x[0].tolist() == [8] * 4
        flat[0] = 9
        assert y[0, 0] == 9
        assert [t._is_view() for t in (z, row, turned, part, flat)] == [t._is_view() for t in expected]
        assert row._base is z
        assert part._base is x
        before = x._version
        part.mul_(2)
        assert x._version == before + 1


def test_results_are_new_each_time():
    def f(x):
        return x * 2, torch.zeros(3), torch.tensor([1.0, 2.0]), x.new_ones(2)

    made = torch.compile(f)
    kept = []
    for i in range(6):
        found = made(numbers(3, seed=i))
        same(found, f(numbers(3, seed=i)))
        for t in found:
            t += 100
        kept.append(found)
    assert len({t.data_ptr() for found in kept for t in found}) == 24


def test_leaves_created_by_the_function():
    def f(x):
        w = torch.ones(3, requires_grad=True)
        v = (x * 2).detach().requires_grad_()
        return w, v, nn.Parameter(x + 1), x * 3

    made = twice(f, *[call(random(3, seed=i)) for i in range(5)])
    w, v, p, _ = made(numbers(3))
    (w * v * p).sum().backward()
    assert w.grad is not None
    assert v.grad is not None


def test_no_arguments_and_no_results():
    known = numbers(3)

    def f():
        known.mul_(2)

    made = torch.compile(f)
    first = known.clone()
    for i in range(6):
        assert made() is None
        same(known, first * 2 ** (i + 1))
    assert programs(made) == 1


def test_results_that_are_not_tensors():
    made = twice(lambda x: (x.shape, x.dtype, x.ndim, x.requires_grad, list(x.shape), x.stride()),
                 *[call(random(3, 4, seed=i)) for i in range(5)])
    assert compiled_of(made)
