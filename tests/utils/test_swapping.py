"""Tensors exchanged in place, and helpers of the benchmark, beside PyTorch."""

import weakref

import pytest

import flambeau

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.parity


def swapped(m):
    parameter, plain = m.nn.Parameter(m.ones(2)), m.zeros(3)
    parameter.extra = 1
    m.utils.swap_tensors(parameter, plain)
    kinds = type(parameter) is m.Tensor, isinstance(plain, m.nn.Parameter)
    return parameter.tolist(), plain.tolist(), plain.extra, kinds


def backward_of_older_graphs(m):
    p, q = m.nn.Parameter(m.ones(2)), m.nn.Parameter(m.zeros(2))
    y = (p * 2).sum()
    m.utils.swap_tensors(p, q)
    with pytest.raises(RuntimeError) as error:
        y.backward()
    return str(error.value), p.grad, q.grad, p.tolist()


def of_weak_references(m):
    a, b = m.ones(2), m.zeros(2)
    reference = weakref.ref(a)
    with pytest.raises(RuntimeError) as error:
        m.utils.swap_tensors(a, b)
    return str(error.value), reference is None


@pytest.mark.parametrize("program", [swapped, backward_of_older_graphs, of_weak_references])
def test_tensors_are_exchanged(program):
    assert program(flambeau) == program(torch)


@pytest.mark.parametrize("x", [1234.567, 0.0012345, -5.5, 999.9])
@pytest.mark.parametrize("n", [1, 2, 3])
def test_significant_digits(x, n):
    from torch.utils.benchmark.utils.common import trim_sigfig

    assert flambeau.utils.benchmark.trim_sigfig(x, n) == pytest.approx(trim_sigfig(x, n), rel=1e-6)


def test_names_of_the_benchmark():
    import torch.utils.benchmark as theirs

    ours = flambeau.utils.benchmark
    assert ours.timer.__name__ == "perf_counter"
    assert [ours.unit_to_english(u) for u in ("ns", "us", "ms", "s")] == [
        theirs.utils.common.unit_to_english(u) for u in ("ns", "us", "ms", "s")]
    assert ours.ordered_unique([3, 1, 3]) == [3, 1]
    assert ours.select_unit(t=1e-4) == theirs.select_unit(1e-4)
    with ours.set_torch_threads(1):
        assert flambeau.get_num_threads() == 1


def conversion_and_loading_that_swap(m):
    module = m.nn.Linear(2, 1).to(m.float32)
    module.weight.grad, module.bias.requires_grad = m.ones(1, 2), False
    weight, grad, other = module.weight, module.weight.grad, m.nn.Linear(2, 1).double()
    m.__future__.set_swap_module_params_on_conversion(True)
    try:
        assert m.__future__.get_swap_module_params_on_conversion()
        module.double()
        kept = module.weight is weight, weight.grad is grad, str(weight.dtype)[-7:], str(grad.dtype)[-7:]
        module.load_state_dict(other.state_dict())
        values = module.weight is weight, m.equal(weight, other.weight), weight.grad, module.bias.requires_grad
        reference = weakref.ref(weight)
        with pytest.raises(RuntimeError) as converting:
            module.float()
        with pytest.raises(RuntimeError) as loading:
            module.load_state_dict(other.state_dict())
        texts = str(converting.value), str(loading.value).replace("flambeau.", "torch.")
        return kept, values, texts, reference() is weight
    finally:
        m.__future__.set_swap_module_params_on_conversion(False)


def test_conversion_and_loading_that_swap():
    assert conversion_and_loading_that_swap(flambeau) == conversion_and_loading_that_swap(torch)
