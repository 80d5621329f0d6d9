"""`minimize` beside SciPy's own with derivatives written by hand."""

from __future__ import annotations

import sys

import numpy as np
import pytest

import flambeau as torch

optimize = pytest.importorskip("scipy.optimize")

from flambeau.interop.scipy import minimize


def rosen(x):
    return (100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2).sum()


START = [1.3, 0.7, 0.8, 1.9, 1.2]


@pytest.mark.parametrize("method", ["CG", "BFGS", "L-BFGS-B", "TNC", "SLSQP", "Newton-CG", "trust-ncg", "trust-krylov",
                                    "trust-exact", "dogleg", "trust-constr"])
def test_steps_are_those_of_exact_derivatives(method):
    start = START if method != "dogleg" else [1.1, 1.1]  # where the Hessian is positive definite
    x0 = torch.tensor(start, dtype=torch.float64)
    given = {"jac": optimize.rosen_der}
    if method in ("Newton-CG", "trust-ncg", "trust-krylov", "trust-constr"):
        given["hessp"] = optimize.rosen_hess_prod
    elif method in ("trust-exact", "dogleg"):
        given["hess"] = optimize.rosen_hess
    expected = optimize.minimize(optimize.rosen, np.array(start), method=method, **given)
    found = minimize(rosen, x0, method=method)
    assert found.success == expected.success
    assert abs(found.nit - expected.nit) <= 2
    assert isinstance(found.x, torch.Tensor)
    assert found.x.dtype is torch.float64
    np.testing.assert_allclose(found.x.numpy(), expected.x, atol=2e-5)


@pytest.mark.parametrize("method", ["Nelder-Mead", "Powell", "COBYLA"])
def test_methods_without_gradients_get_none(method):
    found = minimize(lambda x: (x ** 2).sum(), torch.tensor([1.0, -2.0]), method=method, options={"maxiter": 400})
    np.testing.assert_allclose(found.x.numpy(), [0, 0], atol=1e-3)


def test_trees_of_tensors():
    goal = {"w": torch.arange(6.0).reshape(2, 3), "b": torch.tensor(3.0)}
    found = minimize(lambda p: ((p["w"] - goal["w"]) ** 2).sum() + (p["b"] - goal["b"]) ** 2,
                     {"w": torch.zeros(2, 3), "b": torch.zeros((), dtype=torch.float64)}, method="L-BFGS-B")
    assert found.x["w"].shape == (2, 3)
    assert found.x["w"].dtype is torch.float32
    assert found.x["b"].dtype is torch.float64
    assert found.jac["w"].shape == (2, 3)
    torch.testing.assert_close(found.x["w"], goal["w"], atol=1e-4, rtol=0)
    assert isinstance(found.fun, torch.Tensor)
    assert found.fun.shape == ()


@pytest.mark.parametrize("bounds", [
    {"a": (0.5, None), "b": (None, torch.tensor([0.0, 1.0]))},
    [(0.5, None), (None, 0.0), (None, 1.0)],
    optimize.Bounds([0.5, -np.inf, -np.inf], [np.inf, 0, 1]),
])
def test_bounds(bounds):
    found = minimize(lambda p: (p["a"] ** 2).sum() + ((p["b"] - 2) ** 2).sum(),
                     {"a": torch.ones(1), "b": torch.zeros(2)}, bounds=bounds)
    np.testing.assert_allclose(found.x["a"].numpy(), [0.5], atol=1e-5)
    np.testing.assert_allclose(found.x["b"].numpy(), [0, 1], atol=1e-5)


@pytest.mark.parametrize("method", ["SLSQP", "trust-constr"])
def test_constraints_are_differentiated(method):
    circle = {"type": "eq", "fun": lambda x: (x ** 2).sum() - 1}
    if method == "trust-constr":
        circle = optimize.NonlinearConstraint(lambda x: (x ** 2).sum(), 1, 1)
    found = minimize(lambda x: x.sum(), torch.tensor([-0.9, -0.1], dtype=torch.float64), method=method,
                     constraints=[circle, optimize.LinearConstraint([[1, 0]], -1, 1)])
    np.testing.assert_allclose(found.x.numpy(), [-0.5 ** 0.5] * 2, atol=1e-3)


def test_given_derivatives_and_arguments():
    calls = []

    def gradient(x, scale):
        calls.append(x)
        return 2 * scale * x

    found = minimize(lambda x, scale: scale * (x ** 2).sum(), torch.ones(2), args=(3.0,), jac=gradient)
    assert calls
    assert isinstance(calls[0], torch.Tensor)
    assert found.success
    found = minimize(lambda x: ((x ** 2).sum(), 2 * x), torch.ones(2), jac=True)
    np.testing.assert_allclose(found.x.numpy(), 0, atol=1e-5)
    found = minimize(lambda x: float((x.detach() ** 2).sum()), torch.ones(2, dtype=torch.float64), jac="2-point")
    np.testing.assert_allclose(found.x.numpy(), 0, atol=1e-5)
    found = minimize(lambda x: (x ** 4).sum(), torch.ones(2), method="Newton-CG", hess=True)
    assert found.success
    found = minimize(lambda x: (x ** 2).sum(), torch.ones(2), method="trust-ncg", hessp=lambda x, p: 2 * p)
    assert found.success


def test_callbacks_are_given_tensors():
    seen = []
    minimize(rosen, torch.tensor(START), callback=lambda x: seen.append(x), options={"maxiter": 3})
    assert len(seen) == 3
    assert all(isinstance(x, torch.Tensor) and x.shape == (5,) for x in seen)

    def stop(intermediate_result):
        assert isinstance(intermediate_result.x, torch.Tensor)
        raise StopIteration

    assert not minimize(rosen, torch.tensor(START), callback=stop, method="L-BFGS-B").success


def test_unused_leaves_have_zero_gradients_and_linear_functions_zero_hessians():
    found = minimize(lambda p: (p[0] ** 2).sum(), [torch.ones(2), torch.ones(1)], method="Newton-CG")
    assert found.success
    assert found.x[1].item() == 1


def test_errors(monkeypatch):
    with pytest.raises(ValueError, match="one element"):
        minimize(lambda x: x, torch.ones(2))
    with pytest.raises(RuntimeError, match="does not depend"):
        minimize(lambda x: x.detach().sum(), torch.ones(2))
    with pytest.raises(TypeError, match="complex64"):
        minimize(lambda x: x.abs().sum(), torch.ones(2, dtype=torch.complex64))
    with pytest.raises(ValueError, match="structure"):
        minimize(lambda x: (x["a"] ** 2).sum(), {"a": torch.ones(2)}, jac=lambda x: [2 * x["a"]])
    monkeypatch.setitem(sys.modules, "scipy", None)
    with pytest.raises(ModuleNotFoundError, match="pip install scipy"):
        minimize(rosen, torch.ones(2))
