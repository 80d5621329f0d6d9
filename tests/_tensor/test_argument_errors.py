"""Errors of calls whose arguments fit no signature are those of PyTorch's argument parser."""

from __future__ import annotations

import importlib.util
import inspect
import random
import re
import subprocess
import sys

import numpy as np
import pytest

import flambeau as torch
from flambeau._tensor import functions
from flambeau._tensor.argument_errors import guards
from flambeau._tensor.argument_errors.messages import explained
from flambeau._tensor.argument_errors.signatures import _texts, known, signatures

M = torch.ones(2, 3)


@pytest.mark.parametrize(("call", "said"), [
    (lambda: M.relu_(1), "TensorBase.relu_() takes no arguments (1 given)"),
    (lambda: torch.eq(M, [1.0]), ("eq() received an invalid combination of arguments - got (Tensor, list), but "
     "expected one of:\n * (Tensor input, Tensor other, *, Tensor out = None)\n * (Tensor input, Number other, *, "
     "Tensor out = None)\n")),
    (lambda: M.eq_("a"), ("eq_() received an invalid combination of arguments - got (str), but expected one of:\n"
     " * (Tensor other)\n      didn't match because some of the arguments have invalid types: (!str!)\n"
     " * (Number other)\n      didn't match because some of the arguments have invalid types: (!str!)\n")),
    (lambda: torch.multiply(M, "a"), ("multiply() received an invalid combination of arguments - got (Tensor, str), "
     "but expected one of:\n * (Tensor input, Tensor other, *, Tensor out = None)\n * (Tensor input, Number other)\n"
     "      didn't match because some of the arguments have invalid types: (Tensor, !str!)\n")),
    (lambda: M.addmm_(zz=M), ("addmm_() received an invalid combination of arguments - got unrecognized keyword "
     "arguments: zz")),
    (lambda: torch.add(M), ("add() received an invalid combination of arguments - got (Tensor), but expected (Tensor "
     "input, Tensor other, *, Number alpha = 1, Tensor out = None)")),
    (lambda: M.split(split_size=1, dim="a"), ("split() received an invalid combination of arguments - got (Tensor, "
     "int, str), but expected one of:\n * (Tensor input, int split_size, int dim = 0)\n      didn't match because some "
     "of the arguments have invalid types: (Tensor, int, !str!)\n * (Tensor input, tuple of ints split_size, int dim = "
     "0)\n      didn't match because some of the arguments have invalid types: (Tensor, !int!, !str!)\n")),
    (lambda: M.split([1, 1], "a"), "split_with_sizes(): argument 'dim' (position 3) must be int, not str"),
    (lambda: M.unflatten("a", (1, 2)), "unflatten(): argument 'dim' (position 1) must be int, not str"),
    (lambda: M.unflatten(0, "a"), "unflatten(): argument 'sizes' (position 2) must be tuple of ints, not str"),
    (lambda: torch.unique(M, dim="a"), "unique_dim(): argument 'dim' (position 2) must be int, not str"),
    (lambda: M.max(0, 1, 2), ("max() received an invalid combination of arguments - got (int, int, int), but expected "
     "one of:\n * ()\n * (Tensor other)\n * (int dim, bool keepdim = False)\n")),
    (lambda: M.all(1.5), ("all() received an invalid combination of arguments - got (float), but expected one of:\n"
     " * ()\n      didn't match because some of the arguments have invalid types: (!float!)\n"
     " * (tuple of ints dim = None, bool keepdim = False)\n * (int dim, bool keepdim = False)\n")),
    (lambda: M.eq_((1,)), ("eq_() received an invalid combination of arguments - got (tuple), but expected one of:\n"
     " * (Tensor other)\n      didn't match because some of the arguments have invalid types: (!tuple of (int,)!)\n"
     " * (Number other)\n      didn't match because some of the arguments have invalid types: (!tuple of (int,)!)\n")),
    (lambda: M.tril("a"), "tril(): argument 'diagonal' (position 1) must be int, not str"),
    (lambda: M.gather("a", 1), "gather(): argument 'dim' (position 1) must be int, not str"),
    (lambda: M.transpose(), 'transpose() missing 2 required positional argument: "dim0", "dim1"'),
    (lambda: torch.full((2,)), 'full() missing 1 required positional arguments: "fill_value"'),
    (lambda: M.new("a", dtype=3), "new() received an invalid combination of arguments"),
])
def test_what_is_said(call, said):
    with pytest.raises(TypeError) as raised:
        call()
    assert str(raised.value).startswith(said) if said.endswith("arguments") else str(raised.value) == said


@pytest.mark.parametrize(("call", "said"), [
    (lambda: torch.flip(M, 1), "flip(): argument 'dims' (position 2) must be tuple of ints, not int"),
    (lambda: torch.tril(M, 1.), "tril(): argument 'diagonal' (position 2) must be int, not float"),
    (lambda: M.triu(True), "triu(): argument 'diagonal' (position 1) must be int, not bool"),
    (lambda: torch.rot90(M, k=1.), "rot90(): argument 'k' must be int, not float"),
    (lambda: torch.nn.functional.celu(M, (1.5,)), "celu(): argument 'alpha' (position 2) must be Number, not tuple"),
    (lambda: M.topk(1, 0, 1.), "topk(): argument 'largest' (position 3) must be bool, not float"),
    (lambda: torch.randperm(3.), "randperm(): argument 'n' (position 1) must be int, not float"),
    (lambda: torch.mode(M, 1.), "mode(): argument 'dim' (position 2) must be int, not float"),
    (lambda: M.sort(descending=1), "sort() received an invalid combination of arguments - got (descending=int, ), "),
    (lambda: torch.full_like(M, "1"), "full_like(): argument 'fill_value' (position 2) must be Number, not str"),
    (lambda: torch.fft.irfft2(M, (1, "a")), ("fft_irfft2(): argument 's' failed to unpack the object at pos 2 with "
     "error \"type must be tuple of ints,but got str\"")),
])
def test_classes_are_checked_after_calls_that_fit(call, said):
    class Index:
        def __index__(self):
            return 1

    for one in (1, np.int64(1), torch.tensor(1), Index()):
        torch.tril(M, one), M.triu(one), torch.mode(M, int(one))
    torch.flip(M, (1,)), M.flip(1), torch.rot90(M, k=1), torch.celu(M, 1.5), M.topk(1, 0, True), M.sort(descending=True)
    torch.full_like(M, True), torch.full_like(M, np.float32(2)), torch.randperm(np.int64(3))
    torch.fft.irfft2(M, (2, 2))
    with pytest.raises(TypeError) as raised:
        call()
    assert str(raised.value).partition("\n")[0].startswith(said)


def test_errors_of_calls_that_fit_stay():
    with pytest.raises(RuntimeError, match="shape"):
        M.view(4)
    with pytest.raises(IndexError):
        M.narrow(5, 0, 1)

    class Refusing(torch.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            raise TypeError("of the handler")

    with pytest.raises(TypeError, match="of the handler"):
        torch.where(M > 0, M, M.as_subclass(Refusing))


@pytest.mark.parametrize("space", ["torch", "Tensor"])
def test_guards_keep_the_function(space):
    names = guards.GUARDED_FUNCTIONS if space == "torch" else guards.GUARDED_METHODS
    for name in names:
        function = getattr(functions if space == "torch" else torch.Tensor, name)
        assert known(space, name) or signatures(space, name)
        assert inspect.signature(function) == inspect.signature(function.__wrapped__)


VALUES = [lambda torch: torch.ones(2, 2), lambda torch: torch.ones(2, 2, dtype=torch.int64), lambda torch: 1,
          lambda torch: 1.5, lambda torch: True, lambda torch: None, lambda torch: "a", lambda torch: [1, 2],
          lambda torch: (1, 2), lambda torch: [1.5], lambda torch: object(), lambda torch: torch.float32]
#: their methods parse by hand, or check what the parser admits
BY_HAND = re.compile(r"sparse|new|type|set_|to$|cuda|xpu|ipu|mtia|_copy$|random_|split$")


@pytest.mark.parity
@pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="PyTorch is the oracle")
def test_random_calls_are_refused_as_by_pytorch():
    import torch as pytorch

    choose = random.Random(7)
    keys = [key for key, texts in _texts().items() if key[0] in ("torch", "Tensor") and len(texts) > 1
            and not BY_HAND.search(key[1])]
    refused = 0
    for _ in range(400):
        space, name = choose.choice(keys)
        text = choose.choice(_texts()[space, name])
        names = [*re.findall(r"(\w+)(?:=|,|\))", text.partition("(")[2]), "zzz"]
        args = [choose.choice(VALUES) for _ in range(choose.randrange(4))]
        kwargs = {choose.choice(names): choose.choice(VALUES) for _ in range(choose.choice((0, 0, 1)))}
        theirs = getattr(pytorch._C._VariableFunctions if space == "torch" else pytorch.ones(2, 2), name)
        try:
            theirs(*[make(pytorch) for make in args], **{key: make(pytorch) for key, make in kwargs.items()})
            said = None
        except Exception as error:
            said = str(error) if isinstance(error, TypeError) and "failed to unpack" not in str(error) else None
        mine = explained(space, name, [make(torch) for make in args], {k: make(torch) for k, make in kwargs.items()})
        assert said == (None if mine is None else str(mine)), (space, name, args, kwargs)
        refused += said is not None
    assert refused > 200


@pytest.mark.parametrize("name", ["empty", "ones", "rand", "randn", "zeros"])
@pytest.mark.parametrize("dimensions", range(1, 9))
def test_sizes_by_position(name, dimensions):
    make, size = getattr(torch, name), [1] * dimensions
    assert make(*size).shape == make(*size, dtype=torch.float64, device="cpu").shape == make(size).shape == tuple(size)
    for method in ("expand", "repeat", "new_zeros", "permute", "view"):
        sizes = range(dimensions) if method == "permute" else size
        assert getattr(make(size), method)(*sizes).shape == tuple(size)


def test_arguments_are_known_while_torch_means_flambeau() -> None:
    """Classes are in another module then."""
    program = """if True:
        import flambeau.alias
        flambeau.alias.install()
        import torch
        d = torch.device("cpu")
        for f in (torch.randn, torch.rand, torch.zeros):
            assert f([2], device=d, layout=torch.strided, dtype=torch.float64).shape == (2,)
        torch.randn(2, generator=torch.Generator(), device=d)
        try:
            torch.randn(d)
        except TypeError as error:
            assert "must be tuple of ints, not torch.device" in str(error)
    """
    subprocess.run([sys.executable, "-c", program], check=True)
