"""Plans for ever other sizes, made from a symbolic plan: the bits are those of plans for one layout."""

from __future__ import annotations

import threading

import numpy as np
import pytest

import flambeau as torch
from flambeau import codegen
from flambeau.backends.compiled import enable_kernels, plan_families
from flambeau.backends.compiled.families import matmul as products
from flambeau.backends.compiled.launching import Plan
from flambeau.backends.compiled.plan_families import PlanFamilies, PlanFamily
from flambeau.codegen.elementwise import elementwise
from flambeau.codegen.matmul import matmul
from flambeau.codegen.rows import reduction
from flambeau.codegen.scalar.scalar_ir import variable
from flambeau.runtime import launch
from flambeau.runtime.launch import Spec

pytestmark = pytest.mark.skipif(not codegen.available(), reason="no generated code")
F32 = np.dtype(np.float32)


def _transposed(shape, dtype=F32):
    strides = Spec.dense(tuple(reversed(shape)), dtype).strides
    return Spec(shape, tuple(reversed(strides)), dtype)


def _product(left, right):
    def make(specs):
        return matmul.launches(specs[:1], *specs[1:3], specs[3:], nodes if len(specs) > 3 else None)

    nodes = (variable(0, F32) + variable(1, F32),)
    return lambda n: [Spec.dense((*left(n).shape[:-1], right(n).shape[-1]), F32), left(n), right(n)], make


def _linear():
    specs, make = _product(lambda n: Spec.dense((n, 64), F32), lambda n: _transposed((64, 48)))
    return lambda n: [*specs(n), Spec.dense((48,), F32)], make


def _reduction(axes):
    def make(specs):
        return reduction.launches([("sum", variable(0, F32))], specs[:1], specs[1:], axes)

    return lambda n: [Spec.dense(tuple([e for d, e in enumerate((n, 64)) if d not in axes]), F32),
                      Spec.dense((n, 64), F32)], make


#: n -> the layouts, and what plans launches
FAMILIES = {
    "linear": _linear(),
    "gradient of the input": _product(lambda n: Spec.dense((n, 64), F32), lambda n: Spec.dense((64, 48), F32)),
    "gradient of the weight": _product(lambda n: _transposed((64, n)), lambda n: Spec.dense((n, 48), F32)),
    "attention": _product(lambda n: Spec.dense((8, n, 16), F32), lambda n: Spec((8, 16, n), (n * 64, 4, 64), F32)),
    "slices": _product(lambda n: Spec((n, 32), (384, 4), F32), lambda n: Spec.dense((32, n), F32)),
    "sum(0)": _reduction((0,)),
    "sum(1)": _reduction((1,)),
    "sum()": _reduction((0, 1)),
    "elementwise": (lambda n: [Spec.dense((n, 64), F32)] * 2,
                    lambda specs: elementwise.launches((variable(0, F32) * 2,), specs[:1], specs[1:])),
    "broadcast": (lambda n: [Spec.dense((4, n, n), F32), Spec.dense((4, n, n), F32), Spec.dense((n,), F32)],
                  lambda specs: elementwise.launches((variable(0, F32) + variable(1, F32),), specs[:1], specs[1:])),
}


def _run(launches, written, arrays):
    from flambeau.backends.compiled.launching import Plan

    results = [np.zeros(each.shape, each.dtype) for each in written]
    Plan([], launches).run((*results, *arrays))
    return [each.tobytes() for each in results]


@pytest.mark.parametrize("name", FAMILIES)
def test_members_of_a_family_have_the_bits_of_their_own_plans(name):
    specs_of, make = FAMILIES[name]
    families, planned = PlanFamilies(), []

    def counting(specs):
        planned.append(specs)
        return make(specs)

    rng = np.random.default_rng(0)
    for n in map(int, rng.permutation(np.arange(60, 300))):
        before = len(planned)
        specs = specs_of(n)
        launches = families.launches(name, specs, counting, 1)
        if len(planned) > before:
            continue
        arrays = []
        for spec in specs[1:]:
            last = sum((extent - 1) * stride for extent, stride in zip(spec.shape, spec.strides, strict=True))
            memory = rng.standard_normal(1 + last // 4).astype(F32)
            arrays.append(np.ndarray(spec.shape, F32, memory, 0, spec.strides))
        assert _run(launches, specs[:1], arrays) == _run(make(specs), specs[:1], arrays), n
    assert len(planned) < 120  # of 240 sizes


def test_what_has_other_bits_is_no_family(monkeypatch):
    make = FAMILIES["sum(0)"][1]

    def inexact(specs):
        launches = make(specs)
        if specs[0].shape != (64,) or isinstance(specs[1].shape[0], int):
            return launches
        return [each._replace(words=(each.words[0], 8, *each.words[2:])) for each in launches]

    families = PlanFamilies()
    for n in range(129, 200):
        launches = families.launches("sum(0)", FAMILIES["sum(0)"][0](n), inexact, 1)
        assert [tuple(map(launch.resolve, each.words)) for each in launches] == [
            tuple(map(launch.resolve, each.words)) for each in make(FAMILIES["sum(0)"][0](n))]
    assert not families._served


def _step(n, parameters):
    x = torch.arange(n * 20, dtype=torch.float32).reshape(n, 20).sin()
    w, b, v, c = parameters
    for each in parameters:
        each.grad = None
    hidden = torch.nn.functional.linear(x, w, b).relu()
    torch.nn.functional.cross_entropy(torch.nn.functional.linear(hidden, v, c), torch.arange(n) % 5).backward()
    return [each.grad.numpy().tobytes() for each in parameters]


def _parameters():
    return [torch.arange(1200, dtype=torch.float32).reshape(60, 20).cos().div(9).requires_grad_(),
            torch.zeros(60, requires_grad=True),
            torch.arange(300, dtype=torch.float32).reshape(5, 60).sin().div(9).requires_grad_(),
            torch.zeros(5, requires_grad=True)]


def _forget():
    matmuls = products.kernels()
    if matmuls is not None:
        matmuls.dispatches.clear()
    plan_families.FAMILIES_OF_PLANS.clear()


def test_training_steps_of_random_batch_sizes(monkeypatch):
    enable_kernels()
    sizes = [int(n) for n in np.random.default_rng(1).permutation(np.arange(80, 240))[:60]]
    used = []
    serve = PlanFamily.plan
    monkeypatch.setattr(PlanFamily, "plan", lambda self, n, *args: used.append(n) or serve(self, n, *args))
    parameters = _parameters()
    _forget()
    with_families = [_step(n, parameters) for n in sizes]
    assert len(used) > 40
    _forget()
    monkeypatch.setattr(PlanFamilies, "plan", lambda self, what, outs, specs, make, writes, scalars=():
                        Plan(outs, make(specs), scalars))
    assert [_step(n, parameters) for n in sizes] == with_families


def test_threads_that_plan_the_same_family():
    specs_of, make = FAMILIES["linear"]
    families, failures = PlanFamilies(), []

    def work(seed):
        try:
            for n in map(int, np.random.default_rng(seed).integers(129, 256, 60)):
                words = [launch.resolve(w) for w in families.launches("linear", specs_of(n), make, 1)[-1].words]
                assert n in words
        except Exception as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert not failures


def test_gathers_and_scatters_of_random_numbers_of_rows():
    enable_kernels()
    rng = np.random.default_rng(0)
    table = rng.standard_normal((40, 24)).astype(np.float32)
    for n in map(int, rng.permutation(np.arange(1, 400))):
        index, source = rng.integers(0, 40, n), rng.standard_normal((n, 24)).astype(np.float32)
        x = torch.from_numpy(table).requires_grad_()
        rows = x[torch.from_numpy(index)]
        rows.backward(torch.from_numpy(source))
        expected = np.zeros_like(table)
        np.add.at(expected, index, source)
        assert (rows.detach().numpy() == table[index]).all(), n
        assert x.grad.numpy().tobytes() == expected.tobytes(), n
        added = torch.zeros(40, 24).index_add(0, torch.from_numpy(index), torch.from_numpy(source))
        assert added.numpy().tobytes() == expected.tobytes(), n
        with pytest.raises(IndexError):
            x.detach()[torch.from_numpy(np.append(index, 40))]
