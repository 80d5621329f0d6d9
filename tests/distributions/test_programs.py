"""Distributions in programs: pathwise gradients by differences, compiled functions, vmap, subclasses, pickles."""

from __future__ import annotations

import pickle
import warnings

import pytest

import flambeau as torch
from flambeau.distributions import constraints, kl_divergence
from tests.distributions.records import RECORDS, build

D = torch.distributions


def test_importing_the_package_does_not_import_distributions():
    import subprocess
    import sys
    code = "import sys, flambeau; print('flambeau.distributions' in sys.modules); flambeau.distributions.Normal"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def test_submodules():
    from flambeau.distributions.constraint_registry import transform_to
    from flambeau.distributions.multivariate_normal import _batch_mahalanobis
    from flambeau.distributions.utils import lazy_property
    assert transform_to is D.transform_to
    assert _batch_mahalanobis(torch.eye(2), torch.ones(2)).item() == 2
    assert isinstance(D.Bernoulli.logits, (lazy_property, property))


@pytest.mark.parametrize("concentration", [0.05, 0.7, 3.0, 30.0])
def test_gamma_samples_move_with_their_concentration(concentration):
    """dx/dα of a sample is -∂F/∂α / ∂F/∂x, of which the distribution function is differentiated numerically."""
    alpha = torch.full((20,), concentration, dtype=torch.float64, requires_grad=True)
    torch.manual_seed(0)
    x = D.Gamma(alpha, torch.ones((), dtype=torch.float64)).rsample()
    x.sum().backward()
    step = 1e-4 * concentration
    with torch.no_grad():
        slope = (torch.special.gammainc(alpha + step, x) - torch.special.gammainc(alpha - step, x)) / (2 * step)
        expected = -slope / torch.exp(D.Gamma(alpha, 1.0).log_prob(x))
    # where the distribution function is close to 1, differences cancel
    inside = torch.special.gammainc(alpha.detach(), x.detach()) < 0.999
    torch.testing.assert_close(alpha.grad[inside], expected[inside], rtol=5e-3, atol=1e-6)


def test_dirichlet_gradient_of_the_mean():
    """The mean gradient of samples is the gradient of the mean."""
    concentration = torch.tensor([0.7, 2.0, 5.0], requires_grad=True)
    torch.manual_seed(0)
    D.Dirichlet(concentration).rsample((4000,))[:, 0].mean().backward()
    expected = torch.autograd.functional.jacobian(lambda c: D.Dirichlet(c).mean[0], concentration.detach())
    torch.testing.assert_close(concentration.grad, expected, rtol=0.1, atol=5e-3)


def test_second_derivatives_of_samples_raise():
    alpha = torch.ones(2, requires_grad=True)
    (gradient,) = torch.autograd.grad(torch._standard_gamma(alpha).sum(), alpha, create_graph=True)
    with pytest.raises(NotImplementedError, match="'_standard_gamma_grad' is not implemented"):
        gradient.sum().backward()


@pytest.mark.parametrize("record", [r for r in RECORDS if r.name in (
    "Normal", "Gamma", "Beta", "Categorical", "Bernoulli", "MultivariateNormal", "Uniform", "Laplace", "StudentT")],
                         ids=str)
def test_compiled(record):
    """Samples, densities and gradients of a compiled function are those of the function."""
    distribution, leaves = build(torch, record.name, record.params, record.fixed)
    value = torch.tensor(record.values, dtype=torch.int64 if record.name == "Categorical" else torch.float32)

    def program(value, *leaves):
        return distribution.log_prob(value), distribution.sample((3,))

    compiled = torch.compile(program)
    for seed in range(3):
        torch.manual_seed(seed)
        expected = program(value, *leaves)
        torch.manual_seed(seed)
        torch.testing.assert_close(compiled(value, *leaves), expected)


def test_compiled_training_step():
    def loss(mean, scale, x):
        posterior = D.Normal(mean, scale.exp(), validate_args=False)
        return -D.Normal(posterior.rsample(), 1.0, validate_args=False).log_prob(x).sum() + kl_divergence(
            posterior, D.Normal(torch.zeros(3), torch.ones(3), validate_args=False)).sum()

    compiled = torch.compile(loss)
    results = []
    for function in (loss, compiled):
        mean, scale = torch.zeros(3, requires_grad=True), torch.zeros(3, requires_grad=True)
        for seed in range(3):
            torch.manual_seed(seed)
            function(mean, scale, torch.ones(3)).backward()
        results.append((mean.grad, scale.grad))
    torch.testing.assert_close(results[1], results[0])


def test_vmap():
    loc, scale, x = torch.randn(4, 3), torch.rand(4, 3) + 0.5, torch.randn(4, 3)

    def density(loc, scale, x):
        return D.Independent(D.Normal(loc, scale, validate_args=False), 1, validate_args=False).log_prob(x)

    torch.testing.assert_close(torch.func.vmap(density)(loc, scale, x), density(loc, scale, x))
    for randomness in ("different", "same"):
        drawn = torch.func.vmap(lambda _: D.Gamma(torch.ones(3), 1.0, validate_args=False).sample(),
                                randomness=randomness)(torch.zeros(4))
        assert drawn.shape == (4, 3)
        assert bool((drawn[0] == drawn[1]).all()) is (randomness == "same")


def test_subclass_with_own_expand():
    class Shifted(D.Normal):
        def __init__(self, loc, validate_args=None):
            super().__init__(loc + 1, 1.0, validate_args=validate_args)

        def expand(self, batch_shape, _instance=None):
            return super().expand(batch_shape, self._get_checked_instance(Shifted, _instance))

    d = Shifted(torch.zeros(2)).expand((3, 2))
    assert type(d) is Shifted
    assert d.mean.shape == (3, 2)


def test_subclass_without_constraints_warns():
    class Silent(D.Distribution):
        pass

    with pytest.warns(UserWarning, match="does not define `arg_constraints`"):
        silent = Silent(validate_args=True)
    with pytest.warns(UserWarning, match="does not define `support`"):
        silent._validate_sample(torch.zeros(()))


def test_default_of_validation():
    D.Distribution.set_default_validate_args(False)
    try:
        D.Normal(0.0, -1.0)
    finally:
        D.Distribution.set_default_validate_args(True)
    with pytest.raises(ValueError, match="to satisfy the constraint GreaterThan"):
        D.Normal(0.0, -1.0)


def test_sample_n_warns():
    with pytest.warns(FutureWarning, match="will be deprecated"):
        assert D.Normal(0.0, 1.0).sample_n(3).shape == (3,)


@pytest.mark.parametrize("record", RECORDS, ids=str)
def test_pickle(record):
    if any(map(callable, record.params.values())):
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        distribution, _ = build(torch, record.name, record.params, record.fixed)
        again = pickle.loads(pickle.dumps(distribution))
    assert repr(again) == repr(distribution)


def test_own_constraint_and_transform():
    class Even(constraints.Constraint):
        is_discrete = True

        def check(self, value):
            return value % 2 == 0

    D.transform_to.register(Even)(lambda constraint: D.AffineTransform(0, 2))
    assert D.transform_to(Even())(torch.ones(1)).item() == 2
    assert repr(Even()) == "ven()"  # the first letter is taken for an underscore, as in PyTorch
