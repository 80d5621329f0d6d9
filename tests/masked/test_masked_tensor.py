"""Masked tensors compared with PyTorch: values, prints, graphs, gradients, warnings and errors of programs of one line.

Where PyTorch lacks the derivative of an operator of masked tensors, flambeau may have it.
"""

from __future__ import annotations

import warnings
from importlib import import_module
from typing import Any

import pytest

import flambeau

pytorch = pytest.importorskip("torch")
pytestmark = [pytest.mark.parity, pytest.mark.filterwarnings("ignore::UserWarning")]

CREATION = """
masked_tensor(d, m)
masked_tensor(d, m, True).requires_grad
masked_tensor(d, m.int())
masked_tensor(d, m[0])
masked_tensor(d, m[:1])
masked_tensor(d.bfloat16(), m)
masked_tensor([1], m)
masked_tensor(d, [1])
masked_tensor(mt, m)
masked_tensor(d, m.to_sparse())
masked_tensor(d + 1j, m)
masked_tensor(d > 2, m)
masked_tensor(torch.arange(3), torch.tensor([True, False, True]))
masked_tensor(torch.arange(24).reshape(2, 3, 4) * 100000, torch.arange(24).reshape(2, 3, 4) % 3 > 0)
masked_tensor(d * 1e6, m)
masked_tensor(torch.tensor(5), torch.tensor(False))
masked_tensor(torch.tensor(5), torch.tensor(True))
masked_tensor(d.sparse_mask(m.to_sparse()), m.to_sparse().coalesce(), requires_grad=True)
as_masked_tensor(d.clone().requires_grad_(), m)
as_masked_tensor(d.clone().requires_grad_(), m).grad_fn.name()
torch.masked.is_masked_tensor(mt)
mt.get_data()
mt.get_mask()
mt.to_tensor(7)
mt.shape, mt.size(), mt.stride(), mt.dim(), mt.numel(), mt.dtype, mt.device, mt.layout, mt.requires_grad, mt.is_leaf
mt.is_sparse, mt.is_sparse_coo(), mt.is_sparse_csr(), mt.is_contiguous(), len(mt)
mt.t().is_contiguous(), mt.t().stride(), mt.t().contiguous().is_contiguous()
mt.tolist()
mt.numpy()
mt.item()
mt[0, 0].item()
bool(mt[0, 0])
mt.mask
"""

OPERATORS = """
(mt * 2).grad_fn.name(), mt.sum().grad_fn.name(), mt[0].grad_fn.name(), mt.get_data().grad_fn.name()
mt + 1
1 + mt
mt * d
d * mt
mt / 2
mt - mt
2 - mt
2 ** mt
mt ** 2
mt @ mt.t()
-mt
abs(mt)
mt < 1
mt == 1
mt >= mt
(mt > 1) & (mt < 4)
mt + m
mt + masked_tensor(d, ~m)
mt.add(1, alpha=2)
mt.clamp(1, 3)
mt.clamp(min=1)
mt.pow(2)
mt.bitwise_not()
mt.to(torch.float64)
mt.half()
mt.int()
mt.type(torch.float64)
mt.clone()
mt.detach()
mt.data
mt.detach().abs_()
mt.detach().mul_(2)
mt.detach().add_(mt.detach())
mt.detach().sin_().mul_(3)
mt.detach().copy_(mt.detach())
mt.detach().fill_(1)
mt.abs_()
mt.softmax(1)
torch.nn.functional.softmax(mt, -1)
torch.where(m, mt, mt.exp())
torch.maximum(mt, mt)
torch.ones_like(mt)
torch.zeros_like(mt)
torch.ops.aten.add(mt, mt)
torch.ops.aten.clamp(mt, 1, 2)
torch.ops.aten.abs_(mt.detach())
torch.nn.functional.relu(mt)
torch.nn.functional.linear(mt, d)
mt.log_softmax(1)
mt.cumsum(0)
mt.masked_fill(m, 0)
mt.masked_select(m)
mt.isnan()
mt.sort()
"""

SHAPES = """
mt.reshape(3, 2)
mt.view(6)
mt.flatten()
mt.t()
mt.transpose(0, 1)
mt.T
mt.permute(1, 0)
mt.unsqueeze(0)
mt.squeeze()
mt.expand(2, 2, 3)
mt.expand_as(torch.ones(2, 2, 3))
mt.split(1)
mt.chunk(2)
mt.unbind(0)
list(mt)
torch.cat([mt, mt])
torch.stack([mt, mt])
mt.unfold(1, 2, 1)
mt[0]
mt[0, 1]
mt[:, 1]
mt[m]
mt[[0, 1], [0, 1]]
mt[..., None]
mt.contiguous()
mt.repeat(2, 1)
mt.flip(0)
mt.gather(1, torch.tensor([[0], [1]]))
"""

REDUCTIONS = """
mt.sum()
mt.sum(0)
mt.sum(0, keepdim=True)
mt.sum((0, 1))
mt.sum(0, dtype=torch.float64)
torch.sum(mt, 0)
mt.mean()
mt.mean(1)
mt.amax(1)
mt.amin()
mt.argmax()
mt.argmax(1)
mt.argmin()
mt.prod(0)
mt.all()
(mt > 1).all(1)
mt.var(0)
mt.var(1, True)
mt.std()
mt.std(dim=1)
torch.var(mt, 1, unbiased=False)
mt.norm()
torch.norm(mt)
mt.max()
mt.min()
mt.median()
mt.any()
mt.isnan().any(1)
torch.masked.sum(mt)
torch.masked.sum(mt, mask=m)
torch.masked.mean(mt, 1)
torch.masked.var(mt, 1)
torch.masked.std(mt, 0)
torch.masked.norm(mt)
torch.masked.prod(mt, 1)
torch.masked.amax(mt, 1)
torch.masked.argmax(mt)
torch.masked.median(mt, 1)
torch.masked.logsumexp(mt, 1)
torch.masked.softmax(mt, 1)
torch.masked.log_softmax(mt, 1)
torch.masked.cumsum(mt, 1)
torch.masked.normalize(mt, 2, 1)
"""

SPARSE = """
mt.to_sparse()
mt.to_sparse().layout
mt.to_sparse_csr()
mt.to_sparse().to_dense()
mt.to_dense()
mt.to_sparse() * 2
mt.to_sparse().exp()
mt.to_sparse() + mt.to_sparse()
mt.to_sparse_csr() + mt.to_sparse_csr()
mt.to_sparse_csr().tanh()
mt.to_sparse().sum()
mt.to_sparse().mean()
mt.to_sparse().amax()
mt.to_sparse().argmax()
mt.to_sparse().prod()
mt.to_sparse_csr().sum()
mt.to_sparse().sum(0)
mt.to_sparse().is_contiguous()
mt.to_sparse().contiguous()
mt[0].to_sparse_csr()
"""

BACKWARD = """
mt.exp().sum().backward()
(mt * mt).sum().backward()
(mt * d).sum().backward()
mt.softmax(0).pow(2).sum().backward()
torch.where(m, mt.exp(), mt).sum().backward()
mt.reshape(3, 2)[1:].sum().backward()
mt[0].exp().sum().backward()
mt[:, 1].sum().backward()
mt.t().contiguous().sum().backward()
torch.cat([mt, 2 * mt]).sum().backward()
mt.double().sum().backward()
mt.mean(0).sum().backward()
mt.prod(0).sum().backward()
mt.amax().backward()
mt.std().backward()
mt.get_data().sum().backward()
mt.to_tensor(0).sum().backward()
mt.sum(1).get_data().sum().backward()
mt.to_sparse().to_dense().sum().backward()
mt.to_sparse_csr().exp().to_dense().sum().backward()
torch.masked.sum(mt, 0).sum().backward()
torch.masked.softmax(mt, 1).pow(2).sum().backward()
torch.autograd.grad(mt.pow(3).sum(), mt)
torch.autograd.grad(torch.autograd.grad(mt.pow(3).sum(), mt, create_graph=True)[0].sum(), mt)
"""


def _names(t: Any) -> dict[str, Any]:
    d = t.arange(6.).reshape(2, 3)
    m = t.tensor([[True, False, True], [False, True, False]])
    return {"torch": t, "d": d, "m": m, "mt": t.masked.masked_tensor(d, m, requires_grad=True),
            "masked_tensor": t.masked.masked_tensor, "as_masked_tensor": t.masked.as_masked_tensor}


def answer(t: Any, program: str) -> str:
    """The type and text of a program's value, or of its error, and the gradient."""
    names = _names(t)
    try:
        result = eval(program, names)
    except Exception as error:
        return f"{type(error).__name__}: {error}".replace("flambeau", "torch")
    grad = names["mt"].grad if names["mt"].is_leaf else None
    return f"{type(result).__name__} {result} {grad}".replace("flambeau", "torch")


PROGRAMS = [line for group in (CREATION, OPERATORS, SHAPES, REDUCTIONS, SPARSE, BACKWARD)
            for line in group.strip().splitlines()]


@pytest.mark.parametrize("program", PROGRAMS)
def test_answers_as_pytorch(program: str) -> None:
    assert answer(flambeau, program) == answer(pytorch, program)


def _operands(t: Any) -> tuple[Any, Any, Any]:
    data = t.tensor([[.3, .7, .2, .9], [.4, .1, .6, .5]])
    mask = t.tensor([[True, True, False, True], [False, True, True, False]])
    return t.masked.masked_tensor(data, mask, True), t.masked.masked_tensor(data.flip(0) + .1, mask, True), data + 1


def _unary(t: Any, name: str) -> tuple[str, str]:
    x, _, _ = _operands(t)
    x = (x.detach() + 1).requires_grad_() if "cosh" in name else x
    args = {"pow": (2,), "clamp": (.2, .6), "clip": (.2, .6)}.get(name, ())
    try:
        y = getattr(t, name)(x, *args)
    except (TypeError, RuntimeError) as error:
        return f"{error}".replace("flambeau", "torch"), ""
    try:
        y.sum().backward()
    except (TypeError, ValueError, RuntimeError, RecursionError):
        return f"{y}", "no derivative"
    return f"{y}", f"{x.grad}"


def _binary(t: Any, name: str, which: int) -> tuple[str, str]:
    a, b, plain = _operands(t)
    pair = ((a, b), (a, plain), (plain, a))[which]
    try:
        y = getattr(t, name)(*pair)
    except (TypeError, RuntimeError) as error:
        return f"{error}".replace("flambeau", "torch"), ""
    try:
        y.sum().backward()
    except (TypeError, ValueError, RuntimeError, RecursionError):
        return f"{y}", "no derivative"
    return f"{y}", f"{a.grad} {b.grad}"


UNARY = import_module("torch.masked.maskedtensor.unary").UNARY_NAMES
BINARY = import_module("torch.masked.maskedtensor.binary").BINARY_NAMES


@pytest.mark.parametrize("name", UNARY)
def test_unary_operator(name: str) -> None:
    value, grad = _unary(flambeau, name)
    expected, expected_grad = _unary(pytorch, name)
    assert value == expected
    if expected_grad != "no derivative" and name != "sgn":  # PyTorch's gradient of `sgn` has no mask
        assert grad == expected_grad


@pytest.mark.parametrize("which", range(3), ids=["masked", "tensor second", "tensor first"])
@pytest.mark.parametrize("name", BINARY)
def test_binary_operator(name: str, which: int) -> None:
    value, grad = _binary(flambeau, name, which)
    expected, expected_grad = _binary(pytorch, name, which)
    assert value == expected
    if expected_grad != "no derivative" and name != "nextafter":  # a gradient without a mask, in PyTorch
        assert grad == expected_grad


def _warned(t: Any) -> list[tuple[str, str]]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        names = _names(t)
        t.masked.MaskedTensor(names["d"].clone().requires_grad_(), names["m"])
        with pytest.raises(TypeError):
            names["mt"].max()
        assert names["mt"].to_sparse().sum.__self__ is not None
    return [(each.category.__name__, str(each.message)) for each in caught]


def test_warnings() -> None:
    assert _warned(flambeau) == _warned(pytorch)


@pytest.mark.parametrize("module", ["core", "creation", "unary", "binary", "reductions", "passthrough"])
def test_names_of_modules(module: str) -> None:
    own = import_module(f"flambeau.masked.maskedtensor.{module}")
    theirs = import_module(f"torch.masked.maskedtensor.{module}")
    for name in ("UNARY_NAMES", "INPLACE_UNARY_NAMES", "UNARY_NAMES_UNSUPPORTED", "BINARY_NAMES",
                 "INPLACE_BINARY_NAMES", "REDUCE_NAMES"):
        assert set(getattr(own, name, ())) == set(getattr(theirs, name, ())), name
    assert set(getattr(theirs, "__all__", ())) <= set(dir(own))


def test_operators_return_to_fast_paths() -> None:
    """No code asks for handlers once the last masked tensor is gone."""
    from flambeau._tensor.overriding.entry_points import in_use

    before = in_use[0]
    x = flambeau.masked.masked_tensor(flambeau.ones(2), flambeau.tensor([True, False]))
    assert in_use[0] > before
    del x
    assert in_use[0] == before


def test_gradient_through_masked_tensors_that_are_gone() -> None:
    """The graph keeps what its backward pass needs, though no masked tensor is left."""
    grads = []
    for t in (flambeau, pytorch):
        x = t.arange(1., 4.).requires_grad_()
        mask = t.tensor([True, False, True])
        loss = t.masked.as_masked_tensor(x, mask).exp().to_tensor(0.).pow(2).sum()
        loss.backward()
        grads.append(x.grad.to_tensor(0.).tolist())
    assert grads[0] == pytest.approx(grads[1])
