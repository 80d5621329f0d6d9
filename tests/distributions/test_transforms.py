"""Transforms against PyTorch: values, inverses, Jacobians, shapes, constraints, caches, registries."""

from __future__ import annotations

import pickle

import pytest

import flambeau
from tests.distributions.comparison import assert_same, outcome

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.parity

LIBRARIES = (flambeau, torch)
VECTOR = [[0.3, -1.2, 0.8], [2.0, 0.1, -0.4]]
POSITIVE = [[0.3, 1.2, 0.8], [2.0, 0.1, 0.4]]
MATRIX = [[0.3, 0.0, 0.8], [2.0, 0.1, -0.4], [0.0, 0.5, 1.0]]


def compositions(D, library):
    exp, tanh = D.ExpTransform(), D.TanhTransform()
    return D.ComposeTransform([D.AffineTransform(library.tensor([1.0, 2.0, 3.0]), 2.0), tanh, exp])


# name -> (the transform of a library, x)
TRANSFORMS = {
    "abs": (lambda D, library: D.AbsTransform(), VECTOR),
    "affine": (lambda D, library: D.AffineTransform(0.5, -2.0), VECTOR),
    "affine-tensors": (lambda D, library: D.AffineTransform(library.tensor([1.0, 2.0, 3.0]),
                                                            library.tensor([-1.0, 2.0, 3.0]), event_dim=1), VECTOR),
    "cat": (lambda D, library: D.CatTransform([D.ExpTransform(), D.TanhTransform()], dim=-1, lengths=[1, 2]), VECTOR),
    "cat-events": (lambda D, library: D.CatTransform([D.IndependentTransform(D.ExpTransform(), 1), D.TanhTransform()]),
                   VECTOR),
    "compose": (compositions, VECTOR),
    "compose-events": (lambda D, library: D.ComposeTransform([D.ExpTransform(), D.StickBreakingTransform()]), VECTOR),
    "corr_cholesky": (lambda D, library: D.CorrCholeskyTransform(), VECTOR),
    "cumulative": (lambda D, library: D.CumulativeDistributionTransform(D.Normal(0.5, 2.0)), VECTOR),
    "exp": (lambda D, library: D.ExpTransform(), VECTOR),
    "identity": (lambda D, library: D.identity_transform, VECTOR),
    "independent": (lambda D, library: D.IndependentTransform(D.SigmoidTransform(), 1), VECTOR),
    "lower_cholesky": (lambda D, library: D.LowerCholeskyTransform(), MATRIX),
    "positive_definite": (lambda D, library: D.PositiveDefiniteTransform(), MATRIX),
    "power": (lambda D, library: D.PowerTransform(library.tensor([2.0, -0.5, 3.0])), POSITIVE),
    "reshape": (lambda D, library: D.ReshapeTransform((3,), (3, 1)), VECTOR),
    "sigmoid": (lambda D, library: D.SigmoidTransform(), VECTOR),
    "softmax": (lambda D, library: D.SoftmaxTransform(), VECTOR),
    "softplus": (lambda D, library: D.SoftplusTransform(), VECTOR),
    "stack": (lambda D, library: D.StackTransform([D.ExpTransform(), D.TanhTransform()]), VECTOR),
    "stick_breaking": (lambda D, library: D.StickBreakingTransform(), VECTOR),
    "tanh": (lambda D, library: D.TanhTransform(), VECTOR),
}


def described(transform, shape, library):
    attributes = ("bijective", "domain", "codomain", "event_dim", "sign")
    return [repr(transform), *(repr(outcome(lambda: getattr(transform, name))) for name in attributes),  # noqa: B023
            *(outcome(lambda: getattr(transform, name)(library.Size(s)))  # noqa: B023
              for name in ("forward_shape", "inverse_shape") for s in (shape, (), (4,), (2, 5, 5))),
            transform == transform, transform == transform.inv, transform.inv.inv is transform,
            repr(outcome(lambda: transform.with_cache(1)._cache_size)), outcome(lambda: transform.with_cache(2))]


@pytest.mark.parametrize("inverted", [False, True], ids=["", "inverse"])
@pytest.mark.parametrize("name", TRANSFORMS)
def test_transforms(name, inverted):
    make, values = TRANSFORMS[name]
    results = []
    for library in LIBRARIES:
        transform = make(library.distributions, library)
        x = library.tensor(values, requires_grad=True)
        if inverted:
            x = transform(x).detach().requires_grad_()
            transform = transform.inv
        y = transform(x)
        (gradient,) = library.autograd.grad(y.square().sum(), x, retain_graph=True)
        jacobian = outcome(lambda: transform.log_abs_det_jacobian(x, y))  # noqa: B023
        of_jacobian = outcome(lambda: library.autograd.grad(jacobian.sum(), x)[0])  # noqa: B023
        if not hasattr(of_jacobian, "detach"):
            of_jacobian = of_jacobian[0]
        results.append([y, gradient, jacobian, of_jacobian, transform.inv(y),
                        *described(transform, tuple(x.shape), library)])
    for ours, theirs in zip(*results, strict=True):
        if isinstance(ours, str):
            ours = ours.replace("flambeau.", "torch.")
        assert_same(ours, theirs, tolerance=2e-5, what=name)


@pytest.mark.parametrize("name", TRANSFORMS)
def test_cache_returns_the_same_objects(name):
    make, values = TRANSFORMS[name]
    try:
        transform = make(flambeau.distributions, flambeau).with_cache(1)
    except NotImplementedError:
        return
    x = flambeau.tensor(values)
    y = transform(x)
    composed = ("ComposeTransform", "CatTransform", "StackTransform")
    if type(transform).__name__ not in composed:
        assert transform(x) is y
        assert transform.inv(y) is x
    assert type(pickle.loads(pickle.dumps(transform))) is type(transform)


CONSTRAINTS = {
    "boolean": [[0.0, 1.0, 0.5]], "cat": VECTOR, "corr_cholesky": [[1.0, 0.0], [0.6, 0.8]],
    "greater_than": VECTOR, "greater_than_eq": VECTOR, "half_open_interval": VECTOR, "independent": VECTOR,
    "integer_interval": [[0.0, 1.0, 1.5, 3.0, 4.0]], "interval": VECTOR, "less_than": VECTOR,
    "lower_cholesky": MATRIX, "lower_triangular": [[1.0, 0.0], [0.5, -1.0]], "multinomial": [[1.0, 2.0], [3.0, 4.0]],
    "nonnegative": VECTOR, "nonnegative_integer": [[0.0, 1.0, -1.0, 0.5]], "one_hot": [[0.0, 1.0], [1.0, 1.0]],
    "positive": VECTOR, "positive_definite": [[2.0, 0.5], [0.5, 1.0]], "positive_integer": [[0.0, 1.0, -1.0]],
    "positive_semidefinite": [[1.0, 1.0], [1.0, 1.0]], "real": [[0.0, float("nan")]], "real_vector": VECTOR,
    "simplex": [[0.5, 0.5], [0.5, 0.6]], "square": MATRIX, "stack": VECTOR, "symmetric": MATRIX,
    "unit_interval": VECTOR, "dependent": VECTOR, "MixtureSameFamilyConstraint": VECTOR,
}


def constraint_of(library, name):
    module = library.distributions.constraints
    arguments = {"greater_than": (0.1,), "greater_than_eq": (0.1,), "half_open_interval": (-0.4, 0.8),
                 "independent": (module.positive, 1), "integer_interval": (0, 3), "interval": (-0.4, 0.8),
                 "less_than": (0.1,), "multinomial": (5,), "cat": ([module.positive, module.real], -1, [1, 2]),
                 "stack": ([module.positive, module.real],), "MixtureSameFamilyConstraint": (module.positive,)}
    found = getattr(module, name)
    return found(*arguments[name]) if name in arguments else found


@pytest.mark.parametrize("name", CONSTRAINTS)
def test_constraints(name):
    results = []
    for library in LIBRARIES:
        constraint = constraint_of(library, name)
        module = library.distributions.constraints
        value = library.tensor(CONSTRAINTS[name])
        registries = [library.distributions.biject_to, library.distributions.transform_to]
        results.append([
            outcome(lambda: constraint.check(value)), repr(constraint), module.is_dependent(constraint),  # noqa: B023
            *(repr(outcome(lambda: getattr(constraint, a))) for a in ("is_discrete", "event_dim")),  # noqa: B023
            *(repr(outcome(lambda: registry(constraint))) for registry in registries)])  # noqa: B023
    for ours, theirs in zip(*results, strict=True):
        assert_same(ours, theirs, what=name)


def test_names():
    for module in ("constraints", "transforms", "utils", "kl", "constraint_registry", "distribution"):
        ours, theirs = (getattr(library.distributions, module) for library in LIBRARIES)
        assert sorted(ours.__all__) == sorted(theirs.__all__), module
    assert sorted(set(flambeau.distributions.__all__)) == sorted(set(torch.distributions.__all__))


def test_errors():
    def cases(library):
        D = library.distributions
        c, x = D.constraints, library.ones(2)
        normal = D.Normal(x, x)
        return [outcome(call) for call in (
            lambda: D.Transform(cache_size=2), lambda: D.Transform()(x), lambda: D.Transform().sign,
            lambda: D.CatTransform([3]), lambda: D.CatTransform([D.ExpTransform()], lengths=[1, 2]),
            lambda: D.CatTransform([D.ExpTransform()], dim=3)(x), lambda: D.CatTransform([D.ExpTransform()])(x),
            lambda: D.StackTransform([D.ExpTransform()])(x), lambda: D.ReshapeTransform((2,), (3,)),
            lambda: D.IndependentTransform(D.ExpTransform(), 2)(x), lambda: c.independent(3, 1),
            lambda: c.independent(c.real, -1), lambda: c.independent(c.real, 1.5), lambda: c.cat([3]),
            lambda: c.independent(c.real, 2).check(x), lambda: c.dependent.check(x),
            lambda: c.dependent(event_dim=1).event_dim, lambda: c.MixtureSameFamilyConstraint(3),
            lambda: D.biject_to.register(3, lambda c: None), lambda: D.biject_to(c.lower_cholesky),
            lambda: D.TransformedDistribution(normal, 3), lambda: D.TransformedDistribution(normal, [3]),
            lambda: D.TransformedDistribution(D.Normal(0.0, 1.0), D.StickBreakingTransform()),
            lambda: D.Distribution.set_default_validate_args(3), lambda: D.utils.broadcast_all("a"),
            lambda: D.utils.vec_to_tril_matrix(library.ones(4)),
            lambda: D.utils.tril_matrix_to_vec(library.ones(2, 2), 5), lambda: D.Distribution().mean,
            lambda: D.Distribution(validate_args=False).mode, lambda: normal.enumerate_support(),
            lambda: type("Mine", (D.Normal,), {"__init__": lambda self: None})().expand((2,)))]

    for ours, theirs in zip(cases(flambeau), cases(torch), strict=True):
        assert_same(ours, theirs)
