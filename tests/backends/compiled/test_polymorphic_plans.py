"""Shape-polymorphic programs give the bits of planned programs, for arrays of any extents."""

from __future__ import annotations

import gc

import numpy as np
import pytest

import flambeau as torch
from flambeau import codegen
from flambeau.backends.compiled.plan_families import PlanFamily
from flambeau.ir.decompositions import composites
from flambeau.ir.shapes import launch_families, polymorphic_programs
from flambeau.runtime import compilation

F = torch.nn.functional
pytestmark = pytest.mark.skipif(not codegen.available(), reason="no machine code")


@pytest.fixture(scope="module")
def caches():
    """All program caches, those that are made later, too."""
    gc.unfreeze()  # objects of modules are frozen, and not listed (tests/conftest.py)
    found = [each for each in gc.get_objects() if type(each) is composites.ProgramCache]
    gc.freeze()
    initialize = composites.ProgramCache.__init__

    def noted(self, *args, **kwargs):
        initialize(self, *args, **kwargs)
        found.append(self)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(composites.ProgramCache, "__init__", noted)
        yield found


@pytest.fixture
def planned_and_polymorphic(monkeypatch, caches):
    """Run a function with planned programs, then with polymorphic ones; also give the titles of the latter."""
    titles: list[str] = []
    build = polymorphic_programs.build_polymorphic_program

    def recording(title, *args):
        program = build(title, *args)
        if program is not None:
            titles.append(title)
        return program

    def both(run):
        results = []
        for limit in (1 << 30, 0):
            monkeypatch.setattr(composites, "PLANS_BEFORE_POLYMORPHIC", limit)
            for each in caches:
                each.programs.clear()
                each.polymorphic.clear()
            results.append(run())
        for each in caches:
            each.programs.clear()
            each.polymorphic.clear()
        return *results, titles

    monkeypatch.setattr(polymorphic_programs, "build_polymorphic_program", recording)
    return both


def array(*shape, seed=0):
    return torch.tensor(np.random.default_rng(seed).standard_normal(shape), dtype=torch.float32)


def heads(batch, length, count=4, size=32, seed=0):
    """Queries, keys and values of several heads, as a model cuts them out of one array."""
    parts = array(batch, length, 3 * count * size, seed=seed).split(count * size, 2)
    return [x.view(batch, length, count, size).transpose(1, 2) for x in parts]


def gradients(function, *inputs):
    leaves = [x.detach().requires_grad_() for x in inputs]
    out = function(*leaves)
    out.backward(array(*out.shape, seed=7))
    return [out.detach().numpy(), *(x.grad.numpy() for x in leaves)]


CALLS = {
    "softmax": lambda n: gradients(lambda x: x.softmax(-1), array(n, 2 * n)),
    "softmax(1)": lambda n: gradients(lambda x: x.softmax(1), array(3, n, 2 * n)),
    "log_softmax": lambda n: gradients(lambda x: x.log_softmax(-1), array(2, n, n + 1)),
    "logsumexp": lambda n: gradients(lambda x: x.logsumexp(-1), array(n, 100)),
    "layer_norm": lambda n: gradients(lambda x, w, b: F.layer_norm(x, (128,), w, b), array(3, n, 128),
                                      array(128), array(128)),
    "layer_norm of another length": lambda n: gradients(lambda x, w: F.layer_norm(x, (n,), w), array(128, n), array(n)),
    "batch_norm": lambda n: gradients(lambda x: F.batch_norm(x, None, None, training=True), array(n, 16, 15)),
    "group_norm": lambda n: gradients(lambda x: F.group_norm(x, 4), array(n, 16, 15)),
    "rms_norm": lambda n: gradients(lambda x: F.rms_norm(x, (128,)), array(n, 128)),
    "var": lambda n: gradients(lambda x: x.var(-1), array(n, 2 * n)),
    "std(0)": lambda n: gradients(lambda x: x.std(0), array(n, 200)),
    "glu": lambda n: gradients(F.glu, array(n, 100)),
    "glu of another length": lambda n: gradients(F.glu, array(100, 2 * n)),
    "tril": lambda n: gradients(torch.tril, array(n, n + 7)),
    "attention": lambda n: gradients(F.scaled_dot_product_attention, *heads(2, n)),
    "causal attention": lambda n: gradients(
        lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True), *heads(1, n)),
    "attention to what came before": lambda n: gradients(
        F.scaled_dot_product_attention, heads(1, 50)[0], *heads(1, n)[1:]),
    "attention with a mask": lambda n: gradients(
        lambda q, k, v: F.scaled_dot_product_attention(q, k, v, attn_mask=array(n, n) > 0), *heads(2, n)),
    "cross_entropy": lambda n: gradients(lambda x: F.cross_entropy(x, torch.arange(n) % 100, reduction="none"),
                                         array(n, 100)),
    "mse_loss": lambda n: gradients(lambda x, y: F.mse_loss(x, y, reduction="none"), array(n, 100), array(n, 100)),
    "huber_loss": lambda n: gradients(lambda x, y: F.huber_loss(x, y, reduction="none"), array(n, 100), array(n, 100)),
    "of columns": lambda n: gradients(lambda x: x.softmax(-1), array(100, n).t()),
    "of every other": lambda n: gradients(lambda x: x.softmax(-1), array(n, 200)[:, ::2]),
    "of a part": lambda n: gradients(lambda x: x.log_softmax(-1), array(n, 300)[:, 50:200]),
    "of one beside others": lambda n: gradients(lambda x: x.softmax(-1), array(n, 1, 100)),
    "of repeated rows": lambda n: [array(1, 100).expand(n, 100).softmax(-1).numpy()],
}
#: lengths equal to other dimensions, prime ones, and distant ones
LENGTHS = (61, 64, 100, 50, 128, 97, 1, 200, 75)


@pytest.mark.parametrize("name", ["softmax", "log_softmax", "layer_norm", "attention", "causal attention",
                                  "of columns"])
def test_launches_of_families_have_the_bits_of_those_for_one_length(name, planned_and_polymorphic, monkeypatch):
    used = []
    serve = PlanFamily.launches
    monkeypatch.setattr(launch_families, "MEMBERS", 1)
    monkeypatch.setattr(PlanFamily, "launches", lambda self, n: used.append(n) or serve(self, n))
    lengths = [int(n) for n in np.random.default_rng(0).permutation(np.arange(33, 129))[:24]]
    expected, found, titles = planned_and_polymorphic(lambda: [CALLS[name](n) for n in lengths])
    assert titles
    assert len(used) > 10
    for n, ours, theirs in zip(lengths, found, expected, strict=True):
        assert [x.tobytes() for x in ours] == [x.tobytes() for x in theirs], n


@pytest.mark.parametrize("name", CALLS)
def test_polymorphic_plans_give_the_bits_of_specialized_plans(planned_and_polymorphic, name):
    def run():
        return [CALLS[name](n) for n in LENGTHS if n > 1 or name not in ("batch_norm", "std(0)")]

    planned, found, _ = planned_and_polymorphic(run)
    for one, other in zip(planned, found, strict=True):
        for a, b in zip(one, other, strict=True):
            np.testing.assert_array_equal(b, a)


def test_growing_sequences_have_polymorphic_programs(planned_and_polymorphic):
    names = ("softmax", "layer_norm", "attention", "causal attention", "attention with a mask", "cross_entropy", "tril")
    made = planned_and_polymorphic(lambda: [CALLS[name](n) for name in names for n in LENGTHS])[2]
    assert {"operator softmax", "operator layer_norm", "operator scaled_dot_product_attention", "operator log_softmax",
            "operator tril", "operator _attention_backward", "operator _layer_norm_backward",
            "operator _softmax_backward"} <= set(made)


def test_polymorphic_program_is_built_after_some_plans(monkeypatch):
    planned, built = [], []
    program, build = composites._plan_program, polymorphic_programs.build_polymorphic_program
    monkeypatch.setattr(composites, "_plan_program", lambda *a: planned.append(a[0]) or program(*a))
    monkeypatch.setattr(polymorphic_programs, "build_polymorphic_program", lambda *a: built.append(a[0]) or build(*a))
    programs = composites.ProgramCache("softmax", lambda xp: xp.softmax)
    for n in range(60, 70):
        x = np.random.default_rng(0).standard_normal((n, 100)).astype(np.float32)
        found = programs.run((x,), {"dim": -1})
        np.testing.assert_allclose(found.sum(-1), 1, rtol=1e-5)
        programs.run((x,), {"dim": -1})
    assert (len(planned), len(built)) == (composites.PLANS_BEFORE_POLYMORPHIC, 1)


COUNTED = {
    "batch_norm": lambda n: F.batch_norm(array(n, 16, 15), None, None, training=True),
    "group_norm": lambda n: F.group_norm(array(3, 16, n), 4),
    "layer_norm": lambda n: F.layer_norm(array(50, n), (n,)),
    "var": lambda n: array(50, n).var(-1),
    "std": lambda n: array(n, 50).std(0),
}


@pytest.mark.parametrize("name", COUNTED)
def test_element_counts_are_not_in_the_code(name):
    COUNTED[name](256)
    before = compilation.library_count()
    lengths = (320, 384, 448)  # after which nothing is left of a row
    for n in lengths:
        COUNTED[name](n)
    assert compilation.library_count() - before < len(lengths)  # a longer row may be of another kind, once


def test_programs_that_depend_on_extents_are_specialized():
    """A factor in the code depends on an extent: there is no polymorphic program."""
    programs = composites.ProgramCache("mean", lambda xp: lambda x: xp.sum(x * (1 / x.shape[0]), 0))
    for n in range(60, 70):
        x = np.random.default_rng(0).standard_normal((n, 100)).astype(np.float32)
        np.testing.assert_allclose(programs.run((x,), {}), x.mean(0), rtol=1e-3, atol=1e-6)
    assert all(form is None or isinstance(form, int) for form in programs.polymorphic.values())


def test_programs_of_many_lengths_retain_little_memory():
    programs = composites.ProgramCache("attention", lambda xp: xp.scaled_dot_product_attention)
    for n in range(60, 70):
        q, k, v = (x.numpy() for x in heads(1, n))
        programs.run((q, k, v), {"attn_mask": None, "is_causal": False, "scale": 0.1, "saved": []})
    made = [each.program for each in programs.programs.values()]
    assert len(made) == 10
    assert all(each.execution_plan.arena > composites.MAX_RETAINED_ARENA for each in made)
    assert not any("arena" in each.__dict__ for each in made)
