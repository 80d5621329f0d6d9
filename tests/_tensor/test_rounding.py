"""Rounding of scalar operands of narrow floats, of linspace and of conversions, as in PyTorch."""

from __future__ import annotations

import warnings

import pytest

import flambeau as torch

NARROW = [torch.float16, torch.bfloat16]


@pytest.mark.parametrize("dtype", NARROW)
@pytest.mark.parametrize("operation", [
    lambda x, y: x + y, lambda x, y: x - y, lambda x, y: y - x, lambda x, y: x % y, lambda x, y: x ** y,
    lambda x, y: y ** x, lambda x, y: x > y, lambda x, y: x == y, torch.fmod])
def test_scalars_are_rounded_to_the_narrow_dtype(dtype, operation):
    x = torch.tensor([0.1, 18.12, 0.0317], dtype=dtype)
    for number in (0.1, 21.3296, 1.9931):
        rounded = torch.tensor(number, dtype=dtype).item()
        assert torch.equal(operation(x, number), operation(x, rounded))


def test_comparison_with_the_stored_scalar_holds():
    assert (torch.tensor([0.1], dtype=torch.float16) == 0.1).item()


@pytest.mark.parametrize("dtype", NARROW)
def test_scalar_factors_and_divisors_are_not_rounded(dtype):
    x = torch.tensor([3.0, 5.0, 7.0], dtype=dtype)
    exact = torch.tensor([3.0, 5.0, 7.0])
    assert torch.equal(x * 1.00390625001, (exact * 1.00390625001).to(dtype))
    assert torch.equal(x / 1.00390625001, (exact / 1.00390625001).to(dtype))


def test_linspace_rounds_each_point_once():
    assert torch.linspace(0, 1, 4, dtype=torch.float16).tolist() == [0.0, 0.333251953125, 0.6669921875, 1.0]
    assert torch.linspace(-1.0525774255103748, -2.2814725151147264, 13)[5].item() == -1.5646170377731323


def test_out_of_range_floats_convert_to_integers_as_the_processor_does():
    x = torch.tensor([1e10, -1e10, float("nan"), 70000.0, -1.5])
    assert x.int().tolist() == [-2**31, -2**31, -2**31, 70000, -1]
    assert x.to(torch.int16).tolist() == [0, 0, 0, 4464, -1]
    assert x.to(torch.uint8).tolist() == [0, 0, 0, 112, 255]


def test_overflowing_conversions_are_infinite_without_a_warning():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert torch.tensor(1e300).item() == float("inf")
        assert torch.tensor([1e6], dtype=torch.float16).item() == float("inf")
        assert torch.tensor(1e6).half().item() == float("inf")
        assert torch.tensor(1e6).bfloat16().half().item() == float("inf")
        assert (torch.ones(1, dtype=torch.float16) + 1e6).item() == float("inf")
        torch.tensor([float("nan")]).long()


def test_the_last_sizes_that_differ_are_named():
    with pytest.raises(RuntimeError, match=r"tensor a \(3\) must match the size of tensor b \(2\) at non-singleton "
                                           "dimension 1"):
        torch.ones(2, 3) * torch.ones(3, 2)


def test_integers_have_the_kernel_of_their_dimension_in_the_message():
    x = torch.ones(2, 2, dtype=torch.int64)
    for dim, kernel in ((0, "softmax_kernel"), (1, "softmax_lastdim_kernel"), (-1, "softmax_lastdim_kernel")):
        with pytest.raises(NotImplementedError, match=f'"{kernel}_impl" not implemented for \'Long\''):
            x.softmax(dim)


@pytest.mark.filterwarnings("ignore:Setting the shape:DeprecationWarning")  # NumPy 2.5's
def test_the_shape_of_the_array_that_numpy_gives_is_the_callers():
    x = torch.arange(6)
    x.numpy().shape = 2, 3
    assert x.shape == (6,)


def test_casting_complex_numbers_points_to_the_caller():
    for cast in (lambda x: x.float(), lambda x: x.to(torch.float64)):
        with pytest.warns(UserWarning, match="discards the imaginary part") as caught:
            cast(torch.tensor([1j]))
        assert {w.filename for w in caught} == {__file__}
