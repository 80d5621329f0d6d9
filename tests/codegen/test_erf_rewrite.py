"""The erf rewrite: when erf is computed from an exponential, and its error."""

from __future__ import annotations

import math

import numpy as np
import pytest

from flambeau.codegen.elementwise import elementwise
from flambeau.codegen.llvm.vectors import host_has_fma
from flambeau.codegen.scalar import scalar_ir as e
from flambeau.codegen.scalar.erf_rewrite import reuse_exponentials
from flambeau.codegen.scalar.scalar_ir import Node, topological_order

X, Y = e.variable(0, "float32"), e.variable(1, "float32")
HALF = math.sqrt(0.5)
Z = X * HALF


def functions(*outputs: Node) -> set[str]:
    return {node.op for node in topological_order(reuse_exponentials(outputs))} & {"erf", "erf_from_exp"}


@pytest.mark.parametrize("bell", [e.exp(X * X * -0.5), e.exp(-0.5 * (X * X)), e.exp(-(Z * Z)), e.exp(-Z * Z),
                                  e.exp((X * -0.5) * X)])
@pytest.mark.parametrize("sum_", [1 + e.erf(Z), 1 - e.erf(Z), e.erf(Z) + 1, e.erf(HALF * X) - 1, e.erf(-Z) + 2])
def test_rewritten(bell: Node, sum_: Node) -> None:
    assert functions(0.5 * sum_ * Y, bell * X) == {"erf_from_exp"}
    assert functions(bell, sum_) == {"erf_from_exp"}


@pytest.mark.parametrize("outputs", [
    [1 + e.erf(Z)],
    [1 + e.erf(Z), e.exp(-(X * X))],
    [1 + e.erf(Z), e.exp(0.5 * (X * X))],
    [1 + e.erf(Z), e.exp(-0.5 * (X * Y))],
    [1 + e.erf(Z), e.exp(-0.5 * X)],
    [0.5 + e.erf(Z), e.exp(-(Z * Z))],
    [X + e.erf(Z), e.exp(-(Z * Z))],
    [e.erf(Z), e.exp(-(Z * Z))],
    [1 + e.erf(Z), e.erf(Z) * Y, e.exp(-(Z * Z))]])
def test_unchanged(outputs: list[Node]) -> None:
    assert functions(*outputs) == {"erf"}


def test_unchanged_in_float64() -> None:
    x = e.variable(0, "float64")
    assert functions(1 + e.erf(x), e.exp(-x * x)) == {"erf"}


def test_the_normal_distribution() -> None:
    x = np.concatenate([np.linspace(-15, 15, 200_001), [0.0, -0.0, np.inf, -np.inf, np.nan, 3e38, 1e-40]]).astype("f4")
    kernel = elementwise.kernel([0.5 * (1 + e.erf(Z)), e.exp(-0.5 * (X * X))], ["float32"])
    mass, bell = kernel(x)
    with np.errstate(all="ignore"):
        wide = x.astype("f8")
        exact = np.array([0.5 * math.erfc(-each * HALF) for each in wide])
        np.testing.assert_allclose(bell, np.exp(-0.5 * wide * wide), rtol=4e-5, atol=1e-37)
    assert np.isnan(mass[np.isnan(x)]).all()
    some = ~np.isnan(x)
    assert np.nanmax(abs(mass[some] - exact[some])) < (1.5e-7 if host_has_fma() else 2.5e-7)
    assert mass[x == np.inf] == 1
    assert mass[x == -np.inf] == 0
