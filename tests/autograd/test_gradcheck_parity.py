"""gradcheck compared with PyTorch's: results, messages, numbers and random state."""

from __future__ import annotations

import re
import warnings

import pytest

import flambeau

torch = pytest.importorskip("torch")

pytestmark = pytest.mark.parity


@pytest.fixture(autouse=True)
def _printed_alike(monkeypatch):
    monkeypatch.setattr(flambeau.config, "module_name", "torch")


def hooked(x, change):
    y = x.clone()
    y.register_hook(change)
    return y


def _function(lib, forward, backward, jvp=None):
    members = {"forward": staticmethod(lambda ctx, x: forward(x)), "backward": staticmethod(lambda ctx, g: backward(g))}
    if jvp is not None:
        members["jvp"] = staticmethod(lambda ctx, t: jvp(t))
    return type("Made", (lib.autograd.Function,), members).apply


#: name -> (library -> function of tensors)
FUNCTIONS = {
    "sine": lambda lib: lib.sin,
    "product": lambda lib: lambda x: x * x.flip(0),
    "two outputs": lambda lib: lambda x: (x * 2, (x ** 3).sum()),
    "complex output": lambda lib: lambda x: lib.complex(x.real, 2 * x.real) if x.is_complex() else lib.complex(x, x),
    "detached factor": lambda lib: lambda x: x.detach() * x,
    "too large": lambda lib: lambda x: hooked(x, lambda g: g * 2),
    "a little too large": lambda lib: lambda x: hooked(x, lambda g: g * 1.0001),
    "offset": lambda lib: lambda x: hooked(x, lambda g: g + 1e-2),
    "small offset": lambda lib: lambda x: hooked(x, lambda g: g + 1e-6),
    "wrong second": lambda lib: lambda x: (x * 2, hooked(x, lambda g: g * 3)),
    "wrong forward": lambda lib: _function(lib, lambda x: x * 2, lambda g: g * 2, lambda t: t * 3),
    "no forward": lambda lib: _function(lib, lambda x: x * 2, lambda g: g * 2),
    "not differentiable": lambda lib: lambda x: lib.ones(2),
    "hidden": lambda lib: lambda x: lib.tensor(x.detach().tolist()),
    "nothing": lambda lib: lambda x: (),
    "fails": lambda lib: lambda x: x.reshape(5),
    "a number": lambda lib: lambda x: 3.0,
}
OPTIONS = {
    "slow": {},
    "fast": {"fast_mode": True},
    "forward": {"check_forward_ad": True},
    "forward, fast": {"check_forward_ad": True, "fast_mode": True},
    "forward only": {"check_forward_ad": True, "check_backward_ad": False},
    "loose": {"atol": 1e-1},
    "batched": {"check_batched_grad": True},
    "no undefined": {"check_undefined_grad": False, "check_grad_dtypes": True},
}


def outcome(lib, check, make, dtype, options):
    lib.manual_seed(0)
    values = [0.5, 1.0, 2.0] if dtype != "complex128" else [0.5 + 1j, 1 - 1j, 2 + 0.5j]
    x = lib.tensor(values, dtype=getattr(lib, dtype), requires_grad=True)
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        try:
            said = repr(check(make(lib), x, **options))
        except Exception as error:
            said = f"{type(error).__name__}: {error}"
    said = re.sub(r"-?\d+\.\d{5,}(e-?\d+)?", lambda number: f"{float(number.group()):.5g}", said)
    said = re.sub(r"([-+])(0\.0*j)", r"+\2", said)  # which zero a product of complex numbers is
    said = said.replace(", grad_fn=<CopySlices>", "")  # PyTorch's tangents keep an unrequested graph
    kinds = sorted({str(w.message) for w in heard if w.category is not DeprecationWarning})
    return said, kinds, lib.rand(1).item()


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_messages_equal_pytorchs(name, options, dtype):
    make, chosen = FUNCTIONS[name], OPTIONS[options]
    assert (outcome(flambeau, flambeau.autograd.gradcheck, make, dtype, chosen)
            == outcome(torch, torch.autograd.gradcheck, make, dtype, chosen))


@pytest.mark.parametrize("options", [{}, {"fast_mode": True}, {"gen_non_contig_grad_outputs": True},
                                     {"check_fwd_over_rev": True}])
@pytest.mark.parametrize("dtype", ["float64", "complex128"])
@pytest.mark.parametrize("name", ["sine", "product", "two outputs", "complex output", "detached factor"])
def test_messages_of_gradgradcheck_equal_pytorchs(name, dtype, options):
    make = FUNCTIONS[name]
    assert (outcome(flambeau, flambeau.autograd.gradgradcheck, make, dtype, options)
            == outcome(torch, torch.autograd.gradgradcheck, make, dtype, options))
