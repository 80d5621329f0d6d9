"""Meta tensors: the metadata of results is inferred, and is that of results on elements."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

import flambeau as torch
from flambeau._tensor.meta import reserved
from flambeau._tensor.shape.inference import elementwise_strides
from tests.ops.spec import RECORDS, Make, load, public

load()
Tensor = torch.Tensor

#: the shape of the result depends on elements, or the function reads elements
_READS = frozenset(("argwhere", "bincount", "masked_select", "nonzero", "unique", "unique_consecutive", "histc",
                    "histogram", "Tensor.masked_select", "Tensor.nonzero", "nn.functional.ctc_loss", "linalg.lstsq",
                    "combinations", "istft", "segment_reduce", "lu_unpack", "equal", "allclose"))


def _leaves(value: Any) -> list[Any]:
    if isinstance(value, Tensor):
        return [value]
    return [x for item in value for x in _leaves(item)] if isinstance(value, (list, tuple)) else []


def _on_meta(value: Any) -> Any:
    if isinstance(value, Tensor):
        return value.to("meta")
    return type(value)(_on_meta(x) for x in value) if isinstance(value, (list, tuple)) else value


@pytest.mark.parametrize("name", sorted(RECORDS.keys() - _READS))
def test_results_have_the_metadata_of_results_on_elements(name: str) -> None:
    """Shape, dtype, and strides of results that are row-major."""
    for sample in RECORDS[name].samples(Make(torch, torch.float64 if RECORDS[name].floats else torch.int64)):
        with warnings.catch_warnings(action="ignore"):
            real = _leaves(public(torch, name)(*sample.args, **sample.kwargs))
            meta = _leaves(public(torch, name)(*_on_meta(sample.args), **{
                key: _on_meta(value) for key, value in sample.kwargs.items()}))
        assert [(x.shape, x.dtype) for x in meta] == [(x.shape, x.dtype) for x in real]
        for x, y in zip(meta, real, strict=True):
            assert x.is_meta
            assert x.is_contiguous() == y.is_contiguous()


def test_no_memory_is_needed() -> None:
    """Operators on 10^12 elements."""
    x = torch.empty(10**12, device="meta")
    assert (x + 1).shape == (10**12,)
    assert (x.view(10**6, 10**6) @ torch.empty(10**6, 3, device="meta")).shape == (10**6, 3)
    assert torch.softmax(x, 0).sum().shape == ()
    assert x[5:].storage_offset() == 5
    with torch.device("meta"):
        layer = torch.nn.Linear(100_000, 100_000)
    out = layer(torch.empty(2, 100_000, device="meta"))
    out.sum().backward()
    assert layer.weight.grad is not None
    assert layer.weight.grad.shape == (100_000, 100_000)


def test_meta_tensors_draw_no_random_numbers() -> None:
    """The generator's state does not change."""
    torch.manual_seed(0)
    for make in (torch.rand, torch.randn, torch.randperm):
        make(3, device="meta")
    torch.randint(3, (2,), device="meta")
    torch.nn.init.normal_(torch.empty(3, device="meta"))
    drawn = torch.rand(2)
    torch.manual_seed(0)
    assert torch.equal(drawn, torch.rand(2))


def test_errors_are_those_of_shapes_and_dtypes() -> None:
    """Broadcasting, writes in place and operators whose results depend on elements."""
    x = torch.empty(2, 3, device="meta")
    with pytest.raises(RuntimeError, match="must match the size of tensor b"):
        x + torch.empty(2, 2, device="meta")
    with pytest.raises(RuntimeError, match="doesn't match the broadcast shape"):
        x.add_(torch.empty(4, 2, 3, device="meta"))
    with pytest.raises(RuntimeError, match="can't be cast to the desired output type Long"):
        x.long().add_(x)
    with pytest.raises(NotImplementedError, match="a correct data-independent implementation does not exist"):
        x.nonzero()


@pytest.mark.parity
@pytest.mark.parametrize("strides", [((12, 4, 1), (12, 4, 1)), ((1, 2, 6), (1, 2, 6)), ((1, 2, 6), (12, 4, 1)),
                                     ((4, 8, 1), (0, 4, 1)), ((12, 1, 3), (0, 0, 1))])
def test_strides_of_elementwise_results(strides: Any) -> None:
    """The order of dimensions in memory is PyTorch's."""
    pytorch = pytest.importorskip("torch")
    shape = (2, 3, 4)
    arrays = [reserved(shape, np.dtype(np.float32), each) for each in strides]
    found = elementwise_strides(shape, arrays)
    a, b = (pytorch.empty_strided(shape, each, device="meta") for each in strides)
    expected = (a + b).stride()
    assert (found or (12, 4, 1)) == expected
