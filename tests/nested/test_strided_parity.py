"""Nested tensors of the strided layout compared with PyTorch: programs of one line, and their gradients."""

from __future__ import annotations

import copy
import io
import pickle
import re
from typing import Any

import pytest

import flambeau

pytorch = pytest.importorskip("torch")
pytestmark = [pytest.mark.parity, pytest.mark.filterwarnings("ignore::UserWarning")]

PROGRAMS = """
nt
torch.nested.nested_tensor(torch.ones(2, 3))
torch.nested.nested_tensor((torch.ones(2),))
torch.nested.nested_tensor([torch.ones(1, 0), torch.ones(0, 0)]).to_padded_tensor(0)
torch.nested.nested_tensor([]).to_padded_tensor(0)
F.scaled_dot_product_attention(*3 * [torch.nested.nested_tensor([torch.ones(2, 3, 4)])], is_causal=True)
F.scaled_dot_product_attention(*3 * [torch.nested.nested_tensor([torch.ones(2, 3, 4)])], torch.ones(1))
repr(nt.detach())
nt*2
nt.shape
nt.size()
nt.size(0)
nt.size(1)
nt.size(2)
type(nt.size(1)).__name__
nt.dim()
nt.ndim
nt.numel()
nt.dtype
nt.device
nt.layout
nt.is_nested
nt.requires_grad
nt.is_leaf
nt.stride()
nt.is_contiguous()
nt.values()
nt.offsets()
nt.lengths()
nt._offsets
nt._lengths
nt._ragged_idx
nt._min_seqlen
nt._max_seqlen
nt._get_min_seqlen()
nt._get_max_seqlen()
nt.unbind()
nt.unbind(1)
list(nt)
len(nt)
nt.tolist()
nt.numpy()
nt.item()
nt.shape[1]==nt.shape[1]
nt.shape==mk().shape
nt.shape==(nt*2).shape
nt.shape[1]+1
nt.shape[1]>=2
nt.shape[1]*2
nt.shape[1]==3
int(nt.shape[1])
nt.to_padded_tensor(0.)
torch.nested.to_padded_tensor(nt, -1.)
torch.nested.to_padded_tensor(nt, 0., output_size=(3, 5, 4))
nt.to_padded_tensor(0., output_size=(3, 2, 4))
nt+1
1+nt
nt+nt
nt+mk()
nt-2
2-nt
nt/2
2/nt
nt**2
2**nt
-nt
abs(nt)
nt<0
nt==nt
nt*torch.arange(4.)
nt*torch.ones(3, 1, 1)
nt+torch.ones(3, 1, 4)
nt+torch.ones(2)
nt*torch.tensor(3.)
torch.relu(nt)
nt.relu()
F.gelu(nt)
F.silu(nt)
F.leaky_relu(nt)
nt.sin()
nt.exp()
nt.sigmoid()
nt.tanh()
nt.clamp(0, 1)
nt.isnan()
torch.logical_not(nt>0)
nt.masked_fill(nt>0, 0)
torch.where(nt>0, nt, nt*2)
torch.maximum(nt, nt*2)
F.dropout(nt, 0.5, True)
F.dropout(nt, 0.5, False)
nt.sum()
nt.sum(0)
nt.sum(1)
nt.sum(2)
nt.sum(-1)
nt.sum(1, keepdim=True)
nt.sum(-1, keepdim=True)
nt.sum((1, 2))
nt.sum((0, 1))
nt.sum((0, 1, 2))
nt.mean()
nt.mean(1)
nt.mean(2)
nt.mean(-1, keepdim=True)
nt.mean((0, 1))
nt.mean((1, 2))
nt.max()
nt.max(1)
nt.max(2)
nt.amax(1)
nt.amin(2)
nt.amax()
nt.min(1)
nt.argmax(1)
nt.argmin(2)
nt.prod()
nt.prod(1)
nt.prod(2)
nt.all()
nt.any()
(nt>0).any(1)
(nt>0).all(2)
nt.var(1)
nt.std()
nt.norm()
nt.logsumexp(1)
nt.cumsum(1)
nt.softmax(-1)
nt.softmax(1)
nt.softmax(0)
nt.log_softmax(2)
nt.log_softmax(1)
F.softmax(nt, dim=2)
nt[0]
nt[1]
nt[-1]
nt[3]
nt[0, 1]
nt[:, 0]
nt[:, :, 0]
nt[..., 0]
nt[:, :, 1:3]
nt[..., :2]
nt[0:2]
nt[None]
nt[nt>0]
nt[torch.tensor([0])]
nt.select(0, 1)
nt.select(2, 1)
nt.select(1, 0)
nt.narrow(2, 1, 2)
nt.unsqueeze(-1)
nt.unsqueeze(0)
nt.unsqueeze(1)
nt.unsqueeze(3)
nt.unsqueeze(2)
nt.unsqueeze(-1).squeeze(-1)
nt.squeeze(2)
nt.transpose(1, 2)
nt.transpose(0, 1)
nt.transpose(1, 2).shape
nt.transpose(1, 2).is_contiguous()
nt.transpose(1, 2)*2
nt.transpose(1, 2).contiguous()
nt.transpose(1, 2).transpose(1, 2)
nt.permute(0, 2, 1)
nt.permute(2, 0, 1)
nt.T
nt.mT
nt.view(3, -1, 2, 2)
nt.view(3, -1, 2, 2).shape
nt.reshape(3, -1, 2, 2)
nt.view(3, nt.size(1), 4)
nt.view(-1)
nt.view(3, -1)
nt.flatten(1, 2)
nt.flatten()
nt.unflatten(-1, (2, 2))
nt.unflatten(2, [2, 2]).transpose(1, 2)
nt.unflatten(2, [2, 2]).transpose(1, 2).shape
nt.unflatten(2, [2, 2]).flatten(-2, -1)
nt.split(2, -1)
nt.split([1, 3], -1)
nt.split(1, 0)
nt.split(1, 1)
nt.chunk(2, -1)
nt.chunk(3, 0)
nt.chunk(2, 0)
nt.chunk(2, 1)
torch.cat([nt, nt], -1)
torch.cat([nt, nt], 0)
torch.cat([nt, nt], 1)
torch.cat([nt.detach(), nt.detach() * 2])
torch.cat([nt.detach(), nt.detach() * 2], -1)
torch.cat([nt.detach(), nt.detach().half()], -3)
torch.cat([nt.detach(), torch.ones(2, 3)])
torch.cat([nt.detach(), nt.detach().transpose(1, 2)])
torch.cat([nt.detach(), torch.nested.nested_tensor([])])
torch.cat([nt.detach(), nt.detach().unsqueeze(-1)])
torch.concat([nt.detach()], 3)
torch.cat([nt.detach()], out=nt.detach())
nt.detach().mean(1)
nt.detach().max(dim=-1, keepdim=True)
torch.stack([nt, nt])
torch.stack([nt, nt], -1)
nt.expand(3, nt.size(1), 4)
nt.unsqueeze(-1).expand(-1, -1, -1, 2)
torch.ones(3, 1, 4).expand_as(nt)
nt.repeat(1, 1, 2)
nt@torch.ones(4, 2)
nt@torch.ones(3, 4, 2)
torch.matmul(nt, torch.ones(4, 2))
torch.bmm(nt, torch.ones(3, 4, 2))
nt@nt.transpose(1, 2)
nt.transpose(1, 2)@nt
torch.ones(2, 4)@nt
F.linear(nt, torch.ones(2, 4))
F.linear(nt, torch.ones(2, 4), torch.ones(2))
torch.nn.Linear(4, 2)(nt).shape
F.layer_norm(nt, (4, ))
torch.nn.LayerNorm(4)(nt)
F.rms_norm(nt, (4, ))
F.layer_norm(nt, (3, 4))
nt.to(torch.float64)
nt.double()
nt.half()
nt.long()
nt.clone()
nt.detach()
nt.data
nt.contiguous()
torch.zeros_like(nt)
torch.ones_like(nt)
torch.empty_like(nt).shape==nt.shape
torch.full_like(nt, 2.)
(torch.manual_seed(0), torch.rand_like(nt))
nt.new_zeros(2)
nt.detach().masked_select(nt.detach()>0)
nt.detach().add_(1)
nt.detach().mul_(2)
nt.detach().zero_()
nt.detach().fill_(3)
nt.detach().relu_()
nt.detach().copy_(nt)
nt.add_(1)
nt.grad_fn
(nt*2).grad_fn.name()
nt.values().grad_fn.name()
nt.unbind()[0].grad_fn.name()
nt.sum().grad_fn.name()
nt.transpose(1, 2).grad_fn.name()
nt.to_padded_tensor(0.).grad_fn.name()
nt.view(3, -1, 2, 2).grad_fn.name()
nt[0].grad_fn.name()
(nt@torch.ones(4, 2)).grad_fn.name()
F.linear(nt, torch.ones(2, 4)).grad_fn.name()
nt.softmax(-1).grad_fn.name()
F.layer_norm(nt, (4, )).grad_fn.name()
nt.mean(1).grad_fn.name()
torch.nested.nested_tensor([[1, 2], [3]])
torch.nested.nested_tensor([[1, 2], [3]])
F.scaled_dot_product_attention(*[nt.unflatten(2, [2, 2]).transpose(1, 2)]*3)
F.scaled_dot_product_attention(*[nt.unflatten(2, [2, 2]).transpose(1, 2)]*3, is_causal=True)
F.scaled_dot_product_attention(nt, nt, nt)
F.conv1d(nt.transpose(1, 2), torch.ones(2, 4, 1))
nt.sort()
nt.flip(1)
nt.gather(1, nt)
nt.index_select(0, torch.tensor([0]))
F.pad(nt, (1, 1))
nt.tril()
nt.roll(1)
torch.equal(nt, nt)
torch.allclose(nt, nt)
nt.cpu() is nt
nt.is_pinned()
nt.storage_offset()
nt.element_size()
nt.is_floating_point()
bool(nt)
nt.backward()
nt.t()
nt.requires_grad_(False)
nt.fill_(1)
nt.nelement()
nt.size(3)
nt.size(-2)
nt.type(torch.float64)
nt.is_same_size(nt)
nt.is_same_size(mk())
torch.isfinite(nt)
nt.bernoulli()
nt.round()
torch.randn_like(nt)
nt._nested_tensor_size()
nt.transpose(1, 2)._nested_tensor_strides()
nt.squeeze()
nt.detach().squeeze()
torch.nested.nested_tensor([torch.ones(1), torch.ones(1)]).squeeze(1)
nt.view(3, -1, -1, 1)
nt.view(3, -1, 2, -1)
nt.view(3, -2, 4)
nt.view(3, -1)
nt.transpose(1, 2).relu()
nt.transpose(1, 2).neg()
F.gelu(nt.transpose(1, 2))
nt.transpose(1, 2) + nt.transpose(1, 2)
torch.nested.to_padded_tensor(nt.transpose(1, 2), 0)
torch.nested.nested_tensor([torch.ones(2, 3).T, torch.ones(2, 2).T]).is_contiguous()
torch.nested.nested_tensor([torch.tensor(1.), torch.tensor(2.), torch.ones(1)])
torch.nested.nested_tensor([]).softmax(0)
torch.nested.nested_tensor([torch.ones(0), torch.ones(0)]).softmax(0)
torch.empty_like(nt).copy_(nt)
torch.nested.nested_tensor([torch.ones(2)]).copy_(nt)
torch.empty_like(nt).copy_(torch.ones(3, 2, 4))
F.linear(torch.nested.nested_tensor([torch.ones(2)]), torch.ones(2, 2))
F.linear(nt.transpose(1, 2), torch.ones(2, 2))
F.linear(torch.nested.nested_tensor([torch.ones(2, 2), torch.ones(2, 3)]), torch.ones(2, 2))
F.linear(nt, torch.ones(2, 3))
F.linear(nt, torch.ones(4))
nt.reshape(4, -1)
nt.reshape(())
torch.nested.nested_tensor([]).view(1)
"""


def make(t: Any, requires_grad: bool = True) -> Any:
    t.manual_seed(0)
    return t.nested.nested_tensor([t.randn(n, 4) for n in (2, 3, 1)], requires_grad=requires_grad)


def names(t: Any) -> dict[str, Any]:
    return {"torch": t, "F": t.nn.functional, "nt": make(t), "mk": lambda: make(t)}


def answer(t: Any, program: str) -> str:
    try:
        result = eval(program, names(t))
        if isinstance(result, (flambeau.Tensor, pytorch.Tensor)) and not result.is_nested and not result.dim():
            result = f"{float(result):.4f}"
        text = f"{type(result).__name__} {result}"
    except Exception as error:
        text = f"{type(error).__name__}: {error}"
    text = re.sub(r"(Could not run 'aten::[a-z_.A-Z]*').*", r"\1", text.replace("flambeau", "torch"), flags=re.DOTALL)
    return re.sub(r"0x[0-9a-f]+", "0x", text)[:2000]


@pytest.mark.parametrize("program", PROGRAMS.strip().splitlines())
def test_answers_as_pytorch(program: str) -> None:
    assert answer(flambeau, program) == answer(pytorch, program)


GRADIENTS = """
nt * 2
nt + nt
nt * nt
nt / 2
-nt
abs(nt)
nt.relu()
F.gelu(nt)
F.silu(nt)
nt.tanh()
nt.sum(-1, keepdim=True)
nt.softmax(-1)
nt.softmax(1)
nt.transpose(1, 2).contiguous()
nt.unsqueeze(1)
nt.view(3, -1, 2, 2)
nt.chunk(2, -1)[1]
nt @ nt.transpose(1, 2)
torch.bmm(nt, torch.ones(3, 4, 2))
F.linear(nt, torch.arange(8.).reshape(2, 4), torch.ones(2))
F.layer_norm(nt, (4,), torch.arange(4.), torch.ones(4))
nt.to_padded_tensor(0.)
torch.nested.to_padded_tensor(nt, 1., output_size=(3, 5, 6))
nt.unbind()[1]
nt[1]
nt.select(2, 1)
nt.clone()
"""


def gradient(t: Any, program: str) -> tuple[list[Any], list[Any] | None, str]:
    """The components of a program's value, the gradient of a weighted sum of squares, and the name of its node."""
    space = names(t)
    result = eval(program, space)
    parts = list(result.unbind()) if result.is_nested else [result]
    loss = sum((p * p * t.arange(1., 1 + p.numel()).reshape(p.shape)).sum() for p in parts)
    try:
        loss.backward()
        grad = [g.tolist() for g in space["nt"].grad.unbind()]
    except RuntimeError:
        grad = None
    return [p.tolist() for p in parts], grad, result.grad_fn.name()


@pytest.mark.parametrize("program", GRADIENTS.strip().splitlines())
def test_gradient(program: str) -> None:
    value, grad, node = gradient(flambeau, program)
    expected, expected_grad, expected_node = gradient(pytorch, program)
    assert _close(value, expected)
    assert node == expected_node
    assert grad is not None
    if expected_grad is not None:
        assert _close(grad, expected_grad)


def _close(a: list[Any], b: list[Any]) -> bool:
    return len(a) == len(b) and all(pytorch.allclose(pytorch.tensor(x), pytorch.tensor(y), rtol=1e-4, atol=1e-5)
                                    for x, y in zip(a, b, strict=True))


def test_gradients_reach_components_and_parameters() -> None:
    grads = []
    for t in (flambeau, pytorch):
        parts = [t.ones(2, 3, requires_grad=True), t.ones(1, 3, requires_grad=True)]
        weight = t.arange(6.).reshape(2, 3).requires_grad_()
        out = t.nn.functional.linear(t.nested.as_nested_tensor(parts), weight)
        out.to_padded_tensor(0.).pow(2).sum().backward()
        grads.append([x.grad.tolist() for x in (*parts, weight)])
    assert _close(*grads)


def test_copies() -> None:
    nt = make(flambeau)
    for other in (copy.deepcopy(nt), pickle.loads(pickle.dumps(nt))):
        assert str(other) == str(nt)


@pytest.mark.parametrize(("writer", "reader"), [(flambeau, pytorch), (pytorch, flambeau)])
def test_files_are_exchanged(writer: Any, reader: Any) -> None:
    nt = writer.nested.nested_tensor([writer.arange(6.0).view(2, 3), writer.arange(4.0).view(4, 1)],
                                     requires_grad=True)
    buffer = io.BytesIO()
    writer.save(nt, buffer)
    buffer.seek(0)
    found = reader.load(buffer)
    assert found.requires_grad
    assert [x.tolist() for x in found.unbind()] == [x.tolist() for x in nt.unbind()]


def test_lists_of_numbers_and_errors() -> None:
    for program in ("torch.nested.nested_tensor([[1, 2], [3]])",
                    "torch.nested.nested_tensor([torch.ones(1), torch.ones(1, 1)])",
                    "torch.nested.nested_tensor([torch.ones(2)], dtype=torch.float64)",
                    "torch.nested.nested_tensor([torch.ones(2, 3), torch.ones(3, 1)])",
                    "torch.nested.nested_tensor([torch.ones(2)], layout=torch.sparse_coo)"):
        assert answer(flambeau, program) == answer(pytorch, program), program
