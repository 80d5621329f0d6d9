"""Kullback-Leibler divergences of all registered pairs, and the dispatch by types, against PyTorch."""

from __future__ import annotations

import itertools
import sys
import warnings

import pytest

import flambeau
from flambeau.distributions import kl
from tests.distributions.comparison import assert_same, outcome
from tests.distributions.records import RECORDS, build

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.parity

FIRST = {record.name: record for record in reversed(RECORDS) if record.case in ("", "-logits")}
LIBRARIES = (flambeau, torch)


def names(registry) -> list[tuple[str, str]]:
    """The pairs of classes that are in their modules: those of examples are not."""
    return sorted((p.__name__, q.__name__) for p, q in registry
                  if p.__module__ != __name__ and getattr(sys.modules[p.__module__], p.__name__, None) is p)


def test_same_pairs_are_registered():
    assert names(kl._KL_REGISTRY) == names(torch.distributions.kl._KL_REGISTRY)


@pytest.mark.parametrize("name", FIRST)
def test_divergences(name):
    """Of one distribution from all others: the same value, or the same error."""
    for other in FIRST:
        results, gradients = [], []
        for library in LIBRARIES:
            p, p_leaves = build(library, name, FIRST[name].params, FIRST[name].fixed, dtype="float64")
            q, q_leaves = build(library, other, FIRST[other].params, FIRST[other].fixed, dtype="float64")
            if p.batch_shape and q.batch_shape and p.batch_shape != q.batch_shape:
                size = min(p.batch_shape[-1], q.batch_shape[-1])
                p, q = (d.__class__(**{key: getattr(d, key)[..., :size] for key in d.arg_constraints
                                       if key in d.__dict__}) if type(d) in SIMPLE[library] else d for d in (p, q))
            results.append(outcome(lambda: library.distributions.kl_divergence(p, q)))  # noqa: B023
            if hasattr(results[-1], "requires_grad") and results[-1].requires_grad:
                gradients.append(library.autograd.grad(results[-1].sum(), [*p_leaves, *q_leaves], allow_unused=True))
        if isinstance(results[1], tuple) and "must match the size" in results[1][1]:
            results = [error[0] for error in results]
        assert_same(*results, tolerance=1e-9, what=f"{name}, {other}")
        if gradients:
            for ours, theirs in zip(*gradients, strict=True):
                assert_same(ours, theirs, tolerance=1e-7, what=f"gradient of {name}, {other}")


SIMPLE = {library: tuple(getattr(library.distributions, name) for name in (
    "Bernoulli", "Exponential", "Gamma", "Laplace", "Normal", "Poisson", "Uniform")) for library in LIBRARIES}


def test_dispatch_prefers_the_most_special_pair_and_warns_of_ambiguity():
    results = []
    for library in LIBRARIES:
        distributions = library.distributions

        class Left(distributions.Normal):
            pass

        class Right(Left):
            pass

        p, q = Right(0.0, 1.0), Right(1.0, 1.0)
        before = distributions.kl_divergence(p, q)
        distributions.register_kl(Left, Right)(lambda p, q: "left")
        first = distributions.kl_divergence(p, q)
        distributions.register_kl(Right, Left)(lambda p, q: "right")
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            second = distributions.kl_divergence(p, q)
        results.append((before.item(), first, second, [str(w.message) for w in seen], [w.category for w in seen],
                        outcome(lambda: distributions.register_kl(3, Left))))  # noqa: B023
        for pair in [(Left, Right), (Right, Left)]:
            del distributions.kl._KL_REGISTRY[pair]
        distributions.kl._KL_MEMOIZE.clear()
    assert results[0][:-1] == results[1][:-1]
    assert results[0][-1][0] == results[1][-1][0] == "TypeError"


def test_independent_transformed_and_lowrank():
    results = []
    for library in LIBRARIES:
        D = library.distributions
        normals = [D.Normal(library.tensor([[0.0, 1.0], [2.0, i]]), library.full((2, 2), 1.0 + i)) for i in (0, 1)]
        independent = [D.Independent(d, 1) for d in normals]
        transformed = [D.TransformedDistribution(d, [D.ExpTransform(), D.AffineTransform(1.0, 2.0)]) for d in normals]
        factor = library.tensor([[1.0], [0.5]])
        lowrank = D.LowRankMultivariateNormal(library.zeros(3, 2), factor, library.tensor([1.0, 2.0]))
        full = D.MultivariateNormal(library.ones(2), library.tensor([[2.0, 0.5], [0.5, 1.0]]))
        of_library = [D.kl_divergence(*independent), D.kl_divergence(*transformed)]
        of_library += [D.kl_divergence(p, q) for p, q in itertools.product([lowrank, full], repeat=2)]
        of_library += [outcome(lambda: D.kl_divergence(transformed[0], D.TransformedDistribution(normals[1], [])))]  # noqa: B023
        of_library += [outcome(lambda: D.kl_divergence(full, D.MultivariateNormal(library.ones(1), library.eye(1))))]  # noqa: B023
        results.append(of_library)
    for ours, theirs in zip(*results, strict=True):
        assert_same(ours, theirs, tolerance=1e-5)
