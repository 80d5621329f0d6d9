"""Random numbers of compiled functions: drawn in the same order as without `compile`, all of them, and none twice."""

from __future__ import annotations

import pytest

import flambeau as torch
from flambeau import codegen
from tests.compiler.eager_comparison import programs

pytestmark = pytest.mark.skipif(not codegen.available(), reason="llvmlite is not installed, or FLAMBEAU_JIT is 0")


def results_and_next_draw(function, *arguments, calls=12):
    """The results of the calls, and the next random numbers."""
    torch.manual_seed(0)
    found = [function(*arguments) for _ in range(calls)]
    return [x.tolist() if isinstance(x, torch.Tensor) else x for x in found], torch.rand(3).tolist()


def assert_equal_draws(function, *arguments, count=1):
    made = torch.compile(function)
    found = results_and_next_draw(made, *arguments)
    assert found == results_and_next_draw(function, *arguments)
    assert programs(made) == count


def test_unused_random_numbers_are_drawn():
    def function(x):
        torch.rand(5)
        y = x * 2 + torch.rand(2)
        torch.randn(20)
        return y

    assert_equal_draws(function, torch.ones(2))
    assert_equal_draws(lambda x: (torch.randperm(7), x + 1)[1], torch.ones(2))


@pytest.mark.parametrize("draw", [
    lambda: torch.randint(2 ** 50, (3, 4)), lambda: torch.randint(-2 ** 40, 2 ** 61, (3, 4), dtype=torch.int64),
    lambda: torch.empty(3, 4, dtype=torch.int64).random_(), lambda: torch.randn(3, 4, dtype=torch.complex64),
    lambda: torch.rand(3, 4, dtype=torch.complex128), lambda: torch.rand(3, 4, dtype=torch.bfloat16),
    lambda: torch.bernoulli(torch.full((3, 4), 0.3)).to(torch.uint8)])
def test_samples_of_other_word_sizes(draw):
    """What is drawn is another dtype's memory, read and written afterwards."""
    def function():
        found = draw()
        found[1] *= 2
        return found, found.t()[1:].clone(), found.reshape(-1)[::3] + 1

    assert_equal_draws(lambda: torch.cat([x.reshape(-1) for x in function()]))


def test_noise_that_no_gradient_depends_on_is_drawn():
    w = torch.ones(3, requires_grad=True)

    def function(x):
        w.grad = None
        (w * x + torch.randn_like(x)).sum().backward()
        return w.grad.sum()

    assert_equal_draws(function, torch.ones(3))


def test_draws_with_computed_parameters_stay_in_order():
    """The sum of products is computed by one product, which is made after all that the function did."""
    torch.manual_seed(1)
    weights = [torch.randn(4, 4) for _ in range(4)]

    def function(x):
        total = sum((x @ w for w in weights[1:]), x @ weights[0])
        coins = torch.bernoulli(torch.sigmoid(total))
        noise = torch.rand(4, 4)
        return coins + noise

    assert_equal_draws(function, torch.ones(4, 4))


def test_random_branches_draw_once():
    def function(x):
        if torch.rand(()) < 0.5:
            return x * 2
        return x * 3 + torch.rand(3)

    assert_equal_draws(function, torch.ones(3), count=2)


def test_other_generators_are_restored_too():
    one, other = torch.Generator(), torch.Generator()

    def function(x):
        shift = torch.rand(3, generator=other)
        if torch.rand((), generator=one) + shift.sum() < 2:
            return x + shift
        return x - torch.rand(3, generator=other)

    def numbers(called):
        one.manual_seed(3)
        other.manual_seed(4)
        torch.manual_seed(5)
        found = [called(torch.ones(3)).tolist() for _ in range(20)]
        return found, torch.rand(2, generator=one).tolist(), torch.rand(2, generator=other).tolist()

    made = torch.compile(function)
    assert numbers(made) == numbers(function)


def test_dropout_in_training():
    torch.manual_seed(2)
    model = torch.nn.Sequential(torch.nn.Linear(4, 16), torch.nn.Dropout(0.5), torch.nn.Linear(16, 4),
                                torch.nn.Dropout(0.1))

    def function(x):
        model.zero_grad()
        loss = model(x).square().sum()
        loss.backward()
        return model[0].weight.grad.sum().round(decimals=2)

    assert_equal_draws(function, torch.ones(8, 4))


def test_cached_plans_draw_too(monkeypatch, tmp_path):
    monkeypatch.setenv("FLAMBEAU_CACHE_DIR", str(tmp_path))

    def function(x):
        torch.rand(5)
        if torch.rand(()) < 0.5:
            return x * 2
        return x * 3

    for _ in range(2):
        assert_equal_draws(function, torch.ones(3), count=2)
