"""Scripted and traced programs: they run as Python, share parameters, and refuse what needs TorchScript."""

from __future__ import annotations

import copy
import inspect

import pytest

import flambeau as torch
from flambeau import nn


class Net(nn.Module):
    limit: torch.jit.Final[int]

    def __init__(self):
        super().__init__()
        self.first = nn.Linear(3, 4)
        self.rest = nn.ModuleList([nn.ReLU(), nn.Sequential(nn.Linear(4, 2), nn.Dropout(0.5))])
        self.register_buffer("scale", torch.tensor(2.0))
        self.limit = 3

    def forward(self, x):
        x = self.first(x)
        for layer in self.rest:
            x = layer(x)
        return self.double(x) if x.sum() > 0 else x * self.scale

    @torch.jit.export
    def double(self, x):
        return 2 * x

    @torch.jit.unused
    def plot(self):
        return "plot"


@pytest.mark.filterwarnings("ignore::flambeau.jit.TracerWarning")
@pytest.mark.parametrize("make", [torch.jit.script, lambda net: torch.jit.trace(net, torch.ones(2, 3))],
                         ids=["script", "trace"])
def test_a_module(make):
    net = Net().eval()
    made = make(net)
    x = torch.randn(5, 3)
    assert torch.equal(made(x), net(x))
    assert isinstance(made, torch.jit.ScriptModule)
    assert isinstance(made, torch.ScriptModule)
    assert isinstance(made, Net)
    assert isinstance(made.first, torch.jit.ScriptModule)
    assert isinstance(made.rest[1][0], nn.Linear)
    assert made.original_name == "Net"
    assert made.first.weight is net.first.weight
    assert list(made.state_dict()) == list(net.state_dict())
    assert made.plot() == "plot"
    made(x).sum().backward()
    assert net.first.weight.grad is not None
    made.train()
    assert made.rest[1][1].training
    assert not net.training
    with torch.no_grad():
        net.first.weight.zero_()
    assert not made.first.weight.any()
    other = copy.deepcopy(made)
    assert other.first.weight is not made.first.weight
    assert make(made) is made


def test_names_of_scripted_modules():
    assert repr(torch.jit.script(nn.Sequential(nn.ReLU()))) == (
        "RecursiveScriptModule(\n  original_name=Sequential\n  (0): RecursiveScriptModule(original_name=ReLU)\n)")
    assert repr(torch.jit.trace(nn.ReLU(), torch.ones(1))) == "ReLU(original_name=ReLU)"


def test_functions():
    def f(x, y: float = 2.0):
        """A product."""
        return x * y

    scripted = torch.jit.script(f)
    assert isinstance(scripted, torch.jit.ScriptFunction)
    assert torch.equal(scripted(torch.ones(1), y=3.0), torch.tensor([3.0]))
    assert (scripted.__name__, scripted.__doc__, scripted.name) == ("f", "A product.", "f")
    assert str(inspect.signature(scripted)) == str(inspect.signature(f))
    seen = []

    def g(x):
        seen.append(torch.jit.is_tracing())
        return x + 1

    traced = torch.jit.trace(g, (torch.ones(1),))
    assert traced(torch.ones(2)).tolist() == [2.0, 2.0]
    assert seen == [True, True]
    assert not torch.jit.is_scripting()


def test_what_needs_torchscript_is_refused(tmp_path):
    scripted = torch.jit.script(nn.Linear(1, 1))
    for refused in (lambda: scripted.code, lambda: scripted.graph, lambda: scripted.save("x"),
                    lambda: torch.jit.save(scripted, "x"), lambda: torch.jit.load("x"),
                    lambda: torch.jit.CompilationUnit("def f(): pass"), lambda: torch.jit.script(len).code):
        with pytest.raises(NotImplementedError, match="flambeau runs scripted programs as Python"):
            refused()
    with pytest.raises(RuntimeError, match="only implemented for modules in eval mode"):
        torch.jit.freeze(scripted)
    with pytest.raises(RuntimeError, match="expects a ScriptModule as input"):
        torch.jit.freeze(nn.Linear(1, 1))
    with pytest.raises(RuntimeError, match="consider passing an instance"):
        torch.jit.script(nn.Linear)


def test_types():
    check = torch.jit.isinstance
    assert check({"a": [1]}, dict[str, list[int]])
    assert not check({"a": [1.0]}, dict[str, list[int]])
    assert check((1, "a"), tuple[int, str])
    assert check(None, int | None)
    with pytest.raises(RuntimeError, match="without a contained type"):
        check([1], list)


def test_modifiers():
    from flambeau.jit.internal import FunctionModifiers, get_torchscript_modifier, is_ignored_fn

    assert get_torchscript_modifier(Net.double) == FunctionModifiers.EXPORT
    assert is_ignored_fn(Net.plot)
    assert torch.jit.ignore(lambda x: x)._torchscript_modifier == FunctionModifiers.IGNORE
    with pytest.warns(FutureWarning, match=r"ignore\(True\) has been deprecated"):
        assert torch.jit.ignore(True)(lambda x: x)._torchscript_modifier == FunctionModifiers.UNUSED
    with pytest.raises(RuntimeError, match="must be a bool or a function"):
        torch.jit.ignore(3)


def test_fork_and_wait():
    assert torch.jit.wait(torch.jit.fork(torch.add, torch.ones(1), 1)).item() == 2
    with pytest.raises(ZeroDivisionError):
        torch.jit.wait(torch.jit.fork(lambda: 1 / 0))


@pytest.mark.parametrize("make", [torch.jit.script, lambda net: torch.jit.trace(net, torch.ones(2, 3))])
def test_modules_with_uninitialized_parameters_are_refused(make):
    with pytest.raises(RuntimeError, match="uninitialized parameters weight"):
        make(nn.Sequential(nn.LazyLinear(2)))


def _asserts(x):
    if x.shape[0] != 2:  # pytest rewrites assert statements
        raise AssertionError("bad size")
    return x


def _raises(x):
    if x.shape[0] != 2:
        raise ValueError("bad size")
    return x


def _views(x):
    x = x + 1
    return x.view(2, 3)


class Calls(nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, x):
        return self.function(x)


_HEAD = ("The following operation failed in the TorchScript interpreter.\n"
         "Traceback of TorchScript (most recent call last):\n")


@pytest.mark.parametrize(("function", "error", "source", "last"), [
    (_asserts, torch.jit.Error, " <--- HERE\n    return x\n", "RuntimeError: AssertionError: bad size\n"),
    (_raises, torch.jit.Error, " <--- HERE\n    return x\n", "builtins.ValueError: bad size\n"),
    (_views, RuntimeError, "    return x.view(2, 3)\n           ~~~~~~~~~~~~ <--- HERE\n",
     "RuntimeError: shape '[2, 3]' is invalid for input of size 4\n"),
])
def test_errors_are_those_of_the_interpreter(function, error, source, last):
    bad, line = torch.ones(4), function.__code__.co_firstlineno
    with pytest.raises(error) as scripted:
        torch.jit.script(function)(bad)
    text = str(scripted.value)
    assert text.startswith(f'{_HEAD}  File "{__file__}", line {line + 2}, in '
                           f"{function.__name__}\ndef {function.__name__}(x):\n")
    assert text.endswith(source + last)
    good = torch.ones(2, 3)
    for made in (torch.jit.trace(function, good), torch.jit.trace(Calls(torch.jit.script(function)), good)):
        with pytest.raises(error) as traced:
            made(bad)
        assert str(traced.value).startswith(f"{_HEAD}{__file__}({line + 2}): ")
        assert str(traced.value).endswith(last)


def test_arguments_that_do_not_fit_and_torchscript_itself_raise_as_before():
    with pytest.raises(TypeError, match="missing 1 required"):
        torch.jit.script(_views)()
    with pytest.raises(NotImplementedError, match="has no TorchScript"):
        torch.jit.script(lambda f: f.graph)(torch.jit.script(_views))


def test_tracing_the_forward_of_a_module_traces_the_module():
    net = nn.Linear(2, 3)
    traced = torch.jit.trace(net.forward, torch.ones(1, 2))
    assert isinstance(traced, torch.jit.TopLevelTracedModule)
    assert type(traced).__module__ == "torch.jit._trace"
    assert traced.original_name == "Linear"
    assert traced.weight is net.weight
    with pytest.raises(AttributeError, match="trace doesn't support compiling individual module's functions"):
        torch.jit.trace(net.extra_repr, ())
