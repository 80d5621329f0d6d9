"""`torch.ops.aten.*.out`: the overloads of PyTorch's dispatcher that write to `out=`."""

from __future__ import annotations

import pytest

import flambeau

CALLS = [
    "add.out(x, y, alpha=2, out=e(2, 2))", "add.Scalar_out(x, 3, out=e(2, 2))",
    "add(x, y, out=e(2, 2))",
    "mm.out(x, y, out=e(2, 2))", "sum.IntList_out(x, [0], out=e(2))", "sum.out(x, out=e())",
    "max.dim_max(x, 0, max=e(2), max_values=i(2))", "topk.values(x, 1, values=e(2, 1), indices=i(2, 1))",
    "relu.out(x, out=e(2, 2))", "relu.out(x, out=e(2, 2, dtype=t.float64))", "clone.out(x, out=e(2, 2))",
    "clone.out(x, out=e(2, 2, dtype=t.float64))", "zeros.out([2, 2], out=e(2, 2))", "full.out([2], 3, out=e(2))",
    "exp.out(x, out=e(2, 2))", "where.self_out(x > 1, x, y, out=e(2, 2))", "cat.out([x, y], 1, out=e(2, 4))",
    "gelu.out(x, approximate='tanh', out=e(2, 2))",
    "sort.values_stable(x, stable=True, values=e(2, 2), indices=i(2, 2))",
    "relu.out(x)", "permute_copy.out(x, [1, 0], out=e(2, 2))", "split_copy.Tensor_out(x, 1, out=[e(1, 2), e(1, 2)])",
    "linalg_qr.out(x, Q=e(2, 2), R=e(2, 2))",
    "native_layer_norm.out(x, [2], None, None, 0.5, out0=e(2, 2), out1=e(2, 1), out2=e(2, 1))",
    "_softmax.out(x, 1, False, out=e(2, 2))", "sub.out(x, y, out=i(2, 2))",
    "rand.out([2], out=3)", "eye.out(2, out=e(2, 2))", "constant_pad_nd.out(x, [1, 0], 2.0, out=e(2, 3))",
]


def outcome(module, source):
    from functools import partial

    names = {"x": module.tensor([[1., 2.], [3., -4.]]), "y": module.ones(2, 2), "t": module, "e": module.empty,
             "i": partial(module.empty, dtype=module.int64)}
    try:
        return str(eval(f"t.ops.aten.{source}", names))
    except Exception as error:
        return type(error).__name__, str(error).partition("\n")[0]


@pytest.mark.parity
@pytest.mark.parametrize("source", CALLS)
def test_results_and_errors_are_those_of_pytorch(source):
    torch = pytest.importorskip("torch")
    mine = outcome(flambeau, source)
    assert mine == outcome(torch, source)


def test_the_tensor_itself_is_returned_and_resized():
    out = flambeau.empty(0)
    assert flambeau.ops.aten.relu.out(flambeau.ones(2), out=out) is out
    assert out.tolist() == [1, 1]
    with pytest.warns(UserWarning, match="An output with one or more elements was resized"):
        flambeau.ops.aten.relu.out(flambeau.ones(3), out=out)
    assert out.shape == (3,)
