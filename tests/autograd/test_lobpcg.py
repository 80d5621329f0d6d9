"""Eigenpairs by iteration beside PyTorch's, and beside a full decomposition."""

import numpy as np
import pytest

import flambeau

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.parity


def matrix(module, size=12, seed=0, dtype="float64"):
    a = np.random.default_rng(seed).standard_normal((size, size))
    return module.tensor(a @ a.T + size * np.eye(size)).to(getattr(module, dtype))


CALLS = {
    "largest": lambda m: m.lobpcg(matrix(m), 2), "smallest": lambda m: m.lobpcg(matrix(m), 3, largest=False),
    "basic": lambda m: m.lobpcg(matrix(m), 2, method="basic"),
    "float32": lambda m: m.lobpcg(matrix(m, dtype="float32")),
    "generalized": lambda m: m.lobpcg(matrix(m), 2, B=matrix(m, seed=1)),
    "sparse": lambda m: m.lobpcg(matrix(m, 20).to_sparse(), 2),
    "batch": lambda m: m.lobpcg(m.stack([matrix(m), matrix(m, seed=2)]), 2),
    "guess": lambda m: m.lobpcg(matrix(m), X=m.eye(12, dtype=m.float64)[:, :3]),
    "preconditioned": lambda m: m.lobpcg(matrix(m), 1, iK=m.linalg.inv(matrix(m)), largest=False),
}


@pytest.mark.parametrize("name", CALLS)
def test_eigenpairs(name):
    found = {}
    for module in (torch, flambeau):
        module.manual_seed(0)
        values, vectors = CALLS[name](module)
        found[module] = values.numpy(), np.abs(vectors.numpy()), values.dtype
    tolerance = 1e-3 if name == "float32" else 1e-5
    assert str(found[torch][2]).split(".")[1] == str(found[flambeau][2]).split(".")[1]
    np.testing.assert_allclose(found[flambeau][0], found[torch][0], rtol=tolerance)
    np.testing.assert_allclose(found[flambeau][1], found[torch][1], atol=50 * tolerance)


def test_gradients():
    gradients = []
    for module in (torch, flambeau):
        module.manual_seed(0)
        a = matrix(module).requires_grad_()
        values, vectors = module.lobpcg(a, 2, tol=1e-12, niter=200)
        (values[0] * 3 + values[1] ** 2 + (vectors ** 2)[:4].sum(0).cos().sum()).backward()
        gradients.append(a.grad.numpy())
        assert values.grad_fn.name() == "LOBPCGAutogradFunctionBackward"
    np.testing.assert_allclose(gradients[1], gradients[0], rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("call", [
    lambda m: m.lobpcg(matrix(m), 5), lambda m: m.lobpcg(m.ones(3, 4), 1),
    lambda m: m.lobpcg(matrix(m), 2, B=m.ones(3, 3)), lambda m: m.lobpcg(matrix(m), 2, X=m.ones(3, 2)),
    lambda m: m.lobpcg(matrix(m), 2, B=matrix(m, seed=1).requires_grad_())[0].sum().backward()])
def test_errors(call):
    texts = []
    for module in (torch, flambeau):
        with pytest.raises((ValueError, AssertionError)) as error:
            call(module)
        texts.append((type(error.value), str(error.value).replace("flambeau", "torch")))
    assert texts[0] == texts[1]


def test_the_tracker_sees_iterations():
    steps = []
    flambeau.lobpcg(matrix(flambeau), 2, tracker=lambda worker: steps.append(worker.ivars["istep"]))
    assert steps == list(range(len(steps)))
