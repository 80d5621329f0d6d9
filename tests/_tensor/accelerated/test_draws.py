"""Random numbers of devices: those that PyTorch draws on a GPU, the generator's state, graphs."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

import flambeau as torch
from flambeau import codegen
from flambeau.codegen.gpu.cuda_math import single_precision
from flambeau.codegen.gpu.emulation.scalar_evaluator import evaluate
from flambeau.codegen.scalar.scalar_ir import Node, topological_order, variable
from tests._tensor.accelerated import cuda_numbers

pytestmark = pytest.mark.skipif(not codegen.available(), reason="no llvmlite")
RECORDED = cuda_numbers.recorded()


@pytest.fixture(autouse=True)
def devices() -> Iterator[None]:
    with torch.testing.fake_cuda(processors=cuda_numbers.PROCESSORS):
        yield


def evaluated(root: Node, *arguments: np.ndarray) -> np.ndarray:
    """The value of an expression, by the emulator."""
    values: dict[Node, np.ndarray] = {}
    with np.errstate(all="ignore"):
        for node in topological_order([root]):
            values[node] = arguments[node.const] if node.op == "input" else evaluate(
                node, [values[each] for each in node.args])
    return values[root]


def groups(expressions: list[str]) -> list[list[str]]:
    return [expressions[i::12] for i in range(12) if expressions[i::12]]


@pytest.mark.parametrize("expressions", groups(cuda_numbers.EXACT), ids=lambda some: some[0][:40])
def test_numbers_are_those_of_a_gpu(expressions):
    for expression in expressions:
        expected, offset = RECORDED[expression]
        found, own_offset = cuda_numbers.evaluate(torch, expression)
        np.testing.assert_array_equal(found, expected, expression)
        assert own_offset == offset, expression


@pytest.mark.parametrize("expressions", groups(cuda_numbers.CLOSE), ids=lambda some: some[0][:40])
def test_approximate_instructions_are_close(expressions):
    for expression in expressions:
        expected, offset = RECORDED[expression]
        found, own_offset = cuda_numbers.evaluate(torch, expression)
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=4e-6, err_msg=expression)
        assert own_offset == offset, expression


@pytest.mark.parametrize("name", list(cuda_numbers.FUNCTIONS))
def test_functions_have_the_bits_of_cuda(name):
    """Those that an instruction approximates are within 2 ulp; polynomials alone are exact."""
    low, high = cuda_numbers.FUNCTIONS[name]
    expected, _ = RECORDED[cuda_numbers.function_expression(name)]
    x = torch.linspace(low, high, 5000)[::13][:len(expected)].numpy()
    found = evaluated(single_precision.FUNCTIONS[name](variable(0, "float32")), x)
    distance = np.abs(found.view(np.int32).astype(np.int64) - expected.view(np.int32))
    assert distance.max() <= (0 if name in ("log", "sin", "cos") else 2)


def test_large_and_huge_poisson_rates():
    for rate in (64.0, 500.0, 5000.0):
        drawn = torch.poisson(torch.full((3000,), rate, device="cuda", dtype=torch.float64)).cpu()
        assert abs(drawn.mean() - rate) < 5 * (rate / 3000) ** 0.5
        assert abs(drawn.var() / rate - 1) < 0.15


def test_doubles_and_narrow_floats():
    for dtype in (torch.float64, torch.float16, torch.bfloat16):
        for fill in (lambda x: x.exponential_(2), lambda x: x.cauchy_(), lambda x: x.log_normal_(),
                     lambda x: x.geometric_(0.25), lambda x: x.normal_(1, 2)):
            assert torch.isfinite(fill(torch.empty(300, device="cuda", dtype=dtype)).float()).all()
    binomial = torch.binomial(torch.full((900,), 60.0, dtype=torch.float64, device="cuda"),
                              torch.full((900,), 0.7, dtype=torch.float64, device="cuda"))
    assert abs(binomial.mean().item() - 42) < 1


def test_targets_with_gaps():
    torch.cuda.manual_seed(3)
    dense = torch.rand(18, device="cuda").cpu()
    torch.cuda.manual_seed(3)
    x = torch.zeros(6, 10, device="cuda")
    x[::2, 1::2][:, :3].uniform_()
    assert torch.equal(x.cpu()[::2, 1:7:2].reshape(-1), dense[:9])
    assert x.count_nonzero().item() == 9


def test_equal_keys_are_shuffled():
    for n in (2, 3, 700):
        seen = {tuple(torch.randperm(n, device="cuda").tolist()) for _ in range(12)}
        assert all(sorted(each) == list(range(n)) for each in seen)
        assert len(seen) > 1


def test_gradients_of_samples():
    x = torch.full((40,), 2.0, device="cuda", requires_grad=True)
    torch._standard_gamma(x).sum().backward()
    assert x.grad.abs().sum() > 0
    y = torch.full((40,), 0.5, device="cuda", requires_grad=True)
    torch.bernoulli(y).sum().backward()
    assert y.grad.count_nonzero() == 0
    z = torch.ones(4, 6, device="cuda", requires_grad=True)
    out = torch.nn.functional.dropout(z.t(), 0.5)
    out.sum().backward()
    assert torch.equal(z.grad.t(), out.detach())


def test_errors():
    x = torch.empty(3, device="cuda")
    for message, draw in (("uniform_ expects to return a", lambda: x.uniform_(2, 1)),
                          ("normal expects std >= 0.0, but found std -1", lambda: x.normal_(0, -1)),
                          ("exponential_ expects lambda > 0.0", lambda: x.exponential_(0)),
                          ("bernoulli_ expects p to be in", lambda: x.bernoulli_(2)),
                          ("geometric_ expects p to be in", lambda: x.geometric_(0)),
                          ("cauchy_ expects sigma > 0.0", lambda: x.cauchy_(0, -1)),
                          ("log_normal_ expects std > 0.0", lambda: x.log_normal_(0, -1)),
                          ("random_ expects 'from' to be less than 'to'", lambda: x.random_(5, 2)),
                          ("normal expects all elements of std >= 0.0", lambda: torch.normal(x.fill_(1), -x)),
                          ("cannot sample n_sample > prob_dist", lambda: torch.multinomial(x.fill_(1), 9))):
        with pytest.raises(RuntimeError, match=message):
            draw()
    with pytest.raises(NotImplementedError, match="\"fused_dropout\" not implemented for 'Long'"):
        torch.nn.functional.dropout(x.long())


def test_graphs_draw_anew():
    x, y, own = torch.zeros(9, device="cuda"), torch.zeros(3, 5, device="cuda"), torch.Generator("cuda")
    graph = torch.cuda.CUDAGraph()
    graph.register_generator_state(own)
    own.manual_seed(11)
    with torch.cuda.graph(graph):
        x.uniform_()
        y.normal_(generator=own)
        z = torch.nn.functional.dropout(torch.ones(8, device="cuda"))

    def replayed() -> list[torch.Tensor]:
        graph.replay()
        return [each.cpu().clone() for each in (x, y, z)]

    def eager() -> list[torch.Tensor]:
        return [torch.rand(9, device="cuda").cpu(), torch.randn(3, 5, device="cuda", generator=own).cpu(),
                torch.nn.functional.dropout(torch.ones(8, device="cuda")).cpu()]

    torch.cuda.manual_seed(5)
    first, second, after = replayed(), replayed(), torch.rand(4, device="cuda").cpu()
    torch.cuda.manual_seed(5)
    own.manual_seed(11)
    for found, expected in zip([*first, *second, after], [*eager(), *eager(), torch.rand(4, device="cuda").cpu()],
                               strict=True):
        assert torch.equal(found, expected)
    assert not torch.equal(first[0], second[0])


def test_attention_weights_have_the_numbers_of_the_fused_kernel():
    """Of an H100: four rows of equal weights, of which 2, 2, 3 and 2 are kept; the offset grows by their number."""
    torch.cuda.manual_seed(cuda_numbers.SEED)
    x = torch.ones(1, 1, 4, 8, device="cuda", requires_grad=True)
    out = torch.nn.functional.scaled_dot_product_attention(x, x, x, dropout_p=0.5)
    assert out[0, 0, :, 0].tolist() == [1, 1, 1.5, 1]
    assert torch.cuda.get_rng_state().numpy().view(np.uint64)[1] == 16
    out.sum().backward()
    assert torch.isfinite(x.grad).all()


@pytest.mark.parametrize("name", sorted({*single_precision.FUNCTIONS} - {"pow", "rsqrt", "sin", "cos", "log"}))
def test_functions_are_accurate_and_know_special_values(name):
    x = np.linspace(-0.99, 0.99, 999, dtype=np.float32) * (1 if name in ("asin", "acos") else 7)
    x = np.abs(x) + np.float32(1e-3) if name.startswith("log") and name != "log_sigmoid" else x
    special = np.float32([0, -0.0, np.inf, -np.inf, np.nan, 1, -1, 1e-40, 88.8, -104, 2])
    reference = {"softplus": torch.nn.functional.softplus, "log_sigmoid": torch.nn.functional.logsigmoid}
    function = reference.get(name) or getattr(torch, name)
    root = single_precision.FUNCTIONS[name](variable(0, "float32"))
    for arguments in (x, special):
        if name == "softplus":
            arguments = arguments[~(arguments > 20)]
        found = evaluated(root, arguments)
        expected = function(torch.tensor(arguments).double()).float().numpy()
        np.testing.assert_allclose(found, expected, rtol=6e-7, atol=1e-38, err_msg=name)
        assert (np.signbit(found) == np.signbit(expected))[expected == 0].all()


def test_powers():
    bases = np.float32([0, -0.0, 1, -1, 2, -2, np.inf, -np.inf, np.nan, 0.3, 1e-40, -8])
    exponents = np.float32([0, 1, -1, 2, 3, 0.5, -2, -3, np.inf, -np.inf, np.nan, 200])
    x, y = (each.reshape(-1) for each in np.meshgrid(bases, exponents))
    found = evaluated(single_precision.power(variable(0, "float32"), variable(1, "float32")), x, y)
    with np.errstate(all="ignore"):
        expected = np.power(x, y)
    np.testing.assert_allclose(found, expected, rtol=3e-7)
    assert (np.signbit(found) == np.signbit(expected))[~np.isnan(expected)].all()
