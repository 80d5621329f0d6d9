"""Making tensors: dtypes inferred, shapes checked, memory shared or not, as PyTorch does."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import flambeau as torch
from flambeau import warning_location

try:
    import torch as pytorch
except ImportError:
    pytorch = None

needs_pytorch = pytest.mark.skipif(pytorch is None, reason="PyTorch is not installed")


@pytest.mark.parametrize(("data", "dtype"), [
    ([1, 2], "int64"), ([1, 2.0], "float32"), ([True, False], "bool"), ([True, 2], "int64"), ([1, 2j], "complex64"),
    ([], "float32"), ([[], []], "float32"), (np.float64(1), "float64"), ([np.float64(1)], "float64"),
    (np.ones(2, np.int16), "int16"), (3, "int64"), (True, "bool"), (range(3), "int64"), (((1, 2), (3, 4)), "int64")])
def test_inferred_dtypes(data: Any, dtype: str) -> None:
    assert torch.tensor(data).dtype.name == dtype


@pytest.mark.parametrize(("data", "kwargs", "error", "text"), [
    ([[1, 2], [3]], {}, ValueError, r"expected sequence of length 2 at dim 1 \(got 1\)"),
    ([[1], 2], {}, TypeError, "not a sequence"),
    ([1, [2]], {}, TypeError, "'list' object cannot be interpreted as an integer"),
    ("a", {}, TypeError, "invalid data type 'str'"),
    (["a"], {}, ValueError, "too many dimensions 'str'"),
    (None, {}, RuntimeError, "Could not infer dtype of NoneType"),
    ({}, {}, RuntimeError, "Could not infer dtype of dict"),
    (2**63, {}, ValueError, "Overflow when unpacking long long"),
    ([300], {"dtype": torch.uint8}, RuntimeError, "value cannot be converted to type uint8 without overflow"),
    (math.nan, {"dtype": torch.int32}, RuntimeError, "value cannot be converted to type int32 without overflow"),
    (1j, {"dtype": torch.float32}, TypeError, "must be real number, not complex"),
    ([1], {"requires_grad": True}, RuntimeError, "Only Tensors of floating point and complex dtype can"),
])
def test_invalid_data(data: Any, kwargs: dict[str, Any], error: type, text: str) -> None:
    with pytest.raises(error, match=text):
        torch.tensor(data, **kwargs)


@pytest.mark.filterwarnings("ignore:Creating a tensor from a list of numpy.ndarrays")
def test_lists_of_tensors_and_arrays() -> None:
    assert torch.tensor([torch.tensor(1), torch.tensor(2.0)]).tolist() == [1.0, 2.0]
    assert torch.tensor([np.array([1, 2]), np.array([3, 4])]).tolist() == [[1, 2], [3, 4]]
    with pytest.raises(ValueError, match="only one element tensors can be converted to Python scalars"):
        torch.tensor([torch.ones(2), torch.ones(2)])
    with pytest.warns(UserWarning, match="To copy construct from a tensor"):
        torch.tensor(torch.ones(2))


@pytest.mark.parametrize(("data", "result"), [
    ([[1], {2}], [[1.0], [2.0]]), ([[1], {2: 3}], [[1.0], [2.0]]), ([[1], iter([2])], [[1.0], [2.0]]),
    ((np.zeros(4), {}), "ValueError: expected sequence of length 4 at dim 1 (got 0)"),
    ([[1], None], "TypeError: not a sequence"), ([[1], 2], "TypeError: not a sequence"),
    ([[1.0], np.zeros(())], "TypeError: not a sequence"), ([np.zeros(())], "TypeError: len() of unsized object")])
def test_rows_after_the_first_may_be_any_iterable(data: Any, result: Any) -> None:
    if isinstance(result, str):
        with pytest.raises((TypeError, ValueError)) as raised:
            torch.FloatTensor(data)
        assert f"{raised.type.__name__}: {raised.value}" == result
    else:
        assert torch.FloatTensor(data).tolist() == result


@pytest.mark.parametrize("row", [None, {}, set()])
def test_rows_without_a_dtype(row: Any) -> None:
    with pytest.raises(RuntimeError, match=f"Could not infer dtype of {type(row).__name__}"):
        torch.tensor([[1], row])


def test_integer_tensors_refuse_floats_of_numpy() -> None:
    assert torch.IntTensor([np.float64(1.5)]).tolist() == [1]  # numpy.float64 is Python's float
    with pytest.raises(TypeError, match=r"'numpy.float32' object cannot be interpreted as an integer"):
        torch.IntTensor([np.float32(1)])
    with pytest.raises(TypeError, match="only integer scalar arrays can be converted to a scalar index"):
        torch.IntTensor([1, np.zeros(())])


@pytest.mark.parametrize("data", [[[1.0], np.zeros(1)], (np.zeros(2),), [1.0, np.zeros(())], [[np.zeros(2)]]])
def test_lists_of_arrays_are_warned_of_once(data: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(warning_location, "given", set())
    with pytest.warns(UserWarning, match="list of numpy.ndarrays is extremely slow") as warned:
        [torch.tensor(data), torch.tensor(data)]
    assert len(warned) == 1


def test_sizes() -> None:
    assert torch.zeros(2, 3).shape == torch.zeros((2, 3)).shape == torch.zeros([2, 3]).shape == (2, 3)
    assert torch.zeros(()).shape == ()
    for call, error, text in [
        (lambda: torch.zeros(2, -1), RuntimeError, "zeros: Dimension size must be non-negative."),
        (lambda: torch.zeros("a"), TypeError, "must be tuple of ints, not str"),
        (lambda: torch.zeros(2.5), TypeError, "must be tuple of ints, not float"),
        (lambda: torch.zeros(), TypeError, "missing 1 required positional arguments"),
        (lambda: torch.ones(-1), RuntimeError, r"Trying to create tensor with negative dimension -1: \[-1\]"),
    ]:
        with pytest.raises(error, match=text):
            call()


def test_constants_and_like_functions() -> None:
    x = torch.ones(2, 3, dtype=torch.float64).t()
    assert torch.zeros_like(x).stride() == x.stride() == (1, 3)
    assert torch.full((2,), True).dtype is torch.bool
    assert torch.full((2,), 1j).dtype is torch.complex64
    assert torch.full_like(x, 3).dtype is torch.float64
    assert x.new_zeros(2).dtype is x.new_tensor([1]).dtype is torch.float64
    assert x.new_full((2,), 7).tolist() == [7.0, 7.0]
    assert torch.ones(2, dtype=torch.bfloat16).tolist() == [1.0, 1.0]
    out = torch.empty(0)
    assert torch.ones(3, out=out) is out
    assert out.tolist() == [1.0] * 3


def test_sequences() -> None:
    assert torch.arange(0, 1, 0.3).tolist() == pytest.approx([0, 0.3, 0.6, 0.9])
    assert torch.arange(5, 0, -2).tolist() == [5, 3, 1]
    assert torch.arange(3.0).dtype is torch.float32
    assert torch.eye(2, 3).tolist() == [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]
    assert torch.linspace(0, 10, 4, dtype=torch.int64).tolist() == [0, 3, 6, 10]
    with pytest.warns(UserWarning, match="torch.range is deprecated"):
        assert torch.range(0, 3).tolist() == [0.0, 1.0, 2.0, 3.0]
    for call, text in [(lambda: torch.arange(0, 5, -1), "upper bound and lower bound inconsistent with step sign"),
                       (lambda: torch.arange(0, 1, 0), "step must be nonzero"),
                       (lambda: torch.arange(math.inf), "unsupported range: 0 -> inf"),
                       (lambda: torch.linspace(0, 1, -1), "number of steps must be non-negative")]:
        with pytest.raises(RuntimeError, match=text):
            call()


@pytest.mark.parity
@needs_pytorch
@settings(max_examples=200, deadline=None)
@given(st.floats(-1e3, 1e3), st.floats(-1e3, 1e3), st.integers(0, 50), st.sampled_from(["float32", "float64"]))
def test_linspace_is_pytorchs_to_rounding(start: float, end: float, steps: int, dtype: str) -> None:
    ours = torch.linspace(start, end, steps, dtype=getattr(torch, dtype)).numpy()
    theirs = pytorch.linspace(start, end, steps, dtype=getattr(pytorch, dtype)).numpy()
    np.testing.assert_allclose(ours, theirs, rtol=1e-6 if dtype == "float32" else 1e-14, atol=1e-4 if dtype == "float32"
                               else 1e-12)


@pytest.mark.parity
@needs_pytorch
@settings(max_examples=100, deadline=None)
@given(st.integers(-50, 50), st.integers(-50, 50), st.integers(-7, 7) | st.floats(0.25, 3) | st.floats(-3, -0.25))
def test_arange_is_pytorchs(start: int, end: int, step: float) -> None:
    found = []
    for module in (torch, pytorch):
        try:
            x = module.arange(start, end, step)
            found.append((x.numpy(), str(x.dtype).rpartition(".")[2]))
        except RuntimeError as error:
            found.append((np.zeros(0), str(error)))
    assert found[0][1] == found[1][1]
    np.testing.assert_allclose(found[0][0], found[1][0], rtol=1e-6, atol=1e-5)


def test_sharing_memory() -> None:
    a = np.zeros(2, np.float32)
    assert torch.as_tensor(a).data_ptr() == torch.asarray(a).data_ptr() == torch.from_numpy(a).data_ptr()
    x = torch.ones(2)
    assert torch.as_tensor(x) is x
    assert torch.asarray(x, copy=True).data_ptr() != x.data_ptr()
    b = bytearray(b"\x01\x02\x03\x04")
    y = torch.frombuffer(b, dtype=torch.uint8, offset=1, count=2)
    y[0] = 9
    assert b[1] == 9
    with pytest.raises(ValueError, match="must be a multiple of element size"):
        torch.frombuffer(bytearray(3), dtype=torch.int16)
    with pytest.raises(ValueError, match="can't alias arbitrary sequence into a tensor"):
        torch.asarray([1], copy=False)


def test_explicit_strides() -> None:
    assert torch.empty_strided((2, 3), (1, 2)).stride() == (1, 2)
    assert torch.empty_permuted((2, 3, 4), (2, 0, 1)).stride() == (3, 1, 6)
    assert torch.scalar_tensor(2).dtype is torch.float32


def test_typed_constructors() -> None:
    assert torch.FloatTensor(2, 3).shape == (2, 3)
    assert torch.FloatTensor([1, 2]).tolist() == [1.0, 2.0]
    assert torch.LongTensor([1.5]).tolist() == [1]
    assert torch.Tensor([1, 2]).dtype is torch.float32
    assert torch.Tensor(2, 3).shape == (2, 3)
    assert torch.FloatTensor.dtype is torch.float32
    with pytest.raises(TypeError, match=r"new\(\): data must be a sequence \(got float\)"):
        torch.Tensor(2.5)
    with pytest.raises(TypeError, match="expected TensorOptions"):
        torch.FloatTensor(torch.ones(2).double())


def test_the_default_dtype_is_used() -> None:
    torch.set_default_dtype(torch.float64)
    try:
        assert torch.ones(1).dtype is torch.tensor(1.0).dtype is torch.float64
        assert torch.tensor(1j).dtype is torch.complex128
    finally:
        torch.set_default_dtype(torch.float32)


@pytest.mark.parametrize("name", ["zeros", "ones", "empty", "rand", "randn"])
def test_sizes_by_name(name):
    make = getattr(torch, name)
    assert make(size=(2, 3)).shape == (2, 3)
    assert make(size=torch.Size([4]), dtype=torch.float64).dtype == torch.float64
    with pytest.raises(TypeError, match="size"):
        make()
    with pytest.raises(TypeError):
        make(2, size=(3,))
    if name in ("zeros", "ones", "empty"):
        with pytest.raises(TypeError, match="must be tuple of ints, not int"):
            make(size=3)


def test_sizes_are_added_to_tuples_alone() -> None:
    size, more = torch.Size([1, 2]), (3,)
    assert type(size + more) is type(more + size) is torch.Size
    assert (size + np.array([1, 1])).tolist() == [2, 3]
    for other in ([3], 3, "3", torch.ones(1)):
        with pytest.raises(TypeError, match=rf"^can only concatenate tuple \(not {type(other).__name__}\) to torch"):
            size + other


def test_randint_like_takes_its_bound_by_name() -> None:
    x, draws = torch.ones(4), []
    for draw in (lambda: torch.randint_like(x, high=9), lambda: torch.randint_like(x, 9),
                 lambda: torch.randint_like(x, low=0, high=9)):
        torch.manual_seed(0)
        draws.append(draw().tolist())
    assert draws[0] == draws[1] == draws[2]
    with pytest.raises(TypeError):
        torch.randint_like(x)


@needs_pytorch
@pytest.mark.parametrize("call", [
    lambda t, x: x.new(x, device="cpu"),
    lambda t, x: x.new(x, device="cuda"),
    lambda t, x: x.new(device="cuda"),
    lambda t, x: x.new((2.0, 3.0), device="cuda"),
    lambda t, x: t.Tensor(x, device="cpu"),
])
def test_legacy_constructors_refuse_devices_as_pytorch_does(call):
    errors = []
    for t in (pytorch, torch):
        with pytest.raises(RuntimeError) as caught:
            call(t, t.tensor([1]))
        errors.append(str(caught.value))
    assert errors[1] == errors[0]


def test_full_of_a_complex_number_is_complex64_also_where_float16_is_the_default():
    torch.set_default_dtype(torch.float16)
    try:
        assert torch.full((1,), 1 + 1j).dtype is torch.complex64
    finally:
        torch.set_default_dtype(torch.float32)
