"""Views: shapes and strides as PyTorch's, memory shared, writes seen by all and by autograd."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import flambeau as torch
from flambeau.autograd import forward_ad

try:
    import torch as pytorch
except ImportError:
    pytorch = None

needs_pytorch = pytest.mark.skipif(pytorch is None, reason="PyTorch is not installed")

shapes = st.lists(st.integers(0, 4), min_size=0, max_size=4).map(tuple)
Step = tuple[str, tuple[Any, ...]]


@st.composite
def steps(draw: Any, shape: tuple[int, ...]) -> list[Step]:
    """Views one after the other that fit a shape, worked out on NumPy's side."""
    found: list[Step] = []
    x = np.empty(shape)
    for _ in range(draw(st.integers(1, 4))):
        n = x.ndim
        dims = st.integers(-n, n - 1) if n else st.just(0)
        name = draw(st.sampled_from(["transpose", "unsqueeze", "squeeze", "narrow", "select", "permute", "expand",
                                     "diagonal", "unfold"]))
        if name == "transpose" and n:
            args: tuple[Any, ...] = (draw(dims), draw(dims))
            x = np.swapaxes(x, *args)
        elif name == "unsqueeze":
            args = (draw(st.integers(-n - 1, n)),)
            x = np.expand_dims(x, args[0])
        elif name == "squeeze" and n:
            args = (draw(dims),)
            x = np.squeeze(x, args[0]) if x.shape[args[0]] == 1 else x
        elif name == "narrow" and n:
            d = draw(dims)
            start = draw(st.integers(0, x.shape[d]))
            args = (d, start, draw(st.integers(0, x.shape[d] - start)))
            x = np.take(x, range(start, start + args[2]), d)
        elif name == "select" and n and 0 not in x.shape:
            d = draw(dims)
            args = (d, draw(st.integers(-x.shape[d], x.shape[d] - 1)))
            x = np.take(x, args[1], d)
        elif name == "permute":
            args = (tuple(draw(st.permutations(range(n)))),)
            x = np.transpose(x, args[0])
        elif name == "expand":
            sizes = tuple(3 if s == 1 and draw(st.booleans()) else s for s in x.shape)
            args = ((2, *sizes),) if draw(st.booleans()) else (sizes,)
            x = np.broadcast_to(x, args[0])
        elif name == "diagonal" and n >= 2:
            args = (draw(st.integers(-2, 2)),)
            x = np.diagonal(x, args[0])
        elif name == "unfold" and n and x.shape[0] >= 2:
            args = (0, 2, draw(st.integers(1, 2)))
            x = np.moveaxis(np.lib.stride_tricks.sliding_window_view(x, 2, 0)[:: args[2]], 0, 0)
        else:
            continue
        found.append((name, args))
    return found


@st.composite
def shape_and_steps(draw: Any) -> tuple[tuple[int, ...], list[Step]]:
    shape = draw(shapes)
    return shape, draw(steps(shape))


def run(x: Any, names: list[Step]) -> Any:
    for name, args in names:
        x = getattr(x, name)(*args)
    return x


def filled(module: Any, shape: tuple[int, ...]) -> Any:
    return module.tensor(np.arange(float(np.prod(shape, dtype=int))).reshape(shape), requires_grad=True)


@pytest.mark.parity
@needs_pytorch
@settings(max_examples=150, deadline=None)
@given(shape_and_steps())
def test_any_chain_of_views_is_pytorchs(case: Any) -> None:
    shape, names = case
    results = []
    for module in (torch, pytorch):
        x = filled(module, shape)
        y = run(x, names)
        g = np.arange(1.0, 1 + y.numel()).reshape(tuple(y.shape))
        (grad,) = module.autograd.grad(y, x, module.tensor(g)) if names else (x,)
        # of an empty array both libraries' strides are NumPy's, which has none
        results.append((y.detach().numpy().copy(), grad.detach().numpy(), y.stride() if y.numel() else None,
                        y.is_contiguous(),
                        y.storage_offset() if y.numel() else None,
                        None if y.grad_fn is None else y.grad_fn.name()))
    ours, theirs = results
    np.testing.assert_array_equal(ours[0], theirs[0])
    np.testing.assert_array_equal(ours[1], theirs[1])
    assert ours[2:] == theirs[2:]


@pytest.mark.parity
@needs_pytorch
@settings(max_examples=100, deadline=None)
@given(shape_and_steps(), st.data())
def test_reshape_views_or_copies_as_pytorch_does(case: Any, data: Any) -> None:
    shape, names = case
    ours, theirs = run(filled(torch, shape), names), run(filled(pytorch, shape), names)
    count = ours.numel()
    divisors = [d for d in range(1, count + 1) if count % d == 0] or [1]
    d = data.draw(st.sampled_from(divisors))
    target = (d, count // d) if count else (0, 2)
    a, b = ours.reshape(target), theirs.reshape(target)
    np.testing.assert_array_equal(a.detach().numpy(), b.detach().numpy())
    assert not count or a.stride() == b.stride()
    assert (a.data_ptr() == ours.data_ptr()) == (b.data_ptr() == theirs.data_ptr())
    assert (a.grad_fn and a.grad_fn.name()) == (b.grad_fn and b.grad_fn.name())
    viewed = []
    for x in (ours, theirs):
        try:
            viewed.append(x.view(target).stride())
        except RuntimeError as error:
            viewed.append(str(error))
    assert not count or viewed[0] == viewed[1]


@pytest.mark.parity
@needs_pytorch
@settings(max_examples=100, deadline=None)
@given(shape_and_steps(), st.booleans())
def test_writes_through_any_view_reach_the_gradient(case: Any, again: bool) -> None:
    shape, names = case
    names = [(name, args) for name, args in names if name not in ("expand", "unfold")]
    try:
        run(np_like(shape), names)
    except Exception:
        return  # the chain needed what was left out
    results = []
    for module in (torch, pytorch):
        x = filled(module, shape)
        base = x * 2
        view = run(base, names)
        other = run(base, names[:1])
        view.mul_(3)
        if again:
            other.add_(base.detach().sum())
        out = (base * base).sum() + (view * 5).sum()
        out.backward()
        results.append((base.detach().numpy(), x.grad.numpy(), base._version))
    for a, b in zip(*results, strict=True):
        np.testing.assert_allclose(a, b)


def np_like(shape: tuple[int, ...]) -> Any:
    return torch.zeros(shape) if shape else torch.tensor(0.0)


@settings(max_examples=60, deadline=None)
@given(shape_and_steps())
def test_the_tangent_of_a_view_is_the_view_of_the_tangent(case: Any) -> None:
    shape, names = case
    with forward_ad.dual_level():
        t = filled(torch, shape).detach() + 1
        y = run(forward_ad.make_dual(torch.zeros(shape, dtype=torch.float64), t), names)
        tangent = forward_ad.unpack_dual(y).tangent
        np.testing.assert_array_equal(tangent.numpy(), run(t, names).numpy())


# ----- single facts ----------------------------------------------------------------------------

def test_a_view_of_a_view_has_the_first_as_base() -> None:
    x = torch.zeros(2, 3)
    y = x.t()[1:]
    assert y._base is x
    assert y._is_view()


@pytest.mark.parametrize("views", [lambda x: x.unbind(), lambda x: x.split(1), lambda x: x.chunk(2),
                                   lambda x: x.split([1, 1])])
def test_one_of_many_views_may_not_be_written_to(views: Callable[[Any], Any]) -> None:
    x = torch.ones(2, 3, requires_grad=True) * 1
    first = views(x)[0]
    with pytest.raises(RuntimeError, match="This view is the output of a function that returns multiple views"):
        first.add_(1)
    with torch.no_grad():
        views(torch.ones(2, 3))[0].add_(1)


def test_output_numbers_of_many_views() -> None:
    parts = torch.ones(3, 2, requires_grad=True).unbind()
    assert [p.output_nr for p in parts] == [0, 1, 2]
    assert len({id(p.grad_fn) for p in parts}) == 1
    (gradient,) = torch.autograd.grad(parts[1].sum(), [parts[0]._base])
    assert gradient.tolist() == [[0.0, 0.0], [1.0, 1.0], [0.0, 0.0]]


@pytest.mark.parametrize(("name", "args", "node"), [
    ("t_", (), "TBackward1"), ("transpose_", (0, 1), "TransposeBackward1"), ("unsqueeze_", (0,), "UnsqueezeBackward1"),
    ("squeeze_", (), "SqueezeBackward3"), ("squeeze_", (0,), "SqueezeBackward4"),
    ("as_strided_", ((2, 2), (1, 1)), "AsStridedBackward1")])
def test_views_in_place(name: str, args: tuple[Any, ...], node: str) -> None:
    x = torch.ones(2, 3, requires_grad=True)
    y = x * 2
    result = getattr(y, name)(*args)
    assert result is y
    assert y.grad_fn.name() == node
    y.sum().backward()
    assert x.grad.shape == x.shape


def test_errors() -> None:
    x = torch.ones(2, 3)
    with pytest.raises(RuntimeError, match=r"shape '\[4\]' is invalid for input of size 6"):
        x.view(4)
    with pytest.raises(RuntimeError, match="view size is not compatible with input tensor's size and stride"):
        x.t().view(6)
    with pytest.raises(IndexError, match=r"Dimension out of range \(expected to be in range of \[-2, 1\], but got 2\)"):
        x.transpose(0, 2)
    with pytest.raises(RuntimeError, match=r"t\(\) expects a tensor with <= 2 dimensions, but self is 3D"):
        torch.ones(1, 1, 1).t()
    with pytest.raises(RuntimeError, match=r"start \(1\) \+ length \(2\) exceeds dimension size \(2\)"):
        x.narrow(0, 1, 2)
    with pytest.raises(RuntimeError, match="The expanded size of the tensor"):
        x.expand(4, 3)
    with pytest.raises(RuntimeError, match="setStorage: sizes"):
        x.as_strided((4, 4), (1, 1), 5)
    with pytest.raises(RuntimeError, match=r"Sizes of tensors must match except in dimension 0\. Expected size 3 but "
                                           r"got size 2 for tensor number 1 in the list\."):
        torch.cat([x, torch.ones(2, 2)])
    with pytest.raises(RuntimeError, match=r"stack expects each tensor to be equal size, but got \[2, 3\] at entry 0"):
        torch.stack([x, torch.ones(2, 2)])
    for dim, other in ((0, torch.tensor(1.)), (1, torch.ones(2)), (-1, torch.ones(2))):
        with pytest.raises(RuntimeError, match=r"stack expects each tensor to be equal size, but got \[2, 3\] at"):
            torch.stack([x, other], dim)


def test_the_shape_of_T_of_a_batch_is_deprecated(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("flambeau.warning_location.given", set())  # it warns once in a process
    with pytest.warns(UserWarning, match="The use of `x.T` on tensors of dimension other than 2"):
        assert torch.ones(2, 3, 4).T.shape == (4, 3, 2)


def test_as_strided_reaches_the_storage_behind_a_view() -> None:
    x = torch.arange(6.0)
    part = x[2:4]
    assert part.as_strided((3,), (1,), 0).tolist() == [0.0, 1.0, 2.0]
    assert part.as_strided((2,), (2,)).tolist() == [2.0, 4.0]
    assert part.storage_offset() == 2
    y = torch.arange(6.0, requires_grad=True)
    y[2:4].as_strided((2,), (1,)).sum().backward()
    assert y.grad.tolist() == [0.0, 0.0, 1.0, 1.0, 0.0, 0.0]


def test_views_of_other_dtypes() -> None:
    x = torch.tensor([1.0, -1.0])
    bits = x.view(torch.int32)
    assert bits.tolist() == [0x3F800000, 0xBF800000 - 2**32]
    bits[0] = 0x40000000
    assert x[0].item() == 2.0
    assert x.view(torch.uint8).shape == (8,)
    with pytest.raises(RuntimeError, match=r"self.size\(-1\) must be divisible by 4"):
        torch.zeros(3, dtype=torch.uint8).view(torch.float32)


def test_unbind_along_an_empty_dimension_has_no_results():
    x = torch.zeros(0, 3, requires_grad=True)
    assert x.unbind(0) == ()
    assert list(x) == []


@pytest.mark.parity
def test_slice_inverse_has_a_gradient_for_both_tensors():
    pytorch = pytest.importorskip("torch")
    found = []
    for t in (pytorch, torch):
        base = t.zeros(4, 4, requires_grad=True)
        whole = base.clone()
        part = whole[::2]
        result = t.slice_inverse(part, whole, 0, 0, 4, 2)
        gradients = t.autograd.grad((result * t.arange(16.0).reshape(4, 4)).sum(), [whole, part])
        found.append((type(result.grad_fn).__name__, [g.tolist() for g in gradients]))
    assert found[1] == found[0]
