"""Lazy modules and uninitialized tensors compared with PyTorch."""

from __future__ import annotations

import copy
import gc
import pickle
import warnings

import numpy as np
import pytest

import flambeau

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.parity

CASES = {
    "LazyLinear(3)": (2, 4), "LazyLinear(3, bias=False)": (2, 4), "LazyConv1d(4, 3, groups=2)": (2, 2, 6),
    "LazyConv2d(4, (3, 2), padding='same', padding_mode='circular')": (2, 3, 6, 5), "LazyConv3d(2, 2)": (2, 4, 4, 4, 4),
    "LazyConvTranspose1d(4, 3, 2, output_padding=1)": (3, 6), "LazyConvTranspose2d(4, 3, groups=2)": (1, 2, 3, 3),
    "LazyConvTranspose3d(4, 3, bias=False)": (1, 2, 3, 3, 3), "LazyBatchNorm1d()": (3, 4),
    "LazyBatchNorm2d(affine=False)": (3, 4, 2, 2), "LazyBatchNorm3d(momentum=None, bias=False)": (3, 4, 2, 2, 2),
    "LazyInstanceNorm1d()": (3, 4, 5), "LazyInstanceNorm2d(affine=True, track_running_stats=True)": (3, 4, 5, 2),
    "LazyInstanceNorm3d()": (3, 4, 2, 2, 2),
}


@pytest.fixture(autouse=True)
def _ignored_warnings():
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Lazy modules are a new feature")
        yield


def text(x):
    return repr(x).replace("flambeau.", "torch.")


@pytest.mark.parametrize("source", CASES)
def test_lazy_module(source):
    seen = []
    for lib in (torch, flambeau):
        lib.manual_seed(3)
        module = eval(f"lib.nn.{source}", {"lib": lib})
        before = [text(module), {k: text(v) for k, v in module.state_dict().items()}, module.has_uninitialized_params(),
                  [type(p).__name__ for p in module.parameters()]]
        unpickled = pickle.loads(pickle.dumps(module))
        copied = unpickled if "Norm" in source else copy.deepcopy(module)  # PyTorch copies no uninitialized buffers
        before += [text(copied), text(unpickled), list(unpickled.state_dict())]
        x = lib.randn(CASES[source], requires_grad=True)
        output = module(x)
        (output.sin() * output).sum().backward()
        assert tuple(copied(x).shape) == tuple(unpickled(x).shape) == tuple(output.shape)
        lib.manual_seed(4)
        eager = eval(f"lib.nn.{source}", {"lib": lib})
        before.append(text(eager.load_state_dict(module.state_dict())))
        after = [text(module), type(module).__name__, list(module.state_dict()), len(module._forward_pre_hooks),
                 [type(p).__name__ for p in module.parameters()]]
        seen.append((before, after, [*module.state_dict().values(), output, x.grad,
                                      eager(x) if "InstanceNorm" not in source else x]))  # fails in PyTorch
    assert seen[1][:2] == seen[0][:2]
    for theirs, ours in zip(seen[0][2], seen[1][2], strict=True):
        np.testing.assert_allclose(ours.detach().numpy(), theirs.detach().numpy(), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("call", [
    lambda lib, p: p.shape, lambda lib, p: p + p, lambda lib, p: lib.add(p, lib.ones(1)), lambda lib, p: p.view(1),
    lambda lib, p: lib.nn.functional.linear(lib.ones(2), p), lambda lib, p: p.share_memory_(), lambda lib, p: repr(p),
    lambda lib, p: [p.dtype, p.device, p.requires_grad], lambda lib, p: p.half().dtype, lambda lib, p: tuple(p.size()),
    lambda lib, p: lib.nn.Linear(2, 3).load_state_dict({"weight": p, "bias": p}), lambda lib, p: p.numel(),
    lambda lib, p: lib.nn.LazyConv2d(3, 2)(lib.ones(2)),
    lambda lib, p: lib.nn.LazyConv2d(3, 2, groups=3)(lib.ones(1, 2, 4, 4)),
    lambda lib, p: lib.nn.parameter.is_lazy(p), lambda lib, p: isinstance(p, lib.nn.Parameter),
    lambda lib, p: isinstance(lib.nn.UninitializedBuffer(), lib.nn.Buffer),
    lambda lib, p: p.materialize((2, 3)) or p.shape,
    lambda lib, p: p.materialize(3, dtype=lib.float64) or (p.dtype, type(p).__name__),
])
def test_uninitialized_parameter(call):
    outcomes = []
    for lib in (torch, flambeau):
        try:
            outcomes.append(text(call(lib, lib.nn.UninitializedParameter())))
        except Exception as error:
            message = str(error).replace("flambeau", "torch").split("<")[0].split("tensor(")[0]
            outcomes.append((type(error).__name__, message))
    assert outcomes[1] == outcomes[0]


def test_no_handler_remains_in_use():
    from flambeau._tensor.overriding.entry_points import in_use

    gc.collect()  # a lazy module is part of a cycle, its hooks: those of earlier tests count until they are collected
    before = in_use[0]
    module = flambeau.nn.LazyLinear(3)
    assert in_use[0] == before + 2
    module(flambeau.ones(2))
    assert in_use[0] == before


def test_convert_sync_batchnorm():
    seen = []
    for lib in (torch, flambeau):
        inner = lib.nn.Sequential(lib.nn.BatchNorm2d(3, 0.1, None))
        model = lib.nn.Sequential(lib.nn.BatchNorm1d(2, bias=False), inner)
        weight = model[0].weight
        model = lib.nn.SyncBatchNorm.convert_sync_batchnorm(model)
        x = lib.arange(12.0).reshape(3, 2, 2)
        assert model[0].weight is weight
        seen.append([text(model), model[0](x).tolist(), model[0].running_mean.tolist(), list(model.state_dict())])
        for wrong in (lib.ones(2), lib.ones(2, 0, 1)):
            with pytest.raises(ValueError) as info:
                model[0](wrong)
            seen[-1].append(str(info.value))
    assert seen[1][:1] + seen[1][3:] == seen[0][:1] + seen[0][3:]
    np.testing.assert_allclose(seen[1][1], seen[0][1], rtol=1e-5)
    np.testing.assert_allclose(seen[1][2], seen[0][2], rtol=1e-5)


def test_parameters_of_subclasses_are_not_uninitialized():
    class Marked(torch.Tensor):
        pass

    marked = torch.ones(2).as_subclass(Marked)
    marked._is_param = True
    assert isinstance(marked, torch.nn.Parameter)
    assert not isinstance(marked, torch.nn.UninitializedParameter)
