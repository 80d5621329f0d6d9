"""Random numbers inside `vmap`: the draws and errors of each randomness mode equal PyTorch's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import flambeau as torch
from flambeau.func import vmap

F = torch.nn.functional

ERROR = "vmap: called random operation while in randomness error mode. Please either use the 'same' or 'different'"
SAME = "Vmap does not currently support same randomness with a batched tensor input."
UNBATCHED = "vmap: Cannot ask for different inplace randomness on an unbatched tensor."
OUT = "vmap: We do not support calling out variants of random operations inside of vmap."

#: what draws without looking at a tensor's elements: a function of one element of the batch
CREATED: dict[str, Callable[[Any], Any]] = {
    "rand": lambda x: torch.rand(3),
    "rand of a dtype": lambda x: torch.rand(3, dtype=torch.float64),
    "randn": lambda x: torch.randn(2, 5),
    "randn of no dimension": lambda x: torch.randn(()),
    "randint": lambda x: torch.randint(2, 9, (3,)),
    "randperm": lambda x: torch.randperm(5),
    "normal": lambda x: torch.normal(1.0, 2.0, (3,)),
    "rand_like": torch.rand_like,
    "randn_like": torch.randn_like,
    "randint_like": lambda x: torch.randint_like(x, 7),
    "dropout": lambda x: F.dropout(x + 1, 0.5),
    "dropout of the same": lambda x: F.dropout(torch.ones(3), 0.5),
    "alpha_dropout": lambda x: F.alpha_dropout(x, 0.5, True),
}
#: what fills a tensor
FILLED: dict[str, Callable[[Any], Any]] = {
    "uniform_": lambda x: x.uniform_(-1, 1),
    "normal_": lambda x: x.normal_(),
    "random_": lambda x: x.random_(5),
    "bernoulli_": lambda x: x.bernoulli_(0.5),
    "exponential_": lambda x: x.exponential_(),
    "geometric_": lambda x: x.geometric_(0.5),
    "cauchy_": lambda x: x.cauchy_(),
    "log_normal_": lambda x: x.log_normal_(),
}
#: what draws from distributions that tensors give
DEPENDENT: dict[str, Callable[[Any], Any]] = {
    "normal": lambda x: torch.normal(x, 1.0),
    "normal of two": lambda x: torch.normal(torch.zeros(3), x),
    "bernoulli": torch.bernoulli,
    "poisson": torch.poisson,
    "multinomial": lambda x: torch.multinomial(x, 2),
    "binomial": lambda x: torch.binomial(torch.full((3,), 9.0), x),
}

X = torch.full((4, 3), 0.5)


def mapped(f: Callable[..., Any], randomness: str, x: Any = X) -> Any:
    torch.manual_seed(0)
    return vmap(f, randomness=randomness)(x)


def alone(f: Callable[..., Any], x: Any = None) -> Any:
    torch.manual_seed(0)
    return f(X[0].clone() if x is None else x)


@pytest.mark.parametrize("name", CREATED)
def test_different_and_same_randomness(name: str) -> None:
    f = CREATED[name]
    with pytest.raises(RuntimeError, match=ERROR):
        mapped(f, "error")
    same = mapped(f, "same")
    one = alone(f)
    assert same.shape == (4, *one.shape)
    assert all(torch.equal(row, one) for row in same)
    different = mapped(f, "different")
    assert different.shape == same.shape
    assert different.dtype is one.dtype
    if one.numel() > 1:
        assert not all(torch.equal(row, different[0]) for row in different)


def test_different_randomness_equals_one_draw_with_a_leading_batch_dimension() -> None:
    for f, whole in ((lambda x: torch.rand(3), lambda x: torch.rand(4, 3)),
                     (lambda x: torch.randn(8), lambda x: torch.randn(4, 8)),
                     (lambda x: torch.randint(9, (2,)), lambda x: torch.randint(9, (4, 2))),
                     (lambda x: F.dropout(x, 0.5), lambda x: F.dropout(X, 0.5)),
                     (torch.bernoulli, lambda x: torch.bernoulli(X)),
                     (lambda x: x.clone().normal_(), lambda x: X.clone().normal_()),
                     (lambda x: torch.multinomial(x, 2), lambda x: torch.multinomial(X, 2))):
        assert torch.equal(mapped(f, "different"), alone(whole))


def test_permutations_are_drawn_one_after_the_other() -> None:
    torch.manual_seed(0)
    expected = torch.stack([torch.randperm(5) for _ in range(4)])
    assert torch.equal(mapped(lambda x: torch.randperm(5), "different"), expected)


@pytest.mark.parametrize("name", FILLED)
def test_different_randomness_in_place_requires_a_batched_tensor(name: str) -> None:
    f = FILLED[name]
    with pytest.raises(RuntimeError, match=ERROR):
        mapped(lambda x: f(x.clone()), "error")
    with pytest.raises(RuntimeError, match=UNBATCHED):
        mapped(lambda x: f(torch.zeros(3)) + x, "different")
    one = alone(f)
    for g in (lambda x: f(x.clone()), lambda x: f(torch.zeros(3)) + 0 * x):
        assert all(torch.equal(row, one) for row in mapped(g, "same"))
    torch.manual_seed(0)
    assert torch.equal(mapped(lambda x: f(x.clone()), "different"), alone(f, X.clone()))


@pytest.mark.parametrize("name", DEPENDENT)
def test_same_randomness_rejects_batched_parameters(name: str) -> None:
    f = DEPENDENT[name]
    with pytest.raises(RuntimeError, match=ERROR):
        mapped(f, "error")
    with pytest.raises(RuntimeError, match=SAME):
        mapped(f, "same")
    assert mapped(f, "different").shape == (4, *alone(f).shape)
    unbatched = mapped(lambda x: f(X[0]) + 0 * x[0], "same")
    assert all(torch.equal(row, alone(f) + 0.0) for row in unbatched)


def test_each_vmap_level_has_its_own_randomness() -> None:
    g = torch.zeros(2, 3, 4)

    def drawn(outer: str, inner: str, f: Callable[..., Any] = lambda x: torch.rand(4)) -> Any:
        torch.manual_seed(0)
        return vmap(vmap(f, randomness=inner), randomness=outer)(g)

    def plain(*size: int) -> Any:
        torch.manual_seed(0)
        return torch.rand(*size)

    assert torch.equal(drawn("different", "different"), plain(2, 3, 4))
    assert torch.equal(drawn("same", "different"), plain(3, 4).expand(2, 3, 4))
    assert torch.equal(drawn("different", "same"), plain(2, 1, 4).expand(2, 3, 4))
    assert torch.equal(drawn("same", "same"), plain(4).expand(2, 3, 4))
    for pair in (("error", "same"), ("different", "error")):
        with pytest.raises(RuntimeError, match=ERROR):
            drawn(*pair)
    filled = drawn("same", "different", lambda x: x.clone().uniform_())
    assert torch.equal(filled, plain(3, 4).expand(2, 3, 4))
    with pytest.raises(RuntimeError, match=UNBATCHED):
        drawn("different", "same", lambda x: x.clone().uniform_())


def test_an_explicit_generator() -> None:
    found = vmap(lambda x: torch.rand(3, generator=torch.Generator().manual_seed(1)), randomness="different")(X)
    assert torch.equal(found, torch.rand(4, 3, generator=torch.Generator().manual_seed(1)))


def test_errors() -> None:
    with pytest.raises(RuntimeError, match=OUT):
        mapped(lambda x: torch.rand(3, out=torch.zeros(3)), "different")
    with pytest.raises(RuntimeError, match="vmap: inplace bernoulli"):
        mapped(lambda x: torch.zeros(3).bernoulli_(x), "different")
    with pytest.raises(RuntimeError, match="we do not yet support aten::rrelu"):
        mapped(lambda x: F.rrelu(x, training=True), "different")


def test_dropout_outside_training_draws_nothing() -> None:
    for f in (lambda x: F.dropout(x, 0.5, training=False), lambda x: F.dropout(x, 0.0)):
        assert torch.equal(mapped(f, "error"), X)
    assert not mapped(lambda x: F.dropout(x, 1.0), "error").any()


def test_gradients_use_the_samples_of_each_element() -> None:
    def total(x: Any) -> Any:
        return (F.dropout(x, 0.5) * torch.arange(3.0)).sum()

    torch.manual_seed(0)
    kept = (F.dropout(X, 0.5) != 0) * 2.0
    torch.manual_seed(0)
    assert torch.equal(vmap(torch.func.grad(total), randomness="different")(X), kept * torch.arange(3.0))


def test_the_generator_advances_after_a_batch() -> None:
    torch.manual_seed(0)
    vmap(lambda x: torch.rand(3), randomness="different")(X)
    found = torch.rand(2)
    torch.manual_seed(0)
    torch.rand(4, 3)
    assert torch.equal(found, torch.rand(2))
