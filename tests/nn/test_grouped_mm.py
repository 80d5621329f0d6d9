"""`grouped_mm` and `scaled_mm` beside PyTorch."""

import numpy as np
import pytest

import flambeau

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.parity


def outcome(call, module):
    try:
        out = call(module, module.nn.functional)
    except (RuntimeError, ValueError, NotImplementedError) as error:
        return type(error).__name__, str(error).split(". This could")[0].splitlines()[0]
    return str(out.dtype).split(".")[1], tuple(out.shape), out.detach().float().numpy()


def numbers(module, *shape, dtype="float32", seed=0):
    return module.tensor(np.random.default_rng(seed).standard_normal(shape)).to(getattr(module, dtype))


def ends(module, *values):
    return module.tensor(values, dtype=module.int32)


CALLS = {
    "rows": lambda m, F: F.grouped_mm(numbers(m, 8, 16), numbers(m, 2, 16, 8), offs=ends(m, 3, 8)),
    "columns": lambda m, F: F.grouped_mm(numbers(m, 2, 8, 16), numbers(m, 16, 8), offs=ends(m, 3, 8)),
    "contraction": lambda m, F: F.grouped_mm(numbers(m, 8, 16), numbers(m, 16, 8), offs=ends(m, 8, 16)),
    "batches": lambda m, F: F.grouped_mm(numbers(m, 2, 8, 16), numbers(m, 2, 16, 8)),
    "half": lambda m, F: F.grouped_mm(numbers(m, 8, 16, dtype="float16"), numbers(m, 2, 16, 8, dtype="float16"),
                                      offs=ends(m, 0, 8)),
    "no offsets": lambda m, F: F.grouped_mm(numbers(m, 8, 16), numbers(m, 2, 16, 8)),
    "offsets of batches": lambda m, F: F.grouped_mm(numbers(m, 2, 8, 16), numbers(m, 2, 16, 8), offs=ends(m, 3, 8)),
    "long offsets": lambda m, F: F.grouped_mm(numbers(m, 8, 16), numbers(m, 2, 16, 8), offs=ends(m, 3, 8).long()),
    "double": lambda m, F: F.grouped_mm(numbers(m, 8, 16).double(), numbers(m, 2, 16, 8), offs=ends(m, 3, 8)),
    "bias": lambda m, F: F.grouped_mm(numbers(m, 8, 16), numbers(m, 2, 16, 8), offs=ends(m, 3, 8), bias=m.ones(2, 8)),
    "out_dtype": lambda m, F: F.grouped_mm(numbers(m, 8, 16), numbers(m, 2, 16, 8), offs=ends(m, 3, 8),
                                           out_dtype=m.bfloat16),
    "vector": lambda m, F: F.grouped_mm(numbers(m, 16), numbers(m, 2, 16, 8), offs=ends(m, 3, 8)),
    "contraction of other length": lambda m, F: F.grouped_mm(numbers(m, 8, 15), numbers(m, 2, 16, 8), offs=ends(m, 8)),
    "groups": lambda m, F: F.grouped_mm(numbers(m, 8, 16), numbers(m, 2, 16, 8), offs=ends(m, 8)),
}


@pytest.mark.parametrize("name", CALLS)
def test_grouped_mm(name):
    expected, found = outcome(CALLS[name], torch), outcome(CALLS[name], flambeau)
    assert expected[:2] == found[:2]
    if len(expected) == 3:
        np.testing.assert_allclose(found[2], expected[2], rtol=2e-3 if name == "half" else 1e-5, atol=1e-5)


def test_gradients():
    for module in (torch, flambeau):
        a, b = numbers(module, 4, 8).requires_grad_(), numbers(module, 2, 8, 4).requires_grad_()
        module.nn.functional.grouped_mm(a, b, offs=ends(module, 1, 4)).cos().sum().backward()
        if module is torch:
            expected = a.grad.numpy(), b.grad.numpy()
    np.testing.assert_allclose(a.grad.numpy(), expected[0], rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(b.grad.numpy(), expected[1], rtol=1e-5, atol=1e-6)


def scaled(m, F, a_scale, recipe, b_scale, **options):
    recipe = getattr(F.ScalingType, recipe)
    a, b = numbers(m, 16, 32).to(m.float8_e4m3fn), numbers(m, 16, 32, seed=1).to(m.float8_e4m3fn).t()
    return F.scaled_mm(a, b, a_scale, recipe, b_scale, recipe, **options)


SCALED = {
    "tensor": lambda m, F: scaled(m, F, m.tensor(0.5), "TensorWise", m.tensor(2.0)),
    "rows": lambda m, F: scaled(m, F, numbers(m, 16, 1).abs(), "RowWise", numbers(m, 1, 16).abs()),
    "float32": lambda m, F: scaled(m, F, m.tensor(0.5), "TensorWise", m.tensor(0.5), output_dtype=m.float32),
    "blocks": lambda m, F: scaled(m, F, m.tensor(0.5), "BlockWise1x32", m.tensor(0.5)),
}


@pytest.mark.parametrize("name", ["tensor", "rows", "float32", "blocks"])
def test_scaled_mm(name):
    expected, found = outcome(SCALED[name], torch), outcome(SCALED[name], flambeau)
    assert expected[:2] == found[:2]
    if len(expected) == 3:
        np.testing.assert_allclose(found[2], expected[2], rtol=1e-2, atol=1e-2)


def test_groups_of_scaled_matrices_are_refused():
    F = flambeau.nn.functional
    with pytest.raises(NotImplementedError, match="_scaled_grouped_mm_v2"):
        F.scaled_grouped_mm(flambeau.ones(2, 2), flambeau.ones(2, 2), flambeau.ones(1), F.ScalingType.TensorWise,
                            flambeau.ones(1), F.ScalingType.TensorWise)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_private_names_with_positional_arguments(dtype):
    results = []
    for m in (torch, flambeau):
        a, b = numbers(m, 6, 16).to(getattr(m, dtype)), numbers(m, 2, 16, 8, seed=1).to(getattr(m, dtype))
        offs = m.tensor([2, 6], dtype=m.int32)
        results.append([m._grouped_mm(a, b, offs).float().numpy(), m.ops.aten._grouped_mm(a, b, offs).float().numpy()])
    np.testing.assert_allclose(results[1], results[0], rtol=1e-2, atol=1e-2)


PRIVATE_SCALED = {
    "tensor": lambda m, a, b: m._scaled_mm(a, b, m.tensor(0.5), m.tensor(2.0), out_dtype=m.bfloat16),
    "no dtype": lambda m, a, b: m._scaled_mm(a, b, m.tensor(0.5), m.tensor(2.0)).float(),
    "rows": lambda m, a, b: m._scaled_mm(a, b, numbers(m, 16, 1).abs(), numbers(m, 1, 16).abs(), out_dtype=m.float32),
    "bias": lambda m, a, b: m._scaled_mm(a, b, m.tensor(0.5), m.tensor(2.0), m.ones(16), None, m.float32),
    "vector": lambda m, a, b: m._scaled_mm(a[0], b, m.tensor(0.5), m.tensor(2.0)),
    "shapes": lambda m, a, b: m._scaled_mm(a, b.t(), m.tensor(0.5), m.tensor(2.0)),
    "scales": lambda m, a, b: m._scaled_mm(a, b, m.tensor(0.5).double(), m.tensor(2.0)),
}


@pytest.mark.parametrize("name", PRIVATE_SCALED)
def test_scaled_mm_by_its_private_name(name):
    def run(m, F):
        a, b = numbers(m, 16, 32).to(m.float8_e4m3fn), numbers(m, 16, 32, seed=1).to(m.float8_e4m3fn).t()
        return PRIVATE_SCALED[name](m, a, b)

    expected, found = outcome(run, torch), outcome(run, flambeau)
    assert expected[:2] == found[:2]
    if len(expected) == 3:
        np.testing.assert_allclose(found[2], expected[2], rtol=6e-2, atol=6e-2)
