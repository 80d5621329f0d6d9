"""Indexing and assignment: results, recorded nodes and errors equal PyTorch's."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import flambeau as torch

try:
    import torch as pytorch
except ImportError:
    pytorch = None

parity = [pytest.mark.parity, pytest.mark.skipif(pytorch is None, reason="PyTorch is not installed")]


# ----- any key ---------------------------------------------------------------------------------

shapes = st.lists(st.integers(0, 4), min_size=0, max_size=4).map(tuple)


@st.composite
def keys(draw: Any, shape: tuple[int, ...], advanced: bool) -> list[tuple[str, Any]]:
    """A key in pieces: (kind, what), which either library's key is built of."""
    pieces: list[tuple[str, Any]] = []
    left = list(shape)
    ellipsis = False
    common = draw(st.integers(1, 3))
    while left and draw(st.booleans()):
        size = left.pop(0)
        kinds = ["slice", "none"] + (["int"] if size else []) + (["array"] if advanced and size else [])
        if advanced:
            kinds.append("mask")
        kind = draw(st.sampled_from(kinds))
        if kind == "none":
            pieces.append(("none", None))
            left.insert(0, size)
            if len(pieces) > 6:
                break
        elif kind == "int":
            pieces.append(("int", draw(st.integers(-size, size - 1))))
        elif kind == "slice":
            bound = st.none() | st.integers(-size - 1, size + 1)
            pieces.append(("slice", slice(draw(bound), draw(bound), draw(st.none() | st.integers(1, 3)))))
        elif kind == "array":
            pieces.append(("array", draw(st.lists(st.integers(-size, size - 1), min_size=common, max_size=common))))
        else:
            chosen = [False] * size
            for i in draw(st.permutations(range(size)))[:common]:
                chosen[i] = True
            if sum(chosen) != common:
                pieces.append(("slice", slice(None)))
            else:
                pieces.append(("mask", chosen))
    if not ellipsis and draw(st.booleans()):
        pieces.append(("ellipsis", None))
    return pieces


def key_for(module: Any, pieces: list[tuple[str, Any]]) -> tuple[Any, ...]:
    make = {"none": lambda _: None, "ellipsis": lambda _: ..., "int": lambda i: i, "slice": lambda s: s,
            "array": lambda a: module.tensor(a), "mask": lambda m: module.tensor(m)}
    return tuple(make[kind](what) for kind, what in pieces)


@st.composite
def shape_and_key(draw: Any, advanced: bool) -> tuple[tuple[int, ...], list[tuple[str, Any]]]:
    shape = draw(shapes)
    return shape, draw(keys(shape, advanced))


def filled(module: Any, shape: tuple[int, ...]) -> Any:
    return module.tensor(np.arange(float(np.prod(shape, dtype=int))).reshape(shape), requires_grad=True)


@pytest.mark.parity
@pytest.mark.skipif(pytorch is None, reason="PyTorch is not installed")
@settings(max_examples=150, deadline=None)
@given(shape_and_key(advanced=True))
def test_any_key_gives_pytorchs_value_strides_and_gradient(case: Any) -> None:
    shape, pieces = case
    results = []
    for module in (torch, pytorch):
        x = filled(module, shape)
        y = x[key_for(module, pieces)]
        g = np.arange(1.0, 1 + y.numel()).reshape(tuple(y.shape))
        (grad,) = module.autograd.grad(y, x, module.tensor(g)) if y.requires_grad else (None,)
        node, names = y.grad_fn, []
        while node is not None:
            names.append(node.name().rpartition("::")[2])
            node = node.next_functions[0][0] if node.next_functions else None
        results.append((y.detach().numpy(), grad.numpy(), y._is_view(), names, y.stride()))
    ours, theirs = results
    np.testing.assert_array_equal(ours[0], theirs[0])
    np.testing.assert_array_equal(ours[1], theirs[1])
    assert ours[2:4] == theirs[2:4]
    if ours[2] and ours[0].size:
        assert ours[4] == theirs[4]


@pytest.mark.parity
@pytest.mark.skipif(pytorch is None, reason="PyTorch is not installed")
@settings(max_examples=100, deadline=None)
@given(shape_and_key(advanced=True), st.booleans(), st.booleans())
def test_any_assignment_is_pytorchs(case: Any, number: bool, recorded: bool) -> None:
    shape, pieces = case
    results = []
    for module in (torch, pytorch):
        x = filled(module, shape)
        target = x * 1 if recorded else x.detach().clone()
        key = key_for(module, pieces)
        part = tuple(target.detach()[key].shape)
        value = 7.5 if number else module.tensor(-np.arange(1.0, 1 + np.prod(part, dtype=int)).reshape(part),
                                                 requires_grad=recorded)
        target[key] = value
        found = [target.detach().numpy()]
        if recorded:
            wanted = [x] if number else [x, value]
            g = module.tensor(np.arange(1.0, 1 + target.numel()).reshape(shape))
            if pieces_repeat(pieces):
                wanted = [x]  # which of two values stays is not said
            found += [h.numpy() for h in module.autograd.grad(target, wanted, g, allow_unused=True) if h is not None]
        results.append((found, target._version))
    (ours, version), (theirs, expected) = results
    assert version == expected
    if pieces_repeat(pieces) and not number:
        ours, theirs = ours[1:], theirs[1:]
    for a, b in zip(ours, theirs, strict=True):
        np.testing.assert_array_equal(a, b)


def pieces_repeat(pieces: list[tuple[str, Any]]) -> bool:
    return any(kind == "array" for kind, _ in pieces)


@settings(max_examples=100, deadline=None)
@given(shape_and_key(advanced=False))
def test_basic_keys_give_views_as_numpy_does(case: Any) -> None:
    shape, pieces = case
    a = np.arange(float(np.prod(shape, dtype=int))).reshape(shape)
    x = torch.from_numpy(a.copy())
    key = key_for(torch, pieces)
    y = x[key]
    np.testing.assert_array_equal(y.numpy(), a[key])
    assert y._base is x
    y.fill_(-1)
    a[key] = -1
    np.testing.assert_array_equal(x.numpy(), a)


# ----- single facts ----------------------------------------------------------------------------

def test_an_index_of_a_matrix_is_a_view_that_writes_through() -> None:
    x = torch.zeros(2, 3)
    row = x[1]
    row[2] = 5.0
    assert x[1, 2].item() == 5.0
    assert row._version == x._version == 1


@pytest.mark.parametrize(("key", "names"), [
    ((0, 1), ["SelectBackward0", "SelectBackward0"]),
    ((slice(None), 1), ["SelectBackward0"]),
    (slice(None), ["SliceBackward0"]),
    (..., ["AliasBackward0"]),
    (None, ["UnsqueezeBackward0"]),
    ((slice(0, 1), slice(1, None)), ["SliceBackward0", "SliceBackward0"]),
    (True, ["IndexBackward0", "UnsqueezeBackward0"]),
    (([0, 1], 0), ["IndexBackward0", "SelectBackward0"]),
    ([0, 1], ["IndexBackward0"]),
])
def test_the_nodes_of_a_key(key: Any, names: list[str]) -> None:
    x = torch.ones(2, 3, requires_grad=True)
    node, found = x[key].grad_fn, []
    while node is not None and "AccumulateGrad" not in node.name():
        found.append(node.name())
        node = node.next_functions[0][0]
    assert found == names


def test_an_index_has_no_edge() -> None:
    x, i = torch.ones(2, 3, requires_grad=True), torch.tensor([0, 1])
    assert len(x[i].grad_fn.next_functions) == 1
    y = x * 1
    y[i] = torch.ones(2, 3, requires_grad=True)
    assert len(y.grad_fn.next_functions) == 2


@pytest.mark.parametrize(("key", "error", "text"), [
    (5, IndexError, "index 5 is out of bounds for dimension 0 with size 2"),
    ((0, 5), IndexError, "index 5 is out of bounds for dimension 1 with size 3"),
    ((0, 0, 0), IndexError, "too many indices for tensor of dimension 2"),
    (slice(None, None, -1), ValueError, "step must be greater than zero"),
    (slice(None, None, 0), ValueError, "slice step cannot be zero"),
    (0.5, IndexError, r"only integers, slices \(`:`\), ellipsis \(`...`\), None and long or byte Variables are valid"),
    ("a", TypeError, "new\\(\\): invalid data type 'str'"),
])
@pytest.mark.filterwarnings("ignore:Using a non-tuple sequence")
def test_invalid_keys(key: Any, error: type, text: str) -> None:
    with pytest.raises(error, match=text):
        torch.ones(2, 3)[key]


def test_masks_and_indices_of_wrong_shape() -> None:
    x = torch.ones(2, 3)
    with pytest.raises(IndexError, match=r"The shape of the mask \[3\] at index 0 does not match the shape of the "
                                         r"indexed "
                                         r"tensor \[2, 3\] at index 0"):
        x[torch.tensor([True, False, True])]
    with pytest.raises(IndexError, match="index 7 is out of bounds for dimension 0 with size 2"):
        x[torch.tensor([7])]
    with pytest.raises(IndexError, match=r"could not be broadcast together with shapes \[2\], \[3\]"):
        x[torch.tensor([0, 1]), torch.tensor([0, 1, 2])]
    with pytest.raises(IndexError, match="tensors used as indices must be long, int, byte or bool tensors"):
        x[torch.tensor([0.0])]
    with pytest.raises(IndexError, match="invalid index of a 0-dim tensor"):
        torch.tensor(1.0)[0]


def test_a_uint8_mask_is_deprecated() -> None:
    with pytest.warns(UserWarning, match="indexing with dtype torch.uint8 is now deprecated"):
        found = torch.arange(3)[torch.tensor([1, 0, 1], dtype=torch.uint8)]
    assert found.tolist() == [0, 2]


def test_a_list_with_slices_counts_as_a_tuple() -> None:
    with pytest.warns(UserWarning, match="Using a non-tuple sequence for multidimensional indexing is deprecated"):
        assert torch.ones(2, 3)[[0, slice(None)]].shape == (3,)


def test_assignment_errors() -> None:
    x = torch.zeros(2, 3)
    with pytest.raises(RuntimeError, match=r"The expanded size of the tensor \(3\) must match the existing size \(5\)"):
        x[0] = torch.ones(5)
    with pytest.raises(RuntimeError, match=r"shape mismatch: value tensor of shape \[5\] cannot be broadcast to "
                                           r"indexing "
                                           r"result of shape \[1, 3\]"):
        x[torch.tensor([0])] = torch.ones(5)
    with pytest.raises(TypeError, match=r"can't assign a list to a torch\.FloatTensor"):
        x[0] = [1, 2, 3]
    with pytest.raises(RuntimeError, match="Index put requires the source and destination dtypes match"):
        x[torch.tensor([0])] = torch.ones(3, dtype=torch.int64)
    with pytest.raises(TypeError, match="Tensor does not support deleting items"):
        del x[0]
    assert not x.any() if hasattr(x, "any") else x.tolist() == [[0.0] * 3] * 2


def test_values_are_broadcast_and_leading_ones_dropped() -> None:
    x = torch.zeros(2, 3)
    x[0] = torch.ones(1, 1, 3)
    x[1] = 2.0
    assert x.tolist() == [[1.0] * 3, [2.0] * 3]


@pytest.mark.parametrize("write", [
    lambda y, i: y.put_(i[0], y[0]), lambda y, i: i.put_(i, i), lambda y, i: y.put_(i, y[:3]),
    lambda y, i: i.index_fill_(0, i[0], 1), lambda y, i: y.index_copy_(0, i[0], y[0]),
    lambda y, i: y.scatter_(0, i[0], y[0]), lambda y, i: i.scatter_add_(0, i[0], i.clone()[0]),
    lambda y, i: y[:1].expand(6).put_(i, y[:3].clone())])
def test_writes_at_indices_from_their_own_memory_raise(write) -> None:
    with pytest.raises(RuntimeError, match="single memory location"):
        write(torch.rand(6), torch.tensor([2, 1, 0]))
    x = torch.zeros(3).index_fill_(0, torch.tensor([2]), torch.ones(()))
    assert x.index_fill_(0, torch.tensor([0]), x[2]).tolist() == [1, 0, 1]


@pytest.mark.filterwarnings("ignore:The reduce argument of torch.scatter with Tensor src is deprecated")
def test_overlapping_assignment_raises() -> None:
    x = torch.arange(5.0)
    for write in (lambda: x.__setitem__(slice(1, None), x[:-1]), lambda: x[1:].copy_(x[:-1]), lambda: x.div_(x[0]),
                  lambda: x.__setitem__(torch.tensor([0]), x[2:3]),
                  lambda: x.index_add_(0, torch.tensor([0]), x[2:3]),
                  lambda: x.scatter_(0, torch.tensor([0, 1]), x[:2], reduce="add"),
                  lambda: x.index_copy_(0, torch.arange(5), x)):
        with pytest.raises(RuntimeError, match="some elements of the input tensor and the written-to tensor refer"):
            write()
    with torch.no_grad(), pytest.raises(RuntimeError, match="refer to a single memory location"):
        x[1:].add_(x[:-1])
    x.index_fill_(0, torch.tensor([1]), x[0])  # a number by then, as below
    x[1:] = x[0]
    x[:] = x
    x.mul_(x.view(5))
    assert x.tolist() == [0.0] * 5


def test_scalars_are_truncated_to_integers() -> None:
    x = torch.zeros(2, dtype=torch.int64)
    x[0] = 1.7
    assert x.tolist() == [1, 0]
    with pytest.raises(RuntimeError, match="value cannot be converted to type int64_t without overflow"):
        x[0] = 1 + 2j


def test_writing_to_an_expanded_tensor() -> None:
    x = torch.ones(1).expand(3)
    with pytest.raises(RuntimeError, match="more than one element of the written-to tensor refers to a single memory"):
        x.copy_(torch.ones(3))
    with pytest.raises(RuntimeError, match="more than one element of the written-to tensor refers to a single memory"):
        x.add_(1)
    with pytest.warns(UserWarning, match="Use of masked_fill_ on expanded tensors is deprecated"):
        x.masked_fill_(torch.tensor([True] * 3), 4)
    assert x.tolist() == [4.0] * 3
    x.fill_(2)
    assert x.tolist() == [2.0] * 3


def test_a_modified_index_is_detected() -> None:
    x, i = torch.ones(3, requires_grad=True), torch.tensor([0, 1])
    y = x[i]
    i += 1
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()


def test_augmented_assignment_through_an_index() -> None:
    x = torch.ones(2, 3, requires_grad=True)
    y = x * 1
    y[0] += 2
    y[torch.tensor([1])] *= 3
    y.sum().backward()
    assert y.tolist() == [[3.0] * 3, [3.0] * 3]
    assert x.grad.tolist() == [[1.0] * 3, [3.0] * 3]


def test_iteration_and_length() -> None:
    x = torch.arange(6.0).view(2, 3)
    assert [row.tolist() for row in x] == [[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]]
    assert len(x) == 2
    with pytest.raises(TypeError, match="iteration over a 0-d tensor"):
        iter(torch.tensor(1.0))
    with pytest.raises(TypeError, match="len\\(\\) of a 0-d tensor"):
        len(torch.tensor(1.0))


def test_basic_indexing_does_not_warn() -> None:
    with warnings.catch_warnings(record=True) as raised:
        warnings.simplefilter("always")
        x = torch.ones(3, 3)
        x[0, :] = 1.0
        x[x > 0] = 2.0
        x[[0, 1]]
    assert not raised
    assert x.tolist() == [[2.0] * 3] * 3


@pytest.mark.parity
@pytest.mark.skipif(pytorch is None, reason="PyTorch is not installed")
@pytest.mark.parametrize("shape", [(3, 4), (40, 60), (7, 1, 5), (0, 4), (6,)])
@pytest.mark.parametrize("layout", ["contiguous", "transposed", "strided"])
def test_masks_in_every_layout(shape, layout):
    array = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
    found = []
    for lib in (torch, pytorch):
        x = lib.from_numpy(array.copy())
        x = x.t() if layout == "transposed" and x.dim() == 2 else x[..., ::2] if layout == "strided" else x
        mask = x > 0
        written = x.clone()
        written[mask] = -1.5
        in_place = x * 2
        in_place[mask] = 3
        leaf = x.clone().requires_grad_()
        leaf[mask].square().sum().backward()
        places = mask.nonzero()
        found.append([x[mask], x.masked_select(mask), written, in_place, leaf.grad, places,
                      *mask.nonzero(as_tuple=True)])
        found.append([places.stride() if len(places) else (), x[mask].stride()])
    ours, our_strides, theirs, their_strides = found
    assert our_strides == their_strides
    for a, b in zip(ours, theirs, strict=True):
        np.testing.assert_array_equal(a.numpy(), b.numpy())


def test_an_index_tensor_out_of_bounds_writes_nothing():
    x = torch.zeros(3)
    with pytest.raises(IndexError, match="index 5 is out of bounds for dimension 0 with size 3"):
        x[torch.tensor([0, 5])] = 1.0
    assert x.tolist() == [0, 0, 0]
    assert x._version == 0
