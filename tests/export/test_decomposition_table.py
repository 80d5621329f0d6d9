"""`torch._decomp`: its functions compute what the operators compute, in PyTorch too, and of other operators."""

from __future__ import annotations

import importlib
import warnings
from typing import Any

import pytest

import flambeau
from flambeau.utils._python_dispatch import TorchDispatchMode

#: overload, arguments ("matrix": 3 x 4, "square": 4 x 4, "positive", "integers", "mask", "image"), keyword arguments
CALLS: list[tuple[str, list[Any], dict[str, Any]]] = [
    *((name, ["matrix"], {}) for name in """
        silu mish celu elu gelu glu hardshrink hardsigmoid hardswish hardtanh leaky_relu logit relu6 sinc softplus
        softshrink frac deg2rad rad2deg nan_to_num isneginf isposinf t t_copy mean var std var_mean std_mean sum
        nansum all count_nonzero aminmax zeros_like ones_like special_entr abs exp tanh rsqrt tril triu rot90
        """.split()),  # noqa: SIM905
    ("add.Tensor", ["matrix", "matrix"], {"alpha": 3}), ("sub.Tensor", ["matrix", "integers"], {}),
    ("mul.Tensor", ["matrix", "matrix"], {}), ("div.Tensor", ["integers", "integers"], {}),
    ("pow.Tensor_Tensor", ["positive", "matrix"], {}), ("atan2", ["matrix", "positive"], {}),
    ("div.Tensor_mode", ["matrix", "positive"], {"rounding_mode": "floor"}),
    ("div.Tensor_mode", ["integers", "integers"], {"rounding_mode": "trunc"}),
    ("addcmul", ["matrix", "matrix", "matrix"], {"value": 2}), ("addcdiv", ["matrix", "matrix", "positive"], {}),
    ("addmm", ["square", "square", "square"], {"beta": 2, "alpha": 0.5}),
    ("addmm", ["square", "square", "square"], {"beta": 0}), ("mv", ["square", "vector"], {}),
    ("addmv", ["vector", "square", "vector"], {}), ("dot", ["vector", "vector"], {}),
    ("addr", ["square", "vector", "vector"], {"alpha": 2}), ("baddbmm", ["stack", "stack", "stack"], {"beta": 0.5}),
    ("clamp_min", ["matrix", 0.1], {}), ("clamp_max", ["matrix", 0.1], {}),
    ("clamp_min.Tensor", ["matrix", "positive"], {}), ("clamp.Tensor", ["matrix", None, "positive"], {}),
    ("masked_fill.Scalar", ["matrix", "mask", -1], {}), ("threshold", ["matrix", 0.1, 7], {}),
    ("lerp.Scalar", ["matrix", "positive", 0.7], {}), ("lerp.Tensor", ["matrix", "positive", "matrix"], {}),
    ("rsub.Scalar", ["matrix", 2, 3], {}), ("rsub.Tensor", ["matrix", "positive"], {}),
    ("xlogy.Tensor", ["matrix", "positive"], {}), ("round.decimals", ["matrix"], {"decimals": 1}),
    ("mean.dim", ["matrix", [1], True], {}), ("var.correction", ["matrix", [0]], {"correction": 2, "keepdim": True}),
    ("std.correction", ["matrix", None], {"correction": 0}), ("sum.dim_IntList", ["integers", [0], True], {}),
    ("all.dim", ["mask", 1], {}), ("logsumexp", ["matrix", [0, 1]], {}), ("_softmax", ["matrix", 1, False], {}),
    ("_log_softmax", ["matrix", 0, False], {}), ("transpose.int", ["image", 1, -1], {}),
    ("unbind.int", ["matrix", 1], {}), ("split.Tensor", ["matrix", 3, 1], {}),
    ("roll", ["matrix", [1, -2], [0, 1]], {}),
    ("roll", ["matrix", [2]], {}), ("pixel_shuffle", ["image", 2], {}), ("pixel_unshuffle", ["image", 2], {}),
    ("channel_shuffle", ["image", 2], {}), ("select_backward", ["vector", [3, 4], 0, 1], {}),
    ("slice_backward", ["matrix", [3, 9], 1, 1, 9, 2], {}), ("diagonal_backward", ["vector", [4, 4], 0, 0, 1], {}),
    ("new_full", ["matrix", [2], 3], {}), ("new_zeros", ["matrix", [2, 2]], {}), ("zeros", [[2, 3]], {}),
    ("silu_backward", ["matrix", "positive"], {}), ("mish_backward", ["matrix", "positive"], {}),
    ("gelu_backward", ["matrix", "matrix"], {}), ("gelu_backward", ["matrix", "matrix"], {"approximate": "tanh"}),
    ("elu_backward", ["matrix", 1, 2, 0.5, False, "matrix"], {}),
    ("elu_backward", ["matrix", 1, 2, 0.5, True, "matrix"], {}), ("hardswish_backward", ["matrix", "matrix"], {}),
    ("hardtanh_backward", ["matrix", "matrix", -0.5, 0.5], {}), ("hardsigmoid_backward", ["matrix", "matrix"], {}),
    ("leaky_relu_backward", ["matrix", "matrix", 0.1, False], {}), ("tanh_backward", ["matrix", "matrix"], {}),
    ("sigmoid_backward", ["matrix", "matrix"], {}), ("softplus_backward", ["matrix", "matrix", 1, 20], {}),
    ("threshold_backward", ["matrix", "matrix", 0.1], {}),
    ("mse_loss_backward", ["number", "matrix", "positive", 1], {}),
    ("smooth_l1_loss_backward", ["number", "matrix", "positive", 2, 0.7], {}),
    ("huber_loss_backward", ["number", "matrix", "positive", 1, 0.7], {}),
    ("_softmax_backward_data", ["matrix", "positive", 1, "dtype"], {}),
    ("_log_softmax_backward_data", ["matrix", "matrix", 1, "dtype"], {}),
    ("native_layer_norm", ["matrix", [4], "vector", "vector", 1e-5], {}),
    ("embedding", ["matrix", "indices"], {}),
    ("embedding_dense_backward", ["rows", "indices", 3, 1, False], {}),
    ("mse_loss", ["matrix", "positive", 2], {}), ("smooth_l1_loss", ["matrix", "positive"], {}),
    ("huber_loss", ["matrix", "positive"], {}), ("soft_margin_loss", ["matrix", "positive"], {}),
    ("binary_cross_entropy", ["probabilities", "probabilities"], {}),
    ("binary_cross_entropy_with_logits", ["matrix", "probabilities"], {}),
]
_IDS = [f"{i}-{name}" for i, (name, _, _) in enumerate(CALLS)]


def argument(t: Any, what: Any, dtype: str) -> Any:
    """An argument of a call; numbers that depend on nothing but its name."""
    kind = getattr(t, dtype)
    made = {"matrix": (3, 4), "square": (4, 4), "vector": (4,), "stack": (2, 4, 4), "image": (1, 4, 4, 6),
            "positive": (3, 4), "probabilities": (3, 4), "rows": (2, 2, 4), "number": ()}
    if what == "dtype":
        return kind
    if what == "mask":
        return t.arange(12).reshape(3, 4) % 3 == 0
    if what == "indices":
        return t.tensor([[0, 2], [1, 2]])
    if what == "integers":
        return (t.arange(12).reshape(3, 4) * 5 + 1) % 7 + 1
    if not isinstance(what, str) or what not in made:
        return what
    size = 1
    for n in made[what]:
        size *= n
    values = t.sin(t.arange(size, dtype=t.float64) * 1.7 + 0.3)
    if what == "positive":
        values = values.abs() + 0.2
    if what == "probabilities":
        values = values.abs() * 0.9 + 0.05
    return values.reshape(made[what]).to(kind)


def overload(t: Any, name: str) -> Any:
    operator, _, which = name.partition(".")
    return getattr(getattr(t.ops.aten, operator), which or "default")


class Calls(TorchDispatchMode):
    """The operators that are called."""

    def __init__(self) -> None:
        super().__init__()
        self.called: list[Any] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.called.append(func)
        return func(*args, **(kwargs or {}))


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize(("name", "args", "kwargs"), CALLS, ids=_IDS)
def test_functions_compute_the_operator_of_others(name: str, args: list[Any], kwargs: dict[str, Any],
                                                  dtype: str) -> None:
    torch = pytest.importorskip("torch")
    results = []
    for t in (flambeau, torch):
        given = [argument(t, each, dtype) for each in args]
        operator = overload(t, name)
        found = importlib.import_module(f"{t.__name__}._decomp").decomposition_table[operator] if (
            t is flambeau) else operator
        if t is flambeau:
            with Calls() as mode:
                result = found(*given, **kwargs)
            assert mode.called
            assert operator not in mode.called
        else:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                result = found(*given, **kwargs)
        results.append(list(result) if isinstance(result, (tuple, list)) else [result])
    assert len(results[0]) == len(results[1])
    for ours, theirs in zip(*results, strict=True):
        assert str(ours.dtype).rpartition(".")[2] == str(theirs.dtype).rpartition(".")[2]
        assert tuple(ours.shape) == tuple(theirs.shape)
        if dtype == "bfloat16":  # PyTorch's kernels round elsewhere
            bound = 0.03 * float(theirs.double().abs().max().nan_to_num(1, 1, 1)) + 1e-3 if theirs.numel() else 1
            assert torch.allclose(torch.tensor(ours.double().numpy()), theirs.double(), 0.03, bound, equal_nan=True)
        else:
            assert torch.allclose(torch.tensor(ours.double().numpy()), theirs.double(), 1e-5, 1e-6, equal_nan=True)


def test_entries_are_pytorchs() -> None:
    pytest.importorskip("torch")
    theirs = importlib.import_module("torch._decomp")
    ours = importlib.import_module("flambeau._decomp")
    known = {str(each) for each in theirs.decomposition_table}
    known |= {"aten.relu6_.default", "aten.addr_.default", "aten.logit_backward.grad_input"}  # none is entered there
    assert {str(each) for each in ours.decomposition_table} - known == set()
    core = {str(each) for each in theirs.core_aten_decompositions()}
    reading = {str(each) for each in ours.decomposition_table if not each._schema.is_mutable}
    assert {str(each) for each in ours.core_aten_decompositions()} & reading == core & reading
    assert len(ours.core_aten_decompositions()) > 200


def test_operators_are_traced_as_what_they_consist_of() -> None:
    from flambeau._decomp import get_decompositions
    from flambeau.fx.experimental.proxy_tensor import make_fx

    aten = flambeau.ops.aten

    def f(x: Any, w: Any) -> Any:
        return flambeau.nn.functional.mish(flambeau.addmm(x, x, w)).var(0)

    x, w = flambeau.randn(4, 4), flambeau.randn(4, 4)
    table = get_decompositions([aten.mish, aten.addmm, aten.var])
    graph = make_fx(f, decomposition_table=table)(x, w)
    targets = [node.target for node in graph.graph.nodes if node.op == "call_function"]
    assert not {aten.mish.default, aten.addmm.default, aten.var.correction} & set(targets)
    assert {aten.mm.default, aten.tanh.default} <= set(targets)
    flambeau.testing.assert_close(graph(x, w), f(x, w))


def test_variants_that_write() -> None:
    table = importlib.import_module("flambeau._decomp").decomposition_table
    x = flambeau.tensor([-1., 2.])
    assert table[flambeau.ops.aten.silu_.default](x) is x
    assert x.tolist() == flambeau.nn.functional.silu(flambeau.tensor([-1., 2.])).tolist()
    out = flambeau.empty(0)
    assert table[flambeau.ops.aten.mish.out](x, out=out) is out
    assert out.tolist() == flambeau.nn.functional.mish(x).tolist()


def test_functions_of_the_module() -> None:
    module = importlib.import_module("flambeau._decomp.decompositions")
    x = flambeau.tensor([-1., 2.])
    assert module.silu(x).tolist() == flambeau.nn.functional.silu(x).tolist()
    with pytest.raises(AttributeError, match="no attribute 'nothing_like_it'"):
        _ = module.nothing_like_it


@pytest.mark.parametrize("name", ["add.Tensor", "mish", "dropout", "matmul", "relu6", "linear", "relu"])
@pytest.mark.parametrize("key", ["CompositeImplicitAutograd", "CPU", "Meta"])
def test_kernels_of_dispatch_keys(name: str, key: str) -> None:
    torch = pytest.importorskip("torch")
    ours, theirs = (overload(t, name).has_kernel_for_dispatch_key(getattr(t._C.DispatchKey, key))
                    for t in (flambeau, torch))
    if name in ("relu6", "dropout") and key == "Meta":  # PyTorch registers some in Python
        theirs = False
    assert ours == theirs
