"""Bools where dimensions, sizes and counts are expected, beside PyTorch: most are refused, some count as 0 and 1."""

import warnings

import pytest

import flambeau

torch = pytest.importorskip("torch")

NAMES = ("sum mean prod amax amin argmax argmin all any median nanmedian max min logsumexp nansum nanmean cumsum "
         "cumprod cummax logcumsumexp softmax log_softmax sort argsort squeeze unsqueeze unbind mode count_nonzero")
CALLS = ["x.flip(True)", *(f"x.{name}({dim})" for name in NAMES.split() for dim in ("True", "dim=True"))]
OTHER_CALLS = """
x.sum((True,)) x.sum((0,True)) x.amax([True]) x.all((0,True)) x.count_nonzero((0,True)) x.std((True,))
x.var([0,True]) x.squeeze((True,)) x.flip((True,)) x.flip((0,True)) torch.cat([x,x],True)
torch.stack([x,x],dim=True) torch.chunk(x,2,True) x.split(1,True) x.transpose(False,True)
x.permute(True,False) x.permute((1,False)) x.select(True,0) x.select(0,True) x.narrow(True,0,1)
x.narrow(0,True,1) x.gather(True,i) x.scatter_add(True,i,x) x.index_add(True,i[0],x) x.index_select(True,i[0])
x.flatten(0,True) x.unflatten(True,(3,1)) x.movedim(0,True) x.roll(1,True) x.diagonal(0,False,True)
x.topk(1,True) x.kthvalue(1,True) x.renorm(2,True,1) x.unfold(True,1,1) x.size(True) x.stride(True)
x.swapdims(0,True) torch.nn.functional.normalize(x,dim=True) torch.linalg.vector_norm(x,dim=True)
torch.cosine_similarity(x,x,True) torch.fft.fft(x,3,True) torch.quantile(x,.5,True)
torch.trapezoid(x,dim=True) x.slice_scatter(x,True) x.diff(True) torch.zeros(2,True) torch.zeros(True)
torch.zeros((True,2)) torch.ones(2,True) torch.full((2,True),1.) x.new_zeros(2,True) x.view(2,True,3)
x.view(True,2,3) x.reshape((2,True,3)) x.expand((True,2,3)) x.repeat(True,2)
torch.as_strided(x,(2,True),(1,1)) torch.add(x,x,alpha=True) x.sum(1,True) x.std(True) x.cumsum(1) x.flip(1)
"""


def run(module, call):
    """The value as lists, or the class of the error."""
    x = module.arange(1.0, 7.0).reshape(2, 3)
    scope = {"torch": module, "x": x, "i": module.zeros(2, 3, dtype=module.int64)}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            result = eval(call, scope)
        except Exception as error:
            return type(error).__name__
    results = result if isinstance(result, (tuple, list)) else [result]
    return [each.double().numpy().round(5).tolist() for each in results]


@pytest.mark.parity
@pytest.mark.parametrize("call", CALLS + OTHER_CALLS.split())
def test_as_in_pytorch(call):
    assert run(flambeau, call) == run(torch, call)
