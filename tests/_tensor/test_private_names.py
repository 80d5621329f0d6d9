"""Private names of PyTorch that programs use: of the printing, of sparse indices, of `torch._C`."""

import pytest

import flambeau

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.parity


@pytest.mark.parametrize("shape", [(), (0,), (0, 2), (2, 2), (2000,), (2, 3, 4)])
def test_tensor_str_prints_the_elements(shape):
    texts = [m._tensor_str._tensor_str(m.arange(float(torch.Size(shape).numel())).reshape(shape), 4)
             for m in (torch, flambeau)]
    assert texts[0] == texts[1]


@pytest.mark.parametrize("out_int32", [False, True])
@pytest.mark.parametrize("rows", [[0, 0, 2, 3], [1], [4, 4]])
def test_rows_are_compressed(rows, out_int32):
    found, expected = (m._convert_indices_from_coo_to_csr(m.tensor(rows), 5, out_int32=out_int32)
                       for m in (flambeau, torch))
    assert found.tolist() == expected.tolist()
    assert str(found.dtype).split(".")[1] == str(expected.dtype).split(".")[1]


@pytest.mark.parametrize("transpose", [False, True])
@pytest.mark.parametrize(("crow", "col"), [([0, 2, 3], [0, 1, 1]), ([[0, 2, 3], [0, 1, 3]], [[0, 1, 1], [0, 0, 1]])])
def test_compressed_rows_become_coordinates(crow, col, transpose):
    found, expected = (m._convert_indices_from_csr_to_coo(m.tensor(crow), m.tensor(col), transpose=transpose)
                       for m in (flambeau, torch))
    assert found.tolist() == expected.tolist()


@pytest.mark.parametrize("call", [
    lambda m: m._convert_indices_from_coo_to_csr(m.tensor([0.0]), 5),
    lambda m: m._convert_indices_from_coo_to_csr(m.tensor([[0]]), 5),
    lambda m: m._convert_indices_from_csr_to_coo(m.tensor([0.0, 1.0]), m.tensor([0.0])),
    lambda m: m.arange(0, 1j), lambda m: m.arange(1j), lambda m: m.arange(3, dtype=m.complex64),
    lambda m: m.arange(3, dtype=m.bool),
    lambda m: m.nn.functional.native_channel_shuffle(m.ones(2, 2), 2),
])
def test_errors_are_pytorchs(call):
    with pytest.raises(Exception) as expected:
        call(torch)
    with pytest.raises(expected.type) as found:
        call(flambeau)
    assert str(found.value) == str(expected.value)


def test_singular_matrices_raise_the_error_of_the_extension():
    with pytest.raises(flambeau._C._LinAlgError):
        flambeau.linalg.inv(flambeau.zeros(2, 2))
    assert flambeau._C._LinAlgError is flambeau.linalg.LinAlgError


def test_indices_of_different_dimensions_are_refused_with_both_numbers():
    """PyTorch prints the first number twice."""
    with pytest.raises(RuntimeError, match="got 1 and 2 dimensional"):
        flambeau._convert_indices_from_csr_to_coo(flambeau.tensor([0, 1]), flambeau.tensor([[0]]))


@pytest.mark.parametrize("name", ["elu_", "gelu_", "hardsigmoid_", "hardswish_", "hardtanh_", "leaky_relu_", "mish_",
                                  "relu6_", "silu_"])
def test_activations_in_place_of_the_extension(name):
    results = []
    for m in (flambeau, torch):
        x = m.tensor([-1., 0.5, 7.])
        assert getattr(m._C._nn, name)(x) is x
        results.append(x.tolist())
    assert results[0] == pytest.approx(results[1])


def test_generators_return_themselves_with_their_state():
    for m in (flambeau, torch):
        generator = m.Generator()
        assert generator.set_state(generator.get_state()) is generator
        assert m.functional.F is m.nn.functional


@pytest.mark.parametrize(("change", "equal"), [
    ("x + 0", True), ("x.double()", False), ("x.requires_grad_()", False), ("x[:1]", False), ("x.view(2)", False),
    ("x.to_sparse()", False)])
def test_metadata_is_compared(change, equal):
    for m in (flambeau, torch):
        compare = __import__(f"{m.__name__}._subclasses.meta_utils", fromlist=["x"]).assert_metadata_eq
        different = []
        compare(lambda a, b, found=different: found.append(a) if a != b else None, m.ones(2),
                eval(change, {"x": m.ones(2)}))
        assert (not different) == equal
