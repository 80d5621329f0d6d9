"""Every distribution against PyTorch: samples of equal seeds, densities, moments, gradients, errors."""

from __future__ import annotations

from typing import Any

import pytest

import flambeau
from tests.distributions.comparison import assert_same, outcome
from tests.distributions.records import RECORDS, Record, build

torch = pytest.importorskip("torch")
pytestmark = [pytest.mark.parity, pytest.mark.filterwarnings("ignore:Singular sample detected"),
              pytest.mark.parametrize("record", RECORDS, ids=str)]

LIBRARIES = (flambeau, torch)
SHAPES = [(), (1,), (5, 2), (40,)]
#: samples that follow from uniform or normal numbers by functions that round differently in the last digits
ROUNDED = 3e-6


@pytest.fixture(autouse=True, scope="module")
def pytorch_validates_arguments() -> None:
    """PyTorch's compiler, which other tests import, switches this off."""
    torch.distributions.Distribution.set_default_validate_args(True)


def both(record: Record, **options: Any) -> list[tuple[Any, list[Any]]]:
    return [build(library, record.name, record.params, record.fixed, **options) for library in LIBRARIES]


def value_of(record: Record, library: Any, dtype: str = "float32") -> Any:
    return library.tensor(record.values, dtype=library.int64 if record.name == "Categorical" else
                          getattr(library, dtype))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_samples(record, dtype):
    (ours, _), (theirs, _) = both(record, dtype=dtype)
    for method in ("sample", "rsample"):
        for seed, shape in enumerate(SHAPES):
            results = []
            for library, distribution in zip(LIBRARIES, (ours, theirs), strict=True):
                library.manual_seed(seed)
                results.append(outcome(lambda: getattr(distribution, method)(shape)))  # noqa: B023
            assert_same(*results, tolerance=max(ROUNDED, record.tolerance), what=f"{method}{shape}")
            assert flambeau.get_rng_state().numpy().tobytes() == torch.get_rng_state().numpy().tobytes()
            if hasattr(results[0], "requires_grad"):
                assert results[0].requires_grad == results[1].requires_grad


def test_log_prob_and_functions(record):
    (ours, _), (theirs, _) = both(record)
    for method in ("log_prob", "cdf", "icdf"):
        if method == "icdf":
            arguments = [library.tensor([[0.1], [0.5], [0.95]]) for library in LIBRARIES]
        else:
            arguments = [value_of(record, library) for library in LIBRARIES]
        assert_same(*(outcome(lambda: getattr(d, method)(value))  # noqa: B023
                      for d, value in zip((ours, theirs), arguments, strict=True)),
                    tolerance=max(1e-5, record.tolerance), what=method)


def test_properties(record):
    (ours, _), (theirs, _) = both(record)
    for name in ("mean", "mode", "variance", "stddev"):
        assert_same(*(outcome(lambda: getattr(d, name)) for d in (ours, theirs)),  # noqa: B023
                    tolerance=max(1e-5, record.tolerance), what=name)
    for name in ("entropy", "perplexity", "enumerate_support"):
        assert_same(*(outcome(lambda: getattr(d, name)()) for d in (ours, theirs)),  # noqa: B023
                    tolerance=max(1e-5, record.tolerance), what=name)
    for name in ("batch_shape", "event_shape", "has_rsample", "has_enumerate_support", "_validate_args"):
        assert getattr(ours, name) == getattr(theirs, name), name
    for text in (repr, lambda d: repr(outcome(lambda: d.support)), lambda d: repr(d.arg_constraints)):
        assert text(ours).replace("flambeau.", "torch.").replace(", requires_grad=True", "") == text(theirs).replace(
            ", requires_grad=True", "")
    assert list(ours.arg_constraints) == list(theirs.arg_constraints)
    for name in ours.arg_constraints:
        assert_same(outcome(lambda: getattr(ours, name)), outcome(lambda: getattr(theirs, name)),  # noqa: B023
                    tolerance=max(1e-5, record.tolerance), what=name)


def test_expand(record):
    (ours, _), (theirs, _) = both(record)
    shape = (2, 3, *ours.batch_shape)
    expanded = [d.expand(shape) for d in (ours, theirs)]
    assert expanded[0].batch_shape == expanded[1].batch_shape == shape
    assert type(expanded[0]) is type(ours)
    results = []
    for library, distribution in zip(LIBRARIES, expanded, strict=True):
        library.manual_seed(0)
        results.append(distribution.sample((2,)))
    assert_same(*results, tolerance=max(ROUNDED, record.tolerance), what="samples")
    values = [value_of(record, library) for library in LIBRARIES]
    assert_same(*(outcome(lambda: d.log_prob(value)) for d, value in zip(expanded, values, strict=True)),  # noqa: B023
                tolerance=max(1e-5, record.tolerance), what="log_prob")
    assert repr(expanded[0]).replace("flambeau.", "torch.") == repr(expanded[1])


def test_gradients(record):
    of_samples, of_densities = [], []
    dtype = "float32" if any(map(callable, record.params.values())) else "float64"
    for library, (distribution, leaves) in zip(LIBRARIES, both(record, dtype=dtype), strict=True):
        if distribution.has_rsample and leaves:
            library.manual_seed(1)
            total = distribution.rsample((3,)).square().sum()
            of_samples.append(outcome(lambda: library.autograd.grad(  # noqa: B023
                total, leaves, allow_unused=True, retain_graph=True)))  # noqa: B023
        value = value_of(record, library, dtype)
        if record.name != "Categorical":
            value.requires_grad_()
            leaves = [*leaves, value]
        of_densities.append(outcome(lambda: library.autograd.grad(  # noqa: B023
            distribution.log_prob(value).sum(), leaves, allow_unused=True)))  # noqa: B023
    for name, results in (("rsample", of_samples), ("log_prob", of_densities)):
        if results and "modified by an inplace operation" not in str(results[1]):  # Wishart overwrites a mask
            assert type(results[0]) is type(results[1])
            assert len(results[0]) == len(results[1])
            for ours, theirs in zip(*results, strict=True):
                assert_same(ours, theirs, tolerance=1e-7 if dtype == "float64" else 1e-5, what=name)


def test_errors(record):
    for params in record.invalid:
        results = [outcome(lambda: build(library, record.name, params, tuple(params))) for library in LIBRARIES]  # noqa: B023
        assert isinstance(results[1][0], str), "no error"
        assert results[0] == results[1]
    (ours, _), (theirs, _) = both(record)
    invalid = [lambda library: [1.0], lambda library: library.full((7, 11, 13), 0.5),
               lambda library: library.full((*ours.batch_shape, *ours.event_shape), -3.25),
               lambda library: library.full((*ours.batch_shape, *ours.event_shape), float("nan"))]
    for make in invalid:
        assert_same(*(outcome(lambda: d.log_prob(make(library)))  # noqa: B023
                      for library, d in zip(LIBRARIES, (ours, theirs), strict=True)),
                    tolerance=max(1e-5, record.tolerance))


def test_validation_is_optional(record):
    (ours, _), _ = both(record, validate_args=False)
    assert ours._validate_args is False
    assert ours.expand((2, *ours.batch_shape))._validate_args is False
