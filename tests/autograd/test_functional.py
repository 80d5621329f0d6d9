"""`torch.autograd.functional` compared with PyTorch: values, structures, graphs and error messages."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import flambeau

pytorch = pytest.importorskip("torch")

#: what is called (a module is given to it) -> for the differential tests
FUNCTIONS: dict[str, tuple[Callable[..., Any], int, int]] = {  # name: (function, inputs, outputs; 0: not a tuple)
    "matrix to vector": (lambda t, x: (x.exp() * x).sum(1), 0, 0),
    "matrix to scalar": (lambda t, x: (x ** 3).sum(), 0, 0),
    "matrix to one": (lambda t, x: (x ** 3).sum().reshape(1, 1), 0, 0),
    "tuple of one": (lambda t, x: (x.sin(),), 1, 1),
    "two to one": (lambda t, x, y: x * y.sum() + y.sum(), 2, 0),
    "two to a scalar": (lambda t, x, y: (x * y.sum() ** 2).sum(), 2, 0),
    "two to two": (lambda t, x, y: (x * y.sum(), y ** 2), 2, 2),
    "one to three": (lambda t, x: (x.sum(), x * 2, x.T @ x), 0, 3),
    "independent of one": (lambda t, x, y: x.cos(), 2, 0),
    "quadratic in one": (lambda t, x, y: (x * x).sum(), 2, 0),
    "linear": (lambda t, x: x.sum(), 0, 0),
    "constant": (lambda t, x: t.ones(2, dtype=t.float64), 0, 0),
    "constant scalar": (lambda t, x: t.tensor(2.0, dtype=t.float64), 0, 0),
    "partly constant": (lambda t, x: (x * 2, t.ones(2, dtype=t.float64)), 0, 2),
    "the input itself": (lambda t, x: x, 0, 0),
    "integers": (lambda t, x: (x * 10).long(), 0, 0),
    "in place": (lambda t, x: x.clone().mul_(x).sum(0), 0, 0),
    "no tensor": (lambda t, x: 3.0, 0, 0),
    "a list": (lambda t, x: [x], 0, 0),
    "no tensor in a tuple": (lambda t, x: (x, "x"), 0, 2),
}
X = np.array([[0.3, -1.2, 0.7], [2.0, 0.1, -0.4]])
Y = np.array([0.5, -0.25])


def inputs(t: Any, count: int, requires_grad: bool) -> Any:
    found = tuple(t.tensor(a.tolist(), dtype=t.float64, requires_grad=requires_grad) for a in (X, Y))
    return found[:count] if count else found[0]


def like(t: Any, values: Any, requires_grad: bool = False) -> Any:
    """A vector in the shapes of the values, always the same."""
    if isinstance(values, tuple):
        return tuple(like(t, x, requires_grad) for x in values)
    count = values.numel()
    flat = t.linspace(-1.0, 2.0, count, dtype=t.float64) if count else t.zeros(0, dtype=t.float64)
    return flat.reshape(tuple(values.shape)).requires_grad_(requires_grad)


def described(found: Any) -> Any:
    """What a result is, of either library: structure, shapes, dtypes, whether it has a graph, and values."""
    if isinstance(found, (tuple, list)):
        return type(found), [described(x) for x in found]
    return (tuple(found.shape), str(found.dtype).rpartition(".")[2], found.requires_grad, found.is_leaf,
            np.round(found.detach().numpy(), 12).tolist())


def outcome(call: Callable[[], Any]) -> Any:
    try:
        found = call()
    except Exception as error:
        return type(error).__name__, str(error).replace("torch.Tensor", "Tensor").replace("flambeau.", "torch.")
    return described(found)


def both(run: Callable[[Any], Any]) -> None:
    assert outcome(lambda: run(flambeau)) == outcome(lambda: run(pytorch))


def later(t: Any, found: Any, leaves: Any) -> Any:
    """A result and, where it has a graph, what it gives back to the inputs."""
    flat: list[Any] = []

    def collect(x: Any) -> None:
        if isinstance(x, (tuple, list)):
            for each in x:
                collect(each)
        elif x.requires_grad:
            flat.append((x ** 2).sum())

    collect(found)
    if not flat:
        return found
    wanted = [x for x in (leaves if isinstance(leaves, tuple) else (leaves,)) if x.requires_grad]
    if not wanted:
        return found
    grads = t.autograd.grad(sum(flat), wanted, allow_unused=True)
    return found, tuple(t.zeros(0) if g is None else g for g in grads)


def detached(found: Any) -> Any:
    return type(found)(detached(x) for x in found) if isinstance(found, (tuple, list)) else found.detach()


@pytest.mark.parametrize("requires_grad", [False, True])
@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize("create_graph", [False, True])
@pytest.mark.parametrize("product", ["vjp", "jvp", "vhp", "hvp"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_vector_products(name: str, product: str, create_graph: bool, strict: bool, requires_grad: bool) -> None:
    function, count, _ = FUNCTIONS[name]

    def run(t: Any) -> Any:
        given = inputs(t, count, requires_grad)
        func = lambda *x: function(t, *x)
        if product == "vjp":
            out = func(*given) if count else func(given)
            v = like(t, out, requires_grad) if not isinstance(out, (list, float)) and "x" not in out else t.ones(2)
        else:
            v = like(t, given, requires_grad)
        found = getattr(t.autograd.functional, product)(func, given, v, create_graph=create_graph, strict=strict)
        return later(t, found, given)

    both(run)


@pytest.mark.parametrize("requires_grad", [False, True])
@pytest.mark.parametrize("options", [
    {}, {"create_graph": True}, {"strict": True}, {"strict": True, "create_graph": True}, {"vectorize": True},
    {"vectorize": True, "create_graph": True}, {"vectorize": True, "strict": True},
    {"strategy": "forward-mode", "vectorize": True}, {"strategy": "forward-mode"},
    {"strategy": "forward-mode", "vectorize": True, "strict": True},
    {"strategy": "forward-mode", "vectorize": True, "create_graph": True}, {"strategy": "backward"}], ids=str)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_jacobians(name: str, options: dict[str, Any], requires_grad: bool) -> None:
    function, count, _ = FUNCTIONS[name]

    def run(t: Any) -> Any:
        given = inputs(t, count, requires_grad)
        found = t.autograd.functional.jacobian(lambda *x: function(t, *x), given, **options)
        # PyTorch's rules multiply by tangents that are known to be zero: its graph may have parts that give zeros
        return detached(found) if "forward" in str(options) else later(t, found, given)

    both(run)


@pytest.mark.parametrize("options", [
    {}, {"create_graph": True}, {"strict": True}, {"strict": True, "create_graph": True}, {"vectorize": True},
    {"vectorize": True, "create_graph": True}, {"vectorize": True, "strict": True},
    {"outer_jacobian_strategy": "forward-mode", "vectorize": True}, {"outer_jacobian_strategy": "forward-mode"},
    {"outer_jacobian_strategy": "forward-mode", "vectorize": True, "strict": True},
    {"outer_jacobian_strategy": "forward-mode", "vectorize": True, "create_graph": True},
    {"outer_jacobian_strategy": "backward"}], ids=str)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_hessians(name: str, options: dict[str, Any]) -> None:
    function, count, _ = FUNCTIONS[name]

    def run(t: Any) -> Any:
        forward = "forward" in str(options)
        given = inputs(t, count, not forward)
        found = t.autograd.functional.hessian(lambda *x: function(t, *x), given, **options)
        return detached(found) if forward else later(t, found, given)

    both(run)


@pytest.mark.parametrize("requires_grad", [False, True])
def test_a_forward_hessian_of_inputs_that_require_grad_has_the_same_values(requires_grad: bool) -> None:
    def run(t: Any) -> Any:
        given = inputs(t, 2, requires_grad)
        found = t.autograd.functional.hessian(lambda x, y: (x.sum(0) ** 2).sum() * y.exp().sum(), given,
                                              vectorize=True, outer_jacobian_strategy="forward-mode")
        return detached(found)

    both(run)


@pytest.mark.parametrize("product", ["vjp", "jvp", "vhp", "hvp"])
@pytest.mark.parametrize(("shape", "function", "v"), [
    ((2,), lambda t, x: x.sum(), "none"),
    ((1, 1), lambda t, x: x * x, "none"),
    ((), lambda t, x: x ** 3, "none"),
    ((2,), lambda t, x: x * x, "none"),
    ((2,), lambda t, x: (x.sum(), x.sum()), "none"),
    ((2,), lambda t, x: (x.sum(),), "none"),
    ((1,), lambda t, x: x * x, (1.0, 2.0)),
    ((2,), lambda t, x: x * x, (1.0, 2.0, 3.0)),
    ((2,), lambda t, x: x * x, [1.0, 2.0]),
    ((2,), lambda t, x: x * x, (1.0, "x")),
    ((2,), lambda t, x: (x * x, x), (1.0,)),
    ((2,), lambda t, x: (x * x, x), ()),
])
def test_accepted_vectors(product: str, shape: tuple[int, ...], function: Any, v: Any) -> None:
    def run(t: Any, several: bool) -> Any:
        x = t.full(shape, 1.5)
        given: Any = None
        if v != "none":
            given = type(v)(t.tensor(e) if isinstance(e, float) else e for e in v)
        return getattr(t.autograd.functional, product)(lambda *x: function(t, *x), (x, ) if several else x, given)

    both(lambda t: run(t, False))
    both(lambda t: run(t, True))


@pytest.mark.parametrize("product", ["vjp", "jvp", "vhp", "hvp"])
@pytest.mark.parametrize("v", [[1.0, 2.0], [1, 2], [1j, 2j], [True, False], [[1.0, 2.0]]], ids=str)
@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "int64"])
def test_vectors_and_inputs_of_other_dtypes(product: str, v: Any, dtype: str) -> None:
    def run(t: Any) -> Any:
        x = t.tensor([2, 1]).to(getattr(t, dtype))
        power = (lambda x: (x ** 3).sum()) if product in ("vhp", "hvp") else (lambda x: x ** 3)
        found = getattr(t.autograd.functional, product)(power, x, t.tensor(v))
        return found[0].to(t.complex64), found[1].to(t.complex64)

    both(run)


@pytest.mark.parametrize("options", [{}, {"vectorize": True}, {"vectorize": True, "strategy": "forward-mode"}], ids=str)
@pytest.mark.parametrize("function", [
    lambda t, z: z * z, lambda t, z: z.abs(), lambda t, z: z.real * z.imag, lambda t, z: (z * 2j).real + z ** 3],
                         ids=range(4))
def test_complex_jacobians(options: dict[str, Any], function: Any) -> None:
    def run(t: Any) -> Any:
        z = t.tensor([0.3 + 1j, -1.2 - 0.7j], dtype=t.complex128)
        return t.autograd.functional.jacobian(lambda z: function(t, z), z, **options) + 0.0

    both(run)


@pytest.mark.parametrize("name", ["vjp", "jvp", "vhp", "hvp", "jacobian", "hessian"])
@pytest.mark.parametrize("given", ["list", "number", "mixed", "none"])
def test_inputs_that_are_not_tensors(name: str, given: str) -> None:
    def run(t: Any) -> Any:
        x = {"list": [t.ones(2)], "number": 2.0, "mixed": (t.ones(2), 1), "none": None}[given]
        return getattr(t.autograd.functional, name)(lambda *x: x[0].sum(), x)

    both(run)


@pytest.mark.parametrize("name", ["vjp", "jvp", "vhp", "hvp", "jacobian", "hessian"])
@pytest.mark.parametrize("create_graph", [False, True])
def test_grad_mode_matters_only_with_create_graph(name: str, create_graph: bool) -> None:
    def run(t: Any) -> Any:
        x = inputs(t, 0, True)
        v = () if name in ("jacobian", "hessian") else (t.ones(()) if name == "vjp" else like(t, x),)
        with t.no_grad():
            found = getattr(t.autograd.functional, name)(lambda x: (x ** 4).sum(), x, *v, create_graph=create_graph)
            assert not t.is_grad_enabled()
        return later(t, found, x)

    both(run)


@pytest.mark.parametrize("name", ["vjp", "jvp", "vhp", "hvp"])
def test_third_derivatives_through_a_product(name: str) -> None:
    def run(t: Any) -> Any:
        x, w = t.tensor([0.5, 2.0], requires_grad=True), t.tensor([1.0, 3.0], requires_grad=True)
        v = t.tensor([2.0, -1.0], requires_grad=True)
        power = (lambda x: (w * x ** 4).sum()) if name in ("vhp", "hvp") else (lambda x: w * x ** 4)
        _, product = getattr(t.autograd.functional, name)(power, x, v, create_graph=True)
        first = t.autograd.grad(product.sum(), (x, v, w), create_graph=True)
        return first + t.autograd.grad(first[0].sum() + first[1].sum(), (x, v, w))

    both(run)


def test_the_outer_graph_stays_usable() -> None:
    x = flambeau.tensor([1.0, 2.0], requires_grad=True)
    kept = x.exp()
    flambeau.autograd.functional.vjp(lambda y: y * kept, flambeau.ones(2), flambeau.ones(2))
    kept.sum().backward()
    assert np.allclose(x.grad.numpy(), np.exp([1.0, 2.0]))


def test_products_do_not_modify_inputs_or_gradients() -> None:
    x = flambeau.tensor([1.0, 2.0])
    flambeau.autograd.functional.hvp(lambda x: (x ** 3).sum(), x, flambeau.ones(2))
    assert not x.requires_grad
    assert x.grad is None


@pytest.mark.parametrize("options", [{"vectorize": True}, {"vectorize": True, "strategy": "forward-mode"}], ids=str)
def test_an_empty_input_has_an_empty_jacobian(options: dict[str, Any]) -> None:
    found = flambeau.autograd.functional.jacobian(lambda x: x * x, flambeau.zeros(0), **options)
    assert found.shape == (0, 0)


@pytest.mark.parametrize("vectorize", [False, True])
def test_jacobians_agree_with_the_functional_transforms(vectorize: bool) -> None:
    x = flambeau.tensor(X.tolist())
    layer = flambeau.nn.Linear(3, 4)
    found = flambeau.autograd.functional.jacobian(lambda x: layer(x).tanh(), x, vectorize=vectorize)
    expected = flambeau.func.jacrev(lambda x: layer(x).tanh())(x)
    assert np.allclose(found.numpy(), expected.detach().numpy(), atol=1e-6)


def test_private_functions_that_packages_import() -> None:
    def program(torch: Any) -> list[Any]:
        functional = torch.autograd.functional
        x = torch.tensor(X.tolist(), requires_grad=True)
        basis = functional._construct_standard_basis_for((x, x[0, :1], x[0]), (x.numel(), 1, x.shape[1]))
        detached, = functional._grad_postprocess(((x * 2,),), create_graph=False)
        kept, = functional._grad_postprocess(((x * 2,),), create_graph=True)
        found: list[Any] = [[b.tolist() for b in basis], detached[0].requires_grad, kept[0].requires_grad]
        found += [functional._tuple_postprocess(((1, 2), (3, 4)), way) for way in ((True, True), (True, False))]
        found += [functional._tuple_postprocess(((1, 2), (3, 4)), (False, False)), functional._as_tuple([1, 2]),
                  functional._as_tuple(x, "inputs", "f")[0], functional._tuple_postprocess((5, 6), False)]
        for call in (lambda: functional._as_tuple((1,), "inputs", "f"),
                     lambda: functional._construct_standard_basis_for((), ()),
                     lambda: functional._construct_standard_basis_for((x,), (1, 2))):
            try:
                call()
            except (TypeError, AssertionError) as error:
                found.append((type(error), str(error)))
        return found

    assert program(flambeau) == program(pytorch)
